/* A task's life through the engine: claims, start grants, reports, repeats, evidence, expiry. */
#include "engine/world.h"

#include <stdlib.h>
#include <string.h>

#include "core/backoff.h"

static int open_world(void **context) {
  struct world *world = malloc(sizeof *world);
  world_open(world);
  *context = world;
  return 0;
}

static int close_world(void **context) {
  world_check(*context);
  world_close(*context);
  free(*context);
  return 0;
}

static struct answer submit(struct world *world, const char *key) {
  struct command command = world_submit(world, key);
  return world_do(world, &command);
}

static struct answer act(struct world *world, enum command_kind kind, const struct push *assign) {
  struct command command = world_ref(world, kind, assign);
  return world_do(world, &command);
}

static struct answer finish(struct world *world, const struct push *assign, enum outcome outcome, bool retryable) {
  struct command command = world_finish(world, assign, outcome, retryable);
  return world_do(world, &command);
}

/* ---- the story of the retry ---- */

static void a_safe_retry_from_submission_to_success(void **context) {
  struct world *world = *context;
  struct answer accepted = submit(world, "k");
  assert_true(accepted.status == STATUS_OK && accepted.created && !accepted.deduplicated);
  assert_int_equal(accepted.as.task.state, TASK_WAITING);
  assert_int_equal(accepted.as.task.revision, 1);
  (void)world_hello(world, 1, 1);
  const struct push *first = world_take(world, MAIL_ASSIGN, 1);
  assert_non_null(first);
  assert_int_equal(first->task.revision, 2);

  struct answer started = act(world, COMMAND_START, first);
  assert_true(started.status == STATUS_OK && started.as.worker.applied && started.as.worker.lease_active);
  assert_int_equal(started.as.worker.task_revision, 3);

  struct answer failed = finish(world, first, OUTCOME_FAILED, true);
  assert_true(failed.status == STATUS_OK && failed.as.worker.applied && !failed.as.worker.lease_active);
  assert_int_equal(failed.as.worker.disposition, DECISION_RETRYABLE_FAILURE);
  assert_int_equal(failed.as.worker.task_state, TASK_WAITING);
  assert_int_equal(failed.as.worker.task_revision, 4);
  int64_t delay_us = failed.as.worker.available_at - world->now_us;
  assert_int_equal(delay_us, (int64_t)backoff_delay_ms(500, &first->attempt_id) * 1000);

  assert_null(world_take(world, MAIL_ASSIGN, 0)); /* not before its time */
  world->now_us += delay_us - 1;
  world_tick(world);
  assert_null(world_take(world, MAIL_ASSIGN, 0));
  assert_int_equal(world->next_us, failed.as.worker.available_at);
  world->now_us += 1;
  world_tick(world);
  const struct push *second = world_take(world, MAIL_ASSIGN, 1);
  assert_non_null(second);
  assert_int_equal(second->task.epoch, 2);
  assert_int_equal(second->task.attempt_count, 2);
  assert_false(id_equal(&second->attempt_id, &first->attempt_id));

  assert_int_equal(act(world, COMMAND_START, second).status, STATUS_OK);
  struct answer done = finish(world, second, OUTCOME_SUCCEEDED, false);
  assert_int_equal(done.as.worker.task_state, TASK_SUCCEEDED);
  assert_int_equal(done.as.worker.task_revision, 7);
  struct task task = world_task(world, &first->task_id);
  assert_true(task.state == TASK_SUCCEEDED && task_result_seq(&task) != 0 && task_completed_at(&task) == world->now_us);
}

/* ---- identity ---- */

static void the_same_key_gives_the_first_answer(void **context) {
  struct world *world = *context;
  struct answer first = submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  (void)act(world, COMMAND_START, assign);
  (void)finish(world, assign, OUTCOME_SUCCEEDED, false);
  world_restart(world);
  struct answer again = submit(world, "k");
  assert_true(again.status == STATUS_OK && again.deduplicated && !again.created);
  assert_int_equal(again.as.task.state, TASK_WAITING); /* as it stood then */
  assert_int_equal(again.as.task.revision, 1);
  assert_true(id_equal(&again.as.task.id, &first.as.task.id));
  assert_int_equal(again.as.task.available_at, first.as.task.available_at);

  struct command other = world_submit(world, "k");
  other.as.submit.priority = 1;
  world_identify(world, &other, "k");
  assert_int_equal(world_do(world, &other).status, STATUS_IDEMPOTENCY_CONFLICT);
}

