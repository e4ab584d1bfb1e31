/* orbitctl task watch and attempts beside a worker, and everything on a terminal. */
#include <sys/ioctl.h>
#include <termios.h>

#include "api/orbitctl_fixture.h"
#include "orbit.h"

static struct orbit_worker *worker;

/* ---- With a worker ---- */

/* The first attempt of "flaky" is refused as safe to try again; "unsure" never knows; the others do what they are called. */
static enum orbit_outcome work(void *context, const struct orbit_assignment *assignment, struct orbit_report *report) {
  (void)context;
  if (strcmp(assignment->handler, "flaky") == 0 && assignment->number == 1)
    return orbit_report_failure(report, "TEMPORARY_REJECTION", true, "later, please", NULL, 0);
  if (strcmp(assignment->handler, "unsure") == 0) return orbit_report_unknown(report, "NO_IDEA", NULL, NULL, 0);
  return orbit_report_success(report, "{\"ok\":1.0}", 10);
}

static void start_worker(void) {
  static const char *const handlers[] = {"flaky", "unsure", "steady"};
  const char *const queues[] = {server.queue_id};
  struct orbit_worker_options options = ORBIT_WORKER_OPTIONS_INIT;
  struct orbit_error error;
  options.url = server.url;
  options.token = server.token;
  options.name = "the worker";
  options.queue_ids = queues;
  options.queue_count = 1;
  if (orbit_worker_new(&options, &worker, &error) != ORBIT_OK) fail_msg("%s", error.message);
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal(orbit_worker_handle(worker, handlers[i], "v1", work, NULL, &error), ORBIT_OK);
  assert_int_equal(orbit_worker_start(worker, &error), ORBIT_OK);
  if (orbit_worker_wait_ready(worker, api_wait_ms_max, &error) != ORBIT_OK) fail_msg("%s", error.message);
}

static int end_worker(void **state) {
  (void)state;
  orbit_worker_free(worker);
  worker = NULL;
  return 0;
}

static unsigned lines_of(const char *text) {
  unsigned lines = 0;
  for (; *text != '\0'; text++) lines += *text == '\n';
  return lines;
}

static void follows_a_task_to_its_success(void **state) {
  (void)state;
  struct api_run run;
  start_worker();
  cleanup(guard_free) char *id = submitted("follow", "flaky", "60000", "3");
  api_orbitctl(&as_usual, &run, "task", "watch", id, "--interval-ms", "50", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "SUCCEEDED");
  expect_in(run.out, "attempt 2/3");
  assert_null(strchr(run.out, '\r')); /* no terminal: a line a change */
  assert_string_equal(run.err, "");
  api_run_clear(&run);

  api_orbitctl(&as_usual, &run, "task", "watch", id, "-o", "jsonl", NULL);
  expect_code(&run, 0);
  assert_int_equal(lines_of(run.out), 1);
  cleanup(guard_free) char *result = value_of(run.out, "result");
  assert_string_equal(result, "{\"ok\":1.0}");
  api_run_clear(&run);

  /* and what became of each attempt */
  char target[128];
  (void)snprintf(target, sizeof target, "/v1/tasks/%s/attempts", id);
  http_get(&server, server.token, target, &reply);
  api_orbitctl(&as_usual, &run, "task", "attempts", id, "-o", "json", NULL);
  expect_code(&run, 0);
  struct bytes data = http_value(&reply, "data");
  assert_int_equal(run.out_size, data.size + 1);
  assert_int_equal(memcmp(run.out, data.data, data.size), 0);
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "attempts", id, NULL);
  expect_code(&run, 0);
  assert_int_equal(lines_of(run.out), 3);
  expect_in(run.out, "RETRYABLE_FAILURE");
  expect_in(run.out, "TEMPORARY_REJECTION");
  expect_in(run.out, "SUCCEEDED");
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "task", "attempts", id, "-o", "csv", NULL);
  assert_int_equal(lines_of(run.out), 3);
  expect_in(run.out, "the worker");
  expect_in(run.out, "\"later, please\"");
  api_run_clear(&run);
}

static void follows_a_task_to_another_end(void **state) {
  (void)state;
  static const struct {
    const char *key, *handler, *timeout_ms, *ends;
  } rows[] = {{"late", "nobody-does-this", "300", "FAILED"}, {"unsure", "unsure", "60000", "NEEDS_REVIEW"}};
  start_worker();
  for (unsigned i = 0; i < 2; i++) {
    struct api_run run;
    cleanup(guard_free) char *id = submitted(rows[i].key, rows[i].handler, rows[i].timeout_ms, "1");
    api_orbitctl(&as_usual, &run, "task", "watch", id, "--interval-ms", "50", "-o", "csv", NULL);
    expect_code(&run, 1);
    expect_in(run.out, rows[i].ends);
    assert_int_equal(strncmp(run.out, "id,state,", 9), 0);
    assert_null(strstr(run.out + 1, "id,state,")); /* one head */
    api_run_clear(&run);
  }
  struct api_run run;
  api_orbitctl(&as_usual, &run, "task", "watch", "0000018bcfe568000000000000000a01", NULL);
  expect_code(&run, 1);
  expect_in(run.err, "NOT_FOUND");
  api_run_clear(&run);
}

