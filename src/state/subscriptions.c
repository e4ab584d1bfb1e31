/* Owns the subscriptions: their names, of which a namespace has each but once, how many there are, and what may become of one.
 */
#include <stdlib.h>
#include <xxhash.h>

#include "base/guard.h"
#include "core/apply.h"
#include "core/feed.h"
#include "state/internal.h"

uint64_t subscription_name_hash(const struct id *namespace_id, struct bytes name) {
  uint64_t hash = XXH3_64bits_withSeed(name.data, name.size, id_hash(namespace_id));
  return hash != 0 ? hash : 1;
}

bool subscription_name_is_taken(const struct state *state, uint64_t name_hash) {
  struct index_cursor cursor;
  return index_find(&state->subscription_names, name_hash, &cursor) != 0;
}

struct subscription *state_subscription(const struct state *state, const struct id *id) {
  struct object *object = object_of_kind(state, id, OBJECT_SUBSCRIPTION);
  return object != NULL ? &object->as.subscription : NULL;
}

bool state_subscription_name_is_taken(const struct state *state, const struct id *namespace_id, struct bytes name) {
  return subscription_name_is_taken(state, subscription_name_hash(namespace_id, name));
}

uint32_t state_subscription_count(const struct state *state, const struct id *namespace_id) {
  const struct object *tenant = object_of_kind(state, namespace_id, OBJECT_NAMESPACE);
  return tenant != NULL ? tenant->as.tenant.subscriptions : 0;
}

void state_each_subscription(const struct state *state, void (*visit)(void *context, const struct subscription *subscription),
                             void *context) {
  size_t at = 0;
  uint64_t key, value;
  while (index_each(&state->subscription_names, &at, &key, &value))
    visit(context, &object_at(state, (uint32_t)value)->as.subscription);
}

uint32_t state_subscriptions_live(const struct state *state) { return (uint32_t)state->subscription_names.count; }

bool subscription_place(struct state *state, uint32_t number) {
  const struct subscription *subscription = &object_at(state, number)->as.subscription;
  struct object *tenant = object_of_kind(state, &subscription->namespace_id, OBJECT_NAMESPACE);
  if (tenant == NULL) return false;
  tenant->as.tenant.subscriptions++;
  index_add(&state->subscription_names, subscription->name_hash, number);
  return true;
}

static void leave(struct state *state, uint32_t number) {
  const struct subscription *subscription = &object_at(state, number)->as.subscription;
  struct object *tenant = object_of_kind(state, &subscription->namespace_id, OBJECT_NAMESPACE);
  must(tenant != NULL && tenant->as.tenant.subscriptions > 0);
  tenant->as.tenant.subscriptions--;
  index_remove(&state->subscription_names, subscription->name_hash, number);
}

void subscription_fold(struct state *state, uint32_t number, const struct event *event) {
  struct subscription *subscription = &object_at(state, number)->as.subscription;
  apply_subscription(subscription, event);
  if (event->type == EVENT_subscription_deleted) leave(state, number);
  if (event->type != EVENT_subscription_created) return;
  const struct event_subscription_created *body = &event->body.subscription_created;
  subscription->name_hash = subscription_name_hash(&body->namespace_id, body->name);
  must(subscription_place(state, number));
}

/* ---- judging ---- */

static const char *creation_misfit(const struct state *state, const struct event *event) {
  const struct event_subscription_created *body = &event->body.subscription_created;
  struct feed_types types;
  if (body->name.size == 0) return "the subscription has no name";
  if (subscription_name_is_taken(state, subscription_name_hash(&body->namespace_id, body->name))) return "the name is taken";
  if (state_subscription_count(state, &body->namespace_id) >= subscriptions_max)
    return "the namespace had too many subscriptions";
  if (body->types.size != 0 && !feed_types_parse(body->types, &types)) return "a type is none that the feed shows";
  if (body->position >= event->seq) return "its position has not come";
  if (id_is_zero(&body->queue_id)) return id_is_zero(&body->task_id) ? NULL : "a task without its queue";
  const struct queue *queue = state_queue(state, &body->queue_id);
  return queue != NULL && id_equal(&queue->namespace_id, &body->namespace_id) ? NULL
                                                                              : "its queue does not exist in its namespace";
}

const char *subscription_misfit(const struct state *state, const struct event *event) {
  if (event->type == EVENT_subscription_created) return creation_misfit(state, event);
  const struct subscription *subscription = state_subscription(state, &event->stream);
  must(subscription != NULL);
  if (subscription->deleted) return "the subscription was deleted";
  if (event->type != EVENT_subscription_acked) return NULL;
  uint64_t position = event->body.subscription_acked.position;
  if (position < subscription->position) return "the subscription goes back";
  return position < event->seq ? NULL : "its position has not come";
}

const char *subscription_disorder(const struct state *state) {
  cleanup(guard_free) uint32_t *counts = guard_calloc(state->objects.used + 1U, sizeof *counts);
  uint64_t live = 0;
  for (uint32_t number = 1; number <= state->objects.used; number++) {
    const struct object *object = object_at(state, number);
    if (object->kind != OBJECT_SUBSCRIPTION || object->as.subscription.deleted) continue;
    struct index_cursor cursor;
    if (index_find(&state->subscription_names, object->as.subscription.name_hash, &cursor) != number)
      return "a subscription does not have its name alone";
    counts[object_find(state, &object->as.subscription.namespace_id)]++;
    live++;
  }
  if (live != state->subscription_names.count) return "a name is of no subscription";
  for (uint32_t number = 1; number <= state->objects.used; number++) {
    const struct object *object = object_at(state, number);
    if (object->kind == OBJECT_NAMESPACE && object->as.tenant.subscriptions != counts[number])
      return "a namespace's count is not that of its subscriptions";
    if (object->kind == OBJECT_SUBSCRIPTION && object->as.subscription.position > state->last_seq)
      return "a subscription stands behind the end of the log";
  }
  return NULL;
}
