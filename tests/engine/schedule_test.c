/* Schedules over a real log: firing, missed times, overlap, clocks that jump, crashes around the commit of a trigger. */
#include "engine/checkpoint_stage.h"

#include "base/time_text.h"
#include "engine/clock.h"

static const int64_t minute_us = 60000000;

/* ---- what became of each time ---- */

/* One letter a trigger: S submitted, O overlap, M missed, R rejected. Each time is one interval behind the one before, and has
 * a task exactly when it was submitted, and no task is there twice. */
static const char *story(struct world *world, const struct schedule *schedule, int64_t interval_us) {
  static const char letters[TRIGGER_ENUM_END + 1] = "?SOMR";
  static char text[2048];
  static struct trigger triggers[2000];
  uint32_t count = world_triggers(world, &schedule->id, triggers, sizeof triggers / sizeof triggers[0]);
  for (uint32_t i = 0; i < count; i++) {
    text[i] = letters[triggers[i].outcome];
    if (i > 0) assert_int_equal(triggers[i].scheduled_at, triggers[i - 1].scheduled_at + interval_us);
    assert_true(triggers[i].decided_at >= triggers[i].scheduled_at);
    assert_true(id_is_zero(&triggers[i].task_id) == (triggers[i].outcome != TRIGGER_SUBMITTED));
    for (uint32_t k = 0; k < i; k++)
      assert_true(id_is_zero(&triggers[i].task_id) || !id_equal(&triggers[i].task_id, &triggers[k].task_id));
  }
  text[count] = '\0';
  return text;
}

static struct trigger newest(struct world *world, const struct schedule *schedule) {
  static struct trigger triggers[2000];
  uint32_t count = world_triggers(world, &schedule->id, triggers, sizeof triggers / sizeof triggers[0]);
  assert_true(count > 0);
  return triggers[count - 1];
}

static void expect_story(struct world *world, const struct schedule *schedule, int64_t interval_us, const char *expected) {
  const char *told = story(world, schedule, interval_us);
  if (strcmp(told, expected) != 0) fail_msg("\"%s\" where \"%s\" was expected", told, expected);
}

/* ---- firing ---- */

static void fires_on_time_and_does_not_drift(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  int64_t start = world->now_us;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  struct schedule schedule = world_scheduled(world, &create);
  assert_int_equal(schedule.next_at, 0); /* nothing live in the answer of a write */
  assert_int_equal(world_get_schedule(world, &schedule.id).next_at, start + minute_us);
  assert_int_equal(world->next_us, start + minute_us);
  world_advance_ms(world, 59999);
  expect_story(world, &schedule, minute_us, "");
  world_advance_ms(world, 1);
  expect_story(world, &schedule, minute_us, "S");
  for (unsigned i = 0; i < 20; i++) world_advance_ms(world, 60000 + (i % 7) * 11); /* ticks come late */
  expect_story(world, &schedule, minute_us, "SSSSSSSSSSSSSSSSSSSSS");
  struct trigger last = newest(world, &schedule);
  struct task task = world_task(world, &last.task_id);
  assert_true(task.scheduled && task.state == TASK_WAITING);
  assert_int_equal(task.created_at, last.decided_at);
  assert_int_equal(task.deadline_at, last.decided_at + INT64_C(600000000));
  world_check(world);
}

static void follows_the_clock_of_its_zone(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  static const char *const times[] = {"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"};
  assert_true(time_parse(bytes_text("2026-03-27T12:00:00Z"), &world->now_us));
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  create.as.schedule.kind = SCHEDULE_CRON;
  create.as.schedule.interval_ms = 0;
  create.as.schedule.cron = bytes_text("30 2 * * *");
  create.as.schedule.timezone = bytes_text("Europe/Berlin");
  struct schedule schedule = world_scheduled(world, &create);
  for (unsigned i = 0; i < 3; i++) {
    int64_t at = 0;
    assert_true(time_parse(bytes_text(times[i]), &at));
    assert_int_equal(world_get_schedule(world, &schedule.id).next_at, at);
    world->now_us = at;
    world_tick(world);
    assert_int_equal(newest(world, &schedule).scheduled_at, at);
  }
  world_check(world);
}

