/* What a queue allows at once: turns by concurrency key, max_running, rate, pause; exact, also over requeues and restarts. */
#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"
#include "state/internal.h"

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

/* A submission with this concurrency key (NULL: none) and handler. */
static struct task submit(struct world *world, const char *name, const char *key, const char *handler) {
  struct command command = world_submit(world, name);
  if (key != NULL) command.as.submit.concurrency_key = bytes_text(key);
  command.as.submit.handler = bytes_text(handler);
  command.as.submit.initial_delay_ms = command.as.submit.max_delay_ms = 0;
  world_identify(world, &command, name);
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.task;
}

static void submit_many(struct world *world, unsigned count, const char *key) {
  for (unsigned i = 0; i < count; i++) {
    char name[32];
    static unsigned serial;
    (void)snprintf(name, sizeof name, "m%u", serial++);
    (void)submit(world, name, key, "h");
  }
}

static void finish(struct world *world, const struct push *assign) {
  world_start(world, assign);
  assert_int_equal(world_report(world, assign, OUTCOME_SUCCEEDED, false).task_state, TASK_SUCCEEDED);
}

static void hello_for(struct world *world, uint64_t session, const char *handler) {
  struct handler_offer offer = {bytes_text(handler), bytes_text("v1")};
  struct command command = world_hello_command(world, session, 10);
  command.as.hello.handlers = &offer;
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
}

static void cancel(struct world *world, const struct task *task) {
  struct command command = world_cancel(world, &task->id, "c");
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
}

/* ---- turns by concurrency key ---- */

static void as_many_at_once_as_the_queue_says(void **context) {
  struct world *world = *context;
  struct queue_command change = {.given = GIVEN_KEY_CONCURRENCY, .key_concurrency = 2};
  (void)world_change_queue(world, &world->queue_id, &change);
  (void)world_hello(world, 1, 100);
  submit_many(world, 10, "k");
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 2);
  const struct push *first = world_take(world, MAIL_ASSIGN, 1), *second = world_take(world, MAIL_ASSIGN, 1);
  finish(world, first);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 1);
  change.key_concurrency = 5; /* raised: tasks that stood aside come at once */
  (void)world_change_queue(world, &world->queue_id, &change);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 4);
  change.key_concurrency = 1; /* lowered: what runs goes on, nothing new until one is left */
  (void)world_change_queue(world, &world->queue_id, &change);
  finish(world, second);
  const struct push *held[4];
  for (unsigned i = 0; i < 4; i++) held[i] = world_take(world, MAIL_ASSIGN, 1);
  for (unsigned i = 0; i < 3; i++) finish(world, held[i]);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0);
  world_check(world);
  finish(world, held[3]);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 1);
  change.key_concurrency = 1000;
  (void)world_change_queue(world, &world->queue_id, &change);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 4); /* all ten were given out */
}

/* The task whose turn it is goes away without having been leased: the turn passes on. */
static void a_turn_that_is_not_taken_passes_on(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 1);
  struct task tasks[4];
  static const char *const names[] = {"a", "b", "c", "d"};
  for (unsigned i = 0; i < 4; i++) tasks[i] = submit(world, names[i], "k", "h");
  const struct push *first = world_take(world, MAIL_ASSIGN, 1);
  assert_true(id_equal(&first->task_id, &tasks[0].id));
  struct command more = {.kind = COMMAND_CAPACITY, .who = world->who, .session = 1, .as.capacity.capacity = 5};
  (void)world_do(world, &more); /* looked for work: the others stand aside */
  world_start(world, first);
  world_pause(world, &world->queue_id, true);
  assert_int_equal(world_report(world, first, OUTCOME_SUCCEEDED, false).task_state, TASK_SUCCEEDED); /* b's turn */
  cancel(world, &tasks[1]);
  world_pause(world, &world->queue_id, false);
  const struct push *next = world_take(world, MAIL_ASSIGN, 1);
  assert_true(next != NULL && id_equal(&next->task_id, &tasks[2].id));
  finish(world, next);
  assert_true(id_equal(&world_take(world, MAIL_ASSIGN, 1)->task_id, &tasks[3].id));
}

