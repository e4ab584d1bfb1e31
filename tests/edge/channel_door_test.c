/* Who gets into the worker channel: the upgrade request, field by field, and what is answered to the others. */
#include "channel_fixture.h"

#define LINE(text) text "\r\n"
#define GET LINE("GET /v1/worker HTTP/1.1")
#define HOST LINE("Host: orbit")
#define UPGRADE LINE("Upgrade: websocket")
#define CONNECTION LINE("Connection: keep-alive, Upgrade")
#define VERSION LINE("Sec-WebSocket-Version: 13")
#define KEY LINE("Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==")
#define PROTOCOL LINE("Sec-WebSocket-Protocol: orbit.worker.v1")
#define TOKEN LINE("Authorization: Bearer " TOKEN_WORKER)
#define END "\r\n"

static const struct {
  const char *request;
  int status;
  const char *body; /* a part of it */
} requests[] = {
    {GET HOST UPGRADE CONNECTION VERSION KEY PROTOCOL TOKEN END, 101, ""},
    {GET HOST UPGRADE CONNECTION VERSION KEY LINE("Sec-WebSocket-Protocol: other, orbit.worker.v1") TOKEN END, 101, ""},
    {GET HOST UPGRADE CONNECTION VERSION KEY PROTOCOL LINE("Authorization: bearer " TOKEN_WORKER) END, 101, ""},
    /* path and method */
    {LINE("GET / HTTP/1.1") HOST UPGRADE CONNECTION VERSION KEY PROTOCOL TOKEN END, 404, "NOT_FOUND"},
    {LINE("GET /v1/workers HTTP/1.1") HOST UPGRADE CONNECTION VERSION KEY PROTOCOL TOKEN END, 404, "NOT_FOUND"},
    {LINE("GET /v1/worker/ HTTP/1.1") HOST UPGRADE CONNECTION VERSION KEY PROTOCOL TOKEN END, 404, "NOT_FOUND"},
    {LINE("GET /V1/worker HTTP/1.1") HOST UPGRADE CONNECTION VERSION KEY PROTOCOL TOKEN END, 404, "NOT_FOUND"},
    {LINE("GET /v1/worker?a=1 HTTP/1.1") HOST UPGRADE CONNECTION VERSION KEY PROTOCOL TOKEN END, 400, "INVALID_ARGUMENT"},
    {LINE("POST /v1/worker HTTP/1.1") HOST UPGRADE CONNECTION VERSION KEY PROTOCOL TOKEN END, 405, "METHOD_NOT_ALLOWED"},
    /* the upgrade */
    {GET HOST TOKEN END, 426, "\"field\":\"Upgrade\""},
    {GET HOST LINE("Upgrade: h2c") CONNECTION LINE("HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA") TOKEN END, 426, "Upgrade"},
    {GET HOST UPGRADE LINE("Connection: close") VERSION KEY PROTOCOL TOKEN END, 400, "\"field\":\"Connection\""},
    {GET HOST UPGRADE CONNECTION KEY PROTOCOL TOKEN END, 426, "\"field\":\"Sec-WebSocket-Version\""},
    {GET HOST UPGRADE CONNECTION LINE("Sec-WebSocket-Version: 8") KEY PROTOCOL TOKEN END, 426, "Sec-WebSocket-Version"},
    {GET HOST UPGRADE CONNECTION LINE("Sec-WebSocket-Version: 130") KEY PROTOCOL TOKEN END, 426, "Sec-WebSocket-Version"},
    {GET HOST UPGRADE CONNECTION VERSION KEY TOKEN END, 400, "\"field\":\"Sec-WebSocket-Protocol\""},
    {GET HOST UPGRADE CONNECTION VERSION KEY LINE("Sec-WebSocket-Protocol: orbit.worker.v2") TOKEN END, 400, "Protocol"},
    {GET HOST UPGRADE CONNECTION VERSION KEY LINE("Sec-WebSocket-Protocol: orbit.worker.v11") TOKEN END, 400, "Protocol"},
    {GET HOST UPGRADE CONNECTION VERSION KEY LINE("Sec-WebSocket-Protocol: ORBIT.WORKER.V1") TOKEN END, 400, "Protocol"},
    {GET HOST UPGRADE CONNECTION VERSION PROTOCOL TOKEN END, 400, "\"field\":\"Sec-WebSocket-Key\""},
    {GET HOST UPGRADE CONNECTION VERSION LINE("Sec-WebSocket-Key: short") PROTOCOL TOKEN END, 400, "Sec-WebSocket-Key"},
    {GET UPGRADE CONNECTION VERSION KEY PROTOCOL TOKEN END, 400, "\"field\":\"Host\""},
    /* the credential */
    {GET HOST UPGRADE CONNECTION VERSION KEY PROTOCOL END, 401, "UNAUTHENTICATED"},
    {GET HOST UPGRADE CONNECTION VERSION KEY PROTOCOL LINE("Authorization: Bearer nonsense") END, 401, "UNAUTHENTICATED"},
    {GET HOST UPGRADE CONNECTION VERSION KEY PROTOCOL LINE("Authorization: Basic b3JiaXQ6eA==") END, 401, "UNAUTHENTICATED"},
    {GET HOST UPGRADE CONNECTION VERSION KEY PROTOCOL TOKEN TOKEN END, 401, "UNAUTHENTICATED"},
    {GET HOST UPGRADE CONNECTION VERSION KEY PROTOCOL LINE("Authorization: Bearer " TOKEN_READER) END, 403, "tasks:consume"},
};

