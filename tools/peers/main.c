/* orbit-bench-peer: the load of orbit-bench on another queue, so that both can be measured in turn, in one hour, on one disk.
 * tools/bench-peers starts the queues and prints the table. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "load/histogram.h"
#include "load/server.h"
#include "peers/peer.h"

enum { jobs_max = 1024, number_digits = 8, payload_bytes_min = 16, exit_done = 0, exit_finding = 1, exit_misuse = 2 };
static const int64_t silence_ns_max = INT64_C(30) * 1000000000;

struct peer_line;

struct bench {
  const struct peer *peer;
  struct address address;
  unsigned inflight, batch, workers, capacity, payload_bytes;
  uint64_t tasks, sent, accepted, finished;
  unsigned greeted; /* connections that are ready */
  pid_t pid;
  struct loop loop;
  int64_t *sent_ns, progress_ns;
  struct histogram submit, life; /* ns */
  char broken[128];
};

/* A connection that submits, or one that works. */
struct peer_line {
  struct stream stream; /* first */
  struct bench *bench;
  bool works, claims;      /* a worker; it waits for tasks */
  bool greets;             /* nothing but the greeting has been said */
  unsigned index, waiting; /* answers to come */
  uint64_t first;          /* number of the request's first task */
  uint64_t held[jobs_max];
  unsigned held_count;
  struct buffer request, payloads;
};

static void fail(struct bench *bench, const char *text) {
  if (bench->broken[0] == '\0') (void)snprintf(bench->broken, sizeof bench->broken, "%s", text);
}

static void send_request(struct peer_line *line) {
  must(!line->request.failed);
  stream_write(&line->stream, line->request.data, line->request.size);
}

static void submit_next(struct peer_line *line) {
  struct bench *bench = line->bench;
  unsigned count = bench->batch;
  int64_t now = loop_now_ns();
  if (bench->sent >= bench->tasks) return;
  line->first = bench->sent;
  buffer_reset(&line->payloads);
  buffer_reset(&line->request);
  for (unsigned i = 0; i < count; i++) {
    uint64_t number = bench->sent++;
    bench->sent_ns[number] = now;
    buffer_append_format(&line->payloads, "%08llu", (unsigned long long)number);
    for (unsigned k = number_digits; k < bench->payload_bytes; k++) buffer_append_char(&line->payloads, 'x');
  }
  bench->peer->submit(&line->request, buffer_bytes(&line->payloads), count, &line->waiting);
  send_request(line);
}

static void claim_next(struct peer_line *line, bool again) {
  buffer_reset(&line->request);
  line->bench->peer->claim(&line->request, line->index, line->bench->capacity, again);
  line->claims = true;
  send_request(line);
}

static void take_jobs(struct peer_line *line, const struct peer_job *jobs, unsigned count) {
  line->claims = false;
  line->held_count = count;
  for (unsigned i = 0; i < count; i++) {
    char digits[number_digits + 1] = "";
    if (jobs[i].payload.size >= number_digits) memcpy(digits, jobs[i].payload.data, number_digits);
    line->held[i] = strtoull(digits, NULL, 10);
  }
  buffer_reset(&line->request);
  line->bench->peer->complete(&line->request, jobs, count, &line->waiting);
  send_request(line);
}

/* All answers to what was asked have come. */
static void settled(struct peer_line *line) {
  struct bench *bench = line->bench;
  int64_t now = loop_now_ns();
  bench->progress_ns = now;
  if (line->greets) {
    line->greets = false;
    bench->greeted++;
    return;
  }
  if (!line->works) {
    bench->accepted += bench->batch;
    histogram_add(&bench->submit, (uint64_t)(now - bench->sent_ns[line->first]));
    submit_next(line);
    return;
  }
  for (unsigned i = 0; i < line->held_count; i++)
    if (line->held[i] < bench->sent) histogram_add(&bench->life, (uint64_t)(now - bench->sent_ns[line->held[i]]));
  bench->finished += line->held_count;
  claim_next(line, false);
}

static enum peer_answer take_one(struct peer_line *line) {
  static struct peer_job jobs[jobs_max];
  unsigned count = 0;
  size_t used = 0;
  struct bytes in = stream_unread(&line->stream);
  enum peer_answer answer =
      line->claims ? line->bench->peer->claimed(in, jobs, jobs_max, &count, &used) : line->bench->peer->answered(in, &used);
  if (answer != PEER_DONE) return answer;
  bool claimed = line->claims;
  if (claimed && count != 0) take_jobs(line, jobs, count);
  stream_consume(&line->stream, used);
  if (claimed && count == 0) claim_next(line, true);
  if (!claimed && --line->waiting == 0) settled(line);
  return PEER_DONE;
}

static void took(struct stream *stream) {
  struct peer_line *line = (struct peer_line *)(void *)stream;
  while (line->claims || line->waiting != 0) {
    enum peer_answer answer = take_one(line);
    if (answer == PEER_BROKEN) fail(line->bench, "the queue answered what its protocol does not say");
    if (answer != PEER_DONE) return;
  }
}

