/* Owns the translation between orbit.h's structures and JSON. */
#include "documents.h"

#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "base/time_text.h"
#include "codec/wire_http.h"

/* ---- Requests ---- */

bool sdk_document_minify(const char *text, size_t size, bool null_allowed, struct buffer *out) {
  cleanup(json_clear) struct json json;
  json_init(&json);
  if (text == NULL || size > http_body_bytes_max) return false;
  if (json_parse(&json, bytes_of(text, size), NULL) != STATUS_OK) return false;
  if (!null_allowed && json.tokens[0].type == JSON_NULL) return false;
  size_t before = out->size;
  json_minify(&json, 0, out);
  return !out->failed && out->size - before <= document_bytes_max;
}

bool sdk_is_time(int64_t time_us) { return time_us == 0 || (time_us >= time_us_min && time_us < time_us_max); }

static int fields_judge(const struct orbit_task_request *request, struct orbit_error *error) {
  const struct {
    bool good;
    const char *field, *problem;
  } rules[] = {
      {sdk_is_id(request->queue_id), "/queue_id", "queue_id must be an id: 32 lower-case hexadecimal digits"},
      {sdk_is_word(request->handler), "/handler", "handler must be 1–128 of [A-Za-z0-9._:/-]"},
      {sdk_is_word(request->handler_version), "/handler_version", "handler_version must be 1–128 of [A-Za-z0-9._:/-]"},
      {sdk_is_word(request->payload_version), "/payload_version", "payload_version must be 1–128 of [A-Za-z0-9._:/-]"},
      {request->task_timeout_ms >= 1 && request->task_timeout_ms <= task_timeout_ms_max, "/task_timeout_ms",
       "task_timeout_ms must be 1–2592000000"},
      {sdk_is_time(request->available_at), "/available_at", "available_at must be in the years 2000–9998"},
      {sdk_is_time(request->start_deadline_at), "/start_deadline_at", "start_deadline_at must be in the years 2000–9998"},
      {request->recovery_safety == ORBIT_RECONCILE_ONLY || request->recovery_safety == ORBIT_IDEMPOTENT, "/recovery_safety",
       "recovery_safety must be ORBIT_RECONCILE_ONLY or ORBIT_IDEMPOTENT"},
      {request->priority <= priority_max, "/priority", "priority must be 0–9"},
      {request->business_key == NULL || sdk_is_text(request->business_key, 1, key_chars_max), "/business_key",
       "business_key must be 1–256 characters of UTF-8"},
      {request->concurrency_key == NULL || sdk_is_text(request->concurrency_key, 1, key_chars_max), "/concurrency_key",
       "concurrency_key must be 1–256 characters of UTF-8"},
  };
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    if (!rules[i].good) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, rules[i].field, "%s", rules[i].problem);
  }
  return ORBIT_OK;
}

static void text_member(struct buffer *out, const char *name, const char *text) {
  if (text != NULL) wire_text_member(out, name, bytes_text(text));
}

static void retry_write(struct buffer *out, const struct orbit_retry *retry) {
  buffer_append_text(out, ",\"retry\":{");
  if (retry->max_attempts != 0) wire_number_member(out, "max_attempts", retry->max_attempts);
  if (retry->initial_delay_ms != 0) wire_number_member(out, "initial_delay_ms", retry->initial_delay_ms);
  if (retry->max_delay_ms != 0) wire_number_member(out, "max_delay_ms", retry->max_delay_ms);
  if (retry->attempt_timeout_ms != 0) wire_number_member(out, "attempt_timeout_ms", retry->attempt_timeout_ms);
  buffer_append_char(out, '}');
}

/* Where the object stands: a submission, an item of a batch with its key, or a template, which has neither queue nor times. */
struct submission_place {
  const char *key;
  bool template;
};

