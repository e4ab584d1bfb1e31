/* What people do to a task: review and manual retry, their audit, and what stays as it was. */
#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"
#include "state/history.h"

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

static struct answer review(struct world *world, const struct id *task_id, uint64_t revision, enum outcome outcome,
                            const char *key) {
  struct command command = world_review(world, task_id, revision, outcome, key);
  return world_do(world, &command);
}

static struct answer retry(struct world *world, const struct id *task_id, uint64_t revision, const char *key) {
  struct command command = world_retry(world, task_id, revision, key);
  return world_do(world, &command);
}

/* A task in NEEDS_REVIEW, revision 4: its worker fell silent. */
static struct push doubtful(struct world *world) {
  (void)world_submitted(world, "doubtful");
  struct push push = *world_assigned(world, 1);
  world_start(world, &push);
  world_advance_ms(world, lease_ms_default);
  struct task task = world_task(world, &push.task_id);
  assert_true(task.state == TASK_NEEDS_REVIEW && task.effect_uncertain && task.revision == 4);
  world_forget(world);
  return push;
}

/* A task that failed for good, revision 4. */
static struct task failed(struct world *world, const char *key) {
  struct task task = world_submitted(world, key);
  struct push push = *world_assigned(world, 2);
  world_start(world, &push);
  assert_int_equal(world_report(world, &push, OUTCOME_FAILED, false).task_state, TASK_FAILED);
  world_bye(world, 2);
  world_forget(world);
  return world_task(world, &task.id);
}

static struct event read_event(struct journal_reader *reader, struct history *history, uint64_t seq) {
  struct event event;
  assert_int_equal(journal_reader_refresh(reader), STATUS_OK);
  assert_int_equal(history_event(history, record_source_of_reader(reader), seq, &event), STATUS_OK);
  return event;
}

/* ---- review ---- */

static void a_review_settles_the_doubt(void **context) {
  (void)context;
  static const enum outcome outcomes[] = {OUTCOME_SUCCEEDED, OUTCOME_FAILED};
  for (size_t i = 0; i < 2; i++) {
    struct world *world = malloc(sizeof *world);
    enum event_type types[8];
    world_open(world);
    struct push push = doubtful(world);
    world_advance_ms(world, 777);
    uint64_t seq = journal_last_seq(world->journal);
    struct answer answer = review(world, &push.task_id, 4, outcomes[i], "r");
    assert_true(answer.status == STATUS_OK && answer.created && !answer.deduplicated && !id_is_zero(&answer.audit_id));
    struct task task = world_task(world, &push.task_id);
    assert_int_equal(task.state, outcomes[i] == OUTCOME_SUCCEEDED ? TASK_SUCCEEDED : TASK_FAILED);
    assert_int_equal(task.revision, 5);
    assert_false(task.effect_uncertain);
    assert_true(task_completed_at(&task) == world->now_us && task.updated_at == world->now_us);
    assert_int_equal(task_result_seq(&task), seq + 1);
    assert_int_equal(task_error_seq(&task), 0);
    assert_int_equal(task.attempt_count, 1);
    assert_memory_equal(&answer.as.task, &task, sizeof task);
    assert_int_equal(world_types_after(world, seq, types, 8), 2);
    assert_true(types[0] == EVENT_task_reviewed && types[1] == EVENT_audit_recorded);
    assert_int_equal(world_get_queue(world, &world->queue_id).counts[TASK_NEEDS_REVIEW], 0);
    world_check(world);
    world_close(world);
    free(world);
  }
}

static void a_review_needs_the_present_revision(void **context) {
  struct world *world = *context;
  struct push push = doubtful(world);
  uint64_t seq = journal_last_seq(world->journal);
  static const uint64_t stale[] = {1, 3, 5, UINT64_MAX};
  for (size_t i = 0; i < sizeof stale / sizeof stale[0]; i++) {
    struct answer answer = review(world, &push.task_id, stale[i], OUTCOME_FAILED, "r");
    assert_int_equal(answer.status, STATUS_STATE_CONFLICT);
    assert_string_equal(answer.fault.field, "/expected_revision");
  }
  assert_int_equal(journal_last_seq(world->journal), seq);
  assert_int_equal(review(world, &push.task_id, 4, OUTCOME_FAILED, "r").status,
                   STATUS_OK); /* the same key: nothing was kept of it */
  assert_int_equal(review(world, &push.task_id, 5, OUTCOME_FAILED, "r2").status, STATUS_STATE_CONFLICT); /* it is over */
}

