/* Owns times and positions as people say and read them: a cursor over the text, and one function for each form that a time can
 * have. */
#include "reading/when.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/time_text.h"

enum { us_per_s = 1000000, text_chars_max = 127 };
static const int64_t us_per_day = INT64_C(86400) * us_per_s;

int64_t when_now_us(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_REALTIME, &time);
  return (int64_t)time.tv_sec * us_per_s + time.tv_nsec / 1000;
}

/* ---- a cursor ---- */

static void skip_spaces(const char **at) {
  while (**at == ' ' || **at == '\t') (*at)++;
}

static bool take_char(const char **at, char wanted) {
  if (**at != wanted) return false;
  (*at)++;
  return true;
}

/* digits_max digits at most, and digits_min at least. */
static bool take_number(const char **at, unsigned digits_min, unsigned digits_max, int64_t *ret_value) {
  const char *start = *at;
  int64_t value = 0;
  while (isdigit((unsigned char)**at) && (unsigned)(*at - start) < digits_max) value = value * 10 + (*(*at)++ - '0');
  if ((unsigned)(*at - start) < digits_min || isdigit((unsigned char)**at)) return false;
  *ret_value = value;
  return true;
}

/* ".5" as microseconds; 0 when there is no point. */
static bool take_fraction(const char **at, int64_t *ret_us) {
  int64_t us = 0, weight = us_per_s / 10;
  if (!take_char(at, '.')) {
    *ret_us = 0;
    return true;
  }
  if (!isdigit((unsigned char)**at)) return false;
  for (; isdigit((unsigned char)**at); (*at)++, weight /= 10) us += (**at - '0') * weight;
  *ret_us = us;
  return true;
}

/* A whole word of letters, however written. */
static bool take_word(const char **at, const char *word) {
  size_t size = strlen(word);
  if (strncasecmp(*at, word, size) != 0 || isalpha((unsigned char)(*at)[size])) return false;
  *at += size;
  return true;
}

static bool at_end(const char *at) {
  skip_spaces(&at);
  return *at == 0;
}

static bool in_range(int64_t time_us, int64_t *ret_time_us) {
  if (time_us < time_us_min || time_us >= time_us_max) return false;
  *ret_time_us = time_us;
  return true;
}

/* ---- calendars ---- */

static int64_t day_start(int64_t now_us, bool local) {
  time_t seconds = (time_t)(now_us / us_per_s);
  struct tm day;
  if (!local) return now_us - now_us % us_per_day;
  if (localtime_r(&seconds, &day) == NULL) return now_us;
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  day.tm_isdst = -1;
  return (int64_t)mktime(&day) * us_per_s;
}

static bool calendar_fits(const struct tm *wanted) {
  struct tm found = *wanted;
  if (wanted->tm_hour > 23 || wanted->tm_min > 59 || wanted->tm_sec > 59) return false;
  (void)timegm(&found);
  return found.tm_mday == wanted->tm_mday && found.tm_mon == wanted->tm_mon;
}

/* "Z", " UTC", "+02:00", "+0200" or nothing. */
static bool take_zone(const char **at, bool *ret_given, int64_t *ret_offset_us) {
  const char *here = *at;
  int64_t hours, minutes;
  *ret_given = false;
  *ret_offset_us = 0;
  skip_spaces(&here);
  if (take_word(&here, "Z") || take_word(&here, "UTC") || take_word(&here, "GMT")) {
    *ret_given = true;
  } else if (*here == '+' || *here == '-') {
    int sign = *here++ == '-' ? -1 : 1;
    if (!isdigit((unsigned char)here[0]) || !isdigit((unsigned char)here[1])) return false;
    hours = (here[0] - '0') * 10 + (here[1] - '0');
    here += 2;
    (void)take_char(&here, ':');
    if (!take_number(&here, 2, 2, &minutes) || hours > 23 || minutes > 59) return false;
    *ret_given = true;
    *ret_offset_us = sign * (hours * 3600 + minutes * 60) * us_per_s;
  } else {
    return true;
  }
  *at = here;
  return true;
}

static bool take_clock(const char **at, struct tm *clock, int64_t *ret_us) {
  int64_t hour, minute, second = 0;
  *ret_us = 0;
  if (!take_number(at, 1, 2, &hour) || !take_char(at, ':') || !take_number(at, 2, 2, &minute)) return false;
  if (take_char(at, ':') && (!take_number(at, 2, 2, &second) || !take_fraction(at, ret_us))) return false;
  clock->tm_hour = (int)hour;
  clock->tm_min = (int)minute;
  clock->tm_sec = (int)second;
  return true;
}

