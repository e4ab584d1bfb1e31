/* Lists, events as items, batches: each parameter at its bounds, and what one bad item of a batch does to the others. */
#include "wire_body.h"

#include "base/time_text.h"
#include "codec/wire_list.h"

/* ---- Query parameters ---- */

enum { parameters_max = 8 };

/* "a=b&c=d" as parameters; the text must live on. */
static unsigned split(const char *text, struct wire_parameter parameters[parameters_max]) {
  unsigned count = 0;
  while (*text != 0) {
    size_t size = strcspn(text, "&"), name = strcspn(text, "=");
    assert_true(count < parameters_max && name < size);
    parameters[count++] = (struct wire_parameter){bytes_of(text, name), bytes_of(text + name + 1, size - name - 1)};
    text += size + (text[size] == '&');
  }
  return count;
}

/* field NULL: accepted; else refused, naming this parameter. */
static const struct {
  const char *query, *field;
} task_cases[] = {
    {"", NULL},
    {"queue_id=11111111111111111111111111111111", NULL},
    {"queue_id=", "queue_id"},
    {"queue_id=00000000000000000000000000000000", "queue_id"},
    {"queue_id=1111111111111111111111111111111A", "queue_id"},
    {"state=WAITING", NULL},
    {"state=LEASED", NULL},
    {"state=RUNNING", NULL},
    {"state=NEEDS_REVIEW", NULL},
    {"state=SUCCEEDED", NULL},
    {"state=FAILED", NULL},
    {"state=CANCELLED", NULL},
    {"state=waiting", "state"},
    {"state=", "state"},
    {"state=WAITING,FAILED", "state"},
    {"handler=h", NULL},
    {"handler=", "handler"},
    {"business_key=k", NULL},
    {"business_key=", "business_key"},
    {"business_key=\xE5\xB7\xB2", NULL},
    {"business_key=\xFF", "business_key"},
    {"created_after=2026-09-17T00:00:00Z", NULL},
    {"created_after=2026-09-17T00:00:00+00:00", "created_after"},
    {"created_after=2026-09-17", "created_after"},
    {"created_before=2026-09-17T00:00:00.000001Z", NULL},
    {"created_before=0", "created_before"},
    {"limit=1", NULL},
    {"limit=100", NULL},
    {"limit=0", "limit"},
    {"limit=101", "limit"},
    {"limit=01", "limit"},
    {"limit=", "limit"},
    {"limit=+1", "limit"},
    {"limit=1000000000000", "limit"},
    {"cursor=anything", NULL},
    {"cursor=a&cursor=b", "cursor"},
    {"limit=1&limit=1", "limit"},
    {"state=WAITING&handler=h&state=WAITING", "state"},
    {"target_id=11111111111111111111111111111111", "target_id"},
    {"State=WAITING", "State"},
    {"x=1", "x"},
    {"q\xFF=1", "q"},
};

static void test_task_parameters(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof task_cases / sizeof task_cases[0]; i++) {
    struct wire_parameter parameters[parameters_max];
    unsigned count = split(task_cases[i].query, parameters);
    struct list_tasks_command command = {.limit = 77};
    struct fault fault = {.status = STATUS_OK};
    enum status status = wire_list_tasks_read(parameters, count, &command, &fault);
    bool as_expected = task_cases[i].field == NULL
                           ? status == STATUS_OK && command.limit != 77
                           : status == STATUS_INVALID_ARGUMENT && fault.status == status && command.limit == 77 &&
                                 strcmp(fault.field, task_cases[i].field) == 0 && fault.message[0] != 0;
    if (!as_expected) fail_msg("%s: field \"%s\", message \"%s\"", task_cases[i].query, fault.field, fault.message);
  }
}

