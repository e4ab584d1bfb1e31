/* Owns the layout of rows: for each object one list of fields, from which writing, reading and size are made, so that they
 * cannot disagree. */
#include "state/rows.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "state/rows_numbers.h"

const char *const rows_table_names[ROWS_TABLE_COUNT] = {
    [ROWS_META] = "meta",           [ROWS_OBJECTS] = "objects",   [ROWS_BUCKETS] = "buckets", [ROWS_TASKS] = "tasks",
    [ROWS_RECEIPTS] = "receipts",   [ROWS_AUDITS] = "audits",     [ROWS_ENDED] = "ended",     [ROWS_IDS] = "ended.ids",
    [ROWS_QUEUES] = "ended.queues", [ROWS_NAMES] = "ended.names", [ROWS_ENDS] = "ended.ends", [ROWS_IDENTITIES] = "identities",
};

#define FIELD_PUT(bits, object, name) at = put_##bits(at, (uint##bits##_t)(object)->name);
#define FIELD_TAKE(bits, object, name) (object)->name = (__typeof__((object)->name))take_##bits(&at);
#define FIELD_SIZE(bits, object, name) +(bits) / 8

/* ---- where the checkpoint stands ---- */

/* clang-format off */
#define META_FIELDS(F, o)       \
  F(64, o, seq)                 \
  F(64, o, chain)               \
  F(64, o, time_us)             \
  F(64, o, node_started_seq)    \
  F(64, o, node_started_us)     \
  F(64, o, receipts)            \
  F(64, o, audits)              \
  F(64, o, named)               \
  F(64, o, sum)                 \
  F(64, o, indexed_seq)         \
  F(64, o, indexed)             \
  F(64, o, identities)          \
  F(64, o, waiting_sum)         \
  F(64, o, retained_seq)        \
  F(64, o, ended)               \
  F(64, o, gone)                \
  F(64, o, ended_sum.low)       \
  F(64, o, ended_sum.high)      \
  F(64, o, gone_sum.low)        \
  F(64, o, gone_sum.high)       \
  F(64, o, indexed_sum.low)     \
  F(64, o, indexed_sum.high)
/* clang-format on */
static_assert(4 + (0 META_FIELDS(FIELD_SIZE, )) + 32 + 8 == meta_row_bytes, "the size of a meta row");

void meta_row_encode(const struct meta_row *row, uint8_t out[meta_row_bytes]) {
  uint8_t *at = put_32(out, rows_format);
  META_FIELDS(FIELD_PUT, row)
  memcpy(at, row->genesis, sizeof row->genesis);
  at += sizeof row->genesis;
  at = put_64(at, XXH3_64bits(out, (size_t)(at - out)));
  must(at == out + meta_row_bytes);
}

enum status meta_row_decode(struct bytes value, struct meta_row *ret_row) {
  struct meta_row row;
  const uint8_t *at = value.data;
  if (value.size < 4) return STATUS_CORRUPT;
  if (take_32(&at) != rows_format) return STATUS_FOREIGN;
  if (value.size != meta_row_bytes) return STATUS_CORRUPT;
  META_FIELDS(FIELD_TAKE, &row)
  memcpy(row.genesis, at, sizeof row.genesis);
  at += sizeof row.genesis;
  if (take_64(&at) != XXH3_64bits(value.data, meta_row_bytes - 8)) return STATUS_CORRUPT;
  *ret_row = row;
  return STATUS_OK;
}

/* ---- tasks ---- */

enum { task_row_version = 1 };
enum {
  TASK_UNCERTAIN = 1,
  TASK_RETRIED = 2,
  TASK_SCHEDULED = 4,
  TASK_IS_RETRY = 8,
  TASK_HAS_ATTEMPT = 16,
  TASK_HAS_KEY = 32,
  TASK_HAS_BUSINESS = 64,
  TASK_HAS_SCHEDULE = 128,
};

/* A field a line, in the order of their bytes; between them stand what the structure has in another form: error, result and
 * epoch, then when it was completed. */
