/* Owns the bodies of review, manual retry and cancel, and the JSON of their answers and of a task's operations. */
#include "codec/wire_recovery.h"

#include <stddef.h>
#include <string.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "codec/wire_http.h"

#define COUNT(fields) ((unsigned)(sizeof(fields) / sizeof(fields)[0]))

/* ---- Texts ---- */

/* The code point at *at, which moves behind it. The text is valid UTF-8. */
static uint32_t next_char(struct bytes text, size_t *at) {
  size_t length = bytes_utf8_sequence(text.data + *at, text.size - *at);
  must(length > 0);
  const uint8_t *byte = text.data + *at;
  uint32_t code = length == 1 ? *byte : *byte & (0x7FU >> length);
  for (size_t i = 1; i < length; i++) code = code << 6 | (byte[i] & 0x3FU);
  *at += length;
  return code;
}

/* Unicode's property White_Space. */
static bool is_space(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

static bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7F && code <= 0x9F); }

enum status wire_reason_judge(struct json *json, struct bytes reason, struct fault *fault) {
  for (size_t at = 0; at < reason.size;)
    if (!is_space(next_char(reason, &at))) return STATUS_OK;
  return wire_refuse_member(json, 0, "reason", fault, "reason must not be white space alone");
}

bool wire_text_has_space_or_control(struct bytes text) {
  for (size_t at = 0; at < text.size;) {
    uint32_t code = next_char(text, &at);
    if (is_space(code) || is_control(code)) return true;
  }
  return false;
}

/* What review and retry have in common, after their fields were read. */
static enum status judge_texts(struct json *json, struct bytes reason, struct bytes evidence_ref, struct fault *fault) {
  enum status status = wire_reason_judge(json, reason, fault);
  if (status == STATUS_OK && wire_text_has_space_or_control(evidence_ref))
    return wire_refuse_member(json, 0, "evidence_ref", fault,
                              "evidence_ref must hold neither white space nor control characters");
  return status;
}

static enum status read_body(struct json *json, struct bytes body, const struct json_field *fields, unsigned count,
                             void *target, struct fault *fault) {
  enum status status = json_parse(json, body, fault);
  return status == STATUS_OK ? json_read_object(json, 0, fields, count, target, NULL, fault) : status;
}

/* ---- Review ---- */

struct review_body {
  struct review_command review;
  struct bytes outcome;
  uint32_t result; /* token */
  bool execution_settled;
};

#define REVIEW(member) offsetof(struct review_body, member)
static const struct json_field review_fields[] = {
    {"expected_revision", JSON_KIND_DECIMAL, .required = true, .offset = REVIEW(review.expected_revision)},
    {"reason", JSON_KIND_TEXT, .required = true, .min = 1, .max = reason_chars_max, .offset = REVIEW(review.reason)},
    {"evidence_ref", JSON_KIND_TEXT, .required = true, .min = 1, .max = evidence_ref_chars_max,
     .offset = REVIEW(review.evidence_ref)},
    {"execution_settled", JSON_KIND_BOOL, .required = true, .offset = REVIEW(execution_settled)},
    {"outcome", JSON_KIND_STRING, .required = true, .max = word_chars_max, .offset = REVIEW(outcome)},
    {"result", JSON_KIND_VALUE, .required = true, .min = 1, .max = document_bytes_max, .offset = REVIEW(result)},
};

static enum status judge_review(struct json *json, struct review_body *body, struct fault *fault) {
  enum status status = judge_texts(json, body->review.reason, body->review.evidence_ref, fault);
  if (status != STATUS_OK) return status;
  if (!body->execution_settled)
    return wire_refuse_member(json, 0, "execution_settled", fault,
                              "execution_settled must be true: every old execution has ended and has no further effect");
  bool known = outcome_parse(body->outcome, &body->review.outcome);
  if (!known || (body->review.outcome != OUTCOME_SUCCEEDED && body->review.outcome != OUTCOME_FAILED))
    return wire_refuse_member(json, 0, "outcome", fault, "outcome is SUCCEEDED or FAILED");
  return STATUS_OK;
}

