/* Owns what the model says about producers and reviewers. */
#include <string.h>

#include "sim/model_internal.h"

/* ---- submission ---- */

struct model_task *model_accept(struct model *model, const struct request *policy, unsigned application,
                                const struct model_task *retry_of, const struct id *audit_id, int64_t available_at,
                                int64_t start_deadline_at, int64_t deadline_at) {
  static const struct id nobody = {{0xFF}};
  bool there = model_next_is(model, EVENT_task_accepted);
  struct id id = there ? model->seen.events[model->seen.at].stream : nobody;
  if (there && (id_is_zero(&id) || model_task(model, &id) != NULL))
    model_complain(model, "a new task has the id of another: %s", id_text(&id).text);
  if (there && model->task_count != 0 && id_compare(&model->tasks[model->task_count - 1].id, &id) >= 0)
    model_complain(model, "the id of a new task is not above all others: %s", id_text(&id).text);
  struct id parent = retry_of != NULL ? retry_of->id : (struct id){{0}};
  struct model_task *task = model_task_add(model, &id); /* retry_of may have moved with it */
  const struct event *have = model_foresee(model, EVENT_task_accepted, &id, 1, 0);
  struct event_task_accepted *want = &model->want.event.body.task_accepted;
  want->namespace_id = model->namespace_id;
  want->application_id = model->applications[application].id;
  want->queue_id = model->queues[policy->queue].id;
  want->handler = text_handler(policy->handler);
  want->handler_version = bytes_text("v1");
  want->payload_version = bytes_text("p1");
  want->payload = text_payload(policy->text);
  want->concurrency_key = text_concurrency_key(policy->concurrency_key);
  want->business_key = text_business_key(policy->business_key);
  want->priority = policy->priority;
  want->available_at = available_at;
  want->start_deadline_at = start_deadline_at;
  want->deadline_at = deadline_at;
  want->recovery_safety = policy->idempotent ? RECOVERY_IDEMPOTENT : RECOVERY_RECONCILE_ONLY;
  want->max_attempts = policy->max_attempts;
  want->initial_delay_ms = policy->initial_delay_ms;
  want->max_delay_ms = policy->max_delay_ms;
  want->attempt_timeout_ms = policy->attempt_timeout_ms;
  want->retry_of = parent;
  if (policy->schedule != 0) want->schedule_id = model->schedules[policy->schedule - 1].id;
  if (audit_id != NULL) want->audit_id = *audit_id;
  model_met(model);
  *task = (struct model_task){.id = id,
                              .number = task->number,
                              .schedule = policy->schedule,
                              .queue = policy->queue,
                              .handler = policy->handler,
                              .concurrency_key = policy->concurrency_key,
                              .business_key = policy->business_key,
                              .priority = policy->priority,
                              .application = (uint8_t)application,
                              .text = policy->text,
                              .idempotent = policy->idempotent,
                              .max_attempts = policy->max_attempts,
                              .initial_delay_ms = policy->initial_delay_ms,
                              .max_delay_ms = policy->max_delay_ms,
                              .attempt_timeout_ms = policy->attempt_timeout_ms,
                              .retry_of = parent,
                              .last_seq = have->seq,
                              .created_at = model->now_us,
                              .available_at = available_at,
                              .start_deadline_at = start_deadline_at,
                              .deadline_at = deadline_at};
  model_move(model, task, TASK_WAITING);
  model_touch(model, task);
  return task;
}

void model_submit(struct model *model, const struct request *request, struct expected *expected) {
  unsigned application = who_application(request->who);
  int64_t available_at = 0, deadline_at = 0;
  if (!who_reaches(request->who, request->queue)) {
    expected->status = STATUS_NOT_FOUND;
    return;
  }
  const struct model_receipt *receipt = model_receipt_find(model, request);
  if (receipt != NULL && !request_means_the_same(&receipt->request, request)) expected->status = STATUS_IDEMPOTENCY_CONFLICT;
  if (receipt != NULL) {
    expected->deduplicated = expected->has_task = expected->status == STATUS_OK;
    expected->task = receipt->then;
    return;
  }
  expected->status = model->disk_full ? STATUS_UNAVAILABLE : model_judge_times(model, request, &available_at, &deadline_at);
  if (expected->status == STATUS_OK) expected->status = model_judge_room(model, request->queue, application);
  if (expected->status != STATUS_OK) return;
  const struct model_task *task =
      model_accept(model, request, application, NULL, NULL, available_at, request->start_deadline_at, deadline_at);
  expected->created = expected->has_task = true;
  expected->task = *task;
  model_receipt_add(model, request)->then = *task;
}

/* ---- what people do to a task ---- */

