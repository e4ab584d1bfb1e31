/* Owns the lists of what a namespace has: tasks, queues, applications, credentials, administrative audit. A page that the
 * engine gave may be written in part only, when it is large: the cursor then points behind the last row that was written. */
#include <string.h>

#include "base/guard.h"
#include "codec/wire_admin.h"
#include "codec/wire_feed.h"
#include "codec/wire_http.h"
#include "codec/wire_list.h"
#include "edge/routes.h"

static_assert(sizeof(struct id) == id_bytes, "an id is its bytes: it is a cursor's position as it stands");

static unsigned take_parameters(const struct request *request, struct wire_parameter out[target_parameters_max]) {
  for (unsigned i = 0; i < request->target.parameter_count; i++)
    out[i] = (struct wire_parameter){request->target.parameters[i].name, request->target.parameters[i].value};
  return request->target.parameter_count;
}

/* ---- Tasks ---- */

/* The target's text goes with the connection, and may go before the ticket is back; the job stays. */
static enum status keep_texts(struct job *job, struct list_tasks_command *filters, struct fault *fault) {
  struct bytes *texts[] = {&filters->handler, &filters->business_key};
  if (buffer_reserve(&job->texts, filters->handler.size + filters->business_key.size + 1) == NULL)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "no memory for the request");
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    if (texts[i]->data == NULL) continue;
    size_t at = job->texts.size;
    buffer_append_bytes(&job->texts, *texts[i]);
    *texts[i] = bytes_of(job->texts.data + at, texts[i]->size);
  }
  return STATUS_OK;
}

enum status tasks_list_begin(struct request *request, struct command *command, struct fault *fault) {
  struct wire_parameter parameters[target_parameters_max];
  struct list_tasks_command filters = {.limit = page_rows_default};
  bool given;
  enum status status = wire_list_tasks_read(parameters, take_parameters(request, parameters), &filters, fault);
  if (status != STATUS_OK) return status;
  struct id digest = list_tasks_digest(&filters);
  status = page_cursor_read(request, &digest, filters.after.bytes, id_bytes, &given, fault);
  if (status == STATUS_OK) status = keep_texts(request->job, &filters, fault);
  if (status != STATUS_OK) return status;
  command->kind = COMMAND_LIST_TASKS;
  command->as.list_tasks = filters;
  return STATUS_OK;
}

/* Where the page goes on: behind the last row that was written, or where the engine stopped looking. Zero: it was the last. */
static struct id next_id(const struct answer_list *list, uint32_t written, const struct id *last_written) {
  struct id none = {{0}};
  if (written < list->count) return *last_written;
  return list->more ? list->next : none;
}

static void end_by_id(struct request *request, const struct id *filters, const struct id *next) {
  buffer_append_char(&request->out, ']');
  if (!id_is_zero(next)) page_cursor_write(request, filters, bytes_of(next->bytes, id_bytes));
  buffer_append_char(&request->out, '}');
}

enum status tasks_list_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  const struct answer_list *list = &answer->as.list;
  struct id last = {{0}}, filters = list_tasks_digest(&request->job->ticket.command.as.list_tasks);
  uint32_t row = 0;
  buffer_append_text(&request->out, "{\"items\":[");
  for (; row < list->count && !request_page_is_full(request); row++) {
    struct task_document document;
    enum status status = tasks_document(request, &list->of.tasks[row], &document, fault);
    if (status != STATUS_OK) return status;
    if (row > 0) buffer_append_char(&request->out, ',');
    wire_task_summary_write(&request->out, &document);
    last = list->of.tasks[row].id;
  }
  struct id next = next_id(list, row, &last);
  end_by_id(request, &filters, &next);
  return STATUS_OK;
}

/* ---- Administrative objects: no filters ---- */

static const struct id no_filters = {{0}};

static enum status begin_objects(struct request *request, enum object_list kind, struct command *command, struct fault *fault) {
  struct list_objects_command list = {.list = kind};
  bool given;
  enum status status = page_limit_read(request, &list.limit, fault);
  if (status == STATUS_OK) status = page_cursor_read(request, &no_filters, list.after.bytes, id_bytes, &given, fault);
  if (status != STATUS_OK) return status;
  command->kind = COMMAND_LIST_OBJECTS;
  command->as.list_objects = list;
  return STATUS_OK;
}

enum status queues_list_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_objects(request, LIST_QUEUES, command, fault);
}

enum status applications_list_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_objects(request, LIST_APPLICATIONS, command, fault);
}

enum status credentials_list_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_objects(request, LIST_CREDENTIALS, command, fault);
}

enum status subscriptions_list_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_objects(request, LIST_SUBSCRIPTIONS, command, fault);
}

/* One kind of object in a list. */
struct object_row {
  struct id id;
  uint64_t config_seq;
};
typedef struct object_row object_row_of(const struct answer_list *list, uint32_t row);
typedef void object_write(struct buffer *out, const struct answer_list *list, uint32_t row, const struct object_texts *texts);

