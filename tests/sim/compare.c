/* Owns the comparison of what the product says with what the model expects: answers, tasks, queues, messages to workers. */
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"

/* ---- tasks ---- */

/* One line a field: the first that differs is told. */
struct pair {
  const char *name;
  uint64_t want, have;
};

static bool compare_pairs(struct sim *sim, const char *what, const struct id *id, const struct pair *pairs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (pairs[i].want == pairs[i].have) continue;
    model_complain(&sim->model, "%s %s: %s should be %llu, is %llu", what, id_text(id).text, pairs[i].name,
                   (unsigned long long)pairs[i].want, (unsigned long long)pairs[i].have);
    return false;
  }
  return true;
}
#define COMPARE(sim, what, id, pairs) compare_pairs(sim, what, id, pairs, sizeof(pairs) / sizeof(pairs)[0])

static void compare_attempt(struct sim *sim, const struct model_task *want, const struct attempt *attempt, enum depth depth) {
  struct id instance = instance_id_of(want->instance);
  bool held = model_is_held(want->state);
  const struct pair pairs[] = {
      {"attempt's id", 1, id_equal(&want->attempt_id, &attempt->id)},
      {"attempt's worker", 1,
       !held || (id_equal(&instance, &attempt->instance_id) &&
                 id_equal(&sim->model.applications[want->worker_application].id, &attempt->application_id))},
      {"attempt's started_at", (uint64_t)want->started_at, (uint64_t)attempt->started_at},
      {"attempt_deadline_at", (uint64_t)want->attempt_deadline_at, (uint64_t)attempt->attempt_deadline_at},
      {"lease_ms", want->lease_ms, attempt->lease_ms},
      {"lease_until", (uint64_t)want->lease_until,
       depth >= DEPTH_FOLDED ? (uint64_t)attempt->lease_until : (uint64_t)want->lease_until},
      {"live_until", (uint64_t)want->live_until,
       depth == DEPTH_LIVE ? (uint64_t)attempt->live_until : (uint64_t)want->live_until},
  };
  (void)COMPARE(sim, "task", &want->id, pairs);
}

void sim_compare_task(struct sim *sim, const struct model_task *want, const struct task *have, const struct attempt *attempt,
                      enum depth depth) {
  static const enum recovery_safety safeties[] = {RECOVERY_RECONCILE_ONLY, RECOVERY_IDEMPOTENT};
  const struct pair pairs[] = {
      {"id", 1, id_equal(&want->id, &have->id)},
      {"state", want->state, have->state},
      {"revision", want->revision, have->revision},
      {"epoch", want->epoch, have->epoch},
      {"attempt_count", want->attempt_count, have->attempt_count},
      {"max_attempts", want->max_attempts, have->max_attempts},
      {"effect_uncertain", want->uncertain, have->effect_uncertain},
      {"cancel_requested_at", (uint64_t)want->cancel_requested_at, (uint64_t)have->cancel_requested_at},
      {"created_at", (uint64_t)want->created_at, (uint64_t)have->created_at},
      {"updated_at", (uint64_t)want->updated_at, (uint64_t)have->updated_at},
      {"available_at", (uint64_t)want->available_at, (uint64_t)have->available_at},
      {"start_deadline_at", (uint64_t)want->start_deadline_at, (uint64_t)have->start_deadline_at},
      {"deadline_at", (uint64_t)want->deadline_at, (uint64_t)have->deadline_at},
      {"completed_at", (uint64_t)want->completed_at, (uint64_t)task_completed_at(have)},
      {"recovery_safety", safeties[want->idempotent], have->recovery_safety},
      {"priority", want->priority, have->priority},
      {"retried", want->retried, have->retried},
      {"scheduled", want->schedule != 0, have->scheduled},
      {"is_retry", !id_is_zero(&want->retry_of), have->is_retry},
      {"whether it has a result", want->has_result, task_result_seq(have) != 0},
      {"whether it has an error", want->has_error, task_error_seq(have) != 0},
      {"initial_delay_ms", want->initial_delay_ms, have->initial_delay_ms},
      {"max_delay_ms", want->max_delay_ms, have->max_delay_ms},
      {"attempt_timeout_ms", want->attempt_timeout_ms, have->attempt_timeout_ms},
      {"last event", want->last_seq, have->last_seq},
  };
  if (COMPARE(sim, "task", &want->id, pairs) && attempt != NULL) compare_attempt(sim, want, attempt, depth);
}

