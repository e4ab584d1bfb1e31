/* What people do to a task: the bodies of :review, :retry and :cancel, their answers, and the entries of a task's operations
 * (schema/http.md "Routes"). Pure. */
#ifndef ORBIT_CODEC_WIRE_RECOVERY_H
#define ORBIT_CODEC_WIRE_RECOVERY_H

#include "base/status.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "core/answer.h"
#include "core/command.h"

/* ---- Bodies ---- */

/* Read the body into command->as.review, .retry, .cancel (task_id included), and set kind and operation.digest; the rest of the
 * command is left alone, and all of it on failure. Spans point into the body, json's scratch or texts (the review's result
 * without white space is appended there, as wire_document_read says); all must live until the ticket is answered.
 * INVALID_ARGUMENT names the field by JSON Pointer; UNAVAILABLE when texts is full. Times against now, states and revisions are
 * the engine's to judge. */
enum status wire_review_read(struct json *json, struct bytes body, const struct id *task_id, struct buffer *texts,
                             struct command *command, struct fault *fault);
enum status wire_retry_read(struct json *json, struct bytes body, const struct id *task_id, struct command *command,
                            struct fault *fault);
enum status wire_cancel_read(struct json *json, struct bytes body, const struct id *task_id, struct command *command,
                             struct fault *fault);

/* INVALID_ARGUMENT when the text is nothing but white space (Unicode's White_Space); what the field "reason" of json's document
 * must not be. The text is valid UTF-8. */
enum status wire_reason_judge(struct json *json, struct bytes reason, struct fault *fault);
/* True when the text has white space or a control character (C0, DEL, C1) in it. The text is valid UTF-8. */
bool wire_text_has_space_or_control(struct bytes text);

/* ---- Answers: the whole of `data` ---- */

/* {"task":{…},"audit_id":…,"deduplicated":…} */
void wire_review_answer_write(struct buffer *out, const struct task_document *task, const struct id *audit_id,
                              bool deduplicated);
/* {"source_task_id":…,"task":{…},"audit_id":…,"deduplicated":…}; task is the successor. */
void wire_retry_answer_write(struct buffer *out, const struct id *source_task_id, const struct task_document *task,
                             const struct id *audit_id, bool deduplicated);
/* {"task":{…},"audit_id":…,"applied":…,"deduplicated":…} */
void wire_cancel_answer_write(struct buffer *out, const struct task_document *task, const struct id *audit_id, bool applied,
                              bool deduplicated);

/* ---- Operations ---- */

/* What a task was or became. */
struct operation_standing {
  enum task_state state; /* NONE: not told */
  uint64_t revision;
};

/* One entry of a task's operations; made by state/operations.h. Spans belong to log records. */
struct operation_document {
  struct id id; /* the audit id */
  struct id task_id, operation_id, actor_id;
  struct bytes action; /* "task.review" … */
  int64_t created_at;
  struct bytes reason, evidence_ref; /* data NULL: absent */
  struct bytes before, after;        /* JSON as recorded; data NULL: made from what follows */
  struct operation_standing was, is;
  /* What the action was about, told in `after`; zero and NONE are left out. */
  struct id attempt_id, retry_of;
  enum outcome outcome;
  enum ended_by ended_by;
  enum decision decision;
};

/* {"id","task_id","operation_id","actor_id","action","created_at"} */
void wire_operation_summary_write(struct buffer *out, const struct operation_document *operation);
/* The same and reason?, evidence_ref?, before?, after?: the whole of `data`. */
void wire_operation_write(struct buffer *out, const struct operation_document *operation);

#endif
