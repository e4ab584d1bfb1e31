/* orbitctl init: what it makes, what it refuses, and what it says. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/server.h"
#include "base/guard.h"
#include "codec/digest.h"

enum { path_bytes = 512 };

static char *directory;

static int setup(void **state) {
  (void)state;
  directory = test_directory_make();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  test_directory_remove(directory);
  return 0;
}

/* A path in the test's directory; valid until the eighth call from here. */
static const char *at(const char *name) {
  static char ring[8][path_bytes];
  static unsigned next;
  char *path = ring[next++ % 8];
  (void)snprintf(path, path_bytes, "%s/%s", directory, name);
  return path;
}

static bool exists(const char *path) {
  struct stat found;
  return lstat(path, &found) == 0;
}

static void expect(struct api_run *run, int code, const char *said) {
  if (run->code != code) fail_msg("exit code %d instead of %d: %s", run->code, code, run->err);
  if (said != NULL && strstr(run->err, said) == NULL) fail_msg("\"%s\" is not in: %s", said, run->err);
  if (code != 0) assert_string_equal(run->out, "");
  api_run_clear(run);
}

/* The member of a credentials file; "" when it has none. The caller frees. */
static char *member(const char *path, const char *name) {
  struct bytes text = test_file_read(path);
  cleanup(json_clear) struct json json;
  struct fault fault;
  json_init(&json);
  assert_non_null(text.data);
  assert_int_equal(json_parse(&json, text, &fault), STATUS_OK);
  uint32_t token = json_member(&json, 0, name);
  struct bytes value = token != 0 ? json_string(&json, token) : bytes_text("");
  char *copy = strndup((const char *)value.data, value.size);
  free((void *)(uintptr_t)text.data);
  return copy;
}

static void expect_credentials(const char *path, const char *url, bool of_a_namespace) {
  struct stat found;
  assert_int_equal(stat(path, &found), 0);
  assert_int_equal(found.st_mode & 07777, 0600);
  static const char *const ids[] = {"namespace_id", "application_id", "queue_id"};
  for (unsigned i = 0; i < 3; i++) {
    cleanup(guard_free) char *text = member(path, ids[i]);
    struct id id;
    assert_int_equal(id_parse(bytes_text(text), &id), of_a_namespace);
  }
  cleanup(guard_free) char *token = member(path, "token"), *said = member(path, "url");
  assert_int_equal(strlen(token), token_chars);
  assert_int_equal(strncmp(token, "orbit_", 6), 0);
  assert_int_equal(strspn(token + 6, "0123456789abcdef"), 64);
  assert_string_equal(said, url);
}

/* ---- What it makes ---- */

static void makes_a_data_directory_and_three_credentials(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", "--recovery-access", "--credentials", at("dev.json"),
               "--admin-credentials", at("admin.json"), "--root-credentials", at("root.json"), "--url",
               "https://orbit.example:8443", NULL);
  expect(&run, 0, NULL);
  expect_credentials(at("dev.json"), "https://orbit.example:8443", true);
  expect_credentials(at("admin.json"), "https://orbit.example:8443", true);
  expect_credentials(at("root.json"), "https://orbit.example:8443", false);
  cleanup(guard_free) char *dev = member(at("dev.json"), "token"), *admin = member(at("admin.json"), "token"),
                           *root = member(at("root.json"), "token");
  assert_string_not_equal(dev, admin);
  assert_string_not_equal(dev, root);
  assert_string_not_equal(admin, root);
  cleanup(guard_free) char *of_dev = member(at("dev.json"), "queue_id"), *of_admin = member(at("admin.json"), "queue_id");
  assert_string_equal(of_dev, of_admin);
  struct stat found;
  assert_int_equal(stat(at("data"), &found), 0);
  assert_int_equal(found.st_mode & 07777, 0700);
}

