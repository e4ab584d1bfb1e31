/* The worker channel over real sockets, with a real engine and log behind it. */
#include "channel_fixture.h"

#define ATTEMPT_FORMAT "\"message_id\":\"%032x\",\"task_id\":\"%s\",\"attempt_id\":\"%s\",\"epoch\":\"%s\""

struct assignment {
  char task_id[id_chars + 1], attempt_id[id_chars + 1], epoch[24];
};

/* Takes the next message, which must be an assignment. */
static struct assignment expect_assignment(struct client *client) {
  struct assignment assignment;
  client_expect(client, "{\"type\":\"task.assign\",\"task\":{\"id\":\"");
  (void)snprintf(assignment.task_id, sizeof assignment.task_id, "%s", client_member(client, "id"));
  (void)snprintf(assignment.attempt_id, sizeof assignment.attempt_id, "%s", client_member(client, "attempt_id"));
  (void)snprintf(assignment.epoch, sizeof assignment.epoch, "%.*s", (int)strcspn(client_member(client, "epoch"), "\""),
                 client_member(client, "epoch"));
  return assignment;
}

static void say_about(struct client *client, const char *type, unsigned message_id, const struct assignment *assignment,
                      const char *more) {
  char text[2048];
  (void)snprintf(text, sizeof text, "{\"type\":\"%s\"," ATTEMPT_FORMAT "%s}", type, message_id, assignment->task_id,
                 assignment->attempt_id, assignment->epoch, more);
  client_say(client, text);
}

/* ---- the exchange of schema/worker.md ---- */

static void a_task_goes_through_its_life(void **state) {
  (void)state;
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  client_greet(&client, &fixture, HELLO);
  assert_non_null(strstr(client.message, "\"message_id\":\"00000000000000000000000000000001\",\"session_id\":\""));
  assert_non_null(strstr(client.message, "\"lease_ms\":30000,\"attempts\":[]}"));
  struct id task = fixture_submit(&fixture, "{\"n\":[1.10,1e400,9007199254740993]}");
  struct assignment held = expect_assignment(&client);
  assert_string_equal(held.task_id, id_text(&task).text);
  assert_string_equal(held.epoch, "1");
  assert_non_null(strstr(client.message, "\"state\":\"LEASED\",\"revision\":\"2\""));
  assert_non_null(strstr(client.message, "\"payload\":{\"n\":[1.10,1e400,9007199254740993]}"));
  assert_non_null(strstr(client.message, "\"attempt_timeout_ms\":10000}"));

  say_about(&client, "task.start", 2, &held, "");
  client_expect(&client, "\"message_id\":\"00000000000000000000000000000002\",\"ok\":true,\"applied\":true");
  assert_non_null(
      strstr(client.message, "\"state\":\"RUNNING\",\"revision\":\"3\"},\"lease\":{\"active\":true,\"expires_at\":"));
  say_about(&client, "task.start", 2, &held, "");
  client_expect(&client, "\"applied\":true,\"deduplicated\":true");
  say_about(&client, "task.renew", 3, &held, "");
  client_expect(&client, "\"ok\":true,\"applied\":true");
  static const char failed[] =
      ",\"outcome\":\"FAILED\",\"retryable\":true,\"error\":{\"code\":\"TEMPORARY\",\"details\":{\"ref\":1}}";
  say_about(&client, "task.finish", 4, &held, failed);
  client_expect(&client, "\"applied\":true,\"disposition\":\"RETRYABLE_FAILURE\"");
  assert_non_null(strstr(client.message, "\"state\":\"WAITING\",\"revision\":\"4\",\"available_at\":"));
  assert_non_null(strstr(client.message, "\"lease\":{\"active\":false}"));

  struct assignment again = expect_assignment(&client);
  assert_string_equal(again.epoch, "2");
  say_about(&client, "task.start", 5, &held, ""); /* of the attempt before */
  client_expect(&client, "\"ok\":false,\"applied\":false");
  say_about(&client, "task.start", 6, &again, "");
  client_expect(&client, "\"ok\":true");
  say_about(&client, "task.finish", 7, &again, ",\"outcome\":\"SUCCEEDED\",\"result\":{\"ok\":true}");
  client_expect(&client, "\"disposition\":\"SUCCEEDED\"");
  client_close(&client);
  fixture_await_sessions(&fixture, 0);
  fixture_close(&fixture);
}

