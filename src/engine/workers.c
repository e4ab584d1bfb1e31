/* Owns the connected workers: what they offer, how much they hold, who gets the next task. Nothing of it is durable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "engine/internal.h"

static struct worker *worker_at(struct engine *engine, uint32_t number) { return pool_at(&engine->workers, number); }
static struct worker_group *group_at(struct engine *engine, uint32_t number) { return pool_at(&engine->groups, number); }

/* ---- groups ---- */

static int compare_ids(const void *a, const void *b) { return id_compare(a, b); }
static int compare_offers(const void *a, const void *b) {
  const struct handler_offer *left = a, *right = b;
  int order = bytes_compare(left->handler, right->handler);
  return order != 0 ? order : bytes_compare(left->handler_version, right->handler_version);
}

/* The same for the same sets of queues and handlers, in whatever order they were named. */
static struct id offer_digest(const struct hello_command *hello) {
  cleanup(guard_free) struct id *queues = guard_malloc(sizeof *queues * hello->queue_count);
  cleanup(guard_free) struct handler_offer *offers = guard_malloc(sizeof *offers * hello->handler_count);
  memcpy(queues, hello->queue_ids, sizeof *queues * hello->queue_count);
  memcpy(offers, hello->handlers, sizeof *offers * hello->handler_count);
  qsort(queues, hello->queue_count, sizeof *queues, compare_ids);
  qsort(offers, hello->handler_count, sizeof *offers, compare_offers);
  struct buffer text;
  buffer_init(&text, SIZE_MAX);
  buffer_append(&text, queues, sizeof *queues * hello->queue_count);
  for (uint32_t i = 0; i < hello->handler_count; i++) {
    buffer_append_char(&text, (char)offers[i].handler.size);
    buffer_append_bytes(&text, offers[i].handler);
    buffer_append_char(&text, (char)offers[i].handler_version.size);
    buffer_append_bytes(&text, offers[i].handler_version);
  }
  must(!text.failed);
  struct id digest;
  XXH128_canonicalFromHash((XXH128_canonical_t *)digest.bytes, XXH3_128bits(text.data, text.size));
  buffer_clear(&text);
  return digest;
}

static struct bucket_service *service_of(struct engine *engine, uint32_t bucket) {
  if (bucket >= engine->service_count) {
    uint32_t count = bucket * 2 + 64;
    engine->services = guard_realloc(engine->services, sizeof *engine->services * count);
    memset(engine->services + engine->service_count, 0, sizeof *engine->services * (count - engine->service_count));
    engine->service_count = count;
  }
  return &engine->services[bucket];
}

static void serve(struct engine *engine, uint32_t bucket, uint32_t group) {
  struct bucket_service *service = service_of(engine, bucket);
  if (service->count == service->capacity) {
    service->capacity = service->capacity != 0 ? service->capacity * 2 : 4;
    service->groups = guard_realloc(service->groups, sizeof *service->groups * service->capacity);
  }
  service->groups[service->count++] = group;
  state_bucket_at(engine->state, bucket)->served++;
}

static void unserve(struct engine *engine, uint32_t bucket, uint32_t group) {
  struct bucket_service *service = &engine->services[bucket];
  for (uint32_t i = 0; i < service->count; i++)
    if (service->groups[i] == group) service->groups[i--] = service->groups[--service->count];
  state_bucket_at(engine->state, bucket)->served--;
  state_bucket_release(engine->state, bucket);
}

static uint64_t offer_key(const struct id *offer) { return id_hash(offer); }