static void sixty_four_at_once_make_one_task(void **context) {
  struct world *world = *context;
  struct command commands[64];
  struct answer answers[64];
  unsigned created = 0;
  for (int i = 0; i < 64; i++) commands[i] = world_submit(world, "same");
  world_do_all(world, commands, answers, 64);
  for (int i = 0; i < 64; i++) {
    assert_int_equal(answers[i].status, STATUS_OK);
    assert_true(id_equal(&answers[i].as.task.id, &answers[0].as.task.id));
    assert_true(answers[i].created != answers[i].deduplicated);
    created += answers[i].created;
  }
  assert_int_equal(created, 1);
}

static void a_refused_submission_leaves_no_identity(void **context) {
  struct world *world = *context;
  struct command command = world_submit(world, "full");
  command.as.submit.queue_id = world->narrow_queue_id;
  for (int i = 0; i < 10; i++) {
    char key[8] = {'n', (char)('0' + i), 0};
    world_identify(world, &command, key);
    assert_int_equal(world_do(world, &command).status, STATUS_OK);
  }
  world_identify(world, &command, "eleventh");
  struct answer refused = world_do(world, &command);
  assert_int_equal(refused.status, STATUS_QUEUE_FULL);
  assert_true(refused.fault.retry_after_ms > 0);
  world_identify(world, &command, "n3");
  assert_true(world_do(world, &command).deduplicated); /* full, but this one is known */
  command.as.submit.priority = 5;                      /* other content under the refused key: it left nothing behind */
  world_identify(world, &command, "eleventh");
  assert_int_equal(world_do(world, &command).status, STATUS_QUEUE_FULL);
}

static void scope_and_namespace_hide_what_is_outside(void **context) {
  struct world *world = *context;
  struct answer accepted = submit(world, "k");
  struct command get = {.kind = COMMAND_GET_TASK, .who = world->narrow, .as.task_id = accepted.as.task.id};
  assert_int_equal(world_do(world, &get).status, STATUS_NOT_FOUND);
  get.who = world->who;
  memset(get.who.namespace_id.bytes, 9, id_bytes);
  assert_int_equal(world_do(world, &get).status, STATUS_NOT_FOUND);
  struct command command = world_submit(world, "k2");
  command.who = world->narrow;
  struct answer refused = world_do(world, &command);
  assert_int_equal(refused.status, STATUS_NOT_FOUND);
  assert_string_equal(refused.fault.field, "/queue_id");
}

/* ---- repeats of reports ---- */

static void repeats_of_start_and_finish(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  struct command start = world_ref(world, COMMAND_START, assign);
  assert_true(world_do(world, &start).as.worker.applied);
  struct answer again = world_do(world, &start);
  assert_true(again.status == STATUS_OK && again.as.worker.deduplicated && again.as.worker.lease_active);
  assert_int_equal(again.as.worker.task_state, TASK_RUNNING);
  struct command other_start = world_ref(world, COMMAND_START, assign);
  assert_int_equal(world_do(world, &other_start).status, STATUS_STATE_CONFLICT);

  struct command report = world_finish(world, assign, OUTCOME_FAILED, true);
  struct answer first = world_do(world, &report);
  assert_int_equal(first.as.worker.disposition, DECISION_RETRYABLE_FAILURE);
  world_restart(world);
  again = world_do(world, &report);
  assert_true(again.status == STATUS_OK && again.as.worker.deduplicated && again.as.worker.applied);
  assert_int_equal(again.as.worker.disposition, DECISION_RETRYABLE_FAILURE);
  assert_int_equal(again.as.worker.task_revision, 4);
  assert_int_equal(again.as.worker.available_at, first.as.worker.available_at);

  struct command changed = report; /* the same message, other content */
  changed.as.finish.report.retryable = false;
  changed.operation.digest = finish_digest(&changed.as.finish.ref, &changed.as.finish.report, NULL, NULL);
  assert_int_equal(world_do(world, &changed).status, STATUS_IDEMPOTENCY_CONFLICT);

  struct command same = world_finish(world, assign, OUTCOME_FAILED, true); /* another message, the same content */
  again = world_do(world, &same);
  assert_true(again.as.worker.deduplicated && again.as.worker.applied);
  assert_int_equal(again.as.worker.disposition, DECISION_RETRYABLE_FAILURE);

  struct command conflicting = world_finish(world, assign, OUTCOME_SUCCEEDED, false); /* another message, other content */
  again = world_do(world, &conflicting);
  assert_true(again.status == STATUS_OK && again.as.worker.evidence && !again.as.worker.applied);
  again = world_do(world, &conflicting);
  assert_true(again.as.worker.evidence && again.as.worker.deduplicated);
}

