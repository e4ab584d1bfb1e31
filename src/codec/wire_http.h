/* HTTP bodies to commands and answers to bodies (schema/http.md). Pure: bytes in, bytes out. */
#ifndef ORBIT_CODEC_WIRE_HTTP_H
#define ORBIT_CODEC_WIRE_HTTP_H

#include "base/status.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "core/answer.h"
#include "core/command.h"

/* Reads the body of POST /v1/tasks into command->as.submit with defaults filled in, and sets kind and operation.digest; the
 * rest of the command is left alone. Spans point into the body, json's scratch or texts (payload without white space is
 * appended there); all must live until the ticket is answered. INVALID_ARGUMENT; UNAVAILABLE when texts is full. Ranges that
 * depend on the time are the engine's to judge. */
enum status wire_submit_read(struct json *json, struct bytes body, struct buffer *texts, struct command *command,
                             struct fault *fault);
/* The same from an object that is already parsed (batch items), where the member `idempotency_key` may stand, 1 to
 * idempotency_key_chars_max visible ASCII characters: *ret_key, data NULL when it is absent. ret_key NULL: the member is not
 * allowed. Items of one body may share texts. */
enum status wire_submit_read_object(struct json *json, uint32_t object, struct buffer *texts, struct command *command,
                                    struct bytes *ret_key, struct fault *fault);

/* The same of a schedule's template: a submission without queue_id and times. *ret_digest: of its meaning. */
enum status wire_template_read_object(struct json *json, uint32_t object, struct buffer *texts,
                                      struct submit_command *ret_template, struct id *ret_digest, struct fault *fault);

/* Appends the value without white space to texts and points *ret_document at it. The first append takes room for all that
 * follows the value in json's text, so that spans into a buffer that values of one text share never move; a buffer that holds
 * something else must have that room already. The limit of texts must not be below the size of the text. UNAVAILABLE when texts
 * is full. */
enum status wire_document_read(const struct json *json, uint32_t token, struct buffer *texts, struct bytes *ret_document,
                               struct fault *fault);
/* Refuses the member of an object, there or not: fault with the object's pointer and its name as field. INVALID_ARGUMENT. */
enum status wire_refuse_member(struct json *json, uint32_t object, const char *name, struct fault *fault, const char *why);

/* Members of an answer's data, in the order of schema/http.md. */
void wire_task_write(struct buffer *out, const struct task_document *document);         /* {"id":…} */
void wire_task_summary_write(struct buffer *out, const struct task_document *document); /* without payload, result, retry_of */
void wire_attempt_write(struct buffer *out, const struct attempt_document *attempt);
void wire_evidence_write(struct buffer *out, const struct evidence_document *evidence);

/* Envelope: {"request_id":…,"data": … } and {"request_id":…,"error":{…}}. */
void wire_data_begin(struct buffer *out, const char *request_id);
void wire_data_end(struct buffer *out);
void wire_error_write(struct buffer *out, const char *request_id, const struct fault *fault);

/* "code","message",… members as an object; shared with the worker channel. A status that is no public word is told as
 * UNAVAILABLE or INTERNAL, without its message. */
void wire_fault_write(struct buffer *out, const struct fault *fault);

/* ,"name":"id" — helpers for objects: name is written with a leading comma unless the object was just opened ('{' is last). An
 * absent text or time (data NULL, 0) writes nothing. */
void wire_id_member(struct buffer *out, const char *name, const struct id *id);
void wire_time_member(struct buffer *out, const char *name, int64_t time_us);
void wire_text_member(struct buffer *out, const char *name, struct bytes text);
void wire_raw_member(struct buffer *out, const char *name, struct bytes json);
void wire_number_member(struct buffer *out, const char *name, uint64_t value);
void wire_decimal_member(struct buffer *out, const char *name, uint64_t value); /* as a string */
void wire_bool_member(struct buffer *out, const char *name, bool value);

#endif
