/* Owns the checkpoint's writer: what it holds between batches, and how a batch reaches the disk. */
#include "state/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "state/checkpoint_internal.h"

/* ---- what stands there ---- */

static void genesis_digest(const struct journal *journal, uint8_t out[32]) {
  static_assert(token_hash_bytes == 32, "a digest of 256 bits");
  token_hash(journal_genesis(journal), out);
}

/* The watermark must be an event of this log, and the end of a commit. */
static enum status watermark_check(const char *directory, struct journal *journal, const struct meta_row *meta,
                                   struct fault *fault) {
  struct journal_reader *reader;
  struct bytes record;
  struct event event;
  enum status status = journal_reader_new(journal, &reader);
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log's reader table is full");
  uint64_t end = journal_reader_last_seq(reader);
  status = journal_reader_get(reader, meta->seq, &record);
  if (status == STATUS_END)
    status = fault_set(fault, STATUS_FOREIGN, NULL,
                       "%.120s: it stands at seq %" PRIu64 ", but the log ends at seq %" PRIu64 ": it is of a longer log",
                       directory, meta->seq, end);
  else if (status != STATUS_OK || record_header_decode(record, &event) != STATUS_OK)
    status = fault_set(fault, STATUS_CORRUPT, NULL, "%.120s: seq %" PRIu64 ", where it stands, cannot be read in the log",
                       directory, meta->seq);
  else if (event.seq != meta->seq || event.chain != meta->chain || event.time_us != meta->time_us || !event.last_of_commit)
    status = fault_set(fault, STATUS_FOREIGN, NULL,
                       "%.120s: the chain at seq %" PRIu64 ", where it stands, is not the log's: it is of another log",
                       directory, meta->seq);
  journal_reader_free(reader);
  return status;
}

static enum status meta_read(const char *directory, struct views *views, struct meta_row *ret_meta, struct fault *fault) {
  struct bytes value;
  enum status status = views_get(views, ROWS_META, bytes_text("checkpoint"), &value);
  if (status == STATUS_END && views_count(views, ROWS_META) != 0) status = STATUS_FOREIGN;
  if (status == STATUS_END) {
    *ret_meta = (struct meta_row){.seq = 0};
    return STATUS_OK;
  }
  if (status == STATUS_OK) status = meta_row_decode(value, ret_meta);
  if (status == STATUS_OK) return status;
  return fault_set(fault, status, NULL, "%.120s: %s", directory,
                   status == STATUS_FOREIGN ? "it is of another format" : "where it stands cannot be read");
}

static enum status meta_judge(const char *directory, struct views *views, struct journal *journal, struct meta_row *ret_meta,
                              struct fault *fault) {
  uint8_t genesis[32];
  enum status status = meta_read(directory, views, ret_meta, fault);
  if (status != STATUS_OK) return status;
  genesis_digest(journal, genesis);
  if (ret_meta->seq == 0) {
    memcpy(ret_meta->genesis, genesis, sizeof genesis);
    return STATUS_OK;
  }
  if (memcmp(ret_meta->genesis, genesis, sizeof genesis) != 0)
    return fault_set(fault, STATUS_FOREIGN, NULL, "%.120s: it was made from a log with another genesis", directory);
  return watermark_check(directory, journal, ret_meta, fault);
}

enum status checkpoint_attach(const char *directory, uint64_t map_bytes, bool read_only, struct journal *journal,
                              struct views **ret_views, struct meta_row *ret_meta, struct fault *fault) {
  struct views_options options = {
      .map_bytes = map_bytes, .read_only = read_only, .tables = rows_table_names, .table_count = ROWS_TABLE_COUNT};
  struct views *views;
  enum status status = views_open(directory, &options, &views, fault);
  if (status != STATUS_OK) return status;
  status = views_begin(views, false, fault);
  if (status == STATUS_OK) status = meta_judge(directory, views, journal, ret_meta, fault);
  views_abort(views);
  if (status != STATUS_OK) views_close(views);
  else *ret_views = views;
  return status;
}

enum status checkpoint_remove(const char *directory) { return views_remove(directory); }

/* ---- opening and closing ---- */

static enum status keep_object(void *context, struct bytes key, struct bytes value) {
  struct checkpoint *checkpoint = context;
  struct object object;
  uint32_t number;
  if (!number_key_parse(key, &number) || number != checkpoint->objects.used + 1) return STATUS_CORRUPT;
  enum status status = object_row_decode(value, &object);
  if (status != STATUS_OK) return status;
  must(pool_add(&checkpoint->objects) == number);
  *(struct kept_object *)pool_at(&checkpoint->objects, number) =
      (struct kept_object){.object = object, .hash = rows_hash(ROWS_OBJECTS, key, value)};
  index_add(&checkpoint->object_ids, id_hash(&object.id), number);
  return STATUS_OK;
}

