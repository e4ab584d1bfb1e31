/* Bad requests by the thousand at a running server, beside good ones. Each shape is answered as the table says, every time; no
 * good answer is lost or wrong; and afterwards the server holds no more memory or descriptors than before. FLOOD_REQUESTS says
 * how many of each shape (tools/check: 24; the target `flood`: 10,000), FLOOD_PER_S how fast, and FLOOD_STRICT=1 also holds the
 * good requests to less than twice the time that they take alone, which only a machine without other work can promise. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/server.h"
#include "base/guard.h"
#include "orbit.h"

enum { at_once = 8, answer_bytes = 64 * 1024, patience_ms = 60000, latencies_max = 1 << 16 };

/* What the server may hold more of afterwards. The thread sanitizer keeps several bytes about each that is touched. */
#if defined(__SANITIZE_THREAD__)
#define SHADOW 8
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHADOW 8
#endif
#endif
#ifndef SHADOW
#define SHADOW 1
#endif
enum { memory_kib_max = 16 * 1024 * SHADOW };

static struct api_server server;

/* ---- shapes ---- */

#define HOST "Host: a\r\n"
#define AUTH "Authorization: Bearer $T\r\n"
#define POST "POST /v1/tasks HTTP/1.1\r\n" HOST AUTH "Content-Type: application/json\r\nIdempotency-Key: flood\r\n"
#define GET "GET /v1/tasks HTTP/1.1\r\n" HOST
#define NEXT "GET /v1/info HTTP/1.1\r\n" HOST "\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define KEY "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
#define PROTOCOL "Sec-WebSocket-Protocol: orbit.worker.v1\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define OPEN "GET /v1/worker HTTP/1.1\r\n" HOST AUTH UPGRADE KEY PROTOCOL VERSION "\r\n"

/* A frame of a client whose mask is zero, so that its bytes stand there as they are. */
#define MASK "\x00\x00\x00\x00"
#define BYTES(text) text, sizeof text - 1

enum end {
  ANSWERED, /* with this status, in the envelope; what follows on the connection is not looked at */
  CLOSED,   /* without an answer */
  BY_CODE,  /* a close frame with this code */
  LEFT,     /* the client goes without waiting */
};

