/* Owns the world without sockets. */
#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "codec/digest.h"
#include "engine/internal.h"

/* ---- the first commit ---- */

static void stage(struct world *world, struct commit *commit, struct state *state, struct event *event) {
  const char *reason = "";
  event->common.revision = 1;
  event->common.operation_id = id_source_next(&world->ids, world->now_us);
  event->prev = state_stream_last(state, event);
  assert_int_equal(commit_add(commit, event), STATUS_OK);
  if (!state_can_apply(state, event, &reason)) fail_msg("%s", reason);
  state_apply(state, event);
}

static struct event made(struct world *world, enum event_type type, struct id *ret_id) {
  struct event_list list = {.count = 0};
  *ret_id = id_source_next(&world->ids, world->now_us);
  struct id node = journal_node_id(world->journal);
  return *event_list_add(&list, type, ret_id, ret_id, &node);
}

static struct principal credential(struct world *world, struct commit *commit, struct state *state,
                                   const struct id *namespace_id, const struct id *application_id, const struct id *scope) {
  static uint8_t hashes[8][token_hash_bytes]; /* alive until the commit is made */
  static uint8_t next;
  uint8_t *hash = hashes[next % 8];
  struct principal who = {.application_id = *application_id, .namespace_id = *namespace_id, .permissions = UINT64_MAX};
  struct event event = made(world, EVENT_credential_created, &who.credential_id);
  memset(hash, ++next, token_hash_bytes);
  event.body.credential_created.namespace_id = *namespace_id;
  event.body.credential_created.application_id = *application_id;
  event.body.credential_created.permissions = 1;
  event.body.credential_created.token_hash = bytes_of(hash, token_hash_bytes);
  if (scope != NULL) event.body.credential_created.queue_ids = bytes_of(scope->bytes, id_bytes);
  stage(world, commit, state, &event);
  return who;
}

static void make_application(struct world *world, struct commit *commit, struct state *state, struct id *ret_id) {
  struct event event = made(world, EVENT_application_created, ret_id);
  event.body.application_created.namespace_id = world->namespace_id;
  event.body.application_created.name = bytes_text("application");
  stage(world, commit, state, &event);
}

static void make_queue(struct world *world, struct commit *commit, struct state *state, struct id *ret_id,
                       uint64_t max_unfinished) {
  struct event event = made(world, EVENT_queue_created, ret_id);
  event.body.queue_created.namespace_id = world->namespace_id;
  event.body.queue_created.name = bytes_text("queue");
  event.body.queue_created.key_concurrency = 1;
  event.body.queue_created.lease_ms = lease_ms_default;
  event.body.queue_created.max_unfinished = max_unfinished;
  stage(world, commit, state, &event);
}

static void make_objects(struct world *world) {
  struct commit commit;
  struct state *state = state_new();
  struct fault fault = {0};
  commit_init(&commit);
  commit_reset(&commit, world->journal, world->now_us);
  struct event event = made(world, EVENT_namespace_created, &world->namespace_id);
  event.body.namespace_created.name = bytes_text("namespace");
  stage(world, &commit, state, &event);
  make_application(world, &commit, state, &world->application_id);
  make_application(world, &commit, state, &world->other_application_id);
  make_queue(world, &commit, state, &world->queue_id, 0);
  make_queue(world, &commit, state, &world->other_queue_id, 0);
  make_queue(world, &commit, state, &world->narrow_queue_id, 10);
  static const struct id none;
  world->who = credential(world, &commit, state, &world->namespace_id, &world->application_id, NULL);
  world->other = credential(world, &commit, state, &world->namespace_id, &world->other_application_id, NULL);
  world->narrow = credential(world, &commit, state, &world->namespace_id, &world->application_id, &world->narrow_queue_id);
  world->root = credential(world, &commit, state, &none, &none, NULL);
  assert_int_equal(journal_commit(world->journal, &commit, &fault), STATUS_OK);
  commit_clear(&commit);
  state_free(state);
}

/* ---- coming up ---- */

static enum status fold(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct state *state = context;
  const char *reason = "";
  (void)record;
  if (state_meet(state, event) != STATUS_OK) return fault_set(fault, STATUS_CORRUPT, NULL, "a row cannot be read");
  state_close_cold(state);
  if (!state_fold(state, event, &reason)) return fault_set(fault, STATUS_CORRUPT, NULL, "%s", reason);
  return STATUS_OK;
}

struct state *world_fold(struct world *world) {
  struct state *state = state_new();
  struct fault fault = {0};
  if (journal_replay(world->journal, 0, 0, fold, state, &fault) != STATUS_OK) fail_msg("replay: %s", fault.message);
  if (state_check(state, &fault) != STATUS_OK) fail_msg("check: %s", fault.message);
  return state;
}

