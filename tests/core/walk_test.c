/* Random lives: whatever is asked in whatever order, deciding, judging and folding never contradict each other, refusals change
 * nothing, and what must always hold does. */
#include "script.h"

enum { commands_per_walk = 400, walks = 60 };

static struct world the_world;
static uint64_t the_random;

static uint64_t pick(uint64_t below) { return test_random(&the_random) % below; }

static void walk_submit(void) {
  static const uint64_t timeouts[] = {1, 1000, 60000, 3600000, 2592000000U};
  static const uint32_t delays[] = {0, 1, 500, 86400000};
  struct submit_command submit = world_submission(&the_world);
  int64_t now = the_world.env.now_us;
  submit.max_attempts = (uint32_t)(pick(4) == 0 ? 100 : 1 + pick(4));
  submit.recovery_safety = pick(2) == 0 ? RECOVERY_IDEMPOTENT : RECOVERY_RECONCILE_ONLY;
  submit.task_timeout_ms = timeouts[pick(5)];
  submit.attempt_timeout_ms = (uint32_t)(1 + pick(submit.task_timeout_ms));
  submit.max_delay_ms = delays[pick(4)];
  submit.initial_delay_ms = (uint32_t)pick(submit.max_delay_ms + UINT64_C(1));
  if (pick(3) == 0) submit.available_at = now - 1500000 + (int64_t)pick(5000000);
  if (pick(3) == 0) submit.start_deadline_at = now - 1000000 + (int64_t)pick(submit.task_timeout_ms * 1100);
  enum status status = world_submit(&the_world, &submit);
  assert_true(status == STATUS_OK || status == STATUS_INVALID_ARGUMENT);
}

/* A step of the clock: mostly small, sometimes to the microsecond onto a bound of the task. */
static void walk_clock(void) {
  const struct task *task = &the_world.task;
  const struct attempt *attempt = &the_world.attempt;
  int64_t bounds[] = {task->available_at, task->start_deadline_at, task->deadline_at, attempt->live_until,
                      attempt->attempt_deadline_at};
  int64_t to = pick(2) == 0 ? the_world.env.now_us + (int64_t)pick(20000000) : bounds[pick(5)] - 1 + (int64_t)pick(3);
  if (to > the_world.env.now_us) the_world.env.now_us = to;
}

static const char *walk_line(void) {
  static char line[80];
  static const char *const outcomes[] = {"SUCCEEDED", "FAILED",    "FAILED retryable",
                                         "UNKNOWN",   "CANCELLED", "UNKNOWN retryable"};
  static const char *const refs[] = {"", "", "", "", " attempt=old", " epoch=1", " app=other"};
  unsigned long long revision = the_world.task.revision - (pick(8) == 0);
  switch (pick(12)) {
    case 0:
    case 1:
    case 2:
      return pick(2) == 0 ? "lease ms=30000" : "lease ms=5000";
    case 3:
    case 4:
      (void)snprintf(line, sizeof line, "start%s", refs[pick(7)]);
      return line;
    case 5:
      (void)snprintf(line, sizeof line, "renew%s", refs[pick(7)]);
      return line;
    case 6:
    case 7:
      (void)snprintf(line, sizeof line, "finish %s%s", outcomes[pick(6)], refs[pick(7)]);
      return line;
    case 8:
      (void)snprintf(line, sizeof line, pick(4) == 0 ? "release%s" : "late UNKNOWN%s", refs[pick(7)]);
      return line;
    case 9:
      return pick(4) == 0 ? "cancel" : pick(8) == 0 ? "restart" : "expire";
    case 10:
      (void)snprintf(line, sizeof line, "review %s rev=%llu", pick(2) == 0 ? "FAILED" : "SUCCEEDED", revision);
      return line;
    default:
      (void)snprintf(line, sizeof line, "retry rev=%llu timeout=%llu", revision, (unsigned long long)(1 + pick(100000000)));
      return line;
  }
}