static bool file_has(const char *path, const char *text) {
  struct bytes found = test_file_read(path);
  bool has = found.data != NULL && memmem(found.data, found.size, text, strlen(text)) != NULL;
  free((void *)(uintptr_t)found.data);
  return has;
}

/* A server that is restarted loses nobody who watches. */
static void follows_a_task_over_a_restart(void **state) {
  (void)state;
  cleanup(guard_free) char *id = submitted("restart", "steady", "60000", "1");
  char out[path_bytes], err[path_bytes];
  (void)snprintf(out, sizeof out, "%s", at("watch.out"));
  (void)snprintf(err, sizeof err, "%s", at("watch.err"));
  const char *const arguments[] = {api_program("orbitctl"), "task", "watch", id, "--interval-ms", "50", NULL};
  pid_t pid = api_spawn(arguments, &as_usual, out, err);
  api_wait(file_has(out, "WAITING"));
  assert_int_equal(api_server_stop(&server, SIGKILL), 128 + SIGKILL);
  api_wait(file_has(err, "asking again"));
  api_server_start(&server, NULL);
  start_worker();
  assert_int_equal(api_wait_exit(pid), 0);
  assert_true(file_has(out, "SUCCEEDED"));
}

/* For ever is also over a restart, and each event comes once. */
static void follows_the_events_over_a_restart(void **state) {
  (void)state;
  cleanup(guard_free) char *before = submitted("events-before", "none", "60000", "1");
  char out[path_bytes], err[path_bytes];
  (void)snprintf(out, sizeof out, "%s", at("events.out"));
  (void)snprintf(err, sizeof err, "%s", at("events.err"));
  const char *const arguments[] = {api_program("orbitctl"), "events", "-f",    "--after", "0", "--types",
                                   "task.accepted",         "-o",     "jsonl", NULL};
  pid_t pid = api_spawn(arguments, &as_usual, out, err);
  api_wait(file_has(out, before));
  assert_int_equal(api_server_stop(&server, SIGKILL), 128 + SIGKILL);
  api_wait(file_has(err, "asking again"));
  api_server_start(&server, NULL);
  cleanup(guard_free) char *after = submitted("events-after", "none", "60000", "1");
  api_wait(file_has(out, after));
  assert_int_equal(kill(pid, SIGTERM), 0);
  assert_int_equal(api_wait_exit(pid), 128 + SIGTERM);
  struct bytes text = test_file_read(out);
  const uint8_t *first = memmem(text.data, text.size, before, strlen(before));
  assert_non_null(first);
  assert_null(memmem(first + 1, (size_t)(text.data + text.size - first) - 1, before, strlen(before)));
  free((void *)(uintptr_t)text.data);
}

/* ---- On a terminal ---- */

struct terminal {
  int screen, program; /* our end and its end */
};