static char *views_of(const struct world *world) {
  char *path;
  assert_true(asprintf(&path, "%s/views", world->directory) > 0);
  return path;
}

static void lend(struct world *world) {
  struct fault fault = {0};
  cleanup(guard_free) char *path = views_of(world);
  if (world->checkpoint == NULL && checkpoint_open(path, world->map_bytes != 0 ? world->map_bytes : UINT64_C(1) << 30,
                                                   world->journal, &world->checkpoint, &fault) != STATUS_OK)
    fail_msg("checkpoint: %s", fault.message);
  if (checkpoint_lend(world->checkpoint, world->cold, &fault) != STATUS_OK) fail_msg("lend: %s", fault.message);
}

/* From the checkpoint, if there is one. */
static struct state *loaded(struct world *world) {
  struct state *state;
  struct checkpoint_position position;
  struct fault fault = {0};
  cleanup(guard_free) char *path = views_of(world);
  enum status status = checkpoint_load(path, world->journal, &state, &position, &fault);
  if (status == STATUS_OK) {
    lend(world);
    state_set_cold(state, world->cold);
    if (journal_replay(world->journal, position.seq, position.chain, fold, state, &fault) != STATUS_OK)
      fail_msg("replay: %s", fault.message);
  } else if (status == STATUS_NOT_FOUND) {
    state = world_fold(world);
    lend(world);
    state_set_cold(state, world->cold);
  } else {
    fail_msg("load: %s", fault.message);
  }
  if (state_check(state, &fault) != STATUS_OK) fail_msg("check: %s", fault.message);
  return state;
}

static void come_up(struct world *world) {
  struct engine_options options = {.id_seed = 7,
                                   .version = "test",
                                   .hot_window_us = world->hot_window_us,
                                   .retention_us = world->retention_us,
                                   .memory_max = world->memory_max,
                                   .company_min = world->company_min};
  struct fault fault = {0};
  world->engine = engine_new(world->journal, world->cold != NULL ? loaded(world) : world_fold(world), &options);
  if (engine_start(world->engine, world->now_us, &fault) != STATUS_OK) fail_msg("start: %s", fault.message);
}

static struct journal *open_journal(const struct world *world, bool create) {
  struct journal_options options = {.create = create,
                                    .map_bytes = world->map_bytes != 0 ? world->map_bytes : UINT64_C(1) << 30,
                                    .reserve_bytes = UINT64_C(4) << 20};
  struct journal *journal;
  struct fault fault = {0};
  if (journal_open(world->directory, &options, &journal, &fault) != STATUS_OK) fail_msg("open: %s", fault.message);
  return journal;
}

void world_open(struct world *world) {
  memset(world, 0, sizeof *world);
  world->directory = test_directory_make();
  assert_true(time_parse(bytes_text("2026-01-01T00:00:00Z"), &world->now_us));
  id_source_init(&world->ids, 11);
  buffer_init(&world->texts, SIZE_MAX);
  assert_int_equal(outbox_init(&world->outbox), STATUS_OK);
  world->journal = open_journal(world, true);
  make_objects(world);
  come_up(world);
}

static void go_down(struct world *world) {
  engine_free(world->engine);
  if (world->checkpoint != NULL) cold_withdraw(world->cold);
  checkpoint_close(world->checkpoint);
  world->checkpoint = NULL;
  journal_close(world->journal, false);
  for (uint32_t i = 0; i < world->push_count; i++)
    world->pushes[i]->mail.kind = (enum mail_kind)0; /* whoever held one still may */
}

void world_close(struct world *world) {
  go_down(world);
  cold_free(world->cold);
  for (uint32_t i = 0; i < world->push_count; i++) push_free(world->pushes[i]);
  outbox_clear(&world->outbox);
  buffer_clear(&world->texts);
  test_directory_remove(world->directory);
}

void world_restart(struct world *world) {
  go_down(world);
  memset(world->gauges, 0, sizeof world->gauges);
  world->journal = open_journal(world, false);
  come_up(world);
}

void world_twin(struct world *twin, struct world *world) {
  char command[1024];
  go_down(world);
  *twin = *world;
  twin->directory = test_directory_make();
  twin->push_count = 0;
  memset(twin->gauges, 0, sizeof twin->gauges);
  buffer_init(&twin->texts, SIZE_MAX);
  assert_int_equal(outbox_init(&twin->outbox), STATUS_OK);
  (void)snprintf(command, sizeof command, "cp -r '%s/.' '%s'", world->directory, twin->directory);
  assert_int_equal(system(command), 0); /* NOLINT: paths of our own */
  world->journal = open_journal(world, false);
  twin->journal = open_journal(twin, false);
  come_up(world);
  come_up(twin);
}

