/* What the HTTP edge tells of a task's attempts and evidence, page by page, while a worker of the engine makes them. */
#include "edge/http_people.h"

enum { attempts = 5 };

/* One attempt that fails, and then the same attempt reports something else: evidence. */
static void worker_run_one(struct server *server) {
  struct attempt_ref ref = worker_run(server, OUTCOME_FAILED, true);
  assert_true(worker_report(server, ref, OUTCOME_UNKNOWN, false).evidence);
}

/* ---- What is told ---- */

/* Walks the list by pages of two; each page goes on behind the last. */
static void walk_pages(struct server *server, const char *id, const char *list, const char *each) {
  struct reply reply;
  char target[2048], cursor[1100] = "";
  for (unsigned page = 0; page < 3; page++) {
    (void)snprintf(target, sizeof target, "/v1/tasks/%s/%s?limit=2%s%s", id, list, page > 0 ? "&cursor=" : "", cursor);
    client_get(&server->fixture, TOKEN_READ, target, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(count_of(&reply, each), page < 2 ? 2 : 1);
    for (unsigned row = 0; row < (page < 2 ? 2U : 1U); row++) {
      char epoch[32];
      (void)snprintf(epoch, sizeof epoch, "\"epoch\":\"%u\"", page * 2 + row + 1); /* oldest first */
      assert_int_equal(count_of(&reply, epoch), 1);
    }
    if (page == 2) assert_null(reply_text(&reply, "next_cursor"));
    else text_keep(cursor, sizeof cursor, reply_text(&reply, "next_cursor"));
  }
}

static void test_history(void **state) {
  struct server *server = *state;
  struct reply reply;
  char id[64], other[64], attempt[64], target[2048];
  static const char body[] = "{\"queue_id\":\"" QUEUE_A
                             "\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":{},"
                             "\"task_timeout_ms\":600000,\"retry\":{\"max_attempts\":5}}";
  worker_hello(server, "h", "1");
  client_submit(&server->fixture, TOKEN_ALL, "history", body, &reply);
  assert_int_equal(reply.status, 201);
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  for (unsigned i = 0; i < attempts; i++) worker_run_one(server);

  (void)snprintf(target, sizeof target, "/v1/tasks/%s", id);
  client_get(&server->fixture, TOKEN_READ, target, &reply);
  reply_check(&reply);
  assert_string_equal(reply_text(&reply, "state"), "FAILED");
  assert_non_null(strstr(reply_body(&reply), "\"attempt_count\":5"));
  assert_non_null(strstr(reply_body(&reply), "\"error\":{\"code\":\"BUSY\"}"));

  (void)snprintf(target, sizeof target, "/v1/tasks/%s/attempts", id);
  client_get(&server->fixture, TOKEN_READ, target, &reply);
  assert_int_equal(count_of(&reply, "\"attempt_id\":"), attempts);
  assert_int_equal(count_of(&reply, "\"decision\":\"RETRYABLE_FAILURE\""), attempts - 1);
  text_keep(attempt, sizeof attempt, reply_text(&reply, "attempt_id"));

  (void)snprintf(target, sizeof target, "/v1/tasks/%s/attempts/%s", id, attempt);
  client_get(&server->fixture, TOKEN_READ, target, &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 200);
  assert_non_null(strstr(reply_body(&reply), "\"data\":{\"attempt\":{\"attempt_id\":\""));
  assert_non_null(strstr(reply_body(&reply), "\"number\":1,"));

  walk_pages(server, id, "attempts", "\"attempt_id\":");
  walk_pages(server, id, "evidence", "\"evidence_id\":");

  /* A cursor fits its own list of its own task and nothing else. */
  client_submit(&server->fixture, TOKEN_ALL, "history-2", body, &reply);
  text_keep(other, sizeof other, reply_text(&reply, "id"));
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/attempts?limit=2", id);
  client_get(&server->fixture, TOKEN_READ, target, &reply);
  char cursor[1100];
  text_keep(cursor, sizeof cursor, reply_text(&reply, "next_cursor"));
  const char *const wrong[][2] = {{other, "attempts"}, {id, "evidence"}};
  for (size_t i = 0; i < 2; i++) {
    (void)snprintf(target, sizeof target, "/v1/tasks/%s/%s?limit=2&cursor=%s", wrong[i][0], wrong[i][1], cursor);
    client_get(&server->fixture, TOKEN_READ, target, &reply);
    reply_check(&reply);
    assert_int_equal(reply.status, 400);
    assert_string_equal(reply_text(&reply, "field"), "cursor");
  }
}

int main(void) {
  static const struct CMUnitTest tests[] = {cmocka_unit_test(test_history)};
  return cmocka_run_group_tests(tests, server_open, server_close);
}
