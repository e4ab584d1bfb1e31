/* The life of one task as it is drawn and told. */
#ifndef ORBIT_REPLAY_LIFE_H
#define ORBIT_REPLAY_LIFE_H

#include "audit/audit.h"
#include "audit/draw.h"
#include "core/model.h"

struct life_attempt {
  struct id id;
  struct bar bar;
};

struct life {
  const struct request *request;
  struct id node_id;
  uint64_t *seqs; /* of the task's events, oldest first; owned */
  size_t count, capacity;
  struct task task;       /* as the events leave it */
  struct attempt attempt; /* likewise */
  struct life_attempt attempts[attempts_max];
  unsigned attempt_count;
  uint64_t unread; /* damaged records of the log; whose they were is not known */
  bool torn;       /* an event of the task could not be read, or does not fit what is before it */
};

/* The number of the attempt; 0: not one of this task. */
uint64_t life_number(const struct life *life, const struct id *attempt_id);
/* One sentence about the event, without its time. */
void life_say(const struct life *life, const struct event *event, struct buffer *text);
enum colour life_colour(const struct event *event);

#endif
