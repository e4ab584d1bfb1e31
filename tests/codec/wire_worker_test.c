/* Worker messages: each field at each of its bounds, identities, and frames. */
#include "wire_worker_reading.h"

/* field NULL: accepted. */
static const struct {
  const char *type, *name, *value, *field;
} cases[] = {
    {"worker.hello", NULL, NULL, NULL},
    {"worker.hello", "message_id", NULL, "/message_id"},
    {"worker.hello", "message_id", "null", "/message_id"},
    {"worker.hello", "message_id", "\"" ID32("A") "\"", "/message_id"},
    {"worker.hello", "instance_id", NULL, "/instance_id"},
    {"worker.hello", "instance_id", "\"a\"", "/instance_id"},
    {"worker.hello", "Instance_id", "\"" ID32("a") "\"", "/Instance_id"},
    {"worker.hello", "name", "\"\"", "/name"},
    {"worker.hello", "name", "\"n\"", NULL},
    {"worker.hello", "name", "@text:128", NULL},
    {"worker.hello", "name", "@text:129", "/name"},
    {"worker.hello", "name", "null", "/name"},
    {"worker.hello", "queue_ids", NULL, "/queue_ids"},
    {"worker.hello", "queue_ids", "[]", "/queue_ids"},
    {"worker.hello", "queue_ids", "{}", "/queue_ids"},
    {"worker.hello", "queue_ids", "null", "/queue_ids"},
    {"worker.hello", "queue_ids", "@ids:1", NULL},
    {"worker.hello", "queue_ids", "@ids:256", NULL},
    {"worker.hello", "queue_ids", "@ids:257", "/queue_ids"},
    {"worker.hello", "queue_ids", "[\"" ID32("2") "\",null]", "/queue_ids/1"},
    {"worker.hello", "queue_ids", "[\"x\"]", "/queue_ids/0"},
    {"worker.hello", "queue_ids", "[[\"" ID32("2") "\"]]", "/queue_ids/0"},
    {"worker.hello", "queue_ids", "[\"" ID32("2") "\",\"" ID32("3") "\",\"" ID32("2") "\"]", "/queue_ids/2"},
    {"worker.hello", "handlers", NULL, "/handlers"},
    {"worker.hello", "handlers", "[]", "/handlers"},
    {"worker.hello", "handlers", "null", "/handlers"},
    {"worker.hello", "handlers", "@handlers:256", NULL},
    {"worker.hello", "handlers", "@handlers:257", "/handlers"},
    {"worker.hello", "queue_ids", "@ones:256", "/queue_ids/0"}, /* shorter than what it would become */
    {"worker.hello", "handlers", "@ones:256", "/handlers/0"},
    {"worker.hello", "handlers", "[1]", "/handlers/0"},
    {"worker.hello", "handlers", "[{\"handler\":\"h\"}]", "/handlers/0/handler_version"},
    {"worker.hello", "handlers", "[{\"handler_version\":\"h\"}]", "/handlers/0/handler"},
    {"worker.hello", "handlers", "[{\"handler\":\"\",\"handler_version\":\"v\"}]", "/handlers/0/handler"},
    {"worker.hello", "handlers", "[{\"handler\":\"a b\",\"handler_version\":\"v\"}]", "/handlers/0/handler"},
    {"worker.hello", "handlers", "[{\"handler\":\"h\",\"handler_version\":\"v\",\"x\":1}]", "/handlers/0/x"},
    {"worker.hello", "handlers",
     "[{\"handler\":\"h\",\"handler_version\":\"v\"},{\"handler\":\"h\",\"handler_version\":\"w\"},"
     "{\"handler\":\"g\",\"handler_version\":\"v\"}]",
     NULL},
    {"worker.hello", "handlers",
     "[{\"handler\":\"h\",\"handler_version\":\"v\"},{\"handler_version\":\"v\",\"handler\":\"\\u0068\"}]", "/handlers/1"},
    {"worker.hello", "capacity", NULL, "/capacity"},
    {"worker.hello", "capacity", "0", "/capacity"},
    {"worker.hello", "capacity", "1", NULL},
    {"worker.hello", "capacity", "1000", NULL},
    {"worker.hello", "capacity", "1001", "/capacity"},
    {"worker.hello", "capacity", "\"4\"", "/capacity"},
    {"worker.hello", "lease_ms", "4999", "/lease_ms"},
    {"worker.hello", "lease_ms", "5000", NULL},
    {"worker.hello", "lease_ms", "300000", NULL},
    {"worker.hello", "lease_ms", "300001", "/lease_ms"},
    {"worker.hello", "lease_ms", "null", "/lease_ms"},
    {"worker.hello", "task_id", "\"" ID32("2") "\"", "/task_id"},

    {"worker.capacity", NULL, NULL, NULL},
    {"worker.capacity", "message_id", NULL, "/message_id"},
    {"worker.capacity", "capacity", NULL, "/capacity"},
    {"worker.capacity", "capacity", "0", "/capacity"},
    {"worker.capacity", "capacity", "1", NULL},
    {"worker.capacity", "capacity", "1000", NULL},
    {"worker.capacity", "capacity", "1001", "/capacity"},
    {"worker.capacity", "capacity", "null", "/capacity"},
    {"worker.capacity", "x", "1", "/x"},

    {"worker.drain", NULL, NULL, NULL},
    {"worker.drain", "message_id", NULL, "/message_id"},
    {"worker.drain", "capacity", "4", "/capacity"},

    {"task.start", NULL, NULL, NULL},
    {"task.start", "message_id", NULL, "/message_id"},
    {"task.start", "task_id", NULL, "/task_id"},
    {"task.start", "task_id", "null", "/task_id"},
    {"task.start", "task_id", "7", "/task_id"},
    {"task.start", "attempt_id", NULL, "/attempt_id"},
    {"task.start", "attempt_id", "\"" ID32("0") "\"", "/attempt_id"},
    {"task.start", "epoch", NULL, "/epoch"},
    {"task.start", "epoch", "1", "/epoch"},
    {"task.start", "epoch", "\"0\"", "/epoch"},
    {"task.start", "epoch", "\"\"", "/epoch"},
    {"task.start", "epoch", "\"01\"", "/epoch"},
    {"task.start", "epoch", "\"+1\"", "/epoch"},
    {"task.start", "epoch", "\" 1\"", "/epoch"},
    {"task.start", "epoch", "\"18446744073709551615\"", NULL},
    {"task.start", "epoch", "\"18446744073709551616\"", "/epoch"},
    {"task.start", "outcome", "\"SUCCEEDED\"", "/outcome"},
    {"task.start", "EPOCH", "\"1\"", "/EPOCH"},

    {"task.renew", NULL, NULL, NULL},
    {"task.renew", "epoch", NULL, "/epoch"},
    {"task.renew", "lease_ms", "5000", "/lease_ms"},

    {"task.release", NULL, NULL, NULL},
    {"task.release", "attempt_id", NULL, "/attempt_id"},
    {"task.release", "error", "{\"code\":\"E\"}", "/error"},

    {"task.finish", NULL, NULL, NULL},
    {"task.finish", "epoch", NULL, "/epoch"},
    {"task.finish", "outcome", NULL, "/outcome"},
    {"task.finish", "outcome", "null", "/outcome"},
    {"task.finish", "outcome", "\"succeeded\"", "/outcome"},
    {"task.finish", "outcome", "\"RUNNING\"", "/outcome"},
    {"task.finish", "outcome", "\"UNKNOWN\"", NULL},
    {"task.finish", "outcome", "\"CANCELLED\"", NULL},
    {"task.finish", "outcome", "\"FAILED\"", NULL},
    {"task.finish", "retryable", "false", NULL},
    {"task.finish", "retryable", "true", "/retryable"},
    {"task.finish", "retryable", "null", "/retryable"},
    {"task.finish", "retryable", "\"true\"", "/retryable"},
    {"task.finish", "Retryable", "false", "/Retryable"},
    {"task.finish", "result", "null", "/result"},
    {"task.finish", "result", "0", NULL},
    {"task.finish", "result", "@document:262144", NULL},
    {"task.finish", "result", "@document:262145", "/result"},
    {"task.finish", "error", "{\"code\":\"E\"}", "/error"},
    {"task.finish", "error", "null", "/error"},
};

