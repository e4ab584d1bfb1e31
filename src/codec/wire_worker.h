/* Worker messages to commands and answers to messages (schema/worker.md). Pure. */
#ifndef ORBIT_CODEC_WIRE_WORKER_H
#define ORBIT_CODEC_WIRE_WORKER_H

#include "base/status.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "core/answer.h"
#include "core/command.h"

/* A frame: parsed once, then read message by message. */
struct worker_frame {
  bool is_array;
  uint32_t count; /* messages, 1–worker_frame_messages_max */
  uint32_t first; /* token of the first message */
};
/* INVALID_ARGUMENT: not JSON under the strict rules, not an object or an array of 1–256 objects. */
enum status worker_frame_read(struct json *json, struct bytes frame, struct worker_frame *ret_frame, struct fault *fault);

/* Reads one message (an object token) into command: kind, operation, and the command itself; principal and session are the
 * caller's. texts holds minified documents and must live, with frame and json, until the ticket is answered. hello's arrays are
 * allocated there too. Messages of one frame may share texts (see wire_document_read). *ret_message_id is set as soon as it
 * could be read, also on failure (zero: it could not), so that a faulty finish is answered by a command.result that names the
 * field while the lease goes on. A fault's field is the JSON Pointer within the message, also in an array frame.
 * operation.identity is made for start, finish and release: from secret and namespace, the operation's name, the attempt, and
 * as key the bytes of the message id and of who's application. report.identity: the same with "task.report" and the application
 * alone. Renewals have no identity. The content of task.finish: SUCCEEDED may carry result and no error; the others may carry
 * error and no result; FAILED alone may carry retryable=true. An error has a code of 1–128 characters of
 * [A-Za-z0-9._:/-], at most 4,096 characters of message (an empty one counts as absent) and details that are not null.
 * INVALID_ARGUMENT; PAYLOAD_TOO_LARGE: larger than worker_message_bytes_max; UNAVAILABLE: texts is full. */
enum status worker_message_read(struct json *json, uint32_t message, const struct secret *secret, const struct principal *who,
                                struct buffer *texts, struct command *command, struct id *ret_message_id, struct fault *fault);

/* Whole messages, appended. */
void worker_welcome_write(struct buffer *out, const struct id *message_id, const struct welcome *welcome,
                          const struct id *node_id);
void worker_assign_write(struct buffer *out, const struct task_document *document, const struct attempt *attempt);
void worker_result_write(struct buffer *out, const struct id *message_id, const struct worker_result *result);
/* capacity and drain: command.result with ok and applied alone. */
void worker_ok_write(struct buffer *out, const struct id *message_id);
/* ok:false; result may be NULL, else its task (if it has one) and lease are given too. message_id zero: an error message
 * instead. */
void worker_refusal_write(struct buffer *out, const struct id *message_id, const struct fault *fault,
                          const struct worker_result *result);
void worker_error_write(struct buffer *out, const struct fault *fault); /* {"type":"error",…} */
void worker_cancel_write(struct buffer *out, const struct id *task_id, const struct id *attempt_id, struct bytes reason);
void worker_ended_write(struct buffer *out, const struct id *task_id, const struct id *attempt_id, enum ended_by ended_by);
void worker_drained_write(struct buffer *out);
void worker_goaway_write(struct buffer *out, uint32_t reconnect_after_ms);

#endif
