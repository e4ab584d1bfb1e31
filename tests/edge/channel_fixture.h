/* What the tests of the worker channel share: a channel in this process with a real log and engine, and a client that makes its
 * WebSocket frames by hand, so that it can also make wrong ones. */
#ifndef ORBIT_TESTS_EDGE_CHANNEL_FIXTURE_H
#define ORBIT_TESTS_EDGE_CHANNEL_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "codec/wire_http.h"
#include "edge/channel.h"
#include "engine/clock.h"
#include "support/support.h"

#define QUEUE "0000018bcfe568000000000000000a01"
#define TOKEN_WORKER "orbit_worker" /* submit and consume */
#define TOKEN_READER "orbit_reader" /* read only */

enum { client_wait_ms = 20000 };

struct fixture {
  char *directory;
  struct edge edge;
  struct channel *channel;
  uint16_t port;
  pthread_t engine_thread;
  struct outbox producer; /* where the answers to submissions come back */
};

static inline struct id fixture_id(unsigned number) {
  struct id id = {{0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68}};
  id.bytes[14] = (uint8_t)(number >> 8);
  id.bytes[15] = (uint8_t)number;
  return id;
}

/* ---- The log that it starts with ---- */

static inline void fixture_add(struct commit *commit, struct event *event, enum event_type type, unsigned stream) {
  event->type = type;
  event->version = event_type_version(type);
  event->stream = fixture_id(stream);
  event->common.operation_id = fixture_id(1);
  event->common.actor = fixture_id(1);
  event->common.revision = 1;
  assert_int_equal(commit_add(commit, event), STATUS_OK);
}

static inline void fixture_credential(struct commit *commit, unsigned number, const char *token, uint64_t permissions) {
  uint8_t hash[token_hash_bytes];
  token_hash(bytes_text(token), hash);
  struct event event = {.body.credential_created = {.namespace_id = fixture_id(0x100),
                                                    .application_id = fixture_id(0x101),
                                                    .permissions = permissions,
                                                    .token_hash = bytes_of(hash, sizeof hash)}};
  fixture_add(commit, &event, EVENT_credential_created, number);
}

