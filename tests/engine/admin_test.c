/* Administration: objects made and changed, tokens that come and go, repeats, reach, audit. */
#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/digest.h"
#include "engine/internal.h"

static int open_world(void **context) {
  struct world *world = malloc(sizeof *world);
  world_open(world);
  *context = world;
  return 0;
}

static int close_world(void **context) {
  world_check(*context);
  world_close(*context);
  free(*context);
  return 0;
}

static struct answer do_as(struct world *world, struct command command, const char *key) {
  world_identify(world, &command, key);
  return world_do(world, &command);
}

/* Each event of the operation is followed by an audit record of its object in the same commit. */
static void expect_audited(struct world *world, uint64_t seq, const enum event_type *expected, uint32_t count) {
  enum event_type types[16];
  assert_int_equal(world_types_after(world, seq, types, 16), count * 2);
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(types[2 * i], expected[i]);
    assert_int_equal(types[2 * i + 1], EVENT_audit_recorded);
  }
}

static enum status ask(struct world *world, const char *token, struct principal *ret_who) {
  struct fault fault = {0};
  return directory_authenticate(engine_directory(world->engine), bytes_text(token), world->now_us, ret_who, &fault);
}

static struct command new_credential(struct world *world, const char *token, uint8_t hash[token_hash_bytes]) {
  struct command command = world_credential(world, COMMAND_CREDENTIAL_CREATE, NULL);
  token_hash(bytes_text(token), hash);
  command.as.credential.application_id = world->application_id;
  command.as.credential.name = bytes_text("robot");
  command.as.credential.permissions = UINT64_C(1) << PERMISSION_TASKS_SUBMIT;
  command.as.credential.token_hash = bytes_of(hash, token_hash_bytes);
  return command;
}

/* ---- queues ---- */

static void a_queue_is_made_changed_paused_resumed(void **context) {
  struct world *world = *context;
  struct command command = world_queue(world, COMMAND_QUEUE_CREATE, NULL);
  command.as.queue.name = bytes_text("mail");
  command.as.queue.max_running = 7;
  uint64_t seq = journal_last_seq(world->journal);
  struct answer made = do_as(world, command, "q");
  assert_true(made.status == STATUS_OK && made.created && !made.deduplicated);
  expect_audited(world, seq, (const enum event_type[]){EVENT_queue_created}, 1);
  struct queue *queue = &made.as.queue;
  assert_true(queue->revision == 1 && queue->max_running == 7 && queue->key_concurrency == 1 && queue->max_unfinished == 0 &&
              queue->rate.tasks == 0 && queue->lease_ms == lease_ms_default && !queue->paused);
  assert_true(id_equal(&queue->namespace_id, &world->namespace_id));
  struct id id = queue->id;

  struct command change = world_queue(world, COMMAND_QUEUE_CHANGE, &id);
  change.as.queue.expected_revision = 1;
  change.as.queue.given = GIVEN_MAX_RUNNING | GIVEN_RATE | GIVEN_LEASE_MS | GIVEN_KEY_CONCURRENCY;
  change.as.queue.max_running = 0; /* taken away */
  change.as.queue.rate_tasks = 5;
  change.as.queue.rate_per_ms = 1000;
  change.as.queue.rate_burst = 2;
  change.as.queue.lease_ms = lease_ms_min;
  change.as.queue.key_concurrency = 3;
  seq = journal_last_seq(world->journal);
  struct answer changed = do_as(world, change, "c");
  assert_true(changed.status == STATUS_OK && changed.created);
  expect_audited(world, seq, (const enum event_type[]){EVENT_queue_changed}, 1);
  queue = &changed.as.queue;
  assert_true(queue->revision == 2 && queue->max_running == 0 && queue->rate.tasks == 5 && queue->rate.burst == 2 &&
              queue->lease_ms == lease_ms_min && queue->key_concurrency == 3);
  change.as.queue.given = GIVEN_NAME;
  change.as.queue.name = bytes_text("post");
  struct answer stale = do_as(world, change, "c2");
  assert_int_equal(stale.status, STATUS_STATE_CONFLICT);
  assert_string_equal(stale.fault.field, "/expected_revision");
  change.as.queue.expected_revision = 2;
  changed = do_as(world, change, "c2");
  assert_true(changed.status == STATUS_OK && changed.as.queue.revision == 3 &&
              changed.as.queue.rate.tasks == 5); /* the rest stays */

  seq = journal_last_seq(world->journal);
  struct answer paused = do_as(world, world_queue(world, COMMAND_QUEUE_PAUSE, &id), "p");
  assert_true(paused.status == STATUS_OK && paused.as.queue.paused && paused.as.queue.revision == 4);
  expect_audited(world, seq, (const enum event_type[]){EVENT_queue_paused}, 1);
  assert_int_equal(do_as(world, world_queue(world, COMMAND_QUEUE_PAUSE, &id), "p2").status, STATUS_STATE_CONFLICT);
  struct answer resumed = do_as(world, world_queue(world, COMMAND_QUEUE_RESUME, &id), "r");
  assert_true(resumed.status == STATUS_OK && !resumed.as.queue.paused && resumed.as.queue.revision == 5);
  assert_int_equal(do_as(world, world_queue(world, COMMAND_QUEUE_RESUME, &id), "r2").status, STATUS_STATE_CONFLICT);
}

