/* The desk of a worker, message by message: what becomes of reports, of drains, of refusals, and of frames that are none. */
#include "api/sdk_desk.h"

/* ---- Refused reports ---- */

static void a_report_that_is_not_taken_becomes_an_unknown_once(void **state) {
  (void)state;
  struct rig rig;
  char first[33];
  rig_up(&rig, 4, 4);
  finish(&rig, run_one(&rig));
  flush(&rig);
  memcpy(first, rig.sent[0].message_id, sizeof first);
  refuse(&rig, first, "INVALID_ARGUMENT");
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  assert_string_equal(rig.sent[0].outcome, "UNKNOWN");
  assert_string_equal(rig.sent[0].code, "REPORT_REFUSED");
  assert_string_not_equal(rig.sent[0].message_id, first);
  refuse(&rig, rig.sent[0].message_id, "INVALID_ARGUMENT");
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  assert_int_equal(rig.desk.stats.refused, 1);
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

/* ---- Reports ---- */

static void reports_become_messages(void **state) {
  (void)state;
  struct rig rig;
  static const struct {
    int what;
    enum orbit_outcome returned;
    const char *tail; /* of the message, from the outcome on */
  } cases[] = {
      {0, ORBIT_UNKNOWN, "UNKNOWN\",\"error\":{\"code\":\"NO_REPORT\",\"message\":\"the handler returned without a report\"}}"},
      {0, ORBIT_SUCCEEDED,
       "UNKNOWN\",\"error\":{\"code\":\"NO_REPORT\",\"message\":\"the handler returned without a report\"}}"},
      {1, ORBIT_FAILED, "FAILED\",\"retryable\":true,\"error\":{\"code\":\"TEMPORARY_REJECTION\",\"details\":{\"a\":1.10}}}"},
      {1, ORBIT_UNKNOWN, "UNKNOWN\",\"error\":{\"code\":\"NO_REPORT\",\"message\":\"the handler returned without a report\"}}"},
      {2, ORBIT_FAILED, "FAILED\",\"error\":{\"code\":\"BROKEN\",\"message\":\"it \\\"broke\\\"\"}}"},
      {3, ORBIT_UNKNOWN, "UNKNOWN\",\"error\":{\"code\":\"TIMED_OUT\"}}"},
      {4, ORBIT_UNKNOWN,
       "UNKNOWN\",\"error\":{\"code\":\"INVALID_REPORT\",\"message\":\"the handler gave a result that is not JSON, null, or "
       "too "
       "large\"}}"},
      {5, ORBIT_UNKNOWN,
       "UNKNOWN\",\"error\":{\"code\":\"INVALID_REPORT\",\"message\":\"the handler confirmed a cancellation that nobody asked "
       "for\"}}"},
      {6, ORBIT_CANCELLED, "CANCELLED\",\"error\":{\"code\":\"CANCELLED\"}}"},
      {7, ORBIT_SUCCEEDED, "SUCCEEDED\",\"result\":[1e400,\"x y\"]}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    rig_up(&rig, 4, 4);
    struct sdk_held *held = run_one(&rig);
    struct orbit_report *report = &held->report;
    enum orbit_outcome said = ORBIT_UNKNOWN;
    if (cases[i].what == 6) {
      say(&rig, "{\"type\":\"task.cancel\",\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT "\",\"reason\":\"enough\"}");
      assert_true(orbit_assignment_cancelled(&held->assignment));
    }
    if (cases[i].what == 1) said = orbit_report_failure(report, "TEMPORARY_REJECTION", true, NULL, " { \"a\" : 1.10 } ", 16);
    if (cases[i].what == 2) said = orbit_report_failure(report, "BROKEN", false, "it \"broke\"", NULL, 0);
    if (cases[i].what == 3) said = orbit_report_unknown(report, "TIMED_OUT", "", NULL, 0);
    if (cases[i].what == 4) said = orbit_report_success(report, "{\"a\":1,\"a\":2}", 13);
    if (cases[i].what == 5 || cases[i].what == 6) said = orbit_report_cancelled(report, "CANCELLED", NULL);
    if (cases[i].what == 7) said = orbit_report_success(report, "[ 1e400 , \"x y\" ]", 17);
    if (cases[i].tail[0] != 'U' || cases[i].what >= 3) assert_int_equal(said, cases[i].returned);
    sdk_desk_return(&rig.desk, held, cases[i].returned, rig.now_ms);
    flush(&rig);
    const char *tail = strstr(rig.sent[0].whole, "\"outcome\":\"");
    assert_non_null(tail);
    assert_string_equal(tail + strlen("\"outcome\":\""), cases[i].tail);
    rig_down(&rig);
  }
}

/* ---- Draining and ending ---- */

static void a_drained_worker_holds_nothing(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  struct sdk_held *held = run_one(&rig);
  sdk_desk_drain(&rig.desk);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  expect_sent(&rig, 0, "worker.drain");
  say(&rig, "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true}", rig.sent[0].message_id);
  assert_false(sdk_desk_is_drained(&rig.desk));
  finish(&rig, held);
  flush(&rig);
  say(&rig,
      "[{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,\"disposition\":\"SUCCEEDED\"},"
      "{\"type\":\"worker.drained\"}]",
      rig.sent[0].message_id);
  assert_true(sdk_desk_is_drained(&rig.desk));
  rig_down(&rig);
}

static void a_drain_is_asked_for_again_after_a_break(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  sdk_desk_drain(&rig.desk);
  flush(&rig);
  expect_sent(&rig, 0, "worker.drain");
  say(&rig, "{\"type\":\"worker.drained\"}");
  assert_true(sdk_desk_is_drained(&rig.desk));
  sdk_desk_disconnected(&rig.desk);
  welcome(&rig, "");
  assert_false(sdk_desk_is_drained(&rig.desk));
  flush(&rig);
  expect_sent(&rig, 0, "worker.drain");
  rig_down(&rig);
}

static void a_server_that_goes_away_starts_nothing_more(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  say(&rig, "{\"type\":\"server.goaway\",\"reconnect_after_ms\":1234}");
  assert_true(rig.desk.goaway);
  assert_int_equal(rig.desk.reconnect_after_ms, 1234);
  assign(&rig);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  assert_true(sdk_desk_is_idle(&rig.desk));
  rig_down(&rig);
}

static void a_refused_hello_ends_the_worker(void **state) {
  static const struct {
    const char *code;
    bool ends;
  } cases[] = {{"INVALID_ARGUMENT", true}, {"NOT_FOUND", true}, {"PERMISSION_DENIED", true}, {"UNAVAILABLE", false}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct rig rig;
    rig_up(&rig, 4, 4);
    connect_to(&rig);
    refuse(&rig, rig.hello_id, cases[i].code);
    assert_int_equal(rig.desk.failed, cases[i].ends);
    assert_int_equal(rig.desk.broken, !cases[i].ends);
    if (cases[i].ends) assert_string_equal(rig.desk.failure.code, "HELLO_REFUSED");
    rig_down(&rig);
  }
}

static void bad_frames_do_no_harm(void **state) {
  static const struct {
    const char *frame;
    bool breaks;
  } cases[] = {
      {"{", true},
      {"", true},
      {"[]", false},
      {"7", false},
      {"{}", false},
      {"[1,null,\"x\"]", false},
      {"{\"type\":\"news\"}", false},
      {"{\"type\":7}", false},
      {"{\"type\":\"task.assign\"}", false},
      {"{\"type\":\"task.assign\",\"task\":{},\"attempt\":{\"attempt_id\":\"" ATTEMPT "\"}}", false},
      {"{\"type\":\"task.assign\",\"task\":7,\"attempt\":[]}", false},
      {"{\"type\":\"command.result\"}", false},
      {"{\"type\":\"command.result\",\"message_id\":\"ffffffffffffffffffffffffffffffff\",\"ok\":true}", false},
      {"{\"type\":\"command.result\",\"message_id\":\"" TASK "\",\"ok\":true}", false},
      {"{\"type\":\"attempt.ended\",\"attempt_id\":\"00000000000000000000000000000000\"}", false},
      {"{\"type\":\"task.cancel\"}", false},
      {"{\"type\":\"worker.welcome\",\"message_id\":\"" TASK "\"}", true},
      {"{\"type\":\"error\",\"error\":{\"code\":\"INVALID_ARGUMENT\",\"message\":\"no\"}}", false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct rig rig;
    rig_up(&rig, 4, 4);
    welcome(&rig, "");
    sdk_desk_receive(&rig.desk, bytes_text(cases[i].frame), rig.now_ms);
    assert_int_equal(rig.desk.broken, cases[i].breaks);
    assert_false(rig.desk.failed);
    assert_int_equal(rig.desk.held_count, 0);
    flush(&rig);
    assert_int_equal(rig.sent_count, 0);
    rig_down(&rig);
  }
}

/* ---- Frames ---- */

static void many_messages_share_frames_within_the_bounds(void **state) {
  (void)state;
  struct rig rig;
  enum { tasks = 60 };
  rig_up(&rig, tasks, tasks);
  welcome(&rig, "");
  for (int i = 0; i < tasks; i++) {
    char task[33], attempt[33];
    (void)snprintf(task, sizeof task, "%032x", 0xb000 + i);
    (void)snprintf(attempt, sizeof attempt, "%032x", 0xc000 + i);
    assign_as(&rig, task, attempt, "text.normalize", 30000);
  }
  flush(&rig);
  assert_int_equal(rig.sent_count, tasks);
  assert_int_equal(rig.frames, 1);
  for (int i = 0; i < tasks; i++) grant(&rig, rig.sent[i].message_id);

  /* Results of 200,000 bytes: two fit a frame of 512 KiB, three do not. */
  cleanup(buffer_clear) struct buffer result;
  buffer_init(&result, 200000);
  buffer_append_char(&result, '"');
  for (int i = 0; i < 199998; i++) buffer_append_char(&result, 'x');
  buffer_append_char(&result, '"');
  for (int i = 0; i < 5; i++) {
    struct sdk_held *held = sdk_desk_take(&rig.desk);
    enum orbit_outcome said = orbit_report_success(&held->report, (const char *)result.data, result.size);
    assert_int_equal(said, ORBIT_SUCCEEDED);
    sdk_desk_return(&rig.desk, held, said, rig.now_ms);
  }
  flush(&rig);
  assert_int_equal(rig.sent_count, 5);
  assert_int_equal(rig.frames, 3);
  rig_down(&rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_report_that_is_not_taken_becomes_an_unknown_once),
      cmocka_unit_test(reports_become_messages),
      cmocka_unit_test(a_drained_worker_holds_nothing),
      cmocka_unit_test(a_drain_is_asked_for_again_after_a_break),
      cmocka_unit_test(a_server_that_goes_away_starts_nothing_more),
      cmocka_unit_test(a_refused_hello_ends_the_worker),
      cmocka_unit_test(bad_frames_do_no_harm),
      cmocka_unit_test(many_messages_share_frames_within_the_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