static void between_start_and_end(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  create.as.schedule.start_at = world->now_us + 10 * minute_us;
  create.as.schedule.end_at = world->now_us + 12 * minute_us;
  struct schedule schedule = world_scheduled(world, &create);
  assert_int_equal(world_get_schedule(world, &schedule.id).next_at, create.as.schedule.start_at);
  for (unsigned i = 0; i < 15; i++) world_advance_ms(world, 60000);
  expect_story(world, &schedule, minute_us, "SS"); /* at the start, a minute later, and not at the end */
  assert_int_equal(world_get_schedule(world, &schedule.id).next_at, 0);
  assert_int_equal(world->next_us > world->now_us, true);
  world_check(world);
}

/* ---- missed times ---- */

static void down_across_five_ticks(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  static const struct {
    enum missed missed;
    uint32_t limit;
    const char *story;
  } rows[] = {
      {MISSED_SKIP, 10, "SMMMMMS"}, {MISSED_LATEST, 10, "SMMMMSS"}, {MISSED_ALL, 10, "SSSSSSS"},   {MISSED_ALL, 5, "SSSSSSS"},
      {MISSED_ALL, 3, "SMMSSSS"},   {MISSED_ALL, 1, "SMMMMSS"},     {MISSED_ALL, 1000, "SSSSSSS"},
  };
  struct schedule schedules[sizeof rows / sizeof rows[0]];
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
    create.as.schedule.missed = rows[i].missed;
    create.as.schedule.catch_up_limit = rows[i].limit;
    create.as.schedule.start_at = world->now_us + minute_us;
    schedules[i] = world_scheduled(world, &create);
  }
  world_advance_ms(world, 60000);
  world->now_us += 5 * minute_us + minute_us / 2; /* down across five times, up half a minute later */
  world_restart(world);
  world_tick(world);
  world_advance_ms(world, 30000);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) expect_story(world, &schedules[i], minute_us, rows[i].story);
  world_check(world);
}

/* Up all the time, but late: what the next time has overtaken, and what is more than a minute late, was missed. */
static void late_while_up(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  create.as.schedule.missed = MISSED_SKIP;
  create.as.schedule.interval_ms = 3600000;
  struct schedule hourly = world_scheduled(world, &create);
  world_advance_ms(world, 3600000 + 60000); /* a minute late: on time */
  expect_story(world, &hourly, 60 * minute_us, "S");
  world_advance_ms(world, 3600000);
  expect_story(world, &hourly, 60 * minute_us, "SS");
  world->now_us += 1;
  world_advance_ms(world, 3600000); /* a microsecond later than that */
  expect_story(world, &hourly, 60 * minute_us, "SSM");
  world_check(world);
}

static void a_long_absence_is_decided_piece_by_piece(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  create.as.schedule.interval_ms = 1000;
  create.as.schedule.missed = MISSED_ALL;
  create.as.schedule.catch_up_limit = 7;
  struct schedule schedule = world_scheduled(world, &create);
  world->now_us += INT64_C(1800) * 1000000;
  world_restart(world);
  unsigned ticks = 1;
  while (world_tick_once(world)) ticks++;
  assert_true(ticks >= 2); /* more than one commit holds */
  const char *told = story(world, &schedule, 1000000);
  assert_int_equal(strlen(told), 1800);
  assert_int_equal(strspn(told, "M"), 1793);
  assert_string_equal(told + 1793, "SSSSSSS");
  world_check(world);
}

/* ---- overlap ---- */

static void end_task(struct world *world, const struct schedule *schedule, uint64_t session, enum outcome outcome) {
  struct trigger last = newest(world, schedule);
  const struct push *assign = world_assigned(world, session);
  assert_true(id_equal(&assign->task_id, &last.task_id));
  world_start(world, assign);
  (void)world_report(world, assign, outcome, false);
  world_bye(world, session);
  world_tick(world);
}

static void overlap_skips(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  create.as.schedule.overlap = OVERLAP_SKIP;
  struct schedule schedule = world_scheduled(world, &create);
  for (unsigned i = 0; i < 3; i++) world_advance_ms(world, 60000);
  expect_story(world, &schedule, minute_us, "SOO");
  static struct trigger triggers[16];
  assert_int_equal(world_triggers(world, &schedule.id, triggers, 16), 3);
  const struct push *assign = world_assigned(world, 1);
  assert_true(id_equal(&assign->task_id, &triggers[0].task_id));
  world_start(world, assign);
  (void)world_report(world, assign, OUTCOME_SUCCEEDED, false);
  world_advance_ms(world, 60000);
  expect_story(world, &schedule, minute_us, "SOOS");
  world_check(world);
}

