/* Owns Orbit's time. */
#include "engine/clock.h"

#include <time.h>

enum { slew_parts = 1000 };

void clock_init(struct clock *clock, int64_t wall_us, int64_t monotonic_us, int64_t last_event_us) {
  *clock = (struct clock){.now_us = wall_us > last_event_us ? wall_us : last_event_us, .monotonic_us = monotonic_us};
}

int64_t clock_read(struct clock *clock, int64_t wall_us, int64_t monotonic_us) {
  int64_t passed = monotonic_us - clock->monotonic_us;
  if (passed <= 0) return clock->now_us;
  int64_t now = clock->now_us + passed;
  int64_t allowance = passed + clock->slew_rest; /* in thousandths: one part in a thousand of what passed */
  int64_t most = allowance / slew_parts;
  if (most >= passed) most = passed - 1; /* one microsecond passed: it must not stand still */
  int64_t apart = wall_us - now;
  int64_t slew = apart > most ? most : apart < -most ? -most : apart;
  clock->slew_rest = allowance % slew_parts;
  clock->monotonic_us = monotonic_us;
  clock->now_us = now + slew;
  return clock->now_us;
}

static int64_t read_clock(clockid_t which) {
  struct timespec time;
  (void)clock_gettime(which, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

int64_t clock_wall_us(void) { return read_clock(CLOCK_REALTIME); }
int64_t clock_monotonic_us(void) { return read_clock(CLOCK_MONOTONIC); }
