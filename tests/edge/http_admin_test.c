/* Queues, applications, namespaces and the audit of administration over HTTP; and that limits hold under races. */
#define REPLY_BYTES (256 * 1024)
#include "edge/http_people.h"

static struct reply reply;

#define NAMESPACE_A "0000018bcfe568000000000000000100"
#define APPLICATION_A "0000018bcfe568000000000000000101"
#define ABSENT "0000018bcfe568000000000000000fff"

static void admin(struct server *server, const char *method, const char *key, const char *target, const char *body) {
  client_write(&server->fixture, method, TOKEN_ADMIN, key, target, body, &reply);
}

static struct target_text target_of(const char *collection, const char *id, const char *rest) {
  struct target_text target;
  int size = snprintf(target.text, sizeof target.text, "/v1/%s/%s%s", collection, id, rest);
  assert_true(size > 0 && (size_t)size < sizeof target.text);
  return target;
}

/* ---- Queues ---- */

#define QUEUE(revision, paused, more)                                                                                       \
  "{\"id\":\"@1\",\"namespace_id\":\"" NAMESPACE_A "\",\"name\":\"mails\",\"revision\":\"" revision "\",\"paused\":" paused \
  "," more "}"
#define ANSWER(object) "{\"request_id\":\"@i\",\"data\":{\"queue\":" object "}}"

static void test_queue_life(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  static const char create[] = "{\"name\":\"mails\",\"max_unfinished\":10,\"rate\":{\"tasks\":5,\"per_ms\":1000,\"burst\":2}}";
  admin(server, "POST", "q", "/v1/queues", create);
  static const char rated[] =
      "\"max_unfinished\":10,\"key_concurrency\":1,\"rate\":{\"tasks\":5,\"per_ms\":1000,\"burst\":2},\"lease_ms\":30000";
  char created[512];
  (void)snprintf(created, sizeof created, ANSWER(QUEUE("1", "false", "%s")), rated);
  expect_body(&reply, 201, created, &seen);
  const char *id = seen.text[1];
  struct target_text one = target_of("queues", id, "");
  struct target_text pause = target_of("queues", id, ":pause"), resume = target_of("queues", id, ":resume");
  /* Defaults written out are the same request. */
  admin(server, "POST", "q", "/v1/queues",
        "{\"lease_ms\":30000,\"key_concurrency\":1,\"rate\":{\"burst\":2,\"tasks\":5,\"per_ms\":1000},\"max_unfinished\":10,"
        "\"name\":\"mails\"}");
  expect_body(&reply, 200, created, &seen);
  admin(server, "POST", "q", "/v1/queues", "{\"name\":\"mails\"}");
  expect_refusal(&reply, 409, "IDEMPOTENCY_CONFLICT", NULL);

  admin(server, "PATCH", "p", one.text,
        "{\"expected_revision\":\"1\",\"rate\":null,\"max_unfinished\":null,\"max_running\":3}");
  expect_body(&reply, 200, ANSWER(QUEUE("2", "false", "\"max_running\":3,\"key_concurrency\":1,\"lease_ms\":30000")), &seen);
  admin(server, "PATCH", "p-2", one.text, "{\"expected_revision\":\"1\",\"name\":\"x\"}");
  expect_refusal(&reply, 409, "STATE_CONFLICT", "/expected_revision");
  admin(server, "POST", "s", pause.text, "{\"reason\":\"maintenance\"}");
  expect_body(&reply, 200, ANSWER(QUEUE("3", "true", "\"max_running\":3,\"key_concurrency\":1,\"lease_ms\":30000")), &seen);
  admin(server, "POST", "s-2", pause.text, "{}");
  expect_refusal(&reply, 409, "STATE_CONFLICT", NULL);
  admin(server, "POST", "s", resume.text, "{}"); /* another operation with the same key */
  expect_body(&reply, 200, ANSWER(QUEUE("4", "false", "\"max_running\":3,\"key_concurrency\":1,\"lease_ms\":30000")), &seen);

  /* Repeats give the first answer, from the log too. */
  for (unsigned round = 0; round < 2; round++) {
    admin(server, "POST", "q", "/v1/queues", create);
    expect_body(&reply, 200, created, &seen);
    admin(server, "POST", "s", pause.text, "{\"reason\":\"maintenance\"}");
    expect_body(&reply, 200, ANSWER(QUEUE("3", "true", "\"max_running\":3,\"key_concurrency\":1,\"lease_ms\":30000")), &seen);
    if (round == 0) server_restart(server);
  }
  client_read(&server->fixture, TOKEN_ADMIN, one.text, &reply); /* manage implies read */
  expect_body(&reply, 200,
              ANSWER(QUEUE("4", "false",
                           "\"max_running\":3,\"key_concurrency\":1,\"lease_ms\":30000,\"counts\":{\"WAITING\":0,\"LEASED\":0,"
                           "\"RUNNING\":0,\"NEEDS_REVIEW\":0,\"SUCCEEDED\":0,\"FAILED\":0,\"CANCELLED\":0}")),
              &seen);
}

