/* Bodies for the tests of what reads them: a good one, with one member replaced, added or left out. */
#ifndef ORBIT_TESTS_WIRE_BODY_H
#define ORBIT_TESTS_WIRE_BODY_H

#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/wire_http.h"

/* A member of a body: value is JSON, or @text:N (a string of N two-byte characters), @astral:N (N characters beyond the basic
 * plane, escaped as pairs), @document:N (a string of N bytes with its quotes), @spaced:N (an array of N bytes, N odd, when
 * minified, with a space behind each comma), @ids:N (an array of N different ids). value NULL leaves the member out. */
struct member {
  const char *name, *value;
};

/* field NULL: accepted; else refused with this place. */
struct body_case {
  const char *name, *value, *field;
};

static inline void put_repeated(struct buffer *out, const char *piece, unsigned long count) {
  for (unsigned long i = 0; i < count; i++) buffer_append_text(out, piece);
}

static inline void put_value(struct buffer *out, const char *value) {
  unsigned long count = 0;
  if (sscanf(value, "@text:%lu", &count) == 1 || sscanf(value, "@astral:%lu", &count) == 1) {
    buffer_append_char(out, '"');
    put_repeated(out, value[1] == 't' ? "\xC3\xA9" : "\\ud83d\\ude00", count);
    buffer_append_char(out, '"');
  } else if (sscanf(value, "@document:%lu", &count) == 1) {
    buffer_append_char(out, '"');
    put_repeated(out, "x", count - 2);
    buffer_append_char(out, '"');
  } else if (sscanf(value, "@spaced:%lu", &count) == 1) {
    buffer_append_text(out, "[0");
    put_repeated(out, ", 0", (count - 3) / 2);
    buffer_append_char(out, ']');
  } else if (sscanf(value, "@ids:%lu", &count) == 1) {
    for (unsigned long i = 0; i < count; i++) buffer_append_format(out, "%c\"%032lx\"", i == 0 ? '[' : ',', i + 1);
    buffer_append_char(out, ']');
  } else {
    buffer_append_text(out, value);
  }
}

static inline void put_member(struct buffer *out, const char *name, const char *value) {
  if (value == NULL) return;
  if (out->data[out->size - 1] != '{') buffer_append_char(out, ',');
  buffer_append_format(out, "\"%s\":", name);
  put_value(out, value);
}

/* base ends with a member without name. name NULL: the base as it is. */
static inline void put_body(struct buffer *out, const struct member *base, const char *name, const char *value) {
  bool replaced = false;
  buffer_reset(out);
  buffer_append_char(out, '{');
  for (; base->name != NULL; base++) {
    bool same = name != NULL && strcmp(base->name, name) == 0;
    put_member(out, base->name, same ? value : base->value);
    replaced |= same;
  }
  if (name != NULL && !replaced) put_member(out, name, value);
  buffer_append_char(out, '}');
  assert_false(out->failed);
}

/* One body under test and what became of it. */
struct reading {
  struct json json;
  struct buffer body, texts;
  struct command command;
  struct fault fault;
};
typedef enum status body_reader(struct reading *reading);

static inline void reading_init(struct reading *reading) {
  memset(reading, 0, sizeof *reading);
  json_init(&reading->json);
  buffer_init(&reading->body, 4 * http_batch_body_bytes_max);
  buffer_init(&reading->texts, 4 * http_batch_body_bytes_max);
}

static inline void reading_clear(struct reading *reading) {
  json_clear(&reading->json);
  buffer_clear(&reading->body);
  buffer_clear(&reading->texts);
}

/* Reads what stands in the body. A refusal leaves the command alone and says what is wrong. */
static inline enum status read_again(struct reading *reading, body_reader *reader) {
  static const uint8_t untouched = 0x5A;
  struct command before;
  memset(&before, untouched, sizeof before);
  reading->command = before;
  memset(&reading->fault, 0, sizeof reading->fault);
  buffer_reset(&reading->texts);
  enum status status = reader(reading);
  if (status != STATUS_OK) {
    assert_int_equal(status, STATUS_INVALID_ARGUMENT);
    assert_int_equal(reading->fault.status, status);
    assert_true(reading->fault.message[0] != 0);
    assert_memory_equal(&reading->command, &before, sizeof before);
  }
  return status;
}

static inline enum status read_member(struct reading *reading, body_reader *reader, const struct member *base, const char *name,
                                      const char *value) {
  put_body(&reading->body, base, name, value);
  return read_again(reading, reader);
}

static inline enum status read_text(struct reading *reading, body_reader *reader, const char *text) {
  buffer_reset(&reading->body);
  buffer_append_text(&reading->body, text);
  return read_again(reading, reader);
}

static inline void run_cases(body_reader *reader, const struct member *base, const struct body_case *cases, size_t count) {
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < count; i++) {
    enum status status = read_member(&reading, reader, base, cases[i].name, cases[i].value);
    if ((status == STATUS_OK) == (cases[i].field == NULL) &&
        (cases[i].field == NULL || strcmp(reading.fault.field, cases[i].field) == 0))
      continue;
    fail_msg("%s = %.60s: field \"%s\", message \"%s\"", cases[i].name == NULL ? "(base)" : cases[i].name,
             cases[i].value == NULL ? "(absent)" : cases[i].value, reading.fault.field, reading.fault.message);
  }
  reading_clear(&reading);
}
#define RUN_CASES(reader, base, cases) run_cases(reader, base, cases, sizeof(cases) / sizeof(cases)[0])

/* The digest of the body with this member. */
static inline struct id digest_with(struct reading *reading, body_reader *reader, const struct member *base, const char *name,
                                    const char *value) {
  assert_int_equal(read_member(reading, reader, base, name, value), STATUS_OK);
  return reading->command.operation.digest;
}

/* What was written is this JSON, white space aside. */
static inline void assert_json(const struct buffer *written, const char *expected) {
  struct json json;
  struct fault fault;
  struct buffer text;
  json_init(&json);
  buffer_init(&text, 1 << 20);
  assert_int_equal(json_parse(&json, bytes_text(expected), &fault), STATUS_OK);
  json_minify(&json, 0, &text);
  assert_false(written->failed);
  if (!bytes_equal(buffer_bytes(written), buffer_bytes(&text)))
    fail_msg("written  %.*s\nexpected %.*s", (int)written->size, (const char *)written->data, (int)text.size,
             (const char *)text.data);
  buffer_clear(&text);
  json_clear(&json);
}

static inline struct id id_from(const char *text) {
  struct id id;
  assert_true(id_parse(bytes_text(text), &id));
  return id;
}

/* The id of 32 times this digit. */
static inline struct id id_of_digit(char digit) {
  char text[id_chars + 1];
  memset(text, digit, id_chars);
  text[id_chars] = 0;
  return id_from(text);
}

#endif
