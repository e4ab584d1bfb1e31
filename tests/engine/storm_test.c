/* Much at once: deadlines and leases that end together, more than a tick takes, payloads that fill a commit, clocks that jump.
 */
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

/* count submissions, in batches of a thousand; change (may be NULL) is asked for each. */
static void submit_many(struct world *world, uint32_t count, void (*change)(struct submit_command *submit, uint32_t number)) {
  static uint32_t serial;
  for (uint32_t done = 0; done < count;) {
    uint32_t now = count - done < batch_items_max ? count - done : batch_items_max;
    struct batch_item *items = calloc(now, sizeof *items);
    for (uint32_t i = 0; i < now; i++) {
      char key[24];
      (void)snprintf(key, sizeof key, "b%u", serial++);
      items[i].command = world_submit(world, key);
      if (change != NULL) change(&items[i].command.as.submit, done + i);
      world_identify(world, &items[i].command, key);
    }
    struct command batch = {.kind = COMMAND_BATCH, .who = world->who, .as.batch = {items, now}};
    assert_int_equal(world_do(world, &batch).status, STATUS_OK);
    for (uint32_t i = 0; i < now; i++) assert_int_equal(items[i].answer.status, STATUS_OK);
    free(items);
    done += now;
  }
}

static void one_second(struct submit_command *submit, uint32_t number) {
  (void)number;
  submit->task_timeout_ms = submit->attempt_timeout_ms = 1000;
}

/* ---- expiry ---- */

static void five_thousand_deadlines_at_once(void **context) {
  struct world *world = *context;
  submit_many(world, 5000, one_second);
  world->now_us += 1000000;
  struct command get = {.kind = COMMAND_GET_LOG_STATE, .who = world->who};
  struct ticket ticket = {.home = &world->outbox, .command = get};
  struct fault fault = {0};
  assert_int_equal(engine_submit(world->engine, &ticket, &fault), STATUS_OK);
  const struct queue *live = state_queue(world->engine->state, &world->queue_id);
  for (uint64_t done = 0; done < 5000;) {
    bool more = world_tick_once(world);
    if (done == 0) assert_true(ticket.answer.as.position > 0); /* who asks is not kept waiting by the storm */
    done += tick_expiries_max;
    assert_int_equal(live->counts[TASK_FAILED], done < 5000 ? done : 5000);
    assert_int_equal(more, done < 5000);
  }
  struct queue queue = world_get_queue(world, &world->queue_id);
  assert_int_equal(queue.counts[TASK_FAILED], 5000);
  assert_int_equal(queue.counts[TASK_WAITING], 0);
  assert_false(world_tick_once(world));
}

/* The storm is longer than a tick, and workers stand ready: nobody gets what is over. */
static void what_is_over_is_never_leased(void **context) {
  struct world *world = *context;
  submit_many(world, 3000, one_second);
  world->now_us += 1000000;
  struct command hello = world_hello_command(world, 1, 1000);
  assert_int_equal(world_do(world, &hello).status, STATUS_OK);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 0);
  assert_int_equal(world_get_queue(world, &world->queue_id).counts[TASK_FAILED], 3000);
  struct task fresh = world_submitted(world, "after");
  assert_int_equal(world_task(world, &fresh.id).state, TASK_LEASED);
}

static void by_number(struct submit_command *submit, uint32_t number) {
  submit->priority = number % 10;
  submit->task_timeout_ms = 3600000;
  submit->initial_delay_ms = 1000;
  submit->max_delay_ms = 60000;
  submit->recovery_safety = RECOVERY_IDEMPOTENT;
}