/* Tokens are stored as hashes only. */
static void keeps_no_token_in_the_log(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", "--credentials", at("dev.json"), NULL);
  expect(&run, 0, NULL);
  cleanup(guard_free) char *token = member(at("dev.json"), "token");
  struct bytes log = test_file_read(at("data/log/data.mdb"));
  assert_non_null(log.data);
  assert_null(memmem(log.data, log.size, token, strlen(token)));
  assert_null(memmem(log.data, log.size, token + 6, 64));
  uint8_t hash[token_hash_bytes];
  token_hash(bytes_text(token), hash);
  assert_non_null(memmem(log.data, log.size, hash, sizeof hash));
  free((void *)(uintptr_t)log.data);
}

static void makes_a_root_credential_alone(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--root-credentials", at("root.json"), NULL);
  expect(&run, 0, NULL);
  expect_credentials(at("root.json"), "http://127.0.0.1:8080", false);
}

static void takes_directory_and_url_from_the_environment(void **state) {
  (void)state;
  struct api_run run;
  char data[path_bytes + 16];
  (void)snprintf(data, sizeof data, "ORBIT_DATA=%s", at("data"));
  const char *const environment[] = {data, "ORBIT_URL=http://[::1]:9000", NULL};
  const struct api_run_options options = {.environment = environment};
  api_orbitctl(&options, &run, "init", "--dev", "--credentials", at("dev.json"), NULL);
  expect(&run, 0, NULL);
  expect_credentials(at("dev.json"), "http://[::1]:9000", true);
  assert_true(exists(at("data/log")));
}

/* An empty directory that is there, made by a packager or an administrator, is taken. */
static void takes_an_empty_directory(void **state) {
  (void)state;
  struct api_run run;
  assert_int_equal(mkdir(at("data"), 0700), 0);
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", "--credentials", at("dev.json"), NULL);
  expect(&run, 0, NULL);
}

/* ---- What it says ---- */

static void says_what_it_made(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", "--credentials", at("dev.json"), NULL);
  cleanup(guard_free) char *queue = member(at("dev.json"), "queue_id"), *token = member(at("dev.json"), "token");
  assert_non_null(strstr(run.out, queue));
  assert_non_null(strstr(run.out, at("data")));
  assert_non_null(strstr(run.err, "orbitd --data"));
  assert_null(strstr(run.out, token));
  assert_null(strstr(run.err, token));
  expect(&run, 0, NULL);
}

static void says_it_as_json_and_csv(void **state) {
  (void)state;
  struct api_run run;
  cleanup(json_clear) struct json json;
  struct fault fault;
  json_init(&json);
  api_orbitctl(NULL, &run, "init", "--data", at("a"), "--dev", "--credentials", at("a.json"), "-o", "json", NULL);
  assert_int_equal(json_parse(&json, bytes_text(run.out), &fault), STATUS_OK);
  cleanup(guard_free) char *queue = member(at("a.json"), "queue_id");
  assert_true(bytes_equal_text(json_string(&json, json_member(&json, 0, "queue_id")), queue));
  assert_true(bytes_equal_text(json_string(&json, json_member(&json, 0, "credentials")), at("a.json")));
  assert_int_equal(json_member(&json, 0, "token"), 0);
  assert_string_equal(run.err, "");
  expect(&run, 0, NULL);
  api_orbitctl(NULL, &run, "init", "--data", at("b"), "--root-credentials", at("b.json"), "-o", "csv", NULL);
  assert_int_equal(strncmp(run.out, "data,credentials,", 17), 0);
  expect(&run, 0, NULL);
}

/* ---- What it refuses ---- */

static void writes_over_no_file(void **state) {
  (void)state;
  static const char *const options[] = {"--credentials", "--admin-credentials", "--root-credentials"};
  for (unsigned i = 0; i < 3; i++) {
    const char *names[3] = {at("a.json"), at("b.json"), at("c.json")};
    int fd = open(names[i], O_WRONLY | O_CREAT, 0644);
    assert_int_equal(write(fd, "mine", 4), 4);
    guard_close(&fd);
    struct api_run run;
    api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", options[0], names[0], options[1], names[1], options[2],
                 names[2], NULL);
    expect(&run, 1, names[i]);
    struct bytes text = test_file_read(names[i]);
    assert_true(bytes_equal_text(text, "mine"));
    free((void *)(uintptr_t)text.data);
    assert_false(exists(at("data")));
    for (unsigned other = 0; other < 3; other++) assert_int_equal(exists(names[other]), other == i);
    assert_int_equal(unlink(names[i]), 0);
  }
}

