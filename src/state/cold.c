/* Owns reading of what left memory, and the handing over of the store between the two threads. */
#include "state/cold.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/guard.h"
#include "journal/views_store.h"
#include "state/rows.h"

struct cold {
  pthread_mutex_t lock;        /* held while a snapshot is open, and while the store is lent or taken back */
  struct views_reader *reader; /* NULL: nothing is lent */
  uint64_t seq, indexed_seq;   /* how far it was when that was said last */
  bool open;                   /* the reading thread's */
  _Atomic uint64_t floor;
};

struct cold *cold_new(void) {
  struct cold *cold = guard_calloc(1, sizeof *cold);
  must(pthread_mutex_init(&cold->lock, NULL) == 0);
  return cold;
}

void cold_free(struct cold *cold) {
  if (cold == NULL) return;
  must(cold->reader == NULL && !cold->open);
  (void)pthread_mutex_destroy(&cold->lock);
  free(cold);
}

/* ---- lending ---- */

enum status cold_offer(struct cold *cold, struct views *views, uint64_t seq, uint64_t indexed_seq, struct fault *fault) {
  enum status status = STATUS_OK;
  must(pthread_mutex_lock(&cold->lock) == 0);
  if (cold->reader == NULL) status = views_reader_new(views, &cold->reader, fault);
  cold->seq = seq;
  cold->indexed_seq = indexed_seq;
  must(pthread_mutex_unlock(&cold->lock) == 0);
  return status;
}

void cold_withdraw(struct cold *cold) {
  must(pthread_mutex_lock(&cold->lock) == 0);
  views_reader_free(cold->reader);
  cold->reader = NULL;
  cold->seq = cold->indexed_seq = 0;
  must(pthread_mutex_unlock(&cold->lock) == 0);
}

uint64_t cold_floor(struct cold *cold) { return atomic_load(&cold->floor); }
void cold_set_floor(struct cold *cold, uint64_t seq) { atomic_store(&cold->floor, seq); }

/* ---- snapshots ---- */

bool cold_open(struct cold *cold, uint64_t seq) {
  if (!cold->open) {
    must(pthread_mutex_lock(&cold->lock) == 0);
    if (cold->reader == NULL || views_reader_begin(cold->reader) != STATUS_OK) {
      must(pthread_mutex_unlock(&cold->lock) == 0);
      return false;
    }
    cold->open = true;
  }
  return cold->seq >= seq;
}

void cold_close(struct cold *cold) {
  if (!cold->open) return;
  views_reader_end(cold->reader);
  cold->open = false;
  must(pthread_mutex_unlock(&cold->lock) == 0);
}

uint64_t cold_seq(const struct cold *cold) { return cold->seq; }
uint64_t cold_indexed_seq(const struct cold *cold) { return cold->indexed_seq; }

/* ---- rows ---- */

enum status cold_meta(struct cold *cold, struct bytes *ret_meta) {
  return views_reader_get(cold->reader, ROWS_META, bytes_text("checkpoint"), ret_meta);
}

static enum status read_ended(struct cold *cold, const uint8_t key[8], struct task_row *ret_row) {
  struct bytes value;
  enum status status = views_reader_get(cold->reader, ROWS_ENDED, bytes_of(key, 8), &value);
  if (status == STATUS_END) return STATUS_CORRUPT; /* another table led here */
  return status == STATUS_OK ? ended_row_decode(bytes_of(key, 8), value, ret_row) : status;
}

enum status cold_task(struct cold *cold, const struct id *id, struct task_row *ret_row) {
  struct bytes value;
  enum status status = views_reader_get(cold->reader, ROWS_IDS, bytes_of(id->bytes, id_bytes), &value);
  if (status != STATUS_OK) return status;
  if (value.size != 8) return STATUS_CORRUPT;
  status = read_ended(cold, value.data, ret_row);
  return status == STATUS_OK && !id_equal(&ret_row->task.id, id) ? STATUS_CORRUPT : status;
}

enum status cold_older(struct cold *cold, const struct cold_chain *chain, uint64_t before_seq, struct task_row *ret_row) {
  uint8_t at[pair_key_bytes];
  size_t prefix = chain->business_hash != 0 ? 8 : chain->queue != 0 ? rows_number_bytes : 0;
  enum rows_table table = chain->business_hash != 0 ? ROWS_NAMES : chain->queue != 0 ? ROWS_QUEUES : ROWS_ENDED;
  if (chain->business_hash != 0) pair_key_encode(chain->business_hash, before_seq, at);
  else if (chain->queue != 0) queue_key_encode(chain->queue, before_seq, at);
  else seq_key_encode(before_seq, at);
  struct bytes key, value;
  enum status status = views_reader_below(cold->reader, table, bytes_of(at, prefix + 8), &key, &value);
  if (status != STATUS_OK) return status;
  if (key.size != prefix + 8) return STATUS_CORRUPT;
  if (prefix == 0) return ended_row_decode(key, value, ret_row);
  if (!bytes_equal(bytes_of(key.data, prefix), bytes_of(at, prefix))) return STATUS_END;
  return read_ended(cold, key.data + prefix, ret_row);
}

enum status cold_identity(struct cold *cold, uint64_t identity, uint64_t *seq) {
  uint8_t at[pair_key_bytes];
  struct bytes key, value;
  pair_key_encode(identity, *seq + 1, at);
  enum status status = views_reader_from(cold->reader, ROWS_IDENTITIES, bytes_of(at, sizeof at), &key, &value);
  if (status != STATUS_OK) return status;
  if (key.size != sizeof at) return STATUS_CORRUPT;
  if (!bytes_equal(bytes_of(key.data, 8), bytes_of(at, 8))) return STATUS_END;
  *seq = seq_key_at(key.data + 8);
  return STATUS_OK;
}

enum status cold_first_end(struct cold *cold, uint64_t after_seq, struct task_row *ret_row) {
  uint8_t at[8];
  struct bytes key, value;
  seq_key_encode(after_seq + 1, at);
  enum status status = views_reader_from(cold->reader, ROWS_ENDS, bytes_of(at, sizeof at), &key, &value);
  if (status != STATUS_OK) return status;
  if (key.size != sizeof at || value.size != 8) return STATUS_CORRUPT;
  status = read_ended(cold, value.data, ret_row);
  return status == STATUS_OK && ret_row->task.last_seq != seq_key_at(key.data) ? STATUS_CORRUPT : status;
}

enum status cold_receipts(struct cold *cold, uint64_t after_seq, uint64_t until_seq, uint32_t limit,
                          void (*visit)(void *context, const struct receipt_entry *entry), void *context, uint64_t *ret_seq) {
  uint8_t at[8];
  struct bytes key, value;
  *ret_seq = after_seq;
  for (size_t count = 0; count < limit; count += value.size / 16) {
    seq_key_encode(*ret_seq + 1, at);
    enum status status = views_reader_from(cold->reader, ROWS_RECEIPTS, bytes_of(at, sizeof at), &key, &value);
    if (status != STATUS_OK) return status == STATUS_END ? STATUS_OK : status;
    if (key.size != sizeof at || value.size == 0 || value.size % 16 != 0) return STATUS_CORRUPT;
    uint64_t last = receipt_entry_at(value, value.size / 16 - 1).seq;
    if (last > until_seq) return STATUS_OK;
    if (last <= *ret_seq) return STATUS_CORRUPT;
    for (size_t i = 0; i < value.size / 16; i++) {
      struct receipt_entry entry = receipt_entry_at(value, i);
      visit(context, &entry);
    }
    *ret_seq = last;
  }
  return STATUS_OK;
}
