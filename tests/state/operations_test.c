/* The operations of a task, from a log that the rules themselves wrote: which events are entries, what each says, pages, and
 * looking one up. */
#include "history_log.h"

#include "state/operations.h"

enum { rows_max = 100 };

/* What one entry must say, in the order in which things happened. */
struct expected {
  const char *action;
  struct operation_standing was, is; /* NONE where before and after were recorded */
  enum outcome outcome;
  enum ended_by ended_by;
  enum decision decision;
  unsigned actor; /* first byte of the actor's id */
};
enum { by_node = 0x0E, by_credential = 0x01 };

static void assert_entry(const struct operation_document *operation, const struct expected *expected, struct log *log) {
  bool same = bytes_equal_text(operation->action, expected->action) && operation->was.state == expected->was.state &&
              operation->was.revision == expected->was.revision && operation->is.state == expected->is.state &&
              operation->is.revision == expected->is.revision && operation->outcome == expected->outcome &&
              operation->ended_by == expected->ended_by && operation->decision == expected->decision &&
              operation->actor_id.bytes[0] == expected->actor;
  if (!same)
    fail_msg("%.*s: %s %d to %s %d, %s, %s, %s, actor %02x; expected %s", (int)operation->action.size,
             (const char *)operation->action.data, task_state_text(operation->was.state), (int)operation->was.revision,
             task_state_text(operation->is.state), (int)operation->is.revision, outcome_text(operation->outcome),
             ended_by_text(operation->ended_by), decision_text(operation->decision), operation->actor_id.bytes[0],
             expected->action);
  assert_true(id_equal(&operation->task_id, &log->task.id));
  struct id id = audit_id_make(operation->created_at, audit_id_seq(&operation->id));
  assert_true(id_equal(&operation->id, &id));
}

static void assert_same_entry(const struct operation_document *a, const struct operation_document *b) {
  assert_true(id_equal(&a->id, &b->id) && id_equal(&a->operation_id, &b->operation_id));
  assert_true(bytes_equal(a->action, b->action) && bytes_equal(a->after, b->after) && bytes_equal(a->reason, b->reason));
  assert_int_equal(a->was.state, b->was.state);
  assert_int_equal(a->is.state, b->is.state);
  assert_int_equal(a->decision, b->decision);
}

/* Pages of every size tell the same entries, newest first, and each can be looked up. */
static void assert_operations(struct log *log, const struct expected *expected, uint32_t expected_count) {
  static struct operation_document rows[rows_max];
  for (uint32_t limit = 1; limit <= expected_count + 1; limit++) {
    struct id after = {{0}};
    bool more = true;
    for (uint32_t at = 0; more;) {
      uint32_t count = 77;
      assert_int_equal(operations_page(log->history, source_of(log), &log->task, &after, limit, rows, &count, &more),
                       STATUS_OK);
      assert_int_equal(count, limit < expected_count - at ? limit : expected_count - at);
      for (uint32_t i = 0; i < count; i++, at++) assert_entry(&rows[i], &expected[expected_count - 1 - at], log);
      assert_int_equal(more, at < expected_count);
      after = rows[count - 1].id;
    }
  }
  for (uint64_t seq = 1, found = 0; seq <= log->last_seq; seq++) {
    struct event event;
    struct operation_document operation;
    assert_int_equal(history_event(log->history, source_of(log), seq, &event), STATUS_OK);
    struct id id = audit_id_make(event.time_us, seq);
    enum status status = operations_find(log->history, source_of(log), &log->task, &id, &operation);
    if (status == STATUS_NOT_FOUND) continue;
    assert_int_equal(status, STATUS_OK);
    assert_true(found < expected_count);
    found++;
    assert_same_entry(&operation, &rows[expected_count - found]);
  }
}
#define ASSERT_OPERATIONS(log, ...)                                                     \
  do {                                                                                  \
    const struct expected expected[] = {__VA_ARGS__};                                   \
    assert_operations(log, expected, (uint32_t)(sizeof expected / sizeof expected[0])); \
  } while (0)

#define ACCEPT \
  { "task.accept", .is = {TASK_WAITING, 1}, .actor = by_credential }
#define LEASE(revision) \
  { "task.lease", {TASK_WAITING, revision - 1}, {TASK_LEASED, revision}, .actor = by_node }
#define START(revision) \
  { "task.start", {TASK_LEASED, revision - 1}, {TASK_RUNNING, revision}, .actor = by_credential }
#define RECORDED(action) \
  { action, .actor = by_credential }