/* Counts and the oldest waiting task, alone and in the list. */
static void test_queue_counts(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  char id[id_chars + 1], oldest[64];
  submit_task(server, "counts-1", id);
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "").text, &reply);
  text_keep(oldest, sizeof oldest, reply_text(&reply, "available_at"));
  submit_task(server, "counts-2", id);
  submit_task(server, "counts-3", id);
  client_post(&server->fixture, TOKEN_PEOPLE, "c", task_target(id, ":cancel").text, "{\"reason\":\"r\"}", &reply);
  text_keep(seen.text[1], slot_chars, oldest);
#define ROW(id, limit, waiting, cancelled, oldest)                                                                        \
  "{\"id\":\"" id "\",\"namespace_id\":\"" NAMESPACE_A "\",\"name\":\"queue\",\"revision\":\"1\",\"paused\":false," limit \
  "\"key_concurrency\":1,\"lease_ms\":30000,\"counts\":{\"WAITING\":" waiting                                             \
  ",\"LEASED\":0,\"RUNNING\":0,"                                                                                          \
  "\"NEEDS_REVIEW\":0,\"SUCCEEDED\":0,\"FAILED\":0,\"CANCELLED\":" cancelled "}" oldest "}"
  client_read(&server->fixture, TOKEN_PEOPLE, "/v1/queues/" QUEUE_A, &reply);
  expect_body(&reply, 200, ANSWER(ROW(QUEUE_A, "", "2", "1", ",\"oldest_waiting_at\":\"@1\"")), &seen);
  client_read(&server->fixture, TOKEN_PEOPLE, "/v1/queues", &reply);
  expect_body(
      &reply, 200,
      "{\"request_id\":\"@i\",\"data\":{\"items\":[" ROW(QUEUE_A, "", "2", "1", ",\"oldest_waiting_at\":\"@1\"") "," ROW(
          QUEUE_B, "\"max_unfinished\":1,", "0", "0", "") "]}}",
      &seen);
#undef ROW
}

