/* Owns the judgement whether an event fits a task. Written apart from deciding: it knows what may stand in a log, not why.
 * The checks of decisions are in can_apply_decision.c. */
#include "core/apply.h"
#include "core/can_apply_parts.h"
#include "core/transition.h"

/* Each check gives NULL, or what does not fit. */
#define REQUIRE(condition, reason) \
  if (!(condition)) return (reason)

static bool is_set(const struct id *id) { return !id_is_zero(id); }

static const char *check_accepted_texts(const struct event_task_accepted *body) {
  REQUIRE(is_set(&body->namespace_id) && is_set(&body->application_id) && is_set(&body->queue_id), "an owner is missing");
  REQUIRE(body->handler.size != 0 && body->handler_version.size != 0 && body->payload_version.size != 0,
          "handler or a version is missing");
  REQUIRE(body->payload.size != 0 && body->payload.size <= document_bytes_max, "payload is missing or too large");
  return NULL;
}

static const char *check_accepted(const struct task *task, const struct attempt *attempt, const struct event *event) {
  (void)task, (void)attempt;
  const struct event_task_accepted *body = &event->body.task_accepted;
  const char *misfit = check_accepted_texts(body);
  REQUIRE(misfit == NULL, misfit);
  REQUIRE(body->recovery_safety > RECOVERY_NONE && body->recovery_safety < RECOVERY_ENUM_END, "recovery_safety is unknown");
  REQUIRE(body->max_attempts >= 1 && body->max_attempts <= attempts_max, "max_attempts is out of bounds");
  REQUIRE(body->max_delay_ms <= delay_ms_max && body->initial_delay_ms <= body->max_delay_ms, "the delays are out of bounds");
  REQUIRE(body->attempt_timeout_ms >= 1 && body->attempt_timeout_ms <= task_timeout_ms_max,
          "attempt_timeout_ms is out of bounds");
  REQUIRE(body->priority <= priority_max, "priority is out of bounds");
  REQUIRE(body->deadline_at > event->time_us && body->deadline_at <= time_after_ms(event->time_us, task_timeout_ms_max),
          "deadline_at is out of bounds");
  REQUIRE(body->available_at >= event->time_us - available_past_us_max && body->available_at < body->deadline_at,
          "available_at is out of bounds");
  REQUIRE(body->start_deadline_at == 0 ||
              (body->start_deadline_at > event->time_us && body->start_deadline_at >= body->available_at &&
               body->start_deadline_at <= body->deadline_at),
          "start_deadline_at is out of bounds");
  REQUIRE(!id_equal(&body->retry_of, &event->stream), "a task cannot retry itself");
  return NULL;
}

static const char *check_leased(const struct task *task, const struct attempt *attempt, const struct event *event) {
  (void)attempt;
  const struct event_task_leased *body = &event->body.task_leased;
  REQUIRE(is_set(&body->attempt_id) && is_set(&body->instance_id) && is_set(&body->worker_application_id),
          "the attempt or its worker has no id");
  REQUIRE(body->number == task->attempt_count + UINT64_C(1), "the attempt's number does not follow");
  REQUIRE(body->number <= task->max_attempts, "the attempt is over the budget");
  REQUIRE(body->epoch == task->epoch + UINT64_C(1), "the epoch does not follow");
  REQUIRE(task->cancel_requested_at == 0, "a cancel request is on record");
  REQUIRE(event->time_us >= task->available_at, "leased before available_at");
  REQUIRE(body->lease_ms >= 1 && body->lease_ms <= lease_ms_max, "lease_ms is out of bounds");
  REQUIRE(body->lease_until > event->time_us && body->lease_until <= time_after_ms(event->time_us, body->lease_ms),
          "lease_until is out of bounds");
  REQUIRE(body->lease_until <= task->deadline_at, "the lease reaches past deadline_at");
  REQUIRE(task->start_deadline_at == 0 || body->lease_until <= task->start_deadline_at,
          "the lease reaches past start_deadline_at");
  return NULL;
}

/* What started, result and ended have in common: they speak of the current attempt and of a lease that only grew. */
static const char *check_current(const struct task *task, const struct attempt *attempt, const struct id *attempt_id,
                                 uint64_t epoch, int64_t lease_until) {
  REQUIRE(is_set(attempt_id) && id_equal(attempt_id, &attempt->id), "the attempt is not the current one");
  REQUIRE(epoch == task->epoch, "the epoch is not the current one");
  REQUIRE(lease_until >= attempt->lease_until, "the lease has become shorter");
  REQUIRE(lease_until <= task->deadline_at, "the lease reaches past deadline_at");
  REQUIRE(task->state != TASK_RUNNING || lease_until <= attempt->attempt_deadline_at,
          "the lease reaches past the attempt's timeout");
  return NULL;
}

