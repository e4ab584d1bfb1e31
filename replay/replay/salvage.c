/* orbit-replay salvage OUT: the sound commits of a damaged log, up to the first event that cannot be found, in a new log with
 * the same genesis. The old one is only read. A record is taken where its chain follows from the one before it: then it is the
 * one that was written, whichever page it lies in, so that damage to what leads to it loses nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "journal/copy.h"
#include "journal/judge.h"
#include "journal/walker.h"
#include "replay/fresh.h"
#include "replay/replay.h"

enum { batch_events = 16384, batch_bytes = 8 * 1024 * 1024, progress_events = 4096 };

struct salvage {
  struct walker *walker;
  bool scanned;
  struct walker_facts facts; /* as they were at the start */
  uint64_t walk_seq;         /* what the walk stands at; UINT64_MAX: its end */
  struct bytes walk_record;
  struct event_decoder *decoder;
  struct judge judge;
  struct commit batch;  /* judged and not yet written */
  uint32_t batch_whole; /* events in it whose commits are whole */
  uint64_t commits, strays, damages;
  bool lost;            /* something that the file held, or seems to have held, is not in the new log */
  int64_t kept_time_us; /* of the last whole commit */
  struct event event;
  struct progress progress;
  struct journal *out;
};

static void damage(void *context, uint64_t page, const char *what) {
  struct salvage *salvage = context;
  salvage->damages++;
  (void)printf("damaged: page %" PRIu64 ": %s\n", page, what);
}

/* ---- Finding the next record ---- */

static enum status scan_once(struct salvage *salvage, struct fault *fault) {
  if (salvage->scanned) return STATUS_OK;
  salvage->scanned = true;
  return walker_scan(salvage->walker, fault);
}

/* Brings the walk to the first event at or behind seq. */
static enum status walk_to(struct salvage *salvage, uint64_t seq) {
  enum status status = STATUS_OK;
  while (status == STATUS_OK && salvage->walk_seq < seq)
    status = walker_next(salvage->walker, &salvage->walk_seq, &salvage->walk_record);
  if (status == STATUS_END) salvage->walk_seq = UINT64_MAX;
  return status == STATUS_END ? STATUS_OK : status;
}

/* Whether the record is sound and follows from the last one; decoded into salvage->event then. */
static bool follows(struct salvage *salvage, struct bytes record) {
  struct fault fault;
  return judge_bytes(&salvage->judge, record) == NULL &&
         event_decode(salvage->decoder, record, &salvage->event, &fault) == STATUS_OK &&
         judge_order(&salvage->judge, &salvage->event) == NULL;
}

/* END: there is none. */
static enum status next_record(struct salvage *salvage, struct bytes *ret_record, struct fault *fault) {
  uint64_t seq = salvage->judge.seq + 1;
  enum status status = walk_to(salvage, seq);
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "%s", status_text(status));
  if (salvage->walk_seq == seq && follows(salvage, salvage->walk_record)) {
    *ret_record = salvage->walk_record;
    return STATUS_OK;
  }
  /* Behind the end there may be what was written and never committed. */
  if (salvage->facts.end_known && seq > salvage->facts.end_seq && seq > salvage->facts.entries) return STATUS_END;
  status = scan_once(salvage, fault);
  if (status == STATUS_OK) status = walker_scan_find(salvage->walker, seq, salvage->judge.chain, ret_record);
  if (status != STATUS_OK) return status;
  if (!follows(salvage, *ret_record)) return STATUS_END;
  salvage->strays++;
  return STATUS_OK;
}

/* ---- Keeping it ---- */

static void batch_clear(struct salvage *salvage) {
  commit_clear(&salvage->batch);
  buffer_init(&salvage->batch.records, 2 * commit_bytes_max);
  salvage->batch_whole = 0;
}

static enum status batch_write(struct salvage *salvage, struct fault *fault) {
  struct commit *batch = &salvage->batch;
  batch->count = salvage->batch_whole;
  enum status status = journal_take_over(salvage->out, batch, fault);
  batch->count = salvage->batch_whole = 0;
  buffer_reset(&batch->records);
  return status;
}

static enum status record_keep(struct salvage *salvage, struct bytes record, struct fault *fault) {
  const struct event *event = &salvage->event;
  enum status status = commit_take_over(&salvage->batch, record, event->seq, event->time_us);
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "out of memory");
  judge_take(&salvage->judge, event);
  if (!event->last_of_commit) return STATUS_OK;
  salvage->commits++;
  salvage->kept_time_us = event->time_us;
  salvage->batch_whole = salvage->batch.count;
  if (salvage->batch.count < batch_events && salvage->batch.records.size < batch_bytes) return STATUS_OK;
  return batch_write(salvage, fault);
}

