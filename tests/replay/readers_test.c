/* Readers of a log beside its server: killed with a snapshot in hand, left by the hundred, stopped for a while, more than there
 * are places for. The server goes on, and its file grows by its events alone. ORBIT_READERS_TASKS in the environment makes it
 * longer
 * (`ninja readers-long`). */
#include <sys/prctl.h>

#include "replay/rig.h"

enum { left_readers = 100, tasks_default = 150 };

static struct rig rig;
static char tasks[24];
static uint64_t plain; /* what one load adds to the file while nobody reads */

/* ---- how the file grows ---- */

/* Bytes of the log that LMDB uses; the file itself grows in large steps. */
static uint64_t used_bytes(void) {
  struct journal *journal = fixture_read(rig.server.data);
  struct journal_stats stats;
  journal_stats(journal, &stats);
  journal_close(journal, false);
  return stats.used_bytes;
}

/* What the same load adds each time. */
static uint64_t growth(void) {
  uint64_t before = used_bytes();
  rig_load(&rig, tasks, NULL);
  return used_bytes() - before;
}

static int begin(void **state) {
  const char *more = getenv("ORBIT_READERS_TASKS");
  (void)state;
  (void)snprintf(tasks, sizeof tasks, "%lu", more != NULL ? strtoul(more, NULL, 10) : (unsigned long)tasks_default);
  memset(&rig, 0, sizeof rig);
  (void)api_program("orbit-bench");
  api_server_up(&rig.server);
  rig_load(&rig, tasks, NULL); /* what a new log does once */
  plain = growth();
  return 0;
}

static int end(void **state) {
  (void)state;
  api_server_remove(&rig.server);
  return 0;
}

/* Commits differ in size with the luck of the moment; a snapshot that is held costs many times as much. */
static void expect_plain(uint64_t grown) {
  print_message("the file grew by %" PRIu64 " KiB, without readers by %" PRIu64 " KiB\n", grown / 1024, plain / 1024);
  if (grown > 2 * plain + 512 * 1024) fail_msg("%" PRIu64 " bytes instead of about %" PRIu64, grown, plain);
}

/* ---- readers ---- */

enum held { HELD_SNAPSHOT, HELD_NOTHING };

/* Another process that opens the log for reading, reads an event, says so and does nothing more. */
static pid_t reader_start(enum held held, int ready[2]) {
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid != 0) {
    (void)close(ready[1]);
    return pid;
  }
  struct journal *journal = NULL;
  struct journal_reader *reader = NULL;
  struct bytes record;
  struct fault fault;
  const struct journal_options options = {.read_only = true};
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  char word = journal_open(rig.server.data, &options, &journal, &fault) == STATUS_OK &&
                      journal_reader_new(journal, &reader) == STATUS_OK && journal_reader_get(reader, 1, &record) == STATUS_OK
                  ? 'y'
                  : 'n';
  if (word == 'y' && held == HELD_NOTHING) journal_reader_release(reader);
  if (write(ready[1], &word, 1) != 1) _exit(1);
  for (;;) (void)pause();
}

/* 'y' once it reads, 'n' when it found no place. */
static char reader_word(int ready[2]) {
  char word = 0;
  assert_int_equal(read(ready[0], &word, 1), 1);
  (void)close(ready[0]);
  return word;
}

static void kill_hard(pid_t pid) {
  assert_int_equal(kill(pid, SIGKILL), 0);
  assert_int_equal(api_wait_exit(pid), 128 + SIGKILL);
}

static int note_reader(const char *line, void *context) {
  char wanted[32];
  const pid_t *pid = context;
  (void)snprintf(wanted, sizeof wanted, "%10d ", (int)*pid);
  return strncmp(line, wanted, strlen(wanted)) == 0 ? -1 : 0;
}

/* Whether the process stands in the log's table of readers. */
static bool has_place(pid_t pid) {
  MDB_env *env;
  char path[300];
  (void)snprintf(path, sizeof path, "%s/log", rig.server.data);
  assert_int_equal(mdb_env_create(&env), 0);
  assert_int_equal(mdb_env_open(env, path, MDB_RDONLY, 0), 0);
  int found = mdb_reader_list(env, note_reader, &pid);
  mdb_env_close(env);
  return found < 0;
}

/* ---- tests ---- */

