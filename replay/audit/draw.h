/* Drawing at a terminal: bars over time, and text folded to the width. Boxes where the locale has them, ASCII else. */
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
/* A text behind a left edge of its own, folded at spaces and hung below itself. The left text is ASCII. */
void draw_folded(struct out *out, const char *left, struct bytes text, enum colour colour);
/* "1.234 s", "3 min 20 s", "2 d 4 h". */
struct span_text {
  char text[32];
};
struct span_text span_text(int64_t us);

#endif
