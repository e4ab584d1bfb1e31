/* Administration: each field of each body at each of its bounds, what the commands hold, and objects byte for byte. */
#include "wire_body.h"

#include "base/time_text.h"
#include "codec/wire_admin.h"

static const struct id object_id = {{0x11, 0x11, 0x11}};

static enum status read_namespace(struct reading *r) {
  return wire_namespace_create_read(&r->json, buffer_bytes(&r->body), &r->command, &r->fault);
}
static enum status read_queue_create(struct reading *r) {
  return wire_queue_create_read(&r->json, buffer_bytes(&r->body), &r->command, &r->fault);
}
static enum status read_queue_change(struct reading *r) {
  return wire_queue_change_read(&r->json, buffer_bytes(&r->body), &object_id, &r->command, &r->fault);
}
static enum status read_pause(struct reading *r) {
  return wire_queue_pause_read(&r->json, buffer_bytes(&r->body), &object_id, COMMAND_QUEUE_PAUSE, &r->command, &r->fault);
}
static enum status read_resume(struct reading *r) {
  return wire_queue_pause_read(&r->json, buffer_bytes(&r->body), &object_id, COMMAND_QUEUE_RESUME, &r->command, &r->fault);
}
static enum status read_application_create(struct reading *r) {
  return wire_application_create_read(&r->json, buffer_bytes(&r->body), &r->command, &r->fault);
}
static enum status read_application_change(struct reading *r) {
  return wire_application_change_read(&r->json, buffer_bytes(&r->body), &object_id, &r->command, &r->fault);
}
static enum status read_credential_create(struct reading *r) {
  return wire_credential_create_read(&r->json, buffer_bytes(&r->body), &r->texts, &r->command, &r->fault);
}
static enum status read_rotate(struct reading *r) {
  return wire_credential_end_read(&r->json, buffer_bytes(&r->body), &object_id, COMMAND_CREDENTIAL_ROTATE, &r->command,
                                  &r->fault);
}
static enum status read_revoke(struct reading *r) {
  return wire_credential_end_read(&r->json, buffer_bytes(&r->body), &object_id, COMMAND_CREDENTIAL_REVOKE, &r->command,
                                  &r->fault);
}

/* ---- Bodies ---- */

static const struct member named[] = {{"name", "\"n\""}, {NULL, NULL}};
static const struct member changed[] = {{"expected_revision", "\"3\""}, {"name", "\"n\""}, {NULL, NULL}};
static const struct member empty[] = {{NULL, NULL}};
static const struct member credential[] = {
    {"application_id", "\"22222222222222222222222222222222\""}, {"permissions", "[\"tasks:submit\"]"}, {NULL, NULL}};

#define NAME                                                                                                 \
  {"name", "null", "/name"}, {"name", "1", "/name"}, {"name", "\"\"", "/name"}, {"name", "@text:128", NULL}, \
      {"name", "@text:129", "/name"}, {"name", "@astral:128", NULL}, {"name", "@astral:129", "/name"},       \
      {"name", "\"a\\u0000\"", "/name"}, {                                                                   \
    "Name", "\"a\"", "/Name"                                                                                 \
  }

#define LIMIT(name, null)                                                                                                     \
  {name, "null", null}, {name, "0", "/" name}, {name, "1", NULL}, {name, "1000000000", NULL}, {name, "1000000001", "/" name}, \
      {name, "1.5", "/" name}, {name, "-1", "/" name}, {                                                                      \
    name, "\"1\"", "/" name                                                                                                   \
  }

#define LEASE                                                                                       \
  {"lease_ms", "null", "/lease_ms"}, {"lease_ms", "4999", "/lease_ms"}, {"lease_ms", "5000", NULL}, \
      {"lease_ms", "300000", NULL}, {                                                               \
    "lease_ms", "300001", "/lease_ms"                                                               \
  }

