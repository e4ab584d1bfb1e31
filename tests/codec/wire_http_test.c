/* Answers over HTTP: tasks, attempts, evidence and faults, byte for byte. */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "base/time_text.h"
#include "codec/wire_http.h"

static int64_t time_of(const char *text) {
  int64_t time_us = 0;
  assert_true(time_parse(bytes_text(text), &time_us));
  return time_us;
}

/* The id of 32 times this digit. */
static struct id id_of(unsigned digit) {
  struct id id;
  memset(id.bytes, (int)(digit * 0x11), sizeof id.bytes);
  return id;
}

#define ID(digit) #digit #digit #digit #digit #digit #digit #digit #digit
#define ID32(digit) ID(digit) ID(digit) ID(digit) ID(digit)

static void assert_text(struct buffer *out, const char *expected) {
  assert_false(out->failed);
  if (!bytes_equal_text(buffer_bytes(out), expected)) {
    buffer_append_char(out, 0);
    fail_msg("written:\n%s\nexpected:\n%s", (const char *)out->data, expected);
  }
  buffer_reset(out);
}

/* The task of the review example, in the state that its request found it in. */
static struct task_document example_task(void) {
  return (struct task_document){
      .task = {.id = id_of(2),
               .state = TASK_NEEDS_REVIEW,
               .revision = 4,
               .created_at = time_of("2026-09-17T00:00:00Z"),
               .available_at = time_of("2026-09-17T00:00:00Z"),
               .deadline_at = time_of("2026-09-17T00:01:00Z"),
               .updated_at = time_of("2026-09-17T00:00:10Z"),
               .recovery_safety = RECOVERY_RECONCILE_ONLY,
               .max_attempts = 1,
               .attempt_timeout_ms = 10000,
               .attempt_count = 1,
               .effect_uncertain = true},
      .accepted = {.namespace_id = id_of(3),
                   .queue_id = id_of(1),
                   .handler = bytes_text("object.prepare"),
                   .handler_version = bytes_text("v1"),
                   .payload_version = bytes_text("v1"),
                   .payload = bytes_text("{\"object_ref\":\"objects/input\",\"sequence\":9007199254740993}"),
                   .business_key = bytes_text("object:operation-001")},
  };
}

#define EXAMPLE_HEAD(id) "{\"id\":\"" ID32(id) "\",\"namespace_id\":\"" ID32(3) "\",\"queue_id\":\"" ID32(1) "\","
#define EXAMPLE_HANDLER "\"handler\":\"object.prepare\",\"handler_version\":\"v1\",\"payload_version\":\"v1\","
#define EXAMPLE_PAYLOAD "\"payload\":{\"object_ref\":\"objects/input\",\"sequence\":9007199254740993},"
#define EXAMPLE_POLICY                                                                                              \
  "\"recovery_safety\":\"RECONCILE_ONLY\",\"retry\":{\"max_attempts\":1,\"initial_delay_ms\":0,\"max_delay_ms\":0," \
  "\"attempt_timeout_ms\":10000},"

static void test_the_reviewed_task_of_the_example(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  struct task_document document = example_task();
  document.task.state = TASK_FAILED;
  document.task.revision = 5;
  document.task.effect_uncertain = false;
  document.task.updated_at = time_of("2026-09-17T00:00:20Z");
  document.result = bytes_text("{\"confirmed\":true,\"sequence\":9007199254740993}");
  wire_data_begin(&out, ID32(4));
  buffer_append_text(&out, "{");
  wire_raw_member(&out, "task", bytes_of("", 0));
  wire_task_write(&out, &document);
  struct id audit_id = id_of(5);
  wire_id_member(&out, "audit_id", &audit_id);
  wire_bool_member(&out, "deduplicated", false);
  buffer_append_text(&out, "}");
  wire_data_end(&out);
  assert_text(&out,
              "{\"request_id\":\"" ID32(4) "\",\"data\":{\"task\":" EXAMPLE_HEAD(
                  2) "\"state\":\"FAILED\",\"revision\":\"5\"," EXAMPLE_HANDLER EXAMPLE_PAYLOAD
                     "\"business_key\":\"object:operation-001\",\"available_at\":\"2026-09-17T00:00:00Z\","
                     "\"deadline_at\":\"2026-09-17T00:01:00Z\"," EXAMPLE_POLICY
                     "\"attempt_count\":1,"
                     "\"result\":{\"confirmed\":true,\"sequence\":9007199254740993},\"completed_at\":\"2026-09-17T00:00:20Z\","
                     "\"created_at\":\"2026-09-17T00:00:00Z\",\"updated_at\":\"2026-09-17T00:00:20Z\"},"
                     "\"audit_id\":\"" ID32(5) "\",\"deduplicated\":false}}");
  buffer_clear(&out);
}

