/* Submissions: times against the clock, quotas to the last task, and what the event holds. */
#include "world.h"

static struct world the_world;

static void accepts_with_everything_frozen(void **state) {
  (void)state;
  struct world *world = &the_world;
  world_init(world);
  struct submit_command submit = world_submission(world);
  submit.business_key = bytes_text("object:operation-001");
  submit.concurrency_key = bytes_text("object-7");
  submit.priority = 9;
  submit.max_attempts = 100;
  submit.initial_delay_ms = 1;
  submit.max_delay_ms = 86400000;
  submit.recovery_safety = RECOVERY_IDEMPOTENT;
  submit.start_deadline_at = world_start_us + 1;
  assert_int_equal(world_submit(world, &submit), STATUS_OK);
  assert_int_equal(world->list.count, 1);
  const struct event *event = &world->list.events[0];
  const struct event_task_accepted *accepted = &event->body.task_accepted;
  assert_int_equal(event->type, EVENT_task_accepted);
  assert_int_equal(event->common.revision, 1);
  assert_true(id_equal(&event->stream, &world->env.new_id));
  assert_true(id_equal(&event->common.operation_id, &world->env.operation_id));
  assert_false(id_is_zero(&event->common.identity) || id_is_zero(&event->common.digest));
  assert_true(id_equal(&accepted->namespace_id, &world->queue.namespace_id));
  assert_true(id_equal(&accepted->application_id, &world->application.id));
  assert_true(id_equal(&accepted->queue_id, &world->queue.id));
  assert_true(bytes_equal_text(accepted->handler, "object.prepare"));
  assert_true(bytes_equal(accepted->payload, submit.payload));
  assert_true(bytes_equal_text(accepted->business_key, "object:operation-001"));
  assert_true(bytes_equal_text(accepted->concurrency_key, "object-7"));
  assert_int_equal(accepted->available_at, world_start_us); /* omitted: now */
  assert_int_equal(accepted->deadline_at, world_start_us + 60000 * us_per_ms);
  assert_int_equal(accepted->priority, 9);
  assert_true(id_is_zero(&accepted->retry_of) && id_is_zero(&accepted->audit_id) && id_is_zero(&accepted->schedule_id));
  world_commit(world);
  assert_int_equal(world->task.state, TASK_WAITING);
  assert_int_equal(world->task.max_delay_ms, 86400000);
  assert_int_equal(world->task.max_attempts, 100);
  assert_false(world->task.scheduled || world->task.is_retry || world->task.retried || world->task.effect_uncertain);
}

