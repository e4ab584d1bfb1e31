/* Many tasks come and end under a bound of memory: what they take stays under it, and each is still found. How many, and under
 * which bound, can be said by ORBIT_MEMORY_TASKS and ORBIT_MEMORY_BYTES; long runs print a line every tenth of the way. */
#include "engine/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "engine/internal.h"
#include "state/internal.h"

enum { batch = 500, sample = 64 };

static uint64_t number_of(const char *name, uint64_t usual) {
  const char *text = getenv(name);
  return text != NULL ? strtoull(text, NULL, 10) : usual;
}

/* Anonymous memory of this process: what no file could give back. */
static uint64_t anonymous_bytes(void) {
  char line[128];
  uint64_t kib = 0;
  FILE *file = fopen("/proc/self/status", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, "RssAnon:", 8) == 0) kib = strtoull(line + 8, NULL, 10);
  (void)fclose(file);
  return kib * 1024;
}

static void submit_batch(struct world *world, uint64_t first, struct id *ret_ids) {
  struct batch_item *items = guard_calloc(batch, sizeof *items);
  for (uint32_t i = 0; i < batch; i++) {
    char key[32];
    (void)snprintf(key, sizeof key, "m%" PRIu64, first + i);
    items[i].command = world_submit(world, key);
  }
  struct command command = {.kind = COMMAND_BATCH, .who = world->who, .as.batch = {items, batch}};
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
  for (uint32_t i = 0; i < batch; i++) {
    assert_int_equal(items[i].answer.status, STATUS_OK);
    ret_ids[i] = items[i].answer.as.task.id;
  }
  free(items);
}

static void cancel_batch(struct world *world, uint64_t first, const struct id *ids) {
  struct command *commands = guard_calloc(batch, sizeof *commands);
  struct answer *answers = guard_calloc(batch, sizeof *answers);
  for (uint32_t i = 0; i < batch; i++) {
    char key[32];
    (void)snprintf(key, sizeof key, "c%" PRIu64, first + i);
    commands[i] = world_cancel(world, &ids[i], key);
  }
  world_do_all(world, commands, answers, batch);
  for (uint32_t i = 0; i < batch; i++) assert_int_equal(answers[i].status, STATUS_OK);
  free(commands);
  free(answers);
}

static void expect_found(struct world *world, const struct id *id, uint64_t number) {
  char key[32];
  (void)snprintf(key, sizeof key, "m%" PRIu64, number);
  struct command get = {.kind = COMMAND_GET_TASK, .who = world->who, .as.task_id = *id}, again = world_submit(world, key);
  assert_int_equal(world_do(world, &get).as.task.state, TASK_CANCELLED);
  struct answer answer = world_do(world, &again);
  assert_true(answer.status == STATUS_OK && answer.deduplicated && id_equal(&answer.as.task.id, id));
}

static void memory_stays_under_its_bound(void **context) {
  (void)context;
  uint64_t tasks = number_of("ORBIT_MEMORY_TASKS", 20000), bound = number_of("ORBIT_MEMORY_BYTES", 2400000), most = 0;
  struct world world;
  struct id ids[batch], samples[sample];
  uint64_t numbers[sample], step = tasks / batch / sample + 1;
  unsigned sampled = 0;
  world_open(&world);
  world.memory_max = bound;
  world.hot_window_us = INT64_C(86400) * 1000000;
  world.map_bytes = (UINT64_C(1) << 30) + tasks * 2048;
  world.index_min = bound / 1024;
  world_evict(&world);
  for (uint64_t done = 0; done < tasks; done += batch) {
    submit_batch(&world, done, ids);
    cancel_batch(&world, done, ids);
    if (done / batch % step == 0) samples[sampled] = ids[0], numbers[sampled++] = done;
    if (done / batch % 4 == 3) world_follow(&world);
    world_advance_ms(&world, 10);
    uint64_t bytes = state_memory_bytes(world.engine->state);
    if (bytes > most) most = bytes;
    if (tasks >= 1000000 && done % (tasks / 10) == 0)
      print_message("%" PRIu64 " tasks: %" PRIu64 " bytes, at most %" PRIu64 ", anonymous %" PRIu64 "\n", done, bytes, most,
                    anonymous_bytes());
  }
  struct evict_counts counts = state_evict_counts(world.engine->state);
  assert_true(most <= bound);
  assert_int_equal(counts.tasks + counts.tasks_away, tasks);
  assert_true(counts.tasks_away > tasks / 2);
  if (tasks >= 1000000) assert_true(anonymous_bytes() < bound);
  for (unsigned i = 0; i < sampled; i++) expect_found(&world, &samples[i], numbers[i]);
  world_close(&world);
}

/* ---- what a task takes ---- */

static uint64_t heap_bytes(const struct heap *heap) { return (uint64_t)heap->capacity * sizeof *heap->entries; }

/* Everything that grows with the tasks, a line a structure: what is in use of pools, which take their pages only when they are
 * filled, and the whole of indexes and heaps. */
struct taken {
  uint64_t tasks, attempts, ids, receipts, names, timers, waiting, ready, free_numbers, sum;
};

