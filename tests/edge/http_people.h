/* What the tests of people's routes share, on top of the server of http_fixture.h: a worker without a socket that makes tasks
 * fail, doubt and succeed, writes of any size, a restart as after a crash, and answers compared with patterns. */
#ifndef ORBIT_TESTS_EDGE_HTTP_PEOPLE_H
#define ORBIT_TESTS_EDGE_HTTP_PEOPLE_H

#include "edge/http_fixture.h"

struct server {
  struct fixture fixture;
  struct http *http;
  struct outbox outbox; /* the worker's */
  struct session_gauge gauge;
  struct principal who;    /* the worker's */
  struct push *assignment; /* the newest; NULL: none since the last was taken */
  struct push *cancel;     /* the newest task.cancel; NULL: none */
  unsigned messages;
};

/* ---- The server ---- */

static inline void server_serve(struct server *server) {
  struct fault fault = {.message = ""};
  fixture_run_engine(&server->fixture);
  atomic_store(&server->fixture.edge.phase, EDGE_READY);
  assert_int_equal(outbox_init(&server->outbox), STATUS_OK);
  assert_int_equal(http_start(&server->fixture.edge, server->fixture.listen_fd, 2, &server->http, &fault), STATUS_OK);
  assert_int_equal(edge_authenticate(&server->fixture.edge, "bearer  " TOKEN_WORK, &server->who, &fault), STATUS_OK);
}

static inline int server_open(void **state) {
  struct server *server = guard_calloc(1, sizeof *server);
  fixture_open(&server->fixture);
  server_serve(server);
  *state = server;
  return 0;
}

static inline void server_drop_mail(struct server *server) {
  for (struct mail *mail = outbox_take(&server->outbox), *next; mail != NULL; mail = next) {
    next = mail->next;
    if (mail->kind != MAIL_TICKET) push_free((struct push *)mail);
  }
  push_free(server->assignment);
  push_free(server->cancel);
  server->assignment = server->cancel = NULL;
  outbox_clear(&server->outbox);
}

static inline int server_close(void **state) {
  struct server *server = *state;
  http_stop(server->http);
  fixture_close(&server->fixture);
  server_drop_mail(server);
  free(server);
  return 0;
}

/* Ends everything as in a crash and begins again from the log. */
static inline void server_restart(struct server *server) {
  http_stop(server->http);
  fixture_halt(&server->fixture);
  server_drop_mail(server);
  fixture_boot(&server->fixture, false);
  server_serve(server);
}

/* ---- A worker without a socket ---- */

/* Waits for mail; keeps an assignment. True when a ticket came. */
static inline bool worker_wait(struct server *server) {
  struct pollfd poll_fd = {.fd = server->outbox.event_fd, .events = POLLIN};
  bool ticket = false;
  assert_int_equal(poll(&poll_fd, 1, client_wait_ms), 1);
  for (struct mail *mail = outbox_take(&server->outbox), *next; mail != NULL; mail = next) {
    struct push **keep = mail->kind == MAIL_ASSIGN ? &server->assignment : mail->kind == MAIL_CANCEL ? &server->cancel : NULL;
    next = mail->next;
    if (mail->kind == MAIL_TICKET) {
      ticket = true;
    } else if (keep != NULL) {
      push_free(*keep);
      *keep = (struct push *)mail;
    } else {
      push_free((struct push *)mail);
    }
  }
  return ticket;
}

static inline void worker_ask(struct server *server, struct command command, struct answer *ret_answer) {
  struct ticket ticket = {.mail.kind = MAIL_TICKET, .home = &server->outbox, .command = command, .gauge = &server->gauge};
  struct fault fault;
  ticket.command.who = server->who;
  ticket.command.session = 1;
  assert_int_equal(engine_submit(server->fixture.edge.engine, &ticket, &fault), STATUS_OK);
  while (!worker_wait(server)) continue;
  *ret_answer = ticket.answer;
  assert_int_equal(ret_answer->status, STATUS_OK);
}

static inline struct id worker_message(struct server *server) { return fixture_id(0x8000 + ++server->messages); }

