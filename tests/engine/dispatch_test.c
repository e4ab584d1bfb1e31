/* Who gets which task: order, shares, limits, keys, sessions. */
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

static struct task submit(struct world *world, unsigned number, void (*change)(struct submit_command *, unsigned)) {
  char key[16];
  (void)snprintf(key, sizeof key, "%u", number);
  struct command command = world_submit(world, key);
  if (change != NULL) change(&command.as.submit, number);
  world_identify(world, &command, key);
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.task;
}

static struct answer act(struct world *world, enum command_kind kind, const struct push *assign) {
  struct command command = world_ref(world, kind, assign);
  return world_do(world, &command);
}

static void finish(struct world *world, const struct push *assign) {
  assert_int_equal(act(world, COMMAND_START, assign).status, STATUS_OK);
  struct command command = world_finish(world, assign, OUTCOME_SUCCEEDED, false);
  assert_int_equal(world_do(world, &command).as.worker.task_state, TASK_SUCCEEDED);
}

static void by_row(struct submit_command *submit, unsigned number) {
  static const uint32_t priorities[] = {0, 9, 5, 9, 0};
  submit->priority = priorities[number];
}

/* Priority high to low, then available_at, then id (ids rise with acceptance). */
static void order_of_assignment(void **context) {
  struct world *world = *context;
  static const unsigned expected[] = {1, 3, 2, 0, 4};
  struct task tasks[5];
  for (unsigned i = 0; i < 5; i++) {
    tasks[i] = submit(world, i, by_row);
    if (i == 2) world_advance_ms(world, 10);
  }
  (void)world_hello(world, 1, 5);
  for (unsigned i = 0; i < 5; i++) {
    const struct push *push = world_take(world, MAIL_ASSIGN, 1);
    assert_non_null(push);
    assert_true(id_equal(&push->task_id, &tasks[expected[i]].id));
  }
}

static void not_before_available_at(void **context) {
  struct world *world = *context;
  struct command command = world_submit(world, "later");
  command.as.submit.available_at = world->now_us + 5000000;
  world_identify(world, &command, "later");
  (void)world_hello(world, 1, 1);
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
  world_advance_ms(world, 4999);
  assert_null(world_take(world, MAIL_ASSIGN, 0));
  assert_int_equal(world->next_us - world->now_us, 1000);
  world_advance_ms(world, 1);
  assert_non_null(world_take(world, MAIL_ASSIGN, 1));
}

/* Deadlines of a waiting task: at the instant itself it is over. */
static void waiting_tasks_end_at_their_deadline(void **context) {
  struct world *world = *context;
  struct command command = world_submit(world, "start");
  command.as.submit.start_deadline_at = world->now_us + 1000000;
  world_identify(world, &command, "start");
  struct task early = world_do(world, &command).as.task;
  struct task late = submit(world, 1, NULL);
  world->now_us += 999999;
  world_tick(world);
  assert_int_equal(world_task(world, &early.id).state, TASK_WAITING);
  world->now_us += 1;
  world_tick(world);
  assert_int_equal(world_task(world, &early.id).state, TASK_FAILED);
  assert_int_equal(world_task(world, &late.id).state, TASK_WAITING);
  world->now_us = late.deadline_at;
  (void)world_hello(world, 1, 1);
  assert_null(world_take(world, MAIL_ASSIGN, 0));
  assert_int_equal(world_task(world, &late.id).state, TASK_FAILED);
}

static void workers_get_even_shares(void **context) {
  struct world *world = *context;
  unsigned shares[5] = {0};
  for (uint64_t session = 1; session <= 4; session++) (void)world_hello(world, session, 5);
  for (unsigned i = 0; i < 20; i++) (void)submit(world, i, NULL);
  for (uint64_t session = 1; session <= 4; session++)
    while (world_take(world, MAIL_ASSIGN, session) != NULL) shares[session]++;
  for (unsigned i = 1; i <= 4; i++) assert_int_equal(shares[i], 5);
}

