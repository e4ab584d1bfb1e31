/* The HTTP edge over real sockets: what every answer has, and what each route of tasks says. */
#include "edge/http_fixture.h"

struct server {
  struct fixture fixture;
  struct http *http;
};

static int set_up(void **state) {
  struct server *server = guard_calloc(1, sizeof *server);
  struct fault fault = {.message = ""};
  fixture_open(&server->fixture);
  fixture_run_engine(&server->fixture);
  atomic_store(&server->fixture.edge.phase, EDGE_READY);
  if (http_start(&server->fixture.edge, server->fixture.listen_fd, 2, &server->http, &fault) != STATUS_OK) return -1;
  *state = server;
  return 0;
}

static int tear_down(void **state) {
  struct server *server = *state;
  http_stop(server->http);
  fixture_close(&server->fixture);
  free(server);
  return 0;
}

static void test_phases(void **state) {
  struct server *server = *state;
  struct fixture *fixture = &server->fixture;
  struct reply reply;
  atomic_store(&fixture->edge.replay_permille, 375);
  for (int phase = EDGE_REPLAYING; phase <= EDGE_DRAINING; phase++) {
    atomic_store(&fixture->edge.phase, phase);
    client_get(fixture, TOKEN_ALL, "/healthz", &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, 200);
    client_get(fixture, TOKEN_ALL, "/readyz", &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, phase == EDGE_READY ? 200 : 503);
    assert_non_null(strstr(reply_body(&reply), phase == EDGE_READY ? "\"ready\":true" : "\"ready\":false"));
    if (phase == EDGE_REPLAYING) assert_non_null(strstr(reply_body(&reply), "\"replay_percent\":37.5"));
    client_get(fixture, TOKEN_ALL, "/v1/info", &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, phase == EDGE_READY ? 200 : 503);
    client_submit(fixture, "unknown", "k", "{}", &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, phase == EDGE_READY ? 401 : 503);
  }
  atomic_store(&fixture->edge.phase, EDGE_READY);
}

static void test_info(void **state) {
  struct server *server = *state;
  struct reply reply;
  client_get(&server->fixture, "none", "/v1/info", &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 200);
  assert_string_equal(reply_text(&reply, "version"), "1.2.3");
  assert_string_equal(reply_text(&reply, "worker_url"), "ws://127.0.0.1:9/v1/worker");
  assert_string_equal(reply_text(&reply, "node_id"), id_text(&server->fixture.edge.node_id).text);
  assert_true(strtoull(reply_text(&reply, "position"), NULL, 10) >= 8); /* what genesis made */
  assert_non_null(strstr(reply_body(&reply), "\"limits\":{\"body_bytes\":524288,"));
  client_get(&server->fixture, "none", "/v1/worker", &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 426);
  assert_non_null(strstr(reply_text(&reply, "message"), "ws://127.0.0.1:9/v1/worker"));
  assert_string_equal(reply_header(&reply, "Upgrade"), "websocket");
}

static void test_submit_and_read(void **state) {
  struct server *server = *state;
  struct fixture *fixture = &server->fixture;
  struct reply reply, again;
  char id[64], target[256];
  client_submit(fixture, TOKEN_ALL, "read-1", SUBMISSION(QUEUE_A, "{ \"n\" : 9007199254740993.10 }"), &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 201);
  assert_non_null(strstr(reply_body(&reply), "\"payload\":{\"n\":9007199254740993.10}"));
  assert_non_null(strstr(reply_body(&reply), "\"deduplicated\":false}}"));
  assert_string_equal(reply_text(&reply, "state"), "WAITING");
  text_keep(id, sizeof id, reply_text(&reply, "id"));

  client_submit(fixture, TOKEN_ALL, "read-1", SUBMISSION(QUEUE_A, "{\"n\":9007199254740993.10}"), &again);
  reply_check(&again);
  assert_int_equal(again.status, 200);
  assert_string_equal(reply_text(&again, "id"), id);
  assert_non_null(strstr(reply_body(&again), "\"deduplicated\":true}}"));

  client_submit(fixture, TOKEN_ALL, "read-1", SUBMISSION(QUEUE_A, "{\"n\":1}"), &again);
  reply_check(&again);
  assert_int_equal(again.status, 409);
  assert_string_equal(reply_text(&again, "code"), "IDEMPOTENCY_CONFLICT");

  /* The same task as it was answered: from its opening brace to its end. */
  (void)snprintf(target, sizeof target, "/v1/tasks/%s", id);
  client_get(fixture, TOKEN_READ, target, &again);
  reply_check(&again);
  assert_int_equal(again.status, 200);
  const char *task = strstr(reply_body(&reply), "\"task\":{"), *read = strstr(reply_body(&again), "\"task\":{");
  assert_non_null(task);
  assert_non_null(read);
  assert_memory_equal(read, task, (size_t)(strstr(task, ",\"deduplicated\"") - task));

  static const char *const lists[] = {"/attempts", "/evidence", "/attempts?limit=1", "/evidence?limit=100"};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    (void)snprintf(target, sizeof target, "/v1/tasks/%s%s", id, lists[i]);
    client_get(fixture, TOKEN_READ, target, &again);
    reply_check(&again);
    assert_int_equal(again.status, 200);
    assert_non_null(strstr(reply_body(&again), "\"data\":{\"items\":[]}}"));
  }
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/attempts/%s", id, id);
  client_get(fixture, TOKEN_READ, target, &again);
  reply_check(&again);
  assert_int_equal(again.status, 404);
}

