/* A fixed small workload for counting instructions: under callgrind, each phase is a dump of its own; without it, it is just
 * done. The engine, the rules, the codec, the fold and LMDB are the real ones; no socket and no clock take part, so that the
 * same binary counts the same twice. */
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

#include "base/guard.h"
#include "codec/wire_http.h"
#include "engine/world.h"

enum { per_tick = 64, ticks = 16, tasks = per_tick * ticks };

/* Counting begins; the counts so far are let go. */
#define BEGIN() CALLGRIND_ZERO_STATS
/* So many things were done: tests/instructions/guard divides. */
#define END(name, count)                                  \
  do {                                                    \
    static char text[64];                                 \
    (void)snprintf(text, sizeof text, name " %d", count); \
    CALLGRIND_DUMP_STATS_AT(text);                        \
  } while (0)

static void do_all(struct world *world, const struct command *commands) {
  struct answer answers[per_tick];
  world_do_all(world, commands, answers, per_tick);
  for (unsigned i = 0; i < per_tick; i++) assert_int_equal(answers[i].status, STATUS_OK);
}

static void submit_all(struct world *world) {
  struct command commands[per_tick];
  for (unsigned tick = 0; tick < ticks; tick++) {
    for (unsigned i = 0; i < per_tick; i++) {
      char key[32];
      (void)snprintf(key, sizeof key, "key-%u-%u", tick, i);
      commands[i] = world_submit(world, key);
    }
    BEGIN();
    do_all(world, commands);
    END("submit", per_tick);
    world->now_us += 1000;
  }
}

/* A worker that holds all of a tick's tasks at once; a finish frees room for the next, which is leased in the same commit. */
static void live_all(struct world *world) {
  const struct push *assigned[per_tick];
  struct command commands[per_tick];
  assert_int_equal(world_hello(world, 1, per_tick).status, STATUS_OK);
  for (unsigned tick = 0; tick < ticks; tick++) {
    for (unsigned i = 0; i < per_tick; i++) {
      assert_non_null(assigned[i] = world_take(world, MAIL_ASSIGN, 1));
      commands[i] = world_ref(world, COMMAND_START, assigned[i]);
    }
    world->now_us += 1000;
    BEGIN();
    do_all(world, commands);
    END("start", per_tick);
    for (unsigned i = 0; i < per_tick; i++) commands[i] = world_finish(world, assigned[i], OUTCOME_SUCCEEDED, false);
    world->now_us += 1000;
    BEGIN();
    do_all(world, commands);
    END("finish", per_tick);
  }
}

static void fold_all(struct world *world) {
  BEGIN();
  world_restart(world);
  END("fold", 5 * tasks);
}

static void read_all(void) {
  static const char body[] =
      "{\"queue_id\":\"0000018bcfe568000000000000000a01\",\"handler\":\"mail.send\",\"handler_version\":\"1\",\"payload_"
      "version\":\"1\","
      "\"payload\":{\"order\":4711,\"to\":\"a@example.org\",\"lines\":[1,2,3,4.50,null,true]},\"task_timeout_ms\":60000,"
      "\"business_key\":\"order-4711\",\"priority\":3}";
  cleanup(json_clear) struct json json;
  cleanup(buffer_clear) struct buffer texts;
  json_init(&json);
  buffer_init(&texts, sizeof body * 4);
  BEGIN();
  for (unsigned i = 0; i < tasks; i++) {
    struct command command = {.kind = COMMAND_SUBMIT};
    struct fault fault = {0};
    buffer_reset(&texts);
    if (wire_submit_read(&json, bytes_text(body), &texts, &command, &fault) != STATUS_OK) fail_msg("%s", fault.message);
  }
  END("read", tasks);
}

static void the_workload(void **state) {
  (void)state;
  struct world *world = guard_calloc(1, sizeof *world);
  world_open(world);
  submit_all(world);
  live_all(world);
  fold_all(world);
  read_all();
  world_close(world);
  free(world);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_workload)};
  return cmocka_run_group_tests_name("instructions", tests, NULL, NULL);
}
