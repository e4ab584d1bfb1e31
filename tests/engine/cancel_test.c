/* Cancel in every state, racing with everything, and what the worker is told: always one truthful outcome. */
#include "engine/world.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "engine/internal.h"

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

static struct answer cancel(struct world *world, const struct id *task_id, const char *key) {
  struct command command = world_cancel(world, task_id, key);
  return world_do(world, &command);
}

static struct answer act(struct world *world, enum command_kind kind, const struct push *assign) {
  struct command command = world_ref(world, kind, assign);
  return world_do(world, &command);
}

static struct task submit(struct world *world, enum recovery_safety safety) {
  struct command command = world_submit(world, "k");
  command.as.submit.recovery_safety = safety;
  world_identify(world, &command, "k");
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  return answer.as.task;
}

/* Session 1 works on it; *ret_push is the newest claim. With uncertain an attempt before was never accounted for. */
static struct id reach(struct world *world, enum task_state state, bool uncertain, struct push *ret_push) {
  struct id id = submit(world, uncertain ? RECOVERY_IDEMPOTENT : RECOVERY_RECONCILE_ONLY).id;
  if (state == TASK_WAITING && !uncertain) return id;
  (void)world_hello(world, 1, 1);
  *ret_push = *world_take(world, MAIL_ASSIGN, 1);
  if (uncertain) {
    world_start(world, ret_push);
    assert_int_equal(world_report(world, ret_push, OUTCOME_UNKNOWN, false).task_state, TASK_WAITING);
    if (state == TASK_WAITING) return id;
    world_advance_ms(world, 500);
    *ret_push = *world_take(world, MAIL_ASSIGN, 1);
  }
  if (state == TASK_LEASED) return id;
  world_start(world, ret_push);
  switch (state) {
    case TASK_NEEDS_REVIEW:
      world_advance_ms(world, lease_ms_default);
      break;
    case TASK_SUCCEEDED:
      (void)world_report(world, ret_push, OUTCOME_SUCCEEDED, false);
      break;
    case TASK_FAILED:
      (void)world_report(world, ret_push, OUTCOME_FAILED, false);
      break;
    case TASK_CANCELLED:
      assert_int_equal(cancel(world, &id, "before").status, STATUS_OK);
      (void)world_report(world, ret_push, OUTCOME_CANCELLED, false);
      break;
    default:
      break;
  }
  (void)world_take(world, MAIL_ENDED, 0), (void)world_take(world, MAIL_CANCEL, 0);
  return id;
}

/* ---- the table of states ---- */

