/* What leaves memory, and comes back: a matter of room alone. No answer, no list and no digest tells where a task or a receipt
 * is kept (schema/semantics.md "How long things are kept"). */
#ifndef ORBIT_STATE_EVICT_H
#define ORBIT_STATE_EVICT_H

#include "state/cold.h"
#include "state/state.h"

/* From here on tasks and receipts may leave for the store. Borrowed; must outlive the state. */
void state_set_cold(struct state *state, struct cold *cold);
/* Ends the snapshot of the store, if one is open. */
void state_close_cold(struct state *state);

struct evict_policy {
  int64_t ended_before_us; /* ended tasks that ended before may leave */
  uint64_t memory_max;     /* all ended tasks may leave while tasks and receipts take more bytes than this; 0: no bound */
  uint32_t tasks_max;      /* at most so many at once */
};
/* Lets ended tasks leave, those with the oldest newest event first, as far as the store holds them; and those that are gone.
 * Returns how many left. Numbers and pointers of tasks that have ended are void then. */
uint32_t state_evict(struct state *state, const struct evict_policy *policy, struct history *history,
                     struct record_source source);
/* What tasks, receipts and their orders take, about. */
uint64_t state_memory_bytes(const struct state *state);

struct evict_counts {
  uint64_t tasks;      /* in memory */
  uint64_t ended;      /* of them, those that have ended */
  uint64_t tasks_away; /* ended ones that are not in memory, those that are gone with them */
  uint64_t receipts;   /* in memory */
  uint64_t bytes;
};
struct evict_counts state_evict_counts(const struct state *state);

/* The task, wherever it is kept; one that left memory comes back until the next eviction. END: there is none, or it is gone.
 * UNAVAILABLE: the store that may hold it cannot be read now. CORRUPT, IO_ERROR. */
enum status state_find(struct state *state, const struct id *id, uint32_t *ret_number);
/* Makes sure that the task of the event is in memory, if it is anywhere: before folding an event of the log. */
enum status state_meet(struct state *state, const struct event *event);

/* Retention: ended tasks whose newest event is not after this seq are gone. 0: none. */
uint64_t state_retained_seq(const struct state *state);
/* True when an ended task would go if retention were moved on to this seq. */
bool state_would_retain(const struct state *state, uint64_t seq);

#endif
