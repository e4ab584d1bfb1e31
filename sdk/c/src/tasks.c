/* Owns the functions of producers: submitting, reading, cancelling, and the history of a task. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "client.h"
#include "codec/wire_http.h"
#include "documents.h"

enum { path_bytes = 256 };

void orbit_task_free(struct orbit_task *task) { sdk_result_free(task); }
void orbit_attempt_free(struct orbit_attempt *attempt) { sdk_result_free(attempt); }
void orbit_attempt_list_free(struct orbit_attempt_list *list) { sdk_result_free(list); }
void orbit_evidence_list_free(struct orbit_evidence_list *list) { sdk_result_free(list); }
void orbit_server_info_free(struct orbit_server_info *info) { sdk_result_free(info); }

static int id_judge(const char *id, const char *name, struct orbit_error *error) {
  if (sdk_is_id(id)) return ORBIT_OK;
  return sdk_fail(error, ORBIT_INVALID_ARGUMENT, name, "%s must be an id: 32 lower-case hexadecimal digits", name);
}

/* ---- One task ---- */

static int task_request(struct orbit_client *client, const char *method, const char *path, const char *key, struct bytes body,
                        struct orbit_task **ret_task, struct orbit_error *error) {
  cleanup(sdk_exchange_end) struct sdk_exchange exchange;
  int status = sdk_exchange(client, method, path, key, body, &exchange, error);
  if (status != ORBIT_OK) return status;
  struct orbit_task *task = sdk_result_new(sizeof *task);
  if (task == NULL) return sdk_no_memory(error);
  struct sdk_view data = sdk_exchange_view(&exchange, NULL, sdk_result_arena(task));
  struct sdk_view view = sdk_exchange_view(&exchange, "task", sdk_result_arena(task));
  sdk_task_read(&view, task);
  task->deduplicated = sdk_view_bool(&data, "deduplicated");
  view.bad = view.bad || data.bad;
  status = sdk_exchange_judge(&exchange, &view, error);
  if (status != ORBIT_OK) {
    orbit_task_free(task);
    return status;
  }
  *ret_task = task;
  return ORBIT_OK;
}

static int key_judge(const char *key, struct orbit_error *error) {
  if (sdk_is_visible_ascii(key, idempotency_key_chars_max)) return ORBIT_OK;
  return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "operation_key", "the operation key must be 1–128 visible ASCII characters");
}

int orbit_submit_task(struct orbit_client *client, const char *operation_key, const struct orbit_task_request *request,
                      struct orbit_task **ret_task, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_body_bytes_max);
  int status = key_judge(operation_key, error);
  if (status == ORBIT_OK) status = sdk_task_request_write(request, &body, error);
  if (status != ORBIT_OK) return status;
  return task_request(client, "POST", "/v1/tasks", operation_key, buffer_bytes(&body), ret_task, error);
}

int orbit_get_task(struct orbit_client *client, const char *task_id, struct orbit_task **ret_task, struct orbit_error *error) {
  char path[path_bytes];
  int status = id_judge(task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s", task_id);
  return task_request(client, "GET", path, NULL, bytes_of(NULL, 0), ret_task, error);
}

int orbit_cancel_task(struct orbit_client *client, const char *operation_key, const char *task_id, const char *reason,
                      uint64_t expected_revision, struct orbit_task **ret_task, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_body_bytes_max);
  int status = key_judge(operation_key, error);
  if (status == ORBIT_OK) status = id_judge(task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  if (!sdk_is_text(reason, 1, reason_chars_max)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/reason", "reason must be 1–1,024 characters of UTF-8");
  }
  buffer_append_char(&body, '{');
  wire_text_member(&body, "reason", bytes_text(reason));
  if (expected_revision != 0) wire_decimal_member(&body, "expected_revision", expected_revision);
  buffer_append_char(&body, '}');
  if (body.failed) return sdk_no_memory(error);
  char path[path_bytes];
  (void)snprintf(path, sizeof path, "/v1/tasks/%s:cancel", task_id);
  return task_request(client, "POST", path, operation_key, buffer_bytes(&body), ret_task, error);
}

/* ---- History ---- */

/* The path of a page: what, limit and cursor, the cursor percent-encoded. */
static int page_path(struct buffer *path, const char *task_id, const char *what, uint32_t limit, const char *cursor,
                     struct orbit_error *error) {
  int status = id_judge(task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  if (limit > page_rows_max) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "limit", "limit must be 1–100, or 0");
  if (cursor != NULL && !sdk_is_visible_ascii(cursor, cursor_chars_max)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "cursor", "this is no cursor that Orbit gave");
  }
  buffer_append_format(path, "/v1/tasks/%s/%s", task_id, what);
  if (limit != 0) buffer_append_format(path, "?limit=%u", limit);
  if (cursor != NULL) buffer_append_format(path, "%ccursor=", limit != 0 ? '&' : '?');
  for (const char *c = cursor; c != NULL && *c != '\0'; c++) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("-._~", *c) != NULL;
    buffer_append_format(path, plain ? "%c" : "%%%02X", (unsigned char)*c);
  }
  buffer_append_char(path, '\0');
  return path->failed ? sdk_no_memory(error) : ORBIT_OK;
}

