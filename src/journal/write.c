/* Owns a commit's way to the disk: one transaction, one sync, and no second chance after a failure. */
#include <inttypes.h>

#include "base/guard.h"
#include "journal/internal.h"

static int records_put(const struct journal *journal, MDB_txn *txn, const struct commit *commit) {
  for (uint32_t i = 0; i < commit->count; i++) {
    size_t start = commit_record_start(commit, i);
    uint64_t seq = commit->first_seq + i;
    MDB_val key = seq_key(&seq), value = {commit->ends[i] - start, commit->records.data + start};
    int code = mdb_put(txn, journal->events, &key, &value, MDB_APPEND);
    if (code != 0) return code;
  }
  return 0;
}

/* The one place where events reach the disk. An LMDB code; unless it is 0, only a restart tells whether the log has the
 * commits: all of them or none. */
static int transaction_write(const struct journal *journal, struct commit *const *commits, unsigned count) {
  MDB_txn *txn = NULL;
  MDB_val mark = meta_key("clean");
  int code = mdb_txn_begin(journal->env, NULL, 0, &txn);
  if (code != 0) return code;
  if (journal->marked) code = mdb_del(txn, journal->meta, &mark, NULL);
  for (unsigned i = 0; i < count && code == 0; i++) code = records_put(journal, txn, commits[i]);
  if (code == 0) return mdb_txn_commit(txn);
  mdb_txn_abort(txn);
  return code;
}

static enum status refuse_poisoned(const struct journal *journal, struct fault *fault) {
  return fault_set(fault, STATUS_IO_ERROR, NULL,
                   "%.160s: an earlier write failed, nothing is written any more: start again from the log", journal->log_path);
}

enum status commits_write(struct journal *journal, struct commit *const *commits, unsigned count, uint64_t chain,
                          struct fault *fault) {
  if (journal->poisoned) return refuse_poisoned(journal, fault);
  must(count != 0 && commits[0]->first_seq == journal->last_seq + 1);
  int code = transaction_write(journal, commits, count);
  if (code != 0) {
    journal->poisoned = true;
    return journal_fault(fault, code, journal->log_path, "cannot write a commit");
  }
  uint64_t events = 0, bytes = 0;
  for (unsigned i = 0; i < count; i++) {
    events += commits[i]->count;
    bytes += commits[i]->records.size;
  }
  journal->marked = false;
  journal->last_chain = chain;
  journal->last_time_us = commits[count - 1]->time_us;
  journal_measure(journal); /* before the bytes are taken from those on their way: room is never counted twice as free */
  journal->commits += count;
  journal->syncs++;
  journal->committed_events += events;
  journal->committed_bytes += bytes;
  journal->last_seq += events;
  return STATUS_OK;
}

enum status journal_commit(struct journal *journal, struct commit *commit, struct fault *fault) {
  must(!journal->read_only);
  if (journal->poisoned) return refuse_poisoned(journal, fault);
  if (commit->count == 0) return STATUS_OK;
  must(journal->handed_seq == journal->last_seq);
  must(commit->first_seq == journal->last_seq + 1);
  must(commit->time_us >= journal->last_time_us);
  uint64_t chain = commit_seal(commit, journal->last_chain);
  enum status status = commits_write(journal, &commit, 1, chain, fault);
  if (status != STATUS_OK) return status;
  journal->handed_seq = journal->last_seq;
  journal->handed_chain = chain;
  journal->handed_time_us = commit->time_us;
  journal->handed_bytes += commit->records.size;
  return STATUS_OK;
}

uint64_t journal_last_seq(const struct journal *journal) { return journal->last_seq; }
uint64_t journal_next_seq(const struct journal *journal) { return journal->handed_seq + 1; }
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
