/* GET /v1/tasks: what a row tells, filters, reach, cursors, and pages that stay whole while a thousand tasks change. */
#define REPLY_BYTES (4 * 1024 * 1024)
#include "edge/http_people.h"

static struct reply reply;

#define CANCEL "{\"reason\":\"r\"}"

/* ---- Rows and filters ---- */

static void submit_work(struct server *server, const char *token, const char *queue, const char *key, const char *handler,
                        const char *business_key) {
  char body[512];
  (void)snprintf(body, sizeof body,
                 "{\"queue_id\":\"%s\",\"handler\":\"%s\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":{},"
                 "\"task_timeout_ms\":60000%s%s%s}",
                 queue, handler, business_key != NULL ? ",\"business_key\":\"" : "", business_key != NULL ? business_key : "",
                 business_key != NULL ? "\"" : "");
  client_submit(&server->fixture, token, key, body, &reply);
  assert_int_equal(reply.status, 201);
}

static unsigned list_rows(struct server *server, const char *token, const char *query) {
  char target[1024];
  (void)snprintf(target, sizeof target, "/v1/tasks%s", query);
  client_read(&server->fixture, token, target, &reply);
  if (reply.status != 200) fail_msg("%s: %s", query, reply_body(&reply));
  return count_of(&reply, "{\"id\":\"");
}

#define SUMMARY_HEAD(id, revision, state)                                                                                    \
  "{\"id\":\"" id "\",\"namespace_id\":\"@i\",\"queue_id\":\"" QUEUE_A "\",\"state\":\"" state "\",\"revision\":\"" revision \
  "\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\","
#define SUMMARY_POLICY                                                                                                   \
  "\"available_at\":\"@t\",\"deadline_at\":\"@t\",\"recovery_safety\":\"RECONCILE_ONLY\",\"retry\":{\"max_attempts\":1," \
  "\"initial_delay_ms\":0,\"max_delay_ms\":0,\"attempt_timeout_ms\":60000},"

/* No payload, result or retry_of; newest first. */
static void test_rows(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  char id[id_chars + 1];
  worker_hello(server, "h", "1");
  submit_work(server, TOKEN_PEOPLE, QUEUE_A, "rows-1", "h", "order 7");
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  (void)worker_run(server, OUTCOME_UNKNOWN, false);
  client_post(&server->fixture, TOKEN_PEOPLE, "r", task_target(id, ":review").text,
              "{\"expected_revision\":\"4\",\"reason\":\"r\",\"evidence_ref\":\"e\",\"execution_settled\":true,"
              "\"outcome\":\"FAILED\",\"result\":{\"secret\":1}}",
              &reply);
  assert_int_equal(reply.status, 200);
  worker_bye(server);
  client_post(
      &server->fixture, TOKEN_PEOPLE, "r", task_target(id, ":retry").text,
      "{\"expected_revision\":\"5\",\"reason\":\"r\",\"evidence_ref\":\"e\",\"safe_to_retry\":true,\"task_timeout_ms\":60000}",
      &reply);
  assert_int_equal(reply.status, 201);
  client_read(&server->fixture, TOKEN_PEOPLE, "/v1/tasks", &reply);
  expect_body(&reply, 200,
              "{\"request_id\":\"@i\",\"data\":{\"items\":[" SUMMARY_HEAD(
                  "@1", "1", "WAITING") "\"business_key\":\"order 7\"," SUMMARY_POLICY
                                        "\"attempt_count\":0,\"created_at\":\"@t\",\"updated_at\":\"@t\"}," SUMMARY_HEAD(
                                            "@2", "5", "FAILED") "\"business_key\":\"order 7\"," SUMMARY_POLICY
                                                                 "\"attempt_count\":1,\"completed_at\":\"@3\",\"created_at\":"
                                                                 "\"@t\",\"updated_at\":\"@3\"}]}}",
              &seen);
  assert_string_equal(seen.text[2], id);
}

