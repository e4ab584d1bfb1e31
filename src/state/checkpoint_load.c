/* Owns the way from rows to a state: everything is built in one pass over each table, with room made beforehand. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "state/checkpoint_internal.h"
#include "state/warming.h"

struct loading {
  struct views *views;
  struct state *state;
  struct meta_row meta;
  struct event node_started;
  struct index buckets; /* row number -> number in memory */
  uint64_t tasks;       /* rows of them */
  uint64_t unfinished;  /* tasks, as the buckets say */
  uint64_t sum;         /* of the rows that were read */
  uint64_t last_accepted_seq;
  uint64_t waiting_sum; /* of the chunks of receipts that were read */
};

static void sum_add(struct loading *loading, enum rows_table table, struct bytes key, struct bytes value) {
  loading->sum += rows_hash(table, key, value);
}

static enum status load_object(void *context, struct bytes key, struct bytes value) {
  struct loading *loading = context;
  struct state *state = loading->state;
  struct object object;
  uint32_t number;
  sum_add(loading, ROWS_OBJECTS, key, value);
  if (!number_key_parse(key, &number) || number != state->objects.used + 1) return STATUS_CORRUPT;
  enum status status = object_row_decode(value, &object);
  if (status != STATUS_OK) return status;
  must(pool_add(&state->objects) == number);
  *object_at(state, number) = object;
  for (unsigned ended = 0; object.kind == OBJECT_QUEUE && ended < TASK_ENUM_END; ended++)
    if (task_state_is_terminal((enum task_state)ended)) object_at(state, number)->away += object.as.queue.counts[ended];
  state->tasks_away += object_at(state, number)->away;
  uint64_t waiting = object.kind == OBJECT_QUEUE ? object.as.queue.counts[TASK_WAITING] : 0;
  if (waiting <= loading->tasks) heap_reserve(&object_at(state, number)->waiting, (uint32_t)waiting);
  index_add(&state->object_ids, id_hash(&object.id), number);
  bool placed = object.kind != OBJECT_SUBSCRIPTION || object.as.subscription.deleted || subscription_place(state, number);
  if (object.kind == OBJECT_SCHEDULE) schedule_follow(state, number);
  return placed ? STATUS_OK : STATUS_CORRUPT;
}

static bool is_object(const struct state *state, uint32_t number, enum object_kind kind) {
  return number != 0 && number <= state->objects.used && object_at(state, number)->kind == kind;
}

static enum status load_bucket(void *context, struct bytes key, struct bytes value) {
  struct loading *loading = context;
  struct bucket_row row;
  sum_add(loading, ROWS_BUCKETS, key, value);
  enum status status = bucket_row_decode(key, value, &row);
  if (status != STATUS_OK) return status;
  if (!is_object(loading->state, row.queue, OBJECT_QUEUE) || row.unfinished == 0) return STATUS_CORRUPT;
  uint32_t bucket = bucket_make(loading->state, row.queue, row.handler, row.handler_version);
  index_add(&loading->buckets, row.number, bucket);
  if (row.unfinished <= loading->tasks) heap_reserve(&bucket_at(loading->state, bucket)->ready, row.unfinished);
  loading->unfinished += row.unfinished;
  return STATUS_OK;
}

/* Its places in orders and lists follow. CORRUPT: it points at what is not there. */
static enum status place_task(struct loading *loading, uint32_t number, const struct task_row *row) {
  struct state *state = loading->state;
  struct index_cursor cursor;
  if (task_state_is_terminal((enum task_state)row->task.state) || row->task.handler == 0) return STATUS_CORRUPT;
  uint64_t bucket = index_find(&loading->buckets, row->task.handler, &cursor);
  if (bucket == 0 || bucket_at(state, (uint32_t)bucket)->bucket.queue != row->task.queue || loading->unfinished == 0)
    return STATUS_CORRUPT;
  loading->unfinished--;
  ready_restore(state, number, (uint32_t)bucket, &row->key_id, &row->attempt, loading->meta.time_us);
  listing_place(state, number, row->business_hash);
  return STATUS_OK;
}

