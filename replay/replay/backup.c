/* orbit-replay backup OUT: a consistent copy of the log beside a running server, judged before it gets its name. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/guard.h"
#include "journal/copy.h"
#include "journal/judge.h"
#include "journal/walker.h"
#include "replay/fresh.h"
#include "replay/replay.h"

enum { progress_events = 4096 };

static void mebibytes(uint64_t bytes, char *out, size_t size) {
  (void)snprintf(out, size, "%.1f MiB", (double)bytes / (1024 * 1024));
}

/* Copies with a snapshot held: says before how much that may cost the server's file, and afterwards how much it grew. */
static int copy(const struct request *request, const struct fresh *out) {
  struct journal *journal;
  struct journal_growth before, after;
  struct fault fault = {.message = ""};
  char size[32];
  int code = reading_open(request->cli.data, &journal);
  if (code != exit_done) return code;
  journal_growth(journal, &before);
  mebibytes(before.file_bytes, size, sizeof size);
  (void)tool_say(
      0, "copying %s; until it is done, each commit of a running server may add %" PRIu64 " KiB to its file besides its events",
      size, before.bytes_per_commit / 1024);
  enum status status = journal_copy(journal, out->work, &fault);
  journal_growth(journal, &after);
  journal_close(journal, false);
  if (status != STATUS_OK)
    return tool_say(status == STATUS_STATE_CONFLICT ? exit_finding : exit_cannot_run, "%s", fault.message);
  mebibytes(after.file_bytes - before.file_bytes, size, sizeof size);
  if (after.file_bytes > before.file_bytes) (void)tool_say(0, "meanwhile the server's file grew by %s", size);
  return exit_done;
}

struct checking {
  struct walker *walker;
  uint64_t damages, commits;
  struct judge judge;
  struct progress progress;
};

static void damage(void *context, uint64_t page, const char *what) {
  struct checking *checking = context;
  checking->damages++;
  (void)tool_say(0, "page %" PRIu64 ": %s", page, what);
}

/* Structure, chain and order of the whole copy. */
static int judge_all(struct checking *checking) {
  struct walker_facts facts;
  struct bytes record;
  struct event event;
  uint64_t seq;
  walker_facts(checking->walker, &facts);
  progress_begin(&checking->progress, "events judged", facts.end_seq);
  while (walker_next(checking->walker, &seq, &record) == STATUS_OK) {
    const char *wrong = seq != checking->judge.seq + 1 ? "events before it are missing" : judge_bytes(&checking->judge, record);
    if (wrong == NULL && record_header_decode(record, &event) != STATUS_OK) wrong = "its header is damaged";
    if (wrong == NULL) wrong = judge_order(&checking->judge, &event);
    if (wrong != NULL) return tool_say(exit_finding, "seq %" PRIu64 ": %s", seq, wrong);
    judge_take(&checking->judge, &event);
    checking->commits += event.last_of_commit;
    if (seq % progress_events == 0) progress_at(&checking->progress, seq);
  }
  progress_end(&checking->progress);
  walker_finish(checking->walker);
  if (!checking->judge.last_of_commit || checking->judge.seq != facts.end_seq)
    return tool_say(exit_finding, "seq %" PRIu64 ": the rest of its commit is missing", checking->judge.seq);
  return checking->damages == 0 ? exit_done : exit_finding;
}

static int check(const struct fresh *out) {
  struct checking checking = {0};
  struct walker_listener listener = {.damage = damage, .context = &checking};
  struct fault fault = {.message = ""};
  if (walker_open(out->work, &listener, &checking.walker, &fault) != STATUS_OK)
    return tool_say(exit_cannot_run, "%s", fault.message);
  struct bytes genesis = walker_genesis(checking.walker);
  judge_begin(&checking.judge, genesis);
  int code = genesis.data != NULL ? judge_all(&checking) : exit_finding;
  walker_close(checking.walker);
  if (code != exit_done)
    return tool_say(code, "what was copied is damaged, and was removed again; run orbit-replay verify on the data directory");
  (void)printf("%s: %" PRIu64 " events, %" PRIu64 " commits, up to seq %" PRIu64 "\n", out->path, checking.judge.seq,
               checking.commits, checking.judge.seq);
  return exit_done;
}

int replay_backup(const struct request *request) {
  struct fresh out;
  int code = fresh_begin(&out, request->cli.argument);
  if (code == exit_done) {
    code = copy(request, &out);
    if (code == exit_done) code = check(&out);
    if (code == exit_done) code = fresh_keep(&out);
    if (code != exit_done) fresh_drop(&out);
  }
  fresh_clear(&out);
  return code;
}
