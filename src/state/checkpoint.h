/* The checkpoint of the projections in DATA/views: rows that a follower makes from the log on its own, so that a start folds
 * the rest of the log alone. It is never believed against the log: what does not fit is refused with a reason, and may be
 * deleted at any time (schema/log.md "Files"). */
#ifndef ORBIT_STATE_CHECKPOINT_H
#define ORBIT_STATE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "journal/journal.h"
#include "state/cold.h"
#include "state/state.h"

/* A place in the log: the event and its chain, as journal_replay wants them. */
struct checkpoint_position {
  uint64_t seq;
  uint64_t chain;
};

/* ---- Loading ---- */

/* Reads the whole checkpoint in the directory (DATA/views) into a state as it was after *ret_position; the caller owns it and
 * folds the rest of the log into it. Judges format, genesis, that the watermark is an event of this log with this chain, and
 * the digest over all rows; not the invariants (state_check). Writes nothing. NOT_FOUND: there is none, or nothing is in it yet
 * · FOREIGN: of another format, another log, or of a longer copy of this one · CORRUPT: damaged · others: it cannot be read.
 * The fault says which in words. Damaged pages may kill the process inside liblmdb. */
enum status checkpoint_load(const char *directory, struct journal *journal, struct state **ret_state,
                            struct checkpoint_position *ret_position, struct fault *fault);

/* Deletes it. It is open nowhere. */
enum status checkpoint_remove(const char *directory);

/* ---- Following: one thread, which may be any ---- */

struct checkpoint;

/* Opens it for writing, made when there is none. map_bytes of address space; 0: as it has, or a default. FOREIGN, CORRUPT: what
 * is there cannot be gone on with (checkpoint_remove, then open anew); it is judged as loading does but for the digest. Others:
 * it cannot be opened. The journal must outlive it. */
enum status checkpoint_open(const char *directory, uint64_t map_bytes, struct journal *journal,
                            struct checkpoint **ret_checkpoint, struct fault *fault);
/* Forgets what was not committed. NULL is fine. */
void checkpoint_close(struct checkpoint *checkpoint);

/* Folds the next events of the log into rows, at most events_max rounded up to whole commits of the log, and commits them in
 * one synced transaction. Holds a snapshot of the log for a bounded number of events at a time, and none afterwards.
 * *ret_events: how many; 0: it has caught up. After any other status nothing of it is written, and the checkpoint can only be
 * closed. CORRUPT: the log or a row is not what it should be; FOREIGN, NO_SPACE, IO_ERROR, UNAVAILABLE. */
enum status checkpoint_follow(struct checkpoint *checkpoint, uint64_t events_max, uint64_t *ret_events, struct fault *fault);
/* The watermark. */
uint64_t checkpoint_seq(const struct checkpoint *checkpoint);
/* Says to whoever reads from it how far it is, and lends it when it is not lent yet; cold_withdraw comes before
 * checkpoint_close. */
enum status checkpoint_lend(struct checkpoint *checkpoint, struct cold *cold, struct fault *fault);
/* Sorts the identities of all receipts that wait into their index, once at least as many wait as told, or memory has let go of
 * some of them (those up to floor_seq; 0: none); some commits, each of which is sound. Then as checkpoint_follow. */
enum status checkpoint_index(struct checkpoint *checkpoint, uint64_t waiting_min, uint64_t floor_seq, struct fault *fault);
/* Removes rows whose time is over, at most about checkpoint_clean_rows: those of tasks that are gone, and the receipts up to
 * floor_seq as the log has them, once they are sorted in. *ret_more: there are further ones. Then as checkpoint_follow. */
enum status checkpoint_clean(struct checkpoint *checkpoint, uint64_t floor_seq, bool *ret_more, struct fault *fault);

/* ---- Judging ---- */

/* For orbit-replay verify: compares the checkpoint in the directory with a fold of the log that was made from its first event
 * on. Whichever is behind is brought forward through the journal, so the fold may have moved on afterwards (a server that runs
 * on writes both). OK: equal, by digest; *ret_seq is the watermark. NOT_FOUND: there is no checkpoint. CORRUPT: they differ;
 * the fault names the first object that does. UNAVAILABLE: not compared, the fault says why; the log may show its readers less
 * than was folded, while a server waits for its disk. Else as checkpoint_load: the checkpoint would be ignored by a start, and
 * the fault says why. Holds one snapshot of views/ while it reads it, and needs memory for a second state. */
enum status checkpoint_compare(const char *directory, struct journal *journal, struct state *fold, uint64_t *ret_seq,
                               struct fault *fault);

#endif
