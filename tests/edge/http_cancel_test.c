/* Cancel over HTTP at every step of a task's life; late reports after a review; and that one truthful outcome comes of a cancel
 * that races with a report. */
#include "edge/http_people.h"

static struct reply reply;

#define CANCEL "{\"reason\":\"not wanted any more\"}"
#define REVIEW                                                                                       \
  "{\"expected_revision\":\"4\",\"reason\":\"r\",\"evidence_ref\":\"e\",\"execution_settled\":true," \
  "\"outcome\":\"FAILED\",\"result\":{}}"

static void cancel(struct server *server, const char *id, const char *key, const char *body) {
  client_post(&server->fixture, TOKEN_PEOPLE, key, task_target(id, ":cancel").text, body, &reply);
}

/* The answer of a cancel: the task's state and revision, and whether it was the first. */
static void expect_cancelled(const char *task_state, const char *revision, bool applied, bool deduplicated) {
  assert_int_equal(reply.status, 200);
  assert_string_equal(reply_text(&reply, "state"), task_state);
  assert_string_equal(reply_text(&reply, "revision"), revision);
  assert_non_null(reply_text(&reply, "audit_id"));
  assert_int_equal(count_of(&reply, applied ? ",\"applied\":true," : ",\"applied\":false,"), 1);
  assert_int_equal(count_of(&reply, deduplicated ? "\"deduplicated\":true}" : "\"deduplicated\":false}"), 1);
}

static void test_waiting(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], audit[id_chars + 1];
  struct slot_texts seen = {{""}};
  submit_task(server, "waiting", id);
  cancel(server, id, "c", CANCEL);
  expect_body(
      &reply, 200,
      "{\"request_id\":\"@i\",\"data\":{\"task\":{\"id\":\"@0\",\"namespace_id\":\"@i\",\"queue_id\":\"@i\",\"state\":"
      "\"CANCELLED\","
      "\"revision\":\"2\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":{},"
      "\"available_at\":\"@t\",\"deadline_at\":\"@t\",\"recovery_safety\":\"RECONCILE_ONLY\",\"retry\":{\"max_attempts\":1,"
      "\"initial_delay_ms\":0,\"max_delay_ms\":0,\"attempt_timeout_ms\":60000},\"attempt_count\":0,"
      "\"cancel_requested_at\":\"@1\",\"completed_at\":\"@1\",\"created_at\":\"@t\",\"updated_at\":\"@1\"},"
      "\"audit_id\":\"@2\",\"applied\":true,\"deduplicated\":false}}",
      &seen);
  assert_string_equal(seen.text[0], id);
  text_keep(audit, sizeof audit, seen.text[2]);
  cancel(server, id, "other", CANCEL);
  expect_code(&reply, 409, "STATE_CONFLICT"); /* it is over */
  server_restart(server);
  cancel(server, id, "c", CANCEL);
  expect_cancelled("CANCELLED", "2", true, true);
  assert_string_equal(reply_text(&reply, "audit_id"), audit);
  cancel(server, id, "c", "{\"reason\":\"something else\"}");
  expect_code(&reply, 409, "IDEMPOTENCY_CONFLICT");
}

static void test_leased(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], next[id_chars + 1];
  worker_hello(server, "h", "1");
  submit_task(server, "leased", id);
  (void)worker_take(server);
  submit_task(server, "next", next);
  cancel(server, id, "c", CANCEL);
  expect_cancelled("CANCELLED", "3", true, false);
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/attempts").text, &reply);
  assert_string_equal(reply_text(&reply, "state"), "REVOKED");
  /* The slot is free at once. */
  struct attempt_ref ref = worker_take(server);
  assert_string_equal(id_text(&ref.task_id).text, next);
}

static void test_running(void **state) {
  static const struct {
    enum outcome outcome;
    bool retryable;
    const char *state;
  } cases[] = {
      {OUTCOME_CANCELLED, false, "CANCELLED"},
      {OUTCOME_SUCCEEDED, false, "SUCCEEDED"},
      {OUTCOME_FAILED, true, "FAILED"}, /* nothing is tried again */
      {OUTCOME_UNKNOWN, false, "NEEDS_REVIEW"},
  };
  struct server *server = *state;
  char id[id_chars + 1], key[32];
  worker_hello(server, "h", "1");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    (void)snprintf(key, sizeof key, "running-%zu", i);
    client_submit(&server->fixture, TOKEN_PEOPLE, key,
                  "{\"queue_id\":\"" QUEUE_A
                  "\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":{},"
                  "\"task_timeout_ms\":60000,\"retry\":{\"max_attempts\":5},\"recovery_safety\":\"IDEMPOTENT\"}",
                  &reply);
    text_keep(id, sizeof id, reply_text(&reply, "id"));
    struct attempt_ref ref = worker_take(server);
    worker_start(server, ref);
    cancel(server, id, "c", CANCEL);
    expect_cancelled("RUNNING", "4", true, false);
    assert_non_null(reply_text(&reply, "cancel_requested_at"));
    while (server->cancel == NULL) (void)worker_wait(server);
    assert_true(id_equal(&server->cancel->attempt_id, &ref.attempt_id));
    assert_true(bytes_equal_text(server->cancel->reason, "not wanted any more"));
    push_free(server->cancel);
    server->cancel = NULL;
    cancel(server, id, "again", CANCEL);
    expect_cancelled("RUNNING", "4", false, false);
    assert_true(worker_report(server, ref, cases[i].outcome, cases[i].retryable).applied);
    expect_task(server, id, cases[i].state, "5");
    cancel(server, id, "again", CANCEL); /* as it stood then */
    expect_cancelled("RUNNING", "4", false, true);
    /* Both requests are on record, the second that changed nothing too. */
    client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/operations").text, &reply);
    assert_int_equal(count_of(&reply, "\"action\":\"task.cancel\""), 2);
  }
}

