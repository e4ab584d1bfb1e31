/* The history of a task, from a log that the rules themselves wrote: snapshots at every position, documents, attempts,
 * evidence, and what is said of a log that is broken. */
#include "history_log.h"

static void assert_same_task(const struct task *a, const struct task *b) {
  assert_memory_equal(&a->id, &b->id, id_bytes);
  assert_int_equal(a->accepted_seq, b->accepted_seq);
  assert_int_equal(a->last_seq, b->last_seq);
  assert_int_equal(task_error_seq(a), task_error_seq(b));
  assert_int_equal(task_result_seq(a), task_result_seq(b));
  assert_int_equal(a->epoch, b->epoch);
  assert_int_equal(a->created_at, b->created_at);
  assert_int_equal(a->updated_at, b->updated_at);
  assert_int_equal(a->available_at, b->available_at);
  assert_int_equal(a->deadline_at, b->deadline_at);
  assert_int_equal(task_completed_at(a), task_completed_at(b));
  assert_int_equal(a->cancel_requested_at, b->cancel_requested_at);
  assert_int_equal(a->revision, b->revision);
  assert_int_equal(a->attempt_count, b->attempt_count);
  assert_int_equal(a->max_attempts, b->max_attempts);
  assert_int_equal(a->attempt_timeout_ms, b->attempt_timeout_ms);
  assert_int_equal(a->payload_bytes, b->payload_bytes);
  assert_int_equal(a->state, b->state);
  assert_int_equal(a->recovery_safety, b->recovery_safety);
  assert_int_equal(a->effect_uncertain, b->effect_uncertain);
  assert_int_equal(a->retried, b->retried);
}

static void assert_same_attempt(const struct attempt *a, const struct attempt *b) {
  assert_memory_equal(&a->id, &b->id, id_bytes);
  assert_int_equal(a->lease_until, b->lease_until);
  assert_int_equal(a->started_at, b->started_at);
  assert_int_equal(a->attempt_deadline_at, b->attempt_deadline_at);
}

/* At each event of the task, history tells it as it stood then; at a stranger's, that it is no task's. */
static void assert_every_position(struct log *log) {
  for (uint64_t seq = 1; seq <= log->last_seq; seq++) {
    struct task task = {.queue = 5};
    struct attempt attempt;
    bool own = log->after[seq].accepted_seq != 0;
    assert_int_equal(history_task_at(log->history, source_of(log), seq, &task, &attempt), own ? STATUS_OK : STATUS_NOT_FOUND);
    if (!own) continue;
    assert_same_task(&task, &log->after[seq]);
    assert_same_attempt(&attempt, &log->attempt_after[seq]);
    assert_int_equal(task.queue, 0);
  }
}

/* What is expected of one attempt. */
struct expected {
  enum attempt_state state;
  enum ended_by ended_by;
  enum outcome outcome;
  enum decision decision;
  bool retryable, started, has_delay;
};

static void assert_attempts(struct log *log, const struct expected *expected, uint32_t expected_count) {
  const struct attempt_document *attempts = NULL;
  uint32_t count = 0;
  assert_int_equal(history_attempts(log->history, source_of(log), &log->task, &attempts, &count), STATUS_OK);
  assert_int_equal(count, expected_count);
  for (uint32_t i = 0; i < count; i++) {
    const struct attempt_document *attempt = &attempts[i];
    assert_int_equal(attempt->number, i + 1);
    assert_int_equal(attempt->epoch, i + 1);
    assert_int_equal(attempt->state, expected[i].state);
    assert_int_equal(attempt->ended_by, expected[i].ended_by);
    assert_int_equal(attempt->outcome, expected[i].outcome);
    assert_int_equal(attempt->decision, expected[i].decision);
    assert_int_equal(attempt->retryable, expected[i].retryable);
    assert_int_equal(attempt->started_at != 0, expected[i].started);
    assert_int_equal(attempt->attempt_deadline_at, expected[i].started ? attempt->started_at + INT64_C(60000000) : 0);
    assert_int_equal(attempt->finished_at != 0, expected[i].decision != DECISION_NONE);
    assert_int_equal(attempt->has_delay, expected[i].has_delay);
    if (attempt->has_delay)
      assert_int_equal(attempt->next_available_at, attempt->finished_at + (int64_t)attempt->delay_ms * 1000);
    assert_int_equal(attempt->lease_expires_at, attempt->leased_at + INT64_C(30000000));
    assert_int_equal(attempt->instance_id.bytes[0], 0xA1);
    assert_int_equal(attempt->result.data != NULL, attempt->outcome == OUTCOME_SUCCEEDED);
    assert_int_equal(attempt->error_code.data != NULL, attempt->outcome > OUTCOME_SUCCEEDED);
  }
}

