/* Owns what workers ask about an attempt, and what Orbit does to one whose time has come. */
#include <string.h>

#include "base/guard.h"
#include "engine/internal.h"

/* ---- answers ---- */

static void describe_lease(const struct engine *engine, uint32_t number, const struct id *attempt_id,
                           struct worker_result *result) {
  const struct task *task = state_task_at(engine->state, number);
  const struct attempt *attempt = state_attempt_at(engine->state, number);
  result->lease_active = id_equal(&attempt->id, attempt_id) && task_lease_is_live(task, attempt, engine->now_us);
  result->lease_expires_at = result->lease_active ? attempt->live_until : 0;
}

static void describe_task(const struct task *task, struct worker_result *result) {
  result->has_task = true;
  result->task_id = task->id;
  result->task_state = (enum task_state)task->state;
  result->task_revision = task->revision;
  result->available_at = task->state == TASK_WAITING ? task->available_at : 0;
}

static enum status describe_refusal(struct engine *engine, struct ticket *ticket, uint32_t number, const struct id *attempt_id,
                                    enum status status) {
  const struct task *task = state_task_at(engine->state, number);
  describe_task(task, &ticket->answer.as.worker);
  describe_lease(engine, number, attempt_id, &ticket->answer.as.worker);
  return refuse(&ticket->answer, status);
}

static enum decision decision_of(const struct event *event) {
  switch (event->type) {
    case EVENT_task_requeued:
      return event->body.task_requeued.decision;
    case EVENT_task_succeeded:
      return event->body.task_succeeded.decision;
    case EVENT_task_failed:
      return event->body.task_failed.decision;
    case EVENT_task_review_required:
      return event->body.task_review_required.decision;
    case EVENT_task_cancelled:
      return event->body.task_cancelled.decision;
    default:
      return DECISION_NONE;
  }
}

/* The stored answer to a repeat: the task as it stood when the operation was done; the lease as it is now. */
static enum status repeat_attempt(struct engine *engine, struct ticket *ticket, uint32_t number, const struct event *first) {
  struct worker_result *result = &ticket->answer.as.worker;
  struct record_source source = engine_source(engine);
  struct event last = *first;
  struct task then;
  bool decided = first->type == EVENT_attempt_result || first->type == EVENT_attempt_ended;
  if (decided && history_event(engine->history, source, first->seq + 1, &last) != STATUS_OK) goto unreadable;
  if (history_task_at(engine->history, source, last.seq, &then, NULL) != STATUS_OK) goto unreadable;
  result->deduplicated = true;
  result->evidence = first->type == EVENT_evidence_recorded;
  result->applied = !result->evidence;
  result->disposition = decided ? decision_of(&last) : DECISION_NONE;
  describe_task(&then, result);
  describe_lease(engine, number, &ticket->command.as.ref.attempt_id, result);
  return STATUS_OK;
unreadable:
  return refuse(&ticket->answer,
                fault_set(&ticket->answer.fault, STATUS_INTERNAL, NULL, "a receipt could not be read from the log"));
}