static enum status keep_bucket(void *context, struct bytes key, struct bytes value) {
  struct bucket_row row;
  enum status status = bucket_row_decode(key, value, &row);
  if (status != STATUS_OK) return status;
  checkpoint_bucket_add(context, &row)->hash = rows_hash(ROWS_BUCKETS, key, value);
  return STATUS_OK;
}

static enum status keep_rows(struct checkpoint *checkpoint, const char *directory, struct fault *fault) {
  enum status status = views_begin(checkpoint->views, false, fault);
  if (status != STATUS_OK) return status;
  status = views_each(checkpoint->views, ROWS_OBJECTS, keep_object, checkpoint);
  if (status == STATUS_OK) status = views_each(checkpoint->views, ROWS_BUCKETS, keep_bucket, checkpoint);
  views_abort(checkpoint->views);
  return status == STATUS_OK ? status : fault_set(fault, status, NULL, "%.160s: its rows are damaged", directory);
}

enum status checkpoint_open(const char *directory, uint64_t map_bytes, struct journal *journal,
                            struct checkpoint **ret_checkpoint, struct fault *fault) {
  struct checkpoint *checkpoint = guard_calloc(1, sizeof *checkpoint);
  checkpoint->journal = journal;
  pool_init(&checkpoint->objects, sizeof(struct kept_object));
  pool_init(&checkpoint->buckets, sizeof(struct kept_bucket));
  pool_init(&checkpoint->tasks, sizeof(struct kept_task));
  buffer_init(&checkpoint->receipts, SIZE_MAX);
  buffer_init(&checkpoint->audits, SIZE_MAX);
  buffer_init(&checkpoint->row, SIZE_MAX);
  checkpoint->decoder = event_decoder_new();
  enum status status = checkpoint_attach(directory, map_bytes != 0 ? map_bytes : views_map_bytes_default, false, journal,
                                         &checkpoint->views, &checkpoint->meta, fault);
  if (status == STATUS_OK) status = keep_rows(checkpoint, directory, fault);
  if (status == STATUS_OK && journal_reader_new(journal, &checkpoint->reader) != STATUS_OK)
    status = fault_set(fault, STATUS_UNAVAILABLE, NULL, "the log's reader table is full");
  if (status != STATUS_OK) {
    checkpoint_close(checkpoint);
    return status;
  }
  journal_reader_release(checkpoint->reader);
  checkpoint->node_started.type = EVENT_node_started;
  checkpoint->node_started.seq = checkpoint->meta.node_started_seq;
  checkpoint->node_started.time_us = checkpoint->meta.node_started_us;
  *ret_checkpoint = checkpoint;
  return STATUS_OK;
}

void checkpoint_close(struct checkpoint *checkpoint) {
  if (checkpoint == NULL) return;
  journal_reader_free(checkpoint->reader);
  views_close(checkpoint->views);
  event_decoder_free(checkpoint->decoder);
  for (uint32_t number = 1; number <= checkpoint->objects.used; number++) {
    struct object *object = &((struct kept_object *)pool_at(&checkpoint->objects, number))->object;
    if (object->kind == OBJECT_CREDENTIAL) free(object->as.credential.queue_ids);
  }
  for (uint32_t at = 1; at <= checkpoint->buckets.used; at++)
    free((void *)(uintptr_t)((struct kept_bucket *)pool_at(&checkpoint->buckets, at))->row.handler.data);
  pool_clear(&checkpoint->objects);
  pool_clear(&checkpoint->buckets);
  pool_clear(&checkpoint->tasks);
  index_clear(&checkpoint->object_ids);
  index_clear(&checkpoint->bucket_numbers);
  index_clear(&checkpoint->bucket_keys);
  index_clear(&checkpoint->task_ids);
  buffer_clear(&checkpoint->receipts);
  buffer_clear(&checkpoint->audits);
  buffer_clear(&checkpoint->row);
  free(checkpoint);
}

uint64_t checkpoint_seq(const struct checkpoint *checkpoint) { return checkpoint->meta.seq; }

enum status checkpoint_lend(struct checkpoint *checkpoint, struct cold *cold, struct fault *fault) {
  return cold_offer(cold, checkpoint->views, checkpoint->meta.seq, checkpoint->meta.indexed_seq, fault);
}

