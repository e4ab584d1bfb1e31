/* The times of schedules: what clocks do in gaps and repetitions, how far is looked, ends and intervals; and against another
 * implementation. */
#include "core/zones.h"

#include <string.h>

#include "base/time_text.h"
#include "core/schedule_times.h"

static int64_t moment(const char *text) {
  char whole[32];
  int64_t us = 0;
  (void)snprintf(whole, sizeof whole, "%.16s:00Z", text); /* rows leave the seconds out */
  if (strlen(text) > 17) (void)snprintf(whole, sizeof whole, "%s", text);
  if (!time_parse(bytes_text(whole), &us)) fail_msg("%s is no time", text);
  return us;
}

static struct cron parsed(const char *text) {
  struct cron cron;
  struct fault fault = {0};
  if (cron_parse(bytes_text(text), &cron, &fault) != STATUS_OK) fail_msg("%s: %s", text, fault.message);
  return cron;
}

static const char *shown(int64_t second) {
  static char text[time_chars_max + 1];
  if (second == INT64_MAX) return "never";
  text[time_format(second * 1000000, text)] = '\0';
  return text;
}

/* ---- clocks that change ---- */

static void gaps_and_repetitions(void **context) {
  (void)context;
  /* expression, zone, after, and what comes then; made by a walk over every minute with the rules of schema/semantics.md and
   * looked through by hand */
  /* clang-format off */
  static const struct {
    const char *cron, *zone, *after, *times[8];
  } rows[] = {
      {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", {"2026-03-29T01:00Z", "2026-03-30T00:30Z", "2026-03-31T00:30Z"}},
      {"0 0 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", {"2026-03-28T23:00Z", "2026-03-29T22:00Z", "2026-03-30T22:00Z"}},
      {"15,45 0 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", {"2026-03-28T23:15Z", "2026-03-28T23:45Z", "2026-03-29T22:15Z"}},
      {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", {"2026-10-25T00:30Z", "2026-10-26T01:30Z", "2026-10-27T01:30Z"}},
      {"0 0 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", {"2026-10-24T22:00Z", "2026-10-25T23:00Z", "2026-10-26T23:00Z"}},
      {"15,45 0 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", {"2026-10-24T22:15Z", "2026-10-24T22:45Z", "2026-10-25T23:15Z"}},
      {"30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", {"2026-03-08T07:00Z", "2026-03-09T06:30Z", "2026-03-10T06:30Z"}},
      {"0 0 * * *", "America/New_York", "2026-03-07T12:00:00Z", {"2026-03-08T05:00Z", "2026-03-09T04:00Z", "2026-03-10T04:00Z"}},
      {"15,45 0 * * *", "America/New_York", "2026-03-07T12:00:00Z", {"2026-03-08T05:15Z", "2026-03-08T05:45Z", "2026-03-09T04:15Z"}},
      {"30 2 * * *", "America/New_York", "2026-10-31T12:00:00Z", {"2026-11-01T07:30Z", "2026-11-02T07:30Z", "2026-11-03T07:30Z"}},
      {"0 0 * * *", "America/New_York", "2026-10-31T12:00:00Z", {"2026-11-01T04:00Z", "2026-11-02T05:00Z", "2026-11-03T05:00Z"}},
      {"15,45 0 * * *", "America/New_York", "2026-10-31T12:00:00Z", {"2026-11-01T04:15Z", "2026-11-01T04:45Z", "2026-11-02T05:15Z"}},
      {"30 2 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z", {"2026-04-04T16:00Z", "2026-04-05T16:00Z", "2026-04-06T16:00Z"}},
      {"0 0 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z", {"2026-04-04T13:00Z", "2026-04-05T13:30Z", "2026-04-06T13:30Z"}},
      {"15,45 0 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z", {"2026-04-04T13:15Z", "2026-04-04T13:45Z", "2026-04-05T13:45Z"}},
      {"30 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00:00Z", {"2026-10-03T15:30Z", "2026-10-04T15:30Z", "2026-10-05T15:30Z"}},
      {"0 0 * * *", "Australia/Lord_Howe", "2026-10-02T20:00:00Z", {"2026-10-03T13:30Z", "2026-10-04T13:00Z", "2026-10-05T13:00Z"}},
      {"15,45 0 * * *", "Australia/Lord_Howe", "2026-10-02T20:00:00Z", {"2026-10-03T13:45Z", "2026-10-03T14:15Z", "2026-10-04T13:15Z"}},
      {"30 2 * * *", "America/Sao_Paulo", "2017-10-14T12:00:00Z", {"2017-10-15T04:30Z", "2017-10-16T04:30Z", "2017-10-17T04:30Z"}},
      {"0 0 * * *", "America/Sao_Paulo", "2017-10-14T12:00:00Z", {"2017-10-15T03:00Z", "2017-10-16T02:00Z", "2017-10-17T02:00Z"}},
      {"15,45 0 * * *", "America/Sao_Paulo", "2017-10-14T12:00:00Z", {"2017-10-15T03:00Z", "2017-10-16T02:15Z", "2017-10-16T02:45Z"}},
      {"30 2 * * *", "America/Sao_Paulo", "2018-02-16T20:00:00Z", {"2018-02-17T04:30Z", "2018-02-18T05:30Z", "2018-02-19T05:30Z"}},
      {"0 0 * * *", "America/Sao_Paulo", "2018-02-16T20:00:00Z", {"2018-02-17T02:00Z", "2018-02-18T03:00Z", "2018-02-19T03:00Z"}},
      {"15,45 0 * * *", "America/Sao_Paulo", "2018-02-16T20:00:00Z", {"2018-02-17T02:15Z", "2018-02-17T02:45Z", "2018-02-18T03:15Z"}},
      {"30 2 * * *", "Pacific/Apia", "2011-12-29T05:00:00Z", {"2011-12-29T12:30Z", "2011-12-30T12:30Z", "2011-12-31T12:30Z"}},
      {"0 0 * * *", "Pacific/Apia", "2011-12-29T05:00:00Z", {"2011-12-29T10:00Z", "2011-12-30T10:00Z", "2011-12-31T10:00Z"}},
      {"15,45 0 * * *", "Pacific/Apia", "2011-12-29T05:00:00Z", {"2011-12-29T10:15Z", "2011-12-29T10:45Z", "2011-12-30T10:15Z"}},
      {"0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", {"2026-03-29T01:00Z", "2026-03-29T02:00Z", "2026-03-29T03:00Z", "2026-03-29T04:00Z", "2026-03-29T05:00Z"}},
      {"*/15 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", {"2026-03-29T00:15Z", "2026-03-29T00:30Z", "2026-03-29T00:45Z", "2026-03-29T01:00Z", "2026-03-29T01:15Z", "2026-03-29T01:30Z", "2026-03-29T01:45Z", "2026-03-29T02:00Z"}},
      {"0 */2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", {"2026-03-29T02:00Z", "2026-03-29T04:00Z", "2026-03-29T06:00Z"}},
      {"0 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", {"2026-10-25T00:00Z", "2026-10-25T01:00Z", "2026-10-25T02:00Z", "2026-10-25T03:00Z", "2026-10-25T04:00Z"}},
      {"*/15 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", {"2026-10-24T23:15Z", "2026-10-24T23:30Z", "2026-10-24T23:45Z", "2026-10-25T00:00Z", "2026-10-25T00:15Z", "2026-10-25T00:30Z", "2026-10-25T00:45Z", "2026-10-25T01:00Z"}},
      {"0 */2 * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", {"2026-10-25T00:00Z", "2026-10-25T01:00Z", "2026-10-25T03:00Z"}},
      {"0 * * * *", "America/New_York", "2026-03-08T05:30:00Z", {"2026-03-08T06:00Z", "2026-03-08T07:00Z", "2026-03-08T08:00Z", "2026-03-08T09:00Z", "2026-03-08T10:00Z"}},
      {"*/15 * * * *", "America/New_York", "2026-03-08T05:30:00Z", {"2026-03-08T05:45Z", "2026-03-08T06:00Z", "2026-03-08T06:15Z", "2026-03-08T06:30Z", "2026-03-08T06:45Z", "2026-03-08T07:00Z", "2026-03-08T07:15Z", "2026-03-08T07:30Z"}},
      {"0 */2 * * *", "America/New_York", "2026-03-08T05:30:00Z", {"2026-03-08T08:00Z", "2026-03-08T10:00Z", "2026-03-08T12:00Z"}},
      {"0 * * * *", "America/New_York", "2026-11-01T04:30:00Z", {"2026-11-01T05:00Z", "2026-11-01T06:00Z", "2026-11-01T07:00Z", "2026-11-01T08:00Z", "2026-11-01T09:00Z"}},
      {"*/15 * * * *", "America/New_York", "2026-11-01T04:30:00Z", {"2026-11-01T04:45Z", "2026-11-01T05:00Z", "2026-11-01T05:15Z", "2026-11-01T05:30Z", "2026-11-01T05:45Z", "2026-11-01T06:00Z", "2026-11-01T06:15Z", "2026-11-01T06:30Z"}},
      {"0 */2 * * *", "America/New_York", "2026-11-01T04:30:00Z", {"2026-11-01T07:00Z", "2026-11-01T09:00Z", "2026-11-01T11:00Z"}},
      {"0 * * * *", "Australia/Lord_Howe", "2026-04-04T13:40:00Z", {"2026-04-04T14:00Z", "2026-04-04T15:30Z", "2026-04-04T16:30Z", "2026-04-04T17:30Z", "2026-04-04T18:30Z"}},
      {"*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T13:40:00Z", {"2026-04-04T13:45Z", "2026-04-04T14:00Z", "2026-04-04T14:15Z", "2026-04-04T14:30Z", "2026-04-04T14:45Z", "2026-04-04T15:00Z", "2026-04-04T15:15Z", "2026-04-04T15:30Z"}},
      {"0 */2 * * *", "Australia/Lord_Howe", "2026-04-04T13:40:00Z", {"2026-04-04T15:30Z", "2026-04-04T17:30Z", "2026-04-04T19:30Z"}},
      {"0 * * * *", "Australia/Lord_Howe", "2026-10-03T14:10:00Z", {"2026-10-03T14:30Z", "2026-10-03T16:00Z", "2026-10-03T17:00Z", "2026-10-03T18:00Z", "2026-10-03T19:00Z"}},
      {"*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T14:10:00Z", {"2026-10-03T14:15Z", "2026-10-03T14:30Z", "2026-10-03T14:45Z", "2026-10-03T15:00Z", "2026-10-03T15:15Z", "2026-10-03T15:30Z", "2026-10-03T15:45Z", "2026-10-03T16:00Z"}},
      {"0 */2 * * *", "Australia/Lord_Howe", "2026-10-03T14:10:00Z", {"2026-10-03T17:00Z", "2026-10-03T19:00Z", "2026-10-03T21:00Z"}},
      {"0 * * * *", "America/Sao_Paulo", "2017-10-15T01:40:00Z", {"2017-10-15T02:00Z", "2017-10-15T03:00Z", "2017-10-15T04:00Z", "2017-10-15T05:00Z", "2017-10-15T06:00Z"}},
      {"*/15 * * * *", "America/Sao_Paulo", "2017-10-15T01:40:00Z", {"2017-10-15T01:45Z", "2017-10-15T02:00Z", "2017-10-15T02:15Z", "2017-10-15T02:30Z", "2017-10-15T02:45Z", "2017-10-15T03:00Z", "2017-10-15T03:15Z", "2017-10-15T03:30Z"}},
      {"0 */2 * * *", "America/Sao_Paulo", "2017-10-15T01:40:00Z", {"2017-10-15T04:00Z", "2017-10-15T06:00Z", "2017-10-15T08:00Z"}},
      {"0 * * * *", "America/Sao_Paulo", "2018-02-18T00:40:00Z", {"2018-02-18T01:00Z", "2018-02-18T02:00Z", "2018-02-18T03:00Z", "2018-02-18T04:00Z", "2018-02-18T05:00Z"}},
      {"*/15 * * * *", "America/Sao_Paulo", "2018-02-18T00:40:00Z", {"2018-02-18T00:45Z", "2018-02-18T01:00Z", "2018-02-18T01:15Z", "2018-02-18T01:30Z", "2018-02-18T01:45Z", "2018-02-18T02:00Z", "2018-02-18T02:15Z", "2018-02-18T02:30Z"}},
      {"0 */2 * * *", "America/Sao_Paulo", "2018-02-18T00:40:00Z", {"2018-02-18T03:00Z", "2018-02-18T05:00Z", "2018-02-18T07:00Z"}},
      {"0 * * * *", "Pacific/Apia", "2011-12-30T08:40:00Z", {"2011-12-30T09:00Z", "2011-12-30T10:00Z", "2011-12-30T11:00Z", "2011-12-30T12:00Z", "2011-12-30T13:00Z"}},
      {"*/15 * * * *", "Pacific/Apia", "2011-12-30T08:40:00Z", {"2011-12-30T08:45Z", "2011-12-30T09:00Z", "2011-12-30T09:15Z", "2011-12-30T09:30Z", "2011-12-30T09:45Z", "2011-12-30T10:00Z", "2011-12-30T10:15Z", "2011-12-30T10:30Z"}},
      {"0 */2 * * *", "Pacific/Apia", "2011-12-30T08:40:00Z", {"2011-12-30T10:00Z", "2011-12-30T12:00Z", "2011-12-30T14:00Z"}},
      {"0 0 31 * *", "Pacific/Apia", "2011-12-25T00:00:00Z", {"2011-12-30T10:00Z", "2012-01-30T10:00Z", "2012-03-30T10:00Z"}},
      {"@monthly", "Pacific/Apia", "2011-12-25T00:00:00Z", {"2011-12-31T10:00Z", "2012-01-31T10:00Z", "2012-02-29T10:00Z"}},
      {"0 0 30 12 *", "Pacific/Apia", "2011-12-25T00:00:00Z", {"2012-12-29T10:00Z"}},
      {"0 0 31 * *", "Europe/Berlin", "2026-01-15T00:00:00Z", {"2026-01-30T23:00Z", "2026-03-30T22:00Z", "2026-05-30T22:00Z"}},
      {"@monthly", "Europe/Berlin", "2026-01-15T00:00:00Z", {"2026-01-31T23:00Z", "2026-02-28T23:00Z", "2026-03-31T22:00Z"}},
      {"0 0 30 12 *", "Europe/Berlin", "2026-01-15T00:00:00Z", {"2026-12-29T23:00Z"}},
      {"0 0 31 * *", "America/Sao_Paulo", "2017-09-15T00:00:00Z", {"2017-10-31T02:00Z", "2017-12-31T02:00Z", "2018-01-31T02:00Z"}},
      {"@monthly", "America/Sao_Paulo", "2017-09-15T00:00:00Z", {"2017-10-01T03:00Z", "2017-11-01T02:00Z", "2017-12-01T02:00Z"}},
      {"0 0 30 12 *", "America/Sao_Paulo", "2017-09-15T00:00:00Z", {"2017-12-30T02:00Z"}},
  };
  /* clang-format on */
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct zone *zone = system_zone(rows[i].zone);
    if (zone == NULL) continue;
    struct cron cron = parsed(rows[i].cron);
    int64_t at = moment(rows[i].after) / 1000000;
    for (unsigned k = 0; k < 8 && rows[i].times[k] != NULL; k++) {
      at = cron_next(&cron, zone, at);
      if (at != moment(rows[i].times[k]) / 1000000)
        fail_msg("%s in %s after %s: time %u is %s, not %s", rows[i].cron, rows[i].zone, rows[i].after, k + 1, shown(at),
                 rows[i].times[k]);
    }
    zone_free(zone);
  }
}

/* Whatever the start within a gap or a repetition, the walk meets the same times. */
static void any_start_meets_the_same_times(void **context) {
  (void)context;
  static const char *const zones[] = {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo",
                                      "Pacific/Apia"};
  static const char *const texts[] = {"30 2 * * *", "0 * * * *", "*/15 * * * *",   "0 0 29 2 *",
                                      "0 0 31 * *", "@monthly",  "0,30 0-3 * * *", "7 */3 * * 6,0"};
  uint64_t seed = test_seed();
  for (size_t z = 0; z < sizeof zones / sizeof zones[0]; z++) {
    struct zone *zone = system_zone(zones[z]);
    if (zone == NULL) continue;
    for (unsigned round = 0; round < 400; round++) {
      struct cron cron = parsed(texts[test_random(&seed) % (sizeof texts / sizeof texts[0])]);
      int64_t at = INT64_C(1262304000) + (int64_t)(test_random(&seed) % UINT64_C(900000000));
      int64_t near = zone_at(zone, at).until; /* half of them start close to a change */
      if (round % 2 == 0 && near != INT64_MAX) at = near - 7200 + (int64_t)(test_random(&seed) % 14400);
      int64_t next = cron_next(&cron, zone, at), between = at + (int64_t)(test_random(&seed) % (uint64_t)(next - at));
      assert_true(next > at);
      if (cron_next(&cron, zone, between) != next) fail_msg("%s: from %s and from between: other times", zones[z], shown(at));
    }
    zone_free(zone);
  }
}

/* ---- how far is looked ---- */

static void eight_years(void **context) {
  (void)context;
  struct zone *utc = zone_utc();
  struct cron leap = parsed("0 0 29 2 *"), never = parsed("0 0 31 2 *"), late = parsed("0 0 31 4,6,9,11 *");
  int64_t after = moment("2096-02-29T00:00:00Z") / 1000000;
  assert_int_equal(cron_next(&leap, utc, after), moment("2104-02-29T00:00:00Z") / 1000000);
  assert_int_equal(cron_next(&never, utc, after), INT64_MAX);
  assert_int_equal(cron_next(&late, utc, after), INT64_MAX);
  zone_free(utc);
}

/* ---- start, end, interval ---- */

static struct schedule_times by_clock(const char *text, const struct zone *zone) {
  return (struct schedule_times){.kind = SCHEDULE_CRON, .cron = parsed(text), .zone = zone};
}

static void start_and_end(void **context) {
  (void)context;
  struct zone *utc = zone_utc();
  struct schedule_times times = by_clock("0 * * * *", utc);
  int64_t ten = moment("2026-05-01T10:00:00Z");
  assert_int_equal(schedule_times_next(&times, ten - 1), ten);
  assert_int_equal(schedule_times_next(&times, ten), ten + INT64_C(3600000000));
  times.start_at = ten; /* the start itself is a time */
  assert_int_equal(schedule_times_next(&times, 0), ten);
  times.start_at = ten + 1;
  assert_int_equal(schedule_times_next(&times, 0), ten + INT64_C(3600000000));
  times.end_at = ten + INT64_C(3600000000); /* the end is none */
  assert_int_equal(schedule_times_next(&times, 0), 0);
  times.end_at++;
  assert_int_equal(schedule_times_next(&times, 0), ten + INT64_C(3600000000));
  times.end_at = 0, times.start_at = 0;
  assert_int_equal(schedule_times_next(&times, time_us_max - 1), 0); /* years that have no text */
  zone_free(utc);
}

static void intervals_do_not_drift(void **context) {
  (void)context;
  int64_t anchor = moment("2026-01-01T00:00:00Z") + 123457;
  struct schedule_times times = {.kind = SCHEDULE_INTERVAL, .interval_ms = 1500, .anchor_at = anchor};
  assert_int_equal(schedule_times_next(&times, anchor - 1), anchor);
  assert_int_equal(schedule_times_next(&times, 0), anchor);
  assert_int_equal(schedule_times_next(&times, anchor), anchor + 1500000);
  assert_int_equal(schedule_times_next(&times, anchor + 1499999), anchor + 1500000);
  assert_int_equal(schedule_times_next(&times, anchor + 1500000), anchor + 3000000);
  int64_t at = anchor;
  for (unsigned i = 1; i <= 100000; i++) {
    at = schedule_times_next(&times, at);
    if (at != anchor + INT64_C(1500000) * i) fail_msg("time %u drifted", i);
  }
  times.interval_ms = schedule_interval_ms_max;
  assert_int_equal(schedule_times_next(&times, anchor), anchor + (int64_t)schedule_interval_ms_max * 1000);
  times.start_at = anchor + 10 * 1500000, times.interval_ms = 1500;
  assert_int_equal(schedule_times_next(&times, anchor), times.start_at);
  times.end_at = times.start_at;
  assert_int_equal(schedule_times_next(&times, anchor), 0);
}

/* ---- another implementation ---- */

/* One row of tests/data/cron/oracle.tsv. */
struct oracle_row {
  char cron[128], zone[64];
  int64_t start, times[3];
};

static bool read_row(const char **at, struct oracle_row *row) {
  int used = 0;
  long long start, times[3];
  if (sscanf(*at, "%127[^\t]\t%63[^\t]\t%lld\t%lld\t%lld\t%lld\n%n", row->cron, row->zone, &start, &times[0], &times[1],
             &times[2], &used) != 6)
    return false;
  row->start = start;
  for (unsigned i = 0; i < 3; i++) row->times[i] = times[i];
  *at += used;
  return true;
}

/* cron-parser 4.9.0 and Orbit are meant to differ close to a change of the clock alone: it moves a time that a gap skips by the
 * gap's length, Orbit fires right behind the gap; of hours that are repeated it has rules of its own. */
static bool near_a_change(const struct zone *zone, int64_t at) {
  enum { reach_s = 5 * 3600 };
  return zone_at(zone, at - reach_s).until <= at + reach_s;
}

/* It also takes a list of all values of a field for *, which makes a difference where both days are given. */
static struct cron read_as_the_other(const char *text) {
  struct cron cron = parsed(text);
  if (cron.weekdays == 0x7F || cron.days == 0xFFFFFFFE) cron.either_day = false;
  return cron;
}

static bool holds(const int64_t times[3], int64_t at) { return times[0] == at || times[1] == at || times[2] == at; }

/* Each time of one that the other could have shown, too, is one of the other's, or lies close to a change. */
static bool same_but_for_changes(const struct zone *zone, const int64_t ours[3], const int64_t theirs[3]) {
  int64_t end = ours[2] < theirs[2] ? ours[2] : theirs[2];
  for (unsigned i = 0; i < 3; i++) {
    if (ours[i] <= end && !holds(theirs, ours[i]) && !near_a_change(zone, ours[i])) return false;
    if (theirs[i] <= end && !holds(ours, theirs[i]) && !near_a_change(zone, theirs[i])) return false;
  }
  return true;
}

static void agrees_with_another_implementation(void **context) {
  (void)context;
  unsigned rows = 0, differ = 0;
  struct bytes file = test_file_read(ORBIT_SOURCE_DIR "/tests/data/cron/oracle.tsv");
  assert_non_null(file.data);
  char *text = strndup((const char *)file.data, file.size);
  struct oracle_row row;
  for (const char *at = text; read_row(&at, &row); rows++) {
    struct zone *zone = system_zone(row.zone);
    if (zone == NULL) continue;
    struct cron cron = read_as_the_other(row.cron);
    int64_t ours[3], from = row.start;
    for (unsigned i = 0; i < 3; i++) from = ours[i] = cron_next(&cron, zone, from);
    if (memcmp(ours, row.times, sizeof ours) != 0) differ++;
    if (!same_but_for_changes(zone, ours, row.times))
      fail_msg("%s in %s after %lld: %lld %lld %lld, the other says %lld %lld %lld", row.cron, row.zone, (long long)row.start,
               (long long)ours[0], (long long)ours[1], (long long)ours[2], (long long)row.times[0], (long long)row.times[1],
               (long long)row.times[2]);
    zone_free(zone);
  }
  print_message("%u expressions, %u differ, all close to a change of the clock\n", rows, differ);
  assert_int_equal(rows, 2000);
  assert_true(differ < 40);
  free(text);
  free((void *)(uintptr_t)file.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gaps_and_repetitions),
                                     cmocka_unit_test(any_start_meets_the_same_times),
                                     cmocka_unit_test(eight_years),
                                     cmocka_unit_test(start_and_end),
                                     cmocka_unit_test(intervals_do_not_drift),
                                     cmocka_unit_test(agrees_with_another_implementation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
