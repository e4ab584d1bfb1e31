/* Fuzzes sequences of what may be done to an Orbit and what may go wrong with it: three bytes are a step of the simulator
 * (tests/sim), the first says which, the others hold its luck. The model beside it judges every event, answer and message, and
 * at the end all work must drain. */
#include <stdio.h>

#include "base/guard.h"
#include "sim/sim.h"

enum { steps_max = 400, step_bytes = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct step steps[steps_max];
  struct episode_result result;
  uint32_t count = 0;
  for (size_t at = 0; at + step_bytes <= size && count < steps_max; at += step_bytes, count++)
    steps[count] = (struct step){.kind = (enum step_kind)(data[at] % STEP_COUNT),
                                 .luck = (UINT64_C(256) * data[at + 1] + data[at + 2]) * UINT64_C(0xD1342543DE82EF95)};
  /* Other worlds too: with views/ and without. */
  struct episode episode = {.seed = 1 + count % 8, .steps = steps, .count = count};
  episode_run(&episode, &result);
  if (result.complaint[0] != 0) (void)fprintf(stderr, "at step %u: %s\n", result.step, result.complaint);
  must(result.complaint[0] == 0);
  return 0;
}
