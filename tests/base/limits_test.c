/* The bounds that users were promised, by number. */
#include "base/limits.h"

#include "support/support.h"

static void promised_bounds(void **state) {
  (void)state;
  assert_int_equal(http_body_bytes_max, 524288);
  assert_int_equal(http_batch_body_bytes_max, 4194304);
  assert_int_equal(idempotency_key_chars_max, 128);
  assert_int_equal(json_depth_max, 64);
  assert_int_equal(document_bytes_max, 262144);
  assert_int_equal(word_chars_max, 128);
  assert_int_equal(key_chars_max, 256);
  assert_int_equal(reason_chars_max, 1024);
  assert_int_equal(evidence_ref_chars_max, 512);
  assert_int_equal(page_rows_default, 20);
  assert_int_equal(page_rows_max, 100);
  assert_int_equal(cursor_chars_max, 1024);
  assert_int_equal(batch_items_max, 1000);
  assert_int_equal(attempts_max, 100);
  assert_int_equal(priority_max, 9);
  assert_int_equal(delay_ms_max, 86400000);
  assert_int_equal(available_past_us_max, 1000000);
  assert_int_equal(task_timeout_ms_max, 2592000000U);
  assert_int_equal(worker_capacity_max, 1000);
  assert_int_equal(lease_ms_min, 5000);
  assert_int_equal(lease_ms_max, 300000);
  assert_int_equal(worker_message_bytes_max, 524288);
  assert_int_equal(worker_frame_bytes_max, 1048576);
  assert_int_equal(worker_frame_messages_max, 256);
  assert_int_equal(worker_unsent_bytes_max, 4194304);
  assert_int_equal(worker_bad_frames_max, 3);
  assert_int_equal(worker_ping_s, 20);
  assert_int_equal(worker_silence_s_max, 60);
}

static void times_cannot_overflow(void **state) {
  (void)state;
  /* The latest time that text can hold, and the longest task on top of it, in microseconds. */
  int64_t latest = INT64_C(253370764800) * 1000000, end;
  assert_false(__builtin_add_overflow(latest, (int64_t)task_timeout_ms_max * 1000, &end));
  /* Attempt counts and delays fit the fields of a task. */
  assert_true(attempts_max <= UINT16_MAX && priority_max <= UINT8_MAX);
  assert_true(task_timeout_ms_max <= UINT32_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(promised_bounds),
      cmocka_unit_test(times_cannot_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
