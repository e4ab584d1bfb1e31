/* Room ahead of the log: held before it is needed, refused without a trace, and enough for what it was held for. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "journal/fixture.h"

static const uint64_t mib = 1024 * 1024;

static struct journal_stats stats_of(const struct journal *journal) {
  struct journal_stats stats;
  journal_stats(journal, &stats);
  return stats;
}

static uint64_t file_size(const char *data) {
  struct stat found;
  assert_int_equal(stat(path_of(data, "log/data.mdb").text, &found), 0);
  return (uint64_t)found.st_size;
}

static void file_size_limit(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static struct journal *journal_make(const char *data, uint64_t map_mib, uint64_t reserve_mib) {
  struct journal_options options = {.map_bytes = map_mib * mib, .reserve_bytes = reserve_mib * mib, .create = true};
  return fixture_open_with(data, options);
}

static void test_room_is_held(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = journal_make(data.text, 256, 8);
  assert_false(journal_fits(journal, 1000));
  assert_int_equal(journal_reserve(journal, 1000), STATUS_OK);
  assert_true(journal_fits(journal, 1000));
  struct journal_stats stats = stats_of(journal);
  assert_int_equal(stats.file_bytes, file_size(data.text));
  assert_true(stats.reserved_bytes >= 4 * mib); /* half of the reserve at once */
  uint64_t before = stats.file_bytes;
  unsigned calls = 0;
  /* The rest in chunks of one MiB, one a call, then no more. */
  for (;; calls++) {
    assert_int_equal(journal_reserve(journal, 1000), STATUS_OK);
    stats = stats_of(journal);
    if (stats.file_bytes == before) break;
    assert_true(stats.file_bytes - before <= log_reserve_chunk_bytes);
    before = stats.file_bytes;
  }
  assert_in_range(calls, 4, 6);
  assert_true(stats.reserved_bytes >= 8 * mib);
  /* Commits go into the room: the file does not grow. */
  for (unsigned i = 0; i < 20; i++) fixture_commit(journal, 10, 3000);
  assert_int_equal(file_size(data.text), before);
  assert_true(stats_of(journal).reserved_bytes < stats.reserved_bytes);
  journal_close(journal, false);
  /* It is still there after a restart, and the log reads well. */
  journal = fixture_open(data.text);
  assert_int_equal(stats_of(journal).file_bytes, before);
  assert_int_equal(journal_last_seq(journal), 200);
  assert_true(journal_fits(journal, mib));
  journal_close(journal, false);
  test_directory_remove(top);
}

/* The last write of a chunk comes short, because the disk ends there: what was not written is no room. */
static void test_short_write(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = journal_make(data.text, 256, 8);
  assert_int_equal(journal_reserve(journal, 1000), STATUS_OK);
  uint64_t before = stats_of(journal).file_bytes;
  (void)signal(SIGXFSZ, SIG_IGN);
  file_size_limit(before + log_reserve_chunk_bytes - 1000);
  assert_int_equal(journal_reserve(journal, 1000), STATUS_OK); /* there is enough without it */
  assert_int_equal(stats_of(journal).file_bytes, file_size(data.text));
  file_size_limit(RLIM_INFINITY);
  assert_int_equal(journal_reserve(journal, 1000), STATUS_OK);
  assert_int_equal(stats_of(journal).file_bytes, file_size(data.text));
  assert_true(file_size(data.text) > before);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* Puts a descriptor that cannot be written in the place of the log's: its writes fail with EBADF from here on. */
static void break_disk(const char *data) {
  char link[64], path[4096];
  struct path wanted = path_of(data, "log/data.mdb");
  for (int fd = 3; fd < 64; fd++) {
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) continue;
    path[size] = '\0';
    if (strcmp(path, wanted.text) != 0) continue;
    int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(other >= 0);
    assert_int_equal(dup2(other, fd), fd);
    assert_int_equal(close(other), 0);
  }
}

/* A disk that fails is not a full one: nothing is written any more. */
static void test_broken_disk(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = journal_make(data.text, 256, 8);
  assert_int_equal(journal_reserve(journal, 1000), STATUS_OK);
  break_disk(data.text);
  assert_int_equal(journal_reserve(journal, 16 * mib), STATUS_IO_ERROR);
  assert_int_equal(journal_reserve(journal, 1), STATUS_IO_ERROR); /* though the room for it is there */
  journal_close(journal, true);
  test_directory_remove(top);
}

