/* Long work on large logs: memory that does not grow with the log where the question allows it, and what is said meanwhile, on
 * a terminal and elsewhere. */
#include <pty.h>
#include <sys/resource.h>

#include "api/server.h"
#include "journal/fixture.h"
#include "reading/out.h"
#include "reading/tool.h"

enum { small_commits = 2, large_commits = 40, commit_events = 1000, text_chars = 600 };

/* ---- memory ---- */

/* In a process of its own: what this one has had counts for the programs that it starts. */
static struct path log_make(const char *top, const char *name, unsigned commits) {
  const struct path data = path_of(top, name);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    struct journal *journal = fixture_create(data.text);
    for (unsigned i = 0; i < commits; i++) fixture_commit(journal, commit_events, text_chars);
    journal_close(journal, true);
    _exit(0);
  }
  assert_int_equal(api_wait_exit(pid), 0);
  return data;
}

/* The most memory that the program had, in bytes. Its own exit code is not looked at: the log is no log of a server. */
static uint64_t memory_of(const char *const *arguments) {
  struct rusage usage;
  int status;
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    int null = open("/dev/null", O_RDWR);
    if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0) _exit(127);
    /* what a sanitizer keeps of freed memory is not the program's */
    (void)setenv("ASAN_OPTIONS", "quarantine_size_mb=1:malloc_context_size=0:detect_leaks=0", 1);
    (void)execv(arguments[0], (char **)(uintptr_t)arguments);
    _exit(127);
  }
  assert_int_equal(wait4(pid, &status, 0, &usage), pid);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
  return (uint64_t)usage.ru_maxrss * 1024;
}

static void memory_does_not_grow_with_the_log(void **state) {
  (void)state;
  static const struct {
    const char *program, *command, *option, *value;
  } rows[] = {
      {"orbit-replay", "verify", "--chain-only", NULL},
      {"orbit-replay", "stats", NULL, NULL},
      {"orbit-audit", "log", "-o", "jsonl"},
      {"orbit-audit", "log", "-r", NULL},
      {"orbit-audit", "verify", NULL, NULL},
      {"orbit-audit", "export", NULL, NULL},
  };
  char *top = test_directory_make();
  const struct path small = log_make(top, "small", small_commits), large = log_make(top, "large", large_commits);
  const uint64_t more = (uint64_t)(large_commits - small_commits) * commit_events * text_chars;
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char program[512];
    uint64_t memory[2];
    (void)snprintf(program, sizeof program, "%s", api_program(rows[i].program));
    for (unsigned k = 0; k < 2; k++) {
      const char *data = k == 0 ? small.text : large.text;
      const struct path out = path_of(top, k == 0 ? "small.jsonl" : "large.jsonl");
      const bool exports = strcmp(rows[i].command, "export") == 0;
      const char *const arguments[] = {program,       "--data", data, rows[i].command, exports ? out.text : rows[i].option,
                                       rows[i].value, NULL};
      memory[k] = memory_of(arguments);
    }
    print_message("%s %s: %" PRIu64 " KiB, and %" PRIu64 " KiB with %" PRIu64 " KiB more of log\n", rows[i].program,
                  rows[i].command, memory[0] / 1024, memory[1] / 1024, more / 1024);
    assert_true(memory[1] < memory[0] + more / 2);
  }
  test_directory_remove(top);
}

/* ---- progress ---- */

/* What stderr is given while this much of 1000 is done; on a terminal or into a pipe. */
static void progress_seen(bool terminal, char *out, size_t size) {
  struct progress progress;
  int ends[2], saved = dup(STDERR_FILENO);
  if (terminal) assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
  else assert_int_equal(pipe(ends), 0);
  assert_true(saved >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
  progress_begin(&progress, "events", 1000);
  progress_at(&progress, 1); /* too early to say anything */
  progress.interval_us = 1;
  progress.shown_us--;
  progress_at(&progress, 500);
  progress_end(&progress);
  (void)fflush(stderr);
  assert_true(dup2(saved, STDERR_FILENO) >= 0);
  ssize_t got = read(ends[0], out, size - 1);
  assert_true(got > 0);
  out[got] = 0;
  (void)close(saved), (void)close(ends[0]), (void)close(ends[1]);
}

static void a_terminal_gets_a_bar_that_goes_away(void **state) {
  (void)state;
  char text[512];
  progress_seen(true, text, sizeof text);
  assert_int_equal(strncmp(text, "\r[###############...............]  50%  ", 39), 0);
  assert_non_null(strstr(text, " events/s  "));
  assert_non_null(strstr(text, " s left "));
  assert_non_null(strstr(text, "\r\033[K")); /* nothing of it is left */
  assert_null(strchr(text, '\n'));
}

/* What a data format gives of a text that would rule a terminal; on one, or into a pipe. */
static void data_seen(bool terminal, char *out, size_t size) {
  static const char text[] =
      "{\"x\":\"\x1b[2J\xc2\x9b"
      "2J\x7f\xe2\x80\xae\xc3\xa9\xff\"}\n";
  struct out data;
  int ends[2], saved = dup(STDOUT_FILENO);
  if (terminal) assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
  else assert_int_equal(pipe(ends), 0);
  (void)fflush(stdout);
  assert_true(saved >= 0 && dup2(ends[1], STDOUT_FILENO) >= 0);
  out_begin(&data);
  data.is_data = true;
  buffer_append_text(&data.text, text);
  int code = out_end(&data, 0);
  bool printed = tool_print(bytes_text(text));
  (void)fflush(stdout);
  assert_true(dup2(saved, STDOUT_FILENO) >= 0);
  assert_int_equal(code, 0);
  assert_true(printed);
  size_t used = 0;
  for (unsigned lines = 0; lines < 2;) { /* a terminal may give them one by one */
    ssize_t got = read(ends[0], out + used, size - 1 - used);
    assert_true(got > 0);
    for (ssize_t i = 0; i < got; i++) lines += out[used + (size_t)i] == '\n';
    used += (size_t)got;
  }
  out[used] = 0;
  (void)close(saved), (void)close(ends[0]), (void)close(ends[1]);
}

static void data_on_a_terminal_is_spelled_out(void **state) {
  (void)state;
  static const char line[] = "{\"x\":\"\\u001b[2J\\u009b2J\\u007f\\u202e\xc3\xa9\\u00ff\"}\r\n"; /* the \r is the terminal's */
  char text[512], twice[512];
  data_seen(true, text, sizeof text);
  (void)snprintf(twice, sizeof twice, "%s%s", line, line);
  assert_string_equal(text, twice);
  data_seen(false, text, sizeof text);
  assert_non_null(strchr(text, '\x1b')); /* for a program byte for byte */
  assert_null(strstr(text, "\\u"));
}

static void everything_else_gets_lines(void **state) {
  (void)state;
  char text[512];
  progress_seen(false, text, sizeof text);
  assert_int_equal(strncmp(text, "500 of 1000 events, 50%, ", 25), 0);
  assert_non_null(strstr(text, "/s, "));
  assert_non_null(strstr(text, " s left\n"));
  assert_null(strpbrk(text, "\r\033"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_does_not_grow_with_the_log),
      cmocka_unit_test(a_terminal_gets_a_bar_that_goes_away),
      cmocka_unit_test(everything_else_gets_lines),
      cmocka_unit_test(data_on_a_terminal_is_spelled_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
