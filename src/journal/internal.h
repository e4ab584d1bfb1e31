/* What the files of this room share: the handle, the layout of `meta`, and the errors of LMDB.
 *
 * DATA/log/data.mdb is an LMDB environment with two named databases (schema/log.md):
 *
 *   events  MDB_INTEGERKEY: sequence number, native u64 -> record
 *   meta    "format"   u32, little-endian: log_format
 *           "genesis"  struct genesis, 96 bytes
 *           "clean"    u64, little-endian: the last seq when the server stopped cleanly; taken away inside the first commit
 *
 * The chain starts from genesis: the chain "before seq 1" is XXH3-64 (seed 0) over the 96 bytes of genesis, so that records do
 * not fit under the genesis of another log. A log is made in DATA/log.new and renamed when it is whole. */
#ifndef ORBIT_JOURNAL_INTERNAL_H
#define ORBIT_JOURNAL_INTERNAL_H

#include <lmdb.h>
#include <stdatomic.h>

#include "journal/journal.h"

static const uint32_t log_format = 1;

/* All numbers little-endian, no padding. check = BLAKE2b-256 of the bytes before `secret`, keyed with the secret. */
struct genesis {
  uint32_t format;
  uint32_t page_bytes;
  uint64_t created_us;
  uint8_t node_id[id_bytes];
  struct secret secret;
  uint8_t check[32];
};
static_assert(sizeof(struct genesis) == 96, "genesis has no padding");
static_assert(sizeof(size_t) == sizeof(uint64_t), "MDB_INTEGERKEY takes sequence numbers as they are");
static_assert(sizeof(struct record_header) == record_header_bytes, "the header has no padding");

struct journal {
  MDB_env *env;
  MDB_dbi events, meta;
  char *data_path, *log_path;
  int directory; /* DATA */
  int lock;      /* DATA/LOCK, held while open; -1 for readers */
  bool read_only;
  bool was_clean;        /* as found */
  bool marked;           /* the mark stands in the log now */
  _Atomic bool poisoned; /* a write or sync failed: nothing is written any more */
  struct genesis genesis;
  uint64_t page_bytes, map_bytes, reserve_bytes;
  /* Of the last durable event. */
  uint64_t last_chain;
  int64_t last_time_us;
  /* Of the last event that was written or handed over; the caller's thread has them. */
  uint64_t handed_seq, handed_chain, handed_bytes; /* bytes: since open */
  int64_t handed_time_us;
  struct writer *writer;     /* NULL: everything is written on the caller's thread */
  struct extender *extender; /* NULL: so is the room ahead */
  int room_file;   /* data.mdb once more, for the room ahead: what fails there is told to LMDB's own sync, too; -1: none yet */
  uint8_t *zeroes; /* log_zero_piece_bytes of them, from the first journal_reserve on */
  /* Written by the one writing thread, read by any. */
  _Atomic uint64_t last_seq;
  _Atomic uint64_t commits, syncs, committed_events, committed_bytes;
  _Atomic uint64_t file_bytes; /* length of data.mdb, or what is known to be in use when that is more */
  _Atomic uint64_t used_bytes; /* up to the last page that LMDB uses */
};

/* open.c. An LMDB code or errno as a status, and the line for it: "PATH: DOING: REASON; what to do". */
enum status journal_error(int code);
enum status journal_fault(struct fault *fault, int code, const char *path, const char *doing);
/* Opens an environment of at most map_bytes (0: as the file says) in directory. An LMDB code. */
int journal_env_open(const char *directory, uint64_t map_bytes, unsigned flags, MDB_env **ret_env);
/* Begins a reading transaction; when all places are taken, those of dead processes are freed first. An LMDB code. */
int journal_read_begin(MDB_env *env, MDB_txn **ret_txn);
/* Reads how far LMDB uses the file. */
void journal_measure(struct journal *journal);

/* commit.c. Where record number i lies in the commit's buffer. */
static inline size_t commit_record_start(const struct commit *commit, uint32_t i) { return i != 0 ? commit->ends[i - 1] : 0; }
/* Sets flags, offsets and chains. Returns the chain of the last record. */
uint64_t commit_seal(struct commit *commit, uint64_t chain);

/* write.c. Writes sealed commits that follow from each other in one transaction, with one sync, and counts them; chain is that
 * of the last record. Poisons on failure. One thread at a time. */
enum status commits_write(struct journal *journal, struct commit *const *commits, unsigned count, uint64_t chain,
                          struct fault *fault);
/* writer.c. Writes what was handed over, and ends the threads. */
void writer_stop(struct journal *journal);

/* reserve.c. From room_begin on the file is lengthened on a thread of its own while there is room enough. */
void room_begin(struct journal *journal);
void room_stop(struct journal *journal);

/* genesis.c */
uint64_t genesis_chain(const struct genesis *genesis);
/* FOREIGN, CORRUPT: the bytes are not a genesis that this program and machine can use. path is for the fault. */
enum status genesis_check(struct bytes genesis, const char *path, struct fault *fault);
/* Makes DATA/log whole, from the given genesis or (data NULL) a new one with this node id. The lock is held. */
enum status genesis_create(struct journal *journal, struct bytes genesis, struct fault *fault);

/* lock.c. LOCKED, PERMISSION_DENIED, NO_SPACE, IO_ERROR. */
enum status lock_take(struct journal *journal, struct fault *fault);
void lock_sign(const struct journal *journal); /* writes our pid into it */
void lock_release(struct journal *journal);
/* DATA/node.id. NOT_FOUND without a fault: there is none. CORRUPT: not an id. */
enum status node_id_read(const struct journal *journal, struct id *ret_id, struct fault *fault);
enum status node_id_write(const struct journal *journal, const struct id *id, struct fault *fault);

/* inspect.c: what can be judged without liblmdb. */
/* NOT_FOUND without a fault: there is no log. CORRUPT: not an LMDB environment, or shorter than its pages. FOREIGN: of another
 * LMDB format or page size. PERMISSION_DENIED: somebody else's. */
enum status log_file_inspect(const struct journal *journal, struct fault *fault);
/* NOT_FOUND, PERMISSION_DENIED: the directory cannot be used by this user. */
enum status directory_inspect(const char *path, bool writable, struct fault *fault);

/* replay.c: where the events of a replay go. */
struct replay_sink {
  journal_visit *visit;
  /* Called before the spans of all events up to here die; NULL: nobody has kept them. Anything but OK ends the replay. */
  enum status (*settle)(void *context);
  void *context;
};
enum status replay_run(struct journal *journal, uint64_t after_seq, uint64_t previous_chain, const struct replay_sink *sink,
                       struct fault *fault);

/* The key of an event. */
static inline MDB_val seq_key(uint64_t *seq) { return (MDB_val){sizeof *seq, seq}; }
/* The key of an entry of `meta`. */
MDB_val meta_key(const char *name);

#endif
