/* Cancel in each state, what follows, and its audit. */
#include "script.h"

static struct world the_world;

#define LIFE(name, ...)                                     \
  static void name(void **state) {                          \
    (void)state;                                            \
    static const char *const lines[] = {__VA_ARGS__, NULL}; \
    script_run(&the_world, lines);                          \
  }

LIFE(waiting_ends_at_once, "submit -> WAITING 1",
     "cancel -> CANCELLED 2 CANCEL_REQUESTED {task.cancel_requested@1 task.cancelled@2 audit.recorded@2}",
     "cancel -> !STATE_CONFLICT")

LIFE(waiting_with_a_doubt_needs_review, "submit attempts=2 safety=I", "lease", "start",
     "finish UNKNOWN -> WAITING 4~ IDEMPOTENT_UNKNOWN",
     "cancel -> NEEDS_REVIEW 5~ CANCEL_REQUESTED {task.cancel_requested@4 task.review_required@5 audit.recorded@5}",
     "review FAILED rev=5 -> FAILED 6")

LIFE(leased_is_revoked_and_ends, "submit -> WAITING 1", "lease -> LEASED 2",
     "cancel -> CANCELLED 3 CANCEL_REQUESTED {task.cancel_requested@2 attempt.ended@2 task.cancelled@3 audit.recorded@3}",
     "start -> !LEASE_LOST")

LIFE(leased_with_a_doubt_needs_review, "submit attempts=2 safety=I", "lease", "start", "finish UNKNOWN", "lease -> LEASED 5~",
     "cancel -> NEEDS_REVIEW 6~ CANCEL_REQUESTED "
     "{task.cancel_requested@5 attempt.ended@5 task.review_required@6 audit.recorded@6}",
     "start -> !LEASE_LOST /attempt_id")

#define RUNNING_CANCELLED \
  "submit attempts=3", "lease", "start -> RUNNING 3", "cancel -> RUNNING 4 {task.cancel_requested@4 audit.recorded@4}"
#define IDEMPOTENT_CANCELLED "submit attempts=3 safety=I", "lease", "start -> RUNNING 3", "cancel -> RUNNING 4"
#define DOUBTFUL_CANCELLED \
  "submit attempts=3 safety=I", "lease", "start", "finish UNKNOWN", "lease", "start -> RUNNING 6~", "cancel -> RUNNING 7~"

LIFE(running_may_still_succeed, RUNNING_CANCELLED, "renew -> RUNNING 4", "finish SUCCEEDED -> SUCCEEDED 5 SUCCEEDED")
LIFE(running_confirms, RUNNING_CANCELLED,
     "finish CANCELLED -> CANCELLED 5 CANCEL_CONFIRMED {attempt.result@4 task.cancelled@5}")
LIFE(running_fails, RUNNING_CANCELLED, "finish FAILED -> FAILED 5 NON_RETRYABLE_FAILURE")
LIFE(running_fails_retryable, RUNNING_CANCELLED, "finish FAILED retryable -> FAILED 5 CANCEL_REQUESTED")
LIFE(running_unknown, RUNNING_CANCELLED, "finish UNKNOWN -> NEEDS_REVIEW 5~ RECONCILIATION_REQUIRED")
LIFE(running_silent, RUNNING_CANCELLED, "goto attempt_deadline", "expire -> NEEDS_REVIEW 5~ RECONCILIATION_REQUIRED")
LIFE(idempotent_unknown, IDEMPOTENT_CANCELLED, "finish UNKNOWN -> NEEDS_REVIEW 5~ CANCEL_REQUESTED")
LIFE(idempotent_silent, IDEMPOTENT_CANCELLED, "goto attempt_deadline", "expire -> NEEDS_REVIEW 5~ CANCEL_REQUESTED")
LIFE(doubtful_confirms, DOUBTFUL_CANCELLED, "finish CANCELLED -> NEEDS_REVIEW 8~ CANCEL_CONFIRMED")
LIFE(doubtful_fails, DOUBTFUL_CANCELLED, "finish FAILED -> NEEDS_REVIEW 8~ NON_RETRYABLE_FAILURE")
LIFE(doubtful_fails_retryable, DOUBTFUL_CANCELLED, "finish FAILED retryable -> NEEDS_REVIEW 8~ CANCEL_REQUESTED")
LIFE(doubtful_succeeds, DOUBTFUL_CANCELLED, "finish SUCCEEDED -> SUCCEEDED 8 SUCCEEDED")

LIFE(a_second_request_applies_nothing, RUNNING_CANCELLED, "cancel rev=3 -> !STATE_CONFLICT /expected_revision",
     "cancel rev=4 -> RUNNING 4 {task.cancel_requested@4 audit.recorded@4}",
     "cancel -> RUNNING 4 {task.cancel_requested@4 audit.recorded@4}",
     "finish UNKNOWN -> NEEDS_REVIEW 5~ RECONCILIATION_REQUIRED",
     "cancel -> NEEDS_REVIEW 5~ {task.cancel_requested@5 audit.recorded@5}")

/* What the log holds of older requests is folded however much it is; one more is refused at the bound. */
LIFE(requests_are_bounded, RUNNING_CANCELLED, "cancel kept=99 -> RUNNING 4 {task.cancel_requested@4 audit.recorded@4}",
     "cancel kept=100 -> !STATE_CONFLICT", "cancel kept=101 -> !STATE_CONFLICT",
     "finish UNKNOWN -> NEEDS_REVIEW 5~ RECONCILIATION_REQUIRED",
     "cancel kept=99 -> NEEDS_REVIEW 5~ {task.cancel_requested@5 audit.recorded@5}", "cancel kept=100 -> !STATE_CONFLICT")

