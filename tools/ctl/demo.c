/* orbitctl demo: a safe retry, an unknown outcome, a review, a manual retry, and a duplicate that is refused: in one command,
 * on a running server, drawn as a timeline from what the server kept. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl.h"
#include "online.h"

enum {
  demo_ready_ms = 15000,
  demo_rest_ms = 30000,
  demo_poll_ms = 20,
  demo_drain_ms = 15000,
  bar_columns = 40,
  timeline_rows_max = 64
};

struct demo {
  struct online online;
  struct orbit_worker *worker;
  char version[ORBIT_ID_SIZE + 3]; /* of this run's handlers, so that no other worker gets its tasks */
  atomic_int calls[2];             /* of the two handlers */
  char tasks[3][ORBIT_ID_SIZE];    /* the safe retry, the unknown outcome, its successor */
};

static int broken(const struct demo *demo, const struct orbit_error *error) {
  return online_failed(&demo->online, error, NULL);
}

/* ---- the worker ---- */

/* Refuses the first call before it had any effect. */
static enum orbit_outcome ship(void *context, const struct orbit_assignment *assignment, struct orbit_report *report) {
  struct demo *demo = context;
  (void)assignment;
  if (atomic_fetch_add(&demo->calls[0], 1) == 0)
    return orbit_report_failure(report, "CARRIER_BUSY", true, "nothing was booked", NULL, 0);
  return orbit_report_success(report, "{\"parcel\":\"booked\"}", strlen("{\"parcel\":\"booked\"}"));
}

/* The first call ends without anybody knowing whether the money moved. */
static enum orbit_outcome pay(void *context, const struct orbit_assignment *assignment, struct orbit_report *report) {
  struct demo *demo = context;
  (void)assignment;
  if (atomic_fetch_add(&demo->calls[1], 1) == 0) return ORBIT_UNKNOWN;
  return orbit_report_success(report, "{\"payment\":\"made\"}", strlen("{\"payment\":\"made\"}"));
}

static int start_worker(struct demo *demo) {
  struct orbit_error error;
  const char *queue_ids[] = {demo->online.credentials->queue_id};
  struct orbit_worker_options options = ORBIT_WORKER_OPTIONS_INIT;
  options.url = demo->online.credentials->url;
  options.token = demo->online.credentials->token;
  options.name = "orbitctl-demo";
  options.queue_ids = queue_ids;
  options.queue_count = 1;
  options.capacity = 1;
  if (orbit_worker_new(&options, &demo->worker, &error) != ORBIT_OK ||
      orbit_worker_handle(demo->worker, "demo.ship", demo->version, ship, demo, &error) != ORBIT_OK ||
      orbit_worker_handle(demo->worker, "demo.pay", demo->version, pay, demo, &error) != ORBIT_OK ||
      orbit_worker_start(demo->worker, &error) != ORBIT_OK ||
      orbit_worker_wait_ready(demo->worker, demo_ready_ms, &error) != ORBIT_OK)
    return broken(demo, &error);
  return exit_done;
}

/* ---- the story ---- */

static int submit(struct demo *demo, const char *handler, uint32_t max_attempts, char task_id[ORBIT_ID_SIZE]) {
  struct orbit_error error;
  struct orbit_task *task = NULL;
  char key[ORBIT_ID_SIZE];
  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  request.queue_id = demo->online.credentials->queue_id;
  request.handler = handler;
  request.handler_version = demo->version;
  request.payload_version = "v1";
  request.payload = "{\"amount\":\"10.10\"}";
  request.payload_size = strlen(request.payload);
  request.task_timeout_ms = 600000;
  request.retry = (struct orbit_retry){
      .max_attempts = max_attempts, .initial_delay_ms = 300, .max_delay_ms = 300, .attempt_timeout_ms = 10000};
  if (orbit_random_id(key) != ORBIT_OK) return ctl_say(exit_cannot_run, "the kernel's random numbers cannot be had");
  if (orbit_submit_task(demo->online.client, key, &request, &task, &error) != ORBIT_OK) return broken(demo, &error);
  (void)snprintf(task_id, ORBIT_ID_SIZE, "%s", task->id);
  orbit_task_free(task);
  return exit_done;
}