static void the_most_free_worker_is_first(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 2);
  (void)world_hello(world, 2, 10);
  for (unsigned i = 0; i < 8; i++) (void)submit(world, i, NULL);
  unsigned small = 0, large = 0;
  while (world_take(world, MAIL_ASSIGN, 1) != NULL) small++;
  while (world_take(world, MAIL_ASSIGN, 2) != NULL) large++;
  assert_int_equal(large, 8); /* it always had at least as much room, and was idle longest on the tie */
  assert_int_equal(small, 0);
}

static void capacity_is_never_passed(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 2);
  for (unsigned i = 0; i < 5; i++) (void)submit(world, i, NULL);
  const struct push *first = world_take(world, MAIL_ASSIGN, 1);
  assert_non_null(world_take(world, MAIL_ASSIGN, 1));
  assert_null(world_take(world, MAIL_ASSIGN, 1));
  finish(world, first);
  assert_non_null(world_take(world, MAIL_ASSIGN, 1)); /* in the tick of the report */
  assert_null(world_take(world, MAIL_ASSIGN, 1));
  struct command more = {.kind = COMMAND_CAPACITY, .who = world->who, .session = 1, .as.capacity.capacity = 4};
  assert_int_equal(world_do(world, &more).status, STATUS_OK);
  assert_non_null(world_take(world, MAIL_ASSIGN, 1));
  assert_non_null(world_take(world, MAIL_ASSIGN, 1));
  assert_null(world_take(world, MAIL_ASSIGN, 1));
}

static void drained_when_nothing_is_held(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 2);
  (void)submit(world, 0, NULL);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  struct command drain = {.kind = COMMAND_DRAIN, .who = world->who, .session = 1};
  assert_int_equal(world_do(world, &drain).status, STATUS_OK);
  assert_null(world_take(world, MAIL_DRAINED, 1));
  (void)submit(world, 1, NULL);
  assert_null(world_take(world, MAIL_ASSIGN, 1));
  finish(world, assign);
  assert_non_null(world_take(world, MAIL_DRAINED, 1));
  assert_null(world_take(world, MAIL_ASSIGN, 1));
}

static void same_key(struct submit_command *submit, unsigned number) {
  static const uint8_t key[] = "account-7";
  submit->concurrency_key = bytes_of(key, number < 3 ? 9 : 8);
}

/* Tasks of one queue with the same concurrency key take turns; another key is not in their way. */
static void one_at_a_time_by_key(void **context) {
  struct world *world = *context;
  struct task tasks[4];
  (void)world_hello(world, 1, 10);
  for (unsigned i = 0; i < 4; i++) tasks[i] = submit(world, i, same_key);
  const struct push *first = world_take(world, MAIL_ASSIGN, 1);
  const struct push *other = world_take(world, MAIL_ASSIGN, 1);
  assert_true(id_equal(&first->task_id, &tasks[0].id));
  assert_true(id_equal(&other->task_id, &tasks[3].id));
  assert_null(world_take(world, MAIL_ASSIGN, 1));
  struct push held = *first;
  world_restart(world); /* the key stays held over a restart */
  (void)world_hello(world, 1, 10);
  (void)world_take(world, MAIL_ASSIGN, 1), (void)world_take(world, MAIL_ASSIGN, 1); /* assigned again: not started */
  assert_null(world_take(world, MAIL_ASSIGN, 1));
  finish(world, &held);
  const struct push *second = world_take(world, MAIL_ASSIGN, 1);
  assert_true(second != NULL && id_equal(&second->task_id, &tasks[1].id));
  assert_null(world_take(world, MAIL_ASSIGN, 1));
  finish(world, second);
  assert_true(id_equal(&world_take(world, MAIL_ASSIGN, 1)->task_id, &tasks[2].id));
}

/* So many tasks wait for one key that putting them aside takes several ticks: none of them does more than its share, whoever
 * asks for something is answered meanwhile, and the task behind them has its turn. */