static void test_scope(void **state) {
  struct server *server = *state;
  struct fixture *fixture = &server->fixture;
  static const char *const outside[] = {TOKEN_OTHER, TOKEN_SCOPED};
  static const char *const ends[] = {"", "/attempts", "/evidence"};
  struct reply reply;
  char id[64], target[256];
  client_submit(fixture, TOKEN_ALL, "scope-1", SUBMISSION(QUEUE_A, "1"), &reply);
  assert_int_equal(reply.status, 201);
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  for (size_t i = 0; i < 2; i++) {
    for (size_t j = 0; j < 3; j++) {
      (void)snprintf(target, sizeof target, "/v1/tasks/%s%s", id, ends[j]);
      client_get(fixture, outside[i], target, &reply);
      reply_check(&reply);
      assert_int_equal(reply.status, 404);
      assert_string_equal(reply_text(&reply, "code"), "NOT_FOUND");
    }
    client_submit(fixture, outside[i], "scope-1", SUBMISSION(QUEUE_A, "1"), &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, 404);
  }
  client_submit(fixture, TOKEN_READ, "scope-1", SUBMISSION(QUEUE_A, "1"), &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 403);
  assert_non_null(strstr(reply_text(&reply, "message"), "tasks:submit"));
}

static void test_back_pressure(void **state) {
  struct server *server = *state;
  struct fixture *fixture = &server->fixture;
  struct reply reply;
  client_submit(fixture, TOKEN_SCOPED, "full-1", SUBMISSION(QUEUE_B, "1"), &reply);
  assert_int_equal(reply.status, 201);
  client_submit(fixture, TOKEN_SCOPED, "full-2", SUBMISSION(QUEUE_B, "1"), &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 429);
  assert_string_equal(reply_text(&reply, "code"), "QUEUE_FULL");
  assert_non_null(strstr(reply_body(&reply), "\"retry_after_ms\":"));
  client_submit(fixture, TOKEN_SCOPED, "full-1", SUBMISSION(QUEUE_B, "1"), &reply); /* the receipt comes before the quota */
  assert_int_equal(reply.status, 200);
}

static void test_bodies(void **state) {
  struct server *server = *state;
  static const struct {
    const char *body;
    int status;
    const char *field;
  } cases[] = {
      {"", 400, NULL},
      {"[]", 400, NULL},
      {"{}", 400, "/queue_id"},
      {"{\"a\":1}", 400, "/a"},
      {"{\"queue_id\":\"" QUEUE_A "\",\"queue_id\":\"" QUEUE_A "\"}", 400, "/queue_id"},
      {SUBMISSION(QUEUE_A, "null"), 400, "/payload"},
      {SUBMISSION(QUEUE_A, "\"\\ud800\""), 400, "/payload"},
      {SUBMISSION(QUEUE_A, "1") "x", 400, NULL},
      {SUBMISSION(QUEUE_A, "1") " ", 201, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct reply reply;
    client_submit(&server->fixture, TOKEN_ALL, "bodies", cases[i].body, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, cases[i].status);
    if (reply.status == 400) assert_string_equal(reply_text(&reply, "code"), "INVALID_ARGUMENT");
    if (cases[i].field != NULL) assert_string_equal(reply_text(&reply, "field"), cases[i].field);
  }
}

static void test_queries(void **state) {
  struct server *server = *state;
#define TASK "/v1/tasks/0000018bcfe568000000000000000fff"
  static const struct {
    const char *target;
    int status;
    const char *field;
  } cases[] = {
      {TASK, 404, NULL},
      {TASK "?limit=1", 400, "limit"},
      {TASK "/attempts?limit=0", 400, "limit"},
      {TASK "/attempts?limit=101", 400, "limit"},
      {TASK "/attempts?limit=1&limit=1", 400, "limit"},
      {TASK "/attempts?cursor=", 400, "cursor"},
      {TASK "/attempts?cursor=AAAA", 400, "cursor"},
      {TASK "/attempts?Limit=1", 400, "Limit"},
      {TASK "/attempts?limit=1", 404, NULL},
      {TASK "%00", 400, NULL},
      {TASK "%2Fattempts", 404, NULL},
      {"/v1/tasks/x", 404, NULL},
      {"/v1/info%00x", 400, NULL},
      {"/v1/info?x=1", 400, "x"},
      {"/healthz?x=1", 400, "x"},
      {"/v1/tasks:batch", 405, NULL},
      {"http://a/healthz", 200, NULL},
  };
#undef TASK
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct reply reply;
    client_get(&server->fixture, TOKEN_ALL, cases[i].target, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, cases[i].status);
    if (cases[i].field != NULL) assert_string_equal(reply_text(&reply, "field"), cases[i].field);
    if (reply.status == 405) assert_string_equal(reply_header(&reply, "Allow"), "POST");
  }
}

