/* Owns the HTTP client of tests: it sends what it is told, lawful or not, and reads what comes back with care. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/server.h"
#include "base/guard.h"

enum { read_bytes = 65536, answer_bytes_max = 64 * 1024 * 1024, texts = 8, text_bytes = 4096 };

void http_reply_init(struct http_reply *reply) {
  *reply = (struct http_reply){.status = 0};
  json_init_answers(&reply->json);
}

void http_reply_clear(struct http_reply *reply) {
  free(reply->head);
  free(reply->body);
  json_clear(&reply->json);
  http_reply_init(reply);
}

int http_connect(const struct api_server *server) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(server->port)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

void http_send(int fd, const void *data, size_t size) {
  const char *at = data;
  while (size > 0) {
    ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return;
    assert_true(sent > 0);
    at += sent;
    size -= (size_t)sent;
  }
}

/* ---- Reading an answer ---- */

/* False at the end of the connection. */
static bool read_more(int fd, struct buffer *text) {
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  if (poll(&polled, 1, api_wait_ms_max) != 1) fail_msg("no answer within %d ms", api_wait_ms_max);
  uint8_t *room = buffer_reserve(text, read_bytes);
  assert_non_null(room);
  ssize_t got = recv(fd, room, read_bytes, 0);
  if (got > 0) buffer_commit(text, (size_t)got);
  return got > 0;
}

static char *copy(const void *data, size_t size) {
  char *text = guard_malloc(size + 1);
  if (size > 0) memcpy(text, data, size);
  text[size] = '\0';
  return text;
}

/* Reads until the head is whole; returns its size, 0 when the connection ends before. */
static size_t read_head(int fd, struct buffer *text) {
  for (;;) {
    const uint8_t *end = text->size >= 4 ? memmem(text->data, text->size, "\r\n\r\n", 4) : NULL;
    if (end != NULL) return (size_t)(end - text->data) + 4;
    if (!read_more(fd, text)) return 0;
  }
}

static const char *find_header(const char *head, const char *name) {
  char pattern[96];
  (void)snprintf(pattern, sizeof pattern, "\r\n%s:", name);
  const char *at = strcasestr(head, pattern);
  if (at == NULL) return NULL;
  at += strlen(pattern);
  return at + strspn(at, " \t");
}

