/* Owns the reading of zone files and of the rule at their end, from which all later years follow. */
#include "core/zone.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"

/* When clocks change each year, as POSIX writes it. */
struct change_rule {
  enum { RULE_JULIAN = 1, RULE_DAY, RULE_MONTH } kind; /* Jn: 1–365 without leap days; n: 0–365; Mm.w.d */
  int day;                                             /* RULE_JULIAN, RULE_DAY; RULE_MONTH: 0–6, Sunday is 0 */
  int month, week;                                     /* week 5: the last */
  int32_t time;                                        /* seconds after midnight of the clock before the change */
};

struct zone_type {
  int32_t offset;
  bool daylight;
};

struct zone {
  int64_t *at; /* transitions, rising; owned, with types behind */
  uint8_t *types;
  uint32_t count;
  uint8_t first; /* type before the first transition */
  uint32_t type_count;
  struct zone_type kinds[256];
  bool has_rule; /* behind the last transition */
  bool has_daylight;
  struct zone_type standard, saving;
  struct change_rule start, end; /* of daylight saving */
};

/* ---- the rule: std offset [dst [offset] ,start[/time],end[/time]] ---- */

struct rule_text {
  const char *at, *end;
};

static int peek(const struct rule_text *text) { return text->at < text->end ? (unsigned char)*text->at : -1; }
static bool take(struct rule_text *text, int c) {
  if (peek(text) != c) return false;
  text->at++;
  return true;
}

static bool take_number(struct rule_text *text, int max, int *ret_number) {
  int value = 0, digits = 0;
  for (; peek(text) >= '0' && peek(text) <= '9' && digits < 4; digits++) value = value * 10 + (*text->at++ - '0');
  *ret_number = value;
  return digits > 0 && value <= max;
}

static bool take_name(struct rule_text *text) {
  int length = 0;
  if (take(text, '<')) {
    while (peek(text) != -1 && peek(text) != '>') text->at++;
    return take(text, '>');
  }
  for (; (peek(text) >= 'a' && peek(text) <= 'z') || (peek(text) >= 'A' && peek(text) <= 'Z'); length++) text->at++;
  return length >= 3;
}

/* [+-]h[:mm[:ss]]: an offset is a day at the most, the time of a change reaches days around. */
enum { offset_hours_most = 24, change_hours_most = 167 };
static bool take_time(struct rule_text *text, int hours_most, int32_t *ret_seconds) {
  int hours, minutes = 0, seconds = 0;
  bool minus = peek(text) == '-';
  if (minus || peek(text) == '+') text->at++;
  if (!take_number(text, hours_most, &hours)) return false;
  if (take(text, ':') && !take_number(text, 59, &minutes)) return false;
  if (take(text, ':') && !take_number(text, 59, &seconds)) return false;
  *ret_seconds = (hours * 3600 + minutes * 60 + seconds) * (minus ? -1 : 1);
  return true;
}

static bool take_change(struct rule_text *text, struct change_rule *ret_rule) {
  struct change_rule rule = {.kind = RULE_DAY, .time = 2 * 3600};
  bool read;
  if (take(text, 'M')) {
    rule.kind = RULE_MONTH;
    read = take_number(text, 12, &rule.month) && rule.month >= 1 && take(text, '.') && take_number(text, 5, &rule.week) &&
           rule.week >= 1 && take(text, '.') && take_number(text, 6, &rule.day);
  } else {
    if (take(text, 'J')) rule.kind = RULE_JULIAN;
    read = take_number(text, 365, &rule.day) && (rule.kind == RULE_DAY || rule.day >= 1);
  }
  if (read && take(text, '/')) read = take_time(text, change_hours_most, &rule.time);
  if (read) *ret_rule = rule;
  return read;
}

static bool parse_rule(struct bytes footer, struct zone *zone) {
  struct rule_text text = {(const char *)footer.data, (const char *)footer.data + footer.size};
  int32_t west, west_saving;
  if (footer.size == 0) return true;
  if (!take_name(&text) || !take_time(&text, offset_hours_most, &west)) return false;
  zone->standard = (struct zone_type){-west, false};
  zone->has_rule = true;
  if (peek(&text) == -1) return true;
  if (!take_name(&text)) return false;
  zone->saving = (struct zone_type){zone->standard.offset + 3600, true};
  if (peek(&text) != ',') {
    if (!take_time(&text, offset_hours_most, &west_saving)) return false;
    zone->saving.offset = -west_saving;
  }
  zone->has_daylight = true;
  return take(&text, ',') && take_change(&text, &zone->start) && take(&text, ',') && take_change(&text, &zone->end) &&
         peek(&text) == -1;
}