static bool take_date(const char **at, struct tm *date) {
  int64_t year, month, day;
  if (!take_number(at, 4, 4, &year) || !take_char(at, '-') || !take_number(at, 1, 2, &month) || !take_char(at, '-') ||
      !take_number(at, 1, 2, &day) || month < 1 || day < 1)
    return false;
  date->tm_year = (int)year - 1900;
  date->tm_mon = (int)month - 1;
  date->tm_mday = (int)day;
  return true;
}

static void take_weekday(const char **at) {
  static const char *const days[] = {"Mon",    "Tue",     "Wed",       "Thu",      "Fri",    "Sat",      "Sun",
                                     "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
  for (unsigned i = 0; i < sizeof days / sizeof days[0]; i++)
    if (take_word(at, days[i])) break;
  skip_spaces(at);
}

/* A date, a time of day, or both. */
static bool parse_calendar(const char *text, int64_t now_us, bool local, int64_t *ret_time_us) {
  struct tm tm = {.tm_isdst = -1};
  int64_t us = 0, offset_us;
  bool zone;
  const char *at = text;
  take_weekday(&at);
  const char *date_at = at;
  if (take_date(&at, &tm)) {
    bool joined = *at == 'T' || *at == 't';
    if (joined) at++;
    else skip_spaces(&at);
    if ((joined || isdigit((unsigned char)*at)) && !take_clock(&at, &tm, &us)) return false;
  } else {
    time_t today = (time_t)(now_us / us_per_s);
    at = date_at;
    if (at != text || (local ? localtime_r(&today, &tm) : gmtime_r(&today, &tm)) == NULL) return false;
    tm.tm_isdst = -1;
    if (!take_clock(&at, &tm, &us)) return false;
  }
  if (!take_zone(&at, &zone, &offset_us) || !at_end(at) || !calendar_fits(&tm)) return false;
  int64_t seconds = (int64_t)(local && !zone ? mktime(&tm) : timegm(&tm));
  return in_range(seconds * us_per_s + us - offset_us, ret_time_us);
}

/* ---- spans ---- */

static const struct unit {
  const char *name;
  int64_t us;
} units[] = {
    {"us", 1},
    {"usec", 1},
    {"ms", 1000},
    {"msec", 1000},
    {"s", us_per_s},
    {"sec", us_per_s},
    {"second", us_per_s},
    {"seconds", us_per_s},
    {"m", INT64_C(60) * us_per_s},
    {"min", INT64_C(60) * us_per_s},
    {"minute", INT64_C(60) * us_per_s},
    {"minutes", INT64_C(60) * us_per_s},
    {"h", INT64_C(3600) * us_per_s},
    {"hr", INT64_C(3600) * us_per_s},
    {"hour", INT64_C(3600) * us_per_s},
    {"hours", INT64_C(3600) * us_per_s},
    {"d", INT64_C(86400) * us_per_s},
    {"day", INT64_C(86400) * us_per_s},
    {"days", INT64_C(86400) * us_per_s},
    {"w", INT64_C(604800) * us_per_s},
    {"week", INT64_C(604800) * us_per_s},
    {"weeks", INT64_C(604800) * us_per_s},
    {"M", INT64_C(2629800) * us_per_s},
    {"month", INT64_C(2629800) * us_per_s},
    {"months", INT64_C(2629800) * us_per_s},
    {"y", INT64_C(31557600) * us_per_s},
    {"year", INT64_C(31557600) * us_per_s},
    {"years", INT64_C(31557600) * us_per_s},
};

/* Letters behind a number; none means seconds. Case matters: m are minutes, M months. */
static bool take_unit(const char **at, int64_t *ret_us) {
  size_t size = 0;
  while (isalpha((unsigned char)(*at)[size])) size++;
  for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++) {
    if (strlen(units[i].name) != size || strncmp(units[i].name, *at, size) != 0) continue;
    *ret_us = units[i].us;
    *at += size;
    return true;
  }
  return false;
}

static bool take_span(const char **at, int64_t *ret_us) {
  int64_t total = 0, value, fraction_us, unit;
  bool any = false;
  for (skip_spaces(at); isdigit((unsigned char)**at); skip_spaces(at), any = true) {
    if (!take_number(at, 1, 12, &value) || !take_fraction(at, &fraction_us)) return false;
    skip_spaces(at);
    const char *word = *at;
    if (*word == 0 || take_word(&word, "ago") || take_word(&word, "left")) unit = us_per_s;
    else if (!take_unit(at, &unit)) return false;
    if (__builtin_mul_overflow(value, unit, &value) || __builtin_add_overflow(total, value, &total)) return false;
    /* a millionth of a unit at a time: exact for every unit of seconds and more */
    if (__builtin_add_overflow(total, unit >= us_per_s ? fraction_us * (unit / us_per_s) : fraction_us * unit / us_per_s,
                               &total))
      return false;
  }
  *ret_us = total;
  return any;
}

