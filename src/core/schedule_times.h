/* The times of a schedule: which come after a given one (schema/semantics.md "Schedules"). Pure: the zone comes in. */
#ifndef ORBIT_CORE_SCHEDULE_TIMES_H
#define ORBIT_CORE_SCHEDULE_TIMES_H

#include <stdint.h>

#include "core/cron.h"
#include "core/event.h"
#include "core/zone.h"

struct schedule_times {
  enum schedule_kind kind;
  struct cron cron;         /* CRON */
  const struct zone *zone;  /* CRON; borrowed */
  uint64_t interval_ms;     /* INTERVAL */
  int64_t anchor_at;        /* INTERVAL: times are this plus whole intervals */
  int64_t start_at, end_at; /* 0: none; no time before start_at, none at or after end_at */
};

/* Of a configuration; the zone is the one that it names, NULL for INTERVAL. INVALID_ARGUMENT: its expression is none (fault as
 * cron_parse fills it). */
enum status schedule_times_of(const struct event_schedule_changed *config, const struct zone *zone,
                              struct schedule_times *ret_times, struct fault *fault);
/* The first time strictly after this; 0: there is none before end_at, or none in eight years. */
int64_t schedule_times_next(const struct schedule_times *times, int64_t after_us);

/* The first moment, in seconds, strictly after this one at which the expression fires on the zone's clocks; INT64_MAX: none in
 * eight years. A fixed hour that a change to or from daylight saving skips fires right after the gap, one that is repeated the
 * first time alone; other expressions fire whenever the clock shows a matching time. */
int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_s);

#endif
