/* Owns the making of a commit and its way to the disk: one transaction, one sync, and no second chance after a failure. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "journal/internal.h"

void commit_init(struct commit *commit) {
  *commit = (struct commit){0};
  buffer_init(&commit->records, commit_bytes_max);
}

void commit_clear(struct commit *commit) {
  buffer_clear(&commit->records);
  free(commit->ends);
  commit_init(commit);
}

void commit_reset(struct commit *commit, const struct journal *journal, int64_t time_us) {
  buffer_reset(&commit->records);
  commit->count = 0;
  commit->first_seq = journal_last_seq(journal) + 1;
  commit->time_us = time_us;
}

/* The records of a commit are bounded by its bytes, so neither number can overflow. */
static bool ends_grow(struct commit *commit) {
  uint32_t capacity = commit->capacity != 0 ? commit->capacity * 2 : 64;
  must(capacity / 4 <= commit_bytes_max / record_header_bytes);
  uint32_t *ends = realloc(commit->ends, capacity * sizeof *ends);
  if (ends == NULL) return false;
  commit->ends = ends;
  commit->capacity = capacity;
  return true;
}

enum status commit_add(struct commit *commit, struct event *event) {
  must(commit->first_seq != 0);
  if (commit->count == commit->capacity && !ends_grow(commit)) return STATUS_NO_MEMORY;
  size_t before = commit->records.size;
  event->seq = commit->first_seq + commit->count;
  event->offset = commit->count;
  event->time_us = commit->time_us;
  event->last_of_commit = false;
  must(event->prev < event->seq);
  if (record_encode(event, &commit->records) != STATUS_OK || commit->records.failed) {
    /* What was added before stays good. */
    commit->records.size = before;
    commit->records.failed = false;
    return STATUS_NO_MEMORY;
  }
  commit->ends[commit->count++] = (uint32_t)commit->records.size;
  return STATUS_OK;
}

/* Where record number i lies in the buffer. */
static size_t record_start(const struct commit *commit, uint32_t i) { return i != 0 ? commit->ends[i - 1] : 0; }

struct bytes commit_record(const struct commit *commit, uint64_t seq) {
  if (seq < commit->first_seq || seq - commit->first_seq >= commit->count) return bytes_of(NULL, 0);
  uint32_t i = (uint32_t)(seq - commit->first_seq);
  size_t start = record_start(commit, i);
  return bytes_of(commit->records.data + start, commit->ends[i] - start);
}

/* Sets flags, offsets and chains. Returns the chain of the last record. */
static uint64_t commit_seal(struct commit *commit, uint64_t chain) {
  for (uint32_t i = 0; i < commit->count; i++) {
    size_t start = record_start(commit, i);
    chain = record_seal(commit->records.data + start, commit->ends[i] - start, i + 1 == commit->count, i, chain);
  }
  return chain;
}

static int records_put(const struct journal *journal, MDB_txn *txn, const struct commit *commit) {
  for (uint32_t i = 0; i < commit->count; i++) {
    size_t start = record_start(commit, i);
    uint64_t seq = commit->first_seq + i;
    MDB_val key = seq_key(&seq), value = {commit->ends[i] - start, commit->records.data + start};
    int code = mdb_put(txn, journal->events, &key, &value, MDB_APPEND);
    if (code != 0) return code;
  }
  return 0;
}

/* The one place where events reach the disk. An LMDB code; unless it is 0, only a restart tells whether the log has the commit:
 * all of it or nothing. */
static int transaction_write(const struct journal *journal, const struct commit *commit) {
  MDB_txn *txn = NULL;
  MDB_val mark = meta_key("clean");
  int code = mdb_txn_begin(journal->env, NULL, 0, &txn);
  if (code != 0) return code;
  if (journal->marked) code = mdb_del(txn, journal->meta, &mark, NULL);
  if (code == 0) code = records_put(journal, txn, commit);
  if (code == 0) return mdb_txn_commit(txn);
  mdb_txn_abort(txn);
  return code;
}

enum status journal_commit(struct journal *journal, struct commit *commit, struct fault *fault) {
  must(!journal->read_only);
  if (journal->poisoned)
    return fault_set(fault, STATUS_IO_ERROR, NULL,
                     "%.160s: an earlier write failed, nothing is written any more: start again from the log",
                     journal->log_path);
  if (commit->count == 0) return STATUS_OK;
  must(commit->first_seq == journal->last_seq + 1);
  must(commit->time_us >= journal->last_time_us);
  uint64_t chain = commit_seal(commit, journal->last_chain);
  int code = transaction_write(journal, commit);
  if (code != 0) {
    journal->poisoned = true;
    return journal_fault(fault, code, journal->log_path, "cannot write a commit");
  }
  journal->marked = false;
  journal->last_chain = chain;
  journal->last_time_us = commit->time_us;
  journal->last_seq += commit->count;
  journal->commits++;
  journal->syncs++;
  journal->committed_events += commit->count;
  journal->committed_bytes += commit->records.size;
  journal_measure(journal);
  return STATUS_OK;
}

uint64_t journal_last_seq(const struct journal *journal) { return journal->last_seq; }
uint64_t journal_first_chain(const struct journal *journal) { return genesis_chain(&journal->genesis); }
uint64_t journal_last_chain(const struct journal *journal) { return journal->last_chain; }
int64_t journal_last_time_us(const struct journal *journal) { return journal->last_time_us; }

void journal_stats(const struct journal *journal, struct journal_stats *ret_stats) {
  uint64_t file_bytes = journal->file_bytes, used_bytes = journal->used_bytes;
  *ret_stats = (struct journal_stats){
      .commits = journal->commits,
      .syncs = journal->syncs,
      .events = journal->committed_events,
      .bytes = journal->committed_bytes,
      .file_bytes = file_bytes,
      .used_bytes = used_bytes,
      .reserved_bytes = file_bytes > used_bytes ? file_bytes - used_bytes : 0,
  };
}
