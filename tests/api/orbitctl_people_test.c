/* orbitctl for people in the loop and for administrators: the demo, why, recovery commands, queues, applications, credentials.
 */
#include "api/orbitctl_fixture.h"

/* The same environment with the admin's, or root's, credentials. */
static char other_variable[320];
static const char *other_environment[4];
static struct api_run_options as_other = {.environment = other_environment};

static struct api_run_options *with(const char *credentials) {
  (void)snprintf(other_variable, sizeof other_variable, "ORBIT_CREDENTIALS_FILE=%s", credentials);
  other_environment[0] = url_variable;
  other_environment[1] = other_variable;
  return &as_other;
}

static void the_demo_plays_the_whole_story(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(&as_usual, &run, "demo", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "attempt 1: FAILED, safe to retry");
  expect_in(run.out, "attempt 2: SUCCEEDED");
  expect_in(run.out, "attempt 1: UNKNOWN");
  expect_in(run.out, "task.review");
  expect_in(run.out, "task.retry");
  expect_in(run.out, "409 STATE_CONFLICT");
  api_run_clear(&run);
}

/* why, by what keeps a task from running; and a cancel with its audit. */
static void says_why_and_cancels(void **state) {
  (void)state;
  struct api_run run;
  cleanup(guard_free) char *id = submitted("why", "nobody", "600000", "1");
  api_orbitctl(&as_usual, &run, "why", id, NULL);
  expect_code(&run, 0);
  expect_in(run.out, "no connected worker with free capacity offers handler nobody");
  api_run_clear(&run);
  api_orbitctl(with(server.admin_credentials), &run, "queue", "pause", server.queue_id, "--reason", "night", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "paused           true");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "why", id, NULL);
  expect_in(run.out, "its queue is paused");
  api_run_clear(&run);
  api_orbitctl(with(server.admin_credentials), &run, "queue", "resume", server.queue_id, NULL);
  expect_code(&run, 0);
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "cancel", id, "--reason", "not needed", "-o", "json", NULL);
  expect_code(&run, 0);
  cleanup(guard_free) char *cancelled = value_of(run.out, "task.state");
  assert_string_equal(cancelled, "CANCELLED");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "operations", id, "-o", "jsonl", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "\"action\":\"task.cancel\"");
  expect_in(run.out, "\"action\":\"task.accept\"");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "why", id, NULL);
  expect_in(run.out, "CANCELLED");
  api_run_clear(&run);
}

static void retries_by_hand_once(void **state) {
  (void)state;
  struct api_run run;
  cleanup(guard_free) char *id = submitted("by-hand", "nobody", "600000", "1");
  api_orbitctl(&as_usual, &run, "task", "cancel", id, "--reason", "wrong time", NULL);
  expect_code(&run, 0);
  api_run_clear(&run);
  for (unsigned i = 0; i < 2; i++) { /* the second successor is refused */
    api_orbitctl(&as_usual, &run, "task", "retry", id, "--revision", "2", "--reason", "now", "--evidence", "ticket:1",
                 "--safe-to-retry", "--timeout-ms", "600000", "--key", i == 0 ? "first" : "second", "-o", "json", NULL);
    expect_code(&run, i == 0 ? 0 : 1);
    expect_in(i == 0 ? run.out : run.err, i == 0 ? "\"retry_of\"" : "STATE_CONFLICT");
    api_run_clear(&run);
  }
  api_orbitctl(&as_usual, &run, "task", "retry", id, "--revision", "2", NULL); /* confirmation and reasons are asked for */
  expect_code(&run, 2);
  expect_in(run.err, "--reason is missing");
  api_run_clear(&run);
}

static void lists_page_after_page(void **state) {
  (void)state;
  struct api_run run;
  for (unsigned i = 0; i < 25; i++) {
    char key[24];
    (void)snprintf(key, sizeof key, "page-%u", i);
    free(submitted(key, "paged", "600000", "1"));
  }
  api_orbitctl(&as_usual, &run, "task", "list", "--handler", "paged", "--state", "WAITING", "-o", "jsonl", NULL);
  expect_code(&run, 0);
  unsigned rows = 0;
  for (const char *at_row = run.out; (at_row = strstr(at_row, "\"handler\":\"paged\"")) != NULL; at_row++) rows++;
  assert_int_equal(rows, 25);
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "list", "--handler", "paged", "-o", "csv", NULL);
  expect_code(&run, 0);
  unsigned lines = 0, heads = 0; /* the names of the columns stand once, above the first page */
  for (const char *at_line = run.out; *at_line != '\0'; at_line = strchr(at_line, '\n') + 1, lines++)
    heads += strncmp(at_line, "id,state,", 9) == 0;
  assert_int_equal(lines, 26);
  assert_int_equal(heads, 1);
  api_run_clear(&run);
}

