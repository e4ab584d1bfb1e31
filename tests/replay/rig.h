/* What the tests of orbit-replay share: a log that a real server wrote under load, copies of it to damage, and the program run
 * on them. Whatever the file looks like, the program must end by itself with one of its own exit codes. */
#ifndef ORBIT_TESTS_REPLAY_RIG_H
#define ORBIT_TESTS_REPLAY_RIG_H

#include <signal.h>

#include "api/server.h"
#include "journal/walker_fixture.h"

struct rig {
  struct api_server server;
  struct path sound;  /* a backup of the stopped server's log: small, and never changed */
  struct path copy;   /* the data directory that tests damage */
  struct path file;   /* its data.mdb */
  struct bytes bytes; /* of the sound one */
  uint64_t events;
  unsigned outs;
};

/* Runs `orbit-replay …` (a NULL-ended list) to its end. */
static inline void rig_replay(struct api_run *ret_run, ...) {
  const char *arguments[16];
  char program[512];
  va_list list;
  (void)snprintf(program, sizeof program, "%s", api_program("orbit-replay"));
  arguments[0] = program;
  va_start(list, ret_run);
  for (unsigned i = 1; (arguments[i] = va_arg(list, const char *)) != NULL; i++) assert_true(i < 15);
  va_end(list);
  api_run(arguments, NULL, ret_run);
  if (ret_run->code > 3 || strstr(ret_run->err, "Sanitizer") != NULL || strstr(ret_run->err, "runtime error") != NULL)
    fail_msg("orbit-replay %s: %d: %s", arguments[1], ret_run->code, ret_run->err);
}

static inline void rig_expect(const struct api_run *run, int code) {
  if (run->code != code) fail_msg("exit code %d instead of %d: %s%s", run->code, code, run->out, run->err);
}

/* The number in front of a word of the output: "12 events". */
static inline uint64_t rig_number(const struct api_run *run, const char *word) {
  const char *at = strstr(run->out, word);
  if (at == NULL) {
    fail_msg("no \"%s\" in: %s%s", word, run->out, run->err);
    return 0;
  }
  while (at > run->out && at[-1] == ' ') at--;
  while (at > run->out && at[-1] >= '0' && at[-1] <= '9') at--;
  return strtoull(at, NULL, 10);
}

/* Whole lives of tasks against the running server; NULL: waits for the end, else returns while it runs. */
static inline void rig_load(const struct rig *rig, const char *tasks, pid_t *ret_pid) {
  char program[512];
  (void)snprintf(program, sizeof program, "%s", api_program("orbit-bench"));
  const char *const arguments[] = {
      program,     "lifecycle", "--tasks", tasks,           "--inflight",    "16",
      "--workers", "4",         "--url",   rig->server.url, "--credentials", rig->server.credentials,
      NULL};
  pid_t pid = api_spawn(arguments, NULL, NULL, path_of(rig->server.directory, "bench.err").text);
  if (ret_pid != NULL) *ret_pid = pid;
  else assert_int_equal(api_wait_exit(pid), 0);
}

/* A task that nobody takes. The key is name-number. */
static inline void rig_submit(const struct rig *rig, const char *name, unsigned number, struct http_reply *reply) {
  char body[512], key[32];
  (void)snprintf(
      body, sizeof body,
      "{\"queue_id\":\"%s\",\"handler\":\"nobody\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":{\"n\":"
      "%u},\"task_timeout_ms\":600000,\"recovery_safety\":\"IDEMPOTENT\"}",
      rig->server.queue_id, number);
  (void)snprintf(key, sizeof key, "%s-%u", name, number);
  http_post(&rig->server, rig->server.token, "/v1/tasks", key, body, reply);
  if (reply->status != 201 && reply->status != 202) fail_msg("%d: %s", reply->status, reply->body);
}

/* Some tasks that are cancelled, with a reason on record. */
static inline void rig_cancel(const struct rig *rig, unsigned count) {
  struct http_reply reply;
  http_reply_init(&reply);
  for (unsigned i = 0; i < count; i++) {
    char key[32], target[128];
    rig_submit(rig, "cancelled", i, &reply);
    (void)snprintf(target, sizeof target, "/v1/tasks/%s:cancel", http_text(&reply, "data.task.id"));
    (void)snprintf(key, sizeof key, "cancel-%u", i);
    http_post(&rig->server, rig->server.token, target, key, "{\"reason\":\"not wanted any more\"}", &reply);
    if (reply.status >= 300) fail_msg("%d: %s", reply.status, reply.body);
  }
  http_reply_clear(&reply);
}

static inline void rig_fresh(const struct rig *rig) {
  cleanup(guard_close) int file = open(rig->file.text, O_WRONLY | O_TRUNC);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, rig->bytes.data, rig->bytes.size, 0), rig->bytes.size);
}

static inline void rig_write(const struct rig *rig, uint64_t at, const void *data, size_t size) {
  cleanup(guard_close) int file = open(rig->file.text, O_WRONLY);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, data, size, (off_t)at), size);
}

/* A name for a new directory. */
static inline struct path rig_out(struct rig *rig) {
  char name[32];
  (void)snprintf(name, sizeof name, "out-%u", rig->outs++);
  return path_of(rig->server.directory, name);
}

/* The server's data directory from here on. */
static inline void rig_serve(struct rig *rig, const char *data) {
  int length = snprintf(rig->server.data, sizeof rig->server.data, "%s", data);
  assert_in_range(length, 1, sizeof rig->server.data - 1);
}

static inline void rig_make(struct rig *rig, const char *tasks) {
  struct api_run run;
  memset(rig, 0, sizeof *rig);
  (void)api_program("orbit-replay");
  (void)api_program("orbit-bench");
  api_server_up(&rig->server);
  rig_load(rig, tasks, NULL);
  rig_cancel(rig, 20);
  assert_int_equal(api_server_stop(&rig->server, SIGTERM), 0);
  rig->sound = path_of(rig->server.directory, "sound");
  rig->copy = path_of(rig->server.directory, "copy");
  rig->file = path_of(rig->copy.text, "log/data.mdb");
  rig_replay(&run, "backup", rig->sound.text, "--data", rig->server.data, NULL);
  rig_expect(&run, 0);
  rig->events = rig_number(&run, " events");
  assert_true(rig->events > 100);
  api_run_clear(&run);
  fixture_copy(rig->sound.text, rig->copy.text);
  rig->bytes = test_file_read(path_of(rig->sound.text, "log/data.mdb").text);
  assert_non_null(rig->bytes.data);
}

static inline void rig_remove(struct rig *rig) {
  free((void *)(uintptr_t)rig->bytes.data);
  api_server_remove(&rig->server);
}

#endif
