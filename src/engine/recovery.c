/* Owns what people and producers do to a task that exists: cancel, review, manual retry; and the batch of submissions. */
#include <string.h>

#include "base/guard.h"
#include "engine/internal.h"

static enum status unreadable(struct answer *answer) {
  return refuse(answer, fault_set(&answer->fault, STATUS_INTERNAL, NULL, "the task's history could not be read from the log"));
}

/* ---- repeats: the answer is pinned to the operation's own last event ---- */

/* What an operation appended, seen from its first event on. */
struct operation_trace {
  uint64_t last_seq;     /* its last event in the first event's stream */
  uint64_t accepted_seq; /* a task.accepted of another stream; 0: none */
  struct id audit_id;
  bool applied; /* cancel: it was the first */
};

static enum status trace_operation(struct engine *engine, const struct event *first, struct operation_trace *ret_trace) {
  struct operation_trace trace = {.last_seq = first->seq};
  struct event event = *first;
  if (first->type == EVENT_task_cancel_requested) trace.applied = first->body.task_cancel_requested.applied;
  for (uint64_t seq = first->seq + 1; !event.last_of_commit && seq < engine->commit.first_seq + engine->commit.count; seq++) {
    if (history_event(engine->history, engine_source(engine), seq, &event) != STATUS_OK) return STATUS_CORRUPT;
    if (!id_equal(&event.common.operation_id, &first->common.operation_id)) break;
    if (id_equal(&event.stream, &first->stream)) trace.last_seq = seq;
    if (event.type == EVENT_audit_recorded) trace.audit_id = event.body.audit_recorded.audit_id;
    if (event.type == EVENT_task_accepted) trace.accepted_seq = seq;
  }
  *ret_trace = trace;
  return STATUS_OK;
}

static enum status repeat_operation(struct engine *engine, struct ticket *ticket, const struct event *first) {
  struct answer *answer = &ticket->answer;
  struct operation_trace trace;
  if (trace_operation(engine, first, &trace) != STATUS_OK) return unreadable(answer);
  uint64_t seq = trace.accepted_seq != 0 ? trace.accepted_seq : trace.last_seq;
  if (history_task_at(engine->history, engine_source(engine), seq, &answer->as.task, NULL) != STATUS_OK)
    return unreadable(answer);
  answer->deduplicated = true;
  answer->audit_id = trace.audit_id;
  answer->applied = trace.applied;
  answer->source_task_id = first->stream;
  return STATUS_OK;
}

/* ---- what the three share ---- */

