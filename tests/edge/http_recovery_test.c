/* Review and manual retry over HTTP: the two examples field by field, every field rule at its boundary with the task untouched,
 * what states and revisions allow, races, repeats after a restart. */
#define REPLY_BYTES (1024 * 1024)
#include "edge/http_people.h"

static struct reply reply; /* large */

/* ---- The two examples ---- */

#define EXAMPLE_TASK                                                                                                        \
  "{\"queue_id\":\"" QUEUE_A                                                                                                \
  "\",\"handler\":\"object.prepare\",\"handler_version\":\"v1\",\"payload_version\":\"v1\","                                \
  "\"payload\":{\"object_ref\":\"objects/input\",\"sequence\":9007199254740993},\"business_key\":\"object:operation-001\"," \
  "\"task_timeout_ms\":60000,\"retry\":{\"attempt_timeout_ms\":10000}}"

#define EXAMPLE_REVIEW                                                                                  \
  "{\"expected_revision\":\"4\",\"reason\":\"已核实旧执行全部结束，操作未完成\","       \
  "\"evidence_ref\":\"evidence:reconciliation-001\",\"execution_settled\":true,\"outcome\":\"FAILED\"," \
  "\"result\":{\"confirmed\":true,\"sequence\":9007199254740993}}"
/* The same meaning in other order and with white space. */
#define EXAMPLE_REVIEW_AGAIN                                                                     \
  "{ \"result\" : { \"sequence\":9007199254740993, \"confirmed\":true },\"outcome\":\"FAILED\"," \
  "\"execution_settled\":true,\"evidence_ref\":\"evidence:reconciliation-001\","                 \
  "\"reason\":\"\\u5df2核实旧执行全部结束，操作未完成\",\"expected_revision\":\"4\"}"

#define EXAMPLE_RETRY                                                                                            \
  "{\"expected_revision\":\"5\",\"reason\":\"已核实旧执行不会继续产生效果，允许重新执行\"," \
  "\"evidence_ref\":\"evidence:safe-retry-001\",\"safe_to_retry\":true,\"task_timeout_ms\":60000}"

#define EXAMPLE_WORK                                                                                                        \
  "\"handler\":\"object.prepare\",\"handler_version\":\"v1\",\"payload_version\":\"v1\","                                   \
  "\"payload\":{\"object_ref\":\"objects/input\",\"sequence\":9007199254740993},\"business_key\":\"object:operation-001\"," \
  "\"available_at\":\"@t\",\"deadline_at\":\"@t\",\"recovery_safety\":\"RECONCILE_ONLY\","                                  \
  "\"retry\":{\"max_attempts\":1,\"initial_delay_ms\":0,\"max_delay_ms\":0,\"attempt_timeout_ms\":10000},"
#define EXAMPLE_OWNER "\"namespace_id\":\"0000018bcfe568000000000000000100\",\"queue_id\":\"" QUEUE_A "\","

/* Slots: 0 task, 1 audit of the review, 2 its time, 3 its operation, 4 child, 5 audit of the retry, 6 its time, 7 its
 * operation. */
#define REVIEWED(deduplicated)                                                                                 \
  "{\"request_id\":\"@i\",\"data\":{\"task\":{\"id\":\"@0\"," EXAMPLE_OWNER                                    \
  "\"state\":\"FAILED\",\"revision\":\"5\"," EXAMPLE_WORK                                                      \
  "\"attempt_count\":1,\"result\":{\"confirmed\":true,\"sequence\":9007199254740993},\"completed_at\":\"@2\"," \
  "\"created_at\":\"@t\",\"updated_at\":\"@2\"},\"audit_id\":\"@1\",\"deduplicated\":" deduplicated "}}"
