/* Owns the fold of events into rows: the same apply as in memory, on the row that the event belongs to. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "core/apply.h"
#include "core/decide.h"
#include "core/feed.h"
#include "state/checkpoint_internal.h"

static enum status misfit(const struct event *event, const char *why, struct fault *fault) {
  return fault_set(fault, STATUS_CORRUPT, NULL, "event %llu (%s) does not fit the checkpoint: %s",
                   (unsigned long long)event->seq, event_type_text(event->type), why);
}

static struct kept_object *kept_object_at(const struct checkpoint *checkpoint, uint32_t number) {
  return pool_at(&checkpoint->objects, number);
}

static uint32_t kept_object_find(const struct checkpoint *checkpoint, const struct id *id) {
  struct index_cursor cursor;
  for (uint64_t value = index_find(&checkpoint->object_ids, id_hash(id), &cursor); value != 0;
       value = index_next(&checkpoint->object_ids, &cursor))
    if (id_equal(&kept_object_at(checkpoint, (uint32_t)value)->object.id, id)) return (uint32_t)value;
  return 0;
}

static void receipt(struct checkpoint *checkpoint, const struct id *identity, uint64_t seq, bool by_task) {
  if (id_is_zero(identity)) return;
  receipt_entry_encode(&(struct receipt_entry){identity_key(identity), seq, by_task}, &checkpoint->receipts);
  checkpoint->meta.receipts++;
}

/* ---- objects that are no tasks ---- */

static bool token_is_whole(const struct event *event) {
  if (event->type == EVENT_credential_created) return event->body.credential_created.token_hash.size == token_hash_bytes;
  return event->type != EVENT_credential_rotated || event->body.credential_rotated.token_hash.size == token_hash_bytes;
}

static enum status fold_credential(struct object *object, const struct event *event, struct fault *fault) {
  if (!token_is_whole(event)) return misfit(event, "the token hash has not 32 bytes", fault);
  apply_credential(&object->as.credential, event);
  if (event->type != EVENT_credential_created || event->body.credential_created.queue_ids.size == 0) return STATUS_OK;
  struct bytes ids = event->body.credential_created.queue_ids;
  object->as.credential.queue_ids = guard_malloc(ids.size);
  memcpy(object->as.credential.queue_ids, ids.data, ids.size);
  object->as.credential.queue_count = (uint32_t)(ids.size / id_bytes);
  return STATUS_OK;
}

static void fold_queue(struct queue *queue, const struct event *event) {
  apply_queue(queue, event);
  if (event->type == EVENT_queue_changed) queue->rate_at = rate_changed_us(queue, event->time_us);
}

static enum status fold_subscription(struct subscription *subscription, const struct event *event, struct fault *fault) {
  const struct event_subscription_created *body = &event->body.subscription_created;
  bool creates = event->type == EVENT_subscription_created;
  struct feed_types types;
  if (creates && body->types.size != 0 && !feed_types_parse(body->types, &types))
    return misfit(event, "a type is none that the feed shows", fault);
  apply_subscription(subscription, event);
  if (creates) subscription->name_hash = subscription_name_hash(&body->namespace_id, body->name);
  return STATUS_OK;
}

static struct kept_task *kept_task_find(struct checkpoint *checkpoint, const struct id *id);

static enum status fold_schedule(struct checkpoint *checkpoint, const struct event *event, uint32_t number,
                                 struct fault *fault) {
  struct schedule *schedule = &kept_object_at(checkpoint, number)->object.as.schedule;
  const char *reason = "";
  if (!can_apply_schedule(schedule, event, &reason)) return misfit(event, reason, fault);
  apply_schedule(schedule, event);
  if (event->type != EVENT_schedule_triggered) return STATUS_OK;
  struct kept_task *kept = kept_task_find(checkpoint, &event->body.schedule_triggered.task_id);
  if (kept == NULL || kept->row.task.accepted_seq + 1 != event->seq) return misfit(event, "its task has no row", fault);
  kept->row.schedule = number;
  schedule->unfinished++;
  return STATUS_OK;
}

