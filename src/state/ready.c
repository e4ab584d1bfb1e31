/* Owns the orders in which tasks are taken: timers, ready buckets by queue and handler, and turns by concurrency key. All of it
 * follows from the tasks; nothing here is a fact of its own. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "state/internal.h"

/* ---- heaps over task nodes ---- */

static uint32_t *timer_position(void *context, uint32_t number) { return &node_at(context, number)->timer_position; }
static uint32_t *ready_position(void *context, uint32_t number) { return &node_at(context, number)->ready_position; }
static int id_tie(void *context, uint32_t a, uint32_t b) {
  return id_compare(&node_at(context, a)->task.id, &node_at(context, b)->task.id);
}

/* Of what is due at one time, too: the order does not tell whether this state was folded or loaded. */
static struct heap_owner timer_owner(const struct state *state) {
  return (struct heap_owner){timer_position, id_tie, (void *)(uintptr_t)state};
}
static uint32_t *waiting_position(void *context, uint32_t number) { return &node_at(context, number)->waiting_position; }
static struct heap_owner waiting_owner(const struct state *state) {
  return (struct heap_owner){waiting_position, NULL, (void *)(uintptr_t)state};
}
static struct heap_owner ready_owner(const struct state *state) {
  return (struct heap_owner){ready_position, id_tie, (void *)(uintptr_t)state};
}

/* Priority high to low, then available_at: one number, since times stay below 2^58. */
static int64_t ready_key(const struct task *task) {
  return ((int64_t)(priority_max - task->priority) << 58) | task->available_at;
}

int64_t state_ready_key(const struct state *state, uint32_t task_number) {
  return ready_key(state_task_at(state, task_number));
}

uint64_t state_ready_count(const struct state *state) { return state->ready_count; }

void timer_set(struct state *state, uint32_t number, int64_t now_us) {
  struct heap_owner owner = timer_owner(state);
  const struct task_node *node = node_at(state, number);
  int64_t at = task_next_timer(&node->task, node_attempt(state, node), now_us);
  if (at == INT64_MAX) heap_remove(&state->timers, &owner, number);
  else heap_put(&state->timers, &owner, number, at);
}

int64_t state_timer_next(const struct state *state) { return heap_next(&state->timers); }
uint32_t state_timer_due(const struct state *state, int64_t now_us) { return heap_due(&state->timers, now_us); }

void state_renew(struct state *state, uint32_t number, int64_t live_until) {
  struct task_node *node = node_at(state, number);
  must(node_claim(node) != 0);
  attempt_at(state, node->attempt)->attempt.live_until = live_until;
  timer_set(state, number, 0);
}

void state_lengthen_leases(struct state *state, int64_t us) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->instance_ids, &at, &key, &value)) {
    uint32_t number = state_instance_at(state, (uint32_t)value)->first;
    for (; number != 0; number = state_held_next(state, number)) {
      const struct attempt *attempt = state_attempt_at(state, number);
      state_renew(state, number, task_lease_longer(state_task_at(state, number), attempt, us));
    }
  }
}

/* ---- buckets ---- */

uint64_t bucket_hash(uint32_t queue, struct bytes handler, struct bytes handler_version) {
  return XXH3_64bits_withSeed(handler_version.data, handler_version.size,
                              XXH3_64bits_withSeed(handler.data, handler.size, queue));
}

uint32_t bucket_make(struct state *state, uint32_t queue, struct bytes handler, struct bytes handler_version) {
  uint64_t hash = bucket_hash(queue, handler, handler_version);
  struct index_cursor cursor;
  for (uint64_t value = index_find(&state->bucket_keys, hash, &cursor); value != 0;
       value = index_next(&state->bucket_keys, &cursor)) {
    const struct bucket *bucket = &bucket_at(state, (uint32_t)value)->bucket;
    if (bucket->queue == queue && bytes_equal(bucket->handler, handler) &&
        bytes_equal(bucket->handler_version, handler_version))
      return (uint32_t)value;
  }
  uint32_t number = pool_add(&state->buckets);
  struct bucket_node *node = bucket_at(state, number);
  uint8_t *texts = guard_malloc(handler.size + handler_version.size);
  if (handler.size != 0) memcpy(texts, handler.data, handler.size);
  if (handler_version.size != 0) memcpy(texts + handler.size, handler_version.data, handler_version.size);
  node->hash = hash;
  node->bucket.number = number;
  node->bucket.queue = queue;
  node->bucket.handler = bytes_of(texts, handler.size);
  node->bucket.handler_version = bytes_of(texts + handler.size, handler_version.size);
  index_add(&state->bucket_keys, hash, number);
  return number;
}

