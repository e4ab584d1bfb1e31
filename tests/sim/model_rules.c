/* Owns the rules of time and of what becomes of a task, from the written rules alone. */
#include <xxhash.h>

#include "sim/model_internal.h"

int64_t model_after_ms(int64_t from_us, uint64_t ms) { return from_us + (int64_t)ms * 1000; }
int64_t model_earlier(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t model_lease_end(const struct model_task *task) {
  int64_t end = model_earlier(task->live_until, task->deadline_at);
  if (task->state == TASK_RUNNING) return model_earlier(end, task->attempt_deadline_at);
  return task->start_deadline_at != 0 ? model_earlier(end, task->start_deadline_at) : end;
}

bool model_lease_is_good(const struct model *model, const struct model_task *task) {
  if (!model_is_held(task->state)) return false;
  if (model->mistake == MISTAKE_EQUAL_IS_IN_TIME) return model->now_us <= model_lease_end(task);
  return model->now_us < model_lease_end(task); /* equal is too late */
}

int64_t model_due(const struct model_task *task) {
  if (model_is_held(task->state)) return model_lease_end(task);
  if (task->state != TASK_WAITING) return INT64_MAX;
  return task->start_deadline_at != 0 ? model_earlier(task->start_deadline_at, task->deadline_at) : task->deadline_at;
}

/* ---- what becomes of a task ---- */

struct conclusion {
  enum task_state state;
  enum decision decision;
  bool uncertain;
  uint64_t delay_ms;
  int64_t next_at; /* 0: none was thought of */
};

uint64_t model_delay_ms(const struct model_task *task) {
  uint64_t base = task->initial_delay_ms;
  for (uint32_t n = 1; n < task->attempt_count && base < task->max_delay_ms; n++) base *= 2;
  if (base > task->max_delay_ms) base = task->max_delay_ms;
  return (base + 1) / 2 + XXH3_64bits(task->attempt_id.bytes, id_bytes) % (base / 2 + 1);
}

static enum decision what_bars(const struct model *model, const struct model_task *task, struct conclusion *conclusion) {
  if (task->cancel_requested_at != 0) return DECISION_CANCEL_REQUESTED;
  if (task->attempt_count >= task->max_attempts) return DECISION_ATTEMPT_LIMIT;
  conclusion->delay_ms = model_delay_ms(task);
  conclusion->next_at = model_after_ms(model->now_us, conclusion->delay_ms);
  if (conclusion->next_at >= task->deadline_at) return DECISION_DEADLINE_EXCEEDED;
  if (task->start_deadline_at != 0 && conclusion->next_at >= task->start_deadline_at) return DECISION_START_DEADLINE_EXCEEDED;
  return DECISION_NONE;
}

static void ends(struct conclusion *conclusion, enum task_state state, enum decision decision) {
  conclusion->state = conclusion->uncertain ? TASK_NEEDS_REVIEW : state;
  conclusion->decision = decision;
}

/* The happenings after which it may be tried again. */
static void try_again(const struct model *model, const struct model_task *task, enum happening happening,
                      struct conclusion *conclusion) {
  bool stops = !task->idempotent && model->mistake != MISTAKE_RETRY_AFTER_DOUBT;
  if (conclusion->uncertain && stops) {
    ends(conclusion, TASK_NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED);
    return;
  }
  enum decision bar = what_bars(model, task, conclusion);
  if (bar != DECISION_NONE) {
    ends(conclusion, TASK_FAILED, bar);
    return;
  }
  conclusion->state = TASK_WAITING;
  conclusion->decision = happening == HAPPENED_RETRYABLE_FAILURE ? DECISION_RETRYABLE_FAILURE
                         : happening == HAPPENED_UNKNOWN         ? DECISION_IDEMPOTENT_UNKNOWN
                         : happening == HAPPENED_RELEASE         ? DECISION_UNSTARTED_RELEASED
                                                                 : DECISION_UNSTARTED_LEASE_EXPIRED;
}

static struct conclusion conclude(const struct model *model, const struct model_task *task, enum happening happening) {
  struct conclusion conclusion = {.uncertain = task->uncertain || happening == HAPPENED_UNKNOWN};
  bool late = model->now_us >= task->deadline_at;
  switch (happening) {
    case HAPPENED_SUCCESS:
      conclusion.uncertain = false;
      ends(&conclusion, TASK_SUCCEEDED, DECISION_SUCCEEDED);
      break;
    case HAPPENED_FAILURE:
      ends(&conclusion, TASK_FAILED, DECISION_NON_RETRYABLE_FAILURE);
      break;
    case HAPPENED_CANCELLED:
      ends(&conclusion, TASK_CANCELLED, DECISION_CANCEL_CONFIRMED);
      break;
    case HAPPENED_CANCEL:
      if (model->mistake == MISTAKE_CANCEL_FORGETS_DOUBT) conclusion.uncertain = false;
      ends(&conclusion, TASK_CANCELLED, DECISION_CANCEL_REQUESTED);
      break;
    case HAPPENED_WAITED_TOO_LONG:
      ends(&conclusion, TASK_FAILED, late ? DECISION_DEADLINE_EXCEEDED : DECISION_START_DEADLINE_EXCEEDED);
      break;
    default:
      try_again(model, task, happening, &conclusion);
      break;
  }
  return conclusion;
}

/* ---- reading it ---- */

static enum event_type event_of(enum task_state state) {
  switch (state) {
    case TASK_WAITING:
      return EVENT_task_requeued;
    case TASK_SUCCEEDED:
      return EVENT_task_succeeded;
    case TASK_FAILED:
      return EVENT_task_failed;
    case TASK_CANCELLED:
      return EVENT_task_cancelled;
    default:
      return EVENT_task_review_required;
  }
}

/* The five decision events have these fields in common. */
#define FILL(body)                                   \
  do {                                               \
    (body).state = conclusion->state;                \
    (body).decision = conclusion->decision;          \
    (body).attempt_count = task->attempt_count;      \
    (body).max_attempts = task->max_attempts;        \
    (body).effect_uncertain = conclusion->uncertain; \
    (body).node_id = model->node_id;                 \
  } while (0)

static void fill(struct model *model, const struct model_task *task, const struct conclusion *conclusion) {
  struct event *want = &model->want.event;
  switch (conclusion->state) {
    case TASK_WAITING:
      FILL(want->body.task_requeued);
      want->body.task_requeued.delay_ms = conclusion->delay_ms;
      want->body.task_requeued.next_available_at = conclusion->next_at;
      break;
    case TASK_SUCCEEDED:
      FILL(want->body.task_succeeded);
      break;
    case TASK_FAILED:
      FILL(want->body.task_failed);
      want->body.task_failed.delay_ms = conclusion->delay_ms;
      want->body.task_failed.next_available_at = conclusion->next_at;
      break;
    case TASK_CANCELLED:
      FILL(want->body.task_cancelled);
      break;
    default:
      FILL(want->body.task_review_required);
      want->body.task_review_required.delay_ms = conclusion->delay_ms;
      want->body.task_review_required.next_available_at = conclusion->next_at;
      break;
  }
}

enum decision model_conclude(struct model *model, struct model_task *task, enum happening happening) {
  struct conclusion conclusion = conclude(model, task, happening);
  if (happening == HAPPENED_UNSTARTED_END && model->mistake == MISTAKE_EXPIRY_COSTS_NOTHING) task->attempt_count--;
  (void)model_foresee_task(model, event_of(conclusion.state), task, task->revision + 1);
  fill(model, task, &conclusion);
  model_met(model);
  model_attempt_over(model, task);
  task->uncertain = conclusion.uncertain;
  if (conclusion.state == TASK_WAITING) task->available_at = conclusion.next_at;
  model_move(model, task, conclusion.state);
  return conclusion.decision;
}

void model_attempt_over(struct model *model, struct model_task *task) {
  if (id_is_zero(&task->attempt_id)) return;
  model->held[task->worker_application][task->instance]--;
  model->key_held[task->queue][task->concurrency_key]--;
  task->attempt_id = (struct id){{0}};
  task->worker_application = task->instance = 0;
  task->lease_ms = 0;
  task->lease_until = task->live_until = task->started_at = task->attempt_deadline_at = 0;
}

void model_read_ended(struct model *model, struct model_task *task, enum attempt_state state, enum ended_by ended_by) {
  (void)model_foresee_task(model, EVENT_attempt_ended, task, task->revision);
  struct event_attempt_ended *want = &model->want.event.body.attempt_ended;
  want->attempt_id = task->attempt_id;
  want->epoch = task->epoch;
  want->state = state;
  want->ended_by = ended_by;
  want->lease_until = task->live_until;
  model_met(model);
}

/* ---- new tasks ---- */

enum status model_judge_times(const struct model *model, const struct request *request, int64_t *ret_available_at,
                              int64_t *ret_deadline_at) {
  int64_t available_at = request->available_at != 0 ? request->available_at : model->now_us;
  int64_t deadline_at = model_after_ms(model->now_us, request->task_timeout_ms);
  int64_t start = request->start_deadline_at;
  if (request->task_timeout_ms < 1 || request->task_timeout_ms > 2592000000) return STATUS_INVALID_ARGUMENT;
  if (available_at < model->now_us - 1000000 || available_at >= deadline_at) return STATUS_INVALID_ARGUMENT;
  if (start != 0 && (start <= model->now_us || start < available_at || start > deadline_at)) return STATUS_INVALID_ARGUMENT;
  *ret_available_at = available_at;
  *ret_deadline_at = deadline_at;
  return STATUS_OK;
}

enum status model_judge_room(const struct model *model, unsigned queue, unsigned application) {
  const uint64_t *counts = model->queues[queue].counts;
  uint64_t unfinished = counts[TASK_WAITING] + counts[TASK_LEASED] + counts[TASK_RUNNING] + counts[TASK_NEEDS_REVIEW];
  uint64_t most = model->queues[queue].limits[LIMIT_UNFINISHED];
  if (most != 0 && unfinished >= most) return STATUS_QUEUE_FULL;
  most = model->applications[application].max_unfinished;
  if (most != 0 && model->applications[application].unfinished >= most) return STATUS_APPLICATION_FULL;
  return STATUS_OK;
}
