/* Review, manual retry and cancel: each field at each of its bounds, what the digests hold, and answers and operations byte for
 * byte. */
#include "wire_body.h"

#include "base/time_text.h"
#include "codec/wire_recovery.h"

static const struct id task_id = {{0x22, 0x22, 0x22}};

static enum status read_review(struct reading *r) {
  return wire_review_read(&r->json, buffer_bytes(&r->body), &task_id, &r->texts, &r->command, &r->fault);
}
static enum status read_retry(struct reading *r) {
  return wire_retry_read(&r->json, buffer_bytes(&r->body), &task_id, &r->command, &r->fault);
}
static enum status read_cancel(struct reading *r) {
  return wire_cancel_read(&r->json, buffer_bytes(&r->body), &task_id, &r->command, &r->fault);
}

/* ---- Bodies ---- */

static const struct member review[] = {
    {"expected_revision", "\"4\""},
    {"reason", "\"seen\""},
    {"evidence_ref", "\"evidence:reconciliation-001\""},
    {"execution_settled", "true"},
    {"outcome", "\"FAILED\""},
    {"result", "{\"confirmed\":true,\"sequence\":9007199254740993}"},
    {NULL, NULL},
};

static const struct member retry[] = {
    {"expected_revision", "\"5\""}, {"reason", "\"seen\""},       {"evidence_ref", "\"evidence:safe-retry-001\""},
    {"safe_to_retry", "true"},      {"task_timeout_ms", "60000"}, {NULL, NULL},
};

static const struct member cancel[] = {{"reason", "\"no longer wanted\""}, {NULL, NULL}};

/* The fields that several bodies share are judged alike. */
#define REVISION(absent)                                                                                             \
  {"expected_revision", NULL, absent}, {"expected_revision", "null", "/expected_revision"},                          \
      {"expected_revision", "4", "/expected_revision"}, {"expected_revision", "\"0\"", "/expected_revision"},        \
      {"expected_revision", "\"04\"", "/expected_revision"}, {"expected_revision", "\"\"", "/expected_revision"},    \
      {"expected_revision", "\"+4\"", "/expected_revision"}, {"expected_revision", "\"-4\"", "/expected_revision"},  \
      {"expected_revision", "\"4 \"", "/expected_revision"}, {"expected_revision", "\"4.0\"", "/expected_revision"}, \
      {"expected_revision", "\"1\"", NULL}, {"expected_revision", "\"18446744073709551615\"", NULL},                 \
      {"expected_revision", "\"18446744073709551616\"", "/expected_revision"},                                       \
      {"Expected_revision", "\"4\"", "/Expected_revision"}, {                                                        \
    "actor_id", "\"11111111111111111111111111111111\"", "/actor_id"                                                  \
  }

#define REASON                                                                                                           \
  {"reason", NULL, "/reason"}, {"reason", "null", "/reason"}, {"reason", "7", "/reason"}, {"reason", "\"\"", "/reason"}, \
      {"reason", "\"x\"", NULL}, {"reason", "@text:1024", NULL}, {"reason", "@text:1025", "/reason"},                    \
      {"reason", "@astral:1024", NULL}, {"reason", "@astral:1025", "/reason"}, {"reason", "\" \"", "/reason"},           \
      {"reason", "\"\\t\\n\\u000b\\f\\r\\u0085\\u00a0\"", "/reason"},                                                    \
      {"reason", "\"\\u1680\\u2000\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\"", "/reason"},                             \
      {"reason", "\"\\u3000.\\u3000\"", NULL}, {"reason", "\"\\u200b\"", NULL}, {"reason", "\"a\\u0301\"", NULL},        \
      {"reason", "\"line\\nline\"", NULL}, {"reason", "\"a\\u0000\"", "/reason"}, {                                      \
    "reason", "\"\\ud800\"", "/reason"                                                                                   \
  }

