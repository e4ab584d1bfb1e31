/* A task as a whole in the terminal: its state, what it is, by which policy, until when. */
#ifndef ORBIT_REPLAY_HEAD_H
#define ORBIT_REPLAY_HEAD_H

#include "core/event.h"
#include "core/model.h"
#include "reading/out.h"

/* Appends a line for the state and a row for each thing that is there. local: times in the zone of the process. */
void head_put(struct out *out, const struct task *task, const struct event_task_accepted *accepted, bool local);
/* One such row; empties the value. */
void head_row(struct out *out, const char *name, struct buffer *value);

#endif