static void what_is_held_is_told_after_coming_back(void **state) {
  (void)state;
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  (void)fixture_submit(&fixture, "1");
  (void)fixture_submit(&fixture, "2");
  client_greet(&client, &fixture, HELLO);
  struct assignment first = expect_assignment(&client), second = expect_assignment(&client);
  say_about(&client, "task.start", 2, &first, "");
  client_expect(&client, "RUNNING");
  client_close(&client);
  fixture_await_sessions(&fixture, 0);

  client_greet(&client, &fixture, HELLO);
  assert_non_null(strstr(client.message, first.attempt_id));
  assert_non_null(strstr(client.message, second.attempt_id));
  struct assignment again = expect_assignment(&client); /* the one that has not started */
  assert_string_equal(again.attempt_id, second.attempt_id);
  say_about(&client, "task.start", 2, &first, ""); /* its answer may have been lost */
  client_expect(&client, "\"deduplicated\":true");
  say_about(&client, "task.release", 3, &again, "");
  client_expect(&client, "\"disposition\":\"UNSTARTED_RELEASED\"");
  client_close(&client);
  fixture_close(&fixture);
}

static void draining_ends_with_worker_drained(void **state) {
  (void)state;
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  client_greet(&client, &fixture, HELLO);
  (void)fixture_submit(&fixture, "1");
  struct assignment held = expect_assignment(&client);
  client_say(&client, "{\"type\":\"worker.drain\",\"message_id\":\"000000000000000000000000000000d1\"}");
  client_expect(&client, "\"message_id\":\"000000000000000000000000000000d1\",\"ok\":true");
  (void)fixture_submit(&fixture, "2"); /* not for this worker any more */
  say_about(&client, "task.start", 2, &held, "");
  client_expect(&client, "RUNNING");
  say_about(&client, "task.finish", 3, &held, ",\"outcome\":\"SUCCEEDED\",\"result\":0");
  client_expect(&client, "\"disposition\":\"SUCCEEDED\"");
  client_expect(&client, "{\"type\":\"worker.drained\"}");
  client_close(&client);
  fixture_close(&fixture);
}

/* ---- frames ---- */

static void fragments_pings_and_arrays(void **state) {
  (void)state;
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  client_open(&client, &fixture);
  size_t size = strlen(HELLO);
  static const char hello[] = HELLO;
  client_send_frame(&client, FRAME_TEXT, false, hello, 10);
  client_send_frame(&client, FRAME_PING, true, "are you there", 13);
  client_send_frame(&client, FRAME_CONTINUATION, false, hello + 10, 0);
  client_send_frame(&client, FRAME_CONTINUATION, false, hello + 10, size - 20);
  client_send_frame(&client, FRAME_CONTINUATION, true, hello + size - 10, 10);
  bool ponged = false, welcomed = false;
  for (int i = 0; i < 2; i++) { /* in either order */
    int opcode = client_read_frame(&client);
    const char *text = (const char *)client.frame;
    ponged = ponged || (opcode == FRAME_PONG && strcmp(text, "are you there") == 0);
    welcomed = welcomed || (opcode == FRAME_TEXT && strstr(text, "worker.welcome") != NULL);
  }
  assert_true(ponged && welcomed);
  client_say(&client, "[" CAPACITY("02") "," CAPACITY("03") ",{\"type\":\"worker.capacity\"}," CAPACITY("04") "]");
  client_expect(&client, "\"type\":\"error\""); /* it needs no engine, so it comes first */
  client_expect(&client, "00000000000000000000000000000002\",\"ok\":true");
  client_expect(&client, "00000000000000000000000000000003\",\"ok\":true");
  client_expect(&client, "00000000000000000000000000000004\",\"ok\":true");
  client_close(&client);
  fixture_close(&fixture);
}