enum status wire_review_read(struct json *json, struct bytes body, const struct id *task_id, struct buffer *texts,
                             struct command *command, struct fault *fault) {
  struct review_body read = {.review = {.task_id = *task_id}};
  enum status status = read_body(json, body, review_fields, COUNT(review_fields), &read, fault);
  if (status == STATUS_OK) status = judge_review(json, &read, fault);
  if (status == STATUS_OK) status = wire_document_read(json, read.result, texts, &read.review.result, fault);
  if (status != STATUS_OK) return status;

  cleanup(buffer_clear) struct buffer scratch;
  buffer_init(&scratch, 2 * (size_t)document_bytes_max);
  read.review.result_digest = json_digest(json, read.result, &scratch);
  command->kind = COMMAND_REVIEW;
  command->as.review = read.review;
  command->operation.digest = review_digest(&read.review);
  return STATUS_OK;
}

/* ---- Manual retry ---- */

struct retry_body {
  struct retry_command retry;
  bool safe_to_retry;
};

#define RETRY(member) offsetof(struct retry_body, member)
static const struct json_field retry_fields[] = {
    {"expected_revision", JSON_KIND_DECIMAL, .required = true, .offset = RETRY(retry.expected_revision)},
    {"reason", JSON_KIND_TEXT, .required = true, .min = 1, .max = reason_chars_max, .offset = RETRY(retry.reason)},
    {"evidence_ref", JSON_KIND_TEXT, .required = true, .min = 1, .max = evidence_ref_chars_max,
     .offset = RETRY(retry.evidence_ref)},
    {"safe_to_retry", JSON_KIND_BOOL, .required = true, .offset = RETRY(safe_to_retry)},
    {"task_timeout_ms", JSON_KIND_U64, .required = true, .min = 1, .max = task_timeout_ms_max,
     .offset = RETRY(retry.task_timeout_ms)},
    {"available_at", JSON_KIND_TIME, .nullable = true, .offset = RETRY(retry.available_at)},
    {"start_deadline_at", JSON_KIND_TIME, .nullable = true, .offset = RETRY(retry.start_deadline_at)},
};

enum status wire_retry_read(struct json *json, struct bytes body, const struct id *task_id, struct command *command,
                            struct fault *fault) {
  struct retry_body read = {.retry = {.task_id = *task_id}};
  enum status status = read_body(json, body, retry_fields, COUNT(retry_fields), &read, fault);
  if (status == STATUS_OK) status = judge_texts(json, read.retry.reason, read.retry.evidence_ref, fault);
  if (status != STATUS_OK) return status;
  if (!read.safe_to_retry)
    return wire_refuse_member(json, 0, "safe_to_retry", fault,
                              "safe_to_retry must be true: every old execution has ended, and doing the work again is safe");
  command->kind = COMMAND_RETRY;
  command->as.retry = read.retry;
  command->operation.digest = retry_digest(&read.retry);
  return STATUS_OK;
}

/* ---- Cancel ---- */

static const struct json_field cancel_fields[] = {
    {"reason", JSON_KIND_TEXT, .required = true, .min = 1, .max = reason_chars_max,
     .offset = offsetof(struct cancel_command, reason)},
    {"expected_revision", JSON_KIND_DECIMAL, .offset = offsetof(struct cancel_command, expected_revision)},
};

enum status wire_cancel_read(struct json *json, struct bytes body, const struct id *task_id, struct command *command,
                             struct fault *fault) {
  struct cancel_command read = {.task_id = *task_id};
  enum status status = read_body(json, body, cancel_fields, COUNT(cancel_fields), &read, fault);
  if (status == STATUS_OK) status = wire_reason_judge(json, read.reason, fault);
  if (status != STATUS_OK) return status;
  command->kind = COMMAND_CANCEL;
  command->as.cancel = read;
  command->operation.digest = cancel_digest(&read);
  return STATUS_OK;
}

