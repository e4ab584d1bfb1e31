/* Coming up: the log folded into a state, with progress, judged before anything is served. */
#ifndef ORBIT_ORBITD_REPLAY_H
#define ORBIT_ORBITD_REPLAY_H

#include "edge/edge.h"
#include "state/checkpoint.h"

struct replay_options {
  const char *data_directory; /* of the checkpoint; NULL: none is wanted */
  uint64_t map_bytes;
  struct cold *cold;   /* whom the checkpoint is lent to */
  uint64_t memory_max; /* what tasks and receipts may take, 0: no bound. What could take more is followed into the checkpoint
                          first, and then only loaded */
};

/* Folds the log: what the checkpoint does not hold, or all of it when the checkpoint cannot be believed; then a line says why,
 * and what is damaged is deleted. A state that was loaded leaves to the checkpoint what has ended: that is open then, lent and
 * the caller's (*ret_checkpoint; else NULL). CORRUPT, FOREIGN: the message names the seq and what does not fit. While it reads,
 * damaged pages end the process with a message that names the last sound seq, exit code 3; those of the checkpoint take it with
 * them, so that the next start does without, also when they are met later, by whoever reads it in this process. Progress goes
 * to edge->replay_permille and the terminal. */
enum status replay_log(struct edge *edge, struct journal *journal, const struct replay_options *options,
                       struct state **ret_state, struct checkpoint **ret_checkpoint, struct fault *fault);

/* True once a signal that stops the server has come and waits: replay_log ends with UNAVAILABLE then, soon and with nothing
 * changed. */
bool replay_stop_is_asked(void);

#endif
