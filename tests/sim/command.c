/* Owns the way from a request in plain numbers to the command that the product is given. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "codec/digest.h"
#include "core/feed.h"
#include "sim/sim.h"

struct principal sim_principal(const struct sim *sim, unsigned who) {
  return (struct principal){.credential_id = sim->model.credentials[who].id,
                            .application_id = sim->model.applications[who_application(who)].id,
                            .namespace_id = sim->namespace_id,
                            .permissions = UINT64_MAX};
}

static struct id identity(const struct sim *sim, const struct request *request, const struct id *target) {
  char key[24];
  int size = snprintf(key, sizeof key, "k%llu", (unsigned long long)request->key);
  return identity_make(journal_secret(sim->disk), &sim->namespace_id, command_kind_text(request->kind), target,
                       bytes_of(key, (size_t)size));
}

/* ---- submissions ---- */

/* What a task shall be, whoever makes it and when. */
static struct submit_command task_of(const struct request *request) {
  return (struct submit_command){
      .handler = text_handler(request->handler),
      .handler_version = bytes_text("v1"),
      .payload_version = bytes_text("p1"),
      .payload = text_payload(request->text),
      .business_key = text_business_key(request->business_key),
      .concurrency_key = text_concurrency_key(request->concurrency_key),
      .task_timeout_ms = request->task_timeout_ms,
      .recovery_safety = request->idempotent ? RECOVERY_IDEMPOTENT : RECOVERY_RECONCILE_ONLY,
      .max_attempts = request->max_attempts,
      .initial_delay_ms = request->initial_delay_ms,
      .max_delay_ms = request->max_delay_ms,
      .attempt_timeout_ms = request->attempt_timeout_ms,
      .priority = request->priority,
  };
}

static void make_submit(const struct sim *sim, const struct request *request, struct command *command) {
  static const struct id none;
  struct submit_command *submit = &command->as.submit;
  *submit = task_of(request);
  submit->queue_id = sim->model.queues[request->queue].id;
  submit->available_at = request->available_at;
  submit->start_deadline_at = request->start_deadline_at;
  command->operation.digest = submit_digest(submit, &sim->codec.payloads[request->text % texts_max]);
  command->operation.identity = identity(sim, request, &none);
}

/* ---- workers ---- */

static void identify_attempt(const struct sim *sim, const struct request *request, struct command *command) {
  const struct id *application_id = &command->who.application_id;
  struct id message_id = message_id_of(request->key);
  uint8_t key[2 * id_bytes];
  memcpy(key, message_id.bytes, id_bytes);
  memcpy(key + id_bytes, application_id->bytes, id_bytes);
  command->operation.identity = identity_make(journal_secret(sim->disk), &sim->namespace_id, command_kind_text(request->kind),
                                              &request->attempt_id, bytes_of(key, sizeof key));
}

static void make_reference(const struct sim *sim, const struct request *request, struct command *command) {
  command->as.ref = (struct attempt_ref){.message_id = message_id_of(request->key),
                                         .task_id = request->task_id,
                                         .attempt_id = request->attempt_id,
                                         .epoch = request->epoch};
  if (request->kind == COMMAND_RENEW) return;
  command->operation.digest = attempt_ref_digest(&command->as.ref);
  identify_attempt(sim, request, command);
}

static void make_finish(const struct sim *sim, const struct request *request, struct command *command) {
  struct attempt_ref ref = {.message_id = message_id_of(request->key),
                            .task_id = request->task_id,
                            .attempt_id = request->attempt_id,
                            .epoch = request->epoch};
  struct report report = {.outcome = request->outcome, .retryable = request->retryable};
  bool success = request->outcome == OUTCOME_SUCCEEDED;
  if (success) {
    report.result = text_result(request->text);
  } else {
    report.error_code = bytes_text("BROKEN");
    report.error_details = text_details(request->text);
  }
  const struct id *digest =
      success ? &sim->codec.results[request->text % texts_max] : &sim->codec.details[request->text % texts_max];
  report.identity = identity_make(journal_secret(sim->disk), &sim->namespace_id, "task.report", &request->attempt_id,
                                  bytes_of(command->who.application_id.bytes, id_bytes));
  command->as.finish = (struct finish_command){.ref = ref, .report = report};
  command->operation.digest = finish_digest(&ref, &report, success ? NULL : digest, success ? digest : NULL);
  identify_attempt(sim, request, command);
}