#define EVIDENCE_REF                                                                                          \
  {"evidence_ref", NULL, "/evidence_ref"}, {"evidence_ref", "null", "/evidence_ref"},                         \
      {"evidence_ref", "\"\"", "/evidence_ref"}, {"evidence_ref", "@text:512", NULL},                         \
      {"evidence_ref", "@text:513", "/evidence_ref"}, {"evidence_ref", "@astral:512", NULL},                  \
      {"evidence_ref", "@astral:513", "/evidence_ref"}, {"evidence_ref", "\"a b\"", "/evidence_ref"},         \
      {"evidence_ref", "\" a\"", "/evidence_ref"}, {"evidence_ref", "\"a\\n\"", "/evidence_ref"},             \
      {"evidence_ref", "\"a\\u001f\"", "/evidence_ref"}, {"evidence_ref", "\"a\\u007e\"", NULL},              \
      {"evidence_ref", "\"a\\u007f\"", "/evidence_ref"}, {"evidence_ref", "\"a\\u0080\"", "/evidence_ref"},   \
      {"evidence_ref", "\"a\\u0085\"", "/evidence_ref"}, {"evidence_ref", "\"a\\u009f\"", "/evidence_ref"},   \
      {"evidence_ref", "\"a\\u00a0\"", "/evidence_ref"}, {"evidence_ref", "\"a\\u00a1\"", NULL},              \
      {"evidence_ref", "\"a\\u1680\"", "/evidence_ref"}, {"evidence_ref", "\"a\\u1fff\"", NULL},              \
      {"evidence_ref", "\"a\\u2000\"", "/evidence_ref"}, {"evidence_ref", "\"a\\u200a\"", "/evidence_ref"},   \
      {"evidence_ref", "\"a\\u200b\"", NULL}, {"evidence_ref", "\"a\\u2028\"", "/evidence_ref"},              \
      {"evidence_ref", "\"a\\u2029\"", "/evidence_ref"}, {"evidence_ref", "\"a\\u202f\"", "/evidence_ref"},   \
      {"evidence_ref", "\"a\\u205f\"", "/evidence_ref"}, {"evidence_ref", "\"a\\u3000\"", "/evidence_ref"}, { \
    "evidence_ref", "\"\\u51ed\\u636e:\\ud83d\\ude00\"", NULL                                                 \
  }

static const struct body_case review_cases[] = {
    {NULL, NULL, NULL},
    REVISION("/expected_revision"),
    REASON,
    EVIDENCE_REF,
    {"execution_settled", NULL, "/execution_settled"},
    {"execution_settled", "false", "/execution_settled"},
    {"execution_settled", "null", "/execution_settled"},
    {"execution_settled", "1", "/execution_settled"},
    {"execution_settled", "\"true\"", "/execution_settled"},
    {"outcome", NULL, "/outcome"},
    {"outcome", "null", "/outcome"},
    {"outcome", "\"SUCCEEDED\"", NULL},
    {"outcome", "\"FAILED\"", NULL},
    {"outcome", "\"UNKNOWN\"", "/outcome"},
    {"outcome", "\"CANCELLED\"", "/outcome"},
    {"outcome", "\"failed\"", "/outcome"},
    {"outcome", "\"\"", "/outcome"},
    {"outcome", "2", "/outcome"},
    {"result", NULL, "/result"},
    {"result", "null", "/result"},
    {"result", "false", NULL},
    {"result", "\"\"", NULL},
    {"result", "[null]", NULL},
    {"result", "{\"a\":{\"b\":1,\"b\":2}}", "/result/a/b"},
    {"result", "@document:262144", NULL},
    {"result", "@document:262145", "/result"},
    {"result", "@spaced:262143", NULL},
    {"result", "@spaced:262145", "/result"},
    {"safe_to_retry", "true", "/safe_to_retry"},
};

static const struct body_case retry_cases[] = {
    {NULL, NULL, NULL},
    REVISION("/expected_revision"),
    REASON,
    EVIDENCE_REF,
    {"safe_to_retry", NULL, "/safe_to_retry"},
    {"safe_to_retry", "false", "/safe_to_retry"},
    {"safe_to_retry", "null", "/safe_to_retry"},
    {"safe_to_retry", "0", "/safe_to_retry"},
    {"task_timeout_ms", NULL, "/task_timeout_ms"},
    {"task_timeout_ms", "null", "/task_timeout_ms"},
    {"task_timeout_ms", "0", "/task_timeout_ms"},
    {"task_timeout_ms", "1", NULL},
    {"task_timeout_ms", "2592000000", NULL},
    {"task_timeout_ms", "2592000001", "/task_timeout_ms"},
    {"task_timeout_ms", "\"1\"", "/task_timeout_ms"},
    {"task_timeout_ms", "1.0", "/task_timeout_ms"},
    {"task_timeout_ms", "-1", "/task_timeout_ms"},
    {"available_at", "null", NULL},
    {"available_at", "\"2026-09-17T00:00:30Z\"", NULL},
    {"available_at", "\"2026-09-17T00:00:30.123456Z\"", NULL},
    {"available_at", "\"2026-09-17T00:00:30.1234567Z\"", "/available_at"},
    {"available_at", "\"2026-09-17T00:00:30+00:00\"", "/available_at"},
    {"available_at", "\"1999-12-31T23:59:59Z\"", "/available_at"},
    {"available_at", "\"9999-01-01T00:00:00Z\"", "/available_at"},
    {"available_at", "0", "/available_at"},
    {"start_deadline_at", "null", NULL},
    {"start_deadline_at", "\"2026-09-17T00:00:30Z\"", NULL},
    {"start_deadline_at", "\"\"", "/start_deadline_at"},
    {"execution_settled", "true", "/execution_settled"},
    {"queue_id", "\"11111111111111111111111111111111\"", "/queue_id"},
};

