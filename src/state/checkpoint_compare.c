/* Owns the judgement of a checkpoint against a fold of the log that it had no part in. */
#include <inttypes.h>

#include "base/guard.h"
#include "base/limits.h"
#include "state/checkpoint_internal.h"
#include "state/evict.h"

struct forward {
  struct state *state;
  uint64_t until;
};

static enum status fold_until(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct forward *forward = context;
  const char *reason = "";
  (void)record;
  if (event->seq > forward->until) return STATUS_END;
  if (state_meet(forward->state, event) != STATUS_OK)
    return fault_set(fault, STATUS_CORRUPT, NULL, "the row of the task of event %" PRIu64 " cannot be read", event->seq);
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

/* A walk of the file sees a commit as soon as it is written, readers of the log only once it is on the disk: the log may end
 * before what was folded. */
static enum status bring_forward(struct journal *journal, struct state *state, uint64_t until, struct fault *fault) {
  struct forward forward = {state, until};
  uint64_t after = state_last_seq(state), chain = 0;
  if (after >= until) return STATUS_OK;
  enum status status = after != 0 ? chain_at(journal, after, &chain, fault) : STATUS_OK;
  if (status == STATUS_OK) status = journal_replay(journal, after, chain, fold_until, &forward, fault);
  if (status != STATUS_OK && status != STATUS_END) return status;
  if (state_last_seq(state) == until) return STATUS_OK;
  return fault_set(fault, STATUS_UNAVAILABLE, NULL,
                   "the log shows its readers nothing behind seq %" PRIu64 " so far, and seq %" PRIu64
                   " is needed: that commit is on its way to the disk",
                   state_last_seq(state), until);
}

static enum status differs(const char *what, const struct id *id, struct fault *fault) {
  return fault_set(fault, STATUS_CORRUPT, NULL, "the checkpoint is not the fold of the log: %s %s differs", what,
                   id_text(id).text);
}

/* Walks the objects of one, so that it is called for both. stored: the other has left ended tasks to the store. */
static enum status compare_one_way(const struct state *state, const struct state *other, bool stored, struct fault *fault) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->object_ids, &at, &key, &value)) {
    const struct id *id = &object_at(state, (uint32_t)value)->id;
    if (!state_object_equal(state, other, id)) return differs("object", id, fault);
  }
  for (at = 0; index_each(&state->task_ids, &at, &key, &value);) {
    const struct id *id = &node_at(state, (uint32_t)value)->task.id;
    if (stored && state_task_number(other, id) == 0) continue; /* it has ended: its row was judged */
    if (!state_task_equal(state, other, id)) return differs("task", id, fault);
  }
  return STATUS_OK;
}

static enum status compare_states(const struct state *loaded, const struct state *fold, struct fault *fault) {
  struct id ours = state_digest(loaded), theirs = state_digest(fold);
  if (id_equal(&ours, &theirs)) return STATUS_OK;
  enum status status = compare_one_way(loaded, fold, false, fault);
  if (status == STATUS_OK) status = compare_one_way(fold, loaded, true, fault);
  if (status != STATUS_OK) return status;
  return fault_set(fault, STATUS_CORRUPT, NULL,
                   "the checkpoint is not the fold of the log: ended tasks, receipts or administrative audit differ");
}

/* The store under two snapshots of one moment: one to load from and to judge, one for what the events behind it touch. */
struct moment {
  struct views *views;
  struct meta_row meta;
  struct cold *cold;
};

static void moment_end(struct moment *moment) {
  cold_close(moment->cold);
  cold_withdraw(moment->cold);
  views_close(moment->views);
  moment->views = NULL;
}

/* A server beside us may write between the two snapshots: then again. */
static enum status moment_begin(const char *directory, struct journal *journal, struct moment *moment, struct fault *fault) {
  for (unsigned tries = 0; tries < compare_tries_max; tries++) {
    enum status status = checkpoint_attach(directory, 0, true, journal, &moment->views, &moment->meta, fault);
    if (status != STATUS_OK) return status;
    status = views_begin(moment->views, false, fault);
    struct bytes now, beside;
    bool known = status == STATUS_OK && views_get(moment->views, ROWS_META, bytes_text("checkpoint"), &now) == STATUS_OK &&
                 meta_row_decode(now, &moment->meta) == STATUS_OK; /* perhaps newer than what was attached to */
    if (status == STATUS_OK)
      status = cold_offer(moment->cold, moment->views, moment->meta.seq, moment->meta.indexed_seq, fault);
    if (status == STATUS_OK && !cold_open(moment->cold, 0))
      status = fault_set(fault, STATUS_UNAVAILABLE, NULL, "%.160s: it cannot be read", directory);
    if (status == STATUS_OK && known && cold_meta(moment->cold, &beside) == STATUS_OK && bytes_equal(now, beside))
      return STATUS_OK;
    moment_end(moment);
    if (status != STATUS_OK) return status;
  }
  return fault_set(fault, STATUS_UNAVAILABLE, NULL, "%.160s: it changes faster than it can be read", directory);
}

static enum status compare_moment(const struct moment *moment, const char *directory, struct journal *journal,
                                  struct state *fold, struct fault *fault) {
  struct state *loaded;
  enum status status = checkpoint_load_from(moment->views, &moment->meta, directory, &loaded, fault);
  if (status != STATUS_OK) return status;
  state_set_cold(loaded, moment->cold);
  status = bring_forward(journal, fold, moment->meta.seq, fault);
  if (status == STATUS_OK) status = checkpoint_judge_rows(moment->views, &moment->meta, fold, fault);
  if (status == STATUS_OK) status = bring_forward(journal, loaded, state_last_seq(fold), fault);
  if (status == STATUS_OK) status = state_check(loaded, fault);
  if (status == STATUS_OK) status = compare_states(loaded, fold, fault);
  state_free(loaded);
  return status;
}

enum status checkpoint_compare(const char *directory, struct journal *journal, struct state *fold, uint64_t *ret_seq,
                               struct fault *fault) {
  struct moment moment = {.cold = cold_new()};
  enum status status = moment_begin(directory, journal, &moment, fault);
  if (status == STATUS_OK && moment.meta.seq == 0)
    status = fault_set(fault, STATUS_NOT_FOUND, NULL, "%.160s: nothing is in it yet", directory);
  if (status == STATUS_OK) status = compare_moment(&moment, directory, journal, fold, fault);
  if (moment.views != NULL) moment_end(&moment);
  cold_free(moment.cold);
  if (status == STATUS_OK) *ret_seq = moment.meta.seq;
  return status;
}
