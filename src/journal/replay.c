/* Owns replay: the walk over all records in order, with every check that needs the log alone. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "journal/internal.h"
#include "journal/judge.h"

/* The one thing that outlives a damaged page: read by a signal handler, so it has no owner but the process. */
static _Atomic uint64_t progress;

uint64_t journal_progress_seq(void) { return atomic_load_explicit(&progress, memory_order_relaxed); }

struct replay {
  struct journal *journal;
  MDB_txn *txn;
  MDB_cursor *cursor;
  struct event_decoder *decoder;
  struct replay_sink sink;
  struct fault *fault;
  uint64_t end;       /* the last seq at the start; what is committed later is not visited */
  struct judge judge; /* stands behind the last event that was visited */
};

static void replay_clear(struct replay *replay) {
  if (replay->cursor != NULL) mdb_cursor_close(replay->cursor);
  if (replay->txn != NULL) mdb_txn_abort(replay->txn);
  event_decoder_free(replay->decoder);
}

static enum status page_fault(const struct replay *replay, int code, uint64_t seq) {
  enum status status = journal_error(code);
  return fault_set(replay->fault, status, NULL,
                   "%.120s: seq %" PRIu64 " cannot be read: %s; run orbit-replay verify, then salvage",
                   replay->journal->log_path, seq, mdb_strerror(code));
}

static enum status damage(const struct replay *replay, enum status status, uint64_t seq, const char *what) {
  return fault_set(replay->fault, status, NULL,
                   "%.120s: seq %" PRIu64 ": %.120s; run orbit-replay verify, then salvage, or put back a backup",
                   replay->journal->log_path, seq, what);
}

static uint64_t header_seq(struct bytes record) {
  uint64_t seq;
  memcpy(&seq, record.data + offsetof(struct record_header, seq), sizeof seq);
  return le64toh(seq);
}

static enum status record_visit(struct replay *replay, struct bytes record) {
  struct event event;
  struct fault inner = {.message = ""};
  uint64_t seq = replay->judge.seq + 1;
  const char *wrong = judge_bytes(&replay->judge, record);
  /* A genesis of another log shows at its first record. */
  bool foreign = seq == 1 && record.size >= record_header_bytes && header_seq(record) == seq;
  if (wrong != NULL) return damage(replay, foreign ? STATUS_FOREIGN : STATUS_CORRUPT, seq, wrong);
  enum status status = event_decode(replay->decoder, record, &event, &inner);
  if (status == STATUS_FOREIGN)
    return fault_set(replay->fault, status, NULL, "%.120s: seq %" PRIu64 ": %.120s; use the version of Orbit that wrote it",
                     replay->journal->log_path, seq, inner.message);
  if (status != STATUS_OK) return damage(replay, status, seq, inner.message);
  wrong = judge_order(&replay->judge, &event);
  if (wrong != NULL) return damage(replay, STATUS_CORRUPT, seq, wrong);
  atomic_store_explicit(&progress, seq, memory_order_relaxed);
  status = replay->sink.visit(replay->sink.context, &event, record, replay->fault);
  judge_take(&replay->judge, &event);
  return status;
}

/* Visits what one snapshot may be held for. */
static enum status chunk_visit(struct replay *replay) {
  uint64_t bytes = 0;
  uint64_t next = replay->judge.seq + 1;
  MDB_val key = seq_key(&next), value;
  MDB_cursor_op op = MDB_SET_RANGE;
  for (unsigned i = 0; i < log_replay_chunk_events && bytes < log_replay_chunk_bytes && replay->judge.seq < replay->end; i++) {
    int code = mdb_cursor_get(replay->cursor, &key, &value, op);
    op = MDB_NEXT;
    if (code != 0) return page_fault(replay, code, replay->judge.seq + 1);
    uint64_t found = 0;
    if (key.mv_size == sizeof found) memcpy(&found, key.mv_data, sizeof found);
    if (found != replay->judge.seq + 1) {
      char what[64];
      (void)snprintf(what, sizeof what, "it is missing: seq %" PRIu64 " stands in its place", found);
      return damage(replay, STATUS_CORRUPT, replay->judge.seq + 1, what);
    }
    enum status status = record_visit(replay, bytes_of(value.mv_data, value.mv_size));
    if (status != STATUS_OK) return status;
    bytes += value.mv_size;
  }
  return STATUS_OK;
}

