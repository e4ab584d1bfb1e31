/* What the HTTP edge tells of a task's attempts and evidence, page by page, while a worker of the engine makes them. */
#include "edge/http_fixture.h"

enum { attempts = 5 };

struct server {
  struct fixture fixture;
  struct http *http;
  struct outbox outbox; /* the worker's */
  struct session_gauge gauge;
  struct principal who;
  struct push *assignment; /* the newest */
};

static int set_up(void **state) {
  struct server *server = guard_calloc(1, sizeof *server);
  struct fault fault = {.message = ""};
  fixture_open(&server->fixture);
  fixture_run_engine(&server->fixture);
  atomic_store(&server->fixture.edge.phase, EDGE_READY);
  if (outbox_init(&server->outbox) != STATUS_OK) return -1;
  if (http_start(&server->fixture.edge, server->fixture.listen_fd, 1, &server->http, &fault) != STATUS_OK) return -1;
  *state = server;
  return edge_authenticate(&server->fixture.edge, "bearer  " TOKEN_WORK, &server->who, &fault) == STATUS_OK ? 0 : -1;
}

static int tear_down(void **state) {
  struct server *server = *state;
  http_stop(server->http);
  fixture_close(&server->fixture);
  push_free(server->assignment);
  outbox_clear(&server->outbox);
  free(server);
  return 0;
}

/* ---- A worker without a socket ---- */

/* Waits for mail; keeps an assignment. True when a ticket came. */
static bool worker_wait(struct server *server) {
  struct pollfd poll_fd = {.fd = server->outbox.event_fd, .events = POLLIN};
  bool ticket = false;
  assert_int_equal(poll(&poll_fd, 1, client_wait_ms), 1);
  for (struct mail *mail = outbox_take(&server->outbox), *next; mail != NULL; mail = next) {
    next = mail->next;
    if (mail->kind == MAIL_TICKET) {
      ticket = true;
    } else if (mail->kind == MAIL_ASSIGN) {
      push_free(server->assignment);
      server->assignment = (struct push *)mail;
    } else {
      push_free((struct push *)mail);
    }
  }
  return ticket;
}

static void worker_ask(struct server *server, struct command command, struct answer *ret_answer) {
  struct ticket ticket = {.mail.kind = MAIL_TICKET, .home = &server->outbox, .command = command, .gauge = &server->gauge};
  struct fault fault;
  ticket.command.who = server->who;
  ticket.command.session = 1;
  assert_int_equal(engine_submit(server->fixture.edge.engine, &ticket, &fault), STATUS_OK);
  while (!worker_wait(server)) continue;
  *ret_answer = ticket.answer;
  assert_int_equal(ret_answer->status, STATUS_OK);
}

static void worker_hello(struct server *server) {
  const struct handler_offer offer = {.handler = bytes_text("h"), .handler_version = bytes_text("1")};
  struct id queue_id = fixture_id(0xa01);
  struct answer answer;
  worker_ask(server,
             (struct command){.kind = COMMAND_HELLO,
                              .as.hello = {.message_id = fixture_id(0x9001),
                                           .instance_id = fixture_id(0x9000),
                                           .queue_ids = &queue_id,
                                           .handlers = &offer,
                                           .queue_count = 1,
                                           .handler_count = 1,
                                           .capacity = 1}},
             &answer);
  free(answer.as.welcome.held);
}

static struct attempt_ref worker_ref(const struct push *assignment, unsigned message) {
  return (struct attempt_ref){.message_id = fixture_id(message),
                              .task_id = assignment->task.id,
                              .attempt_id = assignment->task.attempt.id,
                              .epoch = assignment->task.epoch};
}

/* Start and finish carry identities, as the channel makes them. */
static struct operation worker_operation(const char *name, const struct attempt_ref *ref, unsigned content) {
  static const struct secret secret = {{7}};
  struct id namespace_id = fixture_id(0x100);
  return (struct operation){
      .identity = identity_make(&secret, &namespace_id, name, &ref->attempt_id, bytes_of(&ref->message_id, 16)),
      .digest = fixture_id(content)};
}

static void worker_run_one(struct server *server, unsigned number) {
  static const struct secret secret = {{8}};
  while (server->assignment == NULL) assert_false(worker_wait(server));
  struct attempt_ref ref = worker_ref(server->assignment, 0x8000 + number);
  struct answer answer;
  push_free(server->assignment);
  server->assignment = NULL;
  worker_ask(server,
             (struct command){.kind = COMMAND_START, .operation = worker_operation("task.start", &ref, number), .as.ref = ref},
             &answer);
  ref.message_id = fixture_id(0x8100 + number);
  struct command finish = {
      .kind = COMMAND_FINISH,
      .operation = worker_operation("task.finish", &ref, number),
      .as.finish = {.ref = ref,
                    .report = {.outcome = OUTCOME_FAILED,
                               .retryable = true,
                               .error_code = bytes_text("BUSY"),
                               .identity = identity_make(&secret, &ref.task_id, "report", &ref.attempt_id, bytes_of("", 0))}}};
  worker_ask(server, finish, &answer);
  assert_true(answer.as.worker.applied);
  /* The same attempt reports something else: evidence. */
  finish.as.finish.ref.message_id = fixture_id(0x8200 + number);
  finish.as.finish.report.outcome = OUTCOME_UNKNOWN;
  finish.as.finish.report.retryable = false;
  finish.operation = worker_operation("task.finish", &finish.as.finish.ref, 0x100 + number);
  worker_ask(server, finish, &answer);
  assert_true(answer.as.worker.evidence);
}

/* ---- What is told ---- */

static unsigned count_of(const struct reply *reply, const char *text) {
  unsigned count = 0;
  for (const char *at = reply_body(reply); (at = strstr(at, text)) != NULL; at += strlen(text)) count++;
  return count;
}

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
  worker_hello(server);
  client_submit(&server->fixture, TOKEN_ALL, "history", body, &reply);
  assert_int_equal(reply.status, 201);
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  for (unsigned i = 1; i <= attempts; i++) worker_run_one(server, i);

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
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
