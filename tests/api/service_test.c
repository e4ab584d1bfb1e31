/* The server as a service: what it tells systemd, the watchdog that the engine's ticks feed, what it leaves behind when it
 * dies, and how much of it one client may take. */
#include <arpa/inet.h>
#include <errno.h>
#include <lmdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/server.h"
#include "base/guard.h"

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

/* ---- systemd's side of the socket ---- */

enum { watchdog_us = 200000, silence_ms = 1500 };

/* Starts the server with a watchdog of watchdog_us; its words come from the descriptor. */
static int start_watched(void) {
  char variable[200], watchdog[64];
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  (void)snprintf(name.sun_path, sizeof name.sun_path, "%s/notify", server.directory);
  assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
  (void)snprintf(variable, sizeof variable, "NOTIFY_SOCKET=%s", name.sun_path);
  (void)snprintf(watchdog, sizeof watchdog, "WATCHDOG_USEC=%d", watchdog_us);
  const char *const environment[] = {variable, watchdog, NULL};
  const struct api_run_options options = {.environment = environment};
  const char *const arguments[] = {api_program("orbitd"), "--data",      server.data,    "--listen", "127.0.0.1:0",
                                   "--worker-listen",     "127.0.0.1:0", "--log-format", "json",     NULL};
  server.pid = api_spawn(arguments, &options, NULL, server.log);
  return fd;
}

/* The next word within so many milliseconds; false: there was none. */
static bool hear(int fd, int ms, char *out, size_t size) {
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  if (poll(&polled, 1, ms) != 1) return false;
  ssize_t got = recv(fd, out, size - 1, 0);
  assert_true(got > 0);
  out[got] = '\0';
  return true;
}

/* Passes over what the watchdog hears. */
static void expect_word(int fd, const char *word) {
  char got[256];
  do assert_true(hear(fd, api_wait_ms_max, got, sizeof got));
  while (strcmp(got, "WATCHDOG=1") == 0);
  if (strncmp(got, word, strlen(word)) != 0) fail_msg("%s instead of %s", got, word);
}

static void expect_fed(int fd) {
  char got[256];
  assert_true(hear(fd, api_wait_ms_max, got, sizeof got));
  assert_string_equal(got, "WATCHDOG=1");
}

static void find_port(void) {
  assert_true(api_log_value(&server, "ready", "listen", server.address, sizeof server.address));
  server.port = (uint16_t)strtoul(strrchr(server.address, ':') + 1, NULL, 10);
}

/* Holds the log's lock for writers, as no sound program does: the engine's next commit waits for it. */
static MDB_txn *hold_log(MDB_env **ret_env) {
  char path[300];
  MDB_txn *txn = NULL;
  (void)snprintf(path, sizeof path, "%s/log", server.data);
  assert_int_equal(mdb_env_create(ret_env), 0);
  assert_int_equal(mdb_env_open(*ret_env, path, MDB_NOTLS, 0600), 0);
  assert_int_equal(mdb_txn_begin(*ret_env, NULL, 0, &txn), 0);
  return txn;
}

/* While the engine hangs the process lives on, answers what needs no engine, and the watchdog hears nothing; when it goes on,
 * so do the feedings, and the answer that waited comes. */