static void test_queue_fields(void **state) {
  static const struct {
    const char *method, *body, *field;
  } cases[] = {
      {"POST", "{}", "/name"},
      {"POST", "{\"name\":\"\"}", "/name"},
      {"POST", "{\"name\":null}", "/name"},
      {"POST", "{\"name\":\"a\",\"Name\":\"a\"}", "/Name"},
      {"POST", "{\"name\":\"a\",\"max_unfinished\":0}", "/max_unfinished"},
      {"POST", "{\"name\":\"a\",\"max_unfinished\":null}", "/max_unfinished"},
      {"POST", "{\"name\":\"a\",\"max_running\":1000000001}", "/max_running"},
      {"POST", "{\"name\":\"a\",\"key_concurrency\":0}", "/key_concurrency"},
      {"POST", "{\"name\":\"a\",\"lease_ms\":4999}", "/lease_ms"},
      {"POST", "{\"name\":\"a\",\"lease_ms\":300001}", "/lease_ms"},
      {"POST", "{\"name\":\"a\",\"rate\":{\"tasks\":1}}", "/rate/per_ms"},
      {"POST", "{\"name\":\"a\",\"rate\":{\"tasks\":0,\"per_ms\":1,\"burst\":1}}", "/rate/tasks"},
      {"POST", "{\"name\":\"a\",\"rate\":1}", "/rate"},
      {"POST", "{\"name\":\"a\",\"paused\":true}", "/paused"},
      {"PATCH", "{\"name\":\"a\"}", "/expected_revision"},
      {"PATCH", "{\"expected_revision\":\"0\",\"name\":\"a\"}", "/expected_revision"},
      {"PATCH", "{\"expected_revision\":1,\"name\":\"a\"}", "/expected_revision"},
      {"PATCH", "{\"expected_revision\":\"1\",\"name\":null}", "/name"},
      {"PATCH", "{\"expected_revision\":\"1\",\"key_concurrency\":null}", "/key_concurrency"},
      {"PATCH", "{\"expected_revision\":\"1\"}", NULL}, /* nothing to change */
  };
  struct server *server = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bool create = strcmp(cases[i].method, "POST") == 0;
    admin(server, cases[i].method, "f", create ? "/v1/queues" : "/v1/queues/" QUEUE_A, cases[i].body);
    if (reply.status != 400) fail_msg("%s: %s", cases[i].body, reply_body(&reply));
    expect_refusal(&reply, 400, "INVALID_ARGUMENT", cases[i].field);
  }
  client_read(&server->fixture, TOKEN_ADMIN, "/v1/queues", &reply);
  assert_int_equal(count_of(&reply, "\"revision\":\"1\""), 2);
  assert_int_equal(count_of(&reply, "{\"id\":\""), 2);
}

/* Who sees and does what; a queue out of reach is told as one that is not there. */
static void test_queue_reach(void **state) {
  struct server *server = *state;
  static const struct {
    const char *method, *token, *target, *body;
    int status;
  } cases[] = {
      {"GET", TOKEN_PEOPLE, "/v1/queues/" QUEUE_A, NULL, 200},
      {"GET", TOKEN_PEOPLE_B, "/v1/queues/" QUEUE_B, NULL, 200},
      {"GET", TOKEN_PEOPLE_B, "/v1/queues/" QUEUE_A, NULL, 404},
      {"GET", TOKEN_PEOPLE_OTHER, "/v1/queues/" QUEUE_A, NULL, 404},
      {"GET", TOKEN_ADMIN_OTHER, "/v1/queues/" QUEUE_A, NULL, 404},
      {"GET", TOKEN_PEOPLE, "/v1/queues/" ABSENT, NULL, 404},
      {"GET", TOKEN_PEOPLE, "/v1/queues/" APPLICATION_A, NULL, 404}, /* an id of something else */
      {"GET", TOKEN_ALL, "/v1/queues", NULL, 403},
      {"GET", TOKEN_ROOT, "/v1/queues", NULL, 403},
      {"POST", TOKEN_PEOPLE, "/v1/queues", "{\"name\":\"a\"}", 403},
      {"POST", TOKEN_ROOT, "/v1/queues", "{\"name\":\"a\"}", 403},
      {"PATCH", TOKEN_PEOPLE, "/v1/queues/" QUEUE_A, "{\"expected_revision\":\"1\",\"name\":\"a\"}", 403},
      {"PATCH", TOKEN_ADMIN_OTHER, "/v1/queues/" QUEUE_A, "{\"expected_revision\":\"1\",\"name\":\"a\"}", 404},
      {"PATCH", TOKEN_ADMIN, "/v1/queues/" ABSENT, "{\"expected_revision\":\"1\",\"name\":\"a\"}", 404},
      {"POST", TOKEN_PEOPLE, "/v1/queues/" QUEUE_A ":pause", "{}", 403},
      {"POST", TOKEN_ADMIN_OTHER, "/v1/queues/" QUEUE_A ":pause", "{}", 404},
      {"POST", TOKEN_ADMIN_OTHER, "/v1/queues/" QUEUE_A ":resume", "{}", 404},
      {"GET", TOKEN_PEOPLE, "/v1/queues/" QUEUE_A "?x=1", NULL, 400},
      {"GET", TOKEN_PEOPLE, "/v1/queues?state=x", NULL, 400},
      {"GET", TOKEN_PEOPLE, "/v1/queues?cursor=AAAA", NULL, 400},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (cases[i].body == NULL) client_read(&server->fixture, cases[i].token, cases[i].target, &reply);
    else client_write(&server->fixture, cases[i].method, cases[i].token, "r", cases[i].target, cases[i].body, &reply);
    if (reply.status != cases[i].status)
      fail_msg("%s %s by %s: %s", cases[i].method, cases[i].target, cases[i].token, reply_body(&reply));
  }
  client_read(&server->fixture, TOKEN_PEOPLE_B, "/v1/queues", &reply);
  assert_int_equal(count_of(&reply, "{\"id\":\""), 1);
  assert_string_equal(reply_text(&reply, "id"), QUEUE_B);
}

