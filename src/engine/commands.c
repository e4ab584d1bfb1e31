/* Owns how a command is taken up: reach, receipt, decision, answer. One function a kind. */
#include "base/guard.h"
#include "engine/internal.h"

enum status(refuse)(struct answer *answer, enum status status) {
  must(status != STATUS_OK && answer->fault.status == status);
  answer->status = status;
  return status;
}

bool command_reaches_queue(struct engine *engine, const struct principal *who, const struct id *queue_id) {
  const struct queue *queue = state_queue(engine->state, queue_id);
  const struct credential *credential = state_credential(engine->state, &who->credential_id);
  return queue != NULL && credential != NULL && id_equal(&queue->namespace_id, &who->namespace_id) &&
         credential_reaches(credential, queue_id);
}

enum status command_reach_task(struct engine *engine, const struct principal *who, const struct id *task_id,
                               uint32_t *ret_number, struct fault *fault) {
  uint32_t number = 0;
  enum status status = state_find(engine->state, task_id, &number);
  if (status == STATUS_UNAVAILABLE) return command_store_fault(fault);
  if (status != STATUS_OK && status != STATUS_END)
    return fault_set(fault, STATUS_INTERNAL, NULL, "the task's row in views/ cannot be read");
  if (status == STATUS_OK &&
      command_reaches_queue(engine, who, &state_queue_of(engine->state, state_task_at(engine->state, number))->id)) {
    *ret_number = number;
    return STATUS_OK;
  }
  return fault_set(fault, STATUS_NOT_FOUND, NULL, "there is no task %s within reach of this credential", id_text(task_id).text);
}

enum status command_store_fault(struct fault *fault) {
  (void)fault_set(fault, STATUS_UNAVAILABLE, NULL,
                  "tasks that have ended cannot be read while views/ is made anew; repeat the request");
  fault->retry_after_ms = 1000;
  return STATUS_UNAVAILABLE;
}

enum status command_receipt(struct engine *engine, const struct command *command, const struct task *task,
                            struct event *ret_event, struct fault *fault) {
  struct event event;
  if (id_is_zero(&command->operation.identity)) return STATUS_END;
  enum status status =
      state_receipt(engine->state, &command->operation.identity, task, engine->history, engine_source(engine), &event);
  if (status == STATUS_END) return status;
  if (status == STATUS_UNAVAILABLE) return command_store_fault(fault);
  if (status != STATUS_OK) return fault_set(fault, STATUS_INTERNAL, NULL, "a receipt could not be read from the log");
  if (!id_equal(&event.common.digest, &command->operation.digest))
    return fault_set(
        fault, STATUS_IDEMPOTENCY_CONFLICT, NULL,
        "this identity was used before with other content; repeat the first request as it was, or use a new identity");
  engine->counters.receipts_hit++;
  *ret_event = event;
  return STATUS_OK;
}

/* The first answer again: the task as it stood when the operation was done. */
static enum status repeat_task(struct engine *engine, const struct event *event, struct answer *answer) {
  enum status status = history_task_at(engine->history, engine_source(engine), event->seq, &answer->as.task, NULL);
  if (status != STATUS_OK)
    return refuse(answer, fault_set(&answer->fault, STATUS_INTERNAL, NULL, "a receipt could not be read from the log"));
  answer->deduplicated = true;
  return STATUS_OK;
}

/* A new task needs room in the log. */
enum status command_room(struct engine *engine, struct fault *fault) {
  if (!engine->disk_full) return STATUS_OK;
  (void)fault_set(fault, STATUS_UNAVAILABLE, NULL,
                  "the disk is full: no new task is taken until there is room; running work goes on");
  fault->retry_after_ms = 1000;
  return STATUS_UNAVAILABLE;
}

