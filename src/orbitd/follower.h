/* The follower: a thread of its own that keeps the checkpoint in DATA/views, behind the engine's back. It reads the log as any
 * reader does. What has ended leaves the engine's memory as far as it has come; when it fails, nothing leaves any more and the
 * next start takes longer. */
#ifndef ORBIT_ORBITD_FOLLOWER_H
#define ORBIT_ORBITD_FOLLOWER_H

#include "edge/log.h"
#include "journal/journal.h"
#include "state/checkpoint.h"

struct follower;

/* DATA/views; the caller frees. */
char *views_path(const char *data_directory);

struct follower_options {
  const char *data_directory;
  uint64_t map_bytes;
  struct checkpoint *checkpoint; /* opened and lent by the start, taken over; NULL: to be opened */
  struct cold *cold;             /* whom it is lent to */
  uint64_t memory_max;           /* what tasks and receipts may take in memory, 0: no bound; of it follows how soon identities
                                    are sorted in */
};
/* Starts following. log and journal must outlive it, and so must cold. IO_ERROR: no thread. */
enum status follower_start(const struct log *log, struct journal *journal, const struct follower_options *options,
                           struct follower **ret_follower, struct fault *fault);
/* Lets it catch up with the last event of the log (for checkpoint_stop_ms_max at the most), so that the next start folds
 * nothing, and ends it. NULL is fine. */
void follower_stop(struct follower *follower);

#endif