static void a_full_array_is_answered_one_by_one(void **state) {
  (void)state;
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  client_greet(&client, &fixture, HELLO);
  enum { count = worker_frame_messages_max };
  const size_t room = count * 200;
  char *text = malloc(room), part[64];
  assert_non_null(text);
  size_t used = 0;
  for (unsigned i = 0; i < count; i++)
    used +=
        (size_t)snprintf(text + used, room - used, "%s{\"type\":\"worker.capacity\",\"message_id\":\"%032x\",\"capacity\":9}",
                         i == 0 ? "[" : ",", i + 1);
  text[used++] = ']';
  client_send_frame(&client, FRAME_TEXT, true, text, used);
  free(text);
  for (unsigned i = 0; i < count; i++) {
    (void)snprintf(part, sizeof part, "\"message_id\":\"%032x\",\"ok\":true", i + 1);
    client_expect(&client, part);
  }
  client_close(&client);
  fixture_close(&fixture);
}

static void sizes(void **state) {
  (void)state;
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  static const struct {
    size_t size;
    size_t piece; /* of a fragmented frame; 0: whole */
    bool taken;
  } rows[] = {{worker_frame_bytes_max, 0, true},          {worker_frame_bytes_max, 100000, true},
              {worker_frame_bytes_max + 1, 0, false},     {worker_frame_bytes_max + 1, 100000, false},
              {2 * worker_frame_bytes_max, 65536, false}, {126, 1, true}};
  char *text = malloc(2 * worker_frame_bytes_max);
  assert_non_null(text);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    memset(text, ' ', rows[i].size);
    memcpy(text, CAPACITY("02"), strlen(CAPACITY("02")));
    client_greet(&client, &fixture, HELLO);
    size_t piece = rows[i].piece != 0 ? rows[i].piece : rows[i].size;
    for (size_t at = 0; at < rows[i].size; at += piece) {
      size_t part = rows[i].size - at < piece ? rows[i].size - at : piece;
      client_send_frame(&client, at == 0 ? FRAME_TEXT : FRAME_CONTINUATION, at + part == rows[i].size, text + at, part);
    }
    if (rows[i].taken) client_expect(&client, "\"ok\":true");
    else assert_int_equal(client_close_code(&client), 1009);
    client_close(&client);
  }
  free(text);
  fixture_close(&fixture);
}

static void wrong_frames_close_with_their_code(void **state) {
  (void)state;
  static const struct {
    uint8_t first; /* header byte: FIN, RSV, opcode */
    const char *data;
    unsigned times;
    int close_code;
  } rows[] = {
      {0x81, "\xFF\xFE", 1, 1007},                /* no UTF-8 */
      {0x81, "{\"type\":\"\xC0\xAF\"}", 1, 1007}, /* overlong */
      {0x81, "\xED\xA0\x80", 1, 1007},            /* a surrogate */
      {0x81, "\xE2\x82", 1, 1007},                /* cut off within a character */
      {0x80, "abc", 1, 1002},                     /* a continuation of nothing */
      {0xC1, "{}", 1, 1002},                      /* a reserved bit */
      {0x83, "{}", 1, 1002},                      /* a reserved opcode */
      {0x81, "nonsense", worker_bad_frames_max, 1008},
      {0x82, "binary", worker_bad_frames_max, 1008},
      {0x88, "\x03\xE8", 1, 1000}, /* close is answered with its code */
  };
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    client_greet(&client, &fixture, HELLO);
    size_t size = strlen(rows[i].data);
    for (unsigned n = 0; n < rows[i].times; n++) client_send_raw(&client, rows[i].first, rows[i].data, size, size);
    for (unsigned n = 0; rows[i].close_code == 1008 && n < rows[i].times; n++) client_expect(&client, "INVALID_ARGUMENT");
    assert_int_equal(client_close_code(&client), rows[i].close_code);
    client_close(&client);
  }
  fixture_await_sessions(&fixture, 0);
  fixture_close(&fixture);
}