static void only_what_needs_review_is_reviewed(void **context) {
  struct world *world = *context;
  struct task waiting = world_submitted(world, "k");
  assert_int_equal(review(world, &waiting.id, 1, OUTCOME_FAILED, "r").status, STATUS_STATE_CONFLICT);
  struct push push = *world_assigned(world, 1);
  assert_int_equal(review(world, &waiting.id, 2, OUTCOME_FAILED, "r").status, STATUS_STATE_CONFLICT);
  world_start(world, &push);
  assert_int_equal(review(world, &waiting.id, 3, OUTCOME_FAILED, "r").status, STATUS_STATE_CONFLICT);
  (void)world_report(world, &push, OUTCOME_SUCCEEDED, false);
  assert_int_equal(review(world, &waiting.id, 4, OUTCOME_FAILED, "r").status, STATUS_STATE_CONFLICT);
  struct id nobody = {{9}};
  assert_int_equal(review(world, &nobody, 4, OUTCOME_FAILED, "r").status, STATUS_NOT_FOUND);
  struct command command = world_review(world, &waiting.id, 4, OUTCOME_FAILED, "r");
  command.who = world->narrow;
  assert_int_equal(world_do(world, &command).status, STATUS_NOT_FOUND); /* never telling which */
}

/* The old attempt stays UNKNOWN as it was; the review names it; a late report is evidence and changes nothing. */
static void a_review_rewrites_nothing(void **context) {
  struct world *world = *context;
  struct push push = doubtful(world);
  struct history *history = history_new();
  struct journal_reader *reader;
  const struct attempt_document *attempts;
  uint32_t count;
  assert_int_equal(journal_reader_new(world->journal, &reader), STATUS_OK);
  assert_int_equal(review(world, &push.task_id, 4, OUTCOME_SUCCEEDED, "r").status, STATUS_OK);
  struct task task = world_task(world, &push.task_id);
  struct event event = read_event(reader, history, task_result_seq(&task));
  assert_int_equal(event.type, EVENT_task_reviewed);
  assert_true(id_equal(&event.body.task_reviewed.attempt_id, &push.attempt_id));
  assert_true(bytes_equal(event.body.task_reviewed.result, bytes_text("{\"confirmed\":true,\"sequence\":9007199254740993}")));

  struct command late = world_finish(world, &push, OUTCOME_FAILED, false);
  struct answer answer = world_do(world, &late);
  assert_true(answer.status == STATUS_OK && answer.as.worker.evidence && !answer.as.worker.applied);
  assert_int_equal(answer.as.worker.task_state, TASK_SUCCEEDED);
  assert_true(world_do(world, &late).as.worker.deduplicated);
  struct task after = world_task(world, &push.task_id);
  assert_int_equal(after.revision, 5);
  after.last_seq = task.last_seq; /* the evidence stands in its stream, and that is all */
  assert_memory_equal(&after, &task, sizeof task);

  after = world_task(world, &push.task_id);
  assert_int_equal(journal_reader_refresh(reader), STATUS_OK);
  assert_int_equal(history_attempts(history, record_source_of_reader(reader), &after, &attempts, &count), STATUS_OK);
  assert_int_equal(count, 1);
  assert_int_equal(attempts[0].state, ATTEMPT_UNKNOWN);
  assert_int_equal(attempts[0].ended_by, ENDED_LEASE_EXPIRED);
  assert_int_equal(attempts[0].outcome, OUTCOME_NONE);
  assert_int_equal(attempts[0].decision, DECISION_RECONCILIATION_REQUIRED);
  const struct evidence_document *evidence;
  assert_int_equal(history_evidence(history, record_source_of_reader(reader), &after, &evidence, &count), STATUS_OK);
  assert_int_equal(count, 1);
  assert_int_equal(evidence[0].evidence.reason, EVIDENCE_TASK_ENDED);
  journal_reader_free(reader);
  history_free(history);
}

