/* Owns the containers and the lookups. */
#include "state/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "state/internal.h"

struct state *state_new(void) {
  struct state *state = guard_calloc(1, sizeof *state);
  pool_init(&state->objects, sizeof(struct object));
  pool_init(&state->tasks, sizeof(struct task_node));
  pool_init(&state->attempts, sizeof(struct attempt_node));
  pool_init(&state->buckets, sizeof(struct bucket_node));
  pool_init(&state->keys, sizeof(struct key_slot));
  pool_init(&state->turns, sizeof(struct turn));
  pool_init(&state->instances, sizeof(struct instance));
  return state;
}

static void free_owned(struct state *state) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->object_ids, &at, &key, &value)) {
    struct object *object = object_at(state, (uint32_t)value);
    if (object->kind == OBJECT_CREDENTIAL) free(object->as.credential.queue_ids);
    heap_clear(&object->waiting);
  }
  for (at = 0; index_each(&state->bucket_keys, &at, &key, &value);) {
    struct bucket_node *node = bucket_at(state, (uint32_t)value);
    heap_clear(&node->ready);
    free((void *)(uintptr_t)node->bucket.handler.data);
  }
  for (at = 0; index_each(&state->key_ids, &at, &key, &value);)
    for (uint32_t turn = key_at(state, (uint32_t)value)->turns; turn != 0; turn = turn_at(state, turn)->next)
      heap_clear(&turn_at(state, turn)->aside);
}

void state_free(struct state *state) {
  if (state == NULL) return;
  free_owned(state);
  pool_clear(&state->objects);
  pool_clear(&state->tasks);
  pool_clear(&state->attempts);
  pool_clear(&state->buckets);
  pool_clear(&state->keys);
  pool_clear(&state->turns);
  pool_clear(&state->instances);
  index_clear(&state->object_ids);
  index_clear(&state->task_ids);
  index_clear(&state->receipts);
  index_clear(&state->bucket_keys);
  index_clear(&state->key_ids);
  index_clear(&state->instance_ids);
  index_clear(&state->business_keys);
  index_clear(&state->subscription_names);
  free(state->audits);
  heap_clear(&state->timers);
  heap_clear(&state->schedule_timers);
  index_clear(&state->schedule_tasks);
  free(state);
}

uint32_t object_find(const struct state *state, const struct id *id) {
  struct index_cursor cursor;
  for (uint64_t value = index_find(&state->object_ids, id_hash(id), &cursor); value != 0;
       value = index_next(&state->object_ids, &cursor))
    if (id_equal(&object_at(state, (uint32_t)value)->id, id)) return (uint32_t)value;
  return 0;
}

struct object *object_of_kind(const struct state *state, const struct id *id, enum object_kind kind) {
  uint32_t number = object_find(state, id);
  if (number == 0 || object_at(state, number)->kind != kind) return NULL;
  return object_at(state, number);
}

bool state_has_namespace(const struct state *state, const struct id *id) {
  return object_of_kind(state, id, OBJECT_NAMESPACE) != NULL;
}

struct application *state_application(const struct state *state, const struct id *id) {
  struct object *object = object_of_kind(state, id, OBJECT_APPLICATION);
  return object != NULL ? &object->as.application : NULL;
}

struct credential *state_credential(const struct state *state, const struct id *id) {
  struct object *object = object_of_kind(state, id, OBJECT_CREDENTIAL);
  return object != NULL ? &object->as.credential : NULL;
}

struct queue *state_queue(const struct state *state, const struct id *id) {
  struct object *object = object_of_kind(state, id, OBJECT_QUEUE);
  return object != NULL ? &object->as.queue : NULL;
}

uint32_t state_task_number(const struct state *state, const struct id *id) {
  struct index_cursor cursor;
  for (uint64_t value = index_find(&state->task_ids, id_hash(id), &cursor); value != 0;
       value = index_next(&state->task_ids, &cursor))
    if (id_equal(&node_at(state, (uint32_t)value)->task.id, id)) return (uint32_t)value;
  return 0;
}

struct task *state_task(const struct state *state, const struct id *id) {
  uint32_t number = state_task_number(state, id);
  return number != 0 ? &node_at(state, number)->task : NULL;
}

struct task *state_task_at(const struct state *state, uint32_t number) {
  return &node_at(state, number)->task;
}
struct queue *state_queue_of(const struct state *state, const struct task *task) {
  return &object_at(state, task->queue)->as.queue;
}
struct application *state_application_of(const struct state *state, const struct task *task) {
  return &object_at(state, task->application)->as.application;
}
uint64_t state_task_count(const struct state *state) { return state->tasks.live + state->tasks_away; }
uint64_t state_last_seq(const struct state *state) { return state->last_seq; }

bool credential_reaches(const struct credential *credential, const struct id *queue_id) {
  if (credential->queue_ids == NULL) return true;
  for (uint32_t i = 0; i < credential->queue_count; i++)
    if (id_equal(&credential->queue_ids[i], queue_id)) return true;
  return false;
}

bool credential_reaches_subscription(const struct credential *credential, const struct subscription *subscription) {
  if (credential->queue_ids == NULL) return true;
  return !id_is_zero(&subscription->queue_id) && credential_reaches(credential, &subscription->queue_id);
}

void state_each_credential(const struct state *state, void (*visit)(void *context, const struct credential *credential),
                           void *context) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->object_ids, &at, &key, &value)) {
    const struct object *object = object_at(state, (uint32_t)value);
    if (object->kind == OBJECT_CREDENTIAL) visit(context, &object->as.credential);
  }
}

void state_each_queue(const struct state *state, void (*visit)(void *context, const struct queue *queue), void *context) {
  for (uint32_t number = 1; number <= state->objects.used; number++) {
    const struct object *object = object_at(state, number);
    if (object->kind == OBJECT_QUEUE) visit(context, &object->as.queue);
  }
}

uint32_t state_queue_count(const struct state *state) {
  uint32_t count = 0;
  for (uint32_t number = 1; number <= state->objects.used; number++) count += object_at(state, number)->kind == OBJECT_QUEUE;
  return count;
}
