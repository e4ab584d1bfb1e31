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
uint32_t state_instance_of(const struct state *state, uint32_t task_number) {
  uint32_t claim = node_claim(node_at(state, task_number));
  return claim != 0 ? attempt_at(state, claim)->instance : 0;
}
uint32_t state_held_next(const struct state *state, uint32_t task_number) {
  return attempt_at(state, node_at(state, task_number)->attempt)->next;
}

void state_instance_release(struct state *state, uint32_t number) {
  struct instance *instance = state_instance_at(state, number);
  if (instance->held != 0 || instance->worker != NULL) return;
  index_remove(&state->instance_ids, instance_hash(&instance->application_id, &instance->id), number);
  pool_remove(&state->instances, number);
}

const struct attempt *node_attempt(const struct state *state, const struct task_node *node) {
  static const struct attempt none;
  uint32_t claim = node_claim(node);
  return claim != 0 ? &attempt_at(state, claim)->attempt : &none;
}

const struct attempt *state_attempt_at(const struct state *state, uint32_t number) {
  return node_attempt(state, node_at(state, number));
}

static struct attempt_node *attempt_of(const struct state *state, uint32_t task_number) {
  return attempt_at(state, node_at(state, task_number)->attempt);
}

void attempt_begin(struct state *state, uint32_t number, const struct attempt *attempt) {
  struct task_node *task = node_at(state, number);
  uint32_t holder = state_instance(state, &attempt->application_id, &attempt->instance_id);
  struct instance *instance = state_instance_at(state, holder);
  must(task->attempt == 0);
  task->attempt = pool_add(&state->attempts);
  *attempt_at(state, task->attempt) = (struct attempt_node){.attempt = *attempt, .instance = holder, .next = instance->first};
  if (instance->first != 0) attempt_of(state, instance->first)->prev = number;
  instance->first = number;
  instance->held++;
}

void attempt_end(struct state *state, uint32_t number) {
  struct task_node *task = node_at(state, number);
  const struct attempt_node *node = attempt_at(state, task->attempt);
  struct instance *instance = state_instance_at(state, node->instance);
  if (node->prev != 0) attempt_of(state, node->prev)->next = node->next;
  else instance->first = node->next;
  if (node->next != 0) attempt_of(state, node->next)->prev = node->prev;
  instance->held--;
  receipt_recall_start(state, number, node);
  state_instance_release(state, node->instance);
  pool_remove(&state->attempts, task->attempt);
  task->attempt = 0;
}
