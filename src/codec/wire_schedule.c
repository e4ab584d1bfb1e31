/* Owns the bodies about schedules, and the JSON of schedules, triggers and times. */
#include "codec/wire_schedule.h"

#include <stddef.h>
#include <string.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "codec/digest.h"
#include "codec/wire_http.h"
#include "codec/wire_recovery.h"
#include "core/cron.h"

#define COUNT(fields) ((unsigned)(sizeof(fields) / sizeof(fields)[0]))

/* ---- fields ---- */

struct schedule_body {
  struct schedule_command schedule;
  struct bytes kind, overlap, missed;
  uint32_t template; /* token */
};

/* clang-format off */
#define SCHEDULE(member) .offset = offsetof(struct schedule_body, schedule.member)
#define BODY(member) .offset = offsetof(struct schedule_body, member)
#define EXPRESSION_FIELDS                                                                              \
    {"cron", JSON_KIND_STRING, .min = 1, .max = cron_chars_max, SCHEDULE(cron)},                       \
    {"timezone", JSON_KIND_STRING, .min = 1, .max = timezone_chars_max, SCHEDULE(timezone)},           \
    {"interval_ms", JSON_KIND_U64, .min = schedule_interval_ms_min, .max = schedule_interval_ms_max, SCHEDULE(interval_ms)}
#define HANDLING_FIELDS                                                                                \
    {"overlap", JSON_KIND_STRING, .max = word_chars_max, BODY(overlap)},                               \
    {"missed", JSON_KIND_STRING, .max = word_chars_max, BODY(missed)},                                 \
    {"catch_up_limit", JSON_KIND_U32, .min = 1, .max = catch_up_limit_max, SCHEDULE(catch_up_limit)}

static const struct json_field create_fields[] = {
    {"name", JSON_KIND_TEXT, .required = true, .min = 1, .max = name_chars_max, SCHEDULE(name)},
    {"queue_id", JSON_KIND_ID, .required = true, SCHEDULE(queue_id)},
    {"kind", JSON_KIND_STRING, .required = true, .max = word_chars_max, BODY(kind)},
    EXPRESSION_FIELDS,
    {"start_at", JSON_KIND_TIME, SCHEDULE(start_at)},
    {"end_at", JSON_KIND_TIME, SCHEDULE(end_at)},
    {"template", JSON_KIND_OBJECT, .required = true, BODY(template)},
    HANDLING_FIELDS,
    {"paused", JSON_KIND_BOOL, SCHEDULE(paused)},
};

static const struct json_field change_fields[] = {
    {"expected_revision", JSON_KIND_DECIMAL, .required = true, SCHEDULE(expected_revision)},
    {"name", JSON_KIND_TEXT, .min = 1, .max = name_chars_max, SCHEDULE(name)},
    EXPRESSION_FIELDS,
    {"start_at", JSON_KIND_TIME, .nullable = true, SCHEDULE(start_at)},
    {"end_at", JSON_KIND_TIME, .nullable = true, SCHEDULE(end_at)},
    {"template", JSON_KIND_OBJECT, BODY(template)},
    HANDLING_FIELDS,
};
/* clang-format on */

static const struct {
  const char *name;
  unsigned given;
} given_names[] = {
    {"name", GIVEN_NAME},         {"cron", GIVEN_CRON},
    {"timezone", GIVEN_TIMEZONE}, {"interval_ms", GIVEN_INTERVAL},
    {"start_at", GIVEN_START},    {"end_at", GIVEN_END},
    {"template", GIVEN_TEMPLATE}, {"overlap", GIVEN_OVERLAP},
    {"missed", GIVEN_MISSED},     {"catch_up_limit", GIVEN_CATCH_UP},
};

static enum status read_body(struct json *json, struct bytes body, const struct json_field *fields, unsigned count,
                             void *target, struct fault *fault) {
  enum status status = json_parse(json, body, fault);
  return status == STATUS_OK ? json_read_object(json, 0, fields, count, target, NULL, fault) : status;
}

