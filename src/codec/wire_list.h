/* Lists, feeds and batches: query parameters to commands, events as items, several submissions in one body (schema/http.md
 * "Lists", "Batches", "Events"). Pure. */
#ifndef ORBIT_CODEC_WIRE_LIST_H
#define ORBIT_CODEC_WIRE_LIST_H

#include "base/status.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "core/answer.h"
#include "core/command.h"
#include "core/event.h"

/* ---- Query parameters ---- */

/* One parameter, percent-decoded. */
struct wire_parameter {
  struct bytes name, value;
};

/* Read the parameters of GET /v1/tasks (queue_id, state, handler, business_key, created_after, created_before, limit) and
 * GET /v1/audit (target_id, limit). `cursor` is passed over: it is the caller's to read, and `after` and before_seq are left
 * zero. Spans are the parameters'. INVALID_ARGUMENT names the parameter: unknown, given twice, or not what it must be. */
enum status wire_list_tasks_read(const struct wire_parameter *parameters, unsigned count,
                                 struct list_tasks_command *ret_command, struct fault *fault);
enum status wire_list_audit_read(const struct wire_parameter *parameters, unsigned count,
                                 struct list_audit_command *ret_command, struct fault *fault);
/* The `limit` alone, for lists without filters. */
enum status wire_list_limit_read(const struct wire_parameter *parameters, unsigned count, uint32_t *ret_limit,
                                 struct fault *fault);
/* The filters of a task list for a cursor's binding are list_tasks_digest (codec/digest.h); of an audit list, its target_id. */

/* ---- Events as items of GET /v1/tasks/{id}/events ---- */

/* {"position","type","time","task_id"?,"queue_id"?,"revision"?,"data":{…}}: the event as stored, documents whole, without token
 * hashes. The object that it belongs to is the caller's to know; NULL or zero: left out. */
void wire_event_write(struct buffer *out, const struct event *event, const struct id *task_id, const struct id *queue_id);

/* ---- POST /v1/tasks:batch ---- */

/* Reads {"items":[…]}, 1 to batch_items_max. Each item is a submission with its own `idempotency_key` and becomes a whole
 * command: who, identity and digest filled in. An item that is refused has its fault in its answer, with the place within the
 * body as field, and does not hinder the others. *ret_items is the caller's (free); its spans point into the body, json's
 * scratch and texts, whose limit must not be below the body's size. INVALID_ARGUMENT: no strict JSON, or the body has not this
 * shape. UNAVAILABLE: no memory. */
enum status wire_batch_read(struct json *json, struct bytes body, const struct secret *secret, const struct principal *who,
                            struct buffer *texts, struct batch_item **ret_items, uint32_t *ret_count, struct fault *fault);
/* {"status":201,"task":{…},"deduplicated":false}, or {"status":429,"error":{…}} when the answer is a refusal (task is unused
 * then and may be NULL). */
void wire_batch_item_write(struct buffer *out, const struct answer *answer, const struct task_document *task);

#endif
