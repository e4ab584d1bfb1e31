/* Owns the query parameters of lists, events as items, and batches of submissions. */
#include "codec/wire_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "codec/event_codec.h"
#include "codec/wire_http.h"

/* ---- Query parameters ---- */

/* Everything that a list may be asked for. */
struct list_query {
  struct list_tasks_command tasks;
  struct id target_id;
  uint64_t limit;
};

typedef enum status parameter_read(struct bytes value, const char *name, struct list_query *query, struct fault *fault);

static enum status refuse(struct fault *fault, const char *name, const char *what) {
  return fault_set(fault, STATUS_INVALID_ARGUMENT, name, "%s must be %s", name, what);
}

static enum status read_id(struct bytes value, const char *name, struct id *ret_id, struct fault *fault) {
  return id_parse(value, ret_id) ? STATUS_OK : refuse(fault, name, "an id: 32 lower-case hexadecimal digits, not all zero");
}

static enum status read_queue_id(struct bytes value, const char *name, struct list_query *query, struct fault *fault) {
  return read_id(value, name, &query->tasks.queue_id, fault);
}

static enum status read_target_id(struct bytes value, const char *name, struct list_query *query, struct fault *fault) {
  return read_id(value, name, &query->target_id, fault);
}

static enum status read_state(struct bytes value, const char *name, struct list_query *query, struct fault *fault) {
  return task_state_parse(value, &query->tasks.state) ? STATUS_OK : refuse(fault, name, "a state, as WAITING or NEEDS_REVIEW");
}

/* No longer than a task's own: another cannot be found. */
static enum status read_text(struct bytes value, const char *name, size_t chars_max, struct bytes *ret_text,
                             struct fault *fault) {
  size_t chars = bytes_is_utf8(value) ? bytes_count_chars(value) : 0;
  if (chars == 0 || chars > chars_max)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, name, "%s must be 1 to %zu characters", name, chars_max);
  *ret_text = value;
  return STATUS_OK;
}

static enum status read_handler(struct bytes value, const char *name, struct list_query *query, struct fault *fault) {
  return read_text(value, name, word_chars_max, &query->tasks.handler, fault);
}

static enum status read_business_key(struct bytes value, const char *name, struct list_query *query, struct fault *fault) {
  return read_text(value, name, key_chars_max, &query->tasks.business_key, fault);
}

static enum status read_time(struct bytes value, const char *name, int64_t *ret_time, struct fault *fault) {
  return time_parse(value, ret_time) ? STATUS_OK
                                     : refuse(fault, name, "a time like 2026-09-17T00:00:00.25Z, in years 2000 to 9998");
}

static enum status read_created_after(struct bytes value, const char *name, struct list_query *query, struct fault *fault) {
  return read_time(value, name, &query->tasks.created_after, fault);
}

static enum status read_created_before(struct bytes value, const char *name, struct list_query *query, struct fault *fault) {
  return read_time(value, name, &query->tasks.created_before, fault);
}

static enum status read_limit(struct bytes value, const char *name, struct list_query *query, struct fault *fault) {
  uint64_t limit = 0;
  bool digits = value.size >= 1 && value.size <= 3 && value.data[0] != '0';
  for (size_t i = 0; digits && i < value.size; i++) {
    digits = value.data[i] >= '0' && value.data[i] <= '9';
    limit = limit * 10 + (uint64_t)(value.data[i] - '0');
  }
  if (!digits || limit > page_rows_max)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, name, "%s must be a number from 1 to %d", name, page_rows_max);
  query->limit = limit;
  return STATUS_OK;
}

static enum status pass_over(struct bytes value, const char *name, struct list_query *query, struct fault *fault) {
  (void)value, (void)name, (void)query, (void)fault;
  return STATUS_OK;
}

/* In which lists a parameter may stand. */
enum { IN_TASKS = 1, IN_AUDIT = 2, IN_PLAIN = 4 };

static const struct {
  const char *name;
  unsigned lists;
  parameter_read *read;
} known_parameters[] = {
    {"queue_id", IN_TASKS, read_queue_id},
    {"state", IN_TASKS, read_state},
    {"handler", IN_TASKS, read_handler},
    {"business_key", IN_TASKS, read_business_key},
    {"created_after", IN_TASKS, read_created_after},
    {"created_before", IN_TASKS, read_created_before},
    {"target_id", IN_AUDIT, read_target_id},
    {"limit", IN_TASKS | IN_AUDIT | IN_PLAIN, read_limit},
    {"cursor", IN_TASKS | IN_AUDIT | IN_PLAIN, pass_over},
};
enum { known_count = sizeof known_parameters / sizeof known_parameters[0] };

static enum status refuse_parameter(struct fault *fault, struct bytes name, const char *why) {
  char text[128];
  size_t size = name.size < sizeof text - 1 ? name.size : sizeof text - 1;
  while (size > 0 && !bytes_is_utf8(bytes_of(name.data, size))) size--;
  if (size > 0) memcpy(text, name.data, size);
  text[size] = 0;
  return fault_set(fault, STATUS_INVALID_ARGUMENT, text, "%s", why);
}

