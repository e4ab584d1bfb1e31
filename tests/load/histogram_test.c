/* The percentiles of orbit-bench against sorted values. */
#include "load/histogram.h"

#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static struct histogram histogram;

static int empty(void **state) {
  (void)state;
  memset(&histogram, 0, sizeof histogram);
  return 0;
}

static void an_empty_one_says_zero(void **state) {
  (void)state;
  assert_int_equal(histogram_quantile(&histogram, 0), 0);
  assert_int_equal(histogram_quantile(&histogram, 1), 0);
}

/* Below 256 every value is exact. */
static void small_values_are_exact(void **state) {
  static const struct {
    double share;
    uint64_t value;
  } rows[] = {{0.01, 1}, {0.5, 50}, {0.99, 99}, {0.994, 99}, {0.996, 100}, {1, 100}};
  (void)state;
  for (uint64_t value = 1; value <= 100; value++) histogram_add(&histogram, value);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_int_equal(histogram_quantile(&histogram, rows[i].share), rows[i].value);
}

/* A lone value comes back as itself, whatever its size: no answer lies over the largest value. */
static void a_lone_value_comes_back(void **state) {
  static const uint64_t values[] = {0, 1, 255, 256, 257, 511, 512, 1000000007, UINT64_MAX / 2, UINT64_MAX / 2 + 1, UINT64_MAX};
  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    memset(&histogram, 0, sizeof histogram);
    histogram_add(&histogram, values[i]);
    assert_true(histogram_quantile(&histogram, 0.5) == values[i]);
  }
}

static int compare(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return left < right ? -1 : left > right;
}

/* Over many orders of magnitude: never under the true value, and at most one part in 128 over it. */
static void quantiles_are_close(void **state) {
  enum { count = 20000 };
  static uint64_t values[count];
  uint64_t seed = test_seed();
  (void)state;
  for (int i = 0; i < count; i++) {
    uint64_t drawn = test_random(&seed);
    values[i] = drawn >> (test_random(&seed) % 64);
    histogram_add(&histogram, values[i]);
  }
  qsort(values, count, sizeof values[0], compare);
  for (int percent = 1; percent <= 100; percent++) {
    uint64_t truth = values[percent * count / 100 - 1], said = histogram_quantile(&histogram, (double)percent / 100);
    assert_true(said >= truth);
    assert_true(said - truth <= truth / 128);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(an_empty_one_says_zero, empty),
      cmocka_unit_test_setup(small_values_are_exact, empty),
      cmocka_unit_test_setup(a_lone_value_comes_back, empty),
      cmocka_unit_test_setup(quantiles_are_close, empty),
  };
  return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
