/* orbitd and its checkpoint as the operator sees them: a clean stop leaves nothing to fold, a kill a little; what does not fit
 * is ignored with a line that says why; deleting it costs a longer start and nothing else. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/server.h"
#include "base/guard.h"
#include "state/checkpoint.h"

static struct api_server server;
static struct http_reply reply;
static char views[300], views_file[320];

static int setup(void **state) {
  (void)state;
  http_reply_init(&reply);
  api_server_make(&server);
  (void)snprintf(views, sizeof views, "%s/views", server.data);
  (void)snprintf(views_file, sizeof views_file, "%s/data.mdb", views);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  http_reply_clear(&reply);
  api_server_remove(&server);
  return 0;
}

static void submit(const char *key) {
  char body[512];
  (void)snprintf(body, sizeof body,
                 "{\"queue_id\":\"%s\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\","
                 "\"payload\":{\"n\":1},\"task_timeout_ms\":3600000,\"business_key\":\"b\"}",
                 server.queue_id);
  http_post(&server, server.token, "/v1/tasks", key, body, &reply);
  assert_true(reply.status == 201 || reply.status == 200);
}

/* What the server shows of its tasks, byte for byte but for the request's id. */
static char *tasks_shown(void) {
  http_get(&server, server.token, "/v1/tasks?limit=100&business_key=b", &reply);
  http_expect(&reply, 200, NULL, NULL);
  const char *data = strstr(reply.body, "\"data\"");
  assert_non_null(data);
  return strdup(data);
}

static void expect_shown(const char *before) {
  cleanup(guard_free) char *now = tasks_shown();
  assert_string_equal(now, before);
}

static uint64_t log_number(const char *message, const char *field) {
  char text[64];
  if (!api_log_value(&server, message, field, text, sizeof text)) fail_msg("no line \"%s\" with %s", message, field);
  return strtoull(text, NULL, 10);
}

static bool log_has(const char *message, char *reason, size_t size) {
  return api_log_value(&server, message, "reason", reason, size);
}

/* What is behind the watermark when a server stops cleanly: nothing. */
static void a_clean_restart_folds_nothing(void **state) {
  (void)state;
  api_server_start(&server, NULL);
  for (unsigned i = 0; i < 20; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "k%u", i);
    submit(key);
  }
  cleanup(guard_free) char *before = tasks_shown();
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  uint64_t written = log_number("checkpoint written", "seq");
  api_server_start(&server, NULL);
  assert_int_equal(log_number("checkpoint loaded", "seq"), written);
  assert_int_equal(log_number("log replayed", "events"), 0);
  expect_shown(before);
  submit("k7"); /* its receipt is there */
  assert_int_equal(reply.status, 200);
  assert_string_equal(http_text(&reply, "data.deduplicated"), "true");
  expect_shown(before);
}

static void a_kill_leaves_the_rest_to_fold(void **state) {
  (void)state;
  api_server_start(&server, NULL);
  submit("a");
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  uint64_t written = log_number("checkpoint written", "seq");
  api_server_start(&server, NULL);
  for (unsigned i = 0; i < 20; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "k%u", i);
    submit(key);
  }
  cleanup(guard_free) char *before = tasks_shown();
  (void)api_server_stop(&server, SIGKILL);
  api_server_start(&server, NULL);
  uint64_t from = log_number("checkpoint loaded", "seq"), folded = log_number("log replayed", "events");
  assert_true(from >= written && from + folded == written + 1 + 20); /* node.started and twenty acceptances */
  expect_shown(before);
}

/* Read beside the running server, as the offline tools do. */
static bool holds_all_of_the_log(void) {
  struct journal_options options = {.read_only = true};
  struct journal *journal;
  struct state *loaded;
  struct checkpoint_position position = {0, 0};
  struct fault fault;
  assert_int_equal(journal_open(server.data, &options, &journal, &fault), STATUS_OK);
  if (checkpoint_load(views, journal, &loaded, &position, &fault) == STATUS_OK) state_free(loaded);
  bool whole = position.seq == journal_last_seq(journal);
  journal_close(journal, false);
  return whole;
}

/* While it runs it is followed: not only at the end. */
static void it_is_followed_while_the_server_runs(void **state) {
  (void)state;
  api_server_start(&server, NULL);
  submit("a");
  api_wait(holds_all_of_the_log());
  submit("b");
  api_wait(holds_all_of_the_log());
  (void)api_server_stop(&server, SIGKILL);
  api_server_start(&server, NULL);
  char reason[400];
  assert_false(log_has("checkpoint ignored", reason, sizeof reason));
  assert_int_equal(log_number("log replayed", "events"), 0);
}