/* clang-format off */
#define TASK_FIELDS(F, o)       \
  F(8, o, state)                \
  F(8, o, recovery_safety)      \
  F(8, o, priority)             \
  F(8, o, ended_as)             \
  F(64, o, accepted_seq)        \
  F(64, o, last_seq)
#define TASK_TIMES(F, o)        \
  F(64, o, created_at)          \
  F(64, o, updated_at)          \
  F(64, o, available_at)        \
  F(64, o, start_deadline_at)   \
  F(64, o, deadline_at)
#define TASK_TERMS(F, o)        \
  F(64, o, cancel_requested_at) \
  F(32, o, queue)               \
  F(32, o, application)         \
  F(32, o, handler)             \
  F(32, o, revision)            \
  F(32, o, initial_delay_ms)    \
  F(32, o, max_delay_ms)        \
  F(32, o, attempt_timeout_ms)  \
  F(32, o, payload_bytes)       \
  F(16, o, attempt_count)       \
  F(16, o, max_attempts)
/* clang-format on */
enum { task_outcome_bytes = 3 * 8, task_completed_bytes = 8 };
#define ATTEMPT_FIELDS(F, o) \
  F(64, o, leased_at) F(64, o, lease_until) F(64, o, started_at) F(64, o, attempt_deadline_at) F(32, o, lease_ms)

static_assert(1 + 1 + (0 TASK_FIELDS(FIELD_SIZE, ) TASK_TIMES(FIELD_SIZE, ) TASK_TERMS(FIELD_SIZE, )) + task_outcome_bytes +
                      task_completed_bytes + 4 ==
                  task_row_fixed_bytes,
              "the size of a task row");
static_assert(3 * id_bytes + (0 ATTEMPT_FIELDS(FIELD_SIZE, )) == task_row_attempt_bytes, "the size of its attempt");

static unsigned task_flags(const struct task_row *row) {
  const struct task *task = &row->task;
  return (task->effect_uncertain ? TASK_UNCERTAIN : 0U) | (task->retried ? TASK_RETRIED : 0U) |
         (task->scheduled ? TASK_SCHEDULED : 0U) | (task->is_retry ? TASK_IS_RETRY : 0U) |
         (!id_is_zero(&row->attempt.id) ? TASK_HAS_ATTEMPT : 0U) | (!id_is_zero(&row->key_id) ? TASK_HAS_KEY : 0U) |
         (row->business_hash != 0 ? TASK_HAS_BUSINESS : 0U) | (row->schedule != 0 ? TASK_HAS_SCHEDULE : 0U);
}

size_t task_row_encode(const struct task_row *row, uint8_t out[task_row_bytes_max]) {
  const struct task *task = &row->task;
  const struct attempt *attempt = &row->attempt;
  unsigned flags = task_flags(row);
  uint8_t *at = put_8(out, task_row_version);
  at = put_8(at, (uint8_t)flags);
  TASK_FIELDS(FIELD_PUT, task)
  at = put_64(put_64(put_64(at, task_error_seq(task)), task_result_seq(task)), task->epoch);
  TASK_TIMES(FIELD_PUT, task)
  at = put_64(at, (uint64_t)task_completed_at(task));
  TASK_TERMS(FIELD_PUT, task)
  at = put_32(at, row->handler_hash);
  must(at == out + task_row_fixed_bytes);
  if ((flags & TASK_HAS_ATTEMPT) != 0) {
    at = put_id(put_id(put_id(at, &attempt->id), &attempt->instance_id), &attempt->application_id);
    ATTEMPT_FIELDS(FIELD_PUT, attempt)
  }
  if ((flags & TASK_HAS_KEY) != 0) at = put_id(at, &row->key_id);
  if ((flags & TASK_HAS_SCHEDULE) != 0) at = put_32(at, row->schedule);
  if ((flags & TASK_HAS_BUSINESS) != 0) at = put_64(at, row->business_hash);
  return (size_t)(at - out);
}