/* Reach and receipt. True: it is to be judged. */
static bool take_up(struct model *model, const struct request *request, struct model_task **ret_task,
                    struct expected *expected) {
  struct model_task *task = model_task_there(model, &request->task_id);
  if (task == NULL || !who_reaches(request->who, task->queue)) {
    expected->status = STATUS_NOT_FOUND;
    return false;
  }
  *ret_task = task;
  const struct model_receipt *receipt = model_receipt_find(model, request);
  if (receipt == NULL) return true;
  if (!request_means_the_same(&receipt->request, request)) {
    expected->status = STATUS_IDEMPOTENCY_CONFLICT;
    return false;
  }
  expected->deduplicated = expected->has_task = true;
  expected->task = receipt->then;
  expected->applied = receipt->applied;
  expected->audit_id = receipt->audit_id;
  return false;
}

static void finish(struct model *model, const struct request *request, const struct model_task *shown, bool applied,
                   const struct id *audit_id, struct expected *expected) {
  struct model_receipt *receipt = model_receipt_add(model, request);
  receipt->then = *shown;
  receipt->applied = applied;
  receipt->audit_id = *audit_id;
  expected->created = expected->has_task = true;
  expected->task = *shown;
  expected->applied = applied;
  expected->audit_id = *audit_id;
}

/* audit.recorded behind what it speaks of; audit_id is what was said before. */
static void read_audit(struct model *model, struct model_task *task, uint64_t revision, const char *action,
                       const struct request *request, bool with_evidence, struct bytes before, struct bytes after,
                       const struct id *audit_id) {
  const struct event *have = model_foresee_task(model, EVENT_audit_recorded, task, revision);
  struct event_audit_recorded *want = &model->want.event.body.audit_recorded;
  want->audit_id = *audit_id;
  want->action = bytes_text(action);
  want->target_id = task->id;
  want->namespace_id = model->namespace_id;
  want->reason = text_reason(request->text);
  if (with_evidence) want->evidence_ref = text_evidence(request->text);
  want->before = before;
  want->after = after;
  model_met(model);
  /* Ids of audit records rise with the log: milliseconds of the commit first, the event's seq last. */
  uint64_t seq = 0;
  for (unsigned i = 8; i < id_bytes; i++) seq = seq << 8 | audit_id->bytes[i];
  if (model_is_well(model) && seq != have->seq) model_complain(model, "an audit id does not name its event");
}

static struct bytes standing(struct model *model, enum task_state state, uint64_t revision) {
  return model_text(model, "{\"state\":\"%s\",\"revision\":\"%llu\"}", task_state_text(state), (unsigned long long)revision);
}

/* ---- cancel ---- */

static void read_request(struct model *model, struct model_task *task, const struct request *request, uint64_t revision,
                         bool applied, struct id *ret_audit_id) {
  const struct event *have = model_foresee_task(model, EVENT_task_cancel_requested, task, revision);
  struct event_task_cancel_requested *want = &model->want.event.body.task_cancel_requested;
  want->reason = text_reason(request->text);
  *ret_audit_id = want->audit_id = have->body.task_cancel_requested.audit_id;
  want->applied = applied;
  model_met(model);
}

void model_cancel(struct model *model, const struct request *request, struct expected *expected) {
  struct model_task *task = NULL;
  if (!take_up(model, request, &task, expected)) return;
  if (model_is_over(task->state) || (request->expected_revision != 0 && request->expected_revision != task->revision)) {
    expected->status = STATUS_STATE_CONFLICT;
    return;
  }
  if (task->cancels == cancel_requests_max) {
    expected->status = STATUS_STATE_CONFLICT;
    return;
  }
  task->cancels++;
  enum task_state before = task->state;
  uint64_t revision = task->revision;
  struct model_session *holder = model_holder(model, task);
  struct id attempt_id = task->attempt_id, audit_id;
  bool applied = task->cancel_requested_at == 0, ends = before == TASK_WAITING || before == TASK_LEASED;
  read_request(model, task, request, revision + (!ends && applied), applied, &audit_id);
  if (applied) task->cancel_requested_at = model->now_us;
  if (before == TASK_LEASED) model_read_ended(model, task, ATTEMPT_REVOKED, ENDED_REVOKED);
  if (ends) {
    (void)model_conclude(model, task, HAPPENED_CANCEL);
  } else if (applied) {
    task->revision++;
    task->updated_at = model->now_us;
  }
  model->want.texts_used = 0;
  struct bytes was = standing(model, before, revision);
  struct bytes is = model_text(model, "{\"state\":\"%s\",\"revision\":\"%llu\",\"applied\":%s}", task_state_text(task->state),
                               (unsigned long long)task->revision, applied ? "true" : "false");
  read_audit(model, task, task->revision, "task.cancel", request, false, was, is, &audit_id);
  finish(model, request, task, applied, &audit_id, expected);
  if (holder == NULL || !applied) return;
  if (before == TASK_RUNNING) model_tell(model, TOLD_CANCEL, holder->session, task, &attempt_id, ENDED_NONE);
  if (before != TASK_LEASED) return;
  model_tell(model, TOLD_ENDED, holder->session, task, &attempt_id, ENDED_REVOKED);
  model_tell_drained(model, holder);
}

/* ---- review ---- */

