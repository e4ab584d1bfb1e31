/* Submissions: each field at each of its bounds, defaults, the digest of the meaning, documents as written. */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_text.h"
#include "codec/wire_http.h"

/* A member of the body: value is JSON, or @word:N (a string of N letters), @text:N (N two-byte characters), @astral:N (N
 * characters beyond the basic plane, escaped as pairs), @document:N (a string of N bytes with its quotes), @spaced:N (an array
 * of N bytes when minified, with a space behind each comma). value NULL leaves the member out. */
struct member {
  const char *name, *value;
};

static const struct member base[] = {
    {"queue_id", "\"11111111111111111111111111111111\""},
    {"handler", "\"object.prepare\""},
    {"handler_version", "\"v1\""},
    {"payload_version", "\"v1\""},
    {"payload", "{\"n\":1}"},
    {"task_timeout_ms", "60000"},
};
enum { base_count = sizeof base / sizeof base[0] };

static void put_repeated(struct buffer *out, const char *piece, unsigned long count) {
  for (unsigned long i = 0; i < count; i++) buffer_append_text(out, piece);
}

static void put_value(struct buffer *out, const char *value) {
  unsigned long count = 0;
  if (sscanf(value, "@word:%lu", &count) == 1 || sscanf(value, "@text:%lu", &count) == 1 ||
      sscanf(value, "@astral:%lu", &count) == 1) {
    buffer_append_char(out, '"');
    put_repeated(out, value[1] == 'w' ? "a" : value[1] == 't' ? "\xC3\xA9" : "\\ud83d\\ude00", count);
    buffer_append_char(out, '"');
  } else if (sscanf(value, "@document:%lu", &count) == 1) {
    buffer_append_char(out, '"');
    put_repeated(out, "x", count - 2);
    buffer_append_char(out, '"');
  } else if (sscanf(value, "@spaced:%lu", &count) == 1) {
    buffer_append_text(out, count % 2 != 0 ? "[0" : "[10");
    put_repeated(out, ", 0", (count - 3) / 2);
    buffer_append_char(out, ']');
  } else {
    buffer_append_text(out, value);
  }
}

static void put_member(struct buffer *out, const char *name, const char *value) {
  if (value == NULL) return;
  if (out->data[out->size - 1] != '{') buffer_append_char(out, ',');
  buffer_append_format(out, "\"%s\":", name);
  put_value(out, value);
}

/* The base body with one member replaced, added or left out. */
static void put_body(struct buffer *out, const char *name, const char *value) {
  bool replaced = false;
  buffer_append_char(out, '{');
  for (unsigned i = 0; i < base_count; i++) {
    bool same = name != NULL && strcmp(base[i].name, name) == 0;
    put_member(out, base[i].name, same ? value : base[i].value);
    replaced |= same;
  }
  if (name != NULL && !replaced) put_member(out, name, value);
  buffer_append_char(out, '}');
  assert_false(out->failed);
}

struct reading {
  struct json json;
  struct buffer body, texts;
  struct command command;
  struct fault fault;
};

static void reading_init(struct reading *reading) {
  memset(reading, 0, sizeof *reading);
  json_init(&reading->json);
  buffer_init(&reading->body, 4 * http_batch_body_bytes_max);
  buffer_init(&reading->texts, 4 * http_batch_body_bytes_max);
}

static void reading_clear(struct reading *reading) {
  json_clear(&reading->json);
  buffer_clear(&reading->body);
  buffer_clear(&reading->texts);
}

static enum status read_body(struct reading *reading, const char *name, const char *value) {
  buffer_reset(&reading->body);
  buffer_reset(&reading->texts);
  put_body(&reading->body, name, value);
  memset(&reading->fault, 0, sizeof reading->fault);
  return wire_submit_read(&reading->json, buffer_bytes(&reading->body), &reading->texts, &reading->command, &reading->fault);
}

