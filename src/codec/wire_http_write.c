/* Owns the JSON text of tasks, attempts, evidence and faults: members in the order of schema/http.md, written straight into the
 * answer's buffer. */
#include <string.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "codec/wire_http.h"

/* Room for ,"name": and room bytes of value; *ret_start is where the member begins. NULL when the buffer is full. */
static char *member_begin(struct buffer *out, const char *name, size_t room, char **ret_start) {
  size_t length = strlen(name);
  bool first = out->size != 0 && out->data[out->size - 1] == '{';
  char *at = (char *)buffer_reserve(out, length + 4 + room);
  if (at == NULL) return NULL;
  *ret_start = at;
  if (!first) *at++ = ',';
  *at++ = '"';
  memcpy(at, name, length);
  at += length;
  *at++ = '"';
  *at++ = ':';
  return at;
}

static void member_name(struct buffer *out, const char *name) {
  char *start, *at = member_begin(out, name, 0, &start);
  if (at != NULL) buffer_commit(out, (size_t)(at - start));
}

void wire_id_member(struct buffer *out, const char *name, const struct id *id) {
  char *start, *at = member_begin(out, name, id_chars + 2, &start);
  if (at == NULL) return;
  *at++ = '"';
  id_format(id, at);
  at += id_chars;
  *at++ = '"';
  buffer_commit(out, (size_t)(at - start));
}

void wire_time_member(struct buffer *out, const char *name, int64_t time_us) {
  if (time_us == 0) return;
  char *start, *at = member_begin(out, name, time_chars_max + 2, &start);
  if (at == NULL) return;
  *at++ = '"';
  at += time_format(time_us, at);
  *at++ = '"';
  buffer_commit(out, (size_t)(at - start));
}

void wire_text_member(struct buffer *out, const char *name, struct bytes text) {
  if (text.data == NULL) return;
  member_name(out, name);
  json_write_string(out, text);
}

void wire_raw_member(struct buffer *out, const char *name, struct bytes json) {
  if (json.data == NULL) return;
  member_name(out, name);
  buffer_append_bytes(out, json);
}

void wire_number_member(struct buffer *out, const char *name, uint64_t value) {
  char *start, *at = member_begin(out, name, 20, &start);
  if (at == NULL) return;
  at += u64_format(value, at);
  buffer_commit(out, (size_t)(at - start));
}

void wire_decimal_member(struct buffer *out, const char *name, uint64_t value) {
  char *start, *at = member_begin(out, name, 22, &start);
  if (at == NULL) return;
  *at++ = '"';
  at += u64_format(value, at);
  *at++ = '"';
  buffer_commit(out, (size_t)(at - start));
}

void wire_bool_member(struct buffer *out, const char *name, bool value) {
  wire_raw_member(out, name, bytes_text(value ? "true" : "false"));
}

/* A word of a closed vocabulary: needs no escapes. "" (none) writes nothing. */
static void word_member(struct buffer *out, const char *name, const char *word) {
  size_t length = strlen(word);
  char *start, *at = length != 0 ? member_begin(out, name, length + 2, &start) : NULL;
  if (at == NULL) return;
  *at++ = '"';
  memcpy(at, word, length);
  at += length;
  *at++ = '"';
  buffer_commit(out, (size_t)(at - start));
}

static void object_begin(struct buffer *out, const char *name) {
  member_name(out, name);
  buffer_append_char(out, '{');
}

static void object_end(struct buffer *out) { buffer_append_char(out, '}'); }

/* ---- Tasks, attempts, evidence ---- */

static void error_member(struct buffer *out, struct bytes code, struct bytes message, struct bytes details) {
  if (code.data == NULL) return;
  object_begin(out, "error");
  wire_text_member(out, "code", code);
  wire_text_member(out, "message", message);
  wire_raw_member(out, "details", details);
  object_end(out);
}

static void id_member_unless_zero(struct buffer *out, const char *name, const struct id *id) {
  if (!id_is_zero(id)) wire_id_member(out, name, id);
}

static void retry_member(struct buffer *out, const struct task *task) {
  object_begin(out, "retry");
  wire_number_member(out, "max_attempts", task->max_attempts);
  wire_number_member(out, "initial_delay_ms", task->initial_delay_ms);
  wire_number_member(out, "max_delay_ms", task->max_delay_ms);
  wire_number_member(out, "attempt_timeout_ms", task->attempt_timeout_ms);
  object_end(out);
}

static void task_write(struct buffer *out, const struct task_document *document, bool whole) {
  const struct task *task = &document->task;
  const struct event_task_accepted *accepted = &document->accepted;
  buffer_append_char(out, '{');
  wire_id_member(out, "id", &task->id);
  wire_id_member(out, "namespace_id", &accepted->namespace_id);
  wire_id_member(out, "queue_id", &accepted->queue_id);
  word_member(out, "state", task_state_text((enum task_state)task->state));
  wire_decimal_member(out, "revision", task->revision);
  wire_text_member(out, "handler", accepted->handler);
  wire_text_member(out, "handler_version", accepted->handler_version);
  wire_text_member(out, "payload_version", accepted->payload_version);
  if (whole) wire_raw_member(out, "payload", accepted->payload);
  wire_text_member(out, "business_key", accepted->business_key);
  wire_text_member(out, "concurrency_key", accepted->concurrency_key);
  if (task->priority != 0) wire_number_member(out, "priority", task->priority);
  wire_time_member(out, "available_at", task->available_at);
  wire_time_member(out, "start_deadline_at", task->start_deadline_at);
  wire_time_member(out, "deadline_at", task->deadline_at);
  word_member(out, "recovery_safety", recovery_safety_text((enum recovery_safety)task->recovery_safety));
  retry_member(out, task);
  wire_number_member(out, "attempt_count", task->attempt_count);
  if (task->effect_uncertain) wire_bool_member(out, "effect_uncertain", true);
  wire_time_member(out, "cancel_requested_at", task->cancel_requested_at);
  error_member(out, document->error_code, document->error_message, document->error_details);
  if (whole) wire_raw_member(out, "result", document->result);
  wire_time_member(out, "completed_at", task_completed_at(task));
  wire_time_member(out, "created_at", task->created_at);
  wire_time_member(out, "updated_at", task->updated_at);
  if (whole) id_member_unless_zero(out, "retry_of", &accepted->retry_of);
  id_member_unless_zero(out, "schedule_id", &accepted->schedule_id);
  object_end(out);
}