/* The same when it runs into its deadline. */
static void a_turn_that_runs_out_passes_on(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 5);
  struct task a = submit(world, "a", "k", "h");
  struct command command = world_submit(world, "b");
  command.as.submit.concurrency_key = bytes_text("k");
  command.as.submit.start_deadline_at = world->now_us + 5000000;
  world_identify(world, &command, "b");
  struct task b = world_do(world, &command).as.task, c = submit(world, "c", "k", "h");
  const struct push *first = world_take(world, MAIL_ASSIGN, 1);
  assert_true(id_equal(&first->task_id, &a.id));
  world_start(world, first);
  world_pause(world, &world->queue_id, true);
  (void)world_report(world, first, OUTCOME_SUCCEEDED, false);
  world_advance_ms(world, 5000);
  assert_int_equal(world_task(world, &b.id).state, TASK_FAILED);
  world_pause(world, &world->queue_id, false);
  const struct push *next = world_take(world, MAIL_ASSIGN, 1);
  assert_true(next != NULL && id_equal(&next->task_id, &c.id));
}

/* A task that no worker offers to take holds no key: others with the same key go on. */
static void a_handler_without_workers_blocks_nobody(void **context) {
  struct world *world = *context;
  hello_for(world, 1, "y");
  struct task first = submit(world, "1", "k", "y"), orphan, second;
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  assert_true(id_equal(&assign->task_id, &first.id));
  hello_for(world, 2, "x");
  orphan = submit(world, "2", "k", "x");
  second = submit(world, "3", "k", "y");
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 0);
  world_bye(world, 2); /* now nobody does x */
  finish(world, assign);
  const struct push *next = world_take(world, MAIL_ASSIGN, 1);
  assert_true(next != NULL && id_equal(&next->task_id, &second.id));
  world_check(world);
  hello_for(world, 3, "x");
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 0); /* the key is held */
  finish(world, next);
  assert_true(id_equal(&world_take(world, MAIL_ASSIGN, 3)->task_id, &orphan.id));
}

/* Of the tasks with one key the best goes first, whenever it came. */
static void a_key_keeps_the_order(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 10);
  (void)submit(world, "first", "k", "h");
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  struct task low = submit(world, "low", "k", "h");
  struct command command = world_submit(world, "high");
  command.as.submit.concurrency_key = bytes_text("k");
  command.as.submit.priority = 9;
  world_identify(world, &command, "high");
  struct task high = world_do(world, &command).as.task;
  struct task last = submit(world, "last", "k", "h");
  const struct id *expected[] = {&high.id, &low.id, &last.id};
  for (unsigned i = 0; i < 3; i++) {
    finish(world, assign);
    assign = world_take(world, MAIL_ASSIGN, 1);
    assert_true(assign != NULL && id_equal(&assign->task_id, expected[i]));
    assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0);
  }
}

static void requeues_and_restarts_keep_the_turns(void **context) {
  struct world *world = *context;
  uint64_t seed = test_seed();
  (void)world_hello(world, 1, 100);
  submit_many(world, 20, "k");
  struct push held = *world_take(world, MAIL_ASSIGN, 1);
  for (unsigned round = 0; round < 30; round++) {
    assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 0);
    switch (test_random(&seed) % 4) {
      case 0: {
        struct command release = world_ref(world, COMMAND_RELEASE, &held);
        assert_int_equal(world_do(world, &release).status, STATUS_OK);
        break;
      }
      case 1:
        world_start(world, &held);
        (void)world_report(world, &held, OUTCOME_FAILED, true);
        break;
      case 2:
        finish(world, &held);
        break;
      default:
        world_restart(world);
        (void)world_hello(world, 1, 100);
        break;
    }
    struct queue queue = world_get_queue(world, &world->queue_id);
    assert_true(queue.counts[TASK_LEASED] + queue.counts[TASK_RUNNING] <= 1);
    const struct push *next = world_take(world, MAIL_ASSIGN, 1);
    if (next == NULL) return assert_int_equal(queue.counts[TASK_WAITING], 0);
    held = *next;
  }
}

