/* Owns the step from clocks on the wall to moments: gaps, repetitions, ends; and the times of intervals. */
#include "core/schedule_times.h"

#include "base/guard.h"
#include "base/time_text.h"
#include "core/model.h"

enum { seconds_per_minute = 60, seconds_per_day = 86400 };
/* Between two leap days lie eight years where a century has none. */
static const int64_t horizon_s = INT64_C(2928) * seconds_per_day;
static const int64_t us_per_second = 1000000;

static int64_t floor_div(int64_t value, int64_t by) { return value / by - (value % by < 0); }
static int64_t ceil_div(int64_t value, int64_t by) { return -floor_div(-value, by); }

/* ---- the clock on the wall ---- */

/* How the clock went from the span before to this one. */
struct clock_change {
  int64_t skipped_from; /* seconds of the wall clock: [skipped_from, skipped_until) were never shown; equal: none */
  int64_t skipped_until;
  int64_t repeated_until; /* the clock showed all before this in the span before; INT64_MIN: none */
};

/* Daylight saving moves a clock by less than a day. What skips more, or is no daylight saving on either side, is a zone that
 * changed its mind: nothing stands for what it skips. */
static struct clock_change change_into(const struct zone *zone, const struct zone_span *span) {
  struct clock_change change = {0, 0, INT64_MIN};
  if (span->from == INT64_MIN) return change;
  struct zone_span before = zone_at(zone, span->from - 1);
  int32_t shift = span->offset - before.offset;
  bool saving = (span->daylight || before.daylight) && shift < seconds_per_day;
  if (shift > 0 && saving) {
    change.skipped_from = span->from + before.offset;
    change.skipped_until = span->from + span->offset;
  }
  if (shift < 0) change.repeated_until = span->from + before.offset;
  return change;
}

/* True when the expression matches a minute that begins within [from, until) of the wall clock. */
static bool matches_within(const struct cron *cron, int64_t from, int64_t until) {
  return cron_minute_next(cron, ceil_div(from, seconds_per_minute), ceil_div(until, seconds_per_minute)) != INT64_MAX;
}

/* The first moment of the span at or after `from`, and before `limit`, that matches. */
static int64_t next_in_span(const struct cron *cron, const struct zone_span *span, const struct clock_change *change,
                            int64_t from, int64_t limit) {
  int64_t until = span->until < limit ? span->until : limit;
  int64_t wall = from + span->offset;
  if (cron->fixed_hour && change->repeated_until > wall) wall = change->repeated_until;
  int64_t end = ceil_div(until + span->offset, seconds_per_minute);
  int64_t minute = cron_minute_next(cron, ceil_div(wall, seconds_per_minute), end);
  return minute != INT64_MAX ? minute * seconds_per_minute - span->offset : INT64_MAX;
}

int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_s) {
  int64_t from = after_s + 1, limit = after_s + horizon_s;
  while (from < limit) {
    struct zone_span span = zone_at(zone, from);
    struct clock_change change = change_into(zone, &span);
    bool at_change = from == span.from;
    if (at_change && cron->fixed_hour && matches_within(cron, change.skipped_from, change.skipped_until)) return from;
    int64_t found = next_in_span(cron, &span, &change, from, limit);
    if (found != INT64_MAX) return found;
    from = span.until;
  }
  return INT64_MAX;
}

/* ---- times ---- */

enum status schedule_times_of(const struct event_schedule_changed *config, const struct zone *zone,
                              struct schedule_times *ret_times, struct fault *fault) {
  struct schedule_times times = {.kind = config->kind,
                                 .zone = zone,
                                 .interval_ms = config->interval_ms,
                                 .anchor_at = config->anchor_at,
                                 .start_at = config->start_at,
                                 .end_at = config->end_at};
  if (config->kind == SCHEDULE_CRON) {
    must(zone != NULL);
    enum status status = cron_parse(config->cron, &times.cron, fault);
    if (status != STATUS_OK) return status;
  }
  *ret_times = times;
  return STATUS_OK;
}

/* The first of anchor, anchor + interval, … strictly after this. */
static int64_t interval_next(const struct schedule_times *times, int64_t after_us) {
  uint64_t interval_us = times->interval_ms * 1000;
  if (after_us < times->anchor_at) return times->anchor_at;
  uint64_t passed = ((uint64_t)after_us - (uint64_t)times->anchor_at) / interval_us + 1;
  uint64_t since;
  int64_t next;
  if (__builtin_mul_overflow(passed, interval_us, &since) || __builtin_add_overflow(times->anchor_at, since, &next))
    return INT64_MAX;
  return next;
}

int64_t schedule_times_next(const struct schedule_times *times, int64_t after_us) {
  int64_t next;
  if (times->start_at != 0 && after_us < times->start_at) after_us = times->start_at - 1;
  if (times->kind == SCHEDULE_INTERVAL) {
    next = interval_next(times, after_us);
  } else {
    int64_t second = cron_next(&times->cron, times->zone, floor_div(after_us, us_per_second));
    next = second < INT64_MAX / us_per_second ? second * us_per_second : INT64_MAX;
  }
  bool over = next >= time_us_max || (times->end_at != 0 && next >= times->end_at);
  return over ? 0 : next;
}
