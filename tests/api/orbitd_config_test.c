/* The configuration of orbitd: three sources with the same names, each fault named with the place where it stands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server.h"
#include "base/guard.h"

static struct api_server server;

static int setup(void **state) {
  (void)state;
  api_server_make(&server);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  api_server_remove(&server);
  return 0;
}

static void names_what_is_wrong_in_the_configuration(void **state) {
  (void)state;
  static const struct {
    const char *flag, *value; /* on the command line */
    const char *environment;  /* NAME=value */
    const char *file;         /* text of --config */
    const char *said, *where; /* in the message */
  } rows[] = {
      {"--http-threads", "0", NULL, NULL, "\"0\"", "--http-threads"},
      {"--http-threads", "65", NULL, NULL, "\"65\"", "--http-threads"},
      {"--http-threads", "two", NULL, NULL, "\"two\"", "--http-threads"},
      {"--http-threads", "-1", NULL, NULL, "\"-1\"", "--http-threads"},
      {"--http-threads", "1.5", NULL, NULL, "\"1.5\"", "--http-threads"},
      {"--map-size", "63M", NULL, NULL, "63M", "--map-size"},
      {"--map-size", "65T", NULL, NULL, "65T", "--map-size"},
      {"--map-size", "1X", NULL, NULL, "1X", "--map-size"},
      {"--map-size", "18446744073709551616", NULL, NULL, "18446744073709551616", "--map-size"},
      {"--map-size", "99999999999999999G", NULL, NULL, "99999999999999999G", "--map-size"},
      {"--connections-per-address", "0", NULL, NULL, "\"0\"", "--connections-per-address"},
      {"--connections-per-address", "4097", NULL, NULL, "from 1 to 4096", "--connections-per-address"},
      {"--workers-per-credential", "4097", NULL, NULL, "from 1 to 4096", "--workers-per-credential"},
      {"--requests-per-credential", "0", NULL, NULL, "from 1 to 4096", "--requests-per-credential"},
      {"--requests-per-credential", "4097", NULL, NULL, "from 1 to 4096", "--requests-per-credential"},
      {"--log-format", "xml", NULL, NULL, "auto, json or text", "log-format"},
      {"--no-such-option", NULL, NULL, NULL, "no-such-option", ""},
      {"surplus", NULL, NULL, NULL, "surplus", ""},
      {NULL, NULL, "ORBIT_HTTP_THREADS=0", NULL, "\"0\"", "ORBIT_HTTP_THREADS"},
      {NULL, NULL, "ORBIT_MAP_SIZE=x", NULL, "\"x\"", "ORBIT_MAP_SIZE"},
      {NULL, NULL, "ORBIT_ACCEPT_FUTURE_LOG=perhaps", NULL, "perhaps", "ORBIT_ACCEPT_FUTURE_LOG"},
      {NULL, NULL, "ORBIT_CONFIG=/no/such/file", NULL, "/no/such/file", ""},
      {NULL, NULL, NULL, "http-threads = 0\n", "\"0\"", "http-threads in "},
      {NULL, NULL, NULL, "allow-plain-text = maybe\n", "maybe", "allow-plain-text in "},
      {"--tls-cert", "/a", NULL, NULL, "come together", "--tls-key"},
      {NULL, NULL, "ORBIT_TLS_KEY=/a", NULL, "come together", "--tls-cert"},
      {NULL, NULL, NULL, "tls-cert = /a\n", "come together", "--tls-key"},
      {NULL, NULL, NULL, "http_threads = 1\n", "\"http_threads\"", "orbit.ini"},
      {NULL, NULL, NULL, "print-config = true\n", "\"print-config\"", "orbit.ini"},
      {NULL, NULL, NULL, "[server]\nhttp-threads = 1\n", "no sections", "orbit.ini"},
      {NULL, NULL, NULL, "http-threads = 1\nnonsense\n", ":2", "orbit.ini"},
  };
  char path[300], program[300];
  (void)snprintf(path, sizeof path, "%s/orbit.ini", server.directory);
  (void)snprintf(program, sizeof program, "%s", api_program("orbitd"));
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *const environment[] = {rows[i].environment, NULL};
    const struct api_run_options options = {.environment = environment};
    const char *arguments[8] = {program, "--data", server.data};
    unsigned count = 3;
    struct api_run run;
    if (rows[i].file != NULL) {
      FILE *file = fopen(path, "w");
      assert_true(file != NULL && fputs(rows[i].file, file) >= 0 && fclose(file) == 0);
      arguments[count++] = "--config";
      arguments[count++] = path;
    }
    if (rows[i].flag != NULL) arguments[count++] = rows[i].flag;
    if (rows[i].value != NULL) arguments[count++] = rows[i].value;
    api_run(arguments, &options, &run);
    bool misuse = rows[i].where[0] == '\0' && rows[i].environment == NULL; /* the command line itself */
    if (run.code != (misuse ? 2 : 3)) fail_msg("row %u: exit code %d: %s", i, run.code, run.err);
    if (strstr(run.err, rows[i].said) == NULL || strstr(run.err, rows[i].where) == NULL) fail_msg("row %u: %s", i, run.err);
    assert_string_equal(run.out, "");
    api_run_clear(&run);
  }
}

