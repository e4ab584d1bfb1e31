/* What left memory: ended tasks and old receipts, read from the rows in DATA/views that the follower keeps. The follower says
 * how far it is and lends its store; the engine's thread reads from it under a snapshot that lives for one tick at the most.
 * Where a thing is kept never changes an answer. */
#ifndef ORBIT_STATE_COLD_H
#define ORBIT_STATE_COLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "core/model.h"

struct cold;
struct cold *cold_new(void);
void cold_free(struct cold *cold); /* nothing is lent any more; NULL is fine */

/* ---- the follower's thread ---- */

struct views;
/* Lends the store, or says anew how far it is: rows to seq, identities to indexed_seq. Any other status than OK: nothing is
 * lent. */
enum status cold_offer(struct cold *cold, struct views *views, uint64_t seq, uint64_t indexed_seq, struct fault *fault);
/* Takes the store back: waits until nobody reads. */
void cold_withdraw(struct cold *cold);
/* Receipts up to here are in memory no more, so nobody needs them in the order of the log. */
uint64_t cold_floor(struct cold *cold);

/* ---- the thread that has the state ---- */

/* Opens a snapshot, if none is open; true when it holds the log to seq at least. */
bool cold_open(struct cold *cold, uint64_t seq);
/* Ends it, if one is open: the tick is over. */
void cold_close(struct cold *cold);
/* How far rows and identities are, as the open snapshot shows. */
uint64_t cold_seq(const struct cold *cold);
uint64_t cold_indexed_seq(const struct cold *cold);
void cold_set_floor(struct cold *cold, uint64_t seq);

/* All below: a snapshot is open. END: no such row. CORRUPT, IO_ERROR: the store cannot be read. */

enum status cold_meta(struct cold *cold, struct bytes *ret_meta); /* as it stands there */
struct task_row;
enum status cold_task(struct cold *cold, const struct id *id, struct task_row *ret_row);
/* Which tasks a walk goes along: those of a queue, those with a hash of namespace and business key, or all (both 0). */
struct cold_chain {
  uint32_t queue;
  uint64_t business_hash;
};
/* The newest one that was accepted before this seq. */
enum status cold_older(struct cold *cold, const struct cold_chain *chain, uint64_t before_seq, struct task_row *ret_row);
/* The next receipt of this identity that no task leads to; *seq is the one before, 0: from the first. */
enum status cold_identity(struct cold *cold, uint64_t identity, uint64_t *seq);
/* Of the ended tasks whose newest event is after this seq, the one with the oldest such event. */
enum status cold_first_end(struct cold *cold, uint64_t after_seq, struct task_row *ret_row);
/* Calls visit for the receipts of the log behind after_seq and up to until_seq, in order: about limit of them, as many as were
 * written together. *ret_seq: they were all of those up to here. */
struct receipt_entry;
enum status cold_receipts(struct cold *cold, uint64_t after_seq, uint64_t until_seq, uint32_t limit,
                          void (*visit)(void *context, const struct receipt_entry *entry), void *context, uint64_t *ret_seq);

#endif
