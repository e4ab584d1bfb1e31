/* The metrics: that the text is of the format, by a small parser of it; that histograms add up; what is counted; who may read.
 */
#define REPLY_BYTES (1024 * 1024)
#include <ctype.h>
#include <math.h>

#include "edge/http_people.h"
#include "edge/metrics_text.h"

static struct reply reply;

/* ---- A parser of the text format 0.0.4 ---- */

enum { samples_max = 2048, families_max = 128, name_max = 96, labels_max = 256 };

struct sample {
  char name[name_max];     /* of the line, _bucket and all */
  char labels[labels_max]; /* as written, without braces */
  double value;
  unsigned family;
};

struct family {
  char name[name_max], type[16];
};

static struct sample samples[samples_max];
static struct family families[families_max];
static unsigned sample_count, family_count;

static size_t name_span(const char *at) {
  if (!isalpha((unsigned char)*at) && *at != '_' && *at != ':') return 0;
  size_t size = 1;
  while (isalnum((unsigned char)at[size]) || at[size] == '_' || at[size] == ':') size++;
  return size;
}

static void parse_comment(const char *line) {
  char name[name_max], rest[512];
  if (sscanf(line, "# HELP %95s %511[^\n]", name, rest) == 2) {
    assert_int_equal(name_span(name), strlen(name));
    for (unsigned i = 0; i < family_count; i++) assert_string_not_equal(families[i].name, name); /* together, and once */
    assert_true(family_count < families_max);
    text_keep(families[family_count].name, name_max, name);
    families[family_count++].type[0] = '\0';
    return;
  }
  assert_int_equal(sscanf(line, "# TYPE %95s %511[^\n]", name, rest), 2);
  assert_true(family_count > 0);
  assert_string_equal(families[family_count - 1].name, name); /* right behind HELP */
  assert_true(strcmp(rest, "counter") == 0 || strcmp(rest, "gauge") == 0 || strcmp(rest, "histogram") == 0);
  text_keep(families[family_count - 1].type, sizeof families[0].type, rest);
}

/* name="value",… up to the brace; nothing here needs escapes. */
static const char *parse_labels(const char *at, char *out) {
  const char *begin = at;
  for (;;) {
    size_t size = name_span(at);
    assert_true(size > 0);
    at += size;
    assert_int_equal(strncmp(at, "=\"", 2), 0);
    at += 2;
    at += strcspn(at, "\"\\\n");
    assert_int_equal(*at++, '"');
    if (*at == '}') break;
    assert_int_equal(*at++, ',');
  }
  assert_true((size_t)(at - begin) < labels_max);
  memcpy(out, begin, (size_t)(at - begin));
  out[at - begin] = '\0';
  return at + 1;
}

/* A sample belongs to the family that was opened last. */
static void judge_family(const struct sample *sample) {
  const struct family *family = &families[sample->family];
  const char *suffix = sample->name + strlen(family->name);
  assert_int_equal(strncmp(sample->name, family->name, strlen(family->name)), 0);
  if (strcmp(family->type, "histogram") == 0)
    assert_true(strcmp(suffix, "_bucket") == 0 || strcmp(suffix, "_sum") == 0 || strcmp(suffix, "_count") == 0);
  else assert_string_equal(suffix, "");
  if (strcmp(family->type, "counter") == 0) assert_string_equal(family->name + strlen(family->name) - 6, "_total");
}

static void parse_sample(const char *line) {
  assert_true(sample_count < samples_max && family_count > 0);
  struct sample *sample = &samples[sample_count++];
  size_t size = name_span(line);
  assert_true(size > 0 && size < name_max);
  memcpy(sample->name, line, size);
  sample->name[size] = '\0';
  sample->labels[0] = '\0';
  sample->family = family_count - 1;
  const char *at = line + size;
  if (*at == '{') at = parse_labels(at + 1, sample->labels);
  assert_int_equal(*at, ' ');
  char *end;
  sample->value = strtod(at + 1, &end);
  assert_true(end > at + 1 && *end == '\0');
  assert_true(isfinite(sample->value) && sample->value >= 0);
  judge_family(sample);
  for (unsigned i = 0; i + 1 < sample_count; i++)
    assert_false(strcmp(samples[i].name, sample->name) == 0 && strcmp(samples[i].labels, sample->labels) == 0);
}

