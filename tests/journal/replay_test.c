/* Replay: every event once and in order, and each kind of damage named with its seq before anything behind it is visited; the
 * same, in everything, with a reader ahead. */
#include <endian.h>
#include <stddef.h>

#include "journal/fixture.h"

struct seen {
  uint64_t count, last_seq, chain;
  uint64_t stop_at;     /* 0: never */
  struct journal *grow; /* gets a commit at the first event */
  bool ahead;           /* a reader may be so far ahead … */
  uint64_t far, near;   /* … and these were glanced at */
};

static enum status visit(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct seen *seen = context;
  assert_int_equal(event->seq, seen->last_seq + 1);
  assert_int_equal(event->type, EVENT_node_started);
  assert_int_equal(event->common.revision, event->seq);
  assert_true(record.size > record_header_bytes);
  assert_true(event->body.node_started.version.data > record.data);
  assert_true(event->body.node_started.version.data <= record.data + record.size);
  uint64_t read = journal_progress_seq();
  if (!seen->ahead) assert_true(read == event->seq);
  else assert_in_range(read, event->seq, event->seq + replay_ahead_events);
  if (seen->far != 0) {
    assert_in_range(seen->near, event->seq, event->seq + replay_glance_near_events);
    assert_in_range(seen->far, event->seq, event->seq + replay_glance_far_events);
  }
  seen->count++;
  seen->last_seq = event->seq;
  seen->chain = event->chain;
  if (seen->grow != NULL) fixture_commit(seen->grow, 3, 10);
  seen->grow = NULL;
  if (seen->last_seq == seen->stop_at) return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "stopped by the visitor");
  return STATUS_OK;
}

/* Each event is glanced at once from far and once from near, in order, before its visit. */
static void glance(void *context, const struct event *event, bool near) {
  struct seen *seen = context;
  uint64_t *last = near ? &seen->near : &seen->far, before = *last != 0 ? *last : seen->last_seq;
  assert_int_equal(event->seq, before + 1);
  assert_int_equal(event->common.revision, event->seq);
  if (near) assert_true(event->seq <= seen->far);
  *last = event->seq;
}

static void same_ahead(struct journal *journal, uint64_t after, uint64_t chain, bool glances, const struct seen *expected,
                       enum status status, const struct fault *says) {
  struct seen seen = {.last_seq = after, .stop_at = expected->stop_at, .ahead = true};
  struct fault fault = {.message = ""};
  enum status got = journal_replay_ahead(journal, after, chain, visit, glances ? glance : NULL, &seen, &fault);
  assert_int_equal(got, status);
  assert_string_equal(fault.message, status == STATUS_OK ? "" : says->message);
  assert_int_equal(seen.count, expected->count);
  assert_int_equal(seen.last_seq, expected->last_seq);
  assert_int_equal(seen.chain, expected->chain);
}

static enum status replay(struct journal *journal, uint64_t after, uint64_t chain, struct seen *ret_seen, struct fault *fault) {
  bool grows = ret_seen->grow != NULL;
  *ret_seen = (struct seen){.last_seq = after, .stop_at = ret_seen->stop_at, .grow = ret_seen->grow};
  enum status status = journal_replay(journal, after, chain, visit, ret_seen, fault);
  if (grows) return status;
  same_ahead(journal, after, chain, false, ret_seen, status, fault);
  same_ahead(journal, after, chain, true, ret_seen, status, fault);
  return status;
}

static void test_all(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = fixture_create(data.text);
  struct seen seen = {0};
  struct fault fault = {.message = ""};
  assert_int_equal(replay(journal, 0, 0, &seen, &fault), STATUS_OK);
  assert_int_equal(seen.count, 0);
  fixture_commit(journal, 1, 0);
  fixture_commit(journal, 9000, 20); /* more than two chunks */
  fixture_commit(journal, 10, 900000);
  uint64_t middle = journal_last_seq(journal), middle_chain = journal_last_chain(journal);
  journal_close(journal, false);
  journal = fixture_open(data.text);
  fixture_commit(journal, 5, 3);
  assert_int_equal(replay(journal, 0, 0, &seen, &fault), STATUS_OK);
  assert_int_equal(seen.count, 9016);
  assert_int_equal(seen.chain, journal_last_chain(journal));
  assert_int_equal(journal_progress_seq(), 9016);
  /* From a checkpoint. */
  assert_int_equal(replay(journal, middle, middle_chain, &seen, &fault), STATUS_OK);
  assert_int_equal(seen.count, 5);
  assert_int_equal(seen.chain, journal_last_chain(journal));
  uint64_t end_chain = seen.chain;
  assert_int_equal(replay(journal, 9016, end_chain, &seen, &fault), STATUS_OK);
  assert_int_equal(seen.count, 0);
  /* A checkpoint of another log. */
  assert_int_equal(replay(journal, middle, middle_chain ^ 1, &seen, &fault), STATUS_FOREIGN);
  assert_non_null(strstr(fault.message, "seq 9011"));
  assert_int_equal(replay(journal, 9016, end_chain ^ 1, &seen, &fault), STATUS_FOREIGN);
  assert_int_equal(replay(journal, 9017, end_chain, &seen, &fault), STATUS_FOREIGN);
  assert_non_null(strstr(fault.message, "seq 9017"));
  assert_int_equal(seen.count, 0);
  /* From within a commit: a follower may stand anywhere. */
  struct journal_reader *reader;
  struct bytes record;
  struct event event;
  assert_int_equal(journal_reader_new(journal, &reader), STATUS_OK);
  assert_int_equal(journal_reader_get(reader, 100, &record), STATUS_OK);
  assert_int_equal(record_header_decode(record, &event), STATUS_OK);
  journal_reader_free(reader);
  assert_int_equal(replay(journal, 100, event.chain, &seen, &fault), STATUS_OK);
  assert_int_equal(seen.count, 8916);
  journal_close(journal, false);
  test_directory_remove(top);
}

