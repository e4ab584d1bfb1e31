/* Owns the functions about schedules. */
#include <stdio.h>

#include "base/guard.h"
#include "base/limits.h"
#include "codec/wire_http.h"
#include "documents.h"
#include "request.h"

void orbit_schedule_free(struct orbit_schedule *schedule) { sdk_result_free(schedule); }
void orbit_schedule_list_free(struct orbit_schedule_list *list) { sdk_result_free(list); }
void orbit_trigger_list_free(struct orbit_trigger_list *list) { sdk_result_free(list); }
void orbit_preview_free(struct orbit_preview *preview) { sdk_result_free(preview); }

/* ---- Answers ---- */

static void trigger_read(struct sdk_view *view, void *object) {
  struct orbit_trigger *trigger = object;
  trigger->scheduled_at = sdk_view_time(view, "scheduled_at");
  trigger->outcome = sdk_view_text(view, "outcome");
  trigger->task_id = sdk_view_text(view, "task_id");
  trigger->code = sdk_view_text(view, "code");
  trigger->decided_at = sdk_view_time(view, "decided_at");
}

static void schedule_read(struct sdk_view *view, void *object) {
  struct orbit_schedule *schedule = object;
  schedule->id = sdk_view_required(view, "id");
  schedule->namespace_id = sdk_view_required(view, "namespace_id");
  schedule->queue_id = sdk_view_required(view, "queue_id");
  schedule->name = sdk_view_required(view, "name");
  schedule->revision = sdk_view_u64(view, "revision");
  schedule->kind = sdk_view_required(view, "kind");
  schedule->cron = sdk_view_text(view, "cron");
  schedule->timezone = sdk_view_text(view, "timezone");
  schedule->interval_ms = sdk_view_u64(view, "interval_ms");
  schedule->start_at = sdk_view_time(view, "start_at");
  schedule->end_at = sdk_view_time(view, "end_at");
  schedule->overlap = sdk_view_required(view, "overlap");
  schedule->missed = sdk_view_required(view, "missed");
  schedule->catch_up_limit = sdk_view_u32(view, "catch_up_limit");
  schedule->paused = sdk_view_bool(view, "paused");
  schedule->deleted = sdk_view_bool(view, "deleted");
  schedule->created_at = sdk_view_time(view, "created_at");
  schedule->updated_at = sdk_view_time(view, "updated_at");
  schedule->next_at = sdk_view_time(view, "next_at");
  struct sdk_view last = sdk_view_object(view, "last");
  if (!last.absent) trigger_read(&last, &schedule->last);
  sdk_view_join(view, &last);
  schedule->json = sdk_view_whole(view, &schedule->json_size);
}

static void preview_read(struct sdk_view *view, void *object) {
  struct orbit_preview *preview = object;
  preview->times = sdk_view_times(view, "times", &preview->count);
}

static const struct sdk_kind schedule_kind = {sizeof(struct orbit_schedule), schedule_read, "schedule", false};
static const struct sdk_kind trigger_kind = {sizeof(struct orbit_trigger), trigger_read, NULL, false};
static const struct sdk_kind preview_kind = {sizeof(struct orbit_preview), preview_read, NULL, false};

static int schedule_call(struct orbit_client *client, const struct sdk_call *call, struct orbit_schedule **ret_schedule,
                         struct orbit_error *error) {
  void *object;
  int status = sdk_call_object(client, call, &schedule_kind, &object, error);
  if (status == ORBIT_OK) *ret_schedule = object;
  return status;
}

/* ---- Requests ---- */

enum { preview_count_default = 10 };

static const char cron_problem[] = "cron must be 1–256 bytes of UTF-8";
static const char timezone_problem[] = "timezone must be 1–64 characters";
static const char interval_problem[] = "interval_ms must be 1000–315360000000";

static bool is_interval(uint64_t ms) { return ms >= schedule_interval_ms_min && ms <= schedule_interval_ms_max; }
static bool is_text_or_none(const char *text, size_t max) { return text == NULL || sdk_is_text(text, 1, max); }
static bool is_word_or_none(const char *text) { return text == NULL || sdk_is_word(text); }

static void text_member(struct buffer *out, const char *name, const char *text) {
  if (text != NULL) wire_text_member(out, name, bytes_text(text));
}

static void number_member(struct buffer *out, const char *name, uint64_t value) {
  if (value != 0) wire_number_member(out, name, value);
}

static void times_members(struct buffer *out, const char *cron, const char *timezone, uint64_t interval_ms) {
  text_member(out, "cron", cron);
  text_member(out, "timezone", timezone);
  number_member(out, "interval_ms", interval_ms);
}

/* What makes the times of a new schedule. */
static int times_judge(const char *cron, const char *timezone, uint64_t interval_ms, struct orbit_error *error) {
  const struct sdk_rule rules[] = {
      {(cron != NULL) != (interval_ms != 0), "/cron", "either cron or interval_ms is required"},
      {is_text_or_none(cron, cron_chars_max), "/cron", cron_problem},
      {timezone == NULL || cron != NULL, "/timezone", "an interval has no time zone"},
      {is_text_or_none(timezone, timezone_chars_max), "/timezone", timezone_problem},
      {interval_ms == 0 || is_interval(interval_ms), "/interval_ms", interval_problem},
  };
  return sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
}