/* Repeats after a restart give the first answers: what was configured then, nothing live. */
static void repeats_show_what_was_configured_then(void **context) {
  struct world *world = *context;
  struct command create = world_queue(world, COMMAND_QUEUE_CREATE, NULL);
  create.as.queue.name = bytes_text("mail");
  create.as.queue.max_running = 7;
  struct answer made = do_as(world, create, "q");
  struct id id = made.as.queue.id;
  struct command change = world_queue(world, COMMAND_QUEUE_CHANGE, &id);
  change.as.queue.expected_revision = 1;
  change.as.queue.given = GIVEN_RATE;
  change.as.queue.rate_tasks = 5;
  change.as.queue.rate_per_ms = 1000;
  struct answer changed = do_as(world, change, "c");
  struct answer paused = do_as(world, world_queue(world, COMMAND_QUEUE_PAUSE, &id), "p");
  assert_int_equal(do_as(world, world_queue(world, COMMAND_QUEUE_RESUME, &id), "r").status, STATUS_OK);
  struct command submission = world_submit(world, "k");
  submission.as.submit.queue_id = id;
  world_identify(world, &submission, "k");
  assert_int_equal(world_do(world, &submission).status, STATUS_OK);
  world_restart(world);
  uint64_t seq = journal_last_seq(world->journal);
  const struct {
    struct command command;
    const char *key;
    const struct answer *first;
  } rows[] = {{create, "q", &made}, {change, "c", &changed}, {world_queue(world, COMMAND_QUEUE_PAUSE, &id), "p", &paused}};
  for (size_t i = 0; i < 3; i++) {
    struct answer again = do_as(world, rows[i].command, rows[i].key);
    assert_true(again.status == STATUS_OK && again.deduplicated && !again.created);
    assert_memory_equal(&again.as.queue, &rows[i].first->as.queue, sizeof again.as.queue);
    assert_int_equal(again.as.queue.revision, i + 1);
    assert_int_equal(again.as.queue.counts[TASK_WAITING], 0);
  }
  create.as.queue.max_running = 8;
  assert_int_equal(do_as(world, create, "q").status, STATUS_IDEMPOTENCY_CONFLICT);
  assert_int_equal(journal_last_seq(world->journal), seq);
  struct queue live = world_get_queue(world, &id);
  assert_true(live.revision == 4 && live.counts[TASK_WAITING] == 1);
}

static void a_name_survives_a_change_in_the_same_tick(void **context) {
  struct world *world = *context;
  struct command create = world_queue(world, COMMAND_QUEUE_CREATE, NULL);
  create.as.queue.name = bytes_text("a name that must not be lost");
  struct answer made = do_as(world, create, "q");
  struct command commands[3];
  struct answer answers[3];
  for (unsigned i = 0; i < 3; i++) { /* each reads the name from the commit that is being made */
    const char key[] = {'k', (char)('0' + i), 0};
    commands[i] = world_queue(world, COMMAND_QUEUE_CHANGE, &made.as.queue.id);
    commands[i].as.queue.expected_revision = i + 1;
    commands[i].as.queue.given = GIVEN_MAX_RUNNING;
    commands[i].as.queue.max_running = i + 1;
    world_identify(world, &commands[i], key);
  }
  world_do_all(world, commands, answers, 3);
  for (unsigned i = 0; i < 3; i++) assert_int_equal(answers[i].status, STATUS_OK);
  struct journal_reader *reader;
  struct history *history = history_new();
  struct event event;
  assert_int_equal(journal_reader_new(world->journal, &reader), STATUS_OK);
  assert_int_equal(history_event(history, record_source_of_reader(reader), answers[2].as.queue.config_seq, &event), STATUS_OK);
  assert_true(bytes_equal(event.body.queue_changed.name, bytes_text("a name that must not be lost")));
  journal_reader_free(reader);
  history_free(history);
}

