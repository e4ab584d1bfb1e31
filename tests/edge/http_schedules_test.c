/* Schedules over HTTP: their life, their refusals field by field, reach, pages, triggers, and the preview of times. */
#define REPLY_BYTES (256 * 1024)
#include "edge/http_people.h"

#include <time.h>

static struct reply reply;

#define TEMPLATE                                                                                                             \
  "\"template\":{\"handler\":\"report.make\",\"handler_version\":\"1\",\"payload_version\":\"p1\",\"payload\":{\"n\":1.10}," \
  "\"task_timeout_ms\":60000}"
#define TEMPLATE_WHOLE                                                                                                       \
  "\"template\":{\"handler\":\"report.make\",\"handler_version\":\"1\",\"payload_version\":\"p1\",\"payload\":{\"n\":1.10}," \
  "\"task_timeout_ms\":60000,\"recovery_safety\":\"RECONCILE_ONLY\",\"retry\":{\"max_attempts\":1,\"initial_delay_ms\":0,"   \
  "\"max_delay_ms\":0,\"attempt_timeout_ms\":60000}}"
#define CRON(more) "{\"name\":\"nightly\",\"queue_id\":\"" QUEUE_A "\",\"kind\":\"CRON\"," TEMPLATE more "}"
#define INTERVAL(more) "{\"name\":\"often\",\"queue_id\":\"" QUEUE_A "\",\"kind\":\"INTERVAL\"," TEMPLATE more "}"
#define SCHEDULE(revision, times, handling, paused, more)                                                               \
  "{\"request_id\":\"@i\",\"data\":{\"schedule\":{\"id\":\"@1\",\"namespace_id\":\"0000018bcfe568000000000000000100\"," \
  "\"application_id\":\"0000018bcfe568000000000000000101\",\"queue_id\":\"" QUEUE_A                                     \
  "\",\"name\":\"nightly\",\"revision\":\"" revision "\",\"kind\":\"CRON\"," times "," TEMPLATE_WHOLE "," handling      \
  ",\"paused\":" paused more "}}}"
#define NIGHTLY "\"cron\":\"30 2 * * *\",\"timezone\":\"Europe/Berlin\""
#define USUAL "\"overlap\":\"ALLOW\",\"missed\":\"LATEST\",\"catch_up_limit\":10"

static void admin(struct server *server, const char *method, const char *key, const char *target, const char *body) {
  client_write(&server->fixture, method, TOKEN_ADMIN, key, target, body, &reply);
}

static struct target_text schedule_target(const char *id, const char *rest) {
  struct target_text target;
  int size = snprintf(target.text, sizeof target.text, "/v1/schedules/%s%s", id, rest);
  assert_true(size > 0 && (size_t)size < sizeof target.text);
  return target;
}

/* ---- a life ---- */