static void terminal_open(struct terminal *terminal, unsigned short columns) {
  struct winsize size = {.ws_row = 24, .ws_col = columns};
  terminal->screen = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true(terminal->screen >= 0);
  assert_int_equal(grantpt(terminal->screen), 0);
  assert_int_equal(unlockpt(terminal->screen), 0);
  terminal->program = open(ptsname(terminal->screen), O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true(terminal->program >= 0);
  assert_int_equal(ioctl(terminal->program, TIOCSWINSZ, &size), 0);
}

/* Runs the command on a terminal of so many columns; returns what came on the screen. The caller frees. */
static char *on_a_terminal(unsigned short columns, const char *const *variables, const char *const *arguments) {
  struct terminal terminal;
  struct api_run_options options = {.environment = variables};
  cleanup(buffer_clear) struct buffer text;
  buffer_init(&text, 1 << 20);
  terminal_open(&terminal, columns);
  const int fds[3] = {terminal.program, terminal.program, terminal.program};
  pid_t pid = api_spawn_on(arguments, &options, fds);
  guard_close(&terminal.program);
  for (;;) {
    uint8_t *room = buffer_reserve(&text, 4096);
    ssize_t got = read(terminal.screen, room, 4096);
    if (got <= 0) break; /* EIO: the program has closed it */
    buffer_commit(&text, (size_t)got);
  }
  (void)api_wait_exit(pid);
  guard_close(&terminal.screen);
  return strndup((const char *)text.data, text.size);
}

/* The longest line, in columns: colours take none, and every character of these tests takes one. */
static unsigned widest_line(const char *text) {
  unsigned widest = 0, width = 0;
  for (; *text != '\0'; text++) {
    if (*text == '\033') {
      while (*text != '\0' && *text != 'm' && *text != 'K') text++;
      continue;
    }
    if (*text == '\n' || *text == '\r') width = 0;
    else if (((unsigned char)*text & 0xC0) != 0x80) width++;
    if (width > widest) widest = width;
  }
  return widest;
}

static void fits_the_terminal(void **state) {
  (void)state;
  static const unsigned short widths[] = {40, 60, 80, 100, 200};
  start_worker();
  cleanup(guard_free) char *id = submitted("terminal", "flaky", "60000", "2");
  api_wait(has_state(id, "SUCCEEDED"));
  for (unsigned i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    const char *const attempts[] = {api_program("orbitctl"), "task", "attempts", id, NULL};
    const char *const get[] = {attempts[0], "task", "get", id, NULL};
    cleanup(guard_free) char *table = on_a_terminal(widths[i], environment, attempts);
    expect_in(table, "STATE");
    assert_in_range(widest_line(table), 20, widths[i]);
    cleanup(guard_free) char *fields = on_a_terminal(widths[i], environment, get);
    assert_in_range(widest_line(fields), 20, widths[i] < 60 ? 60 : widths[i]); /* ids are never cut */
  }
}

static void colours_terminals_only(void **state) {
  (void)state;
  cleanup(guard_free) char *id = submitted("colours", "none", "60000", "1");
  const char *const arguments[] = {api_program("orbitctl"), "task", "attempts", id, NULL};
  static const char *const terms[] = {"TERM=xterm", "TERM=dumb"};
  for (unsigned i = 0; i < 4; i++) {
    const char *const variables[] = {url_variable, credentials_variable, terms[i % 2], i < 2 ? NULL : "NO_COLOR=1", NULL};
    cleanup(guard_free) char *screen = on_a_terminal(80, variables, arguments);
    expect_in(screen, "STATE");
    assert_int_equal(strchr(screen, '\033') != NULL, i == 0);
  }
}

/* Whatever the format: what somebody else has put into a task does not rule the terminal of whoever looks at it. */
static void keeps_the_terminal_its_owners(void **state) {
  (void)state;
  static const char *const formats[] = {"text", "json", "jsonl", "csv"};
  static const char key[] =
      "a\033[2J\xc2\x9b"
      "2Jb\xe2\x80\xae\rc";
  static const char *const plain[] = {"TERM=xterm", "NO_COLOR=1"};
  struct api_run run;
  api_orbitctl(&as_usual, &run, "task", "submit", "--handler", "none", "--handler-version", "v1", "--payload",
               "{\"x\":\"\xc2\x9b"
               "31m\x7f\"}",
               "--business-key", key, "--key", "control-characters", "-o", "json", NULL);
  expect_code(&run, 0);
  expect_in(run.out,
            "\xc2\x9b"
            "31m\x7f"); /* a program gets it byte for byte */
  cleanup(guard_free) char *id = value_of(run.out, "task.id");
  api_run_clear(&run);
  for (unsigned i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    const char *const variables[] = {url_variable, credentials_variable, plain[0], plain[1], NULL};
    const char *const arguments[] = {api_program("orbitctl"), "task", "get", id, "-o", formats[i], NULL};
    cleanup(guard_free) char *screen = on_a_terminal(200, variables, arguments);
    expect_in(screen, "a\\u001b[2J\\u009b2Jb\\u202e");
    expect_in(screen, "\\u009b31m\\u007f");
    assert_null(strpbrk(screen, "\033\x7f"));
    assert_null(strstr(screen, "\xc2\x9b"));
    for (const char *at_end = screen; (at_end = strchr(at_end, '\r')) != NULL; at_end++)
      assert_true(at_end[1] == '\r' || at_end[1] == '\n');
  }
}

static void follows_on_one_line(void **state) {
  (void)state;
  start_worker();
  cleanup(guard_free) char *id = submitted("one-line", "steady", "60000", "1");
  const char *const arguments[] = {api_program("orbitctl"), "task", "watch", id, "--interval-ms", "50", NULL};
  cleanup(guard_free) char *screen = on_a_terminal(80, environment, arguments);
  assert_int_equal(lines_of(screen), 1);
  expect_in(screen, "\r\033[K");
  expect_in(screen, "SUCCEEDED");
  assert_int_equal(screen[strlen(screen) - 1], '\n');
}

/* ---- top ---- */

static void prints_the_queues_to_a_pipe(void **state) {
  (void)state;
  struct api_run run;
  cleanup(guard_free) char *first = submitted("top-1", "none", "600000", "1");
  assert_true(has_state(first, "WAITING"));
  api_orbitctl(&as_usual, &run, "queue", "get", server.queue_id, "-o", "json", NULL);
  expect_code(&run, 0);
  cleanup(guard_free) char *waiting = value_of(run.out, "queue.counts.WAITING");
  assert_true(strtoul(waiting, NULL, 10) > 0);
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "top", "-o", "jsonl", NULL);
  expect_code(&run, 0);
  assert_int_equal(lines_of(run.out), 1); /* one round, one queue */
  cleanup(guard_free) char *counted = value_of(run.out, "counts.WAITING"), *id = value_of(run.out, "id");
  assert_string_equal(counted, waiting);
  assert_string_equal(id, server.queue_id);
  assert_null(strstr(run.out, "_per_s")); /* nothing to compare with */
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "top", "-n", "2", "-i", "50", "-o", "csv", NULL);
  expect_code(&run, 0);
  assert_int_equal(lines_of(run.out), 3); /* one head, two rounds */
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "top", NULL);
  expect_code(&run, 0);
  assert_int_equal(lines_of(run.out), 2);
  expect_in(run.out, "REVIEW");
  assert_null(strchr(run.out, '\033'));
  api_run_clear(&run);
  api_orbitctl(&as_usual, &run, "top", "-n", "0", NULL);
  expect_code(&run, 2);
  api_run_clear(&run);
}

