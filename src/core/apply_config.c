/* Owns the folding of events into queues, applications, credentials and subscriptions. */
#include <string.h>

#include "base/guard.h"
#include "core/apply.h"
#include "core/feed.h"

static void configure_queue(struct queue *queue, const struct event *event, const struct event_queue_changed *to) {
  queue->max_unfinished = to->max_unfinished;
  queue->max_running = to->max_running;
  queue->key_concurrency = to->key_concurrency;
  queue->rate = (struct queue_rate){.tasks = to->rate_tasks, .per_ms = to->rate_per_ms, .burst = to->rate_burst};
  queue->lease_ms = to->lease_ms;
  queue->config_seq = event->seq;
}

static void create_queue(struct queue *queue, const struct event *event) {
  const struct event_queue_created *body = &event->body.queue_created;
  struct event_queue_changed configuration = {.max_unfinished = body->max_unfinished,
                                              .max_running = body->max_running,
                                              .key_concurrency = body->key_concurrency,
                                              .rate_tasks = body->rate_tasks,
                                              .rate_per_ms = body->rate_per_ms,
                                              .rate_burst = body->rate_burst,
                                              .lease_ms = body->lease_ms};
  queue->id = event->stream;
  queue->namespace_id = body->namespace_id;
  configure_queue(queue, event, &configuration);
}

void apply_queue(struct queue *queue, const struct event *event) {
  switch (event->type) {
    case EVENT_queue_created:
      create_queue(queue, event);
      break;
    case EVENT_queue_changed:
      configure_queue(queue, event, &event->body.queue_changed);
      break;
    case EVENT_queue_paused:
      queue->paused = true;
      break;
    case EVENT_queue_resumed:
      queue->paused = false;
      break;
    case EVENT_audit_recorded:
      return;
    default:
      must(false);
  }
  queue->revision = event->common.revision;
}

void apply_application(struct application *application, const struct event *event) {
  switch (event->type) {
    case EVENT_application_created:
      application->id = event->stream;
      application->namespace_id = event->body.application_created.namespace_id;
      application->max_unfinished = event->body.application_created.max_unfinished;
      break;
    case EVENT_application_changed:
      application->max_unfinished = event->body.application_changed.max_unfinished;
      application->disabled = event->body.application_changed.disabled;
      break;
    case EVENT_audit_recorded:
      return;
    default:
      must(false);
  }
  application->config_seq = event->seq;
  application->revision = event->common.revision;
}

static void set_token(struct credential *credential, struct bytes hash) {
  must(hash.size == token_hash_bytes);
  memcpy(credential->token_hash, hash.data, token_hash_bytes);
}

static void create_credential(struct credential *credential, const struct event *event) {
  const struct event_credential_created *body = &event->body.credential_created;
  credential->id = event->stream;
  credential->namespace_id = body->namespace_id;
  credential->application_id = body->application_id;
  credential->permissions = body->permissions;
  credential->expires_at = body->expires_at;
  credential->config_seq = event->seq;
  set_token(credential, body->token_hash);
}

void apply_credential(struct credential *credential, const struct event *event) {
  switch (event->type) {
    case EVENT_credential_created:
      create_credential(credential, event);
      break;
    case EVENT_credential_rotated:
      set_token(credential, event->body.credential_rotated.token_hash);
      break;
    case EVENT_credential_revoked:
      credential->revoked = true;
      break;
    case EVENT_audit_recorded:
      return;
    default:
      must(false);
  }
  credential->revision = event->common.revision;
}

static void create_subscription(struct subscription *subscription, const struct event *event) {
  const struct event_subscription_created *body = &event->body.subscription_created;
  subscription->id = event->stream;
  subscription->namespace_id = body->namespace_id;
  subscription->queue_id = body->queue_id;
  subscription->task_id = body->task_id;
  subscription->position = body->position;
  subscription->config_seq = event->seq;
  must(body->types.size == 0 || feed_types_parse(body->types, &subscription->types));
}

void apply_subscription(struct subscription *subscription, const struct event *event) {
  switch (event->type) {
    case EVENT_subscription_created:
      create_subscription(subscription, event);
      break;
    case EVENT_subscription_acked:
      subscription->position = event->body.subscription_acked.position;
      break;
    case EVENT_subscription_deleted:
      subscription->deleted = true;
      break;
    case EVENT_audit_recorded:
      return;
    default:
      must(false);
  }
  subscription->revision = event->common.revision;
}

/* ---- as written ---- */

/* Each of its writes holds the whole configuration. */
struct application application_as_written(const struct application *present, const struct event *write) {
  struct application as_written = {.id = present->id, .namespace_id = present->namespace_id};
  apply_application(&as_written, write);
  return as_written;
}

/* All but its token, and whether it was revoked, is said once for all; and what was revoked stays so. */
struct credential credential_as_written(const struct credential *present, const struct event *write) {
  struct credential as_written = *present;
  as_written.queue_ids = NULL;
  as_written.revoked = write->type == EVENT_credential_revoked;
  as_written.revision = write->common.revision;
  return as_written;
}

/* Its filter is said once for all; nothing moves one that was deleted. */
struct subscription subscription_as_written(const struct subscription *present, const struct event *write) {
  struct subscription as_written = *present;
  as_written.deleted = false;
  if (write->type == EVENT_subscription_created) as_written.position = write->body.subscription_created.position;
  else apply_subscription(&as_written, write);
  as_written.revision = write->common.revision;
  return as_written;
}