static enum status read_text(struct reading *reading, const char *body) {
  buffer_reset(&reading->body);
  buffer_reset(&reading->texts);
  buffer_append_text(&reading->body, body);
  memset(&reading->fault, 0, sizeof reading->fault);
  return wire_submit_read(&reading->json, buffer_bytes(&reading->body), &reading->texts, &reading->command, &reading->fault);
}

/* field NULL: accepted; else refused with this pointer. */
static const struct {
  const char *name, *value, *field;
} cases[] = {
    {NULL, NULL, NULL},
    /* queue_id */
    {"queue_id", NULL, "/queue_id"},
    {"queue_id", "null", "/queue_id"},
    {"queue_id", "1", "/queue_id"},
    {"queue_id", "\"1111111111111111111111111111111\"", "/queue_id"},
    {"queue_id", "\"111111111111111111111111111111111\"", "/queue_id"},
    {"queue_id", "\"1111111111111111111111111111111A\"", "/queue_id"},
    {"queue_id", "\"00000000000000000000000000000000\"", "/queue_id"},
    {"Queue_id", "\"11111111111111111111111111111111\"", "/Queue_id"},
    /* words */
    {"handler", NULL, "/handler"},
    {"handler", "null", "/handler"},
    {"handler", "[]", "/handler"},
    {"handler", "\"\"", "/handler"},
    {"handler", "\"a\"", NULL},
    {"handler", "\"AZaz09._:/-\"", NULL},
    {"handler", "\"a b\"", "/handler"},
    {"handler", "\"\xC3\xA9\"", "/handler"},
    {"handler", "@word:128", NULL},
    {"handler", "@word:129", "/handler"},
    {"handler_version", NULL, "/handler_version"},
    {"handler_version", "\"\"", "/handler_version"},
    {"handler_version", "@word:128", NULL},
    {"handler_version", "@word:129", "/handler_version"},
    {"payload_version", NULL, "/payload_version"},
    {"payload_version", "\"\"", "/payload_version"},
    {"payload_version", "@word:128", NULL},
    {"payload_version", "@word:129", "/payload_version"},
    {"HANDLER", "\"a\"", "/HANDLER"},
    /* payload */
    {"payload", NULL, "/payload"},
    {"payload", "null", "/payload"},
    {"payload", "0", NULL},
    {"payload", "false", NULL},
    {"payload", "\"\"", NULL},
    {"payload", "[null]", NULL},
    {"payload", "{\"a\":null}", NULL},
    {"payload", "{\"a\":1,\"a\":2}", "/payload/a"},
    {"payload", "{\"a\":1,\"\\u0061\":2}", "/payload/a"},
    {"payload", "{\"a\":{\"A\":1,\"a\":2}}", NULL},
    {"payload", "\"\\u0000\"", "/payload"},
    {"payload", "\"\\ud800\"", "/payload"},
    {"payload", "@document:262144", NULL},
    {"payload", "@document:262145", "/payload"},
    {"payload", "@spaced:262144", NULL},
    {"payload", "@spaced:262145", "/payload"},
    /* task_timeout_ms */
    {"task_timeout_ms", NULL, "/task_timeout_ms"},
    {"task_timeout_ms", "null", "/task_timeout_ms"},
    {"task_timeout_ms", "0", "/task_timeout_ms"},
    {"task_timeout_ms", "1", NULL},
    {"task_timeout_ms", "2592000000", NULL},
    {"task_timeout_ms", "2592000001", "/task_timeout_ms"},
    {"task_timeout_ms", "18446744073709551617", "/task_timeout_ms"},
    {"task_timeout_ms", "-1", "/task_timeout_ms"},
    {"task_timeout_ms", "1.0", "/task_timeout_ms"},
    {"task_timeout_ms", "1e3", "/task_timeout_ms"},
    {"task_timeout_ms", "\"60000\"", "/task_timeout_ms"},
    /* times */
    {"available_at", "\"2026-09-17T00:00:00Z\"", NULL},
    {"available_at", "\"2000-01-01T00:00:00Z\"", NULL},
    {"available_at", "\"1999-12-31T23:59:59.999999Z\"", "/available_at"},
    {"available_at", "\"9998-12-31T23:59:59.999999Z\"", NULL},
    {"available_at", "\"9999-01-01T00:00:00Z\"", "/available_at"},
    {"available_at", "\"2026-02-29T00:00:00Z\"", "/available_at"},
    {"available_at", "\"2026-09-17T00:00:00+00:00\"", "/available_at"},
    {"available_at", "\"2026-09-17T00:00:00.1234567Z\"", "/available_at"},
    {"available_at", "null", "/available_at"},
    {"available_at", "0", "/available_at"},
    {"start_deadline_at", "\"2026-09-17T00:00:00.5Z\"", NULL},
    {"start_deadline_at", "null", "/start_deadline_at"},
    {"start_deadline_at", "\"\"", "/start_deadline_at"},
    /* recovery_safety */
    {"recovery_safety", "\"RECONCILE_ONLY\"", NULL},
    {"recovery_safety", "\"IDEMPOTENT\"", NULL},
    {"recovery_safety", "\"idempotent\"", "/recovery_safety"},
    {"recovery_safety", "\"\"", "/recovery_safety"},
    {"recovery_safety", "null", "/recovery_safety"},
    {"recovery_safety", "true", "/recovery_safety"},
    /* retry */
    {"retry", "{}", NULL},
    {"retry", "null", "/retry"},
    {"retry", "[]", "/retry"},
    {"retry", "{\"attempts\":1}", "/retry/attempts"},
    {"retry", "{\"Max_attempts\":1}", "/retry/Max_attempts"},
    {"retry", "{\"max_attempts\":0}", "/retry/max_attempts"},
    {"retry", "{\"max_attempts\":1}", NULL},
    {"retry", "{\"max_attempts\":100}", NULL},
    {"retry", "{\"max_attempts\":101}", "/retry/max_attempts"},
    {"retry", "{\"max_attempts\":\"1\"}", "/retry/max_attempts"},
    {"retry", "{\"max_attempts\":null}", "/retry/max_attempts"},
    {"retry", "{\"max_attempts\":1,\"max_attempts\":1}", "/retry/max_attempts"},
    {"retry", "{\"initial_delay_ms\":0,\"max_delay_ms\":0}", NULL},
    {"retry", "{\"initial_delay_ms\":86400000,\"max_delay_ms\":86400000}", NULL},
    {"retry", "{\"initial_delay_ms\":86400001,\"max_delay_ms\":86400000}", "/retry/initial_delay_ms"},
    {"retry", "{\"initial_delay_ms\":0,\"max_delay_ms\":86400001}", "/retry/max_delay_ms"},
    {"retry", "{\"initial_delay_ms\":2,\"max_delay_ms\":1}", "/retry/max_delay_ms"},
    {"retry", "{\"initial_delay_ms\":1}", "/retry/max_delay_ms"},
    {"retry", "{\"max_delay_ms\":1}", NULL},
    {"retry", "{\"attempt_timeout_ms\":0}", "/retry/attempt_timeout_ms"},
    {"retry", "{\"attempt_timeout_ms\":1}", NULL},
    {"retry", "{\"attempt_timeout_ms\":60000}", NULL},
    {"retry", "{\"attempt_timeout_ms\":60001}", "/retry/attempt_timeout_ms"},
    {"retry", "{\"attempt_timeout_ms\":4294967296}", "/retry/attempt_timeout_ms"},
    /* keys */
    {"business_key", "\"\"", "/business_key"},
    {"business_key", "\"k\"", NULL},
    {"business_key", "\" \"", NULL},
    {"business_key", "@text:256", NULL},
    {"business_key", "@text:257", "/business_key"},
    {"business_key", "@astral:256", NULL},
    {"business_key", "@astral:257", "/business_key"},
    {"business_key", "null", "/business_key"},
    {"business_key", "7", "/business_key"},
    {"business_key", "\"\xFF\"", "/business_key"},
    {"business_key", "\"\xC0\x80\"", "/business_key"},
    {"concurrency_key", "\"\"", "/concurrency_key"},
    {"concurrency_key", "@text:256", NULL},
    {"concurrency_key", "@text:257", "/concurrency_key"},
    {"concurrency_key", "null", "/concurrency_key"},
    /* priority */
    {"priority", "0", NULL},
    {"priority", "9", NULL},
    {"priority", "10", "/priority"},
    {"priority", "-1", "/priority"},
    {"priority", "null", "/priority"},
    {"priority", "\"1\"", "/priority"},
    /* what no submission has */
    {"idempotency_key", "\"k\"", "/idempotency_key"},
    {"namespace_id", "\"11111111111111111111111111111111\"", "/namespace_id"},
    {"a/b~c", "1", "/a~1b~0c"},
};