/* Three thousand leases end at once; all come back after their own delays, and go out in order: priority, available_at, id. */
static void a_storm_of_retries_goes_out_in_order(void **context) {
  struct world *world = *context;
  submit_many(world, 3000, by_number);
  for (uint64_t session = 1; session <= 3; session++) (void)world_hello(world, session, 1000);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 3000);
  world_forget(world);
  world_advance_ms(world, lease_ms_default);
  struct queue queue = world_get_queue(world, &world->queue_id);
  assert_int_equal(queue.counts[TASK_WAITING], 3000);
  assert_int_equal(world_count(world, MAIL_ENDED, 0), 3000); /* each was told once */
  for (uint64_t session = 1; session <= 3; session++) world_bye(world, session);
  world_forget(world);
  world_advance_ms(world, 1000); /* all delays are over */
  (void)world_hello(world, 9, 1000);
  struct task last = {.priority = 9};
  for (unsigned i = 0; i < 1000; i++) {
    const struct push *push = world_take(world, MAIL_ASSIGN, 9);
    assert_non_null(push);
    const struct task *task = &push->task;
    assert_int_equal(task->attempt_count, 2);
    assert_false(task->effect_uncertain); /* none was started */
    bool after =
        last.priority > task->priority ||
        (last.priority == task->priority && (last.available_at < task->available_at ||
                                             (last.available_at == task->available_at && id_compare(&last.id, &task->id) < 0)));
    assert_true(after);
    last = *task;
  }
  assert_null(world_take(world, MAIL_ASSIGN, 9));
}

/* ---- the bounds of a tick ---- */

static void more_tickets_than_a_tick_takes(void **context) {
  struct world *world = *context;
  enum { many = tick_tickets_max * 2 + 100 };
  struct ticket *tickets = calloc(many, sizeof *tickets);
  struct fault fault = {0};
  for (unsigned i = 0; i < many; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "t%u", i);
    tickets[i] = (struct ticket){.home = &world->outbox, .command = world_submit(world, key)};
    assert_int_equal(engine_submit(world->engine, &tickets[i], &fault), STATUS_OK);
  }
  static const unsigned after[] = {tick_tickets_max, tick_tickets_max * 2, many};
  for (unsigned tick = 0; tick < 3; tick++) {
    assert_int_equal(world_tick_once(world), tick < 2); /* busy as long as more waits */
    unsigned answered = 0;
    for (unsigned i = 0; i < many; i++) answered += tickets[i].answer.created;
    assert_int_equal(answered, after[tick]);
  }
  for (unsigned i = 1; i < many; i++) /* first come, first served */
    assert_true(id_compare(&tickets[i - 1].answer.as.task.id, &tickets[i].answer.as.task.id) < 0);
  free(tickets);
}

static char *big_payload(void) {
  char *text = malloc(document_bytes_max + 1);
  memset(text, 'x', document_bytes_max);
  text[0] = text[document_bytes_max - 1] = '"';
  text[document_bytes_max] = 0;
  return text;
}

/* Payloads of 256 KiB: a commit holds only so many, the rest follows in the next ones; nothing is lost or mixed up. */
static void big_payloads_take_several_ticks(void **context) {
  struct world *world = *context;
  enum { many = 200 };
  struct command *commands = calloc(many, sizeof *commands);
  struct answer *answers = calloc(many, sizeof *answers);
  char *payload = big_payload();
  for (unsigned i = 0; i < many; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "p%u", i);
    commands[i] = world_submit(world, key);
    commands[i].as.submit.payload = bytes_of((uint8_t *)payload, document_bytes_max);
    world_identify(world, &commands[i], key);
  }
  struct journal_stats before, after;
  journal_stats(world->journal, &before);
  world_do_all(world, commands, answers, many);
  journal_stats(world->journal, &after);
  assert_true(after.commits - before.commits >= 3);
  assert_true(after.bytes - before.bytes > (uint64_t)many * document_bytes_max);
  for (unsigned i = 0; i < many; i++) assert_true(answers[i].status == STATUS_OK && answers[i].created);
  world_check(world);
  free(payload);
  free(commands);
  free(answers);
}

/* A flood of large submissions fills each commit as far as tickets may: workers get their claims in the very same one. */
static void a_flood_keeps_no_worker_waiting(void **context) {
  struct world *world = *context;
  enum { many = 150 };
  (void)world_hello(world, 1, 1000);
  char *payload = big_payload();
  struct ticket *tickets = calloc(many, sizeof *tickets);
  struct fault fault = {0};
  for (unsigned i = 0; i < many; i++) {
    char key[24];
    (void)snprintf(key, sizeof key, "f%u", i);
    tickets[i] = (struct ticket){.home = &world->outbox, .command = world_submit(world, key)};
    tickets[i].command.as.submit.payload = bytes_of((uint8_t *)payload, document_bytes_max);
    world_identify(world, &tickets[i].command, key);
    assert_int_equal(engine_submit(world->engine, &tickets[i], &fault), STATUS_OK);
  }
  for (bool more = true; more;) {
    more = world_tick_once(world);
    assert_true(world_count(world, MAIL_ASSIGN, 1) > 0);
    world_forget(world);
    world->now_us += 20000; /* its socket has caught up */
  }
  for (unsigned i = 0; i < many; i++) assert_true(tickets[i].answer.created);
  free(tickets);
  free(payload);
}

