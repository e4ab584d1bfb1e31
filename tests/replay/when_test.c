/* The words of time, one a line: against a clock that stands at Thursday, 2026-09-17, 12:00 UTC. */
#include "reading/when.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time_text.h"
#include "support/support.h"

static const int64_t now_us = INT64_C(1789646400) * 1000000;

static void set_zone(const char *zone) {
  assert_int_equal(setenv("TZ", zone, 1), 0);
  tzset();
}

static void expect(const char *text, bool local, const char *wanted) {
  int64_t got = -1;
  char out[time_chars_max + 1] = "";
  bool read = when_parse(text, now_us, local, &got);
  if (read) out[time_format(got, out)] = 0;
  if (read != (wanted != NULL) || (read && strcmp(out, wanted) != 0))
    fail_msg("\"%s\"%s: %s instead of %s", text, local ? " local" : "", read ? out : "refused",
             wanted != NULL ? wanted : "refused");
  if (!read) assert_int_equal(got, -1);
}

struct row {
  const char *text, *wanted;
};

static void times_are_read_as_journalctl_reads_them(void **context) {
  static const struct row rows[] = {
      {"now", "2026-09-17T12:00:00Z"},
      {"today", "2026-09-17T00:00:00Z"},
      {"yesterday", "2026-09-16T00:00:00Z"},
      {"tomorrow", "2026-09-18T00:00:00Z"},
      {" Today ", "2026-09-17T00:00:00Z"},
      {"2026-09-17 03:12", "2026-09-17T03:12:00Z"},
      {"2026-09-17 03:12:04", "2026-09-17T03:12:04Z"},
      {"2026-09-17 03:12:04.5", "2026-09-17T03:12:04.5Z"},
      {"2026-09-17 03:12:04.1234567", "2026-09-17T03:12:04.123456Z"},
      {"2026-09-17", "2026-09-17T00:00:00Z"},
      {"2026-9-7", "2026-09-07T00:00:00Z"},
      {"Thu 2026-09-17", "2026-09-17T00:00:00Z"},
      {"Thursday 2026-09-17 03:12", "2026-09-17T03:12:00Z"},
      {"03:12", "2026-09-17T03:12:00Z"},
      {"3:12", "2026-09-17T03:12:00Z"},
      {"03:12:04", "2026-09-17T03:12:04Z"},
      {"2026-09-17T03:12:04Z", "2026-09-17T03:12:04Z"},
      {"2026-09-17t03:12:04z", "2026-09-17T03:12:04Z"},
      {"2026-09-17T03:12Z", "2026-09-17T03:12:00Z"},
      {"2026-09-17T03:12:04.25+02:00", "2026-09-17T01:12:04.25Z"},
      {"2026-09-17T03:12:04-0530", "2026-09-17T08:42:04Z"},
      {"2026-09-17 03:12:04 UTC", "2026-09-17T03:12:04Z"},
      {"2028-02-29", "2028-02-29T00:00:00Z"},
      {"-2h", "2026-09-17T10:00:00Z"},
      {"+90s", "2026-09-17T12:01:30Z"},
      {"-90", "2026-09-17T11:58:30Z"},
      {"1 hour ago", "2026-09-17T11:00:00Z"},
      {"2h 30min ago", "2026-09-17T09:30:00Z"},
      {"2h30min ago", "2026-09-17T09:30:00Z"},
      {"1.5 h ago", "2026-09-17T10:30:00Z"},
      {"30 seconds ago", "2026-09-17T11:59:30Z"},
      {"1w ago", "2026-09-10T12:00:00Z"},
      {"3 days left", "2026-09-20T12:00:00Z"},
      {"-5m", "2026-09-17T11:55:00Z"},
      {"-1M", "2026-08-18T01:30:00Z"},
      {"-1y", "2025-09-17T06:00:00Z"},
      {"-250ms", "2026-09-17T11:59:59.75Z"},
      {"-1us", "2026-09-17T11:59:59.999999Z"},
      {"@1789614724.5", "2026-09-17T03:12:04.5Z"},
  };
  (void)context;
  set_zone("America/New_York"); /* of no matter: what names no zone is UTC */
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) expect(rows[i].text, false, rows[i].wanted);
}

static void other_texts_are_refused(void **context) {
  static const char *const rows[] = {
      "",
      "soon",
      "2026-02-29",
      "2026-13-01",
      "2026-09-31",
      "2026-00-10",
      "24:00",
      "03:60",
      "03:12:60",
      "03",
      "3",
      "2h",
      "1 hour",
      "-",
      "+",
      "-2x",
      "-2h ago",
      "ago",
      "now now",
      "2026-09-17T",
      "2026-09-17T03",
      "2026-09-17 03",
      "2026-09-17 03:1",
      "2026-09-17T03:12:04X",
      "1999-12-31",
      "9999-01-01",
      "@",
      "@-5",
      "@99999999999999",
      "-999999999999y",
      "Thu 03:12",
      "2026-09-17T03:12:04+24:00",
      "2026-09-17 03:12:04.",
      "2026-09-17 03:12 CEST",
      "yesterdays",
      "-1 5m x",
  };
  (void)context;
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) expect(rows[i], false, NULL);
}

static void local_times_follow_the_zone_where_none_is_named(void **context) {
  static const struct row rows[] = {
      {"2026-09-17 03:12", "2026-09-17T01:12:00Z"},
      {"2026-01-17 03:12", "2026-01-17T02:12:00Z"},
      {"03:12", "2026-09-17T01:12:00Z"},
      {"today", "2026-09-16T22:00:00Z"},
      {"yesterday", "2026-09-15T22:00:00Z"},
      {"2026-09-17T03:12:00Z", "2026-09-17T03:12:00Z"},
      {"2026-09-17 03:12 UTC", "2026-09-17T03:12:00Z"},
      {"2026-09-17T03:12:00+05:00", "2026-09-16T22:12:00Z"},
      {"-2h", "2026-09-17T10:00:00Z"},
  };
  (void)context;
  set_zone("Europe/Berlin");
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) expect(rows[i].text, true, rows[i].wanted);
  set_zone("UTC");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(times_are_read_as_journalctl_reads_them),
      cmocka_unit_test(other_texts_are_refused),
      cmocka_unit_test(local_times_follow_the_zone_where_none_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