static void an_old_receipt_says_waiting_after_success(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *first = world_take(world, MAIL_ASSIGN, 1);
  (void)act(world, COMMAND_START, first);
  struct command report = world_finish(world, first, OUTCOME_FAILED, true);
  (void)world_do(world, &report);
  world_advance_ms(world, 500);
  const struct push *second = world_take(world, MAIL_ASSIGN, 1);
  (void)act(world, COMMAND_START, second);
  assert_int_equal(finish(world, second, OUTCOME_SUCCEEDED, false).as.worker.task_state, TASK_SUCCEEDED);
  struct answer old = world_do(world, &report);
  assert_int_equal(old.as.worker.task_state, TASK_WAITING);
  assert_int_equal(old.as.worker.task_revision, 4);
  assert_false(old.as.worker.lease_active);
}

/* ---- evidence ---- */

static void reports_without_authority_are_evidence(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *first = world_take(world, MAIL_ASSIGN, 1);
  (void)act(world, COMMAND_START, first);
  world_advance_ms(world, lease_ms_default); /* RECONCILE_ONLY: a person must look */
  struct task task = world_task(world, &first->task_id);
  assert_true(task.state == TASK_NEEDS_REVIEW && task.effect_uncertain && task_completed_at(&task) == 0);
  const struct push *ended = world_take(world, MAIL_ENDED, 1);
  assert_true(ended != NULL && ended->ended_by == ENDED_LEASE_EXPIRED);
  struct answer late = finish(world, first, OUTCOME_SUCCEEDED, false);
  assert_true(late.status == STATUS_OK && late.as.worker.evidence && !late.as.worker.applied);
  task = world_task(world, &first->task_id);
  assert_true(task.state == TASK_NEEDS_REVIEW && task.effect_uncertain);
  assert_int_equal(task.revision, 4);

  struct command foreign = world_finish(world, first, OUTCOME_SUCCEEDED, false); /* an attempt that never was */
  memset(foreign.as.finish.ref.attempt_id.bytes, 0x55, id_bytes);
  world_identify(world, &foreign, "");
  assert_int_equal(world_do(world, &foreign).status, STATUS_NOT_FOUND);
}

/* Another message each time, so that none is a repeat. */
static void an_attempt_keeps_so_many_reports(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *first = world_take(world, MAIL_ASSIGN, 1);
  (void)act(world, COMMAND_START, first);
  world_advance_ms(world, lease_ms_default);
  struct command kept = world_finish(world, first, OUTCOME_UNKNOWN, false);
  assert_true(world_do(world, &kept).as.worker.evidence);
  for (int i = 1; i < attempt_evidence_max; i++) assert_true(finish(world, first, OUTCOME_UNKNOWN, false).as.worker.evidence);
  uint64_t end = journal_last_seq(world->journal);
  struct answer refused = finish(world, first, OUTCOME_UNKNOWN, false);
  assert_int_equal(refused.status, STATUS_STATE_CONFLICT);
  assert_string_equal(refused.fault.field, "/attempt_id");
  assert_true(refused.as.worker.has_task && !refused.as.worker.evidence && refused.as.worker.task_state == TASK_NEEDS_REVIEW);
  assert_int_equal(journal_last_seq(world->journal), end);
  world_restart(world); /* the log alone knows how many there are */
  end = journal_last_seq(world->journal);
  assert_int_equal(finish(world, first, OUTCOME_UNKNOWN, false).status, STATUS_STATE_CONFLICT);
  struct answer again = world_do(world, &kept);
  assert_true(again.status == STATUS_OK && again.as.worker.deduplicated && again.as.worker.evidence);
  assert_int_equal(journal_last_seq(world->journal), end);
}

