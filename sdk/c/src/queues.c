/* Owns the functions about queues. */
#include <stdio.h>

#include "base/guard.h"
#include "base/limits.h"
#include "codec/wire_http.h"
#include "request.h"

void orbit_queue_free(struct orbit_queue *queue) { sdk_result_free(queue); }
void orbit_queue_list_free(struct orbit_queue_list *list) { sdk_result_free(list); }

/* ---- Answers ---- */

static const struct orbit_task_counts *counts_read(struct sdk_view *view) {
  struct sdk_view inner = sdk_view_object(view, "counts");
  struct orbit_task_counts *counts = inner.absent ? NULL : sdk_arena_alloc(view->arena, sizeof *counts);
  if (counts == NULL) return NULL;
  counts->waiting = sdk_view_u64(&inner, "WAITING");
  counts->leased = sdk_view_u64(&inner, "LEASED");
  counts->running = sdk_view_u64(&inner, "RUNNING");
  counts->needs_review = sdk_view_u64(&inner, "NEEDS_REVIEW");
  counts->succeeded = sdk_view_u64(&inner, "SUCCEEDED");
  counts->failed = sdk_view_u64(&inner, "FAILED");
  counts->cancelled = sdk_view_u64(&inner, "CANCELLED");
  sdk_view_join(view, &inner);
  return counts;
}

static void queue_read(struct sdk_view *view, void *object) {
  struct orbit_queue *queue = object;
  queue->id = sdk_view_required(view, "id");
  queue->namespace_id = sdk_view_required(view, "namespace_id");
  queue->name = sdk_view_required(view, "name");
  queue->revision = sdk_view_u64(view, "revision");
  queue->paused = sdk_view_bool(view, "paused");
  queue->max_unfinished = sdk_view_u64(view, "max_unfinished");
  queue->max_running = sdk_view_u64(view, "max_running");
  queue->key_concurrency = sdk_view_u64(view, "key_concurrency");
  struct sdk_view rate = sdk_view_object(view, "rate");
  queue->rate.tasks = sdk_view_u64(&rate, "tasks");
  queue->rate.per_ms = sdk_view_u64(&rate, "per_ms");
  queue->rate.burst = sdk_view_u64(&rate, "burst");
  sdk_view_join(view, &rate);
  queue->lease_ms = sdk_view_u64(view, "lease_ms");
  queue->counts = counts_read(view);
  queue->oldest_waiting_at = sdk_view_time(view, "oldest_waiting_at");
  queue->json = sdk_view_whole(view, &queue->json_size);
}

static const struct sdk_kind queue_kind = {sizeof(struct orbit_queue), queue_read, "queue", false};

static int queue_call(struct orbit_client *client, const struct sdk_call *call, struct orbit_queue **ret_queue,
                      struct orbit_error *error) {
  void *object;
  int status = sdk_call_object(client, call, &queue_kind, &object, error);
  if (status == ORBIT_OK) *ret_queue = object;
  return status;
}

/* ---- Requests ---- */

static bool is_limit(uint64_t value) { return value <= limit_value_max; } /* 0: none */

static bool rate_is_none(const struct orbit_rate *rate) { return rate->tasks == 0 && rate->per_ms == 0 && rate->burst == 0; }

static bool is_rate(const struct orbit_rate *rate) {
  return rate_is_none(rate) || (rate->tasks != 0 && rate->per_ms != 0 && rate->burst != 0 && is_limit(rate->tasks) &&
                                is_limit(rate->per_ms) && is_limit(rate->burst));
}

static bool is_lease(uint64_t lease_ms) { return lease_ms >= lease_ms_min && lease_ms <= lease_ms_max; }

static const char name_problem[] = "name must be 1–128 characters of UTF-8";
static const char limit_problem[] = "the limit must be 1–1000000000, or 0 for none";
static const char rate_problem[] = "each number of a rate must be 1–1000000000, or all of them 0";
static const char lease_problem[] = "lease_ms must be 5000–300000";