#define RETRIED(deduplicated)                                                                         \
  "{\"request_id\":\"@i\",\"data\":{\"source_task_id\":\"@0\",\"task\":{\"id\":\"@4\"," EXAMPLE_OWNER \
  "\"state\":\"WAITING\",\"revision\":\"1\"," EXAMPLE_WORK                                            \
  "\"attempt_count\":0,\"created_at\":\"@6\",\"updated_at\":\"@6\","                                  \
  "\"retry_of\":\"@0\"},\"audit_id\":\"@5\",\"deduplicated\":" deduplicated "}}"

#define CREDENTIAL_PEOPLE "0000018bcfe568000000000000000c11"
#define RETRY_SUMMARY                                                                          \
  "\"id\":\"@5\",\"task_id\":\"@0\",\"operation_id\":\"@7\",\"actor_id\":\"" CREDENTIAL_PEOPLE \
  "\",\"action\":\"task.retry\","                                                              \
  "\"created_at\":\"@6\""
#define REVIEW_SUMMARY                                                                         \
  "\"id\":\"@1\",\"task_id\":\"@0\",\"operation_id\":\"@3\",\"actor_id\":\"" CREDENTIAL_PEOPLE \
  "\",\"action\":\"task.review\","                                                             \
  "\"created_at\":\"@2\""

static void check_operations(struct server *server, struct slot_texts *seen) {
  char target[256];
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(seen->text[0], "/operations?limit=2").text, &reply);
  expect_body(&reply, 200,
              "{\"request_id\":\"@i\",\"data\":{\"items\":[{" RETRY_SUMMARY "},{" REVIEW_SUMMARY "}],\"next_cursor\":\"@c\"}}",
              seen);
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/operations/%s", seen->text[0], seen->text[5]);
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
  expect_body(
      &reply, 200,
      "{\"request_id\":\"@i\",\"data\":{" RETRY_SUMMARY
      ",\"reason\":\"已核实旧执行不会继续产生效果，允许重新执行\",\"evidence_ref\":\"evidence:safe-retry-001\","
      "\"before\":{\"state\":\"FAILED\",\"revision\":\"5\"},"
      "\"after\":{\"source_task_id\":\"@0\",\"retry_task_id\":\"@4\",\"safe_to_retry\":true,\"task_timeout_ms\":60000}}}",
      seen);
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/operations/%s", seen->text[0], seen->text[1]);
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
  expect_body(&reply, 200,
              "{\"request_id\":\"@i\",\"data\":{" REVIEW_SUMMARY
              ",\"reason\":\"已核实旧执行全部结束，操作未完成\",\"evidence_ref\":\"evidence:reconciliation-001\","
              "\"before\":{\"state\":\"NEEDS_REVIEW\",\"revision\":\"4\"},"
              "\"after\":{\"state\":\"FAILED\",\"revision\":\"5\",\"effect_uncertain\":false,\"execution_settled\":true,"
              "\"result_digest\":\"xxh3-128:@i\"}}}",
              seen);
}

