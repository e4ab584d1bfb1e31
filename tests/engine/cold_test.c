/* Where a task is kept is never seen: random lives in a world that keeps all in memory and in one where what has ended leaves
 * it at once, with restarts, repeats, late reports and manual retries; answer for answer, page for page. */
#include "engine/cold_pair.h"

#include <unistd.h>

enum { tasks_max = 400, held_max = 128, said_max = 128, schedules_max = 6 };

struct walk {
  struct pair *pair;
  struct id tasks[tasks_max];
  unsigned count, keys;
  struct push held[held_max];
  unsigned holding;
  struct command said[said_max]; /* of all kinds, to be said again */
  unsigned said_count;
  struct id schedules[schedules_max];
  unsigned schedule_count;
};

static uint64_t roll(struct walk *walk, uint64_t sides) { return test_random(&walk->pair->random) % sides; }

static const char *new_key(struct walk *walk) {
  static char texts[16][24];
  char *text = texts[walk->keys % 16];
  (void)snprintf(text, sizeof texts[0], "c%u", walk->keys++);
  return text;
}

static struct answer say(struct walk *walk, const struct command *command) {
  struct answer answer = do_both(walk->pair, command);
  if (!id_is_zero(&command->operation.identity))
    walk->said[walk->said_count < said_max ? walk->said_count++ : roll(walk, said_max)] = *command;
  return answer;
}

static void know(struct walk *walk, const struct id *id) {
  walk->tasks[walk->count < tasks_max ? walk->count++ : roll(walk, tasks_max)] = *id;
}

static void step_submit(struct walk *walk) {
  static const char *const handlers[] = {"h", "h", "h", "other"};
  static const char *const names[] = {"k1", "k2", "k3"};
  struct world *world = &walk->pair->hot;
  struct command command = world_submit(world, "");
  struct submit_command *submit = &command.as.submit;
  submit->handler = bytes_text(handlers[roll(walk, 4)]);
  submit->max_attempts = 1 + (uint32_t)roll(walk, 3);
  if (roll(walk, 4) == 0) submit->queue_id = world->other_queue_id;
  if (roll(walk, 3) == 0) submit->concurrency_key = bytes_text(names[roll(walk, 3)]);
  if (roll(walk, 2) == 0) submit->business_key = bytes_text(names[roll(walk, 3)]);
  if (roll(walk, 3) == 0) submit->task_timeout_ms = submit->attempt_timeout_ms = 5000;
  if (roll(walk, 2) == 0) submit->recovery_safety = RECOVERY_IDEMPOTENT;
  world_identify(world, &command, new_key(walk));
  struct answer answer = say(walk, &command);
  if (answer.status == STATUS_OK) know(walk, &answer.as.task.id);
}

static void step_session(struct walk *walk) {
  struct command hello = world_hello_command(&walk->pair->hot, 1 + roll(walk, 4), 1 + (uint32_t)roll(walk, 6));
  (void)do_both(walk->pair, &hello);
}

static void step_worker(struct walk *walk) {
  static const enum outcome outcomes[] = {OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED, OUTCOME_FAILED, OUTCOME_UNKNOWN};
  struct world *world = &walk->pair->hot;
  for (const struct push *push; (push = take_both(walk->pair, MAIL_ASSIGN)) != NULL;) {
    walk->held[walk->holding < held_max ? walk->holding++ : roll(walk, held_max)] = *push;
    struct command start = world_ref(world, COMMAND_START, push);
    if (roll(walk, 5) != 0) (void)say(walk, &start);
  }
  if (walk->holding == 0) return;
  unsigned at =
      (unsigned)(roll(walk, 2) != 0 && walk->holding > 4 ? walk->holding - 1 - roll(walk, 4) : roll(walk, walk->holding));
  struct push push = walk->held[at];
  if (walk->count != 0 && roll(walk, 12) == 0) push.task_id = walk->tasks[roll(walk, walk->count)]; /* of another task */
  enum outcome outcome = outcomes[roll(walk, 4)];
  struct command command = roll(walk, 8) == 0
                               ? world_ref(world, roll(walk, 2) == 0 ? COMMAND_RELEASE : COMMAND_START, &push)
                               : world_finish(world, &push, outcome, outcome == OUTCOME_FAILED && roll(walk, 2) == 0);
  (void)say(walk, &command);
}

