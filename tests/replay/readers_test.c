/* Readers of a log beside its server: killed with a snapshot in hand, left by the hundred, stopped for a while, more than there
 * are places for. The server goes on, and its file grows by its events alone. ORBIT_READERS_TASKS in the environment makes it
 * longer
 * (`ninja readers-long`). */
#include <sys/prctl.h>

#include "replay/rig.h"

enum { left_readers = 100, tasks_default = 150, piece_tasks = 1000, steps = 64 };

static struct rig rig;
static unsigned long tasks;
static unsigned submitted;
static pid_t started[log_readers_max]; /* readers that are not yet dead */

/* In pieces: a program that runs for long is taken for one that hangs. */
static void load(void) {
  for (unsigned long done = 0; done < tasks; done += piece_tasks) {
    char count[24];
    (void)snprintf(count, sizeof count, "%lu", tasks - done < piece_tasks ? tasks - done : (unsigned long)piece_tasks);
    rig_load(&rig, count, NULL);
  }
}

static int begin(void **state) {
  const char *more = getenv("ORBIT_READERS_TASKS");
  (void)state;
  tasks = more != NULL ? strtoul(more, NULL, 10) : tasks_default;
  memset(&rig, 0, sizeof rig);
  (void)api_program("orbit-bench");
  api_server_up(&rig.server);
  load(); /* what a new log does once */
  return 0;
}

static int end(void **state) {
  (void)state;
  api_server_remove(&rig.server);
  return 0;
}

static MDB_env *log_open(void) {
  MDB_env *env;
  const struct path path = path_of(rig.server.data, "log");
  assert_int_equal(mdb_env_create(&env), 0);
  assert_int_equal(mdb_env_open(env, path.text, MDB_RDONLY | MDB_NOTLS, 0), 0);
  return env;
}

/* ---- who holds what ---- */

struct places {
  pid_t pid;      /* looked for */
  bool has_place; /* it stands in the log's table of readers … */
  bool holds;     /* … and holds a snapshot */
  bool others;    /* somebody else holds one: the server reads too, for moments */
};

static int note_place(const char *line, void *context) {
  struct places *places = context;
  char *at;
  long pid = strtol(line, &at, 10);
  if (at == line) return 0; /* the headline */
  const char *snapshot = strrchr(line, ' ');
  bool holds = snapshot != NULL && snapshot[1] != '-';
  if (pid != places->pid) places->others = places->others || holds;
  else places->has_place = true, places->holds = places->holds || holds;
  return 0;
}

static struct places places_of(pid_t pid) {
  struct places places = {.pid = pid};
  MDB_env *env = log_open();
  assert_true(mdb_reader_list(env, note_place, &places) >= 0);
  mdb_env_close(env);
  return places;
}

/* ---- how the file grows ---- */

struct pages {
  uint64_t used;   /* the file itself grows in large steps */
  uint64_t commit; /* LMDB's number of the last one */
  uint64_t stock;  /* freed by commits up to a given one, and not taken again */
};

static struct pages pages_now(uint64_t until_commit) {
  MDB_env *env = log_open();
  MDB_envinfo info;
  MDB_txn *txn;
  MDB_cursor *cursor;
  MDB_val key, value;
  assert_int_equal(mdb_env_info(env, &info), 0);
  struct pages pages = {.used = info.me_last_pgno + 1, .commit = info.me_last_txnid};
  assert_int_equal(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
  assert_int_equal(mdb_cursor_open(txn, 0, &cursor), 0); /* of free pages: commit → their count, then they */
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
    size_t commit, count;
    memcpy(&commit, key.mv_data, sizeof commit);
    memcpy(&count, value.mv_data, sizeof count);
    if (commit <= until_commit) pages.stock += count;
  }
  mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  mdb_env_close(env);
  return pages;
}

/* One commit, or a few. The server's own readers hold snapshots for moments, and a machine that is busy makes such a moment as
 * long as it likes: so the next step waits until nobody but the holder has one. */
static void step(pid_t holder) {
  struct http_reply reply;
  http_reply_init(&reply);
  rig_submit(&rig, "step", submitted++, &reply);
  http_reply_clear(&reply);
  api_wait(!places_of(holder).others);
}

struct growth {
  uint64_t commits, pages;
};

/* Each commit writes some pages anew and frees the old ones. Freed pages are taken again, oldest first, unless a snapshot is
 * held that may show them: then every commit lengthens the file. */