static void test_examples(void **state) {
  struct server *server = *state;
  struct fixture *fixture = &server->fixture;
  struct slot_texts seen = {{""}};
  worker_hello(server, "object.prepare", "v1");
  client_submit(fixture, TOKEN_PEOPLE, "example", EXAMPLE_TASK, &reply);
  expect_body(&reply, 201,
              "{\"request_id\":\"@i\",\"data\":{\"task\":{\"id\":\"@0\"," EXAMPLE_OWNER
              "\"state\":\"WAITING\",\"revision\":\"1\"," EXAMPLE_WORK
              "\"attempt_count\":0,\"created_at\":\"@t\",\"updated_at\":\"@t\"},\"deduplicated\":false}}",
              &seen);
  (void)worker_run(server, OUTCOME_UNKNOWN, false);
  expect_task(server, seen.text[0], "NEEDS_REVIEW", "4");

  struct target_text review = task_target(seen.text[0], ":review"), retry = task_target(seen.text[0], ":retry");
  client_post(fixture, TOKEN_PEOPLE, "review-1", review.text, EXAMPLE_REVIEW, &reply);
  expect_body(&reply, 200, REVIEWED("false"), &seen);
  client_post(fixture, TOKEN_PEOPLE, "review-1", review.text, EXAMPLE_REVIEW_AGAIN, &reply);
  expect_body(&reply, 200, REVIEWED("true"), &seen);

  /* The worker is free: the child is leased in the commit that makes it, and the answer is of its acceptance all the same. */
  client_post(fixture, TOKEN_PEOPLE, "retry-1", retry.text, EXAMPLE_RETRY, &reply);
  expect_body(&reply, 201, RETRIED("false"), &seen);
  (void)worker_run(server, OUTCOME_SUCCEEDED, false);
  expect_task(server, seen.text[4], "SUCCEEDED", "4");
  client_post(fixture, TOKEN_PEOPLE, "retry-1", retry.text, EXAMPLE_RETRY, &reply);
  expect_body(&reply, 200, RETRIED("true"), &seen);
  expect_task(server, seen.text[0], "FAILED", "5"); /* a retry leaves the original as it was */
  check_operations(server, &seen);

  /* Answers and records are the same from the log alone. */
  server_restart(server);
  client_post(fixture, TOKEN_PEOPLE, "review-1", review.text, EXAMPLE_REVIEW, &reply);
  expect_body(&reply, 200, REVIEWED("true"), &seen);
  client_post(fixture, TOKEN_PEOPLE, "retry-1", retry.text, EXAMPLE_RETRY, &reply);
  expect_body(&reply, 200, RETRIED("true"), &seen);
  check_operations(server, &seen);
  client_post(fixture, TOKEN_PEOPLE, "retry-2", retry.text, EXAMPLE_RETRY, &reply);
  expect_refusal(&reply, 409, "STATE_CONFLICT", NULL); /* it has its one successor */
}

/* ---- Fields ---- */

/* One member of a lawful body. */
struct member {
  const char *name, *value;
};

/* A member that differs from a lawful body, and what is said. 409 means that all fields are right: the revision is stale. */
struct field_case {
  const char *name;
  const char *value; /* JSON; with repeat: a string of this, so many times; NULL: left out */
  unsigned repeat;
  int status;
  const char *field; /* NULL: none is named */
};

static void append_value(struct buffer *out, const struct field_case *with) {
  if (with->repeat == 0) {
    buffer_append_text(out, with->value);
    return;
  }
  buffer_append_char(out, '"');
  for (unsigned i = 0; i < with->repeat; i++) buffer_append_text(out, with->value);
  buffer_append_char(out, '"');
}

/* The lawful members with one that differs, or one more. */
static void make_body(struct buffer *out, const struct member *members, size_t count, const struct field_case *with) {
  bool stands = false;
  buffer_reset(out);
  buffer_append_char(out, '{');
  for (size_t i = 0; i < count; i++) {
    bool other = strcmp(members[i].name, with->name) == 0;
    stands = stands || other;
    if (other && with->value == NULL) continue;
    if (out->size > 1) buffer_append_char(out, ',');
    buffer_append_format(out, "\"%s\":", members[i].name);
    if (other) append_value(out, with);
    else buffer_append_text(out, members[i].value);
  }
  if (!stands) {
    buffer_append_format(out, ",\"%s\":", with->name);
    append_value(out, with);
  }
  buffer_append_text(out, "}");
  buffer_append_char(out, '\0');
  assert_false(out->failed);
}

static void check_fields(struct server *server, const char *target, const struct member *members, size_t member_count,
                         const struct field_case *cases, size_t case_count) {
  struct buffer body;
  char key[32];
  buffer_init(&body, 1024 * 1024);
  for (size_t i = 0; i < case_count; i++) {
    make_body(&body, members, member_count, &cases[i]);
    (void)snprintf(key, sizeof key, "field-%zu", i);
    client_post(&server->fixture, TOKEN_PEOPLE, key, target, (const char *)body.data, &reply);
    const char *code = cases[i].status == 409   ? "STATE_CONFLICT"
                       : cases[i].status == 413 ? "PAYLOAD_TOO_LARGE"
                                                : "INVALID_ARGUMENT";
    if (reply.status != cases[i].status)
      print_error("case %zu: %s %.40s × %u\n", i, cases[i].name, cases[i].value, cases[i].repeat);
    expect_refusal(&reply, cases[i].status, code, cases[i].field);
  }
  buffer_clear(&body);
}

