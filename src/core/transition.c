/* Owns the table of the task's state machine. Rows stand by state, and within it in the order of event numbers. */
#include "core/transition.h"

#define MOVES(from, event, to) \
  { TASK_##from, EVENT_##event, TASK_##to, true }
#define STAYS(from, event) \
  { TASK_##from, EVENT_##event, TASK_##from, false }

static const struct transition rows[] = {
    MOVES(NONE, task_accepted, WAITING),

    MOVES(WAITING, task_leased, LEASED),
    MOVES(WAITING, task_failed, FAILED),
    MOVES(WAITING, task_review_required, NEEDS_REVIEW),
    MOVES(WAITING, task_cancelled, CANCELLED),
    STAYS(WAITING, task_cancel_requested), /* its decision follows in the same commit and raises the revision */
    STAYS(WAITING, evidence_recorded),
    STAYS(WAITING, audit_recorded),

    MOVES(LEASED, task_started, RUNNING),
    STAYS(LEASED, attempt_ended), /* likewise */
    MOVES(LEASED, task_requeued, WAITING),
    MOVES(LEASED, task_failed, FAILED),
    MOVES(LEASED, task_review_required, NEEDS_REVIEW),
    MOVES(LEASED, task_cancelled, CANCELLED),
    STAYS(LEASED, task_cancel_requested), /* likewise */
    STAYS(LEASED, evidence_recorded),
    STAYS(LEASED, audit_recorded),

    STAYS(RUNNING, attempt_result), /* likewise */
    STAYS(RUNNING, attempt_ended),  /* likewise */
    MOVES(RUNNING, task_requeued, WAITING),
    MOVES(RUNNING, task_succeeded, SUCCEEDED),
    MOVES(RUNNING, task_failed, FAILED),
    MOVES(RUNNING, task_review_required, NEEDS_REVIEW),
    MOVES(RUNNING, task_cancelled, CANCELLED),
    MOVES(RUNNING, task_cancel_requested, RUNNING),
    STAYS(RUNNING, evidence_recorded),
    STAYS(RUNNING, audit_recorded),

    MOVES(NEEDS_REVIEW, task_cancel_requested, NEEDS_REVIEW),
    MOVES(NEEDS_REVIEW, task_reviewed, SUCCEEDED),
    MOVES(NEEDS_REVIEW, task_reviewed, FAILED),
    STAYS(NEEDS_REVIEW, evidence_recorded),
    STAYS(NEEDS_REVIEW, audit_recorded),

    STAYS(SUCCEEDED, evidence_recorded),
    STAYS(SUCCEEDED, audit_recorded),

    STAYS(FAILED, task_retried),
    STAYS(FAILED, evidence_recorded),
    STAYS(FAILED, audit_recorded),

    STAYS(CANCELLED, task_retried),
    STAYS(CANCELLED, evidence_recorded),
    STAYS(CANCELLED, audit_recorded),
};

enum { row_count = sizeof rows / sizeof rows[0] };

const struct transition *transition_rows(size_t *ret_count) {
  *ret_count = row_count;
  return rows;
}

const struct transition *transition_find(enum task_state from, enum event_type event) {
  for (size_t i = 0; i < row_count; i++)
    if (rows[i].from == from && rows[i].event == event) return &rows[i];
  return NULL;
}

bool transition_allows(enum task_state from, enum event_type event, enum task_state to) {
  for (size_t i = 0; i < row_count; i++)
    if (rows[i].from == from && rows[i].event == event && rows[i].to == to) return true;
  return false;
}