static void step_people(struct walk *walk) {
  struct world *world = &walk->pair->hot;
  if (walk->count == 0) return;
  const struct id *id = &walk->tasks[roll(walk, walk->count)];
  struct command command = get_command(walk->pair, id);
  struct answer found = do_both(walk->pair, &command);
  uint64_t revision = found.status == STATUS_OK && roll(walk, 6) != 0 ? found.as.task.revision : 1;
  uint64_t way = roll(walk, 4);
  if (way == 0) command = world_cancel(world, id, new_key(walk));
  if (way == 1)
    command = world_review(world, id, revision, roll(walk, 2) == 0 ? OUTCOME_SUCCEEDED : OUTCOME_FAILED, new_key(walk));
  if (way >= 2) command = world_retry(world, id, revision, new_key(walk));
  struct answer answer = say(walk, &command);
  if (way >= 2 && answer.status == STATUS_OK) know(walk, &answer.as.task.id);
}

/* The same request once more; or its identity with other content. */
static void step_repeat(struct walk *walk) {
  if (walk->said_count == 0) return;
  struct command command = walk->said[roll(walk, walk->said_count)];
  if (roll(walk, 4) == 0) command.operation.digest.bytes[0] ^= 1;
  (void)do_both(walk->pair, &command);
}

static void step_list(struct walk *walk) {
  static const char *const names[] = {"k1", "k2", "k3", "none"};
  static const char *const handlers[] = {"h", "other"};
  struct world *world = &walk->pair->hot;
  struct list_tasks_command filters = {.limit = 1 + (uint32_t)roll(walk, 12)};
  if (roll(walk, 3) == 0) filters.queue_id = roll(walk, 2) == 0 ? world->queue_id : world->other_queue_id;
  if (roll(walk, 3) == 0) filters.business_key = bytes_text(names[roll(walk, 4)]);
  if (roll(walk, 3) == 0) filters.handler = bytes_text(handlers[roll(walk, 2)]);
  if (roll(walk, 3) == 0) filters.state = (enum task_state)(1 + roll(walk, TASK_ENUM_END - 1));
  if (roll(walk, 4) == 0) filters.created_after = world->now_us - (int64_t)roll(walk, 60000000);
  if (roll(walk, 4) == 0) filters.created_before = world->now_us - (int64_t)roll(walk, 60000000);
  if (walk->count != 0 && roll(walk, 4) == 0) filters.after = walk->tasks[roll(walk, walk->count)];
  struct command command = {.kind = COMMAND_LIST_TASKS, .who = world->who, .as.list_tasks = filters};
  struct answer answer = do_both(walk->pair, &command);
  if (answer.status == STATUS_OK) free(answer.as.list.of.tasks);
}

static void step_queue(struct walk *walk) {
  struct command command = {.kind = COMMAND_GET_QUEUE, .who = walk->pair->hot.who, .as.object_id = walk->pair->hot.queue_id};
  (void)do_both(walk->pair, &command);
}

