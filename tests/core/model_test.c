/* What is told from a task alone: kinds of states, timers, live leases, times without overflow. */
#include "core/model.h"

#include "support/support.h"

static void kinds_of_states(void **state) {
  (void)state;
  static const struct {
    enum task_state state;
    bool terminal, lease;
  } cases[] = {
      {TASK_NONE, false, false},   {TASK_WAITING, false, false},      {TASK_LEASED, false, true},
      {TASK_RUNNING, false, true}, {TASK_NEEDS_REVIEW, false, false}, {TASK_SUCCEEDED, true, false},
      {TASK_FAILED, true, false},  {TASK_CANCELLED, true, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(task_state_is_terminal(cases[i].state), cases[i].terminal);
    assert_int_equal(task_state_holds_lease(cases[i].state), cases[i].lease);
  }
}

static void timers_and_leases(void **state) {
  (void)state;
  enum { never = 0 };
  static const struct {
    enum task_state state;
    int64_t available, start_by, deadline, live, attempt_end, now, timer;
    bool is_live;
  } cases[] = {
      {TASK_WAITING, 10, never, 100, never, never, 5, 10, false}, /* not yet due */
      {TASK_WAITING, 10, never, 100, never, never, 9, 10, false},
      {TASK_WAITING, 10, never, 100, never, never, 10, 100, false}, /* due: only its end is left */
      {TASK_WAITING, 10, 50, 100, never, never, 10, 50, false},
      {TASK_WAITING, 10, 50, 100, never, never, 5, 10, false},
      {TASK_WAITING, 50, 50, 100, never, never, 5, 50, false},
      {TASK_WAITING, 10, 100, 100, never, never, 200, 100, false}, /* overdue */
      {TASK_LEASED, 10, never, 100, 40, never, 39, 40, true},
      {TASK_LEASED, 10, never, 100, 40, never, 40, 40, false},
      {TASK_LEASED, 10, 30, 100, 30, never, 29, 30, true},
      {TASK_LEASED, 10, 30, 100, 40, never, 30, 30, false}, /* whatever the lease says */
      {TASK_LEASED, 10, never, 35, 40, never, 35, 35, false},
      {TASK_RUNNING, 10, 20, 100, 40, 60, 39, 40, true}, /* started: start_deadline_at is behind it */
      {TASK_RUNNING, 10, 20, 100, 40, 60, 40, 40, false},
      {TASK_RUNNING, 10, never, 100, 40, 35, 35, 35, false},
      {TASK_RUNNING, 10, never, 30, 40, 35, 29, 30, true},
      {TASK_RUNNING, 10, never, 30, 40, 35, 30, 30, false},
      {TASK_NEEDS_REVIEW, 10, 20, 30, never, never, 1000, INT64_MAX, false}, /* waits for people */
      {TASK_SUCCEEDED, 10, 20, 30, never, never, 1, INT64_MAX, false},
      {TASK_FAILED, 10, 20, 30, never, never, 1, INT64_MAX, false},
      {TASK_CANCELLED, 10, 20, 30, never, never, 1, INT64_MAX, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct task task = {.state = (uint8_t)cases[i].state,
                        .available_at = cases[i].available,
                        .start_deadline_at = cases[i].start_by,
                        .deadline_at = cases[i].deadline};
    struct attempt attempt = {.live_until = cases[i].live, .attempt_deadline_at = cases[i].attempt_end};
    if (task_next_timer(&task, &attempt, cases[i].now) != cases[i].timer ||
        task_lease_is_live(&task, &attempt, cases[i].now) != cases[i].is_live)
      fail_msg("case %zu: %lld", i, (long long)task_next_timer(&task, &attempt, cases[i].now));
  }
}

static void leases_grow_within_their_bounds(void **state) {
  (void)state;
  enum { never = 0 };
  static const struct {
    enum task_state state;
    int64_t start_by, deadline, live, attempt_end, us, until;
  } cases[] = {
      {TASK_LEASED, never, 100, 40, never, 30, 70},  {TASK_LEASED, never, 100, 40, never, 60, 100},
      {TASK_LEASED, never, 100, 40, never, 61, 100}, {TASK_LEASED, 50, 100, 40, never, 30, 50}, /* the start is still to come */
      {TASK_LEASED, never, 100, 40, never, 0, 40},   {TASK_LEASED, never, 100, 40, never, INT64_MAX, 100},
      {TASK_LEASED, never, 30, 40, never, 5, 40}, /* never shorter, whatever the bounds */
      {TASK_RUNNING, 50, 100, 40, 90, 30, 70},       {TASK_RUNNING, 50, 100, 40, 60, 30, 60},
      {TASK_RUNNING, never, 100, 40, 100, 61, 100},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct task task = {
        .state = (uint8_t)cases[i].state, .start_deadline_at = cases[i].start_by, .deadline_at = cases[i].deadline};
    struct attempt attempt = {.live_until = cases[i].live, .attempt_deadline_at = cases[i].attempt_end};
    if (task_lease_longer(&task, &attempt, cases[i].us) != cases[i].until)
      fail_msg("case %zu: %lld", i, (long long)task_lease_longer(&task, &attempt, cases[i].us));
  }
}

static void times_do_not_overflow(void **state) {
  (void)state;
  assert_int_equal(time_after_ms(1000, 0), 1000);
  assert_int_equal(time_after_ms(1000, 7), 8000);
  assert_int_equal(time_after_ms(INT64_MAX, 0), INT64_MAX);
  assert_int_equal(time_after_ms(INT64_MAX - 999, 1), INT64_MAX);
  assert_int_equal(time_after_ms(INT64_MAX - 1000, 1), INT64_MAX);
  assert_int_equal(time_after_ms(INT64_MAX - 1001, 1), INT64_MAX - 1);
  assert_int_equal(time_after_ms(0, UINT64_MAX), INT64_MAX);
  assert_int_equal(time_after_ms(0, UINT64_MAX / 1000), INT64_MAX);
  assert_int_equal(time_after_ms(0, INT64_MAX / 1000), INT64_MAX / 1000 * 1000);
  assert_int_equal(time_earlier(1, 2), 1);
  assert_int_equal(time_earlier(2, 1), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kinds_of_states),
      cmocka_unit_test(timers_and_leases),
      cmocka_unit_test(leases_grow_within_their_bounds),
      cmocka_unit_test(times_do_not_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