static void run_orbitd(const char *const *environment, struct api_run *run, const char *const *more) {
  const struct api_run_options options = {.environment = environment};
  const char *arguments[24] = {api_program("orbitd")};
  unsigned count = 1;
  for (; *more != NULL; more++) arguments[count++] = *more;
  api_run(arguments, &options, run);
}

static void prints_a_configuration_that_reads_back(void **state) {
  (void)state;
  char path[300];
  struct api_run first, second;
  const char *const flags[] = {"--data",
                               "/srv/orbit data",
                               "--listen",
                               "[::1]:9000",
                               "--worker-listen",
                               "127.0.0.1:9001",
                               "--worker-url",
                               "wss://orbit.example/v1/worker",
                               "--http-threads",
                               "3",
                               "--map-size",
                               "1T",
                               "--tls-cert",
                               "/etc/orbit/fullchain.pem",
                               "--tls-key",
                               "/etc/orbit/key.pem",
                               "--accept-future-log",
                               "--print-config",
                               NULL};
  run_orbitd(NULL, &first, flags);
  assert_int_equal(first.code, 0);
  assert_string_equal(first.err, "");
  assert_non_null(strstr(first.out, "data = /srv/orbit data\n"));
  assert_non_null(strstr(first.out, "map-size = 1099511627776\n"));
  assert_non_null(strstr(first.out, "tls-cert = /etc/orbit/fullchain.pem\ntls-key = /etc/orbit/key.pem\n"));
  assert_non_null(strstr(first.out, "accept-future-log = true\n"));
  assert_non_null(strstr(first.out, "allow-plain-text = false\n"));
  (void)snprintf(path, sizeof path, "%s/orbit.ini", server.directory);
  FILE *file = fopen(path, "w");
  assert_true(file != NULL && fputs(first.out, file) >= 0 && fclose(file) == 0);
  run_orbitd(NULL, &second, (const char *const[]){"--config", path, "--print-config", NULL});
  assert_int_equal(second.code, 0);
  assert_string_equal(second.out, first.out);
  api_run_clear(&first);
  api_run_clear(&second);
}

/* Flags win over the environment, the environment over the file, the file over what stands in the program. */
static void takes_the_nearest_source(void **state) {
  (void)state;
  char path[300];
  struct api_run run;
  (void)snprintf(path, sizeof path, "%s/orbit.ini", server.directory);
  FILE *file = fopen(path, "w");
  assert_true(file != NULL &&
              fputs("# of the file\ndata = /file\nlisten = 127.0.0.1:1\nworker-listen = 127.0.0.1:2\n", file) >= 0 &&
              fclose(file) == 0);
  char config[320];
  (void)snprintf(config, sizeof config, "ORBIT_CONFIG=%s", path);
  const char *const environment[] = {config, "ORBIT_LISTEN=127.0.0.1:11", "ORBIT_DATA=/environment", NULL};
  run_orbitd(environment, &run, (const char *const[]){"--data", "/flag", "--print-config", NULL});
  assert_int_equal(run.code, 0);
  assert_non_null(strstr(run.out, "data = /flag\n"));
  assert_non_null(strstr(run.out, "\nlisten = 127.0.0.1:11\n"));
  assert_non_null(strstr(run.out, "worker-listen = 127.0.0.1:2\n"));
  assert_non_null(strstr(run.out, "log-format = auto\n"));
  api_run_clear(&run);
}

static void checks_and_stops(void **state) {
  (void)state;
  struct api_run run;
  char log[300];
  (void)snprintf(log, sizeof log, "%s/log/data.mdb", server.data);
  struct bytes before = test_file_read(log);
  run_orbitd(NULL, &run, (const char *const[]){"--data", server.data, "--check", NULL});
  assert_int_equal(run.code, 0);
  assert_string_equal(run.out, "");
  assert_string_equal(run.err, "");
  api_run_clear(&run);
  struct bytes after = test_file_read(log);
  assert_true(before.size > 0 && bytes_equal(before, after));
  free((void *)(uintptr_t)before.data);
  free((void *)(uintptr_t)after.data);
  run_orbitd(NULL, &run, (const char *const[]){"--check", NULL});
  assert_int_equal(run.code, 2);
  assert_non_null(strstr(run.err, "--data DIR is missing"));
  api_run_clear(&run);
  run_orbitd(NULL, &run, (const char *const[]){"--data", server.data, "--http-threads", "0", "--check", NULL});
  assert_int_equal(run.code, 3);
  api_run_clear(&run);
}

static void helps(void **state) {
  (void)state;
  static const char *const words[] = {"--help", "--version"};
  for (unsigned i = 0; i < 2; i++) {
    struct api_run run;
    run_orbitd(NULL, &run, (const char *const[]){words[i], NULL});
    assert_int_equal(run.code, 0);
    assert_non_null(strstr(run.out, i == 0 ? "--worker-listen" : "orbitd "));
    assert_string_equal(run.err, "");
    api_run_clear(&run);
  }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(names_what_is_wrong_in_the_configuration),
      CASE(prints_a_configuration_that_reads_back),
      CASE(takes_the_nearest_source),
      CASE(checks_and_stops),
      CASE(helps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
