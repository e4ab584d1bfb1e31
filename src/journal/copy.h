/* Copies of a log: a consistent one beside a running server, and one made record by record from what is sound. */
#ifndef ORBIT_JOURNAL_COPY_H
#define ORBIT_JOURNAL_COPY_H

#include "journal/journal.h"

struct journal_growth {
  uint64_t file_bytes;       /* of the log now: about what the copy takes */
  uint64_t bytes_per_commit; /* what each commit of the server may add to the log's file on top of its events while a snapshot
                                is held */
};
void journal_growth(struct journal *journal, struct journal_growth *ret_growth);

/* Copies the log as it stands into the new directory DIR, as a data directory of its own: DIR/log/data.mdb and DIR/node.id, all
 * of it on disk then. A snapshot is held meanwhile; the server goes on. DIR must not exist, and nothing is left of it after a
 * failure. STATE_CONFLICT: it exists · NOT_FOUND, PERMISSION_DENIED, NO_SPACE, IO_ERROR. */
enum status journal_copy(struct journal *journal, const char *directory, struct fault *fault);

/* Takes over records of another copy of the same log as they stand there, chain and all: whole commits that follow
 * journal_last_seq and were judged by the caller. Many commits in one transaction. The statuses of journal_commit. */
enum status journal_take_over(struct journal *journal, const struct commit *commits, struct fault *fault);
/* Adds such a record to the commits that will be taken over together; a commit_init'ed struct. NO_MEMORY as commit_add. */
enum status commit_take_over(struct commit *commits, struct bytes record, uint64_t seq, int64_t time_us);

#endif