static void broke(struct stream *stream) {
  struct peer_line *line = (struct peer_line *)(void *)stream;
  fail(line->bench, "a connection broke");
}

static void line_open(struct peer_line *line, struct bench *bench, unsigned index, bool works) {
  *line = (struct peer_line){.bench = bench, .works = works, .index = index};
  stream_init(&line->stream, &bench->loop, took, broke);
  buffer_init(&line->request, SIZE_MAX / 2);
  buffer_init(&line->payloads, SIZE_MAX / 2);
  if (!stream_open(&line->stream, &bench->address)) fail(bench, "no connection");
}

/* Says what a connection says first. */
static void greet(struct peer_line *line, void (*words)(struct buffer *out, unsigned *ret_answers)) {
  line->greets = true;
  words(&line->request, &line->waiting);
  send_request(line);
}

static void line_clear(struct peer_line *line) {
  stream_clear(&line->stream);
  buffer_clear(&line->request);
  buffer_clear(&line->payloads);
}

static bool goes_on(struct bench *bench) {
  if (loop_now_ns() - bench->progress_ns > silence_ns_max) fail(bench, "nothing came back for half a minute");
  return bench->broken[0] == '\0';
}

/* Until so many connections have been greeted. */
static void wait_for_greeted(struct bench *bench, unsigned count) {
  while (bench->greeted < count && goes_on(bench)) loop_turn(&bench->loop, loop_now_ns() + 1000000000);
}

/* What must be said once, on a connection of its own. */
static void set_up(struct bench *bench) {
  struct peer_line line;
  must(bench->peer != NULL);
  if (bench->peer->set_up == NULL) return;
  line_open(&line, bench, 0, false);
  greet(&line, bench->peer->set_up);
  wait_for_greeted(bench, 1);
  bench->greeted = 0;
  line_clear(&line);
}

/* All connections, submitters first, none of which has asked for anything yet. */
static void open_lines(struct bench *bench, struct peer_line *lines, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    bool works = i >= bench->inflight;
    line_open(&lines[i], bench, works ? i - bench->inflight + 1 : i, works);
    if (bench->peer->greet != NULL) greet(&lines[i], bench->peer->greet);
  }
  if (bench->peer->greet != NULL) wait_for_greeted(bench, count);
}