/* ---- tasks, in the order of acceptance, which is that of lists ---- */

static enum status link_schedule(struct loading *loading, uint32_t number, const struct task_row *row) {
  bool over = task_state_is_terminal((enum task_state)row->task.state);
  if ((row->schedule != 0) != (row->task.scheduled && !over)) return STATUS_CORRUPT;
  if (row->schedule == 0) return STATUS_OK;
  if (!is_object(loading->state, row->schedule, OBJECT_SCHEDULE)) return STATUS_CORRUPT;
  schedule_link(loading->state, row->schedule, number);
  return STATUS_OK;
}

static enum status load_task(struct loading *loading, struct bytes key, struct bytes value) {
  struct state *state = loading->state;
  struct task_row row;
  sum_add(loading, ROWS_TASKS, key, value);
  enum status status = task_row_decode(key, value, &row);
  if (status != STATUS_OK) return status;
  const struct task *task = &row.task;
  if (!is_object(state, task->queue, OBJECT_QUEUE) || !is_object(state, task->application, OBJECT_APPLICATION))
    return STATUS_CORRUPT;
  if (task->accepted_seq <= loading->last_accepted_seq || task->last_seq > loading->meta.seq) return STATUS_CORRUPT;
  if (task_state_holds_lease((enum task_state)task->state) != !id_is_zero(&row.attempt.id)) return STATUS_CORRUPT;
  loading->last_accepted_seq = task->accepted_seq;
  uint32_t number = pool_add(&state->tasks);
  struct task_node *node = node_at(state, number);
  index_add(&state->task_ids, id_hash(&task->id), number);
  node->task = *task;
  node->handler_hash = row.handler_hash;
  checkpoint_settle(&row, &loading->node_started);
  status = link_schedule(loading, number, &row);
  return status == STATUS_OK ? place_task(loading, number, &row) : status;
}

/* Where the next additions will land is fetched while the present one is made: the tables are far larger than the processor's
 * caches. */
enum { ahead = 16 };

/* Rows in the store's map that wait for their memory to come near. */
struct row_queue {
  struct loading *loading;
  struct bytes keys[ahead], values[ahead];
  uint64_t in, out;
};

static enum status queue_take(struct row_queue *queue) {
  size_t at = queue->out++ % ahead;
  return load_task(queue->loading, queue->keys[at], queue->values[at]);
}

static enum status queue_task(void *context, struct bytes key, struct bytes value) {
  struct row_queue *queue = context;
  struct id id;
  if (key.size != id_bytes) return STATUS_CORRUPT;
  enum status status = queue->in - queue->out == ahead ? queue_take(queue) : STATUS_OK;
  memcpy(id.bytes, key.data, id_bytes);
  struct state *state = queue->loading->state;
  index_prefetch(&state->task_ids, id_hash(&id));
  uint64_t business_hash = task_row_business_hash(value);
  if (business_hash != 0) index_prefetch(&state->business_keys, business_hash);
  size_t at = queue->in++ % ahead;
  queue->keys[at] = key;
  queue->values[at] = value;
  return status;
}

static enum status queue_drain(struct row_queue *queue) {
  enum status status = STATUS_OK;
  while (status == STATUS_OK && queue->out != queue->in) status = queue_take(queue);
  return status;
}

/* END: the ids do not rise with acceptance. */
static enum status check_order(void *context, struct bytes key, struct bytes value) {
  uint64_t *last = context, seq = task_row_accepted_seq(value);
  (void)key;
  if (seq <= *last) return STATUS_END;
  *last = seq;
  return STATUS_OK;
}

struct task_place {
  uint64_t accepted_seq;
  struct bytes key, value;
};

struct task_places {
  struct task_place *rows;
  size_t count, capacity;
};