static void a_repeated_review_gives_the_first_answer(void **context) {
  struct world *world = *context;
  struct push push = doubtful(world);
  struct answer first = review(world, &push.task_id, 4, OUTCOME_FAILED, "r");
  assert_int_equal(retry(world, &push.task_id, 5, "t").status, STATUS_OK); /* life goes on */
  world_restart(world);
  uint64_t seq = journal_last_seq(world->journal);
  struct answer again = review(world, &push.task_id, 4, OUTCOME_FAILED, "r");
  assert_true(again.status == STATUS_OK && again.deduplicated && !again.created);
  assert_true(id_equal(&again.audit_id, &first.audit_id));
  assert_int_equal(again.as.task.state, TASK_FAILED);
  assert_int_equal(again.as.task.revision, 5);
  assert_false(again.as.task.retried); /* as it stood then */
  assert_int_equal(task_completed_at(&again.as.task), task_completed_at(&first.as.task));
  assert_int_equal(journal_last_seq(world->journal), seq);
  struct answer other = review(world, &push.task_id, 4, OUTCOME_SUCCEEDED, "r");
  assert_int_equal(other.status, STATUS_IDEMPOTENCY_CONFLICT);
}

/* Two people at the same instant: one is heard. */
static void two_reviews_at_once(void **context) {
  struct world *world = *context;
  struct push push = doubtful(world);
  struct command commands[3] = {world_review(world, &push.task_id, 4, OUTCOME_FAILED, "a"),
                                world_review(world, &push.task_id, 4, OUTCOME_SUCCEEDED, "b"),
                                world_review(world, &push.task_id, 4, OUTCOME_FAILED, "a")};
  struct answer answers[3];
  world_do_all(world, commands, answers, 3);
  assert_true(answers[0].status == STATUS_OK && answers[0].created);
  assert_int_equal(answers[1].status, STATUS_STATE_CONFLICT);
  assert_true(answers[2].status == STATUS_OK && answers[2].deduplicated &&
              id_equal(&answers[2].audit_id, &answers[0].audit_id));
  assert_int_equal(world_task(world, &push.task_id).state, TASK_FAILED);
}

static void a_cancel_on_record_leaves_the_review_to_decide(void **context) {
  struct world *world = *context;
  struct push push = doubtful(world);
  struct command cancel = world_cancel(world, &push.task_id, "c");
  assert_true(world_do(world, &cancel).applied);
  assert_int_equal(review(world, &push.task_id, 4, OUTCOME_SUCCEEDED, "r").status, STATUS_STATE_CONFLICT); /* it is 5 now */
  struct answer answer = review(world, &push.task_id, 5, OUTCOME_SUCCEEDED, "r2");
  assert_true(answer.status == STATUS_OK && answer.as.task.state == TASK_SUCCEEDED && answer.as.task.revision == 6);
  cancel = world_cancel(world, &push.task_id, "c2");
  assert_int_equal(world_do(world, &cancel).status, STATUS_STATE_CONFLICT);
}

/* ---- manual retry ---- */

