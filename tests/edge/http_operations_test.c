/* What was done to a task, over HTTP: operations page by page, its events as stored; and who may see and do what on every route
 * about tasks, where what is out of reach looks like what is not there. */
#include "edge/http_people.h"

static struct reply reply;

#define REVIEW                                                                                       \
  "{\"expected_revision\":\"4\",\"reason\":\"r\",\"evidence_ref\":\"e\",\"execution_settled\":true," \
  "\"outcome\":\"FAILED\",\"result\":{}}"
#define RETRY \
  "{\"expected_revision\":\"5\",\"reason\":\"r\",\"evidence_ref\":\"e\",\"safe_to_retry\":true,\"task_timeout_ms\":60000}"
#define CANCEL "{\"reason\":\"r\"}"

/* A task that was accepted, leased, started, reported, reviewed, retried: six operations; its child is leased. */
static void live_a_life(struct server *server, const char *key, char id[id_chars + 1]) {
  submit_task(server, key, id);
  (void)worker_run(server, OUTCOME_UNKNOWN, false);
  client_post(&server->fixture, TOKEN_PEOPLE, key, task_target(id, ":review").text, REVIEW, &reply);
  assert_int_equal(reply.status, 200);
  client_post(&server->fixture, TOKEN_PEOPLE, key, task_target(id, ":retry").text, RETRY, &reply);
  assert_int_equal(reply.status, 201);
  (void)worker_run(server, OUTCOME_SUCCEEDED, false);
}

/* ---- Operations ---- */

static const char *const actions[] = {"task.retry", "task.review", "task.finish", "task.start", "task.lease", "task.accept"};
enum { action_count = sizeof actions / sizeof actions[0] };

/* The detail is the summary and more. */
static void check_detail(struct server *server, const char *id, const char *summary) {
  static struct reply detail;
  char audit[id_chars + 1], target[256];
  text_keep(audit, sizeof audit, reply_text(&reply, "id"));
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/operations/%s", id, audit);
  client_read(&server->fixture, TOKEN_PEOPLE, target, &detail);
  assert_int_equal(detail.status, 200);
  const char *data = strstr(reply_body(&detail), "\"data\":{");
  assert_non_null(data);
  assert_int_equal(strncmp(data + 8, summary, strlen(summary)), 0);
  assert_non_null(strstr(data, ",\"after\":{"));
  assert_null(strstr(data, "payload"));
}

/* Pages of one: newest first, each once, the end without cursor. */
static void test_pages(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], target[2048], cursor[1100] = "", last[id_chars + 1] = "ffffffffffffffffffffffffffffffff";
  worker_hello(server, "h", "1");
  live_a_life(server, "pages", id);
  for (unsigned page = 0; page < action_count; page++) {
    (void)snprintf(target, sizeof target, "/v1/tasks/%s/operations?limit=1%s%s", id, page > 0 ? "&cursor=" : "", cursor);
    client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_text(&reply, "action"), actions[page]);
    assert_int_equal(count_of(&reply, "\"action\":"), 1);
    assert_true(strcmp(reply_text(&reply, "id"), last) < 0);
    text_keep(last, sizeof last, reply_text(&reply, "id"));
    if (page + 1 < action_count) text_keep(cursor, sizeof cursor, reply_text(&reply, "next_cursor"));
    else assert_null(reply_text(&reply, "next_cursor"));
    char summary[512];
    const char *row = strstr(reply_body(&reply), "\"items\":[{") + 10;
    (void)snprintf(summary, sizeof summary, "%.*s", (int)strcspn(row, "}"), row);
    check_detail(server, id, summary);
  }
}

static void expect_bad_cursor(struct server *server, const char *id, const char *list, const char *cursor) {
  char target[2048];
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/%s?cursor=%s", id, list, cursor);
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
  expect_refusal(&reply, 400, "INVALID_ARGUMENT", "cursor");
}

/* A cursor fits the list and the task that it came from, and cannot be made. */
static void test_cursors(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], other[id_chars + 1], cursor[1100], target[2048];
  worker_hello(server, "h", "1");
  live_a_life(server, "cursors-1", id);
  live_a_life(server, "cursors-2", other);
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/operations?limit=1", id);
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
  text_keep(cursor, sizeof cursor, reply_text(&reply, "next_cursor"));
  expect_bad_cursor(server, other, "operations", cursor);
  expect_bad_cursor(server, id, "events", cursor);
  expect_bad_cursor(server, id, "attempts", cursor);
  for (size_t i = 0; cursor[i] != '\0'; i++) {
    char kept = cursor[i];
    cursor[i] = kept == 'A' ? 'B' : 'A';
    expect_bad_cursor(server, id, "operations", cursor);
    cursor[i] = kept;
  }
  expect_bad_cursor(server, id, "operations", "");
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/operations?cursor=%s", id, cursor);
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
  assert_int_equal(count_of(&reply, "\"action\":"), action_count - 1);
}

