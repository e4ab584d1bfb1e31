/* The desk of a worker, message by message, with no server, no socket and no clock: what is sent, when a handler may run, and
 * what is repeated after a broken connection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../sdk/c/src/desk.h"
#include "base/guard.h"
#include "support/support.h"

#define QUEUE "0000000000000000000000000000000a"
#define TASK "000000000000000000000000000000b1"
#define ATTEMPT "000000000000000000000000000000c1"
#define OTHER_TASK "000000000000000000000000000000b2"
#define OTHER_ATTEMPT "000000000000000000000000000000c2"

enum { messages_max = 64, text_max = 512 };

struct sent {
  char type[32], message_id[33], attempt_id[33], outcome[16], code[64];
  char whole[text_max];
};

struct rig {
  struct sdk_desk desk;
  int64_t now_ms;
  struct buffer frame;
  struct sent sent[messages_max]; /* of the last flush */
  uint32_t sent_count, frames;
  char hello_id[33];
};

static const char *const queues[] = {QUEUE};

static enum orbit_outcome never_called(void *context, const struct orbit_assignment *assignment, struct orbit_report *report) {
  (void)context, (void)assignment, (void)report;
  fail_msg("the desk calls no handlers");
  return ORBIT_UNKNOWN;
}

static void rig_up(struct rig *rig, uint32_t capacity, uint32_t threads) {
  *rig = (struct rig){.now_ms = 1000000};
  buffer_init(&rig->frame, 4 << 20);
  rig->desk.instance_id = "000000000000000000000000000000d1";
  rig->desk.queue_ids = queues;
  rig->desk.queue_count = 1;
  rig->desk.capacity = capacity;
  rig->desk.threads = threads;
  rig->desk.handlers[0] = (struct sdk_handler){"text.normalize", "v1", never_called, NULL};
  rig->desk.handler_count = 1;
  assert_true(sdk_desk_init(&rig->desk));
}

static void rig_down(struct rig *rig) {
  sdk_desk_clear(&rig->desk);
  buffer_clear(&rig->frame);
}

static void text_of(struct json *json, uint32_t object, const char *name, char *out, size_t size) {
  uint32_t token = json_member(json, object, name);
  out[0] = '\0';
  if (token != 0 && json->tokens[token].type == JSON_STRING) sdk_text_copy(out, size, json_string(json, token));
}

static void sent_read(struct rig *rig, struct json *json, uint32_t token) {
  assert_in_range(rig->sent_count, 0, messages_max - 1);
  struct sent *sent = &rig->sent[rig->sent_count++];
  text_of(json, token, "type", sent->type, sizeof sent->type);
  text_of(json, token, "message_id", sent->message_id, sizeof sent->message_id);
  text_of(json, token, "attempt_id", sent->attempt_id, sizeof sent->attempt_id);
  text_of(json, token, "outcome", sent->outcome, sizeof sent->outcome);
  uint32_t error = json_member(json, token, "error");
  sent->code[0] = '\0';
  if (error != 0) text_of(json, error, "code", sent->code, sizeof sent->code);
  sdk_text_copy(sent->whole, sizeof sent->whole, json_raw(json, token));
}

/* Sends all that is due; what it was is in rig->sent. */
static void flush(struct rig *rig) {
  cleanup(json_clear) struct json json;
  json_init(&json);
  rig->sent_count = rig->frames = 0;
  for (;;) {
    buffer_reset(&rig->frame);
    uint32_t count = sdk_desk_compose(&rig->desk, rig->now_ms, &rig->frame);
    if (count == 0) break;
    rig->frames++;
    assert_int_equal(json_parse(&json, buffer_bytes(&rig->frame), NULL), STATUS_OK);
    bool is_array = json.tokens[0].type == JSON_ARRAY;
    assert_int_equal(is_array, count > 1);
    if (is_array) assert_int_equal(json.tokens[0].count, count);
    uint32_t token = is_array ? 1 : 0;
    for (uint32_t i = 0; i < count; i++, token = json.tokens[token].next) sent_read(rig, &json, token);
  }
}

static void expect_sent(struct rig *rig, size_t index, const char *type) {
  assert_true(index < rig->sent_count);
  assert_string_equal(rig->sent[index].type, type);
}