#define RATE(null)                                                                                                     \
  {"rate", "null", null}, {"rate", "[]", "/rate"}, {"rate", "{}", "/rate/tasks"},                                      \
      {"rate", "{\"per_ms\":1,\"burst\":1}", "/rate/tasks"}, {"rate", "{\"tasks\":1,\"burst\":1}", "/rate/per_ms"},    \
      {"rate", "{\"tasks\":1,\"per_ms\":1}", "/rate/burst"}, {"rate", "{\"tasks\":1,\"per_ms\":1,\"burst\":1}", NULL}, \
      {"rate", "{\"tasks\":1000000000,\"per_ms\":1000000000,\"burst\":1000000000}", NULL},                             \
      {"rate", "{\"tasks\":0,\"per_ms\":1,\"burst\":1}", "/rate/tasks"},                                               \
      {"rate", "{\"tasks\":1000000001,\"per_ms\":1,\"burst\":1}", "/rate/tasks"},                                      \
      {"rate", "{\"tasks\":1,\"per_ms\":0,\"burst\":1}", "/rate/per_ms"},                                              \
      {"rate", "{\"tasks\":1,\"per_ms\":1000000001,\"burst\":1}", "/rate/per_ms"},                                     \
      {"rate", "{\"tasks\":1,\"per_ms\":1,\"burst\":0}", "/rate/burst"},                                               \
      {"rate", "{\"tasks\":1,\"per_ms\":1,\"burst\":1000000001}", "/rate/burst"},                                      \
      {"rate", "{\"tasks\":1,\"per_ms\":1,\"burst\":null}", "/rate/burst"}, {                                          \
    "rate", "{\"tasks\":1,\"per_ms\":1,\"burst\":1,\"x\":1}", "/rate/x"                                                \
  }

#define REVISION                                                                                              \
  {"expected_revision", NULL, "/expected_revision"}, {"expected_revision", "null", "/expected_revision"},     \
      {"expected_revision", "3", "/expected_revision"}, {"expected_revision", "\"0\"", "/expected_revision"}, \
      {"expected_revision", "\"03\"", "/expected_revision"}, {                                                \
    "expected_revision", "\"18446744073709551615\"", NULL                                                     \
  }

static void test_namespace_fields(void **state) {
  (void)state;
  static const struct body_case cases[] = {{NULL, NULL, NULL}, {"name", NULL, "/name"}, NAME, {"id", "1", "/id"}};
  RUN_CASES(read_namespace, named, cases);
}

static void test_queue_fields(void **state) {
  (void)state;
  static const struct body_case creates[] = {
      {NULL, NULL, NULL},
      {"name", NULL, "/name"},
      NAME,
      LIMIT("max_unfinished", "/max_unfinished"),
      LIMIT("max_running", "/max_running"),
      LIMIT("key_concurrency", "/key_concurrency"),
      RATE("/rate"),
      LEASE,
      {"expected_revision", "\"1\"", "/expected_revision"},
      {"paused", "true", "/paused"},
  };
  static const struct body_case changes[] = {
      {NULL, NULL, NULL},
      REVISION,
      {"name", NULL, ""},
      NAME,
      LIMIT("max_unfinished", NULL),
      LIMIT("max_running", NULL),
      LIMIT("key_concurrency", "/key_concurrency"),
      RATE(NULL),
      LEASE,
      {"paused", "true", "/paused"},
  };
  RUN_CASES(read_queue_create, named, creates);
  RUN_CASES(read_queue_change, changed, changes);
}

static void test_pause_fields(void **state) {
  (void)state;
  static const struct body_case cases[] = {
      {NULL, NULL, NULL},
      {"reason", "\"x\"", NULL},
      {"reason", "null", "/reason"},
      {"reason", "\"\"", "/reason"},
      {"reason", "\"\\u3000\"", "/reason"},
      {"reason", "@text:1024", NULL},
      {"reason", "@text:1025", "/reason"},
      {"expected_revision", "\"1\"", "/expected_revision"},
  };
  RUN_CASES(read_pause, empty, cases);
  RUN_CASES(read_resume, empty, cases);
}

static void test_application_fields(void **state) {
  (void)state;
  static const struct body_case creates[] = {
      {NULL, NULL, NULL},
      {"name", NULL, "/name"},
      NAME,
      LIMIT("max_unfinished", "/max_unfinished"),
      {"disabled", "false", "/disabled"},
  };
  static const struct body_case changes[] = {
      {NULL, NULL, NULL},
      REVISION,
      {"name", NULL, ""},
      NAME,
      LIMIT("max_unfinished", NULL),
      {"disabled", "true", NULL},
      {"disabled", "false", NULL},
      {"disabled", "null", "/disabled"},
      {"disabled", "0", "/disabled"},
      {"max_running", "1", "/max_running"},
  };
  RUN_CASES(read_application_create, named, creates);
  RUN_CASES(read_application_change, changed, changes);
}

