/* Owns the queue's rate: GCRA, the generic cell rate algorithm, on leases. */
#include "core/decide.h"

/* Between two leases at the steady rate, rounded up: over any stretch of time the limit is never passed. */
static int64_t interval_us(const struct queue *queue) {
  uint64_t period, interval;
  if (__builtin_mul_overflow(queue->rate.per_ms, UINT64_C(1000), &period)) return INT64_MAX;
  interval = period / queue->rate.tasks + (period % queue->rate.tasks != 0);
  return interval > INT64_MAX ? INT64_MAX : (int64_t)interval;
}

int64_t rate_next_us(const struct queue *queue) {
  if (queue->rate.tasks == 0) return 0;
  uint64_t ahead = queue->rate.burst > 1 ? queue->rate.burst - 1 : 0, allowance;
  if (__builtin_mul_overflow(ahead, (uint64_t)interval_us(queue), &allowance)) return 0;
  return allowance >= (uint64_t)queue->rate_at ? 0 : queue->rate_at - (int64_t)allowance;
}

int64_t rate_after_us(const struct queue *queue, int64_t time_us) {
  if (queue->rate.tasks == 0) return queue->rate_at;
  int64_t from = queue->rate_at > time_us ? queue->rate_at : time_us, after;
  return __builtin_add_overflow(from, interval_us(queue), &after) ? INT64_MAX : after;
}

int64_t rate_changed_us(const struct queue *queue, int64_t time_us) {
  int64_t debt, most;
  if (queue->rate.tasks == 0) return queue->rate_at;
  uint64_t burst = queue->rate.burst > 1 ? queue->rate.burst : 1;
  if (__builtin_mul_overflow(burst, (uint64_t)interval_us(queue), &debt) || __builtin_add_overflow(time_us, debt, &most))
    return queue->rate_at;
  return queue->rate_at < most ? queue->rate_at : most;
}
