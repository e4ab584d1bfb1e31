/* Owns the functions of producers: submitting, reading, listing, cancelling, the history of a task, and what the server says of
 * itself. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "base/time_text.h"
#include "client.h"
#include "codec/wire_http.h"
#include "documents.h"
#include "request.h"

void orbit_task_free(struct orbit_task *task) { sdk_result_free(task); }
void orbit_task_list_free(struct orbit_task_list *list) { sdk_result_free(list); }
void orbit_attempt_free(struct orbit_attempt *attempt) { sdk_result_free(attempt); }
void orbit_attempt_list_free(struct orbit_attempt_list *list) { sdk_result_free(list); }
void orbit_evidence_list_free(struct orbit_evidence_list *list) { sdk_result_free(list); }
void orbit_server_info_free(struct orbit_server_info *info) { sdk_result_free(info); }

static void task_read(struct sdk_view *view, void *object) { sdk_task_read(view, object); }
static void attempt_read(struct sdk_view *view, void *object) { sdk_attempt_read(view, object); }
static void evidence_read(struct sdk_view *view, void *object) { sdk_evidence_read(view, object); }
static void info_read(struct sdk_view *view, void *object) { sdk_server_info_read(view, object); }

static void task_answer_read(struct sdk_view *data, void *object) {
  struct orbit_task *task = object;
  struct sdk_view inner = sdk_view_needed(data, "task");
  sdk_task_read(&inner, task);
  sdk_view_join(data, &inner);
  task->deduplicated = sdk_view_bool(data, "deduplicated");
  task->audit_id = sdk_view_text(data, "audit_id");
  task->applied = sdk_view_bool(data, "applied");
}

static const struct sdk_kind task_answer_kind = {sizeof(struct orbit_task), task_answer_read, NULL, false};
static const struct sdk_kind task_kind = {sizeof(struct orbit_task), task_read, "task", false};
static const struct sdk_kind attempt_kind = {sizeof(struct orbit_attempt), attempt_read, "attempt", false};
static const struct sdk_kind evidence_kind = {sizeof(struct orbit_evidence), evidence_read, NULL, false};
static const struct sdk_kind info_kind = {sizeof(struct orbit_server_info), info_read, NULL, false};

/* ---- One task ---- */

static int task_call(struct orbit_client *client, const struct sdk_call *call, const struct sdk_kind *kind,
                     struct orbit_task **ret_task, struct orbit_error *error) {
  void *object;
  int status = sdk_call_object(client, call, kind, &object, error);
  if (status == ORBIT_OK) *ret_task = object;
  return status;
}