static void follows_no_dangling_link(void **state) {
  (void)state;
  struct api_run run;
  assert_int_equal(symlink(at("elsewhere"), at("dev.json")), 0);
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", "--credentials", at("dev.json"), NULL);
  expect(&run, 1, "dev.json");
  assert_false(exists(at("elsewhere")));
}

static void refuses_a_directory_that_holds_a_log(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", "--credentials", at("dev.json"), NULL);
  expect(&run, 0, NULL);
  struct bytes before = test_file_read(at("data/log/data.mdb"));
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", "--credentials", at("second.json"), NULL);
  expect(&run, 1, "holds a log already");
  assert_false(exists(at("second.json")));
  struct bytes after = test_file_read(at("data/log/data.mdb"));
  assert_true(bytes_equal(before, after));
  free((void *)(uintptr_t)before.data);
  free((void *)(uintptr_t)after.data);
}

/* Nothing is half done: the log stays empty, no file stays behind, and the command may be repeated. */
static void may_be_repeated_after_a_failure(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", "--credentials", at("dev.json"), "--admin-credentials",
               at("nowhere/admin.json"), NULL);
  expect(&run, 3, "nowhere/admin.json");
  assert_false(exists(at("dev.json")));
  api_orbitctl(NULL, &run, "init", "--data", at("data"), "--dev", "--credentials", at("dev.json"), NULL);
  expect(&run, 0, NULL);
}

static void cannot_run_without_a_place(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(NULL, &run, "init", "--data", at("no/such/data"), "--dev", "--credentials", at("dev.json"), NULL);
  expect(&run, 3, "no/such/data");
  assert_false(exists(at("dev.json")));
  int fd = open(at("file"), O_WRONLY | O_CREAT, 0600);
  guard_close(&fd);
  api_orbitctl(NULL, &run, "init", "--data", at("file"), "--dev", "--credentials", at("dev.json"), NULL);
  expect(&run, 3, "file");
  assert_false(exists(at("dev.json")));
}

static void cannot_run_beside_a_server(void **state) {
  (void)state;
  struct api_server server;
  struct api_run run;
  api_server_up(&server);
  api_orbitctl(NULL, &run, "init", "--data", server.data, "--dev", "--credentials", at("dev.json"), NULL);
  expect(&run, 3, "in use by the server");
  assert_false(exists(at("dev.json")));
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  api_server_remove(&server);
}

/* Misuse is exit code 2, names what is wrong, and makes nothing. */
static void knows_misuse(void **state) {
  (void)state;
  static const struct {
    const char *arguments[8];
    const char *said;
  } rows[] = {
      {{NULL}, "--data DIR is missing"},
      {{"--dev", "--credentials", "c"}, "--data DIR is missing"},
      {{"--data", "", "--dev", "--credentials", "c"}, "--data DIR is missing"},
      {{"--data", "d"}, "say --dev"},
      {{"--data", "d", "--dev"}, "go together"},
      {{"--data", "d", "--credentials", "c"}, "say --dev"},
      {{"--data", "d", "--credentials", "c", "--root-credentials", "r"}, "go together"},
      {{"--data", "d", "--root-credentials", "r", "--recovery-access"}, "go with --dev"},
      {{"--data", "d", "--root-credentials", "r", "--admin-credentials", "a"}, "go with --dev"},
      {{"--data", "d", "--dev", "--credentials", "c", "--admin-credentials", "c"}, "a file of its own"},
      {{"--data", "d", "--dev", "--credentials", "c", "--root-credentials", "c"}, "a file of its own"},
      {{"--data", "d", "--dev", "--credentials", "c", "surplus"}, "surplus"},
      {{"--data", "d", "--dev", "--credentials", "c", "--no-such-option"}, "no-such-option"},
      {{"--data", "d", "--dev", "--credentials", "c", "--url", "orbit:8080"}, "orbit:8080"},
      {{"--data", "d", "--dev", "--credentials", "c", "--url", "http://"}, "http://"},
      {{"--data", "d", "--dev", "--credentials", "c", "--url", "http://a b"}, "http://a b"},
      {{"--data", "d", "--dev", "--credentials", "c", "-o", "xml"}, "xml"},
      {{"--data"}, "requires an argument"},
  };
  char *before = getcwd(NULL, 0);
  assert_int_equal(chdir(directory), 0);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *arguments[12] = {api_program("orbitctl"), "init"};
    for (unsigned n = 0; n < 8 && rows[i].arguments[n] != NULL; n++) arguments[2 + n] = rows[i].arguments[n];
    struct api_run run;
    api_run(arguments, NULL, &run);
    expect(&run, 2, rows[i].said);
    assert_false(exists("d") || exists("c") || exists("r") || exists("a"));
  }
  assert_int_equal(chdir(before), 0);
  free(before);
}