static void step_schedule(struct walk *walk) {
  static const enum command_kind writes[] = {COMMAND_SCHEDULE_CHANGE, COMMAND_SCHEDULE_PAUSE, COMMAND_SCHEDULE_RESUME,
                                             COMMAND_SCHEDULE_DELETE};
  struct world *world = &walk->pair->hot;
  if (walk->schedule_count < schedules_max && roll(walk, 3) == 0) {
    struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
    create.as.schedule.overlap = (enum overlap)(1 + roll(walk, OVERLAP_ENUM_END - 1));
    create.as.schedule.missed = (enum missed)(1 + roll(walk, MISSED_ENUM_END - 1));
    create.as.schedule.catch_up_limit = 1 + (uint32_t)roll(walk, 4);
    create.as.schedule.interval_ms = 2000 + 1000 * (uint32_t)roll(walk, 60);
    world_identify(world, &create, new_key(walk));
    struct answer answer = say(walk, &create);
    if (answer.status == STATUS_OK) walk->schedules[walk->schedule_count++] = answer.as.schedule.id;
  }
  if (walk->schedule_count == 0) return;
  const struct id *id = &walk->schedules[roll(walk, walk->schedule_count)];
  struct command get = {.kind = COMMAND_GET_SCHEDULE, .who = world->who, .as.object_id = *id};
  struct answer found = do_both(walk->pair, &get);
  struct trigger triggers[tasks_max];
  uint32_t count = triggers_of_both(walk->pair, id, triggers, tasks_max);
  if (count != 0 && !id_is_zero(&triggers[count - 1].task_id)) know(walk, &triggers[count - 1].task_id);
  if (found.status != STATUS_OK || roll(walk, 4) != 0) return;
  struct command write = world_schedule(world, writes[roll(walk, 6) == 0 ? 3 : roll(walk, 3)], id);
  write.as.schedule.expected_revision = write.kind == COMMAND_SCHEDULE_CHANGE ? found.as.schedule.revision : 0;
  if (write.kind == COMMAND_SCHEDULE_CHANGE) {
    write.as.schedule.given = GIVEN_OVERLAP;
    write.as.schedule.overlap = (enum overlap)(1 + roll(walk, OVERLAP_ENUM_END - 1));
  }
  world_identify(world, &write, new_key(walk));
  (void)say(walk, &write);
}

static void step_time(struct walk *walk) {
  static const int64_t us[] = {1, 1000, 700000, 3000000, 35000000};
  advance_both(walk->pair, us[roll(walk, 5)]);
}

static void take_steps(struct walk *walk, unsigned steps) {
  typedef void step(struct walk *);
  static step *const all[] = {step_submit, step_submit, step_submit, step_session, step_worker,  step_worker,
                              step_worker, step_worker, step_people, step_people,  step_repeat,  step_repeat,
                              step_list,   step_list,   step_time,   step_queue,   step_schedule};
  struct pair *pair = walk->pair;
  for (unsigned i = 0; i < steps; i++) {
    if (roll(walk, 80) == 0) restart_both(pair);
    all[roll(walk, sizeof all / sizeof all[0])](walk);
    if (pair->hot.push_count > 2000) world_forget(&pair->hot), world_forget(&pair->cold);
    if (i % 100 == 99) expect_same_views(pair);
  }
  evict_all(pair);
  expect_same_views(pair);
}

/* At least so many steps, and on until enough tasks have left: by chance few have ended by then. */
static void random_walk(struct pair *pair, unsigned steps) {
  enum { away_min = 21, rounds_max = 20 };
  struct walk *walk = calloc(1, sizeof *walk);
  walk->pair = pair;
  take_steps(walk, steps);
  for (unsigned i = 0; i < rounds_max && state_evict_counts(pair->cold.engine->state).tasks_away < away_min; i++)
    take_steps(walk, steps / 2);
  (void)list_both(pair, (struct list_tasks_command){.limit = 7});
  assert_true(state_evict_counts(pair->cold.engine->state).tasks_away >= away_min);
  free(walk);
}

static void everything_leaves_at_once(void **context) {
  struct pair *pair = *context;
  pair->random = test_seed();
  random_walk(pair, 400);
}

/* The checkpoint lags, and identities are sorted in late: memory and store share. */
static void the_checkpoint_lags(void **context) {
  struct pair *pair = *context;
  pair->random = test_seed();
  pair->follow_sides = 12;
  pair->cold.index_min = 150;
  random_walk(pair, 400);
}

/* Tasks are gone a minute after the last thing that happened to them, wherever they were. */
static void what_is_old_is_gone(void **context) {
  struct pair *pair = *context;
  pair->random = test_seed();
  pair->hot.retention_us = pair->cold.retention_us = 60000000;
  pair->cold.index_min = 100;
  pair->follow_sides = 3;
  restart_both(pair);
  random_walk(pair, 400);
  for (unsigned i = 0; i < 4; i++) advance_both(pair, 61000000);
  evict_all(pair);
  assert_true(state_retained_seq(pair->hot.engine->state) != 0);
  (void)list_both(pair, (struct list_tasks_command){.limit = 7});
  expect_same_views(pair);
}