static void a_killed_reader_pins_nothing_for_long(void **state) {
  (void)state;
  int ready[2];
  pid_t pid = reader_start(HELD_SNAPSHOT, ready);
  assert_int_equal(reader_word(ready), 'y');
  assert_true(has_place(pid));
  uint64_t held = growth();
  print_message("with a snapshot held: %" PRIu64 " KiB, without %" PRIu64 " KiB\n", held / 1024, plain / 1024);
  assert_true(held > 3 * plain + 512 * 1024); /* or what follows would show nothing */
  kill_hard(pid);
  api_wait(!has_place(pid)); /* the server looks by itself */
  expect_plain(growth());
}

static void a_hundred_readers_may_be_left(void **state) {
  (void)state;
  pid_t pids[left_readers];
  for (unsigned i = 0; i < left_readers; i++) {
    int ready[2];
    pids[i] = reader_start(HELD_NOTHING, ready);
    assert_int_equal(reader_word(ready), 'y');
  }
  expect_plain(growth());
  for (unsigned i = 0; i < left_readers; i++) kill_hard(pids[i]);
  for (unsigned i = 0; i < left_readers; i++) api_wait(!has_place(pids[i]));
  expect_plain(growth());
}

/* All places taken: new readers are refused with a word, the server goes on; and the places of the dead are given again at
 * once. */
static void more_readers_than_there_are_places(void **state) {
  (void)state;
  pid_t pids[log_readers_max];
  unsigned count = 0;
  char word = 'y';
  while (word == 'y') {
    int ready[2];
    assert_true(count < log_readers_max);
    pids[count++] = reader_start(HELD_NOTHING, ready);
    word = reader_word(ready);
  }
  print_message("%u readers had a place\n", count - 1);
  assert_true(count > left_readers);
  rig_load(&rig, "20", NULL);
  struct api_run run;
  const struct path out = path_of(rig.server.directory, "backup");
  rig_replay(&run, "backup", out.text, "--data", rig.server.data, NULL);
  rig_expect(&run, 3);
  assert_non_null(strstr(run.err, "reader"));
  api_run_clear(&run);
  static const char *const placeless[] = {"verify", "stats", "queues"};
  for (unsigned i = 0; i < sizeof placeless / sizeof placeless[0]; i++) {
    rig_replay(&run, placeless[i], "--data", rig.server.data, NULL);
    rig_expect(&run, 0);
    api_run_clear(&run);
  }
  for (unsigned i = 0; i < count; i++) kill_hard(pids[i]);
  rig_replay(&run, "backup", out.text, "--data", rig.server.data, NULL);
  rig_expect(&run, 0);
  api_run_clear(&run);
}

static uint64_t lines_of(const char *path) {
  struct bytes text = test_file_read(path);
  uint64_t lines = 0;
  for (size_t i = 0; i < text.size; i++) lines += text.data[i] == '\n';
  free((void *)(uintptr_t)text.data);
  return lines;
}

static uint64_t last_seq(void) {
  struct journal *journal = fixture_read(rig.server.data);
  uint64_t seq = journal_last_seq(journal);
  journal_close(journal, false);
  return seq;
}

/* A follower whose reader went to sleep misses nothing and costs nothing. */
static void a_follower_may_be_stopped_for_a_while(void **state) {
  (void)state;
  char program[512];
  const struct path out = path_of(rig.server.directory, "followed");
  (void)snprintf(program, sizeof program, "%s", api_program("orbit-audit"));
  const char *const arguments[] = {program, "--data", rig.server.data, "log", "-f", "-n", "all", "-o", "jsonl", NULL};
  pid_t pid = api_spawn(arguments, NULL, out.text, NULL);
  api_wait(lines_of(out.text) == last_seq());
  assert_int_equal(kill(pid, SIGSTOP), 0);
  uint64_t before = last_seq();
  expect_plain(growth());
  assert_true(last_seq() > before);
  assert_true(lines_of(out.text) <= before);
  assert_int_equal(kill(pid, SIGCONT), 0);
  api_wait(lines_of(out.text) == last_seq());
  kill_hard(pid);
}

/* What it was all for: the log is sound, and the server stops as it should. */
static void the_log_is_sound_afterwards(void **state) {
  (void)state;
  struct api_run run;
  assert_int_equal(api_server_stop(&rig.server, SIGTERM), 0);
  rig_replay(&run, "verify", "--data", rig.server.data, NULL);
  rig_expect(&run, 0);
  api_run_clear(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_killed_reader_pins_nothing_for_long), cmocka_unit_test(a_hundred_readers_may_be_left),
      cmocka_unit_test(more_readers_than_there_are_places),    cmocka_unit_test(a_follower_may_be_stopped_for_a_while),
      cmocka_unit_test(the_log_is_sound_afterwards),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
