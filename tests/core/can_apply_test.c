/* What may stand in a log: every event in every situation, and every field of a fitting event made wrong. */
#include "core/transition.h"
#include "script.h"

static struct world the_world;

/* ---- every event in every situation ---- */

/* Columns: a task that does not exist, one in each state, and the moments within a commit at which only one thing may follow:
 * r a retryable failure was reported, u a granted attempt ended unknown (IDEMPOTENT), x a lease expired unstarted,
 * w a waiting and l a leased task for which a cancel was requested. */
static const char *const situations[][8] = {
    {NULL},
    {"submit attempts=3 safety=I"},
    {"submit attempts=3 safety=I", "lease"},
    {"submit attempts=3 safety=I", "lease", "start"},
    {"submit", "lease", "start", "finish UNKNOWN"},
    {"submit", "lease", "start", "finish SUCCEEDED"},
    {"submit", "lease", "start", "finish FAILED"},
    {"submit", "cancel"},
    {"submit attempts=3 safety=I", "lease", "start", "finish FAILED retryable"},
    {"submit attempts=3 safety=I", "lease", "start", "goto lease", "expire"},
    {"submit attempts=3 safety=I", "lease", "goto lease", "expire"},
    {"submit attempts=3 safety=I", "cancel"},
    {"submit attempts=3 safety=I", "lease", "cancel"},
};
enum { first_moment = 8, situation_count = sizeof situations / sizeof situations[0] };

static const struct {
  enum event_type event;
  const char *cells;
} table[] = {
    /*                             - W L R N S F C r u x w l */
    {EVENT_task_accepted, "+ - - - - - - - - - - - -"},
    {EVENT_task_leased, "- + - - - - - - - - - - -"},
    {EVENT_task_started, "- - + - - - - - - - - - -"},
    {EVENT_attempt_result, "- - - + - - - - - - - - -"},
    {EVENT_attempt_ended, "- - + + - - - - - - - - +"},
    {EVENT_task_requeued, "- - - - - - - - + + + - -"},
    {EVENT_task_succeeded, "- - - - - - - - - - - - -"}, /* no success was reported */
    {EVENT_task_failed, "- + - - - - - - + - + - -"},
    {EVENT_task_review_required, "- - - - - - - - - + - - -"}, /* nothing else leaves a doubt */
    {EVENT_task_cancelled, "- - - - - - - - - - - + -"},
    {EVENT_task_cancel_requested, "- + + + + - - - - - - - -"},
    {EVENT_task_reviewed, "- - - - + - - - - - - - -"},
    {EVENT_task_retried, "- - - - - - + + - - - - -"},
    {EVENT_evidence_recorded, "- + + + + + + + - - - - -"},
    {EVENT_audit_recorded, "- + + + + + + + - - - - -"},
};

/* Moves the world into the situation; of a moment within a commit only the first event of the last step is folded. */
static void enter(size_t situation) {
  const char *const *lines = situations[situation];
  size_t count = 0;
  while (lines[count] != NULL) count++;
  world_init(&the_world);
  for (size_t i = 0; i < count; i++) {
    if (situation < first_moment || i + 1 < count) {
      script_line(&the_world, lines[i]);
      continue;
    }
    assert_int_equal(script_step(&the_world, lines[i]), STATUS_OK);
    apply_task(&the_world.task, world_number(&the_world, 0));
  }
}

#define DECISION_FIELDS(body, to, code)         \
  do {                                          \
    (body).state = (to);                        \
    (body).decision = (code);                   \
    (body).attempt_count = task->attempt_count; \
    (body).max_attempts = task->max_attempts;   \
    (body).effect_uncertain = uncertain;        \
    (body).node_id = the_world.env.node_id;     \
  } while (0)

static enum decision requeue_code(const struct task *task) {
  if (task->ended_as == ATTEMPT_UNKNOWN) return DECISION_IDEMPOTENT_UNKNOWN;
  return task->ended_as == ATTEMPT_EXPIRED ? DECISION_UNSTARTED_LEASE_EXPIRED : DECISION_RETRYABLE_FAILURE;
}

