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

struct fold_visit {
  struct folding folding;
  const struct position *until;
  struct progress progress;
};

static enum status visit(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct fold_visit *fold = context;
  const char *reason = "";
  (void)record;
  if (position_passed(fold->until, event->seq, event->time_us)) return STATUS_END;
  if (!state_fold(fold->folding.state, event, &reason))
    return fault_set(fault, STATUS_CORRUPT, NULL, "event %" PRIu64 " (%s) does not fit what is before it: %s", event->seq,
                     event_type_text(event->type), reason);
  fold->folding.last_seq = event->seq;
  fold->folding.last_time_us = event->time_us;
  if (event->seq % progress_every == 0) progress_at(&fold->progress, event->seq);
  return STATUS_OK;
}

int reading_fold(struct journal *journal, const struct position *until, struct folding *ret_folding) {
  struct fold_visit fold = {.folding = {.state = state_new()}, .until = until};
  struct fault fault = {0};
  progress_begin(&fold.progress, "events", journal_last_seq(journal));
  enum status status = journal_replay(journal, 0, 0, visit, &fold, &fault);
  progress_end(&fold.progress);
  if (status == STATUS_OK || status == STATUS_END) {
    *ret_folding = fold.folding;
    return exit_done;
  }
  folding_clear(&fold.folding);
  return tool_say(exit_finding, "%s", fault.message);
}

void folding_clear(struct folding *folding) {
  state_free(folding->state);
  folding->state = NULL;
}
