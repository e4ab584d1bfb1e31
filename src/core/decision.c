/* Owns the decision table. */
#include "core/decision.h"

#include <stddef.h>

#include "base/guard.h"
#include "core/backoff.h"
#include "core/model.h"

enum pattern { ANY = 0, NO, YES };
enum uncertainty { KEEP = 0, SET, CLEAR };

/* A row fits when all its patterns do; the first that fits decides. */
struct row {
  enum fact fact;
  enum recovery_safety safety; /* NONE: any */
  enum pattern uncertain;      /* something before this is not accounted for */
  enum pattern may_retry;      /* no cancel request, budget left, next time strictly before both deadlines */
  enum task_state state;
  enum decision decision;       /* NONE: what stands against another attempt */
  enum uncertainty uncertainty; /* afterwards */
};

#define WHATEVER RECOVERY_NONE
#define OBSTACLE DECISION_NONE

static const struct row rows[] = {
    {FACT_SUCCEEDED, WHATEVER, ANY, ANY, TASK_SUCCEEDED, DECISION_SUCCEEDED, CLEAR},

    {FACT_FAILED, WHATEVER, NO, ANY, TASK_FAILED, DECISION_NON_RETRYABLE_FAILURE, KEEP},
    {FACT_FAILED, WHATEVER, YES, ANY, TASK_NEEDS_REVIEW, DECISION_NON_RETRYABLE_FAILURE, KEEP},

    {FACT_FAILED_RETRYABLE, WHATEVER, NO, YES, TASK_WAITING, DECISION_RETRYABLE_FAILURE, KEEP},
    {FACT_FAILED_RETRYABLE, WHATEVER, NO, NO, TASK_FAILED, OBSTACLE, KEEP},
    {FACT_FAILED_RETRYABLE, RECOVERY_RECONCILE_ONLY, YES, ANY, TASK_NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, KEEP},
    {FACT_FAILED_RETRYABLE, RECOVERY_IDEMPOTENT, YES, YES, TASK_WAITING, DECISION_RETRYABLE_FAILURE, KEEP},
    {FACT_FAILED_RETRYABLE, RECOVERY_IDEMPOTENT, YES, NO, TASK_NEEDS_REVIEW, OBSTACLE, KEEP},

    {FACT_UNKNOWN, RECOVERY_RECONCILE_ONLY, ANY, ANY, TASK_NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, SET},
    {FACT_UNKNOWN, RECOVERY_IDEMPOTENT, ANY, YES, TASK_WAITING, DECISION_IDEMPOTENT_UNKNOWN, SET},
    {FACT_UNKNOWN, RECOVERY_IDEMPOTENT, ANY, NO, TASK_NEEDS_REVIEW, OBSTACLE, SET},

    {FACT_CANCELLED, WHATEVER, NO, ANY, TASK_CANCELLED, DECISION_CANCEL_CONFIRMED, KEEP},
    {FACT_CANCELLED, WHATEVER, YES, ANY, TASK_NEEDS_REVIEW, DECISION_CANCEL_CONFIRMED, KEEP},

    {FACT_LEASE_EXPIRED, WHATEVER, NO, YES, TASK_WAITING, DECISION_UNSTARTED_LEASE_EXPIRED, KEEP},
    {FACT_LEASE_EXPIRED, WHATEVER, NO, NO, TASK_FAILED, OBSTACLE, KEEP},
    {FACT_LEASE_EXPIRED, RECOVERY_RECONCILE_ONLY, YES, ANY, TASK_NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, KEEP},
    {FACT_LEASE_EXPIRED, RECOVERY_IDEMPOTENT, YES, YES, TASK_WAITING, DECISION_UNSTARTED_LEASE_EXPIRED, KEEP},
    {FACT_LEASE_EXPIRED, RECOVERY_IDEMPOTENT, YES, NO, TASK_NEEDS_REVIEW, OBSTACLE, KEEP},

    {FACT_RELEASED, WHATEVER, NO, YES, TASK_WAITING, DECISION_UNSTARTED_RELEASED, KEEP},
    {FACT_RELEASED, WHATEVER, NO, NO, TASK_FAILED, OBSTACLE, KEEP},
    {FACT_RELEASED, RECOVERY_RECONCILE_ONLY, YES, ANY, TASK_NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, KEEP},
    {FACT_RELEASED, RECOVERY_IDEMPOTENT, YES, YES, TASK_WAITING, DECISION_UNSTARTED_RELEASED, KEEP},
    {FACT_RELEASED, RECOVERY_IDEMPOTENT, YES, NO, TASK_NEEDS_REVIEW, OBSTACLE, KEEP},

    {FACT_WAITING_EXPIRED, WHATEVER, NO, NO, TASK_FAILED, OBSTACLE, KEEP},
    {FACT_WAITING_EXPIRED, WHATEVER, YES, NO, TASK_NEEDS_REVIEW, OBSTACLE, KEEP},

    {FACT_CANCEL, WHATEVER, NO, ANY, TASK_CANCELLED, DECISION_CANCEL_REQUESTED, KEEP},
    {FACT_CANCEL, WHATEVER, YES, ANY, TASK_NEEDS_REVIEW, DECISION_CANCEL_REQUESTED, KEEP},
};