static const char *check_started(const struct task *task, const struct attempt *attempt, const struct event *event) {
  const struct event_task_started *body = &event->body.task_started;
  const char *misfit = check_current(task, attempt, &body->attempt_id, body->epoch, body->lease_until);
  REQUIRE(misfit == NULL, misfit);
  REQUIRE(task->cancel_requested_at == 0, "a start grant after a cancel request");
  REQUIRE(event->time_us < body->lease_until, "a start grant after the lease");
  REQUIRE(task->start_deadline_at == 0 || event->time_us < task->start_deadline_at, "a start grant after start_deadline_at");
  REQUIRE(body->attempt_deadline_at > event->time_us && body->attempt_deadline_at <= task->deadline_at &&
              body->attempt_deadline_at <= time_after_ms(event->time_us, task->attempt_timeout_ms),
          "attempt_deadline_at is out of bounds");
  return NULL;
}

static const char *check_result(const struct task *task, const struct attempt *attempt, const struct event *event) {
  const struct event_attempt_result *body = &event->body.attempt_result;
  const char *misfit = check_current(task, attempt, &body->attempt_id, body->epoch, body->lease_until);
  REQUIRE(misfit == NULL, misfit);
  REQUIRE(event->time_us < body->lease_until, "a report after the lease");
  REQUIRE(body->outcome > OUTCOME_NONE && body->outcome < OUTCOME_ENUM_END, "the outcome is unknown");
  REQUIRE(!body->retryable || body->outcome == OUTCOME_FAILED, "only a failure may be retryable");
  REQUIRE(body->outcome != OUTCOME_CANCELLED || task->cancel_requested_at != 0, "CANCELLED without a cancel request");
  REQUIRE(body->outcome == OUTCOME_SUCCEEDED ? body->error_code.size == 0 : body->result.size == 0,
          "an error with a success, or a result without one");
  return NULL;
}

static const char *check_ended_by(const struct task *task, const struct attempt *attempt, const struct event *event) {
  const struct event_attempt_ended *body = &event->body.attempt_ended;
  bool running = task->state == TASK_RUNNING;
  switch (body->ended_by) {
    case ENDED_LEASE_EXPIRED:
      REQUIRE(body->state == (running ? ATTEMPT_UNKNOWN : ATTEMPT_EXPIRED), "the attempt's state does not fit its end");
      REQUIRE(event->time_us >= body->lease_until, "the lease is not over");
      return NULL;
    case ENDED_ATTEMPT_TIMEOUT:
      REQUIRE(running && body->state == ATTEMPT_UNKNOWN, "the attempt's state does not fit its end");
      REQUIRE(event->time_us >= attempt->attempt_deadline_at, "the attempt's timeout has not come");
      return NULL;
    case ENDED_DEADLINE:
      REQUIRE(running && body->state == ATTEMPT_UNKNOWN, "the attempt's state does not fit its end");
      REQUIRE(event->time_us >= task->deadline_at, "deadline_at has not come");
      return NULL;
    case ENDED_RELEASED:
      REQUIRE(!running && body->state == ATTEMPT_EXPIRED, "the attempt's state does not fit its end");
      REQUIRE(event->time_us < body->lease_until, "released after the lease");
      return NULL;
    case ENDED_REVOKED:
      REQUIRE(!running && body->state == ATTEMPT_REVOKED, "the attempt's state does not fit its end");
      REQUIRE(task->cancel_requested_at != 0, "revoked without a cancel request");
      return NULL;
    default:
      return "ended_by is unknown";
  }
}

static const char *check_ended(const struct task *task, const struct attempt *attempt, const struct event *event) {
  const struct event_attempt_ended *body = &event->body.attempt_ended;
  const char *misfit = check_current(task, attempt, &body->attempt_id, body->epoch, body->lease_until);
  return misfit != NULL ? misfit : check_ended_by(task, attempt, event);
}

static const char *check_cancel_requested(const struct task *task, const struct attempt *attempt, const struct event *event) {
  (void)attempt;
  const struct event_task_cancel_requested *body = &event->body.task_cancel_requested;
  REQUIRE(body->reason.size != 0 && is_set(&body->audit_id), "reason or audit_id is missing");
  REQUIRE(body->applied == (task->cancel_requested_at == 0), "applied does not tell whether a cancel request is on record");
  return NULL;
}

static const char *check_reviewed(const struct task *task, const struct attempt *attempt, const struct event *event) {
  (void)attempt;
  const struct event_task_reviewed *body = &event->body.task_reviewed;
  REQUIRE(is_set(&body->audit_id) && body->result.size != 0, "result or audit_id is missing");
  REQUIRE(body->execution_settled, "the executions are not settled");
  REQUIRE(transition_allows((enum task_state)task->state, event->type, body->state), "a review does not lead to this state");
  REQUIRE((body->outcome == OUTCOME_SUCCEEDED && body->state == TASK_SUCCEEDED) ||
              (body->outcome == OUTCOME_FAILED && body->state == TASK_FAILED),
          "the outcome does not fit the state");
  return NULL;
}

static const char *check_retried(const struct task *task, const struct attempt *attempt, const struct event *event) {
  (void)attempt;
  const struct event_task_retried *body = &event->body.task_retried;
  REQUIRE(!task->retried, "it has a direct successor already");
  REQUIRE(!task->effect_uncertain, "an execution is not accounted for");
  REQUIRE(!task->scheduled, "a task of a schedule is not retried by hand");
  REQUIRE(is_set(&body->retry_task_id) && is_set(&body->audit_id), "the successor or audit_id is missing");
  REQUIRE(!id_equal(&body->retry_task_id, &task->id), "a task cannot retry itself");
  return NULL;
}

