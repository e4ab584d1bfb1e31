/* A walk over a whole log that judges each record behind the one before it, says a finding a line, and goes on behind damage:
 * what the two verifying commands have in common. The file is read by the walker, never through liblmdb. */
#ifndef ORBIT_REPLAY_JUDGING_H
#define ORBIT_REPLAY_JUDGING_H

#include "journal/judge.h"
#include "journal/walker.h"
#include "reading/out.h"
#include "reading/tool.h"

struct judging {
  /* Told of each sound event in order; of the record's header alone where headers_only is set. May be NULL. */
  void (*event)(void *context, const struct event *event, struct bytes record);
  /* Events are lost or damaged from seq on: what comes does not rest on what was told. May be NULL. */
  void (*lost)(void *context, uint64_t seq);
  void *context;
  bool headers_only;

  /* The walk's own. */
  struct walker *walker;
  struct event_decoder *decoder;
  struct judge judge;
  struct out out;
  struct progress progress;
  uint64_t other_chain; /* the chain that the last record should have had, where it had another */
  bool adrift;          /* what is before the next record is not known: its chain cannot be judged */
  uint64_t events, commits, findings;
};

/* Opens the log; an exit code. judging_end in any case. */
int judging_begin(struct judging *judging, const char *data_directory);
/* Walks to the end. An exit code; findings are no failure. */
int judging_walk(struct judging *judging);
/* A finding of the caller's: "seq N: WHAT" or "seq N: WHAT: DETAIL". */
void judging_finding(struct judging *judging, uint64_t seq, const char *what, const char *detail);
/* Says "N events, N commits, N findings", and how much of the file is unused; the exit code that comes of it. */
int judging_sum(struct judging *judging);
/* The exit code, or another when stdout failed. Frees. */
int judging_end(struct judging *judging, int code);

#endif
