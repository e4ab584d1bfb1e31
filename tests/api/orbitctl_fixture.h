/* What the tests of orbitctl share: one server, the environment that leads to it, and a look at what was printed. */
#ifndef ORBIT_TESTS_API_ORBITCTL_FIXTURE_H
#define ORBIT_TESTS_API_ORBITCTL_FIXTURE_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/server.h"
#include "base/guard.h"

enum { path_bytes = 512 };

static struct api_server server;
static struct http_reply reply;
static char url_variable[128], credentials_variable[320];
static const char *environment[8];
static struct api_run_options as_usual = {.environment = environment};

static inline int start(void **state) {
  (void)state;
  http_reply_init(&reply);
  api_server_up(&server);
  (void)snprintf(url_variable, sizeof url_variable, "ORBIT_URL=%s", server.url);
  (void)snprintf(credentials_variable, sizeof credentials_variable, "ORBIT_CREDENTIALS_FILE=%s", server.credentials);
  environment[0] = url_variable;
  environment[1] = credentials_variable;
  return 0;
}

static inline int stop(void **state) {
  (void)state;
  http_reply_clear(&reply);
  int code = server.pid != 0 ? api_server_stop(&server, SIGTERM) : 0; /* a sanitizer speaks here */
  api_server_remove(&server);
  assert_int_equal(code, 0);
  return 0;
}

static inline const char *at(const char *name) {
  static char ring[4][path_bytes];
  static unsigned next;
  char *path = ring[next++ % 4];
  (void)snprintf(path, path_bytes, "%s/%s", server.directory, name);
  return path;
}

static inline void write_file(const char *path, const char *text, size_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, size), (ssize_t)size);
  guard_close(&fd);
}

static inline void expect_code(const struct api_run *run, int code) {
  if (run->code != code) fail_msg("exit code %d instead of %d\n%s%s", run->code, code, run->out, run->err);
}

static inline void expect_in(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in: %s", part, text);
}

/* A value of the one JSON document that a run printed, by a path as in http_value, a copy; the caller frees. */
static inline char *value_of(const char *text, const char *path) {
  struct http_reply document;
  struct fault fault;
  http_reply_init(&document);
  document.is_json = json_parse(&document.json, bytes_text(text), &fault) == STATUS_OK;
  if (!document.is_json) fail_msg("not JSON (%s): %s", fault.message, text);
  struct bytes value = http_value(&document, path);
  char *copy = strndup(value.data != NULL ? (const char *)value.data : "", value.size);
  http_reply_clear(&document);
  return copy;
}

/* Submits with -o json; returns the task's id. The caller frees. */
static inline char *submitted(const char *key, const char *handler, const char *timeout_ms, const char *max_attempts) {
  struct api_run run;
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", handler, "--handler-version", "v1", "--key", key, "--timeout-ms",
               timeout_ms, "--max-attempts", max_attempts, "-o", "json", NULL);
  expect_code(&run, 0);
  char *id = value_of(run.out, "task.id");
  api_run_clear(&run);
  return id;
}

static inline bool has_state(const char *id, const char *wanted) {
  char target[128];
  (void)snprintf(target, sizeof target, "/v1/tasks/%s", id);
  http_get(&server, server.token, target, &reply);
  http_expect(&reply, 200, NULL, NULL);
  return strcmp(http_text(&reply, "data.task.state"), wanted) == 0;
}

#endif
