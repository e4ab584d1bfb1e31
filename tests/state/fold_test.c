/* The fold: its digest speaks of every field that is folded and of nothing else; folded twice it is the same. */
#include "state/fold_fixture.h"

static void folding_twice_is_the_same(void **context) {
  struct world *world = *context;
  struct fault fault = {0};
  struct state *first = folded(world, world->last_seq), *second = folded(world, world->last_seq);
  assert_true(same(first, second) && same(first, world->state));
  assert_int_equal(state_check(first, &fault), STATUS_OK);
  assert_int_equal(state_last_seq(first), world->last_seq);
  state_free(first);
  state_free(second);
}

static void every_prefix_has_a_digest_of_its_own(void **context) {
  struct world *world = *context;
  struct id digests[64];
  assert_true(world->last_seq < 64);
  for (uint64_t last = 0; last <= world->last_seq; last++) {
    struct state *state = folded(world, last);
    struct fault fault = {0};
    digests[last] = state_digest(state);
    for (uint64_t i = 0; i < last; i++) assert_false(id_equal(&digests[i], &digests[last]));
    /* Between the end of an attempt and its decision the task is under way: there alone the check may find fault. */
    struct event event;
    if (last != 0) assert_int_equal(history_event(world->history, (struct record_source){get, world}, last, &event), STATUS_OK);
    if (last != 0 && event.type != EVENT_attempt_result) assert_int_equal(state_check(state, &fault), STATUS_OK);
    state_free(state);
  }
}

/* The order in which containers hold things is no part of it. */
static void the_digest_does_not_see_the_order_in_memory(void **context) {
  struct world *world = *context;
  struct state *state = folded(world, world->last_seq);
  struct id before = state_digest(state);
  for (uint64_t key = 1; key <= 500; key++) index_add(&state->task_ids, key, 1); /* makes the index grow … */
  for (uint64_t key = 1; key <= 500; key++) index_remove(&state->task_ids, key, 1);
  struct id after = state_digest(state);
  assert_true(id_equal(&before, &after));
  state_free(state);
}

