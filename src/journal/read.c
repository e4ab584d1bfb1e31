/* Owns readers: one LMDB snapshot each, taken, let go and taken again. LMDB shows a snapshot nothing but what was committed,
 * and a transaction counts as committed only after its sync. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "journal/internal.h"

struct journal_reader {
  struct journal *journal;
  MDB_txn *txn;
  MDB_cursor *cursor;
  bool live;         /* holds a snapshot */
  uint64_t last_seq; /* of the snapshot */
};

/* The last seq of the snapshot just taken. */
static enum status end_find(struct journal_reader *reader) {
  MDB_val key, value;
  int code = mdb_cursor_get(reader->cursor, &key, &value, MDB_LAST);
  if (code == MDB_NOTFOUND) {
    reader->last_seq = 0;
    return STATUS_OK;
  }
  if (code != 0) return journal_error(code);
  if (key.mv_size != sizeof reader->last_seq) return STATUS_CORRUPT;
  memcpy(&reader->last_seq, key.mv_data, sizeof reader->last_seq);
  return STATUS_OK;
}

int journal_read_begin(MDB_env *env, MDB_txn **ret_txn) {
  int dead = 0, code = mdb_txn_begin(env, NULL, MDB_RDONLY, ret_txn);
  if (code != MDB_READERS_FULL) return code;
  (void)mdb_reader_check(env, &dead);
  return dead != 0 ? mdb_txn_begin(env, NULL, MDB_RDONLY, ret_txn) : code;
}

enum status journal_reader_new(struct journal *journal, struct journal_reader **ret_reader) {
  struct journal_reader *reader = calloc(1, sizeof *reader);
  if (reader == NULL) return STATUS_NO_MEMORY;
  reader->journal = journal;
  int code = journal_read_begin(journal->env, &reader->txn);
  if (code == 0) code = mdb_cursor_open(reader->txn, journal->events, &reader->cursor);
  enum status status = code != 0 ? journal_error(code) : end_find(reader);
  if (status != STATUS_OK) {
    journal_reader_free(reader);
    return status;
  }
  mdb_txn_reset(reader->txn); /* a reader that has not read yet pins no pages, however long it is kept */
  *ret_reader = reader;
  return STATUS_OK;
}

void journal_reader_free(struct journal_reader *reader) {
  if (reader == NULL) return;
  if (reader->cursor != NULL) mdb_cursor_close(reader->cursor);
  if (reader->txn != NULL) mdb_txn_abort(reader->txn);
  free(reader);
}

void journal_reader_release(struct journal_reader *reader) {
  if (reader->live) mdb_txn_reset(reader->txn);
  reader->live = false;
}

enum status journal_reader_refresh(struct journal_reader *reader) {
  journal_reader_release(reader);
  int code = mdb_txn_renew(reader->txn);
  if (code != 0) return journal_error(code);
  reader->live = true;
  code = mdb_cursor_renew(reader->txn, reader->cursor);
  enum status status = code != 0 ? journal_error(code) : end_find(reader);
  if (status != STATUS_OK) journal_reader_release(reader);
  return status;
}

enum status journal_reader_get(struct journal_reader *reader, uint64_t seq, struct bytes *ret_record) {
  if (!reader->live) {
    enum status status = journal_reader_refresh(reader);
    if (status != STATUS_OK) return status;
  }
  if (seq == 0 || seq > reader->last_seq) return STATUS_END;
  MDB_val key = seq_key(&seq), value;
  int code = mdb_cursor_get(reader->cursor, &key, &value, MDB_SET);
  if (code != 0) return journal_error(code); /* below the end every seq must be there */
  if (value.mv_size < record_header_bytes) return STATUS_CORRUPT;
  *ret_record = bytes_of(value.mv_data, value.mv_size);
  return STATUS_OK;
}

uint64_t journal_reader_last_seq(struct journal_reader *reader) {
  if (!reader->live) (void)journal_reader_refresh(reader);
  return reader->last_seq;
}
