/* Times in text: exactly one form, real dates only, microseconds. */
#include "base/time_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/support.h"

static const char *format(int64_t time_us) {
  static char text[time_chars_max + 1];
  size_t size = time_format(time_us, text);
  assert_true(size <= time_chars_max);
  text[size] = 0;
  return text;
}

static void writes_the_shortest_form(void **state) {
  (void)state;
  static const struct {
    int64_t us;
    const char *text;
  } cases[] = {
      {INT64_C(946684800000000), "2000-01-01T00:00:00Z"},           {INT64_C(946684800000001), "2000-01-01T00:00:00.000001Z"},
      {INT64_C(946684800100000), "2000-01-01T00:00:00.1Z"},         {INT64_C(946684800120300), "2000-01-01T00:00:00.1203Z"},
      {INT64_C(946684800999999), "2000-01-01T00:00:00.999999Z"},    {INT64_C(951782400000000), "2000-02-29T00:00:00Z"},
      {INT64_C(1789603200000000), "2026-09-17T00:00:00Z"},          {INT64_C(1789603220500000), "2026-09-17T00:00:20.5Z"},
      {INT64_C(4107542399000000), "2100-02-28T23:59:59Z"},          {INT64_C(4107542400000000), "2100-03-01T00:00:00Z"},
      {INT64_C(253370764799999999), "9998-12-31T23:59:59.999999Z"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t back = 0;
    assert_string_equal(format(cases[i].us), cases[i].text);
    char zeroed[time_chars_max + 1] = "";
    (void)time_format(cases[i].us, zeroed);
    assert_string_equal(zeroed, cases[i].text); /* no digit is left behind the end */
    assert_true(time_parse(bytes_text(cases[i].text), &back));
    assert_int_equal(back, cases[i].us);
  }
}

static void every_time_is_near_one_that_has_a_text(void **state) {
  (void)state;
  static const struct {
    int64_t us, nearest;
  } cases[] = {
      {INT64_MIN, time_us_min},
      {0, time_us_min}, /* a machine without a clock of its own comes up in 1970 */
      {time_us_min - 1, time_us_min},
      {time_us_min, time_us_min},
      {time_us_max - 1, time_us_max - 1},
      {time_us_max, time_us_max - 1},
      {INT64_C(253402300799000000), time_us_max - 1}, /* 9999-12-31T23:59:59Z: how certificates say "for ever" */
      {INT64_MAX, time_us_max - 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(time_with_text(cases[i].us), cases[i].nearest);
    assert_int_equal(time_has_text(cases[i].us), cases[i].us == cases[i].nearest);
    assert_int_not_equal(strlen(format(time_with_text(cases[i].us))), 0);
  }
}

static void reads_only_that_form(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool valid;
  } cases[] = {
      {"2026-09-17T00:00:00Z", true},
      {"2026-09-17T00:00:00.0Z", true}, /* zeros may be given; they are not written */
      {"2026-09-17T00:00:00.123456Z", true},
      {"2026-09-17T00:00:00.1234567Z", false},
      {"2026-09-17T00:00:00.Z", false},
      {"2026-09-17T00:00:00,5Z", false},
      {"2026-09-17T00:00:00", false},
      {"2026-09-17T00:00:00z", false},
      {"2026-09-17t00:00:00Z", false},
      {"2026-09-17 00:00:00Z", false},
      {"2026-09-17T00:00:00+00:00", false},
      {"2026-09-17T00:00:00Z ", false},
      {" 2026-09-17T00:00:00Z", false},
      {"2026-9-17T00:00:00Z", false},
      {"+2026-09-17T00:00:00Z", false},
      {"2026-09-17T24:00:00Z", false},
      {"2026-09-17T23:60:00Z", false},
      {"2026-09-17T23:59:60Z", false}, /* no leap seconds */
      {"2026-00-17T00:00:00Z", false},
      {"2026-13-17T00:00:00Z", false},
      {"2026-09-00T00:00:00Z", false},
      {"2026-09-31T00:00:00Z", false},
      {"2026-02-29T00:00:00Z", false},
      {"2028-02-29T00:00:00Z", true},
      {"2100-02-29T00:00:00Z", false},
      {"2000-02-29T00:00:00Z", true},
      {"1999-12-31T23:59:59.999999Z", false},
      {"2000-01-01T00:00:00Z", true},
      {"9998-12-31T23:59:59.999999Z", true},
      {"9999-01-01T00:00:00Z", false},
      {"", false},
      {"Z", false},
      {"2026", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t us = -7;
    bool valid = time_parse(bytes_text(cases[i].text), &us);
    if (valid != cases[i].valid) fail_msg("\"%s\": %d", cases[i].text, valid);
    if (!valid) assert_int_equal(us, -7);
  }
}

static void every_prefix_is_refused(void **state) {
  (void)state;
  static const char text[] = "2026-09-17T01:02:03.456789Z";
  for (size_t size = 0; size < sizeof text - 1; size++) {
    int64_t us;
    uint8_t *copy = malloc(size + 1); /* ends where the text ends, so that a read past it is found */
    assert_non_null(copy);
    memcpy(copy, text, size);
    assert_false(time_parse(bytes_of(copy, size), &us));
    free(copy);
  }
}

static void agrees_with_the_c_library(void **state) {
  (void)state;
  uint64_t random = test_seed();
  for (unsigned i = 0; i < 20000; i++) {
    int64_t us = time_us_min + (int64_t)(test_random(&random) % (uint64_t)(time_us_max - time_us_min));
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    char expected[40];
    assert_non_null(gmtime_r(&seconds, &tm));
    size_t size = strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(expected + size, sizeof expected - size, ".%06dZ", (int)(us % 1000000));
    int64_t back = 0;
    assert_true(time_parse(bytes_text(expected), &back));
    assert_int_equal(back, us);
    assert_true(time_parse(bytes_text(format(us)), &back));
    assert_int_equal(back, us);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_the_shortest_form),  cmocka_unit_test(every_time_is_near_one_that_has_a_text),
      cmocka_unit_test(reads_only_that_form),      cmocka_unit_test(every_prefix_is_refused),
      cmocka_unit_test(agrees_with_the_c_library),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