/* Reach and receipt. END: to be decided. */
static enum status take_up(struct engine *engine, struct ticket *ticket, const struct id *task_id, uint32_t *ret_number) {
  struct answer *answer = &ticket->answer;
  struct event event;
  enum status status = command_reach_task(engine, &ticket->command.who, task_id, ret_number, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  status = command_receipt(engine, &ticket->command, state_task_at(engine->state, *ret_number), &event, &answer->fault);
  if (status == STATUS_OK) return repeat_operation(engine, ticket, &event);
  return status == STATUS_END ? STATUS_END : refuse(answer, status);
}

static struct id audit_of_list(const struct event_list *list) {
  for (uint32_t i = list->count; i-- > 0;)
    if (list->events[i].type == EVENT_audit_recorded) return list->events[i].body.audit_recorded.audit_id;
  return (struct id){{0}};
}

/* The original's acceptance; its spans live until the next event is staged, and are copied by then. */
static enum status read_accepted(struct engine *engine, const struct task *task, struct event *ret_event) {
  return history_event(engine->history, engine_source(engine), task->accepted_seq, ret_event);
}

/* A task of a schedule is that schedule's own when the trigger that made it stands right behind its acceptance, in one commit.
 */
static bool trigger_fits(struct engine *engine, const struct event *accepted) {
  struct event event;
  const struct id *schedule_id = &accepted->body.task_accepted.schedule_id;
  if (id_is_zero(schedule_id)) return true;
  return history_event(engine->history, engine_source(engine), accepted->seq + 1, &event) == STATUS_OK &&
         event.type == EVENT_schedule_triggered && event.offset == accepted->offset + 1 &&
         id_equal(&event.stream, schedule_id) && id_equal(&event.body.schedule_triggered.task_id, &accepted->stream);
}

/* The newest claim of the task; zero when there was none. */
static enum status newest_attempt(struct engine *engine, const struct task *task, struct id *ret_attempt_id) {
  struct id none = {{0}};
  struct event event;
  for (uint64_t seq = task->attempt_count != 0 ? task->last_seq : 0; seq != 0; seq = event.prev) {
    if (history_event(engine->history, engine_source(engine), seq, &event) != STATUS_OK) return STATUS_CORRUPT;
    if (event.type != EVENT_task_leased) continue;
    *ret_attempt_id = event.body.task_leased.attempt_id;
    return STATUS_OK;
  }
  *ret_attempt_id = none;
  return STATUS_OK;
}

/* ---- cancel ---- */

static void tell_cancel(struct engine *engine, struct worker *holder, const struct task *before, const struct id *attempt_id,
                        struct bytes reason) {
  bool running = before->state == TASK_RUNNING;
  struct push *push = push_new(running ? MAIL_CANCEL : MAIL_ENDED, holder->session, running ? reason : (struct bytes){NULL, 0});
  push->task_id = before->id;
  push->attempt_id = *attempt_id;
  push->ended_by = ENDED_REVOKED;
  engine_depart(engine, holder->home, &push->mail);
}

/* The request that is on record; its reason is a span of the log. */
static enum status read_request(struct engine *engine, const struct task *task, struct event *ret_event) {
  struct event event;
  for (uint64_t seq = task->last_seq; seq != 0; seq = event.prev) {
    if (history_event(engine->history, engine_source(engine), seq, &event) != STATUS_OK) return STATUS_CORRUPT;
    if (event.type != EVENT_task_cancel_requested || !event.body.task_cancel_requested.applied) continue;
    *ret_event = event;
    return STATUS_OK;
  }
  return STATUS_NOT_FOUND;
}

void recovery_tell_again(struct engine *engine, struct worker *worker, uint32_t number) {
  const struct task *task = state_task_at(engine->state, number);
  struct event event;
  if (task->state != TASK_RUNNING || task->cancel_requested_at == 0) return;
  bool found = read_request(engine, task, &event) == STATUS_OK;
  tell_cancel(engine, worker, task, &state_attempt_at(engine->state, number)->id,
              found ? event.body.task_cancel_requested.reason : (struct bytes){NULL, 0});
}

/* How many requests there are: none stands before the one that is on record. */
static enum status count_requests(struct engine *engine, const struct task *task, uint32_t *ret_count) {
  uint32_t count = 0;
  bool on_record = task->cancel_requested_at != 0;
  struct event event;
  for (uint64_t seq = task->last_seq; on_record && seq != 0; seq = event.prev) {
    if (history_event(engine->history, engine_source(engine), seq, &event) != STATUS_OK) return STATUS_CORRUPT;
    if (event.type != EVENT_task_cancel_requested) continue;
    count++;
    on_record = !event.body.task_cancel_requested.applied;
  }
  *ret_count = count;
  return STATUS_OK;
}

enum status recovery_cancel(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  const struct cancel_command *cancel = &ticket->command.as.cancel;
  uint32_t number, kept = 0;
  enum status status = take_up(engine, ticket, &cancel->task_id, &number);
  if (status != STATUS_END) return status;
  struct task before = *state_task_at(engine->state, number);
  struct attempt attempt = *state_attempt_at(engine->state, number);
  if (count_requests(engine, &before, &kept) != STATUS_OK) return unreadable(answer);
  struct worker *holder = worker_of_task(engine, number);
  struct decide_env env = engine_env(engine);
  status = decide_cancel(&before, &attempt, &ticket->command, kept, &env, &engine->list, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  answer->applied = before.cancel_requested_at == 0;
  answer->audit_id = audit_of_list(&engine->list);
  engine_append(engine);
  answer->as.task = *state_task_at(engine->state, number);
  answer->created = true;
  if (holder == NULL || !answer->applied) return STATUS_OK;
  tell_cancel(engine, holder, &before, &attempt.id, cancel->reason);
  if (state_instance_of(engine->state, number) == 0) worker_freed(engine, holder);
  return STATUS_OK;
}

/* ---- review ---- */

enum status recovery_review(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  struct event accepted;
  uint32_t number;
  enum status status = take_up(engine, ticket, &ticket->command.as.review.task_id, &number);
  if (status != STATUS_END) return status;
  const struct task *task = state_task_at(engine->state, number);
  if (newest_attempt(engine, task, &ticket->command.as.review.attempt_id) != STATUS_OK ||
      read_accepted(engine, task, &accepted) != STATUS_OK || !trigger_fits(engine, &accepted))
    return unreadable(answer);
  struct decide_env env = engine_env(engine);
  status = decide_review(task, &accepted.body.task_accepted, &ticket->command, &env, &engine->list, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  answer->audit_id = audit_of_list(&engine->list);
  engine_append(engine);
  answer->as.task = *state_task_at(engine->state, number);
  answer->created = true;
  return STATUS_OK;
}

/* ---- manual retry ---- */

/* The child's texts are spans of the original's record, and the original may stand in the commit that is being made: they are
 * copied to where they do not move while the child is staged. */
static void keep_texts(struct engine *engine, struct event_task_accepted *accepted) {
  struct bytes *texts[] = {&accepted->handler, &accepted->handler_version, &accepted->payload_version,
                           &accepted->payload, &accepted->business_key,    &accepted->concurrency_key};
  size_t total = 0;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) total += texts[i]->size;
  buffer_reset(&engine->scratch);
  uint8_t *at = buffer_reserve(&engine->scratch, total);
  must(at != NULL);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    if (texts[i]->size == 0) continue;
    memcpy(at, texts[i]->data, texts[i]->size);
    texts[i]->data = at;
    at += texts[i]->size;
  }
}

enum status recovery_retry(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  const struct retry_command *retry = &ticket->command.as.retry;
  struct event accepted;
  uint32_t number;
  enum status status = take_up(engine, ticket, &retry->task_id, &number);
  if (status != STATUS_END) return status;
  if ((status = command_room(engine, &answer->fault)) != STATUS_OK) return refuse(answer, status);
  const struct task *task = state_task_at(engine->state, number);
  if (read_accepted(engine, task, &accepted) != STATUS_OK) return unreadable(answer);
  keep_texts(engine, &accepted.body.task_accepted);
  struct decide_env env = engine_env(engine);
  status = decide_retry(task, &accepted.body.task_accepted, state_queue_of(engine->state, task),
                        state_application_of(engine->state, task), &ticket->command, &env, &engine->list, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  answer->audit_id = audit_of_list(&engine->list);
  engine_append(engine);
  answer->as.task = *state_task(engine->state, &env.new_id);
  answer->source_task_id = retry->task_id;
  answer->created = true;
  return STATUS_OK;
}

/* ---- batch ---- */

enum status recovery_batch(struct engine *engine, struct ticket *ticket) {
  const struct batch_command *batch = &ticket->command.as.batch;
  for (uint32_t i = 0; i < batch->count; i++) {
    struct batch_item *item = &batch->items[i];
    if (item->answer.status != STATUS_OK) continue; /* could not be read */
    item->answer = (struct answer){.status = STATUS_OK};
    (void)command_submit(engine, &item->command, &item->answer);
  }
  return STATUS_OK;
}