static const struct shape {
  const char *name;
  bool worker; /* at the worker channel */
  enum end end;
  int code;
  const char *text;   /* $T: the token; $L: 9,000 bytes; $H: 17,000 bytes */
  const char *frames; /* sent once the upgrade was granted */
  size_t frames_size;
} shapes[] = {
    /* where the request ends */
    {"length and chunked", false, ANSWERED, 400, POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT,
     NULL, 0},
    {"two lengths", false, ANSWERED, 400, POST "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" NEXT, NULL, 0},
    {"length with sign", false, ANSWERED, 400, POST "Content-Length: +2\r\n\r\n{}", NULL, 0},
    {"length of words", false, ANSWERED, 400, POST "Content-Length: x\r\n\r\n", NULL, 0},
    {"length beyond numbers", false, ANSWERED, 413, POST "Content-Length: 99999999999999999999\r\n\r\n", NULL, 0},
    {"unknown encoding", false, ANSWERED, 400, POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" NEXT, NULL, 0},
    {"two hosts", false, ANSWERED, 400, GET HOST AUTH "\r\n", NULL, 0},
    {"folded header", false, ANSWERED, 400, GET AUTH "X: a\r\n b\r\n\r\n", NULL, 0},
    {"header without colon", false, ANSWERED, 400, GET "no colon\r\n\r\n", NULL, 0},
    {"bad chunk", false, ANSWERED, 400, POST "Transfer-Encoding: chunked\r\n\r\nx\r\n\r\n", NULL, 0},
    /* target, method, version, size */
    {"zero in the target", false, ANSWERED, 400, "GET /v1/tasks%00 HTTP/1.1\r\n" HOST AUTH "\r\n", NULL, 0},
    {"bad escape", false, ANSWERED, 400, "GET /v1/info%zz HTTP/1.1\r\n" HOST "\r\n", NULL, 0},
    {"no such route", false, ANSWERED, 404, "GET /v1/nothing HTTP/1.1\r\n" HOST AUTH "\r\n", NULL, 0},
    {"other method", false, ANSWERED, 405, "DELETE /v1/tasks HTTP/1.1\r\n" HOST AUTH "\r\n", NULL, 0},
    {"other version", false, ANSWERED, 505, "GET /healthz HTTP/3.0\r\n" HOST "\r\n", NULL, 0},
    {"long target", false, ANSWERED, 414, "GET /v1/info?$L HTTP/1.1\r\n" HOST "\r\n", NULL, 0},
    {"long header", false, ANSWERED, 431, GET "X: $H\r\n\r\n", NULL, 0},
    {"upgrade at the wrong port", false, ANSWERED, 426, OPEN, NULL, 0},
    /* who */
    {"no token", false, ANSWERED, 401, GET "\r\n", NULL, 0},
    {"unknown token", false, ANSWERED, 401, GET "Authorization: Bearer $Tx\r\n\r\n", NULL, 0},
    /* the body */
    {"body too large", false, ANSWERED, 413, POST "Content-Length: 524289\r\n\r\n", NULL, 0},
    {"body of another type", false, ANSWERED, 415, "POST /v1/tasks HTTP/1.1\r\n" HOST AUTH "Content-Length: 2\r\n\r\n{}", NULL,
     0},
    {"no JSON", false, ANSWERED, 400, POST "Content-Length: 3\r\n\r\n{\"a", NULL, 0},
    {"key twice", false, ANSWERED, 400, POST "Content-Length: 13\r\n\r\n{\"a\":1,\"a\":2}", NULL, 0},
    {"no UTF-8", false, ANSWERED, 400, POST "Content-Length: 9\r\n\r\n{\"a\":\"\xff\"}", NULL, 0},
    {"unknown field", false, ANSWERED, 400, POST "Content-Length: 11\r\n\r\n{\"nope\": 1}", NULL, 0},
    /* who goes away */
    {"half a head", false, LEFT, 0, "GET /v1/tasks HT", NULL, 0},
    {"half a body", false, LEFT, 0, POST "Content-Length: 100\r\n\r\n{", NULL, 0},
    {"nothing", false, LEFT, 0, "", NULL, 0},
    /* the worker channel's door */
    {"wrong path", true, ANSWERED, 404, "GET /v1/other HTTP/1.1\r\n" HOST AUTH UPGRADE KEY PROTOCOL VERSION "\r\n", NULL, 0},
    {"wrong WebSocket version", true, ANSWERED, 426,
     "GET /v1/worker HTTP/1.1\r\n" HOST AUTH UPGRADE KEY PROTOCOL "Sec-WebSocket-Version: 8\r\n\r\n", NULL, 0},
    {"wrong subprotocol", true, ANSWERED, 400,
     "GET /v1/worker HTTP/1.1\r\n" HOST AUTH UPGRADE KEY "Sec-WebSocket-Protocol: chat\r\n" VERSION "\r\n", NULL, 0},
    {"worker without token", true, ANSWERED, 401, "GET /v1/worker HTTP/1.1\r\n" HOST UPGRADE KEY PROTOCOL VERSION "\r\n", NULL,
     0},
    {"no HTTP", true, ANSWERED, 400, "\x16\x03\x01\x02 is no request\r\n\r\n", NULL, 0},
    /* frames */
    {"frames without a mask", true, BY_CODE, 1008, OPEN, BYTES("\x81\x02{}\x81\x02{}\x81\x02{}")},
    {"reserved bit", true, BY_CODE, 1002, OPEN, BYTES("\xc1\x82" MASK "{}")},
    {"reserved opcode", true, BY_CODE, 1002, OPEN, BYTES("\x83\x82" MASK "{}")},
    {"continuation of nothing", true, BY_CODE, 1002, OPEN, BYTES("\x80\x82" MASK "{}")},
    {"frame that is no UTF-8", true, BY_CODE, 1007, OPEN, BYTES("\x81\x82" MASK "\xff\xfe")},
    {"no messages", true, BY_CODE, 1008, OPEN, BYTES("\x81\x81" MASK "1\x81\x81" MASK "2\x81\x81" MASK "3")},
    {"a frame of 2^62 bytes, left", true, LEFT, 0, OPEN, BYTES("\x81\xff\x40\x00\x00\x00\x00\x00\x00\x00" MASK "abc")},
    {"worker that hangs up", true, LEFT, 0, OPEN, BYTES("")},
};
enum { shape_count = sizeof shapes / sizeof shapes[0] };

/* ---- one bad request ---- */

static int connect_to(bool worker) {
  struct api_server other = server;
  if (worker) other.port = (uint16_t)strtoul(strrchr(server.worker_url, ':') + 1, NULL, 10);
  return http_connect(&other);
}

static void fill(const char *text, struct buffer *out) {
  buffer_reset(out);
  for (const char *at = text; *at != '\0'; at++) {
    if (at[0] != '$') {
      buffer_append_char(out, *at);
      continue;
    }
    at++;
    if (*at == 'T') buffer_append_text(out, server.token);
    for (int i = 0; *at != 'T' && i < (*at == 'L' ? 9000 : 17000); i++) buffer_append_char(out, 'x');
  }
}

/* Reads some more; false at the end of the connection. */
static bool read_more(int fd, char *text, size_t *size) {
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  assert_int_equal(poll(&polled, 1, patience_ms), 1);
  assert_true(*size + 1 < answer_bytes);
  ssize_t got = recv(fd, text + *size, answer_bytes - 1 - *size, 0);
  if (got > 0) *size += (size_t)got;
  text[*size] = '\0';
  return got > 0;
}

static void expect_answer(const struct shape *shape, int fd) {
  static char text[answer_bytes];
  size_t size = 0;
  char start[32];
  const char *length = NULL, *body = NULL;
  text[0] = '\0';
  (void)snprintf(start, sizeof start, "HTTP/1.1 %d ", shape->code);
  while ((body = strstr(text, "\r\n\r\n")) == NULL && read_more(fd, text, &size)) continue;
  if (body != NULL) length = strcasestr(text, "\r\nContent-Length: ");
  if (body == NULL || length == NULL || strncmp(text, start, strlen(start)) != 0) fail_msg("%s: %s", shape->name, text);
  size_t whole = (size_t)(body + 4 - text) + strtoul(length + 18, NULL, 10);
  while (size < whole && read_more(fd, text, &size)) continue;
  if (size < whole || strstr(body, "{\"request_id\":\"") == NULL || strstr(body, "\"error\":{\"code\":\"") == NULL ||
      strstr(body, server.token) != NULL)
    fail_msg("%s: %s", shape->name, text);
}

/* The code of the close frame among the frames of a server, which are short and not masked; 0: it has not come yet. */
static int close_code(const uint8_t *text, size_t size) {
  size_t at = 0;
  while (at + 4 <= size && text[at] != 0x88)
    at += 2 + ((text[at + 1] & 127) == 126 ? 2U + ((unsigned)text[at + 2] << 8 | text[at + 3]) : text[at + 1] & 127U);
  return at + 4 <= size ? text[at + 2] << 8 | text[at + 3] : 0;
}

static void expect_close(const struct shape *shape, int fd) {
  static char text[answer_bytes];
  size_t size = 0;
  int code;
  while ((code = close_code((const uint8_t *)text, size)) == 0 && read_more(fd, text, &size)) continue;
  if (code != shape->code) fail_msg("%s: closed with %d", shape->name, code);
}

static void expect_upgrade(const struct shape *shape, int fd) {
  static char text[answer_bytes];
  size_t size = 0;
  text[0] = '\0';
  while (strstr(text, "\r\n\r\n") == NULL)
    if (!read_more(fd, text, &size)) break;
  if (strncmp(text, "HTTP/1.1 101 ", 13) != 0) fail_msg("%s: %s", shape->name, text);
}

static void expect_nothing(const struct shape *shape, int fd) {
  static char text[answer_bytes];
  size_t size = 0;
  while (read_more(fd, text, &size)) continue;
  if (size != 0) fail_msg("%s: %s", shape->name, text);
}

/* `at_once` of them side by side. */
static void send_bad(const struct shape *shape, struct buffer *text) {
  int fds[at_once];
  for (int i = 0; i < at_once; i++) {
    fds[i] = connect_to(shape->worker);
    http_send(fds[i], text->data, text->size);
  }
  for (int i = 0; i < at_once && shape->frames != NULL; i++) {
    expect_upgrade(shape, fds[i]);
    http_send(fds[i], shape->frames, shape->frames_size);
  }
  for (int i = 0; i < at_once; i++) {
    if (shape->end == ANSWERED) expect_answer(shape, fds[i]);
    if (shape->end == CLOSED) expect_nothing(shape, fds[i]);
    if (shape->end == BY_CODE) expect_close(shape, fds[i]);
    guard_close(&fds[i]);
  }
}

/* ---- good load beside ---- */

struct good {
  struct orbit_client *client;
  _Atomic bool flooded, stop;
  _Atomic uint64_t done, failed; /* any but the answer that is right: counted here, judged by the test's own thread */
  uint64_t us[2][latencies_max]; /* alone, and beside the flood: the first so many */
  _Atomic uint32_t counts[2];
  char first_id[ORBIT_ID_SIZE], message[512];
};

static uint64_t now_us(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A submission, which is new once in a while and else a repeat; true: the right answer. */
static bool do_good(struct good *good, uint64_t number, struct orbit_error *error) {
  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  struct orbit_task *task = NULL;
  char operation[32];
  (void)snprintf(operation, sizeof operation, "good-%llu", (unsigned long long)(number / 16));
  request.queue_id = server.queue_id;
  request.handler = "nobody";
  request.handler_version = request.payload_version = "v1";
  request.payload = "{\"n\":1.10}";
  request.payload_size = 10;
  request.task_timeout_ms = 86400000;
  if (orbit_submit_task(good->client, operation, &request, &task, error) != ORBIT_OK) return false;
  bool right = task->deduplicated == (number % 16 != 0) && task->state == ORBIT_TASK_WAITING;
  if (number == 0) (void)snprintf(good->first_id, sizeof good->first_id, "%s", task->id);
  orbit_task_free(task);
  return right;
}

static void *run_good(void *context) {
  struct good *good = context;
  for (uint64_t number = 0; !atomic_load(&good->stop); number++) {
    struct orbit_error error = {.message = "another answer than the right one"};
    uint64_t began = now_us();
    bool right = do_good(good, number, &error);
    unsigned kind = atomic_load(&good->flooded);
    uint32_t count = atomic_load(&good->counts[kind]);
    if (count < latencies_max) good->us[kind][count] = now_us() - began, atomic_store(&good->counts[kind], count + 1);
    if (!right && atomic_fetch_add(&good->failed, 1) == 0)
      (void)snprintf(good->message, sizeof good->message, "%s", error.message);
    (void)atomic_fetch_add(&good->done, 1);
    api_nap();
  }
  return NULL;
}

static int compare(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return left < right ? -1 : left > right;
}

static uint64_t median(struct good *good, unsigned kind) {
  uint32_t count = atomic_load(&good->counts[kind]);
  assert_true(count > 0);
  qsort(good->us[kind], count, sizeof good->us[kind][0], compare);
  return good->us[kind][count / 2];
}

/* ---- what the server holds ---- */

static unsigned descriptors(void) {
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)server.pid);
  DIR *directory = opendir(path);
  assert_non_null(directory);
  unsigned count = 0;
  while (readdir(directory) != NULL) count++;
  (void)closedir(directory);
  return count;
}