static struct growth steps_growth(pid_t holder) {
  api_wait(!places_of(holder).others);
  struct pages before = pages_now(0);
  for (unsigned i = 0; i < steps; i++) step(holder);
  struct pages after = pages_now(0);
  struct growth growth = {after.commit - before.commit, after.used - before.used};
  print_message("%" PRIu64 " commits made the file %" PRIu64 " pages longer\n", growth.commits, growth.pages);
  assert_true(growth.commits >= steps);
  return growth;
}

/* The same behind a load. What was free before it is used up first: else it would hide that what was freed since is not taken.
 */
static struct growth load_growth(pid_t holder) {
  uint64_t start = pages_now(0).commit;
  load();
  api_wait(!places_of(holder).others);
  uint64_t stock = pages_now(start).stock;
  for (uint64_t i = 0; i < stock && pages_now(start).stock != 0; i++) step(holder); /* each takes one at least */
  return steps_growth(holder);
}

/* A submission takes a part of a page; what a snapshot pins is several pages a commit. */
static void expect_plain(struct growth growth) { assert_true(growth.pages * 2 < growth.commits); }
static void expect_pinned(struct growth growth) { assert_true(growth.pages >= growth.commits * 2); }

/* ---- readers ---- */

enum held { HELD_SNAPSHOT, HELD_NOTHING };

/* Another process that opens the log for reading, reads an event, says so and does nothing more. */
static pid_t reader_start(enum held held, int ready[2]) {
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid != 0) {
    (void)close(ready[1]);
    unsigned i = 0;
    while (started[i] != 0) i++;
    started[i] = pid;
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
  for (unsigned i = 0; i < log_readers_max; i++)
    if (started[i] == pid) started[i] = 0;
  assert_int_equal(kill(pid, SIGKILL), 0);
  assert_int_equal(api_wait_exit(pid), 128 + SIGKILL);
}

/* A test that fails leaves no reader to the next one. */
static int kill_started(void **state) {
  (void)state;
  for (unsigned i = 0; i < log_readers_max; i++)
    if (started[i] != 0) kill_hard(started[i]);
  return 0;
}

/* ---- tests ---- */

static void a_hundred_readers_may_be_left(void **state) {
  (void)state;
  pid_t pids[left_readers];
  for (unsigned i = 0; i < left_readers; i++) {
    int ready[2];
    pids[i] = reader_start(HELD_NOTHING, ready);
    assert_int_equal(reader_word(ready), 'y');
  }
  expect_plain(load_growth(0));
  for (unsigned i = 0; i < left_readers; i++) kill_hard(pids[i]);
  for (unsigned i = 0; i < left_readers; i++) api_wait(!places_of(pids[i]).has_place);
  expect_plain(load_growth(0));
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

/* Stops it between two looks at the log; in the middle of one it would hold a snapshot like any other. */
static bool is_stopped_at_rest(pid_t pid) {
  int status;
  assert_int_equal(kill(pid, SIGSTOP), 0);
  assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
  assert_true(WIFSTOPPED(status));
  if (!places_of(pid).holds) return true;
  assert_int_equal(kill(pid, SIGCONT), 0);
  return false;
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
  api_wait(is_stopped_at_rest(pid));
  uint64_t before = last_seq();
  expect_plain(load_growth(0));
  assert_true(last_seq() > before);
  assert_true(lines_of(out.text) <= before);
  assert_int_equal(kill(pid, SIGCONT), 0);
  api_wait(lines_of(out.text) == last_seq());
  kill_hard(pid);
}

/* After the others: it leaves many free pages. */
static void a_killed_reader_pins_nothing_for_long(void **state) {
  (void)state;
  int ready[2];
  pid_t pid = reader_start(HELD_SNAPSHOT, ready);
  assert_int_equal(reader_word(ready), 'y');
  assert_true(places_of(pid).holds);
  expect_pinned(load_growth(pid)); /* or what follows would show nothing */
  kill_hard(pid);
  api_wait(!places_of(pid).has_place); /* the server looks by itself */
  expect_plain(steps_growth(0));
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
      cmocka_unit_test_teardown(a_hundred_readers_may_be_left, kill_started),
      cmocka_unit_test_teardown(more_readers_than_there_are_places, kill_started),
      cmocka_unit_test(a_follower_may_be_stopped_for_a_while),
      cmocka_unit_test_teardown(a_killed_reader_pins_nothing_for_long, kill_started),
      cmocka_unit_test(the_log_is_sound_afterwards),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