static void many_tasks_of_one_key_stop_nobody(void **context) {
  enum { keyed = 2 * dispatch_asides_max + 2, together = 512, ticks = 3 };
  static struct command commands[together];
  static struct answer answers[together];
  struct world *world = *context;
  char key[16];
  for (uint32_t done = 0, count; done < keyed; done += count) {
    count = keyed - done < together ? keyed - done : together;
    for (uint32_t i = 0; i < count; i++) {
      (void)snprintf(key, sizeof key, "k%u", done + i);
      commands[i] = world_submit(world, key);
      same_key(&commands[i].as.submit, 0);
      world_identify(world, &commands[i], key);
    }
    world_do_all(world, commands, answers, count);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(answers[i].status, STATUS_OK);
  }
  struct task behind = submit(world, 1, NULL);
  const struct state *state = world->engine->state;
  uint64_t ready = state_ready_count(state);
  assert_int_equal(ready, keyed + 1);
  struct fault fault = {0};
  struct ticket hello = {.home = &world->outbox, .gauge = &world->gauges[1], .command = world_hello_command(world, 1, 10)};
  assert_int_equal(engine_submit(world->engine, &hello, &fault), STATUS_OK);
  for (unsigned tick = 1; tick <= ticks; tick++) {
    (void)snprintf(key, sizeof key, "t%u", tick);
    struct ticket ticket = {.home = &world->outbox, .command = world_submit(world, key)};
    ticket.command.as.submit.available_at = world->now_us + 1000000; /* not ready in this test */
    world_identify(world, &ticket.command, key);
    assert_int_equal(engine_submit(world->engine, &ticket, &fault), STATUS_OK);
    bool more = world_tick_once(world);
    assert_int_equal(more, tick < ticks);
    assert_int_equal(ticket.answer.status, STATUS_OK);
    assert_int_equal(world_count(world, MAIL_ASSIGN, 1), tick < ticks ? 1 : 2);
    uint64_t left = state_ready_count(state);
    assert_int_equal(ready - left, tick == 1 ? dispatch_asides_max + 1 : tick < ticks ? dispatch_asides_max : 2);
    ready = left;
  }
  assert_int_equal(ready, 0);
  (void)world_take(world, MAIL_ASSIGN, 1); /* of the key */
  assert_true(id_equal(&world_take(world, MAIL_ASSIGN, 1)->task_id, &behind.id));
}

static void only_what_the_worker_offers(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 10);
  struct command command = world_submit(world, "version");
  command.as.submit.handler_version = bytes_text("v2");
  world_identify(world, &command, "version");
  (void)world_do(world, &command);
  command.as.submit.handler_version = bytes_text("v1");
  command.as.submit.queue_id = world->other_queue_id;
  world_identify(world, &command, "queue");
  (void)world_do(world, &command);
  assert_null(world_take(world, MAIL_ASSIGN, 1));
  struct command hello = world_hello_command(world, 2, 1);
  hello.who = world->narrow; /* out of its scope */
  struct answer refused = world_do(world, &hello);
  assert_int_equal(refused.status, STATUS_NOT_FOUND);
  assert_string_equal(refused.fault.field, "/queue_ids/0");
}

/* A newer connection of the same instance takes over: the older is closed, what is held is named, what has not started comes
 * again. */
static void an_instance_comes_back(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 3);
  for (unsigned i = 0; i < 2; i++) (void)submit(world, i, NULL);
  const struct push *running = world_take(world, MAIL_ASSIGN, 1), *leased = world_take(world, MAIL_ASSIGN, 1);
  (void)act(world, COMMAND_START, running);
  struct command hello = world_hello_command(world, 251, 3);                          /* another session … */
  hello.as.hello.instance_id = world_hello_command(world, 1, 3).as.hello.instance_id; /* … of the same instance */
  struct answer back = world_do(world, &hello);
  assert_int_equal(back.status, STATUS_OK);
  assert_int_equal(back.as.welcome.held_count, 2);
  free(back.as.welcome.held);
  const struct push *closed = world_take(world, MAIL_CLOSE, 1);
  assert_true(closed != NULL && closed->close_code == worker_close_replaced);
  const struct push *again = world_take(world, MAIL_ASSIGN, 251);
  assert_true(again != NULL && id_equal(&again->attempt_id, &leased->attempt_id));
  assert_null(world_take(world, MAIL_ASSIGN, 251));
  (void)submit(world, 2, NULL);
  assert_non_null(world_take(world, MAIL_ASSIGN, 251)); /* one slot was free */
  (void)submit(world, 3, NULL);
  assert_null(world_take(world, MAIL_ASSIGN, 251));
  hello.session = 252;
  hello.who = world->other; /* another application's instance of the same id is another instance */
  struct answer stranger = world_do(world, &hello);
  assert_int_equal(stranger.as.welcome.held_count, 0);
  assert_null(world_take(world, MAIL_CLOSE, 251));
}