/* ---- one thing at a time ---- */

static struct task ended_task(struct pair *pair, const char *key, struct push *ret_push) {
  struct command submit = world_submit(&pair->hot, key);
  struct task task = do_both(pair, &submit).as.task;
  struct command hello = world_hello_command(&pair->hot, 1, 1);
  (void)do_both(pair, &hello);
  *ret_push = *take_both(pair, MAIL_ASSIGN);
  struct command start = world_ref(&pair->hot, COMMAND_START, ret_push);
  (void)do_both(pair, &start);
  struct command finish = world_finish(&pair->hot, ret_push, OUTCOME_FAILED, false);
  assert_true(do_both(pair, &finish).as.worker.applied);
  evict_all(pair);
  return task;
}

static void a_late_report_is_evidence_of_what_left(void **context) {
  struct pair *pair = *context;
  struct push push;
  struct task task = ended_task(pair, "a", &push);
  struct command late = world_finish(&pair->hot, &push, OUTCOME_SUCCEEDED, false);
  struct answer answer = do_both(pair, &late);
  assert_true(answer.status == STATUS_OK && answer.as.worker.evidence);
  assert_int_equal(state_evict_counts(pair->cold.engine->state).ended, 1); /* it is newer than the store */
  pair->follow_sides = 0;                                                  /* and stays so: the only one is listed */
  assert_int_equal(list_both(pair, (struct list_tasks_command){.limit = 3}), 1);
  pair->follow_sides = 1;
  evict_all(pair);
  assert_true(do_both(pair, &late).as.worker.deduplicated);
  struct command get = get_command(pair, &task.id);
  assert_int_equal(do_both(pair, &get).as.task.state, TASK_FAILED);
  expect_same_views(pair);
}

static void a_retry_of_what_left_is_seen_on_it(void **context) {
  struct pair *pair = *context;
  struct push push;
  struct task task = ended_task(pair, "a", &push);
  struct command get = get_command(pair, &task.id);
  struct command retry = world_retry(&pair->hot, &task.id, do_both(pair, &get).as.task.revision, "r");
  struct answer made = do_both(pair, &retry);
  assert_int_equal(made.status, STATUS_OK);
  evict_all(pair);
  assert_true(do_both(pair, &get).as.task.retried);
  struct command again = world_retry(&pair->hot, &task.id, 0, "another");
  assert_int_equal(do_both(pair, &again).status, STATUS_STATE_CONFLICT);
  assert_true(do_both(pair, &retry).deduplicated);
  expect_same_views(pair);
}

/* A start after the views were deleted folds the log again. */
static void deleted_views_change_nothing(void **context) {
  struct pair *pair = *context;
  struct push push;
  struct task task = ended_task(pair, "a", &push);
  char path[300];
  (void)snprintf(path, sizeof path, "%s/views/data.mdb", pair->cold.directory);
  assert_int_equal(unlink(path), 0);
  restart_both(pair);
  struct command get = get_command(pair, &task.id), submit = world_submit(&pair->hot, "a");
  assert_int_equal(do_both(pair, &get).as.task.state, TASK_FAILED);
  assert_true(do_both(pair, &submit).deduplicated);
  expect_same_views(pair);
}

/* To the microsecond; then nothing is answered, its identity makes a new task, and the rows go. */
static void a_task_is_gone_when_its_time_is_over(void **context) {
  struct pair *pair = *context;
  struct push push;
  pair->hot.retention_us = pair->cold.retention_us = 60000000;
  restart_both(pair);
  struct task task = ended_task(pair, "a", &push);
  struct command get = get_command(pair, &task.id), submit = world_submit(&pair->hot, "a");
  struct command late = world_finish(&pair->hot, &push, OUTCOME_SUCCEEDED, false);
  struct command cancel = world_cancel(&pair->hot, &task.id, "c"), retry = world_retry(&pair->hot, &task.id, 0, "r");
  advance_both(pair, 59999999);
  assert_int_equal(do_both(pair, &get).status, STATUS_OK);
  assert_true(do_both(pair, &submit).deduplicated);
  advance_both(pair, 1000000); /* it is looked at once a second */
  struct command all[] = {get, late, cancel, retry};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) assert_int_equal(do_both(pair, &all[i]).status, STATUS_NOT_FOUND);
  evict_all(pair);
  struct answer anew = do_both(pair, &submit);
  assert_true(anew.created && !id_equal(&anew.as.task.id, &task.id));
  assert_true(do_both(pair, &submit).deduplicated);
  assert_int_equal(list_both(pair, (struct list_tasks_command){.limit = 10}), 1);
  restart_both(pair);
  assert_int_equal(do_both(pair, &get).status, STATUS_NOT_FOUND);
  assert_true(do_both(pair, &submit).deduplicated);
  expect_same_views(pair);
}