#define REFUSED(name) 400, "/" name
#define PASSES 409, "/expected_revision"

/* What review and retry have in common. */
#define COMMON_CASES                                                                                                          \
  {"expected_revision", NULL, 0, REFUSED("expected_revision")},                                                               \
      {"expected_revision", "\"0\"", 0, REFUSED("expected_revision")},                                                        \
      {"expected_revision", "\"04\"", 0, REFUSED("expected_revision")},                                                       \
      {"expected_revision", "4", 0, REFUSED("expected_revision")},                                                            \
      {"expected_revision", "\"\"", 0, REFUSED("expected_revision")},                                                         \
      {"expected_revision", "\"-4\"", 0, REFUSED("expected_revision")},                                                       \
      {"expected_revision", "\"4 \"", 0, REFUSED("expected_revision")},                                                       \
      {"expected_revision", "\"18446744073709551616\"", 0, REFUSED("expected_revision")},                                     \
      {"expected_revision", "null", 0, REFUSED("expected_revision")},                                                         \
      {"expected_revision", "\"18446744073709551615\"", 0, PASSES}, {"reason", NULL, 0, REFUSED("reason")},                   \
      {"reason", "null", 0, REFUSED("reason")}, {"reason", "\"\"", 0, REFUSED("reason")},                                     \
      {"reason", " ", 3, REFUSED("reason")}, {"reason", "\\n\\t ", 1, REFUSED("reason")},                                     \
      {"reason", "\xE3\x80\x80", 2, REFUSED("reason")}, /* ideographic space */                                               \
      {"reason", "a\\u0000b", 1, REFUSED("reason")}, {"reason", "a", 1024, PASSES}, {"reason", "a", 1025, REFUSED("reason")}, \
      {"reason", "字", 1024, PASSES}, {"reason", "字", 1025, REFUSED("reason")},                                              \
      {"reason", "\xF0\x9D\x94\x98", 1024, PASSES}, /* astral */                                                              \
      {"reason", "\xF0\x9D\x94\x98", 1025, REFUSED("reason")},                                                                \
      {"reason", "\\ud835\\udd18", 1024, PASSES}, /* the same, escaped */                                                     \
      {"reason", "\\ud835\\udd18", 1025, REFUSED("reason")},                                                                  \
      {"reason", "e\xCC\x81", 512, PASSES}, /* a letter and its accent are two */                                             \
      {"reason", "e\xCC\x81", 513, REFUSED("reason")}, {"reason", "\\ud835", 1, REFUSED("reason")},                           \
      {"evidence_ref", NULL, 0, REFUSED("evidence_ref")}, {"evidence_ref", "\"\"", 0, REFUSED("evidence_ref")},               \
      {"evidence_ref", "a b", 1, REFUSED("evidence_ref")}, {"evidence_ref", " a", 1, REFUSED("evidence_ref")},                \
      {"evidence_ref", "a\\tb", 1, REFUSED("evidence_ref")}, {"evidence_ref", "a\\u0007", 1, REFUSED("evidence_ref")},        \
      {"evidence_ref", "a\\u007f", 1, REFUSED("evidence_ref")}, {"evidence_ref", "a\\u0085", 1, REFUSED("evidence_ref")},     \
      {"evidence_ref", "a\\u00a0b", 1, REFUSED("evidence_ref")}, {"evidence_ref", "a\\u0000", 1, REFUSED("evidence_ref")},    \
      {"evidence_ref", "a", 512, PASSES}, {"evidence_ref", "a", 513, REFUSED("evidence_ref")},                                \
      {"evidence_ref", "字", 512, PASSES}, {"evidence_ref", "字", 513, REFUSED("evidence_ref")},                              \
      {"actor_id", "\"" CREDENTIAL_PEOPLE "\"", 0, REFUSED("actor_id")}, {"Reason", "\"x\"", 0, REFUSED("Reason")},           \
      {"unknown", "1", 0, REFUSED("unknown")}, {                                                                              \
    "reason\":\"x\",\"unknown", "1", 0, REFUSED("reason")                                                                     \
  } /* given twice */

