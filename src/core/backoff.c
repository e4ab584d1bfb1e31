/* Owns the arithmetic of waiting between attempts. */
#include "core/backoff.h"

#include <xxhash.h>

#include "base/guard.h"

uint64_t backoff_base_ms(uint64_t initial_delay_ms, uint64_t max_delay_ms, uint32_t number) {
  must(number >= 1);
  uint64_t base = initial_delay_ms < max_delay_ms ? initial_delay_ms : max_delay_ms;
  /* Asked before each doubling, so that no product ever passes the cap; nothing doubled stays nothing. */
  for (uint32_t i = 1; i < number && base != 0 && base < max_delay_ms; i++)
    base = base > max_delay_ms / 2 ? max_delay_ms : base * 2;
  return base;
}

uint64_t backoff_delay_ms(uint64_t base_ms, const struct id *attempt_id) {
  uint64_t least = base_ms - base_ms / 2;
  uint64_t choices = base_ms / 2 + 1;
  return least + XXH3_64bits(attempt_id->bytes, id_bytes) % choices;
}
