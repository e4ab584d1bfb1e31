/* Owns the fold: each event goes to the object that it belongs to, and the projections follow. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "core/apply.h"
#include "core/decide.h"
#include "state/internal.h"

enum object_kind event_object_kind(enum event_type type) {
  switch (type) {
    case EVENT_node_started:
    case EVENT_node_stopped:
    case EVENT_retention_advanced:
      return OBJECT_NODE;
    case EVENT_namespace_created:
      return OBJECT_NAMESPACE;
    case EVENT_application_created:
    case EVENT_application_changed:
      return OBJECT_APPLICATION;
    case EVENT_credential_created:
    case EVENT_credential_rotated:
    case EVENT_credential_revoked:
      return OBJECT_CREDENTIAL;
    case EVENT_queue_created:
    case EVENT_queue_changed:
    case EVENT_queue_paused:
    case EVENT_queue_resumed:
      return OBJECT_QUEUE;
    case EVENT_subscription_created:
    case EVENT_subscription_acked:
    case EVENT_subscription_deleted:
      return OBJECT_SUBSCRIPTION;
    case EVENT_schedule_created:
    case EVENT_schedule_changed:
    case EVENT_schedule_paused:
    case EVENT_schedule_resumed:
    case EVENT_schedule_deleted:
    case EVENT_schedule_triggered:
    case EVENT_schedule_skipped:
      return OBJECT_SCHEDULE;
    case EVENT_audit_recorded:
      return (enum object_kind)0;
    default:
      return OBJECT_TASK;
  }
}

/* audit.recorded stands in its target's stream, whatever that is. */
struct footing footing_find(const struct state *state, const struct event *event) {
  struct footing footing = {.is_task = event_object_kind(event->type) == OBJECT_TASK};
  if (!footing.is_task) footing.number = object_find(state, &event->stream);
  if (event->type == EVENT_audit_recorded && footing.number == 0) footing.is_task = true;
  if (footing.is_task) footing.number = state_task_number(state, &event->stream);
  return footing;
}

/* ---- objects that are no tasks ---- */

static uint32_t object_add(struct state *state, const struct id *id, enum object_kind kind) {
  uint32_t number = pool_add(&state->objects);
  struct object *object = object_at(state, number);
  object->id = *id;
  object->kind = kind;
  index_add(&state->object_ids, id_hash(id), number);
  return number;
}

static void fold_credential(struct object *object, const struct event *event) {
  apply_credential(&object->as.credential, event);
  if (event->type != EVENT_credential_created || event->body.credential_created.queue_ids.size == 0) return;
  struct bytes ids = event->body.credential_created.queue_ids;
  struct credential *credential = &object->as.credential;
  credential->queue_ids = guard_malloc(ids.size);
  memcpy(credential->queue_ids, ids.data, ids.size);
  credential->queue_count = (uint32_t)(ids.size / id_bytes);
}

static void give_leases_back(struct state *state, const struct event *event) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->instance_ids, &at, &key, &value)) {
    uint32_t number = state_instance_at(state, (uint32_t)value)->first;
    for (; number != 0; number = state_held_next(state, number)) {
      struct task_node *node = node_at(state, number);
      apply_node_started(&node->task, &attempt_at(state, node->attempt)->attempt, event);
      timer_set(state, number, event->time_us);
    }
  }
}

static void fold_schedule(struct state *state, uint32_t number, const struct event *event) {
  apply_schedule(&object_at(state, number)->as.schedule, event);
  if (event->type == EVENT_schedule_triggered) {
    schedule_take_task(state, number, state_task_number(state, &event->body.schedule_triggered.task_id));
    state->trigger_pending = 0;
  }
  schedule_follow(state, number);
}

static void fold_object(struct state *state, const struct event *event, uint32_t number) {
  enum object_kind kind = event_object_kind(event->type);
  if (number == 0) number = object_add(state, &event->stream, kind);
  struct object *object = object_at(state, number);
  object->last_seq = event->seq;
  switch (kind) {
    case OBJECT_APPLICATION:
      apply_application(&object->as.application, event);
      break;
    case OBJECT_CREDENTIAL:
      fold_credential(object, event);
      break;
    case OBJECT_QUEUE:
      apply_queue(&object->as.queue, event);
      if (event->type != EVENT_queue_changed) break;
      object->as.queue.rate_at = rate_changed_us(&object->as.queue, event->time_us);
      ready_queue_changed(state, number);
      break;
    case OBJECT_SUBSCRIPTION:
      subscription_fold(state, number, event);
      break;
    case OBJECT_SCHEDULE:
      fold_schedule(state, number, event);
      break;
    case OBJECT_NODE:
      if (event->type == EVENT_node_started) give_leases_back(state, event);
      if (event->type == EVENT_retention_advanced) state->retained_seq = event->body.retention_advanced.through_seq;
      break;
    default:
      break;
  }
}

/* ---- tasks ---- */