static void test_each_field_at_its_bounds(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    enum status status = read_message(&reading, cases[i].type, cases[i].name, cases[i].value);
    enum status expected = cases[i].field == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT;
    if (status != expected || (expected != STATUS_OK && strcmp(reading.fault.field, cases[i].field) != 0))
      fail_msg("%s %s = %.60s: %s at '%s' (%s), not '%s'", cases[i].type, cases[i].name,
               cases[i].value != NULL ? cases[i].value : "(absent)", status_name(status), reading.fault.field,
               reading.fault.message, cases[i].field != NULL ? cases[i].field : "OK");
    if (status == STATUS_OK) assert_int_equal(reading.command.kind, message_of(cases[i].type)->kind);
    bool id_is_good = cases[i].name == NULL || strcmp(cases[i].name, "message_id") != 0;
    assert_int_equal(id_is_good, !id_is_zero(&reading.message_id));
  }
  reading_clear(&reading);
}

/* ---- Identities ---- */

static const char start_text[] = "{\"type\":\"task.start\",\"message_id\":\"" ID32("1") "\",\"task_id\":\"" ID32(
    "2") "\",\"attempt_id\":\"" ID32("3") "\",\"epoch\":\"1\"}";

static struct id identity_of(struct reading *reading, const char *text) {
  assert_int_equal(read_text(reading, text), STATUS_OK);
  return reading->command.operation.identity;
}

