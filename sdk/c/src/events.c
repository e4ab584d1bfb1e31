/* Owns the functions about the feed: events, subscriptions, waiting for a task. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "codec/wire_http.h"
#include "documents.h"
#include "request.h"

enum { wait_step_ms_max = 10000, path_bytes_max = 4096 };

void orbit_event_page_free(struct orbit_event_page *page) { sdk_result_free(page); }
void orbit_subscription_free(struct orbit_subscription *subscription) { sdk_result_free(subscription); }
void orbit_subscription_list_free(struct orbit_subscription_list *list) { sdk_result_free(list); }

/* ---- Events ---- */

static void page_read(struct sdk_view *data, void *object) {
  static const struct sdk_kind kind = {sizeof(struct orbit_event), sdk_event_read, NULL, false};
  struct orbit_event_page *page = object;
  void **items = NULL;
  sdk_items_read(data, &kind, &items, &page->count);
  page->items = (const struct orbit_event *const *)items;
  page->next_position = sdk_view_u64(data, "next_position");
}

/* Appends a number as a parameter; nothing when it is 0. */
static void number_write(struct buffer *path, const char *name, uint64_t number) {
  char text[24];
  if (number == 0) return;
  (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
  sdk_parameter_write(path, name, text);
}

/* The page at the path, to which limit and wait_ms are appended. */
static int page_get(struct orbit_client *client, struct buffer *path, uint32_t limit, uint32_t wait_ms,
                    struct orbit_event_page **ret_page, struct orbit_error *error) {
  static const struct sdk_kind kind = {sizeof(struct orbit_event_page), page_read, NULL, false};
  void *object;
  if (wait_ms > feed_wait_ms_max) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "wait_ms", "wait_ms must be 0–30,000");
  number_write(path, "wait_ms", wait_ms);
  int status = sdk_page_write(path, limit, NULL, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_call call = {"GET", (const char *)path->data, NULL, NULL};
  status = sdk_call_object(client, &call, &kind, &object, error);
  if (status == ORBIT_OK) *ret_page = object;
  return status;
}

int orbit_events_next(struct orbit_client *client, const struct orbit_event_filter *given, uint64_t after, uint32_t limit,
                      uint32_t wait_ms, struct orbit_event_page **ret_page, struct orbit_error *error) {
  static const struct orbit_event_filter all = ORBIT_EVENT_FILTER_INIT;
  struct orbit_event_filter filter;
  cleanup(buffer_clear) struct buffer path;
  buffer_init(&path, path_bytes_max);
  int status = sdk_options_copy(&filter, sizeof filter, given != NULL ? given : &all, error);
  if (status == ORBIT_OK && filter.queue_id != NULL) status = sdk_id_judge(filter.queue_id, "queue_id", error);
  if (status == ORBIT_OK && filter.task_id != NULL) status = sdk_id_judge(filter.task_id, "task_id", error);
  if (status != ORBIT_OK) return status;
  buffer_append_text(&path, "/v1/events");
  sdk_parameter_write(&path, "types", filter.types);
  sdk_parameter_write(&path, "queue_id", filter.queue_id);
  sdk_parameter_write(&path, "task_id", filter.task_id);
  number_write(&path, "after", after);
  return page_get(client, &path, limit, wait_ms, ret_page, error);
}

/* ---- Waiting for a task ---- */

static bool is_at_rest(const struct orbit_task *task) {
  return orbit_task_is_terminal(task) || task->state == ORBIT_TASK_NEEDS_REVIEW;
}

/* Moves *position behind the next result of the task, or what was looked at for it; *ret_found: there was one. */
static int result_wait(struct orbit_client *client, const char *task_id, uint32_t wait_ms, uint64_t *position, bool *ret_found,
                       struct orbit_error *error) {
  struct orbit_event_filter filter = ORBIT_EVENT_FILTER_INIT;
  struct orbit_event_page *page;
  filter.types = "task.succeeded,task.failed,task.cancelled,task.review_required,task.reviewed";
  filter.task_id = task_id;
  int status = orbit_events_next(client, &filter, *position, 1, wait_ms, &page, error);
  if (status != ORBIT_OK) return status;
  *ret_found = page->count != 0;
  *position = page->next_position;
  orbit_event_page_free(page);
  return ORBIT_OK;
}

/* The end of the log, from before the task is looked at: what happens to it afterwards stands behind. */
static int log_end(struct orbit_client *client, uint64_t *ret_position, struct orbit_error *error) {
  struct orbit_server_info *info;
  int status = orbit_info(client, &info, error);
  if (status != ORBIT_OK) return status;
  *ret_position = info->log_position;
  orbit_server_info_free(info);
  return ORBIT_OK;
}

int orbit_wait_task(struct orbit_client *client, const char *task_id, uint32_t timeout_ms, struct orbit_task **ret_task,
                    struct orbit_error *error) {
  const int64_t until_ms = sdk_monotonic_ms() + timeout_ms;
  uint64_t position;
  bool look = true;
  int status = log_end(client, &position, error);
  while (status == ORBIT_OK) {
    struct orbit_task *task = NULL;
    if (look) status = orbit_get_task(client, task_id, &task, error);
    if (status != ORBIT_OK) return status;
    if (task != NULL && is_at_rest(task)) {
      *ret_task = task;
      return ORBIT_OK;
    }
    orbit_task_free(task);
    int64_t left_ms = until_ms - sdk_monotonic_ms();
    if (left_ms <= 0) return sdk_fail(error, ORBIT_TIMEOUT, "", "the task has not come to rest in %u ms", timeout_ms);
    status = result_wait(client, task_id, (uint32_t)(left_ms < wait_step_ms_max ? left_ms : wait_step_ms_max), &position, &look,
                         error);
  }
  return status;
}

/* ---- Subscriptions ---- */

static void subscription_read(struct sdk_view *view, void *object) {
  struct orbit_subscription *subscription = object;
  subscription->id = sdk_view_required(view, "id");
  subscription->namespace_id = sdk_view_required(view, "namespace_id");
  subscription->name = sdk_view_required(view, "name");
  subscription->revision = sdk_view_u64(view, "revision");
  subscription->types = sdk_view_texts(view, "types", &subscription->type_count);
  subscription->queue_id = sdk_view_text(view, "queue_id");
  subscription->task_id = sdk_view_text(view, "task_id");
  subscription->position = sdk_view_u64(view, "position");
  subscription->lag = sdk_view_u64(view, "lag");
  subscription->json = sdk_view_whole(view, &subscription->json_size);
}

static const struct sdk_kind subscription_kind = {sizeof(struct orbit_subscription), subscription_read, "subscription", false};

static int subscription_call(struct orbit_client *client, const struct sdk_call *call,
                             struct orbit_subscription **ret_subscription, struct orbit_error *error) {
  void *object;
  int status = sdk_call_object(client, call, &subscription_kind, &object, error);
  if (status == ORBIT_OK) *ret_subscription = object;
  return status;
}

static int create_write(const struct orbit_subscription_request *given, struct buffer *out, struct orbit_error *error) {
  struct orbit_subscription_request request;
  int status = sdk_options_copy(&request, sizeof request, given, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_rule rules[] = {
      {sdk_is_text(request.name, 1, name_chars_max), "/name", "name must be 1–128 characters of UTF-8"},
      {request.queue_id == NULL || sdk_is_id(request.queue_id), "/queue_id", "queue_id must be an id"},
      {request.task_id == NULL || sdk_is_id(request.task_id), "/task_id", "task_id must be an id"},
      {request.type_count == 0 || request.types != NULL, "/types", "types must name type_count types"},
  };
  status = sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  wire_text_member(out, "name", bytes_text(request.name));
  if (request.type_count != 0) wire_raw_member(out, "types", bytes_text("["));
  for (size_t i = 0; i < request.type_count; i++) {
    if (!sdk_is_text(request.types[i], 1, name_chars_max))
      return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/types", "a type must be the name of an event");
    if (i > 0) buffer_append_char(out, ',');
    json_write_string(out, bytes_text(request.types[i]));
  }
  if (request.type_count != 0) buffer_append_char(out, ']');
  if (request.queue_id != NULL) wire_text_member(out, "queue_id", bytes_text(request.queue_id));
  if (request.task_id != NULL) wire_text_member(out, "task_id", bytes_text(request.task_id));
  wire_text_member(out, "from", bytes_text(request.from != NULL ? request.from : "latest"));
  buffer_append_char(out, '}');
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

int orbit_subscription_create(struct orbit_client *client, const char *operation_key,
                              const struct orbit_subscription_request *request, struct orbit_subscription **ret_subscription,
                              struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_key_judge(operation_key, error);
  if (status == ORBIT_OK) status = create_write(request, &body, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_call call = {"POST", "/v1/subscriptions", operation_key, &body};
  return subscription_call(client, &call, ret_subscription, error);
}

int orbit_subscription_get(struct orbit_client *client, const char *subscription_id,
                           struct orbit_subscription **ret_subscription, struct orbit_error *error) {
  char path[sdk_path_bytes];
  int status = sdk_id_judge(subscription_id, "subscription_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/subscriptions/%s", subscription_id);
  const struct sdk_call call = {"GET", path, NULL, NULL};
  return subscription_call(client, &call, ret_subscription, error);
}

int orbit_subscription_list(struct orbit_client *client, uint32_t limit, const char *cursor,
                            struct orbit_subscription_list **ret_list, struct orbit_error *error) {
  struct sdk_page page;
  int status =
      sdk_get_plain_page(client, "/v1/subscriptions", limit, cursor, &subscription_kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_subscription_list *list = page.list;
  *list = (struct orbit_subscription_list){(const struct orbit_subscription *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

int orbit_subscription_next(struct orbit_client *client, const char *subscription_id, uint32_t limit, uint32_t wait_ms,
                            struct orbit_event_page **ret_page, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer path;
  buffer_init(&path, path_bytes_max);
  int status = sdk_id_judge(subscription_id, "subscription_id", error);
  if (status != ORBIT_OK) return status;
  buffer_append_format(&path, "/v1/subscriptions/%s/events", subscription_id);
  return page_get(client, &path, limit, wait_ms, ret_page, error);
}

static int verb_call(struct orbit_client *client, const char *verb, const char *operation_key, const char *subscription_id,
                     const struct buffer *body, struct orbit_subscription **ret_subscription, struct orbit_error *error) {
  char path[sdk_path_bytes];
  int status = sdk_target_judge(operation_key, subscription_id, "subscription_id", error);
  if (status != ORBIT_OK) return status;
  if (body->failed) return sdk_no_memory(error);
  (void)snprintf(path, sizeof path, "/v1/subscriptions/%s:%s", subscription_id, verb);
  const struct sdk_call call = {"POST", path, operation_key, body};
  return subscription_call(client, &call, ret_subscription, error);
}

int orbit_subscription_ack(struct orbit_client *client, const char *operation_key, const char *subscription_id,
                           uint64_t position, struct orbit_subscription **ret_subscription, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_body_bytes_max);
  if (position == 0) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/position", "position must be that of a page");
  buffer_append_char(&body, '{');
  wire_decimal_member(&body, "position", position);
  buffer_append_char(&body, '}');
  return verb_call(client, "ack", operation_key, subscription_id, &body, ret_subscription, error);
}

int orbit_subscription_delete(struct orbit_client *client, const char *operation_key, const char *subscription_id,
                              struct orbit_subscription **ret_subscription, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_body_bytes_max);
  buffer_append_text(&body, "{}");
  return verb_call(client, "delete", operation_key, subscription_id, &body, ret_subscription, error);
}