const char *http_header(const struct http_reply *reply, const char *name) {
  static _Thread_local char value[1024];
  const char *at = reply->head != NULL ? find_header(reply->head, name) : NULL;
  if (at == NULL) return NULL;
  (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
  return value;
}

/* Takes the chunks apart; at is where the first one begins. */
static void read_chunks(int fd, struct buffer *text, size_t at, struct buffer *body) {
  for (;;) {
    const uint8_t *line_end;
    while ((line_end = text->size > at ? memmem(text->data + at, text->size - at, "\r\n", 2) : NULL) == NULL)
      if (!read_more(fd, text)) return;
    size_t size = strtoul((const char *)text->data + at, NULL, 16);
    at = (size_t)(line_end - text->data) + 2;
    while (text->size < at + size + 2)
      if (!read_more(fd, text)) return;
    buffer_append(body, text->data + at, size);
    at += size + 2;
    if (size == 0) return;
  }
}

static void read_body(int fd, struct buffer *text, size_t head_size, struct http_reply *reply) {
  const char *length = find_header(reply->head, "Content-Length"), *encoding = find_header(reply->head, "Transfer-Encoding");
  cleanup(buffer_clear) struct buffer chunks;
  buffer_init(&chunks, answer_bytes_max);
  if (encoding != NULL && strncasecmp(encoding, "chunked", 7) == 0) {
    read_chunks(fd, text, head_size, &chunks);
    reply->body = copy(chunks.data, reply->body_size = chunks.size);
    return;
  }
  size_t wanted = length != NULL ? head_size + strtoul(length, NULL, 10) : SIZE_MAX;
  while (text->size < wanted)
    if (!read_more(fd, text)) break;
  reply->ended = text->size < wanted;
  reply->body = copy(text->data + head_size, reply->body_size = text->size - head_size);
}

void http_receive(int fd, struct http_reply *reply) {
  cleanup(buffer_clear) struct buffer text;
  struct fault fault;
  size_t head_size;
  buffer_init(&text, answer_bytes_max);
  http_reply_clear(reply);
  while ((head_size = read_head(fd, &text)) != 0 && strncmp((const char *)text.data, "HTTP/1.1 100", 12) == 0) {
    memmove(text.data, text.data + head_size, text.size - head_size);
    text.size -= head_size;
  }
  reply->ended = head_size == 0;
  if (head_size == 0) return;
  reply->head = copy(text.data, head_size);
  assert_int_equal(strncmp(reply->head, "HTTP/1.1 ", 9), 0);
  reply->status = (int)strtol(reply->head + 9, NULL, 10);
  read_body(fd, &text, head_size, reply);
  reply->is_json = json_parse(&reply->json, bytes_of(reply->body, reply->body_size), &fault) == STATUS_OK;
}

/* ---- Requests ---- */

void http_raw(const struct api_server *server, const char *text, struct http_reply *reply) {
  cleanup(guard_close) int fd = http_connect(server);
  http_send(fd, text, strlen(text));
  http_receive(fd, reply);
}

void http_exchange(const struct api_server *server, int fd, const struct http_request *request, struct http_reply *reply) {
  cleanup(guard_close) int own = fd < 0 ? http_connect(server) : -1;
  cleanup(buffer_clear) struct buffer text;
  size_t body_size = request->body == NULL ? 0 : request->body_size != 0 ? request->body_size : strlen(request->body);
  buffer_init(&text, answer_bytes_max);
  buffer_append_format(&text, "%s %s HTTP/1.1\r\nHost: %s\r\n", request->method, request->target, server->address);
  if (request->token != NULL) buffer_append_format(&text, "Authorization: Bearer %s\r\n", request->token);
  if (request->key != NULL) buffer_append_format(&text, "Idempotency-Key: %s\r\n", request->key);
  if (request->headers != NULL) buffer_append_text(&text, request->headers);
  if (request->body != NULL)
    buffer_append_format(&text, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body_size);
  buffer_append_text(&text, "\r\n");
  if (request->body != NULL) buffer_append(&text, request->body, body_size);
  assert_false(text.failed);
  http_send(fd < 0 ? own : fd, text.data, text.size);
  http_receive(fd < 0 ? own : fd, reply);
}

void http_get(const struct api_server *server, const char *token, const char *target, struct http_reply *reply) {
  const struct http_request request = {.method = "GET", .target = target, .token = token};
  http_exchange(server, -1, &request, reply);
}

void http_post(const struct api_server *server, const char *token, const char *target, const char *key, const char *body,
               struct http_reply *reply) {
  const struct http_request request = {.method = "POST", .target = target, .token = token, .key = key, .body = body};
  http_exchange(server, -1, &request, reply);
}

/* ---- Reading JSON answers ---- */

static uint32_t array_item(const struct json *json, uint32_t array, const char *number) {
  uint32_t wanted = (uint32_t)strtoul(number, NULL, 10), item = array + 1;
  if (wanted >= json->tokens[array].count) return 0;
  for (uint32_t i = 0; i < wanted; i++) item = json->tokens[item].next;
  return item;
}

struct bytes http_value(struct http_reply *reply, const char *path) {
  static const struct bytes absent = {NULL, 0};
  struct json *json = &reply->json;
  uint32_t token = 0;
  if (!reply->is_json) return absent;
  for (const char *at = path; at != NULL && *at != '\0';) {
    char name[96];
    const char *dot = strchrnul(at, '.');
    (void)snprintf(name, sizeof name, "%.*s", (int)(dot - at), at);
    if (json->tokens[token].type == JSON_OBJECT) token = json_member(json, token, name);
    else token = json->tokens[token].type == JSON_ARRAY ? array_item(json, token, name) : 0;
    if (token == 0) return absent;
    at = *dot == '.' ? dot + 1 : NULL;
  }
  return json->tokens[token].type == JSON_STRING ? json_string(json, token) : json_raw(json, token);
}

const char *http_text(struct http_reply *reply, const char *path) {
  static _Thread_local char ring[texts][text_bytes];
  static _Thread_local unsigned next;
  char *text = ring[next++ % texts];
  struct bytes value = http_value(reply, path);
  (void)snprintf(text, text_bytes, "%.*s", (int)value.size, value.data != NULL ? (const char *)value.data : "");
  return text;
}

static void expect_envelope(struct http_reply *reply) {
  assert_true(reply->is_json);
  const char *header = http_header(reply, "X-Request-Id");
  assert_non_null(header);
  assert_string_equal(http_text(reply, "request_id"), header);
  const char *type = http_header(reply, "Content-Type");
  assert_non_null(type);
  assert_string_equal(type, "application/json");
}

void http_expect(struct http_reply *reply, int status, const char *code, const char *field) {
  if (reply->status != status)
    fail_msg("status %d instead of %d: %s", reply->status, status, reply->body != NULL ? reply->body : "(no answer)");
  expect_envelope(reply);
  if (status < 400) {
    assert_non_null(http_value(reply, "data").data);
    return;
  }
  assert_null(http_value(reply, "data").data);
  assert_true(http_text(reply, "error.message")[0] != '\0');
  if (code != NULL) assert_string_equal(http_text(reply, "error.code"), code);
  if (field != NULL) assert_string_equal(http_text(reply, "error.field"), field);
  if (status == 429 || status == 503) assert_non_null(http_header(reply, "Retry-After"));
  if (status == 401) assert_non_null(http_header(reply, "WWW-Authenticate"));
}