/* A late report keeps it. */
static void what_happens_to_it_keeps_a_task(void **context) {
  struct pair *pair = *context;
  struct push push;
  pair->hot.retention_us = pair->cold.retention_us = 60000000;
  restart_both(pair);
  struct task task = ended_task(pair, "a", &push);
  struct command late = world_finish(&pair->hot, &push, OUTCOME_SUCCEEDED, false), get = get_command(pair, &task.id);
  advance_both(pair, 40000000);
  assert_true(do_both(pair, &late).as.worker.evidence);
  advance_both(pair, 40000000);
  assert_int_equal(do_both(pair, &get).status, STATUS_OK);
  advance_both(pair, 40000000);
  assert_int_equal(do_both(pair, &get).status, STATUS_NOT_FOUND);
}

static struct command subscribe_to(struct world *world, const struct id *task_id, const char *name, const char *key) {
  struct command command = {.kind = COMMAND_SUBSCRIPTION_CREATE, .who = world->who};
  command.as.subscription =
      (struct subscription_command){.name = bytes_text(name), .task_id = *task_id, .from = FEED_FROM_EARLIEST};
  world_identify(world, &command, key);
  return command;
}

/* A subscription to a task that is gone by now: its creation is answered as it was, and no other is made. */
static void a_creation_is_repeated_though_its_task_is_gone(void **context) {
  struct pair *pair = *context;
  struct push push;
  pair->hot.retention_us = pair->cold.retention_us = 60000000;
  restart_both(pair);
  struct task task = ended_task(pair, "a", &push);
  struct command create = subscribe_to(&pair->hot, &task.id, "s", "one"),
                 another = subscribe_to(&pair->hot, &task.id, "t", "two");
  struct answer first = do_both(pair, &create);
  assert_true(first.created);
  advance_both(pair, 61000000);
  struct answer again = do_both(pair, &create);
  assert_int_equal(again.status, STATUS_OK);
  assert_true(again.deduplicated && id_equal(&again.as.subscription.id, &first.as.subscription.id));
  assert_int_equal(do_both(pair, &another).status, STATUS_NOT_FOUND);
  another = subscribe_to(&pair->hot, &task.id, "t", "one");
  assert_int_equal(do_both(pair, &another).status, STATUS_NOT_FOUND);
}

/* While the store is away nothing is answered that only it knows, and running work goes on. */
static void a_store_that_is_away_is_waited_for(void **context) {
  struct pair *pair = *context;
  struct push push;
  struct task task = ended_task(pair, "a", &push);
  world_follow(&pair->cold);
  world_tick(&pair->cold);
  cold_withdraw(pair->cold.cold);
  struct world *world = &pair->cold;
  struct command commands[] = {get_command(pair, &task.id),
                               world_submit(world, "a"),
                               world_submit(world, "new"),
                               {.kind = COMMAND_LIST_TASKS, .who = world->who, .as.list_tasks.limit = 5},
                               {.kind = COMMAND_OPEN_FEED, .who = world->who, .as.open_feed.filter.task_id = task.id},
                               subscribe_to(world, &task.id, "s", "one")};
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    struct answer answer = world_do(world, &commands[i]);
    assert_int_equal(answer.status, STATUS_UNAVAILABLE);
    assert_true(i == 3 || answer.fault.retry_after_ms != 0);
    assert_true(answer.fault.field[0] == 0 || i == 3);
  }
  world_follow(world);
  assert_int_equal(world_do(world, &commands[0]).status, STATUS_OK);
  assert_true(world_do(world, &commands[1]).deduplicated);
}