static void test_credential_fields(void **state) {
  (void)state;
  static const struct body_case creates[] = {
      {NULL, NULL, NULL},
      {"application_id", NULL, "/application_id"},
      {"application_id", "\"x\"", "/application_id"},
      NAME,
      {"permissions", NULL, "/permissions"},
      {"permissions", "null", "/permissions"},
      {"permissions", "\"admin\"", "/permissions"},
      {"permissions", "[]", "/permissions"},
      {"permissions",
       "[\"tasks:submit\",\"tasks:read\",\"tasks:cancel\",\"tasks:consume\",\"tasks:review\",\"tasks:retry\","
       "\"tasks:audit:read\",\"events:read\",\"queues:read\",\"queues:manage\",\"schedules:read\",\"schedules:manage\","
       "\"metrics:read\",\"admin\"]",
       NULL},
      {"permissions", "[\"admin\",\"root\"]", "/permissions/1"},
      {"permissions", "[\"tasks:write\"]", "/permissions/0"},
      {"permissions", "[\"Admin\"]", "/permissions/0"},
      {"permissions", "[\"\"]", "/permissions/0"},
      {"permissions", "[\"admin\",1]", "/permissions/1"},
      {"permissions", "[null]", "/permissions/0"},
      {"permissions", "[[\"admin\"]]", "/permissions/0"},
      {"permissions", "[\"tasks:read\",\"admin\",\"tasks:\\u0072ead\"]", "/permissions/2"},
      {"queue_ids", "null", "/queue_ids"},
      {"queue_ids", "[]", "/queue_ids"},
      {"queue_ids", "@ids:1", NULL},
      {"queue_ids", "@ids:256", NULL},
      {"queue_ids", "@ids:257", "/queue_ids"},
      {"queue_ids", "[\"00000000000000000000000000000000\"]", "/queue_ids/0"},
      {"queue_ids", "[\"11111111111111111111111111111111\",\"1111111111111111111111111111111G\"]", "/queue_ids/1"},
      {"queue_ids", "[\"11111111111111111111111111111111\",\"11111111111111111111111111111111\"]", "/queue_ids/1"},
      {"queue_ids", "[{}]", "/queue_ids/0"},
      {"expires_at", "\"2026-09-17T00:00:00Z\"", NULL},
      {"expires_at", "null", "/expires_at"},
      {"expires_at", "1", "/expires_at"},
      {"token", "\"x\"", "/token"},
      {"namespace_id", "\"22222222222222222222222222222222\"", "/namespace_id"},
  };
  static const struct body_case ends[] = {{NULL, NULL, NULL}, {"reason", "\"x\"", "/reason"}, {"token", "\"x\"", "/token"}};
  RUN_CASES(read_credential_create, credential, creates);
  RUN_CASES(read_rotate, empty, ends);
  RUN_CASES(read_revoke, empty, ends);
}

static void test_bodies_are_strict_json(void **state) {
  (void)state;
  static const char *const bodies[] = {"", "null", "[]", "{\"name\":\"a\",\"name\":\"a\"}", "{} {}"};
  body_reader *const readers[] = {
      read_namespace,          read_queue_create,       read_queue_change,      read_pause,  read_resume,
      read_application_create, read_application_change, read_credential_create, read_rotate, read_revoke};
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
    for (size_t j = 0; j < sizeof readers / sizeof readers[0]; j++)
      assert_int_equal(read_text(&reading, readers[j], bodies[i]), STATUS_INVALID_ARGUMENT);
  reading_clear(&reading);
}

/* ---- What the commands hold ---- */