int orbit_submit_task(struct orbit_client *client, const char *operation_key, const struct orbit_task_request *request,
                      struct orbit_task **ret_task, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_key_judge(operation_key, error);
  if (status == ORBIT_OK) status = sdk_task_request_write(request, &body, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_call call = {"POST", "/v1/tasks", operation_key, &body};
  return task_call(client, &call, &task_answer_kind, ret_task, error);
}

int orbit_get_task(struct orbit_client *client, const char *task_id, struct orbit_task **ret_task, struct orbit_error *error) {
  char path[sdk_path_bytes];
  int status = sdk_id_judge(task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s", task_id);
  const struct sdk_call call = {"GET", path, NULL, NULL};
  return task_call(client, &call, &task_kind, ret_task, error);
}

int orbit_cancel_task(struct orbit_client *client, const char *operation_key, const char *task_id, const char *reason,
                      uint64_t expected_revision, struct orbit_task **ret_task, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_target_judge(operation_key, task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  if (!sdk_is_text(reason, 1, reason_chars_max)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/reason", "reason must be 1–1,024 characters of UTF-8");
  }
  buffer_append_char(&body, '{');
  wire_text_member(&body, "reason", bytes_text(reason));
  if (expected_revision != 0) wire_decimal_member(&body, "expected_revision", expected_revision);
  buffer_append_char(&body, '}');
  if (body.failed) return sdk_no_memory(error);
  char path[sdk_path_bytes];
  (void)snprintf(path, sizeof path, "/v1/tasks/%s:cancel", task_id);
  const struct sdk_call call = {"POST", path, operation_key, &body};
  return task_call(client, &call, &task_answer_kind, ret_task, error);
}

/* ---- Lists of tasks ---- */

static int filter_judge(const struct orbit_task_filter *filter, struct orbit_error *error) {
  const struct sdk_rule rules[] = {
      {filter->queue_id == NULL || sdk_is_id(filter->queue_id), "queue_id",
       "queue_id must be an id: 32 lower-case hexadecimal digits"},
      {filter->state == ORBIT_TASK_OTHER || sdk_task_state_name(filter->state) != NULL, "state",
       "state must be one of enum orbit_task_state"},
      {filter->handler == NULL || sdk_is_word(filter->handler), "handler", "handler must be 1–128 of [A-Za-z0-9._:/-]"},
      {filter->business_key == NULL || sdk_is_text(filter->business_key, 1, key_chars_max), "business_key",
       "business_key must be 1–256 characters of UTF-8"},
      {sdk_is_time(filter->created_after), "created_after", "created_after must be in the years 2000–9998"},
      {sdk_is_time(filter->created_before), "created_before", "created_before must be in the years 2000–9998"},
  };
  return sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
}

static void time_parameter_write(struct buffer *path, const char *name, int64_t time_us) {
  char text[time_chars_max + 1];
  if (time_us == 0) return;
  text[time_format(time_us, text)] = '\0';
  sdk_parameter_write(path, name, text);
}

int orbit_list_tasks(struct orbit_client *client, const struct orbit_task_filter *given, uint32_t limit, const char *cursor,
                     struct orbit_task_list **ret_list, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer path;
  struct orbit_task_filter filter = ORBIT_TASK_FILTER_INIT;
  struct sdk_page page;
  buffer_init(&path, http_target_bytes_max);
  int status = given != NULL ? sdk_options_copy(&filter, sizeof filter, given, error) : ORBIT_OK;
  if (status == ORBIT_OK) status = filter_judge(&filter, error);
  if (status != ORBIT_OK) return status;
  buffer_append_text(&path, "/v1/tasks");
  sdk_parameter_write(&path, "queue_id", filter.queue_id);
  sdk_parameter_write(&path, "state", sdk_task_state_name(filter.state));
  sdk_parameter_write(&path, "handler", filter.handler);
  sdk_parameter_write(&path, "business_key", filter.business_key);
  time_parameter_write(&path, "created_after", filter.created_after);
  time_parameter_write(&path, "created_before", filter.created_before);
  status = sdk_page_write(&path, limit, cursor, error);
  if (status != ORBIT_OK) return status;
  status = sdk_get_page(client, (const char *)path.data, &task_kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_task_list *list = page.list;
  *list = (struct orbit_task_list){(const struct orbit_task *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

/* ---- History ---- */

int orbit_list_attempts(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                        struct orbit_attempt_list **ret_list, struct orbit_error *error) {
  char path[sdk_path_bytes];
  struct sdk_page page;
  int status = sdk_id_judge(task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s/attempts", task_id);
  status = sdk_get_plain_page(client, path, limit, cursor, &attempt_kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_attempt_list *list = page.list;
  *list = (struct orbit_attempt_list){(const struct orbit_attempt *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

int orbit_list_evidence(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                        struct orbit_evidence_list **ret_list, struct orbit_error *error) {
  char path[sdk_path_bytes];
  struct sdk_page page;
  int status = sdk_id_judge(task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s/evidence", task_id);
  status = sdk_get_plain_page(client, path, limit, cursor, &evidence_kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_evidence_list *list = page.list;
  *list = (struct orbit_evidence_list){(const struct orbit_evidence *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

int orbit_get_attempt(struct orbit_client *client, const char *task_id, const char *attempt_id,
                      struct orbit_attempt **ret_attempt, struct orbit_error *error) {
  char path[sdk_path_bytes];
  void *object;
  int status = sdk_id_judge(task_id, "task_id", error);
  if (status == ORBIT_OK) status = sdk_id_judge(attempt_id, "attempt_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s/attempts/%s", task_id, attempt_id);
  const struct sdk_call call = {"GET", path, NULL, NULL};
  status = sdk_call_object(client, &call, &attempt_kind, &object, error);
  if (status == ORBIT_OK) *ret_attempt = object;
  return status;
}

/* ---- The server ---- */

int orbit_info(struct orbit_client *client, struct orbit_server_info **ret_info, struct orbit_error *error) {
  static const struct sdk_call call = {"GET", "/v1/info", NULL, NULL};
  void *object;
  int status = sdk_call_object(client, &call, &info_kind, &object, error);
  if (status == ORBIT_OK) *ret_info = object;
  return status;
}

int orbit_metrics(struct orbit_client *client, struct orbit_response **ret_response, struct orbit_error *error) {
  return orbit_call(client, "GET", "/metrics", NULL, NULL, 0, ret_response, error);
}