enum { document_chars = document_bytes_max - 2 }; /* within quotes */

static void test_review_fields(void **state) {
  struct server *server = *state;
  static const struct member members[] = {{"expected_revision", "\"3\""},   {"reason", "\"checked\""},
                                          {"evidence_ref", "\"record:1\""}, {"execution_settled", "true"},
                                          {"outcome", "\"FAILED\""},        {"result", "{\"a\":1}"}};
  static const struct field_case cases[] = {
      COMMON_CASES,
      {"execution_settled", NULL, 0, REFUSED("execution_settled")},
      {"execution_settled", "false", 0, REFUSED("execution_settled")},
      {"execution_settled", "null", 0, REFUSED("execution_settled")},
      {"execution_settled", "\"true\"", 0, REFUSED("execution_settled")},
      {"outcome", NULL, 0, REFUSED("outcome")},
      {"outcome", "\"UNKNOWN\"", 0, REFUSED("outcome")},
      {"outcome", "\"CANCELLED\"", 0, REFUSED("outcome")},
      {"outcome", "\"failed\"", 0, REFUSED("outcome")},
      {"outcome", "\"SUCCEEDED\"", 0, PASSES},
      {"result", NULL, 0, REFUSED("result")},
      {"result", "null", 0, REFUSED("result")},
      {"result", "false", 0, PASSES},
      {"result", "{\"a\":1,\"a\":2}", 0, REFUSED("result/a")},
      {"result", "x", document_chars, PASSES},
      {"result", "x", document_chars + 1, REFUSED("result")},
      {"result", "x", http_body_bytes_max, 413, "Content-Length"},
  };
  char id[id_chars + 1];
  worker_hello(server, "h", "1");
  submit_task(server, "review-fields", id);
  (void)worker_run(server, OUTCOME_UNKNOWN, false);
  check_fields(server, task_target(id, ":review").text, members, sizeof members / sizeof members[0], cases,
               sizeof cases / sizeof cases[0]);
  expect_task(server, id, "NEEDS_REVIEW", "4");
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/operations").text, &reply);
  assert_int_equal(count_of(&reply, "\"action\":"), 4); /* accept, lease, start, finish */
  assert_int_equal(count_of(&reply, "task.review"), 0);
}