static void test_identities(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  struct id ids[8];
  uint8_t key[32];
  memset(key, 0x11, 16);
  memset(key + 16, 2, 16);
  ids[0] = identity_of(&reading, start_text);
  struct id expected = identity_make(&reading.secret, &reading.who.namespace_id, "task.start",
                                     &reading.command.as.ref.attempt_id, bytes_of(key, sizeof key));
  assert_true(id_equal(&ids[0], &expected));
  reading.who.application_id.bytes[5]++;
  ids[1] = identity_of(&reading, start_text);
  reading.who.namespace_id.bytes[5]++;
  ids[2] = identity_of(&reading, start_text);
  reading.secret.bytes[5]++;
  ids[3] = identity_of(&reading, start_text);
  assert_int_equal(read_message(&reading, "task.release", NULL, NULL), STATUS_OK);
  ids[4] = reading.command.operation.identity;
  assert_false(id_is_zero(&reading.command.operation.digest));
  assert_int_equal(read_message(&reading, "task.finish", NULL, NULL), STATUS_OK);
  ids[5] = reading.command.operation.identity;
  ids[6] = reading.command.as.finish.report.identity;
  assert_int_equal(read_message(&reading, "task.finish", "message_id", "\"" ID32("4") "\""), STATUS_OK);
  ids[7] = reading.command.operation.identity;
  assert_true(id_equal(&ids[6], &reading.command.as.finish.report.identity)); /* of the attempt alone */
  for (unsigned i = 0; i < 8; i++) {
    assert_false(id_is_zero(&ids[i]));
    for (unsigned k = 0; k < i; k++) assert_false(id_equal(&ids[i], &ids[k]));
  }
  assert_int_equal(read_message(&reading, "task.renew", NULL, NULL), STATUS_OK);
  assert_true(id_is_zero(&reading.command.operation.identity));
  reading_clear(&reading);
}

/* ---- hello ---- */

static void test_hello_with_the_longest_lists(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  buffer_append_text(&reading.frame, "{\"type\":\"worker.hello\",\"message_id\":\"" ID32("1") "\",\"instance_id\":\"" ID32(
                                         "a") "\",\"name\":\"w\\u00e9\",\"capacity\":1000,\"lease_ms\":5000,\"queue_ids\":");
  put_value(&reading.frame, "@ids:256");
  buffer_append_text(&reading.frame, ",\"handlers\":");
  put_value(&reading.frame, "@handlers:256");
  buffer_append_text(&reading.frame, "}");
  assert_int_equal(read_frame(&reading), STATUS_OK);
  const struct hello_command *hello = &reading.command.as.hello;
  assert_int_equal(hello->message_id.bytes[0], 0x11);
  assert_int_equal(hello->instance_id.bytes[0], 0xAA);
  assert_true(bytes_equal_text(hello->name, "w\xC3\xA9"));
  assert_int_equal(hello->capacity, 1000);
  assert_int_equal(hello->lease_ms, 5000);
  assert_int_equal(hello->queue_count, 256);
  assert_int_equal(hello->handler_count, 256);
  for (unsigned i = 0; i < 256; i++) {
    char version[8];
    (void)snprintf(version, sizeof version, "v%u", i);
    assert_int_equal(hello->queue_ids[i].bytes[14] * 256 + hello->queue_ids[i].bytes[15], i + 1);
    assert_true(bytes_equal_text(hello->handlers[i].handler, "h"));
    assert_true(bytes_equal_text(hello->handlers[i].handler_version, version));
  }
  reading_clear(&reading);
}

