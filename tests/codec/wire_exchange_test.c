/* The exchange of schema/worker.md, byte for byte: what a worker sends is read, and what Orbit says is written as it stands
 * there. */
#include "support/support.h"

#include <string.h>

#include "base/time_text.h"
#include "codec/wire_http.h"
#include "codec/wire_worker.h"

static int64_t time_of(const char *text) {
  int64_t time_us = 0;
  assert_true(time_parse(bytes_text(text), &time_us));
  return time_us;
}

/* "…31" is thirty zeroes and these two digits. */
static struct id id_of(unsigned last) {
  struct id id = {{0}};
  id.bytes[15] = (uint8_t)last;
  return id;
}
#define ID(last) "000000000000000000000000000000" last

static void assert_text(struct buffer *out, const char *expected) {
  assert_false(out->failed);
  if (!bytes_equal_text(buffer_bytes(out), expected)) {
    buffer_append_char(out, 0);
    fail_msg("written:\n%s\nexpected:\n%s", (const char *)out->data, expected);
  }
  buffer_reset(out);
}

struct reading {
  struct json json;
  struct buffer texts;
  struct command command;
  struct id message_id;
};

static void read_one(struct reading *reading, const char *text) {
  struct secret secret = {{1}};
  struct principal who = {.namespace_id = id_of(0x33), .application_id = id_of(0x44)};
  struct worker_frame frame;
  struct fault fault;
  buffer_reset(&reading->texts);
  assert_int_equal(worker_frame_read(&reading->json, bytes_text(text), &frame, &fault), STATUS_OK);
  assert_int_equal(worker_message_read(&reading->json, frame.first, &secret, &who, &reading->texts, &reading->command,
                                       &reading->message_id, &fault),
                   STATUS_OK);
}

static void test_what_the_worker_says(void **state) {
  (void)state;
  struct reading reading;
  json_init(&reading.json);
  buffer_init(&reading.texts, 1 << 20);
  read_one(&reading,
           "{\"type\":\"worker.hello\",\"message_id\":\"" ID("01") "\",\"instance_id\":\"" ID("a1") "\",\"queue_ids\":[\"" ID(
               "11") "\"],\"capacity\":4,\n   \"handlers\":[{\"handler\":\"text.normalize\",\"handler_version\":\"v1\"}]}");
  assert_int_equal(reading.command.kind, COMMAND_HELLO);
  assert_int_equal(reading.command.as.hello.instance_id.bytes[15], 0xA1);
  assert_int_equal(reading.command.as.hello.queue_ids[0].bytes[15], 0x11);
  assert_true(bytes_equal_text(reading.command.as.hello.handlers[0].handler, "text.normalize"));
  assert_int_equal(reading.command.as.hello.capacity, 4);

  read_one(&reading, "{\"type\":\"task.start\",\"message_id\":\"" ID("02") "\",\"task_id\":\"" ID(
                         "22") "\",\"attempt_id\":\"" ID("31") "\",\"epoch\":\"1\"}");
  assert_int_equal(reading.command.kind, COMMAND_START);
  assert_int_equal(reading.command.as.ref.attempt_id.bytes[15], 0x31);
  assert_int_equal(reading.message_id.bytes[15], 2);

  read_one(&reading, "{\"type\":\"task.finish\",\"message_id\":\"" ID("03") "\",\"task_id\":\"" ID("22") "\",\"attempt_id\":\"" ID(
                         "31") "\",\"epoch\":\"1\",\"outcome\":\"FAILED\",\n   \"retryable\":true,\"error\":{\"code\":"
                               "\"TEMPORARY_REJECTION\",\"details\":{\"reason_ref\":\"diagnostics/temporary\"}}}");
  assert_int_equal(reading.command.kind, COMMAND_FINISH);
  assert_true(reading.command.as.finish.report.retryable);
  assert_true(bytes_equal_text(reading.command.as.finish.report.error_details, "{\"reason_ref\":\"diagnostics/temporary\"}"));
  json_clear(&reading.json);
  buffer_clear(&reading.texts);
}

