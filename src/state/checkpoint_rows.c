/* Owns the judgement of the rows of what has ended, which no start reads as a whole: each row stands where it should, adds up
 * to what the checkpoint says, and is what a fold of the log holds. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "state/checkpoint_internal.h"

struct judging {
  struct views *views;
  const struct meta_row *meta;
  const struct state *fold;
  struct fault *fault;
  uint64_t rows, named, identities;
  struct digest_sum sum;
};

static enum status wrong(struct judging *judging, const char *what) {
  return fault_set(judging->fault, STATUS_CORRUPT, NULL, "the checkpoint is not the fold of the log: %s", what);
}

static bool stands(struct judging *judging, enum rows_table table, const uint8_t *key, size_t size, struct bytes value) {
  struct bytes found;
  return views_get(judging->views, table, bytes_of(key, size), &found) == STATUS_OK && bytes_equal(found, value);
}

static enum status judge_ended(void *context, struct bytes key, struct bytes value) {
  static const struct bytes nothing = {(const uint8_t *)"", 0};
  struct judging *judging = context;
  const struct state *fold = judging->fold;
  struct task_row row;
  uint8_t end[8], queue[queue_key_bytes], name[pair_key_bytes];
  if (ended_row_decode(key, value, &row) != STATUS_OK) return wrong(judging, "a row of an ended task is damaged");
  seq_key_encode(row.task.last_seq, end);
  queue_key_encode(row.task.queue, row.task.accepted_seq, queue);
  pair_key_encode(row.business_hash, row.task.accepted_seq, name);
  bool whole = stands(judging, ROWS_IDS, row.task.id.bytes, id_bytes, key) &&
               stands(judging, ROWS_ENDS, end, sizeof end, key) && stands(judging, ROWS_QUEUES, queue, sizeof queue, nothing) &&
               (row.business_hash == 0 || stands(judging, ROWS_NAMES, name, sizeof name, nothing));
  uint32_t number = state_task_number(fold, &row.task.id);
  if (!whole || number == 0) return wrong(judging, "an ended task does not stand in all its places");
  const struct task_node *node = node_at(fold, number);
  const struct id *queue_id = &object_at(fold, node->task.queue)->id,
                  *application_id = &object_at(fold, node->task.application)->id;
  struct digest_sum part = digest_of_ended(&row.task, queue_id, application_id, row.handler_hash);
  struct digest_sum own = digest_of_ended(&node->task, queue_id, application_id, node->handler_hash);
  if (node->task.last_seq == row.task.last_seq && (own.low != part.low || own.high != part.high))
    return fault_set(judging->fault, STATUS_CORRUPT, NULL, "the checkpoint is not the fold of the log: task %s differs",
                     id_text(&row.task.id).text);
  digest_sum_add(&judging->sum, part);
  judging->rows++;
  judging->named += row.business_hash != 0;
  return STATUS_OK;
}

static enum status judge_identity(void *context, struct bytes key, struct bytes value) {
  struct judging *judging = context;
  struct index_cursor cursor;
  (void)value;
  if (key.size != pair_key_bytes) return wrong(judging, "a row of an identity is damaged");
  uint64_t seq = seq_key_at(key.data + 8);
  if (seq > judging->meta->indexed_seq) return STATUS_OK; /* of an index that was not made whole: it is put again */
  uint64_t found = index_find(&judging->fold->receipts, seq_key_at(key.data), &cursor);
  while (found != 0 && found != seq) found = index_next(&judging->fold->receipts, &cursor);
  judging->identities++;
  return found != 0 ? STATUS_OK : wrong(judging, "an identity that no event carries");
}

enum status checkpoint_judge_rows(struct views *views, const struct meta_row *meta, const struct state *fold,
                                  struct fault *fault) {
  struct judging judging = {.views = views, .meta = meta, .fold = fold, .fault = fault};
  *fault = (struct fault){.message = ""};
  enum status status = views_each(views, ROWS_ENDED, judge_ended, &judging);
  if (status == STATUS_OK) status = views_each(views, ROWS_IDENTITIES, judge_identity, &judging);
  if (status != STATUS_OK)
    return fault->message[0] != 0 ? status : fault_set(fault, status, NULL, "the checkpoint's rows cannot be read");
  struct digest_sum sum = meta->ended_sum;
  digest_sum_subtract(&sum, meta->gone_sum);
  if (judging.rows != meta->ended - meta->gone || sum.low != judging.sum.low || sum.high != judging.sum.high ||
      views_count(views, ROWS_IDS) != judging.rows || views_count(views, ROWS_QUEUES) != judging.rows ||
      views_count(views, ROWS_ENDS) != judging.rows || views_count(views, ROWS_NAMES) != judging.named)
    return wrong(&judging, "the rows of ended tasks are not those that it counts");
  if (judging.identities != meta->identities) return wrong(&judging, "the identities are not those that it counts");
  return STATUS_OK;
}
