/* A position of the log as it was asked for, found: the event that is the last one of that moment. */
#ifndef ORBIT_REPLAY_PAST_H
#define ORBIT_REPLAY_PAST_H

#include "reading/scan.h"
#include "replay/replay.h"

struct past {
  uint64_t seq; /* 0: there was no event yet */
  int64_t time_us;
  bool is_end; /* the log has none behind it */
};
void past_find(struct scan *scan, const struct position *position, struct past *ret_past);
/* "seq 21, 2026-11-30T15:01:14.030698Z". */
void past_say(const struct past *past, bool local, struct buffer *out);

#endif
