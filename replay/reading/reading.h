/* A log that is read offline, beside a running server or not. */
#ifndef ORBIT_REPLAY_READING_H
#define ORBIT_REPLAY_READING_H

#include "journal/journal.h"
#include "reading/scan.h"
#include "reading/tool.h"
#include "reading/when.h"
#include "state/state.h"

/* Opens a data directory, or a backup, for reading alone. Prints why when it cannot; returns an exit code. */
int reading_open(const char *directory, struct journal **ret_journal);

/* Folds the log up to the position (not given: to the end), without liblmdb: also for who may only read, and with no place
 * among the readers. Stops with a message at the first event that is damaged or does not fit. */
struct folding {
  struct state *state;
  uint64_t last_seq; /* of the last folded event */
  int64_t last_time_us;
};
int reading_fold(struct scan *scan, const struct position *until, struct folding *ret_folding);
void folding_clear(struct folding *folding);

#endif