/* A connection serves on after a refusal that left no doubt where the request ended. */
static void test_keep_alive(void **state) {
  struct server *server = *state;
  static const char *const targets[] = {"/healthz", "/nothing", "/v1/tasks:batch", "/healthz?x", "/v1/info", "/healthz"};
  static const int statuses[] = {200, 404, 405, 400, 200, 200};
  struct reply reply;
  int fd = client_connect(&server->fixture);
  char text[256], last[64] = "";
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", targets[i]);
    client_send_text(fd, text);
    client_receive(fd, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, statuses[i]);
    assert_string_not_equal(reply_text(&reply, "request_id"), last);
    text_keep(last, sizeof last, reply_text(&reply, "request_id"));
  }
  guard_close(&fd);
}

/* HEAD: the head that GET would have, the length of its body too, and no body, so that the next answer follows at once. */
static void test_head(void **state) {
  struct server *server = *state;
  static const struct {
    const char *target;
    int status;
  } cases[] = {{"/healthz", 200},        {"/readyz", 200},    {"/v1/tasks/x", 404}, {"/nothing", 404},
               {"/v1/tasks:batch", 405}, {"/v1/events", 405}, {"/v1/tasks", 200}};
  int fd = client_connect(&server->fixture);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct reply head, reply;
    char text[512], length[16];
    memset(&head, 0, offsetof(struct reply, text));
    (void)snprintf(text, sizeof text, "HEAD %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_ALL "\r\n\r\n",
                   cases[i].target);
    client_send_text(fd, text);
    assert_true(client_receive_head(fd, &head));
    assert_int_equal(strtol(head.text + 9, NULL, 10), cases[i].status);
    assert_string_equal(reply_header(&head, "Content-Type"), "application/json");
    text_keep(length, sizeof length, reply_header(&head, "Content-Length"));
    if (cases[i].status == 405) continue;
    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_ALL "\r\n\r\n",
                   cases[i].target);
    client_send_text(fd, text);
    client_receive(fd, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, cases[i].status);
    assert_string_equal(reply_header(&reply, "Content-Length"), length);
  }
  guard_close(&fd);
}

static void test_pipelined(void **state) {
  struct server *server = *state;
  enum { many = 50 };
  struct reply reply;
  int fd = client_connect(&server->fixture);
  char text[1024], first[64] = "";
  for (int i = 0; i < many; i++) {
    static const char body[] = SUBMISSION(QUEUE_A, "{\"pipelined\":true}");
    (void)snprintf(text, sizeof text, POST_HEAD(TOKEN_ALL, "pipe-%d") "Content-Length: %zu\r\n\r\n%s", i / 2, sizeof body - 1,
                   body);
    client_send_text(fd, text);
  }
  for (int i = 0; i < many; i++) {
    client_receive(fd, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, i % 2 == 0 ? 201 : 200);
    if (i % 2 == 1) assert_string_equal(reply_text(&reply, "id"), first);
    text_keep(first, sizeof first, reply_text(&reply, "id"));
  }
  guard_close(&fd);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_phases),  cmocka_unit_test(test_info),       cmocka_unit_test(test_submit_and_read),
      cmocka_unit_test(test_scope),   cmocka_unit_test(test_bodies),     cmocka_unit_test(test_back_pressure),
      cmocka_unit_test(test_queries), cmocka_unit_test(test_keep_alive), cmocka_unit_test(test_pipelined),
      cmocka_unit_test(test_head),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