static void test_filters(void **state) {
  struct server *server = *state;
  char created[64], query[256];
  submit_work(server, TOKEN_PEOPLE, QUEUE_A, "f-1", "mail.send", "order/1");
  submit_work(server, TOKEN_PEOPLE, QUEUE_A, "f-2", "mail.send", "order/2");
  submit_work(server, TOKEN_PEOPLE, QUEUE_A, "f-3", "mail.read", "order/2");
  text_keep(created, sizeof created, reply_text(&reply, "created_at"));
  submit_work(server, TOKEN_PEOPLE, QUEUE_B, "f-4", "mail.send", NULL);
  client_post(&server->fixture, TOKEN_PEOPLE, "c", task_target(reply_text(&reply, "id"), ":cancel").text, CANCEL, &reply);
  assert_int_equal(reply.status, 200);
  submit_work(server, TOKEN_OTHER, QUEUE_C, "f-5", "mail.send", "order/2");
  static const struct {
    const char *query;
    unsigned rows;
  } cases[] = {
      {"", 4},
      {"?queue_id=" QUEUE_A, 3},
      {"?queue_id=" QUEUE_B, 1},
      {"?state=WAITING", 3},
      {"?state=CANCELLED", 1},
      {"?state=RUNNING", 0},
      {"?handler=mail.send", 3},
      {"?handler=mail", 0},
      {"?business_key=order%2F2", 2},
      {"?business_key=order/2&handler=mail.read", 1},
      {"?business_key=order/2&state=CANCELLED", 0},
      {"?handler=mail.send&queue_id=" QUEUE_B "&state=CANCELLED", 1},
      {"?created_after=2020-01-01T00:00:00Z", 4},
      {"?created_before=2020-01-01T00:00:00Z", 0},
      {"?created_after=2020-01-01T00:00:00Z&created_before=9998-01-01T00:00:00Z&state=WAITING", 3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    unsigned rows = list_rows(server, TOKEN_PEOPLE, cases[i].query);
    if (rows != cases[i].rows) fail_msg("%s: %u rows", cases[i].query, rows);
  }
  /* Both ends are strict. */
  (void)snprintf(query, sizeof query, "?created_after=%s", created);
  assert_int_equal(list_rows(server, TOKEN_PEOPLE, query), 1);
  (void)snprintf(query, sizeof query, "?created_before=%s", created);
  assert_int_equal(list_rows(server, TOKEN_PEOPLE, query), 2);
}

static void test_refusals(void **state) {
  static const struct {
    const char *query;
    int status;
    const char *field;
  } cases[] = {
      {"?limit=0", 400, "limit"},
      {"?limit=101", 400, "limit"},
      {"?limit=1&limit=1", 400, "limit"},
      {"?state=waiting", 400, "state"},
      {"?state=", 400, "state"},
      {"?state=WAITING&state=WAITING", 400, "state"},
      {"?queue_id=x", 400, "queue_id"},
      {"?handler=", 400, "handler"},
      {"?business_key=", 400, "business_key"},
      {"?created_after=yesterday", 400, "created_after"},
      {"?created_before=2026-09-17T00:00:00%2B00:00", 400, "created_before"},
      {"?cursor=AAAA", 400, "cursor"},
      {"?cursor=", 400, "cursor"},
      {"?State=WAITING", 400, "State"},
      {"?order=asc", 400, "order"},
      {"?queue_id=0000018bcfe568000000000000000fff", 404, "queue_id"},
  };
  struct server *server = *state;
  char target[256];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    (void)snprintf(target, sizeof target, "/v1/tasks%s", cases[i].query);
    client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
    expect_refusal(&reply, cases[i].status, cases[i].status == 404 ? "NOT_FOUND" : "INVALID_ARGUMENT", cases[i].field);
  }
  client_read(&server->fixture, TOKEN_WORK, "/v1/tasks", &reply);
  expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
}

/* Nothing of other queues or namespaces, named or not. */
static void test_reach(void **state) {
  struct server *server = *state;
  char id[id_chars + 1];
  submit_task(server, "reach-a", id);
  submit_work(server, TOKEN_PEOPLE, QUEUE_B, "reach-b", "h", NULL);
  assert_int_equal(list_rows(server, TOKEN_PEOPLE, ""), 2);
  assert_int_equal(list_rows(server, TOKEN_PEOPLE_B, ""), 1);
  assert_string_equal(reply_text(&reply, "queue_id"), QUEUE_B);
  assert_int_equal(list_rows(server, TOKEN_PEOPLE_OTHER, ""), 0);
  const char *strangers[] = {TOKEN_PEOPLE_B, TOKEN_PEOPLE_OTHER};
  for (size_t i = 0; i < 2; i++) {
    client_read(&server->fixture, strangers[i], "/v1/tasks?queue_id=" QUEUE_A, &reply);
    expect_refusal(&reply, 404, "NOT_FOUND", "queue_id");
  }
}

