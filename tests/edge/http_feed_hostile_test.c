/* Readers of the feed that do not read, are too many, lose their credential, or are still there when the server stops. */
#define REPLY_BYTES (256 * 1024)
#include "edge/http_fixture.h"

enum { short_ms = 1500, heartbeat_ms = 100, tasks = 400, rounds = 10 };

struct server {
  struct fixture fixture;
  struct http_shared shared;
  struct http_thread *thread;
  bool stopped;
};

static struct reply reply;

static int set_up(void **state) {
  struct server *server = guard_calloc(1, sizeof *server);
  struct fault fault = {.message = ""};
  fixture_open(&server->fixture);
  atomic_store(&server->fixture.edge.phase, EDGE_READY);
  server->shared.edge = &server->fixture.edge;
  server->shared.request_ms = short_ms;
  server->shared.ticket_ms = ticket_ms_max;
  server->shared.heartbeat_ms = heartbeat_ms;
  assert_int_equal(http_thread_start(&server->shared, dup(server->fixture.listen_fd), 64, &server->thread, &fault), STATUS_OK);
  fixture_run_engine(&server->fixture);
  *state = server;
  return 0;
}

static void stop(struct server *server) {
  atomic_store(&server->shared.stopping, true);
  http_thread_wake(server->thread);
  assert_true(http_thread_join(server->thread));
  server->stopped = true;
}

static int tear_down(void **state) {
  struct server *server = *state;
  if (!server->stopped) stop(server);
  assert_int_equal(atomic_load(&server->shared.feed_readers), 0); /* every place was given back */
  fixture_close(&server->fixture);
  free(server);
  return 0;
}

#define STREAM \
  "GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_PEOPLE "\r\nAccept: text/event-stream\r\n\r\n"
#define PAGE \
  "GET /v1/events?types=task.reviewed&wait_ms=30000 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_PEOPLE "\r\n\r\n"

static int open_and_send(struct server *server, const char *text) {
  int fd = client_connect(&server->fixture);
  client_send_text(fd, text);
  return fd;
}

/* Reads until the text has come; what came before it is dropped. False: the connection ended before. */
static bool read_past(int fd, const char *text) {
  size_t matched = 0;
  char byte;
  while (text[matched] != '\0') {
    if (!client_read_byte(fd, &byte)) return false;
    matched = byte == text[matched] ? matched + 1 : byte == text[0];
  }
  return true;
}

/* Waits until so many requests read the feed. */
static void wait_readers(struct server *server, uint32_t count) {
  for (unsigned naps = 0; atomic_load(&server->shared.feed_readers) != count; naps++) {
    assert_true(naps < 10000);
    (void)poll(NULL, 0, 1);
  }
}

/* ---- One that never reads ---- */