/* A serial schedule waits for its task, a review included, and goes on with the review: what waited meanwhile is judged then.
 */
static void serial_goes_on_with_the_review(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  static const struct {
    enum missed missed;
    const char *story;
  } rows[] = {{MISSED_SKIP, "SSMMM"}, {MISSED_LATEST, "SMMMS"}, {MISSED_ALL, "SS"}};
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
    create.as.schedule.overlap = OVERLAP_SERIAL;
    create.as.schedule.missed = rows[i].missed;
    create.as.schedule.template.max_attempts = 1;
    struct schedule schedule = world_scheduled(world, &create);
    world_advance_ms(world, 60000);
    expect_story(world, &schedule, minute_us, "S");
    struct trigger first = newest(world, &schedule);
    end_task(world, &schedule, 10 + i, OUTCOME_UNKNOWN);
    assert_int_equal(world_task(world, &first.task_id).state, TASK_NEEDS_REVIEW);
    for (unsigned k = 0; k < 4; k++) world_advance_ms(world, 60000);
    expect_story(world, &schedule, minute_us, "S"); /* four times have come and wait */
    assert_true(world->next_us > world->now_us);    /* and cost nothing */
    world_restart(world);                           /* not even through a restart */
    world_tick(world);
    expect_story(world, &schedule, minute_us, "S");
    struct command review =
        world_review(world, &first.task_id, world_task(world, &first.task_id).revision, OUTCOME_SUCCEEDED, "review");
    world->now_us += 1000000;
    assert_int_equal(world_do(world, &review).status, STATUS_OK);
    world_tick(world);
    expect_story(world, &schedule, minute_us, rows[i].story);
    world_check(world);
    struct command remove = world_schedule(world, COMMAND_SCHEDULE_DELETE, &schedule.id);
    (void)world_scheduled(world, &remove);
    struct trigger last = newest(world, &schedule);
    if (last.outcome != TRIGGER_SUBMITTED) { /* its only unfinished task is the one before */
      static struct trigger triggers[16];
      (void)world_triggers(world, &schedule.id, triggers, 16);
      last = triggers[1];
    }
    struct command cancel = world_cancel(world, &last.task_id, id_text(&last.task_id).text);
    assert_int_equal(world_do(world, &cancel).status, STATUS_OK);
  }
}

static void cancel_task(struct world *world, const struct schedule *schedule) {
  struct trigger last = newest(world, schedule);
  struct command cancel = world_cancel(world, &last.task_id, id_text(&last.task_id).text);
  assert_int_equal(world_do(world, &cancel).status, STATUS_OK);
}

static void serial_catches_up_one_by_one(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  create.as.schedule.overlap = OVERLAP_SERIAL;
  create.as.schedule.missed = MISSED_ALL;
  create.as.schedule.catch_up_limit = 3;
  struct schedule schedule = world_scheduled(world, &create);
  for (unsigned i = 0; i < 6; i++) world_advance_ms(world, 60000);
  expect_story(world, &schedule, minute_us, "S");
  cancel_task(world, &schedule);
  expect_story(world, &schedule, minute_us, "SMMS"); /* five waited, the newest three fire, each when the one before is over */
  cancel_task(world, &schedule);
  expect_story(world, &schedule, minute_us, "SMMSS");
  cancel_task(world, &schedule);
  expect_story(world, &schedule, minute_us, "SMMSSS");
  cancel_task(world, &schedule);
  expect_story(world, &schedule, minute_us, "SMMSSS");
  world_advance_ms(world, 60000);
  expect_story(world, &schedule, minute_us, "SMMSSSS");
  world_check(world);
}

static void a_scheduled_task_is_not_retried_by_hand(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  struct schedule schedule = world_scheduled(world, &create);
  world_advance_ms(world, 60000);
  struct trigger trigger = newest(world, &schedule);
  struct command cancel = world_cancel(world, &trigger.task_id, "cancel");
  assert_int_equal(world_do(world, &cancel).status, STATUS_OK);
  struct command retry = world_retry(world, &trigger.task_id, world_task(world, &trigger.task_id).revision, "retry");
  assert_int_equal(world_do(world, &retry).status, STATUS_STATE_CONFLICT);
  world_check(world);
}