static inline void fixture_genesis(struct journal *journal) {
  const uint64_t read = UINT64_C(1) << PERMISSION_TASKS_READ, submit = UINT64_C(1) << PERMISSION_TASKS_SUBMIT;
  struct fault fault = {.message = ""};
  struct commit commit;
  commit_init(&commit);
  commit_reset(&commit, journal, clock_wall_us());
  struct event tenant = {.body.namespace_created.name = bytes_text("tenant")};
  fixture_add(&commit, &tenant, EVENT_namespace_created, 0x100);
  struct event owner = {.body.application_created = {.namespace_id = fixture_id(0x100), .name = bytes_text("app")}};
  fixture_add(&commit, &owner, EVENT_application_created, 0x101);
  struct event queue = {
      .body.queue_created = {
          .namespace_id = fixture_id(0x100), .name = bytes_text("queue"), .key_concurrency = 1, .lease_ms = lease_ms_default}};
  fixture_add(&commit, &queue, EVENT_queue_created, 0xa01);
  fixture_credential(&commit, 0xc01, TOKEN_WORKER, submit | UINT64_C(1) << PERMISSION_TASKS_CONSUME);
  fixture_credential(&commit, 0xc02, TOKEN_READER, read);
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

static inline void fixture_open(struct fixture *fixture) {
  struct journal_options options = {.map_bytes = UINT64_C(256) << 20, .reserve_bytes = UINT64_C(1) << 20, .create = true};
  struct engine_options engine_options = {.id_seed = 1, .version = "test"};
  struct fault fault = {.message = ""};
  memset(fixture, 0, sizeof *fixture);
  struct edge *edge = &fixture->edge;
  fixture->directory = test_directory_make();
  log_init(&edge->log, "json");
  assert_int_equal(journal_open(fixture->directory, &options, &edge->journal, &fault), STATUS_OK);
  fixture_genesis(edge->journal);
  struct state *state = state_new();
  assert_int_equal(journal_replay(edge->journal, 0, 0, fixture_fold, state, &fault), STATUS_OK);
  edge->engine = engine_new(edge->journal, state, &engine_options);
  assert_int_equal(engine_start(edge->engine, engine_now_us(edge->engine), &fault), STATUS_OK);
  edge->node_id = journal_node_id(edge->journal);
  assert_int_equal(outbox_init(&fixture->producer), STATUS_OK);
  assert_int_equal(pthread_create(&fixture->engine_thread, NULL, fixture_engine, fixture), 0);

  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(listen_fd >= 0);
  assert_int_equal(bind(listen_fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(listen_fd, 128), 0);
  assert_int_equal(getsockname(listen_fd, (struct sockaddr *)&address, &size), 0);
  fixture->port = ntohs(address.sin_port);
  atomic_store(&edge->phase, EDGE_READY);
  assert_int_equal(channel_start(edge, listen_fd, &fixture->channel, &fault), STATUS_OK);
}

/* Stops the channel where the test has not done so. */
static inline void fixture_close(struct fixture *fixture) {
  if (fixture->channel != NULL) channel_stop(fixture->channel);
  engine_stop(fixture->edge.engine);
  assert_int_equal(pthread_join(fixture->engine_thread, NULL), 0);
  engine_free(fixture->edge.engine);
  journal_close(fixture->edge.journal, false);
  outbox_clear(&fixture->producer);
  test_directory_remove(fixture->directory);
}

/* Waits until so many sessions are open. */
static inline void fixture_await_sessions(const struct fixture *fixture, uint64_t count) {
  for (int ms = 0; channel_sessions(fixture->channel) != count; ms++) {
    assert_true(ms < client_wait_ms);
    (void)poll(NULL, 0, 1);
  }
}

/* Submits a task with this payload and waits for the answer. */
static inline struct id fixture_submit(struct fixture *fixture, const char *payload) {
  static unsigned submissions;
  char body[4096];
  (void)snprintf(body, sizeof body,
                 "{\"queue_id\":\"" QUEUE
                 "\",\"handler\":\"text.normalize\",\"handler_version\":\"v1\",\"payload_version\":\"v1\","
                 "\"payload\":%s,\"task_timeout_ms\":600000,\"retry\":{\"max_attempts\":3,\"attempt_timeout_ms\":10000}}",
                 payload);
  struct json json;
  struct buffer texts;
  struct fault fault = {.message = ""};
  struct ticket ticket = {.home = &fixture->producer};
  json_init(&json);
  buffer_init(&texts, 65536);
  assert_int_equal(wire_submit_read(&json, bytes_text(body), &texts, &ticket.command, &fault), STATUS_OK);
  ticket.command.who = (struct principal){.credential_id = fixture_id(0xc01),
                                          .application_id = fixture_id(0x101),
                                          .namespace_id = fixture_id(0x100),
                                          .permissions = UINT64_C(1) << PERMISSION_TASKS_SUBMIT};
  ticket.command.operation.identity = fixture_id(0x8000 + submissions++);
  assert_int_equal(engine_submit(fixture->edge.engine, &ticket, &fault), STATUS_OK);
  struct pollfd wait = {.fd = fixture->producer.event_fd, .events = POLLIN};
  assert_int_equal(poll(&wait, 1, client_wait_ms), 1);
  assert_ptr_equal(outbox_take(&fixture->producer), &ticket.mail);
  assert_int_equal(ticket.answer.status, STATUS_OK);
  buffer_clear(&texts);
  json_clear(&json);
  return ticket.answer.as.task.id;
}

/* ---- The client: bytes ---- */

static inline int socket_connect(const struct fixture *fixture, int receive_bytes) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(fixture->port)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  if (receive_bytes > 0) assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes), 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

static inline void socket_send(int fd, const void *data, size_t size) {
  const char *at = data;
  while (size > 0) {
    ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return; /* what the server said is there to read */
    assert_true(sent > 0);
    at += sent;
    size -= (size_t)sent;
  }
}

/* Reads exactly so many bytes; false when the connection ends before. */
static inline bool socket_read(int fd, void *data, size_t size) {
  char *at = data;
  while (size > 0) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, client_wait_ms), 1);
    ssize_t got = recv(fd, at, size, 0);
    if (got <= 0) return false;
    at += got;
    size -= (size_t)got;
  }
  return true;
}

