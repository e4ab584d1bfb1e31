/* Owns the reading of cron expressions, and the calendar that they are matched against. */
#include "core/cron.h"

#include <stddef.h>

#include "base/guard.h"
#include "base/limits.h"

/* ---- fields ---- */

struct field {
  const char *name;
  unsigned min, max;
  const char *names; /* three letters each, from first_name on; NULL: none */
  unsigned first_name;
};

enum { FIELD_MINUTE, FIELD_HOUR, FIELD_DAY, FIELD_MONTH, FIELD_WEEKDAY, FIELD_COUNT };
static const struct field fields[FIELD_COUNT] = {
    [FIELD_MINUTE] = {"minute", 0, 59, NULL, 0},
    [FIELD_HOUR] = {"hour", 0, 23, NULL, 0},
    [FIELD_DAY] = {"day of month", 1, 31, NULL, 0},
    [FIELD_MONTH] = {"month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", 1},
    [FIELD_WEEKDAY] = {"day of week", 0, 7, "SUNMONTUEWEDTHUFRISAT", 0}, /* Sunday is 0 and 7 */
};

static const struct {
  const char *word, *expression;
} words[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
    {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"},
};

struct reading {
  struct bytes text;
  size_t at;
  const struct field *field;
  struct fault *fault;
};

static int peek(const struct reading *reading) {
  return reading->at < reading->text.size ? reading->text.data[reading->at] : -1;
}

static bool is_blank(int c) { return c == ' ' || c == '\t'; }
static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int upper(int c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; }

static enum status refuse(const struct reading *reading, size_t at, const char *what) {
  return fault_set(reading->fault, STATUS_INVALID_ARGUMENT, NULL, "%s, character %zu: %s",
                   reading->field != NULL ? reading->field->name : "expression", at + 1, what);
}

/* A name of the field: three letters and no more. */
static enum status read_name(struct reading *reading, unsigned *ret_value) {
  size_t start = reading->at, length = 0;
  int letters[4];
  for (; is_letter(peek(reading)); reading->at++, length++)
    if (length < 4) letters[length] = upper(peek(reading));
  for (size_t i = 0; length == 3 && reading->field->names != NULL && reading->field->names[i] != '\0'; i += 3) {
    const char *name = reading->field->names + i;
    if (letters[0] != name[0] || letters[1] != name[1] || letters[2] != name[2]) continue;
    *ret_value = (unsigned)(i / 3) + reading->field->first_name;
    return STATUS_OK;
  }
  return refuse(reading, start, reading->field->names != NULL ? "not a name of this field" : "this field has no names");
}

static enum status read_number(struct reading *reading, const char *what_if_none, unsigned *ret_value) {
  size_t start = reading->at;
  unsigned value = 0;
  if (!is_digit(peek(reading))) return refuse(reading, start, what_if_none);
  for (; is_digit(peek(reading)); reading->at++) {
    value = value * 10 + (unsigned)(peek(reading) - '0');
    if (reading->at - start >= 4) return refuse(reading, start, "the number is too long");
  }
  *ret_value = value;
  return STATUS_OK;
}

static enum status read_value(struct reading *reading, unsigned *ret_value) {
  size_t start = reading->at;
  if (is_letter(peek(reading))) return read_name(reading, ret_value);
  unsigned value;
  enum status status = read_number(reading, "a number, a name or * must stand here", &value);
  if (status != STATUS_OK) return status;
  if (value < reading->field->min || value > reading->field->max)
    return fault_set(reading->fault, STATUS_INVALID_ARGUMENT, NULL, "%s, character %zu: %u is not within %u and %u",
                     reading->field->name, start + 1, value, reading->field->min, reading->field->max);
  *ret_value = value;
  return STATUS_OK;
}

static enum status read_step(struct reading *reading, unsigned *ret_step) {
  size_t start = ++reading->at;
  unsigned step;
  enum status status = read_number(reading, "a step must stand behind the /", &step);
  if (status != STATUS_OK) return status;
  if (step == 0) return refuse(reading, start, "a step of 0 never ends");
  if (step > reading->field->max) return refuse(reading, start, "the step is larger than the field");
  *ret_step = step;
  return STATUS_OK;
}

/* One item of a list: *, a value, a range; a step behind * or a range. */
struct item {
  unsigned first, last, step;
  bool star, stepped;
};

static enum status read_range(struct reading *reading, struct item *item) {
  size_t start = reading->at;
  enum status status = read_value(reading, &item->first);
  item->last = item->first;
  if (status != STATUS_OK || peek(reading) != '-') return status;
  reading->at++;
  status = read_value(reading, &item->last);
  if (status != STATUS_OK) return status;
  /* a week that ends on Sunday: FRI-SUN */
  if (reading->field == &fields[FIELD_WEEKDAY] && item->last == 0 && item->first > 0) item->last = 7;
  if (item->last < item->first) return refuse(reading, start, "the range is reversed");
  item->stepped = true; /* it may have a step */
  return STATUS_OK;
}

static enum status read_item(struct reading *reading, struct item *ret_item) {
  struct item item = {.step = 1};
  enum status status = STATUS_OK;
  if (peek(reading) == '*') {
    reading->at++;
    item = (struct item){reading->field->min, reading->field->max, 1, true, true};
    if (reading->field == &fields[FIELD_WEEKDAY]) item.last = 6;
  } else {
    status = read_range(reading, &item);
  }
  if (status != STATUS_OK) return status;
  bool may_step = item.stepped;
  item.stepped = false;
  if (peek(reading) == '/') {
    if (!may_step) return refuse(reading, reading->at, "a step stands behind * or a range alone");
    item.stepped = true;
    status = read_step(reading, &item.step);
  }
  if (status == STATUS_OK) *ret_item = item;
  return status;
}

/* What a field says, besides its values. */
struct field_read {
  uint64_t bits;
  bool any;     /* it is * alone */
  bool stepped; /* * or a step stands in it */
};

static enum status read_field(struct reading *reading, struct field_read *ret_read) {
  struct field_read read = {.bits = 0};
  unsigned items = 0;
  do {
    struct item item = {.step = 1};
    if (items++ > 0) reading->at++;
    enum status status = read_item(reading, &item);
    if (status != STATUS_OK) return status;
    for (unsigned value = item.first; value <= item.last; value += item.step) read.bits |= UINT64_C(1) << value;
    read.any = items == 1 && item.star && !item.stepped;
    read.stepped = read.stepped || item.star || item.stepped;
  } while (peek(reading) == ',');
  if (peek(reading) != -1 && !is_blank(peek(reading))) return refuse(reading, reading->at, "this cannot stand here");
  *ret_read = read;
  return STATUS_OK;
}

static enum status read_fields(struct reading *reading, struct field_read reads[FIELD_COUNT]) {
  for (unsigned i = 0; i < FIELD_COUNT; i++) {
    reading->field = &fields[i];
    while (i > 0 && is_blank(peek(reading))) reading->at++;
    if (peek(reading) == -1) return refuse(reading, reading->at, "the field is missing");
    if (is_blank(peek(reading))) return refuse(reading, reading->at, "a blank before the first field");
    enum status status = read_field(reading, &reads[i]);
    if (status != STATUS_OK) return status;
  }
  reading->field = NULL;
  size_t blanks = reading->at;
  while (is_blank(peek(reading))) reading->at++;
  if (peek(reading) != -1) return refuse(reading, reading->at, "a sixth field: there are five");
  if (reading->at != blanks) return refuse(reading, blanks, "a blank behind the last field");
  return STATUS_OK;
}

static enum status read_word(struct reading *reading) {
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (!bytes_equal_text(reading->text, words[i].word)) continue;
    reading->text = bytes_text(words[i].expression);
    return STATUS_OK;
  }
  return refuse(reading, 0, "the words are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly");
}