static const struct body_case cancel_cases[] = {
    {NULL, NULL, NULL},
    REVISION(NULL),
    REASON,
    {"evidence_ref", "\"x\"", "/evidence_ref"},
};

static void test_review_fields(void **state) {
  (void)state;
  RUN_CASES(read_review, review, review_cases);
}
static void test_retry_fields(void **state) {
  (void)state;
  RUN_CASES(read_retry, retry, retry_cases);
}
static void test_cancel_fields(void **state) {
  (void)state;
  RUN_CASES(read_cancel, cancel, cancel_cases);
}

static void test_bodies_are_strict_json(void **state) {
  (void)state;
  static const char *const bodies[] = {
      "",
      "null",
      "[]",
      "\"x\"",
      "{\"reason\":\"a\"} x",
      "{\"reason\":\"a\",\"reason\":\"a\"}",
      "{\"reason\":\"a\",}",
      "\xEF\xBB\xBF{}",
  };
  body_reader *const readers[] = {read_review, read_retry, read_cancel};
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
    for (size_t j = 0; j < 3; j++) assert_int_equal(read_text(&reading, readers[j], bodies[i]), STATUS_INVALID_ARGUMENT);
  reading_clear(&reading);
}

/* ---- What the commands hold ---- */

static void test_review_command(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  assert_int_equal(read_text(&reading, read_review,
                             "{\"result\": {\"sequence\": 9007199254740993, \"confirmed\": true},\"outcome\":\"FAILED\","
                             "\"execution_settled\":true,\"evidence_ref\":\"evidence:reconciliation-001\","
                             "\"reason\":\"\xE5\xB7\xB2\\u6838\",\"expected_revision\":\"4\"}"),
                   STATUS_OK);
  const struct review_command *command = &reading.command.as.review;
  assert_int_equal(reading.command.kind, COMMAND_REVIEW);
  assert_true(id_equal(&command->task_id, &task_id));
  assert_int_equal(command->expected_revision, 4);
  assert_true(bytes_equal_text(command->reason, "\xE5\xB7\xB2\xE6\xA0\xB8"));
  assert_true(bytes_equal_text(command->evidence_ref, "evidence:reconciliation-001"));
  assert_int_equal(command->outcome, OUTCOME_FAILED);
  assert_true(bytes_equal_text(command->result, "{\"sequence\":9007199254740993,\"confirmed\":true}"));
  assert_true(id_is_zero(&command->attempt_id));
  /* The digest of the result is that of its canonical form. */
  struct json json;
  struct fault fault;
  struct buffer scratch;
  json_init(&json);
  buffer_init(&scratch, 1024);
  assert_int_equal(json_parse(&json, bytes_text("{\"confirmed\":true,\"sequence\":9007199254740993}"), &fault), STATUS_OK);
  struct id digest = json_digest(&json, 0, &scratch);
  assert_true(id_equal(&digest, &command->result_digest));
  buffer_clear(&scratch);
  json_clear(&json);
  reading_clear(&reading);
}

