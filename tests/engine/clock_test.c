/* Orbit's time under clocks that jump. */
#include "support/support.h"

#include "engine/clock.h"

static const int64_t hour = INT64_C(3600) * 1000000;
static const int64_t start = INT64_C(1767225600) * 1000000;

static void starts_at_the_later_of_wall_and_log(void **context) {
  (void)context;
  struct clock clock;
  clock_init(&clock, start, 0, 0);
  assert_int_equal(clock_read(&clock, start, 0), start);
  clock_init(&clock, start, 0, start + hour);
  assert_int_equal(clock_read(&clock, start, 0), start + hour);
}

static void follows_a_steady_wall_exactly(void **context) {
  (void)context;
  struct clock clock;
  clock_init(&clock, start, 500, 0);
  for (int64_t passed = 1; passed < 100000; passed += 7)
    assert_int_equal(clock_read(&clock, start + passed, 500 + passed), start + passed);
}

/* The wall jumps; in one monotonic hour Orbit's time moves an hour, give or take one part in a thousand, and never stands
 * still. */
static void jumps_change_little(void **context) {
  (void)context;
  static const struct {
    int64_t jump, expected_us;
  } rows[] = {{6 * hour, hour + hour / 1000},
              {-6 * hour, hour - hour / 1000},
              {0, hour},
              {1000000, hour + 1000000},
              {-1000000, hour - 1000000}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct clock clock;
    int64_t last = start;
    clock_init(&clock, start, 0, 0);
    for (int64_t passed = 1000; passed <= hour; passed += 1000) {
      int64_t now = clock_read(&clock, start + rows[i].jump + passed, passed);
      assert_true(now > last);
      assert_true(now - last <= 1001 && now - last >= 999);
      last = now;
    }
    assert_int_equal(last - start, rows[i].expected_us);
  }
}

static void single_microseconds_never_stand_still(void **context) {
  (void)context;
  struct clock clock;
  int64_t last = start;
  clock_init(&clock, start, 0, 0);
  for (int64_t passed = 1; passed <= 10000; passed++) {
    int64_t now = clock_read(&clock, start - hour, passed);
    assert_true(now > last);
    last = now;
  }
}

static void a_monotonic_clock_that_repeats_changes_nothing(void **context) {
  (void)context;
  struct clock clock;
  clock_init(&clock, start, 100, 0);
  int64_t now = clock_read(&clock, start + 50, 150);
  assert_int_equal(clock_read(&clock, start + hour, 150), now);
  assert_int_equal(clock_read(&clock, start + hour, 120), now);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(starts_at_the_later_of_wall_and_log),
      cmocka_unit_test(follows_a_steady_wall_exactly),
      cmocka_unit_test(jumps_change_little),
      cmocka_unit_test(single_microseconds_never_stand_still),
      cmocka_unit_test(a_monotonic_clock_that_repeats_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
