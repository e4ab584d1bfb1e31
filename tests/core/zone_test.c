/* Time zones: every zone of the system against the C library, rules alone, and files that are none. */
#include "core/zones.h"

#include <string.h>
#include <time.h>

#include "base/guard.h"

/* ---- against the C library ---- */

static void agrees_with_the_library(void **context) {
  (void)context;
  static const char *const names[] = {"UTC",
                                      "Europe/Berlin",
                                      "Europe/Dublin",
                                      "Europe/London",
                                      "America/New_York",
                                      "America/Sao_Paulo",
                                      "America/St_Johns",
                                      "America/Santiago",
                                      "America/Nuuk",
                                      "Australia/Lord_Howe",
                                      "Pacific/Apia",
                                      "Pacific/Kiritimati",
                                      "Asia/Kolkata",
                                      "Asia/Tehran",
                                      "Asia/Pyongyang",
                                      "Asia/Gaza",
                                      "Africa/Casablanca",
                                      "Africa/Monrovia",
                                      "Antarctica/Troll",
                                      "Etc/GMT+12"};
  uint64_t seed = test_seed();
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    struct zone *zone = system_zone(names[i]);
    if (zone == NULL) continue;
    assert_int_equal(setenv("TZ", names[i], 1), 0);
    tzset();
    for (unsigned k = 0; k < 3000; k++) {
      /* 1850 to 2400; every other one close to a change */
      int64_t at = INT64_C(-3786825600) + (int64_t)(test_random(&seed) % UINT64_C(17400000000));
      if (k % 2 == 1) {
        int64_t until = zone_at(zone, at).until;
        if (until != INT64_MAX && until < INT64_C(13569465600)) at = until - 2 + (int64_t)(test_random(&seed) % 5);
      }
      struct zone_span span = zone_at(zone, at);
      time_t moment = (time_t)at;
      struct tm clock;
      assert_non_null(localtime_r(&moment, &clock));
      if (span.offset != clock.tm_gmtoff || span.daylight != (clock.tm_isdst > 0))
        fail_msg("%s at %lld: %d%s, the library says %ld%s", names[i], (long long)at, span.offset,
                 span.daylight ? " saving" : "", clock.tm_gmtoff, clock.tm_isdst > 0 ? " saving" : "");
      assert_true(span.from <= at && at < span.until);
    }
    zone_free(zone);
  }
  assert_int_equal(setenv("TZ", "UTC", 1), 0);
}

/* ---- files made here ---- */

/* The smallest file of version 2: one type, no transition, and the rule. */
static size_t small_file(uint8_t *out, const char *rule, uint8_t version) {
  uint8_t head[44] = {'T', 'Z', 'i', 'f', version};
  size_t size = 0;
  head[39] = 1; /* one type */
  head[43] = 4; /* its letters */
  for (unsigned part = 0; part < 2; part++) {
    memcpy(out + size, head, sizeof head);
    size += sizeof head;
    memcpy(out + size, "\0\0\0\0\0\0UTC", 10);
    size += 10;
  }
  size_t length = strlen(rule);
  out[size++] = '\n';
  memcpy(out + size, rule, length);
  size += length;
  out[size++] = '\n';
  return size;
}

static struct zone *ruled(const char *rule) {
  uint8_t file[512];
  struct zone *zone = NULL;
  size_t size = small_file(file, rule, '2');
  return zone_parse(bytes_of(file, size), &zone) == STATUS_OK ? zone : NULL;
}