void world_evict(struct world *world) {
  world->cold = cold_new();
  world_restart(world);
}

void world_lose_views(struct world *world) {
  cleanup(guard_free) char *path = views_of(world);
  cold_withdraw(world->cold);
  checkpoint_close(world->checkpoint);
  world->checkpoint = NULL;
  assert_int_equal(checkpoint_remove(path), STATUS_OK);
  lend(world);
}

void world_follow(struct world *world) {
  struct fault fault = {0};
  uint64_t events;
  bool more;
  do
    if (checkpoint_follow(world->checkpoint, 1000, &events, &fault) != STATUS_OK) fail_msg("follow: %s", fault.message);
  while (events != 0);
  if (checkpoint_index(world->checkpoint, world->index_min, cold_floor(world->cold), &fault) != STATUS_OK)
    fail_msg("index: %s", fault.message);
  do
    if (checkpoint_clean(world->checkpoint, cold_floor(world->cold), &more, &fault) != STATUS_OK)
      fail_msg("clean: %s", fault.message);
  while (more);
  lend(world);
}

/* ---- time ---- */

static void collect(struct world *world) {
  for (struct mail *mail = outbox_take(&world->outbox), *next; mail != NULL; mail = next) {
    next = mail->next;
    if (mail->kind == MAIL_TICKET) continue;
    assert_in_range(world->push_count, 0, sizeof world->pushes / sizeof world->pushes[0] - 1);
    world->pushes[world->push_count++] = (struct push *)mail;
  }
}

bool world_tick_once(struct world *world) {
  struct fault fault = {0};
  bool busy;
  if (engine_tick(world->engine, world->now_us, &world->next_us, &busy, &fault) != STATUS_OK)
    fail_msg("tick: %s", fault.message);
  collect(world);
  return busy || world->next_us <= world->now_us;
}

void world_tick(struct world *world) {
  while (world_tick_once(world)) continue;
}

void world_advance_ms(struct world *world, int64_t ms) {
  world->now_us += ms * 1000;
  world_tick(world);
}

/* ---- commands ---- */

void world_do_all(struct world *world, const struct command *commands, struct answer *answers, uint32_t count) {
  struct ticket *tickets = guard_calloc(count, sizeof *tickets);
  struct fault fault = {0};
  for (uint32_t i = 0; i < count; i++) {
    tickets[i].home = &world->outbox;
    tickets[i].command = commands[i];
    if (commands[i].kind == COMMAND_HELLO) tickets[i].gauge = &world->gauges[commands[i].session % world_workers_max];
    assert_int_equal(engine_submit(world->engine, &tickets[i], &fault), STATUS_OK);
  }
  world_tick(world);
  for (uint32_t i = 0; i < count; i++) answers[i] = tickets[i].answer;
  free(tickets);
}

struct answer world_do(struct world *world, const struct command *command) {
  struct answer answer;
  world_do_all(world, command, &answer, 1);
  return answer;
}

static struct bytes lasting(const char *text) { return bytes_text(text); } /* literals live for ever */

void world_identify(struct world *world, struct command *command, const char *key) {
  if (command->kind >= COMMAND_CANCEL) {
    world_identify_operation(world, command, key);
    return;
  }
  const struct secret *secret = journal_secret(world->journal);
  static const struct id none;
  if (command->kind == COMMAND_SUBMIT) {
    struct id payload;
    uint8_t hash[token_hash_bytes];
    token_hash(command->as.submit.payload, hash);
    memcpy(payload.bytes, hash, id_bytes);
    command->operation.digest = submit_digest(&command->as.submit, &payload);
    command->operation.identity = identity_make(secret, &command->who.namespace_id, "task.submit", &none, bytes_text(key));
    return;
  }
  const struct attempt_ref *ref = &command->as.ref;
  const char *operation = command_kind_text(command->kind);
  command->operation.identity =
      identity_make(secret, &command->who.namespace_id, operation, &ref->attempt_id, bytes_of(ref->message_id.bytes, id_bytes));
  if (command->kind != COMMAND_FINISH) {
    command->operation.digest = attempt_ref_digest(ref);
    return;
  }
  command->as.finish.report.identity = identity_make(secret, &command->who.namespace_id, "task.report", &ref->attempt_id,
                                                     bytes_of(command->who.application_id.bytes, id_bytes));
  command->operation.digest = finish_digest(ref, &command->as.finish.report, NULL, NULL);
}

