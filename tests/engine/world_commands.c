/* Owns the making of commands about tasks and objects, and the reading of what they left in the log. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/digest.h"
#include "engine/internal.h"
#include "engine/world.h"

/* ---- identity ---- */

static struct id target_of(const struct command *command) {
  switch (command->kind) {
    case COMMAND_CANCEL:
      return command->as.cancel.task_id;
    case COMMAND_REVIEW:
      return command->as.review.task_id;
    case COMMAND_RETRY:
      return command->as.retry.task_id;
    case COMMAND_APPLICATION_CHANGE:
      return command->as.application.id;
    case COMMAND_QUEUE_CHANGE:
    case COMMAND_QUEUE_PAUSE:
    case COMMAND_QUEUE_RESUME:
      return command->as.queue.id;
    case COMMAND_CREDENTIAL_ROTATE:
    case COMMAND_CREDENTIAL_REVOKE:
      return command->as.credential.id;
    case COMMAND_SUBSCRIPTION_ACK:
    case COMMAND_SUBSCRIPTION_DELETE:
      return command->as.subscription.id;
    case COMMAND_SCHEDULE_CHANGE:
    case COMMAND_SCHEDULE_PAUSE:
    case COMMAND_SCHEDULE_RESUME:
    case COMMAND_SCHEDULE_DELETE:
      return command->as.schedule.id;
    default:
      return (struct id){{0}};
  }
}

static struct id digest_of(const struct command *command) {
  switch (command->kind) {
    case COMMAND_CANCEL:
      return cancel_digest(&command->as.cancel);
    case COMMAND_REVIEW:
      return review_digest(&command->as.review);
    case COMMAND_RETRY:
      return retry_digest(&command->as.retry);
    case COMMAND_NAMESPACE_CREATE:
      return namespace_digest(&command->as.namespace_);
    case COMMAND_APPLICATION_CREATE:
    case COMMAND_APPLICATION_CHANGE:
      return application_digest(command->kind, &command->as.application);
    case COMMAND_CREDENTIAL_CREATE:
    case COMMAND_CREDENTIAL_ROTATE:
    case COMMAND_CREDENTIAL_REVOKE:
      return credential_digest(command->kind, &command->as.credential);
    case COMMAND_SUBSCRIPTION_CREATE:
    case COMMAND_SUBSCRIPTION_ACK:
    case COMMAND_SUBSCRIPTION_DELETE:
      return subscription_digest(command->kind, &command->as.subscription);
    case COMMAND_SCHEDULE_CREATE:
    case COMMAND_SCHEDULE_CHANGE:
    case COMMAND_SCHEDULE_PAUSE:
    case COMMAND_SCHEDULE_RESUME:
    case COMMAND_SCHEDULE_DELETE:
      return schedule_digest(command->kind, &command->as.schedule);
    default:
      return queue_digest(command->kind, &command->as.queue);
  }
}

void world_identify_operation(struct world *world, struct command *command, const char *key) {
  struct id target = target_of(command);
  command->operation.digest = digest_of(command);
  command->operation.identity = identity_make(journal_secret(world->journal), &command->who.namespace_id,
                                              command_kind_text(command->kind), &target, bytes_text(key));
}

/* ---- commands about tasks ---- */

struct command world_cancel(struct world *world, const struct id *task_id, const char *key) {
  struct command command = {.kind = COMMAND_CANCEL, .who = world->who};
  command.as.cancel = (struct cancel_command){.task_id = *task_id, .reason = bytes_text("no longer wanted")};
  world_identify(world, &command, key);
  return command;
}

struct command world_review(struct world *world, const struct id *task_id, uint64_t revision, enum outcome outcome,
                            const char *key) {
  struct command command = {.kind = COMMAND_REVIEW, .who = world->who};
  command.as.review = (struct review_command){.task_id = *task_id,
                                              .expected_revision = revision,
                                              .reason = bytes_text("looked at the books"),
                                              .evidence_ref = bytes_text("evidence:reconciliation-001"),
                                              .outcome = outcome,
                                              .result = bytes_text("{\"confirmed\":true,\"sequence\":9007199254740993}")};
  memset(command.as.review.result_digest.bytes, 0x5A, id_bytes);
  world_identify(world, &command, key);
  return command;
}

struct command world_retry(struct world *world, const struct id *task_id, uint64_t revision, const char *key) {
  struct command command = {.kind = COMMAND_RETRY, .who = world->who};
  command.as.retry = (struct retry_command){.task_id = *task_id,
                                            .expected_revision = revision,
                                            .reason = bytes_text("safe to do again"),
                                            .evidence_ref = bytes_text("evidence:safe-retry-001"),
                                            .task_timeout_ms = 60000};
  world_identify(world, &command, key);
  return command;
}

struct task world_submitted(struct world *world, const char *key) {
  struct command command = world_submit(world, key);
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.task;
}

void world_start(struct world *world, const struct push *assign) {
  struct command command = world_ref(world, COMMAND_START, assign);
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  assert_true(answer.as.worker.applied);
}

struct worker_result world_report(struct world *world, const struct push *assign, enum outcome outcome, bool retryable) {
  struct command command = world_finish(world, assign, outcome, retryable);
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.worker;
}

