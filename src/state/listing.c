/* Owns the lists that people page through. Tasks stand in the order of their acceptance, whatever has changed state in between;
 * those that left memory are read from the store and merged in. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "base/limits.h"
#include "state/cold.h"
#include "state/rows.h"

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

/* ---- places ---- */

/* The two links of a task in one of its lists. */
enum list_kind { LIST_ALL, LIST_QUEUE, LIST_NAME };

static uint32_t *older_link(struct task_node *node, enum list_kind kind) {
  return kind == LIST_ALL ? &node->older : kind == LIST_QUEUE ? &node->queue_older : &node->business_older;
}
static uint32_t *newer_link(struct task_node *node, enum list_kind kind) {
  return kind == LIST_ALL ? &node->newer : kind == LIST_QUEUE ? &node->queue_newer : &node->business_newer;
}

static void enter(struct state *state, struct task_list *list, uint32_t number, enum list_kind kind) {
  *older_link(node_at(state, number), kind) = list->newest;
  *(list->newest != 0 ? newer_link(node_at(state, list->newest), kind) : &list->oldest) = number;
  list->newest = number;
}

static void take_out(struct state *state, struct task_list *list, uint32_t number, enum list_kind kind) {
  uint32_t *older = older_link(node_at(state, number), kind), *newer = newer_link(node_at(state, number), kind);
  *(*older != 0 ? newer_link(node_at(state, *older), kind) : &list->oldest) = *newer;
  *(*newer != 0 ? older_link(node_at(state, *newer), kind) : &list->newest) = *older;
  *older = *newer = 0;
}

void listing_place(struct state *state, uint32_t number, uint64_t business_hash) {
  struct task_node *node = node_at(state, number);
  enter(state, &state->order, number, LIST_ALL);
  enter(state, &object_at(state, node->task.queue)->tasks, number, LIST_QUEUE);
  node->named = business_hash != 0;
  if (!node->named) return;
  struct task_list names = {.newest = newest_of_key(state, business_hash)};
  if (names.newest != 0) index_remove(&state->business_keys, business_hash, names.newest);
  enter(state, &names, number, LIST_NAME);
  index_add(&state->business_keys, business_hash, number);
}

void listing_leave(struct state *state, uint32_t number, uint64_t business_hash) {
  struct task_node *node = node_at(state, number);
  take_out(state, &state->order, number, LIST_ALL);
  take_out(state, &object_at(state, node->task.queue)->tasks, number, LIST_QUEUE);
  must(node->named == (business_hash != 0));
  if (!node->named) return;
  struct task_list names = {.newest = newest_of_key(state, business_hash)};
  bool was_newest = names.newest == number;
  take_out(state, &names, number, LIST_NAME);
  if (!was_newest) return;
  index_remove(&state->business_keys, business_hash, number);
  if (names.newest != 0) index_add(&state->business_keys, business_hash, names.newest);
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
  enum list_kind kind; /* the narrowest that the filters name */
  struct cold_chain chain;
  uint32_t handler_hash;
  struct history *history;
  struct record_source source;
  uint32_t hot;         /* the next one in memory; 0: no further one */
  bool stored;          /* the store has further ones */
  struct task_row cold; /* the next one of it */
};

/* A task under the eye of the walk, wherever it is kept. */
struct listed {
  const struct task *task;
  uint32_t handler_hash;
};

/* The next one of the store that is none of those in memory: what stands there twice is listed as it is in memory. Those that
 * only visit stand in no list of memory. */
static enum status cold_next(struct task_walk *walk, uint64_t before_seq) {
  for (walk->stored = true; walk->stored; before_seq = walk->cold.task.accepted_seq) {
    enum status status = cold_older(walk->state->cold, &walk->chain, before_seq, &walk->cold);
    walk->stored = status == STATUS_OK;
    if (status != STATUS_OK) return status == STATUS_END ? STATUS_OK : status;
    uint32_t number = state_task_number(walk->state, &walk->cold.task.id);
    if (number != 0 && node_at(walk->state, number)->visits) walk->cold.task = node_at(walk->state, number)->task;
    else if (number != 0) continue;
    if (!task_is_gone(walk->state, &walk->cold.task)) return STATUS_OK;
  }
  return STATUS_OK;
}

