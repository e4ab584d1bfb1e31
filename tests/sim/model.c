/* Owns what the model remembers: tasks, receipts, sessions, counts; and the tick from outside. */
#include "sim/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "sim/model_internal.h"

enum { table_slots = 1 << 13 };

void model_init(struct model *model, enum mistake mistake) {
  memset(model, 0, sizeof *model);
  model->mistake = mistake;
  model->task_table = guard_calloc(table_slots, sizeof *model->task_table);
  model->receipt_table = guard_calloc(table_slots, sizeof *model->receipt_table);
}

void model_clear(struct model *model) {
  free(model->tasks);
  free(model->attempts);
  free(model->unfinished);
  free(model->unfinished_at);
  free(model->task_table);
  free(model->receipts);
  free(model->receipt_table);
  free(model->audits);
  free(model->log);
}

void model_complain(struct model *model, const char *format, ...) {
  if (!model_is_well(model)) return;
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(model->complaint, sizeof model->complaint, format, arguments);
  va_end(arguments);
}

/* ---- tasks ---- */

static uint32_t slot_of(const struct id *id) {
  uint64_t low;
  memcpy(&low, id->bytes + 8, sizeof low);
  return (uint32_t)((low ^ (low >> 29)) % table_slots);
}

struct model_task *model_task(struct model *model, const struct id *id) {
  for (uint32_t slot = slot_of(id); model->task_table[slot] != 0; slot = (slot + 1) % table_slots) {
    struct model_task *task = &model->tasks[model->task_table[slot] - 1];
    if (id_equal(&task->id, id)) return task;
  }
  return NULL;
}

static void tasks_grow(struct model *model) {
  if (model->task_count < model->task_capacity) return;
  model->task_capacity = model->task_capacity * 2 + 256;
  size_t capacity = model->task_capacity;
  must(capacity <= table_slots / 2 + 512);
  model->tasks = guard_realloc(model->tasks, capacity * sizeof *model->tasks);
  model->attempts = guard_realloc(model->attempts, capacity * sizeof *model->attempts);
  model->unfinished = guard_realloc(model->unfinished, capacity * sizeof *model->unfinished);
  model->unfinished_at = guard_realloc(model->unfinished_at, capacity * sizeof *model->unfinished_at);
}

struct model_task *model_task_add(struct model *model, const struct id *id) {
  tasks_grow(model);
  uint32_t number = model->task_count++, slot = slot_of(id);
  struct model_task *task = &model->tasks[number];
  memset(task, 0, sizeof *task);
  memset(model->attempts[number], 0, sizeof model->attempts[number]);
  task->id = *id;
  task->number = number;
  while (model->task_table[slot] != 0) slot = (slot + 1) % table_slots;
  model->task_table[slot] = number + 1;
  return task;
}

void model_touch(struct model *model, const struct model_task *task) {
  if (model->touched_count != 0 && model->touched[model->touched_count - 1] == task->number) return;
  if (model->touched_count < model_touched_max) model->touched[model->touched_count++] = task->number;
}

void model_move(struct model *model, struct model_task *task, enum task_state state) {
  struct model_queue *queue = &model->queues[task->queue];
  enum task_state before = task->state;
  task->state = state;
  task->revision++;
  task->updated_at = model->now_us;
  queue->counts[state]++;
  if (before == TASK_NONE) {
    model->applications[task->application].unfinished++;
    model->unfinished_at[task->number] = model->unfinished_count;
    model->unfinished[model->unfinished_count++] = task->number;
  } else {
    queue->counts[before]--;
  }
  if (!model_is_over(state)) return;
  task->completed_at = model->now_us;
  model->applications[task->application].unfinished--;
  if (task->schedule != 0) {
    struct model_schedule *schedule = &model->schedules[task->schedule - 1];
    if (--schedule->unfinished == 0) schedule->free_at = model->now_us;
  }
  uint32_t place = model->unfinished_at[task->number], last = model->unfinished[--model->unfinished_count];
  model->unfinished[place] = last;
  model->unfinished_at[last] = place;
}

void model_recount(struct model *model) {
  uint64_t counts[queues_max][TASK_ENUM_END] = {{0}}, unfinished[applications_max] = {0};
  uint32_t held[applications_max][instances_max] = {{0}}, key_held[queues_max][concurrency_keys_max] = {{0}};
  for (uint32_t i = 0; i < model->task_count; i++) {
    const struct model_task *task = &model->tasks[i];
    counts[task->queue][task->state]++;
    if (!model_is_over(task->state)) unfinished[task->application]++;
    if (!model_is_held(task->state)) continue;
    held[task->worker_application][task->instance]++;
    key_held[task->queue][task->concurrency_key]++;
  }
  for (unsigned i = 0; i < model->queue_count; i++)
    if (memcmp(counts[i], model->queues[i].counts, sizeof counts[i]) != 0) model_complain(model, "the model miscounts a queue");
  for (unsigned i = 0; i < applications_max; i++)
    if (unfinished[i] != model->applications[i].unfinished) model_complain(model, "the model miscounts an application");
  if (memcmp(held, model->held, sizeof held) != 0 || memcmp(key_held, model->key_held, sizeof key_held) != 0)
    model_complain(model, "the model miscounts");
}

