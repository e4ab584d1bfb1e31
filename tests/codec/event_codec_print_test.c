/* The JSON form of events. */
#include "codec/event_samples.h"

/* ---- printing ---- */

static void events_are_printed(void **state) {
  (void)state;
  struct event leased = sample_start(event_schema_find(EVENT_task_leased));
  leased.common.revision = 2;
  leased.body.task_leased.number = 1;
  leased.body.task_leased.epoch = UINT64_MAX;
  leased.body.task_leased.lease_ms = 30000;
  leased.body.task_leased.instance_name = bytes_text("w\"1\"\n");
  leased.body.task_leased.lease_until = 1767225600500000;
  memset(leased.common.actor.bytes, 0xAB, id_bytes);
  struct event credential = sample_start(event_schema_find(EVENT_credential_created));
  uint8_t ids[32];
  memset(ids, 0x0F, sizeof ids);
  credential.body.credential_created.queue_ids = bytes_of(ids, 32);
  credential.body.credential_created.token_hash = bytes_of(ids, 32);
  struct event result = sample_start(event_schema_find(EVENT_attempt_result));
  result.body.attempt_result.outcome = OUTCOME_FAILED;
  result.body.attempt_result.retryable = true;
  result.body.attempt_result.error_details = bytes_text("{\"n\":1.10}");
  result.body.attempt_result.lease_until = -5;
#define ZERO_ID "\"00000000000000000000000000000000\""
  const struct {
    const struct event *event;
    bool decimal, documents;
    const char *text;
  } cases[] = {
      {&leased, true, true,
       "\"operation_id\":" ZERO_ID ",\"actor\":\"abababababababababababababababab\",\"revision\":\"2\",\"attempt_id\":" ZERO_ID
       ",\"number\":1,\"epoch\":\"18446744073709551615\",\"instance_id\":" ZERO_ID
       ",\"instance_name\":\"w\\\"1\\\"\\n\",\"worker_application_id\":" ZERO_ID
       ",\"lease_ms\":30000,\"lease_until\":\"2026-01-01T00:00:00.5Z\""},
      {&leased, false, true,
       "\"operation_id\":" ZERO_ID ",\"actor\":\"abababababababababababababababab\",\"revision\":2,\"attempt_id\":" ZERO_ID
       ",\"number\":1,\"epoch\":18446744073709551615,\"instance_id\":" ZERO_ID
       ",\"instance_name\":\"w\\\"1\\\"\\n\",\"worker_application_id\":" ZERO_ID
       ",\"lease_ms\":30000,\"lease_until\":\"2026-01-01T00:00:00.5Z\""},
      {&credential, true, true,
       "\"operation_id\":" ZERO_ID ",\"actor\":" ZERO_ID
       ",\"permissions\":0,\"queue_ids\":[\"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f\",\"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f\"]"},
      {&result, true, true,
       "\"operation_id\":" ZERO_ID ",\"actor\":" ZERO_ID ",\"attempt_id\":" ZERO_ID ",\"epoch\":\"0\",\"message_id\":" ZERO_ID
       ",\"outcome\":\"FAILED\",\"retryable\":true,\"error_details\":{\"n\":1.10},\"lease_until\":-5,\"report_"
       "identity\":" ZERO_ID},
      {&result, true, false,
       "\"operation_id\":" ZERO_ID ",\"actor\":" ZERO_ID ",\"attempt_id\":" ZERO_ID ",\"epoch\":\"0\",\"message_id\":" ZERO_ID
       ",\"outcome\":\"FAILED\",\"retryable\":true,\"error_details_bytes\":10,\"lease_until\":-5,\"report_identity\":" ZERO_ID},
  };
  struct buffer out;
  buffer_init(&out, 4096);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    buffer_reset(&out);
    event_print_json(cases[i].event, cases[i].decimal, cases[i].documents, &out);
    buffer_append_char(&out, 0);
    assert_string_equal((const char *)out.data, cases[i].text);
  }
  buffer_clear(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(events_are_printed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
