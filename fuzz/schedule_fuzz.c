/* Fuzzes cron expressions and zone files: the first byte says how long the expression is that follows, the rest is the file.
 * What is taken must hold what the headers promise, and the times of the two together must not depend on where one begins to
 * look. */
#include <string.h>

#include "base/guard.h"
#include "core/schedule_times.h"

static const int64_t starts_s[] = {INT64_C(-2208988800), 0, INT64_C(951782399), INT64_C(1711846800), INT64_C(4102444800)};
enum { spans_max = 64, times_max = 4, offset_s_max = 27 * 3600 };

static bool within(uint64_t bits, unsigned first, unsigned last) {
  uint64_t all = (UINT64_C(1) << (last + 1)) - (UINT64_C(1) << first);
  return bits != 0 && (bits & ~all) == 0;
}

static bool check_cron(struct bytes text, struct cron *ret_cron) {
  struct fault fault = {.message = ""};
  struct cron cron;
  enum status status = cron_parse(text, &cron, &fault);
  if (status != STATUS_OK) {
    must(status == STATUS_INVALID_ARGUMENT && fault.message[0] != '\0');
    return false;
  }
  must(within(cron.minutes, 0, 59) && within(cron.hours, 0, 23) && within(cron.days, 1, 31) && within(cron.months, 1, 12) &&
       within(cron.weekdays, 0, 6));
  for (size_t i = 0; i < sizeof starts_s / sizeof starts_s[0]; i++) {
    int64_t from = starts_s[i] / 60, end = from + 400 * 24 * 60, minute = cron_minute_next(&cron, from, end);
    if (minute == INT64_MAX) continue;
    must(minute >= from && minute < end);
    int64_t of_hour = (minute % 60 + 60) % 60, of_day = (minute % (24 * 60) + 24 * 60) % (24 * 60);
    must((cron.minutes >> of_hour & 1) != 0 && (cron.hours >> (of_day / 60) & 1) != 0);
    must(cron_minute_next(&cron, minute, end) == minute);
  }
  *ret_cron = cron;
  return true;
}

/* Spans follow each other without a gap, and each moment is in the span that is given for it. */
static void check_zone(const struct zone *zone) {
  for (size_t i = 0; i < sizeof starts_s / sizeof starts_s[0]; i++) {
    int64_t at = starts_s[i];
    for (unsigned n = 0; n < spans_max; n++) {
      struct zone_span span = zone_at(zone, at);
      must(span.from <= at && at < span.until);
      must(span.offset > -offset_s_max && span.offset < offset_s_max);
      if (span.until == INT64_MAX) break;
      must(zone_at(zone, span.until).from == span.until);
      at = span.until;
    }
  }
}

static void check_times(const struct cron *cron, const struct zone *zone) {
  for (size_t i = 0; i < sizeof starts_s / sizeof starts_s[0]; i++) {
    int64_t after = starts_s[i];
    for (unsigned n = 0; n < times_max; n++) {
      int64_t next = cron_next(cron, zone, after);
      if (next == INT64_MAX) break;
      must(next > after);
      must(cron_next(cron, zone, next - 1) == next);
      must(cron_next(cron, zone, after + (next - after - 1) / 2) == next);
      after = next;
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct cron cron;
  struct zone *zone = NULL;
  if (size == 0) return 0;
  size_t length = data[0] < size ? data[0] : size - 1;
  bool taken = check_cron(bytes_of(data + 1, length), &cron);
  enum status status = zone_parse(bytes_of(data + 1 + length, size - 1 - length), &zone);
  must(status == STATUS_OK || (status == STATUS_CORRUPT && zone == NULL));
  if (zone == NULL) zone = zone_utc();
  else check_zone(zone);
  if (taken) check_times(&cron, zone);
  zone_free(zone);
  return 0;
}
