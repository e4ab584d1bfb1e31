/* A worker, whole: it takes tasks for the handler receipt.write, version v1, and carries each out by writing the payload to the
 * file DIR/<task id>.json. The file is the effect that matters here, and there must never be two for one task: so the file has
 * the task's id for its name, which is the same in every attempt, and comes to be in one step that fails if it is there.
 *
 *     ORBIT_CREDENTIALS_FILE=credentials.json worker DIR
 *
 * SIGINT and SIGTERM drain: no new task is taken, what is held is finished and reported, then the program ends with exit code
 * 0. A second one does not wait. */
#include <errno.h>
#include <fcntl.h>
#include <orbit.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { drain_ms = 1000 }; /* looks for a second signal so often */

/* ---- The handler ---- */

static bool write_all(int fd, const char *data, size_t size) {
  while (size > 0) {
    ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    data += written;
    size -= (size_t)written;
  }
  return fsync(fd) == 0;
}

/* For failures that have left nothing behind: they may be reported as FAILED, and as safe to try again. */
static enum orbit_outcome not_done(struct orbit_report *report, const char *code) {
  return orbit_report_failure(report, code, true, strerror(errno), NULL, 0);
}

static enum orbit_outcome write_receipt(void *context, const struct orbit_assignment *assignment, struct orbit_report *report) {
  const int directory = *(const int *)context;
  char name[64], draft[64], result[96];
  (void)snprintf(name, sizeof name, "%s.json", assignment->task_id);
  (void)snprintf(draft, sizeof draft, ".%s.draft", assignment->attempt_id);
  int result_size = snprintf(result, sizeof result, "{\"file\":\"%s\"}", name);

  int fd = openat(directory, draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return not_done(report, "CANNOT_OPEN");
  enum orbit_outcome outcome;
  if (!write_all(fd, assignment->payload, assignment->payload_size)) {
    outcome = not_done(report, "CANNOT_WRITE");
  } else if (linkat(directory, draft, directory, name, 0) != 0 && errno != EEXIST) {
    outcome = not_done(report, "CANNOT_PUBLISH");
  } else if (fsync(directory) != 0) {
    /* The file is there, but will it be after a power cut? Nobody can tell: that is neither success nor failure. */
    outcome = orbit_report_unknown(report, "CANNOT_SYNC", strerror(errno), NULL, 0);
  } else {
    /* EEXIST included: an earlier attempt did the work, and its report did not arrive. */
    outcome = orbit_report_success(report, result, (size_t)result_size);
  }
  (void)unlinkat(directory, draft, 0);
  (void)close(fd);
  return outcome;
}

/* ---- The program ---- */

static void worker_log(void *context, int level, const char *line) {
  (void)context, (void)level;
  fprintf(stderr, "worker: %s\n", line);
}

static sigset_t stop_signals(void) {
  sigset_t signals;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGINT);
  (void)sigaddset(&signals, SIGTERM);
  return signals;
}

/* Drains at the first signal; at the second it only lets running handlers return. */
static void *wait_for_signal(void *context) {
  struct orbit_worker *worker = context;
  const sigset_t signals = stop_signals();
  const struct timespec at_once = {0, 0};
  int number;
  (void)sigwait(&signals, &number);
  while (orbit_worker_drain(worker, drain_ms, NULL) == ORBIT_TIMEOUT && sigtimedwait(&signals, NULL, &at_once) < 0) continue;
  orbit_worker_stop(worker);
  return NULL;
}

/* Until a signal comes, or the worker cannot go on: its token is refused, say. */
static int work(struct orbit_worker *worker, struct orbit_error *error) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_signal, worker) != 0) return ORBIT_NO_MEMORY;
  int status = orbit_worker_run(worker, error);
  /* Where it still waits. SIGTERM is blocked in all threads. NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread,cert-pos44-c) */
  (void)pthread_kill(thread, SIGTERM);
  (void)pthread_join(thread, NULL);
  return status;
}

static int run(const struct orbit_credentials *credentials, int directory) {
  struct orbit_error error = {.message = ""};
  struct orbit_worker *worker = NULL;
  const char *queue_ids[] = {credentials->queue_id};
  struct orbit_worker_options options = ORBIT_WORKER_OPTIONS_INIT;
  options.url = credentials->url;
  options.token = credentials->token;
  options.name = "receipt-writer";
  options.queue_ids = queue_ids;
  options.queue_count = 1;
  options.capacity = 4; /* tasks held at once, and handlers that run at once */
  options.log = worker_log;
  int status = orbit_worker_new(&options, &worker, &error);
  if (status == ORBIT_OK) status = orbit_worker_handle(worker, "receipt.write", "v1", write_receipt, &directory, &error);
  if (status == ORBIT_OK) status = work(worker, &error);
  orbit_worker_free(worker);
  if (status != ORBIT_OK) fprintf(stderr, "worker: %s %s\n", orbit_status_name(status), error.message);
  return status == ORBIT_OK ? 0 : 1;
}

int main(int argc, char **argv) {
  const sigset_t signals = stop_signals();
  struct orbit_error error;
  struct orbit_credentials *credentials = NULL;
  if (argc != 2) {
    fprintf(stderr, "usage: worker DIR\n");
    return 2;
  }
  int directory = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) {
    perror(argv[1]);
    return 1;
  }
  (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* for all threads: wait_for_signal takes them */
  int code = 1;
  if (orbit_credentials_load(NULL, &credentials, &error) == ORBIT_OK) code = run(credentials, directory);
  else fprintf(stderr, "worker: %s\n", error.message);
  orbit_credentials_free(credentials);
  (void)close(directory);
  return code;
}