/* The head of an answer, up to its empty line; false when the connection ends before. */
static inline bool socket_read_head(int fd, char *head, size_t size) {
  size_t used = 0;
  while (used + 1 < size && socket_read(fd, head + used, 1)) {
    head[++used] = '\0';
    if (used >= 4 && strcmp(head + used - 4, "\r\n\r\n") == 0) return true;
  }
  return false;
}

#define HANDSHAKE(token)                                                                                                   \
  "GET /v1/worker HTTP/1.1\r\nHost: orbit\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"   \
  "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: orbit.worker.v1\r\nAuthorization: Bearer " token \
  "\r\n\r\n"

/* ---- The client: frames and messages ---- */

enum { FRAME_CONTINUATION = 0, FRAME_TEXT = 1, FRAME_BINARY = 2, FRAME_CLOSE = 8, FRAME_PING = 9, FRAME_PONG = 10 };

struct client {
  int fd;
  uint8_t *frame; /* payload of the last frame, with a NUL behind it */
  size_t frame_size;
  struct json json;     /* of the last text frame … */
  uint32_t token, left; /* … its next message, and how many are left */
  char message[64 * 1024];
};

static inline void client_open_as(struct client *client, const struct fixture *fixture, int receive_bytes) {
  char head[2048];
  memset(client, 0, sizeof *client);
  client->fd = socket_connect(fixture, receive_bytes);
  json_init(&client->json);
  socket_send(client->fd, HANDSHAKE(TOKEN_WORKER), strlen(HANDSHAKE(TOKEN_WORKER)));
  assert_true(socket_read_head(client->fd, head, sizeof head));
  assert_int_equal(strncmp(head, "HTTP/1.1 101 ", 13), 0);
}

static inline void client_open(struct client *client, const struct fixture *fixture) { client_open_as(client, fixture, 0); }

static inline void client_close(struct client *client) {
  guard_close(&client->fd);
  client->fd = -1;
  free(client->frame);
  client->frame = NULL;
  json_clear(&client->json);
}

/* A frame with this header byte (FIN, opcode), masked as clients must. claimed is the length that it names. */
static inline void client_send_raw(struct client *client, uint8_t first, const void *data, size_t size, uint64_t claimed) {
  static const uint8_t mask[4] = {0x11, 0x22, 0x33, 0x44};
  uint8_t *frame = malloc(size + 14), *at = frame;
  assert_non_null(frame);
  *at++ = first;
  if (claimed < 126) {
    *at++ = (uint8_t)(0x80 | claimed);
  } else {
    unsigned bytes = claimed < 65536 ? 2 : 8;
    *at++ = bytes == 2 ? 0x80 | 126 : 0x80 | 127;
    for (unsigned i = bytes; i > 0; i--) *at++ = (uint8_t)(claimed >> (8 * (i - 1)));
  }
  memcpy(at, mask, 4);
  at += 4;
  for (size_t i = 0; i < size; i++) at[i] = ((const uint8_t *)data)[i] ^ mask[i % 4];
  socket_send(client->fd, frame, (size_t)(at - frame) + size);
  free(frame);
}

static inline void client_send_frame(struct client *client, int opcode, bool final, const void *data, size_t size) {
  client_send_raw(client, (uint8_t)((final ? 0x80 : 0) | opcode), data, size, size);
}

static inline void client_say(struct client *client, const char *text) {
  client_send_frame(client, FRAME_TEXT, true, text, strlen(text));
}

/* The next frame's opcode, its payload in client->frame; -1 when the connection ended without one. The server fragments
 * nothing. */