static void times_against_the_clock(void **state) {
  (void)state;
  enum { absent = 0 };
  static const int64_t s = 1000000, now = INT64_C(1789603200000000);
  const struct {
    uint64_t timeout_ms;
    int64_t available_at, start_deadline_at;
    const char *field; /* NULL: accepted */
  } cases[] = {
      {1, absent, absent, NULL},
      {task_timeout_ms_max, absent, absent, NULL},
      {0, absent, absent, "/task_timeout_ms"},
      {task_timeout_ms_max + 1, absent, absent, "/task_timeout_ms"},
      {UINT64_MAX, absent, absent, "/task_timeout_ms"},
      {60000, now, absent, NULL},
      {60000, now - s, absent, NULL}, /* a second of tolerance, and not a microsecond more */
      {60000, now - s - 1, absent, "/available_at"},
      {60000, now + 60 * s - 1, absent, NULL},
      {60000, now + 60 * s, absent, "/available_at"}, /* must be before the deadline */
      {60000, now + 61 * s, absent, "/available_at"},
      {60000, absent, now, "/start_deadline_at"}, /* must be after now */
      {60000, absent, now - s, "/start_deadline_at"},
      {60000, absent, now + 1, NULL},
      {60000, absent, now + 60 * s, NULL}, /* may equal the deadline */
      {60000, absent, now + 60 * s + 1, "/start_deadline_at"},
      {60000, now + 10 * s, now + 10 * s, NULL}, /* may equal available_at */
      {60000, now + 10 * s, now + 10 * s - 1, "/start_deadline_at"},
      {60000, now - s, now + 1, NULL},
      {60000, INT64_MAX, absent, "/available_at"},
      {60000, absent, INT64_MAX, "/start_deadline_at"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct world *world = &the_world;
    world_init(world);
    struct submit_command submit = world_submission(world);
    submit.task_timeout_ms = cases[i].timeout_ms;
    submit.attempt_timeout_ms = 1;
    submit.available_at = cases[i].available_at;
    submit.start_deadline_at = cases[i].start_deadline_at;
    enum status status = world_submit(world, &submit);
    if (status != (cases[i].field == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT))
      fail_msg("case %zu: %s", i, world->fault.field);
    if (cases[i].field != NULL) {
      assert_string_equal(world->fault.field, cases[i].field);
      assert_int_equal(world->list.count, 0);
      continue;
    }
    const struct event_task_accepted *accepted = &world->list.events[0].body.task_accepted;
    assert_int_equal(accepted->available_at, cases[i].available_at == absent ? now : cases[i].available_at); /* as given */
    assert_int_equal(accepted->start_deadline_at, cases[i].start_deadline_at);
    world_commit(world);
  }
}

static void end_of_time_is_refused(void **state) {
  (void)state;
  world_init(&the_world);
  the_world.env.now_us = time_us_max - 1000;
  struct submit_command submit = world_submission(&the_world);
  assert_int_equal(world_submit(&the_world, &submit), STATUS_INVALID_ARGUMENT);
  assert_string_equal(the_world.fault.field, "/task_timeout_ms");
}

static void quotas_hold_to_the_last_task(void **state) {
  (void)state;
  static const struct {
    uint64_t queue_max, application_max;
    uint64_t waiting, leased, running, review, ended; /* of the queue */
    uint64_t application_unfinished;
    enum status status;
  } cases[] = {
      {0, 0, 1000000, 1000000, 1000000, 1000000, 0, 4000000, STATUS_OK}, /* 0: no limit */
      {1, 1, 0, 0, 0, 0, 0, 0, STATUS_OK},
      {1, 0, 1, 0, 0, 0, 0, 1, STATUS_QUEUE_FULL},
      {1, 0, 0, 1, 0, 0, 0, 1, STATUS_QUEUE_FULL},
      {1, 0, 0, 0, 1, 0, 0, 1, STATUS_QUEUE_FULL},
      {1, 0, 0, 0, 0, 1, 0, 1, STATUS_QUEUE_FULL}, /* waiting for a person is unfinished */
      {1, 0, 0, 0, 0, 0, 500, 0, STATUS_OK},       /* what has ended does not count */
      {4, 0, 1, 1, 1, 0, 0, 3, STATUS_OK},
      {4, 0, 1, 1, 1, 1, 0, 4, STATUS_QUEUE_FULL},
      {0, 7, 0, 0, 0, 0, 0, 6, STATUS_OK},
      {0, 7, 0, 0, 0, 0, 0, 7, STATUS_APPLICATION_FULL},
      {0, 7, 0, 0, 0, 0, 0, 8, STATUS_APPLICATION_FULL}, /* the limit was lowered meanwhile */
      {1, 1, 1, 0, 0, 0, 0, 1, STATUS_QUEUE_FULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct world *world = &the_world;
    world_init(world);
    world->queue.max_unfinished = cases[i].queue_max;
    world->application.max_unfinished = cases[i].application_max;
    world->application.unfinished = cases[i].application_unfinished;
    world->queue.counts[TASK_WAITING] = cases[i].waiting;
    world->queue.counts[TASK_LEASED] = cases[i].leased;
    world->queue.counts[TASK_RUNNING] = cases[i].running;
    world->queue.counts[TASK_NEEDS_REVIEW] = cases[i].review;
    world->queue.counts[TASK_SUCCEEDED] = world->queue.counts[TASK_FAILED] = world->queue.counts[TASK_CANCELLED] =
        cases[i].ended;
    struct submit_command submit = world_submission(world);
    enum status status = world_submit(world, &submit);
    if (status != cases[i].status) fail_msg("case %zu: %s", i, status_name(status));
    assert_int_equal(world->list.count, status == STATUS_OK);
    if (status != STATUS_OK) assert_int_equal(world->fault.retry_after_ms, quota_full_retry_ms);
  }
}

static void a_fault_is_optional(void **state) {
  (void)state;
  world_init(&the_world);
  the_world.queue.max_unfinished = 1;
  the_world.queue.counts[TASK_WAITING] = 1;
  struct command command = world_command(&the_world, COMMAND_SUBMIT);
  command.as.submit = world_submission(&the_world);
  world_prepare(&the_world);
  assert_int_equal(decide_submit(&the_world.queue, &the_world.application, &command, &the_world.env, &the_world.list, NULL),
                   STATUS_QUEUE_FULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts_with_everything_frozen),
      cmocka_unit_test(times_against_the_clock),
      cmocka_unit_test(end_of_time_is_refused),
      cmocka_unit_test(quotas_hold_to_the_last_task),
      cmocka_unit_test(a_fault_is_optional),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
