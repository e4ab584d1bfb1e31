/* Whole lives of a task, folded event by event: states, revisions, attempts, times. */
#include "script.h"

static struct world the_world;

#define LIFE(name, ...)                                     \
  static void name(void **state) {                          \
    (void)state;                                            \
    static const char *const lines[] = {__VA_ARGS__, NULL}; \
    script_run(&the_world, lines);                          \
  }

LIFE(without_a_mishap_it_is_five_events, "submit -> WAITING 1 {task.accepted@1}", "lease -> LEASED 2 {task.leased@2}",
     "start -> RUNNING 3 {task.started@3}", "renew -> RUNNING 3 {}",
     "finish SUCCEEDED -> SUCCEEDED 4 SUCCEEDED {attempt.result@3 task.succeeded@4}",
     "late FAILED -> SUCCEEDED 4 {evidence.recorded@4}", "expire -> SUCCEEDED 4 {}")

LIFE(needs_review_is_four_and_reviewed_is_five, "submit -> WAITING 1", "lease -> LEASED 2", "start -> RUNNING 3",
     "finish UNKNOWN -> NEEDS_REVIEW 4~ RECONCILIATION_REQUIRED {attempt.result@3 task.review_required@4}",
     "late SUCCEEDED -> NEEDS_REVIEW 4~", "review FAILED rev=4 -> FAILED 5 {task.reviewed@5 audit.recorded@5}",
     "retry rev=5 -> FAILED 5 {task.retried@5 audit.recorded@5 task.accepted@1}")

LIFE(a_retryable_failure_is_tried_again_and_succeeds, "submit attempts=3 delay=500/2000 -> WAITING 1", "lease -> LEASED 2",
     "start -> RUNNING 3", "finish FAILED retryable -> WAITING 4 RETRYABLE_FAILURE {attempt.result@3 task.requeued@4}",
     "lease -> !STATE_CONFLICT", /* the backoff is not over */
     "goto available-1", "lease -> !STATE_CONFLICT", "goto available", "lease -> LEASED 5", "start -> RUNNING 6",
     "finish SUCCEEDED -> SUCCEEDED 7 SUCCEEDED")

LIFE(the_budget_ends, "submit attempts=2 -> WAITING 1", "lease", "start",
     "finish FAILED retryable -> WAITING 4 RETRYABLE_FAILURE", "lease", "start",
     "finish FAILED retryable -> FAILED 7 ATTEMPT_LIMIT", "lease -> !STATE_CONFLICT")

LIFE(unstarted_attempts_are_consumed_too, "submit attempts=3 -> WAITING 1", "lease -> LEASED 2", "goto lease-1",
     "expire -> LEASED 2 {}", "goto lease", "expire -> WAITING 3 UNSTARTED_LEASE_EXPIRED {attempt.ended@2 task.requeued@3}",
     "lease -> LEASED 4", "release -> WAITING 5 UNSTARTED_RELEASED {attempt.ended@4 task.requeued@5}", "lease -> LEASED 6",
     "release -> FAILED 7 ATTEMPT_LIMIT")

LIFE(doubt_outlives_a_later_failure, "submit attempts=3 safety=I -> WAITING 1", "lease", "start",
     "finish UNKNOWN -> WAITING 4~ IDEMPOTENT_UNKNOWN", "lease", "release -> WAITING 6~ UNSTARTED_RELEASED", "lease", "start",
     "finish FAILED -> NEEDS_REVIEW 9~ NON_RETRYABLE_FAILURE", "review SUCCEEDED rev=9 -> SUCCEEDED 10")

LIFE(doubt_is_cleared_by_a_success, "submit attempts=2 safety=I -> WAITING 1", "lease", "start",
     "finish UNKNOWN -> WAITING 4~ IDEMPOTENT_UNKNOWN", "lease", "start", "finish SUCCEEDED -> SUCCEEDED 7 SUCCEEDED")

LIFE(doubt_is_not_cleared_by_evidence, "submit attempts=2 safety=I -> WAITING 1", "lease", "start", "goto lease", "expire",
     "late SUCCEEDED -> WAITING 4~ {evidence.recorded@4}", "goto deadline",
     "expire -> NEEDS_REVIEW 5~ DEADLINE_EXCEEDED {task.review_required@5}")

LIFE(silence_after_the_start_is_unknown, "submit attempt=50000 timeout=60000 -> WAITING 1", "lease ms=5000", "start",
     "goto lease-1", "expire -> RUNNING 3 {}", "goto lease",
     "finish SUCCEEDED -> !LEASE_LOST", /* equal to the end is too late */
     "expire -> NEEDS_REVIEW 4~ RECONCILIATION_REQUIRED {attempt.ended@3 task.review_required@4}")

