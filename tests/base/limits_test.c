/* The bounds that users were promised, by number. */
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

#define BOUND(name) \
  { #name, name }

static void bounds_are_as_promised(void **state) {
  (void)state;
  const struct {
    const char *name;
    uint64_t value;
  } bounds[] = {
      BOUND(http_body_bytes_max),
      BOUND(http_batch_body_bytes_max),
      BOUND(http_target_bytes_max),
      BOUND(http_header_bytes_max),
      BOUND(idempotency_key_chars_max),
      BOUND(json_depth_max),
      BOUND(document_bytes_max),
      BOUND(word_chars_max),
      BOUND(key_chars_max),
      BOUND(name_chars_max),
      BOUND(reason_chars_max),
      BOUND(evidence_ref_chars_max),
      BOUND(error_code_chars_max),
      BOUND(error_message_chars_max),
      BOUND(page_rows_default),
      BOUND(page_rows_max),
      BOUND(cursor_chars_max),
      BOUND(batch_items_max),
      BOUND(queue_ids_max),
      BOUND(handlers_max),
      BOUND(attempts_max),
      BOUND(attempt_evidence_max),
      BOUND(cancel_requests_max),
      BOUND(priority_max),
      BOUND(delay_ms_max),
      BOUND(available_past_us_max),
      BOUND(task_timeout_ms_max),
      BOUND(cron_chars_max),
      BOUND(timezone_chars_max),
      BOUND(schedule_interval_ms_min),
      BOUND(schedule_interval_ms_max),
      BOUND(catch_up_limit_default),
      BOUND(catch_up_limit_max),
      BOUND(preview_times_max),
      BOUND(schedule_late_us_max),
      BOUND(worker_capacity_max),
      BOUND(lease_ms_min),
      BOUND(lease_ms_max),
      BOUND(lease_ms_default),
      BOUND(worker_message_bytes_max),
      BOUND(worker_frame_bytes_max),
      BOUND(worker_frame_messages_max),
      BOUND(worker_unsent_bytes_max),
      BOUND(worker_bad_frames_max),
      BOUND(worker_ping_s),
      BOUND(worker_silence_s_max),
  };
  struct bytes page = test_file_read(ORBIT_SOURCE_DIR "/schema/semantics.md");
  assert_non_null(page.data);
  for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
    char row[100];
    (void)snprintf(row, sizeof row, "\n| %s | %" PRIu64 " |\n", bounds[i].name, bounds[i].value);
    if (memmem(page.data, page.size, row, strlen(row)) == NULL) fail_msg("schema/semantics.md has no row:%s", row);
  }
  free((void *)(uintptr_t)page.data);
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
      cmocka_unit_test(bounds_are_as_promised),
      cmocka_unit_test(times_cannot_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
