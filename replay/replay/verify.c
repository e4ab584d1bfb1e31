/* orbit-replay verify: everything that can be judged from the log alone, one finding a line. It goes on behind a finding where
 * it can. The file is read by the walker, never through liblmdb: it may be damaged anywhere. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "core/decision.h"
#include "reading/judging.h"
#include "replay/replay.h"
#include "replay/views.h"

enum { full_check_commits = 100000, touched_max = 16384 };

struct verify {
  struct judging judging;
  struct walker *lookups; /* for single records, so that the walk is not disturbed */
  bool folding;           /* nothing is lost so far, so events can be judged by what is before them */
  struct state *state;
  struct history *history;
  struct buffer encoded;
  struct event ending;     /* the attempt.result, attempt.ended or cancel request that the next decision follows from */
  struct task ending_task; /* the task as it stood before that */
  struct attempt ending_attempt;
  struct id touched[touched_max];
  uint32_t touched_count;
  uint64_t since_full_check;
};

static void finding(struct verify *verify, uint64_t seq, const char *what, const char *detail) {
  judging_finding(&verify->judging, seq, what, detail);
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

static void check_decision(struct verify *verify, const struct event *event, const struct task *task,
                           const struct attempt *attempt) {
  struct decision_record recorded;
  if (!decision_of_event(event, &recorded)) return;
  enum fact fact = fact_before(verify, event);
  const struct task *before = fact == FACT_WAITING_EXPIRED ? task : &verify->ending_task;
  if (fact != FACT_WAITING_EXPIRED) attempt = &verify->ending_attempt;
  struct decision_input input = {.fact = fact,
                                 .recovery_safety = (enum recovery_safety)before->recovery_safety,
                                 .effect_uncertain = before->effect_uncertain,
                                 .cancel_requested = before->cancel_requested_at != 0,
                                 .attempt_count = before->attempt_count,
                                 .max_attempts = before->max_attempts,
                                 .initial_delay_ms = before->initial_delay_ms,
                                 .max_delay_ms = before->max_delay_ms,
                                 .attempt_id = attempt->id,
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
static void note_ending(struct verify *verify, const struct event *event, const struct task *task,
                        const struct attempt *attempt) {
  bool goes_on = verify->ending.type == EVENT_task_cancel_requested && verify->ending.seq + 1 == event->seq &&
                 id_equal(&verify->ending.common.operation_id, &event->common.operation_id);
  verify->ending = *event; /* its spans are not used */
  if (goes_on) return;
  verify->ending_task = *task;
  verify->ending_attempt = *attempt;
}

static void judge_decision(struct verify *verify, const struct event *event, uint32_t number) {
  const struct task *task = state_task_at(verify->state, number);
  const struct attempt *attempt = state_attempt_at(verify->state, number);
  check_decision(verify, event, task, attempt);
  if (ends_something(event->type)) note_ending(verify, event, task, attempt);
}

/* ---- receipts: an identity is used once ---- */

static enum status record_find(void *context, uint64_t seq, struct bytes *ret_record) {
  return walker_get(context, seq, ret_record);
}

static void check_identity(struct verify *verify, const struct event *event) {
  struct event earlier;
  if (id_is_zero(&event->common.identity)) return;
  enum status status = state_receipt(verify->state, &event->common.identity, NULL, verify->history,
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

static void judge_event(void *context, const struct event *event, struct bytes record) {
  struct verify *verify = context;
  const char *reason = "";
  if (!verify->folding) return;
  check_encoding(verify, event, record);
  uint32_t number = state_task_number(verify->state, &event->stream);
  if (number != 0) judge_decision(verify, event, number);
  check_identity(verify, event);
  if (!state_fold(verify->state, event, &reason)) {
    finding(verify, event->seq, "does not fit what is before it", reason);
    return;
  }
  touch(verify, &event->stream);
  if (event->last_of_commit) check_commit(verify, event->seq);
}

/* What follows rests on something that is not known. */
static void fold_stop(void *context, uint64_t seq) {
  struct verify *verify = context;
  if (verify->folding)
    (void)tool_say(0, "behind seq %" PRIu64 " only chain, order and form are judged: events before are lost or damaged", seq);
  verify->folding = false;
}

/* ---- the walk ---- */

static int verify_begin(struct verify *verify, const struct request *request) {
  struct fault fault = {.message = ""};
  verify->judging.headers_only = request->chain_only;
  if (!request->chain_only) {
    verify->judging.event = judge_event;
    verify->judging.lost = fold_stop;
    verify->judging.context = verify;
  }
  int code = judging_begin(&verify->judging, request->cli.data);
  if (code != exit_done || request->chain_only) return code;
  if (walker_open(request->cli.data, NULL, &verify->lookups, &fault) != STATUS_OK)
    return tool_say(exit_cannot_run, "%s", fault.message);
  verify->folding = true;
  verify->state = state_new();
  state_keep_receipts(verify->state);
  verify->history = history_new();
  buffer_init(&verify->encoded, SIZE_MAX);
  return exit_done;
}

/* The checkpoint beside a sound log, against this fold. There may be none; one that a start would ignore is said, and is no
 * finding, because nothing is lost with it. */
static void compare_checkpoint(struct verify *verify, const struct request *request) {
  struct fault fault = {.message = ""};
  if (verify->judging.findings != 0) return;
  enum status status = views_compare(request->cli.data, verify->state, &fault);
  if (status == STATUS_CORRUPT)
    finding(verify, verify->judging.judge.seq, "the checkpoint in views/ is not what the log folds to", fault.message);
  else if (status == STATUS_UNAVAILABLE) (void)tool_say(exit_done, "the checkpoint was not compared: %s", fault.message);
  else if (status != STATUS_OK) (void)tool_say(exit_done, "the checkpoint would be ignored: %s", fault.message);
}

/* What can be said of the end of a sound log alone. */
static void judge_end(struct verify *verify, const struct request *request) {
  struct fault fault = {.message = ""};
  if (!verify->folding) return;
  if (state_check(verify->state, &fault) != STATUS_OK) finding(verify, verify->judging.judge.seq, fault.message, "");
  compare_checkpoint(verify, request);
}

int replay_verify(const struct request *request) {
  static struct verify verify;
  if (request->cli.has_output && request->cli.output != OUTPUT_TEXT) return tool_say(exit_misuse, "verify prints text");
  int code = verify_begin(&verify, request);
  if (code == exit_done) code = judging_walk(&verify.judging);
  if (code == exit_done) {
    judge_end(&verify, request);
    code = judging_sum(&verify.judging);
  }
  walker_close(verify.lookups);
  if (verify.state != NULL) {
    buffer_clear(&verify.encoded);
    history_free(verify.history);
    state_free(verify.state);
  }
  return judging_end(&verify.judging, code);
}