LIFE(the_attempt_times_out, "submit attempts=2 attempt=10000 safety=I -> WAITING 1", "lease ms=20000", "start", "renew",
     "goto attempt_deadline-1", "expire -> RUNNING 3 {}", "renew -> RUNNING 3", "goto attempt_deadline", "renew -> !LEASE_LOST",
     "expire -> WAITING 4~ IDEMPOTENT_UNKNOWN")

LIFE(a_waiting_task_reaches_its_deadline, "submit timeout=60000 -> WAITING 1", "goto deadline-1", "expire -> WAITING 1 {}",
     "goto deadline", "lease -> !STATE_CONFLICT", "expire -> FAILED 2 DEADLINE_EXCEEDED {task.failed@2}",
     "expire -> FAILED 2 {}")

LIFE(a_waiting_task_reaches_its_start_deadline, "submit timeout=60000 start_by=1000 -> WAITING 1", "goto start_deadline-1",
     "expire -> WAITING 1 {}", "goto start_deadline", "lease -> !STATE_CONFLICT",
     "expire -> FAILED 2 START_DEADLINE_EXCEEDED {task.failed@2}")

LIFE(a_leased_task_reaches_its_start_deadline, "submit attempts=2 timeout=60000 start_by=1000 -> WAITING 1",
     "lease -> LEASED 2", "goto start_deadline", "start -> !STATE_CONFLICT",
     "expire -> FAILED 3 START_DEADLINE_EXCEEDED {attempt.ended@2 task.failed@3}")

LIFE(a_running_task_does_not_mind_its_start_deadline, "submit timeout=60000 start_by=1000 -> WAITING 1", "lease -> LEASED 2",
     "start -> RUNNING 3", "goto lease-1", /* the first lease ends with start_deadline_at */
     "renew -> RUNNING 3", "goto start_deadline", "expire -> RUNNING 3 {}", "finish SUCCEEDED -> SUCCEEDED 4 SUCCEEDED")

LIFE(restart_gives_leases_back, "submit attempts=2 attempt=60000 timeout=100000 -> WAITING 1", "lease ms=5000 -> LEASED 2",
     "goto lease-1", "restart", "goto lease-1", "start -> RUNNING 3", "goto lease-1", "restart -> RUNNING 3", "goto lease-1",
     "finish SUCCEEDED -> SUCCEEDED 4 SUCCEEDED")

LIFE(an_old_attempt_has_no_authority, "submit attempts=3 -> WAITING 1", "lease", "start", "finish FAILED retryable",
     "finish FAILED retryable -> !LEASE_LOST /attempt_id", "start -> !LEASE_LOST /attempt_id", "lease -> LEASED 5",
     "start attempt=old -> !LEASE_LOST /attempt_id", "start epoch=1 -> !LEASE_LOST /epoch",
     "start epoch=3 -> !LEASE_LOST /epoch", "start app=other -> !NOT_FOUND",
     "finish SUCCEEDED -> !STATE_CONFLICT", /* no start grant */
     "start -> RUNNING 6", "start -> !STATE_CONFLICT", "release -> !STATE_CONFLICT",
     "finish CANCELLED -> !STATE_CONFLICT /outcome", "finish SUCCEEDED retryable -> !INVALID_ARGUMENT /retryable",
     "finish UNKNOWN retryable -> !INVALID_ARGUMENT /retryable", "finish SUCCEEDED epoch=1 -> !LEASE_LOST /epoch",
     "renew epoch=1 -> !LEASE_LOST /epoch", "renew app=other -> !NOT_FOUND", "finish SUCCEEDED app=other -> !NOT_FOUND",
     "finish SUCCEEDED -> SUCCEEDED 7 SUCCEEDED", "renew -> !LEASE_LOST", "release -> !LEASE_LOST", "start -> !LEASE_LOST",
     "finish SUCCEEDED -> !LEASE_LOST")

LIFE(a_lost_lease_refuses_all, "submit attempts=3 -> WAITING 1", "lease ms=5000", "goto lease", "start -> !LEASE_LOST",
     "renew -> !LEASE_LOST", "release -> !LEASE_LOST", "finish SUCCEEDED -> !LEASE_LOST")

LIFE(a_renewal_before_the_start_survives_it, "submit attempts=3 attempt=50000 -> WAITING 1", "lease ms=10000", "wait 9000",
     "renew", "start", "wait 9000", "finish SUCCEEDED -> SUCCEEDED 4 SUCCEEDED")

