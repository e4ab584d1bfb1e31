/* Tests the reading of objects by a table of fields: each kind at its boundaries, and what is said of a wrong object. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_text.h"
#include "codec/json.h"
#include "support/support.h"

static struct json json;

static int set_up(void **state) {
  (void)state;
  json_init(&json);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  json_clear(&json);
  return 0;
}

static void parsed(struct bytes text) {
  struct fault fault = {.message = ""};
  if (json_parse(&json, text, &fault) != STATUS_OK) fail_msg("%.*s: %s", (int)text.size, text.data, fault.message);
}

/* Room for a member of any kind. */
union member {
  struct id id;
  struct bytes bytes;
  int64_t time;
  uint64_t u64;
  uint32_t u32;
  bool truth;
};

#define HEX31 "0123456789abcdef0123456789abcde"
#define TEN "0123456789"

/* 128 characters, and 256 code points of three bytes */
#define W128 TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "AZaz._:/"
#define T16 "核核核核核核核核核核核核核核核核"
#define T256 T16 T16 T16 T16 T16 T16 T16 T16 T16 T16 T16 T16 T16 T16 T16 T16

static const struct {
  enum json_kind kind;
  uint64_t min, max;
  const char *value;   /* JSON */
  const char *refusal; /* what the message says; NULL: accepted */
  uint64_t number;     /* of an accepted number or time */
} values[] = {
    {JSON_KIND_ID, 0, 0, "\"" HEX31 "f\"", NULL, 0},
    {JSON_KIND_ID, 0, 0, "\"\\u0030123456789abcdef0123456789abcdef\"", NULL, 0},
    {JSON_KIND_ID, 0, 0, "\"" HEX31 "\"", "must be an id: 32 lower-case", 0},
    {JSON_KIND_ID, 0, 0, "\"" HEX31 "f0\"", "must be an id", 0},
    {JSON_KIND_ID, 0, 0, "\"" HEX31 "F\"", "must be an id", 0},
    {JSON_KIND_ID, 0, 0, "\"" HEX31 "g\"", "must be an id", 0},
    {JSON_KIND_ID, 0, 0, "\"00000000000000000000000000000000\"", "must be an id", 0},
    {JSON_KIND_ID, 0, 0, "\"\"", "must be an id", 0},
    {JSON_KIND_ID, 0, 0, "1", "must be an id", 0},

    {JSON_KIND_TEXT, 1, 256, "\"a\"", NULL, 0},
    {JSON_KIND_TEXT, 1, 256, "\"" T256 "\"", NULL, 0},
    {JSON_KIND_TEXT, 1, 256, "\"" T256 "x\"", "must be a string of 1 to 256 characters", 0},
    {JSON_KIND_TEXT, 1, 256, "\"\"", "must be a string of 1 to 256 characters", 0},
    {JSON_KIND_TEXT, 1, 1, "\"\\ud834\\udd1e\"", NULL, 0},
    {JSON_KIND_TEXT, 1, 1, "\"e\xCC\x81\"", "1 to 1 characters", 0}, /* a combined character counts as it is coded */
    {JSON_KIND_TEXT, 0, 4, "\"\"", NULL, 0},
    {JSON_KIND_TEXT, 2, 0, "\"a\"", "must be a string of at least 2 characters", 0},
    {JSON_KIND_TEXT, 2, 0, "\"" T256 T256 "\"", NULL, 0},
    {JSON_KIND_TEXT, 1, 256, "1", "must be a string", 0},
    {JSON_KIND_TEXT, 1, 256, "[\"a\"]", "must be a string", 0},

    {JSON_KIND_WORD, 1, 128, "\"" W128 "\"", NULL, 0},
    {JSON_KIND_WORD, 1, 128, "\"" W128 "x\"", "must be a string of 1 to 128 characters of A-Z a-z 0-9 . _ : / -", 0},
    {JSON_KIND_WORD, 1, 128, "\"\"", "1 to 128", 0},
    {JSON_KIND_WORD, 1, 128, "\"-\"", NULL, 0},
    {JSON_KIND_WORD, 1, 128, "\"a b\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "\"a,b\"", "characters of", 0}, /* the neighbours of what is allowed */
    {JSON_KIND_WORD, 1, 128, "\";\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "\"@\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "\"[\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "\"^\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "\"`\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "\"{\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "\"\\u007f\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "\"\\u001a\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "\"é\"", "characters of", 0},
    {JSON_KIND_WORD, 1, 128, "1", "must be a string", 0},

    {JSON_KIND_TIME, 0, 0, "\"2000-01-01T00:00:00Z\"", NULL, UINT64_C(946684800000000)},
    {JSON_KIND_TIME, 0, 0, "\"2026-09-17T00:00:00.25Z\"", NULL, UINT64_C(1789603200250000)},
    {JSON_KIND_TIME, 0, 0, "\"9998-12-31T23:59:59.999999Z\"", NULL, UINT64_C(253370764799999999)},
    {JSON_KIND_TIME, 0, 0, "\"9999-01-01T00:00:00Z\"", "must be a time", 0},
    {JSON_KIND_TIME, 0, 0, "\"1999-12-31T23:59:59Z\"", "must be a time", 0},
    {JSON_KIND_TIME, 0, 0, "\"2026-09-17T00:00:00+00:00\"", "must be a time", 0},
    {JSON_KIND_TIME, 0, 0, "\"2026-09-17T00:00:00.1234567Z\"", "must be a time", 0},
    {JSON_KIND_TIME, 0, 0, "\"2026-02-29T00:00:00Z\"", "must be a time", 0},
    {JSON_KIND_TIME, 0, 0, "1789603200", "must be a time", 0},

    {JSON_KIND_U64, 0, 0, "0", NULL, 0},
    {JSON_KIND_U64, 0, 0, "18446744073709551615", NULL, UINT64_MAX},
    {JSON_KIND_U64, 0, 0, "18446744073709551616",
     "must be an integer from 0 to 18446744073709551615, without sign, point or exponent", 0},
    {JSON_KIND_U64, 0, 0, "123456789012345678901234567890", "must be an integer", 0},
    {JSON_KIND_U64, 1, 2592000000, "1", NULL, 1},
    {JSON_KIND_U64, 1, 2592000000, "2592000000", NULL, 2592000000},
    {JSON_KIND_U64, 1, 2592000000, "2592000001", "must be an integer from 1 to 2592000000, without", 0},
    {JSON_KIND_U64, 1, 2592000000, "0", "must be an integer from 1 to 2592000000, without", 0},
    {JSON_KIND_U64, 0, 9, "9", NULL, 9},
    {JSON_KIND_U64, 0, 9, "-0", "must be an integer", 0},
    {JSON_KIND_U64, 0, 9, "-1", "must be an integer", 0},
    {JSON_KIND_U64, 0, 9, "1.0", "must be an integer", 0},
    {JSON_KIND_U64, 0, 9, "1e0", "must be an integer", 0},
    {JSON_KIND_U64, 0, 9, "\"1\"", "must be an integer", 0},
    {JSON_KIND_U64, 0, 9, "true", "must be an integer", 0},

    {JSON_KIND_U32, 0, 0, "4294967295", NULL, UINT32_MAX},
    {JSON_KIND_U32, 0, 0, "4294967296", "must be an integer from 0 to 4294967295, without", 0},
    {JSON_KIND_U32, 1, 100, "100", NULL, 100},
    {JSON_KIND_U32, 1, 100, "101", "must be an integer from 1 to 100, without", 0},
    {JSON_KIND_U32, 1, 100, "0", "must be an integer from 1 to 100, without", 0},
    {JSON_KIND_U32, 1, 100, "1.5", "must be an integer", 0},

    {JSON_KIND_DECIMAL, 0, 0, "\"1\"", NULL, 1},
    {JSON_KIND_DECIMAL, 0, 0, "\"18446744073709551615\"", NULL, UINT64_MAX},
    {JSON_KIND_DECIMAL, 0, 0, "\"18446744073709551616\"", "must be a string with a decimal number", 0},
    {JSON_KIND_DECIMAL, 0, 0, "\"0\"", "must be a string with a decimal number", 0},
    {JSON_KIND_DECIMAL, 0, 0, "\"01\"", "must be a string with a decimal number", 0},
    {JSON_KIND_DECIMAL, 0, 0, "\"\"", "must be a string with a decimal number", 0},
    {JSON_KIND_DECIMAL, 0, 0, "\"+1\"", "must be a string with a decimal number", 0},
    {JSON_KIND_DECIMAL, 0, 0, "\"1 \"", "must be a string with a decimal number", 0},
    {JSON_KIND_DECIMAL, 0, 0, "1", "must be a string with a decimal number", 0},
    {JSON_KIND_DECIMAL, 5, 7, "\"5\"", NULL, 5},
    {JSON_KIND_DECIMAL, 5, 7, "\"7\"", NULL, 7},
    {JSON_KIND_DECIMAL, 5, 7, "\"4\"", "from 5 to 7, without sign and leading zero", 0},
    {JSON_KIND_DECIMAL, 5, 7, "\"8\"", "from 5 to 7, without sign and leading zero", 0},

    {JSON_KIND_BOOL, 0, 0, "true", NULL, 1},
    {JSON_KIND_BOOL, 0, 0, "false", NULL, 0},
    {JSON_KIND_BOOL, 0, 0, "\"true\"", "must be true or false", 0},
    {JSON_KIND_BOOL, 0, 0, "1", "must be true or false", 0},

    {JSON_KIND_VALUE, 1, 7, "{\"a\":1}", NULL, 0},
    {JSON_KIND_VALUE, 1, 7, " { \"a\" : 1 } ", NULL, 0}, /* white space is not counted */
    {JSON_KIND_VALUE, 1, 7, "{\"a\":12}", "must be a value of 1 to 7 bytes", 0},
    {JSON_KIND_VALUE, 1, 7, "\"     \"", NULL, 0},
    {JSON_KIND_VALUE, 1, 7, "\"      \"", "must be a value of 1 to 7 bytes", 0}, /* inside a string it is */
    {JSON_KIND_VALUE, 3, 7, "[ ]", "must be a value of 3 to 7 bytes", 0},
    {JSON_KIND_VALUE, 1, 7, "false", NULL, 0},

    {JSON_KIND_OBJECT, 0, 0, "{}", NULL, 0},
    {JSON_KIND_OBJECT, 0, 0, "[]", "must be an object", 0},
    {JSON_KIND_OBJECT, 0, 0, "\"{}\"", "must be an object", 0},

    {JSON_KIND_ARRAY, 1, 3, "[1]", NULL, 0},
    {JSON_KIND_ARRAY, 1, 3, "[1,[2,3],4]", NULL, 0},
    {JSON_KIND_ARRAY, 1, 3, "[]", "must be an array of 1 to 3 items", 0},
    {JSON_KIND_ARRAY, 1, 3, "[1,2,3,4]", "must be an array of 1 to 3 items", 0},
    {JSON_KIND_ARRAY, 0, 0, "{}", "must be an array of at least 0 items", 0},

    {JSON_KIND_STRING, 1, 3, "\"核\"", NULL, 0},
    {JSON_KIND_STRING, 1, 3, "\"\\u6838\"", NULL, 0},
    {JSON_KIND_STRING, 1, 3, "\"核x\"", "must be a string of 1 to 3 bytes", 0},
    {JSON_KIND_STRING, 1, 3, "\"\"", "must be a string of 1 to 3 bytes", 0},
    {JSON_KIND_STRING, 0, 3, "null", "must not be null", 0},
    {JSON_KIND_STRING, 0, 3, "{}", "must be a string", 0},
};