/* The bound is the attempt's, not the task's. */
static void another_attempt_has_its_own_reports(void **context) {
  struct world *world = *context;
  struct command task = world_submit(world, "k");
  task.as.submit.recovery_safety = RECOVERY_IDEMPOTENT;
  task.as.submit.max_attempts = 2;
  world_identify(world, &task, "k");
  assert_int_equal(world_do(world, &task).status, STATUS_OK);
  (void)world_hello(world, 1, 1);
  struct push first = *world_take(world, MAIL_ASSIGN, 1);
  (void)act(world, COMMAND_START, &first);
  world_advance_ms(world, lease_ms_default);
  for (int i = 0; i < attempt_evidence_max; i++) assert_true(finish(world, &first, OUTCOME_UNKNOWN, false).as.worker.evidence);
  world_advance_ms(world, 1000); /* the backoff */
  struct push second = *world_take(world, MAIL_ASSIGN, 1);
  assert_false(id_equal(&second.attempt_id, &first.attempt_id));
  (void)act(world, COMMAND_START, &second);
  world_advance_ms(world, lease_ms_default); /* too late for this one too */
  assert_true(finish(world, &second, OUTCOME_UNKNOWN, false).as.worker.evidence);
  assert_int_equal(finish(world, &first, OUTCOME_UNKNOWN, false).status, STATUS_STATE_CONFLICT);
}

static void a_report_needs_a_start_grant(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  struct answer refused = finish(world, assign, OUTCOME_SUCCEEDED, false);
  assert_int_equal(refused.status, STATUS_STATE_CONFLICT);
  assert_true(refused.as.worker.lease_active); /* the lease goes on */
  assert_int_equal(act(world, COMMAND_START, assign).status, STATUS_OK);
}

static void another_application_cannot_touch_an_attempt(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  static const enum command_kind kinds[] = {COMMAND_START, COMMAND_RENEW, COMMAND_RELEASE};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    struct command command = world_ref(world, kinds[i], assign);
    command.who = world->other;
    assert_int_equal(world_do(world, &command).status, STATUS_NOT_FOUND);
  }
  (void)act(world, COMMAND_START, assign);
  struct command report = world_finish(world, assign, OUTCOME_SUCCEEDED, false);
  report.who = world->other;
  assert_int_equal(world_do(world, &report).status, STATUS_NOT_FOUND);
  assert_int_equal(world_task(world, &assign->task_id).state, TASK_RUNNING);
}

/* ---- leases ---- */

static void a_worker_that_renews_never_loses_its_lease(void **context) {
  struct world *world = *context;
  struct command command = world_submit(world, "k");
  command.as.submit.attempt_timeout_ms = 600000;
  world_identify(world, &command, "k");
  (void)world_do(world, &command);
  (void)world_hello(world, 1, 1);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  (void)act(world, COMMAND_START, assign);
  world_bye(world, 1); /* renewing proves the attempt, not the socket */
  for (int i = 0; i < 19; i++) {
    world_advance_ms(world, lease_ms_default - 1);
    struct answer renewed = act(world, COMMAND_RENEW, assign);
    assert_true(renewed.status == STATUS_OK && renewed.as.worker.lease_active);
  }
  assert_int_equal(world_task(world, &assign->task_id).state, TASK_RUNNING);
  world->now_us = assign->task.deadline_at - 10000000;
  struct answer last = act(world, COMMAND_RENEW, assign); /* never past the attempt's timeout or the deadline */
  assert_int_equal(last.as.worker.lease_expires_at, assign->task.deadline_at);
  world->now_us = assign->task.deadline_at - 1;
  world_tick(world);
  assert_int_equal(world_task(world, &assign->task_id).state, TASK_RUNNING);
  world->now_us++;
  world_tick(world);
  assert_int_equal(world_task(world, &assign->task_id).state, TASK_NEEDS_REVIEW);
  assert_int_equal(act(world, COMMAND_RENEW, assign).status, STATUS_LEASE_LOST);
}

static void an_unstarted_lease_expires_and_is_retried(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  world->now_us += (int64_t)lease_ms_default * 1000 - 1;
  world_tick(world);
  assert_int_equal(world_task(world, &assign->task_id).state, TASK_LEASED);
  world->now_us++;
  world_tick(world);
  struct task task = world_task(world, &assign->task_id);
  assert_true(task.state == TASK_WAITING && !task.effect_uncertain && task.attempt_count == 1);
  assert_int_equal(act(world, COMMAND_START, assign).status, STATUS_LEASE_LOST);
}

