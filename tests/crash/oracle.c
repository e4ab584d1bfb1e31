/* Owns the facts and their comparison with a log. */
#include "oracle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "journal/journal.h"
#include "state/state.h"

enum { violations_shown = 20 };

static const char *const property_texts[property_count] = {
    "acknowledged, and not recovered", "recovered, and never sent", "repeat",        "fold",
    "attempt not given back",          "work without end",          "a failed disk", "serving again"};

void oracle_clear(struct oracle *oracle) {
  free(oracle->submissions);
  free(oracle->attempts);
  *oracle = (struct oracle){0};
}

void oracle_violated(struct oracle *oracle, enum property property, const char *format, ...) {
  va_list arguments;
  if (oracle->violations[property]++ >= violations_shown) return;
  (void)fprintf(stderr, "violation (%s): ", property_texts[property]);
  va_start(arguments, format);
  (void)vfprintf(stderr, format, arguments);
  va_end(arguments);
  (void)fputc('\n', stderr);
}

void crash_key(uint64_t number, char out[crash_key_size]) { (void)snprintf(out, crash_key_size, "crash-%" PRIu64, number); }

uint64_t oracle_submit(struct oracle *oracle) {
  if (oracle->submission_count == oracle->submission_capacity) {
    oracle->submission_capacity = oracle->submission_capacity * 2 + 1024;
    oracle->submissions = guard_realloc(oracle->submissions, oracle->submission_capacity * sizeof *oracle->submissions);
  }
  oracle->submissions[oracle->submission_count] = (struct submission){.sent = false};
  return oracle->submission_count++;
}

uint64_t oracle_attempt(struct oracle *oracle, const struct id *id, uint64_t task) {
  if (oracle->attempt_count == oracle->attempt_capacity) {
    oracle->attempt_capacity = oracle->attempt_capacity * 2 + 1024;
    oracle->attempts = guard_realloc(oracle->attempts, oracle->attempt_capacity * sizeof *oracle->attempts);
  }
  oracle->attempts[oracle->attempt_count] = (struct attempt_fact){.id = *id, .task = task};
  return oracle->attempt_count++;
}

void oracle_named(struct oracle *oracle, uint64_t number, const struct id *id) {
  struct submission *submission = &oracle->submissions[number];
  if (submission->known && !id_equal(&submission->id, id))
    oracle_violated(oracle, REPEAT_GETS_FIRST_ANSWER, "submission %" PRIu64 " is task %s and task %s", number,
                    id_text(&submission->id).text, id_text(id).text);
  submission->known = true;
  submission->id = *id;
}

bool submission_is_decided(const struct submission *submission) {
  return submission->state != TASK_NONE && submission->state != TASK_WAITING && submission->state != TASK_LEASED &&
         submission->state != TASK_RUNNING;
}

void oracle_learn(struct oracle *oracle, uint64_t number, uint64_t revision, enum task_state state) {
  struct submission *submission = &oracle->submissions[number];
  if (revision < submission->revision) return; /* an old receipt */
  if (revision == submission->revision && state != submission->state)
    oracle_violated(oracle, ACKNOWLEDGED_IS_RECOVERED, "submission %" PRIu64 " was %s and %s at revision %" PRIu64, number,
                    task_state_text(submission->state), task_state_text(state), revision);
  bool before = submission_is_decided(submission);
  submission->revision = revision;
  submission->state = state;
  if (!before && submission_is_decided(submission)) oracle->decided++;
}

/* ---- judging a log ---- */

struct judging {
  struct oracle *oracle;
  struct state *state;
  uint64_t *by_id;     /* indexes of attempts, sorted by id */
  struct id *accepted; /* by number of the submission: its task in the log */
  bool counting;       /* the second fold judges nothing */
};

static int compare_attempts(const void *a, const void *b, void *context) {
  const struct oracle *oracle = context;
  return id_compare(&oracle->attempts[*(const uint64_t *)a].id, &oracle->attempts[*(const uint64_t *)b].id);
}