static void the_effect_by_state(void **context) {
  (void)context;
  static const struct {
    enum task_state from;
    bool uncertain;
    enum status status;
    enum task_state to;
    enum mail_kind told; /* 0: nothing */
  } rows[] = {
      {TASK_WAITING, false, STATUS_OK, TASK_CANCELLED, 0},
      {TASK_WAITING, true, STATUS_OK, TASK_NEEDS_REVIEW, 0},
      {TASK_LEASED, false, STATUS_OK, TASK_CANCELLED, MAIL_ENDED},
      {TASK_LEASED, true, STATUS_OK, TASK_NEEDS_REVIEW, MAIL_ENDED},
      {TASK_RUNNING, false, STATUS_OK, TASK_RUNNING, MAIL_CANCEL},
      {TASK_RUNNING, true, STATUS_OK, TASK_RUNNING, MAIL_CANCEL},
      {TASK_NEEDS_REVIEW, false, STATUS_OK, TASK_NEEDS_REVIEW, 0},
      {TASK_SUCCEEDED, false, STATUS_STATE_CONFLICT, TASK_SUCCEEDED, 0},
      {TASK_SUCCEEDED, true, STATUS_STATE_CONFLICT, TASK_SUCCEEDED, 0},
      {TASK_FAILED, false, STATUS_STATE_CONFLICT, TASK_FAILED, 0},
      {TASK_CANCELLED, false, STATUS_STATE_CONFLICT, TASK_CANCELLED, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct world *world = malloc(sizeof *world);
    struct push push;
    world_open(world);
    struct id id = reach(world, rows[i].from, rows[i].uncertain, &push);
    struct task before = world_task(world, &id);
    assert_int_equal(before.state, rows[i].from);
    uint64_t seq = journal_last_seq(world->journal);
    struct answer answer = cancel(world, &id, "key");
    struct task after = world_task(world, &id);
    assert_int_equal(answer.status, rows[i].status);
    assert_int_equal(after.state, rows[i].to);
    if (rows[i].status == STATUS_OK) {
      assert_true(answer.applied && answer.created && !answer.deduplicated && !id_is_zero(&answer.audit_id));
      assert_int_equal(after.revision, before.revision + 1); /* one, also where attempt and task end */
      assert_int_equal(after.cancel_requested_at, world->now_us);
      assert_int_equal(answer.as.task.state, rows[i].to);
      assert_int_equal(answer.as.task.revision, after.revision);
      assert_int_equal(task_completed_at(&after) != 0, rows[i].to == TASK_CANCELLED);
      assert_int_equal(after.effect_uncertain, before.effect_uncertain);
    } else {
      assert_int_equal(journal_last_seq(world->journal), seq); /* no event, so no audit and no receipt either */
      assert_int_equal(after.revision, before.revision);
    }
    for (enum mail_kind kind = MAIL_CANCEL; kind <= MAIL_ENDED; kind++) {
      const struct push *told = world_take(world, kind, 0);
      assert_int_equal(told != NULL, kind == rows[i].told);
      if (told == NULL) continue;
      assert_true(id_equal(&told->task_id, &id) && id_equal(&told->attempt_id, &push.attempt_id));
      if (kind == MAIL_ENDED) assert_int_equal(told->ended_by, ENDED_REVOKED);
      if (kind == MAIL_CANCEL) assert_true(bytes_equal(told->reason, bytes_text("no longer wanted")));
    }
    if (rows[i].from == TASK_LEASED) { /* its later start is refused, and its slot is free */
      assert_int_equal(act(world, COMMAND_START, &push).status, STATUS_LEASE_LOST);
      (void)world_submitted(world, "next");
      assert_non_null(world_take(world, MAIL_ASSIGN, 1));
    }
    world_check(world);
    world_close(world);
    free(world);
  }
}

/* ---- the report decides ---- */

static void the_report_decides_about_a_running_task(void **context) {
  (void)context;
  enum { SILENCE = OUTCOME_ENUM_END };
  static const struct {
    bool uncertain; /* then IDEMPOTENT too */
    int outcome;
    bool retryable;
    enum task_state to;
    enum decision decision;
  } rows[] = {
      {false, OUTCOME_SUCCEEDED, false, TASK_SUCCEEDED, DECISION_SUCCEEDED},
      {false, OUTCOME_CANCELLED, false, TASK_CANCELLED, DECISION_CANCEL_CONFIRMED},
      {false, OUTCOME_FAILED, false, TASK_FAILED, DECISION_NON_RETRYABLE_FAILURE},
      {false, OUTCOME_FAILED, true, TASK_FAILED, DECISION_CANCEL_REQUESTED},
      {false, OUTCOME_UNKNOWN, false, TASK_NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED},
      {false, SILENCE, false, TASK_NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED},
      {true, OUTCOME_SUCCEEDED, false, TASK_SUCCEEDED, DECISION_SUCCEEDED},
      {true, OUTCOME_CANCELLED, false, TASK_NEEDS_REVIEW, DECISION_CANCEL_CONFIRMED},
      {true, OUTCOME_FAILED, false, TASK_NEEDS_REVIEW, DECISION_NON_RETRYABLE_FAILURE},
      {true, OUTCOME_FAILED, true, TASK_NEEDS_REVIEW, DECISION_CANCEL_REQUESTED},
      {true, OUTCOME_UNKNOWN, false, TASK_NEEDS_REVIEW, DECISION_CANCEL_REQUESTED},
      {true, SILENCE, false, TASK_NEEDS_REVIEW, DECISION_CANCEL_REQUESTED},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct world *world = malloc(sizeof *world);
    struct push push;
    world_open(world);
    struct id id = reach(world, TASK_RUNNING, rows[i].uncertain, &push);
    if (i % 2 == 0) world_restart(world); /* it is on record */
    assert_int_equal(cancel(world, &id, "key").status, STATUS_OK);
    if (i % 3 == 0) world_restart(world);
    if (rows[i].outcome == SILENCE) {
      world_advance_ms(world, lease_ms_default);
    } else {
      struct worker_result result = world_report(world, &push, (enum outcome)rows[i].outcome, rows[i].retryable);
      assert_true(result.applied);
      assert_int_equal(result.disposition, rows[i].decision);
    }
    struct task task = world_task(world, &id);
    assert_int_equal(task.state, rows[i].to);
    assert_int_equal(task.effect_uncertain, rows[i].to == TASK_NEEDS_REVIEW);
    world_advance_ms(world, 3600000); /* and it stays so: nothing is tried again */
    assert_int_equal(world_task(world, &id).attempt_count, task.attempt_count);
    assert_int_equal(world_task(world, &id).state, rows[i].to);
    world_check(world);
    world_close(world);
    free(world);
  }
}

static void cancelled_is_no_report_without_a_request(void **context) {
  struct world *world = *context;
  struct push push;
  struct id id = reach(world, TASK_RUNNING, false, &push);
  struct command report = world_finish(world, &push, OUTCOME_CANCELLED, false);
  assert_int_equal(world_do(world, &report).status, STATUS_STATE_CONFLICT);
  assert_int_equal(cancel(world, &id, "key").status, STATUS_OK);
  assert_int_equal(world_do(world, &report).as.worker.task_state, TASK_CANCELLED); /* the refusal left no receipt */
}

/* ---- repeats and second requests ---- */

static void a_task_keeps_so_many_requests(void **context) {
  struct world *world = *context;
  struct push push;
  char key[16];
  struct id id = reach(world, TASK_RUNNING, false, &push);
  for (int i = 0; i < cancel_requests_max; i++) {
    (void)snprintf(key, sizeof key, "k%d", i);
    struct answer answer = cancel(world, &id, key);
    assert_true(answer.status == STATUS_OK && answer.applied == (i == 0));
  }
  for (int round = 0; round < 2; round++) {
    uint64_t end = journal_last_seq(world->journal);
    assert_int_equal(cancel(world, &id, "one more").status, STATUS_STATE_CONFLICT);
    assert_true(cancel(world, &id, key).deduplicated);
    assert_int_equal(journal_last_seq(world->journal), end);
    world_restart(world);
  }
}

static void a_second_cancel_applies_nothing(void **context) {
  (void)context;
  static const enum task_state states[] = {TASK_RUNNING, TASK_NEEDS_REVIEW};
  for (size_t i = 0; i < 2; i++) {
    struct world *world = malloc(sizeof *world);
    struct push push;
    enum event_type types[16];
    world_open(world);
    struct id id = reach(world, states[i], false, &push);
    struct answer first = cancel(world, &id, "one");
    uint64_t seq = journal_last_seq(world->journal);
    int64_t requested_at = world->now_us;
    world_advance_ms(world, 5);
    struct answer second = cancel(world, &id, "two");
    assert_true(second.status == STATUS_OK && !second.applied && !second.deduplicated);
    assert_int_equal(second.as.task.revision, first.as.task.revision);
    assert_false(id_equal(&second.audit_id, &first.audit_id));
    assert_int_equal(world_types_after(world, seq, types, 16), 2);
    assert_true(types[0] == EVENT_task_cancel_requested && types[1] == EVENT_audit_recorded);
    assert_int_equal(world_count(world, MAIL_CANCEL, 0), states[i] == TASK_RUNNING ? 1 : 0); /* told once */
    assert_int_equal(world_task(world, &id).cancel_requested_at, requested_at);
    if (states[i] == TASK_RUNNING) (void)world_report(world, &push, OUTCOME_CANCELLED, false);
    seq = journal_last_seq(world->journal);
    world_restart(world);
    seq++;                                           /* node.started */
    struct answer again = cancel(world, &id, "one"); /* the pinned answers, though the task may have ended */
    assert_true(again.status == STATUS_OK && again.deduplicated && again.applied && id_equal(&again.audit_id, &first.audit_id));
    assert_int_equal(again.as.task.state, states[i]);
    assert_int_equal(again.as.task.revision, first.as.task.revision);
    again = cancel(world, &id, "two");
    assert_true(again.status == STATUS_OK && again.deduplicated && !again.applied &&
                id_equal(&again.audit_id, &second.audit_id));
    assert_int_equal(again.as.task.state, states[i]);
    assert_int_equal(journal_last_seq(world->journal), seq);
    struct command other = world_cancel(world, &id, "one");
    other.as.cancel.reason = bytes_text("another reason");
    world_identify(world, &other, "one");
    assert_int_equal(world_do(world, &other).status, STATUS_IDEMPOTENCY_CONFLICT);
    world_check(world);
    world_close(world);
    free(world);
  }
}

static void a_repeat_of_an_ending_cancel_shows_the_end(void **context) {
  struct world *world = *context;
  struct push push;
  struct id id = reach(world, TASK_LEASED, false, &push);
  struct answer first = cancel(world, &id, "one");
  struct answer twins[2];
  struct command commands[2] = {world_cancel(world, &id, "one"), world_cancel(world, &id, "two")};
  world_do_all(world, commands, twins, 2);
  assert_true(twins[0].deduplicated && twins[0].applied && twins[0].as.task.state == TASK_CANCELLED);
  assert_int_equal(twins[0].as.task.revision, first.as.task.revision);
  assert_int_equal(task_completed_at(&twins[0].as.task), task_completed_at(&first.as.task));
  assert_int_equal(twins[1].status, STATUS_STATE_CONFLICT);
}

static void refused_where_it_does_not_belong(void **context) {
  struct world *world = *context;
  struct push push;
  struct id id = reach(world, TASK_WAITING, false, &push);
  struct command command = world_cancel(world, &id, "key");
  command.as.cancel.expected_revision = 7;
  world_identify(world, &command, "key");
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_STATE_CONFLICT);
  assert_string_equal(answer.fault.field, "/expected_revision");
  command.as.cancel.expected_revision = 1; /* the refusal left no receipt: the key is free */
  world_identify(world, &command, "key");
  command.who = world->narrow;
  assert_int_equal(world_do(world, &command).status, STATUS_NOT_FOUND);
  command.who = world->who;
  memset(command.who.namespace_id.bytes, 3, id_bytes);
  assert_int_equal(world_do(world, &command).status, STATUS_NOT_FOUND);
  command.who = world->other; /* another application of the namespace may */
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
}