/* Lists page through in the order of making, each object once. */
static void test_object_pages(void **state) {
  static const struct {
    const char *collection, *body;
    unsigned before; /* that the namespace has already */
  } cases[] = {
      {"queues", "{\"name\":\"n\"}", 2},
      {"applications", "{\"name\":\"n\"}", 1},
      {"credentials", "{\"application_id\":\"" APPLICATION_A "\",\"permissions\":[\"tasks:read\"]}", 7},
  };
  enum { made = 5 };
  struct server *server = *state;
  char target[2048], key[32];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char last[id_chars + 1] = "", cursor[1100] = "";
    unsigned rows = 0;
    (void)snprintf(target, sizeof target, "/v1/%s", cases[i].collection);
    for (unsigned j = 0; j < made; j++) {
      (void)snprintf(key, sizeof key, "k-%u", j);
      admin(server, "POST", key, target, cases[i].body);
      assert_int_equal(reply.status, 201);
    }
    for (bool more = true; more; rows++) {
      (void)snprintf(target, sizeof target, "/v1/%s?limit=1%s%s", cases[i].collection, rows > 0 ? "&cursor=" : "", cursor);
      client_read(&server->fixture, TOKEN_ADMIN, target, &reply);
      assert_int_equal(reply.status, 200);
      assert_int_equal(count_of(&reply, "\"namespace_id\":\"" NAMESPACE_A "\""), 1);
      if (rows >= cases[i].before) assert_true(strcmp(reply_text(&reply, "id"), last) > 0);
      text_keep(last, sizeof last, reply_text(&reply, "id"));
      const char *next = reply_text(&reply, "next_cursor");
      more = next != NULL;
      if (more) text_keep(cursor, sizeof cursor, next);
    }
    assert_int_equal(rows, cases[i].before + made);
  }
}

/* ---- Limits ---- */

enum { racers = 40, places = 10 };