/* The task of memory's list that was accepted last before this seq, looked for from both ends. */
static uint32_t hot_before(const struct task_walk *walk, struct task_list list, uint64_t before_seq) {
  uint32_t from_new = list.newest, from_old = list.oldest, found = 0;
  for (;;) {
    if (from_new == 0 || node_at(walk->state, from_new)->task.accepted_seq < before_seq) return from_new;
    from_new = *older_link(node_at(walk->state, from_new), walk->kind);
    if (from_old == 0) continue; /* names are not known from their oldest on */
    if (node_at(walk->state, from_old)->task.accepted_seq >= before_seq) return found;
    found = from_old;
    from_old = *newer_link(node_at(walk->state, from_old), walk->kind);
  }
}

/* Both at the newest task before this seq. */
static enum status walk_start(struct task_walk *walk, uint64_t before_seq) {
  const struct state *state = walk->state;
  struct task_list list = walk->kind == LIST_ALL ? state->order
                          : walk->kind == LIST_QUEUE
                              ? object_at(state, walk->chain.queue)->tasks
                              : (struct task_list){.newest = newest_of_key(state, walk->chain.business_hash)};
  walk->hot = before_seq == UINT64_MAX ? list.newest : hot_before(walk, list, before_seq);
  if (!store_is_needed(state)) return STATUS_OK;
  if (!cold_open(state->cold, state->needed_seq)) return STATUS_UNAVAILABLE;
  return cold_next(walk, before_seq);
}

/* The newer of the two; false: there is no further one. */
static bool walk_at(const struct task_walk *walk, struct listed *ret_listed) {
  const struct task_node *node = walk->hot != 0 ? node_at(walk->state, walk->hot) : NULL;
  if (node == NULL && !walk->stored) return false;
  bool hot = node != NULL && (!walk->stored || node->task.accepted_seq > walk->cold.task.accepted_seq);
  *ret_listed =
      hot ? (struct listed){&node->task, node->handler_hash} : (struct listed){&walk->cold.task, walk->cold.handler_hash};
  return true;
}

static enum status walk_on(struct task_walk *walk, const struct listed *listed) {
  if (listed->task == &walk->cold.task) return cold_next(walk, walk->cold.task.accepted_seq);
  walk->hot = *older_link(node_at(walk->state, walk->hot), walk->kind);
  return STATUS_OK;
}

/* What memory can judge. */
static bool may_match(const struct task_walk *walk, const struct listed *listed) {
  const struct list_tasks_command *filters = walk->filters;
  const struct task *task = listed->task;
  const struct queue *queue = state_queue_of(walk->state, task);
  return id_equal(&queue->namespace_id, &walk->namespace_id) &&
         (id_is_zero(&filters->queue_id) || id_equal(&queue->id, &filters->queue_id)) &&
         credential_reaches(walk->credential, &queue->id) &&
         (filters->state == TASK_NONE || task->state == (uint8_t)filters->state) &&
         (filters->handler.data == NULL || listed->handler_hash == walk->handler_hash) &&
         (filters->created_after == 0 || task->created_at > filters->created_after) &&
         (filters->created_before == 0 || task->created_at < filters->created_before);
}

/* Texts are read from the log, for those that memory could not rule out. */
static enum status matches(const struct task_walk *walk, const struct listed *listed, bool *ret_matches) {
  const struct list_tasks_command *filters = walk->filters;
  struct event event;
  *ret_matches = may_match(walk, listed);
  if (!*ret_matches || (filters->handler.data == NULL && filters->business_key.data == NULL)) return STATUS_OK;
  enum status status = history_event(walk->history, walk->source, listed->task->accepted_seq, &event);
  if (status != STATUS_OK) return status;
  const struct event_task_accepted *accepted = &event.body.task_accepted;
  *ret_matches = (filters->handler.data == NULL || bytes_equal(filters->handler, accepted->handler)) &&
                 (filters->business_key.data == NULL || bytes_equal(filters->business_key, accepted->business_key));
  return STATUS_OK;
}