/* RFC 6455 wants a frame of a client that is not masked to end the connection. libwebsockets reads it as what it says and shows
 * nothing of the mask, so Orbit judges it as any other (schema/worker.md "Frames"): held here, so that a library that
 * refuses it is noticed. */
static void a_frame_without_a_mask_is_read_as_any_other(void **state) {
  (void)state;
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  client_greet(&client, &fixture, HELLO);
  uint8_t frame[256] = {0x81};
  size_t size = strlen(CAPACITY("02"));
  assert_true(size < 126);
  frame[1] = (uint8_t)size;
  memcpy(frame + 2, CAPACITY("02"), size);
  socket_send(client.fd, frame, size + 2);
  client_expect(&client, "\"ok\":true");
  client_say(&client, CAPACITY("03")); /* and the next one, with a mask, is read well */
  client_expect(&client, "\"ok\":true");
  client_close(&client);
  fixture_close(&fixture);
}

static void characters_may_be_split_between_fragments(void **state) {
  (void)state;
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  client_greet(&client, &fixture, HELLO);
  static const char text[] = "{\"type\":\"\xE2\x82\xAC\",\"message_id\":\"00000000000000000000000000000002\"}";
  client_send_frame(&client, FRAME_TEXT, false, text, 10);
  client_send_frame(&client, FRAME_CONTINUATION, true, text + 10, strlen(text) - 10);
  client_expect(&client, "\"message_id\":\"00000000000000000000000000000002\",\"ok\":false");
  client_close(&client);
  fixture_close(&fixture);
}

static void a_frame_that_claims_much_takes_nothing(void **state) {
  (void)state;
  struct fixture fixture;
  struct client huge, client;
  fixture_open(&fixture);
  client_open(&huge, &fixture);
  client_send_raw(&huge, 0x81, "abc", 3, UINT64_C(1) << 62);
  client_greet(&client, &fixture, HELLO); /* others are served */
  char *text = calloc(1, worker_frame_bytes_max);
  assert_non_null(text);
  memset(text, 'a', worker_frame_bytes_max);
  socket_send(huge.fd, text, worker_frame_bytes_max); /* masked by chance, read as text */
  free(text);
  int code = client_close_code(&huge);
  assert_true(code == 1009 || code == 1007);
  client_close(&huge);
  client_close(&client);
  fixture_close(&fixture);
}

/* ---- ends ---- */

static void a_newer_connection_replaces_the_older(void **state) {
  (void)state;
  struct fixture fixture;
  struct client older, newer, other;
  fixture_open(&fixture);
  client_greet(&older, &fixture, HELLO);
  client_greet(&other, &fixture, HELLO_AS("01", "a2", "1"));
  client_greet(&newer, &fixture, HELLO);
  assert_int_equal(client_close_code(&older), 4001);
  client_close(&older);
  client_say(&newer, CAPACITY("02"));
  client_expect(&newer, "\"ok\":true");
  client_say(&other, CAPACITY("03"));
  client_expect(&other, "\"ok\":true");
  fixture_await_sessions(&fixture, 2);
  client_close(&newer);
  client_close(&other);
  fixture_close(&fixture);
}

static void credential_ends(struct fixture *fixture, bool revoked, int64_t expires_at) {
  struct credential credential = {.id = fixture_id(0xc01),
                                  .application_id = fixture_id(0x101),
                                  .namespace_id = fixture_id(0x100),
                                  .permissions = UINT64_C(1) << PERMISSION_TASKS_CONSUME,
                                  .expires_at = expires_at,
                                  .revoked = revoked};
  token_hash(bytes_text(TOKEN_WORKER), credential.token_hash);
  directory_put(engine_directory(fixture->edge.engine), &credential, false);
}

static void a_credential_that_ends_closes_its_workers(void **state) {
  (void)state;
  static const bool revoked[] = {true, false}; /* else it expires */
  for (size_t i = 0; i < sizeof revoked / sizeof revoked[0]; i++) {
    struct fixture fixture;
    struct client idle, busy;
    fixture_open(&fixture);
    client_greet(&idle, &fixture, HELLO);
    client_greet(&busy, &fixture, HELLO_AS("01", "a2", "1"));
    credential_ends(&fixture, revoked[i], revoked[i] ? 0 : engine_now_us(fixture.edge.engine));
    client_say(&busy, CAPACITY("02")); /* judged by the frame … */
    assert_int_equal(client_close_code(&busy), 1008);
    assert_int_equal(client_close_code(&idle), 1008); /* … and without one */
    client_close(&idle);
    client_close(&busy);
    fixture_close(&fixture);
  }
}