static void test_each_field_at_its_bounds(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    enum status status = read_body(&reading, cases[i].name, cases[i].value);
    enum status expected = cases[i].field == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT;
    if (status != expected || (expected != STATUS_OK && strcmp(reading.fault.field, cases[i].field) != 0))
      fail_msg("%s = %.60s: %s at '%s' (%s), not '%s'", cases[i].name, cases[i].value != NULL ? cases[i].value : "(absent)",
               status_name(status), reading.fault.field, reading.fault.message, cases[i].field != NULL ? cases[i].field : "OK");
    if (status != STATUS_OK) assert_true(reading.fault.message[0] != 0);
  }
  reading_clear(&reading);
}

static void test_bodies_that_are_no_submission(void **state) {
  (void)state;
  static const char *const bodies[] = {"", " ", "null", "[]", "\"x\"", "1", "{", "{}", "{} {}", "\xEF\xBB\xBF{}"};
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
    struct command before = reading.command;
    assert_int_equal(read_text(&reading, bodies[i]), STATUS_INVALID_ARGUMENT);
    assert_memory_equal(&before, &reading.command, sizeof before);
  }
  reading_clear(&reading);
}

static void test_defaults(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  reading.command.session = 7;
  memset(&reading.command.operation.identity, 5, sizeof reading.command.operation.identity);
  assert_int_equal(read_body(&reading, NULL, NULL), STATUS_OK);
  const struct submit_command *submit = &reading.command.as.submit;
  assert_int_equal(reading.command.kind, COMMAND_SUBMIT);
  assert_int_equal(reading.command.session, 7);
  assert_int_equal(reading.command.operation.identity.bytes[0], 5);
  assert_false(id_is_zero(&reading.command.operation.digest));
  assert_true(bytes_equal_text(submit->handler, "object.prepare"));
  assert_true(bytes_equal_text(submit->handler_version, "v1"));
  assert_true(bytes_equal_text(submit->payload_version, "v1"));
  assert_true(bytes_equal_text(submit->payload, "{\"n\":1}"));
  assert_null(submit->business_key.data);
  assert_null(submit->concurrency_key.data);
  assert_int_equal(submit->task_timeout_ms, 60000);
  assert_int_equal(submit->available_at, 0);
  assert_int_equal(submit->start_deadline_at, 0);
  assert_int_equal(submit->recovery_safety, RECOVERY_RECONCILE_ONLY);
  assert_int_equal(submit->max_attempts, 1);
  assert_int_equal(submit->initial_delay_ms, 0);
  assert_int_equal(submit->max_delay_ms, 0);
  assert_int_equal(submit->attempt_timeout_ms, 60000);
  assert_int_equal(submit->priority, 0);
  reading_clear(&reading);
}

