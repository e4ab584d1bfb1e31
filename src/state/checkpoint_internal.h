/* What the files of the checkpoint share: the writer, and the judgement of what stands in the directory. */
#ifndef ORBIT_STATE_CHECKPOINT_INTERNAL_H
#define ORBIT_STATE_CHECKPOINT_INTERNAL_H

#include "journal/views_store.h"
#include "state/checkpoint.h"
#include "state/rows.h"

/* An object that is kept in memory: all of them are. hash: what its row adds to the sum as it stands in the store; 0: it has no
 * row yet. */
struct kept_object {
  struct object object;
  uint64_t hash;
  bool dirty;
};

struct kept_bucket {
  struct bucket_row row; /* its texts are owned: one allocation, at handler */
  uint64_t hash;
  bool dirty;
};

/* A task that an event of this batch touched. */
struct kept_task {
  struct task_row row;
  uint64_t hash;                /* of its row among the unfinished ones; 0: it has none */
  uint64_t ended_seq;           /* its newest event, as its row among the ended ones says; 0: it has none */
  struct digest_sum ended_part; /* what that row adds */
};

struct checkpoint {
  struct views *views;
  struct journal *journal;
  struct journal_reader *reader;
  struct event_decoder *decoder;
  struct meta_row meta;      /* as far as is folded */
  struct event node_started; /* the newest, of which time alone is used */
  struct pool objects;       /* struct kept_object */
  struct index object_ids;
  struct pool buckets;         /* struct kept_bucket */
  struct index bucket_numbers; /* row number -> number in the pool */
  struct index bucket_keys;    /* bucket_hash -> number in the pool */
  uint32_t bucket_last;        /* the highest row number ever given */
  struct pool tasks;           /* struct kept_task, of this batch */
  struct index task_ids;
  struct buffer receipts, audits; /* entries of this batch, encoded */
  struct buffer row;              /* scratch */
  bool failed;
};

/* Opens the store and reads where it stands. *ret_meta is zero but for the genesis when nothing is in it yet. As
 * checkpoint_load. */
enum status checkpoint_attach(const char *directory, uint64_t map_bytes, bool read_only, struct journal *journal,
                              struct views **ret_views, struct meta_row *ret_meta, struct fault *fault);

/* checkpoint_load.c: from a store that is in a transaction, where meta stands. */
enum status checkpoint_load_from(struct views *views, const struct meta_row *meta, const char *directory,
                                 struct state **ret_state, struct fault *fault);
/* checkpoint_ended.c: puts a task that has ended where ended ones are. */
enum status checkpoint_put_ended(struct checkpoint *checkpoint, struct kept_task *kept);
/* Reads it from there. END: it is not there. */
enum status checkpoint_get_ended(struct checkpoint *checkpoint, const struct id *id, struct kept_task *ret_kept);
/* What the task adds to the digest of all views. The row's queue and application are kept. */
struct digest_sum checkpoint_part(const struct checkpoint *checkpoint, const struct task_row *row);
enum status checkpoint_put_meta(struct checkpoint *checkpoint);

/* checkpoint_rows.c: judges the rows of what has ended against a fold from the first event on that is not behind meta. The
 * views are in a transaction. CORRUPT. */
enum status checkpoint_judge_rows(struct views *views, const struct meta_row *meta, const struct state *fold,
                                  struct fault *fault);

/* checkpoint_fold.c: folds the event, which follows the watermark, and moves that. CORRUPT: it does not fit. */
enum status checkpoint_fold(struct checkpoint *checkpoint, const struct event *event, struct fault *fault);
/* What the newest node.started gave back to the task's lease, if its row was written before. */
void checkpoint_settle(struct task_row *row, const struct event *node_started);
struct kept_bucket *checkpoint_bucket_add(struct checkpoint *checkpoint, const struct bucket_row *row);
void checkpoint_bucket_remove(struct checkpoint *checkpoint, uint32_t number);

#endif