/* ---- a batch reaches the store ---- */

/* Puts the row; the sum follows. *hash is what the row adds as it stood. */
static enum status put_row(struct checkpoint *checkpoint, enum rows_table table, struct bytes key, struct bytes value,
                           uint64_t *hash) {
  uint64_t now = rows_hash(table, key, value);
  enum status status = views_put(checkpoint->views, table, key, value, *hash == 0);
  checkpoint->meta.sum += now - *hash;
  *hash = now;
  return status;
}

static enum status put_objects(struct checkpoint *checkpoint) {
  enum status status = STATUS_OK;
  for (uint32_t number = 1; number <= checkpoint->objects.used && status == STATUS_OK; number++) {
    struct kept_object *kept = pool_at(&checkpoint->objects, number);
    uint8_t key[rows_number_bytes];
    if (!kept->dirty) continue;
    buffer_reset(&checkpoint->row);
    object_row_encode(&kept->object, &checkpoint->row);
    number_key(number, key);
    status = put_row(checkpoint, ROWS_OBJECTS, bytes_of(key, sizeof key), buffer_bytes(&checkpoint->row), &kept->hash);
    kept->dirty = false;
  }
  return status;
}

static enum status put_buckets(struct checkpoint *checkpoint) {
  enum status status = STATUS_OK;
  for (uint32_t at = 1; at <= checkpoint->buckets.used && status == STATUS_OK; at++) {
    struct kept_bucket *kept = pool_at(&checkpoint->buckets, at);
    uint8_t key[rows_number_bytes];
    if (!kept->dirty) continue;
    number_key(kept->row.number, key);
    if (kept->row.unfinished == 0) {
      status = views_delete(checkpoint->views, ROWS_BUCKETS, bytes_of(key, sizeof key));
      checkpoint->meta.sum -= kept->hash;
      checkpoint_bucket_remove(checkpoint, at);
      continue;
    }
    buffer_reset(&checkpoint->row);
    bucket_row_encode(&kept->row, &checkpoint->row);
    status = put_row(checkpoint, ROWS_BUCKETS, bytes_of(key, sizeof key), buffer_bytes(&checkpoint->row), &kept->hash);
    kept->dirty = false;
  }
  return status;
}

static int compare_tasks(const void *a, const void *b, void *context) {
  const struct checkpoint *checkpoint = context;
  const struct kept_task *one = pool_at(&checkpoint->tasks, *(const uint32_t *)a);
  const struct kept_task *other = pool_at(&checkpoint->tasks, *(const uint32_t *)b);
  return id_compare(&one->row.task.id, &other->row.task.id);
}

/* In the order of keys: new ones at the end of the table, others page by page. */
static enum status put_tasks(struct checkpoint *checkpoint) {
  uint32_t count = checkpoint->tasks.used;
  cleanup(guard_free) uint32_t *order = guard_malloc(sizeof *order * count);
  for (uint32_t i = 0; i < count; i++) order[i] = i + 1;
  qsort_r(order, count, sizeof *order, compare_tasks, checkpoint);
  enum status status = STATUS_OK;
  for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
    struct kept_task *kept = pool_at(&checkpoint->tasks, order[i]);
    uint8_t value[task_row_bytes_max];
    if (task_state_is_terminal((enum task_state)kept->row.task.state)) {
      status = checkpoint_put_ended(checkpoint, kept);
      continue;
    }
    size_t size = task_row_encode(&kept->row, value);
    status = put_row(checkpoint, ROWS_TASKS, bytes_of(kept->row.task.id.bytes, id_bytes), bytes_of(value, size), &kept->hash);
  }
  pool_empty(&checkpoint->tasks);
  index_empty(&checkpoint->task_ids);
  return status;
}

/* Entries in chunks, each under the seq that it begins with. Those of receipts add to
 * a sum of their own until they are sorted in. */
static enum status put_chunks(struct checkpoint *checkpoint, enum rows_table table, struct buffer *entries,
                              size_t entry_bytes) {
  enum status status = STATUS_OK;
  size_t chunk_bytes = entry_bytes * checkpoint_chunk_entries;
  for (size_t start = 0; start < entries->size && status == STATUS_OK; start += chunk_bytes) {
    size_t left = entries->size - start, size = left < chunk_bytes ? left : chunk_bytes;
    struct bytes chunk = bytes_of(entries->data + start, size);
    uint8_t key[8];
    uint64_t none = 0;
    if (table == ROWS_RECEIPTS) seq_key_encode(receipt_entry_at(chunk, 0).seq, key);
    else seq_key_encode(audit_entry_at(chunk, 0), key);
    if (table == ROWS_AUDITS) {
      status = put_row(checkpoint, table, bytes_of(key, sizeof key), chunk, &none);
      continue;
    }
    status = views_put(checkpoint->views, table, bytes_of(key, sizeof key), chunk, true);
    checkpoint->meta.waiting_sum += rows_hash(table, bytes_of(key, sizeof key), chunk);
  }
  buffer_reset(entries);
  return status;
}

