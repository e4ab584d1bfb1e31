/* Owns what a worker's report leads to, with authority or without. */
#include "core/decide_parts.h"

static enum status check_report(const struct task *task, const struct report *report, struct fault *fault) {
  if (report->retryable && report->outcome != OUTCOME_FAILED)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/retryable", "only outcome FAILED may be retryable");
  if (task->state != TASK_RUNNING)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the attempt has no start grant: ask for task.start first");
  if (report->outcome == OUTCOME_CANCELLED && task->cancel_requested_at == 0)
    return fault_set(fault, STATUS_STATE_CONFLICT, "/outcome", "CANCELLED is reported but no cancel request is on record");
  return STATUS_OK;
}

static enum fact fact_of_report(const struct report *report) {
  switch (report->outcome) {
    case OUTCOME_SUCCEEDED:
      return FACT_SUCCEEDED;
    case OUTCOME_FAILED:
      return report->retryable ? FACT_FAILED_RETRYABLE : FACT_FAILED;
    case OUTCOME_CANCELLED:
      return FACT_CANCELLED;
    default:
      return FACT_UNKNOWN;
  }
}

enum status decide_finish(const struct task *task, const struct attempt *attempt, const struct command *command,
                          const struct decide_env *env, struct event_list *list, struct fault *fault) {
  const struct attempt_ref *ref = &command->as.finish.ref;
  const struct report *report = &command->as.finish.report;
  enum status status = check_attempt(task, attempt, command, ref, fault);
  if (status == STATUS_OK) status = check_lease(task, attempt, env, fault);
  if (status == STATUS_OK) status = check_report(task, report, fault);
  if (status != STATUS_OK) return status;

  struct act act = act_of_command(command, env, list);
  struct event_attempt_result *result = &act_append(&act, EVENT_attempt_result, &task->id, task->revision)->body.attempt_result;
  result->attempt_id = attempt->id;
  result->epoch = task->epoch;
  result->message_id = ref->message_id;
  result->outcome = report->outcome;
  result->retryable = report->retryable;
  result->error_code = report->error_code;
  result->error_message = report->error_message;
  result->error_details = report->error_details;
  result->result = report->result;
  result->lease_until = attempt->live_until;
  result->report_identity = report->identity;
  (void)act_conclude(&act, task, attempt, fact_of_report(report));
  return STATUS_OK;
}

enum status decide_evidence(const struct task *task, const struct command *command, enum evidence_reason reason, uint32_t kept,
                            const struct decide_env *env, struct event_list *list, struct fault *fault) {
  const struct attempt_ref *ref = &command->as.finish.ref;
  if (kept >= attempt_evidence_max)
    return fault_set(fault, STATUS_STATE_CONFLICT, "/attempt_id",
                     "%d reports without authority are kept of the attempt, and no more", attempt_evidence_max);
  const struct report *report = &command->as.finish.report;
  struct act act = act_of_command(command, env, list);
  struct event_evidence_recorded *evidence =
      &act_append(&act, EVENT_evidence_recorded, &task->id, task->revision)->body.evidence_recorded;
  evidence->evidence_id = env->new_id;
  evidence->attempt_id = ref->attempt_id;
  evidence->epoch = ref->epoch;
  evidence->message_id = ref->message_id;
  evidence->reason = reason;
  evidence->outcome = report->outcome;
  evidence->retryable = report->retryable;
  evidence->error_code = report->error_code;
  evidence->error_message = report->error_message;
  evidence->error_details = report->error_details;
  evidence->result = report->result;
  return STATUS_OK;
}
