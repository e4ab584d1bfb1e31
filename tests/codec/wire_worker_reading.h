/* What the tests of worker messages share: messages with one member varied, and their reading. */
#ifndef ORBIT_TESTS_WIRE_WORKER_READING_H
#define ORBIT_TESTS_WIRE_WORKER_READING_H

#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "codec/wire_worker.h"

#define ID32(digit)                                                                                                       \
  digit digit digit digit digit digit digit digit digit digit digit digit digit digit digit digit digit digit digit digit \
      digit digit digit digit digit digit digit digit digit digit digit digit

struct member {
  const char *name, *value;
};

/* The messages whose fields the cases vary. A case's value may be @word:N, @text:N, @document:N, @ids:N (N ids), @handlers:N.
 */
static const struct message {
  const char *type;
  enum command_kind kind;
  struct member members[10];
} messages[] = {
    {"worker.hello",
     COMMAND_HELLO,
     {{"message_id", "\"" ID32("1") "\""},
      {"instance_id", "\"" ID32("a") "\""},
      {"queue_ids", "[\"" ID32("2") "\"]"},
      {"handlers", "[{\"handler\":\"h\",\"handler_version\":\"v\"}]"},
      {"capacity", "4"}}},
    {"worker.capacity", COMMAND_CAPACITY, {{"message_id", "\"" ID32("1") "\""}, {"capacity", "4"}}},
    {"worker.drain", COMMAND_DRAIN, {{"message_id", "\"" ID32("1") "\""}}},
    {"task.start",
     COMMAND_START,
     {{"message_id", "\"" ID32("1") "\""},
      {"task_id", "\"" ID32("2") "\""},
      {"attempt_id", "\"" ID32("3") "\""},
      {"epoch", "\"1\""}}},
    {"task.renew",
     COMMAND_RENEW,
     {{"message_id", "\"" ID32("1") "\""},
      {"task_id", "\"" ID32("2") "\""},
      {"attempt_id", "\"" ID32("3") "\""},
      {"epoch", "\"1\""}}},
    {"task.release",
     COMMAND_RELEASE,
     {{"message_id", "\"" ID32("1") "\""},
      {"task_id", "\"" ID32("2") "\""},
      {"attempt_id", "\"" ID32("3") "\""},
      {"epoch", "\"1\""}}},
    {"task.finish",
     COMMAND_FINISH,
     {{"message_id", "\"" ID32("1") "\""},
      {"task_id", "\"" ID32("2") "\""},
      {"attempt_id", "\"" ID32("3") "\""},
      {"epoch", "\"1\""},
      {"outcome", "\"SUCCEEDED\""}}},
};

static inline const struct message *message_of(const char *type) {
  for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
    if (strcmp(messages[i].type, type) == 0) return &messages[i];
  fail_msg("no message %s", type);
  return NULL;
}

static inline void put_value(struct buffer *out, const char *value) {
  unsigned long count = 0;
  if (sscanf(value, "@word:%lu", &count) == 1 || sscanf(value, "@text:%lu", &count) == 1 ||
      sscanf(value, "@document:%lu", &count) == 1) {
    if (value[1] == 'd') count -= 2;
    buffer_append_char(out, '"');
    for (unsigned long i = 0; i < count; i++) buffer_append_text(out, value[1] == 't' ? "\xC3\xA9" : "a");
    buffer_append_char(out, '"');
  } else if (sscanf(value, "@ids:%lu", &count) == 1 || sscanf(value, "@handlers:%lu", &count) == 1 ||
             sscanf(value, "@ones:%lu", &count) == 1) {
    for (unsigned long i = 0; i < count; i++) {
      buffer_append_char(out, i == 0 ? '[' : ',');
      if (value[1] == 'i') buffer_append_format(out, "\"%032lx\"", i + 1);
      if (value[1] == 'o') buffer_append_char(out, '1');
      if (value[1] == 'h') buffer_append_format(out, "{\"handler\":\"h\",\"handler_version\":\"v%lu\"}", i);
    }
    buffer_append_char(out, ']');
  } else {
    buffer_append_text(out, value);
  }
}

/* name replaced by value, added, or left out when value is NULL. */
static inline void put_message(struct buffer *out, const struct message *message, const char *name, const char *value) {
  bool replaced = false;
  buffer_append_format(out, "{\"type\":\"%s\"", message->type);
  for (const struct member *member = message->members; member->name != NULL; member++) {
    bool same = name != NULL && strcmp(member->name, name) == 0;
    replaced |= same;
    if (same && value == NULL) continue;
    buffer_append_format(out, ",\"%s\":", member->name);
    put_value(out, same ? value : member->value);
  }
  if (name != NULL && value != NULL && !replaced) {
    buffer_append_format(out, ",\"%s\":", name);
    put_value(out, value);
  }
  buffer_append_char(out, '}');
}

struct reading {
  struct json json;
  struct buffer frame, texts;
  struct secret secret;
  struct principal who;
  struct command command;
  struct id message_id;
  struct fault fault;
};

static inline void reading_init(struct reading *reading) {
  memset(reading, 0, sizeof *reading);
  json_init(&reading->json);
  buffer_init(&reading->frame, 4 << 20);
  buffer_init(&reading->texts, 4 << 20);
  memset(&reading->secret, 1, sizeof reading->secret);
  memset(&reading->who.application_id, 2, sizeof reading->who.application_id);
  memset(&reading->who.namespace_id, 3, sizeof reading->who.namespace_id);
}

static inline void reading_clear(struct reading *reading) {
  json_clear(&reading->json);
  buffer_clear(&reading->frame);
  buffer_clear(&reading->texts);
}

static inline enum status read_frame(struct reading *reading) {
  struct worker_frame frame = {.count = 0};
  memset(&reading->fault, 0, sizeof reading->fault);
  memset(&reading->message_id, 0, sizeof reading->message_id);
  enum status status = worker_frame_read(&reading->json, buffer_bytes(&reading->frame), &frame, &reading->fault);
  if (status != STATUS_OK) return status;
  assert_false(frame.is_array);
  assert_int_equal(frame.count, 1);
  buffer_reset(&reading->texts);
  return worker_message_read(&reading->json, frame.first, &reading->secret, &reading->who, &reading->texts, &reading->command,
                             &reading->message_id, &reading->fault);
}

static inline enum status read_text(struct reading *reading, const char *text) {
  buffer_reset(&reading->frame);
  buffer_append_text(&reading->frame, text);
  return read_frame(reading);
}

static inline enum status read_message(struct reading *reading, const char *type, const char *name, const char *value) {
  buffer_reset(&reading->frame);
  put_message(&reading->frame, message_of(type), name, value);
  return read_frame(reading);
}

#endif