#define HEAD                                                                                                                  \
  "{\"queue_id\":\"11111111111111111111111111111111\",\"handler\":\"h\",\"handler_version\":\"v\",\"payload_version\":\"p\"," \
  "\"task_timeout_ms\":1000,"

static void test_every_field_is_taken(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  assert_int_equal(
      read_text(&reading, HEAD "\"payload\" : [ 1 , {\"a\" : \" b \"} ] ,\"available_at\":\"2026-09-17T00:00:00.25Z\","
                               "\"start_deadline_at\":\"2026-09-17T00:00:01Z\",\"recovery_safety\":\"IDEMPOTENT\","
                               "\"retry\":{\"max_attempts\":3,\"initial_delay_ms\":10,\"max_delay_ms\":20,"
                               "\"attempt_timeout_ms\":500},\"business_key\":\"b\\n\\u00e9\",\"concurrency_key\":\"c\","
                               "\"priority\":9}"),
      STATUS_OK);
  const struct submit_command *submit = &reading.command.as.submit;
  int64_t available_at = 0, start_deadline_at = 0;
  assert_true(time_parse(bytes_text("2026-09-17T00:00:00.25Z"), &available_at));
  assert_true(time_parse(bytes_text("2026-09-17T00:00:01Z"), &start_deadline_at));
  assert_int_equal(submit->queue_id.bytes[0], 0x11);
  assert_true(bytes_equal_text(submit->payload, "[1,{\"a\":\" b \"}]"));
  assert_int_equal(submit->available_at, available_at);
  assert_int_equal(submit->start_deadline_at, start_deadline_at);
  assert_int_equal(submit->recovery_safety, RECOVERY_IDEMPOTENT);
  assert_int_equal(submit->max_attempts, 3);
  assert_int_equal(submit->initial_delay_ms, 10);
  assert_int_equal(submit->max_delay_ms, 20);
  assert_int_equal(submit->attempt_timeout_ms, 500);
  assert_true(bytes_equal_text(submit->business_key, "b\n\xC3\xA9"));
  assert_true(bytes_equal_text(submit->concurrency_key, "c"));
  assert_int_equal(submit->priority, 9);
  reading_clear(&reading);
}