/* ---- refusals are outcomes ---- */

static struct bytes code_of_newest(struct world *world, const struct schedule *schedule, struct event *event) {
  struct engine *engine = world->engine;
  engine->reader_fresh = false;
  struct trigger trigger;
  uint64_t seq = state_schedule(engine->state, &schedule->id)->trigger_seq;
  assert_int_equal(history_event(engine->history, engine_source(engine), seq, event), STATUS_OK);
  assert_true(trigger_of(event, &trigger));
  return trigger.code;
}

static void rejected_with_its_code(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  struct event event;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  create.as.schedule.queue_id = world->narrow_queue_id; /* holds ten unfinished tasks */
  create.as.schedule.template.task_timeout_ms = 3600000;
  struct schedule schedule = world_scheduled(world, &create);
  for (unsigned i = 0; i < 12; i++) world_advance_ms(world, 60000);
  expect_story(world, &schedule, minute_us, "SSSSSSSSSSRR");
  assert_true(bytes_equal_text(code_of_newest(world, &schedule, &event), "QUEUE_FULL"));
  struct command full = world_application(world, COMMAND_APPLICATION_CHANGE, &world->application_id);
  full.as.application.expected_revision = 1;
  full.as.application.given = GIVEN_MAX_UNFINISHED;
  full.as.application.max_unfinished = 1;
  world_identify(world, &full, "full");
  assert_int_equal(world_do(world, &full).status, STATUS_OK);
  create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  struct schedule other = world_scheduled(world, &create);
  world_advance_ms(world, 60000);
  assert_true(bytes_equal_text(code_of_newest(world, &other, &event), "APPLICATION_FULL"));
  struct command disable = world_application(world, COMMAND_APPLICATION_CHANGE, &world->application_id);
  disable.as.application.expected_revision = 2;
  disable.as.application.given = GIVEN_DISABLED;
  disable.as.application.disabled = true;
  world_identify(world, &disable, "disable");
  assert_int_equal(world_do(world, &disable).status, STATUS_OK);
  world_advance_ms(world, 60000);
  assert_true(bytes_equal_text(code_of_newest(world, &other, &event), "PERMISSION_DENIED"));
  expect_story(world, &other, minute_us, "RR");
  world_check(world);
}

/* ---- clocks ---- */

/* The machine's wall clock jumps six hours ahead, and back; Orbit's time goes on as it did, and so do schedules. */
static void the_wall_clock_jumps(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  create.as.schedule.missed = MISSED_SKIP;
  struct schedule schedule = world_scheduled(world, &create);
  struct clock clock;
  int64_t start = world->now_us, jump = 0;
  clock_init(&clock, start, 0, start);
  for (unsigned second = 1; second <= 30 * 60; second++) {
    if (second == 300) jump = INT64_C(6) * 3600 * 1000000;
    if (second == 1200) jump = 0;
    world->now_us = clock_read(&clock, start + second * INT64_C(1000000) + jump, second * INT64_C(1000000));
    world_tick(world);
  }
  const char *told = story(world, &schedule, minute_us);
  assert_int_equal(strlen(told), strspn(told, "S")); /* none was missed, none came twice */
  assert_in_range(strlen(told), 29, 30);             /* the slew is one part in a thousand at the most */
  world_check(world);
}

/* The clock stands six hours ahead at a start: the times between were missed. At the next one it is right again: Orbit's time
 * goes on from the log's last event, and no time comes again. */
static void started_under_a_wrong_clock(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  struct schedule schedule = world_scheduled(world, &create);
  world_advance_ms(world, 60000);
  int64_t wall = world->now_us;
  world->now_us = wall + INT64_C(6) * 60 * minute_us;
  world_restart(world);
  world_tick(world);
  const char *told = story(world, &schedule, minute_us);
  assert_int_equal(strlen(told), 361);
  assert_int_equal(strspn(told + 1, "M"), 359);
  struct clock clock;
  int64_t last = world->now_us;
  clock_init(&clock, wall, 0, last); /* the wall clock is right again, six hours behind the log */
  world->now_us = clock_read(&clock, wall, 0);
  assert_int_equal(world->now_us, last);
  world_restart(world);
  for (unsigned second = 1; second <= 300; second++) {
    world->now_us = clock_read(&clock, wall + second * INT64_C(1000000), second * INT64_C(1000000));
    world_tick(world);
  }
  told = story(world, &schedule, minute_us);
  assert_in_range(strlen(told), 365, 366);
  assert_int_equal(strspn(told + 360, "S"), strlen(told) - 360);
  world_check(world);
}

