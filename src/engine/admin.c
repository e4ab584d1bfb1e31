/* Owns administration: namespaces, applications, queues, credentials; and the lists and reads of them. */
#include "base/guard.h"
#include "core/apply.h"
#include "engine/internal.h"

static enum status unreadable(struct answer *answer) {
  return refuse(answer, fault_set(&answer->fault, STATUS_INTERNAL, NULL, "an object could not be read from the log"));
}

static enum status not_found(struct answer *answer, const char *what, const struct id *id) {
  return refuse(answer, fault_set(&answer->fault, STATUS_NOT_FOUND, NULL, "there is no %s %s within reach of this credential",
                                  what, id_text(id).text));
}

/* ---- looking up within the namespace ---- */

static struct queue *reach_queue(struct engine *engine, const struct principal *who, const struct id *id) {
  return command_reaches_queue(engine, who, id) ? state_queue(engine->state, id) : NULL;
}

static struct application *reach_application(struct engine *engine, const struct principal *who, const struct id *id) {
  struct application *application = state_application(engine->state, id);
  return application != NULL && id_equal(&application->namespace_id, &who->namespace_id) ? application : NULL;
}

static struct credential *reach_credential(struct engine *engine, const struct principal *who, const struct id *id) {
  struct credential *credential = state_credential(engine->state, id);
  return credential != NULL && id_equal(&credential->namespace_id, &who->namespace_id) ? credential : NULL;
}

/* The name as configured now: a span of the log. */
static enum status read_name(struct engine *engine, uint64_t config_seq, struct bytes *ret_name) {
  struct event event;
  enum status status = history_event(engine->history, engine_source(engine), config_seq, &event);
  if (status != STATUS_OK) return status;
  switch (event.type) {
    case EVENT_queue_created:
      *ret_name = event.body.queue_created.name;
      break;
    case EVENT_queue_changed:
      *ret_name = event.body.queue_changed.name;
      break;
    case EVENT_application_created:
      *ret_name = event.body.application_created.name;
      break;
    case EVENT_application_changed:
      *ret_name = event.body.application_changed.name;
      break;
    default:
      return STATUS_CORRUPT;
  }
  buffer_reset(&engine->scratch); /* the span may lie in the commit that is being made, which moves */
  buffer_append_bytes(&engine->scratch, *ret_name);
  must(!engine->scratch.failed);
  *ret_name = buffer_bytes(&engine->scratch);
  return STATUS_OK;
}

static struct credential without_scope(const struct credential *credential) {
  struct credential copy = *credential;
  copy.queue_ids = NULL; /* the container's */
  return copy;
}

/* Answers to writes hold what was configured, nothing live. */
static struct queue configured_queue(const struct queue *queue) {
  struct queue copy = *queue;
  for (unsigned i = 0; i < TASK_ENUM_END; i++) copy.counts[i] = 0;
  copy.rate_at = 0;
  return copy;
}

static struct application configured_application(const struct application *application) {
  struct application copy = *application;
  copy.unfinished = 0;
  return copy;
}

/* ---- repeats ---- */

static struct application repeat_application(struct engine *engine, const struct event *write) {
  const struct application *present = state_application(engine->state, &write->stream);
  must(present != NULL); /* it was written */
  return application_as_written(present, write);
}

static struct credential repeat_credential(struct engine *engine, const struct event *write) {
  const struct credential *present = state_credential(engine->state, &write->stream);
  must(present != NULL);
  return credential_as_written(present, write);
}

static enum status repeat_namespace(struct engine *engine, uint64_t seq, struct namespace_made *made) {
  struct record_source source = engine_source(engine);
  struct event namespace, application, credential;
  enum status status = history_event(engine->history, source, seq, &namespace);
  /* each event of the operation is followed by its audit record */
  if (status == STATUS_OK) status = history_event(engine->history, source, seq + 2, &application);
  if (status == STATUS_OK) status = history_event(engine->history, source, seq + 4, &credential);
  if (status != STATUS_OK) return status;
  if (application.type != EVENT_application_created || credential.type != EVENT_credential_created) return STATUS_CORRUPT;
  *made = (struct namespace_made){.id = namespace.stream,
                                  .created_seq = seq,
                                  .application = repeat_application(engine, &application),
                                  .credential = repeat_credential(engine, &credential)};
  return STATUS_OK;
}

static enum status repeat(struct engine *engine, struct ticket *ticket, const struct event *event) {
  struct answer *answer = &ticket->answer;
  enum status status = STATUS_OK;
  switch (event->type) {
    case EVENT_namespace_created:
      status = repeat_namespace(engine, event->seq, &answer->as.namespace_made);
      break;
    case EVENT_application_created:
    case EVENT_application_changed:
      answer->as.application = repeat_application(engine, event);
      break;
    case EVENT_credential_created:
    case EVENT_credential_rotated:
    case EVENT_credential_revoked:
      answer->as.credential = repeat_credential(engine, event);
      break;
    default:
      status = history_queue_at(engine->history, engine_source(engine), event->seq, &answer->as.queue);
      break;
  }
  if (status != STATUS_OK) return unreadable(answer);
  answer->deduplicated = true;
  return STATUS_OK;
}