static void parse(const char *text) {
  char line[1024];
  sample_count = family_count = 0;
  assert_int_equal(text[strlen(text) - 1], '\n');
  while (*text != '\0') {
    size_t size = strcspn(text, "\n");
    assert_true(size > 0 && size < sizeof line);
    memcpy(line, text, size);
    line[size] = '\0';
    if (line[0] == '#') parse_comment(line);
    else parse_sample(line);
    text += size + 1;
  }
}

/* The value of one sample; -1: there is none. */
static double value_of(const char *name, const char *labels) {
  for (unsigned i = 0; i < sample_count; i++)
    if (strcmp(samples[i].name, name) == 0 && strcmp(samples[i].labels, labels) == 0) return samples[i].value;
  return -1;
}

/* Bounds and counts rise, and the last is the count. */
static void check_histogram(const char *name) {
  char bucket[name_max + 8], other[name_max + 8];
  double bound = 0, count = 0;
  bool ended = false;
  (void)snprintf(bucket, sizeof bucket, "%s_bucket", name);
  for (unsigned i = 0; i < sample_count; i++) {
    if (strcmp(samples[i].name, bucket) != 0) continue;
    assert_false(ended);
    assert_int_equal(strncmp(samples[i].labels, "le=\"", 4), 0);
    double next = strtod(samples[i].labels + 4, NULL);
    assert_true(next > bound && samples[i].value >= count);
    ended = isinf(next);
    bound = next;
    count = samples[i].value;
  }
  assert_true(ended);
  (void)snprintf(other, sizeof other, "%s_count", name);
  assert_true(value_of(other, "") == count);
  (void)snprintf(other, sizeof other, "%s_sum", name);
  assert_true(value_of(other, "") >= 0);
}

/* ---- The text alone ---- */

static struct metrics *sample_metrics(void) {
  struct metrics *metrics = guard_calloc(1, sizeof *metrics + sizeof(struct metrics_queue));
  metrics->engine.commands[COMMAND_SUBMIT][STATUS_OK] = 3;
  metrics->engine.commands[COMMAND_SUBMIT][STATUS_QUEUE_FULL] = UINT64_MAX;
  metrics->engine.evidence = 4;
  latency_add(&metrics->engine.commit, 16);
  latency_add(&metrics->engine.commit, 17);
  latency_add(&metrics->engine.commit, INT64_C(1) << 60);
  metrics->journal = (struct journal_stats){.bytes = 5, .file_bytes = 6, .used_bytes = 7, .reserved_bytes = 8};
  metrics->now_us = 10000000;
  metrics->workers = 9;
  metrics->queue_count = 1;
  metrics->queues[0].queue = (struct queue){.id = fixture_id(0xa01), .namespace_id = fixture_id(0x100), .paused = true};
  metrics->queues[0].queue.counts[TASK_WAITING] = 2;
  metrics->queues[0].oldest_waiting_at = 7500000;
  return metrics;
}

#define LABELS_A "namespace=\"0000018bcfe568000000000000000100\",queue_id=\"" QUEUE_A "\""