uint32_t state_bucket(struct state *state, const struct id *queue_id, struct bytes handler, struct bytes handler_version) {
  if (object_of_kind(state, queue_id, OBJECT_QUEUE) == NULL) return 0;
  return bucket_make(state, object_find(state, queue_id), handler, handler_version);
}

struct bucket *state_bucket_at(const struct state *state, uint32_t number) {
  return &bucket_at(state, number)->bucket;
}
struct queue *state_bucket_queue(const struct state *state, const struct bucket *bucket) {
  return &object_at(state, bucket->queue)->as.queue;
}

void state_bucket_release(struct state *state, uint32_t number) {
  struct bucket_node *node = bucket_at(state, number);
  if (node->bucket.served != 0 || node->bucket.unfinished != 0) return;
  must(node->ready.count == 0);
  index_remove(&state->bucket_keys, node->hash, number);
  heap_clear(&node->ready);
  free((void *)(uintptr_t)node->bucket.handler.data);
  pool_remove(&state->buckets, number);
}

/* ---- concurrency keys ---- */

static uint32_t key_make(struct state *state, uint32_t queue, const struct id *id) {
  struct index_cursor cursor;
  for (uint64_t value = index_find(&state->key_ids, id_hash(id), &cursor); value != 0;
       value = index_next(&state->key_ids, &cursor))
    if (id_equal(&key_at(state, (uint32_t)value)->id, id)) return (uint32_t)value;
  uint32_t number = pool_add(&state->keys);
  struct key_slot *slot = key_at(state, number);
  slot->id = *id;
  slot->queue = queue;
  index_add(&state->key_ids, id_hash(id), number);
  return number;
}

struct id key_id_make(const struct id *queue_id, struct bytes key) {
  struct id id;
  uint64_t seed = XXH3_64bits(queue_id->bytes, id_bytes);
  XXH128_canonicalFromHash((XXH128_canonical_t *)id.bytes, XXH3_128bits_withSeed(key.data, key.size, seed));
  return id;
}

uint64_t key_room(const struct state *state, const struct key_slot *slot) {
  uint64_t limit = object_at(state, slot->queue)->as.queue.key_concurrency;
  return limit > slot->held ? limit - slot->held : 0;
}

uint32_t turn_find(const struct state *state, const struct key_slot *slot, uint32_t bucket) {
  uint32_t number = slot->turns;
  while (number != 0 && turn_at(state, number)->bucket != bucket) number = turn_at(state, number)->next;
  return number;
}

static struct turn *turn_make(struct state *state, struct key_slot *slot, uint32_t bucket) {
  uint32_t number = turn_find(state, slot, bucket);
  if (number != 0) return turn_at(state, number);
  number = pool_add(&state->turns);
  struct turn *turn = turn_at(state, number);
  turn->bucket = bucket;
  turn->next = slot->turns;
  slot->turns = number;
  return turn;
}

static void key_free(struct state *state, uint32_t number) {
  struct key_slot *slot = key_at(state, number);
  must(slot->held == 0);
  for (uint32_t turn = slot->turns, next; turn != 0; turn = next) {
    next = turn_at(state, turn)->next;
    must(turn_at(state, turn)->aside.count == 0);
    heap_clear(&turn_at(state, turn)->aside);
    pool_remove(&state->turns, turn);
  }
  index_remove(&state->key_ids, id_hash(&slot->id), number);
  pool_remove(&state->keys, number);
}

/* The bucket's heap changed. */
static void bucket_counted(struct state *state, struct bucket_node *node) {
  state->ready_count += node->ready.count;
  state->ready_count -= node->bucket.ready;
  node->bucket.ready = node->ready.count;
}

static void ready_enter(struct state *state, uint32_t number) {
  struct task_node *node = node_at(state, number);
  if (node->ready_position != 0) return;
  struct heap_owner owner = ready_owner(state);
  struct bucket_node *bucket = bucket_at(state, node->task.handler);
  node->aside = false;
  heap_put(&bucket->ready, &owner, number, ready_key(&node->task));
  bucket_counted(state, bucket);
}

static void ready_leave(struct state *state, uint32_t number) {
  struct task_node *node = node_at(state, number);
  struct heap_owner owner = ready_owner(state);
  if (node->aside) {
    heap_remove(&turn_at(state, turn_find(state, key_at(state, node->key), node->task.handler))->aside, &owner, number);
    node->aside = false;
    return;
  }
  struct bucket_node *bucket = bucket_at(state, node->task.handler);
  heap_remove(&bucket->ready, &owner, number);
  bucket_counted(state, bucket);
}

/* Of each bucket as many tasks that waited for the key come back as it has room for. More than the room may stand ready then:
 * whoever is too many is put aside again when it comes first. */