/* More claims than one commit takes: the rest follows at once, not when the next timer comes. */
static void claims_beyond_one_commit_follow_at_once(void **context) {
  struct world *world = *context;
  submit_many(world, 2500, by_number);
  for (uint64_t session = 1; session <= 2; session++) (void)world_hello(world, session, 1000);
  struct command commands[2] = {world_hello_command(world, 3, 1000), world_hello_command(world, 4, 1000)};
  struct answer answers[2];
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 2000);
  world_do_all(world, commands, answers, 2);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 2500);
}

/* ---- clocks that jump ---- */

/* The engine's time is read from clocks of which the wall jumps by six hours: nothing expires early, nothing stalls, order
 * holds. */
static void jumping_clocks_expire_nothing_early(void **context) {
  (void)context;
  static const int64_t hour = INT64_C(3600) * 1000000;
  static const int64_t jumps[] = {6 * INT64_C(3600000000), -6 * INT64_C(3600000000)};
  for (size_t row = 0; row < 2; row++) {
    struct world *world = malloc(sizeof *world);
    struct clock clock;
    world_open(world);
    int64_t start = world->now_us, wall = start, monotonic = 1000, last = start;
    clock_init(&clock, wall, monotonic, journal_last_time_us(world->journal));
    struct command command = world_submit(world, "k");
    command.as.submit.task_timeout_ms = command.as.submit.attempt_timeout_ms = 2 * 3600000;
    world_identify(world, &command, "k");
    (void)world_do(world, &command);
    struct push push = *world_assigned(world, 1);
    world_start(world, &push);
    int64_t deadline = world_task(world, &push.task_id).deadline_at;
    for (unsigned second = 0; second < 7190; second++) { /* nearly two hours of real time, renewing every 10 s */
      monotonic += 1000000;
      wall += 1000000 + (second % 600 == 300 ? jumps[row] : 0);
      world->now_us = clock_read(&clock, wall, monotonic);
      assert_true(world->now_us > last && world->now_us - last <= 1001001 && world->now_us - last >= 998999);
      last = world->now_us;
      if (world->now_us >= deadline) break;
      if (second % 10 != 9) continue;
      struct command renew = world_ref(world, COMMAND_RENEW, &push);
      assert_int_equal(world_do(world, &renew).status, STATUS_OK);
    }
    int64_t real = monotonic - 1000, slack = real / 1000 + 1000000;
    assert_in_range(world->now_us - start, real - slack, real + slack);
    assert_int_equal(world_count(world, MAIL_ENDED, 0), 0);
    if (world->now_us < deadline) assert_int_equal(world_task(world, &push.task_id).state, TASK_RUNNING);
    struct task queued = world_submitted(world, "new"); /* and work goes on at the new times */
    assert_true(queued.created_at == world->now_us && queued.deadline_at == world->now_us + 600000000);
    world->now_us = clock_read(&clock, wall - 6 * hour, monotonic + 2 * hour);
    world_tick(world);
    assert_int_equal(world_task(world, &push.task_id).state, TASK_NEEDS_REVIEW); /* its real time is over: no stall */
    world_check(world);
    world_close(world);
    free(world);
  }
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(five_thousand_deadlines_at_once),         ROW(what_is_over_is_never_leased),
      ROW(a_storm_of_retries_goes_out_in_order),    ROW(more_tickets_than_a_tick_takes),
      ROW(big_payloads_take_several_ticks),         ROW(a_flood_keeps_no_worker_waiting),
      ROW(claims_beyond_one_commit_follow_at_once), cmocka_unit_test(jumping_clocks_expire_nothing_early),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
