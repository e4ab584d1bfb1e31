/* Claims, start grants, renewals, reports and ends of attempts: the numbers in their events, and bounds to the microsecond. */
#include "script.h"

static struct world the_world;

static void run(const char *const *lines) { script_run(&the_world, lines); }
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void the_first_lease_never_reaches_past_the_deadlines(void **state) {
  (void)state;
  static const struct {
    const char *submit;
    const char *lease;
    int64_t lasts_ms;
  } cases[] = {
      {"submit timeout=60000", "lease ms=30000", 30000},
      {"submit timeout=60000 attempt=1", "lease ms=60000", 60000},
      {"submit timeout=10001", "lease ms=30000", 10001},
      {"submit timeout=60000 start_by=7", "lease ms=30000", 7},
      {"submit timeout=60000 start_by=30000", "lease ms=30000", 30000},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    RUN(cases[i].submit, cases[i].lease);
    assert_int_equal(the_world.attempt.live_until, world_start_us + cases[i].lasts_ms * us_per_ms);
    assert_int_equal(task_next_timer(&the_world.task, &the_world.attempt, world_start_us), the_world.attempt.live_until);
  }
}

static void a_claim_says_who_and_which(void **state) {
  (void)state;
  RUN("submit attempts=3", "lease", "release", "lease");
  const struct event *event = &the_world.list.events[0];
  const struct event_task_leased *leased = &event->body.task_leased;
  struct id credential_of_worker = world_id(0xA1, 1);
  assert_int_equal(leased->number, 2);
  assert_int_equal(leased->epoch, 2);
  assert_int_equal(leased->lease_ms, 30000);
  assert_true(id_equal(&leased->attempt_id, &the_world.env.new_id));
  assert_true(id_equal(&leased->instance_id, &credential_of_worker));
  assert_true(id_equal(&leased->worker_application_id, &the_world.application.id));
  assert_true(bytes_equal_text(leased->instance_name, "worker-1"));
  assert_true(id_equal(&event->common.actor, &the_world.env.node_id)); /* Orbit's own act */
  assert_true(id_is_zero(&event->common.identity));
}

static void a_start_grant_fixes_the_attempts_end(void **state) {
  (void)state;
  RUN("submit timeout=60000 attempt=10000", "lease", "wait 5000", "start");
  const struct event_task_started *started = &the_world.list.events[0].body.task_started;
  assert_int_equal(started->attempt_deadline_at, world_start_us + 15000 * us_per_ms);
  assert_int_equal(started->lease_until, world_start_us + 30000 * us_per_ms); /* as it was judged */
  assert_int_equal(the_world.attempt.live_until, world_start_us + 15000 * us_per_ms);
  RUN("submit timeout=12000 attempt=10000", "lease", "wait 5000", "start");
  assert_int_equal(the_world.attempt.attempt_deadline_at, the_world.task.deadline_at); /* never past the task's */
}

static void a_start_is_refused_from_the_deadlines_on(void **state) {
  (void)state;
  RUN("submit timeout=10000", "lease", "goto deadline-1", "start -> RUNNING 3");
  RUN("submit timeout=10000", "lease", "goto deadline", "start -> !STATE_CONFLICT");
  RUN("submit timeout=60000 start_by=10", "lease", "goto start_deadline-1", "start -> RUNNING 3");
  RUN("submit timeout=60000 start_by=10", "lease", "goto start_deadline", "start -> !STATE_CONFLICT");
  RUN("submit timeout=60000", "lease ms=5000", "goto lease-1", "start -> RUNNING 3");
  RUN("submit timeout=60000", "lease ms=5000", "goto lease", "start -> !LEASE_LOST");
}

static void renewals_lengthen_up_to_the_bounds(void **state) {
  (void)state;
  static const struct {
    const char *lines[8];
    int64_t until_ms; /* from the beginning */
  } cases[] = {
      {{"submit timeout=60000", "lease ms=30000", "wait 1000", "renew"}, 31000},
      {{"submit timeout=60000", "lease ms=30000", "renew"}, 30000},
      {{"submit timeout=40000 attempt=40000", "lease ms=30000", "wait 20000", "renew"}, 40000},
      {{"submit timeout=60000 start_by=30500", "lease ms=30000", "wait 1000", "renew"}, 30500},
      {{"submit timeout=60000 attempt=10000", "lease ms=8000", "start", "wait 5000", "renew"}, 10000},
      {{"submit timeout=60000 attempt=50000", "lease ms=8000", "start", "wait 5000", "renew"}, 13000},
      {{"submit timeout=60000 start_by=2000 attempt=50000", "lease ms=8000", "start", "wait 1000", "renew"}, 9000},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    run(cases[i].lines);
    if (the_world.attempt.live_until != world_start_us + cases[i].until_ms * us_per_ms) fail_msg("case %zu", i);
    assert_int_equal(the_world.list.count, 0); /* renewals are not events */
  }
}