/* Keys and handlers that nobody uses any more are forgotten. */
static void nothing_is_left_of_what_is_over(void **context) {
  struct world *world = *context;
  enum { many = 100 };
  struct task tasks[many];
  char texts[many][16];
  (void)world_hello(world, 1, 10);
  for (unsigned i = 0; i < many; i++) {
    (void)snprintf(texts[i], sizeof texts[i], "t%u", i);
    tasks[i] = submit(world, texts[i], i % 3 != 0 ? texts[i / 4] : "shared", i % 2 != 0 ? "h" : texts[i]);
  }
  const struct state *state = world->engine->state;
  assert_true(state->keys.live > 10 && state->buckets.live > 50 && state->turns.live > 0);
  world_bye(world, 1);
  for (unsigned i = 0; i < many; i++) {
    struct task task = world_task(world, &tasks[i].id);
    cancel(world, &task);
  }
  assert_int_equal(state->keys.live, 0);
  assert_int_equal(state->turns.live, 0);
  assert_int_equal(state->buckets.live, 0);
  assert_int_equal(state->instances.live, 0);
}

/* ---- max_running ---- */

static void never_more_than_max_running(void **context) {
  struct world *world = *context;
  struct queue_command change = {.given = GIVEN_MAX_RUNNING, .max_running = 3};
  (void)world_change_queue(world, &world->queue_id, &change);
  for (uint64_t session = 1; session <= 4; session++) (void)world_hello(world, session, 5);
  submit_many(world, 12, NULL);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 3);
  struct push held[3];
  for (unsigned i = 0; i < 3; i++) held[i] = *world_take(world, MAIL_ASSIGN, 0);
  world_start(world, &held[0]);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 0); /* leased and running both count */
  (void)world_report(world, &held[0], OUTCOME_SUCCEEDED, false);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 1);
  world_restart(world);
  for (uint64_t session = 1; session <= 4; session++) (void)world_hello(world, session, 5);
  struct queue queue = world_get_queue(world, &world->queue_id);
  assert_int_equal(queue.counts[TASK_LEASED] + queue.counts[TASK_RUNNING], 3);
  world_forget(world);
  change.max_running = 5;
  (void)world_change_queue(world, &world->queue_id, &change);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 2);
  change.max_running = 0; /* no limit */
  (void)world_change_queue(world, &world->queue_id, &change);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 0), 8);
}

/* Several places free up in one tick: exactly as many are filled. */
static void many_ends_in_one_tick_fill_as_many_places(void **context) {
  struct world *world = *context;
  struct queue_command change = {.given = GIVEN_MAX_RUNNING, .max_running = 4};
  (void)world_change_queue(world, &world->queue_id, &change);
  (void)world_hello(world, 1, 100);
  submit_many(world, 20, NULL);
  struct command reports[4];
  struct answer answers[4];
  for (unsigned i = 0; i < 4; i++) {
    const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
    world_start(world, assign);
    reports[i] = world_finish(world, assign, i < 2 ? OUTCOME_SUCCEEDED : OUTCOME_FAILED, false);
  }
  world_do_all(world, reports, answers, 4);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 4);
  struct queue queue = world_get_queue(world, &world->queue_id);
  assert_int_equal(queue.counts[TASK_LEASED], 4);
}

/* ---- rate ---- */

/* GCRA: burst at once after quiet, then one an interval, to the microsecond; a restart grants nothing. */
static void a_rate_is_kept_exactly(void **context) {
  struct world *world = *context;
  static const struct queue_command rates[] = {
      {.given = GIVEN_RATE, .rate_tasks = 1, .rate_per_ms = 100, .rate_burst = 1},
      {.given = GIVEN_RATE, .rate_tasks = 3, .rate_per_ms = 1000, .rate_burst = 5},
      {.given = GIVEN_RATE, .rate_tasks = 7, .rate_per_ms = 10, .rate_burst = 3},
      {.given = GIVEN_RATE, .rate_tasks = 10, .rate_per_ms = 1, .rate_burst = 0},
  };
  (void)world_hello(world, 1, 1000);
  submit_many(world, 100, NULL);
  world_forget(world);
  for (size_t row = 0; row < sizeof rates / sizeof rates[0]; row++) {
    const struct queue_command *rate = &rates[row];
    int64_t interval = (int64_t)((rate->rate_per_ms * 1000 + rate->rate_tasks - 1) / rate->rate_tasks);
    unsigned burst = rate->rate_burst != 0 ? (unsigned)rate->rate_burst : 1;
    world_advance_ms(world, 3600000); /* quiet; what waited is over */
    (void)world_change_queue(world, &world->queue_id, rate);
    world_forget(world);
    submit_many(world, burst + 8, NULL);
    assert_int_equal(world_count(world, MAIL_ASSIGN, 1), burst);
    for (unsigned i = 0; i < 8; i++) {
      if (i % 3 == 1) {
        world_restart(world);
        (void)world_hello(world, 1, 1000);
        world_forget(world); /* what was leased comes again */
      } else {
        world_forget(world);
      }
      world->now_us += interval - 1;
      world_tick(world);
      assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0);
      assert_int_equal(world->next_us, world->now_us + 1);
      world->now_us += 1;
      world_tick(world);
      assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 1);
    }
  }
}

