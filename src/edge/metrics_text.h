/* Counters as text for Prometheus, exposition format 0.0.4 (schema/http.md "Metrics"). Pure. */
#ifndef ORBIT_EDGE_METRICS_TEXT_H
#define ORBIT_EDGE_METRICS_TEXT_H

#include "base/bytes.h"
#include "engine/metrics.h"

/* What the operating system says of this process. */
struct process_numbers {
  uint64_t resident_bytes;
  uint64_t open_fds, max_fds;
  double cpu_seconds;
};

/* What the two edges have refused because a credential had its share. */
struct crowded_numbers {
  uint64_t requests, workers;
};

/* Appends all of it. metrics NULL: the engine is not there yet, and only what can be told without it is. replay_ratio is 0
 * to 1. */
void metrics_text_write(struct buffer *out, const struct metrics *metrics, const struct process_numbers *process,
                        const struct crowded_numbers *crowded, double replay_ratio, const char *version);

#endif
