/* Owns the judgement whether an event fits what is there. Written apart from deciding, so that a defect there is found here. */
#include "core/apply.h"
#include "state/internal.h"

static bool no(const char **ret_reason, const char *reason) {
  *ret_reason = reason;
  return false;
}

static bool exists(const struct state *state, const struct id *id, enum object_kind kind) {
  return object_of_kind(state, id, kind) != NULL;
}

static bool can_schedule(const struct state *state, const struct event *event, const char **ret_reason) {
  static const struct schedule nothing;
  const struct schedule *schedule = state_schedule(state, &event->stream);
  if (event->type != EVENT_schedule_created)
    return can_apply_schedule(schedule != NULL ? schedule : &nothing, event, ret_reason);
  const struct event_schedule_created *created = &event->body.schedule_created;
  const struct queue *queue = state_queue(state, &created->queue_id);
  const struct application *application = state_application(state, &created->application_id);
  if (object_find(state, &event->stream) != 0 || state_task(state, &event->stream) != NULL)
    return no(ret_reason, "an object with this id exists already");
  if (queue == NULL || !id_equal(&queue->namespace_id, &created->namespace_id))
    return no(ret_reason, "its queue does not exist in its namespace");
  if (application == NULL || !id_equal(&application->namespace_id, &created->namespace_id))
    return no(ret_reason, "its application does not exist in its namespace");
  return can_apply_schedule(&nothing, event, ret_reason);
}

/* The task that the event before this one accepted is the trigger's own. */
static bool can_trigger(const struct state *state, const struct event *event, const char **ret_reason) {
  const struct task *task = state_task(state, &event->body.schedule_triggered.task_id);
  if (task == NULL || task->accepted_seq + 1 != event->seq || state->trigger_pending != object_find(state, &event->stream))
    return no(ret_reason, "its task was not accepted right before it");
  return can_schedule(state, event, ret_reason);
}

/* A task that says that a schedule made it: the trigger must follow in the same commit. */
static bool can_be_scheduled(const struct state *state, const struct event *event, const char **ret_reason) {
  const struct event_task_accepted *accepted = &event->body.task_accepted;
  if (id_is_zero(&accepted->schedule_id)) return true;
  const struct schedule *schedule = state_schedule(state, &accepted->schedule_id);
  if (schedule == NULL || schedule->deleted) return no(ret_reason, "its schedule does not exist");
  if (!id_equal(&schedule->queue_id, &accepted->queue_id) || !id_equal(&schedule->application_id, &accepted->application_id) ||
      !id_equal(&schedule->namespace_id, &accepted->namespace_id))
    return no(ret_reason, "its schedule makes tasks elsewhere");
  if (!id_is_zero(&accepted->retry_of)) return no(ret_reason, "made by a schedule and by hand");
  if (event->last_of_commit) return no(ret_reason, "made by a schedule, but its trigger is not in the commit");
  return true;
}

static bool can_create(const struct state *state, const struct event *event, const char **ret_reason) {
  if (object_find(state, &event->stream) != 0) return no(ret_reason, "an object with this id exists already");
  if (event->type == EVENT_namespace_created) return true;
  const struct id *namespace_id = event->type == EVENT_application_created    ? &event->body.application_created.namespace_id
                                  : event->type == EVENT_credential_created   ? &event->body.credential_created.namespace_id
                                  : event->type == EVENT_subscription_created ? &event->body.subscription_created.namespace_id
                                                                              : &event->body.queue_created.namespace_id;
  bool root = event->type == EVENT_credential_created && id_is_zero(namespace_id);
  if (!root && !exists(state, namespace_id, OBJECT_NAMESPACE)) return no(ret_reason, "its namespace does not exist");
  const char *misfit = event->type == EVENT_subscription_created ? subscription_misfit(state, event) : NULL;
  if (misfit != NULL) return no(ret_reason, misfit);
  if (event->type != EVENT_credential_created) return true;
  const struct event_credential_created *created = &event->body.credential_created;
  if (created->token_hash.size != token_hash_bytes) return no(ret_reason, "the token hash has not 32 bytes");
  if (root) return true;
  const struct application *application = state_application(state, &created->application_id);
  if (application == NULL || !id_equal(&application->namespace_id, namespace_id))
    return no(ret_reason, "its application does not exist in its namespace");
  return true;
}

static bool can_change(const struct state *state, const struct event *event, const char **ret_reason) {
  const struct object *object = object_of_kind(state, &event->stream, event_object_kind(event->type));
  if (object == NULL) return no(ret_reason, "the object that it changes does not exist");
  uint64_t revision = object->kind == OBJECT_APPLICATION    ? object->as.application.revision
                      : object->kind == OBJECT_CREDENTIAL   ? object->as.credential.revision
                      : object->kind == OBJECT_SUBSCRIPTION ? object->as.subscription.revision
                                                            : object->as.queue.revision;
  if (event->common.revision != revision + 1) return no(ret_reason, "the revision does not rise by one");
  if (event->type == EVENT_credential_rotated && event->body.credential_rotated.token_hash.size != token_hash_bytes)
    return no(ret_reason, "the token hash has not 32 bytes");
  if (object->kind == OBJECT_CREDENTIAL && object->as.credential.revoked)
    return no(ret_reason, "the credential was revoked for ever");
  const char *misfit = object->kind == OBJECT_SUBSCRIPTION ? subscription_misfit(state, event) : NULL;
  return misfit == NULL || no(ret_reason, misfit);
}

