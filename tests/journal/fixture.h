/* What the tests of the journal share: a data directory, events to put into it, and a hand that changes the log from outside.
 */
#ifndef ORBIT_TESTS_JOURNAL_FIXTURE_H
#define ORBIT_TESTS_JOURNAL_FIXTURE_H

#include <fcntl.h>
#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/journal.h"
#include "support/support.h"

static const int64_t fixture_time_us = INT64_C(1700000000000000);
enum { fixture_map_mib = 256 };

/* A path below another, by value: a temporary's text lives to the end of its statement. */
struct path {
  char text[512];
};
static inline struct path path_of(const char *top, const char *name) {
  struct path path;
  int length = snprintf(path.text, sizeof path.text, "%s/%s", top, name);
  assert_in_range(length, 1, sizeof path.text - 1);
  return path;
}

static inline struct journal_options fixture_options(bool create) {
  return (struct journal_options){.map_bytes = (uint64_t)fixture_map_mib << 20, .reserve_bytes = 1024 * 1024, .create = create};
}

static inline struct journal *fixture_open_with(const char *data, struct journal_options options) {
  struct journal *journal = NULL;
  struct fault fault = {.message = ""};
  enum status status = journal_open(data, &options, &journal, &fault);
  if (status != STATUS_OK) print_message("%s: %s\n", status_name(status), fault.message);
  assert_int_equal(status, STATUS_OK);
  assert_non_null(journal);
  return journal;
}
static inline struct journal *fixture_create(const char *data) { return fixture_open_with(data, fixture_options(true)); }
static inline struct journal *fixture_open(const char *data) { return fixture_open_with(data, fixture_options(false)); }
static inline struct journal *fixture_read(const char *data) {
  return fixture_open_with(data, (struct journal_options){.read_only = true});
}

/* Opening must be refused so, in one line that has each of the two words. */
static inline void fixture_refused(const char *data, struct journal_options options, enum status expected, const char *word,
                                   const char *other) {
  struct journal *journal = NULL;
  struct fault fault = {.message = ""};
  enum status status = journal_open(data, &options, &journal, &fault);
  if (status != expected || strstr(fault.message, word) == NULL || strstr(fault.message, other) == NULL)
    print_message("got %s: %s\n", status_name(status), fault.message);
  assert_int_equal(status, expected);
  assert_null(journal);
  assert_non_null(strstr(fault.message, word));
  assert_non_null(strstr(fault.message, other));
  assert_null(strchr(fault.message, '\n'));
}

/* An event whose text has text_chars letters, told apart by number. */
static inline struct event fixture_event(uint64_t number, struct bytes text) {
  struct event event = {.type = EVENT_node_started, .version = event_type_version(EVENT_node_started)};
  memset(event.stream.bytes, 0x11, sizeof event.stream.bytes);
  memset(event.common.actor.bytes, 0x22, sizeof event.common.actor.bytes);
  memset(event.common.operation_id.bytes, 0x33, sizeof event.common.operation_id.bytes);
  event.common.revision = number;
  event.body.node_started.version = text;
  return event;
}

static inline void fixture_fill(struct commit *commit, const struct journal *journal, unsigned count, size_t text_chars) {
  char *text = guard_malloc(text_chars + 1);
  memset(text, 'a', text_chars);
  commit_reset(commit, journal, fixture_time_us + (int64_t)journal_last_seq(journal));
  for (unsigned i = 0; i < count; i++) {
    struct event event = fixture_event(journal_last_seq(journal) + 1 + i, bytes_of(text, text_chars));
    event.prev = journal_last_seq(journal) + i;
    assert_int_equal(commit_add(commit, &event), STATUS_OK);
    assert_int_equal(event.seq, journal_last_seq(journal) + 1 + i);
  }
  free(text);
}

/* Commits `count` events of text_chars letters each. */
static inline void fixture_commit(struct journal *journal, unsigned count, size_t text_chars) {
  struct commit commit;
  struct fault fault = {.message = ""};
  commit_init(&commit);
  fixture_fill(&commit, journal, count, text_chars);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_OK);
  commit_clear(&commit);
}

/* ---- A hand from outside ---- */

struct raw_log {
  MDB_env *env;
  MDB_txn *txn;
  MDB_dbi events, meta;
};

static inline struct raw_log raw_open(const char *data) {
  struct raw_log log;
  assert_int_equal(mdb_env_create(&log.env), 0);
  assert_int_equal(mdb_env_set_maxdbs(log.env, 4), 0);
  assert_int_equal(mdb_env_open(log.env, path_of(data, "log").text, MDB_NOSYNC, 0600), 0);
  assert_int_equal(mdb_txn_begin(log.env, NULL, 0, &log.txn), 0);
  assert_int_equal(mdb_dbi_open(log.txn, "events", MDB_INTEGERKEY, &log.events), 0);
  assert_int_equal(mdb_dbi_open(log.txn, "meta", 0, &log.meta), 0);
  return log;
}

static inline void raw_close(struct raw_log *log) {
  assert_int_equal(mdb_txn_commit(log->txn), 0);
  mdb_env_close(log->env);
}

/* A copy of the record; the caller frees .data. */
static inline struct bytes raw_get(struct raw_log *log, uint64_t seq) {
  MDB_val key = {sizeof seq, &seq}, value;
  assert_int_equal(mdb_get(log->txn, log->events, &key, &value), 0);
  uint8_t *copy = guard_malloc(value.mv_size);
  memcpy(copy, value.mv_data, value.mv_size);
  return bytes_of(copy, value.mv_size);
}

static inline void raw_put(struct raw_log *log, uint64_t seq, struct bytes record) {
  MDB_val key = {sizeof seq, &seq}, value = {record.size, (void *)(uintptr_t)record.data};
  assert_int_equal(mdb_put(log->txn, log->events, &key, &value, 0), 0);
}

static inline void raw_delete(struct raw_log *log, uint64_t seq) {
  MDB_val key = {sizeof seq, &seq};
  assert_int_equal(mdb_del(log->txn, log->events, &key, NULL), 0);
}

static inline void raw_meta_put(struct raw_log *log, const char *name, struct bytes bytes) {
  MDB_val key = {strlen(name), (void *)(uintptr_t)name}, value = {bytes.size, (void *)(uintptr_t)bytes.data};
  assert_int_equal(mdb_put(log->txn, log->meta, &key, &value, 0), 0);
}

/* Copies DATA/log/data.mdb and node.id to a fresh data directory. */
static inline void fixture_copy_file(const char *from, const char *to) {
  struct bytes bytes = test_file_read(from);
  assert_non_null(bytes.data);
  FILE *file = fopen(to, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
  assert_int_equal(fclose(file), 0);
  free((void *)(uintptr_t)bytes.data);
}

static inline void fixture_copy(const char *from, const char *to) {
  assert_int_equal(mkdir(to, 0700), 0);
  assert_int_equal(mkdir(path_of(to, "log").text, 0700), 0);
  fixture_copy_file(path_of(from, "log/data.mdb").text, path_of(to, "log/data.mdb").text);
  fixture_copy_file(path_of(from, "node.id").text, path_of(to, "node.id").text);
}

#endif