LIFE(needs_review_records_it_and_the_review_decides, "submit", "lease", "start",
     "finish UNKNOWN -> NEEDS_REVIEW 4~ RECONCILIATION_REQUIRED", "cancel rev=5 -> !STATE_CONFLICT /expected_revision",
     "cancel rev=4 -> NEEDS_REVIEW 5~ {task.cancel_requested@5 audit.recorded@5}",
     "review SUCCEEDED rev=4 -> !STATE_CONFLICT /expected_revision", "review SUCCEEDED rev=5 -> SUCCEEDED 6",
     "cancel -> !STATE_CONFLICT")

LIFE(terminal_refuses, "submit", "lease", "start", "finish FAILED -> FAILED 4 NON_RETRYABLE_FAILURE",
     "cancel -> !STATE_CONFLICT", "cancel rev=4 -> !STATE_CONFLICT")

static void the_request_is_on_record_once(void **state) {
  (void)state;
  static const char *const lines[] = {RUNNING_CANCELLED, NULL};
  script_run(&the_world, lines);
  int64_t first = the_world.env.now_us;
  assert_int_equal(the_world.task.cancel_requested_at, first);
  assert_true(the_world.list.events[0].body.task_cancel_requested.applied);
  script_line(&the_world, "wait 1000");
  int64_t updated = the_world.task.updated_at;
  script_line(&the_world, "cancel");
  assert_false(the_world.list.events[0].body.task_cancel_requested.applied);
  assert_int_equal(the_world.task.cancel_requested_at, first);
  assert_int_equal(the_world.task.updated_at, updated);
}

static void text_equal(struct bytes text, const char *expected) {
  if (!bytes_equal_text(text, expected)) fail_msg("%.*s", (int)text.size, (const char *)text.data);
}

static void the_audit_says_what_changed(void **state) {
  (void)state;
  static const struct {
    const char *lines[8];
    const char *before, *after;
  } cases[] = {
      {{"submit", "cancel"},
       "{\"state\":\"WAITING\",\"revision\":\"1\"}",
       "{\"state\":\"CANCELLED\",\"revision\":\"2\",\"applied\":true}"},
      {{"submit", "lease", "cancel"},
       "{\"state\":\"LEASED\",\"revision\":\"2\"}",
       "{\"state\":\"CANCELLED\",\"revision\":\"3\",\"applied\":true}"},
      {{"submit", "lease", "start", "cancel"},
       "{\"state\":\"RUNNING\",\"revision\":\"3\"}",
       "{\"state\":\"RUNNING\",\"revision\":\"4\",\"applied\":true}"},
      {{"submit", "lease", "start", "cancel", "cancel"},
       "{\"state\":\"RUNNING\",\"revision\":\"4\"}",
       "{\"state\":\"RUNNING\",\"revision\":\"4\",\"applied\":false}"},
      {{"submit", "lease", "start", "finish UNKNOWN", "cancel"},
       "{\"state\":\"NEEDS_REVIEW\",\"revision\":\"4\"}",
       "{\"state\":\"NEEDS_REVIEW\",\"revision\":\"5\",\"applied\":true}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    script_run(&the_world, cases[i].lines);
    const struct event *first = &the_world.list.events[0], *last = &the_world.list.events[the_world.list.count - 1];
    const struct event_audit_recorded *audit = &last->body.audit_recorded;
    assert_int_equal(last->type, EVENT_audit_recorded);
    text_equal(audit->action, "task.cancel");
    text_equal(audit->reason, "because");
    text_equal(audit->before, cases[i].before);
    text_equal(audit->after, cases[i].after);
    assert_null(audit->evidence_ref.data);
    assert_int_equal(audit_id_seq(&audit->audit_id), last->seq);
    assert_true(id_equal(&audit->audit_id, &first->body.task_cancel_requested.audit_id));
    assert_true(id_equal(&audit->target_id, &the_world.task.id));
    assert_true(id_equal(&audit->namespace_id, &the_world.queue.namespace_id));
    assert_false(id_is_zero(&first->common.identity)); /* the first event of the operation carries its identity, no other */
    for (uint32_t k = 0; k < the_world.list.count; k++) {
      const struct event *event = &the_world.list.events[k];
      struct id credential = world_id(0xAA, 1);
      assert_int_equal(id_is_zero(&event->common.identity), k != 0);
      assert_true(id_equal(&event->common.operation_id, &the_world.env.operation_id));
      assert_true(id_equal(&event->common.actor, &credential));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(waiting_ends_at_once),
      cmocka_unit_test(waiting_with_a_doubt_needs_review),
      cmocka_unit_test(leased_is_revoked_and_ends),
      cmocka_unit_test(leased_with_a_doubt_needs_review),
      cmocka_unit_test(running_may_still_succeed),
      cmocka_unit_test(running_confirms),
      cmocka_unit_test(running_fails),
      cmocka_unit_test(running_fails_retryable),
      cmocka_unit_test(running_unknown),
      cmocka_unit_test(running_silent),
      cmocka_unit_test(idempotent_unknown),
      cmocka_unit_test(idempotent_silent),
      cmocka_unit_test(doubtful_confirms),
      cmocka_unit_test(doubtful_fails),
      cmocka_unit_test(doubtful_fails_retryable),
      cmocka_unit_test(doubtful_succeeds),
      cmocka_unit_test(a_second_request_applies_nothing),
      cmocka_unit_test(requests_are_bounded),
      cmocka_unit_test(needs_review_records_it_and_the_review_decides),
      cmocka_unit_test(terminal_refuses),
      cmocka_unit_test(the_request_is_on_record_once),
      cmocka_unit_test(the_audit_says_what_changed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
