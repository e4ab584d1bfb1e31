/* Credentials over HTTP: a token is shown once and then kept nowhere, rotation and revocation hold at the next request, expiry
 * at its second, scope hides. */
#include "base/time_text.h"
#include "edge/http_people.h"

static struct reply reply;

#define NAMESPACE_A "0000018bcfe568000000000000000100"
#define APPLICATION_A "0000018bcfe568000000000000000101"
#define APPLICATION_OTHER "0000018bcfe568000000000000000201"
#define ABSENT "0000018bcfe568000000000000000fff"

#define CREDENTIAL(more) \
  "\"credential\":{\"id\":\"@1\",\"namespace_id\":\"" NAMESPACE_A "\",\"application_id\":\"" APPLICATION_A "\"," more "}"
#define DATA(more) "{\"request_id\":\"@i\",\"data\":{" more "}}"

static void admin(struct server *server, const char *key, const char *target, const char *body) {
  client_post(&server->fixture, TOKEN_ADMIN, key, target, body, &reply);
}

static struct target_text credential_target(const char *id, const char *rest) {
  struct target_text target;
  (void)snprintf(target.text, sizeof target.text, "/v1/credentials/%s%s", id, rest);
  return target;
}

/* Makes one and keeps id and token. */
static void make(struct server *server, const char *key, const char *more, char id[id_chars + 1], char token[token_chars + 1]) {
  char body[512];
  (void)snprintf(body, sizeof body, "{\"application_id\":\"" APPLICATION_A "\",\"permissions\":[\"tasks:read\"]%s}", more);
  admin(server, key, "/v1/credentials", body);
  if (reply.status != 201) fail_msg("%s: %s", body, reply_body(&reply));
  text_keep(id, id_chars + 1, reply_text(&reply, "id"));
  text_keep(token, token_chars + 1, reply_text(&reply, "token"));
  assert_int_equal(strlen(token), token_chars);
}

static int status_of(struct server *server, const char *token) {
  client_read(&server->fixture, token, "/v1/tasks", &reply);
  return reply.status;
}

/* Neither the token nor its hash stands in what was answered. */
static void expect_no_secret(const char *token) {
  uint8_t hash[token_hash_bytes];
  char hex[2 * token_hash_bytes + 1];
  token_hash(bytes_text(token), hash);
  for (unsigned i = 0; i < token_hash_bytes; i++) (void)snprintf(hex + 2 * i, 3, "%02x", hash[i]);
  assert_null(strstr(reply_body(&reply), token + 6));
  assert_null(strstr(reply_body(&reply), hex));
  assert_null(strstr(reply_body(&reply), "\"token"));
}

static void test_life(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  char token[token_chars + 1], second[token_chars + 1];
  static const char create[] = "{\"application_id\":\"" APPLICATION_A
                               "\",\"name\":\"reader\",\"permissions\":[\"tasks:submit\",\"tasks:read\"],"
                               "\"queue_ids\":[\"" QUEUE_B "\",\"" QUEUE_A "\"]}";
#define PERMITTED \
  "\"name\":\"reader\",\"permissions\":[\"tasks:submit\",\"tasks:read\"],\"queue_ids\":[\"" QUEUE_B "\",\"" QUEUE_A "\"],"
  admin(server, "c", "/v1/credentials", create);
  expect_body(&reply, 201, DATA(CREDENTIAL(PERMITTED "\"revoked\":false,\"revision\":\"1\"") ",\"token\":\"@c\""), &seen);
  text_keep(token, sizeof token, reply_text(&reply, "token"));
  assert_int_equal(status_of(server, token), 200);
  admin(server, "c", "/v1/credentials", create); /* another random token would not make it another request */
  expect_body(&reply, 200, DATA(CREDENTIAL(PERMITTED "\"revoked\":false,\"revision\":\"1\"")), &seen);
  assert_int_equal(status_of(server, token), 200);

  struct target_text rotate = credential_target(seen.text[1], ":rotate"), revoke = credential_target(seen.text[1], ":revoke");
  admin(server, "r", rotate.text, "{}");
  expect_body(&reply, 200, DATA(CREDENTIAL(PERMITTED "\"revoked\":false,\"revision\":\"2\"") ",\"token\":\"@c\""), &seen);
  text_keep(second, sizeof second, reply_text(&reply, "token"));
  assert_string_not_equal(token, second);
  assert_int_equal(status_of(server, token), 401);
  assert_int_equal(status_of(server, second), 200);

  server_restart(server);
  admin(server, "r", rotate.text, "{}");
  expect_body(&reply, 200, DATA(CREDENTIAL(PERMITTED "\"revoked\":false,\"revision\":\"2\"")), &seen);
  assert_int_equal(status_of(server, token), 401);
  assert_int_equal(status_of(server, second), 200);
  client_read(&server->fixture, TOKEN_ADMIN, credential_target(seen.text[1], "").text, &reply);
  expect_body(&reply, 200, DATA(CREDENTIAL(PERMITTED "\"revoked\":false,\"revision\":\"2\"")), &seen);

  admin(server, "x", revoke.text, "{}");
  expect_body(&reply, 200, DATA(CREDENTIAL(PERMITTED "\"revoked\":true,\"revision\":\"3\"")), &seen);
  assert_int_equal(status_of(server, second), 401);
  admin(server, "x-2", revoke.text, "{}");
  expect_code(&reply, 409, "STATE_CONFLICT");
  admin(server, "r-2", rotate.text, "{}");
  expect_code(&reply, 409, "STATE_CONFLICT");
  server_restart(server);
  assert_int_equal(status_of(server, second), 401);
}