static void expect_accepted(size_t i, const union member *member) {
  switch (values[i].kind) {
    case JSON_KIND_TIME:
      assert_int_equal(member->time, values[i].number);
      break;
    case JSON_KIND_U64:
    case JSON_KIND_DECIMAL:
      assert_int_equal(member->u64, values[i].number);
      break;
    case JSON_KIND_U32:
      assert_int_equal(member->u32, values[i].number);
      break;
    case JSON_KIND_BOOL:
      assert_int_equal(member->truth, values[i].number);
      break;
    case JSON_KIND_ID: {
      struct id id;
      assert_true(id_parse(bytes_text(HEX31 "f"), &id));
      assert_memory_equal(&member->id, &id, sizeof id);
      break;
    }
    case JSON_KIND_TEXT:
    case JSON_KIND_WORD:
    case JSON_KIND_STRING:
      assert_true(bytes_equal(member->bytes, json_string(&json, 4)));
      break;
    case JSON_KIND_VALUE:
    case JSON_KIND_OBJECT:
    case JSON_KIND_ARRAY:
      assert_int_equal(member->u32, 4);
      break;
  }
}

static void each_kind_at_its_boundaries(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    struct json_field field = {.name = "name", .kind = values[i].kind, .min = values[i].min, .max = values[i].max};
    struct fault fault = {.status = STATUS_OK};
    union member member, before;
    uint64_t present = 77;
    struct buffer text;
    memset(&member, 0xA5, sizeof member);
    before = member;
    buffer_init(&text, 1 << 20);
    buffer_append_format(&text, "{\"outer\":{\"name\":%s}}", values[i].value);
    parsed(buffer_bytes(&text));
    enum status status = json_read_object(&json, 2, &field, 1, &member, &present, &fault);
    if (status != (values[i].refusal == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT))
      fail_msg("row %zu, %s: %s", i, values[i].value, status == STATUS_OK ? "was accepted" : fault.message);
    if (status == STATUS_OK) {
      assert_int_equal(present, 1);
      expect_accepted(i, &member);
    } else {
      assert_string_equal(fault.field, "/outer/name");
      if (strstr(fault.message, values[i].refusal) == NULL || strncmp(fault.message, "name ", 5) != 0)
        fail_msg("%s: \"%s\"", values[i].value, fault.message);
      assert_int_equal(present, 77);
      assert_memory_equal(&member, &before, sizeof member);
    }
    buffer_clear(&text);
  }
}

