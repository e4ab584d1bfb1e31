/* Owns what the model says about attempts: start, renewal, report, release, and their end without a word. */
#include <string.h>

#include "sim/model_internal.h"

static void show_lease(const struct model *model, const struct model_task *task, const struct id *attempt_id,
                       struct expected *expected) {
  bool current = model_is_held(task->state) && id_equal(&task->attempt_id, attempt_id);
  expected->lease_active = current && model_lease_is_good(model, task);
  expected->lease_expires_at = expected->lease_active ? task->live_until : 0;
}

/* The task as it is now, beside the answer. */
static void show(const struct model *model, const struct model_task *task, const struct request *request,
                 struct expected *expected) {
  expected->has_task = true;
  expected->task = *task;
  show_lease(model, task, &request->attempt_id, expected);
}

static void repeat(const struct model *model, const struct model_task *task, const struct request *request,
                   const struct model_receipt *receipt, struct expected *expected) {
  expected->status = STATUS_OK;
  expected->deduplicated = true;
  expected->evidence = receipt->evidence;
  expected->applied = !receipt->evidence;
  expected->disposition = receipt->disposition;
  expected->has_task = true;
  expected->task = receipt->then;
  show_lease(model, task, &request->attempt_id, expected);
}

/* The refusals that all four have in common, in their order. */
static enum status judge_reference(const struct model *model, const struct model_task *task, const struct request *request) {
  if (model_is_over(task->state)) return STATUS_LEASE_LOST;
  if (!model_is_held(task->state) || !id_equal(&task->attempt_id, &request->attempt_id)) return STATUS_LEASE_LOST;
  if (task->worker_application != who_application(request->who)) return STATUS_NOT_FOUND;
  if (task->epoch != request->epoch) return STATUS_LEASE_LOST;
  (void)model;
  return STATUS_OK;
}

static struct model_receipt *keep(struct model *model, const struct request *request, const struct model_task *task,
                                  enum decision disposition) {
  struct model_receipt *receipt = model_receipt_add(model, request);
  receipt->then = *task;
  receipt->disposition = disposition;
  return receipt;
}

/* It was done: the answer, and what the worker is told when it drains. */
static void done(struct model *model, struct model_task *task, const struct request *request, enum decision disposition,
                 struct model_session *holder, struct expected *expected) {
  expected->applied = true;
  expected->disposition = disposition;
  show(model, task, request, expected);
  (void)keep(model, request, task, disposition);
  if (holder != NULL && !model_is_held(task->state)) model_tell_drained(model, holder);
}

/* ---- start ---- */

static enum status judge_start(const struct model *model, const struct model_task *task, const struct request *request) {
  enum status status = judge_reference(model, task, request);
  if (status != STATUS_OK) return status;
  if (model->now_us >= task->deadline_at) return STATUS_STATE_CONFLICT;
  if (task->state == TASK_LEASED && task->start_deadline_at != 0 && model->now_us >= task->start_deadline_at)
    return STATUS_STATE_CONFLICT;
  if (!model_lease_is_good(model, task)) return STATUS_LEASE_LOST;
  if (task->state == TASK_RUNNING || task->cancel_requested_at != 0) return STATUS_STATE_CONFLICT;
  return STATUS_OK;
}

static void take_start(struct model *model, struct model_task *task, const struct request *request, struct expected *expected) {
  expected->status = judge_start(model, task, request);
  if (expected->status != STATUS_OK) {
    show(model, task, request, expected);
    return;
  }
  (void)model_foresee_task(model, EVENT_task_started, task, task->revision + 1);
  struct event_task_started *want = &model->want.event.body.task_started;
  want->attempt_id = task->attempt_id;
  want->epoch = task->epoch;
  want->attempt_deadline_at = model_earlier(model_after_ms(model->now_us, task->attempt_timeout_ms), task->deadline_at);
  want->lease_until = task->live_until;
  model_met(model);
  task->started_at = model->now_us;
  task->attempt_deadline_at = want->attempt_deadline_at;
  task->lease_until = task->live_until = model_earlier(task->live_until, task->attempt_deadline_at);
  model_move(model, task, TASK_RUNNING);
  done(model, task, request, DECISION_NONE, NULL, expected);
}

/* ---- renewal ---- */

static void take_renewal(struct model *model, struct model_task *task, const struct request *request,
                         struct expected *expected) {
  expected->status = judge_reference(model, task, request);
  if (expected->status == STATUS_OK && !model_lease_is_good(model, task)) expected->status = STATUS_LEASE_LOST;
  if (expected->status == STATUS_OK) {
    int64_t until = model_earlier(model_after_ms(model->now_us, task->lease_ms), task->deadline_at);
    if (task->state == TASK_RUNNING) until = model_earlier(until, task->attempt_deadline_at);
    else if (task->start_deadline_at != 0) until = model_earlier(until, task->start_deadline_at);
    if (until > task->live_until) task->live_until = until;
    expected->applied = true;
    model_touch(model, task);
  }
  show(model, task, request, expected);
}

