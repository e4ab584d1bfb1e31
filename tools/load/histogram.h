/* Latencies in the manner of HdrHistogram: log-linear buckets, so that every value is known to one part in 128 whatever its
 * size. */
#ifndef ORBIT_TOOLS_LOAD_HISTOGRAM_H
#define ORBIT_TOOLS_LOAD_HISTOGRAM_H

#include <stdint.h>

enum { histogram_sub_bits = 8, histogram_buckets = (64 - histogram_sub_bits + 1) << (histogram_sub_bits - 1) };

struct histogram {
  uint64_t counts[histogram_buckets + (1 << (histogram_sub_bits - 1))];
  uint64_t total, max;
};

void histogram_add(struct histogram *histogram, uint64_t value);
void histogram_reset(struct histogram *histogram);
/* The value that this share of all (0 … 1), rounded to a whole number of them, does not exceed: the upper end of its bucket,
 * and never over the largest value added. 0 when it is empty. */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

#endif
