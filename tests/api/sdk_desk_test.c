/* The desk of a worker, message by message: what is sent, when a handler may run, how leases are kept, and what is repeated
 * after a broken connection. */
#include "api/sdk_desk.h"

/* ---- The ordinary course ---- */

static void hello_says_who_and_what(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  assert_false(sdk_desk_has_output(&rig.desk));
  connect_to(&rig);
  char expected[text_max];
  (void)snprintf(expected, sizeof expected,
                 "{\"type\":\"worker.hello\",\"message_id\":\"%s\",\"instance_id\":\"000000000000000000000000000000d1\","
                 "\"queue_ids\":[\"" QUEUE
                 "\"],\"handlers\":[{\"handler\":\"text.normalize\",\"handler_version\":\"v1\"}],"
                 "\"capacity\":4}",
                 rig.hello_id);
  assert_string_equal(rig.sent[0].whole, expected);
  rig_down(&rig);
}

static void a_handler_runs_with_a_start_grant_alone(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  assert_null(sdk_desk_take(&rig.desk));
  flush(&rig);
  expect_sent(&rig, 0, "task.start");
  assert_null(sdk_desk_take(&rig.desk));
  grant(&rig, rig.sent[0].message_id);
  struct sdk_held *held = sdk_desk_take(&rig.desk);
  assert_non_null(held);
  assert_null(sdk_desk_take(&rig.desk));
  assert_string_equal(held->assignment.task_id, TASK);
  assert_string_equal(held->assignment.attempt_id, ATTEMPT);
  assert_string_equal(held->assignment.payload, "{\"n\":9007199254740993}");
  assert_int_equal(held->assignment.epoch, 7);
  assert_int_equal(held->assignment.number, 1);
  assert_false(held->assignment.effect_uncertain);

  finish(&rig, held);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  char expected[text_max];
  (void)snprintf(expected, sizeof expected,
                 "{\"type\":\"task.finish\",\"message_id\":\"%s\",\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                 "\",\"epoch\":\"7\",\"outcome\":\"SUCCEEDED\",\"result\":{\"ok\":true}}",
                 rig.sent[0].message_id);
  assert_string_equal(rig.sent[0].whole, expected);
  assert_int_equal(rig.desk.stats.confirmed, 0);
  confirm(&rig, rig.sent[0].message_id, "SUCCEEDED");
  assert_int_equal(rig.desk.stats.started, 1);
  assert_int_equal(rig.desk.stats.confirmed, 1);
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

static void a_refused_start_runs_nothing(void **state) {
  static const char *const codes[] = {"LEASE_LOST", "STATE_CONFLICT", "NOT_FOUND", "IDEMPOTENCY_CONFLICT"};
  (void)state;
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    struct rig rig;
    rig_up(&rig, 4, 4);
    welcome(&rig, "");
    assign(&rig);
    flush(&rig);
    refuse(&rig, rig.sent[0].message_id, codes[i]);
    assert_null(sdk_desk_take(&rig.desk));
    assert_int_equal(rig.desk.held_count, 0);
    assert_int_equal(rig.desk.stats.start_refused, 1);
    rig_down(&rig);
  }
}

static void an_old_grant_without_a_lease_runs_nothing(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  flush(&rig);
  say(&rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,\"deduplicated\":true,"
      "\"lease\":{\"active\":false}}",
      rig.sent[0].message_id);
  assert_null(sdk_desk_take(&rig.desk));
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

static void a_refusal_for_now_is_asked_again_with_the_same_id(void **state) {
  (void)state;
  struct rig rig;
  char first[33];
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  flush(&rig);
  memcpy(first, rig.sent[0].message_id, sizeof first);
  say(&rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":false,\"applied\":false,"
      "\"error\":{\"code\":\"UNAVAILABLE\",\"message\":\"no\",\"retry_after_ms\":700}}",
      first);
  rig.now_ms += 699;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  assert_int_equal(rig.desk.next_due_ms, rig.now_ms + 1);
  rig.now_ms += 1;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  expect_sent(&rig, 0, "task.start");
  assert_string_equal(rig.sent[0].message_id, first);
  rig_down(&rig);
}

/* ---- Threads ---- */

static void attempts_without_a_thread_wait_unstarted(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 1);
  welcome(&rig, "");
  assign(&rig);
  assign_as(&rig, OTHER_TASK, OTHER_ATTEMPT, "text.normalize", 30000);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  assert_string_equal(rig.sent[0].attempt_id, ATTEMPT);
  grant(&rig, rig.sent[0].message_id);
  finish(&rig, sdk_desk_take(&rig.desk));
  flush(&rig);
  assert_int_equal(rig.sent_count, 2);
  assert_int_equal(rig.frames, 1);
  expect_sent(&rig, 0, "task.finish");
  expect_sent(&rig, 1, "task.start");
  assert_string_equal(rig.sent[1].attempt_id, OTHER_ATTEMPT);
  rig_down(&rig);
}

