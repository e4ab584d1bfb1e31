/* Workers of liborbit against the real server: outcomes, cancellation, leases, lost answers, restarts, and the example as users
 * run it. */
#include "api/sdk_server.h"

/* What the handler of a test does with each call. */
enum behaviour {
  SUCCEED,
  FAIL_FOR_GOOD,
  FAIL_ONCE,
  SAY_NOTHING,
  WAIT_FOR_LOSS,   /* returns a success once the lease is over */
  WAIT_FOR_CANCEL, /* confirms a cancellation */
  WAIT_FOR_LEAVE,  /* returns a success once `leave` is set */
};

struct stage {
  struct server server;
  struct proxy proxy;
  bool has_proxy;
  struct orbit_credentials *credentials;
  struct orbit_client *client;
  struct orbit_worker *worker;
  char version[ORBIT_ID_SIZE];
  enum behaviour behaviour;
  atomic_int calls, inside, inside_max;
  atomic_bool leave;
};

static enum orbit_outcome success(struct orbit_report *report) { return orbit_report_success(report, "{\"n\":1.10}", 10); }

static enum orbit_outcome behave(struct stage *stage, int call, const struct orbit_assignment *assignment,
                                 struct orbit_report *report) {
  switch (stage->behaviour) {
    case SUCCEED:
      return success(report);
    case FAIL_FOR_GOOD:
      return orbit_report_failure(report, "REJECTED", false, "no", NULL, 0);
    case FAIL_ONCE:
      return call == 0 ? orbit_report_failure(report, "TEMPORARY", true, NULL, "{\"a\":1}", 7) : success(report);
    case SAY_NOTHING:
      return ORBIT_UNKNOWN;
    case WAIT_FOR_LOSS:
      while (!orbit_assignment_lost(assignment)) pause_ms(5);
      return success(report);
    case WAIT_FOR_CANCEL:
      while (!orbit_assignment_cancelled(assignment) && !orbit_assignment_lost(assignment)) pause_ms(5);
      return orbit_report_cancelled(report, "CANCELLED", NULL);
    case WAIT_FOR_LEAVE:
    default:
      while (!atomic_load(&stage->leave)) pause_ms(5);
      return success(report);
  }
}

static enum orbit_outcome handle(void *context, const struct orbit_assignment *assignment, struct orbit_report *report) {
  struct stage *stage = context;
  int call = atomic_fetch_add(&stage->calls, 1), inside = atomic_fetch_add(&stage->inside, 1) + 1;
  int most = atomic_load(&stage->inside_max);
  while (inside > most && !atomic_compare_exchange_weak(&stage->inside_max, &most, inside)) continue;
  enum orbit_outcome outcome = behave(stage, call, assignment, report);
  atomic_fetch_sub(&stage->inside, 1);
  return outcome;
}

/* ---- Stages ---- */

static void show(void *context, int level, const char *line) {
  (void)context;
  print_message("worker (%d): %s\n", level, line);
}

static struct orbit_worker_options options_make(struct stage *stage, const char *const queue_ids[1]) {
  struct orbit_worker_options options = ORBIT_WORKER_OPTIONS_INIT;
  options.url = stage->credentials->url;
  options.worker_url = stage->has_proxy ? stage->proxy.url : NULL;
  options.token = stage->credentials->token;
  options.queue_ids = queue_ids;
  options.queue_count = 1;
  options.capacity = 4;
  options.log = show;
  return options;
}

