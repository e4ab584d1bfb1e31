/* Workers of liborbit against the real server: outcomes, cancellation, leases, ends, and the example as users run it. */
#include "api/sdk_stage.h"

/* ---- Outcomes ---- */

static void outcomes_decide_the_task(void **state) {
  static const struct {
    enum behaviour behaviour;
    enum orbit_task_state task;
    size_t attempts;
    enum orbit_attempt_state last;
  } cases[] = {
      {SUCCEED, ORBIT_TASK_SUCCEEDED, 1, ORBIT_ATTEMPT_SUCCEEDED},
      {FAIL_FOR_GOOD, ORBIT_TASK_FAILED, 1, ORBIT_ATTEMPT_FAILED},
      {FAIL_ONCE, ORBIT_TASK_SUCCEEDED, 2, ORBIT_ATTEMPT_SUCCEEDED},
      {SAY_NOTHING, ORBIT_TASK_NEEDS_REVIEW, 1, ORBIT_ATTEMPT_UNKNOWN},
  };
  (void)state;
  struct stage *stage = stage_new();
  stage_up(stage, SUCCEED, false);
  size_t reports = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char id[ORBIT_ID_SIZE];
    wait_for(stats_of(stage).held == 0);
    stage->behaviour = cases[i].behaviour;
    atomic_store(&stage->calls, 0);
    submit(stage, 0, id);
    wait_for(task_is(stage, id, cases[i].task));
    expect_attempts(stage, id, cases[i].attempts, cases[i].last);
    assert_int_equal(atomic_load(&stage->calls), cases[i].attempts);
    reports += cases[i].attempts;
  }
  drain(stage, reports, reports);
  assert_int_equal(orbit_worker_run(stage->worker, NULL), ORBIT_OK); /* it has ended already */
  stage_down(stage);
}

static void numbers_come_back_as_written(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  char id[ORBIT_ID_SIZE];
  stage_up(stage, SUCCEED, false);
  submit(stage, 0, id);
  wait_for(task_is(stage, id, ORBIT_TASK_SUCCEEDED));
  struct orbit_task *task = NULL;
  assert_int_equal(orbit_get_task(stage->client, id, &task, NULL), ORBIT_OK);
  assert_string_equal(task->payload, "{\"n\":9007199254740993}");
  assert_string_equal(task->result, "{\"n\":1.10}");
  assert_int_equal(task->attempt_count, 1);
  orbit_task_free(task);
  struct orbit_server_info *info = NULL;
  assert_int_equal(orbit_info(stage->client, &info, NULL), ORBIT_OK);
  assert_string_equal(info->worker_url, stage->server.worker_url);
  assert_true(info->log_position > 0 && info->time > 0);
  orbit_server_info_free(info);
  stage_down(stage);
}

static void a_cancellation_reaches_the_handler(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  char id[ORBIT_ID_SIZE], key[ORBIT_ID_SIZE];
  struct orbit_task *task = NULL;
  stage_up(stage, WAIT_FOR_CANCEL, false);
  submit(stage, 0, id);
  wait_for(atomic_load(&stage->inside) == 1);
  assert_int_equal(orbit_random_id(key), ORBIT_OK);
  assert_int_equal(orbit_cancel_task(stage->client, key, id, "enough", 0, &task, NULL), ORBIT_OK);
  assert_int_equal(task->state, ORBIT_TASK_RUNNING);
  assert_true(task->cancel_requested_at != 0);
  orbit_task_free(task);
  wait_for(task_is(stage, id, ORBIT_TASK_CANCELLED));
  drain(stage, 1, 1);
  stage_down(stage);
}