static void test_queue_commands(void **state) {
  (void)state;
  struct reading reading;
  const struct queue_command *queue = &reading.command.as.queue;
  reading_init(&reading);
  assert_int_equal(read_text(&reading, read_queue_create, "{\"name\":\"q\"}"), STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_QUEUE_CREATE);
  assert_true(id_is_zero(&queue->id));
  assert_true(bytes_equal_text(queue->name, "q"));
  assert_int_equal(queue->max_unfinished, 0);
  assert_int_equal(queue->max_running, 0);
  assert_int_equal(queue->key_concurrency, 1);
  assert_int_equal(queue->rate_tasks, 0);
  assert_int_equal(queue->lease_ms, 30000);

  assert_int_equal(read_text(&reading, read_queue_change,
                             "{\"expected_revision\":\"3\",\"max_unfinished\":null,\"max_running\":7,\"rate\":null}"),
                   STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_QUEUE_CHANGE);
  assert_true(id_equal(&queue->id, &object_id));
  assert_int_equal(queue->expected_revision, 3);
  assert_int_equal(queue->given, GIVEN_MAX_UNFINISHED | GIVEN_MAX_RUNNING | GIVEN_RATE);
  assert_int_equal(queue->max_unfinished, 0);
  assert_int_equal(queue->max_running, 7);
  assert_int_equal(queue->rate_tasks, 0);

  assert_int_equal(read_text(&reading, read_queue_change,
                             "{\"rate\":{\"burst\":3,\"per_ms\":2,\"tasks\":1},\"expected_revision\":\"3\",\"name\":\"r\","
                             "\"key_concurrency\":4,\"lease_ms\":6000}"),
                   STATUS_OK);
  assert_int_equal(queue->given, GIVEN_NAME | GIVEN_KEY_CONCURRENCY | GIVEN_RATE | GIVEN_LEASE_MS);
  assert_int_equal(queue->rate_tasks, 1);
  assert_int_equal(queue->rate_per_ms, 2);
  assert_int_equal(queue->rate_burst, 3);
  assert_int_equal(queue->key_concurrency, 4);
  assert_int_equal(queue->lease_ms, 6000);

  assert_int_equal(read_text(&reading, read_pause, "{}"), STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_QUEUE_PAUSE);
  assert_null(queue->reason.data);
  assert_int_equal(read_text(&reading, read_resume, "{\"reason\":\"done\"}"), STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_QUEUE_RESUME);
  assert_true(id_equal(&queue->id, &object_id));
  assert_true(bytes_equal_text(queue->reason, "done"));
  reading_clear(&reading);
}

static void test_application_commands(void **state) {
  (void)state;
  struct reading reading;
  const struct application_command *application = &reading.command.as.application;
  reading_init(&reading);
  assert_int_equal(read_text(&reading, read_namespace, "{\"name\":\"tenant\"}"), STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_NAMESPACE_CREATE);
  assert_true(bytes_equal_text(reading.command.as.namespace_.name, "tenant"));
  assert_int_equal(read_text(&reading, read_application_create, "{\"name\":\"a\",\"max_unfinished\":9}"), STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_APPLICATION_CREATE);
  assert_true(id_is_zero(&application->id));
  assert_int_equal(application->max_unfinished, 9);
  assert_int_equal(
      read_text(&reading, read_application_change, "{\"expected_revision\":\"2\",\"max_unfinished\":null,\"disabled\":true}"),
      STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_APPLICATION_CHANGE);
  assert_int_equal(application->expected_revision, 2);
  assert_int_equal(application->given, GIVEN_MAX_UNFINISHED | GIVEN_DISABLED);
  assert_int_equal(application->max_unfinished, 0);
  assert_true(application->disabled);
  reading_clear(&reading);
}

static void test_credential_commands(void **state) {
  (void)state;
  struct reading reading;
  int64_t time;
  const struct credential_command *command = &reading.command.as.credential;
  reading_init(&reading);
  assert_true(time_parse(bytes_text("2027-01-01T00:00:00Z"), &time));
  assert_int_equal(read_text(&reading, read_credential_create,
                             "{\"application_id\":\"22222222222222222222222222222222\",\"name\":\"ci\","
                             "\"permissions\":[\"admin\",\"tasks:submit\"],\"expires_at\":\"2027-01-01T00:00:00Z\","
                             "\"queue_ids\":[\"33333333333333333333333333333333\",\"11111111111111111111111111111111\"]}"),
                   STATUS_OK);
  struct id application_id = id_of_digit('2');
  struct id queues[] = {id_of_digit('3'), id_of_digit('1')};
  assert_int_equal(reading.command.kind, COMMAND_CREDENTIAL_CREATE);
  assert_true(id_equal(&command->application_id, &application_id));
  assert_true(bytes_equal_text(command->name, "ci"));
  assert_int_equal(command->permissions, 1U << PERMISSION_ADMIN | 1U << PERMISSION_TASKS_SUBMIT);
  assert_int_equal(command->expires_at, time);
  assert_true(bytes_equal(command->queue_ids, bytes_of(queues, sizeof queues)));
  assert_null(command->token_hash.data);

  assert_int_equal(read_member(&reading, read_credential_create, credential, NULL, NULL), STATUS_OK);
  assert_null(command->queue_ids.data);
  assert_null(command->name.data);
  assert_int_equal(command->expires_at, 0);

  assert_int_equal(read_text(&reading, read_rotate, " { } "), STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_CREDENTIAL_ROTATE);
  assert_true(id_equal(&command->id, &object_id));
  assert_int_equal(read_text(&reading, read_revoke, "{}"), STATUS_OK);
  assert_int_equal(reading.command.kind, COMMAND_CREDENTIAL_REVOKE);
  reading_clear(&reading);
}