enum status cron_parse(struct bytes text, struct cron *ret_cron, struct fault *fault) {
  struct reading reading = {.text = text, .fault = fault};
  struct field_read reads[FIELD_COUNT];
  enum status status = STATUS_OK;
  if (text.size > cron_chars_max) return refuse(&reading, cron_chars_max, "the expression is too long");
  if (peek(&reading) == '@') status = read_word(&reading);
  if (status == STATUS_OK) status = read_fields(&reading, reads);
  if (status != STATUS_OK) return status;
  uint64_t weekdays = reads[FIELD_WEEKDAY].bits;
  *ret_cron = (struct cron){
      .minutes = reads[FIELD_MINUTE].bits,
      .hours = (uint32_t)reads[FIELD_HOUR].bits,
      .days = (uint32_t)reads[FIELD_DAY].bits,
      .months = (uint16_t)reads[FIELD_MONTH].bits,
      .weekdays = (uint8_t)((weekdays | weekdays >> 7) & 0x7F),
      .either_day = !reads[FIELD_DAY].any && !reads[FIELD_WEEKDAY].any,
      .fixed_hour = !reads[FIELD_HOUR].stepped,
  };
  return STATUS_OK;
}

/* ---- the calendar ---- */

enum { minutes_per_hour = 60, minutes_per_day = 24 * 60 };

