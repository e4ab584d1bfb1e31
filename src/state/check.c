/* Owns the invariants (schema/semantics.md "Invariants"): everything that is counted or ordered is counted again from the
 * tasks. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "state/internal.h"

/* Counts made again, by number of the object. */
struct tally {
  uint64_t (*states)[TASK_ENUM_END]; /* by queue object */
  uint64_t *unfinished;              /* by application object */
  uint32_t *bucket_unfinished;
  uint32_t *key_held, *key_unfinished;
  uint32_t *held; /* by instance */
};

static void tally_free(struct tally *tally) {
  free(tally->states);
  free(tally->unfinished);
  free(tally->bucket_unfinished);
  free(tally->key_held);
  free(tally->key_unfinished);
  free(tally->held);
}

static struct tally tally_new(const struct state *state) {
  size_t objects = state->objects.used + 1U, keys = state->keys.used + 1U;
  return (struct tally){
      .states = guard_calloc(objects, sizeof(uint64_t[TASK_ENUM_END])),
      .unfinished = guard_calloc(objects, sizeof(uint64_t)),
      .bucket_unfinished = guard_calloc(state->buckets.used + 1U, sizeof(uint32_t)),
      .key_held = guard_calloc(keys, sizeof(uint32_t)),
      .key_unfinished = guard_calloc(keys, sizeof(uint32_t)),
      .held = guard_calloc(state->instances.used + 1U, sizeof(uint32_t)),
  };
}

static enum status broken(struct fault *fault, const struct id *id, const char *what) {
  return fault_set(fault, STATUS_CORRUPT, NULL, "invariant broken for %s: %s", id_text(id).text, what);
}

static enum status check_task(const struct state *whole, const struct task_node *node, struct fault *fault) {
  const struct task *task = &node->task;
  const struct attempt *attempt = node_attempt(whole, node);
  enum task_state state = (enum task_state)task->state;
  bool terminal = task_state_is_terminal(state);
  const struct {
    bool holds;
    const char *what;
  } rows[] = {
      {state > TASK_NONE && state < TASK_ENUM_END, "the state is none of the known ones"},
      {task->revision >= 1, "the revision is below 1"},
      {task->attempt_count <= task->max_attempts, "more attempts than the budget allows"},
      {task->epoch == task->attempt_count, "the epoch is not the number of claims"},
      {!id_is_zero(&attempt->id) == task_state_holds_lease(state), "authority and state do not agree"},
      {!task_state_holds_lease(state) || node->attempt != 0, "holder and state do not agree"},
      {(attempt->started_at != 0) == (state == TASK_RUNNING), "start grant and state do not agree"},
      {task->outcome_seq == 0 || terminal, "a result or an error before the end"},
      {!task->is_error || (state == TASK_FAILED && task->outcome_seq != 0), "an error without a failure"},
      {!terminal || !task->effect_uncertain, "an end with an effect in doubt"},
      {!task->retried || state == TASK_FAILED || state == TASK_CANCELLED, "a successor of a task that did not fail"},
      {(node->timer_position != 0) == (state == TASK_WAITING || task_state_holds_lease(state)), "timer and state do not agree"},
      {state == TASK_WAITING || !node->aside, "put aside but does not wait"},
      {state != TASK_WAITING || node->ready_position != 0 || !node->aside, "put aside but nowhere"},
      {state != TASK_NEEDS_REVIEW || (node->ready_position == 0 && node->waiting_position == 0),
       "waits for people, and stands elsewhere"},
      {(task->handler != 0) == !terminal, "bucket and state do not agree"},
      {task->available_at < task->deadline_at || terminal, "available at or after the deadline"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (!rows[i].holds) return broken(fault, &task->id, rows[i].what);
  return STATUS_OK;
}

static void count_node(const struct state *whole, const struct task_node *node, struct tally *tally) {
  enum task_state state = (enum task_state)node->task.state;
  tally->states[node->task.queue][state]++;
  if (task_state_is_terminal(state)) return;
  tally->unfinished[node->task.application]++;
  tally->bucket_unfinished[node->task.handler]++;
  if (task_state_holds_lease(state)) tally->held[attempt_at(whole, node->attempt)->instance]++;
  if (node->key == 0) return;
  tally->key_unfinished[node->key]++;
  if (task_state_holds_lease(state)) tally->key_held[node->key]++;
}

/* Ended tasks that left memory are counted on; unfinished ones never leave. */
static bool counts_are(const struct object *object, const uint64_t tally[TASK_ENUM_END]) {
  uint64_t away = 0;
  for (unsigned state = 0; state < TASK_ENUM_END; state++) {
    uint64_t count = object->as.queue.counts[state];
    if (count < tally[state] || (count != tally[state] && !task_state_is_terminal((enum task_state)state))) return false;
    away += count - tally[state];
  }
  return away == object->away;
}

static enum status compare_objects(const struct state *state, const struct tally *tally, struct fault *fault) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->object_ids, &at, &key, &value)) {
    const struct object *object = object_at(state, (uint32_t)value);
    if (object->kind == OBJECT_QUEUE && !counts_are(object, tally->states[value]))
      return broken(fault, &object->id, "the queue's counts are not the counts of its tasks");
    if (object->kind == OBJECT_APPLICATION && object->as.application.unfinished != tally->unfinished[value])
      return broken(fault, &object->id, "the application's count is not the count of its unfinished tasks");
  }
  return STATUS_OK;
}

