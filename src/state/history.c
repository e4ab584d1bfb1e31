/* Owns the walk along the prev chain of one stream, and what is made from it: snapshots, documents, attempts, evidence. */
#include "state/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "core/apply.h"
#include "journal/journal.h"

struct history {
  struct event_decoder *decoder;
  struct event event; /* under the eye of a walk: too large for the stack of each function */
  uint64_t *seqs;
  size_t seq_capacity;
  struct attempt_document *attempts;
  size_t attempt_capacity;
  struct evidence_document *evidence;
  size_t evidence_capacity;
};

struct history *history_new(void) {
  struct history *history = guard_calloc(1, sizeof *history);
  history->decoder = event_decoder_new();
  return history;
}

void history_free(struct history *history) {
  if (history == NULL) return;
  event_decoder_free(history->decoder);
  free(history->seqs);
  free(history->attempts);
  free(history->evidence);
  free(history);
}

static enum status reader_get(void *context, uint64_t seq, struct bytes *ret_record) {
  return journal_reader_get(context, seq, ret_record);
}

struct record_source record_source_of_reader(struct journal_reader *reader) {
  return (struct record_source){reader_get, reader};
}

/* The array with room for more than count items; NULL: no memory, and the old array stays. */
static void *grown(void *array, size_t *capacity, size_t count, size_t item_size) {
  if (count < *capacity) return array;
  size_t wanted = *capacity == 0 ? 32 : *capacity * 2;
  void *larger = reallocarray(array, wanted, item_size);
  if (larger != NULL) *capacity = wanted;
  return larger;
}

enum status history_event(struct history *history, struct record_source source, uint64_t seq, struct event *ret_event) {
  struct bytes record;
  struct fault fault;
  enum status status = source.get(source.context, seq, &record);
  if (status != STATUS_OK) return status == STATUS_END ? STATUS_CORRUPT : status;
  status = event_decode(history->decoder, record, ret_event, &fault);
  if (status != STATUS_OK) return STATUS_CORRUPT;
  return ret_event->seq == seq ? STATUS_OK : STATUS_CORRUPT;
}

/* ---- The walk ---- */

/* Collects the stream's seqs, newest first, from the headers alone. stream NULL: whatever stream the first is of. */
static enum status collect(struct history *history, struct record_source source, uint64_t seq, const struct id *stream,
                           size_t *ret_count) {
  struct event *header = &history->event;
  struct id owner;
  size_t count = 0;
  if (stream != NULL) owner = *stream;
  for (uint64_t at = seq; at != 0; at = header->prev) {
    struct bytes record;
    enum status status = source.get(source.context, at, &record);
    if (status == STATUS_END) return count == 0 ? STATUS_NOT_FOUND : STATUS_CORRUPT;
    if (status != STATUS_OK) return status;
    if (record_header_decode(record, header) != STATUS_OK) return STATUS_CORRUPT;
    if (count == 0 && stream == NULL) owner = header->stream;
    if (header->seq != at || header->prev >= at || !id_equal(&header->stream, &owner)) return STATUS_CORRUPT;
    uint64_t *seqs = grown(history->seqs, &history->seq_capacity, count, sizeof *seqs);
    if (seqs == NULL) return STATUS_NO_MEMORY;
    history->seqs = seqs;
    seqs[count++] = at;
  }
  *ret_count = count;
  return count != 0 ? STATUS_OK : STATUS_NOT_FOUND;
}

enum status history_chain(struct history *history, struct record_source source, uint64_t seq, const uint64_t **ret_seqs,
                          size_t *ret_count) {
  size_t count = 0;
  enum status status = collect(history, source, seq, NULL, &count);
  if (status != STATUS_OK) return status;
  for (size_t low = 0, high = count - 1; low < high; low++, high--) {
    uint64_t swapped = history->seqs[low];
    history->seqs[low] = history->seqs[high];
    history->seqs[high] = swapped;
  }
  *ret_seqs = history->seqs;
  *ret_count = count;
  return STATUS_OK;
}

enum status history_task_at(struct history *history, struct record_source source, uint64_t seq, struct task *ret_task,
                            struct attempt *ret_attempt) {
  struct task task = {.accepted_seq = 0};
  struct attempt attempt = {.lease_ms = 0};
  size_t count = 0;
  enum status status = collect(history, source, seq, NULL, &count);
  if (status != STATUS_OK) return status;
  /* collect ended at the oldest header: only a task's stream begins with its acceptance. */
  if (history->event.type != EVENT_task_accepted) return STATUS_NOT_FOUND;
  while (count-- > 0) {
    const char *reason = NULL;
    status = history_event(history, source, history->seqs[count], &history->event);
    if (status != STATUS_OK) return status;
    if (!can_apply_task(&task, &attempt, &history->event, &reason)) return STATUS_CORRUPT;
    apply_task(&task, &attempt, &history->event);
  }
  *ret_task = task;
  if (ret_attempt != NULL) *ret_attempt = attempt;
  return STATUS_OK;
}

