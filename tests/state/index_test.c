/* The hash index against a naive model: several values a key, growth by small steps, tombstones. */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "state/index.h"

/* ---- the model: an unordered list ---- */

enum { model_max = 4096 };

struct pair {
  uint64_t key, value;
};

struct model {
  struct pair pairs[model_max];
  uint32_t count;
};

static uint32_t model_count(const struct model *model, uint64_t key, uint64_t value) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < model->count; i++)
    count += model->pairs[i].key == key && (value == 0 || model->pairs[i].value == value);
  return count;
}

/* Each value that the index gives for the key is the model's, as many times as there. */
static void compare_key(const struct index *index, const struct model *model, uint64_t key) {
  uint32_t found = 0;
  struct index_cursor cursor;
  for (uint64_t value = index_find(index, key, &cursor); value != 0; value = index_next(index, &cursor)) {
    assert_true(model_count(model, key, value) > 0);
    assert_true(++found <= model->count);
  }
  assert_int_equal(found, model_count(model, key, 0));
}

static void compare_all(const struct index *index, const struct model *model) {
  uint64_t key, value, sum = 0, expected = 0;
  uint32_t count = 0;
  for (size_t at = 0; index_each(index, &at, &key, &value); count++) {
    assert_true(model_count(model, key, value) > 0);
    sum += key * 31 + value;
  }
  for (uint32_t i = 0; i < model->count; i++) expected += model->pairs[i].key * 31 + model->pairs[i].value;
  assert_int_equal(count, model->count);
  assert_int_equal(index->count, model->count);
  assert_int_equal(sum, expected);
}

static void random_against_the_model(void **context) {
  (void)context;
  uint64_t seed = test_seed();
  struct model *model = calloc(1, sizeof *model);
  struct index index;
  index_init(&index);
  uint64_t keys = 300; /* few, so that keys have several values */
  for (uint32_t step = 0; step < 30000; step++) {
    uint64_t random = test_random(&seed);
    /* Waves: mostly adding, then mostly removing. */
    bool grow = model->count == 0 || (random % 100 < (step / 3000 % 2 == 0 ? 60U : 40U) && model->count < model_max);
    if (grow) {
      struct pair pair = {test_random(&seed) % keys, test_random(&seed) % 5 + 1};
      if (random % 7 == 0) pair.key = pair.key << 40; /* keys that differ in high bits alone */
      index_add(&index, pair.key, pair.value);
      model->pairs[model->count++] = pair;
      compare_key(&index, model, pair.key);
    } else {
      uint32_t which = (uint32_t)(test_random(&seed) % model->count);
      struct pair pair = model->pairs[which];
      index_remove(&index, pair.key, pair.value);
      model->pairs[which] = model->pairs[--model->count];
      compare_key(&index, model, pair.key);
    }
    compare_key(&index, model, test_random(&seed) % keys);
    if (step % 500 == 0) compare_all(&index, model);
  }
  compare_all(&index, model);
  index_clear(&index);
  free(model);
}

static void an_empty_index_finds_nothing(void **context) {
  (void)context;
  struct index index;
  struct index_cursor cursor;
  uint64_t key, value;
  size_t at = 0;
  index_init(&index);
  assert_int_equal(index_find(&index, 0, &cursor), 0);
  assert_int_equal(index_next(&index, &cursor), 0);
  assert_false(index_each(&index, &at, &key, &value));
  index_add(&index, 0, 1); /* key 0 is a key like any other */
  assert_int_equal(index_find(&index, 0, &cursor), 1);
  assert_int_equal(index_next(&index, &cursor), 0);
  index_remove(&index, 0, 1);
  assert_int_equal(index_find(&index, 0, &cursor), 0);
  index_clear(&index);
}

/* At every size, so also in the middle of each growth: all is found, and a walk meets each entry once. */
static void all_is_there_during_growth(void **context) {
  (void)context;
  enum { many = 13000 };
  struct index index;
  uint8_t *seen = malloc(many + 1);
  unsigned growing = 0;
  index_init(&index);
  for (uint64_t n = 1; n <= many; n++) {
    index_add(&index, n * 0x9E3779B97F4A7C15U, n);
    growing += index.old.slots != NULL;
    if (index.old.slots == NULL && n % 100 != 0) continue;
    uint64_t key, value;
    uint32_t count = 0;
    memset(seen, 0, many + 1);
    for (size_t at = 0; index_each(&index, &at, &key, &value); count++) {
      assert_in_range(value, 1, n);
      assert_int_equal(key, value * 0x9E3779B97F4A7C15U);
      assert_int_equal(seen[value]++, 0);
    }
    assert_int_equal(count, n);
    struct index_cursor cursor;
    for (uint64_t i = 1; i <= n; i += 7) assert_int_equal(index_find(&index, i * 0x9E3779B97F4A7C15U, &cursor), i);
  }
  assert_true(growing > 100); /* steps were small, so growth was seen in the middle */
  free(seen);
  index_clear(&index);
}

static size_t slots_of(const struct index *index) {
  return (index->now.slots != NULL ? index->now.mask + 1 : 0) + (index->old.slots != NULL ? index->old.mask + 1 : 0);
}

