/* Owns when ended tasks are answered no more: an event of the log says so, so that every fold of it agrees; a clock alone never
 * does. */
#include "engine/internal.h"

/* One part of the retention, within bounds: how late it may come. */
enum { looks_of_retention = 1000 };

static enum status time_of(struct engine *engine, uint64_t seq, int64_t *ret_time_us) {
  struct record_source source = engine_source(engine);
  struct bytes record;
  struct event event;
  enum status status = source.get(source.context, seq, &record);
  if (status == STATUS_OK) status = record_header_decode(record, &event);
  if (status == STATUS_OK) *ret_time_us = event.time_us;
  return status;
}

/* The last event that is not later than this, of those behind low; low when there is none. Times never fall along the log. */
static enum status seq_until(struct engine *engine, uint64_t low, int64_t until_us, uint64_t *ret_seq) {
  uint64_t high = engine->commit.first_seq - 1; /* on its way or durable, it has been decided */
  while (low < high) {
    uint64_t middle = low + (high - low + 1) / 2;
    int64_t time_us;
    enum status status = time_of(engine, middle, &time_us);
    if (status != STATUS_OK) return status;
    if (time_us <= until_us) low = middle;
    else high = middle - 1;
  }
  *ret_seq = low;
  return STATUS_OK;
}

void retention_move(struct engine *engine) {
  if (engine->retention_us == 0 || engine->now_us < engine->retain_at_us || engine->disk_full) return;
  int64_t step = engine->retention_us / looks_of_retention, before = engine->now_us - engine->retention_us;
  uint64_t retained = state_retained_seq(engine->state), through;
  step = step < retention_look_us_min ? retention_look_us_min : step > retention_look_us_max ? retention_look_us_max : step;
  engine->retain_at_us = engine->now_us + step;
  if (seq_until(engine, retained, before, &through) != STATUS_OK || through == retained) return;
  if (!state_would_retain(engine->state, through)) return;
  struct decide_env env = engine_env(engine);
  struct event *event =
      event_list_add(&engine->list, EVENT_retention_advanced, &engine->node_id, &env.operation_id, &engine->node_id);
  event->time_us = env.now_us;
  event->body.retention_advanced.through_seq = through;
  event->body.retention_advanced.before = before;
  engine_append(engine);
}
