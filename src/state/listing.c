/* Owns the lists that people page through. Tasks are numbered in the order of their ids, so a page goes on from the number of
 * the last task of the page before, whatever has changed state in between. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "state/internal.h"

/* Tasks looked at in one call: a rare filter over a long history takes several pages instead of stalling a tick. */
enum { list_looks_max = 10000 };

uint64_t business_key_hash(const struct id *namespace_id, struct bytes key) {
  uint64_t hash = XXH3_64bits_withSeed(key.data, key.size, id_hash(namespace_id));
  return hash != 0 ? hash : 1;
}

uint32_t handler_name_hash(struct bytes handler) { return (uint32_t)XXH3_64bits(handler.data, handler.size); }

static uint32_t newest_of_key(const struct state *state, uint64_t hash) {
  struct index_cursor cursor;
  return (uint32_t)index_find(&state->business_keys, hash, &cursor);
}

void listing_attach(struct state *state, uint32_t number, const struct event_task_accepted *accepted) {
  bool named = accepted->business_key.size != 0;
  node_at(state, number)->handler_hash = handler_name_hash(accepted->handler);
  listing_place(state, number, named ? business_key_hash(&accepted->namespace_id, accepted->business_key) : 0);
}

void listing_place(struct state *state, uint32_t number, uint64_t business_hash) {
  struct task_node *node = node_at(state, number);
  struct object *queue = object_at(state, node->task.queue);
  node->queue_older = queue->newest;
  queue->newest = number;
  if (business_hash == 0) return;
  node->business_older = newest_of_key(state, business_hash);
  if (node->business_older != 0) index_remove(&state->business_keys, business_hash, node->business_older);
  index_add(&state->business_keys, business_hash, number);
}

void listing_audit(struct state *state, uint64_t seq) {
  if (state->audit_count == state->audit_capacity) {
    state->audit_capacity = state->audit_capacity != 0 ? state->audit_capacity * 2 : 64;
    state->audits = guard_realloc(state->audits, sizeof *state->audits * state->audit_capacity);
  }
  state->audits[state->audit_count++] = seq;
}

/* ---- tasks ---- */

struct task_walk {
  const struct state *state;
  const struct list_tasks_command *filters;
  const struct credential *credential;
  struct id namespace_id;
  uint32_t queue; /* 0: any */
  uint32_t handler_hash;
  struct history *history;
  struct record_source source;
};

/* The next older task along the narrowest chain that the filters name. */
static uint32_t older(const struct task_walk *walk, uint32_t number) {
  const struct task_node *node = node_at(walk->state, number);
  if (walk->filters->business_key.data != NULL) return node->business_older;
  if (walk->queue != 0) return node->queue_older;
  return number - 1;
}

static uint32_t newest(const struct task_walk *walk) {
  const struct list_tasks_command *filters = walk->filters;
  if (filters->business_key.data != NULL)
    return newest_of_key(walk->state, business_key_hash(&walk->namespace_id, filters->business_key));
  return walk->queue != 0 ? object_at(walk->state, walk->queue)->newest : walk->state->tasks.used;
}

/* What memory can judge. */
static bool may_match(const struct task_walk *walk, const struct task_node *node) {
  const struct list_tasks_command *filters = walk->filters;
  const struct queue *queue = state_queue_of(walk->state, &node->task);
  return id_equal(&queue->namespace_id, &walk->namespace_id) && (walk->queue == 0 || node->task.queue == walk->queue) &&
         credential_reaches(walk->credential, &queue->id) &&
         (filters->state == TASK_NONE || node->task.state == (uint8_t)filters->state) &&
         (filters->handler.data == NULL || node->handler_hash == walk->handler_hash) &&
         (filters->created_after == 0 || node->task.created_at > filters->created_after) &&
         (filters->created_before == 0 || node->task.created_at < filters->created_before);
}

