/* Tests the tokenizer against two other parsers over random documents, sound and damaged: jansson says whether a text is JSON
 * without duplicate keys, yajl says what strings and numerals stand in it. And against itself: a text written in another
 * style means the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* jansson's names for types, and its json_string, are also ours: they are read under other names. */
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_INTEGER JANSSON_INTEGER
#define JSON_REAL JANSSON_REAL
#define JSON_TRUE JANSSON_TRUE
#define JSON_FALSE JANSSON_FALSE
#define JSON_NULL JANSSON_NULL
#define json_string jansson_string
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_INTEGER
#undef JSON_REAL
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL
#undef json_string
#include <yajl/yajl_parse.h>

#include "codec/digest.h"
#include "codec/json.h"
#include "support/support.h"

enum { documents = 20000, mutations = 4, generated_depth_max = 5 };

static uint64_t seed;
static struct json json;

static unsigned draw(unsigned below) { return (unsigned)(test_random(&seed) % below); }

/* ---- Random documents ---- */

static const char *const numerals[] = {"0",
                                       "-0",
                                       "7",
                                       "-12",
                                       "1.10",
                                       "0.5e-3",
                                       "1E+2",
                                       "9007199254740993",
                                       "18446744073709551615",
                                       "1e9",
                                       "-0.000",
                                       "2e-0",
                                       "100",
                                       "1.0",
                                       "123456789012345678901234567890",
                                       "1e400"};
static const char *const pieces[] = {"a",
                                     "b",
                                     "key",
                                     " ",
                                     "\\n",
                                     "\\\"",
                                     "\\\\",
                                     "\\/",
                                     "\\u0041",
                                     "\\u00e9",
                                     "\xC3\xA9",
                                     "核",
                                     "\\ud834\\udd1e",
                                     "\xF0\x9D\x84\x9E",
                                     "\x7F",
                                     "'",
                                     "{",
                                     "]",
                                     ":",
                                     "\\u001f",
                                     "\\t",
                                     "a long piece of text, "};

#define PICK(table) table[draw(sizeof table / sizeof table[0])]

static void put_space(struct buffer *text) {
  static const char *const spaces[] = {"", "", "", "", " ", "\n", "\t", "\r\n  "};
  buffer_append_text(text, PICK(spaces));
}

static void put_string(struct buffer *text) {
  buffer_append_char(text, '"');
  for (unsigned i = draw(5); i > 0; i--) buffer_append_text(text, PICK(pieces));
  buffer_append_char(text, '"');
}

/* Keys have a number, so that objects rarely, and not never, have duplicates. */
static void put_key(struct buffer *text) {
  buffer_append_format(text, "\"%u", draw(200));
  for (unsigned i = draw(3); i > 0; i--) buffer_append_text(text, PICK(pieces));
  buffer_append_char(text, '"');
}

static void put_value(struct buffer *text, unsigned depth) {
  unsigned kind = draw(depth < generated_depth_max ? 8 : 5);
  put_space(text);
  if (kind < 2) {
    buffer_append_text(text, PICK(numerals));
  } else if (kind < 4) {
    put_string(text);
  } else if (kind == 4) {
    static const char *const words[] = {"true", "false", "null"};
    buffer_append_text(text, PICK(words));
  } else {
    bool object = kind < 7;
    unsigned count = draw(8) == 0 ? draw(40) : draw(5);
    buffer_append_char(text, object ? '{' : '[');
    for (unsigned i = 0; i < count; i++) {
      if (i > 0) buffer_append_char(text, ',');
      put_space(text);
      if (object) {
        put_key(text);
        put_space(text);
        buffer_append_char(text, ':');
      }
      put_value(text, depth + (count > 5 ? 3 : 1));
    }
    put_space(text);
    buffer_append_char(text, object ? '}' : ']');
  }
  put_space(text);
}