static enum status finish_objects(struct request *request, const struct answer_list *list, object_row_of *row_of,
                                  object_write *write, struct fault *fault) {
  struct id last = {{0}};
  uint32_t row = 0;
  buffer_append_text(&request->out, "{\"items\":[");
  for (; row < list->count && !request_page_is_full(request); row++) {
    struct object_row object = row_of(list, row);
    struct object_texts texts;
    enum status status = object_texts_read(request, object.config_seq, &texts, fault);
    if (status != STATUS_OK) return status;
    if (row > 0) buffer_append_char(&request->out, ',');
    write(&request->out, list, row, &texts);
    last = object.id;
  }
  struct id next = next_id(list, row, &last);
  end_by_id(request, &no_filters, &next);
  return STATUS_OK;
}

static struct object_row queue_row(const struct answer_list *list, uint32_t row) {
  return (struct object_row){list->of.queues[row].id, list->of.queues[row].config_seq};
}

static void queue_write(struct buffer *out, const struct answer_list *list, uint32_t row, const struct object_texts *texts) {
  wire_queue_write(out, &list->of.queues[row], texts, true, list->oldest_waiting_at[row]);
}

enum status queues_list_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_objects(request, &answer->as.list, queue_row, queue_write, fault);
}

static struct object_row application_row(const struct answer_list *list, uint32_t row) {
  return (struct object_row){list->of.applications[row].id, list->of.applications[row].config_seq};
}

static void application_write(struct buffer *out, const struct answer_list *list, uint32_t row,
                              const struct object_texts *texts) {
  wire_application_write(out, &list->of.applications[row], texts, true);
}

enum status applications_list_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_objects(request, &answer->as.list, application_row, application_write, fault);
}

static struct object_row credential_row(const struct answer_list *list, uint32_t row) {
  return (struct object_row){list->of.credentials[row].id, list->of.credentials[row].config_seq};
}

static void credential_write(struct buffer *out, const struct answer_list *list, uint32_t row,
                             const struct object_texts *texts) {
  wire_credential_write(out, &list->of.credentials[row], texts);
}

enum status credentials_list_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_objects(request, &answer->as.list, credential_row, credential_write, fault);
}

static struct object_row subscription_row(const struct answer_list *list, uint32_t row) {
  return (struct object_row){list->of.subscriptions[row].id, list->of.subscriptions[row].config_seq};
}

static void subscription_write(struct buffer *out, const struct answer_list *list, uint32_t row,
                               const struct object_texts *texts) {
  wire_subscription_write(out, &list->of.subscriptions[row], texts->name, true, list->log_end);
}

enum status subscriptions_list_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_objects(request, &answer->as.list, subscription_row, subscription_write, fault);
}

/* ---- Schedules ---- */

enum status schedules_list_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_objects(request, LIST_SCHEDULES, command, fault);
}

enum status schedules_list_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  const struct answer_list *list = &answer->as.list;
  struct id last = {{0}};
  uint32_t row = 0;
  buffer_append_text(&request->out, "{\"items\":[");
  for (; row < list->count && !request_page_is_full(request); row++) {
    if (row > 0) buffer_append_char(&request->out, ',');
    enum status status = schedule_write_whole(request, &list->of.schedules[row], true, fault);
    if (status != STATUS_OK) return status;
    last = list->of.schedules[row].id;
  }
  struct id next = next_id(list, row, &last);
  end_by_id(request, &no_filters, &next);
  return STATUS_OK;
}

/* ---- Administrative audit: pages go on by position in the log ---- */

enum status audit_list_begin(struct request *request, struct command *command, struct fault *fault) {
  struct wire_parameter parameters[target_parameters_max];
  struct list_audit_command list = {.limit = page_rows_default};
  bool given;
  enum status status = wire_list_audit_read(parameters, take_parameters(request, parameters), &list, fault);
  if (status == STATUS_OK)
    status = page_cursor_read(request, &list.target_id, &list.before_seq, sizeof list.before_seq, &given, fault);
  if (status != STATUS_OK) return status;
  command->kind = COMMAND_LIST_AUDIT;
  command->as.list_audit = list;
  return STATUS_OK;
}

enum status audit_list_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  const struct answer_list *list = &answer->as.list;
  struct id target_id = request->job->ticket.command.as.list_audit.target_id;
  struct record_source source;
  uint64_t next = list->more ? list->next_seq : 0;
  uint32_t row = 0;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  buffer_append_text(&request->out, "{\"items\":[");
  for (; row < list->count && !request_page_is_full(request); row++) {
    struct event event;
    status = history_event(request->pool->history, source, list->of.seqs[row], &event);
    if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log does not hold an audit record");
    if (row > 0) buffer_append_char(&request->out, ',');
    wire_audit_write(&request->out, &event);
  }
  if (row < list->count) next = list->of.seqs[row - 1];
  buffer_append_char(&request->out, ']');
  if (next != 0) page_cursor_write(request, &target_id, bytes_of(&next, sizeof next));
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}