static void fill_decision(struct event *event, const struct task *task) {
  bool uncertain = task->effect_uncertain || task->ended_as == ATTEMPT_UNKNOWN;
  bool cancelled = task->cancel_requested_at != 0;
  enum decision end = cancelled ? DECISION_CANCEL_REQUESTED : DECISION_DEADLINE_EXCEEDED;
  if (task->state == TASK_WAITING && !cancelled) event->time_us = task->deadline_at;
  switch (event->type) {
    case EVENT_task_requeued:
      DECISION_FIELDS(event->body.task_requeued, TASK_WAITING, requeue_code(task));
      event->body.task_requeued.next_available_at = event->time_us;
      return;
    case EVENT_task_succeeded:
      DECISION_FIELDS(event->body.task_succeeded, TASK_SUCCEEDED, DECISION_SUCCEEDED);
      return;
    case EVENT_task_failed:
      DECISION_FIELDS(event->body.task_failed, TASK_FAILED, end);
      return;
    case EVENT_task_review_required:
      DECISION_FIELDS(event->body.task_review_required, TASK_NEEDS_REVIEW, end);
      return;
    default:
      DECISION_FIELDS(event->body.task_cancelled, TASK_CANCELLED, end);
  }
}

static void fill_attempt(struct event *event, const struct task *task) {
  const struct attempt *attempt = &task->attempt;
  bool running = task->state == TASK_RUNNING, cancelled = task->cancel_requested_at != 0;
  switch (event->type) {
    case EVENT_task_leased:
      event->body.task_leased = (struct event_task_leased){.attempt_id = world_id(0x31, 9),
                                                           .number = task->attempt_count + 1U,
                                                           .epoch = task->epoch + 1,
                                                           .instance_id = world_id(0xA1, 1),
                                                           .worker_application_id = world_id(0x44, 1),
                                                           .lease_ms = 30000,
                                                           .lease_until = event->time_us + 30000000};
      return;
    case EVENT_task_started:
      event->body.task_started = (struct event_task_started){.attempt_id = attempt->id,
                                                             .epoch = task->epoch,
                                                             .attempt_deadline_at = event->time_us + 10000000,
                                                             .lease_until = attempt->live_until};
      return;
    case EVENT_attempt_result:
      event->body.attempt_result = (struct event_attempt_result){
          .attempt_id = attempt->id, .epoch = task->epoch, .outcome = OUTCOME_UNKNOWN, .lease_until = attempt->live_until};
      return;
    default:
      if (!cancelled && attempt->live_until > event->time_us) event->time_us = attempt->live_until;
      event->body.attempt_ended =
          (struct event_attempt_ended){.attempt_id = attempt->id,
                                       .epoch = task->epoch,
                                       .state = running     ? ATTEMPT_UNKNOWN
                                                : cancelled ? ATTEMPT_REVOKED
                                                            : ATTEMPT_EXPIRED,
                                       .ended_by = running || !cancelled ? ENDED_LEASE_EXPIRED : ENDED_REVOKED,
                                       .lease_until = attempt->live_until};
  }
}

static void fill_record(struct event *event, const struct task *task) {
  struct id audit_id = audit_id_make(event->time_us, event->seq);
  switch (event->type) {
    case EVENT_task_cancel_requested:
      event->body.task_cancel_requested = (struct event_task_cancel_requested){
          .reason = bytes_text("because"), .audit_id = audit_id, .applied = task->cancel_requested_at == 0};
      return;
    case EVENT_task_reviewed:
      event->body.task_reviewed = (struct event_task_reviewed){.state = TASK_FAILED,
                                                               .outcome = OUTCOME_FAILED,
                                                               .result = bytes_text("{}"),
                                                               .execution_settled = true,
                                                               .audit_id = audit_id};
      return;
    case EVENT_task_retried:
      event->body.task_retried = (struct event_task_retried){.retry_task_id = world_id(0x66, 1), .audit_id = audit_id};
      return;
    case EVENT_evidence_recorded:
      event->body.evidence_recorded = (struct event_evidence_recorded){.evidence_id = world_id(0xE1, 1),
                                                                       .attempt_id = world_id(0x31, 1),
                                                                       .reason = EVIDENCE_LEASE_LOST,
                                                                       .outcome = OUTCOME_UNKNOWN};
      return;
    case EVENT_audit_recorded:
      event->body.audit_recorded =
          (struct event_audit_recorded){.audit_id = audit_id, .action = bytes_text("task.cancel"), .target_id = task->id};
      return;
    default:
      return;
  }
}