/* texts holds nothing between two hellos, so that room for it is made anew from each text. */
static void test_hello_with_the_shortest_lists(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  for (unsigned count = 1; count <= 256; count++) {
    char handlers[32], ids[32];
    (void)snprintf(handlers, sizeof handlers, "@handlers:%u", count);
    (void)snprintf(ids, sizeof ids, "@ids:%u", count);
    buffer_clear(&reading.texts);
    assert_int_equal(read_message(&reading, "worker.hello", "handlers", handlers), STATUS_OK);
    assert_int_equal(reading.command.as.hello.handler_count, count);
    buffer_clear(&reading.texts);
    assert_int_equal(read_message(&reading, "worker.hello", "queue_ids", ids), STATUS_OK);
    assert_int_equal(reading.command.as.hello.queue_count, count);
  }
  reading_clear(&reading);
}

static void test_simple_messages(void **state) {
  (void)state;
  struct reading reading;
  reading_init(&reading);
  assert_int_equal(read_message(&reading, "worker.hello", NULL, NULL), STATUS_OK);
  assert_null(reading.command.as.hello.name.data);
  assert_int_equal(reading.command.as.hello.lease_ms, 0);
  assert_int_equal(read_message(&reading, "worker.capacity", NULL, NULL), STATUS_OK);
  assert_int_equal(reading.command.as.capacity.capacity, 4);
  assert_int_equal(reading.command.as.capacity.message_id.bytes[0], 0x11);
  assert_int_equal(read_message(&reading, "worker.drain", NULL, NULL), STATUS_OK);
  assert_int_equal(reading.command.as.message_id.bytes[0], 0x11);
  assert_true(id_is_zero(&reading.command.operation.identity));
  reading_clear(&reading);
}

/* ---- Frames and what is no message ---- */

static void test_types(void **state) {
  (void)state;
  static const char *const texts[] = {
      "{}",
      "{\"type\":null}",
      "{\"type\":1}",
      "{\"type\":\"\"}",
      "{\"type\":\"task.Start\"}",
      "{\"type\":\"command.result\",\"message_id\":\"" ID32("1") "\"}",
  };
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct command before = reading.command;
    assert_int_equal(read_text(&reading, texts[i]), STATUS_INVALID_ARGUMENT);
    assert_string_equal(reading.fault.field, "/type");
    assert_memory_equal(&before, &reading.command, sizeof before);
    assert_int_equal(id_is_zero(&reading.message_id), strstr(texts[i], "message_id") == NULL);
  }
  reading_clear(&reading);
}

static void test_frames(void **state) {
  (void)state;
  static const struct {
    const char *frame, *field;
    uint32_t count;
  } frames[] = {
      {"{}", NULL, 1},
      {"[{}]", NULL, 1},
      {"[{},{}]", NULL, 2},
      {"[]", "", 0},
      {"1", "", 0},
      {"\"x\"", "", 0},
      {"null", "", 0},
      {"[1]", "/0", 0},
      {"[{},[]]", "/1", 0},
      {"[{},null]", "/1", 0},
      {"{\"a\":1}{}", "", 0},
      {"", "", 0},
      {"{\"a\":\"\xFF\"}", "/a", 0},
      {"{\"a\":1,\"a\":1}", "/a", 0},
  };
  struct json json;
  json_init(&json);
  for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
    struct worker_frame frame = {.count = 0};
    struct fault fault;
    enum status status = worker_frame_read(&json, bytes_text(frames[i].frame), &frame, &fault);
    assert_int_equal(status, frames[i].field == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT);
    if (frames[i].field != NULL) assert_string_equal(fault.field, frames[i].field);
    assert_int_equal(frame.count, frames[i].count);
    if (status == STATUS_OK) assert_int_equal(frame.is_array, frames[i].frame[0] == '[');
  }
  for (unsigned count = 255; count <= 257; count++) {
    struct worker_frame frame;
    struct fault fault;
    struct buffer text;
    buffer_init(&text, 1 << 20);
    for (unsigned i = 0; i < count; i++) buffer_append_text(&text, i == 0 ? "[{}" : ",{}");
    buffer_append_text(&text, "]");
    assert_int_equal(worker_frame_read(&json, buffer_bytes(&text), &frame, &fault),
                     count <= 256 ? STATUS_OK : STATUS_INVALID_ARGUMENT);
    buffer_clear(&text);
  }
  json_clear(&json);
}

