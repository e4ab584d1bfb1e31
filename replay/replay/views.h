/* The checkpoint beside a log, compared in a process of its own: liblmdb trusts its pages, so a damaged one may end whoever
 * reads it, and that must not be us. */
#ifndef ORBIT_REPLAY_VIEWS_H
#define ORBIT_REPLAY_VIEWS_H

#include "base/status.h"
#include "state/state.h"

/* Compares the checkpoint in DATA/views, if there is one, with the fold of the whole log; the fold stays as it is. Other
 * threads may not run. OK: equal, or there is none. CORRUPT: it differs or is damaged; the fault says where or which file. Else
 * it was not compared or would be ignored by a start; the fault says why. */
enum status views_compare(const char *data_directory, struct state *fold, struct fault *fault);

#endif