/* Events enough to fill what the system keeps for a socket: one batch of tasks with long names. */
static void submit_many(struct server *server, unsigned round) {
  struct buffer body;
  char name[129];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  buffer_init(&body, 4 << 20);
  buffer_append_text(&body, "{\"items\":[");
  for (unsigned i = 0; i < tasks; i++)
    buffer_append_format(&body,
                         "%s{\"idempotency_key\":\"k%u-%u\",\"queue_id\":\"" QUEUE_A
                         "\",\"handler\":\"%s\",\"handler_version\":\"%s\",\"payload_version\":\"%s\",\"payload\":1,"
                         "\"business_key\":\"%s%s\",\"task_timeout_ms\":60000}",
                         i > 0 ? "," : "", round, i, name, name, name, name, name);
  buffer_append_text(&body, "]}");
  struct buffer text;
  buffer_init(&text, 5 << 20);
  buffer_append_format(&text,
                       "POST /v1/tasks:batch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_PEOPLE
                       "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                       body.size);
  buffer_append_bytes(&text, buffer_bytes(&body));
  int fd = client_connect(&server->fixture);
  client_send(fd, text.data, text.size);
  assert_true(read_past(fd, "HTTP/1.1 200"));
  guard_close(&fd);
  buffer_clear(&body), buffer_clear(&text);
}

static void one_that_never_reads_is_cut_off(void **state) {
  struct server *server = *state;
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(server->fixture.port)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 2048;
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  client_send_text(fd, STREAM);
  wait_readers(server, 1);
  for (unsigned round = 0; round < rounds; round++) submit_many(server, round);
  client_submit(&server->fixture, TOKEN_PEOPLE, "meanwhile", SUBMISSION(QUEUE_A, "{}"), &reply);
  assert_int_equal(reply.status, 201); /* nobody waits for it */
  wait_readers(server, 0);             /* it has been cut off */
  static char piece[64 * 1024];
  size_t came = 0;
  for (ssize_t count; (count = recv(fd, piece, sizeof piece, 0)) > 0;) came += (size_t)count;
  assert_true(came > 0 && came < (size_t)tasks * rounds * 1000); /* not all of it */
  guard_close(&fd);
}

/* ---- Heartbeats, and what ends a stream ---- */

static void a_silent_stream_is_kept_alive(void **state) {
  struct server *server = *state;
  int fd = open_and_send(server, "GET /v1/events?types=task.reviewed HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_PEOPLE
                                 "\r\nAccept: text/event-stream\r\n\r\n");
  assert_true(read_past(fd, "retry: 1000\n\n"));
  char id[32];
  for (unsigned i = 0; i < 20; i++) assert_true(read_past(fd, ": heartbeat\n")); /* far longer than a request may take */
  client_submit(&server->fixture, TOKEN_PEOPLE, "a", SUBMISSION(QUEUE_A, "{}"), &reply);
  assert_int_equal(reply.status, 201);
  (void)snprintf(id, sizeof id, "heartbeat\nid: %llu\n", (unsigned long long)engine_position(server->fixture.edge.engine));
  assert_true(read_past(fd, id)); /* what was passed over need not be looked at again */
  guard_close(&fd);
  wait_readers(server, 0); /* the next heartbeat finds that nobody is there */
}

static void a_revoked_credential_reads_no_more(void **state) {
  struct server *server = *state;
  int stream = open_and_send(server, STREAM), page = open_and_send(server, PAGE);
  assert_true(read_past(stream, "retry: 1000\n\n"));
  wait_readers(server, 2);
  char text[512];
  struct id people = fixture_id(0xc11);
  (void)snprintf(text, sizeof text,
                 "POST /v1/credentials/%s:revoke HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_ADMIN
                 "\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}",
                 id_text(&people).text);
  client_exchange(&server->fixture, text, &reply);
  assert_int_equal(reply.status, 200);
  assert_true(read_past(stream, "\r\n0\r\n\r\n")); /* the last chunk */
  stop(server);                                    /* a page would wait for the whole of its time */
  client_receive(page, &reply);
  assert_int_equal(reply.status, 401);
  guard_close(&stream), guard_close(&page);
}

/* ---- Too many ---- */

static void there_is_room_for_so_many(void **state) {
  struct server *server = *state;
  atomic_fetch_add(&server->shared.feed_readers, feed_readers_max - 2);
  int first = open_and_send(server, PAGE), second = open_and_send(server, STREAM);
  wait_readers(server, feed_readers_max);
  static const char *const more[] = {PAGE, STREAM};
  for (unsigned i = 0; i < 2; i++) {
    client_exchange(&server->fixture, more[i], &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, 503);
    assert_string_equal(reply_text(&reply, "code"), "UNAVAILABLE");
  }
  client_get(&server->fixture, TOKEN_PEOPLE, "/v1/info", &reply); /* others are not in the way */
  assert_int_equal(reply.status, 200);
  guard_close(&second);
  wait_readers(server, feed_readers_max - 1);
  client_exchange(&server->fixture, "GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_PEOPLE "\r\n\r\n",
                  &reply);
  assert_int_equal(reply.status, 200);
  atomic_fetch_sub(&server->shared.feed_readers, feed_readers_max - 2);
  stop(server);
  guard_close(&first);
}

/* ---- The end ---- */

static void a_stop_answers_all_who_wait(void **state) {
  struct server *server = *state;
  int pages[8], streams[8];
  for (unsigned i = 0; i < 8; i++) {
    pages[i] = open_and_send(server, PAGE);
    streams[i] = open_and_send(server, STREAM);
  }
  wait_readers(server, 16);
  for (unsigned i = 0; i < 8; i++) assert_true(read_past(streams[i], "retry: 1000\n\n"));
  int64_t before = clock_monotonic_us();
  stop(server);
  assert_true(clock_monotonic_us() - before < INT64_C(1000) * http_stop_ms_max + 20000000);
  for (unsigned i = 0; i < 8; i++) {
    client_receive(pages[i], &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, 200);
    assert_non_null(strstr(reply_body(&reply), "{\"items\":[],\"next_position\":\""));
    assert_true(read_past(streams[i], "\r\n0\r\n\r\n"));
    guard_close(&pages[i]), guard_close(&streams[i]);
  }
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      ROW(one_that_never_reads_is_cut_off), ROW(a_silent_stream_is_kept_alive), ROW(a_revoked_credential_reads_no_more),
      ROW(there_is_room_for_so_many),       ROW(a_stop_answers_all_who_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
