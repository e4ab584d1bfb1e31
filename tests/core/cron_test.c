/* Cron expressions: what they mean, and what is refused with its place. */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "core/cron.h"

/* ---- values ---- */

static void values_of_fields(void **context) {
  (void)context;
  static const struct {
    const char *text;
    uint64_t minutes;
    uint32_t hours, days;
    uint16_t months;
    uint8_t weekdays;
    bool either_day, fixed_hour;
  } rows[] = {
#define EVERY_MINUTE ((UINT64_C(1) << 60) - 1)
#define EVERY_HOUR ((1U << 24) - 1)
#define EVERY_DAY (((1U << 31) - 1) << 1)
#define EVERY_MONTH (((1U << 12) - 1) << 1)
#define EVERY_WEEKDAY 0x7F
      {"* * * * *", EVERY_MINUTE, EVERY_HOUR, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, false, false},
      {"0 0 1 1 0", 1, 1, 2, 2, 1, true, true},
      {"59 23 31 12 6", UINT64_C(1) << 59, 1U << 23, 1U << 31, 1U << 12, 1U << 6, true, true},
      {"0 0 * * 7", 1, 1, EVERY_DAY, EVERY_MONTH, 1, false, true},
      {"0 0 * * 5-7", 1, 1, EVERY_DAY, EVERY_MONTH, 0x61, false, true},
      {"0 0 * * FRI-SUN", 1, 1, EVERY_DAY, EVERY_MONTH, 0x61, false, true},
      {"0 0 * * 0-7", 1, 1, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, false, true},
      {"0 0 * jan,DEC sun", 1, 1, EVERY_DAY, (1U << 1) | (1U << 12), 1, false, true},
      {"0 0 * Mar-May Mon-fri", 1, 1, EVERY_DAY, 0x38, 0x3E, false, true},
      {"0,15,30-32 1 * * *", 1 | UINT64_C(1) << 15 | UINT64_C(7) << 30, 2, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, false, true},
      {"*/15 * * * *", 1 | UINT64_C(1) << 15 | UINT64_C(1) << 30 | UINT64_C(1) << 45, EVERY_HOUR, EVERY_DAY, EVERY_MONTH,
       EVERY_WEEKDAY, false, false},
      {"10-20/5 */12 * * *", UINT64_C(1) << 10 | UINT64_C(1) << 15 | UINT64_C(1) << 20, 1 | 1U << 12, EVERY_DAY, EVERY_MONTH,
       EVERY_WEEKDAY, false, false},
      {"0 8-18/2 * * *", 1, 0x55500, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, false, false},
      {"0 8-18 * * *", 1, 0x7FF00, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, false, true},
      {"0 0 */2 * 1", 1, 1, 0xAAAAAAAA, EVERY_MONTH, 2, true, true},
      {"0 0 1 * */2", 1, 1, 2, EVERY_MONTH, 0x55, true, true},
      {"0  0\t1 \t* *", 1, 1, 2, EVERY_MONTH, EVERY_WEEKDAY, false, true},
      {"00 007 01 * *", 1, 1U << 7, 2, EVERY_MONTH, EVERY_WEEKDAY, false, true},
      {"@yearly", 1, 1, 2, 2, EVERY_WEEKDAY, false, true},
      {"@annually", 1, 1, 2, 2, EVERY_WEEKDAY, false, true},
      {"@monthly", 1, 1, 2, EVERY_MONTH, EVERY_WEEKDAY, false, true},
      {"@weekly", 1, 1, EVERY_DAY, EVERY_MONTH, 1, false, true},
      {"@daily", 1, 1, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, false, true},
      {"@midnight", 1, 1, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, false, true},
      {"@hourly", 1, EVERY_HOUR, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, false, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct cron cron;
    struct fault fault = {0};
    if (cron_parse(bytes_text(rows[i].text), &cron, &fault) != STATUS_OK) fail_msg("%s: %s", rows[i].text, fault.message);
    bool same = cron.minutes == rows[i].minutes && cron.hours == rows[i].hours && cron.days == rows[i].days &&
                cron.months == rows[i].months && cron.weekdays == rows[i].weekdays && cron.either_day == rows[i].either_day &&
                cron.fixed_hour == rows[i].fixed_hour;
    if (!same) fail_msg("%s is read as something else", rows[i].text);
  }
}

/* ---- refusals ---- */

static void refusals_name_part_and_place(void **context) {
  (void)context;
  static const struct {
    const char *text, *part;
    int at;
  } rows[] = {
      /* out of range */
      {"60 * * * *", "minute", 1},
      {"-1 * * * *", "minute", 1},
      {"* 24 * * *", "hour", 3},
      {"* * 0 * *", "day of month", 5},
      {"* * 32 * *", "day of month", 5},
      {"* * * 0 *", "month", 7},
      {"* * * 13 *", "month", 7},
      {"* * * * 8", "day of week", 9},
      {"0-60 * * * *", "minute", 3},
      {"* 0-24 * * *", "hour", 5},
      {"* * 1-32 * *", "day of month", 7},
      {"5,10,75 * * * *", "minute", 6},
      {"99999 * * * *", "minute", 1},
      {"18446744073709551617 * * * *", "minute", 1},
      /* reversed */
      {"30-10 * * * *", "minute", 1},
      {"* 18-8 * * *", "hour", 3},
      {"* * 20-10 * *", "day of month", 5},
      {"* * * DEC-JAN *", "month", 7},
      {"* * * * FRI-MON", "day of week", 9},
      {"* * * * 6-5", "day of week", 9},
      /* empty items */
      {", * * * *", "minute", 1},
      {"1, * * * *", "minute", 3},
      {",1 * * * *", "minute", 1},
      {"1,,2 * * * *", "minute", 3},
      {"1- * * * *", "minute", 3},
      {"- * * * *", "minute", 1},
      {"1--2 * * * *", "minute", 3},
      {"1-2-3 * * * *", "minute", 4},
      /* steps */
      {"*/0 * * * *", "minute", 3},
      {"0-30/0 * * * *", "minute", 6},
      {"*/ * * * *", "minute", 3},
      {"*/60 * * * *", "minute", 3},
      {"* */24 * * *", "hour", 5},
      {"5/15 * * * *", "minute", 2},
      {"*/5/2 * * * *", "minute", 4},
      {"*/-5 * * * *", "minute", 3},
      {"*/x * * * *", "minute", 3},
      {"/5 * * * *", "minute", 1},
      {"** * * * *", "minute", 2},
      {"*-5 * * * *", "minute", 2},
      {"*5 * * * *", "minute", 2},
      /* names */
      {"* * * JANUARY *", "month", 7},
      {"* * * JA *", "month", 7},
      {"* * * XYZ *", "month", 7},
      {"* * * MON *", "month", 7},
      {"* * * * JAN", "day of week", 9},
      {"* * * * MO", "day of week", 9},
      {"* * * * MONDAY", "day of week", 9},
      {"MON * * * *", "minute", 1},
      {"* JAN * * *", "hour", 3},
      /* number of fields */
      {"* * * *", "day of week", 8},
      {"*", "hour", 2},
      {"0 * * * * *", "expression", 11},
      {"* * * * * 2026", "expression", 11},
      {" * * * * *", "minute", 1},
      {"* * * * * ", "expression", 10},
      /* what other programs know */
      {"* * L * *", "day of month", 5},
      {"* * 15W * *", "day of month", 7},
      {"* * * * 5#3", "day of week", 10},
      {"* * * * 5L", "day of week", 10},
      {"* * ? * *", "day of month", 5},
      {"H * * * *", "minute", 1},
      {"0~30 * * * *", "minute", 2},
      {"1.5 * * * *", "minute", 2},
      {"+5 * * * *", "minute", 1},
      {"@reboot", "expression", 1},
      {"@Daily", "expression", 1},
      {"@daily *", "expression", 1},
      {"", "minute", 1},
      {"*;* * * *", "minute", 2},
      {"*\n* * * *", "minute", 2},
  };
  assert_true(sizeof rows / sizeof rows[0] >= 61);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct cron cron;
    struct fault fault = {0};
    char start[64];
    if (cron_parse(bytes_text(rows[i].text), &cron, &fault) != STATUS_INVALID_ARGUMENT) fail_msg("\"%s\" passed", rows[i].text);
    (void)snprintf(start, sizeof start, "%s, character %d: ", rows[i].part, rows[i].at);
    if (strncmp(fault.message, start, strlen(start)) != 0 || strlen(fault.message) <= strlen(start))
      fail_msg("\"%s\": \"%s\" where \"%s…\" was expected", rows[i].text, fault.message, start);
  }
}