static void test_digests(void **state) {
  (void)state;
  static const struct {
    body_reader *reader;
    const char *one, *other;
    bool same;
  } cases[] = {
      {read_namespace, "{\"name\":\"n\"}", "{\"name\":\"\\u006e\"}", true},
      {read_namespace, "{\"name\":\"n\"}", "{\"name\":\"m\"}", false},
      {read_queue_create, "{\"name\":\"n\"}", "{\"key_concurrency\":1,\"name\":\"n\",\"lease_ms\":30000}", true},
      {read_queue_create, "{\"name\":\"n\"}", "{\"name\":\"n\",\"max_running\":1}", false},
      {read_queue_create, "{\"name\":\"n\",\"max_unfinished\":1}", "{\"name\":\"n\",\"max_running\":1}", false},
      {read_queue_create, "{\"name\":\"n\",\"rate\":{\"tasks\":1,\"per_ms\":2,\"burst\":3}}",
       "{\"rate\":{\"burst\":3,\"tasks\":1,\"per_ms\":2},\"name\":\"n\"}", true},
      {read_queue_create, "{\"name\":\"n\",\"rate\":{\"tasks\":1,\"per_ms\":2,\"burst\":3}}",
       "{\"name\":\"n\",\"rate\":{\"tasks\":2,\"per_ms\":1,\"burst\":3}}", false},
      {read_queue_change, "{\"expected_revision\":\"1\",\"name\":\"n\"}", "{\"name\":\"n\",\"expected_revision\":\"1\"}", true},
      {read_queue_change, "{\"expected_revision\":\"1\",\"name\":\"n\"}", "{\"name\":\"n\",\"expected_revision\":\"2\"}",
       false},
      {read_queue_change, "{\"expected_revision\":\"1\",\"name\":\"n\"}",
       "{\"expected_revision\":\"1\",\"name\":\"n\",\"max_unfinished\":null}", false},
      {read_queue_change, "{\"expected_revision\":\"1\",\"rate\":null}", "{\"expected_revision\":\"1\",\"max_running\":null}",
       false},
      {read_pause, "{}", "{\"reason\":\"x\"}", false},
      {read_application_create, "{\"name\":\"n\"}", "{\"name\":\"n\",\"max_unfinished\":1}", false},
      {read_application_change, "{\"expected_revision\":\"1\",\"name\":\"n\"}",
       "{\"expected_revision\":\"1\",\"name\":\"n\",\"disabled\":false}", false},
      {read_application_change, "{\"expected_revision\":\"1\",\"disabled\":true}",
       "{\"expected_revision\":\"1\",\"disabled\":false}", false},
      {read_credential_create,
       "{\"application_id\":\"22222222222222222222222222222222\",\"permissions\":[\"admin\",\"tasks:read\"],"
       "\"queue_ids\":[\"33333333333333333333333333333333\",\"11111111111111111111111111111111\"]}",
       "{\"permissions\":[\"tasks:read\",\"admin\"],\"application_id\":\"22222222222222222222222222222222\","
       "\"queue_ids\":[\"11111111111111111111111111111111\",\"33333333333333333333333333333333\"]}",
       true},
      {read_credential_create, "{\"application_id\":\"22222222222222222222222222222222\",\"permissions\":[\"admin\"]}",
       "{\"application_id\":\"22222222222222222222222222222222\",\"permissions\":[\"admin\"],"
       "\"queue_ids\":[\"11111111111111111111111111111111\"]}",
       false},
      {read_credential_create, "{\"application_id\":\"22222222222222222222222222222222\",\"permissions\":[\"admin\"]}",
       "{\"application_id\":\"22222222222222222222222222222223\",\"permissions\":[\"admin\"]}", false},
      {read_credential_create, "{\"application_id\":\"22222222222222222222222222222222\",\"permissions\":[\"admin\"]}",
       "{\"application_id\":\"22222222222222222222222222222222\",\"permissions\":[\"admin\"],\"name\":\"n\"}", false},
      {read_credential_create, "{\"application_id\":\"22222222222222222222222222222222\",\"permissions\":[\"admin\"]}",
       "{\"application_id\":\"22222222222222222222222222222222\",\"permissions\":[\"admin\"],"
       "\"expires_at\":\"2027-01-01T00:00:00Z\"}",
       false},
  };
  struct reading reading;
  reading_init(&reading);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(read_text(&reading, cases[i].reader, cases[i].one), STATUS_OK);
    struct id one = reading.command.operation.digest;
    assert_int_equal(read_text(&reading, cases[i].reader, cases[i].other), STATUS_OK);
    if (id_equal(&one, &reading.command.operation.digest) != cases[i].same) fail_msg("%s\n%s", cases[i].one, cases[i].other);
  }
  /* What is done is part of the meaning. */
  assert_int_equal(read_text(&reading, read_pause, "{}"), STATUS_OK);
  struct id pause = reading.command.operation.digest;
  assert_int_equal(read_text(&reading, read_resume, "{}"), STATUS_OK);
  assert_false(id_equal(&pause, &reading.command.operation.digest));
  assert_int_equal(read_text(&reading, read_rotate, "{}"), STATUS_OK);
  struct id rotate = reading.command.operation.digest;
  assert_int_equal(read_text(&reading, read_revoke, "{}"), STATUS_OK);
  assert_false(id_equal(&rotate, &reading.command.operation.digest));
  reading_clear(&reading);
}

