/* Many tasks come and end under a bound of memory: what they take stays under it, and each is still found. How many, and under
 * which bound, can be said by ORBIT_MEMORY_TASKS and ORBIT_MEMORY_BYTES; long runs print a line every tenth of the way. */
#include "engine/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "engine/internal.h"

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
  uint64_t tasks = number_of("ORBIT_MEMORY_TASKS", 20000), bound = number_of("ORBIT_MEMORY_BYTES", 4000000), most = 0;
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

/* Printed, not judged but for being there: what a task takes. */
static void what_a_task_takes(void **context) {
  (void)context;
  enum { many = 20000 };
  struct world world;
  struct id ids[batch];
  world_open(&world);
  uint64_t before = state_memory_bytes(world.engine->state), waiting, ended;
  for (uint64_t done = 0; done < many; done += batch) submit_batch(&world, done, ids);
  waiting = state_memory_bytes(world.engine->state) - before;
  world_advance_ms(&world, 600000); /* all run out of time */
  ended = state_memory_bytes(world.engine->state) - before;
  print_message("a waiting task takes %" PRIu64 " bytes, an ended one %" PRIu64 "\n", waiting / many, ended / many);
  assert_in_range(ended / many, sizeof(struct task), 600);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_stays_under_its_bound),
      cmocka_unit_test(what_a_task_takes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
