/* Pools: elements that never move, over all borders between the pieces of memory that they lie in. */
#include "state/pool.h"

#include "support/support.h"

static void fill(struct pool *pool, uint32_t from, uint32_t to) {
  for (uint32_t number = from; number <= to; number++) {
    assert_int_equal(pool_add(pool), number);
    uint64_t *element = pool_at(pool, number);
    assert_true(element[0] == 0 && element[4] == 0);
    element[0] = number;
    element[4] = ~(uint64_t)number;
  }
}

static void expect(const struct pool *pool, uint32_t from, uint32_t to) {
  for (uint32_t number = from; number <= to; number++) {
    const uint64_t *element = pool_at(pool, number);
    assert_true(element[0] == number && element[4] == ~(uint64_t)number);
  }
}

/* One page, then blocks: the second one begins behind page 17. */
enum { many = pool_page_elements * (2 * pool_block_pages + 1) + 3 };

static void test_grows(void **context) {
  (void)context;
  struct pool pool;
  pool_init(&pool, 5 * sizeof(uint64_t));
  fill(&pool, 1, pool_page_elements);
  const void *first = pool_at(&pool, 1), *last = pool_at(&pool, pool_page_elements);
  fill(&pool, pool_page_elements + 1, many);
  assert_ptr_equal(pool_at(&pool, 1), first);
  assert_ptr_equal(pool_at(&pool, pool_page_elements), last);
  expect(&pool, 1, many);
  assert_int_equal(pool.live, many);
  pool_clear(&pool);
  assert_int_equal(pool.used, 0);
  fill(&pool, 1, 10); /* it may be used again */
  pool_clear(&pool);
}

static void test_grows_behind_what_was_reserved(void **context) {
  static const uint32_t reserved[] = {1, pool_page_elements, pool_page_elements + 1, 3 * pool_page_elements, 0};
  (void)context;
  for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
    struct pool pool;
    pool_init(&pool, 5 * sizeof(uint64_t));
    pool_reserve(&pool, reserved[i]);
    fill(&pool, 1, many);
    expect(&pool, 1, many);
    pool_clear(&pool);
  }
}

static void test_uses_again(void **context) {
  (void)context;
  struct pool pool;
  pool_init(&pool, 5 * sizeof(uint64_t));
  fill(&pool, 1, 100);
  pool_remove(&pool, 40);
  pool_remove(&pool, 70);
  assert_int_equal(pool.live, 98);
  assert_int_equal(pool_add(&pool), 70);
  assert_int_equal(pool_add(&pool), 40);
  assert_true(*(uint64_t *)pool_at(&pool, 40) == 0 && *(uint64_t *)pool_at(&pool, 70) == 0);
  fill(&pool, 101, 101);
  pool_clear(&pool);
}

static void test_empties(void **context) {
  (void)context;
  struct pool pool;
  pool_init(&pool, 5 * sizeof(uint64_t));
  pool_empty(&pool);
  fill(&pool, 1, many);
  pool_remove(&pool, 7);
  const void *first = pool_at(&pool, 1);
  pool_empty(&pool);
  assert_true(pool.used == 0 && pool.live == 0);
  fill(&pool, 1, many); /* zeroed, all of them, and from 1 on again */
  assert_ptr_equal(pool_at(&pool, 1), first);
  pool_empty(&pool);
  fill(&pool, 1, pool_page_elements);
  expect(&pool, 1, pool_page_elements);
  pool_clear(&pool);
}

static void test_reserved_memory(void **context) {
  (void)context;
  struct pool pool;
  size_t size;
  pool_init(&pool, 8);
  assert_null(pool_reserved(&pool, &size));
  assert_int_equal(size, 0);
  pool_reserve(&pool, pool_page_elements + 1);
  assert_ptr_equal(pool_reserved(&pool, &size), pool_at(&pool, 1));
  assert_int_equal(size, 2 * 8 * pool_page_elements);
  pool_clear(&pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_grows),           cmocka_unit_test(test_grows_behind_what_was_reserved),
      cmocka_unit_test(test_uses_again),      cmocka_unit_test(test_empties),
      cmocka_unit_test(test_reserved_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
