/* Owns the judgement whether a recorded decision fits the task and the way in which its attempt ended. */
#include <stddef.h>

#include "core/can_apply_parts.h"

#define REQUIRE(condition, reason) \
  if (!(condition)) return (reason)

/* Which decision may follow which end of an attempt, and by which codes. Attempt state NONE: the task was waiting. */
#define CODE(name) (1U << DECISION_##name)
#define DEADLINES (CODE(DEADLINE_EXCEEDED) | CODE(START_DEADLINE_EXCEEDED))
#define OBSTACLES (CODE(ATTEMPT_LIMIT) | DEADLINES | CODE(CANCEL_REQUESTED))

struct conclusion {
  enum attempt_state ended_as;
  enum event_type event;
  unsigned codes;
};

static const struct conclusion conclusions[] = {
    {ATTEMPT_NONE, EVENT_task_failed, DEADLINES},
    {ATTEMPT_NONE, EVENT_task_review_required, DEADLINES | CODE(CANCEL_REQUESTED)},
    {ATTEMPT_NONE, EVENT_task_cancelled, CODE(CANCEL_REQUESTED)},
    {ATTEMPT_SUCCEEDED, EVENT_task_succeeded, CODE(SUCCEEDED)},
    {ATTEMPT_FAILED, EVENT_task_requeued, CODE(RETRYABLE_FAILURE)},
    {ATTEMPT_FAILED, EVENT_task_failed, OBSTACLES | CODE(NON_RETRYABLE_FAILURE)},
    {ATTEMPT_FAILED, EVENT_task_review_required, OBSTACLES | CODE(NON_RETRYABLE_FAILURE) | CODE(RECONCILIATION_REQUIRED)},
    {ATTEMPT_UNKNOWN, EVENT_task_requeued, CODE(IDEMPOTENT_UNKNOWN)},
    {ATTEMPT_UNKNOWN, EVENT_task_review_required, OBSTACLES | CODE(RECONCILIATION_REQUIRED)},
    {ATTEMPT_CANCELLED, EVENT_task_cancelled, CODE(CANCEL_CONFIRMED)},
    {ATTEMPT_CANCELLED, EVENT_task_review_required, CODE(CANCEL_CONFIRMED)},
    {ATTEMPT_EXPIRED, EVENT_task_requeued, CODE(UNSTARTED_LEASE_EXPIRED) | CODE(UNSTARTED_RELEASED)},
    {ATTEMPT_EXPIRED, EVENT_task_failed, CODE(ATTEMPT_LIMIT) | DEADLINES},
    {ATTEMPT_EXPIRED, EVENT_task_review_required, CODE(ATTEMPT_LIMIT) | DEADLINES | CODE(RECONCILIATION_REQUIRED)},
    {ATTEMPT_REVOKED, EVENT_task_cancelled, CODE(CANCEL_REQUESTED)},
    {ATTEMPT_REVOKED, EVENT_task_review_required, CODE(CANCEL_REQUESTED)},
};

static unsigned find_codes(enum attempt_state ended_as, enum event_type event) {
  for (size_t i = 0; i < sizeof conclusions / sizeof conclusions[0]; i++)
    if (conclusions[i].ended_as == ended_as && conclusions[i].event == event) return conclusions[i].codes;
  return 0;
}

static const char *check_codes(const struct task *task, const struct event *event, const struct decision_record *record) {
  unsigned codes = find_codes((enum attempt_state)task->ended_as, event->type);
  bool cancelled = task->cancel_requested_at != 0;
  REQUIRE(codes != 0, "this decision does not follow this end of an attempt");
  REQUIRE((unsigned)record->decision < DECISION_ENUM_END && (codes >> record->decision & 1) != 0,
          "the decision's code does not fit");
  REQUIRE(record->decision != DECISION_CANCEL_REQUESTED || cancelled, "CANCEL_REQUESTED without a cancel request");
  if (task->ended_as != ATTEMPT_NONE) return NULL;
  REQUIRE(cancelled == (record->decision == DECISION_CANCEL_REQUESTED), "a waiting task ends by its deadlines or by a cancel");
  REQUIRE(record->decision != DECISION_DEADLINE_EXCEEDED || event->time_us >= task->deadline_at, "deadline_at has not come");
  REQUIRE(record->decision != DECISION_START_DEADLINE_EXCEEDED ||
              (task->start_deadline_at != 0 && event->time_us >= task->start_deadline_at),
          "start_deadline_at has not come");
  return NULL;
}

/* Once set, the doubt is cleared by an authorised success or a review alone; while it lasts, the task cannot simply end. */
static const char *check_uncertainty(const struct task *task, const struct decision_record *record) {
  bool uncertain = task->effect_uncertain || task->ended_as == ATTEMPT_UNKNOWN;
  if (record->state == TASK_SUCCEEDED) return record->effect_uncertain ? "a success leaves nothing uncertain" : NULL;
  REQUIRE(record->effect_uncertain == uncertain, "effect_uncertain does not follow");
  if (record->state == TASK_NEEDS_REVIEW) return uncertain ? NULL : "a review is required but nothing is uncertain";
  REQUIRE(record->state == TASK_WAITING || !uncertain, "the task ends but an execution is not accounted for");
  REQUIRE(!uncertain || task->recovery_safety == RECOVERY_IDEMPOTENT, "an uncertain task is requeued but not IDEMPOTENT");
  return NULL;
}

static const char *check_next(const struct task *task, const struct event *event, const struct decision_record *record) {
  if (record->next_available_at != 0 || record->delay_ms != 0) {
    REQUIRE(record->delay_ms <= task->max_delay_ms, "delay_ms is out of bounds");
    REQUIRE(record->next_available_at == time_after_ms(event->time_us, record->delay_ms),
            "next_available_at is not delay_ms from here");
  }
  if (record->state != TASK_WAITING) return NULL;
  REQUIRE(record->next_available_at != 0, "next_available_at is missing");
  REQUIRE(record->next_available_at < task->deadline_at, "the next attempt would not be before deadline_at");
  REQUIRE(task->start_deadline_at == 0 || record->next_available_at < task->start_deadline_at,
          "the next attempt would not be before start_deadline_at");
  REQUIRE(task->attempt_count < task->max_attempts, "requeued with no attempt left");
  REQUIRE(task->cancel_requested_at == 0, "requeued after a cancel request");
  return NULL;
}

const char *check_decision(const struct task *task, const struct event *event) {
  static const enum task_state states[EVENT_type_end] = {
      [EVENT_task_requeued] = TASK_WAITING,    [EVENT_task_succeeded] = TASK_SUCCEEDED,
      [EVENT_task_failed] = TASK_FAILED,       [EVENT_task_review_required] = TASK_NEEDS_REVIEW,
      [EVENT_task_cancelled] = TASK_CANCELLED,
  };
  struct decision_record record;
  REQUIRE(decision_of_event(event, &record), "not a decision");
  REQUIRE(record.state == states[event->type], "the state is not the decision's");
  REQUIRE(record.attempt_count == task->attempt_count && record.max_attempts == task->max_attempts,
          "the decision's counts are not the task's");
  const char *misfit = check_codes(task, event, &record);
  if (misfit == NULL) misfit = check_uncertainty(task, &record);
  if (misfit == NULL) misfit = check_next(task, event, &record);
  return misfit;
}
