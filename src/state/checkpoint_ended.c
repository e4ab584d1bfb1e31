/* Owns the rows of what has ended: how they are put, how identities are sorted in, and when rows go. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "state/checkpoint_internal.h"

static struct bytes seq_key(uint64_t seq, uint8_t out[8]) {
  seq_key_encode(seq, out);
  return bytes_of(out, 8);
}

/* ---- rows of ended tasks ---- */

struct digest_sum checkpoint_part(const struct checkpoint *checkpoint, const struct task_row *row) {
  const struct kept_object *queue = pool_at(&checkpoint->objects, row->task.queue),
                           *application = pool_at(&checkpoint->objects, row->task.application);
  return digest_of_ended(&row->task, &queue->object.id, &application->object.id, row->handler_hash);
}

enum status checkpoint_get_ended(struct checkpoint *checkpoint, const struct id *id, struct kept_task *ret_kept) {
  struct bytes at, value;
  enum status status = views_get(checkpoint->views, ROWS_IDS, bytes_of(id->bytes, id_bytes), &at);
  if (status == STATUS_OK) status = views_get(checkpoint->views, ROWS_ENDED, at, &value);
  if (status == STATUS_OK) status = ended_row_decode(at, value, &ret_kept->row);
  if (status != STATUS_OK) return status;
  const struct task *task = &ret_kept->row.task;
  if (!id_equal(&task->id, id) || task->queue == 0 || task->queue > checkpoint->objects.used || task->application == 0 ||
      task->application > checkpoint->objects.used)
    return STATUS_CORRUPT;
  ret_kept->ended_seq = task->last_seq;
  ret_kept->ended_part = checkpoint_part(checkpoint, &ret_kept->row);
  return STATUS_OK;
}

static enum status put_places(struct checkpoint *checkpoint, const struct task_row *row, struct bytes acceptance) {
  static const struct bytes nothing = {(const uint8_t *)"", 0};
  uint8_t queue[queue_key_bytes], name[pair_key_bytes];
  enum status status = views_put(checkpoint->views, ROWS_IDS, bytes_of(row->task.id.bytes, id_bytes), acceptance, true);
  queue_key_encode(row->task.queue, row->task.accepted_seq, queue);
  if (status == STATUS_OK) status = views_put(checkpoint->views, ROWS_QUEUES, bytes_of(queue, sizeof queue), nothing, false);
  if (status != STATUS_OK || row->business_hash == 0) return status;
  pair_key_encode(row->business_hash, row->task.accepted_seq, name);
  return views_put(checkpoint->views, ROWS_NAMES, bytes_of(name, sizeof name), nothing, false);
}

enum status checkpoint_put_ended(struct checkpoint *checkpoint, struct kept_task *kept) {
  const struct task *task = &kept->row.task;
  uint8_t at[8], end[8], value[ended_row_bytes_max];
  struct bytes acceptance = seq_key(task->accepted_seq, at);
  enum status status = STATUS_OK;
  bool is_new = kept->ended_seq == 0;
  if (kept->hash != 0) {
    status = views_delete(checkpoint->views, ROWS_TASKS, bytes_of(task->id.bytes, id_bytes));
    checkpoint->meta.sum -= kept->hash;
  }
  if (!is_new && status == STATUS_OK) status = views_delete(checkpoint->views, ROWS_ENDS, seq_key(kept->ended_seq, end));
  size_t size = ended_row_encode(&kept->row, value);
  if (status == STATUS_OK) status = views_put(checkpoint->views, ROWS_ENDED, acceptance, bytes_of(value, size), is_new);
  if (status == STATUS_OK) status = views_put(checkpoint->views, ROWS_ENDS, seq_key(task->last_seq, end), acceptance, true);
  if (status == STATUS_OK && is_new) status = put_places(checkpoint, &kept->row, acceptance);
  digest_sum_subtract(&checkpoint->meta.ended_sum, kept->ended_part);
  digest_sum_add(&checkpoint->meta.ended_sum, checkpoint_part(checkpoint, &kept->row));
  checkpoint->meta.ended += is_new;
  return status;
}