static bool can_accept(const struct state *state, const struct event *event, const struct footing *footing,
                       const char **ret_reason) {
  const struct event_task_accepted *accepted = &event->body.task_accepted;
  const struct queue *queue = state_queue(state, &accepted->queue_id);
  const struct application *application = state_application(state, &accepted->application_id);
  if (footing->number != 0 || object_find(state, &event->stream) != 0)
    return no(ret_reason, "an object with this id exists already");
  if (queue == NULL || !id_equal(&queue->namespace_id, &accepted->namespace_id))
    return no(ret_reason, "its queue does not exist in its namespace");
  if (application == NULL || !id_equal(&application->namespace_id, &accepted->namespace_id))
    return no(ret_reason, "its application does not exist in its namespace");
  uint64_t unfinished =
      queue->counts[TASK_WAITING] + queue->counts[TASK_LEASED] + queue->counts[TASK_RUNNING] + queue->counts[TASK_NEEDS_REVIEW];
  if (!can_be_scheduled(state, event, ret_reason)) return false;
  if (queue->max_unfinished != 0 && unfinished >= queue->max_unfinished) return no(ret_reason, "the queue was full");
  if (application->max_unfinished != 0 && application->unfinished >= application->max_unfinished)
    return no(ret_reason, "the application was full");
  static const struct task nothing;
  static const struct attempt no_attempt;
  return can_apply_task(&nothing, &no_attempt, event, ret_reason);
}

static bool can_lease(const struct state *state, const struct task *task, const char **ret_reason) {
  const struct queue *queue = state_queue_of(state, task);
  const struct task_node *node = (const struct task_node *)task;
  uint64_t running = queue->counts[TASK_LEASED] + queue->counts[TASK_RUNNING];
  if (queue->max_running != 0 && running >= queue->max_running) return no(ret_reason, "the queue ran as many as it may");
  if (node->key != 0 && key_at(state, node->key)->held >= queue->key_concurrency)
    return no(ret_reason, "the concurrency key was held");
  return true;
}

/* Of an object that is no task; a task's is judged with the task. */
static bool can_audit(const struct event *event, const char **ret_reason) {
  const struct event_audit_recorded *record = &event->body.audit_recorded;
  if (!id_equal(&record->target_id, &event->stream)) return no(ret_reason, "the audit record's target is another object");
  if (record->action.size == 0) return no(ret_reason, "the audit record has no action");
  if (audit_id_seq(&record->audit_id) != event->seq) return no(ret_reason, "audit_id does not name its event");
  return true;
}

/* The newest event of the stream. */
static uint64_t footing_last(const struct state *state, const struct footing *footing) {
  if (footing->number == 0) return 0;
  return footing->is_task ? node_at(state, footing->number)->task.last_seq : object_at(state, footing->number)->last_seq;
}

uint64_t state_stream_last(const struct state *state, const struct event *event) {
  struct footing footing = footing_find(state, event);
  return footing_last(state, &footing);
}

/* It moves on, and never past what is there. */
static bool can_retain(const struct state *state, const struct event *event, const char **ret_reason) {
  uint64_t through = event->body.retention_advanced.through_seq;
  if (through <= state->retained_seq) return no(ret_reason, "retention does not move on");
  if (through >= event->seq) return no(ret_reason, "retention moves past its own event");
  return true;
}

bool state_can_apply(const struct state *state, const struct event *event, const char **ret_reason) {
  struct footing footing = footing_find(state, event);
  return footing_fits(state, event, &footing, ret_reason);
}

bool footing_fits(const struct state *state, const struct event *event, const struct footing *footing,
                  const char **ret_reason) {
  if (event->seq != state->last_seq + 1) return no(ret_reason, "the sequence number does not follow");
  if (event->time_us < state->last_time_us) return no(ret_reason, "the time goes back");
  if (event->prev != footing_last(state, footing)) return no(ret_reason, "prev is not the stream's newest event");
  if (state->trigger_pending != 0 && event->type != EVENT_schedule_triggered)
    return no(ret_reason, "the trigger of the task that a schedule made must follow it");
  switch (event->type) {
    case EVENT_node_started:
    case EVENT_node_stopped:
      return true;
    case EVENT_schedule_created:
    case EVENT_schedule_changed:
    case EVENT_schedule_paused:
    case EVENT_schedule_resumed:
    case EVENT_schedule_deleted:
    case EVENT_schedule_skipped:
      return can_schedule(state, event, ret_reason);
    case EVENT_schedule_triggered:
      return can_trigger(state, event, ret_reason);
    case EVENT_retention_advanced:
      return can_retain(state, event, ret_reason);
    case EVENT_namespace_created:
    case EVENT_application_created:
    case EVENT_credential_created:
    case EVENT_queue_created:
    case EVENT_subscription_created:
      return can_create(state, event, ret_reason);
    case EVENT_application_changed:
    case EVENT_credential_rotated:
    case EVENT_credential_revoked:
    case EVENT_queue_changed:
    case EVENT_queue_paused:
    case EVENT_queue_resumed:
    case EVENT_subscription_acked:
    case EVENT_subscription_deleted:
      return can_change(state, event, ret_reason);
    case EVENT_task_accepted:
      return can_accept(state, event, footing, ret_reason);
    default:
      break;
  }
  if (!footing->is_task) return can_audit(event, ret_reason);
  if (footing->number == 0) return no(ret_reason, "the task does not exist");
  const struct task *task = state_task_at(state, footing->number);
  if (event->type == EVENT_task_leased && !can_lease(state, task, ret_reason)) return false;
  return can_apply_task(task, state_attempt_at(state, footing->number), event, ret_reason);
}
