/* What the tests of the session machine share. The engine's part is played by the test: tickets that were submitted wait in a
 * list until the test answers them. */
#ifndef ORBIT_TESTS_EDGE_SESSION_FIXTURE_H
#define ORBIT_TESTS_EDGE_SESSION_FIXTURE_H

#include "edge/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "support/support.h"

enum { tickets_max = 8192 };

struct world {
  struct session_hub hub;
  struct outbox outbox;
  struct secret secret;
  struct session *session;
  struct ticket *tickets[tickets_max]; /* with the engine, oldest first */
  uint32_t ticket_count;
  bool full;    /* the mailbox has no room */
  bool revoked; /* the credential is not in force */
  char socket;  /* its address stands for one */
  uint8_t *sent;
  size_t sent_size;
};

static inline enum status fake_submit(void *context, struct ticket *ticket, struct fault *fault) {
  struct world *world = context;
  if (world->full) {
    (void)fault_set(fault, STATUS_UNAVAILABLE, NULL, "the mailbox is full");
    fault->retry_after_ms = 100;
    return STATUS_UNAVAILABLE;
  }
  assert_true(world->ticket_count < tickets_max);
  world->tickets[world->ticket_count++] = ticket;
  return STATUS_OK;
}

static inline enum status fake_check(void *context, const struct principal *who) {
  struct world *world = context;
  assert_int_equal(who->credential_id.bytes[0], 0x77);
  return world->revoked ? STATUS_UNAUTHENTICATED : STATUS_OK;
}

static inline void world_open(struct world *world) {
  memset(world, 0, sizeof *world);
  assert_int_equal(outbox_init(&world->outbox), STATUS_OK);
  struct session_ports ports = {
      .submit = fake_submit, .check = fake_check, .context = world, .home = &world->outbox, .secret = &world->secret};
  ports.node_id.bytes[15] = 9;
  session_hub_init(&world->hub, &ports);
  struct principal who = {.permissions = UINT64_C(1) << PERMISSION_TASKS_CONSUME};
  who.credential_id.bytes[0] = 0x77;
  world->session = session_new(&world->hub, 42, &who, &world->socket);
}

/* Answers the oldest ticket; change may fill the answer. */
static inline void answer_first(struct world *world, void (*change)(struct answer *answer)) {
  assert_true(world->ticket_count > 0);
  struct ticket *ticket = world->tickets[0];
  memmove(world->tickets, world->tickets + 1, --world->ticket_count * sizeof world->tickets[0]);
  ticket->answer = (struct answer){.status = STATUS_OK};
  if (ticket->command.kind == COMMAND_HELLO)
    ticket->answer.as.welcome = (struct welcome){.server_time = INT64_C(1789603200000000), .lease_ms = 30000};
  if (change != NULL) change(&ticket->answer);
  session_hub_answer(&world->hub, ticket);
}

static inline void world_close(struct world *world) {
  world->full = false;
  session_hang_up(world->session);
  session_hub_retry(&world->hub);
  while (world->ticket_count > 0) answer_first(world, NULL);
  while (session_hub_next(&world->hub) != NULL) continue;
  assert_true(session_is_over(world->session));
  session_free(world->session);
  session_hub_clear(&world->hub);
  outbox_clear(&world->outbox);
  free(world->sent);
}

static inline void say_bytes(struct world *world, struct bytes text) {
  session_receive(world->session, text, true, true, false);
}
static inline void say(struct world *world, const char *text) { say_bytes(world, bytes_text(text)); }

/* The next frame as text, or "" when nothing waits. Valid until the next call. */
static const char *heard(struct world *world) {
  uint8_t *data;
  size_t size;
  free(world->sent);
  world->sent = NULL;
  world->sent_size = 0;
  if (!session_next_frame(world->session, &data, &size)) return "";
  world->sent = malloc(size + 1);
  assert_non_null(world->sent);
  memset(data - session_pad_bytes, 0xEE, session_pad_bytes); /* as the library does with its header */
  memcpy(world->sent, data, size);
  world->sent[size] = '\0';
  world->sent_size = size;
  session_sent(world->session);
  return (const char *)world->sent;
}

static inline void assert_heard(struct world *world, const char *part) {
  const char *text = heard(world);
  if (strstr(text, part) == NULL) fail_msg("expected %s\n in %s", part, text[0] != '\0' ? text : "(nothing)");
}

#define ID(digits) "000000000000000000000000000000" digits
#define HELLO                                                                                                         \
  "{\"type\":\"worker.hello\",\"message_id\":\"" ID("01") "\",\"instance_id\":\"" ID("a1") "\",\"queue_ids\":[\"" ID( \
      "11") "\"],\"capacity\":4,\"handlers\":[{\"handler\":\"text.normalize\",\"handler_version\":\"v1\"}]}"
#define CAPACITY "{\"type\":\"worker.capacity\",\"message_id\":\"" ID("02") "\",\"capacity\":7}"
#define DRAIN "{\"type\":\"worker.drain\",\"message_id\":\"" ID("03") "\"}"
#define ATTEMPT(type, message) \
  "{\"type\":\"" type          \
  "\",\"message_id\":\"" ID(message) "\",\"task_id\":\"" ID("22") "\",\"attempt_id\":\"" ID("31") "\",\"epoch\":\"1\""
#define START ATTEMPT("task.start", "04") "}"
#define RENEW ATTEMPT("task.renew", "05") "}"
#define RELEASE ATTEMPT("task.release", "06") "}"
#define FINISH ATTEMPT("task.finish", "07") ",\"outcome\":\"SUCCEEDED\",\"result\":{\"n\": 1.10}}"

/* Brings a fresh session to the state. */
static inline void reach(struct world *world, enum session_state state) {
  world_open(world);
  if (state == SESSION_CONNECTED) return;
  say(world, HELLO);
  if (state == SESSION_GREETING) return;
  answer_first(world, NULL);
  assert_heard(world, "worker.welcome");
  if (state == SESSION_READY) return;
  say(world, DRAIN);
  answer_first(world, NULL);
  assert_heard(world, "\"ok\":true");
}

/* An array of count messages made by the format from 1, 2, …; the caller frees. */
static inline char *array_of(unsigned count) {
  size_t room = (size_t)count * 300 + 16, used = 0;
  char *text = malloc(room);
  assert_non_null(text);
  for (unsigned i = 1; i <= count; i++)
    used += (size_t)snprintf(
        text + used, room - used,
        "%s{\"type\":\"task.finish\",\"message_id\":\"%032x\",\"task_id\":\"" ID("22") "\",\"attempt_id\":\"" ID(
            "31") "\",\"epoch\":\"%u\",\"outcome\":\"SUCCEEDED\",\"result\":{ \"a\\u0062\" : %u }}",
        i == 1 ? "[" : ",", i, i, i);
  (void)snprintf(text + used, room - used, "]");
  return text;
}

static inline void result_of_start(struct answer *answer) {
  answer->as.worker = (struct worker_result){.applied = true, .has_task = true, .task_state = TASK_RUNNING, .task_revision = 3};
  answer->as.worker.task_id.bytes[15] = 0x22;
}
#endif
