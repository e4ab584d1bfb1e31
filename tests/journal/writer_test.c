/* Commits that are handed over: each whole in its place, several in one transaction, in order; nothing of what fails, and
 * nothing behind it; and what is on its way when the journal is closed. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "journal/fixture.h"
#include "journal/internal.h"

enum { patience_ms = 60000 };

/* Whoever is told counts it. */
struct listener {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  unsigned told;
};

static void tell(void *context) {
  struct listener *listener = context;
  assert_int_equal(pthread_mutex_lock(&listener->lock), 0);
  listener->told++;
  assert_int_equal(pthread_cond_signal(&listener->changed), 0);
  assert_int_equal(pthread_mutex_unlock(&listener->lock), 0);
}

static struct listener listener = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static unsigned told_more_than(unsigned before) {
  struct timespec until;
  assert_int_equal(clock_gettime(CLOCK_REALTIME, &until), 0);
  until.tv_sec += patience_ms / 1000;
  assert_int_equal(pthread_mutex_lock(&listener.lock), 0);
  while (listener.told <= before) assert_int_equal(pthread_cond_timedwait(&listener.changed, &listener.lock, &until), 0);
  unsigned told = listener.told;
  assert_int_equal(pthread_mutex_unlock(&listener.lock), 0);
  return told;
}

/* The next commit, `behind` events behind what is durable. */
static void fill(struct commit *commit, struct journal *journal, unsigned count, size_t chars) {
  char *text = guard_malloc(chars + 1);
  memset(text, 'c', chars);
  commit_init(commit);
  commit_reset(commit, journal, fixture_time_us + (int64_t)journal->handed_seq);
  for (unsigned i = 0; i < count; i++) {
    struct event event = fixture_event(commit->first_seq + i, bytes_of(text, chars));
    event.prev = commit->first_seq + i - 1;
    assert_int_equal(commit_add(commit, &event), STATUS_OK);
  }
  free(text);
}

/* Nobody else can write while it is held. */
static MDB_txn *hold_disk(struct journal *journal) {
  MDB_txn *txn;
  assert_int_equal(mdb_txn_begin(journal->env, NULL, 0, &txn), 0);
  return txn;
}

struct shape {
  unsigned commits;
  uint64_t events;
};

static enum status count_commits(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct shape *shape = context;
  (void)record;
  (void)fault;
  shape->events++;
  shape->commits += event->last_of_commit;
  assert_int_equal(event->time_us, fixture_time_us + (int64_t)(event->seq - event->offset) - 1);
  return STATUS_OK;
}

/* Replay checks numbers, offsets, flags, times and the chain of all that is there. */
static struct shape shape_of(struct journal *journal) {
  struct shape shape = {0, 0};
  struct fault fault = {.message = ""};
  if (journal_replay(journal, 0, 0, count_commits, &shape, &fault) != STATUS_OK) fail_msg("%s", fault.message);
  return shape;
}

static void file_size_limit(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_several_in_one_transaction(void **state) {
  (void)state;
  enum { count = 5 };
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = fixture_create(data.text);
  struct commit commits[count];
  struct fault fault = {.message = ""};
  uint64_t durable = 99;
  struct journal_stats before, after;
  journal_write_behind(journal, tell, &listener);
  journal_stats(journal, &before);
  MDB_txn *held = hold_disk(journal);
  for (unsigned i = 0; i < count; i++) {
    fill(&commits[i], journal, i + 1, 100 * i);
    journal_hand_over(journal, &commits[i]);
  }
  assert_int_equal(journal_settled(journal, 0, &durable, &fault), STATUS_OK);
  assert_int_equal(durable, 0); /* handed over is not durable */
  assert_int_equal(journal_last_seq(journal), 0);
  for (uint64_t seq = 1; seq <= 15; seq++) {
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) found += commit_record(&commits[i], seq).data != NULL;
    assert_int_equal(found, 1); /* meanwhile its bytes are with the one who handed it over */
  }
  mdb_txn_abort(held);
  assert_int_equal(journal_settled(journal, 3, &durable, &fault), STATUS_OK);
  assert_true(durable >= 3);
  assert_int_equal(journal_settled(journal, 15, &durable, &fault), STATUS_OK);
  assert_int_equal(durable, 15);
  journal_stats(journal, &after);
  assert_int_equal(after.commits - before.commits, count);
  assert_in_range(after.syncs - before.syncs, 1, 2); /* the one that was waiting for the disk, and all that came meanwhile */
  assert_int_equal(after.events, 15);
  struct shape shape = shape_of(journal);
  assert_int_equal(shape.commits, count);
  assert_int_equal(shape.events, 15);
  /* Alone again: on the caller's thread, behind them. */
  fixture_commit(journal, 2, 10);
  assert_int_equal(shape_of(journal).commits, count + 1);
  for (unsigned i = 0; i < count; i++) commit_clear(&commits[i]);
  uint64_t chain = journal_last_chain(journal);
  journal_close(journal, true);
  journal = fixture_open(data.text);
  assert_true(journal_was_clean(journal));
  assert_int_equal(journal_last_seq(journal), 17);
  assert_int_equal(journal_last_chain(journal), chain);
  journal_close(journal, false);
  test_directory_remove(top);
}

