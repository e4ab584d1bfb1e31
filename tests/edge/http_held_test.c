/* Requests that wait for the engine, held or suspended: more of them than are held, longer than they are held, with clients
 * that leave meanwhile and with long bodies beside them. */
#include "edge/http_fixture.h"

enum { waiting = http_held_max + 16 };

struct server {
  struct fixture fixture;
  struct http *http;
};

/* Nothing is answered before fixture_run_engine. */
static void server_start(struct server *server) {
  struct fault fault = {.message = ""};
  fixture_open(&server->fixture);
  atomic_store(&server->fixture.edge.phase, EDGE_READY);
  assert_int_equal(http_start(&server->fixture.edge, server->fixture.listen_fd, 1, &server->http, &fault), STATUS_OK);
}

static void server_stop(struct server *server) {
  http_stop(server->http);
  fixture_close(&server->fixture);
}

static int submit(const struct fixture *fixture, unsigned number) {
  static const char body[] = SUBMISSION(QUEUE_A, "{\"held\":true}");
  char text[1024];
  int fd = client_connect(fixture);
  (void)snprintf(text, sizeof text, POST_HEAD(TOKEN_ALL, "held-%u") "Content-Length: %zu\r\n\r\n%s", number, sizeof body - 1,
                 body);
  client_send_text(fd, text);
  return fd;
}

static void expect_accepted(int fd) {
  struct reply reply;
  client_receive(fd, &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 201);
}

/* A request that needs no engine is answered while others wait, and how long they have waited is seen by it: so this is some
 * rounds of the thread, and some time, without a sleep. */
static void rounds_go_by(const struct fixture *fixture) {
  struct reply reply;
  int64_t until_us = clock_monotonic_us() + 3 * http_held_ms_max * INT64_C(1000);
  do {
    client_exchange(fixture, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", &reply);
    assert_int_equal(reply.status, 200);
  } while (clock_monotonic_us() < until_us);
}

static void all_are_answered(void **state) {
  struct server server;
  int fds[waiting];
  (void)state;
  server_start(&server);
  for (unsigned i = 0; i < waiting; i++) fds[i] = submit(&server.fixture, i);
  rounds_go_by(&server.fixture);
  fixture_run_engine(&server.fixture);
  for (unsigned i = 0; i < waiting; i++) expect_accepted(fds[i]);
  for (unsigned again = 0; again < 3; again++) { /* the same connections, the engine at work */
    static const char body[] = SUBMISSION(QUEUE_A, "{\"held\":true}");
    char text[1024];
    for (unsigned i = 0; i < waiting; i++) {
      (void)snprintf(text, sizeof text, POST_HEAD(TOKEN_ALL, "again-%u-%u") "Content-Length: %zu\r\n\r\n%s", again, i,
                     sizeof body - 1, body);
      client_send_text(fds[i], text);
    }
    for (unsigned i = 0; i < waiting; i++) expect_accepted(fds[i]);
  }
  for (unsigned i = 0; i < waiting; i++) guard_close(&fds[i]);
  server_stop(&server);
}

static void clients_may_leave(void **state) {
  struct server server;
  int fds[waiting];
  (void)state;
  for (unsigned late = 0; late < 2; late++) { /* while they are held, and when they are not any more */
    server_start(&server);
    for (unsigned i = 0; i < waiting; i++) fds[i] = submit(&server.fixture, i);
    if (late == 1) rounds_go_by(&server.fixture);
    for (unsigned i = 0; i < waiting; i += 2) guard_close(&fds[i]);
    fixture_run_engine(&server.fixture);
    for (unsigned i = 1; i < waiting; i += 2) {
      expect_accepted(fds[i]);
      guard_close(&fds[i]);
    }
    int fd = submit(&server.fixture, waiting);
    expect_accepted(fd);
    guard_close(&fd);
    server_stop(&server);
  }
}

/* A body of many reads comes in while others are held, and an answer of many writes goes out. */
static void long_bodies_pass(void **state) {
  enum { fill = 200 * 1024 };
  struct server server;
  struct buffer request;
  static char reply_text_of[fill + 4096];
  (void)state;
  server_start(&server);
  int held = submit(&server.fixture, 1), fd = client_connect(&server.fixture);
  buffer_init(&request, 2 * fill);
  buffer_append_text(&request, POST_HEAD(TOKEN_ALL, "long"));
  buffer_append_format(&request, "Content-Length: %zu\r\n\r\n", sizeof SUBMISSION(QUEUE_A, "\"\"") - 1 + fill);
  static const char start[] =
      "{\"queue_id\":\"" QUEUE_A "\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":\"";
  buffer_append_text(&request, start);
  for (unsigned i = 0; i < fill; i++) buffer_append_char(&request, 'x');
  buffer_append_text(&request, "\",\"task_timeout_ms\":60000}");
  assert_false(request.failed);
  client_send(fd, request.data, request.size);
  fixture_run_engine(&server.fixture);
  expect_accepted(held);
  size_t size = 0;
  while (memmem(reply_text_of, size, "\"deduplicated\":false}}", 22) == NULL) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, client_wait_ms), 1);
    ssize_t got = recv(fd, reply_text_of + size, sizeof reply_text_of - size, 0);
    assert_true(got > 0);
    size += (size_t)got;
  }
  assert_memory_equal(reply_text_of, "HTTP/1.1 201", 12);
  assert_true(size > fill);
  buffer_clear(&request);
  guard_close(&held);
  guard_close(&fd);
  server_stop(&server);
}

/* What is held when the server stops is answered first. */
static void a_stop_answers_them(void **state) {
  struct server server;
  int fds[waiting];
  (void)state;
  server_start(&server);
  for (unsigned i = 0; i < waiting; i++) fds[i] = submit(&server.fixture, i);
  rounds_go_by(&server.fixture); /* all of them have been read */
  fixture_run_engine(&server.fixture);
  http_stop(server.http);
  for (unsigned i = 0; i < waiting; i++) {
    expect_accepted(fds[i]);
    guard_close(&fds[i]);
  }
  fixture_close(&server.fixture);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_are_answered),
      cmocka_unit_test(clients_may_leave),
      cmocka_unit_test(long_bodies_pass),
      cmocka_unit_test(a_stop_answers_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