uint64_t task_row_accepted_seq(struct bytes value) {
  const uint8_t *at = value.data + 1 + 1 + 4; /* the first of the longer fields */
  return value.size >= task_row_fixed_bytes ? take_64(&at) : 0;
}

uint64_t task_row_business_hash(struct bytes value) {
  const uint8_t *at = value.data + value.size - 8; /* the last, where there is one */
  return value.size >= task_row_fixed_bytes && (value.data[1] & TASK_HAS_BUSINESS) != 0 ? take_64(&at) : 0;
}

/* False: nothing that was ever written. */
static bool take_outcome(const uint8_t **in, struct task *task) {
  uint64_t error_seq = take_64(in), result_seq = take_64(in), epoch = take_64(in);
  task->is_error = error_seq != 0;
  task->outcome_seq = task->is_error ? error_seq : result_seq;
  task->epoch = (uint16_t)epoch;
  return (error_seq == 0 || result_seq == 0) && epoch <= UINT16_MAX;
}

static void take_attempt(const uint8_t **in, struct attempt *attempt) {
  attempt->id = take_id(in);
  attempt->instance_id = take_id(in);
  attempt->application_id = take_id(in);
  const uint8_t *at = *in;
  ATTEMPT_FIELDS(FIELD_TAKE, attempt)
  *in = at;
  attempt->live_until = attempt->lease_until;
}

enum status task_row_decode(struct bytes key, struct bytes value, struct task_row *ret_row) {
  struct task_row row = {.business_hash = 0};
  struct task *task = &row.task;
  const uint8_t *at = value.data;
  if (key.size != id_bytes || value.size < task_row_fixed_bytes || take_8(&at) != task_row_version) return STATUS_CORRUPT;
  unsigned flags = take_8(&at);
  size_t size = task_row_fixed_bytes + ((flags & TASK_HAS_ATTEMPT) != 0 ? task_row_attempt_bytes : 0U) +
                ((flags & TASK_HAS_KEY) != 0 ? id_bytes : 0U) + ((flags & TASK_HAS_SCHEDULE) != 0 ? 4U : 0U) +
                ((flags & TASK_HAS_BUSINESS) != 0 ? 8U : 0U);
  if (value.size != size) return STATUS_CORRUPT;
  memcpy(task->id.bytes, key.data, id_bytes);
  TASK_FIELDS(FIELD_TAKE, task)
  bool sound = take_outcome(&at, task);
  TASK_TIMES(FIELD_TAKE, task)
  sound = (int64_t)take_64(&at) == task_completed_at(task) && sound;
  TASK_TERMS(FIELD_TAKE, task)
  row.handler_hash = take_32(&at);
  task->effect_uncertain = (flags & TASK_UNCERTAIN) != 0;
  task->retried = (flags & TASK_RETRIED) != 0;
  task->scheduled = (flags & TASK_SCHEDULED) != 0;
  task->is_retry = (flags & TASK_IS_RETRY) != 0;
  if ((flags & TASK_HAS_ATTEMPT) != 0) take_attempt(&at, &row.attempt);
  if ((flags & TASK_HAS_KEY) != 0) row.key_id = take_id(&at);
  if ((flags & TASK_HAS_SCHEDULE) != 0) row.schedule = take_32(&at);
  if ((flags & TASK_HAS_BUSINESS) != 0) row.business_hash = take_64(&at);
  if (task->state == TASK_NONE || task->state >= TASK_ENUM_END || task_flags(&row) != flags || !sound) return STATUS_CORRUPT;
  *ret_row = row;
  return STATUS_OK;
}

size_t ended_row_encode(const struct task_row *row, uint8_t out[ended_row_bytes_max]) {
  return id_bytes + task_row_encode(row, put_id(out, &row->task.id));
}

enum status ended_row_decode(struct bytes key, struct bytes value, struct task_row *ret_row) {
  struct task_row row;
  if (key.size != 8 || value.size < id_bytes) return STATUS_CORRUPT;
  enum status status =
      task_row_decode(bytes_of(value.data, id_bytes), bytes_of(value.data + id_bytes, value.size - id_bytes), &row);
  if (status != STATUS_OK) return status;
  if (row.task.accepted_seq != seq_key_at(key.data) || !task_state_is_terminal((enum task_state)row.task.state) ||
      row.schedule != 0)
    return STATUS_CORRUPT;
  *ret_row = row;
  return STATUS_OK;
}