static int write_submission(const struct submission_place *place, const struct orbit_task_request *given, struct buffer *out,
                            struct orbit_error *error) {
  struct orbit_task_request request;
  int status = sdk_options_copy(&request, sizeof request, given, error);
  if (status == ORBIT_OK) status = fields_judge(&request, error);
  if (status == ORBIT_OK && place->template && (request.available_at != 0 || request.start_deadline_at != 0))
    status = sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/template", "a template has neither available_at nor start_deadline_at");
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  text_member(out, "idempotency_key", place->key);
  if (!place->template) text_member(out, "queue_id", request.queue_id);
  text_member(out, "handler", request.handler);
  text_member(out, "handler_version", request.handler_version);
  text_member(out, "payload_version", request.payload_version);
  buffer_append_text(out, ",\"payload\":");
  if (!sdk_document_minify(request.payload, request.payload_size, false, out)) {
    if (out->failed) return sdk_no_memory(error);
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/payload", "payload must be one JSON value, not null, of at most 256 KiB");
  }
  wire_number_member(out, "task_timeout_ms", request.task_timeout_ms);
  if (request.available_at != 0) wire_time_member(out, "available_at", request.available_at);
  if (request.start_deadline_at != 0) wire_time_member(out, "start_deadline_at", request.start_deadline_at);
  if (request.recovery_safety == ORBIT_IDEMPOTENT) text_member(out, "recovery_safety", "IDEMPOTENT");
  retry_write(out, &request.retry);
  text_member(out, "business_key", request.business_key);
  text_member(out, "concurrency_key", request.concurrency_key);
  if (request.priority != 0) wire_number_member(out, "priority", request.priority);
  buffer_append_char(out, '}');
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

int sdk_submission_write(const char *key, const struct orbit_task_request *request, struct buffer *out,
                         struct orbit_error *error) {
  return write_submission(&(struct submission_place){key, false}, request, out, error);
}

int sdk_template_write(const struct orbit_task_request *request, struct buffer *out, struct orbit_error *error) {
  return write_submission(&(struct submission_place){NULL, true}, request, out, error);
}

int sdk_task_request_write(const struct orbit_task_request *request, struct buffer *out, struct orbit_error *error) {
  return sdk_submission_write(NULL, request, out, error);
}

/* ---- Answers ---- */

static int32_t word_index(const char *word, const char *const words[], size_t count) {
  for (size_t i = 1; i < count; i++) {
    if (strcmp(word, words[i]) == 0) return (int32_t)i;
  }
  return 0;
}

static const char *const task_states[] = {"",          "WAITING", "LEASED",   "RUNNING", "NEEDS_REVIEW",
                                          "SUCCEEDED", "FAILED",  "CANCELLED"};
enum { task_state_count = sizeof task_states / sizeof task_states[0] };

const char *sdk_task_state_name(int32_t state) { return state > 0 && state < task_state_count ? task_states[state] : NULL; }

static int32_t attempt_state(const char *name) {
  static const char *const names[] = {"",        "LEASED",    "RUNNING", "SUCCEEDED", "FAILED",
                                      "UNKNOWN", "CANCELLED", "EXPIRED", "REVOKED"};
  return word_index(name, names, sizeof names / sizeof names[0]);
}

bool orbit_task_is_terminal(const struct orbit_task *task) {
  return task->state == ORBIT_TASK_SUCCEEDED || task->state == ORBIT_TASK_FAILED || task->state == ORBIT_TASK_CANCELLED;
}

static void retry_read(struct sdk_view *view, struct orbit_retry *retry) {
  struct sdk_view inner = sdk_view_object(view, "retry");
  retry->max_attempts = sdk_view_u32(&inner, "max_attempts");
  retry->initial_delay_ms = sdk_view_u32(&inner, "initial_delay_ms");
  retry->max_delay_ms = sdk_view_u32(&inner, "max_delay_ms");
  retry->attempt_timeout_ms = sdk_view_u64(&inner, "attempt_timeout_ms");
  view->bad = view->bad || inner.bad;
}

void sdk_task_read(struct sdk_view *view, struct orbit_task *task) {
  task->id = sdk_view_required(view, "id");
  task->namespace_id = sdk_view_required(view, "namespace_id");
  task->queue_id = sdk_view_required(view, "queue_id");
  task->state_name = sdk_view_required(view, "state");
  task->state = word_index(task->state_name, task_states, task_state_count);
  task->revision = sdk_view_u64(view, "revision");
  task->handler = sdk_view_required(view, "handler");
  task->handler_version = sdk_view_required(view, "handler_version");
  task->payload_version = sdk_view_required(view, "payload_version");
  task->payload = sdk_view_raw(view, "payload", &task->payload_size);
  task->business_key = sdk_view_text(view, "business_key");
  task->concurrency_key = sdk_view_text(view, "concurrency_key");
  task->priority = sdk_view_u32(view, "priority");
  task->available_at = sdk_view_time(view, "available_at");
  task->start_deadline_at = sdk_view_time(view, "start_deadline_at");
  task->deadline_at = sdk_view_time(view, "deadline_at");
  struct bytes safety = sdk_view_span(view, "recovery_safety");
  task->recovery_safety = bytes_equal_text(safety, "IDEMPOTENT") ? ORBIT_IDEMPOTENT : ORBIT_RECONCILE_ONLY;
  retry_read(view, &task->retry);
  task->attempt_count = sdk_view_u32(view, "attempt_count");
  task->effect_uncertain = sdk_view_bool(view, "effect_uncertain");
  task->cancel_requested_at = sdk_view_time(view, "cancel_requested_at");
  task->error = sdk_view_fault(view, "error");
  task->result = sdk_view_raw(view, "result", &task->result_size);
  task->completed_at = sdk_view_time(view, "completed_at");
  task->created_at = sdk_view_time(view, "created_at");
  task->updated_at = sdk_view_time(view, "updated_at");
  task->json = sdk_view_whole(view, &task->json_size);
  task->retry_of = sdk_view_text(view, "retry_of");
  task->schedule_id = sdk_view_text(view, "schedule_id");
}

void sdk_attempt_read(struct sdk_view *view, struct orbit_attempt *attempt) {
  attempt->attempt_id = sdk_view_required(view, "attempt_id");
  attempt->number = sdk_view_u32(view, "number");
  attempt->epoch = sdk_view_u64(view, "epoch");
  attempt->state_name = sdk_view_required(view, "state");
  attempt->state = attempt_state(attempt->state_name);
  struct sdk_view worker = sdk_view_object(view, "worker");
  const char *instance_id = sdk_view_text(&worker, "instance_id");
  attempt->worker_instance_id = instance_id != NULL ? instance_id : "";
  attempt->worker_name = sdk_view_text(&worker, "name");
  view->bad = view->bad || worker.bad;
  attempt->leased_at = sdk_view_time(view, "leased_at");
  attempt->lease_expires_at = sdk_view_time(view, "lease_expires_at");
  attempt->started_at = sdk_view_time(view, "started_at");
  attempt->attempt_deadline_at = sdk_view_time(view, "attempt_deadline_at");
  attempt->finished_at = sdk_view_time(view, "finished_at");
  attempt->ended_by = sdk_view_text(view, "ended_by");
  attempt->outcome = sdk_view_text(view, "outcome");
  attempt->retryable = sdk_view_bool(view, "retryable");
  attempt->error = sdk_view_fault(view, "error");
  attempt->result = sdk_view_raw(view, "result", &attempt->result_size);
  attempt->decision = sdk_view_text(view, "decision");
  attempt->delay_ms = sdk_view_u64(view, "delay_ms");
  attempt->next_available_at = sdk_view_time(view, "next_available_at");
  attempt->json = sdk_view_whole(view, &attempt->json_size);
}

void sdk_evidence_read(struct sdk_view *view, struct orbit_evidence *evidence) {
  evidence->evidence_id = sdk_view_required(view, "evidence_id");
  evidence->attempt_id = sdk_view_required(view, "attempt_id");
  evidence->epoch = sdk_view_u64(view, "epoch");
  evidence->message_id = sdk_view_required(view, "message_id");
  evidence->reported_at = sdk_view_time(view, "reported_at");
  evidence->reason = sdk_view_required(view, "reason");
  evidence->outcome = sdk_view_required(view, "outcome");
  evidence->retryable = sdk_view_bool(view, "retryable");
  evidence->error = sdk_view_fault(view, "error");
  evidence->result = sdk_view_raw(view, "result", &evidence->result_size);
  evidence->json = sdk_view_whole(view, &evidence->json_size);
}

void sdk_server_info_read(struct sdk_view *view, struct orbit_server_info *info) {
  info->version = sdk_view_required(view, "version");
  info->node_id = sdk_view_required(view, "node_id");
  info->time = sdk_view_time(view, "time");
  const char *worker_url = sdk_view_text(view, "worker_url");
  info->worker_url = worker_url != NULL ? worker_url : "";
  info->limits_json = sdk_view_raw(view, "limits", &info->limits_json_size);
  struct sdk_view log = sdk_view_object(view, "log");
  info->log_position = sdk_view_u64(&log, "position");
  view->bad = view->bad || log.bad;
}
