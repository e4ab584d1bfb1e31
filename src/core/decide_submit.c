/* Owns the acceptance of a submission. */
#include "core/answer.h"
#include "core/decide_parts.h"

static void copy_texts(const struct submit_command *submit, struct event_task_accepted *accepted) {
  accepted->handler = submit->handler;
  accepted->handler_version = submit->handler_version;
  accepted->payload_version = submit->payload_version;
  accepted->payload = submit->payload;
  accepted->business_key = submit->business_key;
  accepted->concurrency_key = submit->concurrency_key;
}

void submitted_document(const struct command *command, const struct task *task, struct task_document *ret_document) {
  const struct submit_command *submit = &command->as.submit;
  *ret_document = (struct task_document){
      .task = *task,
      .accepted = {.namespace_id = command->who.namespace_id,
                   .application_id = command->who.application_id,
                   .queue_id = submit->queue_id},
  };
  copy_texts(submit, &ret_document->accepted);
}

enum status decide_submit(const struct queue *queue, const struct application *application, const struct command *command,
                          const struct decide_env *env, struct event_list *list, struct fault *fault) {
  const struct submit_command *submit = &command->as.submit;
  struct task_times times;
  enum status status =
      check_times(submit->task_timeout_ms, submit->available_at, submit->start_deadline_at, env->now_us, &times, fault);
  if (status == STATUS_OK) status = check_quota(queue, application, fault);
  if (status != STATUS_OK) return status;

  struct act act = act_of_command(command, env, list);
  struct event_task_accepted *accepted = &act_append(&act, EVENT_task_accepted, &env->new_id, 1)->body.task_accepted;
  accepted->namespace_id = queue->namespace_id;
  accepted->application_id = application->id;
  accepted->queue_id = queue->id;
  copy_texts(submit, accepted);
  accepted->priority = submit->priority;
  accepted->available_at = times.available_at;
  accepted->start_deadline_at = times.start_deadline_at;
  accepted->deadline_at = times.deadline_at;
  accepted->recovery_safety = submit->recovery_safety;
  accepted->max_attempts = submit->max_attempts;
  accepted->initial_delay_ms = submit->initial_delay_ms;
  accepted->max_delay_ms = submit->max_delay_ms;
  accepted->attempt_timeout_ms = submit->attempt_timeout_ms;
  return STATUS_OK;
}