/* A whole array of task.start for attempts that there are not, numbered from first on. Returns its size. */
static size_t frame_of_starts(char *frame, size_t room, unsigned first) {
  size_t used = 0;
  for (unsigned i = 0; i < worker_frame_messages_max; i++)
    used +=
        (size_t)snprintf(frame + used, room - used,
                         "%s{\"type\":\"task.start\",\"message_id\":\"%032x\",\"task_id\":\"%032x\",\"attempt_id\":\"%032x\","
                         "\"epoch\":\"1\"}",
                         i == 0 ? "[" : ",", first + i, first + i, first + i);
  frame[used++] = ']';
  return used;
}

static void a_worker_that_does_not_read_is_closed_and_loses_nothing(void **state) {
  (void)state;
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  client_open_as(&client, &fixture, 4096);
  client_say(&client, HELLO);
  client_expect(&client, "worker.welcome");
  const size_t room = worker_frame_messages_max * 300;
  char *frame = malloc(room);
  assert_non_null(frame);
  size_t used = frame_of_starts(frame, room, 1);
  /* 1,000 frames would be answered with more than 60 MiB; the sockets hold a few MiB, the session 4 MiB. */
  for (unsigned n = 0; n < 1000 && channel_sessions(fixture.channel) == 1; n++) {
    struct pollfd wait = {.fd = client.fd, .events = POLLOUT};
    if (poll(&wait, 1, client_wait_ms) != 1 || (wait.revents & (POLLERR | POLLHUP)) != 0) break;
    client_send_frame(&client, FRAME_TEXT, true, frame, used);
  }
  free(frame);
  fixture_await_sessions(&fixture, 0); /* the client still has read nothing: it is cut off */
  struct client again;
  client_greet(&again, &fixture, HELLO);
  client_close(&again);
  client_close(&client);
  fixture_close(&fixture);
}

/* What the socket does not take at once waits for room, and nothing is lost, doubled or overtaken by that. */
static void a_worker_that_reads_late_gets_every_answer_in_order(void **state) {
  (void)state;
  enum { frames = 60 }; /* answered with more than the sockets hold, and less than a session may let wait */
  struct fixture fixture;
  struct client client;
  fixture_open(&fixture);
  client_open_as(&client, &fixture, 64 * 1024);
  client_say(&client, HELLO);
  client_expect(&client, "worker.welcome");
  const size_t room = worker_frame_messages_max * 300;
  char *frame = malloc(room);
  assert_non_null(frame);
  for (unsigned n = 0; n < frames; n++)
    client_send_frame(&client, FRAME_TEXT, true, frame, frame_of_starts(frame, room, n * worker_frame_messages_max + 1));
  free(frame);
  for (unsigned number = 1; number <= frames * worker_frame_messages_max; number++) {
    char id[id_chars + 1];
    client_expect(&client, "command.result");
    (void)snprintf(id, sizeof id, "%032x", number);
    assert_string_equal(client_member(&client, "message_id"), id);
  }
  client_close(&client);
  fixture_close(&fixture);
}

