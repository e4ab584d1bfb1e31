/* The follower: a thread of its own that keeps the checkpoint in DATA/views, behind the engine's back. It reads the log as any
 * reader does and is on the path of no answer; when it fails, the next start takes longer, nothing else. */
#ifndef ORBIT_ORBITD_FOLLOWER_H
#define ORBIT_ORBITD_FOLLOWER_H

#include "edge/log.h"
#include "journal/journal.h"

struct follower;

/* DATA/views; the caller frees. */
char *views_path(const char *data_directory);

/* Starts following. log and journal must outlive it. IO_ERROR: no thread. */
enum status follower_start(const struct log *log, struct journal *journal, const char *data_directory, uint64_t map_bytes,
                           struct follower **ret_follower, struct fault *fault);
/* Lets it catch up with the last event of the log (for checkpoint_stop_ms_max at the most), so that the next start folds
 * nothing, and ends it. NULL is fine. */
void follower_stop(struct follower *follower);

#endif