static uint32_t task_add(struct state *state, const struct event *event) {
  const struct event_task_accepted *accepted = &event->body.task_accepted;
  uint32_t number = pool_add(&state->tasks);
  struct task *task = &node_at(state, number)->task;
  index_add(&state->task_ids, id_hash(&event->stream), number);
  task->queue = object_find(state, &accepted->queue_id);
  task->application = object_find(state, &accepted->application_id);
  must(task->queue != 0 && task->application != 0);
  state->trigger_pending = id_is_zero(&accepted->schedule_id) ? 0 : object_find(state, &accepted->schedule_id);
  ready_attach(state, number, accepted);
  listing_attach(state, number, accepted);
  return number;
}

static void count_task(struct state *state, const struct task *task, enum task_state before) {
  enum task_state after = (enum task_state)task->state;
  if (before == after) return;
  struct queue *queue = state_queue_of(state, task);
  struct application *application = state_application_of(state, task);
  if (before != TASK_NONE) {
    must(queue->counts[before] > 0);
    queue->counts[before]--;
  }
  queue->counts[after]++;
  if (before == TASK_NONE) application->unfinished++;
  if (task_state_is_terminal(after)) {
    must(application->unfinished > 0);
    application->unfinished--;
  }
}

/* The event changes the task and its attempt, if it has one; a claim makes it, and its end takes it away. */
static void apply_to(struct state *state, uint32_t number, const struct event *event) {
  struct task_node *node = node_at(state, number);
  struct attempt made = {.lease_ms = 0};
  bool held = node_claim(node) != 0;
  struct attempt *attempt = held ? &attempt_at(state, node->attempt)->attempt : &made;
  if (event->type == EVENT_task_leased) ready_withdraw(state, number);
  apply_task_judged(&node->task, attempt, event);
  bool holds = !id_is_zero(&attempt->id);
  if (held && !holds) attempt_end(state, number);
  if (!held && holds) attempt_begin(state, number, &made);
}

/* number: of the task; 0 for one that is accepted here. */
static void fold_task(struct state *state, const struct event *event, uint32_t number) {
  if (event->type == EVENT_task_accepted) number = task_add(state, event);
  struct task_node *node = node_at(state, number);
  enum task_state before = (enum task_state)node->task.state;
  apply_to(state, number, event);
  if (event->type == EVENT_attempt_result)
    receipt_add_of_task(state, number, &event->body.attempt_result.report_identity, event->seq);
  if (event->type == EVENT_task_leased) {
    struct queue *queue = state_queue_of(state, &node->task);
    if (queue->rate.tasks != 0) queue->rate_at = rate_after_us(queue, event->time_us);
  }
  bool ended = task_state_is_terminal((enum task_state)node->task.state);
  if ((enum task_state)node->task.state != before || event->type == EVENT_attempt_result ||
      event->type == EVENT_attempt_ended) {
    count_task(state, &node->task, before);
    if (node->task.scheduled && ended) schedule_let_task_go(state, number, event->time_us);
    ready_follow(state, number, before, event->time_us);
  }
  if (ended) ended_touch(state, number);
}

static void fold_audit(struct state *state, const struct event *event, uint32_t number) {
  object_at(state, number)->last_seq = event->seq;
  listing_audit(state, event->seq);
}

/* Of a task that was there: its history leads to it. */
static void fold_receipt(struct state *state, const struct event *event, uint32_t number) {
  const struct task_node *node = node_at(state, number);
  receipt_add_of_task(state, number, &event->common.identity, event->seq);
  if (event->type == EVENT_task_started && !id_is_zero(&event->common.identity)) {
    struct attempt_node *attempt = attempt_at(state, node->attempt);
    attempt->started_identity = identity_key(&event->common.identity);
    attempt->started_seq = event->seq;
  }
  if (task_state_is_terminal((enum task_state)node->task.state)) receipts_leave(state, number);
}

/* The event was judged. */
static void fold(struct state *state, const struct event *event, const struct footing *footing) {
  if (footing->is_task) fold_task(state, event, footing->number);
  else if (event->type == EVENT_audit_recorded) fold_audit(state, event, footing->number);
  else fold_object(state, event, footing->number);
  if (footing->is_task && event->type != EVENT_task_accepted) fold_receipt(state, event, footing->number);
  else receipt_add(state, &event->common.identity, event->seq);
  state->last_seq = event->seq;
  state->last_time_us = event->time_us;
}

void state_apply(struct state *state, const struct event *event) {
  static const struct task nothing;
  static const struct attempt no_attempt;
  struct footing footing = footing_find(state, event);
  const char *misfit = "";
  bool accepts = event->type == EVENT_task_accepted;
  if (footing.is_task) {
    must((footing.number == 0) == accepts);
    bool fits = can_apply_task(accepts ? &nothing : state_task_at(state, footing.number),
                               accepts ? &no_attempt : state_attempt_at(state, footing.number), event, &misfit);
    must(fits);
  }
  fold(state, event, &footing);
}

bool state_fold(struct state *state, const struct event *event, const char **ret_reason) {
  struct footing footing = footing_find(state, event);
  if (!footing_fits(state, event, &footing, ret_reason)) return false;
  fold(state, event, &footing);
  return true;
}
