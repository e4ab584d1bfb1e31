/* The walker: sees what liblmdb sees, names every change of a byte that matters, accounts for every byte, and never dies. */
#include <pthread.h>
#include <signal.h>

#include "journal/walker_fixture.h"

/* All records as liblmdb gives them are what the walker gives, one by one and by look-up. */
static void test_sees_what_lmdb_sees(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  walker_log_make(data.text, 300);
  struct journal *journal = fixture_read(data.text);
  struct journal_reader *reader;
  struct walker *walker, *second;
  struct walker_verdict verdict = {.talk = true};
  struct walker_listener listener = {verdict_damage, verdict_unused, &verdict};
  struct fault fault = {.message = ""};
  struct bytes record, other;
  uint64_t key, count = 0;
  assert_int_equal(journal_reader_new(journal, &reader), STATUS_OK);
  assert_int_equal(walker_open(data.text, &listener, &walker, &fault), STATUS_OK);
  assert_int_equal(walker_open(data.text, NULL, &second, &fault), STATUS_OK);
  assert_true(bytes_equal(walker_genesis(walker), journal_genesis(journal)));
  while (walker_next(walker, &key, &record) == STATUS_OK) {
    assert_int_equal(key, ++count);
    assert_int_equal(journal_reader_get(reader, key, &other), STATUS_OK);
    assert_true(bytes_equal(record, other));
    assert_int_equal(walker_get(second, count * 7 % journal_last_seq(journal) + 1, &record), STATUS_OK);
    assert_int_equal(journal_reader_get(reader, count * 7 % journal_last_seq(journal) + 1, &other), STATUS_OK);
    assert_true(bytes_equal(record, other));
  }
  assert_int_equal(count, journal_last_seq(journal));
  assert_int_equal(walker_get(second, count + 1, &record), STATUS_END);
  assert_int_equal(walker_get(second, 0, &record), STATUS_END);
  walker_finish(walker);
  struct walker_facts facts;
  walker_facts(walker, &facts);
  assert_int_equal(verdict.findings, 0);
  assert_int_equal(facts.end_seq, count);
  assert_int_equal(facts.entries, count);
  assert_true(facts.whole);
  assert_in_range(facts.unused_bytes, 1, facts.file_bytes);
  walker_close(walker);
  walker_close(second);
  journal_reader_free(reader);
  journal_close(journal, false);
  assert_int_equal(walker_check(data.text, &fault), STATUS_OK);
  test_directory_remove(top);
}

static void test_empty_and_absent(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct walker *walker = NULL;
  struct fault fault = {.message = ""};
  assert_int_equal(walker_open(data.text, NULL, &walker, &fault), STATUS_NOT_FOUND);
  assert_null(walker);
  assert_int_equal(walker_check(data.text, &fault), STATUS_OK);
  journal_close(fixture_create(data.text), false);
  struct walker_verdict verdict = {.talk = true};
  walker_verdict_make(data.text, &verdict);
  assert_int_equal(verdict.findings, 0);
  assert_int_equal(verdict.events, 0);
  assert_true(verdict.facts.whole);
  test_directory_remove(top);
}

/* Of the damage below one in so many is done: all, unless the environment says otherwise (valgrind takes a night for all). */
static unsigned stride(void) {
  const char *given = getenv("ORBIT_WALKER_STRIDE");
  unsigned long value = given != NULL ? strtoul(given, NULL, 10) : 1;
  assert_in_range(value, 1, 1000);
  return (unsigned)value;
}

/* ---- One byte changed ---- */

struct flips {
  struct path data, file;
  struct bytes whole;
  uint8_t *unused;
  struct walker_verdict sound;
  unsigned found, harmless;
};