/* ---- Objects ---- */

static struct object_texts texts_of_event(enum event_type type) {
  struct event event = {.type = type};
  struct object_texts texts;
  switch (type) {
    case EVENT_namespace_created:
      event.body.namespace_created.name = bytes_text("a \"name\"");
      break;
    case EVENT_application_created:
      event.body.application_created.name = bytes_text("a \"name\"");
      break;
    case EVENT_application_changed:
      event.body.application_changed.name = bytes_text("a \"name\"");
      break;
    case EVENT_queue_created:
      event.body.queue_created.name = bytes_text("a \"name\"");
      break;
    case EVENT_queue_changed:
      event.body.queue_changed.name = bytes_text("a \"name\"");
      break;
    default:
      break;
  }
  assert_true(object_texts_of(&event, &texts));
  assert_null(texts.queue_ids.data);
  return texts;
}

static void test_namespaces_and_applications(void **state) {
  (void)state;
  struct buffer out;
  struct object_texts texts = texts_of_event(EVENT_namespace_created);
  struct application application = {
      .id = id_of_digit('1'), .namespace_id = id_of_digit('3'), .revision = 18446744073709551615U, .unfinished = 5};
  buffer_init(&out, 1 << 16);
  wire_namespace_write(&out, &application.namespace_id, &texts);
  assert_json(&out, "{\"id\":\"33333333333333333333333333333333\",\"name\":\"a \\\"name\\\"\"}");

  texts = texts_of_event(EVENT_application_created);
  buffer_reset(&out);
  wire_application_write(&out, &application, &texts, false);
  assert_json(&out,
              "{\"id\":\"11111111111111111111111111111111\",\"namespace_id\":\"33333333333333333333333333333333\","
              "\"name\":\"a \\\"name\\\"\",\"revision\":\"18446744073709551615\",\"disabled\":false}");
  texts = texts_of_event(EVENT_application_changed);
  application.max_unfinished = 9;
  application.disabled = true;
  buffer_reset(&out);
  wire_application_write(&out, &application, &texts, true);
  assert_json(&out,
              "{\"id\":\"11111111111111111111111111111111\",\"namespace_id\":\"33333333333333333333333333333333\","
              "\"name\":\"a \\\"name\\\"\",\"revision\":\"18446744073709551615\",\"max_unfinished\":9,\"disabled\":true,"
              "\"unfinished\":5}");
  buffer_clear(&out);
}