/* An expression is judged here, where the place in the body is known. */
static enum status judge_cron(struct json *json, struct bytes cron, struct fault *fault) {
  struct cron read;
  struct fault inner;
  if (cron_parse(cron, &read, &inner) == STATUS_OK) return STATUS_OK;
  return wire_refuse_member(json, 0, "cron", fault, inner.message);
}

static enum status judge_words(struct json *json, struct schedule_body *read, struct fault *fault) {
  struct schedule_command *schedule = &read->schedule;
  if (read->overlap.data != NULL && !overlap_parse(read->overlap, &schedule->overlap))
    return wire_refuse_member(json, 0, "overlap", fault, "overlap is ALLOW, SKIP or SERIAL");
  if (read->missed.data != NULL && !missed_parse(read->missed, &schedule->missed))
    return wire_refuse_member(json, 0, "missed", fault, "missed is SKIP, LATEST or ALL");
  if (schedule->cron.data != NULL) return judge_cron(json, schedule->cron, fault);
  return STATUS_OK;
}

/* What each kind needs and what does not go with it. */
static enum status judge_kind(struct json *json, struct bytes word, enum schedule_kind *kind, struct bytes cron,
                              struct bytes *timezone, uint64_t interval_ms, struct fault *fault) {
  if (!schedule_kind_parse(word, kind)) return wire_refuse_member(json, 0, "kind", fault, "kind is CRON or INTERVAL");
  if (*kind == SCHEDULE_INTERVAL) {
    if (cron.data != NULL) return wire_refuse_member(json, 0, "cron", fault, "an INTERVAL schedule has no expression");
    if (timezone->data != NULL) return wire_refuse_member(json, 0, "timezone", fault, "an INTERVAL schedule has no time zone");
    if (interval_ms == 0) return wire_refuse_member(json, 0, "interval_ms", fault, "an INTERVAL schedule needs interval_ms");
    return STATUS_OK;
  }
  if (cron.data == NULL) return wire_refuse_member(json, 0, "cron", fault, "a CRON schedule needs cron");
  if (interval_ms != 0) return wire_refuse_member(json, 0, "interval_ms", fault, "a CRON schedule has no interval");
  if (timezone->data == NULL) *timezone = bytes_text("UTC");
  return STATUS_OK;
}

static enum status read_template(struct json *json, struct schedule_body *read, struct buffer *texts, struct fault *fault) {
  if (read->template == 0) return STATUS_OK;
  return wire_template_read_object(json, read->template, texts, &read->schedule.template, &read->schedule.template_digest,
                                   fault);
}

static void set_command(struct command *command, enum command_kind kind, const struct schedule_command *schedule) {
  command->kind = kind;
  command->as.schedule = *schedule;
  command->operation.digest = schedule_digest(kind, schedule);
}

enum status wire_schedule_create_read(struct json *json, struct bytes body, struct buffer *texts, struct command *command,
                                      struct fault *fault) {
  struct schedule_body read = {
      .schedule = {.overlap = OVERLAP_ALLOW, .missed = MISSED_LATEST, .catch_up_limit = catch_up_limit_default}};
  struct schedule_command *schedule = &read.schedule;
  enum status status = read_body(json, body, create_fields, COUNT(create_fields), &read, fault);
  if (status == STATUS_OK)
    status = judge_kind(json, read.kind, &schedule->kind, schedule->cron, &schedule->timezone, schedule->interval_ms, fault);
  if (status == STATUS_OK) status = judge_words(json, &read, fault);
  if (status == STATUS_OK && schedule->end_at != 0 && schedule->end_at <= schedule->start_at)
    status = wire_refuse_member(json, 0, "end_at", fault, "end_at must be after start_at");
  if (status == STATUS_OK) status = read_template(json, &read, texts, fault);
  if (status != STATUS_OK) return status;
  set_command(command, COMMAND_SCHEDULE_CREATE, schedule);
  return STATUS_OK;
}