struct target {
  struct id queue_id;
  struct bytes handler, business_key;
  int64_t available_at;
  uint64_t task_timeout_ms, expected_revision;
  uint32_t priority;
  bool retryable;
  uint32_t payload, retry, items;
};

#define FIELD(name, kind, required, nullable, min, max) \
  { #name, kind, required, nullable, min, max, offsetof(struct target, name) }

static const struct json_field fields[] = {
    FIELD(queue_id, JSON_KIND_ID, true, false, 0, 0),
    FIELD(handler, JSON_KIND_WORD, true, false, 1, 128),
    FIELD(business_key, JSON_KIND_TEXT, false, false, 1, 256),
    FIELD(available_at, JSON_KIND_TIME, false, true, 0, 0),
    FIELD(task_timeout_ms, JSON_KIND_U64, false, false, 1, 2592000000),
    FIELD(expected_revision, JSON_KIND_DECIMAL, false, false, 1, 0),
    FIELD(priority, JSON_KIND_U32, false, false, 0, 9),
    FIELD(retryable, JSON_KIND_BOOL, false, false, 0, 0),
    FIELD(payload, JSON_KIND_VALUE, false, false, 1, 262144),
    FIELD(retry, JSON_KIND_OBJECT, false, false, 0, 0),
    FIELD(items, JSON_KIND_ARRAY, false, false, 1, 10),
};
enum { field_count = sizeof fields / sizeof fields[0] };

static const char whole[] =
    "{\"queue_id\":\"0123456789abcdef0123456789abcdef\",\"handler\":\"a.b/c:d-e_f\",\"business_key\":\"已\\n核\","
    "\"available_at\":\"2026-09-17T00:00:00Z\",\"task_timeout_ms\":60000,\"expected_revision\":\"4\",\"priority\":9,"
    "\"retryable\":true,\"payload\":[1.10],\"retry\":{\"max_attempts\":3},\"items\":[{}]}";

static void a_whole_object_is_read(void **state) {
  struct target target = {.priority = 1};
  uint64_t present = 0;
  struct fault fault;
  (void)state;
  parsed(bytes_text(whole));
  assert_int_equal(json_read_object(&json, 0, fields, field_count, &target, &present, &fault), STATUS_OK);
  assert_int_equal(present, (1U << field_count) - 1);
  assert_string_equal(id_text(&target.queue_id).text, "0123456789abcdef0123456789abcdef");
  assert_true(bytes_equal_text(target.handler, "a.b/c:d-e_f"));
  assert_true(bytes_equal_text(target.business_key, "已\n核"));
  assert_int_equal(target.available_at, INT64_C(1789603200000000));
  assert_int_equal(target.task_timeout_ms, 60000);
  assert_int_equal(target.expected_revision, 4);
  assert_int_equal(target.priority, 9);
  assert_true(target.retryable);
  assert_true(bytes_equal_text(json_raw(&json, target.payload), "[1.10]"));
  assert_true(bytes_equal_text(json_raw(&json, target.retry), "{\"max_attempts\":3}"));
  assert_true(bytes_equal_text(json_raw(&json, target.items), "[{}]"));
}

static void absent_members_leave_the_target_alone(void **state) {
  struct target target = {.priority = 7, .task_timeout_ms = 5, .available_at = 3};
  uint64_t present = 0;
  (void)state;
  parsed(bytes_text("{\"handler\":\"h\",\"available_at\":null,\"queue_id\":\"0123456789abcdef0123456789abcdef\"}"));
  assert_int_equal(json_read_object(&json, 0, fields, field_count, &target, &present, NULL), STATUS_OK);
  assert_int_equal(present, 3); /* a null that is allowed is absent */
  assert_int_equal(target.priority, 7);
  assert_int_equal(target.task_timeout_ms, 5);
  assert_int_equal(target.available_at, 3);
  assert_null(target.business_key.data);
  assert_int_equal(json_read_object(&json, 0, fields, field_count, &target, NULL, NULL), STATUS_OK);
}

#define OK_SO_FAR "\"queue_id\":\"0123456789abcdef0123456789abcdef\",\"handler\":\"h\""

static void wrong_objects_are_refused_by_name(void **state) {
  static const struct {
    const char *text, *field, *message;
  } cases[] = {
      {"[]", "", "an object must stand here"},
      {"\"\"", "", "an object must stand here"},
      {"{}", "/queue_id", "queue_id is required"},
      {"{\"queue_id\":\"0123456789abcdef0123456789abcdef\"}", "/handler", "handler is required"},
      {"{\"queue_id\":null}", "/queue_id", "queue_id must not be null"},
      {"{" OK_SO_FAR ",\"x\":1}", "/x", "unknown field"},
      {"{" OK_SO_FAR ",\"\":1}", "/", "unknown field"},
      {"{" OK_SO_FAR ",\"a/b\":null}", "/a~1b", "unknown field"},
      {"{" OK_SO_FAR ",\"prioritys\":1}", "/prioritys", "unknown field"},
      {"{" OK_SO_FAR ",\"priorit\":1}", "/priorit", "unknown field"},
      {"{" OK_SO_FAR ",\"Priority\":1}", "/Priority", "unknown field; did you mean \"priority\"?"},
      {"{" OK_SO_FAR ",\"PAYLOAD\":1}", "/PAYLOAD", "unknown field; did you mean \"payload\"?"},
      {"{" OK_SO_FAR ",\"prior\\u0049ty\":1}", "/priorIty", "unknown field; did you mean \"priority\"?"},
      {"{" OK_SO_FAR ",\"payload\":null}", "/payload", "payload must not be null"},
      {"{" OK_SO_FAR ",\"retry\":null}", "/retry", "retry must not be null"},
      {"{" OK_SO_FAR ",\"priority\":10}", "/priority",
       "priority must be an integer from 0 to 9, without sign, point or exponent"},
      {"{" OK_SO_FAR ",\"expected_revision\":4}", "/expected_revision",
       "expected_revision must be a string with a decimal number from 1 to 18446744073709551615, without sign and leading "
       "zero"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct target target = {.priority = 0};
    struct fault fault = {.status = STATUS_OK};
    parsed(bytes_text(cases[i].text));
    assert_int_equal(json_read_object(&json, 0, fields, field_count, &target, NULL, &fault), STATUS_INVALID_ARGUMENT);
    assert_int_equal(fault.status, STATUS_INVALID_ARGUMENT);
    assert_string_equal(fault.field, cases[i].field);
    assert_string_equal(fault.message, cases[i].message);
    assert_int_equal(json_read_object(&json, 0, fields, field_count, &target, NULL, NULL), STATUS_INVALID_ARGUMENT);
  }
}

static void escaped_keys_name_their_fields(void **state) {
  struct target target = {.priority = 0};
  (void)state;
  parsed(bytes_text("{" OK_SO_FAR ",\"prior\\u0069ty\":4}"));
  assert_int_equal(json_read_object(&json, 0, fields, field_count, &target, NULL, NULL), STATUS_OK);
  assert_int_equal(target.priority, 4);
}

static void pointers_start_at_the_document(void **state) {
  struct target target = {.priority = 0};
  struct fault fault;
  (void)state;
  parsed(bytes_text("{\"items\":[{" OK_SO_FAR "},{\"handler\":1},{}]}"));
  uint32_t items = json_member(&json, 0, "items"), first = items + 1, second = json.tokens[first].next;
  assert_int_equal(json_read_object(&json, first, fields, field_count, &target, NULL, &fault), STATUS_OK);
  assert_int_equal(json_read_object(&json, second, fields, field_count, &target, NULL, &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "/items/1/handler");
  assert_int_equal(json_read_object(&json, json.tokens[second].next, fields, field_count, &target, NULL, &fault),
                   STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "/items/2/queue_id");
}

static void a_long_message_stays_utf_8(void **state) {
  struct buffer text;
  (void)state;
  for (unsigned shift = 0; shift < 4; shift++) {
    struct fault fault;
    buffer_init(&text, 4096);
    buffer_append_text(&text, "[\"");
    for (unsigned i = 0; i < shift; i++) buffer_append_char(&text, 'x');
    for (unsigned i = 0; i < 200; i++) buffer_append_text(&text, shift % 2 == 0 ? "\xF0\x9D\x84\x9E" : "核");
    buffer_append_text(&text, "\"]");
    parsed(buffer_bytes(&text));
    struct bytes word = json_string(&json, 1);
    assert_int_equal(json_refuse(&json, 1, &fault, "unknown word %.*s", (int)word.size, word.data), STATUS_INVALID_ARGUMENT);
    assert_string_equal(fault.field, "/0");
    assert_true(strlen(fault.message) > sizeof fault.message - 1 - utf8_bytes_per_char_max);
    assert_true(bytes_is_utf8(bytes_text(fault.message)));
    buffer_clear(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_kind_at_its_boundaries),
      cmocka_unit_test(a_whole_object_is_read),
      cmocka_unit_test(absent_members_leave_the_target_alone),
      cmocka_unit_test(wrong_objects_are_refused_by_name),
      cmocka_unit_test(escaped_keys_name_their_fields),
      cmocka_unit_test(pointers_start_at_the_document),
      cmocka_unit_test(a_long_message_stays_utf_8),
  };
  return cmocka_run_group_tests_name("json read", tests, set_up, tear_down);
}
