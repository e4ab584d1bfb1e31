/* Memory that is made ready beside its use: what is written into it meanwhile stays, and an end at any time is fine. */
#include "state/warming.h"

#include <string.h>

#include "base/guard.h"
#include "support/support.h"

enum { piece_bytes = 24 << 20, stride = 4096 };

static void test_what_is_written_stays(void **context) {
  (void)context;
  uint8_t *one = guard_pages(piece_bytes, true), *other = guard_pages(piece_bytes, true);
  struct warming warming = {.count = 0};
  warming_add(&warming, NULL, 0);
  warming_add(&warming, one, piece_bytes);
  warming_add(&warming, other, piece_bytes);
  warming_begin(&warming);
  for (size_t at = 0; at < piece_bytes; at += stride) one[at] = other[piece_bytes - 1 - at] = (uint8_t)(1 + at / stride % 255);
  warming_end(&warming);
  warming_end(&warming);
  for (size_t at = 0; at < piece_bytes; at++) {
    uint8_t mark = (uint8_t)(1 + at / stride % 255);
    assert_int_equal(one[at], at % stride == 0 ? mark : 0);
    assert_int_equal(other[piece_bytes - 1 - at], at % stride == 0 ? mark : 0);
  }
  guard_pages_free(one, piece_bytes);
  guard_pages_free(other, piece_bytes);
}

static void test_ends_at_once_and_without_a_beginning(void **context) {
  (void)context;
  uint8_t *memory = guard_pages(piece_bytes, true);
  for (unsigned i = 0; i < 20; i++) {
    struct warming warming = {.count = 0};
    if (i != 0) warming_add(&warming, memory, piece_bytes);
    if (i != 1) warming_begin(&warming);
    assert_int_equal(warming.begun, i > 1);
    warming_end(&warming);
    assert_false(warming.begun);
  }
  guard_pages_free(memory, piece_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_written_stays),
      cmocka_unit_test(test_ends_at_once_and_without_a_beginning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