/* What it has taken from the system, the log's pages aside. */
static uint64_t memory_kib(void) {
  char path[64], line[256];
  unsigned long long kib = 0;
  (void)snprintf(path, sizeof path, "/proc/%d/status", (int)server.pid);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "RssAnon: %llu", &kib) == 1) break;
  (void)fclose(file);
  assert_true(kib > 0);
  return kib;
}

/* ---- the flood ---- */

static uint64_t setting(const char *name, uint64_t fallback) {
  const char *text = getenv(name);
  return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : fallback;
}

/* So many of each shape, at a rate that does not depend on how fast the server is. */
static void flood(uint64_t requests, uint64_t per_s) {
  cleanup(buffer_clear) struct buffer text;
  buffer_init(&text, answer_bytes);
  uint64_t began = now_us(), sent = 0;
  for (unsigned i = 0; i < shape_count; i++) {
    fill(shapes[i].text, &text);
    for (uint64_t n = 0; n < requests; n += at_once, sent += at_once) {
      while (now_us() - began < sent * 1000000 / per_s) api_nap();
      send_bad(&shapes[i], &text);
    }
  }
}

static void bad_requests_beside_good_ones(void **state) {
  (void)state;
  uint64_t requests = setting("FLOOD_REQUESTS", 24), per_s = setting("FLOOD_PER_S", 1000);
  struct good *good = guard_calloc(1, sizeof *good);
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  pthread_t thread;
  options.url = server.url;
  options.token = server.token;
  assert_int_equal(orbit_client_new(&options, &good->client, NULL), ORBIT_OK);
  assert_int_equal(pthread_create(&thread, NULL, run_good, good), 0);
  api_wait(atomic_load(&good->counts[0]) >= 100);
  flood(at_once, per_s); /* what is made once is made now */
  unsigned before_fds = descriptors();
  uint64_t before_kib = memory_kib(), after_kib;
  atomic_store(&good->flooded, true);
  flood(requests, per_s);
  atomic_store(&good->flooded, false);
  after_kib = memory_kib();
  uint64_t done = atomic_load(&good->done);
  api_wait(atomic_load(&good->done) > done + 10); /* the one under way when the flood ended counts as alone */
  atomic_store(&good->stop, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  uint64_t alone_us = median(good, 0), beside_us = median(good, 1);
  print_message(
      "%llu of each of %d shapes at %llu/s: good requests %llu, median alone %llu us, beside %llu us; memory %llu -> %llu KiB, "
      "descriptors %u\n",
      (unsigned long long)requests, shape_count, (unsigned long long)per_s, (unsigned long long)atomic_load(&good->done),
      (unsigned long long)alone_us, (unsigned long long)beside_us, (unsigned long long)before_kib,
      (unsigned long long)after_kib, before_fds);
  if (atomic_load(&good->failed) != 0)
    fail_msg("%llu good requests failed: %s", (unsigned long long)good->failed, good->message);
  struct orbit_task *task = NULL;
  assert_int_equal(orbit_get_task(good->client, good->first_id, &task, NULL), ORBIT_OK);
  orbit_task_free(task);
  orbit_client_free(good->client);
  api_wait(descriptors() <= before_fds);
  assert_true(after_kib <= before_kib + memory_kib_max);
  if (setting("FLOOD_STRICT", 0) != 0) assert_true(beside_us < 2 * alone_us);
  free(good);
}

/* A thousand that connect and say nothing, at both ports: others are served, and all is given back when they go. */
static void a_thousand_idle_connections(void **state) {
  enum { many = 500 };
  (void)state;
  static int fds[2 * many];
  struct http_reply reply;
  http_reply_init(&reply);
  unsigned before = descriptors();
  for (int i = 0; i < 2 * many; i++) fds[i] = connect_to(i % 2 == 1);
  http_get(&server, server.token, "/v1/tasks", &reply);
  http_expect(&reply, 200, NULL, NULL);
  int fd = connect_to(true);
  cleanup(buffer_clear) struct buffer text;
  buffer_init(&text, answer_bytes);
  fill(OPEN, &text);
  http_send(fd, text.data, text.size);
  expect_upgrade(&shapes[shape_count - 1], fd);
  assert_true(descriptors() >= before + many);
  guard_close(&fd);
  for (int i = 0; i < 2 * many; i++) guard_close(&fds[i]);
  api_wait(descriptors() <= before);
  http_reply_clear(&reply);
}

/* Clients that ask for much and read nothing hold their own connections up, and nobody else's. */
static void slow_readers(void **state) {
  enum { many = 50, asked = 200 };
  (void)state;
  static int fds[many];
  struct http_reply reply;
  cleanup(buffer_clear) struct buffer one, all;
  http_reply_init(&reply);
  unsigned before = descriptors();
  buffer_init(&one, answer_bytes);
  buffer_init(&all, (size_t)1 << 20);
  fill("GET /v1/tasks?limit=100 HTTP/1.1\r\n" HOST AUTH "\r\n", &one);
  for (int i = 0; i < asked; i++) buffer_append_bytes(&all, buffer_bytes(&one));
  uint64_t before_kib = memory_kib();
  for (int i = 0; i < many; i++) {
    fds[i] = connect_to(false);
    (void)send(fds[i], all.data, all.size, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  for (int i = 0; i < 20; i++) {
    http_get(&server, server.token, "/v1/tasks?limit=1", &reply);
    http_expect(&reply, 200, NULL, NULL);
  }
  assert_true(memory_kib() < before_kib + 4 * memory_kib_max);
  for (int i = 0; i < many; i++) guard_close(&fds[i]);
  api_wait(descriptors() <= before);
  http_reply_clear(&reply);
}

/* ---- secrets ---- */

/* After all that: the log of the server has no token in it, nor has its command line or environment. */
static void the_log_holds_no_secret(void **state) {
  (void)state;
  struct bytes log = test_file_read(server.log);
  assert_true(log.data != NULL && log.size > 0);
  const char *const secrets[] = {server.token, server.admin_token, server.root_token};
  for (unsigned i = 0; i < 3; i++) assert_null(memmem(log.data, log.size, secrets[i], strlen(secrets[i])));
  free((void *)(uintptr_t)log.data);
}

static int setup(void **state) {
  (void)state;
  /* The address sanitizer keeps freed memory for a while: little, so that what grows is seen. */
  char options[512];
  const char *given = getenv("ASAN_OPTIONS");
  (void)snprintf(options, sizeof options, "%s%squarantine_size_mb=1", given != NULL ? given : "", given != NULL ? ":" : "");
  assert_int_equal(setenv("ASAN_OPTIONS", options, 1), 0);
  (void)signal(SIGPIPE, SIG_IGN);
  api_server_up(&server);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  api_server_remove(&server);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_requests_beside_good_ones),
      cmocka_unit_test(a_thousand_idle_connections),
      cmocka_unit_test(slow_readers),
      cmocka_unit_test(the_log_holds_no_secret),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