/* ---- report ---- */

static void fill_error(const struct request *request, struct bytes *code, struct bytes *details, struct bytes *result) {
  if (request->outcome == OUTCOME_SUCCEEDED) {
    *result = text_result(request->text);
    return;
  }
  *code = bytes_text("BROKEN");
  *details = text_details(request->text);
}

static void take_evidence(struct model *model, struct model_task *task, struct model_attempt *attempt,
                          const struct request *request, enum evidence_reason reason, struct expected *expected) {
  if (attempt->evidence == attempt_evidence_max) {
    expected->status = STATUS_STATE_CONFLICT;
    show(model, task, request, expected);
    return;
  }
  attempt->evidence++;
  const struct event *have = model_foresee_task(model, EVENT_evidence_recorded, task, task->revision);
  struct event_evidence_recorded *want = &model->want.event.body.evidence_recorded;
  want->evidence_id = have->body.evidence_recorded.evidence_id;
  want->attempt_id = request->attempt_id;
  want->epoch = request->epoch;
  want->message_id = message_id_of(request->key);
  want->reason = reason;
  want->outcome = request->outcome;
  want->retryable = request->retryable;
  fill_error(request, &want->error_code, &want->error_details, &want->result);
  model_met(model);
  expected->status = STATUS_OK;
  expected->evidence = true;
  show(model, task, request, expected);
  keep(model, request, task, DECISION_NONE)->evidence = true;
}

static struct model_attempt *attempt_of(struct model *model, const struct model_task *task, const struct id *attempt_id) {
  for (uint32_t i = 0; i < task->epoch && i < model_attempts_max; i++)
    if (id_equal(&model->attempts[task->number][i].id, attempt_id)) return &model->attempts[task->number][i];
  return NULL;
}

/* A report that has no authority. */
static void take_late_report(struct model *model, struct model_task *task, const struct request *request,
                             struct expected *expected) {
  struct model_attempt *attempt = attempt_of(model, task, &request->attempt_id);
  if (attempt == NULL || attempt->application != who_application(request->who)) {
    expected->status = STATUS_NOT_FOUND;
    return;
  }
  if (attempt->report != 0) {
    const struct model_receipt *first = &model->receipts[attempt->report];
    if (request_means_the_same(&first->request, request)) repeat(model, task, request, first, expected);
    else take_evidence(model, task, attempt, request, EVIDENCE_CONFLICTING_REPORT, expected);
    return;
  }
  enum evidence_reason reason = EVIDENCE_LEASE_LOST;
  if (model_is_over(task->state)) reason = EVIDENCE_TASK_ENDED;
  else if (request->epoch < task->epoch) reason = EVIDENCE_STALE_EPOCH;
  take_evidence(model, task, attempt, request, reason, expected);
}

static enum happening happening_of(const struct request *request) {
  switch (request->outcome) {
    case OUTCOME_SUCCEEDED:
      return HAPPENED_SUCCESS;
    case OUTCOME_FAILED:
      return request->retryable ? HAPPENED_RETRYABLE_FAILURE : HAPPENED_FAILURE;
    case OUTCOME_CANCELLED:
      return HAPPENED_CANCELLED;
    default:
      return HAPPENED_UNKNOWN;
  }
}

static void take_report(struct model *model, struct model_task *task, const struct request *request,
                        struct expected *expected) {
  struct model_session *holder = model_holder(model, task);
  struct model_attempt *attempt = attempt_of(model, task, &task->attempt_id);
  (void)model_foresee_task(model, EVENT_attempt_result, task, task->revision);
  struct event_attempt_result *want = &model->want.event.body.attempt_result;
  want->attempt_id = task->attempt_id;
  want->epoch = task->epoch;
  want->message_id = message_id_of(request->key);
  want->outcome = request->outcome;
  want->retryable = request->retryable;
  fill_error(request, &want->error_code, &want->error_details, &want->result);
  want->lease_until = task->live_until;
  want->report_identity = model->have->body.attempt_result.report_identity; /* a keyed digest; its use is seen in repeats */
  model_met(model);
  enum decision decision = model_conclude(model, task, happening_of(request));
  task->has_result = task->state == TASK_SUCCEEDED;
  task->has_error = task->state == TASK_FAILED;
  done(model, task, request, decision, holder, expected);
  if (attempt != NULL) attempt->report = model->receipt_count;
}

