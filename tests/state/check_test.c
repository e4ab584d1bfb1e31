/* What the fold refuses, what the check finds, and where receipts lead. */
#include "state/fold_fixture.h"

/* ---- what does not fit is refused, and nothing has changed ---- */

static void refused(struct world *world, const struct event *event) {
  const char *reason = NULL;
  assert_false(state_can_apply(world->state, event, &reason));
  assert_non_null(reason);
}

/* One change of an event that would fit. */
static void misfits_are_refused(void **context) {
  struct world *world = *context;
  struct id before = state_digest(world->state);
  const char *reason = NULL;
  struct event good = made(world, EVENT_queue_paused, id_of(QUEUE, 1), 2), event;
  good.seq = world->last_seq + 1;
  good.time_us = world->now_us;
  good.prev = state_stream_last(world->state, &good);
  assert_true(state_can_apply(world->state, &good, &reason));
  event = good, event.seq--, refused(world, &event);
  event = good, event.seq++, refused(world, &event);
  event = good, event.time_us--, refused(world, &event);
  event = good, event.prev--, refused(world, &event);
  event = good, event.common.revision = 1, refused(world, &event);
  event = good, event.common.revision = 3, refused(world, &event);
  event = good, event.stream = id_of(QUEUE, 77), event.prev = 0, refused(world, &event);
  event = good, event.stream = id_of(APPLICATION, 1); /* an object of another kind */
  event.prev = state_stream_last(world->state, &event), refused(world, &event);
  struct id after = state_digest(world->state);
  assert_true(id_equal(&before, &after));
}

static struct event next_made(struct world *world, enum event_type type, struct id stream) {
  struct event event = made(world, type, stream, 1);
  event.seq = world->last_seq + 1;
  event.time_us = world->now_us;
  event.prev = state_stream_last(world->state, &event);
  return event;
}

static void misfits_of_new_objects_are_refused(void **context) {
  struct world *world = *context;
  static const uint8_t hash[token_hash_bytes] = {1};
  const char *reason;
  struct event event = next_made(world, EVENT_queue_created, id_of(QUEUE, 1)); /* is there already */
  event.body.queue_created.namespace_id = id_of(NAMESPACE, 1);
  refused(world, &event);
  event = next_made(world, EVENT_queue_created, id_of(QUEUE, 9));
  event.body.queue_created.namespace_id = id_of(NAMESPACE, 9); /* never was */
  refused(world, &event);
  event = next_made(world, EVENT_credential_created, id_of(CREDENTIAL, 9));
  event.body.credential_created.namespace_id = id_of(NAMESPACE, 1);
  event.body.credential_created.application_id = id_of(APPLICATION, 1);
  event.body.credential_created.token_hash = bytes_of(hash, token_hash_bytes);
  assert_true(state_can_apply(world->state, &event, &reason));
  event.body.credential_created.token_hash.size--;
  refused(world, &event);
  event.body.credential_created.token_hash.size++;
  event.body.credential_created.application_id = id_of(APPLICATION, 2);
  refused(world, &event);
  event = next_made(world, EVENT_task_started, id_of(TASK, 0x7777));
  refused(world, &event);
  event = next_made(world, EVENT_audit_recorded, id_of(QUEUE, 1));
  struct event_audit_recorded *audit = &event.body.audit_recorded;
  audit->audit_id = audit_id_make(event.time_us, event.seq);
  audit->action = bytes_text("queue.pause");
  audit->target_id = id_of(QUEUE, 1);
  assert_true(state_can_apply(world->state, &event, &reason));
  audit->target_id = id_of(QUEUE, 2);
  refused(world, &event);
  audit->target_id = id_of(QUEUE, 1);
  audit->audit_id = audit_id_make(event.time_us, event.seq + 1);
  refused(world, &event);
  audit->audit_id = audit_id_make(event.time_us, event.seq);
  audit->action.size = 0;
  refused(world, &event);
}

static void limits_are_judged_again(void **context) {
  struct world *world = *context;
  struct event_list *list = calloc(1, sizeof *list);
  struct fault fault;
  struct id queue_id = id_of(QUEUE, 2);
  const char *reason = NULL;
  struct id first = submit(world, 2, "k2", NULL); /* the key is held by the running one */
  struct lease_request request = {
      .instance_id = id_of(INSTANCE, 1), .application_id = id_of(APPLICATION, 1), .lease_ms = 30000};
  struct decide_env env = env_of(world, id_of(ATTEMPT, ++world->ids));
  assert_int_equal(decide_lease(state_task(world->state, &first), &request, &env, list, &fault), STATUS_OK);
  struct event *event = &list->events[0];
  event->seq = world->last_seq + 1;
  event->prev = state_stream_last(world->state, event);
  assert_false(state_can_apply(world->state, event, &reason));
  state_queue(world->state, &queue_id)->key_concurrency = 2;
  assert_true(state_can_apply(world->state, event, &reason));
  state_queue(world->state, &queue_id)->max_running = 1;
  assert_false(state_can_apply(world->state, event, &reason));
  state_queue(world->state, &queue_id)->max_running = 0;
  state_queue(world->state, &queue_id)->key_concurrency = 1;
  free(list);
}