enum status wire_schedule_change_read(struct json *json, struct bytes body, const struct id *schedule_id, struct buffer *texts,
                                      struct command *command, struct fault *fault) {
  struct schedule_body read = {.schedule = {.id = *schedule_id}};
  enum status status = read_body(json, body, change_fields, COUNT(change_fields), &read, fault);
  if (status == STATUS_OK) status = judge_words(json, &read, fault);
  if (status == STATUS_OK) status = read_template(json, &read, texts, fault);
  if (status != STATUS_OK) return status;
  for (unsigned i = 0; i < COUNT(given_names); i++)
    if (json_member(json, 0, given_names[i].name) != 0) read.schedule.given |= given_names[i].given;
  if (read.schedule.given == 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, NULL, "nothing to change: expected_revision stands alone");
  set_command(command, COMMAND_SCHEDULE_CHANGE, &read.schedule);
  return STATUS_OK;
}

static const struct json_field rest_fields[] = {
    {"reason", JSON_KIND_TEXT, .min = 1, .max = reason_chars_max, .offset = offsetof(struct schedule_command, reason)},
};

enum status wire_schedule_rest_read(struct json *json, struct bytes body, const struct id *schedule_id, enum command_kind kind,
                                    struct command *command, struct fault *fault) {
  must(kind == COMMAND_SCHEDULE_PAUSE || kind == COMMAND_SCHEDULE_RESUME || kind == COMMAND_SCHEDULE_DELETE);
  struct schedule_command read = {.id = *schedule_id};
  enum status status = read_body(json, body, rest_fields, COUNT(rest_fields), &read, fault);
  if (status == STATUS_OK && read.reason.data != NULL) status = wire_reason_judge(json, read.reason, fault);
  if (status != STATUS_OK) return status;
  set_command(command, kind, &read);
  return STATUS_OK;
}

/* ---- preview ---- */

struct preview_body {
  struct preview_command preview;
  struct bytes kind;
};

#define PREVIEW(member) .offset = offsetof(struct preview_body, preview.member)
static const struct json_field preview_fields[] = {
    {"kind", JSON_KIND_STRING, .required = true, .max = word_chars_max, .offset = offsetof(struct preview_body, kind)},
    {"cron", JSON_KIND_STRING, .min = 1, .max = cron_chars_max, PREVIEW(cron)},
    {"timezone", JSON_KIND_STRING, .min = 1, .max = timezone_chars_max, PREVIEW(timezone)},
    {"interval_ms", JSON_KIND_U64, .min = schedule_interval_ms_min, .max = schedule_interval_ms_max, PREVIEW(interval_ms)},
    {"after", JSON_KIND_TIME, PREVIEW(after)},
    {"count", JSON_KIND_U32, .required = true, .min = 1, .max = preview_times_max, PREVIEW(count)},
};

enum status wire_preview_read(struct json *json, struct bytes body, struct command *command, struct fault *fault) {
  struct preview_body read = {.preview = {.count = 0}};
  struct preview_command *preview = &read.preview;
  enum status status = read_body(json, body, preview_fields, COUNT(preview_fields), &read, fault);
  if (status == STATUS_OK)
    status = judge_kind(json, read.kind, &preview->kind, preview->cron, &preview->timezone, preview->interval_ms, fault);
  if (status == STATUS_OK && preview->cron.data != NULL) status = judge_cron(json, preview->cron, fault);
  if (status != STATUS_OK) return status;
  command->kind = COMMAND_PREVIEW_TIMES;
  command->as.preview = *preview;
  return STATUS_OK;
}

/* ---- answers ---- */

static void text_member_if_any(struct buffer *out, const char *name, struct bytes text) {
  if (text.size != 0) wire_text_member(out, name, text);
}