/* ---- transactions of their own ---- */

typedef enum status change_function(struct checkpoint *checkpoint, void *context);

/* All of it, or nothing. */
static enum status in_one_commit(struct checkpoint *checkpoint, change_function *change, void *context, const char *what,
                                 struct fault *fault) {
  enum status status = views_begin(checkpoint->views, true, fault);
  if (status != STATUS_OK) return status;
  status = change(checkpoint, context);
  if (status == STATUS_OK) status = checkpoint_put_meta(checkpoint);
  journal_reader_release(checkpoint->reader); /* as for batches: no page of the log waits for the disk of the rows */
  if (status == STATUS_OK) return views_commit(checkpoint->views, fault);
  views_abort(checkpoint->views);
  return fault_set(fault, status, NULL, "%s: %s", what, status_text(status));
}

/* ---- identities ---- */

/* They come in the order of the log, and hash to everywhere: sorted in by many at a time, each page of the index is written
 * once for many of them. */
struct waiting {
  struct receipt_entry *entries;
  size_t count, capacity;
  struct digest_sum sum; /* of all that wait, also those that tasks lead to */
  uint64_t all;
  uint64_t rows_sum; /* of their rows */
};

enum { index_commit_receipts = 32768 };

static int compare_entries(const void *a, const void *b) {
  const struct receipt_entry *one = a, *other = b;
  if (one->identity != other->identity) return one->identity < other->identity ? -1 : 1;
  return one->seq < other->seq ? -1 : one->seq > other->seq;
}

static enum status gather(struct checkpoint *checkpoint, struct waiting *waiting) {
  struct bytes key, value;
  uint8_t at[8];
  enum status status;
  for (uint64_t next = checkpoint->meta.indexed_seq + 1;
       (status = views_from(checkpoint->views, ROWS_RECEIPTS, seq_key(next, at), &key, &value)) == STATUS_OK;
       next = seq_key_at(key.data) + 1) {
    if (key.size != 8 || value.size % 16 != 0) return STATUS_CORRUPT;
    waiting->rows_sum += rows_hash(ROWS_RECEIPTS, key, value);
    for (size_t i = 0; i < value.size / 16; i++) {
      struct receipt_entry entry = receipt_entry_at(value, i);
      digest_sum_add(&waiting->sum, digest_of_receipt(entry.identity, entry.seq));
      waiting->all++;
      if (entry.by_task) continue;
      if (waiting->count == waiting->capacity) return STATUS_CORRUPT;
      waiting->entries[waiting->count++] = entry;
    }
  }
  if (status != STATUS_END) return status;
  return waiting->rows_sum == checkpoint->meta.waiting_sum ? STATUS_OK : STATUS_CORRUPT;
}

struct sorted_part {
  const struct receipt_entry *entries;
  size_t count;
  const struct waiting *last; /* of the last part: the index is whole with it */
};

static enum status put_identities(struct checkpoint *checkpoint, void *context) {
  static const struct bytes nothing = {(const uint8_t *)"", 0};
  const struct sorted_part *part = context;
  enum status status = STATUS_OK;
  for (size_t i = 0; i < part->count && status == STATUS_OK; i++) {
    uint8_t key[pair_key_bytes];
    pair_key_encode(part->entries[i].identity, part->entries[i].seq, key);
    status = views_put(checkpoint->views, ROWS_IDENTITIES, bytes_of(key, sizeof key), nothing, false);
  }
  if (status != STATUS_OK || part->last == NULL) return status;
  checkpoint->meta.indexed_seq = checkpoint->meta.seq;
  checkpoint->meta.waiting_sum = 0;
  checkpoint->meta.indexed += part->last->all;
  checkpoint->meta.identities += part->last->count;
  digest_sum_add(&checkpoint->meta.indexed_sum, part->last->sum);
  return STATUS_OK;
}