static void a_renewal_never_shortens(void **state) {
  (void)state;
  RUN("submit timeout=60000 attempt=60000", "lease ms=30000");
  the_world.attempt.lease_ms = 5000;
  int64_t before = the_world.attempt.live_until;
  script_line(&the_world, "renew");
  assert_int_equal(the_world.attempt.live_until, before);
}

static void a_report_carries_what_was_said(void **state) {
  (void)state;
  RUN("submit attempts=2 delay=500/2000", "lease", "start");
  struct command command = world_command(&the_world, COMMAND_FINISH);
  command.as.finish.ref = world_ref(&the_world);
  command.as.finish.report = (struct report){.outcome = OUTCOME_FAILED,
                                             .retryable = true,
                                             .error_code = bytes_text("TEMPORARY_REJECTION"),
                                             .error_message = bytes_text("later"),
                                             .error_details = bytes_text("{\"reason_ref\":\"diagnostics/temporary\"}"),
                                             .identity = world_id(0xF1, 5)};
  world_prepare(&the_world);
  assert_int_equal(
      decide_finish(&the_world.task, &the_world.attempt, &command, &the_world.env, &the_world.list, &the_world.fault),
      STATUS_OK);
  const struct event *event = &the_world.list.events[0];
  const struct event_attempt_result *result = &event->body.attempt_result;
  assert_true(id_equal(&event->common.identity, &command.operation.identity));
  assert_true(id_equal(&event->common.digest, &command.operation.digest));
  assert_true(id_equal(&result->message_id, &command.as.finish.ref.message_id));
  assert_true(id_equal(&result->report_identity, &command.as.finish.report.identity));
  assert_true(result->retryable && result->outcome == OUTCOME_FAILED);
  assert_true(bytes_equal_text(result->error_code, "TEMPORARY_REJECTION"));
  assert_true(bytes_equal_text(result->error_message, "later"));
  assert_true(bytes_equal_text(result->error_details, "{\"reason_ref\":\"diagnostics/temporary\"}"));
  assert_int_equal(result->lease_until, the_world.attempt.live_until);
  const struct event_task_requeued *requeued = &the_world.list.events[1].body.task_requeued;
  assert_in_range(requeued->delay_ms, 250, 500);
  assert_int_equal(requeued->next_available_at, the_world.env.now_us + (int64_t)requeued->delay_ms * us_per_ms);
  assert_int_equal(requeued->attempt_count, 1);
  assert_int_equal(requeued->max_attempts, 2);
  assert_true(id_equal(&requeued->node_id, &the_world.env.node_id));
  assert_true(id_is_zero(&the_world.list.events[1].common.identity));
  world_commit(&the_world);
  assert_int_equal(the_world.task.available_at, requeued->next_available_at);
}

static void evidence_keeps_what_was_said(void **state) {
  (void)state;
  RUN("submit", "lease", "start", "finish UNKNOWN");
  struct command command = world_command(&the_world, COMMAND_FINISH);
  command.as.finish.ref = world_ref(&the_world);
  command.as.finish.ref.epoch = 77;
  command.as.finish.report = world_report(OUTCOME_SUCCEEDED, false);
  world_prepare(&the_world);
  assert_int_equal(decide_evidence(&the_world.task, &command, EVIDENCE_STALE_EPOCH, 0, &the_world.env, &the_world.list, NULL),
                   STATUS_OK);
  assert_int_equal(the_world.list.count, 1);
  const struct event_evidence_recorded *evidence = &the_world.list.events[0].body.evidence_recorded;
  assert_true(id_equal(&evidence->evidence_id, &the_world.env.new_id));
  assert_true(id_equal(&evidence->attempt_id, &command.as.finish.ref.attempt_id));
  assert_true(id_equal(&evidence->message_id, &command.as.finish.ref.message_id));
  assert_int_equal(evidence->epoch, 77);
  assert_int_equal(evidence->reason, EVIDENCE_STALE_EPOCH);
  assert_int_equal(evidence->outcome, OUTCOME_SUCCEEDED);
  assert_true(bytes_equal_text(evidence->result, "{\"text\":\"SAFE RETRY\"}"));
  assert_true(id_equal(&the_world.list.events[0].common.identity, &command.operation.identity));
  struct task before = the_world.task;
  world_commit(&the_world);
  before.last_seq = the_world.task.last_seq;
  assert_memory_equal(&before, &the_world.task, sizeof before); /* nothing but the head of its history */
}

/* The bound is judged when a report comes; what is in the log is folded however much it is. */
static void evidence_is_bounded(void **state) {
  (void)state;
  RUN("submit", "lease", "start", "finish UNKNOWN -> NEEDS_REVIEW 4~ RECONCILIATION_REQUIRED",
      "evidence UNKNOWN kept=0 -> NEEDS_REVIEW 4~ {evidence.recorded@4}",
      "evidence UNKNOWN kept=99 -> NEEDS_REVIEW 4~ {evidence.recorded@4}",
      "evidence UNKNOWN kept=100 -> !STATE_CONFLICT /attempt_id", "evidence UNKNOWN kept=101 -> !STATE_CONFLICT /attempt_id");
  for (int i = 0; i < 2 * attempt_evidence_max; i++) script_line(&the_world, "evidence UNKNOWN kept=0 -> NEEDS_REVIEW 4~");
}