static void test_visitor_stops(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  fixture_commit(journal, 20, 10);
  struct seen seen = {.stop_at = 7};
  struct fault fault = {.message = ""};
  assert_int_equal(replay(journal, 0, 0, &seen, &fault), STATUS_STATE_CONFLICT);
  assert_int_equal(seen.count, 7);
  assert_string_equal(fault.message, "stopped by the visitor");
  /* What is committed during a replay is not part of it. */
  seen = (struct seen){.grow = journal};
  assert_int_equal(replay(journal, 0, 0, &seen, &fault), STATUS_OK);
  assert_int_equal(seen.count, 20);
  assert_int_equal(journal_last_seq(journal), 23);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* The ring's edges, a chunk's, and the end; and a reader that has read all long before. */
static void test_visitor_stops_a_reader_ahead(void **state) {
  static const uint64_t stops[] = {1, 2, 63, 64, 65, 448, 449, 511, 512, 513, 1024, 4095, 4096, 4097, 4160, 9999, 10000, 0};
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  fixture_commit(journal, 10000, 10);
  for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
    struct seen seen = {.stop_at = stops[i]};
    struct fault fault = {.message = ""};
    assert_int_equal(replay(journal, 0, 0, &seen, &fault), stops[i] != 0 ? STATUS_STATE_CONFLICT : STATUS_OK);
    assert_int_equal(seen.count, stops[i] != 0 ? stops[i] : 10000);
  }
  journal_close(journal, false);
  test_directory_remove(top);
}

/* ---- Damage ---- */

enum { log_events = 12 }; /* commits of 1, 4, 4 and 3 */

static void log_make(const char *data) {
  struct journal *journal = fixture_create(data);
  fixture_commit(journal, 1, 30);
  fixture_commit(journal, 4, 30);
  fixture_commit(journal, 4, 3000);
  fixture_commit(journal, 3, 30);
  journal_close(journal, false);
}

static void record_change(struct raw_log *log, uint64_t seq, size_t at, uint8_t bits) {
  struct bytes record = raw_get(log, seq);
  assert_true(at < record.size);
  ((uint8_t *)(uintptr_t)record.data)[at] ^= bits;
  raw_put(log, seq, record);
  free((void *)(uintptr_t)record.data);
}

/* Writes record seq and all behind it again with whole chains, so that only the change itself is wrong. */
static void chains_mend(struct raw_log *log, uint64_t from) {
  struct bytes before = raw_get(log, from - 1);
  struct event event;
  assert_int_equal(record_header_decode(before, &event), STATUS_OK);
  free((void *)(uintptr_t)before.data);
  uint64_t chain = event.chain;
  for (uint64_t seq = from; seq <= log_events; seq++) {
    struct bytes record = raw_get(log, seq);
    chain = record_chain(record, chain);
    uint64_t stored = htole64(chain);
    memcpy((uint8_t *)(uintptr_t)record.data + offsetof(struct record_header, chain), &stored, sizeof stored);
    raw_put(log, seq, record);
    free((void *)(uintptr_t)record.data);
  }
}

static void swap(struct raw_log *log, uint64_t one, uint64_t other) {
  struct bytes first = raw_get(log, one), second = raw_get(log, other);
  raw_put(log, one, second);
  raw_put(log, other, first);
  free((void *)(uintptr_t)first.data);
  free((void *)(uintptr_t)second.data);
}

