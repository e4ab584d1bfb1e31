/* orbitctl task submit, get, attempts: what people and scripts see, and what they are told when it does not work. */
#include <sys/stat.h>

#include "api/orbitctl_fixture.h"

/* ---- Submitting ---- */

static void makes_a_key_and_says_so(void **state) {
  (void)state;
  struct api_run first, again;
  char key[40] = "";
  api_orbitctl(&as_usual, &first, "task", "submit", "--handler", "none", "--handler-version", "v1", NULL);
  expect_code(&first, 0);
  const char *said = strstr(first.err, "--key ");
  const char *given = said != NULL ? strstr(said + 6, "--key ") : NULL;
  assert_non_null(given);
  (void)snprintf(key, sizeof key, "%.32s", given + 6);
  assert_int_equal(strspn(key, "0123456789abcdef"), 32);
  expect_in(first.out, "WAITING");
  expect_in(first.out, server.queue_id); /* of the credentials file */
  assert_null(strstr(first.out, key));   /* nothing but data on stdout */

  api_orbitctl(&as_usual, &again, "task", "submit", "--handler", "none", "--handler-version", "v1", "--key", key, NULL);
  expect_code(&again, 0);
  assert_string_equal(again.out, first.out);
  expect_in(again.err, "used before");
  api_run_clear(&first);
  api_run_clear(&again);
}

static void sends_every_field(void **state) {
  (void)state;
  static const struct {
    const char *path, *value;
  } rows[] = {
      {"task.handler", "text.normalize"},
      {"task.handler_version", "v2"},
      {"task.payload_version", "v3"},
      {"task.payload", "{\"n\":1e400,\"t\":\"\\u00e9\"}"},
      {"task.business_key", "caf\xc3\xa9 \"quoted\""},
      {"task.concurrency_key", "c"},
      {"task.priority", "7"},
      {"task.recovery_safety", "IDEMPOTENT"},
      {"task.retry.max_attempts", "3"},
      {"task.retry.initial_delay_ms", "500"},
      {"task.retry.max_delay_ms", "2000"},
      {"task.retry.attempt_timeout_ms", "10000"},
      {"deduplicated", "false"},
  };
  struct api_run run;
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "text.normalize", "--handler-version", "v2", "--payload-version",
               "v3", "--payload", " { \"n\" : 1e400 , \"t\" : \"\\u00e9\" } ", "--queue", server.queue_id, "--timeout-ms",
               "60000", "--key", "fields", "--business-key", "caf\xc3\xa9 \"quoted\"", "--concurrency-key", "c", "--priority",
               "7", "--recovery-safety", "IDEMPOTENT", "--max-attempts", "3", "--initial-delay-ms", "500", "--max-delay-ms",
               "2000", "--attempt-timeout-ms", "10000", "-o", "json", NULL);
  expect_code(&run, 0);
  assert_string_equal(run.err, "");
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    cleanup(guard_free) char *value = value_of(run.out, rows[i].path);
    assert_string_equal(value, rows[i].value);
  }
  api_run_clear(&run);
}

static void reads_payloads_from_files_and_stdin(void **state) {
  (void)state;
  char file[path_bytes + 1];
  struct api_run run;
  write_file(at("payload.json"), "[1,\n 2]\n", 8);
  (void)snprintf(file, sizeof file, "@%s", at("payload.json"));
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "none", "--handler-version", "v1", "--payload", file, "-o",
               "json", NULL);
  expect_code(&run, 0);
  cleanup(guard_free) char *of_file = value_of(run.out, "task.payload");
  assert_string_equal(of_file, "[1,2]");
  api_run_clear(&run);
  struct api_run_options with_input = {.environment = environment, .input = "\"from stdin\""};
  api_orbitctl(&with_input, &run, "task", "submit", "--handler", "none", "--handler-version", "v1", "--payload", "-", "-o",
               "json", NULL);
  expect_code(&run, 0);
  cleanup(guard_free) char *of_input = value_of(run.out, "task.payload");
  assert_string_equal(of_input, "from stdin");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "none", "--handler-version", "v1", "--payload", "@/no/such/file",
               NULL);
  expect_code(&run, 3);
  expect_in(run.err, "/no/such/file");
  api_run_clear(&run);
}

static void judges_payloads_before_sending(void **state) {
  (void)state;
  static const struct {
    const char *payload, *said;
  } rows[] = {
      {"{\"a\":[1,{\"b\":tru}]}", "/a/1/b"},     {"{\"a\":1,\"a\":2}", "twice"}, {"null", "must not be null"}, {"", "not JSON"},
      {"1} ,\"priority\":{\"x\":1", "not JSON"},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct api_run run;
    api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "none", "--handler-version", "v1", "--payload",
                 rows[i].payload, NULL);
    expect_code(&run, 2);
    expect_in(run.err, rows[i].said);
    assert_string_equal(run.out, "");
    api_run_clear(&run);
  }
}