static void deleted_views_are_made_again(void **state) {
  (void)state;
  api_server_start(&server, NULL);
  submit("a");
  cleanup(guard_free) char *before = tasks_shown();
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  uint64_t written = log_number("checkpoint written", "seq");
  char lock[320];
  (void)snprintf(lock, sizeof lock, "%s/lock.mdb", views);
  assert_int_equal(unlink(views_file), 0);
  assert_int_equal(unlink(lock), 0);
  assert_int_equal(rmdir(views), 0);
  api_server_start(&server, NULL);
  assert_int_equal(log_number("log replayed", "events"), written);
  expect_shown(before);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  assert_int_equal(log_number("checkpoint written", "seq"), written + 2); /* node.started, node.stopped */
  api_server_start(&server, NULL);
  assert_int_equal(log_number("checkpoint loaded", "seq"), written + 2);
  expect_shown(before);
}

static void overwrite(off_t from, struct bytes bytes, bool truncates) {
  int fd = open(views_file, O_WRONLY | O_CREAT | (truncates ? O_TRUNC : 0), 0600);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, bytes.data, bytes.size, from), bytes.size);
  assert_int_equal(close(fd), 0);
}

static void what_is_no_store_is_ignored_and_replaced(void **state) {
  (void)state;
  char reason[400];
  api_server_start(&server, NULL);
  submit("a");
  cleanup(guard_free) char *before = tasks_shown();
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  overwrite(0, bytes_text("this is no store"), true);
  api_server_start(&server, NULL);
  assert_true(log_has("checkpoint ignored", reason, sizeof reason));
  assert_non_null(strstr(reason, views));
  expect_shown(before);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  api_server_start(&server, NULL);
  assert_false(log_has("checkpoint ignored", reason, sizeof reason));
  assert_int_equal(log_number("log replayed", "events"), 0);
  expect_shown(before);
}

/* Damage in its pages: refused by the digest, or deleted with the process that it ended, at once or when somebody reads there
 * later. Either way the start after that serves all. */
static void damaged_pages_cost_a_start_at_most(void **state) {
  (void)state;
  api_server_start(&server, NULL);
  submit("a");
  cleanup(guard_free) char *before = tasks_shown();
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  struct bytes sound = test_file_read(views_file);
  for (size_t page = 2; page * 4096 < sound.size && page < 12; page++) {
    overwrite(0, sound, true);
    overwrite((off_t)(page * 4096 + 10), bytes_text("\xff\xff\xff\xff\xff\xff\xff\xff"), false);
    const char *const arguments[] = {api_program("orbitd"), "--data",      server.data,    "--listen", "127.0.0.1:0",
                                     "--worker-listen",     "127.0.0.1:0", "--log-format", "json",     NULL};
    server.pid = api_spawn(arguments, NULL, NULL, server.log);
    char address[64];
    bool up = false;
    api_wait((up = api_log_value(&server, "ready", "listen", address, sizeof address)) || access(views_file, F_OK) != 0);
    if (!up) {
      assert_int_equal(api_wait_exit(server.pid), 3);
      server.pid = 0;
    } else {
      int code = api_server_stop(&server, SIGTERM);
      assert_true(code == 0 || (code == 3 && access(views_file, F_OK) != 0));
    }
  }
  free((void *)(uintptr_t)sound.data);
  api_server_start(&server, NULL);
  expect_shown(before);
}

static void without_a_checkpoint_nothing_is_written(void **state) {
  (void)state;
  const char *const without[] = {"--checkpoint=false", NULL};
  api_server_start(&server, without);
  submit("a");
  cleanup(guard_free) char *before = tasks_shown();
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  assert_int_equal(access(views, F_OK), -1);
  api_server_start(&server, without);
  assert_int_not_equal(log_number("log replayed", "events"), 0);
  expect_shown(before);
}

/* `orbit-replay rebuild DIR` makes what the follower makes; it may take its place. */
static void a_rebuilt_checkpoint_takes_its_place(void **state) {
  (void)state;
  const char *const without[] = {"--checkpoint=false", NULL};
  api_server_start(&server, without);
  submit("a"), submit("b");
  cleanup(guard_free) char *before = tasks_shown();
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  const char *const arguments[] = {api_program("orbit-replay"), "--data", server.data, "rebuild", views, NULL};
  struct api_run run;
  api_run(arguments, NULL, &run);
  if (run.code != 0) fail_msg("rebuild: %s", run.err);
  assert_non_null(strstr(run.out, "digest"));
  api_run_clear(&run);
  api_run(arguments, NULL, &run); /* never over one that is there */
  assert_int_equal(run.code, 1);
  assert_non_null(strstr(run.err, "exists"));
  api_run_clear(&run);
  api_server_start(&server, NULL);
  assert_int_equal(log_number("log replayed", "events"), 0);
  expect_shown(before);
}

