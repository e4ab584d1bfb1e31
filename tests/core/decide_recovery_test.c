/* Review and retry by hand: who may, what is written, what stays as it was. */
#include "script.h"

static struct world the_world;

static void run(const char *const *lines) { script_run(&the_world, lines); }
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})
#define TO_REVIEW "submit", "lease", "start", "finish UNKNOWN -> NEEDS_REVIEW 4~ RECONCILIATION_REQUIRED"
#define TO_FAILED "submit", "lease", "start", "finish FAILED -> FAILED 4 NON_RETRYABLE_FAILURE"

static void text_equal(struct bytes text, const char *expected) {
  if (!bytes_equal_text(text, expected)) fail_msg("%.*s", (int)text.size, (const char *)text.data);
}

static void only_needs_review_is_reviewed(void **state) {
  (void)state;
  RUN("submit", "review FAILED rev=1 -> !STATE_CONFLICT", "lease", "review FAILED rev=2 -> !STATE_CONFLICT", "start",
      "review FAILED rev=3 -> !STATE_CONFLICT", "finish SUCCEEDED", "review FAILED rev=4 -> !STATE_CONFLICT");
  RUN("submit", "cancel", "review FAILED rev=2 -> !STATE_CONFLICT");
  RUN(TO_REVIEW, "review FAILED rev=3 -> !STATE_CONFLICT /expected_revision",
      "review FAILED rev=5 -> !STATE_CONFLICT /expected_revision", "review FAILED rev=4 -> FAILED 5",
      "review FAILED rev=5 -> !STATE_CONFLICT", "late SUCCEEDED -> FAILED 5 {evidence.recorded@5}");
}

static void a_review_is_written_whole(void **state) {
  (void)state;
  RUN(TO_REVIEW, "wait 20000", "review FAILED rev=4 -> FAILED 5 {task.reviewed@5 audit.recorded@5}");
  const struct event *first = &the_world.list.events[0], *second = &the_world.list.events[1];
  const struct event_task_reviewed *reviewed = &first->body.task_reviewed;
  const struct event_audit_recorded *audit = &second->body.audit_recorded;
  assert_int_equal(reviewed->outcome, OUTCOME_FAILED);
  assert_true(reviewed->execution_settled);
  text_equal(reviewed->result, "{\"confirmed\":true,\"sequence\":9007199254740993}");
  assert_true(id_equal(&reviewed->audit_id, &audit->audit_id));
  assert_int_equal(audit_id_seq(&audit->audit_id), second->seq);
  text_equal(audit->action, "task.review");
  text_equal(audit->reason, "because");
  text_equal(audit->evidence_ref, "evidence:reconciliation-001");
  text_equal(audit->before, "{\"state\":\"NEEDS_REVIEW\",\"revision\":\"4\"}");
  text_equal(audit->after,
             "{\"state\":\"FAILED\",\"revision\":\"5\",\"effect_uncertain\":false,\"execution_settled\":true,"
             "\"result_digest\":\"xxh3-128:5d000000000000000000000000000007\"}");
  assert_true(id_equal(&audit->target_id, &the_world.task.id));
  assert_true(id_equal(&audit->namespace_id, &the_world.queue.namespace_id));
  assert_false(id_is_zero(&first->common.identity));
  assert_true(id_is_zero(&second->common.identity));
  assert_int_equal(task_completed_at(&the_world.task), world_start_us + 20000 * us_per_ms);
  assert_int_equal(the_world.task.updated_at, task_completed_at(&the_world.task));
  assert_int_equal(task_result_seq(&the_world.task), first->seq);
  assert_int_equal(the_world.task.attempt_count, 1);
  assert_false(the_world.task.effect_uncertain);
  assert_int_equal(the_world.application.unfinished, 0); /* the quota is given back once */

  RUN(TO_REVIEW, "review SUCCEEDED rev=4 -> SUCCEEDED 5");
  text_equal(the_world.list.events[1].body.audit_recorded.after,
             "{\"state\":\"SUCCEEDED\",\"revision\":\"5\",\"effect_uncertain\":false,\"execution_settled\":true,"
             "\"result_digest\":\"xxh3-128:5d000000000000000000000000000007\"}");
}

