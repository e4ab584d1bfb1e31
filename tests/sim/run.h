/* Runs of episodes in processes of their own, so that a defect that ends the product ends the run alone; and how a run that
 * fails is made small. */
#ifndef ORBIT_TESTS_SIM_RUN_H
#define ORBIT_TESTS_SIM_RUN_H

#include "sim/sim.h"

/* Runs the episodes in a child, one behind the other, until one fails: processes cost more than episodes. Returns how many went
 * well; results of those and of the one that failed are filled. */
uint32_t run_together(const struct episode *episodes, uint32_t count, struct episode_result *ret_results);
/* One alone. True: nothing was wrong; else *ret_result says what. */
bool run_apart(const struct episode *episode, struct episode_result *ret_result);

struct shrunk {
  uint32_t *kept; /* numbers of the steps that are left, in order; owned */
  uint32_t count;
  unsigned runs;
  struct episode_result result; /* of what is left */
};
/* Leaves out steps, faults first, as long as the rest still fails. The episode failed with this result. */
void shrink(const struct episode *episode, const struct episode_result *result, struct shrunk *ret_shrunk);
/* The steps with these numbers alone; the caller frees. */
struct step *steps_pick(const struct step *steps, const uint32_t *kept, uint32_t count);
bool step_is_fault(enum step_kind kind);

#endif