static void what_no_handler_is_for_is_given_back(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign_as(&rig, TASK, ATTEMPT, "text.other", 30000);
  flush(&rig);
  expect_sent(&rig, 0, "task.release");
  confirm(&rig, rig.sent[0].message_id, "UNSTARTED_RELEASED");
  assert_int_equal(rig.desk.stats.released, 1);
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

/* ---- Leases ---- */

static void leases_are_renewed_at_a_third(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  (void)run_one(&rig);
  sdk_desk_tick(&rig.desk, rig.now_ms);
  /* The attempt ends after 10 s, before the lease does: no renewal could reach further. */
  assert_int_equal(rig.desk.next_due_ms, INT64_MAX);
  rig_down(&rig);

  rig_up(&rig, 4, 1);
  welcome(&rig, "");
  assign(&rig);
  assign_as(&rig, OTHER_TASK, OTHER_ATTEMPT, "text.normalize", 30000);
  flush(&rig);
  rig.now_ms += 9999;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  rig.now_ms += 1;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  assert_int_equal(rig.sent_count, 2);
  expect_sent(&rig, 0, "task.renew");
  expect_sent(&rig, 1, "task.renew");
  int64_t asked_ms = rig.now_ms;
  rig.now_ms += 250;
  say(&rig, "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,\"lease\":{\"active\":true}}",
      rig.sent[1].message_id);
  /* The lease counts from the moment that the renewal was asked for. */
  for (uint32_t slot = 0; slot < rig.desk.slot_count; slot++) {
    const struct sdk_held *held = rig.desk.slots[slot];
    if (held == NULL || strcmp(held->assignment.attempt_id, OTHER_ATTEMPT) != 0) continue;
    assert_int_equal(held->lease_end_ms, asked_ms + 30000);
    assert_int_equal(held->renew_at_ms, asked_ms + 10000);
  }
  rig_down(&rig);
}

static void a_report_after_the_lease_is_an_unknown(void **state) {
  static const struct {
    const char *what;
    int64_t after_ms;
    bool ended;
    const char *outcome;
  } cases[] = {
      {"in time", 9999, false, "SUCCEEDED"},
      {"the attempt's time is over", 10000, false, "UNKNOWN"},
      {"Orbit has ended it", 1, true, "UNKNOWN"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    print_message("%s\n", cases[i].what);
    struct rig rig;
    rig_up(&rig, 4, 4);
    struct sdk_held *held = run_one(&rig);
    rig.now_ms += cases[i].after_ms;
    if (cases[i].ended) {
      say(&rig,
          "{\"type\":\"attempt.ended\",\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT "\",\"ended_by\":\"REVOKED\"}");
    }
    finish(&rig, held);
    flush(&rig);
    expect_sent(&rig, 0, "task.finish");
    assert_string_equal(rig.sent[0].outcome, cases[i].outcome);
    bool late = strcmp(cases[i].outcome, "UNKNOWN") == 0;
    assert_int_equal(rig.desk.stats.lost, late ? 1 : 0);
    if (late) {
      assert_string_equal(rig.sent[0].code, "LEASE_LOST");
      assert_non_null(
          strstr(rig.sent[0].whole, "\"details\":{\"handler_outcome\":\"SUCCEEDED\",\"handler_result\":{\"ok\":true}}"));
      confirm(&rig, rig.sent[0].message_id, "EVIDENCE");
      assert_int_equal(rig.desk.stats.evidence, 1);
    }
    rig_down(&rig);
  }
}

/* The attempt's time runs from its start grant, also where the grant's answer was lost and came with a repeat; a start that was
 * lost itself began nothing. */
static void a_repeated_start_gives_no_more_time(void **state) {
  (void)state;
  for (unsigned granted = 0; granted < 2; granted++) {
    struct rig rig;
    char attempts[256], expires[32];
    rig_up(&rig, 4, 4);
    welcome(&rig, "");
    assign(&rig); /* 10 s for the attempt */
    flush(&rig);
    expect_sent(&rig, 0, "task.start");
    sdk_desk_disconnected(&rig.desk);
    rig.now_ms += 4000;
    (void)snprintf(attempts, sizeof attempts,
                   "{\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                   "\",\"number\":1,\"epoch\":\"7\",\"state\":\"%s\",\"lease_expires_at\":\"%s\"}",
                   granted ? "RUNNING" : "LEASED", server_time(&rig, 26000, expires));
    welcome(&rig, attempts);
    flush(&rig);
    expect_sent(&rig, 0, "task.start");
    grant(&rig, rig.sent[0].message_id);
    struct sdk_held *held = sdk_desk_take(&rig.desk);
    assert_non_null(held);
    assert_int_equal(atomic_load(&held->authority_end_ms) - rig.now_ms, granted ? 6000 : 10000);
    finish(&rig, held);
    rig_down(&rig);
  }
}

static void a_lost_renewal_is_seen_by_the_handler(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  struct sdk_held *held = run_one(&rig);
  atomic_store(&held->authority_end_ms, INT64_MAX);
  assert_false(orbit_assignment_lost(&held->assignment));
  held->attempt_end_ms = INT64_MAX; /* so that there is something to renew */
  rig.now_ms += 10000;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  expect_sent(&rig, 0, "task.renew");
  refuse(&rig, rig.sent[0].message_id, "LEASE_LOST");
  assert_true(orbit_assignment_lost(&held->assignment));
  assert_int_equal(orbit_assignment_remaining_ms(&held->assignment), 0);
  rig_down(&rig);
}

/* ---- Broken connections ---- */

static void an_unanswered_start_is_repeated_as_it_was(void **state) {
  (void)state;
  struct rig rig;
  char first[33], expires[32], attempts[text_max];
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  flush(&rig);
  memcpy(first, rig.sent[0].message_id, sizeof first);
  sdk_desk_disconnected(&rig.desk);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  rig.now_ms += 2000;
  (void)snprintf(attempts, sizeof attempts,
                 "{\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                 "\",\"number\":1,\"epoch\":\"7\",\"state\":\"LEASED\",\"lease_expires_at\":\"%s\"}",
                 server_time(&rig, 28000, expires));
  welcome(&rig, attempts);
  assign(&rig); /* it has not started, so it is assigned again */
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  expect_sent(&rig, 0, "task.start");
  assert_string_equal(rig.sent[0].message_id, first);
  assert_int_equal(rig.desk.stats.assigned, 1);
  grant(&rig, first);
  assert_non_null(sdk_desk_take(&rig.desk));
  assert_null(sdk_desk_take(&rig.desk));
  assert_int_equal(rig.desk.stats.connections, 2);
  rig_down(&rig);
}

static void an_unanswered_report_is_repeated_as_it_was(void **state) {
  static const bool cases_still_held[] = {true, false};
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    struct rig rig;
    struct sent first;
    char expires[32], attempts[text_max] = "";
    rig_up(&rig, 4, 4);
    finish(&rig, run_one(&rig));
    flush(&rig);
    expect_sent(&rig, 0, "task.finish");
    first = rig.sent[0];
    sdk_desk_disconnected(&rig.desk);
    if (cases_still_held[i]) {
      (void)snprintf(attempts, sizeof attempts,
                     "{\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                     "\",\"number\":1,\"epoch\":\"7\",\"state\":\"RUNNING\",\"lease_expires_at\":\"%s\"}",
                     server_time(&rig, 28000, expires));
    }
    welcome(&rig, attempts);
    flush(&rig);
    assert_int_equal(rig.sent_count, 1);
    assert_string_equal(rig.sent[0].whole, first.whole);
    confirm(&rig, first.message_id, "SUCCEEDED");
    assert_int_equal(rig.desk.stats.confirmed, 1);
    confirm(&rig, first.message_id, "SUCCEEDED"); /* a late second answer counts once */
    assert_int_equal(rig.desk.stats.confirmed, 1);
    rig_down(&rig);
  }
}

static void a_handler_may_return_while_the_connection_is_broken(void **state) {
  (void)state;
  struct rig rig;
  char expires[32], attempts[text_max];
  rig_up(&rig, 4, 4);
  struct sdk_held *held = run_one(&rig);
  sdk_desk_disconnected(&rig.desk);
  finish(&rig, held);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  (void)snprintf(attempts, sizeof attempts,
                 "{\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                 "\",\"number\":1,\"epoch\":\"7\",\"state\":\"RUNNING\",\"lease_expires_at\":\"%s\"}",
                 server_time(&rig, 28000, expires));
  welcome(&rig, attempts);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  expect_sent(&rig, 0, "task.finish");
  assert_string_equal(rig.sent[0].outcome, "SUCCEEDED");
  rig_down(&rig);
}

static void what_the_welcome_does_not_name_is_lost(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 1);
  struct sdk_held *held = run_one(&rig);
  assign_as(&rig, OTHER_TASK, OTHER_ATTEMPT, "text.normalize", 30000); /* waits for the thread */
  sdk_desk_disconnected(&rig.desk);
  welcome(&rig, "");
  assert_true(orbit_assignment_lost(&held->assignment));
  assert_int_equal(rig.desk.held_count, 1);
  finish(&rig, held);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  assert_string_equal(rig.sent[0].outcome, "UNKNOWN");
  rig_down(&rig);
}

