/* Owns what readers do to their subscriptions: making, moving forward, deleting. */
#include <inttypes.h>

#include "core/decide_parts.h"
#include "core/feed.h"

static enum status start_position(const struct subscription_command *create, const struct decide_env *env,
                                  uint64_t *ret_position, struct fault *fault) {
  uint64_t end = env->next_seq - 1;
  if (create->from == FEED_FROM_POSITION && create->position > end)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/from", "the log ends at position %" PRIu64, end);
  *ret_position = create->from == FEED_FROM_POSITION ? create->position : create->from == FEED_FROM_LATEST ? end : 0;
  return STATUS_OK;
}

static enum status create_subscription(const struct command *command, const struct decide_env *env, struct event_list *list,
                                       struct fault *fault) {
  const struct subscription_command *create = &command->as.subscription;
  char names[feed_types_text_bytes];
  uint64_t position = 0;
  enum status status = start_position(create, env, &position, fault);
  if (status != STATUS_OK) return status;
  struct act act = act_of_command(command, env, list);
  struct event_subscription_created *body =
      &act_append(&act, EVENT_subscription_created, &env->new_id, 1)->body.subscription_created;
  body->namespace_id = command->who.namespace_id;
  body->name = create->name;
  if (feed_types_format(&create->types, names) != 0) body->types = event_list_text(list, "%s", names);
  body->queue_id = create->queue_id;
  body->task_id = create->task_id;
  body->position = position;
  act_audit_object(&act, command, &env->new_id, 1, &command->who.namespace_id, (struct bytes){NULL, 0});
  return STATUS_OK;
}

/* Also where nothing moves: the operation's identity is on record then, so that its key cannot be used for another. */
static enum status ack_subscription(const struct subscription *subscription, const struct command *command,
                                    const struct decide_env *env, struct event_list *list, struct fault *fault) {
  uint64_t asked = command->as.subscription.position, end = env->next_seq - 1;
  if (asked > end) return fault_set(fault, STATUS_INVALID_ARGUMENT, "/position", "the log ends at position %" PRIu64, end);
  struct act act = act_of_command(command, env, list);
  struct event *event = act_append(&act, EVENT_subscription_acked, &subscription->id, subscription->revision + 1);
  event->body.subscription_acked.position = asked > subscription->position ? asked : subscription->position;
  return STATUS_OK;
}

enum status decide_subscription(const struct subscription *subscription, const struct command *command,
                                const struct decide_env *env, struct event_list *list, struct fault *fault) {
  if (command->kind == COMMAND_SUBSCRIPTION_CREATE) return create_subscription(command, env, list, fault);
  if (command->kind == COMMAND_SUBSCRIPTION_ACK) return ack_subscription(subscription, command, env, list, fault);
  struct act act = act_of_command(command, env, list);
  uint64_t revision = subscription->revision + 1;
  (void)act_append(&act, EVENT_subscription_deleted, &subscription->id, revision);
  act_audit_object(&act, command, &subscription->id, revision, &subscription->namespace_id, (struct bytes){NULL, 0});
  return STATUS_OK;
}