/* Exactly as many as there is room for, and a repeat of an accepted one still gets its answer. */
static void test_full_queue(void **state) {
  struct server *server = *state;
  char body[1024], key[32], accepted_key[32] = "", id[id_chars + 1] = "";
  int fds[racers];
  unsigned accepted = 0, refused = 0;
  admin(server, "POST", "q", "/v1/queues", "{\"name\":\"ten\",\"max_unfinished\":10}");
  (void)snprintf(body, sizeof body, "{\"queue_id\":\"%s\",%s", reply_text(&reply, "id"),
                 strstr(SUBMISSION(QUEUE_A, "{}"), "\"handler\""));
  for (unsigned i = 0; i < racers; i++) fds[i] = client_connect(&server->fixture);
  for (unsigned i = 0; i < racers; i++) {
    (void)snprintf(key, sizeof key, "race-%u", i);
    client_send_write(fds[i], "POST", TOKEN_PEOPLE, key, "/v1/tasks", body);
  }
  for (unsigned i = 0; i < racers; i++) {
    client_receive(fds[i], &reply);
    guard_close(&fds[i]);
    if (reply.status == 201) {
      accepted++;
      (void)snprintf(accepted_key, sizeof accepted_key, "race-%u", i);
      text_keep(id, sizeof id, reply_text(&reply, "id"));
    } else {
      expect_refusal(&reply, 429, "QUEUE_FULL", NULL);
      assert_non_null(strstr(reply_body(&reply), "\"retry_after_ms\":"));
      assert_non_null(reply_header(&reply, "Retry-After"));
      refused++;
    }
  }
  assert_int_equal(accepted, places);
  assert_int_equal(refused, racers - places);
  for (unsigned round = 0; round < 2; round++) {
    client_post(&server->fixture, TOKEN_PEOPLE, accepted_key, "/v1/tasks", body, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_text(&reply, "id"), id);
    client_post(&server->fixture, TOKEN_PEOPLE, "late", "/v1/tasks", body, &reply);
    expect_refusal(&reply, 429, "QUEUE_FULL", NULL);
    if (round == 0) server_restart(server);
  }
  client_post(&server->fixture, TOKEN_PEOPLE, "c", task_target(id, ":cancel").text, "{\"reason\":\"r\"}", &reply);
  client_post(&server->fixture, TOKEN_PEOPLE, "late", "/v1/tasks", body, &reply);
  assert_int_equal(reply.status, 201);
}

/* ---- Applications ---- */

static void test_applications(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  char body[512], token[128];
  admin(server, "POST", "a", "/v1/applications", "{\"name\":\"Läden\",\"max_unfinished\":1}");
  expect_body(&reply, 201,
              "{\"request_id\":\"@i\",\"data\":{\"application\":{\"id\":\"@1\",\"namespace_id\":\"" NAMESPACE_A
              "\",\"name\":\"Läden\",\"revision\":\"1\",\"max_unfinished\":1,\"disabled\":false}}}",
              &seen);
  struct target_text one = target_of("applications", seen.text[1], "");
  (void)snprintf(body, sizeof body, "{\"application_id\":\"%s\",\"permissions\":[\"tasks:submit\",\"tasks:read\"]}",
                 seen.text[1]);
  admin(server, "POST", "c", "/v1/credentials", body);
  assert_int_equal(reply.status, 201);
  text_keep(token, sizeof token, reply_text(&reply, "token"));
  client_submit(&server->fixture, token, "k-1", SUBMISSION(QUEUE_A, "{}"), &reply);
  assert_int_equal(reply.status, 201);
  client_submit(&server->fixture, token, "k-2", SUBMISSION(QUEUE_A, "{}"), &reply);
  expect_refusal(&reply, 429, "APPLICATION_FULL", NULL);
  client_submit(&server->fixture, TOKEN_PEOPLE, "k-1", SUBMISSION(QUEUE_A, "{}"), &reply); /* keys are the namespace's */
  assert_int_equal(reply.status, 200);
  client_read(&server->fixture, TOKEN_ADMIN, one.text, &reply);
  expect_body(&reply, 200,
              "{\"request_id\":\"@i\",\"data\":{\"application\":{\"id\":\"@1\",\"namespace_id\":\"" NAMESPACE_A
              "\",\"name\":\"Läden\",\"revision\":\"1\",\"max_unfinished\":1,\"disabled\":false,\"unfinished\":1}}}",
              &seen);
  admin(server, "PATCH", "p-1", one.text, "{\"expected_revision\":\"1\",\"max_unfinished\":null}");
  expect_body(&reply, 200,
              "{\"request_id\":\"@i\",\"data\":{\"application\":{\"id\":\"@1\",\"namespace_id\":\"" NAMESPACE_A
              "\",\"name\":\"Läden\",\"revision\":\"2\",\"disabled\":false}}}",
              &seen);
  client_submit(&server->fixture, token, "k-2", SUBMISSION(QUEUE_A, "{}"), &reply);
  assert_int_equal(reply.status, 201);
  /* Disabled: its tokens are refused at the next request; enabled again, they are good. */
  admin(server, "PATCH", "p-2", one.text, "{\"expected_revision\":\"2\",\"disabled\":true}");
  assert_int_equal(count_of(&reply, "\"disabled\":true"), 1);
  client_read(&server->fixture, token, "/v1/tasks", &reply);
  expect_refusal(&reply, 401, "UNAUTHENTICATED", "Authorization");
  admin(server, "PATCH", "p-3", one.text, "{\"expected_revision\":\"3\",\"disabled\":false}");
  client_read(&server->fixture, token, "/v1/tasks", &reply);
  assert_int_equal(reply.status, 200);
  admin(server, "PATCH", "p-4", one.text, "{\"expected_revision\":\"3\",\"disabled\":true}");
  expect_refusal(&reply, 409, "STATE_CONFLICT", "/expected_revision");
}