static void test_life(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  static const char create[] = CRON(",\"cron\":\"30 2 * * *\",\"timezone\":\"Europe/Berlin\"");
  static const char created[] = SCHEDULE("1", NIGHTLY, USUAL, "false", ",\"created_at\":\"@2\",\"updated_at\":\"@2\"");
  admin(server, "POST", "k", "/v1/schedules", create);
  expect_body(&reply, 201, created, &seen);
  struct target_text one = schedule_target(seen.text[1], "");
  struct target_text pause = schedule_target(seen.text[1], ":pause"), resume = schedule_target(seen.text[1], ":resume");
  struct target_text end = schedule_target(seen.text[1], ":delete"), triggers = schedule_target(seen.text[1], "/triggers");
  admin(server, "POST", "k", "/v1/schedules", /* defaults written out are the same request */
        CRON(",\"timezone\":\"Europe/Berlin\",\"cron\":\"30 2 * * *\",\"paused\":false,\"catch_up_limit\":10,"
             "\"missed\":\"LATEST\",\"overlap\":\"ALLOW\""));
  expect_body(&reply, 200, created, &seen);
  admin(server, "POST", "k", "/v1/schedules", CRON(",\"cron\":\"30 2 * * *\""));
  expect_refusal(&reply, 409, "IDEMPOTENCY_CONFLICT", NULL);

  admin(server, "PATCH", "p", one.text,
        "{\"expected_revision\":\"1\",\"overlap\":\"SERIAL\",\"missed\":\"ALL\",\"catch_up_limit\":3,\"cron\":\"0 0 * * *\"}");
#define CHANGED \
  "\"cron\":\"0 0 * * *\",\"timezone\":\"Europe/Berlin\"", "\"overlap\":\"SERIAL\",\"missed\":\"ALL\",\"catch_up_limit\":3"
#define LATER(revision, paused, more) LATER_OF(revision, CHANGED, paused, more)
#define LATER_OF(revision, changed, paused, more) \
  SCHEDULE(revision, changed, paused, ",\"created_at\":\"@2\",\"updated_at\":\"@3\"" more)
  expect_body(&reply, 200, LATER("2", "false", ""), &seen);
  admin(server, "PATCH", "p-2", one.text, "{\"expected_revision\":\"1\",\"name\":\"x\"}");
  expect_refusal(&reply, 409, "STATE_CONFLICT", "/expected_revision");
  seen.text[3][0] = 0;
  admin(server, "POST", "s", pause.text, "{\"reason\":\"holidays\"}");
  expect_body(&reply, 200, LATER("3", "true", ""), &seen);
  admin(server, "POST", "s-2", pause.text, "{}");
  expect_refusal(&reply, 409, "STATE_CONFLICT", NULL);
  client_read(&server->fixture, TOKEN_ADMIN, one.text, &reply); /* no next time while it is paused */
  expect_body(&reply, 200, LATER("3", "true", ""), &seen);
  seen.text[3][0] = 0;
  admin(server, "POST", "s", resume.text, "{}");
  expect_body(&reply, 200, LATER("4", "false", ""), &seen);
  client_read(&server->fixture, TOKEN_ADMIN, one.text, &reply);
  expect_body(&reply, 200, LATER("4", "false", ",\"next_at\":\"@4\""), &seen);
  client_read(&server->fixture, TOKEN_ADMIN, triggers.text, &reply);
  expect_body(&reply, 200, "{\"request_id\":\"@i\",\"data\":{\"items\":[]}}", &seen);
  seen.text[3][0] = 0;
  admin(server, "POST", "d", end.text, "{\"reason\":\"enough\"}");
  expect_body(&reply, 200,
              SCHEDULE("5", "\"cron\":\"0 0 * * *\",\"timezone\":\"Europe/Berlin\"",
                       "\"overlap\":\"SERIAL\",\"missed\":\"ALL\",\"catch_up_limit\":3", "false",
                       ",\"deleted\":true,\"created_at\":\"@2\",\"updated_at\":\"@3\""),
              &seen);
  client_read(&server->fixture, TOKEN_ADMIN, one.text, &reply);
  expect_refusal(&reply, 404, "NOT_FOUND", NULL);
  client_read(&server->fixture, TOKEN_ADMIN, triggers.text, &reply);
  expect_refusal(&reply, 404, "NOT_FOUND", NULL);
  admin(server, "POST", "d-2", end.text, "{}");
  expect_refusal(&reply, 404, "NOT_FOUND", NULL);
  for (unsigned round = 0; round < 2; round++) { /* repeats give the first answer, from the log too */
    admin(server, "POST", "k", "/v1/schedules", create);
    expect_body(&reply, 200, created, &seen);
    admin(server, "POST", "d", end.text, "{\"reason\":\"enough\"}");
    assert_int_equal(reply.status, 200);
    if (round == 0) server_restart(server);
  }
  client_read(&server->fixture, TOKEN_ADMIN, "/v1/audit?limit=100", &reply);
  assert_int_equal(count_of(&reply, "\"action\":\"schedule."), 5);
}

/* ---- refusals ---- */

