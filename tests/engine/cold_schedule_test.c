/* What a schedule decides does not depend on where the tasks that it made are kept: tasks that have ended and left memory are
 * looked up, listed and gone like all others, their times do not come again, and overlap is judged as if they were there. */
#include "engine/cold_pair.h"

enum { triggers_max = 64 };
static const int64_t interval_us = 5000000;

static const char *new_key(void) {
  static char text[24];
  static unsigned keys;
  (void)snprintf(text, sizeof text, "s%u", keys++);
  return text;
}

static struct id scheduled(struct pair *pair, enum overlap overlap, enum missed missed, struct command *ret_create) {
  *ret_create = world_schedule(&pair->hot, COMMAND_SCHEDULE_CREATE, NULL);
  ret_create->as.schedule.overlap = overlap;
  ret_create->as.schedule.missed = missed;
  ret_create->as.schedule.interval_ms = (uint32_t)(interval_us / 1000);
  world_identify(&pair->hot, ret_create, new_key());
  struct answer answer = do_both(pair, ret_create);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.schedule.id;
}

/* One letter a trigger: S submitted, O overlap, M missed, R rejected. */
static struct trigger expect_story(struct pair *pair, const struct id *schedule_id, const char *expected) {
  static const char letters[TRIGGER_ENUM_END + 1] = "?SOMR";
  static struct trigger triggers[triggers_max];
  char told[triggers_max + 1] = "";
  uint32_t count = triggers_of_both(pair, schedule_id, triggers, triggers_max);
  for (uint32_t i = 0; i < count; i++) told[i] = letters[triggers[i].outcome];
  assert_string_equal(told, expected);
  assert_true(count != 0);
  return triggers[count - 1];
}

static struct id newest_task(struct pair *pair, const struct id *schedule_id) {
  static struct trigger triggers[triggers_max];
  uint32_t count = triggers_of_both(pair, schedule_id, triggers, triggers_max);
  while (count != 0 && triggers[count - 1].outcome != TRIGGER_SUBMITTED) count--;
  assert_true(count != 0);
  return triggers[count - 1].task_id;
}

static void start_it(struct pair *pair, const struct trigger *trigger, struct push *ret_push) {
  static uint64_t session;
  struct command hello = world_hello_command(&pair->hot, 1 + session++ % 8, 1);
  assert_int_equal(do_both(pair, &hello).status, STATUS_OK);
  *ret_push = *take_both(pair, MAIL_ASSIGN);
  assert_true(id_equal(&ret_push->task_id, &trigger->task_id));
  struct command start = world_ref(&pair->hot, COMMAND_START, ret_push);
  (void)do_both(pair, &start);
}

static void end_it(struct pair *pair, const struct push *push) {
  struct command finish = world_finish(&pair->hot, push, OUTCOME_SUCCEEDED, false);
  assert_true(do_both(pair, &finish).as.worker.applied);
  struct command bye = {.kind = COMMAND_BYE, .who = pair->hot.who, .session = push->session};
  (void)do_both(pair, &bye);
}

static void expect_ended(struct pair *pair, const struct id *task_id) {
  struct command get = get_command(pair, task_id);
  struct task task = do_both(pair, &get).as.task;
  assert_true(task.scheduled && task.state == TASK_SUCCEEDED);
}

/* The task ends and leaves at once; its time does not come again, not through a start either; the next time makes a task. */
static void a_task_that_left_is_the_schedules_still(void **context) {
  struct pair *pair = *context;
  for (enum overlap overlap = (enum overlap)1; overlap < OVERLAP_ENUM_END; overlap++) {
    struct command create;
    struct push push;
    struct id id = scheduled(pair, overlap, MISSED_LATEST, &create);
    advance_both(pair, interval_us);
    struct trigger first = expect_story(pair, &id, "S");
    start_it(pair, &first, &push);
    end_it(pair, &push);
    evict_all(pair);
    expect_ended(pair, &first.task_id);
    assert_int_equal(list_both(pair, (struct list_tasks_command){.limit = 3, .queue_id = pair->hot.queue_id}), 2 * overlap - 1);
    restart_both(pair);
    evict_all(pair);
    (void)expect_story(pair, &id, "S"); /* not once more */
    assert_true(do_both(pair, &create).deduplicated);
    advance_both(pair, interval_us);
    struct trigger second = expect_story(pair, &id, "SS");
    struct command late = world_finish(&pair->hot, &push, OUTCOME_FAILED, false);
    assert_true(do_both(pair, &late).as.worker.evidence); /* of the one that left */
    struct command again = world_retry(&pair->hot, &first.task_id, 0, new_key());
    assert_int_equal(do_both(pair, &again).status, STATUS_STATE_CONFLICT); /* the schedule makes its tasks */
    start_it(pair, &second, &push);
    end_it(pair, &push);
    evict_all(pair);
    struct command remove = world_schedule(&pair->hot, COMMAND_SCHEDULE_DELETE, &id);
    world_identify(&pair->hot, &remove, new_key());
    assert_int_equal(do_both(pair, &remove).status, STATUS_OK);
    expect_same_views(pair);
  }
}