static void flips_begin(struct flips *flips, char *top, unsigned commits) {
  memset(flips, 0, sizeof *flips);
  flips->data = path_of(top, "data");
  flips->file = path_of(top, "data/log/data.mdb");
  walker_log_make(flips->data.text, commits);
  flips->whole = test_file_read(flips->file.text);
  assert_non_null(flips->whole.data);
  flips->unused = guard_calloc(1, flips->whole.size);
  flips->sound = (struct walker_verdict){.unused = flips->unused, .unused_size = flips->whole.size, .talk = true};
  walker_verdict_make(flips->data.text, &flips->sound);
  flips->sound.talk = false;
  assert_int_equal(flips->sound.findings, 0);
  assert_true(flips->sound.facts.whole);
  uint64_t unused = 0;
  for (size_t i = 0; i < flips->whole.size; i++) unused += flips->unused[i];
  assert_int_equal(unused, flips->sound.facts.unused_bytes);
}

static void flips_end(struct flips *flips, char *top) {
  print_message("%u found, %u in unused space\n", flips->found, flips->harmless);
  assert_true(flips->found > 0);
  free((void *)(uintptr_t)flips->whole.data);
  free(flips->unused);
  test_directory_remove(top);
}

static void byte_write(const struct flips *flips, uint64_t offset, uint8_t byte) {
  cleanup(guard_close) int file = open(flips->file.text, O_WRONLY);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, &byte, 1, (off_t)offset), 1);
}

/* The change is found, or it lies in unused space and every event reads as before. */
static void flip(struct flips *flips, uint64_t offset, uint8_t mask) {
  struct walker_verdict verdict = {.talk = false};
  byte_write(flips, offset, flips->whole.data[offset] ^ mask);
  walker_verdict_make(flips->data.text, &verdict);
  byte_write(flips, offset, flips->whole.data[offset]);
  if (verdict.findings > 0) {
    flips->found++;
    return;
  }
  flips->harmless++;
  if (!flips->unused[offset])
    print_message("byte %" PRIu64 " of page %" PRIu64 " changed by %02x: not found\n", offset % 4096, offset / 4096, mask);
  assert_true(flips->unused[offset]);
  assert_int_equal(verdict.events, flips->sound.events);
  assert_int_equal(verdict.digest, flips->sound.digest);
}

static uint8_t mask_random(uint64_t *seed) {
  uint64_t random = test_random(seed);
  return random % 2 == 0 ? (uint8_t)(1u << random / 2 % 8) : (uint8_t)(1 + random / 2 % 255);
}

/* Random bytes: half of them anywhere in what is in use, half in the first pages, headers and pointers. */
static void test_flips_random(void **state) {
  (void)state;
  char *top = test_directory_make();
  uint64_t seed = test_seed();
  struct flips flips;
  flips_begin(&flips, top, 160);
  uint64_t used = flips.whole.size;
  while (used > 0 && flips.whole.data[used - 1] == 0) used--;
  uint64_t pages = used / 4096 + 1;
  for (unsigned i = 0; i < 2000; i += stride()) {
    uint64_t random = test_random(&seed), page = random / 4 % pages;
    if (random % 2 == 0) flip(&flips, test_random(&seed) % used, mask_random(&seed));
    else flip(&flips, page * 4096 + test_random(&seed) % (page < 2 ? 160 : 48), mask_random(&seed));
  }
  flips_end(&flips, top);
}

/* Every byte of a small log, once. */
static void test_flips_all(void **state) {
  (void)state;
  char *top = test_directory_make();
  uint64_t seed = test_seed();
  struct flips flips;
  flips_begin(&flips, top, 9);
  for (uint64_t offset = 0; offset < flips.whole.size && offset < 40 * 4096; offset += stride())
    if (offset % 4096 < 300 || !flips.unused[offset]) flip(&flips, offset, mask_random(&seed));
  flips_end(&flips, top);
}

/* ---- More than a byte ---- */

