/* The simulator itself: one seed is one run, what is wrong is found, made small, and can be repeated. */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define PROGRAM ORBIT_BIN_DIR "/orbit-sim"

struct run {
  int code;
  char out[16384];
};

/* Runs the program with these arguments, as a shell reads them. */
static void run(struct run *ret_run, const char *arguments) {
  char line[4096];
  (void)snprintf(line, sizeof line, "%s %s 2>&1", PROGRAM, arguments);
  FILE *out = popen(line, "r");
  assert_non_null(out);
  size_t size = fread(ret_run->out, 1, sizeof ret_run->out - 1, out);
  ret_run->out[size] = 0;
  int state = pclose(out);
  ret_run->code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

static void expect(const struct run *run, int code) {
  if (run->code != code) fail_msg("exit code %d instead of %d: %s", run->code, code, run->out);
}

static const char *line_of(const struct run *run, const char *beginning) {
  const char *line = strstr(run->out, beginning);
  if (line == NULL) fail_msg("no line \"%s…\" in: %s", beginning, run->out);
  return line;
}

static void one_seed_is_one_run(void **context) {
  (void)context;
  struct run first, again, other;
  run(&first, "--seed 11 --commands 2000");
  run(&again, "--seed 11 --commands 2000");
  run(&other, "--seed 12 --commands 1000");
  expect(&first, 0);
  expect(&other, 0);
  assert_string_equal(first.out, again.out);
  assert_string_not_equal(line_of(&first, "digest "), line_of(&other, "digest "));
  assert_non_null(line_of(&first, "violations 0"));
}

/* A rule that the model has wrong: found, made small, and the printed command shows it again. */
static void mistakes_are_found_and_shrunk(void **context) {
  (void)context;
  static const char *const mistakes[] = {"1", "4"};
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
    char arguments[2048];
    struct run found, repeated;
    unsigned steps = 0, faults = 0, left = 0;
    (void)snprintf(arguments, sizeof arguments, "--seed 1 --commands 20000 --mistake %s", mistakes[i]);
    run(&found, arguments);
    expect(&found, 1);
    assert_int_equal(
        sscanf(line_of(&found, "shrunk from "), "shrunk from %u steps with %u faults to %u steps", &steps, &faults, &left), 3);
    assert_in_range(left, 1, 20);
    assert_in_range(steps, 1000, 100000);
    const char *repeat = line_of(&found, "repeat with: orbit-sim ") + strlen("repeat with: orbit-sim ");
    (void)snprintf(arguments, sizeof arguments, "%.*s", (int)strcspn(repeat, "\n"), repeat);
    run(&repeated, arguments);
    expect(&repeated, 1);
    assert_non_null(line_of(&repeated, "violations 1"));
  }
}

static void what_cannot_be_meant_is_misuse(void **context) {
  (void)context;
  static const char *const rows[] = {"--seed x",  "--commands -1",   "--mistake 99", "--only 5,3",
                                     "--only 9-", "--only 99999999", "extra",        "--no-such"};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct run wrong;
    run(&wrong, rows[i]);
    expect(&wrong, 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_seed_is_one_run),
      cmocka_unit_test(mistakes_are_found_and_shrunk),
      cmocka_unit_test(what_cannot_be_meant_is_misuse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