static void test_numbers_stay_as_written(void **state) {
  (void)state;
  static const char *const numbers[] = {"9007199254740993", "1.10", "1e400", "-0", "0.0e-0", "123456789012345678901234567890"};
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    assert_int_equal(read_body(&reading, "payload", numbers[i]), STATUS_OK);
    assert_true(bytes_equal_text(reading.command.as.submit.payload, numbers[i]));
  }
  reading_clear(&reading);
}

/* Bodies that mean the same as HEAD "payload":{"a":1,"b":[2]}}, and bodies that do not. */
static const struct {
  const char *body;
  bool same;
} meanings[] = {
    {HEAD "\"payload\":{\"b\":[ 2 ],\"a\":1}}", true},
    {"{\"payload\":{\"a\":1,\"b\":[2]},\"task_timeout_ms\":1000,\"payload_version\":\"p\",\"handler_version\":\"v\","
     "\"handler\":\"h\",\"queue_id\":\"11111111111111111111111111111111\"}",
     true},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2]},\"priority\":0,\"recovery_safety\":\"RECONCILE_ONLY\",\"retry\":{}}", true},
    {HEAD "\"payload\":{\"\\u0061\":1,\"b\":[2]},\"retry\":{\"max_attempts\":1,\"initial_delay_ms\":0,\"max_delay_ms\":0,"
          "\"attempt_timeout_ms\":1000}}",
     true},
    {HEAD "\"payload\":{\"a\":1.0,\"b\":[2]}}", false},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2,2]}}", false},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2]},\"priority\":1}", false},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2]},\"business_key\":\"k\"}", false},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2]},\"concurrency_key\":\"k\"}", false},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2]},\"available_at\":\"2026-09-17T00:00:00Z\"}", false},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2]},\"start_deadline_at\":\"2026-09-17T00:00:00Z\"}", false},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2]},\"recovery_safety\":\"IDEMPOTENT\"}", false},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2]},\"retry\":{\"attempt_timeout_ms\":999}}", false},
    {HEAD "\"payload\":{\"a\":1,\"b\":[2]},\"retry\":{\"max_attempts\":2}}", false},
};