/* ---- races within one tick ---- */

static bool told_once(struct world *world) {
  return world_count(world, MAIL_CANCEL, 0) + world_count(world, MAIL_ENDED, 0) == 1;
}

/* Both orders of cancel and what the worker asks at the same instant. */
static void races_with_the_worker(void **context) {
  (void)context;
  static const struct {
    enum command_kind kind;
    enum task_state from;
    bool cancel_first;
    enum status cancelled, other;
    enum task_state to;
  } rows[] = {
      {COMMAND_START, TASK_LEASED, true, STATUS_OK, STATUS_LEASE_LOST, TASK_CANCELLED},
      {COMMAND_START, TASK_LEASED, false, STATUS_OK, STATUS_OK, TASK_RUNNING},
      {COMMAND_RELEASE, TASK_LEASED, true, STATUS_OK, STATUS_LEASE_LOST, TASK_CANCELLED},
      {COMMAND_RELEASE, TASK_LEASED, false, STATUS_OK, STATUS_OK, TASK_CANCELLED},
      {COMMAND_RENEW, TASK_LEASED, true, STATUS_OK, STATUS_LEASE_LOST, TASK_CANCELLED},
      {COMMAND_RENEW, TASK_RUNNING, true, STATUS_OK, STATUS_OK, TASK_RUNNING},
      {COMMAND_FINISH, TASK_RUNNING, true, STATUS_OK, STATUS_OK, TASK_SUCCEEDED},
      {COMMAND_FINISH, TASK_RUNNING, false, STATUS_STATE_CONFLICT, STATUS_OK, TASK_SUCCEEDED},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct world *world = malloc(sizeof *world);
    struct push push;
    struct answer answers[2];
    world_open(world);
    struct id id = reach(world, rows[i].from, false, &push);
    struct command command = rows[i].kind == COMMAND_FINISH ? world_finish(world, &push, OUTCOME_SUCCEEDED, false)
                                                            : world_ref(world, rows[i].kind, &push);
    unsigned at = rows[i].cancel_first ? 0 : 1;
    struct command commands[2];
    commands[at] = world_cancel(world, &id, "key");
    commands[1 - at] = command;
    world_do_all(world, commands, answers, 2);
    assert_int_equal(answers[at].status, rows[i].cancelled);
    assert_int_equal(answers[1 - at].status, rows[i].other);
    assert_int_equal(world_task(world, &id).state, rows[i].to);
    if (rows[i].from == TASK_LEASED && rows[i].kind != COMMAND_RELEASE) assert_true(told_once(world));
    assert_null(world_take(world, MAIL_ASSIGN, 0)); /* never given out again */
    world_advance_ms(world, 5000);
    assert_null(world_take(world, MAIL_ASSIGN, 0));
    world_check(world);
    world_close(world);
    free(world);
  }
}

