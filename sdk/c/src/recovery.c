/* Owns review and retry by hand, and the reading of a task's operations and events. */
#include <stdio.h>

#include "base/guard.h"
#include "base/limits.h"
#include "codec/wire_http.h"
#include "codec/wire_recovery.h"
#include "documents.h"
#include "request.h"

void orbit_review_result_free(struct orbit_review_result *result) { sdk_result_free(result); }
void orbit_retry_result_free(struct orbit_retry_result *result) { sdk_result_free(result); }
void orbit_operation_free(struct orbit_operation *operation) { sdk_result_free(operation); }
void orbit_operation_list_free(struct orbit_operation_list *list) { sdk_result_free(list); }
void orbit_event_list_free(struct orbit_event_list *list) { sdk_result_free(list); }

static bool is_evidence_ref(const char *text) {
  return sdk_is_text(text, 1, evidence_ref_chars_max) && !wire_text_has_space_or_control(bytes_text(text));
}

static const struct orbit_task *answer_task(struct sdk_view *data) {
  struct orbit_task *task = sdk_arena_alloc(data->arena, sizeof *task);
  struct sdk_view inner = sdk_view_needed(data, "task");
  if (task != NULL) sdk_task_read(&inner, task);
  sdk_view_join(data, &inner);
  return task;
}

/* ---- Review ---- */