static enum status fold_object(struct checkpoint *checkpoint, const struct event *event, uint32_t number, struct fault *fault) {
  enum object_kind kind = event_object_kind(event->type);
  bool creates = event->type == EVENT_namespace_created || event->type == EVENT_application_created ||
                 event->type == EVENT_credential_created || event->type == EVENT_queue_created ||
                 event->type == EVENT_subscription_created || event->type == EVENT_schedule_created;
  if (creates && number != 0) return misfit(event, "an object with this id exists already", fault);
  if (!creates && kind != OBJECT_NODE && number == 0) return misfit(event, "its object has no row", fault);
  if (number == 0) {
    number = pool_add(&checkpoint->objects);
    kept_object_at(checkpoint, number)->object = (struct object){.id = event->stream, .kind = kind};
    index_add(&checkpoint->object_ids, id_hash(&event->stream), number);
  }
  struct kept_object *kept = kept_object_at(checkpoint, number);
  if (kept->object.kind != kind) return misfit(event, "its object is of another kind", fault);
  kept->object.last_seq = event->seq;
  kept->dirty = true;
  switch (kind) {
    case OBJECT_APPLICATION:
      apply_application(&kept->object.as.application, event);
      break;
    case OBJECT_CREDENTIAL:
      return fold_credential(&kept->object, event, fault);
    case OBJECT_QUEUE:
      fold_queue(&kept->object.as.queue, event);
      break;
    case OBJECT_SUBSCRIPTION:
      return fold_subscription(&kept->object.as.subscription, event, fault);
    case OBJECT_SCHEDULE:
      return fold_schedule(checkpoint, event, number, fault);
    case OBJECT_NODE:
      if (event->type == EVENT_retention_advanced) {
        if (event->body.retention_advanced.through_seq <= checkpoint->meta.retained_seq)
          return misfit(event, "retention does not move on", fault);
        checkpoint->meta.retained_seq = event->body.retention_advanced.through_seq;
      }
      if (event->type != EVENT_node_started) break;
      checkpoint->meta.node_started_seq = event->seq;
      checkpoint->meta.node_started_us = checkpoint->node_started.time_us = event->time_us;
      checkpoint->node_started.seq = event->seq;
      break;
    default:
      break;
  }
  return STATUS_OK;
}

static void fold_audit(struct checkpoint *checkpoint, const struct event *event, uint32_t number) {
  struct kept_object *kept = kept_object_at(checkpoint, number);
  kept->object.last_seq = event->seq;
  kept->dirty = true;
  audit_entry_encode(event->seq, &checkpoint->audits);
  checkpoint->meta.audits++;
}

/* ---- buckets ---- */

struct kept_bucket *checkpoint_bucket_add(struct checkpoint *checkpoint, const struct bucket_row *row) {
  uint32_t at = pool_add(&checkpoint->buckets);
  struct kept_bucket *kept = pool_at(&checkpoint->buckets, at);
  uint8_t *texts = guard_malloc(row->handler.size + row->handler_version.size);
  if (row->handler.size != 0) memcpy(texts, row->handler.data, row->handler.size);
  if (row->handler_version.size != 0) memcpy(texts + row->handler.size, row->handler_version.data, row->handler_version.size);
  kept->row = *row;
  kept->row.handler = bytes_of(texts, row->handler.size);
  kept->row.handler_version = bytes_of(texts + row->handler.size, row->handler_version.size);
  index_add(&checkpoint->bucket_numbers, row->number, at);
  index_add(&checkpoint->bucket_keys, bucket_hash(row->queue, kept->row.handler, kept->row.handler_version), at);
  if (row->number > checkpoint->bucket_last) checkpoint->bucket_last = row->number;
  return kept;
}

void checkpoint_bucket_remove(struct checkpoint *checkpoint, uint32_t at) {
  struct kept_bucket *kept = pool_at(&checkpoint->buckets, at);
  index_remove(&checkpoint->bucket_numbers, kept->row.number, at);
  index_remove(&checkpoint->bucket_keys, bucket_hash(kept->row.queue, kept->row.handler, kept->row.handler_version), at);
  free((void *)(uintptr_t)kept->row.handler.data);
  *kept = (struct kept_bucket){.hash = 0};
  pool_remove(&checkpoint->buckets, at);
}

static struct kept_bucket *bucket_of(struct checkpoint *checkpoint, uint32_t queue,
                                     const struct event_task_accepted *accepted) {
  struct index_cursor cursor;
  uint64_t hash = bucket_hash(queue, accepted->handler, accepted->handler_version);
  for (uint64_t at = index_find(&checkpoint->bucket_keys, hash, &cursor); at != 0;
       at = index_next(&checkpoint->bucket_keys, &cursor)) {
    struct kept_bucket *kept = pool_at(&checkpoint->buckets, (uint32_t)at);
    if (kept->row.queue == queue && bytes_equal(kept->row.handler, accepted->handler) &&
        bytes_equal(kept->row.handler_version, accepted->handler_version))
      return kept;
  }
  must(checkpoint->bucket_last != UINT32_MAX);
  return checkpoint_bucket_add(checkpoint, &(struct bucket_row){.number = checkpoint->bucket_last + 1,
                                                                .queue = queue,
                                                                .handler = accepted->handler,
                                                                .handler_version = accepted->handler_version});
}

