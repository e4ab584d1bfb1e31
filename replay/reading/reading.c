/* Owns the fold of a log for offline questions. */
#include "reading/reading.h"

#include <inttypes.h>

#include "journal/walker.h"

enum { progress_every = 4096 };

int reading_open(const char *directory, struct journal **ret_journal) {
  struct journal_options options = {.read_only = true};
  struct fault fault = {0};
  /* liblmdb trusts the pages of a file: it may not see a damaged one. */
  if (walker_check(directory, &fault) != STATUS_OK) return tool_say(exit_cannot_run, "%s", fault.message);
  if (journal_open(directory, &options, ret_journal, &fault) == STATUS_OK) return exit_done;
  return tool_say(exit_cannot_run, "%s", fault.message);
}

static int refuse(struct folding *folding, const char *reason) {
  folding_clear(folding);
  return tool_say(exit_finding, "%s", reason);
}

int reading_fold(struct scan *scan, const struct position *until, struct folding *ret_folding) {
  struct folding folding = {.state = state_new()};
  struct progress progress;
  struct event event;
  struct bytes record;
  struct fault fault = {.message = ""};
  const char *reason = "";
  enum status status;
  uint64_t last = scan_last_seq(scan);
  scan_range(scan, 1, last, false);
  progress_begin(&progress, "events", last);
  while ((status = scan_next(scan, &event, &record, &fault)) == STATUS_OK &&
         !position_passed(until, event.seq, event.time_us)) {
    if (!state_can_apply(folding.state, &event, &reason)) {
      status = fault_set(&fault, STATUS_CORRUPT, NULL, "event %" PRIu64 " (%s) does not fit what is before it: %s", event.seq,
                         event_type_text(event.type), reason);
      break;
    }
    state_apply(folding.state, &event);
    folding.last_seq = event.seq;
    folding.last_time_us = event.time_us;
    if (event.seq % progress_every == 0) progress_at(&progress, event.seq);
  }
  progress_end(&progress);
  if (status != STATUS_OK && status != STATUS_END) return refuse(&folding, fault.message);
  *ret_folding = folding;
  return exit_done;
}

void folding_clear(struct folding *folding) {
  state_free(folding->state);
  folding->state = NULL;
}
