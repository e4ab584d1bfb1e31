/* What may stand in a log: every event in every situation, and histories that contradict their past. */
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
    /* clang-format off */
    /*                             - W L R N S F C r u x w l */
    {EVENT_task_accepted,          "+ - - - - - - - - - - - -"},
    {EVENT_task_leased,            "- + - - - - - - - - - - -"},
    {EVENT_task_started,           "- - + - - - - - - - - - -"},
    {EVENT_attempt_result,         "- - - + - - - - - - - - -"},
    {EVENT_attempt_ended,          "- - + + - - - - - - - - +"},
    {EVENT_task_requeued,          "- - - - - - - - + + + - -"},
    {EVENT_task_succeeded,         "- - - - - - - - - - - - -"}, /* no success was reported */
    {EVENT_task_failed,            "- + - - - - - - + - + - -"},
    {EVENT_task_review_required,   "- - - - - - - - - + - - -"}, /* nothing else leaves a doubt */
    {EVENT_task_cancelled,         "- - - - - - - - - - - + -"},
    {EVENT_task_cancel_requested,  "- + + + + - - - - - - - -"},
    {EVENT_task_reviewed,          "- - - - + - - - - - - - -"},
    {EVENT_task_retried,           "- - - - - - + + - - - - -"},
    {EVENT_evidence_recorded,      "- + + + + + + + - - - - -"},
    {EVENT_audit_recorded,         "- + + + + + + + - - - - -"},
    /* clang-format on */
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
    apply_task(&the_world.task, &the_world.attempt, world_number(&the_world, 0));
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
  const struct attempt *attempt = &the_world.attempt;
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
      bool fits = can_apply_task(&the_world.task, &the_world.attempt, &event, &reason);
      if (fits != (cell == '+'))
        fail_msg("situation %zu, %s: %s", situation, event_type_text(event.type), fits ? "fits" : reason);
      assert_int_equal(reason == NULL, fits); /* a refusal has its reason */
    }
  }
}

/* ---- against what went before ---- */

#define SUBMIT "submit attempts=3 delay=500/2000"

static void histories_that_contradict_their_past(void **state) {
  (void)state;
  const char *reason = NULL;
  /* a start grant, or a new claim, after a cancel request */
  script_run(&the_world, (const char *const[]){SUBMIT, "lease", NULL});
  struct event event = fitting_event(&the_world.task, EVENT_task_started);
  assert_true(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  the_world.task.cancel_requested_at = 1;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  script_run(&the_world, (const char *const[]){SUBMIT, NULL});
  event = fitting_event(&the_world.task, EVENT_task_leased);
  the_world.task.cancel_requested_at = 1;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  /* an attempt over the budget */
  the_world.task.cancel_requested_at = 0;
  the_world.task.max_attempts = 0;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  /* a second successor, a successor of a scheduled or doubtful task */
  script_run(&the_world, (const char *const[]){"submit", "cancel", NULL});
  event = fitting_event(&the_world.task, EVENT_task_retried);
  assert_true(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  the_world.task.retried = true;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  the_world.task.retried = false;
  the_world.task.scheduled = true;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  the_world.task.scheduled = false;
  the_world.task.effect_uncertain = true;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  /* an uncertain task that only RECONCILE_ONLY protects is not requeued */
  enter(9);
  event = fitting_event(&the_world.task, EVENT_task_requeued);
  assert_true(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  the_world.task.recovery_safety = RECOVERY_RECONCILE_ONLY;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  /* nor is one whose budget is consumed, or that somebody wants to end */
  enter(8);
  the_world.task.attempt_count = the_world.task.max_attempts;
  event = fitting_event(&the_world.task, EVENT_task_requeued);
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  enter(8);
  event = fitting_event(&the_world.task, EVENT_task_requeued);
  the_world.task.cancel_requested_at = 1;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  /* a waiting task that was cancelled does not end by a deadline, nor is an attempt revoked that nobody cancelled */
  enter(11);
  event = fitting_event(&the_world.task, EVENT_task_failed);
  event.time_us = the_world.task.deadline_at;
  event.body.task_failed.decision = DECISION_DEADLINE_EXCEEDED;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  enter(12);
  event = fitting_event(&the_world.task, EVENT_attempt_ended);
  assert_true(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
  the_world.task.cancel_requested_at = 0;
  assert_false(can_apply_task(&the_world.task, &the_world.attempt, &event, &reason));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_event_in_every_situation),
      cmocka_unit_test(histories_that_contradict_their_past),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