static bool bucket_leave(struct checkpoint *checkpoint, uint32_t number) {
  struct index_cursor cursor;
  uint64_t at = index_find(&checkpoint->bucket_numbers, number, &cursor);
  struct kept_bucket *kept = at != 0 ? pool_at(&checkpoint->buckets, (uint32_t)at) : NULL;
  if (kept == NULL || kept->row.unfinished == 0) return false;
  kept->row.unfinished--;
  kept->dirty = true;
  return true;
}

/* ---- tasks ---- */

void checkpoint_settle(struct task_row *row, const struct event *node_started) {
  if (row->task.last_seq < node_started->seq) apply_node_started(&row->task, &row->attempt, node_started);
}

static struct kept_task *kept_task_add(struct checkpoint *checkpoint, const struct id *id) {
  uint32_t number = pool_add(&checkpoint->tasks);
  index_add(&checkpoint->task_ids, id_hash(id), number);
  return pool_at(&checkpoint->tasks, number);
}

/* From the batch, else from the store. NULL: there is no sound row. */
static struct kept_task *kept_task_find(struct checkpoint *checkpoint, const struct id *id) {
  struct index_cursor cursor;
  for (uint64_t value = index_find(&checkpoint->task_ids, id_hash(id), &cursor); value != 0;
       value = index_next(&checkpoint->task_ids, &cursor)) {
    struct kept_task *kept = pool_at(&checkpoint->tasks, (uint32_t)value);
    if (id_equal(&kept->row.task.id, id)) return kept;
  }
  struct bytes key = bytes_of(id->bytes, id_bytes), value;
  struct kept_task found = {.hash = 0};
  enum status status = views_get(checkpoint->views, ROWS_TASKS, key, &value);
  if (status == STATUS_OK) {
    status = task_row_decode(key, value, &found.row);
    found.hash = rows_hash(ROWS_TASKS, key, value);
  } else if (status == STATUS_END) {
    status = checkpoint_get_ended(checkpoint, id, &found);
  }
  if (status != STATUS_OK) return NULL;
  struct kept_task *kept = kept_task_add(checkpoint, id);
  *kept = found;
  return kept;
}

static enum status accept_task(struct checkpoint *checkpoint, const struct event *event, struct kept_task **ret_task,
                               struct fault *fault) {
  static const struct task nothing;
  static const struct attempt no_attempt;
  const struct event_task_accepted *accepted = &event->body.task_accepted;
  const char *reason = "";
  uint32_t queue = kept_object_find(checkpoint, &accepted->queue_id);
  uint32_t application = kept_object_find(checkpoint, &accepted->application_id);
  if (queue == 0 || kept_object_at(checkpoint, queue)->object.kind != OBJECT_QUEUE)
    return misfit(event, "its queue has no row", fault);
  if (application == 0 || kept_object_at(checkpoint, application)->object.kind != OBJECT_APPLICATION)
    return misfit(event, "its application has no row", fault);
  if (!can_apply_task(&nothing, &no_attempt, event, &reason)) return misfit(event, reason, fault);
  struct kept_task *kept = kept_task_add(checkpoint, &event->stream);
  struct kept_bucket *bucket = bucket_of(checkpoint, queue, accepted);
  bucket->row.unfinished++;
  bucket->dirty = true;
  kept->row.task.queue = queue;
  kept->row.task.application = application;
  kept->row.task.handler = bucket->row.number;
  kept->row.handler_hash = handler_name_hash(accepted->handler);
  if (accepted->concurrency_key.size != 0) kept->row.key_id = key_id_make(&accepted->queue_id, accepted->concurrency_key);
  if (accepted->business_key.size != 0) {
    kept->row.business_hash = business_key_hash(&accepted->namespace_id, accepted->business_key);
    checkpoint->meta.named++;
  }
  *ret_task = kept;
  return STATUS_OK;
}

