/* Owns the arithmetic of log-linear buckets. */
#include "load/histogram.h"

#include <string.h>

#include "base/guard.h"

/* Values below 2^8 have a bucket each; above, each power of two has 2^7 of equal width. */
static unsigned bucket_of(uint64_t value) {
  unsigned bits = value != 0 ? 64 - (unsigned)__builtin_clzll(value) : 0;
  unsigned shift = bits > histogram_sub_bits ? bits - histogram_sub_bits : 0;
  return (shift << (histogram_sub_bits - 1)) + (unsigned)(value >> shift);
}

static uint64_t bucket_last(unsigned bucket) {
  unsigned half = 1U << (histogram_sub_bits - 1);
  unsigned shift = bucket < 2 * half ? 0 : bucket / half - 1;
  uint64_t value = bucket - (uint64_t)shift * half;
  return (value << shift) + ((UINT64_C(1) << shift) - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value) {
  histogram->counts[bucket_of(value)]++;
  histogram->total++;
  if (value > histogram->max) histogram->max = value;
}

uint64_t histogram_quantile(const struct histogram *histogram, double share) {
  must(share >= 0 && share <= 1);
  uint64_t wanted = (uint64_t)(share * (double)histogram->total + 0.5), seen = 0;
  for (unsigned i = 0; i < sizeof histogram->counts / sizeof histogram->counts[0]; i++) {
    seen += histogram->counts[i];
    if (histogram->counts[i] == 0 || seen < wanted) continue;
    uint64_t last = bucket_last(i);
    return last < histogram->max ? last : histogram->max;
  }
  return histogram->max;
}

void histogram_reset(struct histogram *histogram) { memset(histogram, 0, sizeof *histogram); }
