/* What the engine counts, and whose queues a credential is told of. */
#include "engine/world.h"

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

static struct metrics *metrics_of(struct world *world, const struct principal *who) {
  struct command command = {.kind = COMMAND_GET_METRICS, .who = *who};
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.metrics;
}

static void buckets_of_latency(void **context) {
  (void)context;
  struct latency latency = {.count = 0};
  assert_int_equal(latency_bound_us(0), 16);
  assert_int_equal(latency_bound_us(latency_buckets - 2), UINT64_C(16) << (latency_buckets - 2));
  assert_true(latency_bound_us(latency_buckets - 1) == UINT64_MAX);
  static const struct {
    int64_t us;
    unsigned bucket;
  } rows[] = {{-5, 0},
              {0, 0},
              {16, 0},
              {17, 1},
              {32, 1},
              {33, 2},
              {64, 2},
              {65, 3},
              {1024, 6},
              {1025, 7},
              {INT64_MAX, latency_buckets - 1}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    latency = (struct latency){.count = 0};
    latency_add(&latency, rows[i].us);
    assert_int_equal(latency.counts[rows[i].bucket], 1);
    assert_int_equal(latency.count, 1);
    assert_true(latency.sum_us == (rows[i].us > 0 ? (uint64_t)rows[i].us : 0));
  }
}

static void counters_say_what_happened(void **context) {
  struct world *world = *context;
  world_restart(world); /* journal and engine begin to count together */
  (void)world_submitted(world, "a");
  (void)world_submitted(world, "a");
  world_advance_ms(world, 10);
  struct task second = world_submitted(world, "b");
  struct command conflict = world_submit(world, "a");
  conflict.as.submit.priority = 3;
  world_identify(world, &conflict, "a");
  (void)world_do(world, &conflict);
  struct push push = *world_assigned(world, 1);
  world_start(world, &push);
  struct command bad = world_ref(world, COMMAND_START, &push);
  (void)world_do(world, &bad);
  struct metrics *metrics = metrics_of(world, &world->who);
  const struct engine_counters *engine = &metrics->engine;
  assert_int_equal(engine->commands[COMMAND_SUBMIT][STATUS_OK], 3);
  assert_int_equal(engine->commands[COMMAND_SUBMIT][STATUS_IDEMPOTENCY_CONFLICT], 1);
  assert_int_equal(engine->commands[COMMAND_HELLO][STATUS_OK], 1);
  assert_int_equal(engine->commands[COMMAND_START][STATUS_OK], 1);
  assert_int_equal(engine->commands[COMMAND_START][STATUS_STATE_CONFLICT], 1);
  assert_int_equal(engine->receipts_hit, 1);
  assert_int_equal(engine->leases, 1);
  assert_true(metrics->tasks == 2 && metrics->workers == 1 && metrics->leased == 0 && metrics->running == 1);
  assert_int_equal(metrics->now_us, world->now_us);
  assert_int_equal(metrics->queue_count, 3);
  uint64_t answered = 0;
  for (unsigned kind = 0; kind < COMMAND_KIND_COUNT; kind++)
    for (unsigned status = 0; status < STATUS_COUNT; status++) answered += engine->commands[kind][status];
  assert_int_equal(engine->answer.count, answered);
  assert_int_equal(engine->commit.count, engine->commits);
  assert_int_equal(metrics->journal.events, engine->events);
  for (uint32_t i = 0; i < metrics->queue_count; i++) {
    const struct metrics_queue *queue = &metrics->queues[i];
    bool ours = id_equal(&queue->queue.id, &world->queue_id);
    assert_int_equal(queue->queue.counts[TASK_WAITING], ours);
    assert_int_equal(queue->oldest_waiting_at, ours ? second.available_at : 0);
  }
  free(metrics);
  world_advance_ms(world, lease_ms_default);
  struct command late = world_finish(world, &push, OUTCOME_SUCCEEDED, false);
  (void)world_do(world, &late);
  metrics = metrics_of(world, &world->who);
  assert_true(metrics->engine.expiries == 1 && metrics->engine.evidence == 1 && metrics->running == 0);
  free(metrics);
}

static void queues_of_the_namespace_alone(void **context) {
  struct world *world = *context;
  struct principal stranger = world->who;
  memset(stranger.namespace_id.bytes, 4, id_bytes);
  struct metrics *metrics = metrics_of(world, &stranger);
  assert_int_equal(metrics->queue_count, 0);
  free(metrics);
  metrics = metrics_of(world, &world->root);
  assert_int_equal(metrics->queue_count, 3);
  free(metrics);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(buckets_of_latency),
      ROW(counters_say_what_happened),
      ROW(queues_of_the_namespace_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