/* The bodies that operators are shown, as they write them. */
static void test_example_bodies(void **state) {
  (void)state;
  static const char review_body[] =
      "{\n  \"expected_revision\":\"4\",\n"
      "  \"reason\":\"已核实旧执行全部结束，操作未完成\",\n"
      "  \"evidence_ref\":\"evidence:reconciliation-001\",\n  \"execution_settled\":true,\n  \"outcome\":\"FAILED\",\n"
      "  \"result\":{\"confirmed\":true,\"sequence\":9007199254740993}\n}";
  static const char retry_body[] =
      "{\n  \"expected_revision\":\"5\",\n"
      "  \"reason\":\"已核实旧执行不会继续产生效果，允许重新执行\",\n"
      "  \"evidence_ref\":\"evidence:safe-retry-001\",\n  \"safe_to_retry\":true,\n  \"task_timeout_ms\":60000\n}";
  struct reading reading;
  reading_init(&reading);
  assert_int_equal(read_text(&reading, read_review, review_body), STATUS_OK);
  assert_int_equal(reading.command.as.review.expected_revision, 4);
  assert_int_equal(bytes_count_chars(reading.command.as.review.reason), 16);
  assert_true(bytes_equal_text(reading.command.as.review.result, "{\"confirmed\":true,\"sequence\":9007199254740993}"));
  assert_int_equal(read_text(&reading, read_retry, retry_body), STATUS_OK);
  assert_int_equal(reading.command.as.retry.expected_revision, 5);
  assert_int_equal(reading.command.as.retry.task_timeout_ms, 60000);
  assert_true(bytes_equal_text(reading.command.as.retry.reason, "已核实旧执行不会继续产生效果，允许重新执行"));
  reading_clear(&reading);
}

static void test_retry_and_cancel_commands(void **state) {
  (void)state;
  struct reading reading;
  int64_t time;
  reading_init(&reading);
  assert_true(time_parse(bytes_text("2026-09-17T00:00:30Z"), &time));
  assert_int_equal(read_member(&reading, read_retry, retry, "available_at", "\"2026-09-17T00:00:30Z\""), STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_RETRY);
  assert_true(id_equal(&reading.command.as.retry.task_id, &task_id));
  assert_int_equal(reading.command.as.retry.expected_revision, 5);
  assert_int_equal(reading.command.as.retry.task_timeout_ms, 60000);
  assert_int_equal(reading.command.as.retry.available_at, time);
  assert_int_equal(reading.command.as.retry.start_deadline_at, 0);
  assert_true(bytes_equal_text(reading.command.as.retry.evidence_ref, "evidence:safe-retry-001"));

  assert_int_equal(read_member(&reading, read_cancel, cancel, NULL, NULL), STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_CANCEL);
  assert_true(id_equal(&reading.command.as.cancel.task_id, &task_id));
  assert_int_equal(reading.command.as.cancel.expected_revision, 0);
  assert_true(bytes_equal_text(reading.command.as.cancel.reason, "no longer wanted"));
  reading_clear(&reading);
}

/* same: the member changes nothing of the meaning. */
static void test_digests(void **state) {
  (void)state;
  static const struct {
    body_reader *reader;
    const struct member *base;
    const char *name, *value;
    bool same;
  } cases[] = {
      {read_review, review, "reason", "\"\\u0073een\"", true},
      {read_review, review, "reason", "\"seem\"", false},
      {read_review, review, "evidence_ref", "\"e\"", false},
      {read_review, review, "expected_revision", "\"5\"", false},
      {read_review, review, "outcome", "\"SUCCEEDED\"", false},
      {read_review, review, "result", "{ \"sequence\" : 9007199254740993, \"confirmed\" : true }", true},
      {read_review, review, "result", "{\"confirmed\":true,\"sequence\":9007199254740992}", false},
      {read_review, review, "result", "{\"confirmed\":true,\"sequence\":9007199254740993.0}", false},
      {read_retry, retry, "available_at", "null", true},
      {read_retry, retry, "available_at", "\"2026-09-17T00:00:30Z\"", false},
      {read_retry, retry, "start_deadline_at", "null", true},
      {read_retry, retry, "start_deadline_at", "\"2026-09-17T00:00:30Z\"", false},
      {read_retry, retry, "task_timeout_ms", "60001", false},
      {read_retry, retry, "reason", "\"x\"", false},
      {read_retry, retry, "evidence_ref", "\"x\"", false},
      {read_retry, retry, "expected_revision", "\"6\"", false},
      {read_cancel, cancel, "reason", "\"no longer wanted\"", true},
      {read_cancel, cancel, "reason", "\"no longer Wanted\"", false},
      {read_cancel, cancel, "expected_revision", "\"1\"", false},
  };
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct id base = digest_with(&reading, cases[i].reader, cases[i].base, NULL, NULL);
    struct id other = digest_with(&reading, cases[i].reader, cases[i].base, cases[i].name, cases[i].value);
    if (id_equal(&base, &other) != cases[i].same) fail_msg("%s = %s", cases[i].name, cases[i].value);
  }
  reading_clear(&reading);
}