/* ---- the file ---- */

struct head {
  uint64_t version;
  uint64_t utc_flags, wall_flags, leaps, transitions, types, chars;
};
enum { head_bytes = 44, type_bytes = 6 };

static uint64_t big_endian(const uint8_t *at, unsigned size) {
  uint64_t value = 0;
  for (unsigned i = 0; i < size; i++) value = value << 8 | at[i];
  return value;
}

static bool read_head(struct bytes file, size_t at, struct head *ret_head) {
  if (at > file.size || file.size - at < head_bytes || memcmp(file.data + at, "TZif", 4) != 0) return false;
  const uint8_t *counts = file.data + at + 20;
  *ret_head = (struct head){.version = file.data[at + 4],
                            .utc_flags = big_endian(counts, 4),
                            .wall_flags = big_endian(counts + 4, 4),
                            .leaps = big_endian(counts + 8, 4),
                            .transitions = big_endian(counts + 12, 4),
                            .types = big_endian(counts + 16, 4),
                            .chars = big_endian(counts + 20, 4)};
  return true;
}

/* Of the data behind a header; each count is below 2^32, so that nothing overflows. */
static uint64_t data_bytes(const struct head *head, unsigned time_bytes) {
  return head->transitions * (time_bytes + 1U) + head->types * type_bytes + head->chars + head->leaps * (time_bytes + 4U) +
         head->wall_flags + head->utc_flags;
}

static bool read_types(const uint8_t *at, const struct head *head, struct zone *zone) {
  zone->type_count = (uint32_t)head->types;
  for (uint32_t i = 0; i < zone->type_count; i++, at += type_bytes) {
    int32_t offset = (int32_t)(uint32_t)big_endian(at, 4);
    if (offset < -90000 || offset > 93600 || at[4] > 1) return false; /* a day and some, as the format says */
    zone->kinds[i] = (struct zone_type){offset, at[4] == 1};
  }
  return true;
}

/* Offsets can be added to what lies within. */
static const int64_t transition_max = INT64_C(1) << 60;

static bool read_transitions(const uint8_t *at, struct zone *zone) {
  const uint8_t *types = at + (size_t)zone->count * 8;
  for (uint32_t i = 0; i < zone->count; i++) {
    zone->at[i] = (int64_t)big_endian(at + (size_t)i * 8, 8);
    zone->types[i] = types[i];
    if (zone->at[i] < -transition_max || zone->at[i] > transition_max) return false;
    if (types[i] >= zone->type_count || (i > 0 && zone->at[i] <= zone->at[i - 1])) return false;
  }
  return true;
}

static bool read_footer(struct bytes file, size_t at, struct zone *zone) {
  if (file.size - at < 2 || file.data[at] != '\n') return false;
  const uint8_t *start = file.data + at + 1;
  const uint8_t *end = memchr(start, '\n', file.size - at - 1);
  return end != NULL && parse_rule(bytes_of(start, (size_t)(end - start)), zone);
}

static bool read_file(struct bytes file, struct zone *zone) {
  struct head old, head;
  if (file.size > zone_file_bytes_max || !read_head(file, 0, &old) || old.version < '2') return false;
  uint64_t second = head_bytes + data_bytes(&old, 4);
  if (second > file.size || !read_head(file, (size_t)second, &head)) return false;
  size_t data = (size_t)second + head_bytes;
  uint64_t size = data_bytes(&head, 8);
  if (size > file.size - data || head.types == 0 || head.types > 256 || head.leaps != 0) return false;
  zone->count = (uint32_t)head.transitions;
  zone->at = guard_malloc((sizeof *zone->at + 1) * (zone->count + 1U));
  zone->types = (uint8_t *)(zone->at + zone->count + 1);
  const uint8_t *at = file.data + data;
  return read_types(at + (size_t)zone->count * 9, &head, zone) && read_transitions(at, zone) &&
         read_footer(file, data + (size_t)size, zone);
}

