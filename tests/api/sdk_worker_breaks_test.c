/* Workers of liborbit against the real server when connections break, answers are lost, and the server restarts. */
#include "api/sdk_stage.h"

static void a_lost_answer_is_asked_for_again(void **state) {
  static const struct {
    const char *what;
    int lose_after; /* command.results that pass before one is lost */
  } cases[] = {{"the start grant", 0}, {"the answer to the report", 1}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    print_message("lost: %s\n", cases[i].what);
    struct stage *stage = stage_new();
    char id[ORBIT_ID_SIZE];
    stage_up(stage, SUCCEED, true);
    atomic_store(&stage->proxy.lose_after, cases[i].lose_after);
    submit(stage, 0, id);
    wait_for(task_is(stage, id, ORBIT_TASK_SUCCEEDED));
    wait_for(stats_of(stage).confirmed == 1);
    assert_int_equal(atomic_load(&stage->proxy.losses), 1);
    assert_int_equal(atomic_load(&stage->calls), 1);
    assert_int_equal(stats_of(stage).connections, 2);
    expect_attempts(stage, id, 1, ORBIT_ATTEMPT_SUCCEEDED);
    struct orbit_evidence_list *list = NULL;
    assert_int_equal(orbit_list_evidence(stage->client, id, 0, NULL, &list, NULL), ORBIT_OK);
    assert_int_equal(list->count, 0);
    orbit_evidence_list_free(list);
    drain(stage, 1, 1);
    stage_down(stage);
  }
}

static void a_handler_outlives_a_broken_connection(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  char id[ORBIT_ID_SIZE];
  stage_up(stage, WAIT_FOR_LEAVE, true);
  submit(stage, 0, id);
  wait_for(atomic_load(&stage->inside) == 1);
  atomic_store(&stage->proxy.cut, true);
  wait_for(stats_of(stage).connections == 2);
  atomic_store(&stage->leave, true);
  wait_for(task_is(stage, id, ORBIT_TASK_SUCCEEDED));
  assert_int_equal(atomic_load(&stage->calls), 1);
  drain(stage, 1, 1);
  stage_down(stage);
}

static void a_handler_outlives_a_restart_of_the_server(void **state) {
  static const int signals[] = {SIGTERM, SIGKILL};
  (void)state;
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
    struct stage *stage = stage_new();
    char id[ORBIT_ID_SIZE];
    stage_up(stage, WAIT_FOR_LEAVE, false);
    submit(stage, 0, id);
    wait_for(atomic_load(&stage->inside) == 1);
    server_end(&stage->server, signals[i]);
    wait_for(!stats_of(stage).connected);
    atomic_store(&stage->leave, true); /* the handler returns while there is no server */
    wait_for(atomic_load(&stage->inside) == 0);
    server_start(&stage->server);
    wait_for(stats_of(stage).confirmed == 1);
    assert_true(task_is(stage, id, ORBIT_TASK_SUCCEEDED));
    expect_attempts(stage, id, 1, ORBIT_ATTEMPT_SUCCEEDED);
    assert_int_equal(atomic_load(&stage->calls), 1);
    drain(stage, 1, 1);
    stage_down(stage);
  }
}

/* Many tasks over a connection that breaks again and again, also while answers are under way. */
static void nothing_is_done_twice_however_often_it_breaks(void **state) {
  enum { tasks = 150 };
  (void)state;
  struct stage *stage = stage_new();
  char(*ids)[ORBIT_ID_SIZE] = calloc(tasks, sizeof *ids);
  assert_non_null(ids);
  uint64_t random = test_seed();
  stage_open(stage, SUCCEED);
  stage->has_proxy = true;
  proxy_up(&stage->proxy, &stage->server);
  const char *const queue_ids[] = {stage->credentials->queue_id};
  struct orbit_worker_options options = options_make(stage, queue_ids);
  options.capacity = 20;
  options.threads = 5;
  worker_start(stage, &options);
  for (int i = 0; i < tasks; i++) {
    submit(stage, 0, ids[i]);
    if (i % 10 == 0) atomic_store(&stage->proxy.lose_after, (int)(test_random(&random) % 3));
    if (i % 25 == 0) atomic_store(&stage->proxy.cut, true);
  }
  wait_for(stats_of(stage).confirmed == tasks);
  for (int i = 0; i < tasks; i++) {
    assert_true(task_is(stage, ids[i], ORBIT_TASK_SUCCEEDED));
    expect_attempts(stage, ids[i], 1, ORBIT_ATTEMPT_SUCCEEDED);
  }
  assert_int_equal(atomic_load(&stage->calls), tasks);
  assert_true(atomic_load(&stage->proxy.losses) > 0);
  print_message("%d answers lost, %d connections\n", atomic_load(&stage->proxy.losses), (int)stats_of(stage).connections);
  atomic_store(&stage->proxy.lose_after, -1);
  drain(stage, tasks, tasks);
  assert_int_equal(stats_of(stage).evidence, 0);
  free(ids);
  stage_down(stage);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_lost_answer_is_asked_for_again),
      cmocka_unit_test(a_handler_outlives_a_broken_connection),
      cmocka_unit_test(a_handler_outlives_a_restart_of_the_server),
      cmocka_unit_test(nothing_is_done_twice_however_often_it_breaks),
  };
  stage_run(tests);
}
