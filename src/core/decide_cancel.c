/* Owns the cancel request: schema/semantics.md "Cancel". */
#include <inttypes.h>

#include "core/decide_parts.h"

static const char *bool_text(bool value) { return value ? "true" : "false"; }

enum status decide_cancel(const struct task *task, const struct attempt *attempt, const struct command *command, uint32_t kept,
                          const struct decide_env *env, struct event_list *list, struct fault *fault) {
  const struct cancel_command *cancel = &command->as.cancel;
  enum task_state state = (enum task_state)task->state;
  if (task_state_is_terminal(state))
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the task has ended: it is %s", task_state_text(state));
  enum status status = check_revision(task, cancel->expected_revision, fault);
  if (status != STATUS_OK) return status;
  if (kept >= cancel_requests_max)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "%d cancel requests are kept of the task, and no more",
                     cancel_requests_max);

  struct act act = act_of_command(command, env, list);
  bool applied = task->cancel_requested_at == 0;
  bool ends = state == TASK_WAITING || state == TASK_LEASED;
  uint64_t revision = task->revision + (applied ? UINT64_C(1) : 0); /* in the end */
  uint32_t between = state == TASK_WAITING ? 1 : state == TASK_LEASED ? 2 : 0;
  struct id audit_id = act_audit_id(&act, between + 1);
  struct event_task_cancel_requested *requested =
      &act_append(&act, EVENT_task_cancel_requested, &task->id, ends ? task->revision : revision)->body.task_cancel_requested;
  requested->reason = cancel->reason;
  requested->audit_id = audit_id;
  requested->applied = applied;
  if (state == TASK_LEASED) act_end_attempt(&act, task, attempt, ATTEMPT_REVOKED, ENDED_REVOKED);
  if (ends) {
    struct decision_record record;
    if (decision_of_event(act_conclude(&act, task, attempt, FACT_CANCEL), &record)) state = record.state;
  }
  struct bytes before = act_state_text(&act, (enum task_state)task->state, task->revision);
  struct bytes after = event_list_text(list, "{\"state\":\"%s\",\"revision\":\"%" PRIu64 "\",\"applied\":%s}",
                                       task_state_text(state), revision, bool_text(applied));
  act_audit(&act, task, revision, &audit_id,
            &(struct audit){.action = command_kind_text(COMMAND_CANCEL),
                            .namespace_id = command->who.namespace_id,
                            .reason = cancel->reason,
                            .before = before,
                            .after = after});
  return STATUS_OK;
}
