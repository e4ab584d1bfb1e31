/* The HTTP edge behind TLS, in this process: the same answers, the library's own faults in the envelope too, and handshakes
 * that never end hold nobody up. */
#include "edge/http_fixture.h"
#include "support/secure.h"

enum { short_ms = 1500 };

struct server {
  struct fixture fixture;
  struct http_shared shared;
  struct http_thread *thread;
  char authority[300];
};

static void server_start(struct server *server, int64_t request_ms) {
  struct fault fault = {.message = ""};
  char key[300];
  memset(server, 0, sizeof *server);
  fixture_open(&server->fixture);
  certificate_make(server->fixture.directory, "edge", SMALL_KEY);
  (void)snprintf(server->authority, sizeof server->authority, "%s/edge.crt", server->fixture.directory);
  (void)snprintf(key, sizeof key, "%s/edge.key", server->fixture.directory);
  if (tls_open(server->authority, key, &server->fixture.edge.tls, &fault) != STATUS_OK) fail_msg("%s", fault.message);
  atomic_store(&server->fixture.edge.phase, EDGE_READY);
  server->shared.edge = &server->fixture.edge;
  server->shared.request_ms = request_ms;
  server->shared.ticket_ms = ticket_ms_max;
  assert_int_equal(http_thread_start(&server->shared, dup(server->fixture.listen_fd), 256, &server->thread, &fault), STATUS_OK);
  fixture_run_engine(&server->fixture);
}

static void server_end(struct server *server) {
  atomic_store(&server->shared.stopping, true);
  http_thread_wake(server->thread);
  assert_true(http_thread_join(server->thread));
  assert_int_equal(atomic_load(&server->shared.body_bytes), 0);
  tls_free(server->fixture.edge.tls);
  fixture_close(&server->fixture);
  free(server);
}

static int set_up(void **state) {
  struct server *server = guard_calloc(1, sizeof *server);
  server_start(server, http_request_ms_max);
  *state = server;
  return 0;
}

static int tear_down(void **state) {
  server_end(*state);
  return 0;
}

static void open_client(const struct server *server, struct secure_client *client) {
  assert_true(secure_client_open(client, server->fixture.port, server->authority, 0));
}

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_ALL "\r\n\r\n"

/* One connection: answers in order, several requests in one record, a body that comes in many. */
static void test_requests(void **state) {
  struct server *server = *state;
  struct secure_client client;
  char text[REPLY_BYTES];
  static const char body[] = SUBMISSION(QUEUE_A, "1");
  open_client(server, &client);
  secure_client_send(&client, GET("/healthz") GET("/v1/info") GET("/v1/tasks"));
  assert_true(secure_client_receive(&client, "\"items\":", text, sizeof text));
  const char *first = strstr(text, "\"status\":\"ok\""), *second = strstr(text, "\"worker_url\"");
  assert_true(first != NULL && second != NULL && first < second);
  (void)snprintf(text, sizeof text, POST_HEAD(TOKEN_ALL, "tls") "Content-Length: %zu\r\n\r\n", sizeof body - 1);
  secure_client_send(&client, text);
  for (const char *at = body; *at != '\0'; at++) secure_client_send(&client, (const char[]){*at, '\0'});
  assert_true(secure_client_receive(&client, "\"deduplicated\":false}}", text, sizeof text));
  assert_non_null(strstr(text, "HTTP/1.1 201 "));
  secure_client_close(&client);
}

/* Requests that the library refuses by itself. */
static void test_library_faults(void **state) {
  struct server *server = *state;
  static const struct {
    const char *request;
    int status;
  } cases[] = {
      {"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400},
      {"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 413},
      {"GET /healthz HTTP/1.1\r\nX: 1\r\n\r\n", 400},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct secure_client client;
    char text[REPLY_BYTES], start[32];
    open_client(server, &client);
    secure_client_send(&client, cases[i].request);
    assert_false(secure_client_receive(&client, NULL, text, sizeof text)); /* to the end of the connection */
    (void)snprintf(start, sizeof start, "HTTP/1.1 %d ", cases[i].status);
    if (strncmp(text, start, strlen(start)) != 0 && strncmp(text, "HTTP/1.0", 8) != 0) fail_msg("case %zu: %s", i, text);
    if (strstr(text, "\"error\":{\"code\":") == NULL || strstr(text, "<html") != NULL) fail_msg("case %zu: %s", i, text);
    secure_client_close(&client);
  }
}

/* Peers that connect and say nothing, half a record, or something that is no TLS: others are served meanwhile, and those are
 * closed when their time is up, or at once. */
static void test_handshakes_that_do_not_end(void **state) {
  enum { many = 60 };
  static const struct {
    const char *bytes;
    size_t size;
  } kinds[] = {{"", 0}, {"\x16", 1}, {"\x16\x03\x01\x02\x00\x01", 6}, {GET("/healthz"), sizeof GET("/healthz") - 1}};
  struct server *server = guard_calloc(1, sizeof *server);
  struct secure_client client;
  char text[REPLY_BYTES];
  int fds[many];
  (void)state;
  server_start(server, short_ms);
  for (int i = 0; i < many; i++) {
    fds[i] = secure_client_socket(server->fixture.port);
    client_send(fds[i], kinds[i % 4].bytes, kinds[i % 4].size);
  }
  open_client(server, &client);
  secure_client_send(&client, GET("/healthz"));
  assert_true(secure_client_receive(&client, "\"status\":\"ok\"", text, sizeof text));
  secure_client_close(&client);
  for (int i = 0; i < many; i++) {
    ssize_t got;
    while ((got = recv(fds[i], text, sizeof text, 0)) > 0) assert_null(memmem(text, (size_t)got, "HTTP/1.", 7));
    assert_true(got == 0 || errno == ECONNRESET); /* and not that nothing came for long */
    guard_close(&fds[i]);
  }
  server_end(server);
}

/* The certificate is replaced between two handshakes; the connection before stays. */
static void test_reload(void **state) {
  struct server *server = *state;
  struct secure_client before, after;
  char text[REPLY_BYTES];
  struct fault fault;
  open_client(server, &before);
  certificate_make(server->fixture.directory, "edge", "rsa:2048"); /* the kind of key may change too */
  assert_int_equal(tls_reload(server->fixture.edge.tls, &fault), STATUS_OK);
  secure_client_send(&before, GET("/healthz"));
  assert_true(secure_client_receive(&before, "\"status\":\"ok\"", text, sizeof text));
  open_client(server, &after); /* its authority is the new certificate itself */
  secure_client_send(&after, GET("/healthz"));
  assert_true(secure_client_receive(&after, "\"status\":\"ok\"", text, sizeof text));
  secure_client_close(&before);
  secure_client_close(&after);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_requests, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_library_faults, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_reload, set_up, tear_down),
      cmocka_unit_test(test_handshakes_that_do_not_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
