/* Whether the audit of a log is complete: every change that people answer for has its record in the same commit, every record
 * its change, and every other transition says all that its entry is made of. Memory: one operation. */
#ifndef ORBIT_REPLAY_CHECK_H
#define ORBIT_REPLAY_CHECK_H

#include "core/event.h"

enum { check_wanted_max = 64 };

/* A record that must be there, by its id or (zero) by its target. */
struct check_wanted {
  uint64_t seq; /* of the event that wants it */
  struct id audit_id, target;
  const char *action; /* NULL: whichever */
  bool found;
};
struct check_record {
  uint64_t seq;
  struct id audit_id, target;
  char action[32];
  bool used;
};

struct check {
  void (*finding)(void *context, uint64_t seq, const char *what);
  void *context;
  struct id operation_id; /* whose events come now */
  struct check_wanted wanted[check_wanted_max];
  struct check_record records[check_wanted_max];
  unsigned wanted_count, record_count;
  uint64_t undecided_seq; /* a report or an end whose decision must be the next event; 0: none */
  struct id undecided_stream;
  uint64_t record_total; /* audit records seen */
};

void check_begin(struct check *check, void (*finding)(void *context, uint64_t seq, const char *what), void *context);
/* The next event of the log, in order. */
void check_event(struct check *check, const struct event *event);
/* Events are missing here: what was half told is forgotten, and what it lacks is no finding. */
void check_gap(struct check *check);
void check_end(struct check *check);

#endif