/* ---- objects ---- */

enum { object_row_version = 1, states_kept = TASK_ENUM_END - 1 };
static_assert(states_kept == 7, "another state, another version of the rows of queues");

#define OBJECT_FIELDS(F, o) F(8, o, kind) F(64, o, last_seq)
#define APPLICATION_FIELDS(F, o) \
  F(64, o, revision) F(64, o, max_unfinished) F(64, o, unfinished) F(64, o, config_seq) F(8, o, disabled)
#define CREDENTIAL_FIELDS(F, o) \
  F(64, o, permissions) F(64, o, expires_at) F(64, o, revision) F(64, o, config_seq) F(8, o, revoked) F(32, o, queue_count)
#define QUEUE_FIELDS(F, o)  \
  F(64, o, revision)        \
  F(64, o, max_unfinished)  \
  F(64, o, max_running)     \
  F(64, o, key_concurrency) \
  F(64, o, rate.tasks)      \
  F(64, o, rate.per_ms) F(64, o, rate.burst) F(64, o, lease_ms) F(64, o, config_seq) F(8, o, paused) F(64, o, rate_at)

/* A field a line. */
/* clang-format off */
#define SUBSCRIPTION_FIELDS(F, o) \
  F(64, o, types.bits[0])         \
  F(64, o, types.bits[1])         \
  F(64, o, position)              \
  F(64, o, revision)              \
  F(64, o, config_seq)            \
  F(64, o, name_hash)             \
  F(8, o, deleted)

#define SCHEDULE_FIELDS(F, o)   \
  F(64, o, revision)            \
  F(64, o, config_seq)          \
  F(64, o, trigger_seq)         \
  F(64, o, interval_ms)         \
  F(64, o, start_at)            \
  F(64, o, end_at)              \
  F(64, o, anchor_at)           \
  F(64, o, next_at)             \
  F(64, o, created_at)          \
  F(64, o, updated_at)          \
  F(64, o, free_at)             \
  F(32, o, unfinished)          \
  F(32, o, catch_up_limit)      \
  F(8, o, kind)                 \
  F(8, o, overlap)              \
  F(8, o, missed)               \
  F(8, o, paused)               \
  F(8, o, deleted)
/* clang-format on */

enum {
  object_head_bytes = 1 + id_bytes OBJECT_FIELDS(FIELD_SIZE, ),
  application_bytes = id_bytes APPLICATION_FIELDS(FIELD_SIZE, ),
  credential_bytes = 2 * id_bytes + token_hash_bytes CREDENTIAL_FIELDS(FIELD_SIZE, ),
  queue_bytes = id_bytes + 8 * states_kept QUEUE_FIELDS(FIELD_SIZE, ),
  subscription_bytes = 3 * id_bytes SUBSCRIPTION_FIELDS(FIELD_SIZE, ),
  schedule_bytes = 3 * id_bytes SCHEDULE_FIELDS(FIELD_SIZE, ),
};
static_assert(object_head_bytes == 26 && application_bytes == 49 && credential_bytes == 101 && queue_bytes == 153 &&
                  subscription_bytes == 97 && schedule_bytes == 149,
              "another size, another version of the rows of objects");

static uint8_t *put_application(uint8_t *at, const struct application *application) {
  at = put_id(at, &application->namespace_id);
  APPLICATION_FIELDS(FIELD_PUT, application)
  return at;
}

static uint8_t *put_credential(uint8_t *at, const struct credential *credential) {
  at = put_id(put_id(at, &credential->namespace_id), &credential->application_id);
  CREDENTIAL_FIELDS(FIELD_PUT, credential)
  memcpy(at, credential->token_hash, token_hash_bytes);
  at += token_hash_bytes;
  for (uint32_t i = 0; i < credential->queue_count; i++) at = put_id(at, &credential->queue_ids[i]);
  return at;
}

