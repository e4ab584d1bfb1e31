/* Times as people say them at a terminal, in the words of journalctl. Pure: the clock comes in. */
#ifndef ORBIT_REPLAY_WHEN_H
#define ORBIT_REPLAY_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* Reads one of these; white space around it does not matter:
 *   2026-09-17T03:12:04.5Z  2026-09-17T03:12+02:00  2026-09-17 03:12:04 UTC    an instant, whatever local is
 *   2026-09-17 03:12:04.5   2026-09-17 03:12   2026-09-17   03:12:04   03:12   on that calendar, or of today; a date may follow
 * the name of its day (Thu 2026-09-17) now  today  yesterday  tomorrow                                            the last
 * three at 00:00 -2h  +90s  1 hour ago  2h 30min ago  3 days left                           from now
 *   @1789614724.5                                                              seconds since 1970
 * Units: us ms s (sec, seconds …) m (min, minutes …) h (hr, hours …) d (days) w (weeks) M (months of 30.44 days) y (years of
 * 365.25 days). local: what names no zone is in the time zone of the process (TZ); else in UTC. False: none of these, or
 * outside the years of base/time_text.h. */
bool when_parse(const char *text, int64_t now_us, bool local, int64_t *ret_time_us);

/* Now, by the wall clock. */
int64_t when_now_us(void);

/* A position in the log as people give it: a sequence number, or a time. */
struct position {
  bool given;
  uint64_t seq;    /* 0: by time */
  int64_t time_us; /* the last event at or before it */
};
/* Digits alone are a sequence number, all else is a time as above. False: neither. */
bool position_parse(const char *text, int64_t now_us, bool local, struct position *ret_position);
/* True when the event lies behind the position; never for one that is not given. */
bool position_passed(const struct position *position, uint64_t seq, int64_t time_us);

/* A time for people: 2026-09-17T03:12:04.000000Z, or local with its offset. */
struct when_text {
  char text[48];
};
struct when_text when_text(int64_t time_us, bool local);
/* "1.234 s", "3 min 20 s", "2 d 4 h". */
struct span_text {
  char text[32];
};
struct span_text span_text(int64_t us);

#endif
