/* Commits and readers: what is handed over is what stands in the log, all of it or nothing; readers see only what is durable;
 * nothing is written after a failure. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "journal/fixture.h"

static struct event header_at(struct journal_reader *reader, uint64_t seq) {
  struct bytes record;
  struct event event;
  assert_int_equal(journal_reader_get(reader, seq, &record), STATUS_OK);
  assert_int_equal(record_header_decode(record, &event), STATUS_OK);
  return event;
}

/* Numbers, offsets, last flags, times and chains, over several commits and a reopening. */
static void test_round_trip(void **state) {
  (void)state;
  static const unsigned sizes[] = {1, 3, 1, 64, 200, 2};
  static const size_t chars[] = {0, 1, 100, 1900, 2100, 5000};
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = fixture_create(data.text);
  uint64_t seq = 0;
  for (unsigned i = 0; i < 6; i++) {
    fixture_commit(journal, sizes[i], chars[i]);
    seq += sizes[i];
    assert_int_equal(journal_last_seq(journal), seq);
    struct journal_stats stats;
    journal_stats(journal, &stats);
    if (i < 3) assert_int_equal(stats.commits, i + 1);
    if (i < 3) assert_int_equal(stats.syncs, i + 1);
    if (i < 3) assert_int_equal(stats.events, seq);
    uint64_t chain = journal_last_chain(journal);
    int64_t time_us = journal_last_time_us(journal);
    if (i != 2) continue;
    journal_close(journal, true);
    journal = fixture_open(data.text);
    assert_int_equal(journal_last_seq(journal), seq);
    assert_int_equal(journal_last_chain(journal), chain);
    assert_int_equal(journal_last_time_us(journal), time_us);
  }
  struct journal_reader *reader;
  assert_int_equal(journal_reader_new(journal, &reader), STATUS_OK);
  assert_int_equal(journal_reader_last_seq(reader), seq);
  uint64_t chain = 0;
  for (uint64_t at = 1, i = 0; i < 6; i++) {
    int64_t time_us = fixture_time_us + (int64_t)at - 1;
    for (unsigned n = 0; n < sizes[i]; n++, at++) {
      struct event event = header_at(reader, at);
      struct bytes record;
      assert_int_equal(journal_reader_get(reader, at, &record), STATUS_OK);
      if (at != 1) assert_int_equal(record_chain(record, chain), event.chain);
      assert_int_equal(event.seq, at);
      assert_int_equal(event.prev, at - 1);
      assert_int_equal(event.offset, n);
      assert_int_equal(event.last_of_commit, n + 1 == sizes[i]);
      assert_int_equal(event.time_us, time_us);
      assert_true(record.size > record_header_bytes + chars[i]);
      chain = event.chain;
    }
  }
  assert_int_equal(chain, journal_last_chain(journal));
  journal_reader_free(reader);
  journal_close(journal, true);
  test_directory_remove(top);
}

static void test_commit_is_a_value(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  struct commit commit;
  struct fault fault = {.message = ""};
  commit_init(&commit);
  commit_reset(&commit, journal, fixture_time_us);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_OK); /* empty: nothing happens */
  struct journal_stats stats;
  journal_stats(journal, &stats);
  assert_int_equal(stats.commits, 0);
  assert_null(commit_record(&commit, 1).data);
  fixture_fill(&commit, journal, 100, 300);
  assert_null(commit_record(&commit, 0).data);
  assert_null(commit_record(&commit, 101).data);
  assert_null(commit_record(&commit, UINT64_MAX).data);
  for (uint64_t seq = 1; seq <= 100; seq++) {
    struct event event;
    assert_int_equal(record_header_decode(commit_record(&commit, seq), &event), STATUS_OK);
    assert_int_equal(event.seq, seq);
  }
  assert_int_equal(journal_last_seq(journal), 0); /* staged is not durable */
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_OK);
  assert_int_equal(journal_last_seq(journal), 100);
  commit_reset(&commit, journal, fixture_time_us);
  assert_int_equal(commit.first_seq, 101);
  assert_null(commit_record(&commit, 100).data);
  commit_clear(&commit);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* A commit that is full takes no more, and what it has stays good. */