/* ---- applications ---- */

static void a_disabled_application_is_locked_out_at_once(void **context) {
  struct world *world = *context;
  struct command create = world_application(world, COMMAND_APPLICATION_CREATE, NULL);
  create.as.application.name = bytes_text("shop");
  create.as.application.max_unfinished = 100;
  uint64_t seq = journal_last_seq(world->journal);
  struct answer made = do_as(world, create, "a");
  assert_true(made.status == STATUS_OK && made.created && made.as.application.max_unfinished == 100 &&
              !made.as.application.disabled);
  expect_audited(world, seq, (const enum event_type[]){EVENT_application_created}, 1);
  struct id id = made.as.application.id;
  uint8_t hash[token_hash_bytes];
  struct principal who, before;
  struct command credential = new_credential(world, "shop-token", hash);
  credential.as.credential.application_id = id;
  assert_int_equal(do_as(world, credential, "c").status, STATUS_OK);
  assert_int_equal(ask(world, "shop-token", &before), STATUS_OK);
  uint64_t generation = directory_generation(engine_directory(world->engine));

  struct command change = world_application(world, COMMAND_APPLICATION_CHANGE, &id);
  change.as.application.expected_revision = 1;
  change.as.application.given = GIVEN_DISABLED;
  change.as.application.disabled = true;
  struct answer disabled = do_as(world, change, "d");
  assert_true(disabled.status == STATUS_OK && disabled.as.application.disabled && disabled.as.application.revision == 2 &&
              disabled.as.application.max_unfinished == 100);
  assert_int_equal(ask(world, "shop-token", &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(directory_check(engine_directory(world->engine), &before, world->now_us), STATUS_UNAUTHENTICATED);
  assert_true(directory_generation(engine_directory(world->engine)) > generation); /* open channels look again */
  world_restart(world);
  assert_int_equal(ask(world, "shop-token", &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(do_as(world, change, "d2").status, STATUS_STATE_CONFLICT);
  change.as.application.expected_revision = 2;
  change.as.application.disabled = false;
  assert_int_equal(do_as(world, change, "e").status, STATUS_OK);
  assert_int_equal(ask(world, "shop-token", &who), STATUS_OK);
  change.as.application.expected_revision = 1;
  change.as.application.disabled = true;
  struct answer again = do_as(world, change, "d"); /* the first answer; the application stays as it is now */
  assert_true(again.deduplicated && again.as.application.disabled && again.as.application.revision == 2);
  assert_int_equal(ask(world, "shop-token", &who), STATUS_OK);
}

/* ---- credentials ---- */

static void tokens_come_and_go(void **context) {
  struct world *world = *context;
  uint8_t first[token_hash_bytes], second[token_hash_bytes], third[token_hash_bytes];
  struct principal who, old;
  struct command create = new_credential(world, "token-1", first);
  create.as.credential.queue_ids = bytes_of(world->narrow_queue_id.bytes, id_bytes);
  uint64_t seq = journal_last_seq(world->journal);
  struct answer made = do_as(world, create, "c");
  assert_true(made.status == STATUS_OK && made.created && made.as.credential.revision == 1 && !made.as.credential.revoked);
  assert_null(made.as.credential.queue_ids);
  expect_audited(world, seq, (const enum event_type[]){EVENT_credential_created}, 1);
  struct id id = made.as.credential.id;
  assert_int_equal(ask(world, "token-1", &old), STATUS_OK);
  assert_true(id_equal(&old.credential_id, &id) && id_equal(&old.application_id, &world->application_id));
  assert_int_equal(old.permissions, UINT64_C(1) << PERMISSION_TASKS_SUBMIT);

  struct command submission = world_submit(world, "k"); /* its scope holds */
  submission.who = old;
  assert_int_equal(world_do(world, &submission).status, STATUS_NOT_FOUND);
  submission.as.submit.queue_id = world->narrow_queue_id;
  world_identify(world, &submission, "k");
  assert_int_equal(world_do(world, &submission).status, STATUS_OK);

  struct command rotate = world_credential(world, COMMAND_CREDENTIAL_ROTATE, &id);
  token_hash(bytes_text("token-2"), second);
  rotate.as.credential.token_hash = bytes_of(second, token_hash_bytes);
  struct answer rotated = do_as(world, rotate, "r");
  assert_true(rotated.status == STATUS_OK && rotated.created && rotated.as.credential.revision == 2);
  assert_int_equal(ask(world, "token-1", &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(ask(world, "token-2", &who), STATUS_OK);
  assert_int_equal(directory_check(engine_directory(world->engine), &old, world->now_us), STATUS_UNAUTHENTICATED);
  assert_int_equal(directory_check(engine_directory(world->engine), &who, world->now_us), STATUS_OK);

  world_restart(world);
  assert_int_equal(ask(world, "token-1", &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(ask(world, "token-2", &who), STATUS_OK);
  token_hash(bytes_text("token-3"), third); /* a repeat makes a new token, which must not count */
  rotate.as.credential.token_hash = bytes_of(third, token_hash_bytes);
  struct answer again = do_as(world, rotate, "r");
  assert_true(again.status == STATUS_OK && again.deduplicated && !again.created && again.as.credential.revision == 2);
  assert_int_equal(ask(world, "token-3", &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(ask(world, "token-2", &who), STATUS_OK);
  create.as.credential.token_hash = bytes_of(third, token_hash_bytes);
  again = do_as(world, create, "c");
  assert_true(again.deduplicated && id_equal(&again.as.credential.id, &id) && again.as.credential.revision == 1);
  assert_int_equal(ask(world, "token-3", &who), STATUS_UNAUTHENTICATED);

  seq = journal_last_seq(world->journal);
  struct answer revoked = do_as(world, world_credential(world, COMMAND_CREDENTIAL_REVOKE, &id), "x");
  assert_true(revoked.status == STATUS_OK && revoked.as.credential.revoked && revoked.as.credential.revision == 3);
  expect_audited(world, seq, (const enum event_type[]){EVENT_credential_revoked}, 1);
  assert_int_equal(ask(world, "token-2", &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(do_as(world, world_credential(world, COMMAND_CREDENTIAL_REVOKE, &id), "x2").status, STATUS_STATE_CONFLICT);
  assert_int_equal(do_as(world, rotate, "r2").status, STATUS_STATE_CONFLICT); /* for ever */
  world_restart(world);
  assert_int_equal(ask(world, "token-2", &who), STATUS_UNAUTHENTICATED);
  assert_true(do_as(world, world_credential(world, COMMAND_CREDENTIAL_REVOKE, &id), "x").deduplicated);
}

static void a_credential_reaches_only_what_its_maker_does(void **context) {
  struct world *world = *context;
  uint8_t hash[token_hash_bytes];
  struct command create = new_credential(world, "t", hash);
  create.as.credential.application_id.bytes[3] ^= 1;
  struct answer answer = do_as(world, create, "1");
  assert_int_equal(answer.status, STATUS_NOT_FOUND);
  assert_string_equal(answer.fault.field, "/application_id");
  struct id queues[2] = {world->queue_id, world->queue_id};
  queues[1].bytes[0] ^= 1;
  create = new_credential(world, "t", hash);
  create.as.credential.queue_ids = bytes_of(queues[0].bytes, sizeof queues);
  answer = do_as(world, create, "1");
  assert_int_equal(answer.status, STATUS_NOT_FOUND);
  assert_string_equal(answer.fault.field, "/queue_ids");
  create.who = world->narrow; /* whose scope does not hold the queue */
  create.as.credential.queue_ids = bytes_of(world->queue_id.bytes, id_bytes);
  assert_int_equal(do_as(world, create, "1").status, STATUS_NOT_FOUND);
  create.as.credential.queue_ids = bytes_of(world->narrow_queue_id.bytes, id_bytes);
  assert_int_equal(do_as(world, create, "1").status, STATUS_OK);
  create.as.credential.queue_ids = (struct bytes){NULL, 0}; /* every queue, by one who reaches one: would be more than he has */
  assert_int_equal(do_as(world, create, "2").status, STATUS_PERMISSION_DENIED);
  struct command rotate = world_credential(world, COMMAND_CREDENTIAL_ROTATE, &world->who.credential_id);
  uint8_t other[token_hash_bytes];
  token_hash(bytes_text("stolen"), other);
  rotate.as.credential.token_hash = bytes_of(other, token_hash_bytes);
  rotate.who = world->narrow;
  assert_int_equal(do_as(world, rotate, "r").status,
                   STATUS_PERMISSION_DENIED); /* nor take over the token of one who has more */
  rotate.as.credential.id = world->narrow.credential_id;
  assert_int_equal(do_as(world, rotate, "r").status, STATUS_OK);
  create = new_credential(world, "t", hash);
  create.as.credential.expires_at = world->now_us;
  answer = do_as(world, create, "3");
  assert_int_equal(answer.status, STATUS_INVALID_ARGUMENT);
  assert_string_equal(answer.fault.field, "/expires_at");
  create.as.credential.expires_at = world->now_us + 1;
  assert_int_equal(do_as(world, create, "3").status, STATUS_OK);
}

/* ---- namespaces ---- */

static void a_namespace_comes_whole(void **context) {
  struct world *world = *context;
  uint8_t hash[token_hash_bytes];
  struct command create = {.kind = COMMAND_NAMESPACE_CREATE, .who = world->root};
  token_hash(bytes_text("admin-token"), hash);
  create.as.namespace_.name = bytes_text("another tenant");
  create.as.namespace_.token_hash = bytes_of(hash, token_hash_bytes);
  uint64_t seq = journal_last_seq(world->journal);
  struct answer made = do_as(world, create, "n");
  assert_true(made.status == STATUS_OK && made.created);
  expect_audited(world, seq,
                 (const enum event_type[]){EVENT_namespace_created, EVENT_application_created, EVENT_credential_created}, 3);
  const struct namespace_made *space = &made.as.namespace_made;
  assert_int_equal(space->created_seq, seq + 1);
  assert_true(id_equal(&space->application.namespace_id, &space->id) && id_equal(&space->credential.namespace_id, &space->id) &&
              id_equal(&space->credential.application_id, &space->application.id));
  struct principal admin;
  assert_int_equal(ask(world, "admin-token", &admin), STATUS_OK);
  assert_true(id_equal(&admin.namespace_id, &space->id));
  assert_int_equal(admin.permissions, permissions_expand(UINT64_C(1) << PERMISSION_ADMIN));
  world_restart(world);
  struct answer again = do_as(world, create, "n");
  assert_true(again.deduplicated && !again.created);
  const struct namespace_made *told = &again.as.namespace_made;
  assert_true(id_equal(&told->id, &space->id) && told->created_seq == space->created_seq);
  assert_true(id_equal(&told->application.id, &space->application.id) &&
              id_equal(&told->application.namespace_id, &space->id) && !told->application.disabled);
  assert_true(told->application.revision == 1 && told->application.config_seq == space->application.config_seq);
  assert_true(id_equal(&told->credential.id, &space->credential.id) && id_equal(&told->credential.namespace_id, &space->id) &&
              id_equal(&told->credential.application_id, &space->application.id));
  assert_true(told->credential.permissions == space->credential.permissions && told->credential.revision == 1 &&
              told->credential.config_seq == space->credential.config_seq && told->credential.queue_ids == NULL);

  /* The new administrator works in the new namespace and sees nothing of the old one. */
  struct command queue = world_queue(world, COMMAND_QUEUE_CREATE, NULL);
  queue.who = admin;
  queue.as.queue.name = bytes_text("theirs");
  struct answer theirs = do_as(world, queue, "q");
  assert_true(theirs.status == STATUS_OK && id_equal(&theirs.as.queue.namespace_id, &space->id));
  struct command pause = world_queue(world, COMMAND_QUEUE_PAUSE, &world->queue_id);
  pause.who = admin;
  assert_int_equal(do_as(world, pause, "p").status, STATUS_NOT_FOUND);
  pause = world_queue(world, COMMAND_QUEUE_PAUSE, &theirs.as.queue.id);
  assert_int_equal(do_as(world, pause, "p").status, STATUS_NOT_FOUND); /* nor the other way round */
  pause.who = admin;
  assert_int_equal(do_as(world, pause, "p").status, STATUS_OK);
}

/* ---- reach ---- */

static void outside_of_namespace_and_scope_nothing_is_there(void **context) {
  struct world *world = *context;
  struct principal stranger = world->who;
  memset(stranger.namespace_id.bytes, 7, id_bytes);
  uint64_t seq = journal_last_seq(world->journal);
  const struct {
    enum command_kind kind;
    struct principal who;
    struct id id;
  } rows[] = {
      {COMMAND_QUEUE_CHANGE, stranger, world->queue_id},
      {COMMAND_QUEUE_PAUSE, stranger, world->queue_id},
      {COMMAND_QUEUE_RESUME, stranger, world->queue_id},
      {COMMAND_QUEUE_CHANGE, world->narrow, world->queue_id},
      {COMMAND_QUEUE_PAUSE, world->narrow, world->other_queue_id},
      {COMMAND_GET_QUEUE, stranger, world->queue_id},
      {COMMAND_GET_QUEUE, world->narrow, world->queue_id},
      {COMMAND_GET_QUEUE, world->who, world->application_id}, /* an id of another kind */
      {COMMAND_APPLICATION_CHANGE, stranger, world->application_id},
      {COMMAND_APPLICATION_CHANGE, world->who, world->queue_id},
      {COMMAND_GET_APPLICATION, stranger, world->application_id},
      {COMMAND_CREDENTIAL_ROTATE, stranger, world->who.credential_id},
      {COMMAND_CREDENTIAL_REVOKE, stranger, world->who.credential_id},
      {COMMAND_CREDENTIAL_REVOKE, world->who, world->root.credential_id}, /* the root's is nobody's */
      {COMMAND_GET_CREDENTIAL, stranger, world->who.credential_id},
      {COMMAND_GET_CREDENTIAL, world->who, world->root.credential_id},
      {COMMAND_GET_CREDENTIAL, world->who, world->queue_id},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct command command = {.kind = rows[i].kind, .who = rows[i].who};
    if (rows[i].kind >= COMMAND_GET_QUEUE) command.as.object_id = rows[i].id;
    else if (rows[i].kind <= COMMAND_APPLICATION_CHANGE)
      command.as.application = (struct application_command){.id = rows[i].id, .expected_revision = 1, .given = GIVEN_DISABLED};
    else if (rows[i].kind >= COMMAND_CREDENTIAL_CREATE) command.as.credential.id = rows[i].id;
    else command.as.queue = (struct queue_command){.id = rows[i].id, .expected_revision = 1, .given = GIVEN_MAX_RUNNING};
    if (rows[i].kind < COMMAND_LIST_TASKS) world_identify(world, &command, "k");
    assert_int_equal(world_do(world, &command).status, STATUS_NOT_FOUND);
  }
  assert_int_equal(journal_last_seq(world->journal), seq);
}

/* Twenty changes of one revision at once: one is made. */
static void changes_race_for_a_revision(void **context) {
  struct world *world = *context;
  struct command commands[20];
  struct answer answers[20];
  for (unsigned i = 0; i < 20; i++) {
    const char key[] = {'k', (char)('a' + i), 0};
    commands[i] = world_queue(world, COMMAND_QUEUE_CHANGE, &world->queue_id);
    commands[i].as.queue.expected_revision = 1;
    commands[i].as.queue.given = GIVEN_MAX_RUNNING;
    commands[i].as.queue.max_running = 100 + i;
    world_identify(world, &commands[i], key);
  }
  world_do_all(world, commands, answers, 20);
  for (unsigned i = 0; i < 20; i++) assert_int_equal(answers[i].status, i == 0 ? STATUS_OK : STATUS_STATE_CONFLICT);
  assert_int_equal(world_get_queue(world, &world->queue_id).max_running, 100);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(a_queue_is_made_changed_paused_resumed),
      ROW(repeats_show_what_was_configured_then),
      ROW(a_name_survives_a_change_in_the_same_tick),
      ROW(a_disabled_application_is_locked_out_at_once),
      ROW(tokens_come_and_go),
      ROW(a_credential_reaches_only_what_its_maker_does),
      ROW(a_namespace_comes_whole),
      ROW(outside_of_namespace_and_scope_nothing_is_there),
      ROW(changes_race_for_a_revision),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
