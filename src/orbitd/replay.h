/* Coming up: the log folded into a state, with progress, judged before anything is served. */
#ifndef ORBIT_ORBITD_REPLAY_H
#define ORBIT_ORBITD_REPLAY_H

#include "edge/edge.h"
#include "state/state.h"

/* Folds the log: what the checkpoint in data_directory (NULL: none is wanted) does not hold, or all of it when the checkpoint
 * cannot be believed; then a line says why, and what is damaged is deleted. CORRUPT, FOREIGN: the message names the seq and
 * what does not fit. While it reads, damaged pages end the process with a message that names the last sound seq, exit code 3;
 * those of the checkpoint take it with them, so that the next start does without. Progress goes to edge->replay_permille and
 * the terminal. */
enum status replay_log(struct edge *edge, struct journal *journal, const char *data_directory, struct state **ret_state,
                       struct fault *fault);

#endif
