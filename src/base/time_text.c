/* Owns the text form of times. Calendar arithmetic after H. Hinnant, "chrono-compatible low-level date algorithms". */
#include "base/time_text.h"

#include <string.h>

#include "base/guard.h"

static int64_t days_from_civil(int64_t year, unsigned month, unsigned day) {
  year -= month <= 2;
  int64_t era = year / 400;
  int64_t year_of_era = year - era * 400;
  int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void civil_from_days(int64_t days, unsigned *year, unsigned *month, unsigned *day) {
  days += 719468;
  int64_t era = days / 146097, day_of_era = days % 146097;
  int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t shifted = (5 * day_of_year + 2) / 153;
  *day = (unsigned)(day_of_year - (153 * shifted + 2) / 5 + 1);
  *month = (unsigned)(shifted + (shifted < 10 ? 3 : -9));
  *year = (unsigned)(year_of_era + era * 400 + (*month <= 2));
}

static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960"
    "61626364656667686970717273747576777879808182838485868788899091929394959697989"
    "9";

/* Below 100. */
static char *put_pair(char *out, unsigned value) {
  memcpy(out, pairs + 2 * value, 2);
  return out + 2;
}

bool time_has_text(int64_t time_us) { return time_us >= time_us_min && time_us < time_us_max; }

int64_t time_with_text(int64_t time_us) {
  if (time_us < time_us_min) return time_us_min;
  return time_us < time_us_max ? time_us : time_us_max - 1;
}

size_t time_format(int64_t time_us, char out[time_chars_max]) {
  must(time_has_text(time_us));
  unsigned year, month, day, fraction = (unsigned)(time_us % 1000000);
  int64_t seconds = time_us / 1000000;
  civil_from_days(seconds / 86400, &year, &month, &day);
  unsigned of_day = (unsigned)(seconds % 86400);
  char *at = put_pair(put_pair(out, year / 100), year % 100);
  *at++ = '-';
  at = put_pair(at, month);
  *at++ = '-';
  at = put_pair(at, day);
  *at++ = 'T';
  at = put_pair(at, of_day / 3600);
  *at++ = ':';
  at = put_pair(at, of_day / 60 % 60);
  *at++ = ':';
  at = put_pair(at, of_day % 60);
  if (fraction != 0) {
    *at++ = '.';
    at = put_pair(put_pair(put_pair(at, fraction / 10000), fraction / 100 % 100), fraction % 100);
    while (at[-1] == '0') *--at = '\0'; /* nothing behind the end is written but zero: a zeroed buffer holds a string */
  }
  *at++ = 'Z';
  return (size_t)(at - out);
}

/* Reads exactly count digits at *at. */
static bool take_digits(struct bytes text, size_t *at, unsigned count, unsigned *ret_value) {
  unsigned value = 0;
  if (text.size - *at < count) return false;
  for (unsigned i = 0; i < count; i++, (*at)++) {
    if (text.data[*at] < '0' || text.data[*at] > '9') return false;
    value = value * 10 + (unsigned)(text.data[*at] - '0');
  }
  *ret_value = value;
  return true;
}

static bool take_char(struct bytes text, size_t *at, char c) {
  if (*at >= text.size || text.data[*at] != (uint8_t)c) return false;
  (*at)++;
  return true;
}

static bool take_fraction(struct bytes text, size_t *at, unsigned *ret_us) {
  unsigned us = 0, count = 0;
  if (!take_char(text, at, '.')) return true;
  while (*at < text.size && text.data[*at] >= '0' && text.data[*at] <= '9') {
    if (++count > 6) return false;
    us = us * 10 + (unsigned)(text.data[(*at)++] - '0');
  }
  if (count == 0) return false;
  for (; count < 6; count++) us *= 10;
  *ret_us = us;
  return true;
}

static unsigned days_in_month(unsigned year, unsigned month) {
  static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29U : days[month - 1];
}

bool time_parse(struct bytes text, int64_t *ret_time_us) {
  unsigned year, month, day, hour, minute, second, us = 0;
  size_t at = 0;
  if (!take_digits(text, &at, 4, &year) || !take_char(text, &at, '-') || !take_digits(text, &at, 2, &month) ||
      !take_char(text, &at, '-') || !take_digits(text, &at, 2, &day) || !take_char(text, &at, 'T') ||
      !take_digits(text, &at, 2, &hour) || !take_char(text, &at, ':') || !take_digits(text, &at, 2, &minute) ||
      !take_char(text, &at, ':') || !take_digits(text, &at, 2, &second) || !take_fraction(text, &at, &us) ||
      !take_char(text, &at, 'Z') || at != text.size)
    return false;
  if (year < 2000 || year > 9998 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 ||
      minute > 59 || second > 59)
    return false;
  int64_t seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
  *ret_time_us = seconds * 1000000 + us;
  return true;
}