static void test_fields(void **state) {
  struct server *server = *state;
  static const struct {
    const char *body, *field;
  } rows[] = {
      {"{}", "/name"},
      {CRON(""), "/cron"},
      {INTERVAL(""), "/interval_ms"},
      {CRON(",\"cron\":\"60 * * * *\""), "/cron"},
      {CRON(",\"cron\":\"* * * *\""), "/cron"},
      {CRON(",\"cron\":\"\""), "/cron"},
      {CRON(",\"cron\":null"), "/cron"},
      {CRON(",\"cron\":\"0 0 31 2 *\""), "/cron"}, /* no time in eight years */
      {CRON(",\"cron\":\"0 0 * * *\",\"interval_ms\":1000"), "/interval_ms"},
      {CRON(",\"cron\":\"0 0 * * *\",\"timezone\":\"Mars/Olympus\""), "/timezone"},
      {CRON(",\"cron\":\"0 0 * * *\",\"timezone\":\"../../etc/passwd\""), "/timezone"},
      {CRON(",\"cron\":\"0 0 * * *\",\"timezone\":\"/usr/share/zoneinfo/Europe/Berlin\""), "/timezone"},
      {CRON(",\"cron\":\"0 0 * * *\",\"timezone\":\"Europe\""), "/timezone"},
      {CRON(",\"cron\":\"0 0 * * *\",\"timezone\":\"europe/berlin\""), "/timezone"},
      {CRON(",\"cron\":\"0 0 * * *\",\"timezone\":\"Europe/Berlin\\nUTC\""), "/timezone"},
      {CRON(",\"cron\":\"0 0 * * *\",\"timezone\":\"tzdata.zi\""), "/timezone"},
      {CRON(",\"cron\":\"0 0 * * *\",\"timezone\":\"\""), "/timezone"},
      {INTERVAL(",\"interval_ms\":999"), "/interval_ms"},
      {INTERVAL(",\"interval_ms\":315360000001"), "/interval_ms"},
      {INTERVAL(",\"interval_ms\":1000,\"cron\":\"* * * * *\""), "/cron"},
      {INTERVAL(",\"interval_ms\":1000,\"timezone\":\"UTC\""), "/timezone"},
      {INTERVAL(",\"interval_ms\":1000,\"overlap\":\"NEVER\""), "/overlap"},
      {INTERVAL(",\"interval_ms\":1000,\"missed\":\"allow\""), "/missed"},
      {INTERVAL(",\"interval_ms\":1000,\"catch_up_limit\":0"), "/catch_up_limit"},
      {INTERVAL(",\"interval_ms\":1000,\"catch_up_limit\":1001"), "/catch_up_limit"},
      {INTERVAL(",\"interval_ms\":1000,\"end_at\":\"2020-01-01T00:00:00Z\""), "/end_at"},
      {INTERVAL(",\"interval_ms\":1000,\"start_at\":\"2090-01-01T00:00:00Z\",\"end_at\":\"2090-01-01T00:00:00Z\""), "/end_at"},
      {INTERVAL(",\"interval_ms\":1000,\"paused\":null"), "/paused"},
      {INTERVAL(",\"interval_ms\":1000,\"next_at\":\"2090-01-01T00:00:00Z\""), "/next_at"},
      {"{\"name\":\"x\",\"queue_id\":\"" QUEUE_A "\",\"kind\":\"INTERVAL\",\"interval_ms\":1000}", "/template"},
      {"{\"name\":\"x\",\"queue_id\":\"" QUEUE_A "\",\"kind\":\"HOURLY\"," TEMPLATE "}", "/kind"},
      {"{\"name\":\"x\",\"queue_id\":\"" QUEUE_A "\",\"kind\":\"INTERVAL\",\"interval_ms\":1000,\"template\":{}}",
       "/template/handler"},
      {"{\"name\":\"x\",\"queue_id\":\"" QUEUE_A
       "\",\"kind\":\"INTERVAL\",\"interval_ms\":1000,\"template\":{\"handler\":\"h\",\"handler_version\":\"1\","
       "\"payload_version\":\"1\",\"payload\":1,\"task_timeout_ms\":1000,\"queue_id\":\"" QUEUE_A "\"}}",
       "/template/queue_id"},
      {"{\"name\":\"x\",\"queue_id\":\"" QUEUE_A
       "\",\"kind\":\"INTERVAL\",\"interval_ms\":1000,\"template\":{\"handler\":\"h\",\"handler_version\":\"1\","
       "\"payload_version\":\"1\",\"payload\":1,\"task_timeout_ms\":1000,\"retry\":{\"attempt_timeout_ms\":1001}}}",
       "/template/retry/attempt_timeout_ms"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "k-%zu", i);
    admin(server, "POST", key, "/v1/schedules", rows[i].body);
    expect_refusal(&reply, 400, "INVALID_ARGUMENT", rows[i].field);
  }
  admin(server, "POST", "place", "/v1/schedules", CRON(",\"cron\":\"0 0 1-32 * *\""));
  assert_string_equal(reply_text(&reply, "message"), "day of month, character 7: 32 is not within 1 and 31");
}