static void knows_misuse(void **state) {
  (void)state;
  static const struct {
    const char *arguments[10];
    const char *said;
  } rows[] = {
      {{"task"}, "submit"},
      {{"task", "sumbit"}, "sumbit"},
      {{"task", "submit"}, "--handler NAME is missing"},
      {{"task", "submit", "--handler", "h"}, "--handler-version VERSION is missing"},
      {{"task", "submit", "--handler", "h", "--handler-version", "v", "surplus"}, "surplus"},
      {{"task", "submit", "--handler", "h", "--handler-version", "v", "--timeout-ms", "0"}, "--timeout-ms"},
      {{"task", "submit", "--handler", "h", "--handler-version", "v", "--timeout-ms", "1s"}, "--timeout-ms"},
      {{"task", "submit", "--handler", "h", "--handler-version", "v", "--timeout-ms", "-1"}, "--timeout-ms"},
      {{"task", "submit", "--handler", "h", "--handler-version", "v", "--max-attempts", "101"}, "1 to 100"},
      {{"task", "submit", "--handler", "h", "--handler-version", "v", "--priority", "10"}, "0 to 9"},
      {{"task", "submit", "--handler", "h", "--handler-version", "v", "--available-at", "tomorrow"}, "2026-11-30T12:00:00Z"},
      {{"task", "submit", "--handler", "h", "--handler-version", "v", "-o", "yaml"}, "yaml"},
      {{"task", "submit", "--handler", "h", "--handler-version", "v", "--key", "a b"}, "operation key"},
      {{"task", "get"}, "id is missing"},
      {{"task", "get", "0000018bcfe568000000000000000a0"}, "no id"},
      {{"task", "get", "0000018BCFE568000000000000000A01"}, "no id"},
      {{"task", "get", "0000018bcfe568000000000000000a01", "0000018bcfe568000000000000000a01"}, "unexpected"},
      {{"task", "watch", "0000018bcfe568000000000000000a01", "--interval-ms", "0"}, "--interval-ms"},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *arguments[12] = {api_program("orbitctl")};
    struct api_run run;
    for (unsigned n = 0; n < 10 && rows[i].arguments[n] != NULL; n++) arguments[1 + n] = rows[i].arguments[n];
    api_run(arguments, &as_usual, &run);
    expect_code(&run, 2);
    expect_in(run.err, rows[i].said);
    assert_string_equal(run.out, "");
    api_run_clear(&run);
  }
}

/* ---- Whom it talks to ---- */

static void finds_its_credentials(void **state) {
  (void)state;
  cleanup(guard_free) char *id = submitted("credentials", "none", "60000", "1");
  char home[path_bytes + 32], file[path_bytes];
  struct api_run run;
  /* by flags alone */
  api_orbitctl(NULL, &run, "task", "get", id, "--url", server.url, "--credentials", server.credentials, NULL);
  expect_code(&run, 0);
  api_run_clear(&run);
  /* where people keep them */
  (void)snprintf(home, sizeof home, "XDG_CONFIG_HOME=%s", at("config"));
  assert_int_equal(mkdir(at("config"), 0700), 0);
  assert_int_equal(mkdir(at("config/orbit"), 0700), 0);
  (void)snprintf(file, sizeof file, "%s", at("config/orbit/credentials.json"));
  struct bytes text = test_file_read(server.credentials);
  write_file(file, (const char *)text.data, text.size);
  free((void *)(uintptr_t)text.data);
  const char *const at_home[] = {home, url_variable, NULL};
  const struct api_run_options options = {.environment = at_home};
  api_orbitctl(&options, &run, "task", "get", id, NULL);
  expect_code(&run, 0);
  assert_string_equal(run.err, "");
  api_run_clear(&run);
  /* others may read it */
  assert_int_equal(chmod(file, 0644), 0);
  api_orbitctl(&options, &run, "task", "get", id, NULL);
  expect_code(&run, 0);
  expect_in(run.err, "chmod 600");
  api_run_clear(&run);
  /* nowhere */
  assert_int_equal(unlink(file), 0);
  api_orbitctl(&options, &run, "task", "get", id, NULL);
  expect_code(&run, 3);
  expect_in(run.err, file);
  expect_in(run.err, "ORBIT_CREDENTIALS_FILE");
  api_run_clear(&run);
}

static void says_what_to_do_when_it_does_not_work(void **state) {
  (void)state;
  static const char unknown[] = "0000018bcfe568000000000000000a01";
  struct api_run run;
  api_orbitctl(&as_usual, &run, "task", "get", unknown, "--url", "http://127.0.0.1:1", NULL);
  expect_code(&run, 3);
  expect_in(run.err, "is orbitd running at http://127.0.0.1:1?");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "get", unknown, NULL);
  expect_code(&run, 1);
  expect_in(run.err, "NOT_FOUND");
  expect_in(run.err, "[request ");
  assert_string_equal(run.out, "");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "get", unknown, "--credentials", server.admin_credentials, NULL);
  expect_code(&run, 1);
  expect_in(run.err, "PERMISSION_DENIED");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "no spaces", "--handler-version", "v1", NULL);
  expect_code(&run, 1);
  expect_in(run.err, "/handler");
  api_run_clear(&run);
  free(submitted("conflict", "none", "60000", "1"));
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "other", "--handler-version", "v1", "--key", "conflict", NULL);
  expect_code(&run, 1);
  expect_in(run.err, "IDEMPOTENCY_CONFLICT");
  expect_in(run.err, "use another key");
  api_run_clear(&run);
}

