/* Owns the way from a run that fails to a small one that still does: delta debugging over its steps. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "sim/run.h"

enum { runs_max = 800 };

bool step_is_fault(enum step_kind kind) { return kind == STEP_LOSE || kind == STEP_DUPLICATE || kind >= STEP_CRASH; }

struct step *steps_pick(const struct step *steps, const uint32_t *kept, uint32_t count) {
  struct step *picked = guard_malloc((count + 1) * sizeof *picked);
  for (uint32_t i = 0; i < count; i++) picked[i] = steps[kept[i]];
  return picked;
}

/* True: these steps alone fail too; then they are what is left. */
static bool try_with(const struct episode *episode, const uint32_t *kept, uint32_t count, struct shrunk *shrunk) {
  struct episode_result result;
  cleanup(guard_free) struct step *steps = steps_pick(episode->steps, kept, count);
  struct episode smaller = {.seed = episode->seed, .steps = steps, .count = count, .mistake = episode->mistake};
  shrunk->runs++;
  if (run_apart(&smaller, &result)) return false;
  if (result.step + 1 < count) count = result.step + 1; /* what came later has no part in it */
  memmove(shrunk->kept, kept, count * sizeof *kept);
  shrunk->count = count;
  shrunk->result = result;
  return true;
}

/* Without all faults at once. */
static void drop_faults(const struct episode *episode, uint32_t *room, struct shrunk *shrunk) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < shrunk->count; i++)
    if (!step_is_fault(episode->steps[shrunk->kept[i]].kind)) room[count++] = shrunk->kept[i];
  if (count < shrunk->count) (void)try_with(episode, room, count, shrunk);
}

void shrink(const struct episode *episode, const struct episode_result *result, struct shrunk *ret_shrunk) {
  struct shrunk shrunk = {.kept = guard_malloc((episode->count + 1) * sizeof *shrunk.kept), .result = *result};
  cleanup(guard_free) uint32_t *room = guard_malloc((episode->count + 1) * sizeof *room);
  shrunk.count = result->step + 1 < episode->count ? result->step + 1 : episode->count;
  for (uint32_t i = 0; i < shrunk.count; i++) shrunk.kept[i] = i;
  drop_faults(episode, room, &shrunk);
  for (uint32_t piece = shrunk.count / 2; piece >= 1 && shrunk.runs<runs_max; piece = piece> 1 ? piece / 2 : 0) {
    bool again = true;
    while (again && shrunk.runs < runs_max) {
      again = false;
      for (uint32_t at = 0; at < shrunk.count && shrunk.runs < runs_max;) {
        uint32_t end = at + piece < shrunk.count ? at + piece : shrunk.count, rest = shrunk.count - end;
        memcpy(room, shrunk.kept, at * sizeof *room);
        memcpy(room + at, shrunk.kept + end, rest * sizeof *room);
        if (try_with(episode, room, at + rest, &shrunk)) again = piece == 1;
        else at = end;
      }
    }
  }
  *ret_shrunk = shrunk;
}