static void test_digest_is_of_the_meaning(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  assert_int_equal(read_text(&reading, HEAD "\"payload\":{\"a\":1,\"b\":[2]}}"), STATUS_OK);
  struct id first = reading.command.operation.digest;
  for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
    assert_int_equal(read_text(&reading, meanings[i].body), STATUS_OK);
    if (id_equal(&first, &reading.command.operation.digest) != meanings[i].same) fail_msg("%s", meanings[i].body);
  }
  reading_clear(&reading);
}

static void test_batch_items_have_keys(void **state) {
  (void)state;
  static const struct {
    const char *value, *field;
    bool has_key;
  } keys[] = {
      {NULL, NULL, false},
      {"\"k\"", NULL, true},
      {"\"!~\"", NULL, true},
      {"\"\"", "/idempotency_key", false},
      {"@word:128", NULL, true},
      {"@word:129", "/idempotency_key", false},
      {"\"a b\"", "/idempotency_key", false},
      {"\"\\u007f\"", "/idempotency_key", false},
      {"\"\xC3\xA9\"", "/idempotency_key", false},
      {"null", "/idempotency_key", false},
      {"1", "/idempotency_key", false},
  };
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    struct bytes key = {NULL, 0};
    buffer_reset(&reading.body);
    buffer_reset(&reading.texts);
    put_body(&reading.body, "idempotency_key", keys[i].value);
    assert_int_equal(json_parse(&reading.json, buffer_bytes(&reading.body), &reading.fault), STATUS_OK);
    enum status status = wire_submit_read_object(&reading.json, 0, &reading.texts, &reading.command, &key, &reading.fault);
    assert_int_equal(status, keys[i].field == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT);
    if (keys[i].field != NULL) assert_string_equal(reading.fault.field, keys[i].field);
    assert_int_equal(key.data != NULL, keys[i].has_key);
  }
  reading_clear(&reading);
}

/* The key names the operation and is no part of what it means. Payloads of all items stay where they are in texts. */
static void test_items_of_one_body_share_texts(void **state) {
  (void)state;
  enum { items = 100 };
  struct reading reading;
  reading_init(&reading);
  buffer_append_text(&reading.body, "{\"items\":[");
  for (unsigned i = 0; i < items; i++) {
    if (i != 0) buffer_append_char(&reading.body, ',');
    buffer_append_format(&reading.body, HEAD "\"payload\":[%u, %u],\"idempotency_key\":\"k%u\"}", i, i / 50, i);
  }
  buffer_append_text(&reading.body, "]}");
  assert_int_equal(json_parse(&reading.json, buffer_bytes(&reading.body), &reading.fault), STATUS_OK);
  uint32_t token = json_member(&reading.json, 0, "items") + 1;
  static struct command commands[items];
  for (unsigned i = 0; i < items; i++, token = reading.json.tokens[token].next) {
    struct bytes key;
    assert_int_equal(wire_submit_read_object(&reading.json, token, &reading.texts, &commands[i], &key, &reading.fault),
                     STATUS_OK);
  }
  for (unsigned i = 0; i < items; i++) {
    char expected[32];
    (void)snprintf(expected, sizeof expected, "[%u,%u]", i, i / 50);
    assert_true(bytes_equal_text(commands[i].as.submit.payload, expected));
  }
  reading_clear(&reading);
}

static void test_texts_that_are_full(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  reading.texts.limit = 16;
  assert_int_equal(read_body(&reading, NULL, NULL), STATUS_UNAVAILABLE);
  reading_clear(&reading);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_field_at_its_bounds),
      cmocka_unit_test(test_bodies_that_are_no_submission),
      cmocka_unit_test(test_defaults),
      cmocka_unit_test(test_every_field_is_taken),
      cmocka_unit_test(test_numbers_stay_as_written),
      cmocka_unit_test(test_digest_is_of_the_meaning),
      cmocka_unit_test(test_batch_items_have_keys),
      cmocka_unit_test(test_items_of_one_body_share_texts),
      cmocka_unit_test(test_texts_that_are_full),
  };
  return cmocka_run_group_tests_name("wire_submit", tests, NULL, NULL);
}