static void say(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct rig *rig, const char *format, ...) {
  char *frame = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&frame, format, arguments);
  va_end(arguments);
  assert_true(length > 0);
  sdk_desk_receive(&rig->desk, bytes_of(frame, (size_t)length), rig->now_ms);
  free(frame);
}

/* The server's clock shows 2026-09-17T00:00:00Z when rig->now_ms is 1,000,000. */
static const char *server_time(const struct rig *rig, int64_t after_ms, char out[32]) {
  int64_t ms = rig->now_ms - 1000000 + after_ms;
  assert_in_range(ms, 0, 3599999);
  (void)snprintf(out, 32, "2026-09-17T00:%02d:%02d.%03dZ", (int)(ms / 60000), (int)(ms / 1000 % 60), (int)(ms % 1000));
  return out;
}

static void connect_to(struct rig *rig) {
  sdk_desk_connected(&rig->desk);
  flush(rig);
  assert_int_equal(rig->sent_count, 1);
  expect_sent(rig, 0, "worker.hello");
  memcpy(rig->hello_id, rig->sent[0].message_id, sizeof rig->hello_id);
}

static void welcome(struct rig *rig, const char *attempts) {
  char time[32];
  connect_to(rig);
  say(rig,
      "{\"type\":\"worker.welcome\",\"message_id\":\"%s\",\"session_id\":\"" QUEUE "\",\"node_id\":\"" QUEUE
      "\",\"server_time\":\"%s\",\"lease_ms\":30000,\"attempts\":[%s]}",
      rig->hello_id, server_time(rig, 0, time), attempts);
  assert_true(rig->desk.welcomed);
}

static void assign_as(struct rig *rig, const char *task, const char *attempt, const char *handler, int64_t lease_ms) {
  char updated[32], expires[32], deadline[32];
  say(rig,
      "{\"type\":\"task.assign\",\"task\":{\"id\":\"%s\",\"namespace_id\":\"" QUEUE "\",\"queue_id\":\"" QUEUE
      "\",\"state\":\"LEASED\",\"revision\":\"2\",\"handler\":\"%s\",\"handler_version\":\"v1\",\"payload_version\":\"v1\","
      "\"payload\":{\"n\":9007199254740993},\"deadline_at\":\"%s\",\"updated_at\":\"%s\"},"
      "\"attempt\":{\"attempt_id\":\"%s\",\"number\":1,\"epoch\":\"7\",\"lease_expires_at\":\"%s\",\"attempt_timeout_ms\":"
      "10000}}",
      task, handler, server_time(rig, 60000, deadline), server_time(rig, 0, updated), attempt,
      server_time(rig, lease_ms, expires));
}

static void assign(struct rig *rig) { assign_as(rig, TASK, ATTEMPT, "text.normalize", 30000); }

static void grant(struct rig *rig, const char *message_id) {
  say(rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,"
      "\"task\":{\"id\":\"" TASK "\",\"state\":\"RUNNING\",\"revision\":\"3\"},\"lease\":{\"active\":true}}",
      message_id);
}

static void confirm(struct rig *rig, const char *message_id, const char *disposition) {
  say(rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,\"disposition\":\"%s\","
      "\"lease\":{\"active\":false}}",
      message_id, disposition);
}

static void refuse(struct rig *rig, const char *message_id, const char *code) {
  say(rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":false,\"applied\":false,"
      "\"error\":{\"code\":\"%s\",\"message\":\"no\"}}",
      message_id, code);
}

/* Welcomed, one attempt assigned, its start granted, its handler running. */
static struct sdk_held *run_one(struct rig *rig) {
  welcome(rig, "");
  assign(rig);
  flush(rig);
  assert_int_equal(rig->sent_count, 1);
  expect_sent(rig, 0, "task.start");
  grant(rig, rig->sent[0].message_id);
  struct sdk_held *held = sdk_desk_take(&rig->desk);
  assert_non_null(held);
  return held;
}

static void finish(struct rig *rig, struct sdk_held *held) {
  enum orbit_outcome outcome = orbit_report_success(&held->report, "{\"ok\":true}", 11);
  sdk_desk_return(&rig->desk, held, outcome, rig->now_ms);
}

/* ---- The ordinary course ---- */

