/* The disk is full: new work is refused, what runs is reported and cancelled out of the reserve, and all goes on when there is
 * room. */
#include "engine/world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/internal.h"

static char *big_text(void) {
  char *text = malloc(document_bytes_max + 1);
  memset(text, 'x', document_bytes_max);
  text[0] = text[document_bytes_max - 1] = '"';
  text[document_bytes_max] = 0;
  return text;
}

static void file_size_limit(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* From here on the log's file cannot grow. */
static void no_more_room(struct world *world) {
  struct journal_stats stats;
  journal_stats(world->journal, &stats);
  file_size_limit(stats.file_bytes);
}

static struct answer submit(struct world *world, unsigned number, const char *payload) {
  char key[16];
  (void)snprintf(key, sizeof key, "d%u", number);
  struct command command = world_submit(world, key);
  if (payload != NULL) command.as.submit.payload = bytes_text(payload);
  world_identify(world, &command, key);
  return world_do(world, &command);
}

/* Submissions until the first is refused; their number. */
static unsigned fill_up(struct world *world, const char *payload) {
  for (unsigned i = 0; i < 10000; i++) {
    struct answer answer = submit(world, i, payload);
    if (answer.status == STATUS_OK) continue;
    assert_int_equal(answer.status, STATUS_UNAVAILABLE);
    assert_true(answer.fault.retry_after_ms > 0);
    return i;
  }
  fail_msg("the disk never filled up");
  return 0;
}

static void running_work_ends_out_of_the_reserve(void **context) {
  (void)context;
  struct world *world = malloc(sizeof *world);
  char *big = big_text();
  world_open(world);
  (void)world_hello(world, 1, 4);
  for (unsigned i = 0; i < 4; i++) {
    char key[8] = {'r', (char)('0' + i), 0};
    (void)world_submitted(world, key);
  }
  struct push pushes[4];
  for (unsigned i = 0; i < 4; i++) {
    pushes[i] = *world_take(world, MAIL_ASSIGN, 1);
    if (i < 3) world_start(world, &pushes[i]);
  }
  no_more_room(world);
  unsigned taken = fill_up(world, big);
  assert_true(taken > 3);
  struct answer known = submit(world, 1, big); /* a repeat needs no room */
  assert_true(known.status == STATUS_OK && known.deduplicated);

  world_start(world, &pushes[3]); /* all that is under way goes on: start, renew, report, cancel, review */
  struct command renew = world_ref(world, COMMAND_RENEW, &pushes[3]);
  assert_int_equal(world_do(world, &renew).status, STATUS_OK);
  assert_int_equal(world_report(world, &pushes[0], OUTCOME_SUCCEEDED, false).task_state, TASK_SUCCEEDED);
  assert_int_equal(world_report(world, &pushes[1], OUTCOME_FAILED, false).task_state, TASK_FAILED);
  assert_int_equal(world_report(world, &pushes[2], OUTCOME_UNKNOWN, false).task_state, TASK_NEEDS_REVIEW);
  struct command review = world_review(world, &pushes[2].task_id, 4, OUTCOME_FAILED, "r");
  assert_int_equal(world_do(world, &review).status, STATUS_OK);
  struct command cancel = world_cancel(world, &known.as.task.id, "c");
  assert_int_equal(world_do(world, &cancel).as.task.state, TASK_CANCELLED);
  struct command retry = world_retry(world, &pushes[1].task_id, 4, "t"); /* a new task */
  assert_int_equal(world_do(world, &retry).status, STATUS_UNAVAILABLE);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0); /* nothing new is given out, though slots are free */
  world_check(world);

  world_restart(world); /* a restart changes nothing of it, and is possible */
  (void)world_hello(world, 1, 4);
  world_forget(world);
  world_tick(world);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0);
  assert_int_equal(world_do(world, &retry).status, STATUS_UNAVAILABLE);

  file_size_limit(RLIM_INFINITY);
  world_tick(world);
  assert_true(world_count(world, MAIL_ASSIGN, 1) > 0); /* by itself */
  assert_int_equal(world_do(world, &retry).status, STATUS_OK);
  assert_int_equal(submit(world, taken, big).status, STATUS_OK);
  world_check(world);
  world_close(world);
  free(world);
  free(big);
}

