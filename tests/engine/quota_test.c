/* Shares of unfinished tasks under races; the batch of submissions. */
#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static struct command submission(struct world *world, unsigned number, const struct id *queue_id) {
  char key[16];
  (void)snprintf(key, sizeof key, "s%u", number);
  struct command command = world_submit(world, key);
  command.as.submit.queue_id = *queue_id;
  world_identify(world, &command, key);
  return command;
}

static void limit_application(struct world *world, const struct id *application_id, uint64_t revision, uint64_t limit) {
  struct command command = world_application(world, COMMAND_APPLICATION_CHANGE, application_id);
  command.as.application.expected_revision = revision;
  command.as.application.given = GIVEN_MAX_UNFINISHED;
  command.as.application.max_unfinished = limit;
  char key[16];
  (void)snprintf(key, sizeof key, "limit%u", (unsigned)revision);
  world_identify(world, &command, key);
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
}

static unsigned count_ok(const struct answer *answers, unsigned count, enum status otherwise) {
  unsigned ok = 0;
  for (unsigned i = 0; i < count; i++) {
    ok += answers[i].status == STATUS_OK;
    if (answers[i].status == STATUS_OK) continue;
    assert_int_equal(answers[i].status, otherwise);
    assert_true(answers[i].fault.retry_after_ms > 0);
  }
  return ok;
}

static void forty_race_for_ten_places(void **context) {
  struct world *world = *context;
  struct command commands[40];
  struct answer answers[40];
  for (unsigned i = 0; i < 40; i++) commands[i] = submission(world, i, &world->narrow_queue_id);
  world_do_all(world, commands, answers, 40);
  assert_int_equal(count_ok(answers, 40, STATUS_QUEUE_FULL), 10);
  world_restart(world);
  world_do_all(world, commands, answers, 40); /* the ten are known, for the others there is no place still */
  assert_int_equal(count_ok(answers, 40, STATUS_QUEUE_FULL), 10);
  for (unsigned i = 0; i < 10; i++) assert_true(answers[i].deduplicated);
  struct command cancel = world_cancel(world, &answers[0].as.task.id, "c"); /* one place, in the same tick */
  struct command race[3] = {commands[20], cancel, commands[21]};
  world_do_all(world, race, answers, 3);
  assert_int_equal(answers[0].status, STATUS_QUEUE_FULL);
  assert_true(answers[1].status == STATUS_OK && answers[2].status == STATUS_OK && answers[2].created);
}

static void an_application_has_its_share(void **context) {
  struct world *world = *context;
  limit_application(world, &world->application_id, 1, 10);
  struct command commands[40];
  struct answer answers[40];
  for (unsigned i = 0; i < 40; i++) {
    commands[i] = submission(world, i, i % 2 != 0 ? &world->queue_id : &world->other_queue_id);
  }
  world_do_all(world, commands, answers, 40);
  assert_int_equal(count_ok(answers, 40, STATUS_APPLICATION_FULL), 10);
  struct command other = submission(world, 77, &world->queue_id);
  other.who = world->other; /* another application is not hindered */
  assert_int_equal(world_do(world, &other).status, STATUS_OK);
  limit_application(world, &world->application_id, 2, 5); /* lowered below what is there: only what is new is refused */
  world_restart(world);
  other = submission(world, 78, &world->queue_id);
  assert_int_equal(world_do(world, &other).status, STATUS_APPLICATION_FULL);
  limit_application(world, &world->application_id, 3, 11);
  assert_int_equal(world_do(world, &other).status, STATUS_OK);
  limit_application(world, &world->application_id, 4, 0);
  other = submission(world, 79, &world->queue_id);
  assert_int_equal(world_do(world, &other).status, STATUS_OK);
}

/* NEEDS_REVIEW holds its place; the review gives it back. */
static void what_needs_review_counts(void **context) {
  struct world *world = *context;
  struct queue_command change = {.given = GIVEN_MAX_UNFINISHED, .max_unfinished = 1};
  (void)world_change_queue(world, &world->queue_id, &change);
  struct task task = world_submitted(world, "k");
  struct push push = *world_assigned(world, 1);
  world_start(world, &push);
  world_advance_ms(world, lease_ms_default);
  struct command next = submission(world, 1, &world->queue_id);
  assert_int_equal(world_do(world, &next).status, STATUS_QUEUE_FULL);
  struct command review = world_review(world, &task.id, 4, OUTCOME_FAILED, "r");
  assert_int_equal(world_do(world, &review).status, STATUS_OK);
  assert_int_equal(world_do(world, &next).status, STATUS_OK);
  struct command retry = world_retry(world, &task.id, 5, "t"); /* full: no child, and nothing is kept of the request */
  uint64_t seq = journal_last_seq(world->journal);
  struct answer refused = world_do(world, &retry);
  assert_true(refused.status == STATUS_QUEUE_FULL && refused.fault.retry_after_ms > 0);
  assert_int_equal(journal_last_seq(world->journal), seq);
  assert_false(world_task(world, &task.id).retried);
  change.max_unfinished = 2;
  (void)world_change_queue(world, &world->queue_id, &change);
  struct answer answer = world_do(world, &retry);
  assert_true(answer.status == STATUS_OK && answer.created);
  change.max_unfinished = 1;
  (void)world_change_queue(world, &world->queue_id, &change);
  assert_true(world_do(world, &retry).deduplicated); /* known: fullness is no matter */
}