/* Cut off behind each page: always found, and every event in front of the damage can be read. */
static void test_truncations(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct flips flips;
  flips_begin(&flips, top, 60);
  uint64_t pages = flips.whole.size / 4096;
  for (uint64_t page = pages; page-- > 0;) {
    if (page % stride() != 0) continue;
    for (unsigned more = 0; more < 2; more++) {
      struct walker_verdict verdict = {.talk = false};
      assert_int_equal(truncate(flips.file.text, (off_t)(page * 4096 + more * 1000)), 0);
      walker_verdict_make(flips.data.text, &verdict);
      if (verdict.findings > 0) flips.found++;
      else assert_int_equal(verdict.digest, flips.sound.digest);
      if (page == 0) assert_int_equal(verdict.events, 0);
    }
  }
  flips_end(&flips, top);
}

/* Each page zeroed, and each filled with another one: found, or it was in no use. */
static void test_pages_replaced(void **state) {
  (void)state;
  char *top = test_directory_make();
  uint64_t seed = test_seed();
  struct flips flips;
  flips_begin(&flips, top, 60);
  uint64_t pages = flips.whole.size / 4096;
  cleanup(guard_close) int file = open(flips.file.text, O_WRONLY);
  for (uint64_t page = 0; page < pages; page += stride()) {
    uint64_t other = test_random(&seed) % pages;
    static const uint8_t zeroes[4096];
    const uint8_t *own = flips.whole.data + page * 4096, *with[] = {zeroes, flips.whole.data + other * 4096};
    for (unsigned i = 0; i < 2; i++) {
      struct walker_verdict verdict = {.talk = false};
      assert_int_equal(pwrite(file, with[i], 4096, (off_t)(page * 4096)), 4096);
      walker_verdict_make(flips.data.text, &verdict);
      assert_int_equal(pwrite(file, own, 4096, (off_t)(page * 4096)), 4096);
      if (verdict.findings > 0) {
        flips.found++;
        continue;
      }
      assert_int_equal(verdict.digest, flips.sound.digest);
      for (unsigned at = 0; at < 4096; at++) assert_true(with[i][at] == own[at] || flips.unused[page * 4096 + at]);
    }
  }
  flips_end(&flips, top);
}

/* Pages of noise: nothing may be believed, and nothing may hang or die. */
static void test_noise(void **state) {
  (void)state;
  char *top = test_directory_make();
  uint64_t seed = test_seed();
  struct flips flips;
  flips_begin(&flips, top, 60);
  cleanup(guard_close) int file = open(flips.file.text, O_WRONLY);
  for (unsigned round = 0; round < 300; round += stride()) {
    struct walker_verdict verdict = {.talk = false};
    for (unsigned i = 0; i < 30; i++) {
      uint64_t page = test_random(&seed) % (flips.whole.size / 4096), at = page * 4096 + test_random(&seed) % 160 / 2 * 2;
      uint16_t noise = (uint16_t)(test_random(&seed) >> (test_random(&seed) % 16));
      assert_int_equal(pwrite(file, &noise, sizeof noise, (off_t)at), sizeof noise);
    }
    walker_verdict_make(flips.data.text, &verdict);
    flips.found += verdict.findings > 0;
    assert_int_equal(pwrite(file, flips.whole.data, flips.whole.size, 0), flips.whole.size);
  }
  flips_end(&flips, top);
}

/* ---- Beside a writer ---- */

/* A thread that commits so much for each reading, however long that takes: a log that grew for as long as the readings take
 * would make them longer in turn, and on a fast disk fill its map. */
struct writing {
  struct journal *journal;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  unsigned commits, wanted;
  bool stop;
  enum status status; /* of its last commit: assertions are for the test's own thread */
  struct fault fault;
};

/* Waits until one more is wanted. False: none will be. */
static bool write_is_wanted(struct writing *writing, unsigned done) {
  assert_int_equal(pthread_mutex_lock(&writing->mutex), 0);
  writing->commits = done;
  while (!writing->stop && done >= writing->wanted) assert_int_equal(pthread_cond_wait(&writing->changed, &writing->mutex), 0);
  bool stop = writing->stop;
  assert_int_equal(pthread_mutex_unlock(&writing->mutex), 0);
  return !stop;
}

