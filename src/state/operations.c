/* Owns which events of a task are entries of its operations, and the walk that finds them. */
#include "state/operations.h"

#include "base/guard.h"
#include "core/decision.h"

/* ---- Which event says what ---- */

static bool is_decision(enum event_type type) {
  return type == EVENT_task_requeued || type == EVENT_task_succeeded || type == EVENT_task_failed ||
         type == EVENT_task_review_required || type == EVENT_task_cancelled;
}

/* True when a decision follows in the same commit. */
static bool is_decided(enum event_type type) { return type == EVENT_attempt_result || type == EVENT_attempt_ended; }

static struct operation_standing standing(enum task_state state, uint64_t revision) {
  return (struct operation_standing){state, revision};
}

static enum status say_accept(const struct event *event, struct operation_document *operation) {
  operation->action = bytes_text("task.accept");
  operation->is = standing(TASK_WAITING, event->common.revision);
  operation->retry_of = event->body.task_accepted.retry_of;
  return STATUS_OK;
}

static enum status say_lease(const struct event *event, struct operation_document *operation) {
  operation->action = bytes_text("task.lease");
  operation->was = standing(TASK_WAITING, event->common.revision - 1);
  operation->is = standing(TASK_LEASED, event->common.revision);
  operation->attempt_id = event->body.task_leased.attempt_id;
  return STATUS_OK;
}

static enum status say_start(const struct event *event, struct operation_document *operation) {
  operation->action = bytes_text("task.start");
  operation->was = standing(TASK_LEASED, event->common.revision - 1);
  operation->is = standing(TASK_RUNNING, event->common.revision);
  operation->attempt_id = event->body.task_started.attempt_id;
  return STATUS_OK;
}

static enum status say_decision(const struct event *decision, struct operation_document *operation) {
  struct decision_record record;
  if (decision == NULL || !decision_of_event(decision, &record)) return STATUS_CORRUPT;
  operation->is = standing(record.state, decision->common.revision);
  operation->decision = record.decision;
  return STATUS_OK;
}

static enum status say_finish(const struct event *event, const struct event *newer, struct operation_document *operation) {
  const struct event_attempt_result *report = &event->body.attempt_result;
  operation->action = bytes_text("task.finish");
  operation->was = standing(TASK_RUNNING, event->common.revision);
  operation->attempt_id = report->attempt_id;
  operation->outcome = report->outcome;
  return say_decision(newer, operation);
}

/* An attempt that a cancel request ended belongs to the entry of the cancel. */
static enum status say_end(const struct event *event, const struct event *newer, struct operation_document *operation) {
  const struct event_attempt_ended *ended = &event->body.attempt_ended;
  if (ended->ended_by == ENDED_REVOKED) return STATUS_END;
  operation->action = bytes_text(ended->ended_by == ENDED_RELEASED ? "task.release" : "task.expire");
  operation->was = standing(ended->state == ATTEMPT_UNKNOWN ? TASK_RUNNING : TASK_LEASED, event->common.revision);
  operation->attempt_id = ended->attempt_id;
  operation->ended_by = ended->ended_by;
  return say_decision(newer, operation);
}

/* A decision that neither an attempt's end nor a cancel request led to: a waiting task ran out of time. */
static enum status say_waiting_expired(const struct event *event, enum event_type older, struct operation_document *operation) {
  if (is_decided(older) || older == EVENT_task_cancel_requested) return STATUS_END;
  operation->action = bytes_text("task.expire");
  operation->was = standing(TASK_WAITING, event->common.revision - 1);
  return say_decision(event, operation);
}

static enum status say_recorded(const struct event *event, struct operation_document *operation) {
  const struct event_audit_recorded *audit = &event->body.audit_recorded;
  if (!id_equal(&audit->audit_id, &operation->id)) return STATUS_CORRUPT;
  operation->action = audit->action;
  operation->reason = audit->reason;
  operation->evidence_ref = audit->evidence_ref;
  operation->before = audit->before;
  operation->after = audit->after;
  return STATUS_OK;
}

static enum status say(const struct event *event, enum event_type older, const struct event *newer,
                       struct operation_document *operation) {
  switch (event->type) {
    case EVENT_task_accepted:
      return say_accept(event, operation);
    case EVENT_task_leased:
      return say_lease(event, operation);
    case EVENT_task_started:
      return say_start(event, operation);
    case EVENT_attempt_result:
      return say_finish(event, newer, operation);
    case EVENT_attempt_ended:
      return say_end(event, newer, operation);
    case EVENT_audit_recorded:
      return say_recorded(event, operation);
    default:
      return is_decision(event->type) ? say_waiting_expired(event, older, operation) : STATUS_END;
  }
}

