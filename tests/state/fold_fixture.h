/* A state and its log in memory, written by the rules: objects, and tasks in every state that a few steps reach. */
#ifndef ORBIT_TESTS_FOLD_FIXTURE_H
#define ORBIT_TESTS_FOLD_FIXTURE_H

#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "core/apply.h"
#include "core/decide.h"
#include "state/internal.h"

enum { records_max = 4096 };

struct world {
  struct state *state;
  struct buffer records[records_max]; /* by seq */
  uint64_t last_seq;
  int64_t now_us;
  struct history *history;
  unsigned ids;
};

static inline struct id id_of(unsigned kind, unsigned number) {
  struct id id = {{0}};
  id.bytes[0] = (uint8_t)kind;
  id.bytes[14] = (uint8_t)(number >> 8);
  id.bytes[15] = (uint8_t)number;
  return id;
}

static const int64_t start_us = INT64_C(1767225600) * 1000000;
enum { NAMESPACE = 1, APPLICATION, CREDENTIAL, QUEUE, NODE, TASK, ATTEMPT, OPERATION, IDENTITY, INSTANCE, SUBSCRIPTION };

static inline enum status get(void *context, uint64_t seq, struct bytes *ret_record) {
  struct world *world = context;
  if (seq == 0 || seq > world->last_seq) return STATUS_END;
  *ret_record = buffer_bytes(&world->records[seq]);
  return STATUS_OK;
}

static inline void append(struct world *world, struct event *event) {
  const char *reason = "";
  assert_true(world->last_seq + 1 < records_max);
  event->seq = world->last_seq + 1;
  event->time_us = world->now_us;
  event->prev = state_stream_last(world->state, event);
  if (!state_can_apply(world->state, event, &reason)) fail_msg("%s: %s", event_type_text(event->type), reason);
  buffer_init(&world->records[event->seq], 1 << 20);
  assert_int_equal(record_encode(event, &world->records[event->seq]), STATUS_OK);
  world->last_seq++;
  state_apply(world->state, event);
}

static inline void append_list(struct world *world, struct event_list *list) {
  for (uint32_t i = 0; i < list->count; i++) append(world, &list->events[i]);
}

static inline struct event made(struct world *world, enum event_type type, struct id stream, uint64_t revision) {
  struct event event = {.type = type, .version = event_type_version(type), .stream = stream};
  event.common = (struct event_common){
      .operation_id = id_of(OPERATION, ++world->ids), .actor = id_of(CREDENTIAL, 1), .revision = revision};
  return event;
}

static inline void make_objects(struct world *world) {
  static const uint8_t hash[token_hash_bytes] = {7};
  struct id scope = id_of(QUEUE, 1);
  struct event event = made(world, EVENT_namespace_created, id_of(NAMESPACE, 1), 1);
  event.body.namespace_created.name = bytes_text("n");
  append(world, &event);
  event = made(world, EVENT_application_created, id_of(APPLICATION, 1), 1);
  event.body.application_created.namespace_id = id_of(NAMESPACE, 1);
  event.body.application_created.name = bytes_text("a");
  append(world, &event);
  for (unsigned i = 1; i <= 2; i++) {
    event = made(world, EVENT_queue_created, id_of(QUEUE, i), 1);
    event.body.queue_created.namespace_id = id_of(NAMESPACE, 1);
    event.body.queue_created.name = bytes_text("q");
    event.body.queue_created.key_concurrency = 1;
    event.body.queue_created.lease_ms = 30000;
    append(world, &event);
  }
  event = made(world, EVENT_credential_created, id_of(CREDENTIAL, 1), 1);
  event.body.credential_created.namespace_id = id_of(NAMESPACE, 1);
  event.body.credential_created.application_id = id_of(APPLICATION, 1);
  event.body.credential_created.permissions = 3;
  event.body.credential_created.token_hash = bytes_of(hash, sizeof hash);
  event.body.credential_created.queue_ids = bytes_of(scope.bytes, id_bytes);
  append(world, &event);
  event = made(world, EVENT_subscription_created, id_of(SUBSCRIPTION, 1), 1);
  event.body.subscription_created.namespace_id = id_of(NAMESPACE, 1);
  event.body.subscription_created.name = bytes_text("s");
  event.body.subscription_created.types = bytes_text("task.succeeded,task.failed");
  event.body.subscription_created.queue_id = scope;
  append(world, &event);
}

static inline struct decide_env env_of(struct world *world, struct id new_id) {
  return (struct decide_env){.now_us = world->now_us,
                             .node_id = id_of(NODE, 1),
                             .operation_id = id_of(OPERATION, ++world->ids),
                             .next_seq = world->last_seq + 1,
                             .new_id = new_id};
}

static inline struct command command_of(struct world *world, enum command_kind kind) {
  struct command command = {.kind = kind};
  command.who.credential_id = id_of(CREDENTIAL, 1);
  command.who.application_id = id_of(APPLICATION, 1);
  command.who.namespace_id = id_of(NAMESPACE, 1);
  command.operation.identity = id_of(IDENTITY, ++world->ids);
  command.operation.digest = id_of(IDENTITY, 0x7000 + world->ids);
  return command;
}