static void draws_the_queues_and_leaves(void **state) {
  (void)state;
  static const unsigned short widths[] = {40, 80, 200};
  for (unsigned i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    const char *const variables[] = {url_variable, credentials_variable, "TERM=xterm", "NO_COLOR=1", NULL};
    const char *const arguments[] = {api_program("orbitctl"), "top", "-n", "2", "-i", "50", NULL};
    cleanup(guard_free) char *screen = on_a_terminal(widths[i], variables, arguments);
    static const char enter[] = "\033[?1049h", leave[] = "\033[?25h\033[?1049l";
    assert_int_equal(strncmp(screen, enter, strlen(enter)), 0);
    assert_string_equal(screen + strlen(screen) - strlen(leave), leave);
    expect_in(screen, "REVIEW");
    expect_in(screen, "1 queues");
    assert_null(strstr(screen, "\033[1m")); /* NO_COLOR */
  }
}

/* q and Ctrl-C, typed: either way the terminal is given back, with its echo. */
static void gives_the_terminal_back(void **state) {
  (void)state;
  for (unsigned i = 0; i < 2; i++) {
    struct terminal terminal;
    struct termios before, after;
    const char *const variables[] = {url_variable, credentials_variable, "TERM=xterm", NULL};
    struct api_run_options options = {.environment = variables};
    const char *const arguments[] = {api_program("orbitctl"), "top", "-i", "50", NULL};
    char text[65536];
    size_t size = 0;
    terminal_open(&terminal, 80);
    assert_int_equal(tcgetattr(terminal.program, &before), 0);
    const int fds[3] = {terminal.program, terminal.program, terminal.program};
    pid_t pid = api_spawn_on(arguments, &options, fds);
    while (memmem(text, size, "QUEUE", 5) == NULL && memmem(text, size, "REVIEW", 6) == NULL) {
      ssize_t got = read(terminal.screen, text + size, sizeof text - size);
      assert_true(got > 0);
      size += (size_t)got;
    }
    if (i == 0) assert_int_equal(write(terminal.screen, "q", 1), 1);
    else assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(api_wait_exit(pid), i == 0 ? 0 : 128 + SIGINT);
    assert_int_equal(tcgetattr(terminal.program, &after), 0);
    assert_int_equal(after.c_lflag, before.c_lflag);
    guard_close(&terminal.program);
    guard_close(&terminal.screen);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(follows_a_task_to_its_success, end_worker),
      cmocka_unit_test_teardown(follows_a_task_to_another_end, end_worker),
      cmocka_unit_test_teardown(follows_a_task_over_a_restart, end_worker),
      cmocka_unit_test(follows_the_events_over_a_restart),
      cmocka_unit_test_teardown(fits_the_terminal, end_worker),
      cmocka_unit_test(colours_terminals_only),
      cmocka_unit_test(keeps_the_terminal_its_owners),
      cmocka_unit_test_teardown(follows_on_one_line, end_worker),
      cmocka_unit_test(prints_the_queues_to_a_pipe),
      cmocka_unit_test(draws_the_queues_and_leaves),
      cmocka_unit_test(gives_the_terminal_back),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