static void worker_start(struct stage *stage, const struct orbit_worker_options *options) {
  assert_int_equal(orbit_worker_new(options, &stage->worker, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_handle(stage->worker, "test", stage->version, handle, stage, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_start(stage->worker, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_wait_ready(stage->worker, wait_ms_max, NULL), ORBIT_OK);
}

/* On the heap, so that a worker that a failed test leaves behind harms no later test. */
static struct stage *stage_new(void) {
  struct stage *stage = calloc(1, sizeof *stage);
  assert_non_null(stage);
  return stage;
}

/* A server of its own, and a client. */
static void stage_open(struct stage *stage, enum behaviour behaviour) {
  stage->behaviour = behaviour;
  server_up(&stage->server);
  assert_int_equal(setenv("ORBIT_URL", stage->server.url, 1), 0);
  assert_int_equal(orbit_credentials_load(stage->server.credentials, &stage->credentials, NULL), ORBIT_OK);
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  options.url = stage->credentials->url;
  options.token = stage->credentials->token;
  assert_int_equal(orbit_client_new(&options, &stage->client, NULL), ORBIT_OK);
  assert_int_equal(orbit_random_id(stage->version), ORBIT_OK);
}

/* The same, with a worker, behind a proxy or not. */
static void stage_up(struct stage *stage, enum behaviour behaviour, bool has_proxy) {
  stage_open(stage, behaviour);
  stage->has_proxy = has_proxy;
  if (has_proxy) proxy_up(&stage->proxy, &stage->server);
  const char *const queue_ids[] = {stage->credentials->queue_id};
  struct orbit_worker_options options = options_make(stage, queue_ids);
  worker_start(stage, &options);
}

static void stage_down(struct stage *stage) {
  orbit_worker_free(stage->worker);
  if (stage->has_proxy) proxy_down(&stage->proxy);
  orbit_client_free(stage->client);
  orbit_credentials_free(stage->credentials);
  server_down(&stage->server);
  free(stage);
}

static void submit(struct stage *stage, uint64_t attempt_timeout_ms, char ret_id[ORBIT_ID_SIZE]) {
  char key[ORBIT_ID_SIZE];
  struct orbit_task *task = NULL;
  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  request.queue_id = stage->credentials->queue_id;
  request.handler = "test";
  request.handler_version = stage->version;
  request.payload_version = "v1";
  request.payload = "{\"n\":9007199254740993}";
  request.payload_size = strlen(request.payload);
  request.task_timeout_ms = 60000;
  request.retry.max_attempts = 3;
  request.retry.attempt_timeout_ms = attempt_timeout_ms;
  assert_int_equal(orbit_random_id(key), ORBIT_OK);
  assert_int_equal(orbit_submit_task(stage->client, key, &request, &task, NULL), ORBIT_OK);
  (void)snprintf(ret_id, ORBIT_ID_SIZE, "%s", task->id);
  orbit_task_free(task);
  /* The same key and content again is the same task. */
  assert_int_equal(orbit_submit_task(stage->client, key, &request, &task, NULL), ORBIT_OK);
  assert_true(task->deduplicated);
  assert_string_equal(task->id, ret_id);
  orbit_task_free(task);
}

static bool task_is(struct stage *stage, const char *id, enum orbit_task_state state) {
  struct orbit_task *task = NULL;
  assert_int_equal(orbit_get_task(stage->client, id, &task, NULL), ORBIT_OK);
  bool is = task->state == (int32_t)state;
  orbit_task_free(task);
  return is;
}

static struct orbit_worker_stats stats_of(struct stage *stage) {
  struct orbit_worker_stats stats = ORBIT_WORKER_STATS_INIT;
  orbit_worker_stats(stage->worker, &stats);
  return stats;
}

static void drain(struct stage *stage, uint64_t started, uint64_t confirmed) {
  assert_int_equal(orbit_worker_drain(stage->worker, wait_ms_max, NULL), ORBIT_OK);
  struct orbit_worker_stats stats = stats_of(stage);
  assert_true(stats.drained);
  assert_int_equal(stats.started, started);
  assert_int_equal(stats.confirmed, confirmed);
  assert_int_equal(stats.running, 0);
  assert_int_equal(stats.held, 0);
}

static void expect_attempts(struct stage *stage, const char *id, size_t count, enum orbit_attempt_state last) {
  struct orbit_attempt_list *list = NULL;
  assert_int_equal(orbit_list_attempts(stage->client, id, 0, NULL, &list, NULL), ORBIT_OK);
  assert_int_equal(list->count, count);
  assert_int_equal(list->items[count - 1]->state, last);
  assert_string_equal(list->items[count - 1]->worker_instance_id, orbit_worker_instance_id(stage->worker));
  struct orbit_attempt *attempt = NULL;
  assert_int_equal(orbit_get_attempt(stage->client, id, list->items[0]->attempt_id, &attempt, NULL), ORBIT_OK);
  assert_int_equal(attempt->number, 1);
  orbit_attempt_free(attempt);
  orbit_attempt_list_free(list);
}

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
  if (strcmp(attempts->items[0]->ended_by, "REPORT") != 0) {
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

/* ---- Broken connections ---- */

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
  if (access(program[0], X_OK) != 0) {
    print_message("example-retry is not built\n");
    skip();
  }
  struct server server;
  char out[2][600], err[2][600];
  pid_t pids[2];
  server_up(&server);
  assert_int_equal(setenv("ORBIT_URL", server.url, 1), 0);
  assert_int_equal(setenv("ORBIT_CREDENTIALS_FILE", server.credentials, 1), 0);
  for (int i = 0; i < 2; i++) { /* side by side: neither takes the other's work */
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
  test_directory_remove(server.directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_to_connect_to_is_said_in_time),
      cmocka_unit_test(outcomes_decide_the_task),
      cmocka_unit_test(numbers_come_back_as_written),
      cmocka_unit_test(a_cancellation_reaches_the_handler),
      cmocka_unit_test(no_more_handlers_run_than_threads),
      cmocka_unit_test(a_handler_past_its_time_is_an_unknown),
      cmocka_unit_test(a_lease_is_renewed_as_long_as_the_handler_runs),
      cmocka_unit_test(a_lost_answer_is_asked_for_again),
      cmocka_unit_test(a_handler_outlives_a_broken_connection),
      cmocka_unit_test(a_handler_outlives_a_restart_of_the_server),
      cmocka_unit_test(a_refused_token_ends_the_worker),
      cmocka_unit_test(a_refused_hello_ends_the_worker),
      cmocka_unit_test(a_second_worker_of_the_instance_ends_the_first),
      cmocka_unit_test(the_retry_example_prints_its_two_lines),
  };
  if (!server_is_built()) {
    print_message("skipped: orbitd and orbitctl are not built\n");
    return 0;
  }
  (void)signal(SIGPIPE, SIG_IGN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