static int template_member(struct buffer *out, const struct orbit_task_request *template, struct orbit_error *error) {
  wire_raw_member(out, "template", bytes_text(""));
  return sdk_template_write(template, out, error);
}

static int create_judge(const struct orbit_schedule_request *request, struct orbit_error *error) {
  const struct sdk_rule rules[] = {
      {sdk_is_text(request->name, 1, name_chars_max), "/name", "name must be 1–128 characters of UTF-8"},
      {request->task != NULL, "/template", "template is required"},
      {sdk_is_time(request->start_at), "/start_at", "start_at must be in the years 2000–9998"},
      {sdk_is_time(request->end_at), "/end_at", "end_at must be in the years 2000–9998"},
      {is_word_or_none(request->overlap), "/overlap", "overlap must be ALLOW, SKIP or SERIAL"},
      {is_word_or_none(request->missed), "/missed", "missed must be SKIP, LATEST or ALL"},
      {request->catch_up_limit <= catch_up_limit_max, "/catch_up_limit", "catch_up_limit must be 1–1000"},
  };
  int status = sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
  return status == ORBIT_OK ? times_judge(request->cron, request->timezone, request->interval_ms, error) : status;
}

static int create_write(const struct orbit_schedule_request *given, struct buffer *out, struct orbit_error *error) {
  struct orbit_schedule_request request;
  int status = sdk_options_copy(&request, sizeof request, given, error);
  if (status == ORBIT_OK) status = create_judge(&request, error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  text_member(out, "name", request.name);
  text_member(out, "queue_id", request.task->queue_id);
  text_member(out, "kind", request.cron != NULL ? "CRON" : "INTERVAL");
  times_members(out, request.cron, request.timezone, request.interval_ms);
  wire_time_member(out, "start_at", request.start_at);
  wire_time_member(out, "end_at", request.end_at);
  text_member(out, "overlap", request.overlap);
  text_member(out, "missed", request.missed);
  number_member(out, "catch_up_limit", request.catch_up_limit);
  if (request.paused) wire_bool_member(out, "paused", true);
  status = template_member(out, request.task, error);
  buffer_append_char(out, '}');
  if (status != ORBIT_OK) return status;
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

static bool is_time_or_away(int64_t time_us) { return time_us == -1 || sdk_is_time(time_us); }

static int change_judge(const struct orbit_schedule_change *change, struct orbit_error *error) {
  const struct sdk_rule rules[] = {
      {change->expected_revision != 0, "/expected_revision", "expected_revision is required"},
      {is_text_or_none(change->name, name_chars_max), "/name", "name must be 1–128 characters of UTF-8"},
      {is_text_or_none(change->cron, cron_chars_max), "/cron", cron_problem},
      {is_text_or_none(change->timezone, timezone_chars_max), "/timezone", timezone_problem},
      {change->interval_ms == 0 || is_interval(change->interval_ms), "/interval_ms", interval_problem},
      {is_time_or_away(change->start_at), "/start_at", "start_at must be in the years 2000–9998, or -1"},
      {is_time_or_away(change->end_at), "/end_at", "end_at must be in the years 2000–9998, or -1"},
      {is_word_or_none(change->overlap), "/overlap", "overlap must be ALLOW, SKIP or SERIAL"},
      {is_word_or_none(change->missed), "/missed", "missed must be SKIP, LATEST or ALL"},
      {change->catch_up_limit <= catch_up_limit_max, "/catch_up_limit", "catch_up_limit must be 1–1000"},
  };
  return sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
}

static void moment_member(struct buffer *out, const char *name, int64_t time_us) {
  if (time_us == -1) wire_raw_member(out, name, bytes_text("null"));
  else wire_time_member(out, name, time_us);
}

static int change_write(const struct orbit_schedule_change *given, struct buffer *out, struct orbit_error *error) {
  struct orbit_schedule_change change;
  int status = sdk_options_copy(&change, sizeof change, given, error);
  if (status == ORBIT_OK) status = change_judge(&change, error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  wire_decimal_member(out, "expected_revision", change.expected_revision);
  text_member(out, "name", change.name);
  times_members(out, change.cron, change.timezone, change.interval_ms);
  moment_member(out, "start_at", change.start_at);
  moment_member(out, "end_at", change.end_at);
  text_member(out, "overlap", change.overlap);
  text_member(out, "missed", change.missed);
  number_member(out, "catch_up_limit", change.catch_up_limit);
  if (change.task != NULL) status = template_member(out, change.task, error);
  buffer_append_char(out, '}');
  if (status != ORBIT_OK) return status;
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

static int preview_write(const struct orbit_preview_request *given, struct buffer *out, struct orbit_error *error) {
  struct orbit_preview_request request;
  int status = sdk_options_copy(&request, sizeof request, given, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_rule rules[] = {
      {sdk_is_time(request.after), "/after", "after must be in the years 2000–9998"},
      {request.count <= preview_times_max, "/count", "count must be 1–100"},
  };
  status = sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
  if (status == ORBIT_OK) status = times_judge(request.cron, request.timezone, request.interval_ms, error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  text_member(out, "kind", request.cron != NULL ? "CRON" : "INTERVAL");
  times_members(out, request.cron, request.timezone, request.interval_ms);
  wire_time_member(out, "after", request.after);
  number_member(out, "count", request.count != 0 ? request.count : preview_count_default);
  buffer_append_char(out, '}');
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

/* ---- Calls ---- */

int orbit_create_schedule(struct orbit_client *client, const char *operation_key, const struct orbit_schedule_request *request,
                          struct orbit_schedule **ret_schedule, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_key_judge(operation_key, error);
  if (status == ORBIT_OK) status = create_write(request, &body, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_call call = {"POST", "/v1/schedules", operation_key, &body};
  return schedule_call(client, &call, ret_schedule, error);
}

int orbit_get_schedule(struct orbit_client *client, const char *schedule_id, struct orbit_schedule **ret_schedule,
                       struct orbit_error *error) {
  char path[sdk_path_bytes];
  int status = sdk_id_judge(schedule_id, "schedule_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/schedules/%s", schedule_id);
  const struct sdk_call call = {"GET", path, NULL, NULL};
  return schedule_call(client, &call, ret_schedule, error);
}

int orbit_list_schedules(struct orbit_client *client, uint32_t limit, const char *cursor, struct orbit_schedule_list **ret_list,
                         struct orbit_error *error) {
  struct sdk_page page;
  int status = sdk_get_plain_page(client, "/v1/schedules", limit, cursor, &schedule_kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_schedule_list *list = page.list;
  *list = (struct orbit_schedule_list){(const struct orbit_schedule *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

int orbit_change_schedule(struct orbit_client *client, const char *operation_key, const char *schedule_id,
                          const struct orbit_schedule_change *change, struct orbit_schedule **ret_schedule,
                          struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  char path[sdk_path_bytes];
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_target_judge(operation_key, schedule_id, "schedule_id", error);
  if (status == ORBIT_OK) status = change_write(change, &body, error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/schedules/%s", schedule_id);
  const struct sdk_call call = {"PATCH", path, operation_key, &body};
  return schedule_call(client, &call, ret_schedule, error);
}

static int rest_call(struct orbit_client *client, const char *verb, const char *operation_key, const char *schedule_id,
                     const char *reason, struct orbit_schedule **ret_schedule, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  char path[sdk_path_bytes];
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_target_judge(operation_key, schedule_id, "schedule_id", error);
  if (status != ORBIT_OK) return status;
  if (!is_text_or_none(reason, reason_chars_max))
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/reason", "reason must be 1–1,024 characters of UTF-8");
  buffer_append_char(&body, '{');
  text_member(&body, "reason", reason);
  buffer_append_char(&body, '}');
  if (body.failed) return sdk_no_memory(error);
  (void)snprintf(path, sizeof path, "/v1/schedules/%s:%s", schedule_id, verb);
  const struct sdk_call call = {"POST", path, operation_key, &body};
  return schedule_call(client, &call, ret_schedule, error);
}

int orbit_pause_schedule(struct orbit_client *client, const char *operation_key, const char *schedule_id, const char *reason,
                         struct orbit_schedule **ret_schedule, struct orbit_error *error) {
  return rest_call(client, "pause", operation_key, schedule_id, reason, ret_schedule, error);
}

int orbit_resume_schedule(struct orbit_client *client, const char *operation_key, const char *schedule_id, const char *reason,
                          struct orbit_schedule **ret_schedule, struct orbit_error *error) {
  return rest_call(client, "resume", operation_key, schedule_id, reason, ret_schedule, error);
}

int orbit_delete_schedule(struct orbit_client *client, const char *operation_key, const char *schedule_id, const char *reason,
                          struct orbit_schedule **ret_schedule, struct orbit_error *error) {
  return rest_call(client, "delete", operation_key, schedule_id, reason, ret_schedule, error);
}

int orbit_list_triggers(struct orbit_client *client, const char *schedule_id, uint32_t limit, const char *cursor,
                        struct orbit_trigger_list **ret_list, struct orbit_error *error) {
  struct sdk_page page;
  char path[sdk_path_bytes];
  int status = sdk_id_judge(schedule_id, "schedule_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/schedules/%s/triggers", schedule_id);
  status = sdk_get_plain_page(client, path, limit, cursor, &trigger_kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_trigger_list *list = page.list;
  *list = (struct orbit_trigger_list){(const struct orbit_trigger *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

int orbit_preview_schedule(struct orbit_client *client, const struct orbit_preview_request *request,
                           struct orbit_preview **ret_preview, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  void *object;
  buffer_init(&body, http_body_bytes_max);
  int status = preview_write(request, &body, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_call call = {"POST", "/v1/schedules:preview", NULL, &body};
  status = sdk_call_object(client, &call, &preview_kind, &object, error);
  if (status == ORBIT_OK) *ret_preview = object;
  return status;
}