static void test_changes(void **state) {
  struct server *server = *state;
  admin(server, "POST", "k", "/v1/schedules", INTERVAL(",\"interval_ms\":1000,\"start_at\":\"2090-01-01T00:00:00Z\""));
  assert_int_equal(reply.status, 201);
  char id[id_chars + 1];
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  struct target_text one = schedule_target(id, "");
  static const struct {
    const char *members, *field;
  } rows[] = {
      {"", ""},
      {",\"cron\":\"* * * * *\"", "/cron"},
      {",\"timezone\":\"UTC\"", "/timezone"},
      {",\"kind\":\"CRON\"", "/kind"},
      {",\"paused\":true", "/paused"},
      {",\"queue_id\":\"" QUEUE_B "\"", "/queue_id"},
      {",\"end_at\":\"2080-01-01T00:00:00Z\"", "/end_at"},
      {",\"start_at\":null,\"end_at\":\"2020-01-01T00:00:00Z\"", "/end_at"},
      {",\"name\":null", "/name"},
      {",\"template\":null", "/template"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char key[16], body[256];
    (void)snprintf(key, sizeof key, "p-%zu", i);
    (void)snprintf(body, sizeof body, "{\"expected_revision\":\"1\"%s}", rows[i].members);
    admin(server, "PATCH", key, one.text, body);
    expect_refusal(&reply, 400, "INVALID_ARGUMENT", rows[i].field[0] != 0 ? rows[i].field : NULL);
  }
  admin(server, "PATCH", "good", one.text, "{\"expected_revision\":\"1\",\"start_at\":null,\"interval_ms\":3600000}");
  assert_int_equal(reply.status, 200);
  assert_null(strstr(reply_body(&reply), "start_at"));
  client_read(&server->fixture, TOKEN_ADMIN, one.text, &reply);
  assert_non_null(reply_text(&reply, "next_at"));
}

/* ---- reach ---- */

static void test_reach(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  client_post(&server->fixture, TOKEN_PEOPLE, "k", "/v1/schedules", INTERVAL(",\"interval_ms\":1000"), &reply);
  expect_code(&reply, 403, "PERMISSION_DENIED");
  admin(server, "POST", "k", "/v1/schedules",
        "{\"name\":\"x\",\"queue_id\":\"" QUEUE_C "\",\"kind\":\"INTERVAL\",\"interval_ms\":1000," TEMPLATE "}");
  expect_refusal(&reply, 404, "NOT_FOUND", "/queue_id");
  admin(server, "POST", "k", "/v1/schedules", INTERVAL(",\"interval_ms\":3600000"));
  assert_int_equal(reply.status, 201);
  char id[id_chars + 1];
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  static const char *const rests[] = {"", "/triggers"};
  for (unsigned i = 0; i < 2; i++) {
    struct target_text target = schedule_target(id, rests[i]);
    client_read(&server->fixture, TOKEN_ADMIN_OTHER, target.text, &reply);
    expect_refusal(&reply, 404, "NOT_FOUND", NULL);
    client_read(&server->fixture, TOKEN_PEOPLE, target.text, &reply);
    expect_code(&reply, 403, "PERMISSION_DENIED");
  }
  client_read(&server->fixture, TOKEN_ADMIN_OTHER, "/v1/schedules", &reply);
  expect_body(&reply, 200, "{\"request_id\":\"@i\",\"data\":{\"items\":[]}}", &seen);
  /* A credential of one queue sees the schedules of that queue alone. */
  admin(server, "POST", "narrow", "/v1/credentials",
        "{\"application_id\":\"0000018bcfe568000000000000000101\",\"permissions\":[\"schedules:manage\"],\"queue_ids\":"
        "[\"" QUEUE_B "\"]}");
  assert_int_equal(reply.status, 201);
  char token[128];
  text_keep(token, sizeof token, reply_text(&reply, "token"));
  client_read(&server->fixture, token, "/v1/schedules", &reply);
  expect_body(&reply, 200, "{\"request_id\":\"@i\",\"data\":{\"items\":[]}}", &seen);
  client_read(&server->fixture, token, schedule_target(id, "").text, &reply);
  expect_refusal(&reply, 404, "NOT_FOUND", NULL);
  client_post(&server->fixture, token, "d", schedule_target(id, ":delete").text, "{}", &reply);
  expect_refusal(&reply, 404, "NOT_FOUND", NULL);
  client_post(&server->fixture, token, "k", "/v1/schedules", INTERVAL(",\"interval_ms\":1000"), &reply);
  expect_refusal(&reply, 404, "NOT_FOUND", "/queue_id");
}

/* ---- triggers ---- */

/* Until the schedule's list of triggers holds this text. */
static void wait_for_trigger(struct server *server, const char *target, const char *text) {
  for (unsigned tries = 0; tries < 3000; tries++) {
    client_read(&server->fixture, TOKEN_ADMIN, target, &reply);
    assert_int_equal(reply.status, 200);
    if (strstr(reply_body(&reply), text) != NULL) return;
    (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  fail_msg("no trigger says %s", text);
}

static void test_triggers(void **state) {
  struct server *server = *state;
  admin(server, "POST", "k", "/v1/schedules",
        "{\"name\":\"x\",\"queue_id\":\"" QUEUE_B "\",\"kind\":\"INTERVAL\",\"interval_ms\":1000," TEMPLATE "}");
  assert_int_equal(reply.status, 201);
  char id[id_chars + 1];
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  struct target_text triggers = schedule_target(id, "/triggers");
  wait_for_trigger(server, triggers.text, "\"outcome\":\"REJECTED\",\"code\":\"QUEUE_FULL\""); /* the queue holds one task */
  assert_int_equal(count_of(&reply, "\"outcome\":\"SUBMITTED\",\"task_id\":\""), 1);
  admin(server, "POST", "s", schedule_target(id, ":pause").text, "{}");
  assert_int_equal(reply.status, 200);
  /* One row a page, newest first: each time once. */
  client_read(&server->fixture, TOKEN_ADMIN, triggers.text, &reply);
  unsigned count = count_of(&reply, "\"scheduled_at\""), seen = 0;
  char target[1400], later[64] = "~", at[64];
  (void)snprintf(target, sizeof target, "%s?limit=1", triggers.text);
  for (;;) {
    client_read(&server->fixture, TOKEN_ADMIN, target, &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(count_of(&reply, "\"scheduled_at\""), seen < count ? 1 : 0);
    if (seen < count) {
      text_keep(at, sizeof at, reply_text(&reply, "scheduled_at"));
      assert_true(strcmp(at, later) < 0);
      text_keep(later, sizeof later, at);
      seen++;
    }
    const char *cursor = reply_text(&reply, "next_cursor");
    if (cursor == NULL) break;
    (void)snprintf(target, sizeof target, "%s?limit=1&cursor=%s", triggers.text, cursor);
  }
  assert_int_equal(seen, count);
  client_read(&server->fixture, TOKEN_ADMIN, schedule_target(id, "").text, &reply);
  assert_non_null(strstr(reply_body(&reply), "\"last\":{\"scheduled_at\":\""));
}

/* ---- preview ---- */

static void test_preview(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}};
  static const struct {
    const char *body, *times;
  } good[] = {
      {"{\"kind\":\"CRON\",\"cron\":\"30 2 * * "
       "*\",\"timezone\":\"Europe/Berlin\",\"after\":\"2026-03-28T12:00:00Z\",\"count\":2}",
       "\"2026-03-29T01:00:00Z\",\"2026-03-30T00:30:00Z\""},
      {"{\"kind\":\"CRON\",\"cron\":\"@yearly\",\"after\":\"2026-01-01T00:00:00Z\",\"count\":1}", "\"2027-01-01T00:00:00Z\""},
      {"{\"kind\":\"INTERVAL\",\"interval_ms\":1500,\"after\":\"2026-01-01T00:00:00.25Z\",\"count\":3}",
       "\"2026-01-01T00:00:01.75Z\",\"2026-01-01T00:00:03.25Z\",\"2026-01-01T00:00:04.75Z\""},
  };
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    char expected[256];
    (void)snprintf(expected, sizeof expected, "{\"request_id\":\"@i\",\"data\":{\"times\":[%s]}}", good[i].times);
    for (unsigned again = 0; again < 2; again++) { /* the same key with whatever content: it is not looked at */
      client_post(&server->fixture, TOKEN_ADMIN, "same", "/v1/schedules:preview", good[i].body, &reply);
      expect_body(&reply, 200, expected, &seen);
    }
  }
  static const struct {
    const char *body, *field;
  } bad[] = {
      {"{\"kind\":\"CRON\",\"cron\":\"* * * * *\"}", "/count"},
      {"{\"kind\":\"CRON\",\"cron\":\"* * * * *\",\"count\":0}", "/count"},
      {"{\"kind\":\"CRON\",\"cron\":\"* * * * *\",\"count\":101}", "/count"},
      {"{\"kind\":\"CRON\",\"cron\":\"* * L * *\",\"count\":1}", "/cron"},
      {"{\"kind\":\"CRON\",\"cron\":\"0 0 30 2 *\",\"count\":1}", "/cron"},
      {"{\"kind\":\"CRON\",\"cron\":\"* * * * *\",\"timezone\":\"Nowhere\",\"count\":1}", "/timezone"},
      {"{\"kind\":\"INTERVAL\",\"count\":1}", "/interval_ms"},
      {"{\"kind\":\"INTERVAL\",\"interval_ms\":1000,\"after\":\"9998-12-31T23:59:59.9Z\",\"count\":1}", "/after"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    client_post(&server->fixture, TOKEN_ADMIN, "k", "/v1/schedules:preview", bad[i].body, &reply);
    expect_refusal(&reply, 400, "INVALID_ARGUMENT", bad[i].field);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_life, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_fields, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_changes, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_reach, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_triggers, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_preview, server_open, server_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
