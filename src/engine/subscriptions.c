/* Owns the commands about the feed: subscriptions, and what a reader may see of the log. Events themselves are read by the
 * edge, never here. */
#include <string.h>

#include "base/guard.h"
#include "core/apply.h"
#include "engine/internal.h"

static enum status not_found(struct answer *answer, const struct id *id) {
  return refuse(answer, fault_set(&answer->fault, STATUS_NOT_FOUND, NULL,
                                  "there is no subscription %s within reach of this credential", id_text(id).text));
}

static const struct credential *asking(struct engine *engine, const struct principal *who) {
  const struct credential *credential = state_credential(engine->state, &who->credential_id);
  must(credential != NULL); /* the directory holds nothing that the state does not */
  return credential;
}

/* A deleted one, too: a repeat of what was done to it finds its answer. */
static struct subscription *reach(struct engine *engine, const struct principal *who, const struct id *id) {
  struct subscription *subscription = state_subscription(engine->state, id);
  if (subscription == NULL || !id_equal(&subscription->namespace_id, &who->namespace_id)) return NULL;
  return credential_reaches_subscription(asking(engine, who), subscription) ? subscription : NULL;
}

/* The answer is pinned to the operation's own event. END: to be decided. */
static enum status take_up(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  struct event event;
  enum status status = command_receipt(engine, &ticket->command, NULL, &event, &answer->fault);
  if (status != STATUS_OK) return status == STATUS_END ? STATUS_END : refuse(answer, status);
  const struct subscription *present = state_subscription(engine->state, &event.stream);
  must(present != NULL); /* its write carries the receipt */
  answer->as.subscription = subscription_as_written(present, &event);
  answer->deduplicated = true;
  return STATUS_OK;
}

/* What a filter names must be within reach; a task names its queue. */
static enum status check_filter(struct engine *engine, const struct principal *who, struct feed_filter *filter,
                                const char *queue_field, const char *task_field, struct fault *fault) {
  bool queue_given = !id_is_zero(&filter->queue_id);
  uint32_t number;
  if (queue_given && !command_reaches_queue(engine, who, &filter->queue_id))
    return fault_set(fault, STATUS_NOT_FOUND, queue_field, "there is no queue %s within reach of this credential",
                     id_text(&filter->queue_id).text);
  if (id_is_zero(&filter->task_id)) return STATUS_OK;
  enum status status = command_reach_task(engine, who, &filter->task_id, &number, fault);
  if (status == STATUS_NOT_FOUND)
    return fault_set(fault, status, task_field, "there is no task %s within reach of this credential",
                     id_text(&filter->task_id).text);
  if (status != STATUS_OK) return status;
  const struct queue *queue = state_queue_of(engine->state, state_task_at(engine->state, number));
  if (queue_given && !id_equal(&queue->id, &filter->queue_id))
    return fault_set(fault, STATUS_NOT_FOUND, task_field, "the task is in another queue");
  filter->queue_id = queue->id;
  return STATUS_OK;
}

/* ---- writes ---- */

static enum status check_creation(struct engine *engine, struct command *command, struct fault *fault) {
  struct subscription_command *create = &command->as.subscription;
  struct feed_filter filter = {.queue_id = create->queue_id, .task_id = create->task_id};
  enum status status = check_filter(engine, &command->who, &filter, "/queue_id", "/task_id", fault);
  if (status != STATUS_OK) return status;
  create->queue_id = filter.queue_id;
  if (asking(engine, &command->who)->queue_ids != NULL && id_is_zero(&filter.queue_id))
    return fault_set(fault, STATUS_PERMISSION_DENIED, "/queue_id",
                     "this credential reaches some queues alone: a subscription of its must name one of them");
  return STATUS_OK;
}

static enum status check_room(struct engine *engine, const struct command *command, struct fault *fault) {
  const struct id *tenant = &command->who.namespace_id;
  if (state_subscription_name_is_taken(engine->state, tenant, command->as.subscription.name))
    return fault_set(fault, STATUS_STATE_CONFLICT, "/name", "there is a subscription with this name");
  if (state_subscription_count(engine->state, tenant) >= subscriptions_max)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the namespace has %d subscriptions, the most that it may have",
                     subscriptions_max);
  return STATUS_OK;
}