static void a_second_hello_is_refused(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 3);
  assert_int_equal(world_hello(world, 1, 3).status, STATUS_STATE_CONFLICT);
}

/* A socket that lags gets nothing new, and gets it once it has caught up. */
static void slow_sockets_wait(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 100);
  atomic_store(&world->gauges[1].unsent_bytes, worker_unsent_bytes_pause - 1);
  (void)submit(world, 0, NULL);
  assert_non_null(world_take(world, MAIL_ASSIGN, 1));
  atomic_store(&world->gauges[1].unsent_bytes, worker_unsent_bytes_pause);
  (void)submit(world, 1, NULL); /* passes the mark: found out with this one at the latest */
  (void)world_take(world, MAIL_ASSIGN, 1);
  atomic_store(&world->gauges[1].unsent_bytes, worker_unsent_bytes_pause);
  (void)submit(world, 2, NULL);
  assert_null(world_take(world, MAIL_ASSIGN, 1));
  atomic_store(&world->gauges[1].unsent_bytes, 0);
  world_advance_ms(world, 20);
  assert_non_null(world_take(world, MAIL_ASSIGN, 1));
}

/* ---- the mailbox ---- */

static void a_full_mailbox_refuses_and_recovers(void **context) {
  struct world *world = *context;
  struct ticket *tickets = calloc(mailbox_tickets_max + 1, sizeof *tickets);
  struct fault fault = {0};
  for (int i = 0; i <= mailbox_tickets_max; i++) {
    tickets[i].home = &world->outbox;
    tickets[i].command.kind = COMMAND_GET_LOG_STATE;
    enum status status = engine_submit(world->engine, &tickets[i], &fault);
    assert_int_equal(status, i < mailbox_tickets_max ? STATUS_OK : STATUS_UNAVAILABLE);
  }
  assert_int_equal(fault.retry_after_ms, mailbox_full_retry_ms);
  world_tick(world);
  for (int i = 0; i < mailbox_tickets_max; i++) assert_true(tickets[i].answer.as.position > 0);
  assert_int_equal(engine_submit(world->engine, &tickets[0], &fault), STATUS_OK);
  world_tick(world);
  free(tickets);
}

static void draining_refuses_new_work_and_lets_the_rest_end(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 1);
  (void)submit(world, 0, NULL);
  (void)submit(world, 1, NULL);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  engine_drain(world->engine);
  struct ticket ticket = {.home = &world->outbox, .command = world_submit(world, "new")};
  struct fault fault = {0};
  assert_int_equal(engine_submit(world->engine, &ticket, &fault), STATUS_UNAVAILABLE);
  finish(world, assign); /* its worker is free, and the second task waits: for the next start */
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(order_of_assignment),
      ROW(not_before_available_at),
      ROW(waiting_tasks_end_at_their_deadline),
      ROW(workers_get_even_shares),
      ROW(the_most_free_worker_is_first),
      ROW(capacity_is_never_passed),
      ROW(drained_when_nothing_is_held),
      ROW(one_at_a_time_by_key),
      ROW(many_tasks_of_one_key_stop_nobody),
      ROW(only_what_the_worker_offers),
      ROW(an_instance_comes_back),
      ROW(a_second_hello_is_refused),
      ROW(slow_sockets_wait),
      ROW(a_full_mailbox_refuses_and_recovers),
      ROW(draining_refuses_new_work_and_lets_the_rest_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
