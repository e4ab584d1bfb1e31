/* orbit-replay verify: everything that can be judged from the log alone, one finding a line. It goes on behind a finding where
 * it can. The file is read by the walker, never through liblmdb: it may be damaged anywhere. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "core/decision.h"
#include "journal/judge.h"
#include "journal/walker.h"
#include "replay/replay.h"
#include "state/checkpoint.h"

enum { full_check_commits = 100000, touched_max = 16384, progress_events = 4096 };

struct verify {
  bool chain_only;
  struct walker *walker;
  struct walker *lookups; /* for single records, so that the walk is not disturbed */
  struct event_decoder *decoder;
  struct judge judge;
  uint64_t other_chain; /* the chain that the last record should have had, where it had another */
  bool adrift;          /* what is before the next record is not known: its chain cannot be judged */
  bool folding;         /* nothing is lost so far, so events can be judged by what is before them */
  struct state *state;
  struct history *history;
  struct buffer encoded;
  struct event ending;     /* the attempt.result, attempt.ended or cancel request that the next decision follows from */
  struct task ending_task; /* the task as it stood before that */
  struct id touched[touched_max];
  uint32_t touched_count;
  uint64_t events, commits, findings, since_full_check;
  struct progress progress;
};

static void finding(struct verify *verify, uint64_t seq, const char *what, const char *detail) {
  verify->findings++;
  (void)printf("seq %" PRIu64 ": %s%s%s\n", seq, what, detail[0] != 0 ? ": " : "", detail);
}

/* ---- one form only: what was decoded encodes to the same bytes ---- */

static void check_encoding(struct verify *verify, const struct event *event, struct bytes record) {
  buffer_reset(&verify->encoded);
  if (record_encode(event, &verify->encoded) != STATUS_OK) return;
  (void)record_seal(verify->encoded.data, verify->encoded.size, event->last_of_commit, event->offset, 0);
  size_t chain_at = offsetof(struct record_header, chain);
  bool same = verify->encoded.size == record.size && memcmp(verify->encoded.data, record.data, chain_at) == 0 &&
              memcmp(verify->encoded.data + record_header_bytes, record.data + record_header_bytes,
                     record.size - record_header_bytes) == 0;
  if (!same) finding(verify, event->seq, "decoding and encoding gives other bytes", event_type_text(event->type));
}

/* ---- decisions, made again from their recorded inputs ---- */

static enum fact fact_of_report(const struct event_attempt_result *result) {
  switch (result->outcome) {
    case OUTCOME_SUCCEEDED:
      return FACT_SUCCEEDED;
    case OUTCOME_FAILED:
      return result->retryable ? FACT_FAILED_RETRYABLE : FACT_FAILED;
    case OUTCOME_CANCELLED:
      return FACT_CANCELLED;
    case OUTCOME_UNKNOWN:
    default:
      return FACT_UNKNOWN;
  }
}

static enum fact fact_of_end(const struct event_attempt_ended *ended) {
  if (ended->state == ATTEMPT_REVOKED) return FACT_CANCEL;
  if (ended->state == ATTEMPT_UNKNOWN) return FACT_UNKNOWN;
  return ended->ended_by == ENDED_RELEASED ? FACT_RELEASED : FACT_LEASE_EXPIRED;
}

/* What the decision event followed from: the event before it in its operation, or a deadline of a waiting task. */
static enum fact fact_before(const struct verify *verify, const struct event *decision) {
  const struct event *ending = &verify->ending;
  if (ending->seq + 1 != decision->seq || !id_equal(&ending->common.operation_id, &decision->common.operation_id))
    return FACT_WAITING_EXPIRED;
  if (ending->type == EVENT_attempt_result) return fact_of_report(&ending->body.attempt_result);
  if (ending->type == EVENT_attempt_ended) return fact_of_end(&ending->body.attempt_ended);
  return FACT_CANCEL;
}