/* The event of this type that fits the task, if any does. */
static struct event fitting_event(const struct task *task, enum event_type type) {
  struct event event = {.type = type, .seq = task->last_seq + 1, .prev = task->last_seq, .time_us = the_world.env.now_us};
  const struct transition *row = transition_find((enum task_state)task->state, type);
  event.stream = task->state == TASK_NONE ? world_id(0x22, 1) : task->id;
  event.common.revision = task->revision + (row != NULL && row->raises_revision ? UINT64_C(1) : 0);
  if (type == EVENT_task_accepted) {
    struct submit_command submit = world_submission(&the_world);
    assert_int_equal(world_submit(&the_world, &submit), STATUS_OK);
    event.body = the_world.list.events[0].body;
  } else if (type >= EVENT_task_leased && type <= EVENT_attempt_ended) {
    fill_attempt(&event, task);
  } else if (type >= EVENT_task_requeued && type <= EVENT_task_cancelled) {
    fill_decision(&event, task);
  } else {
    fill_record(&event, task);
  }
  return event;
}

static void every_event_in_every_situation(void **state) {
  (void)state;
  for (size_t situation = 0; situation < situation_count; situation++) {
    enter(situation);
    for (unsigned type = 0; type < EVENT_type_end + 3U; type++) {
      char cell = '-'; /* an event that is not the task's fits nowhere */
      for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].event == type) cell = table[i].cells[2 * situation];
      struct event event = fitting_event(&the_world.task, (enum event_type)type);
      const char *reason = NULL;
      bool fits = can_apply_task(&the_world.task, &event, &reason);
      if (fits != (cell == '+'))
        fail_msg("situation %zu, %s: %s", situation, event_type_text(event.type), fits ? "fits" : reason);
      assert_int_equal(reason == NULL, fits); /* a refusal has its reason */
    }
  }
}

/* ---- every field made wrong ---- */

#define BODY(name) struct event_##name *b = &event->body.name
#define WRONG(name, statement) \
  static void name(struct event *event) { statement; }
