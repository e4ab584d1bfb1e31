/* orbitd as its operator sees it: what it refuses to start on, how it ends, and what is there afterwards. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/server.h"
#include "base/guard.h"
#include "base/time_text.h"
#include "engine/clock.h"
#include "journal/journal.h"

enum { nobody = 65534, second_us = 1000000 };

static struct api_server server;
static struct http_reply reply;

static int setup(void **state) {
  (void)state;
  http_reply_init(&reply);
  api_server_make(&server);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  http_reply_clear(&reply);
  api_server_remove(&server);
  return 0;
}

/* A refused start: its exit code, what it says, and that it is one line of JSON. */
static void expect_refusal(const char *const *more, int code, const char *said) {
  struct api_run run;
  api_server_refused(&server, more, &run);
  if (run.code != code) fail_msg("exit code %d instead of %d: %s", run.code, code, run.err);
  if (strstr(run.err, said) == NULL) fail_msg("\"%s\" is not in: %s", said, run.err);
  assert_string_equal(run.out, "");
  api_run_clear(&run);
}

/* ---- The log, read when nobody runs ---- */

struct counts {
  unsigned started, stopped;
  bool last_start_was_clean;
};

static enum status count_event(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct counts *counts = context;
  (void)record, (void)fault;
  if (event->type == EVENT_node_started) {
    counts->started++;
    counts->last_start_was_clean = event->body.node_started.clean;
  }
  if (event->type == EVENT_node_stopped) counts->stopped++;
  return STATUS_OK;
}

static struct counts read_counts(void) {
  struct counts counts = {.started = 0};
  const struct journal_options options = {.read_only = true};
  struct journal *journal;
  struct fault fault = {.message = ""};
  assert_int_equal(journal_open(server.data, &options, &journal, &fault), STATUS_OK);
  assert_int_equal(journal_replay(journal, 0, 0, count_event, &counts, &fault), STATUS_OK);
  journal_close(journal, false);
  return counts;
}

/* ---- A start that is told to stop ---- */

/* More events than a start reads between two looks at the signals. */
static void submit_many(void) {
  enum { tasks = 600 };
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_batch_body_bytes_max);
  buffer_append_text(&body, "{\"items\":[");
  for (unsigned i = 0; i < tasks; i++)
    buffer_append_format(&body,
                         "%s{\"idempotency_key\":\"many-%u\",\"queue_id\":\"%s\",\"handler\":\"h\",\"handler_version\":\"v1\","
                         "\"payload_version\":\"v1\",\"payload\":{},\"task_timeout_ms\":600000}",
                         i == 0 ? "" : ",", i, server.queue_id);
  buffer_append_text(&body, "]}");
  buffer_append_char(&body, '\0');
  assert_false(body.failed);
  http_post(&server, server.token, "/v1/tasks:batch", NULL, (const char *)body.data, &reply);
  http_expect(&reply, 200, NULL, NULL);
}

/* The signal waits already when the server begins, as it does when it comes in the middle of a long replay. */
static void a_signal_ends_a_long_start(void **state) {
  (void)state;
  api_server_start(&server, NULL);
  submit_many();
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  struct counts before = read_counts();
  static const char *const checkpoints[] = {"true", "false"};
  for (unsigned i = 0; i < 2; i++) {
    const char *const arguments[] = {"/usr/bin/env",
                                     "--block-signal=TERM",
                                     "/bin/sh",
                                     "-c",
                                     "kill -TERM $$; exec \"$0\" \"$@\"",
                                     api_program("orbitd"),
                                     "--data",
                                     server.data,
                                     "--listen",
                                     "127.0.0.1:0",
                                     "--worker-listen",
                                     "127.0.0.1:0",
                                     "--log-format",
                                     "json",
                                     "--checkpoint",
                                     checkpoints[i],
                                     NULL};
    struct api_run run;
    api_run(arguments, NULL, &run);
    if (run.code != 0) fail_msg("exit code %d: %s", run.code, run.err);
    bool read_all =
        strcmp(checkpoints[i], "true") == 0; /* from the checkpoint there was nothing to read: it stops after the start */
    assert_int_equal(strstr(run.err, "stopped before it was ready") != NULL, !read_all);
    assert_int_equal(strstr(run.err, "\"message\":\"ready\"") != NULL, read_all);
    api_run_clear(&run);
  }
  struct counts after = read_counts();
  assert_int_equal(after.started, before.started + 1);
  assert_int_equal(after.stopped, before.stopped + 1);
}