static enum status find_task(void *context, struct bytes key, struct bytes value) {
  struct task_places *places = context;
  if (places->count == places->capacity) return STATUS_CORRUPT;
  places->rows[places->count++] = (struct task_place){task_row_accepted_seq(value), key, value};
  return STATUS_OK;
}

static int compare_places(const void *a, const void *b) {
  const struct task_place *one = a, *other = b;
  return one->accepted_seq < other->accepted_seq ? -1 : one->accepted_seq > other->accepted_seq;
}

/* Ids that an engine gave out ahead of its clock, just before it was started again. */
static enum status load_unordered(struct row_queue *queue, uint64_t count) {
  struct task_places places = {.rows = guard_malloc(sizeof *places.rows * count), .capacity = count};
  enum status status = views_each(queue->loading->views, ROWS_TASKS, find_task, &places);
  qsort(places.rows, places.count, sizeof *places.rows, compare_places);
  for (size_t i = 0; i < places.count && status == STATUS_OK; i++)
    status = queue_task(queue, places.rows[i].key, places.rows[i].value);
  free(places.rows);
  return status;
}

static enum status load_tasks(struct loading *loading) {
  struct row_queue queue = {.loading = loading};
  uint64_t count = loading->tasks, last = 0;
  enum status status = views_each(loading->views, ROWS_TASKS, check_order, &last);
  if (status == STATUS_OK) status = views_each(loading->views, ROWS_TASKS, queue_task, &queue);
  else if (status == STATUS_END) status = load_unordered(&queue, count);
  return status == STATUS_OK ? queue_drain(&queue) : status;
}

/* ---- receipts and audits ---- */

static enum status load_chunk(struct loading *loading, struct bytes value) {
  struct index *receipts = &loading->state->receipts;
  size_t count = value.size / 16;
  if (value.size % 16 != 0) return STATUS_CORRUPT;
  for (size_t i = 0; i < count; i++) {
    struct receipt_entry entry = receipt_entry_at(value, i);
    if (i + ahead < count) index_prefetch(receipts, receipt_entry_at(value, i + ahead).identity);
    if (entry.seq <= loading->meta.indexed_seq || entry.seq > loading->meta.seq) return STATUS_CORRUPT;
    index_add(receipts, entry.identity, entry.seq);
  }
  return STATUS_OK;
}

/* Those that are not sorted into the index of identities. */
static enum status load_receipts(struct loading *loading) {
  struct bytes key, value;
  uint8_t at[8];
  for (uint64_t next = loading->meta.indexed_seq + 1;; next = seq_key_at(key.data) + 1) {
    seq_key_encode(next, at);
    enum status status = views_from(loading->views, ROWS_RECEIPTS, bytes_of(at, sizeof at), &key, &value);
    if (status != STATUS_OK) return status == STATUS_END ? STATUS_OK : status;
    if (key.size != sizeof at || seq_key_at(key.data) < next) return STATUS_CORRUPT;
    loading->waiting_sum += rows_hash(ROWS_RECEIPTS, key, value);
    status = load_chunk(loading, value);
    if (status != STATUS_OK) return status;
  }
}

static enum status load_audits(void *context, struct bytes key, struct bytes value) {
  struct loading *loading = context;
  sum_add(loading, ROWS_AUDITS, key, value);
  if (value.size % 8 != 0) return STATUS_CORRUPT;
  for (size_t i = 0; i < value.size / 8; i++) listing_audit(loading->state, audit_entry_at(value, i));
  return STATUS_OK;
}

/* Room for what will be filled from here on; made ready meanwhile, indexes first, because they are filled all over at once. */
static void reserve(struct loading *loading, struct warming *warming) {
  struct state *state = loading->state;
  uint64_t count = loading->tasks;
  index_reserve(&state->receipts, loading->meta.receipts - loading->meta.indexed);
  index_reserve(&state->task_ids, count);
  index_reserve(&state->business_keys, loading->meta.named < count ? loading->meta.named : count);
  pool_reserve(&state->tasks, (uint32_t)count);
  heap_reserve(&state->timers, loading->unfinished < count ? (uint32_t)loading->unfinished : (uint32_t)count);
  size_t size;
  void *memory = index_pages(&state->task_ids, &size);
  warming_add(warming, memory, size);
  memory = pool_reserved(&state->tasks, &size);
  warming_add(warming, memory, size);
  memory = index_pages(&state->receipts, &size);
  warming_add(warming, memory, size);
  warming_begin(warming);
}