static enum status keep_all(struct salvage *salvage, struct fault *fault) {
  struct bytes record;
  enum status status;
  while ((status = next_record(salvage, &record, fault)) == STATUS_OK) {
    status = record_keep(salvage, record, fault);
    if (status != STATUS_OK) return status;
    if (salvage->judge.seq % progress_events == 0) progress_at(&salvage->progress, salvage->judge.seq);
  }
  return status == STATUS_END ? batch_write(salvage, fault) : status;
}

/* ---- What came of it ---- */

static enum status report(struct salvage *salvage, struct fault *fault) {
  uint64_t kept = journal_last_seq(salvage->out), later = 0, last = kept, bytes = 0;
  char time[time_chars_max + 1] = {0};
  (void)printf("kept: %" PRIu64 " events in %" PRIu64 " commits", kept, salvage->commits);
  if (kept != 0 && time_format(time_with_text(salvage->kept_time_us), time))
    (void)printf(", up to seq %" PRIu64 " at %s", kept, time);
  (void)putchar('\n');
  if (salvage->strays != 0)
    (void)printf("kept: %" PRIu64 " of these lay in pages that nothing sound leads to\n", salvage->strays);
  uint64_t said = salvage->facts.entries > salvage->facts.end_seq ? salvage->facts.entries : salvage->facts.end_seq;
  if (salvage->damages != 0 || said > kept || salvage->walk_seq != UINT64_MAX) {
    enum status status = scan_once(salvage, fault);
    if (status != STATUS_OK) return status;
    walker_scan_behind(salvage->walker, kept, &later, &last, &bytes);
  }
  if (salvage->facts.end_known && last > said) last = said;
  salvage->lost = said > kept || (later != 0 && last > kept);
  if (later != 0 && last > kept)
    (void)printf("lost: everything behind seq %" PRIu64 "; %" PRIu64
                 " later events can still be seen, the last of them seq %" PRIu64 ", %" PRIu64 " bytes\n",
                 kept, later, last, bytes);
  if (said > kept) (void)printf("lost: %" PRIu64 " of the %" PRIu64 " events that the file says it held\n", said - kept, said);
  if (!salvage->lost) (void)puts("lost: nothing that can be seen");
  return STATUS_OK;
}

static int genesis_find(struct salvage *salvage, struct bytes *ret_genesis) {
  struct fault fault = {.message = ""};
  struct bytes genesis = walker_genesis(salvage->walker);
  if (genesis.data == NULL && scan_once(salvage, &fault) != STATUS_OK) return tool_say(exit_cannot_run, "%s", fault.message);
  if (genesis.data == NULL) genesis = walker_scan_genesis(salvage->walker);
  if (genesis.data == NULL)
    return tool_say(exit_finding,
                    "genesis, which the log begins with, is damaged or gone: nothing can be salvaged without it; put "
                    "back a backup");
  *ret_genesis = genesis;
  return exit_done;
}

static int salvage_run(struct salvage *salvage, const struct request *request, struct fresh *out) {
  struct fault fault = {.message = ""};
  struct walker_listener listener = {.damage = damage, .context = salvage};
  struct bytes genesis = {NULL, 0};
  enum status status = walker_open(request->cli.data, &listener, &salvage->walker, &fault);
  if (status != STATUS_OK) return tool_say(exit_cannot_run, "%s", fault.message);
  walker_facts(salvage->walker, &salvage->facts);
  int code = genesis_find(salvage, &genesis);
  if (code != exit_done) return code;
  struct journal_options options = {.create = true, .genesis = genesis};
  status = journal_open(out->work, &options, &salvage->out, &fault);
  if (status != STATUS_OK) return tool_say(exit_cannot_run, "%s", fault.message);
  judge_begin(&salvage->judge, genesis);
  salvage->decoder = event_decoder_new();
  progress_begin(&salvage->progress, "events", salvage->facts.end_seq);
  status = keep_all(salvage, &fault);
  progress_end(&salvage->progress);
  if (status == STATUS_OK) status = report(salvage, &fault);
  return status == STATUS_OK ? exit_done : tool_say(exit_cannot_run, "%s", fault.message);
}

int replay_salvage(const struct request *request) {
  static struct salvage salvage;
  struct fresh out;
  int code = fresh_begin(&out, request->cli.argument);
  if (code == exit_done) {
    commit_init(&salvage.batch);
    batch_clear(&salvage);
    code = salvage_run(&salvage, request, &out);
    journal_close(salvage.out, false);
    if (code == exit_done) code = fresh_keep(&out);
    if (code != exit_done) fresh_drop(&out);
    if (code == exit_done) (void)printf("written: %s\n", out.path);
    if (code == exit_done && salvage.lost) code = exit_finding;
    commit_clear(&salvage.batch);
    event_decoder_free(salvage.decoder);
    walker_close(salvage.walker);
  }
  fresh_clear(&out);
  return code;
}