/* ---- the check finds what is wrong ---- */

static void the_check_finds_what_is_wrong(void **context) {
  struct world *world = *context;
  struct state *state = world->state;
  struct task *waiting = find_in(world, TASK_WAITING), *running = find_in(world, TASK_RUNNING),
              *done = find_in(world, TASK_SUCCEEDED);
  struct task_node *node = (struct task_node *)waiting;
  struct id queue_id = id_of(QUEUE, 1), application_id = id_of(APPLICATION, 1);
  struct queue *queue = state_queue(state, &queue_id);
  struct application *application = state_application(state, &application_id);
  struct attempt_node *attempt = attempt_at(state, ((struct task_node *)running)->attempt);
  struct instance *instance = state_instance_at(state, attempt->instance);
  struct fault fault = {0};
  assert_int_equal(state_check(state, &fault), STATUS_OK);
#define BROKEN(change, mend)                                      \
  do {                                                            \
    change;                                                       \
    assert_int_equal(state_check(state, &fault), STATUS_CORRUPT); \
    mend;                                                         \
    assert_int_equal(state_check(state, &fault), STATUS_OK);      \
  } while (0)
  BROKEN(queue->counts[TASK_WAITING]++, queue->counts[TASK_WAITING]--);
  BROKEN(queue->counts[TASK_FAILED]++, queue->counts[TASK_FAILED]--);
  BROKEN(application->unfinished--, application->unfinished++);
  BROKEN(instance->held++, instance->held--);
  BROKEN(running->epoch++, running->epoch--);
  BROKEN(running->attempt_count = running->max_attempts + 1, running->attempt_count = 1);
  BROKEN(done->effect_uncertain = true, done->effect_uncertain = false);
  BROKEN(done->retried = true, done->retried = false);
  BROKEN(waiting->outcome_seq = 1, waiting->outcome_seq = 0);
  BROKEN(waiting->is_error = true, waiting->is_error = false);
  BROKEN(done->is_error = true, done->is_error = false);
  BROKEN(bucket_at(state, waiting->handler)->bucket.unfinished++, bucket_at(state, waiting->handler)->bucket.unfinished--);
  BROKEN(state->ready_count++, state->ready_count--);
  BROKEN(waiting->available_at += 1, waiting->available_at -= 1); /* its place in the ready order is not its own */
  BROKEN(node->aside = true, node->aside = false);
  int64_t key = state->timers.entries[0].key;
  BROKEN(state->timers.entries[0].key = key + 1, state->timers.entries[0].key = key);
  BROKEN(attempt->attempt.live_until -= 1000000, attempt->attempt.live_until += 1000000);
  uint32_t number = ((struct task_node *)running)->key;
  BROKEN(key_at(state, number)->held++, key_at(state, number)->held--);
#undef BROKEN
}

/* ---- receipts ---- */

static void receipts_lead_to_their_events(void **context) {
  struct world *world = *context;
  struct record_source source = {get, world};
  struct event event, found;
  unsigned receipts = 0, ended = 0;
  for (uint64_t seq = 1; seq <= world->last_seq; seq++) {
    assert_int_equal(history_event(world->history, source, seq, &event), STATUS_OK);
    struct id identity = event.common.identity;
    struct id report = event.type == EVENT_attempt_result ? event.body.attempt_result.report_identity : (struct id){{0}};
    /* A request names its task, and finds what that one's history tells; of an ended one, memory holds nothing else. */
    const struct task *task = event.type != EVENT_task_accepted ? state_task(world->state, &event.stream) : NULL;
    ended += task != NULL && task_state_is_terminal((enum task_state)task->state) && !id_is_zero(&identity);
    if (!id_is_zero(&identity)) {
      assert_int_equal(state_receipt(world->state, &identity, task, world->history, source, &found), STATUS_OK);
      assert_int_equal(found.seq, seq);
      receipts++;
    }
    if (id_is_zero(&report)) continue;
    assert_int_equal(state_receipt(world->state, &report, task, world->history, source, &found), STATUS_OK);
    assert_int_equal(found.seq, seq);
  }
  assert_true(receipts >= 10 && ended >= 2);
  struct id unknown = id_of(IDENTITY, 0x7FFF);
  assert_int_equal(state_receipt(world->state, &unknown, NULL, world->history, source, &found), STATUS_END);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(misfits_are_refused),           ROW(misfits_of_new_objects_are_refused), ROW(limits_are_judged_again),
      ROW(the_check_finds_what_is_wrong), ROW(receipts_lead_to_their_events),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