struct date {
  int64_t year;
  unsigned month, day; /* from 1 on */
};

/* Days since 1970-01-01 to a date and back, in the proleptic Gregorian calendar: years are counted from March on, so that the
 * leap day is the last. */
static struct date date_of_day(int64_t days) {
  int64_t shifted = days + 719468;
  int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  int64_t of_era = shifted - era * 146097;
  int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  int64_t march = (5 * of_year + 2) / 153;
  unsigned month = (unsigned)(march < 10 ? march + 3 : march - 9);
  return (struct date){year + era * 400 + (month <= 2), month, (unsigned)(of_year - (153 * march + 2) / 5 + 1)};
}

static int64_t floor_div(int64_t value, int64_t by) { return value / by - (value % by < 0); }

static unsigned days_of_month(const struct date *date) {
  static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = date->year % 4 == 0 && (date->year % 100 != 0 || date->year % 400 == 0);
  return date->month == 2 && leap ? 29U : days[date->month - 1];
}

static bool day_matches(const struct cron *cron, const struct date *date, int64_t day) {
  unsigned weekday = (unsigned)(((day + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
  bool of_month = (cron->days >> date->day & 1) != 0, of_week = (cron->weekdays >> weekday & 1) != 0;
  return cron->either_day ? of_month || of_week : of_month && of_week;
}

/* The first matching minute of the day at or after `from` (0–1439); -1: none. */
static int minute_of_day(const struct cron *cron, unsigned from) {
  for (unsigned hour = from / minutes_per_hour; hour < 24; hour++) {
    if ((cron->hours >> hour & 1) == 0) continue;
    unsigned first = hour == from / minutes_per_hour ? from % minutes_per_hour : 0;
    uint64_t left = cron->minutes >> first;
    if (left != 0) return (int)(hour * minutes_per_hour + first + (unsigned)__builtin_ctzll(left));
  }
  return -1;
}

int64_t cron_minute_next(const struct cron *cron, int64_t minute, int64_t end) {
  must(cron->minutes != 0 && cron->hours != 0);
  while (minute < end) {
    int64_t day = floor_div(minute, minutes_per_day);
    struct date date = date_of_day(day);
    if ((cron->months >> date.month & 1) == 0) {
      minute = (day + days_of_month(&date) - date.day + 1) * minutes_per_day;
      continue;
    }
    int found = day_matches(cron, &date, day) ? minute_of_day(cron, (unsigned)(minute - day * minutes_per_day)) : -1;
    if (found < 0) {
      minute = (day + 1) * minutes_per_day;
      continue;
    }
    int64_t at = day * minutes_per_day + found;
    return at < end ? at : INT64_MAX;
  }
  return INT64_MAX;
}
