/* Owns what the model says about administration: queues, applications, credentials. */
#include <string.h>

#include "sim/model_internal.h"

/* ---- what all of them have in common ---- */

bool model_object_take_up(struct model *model, const struct request *request, struct expected *expected) {
  const struct model_receipt *receipt = model_receipt_find(model, request);
  if (receipt == NULL) return true;
  if (!request_means_the_same(&receipt->request, request)) {
    expected->status = STATUS_IDEMPOTENCY_CONFLICT;
    return false;
  }
  expected->deduplicated = true;
  expected->object = receipt->object;
  return false;
}

void model_object_done(struct model *model, const struct request *request, const struct model_object *object,
                       struct expected *expected) {
  expected->created = true;
  expected->object = *object;
  model_receipt_add(model, request)->object = *object;
}

uint64_t model_object_audit(struct model *model, const char *action, const struct id *id, uint64_t revision, uint64_t prev,
                            struct bytes reason) {
  const struct event *have = model_foresee(model, EVENT_audit_recorded, id, revision, prev);
  struct event_audit_recorded *want = &model->want.event.body.audit_recorded;
  want->audit_id = have->body.audit_recorded.audit_id;
  want->action = bytes_text(action);
  want->target_id = *id;
  want->namespace_id = model->namespace_id;
  want->reason = reason;
  if (revision > 1) want->before = model_text(model, "{\"revision\":\"%llu\"}", (unsigned long long)revision - 1);
  want->after = model_text(model, "{\"revision\":\"%llu\"}", (unsigned long long)revision);
  model_met(model);
  model_audit_add(model, have->seq, id);
  return have->seq;
}

const struct id *model_new_id(struct model *model, enum event_type type) {
  static const struct id nobody = {{0xFF}};
  return model_next_is(model, type) ? &model->seen.events[model->seen.at].stream : &nobody;
}

static const struct bytes no_reason = {NULL, 0};

/* ---- queues ---- */

static bool is_given(const struct request *request, unsigned limit) {
  static const unsigned bits[limits_max] = {GIVEN_MAX_UNFINISHED, GIVEN_MAX_RUNNING, GIVEN_KEY_CONCURRENCY, GIVEN_RATE,
                                            GIVEN_RATE,           GIVEN_RATE,        GIVEN_LEASE_MS};
  return (request->given & bits[limit]) != 0;
}

static void change_limits(struct model *model, struct model_queue *queue, const struct request *request) {
  const struct event *have = model_foresee(model, EVENT_queue_changed, &queue->id, queue->revision + 1, queue->last_seq);
  struct event_queue_changed *want = &model->want.event.body.queue_changed;
  for (unsigned i = 0; i < limits_max; i++)
    if (is_given(request, i)) queue->limits[i] = request->limits[i];
  want->name = text_name();
  want->max_unfinished = queue->limits[LIMIT_UNFINISHED];
  want->max_running = queue->limits[LIMIT_RUNNING];
  want->key_concurrency = queue->limits[LIMIT_KEY];
  want->rate_tasks = queue->limits[LIMIT_RATE_TASKS];
  want->rate_per_ms = queue->limits[LIMIT_RATE_PER_MS];
  want->rate_burst = queue->limits[LIMIT_RATE_BURST];
  want->lease_ms = queue->limits[LIMIT_LEASE_MS];
  model_met(model);
  queue->last_seq = have->seq;
  if (queue->limits[LIMIT_RATE_TASKS] == 0) return;
  /* What an older rate owes is a full burst of the new one at the most. */
  int64_t burst = queue->limits[LIMIT_RATE_BURST] != 0 ? (int64_t)queue->limits[LIMIT_RATE_BURST] : 1;
  int64_t most = model->now_us + burst * model_rate_interval(queue);
  if (queue->rate_at > most) queue->rate_at = most;
}

static void pause_or_resume(struct model *model, struct model_queue *queue, const struct request *request) {
  bool pause = request->kind == COMMAND_QUEUE_PAUSE;
  const struct event *have =
      model_foresee(model, pause ? EVENT_queue_paused : EVENT_queue_resumed, &queue->id, queue->revision + 1, queue->last_seq);
  if (pause) model->want.event.body.queue_paused.reason = text_reason(request->text);
  else model->want.event.body.queue_resumed.reason = text_reason(request->text);
  model_met(model);
  queue->last_seq = have->seq;
  queue->paused = pause;
}

