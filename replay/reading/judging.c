/* Owns the judgement of a whole log, record by record. */
#include "reading/judging.h"

#include <inttypes.h>
#include <stdio.h>

enum { progress_events = 4096, flush_bytes = 64 * 1024 };

static void end_line(struct judging *judging) {
  buffer_append_char(&judging->out.text, '\n');
  if (judging->out.text.size >= flush_bytes) (void)out_flush(&judging->out);
}

void judging_finding(struct judging *judging, uint64_t seq, const char *what, const char *detail) {
  judging->findings++;
  buffer_append_format(&judging->out.text, "seq %" PRIu64 ": %s%s%s", seq, what, detail[0] != 0 ? ": " : "", detail);
  end_line(judging);
}

static void page_damage(void *context, uint64_t page, const char *what) {
  struct judging *judging = context;
  judging->findings++;
  buffer_append_format(&judging->out.text, "page %" PRIu64 ": %s", page, what);
  end_line(judging);
}

/* ---- one record ---- */

static void lose(struct judging *judging, uint64_t seq) {
  if (judging->lost != NULL) judging->lost(judging->context, seq);
}

static void report_gap(struct judging *judging, uint64_t first, uint64_t last) {
  char detail[64] = "";
  if (last > first) (void)snprintf(detail, sizeof detail, "and all up to seq %" PRIu64, last);
  judging_finding(judging, first, "missing", detail);
  lose(judging, first);
  judging->adrift = true;
}

static const char *bytes_fault(const struct judging *judging, struct bytes record) {
  const char *wrong = judge_bytes(&judging->judge, record);
  if (wrong == NULL || record.size < record_header_bytes) return wrong;
  /* Behind a damaged record the chain may go on from what stands there or from what should. */
  struct judge other = judging->judge;
  other.chain = judging->other_chain;
  if (judging->other_chain != 0 && judge_bytes(&other, record) == NULL) return NULL;
  if (!judging->adrift) return wrong;
  struct event header;
  if (record_header_decode(record, &header) != STATUS_OK) return "its header is damaged";
  return header.seq == judging->judge.seq + 1 ? NULL : "its record carries another seq";
}

/* Stands behind the record, damaged or not. */
static void go_on(struct judging *judging, uint64_t seq, struct bytes record, bool sound) {
  struct event header;
  uint64_t should = record.size >= record_header_bytes ? record_chain(record, judging->judge.chain) : 0;
  if (record_header_decode(record, &header) == STATUS_OK && header.seq == seq) {
    judge_take(&judging->judge, &header);
    judging->other_chain = sound ? 0 : should;
    judging->adrift = false;
    return;
  }
  judging->judge.seq = seq;
  judging->other_chain = 0;
  judging->adrift = true;
}

static void take_record(struct judging *judging, uint64_t seq, struct bytes record) {
  struct event event;
  struct fault fault = {.message = ""};
  if (seq > judging->judge.seq + 1) report_gap(judging, judging->judge.seq + 1, seq - 1);
  judging->judge.seq = seq - 1;
  const char *wrong = bytes_fault(judging, record);
  if (wrong == NULL) {
    enum status status =
        judging->headers_only ? record_header_decode(record, &event) : event_decode(judging->decoder, record, &event, &fault);
    if (status != STATUS_OK) wrong = fault.message[0] != 0 ? fault.message : "its header is damaged";
  }
  if (wrong == NULL && !judging->adrift) wrong = judge_order(&judging->judge, &event);
  judging->events++;
  if (seq % progress_events == 0) progress_at(&judging->progress, seq);
  if (wrong != NULL) judging_finding(judging, seq, wrong, "");
  go_on(judging, seq, record, wrong == NULL);
  judging->commits += judging->judge.last_of_commit;
  if (wrong != NULL) lose(judging, seq);
  else if (judging->event != NULL) judging->event(judging->context, &event, record);
}

/* ---- the walk ---- */

int judging_begin(struct judging *judging, const char *data_directory) {
  struct walker_listener listener = {.damage = page_damage, .context = judging};
  struct fault fault = {.message = ""};
  out_begin(&judging->out);
  judging->decoder = event_decoder_new();
  if (walker_open(data_directory, &listener, &judging->walker, &fault) != STATUS_OK)
    return tool_say(exit_cannot_run, "%s", fault.message);
  return exit_done;
}

int judging_walk(struct judging *judging) {
  struct walker_facts facts;
  struct bytes record, genesis = walker_genesis(judging->walker);
  uint64_t seq;
  enum status status;
  judge_begin(&judging->judge, genesis);
  judging->adrift = genesis.data == NULL; /* that was reported */
  walker_facts(judging->walker, &facts);
  progress_begin(&judging->progress, "events", facts.end_seq);
  while ((status = walker_next(judging->walker, &seq, &record)) == STATUS_OK) take_record(judging, seq, record);
  progress_end(&judging->progress);
  if (status == STATUS_UNAVAILABLE)
    return tool_say(exit_cannot_run, "the server commits faster than the log can be read: try again");
  if (status != STATUS_END) return tool_say(exit_cannot_run, "the log cannot be read on: %s", status_text(status));
  walker_facts(judging->walker, &facts);
  if (facts.end_seq > judging->judge.seq) report_gap(judging, judging->judge.seq + 1, facts.end_seq);
  else if (!judging->adrift && !judging->judge.last_of_commit)
    judging_finding(judging, judging->judge.seq, "the rest of its commit is missing", "");
  walker_finish(judging->walker);
  return exit_done;
}

int judging_sum(struct judging *judging) {
  struct walker_facts facts;
  walker_facts(judging->walker, &facts);
  buffer_append_format(&judging->out.text, "%" PRIu64 " events, %" PRIu64 " commits, %" PRIu64 " findings\n", judging->events,
                       judging->commits, judging->findings);
  if (facts.unused_bytes != 0) buffer_append_format(&judging->out.text, "unused: %" PRIu64 " bytes\n", facts.unused_bytes);
  return judging->findings == 0 ? exit_done : exit_finding;
}

int judging_end(struct judging *judging, int code) {
  walker_close(judging->walker);
  event_decoder_free(judging->decoder);
  judging->walker = NULL;
  judging->decoder = NULL;
  return out_end(&judging->out, code);
}
