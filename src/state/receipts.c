/* Owns the receipts: a projection from operation identities to the events that carry them. The full identity is read back from
 * the log, so that a receipt costs one slot of memory. */
#include <string.h>

#include "state/cold.h"
#include "state/rows.h"

uint64_t identity_key(const struct id *identity) {
  uint64_t key;
  memcpy(&key, identity->bytes, sizeof key);
  return key;
}

void receipt_add(struct state *state, const struct id *identity, uint64_t seq) {
  if (!id_is_zero(identity)) index_add(&state->receipts, identity_key(identity), seq);
}

void state_keep_receipts(struct state *state) { state->keeps_receipts = true; }

static void note(struct state *state, uint32_t task, uint64_t identity, uint64_t seq) {
  state->recent[state->recent_at++ % recent_receipts_max] = (struct recent_receipt){identity, seq, task};
}

void receipt_add_of_task(struct state *state, uint32_t task, const struct id *identity, uint64_t seq) {
  if (id_is_zero(identity)) return;
  receipt_add(state, identity, seq);
  note(state, task, identity_key(identity), seq);
}

void receipt_recall_start(struct state *state, uint32_t task, const struct attempt_node *attempt) {
  if (attempt->started_seq != 0) note(state, task, attempt->started_identity, attempt->started_seq);
}

/* Those of earlier attempts, which are few, go when they are old (evict.c). */
void receipts_leave(struct state *state, uint32_t task) {
  if (state->keeps_receipts) return;
  for (unsigned i = 0; i < recent_receipts_max; i++) {
    struct recent_receipt *recent = &state->recent[i];
    if (recent->task != task) continue;
    receipt_drop(state, recent->identity, recent->seq);
    recent->task = 0;
  }
}

void receipt_drop(struct state *state, uint64_t identity, uint64_t seq) {
  if (index_take(&state->receipts, identity, seq)) digest_sum_add(&state->away, digest_of_receipt(identity, seq));
}

/* ---- looking up ---- */

struct looking {
  const struct state *state;
  const struct id *identity;
  const struct task *task; /* NULL: whatever leads to it */
  struct history *history;
  struct record_source source;
};

static bool event_carries(const struct event *event, const struct id *identity) {
  return id_equal(&event->common.identity, identity) ||
         (event->type == EVENT_attempt_result && id_equal(&event->body.attempt_result.report_identity, identity));
}

/* A receipt stays as long as the task that its event is about. OK, END, or why that cannot be told. */
static enum status still_there(const struct looking *looking, const struct id *stream) {
  const struct state *state = looking->state;
  struct task_row row;
  if (state->retained_seq == 0 || object_find(state, stream) != 0) return STATUS_OK;
  uint32_t number = state_task_number(state, stream);
  if (number != 0) return task_is_gone(state, &node_at(state, number)->task) ? STATUS_END : STATUS_OK;
  if (!store_is_needed(state)) return STATUS_END;
  if (!cold_open(state->cold, state->needed_seq)) return STATUS_UNAVAILABLE;
  enum status status = cold_task(state->cold, stream, &row);
  return status == STATUS_OK && task_is_gone(state, &row.task) ? STATUS_END : status;
}

/* END: the event at seq is not what is looked for. */
static enum status judge(const struct looking *looking, uint64_t seq, struct event *ret_event) {
  struct event event;
  enum status status = history_event(looking->history, looking->source, seq, &event);
  if (status != STATUS_OK) return status;
  if (!event_carries(&event, looking->identity)) return STATUS_END;
  if (looking->task != NULL && !id_equal(&event.stream, &looking->task->id)) return STATUS_END;
  status = still_there(looking, &event.stream);
  if (status == STATUS_OK) *ret_event = event;
  return status;
}

static enum status find_in_memory(const struct looking *looking, struct event *ret_event) {
  struct index_cursor cursor;
  enum status status = STATUS_END;
  for (uint64_t seq = index_find(&looking->state->receipts, identity_key(looking->identity), &cursor);
       seq != 0 && status == STATUS_END; seq = index_next(&looking->state->receipts, &cursor))
    status = judge(looking, seq, ret_event);
  return status;
}

/* Along the task's history, which begins with what is oldest last. */
static enum status find_by_task(const struct looking *looking, struct event *ret_event) {
  bool ended = task_state_is_terminal((enum task_state)looking->task->state);
  uint64_t floor = ended ? UINT64_MAX : looking->state->receipts_floor; /* up to here, memory may hold none */
  struct event event;
  if (looking->task->accepted_seq > floor) return STATUS_END;
  for (uint64_t seq = looking->task->last_seq; seq != 0; seq = event.prev) {
    enum status status = history_event(looking->history, looking->source, seq, &event);
    if (status != STATUS_OK) return status;
    if (event.prev >= seq || !id_equal(&event.stream, &looking->task->id)) return STATUS_CORRUPT;
    if (seq > floor || !event_carries(&event, looking->identity)) continue;
    *ret_event = event;
    return STATUS_OK;
  }
  return STATUS_END;
}

static enum status find_in_store(const struct looking *looking, struct event *ret_event) {
  const struct state *state = looking->state;
  if (!cold_open(state->cold, state->needed_seq)) return STATUS_UNAVAILABLE;
  if (cold_indexed_seq(state->cold) < state->receipts_floor) return STATUS_UNAVAILABLE; /* made anew, and not sorted in yet */
  for (uint64_t seq = 0;;) {
    enum status status = cold_identity(state->cold, identity_key(looking->identity), &seq);
    if (status == STATUS_OK && seq > state->receipts_floor) return STATUS_END;
    if (status == STATUS_OK) status = judge(looking, seq, ret_event);
    else return status;
    if (status != STATUS_END) return status;
  }
}

enum status state_receipt(const struct state *state, const struct id *identity, const struct task *task,
                          struct history *history, struct record_source source, struct event *ret_event) {
  struct looking looking = {state, identity, task, history, source};
  enum status status = find_in_memory(&looking, ret_event);
  if (status == STATUS_END && task != NULL) return find_by_task(&looking, ret_event);
  return status == STATUS_END && state->receipts_floor != 0 ? find_in_store(&looking, ret_event) : status;
}
