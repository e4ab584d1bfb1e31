/* orbit-audit verify: the chain of the log, and its audit: every change with its record, every record with its change. One
 * finding a line. The file is read by the walker, never through liblmdb: it may be damaged anywhere. */
#include <inttypes.h>

#include "audit/check.h"
#include "audit/manifest.h"
#include "journal/judge.h"
#include "journal/walker.h"

enum { progress_every = 4096, flush_bytes = 64 * 1024 };

struct verify {
  struct walker *walker;
  struct event_decoder *decoder;
  struct judge judge;
  uint64_t other_chain; /* the chain that the last record should have had, where it had another; 0: it had that */
  bool adrift;          /* what is before the next record is not known: its chain cannot be judged */
  struct check check;
  struct out out;
  uint64_t events, commits, findings;
  struct progress progress;
};

static void finding(void *context, uint64_t seq, const char *what) {
  struct verify *verify = context;
  verify->findings++;
  buffer_append_format(&verify->out.text, "seq %" PRIu64 ": %s\n", seq, what);
  if (verify->out.text.size >= flush_bytes) (void)out_flush(&verify->out);
}

static void page_damage(void *context, uint64_t page, const char *what) {
  struct verify *verify = context;
  verify->findings++;
  buffer_append_format(&verify->out.text, "page %" PRIu64 ": %s\n", page, what);
}

static void lose(struct verify *verify) {
  verify->adrift = true;
  check_gap(&verify->check);
}

/* ---- one record ---- */

static const char *bytes_fault(const struct verify *verify, struct bytes record) {
  struct judge other = verify->judge;
  struct event header;
  if (verify->adrift)
    return record_header_decode(record, &header) == STATUS_OK && header.seq == verify->judge.seq + 1 ? NULL
                                                                                                     : "its header is damaged";
  const char *wrong = judge_bytes(&verify->judge, record);
  other.chain = verify->other_chain;
  /* Behind a damaged record the chain may go on from what stands there or from what should. */
  return wrong != NULL && verify->other_chain != 0 && judge_bytes(&other, record) == NULL ? NULL : wrong;
}

/* Stands behind a damaged record. */
static void go_on_behind(struct verify *verify, uint64_t seq, struct bytes record) {
  struct event header;
  verify->other_chain = verify->adrift || record.size < record_header_bytes ? 0 : record_chain(record, verify->judge.chain);
  bool known = record_header_decode(record, &header) == STATUS_OK && header.seq == seq;
  lose(verify);
  if (known) judge_take(&verify->judge, &header);
  verify->adrift = !known;
  verify->judge.seq = seq;
}

static void take_record(struct verify *verify, uint64_t seq, struct bytes record) {
  struct event event;
  struct fault fault = {.message = ""};
  verify->events++;
  if (seq != verify->judge.seq + 1) {
    finding(verify, verify->judge.seq + 1,
            seq > verify->judge.seq + 1 ? "events are missing from here on" : "it stands there twice");
    lose(verify);
    verify->judge.seq = seq - 1;
  }
  const char *wrong = bytes_fault(verify, record);
  if (wrong == NULL && event_decode(verify->decoder, record, &event, &fault) != STATUS_OK) wrong = fault.message;
  if (wrong == NULL && !verify->adrift) wrong = judge_order(&verify->judge, &event);
  if (wrong != NULL) {
    finding(verify, seq, wrong);
    go_on_behind(verify, seq, record);
    return;
  }
  judge_take(&verify->judge, &event);
  verify->other_chain = 0;
  verify->adrift = false;
  verify->commits += event.last_of_commit;
  check_event(&verify->check, &event);
}

/* ---- the walk ---- */

static int walk(struct verify *verify) {
  struct walker_facts facts;
  struct bytes record;
  uint64_t seq;
  enum status status;
  judge_begin(&verify->judge, walker_genesis(verify->walker));
  verify->adrift = walker_genesis(verify->walker).data == NULL; /* that was reported */
  check_begin(&verify->check, finding, verify);
  walker_facts(verify->walker, &facts);
  progress_begin(&verify->progress, "events", facts.end_seq);
  while ((status = walker_next(verify->walker, &seq, &record)) == STATUS_OK) {
    if (seq % progress_every == 0) progress_at(&verify->progress, seq);
    take_record(verify, seq, record);
  }
  progress_end(&verify->progress);
  if (status != STATUS_END) return tool_say(exit_cannot_run, "the log cannot be read on: %s", status_text(status));
  check_end(&verify->check);
  if (facts.end_seq > verify->judge.seq) finding(verify, verify->judge.seq + 1, "events are missing from here to the end");
  else if (!verify->adrift && !verify->judge.last_of_commit)
    finding(verify, verify->judge.seq, "the rest of its commit is missing");
  walker_finish(verify->walker);
  buffer_append_format(&verify->out.text,
                       "%" PRIu64 " audit records\n%" PRIu64 " events, %" PRIu64 " commits, %" PRIu64 " findings\n",
                       verify->check.record_total, verify->events, verify->commits, verify->findings);
  return verify->findings == 0 ? exit_done : exit_finding;
}

static int verify_log(const struct request *request) {
  static struct verify verify;
  struct walker_listener listener = {.damage = page_damage, .context = &verify};
  struct fault fault = {.message = ""};
  out_begin(&verify.out);
  if (walker_open(request->data, &listener, &verify.walker, &fault) != STATUS_OK)
    return out_end(&verify.out, tool_say(exit_cannot_run, "%s", fault.message));
  verify.decoder = event_decoder_new();
  int code = walk(&verify);
  event_decoder_free(verify.decoder);
  walker_close(verify.walker);
  return out_end(&verify.out, code);
}

int audit_verify(const struct request *request) {
  if (request->has_output && request->output != OUTPUT_TEXT) return tool_say(exit_misuse, "verify prints text");
  return request->argument != NULL ? manifest_verify(request) : verify_log(request);
}
