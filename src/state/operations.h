/* What was done to one task, newest first: entries that were recorded (audit.recorded) and entries that the task's events say
 * themselves (schema/semantics.md "Audit"). Read from the log along the prev chain of the task's stream; memory holds none of
 * it. */
#ifndef ORBIT_STATE_OPERATIONS_H
#define ORBIT_STATE_OPERATIONS_H

#include "codec/wire_recovery.h"
#include "core/event.h"
#include "core/model.h"
#include "state/history.h"

/* The entry that this event of a task makes. older is the type of the event before it in the task's stream (EVENT_none: it is
 * the first), newer the event after it (NULL: it is the newest); of newer only a decision matters, which follows a report or an
 * end in the same commit. END: it makes none (decisions that belong to an entry already, evidence, requests that have an
 * audit.recorded). CORRUPT: what must follow it does not. Spans are the event's. Pure. */
enum status operation_of_event(const struct event *event, enum event_type older, const struct event *newer,
                               struct operation_document *ret_operation);

/* A page of the entries of the task, newest first. Of task only id and last_seq matter. after is the audit id of the last entry
 * of the page before; NULL or zero: the first page. rows has room for limit entries (at least 1); it may be half written on
 * failure. *ret_more: older entries follow. Spans live as long as the source's records. NOT_FOUND: after is no entry of this
 * task. CORRUPT, NO_MEMORY. */
enum status operations_page(struct history *history, struct record_source source, const struct task *task,
                            const struct id *after, uint32_t limit, struct operation_document *rows, uint32_t *ret_count,
                            bool *ret_more);

/* The one entry with this audit id. NOT_FOUND: the task has none. CORRUPT, NO_MEMORY. */
enum status operations_find(struct history *history, struct record_source source, const struct task *task,
                            const struct id *audit_id, struct operation_document *ret_operation);

#endif
