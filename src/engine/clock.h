/* Orbit's time (schema/semantics.md "Time"): max(wall time, last event) at start plus monotonic time since, slewed towards the
 * wall clock by at most one part in a thousand. It never goes back and never stands still. Pure: the two clocks come in. */
#ifndef ORBIT_ENGINE_CLOCK_H
#define ORBIT_ENGINE_CLOCK_H

#include <stdint.h>

struct clock {
  int64_t now_us;       /* Orbit's time at the last reading */
  int64_t monotonic_us; /* the monotonic clock at the last reading */
  int64_t slew_rest;    /* thousandths of a microsecond of slew not yet spent */
};

/* last_event_us: 0 when the log is empty. */
void clock_init(struct clock *clock, int64_t wall_us, int64_t monotonic_us, int64_t last_event_us);
/* Orbit's time at this reading of both clocks. */
int64_t clock_read(struct clock *clock, int64_t wall_us, int64_t monotonic_us);

/* The machine's clocks, microseconds. */
int64_t clock_wall_us(void);
int64_t clock_monotonic_us(void);

#endif