/* What journal_fits promises holds for the worst sizes of records: a commit never lengthens the file. */
static void test_promise_holds(void **state) {
  (void)state;
  static const struct {
    unsigned events;
    size_t chars;
  } cases[] = {{1, 0},      {1, 1000000}, {1024, 0},   {1024, 1},   {1024, 300}, {500, 1200}, {500, 1860}, {500, 1900},
               {500, 1950}, {500, 2000},  {500, 2100}, {300, 3900}, {300, 3980}, {300, 4000}, {300, 4100}, {100, 8100}};
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = journal_make(data.text, 256, 1);
  struct commit commit;
  struct fault fault = {.message = ""};
  commit_init(&commit);
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fixture_fill(&commit, journal, cases[i].events, cases[i].chars);
    if (!journal_fits(journal, commit.records.size)) assert_int_equal(journal_reserve(journal, commit.records.size), STATUS_OK);
    assert_true(journal_fits(journal, commit.records.size));
    struct journal_stats before = stats_of(journal);
    assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_OK);
    assert_int_equal(file_size(data.text), before.file_bytes);
    assert_true(stats_of(journal).used_bytes <= before.file_bytes);
  }
  commit_clear(&commit);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* The disk is full: nothing changes, what is left of the reserve can be used, and it goes on by itself when there is room. */
static void test_disk_full(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  (void)signal(SIGXFSZ, SIG_IGN);
  struct journal *journal = journal_make(data.text, 256, 4);
  assert_int_equal(journal_reserve(journal, 1000), STATUS_OK);
  uint64_t size = file_size(data.text);
  file_size_limit(size + 100000);
  /* More than half is there: not a whole chunk can be added, and that is no refusal yet. */
  enum status status = journal_reserve(journal, 1000);
  uint64_t unchanged = file_size(data.text);
  enum status refused = journal_reserve(journal, 2 * mib);
  uint64_t still = file_size(data.text);
  assert_int_equal(status, STATUS_OK);
  assert_int_equal(refused, STATUS_NO_SPACE);
  assert_int_equal(unchanged, size);
  assert_int_equal(still, size);
  while (journal_reserve(journal, 1000) == STATUS_OK) fixture_commit(journal, 10, 3000);
  assert_int_equal(journal_reserve(journal, 1000), STATUS_NO_SPACE);
  /* The reserve: about half of 4 MiB. */
  assert_true(stats_of(journal).reserved_bytes >= mib);
  unsigned commits = 0;
  for (; journal_fits(journal, 40000); commits++) fixture_commit(journal, 10, 3000);
  assert_true(commits > 10);
  assert_int_equal(file_size(data.text), size);
  file_size_limit(RLIM_INFINITY);
  assert_int_equal(journal_reserve(journal, 1000), STATUS_OK);
  assert_true(journal_fits(journal, 40000));
  fixture_commit(journal, 10, 3000);
  uint64_t last = journal_last_seq(journal);
  journal_close(journal, false);
  journal = fixture_open(data.text);
  assert_int_equal(journal_last_seq(journal), last);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* The map is as much a bound as the disk, and is met before any commit meets it. */
static void test_map_is_foreseen(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = journal_make(data.text, 8, 2);
  unsigned commits = 0;
  while (journal_reserve(journal, 33000) == STATUS_OK) {
    fixture_commit(journal, 10, 3000);
    assert_true(++commits < 1000);
  }
  assert_int_equal(journal_reserve(journal, 33000), STATUS_NO_SPACE);
  assert_true(commits > 50);
  assert_true(file_size(data.text) <= 8 * mib);
  unsigned more = 0;
  for (; journal_fits(journal, 33000); more++) fixture_commit(journal, 10, 3000);
  assert_true(more > 5);
  assert_int_equal(journal_reserve(journal, UINT64_MAX), STATUS_NO_SPACE);
  assert_int_equal(journal_reserve(journal, UINT64_MAX / 2), STATUS_NO_SPACE);
  assert_int_equal(journal_reserve(journal, UINT64_MAX / 4), STATUS_NO_SPACE);
  assert_false(journal_fits(journal, UINT64_MAX));
  journal_close(journal, false);
  test_directory_remove(top);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_room_is_held),  cmocka_unit_test(test_short_write), cmocka_unit_test(test_broken_disk),
      cmocka_unit_test(test_promise_holds), cmocka_unit_test(test_disk_full),   cmocka_unit_test(test_map_is_foreseen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