struct claims {
  struct id stream_queue;
  int64_t times[2000];
  unsigned count;
};

static void keep_claim(void *context, const struct event *event) {
  struct claims *claims = context;
  if (event->type == EVENT_task_leased) claims->times[claims->count++] = event->time_us;
}

/* Over any stretch of time never more than burst + stretch / interval claims, whatever happens in between. */
static void no_stretch_of_time_passes_the_rate(void **context) {
  struct world *world = *context;
  uint64_t seed = test_seed();
  struct queue_command rate = {.given = GIVEN_RATE, .rate_tasks = 4, .rate_per_ms = 100, .rate_burst = 3};
  (void)world_change_queue(world, &world->queue_id, &rate);
  (void)world_hello(world, 1, 1000);
  for (unsigned step = 0; step < 300; step++) {
    submit_many(world, (unsigned)(test_random(&seed) % 2), NULL);
    world->now_us += (int64_t)(test_random(&seed) % 60000);
    if (test_random(&seed) % 20 == 0) {
      world_restart(world);
      (void)world_hello(world, 1, 1000);
    }
    const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
    if (assign != NULL && test_random(&seed) % 2 == 0) {
      struct push copy = *assign;
      struct command release = world_ref(world, COMMAND_RELEASE, &copy);
      (void)world_do(world, &release);
    }
    if (world->push_count > 1000) world_forget(world);
  }
  struct claims *claims = calloc(1, sizeof *claims);
  world_each_event(world, keep_claim, claims);
  assert_true(claims->count > 50);
  for (unsigned from = 0; from < claims->count; from++)
    for (unsigned to = from; to < claims->count; to++)
      assert_true(to - from + 1 <= 3 + (claims->times[to] - claims->times[from]) / 25000);
  free(claims);
}

/* A rate that was far too slow is mended: the queue does not wait out what the old one owed. */
static void a_new_rate_holds_from_now_on(void **context) {
  struct world *world = *context;
  struct queue_command rate = {.given = GIVEN_RATE, .rate_tasks = 1, .rate_per_ms = 86400000, .rate_burst = 2};
  (void)world_change_queue(world, &world->queue_id, &rate);
  (void)world_hello(world, 1, 100);
  submit_many(world, 10, NULL);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 2);
  world_forget(world);
  world_advance_ms(world, 1000);
  rate.rate_per_ms = 100; /* ten a second, two at once: the two that went count, no more */
  (void)world_change_queue(world, &world->queue_id, &rate);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0);
  world_advance_ms(world, 99);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0);
  world_advance_ms(world, 1);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 1);
  world_restart(world);
  (void)world_hello(world, 1, 100);
  world_forget(world);
  world_advance_ms(world, 100);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 1);
}

/* ---- pause ---- */

static void pause_stops_assignment_not_work(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 2);
  submit_many(world, 5, NULL);
  struct push running = *world_take(world, MAIL_ASSIGN, 1), leased = *world_take(world, MAIL_ASSIGN, 1);
  world_start(world, &running);
  world_pause(world, &world->queue_id, true);
  world_start(world, &leased); /* what was claimed may start … */
  struct command renew = world_ref(world, COMMAND_RENEW, &running);
  assert_int_equal(world_do(world, &renew).status, STATUS_OK);
  (void)world_report(world, &running, OUTCOME_SUCCEEDED, false); /* … and end */
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0);
  submit_many(world, 1, NULL); /* submissions are taken */
  world_restart(world);
  (void)world_hello(world, 1, 2);
  world_advance_ms(world, 1000);
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 0);
  world_pause(world, &world->queue_id, false); /* in the very tick */
  assert_int_equal(world_count(world, MAIL_ASSIGN, 1), 1);
}