/* The reserve is used up too: writes are refused, timers wait, reads pass, nothing breaks; with room again nothing is lost. */
static void the_reserve_ends_too(void **context) {
  (void)context;
  struct world *world = malloc(sizeof *world);
  char *big = big_text();
  world_open(world);
  enum { runners = 8 }; /* of one attempt a bounded number of reports without authority is kept */
  struct push pushes[runners];
  (void)world_hello(world, 1, runners);
  for (unsigned i = 0; i < runners; i++) {
    char key[8] = {'r', (char)('0' + i), 0};
    (void)world_submitted(world, key);
  }
  for (unsigned i = 0; i < runners; i++) {
    pushes[i] = *world_take(world, MAIL_ASSIGN, 1);
    world_start(world, &pushes[i]);
  }
  struct push push = pushes[0];
  struct task running = world_task(world, &push.task_id);
  struct command tired = world_submit(world, "tired");
  tired.as.submit.start_deadline_at = world->now_us + 20000000;
  world_identify(world, &tired, "tired");
  struct task waiting = world_do(world, &tired).as.task;
  no_more_room(world);
  (void)fill_up(world, big);
  unsigned recorded = 0;
  struct answer answer;
  for (;; recorded++) {
    struct push old = pushes[recorded % runners]; /* an epoch that never was: each report of it is evidence, of 256 KiB */
    old.task.epoch = 9;
    struct command report = world_finish(world, &old, OUTCOME_FAILED, false);
    report.as.finish.report.error_details = bytes_text(big);
    world_identify(world, &report, "");
    answer = world_do(world, &report);
    if (answer.status != STATUS_OK) break;
    assert_true(answer.as.worker.evidence && recorded < 2000);
  }
  assert_int_equal(answer.status, STATUS_UNAVAILABLE);
  assert_true(answer.fault.retry_after_ms > 0 && recorded > 50);
  struct command cancel = world_cancel(world, &running.id, "c");
  assert_int_equal(world_do(world, &cancel).status, STATUS_UNAVAILABLE);
  assert_int_equal(world_task(world, &running.id).state, TASK_RUNNING); /* reads pass */
  struct command renew = world_ref(world, COMMAND_RENEW, &push);        /* and what costs nothing */
  assert_int_equal(world_do(world, &renew).status, STATUS_OK);
  world->now_us += 20000000; /* a timer comes: it must wait, without spinning */
  assert_false(world_tick_once(world));
  assert_true(world->next_us > world->now_us);
  assert_int_equal(world_task(world, &waiting.id).state, TASK_WAITING);
  world_check(world);
  file_size_limit(RLIM_INFINITY);
  world_tick(world);
  assert_int_equal(world_task(world, &waiting.id).state, TASK_FAILED);
  assert_int_equal(world_do(world, &cancel).status, STATUS_OK);
  assert_int_equal(world_report(world, &push, OUTCOME_CANCELLED, false).task_state, TASK_CANCELLED);
  world_check(world);
  world_close(world);
  free(world);
  free(big);
}

/* The time of a schedule has come and must wait for room: leases end in their own time all the same, and not when it is looked
 * at again. */
static void a_schedule_that_waits_for_room_delays_nothing(void **context) {
  (void)context;
  struct world *world = malloc(sizeof *world);
  char *big = big_text();
  world_open(world);
  struct task running = world_submitted(world, "running");
  struct push push = *world_assigned(world, 1);
  world_start(world, &push);
  struct command create = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  create.as.schedule.interval_ms = push.attempt.lease_ms - 500;
  struct schedule schedule = world_scheduled(world, &create);
  no_more_room(world);
  (void)fill_up(world, big);
  int64_t lease_until = world_attempt(world, &running.id)->live_until;
  int64_t due = world_get_schedule(world, &schedule.id).next_at;
  world->now_us = due;
  assert_true(lease_until > due && lease_until < due + disk_full_again_us);
  assert_false(world_tick_once(world)); /* no spinning */
  assert_int_equal(world->next_us, lease_until);
  assert_int_equal(world_get_schedule(world, &schedule.id).next_at, due);
  world->now_us = lease_until;
  world_tick(world);
  assert_int_equal(world_task(world, &running.id).state, TASK_NEEDS_REVIEW);
  assert_int_equal(world->next_us, lease_until + disk_full_again_us);
  file_size_limit(RLIM_INFINITY);
  world_tick(world);
  assert_true(world_get_schedule(world, &schedule.id).next_at > due);
  world_check(world);
  world_close(world);
  free(world);
  free(big);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(running_work_ends_out_of_the_reserve),
      cmocka_unit_test(the_reserve_ends_too),
      cmocka_unit_test(a_schedule_that_waits_for_room_delays_nothing),
  };
  (void)signal(SIGXFSZ, SIG_IGN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