/* ---- The tests ---- */

static void test_retries_until_success(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_IDEMPOTENT, 3);
  do_lease(&log, "w1");
  struct id first = log.attempt.id;
  do_start(&log);
  do_finish(&log, OUTCOME_FAILED, true);
  do_lease(&log, NULL);
  do_start(&log);
  do_evidence(&log, &first, 1, EVIDENCE_STALE_EPOCH);
  do_finish(&log, OUTCOME_UNKNOWN, false);
  do_lease(&log, NULL);
  assert_attempts(&log,
                  (const struct expected[]){
                      {ATTEMPT_FAILED, ENDED_REPORT, OUTCOME_FAILED, DECISION_RETRYABLE_FAILURE, true, true, true},
                      {ATTEMPT_UNKNOWN, ENDED_REPORT, OUTCOME_UNKNOWN, DECISION_IDEMPOTENT_UNKNOWN, false, true, true},
                      {ATTEMPT_LEASED, ENDED_NONE, OUTCOME_NONE, DECISION_NONE, false, false, false},
                  },
                  3);
  do_start(&log);
  do_finish(&log, OUTCOME_SUCCEEDED, false);
  do_evidence(&log, &first, 1, EVIDENCE_TASK_ENDED);
  assert_every_position(&log);
  assert_attempts(&log,
                  (const struct expected[]){
                      {ATTEMPT_FAILED, ENDED_REPORT, OUTCOME_FAILED, DECISION_RETRYABLE_FAILURE, true, true, true},
                      {ATTEMPT_UNKNOWN, ENDED_REPORT, OUTCOME_UNKNOWN, DECISION_IDEMPOTENT_UNKNOWN, false, true, true},
                      {ATTEMPT_SUCCEEDED, ENDED_REPORT, OUTCOME_SUCCEEDED, DECISION_SUCCEEDED, false, true, false},
                  },
                  3);
  const struct attempt_document *attempts;
  uint32_t count;
  assert_int_equal(history_attempts(log.history, source_of(&log), &log.task, &attempts, &count), STATUS_OK);
  assert_true(id_equal(&attempts[0].attempt_id, &first));
  assert_true(bytes_equal_text(attempts[0].instance_name, "w1"));
  assert_null(attempts[1].instance_name.data);
  assert_true(bytes_equal_text(attempts[0].error_details, "[1]"));
  assert_true(bytes_equal_text(attempts[2].result, "{\"done\":9007199254740993}"));

  const struct evidence_document *evidence;
  assert_int_equal(history_evidence(log.history, source_of(&log), &log.task, &evidence, &count), STATUS_OK);
  assert_int_equal(count, 2);
  assert_int_equal(evidence[0].evidence.reason, EVIDENCE_STALE_EPOCH);
  assert_int_equal(evidence[1].evidence.reason, EVIDENCE_TASK_ENDED);
  assert_int_equal(evidence[1].reported_at, log.now_us);
  assert_true(id_equal(&evidence[0].evidence.attempt_id, &first));
  assert_true(evidence[0].evidence.retryable);
  assert_true(bytes_equal_text(evidence[0].evidence.error_code, "E"));
  log_end(&log);
}

static void test_documents(void **state) {
  (void)state;
  static struct log log;
  struct task_document document;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  assert_int_equal(history_document(log.history, source_of(&log), &log.task, &document), STATUS_OK);
  assert_true(bytes_equal_text(document.accepted.payload, "{\"n\":1.10}"));
  assert_true(bytes_equal_text(document.accepted.business_key, "b"));
  assert_null(document.error_code.data);
  assert_null(document.result.data);
  do_lease(&log, NULL);
  do_start(&log);
  uint64_t running_seq = log.last_seq;
  do_finish(&log, OUTCOME_FAILED, false);
  assert_int_equal(log.task.state, TASK_FAILED);
  assert_int_equal(history_document(log.history, source_of(&log), &log.task, &document), STATUS_OK);
  assert_true(bytes_equal_text(document.error_code, "E"));
  assert_true(bytes_equal_text(document.error_message, "why"));
  assert_true(bytes_equal_text(document.error_details, "[1]"));
  assert_null(document.result.data);
  /* As it stood before the report: no error, though the log holds one by now. */
  struct task before;
  assert_int_equal(history_task_at(log.history, source_of(&log), running_seq, &before, NULL), STATUS_OK);
  assert_int_equal(history_document(log.history, source_of(&log), &before, &document), STATUS_OK);
  assert_int_equal(document.task.state, TASK_RUNNING);
  assert_null(document.error_code.data);
  log_end(&log);

  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, NULL);
  do_start(&log);
  do_finish(&log, OUTCOME_SUCCEEDED, false);
  assert_int_equal(history_document(log.history, source_of(&log), &log.task, &document), STATUS_OK);
  assert_true(bytes_equal_text(document.result, "{\"done\":9007199254740993}"));
  assert_null(document.error_code.data);
  log_end(&log);
}

