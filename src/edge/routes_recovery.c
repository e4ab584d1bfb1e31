/* Owns the routes by which people act on one task (review, manual retry, cancel) and read what was done to it: its operations
 * and its events. */
#include "base/guard.h"
#include "codec/wire_http.h"
#include "codec/wire_list.h"
#include "codec/wire_recovery.h"
#include "edge/routes.h"
#include "state/operations.h"

/* ---- What people do ---- */

enum status tasks_review_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_review_read(&job->json, buffer_bytes(&job->body), &request->ids[0], &job->texts, command, fault);
}

enum status tasks_retry_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_retry_read(&job->json, buffer_bytes(&job->body), &request->ids[0], command, fault);
}

enum status tasks_cancel_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_cancel_read(&job->json, buffer_bytes(&job->body), &request->ids[0], command, fault);
}

enum status tasks_review_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct task_document document;
  enum status status = tasks_document(request, &answer->as.task, &document, fault);
  if (status == STATUS_OK) wire_review_answer_write(&request->out, &document, &answer->audit_id, answer->deduplicated);
  return status;
}

enum status tasks_retry_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct task_document document;
  enum status status = tasks_document(request, &answer->as.task, &document, fault);
  if (status == STATUS_OK)
    wire_retry_answer_write(&request->out, &answer->source_task_id, &document, &answer->audit_id, answer->deduplicated);
  return status;
}

enum status tasks_cancel_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct task_document document;
  enum status status = tasks_document(request, &answer->as.task, &document, fault);
  if (status == STATUS_OK)
    wire_cancel_answer_write(&request->out, &document, &answer->audit_id, answer->applied, answer->deduplicated);
  return status;
}

/* ---- What was done: the task itself is asked for first, so that scope is judged ---- */

enum status tasks_operations_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct operation_document rows[page_rows_max];
  struct record_source source;
  struct id after = {{0}};
  uint32_t limit, count;
  bool more, given;
  enum status status = page_limit_read(request, &limit, fault);
  if (status == STATUS_OK) status = page_cursor_read(request, &request->ids[0], after.bytes, sizeof after.bytes, &given, fault);
  if (status == STATUS_OK) status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  status = operations_page(request->pool->history, source, &answer->as.task, given ? &after : NULL, limit, rows, &count, &more);
  if (status == STATUS_NOT_FOUND)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "cursor", "the page before is gone; start from the first page");
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log does not hold the task's operations");
  buffer_append_text(&request->out, "{\"items\":[");
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) buffer_append_char(&request->out, ',');
    wire_operation_summary_write(&request->out, &rows[i]);
  }
  buffer_append_char(&request->out, ']');
  if (more) page_cursor_write(request, &request->ids[0], bytes_of(rows[count - 1].id.bytes, id_bytes));
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}

enum status tasks_operation_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct operation_document operation;
  struct record_source source;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  status = operations_find(request->pool->history, source, &answer->as.task, &request->ids[1], &operation);
  if (status == STATUS_NOT_FOUND) return fault_set(fault, status, NULL, "the task has no such operation");
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log does not hold the task's operations");
  wire_operation_write(&request->out, &operation);
  return STATUS_OK;
}

/* The queue of a task stands in its first event. */
static enum status write_events(struct request *request, struct record_source source, const struct task *task,
                                const uint64_t *seqs, uint32_t count, struct fault *fault) {
  struct history *history = request->pool->history;
  struct event event;
  uint32_t next = request->page_start, rows = 0;
  enum status status = history_event(history, source, seqs[0], &event);
  if (status != STATUS_OK || event.type != EVENT_task_accepted)
    return fault_set(fault, STATUS_CORRUPT, NULL, "the log does not hold the task's acceptance");
  struct id queue_id = event.body.task_accepted.queue_id;
  buffer_append_text(&request->out, "{\"items\":[");
  for (; next < count && rows < request->page_limit && !request_page_is_full(request); next++, rows++) {
    status = history_event(history, source, seqs[next], &event);
    if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log does not hold the task's events");
    if (rows > 0) buffer_append_char(&request->out, ',');
    wire_event_write(&request->out, &event, &task->id, &queue_id);
  }
  page_end(request, next, count);
  return STATUS_OK;
}

enum status tasks_events_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  const struct task *task = &answer->as.task;
  struct record_source source;
  const uint64_t *seqs;
  size_t count;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  status = history_chain(request->pool->history, source, task->last_seq, &seqs, &count);
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log does not hold the task's events");
  must(count > 0 && count <= UINT32_MAX);
  return write_events(request, source, task, seqs, (uint32_t)count, fault);
}