/* A hello names lists: one for each mask, so that several can be on their way at once. */
void sim_make_lists(struct sim *sim) {
  sim->queues_listed = sim->model.queue_count;
  for (unsigned mask = 0; mask < queue_masks; mask++) {
    unsigned queues = 0;
    for (unsigned i = 0; i < sim->model.queue_count; i++)
      if ((mask >> i & 1) != 0) sim->queue_lists[mask][queues++] = sim->model.queues[i].id;
  }
  for (unsigned mask = 0; mask < 1 << handlers_offered_max; mask++) {
    unsigned handlers = 0;
    for (unsigned i = 0; i < handlers_offered_max; i++)
      if ((mask >> i & 1) != 0)
        sim->handler_lists[mask][handlers++] = (struct handler_offer){text_handler(i), bytes_text("v1")};
  }
}

static uint32_t bits_of(unsigned mask) {
  uint32_t bits = 0;
  for (; mask != 0; mask >>= 1) bits += mask & 1;
  return bits;
}

static void make_hello(const struct sim *sim, const struct request *request, struct command *command) {
  command->as.hello = (struct hello_command){.message_id = message_id_of(request->key),
                                             .instance_id = instance_id_of(request->instance),
                                             .queue_ids = sim->queue_lists[request->queue_mask],
                                             .handlers = sim->handler_lists[request->handler_mask],
                                             .queue_count = bits_of(request->queue_mask),
                                             .handler_count = bits_of(request->handler_mask),
                                             .capacity = request->capacity,
                                             .lease_ms = request->lease_ms};
}

/* ---- people ---- */

static void make_cancel(const struct sim *sim, const struct request *request, struct command *command) {
  command->as.cancel = (struct cancel_command){
      .task_id = request->task_id, .reason = text_reason(request->text), .expected_revision = request->expected_revision};
  command->operation.digest = cancel_digest(&command->as.cancel);
  command->operation.identity = identity(sim, request, &request->task_id);
}

static void make_review(const struct sim *sim, const struct request *request, struct command *command) {
  command->as.review = (struct review_command){.task_id = request->task_id,
                                               .expected_revision = request->expected_revision,
                                               .reason = text_reason(request->text),
                                               .evidence_ref = text_evidence(request->text),
                                               .outcome = request->outcome,
                                               .result = text_result(request->text),
                                               .result_digest = sim->codec.results[request->text % texts_max]};
  command->operation.digest = review_digest(&command->as.review);
  command->operation.identity = identity(sim, request, &request->task_id);
}

static void make_retry(const struct sim *sim, const struct request *request, struct command *command) {
  command->as.retry = (struct retry_command){.task_id = request->task_id,
                                             .expected_revision = request->expected_revision,
                                             .reason = text_reason(request->text),
                                             .evidence_ref = text_evidence(request->text),
                                             .task_timeout_ms = request->task_timeout_ms,
                                             .available_at = request->available_at,
                                             .start_deadline_at = request->start_deadline_at};
  command->operation.digest = retry_digest(&command->as.retry);
  command->operation.identity = identity(sim, request, &request->task_id);
}

static void make_queue(const struct sim *sim, const struct request *request, struct command *command) {
  const uint64_t *limits = request->limits;
  struct queue_command *queue = &command->as.queue;
  bool create = request->kind == COMMAND_QUEUE_CREATE;
  *queue = (struct queue_command){.given = request->given};
  if (create) queue->name = text_name();
  else queue->id = sim->model.queues[request->queue].id;
  if (create || request->kind == COMMAND_QUEUE_CHANGE) {
    queue->expected_revision = request->expected_revision;
    queue->max_unfinished = limits[LIMIT_UNFINISHED];
    queue->max_running = limits[LIMIT_RUNNING];
    queue->key_concurrency = limits[LIMIT_KEY];
    queue->rate_tasks = limits[LIMIT_RATE_TASKS];
    queue->rate_per_ms = limits[LIMIT_RATE_PER_MS];
    queue->rate_burst = limits[LIMIT_RATE_BURST];
    queue->lease_ms = limits[LIMIT_LEASE_MS];
  } else {
    queue->reason = text_reason(request->text);
  }
  command->operation.digest = queue_digest(request->kind, queue);
  command->operation.identity = identity(sim, request, &queue->id);
}

static void make_application(const struct sim *sim, const struct request *request, struct command *command) {
  command->as.application = (struct application_command){.id = sim->model.applications[request->administered.object].id,
                                                         .expected_revision = request->expected_revision,
                                                         .given = request->given,
                                                         .max_unfinished = request->limits[LIMIT_UNFINISHED],
                                                         .disabled = request->administered.disabled};
  command->operation.digest = application_digest(request->kind, &command->as.application);
  command->operation.identity = identity(sim, request, &command->as.application.id);
}