enum status checkpoint_index(struct checkpoint *checkpoint, uint64_t waiting_min, uint64_t floor_seq, struct fault *fault) {
  struct waiting waiting = {.capacity = checkpoint->meta.receipts - checkpoint->meta.indexed};
  /* Else what is gone could not be removed; or, where the rows are being made anew, what memory let go of could not be found.
   */
  bool wanted = checkpoint->meta.retained_seq > checkpoint->meta.indexed_seq ||
                (floor_seq > checkpoint->meta.indexed_seq && floor_seq <= checkpoint->meta.seq);
  if ((waiting.capacity < waiting_min && !wanted) || checkpoint->meta.indexed_seq == checkpoint->meta.seq) return STATUS_OK;
  waiting.entries = guard_malloc(sizeof *waiting.entries * (waiting.capacity + 1));
  enum status status = views_begin(checkpoint->views, false, fault);
  if (status == STATUS_OK && (status = gather(checkpoint, &waiting)) != STATUS_OK)
    (void)fault_set(fault, status, NULL, "the receipts of the checkpoint cannot be read: %s", status_text(status));
  views_abort(checkpoint->views);
  qsort(waiting.entries, waiting.count, sizeof *waiting.entries, compare_entries);
  for (size_t at = 0, done = 0; status == STATUS_OK && !done; at += index_commit_receipts) {
    size_t left = waiting.count - at;
    done = left <= index_commit_receipts;
    struct sorted_part part = {waiting.entries + at, done ? left : index_commit_receipts, done ? &waiting : NULL};
    status = in_one_commit(checkpoint, put_identities, &part, "the index of identities cannot be written", fault);
  }
  free(waiting.entries);
  checkpoint->failed = status != STATUS_OK;
  return status;
}

/* ---- rows whose time is over ---- */

struct cleaning {
  uint64_t floor_seq;
  uint32_t rows;
};

/* What its first event carries stands in the index of identities. */
static enum status remove_identity(struct checkpoint *checkpoint, uint64_t accepted_seq) {
  struct bytes record;
  struct event event;
  struct fault fault;
  uint8_t key[pair_key_bytes];
  if (journal_reader_get(checkpoint->reader, accepted_seq, &record) != STATUS_OK ||
      event_decode(checkpoint->decoder, record, &event, &fault) != STATUS_OK)
    return STATUS_CORRUPT;
  if (id_is_zero(&event.common.identity)) return STATUS_OK;
  pair_key_encode(identity_key(&event.common.identity), accepted_seq, key);
  must(checkpoint->meta.identities > 0);
  checkpoint->meta.identities--;
  return views_delete(checkpoint->views, ROWS_IDENTITIES, bytes_of(key, sizeof key));
}

static enum status remove_task(struct checkpoint *checkpoint, struct bytes end, struct bytes acceptance) {
  struct task_row row;
  struct bytes value;
  uint8_t at[8], queue[queue_key_bytes], name[pair_key_bytes], newest[8];
  if (acceptance.size != 8 || end.size != 8) return STATUS_CORRUPT;
  memcpy(at, acceptance.data, 8), memcpy(newest, end.data, 8); /* spans die with the first change */
  acceptance = bytes_of(at, 8);
  enum status status = views_get(checkpoint->views, ROWS_ENDED, acceptance, &value);
  if (status == STATUS_OK) status = ended_row_decode(acceptance, value, &row);
  if (status != STATUS_OK) return STATUS_CORRUPT;
  queue_key_encode(row.task.queue, row.task.accepted_seq, queue);
  pair_key_encode(row.business_hash, row.task.accepted_seq, name);
  checkpoint->meta.gone++;
  digest_sum_add(&checkpoint->meta.gone_sum, checkpoint_part(checkpoint, &row));
  status = remove_identity(checkpoint, row.task.accepted_seq);
  if (status == STATUS_OK) status = views_delete(checkpoint->views, ROWS_ENDS, bytes_of(newest, sizeof newest));
  if (status == STATUS_OK) status = views_delete(checkpoint->views, ROWS_QUEUES, bytes_of(queue, sizeof queue));
  if (status == STATUS_OK && row.business_hash != 0)
    status = views_delete(checkpoint->views, ROWS_NAMES, bytes_of(name, sizeof name));
  if (status == STATUS_OK) status = views_delete(checkpoint->views, ROWS_IDS, bytes_of(row.task.id.bytes, id_bytes));
  return status == STATUS_OK ? views_delete(checkpoint->views, ROWS_ENDED, acceptance) : status;
}