static void the_child_is_the_same_work_with_new_times(void **context) {
  struct world *world = *context;
  struct command command = world_submit(world, "k");
  command.as.submit.business_key = bytes_text("order-7");
  command.as.submit.concurrency_key = bytes_text("account-7");
  command.as.submit.priority = 7;
  command.as.submit.start_deadline_at = world->now_us + 60000000;
  command.as.submit.recovery_safety = RECOVERY_IDEMPOTENT;
  world_identify(world, &command, "k");
  struct answer accepted = world_do(world, &command);
  struct push push = *world_assigned(world, 1);
  world_start(world, &push);
  (void)world_report(world, &push, OUTCOME_FAILED, false);
  world_bye(world, 1);
  world_advance_ms(world, 90000);
  struct task original = world_task(world, &accepted.as.task.id);

  uint64_t seq = journal_last_seq(world->journal);
  struct answer answer = retry(world, &original.id, original.revision, "t");
  assert_true(answer.status == STATUS_OK && answer.created);
  assert_true(id_equal(&answer.source_task_id, &original.id));
  const struct task *child = &answer.as.task;
  assert_true(child->is_retry && !child->retried && child->state == TASK_WAITING && child->revision == 1 &&
              child->attempt_count == 0);
  assert_true(child->created_at == world->now_us && child->available_at == world->now_us);
  assert_int_equal(child->deadline_at, world->now_us + 60000000);
  assert_int_equal(child->start_deadline_at, 0); /* times are never handed down */
  assert_true(child->max_attempts == original.max_attempts && child->initial_delay_ms == original.initial_delay_ms &&
              child->max_delay_ms == original.max_delay_ms && child->attempt_timeout_ms == original.attempt_timeout_ms &&
              child->priority == 7 && child->recovery_safety == RECOVERY_IDEMPOTENT && child->queue == original.queue &&
              child->application == original.application);
  struct task after = world_task(world, &original.id);
  assert_true(after.retried && after.revision == original.revision && after.state == TASK_FAILED &&
              task_completed_at(&after) == task_completed_at(&original) && after.updated_at == original.updated_at &&
              task_error_seq(&after) == task_error_seq(&original) && after.attempt_count == 1);

  enum event_type types[8];
  assert_int_equal(world_types_after(world, seq, types, 8), 3);
  assert_true(types[0] == EVENT_task_retried && types[1] == EVENT_audit_recorded && types[2] == EVENT_task_accepted);
  struct history *history = history_new();
  struct journal_reader *reader;
  assert_int_equal(journal_reader_new(world->journal, &reader), STATUS_OK);
  struct event event = read_event(reader, history, child->accepted_seq);
  const struct event_task_accepted *texts = &event.body.task_accepted;
  assert_true(bytes_equal(texts->payload, bytes_text("{\"n\":1.10}")) &&
              bytes_equal(texts->business_key, bytes_text("order-7")) &&
              bytes_equal(texts->concurrency_key, bytes_text("account-7")) && bytes_equal(texts->handler, bytes_text("h")) &&
              bytes_equal(texts->handler_version, bytes_text("v1")) && bytes_equal(texts->payload_version, bytes_text("p1")));
  assert_true(id_equal(&texts->retry_of, &original.id) && id_equal(&texts->audit_id, &answer.audit_id));
  event = read_event(reader, history, seq + 2);
  const struct event_audit_recorded *audit = &event.body.audit_recorded;
  char expected[256];
  assert_true(id_equal(&event.stream, &original.id) && bytes_equal(audit->action, bytes_text("task.retry")));
  assert_true(id_equal(&event.common.actor, &world->who.credential_id));
  assert_true(bytes_equal(audit->before, bytes_text("{\"state\":\"FAILED\",\"revision\":\"4\"}")));
  (void)snprintf(expected, sizeof expected,
                 "{\"source_task_id\":\"%s\",\"retry_task_id\":\"%s\",\"safe_to_retry\":true,\"task_timeout_ms\":60000}",
                 id_text(&original.id).text, id_text(&child->id).text);
  assert_true(bytes_equal(audit->after, bytes_text(expected)));
  journal_reader_free(reader);
  history_free(history);
  (void)world_hello(world, 3, 1); /* and it runs like any other */
  struct push again = *world_take(world, MAIL_ASSIGN, 3);
  assert_true(id_equal(&again.task_id, &child->id) && again.task.is_retry);
  world_start(world, &again);
  assert_int_equal(world_report(world, &again, OUTCOME_SUCCEEDED, false).task_state, TASK_SUCCEEDED);
}

