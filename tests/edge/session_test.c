/* The session machine, fed with frames: what it takes in which state, and what it answers. No socket, no engine. */
#include "session_fixture.h"

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
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