static void one_attempt_runs_once_also_when_the_worker_dies(void **context) {
  struct world *world = *context;
  struct command command = world_submit(world, "k");
  command.as.submit.max_attempts = 1;
  command.as.submit.recovery_safety = RECOVERY_IDEMPOTENT;
  world_identify(world, &command, "k");
  struct answer accepted = world_do(world, &command);
  (void)world_hello(world, 1, 1);
  (void)act(world, COMMAND_START, world_take(world, MAIL_ASSIGN, 1));
  world_bye(world, 1);
  (void)world_hello(world, 2, 1);
  world_advance_ms(world, 3600000);
  assert_null(world_take(world, MAIL_ASSIGN, 0));
  struct task task = world_task(world, &accepted.as.task.id);
  assert_true(task.state == TASK_NEEDS_REVIEW && task.effect_uncertain && task.attempt_count == 1);
}

static void released_attempts_come_back(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  struct command release = world_ref(world, COMMAND_RELEASE, assign);
  struct answer released = world_do(world, &release);
  assert_int_equal(released.as.worker.disposition, DECISION_UNSTARTED_RELEASED);
  assert_int_equal(released.as.worker.task_state, TASK_WAITING);
  assert_true(world_do(world, &release).as.worker.deduplicated);
  world_advance_ms(world, 500);
  assert_non_null(world_take(world, MAIL_ASSIGN, 1));
}

/* ---- restart ---- */

static void a_restart_gives_leases_back_in_full(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  struct push copy = *assign;
  (void)act(world, COMMAND_START, assign);
  world->now_us += (int64_t)lease_ms_default * 1000 - 1;
  world_restart(world);
  world->now_us += (int64_t)lease_ms_default * 1000 - 1; /* counted from node.started */
  world_tick(world);
  assert_int_equal(world_task(world, &copy.task_id).state, TASK_RUNNING);
  assert_int_equal(finish(world, &copy, OUTCOME_SUCCEEDED, false).as.worker.task_state, TASK_SUCCEEDED);
}

static void a_restart_keeps_the_retry_time(void **context) {
  struct world *world = *context;
  (void)submit(world, "k");
  (void)world_hello(world, 1, 1);
  const struct push *assign = world_take(world, MAIL_ASSIGN, 1);
  struct id task_id = assign->task_id;
  (void)act(world, COMMAND_START, assign);
  int64_t available_at = finish(world, assign, OUTCOME_FAILED, true).as.worker.available_at;
  world->now_us += 100000;
  world_restart(world);
  assert_int_equal(world_task(world, &task_id).available_at, available_at);
  (void)world_hello(world, 1, 1);
  world->now_us = available_at - 1;
  world_tick(world);
  assert_null(world_take(world, MAIL_ASSIGN, 0));
  world->now_us = available_at;
  world_tick(world);
  assert_non_null(world_take(world, MAIL_ASSIGN, 1));
}

static void a_submission_and_its_lease_share_a_commit(void **context) {
  struct world *world = *context;
  (void)world_hello(world, 1, 1);
  uint64_t before = journal_last_seq(world->journal);
  struct journal_stats stats, after;
  journal_stats(world->journal, &stats);
  struct answer accepted = submit(world, "k");
  journal_stats(world->journal, &after);
  assert_int_equal(accepted.as.task.state, TASK_WAITING); /* pinned to its own last event */
  assert_int_equal(accepted.as.task.revision, 1);
  assert_int_equal(journal_last_seq(world->journal) - before, 2);
  assert_int_equal(after.commits - stats.commits, 1);
  assert_non_null(world_take(world, MAIL_ASSIGN, 1));
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(a_safe_retry_from_submission_to_success),
      ROW(the_same_key_gives_the_first_answer),
      ROW(sixty_four_at_once_make_one_task),
      ROW(a_refused_submission_leaves_no_identity),
      ROW(scope_and_namespace_hide_what_is_outside),
      ROW(repeats_of_start_and_finish),
      ROW(an_old_receipt_says_waiting_after_success),
      ROW(reports_without_authority_are_evidence),
      ROW(an_attempt_keeps_so_many_reports),
      ROW(another_attempt_has_its_own_reports),
      ROW(a_report_needs_a_start_grant),
      ROW(another_application_cannot_touch_an_attempt),
      ROW(a_worker_that_renews_never_loses_its_lease),
      ROW(an_unstarted_lease_expires_and_is_retried),
      ROW(one_attempt_runs_once_also_when_the_worker_dies),
      ROW(released_attempts_come_back),
      ROW(a_restart_gives_leases_back_in_full),
      ROW(a_restart_keeps_the_retry_time),
      ROW(a_submission_and_its_lease_share_a_commit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