static void test_parameters(void **state) {
  static const struct {
    const char *rest;
    int status;
    const char *field;
  } cases[] = {
      {"?limit=0", 400, "limit"},
      {"?limit=101", 400, "limit"},
      {"?limit=01", 400, "limit"},
      {"?limit=x", 400, "limit"},
      {"?limit=1&limit=1", 400, "limit"},
      {"?action=task.retry", 400, "action"},
      {"?limit=100", 200, NULL},
      {"/0000018bcfe568000000000000000fff", 404, NULL},
      {"/nothing", 404, NULL},
      {"/0000018bcfe568000000000000000fff?limit=1", 400, "limit"},
  };
  struct server *server = *state;
  char id[id_chars + 1], rest[256], long_cursor[cursor_chars_max + 2], target[2048];
  submit_task(server, "parameters", id);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    (void)snprintf(rest, sizeof rest, "/operations%s", cases[i].rest);
    client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, rest).text, &reply);
    if (cases[i].status == 200) assert_int_equal(reply.status, 200);
    else expect_refusal(&reply, cases[i].status, cases[i].status == 404 ? "NOT_FOUND" : "INVALID_ARGUMENT", cases[i].field);
  }
  memset(long_cursor, 'A', sizeof long_cursor - 1);
  long_cursor[sizeof long_cursor - 1] = '\0';
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/operations?cursor=%s", id, long_cursor);
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
  expect_refusal(&reply, 400, "INVALID_ARGUMENT", "cursor");
  char text[1024];
  (void)snprintf(text, sizeof text,
                 "GET /v1/tasks/%s/operations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_PEOPLE
                 "\r\nIdempotency-Key: k\r\n\r\n",
                 id);
  client_exchange(&server->fixture, text, &reply);
  expect_refusal(&reply, 400, "INVALID_ARGUMENT", "Idempotency-Key");
}

/* One task's operations are no other's. */
static void test_operations_of_another(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], other[id_chars + 1], audit[id_chars + 1], rest[128];
  submit_task(server, "mine", id);
  submit_task(server, "other", other);
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/operations").text, &reply);
  text_keep(audit, sizeof audit, reply_text(&reply, "id"));
  (void)snprintf(rest, sizeof rest, "/operations/%s", audit);
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, rest).text, &reply);
  assert_int_equal(reply.status, 200);
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(other, rest).text, &reply);
  expect_refusal(&reply, 404, "NOT_FOUND", NULL);
}

/* ---- Events ---- */

static void test_events(void **state) {
  static const char *const types[] = {"task.accepted",  "task.leased",          "task.started",
                                      "attempt.result", "task.review_required", "task.reviewed",
                                      "audit.recorded", "task.retried",         "audit.recorded"};
  enum { type_count = sizeof types / sizeof types[0], page_rows = 4 };
  struct server *server = *state;
  char id[id_chars + 1], target[2048], cursor[1100] = "";
  unsigned seen = 0;
  unsigned long position = 0;
  worker_hello(server, "h", "1");
  live_a_life(server, "events", id);
  for (bool more = true; more;) {
    (void)snprintf(target, sizeof target, "/v1/tasks/%s/events?limit=%d%s%s", id, page_rows, seen > 0 ? "&cursor=" : "",
                   cursor);
    client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
    assert_int_equal(reply.status, 200);
    for (const char *row = reply_body(&reply); (row = strstr(row, "{\"position\":\"")) != NULL; row++) {
      char expected[512];
      unsigned long at = strtoul(row + 13, NULL, 10);
      assert_true(seen < type_count && at > position);
      (void)snprintf(expected, sizeof expected, "{\"position\":\"%lu\",\"type\":\"%s\",\"time\":\"", at, types[seen]);
      assert_int_equal(strncmp(row, expected, strlen(expected)), 0);
      (void)snprintf(expected, sizeof expected, "\"task_id\":\"%s\",\"queue_id\":\"" QUEUE_A "\",\"revision\":\"", id);
      assert_non_null(strstr(row, expected));
      position = at;
      seen++;
    }
    const char *next = reply_text(&reply, "next_cursor");
    more = next != NULL;
    if (more) text_keep(cursor, sizeof cursor, next);
    assert_true(!more || seen % page_rows == 0);
  }
  assert_int_equal(seen, type_count);
}