static void no_more_handlers_run_than_threads(void **state) {
  enum { tasks = 6 };
  (void)state;
  struct stage *stage = stage_new();
  char ids[tasks][ORBIT_ID_SIZE];
  stage_open(stage, WAIT_FOR_LEAVE);
  const char *const queue_ids[] = {stage->credentials->queue_id};
  struct orbit_worker_options options = options_make(stage, queue_ids);
  options.threads = 2;
  worker_start(stage, &options);
  for (int i = 0; i < tasks; i++) submit(stage, 0, ids[i]);
  wait_for(atomic_load(&stage->inside) == 2 && stats_of(stage).held == 4);
  assert_int_equal(orbit_worker_drain(stage->worker, 50, NULL), ORBIT_TIMEOUT);
  atomic_store(&stage->leave, true);
  drain(stage, 4, 4); /* what was assigned before the drain is done; the rest stays */
  assert_int_equal(atomic_load(&stage->inside_max), 2);
  int done = 0;
  for (int i = 0; i < tasks; i++) done += task_is(stage, ids[i], ORBIT_TASK_SUCCEEDED);
  assert_int_equal(done, 4);
  stage_down(stage);
}

/* ---- Leases ---- */

static void a_handler_past_its_time_is_an_unknown(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  char id[ORBIT_ID_SIZE];
  stage_up(stage, WAIT_FOR_LOSS, false);
  submit(stage, 300, id);
  wait_for(task_is(stage, id, ORBIT_TASK_NEEDS_REVIEW));
  drain(stage, 1, 1);
  assert_int_equal(stats_of(stage).lost, 1);
  struct orbit_evidence_list *list = NULL;
  struct orbit_attempt_list *attempts = NULL;
  assert_int_equal(orbit_list_evidence(stage->client, id, 0, NULL, &list, NULL), ORBIT_OK);
  assert_int_equal(orbit_list_attempts(stage->client, id, 0, NULL, &attempts, NULL), ORBIT_OK);
  assert_int_equal(attempts->count, 1);
  assert_int_equal(attempts->items[0]->state, ORBIT_ATTEMPT_UNKNOWN);
  /* The worker's clock may be a little ahead of the server's: then the report still came with authority. */
  if (attempts->items[0]->ended_by != NULL) {
    assert_string_equal(attempts->items[0]->ended_by, "ATTEMPT_TIMEOUT");
    assert_int_equal(list->count, 1);
    assert_string_equal(list->items[0]->outcome, "UNKNOWN");
    assert_string_equal(list->items[0]->error.code, "LEASE_LOST");
    assert_int_equal(stats_of(stage).evidence, 1);
  } else {
    assert_string_equal(attempts->items[0]->error.code, "LEASE_LOST");
    assert_int_equal(list->count, 0);
  }
  orbit_attempt_list_free(attempts);
  orbit_evidence_list_free(list);
  stage_down(stage);
}

static void a_lease_is_renewed_as_long_as_the_handler_runs(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  char id[ORBIT_ID_SIZE];
  stage_open(stage, WAIT_FOR_LEAVE);
  const char *const queue_ids[] = {stage->credentials->queue_id};
  struct orbit_worker_options options = options_make(stage, queue_ids);
  options.lease_ms = 5000;
  options.threads = 1;
  worker_start(stage, &options);
  char waiting[ORBIT_ID_SIZE];
  submit(stage, 0, id);
  submit(stage, 0, waiting); /* leased, and kept so until there is a thread */
  wait_for(stats_of(stage).held == 2);
  pause_ms(6500); /* longer than a lease: this is the condition that is tested */
  assert_true(task_is(stage, id, ORBIT_TASK_RUNNING));
  assert_true(task_is(stage, waiting, ORBIT_TASK_LEASED));
  atomic_store(&stage->leave, true);
  wait_for(task_is(stage, id, ORBIT_TASK_SUCCEEDED) && task_is(stage, waiting, ORBIT_TASK_SUCCEEDED));
  expect_attempts(stage, id, 1, ORBIT_ATTEMPT_SUCCEEDED);
  expect_attempts(stage, waiting, 1, ORBIT_ATTEMPT_SUCCEEDED);
  drain(stage, 2, 2);
  stage_down(stage);
}

/* ---- Ends that connecting again does not mend ---- */