static void test_text_parameters_at_their_bounds(void **state) {
  (void)state;
  static const struct {
    const char *name;
    unsigned chars;
    bool accepted;
  } cases[] = {{"handler", 128, true}, {"handler", 129, false}, {"business_key", 256, true}, {"business_key", 257, false}};
  struct buffer text;
  buffer_init(&text, 4096);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct list_tasks_command command;
    struct fault fault;
    buffer_reset(&text);
    put_repeated(&text, "\xF0\x9F\x98\x80", cases[i].chars);
    struct wire_parameter parameter = {bytes_text(cases[i].name), buffer_bytes(&text)};
    assert_int_equal(wire_list_tasks_read(&parameter, 1, &command, &fault),
                     cases[i].accepted ? STATUS_OK : STATUS_INVALID_ARGUMENT);
  }
  buffer_clear(&text);
}

static void test_task_filters(void **state) {
  (void)state;
  struct wire_parameter parameters[parameters_max];
  struct list_tasks_command command;
  struct fault fault;
  int64_t after, before;
  assert_true(time_parse(bytes_text("2026-09-17T00:00:00Z"), &after));
  assert_true(time_parse(bytes_text("2026-09-18T00:00:00Z"), &before));
  assert_int_equal(wire_list_tasks_read(NULL, 0, &command, &fault), STATUS_OK);
  assert_int_equal(command.limit, 20);
  assert_int_equal(command.state, TASK_NONE);
  assert_null(command.handler.data);
  assert_true(id_is_zero(&command.queue_id) && id_is_zero(&command.after));
  struct id plain = list_tasks_digest(&command);

  unsigned count = split(
      "limit=5&business_key=b&created_before=2026-09-18T00:00:00Z&queue_id=11111111111111111111111111111111&"
      "created_after=2026-09-17T00:00:00Z&state=FAILED&handler=object.prepare&cursor=x",
      parameters);
  assert_int_equal(wire_list_tasks_read(parameters, count, &command, &fault), STATUS_OK);
  struct id queue_id = id_of_digit('1');
  assert_true(id_equal(&command.queue_id, &queue_id));
  assert_int_equal(command.limit, 5);
  assert_int_equal(command.state, TASK_FAILED);
  assert_true(bytes_equal_text(command.handler, "object.prepare"));
  assert_true(bytes_equal_text(command.business_key, "b"));
  assert_int_equal(command.created_after, after);
  assert_int_equal(command.created_before, before);
  assert_true(id_is_zero(&command.after));

  /* A cursor is bound to the filters, not to where it stands nor to the size of pages. */
  struct id filtered = list_tasks_digest(&command);
  assert_false(id_equal(&filtered, &plain));
  command.limit = 6;
  command.after = queue_id;
  struct id same = list_tasks_digest(&command);
  assert_true(id_equal(&filtered, &same));
  command.created_after = before;
  same = list_tasks_digest(&command);
  assert_false(id_equal(&filtered, &same));
}