static struct worker_result started(void) {
  return (struct worker_result){.applied = true,
                                .has_task = true,
                                .task_id = id_of(0x22),
                                .task_state = TASK_RUNNING,
                                .task_revision = 3,
                                .lease_active = true,
                                .lease_expires_at = time_of("2026-09-17T00:00:30Z")};
}

static struct worker_result requeued(void) {
  return (struct worker_result){.applied = true,
                                .disposition = DECISION_RETRYABLE_FAILURE,
                                .has_task = true,
                                .task_id = id_of(0x22),
                                .task_state = TASK_WAITING,
                                .task_revision = 4,
                                .available_at = time_of("2026-09-17T00:00:01.5Z")};
}

static void test_results(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  struct id second = id_of(2), third = id_of(3);
  struct worker_result result = started();
  worker_result_write(&out, &second, &result);
  assert_text(&out, "{\"type\":\"command.result\",\"message_id\":\"" ID("02") "\",\"ok\":true,\"applied\":true,\"task\":{\"id\":\"" ID(
                        "22") "\",\"state\":\"RUNNING\",\"revision\":\"3\"},\"lease\":{\"active\":true,\"expires_at\":"
                              "\"2026-09-17T00:00:30Z\"}}");
  result = requeued();
  worker_result_write(&out, &third, &result);
  assert_text(&out, "{\"type\":\"command.result\",\"message_id\":\"" ID("03") "\",\"ok\":true,\"applied\":true,\"disposition\":"
                    "\"RETRYABLE_FAILURE\",\"task\":{\"id\":\"" ID("22") "\",\"state\":\"WAITING\",\"revision\":\"4\","
                    "\"available_at\":\"2026-09-17T00:00:01.5Z\"},\"lease\":{\"active\":false}}");
  result.deduplicated = true;
  worker_result_write(&out, &third, &result);
  assert_text(&out, "{\"type\":\"command.result\",\"message_id\":\"" ID("03") "\",\"ok\":true,\"applied\":true,\"deduplicated\":true,"
                    "\"disposition\":\"RETRYABLE_FAILURE\",\"task\":{\"id\":\"" ID("22") "\",\"state\":\"WAITING\",\"revision\":"
                    "\"4\",\"available_at\":\"2026-09-17T00:00:01.5Z\"},\"lease\":{\"active\":false}}");
  result = (struct worker_result){.evidence = true,
                                  .has_task = true,
                                  .task_id = id_of(0x22),
                                  .task_state = TASK_SUCCEEDED,
                                  .task_revision = 6,
                                  .available_at = time_of("2026-09-17T00:00:01.5Z")};
  worker_result_write(&out, &third, &result);
  assert_text(&out, "{\"type\":\"command.result\",\"message_id\":\"" ID("03") "\",\"ok\":true,\"applied\":false,\"disposition\":"
                    "\"EVIDENCE\",\"task\":{\"id\":\"" ID("22") "\",\"state\":\"SUCCEEDED\",\"revision\":\"6\"},\"lease\":"
                    "{\"active\":false}}");
  worker_ok_write(&out, &third);
  assert_text(&out, "{\"type\":\"command.result\",\"message_id\":\"" ID("03") "\",\"ok\":true,\"applied\":true}");
  buffer_clear(&out);
}