static void a_refused_token_ends_the_worker(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  struct orbit_error error;
  stage_open(stage, SUCCEED);
  const char *const queue_ids[] = {stage->credentials->queue_id};
  struct orbit_worker_options options = options_make(stage, queue_ids);
  options.token = "not-a-token";
  assert_int_equal(orbit_worker_new(&options, &stage->worker, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_start(stage->worker, NULL), ORBIT_WRONG_STATE);
  assert_int_equal(orbit_worker_handle(stage->worker, "test", "v1", handle, stage, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_handle(stage->worker, "test", "v1", handle, stage, NULL), ORBIT_INVALID_ARGUMENT);
  assert_int_equal(orbit_worker_run(stage->worker, &error), ORBIT_STOPPED);
  assert_int_equal(error.http_status, 401);
  assert_string_equal(error.code, "UNAUTHENTICATED");
  assert_int_equal(orbit_worker_wait_ready(stage->worker, 1, &error), ORBIT_STOPPED);
  assert_int_equal(orbit_worker_handle(stage->worker, "test", "v2", handle, stage, NULL), ORBIT_WRONG_STATE);
  stage_down(stage);
}

static void a_refused_hello_ends_the_worker(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  struct orbit_error error;
  stage_open(stage, SUCCEED);
  const char *const queue_ids[] = {"0190000000000000000000000000000a"};
  struct orbit_worker_options options = options_make(stage, queue_ids);
  assert_int_equal(orbit_worker_new(&options, &stage->worker, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_handle(stage->worker, "test", "v1", handle, stage, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_run(stage->worker, &error), ORBIT_STOPPED);
  assert_string_equal(error.code, "HELLO_REFUSED");
  assert_non_null(strstr(error.message, "NOT_FOUND"));
  stage_down(stage);
}

static void a_second_worker_of_the_instance_ends_the_first(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  struct orbit_error error;
  stage_up(stage, SUCCEED, false);
  struct orbit_worker *first = stage->worker;
  const char *const queue_ids[] = {stage->credentials->queue_id};
  struct orbit_worker_options options = options_make(stage, queue_ids);
  options.instance_id = orbit_worker_instance_id(first);
  worker_start(stage, &options);
  assert_int_equal(orbit_worker_run(first, &error), ORBIT_STOPPED);
  assert_string_equal(error.code, "REPLACED");
  char id[ORBIT_ID_SIZE];
  submit(stage, 0, id);
  wait_for(task_is(stage, id, ORBIT_TASK_SUCCEEDED));
  drain(stage, 1, 1);
  orbit_worker_free(first);
  stage_down(stage);
}

/* How many connections this process has; those that programs started from it would get are counted in *ret_open. */
static unsigned connections_of_ours(unsigned *ret_open) {
  unsigned count = 0;
  *ret_open = 0;
  for (int fd = 0; fd < 1024; fd++) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 || peer.ss_family != AF_INET) continue;
    count++;
    *ret_open += (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
  }
  return count;
}

/* The process is the program's: a worker changes nothing of it, and what the program starts gets nothing of the worker's. */
static void a_worker_keeps_to_itself(void **state) {
  (void)state;
  struct sigaction usual = {.sa_handler = SIG_DFL}, before, after;
  unsigned open;
  assert_int_equal(sigaction(SIGPIPE, &usual, &before), 0);
  struct stage *stage = stage_new();
  stage_up(stage, SUCCEED, false);
  assert_int_equal(sigaction(SIGPIPE, &before, &after), 0);
  assert_true(after.sa_handler == SIG_DFL);
  assert_true(connections_of_ours(&open) >= 2); /* the client's and the worker's */
  assert_int_equal(open, 0);
  drain(stage, 0, 0);
  stage_down(stage);
}

static void nothing_to_connect_to_is_said_in_time(void **state) {
  static const bool directly[] = {true, false};
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    const char *const queue_ids[] = {"0190000000000000000000000000000a"};
    struct orbit_worker_options options = ORBIT_WORKER_OPTIONS_INIT;
    struct orbit_worker *worker = NULL;
    struct orbit_error error;
    options.worker_url = directly[i] ? "ws://127.0.0.1:1/v1/worker" : NULL;
    options.url = "http://127.0.0.1:1";
    options.token = "t";
    options.queue_ids = queue_ids;
    options.queue_count = 1;
    assert_int_equal(orbit_worker_new(&options, &worker, NULL), ORBIT_OK);
    assert_int_equal(orbit_worker_wait_ready(worker, 1, NULL), ORBIT_WRONG_STATE);
    assert_int_equal(orbit_worker_drain(worker, 1, NULL), ORBIT_WRONG_STATE);
    assert_int_equal(orbit_worker_handle(worker, "test", "v1", handle, NULL, NULL), ORBIT_OK);
    assert_int_equal(orbit_worker_start(worker, NULL), ORBIT_OK);
    assert_int_equal(orbit_worker_wait_ready(worker, 400, &error), ORBIT_TIMEOUT);
    assert_non_null(strstr(error.message, "has not welcomed the worker within 400 ms: "));
    orbit_worker_stop(worker);
    orbit_worker_stop(worker);
    assert_int_equal(orbit_worker_wait_ready(worker, 1, &error), ORBIT_STOPPED);
    orbit_worker_free(worker);
  }
}

/* ---- The example, as users run it ---- */

static void expect_story(const char *path) {
  struct bytes text = test_file_read(path);
  assert_non_null(text.data);
  char shape[512];
  assert_in_range(text.size, 37, sizeof shape - 1);
  memcpy(shape, text.data, text.size);
  shape[text.size] = '\0';
  assert_memory_equal(shape, "task=", 5);
  assert_int_equal(strspn(shape + 5, "0123456789abcdef"), 32);
  assert_string_equal(shape + 37,
                      " state=SUCCEEDED attempts=2 first_retryable=true result={\"text\":\"SAFE RETRY\"}\n"
                      "worker_drained=true started=2 confirmed=2 running=0\n");
  free((void *)(uintptr_t)text.data);
}

static void the_retry_example_prints_its_two_lines(void **state) {
  (void)state;
  const char *program[] = {ORBIT_BIN_DIR "/example-retry", NULL};
  struct server server;
  char out[2][600], err[2][600];
  pid_t pids[2];
  server_up(&server);
  assert_int_equal(setenv("ORBIT_URL", server.url, 1), 0);
  assert_int_equal(setenv("ORBIT_CREDENTIALS_FILE", server.credentials, 1), 0);
  assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0); /* is not to be used */
  for (int i = 0; i < 2; i++) {                                       /* side by side: neither takes the other's work */
    (void)snprintf(out[i], sizeof out[i], "%s/out%d", server.directory, i);
    (void)snprintf(err[i], sizeof err[i], "%s/err%d", server.directory, i);
    pids[i] = program_start(program, out[i], err[i]);
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(program_wait(pids[i]), 0);
    expect_story(out[i]);
  }
  server_end(&server, SIGTERM);
  assert_int_equal(program_wait(program_start(program, out[0], err[0])), 1); /* with no server: any other course */
  assert_int_equal(unsetenv("ORBIT_CREDENTIALS_FILE"), 0);
  assert_int_equal(unsetenv("http_proxy"), 0);
  test_directory_remove(server.directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(outcomes_decide_the_task),
      cmocka_unit_test(numbers_come_back_as_written),
      cmocka_unit_test(a_cancellation_reaches_the_handler),
      cmocka_unit_test(no_more_handlers_run_than_threads),
      cmocka_unit_test(a_handler_past_its_time_is_an_unknown),
      cmocka_unit_test(a_lease_is_renewed_as_long_as_the_handler_runs),
      cmocka_unit_test(a_refused_token_ends_the_worker),
      cmocka_unit_test(a_refused_hello_ends_the_worker),
      cmocka_unit_test(a_second_worker_of_the_instance_ends_the_first),
      cmocka_unit_test(a_worker_keeps_to_itself),
      cmocka_unit_test(nothing_to_connect_to_is_said_in_time),
      cmocka_unit_test(the_retry_example_prints_its_two_lines),
  };
  stage_run(tests);
}