/* Takes tasks of queue A with this handler from here on, one at a time. */
static inline void worker_hello(struct server *server, const char *handler, const char *version) {
  const struct handler_offer offer = {.handler = bytes_text(handler), .handler_version = bytes_text(version)};
  struct id queue_id = fixture_id(0xa01);
  struct answer answer;
  worker_ask(server,
             (struct command){.kind = COMMAND_HELLO,
                              .as.hello = {.message_id = worker_message(server),
                                           .instance_id = fixture_id(0x9000),
                                           .queue_ids = &queue_id,
                                           .handlers = &offer,
                                           .queue_count = 1,
                                           .handler_count = 1,
                                           .capacity = 1}},
             &answer);
  free(answer.as.welcome.held);
}

/* The socket is gone; nothing is claimed any more. */
static inline void worker_bye(struct server *server) {
  struct answer answer;
  worker_ask(server, (struct command){.kind = COMMAND_BYE}, &answer);
}

/* The next assignment, waited for. */
static inline struct attempt_ref worker_take(struct server *server) {
  while (server->assignment == NULL) assert_false(worker_wait(server));
  struct attempt_ref ref = {.task_id = server->assignment->task.id,
                            .attempt_id = server->assignment->attempt.id,
                            .epoch = server->assignment->task.epoch};
  push_free(server->assignment);
  server->assignment = NULL;
  return ref;
}

/* Start and finish carry identities, as the channel makes them. */
static inline struct operation worker_operation(const char *name, const struct attempt_ref *ref) {
  static const struct secret secret = {{7}};
  struct id namespace_id = fixture_id(0x100);
  return (struct operation){
      .identity = identity_make(&secret, &namespace_id, name, &ref->attempt_id, bytes_of(&ref->message_id, 16)),
      .digest = ref->message_id};
}

static inline void worker_start(struct server *server, struct attempt_ref ref) {
  struct answer answer;
  ref.message_id = worker_message(server);
  worker_ask(server, (struct command){.kind = COMMAND_START, .operation = worker_operation("task.start", &ref), .as.ref = ref},
             &answer);
}

static inline struct worker_result worker_report(struct server *server, struct attempt_ref ref, enum outcome outcome,
                                                 bool retryable) {
  static const struct secret secret = {{8}};
  struct report report = {.outcome = outcome,
                          .retryable = retryable,
                          .identity = identity_make(&secret, &ref.task_id, "report", &ref.attempt_id, bytes_of("", 0))};
  struct answer answer;
  ref.message_id = worker_message(server);
  if (outcome == OUTCOME_SUCCEEDED) report.result = bytes_text("{}");
  else report.error_code = bytes_text("BUSY");
  worker_ask(server,
             (struct command){.kind = COMMAND_FINISH,
                              .operation = worker_operation("task.finish", &ref),
                              .as.finish = {.ref = ref, .report = report}},
             &answer);
  return answer.as.worker;
}

/* Takes, starts and reports. */
static inline struct attempt_ref worker_run(struct server *server, enum outcome outcome, bool retryable) {
  struct attempt_ref ref = worker_take(server);
  worker_start(server, ref);
  assert_true(worker_report(server, ref, outcome, retryable).applied);
  return ref;
}

/* ---- Writes ---- */

static inline void client_send_write(int fd, const char *method, const char *token, const char *key, const char *target,
                                     const char *body) {
  size_t room = strlen(body) + 1024;
  char *text = guard_malloc(room);
  int size = snprintf(text, room,
                      "%s %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                      "Idempotency-Key: %s\r\nContent-Length: %zu\r\n\r\n%s",
                      method, target, token, key, strlen(body), body);
  assert_true(size > 0 && (size_t)size < room);
  client_send(fd, text, (size_t)size);
  free(text);
}

static inline void client_write(const struct fixture *fixture, const char *method, const char *token, const char *key,
                                const char *target, const char *body, struct reply *reply) {
  int fd = client_connect(fixture);
  client_send_write(fd, method, token, key, target, body);
  client_receive(fd, reply);
  guard_close(&fd);
  reply_check(reply);
}

static inline void client_post(const struct fixture *fixture, const char *token, const char *key, const char *target,
                               const char *body, struct reply *reply) {
  client_write(fixture, "POST", token, key, target, body, reply);
}

static inline void client_read(const struct fixture *fixture, const char *token, const char *target, struct reply *reply) {
  client_get(fixture, token, target, reply);
  reply_check(reply);
}

/* ---- Answers against patterns ---- */

/* What the slots of patterns hold; 0 is the first. */
enum { slots = 10, slot_chars = 80 };
struct slot_texts {
  char text[slots][slot_chars];
};