WRONG(wrong_stream, event->stream.bytes[15] ^= 1)
WRONG(wrong_seq, event->seq = event->prev)
WRONG(wrong_prev, event->prev--)
WRONG(wrong_time, event->time_us = world_start_us - 1)
WRONG(revision_too_high, event->common.revision++)
WRONG(revision_too_low, event->common.revision--)
WRONG(no_namespace, BODY(task_accepted); memset(&b->namespace_id, 0, id_bytes))
WRONG(no_application, BODY(task_accepted); memset(&b->application_id, 0, id_bytes))
WRONG(no_queue, BODY(task_accepted); memset(&b->queue_id, 0, id_bytes))
WRONG(no_handler, BODY(task_accepted); b->handler.size = 0)
WRONG(no_payload, BODY(task_accepted); b->payload.size = 0)
WRONG(large_payload, BODY(task_accepted); b->payload.size = document_bytes_max + 1)
WRONG(no_safety, BODY(task_accepted); b->recovery_safety = RECOVERY_NONE)
WRONG(foreign_safety, BODY(task_accepted); b->recovery_safety = RECOVERY_ENUM_END)
WRONG(no_attempts, BODY(task_accepted); b->max_attempts = 0)
WRONG(many_attempts, BODY(task_accepted); b->max_attempts = 101)
WRONG(initial_over_max, BODY(task_accepted); b->initial_delay_ms = 1)
WRONG(large_delay, BODY(task_accepted); b->max_delay_ms = 86400001)
WRONG(no_attempt_timeout, BODY(task_accepted); b->attempt_timeout_ms = 0)
WRONG(large_attempt_timeout, BODY(task_accepted); b->attempt_timeout_ms = task_timeout_ms_max + 1)
WRONG(high_priority, BODY(task_accepted); b->priority = 10)
WRONG(deadline_now, BODY(task_accepted); b->deadline_at = event->time_us)
WRONG(deadline_far, BODY(task_accepted); b->deadline_at = event->time_us + (int64_t)task_timeout_ms_max * 1000 + 1)
WRONG(available_past, BODY(task_accepted); b->available_at = event->time_us - 1000001)
WRONG(available_at_deadline, BODY(task_accepted); b->available_at = b->deadline_at)
WRONG(start_by_now, BODY(task_accepted); b->start_deadline_at = event->time_us)
WRONG(start_by_late, BODY(task_accepted); b->start_deadline_at = b->deadline_at + 1)
WRONG(retry_of_itself, BODY(task_accepted); b->retry_of = event->stream)
WRONG(no_attempt, BODY(task_leased); memset(&b->attempt_id, 0, id_bytes))
WRONG(no_instance, BODY(task_leased); memset(&b->instance_id, 0, id_bytes))
WRONG(number_skipped, BODY(task_leased); b->number++)
WRONG(number_repeated, BODY(task_leased); b->number--)
WRONG(epoch_skipped, BODY(task_leased); b->epoch++)
WRONG(epoch_repeated, BODY(task_leased); b->epoch--)
WRONG(no_lease, BODY(task_leased); b->lease_ms = 0)
WRONG(large_lease, BODY(task_leased); b->lease_ms = 300001)
WRONG(lease_over, BODY(task_leased); b->lease_until = event->time_us)
WRONG(lease_too_long, BODY(task_leased); b->lease_until++)
WRONG(start_other_attempt, BODY(task_started); b->attempt_id.bytes[0] ^= 1)
WRONG(start_old_epoch, BODY(task_started); b->epoch--)
WRONG(start_lease_shorter, BODY(task_started); b->lease_until--)
WRONG(start_lease_over, event->time_us = event->body.task_started.lease_until)
WRONG(start_timeout_longer, BODY(task_started); b->attempt_deadline_at++)
WRONG(start_timeout_now, BODY(task_started); b->attempt_deadline_at = event->time_us)
WRONG(result_other_attempt, BODY(attempt_result); b->attempt_id.bytes[0] ^= 1)
WRONG(result_old_epoch, BODY(attempt_result); b->epoch--)
WRONG(result_late, event->time_us = event->body.attempt_result.lease_until)
WRONG(result_lease_longer, BODY(attempt_result); b->lease_until = INT64_MAX)
WRONG(result_no_outcome, BODY(attempt_result); b->outcome = OUTCOME_NONE)
WRONG(result_foreign_outcome, BODY(attempt_result); b->outcome = OUTCOME_ENUM_END)
WRONG(result_cancelled, BODY(attempt_result); b->outcome = OUTCOME_CANCELLED)
WRONG(result_retryable, BODY(attempt_result); b->retryable = true)
WRONG(result_with_error, BODY(attempt_result); b->error_code = bytes_text("X"))
WRONG(ended_early, event->time_us = event->body.attempt_ended.lease_until - 1)
WRONG(ended_other_attempt, BODY(attempt_ended); b->attempt_id.bytes[0] ^= 1)
WRONG(ended_as_revoked, BODY(attempt_ended); b->state = ATTEMPT_REVOKED)
WRONG(ended_as_succeeded, BODY(attempt_ended); b->state = ATTEMPT_SUCCEEDED)
WRONG(ended_by_revoked, BODY(attempt_ended); b->ended_by = ENDED_REVOKED)
WRONG(ended_by_release, BODY(attempt_ended); b->ended_by = ENDED_RELEASED)
WRONG(ended_by_report, BODY(attempt_ended); b->ended_by = ENDED_REPORT)
WRONG(ended_by_timeout, BODY(attempt_ended); b->ended_by = ENDED_ATTEMPT_TIMEOUT)
WRONG(ended_by_deadline, BODY(attempt_ended); b->ended_by = ENDED_DEADLINE)
WRONG(requeued_state, BODY(task_requeued); b->state = TASK_LEASED)
WRONG(requeued_code, BODY(task_requeued); b->decision = DECISION_IDEMPOTENT_UNKNOWN)
WRONG(requeued_foreign_code, BODY(task_requeued); b->decision = DECISION_ENUM_END)
WRONG(requeued_count, BODY(task_requeued); b->attempt_count++)
WRONG(requeued_budget, BODY(task_requeued); b->max_attempts++)
WRONG(requeued_uncertain, BODY(task_requeued); b->effect_uncertain = !b->effect_uncertain)
WRONG(requeued_delay, BODY(task_requeued); b->delay_ms++)
WRONG(requeued_large_delay, BODY(task_requeued); b->delay_ms += 2000; b->next_available_at += 2000000)
WRONG(requeued_next, BODY(task_requeued); b->next_available_at++)
WRONG(requeued_no_next, BODY(task_requeued); b->next_available_at = 0; b->delay_ms = 0)
WRONG(succeeded_uncertain, BODY(task_succeeded); b->effect_uncertain = true)
WRONG(succeeded_code, BODY(task_succeeded); b->decision = DECISION_NON_RETRYABLE_FAILURE)
WRONG(succeeded_state, BODY(task_succeeded); b->state = TASK_FAILED)
WRONG(failed_uncertain, BODY(task_failed); b->effect_uncertain = true)
WRONG(failed_by_cancel, BODY(task_failed); b->decision = DECISION_CANCEL_REQUESTED)
WRONG(failed_by_limit, BODY(task_failed); b->decision = DECISION_ATTEMPT_LIMIT)
WRONG(failed_by_start_deadline, BODY(task_failed); b->decision = DECISION_START_DEADLINE_EXCEEDED)
WRONG(failed_early, event->time_us--)
WRONG(review_certain, BODY(task_review_required); b->effect_uncertain = false)
WRONG(review_code, BODY(task_review_required); b->decision = DECISION_CANCEL_CONFIRMED)
WRONG(cancelled_code, BODY(task_cancelled); b->decision = DECISION_CANCEL_CONFIRMED)
WRONG(cancelled_uncertain, BODY(task_cancelled); b->effect_uncertain = true)
WRONG(request_not_applied, BODY(task_cancel_requested); b->applied = !b->applied)
WRONG(request_no_reason, BODY(task_cancel_requested); b->reason.size = 0)
WRONG(request_no_audit, BODY(task_cancel_requested); memset(&b->audit_id, 0, id_bytes))
WRONG(reviewed_state, BODY(task_reviewed); b->state = TASK_SUCCEEDED)
WRONG(reviewed_cancelled, BODY(task_reviewed); b->state = TASK_CANCELLED)
WRONG(reviewed_outcome, BODY(task_reviewed); b->outcome = OUTCOME_UNKNOWN)
WRONG(reviewed_unsettled, BODY(task_reviewed); b->execution_settled = false)
WRONG(reviewed_no_result, BODY(task_reviewed); b->result.size = 0)
WRONG(retried_nothing, BODY(task_retried); memset(&b->retry_task_id, 0, id_bytes))
WRONG(retried_itself, BODY(task_retried); b->retry_task_id = event->stream)
WRONG(evidence_no_id, BODY(evidence_recorded); memset(&b->evidence_id, 0, id_bytes))
WRONG(evidence_no_reason, BODY(evidence_recorded); b->reason = EVIDENCE_NONE)
WRONG(evidence_retryable, BODY(evidence_recorded); b->retryable = true)
WRONG(audit_other_target, BODY(audit_recorded); b->target_id.bytes[0] ^= 1)
WRONG(audit_no_action, BODY(audit_recorded); b->action.size = 0)
WRONG(audit_other_id, BODY(audit_recorded); b->audit_id.bytes[15] ^= 1)