/* What was sorted in is sorted in again, however few receipts wait, before an identity that memory let go of is judged: else
 * the repeat of a submission would make a second task. */
static void rows_made_anew_know_every_identity(void **context) {
  struct pair *pair = *context;
  struct world *world = &pair->cold;
  struct push push;
  struct fault fault = {0};
  uint64_t events;
  (void)ended_task(pair, "a", &push);
  world_follow(world);
  world_tick(world);
  struct command again = world_submit(world, "a");
  uint64_t sorted = cold_floor(world->cold);
  assert_int_not_equal(sorted, 0);
  world->index_min = 1000000; /* as after a start with another memory-max */
  world_restart(world);
  assert_true(cold_floor(world->cold) >= sorted); /* a start says anew what memory does not hold */
  world_lose_views(world);
  assert_int_equal(checkpoint_follow(world->checkpoint, 1000, &events, &fault), STATUS_OK);
  assert_int_equal(checkpoint_lend(world->checkpoint, world->cold, &fault), STATUS_OK);
  assert_int_equal(world_do(world, &again).status, STATUS_UNAVAILABLE);
  world_follow(world);
  struct answer answer = world_do(world, &again);
  assert_int_equal(answer.status, STATUS_OK);
  assert_true(answer.deduplicated);
}

/* A start without views/ waits for none of what is gone, however far the store has come. */
static void what_is_gone_is_waited_for_by_nobody(void **context) {
  struct pair *pair = *context;
  struct world *world = &pair->cold;
  struct push push;
  pair->hot.retention_us = pair->cold.retention_us = 60000000;
  restart_both(pair);
  struct task task = ended_task(pair, "a", &push);
  advance_both(pair, 61000000);
  world_lose_views(world);
  restart_both(pair);
  cold_withdraw(world->cold);
  world_tick(world);
  struct command get = get_command(pair, &task.id), again = world_submit(world, "a");
  struct command list = {.kind = COMMAND_LIST_TASKS, .who = world->who, .as.list_tasks.limit = 5};
  assert_int_equal(state_evict_counts(world->engine->state).tasks_away, 1);
  assert_int_equal(world_do(world, &get).status, STATUS_NOT_FOUND);
  struct answer page = world_do(world, &list);
  assert_int_equal(page.status, STATUS_OK);
  free(page.as.list.of.rows);
  assert_true(world_do(world, &again).created);
}

/* The window: to the microsecond of the tick. */
static void what_has_ended_stays_for_the_window(void **context) {
  (void)context;
  struct world world;
  world_open(&world);
  world.hot_window_us = 60000000;
  world_evict(&world);
  struct task task = world_submitted(&world, "a");
  struct command cancel = world_cancel(&world, &task.id, "c");
  assert_int_equal(world_do(&world, &cancel).status, STATUS_OK);
  world_follow(&world);
  world_advance_ms(&world, 59999);
  assert_int_equal(state_evict_counts(world.engine->state).tasks, 1);
  world_advance_ms(&world, 1);
  assert_int_equal(state_evict_counts(world.engine->state).tasks, 0);
  world_close(&world);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
  const struct CMUnitTest tests[] = {
      ROW(everything_leaves_at_once),
      ROW(the_checkpoint_lags),
      ROW(what_is_old_is_gone),
      ROW(a_task_is_gone_when_its_time_is_over),
      ROW(what_happens_to_it_keeps_a_task),
      ROW(a_late_report_is_evidence_of_what_left),
      ROW(a_retry_of_what_left_is_seen_on_it),
      ROW(deleted_views_change_nothing),
      ROW(a_store_that_is_away_is_waited_for),
      ROW(rows_made_anew_know_every_identity),
      ROW(a_creation_is_repeated_though_its_task_is_gone),
      ROW(what_is_gone_is_waited_for_by_nobody),
      cmocka_unit_test(what_has_ended_stays_for_the_window),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
