/* The HTTP edge against clients that smuggle, stall, drip and flood, and against an engine that does not answer. */
#include "edge/http_fixture.h"

enum { short_ms = 300 };

/* A server with short deadlines; ready is false where a test wants the engine to stand still at first. */
struct server {
  struct fixture fixture;
  struct http_shared shared;
  struct http_thread *thread;
};

static void server_start(struct server *server, int64_t request_ms, int64_t ticket_ms) {
  struct fault fault = {.message = ""};
  memset(server, 0, sizeof *server);
  fixture_open(&server->fixture);
  atomic_store(&server->fixture.edge.phase, EDGE_READY);
  server->shared.edge = &server->fixture.edge;
  server->shared.request_ms = request_ms;
  server->shared.ticket_ms = ticket_ms;
  assert_int_equal(http_thread_start(&server->shared, dup(server->fixture.listen_fd), 64, &server->thread, &fault), STATUS_OK);
}

static bool server_stop(struct server *server) {
  atomic_store(&server->shared.stopping, true);
  http_thread_wake(server->thread);
  return http_thread_join(server->thread);
}

static int set_up(void **state) {
  struct server *server = guard_calloc(1, sizeof *server);
  server_start(server, http_request_ms_max, ticket_ms_max);
  fixture_run_engine(&server->fixture);
  *state = server;
  return 0;
}

static int tear_down(void **state) {
  struct server *server = *state;
  assert_true(server_stop(server));
  assert_int_equal(atomic_load(&server->shared.body_bytes), 0); /* every reserved byte was given back */
  fixture_close(&server->fixture);
  free(server);
  return 0;
}

#define GET "GET /healthz HTTP/1.1\r\n"
#define POST POST_HEAD(TOKEN_ALL, "hostile")
#define NEXT "GET /v1/info HTTP/1.1\r\nHost: a\r\n\r\n"

