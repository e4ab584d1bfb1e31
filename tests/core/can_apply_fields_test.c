/* Events that fit a task, each field of them made wrong in turn: none may fit any more. */
#include "script.h"

static struct world the_world;

#define BODY(name) struct event_##name *b = &event->body.name
#define WRONG(name, ...) \
  static void name(struct event *event) { __VA_ARGS__; }
WRONG(wrong_stream, event->stream.bytes[15] ^= 1)
WRONG(wrong_seq, event->seq = event->prev)
WRONG(wrong_prev, event->prev--)
WRONG(wrong_time, event->time_us = world_start_us - 1)
WRONG(revision_too_high, event->common.revision++)
WRONG(revision_too_low, event->common.revision--)
WRONG(no_namespace, BODY(task_accepted); memset(&b->namespace_id, 0, id_bytes))
WRONG(no_application, BODY(task_accepted); memset(&b->application_id, 0, id_bytes))
WRONG(no_queue, BODY(task_accepted); memset(&b->queue_id, 0, id_bytes))
WRONG(no_handler, BODY(task_accepted); b->handler.size = 0)
WRONG(no_handler_version, BODY(task_accepted); b->handler_version.size = 0)
WRONG(no_payload_version, BODY(task_accepted); b->payload_version.size = 0)
WRONG(no_payload, BODY(task_accepted); b->payload.size = 0)
WRONG(large_payload, BODY(task_accepted); b->payload.size = document_bytes_max + 1)
WRONG(no_safety, BODY(task_accepted); b->recovery_safety = RECOVERY_NONE)
WRONG(foreign_safety, BODY(task_accepted); b->recovery_safety = RECOVERY_ENUM_END)
WRONG(no_attempts, BODY(task_accepted); b->max_attempts = 0)
WRONG(many_attempts, BODY(task_accepted); b->max_attempts = 101)
WRONG(initial_over_max, BODY(task_accepted); b->initial_delay_ms = 1)
WRONG(large_delay, BODY(task_accepted); b->max_delay_ms = 86400001)
WRONG(no_attempt_timeout, BODY(task_accepted); b->attempt_timeout_ms = 0)
WRONG(large_attempt_timeout, BODY(task_accepted); b->attempt_timeout_ms = task_timeout_ms_max + 1)
WRONG(high_priority, BODY(task_accepted); b->priority = 10)
WRONG(deadline_now, BODY(task_accepted); b->deadline_at = event->time_us)
WRONG(deadline_far, BODY(task_accepted); b->deadline_at = event->time_us + (int64_t)task_timeout_ms_max * 1000 + 1)
WRONG(available_past, BODY(task_accepted); b->available_at = event->time_us - 1000001)
WRONG(available_at_deadline, BODY(task_accepted); b->available_at = b->deadline_at)
WRONG(start_by_now, BODY(task_accepted); b->start_deadline_at = event->time_us)
WRONG(start_by_late, BODY(task_accepted); b->start_deadline_at = b->deadline_at + 1)
WRONG(start_by_before_available, BODY(task_accepted); b->available_at += 10; b->start_deadline_at = b->available_at - 1)
WRONG(retry_of_itself, BODY(task_accepted); b->retry_of = event->stream)
WRONG(no_attempt, BODY(task_leased); memset(&b->attempt_id, 0, id_bytes))
WRONG(no_instance, BODY(task_leased); memset(&b->instance_id, 0, id_bytes))
WRONG(no_worker_application, BODY(task_leased); memset(&b->worker_application_id, 0, id_bytes))
WRONG(number_skipped, BODY(task_leased); b->number++)
WRONG(number_repeated, BODY(task_leased); b->number--)
WRONG(epoch_skipped, BODY(task_leased); b->epoch++)
WRONG(epoch_repeated, BODY(task_leased); b->epoch--)
WRONG(no_lease, BODY(task_leased); b->lease_ms = 0)
WRONG(large_lease, BODY(task_leased); b->lease_ms = 300001)
WRONG(lease_over, BODY(task_leased); b->lease_until = event->time_us)
WRONG(lease_longer, BODY(task_leased); b->lease_until++)
WRONG(leased_early, event->time_us--; event->body.task_leased.lease_until--)
WRONG(start_other_attempt, BODY(task_started); b->attempt_id.bytes[0] ^= 1)
WRONG(start_old_epoch, BODY(task_started); b->epoch--)
WRONG(start_lease_shorter, BODY(task_started); b->lease_until--)
WRONG(start_lease_over, event->time_us = event->body.task_started.lease_until)
WRONG(start_timeout_longer, BODY(task_started); b->attempt_deadline_at++)
WRONG(start_timeout_now, BODY(task_started); b->attempt_deadline_at = event->time_us)
WRONG(start_past_start_deadline, BODY(task_started); b->lease_until += 10; event->time_us = b->lease_until - 5)
WRONG(result_other_attempt, BODY(attempt_result); b->attempt_id.bytes[0] ^= 1)
WRONG(result_no_attempt, BODY(attempt_result); memset(&b->attempt_id, 0, id_bytes))
WRONG(result_old_epoch, BODY(attempt_result); b->epoch--)
WRONG(result_late, event->time_us = event->body.attempt_result.lease_until)
WRONG(result_lease_longer, BODY(attempt_result); b->lease_until = INT64_MAX)
WRONG(lease_past_timeout, BODY(attempt_result); b->lease_until++)
WRONG(result_no_outcome, BODY(attempt_result); b->outcome = OUTCOME_NONE)
WRONG(result_foreign_outcome, BODY(attempt_result); b->outcome = OUTCOME_ENUM_END)
WRONG(result_cancelled, BODY(attempt_result); b->outcome = OUTCOME_CANCELLED; b->result.size = 0)
WRONG(result_retryable, BODY(attempt_result); b->retryable = true)
WRONG(result_with_error, BODY(attempt_result); b->error_code = bytes_text("X"))
WRONG(failure_with_result, BODY(attempt_result); b->result = bytes_text("1"))
WRONG(ended_early, event->time_us = event->body.attempt_ended.lease_until - 1)
WRONG(ended_other_attempt, BODY(attempt_ended); b->attempt_id.bytes[0] ^= 1)
WRONG(ended_as_revoked, BODY(attempt_ended); b->state = ATTEMPT_REVOKED)
WRONG(ended_as_expired, BODY(attempt_ended); b->state = ATTEMPT_EXPIRED)
WRONG(ended_as_unknown, BODY(attempt_ended); b->state = ATTEMPT_UNKNOWN)
WRONG(ended_as_succeeded, BODY(attempt_ended); b->state = ATTEMPT_SUCCEEDED)
WRONG(ended_by_nothing, BODY(attempt_ended); b->ended_by = ENDED_NONE)
WRONG(ended_by_revoked, BODY(attempt_ended); b->ended_by = ENDED_REVOKED)
WRONG(ended_by_release, BODY(attempt_ended); b->ended_by = ENDED_RELEASED)
WRONG(ended_by_report, BODY(attempt_ended); b->ended_by = ENDED_REPORT)
WRONG(ended_by_timeout, BODY(attempt_ended); b->ended_by = ENDED_ATTEMPT_TIMEOUT)
WRONG(ended_by_deadline, BODY(attempt_ended); b->ended_by = ENDED_DEADLINE)
WRONG(timed_out_early, BODY(attempt_ended); b->ended_by = ENDED_ATTEMPT_TIMEOUT)
WRONG(requeued_state, BODY(task_requeued); b->state = TASK_LEASED)
WRONG(requeued_code, BODY(task_requeued); b->decision = DECISION_IDEMPOTENT_UNKNOWN)
WRONG(requeued_foreign_code, BODY(task_requeued); b->decision = DECISION_ENUM_END)
WRONG(requeued_count, BODY(task_requeued); b->attempt_count++)
WRONG(requeued_budget, BODY(task_requeued); b->max_attempts++)
WRONG(requeued_uncertain, BODY(task_requeued); b->effect_uncertain = !b->effect_uncertain)
WRONG(requeued_delay, BODY(task_requeued); b->delay_ms++)
WRONG(requeued_large_delay, BODY(task_requeued); b->delay_ms += 2000; b->next_available_at += 2000000)
WRONG(requeued_next, BODY(task_requeued); b->next_available_at++)
WRONG(requeued_no_next, BODY(task_requeued); b->next_available_at = 0; b->delay_ms = 0)
WRONG(requeued_later, event->time_us += 2500000; event->body.task_requeued.next_available_at += 2500000)
WRONG(succeeded_uncertain, BODY(task_succeeded); b->effect_uncertain = true)
WRONG(succeeded_code, BODY(task_succeeded); b->decision = DECISION_NON_RETRYABLE_FAILURE)
WRONG(succeeded_state, BODY(task_succeeded); b->state = TASK_FAILED)
WRONG(failed_uncertain, BODY(task_failed); b->effect_uncertain = true)
WRONG(failed_by_cancel, BODY(task_failed); b->decision = DECISION_CANCEL_REQUESTED)
WRONG(failed_by_limit, BODY(task_failed); b->decision = DECISION_ATTEMPT_LIMIT)
WRONG(failed_by_start_deadline, BODY(task_failed); b->decision = DECISION_START_DEADLINE_EXCEEDED)
WRONG(failed_early, event->time_us--)
WRONG(failed_in_doubt, struct event_task_review_required doubt = event->body.task_review_required;
      event->type = EVENT_task_failed; struct event_task_failed *b = &event->body.task_failed; memset(b, 0, sizeof *b);
      b->state = TASK_FAILED; b->decision = doubt.decision; b->attempt_count = doubt.attempt_count;
      b->max_attempts = doubt.max_attempts; b->effect_uncertain = true; b->node_id = doubt.node_id)