static void the_earliest_bound_names_the_end(void **state) {
  (void)state;
  static const struct {
    const char *lines[8];
    enum attempt_state state;
    enum ended_by ended_by;
  } cases[] = {
      {{"submit timeout=60000", "lease ms=5000", "goto lease"}, ATTEMPT_EXPIRED, ENDED_LEASE_EXPIRED},
      {{"submit timeout=4000", "lease ms=5000", "goto deadline"}, ATTEMPT_EXPIRED, ENDED_LEASE_EXPIRED},
      {{"submit timeout=60000 attempt=60000", "lease ms=5000", "start", "goto lease"}, ATTEMPT_UNKNOWN, ENDED_LEASE_EXPIRED},
      {{"submit timeout=60000 attempt=5000", "lease ms=5000", "start", "goto lease"}, ATTEMPT_UNKNOWN, ENDED_ATTEMPT_TIMEOUT},
      {{"submit timeout=60000 attempt=4000", "lease ms=5000", "start", "goto lease"}, ATTEMPT_UNKNOWN, ENDED_ATTEMPT_TIMEOUT},
      {{"submit timeout=5000 attempt=5000", "lease ms=5000", "start", "goto lease"}, ATTEMPT_UNKNOWN, ENDED_DEADLINE},
      {{"submit timeout=5000 attempt=4000", "lease ms=5000", "wait 1000", "start", "goto lease"},
       ATTEMPT_UNKNOWN,
       ENDED_DEADLINE},
      /* all of them have come: the earliest has the word */
      {{"submit timeout=60000 attempt=60000", "lease ms=5000", "start", "wait 70000"}, ATTEMPT_UNKNOWN, ENDED_LEASE_EXPIRED},
      {{"submit timeout=60000 attempt=4000", "lease ms=5000", "start", "wait 70000"}, ATTEMPT_UNKNOWN, ENDED_ATTEMPT_TIMEOUT},
      {{"submit timeout=60000 attempt=60000", "lease ms=60000", "start", "wait 70000"}, ATTEMPT_UNKNOWN, ENDED_DEADLINE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    run(cases[i].lines);
    int64_t until = the_world.attempt.live_until;
    script_line(&the_world, "expire");
    assert_int_equal(the_world.list.count, 2);
    const struct event_attempt_ended *ended = &the_world.list.events[0].body.attempt_ended;
    if (ended->state != cases[i].state || ended->ended_by != cases[i].ended_by)
      fail_msg("case %zu: %s %s", i, attempt_state_text(ended->state), ended_by_text(ended->ended_by));
    assert_int_equal(ended->lease_until, until);
    assert_true(id_equal(&the_world.list.events[0].common.actor, &the_world.env.node_id));
  }
}

static void an_expired_lease_near_the_deadline_cannot_be_retried(void **state) {
  (void)state;
  RUN("submit attempts=5 timeout=6001", "lease ms=6000", "goto lease", "expire -> WAITING 3 UNSTARTED_LEASE_EXPIRED");
  RUN("submit attempts=5 timeout=6000", "lease ms=6000", "goto lease", "expire -> FAILED 3 DEADLINE_EXCEEDED");
  RUN("submit attempts=5 timeout=60000 start_by=6000", "lease ms=6000", "goto lease",
      "expire -> FAILED 3 START_DEADLINE_EXCEEDED");
  RUN("submit attempts=5 timeout=7000 delay=1000/1000", "lease ms=6000", "goto lease", "expire");
  /* the drawn delay decides: it is in [500, 1000] and must end before the deadline, a second from here */
  const struct event *decided = &the_world.list.events[1];
  struct decision_record record;
  assert_true(decision_of_event(decided, &record));
  assert_int_equal(the_world.task.state, record.next_available_at < the_world.task.deadline_at ? TASK_WAITING : TASK_FAILED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_lease_never_reaches_past_the_deadlines),
      cmocka_unit_test(a_claim_says_who_and_which),
      cmocka_unit_test(a_start_grant_fixes_the_attempts_end),
      cmocka_unit_test(a_start_is_refused_from_the_deadlines_on),
      cmocka_unit_test(renewals_lengthen_up_to_the_bounds),
      cmocka_unit_test(a_renewal_never_shortens),
      cmocka_unit_test(a_report_carries_what_was_said),
      cmocka_unit_test(evidence_keeps_what_was_said),
      cmocka_unit_test(evidence_is_bounded),
      cmocka_unit_test(the_earliest_bound_names_the_end),
      cmocka_unit_test(an_expired_lease_near_the_deadline_cannot_be_retried),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