static void goaway_and_stop(void **state) {
  (void)state;
  struct fixture fixture;
  struct client clients[3];
  fixture_open(&fixture);
  client_greet(&clients[0], &fixture, HELLO);
  client_greet(&clients[1], &fixture, HELLO_AS("01", "a2", "1"));
  client_open(&clients[2], &fixture); /* no hello yet */
  fixture_await_sessions(&fixture, 3);
  channel_goaway(fixture.channel);
  for (int i = 0; i < 3; i++) {
    client_expect(&clients[i], "{\"type\":\"server.goaway\",\"reconnect_after_ms\":");
    long wait_ms = strtol(strrchr(clients[i].message, ':') + 1, NULL, 10);
    assert_in_range(wait_ms, 1, goaway_jitter_ms_max);
  }
  client_say(&clients[0], CAPACITY("02")); /* those that are there are served */
  client_expect(&clients[0], "\"ok\":true");
  client_say(&clients[1], CAPACITY("03"));
  client_expect(&clients[1], "\"ok\":true");
  channel_stop(fixture.channel); /* the clients say nothing to their close frames, and that does not keep it */
  fixture.channel = NULL;
  for (int i = 0; i < 3; i++) {
    assert_int_equal(client_close_code(&clients[i]), 1001);
    client_close(&clients[i]);
  }
  fixture_close(&fixture);
}

/* What signals do is for the main thread to say: an event loop below must not change it. */
static void signals_are_left_alone(void **state) {
  (void)state;
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGSEGV, SIGFPE, SIGBUS};
  struct fixture fixture;
  struct sigaction now;
  struct sigaction before[sizeof signals / sizeof signals[0]];
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) assert_int_equal(sigaction(signals[i], NULL, &before[i]), 0);
  for (int stopped = 0; stopped < 2; stopped++) {
    if (stopped) fixture_close(&fixture);
    else fixture_open(&fixture);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
      assert_int_equal(sigaction(signals[i], NULL, &now), 0);
      assert_ptr_equal((void *)now.sa_sigaction, (void *)before[i].sa_sigaction);
    }
  }
}

/* Takes a minute: with ORBIT_SLOW_TESTS alone. */
static void it_pings_and_drops_the_silent(void **state) {
  (void)state;
  if (getenv("ORBIT_SLOW_TESTS") == NULL) {
    print_message("skipped: takes a minute (ORBIT_SLOW_TESTS=1 runs it)\n");
    skip();
  }
  struct fixture fixture;
  struct client alive, silent;
  struct timespec start, now;
  fixture_open(&fixture);
  client_greet(&alive, &fixture, HELLO);
  client_greet(&silent, &fixture, HELLO_AS("01", "a2", "1"));
  (void)clock_gettime(CLOCK_MONOTONIC, &start);
  unsigned pings = 0;
  while (channel_sessions(fixture.channel) == 2) {
    struct pollfd wait = {.fd = alive.fd, .events = POLLIN};
    if (poll(&wait, 1, 1000) != 1) continue;
    assert_int_equal(client_read_frame(&alive), FRAME_PING);
    client_send_frame(&alive, FRAME_PONG, true, alive.frame, alive.frame_size);
    pings++;
  }
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  assert_in_range(now.tv_sec - start.tv_sec, worker_silence_s_max - 2, worker_silence_s_max + 3);
  assert_in_range(pings, 2, 3);
  assert_int_equal(channel_sessions(fixture.channel), 1);
  client_close(&alive);
  client_close(&silent);
  fixture_close(&fixture);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_task_goes_through_its_life),
      cmocka_unit_test(what_is_held_is_told_after_coming_back),
      cmocka_unit_test(draining_ends_with_worker_drained),
      cmocka_unit_test(fragments_pings_and_arrays),
      cmocka_unit_test(a_full_array_is_answered_one_by_one),
      cmocka_unit_test(sizes),
      cmocka_unit_test(wrong_frames_close_with_their_code),
      cmocka_unit_test(a_frame_without_a_mask_is_read_as_any_other),
      cmocka_unit_test(characters_may_be_split_between_fragments),
      cmocka_unit_test(a_frame_that_claims_much_takes_nothing),
      cmocka_unit_test(a_newer_connection_replaces_the_older),
      cmocka_unit_test(a_credential_that_ends_closes_its_workers),
      cmocka_unit_test(a_worker_that_does_not_read_is_closed_and_loses_nothing),
      cmocka_unit_test(a_worker_that_reads_late_gets_every_answer_in_order),
      cmocka_unit_test(goaway_and_stop),
      cmocka_unit_test(signals_are_left_alone),
      cmocka_unit_test(it_pings_and_drops_the_silent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