#define SUBMIT "submit attempts=3 delay=500/2000 timeout=60000 attempt=10000"
#define SAFE SUBMIT " safety=I"
#define ACCEPT {"submit"}, 0
#define LEASE {SUBMIT, "lease"}, 0
#define START {SUBMIT, "lease", "start"}, 0
#define SUCCEED \
  { SUBMIT, "lease", "start", "finish SUCCEEDED" }
#define FAIL \
  { SUBMIT, "lease", "start", "finish FAILED retryable" }
#define EXPIRE \
  { SUBMIT, "lease", "goto lease", "expire" }
#define TIME_OUT \
  { SUBMIT, "lease", "start", "renew", "goto lease", "expire" }
#define REVIEW \
  { "submit", "lease", "start", "finish UNKNOWN", "review FAILED rev=4" }
#define RETRY \
  { "submit", "lease", "start", "finish FAILED", "retry rev=4" }
#define DEADLINE {SUBMIT, "goto deadline", "expire"}, 0

/* A life whose last step is decided but not folded; which of its events is made wrong, and how. */
static const struct {
  const char *lines[9];
  uint32_t event;
  void (*wrong)(struct event *event);
} mutations[] = {
    {LEASE, wrong_stream},
    {LEASE, wrong_seq},
    {LEASE, wrong_prev},
    {LEASE, wrong_time},
    {LEASE, revision_too_high},
    {LEASE, revision_too_low},
    {ACCEPT, revision_too_high},
    {ACCEPT, revision_too_low},
    {SUCCEED, 0, revision_too_high},
    {SUCCEED, 1, revision_too_low},
    {FAIL, 1, revision_too_high},
    {REVIEW, 0, revision_too_low},
    {REVIEW, 1, revision_too_high},
    {RETRY, 0, revision_too_high},
    {ACCEPT, no_namespace},
    {ACCEPT, no_application},
    {ACCEPT, no_queue},
    {ACCEPT, no_handler},
    {ACCEPT, no_payload},
    {ACCEPT, large_payload},
    {ACCEPT, no_safety},
    {ACCEPT, foreign_safety},
    {ACCEPT, no_attempts},
    {ACCEPT, many_attempts},
    {ACCEPT, initial_over_max},
    {ACCEPT, large_delay},
    {ACCEPT, no_attempt_timeout},
    {ACCEPT, large_attempt_timeout},
    {ACCEPT, high_priority},
    {ACCEPT, deadline_now},
    {ACCEPT, deadline_far},
    {ACCEPT, available_past},
    {ACCEPT, available_at_deadline},
    {ACCEPT, start_by_now},
    {ACCEPT, start_by_late},
    {ACCEPT, retry_of_itself},
    {LEASE, no_attempt},
    {LEASE, no_instance},
    {LEASE, number_skipped},
    {LEASE, number_repeated},
    {LEASE, epoch_skipped},
    {LEASE, epoch_repeated},
    {LEASE, no_lease},
    {LEASE, large_lease},
    {LEASE, lease_over},
    {LEASE, lease_too_long},
    {START, start_other_attempt},
    {START, start_old_epoch},
    {START, start_lease_shorter},
    {START, start_lease_over},
    {START, start_timeout_longer},
    {START, start_timeout_now},
    {SUCCEED, 0, result_other_attempt},
    {SUCCEED, 0, result_old_epoch},
    {SUCCEED, 0, result_late},
    {SUCCEED, 0, result_lease_longer},
    {SUCCEED, 0, result_no_outcome},
    {SUCCEED, 0, result_foreign_outcome},
    {SUCCEED, 0, result_cancelled},
    {SUCCEED, 0, result_retryable},
    {SUCCEED, 0, result_with_error},
    {EXPIRE, 0, ended_early},
    {EXPIRE, 0, ended_other_attempt},
    {EXPIRE, 0, ended_as_revoked},
    {EXPIRE, 0, ended_as_succeeded},
    {EXPIRE, 0, ended_by_revoked},
    {EXPIRE, 0, ended_by_release},
    {EXPIRE, 0, ended_by_report},
    {EXPIRE, 0, ended_by_timeout},
    {EXPIRE, 0, ended_by_deadline},
    {TIME_OUT, 0, ended_early},
    {TIME_OUT, 0, ended_as_revoked},
    {TIME_OUT, 0, ended_by_release},
    {TIME_OUT, 0, ended_by_deadline},
    {FAIL, 1, requeued_state},
    {FAIL, 1, requeued_code},
    {FAIL, 1, requeued_foreign_code},
    {FAIL, 1, requeued_count},
    {FAIL, 1, requeued_budget},
    {FAIL, 1, requeued_uncertain},
    {FAIL, 1, requeued_delay},
    {FAIL, 1, requeued_large_delay},
    {FAIL, 1, requeued_next},
    {FAIL, 1, requeued_no_next},
    {{SAFE, "lease", "start", "finish UNKNOWN"}, 1, requeued_uncertain},
    {SUCCEED, 1, succeeded_uncertain},
    {SUCCEED, 1, succeeded_code},
    {SUCCEED, 1, succeeded_state},
    {DEADLINE, failed_uncertain},
    {DEADLINE, failed_by_cancel},
    {DEADLINE, failed_by_limit},
    {DEADLINE, failed_by_start_deadline},
    {DEADLINE, failed_early},
    {{SUBMIT, "lease", "start", "finish FAILED"}, 1, failed_by_cancel},
    {{"submit", "lease", "start", "finish UNKNOWN"}, 1, review_certain},
    {{"submit", "lease", "start", "finish UNKNOWN"}, 1, review_code},
    {{"submit", "cancel"}, 1, cancelled_code},
    {{"submit", "cancel"}, 1, cancelled_uncertain},
    {{"submit", "cancel"}, 0, request_not_applied},
    {{"submit", "lease", "start", "cancel", "cancel"}, 0, request_not_applied},
    {{"submit", "cancel"}, 0, request_no_reason},
    {{"submit", "lease", "start", "cancel", "cancel"}, 0, revision_too_high},
    {{"submit", "lease", "start", "cancel"}, 0, revision_too_low},
    {{"submit", "cancel"}, 0, request_no_audit},
    {REVIEW, 0, reviewed_state},
    {REVIEW, 0, reviewed_cancelled},
    {REVIEW, 0, reviewed_outcome},
    {REVIEW, 0, reviewed_unsettled},
    {REVIEW, 0, reviewed_no_result},
    {RETRY, 0, retried_nothing},
    {RETRY, 0, retried_itself},
    {{"submit", "cancel", "late SUCCEEDED"}, 0, evidence_no_id},
    {{"submit", "cancel", "late SUCCEEDED"}, 0, evidence_no_reason},
    {{"submit", "cancel", "late SUCCEEDED"}, 0, evidence_retryable},
    {REVIEW, 1, audit_other_target},
    {REVIEW, 1, audit_no_action},
    {REVIEW, 1, audit_other_id},
};