static const char *check_evidence(const struct task *task, const struct attempt *attempt, const struct event *event) {
  (void)task, (void)attempt;
  const struct event_evidence_recorded *body = &event->body.evidence_recorded;
  REQUIRE(is_set(&body->evidence_id) && is_set(&body->attempt_id), "evidence or attempt has no id");
  REQUIRE(body->reason > EVIDENCE_NONE && body->reason < EVIDENCE_ENUM_END, "the reason is unknown");
  REQUIRE(body->outcome > OUTCOME_NONE && body->outcome < OUTCOME_ENUM_END, "the outcome is unknown");
  REQUIRE(!body->retryable || body->outcome == OUTCOME_FAILED, "only a failure may be retryable");
  return NULL;
}

static const char *check_audit(const struct task *task, const struct attempt *attempt, const struct event *event) {
  (void)attempt;
  const struct event_audit_recorded *body = &event->body.audit_recorded;
  REQUIRE(id_equal(&body->target_id, &task->id), "the audit record's target is another object");
  REQUIRE(body->action.size != 0, "the audit record has no action");
  REQUIRE(audit_id_seq(&body->audit_id) == event->seq, "audit_id does not name its event");
  return NULL;
}

/* A decision, and nothing else, follows the end of an attempt; and a cancel request that ends a waiting or leased task. */
static const char *check_order(const struct task *task, const struct event *event) {
  struct decision_record record;
  bool is_decision = decision_of_event(event, &record);
  if (task->ended_as != ATTEMPT_NONE) return is_decision ? NULL : "the attempt has ended: a decision must follow";
  REQUIRE(!is_decision || task->state == TASK_WAITING, "a decision, but the attempt has not ended");
  if (task->cancel_requested_at == 0) return NULL;
  if (task->state == TASK_WAITING) return is_decision ? NULL : "the task is cancelled: a decision must follow";
  if (task->state == TASK_LEASED)
    return event->type == EVENT_attempt_ended ? NULL : "the task is cancelled: the attempt must be revoked";
  return NULL;
}

static const char *check_header(const struct task *task, const struct event *event, const struct transition *transition) {
  bool is_new = task->state == TASK_NONE;
  bool repeated_cancel = event->type == EVENT_task_cancel_requested && task->cancel_requested_at != 0;
  bool raises = transition->raises_revision && !repeated_cancel;
  REQUIRE(is_new ? is_set(&event->stream) : id_equal(&event->stream, &task->id), "the event belongs to another object");
  REQUIRE(event->seq > task->last_seq, "seq does not rise");
  REQUIRE(event->prev == task->last_seq, "prev does not name the task's last event");
  REQUIRE(event->time_us >= task->updated_at, "time goes back");
  REQUIRE(event->common.revision == task->revision + (raises ? UINT64_C(1) : 0), "the revision does not follow");
  REQUIRE(event->common.revision <= UINT32_MAX, "the revision is out of bounds");
  return NULL;
}

/* A decision speaks of an attempt that has ended. */
static const char *check_concluded(const struct task *task, const struct attempt *attempt, const struct event *event) {
  (void)attempt;
  return check_decision(task, event);
}

typedef const char *check_function(const struct task *task, const struct attempt *attempt, const struct event *event);

static check_function *const checks[EVENT_type_end] = {
    [EVENT_task_accepted] = check_accepted,
    [EVENT_task_leased] = check_leased,
    [EVENT_task_started] = check_started,
    [EVENT_attempt_result] = check_result,
    [EVENT_attempt_ended] = check_ended,
    [EVENT_task_requeued] = check_concluded,
    [EVENT_task_succeeded] = check_concluded,
    [EVENT_task_failed] = check_concluded,
    [EVENT_task_review_required] = check_concluded,
    [EVENT_task_cancelled] = check_concluded,
    [EVENT_task_cancel_requested] = check_cancel_requested,
    [EVENT_task_reviewed] = check_reviewed,
    [EVENT_task_retried] = check_retried,
    [EVENT_evidence_recorded] = check_evidence,
    [EVENT_audit_recorded] = check_audit,
};

static const char *find_misfit(const struct task *task, const struct attempt *attempt, const struct event *event) {
  const struct transition *transition = transition_find((enum task_state)task->state, event->type);
  REQUIRE(transition != NULL, "this event does not follow in this state");
  const char *misfit = check_header(task, event, transition);
  if (misfit == NULL) misfit = check_order(task, event);
  if (misfit == NULL) misfit = checks[event->type](task, attempt, event);
  return misfit;
}

bool can_apply_task(const struct task *task, const struct attempt *attempt, const struct event *event,
                    const char **ret_reason) {
  const char *misfit = find_misfit(task, attempt, event);
  if (misfit == NULL) return true;
  *ret_reason = misfit;
  return false;
}