/* Texts are read from the log, for those that memory could not rule out. */
static enum status matches(const struct task_walk *walk, const struct task_node *node, bool *ret_matches) {
  const struct list_tasks_command *filters = walk->filters;
  struct event event;
  *ret_matches = may_match(walk, node);
  if (!*ret_matches || (filters->handler.data == NULL && filters->business_key.data == NULL)) return STATUS_OK;
  enum status status = history_event(walk->history, walk->source, node->task.accepted_seq, &event);
  if (status != STATUS_OK) return status;
  const struct event_task_accepted *accepted = &event.body.task_accepted;
  *ret_matches = (filters->handler.data == NULL || bytes_equal(filters->handler, accepted->handler)) &&
                 (filters->business_key.data == NULL || bytes_equal(filters->business_key, accepted->business_key));
  return STATUS_OK;
}

static enum status walk_tasks(const struct task_walk *walk, uint32_t number, struct answer_list *list) {
  for (uint32_t looks = 0; number != 0; looks++, number = older(walk, number)) {
    const struct task_node *node = node_at(walk->state, number);
    bool match;
    if (looks == list_looks_max || list->count == walk->filters->limit) {
      list->more = true;
      return STATUS_OK;
    }
    if (walk->filters->created_after != 0 && node->task.created_at <= walk->filters->created_after) return STATUS_OK;
    enum status status = matches(walk, node, &match);
    if (status != STATUS_OK) return status;
    if (match) list->of.tasks[list->count++] = node->task;
    list->next = node->task.id;
  }
  return STATUS_OK;
}

enum status state_list_tasks(const struct state *state, const struct id *namespace_id, const struct credential *credential,
                             const struct list_tasks_command *filters, struct history *history, struct record_source source,
                             struct answer_list *ret_list, struct fault *fault) {
  struct task_walk walk = {.state = state,
                           .filters = filters,
                           .credential = credential,
                           .namespace_id = *namespace_id,
                           .history = history,
                           .source = source};
  uint32_t number;
  if (!id_is_zero(&filters->queue_id)) {
    walk.queue = object_find(state, &filters->queue_id);
    const struct queue *queue = state_queue(state, &filters->queue_id);
    if (queue == NULL || !id_equal(&queue->namespace_id, namespace_id) || !credential_reaches(credential, &filters->queue_id))
      return fault_set(fault, STATUS_NOT_FOUND, "queue_id", "there is no queue %s within reach of this credential",
                       id_text(&filters->queue_id).text);
  }
  if (filters->handler.data != NULL) walk.handler_hash = handler_name_hash(filters->handler);
  if (id_is_zero(&filters->after)) {
    number = newest(&walk);
  } else {
    number = state_task_number(state, &filters->after);
    if (number == 0)
      return fault_set(fault, STATUS_INVALID_ARGUMENT, "cursor", "the page before is gone; start from the first page");
    number = older(&walk, number);
  }
  struct answer_list list = {.of.tasks = guard_malloc(sizeof(struct task) * filters->limit)};
  enum status status = walk_tasks(&walk, number, &list);
  if (status != STATUS_OK) {
    free(list.of.tasks);
    return fault_set(fault, STATUS_INTERNAL, NULL, "a task could not be read from the log");
  }
  *ret_list = list;
  return STATUS_OK;
}

int64_t state_oldest_waiting(const struct state *state, const struct id *queue_id) {
  const struct object *object = object_of_kind(state, queue_id, OBJECT_QUEUE);
  return object != NULL && object->waiting.count != 0 ? heap_first(&object->waiting).key : 0;
}

/* ---- administrative objects ---- */

static const enum object_kind list_kinds[] = {
    [LIST_QUEUES] = OBJECT_QUEUE,         [LIST_APPLICATIONS] = OBJECT_APPLICATION,   [LIST_CREDENTIALS] = OBJECT_CREDENTIAL,
    [LIST_NAMESPACES] = OBJECT_NAMESPACE, [LIST_SUBSCRIPTIONS] = OBJECT_SUBSCRIPTION, [LIST_SCHEDULES] = OBJECT_SCHEDULE};

