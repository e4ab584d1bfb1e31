/* orbit-bench as users run it: each mode in small, one object a line, and what it refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/guard.h"
#include "load/scan.h"
#include "support/support.h"

/* Runs orbit-bench with these arguments; its standard output into out, its exit code returned. */
static int run(const char *arguments, char *out, size_t size) {
  char command[1024];
  (void)snprintf(command, sizeof command, "%s/orbit-bench %s", ORBIT_BIN_DIR, arguments);
  FILE *pipe = popen(command, "re");
  assert_non_null(pipe);
  size_t got = fread(out, 1, size - 1, pipe);
  out[got] = '\0';
  int result = pclose(pipe);
  assert_true(WIFEXITED(result));
  return WEXITSTATUS(result);
}

static double number(struct bytes object, const char *name) {
  struct bytes value = scan_member(object, name);
  char text[64] = "";
  assert_non_null(value.data);
  assert_true(value.size < sizeof text);
  memcpy(text, value.data, value.size);
  char *end;
  double result = strtod(text, &end);
  assert_true(end != text && *end == '\0');
  return result;
}

static void every_mode_gives_an_object(void **state) {
  static const struct {
    const char *arguments, *mode;
    double tasks, commits_min; /* a life is at least accepted, started and finished */
    bool lives, restarts;
  } rows[] = {
      {"submit --tasks 300 --inflight 16", "submit", 300, 0, false, false},
      {"submit --tasks 20 --inflight 1 --payload 4000", "submit", 20, 1, false, false},
      {"lifecycle --tasks 200 --inflight 8 --workers 4", "lifecycle", 200, 0, true, false},
      {"lifecycle --tasks 200 --inflight 8 --workers 2 --capacity 16", "lifecycle", 200, 0, true, false},
      {"lifecycle --tasks 10 --inflight 1 --workers 1", "lifecycle", 10, 1, true, false},
      {"paced --tasks 50 --rate 200 --workers 4", "paced", 50, 0, true, false},
      {"batch --tasks 90 --batch 30 --inflight 2", "batch", 90, 0, false, false},
      {"mixed --tasks 300 --inflight 8", "mixed", 300, 0, false, false},
      {"restart --tasks 300 --inflight 32", "restart", 300, 0, false, true},
      {"restart --tasks 100 --inflight 32 --workers 4", "restart", 100, 0, true, true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char arguments[256], out[4096];
    (void)snprintf(arguments, sizeof arguments, "%s -o jsonl", rows[i].arguments);
    assert_int_equal(run(arguments, out, sizeof out), 0);
    char *newline = strchr(out, '\n');
    assert_true(newline != NULL && newline[1] == '\0');
    struct bytes object = bytes_of(out, (size_t)(newline - out));
    assert_true(bytes_equal_text(scan_text(object, "mode"), rows[i].mode));
    assert_true(number(object, "tasks") == rows[i].tasks);
    assert_true(number(object, "seconds") > 0 && number(object, "tasks_per_s") > 0);
    assert_true(number(object, "submit_p50_us") > 0 && number(object, "submit_p99_us") >= number(object, "submit_p50_us"));
    assert_true(bytes_equal_text(scan_member(object, "life_p50_us"), "null") == !rows[i].lives);
    if (rows[i].lives) assert_true(number(object, "life_p99_us") >= number(object, "life_p50_us"));
    assert_true(number(object, "server_cpu_us_per_task") > 0 && number(object, "rss_bytes") > 0);
    assert_true(number(object, "syncs_per_task") > rows[i].commits_min && number(object, "disk_bytes_per_task") > 0);
    if (rows[i].restarts) {
      assert_true(number(object, "replay_events") >= rows[i].tasks * (rows[i].lives ? 5 : 1));
      assert_true(number(object, "first_claim_seconds") > 0 && number(object, "ready_seconds") > 0);
    }
  }
}

/* Nothing is submitted, and those who are connected stay so. The server looks at its clocks every second: that much it spends.
 */
static void idle_tells_what_a_second_costs(void **state) {
  char out[4096];
  (void)state;
  assert_int_equal(run("idle --seconds 2 --idle-workers 30 --feed-readers 2 -o jsonl", out, sizeof out), 0);
  struct bytes object = bytes_of(out, strlen(out) - 1);
  assert_true(bytes_equal_text(scan_text(object, "mode"), "idle"));
  assert_true(number(object, "idle_workers") == 30 && number(object, "feed_readers") == 2);
  assert_true(number(object, "seconds") >= 2 && number(object, "server_cpu_us_per_s") > 0);
  assert_null(scan_member(object, "tasks").data);
}

static void readers_of_the_feed_are_told(void **state) {
  char out[4096];
  (void)state;
  assert_int_equal(run("paced --tasks 30 --rate 30 --workers 2 --idle-workers 5 --feed-readers 3 -o jsonl", out, sizeof out),
                   0);
  struct bytes object = bytes_of(out, strlen(out) - 1);
  assert_true(number(object, "feed_readers") == 3 && number(object, "idle_workers") == 5);
  /* Five events a life and that of the queue, to each; how many come before the end is a matter of time. */
  assert_true(number(object, "feed_events") > 0 && number(object, "feed_events") <= 3 * (30 * 5 + 1));
}

/* The last batch is a whole one. */
static void batches_are_whole(void **state) {
  char out[4096];
  (void)state;
  assert_int_equal(run("batch --tasks 25 --batch 10 -o jsonl", out, sizeof out), 0);
  struct bytes object = bytes_of(out, strlen(out) - 1);
  assert_true(number(object, "tasks") == 30 && number(object, "batch") == 10);
}

/* One object a step, the history growing; each knows what its own tasks cost. */
static void growth_is_told_by_steps(void **state) {
  static const double steps[][2] = {{1000, 500}, {1500, 750}}; /* history, and the tasks measured */
  char out[8192];
  (void)state;
  assert_int_equal(run("grow --tasks 1500 --workers 2 --capacity 8 --inflight 16 -o jsonl", out, sizeof out), 0);
  char *at = out;
  for (size_t i = 0; i < 2; i++) {
    char *newline = strchr(at, '\n');
    assert_non_null(newline);
    struct bytes object = bytes_of(at, (size_t)(newline - at));
    assert_true(bytes_equal_text(scan_text(object, "mode"), "grow"));
    assert_true(number(object, "history") == steps[i][0]);
    assert_true(number(object, "tasks") <= steps[i][1] && number(object, "tasks") > 0);
    assert_true(number(object, "life_p50_us") > 0 && number(object, "disk_bytes_per_task") > 500);
    at = newline + 1;
  }
  assert_true(*at == '\0');
}

/* Ratios to the last earlier result of the same load, and to no other. */
static void compares_with_an_earlier_result(void **state) {
  static const char earlier[] =
      "not JSON\n"
      "{\"mode\":\"submit\",\"inflight\":4,\"payload\":300,\"tasks\":1,\"tasks_per_s\":9}\n"
      "{\"mode\":\"submit\",\"inflight\":4,\"payload\":300,\"tasks\":10,\"tasks_per_s\":null}\n"
      "{\"mode\":\"submit\",\"inflight\":5,\"payload\":300,\"tasks\":1}\n"
      "{\"mode\":\"batch\",\"inflight\":4,\"payload\":300,\"tasks\":1}\n";
  static const char *const rows[][2] = {{"submit --tasks 40 --inflight 4", "\"ratio\":{\"tasks\":4.0000}"},
                                        {"submit --tasks 40 --inflight 6", NULL}};
  (void)state;
  cleanup(guard_free) char *directory = test_directory_make();
  char path[512], arguments[1024], out[4096];
  (void)snprintf(path, sizeof path, "%s/earlier.jsonl", directory);
  FILE *file = fopen(path, "we");
  assert_true(file != NULL && fputs(earlier, file) >= 0 && fclose(file) == 0);
  for (size_t i = 0; i < 2; i++) {
    (void)snprintf(arguments, sizeof arguments, "%s --against %s -o jsonl", rows[i][0], path);
    assert_int_equal(run(arguments, out, sizeof out), 0);
    if (rows[i][1] != NULL) assert_non_null(strstr(out, rows[i][1]));
    else assert_null(strstr(out, "ratio"));
  }
  (void)snprintf(arguments, sizeof arguments, "submit --tasks 40 --inflight 4 --against %s", path);
  assert_int_equal(run(arguments, out, sizeof out), 0);
  assert_non_null(strstr(out, "  x4.000\n"));
  assert_int_equal(run("submit --tasks 1 --against /nowhere 2>&1", out, sizeof out), 3);
  test_directory_remove(directory);
  directory = NULL;
}

/* Open loop: the rate is kept, so that 40 tasks at 100 a second take not much less than 0.4 s. */
static void paced_keeps_its_rate(void **state) {
  char out[4096];
  (void)state;
  assert_int_equal(run("paced --tasks 40 --rate 100 --workers 2 -o jsonl", out, sizeof out), 0);
  assert_true(number(bytes_of(out, strlen(out) - 1), "seconds") >= 0.39);
}

static void text_is_for_people(void **state) {
  char out[4096];
  (void)state;
  assert_int_equal(run("submit --tasks 50", out, sizeof out), 0);
  assert_true(strncmp(out, "submit\n", 7) == 0);
  assert_non_null(strstr(out, "tasks per second"));
  assert_null(strstr(out, "submit to finish"));
}

static void misuse_is_refused(void **state) {
  static const char *const rows[] = {
      "",
      "nothing",
      "submit extra",
      "submit --workers 2",
      "submit --rate 5",
      "restart --url http://127.0.0.1:1",
      "submit --credentials /nowhere",
      "submit --inflight 0",
      "submit --tasks x",
      "submit --payload 42",
      "paced --rate 0",
      "submit -o csv",
      "submit --no-such-option",
      "submit --batch 5",
      "batch --batch 0",
      "batch --batch 1001",
      "batch --workers 1",
      "grow --url http://127.0.0.1:1",
      "grow --seconds 1",
      "grow --idle-workers 1",
      "restart --feed-readers 1",
      "submit --feed-readers 1001",
      "idle --tasks 5",
      "idle --workers 1",
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char arguments[256], out[4096];
    (void)snprintf(arguments, sizeof arguments, "%s 2>&1", rows[i]);
    assert_int_equal(run(arguments, out, sizeof out), 2);
    assert_true(strncmp(out, "orbit-bench: ", 13) == 0 || strstr(out, "/orbit-bench: ") != NULL);
  }
}

static void a_server_that_is_not_there_is_said(void **state) {
  char out[4096];
  (void)state;
  assert_int_equal(run("submit --url http://127.0.0.1:1 --credentials /nowhere 2>&1", out, sizeof out), 3);
  assert_non_null(strstr(out, "/nowhere"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_mode_gives_an_object),
      cmocka_unit_test(batches_are_whole),
      cmocka_unit_test(idle_tells_what_a_second_costs),
      cmocka_unit_test(readers_of_the_feed_are_told),
      cmocka_unit_test(growth_is_told_by_steps),
      cmocka_unit_test(compares_with_an_earlier_result),
      cmocka_unit_test(paced_keeps_its_rate),
      cmocka_unit_test(text_is_for_people),
      cmocka_unit_test(misuse_is_refused),
      cmocka_unit_test(a_server_that_is_not_there_is_said),
  };
  return cmocka_run_group_tests_name("bench", tests, NULL, NULL);
}