/* Documents stand in events as they are stored, numbers as written. */
static void test_event_documents(void **state) {
  struct server *server = *state;
  char id[id_chars + 1];
  client_submit(&server->fixture, TOKEN_PEOPLE, "documents", SUBMISSION(QUEUE_A, "{ \"n\" : [1.10, 1e400] }"), &reply);
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "/events").text, &reply);
  assert_non_null(strstr(reply_body(&reply), "\"payload\":{\"n\":[1.10,1e400]}"));
}

/* ---- Who may ---- */

/* Every route about one task; BODY routes are writes. */
static const struct task_route {
  const char *method, *rest, *body;
  const char *permission;
} task_routes[] = {
    {"GET", "", NULL, "tasks:read"},
    {"GET", "/attempts", NULL, "tasks:read"},
    {"GET", "/attempts/0000018bcfe568000000000000000fff", NULL, "tasks:read"},
    {"GET", "/evidence", NULL, "tasks:read"},
    {"GET", "/operations", NULL, "tasks:audit:read"},
    {"GET", "/operations/0000018bcfe568000000000000000fff", NULL, "tasks:audit:read"},
    {"GET", "/events", NULL, "tasks:audit:read"},
    {"POST", ":cancel", CANCEL, "tasks:cancel"},
    {"POST", ":review", REVIEW, "tasks:review"},
    {"POST", ":retry", RETRY, "tasks:retry"},
};
enum { task_route_count = sizeof task_routes / sizeof task_routes[0] };

static void ask_route(struct server *server, const struct task_route *route, const char *token, const char *id) {
  struct target_text target = task_target(id, route->rest);
  if (route->body == NULL) client_read(&server->fixture, token, target.text, &reply);
  else client_write(&server->fixture, route->method, token, "who", target.text, route->body, &reply);
}

/* Without the permission 403, which names it, whether the task is there or not. */
static void test_permissions(void **state) {
  struct server *server = *state;
  char id[id_chars + 1];
  submit_task(server, "permissions", id);
  const char *ids[] = {id, "0000018bcfe568000000000000000fff", "nothing"};
  for (size_t i = 0; i < task_route_count; i++) {
    for (size_t j = 0; j < 3; j++) {
      ask_route(server, &task_routes[i], TOKEN_WORK, ids[j]);
      expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
      assert_non_null(strstr(reply_text(&reply, "message"), task_routes[i].permission));
      ask_route(server, &task_routes[i], TOKEN_ADMIN, ids[j]); /* admin is nothing on tasks */
      expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
      ask_route(server, &task_routes[i], TOKEN_ROOT, ids[j]);
      expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
      ask_route(server, &task_routes[i], "orbit_nobody", ids[j]);
      expect_refusal(&reply, 401, "UNAUTHENTICATED", "Authorization");
    }
  }
  expect_task(server, id, "WAITING", "1");
}

/* The body with every occurrence of an id and the request id blotted out. */
static void blotted_body(const char *id, char *out, size_t size) {
  (void)snprintf(out, size, "%s", reply_body(&reply));
  memset(out + 15, '#', request_id_chars);
  for (char *at = out; (at = strstr(at, id)) != NULL;) memset(at, '#', strlen(id));
}

/* A task of another queue or namespace is told exactly as one that never was. */
static void test_out_of_reach(void **state) {
  static const char *const strangers[] = {TOKEN_PEOPLE_B, TOKEN_PEOPLE_OTHER};
  static const char absent_id[] = "0000018bcfe568000000000000000fff";
  struct server *server = *state;
  char id[id_chars + 1], there[1024], absent[1024];
  submit_task(server, "out-of-reach", id);
  for (size_t i = 0; i < task_route_count; i++) {
    for (size_t j = 0; j < sizeof strangers / sizeof strangers[0]; j++) {
      ask_route(server, &task_routes[i], strangers[j], id);
      expect_refusal(&reply, 404, "NOT_FOUND", NULL);
      blotted_body(id, there, sizeof there);
      ask_route(server, &task_routes[i], strangers[j], absent_id);
      expect_refusal(&reply, 404, "NOT_FOUND", NULL);
      blotted_body(absent_id, absent, sizeof absent);
      assert_string_equal(there, absent);
    }
  }
  expect_task(server, id, "WAITING", "1");
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_pages, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_cursors, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_parameters, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_operations_of_another, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_events, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_event_documents, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_permissions, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_out_of_reach, server_open, server_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