static bool parse_relative(const char *text, int64_t now_us, int64_t *ret_time_us) {
  const char *at = text;
  int64_t span_us;
  int sign = 0;
  if (take_char(&at, '+')) sign = 1;
  else if (take_char(&at, '-')) sign = -1;
  if (!take_span(&at, &span_us)) return false;
  if (sign == 0 && take_word(&at, "ago")) sign = -1;
  if (sign == 0 && take_word(&at, "left")) sign = 1;
  if (sign == 0 || !at_end(at) || __builtin_add_overflow(now_us, sign * span_us, &now_us)) return false;
  return in_range(now_us, ret_time_us);
}

static bool parse_epoch(const char *text, int64_t *ret_time_us) {
  const char *at = text;
  int64_t seconds, us;
  if (!take_char(&at, '@') || !take_number(&at, 1, 12, &seconds) || !take_fraction(&at, &us) || !at_end(at)) return false;
  return in_range(seconds * us_per_s + us, ret_time_us);
}

static bool parse_word(const char *text, int64_t now_us, bool local, int64_t *ret_time_us) {
  const char *at = text;
  int64_t time_us = day_start(now_us, local);
  if (take_word(&at, "now")) time_us = now_us;
  else if (take_word(&at, "yesterday")) time_us = day_start(time_us - us_per_day / 2, local);
  else if (take_word(&at, "tomorrow")) time_us = day_start(time_us + us_per_day + us_per_day / 2, local);
  else if (!take_word(&at, "today")) return false;
  return at_end(at) && in_range(time_us, ret_time_us);
}

bool when_parse(const char *text, int64_t now_us, bool local, int64_t *ret_time_us) {
  skip_spaces(&text);
  if (strlen(text) > text_chars_max) return false;
  return parse_word(text, now_us, local, ret_time_us) || parse_relative(text, now_us, ret_time_us) ||
         parse_epoch(text, ret_time_us) || parse_calendar(text, now_us, local, ret_time_us);
}

/* ---- positions ---- */

bool position_parse(const char *text, int64_t now_us, bool local, struct position *ret_position) {
  struct position position = {.given = true};
  const char *digits = text;
  while (isdigit((unsigned char)*digits)) digits++;
  if (digits != text && *digits == 0) {
    errno = 0;
    position.seq = strtoull(text, NULL, 10);
    if (errno != 0 || position.seq == 0) return false;
  } else if (!when_parse(text, now_us, local, &position.time_us)) {
    return false;
  }
  *ret_position = position;
  return true;
}

bool position_passed(const struct position *position, uint64_t seq, int64_t time_us) {
  if (!position->given) return false;
  return position->seq != 0 ? seq > position->seq : time_us > position->time_us;
}

/* ---- printing ---- */

struct when_text when_text(int64_t time_us, bool local) {
  struct when_text out = {""};
  time_t seconds = (time_t)(time_us / 1000000);
  struct tm tm;
  char date[32], zone[8] = "Z";
  if (time_us < time_us_min || time_us >= time_us_max ||
      (local ? localtime_r(&seconds, &tm) : gmtime_r(&seconds, &tm)) == NULL) {
    (void)snprintf(out.text, sizeof out.text, "%lld", (long long)time_us);
    return out;
  }
  (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
  if (local) (void)strftime(zone, sizeof zone, "%z", &tm);
  (void)snprintf(out.text, sizeof out.text, "%s.%06u%s", date, (unsigned)(time_us % 1000000), zone);
  return out;
}

struct span_text span_text(int64_t us) {
  struct span_text out;
  double seconds = (double)us / 1e6;
  long long whole = (long long)(us / 1000000);
  if (us < 1000) (void)snprintf(out.text, sizeof out.text, "%lld us", (long long)us);
  else if (us < 1000000) (void)snprintf(out.text, sizeof out.text, "%.3g ms", (double)us / 1e3);
  else if (whole < 60) (void)snprintf(out.text, sizeof out.text, "%.3g s", seconds);
  else if (whole < 3600) (void)snprintf(out.text, sizeof out.text, "%lld min %lld s", whole / 60, whole % 60);
  else if (whole < 86400) (void)snprintf(out.text, sizeof out.text, "%lld h %lld min", whole / 3600, whole / 60 % 60);
  else (void)snprintf(out.text, sizeof out.text, "%lld d %lld h", whole / 86400, whole / 3600 % 24);
  return out;
}