static void test_a_review(void **state) {
  (void)state;
  static struct log log;
  struct task_document document;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, NULL);
  do_start(&log);
  do_expire(&log, log.attempt.live_until);
  assert_int_equal(log.task.state, TASK_NEEDS_REVIEW);
  do_cancel(&log);
  do_review(&log);
  assert_every_position(&log);
  assert_int_equal(log.task.state, TASK_FAILED);
  assert_int_equal(history_document(log.history, source_of(&log), &log.task, &document), STATUS_OK);
  assert_true(bytes_equal_text(document.result, "{\"confirmed\":true}"));
  assert_attempts(&log,
                  (const struct expected[]){{ATTEMPT_UNKNOWN, ENDED_LEASE_EXPIRED, OUTCOME_NONE,
                                             DECISION_RECONCILIATION_REQUIRED, false, true, false}},
                  1);
  log_end(&log);
}

static void test_attempts_that_never_started(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 3);
  do_lease(&log, NULL);
  do_release(&log);
  do_lease(&log, NULL);
  do_expire(&log, log.attempt.live_until);
  do_lease(&log, NULL);
  do_cancel(&log);
  assert_int_equal(log.task.state, TASK_CANCELLED);
  assert_every_position(&log);
  assert_attempts(
      &log,
      (const struct expected[]){
          {ATTEMPT_EXPIRED, ENDED_RELEASED, OUTCOME_NONE, DECISION_UNSTARTED_RELEASED, false, false, true},
          {ATTEMPT_EXPIRED, ENDED_LEASE_EXPIRED, OUTCOME_NONE, DECISION_UNSTARTED_LEASE_EXPIRED, false, false, true},
          {ATTEMPT_REVOKED, ENDED_REVOKED, OUTCOME_NONE, DECISION_CANCEL_REQUESTED, false, false, false},
      },
      3);
  log_end(&log);
}

/* The decision about a waiting task is not the decision about the attempt before it. */
static void test_a_deadline_while_waiting(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 3);
  assert_attempts(&log, NULL, 0);
  do_lease(&log, NULL);
  do_start(&log);
  do_finish(&log, OUTCOME_FAILED, true);
  do_expire(&log, log.task.deadline_at);
  assert_int_equal(log.task.state, TASK_FAILED);
  assert_every_position(&log);
  assert_attempts(
      &log,
      (const struct expected[]){{ATTEMPT_FAILED, ENDED_REPORT, OUTCOME_FAILED, DECISION_RETRYABLE_FAILURE, true, true, true}},
      1);
  log_end(&log);

  log_begin(&log, RECOVERY_RECONCILE_ONLY, 3);
  do_expire(&log, log.task.deadline_at);
  assert_every_position(&log);
  assert_attempts(&log, NULL, 0);
  log_end(&log);
}

static void test_cancelled_while_running(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 3);
  do_lease(&log, NULL);
  do_start(&log);
  do_cancel(&log);
  do_cancel(&log);
  do_finish(&log, OUTCOME_CANCELLED, false);
  assert_int_equal(log.task.state, TASK_CANCELLED);
  assert_every_position(&log);
  assert_attempts(&log,
                  (const struct expected[]){
                      {ATTEMPT_CANCELLED, ENDED_REPORT, OUTCOME_CANCELLED, DECISION_CANCEL_CONFIRMED, false, true, false}},
                  1);
  log_end(&log);
}

static void test_chains(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 3);
  do_lease(&log, NULL);
  do_release(&log);
  const uint64_t *seqs = NULL;
  size_t count = 0;
  assert_int_equal(history_chain(log.history, source_of(&log), log.last_seq, &seqs, &count), STATUS_OK);
  static const uint64_t expected[] = {2, 4, 5, 6};
  assert_int_equal(count, 4);
  assert_memory_equal(seqs, expected, sizeof expected);
  assert_int_equal(history_chain(log.history, source_of(&log), 3, &seqs, &count), STATUS_OK);
  assert_int_equal(count, 1);
  assert_int_equal(seqs[0], 3);
  assert_int_equal(history_chain(log.history, source_of(&log), 0, &seqs, &count), STATUS_NOT_FOUND);
  assert_int_equal(history_chain(log.history, source_of(&log), log.last_seq + 1, &seqs, &count), STATUS_NOT_FOUND);
  log_end(&log);
}