static void snapshot_of_a_whole_life(void **state) {
  (void)state;
  struct world *world = &the_world;
  static const char *const lines[] = {"submit attempts=2 delay=1000/1000 timeout=60000 attempt=10000", "lease ms=30000", NULL};
  script_run(world, lines);
  const struct task *task = &world->task;
  int64_t now = world_start_us;
  assert_int_equal(task->accepted_seq, 1);
  assert_int_equal(task->last_seq, 2);
  assert_int_equal(task->created_at, now);
  assert_int_equal(task->available_at, now);
  assert_int_equal(task->deadline_at, now + 60000000);
  assert_int_equal(task->attempt_count, 1);
  assert_int_equal(task->epoch, 1);
  assert_int_equal(task->payload_bytes, 58);
  assert_int_equal(world->attempt.leased_at, now);
  assert_int_equal(world->attempt.lease_until, now + 30000000);
  assert_int_equal(world->attempt.lease_ms, 30000);

  script_line(world, "wait 1000");
  script_line(world, "start");
  assert_int_equal(world->attempt.started_at, now + 1000000);
  assert_int_equal(world->attempt.attempt_deadline_at, now + 11000000);
  assert_int_equal(world->attempt.live_until, now + 11000000); /* never past the attempt's timeout */
  script_line(world, "wait 1000");
  script_line(world, "finish FAILED retryable");
  assert_true(id_is_zero(&world->attempt.id));
  assert_int_equal(task_error_seq(task), 0); /* the error of an attempt is history while the task goes on */
  assert_int_equal(task_completed_at(task), 0);
  assert_in_range(task->available_at, now + 2500000, now + 3000000);
  assert_int_equal(task->updated_at, now + 2000000);

  script_line(world, "goto available");
  script_line(world, "lease");
  assert_int_equal(task->attempt_count, 2);
  assert_int_equal(task->epoch, 2);
  script_line(world, "start");
  script_line(world, "finish FAILED");
  assert_int_equal(task_error_seq(task), world->list.events[0].seq); /* of the attempt that decided */
  assert_int_equal(task_result_seq(task), 0);
  assert_int_equal(task_completed_at(task), world->env.now_us);
  script_line(world, "wait 10");
  uint64_t last = task->last_seq;
  int64_t updated = task->updated_at;
  script_line(world, "late SUCCEEDED");
  assert_int_equal(task->last_seq, last + 1);
  assert_int_equal(task->updated_at, updated); /* evidence changes nothing */
}

static void results_and_errors_are_pointed_at(void **state) {
  (void)state;
  struct world *world = &the_world;
  static const char *const success[] = {"submit", "lease", "start", "finish SUCCEEDED", NULL};
  script_run(world, success);
  assert_int_equal(task_result_seq(&world->task), world->list.events[0].seq);
  assert_int_equal(task_error_seq(&world->task), 0);

  static const char *const expired[] = {"submit attempts=2",
                                        "lease",
                                        "start",
                                        "finish FAILED retryable",
                                        "goto deadline",
                                        "expire -> FAILED 5 DEADLINE_EXCEEDED",
                                        NULL};
  script_run(world, expired);
  assert_int_equal(task_error_seq(&world->task), 0); /* decided by the clock, not by a report */

  static const char *const reviewed[] = {"submit", "lease", "start", "finish UNKNOWN", "review FAILED rev=4", NULL};
  script_run(world, reviewed);
  assert_int_equal(task_result_seq(&world->task), world->list.events[0].seq);
  assert_int_equal(task_error_seq(&world->task), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_mishap_it_is_five_events),
      cmocka_unit_test(needs_review_is_four_and_reviewed_is_five),
      cmocka_unit_test(a_retryable_failure_is_tried_again_and_succeeds),
      cmocka_unit_test(the_budget_ends),
      cmocka_unit_test(unstarted_attempts_are_consumed_too),
      cmocka_unit_test(doubt_outlives_a_later_failure),
      cmocka_unit_test(doubt_is_cleared_by_a_success),
      cmocka_unit_test(doubt_is_not_cleared_by_evidence),
      cmocka_unit_test(silence_after_the_start_is_unknown),
      cmocka_unit_test(the_attempt_times_out),
      cmocka_unit_test(a_waiting_task_reaches_its_deadline),
      cmocka_unit_test(a_waiting_task_reaches_its_start_deadline),
      cmocka_unit_test(a_leased_task_reaches_its_start_deadline),
      cmocka_unit_test(a_running_task_does_not_mind_its_start_deadline),
      cmocka_unit_test(restart_gives_leases_back),
      cmocka_unit_test(an_old_attempt_has_no_authority),
      cmocka_unit_test(a_lost_lease_refuses_all),
      cmocka_unit_test(a_renewal_before_the_start_survives_it),
      cmocka_unit_test(snapshot_of_a_whole_life),
      cmocka_unit_test(results_and_errors_are_pointed_at),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