static void twenty_four_at_once_make_one_child(void **context) {
  struct world *world = *context;
  struct task original = failed(world, "k");
  struct command commands[24];
  struct answer answers[24];
  char keys[24][8];
  unsigned created = 0, refused = 0;
  for (unsigned i = 0; i < 24; i++) {
    (void)snprintf(keys[i], sizeof keys[i], "t%u", i);
    commands[i] = world_retry(world, &original.id, 4, keys[i]);
  }
  world_do_all(world, commands, answers, 24);
  for (unsigned i = 0; i < 24; i++) {
    created += answers[i].status == STATUS_OK && answers[i].created;
    refused += answers[i].status == STATUS_STATE_CONFLICT;
  }
  assert_true(created == 1 && refused == 23);
  world_restart(world);
  world_do_all(world, commands, answers, 24); /* all again: the one repeats its answer, the others are refused again */
  assert_true(answers[0].status == STATUS_OK && answers[0].deduplicated);
  for (unsigned i = 1; i < 24; i++) assert_int_equal(answers[i].status, STATUS_STATE_CONFLICT);
  assert_int_equal(world_get_queue(world, &world->queue_id).counts[TASK_WAITING], 1);
}

static void a_repeated_retry_gives_the_same_child(void **context) {
  struct world *world = *context;
  struct task original = failed(world, "k");
  struct answer first = retry(world, &original.id, 4, "t");
  struct push push = *world_assigned(world, 1);
  assert_true(id_equal(&push.task_id, &first.as.task.id));
  world_start(world, &push);
  (void)world_report(world, &push, OUTCOME_FAILED, false);
  struct answer further = retry(world, &first.as.task.id, 4, "t"); /* the same key on another task: another operation */
  assert_true(further.status == STATUS_OK && further.created && id_equal(&further.source_task_id, &first.as.task.id));
  world_restart(world);
  struct answer again = retry(world, &original.id, 4, "t");
  assert_true(again.status == STATUS_OK && again.deduplicated && !again.created);
  assert_true(id_equal(&again.as.task.id, &first.as.task.id) && id_equal(&again.audit_id, &first.audit_id));
  assert_true(id_equal(&again.source_task_id, &original.id));
  assert_true(again.as.task.state == TASK_WAITING && again.as.task.revision == 1 && again.as.task.is_retry);
  again = retry(world, &first.as.task.id, 4, "t");
  assert_true(again.deduplicated && id_equal(&again.as.task.id, &further.as.task.id));
  struct command other = world_retry(world, &original.id, 4, "t");
  other.as.retry.task_timeout_ms = 70000;
  world_identify(world, &other, "t");
  assert_int_equal(world_do(world, &other).status, STATUS_IDEMPOTENCY_CONFLICT);
}

static void what_cannot_be_retried(void **context) {
  struct world *world = *context;
  struct task waiting = world_submitted(world, "w");
  assert_int_equal(retry(world, &waiting.id, 1, "t").status, STATUS_STATE_CONFLICT);
  struct push push = *world_assigned(world, 1);
  assert_int_equal(retry(world, &waiting.id, 2, "t").status, STATUS_STATE_CONFLICT);
  world_start(world, &push);
  assert_int_equal(retry(world, &waiting.id, 3, "t").status, STATUS_STATE_CONFLICT);
  (void)world_report(world, &push, OUTCOME_SUCCEEDED, false);
  assert_int_equal(retry(world, &waiting.id, 4, "t").status, STATUS_STATE_CONFLICT);
  world_bye(world, 1);
  world_forget(world);
  push = doubtful(world);
  assert_int_equal(retry(world, &push.task_id, 4, "t").status, STATUS_STATE_CONFLICT); /* review it first */
  world_bye(world, 1);
  struct task over = failed(world, "f");
  assert_int_equal(retry(world, &over.id, 3, "t").status, STATUS_STATE_CONFLICT);
  struct command command = world_retry(world, &over.id, 4, "t");
  command.as.retry.task_timeout_ms = 59999; /* less than the attempt's timeout */
  world_identify(world, &command, "t");
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_INVALID_ARGUMENT);
  assert_string_equal(answer.fault.field, "/task_timeout_ms");
  static const struct {
    int64_t available, start_deadline; /* from now, µs; 0: absent */
    const char *field;
  } rows[] = {
      {-1000001, 0, "/available_at"},           {60000000, 0, "/available_at"},      {0, -1, "/start_deadline_at"},
      {5000000, 4999999, "/start_deadline_at"}, {0, 60000001, "/start_deadline_at"}, {-1000000, 60000000, NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    command = world_retry(world, &over.id, 4, "t");
    command.as.retry.available_at = rows[i].available != 0 ? world->now_us + rows[i].available : 0;
    command.as.retry.start_deadline_at = rows[i].start_deadline != 0 ? world->now_us + rows[i].start_deadline : 0;
    world_identify(world, &command, "t");
    answer = world_do(world, &command);
    assert_int_equal(answer.status, rows[i].field != NULL ? STATUS_INVALID_ARGUMENT : STATUS_OK);
    if (rows[i].field != NULL) assert_string_equal(answer.fault.field, rows[i].field);
  }
}

