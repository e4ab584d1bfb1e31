/* Owns the JSON text of namespaces, applications, queues, credentials and administrative audit. */
#include "base/guard.h"
#include "codec/wire_admin.h"
#include "codec/wire_http.h"

bool object_texts_of(const struct event *event, struct object_texts *ret_texts) {
  struct object_texts texts = {.name = {NULL, 0}};
  switch (event->type) {
    case EVENT_namespace_created:
      texts.name = event->body.namespace_created.name;
      break;
    case EVENT_application_created:
      texts.name = event->body.application_created.name;
      break;
    case EVENT_application_changed:
      texts.name = event->body.application_changed.name;
      break;
    case EVENT_queue_created:
      texts.name = event->body.queue_created.name;
      break;
    case EVENT_queue_changed:
      texts.name = event->body.queue_changed.name;
      break;
    case EVENT_subscription_created:
      texts.name = event->body.subscription_created.name;
      break;
    case EVENT_credential_created:
      texts.name = event->body.credential_created.name;
      texts.queue_ids = event->body.credential_created.queue_ids;
      break;
    default:
      return false;
  }
  *ret_texts = texts;
  return true;
}

static void id_member_unless_zero(struct buffer *out, const char *name, const struct id *id) {
  if (!id_is_zero(id)) wire_id_member(out, name, id);
}

static void limit_member(struct buffer *out, const char *name, uint64_t limit) {
  if (limit != 0) wire_number_member(out, name, limit);
}

/* The bracket that opens the member's value. */
static void open_member(struct buffer *out, const char *name, const char *bracket) {
  wire_raw_member(out, name, bytes_text(bracket));
}

void wire_namespace_write(struct buffer *out, const struct id *namespace_id, const struct object_texts *texts) {
  buffer_append_char(out, '{');
  wire_id_member(out, "id", namespace_id);
  wire_text_member(out, "name", texts->name);
  buffer_append_char(out, '}');
}

void wire_application_write(struct buffer *out, const struct application *application, const struct object_texts *texts,
                            bool live) {
  buffer_append_char(out, '{');
  wire_id_member(out, "id", &application->id);
  wire_id_member(out, "namespace_id", &application->namespace_id);
  wire_text_member(out, "name", texts->name);
  wire_decimal_member(out, "revision", application->revision);
  limit_member(out, "max_unfinished", application->max_unfinished);
  wire_bool_member(out, "disabled", application->disabled);
  if (live) wire_number_member(out, "unfinished", application->unfinished);
  buffer_append_char(out, '}');
}

static void rate_member(struct buffer *out, const struct queue_rate *rate) {
  if (rate->tasks == 0) return;
  open_member(out, "rate", "{");
  wire_number_member(out, "tasks", rate->tasks);
  wire_number_member(out, "per_ms", rate->per_ms);
  wire_number_member(out, "burst", rate->burst);
  buffer_append_char(out, '}');
}

static void counts_member(struct buffer *out, const struct queue *queue) {
  open_member(out, "counts", "{");
  for (unsigned state = TASK_NONE + 1; state < TASK_ENUM_END; state++)
    wire_number_member(out, task_state_text((enum task_state)state), queue->counts[state]);
  buffer_append_char(out, '}');
}

void wire_queue_write(struct buffer *out, const struct queue *queue, const struct object_texts *texts, bool live,
                      int64_t oldest_waiting_at) {
  buffer_append_char(out, '{');
  wire_id_member(out, "id", &queue->id);
  wire_id_member(out, "namespace_id", &queue->namespace_id);
  wire_text_member(out, "name", texts->name);
  wire_decimal_member(out, "revision", queue->revision);
  wire_bool_member(out, "paused", queue->paused);
  limit_member(out, "max_unfinished", queue->max_unfinished);
  limit_member(out, "max_running", queue->max_running);
  wire_number_member(out, "key_concurrency", queue->key_concurrency);
  rate_member(out, &queue->rate);
  wire_number_member(out, "lease_ms", queue->lease_ms);
  if (live) {
    counts_member(out, queue);
    wire_time_member(out, "oldest_waiting_at", oldest_waiting_at);
  }
  buffer_append_char(out, '}');
}

static void permissions_member(struct buffer *out, uint64_t permissions) {
  bool first = true;
  open_member(out, "permissions", "[");
  for (unsigned bit = 0; bit < PERMISSION_COUNT; bit++) {
    if ((permissions >> bit & 1) == 0) continue;
    if (!first) buffer_append_char(out, ',');
    first = false;
    json_write_string(out, bytes_text(permission_text((enum permission)bit)));
  }
  buffer_append_char(out, ']');
}

static void queue_ids_member(struct buffer *out, struct bytes queue_ids) {
  if (queue_ids.data == NULL) return;
  must(queue_ids.size % id_bytes == 0);
  open_member(out, "queue_ids", "[");
  for (size_t at = 0; at < queue_ids.size; at += id_bytes) {
    char text[id_chars];
    id_format((const struct id *)(queue_ids.data + at), text);
    if (at != 0) buffer_append_char(out, ',');
    json_write_string(out, bytes_of(text, sizeof text));
  }
  buffer_append_char(out, ']');
}

void wire_credential_write(struct buffer *out, const struct credential *credential, const struct object_texts *texts) {
  buffer_append_char(out, '{');
  wire_id_member(out, "id", &credential->id);
  id_member_unless_zero(out, "namespace_id", &credential->namespace_id);
  id_member_unless_zero(out, "application_id", &credential->application_id);
  wire_text_member(out, "name", texts->name);
  permissions_member(out, credential->permissions);
  queue_ids_member(out, texts->queue_ids);
  wire_time_member(out, "expires_at", credential->expires_at);
  wire_bool_member(out, "revoked", credential->revoked);
  wire_decimal_member(out, "revision", credential->revision);
  buffer_append_char(out, '}');
}

void wire_credential_answer_write(struct buffer *out, const struct credential *credential, const struct object_texts *texts,
                                  struct bytes token) {
  buffer_append_char(out, '{');
  open_member(out, "credential", "");
  wire_credential_write(out, credential, texts);
  wire_text_member(out, "token", token);
  buffer_append_char(out, '}');
}

void wire_audit_write(struct buffer *out, const struct event *event) {
  must(event->type == EVENT_audit_recorded);
  const struct event_audit_recorded *audit = &event->body.audit_recorded;
  buffer_append_char(out, '{');
  wire_id_member(out, "id", &audit->audit_id);
  wire_id_member(out, "target_id", &audit->target_id);
  wire_id_member(out, "operation_id", &event->common.operation_id);
  wire_id_member(out, "actor_id", &event->common.actor);
  wire_text_member(out, "action", audit->action);
  wire_time_member(out, "created_at", event->time_us);
  wire_text_member(out, "reason", audit->reason);
  wire_raw_member(out, "before", audit->before);
  wire_raw_member(out, "after", audit->after);
  buffer_append_char(out, '}');
}
