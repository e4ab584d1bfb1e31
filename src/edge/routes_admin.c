/* Owns the routes by which a namespace is run: namespaces, queues, applications, credentials. Their lists are in routes_list.c.
 * A token is made here, shown once, and kept nowhere: the command has its hash alone. */
#include "codec/wire_admin.h"
#include "codec/wire_http.h"
#include "edge/routes.h"

enum status object_texts_read(struct request *request, uint64_t config_seq, struct object_texts *ret_texts,
                              struct fault *fault) {
  struct record_source source;
  struct event event;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  status = history_event(request->pool->history, source, config_seq, &event);
  if (status == STATUS_OK && object_texts_of(&event, ret_texts)) return STATUS_OK;
  return fault_set(fault, STATUS_CORRUPT, NULL, "the log does not hold an object's configuration");
}

/* A write's token is shown when the write was done now, never on a repeat. */
static struct bytes token_to_show(const struct request *request, const struct answer *answer) {
  bool show = answer->created && request->job->token[0] != '\0';
  return show ? bytes_text(request->job->token) : (struct bytes){NULL, 0};
}

/* ---- Namespaces ---- */

enum status namespaces_create_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  enum status status = wire_namespace_create_read(&job->json, buffer_bytes(&job->body), command, fault);
  if (status == STATUS_OK) command->as.namespace_.token_hash = job_token(job);
  return status;
}

enum status namespaces_create_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  const struct namespace_made *made = &answer->as.namespace_made;
  struct object_texts names[3];
  const uint64_t seqs[3] = {made->created_seq, made->application.config_seq, made->credential.config_seq};
  struct buffer *out = &request->out;
  for (unsigned i = 0; i < 3; i++) {
    enum status status = object_texts_read(request, seqs[i], &names[i], fault);
    if (status != STATUS_OK) return status;
  }
  buffer_append_text(out, "{\"namespace\":");
  wire_namespace_write(out, &made->id, &names[0]);
  buffer_append_text(out, ",\"application\":");
  wire_application_write(out, &made->application, &names[1], false);
  buffer_append_text(out, ",\"credential\":");
  wire_credential_write(out, &made->credential, &names[2]);
  wire_text_member(out, "token", token_to_show(request, answer));
  buffer_append_char(out, '}');
  return STATUS_OK;
}

/* ---- Queues ---- */

enum status queues_create_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_queue_create_read(&job->json, buffer_bytes(&job->body), command, fault);
}

enum status queues_change_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_queue_change_read(&job->json, buffer_bytes(&job->body), &request->ids[0], command, fault);
}

static enum status begin_pause(struct request *request, enum command_kind kind, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_queue_pause_read(&job->json, buffer_bytes(&job->body), &request->ids[0], kind, command, fault);
}

enum status queues_pause_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_pause(request, COMMAND_QUEUE_PAUSE, command, fault);
}

enum status queues_resume_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_pause(request, COMMAND_QUEUE_RESUME, command, fault);
}

enum status queues_get_begin(struct request *request, struct command *command, struct fault *fault) {
  (void)fault;
  command->kind = COMMAND_GET_QUEUE;
  command->as.object_id = request->ids[0];
  return STATUS_OK;
}

static enum status finish_queue(struct request *request, const struct answer *answer, bool live, struct fault *fault) {
  struct object_texts texts;
  enum status status = object_texts_read(request, answer->as.queue.config_seq, &texts, fault);
  if (status != STATUS_OK) return status;
  buffer_append_text(&request->out, "{\"queue\":");
  wire_queue_write(&request->out, &answer->as.queue, &texts, live, answer->oldest_waiting_at);
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}

enum status queues_write_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_queue(request, answer, false, fault);
}

enum status queues_get_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_queue(request, answer, true, fault);
}

/* ---- Applications ---- */

enum status applications_create_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_application_create_read(&job->json, buffer_bytes(&job->body), command, fault);
}

enum status applications_change_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_application_change_read(&job->json, buffer_bytes(&job->body), &request->ids[0], command, fault);
}

enum status applications_get_begin(struct request *request, struct command *command, struct fault *fault) {
  (void)fault;
  command->kind = COMMAND_GET_APPLICATION;
  command->as.object_id = request->ids[0];
  return STATUS_OK;
}

static enum status finish_application(struct request *request, const struct answer *answer, bool live, struct fault *fault) {
  struct object_texts texts;
  enum status status = object_texts_read(request, answer->as.application.config_seq, &texts, fault);
  if (status != STATUS_OK) return status;
  buffer_append_text(&request->out, "{\"application\":");
  wire_application_write(&request->out, &answer->as.application, &texts, live);
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}

enum status applications_write_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_application(request, answer, false, fault);
}

enum status applications_get_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish_application(request, answer, true, fault);
}

/* ---- Credentials ---- */

enum status credentials_create_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  enum status status = wire_credential_create_read(&job->json, buffer_bytes(&job->body), &job->texts, command, fault);
  if (status == STATUS_OK) command->as.credential.token_hash = job_token(job);
  return status;
}

enum status credentials_rotate_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  enum status status = wire_credential_end_read(&job->json, buffer_bytes(&job->body), &request->ids[0],
                                                COMMAND_CREDENTIAL_ROTATE, command, fault);
  if (status == STATUS_OK) command->as.credential.token_hash = job_token(job);
  return status;
}

enum status credentials_revoke_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_credential_end_read(&job->json, buffer_bytes(&job->body), &request->ids[0], COMMAND_CREDENTIAL_REVOKE, command,
                                  fault);
}

enum status credentials_get_begin(struct request *request, struct command *command, struct fault *fault) {
  (void)fault;
  command->kind = COMMAND_GET_CREDENTIAL;
  command->as.object_id = request->ids[0];
  return STATUS_OK;
}

enum status credentials_write_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct object_texts texts;
  enum status status = object_texts_read(request, answer->as.credential.config_seq, &texts, fault);
  if (status != STATUS_OK) return status;
  wire_credential_answer_write(&request->out, &answer->as.credential, &texts, token_to_show(request, answer));
  return STATUS_OK;
}

enum status credentials_get_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct object_texts texts;
  enum status status = object_texts_read(request, answer->as.credential.config_seq, &texts, fault);
  if (status != STATUS_OK) return status;
  buffer_append_text(&request->out, "{\"credential\":");
  wire_credential_write(&request->out, &answer->as.credential, &texts);
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}