static void mutate(struct buffer *text) {
  static const char bytes[] = "{}[],:\"\\ 0123.-+eEuD8dc\n\x01/tfn\x80\xC3\xED\xF4\xFF";
  size_t at = text->size == 0 ? 0 : draw((unsigned)text->size);
  switch (draw(5)) {
    case 0: /* change */
      if (text->size > 0) text->data[at] = (uint8_t)bytes[draw(sizeof bytes)];
      break;
    case 1: /* flip */
      if (text->size > 0) text->data[at] = (uint8_t)(text->data[at] ^ 1U << draw(8));
      break;
    case 2: /* take out */
      if (text->size > 0) memmove(text->data + at, text->data + at + 1, --text->size - at);
      break;
    case 3: /* put in */
      buffer_append_char(text, 0);
      memmove(text->data + at + 1, text->data + at, text->size - 1 - at);
      text->data[at] = (uint8_t)bytes[draw(sizeof bytes)];
      break;
    default:
      text->size = at;
      break;
  }
}

/* ---- jansson: accepted or refused ---- */

/* False when jansson cannot tell: it refuses numbers that no double or long long holds, and stops there. It takes a NUL outside
 * strings for the end of the text; no JSON has one. */
static bool jansson_judges(struct bytes text, bool *ret_accepted) {
  if (text.size > 0 && memchr(text.data, 0, text.size) != NULL) {
    *ret_accepted = false;
    return true;
  }
  json_error_t error;
  json_t *value = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
  if (value == NULL && json_error_code(&error) == json_error_numeric_overflow) return false;
  *ret_accepted = value != NULL;
  json_decref(value);
  return true;
}

/* ---- yajl: strings and numerals in order ---- */

static bool next_is(void *context, enum json_type type, const void *data, size_t size) {
  uint32_t *at = context, token = (*at)++;
  if (token >= json.count || json.tokens[token].type != type) return false;
  return bytes_equal(type == JSON_STRING ? json_string(&json, token) : json_raw(&json, token), bytes_of(data, size));
}

static int on_null(void *context) { return next_is(context, JSON_NULL, "null", 4); }
static int on_bool(void *context, int value) {
  return value != 0 ? next_is(context, JSON_TRUE, "true", 4) : next_is(context, JSON_FALSE, "false", 5);
}
static int on_number(void *context, const char *text, size_t size) { return next_is(context, JSON_NUMBER, text, size); }
static int on_string(void *context, const unsigned char *text, size_t size) {
  return next_is(context, JSON_STRING, text, size);
}

static int on_container(void *context, enum json_type type) {
  uint32_t *at = context, token = (*at)++;
  return token < json.count && json.tokens[token].type == type;
}
static int on_object(void *context) { return on_container(context, JSON_OBJECT); }
static int on_array(void *context) { return on_container(context, JSON_ARRAY); }
static int on_end(void *context) { return context != NULL; }

static bool yajl_agrees(struct bytes text) {
  static const yajl_callbacks callbacks = {.yajl_null = on_null,
                                           .yajl_boolean = on_bool,
                                           .yajl_number = on_number,
                                           .yajl_string = on_string,
                                           .yajl_start_map = on_object,
                                           .yajl_map_key = on_string,
                                           .yajl_end_map = on_end,
                                           .yajl_start_array = on_array,
                                           .yajl_end_array = on_end};
  uint32_t at = 0;
  yajl_handle handle = yajl_alloc(&callbacks, NULL, &at);
  bool agrees = yajl_parse(handle, text.data, text.size) == yajl_status_ok && yajl_complete_parse(handle) == yajl_status_ok;
  yajl_free(handle);
  return agrees && at == json.count;
}

/* ---- The same in another style ---- */

static void restyle_string(struct bytes text, struct buffer *out) {
  buffer_append_char(out, '"');
  for (size_t i = 0; i < text.size; i++) {
    uint8_t c = text.data[i];
    if (c < 0x20 || c == '"' || c == '\\' || (c < 0x80 && draw(4) == 0))
      buffer_append_format(out, draw(2) == 0 ? "\\u%04x" : "\\u%04X", c);
    else buffer_append_char(out, (char)c);
  }
  buffer_append_char(out, '"');
}

