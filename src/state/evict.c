/* Owns how ended tasks and old receipts leave memory, and how a task comes back. */
#include "state/evict.h"

#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "state/rows.h"

void state_set_cold(struct state *state, struct cold *cold) {
  state->cold = cold;
  cold_set_floor(cold, state->receipts_floor);
}

void state_close_cold(struct state *state) {
  if (state->cold != NULL) cold_close(state->cold);
}

uint64_t state_retained_seq(const struct state *state) { return state->retained_seq; }

/* ---- ended tasks in memory, by their newest event ---- */

static bool ended_holds(const struct state *state, uint32_t number) {
  const struct task_node *node = node_at(state, number);
  return node->ended_prev != 0 || node->ended_next != 0 || state->ended.oldest == number;
}

static void ended_leave(struct state *state, uint32_t number) {
  struct task_node *node = node_at(state, number);
  *(node->ended_prev != 0 ? &node_at(state, node->ended_prev)->ended_next : &state->ended.oldest) = node->ended_next;
  *(node->ended_next != 0 ? &node_at(state, node->ended_next)->ended_prev : &state->ended.newest) = node->ended_prev;
  node->ended_prev = node->ended_next = 0;
}

void ended_touch(struct state *state, uint32_t number) {
  struct task_node *node = node_at(state, number);
  if (ended_holds(state, number)) ended_leave(state, number);
  node->ended_prev = state->ended.newest;
  *(node->ended_prev != 0 ? &node_at(state, node->ended_prev)->ended_next : &state->ended.oldest) = number;
  state->ended.newest = number;
}

/* What visits goes first. */
static void ended_visit(struct state *state, uint32_t number) {
  struct task_node *node = node_at(state, number);
  node->ended_next = state->ended.oldest;
  *(node->ended_next != 0 ? &node_at(state, node->ended_next)->ended_prev : &state->ended.newest) = number;
  state->ended.oldest = number;
}

/* ---- leaving ---- */

static struct digest_sum digest_of_node(const struct state *state, const struct task_node *node) {
  return digest_of_ended(&node->task, &object_at(state, node->task.queue)->id, &object_at(state, node->task.application)->id,
                         node->handler_hash);
}

static void leave(struct state *state, uint32_t number, uint64_t business_hash) {
  struct task_node *node = node_at(state, number);
  must(node->timer_position == 0 && node->key == 0 && node->task.handler == 0);
  if (!node->visits) listing_leave(state, number, business_hash);
  if (!node->visits && node->task.last_seq > state->left_seq) state->left_seq = node->task.last_seq;
  state->visiting -= node->visits;
  ended_leave(state, number);
  digest_sum_add(&state->away, digest_of_node(state, node));
  object_at(state, node->task.queue)->away++;
  state->tasks_away++;
  index_remove(&state->task_ids, id_hash(&node->task.id), number);
  node->task.accepted_seq = 0;
  pool_remove(&state->tasks, number);
}

/* The store holds it as it is here. */
static bool is_stored(struct state *state, const struct task_node *node, uint64_t *ret_business_hash) {
  struct task_row row;
  if (state->cold == NULL || !cold_open(state->cold, state->needed_seq) || node->task.last_seq > cold_seq(state->cold))
    return false;
  if (cold_task(state->cold, &node->task.id, &row) != STATUS_OK || row.task.last_seq != node->task.last_seq) return false;
  state->needed_seq = cold_seq(state->cold);
  *ret_business_hash = row.business_hash;
  return true;
}