/* Until the task has ended or waits for a person. */
static int rest(struct demo *demo, const char *task_id, int wanted, uint64_t *ret_revision) {
  struct orbit_error error;
  const struct timespec pause = {.tv_nsec = demo_poll_ms * 1000000L};
  for (int waited = 0; waited < demo_rest_ms; waited += demo_poll_ms) {
    struct orbit_task *task = NULL;
    if (orbit_get_task(demo->online.client, task_id, &task, &error) != ORBIT_OK) return broken(demo, &error);
    bool resting = orbit_task_is_terminal(task) || task->state == ORBIT_TASK_NEEDS_REVIEW;
    bool good = task->state == wanted;
    *ret_revision = task->revision;
    orbit_task_free(task);
    if (resting) return good ? exit_done : ctl_say(exit_cannot_run, "task %s came to rest otherwise than told", task_id);
    (void)nanosleep(&pause, NULL);
  }
  return ctl_say(exit_cannot_run, "task %s did not come to rest in %d s", task_id, demo_rest_ms / 1000);
}

static int review(struct demo *demo, uint64_t revision) {
  struct orbit_error error;
  struct orbit_review_result *result = NULL;
  struct orbit_review_request request = ORBIT_REVIEW_REQUEST_INIT;
  char key[ORBIT_ID_SIZE];
  (void)orbit_random_id(key);
  request.expected_revision = revision;
  request.reason = "the bank's journal shows no booking";
  request.evidence_ref = "bank:journal-4711";
  request.execution_settled = true;
  request.outcome = ORBIT_FAILED;
  request.result = "{\"confirmed\":true}";
  request.result_size = strlen(request.result);
  if (orbit_review_task(demo->online.client, key, demo->tasks[1], &request, &result, &error) != ORBIT_OK)
    return broken(demo, &error);
  orbit_review_result_free(result);
  return exit_done;
}

/* The first makes the successor; the second, under a key of its own, must be refused. */
static int retry(struct demo *demo, uint64_t revision, bool refused) {
  struct orbit_error error;
  struct orbit_retry_result *result = NULL;
  struct orbit_retry_request request = ORBIT_RETRY_REQUEST_INIT;
  char key[ORBIT_ID_SIZE];
  (void)orbit_random_id(key);
  request.expected_revision = revision;
  request.reason = "no booking was made: paying again is safe";
  request.evidence_ref = "bank:journal-4711";
  request.safe_to_retry = true;
  request.task_timeout_ms = 600000;
  int status = orbit_retry_task(demo->online.client, key, demo->tasks[1], &request, &result, &error);
  if (refused) {
    if (status == ORBIT_REFUSED && error.http_status == 409) return exit_done;
    orbit_retry_result_free(result);
    return ctl_say(exit_cannot_run, "a second successor was not refused");
  }
  if (status != ORBIT_OK) return broken(demo, &error);
  (void)snprintf(demo->tasks[2], ORBIT_ID_SIZE, "%s", result->task->id);
  orbit_retry_result_free(result);
  return exit_done;
}

/* ---- the timeline ---- */

struct mark {
  int64_t from_us, to_us; /* the same: a moment */
  char text[96];
};

struct timeline {
  struct mark marks[timeline_rows_max];
  unsigned count;
};