static void test_the_retried_task_of_the_example(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  struct task_document document = example_task();
  document.task.id = id_of(6);
  document.task.state = TASK_WAITING;
  document.task.revision = 1;
  document.task.effect_uncertain = false;
  document.task.attempt_count = 0;
  document.task.available_at = document.task.created_at = document.task.updated_at = time_of("2026-09-17T00:00:30Z");
  document.task.deadline_at = time_of("2026-09-17T00:01:30Z");
  document.accepted.retry_of = id_of(2);
  wire_task_write(&out, &document);
  assert_text(&out, EXAMPLE_HEAD(6) "\"state\":\"WAITING\",\"revision\":\"1\"," EXAMPLE_HANDLER EXAMPLE_PAYLOAD
                                    "\"business_key\":\"object:operation-001\",\"available_at\":\"2026-09-17T00:00:30Z\","
                                    "\"deadline_at\":\"2026-09-17T00:01:30Z\"," EXAMPLE_POLICY
                                    "\"attempt_count\":0,"
                                    "\"created_at\":\"2026-09-17T00:00:30Z\",\"updated_at\":\"2026-09-17T00:00:30Z\","
                                    "\"retry_of\":\"" ID32(2) "\"}");
  wire_task_summary_write(&out, &document);
  assert_text(&out, EXAMPLE_HEAD(6) "\"state\":\"WAITING\",\"revision\":\"1\"," EXAMPLE_HANDLER
                                    "\"business_key\":\"object:operation-001\",\"available_at\":\"2026-09-17T00:00:30Z\","
                                    "\"deadline_at\":\"2026-09-17T00:01:30Z\"," EXAMPLE_POLICY
                                    "\"attempt_count\":0,"
                                    "\"created_at\":\"2026-09-17T00:00:30Z\",\"updated_at\":\"2026-09-17T00:00:30Z\"}");
  buffer_clear(&out);
}

static struct task_document task_with_everything(void) {
  struct task_document document = example_task();
  document.task.state = TASK_FAILED;
  document.task.priority = 9;
  document.task.start_deadline_at = time_of("2026-09-17T00:00:59.5Z");
  document.task.cancel_requested_at = time_of("2026-09-17T00:00:05.000001Z");
  document.task.updated_at = time_of("2026-09-17T00:00:20.120Z");
  document.task.recovery_safety = RECOVERY_IDEMPOTENT;
  document.task.max_attempts = 100;
  document.task.initial_delay_ms = 1;
  document.task.max_delay_ms = 86400000;
  document.task.attempt_timeout_ms = 2592000000U;
  document.accepted.business_key = bytes_text("\"\\\n\xF0\x9F\x98\x80");
  document.accepted.concurrency_key = bytes_text("c");
  document.accepted.payload = bytes_text("[9007199254740993,1.10,1e400,123456789012345678901234567890]");
  document.accepted.retry_of = id_of(7);
  document.accepted.schedule_id = id_of(8);
  document.error_code = bytes_text("E");
  document.error_message = bytes_text("why");
  document.error_details = bytes_text("[1.10]");
  document.result = bytes_text("0");
  return document;
}