static uint32_t group_join(struct engine *engine, const struct hello_command *hello) {
  struct id offer = offer_digest(hello);
  struct index_cursor cursor;
  for (uint64_t value = index_find(&engine->offers, offer_key(&offer), &cursor); value != 0;
       value = index_next(&engine->offers, &cursor))
    if (id_equal(&group_at(engine, (uint32_t)value)->offer, &offer)) {
      group_at(engine, (uint32_t)value)->workers++;
      return (uint32_t)value;
    }
  uint32_t number = pool_add(&engine->groups);
  struct worker_group *group = group_at(engine, number);
  group->number = number;
  group->workers = 1;
  group->offer = offer;
  group->buckets = guard_malloc(sizeof *group->buckets * hello->queue_count * hello->handler_count);
  for (uint32_t q = 0; q < hello->queue_count; q++)
    for (uint32_t h = 0; h < hello->handler_count; h++) {
      uint32_t bucket =
          state_bucket(engine->state, &hello->queue_ids[q], hello->handlers[h].handler, hello->handlers[h].handler_version);
      serve(engine, bucket, number);
      group->buckets[group->bucket_count++] = bucket;
    }
  index_add(&engine->offers, offer_key(&offer), number);
  return number;
}

static void group_leave(struct engine *engine, uint32_t number) {
  struct worker_group *group = group_at(engine, number);
  if (--group->workers != 0) return;
  for (uint32_t i = 0; i < group->bucket_count; i++) unserve(engine, group->buckets[i], number);
  index_remove(&engine->offers, offer_key(&group->offer), number);
  heap_clear(&group->free);
  free(group->buckets);
  pool_remove(&engine->groups, number);
}

/* ---- places among the free ones ---- */

static uint32_t *worker_position(void *context, uint32_t number) { return &worker_at(context, number)->position; }
static struct heap_owner worker_owner(struct engine *engine) { return (struct heap_owner){worker_position, NULL, engine}; }

void worker_settle(struct engine *engine, struct worker *worker) {
  struct heap_owner owner = worker_owner(engine);
  struct worker_group *group = group_at(engine, worker->group);
  uint32_t held = state_instance_at(engine->state, worker->instance)->held;
  if (worker->draining || worker->slow || held >= worker->capacity) {
    heap_remove(&group->free, &owner, worker->number);
    return;
  }
  /* Most free first; among equals the one whose place was settled longest ago. */
  int64_t free_slots = (int64_t)worker->capacity - held;
  heap_put(&group->free, &owner, worker->number,
           (((int64_t)worker_capacity_max - free_slots) << 48) | (int64_t)(engine->assignments++ & ((UINT64_C(1) << 48) - 1)));
}

struct worker *worker_of_session(struct engine *engine, uint64_t session) {
  struct index_cursor cursor;
  uint64_t value = index_find(&engine->sessions, session, &cursor);
  return value != 0 ? worker_at(engine, (uint32_t)value) : NULL;
}

struct worker *worker_of_task(struct engine *engine, uint32_t task_number) {
  uint32_t instance = state_instance_of(engine->state, task_number);
  return instance != 0 ? state_instance_at(engine->state, instance)->worker : NULL;
}

static void tell_drained(struct engine *engine, struct worker *worker) {
  if (!worker->draining || worker->drained_told || state_instance_at(engine->state, worker->instance)->held != 0) return;
  worker->drained_told = true;
  engine_depart(engine, worker->home, &push_new(MAIL_DRAINED, worker->session, (struct bytes){NULL, 0})->mail);
}

void worker_freed(struct engine *engine, struct worker *worker) {
  worker_settle(engine, worker);
  tell_drained(engine, worker);
}

static void worker_remove(struct engine *engine, struct worker *worker) {
  struct heap_owner owner = worker_owner(engine);
  heap_remove(&group_at(engine, worker->group)->free, &owner, worker->number);
  if (worker->slow) engine->slow_count--;
  group_leave(engine, worker->group);
  state_instance_at(engine->state, worker->instance)->worker = NULL;
  state_instance_release(engine->state, worker->instance);
  index_remove(&engine->sessions, worker->session, worker->number);
  free((void *)(uintptr_t)worker->name.data);
  worker->session = 0;
  pool_remove(&engine->workers, worker->number);
}