static enum status snapshot_renew(struct replay *replay) {
  mdb_txn_reset(replay->txn);
  int code = mdb_txn_renew(replay->txn);
  if (code == 0) code = mdb_cursor_renew(replay->txn, replay->cursor);
  return code == 0 ? STATUS_OK : page_fault(replay, code, replay->judge.seq + 1);
}

/* Replay from a checkpoint: its position must be one of this log, and nothing before it may be missing. */
static enum status position_take(struct replay *replay, uint64_t after_seq, uint64_t previous_chain) {
  MDB_val key = seq_key(&after_seq), value;
  MDB_stat stat;
  struct event event;
  int code = mdb_cursor_get(replay->cursor, &key, &value, MDB_SET);
  if (code != 0 && code != MDB_NOTFOUND) return page_fault(replay, code, after_seq);
  if (code == MDB_NOTFOUND)
    return damage(replay, after_seq > replay->end ? STATUS_FOREIGN : STATUS_CORRUPT, after_seq, "the log does not have it");
  if (record_header_decode(bytes_of(value.mv_data, value.mv_size), &event) != STATUS_OK || event.seq != after_seq)
    return damage(replay, STATUS_CORRUPT, after_seq, "its header is damaged");
  if (event.chain != previous_chain)
    return damage(replay, STATUS_FOREIGN, after_seq, "its chain is not the one that was noted down: that was another log");
  code = mdb_stat(replay->txn, replay->journal->events, &stat);
  if (code != 0) return page_fault(replay, code, after_seq);
  if (stat.ms_entries != replay->end) return damage(replay, STATUS_CORRUPT, replay->end, "events before it are missing");
  judge_take(&replay->judge, &event);
  return STATUS_OK;
}

static enum status replay_begin(struct replay *replay) {
  MDB_val key, value;
  int code = journal_read_begin(replay->journal->env, &replay->txn);
  if (code == 0) code = mdb_cursor_open(replay->txn, replay->journal->events, &replay->cursor);
  if (code == 0) code = mdb_cursor_get(replay->cursor, &key, &value, MDB_LAST);
  if (code == MDB_NOTFOUND) return STATUS_OK;
  if (code != 0 || key.mv_size != sizeof replay->end)
    return journal_fault(replay->fault, code != 0 ? code : MDB_CORRUPTED, replay->journal->log_path,
                         "cannot find the end of it");
  memcpy(&replay->end, key.mv_data, sizeof replay->end);
  return STATUS_OK;
}

static enum status settle(const struct replay *replay) {
  return replay->sink.settle != NULL ? replay->sink.settle(replay->sink.context) : STATUS_OK;
}

enum status replay_run(struct journal *journal, uint64_t after_seq, uint64_t previous_chain, const struct replay_sink *sink,
                       struct fault *fault) {
  cleanup(replay_clear) struct replay replay = {
      .journal = journal, .decoder = event_decoder_new(), .sink = *sink, .fault = fault};
  judge_begin(&replay.judge, journal_genesis(journal));
  atomic_store_explicit(&progress, after_seq, memory_order_relaxed);
  enum status status = replay_begin(&replay);
  if (status == STATUS_OK && after_seq != 0) status = position_take(&replay, after_seq, previous_chain);
  while (status == STATUS_OK && replay.judge.seq < replay.end) {
    status = chunk_visit(&replay);
    if (status == STATUS_OK && replay.judge.seq < replay.end) status = settle(&replay);
    if (status == STATUS_OK && replay.judge.seq < replay.end) status = snapshot_renew(&replay);
  }
  if (status == STATUS_OK && !replay.judge.last_of_commit)
    status = damage(&replay, STATUS_CORRUPT, replay.judge.seq, "the rest of its commit is missing");
  enum status settled = settle(&replay);
  return status != STATUS_OK ? status : settled;
}

enum status journal_replay(struct journal *journal, uint64_t after_seq, uint64_t previous_chain, journal_visit *visit,
                           void *context, struct fault *fault) {
  struct replay_sink sink = {.visit = visit, .context = context};
  return replay_run(journal, after_seq, previous_chain, &sink, fault);
}
