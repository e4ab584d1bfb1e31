/* Owns the folding of events into tasks: one function an event. */
#include "core/apply.h"

#include <assert.h>

#include "base/guard.h"
#include "core/decision.h"
#include "core/transition.h"

static void apply_accepted(struct task *task, struct attempt *attempt, const struct event *event) {
  (void)attempt;
  const struct event_task_accepted *body = &event->body.task_accepted;
  uint32_t queue = task->queue, application = task->application, handler = task->handler;
  *task = (struct task){
      .id = event->stream,
      .accepted_seq = event->seq,
      .created_at = event->time_us,
      .available_at = body->available_at,
      .start_deadline_at = body->start_deadline_at,
      .deadline_at = body->deadline_at,
      .queue = queue,
      .application = application,
      .handler = handler,
      .initial_delay_ms = (uint32_t)body->initial_delay_ms,
      .max_delay_ms = (uint32_t)body->max_delay_ms,
      .attempt_timeout_ms = (uint32_t)body->attempt_timeout_ms,
      .payload_bytes = (uint32_t)body->payload.size,
      .max_attempts = (uint16_t)body->max_attempts,
      .state = TASK_WAITING,
      .recovery_safety = (uint8_t)body->recovery_safety,
      .priority = (uint8_t)body->priority,
      .scheduled = !id_is_zero(&body->schedule_id),
      .is_retry = !id_is_zero(&body->retry_of),
  };
}

static_assert(attempts_max <= UINT16_MAX, "there is an epoch for each attempt");

static void apply_leased(struct task *task, struct attempt *attempt, const struct event *event) {
  const struct event_task_leased *body = &event->body.task_leased;
  task->state = TASK_LEASED;
  task->epoch = (uint16_t)body->epoch;
  task->attempt_count = (uint16_t)body->number;
  *attempt = (struct attempt){.id = body->attempt_id,
                              .instance_id = body->instance_id,
                              .application_id = body->worker_application_id,
                              .leased_at = event->time_us,
                              .lease_until = body->lease_until,
                              .live_until = body->lease_until,
                              .lease_ms = (uint32_t)body->lease_ms};
}

/* The lease as it was judged becomes the folded one, so that renewals before the start survive in it. */
static void apply_started(struct task *task, struct attempt *attempt, const struct event *event) {
  const struct event_task_started *body = &event->body.task_started;
  task->state = TASK_RUNNING;
  attempt->started_at = event->time_us;
  attempt->attempt_deadline_at = body->attempt_deadline_at;
  attempt->lease_until = time_earlier(body->lease_until, body->attempt_deadline_at);
  attempt->live_until = attempt->lease_until;
}

/* Points at the texts of the report; the decision that follows keeps the one that its state shows. */
static void apply_result(struct task *task, struct attempt *attempt, const struct event *event) {
  static const enum attempt_state states[OUTCOME_ENUM_END] = {
      [OUTCOME_SUCCEEDED] = ATTEMPT_SUCCEEDED,
      [OUTCOME_FAILED] = ATTEMPT_FAILED,
      [OUTCOME_UNKNOWN] = ATTEMPT_UNKNOWN,
      [OUTCOME_CANCELLED] = ATTEMPT_CANCELLED,
  };
  const struct event_attempt_result *body = &event->body.attempt_result;
  *attempt = (struct attempt){.lease_ms = 0};
  task->ended_as = (uint8_t)states[body->outcome];
  task->is_error = body->error_code.size != 0;
  task->outcome_seq = task->is_error || body->result.size != 0 ? event->seq : 0;
}

static void apply_ended(struct task *task, struct attempt *attempt, const struct event *event) {
  *attempt = (struct attempt){.lease_ms = 0};
  task->ended_as = (uint8_t)event->body.attempt_ended.state;
}

static void apply_decision(struct task *task, struct attempt *attempt, const struct event *event) {
  (void)attempt;
  struct decision_record record;
  must(decision_of_event(event, &record));
  task->state = (uint8_t)record.state;
  task->ended_as = ATTEMPT_NONE;
  task->effect_uncertain = record.effect_uncertain;
  if (record.state == TASK_WAITING) task->available_at = record.next_available_at;
  if (record.state == (task->is_error ? TASK_FAILED : TASK_SUCCEEDED)) return;
  task->outcome_seq = 0;
  task->is_error = false;
}

static void apply_cancel_requested(struct task *task, struct attempt *attempt, const struct event *event) {
  (void)attempt;
  if (event->body.task_cancel_requested.applied) task->cancel_requested_at = event->time_us;
}

static void apply_reviewed(struct task *task, struct attempt *attempt, const struct event *event) {
  (void)attempt;
  task->state = (uint8_t)event->body.task_reviewed.state;
  task->effect_uncertain = false;
  task->is_error = false;
  task->outcome_seq = event->seq;
}

static void apply_retried(struct task *task, struct attempt *attempt, const struct event *event) {
  (void)attempt;
  (void)event;
  task->retried = true;
}

/* Kept for people; of the task it changes nothing. */
static void apply_record(struct task *task, struct attempt *attempt, const struct event *event) {
  (void)task, (void)attempt, (void)event;
}

typedef void apply_function(struct task *task, struct attempt *attempt, const struct event *event);

static apply_function *const functions[EVENT_type_end] = {
    [EVENT_task_accepted] = apply_accepted,
    [EVENT_task_leased] = apply_leased,
    [EVENT_task_started] = apply_started,
    [EVENT_attempt_result] = apply_result,
    [EVENT_attempt_ended] = apply_ended,
    [EVENT_task_requeued] = apply_decision,
    [EVENT_task_succeeded] = apply_decision,
    [EVENT_task_failed] = apply_decision,
    [EVENT_task_review_required] = apply_decision,
    [EVENT_task_cancelled] = apply_decision,
    [EVENT_task_cancel_requested] = apply_cancel_requested,
    [EVENT_task_reviewed] = apply_reviewed,
    [EVENT_task_retried] = apply_retried,
    [EVENT_evidence_recorded] = apply_record,
    [EVENT_audit_recorded] = apply_record,
};

void apply_task(struct task *task, struct attempt *attempt, const struct event *event) {
  const char *misfit = NULL;
  bool fits = can_apply_task(task, attempt, event, &misfit);
  must(fits);
  apply_task_judged(task, attempt, event);
}

void apply_task_judged(struct task *task, struct attempt *attempt, const struct event *event) {
  must(event->prev == task->last_seq && functions[event->type] != NULL);
  functions[event->type](task, attempt, event);
  task->last_seq = event->seq;
  if (event->common.revision != task->revision) {
    task->revision = (uint32_t)event->common.revision;
    task->updated_at = event->time_us;
  }
  must(task_state_holds_lease((enum task_state)task->state) == !id_is_zero(&attempt->id) || task->ended_as != ATTEMPT_NONE);
}

void apply_node_started(struct task *task, struct attempt *attempt, const struct event *event) {
  must(event->type == EVENT_node_started);
  if (!task_state_holds_lease((enum task_state)task->state)) return;
  int64_t until = time_earlier(time_after_ms(event->time_us, attempt->lease_ms), task->deadline_at);
  if (task->state == TASK_RUNNING) until = time_earlier(until, attempt->attempt_deadline_at);
  else if (task->start_deadline_at != 0) until = time_earlier(until, task->start_deadline_at);
  if (until > attempt->lease_until) attempt->lease_until = until;
  attempt->live_until = attempt->lease_until;
}
