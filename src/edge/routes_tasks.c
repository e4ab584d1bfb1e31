/* Owns the routes about tasks: submit, read, and what happened to one. Scope is the engine's to judge: every read of a task's
 * history begins with a ticket for the task itself. */
#include <string.h>

#include "codec/cursor.h"
#include "codec/wire_http.h"
#include "edge/routes.h"

/* ---- Pages of what a task has, by its number in the list ---- */

static struct cursor_binding page_binding(const struct request *request) {
  return (struct cursor_binding){
      .kind = request->route->cursor_kind, .namespace_id = request->who.namespace_id, .filters = request->ids[0]};
}

enum status page_read(struct request *request, struct fault *fault) {
  uint64_t limit;
  enum status status = target_number(&request->target, "limit", 1, page_rows_max, page_rows_default, &limit, fault);
  if (status != STATUS_OK) return status;
  request->page_limit = (uint32_t)limit;
  request->page_start = 0;
  struct bytes text = target_parameter(&request->target, "cursor");
  if (text.data == NULL) return STATUS_OK;
  struct cursor_binding binding = page_binding(request);
  struct cursor_position position;
  status = cursor_read(text, journal_secret(request->pool->edge->journal), &binding, &position, fault);
  if (status != STATUS_OK) return status;
  if (position.size != sizeof request->page_start)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "cursor", "not a cursor of this list");
  memcpy(&request->page_start, position.bytes, sizeof request->page_start);
  return STATUS_OK;
}

void page_end(struct request *request, uint32_t next, uint32_t count) {
  struct buffer *out = &request->out;
  buffer_append_char(out, ']');
  if (next < count) {
    struct cursor_binding binding = page_binding(request);
    buffer_append_text(out, ",\"next_cursor\":\"");
    cursor_write(out, journal_secret(request->pool->edge->journal), &binding, bytes_of(&next, sizeof next));
    buffer_append_char(out, '"');
  }
  buffer_append_char(out, '}');
}

/* ---- One task ---- */

static enum status write_task(struct request *request, const struct task *task, struct fault *fault) {
  struct record_source source;
  struct task_document document;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  status = history_document(request->pool->history, source, task, &document);
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log does not hold the task as it was answered");
  buffer_append_text(&request->out, "{\"task\":");
  wire_task_write(&request->out, &document);
  return STATUS_OK;
}

enum status tasks_submit_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  command->kind = COMMAND_SUBMIT;
  return wire_submit_read(&job->json, buffer_bytes(&job->body), &job->texts, command, fault);
}

enum status tasks_submit_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  enum status status = write_task(request, &answer->as.task, fault);
  if (status != STATUS_OK) return status;
  wire_bool_member(&request->out, "deduplicated", answer->deduplicated);
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}

enum status tasks_get_begin(struct request *request, struct command *command, struct fault *fault) {
  (void)fault;
  command->kind = COMMAND_GET_TASK;
  command->as.task_id = request->ids[0];
  return STATUS_OK;
}

enum status tasks_get_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  enum status status = write_task(request, &answer->as.task, fault);
  if (status == STATUS_OK) buffer_append_char(&request->out, '}');
  return status;
}

/* ---- What happened to it ---- */

static enum status read_attempts(struct request *request, const struct task *task, const struct attempt_document **ret_attempts,
                                 uint32_t *ret_count, struct fault *fault) {
  struct record_source source;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  status = history_attempts(request->pool->history, source, task, ret_attempts, ret_count);
  return status == STATUS_OK ? status : fault_set(fault, status, NULL, "the log does not hold the task's attempts");
}

enum status tasks_attempts_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  const struct attempt_document *attempts;
  uint32_t count, next = request->page_start, rows = 0;
  enum status status = read_attempts(request, &answer->as.task, &attempts, &count, fault);
  if (status != STATUS_OK) return status;
  buffer_append_text(&request->out, "{\"items\":[");
  for (; next < count && rows < request->page_limit && !request_page_is_full(request); next++, rows++) {
    if (rows > 0) buffer_append_char(&request->out, ',');
    wire_attempt_write(&request->out, &attempts[next]);
  }
  page_end(request, next, count);
  return STATUS_OK;
}

enum status tasks_attempt_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  const struct attempt_document *attempts;
  uint32_t count, at = 0;
  enum status status = read_attempts(request, &answer->as.task, &attempts, &count, fault);
  if (status != STATUS_OK) return status;
  while (at < count && !id_equal(&attempts[at].attempt_id, &request->ids[1])) at++;
  if (at == count) return fault_set(fault, STATUS_NOT_FOUND, NULL, "no such attempt");
  buffer_append_text(&request->out, "{\"attempt\":");
  wire_attempt_write(&request->out, &attempts[at]);
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}

enum status tasks_evidence_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  const struct evidence_document *evidence;
  struct record_source source;
  uint32_t count, next = request->page_start, rows = 0;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  status = history_evidence(request->pool->history, source, &answer->as.task, &evidence, &count);
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log does not hold the task's evidence");
  buffer_append_text(&request->out, "{\"items\":[");
  for (; next < count && rows < request->page_limit && !request_page_is_full(request); next++, rows++) {
    if (rows > 0) buffer_append_char(&request->out, ',');
    wire_evidence_write(&request->out, &evidence[next]);
  }
  page_end(request, next, count);
  return STATUS_OK;
}