/* A cursor is of its filters, its namespace, its list. */
static void test_cursor_binding(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], cursor[1100], target[2048];
  for (unsigned i = 0; i < 3; i++) {
    char key[32];
    (void)snprintf(key, sizeof key, "binding-%u", i);
    submit_task(server, key, id);
  }
  assert_int_equal(list_rows(server, TOKEN_PEOPLE, "?state=WAITING&limit=1"), 1);
  text_keep(cursor, sizeof cursor, reply_text(&reply, "next_cursor"));
  static const struct {
    const char *token, *query;
    int status;
  } cases[] = {
      {TOKEN_PEOPLE, "/v1/tasks?limit=1&state=WAITING", 200},
      {TOKEN_READ, "/v1/tasks?state=WAITING&limit=2", 200}, /* another limit, another credential */
      {TOKEN_PEOPLE, "/v1/tasks?limit=1", 400},
      {TOKEN_PEOPLE, "/v1/tasks?state=RUNNING", 400},
      {TOKEN_PEOPLE, "/v1/tasks?state=WAITING&handler=h", 400},
      {TOKEN_PEOPLE_OTHER, "/v1/tasks?state=WAITING", 400},
      {TOKEN_PEOPLE, "/v1/queues?limit=1", 400},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    (void)snprintf(target, sizeof target, "%s&cursor=%s", cases[i].query, cursor);
    client_read(&server->fixture, cases[i].token, target, &reply);
    if (cases[i].status != 200) expect_refusal(&reply, cases[i].status, "INVALID_ARGUMENT", "cursor");
    else assert_int_equal(reply.status, 200);
  }
}

/* ---- Pages while a thousand tasks change ---- */

enum { thousand = 1000, page_rows = 50 };

static char thousand_ids[thousand][id_chars + 1]; /* oldest first */
static unsigned seen_times[thousand];

static void submit_thousand(struct server *server, const char *prefix) {
  struct buffer body;
  buffer_init(&body, http_batch_body_bytes_max);
  buffer_append_text(&body, "{\"items\":[");
  for (unsigned i = 0; i < thousand; i++)
    buffer_append_format(&body, "%s{\"idempotency_key\":\"%s-%u\",%s", i > 0 ? "," : "", prefix, i,
                         &SUBMISSION(QUEUE_A, "{}")[1]);
  buffer_append_text(&body, "]}");
  buffer_append_char(&body, '\0');
  client_post(&server->fixture, TOKEN_PEOPLE, "unused", "/v1/tasks:batch", (const char *)body.data, &reply);
  buffer_clear(&body);
  assert_int_equal(reply.status, 200);
  unsigned count = 0;
  for (const char *at = reply_body(&reply); (at = strstr(at, "\"task\":{\"id\":\"")) != NULL && count < thousand; at++)
    (void)snprintf(thousand_ids[count++], sizeof thousand_ids[0], "%.32s", at + 14);
  assert_int_equal(count, thousand);
}

static int compare_ids(const void *a, const void *b) { return strcmp(a, b); }

/* Counts the rows of the page; ids that are none of the thousand are left out. */
static void count_page(void) {
  for (const char *at = reply_body(&reply); (at = strstr(at, "{\"id\":\"")) != NULL; at++) {
    char id[id_chars + 1];
    (void)snprintf(id, sizeof id, "%.32s", at + 7);
    char(*found)[id_chars + 1] = bsearch(id, thousand_ids, thousand, sizeof thousand_ids[0], compare_ids);
    if (found != NULL) seen_times[found - thousand_ids]++;
  }
}

/* Reads all pages; while each is read, page_rows tasks (every `step`th from first on) are being cancelled and one is submitted.
 */