/* Of a task that is gone the log tells what its places and its receipts follow from. */
static bool forget(struct state *state, const struct task_node *node, struct history *history, struct record_source source,
                   uint64_t *ret_business_hash) {
  struct event event = {.type = EVENT_none};
  uint64_t seq = node->task.last_seq;
  for (; seq != 0; seq = event.prev) {
    if (history_event(history, source, seq, &event) != STATUS_OK || !id_equal(&event.stream, &node->task.id)) return false;
    if (seq <= state->receipts_floor) continue;
    if (!id_is_zero(&event.common.identity)) receipt_drop(state, identity_key(&event.common.identity), seq);
    if (event.type == EVENT_attempt_result && !id_is_zero(&event.body.attempt_result.report_identity))
      receipt_drop(state, identity_key(&event.body.attempt_result.report_identity), seq);
  }
  if (event.type != EVENT_task_accepted) return false;
  const struct event_task_accepted *accepted = &event.body.task_accepted;
  *ret_business_hash = node->named ? business_key_hash(&accepted->namespace_id, accepted->business_key) : 0;
  return true;
}

static uint64_t orders_bytes(const struct state *state) {
  return (uint64_t)state->keys.live * sizeof(struct key_slot) + (uint64_t)state->attempts.live * sizeof(struct attempt_node) +
         (uint64_t)state->timers.capacity * sizeof(struct heap_entry);
}

static uint64_t indexes_bytes(const struct state *state) {
  return index_bytes(&state->task_ids) + index_bytes(&state->receipts) + index_bytes(&state->business_keys) +
         index_bytes(&state->key_ids);
}

uint64_t state_memory_bytes(const struct state *state) {
  return (uint64_t)state->tasks.live * sizeof(struct task_node) + orders_bytes(state) + indexes_bytes(state);
}

/* What has been taken for as many, and will be: the places of tasks that left are used again, never given back, and an index
 * that is made anew stands beside the old one. */
static uint64_t taken_bytes(const struct state *state) {
  enum { slots_of_entry = 4 };
  uint64_t entries = state->task_ids.count + state->receipts.count + state->business_keys.count + state->key_ids.count;
  uint64_t later = entries * slots_of_entry * sizeof(struct index_slot), now = indexes_bytes(state);
  return (uint64_t)state->tasks.used * sizeof(struct task_node) + orders_bytes(state) + (later > now ? later : now);
}

/* Too much is there; or more would be taken, for want of places to use again. */
static bool is_pressed(const struct state *state, uint64_t memory_max) {
  if (memory_max == 0) return false;
  return state_memory_bytes(state) > memory_max ||
         (state->tasks.free_count < evict_places_min && taken_bytes(state) > memory_max);
}

/* ---- receipts ---- */

enum { receipts_at_once = 8192 };

static void drop_receipt(void *context, const struct receipt_entry *entry) {
  receipt_drop(context, entry->identity, entry->seq);
}

/* Those up to the newest event of the tasks that have left; all that are sorted in when memory is short. */
static void evict_receipts(struct state *state, bool pressed) {
  if (state->cold == NULL || !cold_open(state->cold, state->needed_seq)) return;
  uint64_t until = cold_indexed_seq(state->cold), reached = state->receipts_floor;
  if (!pressed && until > state->left_seq) until = state->left_seq;
  if (until <= reached) return;
  (void)cold_receipts(state->cold, reached, until, receipts_at_once, drop_receipt, state, &reached);
  if (reached > state->needed_seq) state->needed_seq = reached;
  state->receipts_floor = reached;
  cold_set_floor(state->cold, reached);
}

uint32_t state_evict(struct state *state, const struct evict_policy *policy, struct history *history,
                     struct record_source source) {
  uint32_t count = 0;
  bool pressed = is_pressed(state, policy->memory_max);
  for (; count < policy->tasks_max && state->ended.oldest != 0; count++) {
    struct task_node *node = node_at(state, state->ended.oldest);
    uint64_t business_hash = 0;
    bool gone = task_is_gone(state, &node->task);
    if (!gone && !pressed && !node->visits && task_completed_at(&node->task) > policy->ended_before_us) break;
    if (gone ? !forget(state, node, history, source, &business_hash) : !is_stored(state, node, &business_hash)) break;
    leave(state, state->ended.oldest, business_hash);
  }
  evict_receipts(state, pressed);
  state_close_cold(state);
  return count;
}

