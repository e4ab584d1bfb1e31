/* The log: the only room that knows LMDB. Nothing above may know that it is local or LMDB: a commit is a value that is handed
 * over, and the journal says how far it is durable (schema/log.md). */
#ifndef ORBIT_JOURNAL_JOURNAL_H
#define ORBIT_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "codec/digest.h"
#include "codec/event_codec.h"

struct journal;

struct journal_options {
  uint64_t map_bytes;     /* the one reservation; 0: log_map_bytes_default */
  uint64_t reserve_bytes; /* room held ahead of the log; 0: log_reserve_step_bytes */
  bool read_only;         /* for offline tools: no lock, no directory made, nothing written but LMDB's reader table */
  bool create;            /* make the directories and genesis when there is none (init); else NOT_FOUND */
  struct bytes genesis;   /* with create: the genesis of another copy of the same log, to be taken over (salvage, simulation),
                             as journal_genesis gave it; data NULL: a new one */
};

/* Opens DATA/log. The process may hold one journal of a directory at a time.
 * NOT_FOUND: no such directory or no log in it · LOCKED: another server has it (DATA/LOCK) · FOREIGN: another format version,
 * another page size, or genesis that does not fit · CORRUPT: not an LMDB environment, truncated file · PERMISSION_DENIED: the
 * directory belongs to somebody else or cannot be written · NO_SPACE, NO_MEMORY (address space for the map), IO_ERROR. The
 * fault's message is one clear line with path and what to do; the log is untouched then. Damaged pages may kill the process
 * inside liblmdb: callers that start a server install a handler (journal_progress_seq tells how far reading was sound). */
enum status journal_open(const char *data_directory, const struct journal_options *options, struct journal **ret_journal,
                         struct fault *fault);
/* Writes what was handed over, releases the lock and all memory. clean: writes the clean-shutdown mark first (after
 * node.stopped was committed). */
void journal_close(struct journal *journal, bool clean);

const struct secret *journal_secret(const struct journal *journal);
int64_t journal_created_us(const struct journal *journal);
struct id journal_node_id(const struct journal *journal); /* DATA/node.id, made at creation */
/* The bytes of genesis as they stand in the log, secret included; borrowed until close. */
struct bytes journal_genesis(const struct journal *journal);
bool journal_was_clean(const struct journal *journal); /* the mark as found at open; it is taken away at the first commit */

/* ---- Writing: one thread ---- */

/* The events of one commit while it is being made, then a value. Owned by the caller; reuse with commit_reset. */
struct commit {
  struct buffer records; /* encoded records, one behind the other */
  uint32_t *ends;        /* end offset of each record in `records` */
  uint32_t count, capacity;
  uint64_t first_seq;
  int64_t time_us;
};
void commit_init(struct commit *commit);
void commit_clear(struct commit *commit);
/* Empties it for the commit that follows the last one that was written or handed over. */
void commit_reset(struct commit *commit, const struct journal *journal, int64_t time_us);
/* Numbers the event (seq, offset, time; prev is the caller's), encodes and appends it; *event has its seq then.
 * NO_MEMORY: no memory, or more than commit_bytes_max together; what was added before stays good. */
enum status commit_add(struct commit *commit, struct event *event);
/* The record of seq, if it is in this commit (not yet sealed): a span valid until the next change. data NULL: not here. */
struct bytes commit_record(const struct commit *commit, uint64_t seq);

/* Seals the chain, writes all records in one transaction, syncs once. After OK everything in it is durable. After any other
 * status memory may be ahead of the log: the caller must stop the process and acknowledge nothing. An empty commit is OK and
 * does nothing. Nothing may be on its way behind it (journal_hand_over). NO_SPACE, IO_ERROR, CORRUPT. */
enum status journal_commit(struct journal *journal, struct commit *commit, struct fault *fault);

/* ---- Writing on a thread of the journal's own: the next commit is made while the one before is on its way ---- */

/* Starts the threads that write what is handed over, and the room ahead. told is called on one when more has become durable or
 * a write failed: it must be quick and must not call the journal. Where no thread can be had, everything is written as it is
 * handed over, and told is called then. The writing thread. */
void journal_write_behind(struct journal *journal, void (*told)(void *context), void *context);
/* Waits until what was handed over is durable or has failed, and tells nobody from then on. */
void journal_quiet(struct journal *journal);
/* Seals the commit, which is not empty, and hands it over, to become durable behind all that were handed over before; what
 * waits together is written together, in one transaction with one sync: all of it or nothing. It must neither change nor move
 * until it is settled. At most commits_in_flight_max may be on their way, with room for all of them in journal_reserve. Without
 * journal_write_behind it is written before the call returns. */
