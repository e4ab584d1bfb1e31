/* Subscriptions in the fold: what their events may say, names that are taken and free again, counts and their limit. */
#include <stdio.h>

#include "core/feed.h"
#include "state/fold_fixture.h"

static struct event creation(struct world *world, unsigned number, const char *name) {
  struct event event = made(world, EVENT_subscription_created, id_of(SUBSCRIPTION, number), 1);
  event.body.subscription_created.namespace_id = id_of(NAMESPACE, 1);
  event.body.subscription_created.name = bytes_text(name);
  return event;
}

static struct event ack(struct world *world, unsigned number, uint64_t revision, uint64_t position) {
  struct event event = made(world, EVENT_subscription_acked, id_of(SUBSCRIPTION, number), revision);
  event.body.subscription_acked.position = position;
  return event;
}

static void refused(struct world *world, struct event event, const char *says) {
  const char *reason = "";
  event.seq = world->last_seq + 1;
  event.time_us = world->now_us;
  event.prev = state_stream_last(world->state, &event);
  if (state_can_apply(world->state, &event, &reason)) fail_msg("taken: %s", says);
  assert_string_equal(reason, says);
}

static void a_creation_must_fit(void **context) {
  struct world *world = *context;
  struct event event = creation(world, 2, "");
  refused(world, event, "the subscription has no name");
  refused(world, creation(world, 2, "s"), "the name is taken");
  refused(world, creation(world, 1, "other"), "an object with this id exists already");
  event = creation(world, 2, "t");
  event.body.subscription_created.namespace_id = id_of(NAMESPACE, 2);
  refused(world, event, "its namespace does not exist");
  static const char *const types[] = {"task.nothing", "credential.created", "task.failed,task.failed", ",",
                                      "task.failed,", "TASK.FAILED"};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    event = creation(world, 2, "t");
    event.body.subscription_created.types = bytes_text(types[i]);
    refused(world, event, "a type is none that the feed shows");
  }
  event = creation(world, 2, "t");
  event.body.subscription_created.position = world->last_seq + 1;
  refused(world, event, "its position has not come");
  event = creation(world, 2, "t");
  event.body.subscription_created.queue_id = id_of(QUEUE, 9);
  refused(world, event, "its queue does not exist in its namespace");
  event = creation(world, 2, "t");
  event.body.subscription_created.task_id = id_of(TASK, 9);
  refused(world, event, "a task without its queue");
}

static void it_goes_forward_only(void **context) {
  struct world *world = *context;
  struct id id = id_of(SUBSCRIPTION, 1);
  struct event event = ack(world, 1, 2, 5);
  append(world, &event);
  assert_int_equal(state_subscription(world->state, &id)->position, 5);
  refused(world, ack(world, 1, 3, 4), "the subscription goes back");
  refused(world, ack(world, 1, 2, 6), "the revision does not rise by one");
  refused(world, ack(world, 1, 3, world->last_seq + 1), "its position has not come");
  event = ack(world, 1, 3, 5);
  append(world, &event);
  event = ack(world, 1, 4, world->last_seq);
  append(world, &event);
  assert_int_equal(state_subscription(world->state, &id)->position, world->last_seq - 1);
}

static void a_deleted_one_is_over_and_its_name_free(void **context) {
  struct world *world = *context;
  struct id tenant = id_of(NAMESPACE, 1);
  struct event event = made(world, EVENT_subscription_deleted, id_of(SUBSCRIPTION, 1), 2);
  assert_int_equal(state_subscription_count(world->state, &tenant), 1);
  append(world, &event);
  assert_int_equal(state_subscription_count(world->state, &tenant), 0);
  refused(world, ack(world, 1, 3, 5), "the subscription was deleted");
  refused(world, made(world, EVENT_subscription_deleted, id_of(SUBSCRIPTION, 1), 3), "the subscription was deleted");
  event = creation(world, 2, "s");
  append(world, &event);
  assert_int_equal(state_subscription_count(world->state, &tenant), 1);
  struct state *again = folded(world, world->last_seq);
  assert_true(same(world->state, again));
  state_free(again);
}

static void names_are_of_one_namespace(void **context) {
  struct world *world = *context;
  struct id other = id_of(NAMESPACE, 2);
  struct event event = made(world, EVENT_namespace_created, other, 1);
  event.body.namespace_created.name = bytes_text("other");
  append(world, &event);
  event = creation(world, 2, "s"); /* a name of the first one */
  event.body.subscription_created.namespace_id = other;
  append(world, &event);
  assert_int_equal(state_subscription_count(world->state, &other), 1);
  event = creation(world, 3, "s");
  event.body.subscription_created.namespace_id = other;
  refused(world, event, "the name is taken");
}

static void a_namespace_has_so_many(void **context) {
  struct world *world = *context;
  char name[16];
  struct event event;
  for (unsigned i = 2; i <= subscriptions_max; i++) {
    (void)snprintf(name, sizeof name, "s%u", i);
    event = creation(world, i, name);
    append(world, &event);
  }
  refused(world, creation(world, subscriptions_max + 1, "one more"), "the namespace had too many subscriptions");
  event = made(world, EVENT_subscription_deleted, id_of(SUBSCRIPTION, 7), 2);
  append(world, &event);
  event = creation(world, subscriptions_max + 1, "one more");
  append(world, &event);
}

/* Each misfit is seen, and none of them stays behind. */
static void disorder_is_found(void **context) {
  struct world *world = *context;
  struct id tenant = id_of(NAMESPACE, 1), id = id_of(SUBSCRIPTION, 1);
  struct object *object = object_of_kind(world->state, &tenant, OBJECT_NAMESPACE);
  struct subscription *subscription = state_subscription(world->state, &id);
  struct fault fault = {.message = ""};
  assert_int_equal(state_check(world->state, &fault), STATUS_OK);
  object->as.tenant.subscriptions++;
  assert_int_equal(state_check(world->state, &fault), STATUS_CORRUPT);
  object->as.tenant.subscriptions--;
  subscription->position += world->last_seq + 1;
  assert_int_equal(state_check(world->state, &fault), STATUS_CORRUPT);
  subscription->position -= world->last_seq + 1;
  subscription->name_hash ^= 1;
  assert_int_equal(state_check(world->state, &fault), STATUS_CORRUPT);
  subscription->name_hash ^= 1;
  subscription->deleted = true;
  assert_int_equal(state_check(world->state, &fault), STATUS_CORRUPT);
  subscription->deleted = false;
  assert_int_equal(state_check(world->state, &fault), STATUS_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_creation_must_fit, open_world, close_world),
      cmocka_unit_test_setup_teardown(it_goes_forward_only, open_world, close_world),
      cmocka_unit_test_setup_teardown(a_deleted_one_is_over_and_its_name_free, open_world, close_world),
      cmocka_unit_test_setup_teardown(names_are_of_one_namespace, open_world, close_world),
      cmocka_unit_test_setup_teardown(a_namespace_has_so_many, open_world, close_world),
      cmocka_unit_test_setup_teardown(disorder_is_found, open_world, close_world),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