/* ---- receipts ---- */

static uint32_t receipt_slot(const struct request *request) {
  return (uint32_t)((request->key * UINT64_C(0x9E3779B97F4A7C15)) >> 51) % table_slots;
}

struct model_receipt *model_receipt_find(struct model *model, const struct request *request) {
  for (uint32_t number = model->receipt_table[receipt_slot(request)]; number != 0; number = model->receipts[number].next)
    if (request_is_the_same(&model->receipts[number].request, request) &&
        !model_receipt_is_gone(model, &model->receipts[number]))
      return &model->receipts[number];
  return NULL;
}

struct model_receipt *model_receipt_add(struct model *model, const struct request *request) {
  if (model->receipt_count + 1 >= model->receipt_capacity) {
    model->receipt_capacity = model->receipt_capacity * 2 + 256;
    model->receipts = guard_realloc(model->receipts, model->receipt_capacity * sizeof *model->receipts);
  }
  uint32_t *slot = &model->receipt_table[receipt_slot(request)];
  struct model_receipt *receipt = &model->receipts[++model->receipt_count];
  memset(receipt, 0, sizeof *receipt);
  receipt->request = *request;
  receipt->next = *slot;
  *slot = model->receipt_count;
  return receipt;
}

void model_audit_add(struct model *model, uint64_t seq, const struct id *target_id) {
  if (model->audit_count == model->audit_capacity) {
    model->audit_capacity = model->audit_capacity * 2 + 64;
    model->audits = guard_realloc(model->audits, model->audit_capacity * sizeof *model->audits);
  }
  model->audits[model->audit_count++] = (struct model_audit){seq, *target_id};
}

/* ---- sessions ---- */

struct model_session *model_session(struct model *model, uint64_t session) {
  for (unsigned i = 0; i < model_sessions_max; i++)
    if (session != 0 && model->sessions[i].session == session) return &model->sessions[i];
  return NULL;
}

struct model_session *model_holder(struct model *model, const struct model_task *task) {
  for (unsigned i = 0; i < model_sessions_max && model_is_held(task->state); i++) {
    struct model_session *session = &model->sessions[i];
    if (session->session != 0 && session->instance == task->instance &&
        who_application(session->who) == task->worker_application)
      return session;
  }
  return NULL;
}

void model_tell(struct model *model, enum told told, uint64_t session, const struct model_task *task,
                const struct id *attempt_id, enum ended_by ended_by) {
  if (model->push_count == model_pushes_max) {
    model_complain(model, "the simulator has no room for messages");
    return;
  }
  struct model_push *push = &model->pushes[model->push_count++];
  *push = (struct model_push){.told = told, .session = session, .ended_by = ended_by};
  if (task != NULL) push->task_id = task->id;
  if (attempt_id != NULL) push->attempt_id = *attempt_id;
}

void model_tell_drained(struct model *model, struct model_session *session) {
  if (!session->draining || session->drained_told || model->held[who_application(session->who)][session->instance] != 0) return;
  session->drained_told = true;
  model_tell(model, TOLD_DRAINED, session->session, NULL, NULL, ENDED_NONE);
}

/* ---- the tick from outside ---- */

void model_tick_begin(struct model *model, int64_t now_us, const struct event *events, uint32_t count, bool disk_full,
                      bool starved) {
  model->now_us = now_us;
  model->seen = (struct seen){events, count, 0};
  model->disk_full = disk_full;
  model->starved = starved;
  model->touched_count = 0;
}

void model_restart(struct model *model, const struct event *started) {
  model->now_us = started->time_us;
  model->operation_id = started->common.operation_id;
  model->node_last_seq = started->seq;
  memset(model->sessions, 0, sizeof model->sessions);
  model->draining = false;
  model->tokens_changed = true;
  model->up_since = model->now_us;
  for (uint32_t i = 0; i < model->unfinished_count; i++) {
    struct model_task *task = &model->tasks[model->unfinished[i]];
    if (!model_is_held(task->state)) continue;
    int64_t until = model_earlier(model_after_ms(model->now_us, task->lease_ms), task->deadline_at);
    if (task->state == TASK_RUNNING) until = model_earlier(until, task->attempt_deadline_at);
    else if (task->start_deadline_at != 0) until = model_earlier(until, task->start_deadline_at);
    if (until > task->lease_until) task->lease_until = until;
    task->live_until = task->lease_until;
  }
}