static void body_flipped(struct raw_log *log) { record_change(log, 8, 100, 0x04); }
static void long_body_flipped(struct raw_log *log) { record_change(log, 7, 2500, 0x01); }
static void first_flipped(struct raw_log *log) { record_change(log, 1, 70, 0x01); }
static void chain_flipped(struct raw_log *log) { record_change(log, 9, offsetof(struct record_header, chain), 1); }
static void gap(struct raw_log *log) { raw_delete(log, 5); }
static void wide_gap(struct raw_log *log) {
  for (uint64_t seq = 3; seq <= 9; seq++) raw_delete(log, seq);
}
static void first_missing(struct raw_log *log) { raw_delete(log, 1); }
static void last_missing(struct raw_log *log) { raw_delete(log, 12); }
static void swapped(struct raw_log *log) { swap(log, 3, 4); }
static void repeated(struct raw_log *log) {
  struct bytes record = raw_get(log, 10);
  raw_put(log, 11, record);
  free((void *)(uintptr_t)record.data);
}
/* A whole log, but one that moved up by one: every record carries the number of another place. */
static void foreign_record(struct raw_log *log) {
  struct bytes record = raw_get(log, 4);
  memset((uint8_t *)(uintptr_t)record.data + offsetof(struct record_header, stream), 0x77, 16);
  raw_put(log, 4, record);
  free((void *)(uintptr_t)record.data);
}
static void short_record(struct raw_log *log) { raw_put(log, 6, bytes_of("short", 5)); }
static void cut_record(struct raw_log *log) {
  struct bytes record = raw_get(log, 6);
  raw_put(log, 6, bytes_of(record.data, record.size - 1));
  free((void *)(uintptr_t)record.data);
}
/* With whole chains: what only the other checks can find. */
static void type_unknown(struct raw_log *log) {
  record_change(log, 6, offsetof(struct record_header, type) + 1, 0x70);
  chains_mend(log, 6);
}
static void version_unknown(struct raw_log *log) {
  record_change(log, 6, offsetof(struct record_header, version), 0x40);
  chains_mend(log, 6);
}
static void time_falls(struct raw_log *log) {
  for (uint64_t seq = 6; seq <= 9; seq++) record_change(log, seq, offsetof(struct record_header, time_us) + 4, 0x01);
  chains_mend(log, 6);
}
static void time_differs(struct raw_log *log) {
  record_change(log, 8, offsetof(struct record_header, time_us) + 6, 0x01);
  chains_mend(log, 8);
}
static void prev_ahead(struct raw_log *log) {
  record_change(log, 8, offsetof(struct record_header, prev), 0x08 ^ 0x07);
  chains_mend(log, 8);
}
static void offset_wrong(struct raw_log *log) {
  record_change(log, 8, offsetof(struct record_header, offset), 0x01);
  chains_mend(log, 8);
}
static void last_flag_missing(struct raw_log *log) {
  record_change(log, 5, offsetof(struct record_header, flags), record_flag_last);
  chains_mend(log, 5);
}
static void last_flag_early(struct raw_log *log) {
  record_change(log, 3, offsetof(struct record_header, flags), record_flag_last);
  chains_mend(log, 3);
}
static void body_wrong(struct raw_log *log) {
  record_change(log, 4, record_header_bytes, 0x40); /* no map any more */
  chains_mend(log, 4);
}

static const struct {
  const char *name;
  void (*change)(struct raw_log *log);
  uint64_t seq; /* that is named; all before it are visited */
  enum status status;
  const char *word;
} damages[] = {
    {"a byte of a body", body_flipped, 8, STATUS_CORRUPT, "the chain is broken"},
    {"a byte of a long body", long_body_flipped, 7, STATUS_CORRUPT, "the chain is broken"},
    {"a byte of the first body", first_flipped, 1, STATUS_FOREIGN, "does not follow from genesis"},
    {"a byte of a chain", chain_flipped, 9, STATUS_CORRUPT, "the chain is broken"},
    {"another stream", foreign_record, 4, STATUS_CORRUPT, "the chain is broken"},
    {"one missing", gap, 5, STATUS_CORRUPT, "it is missing: seq 6 stands in its place"},
    {"seven missing", wide_gap, 3, STATUS_CORRUPT, "it is missing: seq 10 stands in its place"},
    {"the first missing", first_missing, 1, STATUS_CORRUPT, "it is missing: seq 2 stands in its place"},
    {"the last missing", last_missing, 11, STATUS_CORRUPT, "the rest of its commit is missing"},
    {"two swapped", swapped, 3, STATUS_CORRUPT, "carries another seq"},
    {"one twice", repeated, 11, STATUS_CORRUPT, "carries another seq"},
    {"shorter than a header", short_record, 6, STATUS_CORRUPT, "shorter than its header"},
    {"one byte cut off", cut_record, 6, STATUS_CORRUPT, "the chain is broken"},
    {"a type that nobody knows", type_unknown, 6, STATUS_FOREIGN, "use the version of Orbit that wrote it"},
    {"a version that nobody knows", version_unknown, 6, STATUS_FOREIGN, "use the version of Orbit that wrote it"},
    {"time falls", time_falls, 10, STATUS_CORRUPT, "its time lies before"},
    {"time differs in a commit", time_differs, 8, STATUS_CORRUPT, "time"},
    {"prev points to itself or ahead", prev_ahead, 8, STATUS_CORRUPT, "prev does not point backwards"},
    {"offset leaps", offset_wrong, 8, STATUS_CORRUPT, "the end of the commit before it is missing"},
    {"no last flag", last_flag_missing, 6, STATUS_CORRUPT, "the end of the commit before it is missing"},
    {"last flag too early", last_flag_early, 4, STATUS_CORRUPT, "the start of its commit is missing"},
    {"body is no map", body_wrong, 4, STATUS_CORRUPT, ""},
};

