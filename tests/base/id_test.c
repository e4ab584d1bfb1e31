/* Identifiers: text form, order, and the ids that carry an event's number. */
#include "base/id.h"

#include <string.h>

#include "base/time_text.h"
#include "support/support.h"

static void reads_and_writes_text(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool valid;
  } cases[] = {
      {"22222222222222222222222222222222", true},   {"0123456789abcdef0123456789abcdef", true},
      {"00000000000000000000000000000001", true},   {"ffffffffffffffffffffffffffffffff", true},
      {"00000000000000000000000000000000", false}, /* zero is "none" */
      {"0123456789ABCDEF0123456789ABCDEF", false}, /* upper case */
      {"0123456789abcdef0123456789abcde", false},  /* 31 */
      {"0123456789abcdef0123456789abcdef0", false}, {"", false},
      {"0123456789abcdef0123456789abcdeg", false},  {" 123456789abcdef0123456789abcdef", false},
      {"0x23456789abcdef0123456789abcdef", false},  {"01234567-89ab-cdef-0123-456789abc", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct id id;
    memset(&id, 0xA5, sizeof id);
    struct id before = id;
    assert_int_equal(id_parse(bytes_text(cases[i].text), &id), cases[i].valid);
    if (cases[i].valid) assert_string_equal(id_text(&id).text, cases[i].text);
    else assert_memory_equal(&id, &before, sizeof id); /* untouched on failure */
  }
}

/* Every byte at every place: a digit is known or nothing is. */
static void knows_each_digit_at_each_place(void **state) {
  (void)state;
  static const char digits[] = "0123456789abcdef";
  for (unsigned place = 0; place < id_chars; place++)
    for (unsigned c = 0; c < 256; c++) {
      char text[id_chars + 1] = "11111111111111111111111111111111";
      struct id id;
      text[place] = (char)c;
      const char *digit = c != 0 ? strchr(digits, (int)c) : NULL;
      if (id_parse(bytes_of(text, id_chars), &id) != (digit != NULL)) fail_msg("byte %u at %u", c, place);
      if (digit == NULL) continue;
      char written[id_chars];
      id_format(&id, written);
      assert_memory_equal(written, text, id_chars);
      assert_int_equal(id.bytes[place / 2] >> (place % 2 == 0 ? 4 : 0) & 15, digit - digits);
    }
}

static void orders_as_text(void **state) {
  (void)state;
  struct id a, b;
  assert_true(id_parse(bytes_text("00ff0000000000000000000000000000"), &a));
  assert_true(id_parse(bytes_text("01000000000000000000000000000000"), &b));
  assert_true(id_compare(&a, &b) < 0 && id_compare(&b, &a) > 0 && id_compare(&a, &a) == 0);
  assert_true(id_equal(&a, &a) && !id_equal(&a, &b));
  assert_true(id_hash(&a) != id_hash(&b));
  struct id zero = {{0}};
  assert_true(id_is_zero(&zero) && !id_is_zero(&a));
}

static uint64_t ms_of(const struct id *id) {
  uint64_t ms = 0;
  for (unsigned i = 0; i < 6; i++) ms = ms << 8 | id->bytes[i];
  return ms;
}

static void source_rises_strictly(void **state) {
  (void)state;
  uint64_t random = test_seed();
  struct id_source source;
  id_source_init(&source, random);
  int64_t now = time_us_min;
  struct id last = id_source_next(&source, now);
  assert_int_equal(ms_of(&last), (uint64_t)now / 1000);
  for (unsigned i = 0; i < 200000; i++) {
    if (test_random(&random) % 1000 == 0) now += (int64_t)(test_random(&random) % 3000);
    if (test_random(&random) % 5000 == 0) now -= 1000; /* a clock that goes back reorders nothing */
    struct id next = id_source_next(&source, now);
    assert_true(id_compare(&last, &next) < 0);
    last = next;
  }
}

static void source_overflows_into_the_next_millisecond(void **state) {
  (void)state;
  struct id_source source;
  id_source_init(&source, 7);
  int64_t now = time_us_min;
  struct id first = id_source_next(&source, now), last = first;
  for (unsigned i = 0; i < 65536; i++) {
    struct id next = id_source_next(&source, now);
    assert_true(id_compare(&last, &next) < 0);
    last = next;
  }
  assert_int_equal(ms_of(&last), ms_of(&first) + 1);
}

static void audit_ids_rise_with_the_log(void **state) {
  (void)state;
  static const uint64_t seqs[] = {1, 2, 255, 256, 65536, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};
  struct id last = {{0}};
  for (size_t i = 0; i < sizeof seqs / sizeof seqs[0]; i++) {
    struct id id = audit_id_make(time_us_min, seqs[i]);
    assert_int_equal(audit_id_seq(&id), seqs[i]);
    assert_int_equal(ms_of(&id), (uint64_t)time_us_min / 1000);
    assert_true(id_compare(&last, &id) < 0);
    last = id;
  }
  struct id later = audit_id_make(time_us_min + 1000, 1);
  assert_true(id_compare(&last, &later) < 0); /* time first */
  struct id end = audit_id_make(time_us_max - 1, 9);
  assert_int_equal(audit_id_seq(&end), 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_and_writes_text),
      cmocka_unit_test(knows_each_digit_at_each_place),
      cmocka_unit_test(orders_as_text),
      cmocka_unit_test(source_rises_strictly),
      cmocka_unit_test(source_overflows_into_the_next_millisecond),
      cmocka_unit_test(audit_ids_rise_with_the_log),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