/* ---- Namespaces ---- */

static void test_namespaces(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  char token[128];
  static const char pattern[] =
      "{\"request_id\":\"@i\",\"data\":{\"namespace\":{\"id\":\"@1\",\"name\":\"shop\"},\"application\":{\"id\":\"@2\","
      "\"namespace_id\":\"@1\","
      "\"name\":\"admin\",\"revision\":\"1\",\"disabled\":false},\"credential\":{\"id\":\"@i\",\"namespace_id\":\"@1\","
      "\"application_id\":\"@2\","
      "\"name\":\"admin\",\"permissions\":[\"admin\"],\"revoked\":false,\"revision\":\"1\"}%s}}";
  char expected[1024];
  client_post(&server->fixture, TOKEN_ROOT, "n", "/v1/namespaces", "{\"name\":\"shop\"}", &reply);
  (void)snprintf(expected, sizeof expected, pattern, ",\"token\":\"@c\"");
  expect_body(&reply, 201, expected, &seen);
  text_keep(token, sizeof token, reply_text(&reply, "token"));
  (void)snprintf(expected, sizeof expected, pattern, "");
  for (unsigned round = 0; round < 2; round++) {
    client_post(&server->fixture, TOKEN_ROOT, "n", "/v1/namespaces", "{\"name\":\"shop\"}", &reply);
    expect_body(&reply, 200, expected, &seen);
    client_post(&server->fixture, TOKEN_ROOT, "n", "/v1/namespaces", "{\"name\":\"other\"}", &reply);
    expect_refusal(&reply, 409, "IDEMPOTENCY_CONFLICT", NULL);
    /* Its admin runs it, and sees nothing of others. */
    client_post(&server->fixture, token, round == 0 ? "q-1" : "q-2", "/v1/queues", "{\"name\":\"mails\"}", &reply);
    assert_int_equal(reply.status, 201);
    assert_string_equal(reply_text(&reply, "namespace_id"), seen.text[1]);
    client_read(&server->fixture, token, "/v1/queues", &reply);
    assert_int_equal(count_of(&reply, "{\"id\":\""), round + 1);
    client_read(&server->fixture, token, "/v1/applications/" APPLICATION_A, &reply);
    expect_refusal(&reply, 404, "NOT_FOUND", NULL);
    if (round == 0) server_restart(server);
  }
  /* Nobody but root; and root may do nothing else. */
  client_post(&server->fixture, TOKEN_ADMIN, "n", "/v1/namespaces", "{\"name\":\"shop\"}", &reply);
  expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
  client_post(&server->fixture, TOKEN_ROOT, "m", "/v1/namespaces", "{\"name\":\"\"}", &reply);
  expect_refusal(&reply, 400, "INVALID_ARGUMENT", "/name");
  static const char *const reads[] = {"/v1/tasks",       "/v1/queues", "/v1/applications",
                                      "/v1/credentials", "/v1/audit",  "/metrics"};
  for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
    client_read(&server->fixture, TOKEN_ROOT, reads[i], &reply);
    expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
  }
}

