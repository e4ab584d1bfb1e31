/* What the tests of the HTTP edge share: a server in this process with a real log and engine, and a client that sends exactly
 * the bytes it is given. */
#ifndef ORBIT_TESTS_EDGE_HTTP_FIXTURE_H
#define ORBIT_TESTS_EDGE_HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "codec/digest.h"
#include "edge/http.h"
#include "edge/http_thread.h"
#include "engine/clock.h"
#include "support/support.h"

#define QUEUE_A "0000018bcfe568000000000000000a01"
#define QUEUE_B "0000018bcfe568000000000000000a02"
#define QUEUE_C "0000018bcfe568000000000000000b01" /* of the other namespace */
#define TOKEN_ALL "orbit_all"                      /* submit and read, every queue */
#define TOKEN_READ "orbit_read"                    /* read only */
#define TOKEN_SCOPED "orbit_b"                     /* submit and read, queue B only */
#define TOKEN_WORK "orbit_work"                    /* consume, every queue */
#define TOKEN_OTHER "orbit_other"                  /* submit and read in another namespace */

#define TOKEN_PEOPLE "orbit_people"             /* all that is about tasks, every queue */
#define TOKEN_PEOPLE_B "orbit_people_b"         /* the same, queue B only */
#define TOKEN_PEOPLE_OTHER "orbit_people_other" /* the same in the other namespace */
#define TOKEN_ADMIN "orbit_admin"
#define TOKEN_ADMIN_OTHER "orbit_admin_other"
#define TOKEN_ROOT "orbit_root"

#ifndef REPLY_BYTES
#define REPLY_BYTES (64 * 1024)
#endif

enum { client_wait_ms = 10000 };

struct fixture {
  char *directory;
  struct edge edge;
  int listen_fd;
  uint16_t port;
  pthread_t engine_thread;
  bool engine_runs;
};

/* ---- The log that the server starts with ---- */

static inline struct id fixture_id(unsigned number) {
  struct id id = {{0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68}};
  id.bytes[14] = (uint8_t)(number >> 8);
  id.bytes[15] = (uint8_t)number;
  return id;
}

static inline void fixture_add(struct commit *commit, struct event *event, enum event_type type, struct id stream) {
  event->type = type;
  event->version = event_type_version(type);
  event->stream = stream;
  event->common.operation_id = fixture_id(1);
  event->common.actor = fixture_id(1);
  event->common.revision = 1;
  assert_int_equal(commit_add(commit, event), STATUS_OK);
}

static inline void fixture_credential(struct commit *commit, unsigned number, unsigned tenant, const char *token,
                                      uint64_t permissions, const struct id *queue) {
  uint8_t hash[token_hash_bytes];
  token_hash(bytes_text(token), hash);
  struct event event = {.body.credential_created = {.permissions = permissions, .token_hash = bytes_of(hash, sizeof hash)}};
  if (tenant != 0) { /* 0: root */
    event.body.credential_created.namespace_id = fixture_id(tenant);
    event.body.credential_created.application_id = fixture_id(tenant + 1);
  }
  if (queue != NULL) event.body.credential_created.queue_ids = bytes_of(queue, sizeof *queue);
  fixture_add(commit, &event, EVENT_credential_created, fixture_id(number));
}

static inline void fixture_tenant(struct commit *commit, unsigned tenant) {
  struct event created = {.body.namespace_created.name = bytes_text("tenant")};
  fixture_add(commit, &created, EVENT_namespace_created, fixture_id(tenant));
  struct event owner = {.body.application_created = {.namespace_id = fixture_id(tenant), .name = bytes_text("app")}};
  fixture_add(commit, &owner, EVENT_application_created, fixture_id(tenant + 1));
}

static inline void fixture_queue(struct commit *commit, unsigned number, unsigned tenant, uint64_t max_unfinished) {
  struct event event = {.body.queue_created = {.namespace_id = fixture_id(tenant),
                                               .name = bytes_text("queue"),
                                               .max_unfinished = max_unfinished,
                                               .key_concurrency = 1,
                                               .lease_ms = lease_ms_default}};
  fixture_add(commit, &event, EVENT_queue_created, fixture_id(number));
}