static void key_wake(struct state *state, struct key_slot *slot) {
  struct heap_owner owner = ready_owner(state);
  for (uint32_t number = slot->turns; number != 0; number = turn_at(state, number)->next) {
    struct heap *aside = &turn_at(state, number)->aside;
    for (uint64_t room = key_room(state, slot); room > 0 && aside->count != 0; room--) {
      uint32_t first = heap_first(aside).number;
      heap_remove(aside, &owner, first);
      ready_enter(state, first);
    }
  }
}

void ready_queue_changed(struct state *state, uint32_t queue) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->key_ids, &at, &key, &value)) {
    struct key_slot *slot = key_at(state, (uint32_t)value);
    if (slot->queue == queue) key_wake(state, slot);
  }
}

uint32_t state_bucket_first(struct state *state, uint32_t number, uint32_t *asides) {
  struct heap_owner owner = ready_owner(state);
  struct bucket_node *bucket = bucket_at(state, number);
  while (bucket->ready.count != 0) {
    uint32_t first = heap_first(&bucket->ready).number;
    struct task_node *node = node_at(state, first);
    if (node->key == 0 || key_room(state, key_at(state, node->key)) != 0) return first;
    if (*asides == 0) return 0;
    --*asides;
    heap_remove(&bucket->ready, &owner, first);
    bucket_counted(state, bucket);
    node->aside = true;
    heap_put(&turn_make(state, key_at(state, node->key), number)->aside, &owner, first, ready_key(&node->task));
  }
  return 0;
}

/* ---- following the tasks ---- */

void state_timer_settle(struct state *state, uint32_t number, int64_t now_us) {
  const struct task *task = &node_at(state, number)->task;
  if (task->state == TASK_WAITING && task->available_at <= now_us) ready_enter(state, number);
  timer_set(state, number, now_us);
}

void ready_attach(struct state *state, uint32_t number, const struct event_task_accepted *accepted) {
  struct task_node *node = node_at(state, number);
  node->task.handler = bucket_make(state, node->task.queue, accepted->handler, accepted->handler_version);
  bucket_at(state, node->task.handler)->bucket.unfinished++;
  if (accepted->concurrency_key.size == 0) return;
  struct id key_id = key_id_make(&accepted->queue_id, accepted->concurrency_key);
  node->key = key_make(state, node->task.queue, &key_id);
  key_at(state, node->key)->unfinished++;
}

void ready_restore(struct state *state, uint32_t number, uint32_t bucket, const struct id *key_id,
                   const struct attempt *attempt, int64_t now_us) {
  struct task_node *node = node_at(state, number);
  bool held = task_state_holds_lease((enum task_state)node->task.state);
  node->task.handler = bucket;
  bucket_at(state, bucket)->bucket.unfinished++;
  if (!id_is_zero(key_id)) {
    node->key = key_make(state, node->task.queue, key_id);
    struct key_slot *slot = key_at(state, node->key);
    slot->unfinished++;
    slot->held += held;
  }
  if (held) attempt_begin(state, number, attempt);
  if (node->task.state == TASK_WAITING) {
    struct heap_owner waiting = waiting_owner(state);
    heap_put(&object_at(state, node->task.queue)->waiting, &waiting, number, node->task.available_at);
    if (node->task.available_at <= now_us) ready_enter(state, number);
  }
  timer_set(state, number, now_us);
}

static void ready_detach(struct state *state, uint32_t number) {
  struct task_node *node = node_at(state, number);
  uint32_t bucket = node->task.handler, key = node->key;
  node->task.handler = node->key = 0;
  bucket_at(state, bucket)->bucket.unfinished--;
  state_bucket_release(state, bucket);
  if (key == 0) return;
  if (--key_at(state, key)->unfinished == 0) key_free(state, key);
}

/* The key is held by one task more or less, or a task that could have taken it went away without. */
static void key_follow(struct state *state, uint32_t number, enum task_state before, enum task_state after) {
  bool held_before = task_state_holds_lease(before), held_after = task_state_holds_lease(after);
  struct key_slot *slot = key_at(state, number);
  if (held_after && !held_before) slot->held++;
  if (held_before && !held_after) {
    must(slot->held > 0);
    slot->held--;
  }
  if (!held_after && before != TASK_NONE) key_wake(state, slot);
}

void ready_withdraw(struct state *state, uint32_t number) {
  struct heap_owner waiting = waiting_owner(state);
  ready_leave(state, number);
  heap_remove(&object_at(state, node_at(state, number)->task.queue)->waiting, &waiting, number);
}