WRONG(review_certain, BODY(task_review_required); b->effect_uncertain = false)
WRONG(review_code, BODY(task_review_required); b->decision = DECISION_CANCEL_CONFIRMED)
WRONG(cancelled_code, BODY(task_cancelled); b->decision = DECISION_CANCEL_CONFIRMED)
WRONG(cancelled_uncertain, BODY(task_cancelled); b->effect_uncertain = true)
WRONG(request_not_applied, BODY(task_cancel_requested); b->applied = !b->applied)
WRONG(request_no_reason, BODY(task_cancel_requested); b->reason.size = 0)
WRONG(request_no_audit, BODY(task_cancel_requested); memset(&b->audit_id, 0, id_bytes))
WRONG(reviewed_state, BODY(task_reviewed); b->state = TASK_SUCCEEDED)
WRONG(reviewed_cancelled, BODY(task_reviewed); b->state = TASK_CANCELLED)
WRONG(reviewed_outcome, BODY(task_reviewed); b->outcome = OUTCOME_UNKNOWN)
WRONG(reviewed_succeeded, BODY(task_reviewed); b->outcome = OUTCOME_SUCCEEDED)
WRONG(reviewed_unsettled, BODY(task_reviewed); b->execution_settled = false)
WRONG(reviewed_no_result, BODY(task_reviewed); b->result.size = 0)
WRONG(reviewed_no_audit, BODY(task_reviewed); memset(&b->audit_id, 0, id_bytes))
WRONG(retried_nothing, BODY(task_retried); memset(&b->retry_task_id, 0, id_bytes))
WRONG(retried_no_audit, BODY(task_retried); memset(&b->audit_id, 0, id_bytes))
WRONG(retried_itself, BODY(task_retried); b->retry_task_id = event->stream)
WRONG(evidence_no_id, BODY(evidence_recorded); memset(&b->evidence_id, 0, id_bytes))
WRONG(evidence_no_attempt, BODY(evidence_recorded); memset(&b->attempt_id, 0, id_bytes))
WRONG(evidence_no_reason, BODY(evidence_recorded); b->reason = EVIDENCE_NONE)
WRONG(evidence_foreign_reason, BODY(evidence_recorded); b->reason = EVIDENCE_ENUM_END)
WRONG(evidence_no_outcome, BODY(evidence_recorded); b->outcome = OUTCOME_NONE)
WRONG(evidence_foreign_outcome, BODY(evidence_recorded); b->outcome = OUTCOME_ENUM_END)
WRONG(evidence_retryable, BODY(evidence_recorded); b->retryable = true)
WRONG(audit_other_target, BODY(audit_recorded); b->target_id.bytes[0] ^= 1)
WRONG(audit_no_action, BODY(audit_recorded); b->action.size = 0)
WRONG(audit_other_id, BODY(audit_recorded); b->audit_id.bytes[15] ^= 1)