static void rules(void **context) {
  (void)context;
  static const struct {
    const char *rule;
    int64_t at;
    int32_t offset;
    bool daylight;
  } rows[] = {
      {"", 0, 0, false},
      {"UTC0", 1800000000, 0, false},
      {"<-03>3", 1800000000, -10800, false},
      {"<+0530>-5:30", 1800000000, 19800, false},
      {"FAR24", 1800000000, -86400, false},
      {"FAR-24", 1800000000, 86400, false},
      {"CET-1CEST,M3.5.0,M10.5.0/3", 1774745999, 3600, false}, /* 2026-03-29T00:59:59Z */
      {"CET-1CEST,M3.5.0,M10.5.0/3", 1774746000, 7200, true},
      {"CET-1CEST,M3.5.0,M10.5.0/3", 1792889999, 7200, true}, /* 2026-10-25T00:59:59Z */
      {"CET-1CEST,M3.5.0,M10.5.0/3", 1792890000, 3600, false},
      {"EST5EDT,M3.2.0,M11.1.0", 1772953199, -18000, false}, /* 2026-03-08T06:59:59Z */
      {"EST5EDT,M3.2.0,M11.1.0", 1772953200, -14400, true},
      {"IST-1GMT0,M10.5.0,M3.5.0/1", 1800000000, 0, true}, /* Dublin saves in winter, backwards */
      {"IST-1GMT0,M10.5.0,M3.5.0/1", 1784000000, 3600, false},
      {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1800000000, 39600, true},
      {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1774745999, -7200, false}, /* a time before midnight */
      {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1774746000, -3600, true},
      {"AAA3BBB,J60,J300", 1772341199, -10800, false}, /* 2026-03-01T02:00 of the clock: leap days are not counted */
      {"AAA3BBB,J60,J300", 1772341200, -7200, true},
      {"AAA3BBB,J60,J300", 1835499599, -10800, false}, /* in 2028 too */
      {"AAA3BBB,J60,J300", 1835499600, -7200, true},
      {"AAA0BBB,59/0,300/0", 1772323200, 3600, true}, /* the 60th day from 0 on: 2026-03-01 */
      {"AAA0BBB,59/0,300/0", 1772323199, 0, false},
      {"AAA0BBB,59/0,300/0", 1835395199, 0, false},
      {"AAA0BBB,59/0,300/0", 1835395200, 3600, true}, /* in the leap year 2028 that is February's last */
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct zone *zone = ruled(rows[i].rule);
    if (zone == NULL) fail_msg("%s cannot be read", rows[i].rule);
    struct zone_span span = zone_at(zone, rows[i].at);
    if (span.offset != rows[i].offset || span.daylight != rows[i].daylight)
      fail_msg("%s at %lld: %d%s", rows[i].rule, (long long)rows[i].at, span.offset, span.daylight ? " saving" : "");
    zone_free(zone);
  }
}

static void rules_that_are_none(void **context) {
  (void)context;
  static const char *const rules_bad[] = {"C",
                                          "CET",
                                          "CET-1CEST",
                                          "CET-1CEST,M3.5.0",
                                          "CET-1CEST,M3.5.0,M10.5.0/3x",
                                          "CET-1CEST,M13.5.0,M10.5.0",
                                          "CET-1CEST,M3.6.0,M10.5.0",
                                          "CET-1CEST,M3.5.7,M10.5.0",
                                          "CET-1CEST,M3.0.0,M10.5.0",
                                          "CET-1CEST,J0,J300",
                                          "CET-1CEST,J366,J300",
                                          "CET-1CEST,366,300",
                                          "CET-1CEST,M3.5.0/168,M10.5.0",
                                          "<CET-1",
                                          "CET-1:60",
                                          "CET--1",
                                          "CET25",
                                          "CET-25",
                                          "CET-1CEST-25,M3.5.0,M10.5.0",
                                          "CET-1CEST;M3.5.0,M10.5.0"};
  for (size_t i = 0; i < sizeof rules_bad / sizeof rules_bad[0]; i++)
    if (ruled(rules_bad[i]) != NULL) fail_msg("%s passed", rules_bad[i]);
}

/* Whatever is cut off or flipped: an answer, never a fault of memory (the sanitizers watch). */
static void damaged_files(void **context) {
  (void)context;
  uint8_t file[512];
  struct zone *zone = NULL;
  size_t size = small_file(file, "CET-1CEST,M3.5.0,M10.5.0/3", '2');
  for (size_t cut = 0; cut < size; cut++) assert_int_equal(zone_parse(bytes_of(file, cut), &zone), STATUS_CORRUPT);
  assert_int_equal(zone_parse(bytes_of(file, small_file(file, "UTC0", 0)), &zone), STATUS_CORRUPT); /* version 1 */
  uint64_t seed = test_seed();
  struct bytes real = test_file_read("/usr/share/zoneinfo/Europe/Berlin");
  if (real.data == NULL) return;
  uint8_t *copy = guard_malloc(real.size);
  for (unsigned round = 0; round < 3000; round++) {
    memcpy(copy, real.data, real.size);
    for (unsigned flips = 1 + (unsigned)(test_random(&seed) % 4); flips > 0; flips--)
      copy[test_random(&seed) % real.size] = (uint8_t)test_random(&seed);
    size_t length = round % 3 == 0 ? test_random(&seed) % real.size : real.size;
    if (zone_parse(bytes_of(copy, length), &zone) != STATUS_OK) continue;
    for (unsigned i = 0; i < 20; i++) {
      int64_t at = (int64_t)(test_random(&seed) % UINT64_C(8000000000)) - INT64_C(4000000000);
      struct zone_span span = zone_at(zone, at);
      assert_true(span.from <= at && at < span.until);
    }
    zone_free(zone);
  }
  free(copy);
  free((void *)(uintptr_t)real.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_library), cmocka_unit_test(rules),
                                     cmocka_unit_test(rules_that_are_none), cmocka_unit_test(damaged_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