static void create_queue(struct model *model, const struct request *request) {
  struct model_queue *queue = &model->queues[model->queue_count++];
  const uint64_t *limits = request->limits;
  *queue = (struct model_queue){.id = *model_new_id(model, EVENT_queue_created)};
  memcpy(queue->limits, limits, sizeof queue->limits);
  if (limits[LIMIT_KEY] == 0) queue->limits[LIMIT_KEY] = 1;
  if (limits[LIMIT_LEASE_MS] == 0) queue->limits[LIMIT_LEASE_MS] = 30000;
  const struct event *have = model_foresee(model, EVENT_queue_created, &queue->id, 1, 0);
  struct event_queue_created *want = &model->want.event.body.queue_created;
  want->namespace_id = model->namespace_id;
  want->name = text_name();
  want->max_unfinished = limits[LIMIT_UNFINISHED];
  want->max_running = limits[LIMIT_RUNNING];
  want->key_concurrency = queue->limits[LIMIT_KEY];
  want->rate_tasks = limits[LIMIT_RATE_TASKS];
  want->rate_per_ms = limits[LIMIT_RATE_PER_MS];
  want->rate_burst = limits[LIMIT_RATE_BURST];
  want->lease_ms = queue->limits[LIMIT_LEASE_MS];
  model_met(model);
  queue->last_seq = have->seq;
}

static struct model_object queue_object(const struct model_queue *queue) {
  struct model_object object = {.id = queue->id, .revision = queue->revision, .over = queue->paused};
  memcpy(object.limits, queue->limits, sizeof object.limits);
  return object;
}

static bool queue_conflicts(const struct model_queue *queue, const struct request *request) {
  if (request->kind == COMMAND_QUEUE_CHANGE) return request->expected_revision != queue->revision;
  return queue->paused == (request->kind == COMMAND_QUEUE_PAUSE);
}

void model_queue_request(struct model *model, const struct request *request, struct expected *expected) {
  bool create = request->kind == COMMAND_QUEUE_CREATE, change = request->kind == COMMAND_QUEUE_CHANGE;
  if (!create && !who_reaches(request->who, request->queue)) expected->status = STATUS_NOT_FOUND;
  if (expected->status != STATUS_OK || !model_object_take_up(model, request, expected)) return;
  struct model_queue *queue = &model->queues[create ? model->queue_count : request->queue];
  if (!create && queue_conflicts(queue, request)) {
    expected->status = STATUS_STATE_CONFLICT;
    return;
  }
  if (create) create_queue(model, request);
  else if (change) change_limits(model, queue, request);
  else pause_or_resume(model, queue, request);
  const char *action = create                                 ? "queue.create"
                       : change                               ? "queue.change"
                       : request->kind == COMMAND_QUEUE_PAUSE ? "queue.pause"
                                                              : "queue.resume";
  queue->revision++;
  queue->last_seq = model_object_audit(model, action, &queue->id, queue->revision, queue->last_seq,
                                       create || change ? no_reason : text_reason(request->text));
  struct model_object object = queue_object(queue);
  model_object_done(model, request, &object, expected);
}

/* ---- applications ---- */

void model_application_request(struct model *model, const struct request *request, struct expected *expected) {
  struct model_application *application = &model->applications[request->administered.object];
  if (!model_object_take_up(model, request, expected)) return;
  if (request->expected_revision != application->revision) {
    expected->status = STATUS_STATE_CONFLICT;
    return;
  }
  uint64_t revision = ++application->revision;
  if ((request->given & GIVEN_MAX_UNFINISHED) != 0) application->max_unfinished = request->limits[LIMIT_UNFINISHED];
  if ((request->given & GIVEN_DISABLED) != 0) application->disabled = request->administered.disabled;
  const struct event *have = model_foresee(model, EVENT_application_changed, &application->id, revision, application->last_seq);
  struct event_application_changed *want = &model->want.event.body.application_changed;
  want->name = text_name();
  want->max_unfinished = application->max_unfinished;
  want->disabled = application->disabled;
  model_met(model);
  application->last_seq = model_object_audit(model, "application.change", &application->id, revision, have->seq, no_reason);
  model->tokens_changed = true;
  struct model_object object = {.id = application->id, .revision = revision, .over = application->disabled};
  object.limits[LIMIT_UNFINISHED] = application->max_unfinished;
  model_object_done(model, request, &object, expected);
}

