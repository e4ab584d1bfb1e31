/* The four-way heap and the paged pool against naive models. */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "state/heap.h"
#include "state/pool.h"

enum { elements = 400 };

struct element {
  int64_t key;
  uint32_t position;
  uint32_t rank; /* decides between equal keys */
  bool inside;
};

struct owner {
  struct element elements[elements + 1];
};

static uint32_t *position(void *context, uint32_t number) { return &((struct owner *)context)->elements[number].position; }
static uint32_t *element_position(void *context, uint32_t number) { return &((struct element *)context)[number].position; }
static int tie(void *context, uint32_t a, uint32_t b) {
  const struct owner *owner = context;
  return owner->elements[a].rank < owner->elements[b].rank ? -1 : owner->elements[a].rank > owner->elements[b].rank;
}

static uint32_t naive_first(const struct owner *owner) {
  uint32_t best = 0;
  for (uint32_t n = 1; n <= elements; n++) {
    const struct element *element = &owner->elements[n];
    if (!element->inside) continue;
    if (best == 0 || element->key < owner->elements[best].key ||
        (element->key == owner->elements[best].key && element->rank < owner->elements[best].rank))
      best = n;
  }
  return best;
}

static void check_positions(const struct heap *heap, const struct owner *owner) {
  uint32_t inside = 0;
  for (uint32_t n = 1; n <= elements; n++) {
    const struct element *element = &owner->elements[n];
    assert_int_equal(element->position != 0, element->inside);
    if (!element->inside) continue;
    inside++;
    assert_in_range(element->position, 1, heap->count);
    assert_int_equal(heap->entries[element->position - 1].number, n);
    assert_true(heap->entries[element->position - 1].key == element->key);
  }
  assert_int_equal(heap->count, inside);
}

/* Puts, moves to earlier and later keys, removals of any element: the first is always the naive first. */
static void random_against_the_model(void **context) {
  (void)context;
  uint64_t seed = test_seed();
  struct owner *owner = calloc(1, sizeof *owner);
  struct heap heap = {0};
  struct heap_owner heap_owner = {position, tie, owner};
  for (uint32_t n = 1; n <= elements; n++) owner->elements[n].rank = (uint32_t)test_random(&seed);
  for (uint32_t step = 0; step < 40000; step++) {
    uint32_t number = (uint32_t)(test_random(&seed) % elements) + 1;
    struct element *element = &owner->elements[number];
    if (test_random(&seed) % 3 != 0) {
      element->key = (int64_t)(test_random(&seed) % 50) - 25; /* few keys: many ties */
      if (test_random(&seed) % 100 == 0) element->key = test_random(&seed) % 2 != 0 ? INT64_MAX : INT64_MIN;
      element->inside = true;
      heap_put(&heap, &heap_owner, number, element->key);
    } else {
      element->inside = false;
      heap_remove(&heap, &heap_owner, number); /* may not be there: nothing then */
    }
    struct heap_entry first = heap_first(&heap);
    assert_int_equal(first.number, naive_first(owner));
    if (step % 100 == 0) check_positions(&heap, owner);
  }
  struct heap_entry last = {INT64_MIN, 0};
  while (heap.count != 0) {
    struct heap_entry first = heap_first(&heap);
    if (last.number != 0) assert_true(heap_before(&heap_owner, last, first));
    owner->elements[first.number].inside = false;
    heap_remove(&heap, &heap_owner, first.number);
    last = first;
  }
  check_positions(&heap, owner);
  assert_int_equal(heap_first(&heap).number, 0);
  heap_clear(&heap);
  free(owner);
}

static void without_a_tie_equal_keys_all_come_out(void **context) {
  (void)context;
  struct owner *owner = calloc(1, sizeof *owner);
  struct heap heap = {0};
  struct heap_owner heap_owner = {position, NULL, owner};
  for (uint32_t n = 1; n <= elements; n++) heap_put(&heap, &heap_owner, n, 7);
  uint32_t count = 0;
  for (struct heap_entry first; (first = heap_first(&heap)).number != 0; count++) heap_remove(&heap, &heap_owner, first.number);
  assert_int_equal(count, elements);
  heap_clear(&heap);
  free(owner);
}