void model_review(struct model *model, const struct request *request, struct expected *expected) {
  struct model_task *task = NULL;
  if (!take_up(model, request, &task, expected)) return;
  if (task->state != TASK_NEEDS_REVIEW || (request->expected_revision != 0 && request->expected_revision != task->revision)) {
    expected->status = STATUS_STATE_CONFLICT;
    return;
  }
  uint64_t revision = task->revision;
  enum task_state state = request->outcome == OUTCOME_SUCCEEDED ? TASK_SUCCEEDED : TASK_FAILED;
  const struct event *have = model_foresee_task(model, EVENT_task_reviewed, task, revision + 1);
  struct event_task_reviewed *want = &model->want.event.body.task_reviewed;
  want->state = state;
  want->outcome = request->outcome;
  want->result = text_result(request->text);
  want->result_digest = have->body.task_reviewed.result_digest; /* the codec's; told again in the audit */
  want->execution_settled = true;
  struct id audit_id = want->audit_id = have->body.task_reviewed.audit_id;
  if (task->epoch != 0) want->attempt_id = model->attempts[task->number][task->epoch - 1].id;
  want->node_id = model->node_id;
  struct id digest = want->result_digest;
  model_met(model);
  task->uncertain = false;
  task->has_result = true;
  model_move(model, task, state);
  model->want.texts_used = 0;
  struct bytes was = standing(model, TASK_NEEDS_REVIEW, revision);
  struct bytes is = model_text(model,
                               "{\"state\":\"%s\",\"revision\":\"%llu\",\"effect_uncertain\":false,\"execution_settled\":true,"
                               "\"result_digest\":\"xxh3-128:%s\"}",
                               task_state_text(state), (unsigned long long)task->revision, id_text(&digest).text);
  read_audit(model, task, task->revision, "task.review", request, true, was, is, &audit_id);
  finish(model, request, task, false, &audit_id, expected);
}

/* ---- retry by hand ---- */

static enum status judge_retry(const struct model *model, const struct model_task *task, const struct request *request,
                               int64_t *ret_available_at, int64_t *ret_deadline_at) {
  bool again = task->retried && model->mistake != MISTAKE_SECOND_SUCCESSOR;
  if (model->disk_full) return STATUS_UNAVAILABLE;
  if (task->state != TASK_FAILED && task->state != TASK_CANCELLED) return STATUS_STATE_CONFLICT;
  if (task->schedule != 0) return STATUS_STATE_CONFLICT; /* the schedule makes the next one */
  if (task->uncertain || again) return STATUS_STATE_CONFLICT;
  if (request->expected_revision != 0 && request->expected_revision != task->revision) return STATUS_STATE_CONFLICT;
  if (request->task_timeout_ms < task->attempt_timeout_ms) return STATUS_INVALID_ARGUMENT;
  enum status status = model_judge_times(model, request, ret_available_at, ret_deadline_at);
  return status == STATUS_OK ? model_judge_room(model, task->queue, task->application) : status;
}

static struct request policy_of(const struct model_task *task) {
  return (struct request){.kind = COMMAND_SUBMIT,
                          .queue = task->queue,
                          .handler = task->handler,
                          .concurrency_key = task->concurrency_key,
                          .business_key = task->business_key,
                          .priority = task->priority,
                          .idempotent = task->idempotent,
                          .text = task->text,
                          .max_attempts = task->max_attempts,
                          .initial_delay_ms = task->initial_delay_ms,
                          .max_delay_ms = task->max_delay_ms,
                          .attempt_timeout_ms = task->attempt_timeout_ms};
}

void model_retry(struct model *model, const struct request *request, struct expected *expected) {
  struct model_task *task = NULL;
  int64_t available_at = 0, deadline_at = 0;
  if (!take_up(model, request, &task, expected)) return;
  expected->status = judge_retry(model, task, request, &available_at, &deadline_at);
  if (expected->status != STATUS_OK) return;
  const struct event *have = model_foresee_task(model, EVENT_task_retried, task, task->revision);
  struct event_task_retried *want = &model->want.event.body.task_retried;
  struct id child_id = want->retry_task_id = have->body.task_retried.retry_task_id;
  struct id audit_id = want->audit_id = have->body.task_retried.audit_id;
  model_met(model);
  task->retried = true;
  model->want.texts_used = 0;
  struct bytes was = standing(model, task->state, task->revision);
  struct bytes is =
      model_text(model, "{\"source_task_id\":\"%s\",\"retry_task_id\":\"%s\",\"safe_to_retry\":true,\"task_timeout_ms\":%llu}",
                 id_text(&task->id).text, id_text(&child_id).text, (unsigned long long)request->task_timeout_ms);
  read_audit(model, task, task->revision, "task.retry", request, true, was, is, &audit_id);
  struct request policy = policy_of(task);
  const struct model_task *child =
      model_accept(model, &policy, task->application, task, &audit_id, available_at, request->start_deadline_at, deadline_at);
  if (!id_equal(&child->id, &child_id)) model_complain(model, "the successor is another than the one that was named");
  finish(model, request, child, false, &audit_id, expected);
}