#define MAY(name) (UINT64_C(1) << PERMISSION_##name)

static inline void fixture_people(struct commit *commit) {
  const uint64_t people = MAY(TASKS_READ) | MAY(TASKS_SUBMIT) | MAY(TASKS_CANCEL) | MAY(TASKS_REVIEW) | MAY(TASKS_RETRY) |
                          MAY(TASKS_AUDIT_READ) | MAY(QUEUES_READ) | MAY(EVENTS_READ);
  struct id queue_b = fixture_id(0xa02);
  fixture_credential(commit, 0xc11, 0x100, TOKEN_PEOPLE, people, NULL);
  fixture_credential(commit, 0xc12, 0x100, TOKEN_PEOPLE_B, people, &queue_b);
  fixture_credential(commit, 0xc13, 0x200, TOKEN_PEOPLE_OTHER, people, NULL);
  fixture_credential(commit, 0xc14, 0x100, TOKEN_ADMIN, MAY(ADMIN), NULL);
  fixture_credential(commit, 0xc15, 0x200, TOKEN_ADMIN_OTHER, MAY(ADMIN), NULL);
  fixture_credential(commit, 0xc16, 0, TOKEN_ROOT, MAY(ROOT), NULL);
}

static inline void fixture_genesis(struct journal *journal) {
  const uint64_t read = UINT64_C(1) << PERMISSION_TASKS_READ, submit = UINT64_C(1) << PERMISSION_TASKS_SUBMIT;
  struct id queue_b = fixture_id(0xa02);
  struct fault fault = {.message = ""};
  struct commit commit;
  commit_init(&commit);
  commit_reset(&commit, journal, clock_wall_us());
  fixture_tenant(&commit, 0x100);
  fixture_tenant(&commit, 0x200);
  fixture_queue(&commit, 0xa01, 0x100, 0);
  fixture_queue(&commit, 0xa02, 0x100, 1);
  fixture_queue(&commit, 0xb01, 0x200, 0);
  fixture_credential(&commit, 0xc01, 0x100, TOKEN_ALL, read | submit, NULL);
  fixture_credential(&commit, 0xc02, 0x100, TOKEN_READ, read, NULL);
  fixture_credential(&commit, 0xc03, 0x100, TOKEN_SCOPED, read | submit, &queue_b);
  fixture_credential(&commit, 0xc05, 0x100, TOKEN_WORK, UINT64_C(1) << PERMISSION_TASKS_CONSUME, NULL);
  fixture_credential(&commit, 0xc04, 0x200, TOKEN_OTHER, read | submit, NULL);
  fixture_people(&commit);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_OK);
  commit_clear(&commit);
}

static inline enum status fixture_fold(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  const char *reason = "";
  (void)record, (void)fault;
  if (!state_can_apply(context, event, &reason)) fail_msg("%s: %s", event_type_text(event->type), reason);
  state_apply(context, event);
  return STATUS_OK;
}

/* ---- The server ---- */

static inline void *fixture_engine(void *context) {
  struct fixture *fixture = context;
  struct fault fault = {.message = ""};
  must(engine_run(fixture->edge.engine, &fault) == STATUS_OK);
  return NULL;
}

/* The engine ticks from here on; before, tickets wait in its mailbox. */
static inline void fixture_run_engine(struct fixture *fixture) {
  assert_int_equal(pthread_create(&fixture->engine_thread, NULL, fixture_engine, fixture), 0);
  fixture->engine_runs = true;
}