static void check_decision(struct verify *verify, const struct event *event, const struct task *task) {
  struct decision_record recorded;
  if (!decision_of_event(event, &recorded)) return;
  enum fact fact = fact_before(verify, event);
  const struct task *before = fact == FACT_WAITING_EXPIRED ? task : &verify->ending_task;
  struct decision_input input = {.fact = fact,
                                 .recovery_safety = (enum recovery_safety)before->recovery_safety,
                                 .effect_uncertain = before->effect_uncertain,
                                 .cancel_requested = before->cancel_requested_at != 0,
                                 .attempt_count = before->attempt_count,
                                 .max_attempts = before->max_attempts,
                                 .initial_delay_ms = before->initial_delay_ms,
                                 .max_delay_ms = before->max_delay_ms,
                                 .attempt_id = before->attempt.id,
                                 .deadline_at = before->deadline_at,
                                 .start_deadline_at = before->start_deadline_at,
                                 .now_us = event->time_us};
  struct decision_result now = decision_make(&input);
  if (now.state == recorded.state && now.decision == recorded.decision && now.effect_uncertain == recorded.effect_uncertain &&
      now.delay_ms == recorded.delay_ms && now.next_available_at == recorded.next_available_at)
    return;
  char detail[160];
  (void)snprintf(detail, sizeof detail, "recorded %s %s after %" PRIu64 " ms, today's rules say %s %s after %" PRIu64 " ms",
                 task_state_text(recorded.state), decision_text(recorded.decision), recorded.delay_ms,
                 task_state_text(now.state), decision_text(now.decision), now.delay_ms);
  finding(verify, event->seq, "today's rules decide otherwise", detail);
}

static bool ends_something(enum event_type type) {
  return type == EVENT_attempt_result || type == EVENT_attempt_ended || type == EVENT_task_cancel_requested;
}

/* A cancel of a leased task is three events: the task before the first of them is what was judged. */
static void note_ending(struct verify *verify, const struct event *event, const struct task *task) {
  bool goes_on = verify->ending.type == EVENT_task_cancel_requested && verify->ending.seq + 1 == event->seq &&
                 id_equal(&verify->ending.common.operation_id, &event->common.operation_id);
  verify->ending = *event; /* its spans are not used */
  if (!goes_on) verify->ending_task = *task;
}

/* ---- receipts: an identity is used once ---- */

static enum status record_find(void *context, uint64_t seq, struct bytes *ret_record) {
  return walker_get(context, seq, ret_record);
}

static void check_identity(struct verify *verify, const struct event *event) {
  struct event earlier;
  if (id_is_zero(&event->common.identity)) return;
  enum status status = state_receipt(verify->state, &event->common.identity, verify->history,
                                     (struct record_source){record_find, verify->lookups}, &earlier);
  if (status == STATUS_END) return;
  char detail[64];
  (void)snprintf(detail, sizeof detail, "seq %" PRIu64 " has it too", status == STATUS_OK ? earlier.seq : 0);
  finding(verify, event->seq, "the operation identity was used before", detail);
}

/* ---- invariants ---- */

static void touch(struct verify *verify, const struct id *stream) {
  if (verify->touched_count != 0 && id_equal(&verify->touched[verify->touched_count - 1], stream)) return;
  if (verify->touched_count < touched_max) verify->touched[verify->touched_count++] = *stream;
}

static void check_commit(struct verify *verify, uint64_t seq) {
  struct fault fault = {0};
  for (uint32_t i = 0; i < verify->touched_count; i++)
    if (state_check_task(verify->state, &verify->touched[i], &fault) != STATUS_OK) finding(verify, seq, fault.message, "");
  bool overflowed = verify->touched_count == touched_max;
  verify->touched_count = 0;
  if (!overflowed && ++verify->since_full_check < full_check_commits) return;
  verify->since_full_check = 0;
  if (state_check(verify->state, &fault) != STATUS_OK) finding(verify, seq, fault.message, "");
}

/* ---- one event by what is before it ---- */

