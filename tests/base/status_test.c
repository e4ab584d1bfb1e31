/* The table of results, and faults. */
#include "base/status.h"

#include <string.h>

#include "support/support.h"

static void public_codes_have_their_http_status(void **state) {
  (void)state;
  static const struct {
    const char *name;
    unsigned http;
    bool retryable;
  } cases[] = {
      {"OK", 200, false},
      {"INVALID_ARGUMENT", 400, false},
      {"UNAUTHENTICATED", 401, false},
      {"PERMISSION_DENIED", 403, false},
      {"NOT_FOUND", 404, false},
      {"METHOD_NOT_ALLOWED", 405, false},
      {"NOT_ACCEPTABLE", 406, false},
      {"STATE_CONFLICT", 409, false},
      {"IDEMPOTENCY_CONFLICT", 409, false},
      {"LEASE_LOST", 409, false},
      {"LENGTH_REQUIRED", 411, false},
      {"PAYLOAD_TOO_LARGE", 413, false},
      {"URI_TOO_LONG", 414, false},
      {"UNSUPPORTED_MEDIA_TYPE", 415, false},
      {"UPGRADE_REQUIRED", 426, false},
      {"QUEUE_FULL", 429, true},
      {"APPLICATION_FULL", 429, true},
      {"RATE_LIMITED", 429, true},
      {"HEADERS_TOO_LARGE", 431, false},
      {"INTERNAL", 500, false},
      {"UNAVAILABLE", 503, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    enum status status = status_from_name(cases[i].name);
    assert_int_not_equal(status, STATUS_COUNT);
    assert_string_equal(status_name(status), cases[i].name);
    assert_int_equal(status_http(status), cases[i].http);
    assert_int_equal(status_is_retryable(status), cases[i].retryable);
  }
}

static void every_row_is_whole(void **state) {
  (void)state;
  for (unsigned i = 0; i < STATUS_COUNT; i++) {
    enum status status = (enum status)i;
    assert_true(strlen(status_name(status)) > 0 && strlen(status_text(status)) > 0);
    assert_int_equal(status_from_name(status_name(status)), status); /* names are unique */
    assert_in_range(status_http(status), 200, 599);
    assert_in_range(status_close_code(status), 1000, 4999);
  }
  assert_int_equal(status_from_name("NO_SUCH_CODE"), STATUS_COUNT);
  assert_int_equal(status_from_name(""), STATUS_COUNT);
  assert_string_equal(status_name(STATUS_COUNT), "INTERNAL"); /* out of range is a defect, not a crash */
}

static void faults_carry_the_refusal(void **state) {
  (void)state;
  struct fault fault;
  memset(&fault, 0xA5, sizeof fault);
  assert_int_equal(fault_set(&fault, STATUS_INVALID_ARGUMENT, "/payload", "%d is not %s", 5, "six"), STATUS_INVALID_ARGUMENT);
  assert_int_equal(fault.status, STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "/payload");
  assert_string_equal(fault.message, "5 is not six");
  assert_int_equal(fault.retry_after_ms, 0);

  char large[1000];
  memset(large, 'x', sizeof large - 1);
  large[sizeof large - 1] = 0;
  assert_int_equal(fault_set(&fault, STATUS_INTERNAL, large, "%s", large), STATUS_INTERNAL);
  assert_int_equal(strlen(fault.field), sizeof fault.field - 1); /* cut, and ended */
  assert_int_equal(strlen(fault.message), sizeof fault.message - 1);

  assert_int_equal(fault_set(&fault, STATUS_NOT_FOUND, NULL, "gone"), STATUS_NOT_FOUND);
  assert_string_equal(fault.field, "");
  assert_int_equal(fault_set(NULL, STATUS_NOT_FOUND, NULL, "nobody listens"), STATUS_NOT_FOUND);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(public_codes_have_their_http_status),
      cmocka_unit_test(every_row_is_whole),
      cmocka_unit_test(faults_carry_the_refusal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