static void test_retry_fields(void **state) {
  struct server *server = *state;
  static const struct member members[] = {{"expected_revision", "\"3\""},
                                          {"reason", "\"checked\""},
                                          {"evidence_ref", "\"record:1\""},
                                          {"safe_to_retry", "true"},
                                          {"task_timeout_ms", "60000"}};
  static const struct field_case cases[] = {
      COMMON_CASES,
      {"safe_to_retry", NULL, 0, REFUSED("safe_to_retry")},
      {"safe_to_retry", "false", 0, REFUSED("safe_to_retry")},
      {"safe_to_retry", "null", 0, REFUSED("safe_to_retry")},
      {"safe_to_retry", "1", 0, REFUSED("safe_to_retry")},
      {"task_timeout_ms", NULL, 0, REFUSED("task_timeout_ms")},
      {"task_timeout_ms", "0", 0, REFUSED("task_timeout_ms")},
      {"task_timeout_ms", "2592000000", 0, PASSES},
      {"task_timeout_ms", "2592000001", 0, REFUSED("task_timeout_ms")},
      {"task_timeout_ms", "60000.0", 0, REFUSED("task_timeout_ms")},
      {"task_timeout_ms", "\"60000\"", 0, REFUSED("task_timeout_ms")},
      {"available_at", "null", 0, PASSES},
      {"available_at", "\"2026-09-17T00:00:00+00:00\"", 0, REFUSED("available_at")},
      {"available_at", "\"1999-12-31T23:59:59Z\"", 0, REFUSED("available_at")},
      {"available_at", "\"2026-09-17T00:00:00.0000001Z\"", 0, REFUSED("available_at")},
      {"available_at", "0", 0, REFUSED("available_at")},
      {"start_deadline_at", "null", 0, PASSES},
      {"start_deadline_at", "\"9999-01-01T00:00:00Z\"", 0, REFUSED("start_deadline_at")},
      {"execution_settled", "true", 0, REFUSED("execution_settled")},
      {"padding", "x", http_body_bytes_max, 413, "Content-Length"},
  };
  /* Times against now are judged once the revision fits. */
  static const struct field_case timed[] = {
      {"task_timeout_ms", "59999", 0, REFUSED("task_timeout_ms")}, /* below attempt_timeout_ms */
      {"available_at", "\"2020-01-01T00:00:00Z\"", 0, REFUSED("available_at")},
      {"available_at", "\"9998-12-31T23:59:59.999999Z\"", 0, REFUSED("available_at")},
      {"start_deadline_at", "\"2020-01-01T00:00:00Z\"", 0, REFUSED("start_deadline_at")},
      {"start_deadline_at", "\"9998-12-31T23:59:59.999999Z\"", 0, REFUSED("start_deadline_at")},
  };
  struct member fitting[sizeof members / sizeof members[0]];
  char id[id_chars + 1];
  worker_hello(server, "h", "1");
  submit_task(server, "retry-fields", id);
  (void)worker_run(server, OUTCOME_FAILED, false);
  struct target_text target = task_target(id, ":retry");
  check_fields(server, target.text, members, sizeof members / sizeof members[0], cases, sizeof cases / sizeof cases[0]);
  memcpy(fitting, members, sizeof members);
  fitting[0].value = "\"4\"";
  check_fields(server, target.text, fitting, sizeof fitting / sizeof fitting[0], timed, sizeof timed / sizeof timed[0]);
  expect_task(server, id, "FAILED", "4");
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/operations").text, &reply);
  assert_int_equal(count_of(&reply, "task.retry"), 0);
}

/* ---- States ---- */

#define REVIEW_BODY(revision)                                              \
  "{\"expected_revision\":\"" revision                                     \
  "\",\"reason\":\"r\",\"evidence_ref\":\"e\",\"execution_settled\":true," \
  "\"outcome\":\"SUCCEEDED\",\"result\":{}}"
#define RETRY_BODY(revision)                                           \
  "{\"expected_revision\":\"" revision                                 \
  "\",\"reason\":\"r\",\"evidence_ref\":\"e\",\"safe_to_retry\":true," \
  "\"task_timeout_ms\":60000}"

static void expect_both_refused(struct server *server, const char *id, const char *review, const char *retry) {
  client_post(&server->fixture, TOKEN_PEOPLE, "state-review", task_target(id, ":review").text, review, &reply);
  expect_code(&reply, 409, "STATE_CONFLICT");
  client_post(&server->fixture, TOKEN_PEOPLE, "state-retry", task_target(id, ":retry").text, retry, &reply);
  expect_code(&reply, 409, "STATE_CONFLICT");
}