/* ---- What it refuses to start on ---- */

/* A socket of ours that listens on some port of the loopback. */
static int take_port(char *address, size_t size) {
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof name;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&name, length), 0);
  assert_int_equal(listen(fd, 1), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
  (void)snprintf(address, size, "127.0.0.1:%u", ntohs(name.sin_port));
  return fd;
}

static void refuses_a_port_in_use(void **state) {
  (void)state;
  static const char *const options[] = {"--listen", "--worker-listen"};
  char address[64];
  int fd = take_port(address, sizeof address);
  for (unsigned i = 0; i < 2; i++) {
    expect_refusal((const char *const[]){options[i], address, NULL}, 3, options[i]);
    expect_refusal((const char *const[]){options[i], address, NULL}, 3, address);
  }
  guard_close(&fd);
  assert_int_equal(read_counts().started, 0);
}

static void refuses_one_port_for_both(void **state) {
  (void)state;
  char address[64];
  int fd = take_port(address, sizeof address);
  guard_close(&fd);
  expect_refusal((const char *const[]){"--listen", address, "--worker-listen", address, NULL}, 3, "--worker-listen");
}

static void refuses_addresses_that_are_none(void **state) {
  (void)state;
  static const char *const addresses[] = {"8080",           "127.0.0.1",       "127.0.0.1:", ":8080", "orbit.example:8080",
                                          "127.0.0.1:http", "127.0.0.1:65536", "[::1:8080"};
  for (unsigned i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
    expect_refusal((const char *const[]){"--listen", addresses[i], NULL}, 3, "--listen");
    expect_refusal((const char *const[]){"--worker-listen", addresses[i], "--check", NULL}, 3, addresses[i]);
  }
}

static void leaves_the_loopback_only_when_told(void **state) {
  (void)state;
  expect_refusal((const char *const[]){"--listen", "0.0.0.0:0", NULL}, 3, "--allow-plain-text");
  expect_refusal((const char *const[]){"--worker-listen", "[::]:0", NULL}, 3, "--allow-plain-text");
  api_server_start(&server, (const char *const[]){"--listen", "0.0.0.0:0", "--allow-plain-text", NULL});
  http_get(&server, NULL, "/healthz", &reply);
  http_expect(&reply, 200, NULL, NULL);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

static void refuses_a_directory_that_is_not_there(void **state) {
  (void)state;
  (void)snprintf(server.data, sizeof server.data, "%s/elsewhere", server.directory);
  expect_refusal(NULL, 3, "no such directory");
  expect_refusal(NULL, 3, server.data);
  assert_int_not_equal(access(server.data, F_OK), 0);
  assert_int_equal(mkdir(server.data, 0700), 0);
  expect_refusal(NULL, 3, "holds no log");
  expect_refusal(NULL, 3, "orbitctl init");
}

static void refuses_a_directory_of_another_owner(void **state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("skipped: needs root\n");
    skip();
  }
  assert_int_equal(chown(server.data, nobody, nobody), 0);
  expect_refusal(NULL, 3, "belongs to user 65534");
  assert_int_equal(chown(server.data, 0, 0), 0);
  api_server_start(&server, NULL);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

static void refuses_a_directory_in_use(void **state) {
  (void)state;
  char pid[32];
  api_server_start(&server, NULL);
  (void)snprintf(pid, sizeof pid, "pid %d", (int)server.pid);
  expect_refusal(NULL, 3, pid);
  http_get(&server, server.token, "/v1/tasks/0000018bcfe568000000000000000a01", &reply);
  http_expect(&reply, 404, "NOT_FOUND", NULL);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  assert_int_equal(read_counts().started, 1);
}

/* ---- A clock that was set back ---- */

/* Appends an event as a server with another clock would have. */
static void append_event_at(int64_t time_us) {
  const struct journal_options options = {.create = false};
  struct journal *journal;
  struct commit commit;
  struct fault fault = {.message = ""};
  struct event event = {.type = EVENT_namespace_created, .version = event_type_version(EVENT_namespace_created)};
  assert_int_equal(journal_open(server.data, &options, &journal, &fault), STATUS_OK);
  struct id_source ids;
  id_source_init(&ids, 7);
  event.stream = id_source_next(&ids, time_us);
  event.common.operation_id = id_source_next(&ids, time_us);
  event.common.actor = journal_node_id(journal);
  event.common.revision = 1;
  event.body.namespace_created.name = bytes_text("later");
  commit_init(&commit);
  commit_reset(&commit, journal, time_us);
  assert_int_equal(commit_add(&commit, &event), STATUS_OK);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_OK);
  commit_clear(&commit);
  journal_close(journal, false);
}