/* Lives, each with the event of its last step that is meant: {lines}, which. */
#define SUBMIT "submit attempts=3 delay=500/2000 timeout=60000 attempt=10000"
#define SAFE SUBMIT " safety=I"
#define SLOW "submit attempts=3 delay=2000/2000"
#define ACCEPT {"submit"}, 0
#define LEASE {SUBMIT, "lease"}, 0
#define LEASE_DUE {"submit attempts=2 at=1000", "goto available", "lease"}, 0
#define LEASE_TO_DEADLINE {"submit timeout=20000", "lease ms=30000"}, 0
#define LEASE_TO_START {"submit start_by=20000", "lease ms=30000"}, 0
#define START {SUBMIT, "lease", "start"}, 0
#define START_BY {"submit start_by=20000", "lease ms=30000", "start"}, 0
#define SUCCESS {SUBMIT, "lease", "start", "finish SUCCEEDED"}, 0
#define SUCCEEDED {SUBMIT, "lease", "start", "finish SUCCEEDED"}, 1
#define FAILURE {SUBMIT, "lease", "start", "finish FAILED"}, 0
#define FAILED {SUBMIT, "lease", "start", "finish FAILED"}, 1
#define REQUEUED {SUBMIT, "lease", "start", "finish FAILED retryable"}, 1
#define REQUEUED_LATE {SLOW " timeout=12000", "lease", "start", "wait 9000", "finish FAILED retryable"}, 1
#define REQUEUED_START {SLOW " start_by=12000", "lease", "start", "wait 9000", "finish FAILED retryable"}, 1
#define REQUEUED_DOUBT {SAFE, "lease", "start", "finish UNKNOWN"}, 1
#define EXPIRED {SUBMIT, "lease", "goto lease", "expire"}, 0
#define RELEASED {SUBMIT, "lease", "release"}, 0
#define TIMED_OUT {SUBMIT, "lease", "start", "goto attempt_deadline", "expire"}, 0
#define SILENT {"submit attempt=50000", "lease ms=5000", "start", "goto lease", "expire"}, 0
#define OVERDUE {SUBMIT, "goto deadline", "expire"}, 0
#define OVERDUE_DOUBT {SAFE, "lease", "start", "finish UNKNOWN", "goto deadline", "expire"}, 0
#define DOUBT {"submit", "lease", "start", "finish UNKNOWN"}, 1
#define CANCEL {"submit", "cancel"}, 0
#define REVOKED {"submit", "lease", "cancel"}, 1
#define CANCELLED {"submit", "cancel"}, 1
#define CANCEL_RUNNING {"submit", "lease", "start", "cancel"}, 0
#define CANCEL_AGAIN {"submit", "lease", "start", "cancel", "cancel"}, 0
#define REVIEW {"submit", "lease", "start", "finish UNKNOWN", "review FAILED rev=4"}, 0
#define REVIEW_AUDIT {"submit", "lease", "start", "finish UNKNOWN", "review FAILED rev=4"}, 1
#define RETRY {"submit", "lease", "start", "finish FAILED", "retry rev=4"}, 0
#define EVIDENCE {"submit", "cancel", "late SUCCEEDED"}, 0