/* ---- Showing ---- */

/* -o json is the answer's data byte for byte, -o jsonl the object, and both come whole through pipes. */
static void shows_what_the_server_gave(void **state) {
  (void)state;
  cleanup(guard_free) char *id = submitted("as-given", "none", "60000", "2");
  char target[128];
  struct api_run run;
  (void)snprintf(target, sizeof target, "/v1/tasks/%s", id);
  http_get(&server, server.token, target, &reply);
  api_orbitctl(&as_usual, &run, "task", "get", id, "-o", "json", NULL);
  expect_code(&run, 0);
  struct bytes data = http_value(&reply, "data"), task = http_value(&reply, "data.task");
  assert_int_equal(run.out_size, data.size + 1);
  assert_int_equal(memcmp(run.out, data.data, data.size), 0);
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "get", id, "-o", "jsonl", NULL);
  assert_int_equal(run.out_size, task.size + 1);
  assert_int_equal(memcmp(run.out, task.data, task.size), 0);
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "attempts", id, "-o", "json", NULL);
  assert_string_equal(run.out, "{\"items\":[]}\n");
  api_run_clear(&run);
}

static void quotes_csv(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "none", "--handler-version", "v1", "--payload",
               "{\"a\":\"b,c\"}", "--business-key", "one \"two\", three\r\nfour", "--key", "csv", "-o", "csv", NULL);
  expect_code(&run, 0);
  assert_int_equal(strncmp(run.out, "id,state,revision,", 18), 0);
  expect_in(run.out, "\r\n");
  expect_in(run.out, ",\"one \"\"two\"\", three\r\nfour\",");
  expect_in(run.out, ",\"{\"\"a\"\":\"\"b,c\"\"}\",");
  api_run_clear(&run);
}

/* What a task holds must not be able to move the cursor or change the terminal. */
static void spells_control_characters_out(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "none", "--handler-version", "v1", "--business-key",
               "a\033[2Jb\xc2\x9b"
               "c\xe2\x80\xae"
               "d",
               "--key", "escape", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "a\\u001b[2Jb\\u009bc\\u202ed");
  assert_null(strchr(run.out, '\033'));
  api_run_clear(&run);
}

/* Nor must what orbitctl says about it. */
static void spells_control_characters_of_messages_out(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "none", "--handler-version", "v1", "--payload",
               "{\"\\u001b[2Jx\":1,\"\\u001b[2Jx\":2}", NULL);
  expect_code(&run, 2);
  expect_in(run.err, "\\u001b[2Jx");
  assert_null(strchr(run.err, '\033'));
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "get", "\033[2J\xff", NULL);
  expect_code(&run, 2);
  api_run_clear(&run);
}

/* A payload as deep as one may be stands deeper in the answer. */
static void shows_the_deepest_payload(void **state) {
  (void)state;
  char payload[128] = "";
  struct api_run run;
  memset(payload, '[', 63);
  memset(payload + 63, ']', 63);
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "none", "--handler-version", "v1", "--payload", payload, "--key",
               "deep", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "[[[[[");
  api_run_clear(&run);
}

static void says_when_stdout_is_full(void **state) {
  (void)state;
  cleanup(guard_free) char *id = submitted("full", "none", "60000", "1");
  const char *const arguments[] = {api_program("orbitctl"), "task", "get", id, NULL};
  assert_int_equal(api_wait_exit(api_spawn(arguments, &as_usual, "/dev/full", at("errors"))), 3);
  struct bytes text = test_file_read(at("errors"));
  assert_non_null(memmem(text.data, text.size, "stdout cannot be written", 24));
  free((void *)(uintptr_t)text.data);
  const char *const why[] = {arguments[0], "why", id, NULL}, *const help[] = {arguments[0], "--help", NULL};
  assert_int_equal(api_wait_exit(api_spawn(why, &as_usual, "/dev/full", at("errors"))), 3);
  assert_int_equal(api_wait_exit(api_spawn(help, &as_usual, "/dev/full", at("errors"))), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(makes_a_key_and_says_so),
      cmocka_unit_test(sends_every_field),
      cmocka_unit_test(reads_payloads_from_files_and_stdin),
      cmocka_unit_test(judges_payloads_before_sending),
      cmocka_unit_test(knows_misuse),
      cmocka_unit_test(finds_its_credentials),
      cmocka_unit_test(says_what_to_do_when_it_does_not_work),
      cmocka_unit_test(shows_what_the_server_gave),
      cmocka_unit_test(quotes_csv),
      cmocka_unit_test(spells_control_characters_out),
      cmocka_unit_test(spells_control_characters_of_messages_out),
      cmocka_unit_test(shows_the_deepest_payload),
      cmocka_unit_test(says_when_stdout_is_full),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