static struct attempt_fact *find_attempt(const struct judging *judging, const struct id *id) {
  const struct oracle *oracle = judging->oracle;
  uint64_t low = 0, high = oracle->attempt_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    int order = id_compare(&oracle->attempts[judging->by_id[middle]].id, id);
    if (order == 0) return &oracle->attempts[judging->by_id[middle]];
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return NULL;
}

static void judge_accepted(struct judging *judging, const struct event *event) {
  struct oracle *oracle = judging->oracle;
  char text[crash_key_size] = "", wanted[crash_key_size] = "";
  uint64_t number = UINT64_MAX;
  struct bytes key = event->body.task_accepted.business_key;
  if (key.size < sizeof text && key.size > 6) {
    memcpy(text, key.data, key.size);
    number = strtoull(text + 6, NULL, 10);
    crash_key(number, wanted);
  }
  if (strcmp(text, wanted) != 0 || number >= oracle->submission_count || !oracle->submissions[number].sent) {
    oracle_violated(oracle, RECOVERED_WAS_SENT, "task %s has the key \"%s\"", id_text(&event->stream).text, text);
    return;
  }
  if (!id_is_zero(&judging->accepted[number]))
    oracle_violated(oracle, RECOVERED_WAS_SENT, "submission %" PRIu64 " was accepted twice", number);
  judging->accepted[number] = event->stream;
}

static void judge_started(struct judging *judging, const struct event *event) {
  struct attempt_fact *attempt = find_attempt(judging, &event->body.task_started.attempt_id);
  if (attempt == NULL || !attempt->start_sent || attempt->in_log_started)
    oracle_violated(judging->oracle, RECOVERED_WAS_SENT, "attempt %s was started %s",
                    id_text(&event->body.task_started.attempt_id).text,
                    attempt != NULL && attempt->in_log_started ? "twice" : "without being asked for");
  if (attempt != NULL) attempt->in_log_started = true;
}

static void judge_report(struct judging *judging, const struct event *event) {
  const struct event_attempt_result *result = &event->body.attempt_result;
  struct attempt_fact *attempt = find_attempt(judging, &result->attempt_id);
  bool as_sent = attempt != NULL && attempt->report_sent && !attempt->gives_back &&
                 id_equal(&attempt->report_message, &result->message_id) && attempt->outcome == result->outcome &&
                 attempt->retryable == result->retryable;
  if (!as_sent || attempt->in_log_reported)
    oracle_violated(judging->oracle, RECOVERED_WAS_SENT, "the report of attempt %s %s", id_text(&result->attempt_id).text,
                    as_sent ? "is there twice" : "is not the one that was sent");
  if (attempt != NULL) attempt->in_log_reported = true;
}

static void judge_ended(struct judging *judging, const struct event *event) {
  struct attempt_fact *attempt = find_attempt(judging, &event->body.attempt_ended.attempt_id);
  bool given_back = event->body.attempt_ended.ended_by == ENDED_RELEASED;
  /* Leases are long and given back after a crash: nothing else may end an attempt here. */
  if (!given_back || attempt == NULL || !attempt->gives_back || !attempt->report_sent || attempt->in_log_reported)
    oracle_violated(judging->oracle, RECOVERED_WAS_SENT, "attempt %s was ended by %s",
                    id_text(&event->body.attempt_ended.attempt_id).text, ended_by_text(event->body.attempt_ended.ended_by));
  if (attempt != NULL) attempt->in_log_reported = true;
}

static enum status visit(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct judging *judging = context;
  const char *reason = "";
  (void)record;
  if (!state_can_apply(judging->state, event, &reason))
    return fault_set(fault, STATUS_CORRUPT, NULL, "event %" PRIu64 " does not fit: %s", event->seq, reason);
  state_apply(judging->state, event);
  if (judging->counting) return STATUS_OK;
  judging->oracle->events++;
  judging->oracle->commits += event->last_of_commit;
  if (event->type == EVENT_task_accepted) judge_accepted(judging, event);
  else if (event->type == EVENT_task_started) judge_started(judging, event);
  else if (event->type == EVENT_attempt_result) judge_report(judging, event);
  else if (event->type == EVENT_attempt_ended) judge_ended(judging, event);
  return STATUS_OK;
}

