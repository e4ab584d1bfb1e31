/* Owns what the decide files share: appending events, concluding, and the checks that several commands make. */
#include "core/decide_parts.h"

#include <inttypes.h>

#include "base/guard.h"
#include "base/time_text.h"

struct act act_of_command(const struct command *command, const struct decide_env *env, struct event_list *list) {
  bool has_identity = !id_is_zero(&command->operation.identity);
  return (struct act){
      .list = list, .env = env, .actor = command->who.credential_id, .operation = has_identity ? &command->operation : NULL};
}

struct act act_of_node(const struct decide_env *env, struct event_list *list) {
  return (struct act){.list = list, .env = env, .actor = env->node_id};
}

struct event *act_append(struct act *act, enum event_type type, const struct id *stream, uint64_t revision) {
  struct event *event = event_list_add(act->list, type, stream, &act->env->operation_id, &act->actor);
  event->time_us = act->env->now_us;
  event->common.revision = revision;
  if (act->operation != NULL && !act->identified) {
    event->common.identity = act->operation->identity;
    event->common.digest = act->operation->digest;
  }
  act->identified = true;
  return event;
}

void act_end_attempt(struct act *act, const struct task *task, const struct attempt *attempt, enum attempt_state state,
                     enum ended_by ended_by) {
  struct event_attempt_ended *ended = &act_append(act, EVENT_attempt_ended, &task->id, task->revision)->body.attempt_ended;
  ended->attempt_id = attempt->id;
  ended->epoch = task->epoch;
  ended->state = state;
  ended->ended_by = ended_by;
  ended->lease_until = attempt->live_until;
}

/* The fields that all five decision events have. */
#define FILL(body)                                     \
  do {                                                 \
    (body).state = result.state;                       \
    (body).decision = result.decision;                 \
    (body).attempt_count = task->attempt_count;        \
    (body).max_attempts = task->max_attempts;          \
    (body).effect_uncertain = result.effect_uncertain; \
    (body).node_id = act->env->node_id;                \
  } while (0)
/* A delay that was drawn and fitted, or did not fit; both are 0 where none was drawn. */
#define FILL_DELAY(body)                                 \
  do {                                                   \
    (body).delay_ms = result.delay_ms;                   \
    (body).next_available_at = result.next_available_at; \
  } while (0)

static struct decision_result decide_fact(const struct act *act, const struct task *task, const struct attempt *attempt,
                                          enum fact fact) {
  struct decision_input input = {.fact = fact,
                                 .recovery_safety = (enum recovery_safety)task->recovery_safety,
                                 .effect_uncertain = task->effect_uncertain,
                                 .cancel_requested = task->cancel_requested_at != 0,
                                 .attempt_count = task->attempt_count,
                                 .max_attempts = task->max_attempts,
                                 .initial_delay_ms = task->initial_delay_ms,
                                 .max_delay_ms = task->max_delay_ms,
                                 .attempt_id = attempt->id,
                                 .deadline_at = task->deadline_at,
                                 .start_deadline_at = task->start_deadline_at,
                                 .now_us = act->env->now_us};
  return decision_make(&input);
}

struct event *act_conclude(struct act *act, const struct task *task, const struct attempt *attempt, enum fact fact) {
  static const enum event_type types[TASK_ENUM_END] = {
      [TASK_WAITING] = EVENT_task_requeued,    [TASK_SUCCEEDED] = EVENT_task_succeeded,
      [TASK_FAILED] = EVENT_task_failed,       [TASK_NEEDS_REVIEW] = EVENT_task_review_required,
      [TASK_CANCELLED] = EVENT_task_cancelled,
  };
  struct decision_result result = decide_fact(act, task, attempt, fact);
  struct event *event = act_append(act, types[result.state], &task->id, task->revision + UINT64_C(1));
  switch (event->type) {
    case EVENT_task_requeued:
      FILL(event->body.task_requeued);
      FILL_DELAY(event->body.task_requeued);
      break;
    case EVENT_task_succeeded:
      FILL(event->body.task_succeeded);
      break;
    case EVENT_task_failed:
      FILL(event->body.task_failed);
      FILL_DELAY(event->body.task_failed);
      break;
    case EVENT_task_review_required:
      FILL(event->body.task_review_required);
      FILL_DELAY(event->body.task_review_required);
      break;
    case EVENT_task_cancelled:
      FILL(event->body.task_cancelled);
      break;
    default:
      must(false);
  }
  return event;
}

struct id act_audit_id(const struct act *act, uint32_t ahead) {
  return audit_id_make(act->env->now_us, act->env->next_seq + act->list->count + ahead);
}

struct bytes act_state_text(struct act *act, enum task_state state, uint64_t revision) {
  return event_list_text(act->list, "{\"state\":\"%s\",\"revision\":\"%" PRIu64 "\"}", task_state_text(state), revision);
}

void act_audit(struct act *act, const struct task *task, uint64_t revision, const struct id *audit_id,
               const struct audit *audit) {
  struct id own = act_audit_id(act, 0);
  must(id_equal(&own, audit_id));
  struct event_audit_recorded *record = &act_append(act, EVENT_audit_recorded, &task->id, revision)->body.audit_recorded;
  record->audit_id = own;
  record->action = bytes_text(audit->action);
  record->target_id = task->id;
  record->namespace_id = audit->namespace_id;
  record->reason = audit->reason;
  record->evidence_ref = audit->evidence_ref;
  record->before = audit->before;
  record->after = audit->after;
}