static void test_needs_review(void **state) {
  struct server *server = *state;
  char id[id_chars + 1];
  worker_hello(server, "h", "1");
  submit_task(server, "review", id);
  (void)worker_run(server, OUTCOME_UNKNOWN, false);
  cancel(server, id, "c", "{\"reason\":\"r\",\"expected_revision\":\"3\"}");
  expect_code(&reply, 409, "STATE_CONFLICT");
  cancel(server, id, "c", "{\"reason\":\"r\",\"expected_revision\":\"4\"}");
  expect_cancelled("NEEDS_REVIEW", "5", true, false);
  client_post(&server->fixture, TOKEN_PEOPLE, "r", task_target(id, ":review").text, REVIEW, &reply);
  expect_code(&reply, 409, "STATE_CONFLICT"); /* the cancel was a revision */
  expect_task(server, id, "NEEDS_REVIEW", "5");
}

static void test_fields(void **state) {
  static const struct {
    const char *body, *field;
  } cases[] = {
      {"{}", "/reason"},
      {"{\"reason\":\"\"}", "/reason"},
      {"{\"reason\":\" \\t\"}", "/reason"},
      {"{\"reason\":\"a\\u0000\"}", "/reason"},
      {"{\"reason\":null}", "/reason"},
      {"{\"reason\":\"r\",\"expected_revision\":\"0\"}", "/expected_revision"},
      {"{\"reason\":\"r\",\"expected_revision\":\"01\"}", "/expected_revision"},
      {"{\"reason\":\"r\",\"expected_revision\":1}", "/expected_revision"},
      {"{\"reason\":\"r\",\"expected_revision\":null}", "/expected_revision"},
      {"{\"reason\":\"r\",\"evidence_ref\":\"e\"}", "/evidence_ref"},
      {"{\"reason\":\"r\",\"reason\":\"r\"}", "/reason"},
      {"[]", ""},
  };
  struct server *server = *state;
  char id[id_chars + 1];
  submit_task(server, "fields", id);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cancel(server, id, "c", cases[i].body);
    expect_refusal(&reply, 400, "INVALID_ARGUMENT", cases[i].field[0] != '\0' ? cases[i].field : NULL);
  }
  expect_task(server, id, "WAITING", "1");
}

/* A report that comes after the review is evidence: it changes nothing, and the doubtful attempt stays as it was. */
static void test_late_report(void **state) {
  struct server *server = *state;
  char id[id_chars + 1];
  worker_hello(server, "h", "1");
  submit_task(server, "late", id);
  struct attempt_ref ref = worker_run(server, OUTCOME_UNKNOWN, false);
  client_post(&server->fixture, TOKEN_PEOPLE, "r", task_target(id, ":review").text, REVIEW, &reply);
  assert_int_equal(reply.status, 200);
  struct worker_result late = worker_report(server, ref, OUTCOME_SUCCEEDED, false);
  assert_true(late.evidence);
  assert_false(late.applied);
  expect_task(server, id, "FAILED", "5");
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/evidence").text, &reply);
  assert_int_equal(count_of(&reply, "\"reason\":\"CONFLICTING_REPORT\",\"outcome\":\"SUCCEEDED\""), 1);
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/attempts").text, &reply);
  assert_string_equal(reply_text(&reply, "state"), "UNKNOWN");
  assert_string_equal(reply_text(&reply, "outcome"), "UNKNOWN");
  /* The review's event names that attempt. */
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/events").text, &reply);
  const char *reviewed = strstr(reply_body(&reply), "\"type\":\"task.reviewed\"");
  assert_non_null(reviewed);
  char named[64];
  (void)snprintf(named, sizeof named, "\"attempt_id\":\"%s\"", id_text(&ref.attempt_id).text);
  assert_non_null(strstr(reviewed, named));
}

/* A cancel and a report at the same time: whichever was first, the outcome is one that both answers and the record agree on. */
static void test_race(void **state) {
  enum { rounds = 20 };
  struct server *server = *state;
  char id[id_chars + 1], key[32];
  worker_hello(server, "h", "1");
  for (unsigned i = 0; i < rounds; i++) {
    (void)snprintf(key, sizeof key, "race-%u", i);
    submit_task(server, key, id);
    struct attempt_ref ref = worker_take(server);
    worker_start(server, ref);
    int fd = client_connect(&server->fixture);
    client_send_write(fd, "POST", TOKEN_PEOPLE, "c", task_target(id, ":cancel").text, CANCEL);
    bool applied = worker_report(server, ref, OUTCOME_SUCCEEDED, false).applied;
    client_receive(fd, &reply);
    guard_close(&fd);
    assert_true(applied); /* a success stays a success */
    if (reply.status == 409) {
      expect_task(server, id, "SUCCEEDED", "4");
    } else {
      expect_cancelled("RUNNING", "4", true, false);
      expect_task(server, id, "SUCCEEDED", "5");
    }
  }
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_waiting, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_leased, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_running, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_needs_review, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_fields, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_late_report, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_race, server_open, server_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