/* Reads the log of the directory and readies the engine. */
static inline void fixture_boot(struct fixture *fixture, bool create) {
  struct journal_options options = {.map_bytes = UINT64_C(256) << 20, .reserve_bytes = UINT64_C(1) << 20, .create = create};
  struct engine_options engine_options = {.id_seed = 1, .version = "test"};
  struct fault fault = {.message = ""};
  assert_int_equal(journal_open(fixture->directory, &options, &fixture->edge.journal, &fault), STATUS_OK);
  if (create) fixture_genesis(fixture->edge.journal);
  struct state *state = state_new();
  assert_int_equal(journal_replay(fixture->edge.journal, 0, 0, fixture_fold, state, &fault), STATUS_OK);
  fixture->edge.engine = engine_new(fixture->edge.journal, state, &engine_options);
  assert_int_equal(engine_start(fixture->edge.engine, engine_now_us(fixture->edge.engine), &fault), STATUS_OK);
  fixture->edge.node_id = journal_node_id(fixture->edge.journal);
}

static inline void fixture_open(struct fixture *fixture) {
  memset(fixture, 0, sizeof *fixture);
  fixture->directory = test_directory_make();
  log_init(&fixture->edge.log, "json");
  fixture_boot(fixture, true);
  (void)snprintf(fixture->edge.version, sizeof fixture->edge.version, "1.2.3");
  (void)snprintf(fixture->edge.worker_url, sizeof fixture->edge.worker_url, "ws://127.0.0.1:9/v1/worker");
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  fixture->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  assert_true(fixture->listen_fd >= 0);
  assert_int_equal(bind(fixture->listen_fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(fixture->listen_fd, 128), 0);
  assert_int_equal(getsockname(fixture->listen_fd, (struct sockaddr *)&address, &size), 0);
  fixture->port = ntohs(address.sin_port);
}

/* The engine ends without a last word, as in a crash. */
static inline void fixture_halt(struct fixture *fixture) {
  engine_stop(fixture->edge.engine);
  if (fixture->engine_runs) assert_int_equal(pthread_join(fixture->engine_thread, NULL), 0);
  fixture->engine_runs = false;
  engine_free(fixture->edge.engine);
  journal_close(fixture->edge.journal, false);
}

/* After http_stop. */
static inline void fixture_close(struct fixture *fixture) {
  fixture_halt(fixture);
  guard_close(&fixture->listen_fd);
  test_directory_remove(fixture->directory);
}

/* ---- The client ---- */

/* Keeps a text that the next call would overwrite; it must fit. */
static inline void text_keep(char *out, size_t size, const char *text) {
  assert_non_null(text);
  assert_true(strlen(text) < size);
  memcpy(out, text, strlen(text) + 1);
}

struct reply {
  int status; /* 0: the connection ended without one */
  size_t head_size, size;
  char text[REPLY_BYTES]; /* head, then body; NUL-terminated */
};

static inline const char *reply_body(const struct reply *reply) { return reply->text + reply->head_size; }

static inline int client_connect(const struct fixture *fixture) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(fixture->port)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

static inline void client_send(int fd, const void *data, size_t size) {
  const char *at = data;
  while (size > 0) {
    ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return; /* the answer is there to read */
    assert_true(sent > 0);
    at += sent;
    size -= (size_t)sent;
  }
}

static inline void client_send_text(int fd, const char *text) { client_send(fd, text, strlen(text)); }

/* Reads one byte; false at the end of the connection. */
static inline bool client_read_byte(int fd, char *ret_byte) {
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
  assert_int_equal(poll(&poll_fd, 1, client_wait_ms), 1);
  return recv(fd, ret_byte, 1, 0) == 1;
}

/* True when the server has ended the connection (nothing more comes). */
static inline bool client_is_closed(int fd) {
  char byte;
  return !client_read_byte(fd, &byte);
}

/* Reads the head, so far and no further. False: the connection ended. */
static inline bool client_receive_head(int fd, struct reply *reply) {
  while (reply->head_size == 0) {
    if (reply->size == sizeof reply->text - 1 || !client_read_byte(fd, &reply->text[reply->size])) return false;
    reply->text[++reply->size] = '\0';
    if (reply->size >= 4 && strcmp(reply->text + reply->size - 4, "\r\n\r\n") == 0) reply->head_size = reply->size;
  }
  return true;
}

/* Reads one answer, by its Content-Length. */
static inline void client_receive(int fd, struct reply *reply) {
  memset(reply, 0, offsetof(struct reply, text));
  bool whole = client_receive_head(fd, reply);
  const char *length = whole ? strcasestr(reply->text, "\r\nContent-Length: ") : NULL;
  assert_true(!whole || length != NULL || strncmp(reply->text, "HTTP/1.1 100", 12) == 0);
  size_t wanted = length != NULL ? reply->head_size + strtoul(length + 18, NULL, 10) : reply->size;
  assert_true(wanted < sizeof reply->text);
  while (reply->size < wanted) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, client_wait_ms), 1);
    ssize_t count = recv(fd, reply->text + reply->size, wanted - reply->size, 0);
    if (count <= 0) break;
    reply->size += (size_t)count;
    reply->text[reply->size] = '\0';
  }
  if (reply->size >= 12) reply->status = (int)strtol(reply->text + 9, NULL, 10);
}

