/* Owns what the model remembers of the log as a whole: each event's time, type and stream; and what follows from it: which
 * tasks are no more. */
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "sim/model_internal.h"

void model_log_add(struct model *model, const struct event *event) {
  if (model->log_count == model->log_capacity) {
    model->log_capacity = model->log_capacity * 2 + 1024;
    model->log = guard_realloc(model->log, model->log_capacity * sizeof *model->log);
  }
  model->log[model->log_count++] = (struct model_event){event->time_us, event->type, event->stream};
}

const struct model_event *model_log_at(const struct model *model, uint64_t seq) { return &model->log[seq - 1]; }

/* ---- how long tasks are answered ---- */

bool model_is_gone(const struct model *model, const struct model_task *task) {
  return model_is_over(task->state) && task->last_seq <= model->retained_seq;
}

struct model_task *model_task_there(struct model *model, const struct id *id) {
  struct model_task *task = model_task(model, id);
  return task != NULL && model_is_gone(model, task) ? NULL : task;
}

bool model_receipt_is_gone(struct model *model, const struct model_receipt *receipt) {
  bool made = receipt->request.kind == COMMAND_SUBMIT;
  if (model->retained_seq == 0 || (!made && !request_names_task(&receipt->request))) return false;
  return model_task_there(model, made ? &receipt->then.id : &receipt->request.task_id) == NULL;
}

/* The last event whose time is not later. */
static uint64_t last_until(const struct model *model, int64_t time_us) {
  uint64_t seq = model->retained_seq;
  while (seq < model->log_count && model_log_at(model, seq + 1)->time_us <= time_us) seq++;
  return seq;
}

static void read_advance(struct model *model) {
  int64_t before = model->now_us - model->retention_us;
  uint64_t through = last_until(model, before);
  bool anybody = false;
  model_operation_begin(model, &model->node_id, NULL);
  const struct event *have = model_foresee(model, EVENT_retention_advanced, &model->node_id, 0, model->node_last_seq);
  model->want.event.body.retention_advanced.through_seq = through;
  model->want.event.body.retention_advanced.before = before;
  model_met(model);
  for (uint32_t i = 0; i < model->task_count && !anybody; i++) {
    const struct model_task *task = &model->tasks[i];
    anybody = model_is_over(task->state) && !model_is_gone(model, task) && task->last_seq <= through;
  }
  if (!anybody) model_complain(model, "seq %llu: retention moves, and no task goes", (unsigned long long)have->seq);
  model->node_last_seq = have->seq;
  model->retained_seq = through;
}

/* How late Orbit may be: it looks now and then. */
static int64_t most_late_us(const struct model *model) {
  int64_t late = model->retention_us / 1000;
  return late < 1000000 ? 1000000 : late > INT64_C(3600000000) ? INT64_C(3600000000) : late;
}

void model_retain(struct model *model) {
  bool advanced = model_next_is(model, EVENT_retention_advanced);
  if (advanced && model->retention_us == 0) model_complain(model, "retention moves, though everything is kept");
  if (model->retention_us == 0 || !model_is_well(model)) return;
  if (advanced) read_advance(model);
  if (advanced && model->disk_full) model_complain(model, "retention moves on a full disk");
  if (model->views_short) model->retention_waits_until = model->now_us + most_late_us(model);
  if (model->disk_full || model->now_us <= model->retention_waits_until) return;
  /* What was over at the last look, which was not longer ago, is gone. */
  uint64_t seq = last_until(model, model->now_us - model->retention_us - most_late_us(model));
  if (seq <= model->retained_seq) return;
  for (uint32_t i = 0; i < model->task_count; i++) {
    const struct model_task *task = &model->tasks[i];
    if (!model_is_over(task->state) || model_is_gone(model, task) || task->last_seq > seq) continue;
    model_complain(model, "task %s should be gone by now", id_text(&task->id).text);
    return;
  }
}