static const struct {
  const char *lines[9];
  uint32_t event;
  void (*wrong)(struct event *event);
} mutations[] = {
    /* clang-format off */
    {LEASE, wrong_stream}, {LEASE, wrong_seq}, {LEASE, wrong_prev}, {LEASE, wrong_time}, {LEASE, revision_too_high},
    {LEASE, revision_too_low}, {ACCEPT, revision_too_high}, {ACCEPT, revision_too_low}, {SUCCESS, revision_too_high},
    {SUCCEEDED, revision_too_low}, {REQUEUED, revision_too_high}, {REVIEW, revision_too_low}, {REVIEW_AUDIT, revision_too_high},
    {RETRY, revision_too_high}, {CANCEL, revision_too_high}, {CANCEL_RUNNING, revision_too_low},
    {CANCEL_AGAIN, revision_too_high}, {EVIDENCE, revision_too_high},

    {ACCEPT, no_namespace}, {ACCEPT, no_application}, {ACCEPT, no_queue}, {ACCEPT, no_handler}, {ACCEPT, no_handler_version},
    {ACCEPT, no_payload_version}, {ACCEPT, no_payload}, {ACCEPT, large_payload}, {ACCEPT, no_safety}, {ACCEPT, foreign_safety},
    {ACCEPT, no_attempts}, {ACCEPT, many_attempts}, {ACCEPT, initial_over_max}, {ACCEPT, large_delay},
    {ACCEPT, no_attempt_timeout}, {ACCEPT, large_attempt_timeout}, {ACCEPT, high_priority}, {ACCEPT, deadline_now},
    {ACCEPT, deadline_far}, {ACCEPT, available_past}, {ACCEPT, available_at_deadline}, {ACCEPT, start_by_now},
    {ACCEPT, start_by_late}, {ACCEPT, start_by_before_available}, {ACCEPT, retry_of_itself},

    {LEASE, no_attempt}, {LEASE, no_instance}, {LEASE, no_worker_application}, {LEASE, number_skipped}, {LEASE, number_repeated},
    {LEASE, epoch_skipped}, {LEASE, epoch_repeated}, {LEASE, no_lease}, {LEASE, large_lease}, {LEASE, lease_over},
    {LEASE, lease_longer}, {LEASE_TO_DEADLINE, lease_longer}, {LEASE_TO_START, lease_longer}, {LEASE_DUE, leased_early},

    {START, start_other_attempt}, {START, start_old_epoch}, {START, start_lease_shorter}, {START, start_lease_over},
    {START, start_timeout_longer}, {START, start_timeout_now}, {START_BY, start_past_start_deadline},

    {SUCCESS, result_other_attempt}, {SUCCESS, result_no_attempt}, {SUCCESS, result_old_epoch}, {SUCCESS, result_late},
    {SUCCESS, result_lease_longer}, {SUCCESS, lease_past_timeout}, {SUCCESS, result_no_outcome},
    {SUCCESS, result_foreign_outcome}, {SUCCESS, result_cancelled}, {SUCCESS, result_retryable}, {SUCCESS, result_with_error},
    {FAILURE, failure_with_result},

    {EXPIRED, ended_early}, {EXPIRED, ended_other_attempt}, {EXPIRED, ended_as_revoked}, {EXPIRED, ended_as_unknown},
    {EXPIRED, ended_as_succeeded}, {EXPIRED, ended_by_nothing}, {EXPIRED, ended_by_revoked}, {EXPIRED, ended_by_release},
    {EXPIRED, ended_by_report}, {EXPIRED, ended_by_timeout}, {EXPIRED, ended_by_deadline}, {RELEASED, ended_as_revoked},
    {TIMED_OUT, ended_early}, {TIMED_OUT, ended_as_revoked}, {TIMED_OUT, ended_as_expired}, {TIMED_OUT, ended_by_release},
    {TIMED_OUT, ended_by_deadline}, {TIMED_OUT, ended_by_revoked}, {SILENT, timed_out_early}, {SILENT, ended_as_expired},
    {REVOKED, ended_as_expired}, {REVOKED, ended_as_unknown}, {REVOKED, ended_by_deadline},

    {REQUEUED, requeued_state}, {REQUEUED, requeued_code}, {REQUEUED, requeued_foreign_code}, {REQUEUED, requeued_count},
    {REQUEUED, requeued_budget}, {REQUEUED, requeued_uncertain}, {REQUEUED, requeued_delay}, {REQUEUED, requeued_large_delay},
    {REQUEUED, requeued_next}, {REQUEUED, requeued_no_next}, {REQUEUED_LATE, requeued_later}, {REQUEUED_START, requeued_later},
    {REQUEUED_DOUBT, requeued_uncertain}, {SUCCEEDED, succeeded_uncertain}, {SUCCEEDED, succeeded_code},
    {SUCCEEDED, succeeded_state}, {FAILED, failed_by_cancel}, {FAILED, failed_uncertain}, {OVERDUE, failed_uncertain},
    {OVERDUE, failed_by_cancel}, {OVERDUE, failed_by_limit}, {OVERDUE, failed_by_start_deadline}, {OVERDUE, failed_early},
    {OVERDUE_DOUBT, failed_in_doubt}, {DOUBT, review_certain}, {DOUBT, review_code}, {CANCELLED, cancelled_code},
    {CANCELLED, cancelled_uncertain},

    {CANCEL, request_not_applied}, {CANCEL_AGAIN, request_not_applied}, {CANCEL, request_no_reason}, {CANCEL, request_no_audit},
    {REVIEW, reviewed_state}, {REVIEW, reviewed_cancelled}, {REVIEW, reviewed_outcome}, {REVIEW, reviewed_succeeded},
    {REVIEW, reviewed_unsettled}, {REVIEW, reviewed_no_result}, {REVIEW, reviewed_no_audit}, {RETRY, retried_nothing},
    {RETRY, retried_no_audit}, {RETRY, retried_itself}, {EVIDENCE, evidence_no_id}, {EVIDENCE, evidence_no_attempt},
    {EVIDENCE, evidence_no_reason}, {EVIDENCE, evidence_foreign_reason}, {EVIDENCE, evidence_no_outcome},
    {EVIDENCE, evidence_foreign_outcome}, {EVIDENCE, evidence_retryable}, {REVIEW_AUDIT, audit_other_target},
    {REVIEW_AUDIT, audit_no_action}, {REVIEW_AUDIT, audit_other_id},
    /* clang-format on */
};

static void every_field_made_wrong(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
    const char *const *lines = mutations[i].lines;
    world_init(&the_world);
    for (; lines[1] != NULL; lines++) script_line(&the_world, lines[0]);
    assert_int_equal(script_step(&the_world, lines[0]), STATUS_OK);
    for (uint32_t k = 0; k < mutations[i].event; k++)
      apply_task(&the_world.task, &the_world.attempt, world_number(&the_world, k));
    struct event *event = world_number(&the_world, mutations[i].event), wrong = *event;
    const char *reason = NULL;
    if (!can_apply_task(&the_world.task, &the_world.attempt, event, &reason))
      fail_msg("case %zu does not fit as it is: %s", i, reason);
    mutations[i].wrong(&wrong);
    if (can_apply_task(&the_world.task, &the_world.attempt, &wrong, &reason)) fail_msg("case %zu fits though it is wrong", i);
    assert_true(reason != NULL && reason[0] != 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_field_made_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