/* ---- everything together ---- */

struct counting {
  const struct world *world;
  struct {
    struct id id;
    bool held, keyed;
  } tasks[4000];
  unsigned count, running, keyed, most_running, most_keyed;
};

static void count_event(void *context, const struct event *event) {
  struct counting *counting = context;
  unsigned i = 0;
  if (event->type == EVENT_task_accepted) {
    counting->tasks[counting->count].id = event->stream;
    counting->tasks[counting->count++].keyed = event->body.task_accepted.concurrency_key.size != 0;
    return;
  }
  bool leased = event->type == EVENT_task_leased,
       ended = event->type == EVENT_attempt_ended || event->type == EVENT_attempt_result;
  if (!leased && !ended) return;
  while (i < counting->count && !id_equal(&counting->tasks[i].id, &event->stream)) i++;
  assert_true(i < counting->count && counting->tasks[i].held == ended);
  counting->tasks[i].held = leased;
  counting->running += leased ? 1U : -1U;
  if (counting->tasks[i].keyed) counting->keyed += leased ? 1U : -1U;
  if (counting->running > counting->most_running) counting->most_running = counting->running;
  if (counting->keyed > counting->most_keyed) counting->most_keyed = counting->keyed;
}

/* Random work under max_running 4 and key_concurrency 2: counted again from the log alone, neither was ever passed, and both
 * were reached; and when the work is done nothing is left over. */
static void limits_hold_together(void **context) {
  struct world *world = *context;
  uint64_t seed = test_seed();
  struct queue_command limits = {.given = GIVEN_MAX_RUNNING | GIVEN_KEY_CONCURRENCY, .max_running = 4, .key_concurrency = 2};
  (void)world_change_queue(world, &world->queue_id, &limits);
  (void)world_hello(world, 1, 50);
  struct push held[16];
  unsigned holding = 0;
  for (unsigned step = 0; step < 500; step++) {
    if (step < 400) submit_many(world, (unsigned)(test_random(&seed) % 4), test_random(&seed) % 2 != 0 ? "k" : NULL);
    for (const struct push *assign; (assign = world_take(world, MAIL_ASSIGN, 1)) != NULL; holding++) {
      assert_true(holding < 4);
      held[holding] = *assign;
    }
    world_forget(world);
    world->now_us += (int64_t)(test_random(&seed) % 1000000);
    if (holding == 0) {
      world_tick(world);
      continue;
    }
    unsigned which = (unsigned)(test_random(&seed) % holding);
    if (test_random(&seed) % 4 == 0) {
      struct command release = world_ref(world, COMMAND_RELEASE, &held[which]);
      (void)world_do(world, &release);
    } else {
      world_start(world, &held[which]);
      (void)world_report(world, &held[which], test_random(&seed) % 2 != 0 ? OUTCOME_SUCCEEDED : OUTCOME_FAILED, false);
    }
    held[which] = held[--holding];
    if (step % 50 == 0) world_check(world);
  }
  struct counting *counting = calloc(1, sizeof *counting);
  world_each_event(world, count_event, counting);
  assert_int_equal(counting->most_running, 4);
  assert_int_equal(counting->most_keyed, 2);
  free(counting);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(as_many_at_once_as_the_queue_says),
      ROW(a_turn_that_is_not_taken_passes_on),
      ROW(a_turn_that_runs_out_passes_on),
      ROW(a_handler_without_workers_blocks_nobody),
      ROW(a_key_keeps_the_order),
      ROW(requeues_and_restarts_keep_the_turns),
      ROW(nothing_is_left_of_what_is_over),
      ROW(never_more_than_max_running),
      ROW(many_ends_in_one_tick_fill_as_many_places),
      ROW(a_rate_is_kept_exactly),
      ROW(no_stretch_of_time_passes_the_rate),
      ROW(a_new_rate_holds_from_now_on),
      ROW(pause_stops_assignment_not_work),
      ROW(limits_hold_together),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
