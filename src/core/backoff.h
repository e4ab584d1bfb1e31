/* Backoff with jitter (schema/semantics.md "Backoff"). Pure. */
#ifndef ORBIT_CORE_BACKOFF_H
#define ORBIT_CORE_BACKOFF_H

#include <stdint.h>

#include "base/id.h"

/* min(initial × 2^(number-1), max), without overflow for any number ≥ 1. Milliseconds. */
uint64_t backoff_base_ms(uint64_t initial_delay_ms, uint64_t max_delay_ms, uint32_t number);
/* In [ceil(base/2), base], drawn from the attempt id by XXH3-64: the same attempt always gets the same delay. */
uint64_t backoff_delay_ms(uint64_t base_ms, const struct id *attempt_id);

#endif