struct refusal {
  int status;
  char head[2048], body[2048];
};

/* Sends the request and reads what comes; a refusal has a body, and then the connection ends. */
static void ask(const struct fixture *fixture, const char *request, struct refusal *ret) {
  memset(ret, 0, sizeof *ret);
  int fd = socket_connect(fixture, 0);
  socket_send(fd, request, strlen(request));
  assert_true(socket_read_head(fd, ret->head, sizeof ret->head));
  assert_int_equal(strncmp(ret->head, "HTTP/1.1 ", 9), 0);
  ret->status = (int)strtol(ret->head + 9, NULL, 10);
  if (ret->status != 101) {
    const char *length = strcasestr(ret->head, "\r\nContent-Length: ");
    assert_non_null(length);
    size_t size = strtoul(length + 18, NULL, 10);
    assert_true(size < sizeof ret->body);
    assert_true(socket_read(fd, ret->body, size));
    char more;
    assert_false(socket_read(fd, &more, 1));
  }
  guard_close(&fd);
}

static void assert_envelope(const struct refusal *refusal) {
  char id[request_id_chars + 1], line[64];
  assert_int_equal(strncmp(refusal->body, "{\"request_id\":\"", 15), 0);
  (void)snprintf(id, sizeof id, "%s", refusal->body + 15);
  (void)snprintf(line, sizeof line, "\r\nX-Request-Id: %s\r\n", id);
  assert_non_null(strcasestr(refusal->head, line));
  assert_non_null(strcasestr(refusal->head, "\r\nContent-Type: application/json\r\n"));
  assert_non_null(strcasestr(refusal->head, "\r\nConnection: close\r\n"));
  assert_non_null(strstr(refusal->body, "\"error\":{\"code\":\""));
  if (refusal->status == 401) assert_non_null(strcasestr(refusal->head, "\r\nWWW-Authenticate: Bearer\r\n"));
  if (refusal->status == 405) assert_non_null(strcasestr(refusal->head, "\r\nAllow: GET\r\n"));
  if (refusal->status == 426) assert_non_null(strcasestr(refusal->head, "\r\nSec-WebSocket-Version: 13\r\n"));
  if (refusal->status == 503) assert_non_null(strcasestr(refusal->head, "\r\nRetry-After: 1\r\n"));
}

static void requests_are_judged(void **state) {
  (void)state;
  struct fixture fixture;
  struct refusal refusal;
  fixture_open(&fixture);
  for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
    ask(&fixture, requests[i].request, &refusal);
    if (refusal.status != requests[i].status)
      fail_msg("%d, expected %d for\n%s", refusal.status, requests[i].status, requests[i].request);
    assert_non_null(strstr(refusal.body, requests[i].body));
    if (refusal.status != 101) {
      assert_envelope(&refusal);
      assert_null(strstr(refusal.body, "orbit_")); /* no token is told again */
    } else {
      assert_non_null(strcasestr(refusal.head, "\r\nSec-WebSocket-Protocol: orbit.worker.v1\r\n"));
      assert_non_null(strcasestr(refusal.head, "\r\nSec-WebSocket-Accept: "));
    }
  }
  fixture_await_sessions(&fixture, 0);
  fixture_close(&fixture);
}