/* Tools open it and read up to the damage; the message names the seq. */
static void damage_found(const char *data, uint64_t seq, enum status status, const char *word) {
  struct journal *journal = fixture_read(data);
  struct seen seen = {0};
  struct fault fault = {.message = ""};
  enum status got = replay(journal, 0, 0, &seen, &fault);
  char named[32];
  (void)snprintf(named, sizeof named, "seq %" PRIu64, seq);
  if (got != status || strstr(fault.message, named) == NULL || strstr(fault.message, word) == NULL)
    print_message("got %s: %s\n", status_name(got), fault.message);
  assert_int_equal(got, status);
  assert_non_null(strstr(fault.message, named));
  assert_non_null(strstr(fault.message, word));
  uint64_t sound = strstr(word, "the rest of its commit") != NULL ? seq : seq - 1; /* there the log just ends too early */
  assert_int_equal(seen.count, sound);
  assert_int_equal(journal_progress_seq(), sound);
  journal_close(journal, false);
}

static void test_damage(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  log_make(data.text);
  for (unsigned i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    print_message("  %s\n", damages[i].name);
    char name[32];
    (void)snprintf(name, sizeof name, "copy-%u", i);
    struct path copy = path_of(top, name);
    fixture_copy(data.text, copy.text);
    struct raw_log log = raw_open(copy.text);
    damages[i].change(&log);
    raw_close(&log);
    damage_found(copy.text, damages[i].seq, damages[i].status, damages[i].word);
  }
  test_directory_remove(top);
}

/* Any bit of any record: the very record is named. */
static void test_any_bit(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  log_make(data.text);
  uint64_t random = test_seed();
  for (unsigned i = 0; i < 150; i++) {
    uint64_t seq = 1 + test_random(&random) % log_events;
    uint8_t bits = (uint8_t)(1U << test_random(&random) % 8);
    struct raw_log log = raw_open(data.text);
    struct bytes record = raw_get(&log, seq);
    /* Half of them in the header, where the rules are. */
    size_t at = test_random(&random) % (i % 2 != 0 ? record_header_bytes : record.size);
    record_change(&log, seq, at, bits);
    raw_close(&log);
    bool in_seq = at >= offsetof(struct record_header, seq) && at < offsetof(struct record_header, seq) + 8;
    damage_found(data.text, seq, seq == 1 && !in_seq ? STATUS_FOREIGN : STATUS_CORRUPT, "");
    log = raw_open(data.text);
    raw_put(&log, seq, record);
    raw_close(&log);
    free((void *)(uintptr_t)record.data);
  }
  struct journal *journal = fixture_open(data.text);
  struct seen seen = {0};
  struct fault fault;
  assert_int_equal(replay(journal, 0, 0, &seen, &fault), STATUS_OK);
  assert_int_equal(seen.count, log_events);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* A start from a checkpoint does not read what lies before it, but sees that something is missing there. */
static void test_gap_before_checkpoint(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  log_make(data.text);
  struct raw_log log = raw_open(data.text);
  struct bytes record = raw_get(&log, 9);
  struct event event;
  assert_int_equal(record_header_decode(record, &event), STATUS_OK);
  free((void *)(uintptr_t)record.data);
  raw_delete(&log, 4);
  raw_close(&log);
  struct journal *journal = fixture_open(data.text);
  struct seen seen = {0};
  struct fault fault = {.message = ""};
  assert_int_equal(replay(journal, 9, event.chain, &seen, &fault), STATUS_CORRUPT);
  assert_non_null(strstr(fault.message, "events before it are missing"));
  assert_int_equal(replay(journal, 4, 1, &seen, &fault), STATUS_CORRUPT);
  assert_non_null(strstr(fault.message, "seq 4"));
  journal_close(journal, false);
  test_directory_remove(top);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all),    cmocka_unit_test(test_visitor_stops), cmocka_unit_test(test_visitor_stops_a_reader_ahead),
      cmocka_unit_test(test_damage), cmocka_unit_test(test_any_bit),       cmocka_unit_test(test_gap_before_checkpoint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