static bool object_in_list(const struct object *object, enum object_kind kind, const struct id *namespace_id,
                           const struct credential *credential) {
  if (object->kind != kind) return false;
  switch (kind) {
    case OBJECT_QUEUE:
      return id_equal(&object->as.queue.namespace_id, namespace_id) && credential_reaches(credential, &object->id);
    case OBJECT_APPLICATION:
      return id_equal(&object->as.application.namespace_id, namespace_id);
    case OBJECT_CREDENTIAL:
      return id_equal(&object->as.credential.namespace_id, namespace_id);
    case OBJECT_SUBSCRIPTION:
      return id_equal(&object->as.subscription.namespace_id, namespace_id) && !object->as.subscription.deleted &&
             credential_reaches_subscription(credential, &object->as.subscription);
    case OBJECT_SCHEDULE:
      return !object->as.schedule.deleted && id_equal(&object->as.schedule.namespace_id, namespace_id) &&
             credential_reaches(credential, &object->as.schedule.queue_id);
    default:
      return true;
  }
}

static void list_add(struct answer_list *list, const struct object *object) {
  switch (object->kind) {
    case OBJECT_QUEUE:
      list->of.queues[list->count] = object->as.queue;
      break;
    case OBJECT_APPLICATION:
      list->of.applications[list->count] = object->as.application;
      break;
    case OBJECT_CREDENTIAL:
      list->of.credentials[list->count] = object->as.credential;
      list->of.credentials[list->count].queue_ids = NULL;
      break;
    case OBJECT_SUBSCRIPTION:
      list->of.subscriptions[list->count] = object->as.subscription;
      break;
    case OBJECT_SCHEDULE:
      list->of.schedules[list->count] = object->as.schedule;
      break;
    default:
      list->of.namespaces[list->count] = object->id;
      break;
  }
  list->count++;
  list->next = object->id;
}

enum status state_list_objects(const struct state *state, const struct id *namespace_id, const struct credential *credential,
                               const struct list_objects_command *command, struct answer_list *ret_list, struct fault *fault) {
  enum object_kind kind = list_kinds[command->list];
  uint32_t number = 1;
  if (!id_is_zero(&command->after)) {
    number = object_find(state, &command->after) + 1;
    if (number == 1)
      return fault_set(fault, STATUS_INVALID_ARGUMENT, "cursor", "the page before is gone; start from the first page");
  }
  static_assert(sizeof(struct schedule) <= sizeof(struct queue) + sizeof(struct credential), "any row fits");
  struct answer_list list = {
      .of.rows = guard_malloc(sizeof(struct queue) * command->limit + sizeof(struct credential) * command->limit)};
  for (; number <= state->objects.used; number++) {
    const struct object *object = object_at(state, number);
    if (!object_in_list(object, kind, namespace_id, credential)) continue;
    if (list.count == command->limit) {
      list.more = true;
      break;
    }
    list_add(&list, object);
  }
  list.log_end = state->last_seq;
  *ret_list = list;
  return STATUS_OK;
}

enum status state_list_audit(const struct state *state, const struct id *namespace_id, const struct list_audit_command *command,
                             struct history *history, struct record_source source, struct answer_list *ret_list) {
  struct answer_list list = {.of.seqs = guard_malloc(sizeof(uint64_t) * command->limit)};
  uint32_t looks = 0;
  for (uint64_t i = state->audit_count; i-- > 0 && !list.more;) {
    uint64_t seq = state->audits[i];
    struct event event;
    if (command->before_seq != 0 && seq >= command->before_seq) continue;
    if (list.count == command->limit || looks++ == list_looks_max) {
      list.more = true;
      break;
    }
    enum status status = history_event(history, source, seq, &event);
    if (status != STATUS_OK) {
      free(list.of.seqs);
      return status;
    }
    const struct event_audit_recorded *record = &event.body.audit_recorded;
    list.next_seq = seq;
    if (!id_equal(&record->namespace_id, namespace_id)) continue;
    if (id_is_zero(&command->target_id) || id_equal(&record->target_id, &command->target_id)) list.of.seqs[list.count++] = seq;
  }
  *ret_list = list;
  return STATUS_OK;
}