enum { row_count = sizeof rows / sizeof rows[0] };

/* What stands against another attempt, most telling first; NONE: nothing does. Fills in the delay where one is drawn. */
static enum decision find_obstacle(const struct decision_input *input, struct decision_result *result) {
  if (input->fact == FACT_WAITING_EXPIRED)
    return input->now_us >= input->deadline_at ? DECISION_DEADLINE_EXCEEDED : DECISION_START_DEADLINE_EXCEEDED;
  if (input->cancel_requested) return DECISION_CANCEL_REQUESTED;
  if (input->attempt_count >= input->max_attempts) return DECISION_ATTEMPT_LIMIT;
  uint64_t base_ms = backoff_base_ms(input->initial_delay_ms, input->max_delay_ms, input->attempt_count);
  uint64_t delay_ms = backoff_delay_ms(base_ms, &input->attempt_id);
  int64_t next_us = time_after_ms(input->now_us, delay_ms);
  if (next_us == INT64_MAX) return DECISION_DEADLINE_EXCEEDED;
  result->has_delay = true;
  result->delay_ms = delay_ms;
  result->next_available_at = next_us;
  if (next_us >= input->deadline_at) return DECISION_DEADLINE_EXCEEDED;
  if (input->start_deadline_at != 0 && next_us >= input->start_deadline_at) return DECISION_START_DEADLINE_EXCEEDED;
  return DECISION_NONE;
}

static bool matches(enum pattern pattern, bool value) { return pattern == ANY || (pattern == YES) == value; }

struct decision_result decision_make(const struct decision_input *input) {
  struct decision_result result = {.effect_uncertain = input->effect_uncertain};
  enum decision obstacle = DECISION_NONE;
  bool obstacle_known = false;
  const struct row *found = NULL;
  must(input->recovery_safety == RECOVERY_RECONCILE_ONLY || input->recovery_safety == RECOVERY_IDEMPOTENT);
  for (size_t i = 0; i < row_count && found == NULL; i++) {
    const struct row *row = &rows[i];
    if (row->fact != input->fact || (row->safety != WHATEVER && row->safety != input->recovery_safety)) continue;
    if (!matches(row->uncertain, input->effect_uncertain)) continue;
    if (row->may_retry != ANY && !obstacle_known) {
      obstacle = find_obstacle(input, &result);
      obstacle_known = true;
    }
    if (matches(row->may_retry, obstacle == DECISION_NONE)) found = row;
  }
  must(found != NULL);
  result.state = found->state;
  result.decision = found->decision != OBSTACLE ? found->decision : obstacle;
  if (found->uncertainty != KEEP) result.effect_uncertain = found->uncertainty == SET;
  return result;
}

/* The fields that all five decision events have. */
#define READ(record, body)                                                    \
  ((record) = (struct decision_record){.state = (body).state,                 \
                                       .decision = (body).decision,           \
                                       .attempt_count = (body).attempt_count, \
                                       .max_attempts = (body).max_attempts,   \
                                       .effect_uncertain = (body).effect_uncertain})
#define READ_DELAY(record, body) ((record).delay_ms = (body).delay_ms, (record).next_available_at = (body).next_available_at)

bool decision_of_event(const struct event *event, struct decision_record *ret_record) {
  struct decision_record record;
  switch (event->type) {
    case EVENT_task_requeued:
      READ(record, event->body.task_requeued);
      READ_DELAY(record, event->body.task_requeued);
      break;
    case EVENT_task_succeeded:
      READ(record, event->body.task_succeeded);
      break;
    case EVENT_task_failed:
      READ(record, event->body.task_failed);
      READ_DELAY(record, event->body.task_failed);
      break;
    case EVENT_task_review_required:
      READ(record, event->body.task_review_required);
      READ_DELAY(record, event->body.task_review_required);
      break;
    case EVENT_task_cancelled:
      READ(record, event->body.task_cancelled);
      break;
    default:
      return false;
  }
  *ret_record = record;
  return true;
}