/* A claim and a cancel in one tick: claims come last, so the cancel is never too late. */
static void races_with_the_claim(void **context) {
  struct world *world = *context;
  struct task task = submit(world, RECOVERY_RECONCILE_ONLY);
  struct command commands[2] = {world_hello_command(world, 1, 5), world_cancel(world, &task.id, "key")};
  struct answer answers[2];
  world_do_all(world, commands, answers, 2);
  assert_true(answers[0].status == STATUS_OK && answers[1].status == STATUS_OK);
  assert_int_equal(world_task(world, &task.id).state, TASK_CANCELLED);
  assert_null(world_take(world, MAIL_ASSIGN, 0));
}

/* The task's time comes in the very tick of the cancel: time was first. */
static void races_with_the_clock(void **context) {
  struct world *world = *context;
  struct push push;
  struct id id = reach(world, TASK_RUNNING, false, &push);
  world->now_us += (int64_t)lease_ms_default * 1000;
  struct answer answer = cancel(world, &id, "key");
  assert_int_equal(answer.status, STATUS_OK);
  assert_int_equal(answer.as.task.state, TASK_NEEDS_REVIEW);
  assert_int_equal(answer.as.task.revision, 5); /* needs review 4, then the request */
  struct command late = world_finish(world, &push, OUTCOME_CANCELLED, false);
  assert_true(world_do(world, &late).as.worker.evidence);
  assert_int_equal(world_task(world, &id).state, TASK_NEEDS_REVIEW);
}