/* More events than the arrays begin with. */
static void test_a_long_history(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, NULL);
  do_start(&log);
  struct id attempt_id = log.attempt.id;
  do_finish(&log, OUTCOME_SUCCEEDED, false);
  for (unsigned i = 0; i < 100; i++) do_evidence(&log, &attempt_id, 1, EVIDENCE_CONFLICTING_REPORT);
  const struct evidence_document *evidence;
  uint32_t count;
  assert_int_equal(history_evidence(log.history, source_of(&log), &log.task, &evidence, &count), STATUS_OK);
  assert_int_equal(count, 100);
  for (unsigned i = 1; i < count; i++) assert_true(evidence[i - 1].reported_at < evidence[i].reported_at);
  assert_every_position(&log);
  log_end(&log);
}

/* ---- Broken logs ---- */

static void assert_corrupt(struct log *log) {
  struct task task = {.revision = 77};
  const struct attempt_document *attempts = NULL;
  uint32_t count = 77;
  assert_int_equal(history_task_at(log->history, source_of(log), log->last_seq, &task, NULL), STATUS_CORRUPT);
  assert_int_equal(task.revision, 77);
  assert_int_equal(history_attempts(log->history, source_of(log), &log->task, &attempts, &count), STATUS_CORRUPT);
  assert_int_equal(count, 77);
  assert_null(attempts);
}

static void put_prev(struct log *log, uint64_t seq, uint64_t prev) {
  memcpy(log->records[seq].data + offsetof(struct record_header, prev), &prev,
         sizeof prev); /* little-endian, as all our machines */
}

static void test_broken_chains(void **state) {
  (void)state;
  static const uint64_t wrong[] = {6, 7, 100, UINT64_MAX, 2, 5}; /* itself, later, not there twice, over a gap, a stranger */
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    static struct log log;
    log_begin(&log, RECOVERY_RECONCILE_ONLY, 3); /* 2 */
    do_lease(&log, NULL);                        /* 4 */
    do_start(&log);                              /* 6 */
    do_finish(&log, OUTCOME_SUCCEEDED, false);   /* 7, 8 */
    put_prev(&log, 6, wrong[i]);
    assert_corrupt(&log);
    log_end(&log);
  }
}

/* Whatever bit of a record is flipped, history answers; what it says may differ, but it neither fails an assertion nor reads
 * beyond. */
static void test_flipped_bits(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_IDEMPOTENT, 3);
  do_lease(&log, "w");
  do_start(&log);
  do_finish(&log, OUTCOME_FAILED, true);
  unsigned refused = 0, tried = 0;
  for (uint64_t seq = 1; seq <= log.last_seq; seq++) {
    for (size_t bit = 0; bit < log.records[seq].size * 8; bit++) {
      struct task task;
      struct task_document document;
      const struct attempt_document *attempts;
      const struct evidence_document *evidence;
      uint32_t count;
      log.records[seq].data[bit / 8] ^= (uint8_t)(1 << bit % 8);
      refused += history_task_at(log.history, source_of(&log), log.last_seq, &task, NULL) != STATUS_OK;
      (void)history_document(log.history, source_of(&log), &log.task, &document);
      (void)history_attempts(log.history, source_of(&log), &log.task, &attempts, &count);
      (void)history_evidence(log.history, source_of(&log), &log.task, &evidence, &count);
      log.records[seq].data[bit / 8] ^= (uint8_t)(1 << bit % 8);
      tried++;
    }
  }
  assert_true(refused > tried / 4);
  assert_every_position(&log);
  log_end(&log);
}

static void test_one_event(void **state) {
  (void)state;
  static struct log log;
  struct event event;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  assert_int_equal(history_event(log.history, source_of(&log), 2, &event), STATUS_OK);
  assert_int_equal(event.type, EVENT_task_accepted);
  assert_int_equal(history_event(log.history, source_of(&log), 3, &event), STATUS_CORRUPT);
  log.records[2].size--;
  assert_int_equal(history_event(log.history, source_of(&log), 2, &event), STATUS_CORRUPT);
  log_end(&log);
  history_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_retries_until_success),
      cmocka_unit_test(test_documents),
      cmocka_unit_test(test_a_review),
      cmocka_unit_test(test_attempts_that_never_started),
      cmocka_unit_test(test_a_deadline_while_waiting),
      cmocka_unit_test(test_cancelled_while_running),
      cmocka_unit_test(test_chains),
      cmocka_unit_test(test_a_long_history),
      cmocka_unit_test(test_broken_chains),
      cmocka_unit_test(test_flipped_bits),
      cmocka_unit_test(test_one_event),
  };
  return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