/* Finishes with results, every fifth of them faulty, and a hello behind every seventh. */
static unsigned put_mixed_frame(struct buffer *out) {
  unsigned count = 0;
  for (unsigned i = 0; count + 1 < worker_frame_messages_max; i++, count++) {
    buffer_append_format(out,
                         "%c{\"type\":\"task.finish\",\"message_id\":\"%032x\",\"task_id\":\"" ID32(
                             "2") "\",\"attempt_id\":\"" ID32("3") "\",\"epoch\":\"1\",\"outcome\":\"%s\",\"result\":[ %u ]}",
                         i == 0 ? '[' : ',', i + 1, i % 5 == 4 ? "UNKNOWN" : "SUCCEEDED", i);
    if (i % 7 != 6) continue;
    buffer_append_char(out, ',');
    put_message(out, message_of("worker.hello"), NULL, NULL);
    count++;
  }
  buffer_append_char(out, ']');
  return count;
}

/* All messages of a frame keep what they point at, and a faulty one names its own field and its own message. */
static void test_messages_of_one_frame(void **state) {
  (void)state;
  static struct command commands[worker_frame_messages_max];
  struct reading reading;
  struct worker_frame frame;
  reading_init(&reading);
  unsigned count = put_mixed_frame(&reading.frame);
  assert_int_equal(worker_frame_read(&reading.json, buffer_bytes(&reading.frame), &frame, &reading.fault), STATUS_OK);
  assert_int_equal(frame.count, count);
  uint32_t token = frame.first;
  for (unsigned i = 0; i < count; i++, token = reading.json.tokens[token].next) {
    enum status status = worker_message_read(&reading.json, token, &reading.secret, &reading.who, &reading.texts, &commands[i],
                                             &reading.message_id, &reading.fault);
    assert_false(id_is_zero(&reading.message_id));
    if (status != STATUS_OK) assert_string_equal(reading.fault.field, "/result");
  }
  unsigned finishes_seen = 0;
  for (unsigned i = 0; i < count; i++) {
    char expected[16];
    (void)snprintf(expected, sizeof expected, "[%u]", finishes_seen);
    if (commands[i].kind == COMMAND_HELLO) {
      assert_int_equal(commands[i].as.hello.queue_ids[0].bytes[0], 0x22);
      assert_true(bytes_equal_text(commands[i].as.hello.handlers[0].handler, "h"));
      continue;
    }
    assert_int_equal(commands[i].kind, finishes_seen % 5 == 4 ? 0 : COMMAND_FINISH);
    if (commands[i].kind != 0) assert_true(bytes_equal_text(commands[i].as.finish.report.result, expected));
    finishes_seen++;
  }
  assert_int_equal(finishes_seen, count - finishes_seen / 7);
  reading_clear(&reading);
}

static void test_largest_message(void **state) {
  (void)state;
  static const size_t sizes[] = {worker_message_bytes_max, worker_message_bytes_max + 1};
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < 2; i++) {
    buffer_reset(&reading.frame);
    buffer_append_text(&reading.frame, start_text);
    reading.frame.size--;
    while (reading.frame.size < sizes[i] - 1) buffer_append_char(&reading.frame, ' ');
    buffer_append_text(&reading.frame, "}");
    assert_int_equal(read_frame(&reading), i == 0 ? STATUS_OK : STATUS_PAYLOAD_TOO_LARGE);
    assert_int_equal(reading.message_id.bytes[0], 0x11);
  }
  reading_clear(&reading);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_field_at_its_bounds),
      cmocka_unit_test(test_identities),
      cmocka_unit_test(test_hello_with_the_longest_lists),
      cmocka_unit_test(test_hello_with_the_shortest_lists),
      cmocka_unit_test(test_simple_messages),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_frames),
      cmocka_unit_test(test_messages_of_one_frame),
      cmocka_unit_test(test_largest_message),
  };
  return cmocka_run_group_tests_name("wire_worker", tests, NULL, NULL);
}