static void an_attempt_of_an_earlier_run_is_not_run(void **state) {
  (void)state;
  struct rig rig;
  char expires[32], attempts[text_max];
  rig_up(&rig, 4, 4);
  (void)snprintf(attempts, sizeof attempts,
                 "{\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                 "\",\"number\":1,\"epoch\":\"7\",\"state\":\"RUNNING\",\"lease_expires_at\":\"%s\"}",
                 server_time(&rig, 28000, expires));
  welcome(&rig, attempts);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  assert_null(sdk_desk_take(&rig.desk));
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

static void a_server_that_does_not_answer_is_left(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  flush(&rig);
  rig.now_ms += 29999;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  assert_false(rig.desk.broken);
  rig.now_ms += 1;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  assert_true(rig.desk.broken);
  rig_down(&rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hello_says_who_and_what),
      cmocka_unit_test(a_handler_runs_with_a_start_grant_alone),
      cmocka_unit_test(a_refused_start_runs_nothing),
      cmocka_unit_test(an_old_grant_without_a_lease_runs_nothing),
      cmocka_unit_test(a_refusal_for_now_is_asked_again_with_the_same_id),
      cmocka_unit_test(attempts_without_a_thread_wait_unstarted),
      cmocka_unit_test(what_no_handler_is_for_is_given_back),
      cmocka_unit_test(leases_are_renewed_at_a_third),
      cmocka_unit_test(a_report_after_the_lease_is_an_unknown),
      cmocka_unit_test(a_repeated_start_gives_no_more_time),
      cmocka_unit_test(a_lost_renewal_is_seen_by_the_handler),
      cmocka_unit_test(an_unanswered_start_is_repeated_as_it_was),
      cmocka_unit_test(an_unanswered_report_is_repeated_as_it_was),
      cmocka_unit_test(a_handler_may_return_while_the_connection_is_broken),
      cmocka_unit_test(what_the_welcome_does_not_name_is_lost),
      cmocka_unit_test(an_attempt_of_an_earlier_run_is_not_run),
      cmocka_unit_test(a_server_that_does_not_answer_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