/* The counts of its queue and application, and its bucket's, follow its state. False: they were wrong before. */
static bool count_task(struct checkpoint *checkpoint, struct task *task, enum task_state before) {
  enum task_state after = (enum task_state)task->state;
  if (before == after) return true;
  struct kept_object *queue = kept_object_at(checkpoint, task->queue),
                     *application = kept_object_at(checkpoint, task->application);
  uint64_t *counts = queue->object.as.queue.counts, *unfinished = &application->object.as.application.unfinished;
  queue->dirty = true;
  if (before != TASK_NONE && counts[before] == 0) return false;
  if (before != TASK_NONE) counts[before]--;
  counts[after]++;
  bool ends = task_state_is_terminal(after);
  if (before == TASK_NONE) ++*unfinished;
  if (ends && *unfinished == 0) return false;
  if (ends) --*unfinished;
  application->dirty = application->dirty || ends || before == TASK_NONE;
  if (!ends) return true;
  uint32_t bucket = task->handler;
  task->handler = 0;
  return bucket_leave(checkpoint, bucket);
}

/* A task that a schedule made counts for that no more once it is over. */
static bool leave_schedule(struct checkpoint *checkpoint, struct task_row *row, int64_t time_us) {
  if (row->schedule == 0 || !task_state_is_terminal((enum task_state)row->task.state)) return true;
  struct kept_object *kept = kept_object_at(checkpoint, row->schedule);
  if (kept->object.kind != OBJECT_SCHEDULE || kept->object.as.schedule.unfinished == 0) return false;
  if (--kept->object.as.schedule.unfinished == 0) kept->object.as.schedule.free_at = time_us;
  kept->dirty = true;
  row->schedule = 0;
  return true;
}

static enum status fold_task(struct checkpoint *checkpoint, const struct event *event, struct fault *fault) {
  const char *reason = "";
  struct kept_task *kept = NULL;
  if (event->type == EVENT_task_accepted) {
    enum status status = accept_task(checkpoint, event, &kept, fault);
    if (status != STATUS_OK) return status;
  } else {
    kept = kept_task_find(checkpoint, &event->stream);
    if (kept == NULL) return misfit(event, "its task has no sound row", fault);
    checkpoint_settle(&kept->row, &checkpoint->node_started);
    if (kept->row.task.last_seq != event->prev) return misfit(event, "prev is not the newest event of its task", fault);
    if (!can_apply_task(&kept->row.task, &kept->row.attempt, event, &reason)) return misfit(event, reason, fault);
  }
  struct task *task = &kept->row.task;
  enum task_state before = (enum task_state)task->state;
  apply_task_judged(task, &kept->row.attempt, event);
  if (event->type == EVENT_attempt_result) receipt(checkpoint, &event->body.attempt_result.report_identity, event->seq, true);
  if (event->type == EVENT_task_leased) {
    struct kept_object *queue = kept_object_at(checkpoint, task->queue);
    if (queue->object.as.queue.rate.tasks != 0)
      queue->object.as.queue.rate_at = rate_after_us(&queue->object.as.queue, event->time_us);
  }
  if (!leave_schedule(checkpoint, &kept->row, event->time_us))
    return misfit(event, "the count of its schedule is not that of its tasks", fault);
  return count_task(checkpoint, task, before) ? STATUS_OK
                                              : misfit(event, "the counts of its queue are not those of its tasks", fault);
}

enum status checkpoint_fold(struct checkpoint *checkpoint, const struct event *event, struct fault *fault) {
  uint32_t number = 0;
  bool is_task = event_object_kind(event->type) == OBJECT_TASK;
  if (event->seq != checkpoint->meta.seq + 1) return misfit(event, "it does not follow the watermark", fault);
  if (!is_task) number = kept_object_find(checkpoint, &event->stream);
  enum status status = STATUS_OK;
  is_task = is_task || (event->type == EVENT_audit_recorded && number == 0);
  if (is_task) status = fold_task(checkpoint, event, fault);
  else if (number != 0 && kept_object_at(checkpoint, number)->object.last_seq != event->prev)
    status = misfit(event, "prev is not the newest event of its object", fault);
  else if (event->type == EVENT_audit_recorded) fold_audit(checkpoint, event, number);
  else status = fold_object(checkpoint, event, number, fault);
  if (status != STATUS_OK) return status;
  receipt(checkpoint, &event->common.identity, event->seq, is_task && event->type != EVENT_task_accepted);
  checkpoint->meta.seq = event->seq;
  checkpoint->meta.chain = event->chain;
  checkpoint->meta.time_us = event->time_us;
  return STATUS_OK;
}