static enum status read_query(const struct wire_parameter *parameters, unsigned count, unsigned list,
                              struct list_query *ret_query, struct fault *fault) {
  struct list_query query = {.limit = page_rows_default};
  unsigned seen = 0;
  for (unsigned i = 0; i < count; i++) {
    unsigned known = 0;
    while (known < known_count &&
           !((known_parameters[known].lists & list) != 0 && bytes_equal_text(parameters[i].name, known_parameters[known].name)))
      known++;
    if (known == known_count) return refuse_parameter(fault, parameters[i].name, "unknown parameter");
    if ((seen >> known & 1) != 0) return refuse_parameter(fault, parameters[i].name, "the parameter is given twice");
    seen |= 1U << known;
    enum status status = known_parameters[known].read(parameters[i].value, known_parameters[known].name, &query, fault);
    if (status != STATUS_OK) return status;
  }
  *ret_query = query;
  return STATUS_OK;
}

enum status wire_list_tasks_read(const struct wire_parameter *parameters, unsigned count,
                                 struct list_tasks_command *ret_command, struct fault *fault) {
  struct list_query query;
  enum status status = read_query(parameters, count, IN_TASKS, &query, fault);
  if (status != STATUS_OK) return status;
  *ret_command = query.tasks;
  ret_command->limit = (uint32_t)query.limit;
  return STATUS_OK;
}

enum status wire_list_audit_read(const struct wire_parameter *parameters, unsigned count,
                                 struct list_audit_command *ret_command, struct fault *fault) {
  struct list_query query;
  enum status status = read_query(parameters, count, IN_AUDIT, &query, fault);
  if (status != STATUS_OK) return status;
  *ret_command = (struct list_audit_command){.target_id = query.target_id, .limit = (uint32_t)query.limit};
  return STATUS_OK;
}

enum status wire_list_limit_read(const struct wire_parameter *parameters, unsigned count, uint32_t *ret_limit,
                                 struct fault *fault) {
  struct list_query query = {.limit = page_rows_default};
  enum status status = read_query(parameters, count, IN_PLAIN, &query, fault);
  if (status == STATUS_OK) *ret_limit = (uint32_t)query.limit;
  return status;
}

/* ---- Events ---- */

static void id_member_if_given(struct buffer *out, const char *name, const struct id *id) {
  if (id != NULL && !id_is_zero(id)) wire_id_member(out, name, id);
}

void wire_event_write(struct buffer *out, const struct event *event, const struct id *task_id, const struct id *queue_id) {
  buffer_append_char(out, '{');
  wire_decimal_member(out, "position", event->seq);
  wire_text_member(out, "type", bytes_text(event_type_text(event->type)));
  wire_time_member(out, "time", event->time_us);
  id_member_if_given(out, "task_id", task_id);
  id_member_if_given(out, "queue_id", queue_id);
  if (event->common.revision != 0) wire_decimal_member(out, "revision", event->common.revision);
  wire_raw_member(out, "data", bytes_text("{"));
  event_print_json(event, true, true, out);
  buffer_append_text(out, "}}");
}

/* ---- Batches ---- */

struct batch_body {
  uint32_t items; /* token */
};

static const struct json_field batch_fields[] = {
    {"items", JSON_KIND_ARRAY, .required = true, .min = 1, .max = batch_items_max,
     .offset = offsetof(struct batch_body, items)},
};

/* What batches and their items share while they are read. */
struct batch_reading {
  struct json *json;
  const struct secret *secret;
  const struct principal *who;
  struct buffer *texts;
};

static enum status read_item(const struct batch_reading *reading, uint32_t token, struct command *command,
                             struct fault *fault) {
  struct bytes key = {NULL, 0};
  enum status status = wire_submit_read_object(reading->json, token, reading->texts, command, &key, fault);
  if (status != STATUS_OK) return status;
  if (key.data == NULL)
    return wire_refuse_member(reading->json, token, "idempotency_key", fault, "idempotency_key is required");
  static const struct id no_target = {{0}};
  command->who = *reading->who;
  command->operation.identity =
      identity_make(reading->secret, &reading->who->namespace_id, command_kind_text(COMMAND_SUBMIT), &no_target, key);
  return STATUS_OK;
}

enum status wire_batch_read(struct json *json, struct bytes body, const struct secret *secret, const struct principal *who,
                            struct buffer *texts, struct batch_item **ret_items, uint32_t *ret_count, struct fault *fault) {
  struct batch_body read = {.items = 0};
  enum status status = json_parse(json, body, fault);
  if (status == STATUS_OK)
    status = json_read_object(json, 0, batch_fields, sizeof batch_fields / sizeof batch_fields[0], &read, NULL, fault);
  if (status != STATUS_OK) return status;
  uint32_t count = json->tokens[read.items].count, at = 0;
  struct batch_item *items = calloc(count, sizeof *items);
  if (items == NULL) return fault_set(fault, STATUS_UNAVAILABLE, NULL, "no memory for the request");
  struct batch_reading reading = {json, secret, who, texts};
  for (uint32_t token = read.items + 1; token < json->tokens[read.items].next; token = json->tokens[token].next, at++) {
    struct batch_item *item = &items[at];
    item->answer.status = read_item(&reading, token, &item->command, &item->answer.fault);
  }
  must(at == count);
  *ret_items = items;
  *ret_count = count;
  return STATUS_OK;
}

void wire_batch_item_write(struct buffer *out, const struct answer *answer, const struct task_document *task) {
  buffer_append_char(out, '{');
  if (answer->status == STATUS_OK) {
    wire_number_member(out, "status", answer->created ? 201 : 200);
    wire_raw_member(out, "task", bytes_text(""));
    wire_task_write(out, task);
    wire_bool_member(out, "deduplicated", answer->deduplicated);
  } else {
    wire_number_member(out, "status", status_http(answer->status));
    wire_raw_member(out, "error", bytes_text(""));
    wire_fault_write(out, &answer->fault);
  }
  buffer_append_char(out, '}');
}