static void rate_write(struct buffer *out, const struct orbit_rate *rate) {
  wire_raw_member(out, "rate", bytes_text("{"));
  wire_number_member(out, "tasks", rate->tasks);
  wire_number_member(out, "per_ms", rate->per_ms);
  wire_number_member(out, "burst", rate->burst);
  buffer_append_char(out, '}');
}

static void nonzero_member(struct buffer *out, const char *name, uint64_t value) {
  if (value != 0) wire_number_member(out, name, value);
}

static void limit_member(struct buffer *out, const char *name, uint64_t limit) {
  if (limit != 0) {
    wire_number_member(out, name, limit);
  } else {
    wire_raw_member(out, name, bytes_text("null"));
  }
}

static int create_write(const struct orbit_queue_request *given, struct buffer *out, struct orbit_error *error) {
  struct orbit_queue_request request;
  int status = sdk_options_copy(&request, sizeof request, given, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_rule rules[] = {
      {sdk_is_text(request.name, 1, name_chars_max), "/name", name_problem},
      {is_limit(request.max_unfinished), "/max_unfinished", limit_problem},
      {is_limit(request.max_running), "/max_running", limit_problem},
      {is_limit(request.key_concurrency), "/key_concurrency", limit_problem},
      {is_rate(&request.rate), "/rate", rate_problem},
      {request.lease_ms == 0 || is_lease(request.lease_ms), "/lease_ms", lease_problem},
  };
  status = sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  wire_text_member(out, "name", bytes_text(request.name));
  nonzero_member(out, "max_unfinished", request.max_unfinished);
  nonzero_member(out, "max_running", request.max_running);
  nonzero_member(out, "key_concurrency", request.key_concurrency);
  if (!rate_is_none(&request.rate)) rate_write(out, &request.rate);
  nonzero_member(out, "lease_ms", request.lease_ms);
  buffer_append_char(out, '}');
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

static int change_judge(const struct orbit_queue_change *change, struct orbit_error *error) {
  const uint32_t known = ORBIT_CHANGE_NAME | ORBIT_CHANGE_MAX_UNFINISHED | ORBIT_CHANGE_MAX_RUNNING |
                         ORBIT_CHANGE_KEY_CONCURRENCY | ORBIT_CHANGE_RATE | ORBIT_CHANGE_LEASE_MS;
  const uint32_t fields = change->fields;
  const struct sdk_rule rules[] = {
      {change->expected_revision != 0, "/expected_revision", "expected_revision is required"},
      {fields != 0 && (fields & ~known) == 0, "fields", "fields must name what a queue has, at least one"},
      {(fields & ORBIT_CHANGE_NAME) == 0 || sdk_is_text(change->name, 1, name_chars_max), "/name", name_problem},
      {(fields & ORBIT_CHANGE_MAX_UNFINISHED) == 0 || is_limit(change->max_unfinished), "/max_unfinished", limit_problem},
      {(fields & ORBIT_CHANGE_MAX_RUNNING) == 0 || is_limit(change->max_running), "/max_running", limit_problem},
      {(fields & ORBIT_CHANGE_KEY_CONCURRENCY) == 0 || (change->key_concurrency != 0 && is_limit(change->key_concurrency)),
       "/key_concurrency", "key_concurrency must be 1–1000000000"},
      {(fields & ORBIT_CHANGE_RATE) == 0 || is_rate(&change->rate), "/rate", rate_problem},
      {(fields & ORBIT_CHANGE_LEASE_MS) == 0 || is_lease(change->lease_ms), "/lease_ms", lease_problem},
  };
  return sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
}

static int change_write(const struct orbit_queue_change *given, struct buffer *out, struct orbit_error *error) {
  struct orbit_queue_change change;
  int status = sdk_options_copy(&change, sizeof change, given, error);
  if (status == ORBIT_OK) status = change_judge(&change, error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  wire_decimal_member(out, "expected_revision", change.expected_revision);
  if ((change.fields & ORBIT_CHANGE_NAME) != 0) wire_text_member(out, "name", bytes_text(change.name));
  if ((change.fields & ORBIT_CHANGE_MAX_UNFINISHED) != 0) limit_member(out, "max_unfinished", change.max_unfinished);
  if ((change.fields & ORBIT_CHANGE_MAX_RUNNING) != 0) limit_member(out, "max_running", change.max_running);
  if ((change.fields & ORBIT_CHANGE_KEY_CONCURRENCY) != 0) wire_number_member(out, "key_concurrency", change.key_concurrency);
  if ((change.fields & ORBIT_CHANGE_RATE) != 0) {
    if (rate_is_none(&change.rate)) wire_raw_member(out, "rate", bytes_text("null"));
    else rate_write(out, &change.rate);
  }
  if ((change.fields & ORBIT_CHANGE_LEASE_MS) != 0) wire_number_member(out, "lease_ms", change.lease_ms);
  buffer_append_char(out, '}');
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

/* ---- Calls ---- */

int orbit_create_queue(struct orbit_client *client, const char *operation_key, const struct orbit_queue_request *request,
                       struct orbit_queue **ret_queue, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_key_judge(operation_key, error);
  if (status == ORBIT_OK) status = create_write(request, &body, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_call call = {"POST", "/v1/queues", operation_key, &body};
  return queue_call(client, &call, ret_queue, error);
}

int orbit_get_queue(struct orbit_client *client, const char *queue_id, struct orbit_queue **ret_queue,
                    struct orbit_error *error) {
  char path[sdk_path_bytes];
  int status = sdk_id_judge(queue_id, "queue_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/queues/%s", queue_id);
  const struct sdk_call call = {"GET", path, NULL, NULL};
  return queue_call(client, &call, ret_queue, error);
}

int orbit_list_queues(struct orbit_client *client, uint32_t limit, const char *cursor, struct orbit_queue_list **ret_list,
                      struct orbit_error *error) {
  struct sdk_page page;
  int status = sdk_get_plain_page(client, "/v1/queues", limit, cursor, &queue_kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_queue_list *list = page.list;
  *list = (struct orbit_queue_list){(const struct orbit_queue *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

int orbit_change_queue(struct orbit_client *client, const char *operation_key, const char *queue_id,
                       const struct orbit_queue_change *change, struct orbit_queue **ret_queue, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  char path[sdk_path_bytes];
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_target_judge(operation_key, queue_id, "queue_id", error);
  if (status == ORBIT_OK) status = change_write(change, &body, error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/queues/%s", queue_id);
  const struct sdk_call call = {"PATCH", path, operation_key, &body};
  return queue_call(client, &call, ret_queue, error);
}

static int pause_call(struct orbit_client *client, const char *verb, const char *operation_key, const char *queue_id,
                      const char *reason, struct orbit_queue **ret_queue, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  char path[sdk_path_bytes];
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_target_judge(operation_key, queue_id, "queue_id", error);
  if (status != ORBIT_OK) return status;
  if (reason != NULL && !sdk_is_text(reason, 1, reason_chars_max)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/reason", "reason must be 1–1,024 characters of UTF-8");
  }
  buffer_append_char(&body, '{');
  if (reason != NULL) wire_text_member(&body, "reason", bytes_text(reason));
  buffer_append_char(&body, '}');
  if (body.failed) return sdk_no_memory(error);
  (void)snprintf(path, sizeof path, "/v1/queues/%s:%s", queue_id, verb);
  const struct sdk_call call = {"POST", path, operation_key, &body};
  return queue_call(client, &call, ret_queue, error);
}

int orbit_pause_queue(struct orbit_client *client, const char *operation_key, const char *queue_id, const char *reason,
                      struct orbit_queue **ret_queue, struct orbit_error *error) {
  return pause_call(client, "pause", operation_key, queue_id, reason, ret_queue, error);
}

int orbit_resume_queue(struct orbit_client *client, const char *operation_key, const char *queue_id, const char *reason,
                       struct orbit_queue **ret_queue, struct orbit_error *error) {
  return pause_call(client, "resume", operation_key, queue_id, reason, ret_queue, error);
}