static void walk_while_changing(struct server *server, const char *filter, unsigned first, unsigned step) {
  char target[2048], cursor[1100] = "", key[64];
  unsigned victim = first, page = 0;
  memset(seen_times, 0, sizeof seen_times);
  for (bool more = true; more; page++) {
    int changes = client_connect(&server->fixture);
    unsigned sent = 0;
    for (; sent < page_rows && victim < thousand; sent++, victim += step)
      client_send_write(changes, "POST", TOKEN_PEOPLE, "c", task_target(thousand_ids[victim], ":cancel").text, CANCEL);
    (void)snprintf(key, sizeof key, "new-%u%s", page, filter);
    client_send_write(changes, "POST", TOKEN_PEOPLE, key, "/v1/tasks", SUBMISSION(QUEUE_A, "{}"));
    (void)snprintf(target, sizeof target, "/v1/tasks?limit=%d%s%s%s", page_rows, filter, cursor[0] != '\0' ? "&cursor=" : "",
                   cursor);
    client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
    assert_int_equal(reply.status, 200);
    count_page();
    const char *next = reply_text(&reply, "next_cursor");
    more = next != NULL;
    if (more) text_keep(cursor, sizeof cursor, next);
    for (unsigned i = 0; i <= sent; i++) {
      client_receive(changes, &reply);
      assert_int_equal(reply.status, i < sent ? 200 : 201);
    }
    guard_close(&changes);
  }
  assert_true(victim >= thousand);
}

static void test_pages_while_changing(void **state) {
  struct server *server = *state;
  submit_thousand(server, "first");
  assert_true(strcmp(thousand_ids[0], thousand_ids[thousand - 1]) < 0);
  /* All of them, though all are cancelled under way. */
  walk_while_changing(server, "", 0, 1);
  for (unsigned i = 0; i < thousand; i++) assert_int_equal(seen_times[i], 1);
  /* Of the waiting ones: none twice, and each that waited throughout; every other one is cancelled under way. */
  submit_thousand(server, "second");
  walk_while_changing(server, "&state=WAITING", 0, 2);
  for (unsigned i = 0; i < thousand; i++) {
    if (i % 2 == 0) assert_in_range(seen_times[i], 0, 1);
    else assert_int_equal(seen_times[i], 1);
  }
}

/* A page ends early when its rows are large, and goes on behind the last that was written. */
static void test_large_rows(void **state) {
  enum { large_tasks = 8 };
  struct server *server = *state;
  char id[id_chars + 1], key[32], cursor[1100] = "", target[2048];
  struct buffer details;
  buffer_init(&details, 512 * 1024);
  buffer_append_char(&details, '"');
  for (unsigned i = 0; i < 200 * 1024; i++) buffer_append_char(&details, 'x');
  buffer_append_char(&details, '"');
  worker_hello(server, "h", "1");
  for (unsigned i = 0; i < large_tasks; i++) {
    (void)snprintf(key, sizeof key, "large-%u", i);
    submit_task(server, key, id);
    struct attempt_ref ref = worker_take(server);
    worker_start(server, ref);
    struct answer answer;
    ref.message_id = worker_message(server);
    worker_ask(server,
               (struct command){.kind = COMMAND_FINISH,
                                .operation = worker_operation("task.finish", &ref),
                                .as.finish = {.ref = ref,
                                              .report = {.outcome = OUTCOME_FAILED,
                                                         .error_code = bytes_text("LARGE"),
                                                         .error_details = buffer_bytes(&details),
                                                         .identity = ref.message_id}}},
               &answer);
    assert_true(answer.as.worker.applied);
  }
  buffer_clear(&details);
  unsigned rows = 0, pages = 0;
  for (bool more = true; more; pages++) {
    (void)snprintf(target, sizeof target, "/v1/tasks?limit=100%s%s", pages > 0 ? "&cursor=" : "", cursor);
    client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
    assert_int_equal(reply.status, 200);
    rows += count_of(&reply, "\"code\":\"LARGE\"");
    const char *next = reply_text(&reply, "next_cursor");
    more = next != NULL;
    if (more) text_keep(cursor, sizeof cursor, next);
  }
  assert_int_equal(rows, large_tasks);
  assert_int_equal(pages, 2); /* the first ends behind the row that passes http_page_bytes */
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_rows, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_filters, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_refusals, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_reach, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_cursor_binding, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_pages_while_changing, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_large_rows, server_open, server_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
