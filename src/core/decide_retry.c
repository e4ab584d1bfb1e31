/* Owns the retry by hand: schema/semantics.md "Manual retry". */
#include <inttypes.h>

#include "core/decide_parts.h"

static enum status check_source(const struct task *task, const struct retry_command *retry, struct fault *fault) {
  if (task->state != TASK_FAILED && task->state != TASK_CANCELLED)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "only a FAILED or CANCELLED task can be retried by hand: it is %s%s",
                     task_state_text((enum task_state)task->state),
                     task->state == TASK_NEEDS_REVIEW ? " and must be reviewed first" : "");
  if (task->effect_uncertain)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "an execution of the task is not accounted for: review it first");
  if (task->scheduled)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the task belongs to a schedule and cannot be retried by hand");
  if (task->retried)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL,
                     "the task has been retried by hand before: go on from the task that was made then");
  return check_revision(task, retry->expected_revision, fault);
}

static enum status check_budget(const struct retry_command *retry, const struct event_task_accepted *accepted,
                                struct fault *fault) {
  if (retry->task_timeout_ms >= accepted->attempt_timeout_ms) return STATUS_OK;
  return fault_set(fault, STATUS_INVALID_ARGUMENT, "/task_timeout_ms",
                   "task_timeout_ms must cover the task's attempt_timeout_ms, which is %" PRIu64, accepted->attempt_timeout_ms);
}

/* Everything that was asked for stays as it was; the times are new. */
static void append_child(struct act *act, const struct task *task, const struct event_task_accepted *accepted,
                         const struct task_times *times, const struct id *audit_id) {
  struct event_task_accepted *child = &act_append(act, EVENT_task_accepted, &act->env->new_id, 1)->body.task_accepted;
  *child = *accepted;
  child->available_at = times->available_at;
  child->start_deadline_at = times->start_deadline_at;
  child->deadline_at = times->deadline_at;
  child->retry_of = task->id;
  child->schedule_id = (struct id){{0}};
  child->audit_id = *audit_id;
}

enum status decide_retry(const struct task *task, const struct event_task_accepted *accepted, const struct queue *queue,
                         const struct application *application, const struct command *command, const struct decide_env *env,
                         struct event_list *list, struct fault *fault) {
  const struct retry_command *retry = &command->as.retry;
  struct task_times times;
  enum status status = check_source(task, retry, fault);
  if (status == STATUS_OK) status = check_budget(retry, accepted, fault);
  if (status == STATUS_OK)
    status = check_times(retry->task_timeout_ms, retry->available_at, retry->start_deadline_at, env->now_us, &times, fault);
  if (status == STATUS_OK) status = check_quota(queue, application, fault);
  if (status != STATUS_OK) return status;

  struct act act = act_of_command(command, env, list);
  struct id audit_id = act_audit_id(&act, 1);
  struct event_task_retried *retried = &act_append(&act, EVENT_task_retried, &task->id, task->revision)->body.task_retried;
  retried->retry_task_id = env->new_id;
  retried->audit_id = audit_id;
  struct bytes before = act_state_text(&act, (enum task_state)task->state, task->revision);
  struct bytes after = event_list_text(
      list, "{\"source_task_id\":\"%s\",\"retry_task_id\":\"%s\",\"safe_to_retry\":true,\"task_timeout_ms\":%" PRIu64 "}",
      id_text(&task->id).text, id_text(&env->new_id).text, retry->task_timeout_ms);
  act_audit(&act, task, task->revision, &audit_id,
            &(struct audit){.action = command_kind_text(COMMAND_RETRY),
                            .namespace_id = accepted->namespace_id,
                            .reason = retry->reason,
                            .evidence_ref = retry->evidence_ref,
                            .before = before,
                            .after = after});
  append_child(&act, task, accepted, &times, &audit_id);
  return STATUS_OK;
}
