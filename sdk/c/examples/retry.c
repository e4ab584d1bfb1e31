/* A safe retry, whole: one program is producer and worker. It submits a task; the handler refuses the first call before it has
 * had any effect, and says that trying again is safe; Orbit waits and assigns the task again; the second call does the work.
 * Then the program looks at the history of the task and drains its worker.
 *
 *     ORBIT_URL=http://127.0.0.1:8080 ORBIT_CREDENTIALS_FILE=worker.credentials.json retry
 *
 *     task=<id> state=SUCCEEDED attempts=2 first_retryable=true result={"text":"SAFE RETRY"}
 *     worker_drained=true started=2 confirmed=2 running=0
 *
 * Any other course ends with a message and exit code 1. Each run makes operation, handler and instance identities of its own,
 * so that runs side by side do not meet. The count of calls serves to inject one failure; it is no way to make a handler
 * idempotent. */
#include <ctype.h>
#include <inttypes.h>
#include <orbit.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ready_ms = 15000, task_ms = 60000, drain_ms = 15000 };

static const char payload[] = "{\"text\":\"  safe retry  \"}";

struct run {
  struct orbit_credentials *credentials;
  struct orbit_client *client;
  struct orbit_worker *worker;
  struct orbit_task *task;
  char operation_key[ORBIT_ID_SIZE];
  char handler_version[ORBIT_ID_SIZE + 3];
  atomic_int calls;
};

/* ---- The handler ---- */

/* {"text":"…"} with plain ASCII in it, as this program submits it, becomes the text without outside spaces, in capitals. */
static enum orbit_outcome normalize(const struct orbit_assignment *assignment, struct orbit_report *report) {
  static const char before[] = "{\"text\":\"", after[] = "\"}";
  const char *text = assignment->payload + strlen(before);
  if (assignment->payload_size < strlen(before) + strlen(after) || strncmp(assignment->payload, before, strlen(before)) != 0) {
    return orbit_report_failure(report, "BAD_PAYLOAD", false, "the payload is not {\"text\":\"…\"}", NULL, 0);
  }
  size_t size = assignment->payload_size - strlen(before) - strlen(after);
  while (size > 0 && text[0] == ' ') text++, size--;
  while (size > 0 && text[size - 1] == ' ') size--;

  char result[256];
  if (size > sizeof result - strlen(before) - strlen(after) - 1) {
    return orbit_report_failure(report, "BAD_PAYLOAD", false, "the text is too long for this example", NULL, 0);
  }
  size_t used = (size_t)snprintf(result, sizeof result, "%s", before);
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '\\' || text[i] == '"') {
      return orbit_report_failure(report, "BAD_PAYLOAD", false, "the text has escapes", NULL, 0);
    }
    result[used++] = (char)toupper((unsigned char)text[i]);
  }
  used += (size_t)snprintf(result + used, sizeof result - used, "%s", after);
  return orbit_report_success(report, result, used);
}

static enum orbit_outcome handle(void *context, const struct orbit_assignment *assignment, struct orbit_report *report) {
  static const char details[] = "{\"reason_ref\":\"diagnostics/temporary\"}";
  struct run *run = context;
  if (atomic_fetch_add(&run->calls, 1) == 0) {
    return orbit_report_failure(report, "TEMPORARY_REJECTION", true, NULL, details, strlen(details));
  }
  return normalize(assignment, report);
}

/* ---- The course ---- */

static int failed(const char *step, const struct orbit_error *error) {
  fprintf(stderr, "retry: %s: %s", step, orbit_status_name(error->status));
  if (error->code[0] != '\0') fprintf(stderr, " %s", error->code);
  if (error->field[0] != '\0') fprintf(stderr, " (%s)", error->field);
  fprintf(stderr, ": %s\n", error->message);
  return 1;
}

static int unexpected(const char *what) {
  fprintf(stderr, "retry: %s\n", what);
  return 1;
}

static void worker_log(void *context, int level, const char *line) {
  (void)context;
  if (level <= ORBIT_LOG_WARNING) fprintf(stderr, "retry: worker: %s\n", line);
}

static int prepare(struct run *run) {
  struct orbit_error error;
  char random_id[ORBIT_ID_SIZE];
  if (orbit_random_id(run->operation_key) != ORBIT_OK || orbit_random_id(random_id) != ORBIT_OK) {
    return unexpected("no randomness");
  }
  (void)snprintf(run->handler_version, sizeof run->handler_version, "v1-%s", random_id);
  if (orbit_credentials_load(NULL, &run->credentials, &error) != ORBIT_OK) return failed("credentials", &error);
  if (run->credentials->exposed) fprintf(stderr, "retry: %s is open to other users\n", run->credentials->path);

  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  options.url = run->credentials->url;
  options.token = run->credentials->token;
  if (orbit_client_new(&options, &run->client, &error) != ORBIT_OK) return failed("client", &error);
  return 0;
}