static void test_every_field_in_its_place(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  struct task_document document = task_with_everything();
  wire_task_write(&out, &document);
  assert_text(
      &out,
      EXAMPLE_HEAD(
          2) "\"state\":\"FAILED\",\"revision\":\"4\"," EXAMPLE_HANDLER
             "\"payload\":[9007199254740993,1.10,1e400,123456789012345678901234567890],"
             "\"business_key\":\"\\\"\\\\\\n\xF0\x9F\x98\x80\",\"concurrency_key\":\"c\",\"priority\":9,"
             "\"available_at\":\"2026-09-17T00:00:00Z\",\"start_deadline_at\":\"2026-09-17T00:00:59.5Z\","
             "\"deadline_at\":\"2026-09-17T00:01:00Z\",\"recovery_safety\":\"IDEMPOTENT\",\"retry\":{\"max_attempts\":100,"
             "\"initial_delay_ms\":1,\"max_delay_ms\":86400000,\"attempt_timeout_ms\":2592000000},\"attempt_count\":1,"
             "\"effect_uncertain\":true,\"cancel_requested_at\":\"2026-09-17T00:00:05.000001Z\","
             "\"error\":{\"code\":\"E\",\"message\":\"why\",\"details\":[1.10]},\"result\":0,"
             "\"completed_at\":\"2026-09-17T00:00:20.12Z\",\"created_at\":\"2026-09-17T00:00:00Z\","
             "\"updated_at\":\"2026-09-17T00:00:20.12Z\",\"retry_of\":\"" ID32(7) "\",\"schedule_id\":\"" ID32(8) "\"}");
  document.error_message = document.error_details = bytes_of(NULL, 0);
  wire_task_write(&out, &document);
  buffer_append_char(&out, 0);
  assert_non_null(strstr((const char *)out.data, "\"error\":{\"code\":\"E\"},\"result\""));
  buffer_clear(&out);
}

/* However small its buffer, a writer writes within it and says that it failed. */
static void test_full_buffers(void **state) {
  (void)state;
  struct task_document document = task_with_everything();
  struct buffer whole;
  buffer_init(&whole, 1 << 20);
  wire_task_write(&whole, &document);
  for (size_t limit = 0; limit < whole.size; limit++) {
    struct buffer out;
    buffer_init(&out, limit);
    wire_task_write(&out, &document);
    assert_true(out.failed);
    assert_true(out.size <= limit);
    buffer_clear(&out);
  }
  buffer_clear(&whole);
}

static struct attempt_document example_attempt(void) {
  return (struct attempt_document){.attempt_id = id_of(3),
                                   .number = 1,
                                   .epoch = UINT64_MAX,
                                   .state = ATTEMPT_LEASED,
                                   .instance_id = id_of(9),
                                   .leased_at = time_of("2026-09-17T00:00:01Z"),
                                   .lease_expires_at = time_of("2026-09-17T00:00:31Z")};
}

#define ATTEMPT_HEAD "{\"attempt_id\":\"" ID32(3) "\",\"number\":1,\"epoch\":\"18446744073709551615\","
#define ATTEMPT_TIMES "\"leased_at\":\"2026-09-17T00:00:01Z\",\"lease_expires_at\":\"2026-09-17T00:00:31Z\""