static uint8_t *put_queue(uint8_t *at, const struct queue *queue) {
  at = put_id(at, &queue->namespace_id);
  QUEUE_FIELDS(FIELD_PUT, queue)
  for (unsigned state = 1; state < TASK_ENUM_END; state++) at = put_64(at, queue->counts[state]);
  return at;
}

static uint8_t *put_subscription(uint8_t *at, const struct subscription *subscription) {
  at = put_id(put_id(put_id(at, &subscription->namespace_id), &subscription->queue_id), &subscription->task_id);
  SUBSCRIPTION_FIELDS(FIELD_PUT, subscription)
  return at;
}

static uint8_t *put_schedule(uint8_t *at, const struct schedule *schedule) {
  at = put_id(put_id(put_id(at, &schedule->namespace_id), &schedule->application_id), &schedule->queue_id);
  SCHEDULE_FIELDS(FIELD_PUT, schedule)
  return at;
}

static size_t object_size(const struct object *object) {
  switch (object->kind) {
    case OBJECT_APPLICATION:
      return object_head_bytes + application_bytes;
    case OBJECT_CREDENTIAL:
      return object_head_bytes + credential_bytes + (size_t)id_bytes * object->as.credential.queue_count;
    case OBJECT_QUEUE:
      return object_head_bytes + queue_bytes;
    case OBJECT_SUBSCRIPTION:
      return object_head_bytes + subscription_bytes;
    case OBJECT_SCHEDULE:
      return object_head_bytes + schedule_bytes;
    default:
      return object_head_bytes;
  }
}

void object_row_encode(const struct object *object, struct buffer *out) {
  size_t size = object_size(object);
  uint8_t *start = buffer_reserve(out, size);
  if (start == NULL) return;
  uint8_t *at = put_id(put_8(start, object_row_version), &object->id);
  OBJECT_FIELDS(FIELD_PUT, object)
  if (object->kind == OBJECT_APPLICATION) at = put_application(at, &object->as.application);
  if (object->kind == OBJECT_CREDENTIAL) at = put_credential(at, &object->as.credential);
  if (object->kind == OBJECT_QUEUE) at = put_queue(at, &object->as.queue);
  if (object->kind == OBJECT_SUBSCRIPTION) at = put_subscription(at, &object->as.subscription);
  if (object->kind == OBJECT_SCHEDULE) at = put_schedule(at, &object->as.schedule);
  must((size_t)(at - start) == size);
  buffer_commit(out, size);
}

static void take_application(const uint8_t *at, struct object *object) {
  struct application *application = &object->as.application;
  application->id = object->id;
  application->namespace_id = take_id(&at);
  APPLICATION_FIELDS(FIELD_TAKE, application)
}

static enum status take_credential(const uint8_t *at, size_t size, struct object *object) {
  struct credential *credential = &object->as.credential;
  credential->id = object->id;
  credential->namespace_id = take_id(&at);
  credential->application_id = take_id(&at);
  CREDENTIAL_FIELDS(FIELD_TAKE, credential)
  memcpy(credential->token_hash, at, token_hash_bytes);
  at += token_hash_bytes;
  if (size != credential_bytes + (uint64_t)credential->queue_count * id_bytes) return STATUS_CORRUPT;
  if (credential->queue_count == 0) return STATUS_OK;
  credential->queue_ids = guard_malloc(sizeof *credential->queue_ids * credential->queue_count);
  memcpy(credential->queue_ids, at, sizeof *credential->queue_ids * credential->queue_count);
  return STATUS_OK;
}

static void take_queue(const uint8_t *at, struct object *object) {
  struct queue *queue = &object->as.queue;
  queue->id = object->id;
  queue->namespace_id = take_id(&at);
  QUEUE_FIELDS(FIELD_TAKE, queue)
  for (unsigned state = 1; state < TASK_ENUM_END; state++) queue->counts[state] = take_64(&at);
}