static inline struct id submit(struct world *world, unsigned queue, const char *key, const char *business_key) {
  struct command command = command_of(world, COMMAND_SUBMIT);
  struct event_list *list = calloc(1, sizeof *list);
  struct fault fault;
  command.as.submit = (struct submit_command){.handler = bytes_text("h"),
                                              .handler_version = bytes_text("v"),
                                              .payload_version = bytes_text("p"),
                                              .payload = bytes_text("{}"),
                                              .task_timeout_ms = 600000,
                                              .recovery_safety = RECOVERY_IDEMPOTENT,
                                              .max_attempts = 5,
                                              .initial_delay_ms = 10,
                                              .max_delay_ms = 20,
                                              .attempt_timeout_ms = 60000};
  if (key != NULL) command.as.submit.concurrency_key = bytes_text(key);
  if (business_key != NULL) command.as.submit.business_key = bytes_text(business_key);
  struct id id = id_of(TASK, ++world->ids);
  struct id queue_id = id_of(QUEUE, queue), application_id = id_of(APPLICATION, 1);
  struct decide_env env = env_of(world, id);
  assert_int_equal(decide_submit(state_queue(world->state, &queue_id), state_application(world->state, &application_id),
                                 &command, &env, list, &fault),
                   STATUS_OK);
  append_list(world, list);
  free(list);
  return id;
}

static inline void lease(struct world *world, const struct id *task_id) {
  struct event_list *list = calloc(1, sizeof *list);
  struct fault fault;
  struct lease_request request = {
      .instance_id = id_of(INSTANCE, 1), .application_id = id_of(APPLICATION, 1), .lease_ms = 30000};
  struct decide_env env = env_of(world, id_of(ATTEMPT, ++world->ids));
  assert_int_equal(decide_lease(state_task(world->state, task_id), &request, &env, list, &fault), STATUS_OK);
  append_list(world, list);
  free(list);
}

static inline const struct attempt *attempt_of_task(const struct world *world, const struct id *task_id) {
  return state_attempt_at(world->state, state_task_number(world->state, task_id));
}

static inline struct attempt_ref ref_of(struct world *world, const struct task *task) {
  return (struct attempt_ref){id_of(OPERATION, ++world->ids), task->id, attempt_of_task(world, &task->id)->id, task->epoch};
}

static inline void start(struct world *world, const struct id *task_id) {
  struct event_list *list = calloc(1, sizeof *list);
  struct fault fault;
  struct command command = command_of(world, COMMAND_START);
  command.as.ref = ref_of(world, state_task(world->state, task_id));
  struct decide_env env = env_of(world, id_of(ATTEMPT, ++world->ids));
  assert_int_equal(
      decide_start(state_task(world->state, task_id), attempt_of_task(world, task_id), &command, &env, list, &fault),
      STATUS_OK);
  append_list(world, list);
  free(list);
}

static inline void finish(struct world *world, const struct id *task_id, enum outcome outcome) {
  struct event_list *list = calloc(1, sizeof *list);
  struct fault fault;
  struct command command = command_of(world, COMMAND_FINISH);
  command.as.finish.ref = ref_of(world, state_task(world->state, task_id));
  command.as.finish.report = (struct report){.outcome = outcome, .identity = id_of(IDENTITY, ++world->ids)};
  if (outcome == OUTCOME_SUCCEEDED) command.as.finish.report.result = bytes_text("1");
  if (outcome != OUTCOME_SUCCEEDED) command.as.finish.report.error_code = bytes_text("E");
  struct decide_env env = env_of(world, id_of(ATTEMPT, ++world->ids));
  assert_int_equal(
      decide_finish(state_task(world->state, task_id), attempt_of_task(world, task_id), &command, &env, list, &fault),
      STATUS_OK);
  append_list(world, list);
  free(list);
}

/* Tasks in every state that a few steps reach. */
static inline int open_world(void **context) {
  struct world *world = calloc(1, sizeof *world);
  world->state = state_new();
  world->history = history_new();
  world->now_us = start_us;
  make_objects(world);
  (void)submit(world, 1, NULL, "b");
  for (unsigned i = 0; i < 4; i++) {
    struct id id = submit(world, 1 + i % 2, i % 2 != 0 ? "k" : NULL, i == 2 ? "b" : NULL);
    world->now_us += 1000;
    if (i == 3) break;
    lease(world, &id);
    if (i == 0) continue;
    start(world, &id);
    finish(world, &id, i == 1 ? OUTCOME_SUCCEEDED : OUTCOME_UNKNOWN);
  }
  struct id running = submit(world, 2, "k2", NULL);
  lease(world, &running);
  start(world, &running);
  *context = world;
  return 0;
}

static inline int close_world(void **context) {
  struct world *world = *context;
  struct fault fault = {0};
  if (state_check(world->state, &fault) != STATUS_OK) fail_msg("%s", fault.message);
  state_free(world->state);
  history_free(world->history);
  for (uint64_t seq = 1; seq <= world->last_seq; seq++) buffer_clear(&world->records[seq]);
  free(world);
  return 0;
}

/* The records decoded and folded anew, up to and with seq. */
static inline struct state *folded(struct world *world, uint64_t last) {
  struct state *state = state_new();
  struct record_source source = {get, world};
  for (uint64_t seq = 1; seq <= last; seq++) {
    struct event event;
    const char *reason = "";
    assert_int_equal(history_event(world->history, source, seq, &event), STATUS_OK);
    if (!state_can_apply(state, &event, &reason)) fail_msg("%s", reason);
    state_apply(state, &event);
  }
  return state;
}

static inline bool same(const struct state *a, const struct state *b) {
  struct id left = state_digest(a), right = state_digest(b);
  return id_equal(&left, &right);
}

static inline struct task *find_in(struct world *world, enum task_state state) {
  for (uint32_t number = 1; number <= world->state->tasks.used; number++)
    if (state_task_at(world->state, number)->state == (uint8_t)state) return state_task_at(world->state, number);
  return NULL;
}

#endif