static void what_is_no_http_is_closed(void **state) {
  (void)state;
  static const char *const rubbish[] = {"\x16\x03\x01\x02", "nonsense\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                        "GET /v1/worker\r\n\r\n"};
  struct fixture fixture;
  fixture_open(&fixture);
  for (size_t i = 0; i < sizeof rubbish / sizeof rubbish[0]; i++) {
    int fd = socket_connect(&fixture, 0);
    socket_send(fd, rubbish[i], strlen(rubbish[i]));
    (void)shutdown(fd, SHUT_WR);
    char text[4096];
    size_t size = 0;
    while (size < sizeof text - 1 && socket_read(fd, text + size, 1)) size++;
    assert_true(size < sizeof text - 1);
    text[size] = '\0';
    if (size > 0 && (strncmp(text, "HTTP/1.1 4", 10) != 0 || strstr(text, "\"error\":{\"code\":\"") == NULL))
      fail_msg("%zu: %s", i, text);
    guard_close(&fd);
  }
  struct client client; /* and it serves on */
  client_greet(&client, &fixture, HELLO);
  client_close(&client);
  fixture_close(&fixture);
}

static void a_head_without_end_is_cut_off(void **state) {
  (void)state;
  struct fixture fixture;
  fixture_open(&fixture);
  int fd = socket_connect(&fixture, 0);
  socket_send(fd, GET, strlen(GET));
  char byte;
  assert_false(socket_read(fd, &byte, 1)); /* after worker_handshake_s_max, well before the client would give up */
  guard_close(&fd);
  fixture_close(&fixture);
}

static void nobody_gets_in_before_ready_and_while_leaving(void **state) {
  (void)state;
  static const struct {
    int phase;
    bool goaway;
    int status;
  } rows[] = {{EDGE_REPLAYING, false, 503}, {EDGE_DRAINING, false, 503}, {EDGE_READY, false, 101}, {EDGE_READY, true, 503}};
  struct fixture fixture;
  struct refusal refusal;
  fixture_open(&fixture);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    atomic_store(&fixture.edge.phase, rows[i].phase);
    if (rows[i].goaway) channel_goaway(fixture.channel);
    ask(&fixture, HANDSHAKE(TOKEN_WORKER), &refusal);
    assert_int_equal(refusal.status, rows[i].status);
    if (refusal.status != 101) assert_envelope(&refusal);
  }
  fixture_close(&fixture);
}

/* Out of descriptors: the listening socket waits without a busy loop, and is served again when there are some. */
static void it_stays_calm_without_descriptors(void **state) {
  (void)state;
  struct fixture fixture;
  struct refusal refusal;
  enum { hoard_max = 65536 };
  fixture_open(&fixture);
  int waiting = socket_connect(&fixture, 0), late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socket_send(waiting, GET HOST END, strlen(GET HOST END));
  char head[2048];
  assert_true(socket_read_head(waiting, head, sizeof head)); /* it was accepted: the next one finds none left */
  int *hoard = malloc(sizeof *hoard * hoard_max);
  assert_non_null(hoard);
  int count = 0;
  while (count < hoard_max && (hoard[count] = dup(late)) >= 0) count++;
  assert_true(count < hoard_max);
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(fixture.port)};
  assert_int_equal(connect(late, (struct sockaddr *)&address, sizeof address), 0);
  struct timespec before, after;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  (void)poll(NULL, 0, 300); /* how long is measured: the time that the process computes meanwhile */
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  int64_t spent_us = (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;
  while (count > 0) (void)close(hoard[--count]);
  free(hoard);
  assert_true(spent_us < 150000);
  socket_send(late, GET HOST END, strlen(GET HOST END));
  assert_true(socket_read_head(late, head, sizeof head));
  guard_close(&late);
  guard_close(&waiting);
  ask(&fixture, HANDSHAKE(TOKEN_WORKER), &refusal);
  assert_int_equal(refusal.status, 101);
  fixture_close(&fixture);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(requests_are_judged),
      cmocka_unit_test(what_is_no_http_is_closed),
      cmocka_unit_test(a_head_without_end_is_cut_off),
      cmocka_unit_test(nobody_gets_in_before_ready_and_while_leaving),
      cmocka_unit_test(it_stays_calm_without_descriptors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
