/* Administration: bodies about namespaces, applications, queues and credentials to commands, and those objects and their audit
 * as JSON (schema/http.md "Administration"). Pure. */
#ifndef ORBIT_CODEC_WIRE_ADMIN_H
#define ORBIT_CODEC_WIRE_ADMIN_H

#include "base/status.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "core/command.h"
#include "core/event.h"
#include "core/model.h"

/* ---- Bodies ----
 * Each reads the body into the command's structure with defaults filled in, and sets kind and operation.digest; the rest of the
 * command is left alone, and all of it on failure. Spans point into the body or json's scratch and must live until the ticket
 * is answered. INVALID_ARGUMENT names the field by JSON Pointer. Whether the object exists and what its revision is is the
 * engine's to judge. */

enum status wire_namespace_create_read(struct json *json, struct bytes body, struct command *command, struct fault *fault);

enum status wire_queue_create_read(struct json *json, struct bytes body, struct command *command, struct fault *fault);
/* expected_revision and at least one field to change; null takes max_unfinished, max_running or rate away. */
enum status wire_queue_change_read(struct json *json, struct bytes body, const struct id *queue_id, struct command *command,
                                   struct fault *fault);
/* kind is COMMAND_QUEUE_PAUSE or COMMAND_QUEUE_RESUME: an object with at most a reason. */
enum status wire_queue_pause_read(struct json *json, struct bytes body, const struct id *queue_id, enum command_kind kind,
                                  struct command *command, struct fault *fault);

enum status wire_application_create_read(struct json *json, struct bytes body, struct command *command, struct fault *fault);
/* expected_revision and at least one field to change; null takes max_unfinished away. */
enum status wire_application_change_read(struct json *json, struct bytes body, const struct id *application_id,
                                         struct command *command, struct fault *fault);

/* queue_ids are appended to texts, 16 bytes each, which must have a limit of at least queue_ids_max * id_bytes and live until
 * the ticket is answered, without growing further. token_hash is left empty: it is the caller's to set. UNAVAILABLE when texts
 * is full. That expires_at is to come is the engine's to judge. */
enum status wire_credential_create_read(struct json *json, struct bytes body, struct buffer *texts, struct command *command,
                                        struct fault *fault);
/* kind is COMMAND_CREDENTIAL_ROTATE or COMMAND_CREDENTIAL_REVOKE: an empty object. token_hash is left empty. */
enum status wire_credential_end_read(struct json *json, struct bytes body, const struct id *credential_id,
                                     enum command_kind kind, struct command *command, struct fault *fault);

/* ---- Objects ---- */

/* The texts of an object, which stay in the log: in the event at the object's config_seq. */
struct object_texts {
  struct bytes name;      /* data NULL: none */
  struct bytes queue_ids; /* 16 bytes each; data NULL: every queue; credentials alone */
};
/* False when the event is none that holds such texts (namespace.created, application.created and .changed, queue.created and
 * .changed, credential.created, subscription.created). Spans are the event's. */
bool object_texts_of(const struct event *event, struct object_texts *ret_texts);

/* {"id","name"} */
void wire_namespace_write(struct buffer *out, const struct id *namespace_id, const struct object_texts *texts);
/* {"id","namespace_id","name","revision","max_unfinished"?,"disabled"} and, when live, "unfinished". */
void wire_application_write(struct buffer *out, const struct application *application, const struct object_texts *texts,
                            bool live);
/* {"id","namespace_id","name","revision","paused","max_unfinished"?,"max_running"?,"key_concurrency","rate"?,"lease_ms"} and,
 * when live, "counts" with all states and "oldest_waiting_at"? (0: absent). Answers to writes are not live. */
void wire_queue_write(struct buffer *out, const struct queue *queue, const struct object_texts *texts, bool live,
                      int64_t oldest_waiting_at);
/* {"id","namespace_id"?,"application_id"?,"name"?,"permissions","queue_ids"?,"expires_at"?,"revoked","revision"}: never the
 * token nor its hash. The queues are those of texts, permissions in the order of their table. */
void wire_credential_write(struct buffer *out, const struct credential *credential, const struct object_texts *texts);
/* The whole of `data` of a credential's write: {"credential":{…},"token"?}; token data NULL: none, as on every repeat. */
void wire_credential_answer_write(struct buffer *out, const struct credential *credential, const struct object_texts *texts,
                                  struct bytes token);

/* One row of GET /v1/audit: {"id","target_id","operation_id","actor_id","action","created_at","reason"?,"before"?,"after"?}.
 * event is an audit.recorded. */
void wire_audit_write(struct buffer *out, const struct event *event);

#endif
