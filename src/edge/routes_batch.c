/* Owns the batch of submissions: one body, one commit, an answer for each item in its place. */
#include "codec/wire_http.h"
#include "codec/wire_list.h"
#include "edge/routes.h"

enum status tasks_batch_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  const struct secret *secret = journal_secret(request->pool->edge->journal);
  struct batch_command *batch = &command->as.batch;
  enum status status = wire_batch_read(&job->json, buffer_bytes(&job->body), secret, &request->who, &job->texts, &job->items,
                                       &batch->count, fault);
  if (status != STATUS_OK) return status;
  command->kind = COMMAND_BATCH;
  batch->items = job->items;
  return STATUS_OK;
}

static enum status write_item(struct request *request, struct batch_item *item, struct fault *fault) {
  struct task_document document;
  struct answer *answer = &item->answer;
  if (answer->status != STATUS_OK) {
    answer->fault.status = answer->status;
    request_publish_fault(request, &answer->fault);
    answer->status = answer->fault.status;
    wire_batch_item_write(&request->out, answer, NULL);
    return STATUS_OK;
  }
  enum status status = tasks_submitted_document(request, &item->command, answer, &document, fault);
  if (status == STATUS_OK) wire_batch_item_write(&request->out, answer, &document);
  return status;
}

enum status tasks_batch_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  const struct batch_command *batch = &request->job->ticket.command.as.batch;
  (void)answer;
  (void)buffer_reserve(&request->out, request->job->body.size + batch->count * (size_t)batch_answer_item_bytes);
  buffer_append_text(&request->out, "{\"items\":[");
  for (uint32_t i = 0; i < batch->count; i++) {
    if (i > 0) buffer_append_char(&request->out, ',');
    enum status status = write_item(request, &batch->items[i], fault);
    if (status != STATUS_OK) return status;
  }
  buffer_append_text(&request->out, "]}");
  return STATUS_OK;
}