static void make_credential(const struct sim *sim, const struct request *request, struct pending_texts *texts,
                            struct command *command) {
  const struct administered *asked = &request->administered;
  struct credential_command *credential = &command->as.credential;
  bool create = request->kind == COMMAND_CREDENTIAL_CREATE;
  *credential = (struct credential_command){.expires_at = asked->expires_at};
  if (create) {
    credential->application_id = sim->model.applications[asked->object].id;
    credential->name = text_name();
    credential->permissions = 1 + request->text;
    if (asked->narrow) credential->queue_ids = bytes_of(sim->model.queues[narrow_queue].id.bytes, id_bytes);
  } else {
    credential->id = sim->model.credentials[asked->object].id;
  }
  if (request->kind != COMMAND_CREDENTIAL_REVOKE) {
    struct token_text token = text_token(asked->token);
    token_hash(bytes_text(token.text), texts->token_hash);
    credential->token_hash = bytes_of(texts->token_hash, token_hash_bytes);
  }
  command->operation.digest = credential_digest(request->kind, credential);
  command->operation.identity = identity(sim, request, &credential->id);
}

static void make_schedule(const struct sim *sim, const struct request *request, struct command *command) {
  const struct planned *plan = &request->planned;
  struct schedule_command *schedule = &command->as.schedule;
  bool create = request->kind == COMMAND_SCHEDULE_CREATE;
  *schedule = (struct schedule_command){.expected_revision = request->expected_revision, .given = request->given};
  if (!create) schedule->id = sim->model.schedules[request->schedule - 1].id;
  if (create || request->kind == COMMAND_SCHEDULE_CHANGE) {
    if (create) schedule->name = text_name();
    if (create) schedule->queue_id = sim->model.queues[request->queue].id;
    if (create) schedule->kind = plan->by_clock ? SCHEDULE_CRON : SCHEDULE_INTERVAL;
    if (plan->by_clock) schedule->cron = text_cron(plan->shape);
    if (plan->by_clock) schedule->timezone = bytes_text("UTC");
    else schedule->interval_ms = plan->interval_ms;
    schedule->start_at = plan->start_at;
    schedule->end_at = plan->end_at;
    schedule->overlap = plan->overlap;
    schedule->missed = plan->missed;
    schedule->catch_up_limit = plan->catch_up_limit;
    schedule->paused = plan->paused;
    schedule->template = task_of(request);
    schedule->template_digest = submit_digest(&schedule->template, &sim->codec.payloads[request->text % texts_max]);
  } else {
    schedule->reason = text_reason(request->text);
  }
  command->operation.digest = schedule_digest(request->kind, schedule);
  command->operation.identity = identity(sim, request, &schedule->id);
}

static void make_subscription(const struct sim *sim, const struct request *request, struct command *command) {
  const struct subscribed *asked = &request->subscribed;
  struct subscription_command *subscription = &command->as.subscription;
  bool create = request->kind == COMMAND_SUBSCRIPTION_CREATE;
  *subscription = (struct subscription_command){.position = asked->position};
  if (create) {
    subscription->name = text_subscription(asked->name);
    if (asked->types != 0) must(feed_types_parse(text_types(asked->types), &subscription->types));
    if (request->queue != asked_any) subscription->queue_id = sim->model.queues[request->queue].id;
    subscription->task_id = request->task_id;
    subscription->from = asked->from;
  } else {
    subscription->id = sim->model.subscriptions[asked->object - 1].id;
  }
  command->operation.digest = subscription_digest(request->kind, subscription);
  command->operation.identity = identity(sim, request, &subscription->id);
}

static void make_opening(const struct sim *sim, const struct request *request, struct command *command) {
  const struct subscribed *asked = &request->subscribed;
  struct open_feed_command *open = &command->as.open_feed;
  open->after = asked->position;
  if (asked->object != 0) {
    open->subscription_id = sim->model.subscriptions[asked->object - 1].id;
    return;
  }
  if (asked->types != 0) must(feed_types_parse(text_types(asked->types), &open->filter.types));
  if (request->queue != asked_any) open->filter.queue_id = sim->model.queues[request->queue].id;
  open->filter.task_id = request->task_id;
}

static void make_preview(const struct request *request, struct command *command) {
  const struct planned *plan = &request->planned;
  command->as.preview = (struct preview_command){
      .kind = plan->by_clock ? SCHEDULE_CRON : SCHEDULE_INTERVAL, .after = plan->start_at, .count = request->capacity};
  if (plan->by_clock) command->as.preview.cron = text_cron(plan->shape);
  if (plan->by_clock) command->as.preview.timezone = bytes_text("UTC");
  else command->as.preview.interval_ms = plan->interval_ms;
}