static void test_commit_full(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  struct commit commit;
  struct fault fault = {.message = ""};
  enum { chars = 1000000 };
  char *text = guard_malloc(chars);
  memset(text, 'b', chars);
  commit_init(&commit);
  commit_reset(&commit, journal, fixture_time_us);
  enum status status;
  struct event event;
  do event = fixture_event(1, bytes_of(text, chars));
  while ((status = commit_add(&commit, &event)) == STATUS_OK);
  assert_int_equal(status, STATUS_NO_MEMORY);
  assert_true(commit.records.size <= commit_bytes_max);
  assert_true(commit.records.size + chars + 4096 > commit_bytes_max);
  uint32_t count = commit.count;
  event = fixture_event(1, bytes_text("small"));
  assert_int_equal(commit_add(&commit, &event), STATUS_OK);
  assert_int_equal(event.seq, count + 1);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_OK);
  assert_int_equal(journal_last_seq(journal), count + 1);
  free(text);
  commit_clear(&commit);
  journal_close(journal, false);
  test_directory_remove(top);
}

static void test_readers(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  struct journal_reader *early, *late;
  struct bytes record = {NULL, 0};
  assert_int_equal(journal_reader_new(journal, &early), STATUS_OK);
  assert_int_equal(journal_reader_last_seq(early), 0);
  assert_int_equal(journal_reader_get(early, 0, &record), STATUS_END);
  assert_int_equal(journal_reader_get(early, 1, &record), STATUS_END);
  fixture_commit(journal, 10, 50);
  assert_int_equal(journal_reader_get(early, 1, &record), STATUS_END); /* its snapshot is older */
  assert_int_equal(journal_reader_new(journal, &late), STATUS_OK);
  assert_int_equal(journal_reader_last_seq(late), 10);
  assert_int_equal(journal_reader_get(late, 10, &record), STATUS_OK);
  assert_int_equal(journal_reader_get(late, 11, &record), STATUS_END);
  struct commit commit;
  struct fault fault = {.message = ""};
  commit_init(&commit);
  fixture_fill(&commit, journal, 5, 10);
  assert_int_equal(journal_reader_refresh(late), STATUS_OK);
  assert_int_equal(journal_reader_last_seq(late), 10); /* staged is not seen */
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_OK);
  commit_clear(&commit);
  assert_int_equal(journal_reader_last_seq(late), 10);
  assert_int_equal(journal_reader_refresh(late), STATUS_OK);
  assert_int_equal(journal_reader_last_seq(late), 15);
  journal_reader_release(late);
  fixture_commit(journal, 1, 10);
  assert_int_equal(header_at(late, 16).seq, 16); /* refreshes by itself */
  journal_reader_release(early);
  journal_reader_release(early);
  assert_int_equal(journal_reader_last_seq(early), 16);
  journal_reader_free(early);
  journal_reader_free(late);
  journal_reader_free(NULL);
  journal_reap_readers(journal);
  journal_close(journal, false);
  test_directory_remove(top);
}

enum { stride = 7, strides = 150 };

/* Follows the writer to its end; NULL when every snapshot showed whole commits, else what it showed. */
static void *follow(void *context) {
  struct journal_reader *reader = context;
  uint64_t before = 0, seq = 0;
  for (; seq < (uint64_t)stride * strides; before = seq) {
    struct bytes record;
    struct event event;
    if (journal_reader_refresh(reader) != STATUS_OK) return "cannot refresh";
    seq = journal_reader_last_seq(reader);
    if (seq < before || seq % stride != 0) return "part of a commit";
    if (seq != before && (journal_reader_get(reader, seq, &record) != STATUS_OK ||
                          record_header_decode(record, &event) != STATUS_OK || !event.last_of_commit))
      return "not the end of a commit";
    (void)sched_yield();
  }
  return NULL;
}

/* Beside the writer, a snapshot shows whole commits only, and never fewer than the one before it. */
static void test_reader_beside_writer(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  struct journal_reader *reader;
  pthread_t thread;
  void *wrong;
  assert_int_equal(journal_reader_new(journal, &reader), STATUS_OK);
  assert_int_equal(pthread_create(&thread, NULL, follow, reader), 0);
  for (unsigned i = 0; i < strides; i++) fixture_commit(journal, stride, 200);
  assert_int_equal(pthread_join(thread, &wrong), 0);
  if (wrong != NULL) print_message("%s\n", (const char *)wrong);
  assert_null(wrong);
  journal_reader_free(reader);
  journal_close(journal, false);
  test_directory_remove(top);
}

