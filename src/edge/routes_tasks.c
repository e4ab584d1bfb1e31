/* Owns the routes about tasks: submit, read, and what happened to one. Scope is the engine's to judge: every read of a task's
 * history begins with a ticket for the task itself. */
#include "codec/wire_http.h"
#include "edge/routes.h"

/* ---- One task ---- */

enum status tasks_document(struct request *request, const struct task *task, struct task_document *ret_document,
                           struct fault *fault) {
  struct record_source source;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  status = history_document(request->pool->history, source, task, ret_document);
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log does not hold the task as it was answered");
  return STATUS_OK;
}

enum status tasks_submitted_document(struct request *request, const struct command *command, const struct answer *answer,
                                     struct task_document *ret_document, struct fault *fault) {
  if (!answer->created) return tasks_document(request, &answer->as.task, ret_document, fault);
  submitted_document(command, &answer->as.task, ret_document);
  return STATUS_OK;
}

static void write_task(struct request *request, const struct task_document *document) {
  buffer_append_text(&request->out, "{\"task\":");
  wire_task_write(&request->out, document);
}

enum status tasks_submit_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  command->kind = COMMAND_SUBMIT;
  return wire_submit_read(&job->json, buffer_bytes(&job->body), &job->texts, command, fault);
}

enum status tasks_submit_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct task_document document;
  enum status status = tasks_submitted_document(request, &request->job->ticket.command, answer, &document, fault);
  if (status != STATUS_OK) return status;
  write_task(request, &document);
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
  struct task_document document;
  enum status status = tasks_document(request, &answer->as.task, &document, fault);
  if (status != STATUS_OK) return status;
  write_task(request, &document);
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
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