static void take_subscription(const uint8_t *at, struct object *object) {
  struct subscription *subscription = &object->as.subscription;
  subscription->id = object->id;
  subscription->namespace_id = take_id(&at);
  subscription->queue_id = take_id(&at);
  subscription->task_id = take_id(&at);
  SUBSCRIPTION_FIELDS(FIELD_TAKE, subscription)
}

static void take_schedule(const uint8_t *at, struct object *object) {
  struct schedule *schedule = &object->as.schedule;
  schedule->id = object->id;
  schedule->namespace_id = take_id(&at);
  schedule->application_id = take_id(&at);
  schedule->queue_id = take_id(&at);
  SCHEDULE_FIELDS(FIELD_TAKE, schedule)
}

enum status object_row_decode(struct bytes value, struct object *ret_object) {
  struct object object = {.kind = (enum object_kind)0};
  const uint8_t *at = value.data;
  if (value.size < object_head_bytes || take_8(&at) != object_row_version) return STATUS_CORRUPT;
  object.id = take_id(&at);
  OBJECT_FIELDS(FIELD_TAKE, &object)
  size_t size = value.size - object_head_bytes;
  enum status status = STATUS_CORRUPT;
  switch (object.kind) {
    case OBJECT_NAMESPACE:
    case OBJECT_NODE:
      status = size == 0 ? STATUS_OK : STATUS_CORRUPT;
      break;
    case OBJECT_APPLICATION:
      if (size != application_bytes) break;
      take_application(at, &object);
      status = STATUS_OK;
      break;
    case OBJECT_CREDENTIAL:
      if (size >= credential_bytes) status = take_credential(at, size, &object);
      break;
    case OBJECT_QUEUE:
      if (size != queue_bytes) break;
      take_queue(at, &object);
      status = STATUS_OK;
      break;
    case OBJECT_SUBSCRIPTION:
      if (size != subscription_bytes) break;
      take_subscription(at, &object);
      status = STATUS_OK;
      break;
    case OBJECT_SCHEDULE:
      if (size != schedule_bytes) break;
      take_schedule(at, &object);
      status = STATUS_OK;
      break;
    default:
      break;
  }
  if (status == STATUS_OK) *ret_object = object;
  return status;
}

/* ---- buckets ---- */

enum { bucket_row_version = 1, bucket_fixed_bytes = 1 + 4 + 4 + 2 };
static_assert(word_chars_max <= UINT16_MAX, "the length of a handler fits");

void bucket_row_encode(const struct bucket_row *row, struct buffer *out) {
  uint8_t *start = buffer_reserve(out, bucket_fixed_bytes);
  if (start == NULL) return;
  must(row->handler.size <= UINT16_MAX);
  uint8_t *at = put_32(put_32(put_8(start, bucket_row_version), row->queue), row->unfinished);
  at = put_16(at, (uint16_t)row->handler.size);
  must(at == start + bucket_fixed_bytes);
  buffer_commit(out, bucket_fixed_bytes);
  buffer_append_bytes(out, row->handler);
  buffer_append_bytes(out, row->handler_version);
}

enum status bucket_row_decode(struct bytes key, struct bytes value, struct bucket_row *ret_row) {
  struct bucket_row row;
  const uint8_t *at = value.data;
  if (!number_key_parse(key, &row.number) || value.size < bucket_fixed_bytes || take_8(&at) != bucket_row_version)
    return STATUS_CORRUPT;
  row.queue = take_32(&at);
  row.unfinished = take_32(&at);
  size_t handler = take_16(&at), left = value.size - bucket_fixed_bytes;
  if (handler > left) return STATUS_CORRUPT;
  row.handler = bytes_of(at, handler);
  row.handler_version = bytes_of(at + handler, left - handler);
  *ret_row = row;
  return STATUS_OK;
}

uint64_t rows_hash(enum rows_table table, struct bytes key, struct bytes value) {
  return XXH3_64bits_withSeed(value.data, value.size, XXH3_64bits_withSeed(key.data, key.size, table));
}