/* Fifty at once under as many keys: one is applied, all are told the truth. */
static void fifty_at_once(void **context) {
  struct world *world = *context;
  struct push push;
  struct command commands[50];
  struct answer answers[50];
  struct id id = reach(world, TASK_RUNNING, false, &push);
  for (unsigned i = 0; i < 50; i++) {
    const char key[] = {'k', (char)('0' + i), 0};
    commands[i] = world_cancel(world, &id, key);
  }
  world_do_all(world, commands, answers, 50);
  for (unsigned i = 0; i < 50; i++) {
    assert_int_equal(answers[i].status, STATUS_OK);
    assert_int_equal(answers[i].applied, i == 0);
    assert_int_equal(answers[i].as.task.revision, 4);
    for (unsigned j = 0; j < i; j++) assert_false(id_equal(&answers[i].audit_id, &answers[j].audit_id));
  }
  assert_int_equal(world_count(world, MAIL_CANCEL, 1), 1);
}

/* A worker that was away when the cancel came is told when it is back. */
static void a_worker_that_comes_back_is_told(void **context) {
  struct world *world = *context;
  struct push push;
  struct id id = reach(world, TASK_RUNNING, false, &push);
  world_bye(world, 1);
  assert_int_equal(cancel(world, &id, "key").status, STATUS_OK);
  assert_int_equal(cancel(world, &id, "second").status, STATUS_OK);
  assert_int_equal(world_count(world, MAIL_CANCEL, 0), 0);
  for (unsigned round = 0; round < 2; round++) {
    (void)world_hello(world, 1, 1);
    const struct push *told = world_take(world, MAIL_CANCEL, 1);
    assert_non_null(told);
    assert_true(id_equal(&told->task_id, &id) && id_equal(&told->attempt_id, &push.attempt_id));
    assert_true(bytes_equal(told->reason, bytes_text("no longer wanted")));
    assert_null(world_take(world, MAIL_CANCEL, 1));
    world_restart(world);
  }
  assert_int_equal(world_report(world, &push, OUTCOME_CANCELLED, false).task_state, TASK_CANCELLED);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_effect_by_state),
      cmocka_unit_test(the_report_decides_about_a_running_task),
      ROW(cancelled_is_no_report_without_a_request),
      cmocka_unit_test(a_second_cancel_applies_nothing),
      ROW(a_task_keeps_so_many_requests),
      ROW(a_repeat_of_an_ending_cancel_shows_the_end),
      ROW(refused_where_it_does_not_belong),
      cmocka_unit_test(races_with_the_worker),
      ROW(races_with_the_claim),
      ROW(races_with_the_clock),
      ROW(fifty_at_once),
      ROW(a_worker_that_comes_back_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
