/* For the tests of the desk: a desk with no server, no socket and no clock, what it sends, and what is said to it. */
#ifndef ORBIT_TESTS_API_SDK_DESK_H
#define ORBIT_TESTS_API_SDK_DESK_H
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

static inline enum orbit_outcome never_called(void *context, const struct orbit_assignment *assignment,
                                              struct orbit_report *report) {
  (void)context, (void)assignment, (void)report;
  fail_msg("the desk calls no handlers");
  return ORBIT_UNKNOWN;
}

static inline void rig_up(struct rig *rig, uint32_t capacity, uint32_t threads) {
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

static inline void rig_down(struct rig *rig) {
  sdk_desk_clear(&rig->desk);
  buffer_clear(&rig->frame);
}

static inline void text_of(struct json *json, uint32_t object, const char *name, char *out, size_t size) {
  uint32_t token = json_member(json, object, name);
  out[0] = '\0';
  if (token != 0 && json->tokens[token].type == JSON_STRING) sdk_text_copy(out, size, json_string(json, token));
}

static inline void sent_read(struct rig *rig, struct json *json, uint32_t token) {
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
static inline void flush(struct rig *rig) {
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

static inline void expect_sent(struct rig *rig, size_t index, const char *type) {
  assert_true(index < rig->sent_count);
  assert_string_equal(rig->sent[index].type, type);
}

static inline void say(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void say(struct rig *rig, const char *format, ...) {
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
static inline const char *server_time(const struct rig *rig, int64_t after_ms, char out[32]) {
  int64_t ms = rig->now_ms - 1000000 + after_ms;
  assert_in_range(ms, 0, 3599999);
  (void)snprintf(out, 32, "2026-09-17T00:%02d:%02d.%03dZ", (int)(ms / 60000), (int)(ms / 1000 % 60), (int)(ms % 1000));
  return out;
}

static inline void connect_to(struct rig *rig) {
  sdk_desk_connected(&rig->desk);
  flush(rig);
  assert_int_equal(rig->sent_count, 1);
  expect_sent(rig, 0, "worker.hello");
  memcpy(rig->hello_id, rig->sent[0].message_id, sizeof rig->hello_id);
}

static inline void welcome(struct rig *rig, const char *attempts) {
  char time[32];
  connect_to(rig);
  say(rig,
      "{\"type\":\"worker.welcome\",\"message_id\":\"%s\",\"session_id\":\"" QUEUE "\",\"node_id\":\"" QUEUE
      "\",\"server_time\":\"%s\",\"lease_ms\":30000,\"attempts\":[%s]}",
      rig->hello_id, server_time(rig, 0, time), attempts);
  assert_true(rig->desk.welcomed);
}

static inline void assign_as(struct rig *rig, const char *task, const char *attempt, const char *handler, int64_t lease_ms) {
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

static inline void assign(struct rig *rig) { assign_as(rig, TASK, ATTEMPT, "text.normalize", 30000); }

static inline void grant(struct rig *rig, const char *message_id) {
  say(rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,"
      "\"task\":{\"id\":\"" TASK "\",\"state\":\"RUNNING\",\"revision\":\"3\"},\"lease\":{\"active\":true}}",
      message_id);
}

static inline void confirm(struct rig *rig, const char *message_id, const char *disposition) {
  say(rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":true,\"applied\":true,\"disposition\":\"%s\","
      "\"lease\":{\"active\":false}}",
      message_id, disposition);
}

static inline void refuse(struct rig *rig, const char *message_id, const char *code) {
  say(rig,
      "{\"type\":\"command.result\",\"message_id\":\"%s\",\"ok\":false,\"applied\":false,"
      "\"error\":{\"code\":\"%s\",\"message\":\"no\"}}",
      message_id, code);
}

/* Welcomed, one attempt assigned, its start granted, its handler running. */
static inline struct sdk_held *run_one(struct rig *rig) {
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

static inline void finish(struct rig *rig, struct sdk_held *held) {
  enum orbit_outcome outcome = orbit_report_success(&held->report, "{\"ok\":true}", 11);
  sdk_desk_return(&rig->desk, held, outcome, rig->now_ms);
}

#endif