static void helps(void **state) {
  (void)state;
  static const char *const words[] = {"--help", "--version"};
  for (unsigned i = 0; i < 2; i++) {
    struct api_run run;
    api_orbitctl(NULL, &run, "init", words[i], NULL);
    assert_int_equal(run.code, 0);
    assert_true(run.out_size > 0);
    assert_string_equal(run.err, "");
    api_run_clear(&run);
    api_orbitctl(NULL, &run, words[i], NULL);
    assert_int_equal(run.code, 0);
    assert_true(run.out_size > 0);
    assert_string_equal(run.err, "");
    api_run_clear(&run);
  }
  struct api_run run;
  api_orbitctl(NULL, &run, "no-such-command", NULL);
  expect(&run, 2, "no-such-command");
  api_orbitctl(NULL, &run, NULL);
  expect(&run, 2, "init");
}

/* ---- What may be done with it ---- */

/* --recovery-access is the difference between being refused and being told that there is no such task. */
static void gives_recovery_rights_on_request_only(void **state) {
  (void)state;
  static const char *const flags[] = {NULL, "--recovery-access"};
  for (unsigned i = 0; i < 2; i++) {
    struct api_server server = {.directory = NULL};
    struct http_reply reply;
    struct api_run run;
    http_reply_init(&reply);
    (void)snprintf(server.data, sizeof server.data, "%s/data%u", directory, i);
    (void)snprintf(server.log, sizeof server.log, "%s/log%u", directory, i);
    (void)snprintf(server.credentials, sizeof server.credentials, "%s/c%u.json", directory, i);
    api_orbitctl(NULL, &run, "init", "--data", server.data, "--dev", "--credentials", server.credentials, flags[i], NULL);
    expect(&run, 0, NULL);
    assert_int_equal(port_hold(&server.http_port), 0);
    assert_int_equal(port_hold(&server.worker_port), 0);
    api_server_start(&server, NULL);
    cleanup(guard_free) char *token = member(server.credentials, "token");
    http_get(&server, token, "/v1/tasks/0000018bcfe568000000000000000a01/operations", &reply);
    http_expect(&reply, i == 0 ? 403 : 404, i == 0 ? "PERMISSION_DENIED" : "NOT_FOUND", NULL);
    http_get(&server, token, "/v1/tasks/0000018bcfe568000000000000000a01", &reply);
    http_expect(&reply, 404, "NOT_FOUND", NULL);
    http_reply_clear(&reply);
    assert_int_equal(api_server_stop(&server, SIGTERM), 0);
    port_release(&server.http_port);
    port_release(&server.worker_port);
  }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(makes_a_data_directory_and_three_credentials),
      CASE(keeps_no_token_in_the_log),
      CASE(makes_a_root_credential_alone),
      CASE(takes_directory_and_url_from_the_environment),
      CASE(takes_an_empty_directory),
      CASE(says_what_it_made),
      CASE(says_it_as_json_and_csv),
      CASE(writes_over_no_file),
      CASE(follows_no_dangling_link),
      CASE(refuses_a_directory_that_holds_a_log),
      CASE(may_be_repeated_after_a_failure),
      CASE(cannot_run_without_a_place),
      CASE(cannot_run_beside_a_server),
      CASE(knows_misuse),
      CASE(helps),
      CASE(gives_recovery_rights_on_request_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
