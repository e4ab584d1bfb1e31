/* Owns the JSON of the feed and of subscriptions. */
#include "codec/wire_feed.h"

#include <stddef.h>

#include "base/guard.h"
#include "codec/digest.h"
#include "codec/event_codec.h"
#include "codec/wire_http.h"
#include "core/decision.h"
#include "core/feed.h"

/* ---- events ---- */

static bool is_of_task(enum event_type type) { return type >= EVENT_task_accepted && type < 50; }

static void write_error(struct buffer *out, const struct event_attempt_result *report) {
  wire_raw_member(out, "error", bytes_text("{"));
  wire_text_member(out, "code", report->error_code);
  wire_text_member(out, "message", report->error_message.size != 0 ? report->error_message : (struct bytes){NULL, 0});
  if (report->error_details.size != 0) wire_raw_member(out, "details", report->error_details);
  buffer_append_char(out, '}');
}

/* What the worker said: the result that a success came with, the error that anything else came from. */
static void write_report(struct buffer *out, const struct event *decision, const struct event_attempt_result *report) {
  if (decision->type == EVENT_task_succeeded && report->result.size != 0) wire_raw_member(out, "result", report->result);
  if (decision->type != EVENT_task_succeeded && report->error_code.size != 0) write_error(out, report);
}

void wire_feed_event_write(struct buffer *out, const struct event *event, const struct event *report,
                           const struct id *queue_id) {
  buffer_append_char(out, '{');
  wire_decimal_member(out, "position", event->seq);
  wire_text_member(out, "type", bytes_text(event_type_text(event->type)));
  wire_time_member(out, "time", event->time_us);
  if (is_of_task(event->type)) wire_id_member(out, "task_id", &event->stream);
  wire_id_member(out, "queue_id", queue_id);
  if (event->common.revision != 0) wire_decimal_member(out, "revision", event->common.revision);
  wire_raw_member(out, "data", bytes_text("{"));
  event_print_public(event, out);
  if (report != NULL) write_report(out, event, &report->body.attempt_result);
  buffer_append_text(out, "}}");
}

/* ---- subscriptions: bodies ---- */

struct subscription_body {
  struct subscription_command subscription;
  struct bytes from;
  uint32_t types; /* token */
};

#define COUNT(fields) ((unsigned)(sizeof(fields) / sizeof(fields)[0]))
#define SUBSCRIPTION(member) .offset = offsetof(struct subscription_body, member)
static const struct json_field create_fields[] = {
    {"name", JSON_KIND_TEXT, .required = true, .min = 1, .max = name_chars_max, SUBSCRIPTION(subscription.name)},
    {"types", JSON_KIND_ARRAY, .min = 1, .max = EVENT_type_end, SUBSCRIPTION(types)},
    {"queue_id", JSON_KIND_ID, SUBSCRIPTION(subscription.queue_id)},
    {"task_id", JSON_KIND_ID, SUBSCRIPTION(subscription.task_id)},
    {"from", JSON_KIND_STRING, .required = true, .min = 1, .max = 20, SUBSCRIPTION(from)},
};
static const struct json_field ack_fields[] = {
    {"position", JSON_KIND_DECIMAL, .required = true, SUBSCRIPTION(subscription.position)},
};

static enum status read_body(struct json *json, struct bytes body, const struct json_field *fields, unsigned count,
                             struct subscription_body *read, struct fault *fault) {
  enum status status = json_parse(json, body, fault);
  return status == STATUS_OK ? json_read_object(json, 0, fields, count, read, NULL, fault) : status;
}

static enum status read_types(struct json *json, uint32_t array, struct feed_types *types, struct fault *fault) {
  for (uint32_t token = array + 1; token < json->tokens[array].next; token = json->tokens[token].next) {
    struct feed_types before = *types;
    if (json->tokens[token].type != JSON_STRING || !feed_types_add(types, json_string(json, token)))
      return json_refuse(json, token, fault, "not a type of events that the feed shows, as \"task.succeeded\"");
    if (feed_types_equal(&before, types)) return json_refuse(json, token, fault, "the type stands here twice");
  }
  return STATUS_OK;
}