static void hello_says_who_and_what(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  assert_false(sdk_desk_has_output(&rig.desk));
  connect_to(&rig);
  char expected[text_max];
  (void)snprintf(expected, sizeof expected,
                 "{\"type\":\"worker.hello\",\"message_id\":\"%s\",\"instance_id\":\"000000000000000000000000000000d1\","
                 "\"queue_ids\":[\"" QUEUE
                 "\"],\"handlers\":[{\"handler\":\"text.normalize\",\"handler_version\":\"v1\"}],"
                 "\"capacity\":4}",
                 rig.hello_id);
  assert_string_equal(rig.sent[0].whole, expected);
  rig_down(&rig);
}

static void a_handler_runs_with_a_start_grant_alone(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  assert_null(sdk_desk_take(&rig.desk));
  flush(&rig);
  expect_sent(&rig, 0, "task.start");
  assert_null(sdk_desk_take(&rig.desk));
  grant(&rig, rig.sent[0].message_id);
  struct sdk_held *held = sdk_desk_take(&rig.desk);
  assert_non_null(held);
  assert_null(sdk_desk_take(&rig.desk));
  assert_string_equal(held->assignment.task_id, TASK);
  assert_string_equal(held->assignment.attempt_id, ATTEMPT);
  assert_string_equal(held->assignment.payload, "{\"n\":9007199254740993}");
  assert_int_equal(held->assignment.epoch, 7);
  assert_int_equal(held->assignment.number, 1);
  assert_false(held->assignment.effect_uncertain);

  finish(&rig, held);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  char expected[text_max];
  (void)snprintf(expected, sizeof expected,
                 "{\"type\":\"task.finish\",\"message_id\":\"%s\",\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                 "\",\"epoch\":\"7\",\"outcome\":\"SUCCEEDED\",\"result\":{\"ok\":true}}",
                 rig.sent[0].message_id);
  assert_string_equal(rig.sent[0].whole, expected);
  assert_int_equal(rig.desk.stats.confirmed, 0);
  confirm(&rig, rig.sent[0].message_id, "SUCCEEDED");
  assert_int_equal(rig.desk.stats.started, 1);
  assert_int_equal(rig.desk.stats.confirmed, 1);
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

static void a_refused_start_runs_nothing(void **state) {
  static const char *const codes[] = {"LEASE_LOST", "STATE_CONFLICT", "NOT_FOUND", "IDEMPOTENCY_CONFLICT"};
  (void)state;
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    struct rig rig;
    rig_up(&rig, 4, 4);
    welcome(&rig, "");
    assign(&rig);
    flush(&rig);
    refuse(&rig, rig.sent[0].message_id, codes[i]);
    assert_null(sdk_desk_take(&rig.desk));
    assert_int_equal(rig.desk.held_count, 0);
    assert_int_equal(rig.desk.stats.start_refused, 1);
    rig_down(&rig);
  }
}

static void an_old_grant_without_a_lease_runs_nothing(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  flush(&rig);
  say(&rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,\"deduplicated\":true,"
      "\"lease\":{\"active\":false}}",
      rig.sent[0].message_id);
  assert_null(sdk_desk_take(&rig.desk));
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

static void a_refusal_for_now_is_asked_again_with_the_same_id(void **state) {
  (void)state;
  struct rig rig;
  char first[33];
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  flush(&rig);
  memcpy(first, rig.sent[0].message_id, sizeof first);
  say(&rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":false,\"applied\":false,"
      "\"error\":{\"code\":\"UNAVAILABLE\",\"message\":\"no\",\"retry_after_ms\":700}}",
      first);
  rig.now_ms += 699;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  assert_int_equal(rig.desk.next_due_ms, rig.now_ms + 1);
  rig.now_ms += 1;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  expect_sent(&rig, 0, "task.start");
  assert_string_equal(rig.sent[0].message_id, first);
  rig_down(&rig);
}

/* ---- Threads ---- */

static void attempts_without_a_thread_wait_unstarted(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 1);
  welcome(&rig, "");
  assign(&rig);
  assign_as(&rig, OTHER_TASK, OTHER_ATTEMPT, "text.normalize", 30000);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  assert_string_equal(rig.sent[0].attempt_id, ATTEMPT);
  grant(&rig, rig.sent[0].message_id);
  finish(&rig, sdk_desk_take(&rig.desk));
  flush(&rig);
  assert_int_equal(rig.sent_count, 2);
  assert_int_equal(rig.frames, 1);
  expect_sent(&rig, 0, "task.finish");
  expect_sent(&rig, 1, "task.start");
  assert_string_equal(rig.sent[1].attempt_id, OTHER_ATTEMPT);
  rig_down(&rig);
}