static void only_failed_and_cancelled_are_retried(void **state) {
  (void)state;
  RUN("submit", "retry rev=1 -> !STATE_CONFLICT", "lease", "retry rev=2 -> !STATE_CONFLICT", "start",
      "retry rev=3 -> !STATE_CONFLICT", "finish SUCCEEDED", "retry rev=4 -> !STATE_CONFLICT");
  RUN(TO_REVIEW, "retry rev=4 -> !STATE_CONFLICT", "review SUCCEEDED rev=4", "retry rev=5 -> !STATE_CONFLICT");
  RUN(TO_FAILED, "retry rev=3 -> !STATE_CONFLICT /expected_revision", "retry rev=5 -> !STATE_CONFLICT /expected_revision",
      "retry rev=4 -> FAILED 4 {task.retried@4 audit.recorded@4 task.accepted@1}",
      "retry rev=4 -> !STATE_CONFLICT"); /* one direct successor */
  RUN("submit", "cancel", "retry rev=2 -> CANCELLED 2 {task.retried@2 audit.recorded@2 task.accepted@1}");
  RUN(TO_FAILED);
  the_world.task.scheduled = true;
  script_line(&the_world, "retry rev=4 -> !STATE_CONFLICT");
  the_world.task.scheduled = false;
  the_world.task.effect_uncertain = true;
  script_line(&the_world, "retry rev=4 -> !STATE_CONFLICT");
}

static void its_budget_is_judged_anew(void **state) {
  (void)state;
  RUN(TO_FAILED, "wait 100000", /* the original's times are long over: they are not inherited */
      "retry rev=4 timeout=9999 -> !INVALID_ARGUMENT /task_timeout_ms", /* covers not the frozen attempt_timeout_ms */
      "retry rev=4 timeout=0 -> !INVALID_ARGUMENT /task_timeout_ms",
      "retry rev=4 timeout=2592000001 -> !INVALID_ARGUMENT /task_timeout_ms",
      "retry rev=4 timeout=60000 at=-1001 -> !INVALID_ARGUMENT /available_at",
      "retry rev=4 timeout=60000 at=60000 -> !INVALID_ARGUMENT /available_at",
      "retry rev=4 timeout=60000 start_by=0 -> !INVALID_ARGUMENT /start_deadline_at",
      "retry rev=4 timeout=60000 at=10 start_by=9 -> !INVALID_ARGUMENT /start_deadline_at",
      "retry rev=4 timeout=60000 start_by=60001 -> !INVALID_ARGUMENT /start_deadline_at",
      "retry rev=4 timeout=10000 at=-1000 start_by=10000 -> FAILED 4");
  assert_int_equal(the_world.child.available_at, the_world.env.now_us - 1000 * us_per_ms);
  assert_int_equal(the_world.child.deadline_at, the_world.env.now_us + 10000 * us_per_ms);
  assert_int_equal(the_world.child.start_deadline_at, the_world.child.deadline_at);
}

static void it_counts_against_the_quotas(void **state) {
  (void)state;
  RUN(TO_FAILED);
  the_world.queue.max_unfinished = 1;
  the_world.queue.counts[TASK_WAITING] = 1;
  script_line(&the_world, "retry rev=4 -> !QUEUE_FULL");
  assert_int_equal(the_world.fault.retry_after_ms, quota_full_retry_ms);
  the_world.queue.counts[TASK_WAITING] = 0;
  the_world.application.max_unfinished = 5;
  the_world.application.unfinished = 5;
  script_line(&the_world, "retry rev=4 -> !APPLICATION_FULL");
  the_world.application.unfinished = 4;
  script_line(&the_world, "retry rev=4 -> FAILED 4");
  assert_int_equal(the_world.application.unfinished, 5);
}