/* ---- Audit ---- */

static void test_audit(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  char id[id_chars + 1], target[2048], cursor[1100];
  admin(server, "POST", "q", "/v1/queues", "{\"name\":\"mails\"}");
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  admin(server, "POST", "p", target_of("queues", id, ":pause").text, "{\"reason\":\"Wartung\"}");
  admin(server, "POST", "a", "/v1/applications", "{\"name\":\"a\"}");
  submit_task(server, "audit", seen.text[9]);
  client_post(&server->fixture, TOKEN_PEOPLE, "c", task_target(seen.text[9], ":cancel").text, "{\"reason\":\"r\"}", &reply);
  text_keep(seen.text[1], slot_chars, id);
#define RECORD(target, action, more)                                                                  \
  "{\"id\":\"@i\",\"target_id\":\"" target                                                            \
  "\",\"operation_id\":\"@i\",\"actor_id\":\"0000018bcfe568000000000000000c14\",\"action\":\"" action \
  "\",\"created_at\":\"@t\"" more "}"
#define PAUSED \
  RECORD("@1", "queue.pause", ",\"reason\":\"Wartung\",\"before\":{\"revision\":\"1\"},\"after\":{\"revision\":\"2\"}")
#define MADE RECORD("@1", "queue.create", ",\"after\":{\"revision\":\"1\"}")
  client_read(&server->fixture, TOKEN_ADMIN, "/v1/audit", &reply);
  expect_body(&reply, 200,
              "{\"request_id\":\"@i\",\"data\":{\"items\":[" RECORD(
                  "@2", "application.create", ",\"after\":{\"revision\":\"1\"}") "," PAUSED "," MADE "]}}",
              &seen);
  (void)snprintf(target, sizeof target, "/v1/audit?target_id=%s&limit=1", id);
  client_read(&server->fixture, TOKEN_ADMIN, target, &reply);
  expect_body(&reply, 200, "{\"request_id\":\"@i\",\"data\":{\"items\":[" PAUSED "],\"next_cursor\":\"@c\"}}", &seen);
  text_keep(cursor, sizeof cursor, reply_text(&reply, "next_cursor"));
  (void)snprintf(target, sizeof target, "/v1/audit?target_id=%s&cursor=%s", id, cursor);
  client_read(&server->fixture, TOKEN_ADMIN, target, &reply);
  expect_body(&reply, 200, "{\"request_id\":\"@i\",\"data\":{\"items\":[" MADE "]}}", &seen);
#undef RECORD
#undef PAUSED
#undef MADE
  (void)snprintf(target, sizeof target, "/v1/audit?cursor=%s", cursor); /* other filters */
  client_read(&server->fixture, TOKEN_ADMIN, target, &reply);
  expect_refusal(&reply, 400, "INVALID_ARGUMENT", "cursor");
  client_read(&server->fixture, TOKEN_ADMIN, "/v1/audit?target_id=x", &reply);
  expect_refusal(&reply, 400, "INVALID_ARGUMENT", "target_id");
  (void)snprintf(target, sizeof target, "/v1/audit?target_id=%s", id);
  client_read(&server->fixture, TOKEN_ADMIN_OTHER, target, &reply);
  expect_body(&reply, 200, "{\"request_id\":\"@i\",\"data\":{\"items\":[]}}", &seen);
  client_read(&server->fixture, TOKEN_PEOPLE, "/v1/audit", &reply);
  expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_queue_life, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_queue_counts, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_queue_fields, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_queue_reach, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_object_pages, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_full_queue, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_applications, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_namespaces, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_audit, server_open, server_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