static enum status first_row(struct checkpoint *checkpoint, enum rows_table table, struct bytes *ret_key,
                             struct bytes *ret_value) {
  uint8_t at[8];
  return views_from(checkpoint->views, table, seq_key(0, at), ret_key, ret_value);
}

/* OK: it may go. END: nothing (more) may. */
static enum status over_receipts(struct checkpoint *checkpoint, uint64_t floor_seq, struct bytes *ret_key) {
  struct bytes value;
  enum status status = first_row(checkpoint, ROWS_RECEIPTS, ret_key, &value);
  if (status != STATUS_OK) return status;
  if (value.size == 0 || value.size % 16 != 0) return STATUS_CORRUPT;
  uint64_t last = receipt_entry_at(value, value.size / 16 - 1).seq;
  return last <= floor_seq && last <= checkpoint->meta.indexed_seq ? STATUS_OK : STATUS_END;
}

/* Of a task that is gone, once what its first event carries is sorted in. */
static enum status over_task(struct checkpoint *checkpoint, struct bytes *ret_key, struct bytes *ret_value) {
  enum status status = first_row(checkpoint, ROWS_ENDS, ret_key, ret_value);
  if (status != STATUS_OK) return status;
  if (ret_key->size != 8) return STATUS_CORRUPT;
  uint64_t newest = seq_key_at(ret_key->data);
  return newest <= checkpoint->meta.retained_seq && newest <= checkpoint->meta.indexed_seq ? STATUS_OK : STATUS_END;
}

static enum status clean(struct checkpoint *checkpoint, void *context) {
  struct cleaning *cleaning = context;
  struct bytes key, value;
  enum status status = STATUS_OK;
  for (; status == STATUS_OK && cleaning->rows < checkpoint_clean_rows; cleaning->rows += status == STATUS_OK) {
    status = over_receipts(checkpoint, cleaning->floor_seq, &key);
    if (status == STATUS_OK) status = views_delete(checkpoint->views, ROWS_RECEIPTS, key);
  }
  if (status == STATUS_END) status = STATUS_OK;
  for (; status == STATUS_OK && cleaning->rows < checkpoint_clean_rows; cleaning->rows += status == STATUS_OK) {
    status = over_task(checkpoint, &key, &value);
    if (status == STATUS_OK) status = remove_task(checkpoint, key, value);
  }
  return status == STATUS_END ? STATUS_OK : status;
}

/* Whether there is anything to do, without a transaction that writes. */
static enum status is_clean(struct checkpoint *checkpoint, uint64_t floor_seq, bool *ret_clean, struct fault *fault) {
  struct bytes key, value;
  enum status status = views_begin(checkpoint->views, false, fault);
  if (status != STATUS_OK) return status;
  status = over_receipts(checkpoint, floor_seq, &key);
  if (status == STATUS_END) status = over_task(checkpoint, &key, &value);
  views_abort(checkpoint->views);
  *ret_clean = status == STATUS_END;
  if (status == STATUS_OK || status == STATUS_END) return STATUS_OK;
  return fault_set(fault, status, NULL, "the checkpoint's rows cannot be read: %s", status_text(status));
}

enum status checkpoint_clean(struct checkpoint *checkpoint, uint64_t floor_seq, bool *ret_more, struct fault *fault) {
  struct cleaning cleaning = {.floor_seq = floor_seq};
  bool nothing;
  enum status status = is_clean(checkpoint, floor_seq, &nothing, fault);
  if (status == STATUS_OK && !nothing)
    status = in_one_commit(checkpoint, clean, &cleaning, "rows whose time is over cannot be removed", fault);
  checkpoint->failed = status != STATUS_OK;
  if (status == STATUS_OK) *ret_more = cleaning.rows >= checkpoint_clean_rows;
  return status;
}