static void judge_submission(struct judging *judging, uint64_t number) {
  const struct submission *submission = &judging->oracle->submissions[number];
  if (!submission->known) return;
  const struct id *in_log = &judging->accepted[number];
  const struct task *task = id_equal(in_log, &submission->id) ? state_task(judging->state, in_log) : NULL;
  if (task == NULL) {
    oracle_violated(judging->oracle, ACKNOWLEDGED_IS_RECOVERED, "submission %" PRIu64 ", task %s, is not in the log", number,
                    id_text(&submission->id).text);
    return;
  }
  bool same_state = task->state == submission->state;
  bool further = task->revision > submission->revision && !submission_is_decided(submission);
  if (!further && (task->revision != submission->revision || !same_state))
    oracle_violated(judging->oracle, ACKNOWLEDGED_IS_RECOVERED,
                    "task %s was told to be %s, revision %" PRIu64 "; the log says %s, revision %" PRIu32,
                    id_text(&task->id).text, task_state_text(submission->state), submission->revision,
                    task_state_text((enum task_state)task->state), task->revision);
}

static void judge_attempt(struct oracle *oracle, const struct attempt_fact *attempt) {
  if (attempt->start_answered && !attempt->in_log_started)
    oracle_violated(oracle, ACKNOWLEDGED_IS_RECOVERED, "the start grant of attempt %s is not in the log",
                    id_text(&attempt->id).text);
  if (attempt->report_answered && !attempt->in_log_reported)
    oracle_violated(oracle, ACKNOWLEDGED_IS_RECOVERED, "the end of attempt %s is not in the log", id_text(&attempt->id).text);
}

static void judge_facts(struct judging *judging) {
  struct oracle *oracle = judging->oracle;
  for (uint64_t i = 0; i < oracle->submission_count; i++) judge_submission(judging, i);
  for (uint64_t i = 0; i < oracle->attempt_count; i++) judge_attempt(oracle, &oracle->attempts[i]);
}

/* Folds the whole log into a new state, which the caller frees; its digest. */
static enum status fold(struct judging *judging, struct journal *journal, struct id *ret_digest, struct fault *fault) {
  judging->state = state_new();
  enum status status = journal_replay(journal, 0, 0, visit, judging, fault);
  if (status == STATUS_OK) status = state_check(judging->state, fault);
  if (status == STATUS_OK) *ret_digest = state_digest(judging->state);
  return status;
}

void oracle_judge_log(struct oracle *oracle, const char *data) {
  struct journal_options options = {.read_only = true};
  struct journal *journal = NULL;
  struct judging judging = {.oracle = oracle};
  struct fault fault = {0};
  struct id first = {{0}}, second = {{1}};
  judging.by_id = guard_calloc(oracle->attempt_count + 1, sizeof *judging.by_id);
  judging.accepted = guard_calloc(oracle->submission_count + 1, sizeof *judging.accepted);
  for (uint64_t i = 0; i < oracle->attempt_count; i++) {
    judging.by_id[i] = i;
    oracle->attempts[i].in_log_started = oracle->attempts[i].in_log_reported = false;
  }
  qsort_r(judging.by_id, oracle->attempt_count, sizeof *judging.by_id, compare_attempts, oracle);
  oracle->events = oracle->commits = 0;
  enum status status = journal_open(data, &options, &journal, &fault);
  if (status == STATUS_OK) status = fold(&judging, journal, &first, &fault);
  if (status == STATUS_OK) judge_facts(&judging);
  state_free(judging.state);
  judging.state = NULL;
  judging.counting = true;
  if (status == STATUS_OK) status = fold(&judging, journal, &second, &fault);
  state_free(judging.state);
  if (status != STATUS_OK) oracle_violated(oracle, FOLD_IS_SOUND, "%s", fault.message);
  else if (!id_equal(&first, &second)) oracle_violated(oracle, FOLD_IS_SOUND, "two folds of one log differ");
  if (journal != NULL) journal_close(journal, false);
  free(judging.by_id);
  free(judging.accepted);
}