/* Adds keys from *next on until one more would make the table grow, with no growth under way. */
static void fill_up(struct index *index, size_t slots_least, uint64_t *next) {
  while (index->now.mask + 1 < slots_least || index->old.slots != NULL || index->now.taken < (index->now.mask + 1) / 4 * 3)
    index_add(index, *next, *next), ++*next;
}

/* No addition moves more than a few slots, whatever was there before: here a large table in which nearly nothing lives. */
static void growth_is_paid_in_small_steps(void **context) {
  (void)context;
  struct index index;
  uint64_t next = 1;
  size_t most = 0;
  index_init(&index);
  fill_up(&index, 65536, &next);
  for (uint64_t n = 1; n < next; n++) index_remove(&index, n, n);
  for (unsigned i = 0; i < 300000; i++, next++) {
    const struct index_slot *old = index.old.slots;
    size_t before = index.moved, left = old != NULL ? index.old.mask + 1 - before : 0;
    index_add(&index, next, next);
    size_t steps = old == NULL ? 0 : index.old.slots == old ? index.moved - before : left;
    if (steps > most) most = steps;
  }
  assert_in_range(most, 1, 64);
  assert_int_equal(index.count, 300000);
  index_clear(&index);
}

/* A large table whose few living entries lie at its end, the worst place for whoever moves from the front. */
static void few_left_at_the_far_end(void **context) {
  (void)context;
  for (uint32_t left = 100; left <= 1000; left += 25) {
    struct index index;
    uint64_t key, value, next = 1;
    index_init(&index);
    fill_up(&index, 32768, &next);
    uint64_t *keys = malloc(sizeof *keys * index.count);
    uint32_t count = 0;
    for (size_t at = 0; index_each(&index, &at, &key, &value);) keys[count++] = key;
    assert_true(left < count);
    for (uint32_t i = 0; i < count - left; i++) index_remove(&index, keys[i], keys[i]);
    for (uint32_t i = 0; i < 20000; i++) index_add(&index, next, next), next++; /* through the next growths */
    struct index_cursor cursor;
    for (uint32_t i = count - left; i < count; i++) assert_int_equal(index_find(&index, keys[i], &cursor), keys[i]);
    assert_int_equal(index.count, left + 20000);
    free(keys);
    index_clear(&index);
  }
}

/* Entries come and go for ever: memory stays what the living need. */
static void churn_costs_no_memory(void **context) {
  (void)context;
  enum { living = 100 };
  struct index index;
  size_t most = 0;
  index_init(&index);
  for (uint64_t n = 1; n <= 1000000; n++) {
    index_add(&index, n * 0x2545F4914F6CDD1DU, n);
    if (n > living) index_remove(&index, (n - living) * 0x2545F4914F6CDD1DU, n - living);
    if (slots_of(&index) > most) most = slots_of(&index);
  }
  assert_int_equal(index.count, living);
  assert_in_range(most, living, 1024);
  struct index_cursor cursor;
  for (uint64_t n = 1000000 - living + 1; n <= 1000000; n++)
    assert_int_equal(index_find(&index, n * 0x2545F4914F6CDD1DU, &cursor), n);
  index_clear(&index);
}

/* One key with many values, as receipts whose first bytes fall together: removing one leaves the others. */
static void many_values_of_one_key(void **context) {
  (void)context;
  enum { many = 500 };
  struct index index;
  struct index_cursor cursor;
  index_init(&index);
  for (uint64_t value = 1; value <= many; value++) index_add(&index, 77, value);
  for (uint64_t gone = 1; gone <= many; gone += 2) index_remove(&index, 77, gone);
  uint64_t sum = 0, expected = 0;
  for (uint64_t value = index_find(&index, 77, &cursor); value != 0; value = index_next(&index, &cursor)) {
    assert_int_equal(value % 2, 0);
    sum += value;
  }
  for (uint64_t value = 2; value <= many; value += 2) expected += value;
  assert_int_equal(sum, expected);
  index_clear(&index);
}

/* Emptied at any size, also while it grows, it is as a new one. */
static void emptied_it_finds_nothing(void **state) {
  (void)state;
  static const uint64_t counts[] = {0, 1, 48, 49, 50, 96, 100, 100000, 3};
  struct index index;
  struct index_cursor cursor;
  index_init(&index);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    for (uint64_t key = 1; key <= counts[i]; key++) index_add(&index, key, key + i);
    for (uint64_t key = 1; key <= counts[i]; key++) {
      assert_int_equal(index_find(&index, key, &cursor), key + i);
      assert_int_equal(index_next(&index, &cursor), 0);
    }
    index_empty(&index);
    assert_int_equal(index.count, 0);
    for (uint64_t key = 1; key <= counts[i]; key++) assert_int_equal(index_find(&index, key, &cursor), 0);
  }
  size_t size;
  assert_non_null(index_pages(&index, &size)); /* the room for a hundred thousand is still there */
  assert_true(size > 100000 * sizeof(struct index_slot));
  index_clear(&index);
  (void)index_pages(&index, &size);
  assert_int_equal(size, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_empty_index_finds_nothing), cmocka_unit_test(random_against_the_model),
      cmocka_unit_test(all_is_there_during_growth),   cmocka_unit_test(growth_is_paid_in_small_steps),
      cmocka_unit_test(few_left_at_the_far_end),      cmocka_unit_test(churn_costs_no_memory),
      cmocka_unit_test(many_values_of_one_key),       cmocka_unit_test(emptied_it_finds_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