static void test_reader_slots(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  struct journal_reader *readers[log_readers_max + 1];
  unsigned count = 0;
  enum status status;
  while ((status = journal_reader_new(journal, &readers[count])) == STATUS_OK) {
    count++;
    assert_true(count <= log_readers_max);
  }
  assert_int_equal(status, STATUS_UNAVAILABLE);
  assert_true(count >= 126);
  journal_reader_free(readers[--count]);
  assert_int_equal(journal_reader_new(journal, &readers[count]), STATUS_OK);
  count++;
  while (count > 0) journal_reader_free(readers[--count]);
  fixture_commit(journal, 1, 1);
  journal_close(journal, false);
  test_directory_remove(top);
}

static void file_size_limit(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk refuses a commit half-way: nothing of it is in the log, nothing is written afterwards, and the log opens again. */
static void test_failed_commit_poisons(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = fixture_create(data.text);
  fixture_commit(journal, 20, 100);
  struct journal_stats stats;
  journal_stats(journal, &stats);
  uint64_t chain = journal_last_chain(journal);
  struct journal_reader *reader;
  assert_int_equal(journal_reader_new(journal, &reader), STATUS_OK);
  struct commit commit;
  struct fault fault = {.message = ""};
  commit_init(&commit);
  fixture_fill(&commit, journal, 50, 4000);
  (void)signal(SIGXFSZ, SIG_IGN);
  file_size_limit(stats.used_bytes + 8192);
  enum status status = journal_commit(journal, &commit, &fault);
  file_size_limit(RLIM_INFINITY);
  assert_true(status == STATUS_NO_SPACE || status == STATUS_IO_ERROR); /* LMDB says the latter when a write came short */
  assert_non_null(strstr(fault.message, "/data/log: cannot write a commit"));
  assert_int_equal(journal_last_seq(journal), 20);
  assert_int_equal(journal_last_chain(journal), chain);
  fixture_fill(&commit, journal, 1, 1);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_IO_ERROR);
  assert_non_null(strstr(fault.message, "an earlier write failed"));
  commit_reset(&commit, journal, fixture_time_us);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_IO_ERROR);
  assert_int_equal(journal_reserve(journal, 1), STATUS_IO_ERROR);
  assert_int_equal(journal_reader_refresh(reader), STATUS_OK);
  assert_int_equal(journal_reader_last_seq(reader), 20);
  journal_reader_free(reader);
  commit_clear(&commit);
  journal_close(journal, true); /* no mark: this was no clean stop */
  journal = fixture_open(data.text);
  assert_false(journal_was_clean(journal));
  assert_int_equal(journal_last_seq(journal), 20);
  assert_int_equal(journal_last_chain(journal), chain);
  fixture_commit(journal, 50, 4000);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* A full map ends the same way. */
static void test_map_full(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal =
      fixture_open_with(data.text, (struct journal_options){.map_bytes = 1 << 20, .reserve_bytes = 65536, .create = true});
  struct commit commit;
  struct fault fault = {.message = ""};
  commit_init(&commit);
  fixture_fill(&commit, journal, 100, 10000);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_NO_SPACE);
  assert_non_null(strstr(fault.message, "--map-size"));
  fixture_fill(&commit, journal, 1, 1);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_IO_ERROR);
  commit_clear(&commit);
  journal_close(journal, false);
  /* A larger map takes it. */
  journal = fixture_open(data.text);
  assert_int_equal(journal_last_seq(journal), 0);
  fixture_commit(journal, 100, 10000);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* A server that dies between two commits leaves all of the first and nothing of the second. */
static void test_killed(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  journal_close(fixture_create(data.text), true);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct journal *journal = fixture_open(data.text);
    fixture_commit(journal, 30, 100);
    struct commit commit;
    commit_init(&commit);
    fixture_fill(&commit, journal, 30, 100);
    (void)raise(SIGKILL);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFSIGNALED(result));
  struct journal *journal = fixture_open(data.text); /* the lock died with its holder */
  assert_int_equal(journal_last_seq(journal), 30);
  assert_false(journal_was_clean(journal));
  journal_close(journal, false);
  test_directory_remove(top);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_commit_is_a_value),
      cmocka_unit_test(test_commit_full),
      cmocka_unit_test(test_readers),
      cmocka_unit_test(test_reader_beside_writer),
      cmocka_unit_test(test_reader_slots),
      cmocka_unit_test(test_failed_commit_poisons),
      cmocka_unit_test(test_map_full),
      cmocka_unit_test(test_killed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