static void test_told_when_durable(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  struct fault fault = {.message = ""};
  journal_write_behind(journal, tell, &listener);
  for (unsigned i = 1; i <= 20; i++) {
    struct commit commit;
    uint64_t durable = 0;
    unsigned told = listener.told;
    fill(&commit, journal, 1, 10);
    journal_hand_over(journal, &commit);
    assert_true(told_more_than(told) > told);
    assert_int_equal(journal_settled(journal, 0, &durable, &fault), STATUS_OK);
    assert_int_equal(durable, i);
    commit_clear(&commit);
  }
  journal_quiet(journal);
  unsigned told = listener.told;
  struct commit commit;
  fill(&commit, journal, 1, 10);
  journal_hand_over(journal, &commit);
  journal_quiet(journal);
  assert_int_equal(journal_last_seq(journal), 21);
  assert_int_equal(listener.told, told); /* nobody listens any more */
  commit_clear(&commit);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* Without the thread it is done at once; so it is told. */
static void test_without_thread(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  struct commit commit;
  struct fault fault = {.message = ""};
  uint64_t durable = 0;
  fill(&commit, journal, 3, 10);
  journal_hand_over(journal, &commit);
  assert_int_equal(journal_last_seq(journal), 3);
  assert_int_equal(journal_settled(journal, 3, &durable, &fault), STATUS_OK);
  assert_int_equal(durable, 3);
  commit_clear(&commit);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* Two commits of one transaction, the second of which finds no room: neither is there. */
static void test_all_or_nothing(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = fixture_create(data.text);
  struct commit commits[2];
  struct commit *both[] = {&commits[0], &commits[1]};
  struct fault fault = {.message = ""};
  struct journal_stats stats;
  fixture_commit(journal, 4, 100);
  journal_stats(journal, &stats);
  fill(&commits[0], journal, 2, 10);
  uint64_t chain = commit_seal(&commits[0], journal_last_chain(journal));
  journal->handed_seq += 2; /* as the hand-over counts */
  fill(&commits[1], journal, 50, 4000);
  chain = commit_seal(&commits[1], chain);
  (void)signal(SIGXFSZ, SIG_IGN);
  file_size_limit(stats.used_bytes + 8192);
  enum status status = commits_write(journal, both, 2, chain, &fault);
  file_size_limit(RLIM_INFINITY);
  assert_true(status == STATUS_NO_SPACE || status == STATUS_IO_ERROR);
  assert_int_equal(journal_last_seq(journal), 4);
  assert_int_equal(commits_write(journal, both, 2, chain, &fault), STATUS_IO_ERROR);
  assert_non_null(strstr(fault.message, "an earlier write failed"));
  for (unsigned i = 0; i < 2; i++) commit_clear(&commits[i]);
  journal_close(journal, true);
  journal = fixture_open(data.text);
  assert_int_equal(journal_last_seq(journal), 4);
  assert_int_equal(shape_of(journal).commits, 1);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* What fails is told once and for all, and nothing behind it is written. */
static void test_failure_is_the_end(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = fixture_create(data.text);
  struct commit commits[3];
  struct fault fault = {.message = ""};
  struct journal_stats stats;
  uint64_t durable = 77;
  fixture_commit(journal, 4, 100);
  journal_stats(journal, &stats);
  journal_write_behind(journal, tell, &listener);
  (void)signal(SIGXFSZ, SIG_IGN);
  file_size_limit(stats.used_bytes + 8192);
  MDB_txn *held = hold_disk(journal);
  static const size_t chars[] = {4000, 10, 10};
  for (unsigned i = 0; i < 3; i++) {
    fill(&commits[i], journal, i == 0 ? 50 : 2, chars[i]);
    journal_hand_over(journal, &commits[i]);
  }
  mdb_txn_abort(held);
  enum status status = journal_settled(journal, 4 + 50 + 2 + 2, &durable, &fault);
  file_size_limit(RLIM_INFINITY);
  assert_true(status == STATUS_NO_SPACE || status == STATUS_IO_ERROR);
  assert_int_equal(durable, 77);
  assert_non_null(strstr(fault.message, "cannot write a commit"));
  assert_int_equal(journal_settled(journal, 0, &durable, &fault), status); /* and again */
  assert_int_equal(journal_last_seq(journal), 4);
  assert_int_equal(journal_reserve(journal, 1), STATUS_IO_ERROR);
  journal_quiet(journal);
  for (unsigned i = 0; i < 3; i++) commit_clear(&commits[i]);
  journal_close(journal, true); /* no mark: this was no clean stop */
  journal = fixture_open(data.text);
  assert_false(journal_was_clean(journal));
  assert_int_equal(journal_last_seq(journal), 4);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* What is on its way is written before the journal is closed. */
static void test_close_writes(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = fixture_create(data.text);
  struct commit commits[commits_in_flight_max];
  journal_write_behind(journal, tell, &listener);
  MDB_txn *held = hold_disk(journal);
  for (unsigned i = 0; i < commits_in_flight_max; i++) { /* as many as may be on their way at once */
    fill(&commits[i], journal, 3, 1000);
    journal_hand_over(journal, &commits[i]);
  }
  assert_int_equal(journal_last_seq(journal), 0);
  mdb_txn_abort(held);
  journal_close(journal, false);
  for (unsigned i = 0; i < commits_in_flight_max; i++) commit_clear(&commits[i]);
  journal = fixture_open(data.text);
  assert_int_equal(journal_last_seq(journal), 3 * commits_in_flight_max);
  assert_int_equal(shape_of(journal).commits, commits_in_flight_max);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* Room is held for what is on its way and for what comes behind it, and the file is made longer beside transactions without
 * harm to either. */
static void test_room_beside_transactions(void **state) {
  (void)state;
  enum { rounds = 400, together = 4 };
  static const uint64_t mib = 1024 * 1024;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal =
      fixture_open_with(data.text, (struct journal_options){.map_bytes = 256 * mib, .reserve_bytes = 4 * mib, .create = true});
  struct commit commits[together];
  struct fault fault = {.message = ""};
  uint64_t durable = 0, seed = 5;
  journal_write_behind(journal, tell, &listener);
  for (unsigned i = 0; i < together; i++) commit_init(&commits[i]);
  for (unsigned round = 0; round < rounds; round++) {
    struct commit *commit = &commits[round % together];
    if (round >= together) {
      uint64_t last = commit->first_seq + commit->count - 1;
      assert_int_equal(journal_settled(journal, last, &durable, &fault), STATUS_OK);
      assert_true(durable >= last);
    }
    commit_clear(commit);
    seed = seed * UINT64_C(6364136223846793005) + 1;
    fill(commit, journal, 1 + (unsigned)(seed >> 60), (size_t)(seed >> 50) % 6000);
    uint64_t bytes = commit->records.size;
    assert_int_equal(journal_reserve(journal, bytes), STATUS_OK);
    assert_true(journal_fits(journal, bytes));
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_true(stats.used_bytes <= stats.file_bytes);
    journal_hand_over(journal, commit);
  }
  journal_quiet(journal);
  uint64_t last = journal_last_seq(journal);
  assert_int_equal(shape_of(journal).commits, rounds);
  for (unsigned i = 0; i < together; i++) commit_clear(&commits[i]);
  journal_close(journal, false);
  journal = fixture_open(data.text);
  assert_int_equal(journal_last_seq(journal), last);
  assert_int_equal(shape_of(journal).commits, rounds);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* What is on its way counts: room for one more behind it is not room for one more. */
static void test_room_counts_what_is_on_its_way(void **state) {
  (void)state;
  static const uint64_t mib = 1024 * 1024;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal =
      fixture_open_with(data.text, (struct journal_options){.map_bytes = 64 * mib, .reserve_bytes = 4 * mib, .create = true});
  struct commit commit;
  struct fault fault = {.message = ""};
  uint64_t durable = 0;
  assert_int_equal(journal_reserve(journal, 8 * mib), STATUS_OK);
  journal_write_behind(journal, tell, &listener);
  fill(&commit, journal, 400, 20000);
  assert_true(journal_fits(journal, 8 * mib));
  MDB_txn *held = hold_disk(journal);
  journal_hand_over(journal, &commit);
  assert_false(journal_fits(journal, 8 * mib));
  assert_int_equal(journal_reserve(journal, 8 * mib), STATUS_OK); /* the file is made longer, behind what both may take */
  assert_true(journal_fits(journal, 8 * mib));
  assert_int_equal(journal_reserve(journal, 40 * mib), STATUS_NO_SPACE);
  mdb_txn_abort(held);
  assert_int_equal(journal_settled(journal, 400, &durable, &fault), STATUS_OK);
  assert_true(journal_fits(journal, 8 * mib));
  assert_int_equal(shape_of(journal).events, 400);
  commit_clear(&commit);
  journal_close(journal, false);
  test_directory_remove(top);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_several_in_one_transaction),
      cmocka_unit_test(test_told_when_durable),
      cmocka_unit_test(test_without_thread),
      cmocka_unit_test(test_all_or_nothing),
      cmocka_unit_test(test_failure_is_the_end),
      cmocka_unit_test(test_close_writes),
      cmocka_unit_test(test_room_beside_transactions),
      cmocka_unit_test(test_room_counts_what_is_on_its_way),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