const struct push *world_assigned(struct world *world, uint64_t session) {
  assert_int_equal(world_hello(world, session, 1).status, STATUS_OK);
  const struct push *assign = world_take(world, MAIL_ASSIGN, session);
  assert_non_null(assign);
  return assign;
}

/* ---- administration ---- */

struct command world_queue(struct world *world, enum command_kind kind, const struct id *queue_id) {
  struct command command = {.kind = kind, .who = world->who};
  if (queue_id != NULL) command.as.queue.id = *queue_id;
  return command;
}

struct command world_application(struct world *world, enum command_kind kind, const struct id *application_id) {
  struct command command = {.kind = kind, .who = world->who};
  if (application_id != NULL) command.as.application.id = *application_id;
  return command;
}

struct command world_credential(struct world *world, enum command_kind kind, const struct id *credential_id) {
  struct command command = {.kind = kind, .who = world->who};
  if (credential_id != NULL) command.as.credential.id = *credential_id;
  return command;
}

/* A key of its own for every operation whose identity the test is not about. */
static void identify_anew(struct world *world, struct command *command) {
  struct id key = id_source_next(&world->ids, world->now_us);
  world_identify(world, command, id_text(&key).text);
}

struct command world_schedule(struct world *world, enum command_kind kind, const struct id *schedule_id) {
  struct command command = {.kind = kind, .who = world->who};
  if (schedule_id != NULL) command.as.schedule.id = *schedule_id;
  if (kind != COMMAND_SCHEDULE_CREATE) return command;
  command.as.schedule = (struct schedule_command){.name = bytes_text("schedule"),
                                                  .queue_id = world->queue_id,
                                                  .kind = SCHEDULE_INTERVAL,
                                                  .interval_ms = 60000,
                                                  .overlap = OVERLAP_ALLOW,
                                                  .missed = MISSED_LATEST,
                                                  .catch_up_limit = catch_up_limit_default,
                                                  .template = world_submit(world, "template").as.submit};
  command.as.schedule.template.queue_id = (struct id){{0}};
  return command;
}

struct schedule world_scheduled(struct world *world, struct command *command) {
  identify_anew(world, command);
  struct answer answer = world_do(world, command);
  if (answer.status != STATUS_OK) fail_msg("%s: %s", command_kind_text(command->kind), answer.fault.message);
  return answer.as.schedule;
}

struct schedule world_get_schedule(struct world *world, const struct id *schedule_id) {
  struct command command = {.kind = COMMAND_GET_SCHEDULE, .who = world->who, .as.object_id = *schedule_id};
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.schedule;
}

struct triggers {
  struct id schedule_id;
  struct trigger *triggers;
  uint32_t count, limit;
};

static void keep_trigger(void *context, const struct event *event) {
  struct triggers *triggers = context;
  struct trigger trigger;
  if (!trigger_of(event, &trigger) || !id_equal(&event->stream, &triggers->schedule_id)) return;
  assert_true(triggers->count < triggers->limit);
  trigger.code = (struct bytes){NULL, 0}; /* the record's */
  triggers->triggers[triggers->count++] = trigger;
}

uint32_t world_triggers(struct world *world, const struct id *schedule_id, struct trigger *triggers, uint32_t limit) {
  struct triggers kept = {*schedule_id, triggers, 0, limit};
  world_each_event(world, keep_trigger, &kept);
  return kept.count;
}

struct queue world_get_queue(struct world *world, const struct id *queue_id) {
  struct command command = {.kind = COMMAND_GET_QUEUE, .who = world->who, .as.object_id = *queue_id};
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.queue;
}

struct queue world_change_queue(struct world *world, const struct id *queue_id, const struct queue_command *change) {
  struct command command = world_queue(world, COMMAND_QUEUE_CHANGE, queue_id);
  command.as.queue = *change;
  command.as.queue.id = *queue_id;
  command.as.queue.expected_revision = world_get_queue(world, queue_id).revision;
  identify_anew(world, &command);
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.queue;
}

void world_pause(struct world *world, const struct id *queue_id, bool pause) {
  struct command command = world_queue(world, pause ? COMMAND_QUEUE_PAUSE : COMMAND_QUEUE_RESUME, queue_id);
  identify_anew(world, &command);
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
}

/* ---- the log ---- */

struct visitor {
  void (*visit)(void *context, const struct event *event);
  void *context;
};

static enum status visit_event(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  const struct visitor *visitor = context;
  (void)record, (void)fault;
  visitor->visit(visitor->context, event);
  return STATUS_OK;
}

void world_each_event(struct world *world, void (*visit)(void *context, const struct event *event), void *context) {
  struct visitor visitor = {visit, context};
  struct fault fault = {0};
  if (journal_replay(world->journal, 0, 0, visit_event, &visitor, &fault) != STATUS_OK) fail_msg("replay: %s", fault.message);
}

struct types {
  uint64_t after;
  enum event_type *types;
  uint32_t count, limit;
};

static void keep_type(void *context, const struct event *event) {
  struct types *types = context;
  if (event->seq > types->after && types->count < types->limit) types->types[types->count++] = event->type;
}

uint32_t world_types_after(struct world *world, uint64_t after, enum event_type *types, uint32_t limit) {
  struct types kept = {after, types, 0, limit};
  world_each_event(world, keep_type, &kept);
  return kept.count;
}