#define TASK_FIELD(name) \
  { #name, offsetof(struct task_node, task.name), sizeof(((struct task_node *)0)->task.name) }

static void the_digest_sees_every_field_of_a_task(void **context) {
  struct world *world = *context;
  static const struct {
    const char *name;
    size_t at, size;
  } fields[] = {
      TASK_FIELD(id),
      TASK_FIELD(accepted_seq),
      TASK_FIELD(last_seq),
      TASK_FIELD(outcome_seq),
      TASK_FIELD(epoch),
      TASK_FIELD(created_at),
      TASK_FIELD(updated_at),
      TASK_FIELD(available_at),
      TASK_FIELD(start_deadline_at),
      TASK_FIELD(deadline_at),
      TASK_FIELD(cancel_requested_at),
      TASK_FIELD(revision),
      TASK_FIELD(initial_delay_ms),
      TASK_FIELD(max_delay_ms),
      TASK_FIELD(attempt_timeout_ms),
      TASK_FIELD(payload_bytes),
      TASK_FIELD(attempt_count),
      TASK_FIELD(max_attempts),
      TASK_FIELD(state),
      TASK_FIELD(recovery_safety),
      TASK_FIELD(priority),
      TASK_FIELD(effect_uncertain),
      TASK_FIELD(retried),
      TASK_FIELD(scheduled),
      TASK_FIELD(is_retry),
  };
  struct id before = state_digest(world->state);
  for (uint32_t number = 1; number <= world->state->tasks.used; number++)
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
      for (size_t byte = 0; byte < fields[i].size; byte++) {
        uint8_t *at = (uint8_t *)node_at(world->state, number) + fields[i].at + byte;
        *at ^= 1; /* keeps a bool a bool */
        struct id after = state_digest(world->state);
        *at ^= 1;
        if (id_equal(&before, &after)) fail_msg("%s, byte %zu", fields[i].name, byte);
      }
  struct id again = state_digest(world->state);
  assert_true(id_equal(&before, &again));
  unsigned shown = 0; /* of what its one position is: seen where there is one */
  for (uint32_t number = 1; number <= world->state->tasks.used; number++) {
    struct task *task = &node_at(world->state, number)->task;
    if (task->outcome_seq == 0) continue;
    shown++;
    task->is_error = !task->is_error;
    again = state_digest(world->state);
    task->is_error = !task->is_error;
    assert_false(id_equal(&before, &again));
  }
  assert_true(shown > 0);
  struct task_node *node = node_at(world->state, 1); /* the numbers stand for ids */
  node->task.queue = node->task.queue + 1;
  again = state_digest(world->state);
  node->task.queue = node->task.queue - 1;
  assert_false(id_equal(&before, &again));
  unsigned keyed = 0; /* and so does the number of a concurrency key */
  for (uint32_t number = 1; number <= world->state->tasks.used; number++) {
    uint32_t key = node_at(world->state, number)->key;
    if (key == 0) continue;
    keyed++;
    key_at(world->state, key)->id.bytes[0] ^= 1;
    again = state_digest(world->state);
    key_at(world->state, key)->id.bytes[0] ^= 1;
    assert_false(id_equal(&before, &again));
  }
  assert_true(keyed > 0);
}

#define ATTEMPT_FIELD(name) \
  { #name, offsetof(struct attempt, name), sizeof(((struct attempt *)0)->name) }

static void the_digest_sees_every_field_of_an_attempt(void **context) {
  struct world *world = *context;
  static const struct {
    const char *name;
    size_t at, size;
  } fields[] = {
      ATTEMPT_FIELD(id),          ATTEMPT_FIELD(instance_id), ATTEMPT_FIELD(application_id),      ATTEMPT_FIELD(leased_at),
      ATTEMPT_FIELD(lease_until), ATTEMPT_FIELD(started_at),  ATTEMPT_FIELD(attempt_deadline_at), ATTEMPT_FIELD(lease_ms),
  };
  struct id before = state_digest(world->state);
  unsigned held = 0;
  for (uint32_t number = 1; number <= world->state->tasks.used; number++) {
    uint32_t attempt = node_claim(node_at(world->state, number));
    for (size_t i = 0; attempt != 0 && i < sizeof fields / sizeof fields[0]; i++)
      for (size_t byte = 0; byte < fields[i].size; byte++) {
        uint8_t *at = (uint8_t *)&attempt_at(world->state, attempt)->attempt + fields[i].at + byte;
        *at ^= 1;
        struct id after = state_digest(world->state);
        *at ^= 1;
        if (id_equal(&before, &after)) fail_msg("%s, byte %zu", fields[i].name, byte);
      }
    held += attempt != 0;
  }
  assert_true(held > 0);
}

#define OBJECT_FIELD(kind, member, name) \
  { kind, #member "." #name, offsetof(struct object, as.member.name), sizeof(((struct object *)0)->as.member.name) }

static void the_digest_sees_every_field_of_an_object(void **context) {
  struct world *world = *context;
  static const struct {
    enum object_kind kind;
    const char *name;
    size_t at, size;
  } fields[] = {
      OBJECT_FIELD(OBJECT_APPLICATION, application, namespace_id),
      OBJECT_FIELD(OBJECT_APPLICATION, application, revision),
      OBJECT_FIELD(OBJECT_APPLICATION, application, max_unfinished),
      OBJECT_FIELD(OBJECT_APPLICATION, application, unfinished),
      OBJECT_FIELD(OBJECT_APPLICATION, application, config_seq),
      OBJECT_FIELD(OBJECT_APPLICATION, application, disabled),
      OBJECT_FIELD(OBJECT_CREDENTIAL, credential, namespace_id),
      OBJECT_FIELD(OBJECT_CREDENTIAL, credential, application_id),
      OBJECT_FIELD(OBJECT_CREDENTIAL, credential, permissions),
      OBJECT_FIELD(OBJECT_CREDENTIAL, credential, expires_at),
      OBJECT_FIELD(OBJECT_CREDENTIAL, credential, revision),
      OBJECT_FIELD(OBJECT_CREDENTIAL, credential, config_seq),
      OBJECT_FIELD(OBJECT_CREDENTIAL, credential, revoked),
      OBJECT_FIELD(OBJECT_CREDENTIAL, credential, token_hash),
      OBJECT_FIELD(OBJECT_SUBSCRIPTION, subscription, namespace_id),
      OBJECT_FIELD(OBJECT_SUBSCRIPTION, subscription, queue_id),
      OBJECT_FIELD(OBJECT_SUBSCRIPTION, subscription, task_id),
      OBJECT_FIELD(OBJECT_SUBSCRIPTION, subscription, types),
      OBJECT_FIELD(OBJECT_SUBSCRIPTION, subscription, position),
      OBJECT_FIELD(OBJECT_SUBSCRIPTION, subscription, revision),
      OBJECT_FIELD(OBJECT_SUBSCRIPTION, subscription, config_seq),
      OBJECT_FIELD(OBJECT_SUBSCRIPTION, subscription, name_hash),
      OBJECT_FIELD(OBJECT_SUBSCRIPTION, subscription, deleted),
      OBJECT_FIELD(OBJECT_QUEUE, queue, namespace_id),
      OBJECT_FIELD(OBJECT_QUEUE, queue, revision),
      OBJECT_FIELD(OBJECT_QUEUE, queue, max_unfinished),
      OBJECT_FIELD(OBJECT_QUEUE, queue, max_running),
      OBJECT_FIELD(OBJECT_QUEUE, queue, key_concurrency),
      OBJECT_FIELD(OBJECT_QUEUE, queue, rate.tasks),
      OBJECT_FIELD(OBJECT_QUEUE, queue, rate.per_ms),
      OBJECT_FIELD(OBJECT_QUEUE, queue, rate.burst),
      OBJECT_FIELD(OBJECT_QUEUE, queue, lease_ms),
      OBJECT_FIELD(OBJECT_QUEUE, queue, config_seq),
      OBJECT_FIELD(OBJECT_QUEUE, queue, paused),
      OBJECT_FIELD(OBJECT_QUEUE, queue, counts),
      OBJECT_FIELD(OBJECT_QUEUE, queue, rate_at),
  };
  struct id before = state_digest(world->state);
  unsigned seen = 0;
  for (uint32_t number = 1; number <= world->state->objects.used; number++) {
    struct object *object = object_at(world->state, number);
    object->last_seq ^= 1;
    struct id after = state_digest(world->state);
    object->last_seq ^= 1;
    assert_false(id_equal(&before, &after));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
      if (object->kind != fields[i].kind) continue;
      for (size_t byte = 0; byte < fields[i].size; byte++, seen++) {
        uint8_t *at = (uint8_t *)object + fields[i].at + byte;
        *at ^= 1;
        after = state_digest(world->state);
        *at ^= 1;
        if (id_equal(&before, &after)) fail_msg("%s, byte %zu", fields[i].name, byte);
      }
    }
    if (object->kind != OBJECT_CREDENTIAL) continue;
    object->as.credential.queue_ids[0].bytes[7] ^= 1;
    after = state_digest(world->state);
    object->as.credential.queue_ids[0].bytes[7] ^= 1;
    assert_false(id_equal(&before, &after));
  }
  assert_true(seen > 100);
}

static void the_digest_sees_receipts_and_position(void **context) {
  struct world *world = *context;
  struct id before = state_digest(world->state), after;
  index_add(&world->state->receipts, 99, 1);
  after = state_digest(world->state);
  index_remove(&world->state->receipts, 99, 1);
  assert_false(id_equal(&before, &after));
  world->state->last_seq++;
  after = state_digest(world->state);
  world->state->last_seq--;
  assert_false(id_equal(&before, &after));
  world->state->last_time_us++;
  after = state_digest(world->state);
  world->state->last_time_us--;
  assert_false(id_equal(&before, &after));
}

static void renewals_are_no_part_of_it(void **context) {
  struct world *world = *context;
  struct id before = state_digest(world->state);
  uint32_t number = state_task_number(world->state, &find_in(world, TASK_RUNNING)->id);
  state_renew(world->state, number, state_attempt_at(world->state, number)->live_until + 5000000);
  struct id after = state_digest(world->state);
  struct fault fault = {0};
  assert_true(id_equal(&before, &after));
  assert_int_equal(state_check(world->state, &fault), STATUS_OK); /* its timer moved along */
}

static void longer_leases_are_none_either(void **context) {
  struct world *world = *context;
  struct id before = state_digest(world->state);
  const struct attempt *attempt = attempt_of_task(world, &find_in(world, TASK_RUNNING)->id);
  int64_t ends = attempt->live_until;
  state_lengthen_leases(world->state, 1000);
  struct id after = state_digest(world->state);
  struct fault fault = {0};
  assert_true(id_equal(&before, &after));
  assert_int_equal(attempt->live_until, ends + 1000);
  assert_int_equal(state_check(world->state, &fault), STATUS_OK); /* all timers moved along */
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(folding_twice_is_the_same),
      ROW(every_prefix_has_a_digest_of_its_own),
      ROW(the_digest_does_not_see_the_order_in_memory),
      ROW(the_digest_sees_every_field_of_a_task),
      ROW(the_digest_sees_every_field_of_an_attempt),
      ROW(the_digest_sees_every_field_of_an_object),
      ROW(the_digest_sees_receipts_and_position),
      ROW(renewals_are_no_part_of_it),
      ROW(longer_leases_are_none_either),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
