/* task.finish: what may stand beside which outcome, the bounds of errors, and the digest of the meaning. */
#include "wire_worker_reading.h"

#define FINISH(rest) \
  "{\"type\":\"task.finish\",\"message_id\":\"" ID32("1") "\",\"task_id\":\"" ID32("2") "\",\"attempt_id\":\"" ID32("3") "\"," \
  "\"epoch\":\"7\"," rest "}"

static const struct {
  const char *rest, *field;
} finishes[] = {
    {FINISH("\"outcome\":\"SUCCEEDED\""), NULL},
    {FINISH("\"outcome\":\"SUCCEEDED\",\"result\":{},\"retryable\":false"), NULL},
    {FINISH("\"outcome\":\"SUCCEEDED\",\"retryable\":true"), "/retryable"},
    {FINISH("\"outcome\":\"SUCCEEDED\",\"error\":{\"code\":\"E\"}"), "/error"},
    {FINISH("\"outcome\":\"FAILED\""), NULL},
    {FINISH("\"outcome\":\"FAILED\",\"retryable\":true"), NULL},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\"}"), NULL},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\"},\"retryable\":true"), NULL},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\"},\"result\":1"), "/result"},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{}"), "/error/code"},
    {FINISH("\"outcome\":\"FAILED\",\"error\":[]"), "/error"},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":null}"), "/error/code"},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"\"}"), "/error/code"},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"a b\"}"), "/error/code"},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\",\"Code\":\"E\"}"), "/error/Code"},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\",\"message\":\"\"}"), NULL},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\",\"message\":null}"), "/error/message"},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\",\"details\":null}"), "/error/details"},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\",\"details\":false}"), NULL},
    {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\",\"stack\":\"\"}"), "/error/stack"},
    {FINISH("\"outcome\":\"UNKNOWN\""), NULL},
    {FINISH("\"outcome\":\"UNKNOWN\",\"error\":{\"code\":\"E\"}"), NULL},
    {FINISH("\"outcome\":\"UNKNOWN\",\"retryable\":true"), "/retryable"},
    {FINISH("\"outcome\":\"UNKNOWN\",\"result\":1"), "/result"},
    {FINISH("\"outcome\":\"CANCELLED\",\"error\":{\"code\":\"E\"}"), NULL},
    {FINISH("\"outcome\":\"CANCELLED\",\"retryable\":true"), "/retryable"},
    {FINISH("\"outcome\":\"CANCELLED\",\"result\":1"), "/result"},
};

static void test_what_stands_beside_which_outcome(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof finishes / sizeof finishes[0]; i++) {
    enum status status = read_text(&reading, finishes[i].rest);
    enum status expected = finishes[i].field == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT;
    if (status != expected || (expected != STATUS_OK && strcmp(reading.fault.field, finishes[i].field) != 0))
      fail_msg("%s: %s at '%s' (%s)", finishes[i].rest, status_name(status), reading.fault.field, reading.fault.message);
  }
  reading_clear(&reading);
}

static void test_bounds_of_errors(void **state) {
  (void)state;
  static const struct {
    const char *format, *value, *field;
  } bounds[] = {
      {"{\"code\":%s}", "@word:128", NULL},
      {"{\"code\":%s}", "@word:129", "/error/code"},
      {"{\"code\":\"E\",\"message\":%s}", "@text:4096", NULL},
      {"{\"code\":\"E\",\"message\":%s}", "@text:4097", "/error/message"},
      {"{\"code\":\"E\",\"details\":%s}", "@document:262144", NULL},
      {"{\"code\":\"E\",\"details\":%s}", "@document:262145", "/error/details"},
  };
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
    const char *hole = strstr(bounds[i].format, "%s");
    buffer_reset(&reading.frame);
    buffer_append_text(&reading.frame, FINISH("\"outcome\":\"FAILED\",\"error\":"));
    reading.frame.size--; /* the brace */
    buffer_append(&reading.frame, bounds[i].format, (size_t)(hole - bounds[i].format));
    put_value(&reading.frame, bounds[i].value);
    buffer_append_text(&reading.frame, hole + 2);
    buffer_append_text(&reading.frame, "}");
    assert_int_equal(read_frame(&reading), bounds[i].field == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT);
    if (bounds[i].field != NULL) assert_string_equal(reading.fault.field, bounds[i].field);
  }
  reading_clear(&reading);
}

