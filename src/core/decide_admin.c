/* Owns what administrators do to namespaces, applications, queues and credentials: one event and its audit record. */
#include <inttypes.h>

#include "base/guard.h"
#include "core/decide_parts.h"

static const struct bytes no_reason = {NULL, 0};

static enum status check_object_revision(uint64_t revision, uint64_t expected, struct fault *fault) {
  if (revision == expected) return STATUS_OK;
  return fault_set(fault, STATUS_STATE_CONFLICT, "/expected_revision",
                   "the revision is %" PRIu64 ", not %" PRIu64 "; read it again and decide anew", revision, expected);
}

enum status decide_namespace_create(const struct command *command, const struct decide_env *env, struct event_list *list,
                                    struct fault *fault) {
  const struct namespace_command *create = &command->as.namespace_;
  struct act act = act_of_command(command, env, list);
  act_append(&act, EVENT_namespace_created, &env->new_id, 1)->body.namespace_created.name = create->name;
  act_audit_object(&act, command, &env->new_id, 1, &env->new_id, no_reason);
  struct event_application_created *application =
      &act_append(&act, EVENT_application_created, &create->application_id, 1)->body.application_created;
  application->namespace_id = env->new_id;
  application->name = bytes_text("admin");
  act_audit_object(&act, command, &create->application_id, 1, &env->new_id, no_reason);
  struct event_credential_created *credential =
      &act_append(&act, EVENT_credential_created, &create->credential_id, 1)->body.credential_created;
  credential->namespace_id = env->new_id;
  credential->application_id = create->application_id;
  credential->name = bytes_text("admin");
  credential->permissions = UINT64_C(1) << PERMISSION_ADMIN;
  credential->token_hash = create->token_hash;
  act_audit_object(&act, command, &create->credential_id, 1, &env->new_id, no_reason);
  (void)fault;
  return STATUS_OK;
}

/* ---- applications ---- */

static enum status change_application(const struct application *application, struct bytes name, const struct command *command,
                                      const struct decide_env *env, struct event_list *list, struct fault *fault) {
  const struct application_command *change = &command->as.application;
  enum status status = check_object_revision(application->revision, change->expected_revision, fault);
  if (status != STATUS_OK) return status;
  struct act act = act_of_command(command, env, list);
  uint64_t revision = application->revision + 1;
  struct event_application_changed *body =
      &act_append(&act, EVENT_application_changed, &application->id, revision)->body.application_changed;
  body->name = change->given & GIVEN_NAME ? change->name : name;
  body->max_unfinished = change->given & GIVEN_MAX_UNFINISHED ? change->max_unfinished : application->max_unfinished;
  body->disabled = change->given & GIVEN_DISABLED ? change->disabled : application->disabled;
  act_audit_object(&act, command, &application->id, revision, &application->namespace_id, no_reason);
  return STATUS_OK;
}

enum status decide_application(const struct application *application, struct bytes name, const struct command *command,
                               const struct decide_env *env, struct event_list *list, struct fault *fault) {
  if (application != NULL) return change_application(application, name, command, env, list, fault);
  struct act act = act_of_command(command, env, list);
  struct event_application_created *body =
      &act_append(&act, EVENT_application_created, &env->new_id, 1)->body.application_created;
  body->namespace_id = command->who.namespace_id;
  body->name = command->as.application.name;
  body->max_unfinished = command->as.application.max_unfinished;
  act_audit_object(&act, command, &env->new_id, 1, &command->who.namespace_id, no_reason);
  return STATUS_OK;
}

/* ---- queues ---- */

static enum status change_queue(const struct queue *queue, struct bytes name, const struct command *command,
                                const struct decide_env *env, struct event_list *list, struct fault *fault) {
  const struct queue_command *change = &command->as.queue;
  enum status status = check_object_revision(queue->revision, change->expected_revision, fault);
  if (status != STATUS_OK) return status;
  struct act act = act_of_command(command, env, list);
  struct event_queue_changed *body =
      &act_append(&act, EVENT_queue_changed, &queue->id, queue->revision + 1)->body.queue_changed;
  bool rate = (change->given & GIVEN_RATE) != 0;
  body->name = change->given & GIVEN_NAME ? change->name : name;
  body->max_unfinished = change->given & GIVEN_MAX_UNFINISHED ? change->max_unfinished : queue->max_unfinished;
  body->max_running = change->given & GIVEN_MAX_RUNNING ? change->max_running : queue->max_running;
  body->key_concurrency = change->given & GIVEN_KEY_CONCURRENCY ? change->key_concurrency : queue->key_concurrency;
  body->rate_tasks = rate ? change->rate_tasks : queue->rate.tasks;
  body->rate_per_ms = rate ? change->rate_per_ms : queue->rate.per_ms;
  body->rate_burst = rate ? change->rate_burst : queue->rate.burst;
  body->lease_ms = change->given & GIVEN_LEASE_MS ? change->lease_ms : queue->lease_ms;
  act_audit_object(&act, command, &queue->id, queue->revision + 1, &queue->namespace_id, no_reason);
  return STATUS_OK;
}