/* ---- what has ended ---- */

static uint64_t metric(const char *name) {
  http_get(&server, NULL, "/metrics", &reply);
  assert_int_equal(reply.status, 200);
  const char *at = strstr(reply.body, name);
  while (at != NULL && (at == reply.body || at[-1] != '\n')) at = strstr(at + 1, name);
  assert_non_null(at);
  return strtoull(at + strlen(name), NULL, 10);
}

/* Returns the task's id; valid until the next call. */
static const char *submit_and_cancel(const char *key) {
  static char id[64];
  char target[128];
  submit(key);
  (void)snprintf(id, sizeof id, "%s", http_text(&reply, "data.task.id"));
  (void)snprintf(target, sizeof target, "/v1/tasks/%s:cancel", id);
  http_post(&server, server.token, target, key, "{\"reason\":\"not wanted\"}", &reply);
  assert_int_equal(reply.status, 200);
  return id;
}

static int get_task(const char *id) {
  char target[128];
  (void)snprintf(target, sizeof target, "/v1/tasks/%s", id);
  http_get(&server, server.token, target, &reply);
  return reply.status;
}

static void expect_sound(void) {
  const char *const arguments[] = {api_program("orbit-replay"), "--data", server.data, "verify", NULL};
  struct api_run run;
  api_run(arguments, NULL, &run);
  if (run.code != 0) fail_msg("verify: %s%s", run.out, run.err);
  api_run_clear(&run);
}

static void what_has_left_memory_is_shown_all_the_same(void **state) {
  static const char *const at_once[] = {"--hot-window", "0s", "--metrics-open", NULL};
  (void)state;
  api_server_start(&server, NULL);
  for (unsigned i = 0; i < 10; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "k%u", i);
    (void)submit_and_cancel(key);
  }
  cleanup(guard_free) char *before = tasks_shown();
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  api_server_start(&server, at_once);
  assert_int_equal(metric("orbit_tasks_in_memory "), 0);
  expect_shown(before);
  submit("k3");
  assert_string_equal(http_text(&reply, "data.deduplicated"), "true");
  (void)submit_and_cancel("new");
  api_wait(metric("orbit_tasks_left_memory ") == 11);
  free(before);
  before = tasks_shown();
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  expect_sound();
  assert_int_equal(unlink(views_file), 0);
  api_server_start(&server, at_once);
  expect_shown(before);
  api_wait(metric("orbit_tasks_left_memory ") == 11);
  expect_shown(before);
}

static void what_is_old_is_gone_and_the_log_keeps_it(void **state) {
  static const char *const soon[] = {"--retention", "1s", "--hot-window", "0s", "--metrics-open", NULL};
  (void)state;
  api_server_start(&server, NULL);
  cleanup(guard_free) char *id = strdup(submit_and_cancel("a"));
  assert_int_equal(get_task(id), 200);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  api_server_start(&server, soon);
  api_wait(get_task(id) == 404);
  submit("a");
  assert_int_equal(reply.status, 201);
  assert_string_not_equal(http_text(&reply, "data.task.id"), id);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  expect_sound();
  api_server_start(&server, NULL);
  assert_int_equal(get_task(id), 404);
  const char *const arguments[] = {api_program("orbit-replay"), "--data", server.data, "state", id, NULL};
  struct api_run run;
  api_run(arguments, NULL, &run);
  assert_int_equal(run.code, 0);
  assert_non_null(strstr(run.out, "CANCELLED"));
  api_run_clear(&run);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(a_clean_restart_folds_nothing),
      CASE(a_kill_leaves_the_rest_to_fold),
      CASE(it_is_followed_while_the_server_runs),
      CASE(deleted_views_are_made_again),
      CASE(what_is_no_store_is_ignored_and_replaced),
      CASE(damaged_pages_cost_a_start_at_most),
      CASE(without_a_checkpoint_nothing_is_written),
      CASE(a_rebuilt_checkpoint_takes_its_place),
      CASE(what_has_left_memory_is_shown_all_the_same),
      CASE(what_is_old_is_gone_and_the_log_keeps_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