static void test_refusals(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  struct id second = id_of(2), zero = {{0}};
  struct fault fault;
  (void)fault_set(&fault, STATUS_LEASE_LOST, NULL, "the lease is over");
  worker_refusal_write(&out, &second, &fault, NULL);
  assert_text(&out, "{\"type\":\"command.result\",\"message_id\":\"" ID("02") "\",\"ok\":false,\"applied\":false,\"error\":{\"code\":"
                    "\"LEASE_LOST\",\"message\":\"the lease is over\"}}");
  struct worker_result result = requeued();
  worker_refusal_write(&out, &second, &fault, &result);
  assert_text(&out, "{\"type\":\"command.result\",\"message_id\":\"" ID("02") "\",\"ok\":false,\"applied\":false,\"task\":{\"id\":\"" ID(
                        "22") "\",\"state\":\"WAITING\",\"revision\":\"4\",\"available_at\":\"2026-09-17T00:00:01.5Z\"},\"lease\":"
                              "{\"active\":false},\"error\":{\"code\":\"LEASE_LOST\",\"message\":\"the lease is over\"}}");
  (void)fault_set(&fault, STATUS_INVALID_ARGUMENT, "/retryable", "only outcome FAILED may be retryable");
  worker_refusal_write(&out, &second, &fault, NULL);
  assert_text(&out, "{\"type\":\"command.result\",\"message_id\":\"" ID("02") "\",\"ok\":false,\"applied\":false,\"error\":{\"code\":"
                    "\"INVALID_ARGUMENT\",\"message\":\"only outcome FAILED may be retryable\",\"field\":\"/retryable\"}}");
  worker_refusal_write(&out, &zero, &fault, &result);
  assert_text(&out,
              "{\"type\":\"error\",\"error\":{\"code\":\"INVALID_ARGUMENT\",\"message\":\"only outcome FAILED may be "
              "retryable\",\"field\":\"/retryable\"}}");
  buffer_clear(&out);
}

static void test_welcome(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  struct id message_id = id_of(1), node_id = id_of(0x0E);
  struct held_attempt held[2] = {{id_of(0x22), id_of(0x31), 1, 1, ATTEMPT_LEASED, time_of("2026-09-17T00:00:30Z")},
                                 {id_of(0x23), id_of(0x32), 2, UINT64_MAX, ATTEMPT_RUNNING, time_of("2026-09-17T00:00:31Z")}};
  struct welcome welcome = {.session_id = id_of(0x0F), .server_time = time_of("2026-09-17T00:00:00Z"), .lease_ms = 30000};
  worker_welcome_write(&out, &message_id, &welcome, &node_id);
  assert_text(&out,
              "{\"type\":\"worker.welcome\",\"message_id\":\"" ID("01") "\",\"session_id\":\"" ID("0f") "\",\"node_id\":\"" ID(
                  "0e") "\",\"server_time\":\"2026-09-17T00:00:00Z\",\"lease_ms\":30000,\"attempts\":[]}");
  welcome.held = held;
  welcome.held_count = 2;
  worker_welcome_write(&out, &message_id, &welcome, &node_id);
  assert_text(&out, "{\"type\":\"worker.welcome\",\"message_id\":\"" ID("01") "\",\"session_id\":\"" ID("0f") "\",\"node_id\":\"" ID(
                        "0e") "\",\"server_time\":\"2026-09-17T00:00:00Z\",\"lease_ms\":30000,\"attempts\":[{\"task_id\":\"" ID("22")
                    "\",\"attempt_id\":\"" ID("31") "\",\"number\":1,\"epoch\":\"1\",\"state\":\"LEASED\",\"lease_expires_at\":"
                    "\"2026-09-17T00:00:30Z\"},{\"task_id\":\"" ID("23") "\",\"attempt_id\":\"" ID("32") "\",\"number\":2,\"epoch\":"
                    "\"18446744073709551615\",\"state\":\"RUNNING\",\"lease_expires_at\":\"2026-09-17T00:00:31Z\"}]}");
  buffer_clear(&out);
}