static struct taken taken_by(const struct state *state) {
  struct taken taken = {.tasks = (uint64_t)state->tasks.used * sizeof(struct task_node),
                        .attempts = (uint64_t)state->attempts.used * sizeof(struct attempt_node),
                        .ids = index_bytes(&state->task_ids),
                        .receipts = index_bytes(&state->receipts),
                        .names = index_bytes(&state->business_keys),
                        .timers = heap_bytes(&state->timers),
                        .free_numbers = ((uint64_t)state->tasks.free_capacity + state->attempts.free_capacity) * 4};
  for (uint32_t number = 1; number <= state->objects.used; number++)
    taken.waiting += heap_bytes(&object_at(state, number)->waiting);
  for (uint32_t number = 1; number <= state->buckets.used; number++)
    taken.ready += heap_bytes(&bucket_at(state, number)->ready);
  taken.sum = taken.tasks + taken.attempts + taken.ids + taken.receipts + taken.names + taken.timers + taken.waiting +
              taken.ready + taken.free_numbers;
  return taken;
}

/* Prints the table and returns the bytes of a task. */
static uint64_t tell(const struct world *world, const char *what, uint64_t many) {
  struct taken taken = taken_by(world->engine->state);
  const struct {
    const char *name;
    uint64_t bytes;
  } rows[] = {{"task", taken.tasks},        {"attempt", taken.attempts}, {"ids", taken.ids},
              {"receipts", taken.receipts}, {"names", taken.names},      {"timers", taken.timers},
              {"waiting", taken.waiting},   {"ready", taken.ready},      {"free", taken.free_numbers}};
  print_message("%s: %" PRIu64 " bytes a task:", what, taken.sum / many);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) print_message(" %s %" PRIu64, rows[i].name, rows[i].bytes / many);
  print_message("\n");
  return taken.sum / many;
}

/* The bounds are what was reached, and a few per cent more: whoever makes a task larger comes here. The numbers of tasks leave
 * the indexes as full as they are on the average. */
static void what_a_task_takes(void **context) {
  (void)context;
  enum { many = 20000, waiting_max = 300, ended_max = 240 };
  struct world world;
  struct id ids[batch];
  world_open(&world);
  for (uint64_t done = 0; done < many; done += batch) submit_batch(&world, done, ids);
  assert_in_range(tell(&world, "waiting", many), sizeof(struct task), waiting_max);
  world_advance_ms(&world, 600000); /* all run out of time */
  assert_in_range(tell(&world, "run out of time", many), sizeof(struct task), ended_max);
  world_close(&world);
}

/* A worker takes, starts and finishes a batch of tasks. */
static void live_batch(struct world *world, uint64_t first) {
  struct command *commands = guard_calloc(batch, sizeof *commands);
  struct answer *answers = guard_calloc(batch, sizeof *answers);
  const struct push *assigned[batch];
  struct id ids[batch];
  submit_batch(world, first, ids);
  for (unsigned i = 0; i < batch; i++) {
    assert_non_null(assigned[i] = world_take(world, MAIL_ASSIGN, 1));
    commands[i] = world_ref(world, COMMAND_START, assigned[i]);
  }
  world_do_all(world, commands, answers, batch);
  for (unsigned i = 0; i < batch; i++) assert_int_equal(answers[i].status, STATUS_OK);
  for (unsigned i = 0; i < batch; i++) commands[i] = world_finish(world, assigned[i], OUTCOME_SUCCEEDED, false);
  world_do_all(world, commands, answers, batch);
  for (unsigned i = 0; i < batch; i++) assert_int_equal(answers[i].status, STATUS_OK);
  /* The receipts of what is over are found all the same: along the task's history. */
  world_do_all(world, commands, answers, 1);
  assert_true(answers[0].status == STATUS_OK && answers[0].as.worker.deduplicated);
  world_forget(world);
  free(commands);
  free(answers);
}

/* Four receipts belong to a whole life; of one that is over, memory keeps that of its submission. */
static void what_a_finished_task_takes(void **context) {
  (void)context;
  enum { many = 20000, finished_max = 240 };
  struct world world;
  world_open(&world);
  assert_int_equal(world_hello(&world, 1, batch).status, STATUS_OK);
  for (uint64_t done = 0; done < many; done += batch) live_batch(&world, done);
  struct evict_counts counts = state_evict_counts(world.engine->state);
  assert_int_equal(counts.ended, many);
  assert_int_equal(counts.receipts, many);
  assert_in_range(tell(&world, "finished", many), sizeof(struct task), finished_max);
  world_close(&world);
}

/* A day in small: what ended leaves, and what comes takes its place. After each round as much is taken as after the second. */
static void churn_leaves_nothing_behind(void **context) {
  (void)context;
  enum { rounds = 12, many = 4 * batch };
  struct world world;
  struct id ids[batch];
  uint64_t first = 0;
  world_open(&world);
  world.hot_window_us = 1;
  world.index_min = 1;
  world_evict(&world);
  for (uint64_t round = 0; round < rounds; round++) {
    for (uint64_t done = 0; done < many; done += batch) {
      submit_batch(&world, round * many + done, ids);
      cancel_batch(&world, round * many + done, ids);
    }
    world_advance_ms(&world, 1000);
    world_follow(&world);
    for (unsigned i = 0; i < 8; i++) world_advance_ms(&world, 1000);
    struct taken taken = taken_by(world.engine->state);
    if (round == 1) first = taken.sum;
    if (round > 1 && taken.sum > first + first / 20)
      fail_msg("round %" PRIu64 ": %" PRIu64 " bytes, %" PRIu64 " after the second", round, taken.sum, first);
  }
  struct evict_counts counts = state_evict_counts(world.engine->state);
  assert_int_equal(counts.tasks + counts.tasks_away, (uint64_t)rounds * many);
  assert_true(counts.tasks <= many && world.engine->state->tasks.used <= 2 * many);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_stays_under_its_bound),
      cmocka_unit_test(what_a_task_takes),
      cmocka_unit_test(what_a_finished_task_takes),
      cmocka_unit_test(churn_leaves_nothing_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