/* ---- credentials ---- */

bool model_token_is_good(const struct model *model, const struct model_credential *credential) {
  return !credential->revoked && !model->applications[credential->application].disabled &&
         (credential->expires_at == 0 || model->now_us < credential->expires_at);
}

/* Who reaches some queues alone gives out no token that reaches others. */
static enum status judge_credential(const struct model *model, const struct request *request) {
  bool create = request->kind == COMMAND_CREDENTIAL_CREATE, revoke = request->kind == COMMAND_CREDENTIAL_REVOKE;
  const struct model_credential *credential = create ? NULL : &model->credentials[request->administered.object];
  bool narrow = create ? request->administered.narrow : credential->narrow;
  if (!revoke && request->who == WHO_NARROW && !narrow) return STATUS_PERMISSION_DENIED;
  if (!create) return credential->revoked ? STATUS_STATE_CONFLICT : STATUS_OK;
  int64_t expires_at = request->administered.expires_at;
  return expires_at != 0 && expires_at <= model->now_us ? STATUS_INVALID_ARGUMENT : STATUS_OK;
}

static struct bytes hash_of(const struct event *have) {
  /* which hash belongs to a token is the directory's to show: it is asked with the token itself */
  return have->type == EVENT_credential_created ? have->body.credential_created.token_hash
                                                : have->body.credential_rotated.token_hash;
}

static void create_credential(struct model *model, const struct request *request) {
  const struct administered *asked = &request->administered;
  struct model_credential *credential = &model->credentials[model->credential_count++];
  *credential = (struct model_credential){.id = *model_new_id(model, EVENT_credential_created),
                                          .application = asked->object,
                                          .narrow = asked->narrow,
                                          .token = asked->token,
                                          .expires_at = asked->expires_at};
  const struct event *have = model_foresee(model, EVENT_credential_created, &credential->id, 1, 0);
  struct event_credential_created *want = &model->want.event.body.credential_created;
  want->namespace_id = model->namespace_id;
  want->application_id = model->applications[asked->object].id;
  want->name = text_name();
  want->permissions = 1 + request->text;
  want->queue_ids = asked->narrow ? bytes_of(model->queues[narrow_queue].id.bytes, id_bytes) : no_reason;
  want->expires_at = asked->expires_at;
  want->token_hash = hash_of(have);
  model_met(model);
  credential->last_seq = have->seq;
}

static void change_credential(struct model *model, struct model_credential *credential, const struct request *request) {
  bool rotate = request->kind == COMMAND_CREDENTIAL_ROTATE;
  const struct event *have = model_foresee(model, rotate ? EVENT_credential_rotated : EVENT_credential_revoked, &credential->id,
                                           credential->revision + 1, credential->last_seq);
  if (rotate) model->want.event.body.credential_rotated.token_hash = hash_of(have);
  model_met(model);
  credential->last_seq = have->seq;
  credential->revoked = !rotate;
  if (!rotate) return;
  credential->old_token = credential->token;
  credential->token = request->administered.token;
}

void model_credential_request(struct model *model, const struct request *request, struct expected *expected) {
  bool create = request->kind == COMMAND_CREDENTIAL_CREATE;
  if (!model_object_take_up(model, request, expected)) return;
  expected->status = judge_credential(model, request);
  if (expected->status != STATUS_OK) return;
  struct model_credential *credential = &model->credentials[create ? model->credential_count : request->administered.object];
  if (create) create_credential(model, request);
  else change_credential(model, credential, request);
  const char *action = create                                       ? "credential.create"
                       : request->kind == COMMAND_CREDENTIAL_ROTATE ? "credential.rotate"
                                                                    : "credential.revoke";
  credential->revision++;
  credential->last_seq =
      model_object_audit(model, action, &credential->id, credential->revision, credential->last_seq, no_reason);
  model->tokens_changed = true;
  struct model_object object = {.id = credential->id, .revision = credential->revision, .over = credential->revoked};
  object.expires_at = credential->expires_at;
  model_object_done(model, request, &object, expected);
}