/* Only NEEDS_REVIEW may be reviewed and only FAILED and CANCELLED retried, whatever the revision says. */
static void test_states(void **state) {
  struct server *server = *state;
  char id[id_chars + 1];
  submit_task(server, "states-1", id);
  expect_both_refused(server, id, REVIEW_BODY("1"), RETRY_BODY("1")); /* WAITING */
  worker_hello(server, "h", "1");
  struct attempt_ref ref = worker_take(server);
  expect_both_refused(server, id, REVIEW_BODY("2"), RETRY_BODY("2")); /* LEASED */
  worker_start(server, ref);
  expect_both_refused(server, id, REVIEW_BODY("3"), RETRY_BODY("3")); /* RUNNING */
  assert_true(worker_report(server, ref, OUTCOME_SUCCEEDED, false).applied);
  expect_both_refused(server, id, REVIEW_BODY("4"), RETRY_BODY("4")); /* SUCCEEDED */
  expect_task(server, id, "SUCCEEDED", "4");

  submit_task(server, "states-2", id);
  (void)worker_run(server, OUTCOME_UNKNOWN, false);
  expect_both_refused(server, id, REVIEW_BODY("3"), RETRY_BODY("4")); /* stale; NEEDS_REVIEW is reviewed first */
  client_post(&server->fixture, TOKEN_PEOPLE, "review", task_target(id, ":review").text, REVIEW_BODY("4"), &reply);
  assert_int_equal(reply.status, 200);
  expect_both_refused(server, id, REVIEW_BODY("5"), RETRY_BODY("5")); /* SUCCEEDED by review */

  submit_task(server, "states-3", id);
  (void)worker_run(server, OUTCOME_FAILED, false);
  expect_both_refused(server, id, REVIEW_BODY("4"), RETRY_BODY("3")); /* FAILED, and a stale revision */
  expect_task(server, id, "FAILED", "4");
}

