/* Owns the JSON text of what Orbit says to workers (schema/worker.md). */
#include "base/guard.h"
#include "codec/wire_http.h"
#include "codec/wire_worker.h"

static void message_begin(struct buffer *out, const char *type) {
  buffer_append_char(out, '{');
  wire_text_member(out, "type", bytes_text(type));
}

static void object_begin(struct buffer *out, const char *name) { wire_raw_member(out, name, bytes_text("{")); }

static void object_end(struct buffer *out) { buffer_append_char(out, '}'); }

static void held_write(struct buffer *out, const struct held_attempt *held) {
  buffer_append_char(out, '{');
  wire_id_member(out, "task_id", &held->task_id);
  wire_id_member(out, "attempt_id", &held->attempt_id);
  wire_number_member(out, "number", held->number);
  wire_decimal_member(out, "epoch", held->epoch);
  wire_text_member(out, "state", bytes_text(attempt_state_text(held->state)));
  wire_time_member(out, "lease_expires_at", held->lease_expires_at);
  object_end(out);
}

void worker_welcome_write(struct buffer *out, const struct id *message_id, const struct welcome *welcome,
                          const struct id *node_id) {
  message_begin(out, "worker.welcome");
  wire_id_member(out, "message_id", message_id);
  wire_id_member(out, "session_id", &welcome->session_id);
  wire_id_member(out, "node_id", node_id);
  wire_time_member(out, "server_time", welcome->server_time);
  wire_number_member(out, "lease_ms", welcome->lease_ms);
  wire_raw_member(out, "attempts", bytes_text("["));
  for (uint32_t i = 0; i < welcome->held_count; i++) {
    if (i != 0) buffer_append_char(out, ',');
    held_write(out, &welcome->held[i]);
  }
  buffer_append_char(out, ']');
  object_end(out);
}

void worker_assign_write(struct buffer *out, const struct task_document *document, const struct attempt *attempt) {
  const struct task *task = &document->task;
  message_begin(out, "task.assign");
  wire_raw_member(out, "task", bytes_of("", 0));
  wire_task_write(out, document);
  object_begin(out, "attempt");
  wire_id_member(out, "attempt_id", &attempt->id);
  wire_number_member(out, "number", task->attempt_count);
  wire_decimal_member(out, "epoch", task->epoch);
  /* A snapshot folded from the log knows no renewals; one from memory may. */
  wire_time_member(out, "lease_expires_at",
                   attempt->live_until > attempt->lease_until ? attempt->live_until : attempt->lease_until);
  wire_number_member(out, "attempt_timeout_ms", task->attempt_timeout_ms);
  object_end(out);
  object_end(out);
}

static void result_begin(struct buffer *out, const struct id *message_id, bool ok, bool applied) {
  message_begin(out, "command.result");
  wire_id_member(out, "message_id", message_id);
  wire_bool_member(out, "ok", ok);
  wire_bool_member(out, "applied", applied);
}

static void task_and_lease_members(struct buffer *out, const struct worker_result *result) {
  if (result->has_task) {
    object_begin(out, "task");
    wire_id_member(out, "id", &result->task_id);
    wire_text_member(out, "state", bytes_text(task_state_text(result->task_state)));
    wire_decimal_member(out, "revision", result->task_revision);
    if (result->task_state == TASK_WAITING) wire_time_member(out, "available_at", result->available_at);
    object_end(out);
  }
  object_begin(out, "lease");
  wire_bool_member(out, "active", result->lease_active);
  if (result->lease_active) wire_time_member(out, "expires_at", result->lease_expires_at);
  object_end(out);
}

void worker_result_write(struct buffer *out, const struct id *message_id, const struct worker_result *result) {
  result_begin(out, message_id, true, result->applied);
  if (result->deduplicated) wire_bool_member(out, "deduplicated", true);
  if (result->evidence) wire_text_member(out, "disposition", bytes_text("EVIDENCE"));
  else if (result->disposition != DECISION_NONE)
    wire_text_member(out, "disposition", bytes_text(decision_text(result->disposition)));
  task_and_lease_members(out, result);
  object_end(out);
}

void worker_ok_write(struct buffer *out, const struct id *message_id) {
  result_begin(out, message_id, true, true);
  object_end(out);
}

static void error_member(struct buffer *out, const struct fault *fault) {
  wire_raw_member(out, "error", bytes_of("", 0));
  wire_fault_write(out, fault);
}

void worker_refusal_write(struct buffer *out, const struct id *message_id, const struct fault *fault,
                          const struct worker_result *result) {
  if (id_is_zero(message_id)) {
    worker_error_write(out, fault);
    return;
  }
  result_begin(out, message_id, false, false);
  if (result != NULL) task_and_lease_members(out, result);
  error_member(out, fault);
  object_end(out);
}

void worker_error_write(struct buffer *out, const struct fault *fault) {
  message_begin(out, "error");
  error_member(out, fault);
  object_end(out);
}

void worker_cancel_write(struct buffer *out, const struct id *task_id, const struct id *attempt_id, struct bytes reason) {
  message_begin(out, "task.cancel");
  wire_id_member(out, "task_id", task_id);
  wire_id_member(out, "attempt_id", attempt_id);
  wire_text_member(out, "reason", reason);
  object_end(out);
}

void worker_ended_write(struct buffer *out, const struct id *task_id, const struct id *attempt_id, enum ended_by ended_by) {
  message_begin(out, "attempt.ended");
  wire_id_member(out, "task_id", task_id);
  wire_id_member(out, "attempt_id", attempt_id);
  wire_text_member(out, "ended_by", bytes_text(ended_by_text(ended_by)));
  object_end(out);
}

void worker_drained_write(struct buffer *out) {
  message_begin(out, "worker.drained");
  object_end(out);
}

void worker_goaway_write(struct buffer *out, uint32_t reconnect_after_ms) {
  message_begin(out, "server.goaway");
  wire_number_member(out, "reconnect_after_ms", reconnect_after_ms);
  object_end(out);
}
