/* What the engine counts, as a snapshot for whoever prints it (schema/http.md "Metrics"). */
#ifndef ORBIT_ENGINE_METRICS_H
#define ORBIT_ENGINE_METRICS_H

#include "base/status.h"
#include "core/command.h"
#include "core/model.h"
#include "journal/journal.h"
#include "state/evict.h"

/* Latencies in microseconds: bucket i counts what took at most 2^i × 16 µs and more than the bucket before; the last one all
 * that took longer. */
enum { latency_buckets = 22, latency_first_us = 16 };
struct latency {
  uint64_t counts[latency_buckets];
  uint64_t count, sum_us;
};
void latency_add(struct latency *latency, int64_t us);
/* Upper bound of a bucket in microseconds; UINT64_MAX: none. */
uint64_t latency_bound_us(unsigned bucket);

struct engine_counters {
  uint64_t commands[COMMAND_KIND_COUNT][STATUS_COUNT]; /* answered, by kind and result */
  uint64_t ticks, commits, events, receipts_hit, leases, expiries, evidence, mailbox_full;
  uint64_t triggers[TRIGGER_ENUM_END]; /* times of schedules decided, by outcome */
  struct latency schedule_lateness;    /* from a time to the commit that made its task */
  struct latency commit;               /* one commit with its sync */
  struct latency answer;               /* from the mailbox to the way back */
};

struct metrics_queue {
  struct queue queue;
  int64_t oldest_waiting_at; /* 0: none waits */
};

struct metrics {
  struct engine_counters engine;
  struct journal_stats journal;
  uint64_t tasks;           /* known */
  struct evict_counts kept; /* of them, what is in memory */
  uint64_t workers;         /* connected */
  uint64_t leased, running; /* attempts with authority, all namespaces */
  int64_t now_us;
  uint64_t log_end; /* the newest event */
  uint32_t subscription_count;
  struct subscription *subscriptions; /* behind the queues, of the same namespaces; same allocation */
  uint32_t queue_count;               /* of the asking credential's namespace; of all when it has none */
  struct metrics_queue queues[];
};

#endif