/* ---- Lives ---- */

static void test_a_life_without_a_mishap(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, "w");
  do_start(&log);
  do_finish(&log, OUTCOME_SUCCEEDED, false);
  ASSERT_OPERATIONS(&log, ACCEPT, LEASE(2), START(3),
                    {"task.finish",
                     {TASK_RUNNING, 3},
                     {TASK_SUCCEEDED, 4},
                     OUTCOME_SUCCEEDED,
                     .decision = DECISION_SUCCEEDED,
                     .actor = by_credential});
  log_end(&log);
}

static void test_retries_releases_and_evidence(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_IDEMPOTENT, 4);
  do_lease(&log, NULL);
  struct id first = log.attempt.id;
  do_release(&log);
  do_lease(&log, NULL);
  do_expire(&log, log.attempt.live_until);
  do_lease(&log, NULL);
  do_start(&log);
  do_evidence(&log, &first, 1, EVIDENCE_STALE_EPOCH);
  do_finish(&log, OUTCOME_FAILED, true);
  do_lease(&log, NULL);
  do_start(&log);
  do_expire(&log, log.attempt.live_until);
  do_evidence(&log, &first, 1, EVIDENCE_STALE_EPOCH);
  ASSERT_OPERATIONS(&log, ACCEPT, LEASE(2),
                    {"task.release",
                     {TASK_LEASED, 2},
                     {TASK_WAITING, 3},
                     OUTCOME_NONE,
                     ENDED_RELEASED,
                     DECISION_UNSTARTED_RELEASED,
                     by_credential},
                    LEASE(4),
                    {"task.expire",
                     {TASK_LEASED, 4},
                     {TASK_WAITING, 5},
                     OUTCOME_NONE,
                     ENDED_LEASE_EXPIRED,
                     DECISION_UNSTARTED_LEASE_EXPIRED,
                     by_node},
                    LEASE(6), START(7),
                    {"task.finish",
                     {TASK_RUNNING, 7},
                     {TASK_WAITING, 8},
                     OUTCOME_FAILED,
                     ENDED_NONE,
                     DECISION_RETRYABLE_FAILURE,
                     by_credential},
                    LEASE(9), START(10),
                    {"task.expire",
                     {TASK_RUNNING, 10},
                     {TASK_NEEDS_REVIEW, 11},
                     OUTCOME_NONE,
                     ENDED_LEASE_EXPIRED,
                     DECISION_ATTEMPT_LIMIT,
                     by_node});
  log_end(&log);
}

static void test_waiting_task_runs_out_of_time(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_expire(&log, log.task.deadline_at);
  ASSERT_OPERATIONS(
      &log, ACCEPT,
      {"task.expire", {TASK_WAITING, 1}, {TASK_FAILED, 2}, .decision = DECISION_DEADLINE_EXCEEDED, .actor = by_node});
  log_end(&log);
}

static void test_waiting_again_task_runs_out_of_time(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_IDEMPOTENT, 2);
  do_lease(&log, NULL);
  do_start(&log);
  do_finish(&log, OUTCOME_UNKNOWN, false);
  do_expire(&log, log.task.deadline_at);
  ASSERT_OPERATIONS(
      &log, ACCEPT, LEASE(2), START(3),
      {"task.finish",
       {TASK_RUNNING, 3},
       {TASK_WAITING, 4},
       OUTCOME_UNKNOWN,
       ENDED_NONE,
       DECISION_IDEMPOTENT_UNKNOWN,
       by_credential},
      {"task.expire", {TASK_WAITING, 4}, {TASK_NEEDS_REVIEW, 5}, .decision = DECISION_DEADLINE_EXCEEDED, .actor = by_node});
  log_end(&log);
}

static void test_cancels(void **state) {
  (void)state;
  static struct log log;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_cancel(&log);
  ASSERT_OPERATIONS(&log, ACCEPT, RECORDED("task.cancel"));
  log_end(&log);

  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, NULL);
  do_cancel(&log);
  ASSERT_OPERATIONS(&log, ACCEPT, LEASE(2), RECORDED("task.cancel"));
  log_end(&log);

  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, NULL);
  do_start(&log);
  do_cancel(&log);
  do_cancel(&log);
  do_finish(&log, OUTCOME_CANCELLED, false);
  ASSERT_OPERATIONS(&log, ACCEPT, LEASE(2), START(3), RECORDED("task.cancel"), RECORDED("task.cancel"),
                    {"task.finish",
                     {TASK_RUNNING, 4},
                     {TASK_CANCELLED, 5},
                     OUTCOME_CANCELLED,
                     ENDED_NONE,
                     DECISION_CANCEL_CONFIRMED,
                     by_credential});
  log_end(&log);
}