static int start_worker(struct run *run) {
  struct orbit_error error;
  const char *queue_ids[] = {run->credentials->queue_id};
  struct orbit_worker_options options = ORBIT_WORKER_OPTIONS_INIT;
  options.url = run->credentials->url;
  options.token = run->credentials->token;
  options.name = "retry-example";
  options.queue_ids = queue_ids;
  options.queue_count = 1;
  options.capacity = 1;
  options.log = worker_log;
  if (orbit_worker_new(&options, &run->worker, &error) != ORBIT_OK) return failed("worker", &error);
  if (orbit_worker_handle(run->worker, "text.normalize", run->handler_version, handle, run, &error) != ORBIT_OK ||
      orbit_worker_start(run->worker, &error) != ORBIT_OK ||
      orbit_worker_wait_ready(run->worker, ready_ms, &error) != ORBIT_OK) {
    return failed("worker", &error);
  }
  return 0;
}

static int submit(struct run *run) {
  struct orbit_error error;
  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  request.queue_id = run->credentials->queue_id;
  request.handler = "text.normalize";
  request.handler_version = run->handler_version;
  request.payload_version = "v1";
  request.payload = payload;
  request.payload_size = strlen(payload);
  request.recovery_safety = ORBIT_RECONCILE_ONLY;
  request.task_timeout_ms = 60000;
  request.retry =
      (struct orbit_retry){.max_attempts = 3, .initial_delay_ms = 500, .max_delay_ms = 2000, .attempt_timeout_ms = 10000};
  if (orbit_submit_task(run->client, run->operation_key, &request, &run->task, &error) != ORBIT_OK) {
    return failed("submit", &error);
  }
  return 0;
}

/* Waits until the task has come to rest: ended, or waiting for a person. */
static int await(struct run *run) {
  struct orbit_error error;
  struct orbit_task *now = NULL;
  if (orbit_wait_task(run->client, run->task->id, task_ms, &now, &error) != ORBIT_OK) return failed("task", &error);
  orbit_task_free(run->task);
  run->task = now;
  return 0;
}

/* The history must tell of a failure that was safe to retry, and of a success. */
static int check(struct run *run) {
  struct orbit_error error;
  struct orbit_attempt_list *list = NULL;
  const struct orbit_task *task = run->task;
  if (task->state != ORBIT_TASK_SUCCEEDED || task->attempt_count != 2 || task->result == NULL) {
    fprintf(stderr, "retry: task=%s ended otherwise: state=%s attempts=%" PRIu32 " error=%s\n", task->id, task->state_name,
            task->attempt_count, task->error.code);
    return 1;
  }
  if (orbit_list_attempts(run->client, task->id, 0, NULL, &list, &error) != ORBIT_OK) return failed("attempts", &error);
  bool good = list->count == 2;
  good = good && list->items[0]->state == ORBIT_ATTEMPT_FAILED && list->items[0]->retryable &&
         strcmp(list->items[0]->error.code, "TEMPORARY_REJECTION") == 0;
  good = good && list->items[1]->state == ORBIT_ATTEMPT_SUCCEEDED;
  orbit_attempt_list_free(list);
  if (!good) return unexpected("the attempts are not a retryable failure and a success");
  if (strcmp(task->result, "{\"text\":\"SAFE RETRY\"}") != 0) return unexpected("the result is not the one expected");
  printf("task=%s state=%s attempts=%" PRIu32 " first_retryable=true result=%s\n", task->id, task->state_name,
         task->attempt_count, task->result);
  return 0;
}

static int drain(struct run *run) {
  struct orbit_error error;
  struct orbit_worker_stats stats = ORBIT_WORKER_STATS_INIT;
  if (orbit_worker_drain(run->worker, drain_ms, &error) != ORBIT_OK) return failed("drain", &error);
  orbit_worker_stats(run->worker, &stats);
  printf("worker_drained=%s started=%" PRIu64 " confirmed=%" PRIu64 " running=%" PRIu64 "\n", stats.drained ? "true" : "false",
         stats.started, stats.confirmed, stats.running);
  bool good = stats.drained && stats.started == 2 && stats.confirmed == 2 && stats.running == 0;
  return good ? 0 : unexpected("the worker did not end as expected");
}

int main(void) {
  struct run run = {.calls = 0};
  int code = prepare(&run);
  if (code == 0) code = start_worker(&run);
  if (code == 0) code = submit(&run);
  if (code == 0) code = await(&run);
  if (code == 0) code = check(&run);
  if (code == 0) code = drain(&run);
  if (code != 0 && run.worker != NULL) {
    /* Whatever went wrong, what is held is reported and given back if that can be done in time. */
    (void)orbit_worker_drain(run.worker, drain_ms, NULL);
  }
  orbit_worker_free(run.worker);
  orbit_task_free(run.task);
  orbit_client_free(run.client);
  orbit_credentials_free(run.credentials);
  if (fflush(stdout) != 0) code = 1;
  return code;
}