static void test_text(void **state) {
  static const struct process_numbers process = {.resident_bytes = 4096, .open_fds = 5, .max_fds = 1024, .cpu_seconds = 0.25};
  static const struct {
    const char *name, *labels;
    double value;
  } cases[] = {
      {"orbit_info", "version=\"1.2.3\"", 1},
      {"orbit_replay_ratio", "", 1},
      {"orbit_commands_total", "kind=\"task.submit\",result=\"OK\"", 3},
      {"orbit_commands_total", "kind=\"task.submit\",result=\"QUEUE_FULL\"", 18446744073709551615.0},
      {"orbit_commands_total", "kind=\"task.review\",result=\"OK\"", 0},
      {"orbit_commit_seconds_bucket", "le=\"1.6e-05\"", 1},
      {"orbit_commit_seconds_bucket", "le=\"3.2e-05\"", 2},
      {"orbit_commit_seconds_bucket", "le=\"16.777216\"", 2},
      {"orbit_commit_seconds_bucket", "le=\"+Inf\"", 3},
      {"orbit_commit_seconds_count", "", 3},
      {"orbit_answer_seconds_bucket", "le=\"+Inf\"", 0},
      {"orbit_queue_tasks", LABELS_A ",state=\"WAITING\"", 2},
      {"orbit_queue_tasks", LABELS_A ",state=\"CANCELLED\"", 0},
      {"orbit_queue_oldest_waiting_seconds", LABELS_A, 2.5},
      {"orbit_queue_paused", LABELS_A, 1},
      {"orbit_workers", "", 9},
      {"orbit_evidence_total", "", 4},
      {"orbit_commit_bytes_total", "", 5},
      {"orbit_log_file_bytes", "", 6},
      {"orbit_log_used_bytes", "", 7},
      {"orbit_log_reserved_bytes", "", 8},
      {"orbit_crowded_total", "edge=\"http\"", 10},
      {"orbit_crowded_total", "edge=\"worker\"", 11},
      {"process_resident_memory_bytes", "", 4096},
      {"process_open_fds", "", 5},
      {"process_max_fds", "", 1024},
      {"process_cpu_seconds_total", "", 0.25},
  };
  static const struct crowded_numbers crowded = {.requests = 10, .workers = 11};
  struct metrics *metrics = sample_metrics();
  struct buffer out;
  (void)state;
  buffer_init(&out, 1024 * 1024);
  metrics_text_write(&out, metrics, &process, &crowded, 1, "1.2.3");
  buffer_append_char(&out, '\0');
  parse((const char *)out.data);
  check_histogram("orbit_commit_seconds");
  check_histogram("orbit_answer_seconds");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    double value = value_of(cases[i].name, cases[i].labels);
    if (value != cases[i].value) fail_msg("%s{%s} is %.17g", cases[i].name, cases[i].labels, value);
  }
  /* A task that waits for its time is not late. */
  metrics->queues[0].oldest_waiting_at = metrics->now_us + 1;
  buffer_reset(&out);
  metrics_text_write(&out, metrics, &process, &crowded, 1, "1.2.3");
  buffer_append_char(&out, '\0');
  parse((const char *)out.data);
  assert_true(value_of("orbit_queue_oldest_waiting_seconds", LABELS_A) == 0);
  /* While the log is read there is little to tell. */
  buffer_reset(&out);
  metrics_text_write(&out, NULL, &process, &crowded, 0.375, "1.2.3");
  buffer_append_char(&out, '\0');
  parse((const char *)out.data);
  assert_true(value_of("orbit_replay_ratio", "") == 0.375);
  assert_true(value_of("orbit_commits_total", "") == -1);
  buffer_clear(&out);
  free(metrics);
}

/* ---- The route ---- */

static void read_metrics(struct server *server, const char *token) {
  client_get(&server->fixture, token, "/metrics", &reply);
  assert_int_equal(reply.status, 200);
  assert_non_null(strstr(reply_header(&reply, "Content-Type"), "text/plain; version=0.0.4"));
  assert_non_null(reply_header(&reply, "X-Request-Id"));
  parse(reply_body(&reply));
  check_histogram("orbit_commit_seconds");
  check_histogram("orbit_answer_seconds");
}