static void a_time_is_due_from_its_moment_on(void **context) {
  (void)context;
  struct owner *owner = calloc(1, sizeof *owner);
  struct heap heap = {0};
  struct heap_owner heap_owner = {position, NULL, owner};
  assert_true(heap_next(&heap) == INT64_MAX);
  assert_int_equal(heap_due(&heap, INT64_MAX), 0);
  heap_put(&heap, &heap_owner, 1, 20);
  heap_put(&heap, &heap_owner, 2, 10);
  assert_true(heap_next(&heap) == 10);
  assert_int_equal(heap_due(&heap, 9), 0);
  assert_int_equal(heap_due(&heap, 10), 2);
  assert_int_equal(heap_due(&heap, 30), 2);
  heap_clear(&heap);
  free(owner);
}

/* ---- pool ---- */

static void numbers_are_used_again_and_nothing_moves(void **context) {
  (void)context;
  struct pool pool;
  enum { many = pool_page_elements * 9 + 5 };
  uint64_t **places = malloc(sizeof *places * (many + 1));
  pool_init(&pool, sizeof(uint64_t) * 3);
  for (uint32_t i = 1; i <= many; i++) {
    uint32_t number = pool_add(&pool);
    assert_int_equal(number, i);
    places[i] = pool_at(&pool, number);
    for (unsigned word = 0; word < 3; word++) {
      assert_int_equal(places[i][word], 0);
      places[i][word] = i * 3 + word;
    }
  }
  for (uint32_t i = 1; i <= many; i++) {
    assert_ptr_equal(pool_at(&pool, i), places[i]);
    assert_int_equal(places[i][2], i * 3 + 2);
  }
  for (uint32_t i = 2; i <= many; i += 2) pool_remove(&pool, i);
  assert_int_equal(pool.live, many - many / 2);
  for (uint32_t i = 2; i <= many; i += 2) {
    uint32_t number = pool_add(&pool);
    assert_in_range(number, 1, many);
    assert_int_equal(number % 2, 0); /* only those that were given back */
    assert_ptr_equal(pool_at(&pool, number), places[number]);
    assert_int_equal(places[number][1], 0);
  }
  assert_int_equal(pool.live, many);
  assert_int_equal(pool.used, many);
  for (uint32_t i = 1; i <= many; i += 2) assert_int_equal(places[i][0], i * 3);
  pool_clear(&pool);
  assert_int_equal(pool_add(&pool), 1); /* usable again */
  pool_clear(&pool);
  free(places);
}

static void churn_costs_no_pages(void **context) {
  (void)context;
  struct pool pool;
  pool_init(&pool, 64);
  uint32_t kept = pool_add(&pool);
  for (unsigned i = 0; i < 1000000; i++) {
    uint32_t number = pool_add(&pool);
    assert_int_not_equal(number, kept);
    pool_remove(&pool, number);
  }
  assert_int_equal(pool.used, 2);
  assert_int_equal(pool.page_count, 1);
  assert_true(pool.free_capacity <= 64);
  pool_clear(&pool);
}

/* What a heap took for many it gives back when they leave, and stays sound while it does. */
static void an_emptied_heap_gives_back(void **context) {
  (void)context;
  enum { many = 100000 };
  struct heap heap = {0};
  struct element *all = calloc(many + 1, sizeof *all);
  struct heap_owner heap_owner = {element_position, NULL, all};
  for (uint32_t n = 1; n <= many; n++) heap_put(&heap, &heap_owner, n, (int64_t)(n * UINT64_C(0x9E3779B97F4A7C15) >> 20));
  uint32_t most = heap.capacity;
  assert_true(most >= many);
  for (uint32_t n = 1; n <= many; n++) {
    heap_remove(&heap, &heap_owner, n);
    if (n % 10000 == 0) assert_true(heap_is_sound(&heap, &heap_owner));
    assert_true(heap.capacity <= 256 || heap.count >= heap.capacity / 16);
  }
  assert_true(heap.count == 0 && heap.capacity <= 256);
  heap_put(&heap, &heap_owner, 1, 5);
  assert_int_equal(heap_first(&heap).number, 1);
  heap_clear(&heap);
  free(all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_emptied_heap_gives_back),
      cmocka_unit_test(random_against_the_model),
      cmocka_unit_test(without_a_tie_equal_keys_all_come_out),
      cmocka_unit_test(a_time_is_due_from_its_moment_on),
      cmocka_unit_test(numbers_are_used_again_and_nothing_moves),
      cmocka_unit_test(churn_costs_no_pages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
