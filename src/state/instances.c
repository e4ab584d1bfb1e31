/* Owns which worker instance holds which attempts. */
#include <string.h>

#include "base/guard.h"
#include "state/internal.h"

static uint64_t instance_hash(const struct id *application_id, const struct id *instance_id) {
  return id_hash(instance_id) ^ (id_hash(application_id) * 3);
}

uint32_t state_instance(struct state *state, const struct id *application_id, const struct id *instance_id) {
  uint64_t hash = instance_hash(application_id, instance_id);
  struct index_cursor cursor;
  for (uint64_t value = index_find(&state->instance_ids, hash, &cursor); value != 0;
       value = index_next(&state->instance_ids, &cursor)) {
    const struct instance *instance = state_instance_at(state, (uint32_t)value);
    if (id_equal(&instance->id, instance_id) && id_equal(&instance->application_id, application_id)) return (uint32_t)value;
  }
  uint32_t number = pool_add(&state->instances);
  struct instance *instance = state_instance_at(state, number);
  instance->id = *instance_id;
  instance->application_id = *application_id;
  index_add(&state->instance_ids, hash, number);
  return number;
}

struct instance *state_instance_at(const struct state *state, uint32_t number) {
  return pool_at(&state->instances, number);
}
uint32_t state_instance_of(const struct state *state, uint32_t task_number) { return node_at(state, task_number)->instance; }
uint32_t state_held_next(const struct state *state, uint32_t task_number) { return node_at(state, task_number)->held_next; }

void state_instance_release(struct state *state, uint32_t number) {
  struct instance *instance = state_instance_at(state, number);
  if (instance->held != 0 || instance->worker != NULL) return;
  index_remove(&state->instance_ids, instance_hash(&instance->application_id, &instance->id), number);
  pool_remove(&state->instances, number);
}

void instance_hold(struct state *state, uint32_t number) {
  struct task_node *node = node_at(state, number);
  uint32_t holder = state_instance(state, &node->task.attempt.application_id, &node->task.attempt.instance_id);
  struct instance *instance = state_instance_at(state, holder);
  must(node->instance == 0);
  node->instance = holder;
  node->held_prev = 0;
  node->held_next = instance->first;
  if (instance->first != 0) node_at(state, instance->first)->held_prev = number;
  instance->first = number;
  instance->held++;
}

void instance_let_go(struct state *state, uint32_t number) {
  struct task_node *node = node_at(state, number);
  uint32_t holder = node->instance;
  if (holder == 0) return;
  struct instance *instance = state_instance_at(state, holder);
  if (node->held_prev != 0) node_at(state, node->held_prev)->held_next = node->held_next;
  else instance->first = node->held_next;
  if (node->held_next != 0) node_at(state, node->held_next)->held_prev = node->held_prev;
  node->instance = node->held_next = node->held_prev = 0;
  instance->held--;
  state_instance_release(state, holder);
}