void sim_compare_queue(struct sim *sim, const struct model_queue *want, const struct queue *have, bool counts) {
  const struct pair pairs[] = {
      {"id", 1, id_equal(&want->id, &have->id)},
      {"revision", want->revision, have->revision},
      {"paused", want->paused, have->paused},
      {"max_unfinished", want->limits[LIMIT_UNFINISHED], have->max_unfinished},
      {"max_running", want->limits[LIMIT_RUNNING], have->max_running},
      {"key_concurrency", want->limits[LIMIT_KEY], have->key_concurrency},
      {"rate tasks", want->limits[LIMIT_RATE_TASKS], have->rate.tasks},
      {"rate per_ms", want->limits[LIMIT_RATE_PER_MS], have->rate.per_ms},
      {"rate burst", want->limits[LIMIT_RATE_BURST], have->rate.burst},
      {"lease_ms", want->limits[LIMIT_LEASE_MS], have->lease_ms},
      {"counts", 0, counts && memcmp(want->counts, have->counts, sizeof want->counts) != 0},
      {"rate_at", (uint64_t)(counts ? want->rate_at : have->rate_at), (uint64_t)have->rate_at},
  };
  (void)COMPARE(sim, "queue", &want->id, pairs);
}

/* ---- answers ---- */

static void compare_worker_result(struct sim *sim, const struct request *request, const struct expected *expected,
                                  const struct answer *answer) {
  const struct worker_result *result = &answer->as.worker;
  bool waiting = expected->has_task && expected->task.state == TASK_WAITING;
  const struct pair pairs[] = {
      {"applied", expected->applied, result->applied},
      {"deduplicated", expected->deduplicated, result->deduplicated},
      {"evidence", expected->evidence, result->evidence},
      {"disposition", expected->disposition, result->disposition},
      {"whether a task is shown", expected->has_task, result->has_task},
      {"state", expected->task.state, result->task_state},
      {"revision", expected->task.revision, result->task_revision},
      {"available_at", waiting ? (uint64_t)expected->task.available_at : 0, (uint64_t)result->available_at},
      {"lease.active", expected->lease_active, result->lease_active},
      {"lease.expires_at", (uint64_t)expected->lease_expires_at, (uint64_t)result->lease_expires_at},
  };
  (void)COMPARE(sim, command_kind_text(request->kind), &request->task_id, pairs);
}

static void compare_task_answer(struct sim *sim, const struct request *request, const struct expected *expected,
                                const struct answer *answer) {
  bool retry = request->kind == COMMAND_RETRY;
  const struct pair pairs[] = {
      {"created", expected->created, answer->created},
      {"deduplicated", expected->deduplicated, answer->deduplicated},
      {"applied", expected->applied, answer->applied},
      {"audit_id", 1, id_equal(&expected->audit_id, &answer->audit_id)},
      {"source_task_id", 1, !retry || id_equal(&request->task_id, &answer->source_task_id)},
  };
  if (!COMPARE(sim, command_kind_text(request->kind), &expected->task.id, pairs)) return;
  sim_compare_task(sim, &expected->task, &answer->as.task, NULL, expected->deduplicated ? DEPTH_PINNED : DEPTH_LIVE);
}

static void compare_application(struct sim *sim, const struct model_object *want, const struct application *have) {
  const struct pair pairs[] = {
      {"id", 1, id_equal(&want->id, &have->id)},
      {"revision", want->revision, have->revision},
      {"disabled", want->over, have->disabled},
      {"max_unfinished", want->limits[LIMIT_UNFINISHED], have->max_unfinished},
  };
  (void)COMPARE(sim, "application", &want->id, pairs);
}

static void compare_credential(struct sim *sim, const struct model_object *want, const struct credential *have) {
  const struct pair pairs[] = {
      {"id", 1, id_equal(&want->id, &have->id)},
      {"revision", want->revision, have->revision},
      {"revoked", want->over, have->revoked},
      {"expires_at", (uint64_t)want->expires_at, (uint64_t)have->expires_at},
  };
  (void)COMPARE(sim, "credential", &want->id, pairs);
}