/* ---- Answers ---- */

static int64_t at(const char *text) {
  int64_t time;
  assert_true(time_parse(bytes_text(text), &time));
  return time;
}

static struct task_document example_task(void) {
  return (struct task_document){
      .task = {.id = id_of_digit('2'),
               .state = TASK_FAILED,
               .revision = 5,
               .available_at = at("2026-09-17T00:00:00Z"),
               .deadline_at = at("2026-09-17T00:01:00Z"),
               .created_at = at("2026-09-17T00:00:00Z"),
               .updated_at = at("2026-09-17T00:00:20Z"),
               .recovery_safety = RECOVERY_RECONCILE_ONLY,
               .max_attempts = 1,
               .attempt_timeout_ms = 10000,
               .attempt_count = 1},
      .accepted = {.namespace_id = id_of_digit('3'),
                   .queue_id = id_of_digit('1'),
                   .handler = bytes_text("object.prepare"),
                   .handler_version = bytes_text("v1"),
                   .payload_version = bytes_text("v1"),
                   .payload = bytes_text("{\"object_ref\":\"objects/input\",\"sequence\":9007199254740993}"),
                   .business_key = bytes_text("object:operation-001")},
      .result = bytes_text("{\"confirmed\":true,\"sequence\":9007199254740993}"),
  };
}

static void test_review_answer(void **state) {
  (void)state;
  static const char expected[] =
      "{\"request_id\":\"44444444444444444444444444444444\",\"data\":{\"task\":{\"id\":\"22222222222222222222222222222222\","
      "\"namespace_id\":\"33333333333333333333333333333333\",\"queue_id\":\"11111111111111111111111111111111\","
      "\"state\":\"FAILED\",\"revision\":\"5\",\"handler\":\"object.prepare\",\"handler_version\":\"v1\","
      "\"payload_version\":\"v1\",\"payload\":{\"object_ref\":\"objects/input\",\"sequence\":9007199254740993},"
      "\"business_key\":\"object:operation-001\",\"available_at\":\"2026-09-17T00:00:00Z\","
      "\"deadline_at\":\"2026-09-17T00:01:00Z\",\"recovery_safety\":\"RECONCILE_ONLY\",\"retry\":{\"max_attempts\":1,"
      "\"initial_delay_ms\":0,\"max_delay_ms\":0,\"attempt_timeout_ms\":10000},\"attempt_count\":1,"
      "\"result\":{\"confirmed\":true,\"sequence\":9007199254740993},\"completed_at\":\"2026-09-17T00:00:20Z\","
      "\"created_at\":\"2026-09-17T00:00:00Z\",\"updated_at\":\"2026-09-17T00:00:20Z\"},"
      "\"audit_id\":\"55555555555555555555555555555555\",\"deduplicated\":false}}";
  struct buffer out;
  struct task_document document = example_task();
  struct id audit_id = id_of_digit('5');
  buffer_init(&out, 1 << 16);
  wire_data_begin(&out, "44444444444444444444444444444444");
  wire_review_answer_write(&out, &document, &audit_id, false);
  wire_data_end(&out);
  assert_json(&out, expected);
  buffer_clear(&out);
}