static void test_queues(void **state) {
  (void)state;
  struct buffer out;
  struct object_texts texts = texts_of_event(EVENT_queue_created);
  struct queue queue = {
      .id = id_of_digit('1'), .namespace_id = id_of_digit('3'), .revision = 1, .key_concurrency = 1, .lease_ms = 30000};
  int64_t oldest;
  buffer_init(&out, 1 << 16);
  assert_true(time_parse(bytes_text("2026-09-17T00:00:00.25Z"), &oldest));
  for (unsigned i = TASK_WAITING; i < TASK_ENUM_END; i++) queue.counts[i] = 10 + i;
  wire_queue_write(&out, &queue, &texts, false, oldest);
  assert_json(&out,
              "{\"id\":\"11111111111111111111111111111111\",\"namespace_id\":\"33333333333333333333333333333333\","
              "\"name\":\"a \\\"name\\\"\",\"revision\":\"1\",\"paused\":false,\"key_concurrency\":1,\"lease_ms\":30000}");
  queue.paused = true;
  queue.max_unfinished = 1000;
  queue.max_running = 100;
  queue.rate = (struct queue_rate){5, 1000, 2};
  texts = texts_of_event(EVENT_queue_changed);
  buffer_reset(&out);
  wire_queue_write(&out, &queue, &texts, true, oldest);
  assert_json(&out,
              "{\"id\":\"11111111111111111111111111111111\",\"namespace_id\":\"33333333333333333333333333333333\","
              "\"name\":\"a \\\"name\\\"\",\"revision\":\"1\",\"paused\":true,\"max_unfinished\":1000,\"max_running\":100,"
              "\"key_concurrency\":1,\"rate\":{\"tasks\":5,\"per_ms\":1000,\"burst\":2},\"lease_ms\":30000,"
              "\"counts\":{\"WAITING\":11,\"LEASED\":12,\"RUNNING\":13,\"NEEDS_REVIEW\":14,\"SUCCEEDED\":15,\"FAILED\":16,"
              "\"CANCELLED\":17},\"oldest_waiting_at\":\"2026-09-17T00:00:00.25Z\"}");
  queue = (struct queue){
      .id = id_of_digit('1'), .namespace_id = id_of_digit('3'), .revision = 2, .key_concurrency = 1, .lease_ms = 5000};
  buffer_reset(&out);
  wire_queue_write(&out, &queue, &texts, true, 0);
  assert_json(&out,
              "{\"id\":\"11111111111111111111111111111111\",\"namespace_id\":\"33333333333333333333333333333333\","
              "\"name\":\"a \\\"name\\\"\",\"revision\":\"2\",\"paused\":false,\"key_concurrency\":1,\"lease_ms\":5000,"
              "\"counts\":{\"WAITING\":0,\"LEASED\":0,\"RUNNING\":0,\"NEEDS_REVIEW\":0,\"SUCCEEDED\":0,\"FAILED\":0,"
              "\"CANCELLED\":0}}");
  buffer_clear(&out);
}

