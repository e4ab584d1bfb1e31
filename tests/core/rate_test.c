/* Rate: never one lease too many over any stretch of time, bursts as configured, nothing gained by a restart. */
#include "core/decide.h"
#include "support/support.h"

static struct queue queue_with(uint64_t tasks, uint64_t per_ms, uint64_t burst) {
  return (struct queue){.rate = {.tasks = tasks, .per_ms = per_ms, .burst = burst}};
}

static void no_rate_never_waits(void **state) {
  (void)state;
  struct queue queue = queue_with(0, 0, 0);
  assert_int_equal(rate_next_us(&queue), 0);
  assert_int_equal(rate_after_us(&queue, 1000), 0);
}

static void next_and_after(void **state) {
  (void)state;
  static const struct {
    uint64_t tasks, per_ms, burst;
    int64_t rate_at, next, time, after;
  } cases[] = {
      {1, 1000, 1, 0, 0, 5000000, 6000000},             /* first lease: at once */
      {1, 1000, 1, 6000000, 6000000, 6000000, 7000000}, /* then one a second */
      {10, 1000, 1, 6000000, 6000000, 6000000, 6100000},
      {10, 1000, 5, 6000000, 5600000, 5600000, 6100000}, /* four intervals may be drawn ahead */
      {10, 1000, 0, 6000000, 6000000, 6000000, 6100000}, /* a burst of none is a burst of one */
      {3, 1000, 1, 6000000, 6000000, 6000000, 6333334},  /* rounded up: never faster than asked */
      {1, 1000, 1, 6000000, 6000000, 9000000, 10000000}, /* idle time is not saved up */
      {1, 1, 1, 0, 0, 10, 1010},
      {1000000, 1000, 1, 10, 10, 10, 11},
      {UINT64_MAX, 1, 1, 10, 10, 10, 11}, /* finer than a microsecond is a microsecond */
      {1, UINT64_MAX, 1, 0, 0, 10, INT64_MAX},
      {1, UINT64_MAX, UINT64_MAX, 10, 0, 10, INT64_MAX},
      {1, 1000, UINT64_MAX, INT64_MAX, 0, 10, INT64_MAX},
      {1, 1000, 1, INT64_MAX, INT64_MAX, 10, INT64_MAX},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct queue queue = queue_with(cases[i].tasks, cases[i].per_ms, cases[i].burst);
    queue.rate_at = cases[i].rate_at;
    if (rate_next_us(&queue) != cases[i].next || rate_after_us(&queue, cases[i].time) != cases[i].after)
      fail_msg("case %zu: next %lld, after %lld", i, (long long)rate_next_us(&queue),
               (long long)rate_after_us(&queue, cases[i].time));
  }
}

static void no_window_passes_the_limit(void **state) {
  (void)state;
  static const struct {
    uint64_t tasks, per_ms, burst;
  } rates[] = {{10, 1000, 1}, {10, 1000, 10}, {3, 1000, 2}, {7, 13, 3}, {100, 60000, 20}};
  static int64_t times[4000];
  uint64_t random = test_seed();
  for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
    struct queue queue = queue_with(rates[r].tasks, rates[r].per_ms, rates[r].burst);
    int64_t now = 1000000, period = (int64_t)rates[r].per_ms * 1000;
    size_t count = 0;
    while (count < sizeof times / sizeof times[0]) {
      /* Sometimes ask too early, sometimes sleep for long. */
      now += (int64_t)(test_random(&random) % (uint64_t)(test_random(&random) % 50 == 0 ? period * 5 : period / 8 + 2));
      if (now < rate_next_us(&queue)) continue;
      queue.rate_at = rate_after_us(&queue, now);
      times[count++] = now;
    }
    /* Any `burst + tasks` + 1 leases in a row span more than one period. */
    size_t most = rates[r].burst + rates[r].tasks;
    for (size_t i = most; i < count; i++) assert_true(times[i] - times[i - most] >= period);
    /* And any burst + 1 span at least one interval: the burst is not passed. */
    for (size_t i = rates[r].burst; i < count; i++)
      assert_true(times[i] - times[i - rates[r].burst] >= period / (int64_t)rates[r].tasks);
  }
}

static void an_idle_queue_gives_its_burst_and_no_more(void **state) {
  (void)state;
  struct queue queue = queue_with(10, 1000, 5);
  unsigned at_once = 0;
  for (int64_t now = 1000000000; rate_next_us(&queue) <= now && at_once < 100; at_once++)
    queue.rate_at = rate_after_us(&queue, now);
  assert_int_equal(at_once, 5);
}

/* A new rate takes over what the old one owed, but no more than a full burst of its own. */
static void a_changed_rate_caps_what_is_owed(void **state) {
  (void)state;
  static const struct {
    uint64_t tasks, per_ms, burst;
    int64_t rate_at, expected; /* at time 1,000,000 */
  } rows[] = {
      {10, 1000, 2, 0, 0},
      {10, 1000, 2, 1100000, 1100000},
      {10, 1000, 2, 1200000, 1200000},
      {10, 1000, 2, 1200001, 1200000},
      {10, 1000, 0, INT64_MAX, 1100000},
      {0, 0, 0, 5000000, 5000000}, /* no rate: nothing to cap by */
      {1, UINT64_MAX, 2, 7, 7},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct queue queue = queue_with(rows[i].tasks, rows[i].per_ms, rows[i].burst);
    queue.rate_at = rows[i].rate_at;
    assert_int_equal(rate_changed_us(&queue, 1000000), rows[i].expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_rate_never_waits),
      cmocka_unit_test(next_and_after),
      cmocka_unit_test(no_window_passes_the_limit),
      cmocka_unit_test(an_idle_queue_gives_its_burst_and_no_more),
      cmocka_unit_test(a_changed_rate_caps_what_is_owed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