enum status command_submit(struct engine *engine, const struct command *command, struct answer *answer) {
  struct event event;
  if (!command_reaches_queue(engine, &command->who, &command->as.submit.queue_id))
    return refuse(
        answer, fault_set(&answer->fault, STATUS_NOT_FOUND, "/queue_id", "there is no queue %s within reach of this credential",
                          id_text(&command->as.submit.queue_id).text));
  enum status status = command_receipt(engine, command, NULL, &event, &answer->fault);
  if (status == STATUS_OK) return repeat_task(engine, &event, answer);
  if (status != STATUS_END) return refuse(answer, status);
  if ((status = command_room(engine, &answer->fault)) != STATUS_OK) return refuse(answer, status);
  const struct application *application = state_application(engine->state, &command->who.application_id);
  if (application == NULL)
    return refuse(answer,
                  fault_set(&answer->fault, STATUS_PERMISSION_DENIED, NULL, "this credential belongs to no application"));
  struct decide_env env = engine_env(engine);
  status = decide_submit(state_queue(engine->state, &command->as.submit.queue_id), application, command, &env, &engine->list,
                         &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  engine_append(engine);
  answer->as.task = *state_task(engine->state, &env.new_id);
  answer->created = true;
  return STATUS_OK;
}

static enum status handle_submit(struct engine *engine, struct ticket *ticket) {
  return command_submit(engine, &ticket->command, &ticket->answer);
}

static enum status handle_get_task(struct engine *engine, struct ticket *ticket) {
  uint32_t number;
  enum status status =
      command_reach_task(engine, &ticket->command.who, &ticket->command.as.task_id, &number, &ticket->answer.fault);
  if (status != STATUS_OK) return refuse(&ticket->answer, status);
  ticket->answer.as.task = *state_task_at(engine->state, number);
  return STATUS_OK;
}

static enum status handle_get_log_state(struct engine *engine, struct ticket *ticket) {
  ticket->answer.as.position = state_last_seq(engine->state);
  return STATUS_OK;
}

typedef enum status handler(struct engine *engine, struct ticket *ticket);

static bool is_write(enum command_kind kind) {
  return kind == COMMAND_START || kind == COMMAND_FINISH || kind == COMMAND_RELEASE ||
         (kind >= COMMAND_CANCEL && kind < COMMAND_LIST_TASKS);
}

static handler *const handlers[COMMAND_KIND_COUNT] = {
    [COMMAND_SUBMIT] = handle_submit,
    [COMMAND_GET_TASK] = handle_get_task,
    [COMMAND_GET_LOG_STATE] = handle_get_log_state,
    [COMMAND_HELLO] = worker_hello,
    [COMMAND_CAPACITY] = worker_set_capacity,
    [COMMAND_DRAIN] = worker_drain,
    [COMMAND_BYE] = worker_bye,
    [COMMAND_START] = attempt_start,
    [COMMAND_RENEW] = attempt_renew,
    [COMMAND_FINISH] = attempt_finish,
    [COMMAND_RELEASE] = attempt_release,
    [COMMAND_CANCEL] = recovery_cancel,
    [COMMAND_REVIEW] = recovery_review,
    [COMMAND_RETRY] = recovery_retry,
    [COMMAND_BATCH] = recovery_batch,
    [COMMAND_NAMESPACE_CREATE] = admin_namespace,
    [COMMAND_APPLICATION_CREATE] = admin_application,
    [COMMAND_APPLICATION_CHANGE] = admin_application,
    [COMMAND_QUEUE_CREATE] = admin_queue,
    [COMMAND_QUEUE_CHANGE] = admin_queue,
    [COMMAND_QUEUE_PAUSE] = admin_queue,
    [COMMAND_QUEUE_RESUME] = admin_queue,
    [COMMAND_CREDENTIAL_CREATE] = admin_credential,
    [COMMAND_CREDENTIAL_ROTATE] = admin_credential,
    [COMMAND_CREDENTIAL_REVOKE] = admin_credential,
    [COMMAND_SCHEDULE_CREATE] = schedule_write,
    [COMMAND_SCHEDULE_CHANGE] = schedule_write,
    [COMMAND_SCHEDULE_PAUSE] = schedule_write,
    [COMMAND_SCHEDULE_RESUME] = schedule_write,
    [COMMAND_SCHEDULE_DELETE] = schedule_write,
    [COMMAND_LIST_TASKS] = admin_list_tasks,
    [COMMAND_LIST_OBJECTS] = admin_list_objects,
    [COMMAND_LIST_AUDIT] = admin_list_audit,
    [COMMAND_GET_QUEUE] = admin_get_queue,
    [COMMAND_GET_APPLICATION] = admin_get_application,
    [COMMAND_GET_CREDENTIAL] = admin_get_credential,
    [COMMAND_GET_SCHEDULE] = schedule_get,
    [COMMAND_PREVIEW_TIMES] = schedule_preview,
    [COMMAND_GET_METRICS] = metrics_get,
    [COMMAND_SUBSCRIPTION_CREATE] = feed_write_subscription,
    [COMMAND_SUBSCRIPTION_ACK] = feed_write_subscription,
    [COMMAND_SUBSCRIPTION_DELETE] = feed_write_subscription,
    [COMMAND_GET_SUBSCRIPTION] = feed_get_subscription,
    [COMMAND_OPEN_FEED] = feed_open,
};

void command_handle(struct engine *engine, struct ticket *ticket) {
  enum command_kind kind = ticket->command.kind;
  must((unsigned)kind < COMMAND_KIND_COUNT && handlers[kind] != NULL);
  ticket->answer = (struct answer){.status = STATUS_OK};
  if (is_write(kind) && !engine_has_room(engine)) {
    struct fault *fault = &ticket->answer.fault;
    (void)refuse(&ticket->answer,
                 fault_set(fault, STATUS_UNAVAILABLE, NULL, "the disk is full; repeat the request with the same identity"));
    fault->retry_after_ms = 1000;
    return;
  }
  (void)handlers[kind](engine, ticket);
}