static void judge_event(struct verify *verify, const struct event *event, struct bytes record) {
  const char *reason = "";
  check_encoding(verify, event, record);
  const struct task *task = state_task(verify->state, &event->stream);
  if (task != NULL) check_decision(verify, event, task);
  if (task != NULL && ends_something(event->type)) note_ending(verify, event, task);
  check_identity(verify, event);
  if (!state_can_apply(verify->state, event, &reason)) {
    finding(verify, event->seq, "does not fit what is before it", reason);
    return;
  }
  state_apply(verify->state, event);
  touch(verify, &event->stream);
  if (event->last_of_commit) check_commit(verify, event->seq);
}

/* ---- one record by the log alone ---- */

/* Events are lost or damaged: what follows rests on something that is not known. */
static void fold_stop(struct verify *verify, uint64_t seq) {
  if (verify->folding)
    (void)tool_say(0, "behind seq %" PRIu64 " only chain, order and form are judged: events before are lost or damaged", seq);
  verify->folding = false;
}

static void gap_report(struct verify *verify, uint64_t first, uint64_t last) {
  char detail[64] = "";
  if (last > first) (void)snprintf(detail, sizeof detail, "and all up to seq %" PRIu64, last);
  finding(verify, first, "missing", detail);
  fold_stop(verify, first);
  verify->adrift = true;
}

static const char *bytes_judge(const struct verify *verify, struct bytes record) {
  const char *wrong = judge_bytes(&verify->judge, record);
  if (wrong == NULL || record.size < record_header_bytes) return wrong;
  /* Behind a damaged record the chain may go on from what stands there or from what should. */
  struct judge other = verify->judge;
  other.chain = verify->other_chain;
  if (verify->other_chain != 0 && judge_bytes(&other, record) == NULL) return NULL;
  if (!verify->adrift) return wrong;
  struct event header;
  if (record_header_decode(record, &header) != STATUS_OK) return "its header is damaged";
  return header.seq == verify->judge.seq + 1 ? NULL : "its record carries another seq";
}

/* Stands behind the record, damaged or not. */
static void judge_go_on(struct verify *verify, uint64_t seq, struct bytes record, bool sound) {
  struct event header;
  uint64_t should = record.size >= record_header_bytes ? record_chain(record, verify->judge.chain) : 0;
  if (record_header_decode(record, &header) == STATUS_OK && header.seq == seq) {
    judge_take(&verify->judge, &header);
    verify->other_chain = sound ? 0 : should;
    verify->adrift = false;
    return;
  }
  verify->judge.seq = seq;
  verify->other_chain = 0;
  verify->adrift = true;
}

static void record_visit(struct verify *verify, uint64_t seq, struct bytes record) {
  struct event event;
  struct fault fault = {.message = ""};
  if (seq > verify->judge.seq + 1) gap_report(verify, verify->judge.seq + 1, seq - 1);
  verify->judge.seq = seq - 1;
  const char *wrong = bytes_judge(verify, record);
  if (wrong == NULL) {
    enum status status =
        verify->chain_only ? record_header_decode(record, &event) : event_decode(verify->decoder, record, &event, &fault);
    if (status != STATUS_OK) wrong = fault.message[0] != 0 ? fault.message : "its header is damaged";
  }
  if (wrong == NULL && !verify->adrift) wrong = judge_order(&verify->judge, &event);
  verify->events++;
  if (seq % progress_events == 0) progress_at(&verify->progress, seq);
  if (wrong != NULL) finding(verify, seq, wrong, "");
  judge_go_on(verify, seq, record, wrong == NULL);
  verify->commits += verify->judge.last_of_commit;
  if (wrong != NULL) fold_stop(verify, seq);
  else if (verify->folding) judge_event(verify, &event, record);
}

/* ---- the walk ---- */

static void damage(void *context, uint64_t page, const char *what) {
  struct verify *verify = context;
  verify->findings++;
  (void)printf("page %" PRIu64 ": %s\n", page, what);
}