static inline int client_read_frame(struct client *client) {
  uint8_t head[2], length[8];
  if (!socket_read(client->fd, head, 2)) return -1;
  assert_int_equal(head[0] & 0xF0, 0x80);
  assert_int_equal(head[1] & 0x80, 0);
  uint64_t size = head[1];
  unsigned bytes = size == 126 ? 2 : size == 127 ? 8 : 0;
  if (bytes > 0) {
    assert_true(socket_read(client->fd, length, bytes));
    size = 0;
    for (unsigned i = 0; i < bytes; i++) size = size << 8 | length[i];
  }
  assert_true(size <= worker_frame_bytes_max);
  free(client->frame);
  client->frame = malloc(size + 1);
  assert_non_null(client->frame);
  assert_true(socket_read(client->fd, client->frame, size));
  client->frame[size] = '\0';
  client->frame_size = size;
  return head[0] & 0x0F;
}

/* The next message, whether it came alone or in an array. Pings are answered on the way. Valid until the next call. */
static inline const char *client_hear(struct client *client) {
  while (client->left == 0) {
    int opcode = client_read_frame(client);
    if (opcode == FRAME_PING) {
      client_send_frame(client, FRAME_PONG, true, client->frame, client->frame_size);
      continue;
    }
    if (opcode != FRAME_TEXT) fail_msg("expected a text frame, got opcode %d", opcode);
    struct fault fault = {.message = ""};
    assert_int_equal(json_parse(&client->json, bytes_of(client->frame, client->frame_size), &fault), STATUS_OK);
    bool array = client->json.tokens[0].type == JSON_ARRAY;
    client->left = array ? client->json.tokens[0].count : 1;
    client->token = array ? 1 : 0;
    assert_true(client->left >= 1 && client->left <= worker_frame_messages_max);
  }
  struct bytes raw = json_raw(&client->json, client->token);
  client->token = client->json.tokens[client->token].next;
  client->left--;
  assert_true(raw.size < sizeof client->message);
  memcpy(client->message, raw.data, raw.size);
  client->message[raw.size] = '\0';
  return client->message;
}

static inline void client_expect(struct client *client, const char *part) {
  const char *message = client_hear(client);
  if (strstr(message, part) == NULL) fail_msg("expected %s\n in %s", part, message);
}

/* A string member of the last message, at any depth, as an id's text; valid until the next call. */
static inline const char *client_member(const struct client *client, const char *name) {
  static char value[id_chars + 1];
  char pattern[64];
  (void)snprintf(pattern, sizeof pattern, "\"%s\":\"", name);
  const char *at = strstr(client->message, pattern);
  if (at == NULL) fail_msg("no %s in %s", name, client->message);
  else (void)snprintf(value, sizeof value, "%.*s", id_chars, at + strlen(pattern));
  return value;
}

/* Reads until the close frame and gives its code; 0 when the connection ended without one. */
static inline int client_close_code(struct client *client) {
  int opcode;
  while ((opcode = client_read_frame(client)) != FRAME_CLOSE && opcode >= 0) continue;
  if (opcode < 0) return 0;
  return client->frame_size >= 2 ? client->frame[0] << 8 | client->frame[1] : 1005;
}

#define HELLO_AS(message, instance, capacity)                                                                              \
  "{\"type\":\"worker.hello\",\"message_id\":\"000000000000000000000000000000" message                                     \
  "\",\"instance_id\":\"000000000000000000000000000000" instance "\",\"queue_ids\":[\"" QUEUE "\"],\"capacity\":" capacity \
  ",\"handlers\":[{\"handler\":\"text.normalize\",\"handler_version\":\"v1\"}]}"
#define HELLO HELLO_AS("01", "a1", "4")
#define CAPACITY(message) \
  "{\"type\":\"worker.capacity\",\"message_id\":\"000000000000000000000000000000" message "\",\"capacity\":4}"

/* Opens and says hello. */
static inline void client_greet(struct client *client, const struct fixture *fixture, const char *hello) {
  client_open(client, fixture);
  client_say(client, hello);
  client_expect(client, "\"type\":\"worker.welcome\"");
}

#endif