/* No list, no read, no audit, no repeat shows it again. */
static void test_secrecy(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], token[token_chars + 1], target[256];
  make(server, "s", "", id, token);
  const char *targets[] = {"/v1/credentials?limit=100", "/v1/audit?limit=100"};
  for (size_t i = 0; i < 2; i++) {
    client_read(&server->fixture, TOKEN_ADMIN, targets[i], &reply);
    assert_non_null(strstr(reply_body(&reply), id));
    expect_no_secret(token);
  }
  client_read(&server->fixture, TOKEN_ADMIN, credential_target(id, "").text, &reply);
  assert_int_equal(reply.status, 200);
  expect_no_secret(token);
  admin(server, "s", "/v1/credentials", "{\"application_id\":\"" APPLICATION_A "\",\"permissions\":[\"tasks:read\"]}");
  assert_int_equal(reply.status, 200);
  expect_no_secret(token);
  (void)snprintf(target, sizeof target, "/v1/audit?target_id=%s", id);
  client_read(&server->fixture, TOKEN_ADMIN, target, &reply);
  assert_int_equal(count_of(&reply, "\"action\":\"credential.create\""), 1);
}

/* A connection that stays open is judged at each request. */
static void test_revoked_on_open_connection(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], token[token_chars + 1], text[512];
  make(server, "o", "", id, token);
  (void)snprintf(text, sizeof text, "GET /v1/tasks HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", token);
  int fd = client_connect(&server->fixture);
  for (unsigned round = 0; round < 2; round++) {
    client_send_text(fd, text);
    client_receive(fd, &reply);
    assert_int_equal(reply.status, round == 0 ? 200 : 401);
    if (round == 0) admin(server, "x", credential_target(id, ":revoke").text, "{}");
  }
  guard_close(&fd);
}

/* Good before expires_at, refused from it on. */
static void test_expiry(void **state) {
  struct server *server = *state;
  struct engine *engine = server->fixture.edge.engine;
  char id[id_chars + 1], token[token_chars + 1], more[128], time[time_chars_max];
  int64_t expires_at = engine_now_us(engine) + 1500000;
  size_t size = time_format(expires_at, time);
  (void)snprintf(more, sizeof more, ",\"expires_at\":\"%.*s\"", (int)size, time);
  make(server, "e", more, id, token);
  unsigned good = 0;
  for (bool over = false; !over;) {
    int64_t before = engine_now_us(engine);
    int status = status_of(server, token);
    int64_t after = engine_now_us(engine);
    if (after < expires_at) assert_int_equal(status, 200);
    if (before >= expires_at) assert_int_equal(status, 401);
    over = status == 401;
    good += !over;
    if (over) assert_true(after >= expires_at);
    (void)poll(NULL, 0, 20); /* the clock is what is waited for */
  }
  assert_true(good > 0);
  client_read(&server->fixture, TOKEN_ADMIN, credential_target(id, "").text, &reply);
  assert_int_equal(count_of(&reply, "\"revoked\":false"), 1);
}

/* A queue of its scope and no other, also for queues that come later. */
static void test_scope(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], token[token_chars + 1], task[id_chars + 1], target[1024];
  make(server, "s", ",\"queue_ids\":[\"" QUEUE_B "\"]", id, token);
  submit_task(server, "scope", task);
  client_read(&server->fixture, token, task_target(task, "").text, &reply);
  expect_code(&reply, 404, "NOT_FOUND");
  admin(server, "q", "/v1/queues", "{\"name\":\"later\"}");
  (void)snprintf(target, sizeof target, "/v1/tasks?queue_id=%s", reply_text(&reply, "id"));
  client_read(&server->fixture, token, target, &reply);
  expect_code(&reply, 404, "NOT_FOUND");
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply); /* every queue, later ones too */
  assert_int_equal(reply.status, 200);
}