/* Reach and receipt, the same for start, finish and release: END means that the command is to be decided. */
static enum status take_up(struct engine *engine, struct ticket *ticket, const struct attempt_ref *ref, uint32_t *ret_number) {
  struct answer *answer = &ticket->answer;
  struct event event;
  uint32_t number = 0;
  enum status status = command_reach_task(engine, &ticket->command.who, &ref->task_id, &number, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  *ret_number = number;
  status = command_receipt(engine, &ticket->command, state_task_at(engine->state, number), &event, &answer->fault);
  if (status == STATUS_OK) return repeat_attempt(engine, ticket, number, &event);
  return status == STATUS_END ? STATUS_END : refuse(answer, status);
}

/* The decision was made and its events are in the list: fold them and answer. */
static enum status settle(struct engine *engine, struct ticket *ticket, uint32_t number, const struct id *attempt_id) {
  struct worker_result *result = &ticket->answer.as.worker;
  struct worker *holder = worker_of_task(engine, number);
  result->applied = true;
  result->disposition = decision_of(&engine->list.events[engine->list.count - 1]);
  engine_append(engine);
  const struct task *task = state_task_at(engine->state, number);
  describe_task(task, result);
  describe_lease(engine, number, attempt_id, result);
  if (holder != NULL && state_instance_of(engine->state, number) == 0) worker_freed(engine, holder);
  return STATUS_OK;
}

/* ---- the four requests ---- */

enum status attempt_start(struct engine *engine, struct ticket *ticket) {
  const struct attempt_ref *ref = &ticket->command.as.ref;
  uint32_t number = 0;
  enum status status = take_up(engine, ticket, ref, &number);
  if (status != STATUS_END) return status;
  struct decide_env env = engine_env(engine);
  status = decide_start(state_task_at(engine->state, number), state_attempt_at(engine->state, number), &ticket->command, &env,
                        &engine->list, &ticket->answer.fault);
  if (status != STATUS_OK) return describe_refusal(engine, ticket, number, &ref->attempt_id, status);
  return settle(engine, ticket, number, &ref->attempt_id);
}

enum status attempt_release(struct engine *engine, struct ticket *ticket) {
  const struct attempt_ref *ref = &ticket->command.as.ref;
  uint32_t number = 0;
  enum status status = take_up(engine, ticket, ref, &number);
  if (status != STATUS_END) return status;
  struct decide_env env = engine_env(engine);
  status = decide_release(state_task_at(engine->state, number), state_attempt_at(engine->state, number), &ticket->command, &env,
                          &engine->list, &ticket->answer.fault);
  if (status != STATUS_OK) return describe_refusal(engine, ticket, number, &ref->attempt_id, status);
  return settle(engine, ticket, number, &ref->attempt_id);
}

enum status attempt_renew(struct engine *engine, struct ticket *ticket) {
  const struct attempt_ref *ref = &ticket->command.as.ref;
  uint32_t number = 0;
  int64_t until;
  enum status status = command_reach_task(engine, &ticket->command.who, &ref->task_id, &number, &ticket->answer.fault);
  if (status != STATUS_OK) return refuse(&ticket->answer, status);
  const struct task *task = state_task_at(engine->state, number);
  struct decide_env env = engine_env(engine);
  status = decide_renew(task, state_attempt_at(engine->state, number), &ticket->command, &env, &until, &ticket->answer.fault);
  if (status != STATUS_OK) return describe_refusal(engine, ticket, number, &ref->attempt_id, status);
  state_renew(engine->state, number, until);
  ticket->answer.as.worker.applied = true;
  describe_task(task, &ticket->answer.as.worker);
  describe_lease(engine, number, &ref->attempt_id, &ticket->answer.as.worker);
  return STATUS_OK;
}

/* An attempt that is not the current one: was it ever a claim of this task by this application? *ret_kept: how much evidence
 * speaks of it; it stands behind the claim. */
static bool attempt_existed(struct engine *engine, const struct task *task, const struct finish_command *finish,
                            const struct principal *who, uint32_t *ret_kept) {
  uint64_t seq = task->last_seq;
  uint32_t kept = 0;
  struct event event;
  while (seq != 0 && history_event(engine->history, engine_source(engine), seq, &event) == STATUS_OK) {
    if (event.type == EVENT_evidence_recorded && id_equal(&event.body.evidence_recorded.attempt_id, &finish->ref.attempt_id))
      kept++;
    if (event.type == EVENT_task_leased && id_equal(&event.body.task_leased.attempt_id, &finish->ref.attempt_id)) {
      *ret_kept = kept;
      return id_equal(&event.body.task_leased.worker_application_id, &who->application_id);
    }
    seq = event.prev;
  }
  return false;
}

static enum status record_evidence(struct engine *engine, struct ticket *ticket, uint32_t number, enum evidence_reason reason,
                                   uint32_t kept) {
  struct decide_env env = engine_env(engine);
  struct worker_result *result = &ticket->answer.as.worker;
  const struct id *attempt_id = &ticket->command.as.finish.ref.attempt_id;
  enum status status = decide_evidence(state_task_at(engine->state, number), &ticket->command, reason, kept, &env,
                                       &engine->list, &ticket->answer.fault);
  if (status != STATUS_OK) return describe_refusal(engine, ticket, number, attempt_id, status);
  engine_append(engine);
  engine->counters.evidence++;
  result->evidence = true;
  describe_task(state_task_at(engine->state, number), result);
  describe_lease(engine, number, attempt_id, result);
  return STATUS_OK;
}

static enum evidence_reason why_without_authority(const struct task *task, const struct attempt_ref *ref) {
  if (task_state_is_terminal((enum task_state)task->state)) return EVIDENCE_TASK_ENDED;
  return ref->epoch < task->epoch ? EVIDENCE_STALE_EPOCH : EVIDENCE_LEASE_LOST;
}

/* A report without authority: the first answer when an applied report said the same; else evidence. */
static enum status finish_without_authority(struct engine *engine, struct ticket *ticket, uint32_t number) {
  const struct finish_command *finish = &ticket->command.as.finish;
  const struct task *task = state_task_at(engine->state, number);
  struct event event;
  uint32_t kept = 0;
  if (!attempt_existed(engine, task, finish, &ticket->command.who, &kept))
    return refuse(&ticket->answer, fault_set(&ticket->answer.fault, STATUS_NOT_FOUND, "/attempt_id",
                                             "the task has no attempt %s", id_text(&finish->ref.attempt_id).text));
  enum status status =
      state_receipt(engine->state, &finish->report.identity, task, engine->history, engine_source(engine), &event);
  if (status == STATUS_END) return record_evidence(engine, ticket, number, why_without_authority(task, &finish->ref), kept);
  if (status != STATUS_OK) /* its history leads to it: the store is not asked */
    return refuse(&ticket->answer,
                  fault_set(&ticket->answer.fault, STATUS_INTERNAL, NULL, "a receipt could not be read from the log"));
  if (id_equal(&event.common.digest, &ticket->command.operation.digest)) return repeat_attempt(engine, ticket, number, &event);
  return record_evidence(engine, ticket, number, EVIDENCE_CONFLICTING_REPORT, kept);
}

enum status attempt_finish(struct engine *engine, struct ticket *ticket) {
  const struct attempt_ref *ref = &ticket->command.as.finish.ref;
  uint32_t number = 0;
  enum status status = take_up(engine, ticket, ref, &number);
  if (status != STATUS_END) return status;
  struct decide_env env = engine_env(engine);
  status = decide_finish(state_task_at(engine->state, number), state_attempt_at(engine->state, number), &ticket->command, &env,
                         &engine->list, &ticket->answer.fault);
  if (status == STATUS_LEASE_LOST) {
    memset(&ticket->answer.fault, 0, sizeof ticket->answer.fault);
    return finish_without_authority(engine, ticket, number);
  }
  if (status != STATUS_OK) return describe_refusal(engine, ticket, number, &ref->attempt_id, status);
  return settle(engine, ticket, number, &ref->attempt_id);
}

/* ---- Orbit's own act ---- */

static void tell_ended(struct engine *engine, struct worker *holder, const struct id *task_id, const struct event *ended) {
  struct push *push = push_new(MAIL_ENDED, holder->session, (struct bytes){NULL, 0});
  push->task_id = *task_id;
  push->attempt_id = ended->body.attempt_ended.attempt_id;
  push->ended_by = ended->body.attempt_ended.ended_by;
  engine_depart(engine, holder->home, &push->mail);
}

/* A waiting task whose time to start has come: it draws no ids, so that they do not tell how it came to stand here. */
static bool is_but_due(const struct task *task, int64_t now_us) {
  return task->state == TASK_WAITING && now_us < task->deadline_at &&
         (task->start_deadline_at == 0 || now_us < task->start_deadline_at);
}

void attempt_expire(struct engine *engine, uint32_t number) {
  const struct task *task = state_task_at(engine->state, number);
  if (is_but_due(task, engine->now_us)) {
    state_timer_settle(engine->state, number, engine->now_us);
    return;
  }
  struct decide_env env = engine_env(engine);
  decide_expire(task, state_attempt_at(engine->state, number), &env, &engine->list);
  if (engine->list.count == 0) {
    state_timer_settle(engine->state, number, engine->now_us);
    return;
  }
  struct worker *holder = worker_of_task(engine, number);
  if (holder != NULL && engine->list.events[0].type == EVENT_attempt_ended)
    tell_ended(engine, holder, &task->id, &engine->list.events[0]);
  engine_append(engine);
  engine->counters.expiries++;
  if (holder != NULL) worker_freed(engine, holder);
}
