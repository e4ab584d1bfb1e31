/* For the tests of liborbit's worker: a server, a client, and a worker whose handler does as the test says. */
#ifndef ORBIT_TESTS_API_SDK_STAGE_H
#define ORBIT_TESTS_API_SDK_STAGE_H

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

static inline enum orbit_outcome success(struct orbit_report *report) {
  return orbit_report_success(report, "{\"n\":1.10}", 10);
}

static inline enum orbit_outcome behave(struct stage *stage, int call, const struct orbit_assignment *assignment,
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

static inline enum orbit_outcome handle(void *context, const struct orbit_assignment *assignment, struct orbit_report *report) {
  struct stage *stage = context;
  int call = atomic_fetch_add(&stage->calls, 1), inside = atomic_fetch_add(&stage->inside, 1) + 1;
  int most = atomic_load(&stage->inside_max);
  while (inside > most && !atomic_compare_exchange_weak(&stage->inside_max, &most, inside)) continue;
  enum orbit_outcome outcome = behave(stage, call, assignment, report);
  atomic_fetch_sub(&stage->inside, 1);
  return outcome;
}

/* ---- Stages ---- */

static inline void show(void *context, int level, const char *line) {
  (void)context;
  print_message("worker (%d): %s\n", level, line);
}

static inline struct orbit_worker_options options_make(struct stage *stage, const char *const queue_ids[1]) {
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

static inline void worker_start(struct stage *stage, const struct orbit_worker_options *options) {
  assert_int_equal(orbit_worker_new(options, &stage->worker, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_handle(stage->worker, "test", stage->version, handle, stage, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_start(stage->worker, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_wait_ready(stage->worker, wait_ms_max, NULL), ORBIT_OK);
}

/* On the heap, so that a worker that a failed test leaves behind harms no later test. */
static inline struct stage *stage_new(void) {
  struct stage *stage = calloc(1, sizeof *stage);
  assert_non_null(stage);
  return stage;
}

/* A server of its own, and a client. */
static inline void stage_open(struct stage *stage, enum behaviour behaviour) {
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
static inline void stage_up(struct stage *stage, enum behaviour behaviour, bool has_proxy) {
  stage_open(stage, behaviour);
  stage->has_proxy = has_proxy;
  if (has_proxy) proxy_up(&stage->proxy, &stage->server);
  const char *const queue_ids[] = {stage->credentials->queue_id};
  struct orbit_worker_options options = options_make(stage, queue_ids);
  worker_start(stage, &options);
}

static inline void stage_down(struct stage *stage) {
  orbit_worker_free(stage->worker);
  if (stage->has_proxy) proxy_down(&stage->proxy);
  orbit_client_free(stage->client);
  orbit_credentials_free(stage->credentials);
  server_down(&stage->server);
  free(stage);
}

static inline void submit(struct stage *stage, uint64_t attempt_timeout_ms, char ret_id[ORBIT_ID_SIZE]) {
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

static inline bool task_is(struct stage *stage, const char *id, enum orbit_task_state state) {
  struct orbit_task *task = NULL;
  assert_int_equal(orbit_get_task(stage->client, id, &task, NULL), ORBIT_OK);
  bool is = task->state == (int32_t)state;
  orbit_task_free(task);
  return is;
}

static inline struct orbit_worker_stats stats_of(struct stage *stage) {
  struct orbit_worker_stats stats = ORBIT_WORKER_STATS_INIT;
  orbit_worker_stats(stage->worker, &stats);
  return stats;
}

static inline void drain(struct stage *stage, uint64_t started, uint64_t confirmed) {
  assert_int_equal(orbit_worker_drain(stage->worker, wait_ms_max, NULL), ORBIT_OK);
  struct orbit_worker_stats stats = stats_of(stage);
  assert_true(stats.drained);
  assert_int_equal(stats.started, started);
  assert_int_equal(stats.confirmed, confirmed);
  assert_int_equal(stats.running, 0);
  assert_int_equal(stats.held, 0);
}

static inline void expect_attempts(struct stage *stage, const char *id, size_t count, enum orbit_attempt_state last) {
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

/* The body of main. */
#define stage_run(tests)                                \
  do {                                                  \
    (void)signal(SIGPIPE, SIG_IGN);                     \
    if (!programs_are_built()) return 1;                \
    return cmocka_run_group_tests((tests), NULL, NULL); \
  } while (0)

#endif