static void test_retry_answer(void **state) {
  (void)state;
  static const char expected[] =
      "{\"request_id\":\"77777777777777777777777777777777\",\"data\":{\"source_task_id\":\"22222222222222222222222222222222\","
      "\"task\":{\"id\":\"66666666666666666666666666666666\",\"namespace_id\":\"33333333333333333333333333333333\","
      "\"queue_id\":\"11111111111111111111111111111111\",\"state\":\"WAITING\",\"revision\":\"1\","
      "\"handler\":\"object.prepare\",\"handler_version\":\"v1\",\"payload_version\":\"v1\","
      "\"payload\":{\"object_ref\":\"objects/input\",\"sequence\":9007199254740993},"
      "\"business_key\":\"object:operation-001\",\"available_at\":\"2026-09-17T00:00:30Z\","
      "\"deadline_at\":\"2026-09-17T00:01:30Z\",\"recovery_safety\":\"RECONCILE_ONLY\",\"retry\":{\"max_attempts\":1,"
      "\"initial_delay_ms\":0,\"max_delay_ms\":0,\"attempt_timeout_ms\":10000},\"attempt_count\":0,"
      "\"created_at\":\"2026-09-17T00:00:30Z\",\"updated_at\":\"2026-09-17T00:00:30Z\","
      "\"retry_of\":\"22222222222222222222222222222222\"},\"audit_id\":\"88888888888888888888888888888888\","
      "\"deduplicated\":false}}";
  struct buffer out;
  struct task_document document = example_task();
  struct id source = document.task.id, audit_id = id_of_digit('8');
  document.task.id = id_of_digit('6');
  document.task.state = TASK_WAITING;
  document.task.revision = 1;
  document.task.attempt_count = 0;
  document.task.available_at = document.task.created_at = document.task.updated_at = at("2026-09-17T00:00:30Z");
  document.task.deadline_at = at("2026-09-17T00:01:30Z");
  document.result = bytes_of(NULL, 0);
  document.accepted.retry_of = source;
  buffer_init(&out, 1 << 16);
  wire_data_begin(&out, "77777777777777777777777777777777");
  wire_retry_answer_write(&out, &source, &document, &audit_id, false);
  wire_data_end(&out);
  assert_json(&out, expected);
  buffer_clear(&out);
}

static void test_cancel_answer(void **state) {
  (void)state;
  struct buffer out, task;
  struct task_document document = example_task();
  struct id audit_id = id_of_digit('5');
  buffer_init(&out, 1 << 16);
  buffer_init(&task, 1 << 16);
  wire_cancel_answer_write(&out, &document, &audit_id, false, true);
  buffer_append_text(&task, "{\"task\":");
  wire_task_write(&task, &document);
  buffer_append_text(&task, ",\"audit_id\":\"55555555555555555555555555555555\",\"applied\":false,\"deduplicated\":true}");
  buffer_append(&task, "", 1);
  assert_json(&out, (const char *)task.data);
  buffer_clear(&out);
  buffer_clear(&task);
}

/* ---- Operations ---- */

#define REASON_TEXT "已核实旧执行不会继续产生效果，允许重新执行"
#define AFTER_TEXT                                                                                                   \
  "{\"source_task_id\":\"22222222222222222222222222222222\",\"retry_task_id\":\"66666666666666666666666666666666\"," \
  "\"safe_to_retry\":true,\"task_timeout_ms\":60000}"
#define SUMMARY_TEXT                                                                                         \
  "\"id\":\"88888888888888888888888888888888\",\"task_id\":\"22222222222222222222222222222222\","            \
  "\"operation_id\":\"99999999999999999999999999999999\",\"actor_id\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"," \
  "\"action\":\"task.retry\",\"created_at\":\"2026-09-17T00:00:30Z\""

static struct operation_document example_operation(void) {
  return (struct operation_document){.id = id_of_digit('8'),
                                     .task_id = id_of_digit('2'),
                                     .operation_id = id_of_digit('9'),
                                     .actor_id = id_of_digit('a'),
                                     .action = bytes_text("task.retry"),
                                     .created_at = at("2026-09-17T00:00:30Z"),
                                     .reason = bytes_text(REASON_TEXT),
                                     .evidence_ref = bytes_text("evidence:safe-retry-001"),
                                     .before = bytes_text("{\"state\":\"FAILED\",\"revision\":\"5\"}"),
                                     .after = bytes_text(AFTER_TEXT)};
}

static void test_recorded_operation(void **state) {
  (void)state;
  struct buffer out;
  struct operation_document operation = example_operation();
  buffer_init(&out, 1 << 16);
  wire_data_begin(&out, "44444444444444444444444444444444");
  buffer_append_text(&out, "{\"items\":[");
  wire_operation_summary_write(&out, &operation);
  buffer_append_text(&out, "]}");
  wire_data_end(&out);
  assert_json(&out, "{\"request_id\":\"44444444444444444444444444444444\",\"data\":{\"items\":[{" SUMMARY_TEXT "}]}}");

  buffer_reset(&out);
  wire_data_begin(&out, "44444444444444444444444444444444");
  wire_operation_write(&out, &operation);
  wire_data_end(&out);
  assert_json(&out, "{\"request_id\":\"44444444444444444444444444444444\",\"data\":{" SUMMARY_TEXT ",\"reason\":\"" REASON_TEXT
                    "\",\"evidence_ref\":\"evidence:safe-retry-001\",\"before\":{\"state\":\"FAILED\",\"revision\":\"5\"},"
                    "\"after\":" AFTER_TEXT "}}");
  buffer_clear(&out);
}