static void test_fields(void **state) {
#define FOR(more) "{\"application_id\":\"" APPLICATION_A "\"," more "}"
  static const struct {
    const char *body;
    int status;
    const char *field;
  } cases[] = {
      {"{\"permissions\":[\"tasks:read\"]}", 400, "/application_id"},
      {"{\"application_id\":\"x\",\"permissions\":[\"tasks:read\"]}", 400, "/application_id"},
      {"{\"application_id\":\"" ABSENT "\",\"permissions\":[\"tasks:read\"]}", 404, "/application_id"},
      {"{\"application_id\":\"" APPLICATION_OTHER "\",\"permissions\":[\"tasks:read\"]}", 404, "/application_id"},
      {FOR("\"name\":\"n\""), 400, "/permissions"},
      {FOR("\"permissions\":[]"), 400, "/permissions"},
      {FOR("\"permissions\":\"admin\""), 400, "/permissions"},
      {FOR("\"permissions\":[\"root\"]"), 400, "/permissions/0"}, /* nobody hands that on */
      {FOR("\"permissions\":[\"tasks:read\",\"tasks:write\"]"), 400, "/permissions/1"},
      {FOR("\"permissions\":[\"tasks:read\",\"tasks:read\"]"), 400, "/permissions/1"},
      {FOR("\"permissions\":[\"tasks:read\"],\"queue_ids\":[]"), 400, "/queue_ids"},
      {FOR("\"permissions\":[\"tasks:read\"],\"queue_ids\":[\"x\"]"), 400, "/queue_ids/0"},
      {FOR("\"permissions\":[\"tasks:read\"],\"queue_ids\":[\"" QUEUE_A "\",\"" QUEUE_A "\"]"), 400, "/queue_ids/1"},
      {FOR("\"permissions\":[\"tasks:read\"],\"queue_ids\":[\"" QUEUE_C "\"]"), 404, "/queue_ids"}, /* of another namespace */
      {FOR("\"permissions\":[\"tasks:read\"],\"queue_ids\":[\"" ABSENT "\"]"), 404, "/queue_ids"},
      {FOR("\"permissions\":[\"tasks:read\"],\"expires_at\":\"2020-01-01T00:00:00Z\""), 400, "/expires_at"},
      {FOR("\"permissions\":[\"tasks:read\"],\"expires_at\":null"), 400, "/expires_at"},
      {FOR("\"permissions\":[\"tasks:read\"],\"token\":\"mine\""), 400, "/token"},
  };
#undef FOR
  struct server *server = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    admin(server, "f", "/v1/credentials", cases[i].body);
    if (reply.status != cases[i].status) fail_msg("%s: %s", cases[i].body, reply_body(&reply));
    expect_refusal(&reply, cases[i].status, cases[i].status == 404 ? "NOT_FOUND" : "INVALID_ARGUMENT", cases[i].field);
  }
}

/* Administration of another namespace is told as what is not there. */
static void test_reach(void **state) {
  static const char *const rests[] = {"", ":rotate", ":revoke"};
  static const char *const strangers[] = {TOKEN_ADMIN_OTHER, TOKEN_PEOPLE, TOKEN_ROOT};
  static const int statuses[] = {404, 403, 403};
  struct server *server = *state;
  char id[id_chars + 1], token[token_chars + 1];
  make(server, "r", "", id, token);
  for (size_t i = 0; i < 3; i++) {
    for (size_t j = 0; j < 3; j++) {
      if (rests[i][0] == '\0') client_read(&server->fixture, strangers[j], credential_target(id, rests[i]).text, &reply);
      else client_post(&server->fixture, strangers[j], "r", credential_target(id, rests[i]).text, "{}", &reply);
      assert_int_equal(reply.status, statuses[j]);
    }
  }
  assert_int_equal(status_of(server, token), 200);
  client_post(&server->fixture, TOKEN_ADMIN_OTHER, "r", "/v1/applications/" APPLICATION_A ":revoke", "{}", &reply);
  assert_int_equal(reply.status, 404);
  client_write(&server->fixture, "PATCH", TOKEN_ADMIN_OTHER, "r", "/v1/applications/" APPLICATION_A,
               "{\"expected_revision\":\"1\",\"disabled\":true}", &reply);
  expect_code(&reply, 404, "NOT_FOUND");
}

/* Who revokes the credential that asks has had the last word with it. */
static void test_revoke_oneself(void **state) {
  struct server *server = *state;
  client_post(&server->fixture, TOKEN_ADMIN, "x", "/v1/credentials/0000018bcfe568000000000000000c14:revoke", "{}", &reply);
  assert_int_equal(reply.status, 200);
  client_post(&server->fixture, TOKEN_ADMIN, "x", "/v1/credentials/0000018bcfe568000000000000000c14:revoke", "{}", &reply);
  expect_refusal(&reply, 401, "UNAUTHENTICATED", "Authorization");
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_life, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_secrecy, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_revoked_on_open_connection, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_expiry, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_scope, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_fields, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_reach, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_revoke_oneself, server_open, server_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
