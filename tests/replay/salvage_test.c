/* orbit-replay salvage: the sound commits up to the damage in a new log, the old one as it was, and a report of what is lost.
 */
#include "replay/rig.h"

static struct rig rig;

static int setup(void **state) {
  (void)state;
  memset(&rig, 0, sizeof rig);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  rig_remove(&rig);
  return 0;
}

/* The events of two logs are the same up to the end of the shorter one, whose seq is returned: the end of a commit. */
static uint64_t same_prefix(const char *whole, const char *part) {
  struct journal *one = fixture_read(whole), *other = fixture_read(part);
  struct journal_reader *first, *second;
  struct bytes record, copy;
  struct event last;
  uint64_t end = journal_last_seq(other);
  assert_true(bytes_equal(journal_genesis(one), journal_genesis(other)));
  assert_true(end <= journal_last_seq(one));
  assert_int_equal(journal_reader_new(one, &first), STATUS_OK);
  assert_int_equal(journal_reader_new(other, &second), STATUS_OK);
  for (uint64_t seq = 1; seq <= end; seq++) {
    assert_int_equal(journal_reader_get(first, seq, &record), STATUS_OK);
    assert_int_equal(journal_reader_get(second, seq, &copy), STATUS_OK);
    assert_true(bytes_equal(record, copy));
  }
  if (end != 0) {
    assert_int_equal(record_header_decode(copy, &last), STATUS_OK);
    assert_true(last.last_of_commit);
  }
  journal_reader_free(first);
  journal_reader_free(second);
  journal_close(one, false);
  journal_close(other, false);
  return end;
}

/* Salvages the copy as it lies there. How many events came out of it. */
static uint64_t salvage(void) {
  struct api_run run, verified;
  struct path out = rig_out(&rig);
  struct bytes before = test_file_read(rig.file.text);
  rig_replay(&run, "salvage", out.text, "--data", rig.copy.text, NULL);
  struct bytes after = test_file_read(rig.file.text);
  assert_true(bytes_equal(before, after));
  uint64_t kept = rig_number(&run, " events in"), end = same_prefix(rig.sound.text, out.text);
  rig_expect(&run, end == rig.events ? 0 : 1);
  assert_non_null(strstr(run.out, "written: "));
  assert_int_equal(kept, end);
  if (end == rig.events) assert_non_null(strstr(run.out, "lost: nothing that can be seen\n"));
  else assert_non_null(strstr(run.out, "lost: "));
  assert_null(end == rig.events ? NULL : strstr(run.out, "lost: nothing"));
  rig_replay(&verified, "verify", "--data", out.text, NULL);
  rig_expect(&verified, 0);
  assert_int_equal(rig_number(&verified, " events"), end);
  api_run_clear(&run);
  api_run_clear(&verified);
  test_directory_remove(strdup(out.text));
  free((void *)(uintptr_t)before.data);
  free((void *)(uintptr_t)after.data);
  return end;
}

static void test_sound(void **state) {
  (void)state;
  rig_make(&rig, "100");
  assert_int_equal(salvage(), rig.events);
}

/* Where the record of seq lies in the file; there may be older copies of it in pages that are free. */
static uint64_t record_at(uint64_t seq, struct bytes *ret_record, uint64_t from) {
  struct journal *journal = fixture_read(rig.sound.text);
  struct journal_reader *reader;
  assert_int_equal(journal_reader_new(journal, &reader), STATUS_OK);
  assert_int_equal(journal_reader_get(reader, seq, ret_record), STATUS_OK);
  const uint8_t *at = memmem(rig.bytes.data + from, rig.bytes.size - from, ret_record->data, ret_record->size);
  journal_reader_free(reader);
  journal_close(journal, false);
  return at != NULL ? (uint64_t)(at - rig.bytes.data) : 0;
}

/* A flipped byte in an event: everything before its commit is kept, and nothing behind. */
static void test_flipped_event(void **state) {
  (void)state;
  rig_make(&rig, "100");
  const uint64_t seqs[] = {1, 2, rig.events / 2, rig.events - 1, rig.events};
  for (unsigned i = 0; i < sizeof seqs / sizeof seqs[0]; i++) {
    struct bytes record;
    rig_fresh(&rig);
    for (uint64_t at = 0; (at = record_at(seqs[i], &record, at)) != 0; at++) {
      uint8_t byte = rig.bytes.data[at + 70] ^ 1;
      rig_write(&rig, at + 70, &byte, 1);
    }
    uint64_t end = salvage();
    assert_true(end < seqs[i]);
    assert_true(seqs[i] - end <= 1024); /* the commit it is in */
  }
}