/* ---- crashes ---- */

/* Decides what has come and loses it, as a crash does between the events and their commit. */
static void decide_and_lose(struct world *world) {
  struct engine *engine = world->engine;
  engine->now_us = world->now_us;
  engine->reader_fresh = false;
  commit_reset(&engine->commit, engine->journal, world->now_us);
  triggers_fire(engine);
}

static void a_hundred_crashes_around_triggers(void **context) {
  struct world *world = &((struct stage *)*context)->world;
  uint64_t seed = test_seed();
  static const enum missed policies[] = {MISSED_SKIP, MISSED_LATEST, MISSED_ALL};
  struct schedule schedules[3];
  unsigned lost = 0;
  for (unsigned i = 0; i < 3; i++) {
    struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
    create.as.schedule.missed = policies[i];
    create.as.schedule.interval_ms = 1000;
    schedules[i] = world_scheduled(world, &create);
  }
  for (unsigned round = 0; round < 100; round++) {
    world->now_us += 1000000 + (int64_t)(test_random(&seed) % 200000);
    uint64_t before = state_last_seq(world->engine->state);
    switch (test_random(&seed) % 3) {
      case 0: /* before anything is decided */
        break;
      case 1: /* between the events and their commit */
        decide_and_lose(world);
        lost += state_last_seq(world->engine->state) > before;
        break;
      default: /* behind the commit */
        world_tick(world);
        break;
    }
    world_restart(world);
    world_tick(world);
  }
  for (unsigned i = 0; i < 3; i++) {
    const char *told = story(world, &schedules[i], 1000000); /* every time once, in order, each with at most one task */
    int64_t passed = (world->now_us - schedules[i].created_at) / 1000000;
    assert_int_equal(strlen(told), passed);
    if (policies[i] == MISSED_ALL) assert_int_equal(strspn(told, "S"), passed);
  }
  assert_true(lost > 10);
  world_check(world);
}

/* ---- checkpoint ---- */

static void a_checkpoint_holds_schedules(void **context) {
  struct stage *stage = *context;
  struct world *world = &stage->world;
  static const enum overlap overlaps[] = {OVERLAP_ALLOW, OVERLAP_SKIP, OVERLAP_SERIAL};
  struct schedule schedules[3];
  for (unsigned i = 0; i < 3; i++) {
    struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
    create.as.schedule.overlap = overlaps[i];
    create.as.schedule.interval_ms = 60000 + i * 1000;
    schedules[i] = world_scheduled(world, &create);
  }
  for (unsigned round = 0; round < 12; round++) {
    world_advance_ms(world, 45000);
    if (round % 3 == 1) {
      const struct push *assign = world_assigned(world, 100 + round);
      world_start(world, assign);
      (void)world_report(world, assign, OUTCOME_SUCCEEDED, false);
      world_bye(world, 100 + round);
    }
    follow_all(stage);
    stop_following(stage);
    (void)expect_equal(stage);
    if (round == 6) {
      struct command pause = world_schedule(world, COMMAND_SCHEDULE_PAUSE, &schedules[0].id);
      (void)world_scheduled(world, &pause);
    }
    if (round == 8) {
      struct command remove = world_schedule(world, COMMAND_SCHEDULE_DELETE, &schedules[1].id);
      (void)world_scheduled(world, &remove);
    }
  }
  world_check(world);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, open_stage, close_stage)
int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(fires_on_time_and_does_not_drift),
      ROW(follows_the_clock_of_its_zone),
      ROW(between_start_and_end),
      ROW(down_across_five_ticks),
      ROW(late_while_up),
      ROW(a_long_absence_is_decided_piece_by_piece),
      ROW(overlap_skips),
      ROW(serial_goes_on_with_the_review),
      ROW(serial_catches_up_one_by_one),
      ROW(a_scheduled_task_is_not_retried_by_hand),
      ROW(rejected_with_its_code),
      ROW(the_wall_clock_jumps),
      ROW(started_under_a_wrong_clock),
      ROW(a_hundred_crashes_around_triggers),
      ROW(a_checkpoint_holds_schedules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
