/* Owns the digest of all views. Each object is written out field by field and hashed by itself; the sum does not depend on the
 * order in which objects stand in memory. */
#include <endian.h>
#include <string.h>
#include <xxhash.h>

#include "state/internal.h"

/* A fixed-size writer: the largest object takes a few hundred bytes. */
struct writer {
  uint8_t bytes[1024];
  size_t size;
};

static void put(struct writer *writer, uint64_t value) {
  for (unsigned i = 0; i < 8; i++) writer->bytes[writer->size++] = (uint8_t)(value >> (8 * i));
}
static void put_time(struct writer *writer, int64_t value) { put(writer, (uint64_t)value); }
static void put_id(struct writer *writer, const struct id *id) {
  memcpy(writer->bytes + writer->size, id->bytes, id_bytes);
  writer->size += id_bytes;
}

void digest_sum_add(struct digest_sum *sum, struct digest_sum part) {
  sum->low += part.low;
  sum->high += part.high + (sum->low < part.low);
}

void digest_sum_subtract(struct digest_sum *sum, struct digest_sum part) {
  sum->high -= part.high + (sum->low < part.low);
  sum->low -= part.low;
}

static struct digest_sum hash_of(const struct writer *writer) {
  XXH128_hash_t hash = XXH3_128bits(writer->bytes, writer->size);
  return (struct digest_sum){hash.low64, hash.high64};
}

static void write_task(struct writer *writer, const struct task *task, const struct attempt *attempt) {
  put_id(writer, &task->id);
  put(writer, task->accepted_seq), put(writer, task->last_seq), put(writer, task_error_seq(task)),
      put(writer, task_result_seq(task));
  put(writer, task->epoch), put(writer, task->revision), put(writer, task->state), put(writer, task->recovery_safety);
  put_time(writer, task->created_at), put_time(writer, task->updated_at), put_time(writer, task->available_at);
  put_time(writer, task->start_deadline_at), put_time(writer, task->deadline_at), put_time(writer, task_completed_at(task));
  put_time(writer, task->cancel_requested_at);
  put(writer, task->initial_delay_ms), put(writer, task->max_delay_ms), put(writer, task->attempt_timeout_ms);
  put(writer, task->payload_bytes), put(writer, task->attempt_count), put(writer, task->max_attempts);
  put(writer, task->priority), put(writer, task->effect_uncertain), put(writer, task->retried);
  put(writer, task->scheduled), put(writer, task->is_retry);
  put_id(writer, &attempt->id), put_id(writer, &attempt->instance_id), put_id(writer, &attempt->application_id);
  put_time(writer, attempt->leased_at), put_time(writer, attempt->lease_until);
  put_time(writer, attempt->started_at), put_time(writer, attempt->attempt_deadline_at);
  put(writer, attempt->lease_ms);
}

static void write_queue(struct writer *writer, const struct queue *queue) {
  put_id(writer, &queue->namespace_id);
  put(writer, queue->revision), put(writer, queue->max_unfinished), put(writer, queue->max_running);
  put(writer, queue->key_concurrency), put(writer, queue->rate.tasks), put(writer, queue->rate.per_ms);
  put(writer, queue->rate.burst), put(writer, queue->lease_ms), put(writer, queue->config_seq), put(writer, queue->paused);
  for (unsigned i = 0; i < TASK_ENUM_END; i++) put(writer, queue->counts[i]);
  put_time(writer, queue->rate_at);
}

static void write_credential(struct writer *writer, const struct credential *credential) {
  put_id(writer, &credential->namespace_id), put_id(writer, &credential->application_id);
  put(writer, credential->permissions), put_time(writer, credential->expires_at), put(writer, credential->revision);
  put(writer, credential->config_seq), put(writer, credential->revoked), put(writer, credential->queue_count);
  put(writer, XXH3_64bits(credential->queue_ids, sizeof *credential->queue_ids * credential->queue_count));
  memcpy(writer->bytes + writer->size, credential->token_hash, token_hash_bytes);
  writer->size += token_hash_bytes;
}

static void write_subscription(struct writer *writer, const struct subscription *subscription) {
  put_id(writer, &subscription->namespace_id), put_id(writer, &subscription->queue_id), put_id(writer, &subscription->task_id);
  put(writer, subscription->types.bits[0]), put(writer, subscription->types.bits[1]), put(writer, subscription->position);
  put(writer, subscription->revision), put(writer, subscription->config_seq), put(writer, subscription->name_hash);
  put(writer, subscription->deleted);
}

static void write_schedule(struct writer *writer, const struct schedule *schedule) {
  put_id(writer, &schedule->namespace_id), put_id(writer, &schedule->application_id), put_id(writer, &schedule->queue_id);
  put(writer, schedule->revision), put(writer, schedule->config_seq), put(writer, schedule->trigger_seq);
  put(writer, schedule->interval_ms), put_time(writer, schedule->start_at), put_time(writer, schedule->end_at);
  put_time(writer, schedule->anchor_at), put_time(writer, schedule->next_at), put_time(writer, schedule->created_at);
  put_time(writer, schedule->updated_at), put_time(writer, schedule->free_at);
  put(writer, schedule->unfinished), put(writer, schedule->catch_up_limit), put(writer, schedule->kind);
  put(writer, schedule->overlap), put(writer, schedule->missed), put(writer, schedule->paused), put(writer, schedule->deleted);
}