void workers_clear(struct engine *engine) {
  size_t at = 0;
  uint64_t session, number;
  while (index_each(&engine->sessions, &at, &session, &number)) {
    worker_remove(engine, worker_at(engine, (uint32_t)number));
    at = 0;
  }
  for (uint32_t i = 0; i < engine->service_count; i++) free(engine->services[i].groups);
  free(engine->services);
  heap_clear(&engine->hot);
  pool_clear(&engine->workers);
  pool_clear(&engine->groups);
  index_clear(&engine->sessions);
  index_clear(&engine->offers);
}

/* ---- assignment ---- */

/* What an assignment weighs on the way to the worker: its payload and the frame around it. */
static size_t assignment_weight(const struct task *task) { return (size_t)task->payload_bytes + 1024; }

static bool worker_is_slow(const struct worker *worker) {
  return atomic_load(&worker->gauge->unsent_bytes) >= worker_unsent_bytes_pause;
}

void worker_push_assign(struct engine *engine, struct worker *worker, uint32_t task_number) {
  const struct task *task = state_task_at(engine->state, task_number);
  const struct attempt *attempt = state_attempt_at(engine->state, task_number);
  struct push *push = push_new(MAIL_ASSIGN, worker->session, (struct bytes){NULL, 0});
  push->task = *task;
  push->attempt = *attempt;
  push->task_id = task->id;
  push->attempt_id = attempt->id;
  push->weight = assignment_weight(task);
  (void)atomic_fetch_add(&worker->gauge->unsent_bytes, push->weight);
  engine_depart(engine, worker->home, &push->mail);
  if (worker->slow || !worker_is_slow(worker)) return;
  worker->slow = true;
  engine->slow_count++;
}

struct worker *worker_choose(struct engine *engine, uint32_t bucket) {
  const struct bucket_service *service = &engine->services[bucket];
  struct heap_entry best = {0, 0};
  for (uint32_t i = 0; i < service->count; i++) {
    struct heap_entry first = heap_first(&group_at(engine, service->groups[i])->free);
    if (first.number != 0 && (best.number == 0 || first.key < best.key)) best = first;
  }
  return best.number != 0 ? worker_at(engine, best.number) : NULL;
}

/* ---- the session's commands ---- */

static enum status check_hello(struct engine *engine, const struct command *command, struct fault *fault) {
  const struct hello_command *hello = &command->as.hello;
  if ((uint64_t)hello->queue_count * hello->handler_count > worker_offers_max)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/handlers", "queues times handlers may be %d at the most",
                     worker_offers_max);
  for (uint32_t i = 0; i < hello->queue_count; i++) {
    char field[32];
    (void)snprintf(field, sizeof field, "/queue_ids/%u", i);
    if (!command_reaches_queue(engine, &command->who, &hello->queue_ids[i]))
      return fault_set(fault, STATUS_NOT_FOUND, field, "there is no queue %s within reach of this credential",
                       id_text(&hello->queue_ids[i]).text);
  }
  return STATUS_OK;
}

static uint32_t lease_ms_shown(struct engine *engine, const struct hello_command *hello) {
  uint64_t least = lease_ms_max;
  if (hello->lease_ms != 0) return hello->lease_ms;
  for (uint32_t i = 0; i < hello->queue_count; i++) {
    const struct queue *queue = state_queue(engine->state, &hello->queue_ids[i]);
    if (queue->lease_ms < least) least = queue->lease_ms;
  }
  return (uint32_t)least;
}

static void close_older(struct engine *engine, struct worker *older) {
  struct push *push = push_new(MAIL_CLOSE, older->session, bytes_text("a newer connection of this instance took over"));
  push->close_code = worker_close_replaced;
  engine_depart(engine, older->home, &push->mail);
  worker_remove(engine, older);
}

