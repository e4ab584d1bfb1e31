/* Owns the counters and the snapshot of them. */
#include "engine/metrics.h"

#include <stdlib.h>

#include "base/guard.h"
#include "engine/internal.h"

uint64_t latency_bound_us(unsigned bucket) {
  return bucket + 1 < latency_buckets ? (uint64_t)latency_first_us << bucket : UINT64_MAX;
}

void latency_add(struct latency *latency, int64_t us) {
  unsigned bucket = 0;
  uint64_t value = us > 0 ? (uint64_t)us : 0;
  while (value > latency_bound_us(bucket)) bucket++;
  latency->counts[bucket]++;
  latency->count++;
  latency->sum_us += value;
}

struct gathering {
  struct metrics *metrics;
  uint32_t capacity;
  const struct state *state;
  struct id namespace_id; /* zero: all */
};

static void gather_queue(void *context, const struct queue *queue) {
  struct gathering *gathering = context;
  struct metrics *metrics = gathering->metrics;
  metrics->leased += queue->counts[TASK_LEASED];
  metrics->running += queue->counts[TASK_RUNNING];
  if (!id_is_zero(&gathering->namespace_id) && !id_equal(&gathering->namespace_id, &queue->namespace_id)) return;
  if (metrics->queue_count == gathering->capacity) return;
  metrics->queues[metrics->queue_count++] =
      (struct metrics_queue){.queue = *queue, .oldest_waiting_at = state_oldest_waiting(gathering->state, &queue->id)};
}

static void gather_subscription(void *context, const struct subscription *subscription) {
  struct gathering *gathering = context;
  struct metrics *metrics = gathering->metrics;
  if (!id_is_zero(&gathering->namespace_id) && !id_equal(&gathering->namespace_id, &subscription->namespace_id)) return;
  metrics->subscriptions[metrics->subscription_count++] = *subscription;
}

enum status metrics_get(struct engine *engine, struct ticket *ticket) {
  uint32_t capacity = state_queue_count(engine->state);
  uint32_t subscriptions = state_subscriptions_live(engine->state);
  struct metrics *metrics =
      guard_calloc(1, sizeof *metrics + sizeof(struct metrics_queue) * capacity + sizeof(struct subscription) * subscriptions);
  metrics->subscriptions = (struct subscription *)(void *)&metrics->queues[capacity];
  metrics->log_end = state_last_seq(engine->state);
  struct gathering gathering = {metrics, capacity, engine->state, ticket->command.who.namespace_id};
  metrics->engine = engine->counters;
  metrics->engine.mailbox_full = atomic_load(&engine->mailbox_full);
  journal_stats(engine->journal, &metrics->journal);
  metrics->tasks = state_task_count(engine->state);
  metrics->kept = state_evict_counts(engine->state);
  metrics->workers = engine->workers.live;
  metrics->now_us = engine->now_us;
  state_each_queue(engine->state, gather_queue, &gathering);
  state_each_subscription(engine->state, gather_subscription, &gathering);
  ticket->answer.as.metrics = metrics;
  return STATUS_OK;
}