static void compare_object(struct sim *sim, const struct request *request, const struct expected *expected,
                           const struct answer *answer) {
  const struct model_object *want = &expected->object;
  struct model_queue queue = {.id = want->id, .revision = want->revision, .paused = want->over};
  if (answer->created != expected->created || answer->deduplicated != expected->deduplicated)
    model_complain(&sim->model, "%s is answered as done and is not, or the other way", command_kind_text(request->kind));
  switch (request->kind) {
    case COMMAND_APPLICATION_CHANGE:
      compare_application(sim, want, &answer->as.application);
      break;
    case COMMAND_CREDENTIAL_CREATE:
    case COMMAND_CREDENTIAL_ROTATE:
    case COMMAND_CREDENTIAL_REVOKE:
      compare_credential(sim, want, &answer->as.credential);
      break;
    default:
      memcpy(queue.limits, want->limits, sizeof queue.limits);
      sim_compare_queue(sim, &queue, &answer->as.queue, false);
      break;
  }
}

static void compare_welcome(struct sim *sim, const struct expected *expected, struct answer *answer) {
  struct welcome *welcome = &answer->as.welcome;
  if (welcome->held_count != expected->held_count || welcome->lease_ms != expected->lease_ms ||
      welcome->server_time != sim->model.now_us)
    model_complain(&sim->model, "worker.hello: %u attempts and lease_ms %u should be told, are %u and %u", expected->held_count,
                   expected->lease_ms, welcome->held_count, welcome->lease_ms);
  for (uint32_t i = 0; i < welcome->held_count && sim_is_well(sim); i++) {
    const struct held_attempt *held = &welcome->held[i];
    const struct model_task *task = model_task(&sim->model, &held->task_id);
    if (task == NULL || !id_equal(&task->attempt_id, &held->attempt_id) || task->epoch != held->epoch ||
        task->attempt_count != held->number || task->live_until != held->lease_expires_at ||
        (task->state == TASK_RUNNING) != (held->state == ATTEMPT_RUNNING))
      model_complain(&sim->model, "worker.welcome tells of task %s what is not so", id_text(&held->task_id).text);
  }
}

void sim_free_answer(struct pending *pending) {
  enum command_kind kind = pending->request.kind;
  struct answer *answer = &pending->ticket.answer;
  if (answer->status != STATUS_OK) return;
  if (kind == COMMAND_HELLO) free(answer->as.welcome.held);
  if (kind == COMMAND_OPEN_FEED) free(answer->as.feed.scope);
  if (kind != COMMAND_LIST_TASKS && kind != COMMAND_LIST_OBJECTS && kind != COMMAND_LIST_AUDIT && kind != COMMAND_PREVIEW_TIMES)
    return;
  free(answer->as.list.of.rows);
  free(answer->as.list.oldest_waiting_at);
}