static void refuses_a_log_from_the_future(void **state) {
  (void)state;
  append_event_at(clock_wall_us() + INT64_C(120) * second_us);
  expect_refusal(NULL, 3, "ahead of the clock");
  expect_refusal(NULL, 3, "--accept-future-log");
  assert_int_equal(read_counts().started, 0);
}

static const char submission[] =
    "{\"queue_id\":\"%s\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":1,\"task_timeout_"
    "ms\":60000}";

static void submit(const char *key) {
  char body[512];
  (void)snprintf(body, sizeof body, submission, server.queue_id);
  http_post(&server, server.token, "/v1/tasks", key, body, &reply);
}

/* Time goes on from the log's last event: it neither stands still nor goes back. */
static void goes_on_from_a_log_from_the_future_when_told(void **state) {
  (void)state;
  int64_t future_us = clock_wall_us() + INT64_C(120) * second_us;
  append_event_at(future_us);
  api_server_start(&server, (const char *const[]){"--accept-future-log", NULL});
  int64_t first_us, second_time_us;
  submit("a");
  http_expect(&reply, 201, NULL, NULL);
  assert_true(time_parse(http_value(&reply, "data.task.created_at"), &first_us));
  submit("b");
  http_expect(&reply, 201, NULL, NULL);
  assert_true(time_parse(http_value(&reply, "data.task.created_at"), &second_time_us));
  assert_true(first_us >= future_us);
  assert_true(second_time_us > first_us);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

static void starts_on_a_log_that_is_a_little_ahead(void **state) {
  (void)state;
  append_event_at(clock_wall_us() + INT64_C(50) * second_us);
  api_server_start(&server, NULL);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* ---- How it ends ---- */

static void marks_a_clean_stop(void **state) {
  (void)state;
  static const struct {
    int signal_number, code;
    bool clean; /* what the next start says about this stop */
  } rows[] = {{SIGTERM, 0, true}, {SIGINT, 0, true}, {SIGKILL, 128 + SIGKILL, false}, {SIGTERM, 0, true}};
  unsigned stops = 0;
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    api_server_start(&server, NULL);
    submit("same key");
    http_expect(&reply, 400, "INVALID_ARGUMENT", NULL);
    submit("same-key");
    http_expect(&reply, i == 0 ? 201 : 200, NULL, NULL);
    assert_int_equal(api_server_stop(&server, rows[i].signal_number), rows[i].code);
    stops += rows[i].code == 0;
    struct counts counts = read_counts();
    assert_int_equal(counts.started, i + 1);
    assert_int_equal(counts.stopped, stops);
    if (i > 0) assert_int_equal(counts.last_start_was_clean, rows[i - 1].clean);
  }
}

/* Every line on stderr is a JSON object with time, level and message, from the first to the last. */
static void logs_json_lines(void **state) {
  (void)state;
  char reason[32];
  api_server_start(&server, NULL);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  assert_true(api_log_value(&server, "stopping", "reason", reason, sizeof reason));
  assert_string_equal(reason, "SIGTERM");
  assert_true(api_log_value(&server, "stopped", "time", reason, sizeof reason));
  struct bytes text = test_file_read(server.log);
  cleanup(json_clear) struct json json;
  unsigned lines = 0;
  json_init(&json);
  for (const uint8_t *at = text.data, *end = at + text.size, *line_end; at < end; at = line_end + 1, lines++) {
    struct fault fault;
    int64_t time_us;
    line_end = memchr(at, '\n', (size_t)(end - at));
    assert_non_null(line_end);
    assert_int_equal(json_parse(&json, bytes_of(at, (size_t)(line_end - at)), &fault), STATUS_OK);
    assert_true(time_parse(json_string(&json, json_member(&json, 0, "time")), &time_us));
    assert_true(bytes_equal_text(json_string(&json, json_member(&json, 0, "level")), "info"));
    assert_int_not_equal(json_member(&json, 0, "message"), 0);
  }
  assert_true(lines >= 4);
  free((void *)(uintptr_t)text.data);
}

static void logs_text_when_asked(void **state) {
  (void)state;
  struct api_run run;
  char address[64];
  int fd = take_port(address, sizeof address);
  api_server_refused(&server, (const char *const[]){"--listen", address, "--log-format", "text", NULL}, &run);
  assert_int_equal(run.code, 3);
  assert_int_equal(strncmp(run.err, "orbitd: ", 8), 0);
  assert_null(strchr(run.err, '\033')); /* no colours where there is no terminal */
  guard_close(&fd);
  api_run_clear(&run);
}

/* ---- Under load ---- */

enum { producers = 4, keys_max = 100000 };

struct producer {
  pthread_t thread;
  unsigned number;
  int fd;
  unsigned acknowledged; /* keys 0 … acknowledged-1 were answered with 201 */
};

static atomic_uint all_acknowledged;

static void producer_key(const struct producer *producer, unsigned n, char *out, size_t size) {
  (void)snprintf(out, size, "p%u-%u", producer->number, n);
}

/* Submits on one connection until the server does not take any more. */
static void *produce(void *context) {
  struct producer *producer = context;
  struct http_reply answer;
  char key[32], body[512];
  (void)snprintf(body, sizeof body, submission, server.queue_id);
  http_reply_init(&answer);
  for (; producer->acknowledged < keys_max; producer->acknowledged++) {
    producer_key(producer, producer->acknowledged, key, sizeof key);
    const struct http_request request = {
        .method = "POST", .target = "/v1/tasks", .token = server.token, .key = key, .body = body};
    http_exchange(&server, producer->fd, &request, &answer);
    if (answer.status != 201) break;
    atomic_fetch_add(&all_acknowledged, 1);
  }
  http_reply_clear(&answer);
  return NULL;
}

/* Whatever was answered with 201 before the end is there afterwards, whether the server was asked to end or was killed. */
static void keeps_what_it_acknowledged(int signal_number) {
  struct producer all[producers] = {{.number = 0}};
  api_server_start(&server, NULL);
  atomic_store(&all_acknowledged, 0);
  for (unsigned i = 0; i < producers; i++) {
    all[i] = (struct producer){.number = i, .fd = http_connect(&server)};
    assert_int_equal(pthread_create(&all[i].thread, NULL, produce, &all[i]), 0);
  }
  api_wait(atomic_load(&all_acknowledged) >= 200);
  assert_int_equal(api_server_stop(&server, signal_number), signal_number == SIGTERM ? 0 : 128 + SIGKILL);
  for (unsigned i = 0; i < producers; i++) {
    assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    guard_close(&all[i].fd);
  }
  api_server_start(&server, NULL);
  char key[32], body[512];
  (void)snprintf(body, sizeof body, submission, server.queue_id);
  cleanup(guard_close) int fd = http_connect(&server);
  for (unsigned i = 0; i < producers; i++) {
    for (unsigned n = 0; n < all[i].acknowledged; n++) {
      producer_key(&all[i], n, key, sizeof key);
      const struct http_request request = {
          .method = "POST", .target = "/v1/tasks", .token = server.token, .key = key, .body = body};
      http_exchange(&server, fd, &request, &reply);
      http_expect(&reply, 200, NULL, NULL);
      assert_string_equal(http_text(&reply, "data.deduplicated"), "true");
    }
  }
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

static void keeps_what_it_acknowledged_before_a_stop(void **state) {
  (void)state;
  keeps_what_it_acknowledged(SIGTERM);
  assert_true(read_counts().last_start_was_clean);
}

static void keeps_what_it_acknowledged_before_a_kill(void **state) {
  (void)state;
  keeps_what_it_acknowledged(SIGKILL);
  assert_false(read_counts().last_start_was_clean);
}

/* ---- systemd ---- */

static void expect_notice(int fd, const char *text) {
  char got[256] = "";
  assert_true(recv(fd, got, sizeof got - 1, 0) > 0);
  assert_string_equal(got, text);
}

static void tells_systemd(void **state) {
  (void)state;
  char variable[200];
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  const struct timeval patience = {.tv_sec = 30};
  cleanup(guard_close) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  (void)snprintf(name.sun_path, sizeof name.sun_path, "%s/notify", server.directory);
  assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  (void)snprintf(variable, sizeof variable, "NOTIFY_SOCKET=%s", name.sun_path);
  const char *const environment[] = {variable, NULL};
  const struct api_run_options options = {.environment = environment};
  const char *const arguments[] = {api_program("orbitd"), "--data",          server.data,   "--listen",
                                   "127.0.0.1:0",         "--worker-listen", "127.0.0.1:0", NULL};
  server.pid = api_spawn(arguments, &options, NULL, server.log);
  expect_notice(fd, "READY=1");
  assert_int_equal(kill(server.pid, SIGTERM), 0);
  expect_notice(fd, "STOPPING=1");
  assert_int_equal(api_wait_exit(server.pid), 0);
  server.pid = 0;
}

/* Sockets that come as descriptors 3 and 4 are used instead of --listen and --worker-listen. */
static void takes_sockets_from_systemd(void **state) {
  (void)state;
  char http_address[64], worker_address[64], script[512], program[300];
  int http_fd = take_port(http_address, sizeof http_address), worker_fd = take_port(worker_address, sizeof worker_address);
  int http_shared = dup(http_fd), worker_shared = dup(worker_fd); /* these outlive exec */
  (void)snprintf(program, sizeof program, "%s", api_program("orbitd"));
  (void)snprintf(
      script, sizeof script,
      "LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=worker:http exec \"$0\" --data \"$1\" --log-format json 3<&%d 4<&%d",
      worker_shared, http_shared);
  const char *const arguments[] = {"/bin/sh", "-c", script, program, server.data, NULL};
  server.pid = api_spawn(arguments, NULL, NULL, server.log);
  guard_close(&http_fd), guard_close(&worker_fd), guard_close(&http_shared), guard_close(&worker_shared);
  char listen_address[64], url[160];
  api_wait(api_log_value(&server, "ready", "listen", listen_address, sizeof listen_address));
  assert_string_equal(listen_address, http_address);
  assert_true(api_log_value(&server, "ready", "worker_url", url, sizeof url));
  assert_non_null(strstr(url, worker_address));
  server.port = (uint16_t)strtoul(strrchr(http_address, ':') + 1, NULL, 10);
  http_get(&server, NULL, "/readyz", &reply);
  http_expect(&reply, 200, NULL, NULL);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(refuses_a_port_in_use),
      CASE(refuses_one_port_for_both),
      CASE(refuses_addresses_that_are_none),
      CASE(leaves_the_loopback_only_when_told),
      CASE(refuses_a_directory_that_is_not_there),
      CASE(refuses_a_directory_of_another_owner),
      CASE(refuses_a_directory_in_use),
      CASE(refuses_a_log_from_the_future),
      CASE(goes_on_from_a_log_from_the_future_when_told),
      CASE(starts_on_a_log_that_is_a_little_ahead),
      CASE(a_signal_ends_a_long_start),
      CASE(marks_a_clean_stop),
      CASE(logs_json_lines),
      CASE(logs_text_when_asked),
      CASE(keeps_what_it_acknowledged_before_a_stop),
      CASE(keeps_what_it_acknowledged_before_a_kill),
      CASE(tells_systemd),
      CASE(takes_sockets_from_systemd),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