static enum status pause_queue(const struct queue *queue, const struct command *command, const struct decide_env *env,
                               struct event_list *list, struct fault *fault) {
  bool pause = command->kind == COMMAND_QUEUE_PAUSE;
  struct bytes reason = command->as.queue.reason;
  if (queue->paused == pause)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the queue is %s already", pause ? "paused" : "running");
  struct act act = act_of_command(command, env, list);
  uint64_t revision = queue->revision + 1;
  struct event *event = act_append(&act, pause ? EVENT_queue_paused : EVENT_queue_resumed, &queue->id, revision);
  if (pause) event->body.queue_paused.reason = reason;
  else event->body.queue_resumed.reason = reason;
  act_audit_object(&act, command, &queue->id, revision, &queue->namespace_id, reason);
  return STATUS_OK;
}

enum status decide_queue(const struct queue *queue, struct bytes name, const struct command *command,
                         const struct decide_env *env, struct event_list *list, struct fault *fault) {
  const struct queue_command *create = &command->as.queue;
  if (command->kind == COMMAND_QUEUE_CHANGE) return change_queue(queue, name, command, env, list, fault);
  if (command->kind != COMMAND_QUEUE_CREATE) return pause_queue(queue, command, env, list, fault);
  struct act act = act_of_command(command, env, list);
  struct event_queue_created *body = &act_append(&act, EVENT_queue_created, &env->new_id, 1)->body.queue_created;
  body->namespace_id = command->who.namespace_id;
  body->name = create->name;
  body->max_unfinished = create->max_unfinished;
  body->max_running = create->max_running;
  body->key_concurrency = create->key_concurrency != 0 ? create->key_concurrency : 1;
  body->rate_tasks = create->rate_tasks;
  body->rate_per_ms = create->rate_per_ms;
  body->rate_burst = create->rate_burst;
  body->lease_ms = create->lease_ms != 0 ? create->lease_ms : lease_ms_default;
  act_audit_object(&act, command, &env->new_id, 1, &command->who.namespace_id, no_reason);
  return STATUS_OK;
}

/* ---- credentials ---- */

static void create_credential(struct act *act, const struct command *command) {
  const struct credential_command *create = &command->as.credential;
  const struct id *id = &act->env->new_id;
  struct event_credential_created *body = &act_append(act, EVENT_credential_created, id, 1)->body.credential_created;
  body->namespace_id = command->who.namespace_id;
  body->application_id = create->application_id;
  body->name = create->name;
  body->permissions = create->permissions;
  body->queue_ids = create->queue_ids;
  body->expires_at = create->expires_at;
  body->token_hash = create->token_hash;
  act_audit_object(act, command, id, 1, &command->who.namespace_id, no_reason);
}

enum status decide_credential(const struct credential *credential, const struct command *command, const struct decide_env *env,
                              struct event_list *list, struct fault *fault) {
  int64_t expires_at = command->as.credential.expires_at;
  if (command->kind == COMMAND_CREDENTIAL_CREATE && expires_at != 0 && expires_at <= env->now_us)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/expires_at", "the credential would be over before it is made");
  struct act act = act_of_command(command, env, list);
  if (command->kind == COMMAND_CREDENTIAL_CREATE) {
    create_credential(&act, command);
    return STATUS_OK;
  }
  if (credential->revoked) return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the credential was revoked for ever");
  bool rotate = command->kind == COMMAND_CREDENTIAL_ROTATE;
  uint64_t revision = credential->revision + 1;
  struct event *event =
      act_append(&act, rotate ? EVENT_credential_rotated : EVENT_credential_revoked, &credential->id, revision);
  if (rotate) event->body.credential_rotated.token_hash = command->as.credential.token_hash;
  act_audit_object(&act, command, &credential->id, revision, &credential->namespace_id, no_reason);
  return STATUS_OK;
}