/* What must always hold of a task, whatever happened. */
static void check_task(const struct task *before, const struct task *task, const struct attempt *attempt) {
  enum task_state state = (enum task_state)task->state;
  assert_true(task->epoch >= before->epoch && task->attempt_count >= before->attempt_count);
  assert_true(task->attempt_count <= task->max_attempts && task->epoch == task->attempt_count);
  assert_true(task->revision >= before->revision && task->updated_at >= before->updated_at);
  assert_int_equal(task_state_holds_lease(state), !id_is_zero(&attempt->id));
  assert_int_equal(task_state_is_terminal(state), task_completed_at(task) != 0);
  assert_int_equal(state == TASK_RUNNING, attempt->started_at != 0);
  assert_true(state != TASK_NEEDS_REVIEW || task->effect_uncertain);
  assert_true(!task_state_is_terminal(state) || !task->effect_uncertain);
  assert_true(task->cancel_requested_at == 0 || (state != TASK_WAITING && state != TASK_LEASED));
  assert_true(state != TASK_WAITING || task->available_at < task->deadline_at);
  assert_true((task_error_seq(task) == 0 || state == TASK_FAILED) &&
              (task_result_seq(task) == 0 || task_state_is_terminal(state)));
  if (task_state_holds_lease(state)) assert_true(attempt->live_until >= attempt->lease_until);
  if (before->effect_uncertain && !task->effect_uncertain)
    assert_true(state == TASK_SUCCEEDED || before->state == TASK_NEEDS_REVIEW);
  if (task_state_is_terminal((enum task_state)before->state)) {
    assert_int_equal(state, before->state);
    assert_int_equal(task->revision, before->revision);
  }
  bool changed = task->state != before->state || (task->cancel_requested_at != 0) != (before->cancel_requested_at != 0);
  assert_int_equal(task->revision, before->revision + changed); /* every decision changes the state it is made in */
}

static bool walk_step(void) {
  struct task before = the_world.task;
  const char *line = walk_line();
  if (pick(3) == 0) walk_clock();
  enum status status = script_step(&the_world, line);
  if (status != STATUS_OK) {
    assert_int_equal(the_world.list.count, 0);
    assert_memory_equal(&before, &the_world.task, sizeof before);
    return false;
  }
  world_commit(&the_world);
  if (the_world.child.state != TASK_NONE) { /* go on with the successor */
    assert_true(the_world.task.retried);
    the_world.task = the_world.child;
    memset(&the_world.child, 0, sizeof the_world.child);
    the_world.accepted = the_world.list.events[2].body.task_accepted;
    return true;
  }
  check_task(&before, &the_world.task, &the_world.attempt);
  return the_world.list.count != 0;
}

static void deciding_and_judging_agree(void **state) {
  (void)state;
  the_random = test_seed();
  unsigned took_effect = 0, ended[TASK_ENUM_END] = {0};
  for (unsigned walk = 0; walk < walks; walk++) {
    world_init(&the_world);
    do walk_submit();
    while (the_world.list.count == 0);
    world_commit(&the_world);
    for (unsigned i = 0; i < commands_per_walk; i++) {
      took_effect += walk_step();
      ended[the_world.task.state]++;
      bool is_over = task_state_is_terminal((enum task_state)the_world.task.state) && pick(10) == 0;
      if (!is_over) continue;
      memset(&the_world.task, 0, sizeof the_world.task);
      the_world.env.next_seq += pick(5); /* other tasks' events */
      do walk_submit();
      while (the_world.list.count == 0);
      world_commit(&the_world);
    }
  }
  assert_true(took_effect > walks * commands_per_walk / 10); /* the walk is not all refusals */
  for (unsigned i = TASK_WAITING; i < TASK_ENUM_END; i++) assert_true(ended[i] > 0);
}

/* The same events folded again, by themselves, give the same task: nothing but events makes it. */
static void folding_again_gives_the_same(void **state) {
  (void)state;
  enum { events_max = 2000 };
  static struct event events[events_max];
  the_random = test_seed();
  for (unsigned walk = 0; walk < walks / 2; walk++) {
    size_t count = 0;
    world_init(&the_world);
    do walk_submit();
    while (the_world.list.count == 0);
    world_commit(&the_world);
    events[count++] = the_world.list.events[0];
    for (unsigned i = 0; i < 200; i++) {
      const char *line = walk_line();
      if (strncmp(line, "restart", 7) == 0 || strncmp(line, "retry", 5) == 0) continue; /* events of other streams */
      if (pick(3) == 0) walk_clock();
      if (script_step(&the_world, line) != STATUS_OK) continue;
      world_commit(&the_world);
      for (uint32_t k = 0; k < the_world.list.count && count < events_max; k++) events[count++] = the_world.list.events[k];
    }
    struct task again;
    struct attempt attempt;
    memset(&again, 0, sizeof again);
    memset(&attempt, 0, sizeof attempt);
    for (size_t i = 0; i < count; i++) apply_task(&again, &attempt, &events[i]);
    attempt.live_until = the_world.attempt.live_until; /* renewals are not events */
    assert_memory_equal(&again, &the_world.task, sizeof again);
    assert_memory_equal(&attempt, &the_world.attempt, sizeof attempt);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(deciding_and_judging_agree),
      cmocka_unit_test(folding_again_gives_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