static bool read_position(struct bytes text, uint64_t *ret_position) {
  uint64_t position = 0;
  bool sound = text.size > 0 && (text.data[0] != '0' || text.size == 1);
  for (size_t i = 0; i < text.size && sound; i++)
    sound = text.data[i] >= '0' && text.data[i] <= '9' && !__builtin_mul_overflow(position, 10U, &position) &&
            !__builtin_add_overflow(position, (uint64_t)(text.data[i] - '0'), &position);
  if (sound) *ret_position = position;
  return sound;
}

static enum status read_from(struct json *json, struct subscription_body *read, struct fault *fault) {
  struct subscription_command *create = &read->subscription;
  if (bytes_equal_text(read->from, "earliest")) create->from = FEED_FROM_EARLIEST;
  else if (bytes_equal_text(read->from, "latest")) create->from = FEED_FROM_LATEST;
  else if (read_position(read->from, &create->position)) create->from = FEED_FROM_POSITION;
  else
    return json_refuse(json, json_member(json, 0, "from"), fault,
                       "must be \"earliest\", \"latest\" or a position, as \"1234\"");
  return STATUS_OK;
}

static enum status set_command(struct command *command, enum command_kind kind, const struct subscription_command *read) {
  command->kind = kind;
  command->as.subscription = *read;
  command->operation.digest = subscription_digest(kind, read);
  return STATUS_OK;
}

enum status wire_subscription_create_read(struct json *json, struct bytes body, struct command *command, struct fault *fault) {
  struct subscription_body read = {.types = 0};
  enum status status = read_body(json, body, create_fields, COUNT(create_fields), &read, fault);
  if (status == STATUS_OK && read.types != 0) status = read_types(json, read.types, &read.subscription.types, fault);
  if (status == STATUS_OK) status = read_from(json, &read, fault);
  return status == STATUS_OK ? set_command(command, COMMAND_SUBSCRIPTION_CREATE, &read.subscription) : status;
}

enum status wire_subscription_ack_read(struct json *json, struct bytes body, const struct id *subscription_id,
                                       struct command *command, struct fault *fault) {
  struct subscription_body read = {.subscription = {.id = *subscription_id}};
  enum status status = read_body(json, body, ack_fields, COUNT(ack_fields), &read, fault);
  return status == STATUS_OK ? set_command(command, COMMAND_SUBSCRIPTION_ACK, &read.subscription) : status;
}

enum status wire_subscription_delete_read(struct json *json, struct bytes body, const struct id *subscription_id,
                                          struct command *command, struct fault *fault) {
  struct subscription_body read = {.subscription = {.id = *subscription_id}};
  enum status status = read_body(json, body, NULL, 0, &read, fault);
  return status == STATUS_OK ? set_command(command, COMMAND_SUBSCRIPTION_DELETE, &read.subscription) : status;
}

/* ---- subscriptions: objects ---- */

static void write_types(struct buffer *out, const struct feed_types *types) {
  const char *comma = "";
  if (feed_types_are_any(types)) return;
  wire_raw_member(out, "types", bytes_text("["));
  for (unsigned number = 1; number < EVENT_type_end; number++) {
    if (!feed_types_have(types, (enum event_type)number)) continue;
    buffer_append_text(out, comma);
    json_write_string(out, bytes_text(event_type_text((enum event_type)number)));
    comma = ",";
  }
  buffer_append_char(out, ']');
}

void wire_subscription_write(struct buffer *out, const struct subscription *subscription, struct bytes name, bool live,
                             uint64_t log_end) {
  buffer_append_char(out, '{');
  wire_id_member(out, "id", &subscription->id);
  wire_id_member(out, "namespace_id", &subscription->namespace_id);
  wire_text_member(out, "name", name);
  wire_decimal_member(out, "revision", subscription->revision);
  write_types(out, &subscription->types);
  if (!id_is_zero(&subscription->queue_id)) wire_id_member(out, "queue_id", &subscription->queue_id);
  if (!id_is_zero(&subscription->task_id)) wire_id_member(out, "task_id", &subscription->task_id);
  wire_decimal_member(out, "position", subscription->position);
  if (live) wire_number_member(out, "lag", log_end > subscription->position ? log_end - subscription->position : 0);
  buffer_append_char(out, '}');
}