/* Where a list's items go: the kinds differ only in how one is read. */
struct page {
  void **items;
  size_t count;
  const char *next_cursor;
};

static void attempt_read(struct sdk_view *view, void *item) { sdk_attempt_read(view, item); }
static void evidence_read(struct sdk_view *view, void *item) { sdk_evidence_read(view, item); }

static int page_request(struct orbit_client *client, const char *path, struct sdk_arena *arena, size_t item_size,
                        void (*read)(struct sdk_view *view, void *item), struct page *ret_page, struct orbit_error *error) {
  cleanup(sdk_exchange_end) struct sdk_exchange exchange;
  int status = sdk_exchange(client, "GET", path, NULL, bytes_of(NULL, 0), &exchange, error);
  if (status != ORBIT_OK) return status;
  struct sdk_view data = sdk_exchange_view(&exchange, NULL, arena);
  uint32_t items = sdk_view_array(&data, "items");
  if (items == 0) data.bad = true;
  size_t count = items != 0 ? exchange.json->tokens[items].count : 0;
  struct page page = {.items = sdk_arena_alloc(arena, (count + 1) * sizeof(void *)), .count = count};
  uint32_t token = items + 1;
  for (size_t i = 0; i < count && !arena->failed; i++) {
    struct sdk_view view = {.json = exchange.json, .arena = arena, .object = token};
    view.bad = exchange.json->tokens[token].type != JSON_OBJECT;
    page.items[i] = sdk_arena_alloc(arena, item_size);
    if (page.items[i] != NULL) read(&view, page.items[i]);
    data.bad = data.bad || view.bad;
    token = exchange.json->tokens[token].next;
  }
  page.next_cursor = sdk_view_text(&data, "next_cursor");
  status = sdk_exchange_judge(&exchange, &data, error);
  if (status == ORBIT_OK) *ret_page = page;
  return status;
}

int orbit_list_attempts(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                        struct orbit_attempt_list **ret_list, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer path;
  buffer_init(&path, http_target_bytes_max);
  int status = page_path(&path, task_id, "attempts", limit, cursor, error);
  if (status != ORBIT_OK) return status;
  struct orbit_attempt_list *list = sdk_result_new(sizeof *list);
  if (list == NULL) return sdk_no_memory(error);
  struct page page;
  status = page_request(client, (const char *)path.data, sdk_result_arena(list), sizeof(struct orbit_attempt), attempt_read,
                        &page, error);
  if (status != ORBIT_OK) {
    orbit_attempt_list_free(list);
    return status;
  }
  *list = (struct orbit_attempt_list){(const struct orbit_attempt *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

int orbit_list_evidence(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                        struct orbit_evidence_list **ret_list, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer path;
  buffer_init(&path, http_target_bytes_max);
  int status = page_path(&path, task_id, "evidence", limit, cursor, error);
  if (status != ORBIT_OK) return status;
  struct orbit_evidence_list *list = sdk_result_new(sizeof *list);
  if (list == NULL) return sdk_no_memory(error);
  struct page page;
  status = page_request(client, (const char *)path.data, sdk_result_arena(list), sizeof(struct orbit_evidence), evidence_read,
                        &page, error);
  if (status != ORBIT_OK) {
    orbit_evidence_list_free(list);
    return status;
  }
  *list = (struct orbit_evidence_list){(const struct orbit_evidence *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

int orbit_get_attempt(struct orbit_client *client, const char *task_id, const char *attempt_id,
                      struct orbit_attempt **ret_attempt, struct orbit_error *error) {
  char path[path_bytes];
  int status = id_judge(task_id, "task_id", error);
  if (status == ORBIT_OK) status = id_judge(attempt_id, "attempt_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s/attempts/%s", task_id, attempt_id);
  cleanup(sdk_exchange_end) struct sdk_exchange exchange;
  status = sdk_exchange(client, "GET", path, NULL, bytes_of(NULL, 0), &exchange, error);
  if (status != ORBIT_OK) return status;
  struct orbit_attempt *attempt = sdk_result_new(sizeof *attempt);
  if (attempt == NULL) return sdk_no_memory(error);
  struct sdk_view view = sdk_exchange_view(&exchange, "attempt", sdk_result_arena(attempt));
  sdk_attempt_read(&view, attempt);
  status = sdk_exchange_judge(&exchange, &view, error);
  if (status == ORBIT_OK) {
    *ret_attempt = attempt;
  } else {
    orbit_attempt_free(attempt);
  }
  return status;
}

/* ---- The server ---- */

int orbit_info(struct orbit_client *client, struct orbit_server_info **ret_info, struct orbit_error *error) {
  cleanup(sdk_exchange_end) struct sdk_exchange exchange;
  int status = sdk_exchange(client, "GET", "/v1/info", NULL, bytes_of(NULL, 0), &exchange, error);
  if (status != ORBIT_OK) return status;
  struct orbit_server_info *info = sdk_result_new(sizeof *info);
  if (info == NULL) return sdk_no_memory(error);
  struct sdk_view view = sdk_exchange_view(&exchange, NULL, sdk_result_arena(info));
  sdk_server_info_read(&view, info);
  status = sdk_exchange_judge(&exchange, &view, error);
  if (status == ORBIT_OK) {
    *ret_info = info;
  } else {
    orbit_server_info_free(info);
  }
  return status;
}