/* Members in another order: each object starts at a random member and goes round. */
static void restyle(uint32_t token, struct buffer *out) {
  const struct json_token *value = &json.tokens[token];
  bool object = value->type == JSON_OBJECT;
  put_space(out);
  if (value->type == JSON_STRING) {
    restyle_string(json_string(&json, token), out);
  } else if (!object && value->type != JSON_ARRAY) {
    buffer_append_bytes(out, json_raw(&json, token));
  } else {
    uint32_t first = token + 1, at;
    buffer_append_char(out, object ? '{' : '[');
    if (object && value->count > 0)
      for (unsigned i = draw(value->count); i > 0; i--) first = json.tokens[first + 1].next;
    at = first;
    for (uint32_t i = 0; i < value->count; i++) {
      if (i > 0) buffer_append_char(out, ',');
      if (object) {
        restyle(at, out);
        buffer_append_char(out, ':');
      }
      restyle(object ? at + 1 : at, out);
      at = json.tokens[object ? at + 1 : at].next;
      if (at == value->next) at = token + 1;
    }
    buffer_append_char(out, object ? '}' : ']');
  }
  put_space(out);
}

static void expect_same_meaning(struct bytes text) {
  struct buffer canonical, minified, other, again;
  buffer_init(&canonical, text.size), buffer_init(&minified, text.size); /* neither is longer than the text */
  buffer_init(&other, 16 * text.size + 64), buffer_init(&again, 16 * text.size + 64);
  json_canonical(&json, 0, &canonical);
  json_minify(&json, 0, &minified);
  restyle(0, &other);
  assert_false(canonical.failed || minified.failed || other.failed);
  const struct buffer *styles[] = {&canonical, &minified, &other};
  for (unsigned i = 0; i < 3; i++) {
    buffer_reset(&again);
    assert_int_equal(json_parse(&json, buffer_bytes(styles[i]), NULL), STATUS_OK);
    json_canonical(&json, 0, &again);
    if (!bytes_equal(buffer_bytes(&again), buffer_bytes(&canonical)))
      fail_msg("style %u: %.*s", i, (int)styles[i]->size, styles[i]->data);
  }
  assert_int_equal(json_parse(&json, buffer_bytes(&minified), NULL), STATUS_OK);
  buffer_reset(&again);
  json_minify(&json, 0, &again);
  assert_true(bytes_equal(buffer_bytes(&again), buffer_bytes(&minified)));
  buffer_clear(&canonical), buffer_clear(&minified), buffer_clear(&other), buffer_clear(&again);
}

static unsigned accepted_count, refused_count, untold_count;

static void judge(struct bytes text) {
  struct fault fault = {.message = ""};
  bool expected = false, accepted = json_parse(&json, text, &fault) == STATUS_OK;
  if (!jansson_judges(text, &expected)) untold_count++;
  else if (accepted != expected)
    fail_msg("jansson %s: %.*s\n%s", expected ? "accepts" : "refuses", (int)text.size, text.data, fault.message);
  *(accepted ? &accepted_count : &refused_count) += 1;
  if (!accepted) {
    assert_true(fault.message[0] != 0 && bytes_is_utf8(bytes_text(fault.message)) && bytes_is_utf8(bytes_text(fault.field)));
    return;
  }
  if (!yajl_agrees(text)) fail_msg("yajl sees other values: %.*s", (int)text.size, text.data);
  expect_same_meaning(text);
}

static void jansson_and_yajl_agree(void **state) {
  struct buffer text;
  (void)state;
  seed = test_seed();
  json_init(&json);
  buffer_init(&text, 1 << 20);
  for (unsigned i = 0; i < documents; i++) {
    buffer_reset(&text);
    put_value(&text, 0);
    assert_false(text.failed);
    judge(buffer_bytes(&text));
    for (unsigned j = draw(mutations + 1); j > 0; j--) {
      mutate(&text);
      /* exactly as long, so that AddressSanitizer sees a read behind the end */
      uint8_t *exact = malloc(text.size + (text.size == 0));
      memcpy(exact, text.data, text.size);
      judge(bytes_of(exact, text.size));
      free(exact);
    }
  }
  buffer_clear(&text);
  json_clear(&json);
  print_message("%u accepted, %u refused, %u that jansson cannot tell\n", accepted_count, refused_count, untold_count);
  assert_true(accepted_count > documents / 2 && refused_count > documents / 2 && untold_count < documents);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(jansson_and_yajl_agree)};
  return cmocka_run_group_tests_name("json oracles", tests, NULL, NULL);
}