enum status operation_of_event(const struct event *event, enum event_type older, const struct event *newer,
                               struct operation_document *ret_operation) {
  struct operation_document operation = {.id = audit_id_make(event->time_us, event->seq),
                                         .task_id = event->stream,
                                         .operation_id = event->common.operation_id,
                                         .actor_id = event->common.actor,
                                         .created_at = event->time_us};
  enum status status = say(event, older, newer, &operation);
  if (status == STATUS_OK) *ret_operation = operation;
  return status;
}

/* ---- The walk ---- */

static enum status read_event(struct history *history, struct record_source source, const struct id *task_id, uint64_t seq,
                              struct event *ret_event) {
  enum status status = history_event(history, source, seq, ret_event);
  if (status != STATUS_OK) return status;
  return id_equal(&ret_event->stream, task_id) && ret_event->prev < seq ? STATUS_OK : STATUS_CORRUPT;
}

/* The entry that the event makes, with what stands beside it read where it matters: a decision follows at once. END: none. */
static enum status entry_of(struct history *history, struct record_source source, const struct event *event,
                            struct operation_document *ret_operation) {
  struct event beside;
  bool decided = is_decided(event->type);
  enum event_type older = EVENT_none;
  enum status status = STATUS_OK;
  if (decided) {
    status = read_event(history, source, &event->stream, event->seq + 1, &beside);
    if (status == STATUS_OK && beside.prev != event->seq) status = STATUS_CORRUPT;
  } else if (is_decision(event->type) && event->prev != 0) {
    status = read_event(history, source, &event->stream, event->prev, &beside);
    older = beside.type;
  }
  if (status != STATUS_OK) return status;
  return operation_of_event(event, older, decided ? &beside : NULL, ret_operation);
}

enum status operations_find(struct history *history, struct record_source source, const struct task *task,
                            const struct id *audit_id, struct operation_document *ret_operation) {
  struct event event;
  struct operation_document operation;
  uint64_t seq = audit_id_seq(audit_id);
  if (seq == 0 || seq > task->last_seq) return STATUS_NOT_FOUND;
  enum status status = history_event(history, source, seq, &event);
  if (status != STATUS_OK) return status;
  struct id own = audit_id_make(event.time_us, seq);
  if (!id_equal(&event.stream, &task->id) || !id_equal(&own, audit_id)) return STATUS_NOT_FOUND;
  status = entry_of(history, source, &event, &operation);
  if (status == STATUS_OK) *ret_operation = operation;
  return status == STATUS_END ? STATUS_NOT_FOUND : status;
}

/* Where the page starts: behind `after`, or at the task's newest event. */
static enum status find_start(struct history *history, struct record_source source, const struct task *task,
                              const struct id *after, uint64_t *ret_seq) {
  struct operation_document last;
  struct event event;
  *ret_seq = task->last_seq;
  if (after == NULL || id_is_zero(after)) return STATUS_OK;
  enum status status = operations_find(history, source, task, after, &last);
  if (status == STATUS_OK) status = history_event(history, source, audit_id_seq(after), &event);
  if (status == STATUS_OK) *ret_seq = event.prev;
  return status;
}

enum status operations_page(struct history *history, struct record_source source, const struct task *task,
                            const struct id *after, uint32_t limit, struct operation_document *rows, uint32_t *ret_count,
                            bool *ret_more) {
  struct operation_document operation;
  struct event event;
  uint64_t seq;
  uint32_t count = 0;
  bool more = false;
  must(limit >= 1);
  enum status status = find_start(history, source, task, after, &seq);
  for (; status == STATUS_OK && seq != 0 && !more; seq = event.prev) {
    status = read_event(history, source, &task->id, seq, &event);
    if (status == STATUS_OK) status = entry_of(history, source, &event, &operation);
    if (status == STATUS_OK && count < limit) rows[count++] = operation;
    else if (status == STATUS_OK) more = true;
    if (status == STATUS_END) status = STATUS_OK;
  }
  if (status != STATUS_OK) return status;
  *ret_count = count;
  *ret_more = more;
  return STATUS_OK;
}