static void test_attempts(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  struct attempt_document attempt = example_attempt();
  wire_attempt_write(&out, &attempt);
  assert_text(&out, ATTEMPT_HEAD "\"state\":\"LEASED\",\"worker\":{\"instance_id\":\"" ID32(9) "\"}," ATTEMPT_TIMES "}");

  attempt.state = ATTEMPT_FAILED;
  attempt.instance_name = bytes_text("w");
  attempt.started_at = time_of("2026-09-17T00:00:02Z");
  attempt.attempt_deadline_at = time_of("2026-09-17T00:00:12Z");
  attempt.finished_at = time_of("2026-09-17T00:00:03Z");
  attempt.ended_by = ENDED_REPORT;
  attempt.outcome = OUTCOME_FAILED;
  attempt.retryable = true;
  attempt.error_code = bytes_text("E");
  attempt.decision = DECISION_RETRYABLE_FAILURE;
  attempt.has_delay = true;
  attempt.next_available_at = time_of("2026-09-17T00:00:03Z");
  wire_attempt_write(&out, &attempt);
  assert_text(&out, ATTEMPT_HEAD "\"state\":\"FAILED\",\"worker\":{\"instance_id\":\"" ID32(
                        9) "\",\"name\":\"w\"}," ATTEMPT_TIMES
                           ",\"started_at\":\"2026-09-17T00:00:02Z\",\"attempt_deadline_at\":\"2026-09-17T00:00:12Z\","
                           "\"finished_at\":\"2026-09-17T00:00:03Z\",\"outcome\":\"FAILED\",\"retryable\":true,"
                           "\"error\":{\"code\":\"E\"},\"decision\":\"RETRYABLE_FAILURE\",\"delay_ms\":0,"
                           "\"next_available_at\":\"2026-09-17T00:00:03Z\"}");

  attempt = example_attempt();
  attempt.state = ATTEMPT_SUCCEEDED;
  attempt.finished_at = time_of("2026-09-17T00:00:03Z");
  attempt.ended_by = ENDED_REPORT;
  attempt.outcome = OUTCOME_SUCCEEDED;
  attempt.result = bytes_text("1.10");
  attempt.decision = DECISION_SUCCEEDED;
  wire_attempt_write(&out, &attempt);
  assert_text(&out, ATTEMPT_HEAD "\"state\":\"SUCCEEDED\",\"worker\":{\"instance_id\":\"" ID32(
                        9) "\"}," ATTEMPT_TIMES
                           ",\"finished_at\":\"2026-09-17T00:00:03Z\",\"outcome\":\"SUCCEEDED\",\"result\":1.10,"
                           "\"decision\":\"SUCCEEDED\"}");

  attempt = example_attempt();
  attempt.state = ATTEMPT_EXPIRED;
  attempt.finished_at = time_of("2026-09-17T00:00:31Z");
  attempt.ended_by = ENDED_LEASE_EXPIRED;
  attempt.decision = DECISION_ATTEMPT_LIMIT;
  wire_attempt_write(&out, &attempt);
  assert_text(&out, ATTEMPT_HEAD "\"state\":\"EXPIRED\",\"worker\":{\"instance_id\":\"" ID32(
                        9) "\"}," ATTEMPT_TIMES
                           ",\"finished_at\":\"2026-09-17T00:00:31Z\",\"ended_by\":\"LEASE_EXPIRED\","
                           "\"decision\":\"ATTEMPT_LIMIT\"}");
  buffer_clear(&out);
}

static void test_evidence(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  struct evidence_document document = {.reported_at = time_of("2026-09-17T00:01:00Z"),
                                       .evidence = {.evidence_id = id_of(1),
                                                    .attempt_id = id_of(3),
                                                    .epoch = 2,
                                                    .message_id = id_of(4),
                                                    .reason = EVIDENCE_STALE_EPOCH,
                                                    .outcome = OUTCOME_FAILED,
                                                    .error_code = bytes_text("E"),
                                                    .error_message = bytes_text("m"),
                                                    .error_details = bytes_text("{}")}};
  wire_evidence_write(&out, &document);
  assert_text(&out, "{\"evidence_id\":\"" ID32(1) "\",\"attempt_id\":\"" ID32(3) "\",\"epoch\":\"2\",\"message_id\":\"" ID32(4)
                    "\",\"reported_at\":\"2026-09-17T00:01:00Z\",\"reason\":\"STALE_EPOCH\",\"outcome\":\"FAILED\","
                    "\"retryable\":false,\"error\":{\"code\":\"E\",\"message\":\"m\",\"details\":{}}}");
  document.evidence = (struct event_evidence_recorded){.evidence_id = id_of(1),
                                                       .attempt_id = id_of(3),
                                                       .epoch = 2,
                                                       .message_id = id_of(4),
                                                       .reason = EVIDENCE_TASK_ENDED,
                                                       .outcome = OUTCOME_SUCCEEDED,
                                                       .result = bytes_text("[]")};
  wire_evidence_write(&out, &document);
  assert_text(&out, "{\"evidence_id\":\"" ID32(1) "\",\"attempt_id\":\"" ID32(3) "\",\"epoch\":\"2\",\"message_id\":\"" ID32(4)
                    "\",\"reported_at\":\"2026-09-17T00:01:00Z\",\"reason\":\"TASK_ENDED\",\"outcome\":\"SUCCEEDED\","
                    "\"result\":[]}");
  buffer_clear(&out);
}