static void take_finish(struct model *model, struct model_task *task, const struct request *request,
                        struct expected *expected) {
  expected->status = judge_reference(model, task, request);
  if (expected->status == STATUS_OK && !model_lease_is_good(model, task)) expected->status = STATUS_LEASE_LOST;
  if (expected->status == STATUS_LEASE_LOST) {
    take_late_report(model, task, request, expected);
    return;
  }
  bool nothing_to_confirm = request->outcome == OUTCOME_CANCELLED && task->cancel_requested_at == 0;
  if (expected->status == STATUS_OK && request->retryable && request->outcome != OUTCOME_FAILED)
    expected->status = STATUS_INVALID_ARGUMENT;
  if (expected->status == STATUS_OK && (task->state != TASK_RUNNING || nothing_to_confirm))
    expected->status = STATUS_STATE_CONFLICT;
  if (expected->status == STATUS_OK) take_report(model, task, request, expected);
  else show(model, task, request, expected);
}

/* ---- release ---- */

static void take_release(struct model *model, struct model_task *task, const struct request *request,
                         struct expected *expected) {
  struct model_session *holder = model_holder(model, task);
  expected->status = judge_reference(model, task, request);
  if (expected->status == STATUS_OK && !model_lease_is_good(model, task)) expected->status = STATUS_LEASE_LOST;
  if (expected->status == STATUS_OK && task->state == TASK_RUNNING) expected->status = STATUS_STATE_CONFLICT;
  if (expected->status != STATUS_OK) {
    show(model, task, request, expected);
    return;
  }
  model_read_ended(model, task, ATTEMPT_EXPIRED, ENDED_RELEASED);
  enum decision decision = model_conclude(model, task, HAPPENED_RELEASE);
  done(model, task, request, decision, holder, expected);
}

void model_attempt_request(struct model *model, const struct request *request, struct expected *expected) {
  struct model_task *task = model_task_there(model, &request->task_id);
  if (task == NULL || !who_reaches(request->who, task->queue)) {
    expected->status = STATUS_NOT_FOUND;
    return;
  }
  if (request->kind == COMMAND_RENEW) {
    take_renewal(model, task, request, expected);
    return;
  }
  const struct model_receipt *receipt = model_receipt_find(model, request);
  if (receipt != NULL && request_means_the_same(&receipt->request, request)) repeat(model, task, request, receipt, expected);
  else if (receipt != NULL) expected->status = STATUS_IDEMPOTENCY_CONFLICT;
  else if (request->kind == COMMAND_START) take_start(model, task, request, expected);
  else if (request->kind == COMMAND_FINISH) take_finish(model, task, request, expected);
  else take_release(model, task, request, expected);
}

/* ---- what Orbit does by itself ---- */

static enum ended_by end_of(const struct model_task *task) {
  int64_t first = model_earlier(task->live_until, model_earlier(task->attempt_deadline_at, task->deadline_at));
  if (task->deadline_at == first) return ENDED_DEADLINE;
  return task->attempt_deadline_at == first ? ENDED_ATTEMPT_TIMEOUT : ENDED_LEASE_EXPIRED;
}

static void expire_held(struct model *model, struct model_task *task) {
  struct model_session *holder = model_holder(model, task);
  bool running = task->state == TASK_RUNNING;
  struct id attempt_id = task->attempt_id;
  enum ended_by ended_by = running ? end_of(task) : ENDED_LEASE_EXPIRED;
  model_read_ended(model, task, running ? ATTEMPT_UNKNOWN : ATTEMPT_EXPIRED, ended_by);
  (void)model_conclude(model, task, running ? HAPPENED_UNKNOWN : HAPPENED_UNSTARTED_END);
  if (holder == NULL) return;
  model_tell(model, TOLD_ENDED, holder->session, task, &attempt_id, ended_by);
  model_tell_drained(model, holder);
}

static bool is_own_act(const struct model *model, const struct event *event) {
  return id_equal(&event->common.actor, &model->node_id) && event->type != EVENT_task_leased &&
         event->type != EVENT_task_accepted && event->type != EVENT_schedule_skipped && event->type != EVENT_retention_advanced;
}

void model_expire(struct model *model) {
  while (model_is_well(model) && model->seen.at < model->seen.count && is_own_act(model, &model->seen.events[model->seen.at])) {
    const struct event *event = &model->seen.events[model->seen.at];
    struct model_task *task = model_task(model, &event->stream);
    model_operation_begin(model, &model->node_id, NULL);
    if (task == NULL || (model_is_held(task->state) ? model_lease_is_good(model, task) : model_due(task) > model->now_us)) {
      model_complain(model, "seq %llu: Orbit ends task %s before its time", (unsigned long long)event->seq,
                     id_text(&event->stream).text);
      return;
    }
    if (model_is_held(task->state)) expire_held(model, task);
    else (void)model_conclude(model, task, HAPPENED_WAITED_TOO_LONG);
  }
  for (uint32_t i = 0; i < model->unfinished_count && !model->starved; i++) {
    const struct model_task *task = &model->tasks[model->unfinished[i]];
    bool over = model_is_held(task->state) ? !model_lease_is_good(model, task) : model_due(task) <= model->now_us;
    if (over) model_complain(model, "task %s should have ended by now: its time has come", id_text(&task->id).text);
  }
}