static struct worker *worker_add(struct engine *engine, const struct ticket *ticket) {
  const struct hello_command *hello = &ticket->command.as.hello;
  uint32_t number = pool_add(&engine->workers);
  struct worker *worker = worker_at(engine, number);
  worker->number = number;
  worker->session = ticket->command.session;
  worker->home = ticket->home;
  worker->gauge = ticket->gauge;
  worker->who = ticket->command.who;
  worker->instance_id = hello->instance_id;
  worker->session_id = id_source_next(&engine->ids, engine->now_us);
  worker->capacity = hello->capacity;
  worker->lease_ms = hello->lease_ms;
  worker->group = group_join(engine, hello);
  worker->instance = state_instance(engine->state, &worker->who.application_id, &hello->instance_id);
  state_instance_at(engine->state, worker->instance)->worker = worker;
  if (hello->name.data != NULL) {
    uint8_t *name = guard_malloc(hello->name.size);
    memcpy(name, hello->name.data, hello->name.size);
    worker->name = bytes_of(name, hello->name.size);
  }
  index_add(&engine->sessions, worker->session, number);
  return worker;
}

/* The attempts that the instance still holds; those without a start grant are assigned again, and cancel requests told again.
 */
static void welcome(struct engine *engine, struct worker *worker, struct welcome *ret_welcome) {
  const struct instance *instance = state_instance_at(engine->state, worker->instance);
  if (instance->held == 0) return;
  ret_welcome->held = guard_malloc(sizeof *ret_welcome->held * instance->held);
  for (uint32_t number = instance->first; number != 0; number = state_held_next(engine->state, number)) {
    const struct task *task = state_task_at(engine->state, number);
    const struct attempt *attempt = state_attempt_at(engine->state, number);
    ret_welcome->held[ret_welcome->held_count++] = (struct held_attempt){
        .task_id = task->id,
        .attempt_id = attempt->id,
        .number = task->attempt_count,
        .epoch = task->epoch,
        .state = task->state == TASK_RUNNING ? ATTEMPT_RUNNING : ATTEMPT_LEASED,
        .lease_expires_at = attempt->live_until,
    };
    if (task->state == TASK_LEASED) worker_push_assign(engine, worker, number);
    recovery_tell_again(engine, worker, number);
  }
}

enum status worker_hello(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  if (worker_of_session(engine, ticket->command.session) != NULL)
    return refuse(answer, fault_set(&answer->fault, STATUS_STATE_CONFLICT, NULL, "this connection has said hello already"));
  enum status status = check_hello(engine, &ticket->command, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  const struct hello_command *hello = &ticket->command.as.hello;
  uint32_t instance = state_instance(engine->state, &ticket->command.who.application_id, &hello->instance_id);
  struct worker *older = state_instance_at(engine->state, instance)->worker;
  if (older != NULL) close_older(engine, older);
  struct worker *worker = worker_add(engine, ticket);
  answer->as.welcome = (struct welcome){
      .session_id = worker->session_id, .server_time = engine->now_us, .lease_ms = lease_ms_shown(engine, hello)};
  welcome(engine, worker, &answer->as.welcome);
  worker_settle(engine, worker);
  return STATUS_OK;
}

static enum status no_hello(struct answer *answer) {
  return refuse(answer, fault_set(&answer->fault, STATUS_STATE_CONFLICT, NULL, "worker.hello comes first"));
}

enum status worker_set_capacity(struct engine *engine, struct ticket *ticket) {
  struct worker *worker = worker_of_session(engine, ticket->command.session);
  if (worker == NULL) return no_hello(&ticket->answer);
  worker->capacity = ticket->command.as.capacity.capacity;
  worker_settle(engine, worker);
  return STATUS_OK;
}

enum status worker_drain(struct engine *engine, struct ticket *ticket) {
  struct worker *worker = worker_of_session(engine, ticket->command.session);
  if (worker == NULL) return no_hello(&ticket->answer);
  worker->draining = true;
  worker_settle(engine, worker);
  tell_drained(engine, worker);
  return STATUS_OK;
}

enum status worker_bye(struct engine *engine, struct ticket *ticket) {
  struct worker *worker = worker_of_session(engine, ticket->command.session);
  if (worker != NULL) worker_remove(engine, worker);
  return STATUS_OK;
}