/* A token is shown once: whatever the format, it is there, and opens what it should. */
static void shows_a_token_in_every_format(void **state) {
  (void)state;
  static const char *const formats[] = {"text", "json", "jsonl", "csv"};
  for (unsigned i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    struct api_run run;
    char token[128] = "";
    api_orbitctl(with(server.admin_credentials), &run, "credential", "create", "--application", server.application_id,
                 "--permissions", "queues:read", "--key", formats[i], "-o", formats[i], NULL);
    expect_code(&run, 0);
    const char *found = strstr(run.out, "orbit_");
    if (found == NULL) fail_msg("-o %s loses the token: %s", formats[i], run.out);
    (void)snprintf(token, sizeof token, "%.*s", (int)strcspn(found, "\"\r\n ,"), found);
    http_get(&server, token, "/v1/queues", &reply);
    http_expect(&reply, 200, NULL, NULL);
    if (i == 3) expect_in(run.out, ",namespace_id,token\r\n");
    api_run_clear(&run);
  }
}

/* The holder of a key may be leased or running, and nobody may hold it. */
static void says_who_holds_the_key(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "nobody", "--handler-version", "v1", "--concurrency-key", "key",
               "--key", "with-key", "-o", "json", NULL);
  expect_code(&run, 0);
  cleanup(guard_free) char *id = value_of(run.out, "task.id");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "why", id, NULL);
  expect_code(&run, 0);
  expect_in(run.out, "no connected worker with free capacity offers handler nobody");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "why", id, "-o", "json", NULL); /* it has none, and does not pass over that */
  expect_code(&run, 2);
  api_run_clear(&run);
}

static void administers_queues_and_credentials(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(with(server.admin_credentials), &run, "queue", "create", "--name", "narrow", "--max-unfinished", "3", "--rate",
               "10/1000/2", "-o", "json", NULL);
  expect_code(&run, 0);
  cleanup(guard_free) char *queue = value_of(run.out, "queue.id"), *tasks = value_of(run.out, "queue.rate.tasks");
  assert_string_equal(tasks, "10");
  api_run_clear(&run);
  api_orbitctl(with(server.admin_credentials), &run, "queue", "change", queue, "--revision", "1", "--rate", "none",
               "--max-unfinished", "none", "-o", "json", NULL);
  expect_code(&run, 0);
  cleanup(guard_free) char *gone = value_of(run.out, "queue.rate"), *revision = value_of(run.out, "queue.revision");
  assert_string_equal(gone, "");
  assert_string_equal(revision, "2");
  api_run_clear(&run);
  api_orbitctl(with(server.admin_credentials), &run, "credential", "create", "--application", server.application_id,
               "--permissions", "tasks:read,queues:read", "--queues", queue, "-o", "json", NULL);
  expect_code(&run, 0);
  cleanup(guard_free) char *credential = value_of(run.out, "credential.id"), *token = value_of(run.out, "token");
  api_run_clear(&run);
  http_get(&server, token, "/v1/queues", &reply);
  http_expect(&reply, 200, NULL, NULL);
  api_orbitctl(with(server.admin_credentials), &run, "credential", "revoke", credential, NULL);
  expect_code(&run, 0);
  expect_in(run.out, "true");
  api_run_clear(&run);
  http_get(&server, token, "/v1/queues", &reply);
  assert_int_equal(reply.status, 401);
  api_orbitctl(with(server.admin_credentials), &run, "audit", "list", "--target", credential, NULL);
  expect_code(&run, 0);
  expect_in(run.out, "credential.revoke");
  expect_in(run.out, "credential.create");
  api_run_clear(&run);
  api_orbitctl(with(server.root_credentials), &run, "namespace", "create", "--name", "second", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "token orbit_");
  api_run_clear(&run);
}

static void knows_misuse_of_rows(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(&as_usual, &run, "queue", "destroy", NULL);
  expect_code(&run, 2);
  expect_in(run.err, "there is no command");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "queue", "get", "no-id", NULL);
  expect_code(&run, 2);
  api_run_clear(&run);
  static const char *const rates[] = {
      "fast", "1/2", "1/2/3/4", "1/2/3x", "1//3", "-1/2/3", " 1/2/3", "1/2/18446744073709551616", ""};
  for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
    api_orbitctl(&as_usual, &run, "queue", "create", "--name", "x", "--rate", rates[i], NULL);
    expect_code(&run, 2);
    expect_in(run.err, "TASKS/PER_MS/BURST");
    api_run_clear(&run);
  }
  api_orbitctl(&as_usual, &run, "queue", "create", "--name", "x", NULL); /* this credential may not */
  expect_code(&run, 1);
  expect_in(run.err, "PERMISSION_DENIED");
  api_run_clear(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_demo_plays_the_whole_story),
      cmocka_unit_test(says_why_and_cancels),
      cmocka_unit_test(retries_by_hand_once),
      cmocka_unit_test(lists_page_after_page),
      cmocka_unit_test(shows_a_token_in_every_format),
      cmocka_unit_test(says_who_holds_the_key),
      cmocka_unit_test(administers_queues_and_credentials),
      cmocka_unit_test(knows_misuse_of_rows),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
