/* Cron expressions: five fields (minute, hour, day of month, month, day of week) as POSIX cron reads them, with names, ranges,
 * steps and the @ words (schema/semantics.md "Cron expressions"). Pure. */
#ifndef ORBIT_CORE_CRON_H
#define ORBIT_CORE_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

/* Which values of each field match: bit n for value n. */
struct cron {
  uint64_t minutes; /* 0–59 */
  uint32_t hours;   /* 0–23 */
  uint32_t days;    /* 1–31 */
  uint16_t months;  /* 1–12 */
  uint8_t weekdays; /* 0–6, Sunday is 0 */
  bool either_day;  /* day of month and day of week are both given: a day that matches one of them matches */
  bool fixed_hour;  /* the hour is neither * nor a step: its times belong to the clock, not to the passing of time */
};

/* INVALID_ARGUMENT: the message names the part of the expression, the character (from 1 on) and what is wrong; fault->field is
 * left to the caller (NULL). */
enum status cron_parse(struct bytes text, struct cron *ret_cron, struct fault *fault);

/* The first matching minute at or after `minute` and before `end`, both minutes since 1970 of a clock on the wall; INT64_MAX:
 * none. */
int64_t cron_minute_next(const struct cron *cron, int64_t minute, int64_t end);

#endif