static void a_cancelled_task_can_be_retried(void **context) {
  struct world *world = *context;
  struct task task = world_submitted(world, "k");
  struct command cancel = world_cancel(world, &task.id, "c");
  assert_int_equal(world_do(world, &cancel).as.task.state, TASK_CANCELLED);
  struct answer answer = retry(world, &task.id, 2, "t");
  assert_true(answer.status == STATUS_OK && answer.as.task.cancel_requested_at == 0); /* the child is wanted */
  (void)world_hello(world, 1, 1);
  assert_true(id_equal(&world_take(world, MAIL_ASSIGN, 1)->task_id, &answer.as.task.id));
}

/* Cancelled, reviewed and retried in one tick, each building on the one before. */
static void a_chain_in_one_tick(void **context) {
  struct world *world = *context;
  struct push push = doubtful(world);
  struct command commands[4] = {world_review(world, &push.task_id, 4, OUTCOME_FAILED, "r"),
                                world_retry(world, &push.task_id, 5, "t"), world_retry(world, &push.task_id, 5, "t"),
                                world_cancel(world, &push.task_id, "c")};
  struct answer answers[4];
  world_do_all(world, commands, answers, 4);
  assert_true(answers[0].status == STATUS_OK && answers[1].status == STATUS_OK && answers[1].created);
  assert_true(answers[2].status == STATUS_OK && answers[2].deduplicated &&
              id_equal(&answers[2].as.task.id, &answers[1].as.task.id));
  assert_true(id_equal(&answers[2].audit_id, &answers[1].audit_id));
  assert_int_equal(answers[3].status, STATUS_STATE_CONFLICT);
}

/* Schedules make tasks later; the rule stands already. */
static void a_task_of_a_schedule_is_not_retried(void **context) {
  struct world *world = *context;
  struct task task = failed(world, "k");
  struct task scheduled = task;
  struct history *history = history_new();
  struct journal_reader *reader;
  assert_int_equal(journal_reader_new(world->journal, &reader), STATUS_OK);
  struct event accepted = read_event(reader, history, task.accepted_seq);
  scheduled.scheduled = true;
  struct command command = world_retry(world, &task.id, 4, "t");
  struct event_list *list = calloc(1, sizeof *list);
  struct fault fault = {0};
  struct decide_env env = {.now_us = world->now_us, .node_id = {{1}}, .operation_id = {{2}}, .next_seq = 99, .new_id = {{3}}};
  enum status status = decide_retry(&scheduled, &accepted.body.task_accepted, state_queue_of(world->engine->state, &task),
                                    state_application_of(world->engine->state, &task), &command, &env, list, &fault);
  assert_int_equal(status, STATUS_STATE_CONFLICT);
  assert_int_equal(list->count, 0);
  free(list);
  journal_reader_free(reader);
  history_free(history);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_review_settles_the_doubt),
      ROW(a_review_needs_the_present_revision),
      ROW(only_what_needs_review_is_reviewed),
      ROW(a_review_rewrites_nothing),
      ROW(a_repeated_review_gives_the_first_answer),
      ROW(two_reviews_at_once),
      ROW(a_cancel_on_record_leaves_the_review_to_decide),
      ROW(the_child_is_the_same_work_with_new_times),
      ROW(twenty_four_at_once_make_one_child),
      ROW(a_repeated_retry_gives_the_same_child),
      ROW(what_cannot_be_retried),
      ROW(a_cancelled_task_can_be_retried),
      ROW(a_chain_in_one_tick),
      ROW(a_task_of_a_schedule_is_not_retried),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