enum status check_attempt(const struct task *task, const struct attempt *attempt, const struct command *command,
                          const struct attempt_ref *ref, struct fault *fault) {
  if (task_state_is_terminal((enum task_state)task->state))
    return fault_set(fault, STATUS_LEASE_LOST, NULL, "the task has ended: it is %s",
                     task_state_text((enum task_state)task->state));
  if (!task_state_holds_lease((enum task_state)task->state) || !id_equal(&ref->attempt_id, &attempt->id))
    return fault_set(fault, STATUS_LEASE_LOST, "/attempt_id", "attempt %s does not hold the task: it is %s, epoch %" PRIu16,
                     id_text(&ref->attempt_id).text, task_state_text((enum task_state)task->state), task->epoch);
  if (!id_equal(&command->who.application_id, &attempt->application_id))
    return fault_set(fault, STATUS_NOT_FOUND, NULL, "no such attempt");
  if (ref->epoch != task->epoch)
    return fault_set(fault, STATUS_LEASE_LOST, "/epoch", "epoch %" PRIu64 " is not the attempt's: that is %" PRIu16, ref->epoch,
                     task->epoch);
  return STATUS_OK;
}

enum status check_lease(const struct task *task, const struct attempt *attempt, const struct decide_env *env,
                        struct fault *fault) {
  if (task_lease_is_live(task, attempt, env->now_us)) return STATUS_OK;
  return fault_set(fault, STATUS_LEASE_LOST, NULL, "the attempt's lease is over");
}

enum status check_times(uint64_t task_timeout_ms, int64_t available_at, int64_t start_deadline_at, int64_t now_us,
                        struct task_times *ret_times, struct fault *fault) {
  struct task_times times = {.available_at = available_at != 0 ? available_at : now_us,
                             .start_deadline_at = start_deadline_at,
                             .deadline_at = time_after_ms(now_us, task_timeout_ms)};
  if (task_timeout_ms < 1 || task_timeout_ms > task_timeout_ms_max || times.deadline_at >= time_us_max)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/task_timeout_ms", "task_timeout_ms must be 1 to %" PRIu64,
                     task_timeout_ms_max);
  if (times.available_at < now_us - available_past_us_max)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/available_at", "available_at is more than a second in the past");
  if (times.available_at >= times.deadline_at)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/available_at",
                     "available_at must be before the deadline, which is task_timeout_ms from now");
  if (start_deadline_at != 0 && start_deadline_at <= now_us)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/start_deadline_at", "start_deadline_at must be in the future");
  if (start_deadline_at != 0 && start_deadline_at < times.available_at)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/start_deadline_at", "start_deadline_at is before available_at");
  if (start_deadline_at > times.deadline_at)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/start_deadline_at",
                     "start_deadline_at is after the deadline, which is task_timeout_ms from now");
  *ret_times = times;
  return STATUS_OK;
}

static enum status refuse_full(struct fault *fault, enum status status, const char *owner, uint64_t limit) {
  (void)fault_set(fault, status, NULL, "the %s holds %" PRIu64 " unfinished tasks, as many as it may", owner, limit);
  if (fault != NULL) fault->retry_after_ms = quota_full_retry_ms;
  return status;
}

enum status check_quota(const struct queue *queue, const struct application *application, struct fault *fault) {
  uint64_t unfinished =
      queue->counts[TASK_WAITING] + queue->counts[TASK_LEASED] + queue->counts[TASK_RUNNING] + queue->counts[TASK_NEEDS_REVIEW];
  if (queue->max_unfinished != 0 && unfinished >= queue->max_unfinished)
    return refuse_full(fault, STATUS_QUEUE_FULL, "queue", queue->max_unfinished);
  if (application->max_unfinished != 0 && application->unfinished >= application->max_unfinished)
    return refuse_full(fault, STATUS_APPLICATION_FULL, "application", application->max_unfinished);
  return STATUS_OK;
}

enum status check_revision(const struct task *task, uint64_t expected_revision, struct fault *fault) {
  if (expected_revision == 0 || expected_revision == task->revision) return STATUS_OK;
  return fault_set(fault, STATUS_STATE_CONFLICT, "/expected_revision",
                   "expected_revision is %" PRIu64 ", the task is %s with revision %" PRIu32, expected_revision,
                   task_state_text((enum task_state)task->state), task->revision);
}

void act_audit_object(struct act *act, const struct command *command, const struct id *target, uint64_t revision,
                      const struct id *namespace_id, struct bytes reason) {
  struct id audit_id = act_audit_id(act, 0);
  struct event_audit_recorded *record = &act_append(act, EVENT_audit_recorded, target, revision)->body.audit_recorded;
  record->audit_id = audit_id;
  record->action = bytes_text(command_kind_text(command->kind));
  record->target_id = *target;
  record->namespace_id = *namespace_id;
  record->reason = reason;
  if (revision > 1) record->before = event_list_text(act->list, "{\"revision\":\"%" PRIu64 "\"}", revision - 1);
  record->after = event_list_text(act->list, "{\"revision\":\"%" PRIu64 "\"}", revision);
}