enum status checkpoint_put_meta(struct checkpoint *checkpoint) {
  uint8_t meta[meta_row_bytes];
  meta_row_encode(&checkpoint->meta, meta);
  return views_put(checkpoint->views, ROWS_META, bytes_text("checkpoint"), bytes_of(meta, sizeof meta), false);
}

static enum status flush(struct checkpoint *checkpoint, struct fault *fault) {
  must(!checkpoint->receipts.failed && !checkpoint->audits.failed);
  enum status status = put_objects(checkpoint);
  if (status == STATUS_OK) status = put_buckets(checkpoint);
  if (status == STATUS_OK) status = put_tasks(checkpoint);
  if (status == STATUS_OK) status = put_chunks(checkpoint, ROWS_RECEIPTS, &checkpoint->receipts, 16);
  if (status == STATUS_OK) status = put_chunks(checkpoint, ROWS_AUDITS, &checkpoint->audits, 8);
  if (status == STATUS_OK) status = checkpoint_put_meta(checkpoint);
  if (status != STATUS_OK)
    return fault_set(fault, status, NULL, "the checkpoint's rows cannot be written: %s", status_text(status));
  return views_commit(checkpoint->views, fault);
}

/* ---- reading the log ---- */

static enum status damage(uint64_t seq, const char *what, struct fault *fault) {
  return fault_set(fault, STATUS_CORRUPT, NULL, "the checkpoint's follower cannot read event %" PRIu64 " of the log: %.160s",
                   seq, what);
}

static enum status follow_one(struct checkpoint *checkpoint, bool *ret_last_of_commit, struct fault *fault) {
  uint64_t seq = checkpoint->meta.seq + 1;
  uint64_t chain = checkpoint->meta.seq != 0 ? checkpoint->meta.chain : journal_first_chain(checkpoint->journal);
  struct bytes record;
  struct event event;
  struct fault inner = {.message = ""};
  if (journal_reader_get(checkpoint->reader, seq, &record) != STATUS_OK) return damage(seq, "it is not there", fault);
  enum status status = event_decode(checkpoint->decoder, record, &event, &inner);
  if (status != STATUS_OK) return damage(seq, inner.message, fault);
  if (event.seq != seq || event.chain != record_chain(record, chain)) return damage(seq, "the chain is broken", fault);
  *ret_last_of_commit = event.last_of_commit;
  return checkpoint_fold(checkpoint, &event, fault);
}

static enum status follow_batch(struct checkpoint *checkpoint, uint64_t events_max, uint64_t end, uint64_t *ret_events,
                                struct fault *fault) {
  enum status status = STATUS_OK;
  uint64_t events = 0;
  for (bool last = true; status == STATUS_OK && checkpoint->meta.seq < end && (events < events_max || !last); events++) {
    if (events % log_replay_chunk_events == 0 && events != 0 && journal_reader_refresh(checkpoint->reader) != STATUS_OK)
      return fault_set(fault, STATUS_UNAVAILABLE, NULL, "the log's reader table is full");
    status = follow_one(checkpoint, &last, fault);
  }
  journal_reader_release(checkpoint->reader); /* rows take their time to the disk; no page of the log waits for that */
  if (status == STATUS_OK) status = flush(checkpoint, fault);
  if (status == STATUS_OK) *ret_events = events;
  return status;
}

enum status checkpoint_follow(struct checkpoint *checkpoint, uint64_t events_max, uint64_t *ret_events, struct fault *fault) {
  must(!checkpoint->failed);
  if (journal_reader_refresh(checkpoint->reader) != STATUS_OK)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "the log's reader table is full");
  uint64_t end = journal_reader_last_seq(checkpoint->reader);
  enum status status = STATUS_OK;
  if (end == checkpoint->meta.seq) {
    *ret_events = 0;
  } else {
    status = views_begin(checkpoint->views, true, fault);
    if (status == STATUS_OK) status = follow_batch(checkpoint, events_max, end, ret_events, fault);
    views_abort(checkpoint->views);
  }
  journal_reader_release(checkpoint->reader);
  checkpoint->failed = status != STATUS_OK;
  return status;
}