/* The child counts against the application of the original, whoever asks for the retry. */
static void a_retry_counts_for_the_original_application(void **context) {
  struct world *world = *context;
  struct task task = world_submitted(world, "k");
  struct command cancel = world_cancel(world, &task.id, "c");
  (void)world_do(world, &cancel);
  (void)world_submitted(world, "other");
  limit_application(world, &world->application_id, 1, 1);
  struct command retry = world_retry(world, &task.id, 2, "t");
  retry.who = world->other;
  assert_int_equal(world_do(world, &retry).status, STATUS_APPLICATION_FULL);
  limit_application(world, &world->application_id, 2, 2);
  assert_int_equal(world_do(world, &retry).status, STATUS_OK);
  struct command get = {.kind = COMMAND_GET_APPLICATION, .who = world->who, .as.object_id = world->application_id};
  assert_int_equal(world_do(world, &get).as.application.unfinished, 2);
  get.as.object_id = world->other_application_id;
  assert_int_equal(world_do(world, &get).as.application.unfinished, 0);
}

/* ---- batch ---- */

static struct command batch_of(struct world *world, struct batch_item *items, uint32_t count) {
  return (struct command){.kind = COMMAND_BATCH, .who = world->who, .as.batch = {items, count}};
}

static void items_fail_one_by_one(void **context) {
  struct world *world = *context;
  struct batch_item *items = calloc(20, sizeof *items);
  struct command single = submission(world, 3, &world->narrow_queue_id);
  struct answer known = world_do(world, &single);
  for (unsigned i = 0; i < 20; i++) items[i].command = submission(world, i, &world->narrow_queue_id);
  items[5].command.as.submit.queue_id.bytes[0] ^= 1; /* no such queue */
  items[6].command = items[4].command;               /* the same identity twice in one batch */
  items[7].command.as.submit.available_at = world->now_us + INT64_C(3600000000);
  world_identify(world, &items[7].command, "late"); /* after its deadline */
  items[8].answer.status = STATUS_INVALID_ARGUMENT; /* refused by whoever read it */
  items[8].answer.fault.status = STATUS_INVALID_ARGUMENT;
  items[9].command = submission(world, 3, &world->narrow_queue_id);
  items[9].command.as.submit.priority = 5;
  world_identify(world, &items[9].command, "s3"); /* other content */
  struct journal_stats before, after;
  journal_stats(world->journal, &before);
  struct command batch = batch_of(world, items, 20);
  assert_int_equal(world_do(world, &batch).status, STATUS_OK);
  journal_stats(world->journal, &after);
  assert_int_equal(after.commits - before.commits, 1);
  static const enum status expected[] = {
      STATUS_OK,
      STATUS_OK,
      STATUS_OK,
      STATUS_OK, /* known from the single route */
      STATUS_OK,
      STATUS_NOT_FOUND,
      STATUS_OK,
      STATUS_INVALID_ARGUMENT,
      STATUS_INVALID_ARGUMENT,
      STATUS_IDEMPOTENCY_CONFLICT,
      STATUS_OK,
      STATUS_OK,
      STATUS_OK,
      STATUS_OK,
      STATUS_OK,
      STATUS_QUEUE_FULL,
      STATUS_QUEUE_FULL,
      STATUS_QUEUE_FULL,
      STATUS_QUEUE_FULL,
      STATUS_QUEUE_FULL,
  };
  for (unsigned i = 0; i < 20; i++) {
    assert_int_equal(items[i].answer.status, expected[i]);
    if (expected[i] != STATUS_OK) continue;
    assert_int_equal(items[i].answer.deduplicated, i == 3 || i == 6);
    assert_int_equal(items[i].answer.created, i != 3 && i != 6);
  }
  assert_true(id_equal(&items[3].answer.as.task.id, &known.as.task.id));
  assert_true(id_equal(&items[6].answer.as.task.id, &items[4].answer.as.task.id));
  assert_string_equal(items[7].answer.fault.field, "/available_at");
  single = submission(world, 12, &world->narrow_queue_id); /* and the other way round */
  struct answer again = world_do(world, &single);
  assert_true(again.deduplicated && id_equal(&again.as.task.id, &items[12].answer.as.task.id));
  world_restart(world);
  for (unsigned i = 0; i < 20; i++) items[i].answer = (struct answer){.status = STATUS_OK};
  batch = batch_of(world, items, 15); /* the whole batch again: nothing new */
  uint64_t seq = journal_last_seq(world->journal);
  assert_int_equal(world_do(world, &batch).status, STATUS_OK);
  assert_int_equal(journal_last_seq(world->journal), seq);
  for (unsigned i = 0; i < 15; i++)
    if (expected[i] == STATUS_OK) assert_true(items[i].answer.deduplicated);
  free(items);
}

static void a_thousand_items_are_one_commit(void **context) {
  struct world *world = *context;
  struct batch_item *items = calloc(batch_items_max, sizeof *items);
  for (unsigned i = 0; i < batch_items_max; i++) items[i].command = submission(world, i, &world->queue_id);
  struct journal_stats before, after;
  journal_stats(world->journal, &before);
  struct command batch = batch_of(world, items, batch_items_max);
  assert_int_equal(world_do(world, &batch).status, STATUS_OK);
  journal_stats(world->journal, &after);
  assert_int_equal(after.commits - before.commits, 1);
  for (unsigned i = 0; i < batch_items_max; i++) {
    assert_true(items[i].answer.status == STATUS_OK && items[i].answer.created);
    if (i > 0) assert_true(id_compare(&items[i - 1].answer.as.task.id, &items[i].answer.as.task.id) < 0); /* in order */
  }
  free(items);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(forty_race_for_ten_places), ROW(an_application_has_its_share),
      ROW(what_needs_review_counts),  ROW(a_retry_counts_for_the_original_application),
      ROW(items_fail_one_by_one),     ROW(a_thousand_items_are_one_commit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
