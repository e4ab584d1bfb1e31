/* The state machine of a task as one table: which event may follow in which state, and where it leads. Deciding, replay,
 * audit and the document schema/semantics.md read the same table. Pure. */
#ifndef ORBIT_CORE_TRANSITION_H
#define ORBIT_CORE_TRANSITION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/event.h"
#include "core/words.h"

struct transition {
  enum task_state from; /* TASK_NONE: the task does not exist yet */
  enum event_type event;
  enum task_state to;
  bool raises_revision; /* by one; a cancel request that finds another on record does not */
};

/* The rows, `count` of them; static. */
const struct transition *transition_rows(size_t *ret_count);
/* The row for this event in this state, or NULL when the event does not fit. A review has two rows, one for each finding; this
 * gives the first, and the event itself names the state. */
const struct transition *transition_find(enum task_state from, enum event_type event);

/* True when a row leads from this state by this event to that state. */
bool transition_allows(enum task_state from, enum event_type event, enum task_state to);

#endif