static void the_watchdog_hears_from_an_engine_that_ticks(void **state) {
  (void)state;
  MDB_env *env = NULL;
  char got[256], body[512];
  cleanup(guard_close) int fd = start_watched();
  expect_word(fd, "READY=1");
  for (int i = 0; i < 5; i++) expect_fed(fd); /* idle as it is */
  find_port();

  MDB_txn *held = hold_log(&env);
  cleanup(guard_close) int waiting = http_connect(&server);
  int size =
      snprintf(body, sizeof body,
               "{\"queue_id\":\"%s\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":1,"
               "\"task_timeout_ms\":60000}",
               server.queue_id);
  char request[1024];
  int whole = snprintf(request, sizeof request,
                       "POST /v1/tasks HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nIdempotency-Key: k\r\n"
                       "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                       server.token, size, body);
  http_send(waiting, request, (size_t)whole);
  while (hear(fd, silence_ms, got, sizeof got)) assert_string_equal(got, "WATCHDOG=1"); /* until it stands still */
  http_get(&server, NULL, "/healthz", &reply);
  http_expect(&reply, 200, NULL, NULL);
  assert_false(hear(fd, silence_ms, got, sizeof got));

  mdb_txn_abort(held);
  mdb_env_close(env);
  for (int i = 0; i < 5; i++) expect_fed(fd);
  http_receive(waiting, &reply);
  http_expect(&reply, 201, NULL, NULL);
  assert_int_equal(kill(server.pid, SIGTERM), 0);
  expect_word(fd, "STOPPING=1");
  assert_int_equal(api_wait_exit(server.pid), 0);
  server.pid = 0;
}

static void a_reload_is_announced(void **state) {
  (void)state;
  cleanup(guard_close) int fd = start_watched();
  expect_word(fd, "READY=1");
  assert_int_equal(kill(server.pid, SIGHUP), 0);
  expect_word(fd, "RELOADING=1\nMONOTONIC_USEC=");
  expect_word(fd, "READY=1");
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* ---- sockets that systemd hands over ---- */

static void sockets_from_systemd_are_judged_too(void **state) {
  (void)state;
  struct sockaddr_in everywhere = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  int fd = socket(AF_INET, SOCK_STREAM, 0); /* outlives exec */
  assert_int_equal(bind(fd, (struct sockaddr *)&everywhere, sizeof everywhere), 0);
  assert_int_equal(listen(fd, 8), 0);
  for (int told = 0; told < 2; told++) {
    char script[512], program[300];
    struct api_run run;
    (void)snprintf(program, sizeof program, "%s", api_program("orbitd"));
    (void)snprintf(script, sizeof script,
                   "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=http exec \"$0\" --data \"$1\" --worker-listen 127.0.0.1:0 "
                   "%s 3<&%d",
                   told != 0 ? "--allow-plain-text --data /no/such/place" : "", fd); /* the data is looked for afterwards */
    const char *const arguments[] = {"/bin/sh", "-c", script, program, server.data, NULL};
    api_run(arguments, NULL, &run);
    assert_int_equal(run.code, 3);
    assert_non_null(strstr(run.err, told == 0 ? "not loopback" : "/no/such/place"));
    api_run_clear(&run);
  }
  guard_close(&fd);
}

/* ---- what is left behind ---- */

static void expect_core_limit(const char *soft) {
  char path[64], line[256], found[64] = "";
  (void)snprintf(path, sizeof path, "/proc/%d/limits", (int)server.pid);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL) (void)sscanf(line, "Max core file size %63s", found);
  (void)fclose(file);
  if (soft != NULL) assert_string_equal(found, soft);
  else assert_string_not_equal(found, "1");
}

/* Memory holds tokens: it is not written to disk, unless somebody wants to look into a crash. */
static void a_crash_leaves_no_memory_behind(void **state) {
  (void)state;
  if (system("test \"$(ulimit -H -c)\" != 0") != 0) skip(); /* nothing can be dumped here anyway */
  api_server_start(&server, NULL);
  expect_core_limit("1");
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  api_server_start(&server, (const char *const[]){"--core-dumps", NULL});
  expect_core_limit(NULL);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* ---- shares ---- */

static int connect_from(const char *address, uint16_t port) {
  struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET, .sin_port = htons(port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
  return fd;
}

/* Whether the connection gets an answer, be it a refusal; false: it was closed instead. */
static bool is_served(int fd) {
  static const char request[] = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  char first[4];
  (void)send(fd, request, sizeof request - 1, MSG_NOSIGNAL);
  assert_int_equal(poll(&polled, 1, api_wait_ms_max), 1);
  return recv(fd, first, sizeof first, 0) > 0;
}

static bool is_served_from(const char *address, uint16_t port) {
  cleanup(guard_close) int fd = connect_from(address, port);
  return is_served(fd);
}

/* One address takes its share of each port and no more; others find room, and so does it when it has let go. */
static void an_address_has_its_share_of_connections(void **state) {
  enum { share = 20 };
  (void)state;
  int fds[share];
  api_server_start(&server, (const char *const[]){"--connections-per-address", "20", "--http-threads", "1", NULL});
  const uint16_t ports[] = {server.port, (uint16_t)strtoul(strrchr(server.worker_url, ':') + 1, NULL, 10)};
  for (unsigned port = 0; port < 2; port++) {
    for (int i = 0; i < share; i++) fds[i] = connect_from("127.0.0.1", ports[port]);
    assert_false(is_served_from("127.0.0.1", ports[port]));
    assert_true(is_served_from("127.0.0.2", ports[port]));
    assert_true(is_served(fds[0])); /* who is in stays in */
    for (int i = 0; i < share; i++) guard_close(&fds[i]);
    api_wait(is_served_from("127.0.0.1", ports[port]));
  }
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

static int upgrade(const char *token) {
  char request[1024];
  struct api_server other = server;
  other.port = (uint16_t)strtoul(strrchr(server.worker_url, ':') + 1, NULL, 10);
  int fd = http_connect(&other);
  int size = snprintf(request, sizeof request,
                      "GET /v1/worker HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nUpgrade: websocket\r\n"
                      "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
                      "Sec-WebSocket-Protocol: orbit.worker.v1\r\n\r\n",
                      token);
  http_send(fd, request, (size_t)size);
  return fd;
}

/* The status line of the answer to an upgrade. */
static int upgrade_status(int fd) {
  char line[16];
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  assert_int_equal(poll(&polled, 1, api_wait_ms_max), 1);
  assert_int_equal(recv(fd, line, 12, MSG_WAITALL), 12);
  line[12] = '\0';
  return (int)strtol(line + 9, NULL, 10);
}

static bool gets_in(void) {
  cleanup(guard_close) int fd = upgrade(server.token);
  return upgrade_status(fd) == 101;
}

static void a_credential_has_its_share_of_workers(void **state) {
  (void)state;
  int fds[2];
  api_server_start(&server, (const char *const[]){"--workers-per-credential", "2", NULL});
  for (int i = 0; i < 2; i++) {
    fds[i] = upgrade(server.token);
    assert_int_equal(upgrade_status(fds[i]), 101);
  }
  int refused = upgrade(server.token);
  http_receive(refused, &reply);
  http_expect(&reply, 429, "RATE_LIMITED", NULL);
  assert_non_null(http_header(&reply, "Retry-After"));
  guard_close(&refused);
  guard_close(&fds[0]);
  api_wait(gets_in());
  guard_close(&fds[1]);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* The number of a sample of the metrics. */
static uint64_t sample(const char *name) {
  http_get(&server, NULL, "/metrics", &reply);
  assert_int_equal(reply.status, 200);
  const char *at = strstr(reply.body, name);
  assert_non_null(at);
  return strtoull(at + strlen(name), NULL, 10);
}

static bool reads(const char *token) {
  http_get(&server, token, "/v1/tasks", &reply);
  return reply.status == 200;
}

/* What is under way counts until its answer is read: here, two bodies that do not come. Who is no credential's is not counted.
 */
static void a_credential_has_its_share_of_requests(void **state) {
  (void)state;
  char head[512];
  int fds[2];
  api_server_start(&server,
                   (const char *const[]){"--requests-per-credential", "2", "--http-threads", "1", "--metrics-open", NULL});
  int size = snprintf(head, sizeof head,
                      "POST /v1/tasks HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nIdempotency-Key: k\r\n"
                      "Content-Type: application/json\r\nContent-Length: 5\r\n\r\n{",
                      server.token);
  fds[0] = http_connect(&server);
  http_send(fds[0], head, (size_t)size);
  assert_true(reads(server.token));
  fds[1] = http_connect(&server);
  http_send(fds[1], head, (size_t)size);
  api_wait(!reads(server.token)); /* both heads have been judged */
  http_expect(&reply, 429, "RATE_LIMITED", NULL);
  assert_string_equal(http_header(&reply, "Retry-After"), "1");
  assert_true(sample("orbit_crowded_total{edge=\"http\"} ") >= 1);
  assert_int_equal(sample("orbit_crowded_total{edge=\"worker\"} "), 0);
  http_get(&server, NULL, "/v1/info", &reply);
  assert_int_equal(reply.status, 200);
  guard_close(&fds[0]);
  api_wait(reads(server.token));
  http_send(fds[1], "\"\":1", 4);
  http_receive(fds[1], &reply);
  assert_int_equal(reply.status, 400);
  guard_close(&fds[1]);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(the_watchdog_hears_from_an_engine_that_ticks), CASE(a_reload_is_announced),
      CASE(sockets_from_systemd_are_judged_too),          CASE(a_crash_leaves_no_memory_behind),
      CASE(an_address_has_its_share_of_connections),      CASE(a_credential_has_its_share_of_workers),
      CASE(a_credential_has_its_share_of_requests),
  };
  (void)signal(SIGPIPE, SIG_IGN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
