/* Owns the start grant and the renewal of a lease. */
#include "core/decide_parts.h"

enum status decide_start(const struct task *task, const struct attempt *attempt, const struct command *command,
                         const struct decide_env *env, struct event_list *list, struct fault *fault) {
  const struct attempt_ref *ref = &command->as.ref;
  enum status status = check_attempt(task, attempt, command, ref, fault);
  if (status != STATUS_OK) return status;
  if (env->now_us >= task->deadline_at) return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "deadline_at has come");
  if (task->state == TASK_LEASED && task->start_deadline_at != 0 && env->now_us >= task->start_deadline_at)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "start_deadline_at has come");
  status = check_lease(task, attempt, env, fault);
  if (status != STATUS_OK) return status;
  if (task->state == TASK_RUNNING)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the attempt is already started, under another message_id");
  if (task->cancel_requested_at != 0) return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "a cancel request is on record");

  struct act act = act_of_command(command, env, list);
  struct event_task_started *started =
      &act_append(&act, EVENT_task_started, &task->id, task->revision + UINT64_C(1))->body.task_started;
  started->attempt_id = attempt->id;
  started->epoch = task->epoch;
  started->attempt_deadline_at = time_earlier(time_after_ms(env->now_us, task->attempt_timeout_ms), task->deadline_at);
  started->lease_until = attempt->live_until;
  return STATUS_OK;
}

enum status decide_renew(const struct task *task, const struct attempt *attempt, const struct command *command,
                         const struct decide_env *env, int64_t *ret_until, struct fault *fault) {
  enum status status = check_attempt(task, attempt, command, &command->as.ref, fault);
  if (status == STATUS_OK) status = check_lease(task, attempt, env, fault);
  if (status != STATUS_OK) return status;

  int64_t until = time_earlier(time_after_ms(env->now_us, attempt->lease_ms), task->deadline_at);
  if (task->state == TASK_RUNNING) until = time_earlier(until, attempt->attempt_deadline_at);
  else if (task->start_deadline_at != 0) until = time_earlier(until, task->start_deadline_at);
  *ret_until = until > attempt->live_until ? until : attempt->live_until;
  return STATUS_OK;
}