int64_t model_oldest_waiting(const struct model *model, unsigned queue) {
  int64_t oldest = 0;
  for (uint32_t i = 0; i < model->unfinished_count; i++) {
    const struct model_task *task = &model->tasks[model->unfinished[i]];
    if (task->state != TASK_WAITING || task->queue != queue) continue;
    if (oldest == 0 || task->available_at < oldest) oldest = task->available_at;
  }
  return oldest;
}

/* Reads that change nothing. */
static void read_task(struct model *model, const struct request *request, struct expected *expected) {
  const struct model_task *task = model_task_there(model, &request->task_id);
  if (task == NULL || !who_reaches(request->who, task->queue)) {
    expected->status = STATUS_NOT_FOUND;
    return;
  }
  expected->has_task = true;
  expected->task = *task;
}

static void read_queue(struct model *model, const struct request *request, struct expected *expected) {
  if (who_reaches(request->who, request->queue)) expected->queue = model->queues[request->queue];
  else expected->status = STATUS_NOT_FOUND;
}

static bool needs_room(enum command_kind kind) {
  bool worker = kind == COMMAND_START || kind == COMMAND_FINISH || kind == COMMAND_RELEASE;
  return worker || (kind >= COMMAND_CANCEL && kind <= COMMAND_SCHEDULE_DELETE);
}

typedef void judge(struct model *model, const struct request *request, struct expected *expected);
static judge *const judges[COMMAND_KIND_COUNT] = {
    [COMMAND_SUBMIT] = model_submit,
    [COMMAND_GET_TASK] = read_task,
    [COMMAND_GET_QUEUE] = read_queue,
    [COMMAND_SCHEDULE_CREATE] = model_schedule_request,
    [COMMAND_SCHEDULE_CHANGE] = model_schedule_request,
    [COMMAND_SCHEDULE_PAUSE] = model_schedule_request,
    [COMMAND_SCHEDULE_RESUME] = model_schedule_request,
    [COMMAND_SCHEDULE_DELETE] = model_schedule_request,
    [COMMAND_GET_SCHEDULE] = model_schedule_read,
    [COMMAND_SUBSCRIPTION_CREATE] = model_subscription_request,
    [COMMAND_SUBSCRIPTION_ACK] = model_subscription_request,
    [COMMAND_SUBSCRIPTION_DELETE] = model_subscription_request,
    [COMMAND_GET_SUBSCRIPTION] = model_subscription_read,
    [COMMAND_OPEN_FEED] = model_open_feed,
    [COMMAND_PREVIEW_TIMES] = model_schedule_read,
    [COMMAND_LIST_TASKS] = model_list,
    [COMMAND_LIST_OBJECTS] = model_list,
    [COMMAND_LIST_AUDIT] = model_list,
    [COMMAND_HELLO] = model_hello,
    [COMMAND_CAPACITY] = model_session_request,
    [COMMAND_DRAIN] = model_session_request,
    [COMMAND_BYE] = model_session_request,
    [COMMAND_START] = model_attempt_request,
    [COMMAND_RENEW] = model_attempt_request,
    [COMMAND_FINISH] = model_attempt_request,
    [COMMAND_RELEASE] = model_attempt_request,
    [COMMAND_CANCEL] = model_cancel,
    [COMMAND_REVIEW] = model_review,
    [COMMAND_RETRY] = model_retry,
    [COMMAND_QUEUE_CHANGE] = model_queue_request,
    [COMMAND_QUEUE_PAUSE] = model_queue_request,
    [COMMAND_QUEUE_RESUME] = model_queue_request,
    [COMMAND_QUEUE_CREATE] = model_queue_request,
    [COMMAND_APPLICATION_CHANGE] = model_application_request,
    [COMMAND_CREDENTIAL_CREATE] = model_credential_request,
    [COMMAND_CREDENTIAL_ROTATE] = model_credential_request,
    [COMMAND_CREDENTIAL_REVOKE] = model_credential_request,
};

/* It cannot be answered without what may have left memory: a task that has ended, or the receipt of a request that names none.
 */
static bool may_be_out_of_reach(struct model *model, const struct request *request) {
  const struct model_task *task = NULL;
  if (!model->views_short) return false;
  bool filtered = request->kind == COMMAND_OPEN_FEED && !id_is_zero(&request->task_id);
  if (!filtered && !request_names_task(request)) return request_has_identity(request) || request->kind == COMMAND_LIST_TASKS;
  task = model_task(model, &request->task_id);
  return task == NULL || model_is_over(task->state);
}

void model_take(struct model *model, const struct request *request, const struct operation *operation,
                struct expected *ret_expected) {
  memset(ret_expected, 0, sizeof *ret_expected);
  if (needs_room(request->kind) && model->starved) {
    ret_expected->status = STATUS_UNAVAILABLE;
    return;
  }
  if (model->refused_for_now && may_be_out_of_reach(model, request)) {
    ret_expected->status = STATUS_UNAVAILABLE;
    return;
  }
  model_operation_begin(model, &model->credentials[request->who].id, operation);
  judges[request->kind](model, request, ret_expected);
}