static int verify_begin(struct verify *verify, const struct request *request) {
  struct walker_listener listener = {.damage = damage, .context = verify};
  struct walker_facts facts;
  struct fault fault = {.message = ""};
  verify->chain_only = request->chain_only;
  enum status status = walker_open(request->data, &listener, &verify->walker, &fault);
  if (status == STATUS_OK && !verify->chain_only) status = walker_open(request->data, NULL, &verify->lookups, &fault);
  if (status != STATUS_OK) return tool_say(exit_cannot_run, "%s", fault.message);
  struct bytes genesis = walker_genesis(verify->walker);
  judge_begin(&verify->judge, genesis);
  verify->adrift = genesis.data == NULL; /* that was reported */
  verify->folding = !verify->chain_only;
  verify->decoder = event_decoder_new();
  verify->state = state_new();
  verify->history = history_new();
  buffer_init(&verify->encoded, SIZE_MAX);
  walker_facts(verify->walker, &facts);
  progress_begin(&verify->progress, "events", facts.end_seq);
  return exit_done;
}

static enum status verify_walk(struct verify *verify) {
  struct fault fault = {.message = ""};
  struct walker_facts facts;
  struct bytes record;
  uint64_t seq;
  enum status status;
  while ((status = walker_next(verify->walker, &seq, &record)) == STATUS_OK) record_visit(verify, seq, record);
  progress_end(&verify->progress);
  if (status != STATUS_END) return status;
  walker_facts(verify->walker, &facts);
  if (facts.end_seq > verify->judge.seq) gap_report(verify, verify->judge.seq + 1, facts.end_seq);
  else if (!verify->judge.last_of_commit) finding(verify, verify->judge.seq, "the rest of its commit is missing", "");
  if (verify->folding && state_check(verify->state, &fault) != STATUS_OK) finding(verify, verify->judge.seq, fault.message, "");
  walker_finish(verify->walker);
  return STATUS_OK;
}

/* The checkpoint beside a sound log, against this fold. There may be none; one that a start would ignore is said, and is no
 * finding, because nothing is lost with it. */
static void compare_checkpoint(struct verify *verify, const struct request *request) {
  cleanup(guard_free) char *path = NULL;
  struct journal *journal;
  struct fault fault = {.message = ""};
  uint64_t seq;
  if (!verify->folding || verify->findings != 0 || asprintf(&path, "%s/views", request->data) < 0) return;
  if (access(path, F_OK) != 0 || reading_open(request->data, &journal) != exit_done) return;
  enum status status = checkpoint_compare(path, journal, verify->state, &seq, &fault);
  if (status == STATUS_CORRUPT)
    finding(verify, verify->judge.seq, "the checkpoint is not what the log folds to", fault.message);
  else if (status != STATUS_OK && status != STATUS_NOT_FOUND)
    (void)tool_say(exit_done, "the checkpoint would be ignored: %s", fault.message);
  journal_close(journal, false);
}

static void verify_end(struct verify *verify) {
  walker_close(verify->walker);
  walker_close(verify->lookups);
  event_decoder_free(verify->decoder);
  buffer_clear(&verify->encoded);
  history_free(verify->history);
  state_free(verify->state);
}

int replay_verify(const struct request *request) {
  static struct verify verify;
  struct walker_facts facts = {0};
  int code = verify_begin(&verify, request);
  if (code == exit_done) {
    enum status status = verify_walk(&verify);
    if (status == STATUS_UNAVAILABLE)
      code = tool_say(exit_cannot_run, "the server commits faster than the log can be read: try again");
    else if (status != STATUS_OK) code = tool_say(exit_cannot_run, "%s", status_text(status));
    walker_facts(verify.walker, &facts);
    if (code == exit_done) compare_checkpoint(&verify, request);
  }
  verify_end(&verify);
  if (code != exit_done) return code;
  (void)printf("%" PRIu64 " events, %" PRIu64 " commits, %" PRIu64 " findings\n", verify.events, verify.commits,
               verify.findings);
  if (facts.unused_bytes != 0) (void)printf("unused: %" PRIu64 " bytes\n", facts.unused_bytes);
  return verify.findings == 0 ? exit_done : exit_finding;
}
