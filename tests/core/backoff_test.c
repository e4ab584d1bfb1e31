/* Backoff: the cap, the doubling, and a jitter that is drawn once and for all. */
#include "core/backoff.h"

#include <string.h>

#include "base/limits.h"
#include "support/support.h"

static void base_doubles_up_to_the_cap(void **state) {
  (void)state;
  static const struct {
    uint64_t initial, cap;
    uint32_t number;
    uint64_t base;
  } cases[] = {
      {500, 2000, 1, 500},
      {500, 2000, 2, 1000},
      {500, 2000, 3, 2000},
      {500, 2000, 4, 2000},
      {500, 2000, 100, 2000},
      {500, 500, 1, 500},
      {500, 500, 2, 500},
      {500, 999, 2, 999},
      {0, 0, 1, 0},
      {0, 0, 100, 0},
      {0, 86400000, 100, 0}, /* twice nothing is nothing */
      {1, 86400000, 1, 1},
      {1, 86400000, 27, 67108864},
      {1, 86400000, 28, 86400000}, /* 134,217,728 would pass it */
      {1, 86400000, 100, 86400000},
      {86400000, 86400000, 1, 86400000},
      {86400000, 86400000, 100, 86400000},
      {3, 86400000, 24, 25165824},
      {2000, 500, 1, 500}, /* never above the cap */
      {1, UINT64_MAX, 64, UINT64_C(1) << 63},
      {1, UINT64_MAX, 65, UINT64_MAX},
      {UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT64_MAX},
      {UINT64_MAX / 2 + 1, UINT64_MAX, 2, UINT64_MAX},
      {UINT64_MAX / 2, UINT64_MAX, 2, UINT64_MAX - 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t base = backoff_base_ms(cases[i].initial, cases[i].cap, cases[i].number);
    if (base != cases[i].base) fail_msg("case %zu: %llu", i, (unsigned long long)base);
  }
}

static struct id random_id(uint64_t *random) {
  struct id id;
  uint64_t halves[2] = {test_random(random), test_random(random)};
  memcpy(id.bytes, halves, sizeof halves);
  return id;
}

static void jitter_stays_within_half(void **state) {
  (void)state;
  static const uint64_t bases[] = {0, 1, 2, 3, 4, 5, 500, 501, 2000, 86400000, UINT64_MAX - 1, UINT64_MAX};
  uint64_t random = test_seed();
  for (unsigned i = 0; i < 10000; i++) {
    struct id attempt_id = random_id(&random);
    for (size_t k = 0; k < sizeof bases / sizeof bases[0]; k++) {
      uint64_t least = bases[k] / 2 + bases[k] % 2; /* ceil(base/2) */
      uint64_t delay = backoff_delay_ms(bases[k], &attempt_id);
      assert_true(delay >= least && delay <= bases[k]);
      assert_int_equal(backoff_delay_ms(bases[k], &attempt_id), delay); /* the same attempt, the same delay */
    }
  }
}

static void jitter_reaches_both_ends_and_spreads(void **state) {
  (void)state;
  uint64_t random = test_seed();
  unsigned seen[11] = {0};
  for (unsigned i = 0; i < 11000; i++) {
    struct id attempt_id = random_id(&random);
    seen[backoff_delay_ms(20, &attempt_id) - 10]++;
  }
  for (unsigned i = 0; i < 11; i++) assert_in_range(seen[i], 800, 1200); /* 1,000 each, ±6 standard deviations */
}

static void jitter_is_fixed_for_ever(void **state) {
  (void)state;
  /* A log written today must be judged the same by every later version: these numbers never change. */
  struct id zero = {{0}}, ones;
  memset(&ones, 0xFF, sizeof ones);
  assert_int_equal(backoff_delay_ms(86400000, &zero), 71830956);
  assert_int_equal(backoff_delay_ms(86400000, &ones), 81363045);
}

static void hundred_attempts_with_the_largest_delays_fit(void **state) {
  (void)state;
  uint64_t random = test_seed(), total_ms = 0;
  for (uint32_t number = 1; number <= attempts_max; number++) {
    struct id attempt_id = random_id(&random);
    uint64_t base = backoff_base_ms(delay_ms_max, delay_ms_max, number);
    assert_int_equal(base, delay_ms_max);
    total_ms += backoff_delay_ms(base, &attempt_id);
  }
  assert_true(total_ms <= (uint64_t)attempts_max * delay_ms_max && total_ms >= (uint64_t)attempts_max * delay_ms_max / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(base_doubles_up_to_the_cap),
      cmocka_unit_test(jitter_stays_within_half),
      cmocka_unit_test(jitter_reaches_both_ends_and_spreads),
      cmocka_unit_test(jitter_is_fixed_for_ever),
      cmocka_unit_test(hundred_attempts_with_the_largest_delays_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