static void test_credentials(void **state) {
  (void)state;
  struct buffer out;
  struct id queues[] = {id_of_digit('5'), id_of_digit('4')};
  struct event event = {.type = EVENT_credential_created};
  struct object_texts texts;
  struct credential object = {.id = id_of_digit('1'),
                              .namespace_id = id_of_digit('3'),
                              .application_id = id_of_digit('2'),
                              .permissions = 1U << PERMISSION_METRICS_READ | 1U << PERMISSION_TASKS_SUBMIT,
                              .revision = 1,
                              .token_hash = {1, 2, 3}};
  buffer_init(&out, 1 << 16);
  assert_true(object_texts_of(&event, &texts));
  wire_credential_write(&out, &object, &texts);
  assert_json(&out,
              "{\"id\":\"11111111111111111111111111111111\",\"namespace_id\":\"33333333333333333333333333333333\","
              "\"application_id\":\"22222222222222222222222222222222\",\"permissions\":[\"tasks:submit\",\"metrics:read\"],"
              "\"revoked\":false,\"revision\":\"1\"}");

  event.body.credential_created.name = bytes_text("ci");
  event.body.credential_created.queue_ids = bytes_of(queues, sizeof queues);
  assert_true(object_texts_of(&event, &texts));
  assert_true(time_parse(bytes_text("2027-01-01T00:00:00Z"), &object.expires_at));
  object.revoked = true;
  object.revision = 2;
  buffer_reset(&out);
  wire_credential_answer_write(&out, &object, &texts, bytes_text("orbit_00"));
  assert_json(&out,
              "{\"credential\":{\"id\":\"11111111111111111111111111111111\","
              "\"namespace_id\":\"33333333333333333333333333333333\","
              "\"application_id\":\"22222222222222222222222222222222\",\"name\":\"ci\","
              "\"permissions\":[\"tasks:submit\",\"metrics:read\"],"
              "\"queue_ids\":[\"55555555555555555555555555555555\",\"44444444444444444444444444444444\"],"
              "\"expires_at\":\"2027-01-01T00:00:00Z\",\"revoked\":true,\"revision\":\"2\"},\"token\":\"orbit_00\"}");

  /* A root credential has neither tenant nor application; a repeat has no token. */
  object = (struct credential){.id = id_of_digit('1'), .permissions = 1U << PERMISSION_ROOT, .revision = 1};
  texts = (struct object_texts){.name = {NULL, 0}};
  buffer_reset(&out);
  wire_credential_answer_write(&out, &object, &texts, bytes_of(NULL, 0));
  assert_json(&out,
              "{\"credential\":{\"id\":\"11111111111111111111111111111111\",\"permissions\":[\"root\"],\"revoked\":false,"
              "\"revision\":\"1\"}}");
  buffer_clear(&out);
}

static void test_audit(void **state) {
  (void)state;
  struct buffer out;
  struct event event = {.type = EVENT_audit_recorded, .stream = id_of_digit('1')};
  struct object_texts texts;
  assert_false(object_texts_of(&event, &texts));
  assert_true(time_parse(bytes_text("2026-09-17T00:00:30Z"), &event.time_us));
  event.common = (struct event_common){.operation_id = id_of_digit('9'), .actor = id_of_digit('a'), .revision = 2};
  event.body.audit_recorded = (struct event_audit_recorded){.audit_id = id_of_digit('8'),
                                                            .action = bytes_text("queue.pause"),
                                                            .target_id = id_of_digit('1'),
                                                            .namespace_id = id_of_digit('3'),
                                                            .reason = bytes_text("why"),
                                                            .before = bytes_text("{\"revision\":\"1\"}"),
                                                            .after = bytes_text("{\"revision\":\"2\"}")};
  buffer_init(&out, 1 << 16);
  wire_audit_write(&out, &event);
  assert_json(&out,
              "{\"id\":\"88888888888888888888888888888888\",\"target_id\":\"11111111111111111111111111111111\","
              "\"operation_id\":\"99999999999999999999999999999999\",\"actor_id\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
              "\"action\":\"queue.pause\",\"created_at\":\"2026-09-17T00:00:30Z\",\"reason\":\"why\","
              "\"before\":{\"revision\":\"1\"},\"after\":{\"revision\":\"2\"}}");
  event.body.audit_recorded.reason = event.body.audit_recorded.before = bytes_of(NULL, 0);
  buffer_reset(&out);
  wire_audit_write(&out, &event);
  assert_json(&out,
              "{\"id\":\"88888888888888888888888888888888\",\"target_id\":\"11111111111111111111111111111111\","
              "\"operation_id\":\"99999999999999999999999999999999\",\"actor_id\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
              "\"action\":\"queue.pause\",\"created_at\":\"2026-09-17T00:00:30Z\",\"after\":{\"revision\":\"2\"}}");
  buffer_clear(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_namespace_fields),
      cmocka_unit_test(test_queue_fields),
      cmocka_unit_test(test_pause_fields),
      cmocka_unit_test(test_application_fields),
      cmocka_unit_test(test_credential_fields),
      cmocka_unit_test(test_bodies_are_strict_json),
      cmocka_unit_test(test_queue_commands),
      cmocka_unit_test(test_application_commands),
      cmocka_unit_test(test_credential_commands),
      cmocka_unit_test(test_digests),
      cmocka_unit_test(test_namespaces_and_applications),
      cmocka_unit_test(test_queues),
      cmocka_unit_test(test_credentials),
      cmocka_unit_test(test_audit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