static void make_list(const struct sim *sim, const struct request *request, struct command *command) {
  const struct asked *asked = &request->asked;
  static const struct id any;
  if (request->kind == COMMAND_LIST_TASKS)
    command->as.list_tasks = (struct list_tasks_command){
        .queue_id = asked->queue != asked_any ? sim->model.queues[asked->queue].id : any,
        .state = asked->state,
        .handler = asked->handler != asked_any ? text_handler(asked->handler) : (struct bytes){NULL, 0},
        .business_key = text_business_key(asked->business_key),
        .created_after = asked->created_after,
        .created_before = asked->created_before,
        .after = asked->after,
        .limit = asked->limit};
  else if (request->kind == COMMAND_LIST_AUDIT)
    command->as.list_audit =
        (struct list_audit_command){.target_id = asked->target, .before_seq = asked->before_seq, .limit = asked->limit};
  else
    command->as.list_objects =
        (struct list_objects_command){.list = (enum object_list)asked->list, .after = asked->after, .limit = asked->limit};
}

/* What is not about tasks and workers. */
static void make_other(const struct sim *sim, const struct request *request, struct pending_texts *texts,
                       struct command *command) {
  switch (request->kind) {
    case COMMAND_QUEUE_CHANGE:
    case COMMAND_QUEUE_PAUSE:
    case COMMAND_QUEUE_RESUME:
    case COMMAND_QUEUE_CREATE:
      make_queue(sim, request, command);
      break;
    case COMMAND_APPLICATION_CHANGE:
      make_application(sim, request, command);
      break;
    case COMMAND_CREDENTIAL_CREATE:
    case COMMAND_CREDENTIAL_ROTATE:
    case COMMAND_CREDENTIAL_REVOKE:
      make_credential(sim, request, texts, command);
      break;
    case COMMAND_SCHEDULE_CREATE:
    case COMMAND_SCHEDULE_CHANGE:
    case COMMAND_SCHEDULE_PAUSE:
    case COMMAND_SCHEDULE_RESUME:
    case COMMAND_SCHEDULE_DELETE:
      make_schedule(sim, request, command);
      break;
    case COMMAND_GET_SCHEDULE:
      command->as.object_id = sim->model.schedules[request->schedule - 1].id;
      break;
    case COMMAND_SUBSCRIPTION_CREATE:
    case COMMAND_SUBSCRIPTION_ACK:
    case COMMAND_SUBSCRIPTION_DELETE:
      make_subscription(sim, request, command);
      break;
    case COMMAND_GET_SUBSCRIPTION:
      command->as.object_id = sim->model.subscriptions[request->subscribed.object - 1].id;
      break;
    case COMMAND_OPEN_FEED:
      make_opening(sim, request, command);
      break;
    case COMMAND_PREVIEW_TIMES:
      make_preview(request, command);
      break;
    default:
      break;
  }
}

void sim_command(const struct sim *sim, const struct request *request, struct pending_texts *texts, struct command *command) {
  memset(command, 0, sizeof *command);
  command->kind = request->kind;
  command->who = sim_principal(sim, request->who);
  command->session = request->session;
  switch (request->kind) {
    case COMMAND_SUBMIT:
      make_submit(sim, request, command);
      break;
    case COMMAND_START:
    case COMMAND_RENEW:
    case COMMAND_RELEASE:
      make_reference(sim, request, command);
      break;
    case COMMAND_FINISH:
      make_finish(sim, request, command);
      break;
    case COMMAND_HELLO:
      make_hello(sim, request, command);
      break;
    case COMMAND_CAPACITY:
      command->as.capacity = (struct capacity_command){message_id_of(request->key), request->capacity};
      break;
    case COMMAND_GET_TASK:
      command->as.task_id = request->task_id;
      break;
    case COMMAND_GET_QUEUE:
      command->as.object_id = sim->model.queues[request->queue].id;
      break;
    case COMMAND_LIST_TASKS:
    case COMMAND_LIST_OBJECTS:
    case COMMAND_LIST_AUDIT:
      make_list(sim, request, command);
      break;
    case COMMAND_CANCEL:
      make_cancel(sim, request, command);
      break;
    case COMMAND_REVIEW:
      make_review(sim, request, command);
      break;
    case COMMAND_RETRY:
      make_retry(sim, request, command);
      break;
    default:
      make_other(sim, request, texts, command);
      break;
  }
}