/* What a creation names may be gone since: whoever did it and repeats it gets the first answer all the same. */
static enum status refuse_creation(struct engine *engine, struct ticket *ticket, enum status status) {
  struct answer *answer = &ticket->answer;
  struct event event;
  struct fault none;
  const struct credential *credential = asking(engine, &ticket->command.who);
  if (status != STATUS_NOT_FOUND || command_receipt(engine, &ticket->command, NULL, &event, &none) != STATUS_OK)
    return refuse(answer, status);
  const struct subscription *present = state_subscription(engine->state, &event.stream);
  if (present == NULL || !credential_reaches_subscription(credential, present)) return refuse(answer, status);
  answer->as.subscription = subscription_as_written(present, &event);
  answer->deduplicated = true;
  return STATUS_OK;
}

enum status feed_write_subscription(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  struct command *command = &ticket->command;
  const struct id *id = &command->as.subscription.id;
  const struct subscription *subscription = NULL;
  bool create = command->kind == COMMAND_SUBSCRIPTION_CREATE;
  if (!create && (subscription = reach(engine, &command->who, id)) == NULL) return not_found(answer, id);
  enum status status = create ? check_creation(engine, command, &answer->fault) : STATUS_OK;
  if (status != STATUS_OK) return refuse_creation(engine, ticket, status);
  status = take_up(engine, ticket);
  if (status != STATUS_END) return status;
  if (!create && subscription->deleted) return not_found(answer, id);
  if (create && (status = check_room(engine, command, &answer->fault)) != STATUS_OK) return refuse(answer, status);
  struct decide_env env = engine_env(engine);
  status = decide_subscription(subscription, command, &env, &engine->list, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  engine_append(engine);
  answer->created = true;
  answer->as.subscription = *state_subscription(engine->state, create ? &env.new_id : id);
  return STATUS_OK;
}

/* ---- reads ---- */

enum status feed_get_subscription(struct engine *engine, struct ticket *ticket) {
  const struct id *id = &ticket->command.as.object_id;
  const struct subscription *subscription = reach(engine, &ticket->command.who, id);
  if (subscription == NULL || subscription->deleted) return not_found(&ticket->answer, id);
  ticket->answer.as.subscription = *subscription;
  ticket->answer.log_end = state_last_seq(engine->state);
  return STATUS_OK;
}

static void copy_scope(const struct credential *credential, struct feed_opening *opening) {
  if (credential->queue_ids == NULL) return;
  opening->scope_count = credential->queue_count;
  opening->scope = guard_malloc(sizeof *opening->scope * credential->queue_count);
  memcpy(opening->scope, credential->queue_ids, sizeof *opening->scope * credential->queue_count);
}

static enum status open_subscription(struct engine *engine, struct ticket *ticket, struct feed_opening *opening) {
  const struct open_feed_command *open = &ticket->command.as.open_feed;
  const struct subscription *subscription = reach(engine, &ticket->command.who, &open->subscription_id);
  if (subscription == NULL || subscription->deleted) return not_found(&ticket->answer, &open->subscription_id);
  opening->filter = (struct feed_filter){subscription->types, subscription->queue_id, subscription->task_id};
  if (opening->after < subscription->position) opening->after = subscription->position;
  return STATUS_OK;
}

enum status feed_open(struct engine *engine, struct ticket *ticket) {
  const struct open_feed_command *open = &ticket->command.as.open_feed;
  struct answer *answer = &ticket->answer;
  struct feed_opening opening = {.filter = open->filter, .after = open->after};
  uint64_t end = state_last_seq(engine->state);
  enum status status = STATUS_OK;
  if (open->after > end)
    status = fault_set(&answer->fault, STATUS_INVALID_ARGUMENT, open->after_header ? "Last-Event-ID" : "after",
                       "the log ends at position %llu", (unsigned long long)end);
  if (status != STATUS_OK) return refuse(answer, status);
  if (!id_is_zero(&open->subscription_id)) {
    status = open_subscription(engine, ticket, &opening);
    if (status != STATUS_OK) return status;
  } else {
    status = check_filter(engine, &ticket->command.who, &opening.filter, "queue_id", "task_id", &answer->fault);
    if (status != STATUS_OK) return refuse(answer, status);
  }
  copy_scope(asking(engine, &ticket->command.who), &opening);
  answer->as.feed = opening;
  return STATUS_OK;
}