static void test_review(void **state) {
  (void)state;
  static struct log log;
  struct operation_document rows[1];
  uint32_t count;
  bool more;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, NULL);
  do_start(&log);
  do_finish(&log, OUTCOME_UNKNOWN, false);
  do_review(&log);
  ASSERT_OPERATIONS(&log, ACCEPT, LEASE(2), START(3),
                    {"task.finish",
                     {TASK_RUNNING, 3},
                     {TASK_NEEDS_REVIEW, 4},
                     OUTCOME_UNKNOWN,
                     ENDED_NONE,
                     DECISION_RECONCILIATION_REQUIRED,
                     by_credential},
                    RECORDED("task.review"));
  assert_int_equal(operations_page(log.history, source_of(&log), &log.task, NULL, 1, rows, &count, &more), STATUS_OK);
  assert_true(more);
  assert_true(bytes_equal_text(rows[0].reason, "seen"));
  assert_true(bytes_equal_text(rows[0].evidence_ref, "evidence:1"));
  assert_true(bytes_equal_text(rows[0].before, "{\"state\":\"NEEDS_REVIEW\",\"revision\":\"4\"}"));
  assert_true(bytes_equal_text(rows[0].after,
                               "{\"state\":\"FAILED\",\"revision\":\"5\",\"effect_uncertain\":false,\"execution_settled\":true,"
                               "\"result_digest\":\"xxh3-128:60000000000000000000000000000001\"}"));
  log_end(&log);
}

/* A retry writes into two streams at once: the original's, and the successor's first event. */
static void append_retry(struct log *log, struct task *ret_child) {
  struct task_document original;
  struct queue queue = {.id = id_of(0x04, 1)};
  struct application application = {.id = id_of(0x02, 1)};
  struct command command = command_of(log, COMMAND_RETRY);
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  struct fault fault;
  assert_int_equal(history_document(log->history, source_of(log), &log->task, &original), STATUS_OK);
  command.as.retry = (struct retry_command){.task_id = log->task.id,
                                            .expected_revision = log->task.revision,
                                            .reason = bytes_text("again"),
                                            .evidence_ref = bytes_text("evidence:2"),
                                            .task_timeout_ms = 60000};
  assert_int_equal(decide_retry(&log->task, &original.accepted, &queue, &application, &command, &env, &list, &fault),
                   STATUS_OK);
  *ret_child = (struct task){.accepted_seq = 0};
  struct attempt no_attempt = {.lease_ms = 0};
  for (uint32_t i = 0; i < list.count; i++) {
    struct event *event = &list.events[i];
    struct task *task = id_equal(&event->stream, &log->task.id) ? &log->task : ret_child;
    event->prev = task->last_seq;
    log_append(log, event);
    apply_task(task, task == &log->task ? &log->attempt : &no_attempt, event);
  }
}

static void test_manual_retry(void **state) {
  (void)state;
  static struct log log;
  struct task child;
  struct operation_document rows[2], operation;
  uint32_t count;
  bool more;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_cancel(&log);
  append_retry(&log, &child);
  ASSERT_OPERATIONS(&log, ACCEPT, RECORDED("task.cancel"), RECORDED("task.retry"));
  assert_int_equal(operations_page(log.history, source_of(&log), &child, NULL, 2, rows, &count, &more), STATUS_OK);
  assert_int_equal(count, 1);
  assert_false(more);
  assert_true(bytes_equal_text(rows[0].action, "task.accept"));
  assert_true(id_equal(&rows[0].retry_of, &log.task.id));
  assert_true(id_equal(&rows[0].task_id, &child.id));
  assert_int_equal(rows[0].is.state, TASK_WAITING);
  /* Neither task has the other's entries. */
  assert_int_equal(operations_find(log.history, source_of(&log), &log.task, &rows[0].id, &operation), STATUS_NOT_FOUND);
  assert_int_equal(operations_page(log.history, source_of(&log), &log.task, &rows[0].id, 2, rows, &count, &more),
                   STATUS_NOT_FOUND);
  assert_int_equal(operations_page(log.history, source_of(&log), &log.task, NULL, 1, rows, &count, &more), STATUS_OK);
  assert_true(bytes_equal_text(rows[0].action, "task.retry"));
  assert_int_equal(operations_find(log.history, source_of(&log), &child, &rows[0].id, &operation), STATUS_NOT_FOUND);
  log_end(&log);
}