static void test_assignment(void **state) {
  (void)state;
  struct buffer out, task;
  buffer_init(&out, 1 << 20);
  buffer_init(&task, 1 << 20);
  struct attempt attempt = {.id = id_of(0x31), .lease_until = time_of("2026-09-17T00:00:30Z")};
  struct task_document document = {
      .task = {.id = id_of(0x22),
               .state = TASK_LEASED,
               .revision = 2,
               .created_at = time_of("2026-09-17T00:00:00Z"),
               .updated_at = time_of("2026-09-17T00:00:00Z"),
               .available_at = time_of("2026-09-17T00:00:00Z"),
               .deadline_at = time_of("2026-09-17T00:01:00Z"),
               .recovery_safety = RECOVERY_IDEMPOTENT,
               .max_attempts = 2,
               .attempt_timeout_ms = 10000,
               .attempt_count = 1,
               .epoch = 1,
               .effect_uncertain = true},
      .accepted = {.namespace_id = id_of(0x33),
                   .queue_id = id_of(0x11),
                   .handler = bytes_text("text.normalize"),
                   .handler_version = bytes_text("v1"),
                   .payload_version = bytes_text("v1"),
                   .payload = bytes_text("{\"text\":\"  safe retry  \"}"),
                   .retry_of = id_of(0x21)},
  };
  wire_task_write(&task, &document);
  buffer_append_char(&task, 0);
  assert_non_null(strstr((const char *)task.data, "\"payload\":{\"text\":\"  safe retry  \"}"));
  assert_non_null(strstr((const char *)task.data, "\"effect_uncertain\":true"));
  assert_non_null(strstr((const char *)task.data, "\"retry_of\":\"" ID("21") "\""));

  struct buffer expected;
  buffer_init(&expected, 1 << 20);
  buffer_append_format(&expected, "{\"type\":\"task.assign\",\"task\":%s,\"attempt\":{\"attempt_id\":\"" ID("31")
                                  "\",\"number\":1,\"epoch\":\"1\",\"lease_expires_at\":\"2026-09-17T00:00:30Z\","
                                  "\"attempt_timeout_ms\":10000}}",
                       (const char *)task.data);
  buffer_append_char(&expected, 0);
  worker_assign_write(&out, &document, &attempt);
  assert_text(&out, (const char *)expected.data);
  buffer_clear(&expected);

  attempt.live_until = time_of("2026-09-17T00:00:45Z");
  worker_assign_write(&out, &document, &attempt);
  buffer_append_char(&out, 0);
  assert_non_null(strstr((const char *)out.data, "\"lease_expires_at\":\"2026-09-17T00:00:45Z\""));
  buffer_clear(&task);
  buffer_clear(&out);
}

static void test_what_orbit_says_by_itself(void **state) {
  (void)state;
  struct buffer out;
  buffer_init(&out, 1 << 20);
  struct id task_id = id_of(0x22), attempt_id = id_of(0x31);
  struct fault fault;
  worker_cancel_write(&out, &task_id, &attempt_id, bytes_text("\"stop\""));
  assert_text(&out, "{\"type\":\"task.cancel\",\"task_id\":\"" ID("22") "\",\"attempt_id\":\"" ID(
                        "31") "\",\"reason\":\"\\\"stop\\\"\"}");
  worker_ended_write(&out, &task_id, &attempt_id, ENDED_LEASE_EXPIRED);
  assert_text(&out, "{\"type\":\"attempt.ended\",\"task_id\":\"" ID("22") "\",\"attempt_id\":\"" ID("31") "\",\"ended_by\":"
                    "\"LEASE_EXPIRED\"}");
  worker_drained_write(&out);
  assert_text(&out, "{\"type\":\"worker.drained\"}");
  worker_goaway_write(&out, 5000);
  assert_text(&out, "{\"type\":\"server.goaway\",\"reconnect_after_ms\":5000}");
  (void)fault_set(&fault, STATUS_INVALID_ARGUMENT, NULL, "not strict JSON");
  worker_error_write(&out, &fault);
  assert_text(&out, "{\"type\":\"error\",\"error\":{\"code\":\"INVALID_ARGUMENT\",\"message\":\"not strict JSON\"}}");
  buffer_clear(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_the_worker_says),
      cmocka_unit_test(test_results),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_welcome),
      cmocka_unit_test(test_assignment),
      cmocka_unit_test(test_what_orbit_says_by_itself),
  };
  return cmocka_run_group_tests_name("wire_exchange", tests, NULL, NULL);
}