struct command world_submit(struct world *world, const char *key) {
  struct command command = {.kind = COMMAND_SUBMIT, .who = world->who};
  command.as.submit = (struct submit_command){
      .queue_id = world->queue_id,
      .handler = lasting("h"),
      .handler_version = lasting("v1"),
      .payload_version = lasting("p1"),
      .payload = lasting("{\"n\":1.10}"),
      .task_timeout_ms = 600000,
      .recovery_safety = RECOVERY_RECONCILE_ONLY,
      .max_attempts = 3,
      .initial_delay_ms = 500,
      .max_delay_ms = 2000,
      .attempt_timeout_ms = 60000,
  };
  world_identify(world, &command, key);
  return command;
}

struct command world_ref(struct world *world, enum command_kind kind, const struct push *assign) {
  struct command command = {.kind = kind, .who = world->who, .session = assign->session};
  command.as.ref = (struct attempt_ref){.message_id = id_source_next(&world->ids, world->now_us),
                                        .task_id = assign->task_id,
                                        .attempt_id = assign->attempt_id,
                                        .epoch = assign->task.epoch};
  if (kind != COMMAND_RENEW) world_identify(world, &command, "");
  return command;
}

struct command world_finish(struct world *world, const struct push *assign, enum outcome outcome, bool retryable) {
  struct command command = world_ref(world, COMMAND_RENEW, assign);
  command.kind = COMMAND_FINISH;
  command.as.finish.report = (struct report){.outcome = outcome, .retryable = retryable};
  if (outcome == OUTCOME_SUCCEEDED) command.as.finish.report.result = lasting("{\"done\":true}");
  else command.as.finish.report.error_code = lasting("E");
  world_identify(world, &command, "");
  return command;
}

struct command world_hello_command(struct world *world, uint64_t session, uint32_t capacity) {
  static const struct handler_offer offer = {{(const uint8_t *)"h", 1}, {(const uint8_t *)"v1", 2}};
  struct command command = {.kind = COMMAND_HELLO, .who = world->who, .session = session};
  command.as.hello = (struct hello_command){
      .queue_ids = &world->queue_id, .queue_count = 1, .handlers = &offer, .handler_count = 1, .capacity = capacity};
  memset(command.as.hello.instance_id.bytes, (int)(session % 250) + 1, id_bytes);
  return command;
}

struct answer world_hello(struct world *world, uint64_t session, uint32_t capacity) {
  struct command command = world_hello_command(world, session, capacity);
  struct answer answer = world_do(world, &command);
  if (answer.status != STATUS_OK) return answer;
  free(answer.as.welcome.held);
  answer.as.welcome.held = NULL; /* held_count tells how many there were */
  return answer;
}

void world_bye(struct world *world, uint64_t session) {
  struct command command = {.kind = COMMAND_BYE, .who = world->who, .session = session};
  (void)world_do(world, &command);
}

const struct push *world_take(struct world *world, enum mail_kind kind, uint64_t session) {
  for (uint32_t i = 0; i < world->push_count; i++) {
    struct push *push = world->pushes[i];
    if (push->mail.kind != kind || (session != 0 && push->session != session)) continue;
    push->mail.kind = (enum mail_kind)0; /* taken */
    if (kind == MAIL_ASSIGN && push->weight != 0)
      (void)atomic_fetch_sub(&world->gauges[push->session % world_workers_max].unsent_bytes, push->weight);
    return push;
  }
  return NULL;
}

unsigned world_count(struct world *world, enum mail_kind kind, uint64_t session) {
  unsigned count = 0;
  for (uint32_t i = 0; i < world->push_count; i++)
    count += world->pushes[i]->mail.kind == kind && (session == 0 || world->pushes[i]->session == session);
  return count;
}

void world_forget(struct world *world) {
  for (uint32_t i = 0; i < world->push_count; i++) push_free(world->pushes[i]);
  world->push_count = 0;
  for (unsigned i = 0; i < world_workers_max; i++) atomic_store(&world->gauges[i].unsent_bytes, 0);
}

const struct attempt *world_attempt(const struct world *world, const struct id *id) {
  return state_attempt_at(world->engine->state, state_task_number(world->engine->state, id));
}

struct task world_task(struct world *world, const struct id *id) {
  struct command command = {.kind = COMMAND_GET_TASK, .who = world->who, .as.task_id = *id};
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.task;
}

void world_check(struct world *world) {
  struct fault fault = {0};
  struct state *again = world_fold(world);
  struct id live = state_digest(world->engine->state), folded_digest = state_digest(again);
  if (state_check(world->engine->state, &fault) != STATUS_OK) fail_msg("check: %s", fault.message);
  assert_string_equal(id_text(&live).text, id_text(&folded_digest).text);
  state_free(again);
}