static void template_member(struct buffer *out, const struct event_schedule_changed *config) {
  wire_raw_member(out, "template", bytes_text("{"));
  wire_text_member(out, "handler", config->handler);
  wire_text_member(out, "handler_version", config->handler_version);
  wire_text_member(out, "payload_version", config->payload_version);
  wire_raw_member(out, "payload", config->payload);
  wire_number_member(out, "task_timeout_ms", config->task_timeout_ms);
  wire_text_member(out, "recovery_safety", bytes_text(recovery_safety_text(config->recovery_safety)));
  wire_raw_member(out, "retry", bytes_text("{"));
  wire_number_member(out, "max_attempts", config->max_attempts);
  wire_number_member(out, "initial_delay_ms", config->initial_delay_ms);
  wire_number_member(out, "max_delay_ms", config->max_delay_ms);
  wire_number_member(out, "attempt_timeout_ms", config->attempt_timeout_ms);
  buffer_append_char(out, '}');
  text_member_if_any(out, "business_key", config->business_key);
  text_member_if_any(out, "concurrency_key", config->concurrency_key);
  if (config->priority != 0) wire_number_member(out, "priority", config->priority);
  buffer_append_char(out, '}');
}

void wire_trigger_write(struct buffer *out, const struct trigger *trigger) {
  buffer_append_char(out, '{');
  wire_time_member(out, "scheduled_at", trigger->scheduled_at);
  wire_text_member(out, "outcome", bytes_text(trigger_outcome_text(trigger->outcome)));
  if (!id_is_zero(&trigger->task_id)) wire_id_member(out, "task_id", &trigger->task_id);
  text_member_if_any(out, "code", trigger->code);
  wire_time_member(out, "decided_at", trigger->decided_at);
  buffer_append_char(out, '}');
}

void wire_schedule_write(struct buffer *out, const struct schedule *schedule, const struct event_schedule_changed *config,
                         bool live, const struct trigger *last) {
  buffer_append_char(out, '{');
  wire_id_member(out, "id", &schedule->id);
  wire_id_member(out, "namespace_id", &schedule->namespace_id);
  wire_id_member(out, "application_id", &schedule->application_id);
  wire_id_member(out, "queue_id", &schedule->queue_id);
  wire_text_member(out, "name", config->name);
  wire_decimal_member(out, "revision", schedule->revision);
  wire_text_member(out, "kind", bytes_text(schedule_kind_text((enum schedule_kind)schedule->kind)));
  text_member_if_any(out, "cron", config->cron);
  text_member_if_any(out, "timezone", config->timezone);
  if (schedule->interval_ms != 0) wire_number_member(out, "interval_ms", schedule->interval_ms);
  wire_time_member(out, "start_at", schedule->start_at);
  wire_time_member(out, "end_at", schedule->end_at);
  template_member(out, config);
  wire_text_member(out, "overlap", bytes_text(overlap_text((enum overlap)schedule->overlap)));
  wire_text_member(out, "missed", bytes_text(missed_text((enum missed)schedule->missed)));
  wire_number_member(out, "catch_up_limit", schedule->catch_up_limit);
  wire_bool_member(out, "paused", schedule->paused);
  if (schedule->deleted) wire_bool_member(out, "deleted", true);
  wire_time_member(out, "created_at", schedule->created_at);
  wire_time_member(out, "updated_at", schedule->updated_at);
  if (live) wire_time_member(out, "next_at", schedule->next_at);
  if (live && last != NULL) {
    wire_raw_member(out, "last", bytes_text(""));
    wire_trigger_write(out, last);
  }
  buffer_append_char(out, '}');
}

void wire_times_write(struct buffer *out, const int64_t *times, uint32_t count) {
  buffer_append_text(out, "{\"times\":[");
  for (uint32_t i = 0; i < count; i++) {
    char text[time_chars_max];
    if (i > 0) buffer_append_char(out, ',');
    buffer_append_char(out, '"');
    size_t chars = time_format(times[i], text);
    buffer_append(out, text, chars);
    buffer_append_char(out, '"');
  }
  buffer_append_text(out, "]}");
}