/* What a fault says to people, and what it keeps to itself. */
static const struct {
  struct fault fault;
  const char *text;
} faults[] = {
    {{STATUS_INVALID_ARGUMENT, 0, "/retry/max_attempts", "too \"many\""},
     "{\"code\":\"INVALID_ARGUMENT\",\"message\":\"too \\\"many\\\"\",\"field\":\"/retry/max_attempts\"}"},
    {{STATUS_QUEUE_FULL, 1000, "", "full"}, "{\"code\":\"QUEUE_FULL\",\"message\":\"full\",\"retry_after_ms\":1000}"},
    {{STATUS_LEASE_LOST, 0, "", ""}, "{\"code\":\"LEASE_LOST\",\"message\":\"the attempt has no authority any more\"}"},
    {{STATUS_NO_SPACE, 5, "/var/x", "/var/lib/orbit is full"},
     "{\"code\":\"UNAVAILABLE\",\"message\":\"Orbit cannot answer now; the operation may have been committed: repeat it with "
     "the same "
     "identity\",\"retry_after_ms\":5}"},
    {{STATUS_CORRUPT, 0, "", "seq 5"}, "{\"code\":\"INTERNAL\",\"message\":\"a defect in Orbit\"}"},
    {{STATUS_NOT_FOUND, 0, "/\xC3", "cut \xF0\x9F\x98"}, "{\"code\":\"NOT_FOUND\",\"message\":\"cut \",\"field\":\"/\"}"},
};

static void test_faults(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    wire_fault_write(&out, &faults[i].fault);
    assert_text(&out, faults[i].text);
  }
  wire_error_write(&out, ID32(4), &faults[1].fault);
  assert_text(&out, "{\"request_id\":\"" ID32(
                        4) "\",\"error\":{\"code\":\"QUEUE_FULL\",\"message\":\"full\",\"retry_after_ms\":1000}}");
  buffer_clear(&out);
}

static void test_members(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  buffer_append_text(&out, "{");
  wire_text_member(&out, "absent", bytes_of(NULL, 0));
  wire_time_member(&out, "never", 0);
  wire_raw_member(&out, "none", bytes_of(NULL, 0));
  wire_text_member(&out, "empty", bytes_of("", 0));
  wire_number_member(&out, "least", 0);
  wire_number_member(&out, "most", UINT64_MAX);
  wire_decimal_member(&out, "decimal", UINT64_MAX);
  wire_bool_member(&out, "yes", true);
  wire_time_member(&out, "last", time_us_max - 1);
  buffer_append_text(&out, "}");
  assert_text(&out,
              "{\"empty\":\"\",\"least\":0,\"most\":18446744073709551615,\"decimal\":\"18446744073709551615\",\"yes\":true,"
              "\"last\":\"9998-12-31T23:59:59.999999Z\"}");
  buffer_clear(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_reviewed_task_of_the_example),
      cmocka_unit_test(test_the_retried_task_of_the_example),
      cmocka_unit_test(test_every_field_in_its_place),
      cmocka_unit_test(test_full_buffers),
      cmocka_unit_test(test_attempts),
      cmocka_unit_test(test_evidence),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_members),
  };
  return cmocka_run_group_tests_name("wire_http", tests, NULL, NULL);
}
