/* Drawing at a terminal: bars over time. Boxes where the locale has them, ASCII else. */
#ifndef ORBIT_REPLAY_DRAW_H
#define ORBIT_REPLAY_DRAW_H

#include "audit/audit.h"

/* One attempt. Times are microseconds; 0: it did not come to that. */
struct bar {
  uint64_t number;
  int64_t waited_us; /* the task waits from here */
  int64_t leased_us, started_us, ended_us;
  char label[32]; /* what came of it */
  enum colour colour;
};

/* The bars between two times, a head with the scale, and what the signs mean. until_us: where what goes on is cut. */
void draw_bars(struct out *out, const struct bar *bars, unsigned count, int64_t from_us, int64_t until_us);
#endif
