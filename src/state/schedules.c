/* Owns the order in which schedules come due, and which unfinished task belongs to which schedule. A schedule that waits for
 * one of its tasks stands in no order at all: the end of the task puts it back. */
#include <stdlib.h>

#include "base/guard.h"
#include "core/schedule.h"
#include "state/internal.h"

static uint32_t *timer_position(void *context, uint32_t number) { return &object_at(context, number)->timer_position; }
/* Of schedules that come due together the older one is first, however they came into memory: by a log's events one after the
 * other, or by the rows of a checkpoint. */
static int timer_tie(void *context, uint32_t a, uint32_t b) {
  return id_compare(&state_schedule_at(context, a)->id, &state_schedule_at(context, b)->id);
}
static struct heap_owner timer_owner(const struct state *state) {
  return (struct heap_owner){timer_position, timer_tie, (void *)(uintptr_t)state};
}

struct schedule *state_schedule(const struct state *state, const struct id *id) {
  struct object *object = object_of_kind(state, id, OBJECT_SCHEDULE);
  return object != NULL ? &object->as.schedule : NULL;
}

struct schedule *state_schedule_at(const struct state *state, uint32_t number) {
  struct object *object = object_at(state, number);
  must(object->kind == OBJECT_SCHEDULE);
  return &object->as.schedule;
}

/* ---- order ---- */

void schedule_follow(struct state *state, uint32_t number) {
  struct heap_owner owner = timer_owner(state);
  int64_t at = schedule_next_timer(state_schedule_at(state, number));
  if (at == INT64_MAX) heap_remove(&state->schedule_timers, &owner, number);
  else heap_put(&state->schedule_timers, &owner, number, at);
}

int64_t state_schedule_next(const struct state *state) { return heap_next(&state->schedule_timers); }
uint32_t state_schedule_due(const struct state *state, int64_t now_us) { return heap_due(&state->schedule_timers, now_us); }

void state_schedule_put_off(struct state *state, uint32_t number, int64_t until_us) {
  struct heap_owner owner = timer_owner(state);
  must(object_at(state, number)->timer_position != 0 && until_us >= state_schedule_at(state, number)->next_at);
  heap_put(&state->schedule_timers, &owner, number, until_us);
}

/* ---- tasks ---- */

uint32_t schedule_of_task(const struct state *state, uint32_t task) {
  struct index_cursor cursor;
  return (uint32_t)index_find(&state->schedule_tasks, task, &cursor);
}

void schedule_link(struct state *state, uint32_t number, uint32_t task) { index_add(&state->schedule_tasks, task, number); }

void schedule_take_task(struct state *state, uint32_t number, uint32_t task) {
  schedule_link(state, number, task);
  state_schedule_at(state, number)->unfinished++;
}

void schedule_let_task_go(struct state *state, uint32_t task, int64_t time_us) {
  uint32_t number = schedule_of_task(state, task);
  must(number != 0);
  index_remove(&state->schedule_tasks, task, number);
  struct schedule *schedule = state_schedule_at(state, number);
  must(schedule->unfinished > 0);
  if (--schedule->unfinished == 0) schedule->free_at = time_us;
  schedule_follow(state, number);
}

/* ---- judging ---- */

static const char *links_misfit(const struct state *state, uint32_t *counts) {
  size_t at = 0;
  uint64_t task, number;
  while (index_each(&state->schedule_tasks, &at, &task, &number)) {
    if (task == 0 || task > state->tasks.used || number > state->objects.used ||
        object_at(state, (uint32_t)number)->kind != OBJECT_SCHEDULE)
      return "a schedule's task or its schedule is not there";
    const struct task_node *node = node_at(state, (uint32_t)task);
    if (!node_is_there(node) || !node->task.scheduled || task_state_is_terminal((enum task_state)node->task.state))
      return "a task that is over, or of no schedule, counts for one";
    counts[number]++;
  }
  return NULL;
}

static const char *schedule_misfit(const struct state *state, uint32_t number, uint32_t unfinished) {
  const struct object *object = object_at(state, number);
  const struct schedule *schedule = &object->as.schedule;
  int64_t at = schedule_next_timer(schedule);
  if (schedule->unfinished != unfinished) return "a schedule's count is not that of its unfinished tasks";
  if (schedule->next_at != 0 && (schedule->paused || schedule->deleted)) return "a schedule at rest has a next time";
  if ((object->timer_position != 0) != (at != INT64_MAX)) return "a schedule's next time and its place do not agree";
  if (object->timer_position == 0) return NULL;
  if (object->timer_position > state->schedule_timers.count) return "a schedule's place is none";
  if (state->schedule_timers.entries[object->timer_position - 1].key < at) return "a schedule stands before its time";
  return NULL;
}

const char *schedules_misfit(const struct state *state) {
  struct heap_owner owner = timer_owner(state);
  cleanup(guard_free) uint32_t *counts = guard_calloc(state->objects.used + 1U, sizeof *counts);
  const char *misfit = links_misfit(state, counts);
  for (uint32_t number = 1; number <= state->objects.used && misfit == NULL; number++)
    if (object_at(state, number)->kind == OBJECT_SCHEDULE) misfit = schedule_misfit(state, number, counts[number]);
  for (uint32_t number = 1; number <= state->tasks.used && misfit == NULL; number++) {
    const struct task_node *node = node_at(state, number);
    if (!node_is_there(node) || !node->task.scheduled || task_state_is_terminal((enum task_state)node->task.state)) continue;
    if (schedule_of_task(state, number) == 0) misfit = "an unfinished task of a schedule counts for none";
  }
  if (misfit == NULL && state->trigger_pending != 0) misfit = "a task of a schedule was accepted without its trigger";
  if (misfit == NULL && !heap_is_sound(&state->schedule_timers, &owner)) misfit = "the order of schedules is not sound";
  return misfit;
}