static void add(struct timeline *timeline, int64_t from_us, int64_t to_us, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void add(struct timeline *timeline, int64_t from_us, int64_t to_us, const char *format, ...) {
  if (timeline->count == timeline_rows_max) return;
  struct mark *mark = &timeline->marks[timeline->count++];
  va_list arguments;
  mark->from_us = from_us;
  mark->to_us = to_us;
  va_start(arguments, format);
  (void)vsnprintf(mark->text, sizeof mark->text, format, arguments);
  va_end(arguments);
}

static int gather(struct demo *demo, const char *task_id, struct timeline *timeline) {
  struct orbit_error error;
  struct orbit_attempt_list *attempts = NULL;
  struct orbit_operation_list *operations = NULL;
  if (orbit_list_attempts(demo->online.client, task_id, 0, NULL, &attempts, &error) != ORBIT_OK) return broken(demo, &error);
  for (size_t i = 0; i < attempts->count; i++) {
    const struct orbit_attempt *attempt = attempts->items[i];
    add(timeline, attempt->leased_at, attempt->finished_at, "attempt %" PRIu32 ": %s%s%s", attempt->number, attempt->state_name,
        attempt->retryable ? ", safe to retry" : "", attempt->delay_ms != 0 ? ", waits its backoff" : "");
  }
  orbit_attempt_list_free(attempts);
  if (orbit_list_task_operations(demo->online.client, task_id, 100, NULL, &operations, &error) != ORBIT_OK)
    return broken(demo, &error);
  for (size_t i = operations->count; i-- > 0;) {
    const struct orbit_operation *operation = operations->items[i];
    bool by_people = strcmp(operation->action, "task.accept") == 0 || strcmp(operation->action, "task.review") == 0 ||
                     strcmp(operation->action, "task.retry") == 0;
    if (by_people) add(timeline, operation->created_at, operation->created_at, "%s", operation->action);
  }
  orbit_operation_list_free(operations);
  return exit_done;
}

static void sort(struct timeline *timeline) {
  for (unsigned i = 1; i < timeline->count; i++)
    for (unsigned j = i; j > 0 && timeline->marks[j].from_us < timeline->marks[j - 1].from_us; j--) {
      struct mark mark = timeline->marks[j];
      timeline->marks[j] = timeline->marks[j - 1];
      timeline->marks[j - 1] = mark;
    }
}

static void draw(const struct timeline *timeline, int64_t start_us, int64_t end_us) {
  int64_t span = end_us > start_us ? end_us - start_us : 1;
  for (unsigned i = 0; i < timeline->count; i++) {
    const struct mark *mark = &timeline->marks[i];
    char bar[bar_columns + 1];
    int64_t first = (mark->from_us - start_us) * (bar_columns - 1) / span,
            last = (mark->to_us - start_us) * (bar_columns - 1) / span;
    for (int64_t at = 0; at < bar_columns; at++)
      bar[at] = at < first || at > last ? '.' : mark->from_us == mark->to_us ? '|' : '#';
    bar[bar_columns] = 0;
    (void)printf("  %6.3f s %s %s\n", (double)(mark->from_us - start_us) / 1e6, bar, mark->text);
  }
}

static int tell(struct demo *demo) {
  static const char *const titles[] = {"a safe retry", "an unknown outcome, reviewed and retried by hand", "its successor"};
  struct timeline timelines[3] = {{.count = 0}};
  int64_t start_us = INT64_MAX, end_us = 0;
  for (unsigned i = 0; i < 3; i++) {
    int code = gather(demo, demo->tasks[i], &timelines[i]);
    if (code != exit_done) return code;
    sort(&timelines[i]);
    for (unsigned j = 0; j < timelines[i].count; j++) {
      if (timelines[i].marks[j].from_us < start_us) start_us = timelines[i].marks[j].from_us;
      if (timelines[i].marks[j].to_us > end_us) end_us = timelines[i].marks[j].to_us;
    }
  }
  for (unsigned i = 0; i < 3; i++) {
    (void)printf("\ntask %s: %s\n", demo->tasks[i], titles[i]);
    draw(&timelines[i], start_us, end_us);
  }
  (void)printf("\na second successor under another key was refused: 409 STATE_CONFLICT\n");
  return fflush(stdout) == 0 ? exit_done : exit_cannot_run;
}

static int play(struct demo *demo) {
  uint64_t revision = 0;
  int code = start_worker(demo);
  if (code == exit_done) code = submit(demo, "demo.ship", 3, demo->tasks[0]);
  if (code == exit_done) code = submit(demo, "demo.pay", 1, demo->tasks[1]);
  if (code == exit_done) code = rest(demo, demo->tasks[0], ORBIT_TASK_SUCCEEDED, &revision);
  if (code == exit_done) code = rest(demo, demo->tasks[1], ORBIT_TASK_NEEDS_REVIEW, &revision);
  if (code == exit_done) code = review(demo, revision);
  if (code == exit_done) code = retry(demo, revision + 1, false);
  if (code == exit_done) code = rest(demo, demo->tasks[2], ORBIT_TASK_SUCCEEDED, &revision);
  if (code == exit_done) code = retry(demo, 5, true);
  if (code == exit_done) code = tell(demo);
  if (demo->worker != NULL) (void)orbit_worker_drain(demo->worker, demo_drain_ms, NULL);
  orbit_worker_free(demo->worker);
  return code;
}

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct demo *demo = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = &demo->online;
  else if (key == ARGP_KEY_ARG) argp_error(state, "unexpected argument \"%s\"", argument);
  else return ARGP_ERR_UNKNOWN;
  return 0;
}

int ctl_demo(int argc, char **argv) {
  static struct demo demo;
  const struct argp_child children[] = {{&online_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp argp = {
      NULL,
      take_option,
      NULL,
      "Play the whole story on a running server. The credential needs submit, read, consume, review, retry and audit "
      "rights: orbitctl init --dev --recovery-access makes one.",
      children,
      NULL,
      NULL};
  char random_id[ORBIT_ID_SIZE];
  (void)argp_parse(&argp, argc, argv, 0, NULL, &demo);
  if (demo.online.format != PRINT_TEXT) return ctl_say(exit_misuse, "the demo is drawn: it has no other format than text");
  int code = online_open(&demo.online);
  if (code == exit_done && orbit_random_id(random_id) != ORBIT_OK)
    code = ctl_say(exit_cannot_run, "the kernel's random numbers cannot be had");
  if (code == exit_done) {
    (void)snprintf(demo.version, sizeof demo.version, "v1-%s", random_id);
    code = play(&demo);
  }
  online_close(&demo.online);
  return code;
}