enum status zone_parse(struct bytes file, struct zone **ret_zone) {
  struct zone *zone = guard_calloc(1, sizeof *zone);
  if (!read_file(file, zone)) {
    zone_free(zone);
    return STATUS_CORRUPT;
  }
  *ret_zone = zone;
  return STATUS_OK;
}

struct zone *zone_utc(void) {
  struct zone *zone = guard_calloc(1, sizeof *zone);
  zone->type_count = 1;
  return zone;
}

void zone_free(struct zone *zone) {
  if (zone == NULL) return;
  free(zone->at);
  free(zone);
}

/* ---- years that follow from the rule ---- */

static const int64_t seconds_per_day = 86400;

static int64_t floor_div(int64_t value, int64_t by) { return value / by - (value % by < 0); }
static bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

/* Days from 1970-01-01 to the first of January. */
static int64_t year_start(int64_t year) {
  int64_t before = year - 1;
  return 365 * (year - 1970) + (floor_div(before, 4) - 492) - (floor_div(before, 100) - 19) + (floor_div(before, 400) - 4);
}

static int64_t year_of(int64_t utc) {
  int64_t days = floor_div(utc, seconds_per_day);
  int64_t year = 1970 + floor_div(days * 400, 146097);
  while (year_start(year) > days) year--;
  while (year_start(year + 1) <= days) year++;
  return year;
}

/* Day of the year, from 0 on, of the week-th weekday of the month. */
static int64_t month_rule_day(const struct change_rule *rule, int64_t year) {
  static const int starts[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
  int leap = is_leap(year);
  int64_t first = starts[rule->month - 1] + (rule->month > 2 ? leap : 0);
  int64_t end = starts[rule->month] + (rule->month > 1 ? leap : 0);
  int64_t weekday = ((year_start(year) + first + 4) % 7 + 7) % 7; /* of the first day of the month */
  int64_t day = first + (rule->day - weekday + 7) % 7 + 7 * (rule->week - 1);
  return day < end ? day : day - 7;
}

/* The moment of the change in this year; offset is the clock's before it. */
static int64_t change_at(const struct change_rule *rule, int64_t year, int32_t offset) {
  int64_t day = rule->kind == RULE_MONTH ? month_rule_day(rule, year)
                : rule->kind == RULE_DAY ? rule->day
                                         : rule->day - 1 + (rule->day >= 60 && is_leap(year));
  return (year_start(year) + day) * seconds_per_day + rule->time - offset;
}

/* The latest change at or before the moment and the first one after it, of the years around it. */
static struct zone_span rule_span(const struct zone *zone, int64_t utc) {
  struct zone_span span = {INT64_MIN, INT64_MAX, zone->standard.offset, false};
  if (!zone->has_daylight) return span;
  int64_t year = year_of(utc);
  for (int64_t y = year - 1; y <= year + 1; y++) {
    for (int to_saving = 0; to_saving <= 1; to_saving++) {
      int64_t at =
          to_saving ? change_at(&zone->start, y, zone->standard.offset) : change_at(&zone->end, y, zone->saving.offset);
      /* a change at the same moment as the other has no length: the later kind of the year wins */
      if (at <= utc && at >= span.from) {
        const struct zone_type *type = to_saving ? &zone->saving : &zone->standard;
        span.from = at;
        span.offset = type->offset;
        span.daylight = type->daylight;
      }
      if (at > utc && at < span.until) span.until = at;
    }
  }
  return span;
}

/* ---- looking up ---- */

/* How many transitions lie at or before the moment. */
static uint32_t transitions_until(const struct zone *zone, int64_t utc) {
  uint32_t low = 0, high = zone->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (zone->at[middle] <= utc) low = middle + 1;
    else high = middle;
  }
  return low;
}

struct zone_span zone_at(const struct zone *zone, int64_t utc) {
  uint32_t passed = transitions_until(zone, utc);
  int64_t last = zone->count != 0 ? zone->at[zone->count - 1] : INT64_MIN;
  if (zone->has_rule && passed == zone->count) {
    struct zone_span span = rule_span(zone, utc);
    if (span.from < last) span.from = last;
    return span;
  }
  const struct zone_type *type = &zone->kinds[passed != 0 ? zone->types[passed - 1] : zone->first];
  return (struct zone_span){.from = passed != 0 ? zone->at[passed - 1] : INT64_MIN,
                            .until = passed < zone->count ? zone->at[passed] : INT64_MAX,
                            .offset = type->offset,
                            .daylight = type->daylight};
}