/* ---- Snapshots, ids that are none, logs that are broken ---- */

static void test_a_snapshot_ends_where_it_was_taken(void **state) {
  (void)state;
  static struct log log;
  struct operation_document rows[rows_max];
  uint32_t count;
  bool more;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, NULL);
  struct task then = log.task;
  do_start(&log);
  assert_int_equal(operations_page(log.history, source_of(&log), &log.task, NULL, 1, rows, &count, &more), STATUS_OK);
  struct id later = rows[0].id;
  assert_int_equal(operations_page(log.history, source_of(&log), &then, NULL, rows_max, rows, &count, &more), STATUS_OK);
  assert_int_equal(count, 2);
  assert_true(bytes_equal_text(rows[0].action, "task.lease"));
  assert_int_equal(operations_find(log.history, source_of(&log), &then, &later, rows), STATUS_NOT_FOUND);
  log_end(&log);
}

static void test_ids_that_are_no_entry(void **state) {
  (void)state;
  static struct log log;
  struct operation_document operation = {.created_at = 77};
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, NULL);
  do_start(&log);
  do_finish(&log, OUTCOME_FAILED, false);
  uint64_t last = log.last_seq;
  const struct id ids[] = {
      audit_id_make(log.now_us, last),     /* the decision: its entry is the report's */
      audit_id_make(log.now_us, last + 1), /* beyond the log */
      audit_id_make(log.now_us, UINT64_MAX),
      audit_id_make(log.now_us, 0),
      audit_id_make(start_us, 1),                    /* somebody else's event */
      audit_id_make(log.now_us + 1000000, last - 1), /* the report's number with another time */
      id_of(0xFF, 1),
  };
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
    assert_int_equal(operations_find(log.history, source_of(&log), &log.task, &ids[i], &operation), STATUS_NOT_FOUND);
    assert_int_equal(operation.created_at, 77);
  }
  struct id report = audit_id_make(log.now_us, last - 1);
  assert_int_equal(operations_find(log.history, source_of(&log), &log.task, &report, &operation), STATUS_OK);
  assert_true(bytes_equal_text(operation.action, "task.finish"));
  log_end(&log);
}

static void test_broken_logs(void **state) {
  (void)state;
  static struct log log;
  struct operation_document rows[rows_max];
  uint32_t count = 77;
  bool more;
  log_begin(&log, RECOVERY_RECONCILE_ONLY, 1);
  do_lease(&log, NULL);
  do_start(&log);
  do_finish(&log, OUTCOME_FAILED, false);
  /* The decision is missing at the end. */
  struct task cut = log.task;
  cut.last_seq--;
  log.last_seq--;
  assert_int_equal(operations_page(log.history, source_of(&log), &cut, NULL, rows_max, rows, &count, &more), STATUS_CORRUPT);
  log.last_seq++;
  /* A record in the middle is damaged. */
  struct buffer *record = &log.records[log.task.last_seq - 1];
  record->data[record_header_bytes + 1] ^= 0xFF;
  assert_int_equal(operations_page(log.history, source_of(&log), &log.task, NULL, rows_max, rows, &count, &more),
                   STATUS_CORRUPT);
  record->data[record_header_bytes + 1] ^= 0xFF;
  /* The chain leads into another stream. */
  struct task stranger = log.task;
  stranger.id = id_of(0x99, 9);
  assert_int_equal(operations_page(log.history, source_of(&log), &stranger, NULL, rows_max, rows, &count, &more),
                   STATUS_CORRUPT);
  assert_int_equal(count, 77);
  log_end(&log);
}