/* Three times come while the task runs. It ends, and leaves before the next one comes. */
static void overlap_is_judged_without_the_task(void **context) {
  static const struct {
    enum overlap overlap;
    enum missed missed;
    const char *running, *ended, *next;
  } rows[] = {{OVERLAP_SKIP, MISSED_LATEST, "SOOO", "SOOO", "SOOOS"},
              {OVERLAP_SKIP, MISSED_ALL, "SOOO", "SOOO", "SOOOS"},
              {OVERLAP_SERIAL, MISSED_LATEST, "S", "SMMS", "SMMS"},
              {OVERLAP_SERIAL, MISSED_ALL, "S", "SS", "SS"},
              {OVERLAP_SERIAL, MISSED_SKIP, "S", "SSM", "SSM"}};
  struct pair *pair = *context;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct command create;
    struct push push;
    struct id id = scheduled(pair, rows[i].overlap, rows[i].missed, &create);
    advance_both(pair, interval_us);
    struct trigger first = expect_story(pair, &id, "S");
    start_it(pair, &first, &push);
    for (unsigned k = 0; k < 3; k++) advance_both(pair, interval_us);
    (void)expect_story(pair, &id, rows[i].running);
    end_it(pair, &push);
    (void)expect_story(pair, &id, rows[i].ended);
    world_follow(&pair->cold);
    world_tick(&pair->cold);
    assert_int_equal(state_evict_counts(pair->cold.engine->state).ended, 0);
    restart_both(pair);
    expect_ended(pair, &first.task_id);
    advance_both(pair, interval_us);
    (void)expect_story(pair, &id, rows[i].next);
    expect_same_views(pair);
    struct command remove = world_schedule(&pair->hot, COMMAND_SCHEDULE_DELETE, &id);
    world_identify(&pair->hot, &remove, new_key());
    assert_int_equal(do_both(pair, &remove).status, STATUS_OK);
    struct id second = newest_task(pair, &id);
    struct command cancel = world_cancel(&pair->hot, &second, new_key());
    assert_int_equal(do_both(pair, &cancel).as.task.state, TASK_CANCELLED);
    evict_all(pair);
  }
}

/* The schedule goes on, and its triggers still name the tasks that are gone. */
static void a_task_that_is_gone_leaves_its_schedule(void **context) {
  struct pair *pair = *context;
  struct command create;
  struct push push;
  pair->hot.retention_us = pair->cold.retention_us = 7500000;
  restart_both(pair);
  struct id id = scheduled(pair, OVERLAP_SERIAL, MISSED_LATEST, &create);
  advance_both(pair, interval_us);
  struct trigger first = expect_story(pair, &id, "S");
  start_it(pair, &first, &push);
  end_it(pair, &push);
  evict_all(pair);
  expect_ended(pair, &first.task_id);
  advance_both(pair, interval_us);
  struct trigger second = expect_story(pair, &id, "SS");
  advance_both(pair, interval_us);
  evict_all(pair);
  struct command get = get_command(pair, &first.task_id);
  assert_int_equal(do_both(pair, &get).status, STATUS_NOT_FOUND);
  assert_true(do_both(pair, &create).deduplicated);
  restart_both(pair);
  start_it(pair, &second, &push);
  end_it(pair, &push);
  (void)expect_story(pair, &id, "SSS"); /* the time that had waited for it */
  assert_int_equal(list_both(pair, (struct list_tasks_command){.limit = 3}), 2);
  expect_same_views(pair);
}

/* Schedules that come due together are decided in the order of their ids, whether memory was filled from the log or from the
 * checkpoint, and whatever came before. */
static void what_comes_due_together_is_decided_in_one_order(void **context) {
  enum { schedules = 9 };
  struct pair *pair = *context;
  struct command creates[schedules];
  struct id ids[schedules];
  for (unsigned i = 0; i < schedules; i++) ids[i] = scheduled(pair, OVERLAP_ALLOW, MISSED_LATEST, &creates[i]);
  for (unsigned round = 0; round < 3; round++) {
    uint64_t before = 0;
    advance_both(pair, interval_us);
    for (unsigned i = 0; i < schedules; i++) {
      struct command get = {.kind = COMMAND_GET_SCHEDULE, .who = pair->hot.who, .as.object_id = ids[i]};
      uint64_t trigger_seq = do_both(pair, &get).as.schedule.trigger_seq;
      assert_true(trigger_seq > before);
      before = trigger_seq;
    }
    evict_all(pair);
    restart_both(pair);
  }
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
  const struct CMUnitTest tests[] = {
      ROW(a_task_that_left_is_the_schedules_still),
      ROW(overlap_is_judged_without_the_task),
      ROW(a_task_that_is_gone_leaves_its_schedule),
      ROW(what_comes_due_together_is_decided_in_one_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
