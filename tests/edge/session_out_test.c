/* What a session sends by itself or holds back, and how it ends. */
#include "session_fixture.h"

#include "codec/event_codec.h"

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
  push->attempt.lease_until = push->attempt.live_until = task->created_at + 500000;
  task->attempt_timeout_ms = 1000;
  memset(push->attempt.id.bytes, 0x31, id_bytes);
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