/* Single flips anywhere, and zeroed pages: what is not an event's own byte costs no event. */
static void test_flips_and_zeroes(void **state) {
  (void)state;
  enum { damages = 24 };
  static const uint8_t zeroes[4096];
  uint64_t seed = test_seed(), pages, whole = 0;
  rig_make(&rig, "60");
  pages = rig.bytes.size / 4096;
  for (unsigned i = 0; i < damages; i++) {
    uint64_t page = i < 2 ? i : test_random(&seed) % pages, at = page * 4096 + test_random(&seed) % (page < 2 ? 160 : 48);
    uint8_t byte = rig.bytes.data[at] ^ (uint8_t)(1u << test_random(&seed) % 8);
    if (i % 2 == 0) rig_write(&rig, page * 4096, zeroes, sizeof zeroes);
    else rig_write(&rig, at, &byte, 1);
    whole += salvage() == rig.events;
    rig_write(&rig, page * 4096, rig.bytes.data + page * 4096, 4096);
  }
  print_message("%" PRIu64 " of %d without any loss\n", whole, damages);
  assert_true(whole > 0);
}

/* A torn tail: the longer the file, the more is kept; as long as genesis is there, something is made. */
static void test_torn(void **state) {
  (void)state;
  rig_make(&rig, "60");
  uint64_t pages = rig.bytes.size / 4096, best = 0;
  struct api_run run;
  for (uint64_t cut = 1; cut <= pages; cut = cut * 2 + 1) {
    rig_fresh(&rig);
    assert_int_equal(truncate(rig.file.text, (off_t)(rig.bytes.size - cut * 4096 + cut % 4096)), 0);
    struct walker *walker;
    struct fault fault;
    assert_int_equal(walker_open(rig.copy.text, NULL, &walker, &fault), STATUS_OK);
    assert_int_equal(walker_scan(walker, &fault), STATUS_OK);
    bool begins = walker_genesis(walker).data != NULL || walker_scan_genesis(walker).data != NULL;
    walker_close(walker);
    if (begins) {
      uint64_t end = salvage();
      if (end > best) best = end;
      continue;
    }
    struct path out = rig_out(&rig);
    rig_replay(&run, "salvage", out.text, "--data", rig.copy.text, NULL);
    rig_expect(&run, 1);
    assert_non_null(strstr(run.err, "genesis"));
    assert_int_equal(access(out.text, F_OK), -1);
    api_run_clear(&run);
  }
  assert_true(best > rig.events / 2);
}

static void test_refusals(void **state) {
  (void)state;
  rig_make(&rig, "50");
  struct api_run run;
  struct path out = rig_out(&rig);
  assert_int_equal(mkdir(out.text, 0700), 0);
  rig_replay(&run, "salvage", out.text, "--data", rig.copy.text, NULL);
  rig_expect(&run, 1);
  assert_non_null(strstr(run.err, "exists"));
  api_run_clear(&run);
  assert_int_equal(rmdir(out.text), 0); /* as empty as before */
  rig_replay(&run, "salvage", out.text, "--data", path_of(rig.server.directory, "none").text, NULL);
  rig_expect(&run, 3);
  api_run_clear(&run);
  rig_replay(&run, "salvage", path_of(out.text, "below").text, "--data", rig.copy.text, NULL);
  rig_expect(&run, 3);
  api_run_clear(&run);
}

/* The server goes on from where the salvaged log ends. */
static void test_server_goes_on(void **state) {
  (void)state;
  rig_make(&rig, "60");
  struct api_run run;
  struct bytes record;
  struct path out = rig_out(&rig);
  for (uint64_t at = 0; (at = record_at(rig.events - 3, &record, at)) != 0; at++) {
    uint8_t byte = rig.bytes.data[at + 70] ^ 1;
    rig_write(&rig, at + 70, &byte, 1);
  }
  rig_replay(&run, "salvage", out.text, "--data", rig.copy.text, NULL);
  rig_expect(&run, 1); /* something is lost */
  uint64_t kept = rig_number(&run, " events in");
  api_run_clear(&run);
  rig_serve(&rig, out.text);
  api_server_start(&rig.server, NULL);
  rig_load(&rig, "20", NULL);
  assert_int_equal(api_server_stop(&rig.server, SIGTERM), 0);
  rig_replay(&run, "verify", "--data", out.text, NULL);
  rig_expect(&run, 0);
  assert_true(rig_number(&run, " events") > kept);
  api_run_clear(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_sound, setup, teardown),
      cmocka_unit_test_setup_teardown(test_flipped_event, setup, teardown),
      cmocka_unit_test_setup_teardown(test_flips_and_zeroes, setup, teardown),
      cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
      cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
      cmocka_unit_test_setup_teardown(test_server_goes_on, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
