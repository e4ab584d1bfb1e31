/* Owns the judgement of a checkpoint against a fold of the log that it had no part in. */
#include <inttypes.h>

#include "base/guard.h"
#include "state/checkpoint_internal.h"

struct forward {
  struct state *state;
  uint64_t until;
};

static enum status fold_until(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct forward *forward = context;
  const char *reason = "";
  (void)record;
  if (event->seq > forward->until) return STATUS_END;
  if (!state_fold(forward->state, event, &reason))
    return fault_set(fault, STATUS_CORRUPT, NULL, "event %" PRIu64 " (%s) does not fit what is before it: %s", event->seq,
                     event_type_text(event->type), reason);
  return STATUS_OK;
}

static enum status chain_at(struct journal *journal, uint64_t seq, uint64_t *ret_chain, struct fault *fault) {
  struct journal_reader *reader;
  struct bytes record;
  struct event event;
  if (journal_reader_new(journal, &reader) != STATUS_OK)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "the log's reader table is full");
  enum status status = journal_reader_get(reader, seq, &record);
  if (status == STATUS_OK) status = record_header_decode(record, &event);
  if (status == STATUS_OK) *ret_chain = event.chain;
  else (void)fault_set(fault, status, NULL, "event %" PRIu64 " cannot be read", seq);
  journal_reader_free(reader);
  return status;
}

static enum status bring_forward(struct journal *journal, struct state *state, uint64_t until, struct fault *fault) {
  struct forward forward = {state, until};
  uint64_t after = state_last_seq(state), chain = 0;
  if (after >= until) return STATUS_OK;
  enum status status = after != 0 ? chain_at(journal, after, &chain, fault) : STATUS_OK;
  if (status == STATUS_OK) status = journal_replay(journal, after, chain, fold_until, &forward, fault);
  return status == STATUS_END ? STATUS_OK : status;
}

static enum status differs(const char *what, const struct id *id, struct fault *fault) {
  return fault_set(fault, STATUS_CORRUPT, NULL, "the checkpoint is not the fold of the log: %s %s differs", what,
                   id_text(id).text);
}

/* Walks the objects of one, so that it is called for both. */
static enum status compare_one_way(const struct state *state, const struct state *other, struct fault *fault) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->object_ids, &at, &key, &value)) {
    const struct id *id = &object_at(state, (uint32_t)value)->id;
    if (!state_object_equal(state, other, id)) return differs("object", id, fault);
  }
  for (at = 0; index_each(&state->task_ids, &at, &key, &value);) {
    const struct id *id = &node_at(state, (uint32_t)value)->task.id;
    if (!state_task_equal(state, other, id)) return differs("task", id, fault);
  }
  return STATUS_OK;
}

static enum status compare_states(const struct state *loaded, const struct state *fold, struct fault *fault) {
  struct id ours = state_digest(loaded), theirs = state_digest(fold);
  if (id_equal(&ours, &theirs)) return STATUS_OK;
  enum status status = compare_one_way(loaded, fold, fault);
  if (status == STATUS_OK) status = compare_one_way(fold, loaded, fault);
  if (status != STATUS_OK) return status;
  return fault_set(fault, STATUS_CORRUPT, NULL,
                   "the checkpoint is not the fold of the log: receipts or administrative audit differ");
}

enum status checkpoint_compare(const char *directory, struct journal *journal, struct state *fold, uint64_t *ret_seq,
                               struct fault *fault) {
  struct state *loaded;
  struct checkpoint_position position;
  enum status status = checkpoint_load(directory, journal, &loaded, &position, fault);
  if (status != STATUS_OK) return status;
  status = bring_forward(journal, fold, position.seq, fault);
  if (status == STATUS_OK) status = bring_forward(journal, loaded, state_last_seq(fold), fault);
  if (status == STATUS_OK) status = state_check(loaded, fault);
  if (status == STATUS_OK) status = compare_states(loaded, fold, fault);
  state_free(loaded);
  if (status == STATUS_OK) *ret_seq = position.seq;
  return status;
}