/* ---- The document ---- */

static enum status read_error(struct history *history, struct record_source source, const struct task *task,
                              struct task_document *document) {
  if (task_error_seq(task) == 0) return STATUS_OK;
  enum status status = history_event(history, source, task_error_seq(task), &history->event);
  if (status != STATUS_OK) return status;
  if (history->event.type != EVENT_attempt_result || !id_equal(&history->event.stream, &task->id)) return STATUS_CORRUPT;
  const struct event_attempt_result *report = &history->event.body.attempt_result;
  document->error_code = report->error_code;
  document->error_message = report->error_message;
  document->error_details = report->error_details;
  return STATUS_OK;
}

static enum status read_result(struct history *history, struct record_source source, const struct task *task,
                               struct task_document *document) {
  if (task_result_seq(task) == 0) return STATUS_OK;
  enum status status = history_event(history, source, task_result_seq(task), &history->event);
  if (status != STATUS_OK) return status;
  if (!id_equal(&history->event.stream, &task->id)) return STATUS_CORRUPT;
  switch (history->event.type) {
    case EVENT_attempt_result:
      document->result = history->event.body.attempt_result.result;
      return STATUS_OK;
    case EVENT_task_reviewed:
      document->result = history->event.body.task_reviewed.result;
      return STATUS_OK;
    default:
      return STATUS_CORRUPT;
  }
}

enum status history_document(struct history *history, struct record_source source, const struct task *task,
                             struct task_document *ret_document) {
  enum status status = history_event(history, source, task->accepted_seq, &history->event);
  if (status != STATUS_OK) return status;
  if (history->event.type != EVENT_task_accepted || !id_equal(&history->event.stream, &task->id)) return STATUS_CORRUPT;
  struct task_document document = {.task = *task, .accepted = history->event.body.task_accepted};
  status = read_error(history, source, task, &document);
  if (status == STATUS_OK) status = read_result(history, source, task, &document);
  if (status == STATUS_OK) *ret_document = document;
  return status;
}

/* ---- Attempts ---- */

/* The attempts found so far. */
struct gathering {
  struct history *history;
  uint32_t count;
};

/* The newest attempt, when the event speaks of it and it still goes on; NULL else. */
static struct attempt_document *going_on(struct gathering *gathering, const struct id *attempt_id) {
  if (gathering->count == 0) return NULL;
  struct attempt_document *attempt = &gathering->history->attempts[gathering->count - 1];
  return attempt->finished_at == 0 && id_equal(&attempt->attempt_id, attempt_id) ? attempt : NULL;
}

static enum status gather_leased(struct gathering *gathering, const struct event *event) {
  struct history *history = gathering->history;
  const struct event_task_leased *leased = &event->body.task_leased;
  void *room = grown(history->attempts, &history->attempt_capacity, gathering->count, sizeof *history->attempts);
  if (room == NULL) return STATUS_NO_MEMORY;
  history->attempts = room;
  history->attempts[gathering->count++] = (struct attempt_document){
      .attempt_id = leased->attempt_id,
      .number = (uint32_t)leased->number,
      .epoch = leased->epoch,
      .state = ATTEMPT_LEASED,
      .instance_id = leased->instance_id,
      .instance_name = leased->instance_name,
      .leased_at = event->time_us,
      .lease_expires_at = leased->lease_until,
  };
  return STATUS_OK;
}

static enum status gather_started(struct gathering *gathering, const struct event *event) {
  const struct event_task_started *started = &event->body.task_started;
  struct attempt_document *attempt = going_on(gathering, &started->attempt_id);
  if (attempt == NULL) return STATUS_CORRUPT;
  attempt->state = ATTEMPT_RUNNING;
  attempt->started_at = event->time_us;
  attempt->attempt_deadline_at = started->attempt_deadline_at;
  return STATUS_OK;
}

static enum status gather_result(struct gathering *gathering, const struct event *event) {
  static const enum attempt_state states[OUTCOME_ENUM_END] = {[OUTCOME_SUCCEEDED] = ATTEMPT_SUCCEEDED,
                                                              [OUTCOME_FAILED] = ATTEMPT_FAILED,
                                                              [OUTCOME_UNKNOWN] = ATTEMPT_UNKNOWN,
                                                              [OUTCOME_CANCELLED] = ATTEMPT_CANCELLED};
  const struct event_attempt_result *report = &event->body.attempt_result;
  struct attempt_document *attempt = going_on(gathering, &report->attempt_id);
  if (attempt == NULL) return STATUS_CORRUPT;
  attempt->state = states[report->outcome];
  attempt->finished_at = event->time_us;
  attempt->ended_by = ENDED_REPORT;
  attempt->outcome = report->outcome;
  attempt->retryable = report->retryable;
  attempt->error_code = report->error_code;
  attempt->error_message = report->error_message;
  attempt->error_details = report->error_details;
  attempt->result = report->result;
  return STATUS_OK;
}