static void what_no_handler_is_for_is_given_back(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign_as(&rig, TASK, ATTEMPT, "text.other", 30000);
  flush(&rig);
  expect_sent(&rig, 0, "task.release");
  confirm(&rig, rig.sent[0].message_id, "UNSTARTED_RELEASED");
  assert_int_equal(rig.desk.stats.released, 1);
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

/* ---- Leases ---- */

static void leases_are_renewed_at_a_third(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  (void)run_one(&rig);
  sdk_desk_tick(&rig.desk, rig.now_ms);
  /* The attempt ends after 10 s, before the lease does: no renewal could reach further. */
  assert_int_equal(rig.desk.next_due_ms, INT64_MAX);
  rig_down(&rig);

  rig_up(&rig, 4, 1);
  welcome(&rig, "");
  assign(&rig);
  assign_as(&rig, OTHER_TASK, OTHER_ATTEMPT, "text.normalize", 30000);
  flush(&rig);
  rig.now_ms += 9999;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  rig.now_ms += 1;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  assert_int_equal(rig.sent_count, 2);
  expect_sent(&rig, 0, "task.renew");
  expect_sent(&rig, 1, "task.renew");
  int64_t asked_ms = rig.now_ms;
  rig.now_ms += 250;
  say(&rig, "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,\"lease\":{\"active\":true}}",
      rig.sent[1].message_id);
  /* The lease counts from the moment that the renewal was asked for. */
  for (uint32_t slot = 0; slot < rig.desk.slot_count; slot++) {
    const struct sdk_held *held = rig.desk.slots[slot];
    if (held == NULL || strcmp(held->assignment.attempt_id, OTHER_ATTEMPT) != 0) continue;
    assert_int_equal(held->lease_end_ms, asked_ms + 30000);
    assert_int_equal(held->renew_at_ms, asked_ms + 10000);
  }
  rig_down(&rig);
}

static void a_report_after_the_lease_is_an_unknown(void **state) {
  static const struct {
    const char *what;
    int64_t after_ms;
    bool ended;
    const char *outcome;
  } cases[] = {
      {"in time", 9999, false, "SUCCEEDED"},
      {"the attempt's time is over", 10000, false, "UNKNOWN"},
      {"Orbit has ended it", 1, true, "UNKNOWN"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    print_message("%s\n", cases[i].what);
    struct rig rig;
    rig_up(&rig, 4, 4);
    struct sdk_held *held = run_one(&rig);
    rig.now_ms += cases[i].after_ms;
    if (cases[i].ended) {
      say(&rig,
          "{\"type\":\"attempt.ended\",\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT "\",\"ended_by\":\"REVOKED\"}");
    }
    finish(&rig, held);
    flush(&rig);
    expect_sent(&rig, 0, "task.finish");
    assert_string_equal(rig.sent[0].outcome, cases[i].outcome);
    bool late = strcmp(cases[i].outcome, "UNKNOWN") == 0;
    assert_int_equal(rig.desk.stats.lost, late ? 1 : 0);
    if (late) {
      assert_string_equal(rig.sent[0].code, "LEASE_LOST");
      assert_non_null(
          strstr(rig.sent[0].whole, "\"details\":{\"handler_outcome\":\"SUCCEEDED\",\"handler_result\":{\"ok\":true}}"));
      confirm(&rig, rig.sent[0].message_id, "EVIDENCE");
      assert_int_equal(rig.desk.stats.evidence, 1);
    }
    rig_down(&rig);
  }
}

static void a_lost_renewal_is_seen_by_the_handler(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  struct sdk_held *held = run_one(&rig);
  atomic_store(&held->authority_end_ms, INT64_MAX);
  assert_false(orbit_assignment_lost(&held->assignment));
  held->attempt_end_ms = INT64_MAX; /* so that there is something to renew */
  rig.now_ms += 10000;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  flush(&rig);
  expect_sent(&rig, 0, "task.renew");
  refuse(&rig, rig.sent[0].message_id, "LEASE_LOST");
  assert_true(orbit_assignment_lost(&held->assignment));
  assert_int_equal(orbit_assignment_remaining_ms(&held->assignment), 0);
  rig_down(&rig);
}

/* ---- Broken connections ---- */

static void an_unanswered_start_is_repeated_as_it_was(void **state) {
  (void)state;
  struct rig rig;
  char first[33], expires[32], attempts[text_max];
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  flush(&rig);
  memcpy(first, rig.sent[0].message_id, sizeof first);
  sdk_desk_disconnected(&rig.desk);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  rig.now_ms += 2000;
  (void)snprintf(attempts, sizeof attempts,
                 "{\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                 "\",\"number\":1,\"epoch\":\"7\",\"state\":\"LEASED\",\"lease_expires_at\":\"%s\"}",
                 server_time(&rig, 28000, expires));
  welcome(&rig, attempts);
  assign(&rig); /* it has not started, so it is assigned again */
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  expect_sent(&rig, 0, "task.start");
  assert_string_equal(rig.sent[0].message_id, first);
  assert_int_equal(rig.desk.stats.assigned, 1);
  grant(&rig, first);
  assert_non_null(sdk_desk_take(&rig.desk));
  assert_null(sdk_desk_take(&rig.desk));
  assert_int_equal(rig.desk.stats.connections, 2);
  rig_down(&rig);
}

static void an_unanswered_report_is_repeated_as_it_was(void **state) {
  static const bool cases_still_held[] = {true, false};
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    struct rig rig;
    struct sent first;
    char expires[32], attempts[text_max] = "";
    rig_up(&rig, 4, 4);
    finish(&rig, run_one(&rig));
    flush(&rig);
    expect_sent(&rig, 0, "task.finish");
    first = rig.sent[0];
    sdk_desk_disconnected(&rig.desk);
    if (cases_still_held[i]) {
      (void)snprintf(attempts, sizeof attempts,
                     "{\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                     "\",\"number\":1,\"epoch\":\"7\",\"state\":\"RUNNING\",\"lease_expires_at\":\"%s\"}",
                     server_time(&rig, 28000, expires));
    }
    welcome(&rig, attempts);
    flush(&rig);
    assert_int_equal(rig.sent_count, 1);
    assert_string_equal(rig.sent[0].whole, first.whole);
    confirm(&rig, first.message_id, "SUCCEEDED");
    assert_int_equal(rig.desk.stats.confirmed, 1);
    confirm(&rig, first.message_id, "SUCCEEDED"); /* a late second answer counts once */
    assert_int_equal(rig.desk.stats.confirmed, 1);
    rig_down(&rig);
  }
}

static void a_handler_may_return_while_the_connection_is_broken(void **state) {
  (void)state;
  struct rig rig;
  char expires[32], attempts[text_max];
  rig_up(&rig, 4, 4);
  struct sdk_held *held = run_one(&rig);
  sdk_desk_disconnected(&rig.desk);
  finish(&rig, held);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  (void)snprintf(attempts, sizeof attempts,
                 "{\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                 "\",\"number\":1,\"epoch\":\"7\",\"state\":\"RUNNING\",\"lease_expires_at\":\"%s\"}",
                 server_time(&rig, 28000, expires));
  welcome(&rig, attempts);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  expect_sent(&rig, 0, "task.finish");
  assert_string_equal(rig.sent[0].outcome, "SUCCEEDED");
  rig_down(&rig);
}

static void what_the_welcome_does_not_name_is_lost(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 1);
  struct sdk_held *held = run_one(&rig);
  assign_as(&rig, OTHER_TASK, OTHER_ATTEMPT, "text.normalize", 30000); /* waits for the thread */
  sdk_desk_disconnected(&rig.desk);
  welcome(&rig, "");
  assert_true(orbit_assignment_lost(&held->assignment));
  assert_int_equal(rig.desk.held_count, 1);
  finish(&rig, held);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  assert_string_equal(rig.sent[0].outcome, "UNKNOWN");
  rig_down(&rig);
}