static enum status compare_orders(const struct state *state, const struct tally *tally, struct fault *fault) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->bucket_keys, &at, &key, &value)) {
    const struct bucket_node *node = bucket_at(state, (uint32_t)value);
    if (node->bucket.unfinished != tally->bucket_unfinished[value] || node->bucket.ready != node->ready.count)
      return broken(fault, &object_at(state, node->bucket.queue)->id, "a bucket's counts are not those of its tasks");
  }
  for (at = 0; index_each(&state->key_ids, &at, &key, &value);) {
    const struct key_slot *slot = key_at(state, (uint32_t)value);
    if (slot->held != tally->key_held[value] || slot->unfinished != tally->key_unfinished[value])
      return broken(fault, &object_at(state, slot->queue)->id, "a concurrency key's counts are not those of its tasks");
  }
  for (at = 0; index_each(&state->instance_ids, &at, &key, &value);) {
    const struct instance *instance = state_instance_at(state, (uint32_t)value);
    if (instance->held != tally->held[value])
      return broken(fault, &instance->id, "an instance's count is not that of its attempts");
  }
  return STATUS_OK;
}

/* Everything stands in its lists, in the order of acceptance; ended tasks in that of their newest events. */
static const char *lists_misfit(const struct state *state) {
  uint32_t count = 0, visiting = 0, ended = 0, finished = 0;
  for (uint32_t number = 1; number <= state->tasks.used; number++) {
    const struct task_node *node = node_at(state, number);
    if (!node_is_there(node)) continue;
    visiting += node->visits;
    finished += task_state_is_terminal((enum task_state)node->task.state);
    const struct {
      uint32_t older, newer_of_older;
    } links[] = {
        {node->older, node->older != 0 ? node_at(state, node->older)->newer : number},
        {node->queue_older, node->queue_older != 0 ? node_at(state, node->queue_older)->queue_newer : number},
        {node->business_older, node->business_older != 0 ? node_at(state, node->business_older)->business_newer : number}};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
      if (links[i].newer_of_older != number ||
          (links[i].older != 0 && node_at(state, links[i].older)->task.accepted_seq >= node->task.accepted_seq))
        return "a list of tasks is out of order";
  }
  for (uint32_t number = state->order.newest; number != 0; number = node_at(state, number)->older) count++;
  if (visiting != state->visiting || count + visiting != state->tasks.live) return "a task stands in no list";
  uint64_t last_seq = 0;
  for (uint32_t number = state->ended.oldest; number != 0; number = node_at(state, number)->ended_next, ended++) {
    const struct task_node *node = node_at(state, number);
    if (!node->visits && node->task.last_seq < last_seq) return "ended tasks are out of order";
    if (!node->visits) last_seq = node->task.last_seq;
  }
  return ended == finished ? NULL : "an ended task is not among the ended ones";
}

enum status state_check(const struct state *state, struct fault *fault) {
  cleanup(tally_free) struct tally tally = tally_new(state);
  /* In the order of memory: three times as fast as in that of the index. */
  for (uint32_t number = 1; number <= state->tasks.used; number++) {
    const struct task_node *node = node_at(state, number);
    if (!node_is_there(node)) continue;
    enum status status = check_task(state, node, fault);
    if (status != STATUS_OK) return status;
    count_node(state, node, &tally);
  }
  enum status status = compare_objects(state, &tally, fault);
  if (status == STATUS_OK) status = compare_orders(state, &tally, fault);
  if (status != STATUS_OK) return status;
  const char *misfit = ready_misfit(state);
  if (misfit == NULL) misfit = subscription_disorder(state);
  if (misfit == NULL) misfit = schedules_misfit(state);
  if (misfit == NULL) misfit = lists_misfit(state);
  return misfit == NULL ? STATUS_OK : fault_set(fault, STATUS_CORRUPT, NULL, "invariant broken: %s", misfit);
}

enum status state_check_task(const struct state *state, const struct id *task_id, struct fault *fault) {
  uint32_t number = state_task_number(state, task_id);
  return number != 0 ? check_task(state, node_at(state, number), fault) : STATUS_OK;
}