/* A key that was used for other content, and keys that are of one operation and one task alone. */
static void test_identities(void **state) {
  struct server *server = *state;
  char first[id_chars + 1], second[id_chars + 1];
  worker_hello(server, "h", "1");
  submit_task(server, "identities-1", first);
  (void)worker_run(server, OUTCOME_UNKNOWN, false);
  submit_task(server, "identities-2", second);
  (void)worker_run(server, OUTCOME_UNKNOWN, false);
  const char *both[] = {first, second};
  for (size_t i = 0; i < 2; i++) {
    client_post(&server->fixture, TOKEN_PEOPLE, "same", task_target(both[i], ":review").text, REVIEW_BODY("4"), &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(count_of(&reply, "\"deduplicated\":false"), 1);
  }
  client_post(&server->fixture, TOKEN_PEOPLE, "same", task_target(first, ":review").text, REVIEW_BODY("5"), &reply);
  expect_refusal(&reply, 409, "IDEMPOTENCY_CONFLICT", NULL);
  client_post(&server->fixture, TOKEN_PEOPLE, "same", task_target(first, ":review").text,
              "{\"expected_revision\":\"4\",\"reason\":\"r\",\"evidence_ref\":\"e\",\"execution_settled\":true,"
              "\"outcome\":\"SUCCEEDED\",\"result\":{\"a\":1.10}}",
              &reply);
  expect_refusal(&reply, 409, "IDEMPOTENCY_CONFLICT", NULL);
}

/* ---- Races ---- */

enum { racers = 24 };

static void race_retries(struct server *server, const char *target, unsigned *ret_created, unsigned *ret_refused,
                         struct reply *ret_winner, unsigned *ret_winning_key) {
  int fds[racers];
  char key[32];
  for (unsigned i = 0; i < racers; i++) fds[i] = client_connect(&server->fixture);
  for (unsigned i = 0; i < racers; i++) {
    (void)snprintf(key, sizeof key, "race-%u", i);
    client_send_write(fds[i], "POST", TOKEN_PEOPLE, key, target, RETRY_BODY("4"));
  }
  for (unsigned i = 0; i < racers; i++) {
    client_receive(fds[i], &reply);
    guard_close(&fds[i]);
    reply_check(&reply);
    if (reply.status == 201) {
      memcpy(ret_winner, &reply, sizeof reply);
      *ret_winning_key = i;
      ++*ret_created;
    } else {
      expect_refusal(&reply, 409, "STATE_CONFLICT", NULL);
      ++*ret_refused;
    }
  }
}

static void test_retry_race(void **state) {
  static struct reply winner;
  struct server *server = *state;
  char id[id_chars + 1], child[id_chars + 1], audit[id_chars + 1], key[32];
  unsigned created = 0, refused = 0, winning_key = 0;
  worker_hello(server, "h", "1");
  submit_task(server, "race", id);
  (void)worker_run(server, OUTCOME_FAILED, false);
  worker_bye(server);
  struct target_text target = task_target(id, ":retry");
  race_retries(server, target.text, &created, &refused, &winner, &winning_key);
  assert_int_equal(created, 1);
  assert_int_equal(refused, racers - 1);
  text_keep(child, sizeof child, reply_text(&winner, "id")); /* "source_task_id" is another name */
  text_keep(audit, sizeof audit, reply_text(&winner, "audit_id"));

  /* One record, one child; and that is so after a restart. */
  for (unsigned round = 0; round < 2; round++) {
    client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/operations").text, &reply);
    assert_int_equal(count_of(&reply, "\"action\":\"task.retry\""), 1);
    assert_int_equal(count_of(&reply, audit), 1);
    (void)snprintf(key, sizeof key, "race-%u", (winning_key + 1) % racers);
    client_post(&server->fixture, TOKEN_PEOPLE, key, target.text, RETRY_BODY("4"), &reply);
    expect_refusal(&reply, 409, "STATE_CONFLICT", NULL);
    (void)snprintf(key, sizeof key, "race-%u", winning_key);
    client_post(&server->fixture, TOKEN_PEOPLE, key, target.text, RETRY_BODY("4"), &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_text(&reply, "audit_id"), audit);
    assert_string_equal(reply_text(&reply, "id"), child);
    assert_int_equal(count_of(&reply, "\"deduplicated\":true"), 1);
    if (round == 0) server_restart(server);
  }
}

/* ---- Back-pressure: a child needs room as any task does ---- */

static void test_retry_needs_room(void **state) {
  struct server *server = *state;
  struct fixture *fixture = &server->fixture;
  char first[id_chars + 1], second[id_chars + 1];
  client_submit(fixture, TOKEN_PEOPLE, "room-1", SUBMISSION(QUEUE_B, "{}"), &reply);
  text_keep(first, sizeof first, reply_text(&reply, "id"));
  client_post(fixture, TOKEN_PEOPLE, "c", task_target(first, ":cancel").text, "{\"reason\":\"r\"}", &reply);
  assert_string_equal(reply_text(&reply, "state"), "CANCELLED");
  client_submit(fixture, TOKEN_PEOPLE, "room-2", SUBMISSION(QUEUE_B, "{}"), &reply);
  text_keep(second, sizeof second, reply_text(&reply, "id"));

  struct target_text retry = task_target(first, ":retry");
  client_post(fixture, TOKEN_PEOPLE, "child", retry.text, RETRY_BODY("2"), &reply);
  expect_refusal(&reply, 429, "QUEUE_FULL", NULL);
  assert_non_null(strstr(reply_body(&reply), "\"retry_after_ms\":"));
  assert_non_null(reply_header(&reply, "Retry-After"));
  /* No identity was left behind: the key may even come with other content once there is room. */
  client_post(fixture, TOKEN_PEOPLE, "c", task_target(second, ":cancel").text, "{\"reason\":\"r\"}", &reply);
  assert_int_equal(reply.status, 200);
  client_post(fixture, TOKEN_PEOPLE, "child", retry.text,
              "{\"expected_revision\":\"2\",\"reason\":\"other\",\"evidence_ref\":\"e\",\"safe_to_retry\":true,\"task_timeout_"
              "ms\":70000}",
              &reply);
  assert_int_equal(reply.status, 201);
  assert_string_equal(reply_text(&reply, "retry_of"), first);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_examples, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_review_fields, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_retry_fields, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_states, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_identities, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_retry_race, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_retry_needs_room, server_open, server_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
