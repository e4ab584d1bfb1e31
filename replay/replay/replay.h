/* What the subcommands of orbit-replay share. */
#ifndef ORBIT_REPLAY_REPLAY_H
#define ORBIT_REPLAY_REPLAY_H

#include "reading/cli.h"
#include "reading/out.h"
#include "reading/reading.h"

/* The options of every subcommand; each says which it needs. */
struct request {
  struct cli cli;
  struct position at, from, to;
  bool chain_only;
};

typedef int subcommand(const struct request *request);
subcommand replay_state, replay_queues, replay_diff, replay_stats, replay_verify, replay_salvage, replay_backup, replay_rebuild;

/* Rows of a table: names once, then cells in their order; written as the output asks. Text columns are padded; everything is
 * kept until table_end. */
struct table {
  enum output output;
  const char *const *columns;
  unsigned column_count;
  unsigned rows;
  struct buffer cells; /* NUL-terminated, row by row */
  bool numbers[16];    /* JSON: the column holds numbers */
};
void table_begin(struct table *table, enum output output, const char *const *columns, unsigned column_count);
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text whole, up to a NUL that should not be in it. */
void table_text(struct table *table, struct bytes text);
int table_end(struct table *table); /* an exit code */

#endif