/* Entries that are made from events: what is not known is left out. */
static void test_derived_operations(void **state) {
  (void)state;
  static const char head[] =
      "{\"id\":\"88888888888888888888888888888888\",\"task_id\":\"22222222222222222222222222222222\","
      "\"operation_id\":\"99999999999999999999999999999999\",\"actor_id\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
      "\"action\":\"task.act\",\"created_at\":\"2026-09-17T00:00:30Z\"";
  static const struct {
    struct operation_standing was, is;
    bool attempt, retry;
    enum outcome outcome;
    enum ended_by ended_by;
    enum decision decision;
    const char *rest;
  } cases[] = {
      {.is = {TASK_WAITING, 1}, .rest = ",\"after\":{\"state\":\"WAITING\",\"revision\":\"1\"}}"},
      {.is = {TASK_WAITING, 1},
       .retry = true,
       .rest = ",\"after\":{\"state\":\"WAITING\",\"revision\":\"1\",\"retry_of\":\"cccccccccccccccccccccccccccccccc\"}}"},
      {.was = {TASK_WAITING, 1},
       .is = {TASK_LEASED, 2},
       .attempt = true,
       .rest = ",\"before\":{\"state\":\"WAITING\",\"revision\":\"1\"},\"after\":{\"state\":\"LEASED\",\"revision\":\"2\","
               "\"attempt_id\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"}}"},
      {.was = {TASK_RUNNING, 3},
       .is = {TASK_WAITING, 4},
       .attempt = true,
       .outcome = OUTCOME_FAILED,
       .decision = DECISION_RETRYABLE_FAILURE,
       .rest = ",\"before\":{\"state\":\"RUNNING\",\"revision\":\"3\"},\"after\":{\"state\":\"WAITING\",\"revision\":\"4\","
               "\"attempt_id\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\",\"outcome\":\"FAILED\","
               "\"decision\":\"RETRYABLE_FAILURE\"}}"},
      {.was = {TASK_LEASED, 2},
       .is = {TASK_FAILED, 3},
       .attempt = true,
       .ended_by = ENDED_LEASE_EXPIRED,
       .decision = DECISION_ATTEMPT_LIMIT,
       .rest = ",\"before\":{\"state\":\"LEASED\",\"revision\":\"2\"},\"after\":{\"state\":\"FAILED\",\"revision\":\"3\","
               "\"attempt_id\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\",\"ended_by\":\"LEASE_EXPIRED\","
               "\"decision\":\"ATTEMPT_LIMIT\"}}"},
  };
  struct buffer out, expected;
  buffer_init(&out, 1 << 16);
  buffer_init(&expected, 1 << 16);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct operation_document operation = example_operation();
    operation.action = bytes_text("task.act");
    operation.reason = operation.evidence_ref = operation.before = operation.after = bytes_of(NULL, 0);
    operation.was = cases[i].was;
    operation.is = cases[i].is;
    if (cases[i].attempt) operation.attempt_id = id_of_digit('b');
    if (cases[i].retry) operation.retry_of = id_of_digit('c');
    operation.outcome = cases[i].outcome;
    operation.ended_by = cases[i].ended_by;
    operation.decision = cases[i].decision;
    buffer_reset(&out);
    buffer_reset(&expected);
    wire_operation_write(&out, &operation);
    buffer_append_text(&expected, head);
    buffer_append_text(&expected, cases[i].rest);
    buffer_append(&expected, "", 1);
    assert_json(&out, (const char *)expected.data);
  }
  buffer_clear(&out);
  buffer_clear(&expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_review_fields),
      cmocka_unit_test(test_retry_fields),
      cmocka_unit_test(test_cancel_fields),
      cmocka_unit_test(test_bodies_are_strict_json),
      cmocka_unit_test(test_review_command),
      cmocka_unit_test(test_example_bodies),
      cmocka_unit_test(test_retry_and_cancel_commands),
      cmocka_unit_test(test_digests),
      cmocka_unit_test(test_review_answer),
      cmocka_unit_test(test_retry_answer),
      cmocka_unit_test(test_cancel_answer),
      cmocka_unit_test(test_recorded_operation),
      cmocka_unit_test(test_derived_operations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