/* END: to be decided. */
static enum status take_up(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  struct event event;
  enum status status = command_receipt(engine, &ticket->command, NULL, &event, &answer->fault);
  if (status == STATUS_OK) return repeat(engine, ticket, &event);
  return status == STATUS_END ? STATUS_END : refuse(answer, status);
}

/* ---- writes ---- */

enum status admin_namespace(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  struct namespace_command *create = &ticket->command.as.namespace_;
  enum status status = take_up(engine, ticket);
  if (status != STATUS_END) return status;
  struct decide_env env = engine_env(engine);
  create->application_id = id_source_next(&engine->ids, engine->now_us);
  create->credential_id = id_source_next(&engine->ids, engine->now_us);
  status = decide_namespace_create(&ticket->command, &env, &engine->list, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  engine_append(engine);
  answer->created = true;
  answer->as.namespace_made = (struct namespace_made){
      .id = env.new_id,
      .created_seq = env.next_seq,
      .application = configured_application(state_application(engine->state, &create->application_id)),
      .credential = without_scope(state_credential(engine->state, &create->credential_id)),
  };
  return STATUS_OK;
}

enum status admin_application(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  const struct application_command *command = &ticket->command.as.application;
  const struct application *application = NULL;
  struct bytes name = {NULL, 0};
  bool change = ticket->command.kind == COMMAND_APPLICATION_CHANGE;
  if (change && (application = reach_application(engine, &ticket->command.who, &command->id)) == NULL)
    return not_found(answer, "application", &command->id);
  enum status status = take_up(engine, ticket);
  if (status != STATUS_END) return status;
  if (change && read_name(engine, application->config_seq, &name) != STATUS_OK) return unreadable(answer);
  struct decide_env env = engine_env(engine);
  status = decide_application(application, name, &ticket->command, &env, &engine->list, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  engine_append(engine);
  answer->created = true;
  answer->as.application = configured_application(state_application(engine->state, change ? &command->id : &env.new_id));
  return STATUS_OK;
}

enum status admin_queue(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  const struct queue_command *command = &ticket->command.as.queue;
  const struct queue *queue = NULL;
  struct bytes name = {NULL, 0};
  bool create = ticket->command.kind == COMMAND_QUEUE_CREATE;
  if (!create && (queue = reach_queue(engine, &ticket->command.who, &command->id)) == NULL)
    return not_found(answer, "queue", &command->id);
  enum status status = take_up(engine, ticket);
  if (status != STATUS_END) return status;
  if (!create && read_name(engine, queue->config_seq, &name) != STATUS_OK) return unreadable(answer);
  struct decide_env env = engine_env(engine);
  status = decide_queue(queue, name, &ticket->command, &env, &engine->list, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  engine_append(engine);
  answer->created = true;
  answer->as.queue = configured_queue(state_queue(engine->state, create ? &env.new_id : &command->id));
  return STATUS_OK;
}

static const struct credential *asking(struct engine *engine, const struct principal *who) {
  const struct credential *credential = state_credential(engine->state, &who->credential_id);
  must(credential != NULL); /* the directory holds nothing that the state does not */
  return credential;
}

static enum status wider_than_own(struct fault *fault) {
  return fault_set(fault, STATUS_PERMISSION_DENIED, "/queue_ids",
                   "this credential reaches some queues alone and gives out no token that reaches others");
}

/* A new credential's application and queues must be of the namespace, and within the scope of who makes it. */
static enum status check_new_credential(struct engine *engine, const struct command *command, struct fault *fault) {
  const struct credential_command *create = &command->as.credential;
  if (reach_application(engine, &command->who, &create->application_id) == NULL)
    return fault_set(fault, STATUS_NOT_FOUND, "/application_id", "there is no application %s within reach of this credential",
                     id_text(&create->application_id).text);
  if (create->queue_ids.size == 0 && asking(engine, &command->who)->queue_ids != NULL) return wider_than_own(fault);
  for (size_t at = 0; at < create->queue_ids.size; at += id_bytes) {
    struct id id;
    for (unsigned i = 0; i < id_bytes; i++) id.bytes[i] = create->queue_ids.data[at + i];
    if (reach_queue(engine, &command->who, &id) == NULL)
      return fault_set(fault, STATUS_NOT_FOUND, "/queue_ids", "there is no queue %s within reach of this credential",
                       id_text(&id).text);
  }
  return STATUS_OK;
}

/* A rotation hands out a token: for nothing that who asks could not have made. */
static enum status check_rotation(struct engine *engine, const struct principal *who, const struct credential *credential,
                                  struct fault *fault) {
  const struct credential *own = asking(engine, who);
  must(credential != NULL);
  if (own->queue_ids == NULL) return STATUS_OK;
  if (credential->queue_ids == NULL) return wider_than_own(fault);
  for (uint32_t i = 0; i < credential->queue_count; i++)
    if (!credential_reaches(own, &credential->queue_ids[i])) return wider_than_own(fault);
  return STATUS_OK;
}

static enum status check_credential(struct engine *engine, const struct command *command, const struct credential *credential,
                                    struct fault *fault) {
  if (command->kind == COMMAND_CREDENTIAL_CREATE) return check_new_credential(engine, command, fault);
  if (command->kind == COMMAND_CREDENTIAL_ROTATE) return check_rotation(engine, &command->who, credential, fault);
  return STATUS_OK;
}

enum status admin_credential(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  const struct credential_command *command = &ticket->command.as.credential;
  const struct credential *credential = NULL;
  bool create = ticket->command.kind == COMMAND_CREDENTIAL_CREATE;
  if (!create && (credential = reach_credential(engine, &ticket->command.who, &command->id)) == NULL)
    return not_found(answer, "credential", &command->id);
  enum status status = take_up(engine, ticket);
  if (status != STATUS_END) return status;
  status = check_credential(engine, &ticket->command, credential, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  struct decide_env env = engine_env(engine);
  status = decide_credential(credential, &ticket->command, &env, &engine->list, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  engine_append(engine);
  answer->created = true;
  answer->as.credential = without_scope(state_credential(engine->state, create ? &env.new_id : &command->id));
  return STATUS_OK;
}

/* ---- reads ---- */

enum status admin_get_queue(struct engine *engine, struct ticket *ticket) {
  const struct queue *queue = reach_queue(engine, &ticket->command.who, &ticket->command.as.object_id);
  if (queue == NULL) return not_found(&ticket->answer, "queue", &ticket->command.as.object_id);
  ticket->answer.as.queue = *queue;
  ticket->answer.oldest_waiting_at = state_oldest_waiting(engine->state, &queue->id);
  return STATUS_OK;
}

enum status admin_get_application(struct engine *engine, struct ticket *ticket) {
  const struct application *application = reach_application(engine, &ticket->command.who, &ticket->command.as.object_id);
  if (application == NULL) return not_found(&ticket->answer, "application", &ticket->command.as.object_id);
  ticket->answer.as.application = *application;
  return STATUS_OK;
}

enum status admin_get_credential(struct engine *engine, struct ticket *ticket) {
  const struct credential *credential = reach_credential(engine, &ticket->command.who, &ticket->command.as.object_id);
  if (credential == NULL) return not_found(&ticket->answer, "credential", &ticket->command.as.object_id);
  ticket->answer.as.credential = without_scope(credential);
  return STATUS_OK;
}

enum status admin_list_tasks(struct engine *engine, struct ticket *ticket) {
  const struct principal *who = &ticket->command.who;
  enum status status = state_list_tasks(engine->state, &who->namespace_id, asking(engine, who), &ticket->command.as.list_tasks,
                                        engine->history, engine_source(engine), &ticket->answer.as.list, &ticket->answer.fault);
  return status == STATUS_OK ? STATUS_OK : refuse(&ticket->answer, status);
}

static void add_oldest_waiting(struct engine *engine, struct answer_list *list) {
  list->oldest_waiting_at = guard_calloc(list->count + 1, sizeof *list->oldest_waiting_at);
  for (uint32_t i = 0; i < list->count; i++)
    list->oldest_waiting_at[i] = state_oldest_waiting(engine->state, &list->of.queues[i].id);
}

enum status admin_list_objects(struct engine *engine, struct ticket *ticket) {
  const struct principal *who = &ticket->command.who;
  const struct list_objects_command *command = &ticket->command.as.list_objects;
  struct answer_list *list = &ticket->answer.as.list;
  enum status status =
      state_list_objects(engine->state, &who->namespace_id, asking(engine, who), command, list, &ticket->answer.fault);
  if (status != STATUS_OK) return refuse(&ticket->answer, status);
  if (command->list == LIST_QUEUES) add_oldest_waiting(engine, list);
  return STATUS_OK;
}

enum status admin_list_audit(struct engine *engine, struct ticket *ticket) {
  if (state_list_audit(engine->state, &ticket->command.who.namespace_id, &ticket->command.as.list_audit, engine->history,
                       engine_source(engine), &ticket->answer.as.list) != STATUS_OK)
    return unreadable(&ticket->answer);
  return STATUS_OK;
}