static enum status gather_ended(struct gathering *gathering, const struct event *event) {
  const struct event_attempt_ended *ended = &event->body.attempt_ended;
  struct attempt_document *attempt = going_on(gathering, &ended->attempt_id);
  if (attempt == NULL) return STATUS_CORRUPT;
  attempt->state = ended->state;
  attempt->finished_at = event->time_us;
  attempt->ended_by = ended->ended_by;
  return STATUS_OK;
}

/* A decision belongs to the attempt that ended just before it. One that finds the newest attempt decided already, or none at
 * all, is about a waiting task. */
static void gather_decision(struct gathering *gathering, enum decision decision, uint64_t delay_ms, int64_t next_available_at) {
  if (gathering->count == 0) return;
  struct attempt_document *attempt = &gathering->history->attempts[gathering->count - 1];
  if (attempt->finished_at == 0 || attempt->decision != DECISION_NONE) return;
  attempt->decision = decision;
  attempt->has_delay = next_available_at != 0;
  attempt->delay_ms = delay_ms;
  attempt->next_available_at = next_available_at;
}

static enum status gather_attempt(struct gathering *gathering, const struct event *event) {
  const struct event_task_requeued *requeued = &event->body.task_requeued;
  const struct event_task_failed *failed = &event->body.task_failed;
  const struct event_task_review_required *review = &event->body.task_review_required;
  switch (event->type) {
    case EVENT_task_leased:
      return gather_leased(gathering, event);
    case EVENT_task_started:
      return gather_started(gathering, event);
    case EVENT_attempt_result:
      return gather_result(gathering, event);
    case EVENT_attempt_ended:
      return gather_ended(gathering, event);
    case EVENT_task_requeued:
      gather_decision(gathering, requeued->decision, requeued->delay_ms, requeued->next_available_at);
      return STATUS_OK;
    case EVENT_task_failed:
      gather_decision(gathering, failed->decision, failed->delay_ms, failed->next_available_at);
      return STATUS_OK;
    case EVENT_task_review_required:
      gather_decision(gathering, review->decision, review->delay_ms, review->next_available_at);
      return STATUS_OK;
    case EVENT_task_succeeded:
      gather_decision(gathering, event->body.task_succeeded.decision, 0, 0);
      return STATUS_OK;
    case EVENT_task_cancelled:
      gather_decision(gathering, event->body.task_cancelled.decision, 0, 0);
      return STATUS_OK;
    default:
      return STATUS_OK;
  }
}

enum status history_attempts(struct history *history, struct record_source source, const struct task *task,
                             const struct attempt_document **ret_attempts, uint32_t *ret_count) {
  struct gathering gathering = {history, 0};
  size_t count = 0;
  enum status status = collect(history, source, task->last_seq, &task->id, &count);
  if (status != STATUS_OK) return status == STATUS_NOT_FOUND ? STATUS_CORRUPT : status;
  while (count-- > 0) {
    status = history_event(history, source, history->seqs[count], &history->event);
    if (status == STATUS_OK) status = gather_attempt(&gathering, &history->event);
    if (status != STATUS_OK) return status;
  }
  *ret_attempts = history->attempts;
  *ret_count = gathering.count;
  return STATUS_OK;
}

/* ---- Evidence ---- */

enum status history_evidence(struct history *history, struct record_source source, const struct task *task,
                             const struct evidence_document **ret_evidence, uint32_t *ret_count) {
  size_t count = 0;
  uint32_t found = 0;
  enum status status = collect(history, source, task->last_seq, &task->id, &count);
  if (status != STATUS_OK) return status == STATUS_NOT_FOUND ? STATUS_CORRUPT : status;
  while (count-- > 0) {
    status = history_event(history, source, history->seqs[count], &history->event);
    if (status != STATUS_OK) return status;
    if (history->event.type != EVENT_evidence_recorded) continue;
    void *room = grown(history->evidence, &history->evidence_capacity, found, sizeof *history->evidence);
    if (room == NULL) return STATUS_NO_MEMORY;
    history->evidence = room;
    history->evidence[found++] = (struct evidence_document){history->event.time_us, history->event.body.evidence_recorded};
  }
  *ret_evidence = history->evidence;
  *ret_count = found;
  return STATUS_OK;
}