static void test_counts(void **state) {
  struct server *server = *state;
  char id[id_chars + 1];
  read_metrics(server, TOKEN_ADMIN); /* admin implies metrics:read */
  double commits = value_of("orbit_commits_total", ""), events = value_of("orbit_events_total", "");
  double bytes = value_of("orbit_commit_bytes_total", "");
  assert_true(value_of("orbit_workers", "") == 0 && value_of("orbit_replay_ratio", "") == 1);
  worker_hello(server, "h", "1");
  submit_task(server, "m-1", id);
  struct attempt_ref ref = worker_take(server);
  submit_task(server, "m-2", id);
  client_submit(&server->fixture, TOKEN_PEOPLE, "m-3", SUBMISSION(QUEUE_B, "{}"), &reply);
  client_submit(&server->fixture, TOKEN_PEOPLE, "m-4", SUBMISSION(QUEUE_B, "{}"), &reply);
  assert_int_equal(reply.status, 429);
  worker_start(server, ref);
  read_metrics(server, TOKEN_ADMIN);
  assert_true(value_of("orbit_commands_total", "kind=\"task.submit\",result=\"OK\"") == 3);
  assert_true(value_of("orbit_commands_total", "kind=\"task.submit\",result=\"QUEUE_FULL\"") == 1);
  assert_true(value_of("orbit_commits_total", "") > commits);
  assert_true(value_of("orbit_events_total", "") == events + 5); /* three accepted, one leased, one started */
  assert_true(value_of("orbit_commit_bytes_total", "") > bytes);
  assert_true(value_of("orbit_workers", "") == 1);
  assert_true(value_of("orbit_leases", "state=\"RUNNING\"") == 1);
  assert_true(value_of("orbit_leases", "state=\"LEASED\"") == 0);
  assert_true(value_of("orbit_leases_total", "") == 1);
  assert_true(value_of("orbit_queue_tasks", LABELS_A ",state=\"WAITING\"") == 1);
  assert_true(value_of("orbit_queue_tasks", LABELS_A ",state=\"RUNNING\"") == 1);
  assert_true(value_of("orbit_queue_oldest_waiting_seconds", LABELS_A) > 0);
  assert_true(value_of("orbit_evidence_total", "") == 0);
  assert_true(value_of("orbit_log_file_bytes", "") >= value_of("orbit_log_used_bytes", ""));
  assert_true(value_of("process_resident_memory_bytes", "") > 1e6);
  assert_true(value_of("process_open_fds", "") > 3);
  assert_true(worker_report(server, ref, OUTCOME_UNKNOWN, false).applied);
  assert_true(worker_report(server, ref, OUTCOME_FAILED, false).evidence);
  read_metrics(server, TOKEN_ADMIN);
  assert_true(value_of("orbit_evidence_total", "") == 1);
  assert_true(value_of("orbit_queue_tasks", LABELS_A ",state=\"NEEDS_REVIEW\"") == 1);
}

#define WITHOUT_TOKEN "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n"

/* Queues are those of the namespace that asks. */
static void test_who(void **state) {
  struct server *server = *state;
  client_read(&server->fixture, TOKEN_PEOPLE, "/metrics", &reply);
  expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
  client_exchange(&server->fixture, WITHOUT_TOKEN, &reply);
  reply_check(&reply);
  expect_refusal(&reply, 401, "UNAUTHENTICATED", "Authorization");
  client_read(&server->fixture, TOKEN_ADMIN, "/metrics?x=1", &reply);
  expect_refusal(&reply, 400, "INVALID_ARGUMENT", "x");
  read_metrics(server, TOKEN_ADMIN_OTHER);
  assert_true(value_of("orbit_queue_paused", LABELS_A) == -1);
  /* While the log is read nobody can be known. */
  atomic_store(&server->fixture.edge.phase, EDGE_REPLAYING);
  client_read(&server->fixture, TOKEN_ADMIN, "/metrics", &reply);
  expect_code(&reply, 503, "UNAVAILABLE");
  atomic_store(&server->fixture.edge.phase, EDGE_READY);
}

static int server_open_for_all(void **state) {
  struct server *server = guard_calloc(1, sizeof *server);
  fixture_open(&server->fixture);
  server->fixture.edge.metrics_open = true;
  server_serve(server);
  *state = server;
  return 0;
}

/* Where the operator lets everybody: without a token, all queues; and while the log is read, how far it is. */
static void test_open(void **state) {
  struct server *server = *state;
  struct edge *edge = &server->fixture.edge;
  client_exchange(&server->fixture, WITHOUT_TOKEN, &reply);
  assert_int_equal(reply.status, 200);
  parse(reply_body(&reply));
  assert_true(value_of("orbit_queue_paused", LABELS_A) == 0);
  assert_non_null(strstr(reply_body(&reply), "queue_id=\"" QUEUE_C "\""));
  atomic_store(&edge->replay_permille, 375);
  atomic_store(&edge->phase, EDGE_REPLAYING);
  client_exchange(&server->fixture, WITHOUT_TOKEN, &reply);
  assert_int_equal(reply.status, 200);
  parse(reply_body(&reply));
  assert_true(value_of("orbit_replay_ratio", "") == 0.375);
  assert_true(value_of("orbit_workers", "") == -1);
  atomic_store(&edge->phase, EDGE_READY);
  client_exchange(&server->fixture, WITHOUT_TOKEN, &reply);
  parse(reply_body(&reply));
  assert_true(value_of("orbit_replay_ratio", "") == 1);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),
      cmocka_unit_test_setup_teardown(test_counts, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_who, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_open, server_open_for_all, server_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