struct evict_counts state_evict_counts(const struct state *state) {
  uint64_t unfinished = 0;
  for (uint32_t number = 1; number <= state->objects.used; number++) {
    const struct object *object = object_at(state, number);
    if (object->kind == OBJECT_APPLICATION) unfinished += object->as.application.unfinished;
  }
  return (struct evict_counts){.tasks = state->tasks.live,
                               .ended = state->tasks.live - unfinished,
                               .tasks_away = state->tasks_away,
                               .receipts = state->receipts.count,
                               .bytes = state_memory_bytes(state)};
}

/* ---- coming back ---- */

static bool is_of_kind(const struct state *state, uint32_t number, enum object_kind kind) {
  return number != 0 && number <= state->objects.used && object_at(state, number)->kind == kind;
}

static enum status come_back(struct state *state, const struct task_row *row, uint32_t *ret_number) {
  if (!is_of_kind(state, row->task.queue, OBJECT_QUEUE) || !is_of_kind(state, row->task.application, OBJECT_APPLICATION) ||
      object_at(state, row->task.queue)->away == 0)
    return STATUS_CORRUPT;
  uint32_t number = pool_add(&state->tasks);
  struct task_node *node = node_at(state, number);
  node->task = row->task;
  node->handler_hash = row->handler_hash;
  node->named = row->business_hash != 0;
  node->visits = true;
  state->visiting++;
  index_add(&state->task_ids, id_hash(&row->task.id), number);
  ended_visit(state, number);
  digest_sum_subtract(&state->away, digest_of_node(state, node));
  object_at(state, row->task.queue)->away--;
  state->tasks_away--;
  *ret_number = number;
  return STATUS_OK;
}

enum status state_find(struct state *state, const struct id *id, uint32_t *ret_number) {
  struct task_row row;
  uint32_t number = state_task_number(state, id);
  if (number == 0) {
    if (!store_is_needed(state)) return STATUS_END;
    if (!cold_open(state->cold, state->needed_seq)) return STATUS_UNAVAILABLE;
    enum status status = cold_task(state->cold, id, &row);
    if (status == STATUS_OK) status = task_is_gone(state, &row.task) ? STATUS_END : come_back(state, &row, &number);
    if (status != STATUS_OK) return status;
  } else if (task_is_gone(state, &node_at(state, number)->task)) {
    return STATUS_END;
  }
  *ret_number = number;
  return STATUS_OK;
}

enum status state_meet(struct state *state, const struct event *event) {
  enum object_kind kind = event_object_kind(event->type);
  uint32_t number;
  if (state->tasks_away == 0 || event->type == EVENT_task_accepted || (kind != OBJECT_TASK && kind != 0)) return STATUS_OK;
  if (kind == 0 && object_find(state, &event->stream) != 0) return STATUS_OK;
  enum status status = state_find(state, &event->stream, &number);
  return status == STATUS_END ? STATUS_OK : status;
}

/* One that is in memory may be newer there than in the store. */
static bool store_would_retain(const struct state *state, uint64_t seq) {
  struct task_row row;
  uint64_t after = state->retained_seq;
  if (!store_is_needed(state) || !cold_open(state->cold, state->needed_seq)) return false;
  for (unsigned i = 0; i < eviction_newer_max; i++, after = row.task.last_seq) {
    if (cold_first_end(state->cold, after, &row) != STATUS_OK || row.task.last_seq > seq) return false;
    uint32_t number = state_task_number(state, &row.task.id);
    if (number == 0 || node_at(state, number)->task.last_seq <= seq) return true;
  }
  return true;
}

bool state_would_retain(const struct state *state, uint64_t seq) {
  for (uint32_t number = state->ended.oldest; number != 0; number = node_at(state, number)->ended_next) {
    const struct task_node *node = node_at(state, number);
    if (task_is_gone(state, &node->task)) continue;
    if (node->task.last_seq <= seq) return true;
    if (!node->visits) break;
  }
  return store_would_retain(state, seq);
}