void journal_hand_over(struct journal *journal, struct commit *commit);
/* Waits until the event of this seq, which was handed over, is durable; 0: does not wait. OK: *ret_seq is the last durable
 * event, and commits up to there are settled, the oldest first. Any other status is that of the write that failed, as
 * journal_commit gives it: nothing that was handed over is touched any more, and nothing of it may be acknowledged. */
enum status journal_settled(struct journal *journal, uint64_t seq, uint64_t *ret_seq, struct fault *fault);
uint64_t journal_last_seq(const struct journal *journal);    /* of the last durable event; 0: empty */
uint64_t journal_next_seq(const struct journal *journal);    /* behind all that was written or handed over */
uint64_t journal_first_chain(const struct journal *journal); /* the chain before seq 1, from genesis */
uint64_t journal_last_chain(const struct journal *journal);  /* empty: the chain that genesis starts, a mark of this very log */
int64_t journal_last_time_us(const struct journal *journal); /* 0: empty */

/* Holds room for bytes more of records (with LMDB's overhead), behind what is on its way, before anything is decided: extends
 * the file with written zeroes by reserve steps. OK, or NO_SPACE with nothing changed: then only what must be reported,
 * cancelled or reviewed may still be committed, out of the reserve: about half of reserve_bytes is left then. Cheap when the
 * room is there already; else it writes and syncs 1 MiB (has it written, once journal_write_behind was called), or as much as
 * is missing when less than half of the reserve is left. IO_ERROR: the disk is broken, as after a failed commit. */
enum status journal_reserve(struct journal *journal, uint64_t bytes);
/* Whether bytes of records fit into the room that is held already: for what goes into the reserve after NO_SPACE. No I/O. */
bool journal_fits(const struct journal *journal, uint64_t bytes);
struct journal_stats {
  uint64_t commits, syncs, events, bytes; /* since open; bytes of records; syncs: one for the commits that were written
                                             together (LMDB writes its meta page through on top), and those of the room ahead */
  uint64_t file_bytes, used_bytes, reserved_bytes;
};
void journal_stats(const struct journal *journal, struct journal_stats *ret_stats);

/* ---- Reading: any thread, each with a reader of its own ---- */

struct journal_reader;
/* NO_MEMORY, or UNAVAILABLE when all reader slots are taken, those of dead processes apart. */
enum status journal_reader_new(struct journal *journal, struct journal_reader **ret_reader);
void journal_reader_free(struct journal_reader *reader);
/* Takes a fresh snapshot: sees every commit that was durable before the call. Spans of the older snapshot die. */
enum status journal_reader_refresh(struct journal_reader *reader);
/* Lets the snapshot go, so that it pins no pages; spans die. The next read refreshes by itself. */
void journal_reader_release(struct journal_reader *reader);
/* The record of seq: a span into the log's map, valid until refresh, release or free. END: no such record (yet). */
enum status journal_reader_get(struct journal_reader *reader, uint64_t seq, struct bytes *ret_record);
/* The last seq that this snapshot sees. */
uint64_t journal_reader_last_seq(struct journal_reader *reader);

/* Frees reader slots of dead processes, and so the pages that they pin: a reader that was killed with a snapshot in hand would
 * make the file grow with every commit. Call at start and every second or so; any thread. */
void journal_reap_readers(struct journal *journal);

/* ---- Replay ---- */

/* Called for each event in order: the record, the decoded event (chain checked). Return OK to go on. */
typedef enum status journal_visit(void *context, const struct event *event, struct bytes record, struct fault *fault);
/* Visits the events of after_seq+1 … end, checking length, seq without gaps, offset and last flag of commits, time that never
 * falls, prev below seq, and the chain. previous_chain is the chain of after_seq (any for after_seq 0: the chain starts from
 * genesis). The end is the last durable seq at the call. Reads in bounded chunks, so that no snapshot is held long. CORRUPT or
 * FOREIGN: fault names the seq and what is wrong. */
enum status journal_replay(struct journal *journal, uint64_t after_seq, uint64_t previous_chain, journal_visit *visit,
                           void *context, struct fault *fault);
/* Told of events that will be visited soon, in order: first far, some way before its visit, then near, shortly before it. For
 * asking memory to come closer; the event's spans are good. */
typedef void journal_glance(void *context, const struct event *event, bool near);
/* As journal_replay to the last word of each fault, with a thread of its own that reads, checks and decodes a bounded number of
 * events ahead; visit and glance (NULL: none) are called on the caller's thread. Meanwhile journal_progress_seq runs ahead of
 * the visits. Where no thread can be had, it is journal_replay. */
enum status journal_replay_ahead(struct journal *journal, uint64_t after_seq, uint64_t previous_chain, journal_visit *visit,
                                 journal_glance *glance, void *context, struct fault *fault);
/* The last seq that replay read soundly: async-signal-safe, for the handler of damaged pages. */
uint64_t journal_progress_seq(void);

#endif