static inline size_t span_of(const char *at, const char *letters) { return strspn(at, letters); }

static inline bool slot_matches(struct slot_texts *texts, unsigned number, const char *at, size_t size) {
  char *slot = texts->text[number];
  assert_true(number < slots && size < slot_chars);
  if (slot[0] == '\0') {
    memcpy(slot, at, size);
    slot[size] = '\0';
    return true;
  }
  return strlen(slot) == size && memcmp(slot, at, size) == 0;
}

/* Where text departs from pattern; NULL: nowhere. In a pattern @i is any id, @t any time, @d any digits, @c any cursor or
 * token, and @0 to @9 an id or time that is the same wherever the slot stands. */
static inline const char *text_departs(const char *text, const char *pattern, struct slot_texts *texts) {
  for (; *pattern != '\0'; pattern++) {
    if (*pattern != '@') {
      if (*text != *pattern) return text;
      text++;
      continue;
    }
    char kind = *++pattern;
    const char *letters = kind == 'i'   ? "0123456789abcdef"
                          : kind == 't' ? "0123456789-T:.Z"
                          : kind == 'd' ? "0123456789"
                          : kind == 'c' ? "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"
                                        : "0123456789abcdef-T:.Z";
    size_t size = span_of(text, letters);
    if (size == 0 || (kind == 'i' && size != id_chars) || (kind == 't' && text[size - 1] != 'Z')) return text;
    if (kind >= '0' && kind <= '9' && !slot_matches(texts, (unsigned)(kind - '0'), text, size)) return text;
    text += size;
  }
  return *text == '\0' ? NULL : text;
}

/* The whole body. */
static inline void expect_body(const struct reply *reply, int status, const char *pattern, struct slot_texts *texts) {
  const char *departs = text_departs(reply_body(reply), pattern, texts);
  if (departs != NULL || reply->status != status)
    fail_msg("expected %d %s\n     got %d %s\n departs at %s", status, pattern, reply->status, reply_body(reply),
             departs != NULL ? departs : "nothing");
}

/* A refusal, whatever field it names. */
static inline void expect_code(const struct reply *reply, int status, const char *code) {
  const char *told = reply_text(reply, "code");
  if (reply->status != status || told == NULL || strcmp(told, code) != 0)
    fail_msg("expected %d %s, got %d %s", status, code, reply->status, reply_body(reply));
}

/* A refusal, whole but for its sentence. field NULL: none is named. */
static inline void expect_refusal(const struct reply *reply, int status, const char *code, const char *field) {
  const char *named = reply_text(reply, "field");
  if (reply->status != status || (named == NULL) != (field == NULL) || (field != NULL && strcmp(named, field) != 0))
    fail_msg("expected %d %s %s, got %s", status, code, field != NULL ? field : "", reply_body(reply));
  assert_string_equal(reply_text(reply, "code"), code);
}

static inline unsigned count_of(const struct reply *reply, const char *text) {
  unsigned count = 0;
  for (const char *at = reply_body(reply); (at = strstr(at, text)) != NULL; at += strlen(text)) count++;
  return count;
}

/* ---- Tasks ---- */

struct target_text {
  char text[256];
};

/* "/v1/tasks/ID" with what follows. */
static inline struct target_text task_target(const char *id, const char *rest) {
  struct target_text target;
  int size = snprintf(target.text, sizeof target.text, "/v1/tasks/%s%s", id, rest);
  assert_true(size > 0 && (size_t)size < sizeof target.text);
  return target;
}

/* Submits to queue A; the task's id goes to id. */
static inline void submit_task(struct server *server, const char *key, char id[id_chars + 1]) {
  struct reply reply;
  client_submit(&server->fixture, TOKEN_PEOPLE, key, SUBMISSION(QUEUE_A, "{}"), &reply);
  assert_int_equal(reply.status, 201);
  text_keep(id, id_chars + 1, reply_text(&reply, "id"));
}

/* State and revision as GET tells them. */
static inline void expect_task(struct server *server, const char *id, const char *task_state, const char *revision) {
  struct reply reply;
  client_read(&server->fixture, TOKEN_PEOPLE, task_target(id, "").text, &reply);
  assert_int_equal(reply.status, 200);
  assert_string_equal(reply_text(&reply, "state"), task_state);
  assert_string_equal(reply_text(&reply, "revision"), revision);
}

#endif