static void longest_expression(void **context) {
  (void)context;
  char text[cron_chars_max + 2] = "00";
  size_t size = 2;
  struct cron cron;
  struct fault fault = {0};
  for (; size + 2 + 8 <= cron_chars_max; size += 2) memcpy(text + size, ",1", 2);
  memcpy(text + size, " * * * *", 9);
  size += 8;
  assert_int_equal(size, cron_chars_max);
  assert_int_equal(cron_parse(bytes_of(text, size), &cron, &fault), STATUS_OK);
  memmove(text + 1, text, size + 1); /* 000 is a minute, too, but one character more */
  assert_int_equal(cron_parse(bytes_of(text, size + 1), &cron, &fault), STATUS_INVALID_ARGUMENT);
}

/* ---- the calendar: against a walk over every minute ---- */

static void next_minute_is_the_first(void **context) {
  (void)context;
  static const char *const texts[] = {"*/7 3-5 * * *", "0 0 29 2 *",  "59 23 31 * *", "30 12 13 * FRI",
                                      "0 0 1-7 * MON", "5 4 * 6-8 3", "0 0 31 2,4 *", "1 1 1 1 *"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct cron cron;
    struct fault fault = {0};
    assert_int_equal(cron_parse(bytes_text(texts[i]), &cron, &fault), STATUS_OK);
    int64_t start = -INT64_C(525600) * 3, end = INT64_C(525600) * 3, expected = INT64_MAX;
    for (int64_t minute = end; minute-- > start;) { /* backwards: the next one is known */
      int64_t alone = cron_minute_next(&cron, minute, minute + 1);
      if (alone != INT64_MAX) expected = minute;
      if (minute % 997 == 0) assert_int_equal(cron_minute_next(&cron, minute, end), expected);
    }
  }
}

static void known_days(void **context) {
  (void)context;
  static const struct {
    const char *text;
    int64_t from_day, day; /* days since 1970 */
  } rows[] = {
      {"0 0 29 2 *", 0, 789},          /* 1972-02-29 */
      {"0 0 29 2 *", 11017, 12477},    /* 2000-03-01: 2004-02-29 */
      {"0 0 * * 4", 0, 0},             /* a Thursday */
      {"0 0 31 12 *", -1, -1},         /* 1969-12-31 */
      {"0 0 1 1 *", -719528, -719528}, /* the year 0 */
      {"0 0 29 2 *", 46081, 49001},    /* 2096-03-01: there is none in 2100 */
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct cron cron;
    struct fault fault = {0};
    assert_int_equal(cron_parse(bytes_text(rows[i].text), &cron, &fault), STATUS_OK);
    assert_int_equal(cron_minute_next(&cron, rows[i].from_day * 1440, INT64_MAX / 4), rows[i].day * 1440);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_of_fields),   cmocka_unit_test(refusals_name_part_and_place),
      cmocka_unit_test(longest_expression), cmocka_unit_test(next_minute_is_the_first),
      cmocka_unit_test(known_days),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