static void test_a_report_is_taken_whole(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  reading.command.session = 9;
  assert_int_equal(
      read_text(&reading, FINISH("\"outcome\":\"FAILED\",\"retryable\":true,\"error\":{\"code\":\"TEMPORARY_REJECTION\","
                                 "\"message\":\"a\\nb\",\"details\":{ \"n\" : 9007199254740993 }}")),
      STATUS_OK);
  const struct finish_command *finish = &reading.command.as.finish;
  assert_int_equal(reading.command.kind, COMMAND_FINISH);
  assert_int_equal(reading.command.session, 9);
  assert_int_equal(finish->ref.message_id.bytes[0], 0x11);
  assert_int_equal(finish->ref.task_id.bytes[0], 0x22);
  assert_int_equal(finish->ref.attempt_id.bytes[0], 0x33);
  assert_int_equal(finish->ref.epoch, 7);
  assert_int_equal(finish->report.outcome, OUTCOME_FAILED);
  assert_true(finish->report.retryable);
  assert_true(bytes_equal_text(finish->report.error_code, "TEMPORARY_REJECTION"));
  assert_true(bytes_equal_text(finish->report.error_message, "a\nb"));
  assert_true(bytes_equal_text(finish->report.error_details, "{\"n\":9007199254740993}"));
  assert_null(finish->report.result.data);
  assert_true(id_equal(&reading.message_id, &finish->ref.message_id));

  assert_int_equal(read_text(&reading, FINISH("\"outcome\":\"SUCCEEDED\",\"result\":[ 1.10 ]")), STATUS_OK);
  assert_true(bytes_equal_text(finish->report.result, "[1.10]"));
  assert_null(finish->report.error_code.data);
  assert_false(finish->report.retryable);
  reading_clear(&reading);
}

/* Texts that mean the same as the first, and texts that do not. */
static void test_digest_is_of_the_meaning(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool same;
  } reports[] = {
      {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\",\"details\":{\"a\":1,\"b\":2}}"), true},
      {FINISH("\"error\":{\"details\":{\"b\": "
              "2,\"a\":1},\"message\":\"\",\"code\":\"E\"},\"retryable\":false,\"outcome\":\"FAILED\""),
       true},
      {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\",\"details\":{\"a\":1,\"b\":2.0}}"), false},
      {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\"}"), false},
      {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"F\",\"details\":{\"a\":1,\"b\":2}}"), false},
      {FINISH("\"outcome\":\"FAILED\",\"error\":{\"code\":\"E\",\"message\":\"m\",\"details\":{\"a\":1,\"b\":2}}"), false},
      {FINISH("\"outcome\":\"FAILED\",\"retryable\":true,\"error\":{\"code\":\"E\",\"details\":{\"a\":1,\"b\":2}}"), false},
      {FINISH("\"outcome\":\"UNKNOWN\",\"error\":{\"code\":\"E\",\"details\":{\"a\":1,\"b\":2}}"), false},
      {FINISH("\"outcome\":\"SUCCEEDED\",\"result\":{\"a\":1,\"b\":2}"), false},
  };
  struct reading reading;
  reading_init(&reading);
  struct id first = {{0}};
  for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
    assert_int_equal(read_text(&reading, reports[i].text), STATUS_OK);
    if (i == 0) first = reading.command.operation.digest;
    if (id_equal(&first, &reading.command.operation.digest) != reports[i].same) fail_msg("%s", reports[i].text);
  }
  reading_clear(&reading);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_stands_beside_which_outcome),
      cmocka_unit_test(test_bounds_of_errors),
      cmocka_unit_test(test_a_report_is_taken_whole),
      cmocka_unit_test(test_digest_is_of_the_meaning),
  };
  return cmocka_run_group_tests_name("wire_finish", tests, NULL, NULL);
}