static void every_field_made_wrong(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
    const char *const *lines = mutations[i].lines;
    world_init(&the_world);
    for (; lines[1] != NULL; lines++) script_line(&the_world, lines[0]);
    assert_int_equal(script_step(&the_world, lines[0]), STATUS_OK);
    for (uint32_t k = 0; k < mutations[i].event; k++) apply_task(&the_world.task, world_number(&the_world, k));
    struct event *event = world_number(&the_world, mutations[i].event), wrong = *event;
    const char *reason = NULL;
    if (!can_apply_task(&the_world.task, event, &reason)) fail_msg("case %zu does not fit as it is: %s", i, reason);
    mutations[i].wrong(&wrong);
    if (can_apply_task(&the_world.task, &wrong, &reason)) fail_msg("case %zu fits though it is wrong", i);
    assert_true(reason != NULL && reason[0] != 0);
  }
}

static void histories_that_contradict_their_past(void **state) {
  (void)state;
  const char *reason = NULL;
  /* a start grant, or a new claim, after a cancel request */
  script_run(&the_world, (const char *const[]){SUBMIT, "lease", NULL});
  struct event event = fitting_event(&the_world.task, EVENT_task_started);
  assert_true(can_apply_task(&the_world.task, &event, &reason));
  the_world.task.cancel_requested_at = 1;
  assert_false(can_apply_task(&the_world.task, &event, &reason));
  script_run(&the_world, (const char *const[]){SUBMIT, NULL});
  event = fitting_event(&the_world.task, EVENT_task_leased);
  the_world.task.cancel_requested_at = 1;
  assert_false(can_apply_task(&the_world.task, &event, &reason));
  /* an attempt over the budget */
  the_world.task.cancel_requested_at = 0;
  the_world.task.max_attempts = 0;
  assert_false(can_apply_task(&the_world.task, &event, &reason));
  /* a second successor, a successor of a scheduled or doubtful task */
  script_run(&the_world, (const char *const[]){"submit", "cancel", NULL});
  event = fitting_event(&the_world.task, EVENT_task_retried);
  assert_true(can_apply_task(&the_world.task, &event, &reason));
  the_world.task.retried = true;
  assert_false(can_apply_task(&the_world.task, &event, &reason));
  the_world.task.retried = false;
  the_world.task.scheduled = true;
  assert_false(can_apply_task(&the_world.task, &event, &reason));
  the_world.task.scheduled = false;
  the_world.task.effect_uncertain = true;
  assert_false(can_apply_task(&the_world.task, &event, &reason));
  /* an uncertain task that only RECONCILE_ONLY protects is not requeued */
  enter(9);
  event = fitting_event(&the_world.task, EVENT_task_requeued);
  assert_true(can_apply_task(&the_world.task, &event, &reason));
  the_world.task.recovery_safety = RECOVERY_RECONCILE_ONLY;
  assert_false(can_apply_task(&the_world.task, &event, &reason));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_event_in_every_situation),
      cmocka_unit_test(every_field_made_wrong),
      cmocka_unit_test(histories_that_contradict_their_past),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