/* The one function of the rules, alone. */
static void test_what_makes_an_entry(void **state) {
  (void)state;
  static const struct {
    enum event_type type, older, newer;
    enum ended_by ended_by;
    const char *action; /* NULL: none */
  } cases[] = {
      {EVENT_task_accepted, EVENT_none, EVENT_task_leased, ENDED_NONE, "task.accept"},
      {EVENT_task_leased, EVENT_task_accepted, EVENT_none, ENDED_NONE, "task.lease"},
      {EVENT_task_started, EVENT_task_leased, EVENT_none, ENDED_NONE, "task.start"},
      {EVENT_attempt_result, EVENT_task_started, EVENT_task_succeeded, ENDED_NONE, "task.finish"},
      {EVENT_task_succeeded, EVENT_attempt_result, EVENT_none, ENDED_NONE, NULL},
      {EVENT_attempt_ended, EVENT_task_started, EVENT_task_requeued, ENDED_LEASE_EXPIRED, "task.expire"},
      {EVENT_attempt_ended, EVENT_task_started, EVENT_task_requeued, ENDED_ATTEMPT_TIMEOUT, "task.expire"},
      {EVENT_attempt_ended, EVENT_task_started, EVENT_task_failed, ENDED_DEADLINE, "task.expire"},
      {EVENT_attempt_ended, EVENT_task_leased, EVENT_task_requeued, ENDED_RELEASED, "task.release"},
      {EVENT_attempt_ended, EVENT_task_cancel_requested, EVENT_task_cancelled, ENDED_REVOKED, NULL},
      {EVENT_task_requeued, EVENT_attempt_ended, EVENT_none, ENDED_NONE, NULL},
      {EVENT_task_cancelled, EVENT_attempt_ended, EVENT_audit_recorded, ENDED_NONE, NULL},
      {EVENT_task_cancelled, EVENT_task_cancel_requested, EVENT_audit_recorded, ENDED_NONE, NULL},
      {EVENT_task_review_required, EVENT_task_cancel_requested, EVENT_audit_recorded, ENDED_NONE, NULL},
      {EVENT_task_failed, EVENT_task_accepted, EVENT_none, ENDED_NONE, "task.expire"},
      {EVENT_task_failed, EVENT_evidence_recorded, EVENT_none, ENDED_NONE, "task.expire"},
      {EVENT_task_review_required, EVENT_task_requeued, EVENT_none, ENDED_NONE, "task.expire"},
      {EVENT_task_cancel_requested, EVENT_task_started, EVENT_audit_recorded, ENDED_NONE, NULL},
      {EVENT_task_reviewed, EVENT_task_review_required, EVENT_audit_recorded, ENDED_NONE, NULL},
      {EVENT_task_retried, EVENT_task_failed, EVENT_audit_recorded, ENDED_NONE, NULL},
      {EVENT_evidence_recorded, EVENT_task_failed, EVENT_none, ENDED_NONE, NULL},
      {EVENT_audit_recorded, EVENT_task_retried, EVENT_none, ENDED_NONE, "task.act"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct event event = {.type = cases[i].type, .seq = 9, .time_us = start_us, .common.revision = 5};
    struct event newer = {.type = cases[i].newer, .seq = 10, .time_us = start_us, .common.revision = 6};
    struct operation_document operation;
    if (event.type == EVENT_attempt_ended) event.body.attempt_ended.ended_by = cases[i].ended_by;
    if (event.type == EVENT_audit_recorded)
      event.body.audit_recorded =
          (struct event_audit_recorded){.audit_id = audit_id_make(start_us, 9), .action = bytes_text("task.act")};
    enum status status = operation_of_event(&event, cases[i].older, cases[i].newer == EVENT_none ? NULL : &newer, &operation);
    bool same = cases[i].action == NULL ? status == STATUS_END
                                        : status == STATUS_OK && bytes_equal_text(operation.action, cases[i].action);
    if (!same) fail_msg("%s behind %s", event_type_text(cases[i].type), event_type_text(cases[i].older));
  }
  struct event report = {.type = EVENT_attempt_result, .seq = 9, .time_us = start_us};
  struct event lease = {.type = EVENT_task_leased, .seq = 10, .time_us = start_us};
  struct event audit = {.type = EVENT_audit_recorded, .seq = 9, .time_us = start_us};
  struct operation_document operation;
  audit.body.audit_recorded.audit_id = audit_id_make(start_us, 8);
  assert_int_equal(operation_of_event(&report, EVENT_task_started, NULL, &operation), STATUS_CORRUPT);
  assert_int_equal(operation_of_event(&report, EVENT_task_started, &lease, &operation), STATUS_CORRUPT);
  assert_int_equal(operation_of_event(&audit, EVENT_task_retried, NULL, &operation), STATUS_CORRUPT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_life_without_a_mishap),
      cmocka_unit_test(test_retries_releases_and_evidence),
      cmocka_unit_test(test_waiting_task_runs_out_of_time),
      cmocka_unit_test(test_waiting_again_task_runs_out_of_time),
      cmocka_unit_test(test_cancels),
      cmocka_unit_test(test_review),
      cmocka_unit_test(test_manual_retry),
      cmocka_unit_test(test_a_snapshot_ends_where_it_was_taken),
      cmocka_unit_test(test_ids_that_are_no_entry),
      cmocka_unit_test(test_broken_logs),
      cmocka_unit_test(test_what_makes_an_entry),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