static void an_attempt_of_an_earlier_run_is_not_run(void **state) {
  (void)state;
  struct rig rig;
  char expires[32], attempts[text_max];
  rig_up(&rig, 4, 4);
  (void)snprintf(attempts, sizeof attempts,
                 "{\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT
                 "\",\"number\":1,\"epoch\":\"7\",\"state\":\"RUNNING\",\"lease_expires_at\":\"%s\"}",
                 server_time(&rig, 28000, expires));
  welcome(&rig, attempts);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  assert_null(sdk_desk_take(&rig.desk));
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

static void a_server_that_does_not_answer_is_left(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  assign(&rig);
  flush(&rig);
  rig.now_ms += 29999;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  assert_false(rig.desk.broken);
  rig.now_ms += 1;
  sdk_desk_tick(&rig.desk, rig.now_ms);
  assert_true(rig.desk.broken);
  rig_down(&rig);
}

/* ---- Refused reports ---- */

static void a_report_that_is_not_taken_becomes_an_unknown_once(void **state) {
  (void)state;
  struct rig rig;
  char first[33];
  rig_up(&rig, 4, 4);
  finish(&rig, run_one(&rig));
  flush(&rig);
  memcpy(first, rig.sent[0].message_id, sizeof first);
  refuse(&rig, first, "INVALID_ARGUMENT");
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  assert_string_equal(rig.sent[0].outcome, "UNKNOWN");
  assert_string_equal(rig.sent[0].code, "REPORT_REFUSED");
  assert_string_not_equal(rig.sent[0].message_id, first);
  refuse(&rig, rig.sent[0].message_id, "INVALID_ARGUMENT");
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  assert_int_equal(rig.desk.stats.refused, 1);
  assert_int_equal(rig.desk.held_count, 0);
  rig_down(&rig);
}

/* ---- Reports ---- */

static void reports_become_messages(void **state) {
  (void)state;
  struct rig rig;
  static const struct {
    int what;
    enum orbit_outcome returned;
    const char *tail; /* of the message, from the outcome on */
  } cases[] = {
      {0, ORBIT_UNKNOWN, "UNKNOWN\",\"error\":{\"code\":\"NO_REPORT\",\"message\":\"the handler returned without a report\"}}"},
      {0, ORBIT_SUCCEEDED,
       "UNKNOWN\",\"error\":{\"code\":\"NO_REPORT\",\"message\":\"the handler returned without a report\"}}"},
      {1, ORBIT_FAILED, "FAILED\",\"retryable\":true,\"error\":{\"code\":\"TEMPORARY_REJECTION\",\"details\":{\"a\":1.10}}}"},
      {1, ORBIT_UNKNOWN, "UNKNOWN\",\"error\":{\"code\":\"NO_REPORT\",\"message\":\"the handler returned without a report\"}}"},
      {2, ORBIT_FAILED, "FAILED\",\"error\":{\"code\":\"BROKEN\",\"message\":\"it \\\"broke\\\"\"}}"},
      {3, ORBIT_UNKNOWN, "UNKNOWN\",\"error\":{\"code\":\"TIMED_OUT\"}}"},
      {4, ORBIT_UNKNOWN,
       "UNKNOWN\",\"error\":{\"code\":\"INVALID_REPORT\",\"message\":\"the handler gave a result that is not JSON, null, or "
       "too "
       "large\"}}"},
      {5, ORBIT_UNKNOWN,
       "UNKNOWN\",\"error\":{\"code\":\"INVALID_REPORT\",\"message\":\"the handler confirmed a cancellation that nobody asked "
       "for\"}}"},
      {6, ORBIT_CANCELLED, "CANCELLED\",\"error\":{\"code\":\"CANCELLED\"}}"},
      {7, ORBIT_SUCCEEDED, "SUCCEEDED\",\"result\":[1e400,\"x y\"]}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    rig_up(&rig, 4, 4);
    struct sdk_held *held = run_one(&rig);
    struct orbit_report *report = &held->report;
    enum orbit_outcome said = ORBIT_UNKNOWN;
    if (cases[i].what == 6) {
      say(&rig, "{\"type\":\"task.cancel\",\"task_id\":\"" TASK "\",\"attempt_id\":\"" ATTEMPT "\",\"reason\":\"enough\"}");
      assert_true(orbit_assignment_cancelled(&held->assignment));
    }
    if (cases[i].what == 1) said = orbit_report_failure(report, "TEMPORARY_REJECTION", true, NULL, " { \"a\" : 1.10 } ", 16);
    if (cases[i].what == 2) said = orbit_report_failure(report, "BROKEN", false, "it \"broke\"", NULL, 0);
    if (cases[i].what == 3) said = orbit_report_unknown(report, "TIMED_OUT", "", NULL, 0);
    if (cases[i].what == 4) said = orbit_report_success(report, "{\"a\":1,\"a\":2}", 13);
    if (cases[i].what == 5 || cases[i].what == 6) said = orbit_report_cancelled(report, "CANCELLED", NULL);
    if (cases[i].what == 7) said = orbit_report_success(report, "[ 1e400 , \"x y\" ]", 17);
    if (cases[i].tail[0] != 'U' || cases[i].what >= 3) assert_int_equal(said, cases[i].returned);
    sdk_desk_return(&rig.desk, held, cases[i].returned, rig.now_ms);
    flush(&rig);
    const char *tail = strstr(rig.sent[0].whole, "\"outcome\":\"");
    assert_non_null(tail);
    assert_string_equal(tail + strlen("\"outcome\":\""), cases[i].tail);
    rig_down(&rig);
  }
}

/* ---- Draining and ending ---- */

static void a_drained_worker_holds_nothing(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  struct sdk_held *held = run_one(&rig);
  sdk_desk_drain(&rig.desk);
  flush(&rig);
  assert_int_equal(rig.sent_count, 1);
  expect_sent(&rig, 0, "worker.drain");
  say(&rig, "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true}", rig.sent[0].message_id);
  assert_false(sdk_desk_is_drained(&rig.desk));
  finish(&rig, held);
  flush(&rig);
  say(&rig,
      "[{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,\"disposition\":\"SUCCEEDED\"},"
      "{\"type\":\"worker.drained\"}]",
      rig.sent[0].message_id);
  assert_true(sdk_desk_is_drained(&rig.desk));
  rig_down(&rig);
}

static void a_drain_is_asked_for_again_after_a_break(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  sdk_desk_drain(&rig.desk);
  flush(&rig);
  expect_sent(&rig, 0, "worker.drain");
  say(&rig, "{\"type\":\"worker.drained\"}");
  assert_true(sdk_desk_is_drained(&rig.desk));
  sdk_desk_disconnected(&rig.desk);
  welcome(&rig, "");
  assert_false(sdk_desk_is_drained(&rig.desk));
  flush(&rig);
  expect_sent(&rig, 0, "worker.drain");
  rig_down(&rig);
}

static void a_server_that_goes_away_starts_nothing_more(void **state) {
  (void)state;
  struct rig rig;
  rig_up(&rig, 4, 4);
  welcome(&rig, "");
  say(&rig, "{\"type\":\"server.goaway\",\"reconnect_after_ms\":1234}");
  assert_true(rig.desk.goaway);
  assert_int_equal(rig.desk.reconnect_after_ms, 1234);
  assign(&rig);
  flush(&rig);
  assert_int_equal(rig.sent_count, 0);
  assert_true(sdk_desk_is_idle(&rig.desk));
  rig_down(&rig);
}

static void a_refused_hello_ends_the_worker(void **state) {
  static const struct {
    const char *code;
    bool ends;
  } cases[] = {{"INVALID_ARGUMENT", true}, {"NOT_FOUND", true}, {"PERMISSION_DENIED", true}, {"UNAVAILABLE", false}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct rig rig;
    rig_up(&rig, 4, 4);
    connect_to(&rig);
    refuse(&rig, rig.hello_id, cases[i].code);
    assert_int_equal(rig.desk.failed, cases[i].ends);
    assert_int_equal(rig.desk.broken, !cases[i].ends);
    if (cases[i].ends) assert_string_equal(rig.desk.failure.code, "HELLO_REFUSED");
    rig_down(&rig);
  }
}

static void bad_frames_do_no_harm(void **state) {
  static const struct {
    const char *frame;
    bool breaks;
  } cases[] = {
      {"{", true},
      {"", true},
      {"[]", false},
      {"7", false},
      {"{}", false},
      {"[1,null,\"x\"]", false},
      {"{\"type\":\"news\"}", false},
      {"{\"type\":7}", false},
      {"{\"type\":\"task.assign\"}", false},
      {"{\"type\":\"task.assign\",\"task\":{},\"attempt\":{\"attempt_id\":\"" ATTEMPT "\"}}", false},
      {"{\"type\":\"task.assign\",\"task\":7,\"attempt\":[]}", false},
      {"{\"type\":\"command.result\"}", false},
      {"{\"type\":\"command.result\",\"message_id\":\"ffffffffffffffffffffffffffffffff\",\"ok\":true}", false},
      {"{\"type\":\"command.result\",\"message_id\":\"" TASK "\",\"ok\":true}", false},
      {"{\"type\":\"attempt.ended\",\"attempt_id\":\"00000000000000000000000000000000\"}", false},
      {"{\"type\":\"task.cancel\"}", false},
      {"{\"type\":\"worker.welcome\",\"message_id\":\"" TASK "\"}", true},
      {"{\"type\":\"error\",\"error\":{\"code\":\"INVALID_ARGUMENT\",\"message\":\"no\"}}", false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct rig rig;
    rig_up(&rig, 4, 4);
    welcome(&rig, "");
    sdk_desk_receive(&rig.desk, bytes_text(cases[i].frame), rig.now_ms);
    assert_int_equal(rig.desk.broken, cases[i].breaks);
    assert_false(rig.desk.failed);
    assert_int_equal(rig.desk.held_count, 0);
    flush(&rig);
    assert_int_equal(rig.sent_count, 0);
    rig_down(&rig);
  }
}

/* ---- Frames ---- */

static void many_messages_share_frames_within_the_bounds(void **state) {
  (void)state;
  struct rig rig;
  enum { tasks = 60 };
  rig_up(&rig, tasks, tasks);
  welcome(&rig, "");
  for (int i = 0; i < tasks; i++) {
    char task[33], attempt[33];
    (void)snprintf(task, sizeof task, "%032x", 0xb000 + i);
    (void)snprintf(attempt, sizeof attempt, "%032x", 0xc000 + i);
    assign_as(&rig, task, attempt, "text.normalize", 30000);
  }
  flush(&rig);
  assert_int_equal(rig.sent_count, tasks);
  assert_int_equal(rig.frames, 1);
  for (int i = 0; i < tasks; i++) grant(&rig, rig.sent[i].message_id);

  /* Results of 200,000 bytes: two fit a frame of 512 KiB, three do not. */
  cleanup(buffer_clear) struct buffer result;
  buffer_init(&result, 200000);
  buffer_append_char(&result, '"');
  for (int i = 0; i < 199998; i++) buffer_append_char(&result, 'x');
  buffer_append_char(&result, '"');
  for (int i = 0; i < 5; i++) {
    struct sdk_held *held = sdk_desk_take(&rig.desk);
    enum orbit_outcome said = orbit_report_success(&held->report, (const char *)result.data, result.size);
    assert_int_equal(said, ORBIT_SUCCEEDED);
    sdk_desk_return(&rig.desk, held, said, rig.now_ms);
  }
  flush(&rig);
  assert_int_equal(rig.sent_count, 5);
  assert_int_equal(rig.frames, 3);
  rig_down(&rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hello_says_who_and_what),
      cmocka_unit_test(a_handler_runs_with_a_start_grant_alone),
      cmocka_unit_test(a_refused_start_runs_nothing),
      cmocka_unit_test(an_old_grant_without_a_lease_runs_nothing),
      cmocka_unit_test(a_refusal_for_now_is_asked_again_with_the_same_id),
      cmocka_unit_test(attempts_without_a_thread_wait_unstarted),
      cmocka_unit_test(what_no_handler_is_for_is_given_back),
      cmocka_unit_test(leases_are_renewed_at_a_third),
      cmocka_unit_test(a_report_after_the_lease_is_an_unknown),
      cmocka_unit_test(a_lost_renewal_is_seen_by_the_handler),
      cmocka_unit_test(an_unanswered_start_is_repeated_as_it_was),
      cmocka_unit_test(an_unanswered_report_is_repeated_as_it_was),
      cmocka_unit_test(a_handler_may_return_while_the_connection_is_broken),
      cmocka_unit_test(what_the_welcome_does_not_name_is_lost),
      cmocka_unit_test(an_attempt_of_an_earlier_run_is_not_run),
      cmocka_unit_test(a_server_that_does_not_answer_is_left),
      cmocka_unit_test(a_report_that_is_not_taken_becomes_an_unknown_once),
      cmocka_unit_test(reports_become_messages),
      cmocka_unit_test(a_drained_worker_holds_nothing),
      cmocka_unit_test(a_drain_is_asked_for_again_after_a_break),
      cmocka_unit_test(a_server_that_goes_away_starts_nothing_more),
      cmocka_unit_test(a_refused_hello_ends_the_worker),
      cmocka_unit_test(bad_frames_do_no_harm),
      cmocka_unit_test(many_messages_share_frames_within_the_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