static void a_retry_is_written_whole(void **state) {
  (void)state;
  RUN("submit attempts=3 delay=500/2000 attempt=10000 safety=I", "lease", "start", "finish FAILED", "wait 30000");
  struct task before = the_world.task;
  script_line(&the_world, "retry rev=4 timeout=60000 -> FAILED 4 {task.retried@4 audit.recorded@4 task.accepted@1}");
  const struct event *retried = &the_world.list.events[0], *audited = &the_world.list.events[1];
  const struct event_audit_recorded *audit = &audited->body.audit_recorded;
  const struct event_task_accepted *child = &the_world.list.events[2].body.task_accepted;
  const struct task *task = &the_world.child;
  char after[300];
  (void)snprintf(after, sizeof after,
                 "{\"source_task_id\":\"%s\",\"retry_task_id\":\"%s\",\"safe_to_retry\":true,\"task_timeout_ms\":60000}",
                 id_text(&the_world.task.id).text, id_text(&task->id).text);
  text_equal(audit->action, "task.retry");
  text_equal(audit->before, "{\"state\":\"FAILED\",\"revision\":\"4\"}");
  text_equal(audit->after, after);
  text_equal(audit->evidence_ref, "evidence:reconciliation-001");
  assert_int_equal(audit_id_seq(&audit->audit_id), audited->seq);
  assert_true(id_equal(&audit->audit_id, &retried->body.task_retried.audit_id));
  assert_true(id_equal(&audit->audit_id, &child->audit_id));
  assert_true(id_equal(&retried->body.task_retried.retry_task_id, &task->id));
  assert_true(id_equal(&child->retry_of, &the_world.task.id));
  assert_false(id_is_zero(&retried->common.identity));
  assert_true(id_is_zero(&audited->common.identity) && id_is_zero(&the_world.list.events[2].common.identity));

  /* the child: the same work and policy, new times, nothing consumed */
  text_equal(child->payload, "{\"object_ref\":\"objects/input\",\"sequence\":9007199254740993}");
  text_equal(child->handler, "object.prepare");
  assert_int_equal(task->state, TASK_WAITING);
  assert_int_equal(task->revision, 1);
  assert_int_equal(task->attempt_count, 0);
  assert_int_equal(task->max_attempts, 3);
  assert_int_equal(task->initial_delay_ms, 500);
  assert_int_equal(task->max_delay_ms, 2000);
  assert_int_equal(task->attempt_timeout_ms, 10000);
  assert_int_equal(task->recovery_safety, RECOVERY_IDEMPOTENT);
  assert_int_equal(task->available_at, the_world.env.now_us);
  assert_int_equal(task->deadline_at, the_world.env.now_us + 60000 * us_per_ms);
  assert_true(task->is_retry);

  /* the original: as it was, but that it has its successor */
  before.retried = true;
  before.last_seq = the_world.task.last_seq;
  assert_memory_equal(&before, &the_world.task, sizeof before);
}

static void the_child_goes_its_own_way(void **state) {
  (void)state;
  RUN(TO_FAILED, "retry rev=4");
  the_world.task = the_world.child;
  the_world.child = (struct task){.state = TASK_NONE};
  the_world.accepted = the_world.list.events[2].body.task_accepted;
  script_line(&the_world, "lease -> LEASED 2");
  script_line(&the_world, "start -> RUNNING 3");
  script_line(&the_world, "finish FAILED -> FAILED 4 NON_RETRYABLE_FAILURE");
  script_line(&the_world, "retry rev=4 -> FAILED 4"); /* going on is done along the successors */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_needs_review_is_reviewed),
      cmocka_unit_test(a_review_is_written_whole),
      cmocka_unit_test(only_failed_and_cancelled_are_retried),
      cmocka_unit_test(its_budget_is_judged_anew),
      cmocka_unit_test(it_counts_against_the_quotas),
      cmocka_unit_test(a_retry_is_written_whole),
      cmocka_unit_test(the_child_goes_its_own_way),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