void sim_compare_answer(struct sim *sim, const struct request *request, const struct expected *expected,
                        struct answer *answer) {
  const char *name = command_kind_text(request->kind);
  if (answer->status != expected->status) {
    model_complain(&sim->model, "%s of %s should be answered %s, is %s %s", name, id_text(&request->task_id).text,
                   status_name(expected->status), status_name(answer->status),
                   answer->status != STATUS_OK ? answer->fault.message : "");
    return;
  }
  if (answer->status != STATUS_OK && (answer->fault.status != answer->status || answer->fault.message[0] == 0))
    model_complain(&sim->model, "%s is refused without a word", name);
  switch (request->kind) {
    case COMMAND_START:
    case COMMAND_RENEW:
    case COMMAND_FINISH:
    case COMMAND_RELEASE:
      compare_worker_result(sim, request, expected, answer);
      break;
    case COMMAND_HELLO:
      if (answer->status == STATUS_OK) compare_welcome(sim, expected, answer);
      break;
    case COMMAND_SCHEDULE_CREATE:
    case COMMAND_SCHEDULE_CHANGE:
    case COMMAND_SCHEDULE_PAUSE:
    case COMMAND_SCHEDULE_RESUME:
    case COMMAND_SCHEDULE_DELETE:
    case COMMAND_GET_SCHEDULE:
    case COMMAND_PREVIEW_TIMES:
      if (answer->status == STATUS_OK) sim_compare_schedule_answer(sim, request, expected, answer);
      break;
    case COMMAND_SUBSCRIPTION_CREATE:
    case COMMAND_SUBSCRIPTION_ACK:
    case COMMAND_SUBSCRIPTION_DELETE:
    case COMMAND_GET_SUBSCRIPTION:
      if (answer->status == STATUS_OK) sim_compare_subscription_answer(sim, request, expected, answer);
      break;
    case COMMAND_OPEN_FEED:
      if (answer->status == STATUS_OK) sim_compare_opening(sim, expected, answer);
      break;
    case COMMAND_LIST_TASKS:
    case COMMAND_LIST_OBJECTS:
    case COMMAND_LIST_AUDIT:
      if (answer->status == STATUS_OK) sim_compare_page(sim, request, answer);
      break;
    case COMMAND_GET_QUEUE:
      if (answer->status != STATUS_OK) break;
      sim_compare_queue(sim, &expected->queue, &answer->as.queue, true);
      if (answer->oldest_waiting_at != model_oldest_waiting(&sim->model, request->queue))
        model_complain(&sim->model, "another task of queue %s waits longest", id_text(&expected->queue.id).text);
      break;
    case COMMAND_QUEUE_CREATE:
    case COMMAND_QUEUE_CHANGE:
    case COMMAND_QUEUE_PAUSE:
    case COMMAND_QUEUE_RESUME:
    case COMMAND_APPLICATION_CHANGE:
    case COMMAND_CREDENTIAL_CREATE:
    case COMMAND_CREDENTIAL_ROTATE:
    case COMMAND_CREDENTIAL_REVOKE:
      if (answer->status == STATUS_OK) compare_object(sim, request, expected, answer);
      break;
    default:
      if (answer->status == STATUS_OK && expected->has_task) compare_task_answer(sim, request, expected, answer);
      break;
  }
}

/* ---- messages to workers ---- */

static enum told told_of(enum mail_kind kind) {
  static const enum told of[] = {[MAIL_ASSIGN] = TOLD_ASSIGN,
                                 [MAIL_CANCEL] = TOLD_CANCEL,
                                 [MAIL_ENDED] = TOLD_ENDED,
                                 [MAIL_DRAINED] = TOLD_DRAINED,
                                 [MAIL_CLOSE] = TOLD_CLOSE};
  return of[kind];
}

static void deliver(struct sim *sim, const struct push *push) {
  if (push->mail.kind == MAIL_ASSIGN) worker_receive(sim, push->session, &push->task_id, &push->attempt_id, push->task.epoch);
  for (unsigned i = 0; i < workers_max && push->mail.kind == MAIL_CLOSE; i++)
    if (sim->workers[i].session == push->session) sim->workers[i].session = 0;
}

static void match(struct sim *sim, const struct push *push) {
  struct model *model = &sim->model;
  for (uint32_t i = 0; i < model->push_count; i++) {
    const struct model_push *want = &model->pushes[i];
    if (want->told != told_of(push->mail.kind) || want->session != push->session || !id_equal(&want->task_id, &push->task_id) ||
        !id_equal(&want->attempt_id, &push->attempt_id) || (want->told == TOLD_ENDED && want->ended_by != push->ended_by))
      continue;
    model->pushes[i] = model->pushes[--model->push_count];
    return;
  }
  model_complain(model, "session %llu is told what it should not be: message %u about task %s",
                 (unsigned long long)push->session, (unsigned)push->mail.kind, id_text(&push->task_id).text);
}

void sim_take_mail(struct sim *sim, bool delivered) {
  for (struct mail *mail = outbox_take(&sim->outbox), *next; mail != NULL; mail = next) {
    next = mail->next;
    if (mail->kind == MAIL_TICKET) {
      sim->tickets_back++;
      continue;
    }
    struct push *push = (struct push *)mail;
    if (push->weight != 0) (void)atomic_fetch_sub(&sim->gauge.unsent_bytes, push->weight);
    if (delivered) {
      match(sim, push);
      deliver(sim, push);
    }
    push_free(push);
  }
  sim->lose_next = false;
  if (delivered && sim->model.push_count != 0)
    model_complain(&sim->model, "session %llu should be told more: message %u about task %s",
                   (unsigned long long)sim->model.pushes[0].session, (unsigned)sim->model.pushes[0].told,
                   id_text(&sim->model.pushes[0].task_id).text);
}