/* Processor time of the queue: of its process, and of those that it has begun and that still live. */
static double family_cpu_us(pid_t pid) {
  char path[64], text[4096] = "";
  double cpu_us = usage_read(pid).cpu_us;
  (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
  FILE *file = pid > 0 ? fopen(path, "re") : NULL;
  if (file == NULL) return cpu_us;
  size_t size = fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  text[size] = '\0';
  for (char *at = text, *end; (pid = (pid_t)strtol(at, &end, 10)) > 0; at = end) cpu_us += usage_read(pid).cpu_us;
  return cpu_us;
}

static void print(const struct bench *bench, double seconds, double cpu_us) {
  (void)printf(
      "{\"peer\":\"%s\",\"mode\":\"%s\",\"inflight\":%u,\"batch\":%u,\"workers\":%u,\"capacity\":%u,\"payload\":%u,"
      "\"tasks\":%llu,\"seconds\":%.3f,\"tasks_per_s\":%.1f,\"submit_p50_us\":%.1f,\"submit_p99_us\":%.1f",
      bench->peer->name,
      bench->workers != 0 ? "lifecycle"
      : bench->batch > 1  ? "batch"
                          : "submit",
      bench->inflight, bench->batch, bench->workers, bench->capacity, bench->payload_bytes, (unsigned long long)bench->accepted,
      seconds, (double)bench->accepted / seconds, (double)histogram_quantile(&bench->submit, 0.5) / 1e3,
      (double)histogram_quantile(&bench->submit, 0.99) / 1e3);
  if (bench->workers != 0)
    (void)printf(",\"life_p50_us\":%.1f,\"life_p99_us\":%.1f", (double)histogram_quantile(&bench->life, 0.5) / 1e3,
                 (double)histogram_quantile(&bench->life, 0.99) / 1e3);
  if (bench->pid != 0) (void)printf(",\"server_cpu_us_per_task\":%.2f", cpu_us / (double)bench->accepted);
  (void)puts("}");
}

static int run(struct bench *bench) {
  unsigned count = bench->inflight + bench->workers;
  struct peer_line *lines = guard_calloc(count, sizeof *lines);
  bench->sent_ns = guard_calloc(bench->tasks, sizeof *bench->sent_ns);
  loop_init(&bench->loop);
  bench->progress_ns = loop_now_ns();
  set_up(bench);
  open_lines(bench, lines, count);
  double before_us = family_cpu_us(bench->pid);
  int64_t started_ns = loop_now_ns();
  for (unsigned i = bench->inflight; i < count && goes_on(bench); i++) claim_next(&lines[i], false);
  for (unsigned i = 0; i < bench->inflight && goes_on(bench); i++) submit_next(&lines[i]);
  while (goes_on(bench) && (bench->accepted < bench->tasks || (bench->workers != 0 && bench->finished < bench->tasks)))
    loop_turn(&bench->loop, loop_now_ns() + 1000000000);
  double seconds = (double)(loop_now_ns() - started_ns) / 1e9;
  double after_us = family_cpu_us(bench->pid);
  for (unsigned i = 0; i < count; i++)
    if (lines[i].bench != NULL) line_clear(&lines[i]);
  free(lines);
  free(bench->sent_ns);
  loop_clear(&bench->loop);
  if (bench->broken[0] != '\0') {
    (void)fprintf(stderr, "orbit-bench-peer: %s: %s\n", bench->peer->name, bench->broken);
    return exit_finding;
  }
  print(bench, seconds, after_us - before_us);
  return exit_done;
}

/* ---- options ---- */

static const struct argp_option option_rows[] = {
    {"port", 'p', "N", 0, "where the queue listens, on 127.0.0.1", 0},
    {"pid", 'P', "N", 0, "its process, for its processor time", 0},
    {"inflight", 'i', "N", 0, "connections that submit (64)", 0},
    {"tasks", 't', "N", 0, "tasks to submit (20000), rounded up to whole batches", 0},
    {"batch", 'b', "N", 0, "tasks a request (1)", 0},
    {"workers", 'w', "N", 0, "connections that claim and complete (0)", 0},
    {"capacity", 'c', "N", 0, "tasks that each claims at once (1)", 0},
    {"payload", 's', "BYTES", 0, "size of a payload (300)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static uint64_t parse(struct argp_state *state, const char *text, uint64_t min, uint64_t max) {
  char *rest;
  errno = 0;
  unsigned long long value = strtoull(text, &rest, 10);
  if (errno != 0 || rest == text || *rest != '\0' || text[0] == '-' || value < min || value > max)
    argp_error(state, "\"%s\" is no number from %llu to %llu", text, (unsigned long long)min, (unsigned long long)max);
  return value;
}

static void take_peer(struct argp_state *state, struct bench *bench, const char *name) {
  static const struct peer *const peers[] = {&peer_redis, &peer_beanstalkd, &peer_postgres};
  for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++)
    if (strcmp(peers[i]->name, name) == 0) bench->peer = peers[i];
  if (bench->peer == NULL) argp_error(state, "no peer \"%s\": redis, beanstalkd or postgres", name);
}

static void settle(struct argp_state *state, struct bench *bench, unsigned port) {
  struct fault fault = {0};
  char url[64];
  if (bench->peer == NULL || port == 0) argp_error(state, "say which queue, and its --port");
  must(bench->peer != NULL); /* argp_error has ended the program */
  if (bench->batch > 1 && !bench->peer->batches) argp_error(state, "%s takes tasks one by one", bench->peer->name);
  bench->tasks = (bench->tasks + bench->batch - 1) / bench->batch * bench->batch;
  (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
  if (address_parse(bytes_text(url), &bench->address, &fault) != STATUS_OK) argp_error(state, "%s", fault.message);
}

static error_t take_option(int key, char *argument, struct argp_state *state) {
  static unsigned port;
  struct bench *bench = state->input;
  switch (key) {
    case 'p':
      port = (unsigned)parse(state, argument, 1, 65535);
      return 0;
    case 'P':
      bench->pid = (pid_t)parse(state, argument, 1, INT32_MAX);
      return 0;
    case 'i':
      bench->inflight = (unsigned)parse(state, argument, 1, 4000);
      return 0;
    case 't':
      bench->tasks = parse(state, argument, 1, 99000000);
      return 0;
    case 'b':
      bench->batch = (unsigned)parse(state, argument, 1, 1000);
      return 0;
    case 'w':
      bench->workers = (unsigned)parse(state, argument, 0, 4000);
      return 0;
    case 'c':
      bench->capacity = (unsigned)parse(state, argument, 1, jobs_max);
      return 0;
    case 's':
      bench->payload_bytes = (unsigned)parse(state, argument, payload_bytes_min, 262144);
      return 0;
    case ARGP_KEY_ARG:
      take_peer(state, bench, argument);
      return 0;
    case ARGP_KEY_END:
      settle(state, bench, port);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv) {
  static struct bench bench = {.inflight = 64, .batch = 1, .capacity = 1, .payload_bytes = 300, .tasks = 20000};
  static const struct argp argp = {
      option_rows, take_option, "redis|beanstalkd|postgres", "Puts the load of orbit-bench on another queue.", NULL,
      NULL,        NULL};
  argp_err_exit_status = exit_misuse;
  (void)argp_parse(&argp, argc, argv, 0, NULL, &bench);
  return run(&bench);
}
