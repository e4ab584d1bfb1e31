/* A small ordered key/value store in a directory of its own, for what is made from the log: an LMDB environment apart from the
 * log's, with its own commits. It may be deleted at any time by anybody who makes sure that no process has it open. Knows
 * nothing of what it keeps. */
#ifndef ORBIT_JOURNAL_VIEWS_STORE_H
#define ORBIT_JOURNAL_VIEWS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct views;

struct views_options {
  uint64_t map_bytes;        /* address space; 0: as the file says */
  bool read_only;            /* nothing is written but LMDB's reader table */
  const char *const *tables; /* their names; a table is called by its place in here */
  unsigned table_count;      /* at most views_tables_max */
};

/* Opens the store; unless it is read_only, makes directory and tables where there are none. A process may have a store open
 * once at a time. NOT_FOUND: read_only and there is none, or nothing is in it yet · FOREIGN: an environment with other tables ·
 * CORRUPT: no LMDB environment, or shorter than its pages · PERMISSION_DENIED, NO_SPACE, NO_MEMORY, IO_ERROR. The fault has
 * path and reason. */
enum status views_open(const char *directory, const struct views_options *options, struct views **ret_views,
                       struct fault *fault);
void views_close(struct views *views); /* a transaction that is open is given up; NULL is fine */
/* Deletes the files of the store in the directory, and the directory if nothing else is in it. The store is open nowhere. OK
 * also when there is none. PERMISSION_DENIED, IO_ERROR. */
enum status views_remove(const char *directory);

/* True in a thread that has a transaction or a snapshot of a store open: for a handler of the signals that damaged pages bring,
 * since LMDB trusts what it reads. Safe to call in it. */
bool views_are_open_here(void);

/* ---- Transactions: one at a time, begun and ended on one thread. Spans that are given out live until it ends or writes. ----
 */

/* A writing one frees the places of readers whose process died, and so the pages that their snapshots pin. */
enum status views_begin(struct views *views, bool write, struct fault *fault);
/* Writes all of it with one sync: all or nothing. After any other status than OK nothing of it is there. */
enum status views_commit(struct views *views, struct fault *fault);
void views_abort(struct views *views);

/* END: no such key. CORRUPT, IO_ERROR. */
enum status views_get(struct views *views, unsigned table, struct bytes key, struct bytes *ret_value);
/* Keys are at most 511 bytes. append tells that the key is probably above all others, which packs pages fully; a guess may be
 * wrong. */
enum status views_put(struct views *views, unsigned table, struct bytes key, struct bytes value, bool append);
/* OK also when there is no such key. */
enum status views_delete(struct views *views, unsigned table, struct bytes key);
uint64_t views_count(struct views *views, unsigned table);

/* Called for each row in the order of keys (memcmp); anything but OK ends the walk and is returned. */
typedef enum status views_visit(void *context, struct bytes key, struct bytes value);
enum status views_each(struct views *views, unsigned table, views_visit *visit, void *context);
/* The first row whose key is not below this one. END: none. */
enum status views_from(struct views *views, unsigned table, struct bytes key, struct bytes *ret_key, struct bytes *ret_value);

/* ---- Readers: each with a snapshot of its own, beside the writer. Used by one thread at a time, which may be another one than
 * the store's; freed before the store is closed. Spans live until the snapshot ends. ---- */

struct views_reader;
enum status views_reader_new(struct views *views, struct views_reader **ret_reader, struct fault *fault);
void views_reader_free(struct views_reader *reader); /* NULL is fine */
/* Takes a snapshot, of what was committed before the call. There is none yet. UNAVAILABLE, NO_MEMORY, IO_ERROR. */
enum status views_reader_begin(struct views_reader *reader);
void views_reader_end(struct views_reader *reader); /* also when there is none */
/* END: no such row. CORRUPT, IO_ERROR. */
enum status views_reader_get(struct views_reader *reader, unsigned table, struct bytes key, struct bytes *ret_value);
/* The first row whose key is not below this one; the last one whose key is below it. END: none. */
enum status views_reader_from(struct views_reader *reader, unsigned table, struct bytes key, struct bytes *ret_key,
                              struct bytes *ret_value);
enum status views_reader_below(struct views_reader *reader, unsigned table, struct bytes key, struct bytes *ret_key,
                               struct bytes *ret_value);

#endif
