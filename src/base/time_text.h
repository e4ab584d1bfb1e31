/* Times: int64_t microseconds since 1970-01-01T00:00:00Z; in text RFC 3339 UTC with Z, at most six fractional digits,
 * trailing zeros dropped, years 2000–9998 (schema/semantics.md "Time"). 0 means "absent" wherever a time is optional. */
#ifndef ORBIT_BASE_TIME_TEXT_H
#define ORBIT_BASE_TIME_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { time_chars_max = 27, us_per_ms = 1000 };

static const int64_t time_us_min = INT64_C(946684800) * 1000000;    /* 2000-01-01T00:00:00Z */
static const int64_t time_us_max = INT64_C(253370764800) * 1000000; /* 9999-01-01T00:00:00Z, itself excluded */

/* True when the time has a text. */
bool time_has_text(int64_t time_us);
/* The time, or of one that has no text the nearest that has: for times that nobody judged, such as the machine's clock. */
int64_t time_with_text(int64_t time_us);
/* Writes at most time_chars_max characters, no NUL; returns their number. time must be in [time_us_min, time_us_max). */
size_t time_format(int64_t time_us, char out[time_chars_max]);
/* False unless text is such a time (upper-case T and Z, real calendar date, seconds 0–59). */
bool time_parse(struct bytes text, int64_t *ret_time_us);

#endif