void wire_task_write(struct buffer *out, const struct task_document *document) { task_write(out, document, true); }
void wire_task_summary_write(struct buffer *out, const struct task_document *document) { task_write(out, document, false); }

static void outcome_members(struct buffer *out, enum outcome outcome, bool retryable) {
  word_member(out, "outcome", outcome_text(outcome));
  if (outcome == OUTCOME_FAILED || retryable) wire_bool_member(out, "retryable", retryable);
}

void wire_attempt_write(struct buffer *out, const struct attempt_document *attempt) {
  buffer_append_char(out, '{');
  wire_id_member(out, "attempt_id", &attempt->attempt_id);
  wire_number_member(out, "number", attempt->number);
  wire_decimal_member(out, "epoch", attempt->epoch);
  word_member(out, "state", attempt_state_text(attempt->state));
  object_begin(out, "worker");
  wire_id_member(out, "instance_id", &attempt->instance_id);
  wire_text_member(out, "name", attempt->instance_name);
  object_end(out);
  wire_time_member(out, "leased_at", attempt->leased_at);
  wire_time_member(out, "lease_expires_at", attempt->lease_expires_at);
  wire_time_member(out, "started_at", attempt->started_at);
  wire_time_member(out, "attempt_deadline_at", attempt->attempt_deadline_at);
  wire_time_member(out, "finished_at", attempt->finished_at);
  if (attempt->ended_by != ENDED_REPORT) word_member(out, "ended_by", ended_by_text(attempt->ended_by));
  outcome_members(out, attempt->outcome, attempt->retryable);
  error_member(out, attempt->error_code, attempt->error_message, attempt->error_details);
  wire_raw_member(out, "result", attempt->result);
  word_member(out, "decision", decision_text(attempt->decision));
  if (attempt->has_delay) wire_number_member(out, "delay_ms", attempt->delay_ms);
  wire_time_member(out, "next_available_at", attempt->next_available_at);
  object_end(out);
}

void wire_evidence_write(struct buffer *out, const struct evidence_document *document) {
  const struct event_evidence_recorded *evidence = &document->evidence;
  buffer_append_char(out, '{');
  wire_id_member(out, "evidence_id", &evidence->evidence_id);
  wire_id_member(out, "attempt_id", &evidence->attempt_id);
  wire_decimal_member(out, "epoch", evidence->epoch);
  wire_id_member(out, "message_id", &evidence->message_id);
  wire_time_member(out, "reported_at", document->reported_at);
  word_member(out, "reason", evidence_reason_text(evidence->reason));
  outcome_members(out, evidence->outcome, evidence->retryable);
  error_member(out, evidence->error_code, evidence->error_message, evidence->error_details);
  wire_raw_member(out, "result", evidence->result);
  object_end(out);
}

/* ---- Envelopes and faults ---- */

static void envelope_begin(struct buffer *out, const char *request_id) {
  buffer_append_char(out, '{');
  wire_text_member(out, "request_id", bytes_text(request_id));
}

void wire_data_begin(struct buffer *out, const char *request_id) {
  envelope_begin(out, request_id);
  member_name(out, "data");
}

void wire_data_end(struct buffer *out) { object_end(out); }

void wire_error_write(struct buffer *out, const char *request_id, const struct fault *fault) {
  envelope_begin(out, request_id);
  member_name(out, "error");
  wire_fault_write(out, fault);
  object_end(out);
}

/* A fault's texts are cut to their buffers, possibly within a character: what stands before the cut. */
static struct bytes whole_chars(const char *text) {
  struct bytes bytes = bytes_text(text);
  for (unsigned cut = 0; cut < utf8_bytes_per_char_max && cut <= bytes.size; cut++) {
    struct bytes shorter = bytes_of(bytes.data, bytes.size - cut);
    if (bytes_is_utf8(shorter)) return shorter;
  }
  return bytes_of(bytes.data, 0);
}

void wire_fault_write(struct buffer *out, const struct fault *fault) {
  must(fault->status != STATUS_OK);
  bool is_public = fault->status <= STATUS_UNAVAILABLE;
  enum status status = is_public ? fault->status : status_http(fault->status) == 503 ? STATUS_UNAVAILABLE : STATUS_INTERNAL;
  struct bytes message = whole_chars(is_public ? fault->message : "");
  buffer_append_char(out, '{');
  word_member(out, "code", status_name(status));
  wire_text_member(out, "message", message.size != 0 ? message : bytes_text(status_text(status)));
  if (is_public && fault->field[0] != 0) wire_text_member(out, "field", whole_chars(fault->field));
  if (fault->retry_after_ms != 0) wire_number_member(out, "retry_after_ms", fault->retry_after_ms);
  object_end(out);
}