static void *write_on(void *context) {
  struct writing *writing = context;
  struct commit commit;
  commit_init(&commit);
  for (unsigned i = 0; write_is_wanted(writing, i) && writing->status == STATUS_OK; i++) {
    if (i % 17 == 0) fixture_fill(&commit, writing->journal, 1, 9000);
    else fixture_fill(&commit, writing->journal, 1 + i % 30, 30 + i % 11 * 40);
    writing->status = journal_commit(writing->journal, &commit, &writing->fault);
  }
  commit_clear(&commit);
  return NULL;
}

/* Returns how many commits there were before. */
static unsigned writing_allow(struct writing *writing, unsigned commits, bool stop) {
  assert_int_equal(pthread_mutex_lock(&writing->mutex), 0);
  unsigned before = writing->commits;
  writing->wanted += commits;
  writing->stop = stop;
  assert_int_equal(pthread_cond_signal(&writing->changed), 0);
  assert_int_equal(pthread_mutex_unlock(&writing->mutex), 0);
  return before;
}

/* Whatever the writer does, each reading shows every event that was there when it began, sound and in order. */
static void test_beside_a_writer(void **state) {
  (void)state;
  enum { readings = 60, commits_each = 40 };
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct writing writing = {
      .journal = fixture_create(data.text), .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  pthread_t thread;
  for (unsigned i = 0; i < 16; i++) fixture_commit(writing.journal, 500, 300);
  assert_int_equal(pthread_create(&thread, NULL, write_on, &writing), 0);
  unsigned moved = 0, overtaken = 0;
  for (unsigned i = 0; i < readings; i++) {
    struct walker_verdict verdict = {.talk = true};
    unsigned commits = writing_allow(&writing, commits_each, false);
    uint64_t before = journal_last_seq(writing.journal);
    walker_verdict_make(data.text, &verdict);
    assert_int_equal(verdict.opened, STATUS_OK);
    assert_int_equal(verdict.findings, 0);
    assert_true(verdict.events >= before);
    assert_int_equal(verdict.events, verdict.last_seq);
    assert_int_equal(verdict.events, verdict.facts.end_seq);
    moved += !verdict.facts.whole;
    overtaken += writing_allow(&writing, 0, false) != commits;
  }
  (void)writing_allow(&writing, 0, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  if (writing.status != STATUS_OK) print_message("%s: %s\n", status_name(writing.status), writing.fault.message);
  assert_int_equal(writing.status, STATUS_OK);
  print_message("%u of %d readings had a commit beside them, %u changed their snapshot\n", overtaken, readings, moved);
  journal_close(writing.journal, true);
  struct walker_verdict verdict = {.talk = true};
  walker_verdict_make(data.text, &verdict);
  assert_int_equal(verdict.findings, 0);
  assert_true(verdict.facts.whole);
  test_directory_remove(top);
}

/* A reader that holds its snapshot over thousands of commits makes long lists of free pages; a writer that dies half-way leaves
 * pages that belong to nobody. Both are lawful. */
static void test_lists_of_free_pages(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct walker_verdict verdict = {.talk = true};
  struct journal *journal = fixture_create(data.text);
  struct journal_reader *reader;
  struct bytes record;
  fixture_commit(journal, 300, 200);
  assert_int_equal(journal_reader_new(journal, &reader), STATUS_OK);
  assert_int_equal(journal_reader_get(reader, 1, &record), STATUS_OK);
  for (unsigned i = 0; i < 1500; i++) fixture_commit(journal, 1 + i % 3, 100);
  walker_verdict_make(data.text, &verdict);
  assert_int_equal(verdict.findings, 0);
  assert_true(verdict.facts.whole);
  uint64_t unused = verdict.facts.unused_bytes;
  assert_true(unused > verdict.facts.file_bytes / 3);
  journal_reader_free(reader);
  for (unsigned i = 0; i < 1000; i++) {
    fixture_commit(journal, 1 + i % 3, 100 + i % 300);
    if (i % 50 != 0) continue;
    walker_verdict_make(data.text, &verdict);
    assert_int_equal(verdict.findings, 0);
    assert_true(verdict.facts.whole);
  }
  uint64_t events = journal_last_seq(journal);
  journal_close(journal, false);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    /* The pages of a commit are written, and then the process is gone before the first page says so. */
    struct raw_log log = raw_open(data.text);
    uint8_t noise[3000];
    memset(noise, 7, sizeof noise);
    for (uint64_t seq = events + 1; seq < events + 400; seq++) raw_put(&log, seq, bytes_of(noise, sizeof noise));
    (void)raise(SIGKILL);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFSIGNALED(result));
  walker_verdict_make(data.text, &verdict);
  assert_int_equal(verdict.findings, 0);
  assert_int_equal(verdict.events, events);
  test_directory_remove(top);
}

/* ---- Pages that nothing leads to ---- */

/* With the first pages and every branch gone, each event is found by its chain alone, and no event that was never written. */
static void test_scan(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct flips flips;
  struct walker *walker;
  struct judge judge;
  struct fault fault = {.message = ""};
  struct bytes record;
  flips_begin(&flips, top, 200);
  static const uint8_t zeroes[4096];
  cleanup(guard_close) int file = open(flips.file.text, O_WRONLY);
  for (uint64_t page = 0; page < flips.whole.size / 4096; page++) {
    if (page >= 2 && flips.whole.data[page * 4096 + 10] != 1) continue;
    assert_int_equal(pwrite(file, zeroes, sizeof zeroes, (off_t)(page * 4096)), sizeof zeroes);
    flips.found++;
  }
  assert_int_equal(walker_open(flips.data.text, NULL, &walker, &fault), STATUS_OK);
  uint64_t seq;
  assert_int_equal(walker_next(walker, &seq, &record), STATUS_END);
  assert_null(walker_genesis(walker).data);
  assert_int_equal(walker_scan(walker, &fault), STATUS_OK);
  assert_non_null(walker_scan_genesis(walker).data);
  judge_begin(&judge, walker_scan_genesis(walker));
  uint64_t digest = 0;
  while (walker_scan_find(walker, judge.seq + 1, judge.chain, &record) == STATUS_OK) {
    struct event event;
    assert_null(judge_bytes(&judge, record));
    assert_int_equal(record_header_decode(record, &event), STATUS_OK);
    assert_null(judge_order(&judge, &event));
    assert_int_equal(walker_scan_find(walker, event.seq, judge.chain ^ 1, &record), STATUS_END);
    assert_int_equal(walker_scan_find(walker, event.seq, judge.chain, &record), STATUS_OK);
    digest = record_chain(record, digest);
    judge_take(&judge, &event);
  }
  assert_int_equal(judge.seq, flips.sound.events);
  assert_int_equal(digest, flips.sound.digest);
  uint64_t events, last, bytes;
  walker_scan_behind(walker, judge.seq - 10, &events, &last, &bytes);
  assert_int_equal(events, 10);
  assert_int_equal(last, judge.seq);
  assert_true(bytes > 10 * record_header_bytes);
  walker_scan_behind(walker, judge.seq, &events, &last, &bytes);
  assert_int_equal(events, 0);
  walker_close(walker);
  flips_end(&flips, top);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sees_what_lmdb_sees),
      cmocka_unit_test(test_empty_and_absent),
      cmocka_unit_test(test_flips_random),
      cmocka_unit_test(test_flips_all),
      cmocka_unit_test(test_truncations),
      cmocka_unit_test(test_pages_replaced),
      cmocka_unit_test(test_noise),
      cmocka_unit_test(test_beside_a_writer),
      cmocka_unit_test(test_lists_of_free_pages),
      cmocka_unit_test(test_scan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