/* The value of a header, or NULL; valid until the next call. */
static inline const char *reply_header(const struct reply *reply, const char *name) {
  static char value[256];
  char pattern[64];
  (void)snprintf(pattern, sizeof pattern, "\r\n%s: ", name);
  const char *at = strcasestr(reply->text, pattern);
  if (at == NULL || at >= reply->text + reply->head_size) return NULL;
  at += strlen(pattern);
  (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
  return value;
}

/* The text of a string member, at any depth, or NULL; valid until the next call. */
static inline const char *reply_text(const struct reply *reply, const char *name) {
  static char value[512];
  char pattern[64];
  (void)snprintf(pattern, sizeof pattern, "\"%s\":\"", name);
  const char *at = strstr(reply_body(reply), pattern);
  if (at == NULL) return NULL;
  at += strlen(pattern);
  (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\""), at);
  return value;
}

/* Every answer has the envelope, its type and its request id twice, whatever else is in it. */
static inline void reply_check(const struct reply *reply) {
  char id[request_id_chars + 1];
  assert_non_null(reply_header(reply, "X-Request-Id"));
  text_keep(id, sizeof id, reply_header(reply, "X-Request-Id"));
  assert_string_equal(reply_header(reply, "Content-Type"), "application/json");
  assert_non_null(reply_text(reply, "request_id"));
  assert_string_equal(reply_text(reply, "request_id"), id);
  assert_int_equal(strncmp(reply_body(reply), "{\"request_id\":\"", 15), 0);
  if (reply->status == 429 || reply->status == 503) assert_non_null(reply_header(reply, "Retry-After"));
  if (reply->status == 401) assert_string_equal(reply_header(reply, "WWW-Authenticate"), "Bearer");
}

/* One request on a connection of its own. */
static inline void client_exchange(const struct fixture *fixture, const char *text, struct reply *reply) {
  int fd = client_connect(fixture);
  client_send_text(fd, text);
  client_receive(fd, reply);
  guard_close(&fd);
}

static inline void client_get(const struct fixture *fixture, const char *token, const char *target, struct reply *reply) {
  char text[4096];
  (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", target, token);
  client_exchange(fixture, text, reply);
}

#define SUBMISSION(queue, payload)                                                                                         \
  "{\"queue_id\":\"" queue "\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":" payload \
  ",\"task_timeout_ms\":60000}"

/* Head of a POST /v1/tasks up to the end of its lines; the caller appends Content-Length or another framing and an empty line.
 */
#define POST_HEAD(token, key)                                          \
  "POST /v1/tasks HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " token \
  "\r\n"                                                               \
  "Content-Type: application/json\r\nIdempotency-Key: " key "\r\n"

static inline void client_submit(const struct fixture *fixture, const char *token, const char *key, const char *body,
                                 struct reply *reply) {
  char text[4096];
  (void)snprintf(text, sizeof text,
                 "POST /v1/tasks HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                 "Idempotency-Key: %s\r\nContent-Length: %zu\r\n\r\n%s",
                 token, key, strlen(body), body);
  client_exchange(fixture, text, reply);
}

#endif