void ready_follow(struct state *state, uint32_t number, enum task_state before, int64_t time_us) {
  struct task_node *node = node_at(state, number);
  enum task_state after = (enum task_state)node->task.state;
  if (before == TASK_WAITING && after != TASK_WAITING && !task_state_holds_lease(after)) ready_withdraw(state, number);
  if (node->key != 0) key_follow(state, node->key, before, after);
  struct heap_owner waiting = waiting_owner(state);
  if (after == TASK_WAITING) heap_put(&object_at(state, node->task.queue)->waiting, &waiting, number, node->task.available_at);
  if (after == TASK_WAITING && node->task.available_at <= time_us) ready_enter(state, number);
  timer_set(state, number, time_us);
  if (task_state_is_terminal(after) && !task_state_is_terminal(before)) ready_detach(state, number);
}

/* ---- judging ---- */

static const char *heap_misfit(const struct heap *heap, const struct heap_owner *owner) {
  return heap_is_sound(heap, owner) ? NULL : "a heap is out of order";
}

/* By turn: tasks of its key that stand in its bucket's heap. */
static uint32_t *standing_count(const struct state *state) {
  uint32_t *counts = guard_calloc(state->turns.used + 1U, sizeof *counts);
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->bucket_keys, &at, &key, &value)) {
    const struct heap *ready = &bucket_at(state, (uint32_t)value)->ready;
    for (uint32_t i = 0; i < ready->count; i++) {
      uint32_t number = node_at(state, ready->entries[i].number)->key;
      if (number != 0) counts[turn_find(state, key_at(state, number), (uint32_t)value)]++;
    }
  }
  return counts;
}

static const char *key_misfit(const struct state *state, uint32_t key, const uint32_t *standing) {
  const struct key_slot *slot = key_at(state, key);
  struct heap_owner owner = ready_owner(state);
  for (uint32_t number = slot->turns; number != 0; number = turn_at(state, number)->next) {
    const struct turn *turn = turn_at(state, number);
    if (heap_misfit(&turn->aside, &owner) != NULL) return "a turn is out of order";
    for (uint32_t i = 0; i < turn->aside.count; i++) {
      const struct task_node *node = node_at(state, turn->aside.entries[i].number);
      if (!node->aside || node->key != key || node->task.handler != turn->bucket) return "a task waits in the wrong turn";
    }
    if (turn->aside.count != 0 && standing[number] < key_room(state, slot)) return "a task waits for a key that has room";
  }
  return NULL;
}

static const char *keys_misfit(const struct state *state) {
  cleanup(guard_free) uint32_t *standing = standing_count(state);
  const char *misfit = NULL;
  size_t at = 0;
  uint64_t key, value;
  while (misfit == NULL && index_each(&state->key_ids, &at, &key, &value))
    misfit = key_misfit(state, (uint32_t)value, standing);
  return misfit;
}

static const char *bucket_misfit(const struct state *state, const struct bucket_node *bucket) {
  struct heap_owner owner = ready_owner(state);
  for (uint32_t i = 0; i < bucket->ready.count; i++) {
    const struct task_node *node = node_at(state, bucket->ready.entries[i].number);
    if (node->aside || node->task.handler != bucket->bucket.number) return "a task stands in the wrong bucket";
    if (bucket->ready.entries[i].key != ready_key(&node->task)) return "a task stands in the wrong place of its bucket";
  }
  return heap_misfit(&bucket->ready, &owner);
}

static const char *timers_misfit(const struct state *state) {
  struct heap_owner owner = timer_owner(state);
  for (uint32_t i = 0; i < state->timers.count; i++) {
    const struct heap_entry *entry = &state->timers.entries[i];
    const struct task_node *node = node_at(state, entry->number);
    bool lies_ahead = node->task.state == TASK_WAITING && node->ready_position == 0;
    if (entry->key != task_next_timer(&node->task, node_attempt(state, node), lies_ahead ? INT64_MIN : INT64_MAX))
      return "a timer is not the task's";
  }
  return heap_misfit(&state->timers, &owner);
}

const char *ready_misfit(const struct state *state) {
  size_t at = 0;
  uint64_t key, value, ready = 0;
  const char *misfit = timers_misfit(state);
  struct heap_owner waiting = waiting_owner(state);
  for (; misfit == NULL && index_each(&state->bucket_keys, &at, &key, &value);
       ready += bucket_at(state, (uint32_t)value)->ready.count)
    misfit = bucket_misfit(state, bucket_at(state, (uint32_t)value));
  if (misfit == NULL) misfit = keys_misfit(state);
  for (at = 0; misfit == NULL && index_each(&state->object_ids, &at, &key, &value);) {
    const struct object *object = object_at(state, (uint32_t)value);
    misfit = heap_misfit(&object->waiting, &waiting);
    if (object->kind == OBJECT_QUEUE && object->waiting.count != object->as.queue.counts[TASK_WAITING])
      misfit = "the waiting tasks of a queue are not those that wait";
  }
  return misfit != NULL || ready == state->ready_count ? misfit : "the count of ready tasks is not that of the buckets";
}
