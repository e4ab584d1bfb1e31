/* The judgement of one record behind the one before it, by the log alone: what replay, verify and salvage have in common. */
#ifndef ORBIT_JOURNAL_JUDGE_H
#define ORBIT_JOURNAL_JUDGE_H

#include "codec/event_codec.h"

/* The record that was taken last. */
struct judge {
  uint64_t seq; /* 0: none yet */
  uint64_t chain;
  int64_t time_us;
  uint32_t offset;     /* its place in its commit */
  bool last_of_commit; /* whether that commit ended with it */
};

/* Stands before seq 1 of the log with this genesis. */
void judge_begin(struct judge *judge, struct bytes genesis);
/* Judges the bytes alone, before anything in them is believed: length, seq, chain. What is wrong, a static sentence, or NULL.
 */
const char *judge_bytes(const struct judge *judge, struct bytes record);
/* What is wrong with the place of this decoded event behind the last one, or NULL: prev, time, offset, last flag. */
const char *judge_order(const struct judge *judge, const struct event *event);
/* Stands behind this event from here on, whatever was found about it. */
void judge_take(struct judge *judge, const struct event *event);

#endif