/* ---- Answers ---- */

static void task_member(struct buffer *out, const struct task_document *task) {
  wire_raw_member(out, "task", bytes_text(""));
  wire_task_write(out, task);
}

void wire_review_answer_write(struct buffer *out, const struct task_document *task, const struct id *audit_id,
                              bool deduplicated) {
  buffer_append_char(out, '{');
  task_member(out, task);
  wire_id_member(out, "audit_id", audit_id);
  wire_bool_member(out, "deduplicated", deduplicated);
  buffer_append_char(out, '}');
}

void wire_retry_answer_write(struct buffer *out, const struct id *source_task_id, const struct task_document *task,
                             const struct id *audit_id, bool deduplicated) {
  buffer_append_char(out, '{');
  wire_id_member(out, "source_task_id", source_task_id);
  task_member(out, task);
  wire_id_member(out, "audit_id", audit_id);
  wire_bool_member(out, "deduplicated", deduplicated);
  buffer_append_char(out, '}');
}

void wire_cancel_answer_write(struct buffer *out, const struct task_document *task, const struct id *audit_id, bool applied,
                              bool deduplicated) {
  buffer_append_char(out, '{');
  task_member(out, task);
  wire_id_member(out, "audit_id", audit_id);
  wire_bool_member(out, "applied", applied);
  wire_bool_member(out, "deduplicated", deduplicated);
  buffer_append_char(out, '}');
}

/* ---- Operations ---- */

static void word_member(struct buffer *out, const char *name, const char *word) {
  if (word[0] != 0) wire_text_member(out, name, bytes_text(word));
}

static void id_member_unless_zero(struct buffer *out, const char *name, const struct id *id) {
  if (!id_is_zero(id)) wire_id_member(out, name, id);
}

/* "name":{"state":…,"revision":… and leaves the object open. */
static void standing_begin(struct buffer *out, const char *name, const struct operation_standing *standing) {
  wire_raw_member(out, name, bytes_text("{"));
  word_member(out, "state", task_state_text(standing->state));
  wire_decimal_member(out, "revision", standing->revision);
}

static void before_member(struct buffer *out, const struct operation_document *operation) {
  wire_raw_member(out, "before", operation->before);
  if (operation->before.data != NULL || operation->was.state == TASK_NONE) return;
  standing_begin(out, "before", &operation->was);
  buffer_append_char(out, '}');
}

static void after_member(struct buffer *out, const struct operation_document *operation) {
  wire_raw_member(out, "after", operation->after);
  if (operation->after.data != NULL || operation->is.state == TASK_NONE) return;
  standing_begin(out, "after", &operation->is);
  id_member_unless_zero(out, "attempt_id", &operation->attempt_id);
  word_member(out, "outcome", outcome_text(operation->outcome));
  word_member(out, "ended_by", ended_by_text(operation->ended_by));
  word_member(out, "decision", decision_text(operation->decision));
  id_member_unless_zero(out, "retry_of", &operation->retry_of);
  buffer_append_char(out, '}');
}

static void summary_members(struct buffer *out, const struct operation_document *operation) {
  wire_id_member(out, "id", &operation->id);
  wire_id_member(out, "task_id", &operation->task_id);
  wire_id_member(out, "operation_id", &operation->operation_id);
  wire_id_member(out, "actor_id", &operation->actor_id);
  wire_text_member(out, "action", operation->action);
  wire_time_member(out, "created_at", operation->created_at);
}

void wire_operation_summary_write(struct buffer *out, const struct operation_document *operation) {
  buffer_append_char(out, '{');
  summary_members(out, operation);
  buffer_append_char(out, '}');
}

void wire_operation_write(struct buffer *out, const struct operation_document *operation) {
  buffer_append_char(out, '{');
  summary_members(out, operation);
  wire_text_member(out, "reason", operation->reason);
  wire_text_member(out, "evidence_ref", operation->evidence_ref);
  before_member(out, operation);
  after_member(out, operation);
  buffer_append_char(out, '}');
}