static int review_write(const struct orbit_review_request *given, struct buffer *out, struct orbit_error *error) {
  struct orbit_review_request request;
  int status = sdk_options_copy(&request, sizeof request, given, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_rule rules[] = {
      {request.expected_revision != 0, "/expected_revision", "expected_revision is required"},
      {sdk_is_text(request.reason, 1, reason_chars_max), "/reason", "reason must be 1–1,024 characters of UTF-8"},
      {is_evidence_ref(request.evidence_ref), "/evidence_ref",
       "evidence_ref must be 1–512 characters of UTF-8 without white space and control characters"},
      {request.execution_settled, "/execution_settled",
       "execution_settled must be true: every execution has ended and will have no further effect"},
      {request.outcome == ORBIT_SUCCEEDED || request.outcome == ORBIT_FAILED, "/outcome",
       "outcome must be ORBIT_SUCCEEDED or ORBIT_FAILED"},
  };
  status = sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  wire_decimal_member(out, "expected_revision", request.expected_revision);
  wire_text_member(out, "reason", bytes_text(request.reason));
  wire_text_member(out, "evidence_ref", bytes_text(request.evidence_ref));
  wire_bool_member(out, "execution_settled", true);
  wire_text_member(out, "outcome", bytes_text(request.outcome == ORBIT_SUCCEEDED ? "SUCCEEDED" : "FAILED"));
  buffer_append_text(out, ",\"result\":");
  if (!sdk_document_minify(request.result, request.result_size, false, out)) {
    if (out->failed) return sdk_no_memory(error);
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/result", "result must be one JSON value, not null, of at most 256 KiB");
  }
  buffer_append_char(out, '}');
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

static void review_read(struct sdk_view *data, void *object) {
  struct orbit_review_result *result = object;
  result->task = answer_task(data);
  result->audit_id = sdk_view_required(data, "audit_id");
  result->deduplicated = sdk_view_bool(data, "deduplicated");
  result->json = sdk_view_whole(data, &result->json_size);
}

int orbit_review_task(struct orbit_client *client, const char *operation_key, const char *task_id,
                      const struct orbit_review_request *request, struct orbit_review_result **ret_result,
                      struct orbit_error *error) {
  static const struct sdk_kind kind = {sizeof(struct orbit_review_result), review_read, NULL, false};
  cleanup(buffer_clear) struct buffer body;
  char path[sdk_path_bytes];
  void *object;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_target_judge(operation_key, task_id, "task_id", error);
  if (status == ORBIT_OK) status = review_write(request, &body, error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s:review", task_id);
  const struct sdk_call call = {"POST", path, operation_key, &body};
  status = sdk_call_object(client, &call, &kind, &object, error);
  if (status == ORBIT_OK) *ret_result = object;
  return status;
}

/* ---- Retry by hand ---- */

static int retry_write(const struct orbit_retry_request *given, struct buffer *out, struct orbit_error *error) {
  struct orbit_retry_request request;
  int status = sdk_options_copy(&request, sizeof request, given, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_rule rules[] = {
      {request.expected_revision != 0, "/expected_revision", "expected_revision is required"},
      {sdk_is_text(request.reason, 1, reason_chars_max), "/reason", "reason must be 1–1,024 characters of UTF-8"},
      {is_evidence_ref(request.evidence_ref), "/evidence_ref",
       "evidence_ref must be 1–512 characters of UTF-8 without white space and control characters"},
      {request.safe_to_retry, "/safe_to_retry",
       "safe_to_retry must be true: every old execution has ended, and doing the work again is safe"},
      {request.task_timeout_ms >= 1 && request.task_timeout_ms <= task_timeout_ms_max, "/task_timeout_ms",
       "task_timeout_ms must be 1–2592000000"},
      {sdk_is_time(request.available_at), "/available_at", "available_at must be in the years 2000–9998"},
      {sdk_is_time(request.start_deadline_at), "/start_deadline_at", "start_deadline_at must be in the years 2000–9998"},
  };
  status = sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  wire_decimal_member(out, "expected_revision", request.expected_revision);
  wire_text_member(out, "reason", bytes_text(request.reason));
  wire_text_member(out, "evidence_ref", bytes_text(request.evidence_ref));
  wire_bool_member(out, "safe_to_retry", true);
  wire_number_member(out, "task_timeout_ms", request.task_timeout_ms);
  wire_time_member(out, "available_at", request.available_at);
  wire_time_member(out, "start_deadline_at", request.start_deadline_at);
  buffer_append_char(out, '}');
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

static void retry_read(struct sdk_view *data, void *object) {
  struct orbit_retry_result *result = object;
  result->source_task_id = sdk_view_required(data, "source_task_id");
  result->task = answer_task(data);
  result->audit_id = sdk_view_required(data, "audit_id");
  result->deduplicated = sdk_view_bool(data, "deduplicated");
  result->json = sdk_view_whole(data, &result->json_size);
}

int orbit_retry_task(struct orbit_client *client, const char *operation_key, const char *task_id,
                     const struct orbit_retry_request *request, struct orbit_retry_result **ret_result,
                     struct orbit_error *error) {
  static const struct sdk_kind kind = {sizeof(struct orbit_retry_result), retry_read, NULL, false};
  cleanup(buffer_clear) struct buffer body;
  char path[sdk_path_bytes];
  void *object;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_target_judge(operation_key, task_id, "task_id", error);
  if (status == ORBIT_OK) status = retry_write(request, &body, error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s:retry", task_id);
  const struct sdk_call call = {"POST", path, operation_key, &body};
  status = sdk_call_object(client, &call, &kind, &object, error);
  if (status == ORBIT_OK) *ret_result = object;
  return status;
}

/* ---- Operations ---- */

static void operation_read(struct sdk_view *view, void *object) {
  struct orbit_operation *operation = object;
  operation->id = sdk_view_required(view, "id");
  operation->task_id = sdk_view_required(view, "task_id");
  operation->operation_id = sdk_view_required(view, "operation_id");
  operation->actor_id = sdk_view_required(view, "actor_id");
  operation->action = sdk_view_required(view, "action");
  operation->created_at = sdk_view_time(view, "created_at");
  operation->reason = sdk_view_text(view, "reason");
  operation->evidence_ref = sdk_view_text(view, "evidence_ref");
  operation->before = sdk_view_raw(view, "before", &operation->before_size);
  operation->after = sdk_view_raw(view, "after", &operation->after_size);
  operation->json = sdk_view_whole(view, &operation->json_size);
}

static const struct sdk_kind operation_kind = {sizeof(struct orbit_operation), operation_read, NULL, false};

int orbit_list_task_operations(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                               struct orbit_operation_list **ret_list, struct orbit_error *error) {
  char path[sdk_path_bytes];
  struct sdk_page page;
  int status = sdk_id_judge(task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s/operations", task_id);
  status = sdk_get_plain_page(client, path, limit, cursor, &operation_kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_operation_list *list = page.list;
  *list = (struct orbit_operation_list){(const struct orbit_operation *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

int orbit_get_task_operation(struct orbit_client *client, const char *task_id, const char *audit_id,
                             struct orbit_operation **ret_operation, struct orbit_error *error) {
  char path[sdk_path_bytes];
  void *object;
  int status = sdk_id_judge(task_id, "task_id", error);
  if (status == ORBIT_OK) status = sdk_id_judge(audit_id, "audit_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s/operations/%s", task_id, audit_id);
  const struct sdk_call call = {"GET", path, NULL, NULL};
  status = sdk_call_object(client, &call, &operation_kind, &object, error);
  if (status == ORBIT_OK) *ret_operation = object;
  return status;
}

/* ---- Events ---- */

void sdk_event_read(struct sdk_view *view, void *object) {
  struct orbit_event *event = object;
  event->position = sdk_view_u64(view, "position");
  event->type = sdk_view_required(view, "type");
  event->time = sdk_view_time(view, "time");
  event->task_id = sdk_view_text(view, "task_id");
  event->queue_id = sdk_view_text(view, "queue_id");
  event->revision = sdk_view_u64(view, "revision");
  event->data = sdk_view_raw(view, "data", &event->data_size);
  event->json = sdk_view_whole(view, &event->json_size);
}

int orbit_list_task_events(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                           struct orbit_event_list **ret_list, struct orbit_error *error) {
  static const struct sdk_kind kind = {sizeof(struct orbit_event), sdk_event_read, NULL, false};
  char path[sdk_path_bytes];
  struct sdk_page page;
  int status = sdk_id_judge(task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s/events", task_id);
  status = sdk_get_plain_page(client, path, limit, cursor, &kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_event_list *list = page.list;
  *list = (struct orbit_event_list){(const struct orbit_event *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}