static void test_other_lists(void **state) {
  (void)state;
  struct wire_parameter parameters[parameters_max];
  struct list_audit_command audit;
  struct fault fault;
  uint32_t limit = 0;
  struct id target = id_of_digit('1');
  unsigned count = split("target_id=11111111111111111111111111111111&cursor=c&limit=7", parameters);
  assert_int_equal(wire_list_audit_read(parameters, count, &audit, &fault), STATUS_OK);
  assert_true(id_equal(&audit.target_id, &target));
  assert_int_equal(audit.limit, 7);
  assert_int_equal(audit.before_seq, 0);
  assert_int_equal(wire_list_limit_read(parameters, count, &limit, &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "target_id");
  assert_int_equal(wire_list_limit_read(parameters + 1, 2, &limit, &fault), STATUS_OK);
  assert_int_equal(limit, 7);
  assert_int_equal(wire_list_limit_read(NULL, 0, &limit, &fault), STATUS_OK);
  assert_int_equal(limit, 20);
  count = split("state=WAITING", parameters);
  assert_int_equal(wire_list_audit_read(parameters, count, &audit, &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "state");
}

/* ---- Events ---- */

static void test_events(void **state) {
  (void)state;
  struct buffer out;
  struct id task_id = id_of_digit('2'), queue_id = id_of_digit('1');
  struct event event = {.type = EVENT_task_started, .version = 1, .seq = 9007199254740993U, .stream = task_id};
  assert_true(time_parse(bytes_text("2026-09-17T00:00:00Z"), &event.time_us));
  event.common = (struct event_common){.operation_id = id_of_digit('9'), .actor = id_of_digit('a'), .revision = 3};
  event.body.task_started = (struct event_task_started){.attempt_id = id_of_digit('b'),
                                                        .epoch = 1,
                                                        .attempt_deadline_at = event.time_us + 1000000,
                                                        .lease_until = event.time_us + 2000000};
  buffer_init(&out, 1 << 16);
  wire_event_write(&out, &event, &task_id, &queue_id);
  assert_json(&out,
              "{\"position\":\"9007199254740993\",\"type\":\"task.started\",\"time\":\"2026-09-17T00:00:00Z\","
              "\"task_id\":\"22222222222222222222222222222222\",\"queue_id\":\"11111111111111111111111111111111\","
              "\"revision\":\"3\",\"data\":{\"operation_id\":\"99999999999999999999999999999999\","
              "\"actor\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"revision\":\"3\","
              "\"attempt_id\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\",\"epoch\":\"1\","
              "\"attempt_deadline_at\":\"2026-09-17T00:00:01Z\",\"lease_until\":\"2026-09-17T00:00:02Z\"}}");
  event = (struct event){.type = EVENT_node_stopped, .version = 1, .seq = 1, .time_us = event.time_us};
  event.common = (struct event_common){.operation_id = id_of_digit('9'), .actor = id_of_digit('a')};
  buffer_reset(&out);
  wire_event_write(&out, &event, NULL, &event.stream);
  assert_json(&out,
              "{\"position\":\"1\",\"type\":\"node.stopped\",\"time\":\"2026-09-17T00:00:00Z\","
              "\"data\":{\"operation_id\":\"99999999999999999999999999999999\","
              "\"actor\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}}");
  buffer_clear(&out);
}

/* ---- Batches ---- */

#define SUBMISSION(more)                                                                                                      \
  "{\"queue_id\":\"11111111111111111111111111111111\",\"handler\":\"h\",\"handler_version\":\"v\",\"payload_version\":\"p\"," \
  "\"payload\":{ \"n\" : 1.10 },\"task_timeout_ms\":1000" more "}"

static const struct secret secret = {{1, 2, 3}};
static const struct principal who = {.credential_id = {{1}}, .application_id = {{2}}, .namespace_id = {{3}}};

struct batch {
  struct json json;
  struct buffer body, texts;
  struct batch_item *items;
  uint32_t count;
  struct fault fault;
};

static void batch_init(struct batch *batch) {
  memset(batch, 0, sizeof *batch);
  json_init(&batch->json);
  buffer_init(&batch->body, http_batch_body_bytes_max);
  buffer_init(&batch->texts, http_batch_body_bytes_max);
}

static enum status batch_read(struct batch *batch) {
  assert_false(batch->body.failed);
  free(batch->items);
  batch->items = NULL;
  batch->count = 0;
  buffer_reset(&batch->texts);
  return wire_batch_read(&batch->json, buffer_bytes(&batch->body), &secret, &who, &batch->texts, &batch->items, &batch->count,
                         &batch->fault);
}

static enum status batch_read_text(struct batch *batch, const char *text) {
  buffer_reset(&batch->body);
  buffer_append_text(&batch->body, text);
  return batch_read(batch);
}

static void batch_clear(struct batch *batch) {
  free(batch->items);
  json_clear(&batch->json);
  buffer_clear(&batch->body);
  buffer_clear(&batch->texts);
}

static void test_batch_items_fail_one_by_one(void **state) {
  (void)state;
  static const struct {
    const char *item, *field; /* field NULL: a good submission */
  } items[] = {
      {SUBMISSION(",\"idempotency_key\":\"a\""), NULL},
      {SUBMISSION(""), "/items/1/idempotency_key"},
      {"7", "/items/2"},
      {SUBMISSION(",\"idempotency_key\":\"b\",\"business_key\":\"\\u00e9\""), NULL},
      {SUBMISSION(",\"idempotency_key\":\"\""), "/items/4/idempotency_key"},
      {SUBMISSION(",\"idempotency_key\":\"a b\""), "/items/5/idempotency_key"},
      {SUBMISSION(",\"idempotency_key\":\"c\",\"priority\":10"), "/items/6/priority"},
      {SUBMISSION(",\"idempotency_key\":\"c\",\"retry\":{\"max_attempts\":0}"), "/items/7/retry/max_attempts"},
      {SUBMISSION(",\"idempotency_key\":\"c\",\"Priority\":1"), "/items/8/Priority"},
      {SUBMISSION(",\"idempotency_key\":null"), "/items/9/idempotency_key"},
      {SUBMISSION(",\"idempotency_key\":\"a\""), NULL},
  };
  enum { item_count = sizeof items / sizeof items[0] };
  struct batch batch;
  batch_init(&batch);
  buffer_append_text(&batch.body, "{\"items\":[");
  for (size_t i = 0; i < item_count; i++) buffer_append_format(&batch.body, "%s%s", i == 0 ? "" : ",", items[i].item);
  buffer_append_text(&batch.body, "]}");
  assert_int_equal(batch_read(&batch), STATUS_OK);
  assert_int_equal(batch.count, item_count);
  for (size_t i = 0; i < item_count; i++) {
    const struct batch_item *item = &batch.items[i];
    if (items[i].field != NULL) {
      assert_int_equal(item->answer.status, STATUS_INVALID_ARGUMENT);
      assert_int_equal(item->answer.fault.status, STATUS_INVALID_ARGUMENT);
      assert_string_equal(item->answer.fault.field, items[i].field);
      continue;
    }
    assert_int_equal(item->answer.status, STATUS_OK);
    assert_int_equal(item->command.kind, COMMAND_SUBMIT);
    assert_memory_equal(&item->command.who, &who, sizeof who);
    assert_true(bytes_equal_text(item->command.as.submit.payload, "{\"n\":1.10}"));
  }
  assert_true(bytes_equal_text(batch.items[3].command.as.submit.business_key, "\xC3\xA9"));
  /* The key makes the identity, as in a submission of its own; the rest makes the digest. */
  const struct operation *first = &batch.items[0].command.operation, *other = &batch.items[3].command.operation;
  static const struct id no_target;
  struct id identity = identity_make(&secret, &who.namespace_id, "task.submit", &no_target, bytes_text("a"));
  assert_true(id_equal(&first->identity, &identity));
  assert_memory_equal(first, &batch.items[10].command.operation, sizeof *first);
  assert_false(id_equal(&first->identity, &other->identity));
  assert_false(id_equal(&first->digest, &other->digest));
  struct reading single;
  reading_init(&single);
  buffer_append_text(&single.body, SUBMISSION(""));
  assert_int_equal(wire_submit_read(&single.json, buffer_bytes(&single.body), &single.texts, &single.command, &single.fault),
                   STATUS_OK);
  assert_true(id_equal(&single.command.operation.digest, &first->digest));
  reading_clear(&single);
  batch_clear(&batch);
}

static void test_batch_bodies(void **state) {
  (void)state;
  static const struct {
    const char *body, *field;
  } cases[] = {
      {"", ""},
      {"[]", ""},
      {"{}", "/items"},
      {"{\"items\":null}", "/items"},
      {"{\"items\":{}}", "/items"},
      {"{\"items\":[]}", "/items"},
      {"{\"Items\":[]}", "/Items"},
      {"{\"items\":[" SUBMISSION(",\"idempotency_key\":\"a\"") "],\"more\":1}", "/more"},
      {"{\"items\":[{\"payload\":{\"a\":1,\"a\":2}}]}", "/items/0/payload/a"},
  };
  struct batch batch;
  batch_init(&batch);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(batch_read_text(&batch, cases[i].body), STATUS_INVALID_ARGUMENT);
    assert_string_equal(batch.fault.field, cases[i].field);
    assert_null(batch.items);
  }
  batch_clear(&batch);
}

static void test_batch_at_its_bound(void **state) {
  (void)state;
  struct batch batch;
  batch_init(&batch);
  for (uint32_t count = batch_items_max; count <= batch_items_max + 1; count++) {
    buffer_reset(&batch.body);
    for (uint32_t i = 0; i < count; i++)
      buffer_append_format(&batch.body, "%s" SUBMISSION(",\"idempotency_key\":\"k%u\""), i == 0 ? "{\"items\":[" : ",", i);
    buffer_append_text(&batch.body, "]}");
    bool fits = count == batch_items_max;
    assert_int_equal(batch_read(&batch), fits ? STATUS_OK : STATUS_INVALID_ARGUMENT);
    for (uint32_t i = 0; i < batch.count; i++) {
      assert_int_equal(batch.items[i].answer.status, STATUS_OK);
      assert_true(bytes_equal_text(batch.items[i].command.as.submit.payload, "{\"n\":1.10}"));
    }
    assert_int_equal(batch.count, fits ? batch_items_max : 0);
  }
  assert_string_equal(batch.fault.field, "/items");
  batch_clear(&batch);
}

static void test_batch_answers(void **state) {
  (void)state;
  struct buffer out, expected;
  struct task_document document = {.task = {.id = id_of_digit('2'), .state = TASK_WAITING, .revision = 1},
                                   .accepted = {.namespace_id = id_of_digit('3'), .queue_id = id_of_digit('1')}};
  struct answer answer = {.status = STATUS_OK, .created = true};
  buffer_init(&out, 1 << 16);
  buffer_init(&expected, 1 << 16);
  for (int repeat = 0; repeat < 2; repeat++) {
    answer.created = repeat == 0;
    answer.deduplicated = repeat != 0;
    buffer_reset(&out);
    buffer_reset(&expected);
    wire_batch_item_write(&out, &answer, &document);
    buffer_append_format(&expected, "{\"status\":%d,\"task\":", repeat == 0 ? 201 : 200);
    wire_task_write(&expected, &document);
    buffer_append_format(&expected, ",\"deduplicated\":%s}", repeat == 0 ? "false" : "true");
    buffer_append(&expected, "", 1);
    assert_json(&out, (const char *)expected.data);
  }
  answer.status = fault_set(&answer.fault, STATUS_QUEUE_FULL, NULL, "the queue is full");
  answer.fault.retry_after_ms = 1000;
  buffer_reset(&out);
  wire_batch_item_write(&out, &answer, NULL);
  assert_json(&out,
              "{\"status\":429,\"error\":{\"code\":\"QUEUE_FULL\",\"message\":\"the queue is full\","
              "\"retry_after_ms\":1000}}");
  buffer_clear(&out);
  buffer_clear(&expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_task_parameters), cmocka_unit_test(test_text_parameters_at_their_bounds),
      cmocka_unit_test(test_task_filters),    cmocka_unit_test(test_other_lists),
      cmocka_unit_test(test_events),          cmocka_unit_test(test_batch_items_fail_one_by_one),
      cmocka_unit_test(test_batch_bodies),    cmocka_unit_test(test_batch_at_its_bound),
      cmocka_unit_test(test_batch_answers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