static enum status walk_tasks(struct task_walk *walk, struct answer_list *list) {
  struct listed at;
  enum status status = STATUS_OK;
  for (uint32_t looks = 0; status == STATUS_OK && walk_at(walk, &at); status = walk_on(walk, &at)) {
    bool match;
    if (task_is_gone(walk->state, at.task)) continue;
    if (looks++ == list_looks_max || list->count == walk->filters->limit) {
      list->more = true;
      return STATUS_OK;
    }
    if (walk->filters->created_after != 0 && at.task->created_at <= walk->filters->created_after) return STATUS_OK;
    status = matches(walk, &at, &match);
    if (status != STATUS_OK) return status;
    if (match) list->of.tasks[list->count++] = *at.task;
    list->next = at.task->id;
  }
  return status;
}

/* Acceptance of the task that the page before ended with. END: there is none. */
static enum status page_start(const struct state *state, const struct id *after, uint64_t *ret_seq) {
  struct task_row row;
  uint32_t number = state_task_number(state, after);
  const struct task *task = &row.task;
  if (number != 0) {
    task = &node_at(state, number)->task;
  } else {
    if (!store_is_needed(state)) return STATUS_END;
    if (!cold_open(state->cold, state->needed_seq)) return STATUS_UNAVAILABLE;
    enum status status = cold_task(state->cold, after, &row);
    if (status != STATUS_OK) return status;
  }
  *ret_seq = task->accepted_seq;
  return task_is_gone(state, task) ? STATUS_END : STATUS_OK;
}

static enum status fail_list(enum status status, struct fault *fault) {
  if (status == STATUS_UNAVAILABLE)
    return fault_set(fault, status, NULL, "tasks that have ended cannot be read while views/ is made anew; repeat the request");
  return fault_set(fault, STATUS_INTERNAL, NULL, "a task could not be read from the log");
}

static void narrow(struct task_walk *walk) {
  const struct list_tasks_command *filters = walk->filters;
  if (filters->handler.data != NULL) walk->handler_hash = handler_name_hash(filters->handler);
  if (filters->business_key.data != NULL) {
    walk->kind = LIST_NAME;
    walk->chain.business_hash = business_key_hash(&walk->namespace_id, filters->business_key);
  } else if (!id_is_zero(&filters->queue_id)) {
    walk->kind = LIST_QUEUE;
    walk->chain.queue = object_find(walk->state, &filters->queue_id);
  }
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
  uint64_t before_seq = UINT64_MAX;
  if (!id_is_zero(&filters->queue_id)) {
    const struct queue *queue = state_queue(state, &filters->queue_id);
    if (queue == NULL || !id_equal(&queue->namespace_id, namespace_id) || !credential_reaches(credential, &filters->queue_id))
      return fault_set(fault, STATUS_NOT_FOUND, "queue_id", "there is no queue %s within reach of this credential",
                       id_text(&filters->queue_id).text);
  }
  enum status status = id_is_zero(&filters->after) ? STATUS_OK : page_start(state, &filters->after, &before_seq);
  if (status == STATUS_END)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "cursor", "the page before is gone; start from the first page");
  narrow(&walk);
  if (status == STATUS_OK) status = walk_start(&walk, before_seq);
  if (status != STATUS_OK) return fail_list(status, fault);
  struct answer_list list = {.of.tasks = guard_malloc(sizeof(struct task) * filters->limit)};
  status = walk_tasks(&walk, &list);
  if (status != STATUS_OK) {
    free(list.of.tasks);
    return fail_list(status, fault);
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
