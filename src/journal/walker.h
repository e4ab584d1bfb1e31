/* Reading a log's file without liblmdb: every bound is checked, nothing in the file is believed, and no damage ends the
 * process. Reads with pread alone, takes no lock and writes nothing, also beside a running server: pages that a reader of LMDB
 * would pin may be written over, so a walk that falls two commits behind goes on from a newer snapshot. The log is append-only:
 * what was read before stays true. */
#ifndef ORBIT_JOURNAL_WALKER_H
#define ORBIT_JOURNAL_WALKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct walker;

/* Who is told of what the walk finds. Any of them may be NULL. */
struct walker_listener {
  /* Once for each damage: the page it lies in, and what is wrong there (a text valid during the call). */
  void (*damage)(void *context, uint64_t page, const char *what);
  /* Ranges of the file that hold neither events nor anything that leads to them: a change there is nobody's loss and is not
   * found. In no order; only where walker_facts.whole is true they are all of them. */
  void (*unused)(void *context, uint64_t offset, uint64_t bytes);
  void *context;
};

/* Opens DIR/log/data.mdb, judges its first pages and the database `meta`. The listener is copied; its context must live as long
 * as the walker. Damage is no failure: the listener hears of it, and what can be read is read.
 * NOT_FOUND, PERMISSION_DENIED, IO_ERROR: there is no such file or it cannot be read · FOREIGN: of another version of LMDB. */
enum status walker_open(const char *data_directory, const struct walker_listener *listener, struct walker **ret_walker,
                        struct fault *fault);
void walker_close(struct walker *walker); /* NULL is fine */

/* Genesis, when it is there and fits its own check value; else data NULL. Borrowed until close. */
struct bytes walker_genesis(const struct walker *walker);

/* The next event in the order of keys, behind damage too. *ret_seq is its key; the record is a span valid until the next call,
 * whose contents nobody has judged. END: there is no more (of what was there at the open). UNAVAILABLE: a server commits faster
 * than pages can be read. NO_MEMORY. */
enum status walker_next(struct walker *walker, uint64_t *ret_seq, struct bytes *ret_record);

/* The record of seq: a span valid until the next walker_get. Reports no damage. The span of walker_next dies: who wants both
 * has two walkers. END: it is not there or cannot be read. UNAVAILABLE, NO_MEMORY. */
enum status walker_get(struct walker *walker, uint64_t seq, struct bytes *ret_record);

/* Once walker_next has said END: judges what is left, the counts of the databases, the list of free pages, and that every page
 * belongs to exactly one of them; only when the file stood still meanwhile. */
void walker_finish(struct walker *walker);

struct walker_facts {
  uint64_t file_bytes, page_bytes;
  uint64_t end_seq;      /* the last event when it was opened, as the file says; 0: none, or it cannot be told */
  uint64_t entries;      /* how many events it should hold, as the file says */
  uint64_t damages;      /* so far */
  uint64_t unused_bytes; /* after walker_finish */
  bool end_known;        /* both first pages are sound: nothing was committed behind what they lead to */
  bool whole;            /* the file stood still, and all of it was judged */
};
void walker_facts(const struct walker *walker, struct walker_facts *ret_facts);

/* Whether liblmdb can read this log without harm: judges the structure, not the records. CORRUPT: the first damage. Anything
 * else, a missing log too, is OK: journal_open has the words for it. Reads the whole file, unless a server holds the log: that
 * has judged it at its start. */
enum status walker_check(const char *data_directory, struct fault *fault);

/* ---- Salvage: pages that nothing leads to any more ---- */

/* Looks at every page of the file for events, whatever leads to it or not. NO_MEMORY, IO_ERROR. */
enum status walker_scan(struct walker *walker, struct fault *fault);
/* A record of seq that has the chain that follows previous_chain: then it is the one that was written, wherever it lies. A span
 * valid until the next call. END: there is none. */
enum status walker_scan_find(struct walker *walker, uint64_t seq, uint64_t previous_chain, struct bytes *ret_record);
/* The genesis that the scan came upon, for when walker_genesis has none; data NULL: none. Borrowed until close. */
struct bytes walker_scan_genesis(const struct walker *walker);
/* What the scan saw of events behind seq: how many, the last of them, and roughly their bytes. */
void walker_scan_behind(const struct walker *walker, uint64_t seq, uint64_t *ret_events, uint64_t *ret_last_seq,
                        uint64_t *ret_bytes);

#endif