static void write_object(struct writer *writer, const struct object *object) {
  put_id(writer, &object->id);
  put(writer, object->kind), put(writer, object->last_seq);
  if (object->kind == OBJECT_QUEUE) write_queue(writer, &object->as.queue);
  if (object->kind == OBJECT_SCHEDULE) write_schedule(writer, &object->as.schedule);
  if (object->kind == OBJECT_CREDENTIAL) write_credential(writer, &object->as.credential);
  if (object->kind == OBJECT_SUBSCRIPTION) write_subscription(writer, &object->as.subscription);
  if (object->kind != OBJECT_APPLICATION) return;
  const struct application *application = &object->as.application;
  put_id(writer, &application->namespace_id);
  put(writer, application->revision), put(writer, application->max_unfinished), put(writer, application->unfinished);
  put(writer, application->config_seq), put(writer, application->disabled);
}

/* The task with what its places in lists and orders follow from; key and bucket are there while it is unfinished. */
static void write_whole(struct writer *writer, const struct task *task, const struct attempt *attempt, const struct id *key_id,
                        const struct id *queue_id, const struct id *application_id, uint32_t handler_hash) {
  write_task(writer, task, attempt);
  put_id(writer, key_id), put_id(writer, queue_id), put_id(writer, application_id);
  put(writer, handler_hash);
}

static void write_node(struct writer *writer, const struct state *state, const struct task_node *node) {
  static const struct id none;
  const struct task *task = &node->task;
  write_whole(writer, task, node_attempt(state, node), node->key != 0 ? &key_at(state, node->key)->id : &none,
              &object_at(state, task->queue)->id, &object_at(state, task->application)->id, node->handler_hash);
  uint32_t schedule = task->scheduled ? schedule_of_task(state, (uint32_t)state_task_number(state, &task->id)) : 0;
  if (schedule != 0) put_id(writer, &object_at(state, schedule)->id);
  if (task->handler == 0) return;
  const struct bucket *bucket = &bucket_at(state, task->handler)->bucket;
  put(writer, bucket_hash(0, bucket->handler, bucket->handler_version));
}

struct digest_sum digest_of_ended(const struct task *task, const struct id *queue_id, const struct id *application_id,
                                  uint32_t handler_hash) {
  static const struct id no_key;
  static const struct attempt no_attempt;
  struct writer writer = {.size = 0};
  write_whole(&writer, task, &no_attempt, &no_key, queue_id, application_id, handler_hash);
  return hash_of(&writer);
}

struct digest_sum digest_of_receipt(uint64_t identity, uint64_t seq) {
  uint64_t words[2] = {htole64(identity), htole64(seq)};
  XXH128_hash_t hash = XXH3_128bits(words, sizeof words);
  return (struct digest_sum){hash.low64, hash.high64};
}

bool state_task_equal(const struct state *state, const struct state *other, const struct id *id) {
  struct writer ours = {.size = 0}, theirs = {.size = 0};
  uint32_t number = state_task_number(state, id), others = state_task_number(other, id);
  if (number == 0 || others == 0) return number == others;
  write_node(&ours, state, node_at(state, number));
  write_node(&theirs, other, node_at(other, others));
  return ours.size == theirs.size && memcmp(ours.bytes, theirs.bytes, ours.size) == 0;
}

bool state_object_equal(const struct state *state, const struct state *other, const struct id *id) {
  struct writer ours = {.size = 0}, theirs = {.size = 0};
  uint32_t number = object_find(state, id), others = object_find(other, id);
  if (number == 0 || others == 0) return number == others;
  write_object(&ours, object_at(state, number));
  write_object(&theirs, object_at(other, others));
  return ours.size == theirs.size && memcmp(ours.bytes, theirs.bytes, ours.size) == 0;
}

struct id state_digest(const struct state *state) {
  struct digest_sum sum = state->away;
  size_t at = 0;
  uint64_t key, value;
  struct writer writer;
  while (index_each(&state->object_ids, &at, &key, &value)) {
    writer.size = 0;
    write_object(&writer, object_at(state, (uint32_t)value));
    digest_sum_add(&sum, hash_of(&writer));
  }
  for (uint32_t number = 1; number <= state->tasks.used; number++) {
    const struct task_node *node = node_at(state, number);
    if (!node_is_there(node)) continue;
    writer.size = 0;
    write_node(&writer, state, node);
    digest_sum_add(&sum, hash_of(&writer));
  }
  for (at = 0; index_each(&state->receipts, &at, &key, &value);) digest_sum_add(&sum, digest_of_receipt(key, value));
  for (uint64_t i = 0; i < state->audit_count; i++) {
    writer.size = 0;
    put(&writer, i), put(&writer, state->audits[i]), put(&writer, UINT64_MAX);
    digest_sum_add(&sum, hash_of(&writer));
  }
  writer.size = 0;
  put(&writer, state->last_seq), put_time(&writer, state->last_time_us), put(&writer, state->retained_seq);
  digest_sum_add(&sum, hash_of(&writer));
  XXH128_hash_t hash = {.low64 = sum.low, .high64 = sum.high};
  struct id digest;
  XXH128_canonicalFromHash((XXH128_canonical_t *)digest.bytes, hash);
  return digest;
}
