/* The session machine, fed with frames and read by what it would send: no socket, no engine. The engine's part is played by the
 * test: tickets that were submitted wait in a list until the test answers them. */
#include "edge/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/event_codec.h"
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

static enum status fake_submit(void *context, struct ticket *ticket, struct fault *fault) {
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

static enum status fake_check(void *context, const struct id *credential_id) {
  struct world *world = context;
  assert_int_equal(credential_id->bytes[0], 0x77);
  return world->revoked ? STATUS_UNAUTHENTICATED : STATUS_OK;
}

static void world_open(struct world *world) {
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
static void answer_first(struct world *world, void (*change)(struct answer *answer)) {
  assert_true(world->ticket_count > 0);
  struct ticket *ticket = world->tickets[0];
  memmove(world->tickets, world->tickets + 1, --world->ticket_count * sizeof world->tickets[0]);
  ticket->answer = (struct answer){.status = STATUS_OK};
  if (ticket->command.kind == COMMAND_HELLO)
    ticket->answer.as.welcome = (struct welcome){.server_time = INT64_C(1789603200000000), .lease_ms = 30000};
  if (change != NULL) change(&ticket->answer);
  session_hub_answer(&world->hub, ticket);
}

static void world_close(struct world *world) {
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

static void say_bytes(struct world *world, struct bytes text) { session_receive(world->session, text, true, true, false); }
static void say(struct world *world, const char *text) { say_bytes(world, bytes_text(text)); }

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

static void assert_heard(struct world *world, const char *part) {
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
static void reach(struct world *world, enum session_state state) {
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

static void each_state_takes_what_it_expects(void **unused) {
  (void)unused;
  static const struct {
    enum session_state state;
    const char *message;
    enum command_kind submitted; /* 0: refused */
    enum session_state after;
  } rows[] = {
      {SESSION_CONNECTED, HELLO, COMMAND_HELLO, SESSION_GREETING},
      {SESSION_CONNECTED, CAPACITY, 0, SESSION_CONNECTED},
      {SESSION_CONNECTED, DRAIN, 0, SESSION_CONNECTED},
      {SESSION_CONNECTED, START, 0, SESSION_CONNECTED},
      {SESSION_CONNECTED, RENEW, 0, SESSION_CONNECTED},
      {SESSION_CONNECTED, FINISH, 0, SESSION_CONNECTED},
      {SESSION_CONNECTED, RELEASE, 0, SESSION_CONNECTED},
      {SESSION_GREETING, HELLO, 0, SESSION_GREETING},
      {SESSION_GREETING, START, COMMAND_START, SESSION_GREETING},
      {SESSION_GREETING, FINISH, COMMAND_FINISH, SESSION_GREETING},
      {SESSION_READY, HELLO, 0, SESSION_READY},
      {SESSION_READY, CAPACITY, COMMAND_CAPACITY, SESSION_READY},
      {SESSION_READY, DRAIN, COMMAND_DRAIN, SESSION_DRAINING},
      {SESSION_READY, START, COMMAND_START, SESSION_READY},
      {SESSION_READY, RENEW, COMMAND_RENEW, SESSION_READY},
      {SESSION_READY, FINISH, COMMAND_FINISH, SESSION_READY},
      {SESSION_READY, RELEASE, COMMAND_RELEASE, SESSION_READY},
      {SESSION_DRAINING, HELLO, 0, SESSION_DRAINING},
      {SESSION_DRAINING, CAPACITY, COMMAND_CAPACITY, SESSION_DRAINING},
      {SESSION_DRAINING, DRAIN, COMMAND_DRAIN, SESSION_DRAINING},
      {SESSION_DRAINING, START, COMMAND_START, SESSION_DRAINING},
      {SESSION_DRAINING, FINISH, COMMAND_FINISH, SESSION_DRAINING},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct world world;
    reach(&world, rows[i].state);
    uint32_t before = world.ticket_count;
    say(&world, rows[i].message);
    assert_int_equal(world.ticket_count, before + (rows[i].submitted != 0));
    assert_int_equal(world.session->state, rows[i].after);
    if (rows[i].submitted != 0) {
      const struct ticket *ticket = world.tickets[before];
      assert_int_equal(ticket->command.kind, rows[i].submitted);
      assert_int_equal(ticket->command.session, 42);
      assert_int_equal(ticket->command.who.credential_id.bytes[0], 0x77);
      assert_ptr_equal(ticket->home, &world.outbox);
      assert_ptr_equal(ticket->gauge, rows[i].submitted == COMMAND_HELLO ? &world.session->gauge : NULL);
      assert_string_equal(heard(&world), "");
    } else {
      assert_heard(&world, "\"ok\":false,\"applied\":false,\"error\":{\"code\":\"STATE_CONFLICT\"");
    }
    world_close(&world);
  }
}

static void refuse_not_found(struct answer *answer) {
  answer->status = fault_set(&answer->fault, STATUS_NOT_FOUND, "/queue_ids/0", "no such queue");
}

static void a_refused_hello_may_be_said_again(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_GREETING);
  answer_first(&world, refuse_not_found);
  assert_int_equal(world.session->state, SESSION_CONNECTED);
  assert_string_equal(heard(&world), "{\"type\":\"command.result\",\"message_id\":\"" ID(
                                         "01") "\",\"ok\":false,\"applied\":false,\"error\":{\"code\":\"NOT_FOUND\","
                                               "\"message\":\"no such queue\",\"field\":\"/queue_ids/0\"}}");
  say(&world, HELLO);
  answer_first(&world, NULL);
  assert_int_equal(world.session->state, SESSION_READY);
  assert_heard(&world, "\"type\":\"worker.welcome\",\"message_id\":\"" ID("01") "\"");
  world_close(&world);
}

static void a_full_mailbox_is_told_and_changes_nothing(void **unused) {
  (void)unused;
  struct world world;
  world_open(&world);
  world.full = true;
  say(&world, HELLO);
  assert_int_equal(world.session->state, SESSION_CONNECTED);
  assert_heard(&world, "\"ok\":false,\"applied\":false,\"error\":{\"code\":\"UNAVAILABLE\"");
  world.full = false;
  say(&world, HELLO);
  answer_first(&world, NULL);
  assert_heard(&world, "worker.welcome");
  world.full = true;
  say(&world, DRAIN);
  assert_int_equal(world.session->state, SESSION_READY);
  assert_heard(&world, "UNAVAILABLE");
  world_close(&world);
}

static void result_of_start(struct answer *answer) {
  answer->as.worker = (struct worker_result){.applied = true, .has_task = true, .task_state = TASK_RUNNING, .task_revision = 3};
  answer->as.worker.task_id.bytes[15] = 0x22;
}
static void result_refused(struct answer *answer) {
  result_of_start(answer);
  answer->status = fault_set(&answer->fault, STATUS_LEASE_LOST, NULL, "the lease is over");
}
static void result_unknown_task(struct answer *answer) {
  answer->status = fault_set(&answer->fault, STATUS_NOT_FOUND, NULL, "no such task");
}

static void answers_are_written_as_they_come_back(void **unused) {
  (void)unused;
  static const struct {
    const char *message;
    void (*answer)(struct answer *answer);
    const char *heard;
  } rows[] = {
      {START, result_of_start,
       "{\"type\":\"command.result\",\"message_id\":\"" ID("04") "\",\"ok\":true,\"applied\":true,\"task\":{\"id\":\"" ID(
           "22") "\",\"state\":\"RUNNING\",\"revision\":\"3\"},\"lease\":{\"active\":false}}"},
      {START, result_refused,
       "{\"type\":\"command.result\",\"message_id\":\"" ID("04") "\",\"ok\":false,\"applied\":false,\"task\":{\"id\":\"" ID(
           "22") "\",\"state\":\"RUNNING\",\"revision\":\"3\"},\"lease\":{\"active\":false},\"error\":{\"code\":\"LEASE_LOST\","
                 "\"message\":\"the lease is over\"}}"},
      {FINISH, result_unknown_task,
       "{\"type\":\"command.result\",\"message_id\":\"" ID(
           "07") "\",\"ok\":false,\"applied\":false,\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"no such task\"}}"},
      {CAPACITY, NULL, "{\"type\":\"command.result\",\"message_id\":\"" ID("02") "\",\"ok\":true,\"applied\":true}"},
      {DRAIN, NULL, "{\"type\":\"command.result\",\"message_id\":\"" ID("03") "\",\"ok\":true,\"applied\":true}"},
      {CAPACITY, result_unknown_task,
       "{\"type\":\"command.result\",\"message_id\":\"" ID(
           "02") "\",\"ok\":false,\"applied\":false,\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"no such task\"}}"},
  };
  struct world world;
  reach(&world, SESSION_READY);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    say(&world, rows[i].message);
    assert_string_equal(heard(&world), "");
    answer_first(&world, rows[i].answer);
    assert_string_equal(heard(&world), rows[i].heard);
  }
  world_close(&world);
}

/* ---- frames ---- */

static void faulty_messages_are_told_and_three_bad_frames_close(void **unused) {
  (void)unused;
  static const struct {
    const char *frame;
    const char *heard;
    bool bad; /* counts towards the three */
  } rows[] = {
      {"", "{\"type\":\"error\",\"error\":{\"code\":\"INVALID_ARGUMENT\"", true},
      {"nonsense", "{\"type\":\"error\",\"error\":{\"code\":\"INVALID_ARGUMENT\"", true},
      {"[]", "{\"type\":\"error\"", true},
      {"7", "{\"type\":\"error\"", true},
      {"{}", "{\"type\":\"error\"", true},
      {"[1]", "{\"type\":\"error\"", true},
      {"{\"type\":\"task.start\"}", "{\"type\":\"error\"", true},
      {"{\"type\":\"task.start\",\"message_id\":\"short\"}", "{\"type\":\"error\"", true},
      {"{\"type\":\"task.stop\",\"message_id\":\"" ID("01") "\"}", "\"message_id\":\"" ID("01") "\",\"ok\":false", false},
      {"{\"type\":\"worker.capacity\",\"message_id\":\"" ID("01") "\",\"capacity\":0}", "\"field\":\"/capacity\"", false},
      {"{\"type\":\"worker.capacity\",\"message_id\":\"" ID("01") "\",\"capacity\":1001}", "\"field\":\"/capacity\"", false},
      {"{\"type\":\"worker.capacity\",\"message_id\":\"" ID("01") "\",\"capacity\":1,\"x\":1}", "\"ok\":false", false},
      {"{\"type\":\"worker.capacity\",\"message_id\":\"" ID("01") "\",\"capacity\":1,\"capacity\":1}", "\"type\":\"error\"",
       true},
      {"[{},{\"type\":\"worker.drain\",\"message_id\":\"" ID("01") "\",\"x\":1}]", "\"type\":\"error\"", false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct world world;
    reach(&world, SESSION_READY);
    for (unsigned n = 1; n <= worker_bad_frames_max; n++) {
      assert_int_equal(world.session->state, SESSION_READY);
      say(&world, rows[i].frame);
      assert_heard(&world, rows[i].heard);
    }
    assert_int_equal(world.session->state, rows[i].bad ? SESSION_CLOSED : SESSION_READY);
    assert_int_equal(world.session->close_code, rows[i].bad ? 1008 : 0);
    assert_int_equal(world.ticket_count, rows[i].bad ? 1 : 0); /* BYE */
    world_close(&world);
  }
}

static void a_message_between_bad_frames_starts_the_count_again(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  for (int round = 0; round < 3; round++) {
    say(&world, "{");
    say(&world, "}");
    say(&world, CAPACITY);
    answer_first(&world, NULL);
    assert_int_equal(world.session->state, SESSION_READY);
  }
  world_close(&world);
}

static void binary_frames_are_bad_frames(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  for (unsigned n = 1; n <= worker_bad_frames_max; n++) {
    session_receive(world.session, bytes_text(CAPACITY), true, true, true);
    assert_heard(&world, "this one is binary");
  }
  assert_int_equal(world.ticket_count, 1); /* BYE */
  assert_int_equal(world.session->close_code, 1008);
  world_close(&world);
}

static void frames_are_put_together_from_pieces(void **unused) {
  (void)unused;
  static const size_t pieces[] = {1, 2, 3, 7, 50, 51, 1000};
  for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
    struct world world;
    reach(&world, SESSION_READY);
    size_t size = strlen(FINISH), at = 0;
    while (at < size) {
      size_t piece = size - at < pieces[i] ? size - at : pieces[i];
      session_receive(world.session, bytes_of(&FINISH[at], piece), at == 0, at + piece == size, false);
      at += piece;
      assert_int_equal(world.ticket_count, at == size ? 1 : 0);
    }
    assert_int_equal(world.tickets[0]->command.kind, COMMAND_FINISH);
    world_close(&world);
  }
}

/* An array of one capacity message, with white space up to size. */
static uint8_t *padded_frame(size_t size) {
  uint8_t *text = malloc(size);
  assert_non_null(text);
  memset(text, ' ', size);
  memcpy(text, "[" CAPACITY, strlen("[" CAPACITY));
  text[size - 1] = ']';
  return text;
}

static void a_frame_may_hold_one_mebibyte(void **unused) {
  (void)unused;
  static const struct {
    size_t size;
    uint16_t close_code;
  } rows[] = {{worker_frame_bytes_max - 1, 0}, {worker_frame_bytes_max, 0}, {worker_frame_bytes_max + 1, 1009}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct world world;
    reach(&world, SESSION_READY);
    uint8_t *text = padded_frame(rows[i].size);
    size_t half = rows[i].size / 2;
    session_receive(world.session, bytes_of(text, half), true, false, false);
    session_receive(world.session, bytes_of(text + half, rows[i].size - half), false, true, false);
    free(text);
    assert_int_equal(world.session->close_code, rows[i].close_code);
    assert_int_equal(world.tickets[0]->command.kind, rows[i].close_code == 0 ? COMMAND_CAPACITY : COMMAND_BYE);
    world_close(&world);
  }
}

static void a_message_may_have_half_a_mebibyte(void **unused) {
  (void)unused;
  static const struct {
    size_t size;
    const char *heard;
  } rows[] = {{worker_message_bytes_max, ""},
              {worker_message_bytes_max + 1, "\"ok\":false,\"applied\":false,\"error\":{\"code\":\"PAYLOAD_TOO_LARGE\""}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct world world;
    reach(&world, SESSION_READY);
    uint8_t *text = padded_frame(rows[i].size + 2);
    text[0] = ' ';
    text[rows[i].size + 1] = ' ';
    /* The message is what stands between the braces: it is stretched to the size. */
    text[1 + strlen(CAPACITY) - 1] = ' ';
    text[rows[i].size] = '}';
    say_bytes(&world, bytes_of(text, rows[i].size + 2));
    free(text);
    assert_heard(&world, rows[i].heard);
    assert_int_equal(world.ticket_count, rows[i].heard[0] == '\0' ? 1 : 0);
    world_close(&world);
  }
}

/* An array of count messages made by the format from 1, 2, …; the caller frees. */
static char *array_of(unsigned count) {
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

static void an_array_is_as_many_commands_and_its_memory_lives_as_long(void **unused) {
  (void)unused;
  static const struct {
    unsigned count;
    bool taken;
  } rows[] = {{1, true}, {2, true}, {worker_frame_messages_max, true}, {worker_frame_messages_max + 1, false}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct world world;
    reach(&world, SESSION_READY);
    char *text = array_of(rows[i].count);
    say(&world, text);
    free(text); /* what came is not what the commands point at */
    assert_int_equal(world.ticket_count, rows[i].taken ? rows[i].count : 0);
    say(&world, CAPACITY); /* another frame in between */
    if (!rows[i].taken) assert_heard(&world, "\"type\":\"error\"");
    for (unsigned n = 1; rows[i].taken && n <= rows[i].count; n++) {
      const struct finish_command *finish = &world.tickets[0]->command.as.finish;
      char result[64];
      (void)snprintf(result, sizeof result, "{\"a\\u0062\":%u}", n);
      assert_int_equal(finish->ref.epoch, n);
      assert_true(bytes_equal_text(finish->report.result, result));
      answer_first(&world, NULL);
    }
    world_close(&world);
  }
}

/* ---- what waits for the socket ---- */

static void what_waits_is_joined_in_one_frame(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  enum { count = worker_frame_messages_max + 44 };
  for (unsigned i = 0; i < count; i++) say(&world, CAPACITY);
  for (unsigned i = 0; i < count; i++) answer_first(&world, NULL);
  static const char one[] = "{\"type\":\"command.result\",\"message_id\":\"" ID("02") "\",\"ok\":true,\"applied\":true}";
  uint64_t counted = (uint64_t)count * strlen(one) + worker_frame_messages_max - 1 + 43; /* messages and commas */
  assert_int_equal(world.session->queued_bytes, counted);
  assert_int_equal(atomic_load(&world.session->gauge.unsent_bytes), counted);
  static const unsigned frames[] = {worker_frame_messages_max, 44};
  for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
    const char *text = heard(&world);
    assert_int_equal(strlen(text), frames[i] * (strlen(one) + 1) + 1);
    assert_int_equal(text[0], '[');
    assert_int_equal(text[strlen(text) - 1], ']');
    for (unsigned n = 0; n < frames[i]; n++) {
      const char *message = text + 1 + n * (strlen(one) + 1);
      assert_memory_equal(message, one, strlen(one));
      assert_int_equal(message[strlen(one)], n + 1 < frames[i] ? ',' : ']');
    }
  }
  assert_string_equal(heard(&world), "");
  assert_int_equal(world.session->queued_bytes, 0);
  assert_int_equal(atomic_load(&world.session->gauge.unsent_bytes), 0);
  world_close(&world);
}

static void push_text(struct world *world, enum mail_kind kind, size_t reason_size) {
  char *text = malloc(reason_size + 1);
  assert_non_null(text);
  memset(text, 'r', reason_size);
  struct push *push = push_new(kind, 42, bytes_of(text, reason_size));
  push->task_id.bytes[15] = 0x22;
  push->attempt_id.bytes[15] = 0x31;
  push->ended_by = ENDED_LEASE_EXPIRED;
  push->close_code = 4001;
  session_push(world->session, push, (struct record_source){NULL, NULL}, NULL);
  push_free(push);
  free(text);
}

static void joining_stops_at_its_bound(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  for (int i = 0; i < 3; i++) push_text(&world, MAIL_CANCEL, session_join_bytes_max - 200);
  assert_int_equal(heard(&world)[0], '['); /* two: the first left room for one more */
  assert_true(world.sent_size < 2 * session_join_bytes_max);
  assert_int_equal(heard(&world)[0], '{');
  assert_string_equal(heard(&world), "");
  world_close(&world);
}

static void a_worker_that_does_not_read_is_closed(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  enum { text_size = 1024 };
  uint64_t size = 0;
  while (world.session->state == SESSION_READY) {
    size = world.session->queued_bytes;
    assert_true(size <= worker_unsent_bytes_max);
    push_text(&world, MAIL_CANCEL, text_size);
  }
  assert_true(size > worker_unsent_bytes_max - 2 * text_size);
  assert_int_equal(world.session->close_code, 1013);
  assert_int_equal(world.session->queued_bytes, 0);
  assert_int_equal(atomic_load(&world.session->gauge.unsent_bytes), 0);
  assert_true(session_wants_close(world.session));
  world_close(&world);
}

/* ---- what Orbit says by itself ---- */

static void pushes_become_messages(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  push_text(&world, MAIL_CANCEL, 2);
  assert_string_equal(heard(&world), "{\"type\":\"task.cancel\",\"task_id\":\"" ID("22") "\",\"attempt_id\":\"" ID(
                                         "31") "\",\"reason\":\"rr\"}");
  push_text(&world, MAIL_ENDED, 0);
  assert_string_equal(heard(&world), "{\"type\":\"attempt.ended\",\"task_id\":\"" ID("22") "\",\"attempt_id\":\"" ID(
                                         "31") "\",\"ended_by\":\"LEASE_EXPIRED\"}");
  push_text(&world, MAIL_DRAINED, 0);
  assert_string_equal(heard(&world), "{\"type\":\"worker.drained\"}");
  session_goaway(world.session, 1234);
  assert_string_equal(heard(&world), "{\"type\":\"server.goaway\",\"reconnect_after_ms\":1234}");
  push_text(&world, MAIL_CLOSE, 500);
  assert_int_equal(world.session->close_code, 4001);
  assert_int_equal(strlen(world.session->close_reason), 123);
  push_text(&world, MAIL_CANCEL, 2);
  session_goaway(world.session, 1);
  assert_string_equal(heard(&world), "");
  world_close(&world);
}

struct one_record {
  struct buffer bytes;
};

static enum status get_record(void *context, uint64_t seq, struct bytes *ret_record) {
  struct one_record *record = context;
  if (seq != 1) return STATUS_END;
  *ret_record = buffer_bytes(&record->bytes);
  return STATUS_OK;
}

static void record_accepted(struct one_record *record, const struct id *task_id) {
  struct event event = {.type = EVENT_task_accepted, .version = 1, .last_of_commit = true, .seq = 1};
  event.time_us = INT64_C(1789603200000000);
  event.stream = *task_id;
  event.common.revision = 1;
  struct event_task_accepted *accepted = &event.body.task_accepted;
  memset(accepted->namespace_id.bytes, 1, id_bytes);
  memset(accepted->application_id.bytes, 2, id_bytes);
  memset(accepted->queue_id.bytes, 3, id_bytes);
  memset(event.common.operation_id.bytes, 4, id_bytes);
  memset(event.common.actor.bytes, 5, id_bytes);
  accepted->handler = bytes_text("text.normalize");
  accepted->handler_version = accepted->payload_version = bytes_text("v1");
  accepted->payload = bytes_text("{\"n\":1e400}");
  accepted->available_at = event.time_us;
  accepted->deadline_at = event.time_us + 1000000;
  accepted->recovery_safety = RECOVERY_IDEMPOTENT;
  accepted->max_attempts = 1;
  accepted->attempt_timeout_ms = 1000;
  buffer_init(&record->bytes, 65536);
  assert_int_equal(record_encode(&event, &record->bytes), STATUS_OK);
}

static void an_assignment_weighs_what_is_sent(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  struct one_record record;
  struct push *push = push_new(MAIL_ASSIGN, 42, (struct bytes){NULL, 0});
  struct task *task = &push->task;
  memset(task->id.bytes, 0x22, id_bytes);
  record_accepted(&record, &task->id);
  task->accepted_seq = 1;
  task->last_seq = 2;
  task->epoch = 1;
  task->attempt_count = task->max_attempts = 1;
  task->revision = 2;
  task->state = TASK_LEASED;
  task->recovery_safety = RECOVERY_IDEMPOTENT;
  task->created_at = task->updated_at = task->available_at = INT64_C(1789603200000000);
  task->deadline_at = task->created_at + 1000000;
  task->attempt.lease_until = task->attempt.live_until = task->created_at + 500000;
  task->attempt_timeout_ms = 1000;
  memset(task->attempt.id.bytes, 0x31, id_bytes);
  push->weight = 100000;
  atomic_fetch_add(&world.session->gauge.unsent_bytes, push->weight); /* the engine, when it leased */
  struct history *history = history_new();
  session_push(world.session, push, (struct record_source){get_record, &record}, history);
  assert_true(world.session->queued_bytes > 0);
  assert_int_equal(atomic_load(&world.session->gauge.unsent_bytes), world.session->queued_bytes);
  const char *text = heard(&world);
  assert_non_null(strstr(text, "\"type\":\"task.assign\""));
  assert_non_null(strstr(text, "\"payload\":{\"n\":1e400}"));
  assert_non_null(
      strstr(text, "\"attempt\":{\"attempt_id\":\"31313131313131313131313131313131\",\"number\":1,\"epoch\":\"1\""));
  assert_int_equal(atomic_load(&world.session->gauge.unsent_bytes), 0);

  task->accepted_seq = 7; /* a record that is not there */
  session_push(world.session, push, (struct record_source){get_record, &record}, history);
  assert_int_equal(world.session->close_code, 1011);
  history_free(history);
  buffer_clear(&record.bytes);
  push_free(push);
  world_close(&world);
}

/* ---- the end ---- */

static void it_is_over_when_all_tickets_are_back(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  char *text = array_of(3);
  say(&world, text);
  free(text);
  session_hang_up(world.session);
  assert_int_equal(world.ticket_count, 4);
  assert_int_equal(world.tickets[3]->command.kind, COMMAND_BYE);
  assert_int_equal(world.tickets[3]->command.session, 42);
  for (int i = 0; i < 4; i++) {
    assert_false(session_is_over(world.session));
    answer_first(&world, NULL);
  }
  assert_true(session_is_over(world.session));
  assert_string_equal(heard(&world), "");
  world_close(&world);
}

static void held_attempts(struct answer *answer) {
  answer->as.welcome.held = guard_calloc(2, sizeof *answer->as.welcome.held);
  answer->as.welcome.held_count = 2;
  for (int i = 0; i < 2; i++) {
    answer->as.welcome.held[i] = (struct held_attempt){.number = 1, .epoch = 1, .state = ATTEMPT_RUNNING};
    answer->as.welcome.held[i].lease_expires_at = INT64_C(1789603200000000);
  }
}

static void a_welcome_shows_what_is_held_and_is_dropped_for_the_dead(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_GREETING);
  answer_first(&world, held_attempts);
  assert_heard(&world, "\"attempts\":[{\"task_id\":");
  world_close(&world);
  reach(&world, SESSION_GREETING);
  session_hang_up(world.session);
  answer_first(&world, held_attempts); /* the sanitizer tells if they leak */
  assert_false(session_is_over(world.session));
  world_close(&world);
}

static void without_hello_no_bye_is_needed(void **unused) {
  (void)unused;
  struct world world;
  world_open(&world);
  session_hang_up(world.session);
  assert_int_equal(world.ticket_count, 0);
  assert_true(session_is_over(world.session));
  world_close(&world);
}

static void a_bye_that_found_no_room_is_said_again(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  world.full = true;
  session_hang_up(world.session);
  session_hub_retry(&world.hub);
  assert_int_equal(world.ticket_count, 0);
  assert_false(session_is_over(world.session));
  world.full = false;
  session_hub_retry(&world.hub);
  assert_int_equal(world.ticket_count, 1);
  session_hub_retry(&world.hub);
  assert_int_equal(world.ticket_count, 1);
  answer_first(&world, NULL);
  assert_true(session_is_over(world.session));
  world_close(&world);
}

static void a_credential_that_ended_closes_at_the_next_frame(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  world.revoked = true;
  say(&world, START);
  assert_int_equal(world.session->close_code, 1008);
  assert_int_equal(world.ticket_count, 1);
  assert_int_equal(world.tickets[0]->command.kind, COMMAND_BYE);
  world_close(&world);
}

static void retiring_waits_for_the_answers(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  say(&world, START);
  say(&world, CAPACITY);
  session_retire(world.session);
  say(&world, RENEW); /* not read any more */
  assert_int_equal(world.ticket_count, 2);
  assert_int_equal(world.session->state, SESSION_READY);
  answer_first(&world, result_of_start);
  assert_int_equal(world.session->state, SESSION_READY);
  answer_first(&world, NULL);
  assert_int_equal(world.session->state, SESSION_CLOSED);
  assert_int_equal(world.session->close_code, 1001);
  assert_false(session_wants_close(world.session));
  assert_heard(&world, "RUNNING");
  assert_true(session_wants_close(world.session));
  world_close(&world);
}

static void too_many_commands_under_way_stop_the_reading(void **unused) {
  (void)unused;
  struct world world;
  reach(&world, SESSION_READY);
  while (session_hub_next(&world.hub) != NULL) continue;
  for (unsigned i = 1; i <= session_tickets_max; i++) {
    say(&world, CAPACITY);
    assert_int_equal(session_wants_pause(world.session), i == session_tickets_max);
  }
  assert_ptr_equal(session_hub_next(&world.hub), world.session);
  world.session->paused = true; /* the channel did it */
  for (unsigned left = session_tickets_max - 1; left > 0; left--) {
    answer_first(&world, NULL);
    assert_int_equal(session_wants_pause(world.session), left >= session_tickets_max / 2);
    assert_ptr_equal(session_hub_next(&world.hub), world.session);
    while (heard(&world)[0] != '\0') continue;
  }
  world_close(&world);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_state_takes_what_it_expects),
      cmocka_unit_test(a_refused_hello_may_be_said_again),
      cmocka_unit_test(a_full_mailbox_is_told_and_changes_nothing),
      cmocka_unit_test(answers_are_written_as_they_come_back),
      cmocka_unit_test(faulty_messages_are_told_and_three_bad_frames_close),
      cmocka_unit_test(a_message_between_bad_frames_starts_the_count_again),
      cmocka_unit_test(binary_frames_are_bad_frames),
      cmocka_unit_test(frames_are_put_together_from_pieces),
      cmocka_unit_test(a_frame_may_hold_one_mebibyte),
      cmocka_unit_test(a_message_may_have_half_a_mebibyte),
      cmocka_unit_test(an_array_is_as_many_commands_and_its_memory_lives_as_long),
      cmocka_unit_test(what_waits_is_joined_in_one_frame),
      cmocka_unit_test(joining_stops_at_its_bound),
      cmocka_unit_test(a_worker_that_does_not_read_is_closed),
      cmocka_unit_test(pushes_become_messages),
      cmocka_unit_test(an_assignment_weighs_what_is_sent),
      cmocka_unit_test(it_is_over_when_all_tickets_are_back),
      cmocka_unit_test(a_welcome_shows_what_is_held_and_is_dropped_for_the_dead),
      cmocka_unit_test(without_hello_no_bye_is_needed),
      cmocka_unit_test(a_bye_that_found_no_room_is_said_again),
      cmocka_unit_test(a_credential_that_ended_closes_at_the_next_frame),
      cmocka_unit_test(retiring_waits_for_the_answers),
      cmocka_unit_test(too_many_commands_under_way_stop_the_reading),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
