/* What can be told from a schedule and its configuration alone. Pure. */
#ifndef ORBIT_CORE_SCHEDULE_H
#define ORBIT_CORE_SCHEDULE_H

#include <stdbool.h>

#include "core/event.h"
#include "core/model.h"

/* The configuration that schedule.created or .changed sets: fields of both have the same names. False: another event. Spans are
 * the event's. */
bool schedule_config_of(const struct event *event, struct event_schedule_changed *ret_config);
/* Where the configuration stands that held after this write of a schedule; 0: the event is none. */
uint64_t schedule_config_seq_of(const struct event *event);
/* The trigger that schedule.triggered or .skipped records. False: another event. */
struct trigger {
  int64_t scheduled_at;
  int64_t decided_at;
  int64_t next_at; /* 0: none */
  enum trigger_outcome outcome;
  struct id task_id; /* SUBMITTED; zero else */
  struct bytes code; /* REJECTED; data NULL else */
};
bool trigger_of(const struct event *event, struct trigger *ret_trigger);

#endif