/* What has ended stays in the store, whether it ended long ago or just now. */
static void leave_stored(struct loading *loading) {
  struct state *state = loading->state;
  const struct meta_row *meta = &loading->meta;
  state->last_seq = meta->seq;
  state->last_time_us = meta->time_us;
  state->retained_seq = meta->retained_seq;
  state->receipts_floor = meta->indexed_seq;
  state->left_seq = state->needed_seq = meta->seq;
  digest_sum_add(&state->away, meta->ended_sum);
  digest_sum_add(&state->away, meta->indexed_sum);
}

static bool is_whole(const struct loading *loading) {
  const struct state *state = loading->state;
  const struct meta_row *meta = &loading->meta;
  return loading->sum == meta->sum && loading->waiting_sum == meta->waiting_sum && loading->unfinished == 0 &&
         state->receipts.count == meta->receipts - meta->indexed && state->audit_count == meta->audits &&
         state->tasks_away == meta->ended;
}

static enum status load_tables(struct loading *loading) {
  cleanup(warming_end) struct warming warming = {.count = 0};
  loading->tasks = views_count(loading->views, ROWS_TASKS);
  if (loading->tasks >= UINT32_MAX || loading->meta.indexed > loading->meta.receipts ||
      loading->meta.receipts - loading->meta.indexed > loading->meta.seq * 2)
    return STATUS_CORRUPT;
  enum status status = views_each(loading->views, ROWS_OBJECTS, load_object, loading);
  if (status == STATUS_OK) status = views_each(loading->views, ROWS_BUCKETS, load_bucket, loading);
  if (status == STATUS_OK) {
    reserve(loading, &warming);
    status = load_tasks(loading);
  }
  if (status == STATUS_OK) status = load_receipts(loading);
  if (status == STATUS_OK) status = views_each(loading->views, ROWS_AUDITS, load_audits, loading);
  if (status != STATUS_OK) return status;
  return is_whole(loading) ? STATUS_OK : STATUS_CORRUPT;
}

enum status checkpoint_load_from(struct views *views, const struct meta_row *meta, const char *directory,
                                 struct state **ret_state, struct fault *fault) {
  struct loading loading = {.views = views, .meta = *meta, .node_started.type = EVENT_node_started};
  loading.state = state_new();
  loading.node_started.seq = meta->node_started_seq;
  loading.node_started.time_us = meta->node_started_us;
  enum status status = load_tables(&loading);
  index_clear(&loading.buckets);
  if (status != STATUS_OK) {
    state_free(loading.state);
    return fault_set(fault, status, NULL, "%.160s: its rows are damaged", directory);
  }
  leave_stored(&loading);
  *ret_state = loading.state;
  return STATUS_OK;
}

enum status checkpoint_load(const char *directory, struct journal *journal, struct state **ret_state,
                            struct checkpoint_position *ret_position, struct fault *fault) {
  struct views *views;
  struct meta_row meta;
  enum status status = checkpoint_attach(directory, 0, true, journal, &views, &meta, fault);
  if (status != STATUS_OK) return status;
  if (meta.seq == 0) {
    views_close(views);
    return fault_set(fault, STATUS_NOT_FOUND, NULL, "%.160s: nothing is in it yet", directory);
  }
  status = views_begin(views, false, fault);
  if (status == STATUS_OK) status = checkpoint_load_from(views, &meta, directory, ret_state, fault);
  views_close(views);
  if (status == STATUS_OK) *ret_position = (struct checkpoint_position){meta.seq, meta.chain};
  return status;
}