/* What follows such a request must never be answered as a request of its own. */
static void test_smuggling(void **state) {
  struct server *server = *state;
  static const struct {
    const char *request;
    int status;
  } cases[] = {
      {POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT, 400},
      {POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" NEXT, 400},
      {POST "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" NEXT, 400},
      {POST "Content-Length: 40\r\nContent-Length: 40\r\n\r\n" NEXT, 400},
      {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" NEXT, 400},
      {POST "Transfer-Encoding: identity\r\n\r\n" NEXT, 400},
      {POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" NEXT, 400},
      {POST "Transfer-Encoding: xchunked\r\n\r\n" NEXT, 400},
      {POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" NEXT, 400},
      {POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" NEXT, 400},
      {POST "Transfer-Encoding: chunked\r\n x\r\n\r\n0\r\n\r\n" NEXT, 400},
      {POST "Transfer: chunked\r\n -Encoding\r\n\r\n0\r\n\r\n" NEXT, 400},
      {GET "Host: a\r\nContent: 38\r\n -Length\r\n\r\n" NEXT, 400},
      {GET "Host: a\r\nX: y\r\n z\r\n\r\n" NEXT, 400},
      {POST "\r\n" NEXT, 411},
      {POST "Content-Length: +0\r\n\r\n" NEXT, 400},
      {POST "Content-Length: 0x0\r\n\r\n" NEXT, 400},
      {POST "Content-Length: 0 0\r\n\r\n" NEXT, 400},
      {POST "Content-Length: 99999999999999999999\r\n\r\n" NEXT, 413},
      {POST "Content-Length : 0\r\n\r\n" NEXT, 400},
      {POST "Host: b\r\nContent-Length: 0\r\n\r\n" NEXT, 400},
      {"GET /healthz HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT, 400},
      {GET "Host: a\r\nHost: b\r\n\r\n" NEXT, 400},
      {GET "Host: a\r\nContent-Length: 10\r\n\r\n" NEXT, 400},
      {GET "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT, 400},
      {GET "Host: a\r\nX(: y\r\n\r\n" NEXT, 400},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct reply reply;
    int fd = client_connect(&server->fixture);
    client_send_text(fd, cases[i].request);
    client_receive(fd, &reply);
    if (reply.status != cases[i].status) print_message("case %zu: %s", i, reply.text);
    assert_int_equal(reply.status, cases[i].status);
    reply_check(&reply);
    assert_true(client_is_closed(fd));
    guard_close(&fd);
  }
}

/* Faults that the library finds by itself come in the envelope as well. */
static void test_library_faults(void **state) {
  struct server *server = *state;
  static char huge[80 * 1024];
  static const struct {
    const char *request;
    int status;
    const char *code;
  } cases[] = {
      {GET "\r\n", 400, "INVALID_ARGUMENT"}, /* no Host */
      {GET "Host: a\r\nno colon\r\n\r\n", 400, "INVALID_ARGUMENT"},
      {"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400, "INVALID_ARGUMENT"},
      {"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 413, "PAYLOAD_TOO_LARGE"},
      {POST "Transfer-Encoding: chunked\r\n\r\nx\r\n\r\n", 400, "INVALID_ARGUMENT"},
      {POST "Transfer-Encoding: chunked\r\n\r\n1\r\n{xx0\r\n\r\n", 400, "INVALID_ARGUMENT"},
      {"GET /healthz HTTP/3.0\r\nHost: a\r\n\r\n", 505, "INVALID_ARGUMENT"},
  };
  struct reply reply;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    client_exchange(&server->fixture, cases[i].request, &reply);
    assert_int_equal(reply.status, cases[i].status);
    reply_check(&reply);
    assert_string_equal(reply_text(&reply, "code"), cases[i].code);
  }
  for (int header = 0; header < 2; header++) {
    memset(huge, 'x', sizeof huge - 1);
    const char *start = header != 0 ? GET "Host: a\r\nX: " : "GET /";
    memcpy(huge, start, strlen(start));
    client_exchange(&server->fixture, huge, &reply);
    assert_int_equal(reply.status, header != 0 ? 431 : 414);
    reply_check(&reply);
    assert_string_equal(reply_text(&reply, "code"), header != 0 ? "HEADERS_TOO_LARGE" : "URI_TOO_LONG");
  }
}

/* Targets and headers just below and above what is allowed. */
static void test_sizes(void **state) {
  struct server *server = *state;
  static char text[40 * 1024], filler[http_header_bytes_max + 1];
  struct reply reply;
  memset(filler, 'x', sizeof filler - 1);
  for (int over = 0; over < 2; over++) {
    (void)snprintf(text, sizeof text, "GET /%.*s HTTP/1.1\r\nHost: a\r\n\r\n", http_target_bytes_max - 1 + over, filler);
    client_exchange(&server->fixture, text, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, over != 0 ? 414 : 404);
    /* "Host" and "a" count 4 more each, as the other header's name does. */
    (void)snprintf(text, sizeof text, GET "Host: a\r\nX: %.*s\r\n\r\n", http_header_bytes_max - 9 - 5 + over, filler);
    client_exchange(&server->fixture, text, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, over != 0 ? 431 : 200);
  }
}

/* Everything that the head alone tells is answered before a byte of the body was sent, and without 100 Continue. */
static void test_early(void **state) {
  struct server *server = *state;
  static const struct {
    const char *head;
    int status;
  } cases[] = {
      {POST_HEAD("unknown", "k") "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n", 401},
      {POST_HEAD(TOKEN_READ, "k") "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n", 403},
      {POST "Expect: 100-continue\r\nContent-Length: 524289\r\n\r\n", 413},
      {POST "Expect: 100-continue\r\n\r\n", 411},
      {POST "Accept: text/html\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", 406},
      {POST "Content-Type: text/plain\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", 415},
      {POST "Idempotency-Key: b\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", 400},
      {"POST /v1/nothing HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", 404},
      {"PUT /v1/tasks HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", 405},
      {"POST /v1/tasks?x=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_ALL
       "\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 100\r\n\r\n",
       400},
      {POST "Expect: 100-continue\r\nContent-Length: 524288\r\n\r\n", 100},
      {POST "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", 100},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct reply reply;
    client_exchange(&server->fixture, cases[i].head, &reply);
    assert_int_equal(reply.status, cases[i].status);
    if (reply.status != 100) reply_check(&reply);
  }
}

/* A client that sends all of a large body before it reads still gets to read why it was refused. */
static void test_refused_while_sending(void **state) {
  struct server *server = *state;
  static const struct {
    const char *head;
    size_t size;
    int status;
  } cases[] = {
      {POST "Content-Length: 600000\r\n\r\n", 600000, 413},
      {POST "Content-Length: 3000000\r\n\r\n", 3000000, 413},
      {POST_HEAD("unknown", "k") "Content-Length: 500000\r\n\r\n", 500000, 401},
  };
  char *body = guard_calloc(1, 3000000);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct reply reply;
    int fd = client_connect(&server->fixture);
    client_send_text(fd, cases[i].head);
    client_send(fd, body, cases[i].size);
    client_receive(fd, &reply);
    assert_int_equal(reply.status, cases[i].status);
    reply_check(&reply);
    guard_close(&fd);
  }
  free(body);
}

static void send_chunk(int fd, const char *data, size_t size) {
  char head[32];
  (void)snprintf(head, sizeof head, "%zx\r\n", size);
  client_send_text(fd, head);
  client_send(fd, data, size);
  client_send_text(fd, "\r\n");
}

static void test_chunked(void **state) {
  struct server *server = *state;
  static const char body[] = SUBMISSION(QUEUE_A, "1");
  enum { chunk = 64 * 1024 };
  char *filler = guard_malloc(chunk);
  struct reply reply;
  memset(filler, ' ', chunk);
  /* Byte by byte; then filled up with white space to exactly the limit, and one byte over it. */
  for (int over = -1; over <= 1; over++) {
    int fd = client_connect(&server->fixture);
    client_send_text(fd, POST "Transfer-Encoding: chunked\r\n\r\n");
    if (over < 0) {
      for (size_t i = 0; i < sizeof body - 1; i++) send_chunk(fd, body + i, 1);
    } else {
      size_t left = (size_t)(http_body_bytes_max + over) - (sizeof body - 1);
      send_chunk(fd, body, sizeof body - 1);
      for (size_t size; left > 0; left -= size) send_chunk(fd, filler, size = left < chunk ? left : chunk);
    }
    client_send_text(fd, "0\r\n\r\n");
    client_receive(fd, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, over < 0 ? 201 : over == 0 ? 200 : 413);
    guard_close(&fd);
  }
  free(filler);
}

/* A chunked body without end is cut off. */
static void test_endless(void **state) {
  struct server *server = *state;
  enum { chunk = 64 * 1024 };
  char *filler = guard_malloc(chunk);
  memset(filler, ' ', chunk);
  int fd = client_connect(&server->fixture);
  client_send_text(fd, POST "Transfer-Encoding: chunked\r\n\r\n");
  size_t sent = 0;
  char head[32];
  (void)snprintf(head, sizeof head, "%x\r\n", chunk);
  while (sent < (size_t)64 * 1024 * 1024) {
    if (send(fd, head, strlen(head), MSG_NOSIGNAL) < 0) break;
    if (send(fd, filler, chunk, MSG_NOSIGNAL) < 0) break;
    if (send(fd, "\r\n", 2, MSG_NOSIGNAL) < 0) break;
    sent += chunk;
  }
  assert_true(sent < (size_t)64 * 1024 * 1024);
  guard_close(&fd);
  free(filler);
}

/* A client that sends a byte now and then is closed when its time is over, wherever in the request it is. */
static void test_drip(void **state) {
  static const char *const starts[] = {"", "GET /hea", GET "Host: a\r\nX: ", POST "Content-Length: 100\r\n\r\n{",
                                       POST "Transfer-Encoding: chunked\r\n\r\n"};
  struct server *server = guard_calloc(1, sizeof *server);
  (void)state;
  server_start(server, short_ms, ticket_ms_max);
  fixture_run_engine(&server->fixture);
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
    int64_t start_us = clock_monotonic_us();
    int fd = client_connect(&server->fixture);
    bool closed = false;
    client_send_text(fd, starts[i]);
    while (!closed) {
      struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
      closed = poll(&poll_fd, 1, 20) == 1;
      if (!closed) client_send_text(fd, i == 4 ? "1\r\n \r\n" : "a");
      assert_true(clock_monotonic_us() - start_us < (int64_t)client_wait_ms * 1000);
    }
    char byte;
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    assert_true(clock_monotonic_us() - start_us >= (int64_t)(short_ms - 1) * 1000);
    guard_close(&fd);
  }
  assert_true(server_stop(server));
  assert_int_equal(atomic_load(&server->shared.body_bytes), 0);
  fixture_close(&server->fixture);
  free(server);
}

/* The engine is silent: 503 after the ticket's time; when it wakes, the forgotten tickets are taken back and the work was done.
 */
static void test_slow_engine(void **state) {
  struct server *server = guard_calloc(1, sizeof *server);
  struct reply reply;
  (void)state;
  server_start(server, http_request_ms_max, short_ms);
  client_submit(&server->fixture, TOKEN_ALL, "slow", SUBMISSION(QUEUE_A, "1"), &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 503);
  assert_string_equal(reply_text(&reply, "code"), "UNAVAILABLE");
  fixture_run_engine(&server->fixture);
  client_submit(&server->fixture, TOKEN_ALL, "slow", SUBMISSION(QUEUE_A, "1"), &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 200); /* it had been committed */
  assert_true(server_stop(server));
  assert_int_equal(atomic_load(&server->shared.body_bytes), 0);
  fixture_close(&server->fixture);
  free(server);
}

/* What came back for nobody is freed with all that the engine and the request hung on it (the sanitizer sees it). */
static void test_slow_engine_lets_nothing_leak(void **state) {
  static const char *const targets[] = {"/v1/queues", "/v1/applications", "/v1/credentials", "/v1/audit", "/metrics"};
  static const char batch[] =
      "POST /v1/tasks:batch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_ALL
      "\r\nContent-Type: application/json\r\nContent-Length: 35\r\n\r\n{\"items\":[{\"idempotency_key\":\"k\"}]}";
  static const char credential[] = "POST /v1/credentials HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_ADMIN
                                   "\r\nContent-Type: application/json\r\nIdempotency-Key: slow\r\nContent-Length: 82\r\n\r\n"
                                   "{\"application_id\":\"0000018bcfe568000000000000000101\",\"permissions\":[\"tasks:read\"]}";
  struct server *server = guard_calloc(1, sizeof *server);
  struct reply reply;
  (void)state;
  server_start(server, http_request_ms_max, short_ms);
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
    client_get(&server->fixture, TOKEN_ADMIN, targets[i], &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, 503);
  }
  client_get(&server->fixture, TOKEN_ALL, "/v1/tasks?handler=h&business_key=k", &reply);
  assert_int_equal(reply.status, 503);
  client_exchange(&server->fixture, batch, &reply);
  assert_int_equal(reply.status, 503);
  client_exchange(&server->fixture, credential, &reply);
  assert_int_equal(reply.status, 503);
  fixture_run_engine(&server->fixture);
  client_exchange(&server->fixture, credential, &reply);
  assert_int_equal(reply.status, 200); /* it had been committed; its token is lost */
  assert_null(reply_text(&reply, "token"));
  assert_true(server_stop(server));
  assert_int_equal(atomic_load(&server->shared.body_bytes), 0);
  fixture_close(&server->fixture);
  free(server);
}

static void *start_engine_late(void *context) {
  struct server *server = context;
  /* Until the HTTP thread has begun to stop, which the closed listening socket shows. */
  for (int fd = 0; fd >= 0;) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(server->fixture.port)};
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
      guard_close(&fd);
      continue;
    }
    guard_close(&fd);
    fd = -1;
  }
  fixture_run_engine(&server->fixture);
  return NULL;
}

/* Stopping while the engine has tickets: they are waited for and answered, then the connections end. Idle ones end at once. */
static void test_stop_with_suspended(void **state) {
  enum { many = 20 };
  struct server *server = guard_calloc(1, sizeof *server);
  struct reply reply;
  int fds[many], idle;
  char text[1024];
  static const char body[] = SUBMISSION(QUEUE_A, "1");
  (void)state;
  server_start(server, http_request_ms_max, ticket_ms_max);
  idle = client_connect(&server->fixture);
  client_send_text(idle, GET "Host: a\r\n\r\n");
  client_receive(idle, &reply);
  assert_int_equal(reply.status, 200);
  for (int i = 0; i < many; i++) {
    fds[i] = client_connect(&server->fixture);
    (void)snprintf(text, sizeof text, POST_HEAD(TOKEN_ALL, "stop-%d") "Content-Length: %zu\r\n\r\n%s", i, sizeof body - 1,
                   body);
    client_send_text(fds[i], text);
  }
  while (atomic_load(&server->shared.body_bytes) < many * (sizeof body - 1)) /* until all were read */
    (void)sched_yield();
  guard_close(&server->fixture.listen_fd); /* the thread's duplicate is the last */
  server->fixture.listen_fd = -1;
  pthread_t late;
  assert_int_equal(pthread_create(&late, NULL, start_engine_late, server), 0);
  assert_true(server_stop(server));
  assert_int_equal(pthread_join(late, NULL), 0);
  for (int i = 0; i < many; i++) {
    client_receive(fds[i], &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, 201);
    assert_true(client_is_closed(fds[i]));
    guard_close(&fds[i]);
  }
  assert_true(client_is_closed(idle));
  guard_close(&idle);
  fixture_close(&server->fixture);
  free(server);
}

/* More bodies at once than there is room for: the rest is told to come again. */
static void test_body_budget(void **state) {
  struct server *server = *state;
  struct reply reply;
  uint64_t before = atomic_fetch_add(&server->shared.body_bytes, (uint64_t)http_waiting_body_bytes_max - 100);
  client_exchange(&server->fixture, POST "Content-Length: 101\r\n\r\n", &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 503);
  client_exchange(&server->fixture, POST "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n", &reply);
  assert_int_equal(reply.status, 100);
  (void)before;
  atomic_fetch_sub(&server->shared.body_bytes, (uint64_t)http_waiting_body_bytes_max - 100);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_smuggling, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_library_faults, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_sizes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_early, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refused_while_sending, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_chunked, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_endless, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_body_budget, set_up, tear_down),
      cmocka_unit_test(test_drip),
      cmocka_unit_test(test_slow_engine),
      cmocka_unit_test(test_slow_engine_lets_nothing_leak),
      cmocka_unit_test(test_stop_with_suspended),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
