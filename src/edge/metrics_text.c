/* Owns the names, texts and form of the metrics. */
#include "edge/metrics_text.h"

#include <inttypes.h>

#include "base/guard.h"
#include "base/status.h"

/* ---- Lines ---- */

static void family(struct buffer *out, const char *name, const char *type, const char *help) {
  buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void whole(struct buffer *out, const char *name, const char *type, uint64_t value, const char *help) {
  family(out, name, type, help);
  buffer_append_format(out, "%s %" PRIu64 "\n", name, value);
}

static void real(struct buffer *out, const char *name, const char *type, double value, const char *help) {
  family(out, name, type, help);
  buffer_append_format(out, "%s %.9g\n", name, value);
}

static double seconds(uint64_t us) { return (double)us / 1e6; }

/* Buckets of the text are cumulative. */
static void histogram(struct buffer *out, const char *name, const struct latency *latency, const char *help) {
  uint64_t below = 0;
  family(out, name, "histogram", help);
  for (unsigned i = 0; i < latency_buckets; i++) {
    uint64_t bound = latency_bound_us(i);
    below += latency->counts[i];
    if (bound != UINT64_MAX) buffer_append_format(out, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", name, seconds(bound), below);
  }
  buffer_append_format(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, latency->count);
  buffer_append_format(out, "%s_sum %.9g\n%s_count %" PRIu64 "\n", name, seconds(latency->sum_us), name, latency->count);
}

/* ---- Families ---- */

/* A kind that was never asked for is told as 0 OK, so that every series is there from the start. */
static void write_commands(struct buffer *out, const struct engine_counters *counters) {
  static const char name[] = "orbit_commands_total";
  family(out, name, "counter", "Commands answered, by kind and result.");
  for (unsigned kind = 1; kind < COMMAND_KIND_COUNT; kind++) {
    const char *text = command_kind_text((enum command_kind)kind);
    if (text[0] == '\0') continue;
    for (unsigned result = 0; result < STATUS_COUNT; result++) {
      uint64_t count = counters->commands[kind][result];
      if (count == 0 && result != STATUS_OK) continue;
      buffer_append_format(out, "%s{kind=\"%s\",result=\"%s\"} %" PRIu64 "\n", name, text, status_name((enum status)result),
                           count);
    }
  }
}

static void queue_labels(struct buffer *out, const char *name, const struct queue *queue) {
  buffer_append_format(out, "%s{namespace=\"%s\",queue_id=\"%s\"", name, id_text(&queue->namespace_id).text,
                       id_text(&queue->id).text);
}

static void write_queue_tasks(struct buffer *out, const struct metrics *metrics) {
  static const char name[] = "orbit_queue_tasks";
  family(out, name, "gauge", "Tasks of a queue by state.");
  for (uint32_t i = 0; i < metrics->queue_count; i++) {
    const struct queue *queue = &metrics->queues[i].queue;
    for (unsigned state = TASK_NONE + 1; state < TASK_ENUM_END; state++) {
      queue_labels(out, name, queue);
      buffer_append_format(out, ",state=\"%s\"} %" PRIu64 "\n", task_state_text((enum task_state)state), queue->counts[state]);
    }
  }
}

static void write_oldest_waiting(struct buffer *out, const struct metrics *metrics) {
  static const char name[] = "orbit_queue_oldest_waiting_seconds";
  family(out, name, "gauge",
         "How long the waiting task that could have begun first has been able to begin; 0 when none waits.");
  for (uint32_t i = 0; i < metrics->queue_count; i++) {
    int64_t oldest = metrics->queues[i].oldest_waiting_at;
    uint64_t age = oldest != 0 && oldest < metrics->now_us ? (uint64_t)(metrics->now_us - oldest) : 0;
    queue_labels(out, name, &metrics->queues[i].queue);
    buffer_append_format(out, "} %.9g\n", seconds(age));
  }
}

static void write_queue_paused(struct buffer *out, const struct metrics *metrics) {
  static const char name[] = "orbit_queue_paused";
  family(out, name, "gauge", "1 while the queue is paused.");
  for (uint32_t i = 0; i < metrics->queue_count; i++) {
    queue_labels(out, name, &metrics->queues[i].queue);
    buffer_append_format(out, "} %d\n", metrics->queues[i].queue.paused);
  }
}

static void write_subscriptions(struct buffer *out, const struct metrics *metrics) {
  static const char name[] = "orbit_subscription_lag";
  family(out, name, "gauge", "Events of the log behind the position of a subscription.");
  for (uint32_t i = 0; i < metrics->subscription_count; i++) {
    const struct subscription *subscription = &metrics->subscriptions[i];
    buffer_append_format(out, "%s{namespace=\"%s\",subscription_id=\"%s\"} %" PRIu64 "\n", name,
                         id_text(&subscription->namespace_id).text, id_text(&subscription->id).text,
                         metrics->log_end - subscription->position);
  }
}

static void write_leases(struct buffer *out, const struct metrics *metrics) {
  static const char name[] = "orbit_leases";
  family(out, name, "gauge", "Attempts that hold a lease now, by state.");
  buffer_append_format(out, "%s{state=\"LEASED\"} %" PRIu64 "\n%s{state=\"RUNNING\"} %" PRIu64 "\n", name, metrics->leased,
                       name, metrics->running);
}

static void write_triggers(struct buffer *out, const struct engine_counters *counters) {
  static const char name[] = "orbit_schedule_triggers_total";
  family(out, name, "counter", "Times of schedules decided, by outcome.");
  for (unsigned outcome = TRIGGER_NONE + 1; outcome < TRIGGER_ENUM_END; outcome++)
    buffer_append_format(out, "%s{outcome=\"%s\"} %" PRIu64 "\n", name, trigger_outcome_text((enum trigger_outcome)outcome),
                         counters->triggers[outcome]);
}

static void write_engine(struct buffer *out, const struct metrics *metrics) {
  const struct engine_counters *engine = &metrics->engine;
  const struct journal_stats *journal = &metrics->journal;
  write_commands(out, engine);
  whole(out, "orbit_receipts_hit_total", "counter", engine->receipts_hit, "Repeats that got the first answer.");
  whole(out, "orbit_mailbox_full_total", "counter", engine->mailbox_full, "Commands refused because too many waited.");
  whole(out, "orbit_ticks_total", "counter", engine->ticks, "Rounds of the engine.");
  whole(out, "orbit_commits_total", "counter", engine->commits, "Commits to the log, each with one sync.");
  whole(out, "orbit_events_total", "counter", engine->events, "Events committed.");
  whole(out, "orbit_commit_bytes_total", "counter", journal->bytes, "Bytes of records committed.");
  whole(out, "orbit_syncs_total", "counter", journal->syncs, "Syncs of the log's file.");
  histogram(out, "orbit_commit_seconds", &engine->commit, "Time of one commit with its sync.");
  histogram(out, "orbit_answer_seconds", &engine->answer, "Time of a command in the engine, its commit included.");
  whole(out, "orbit_tasks", "gauge", metrics->tasks, "Tasks known, ended ones too.");
  whole(out, "orbit_tasks_in_memory", "gauge", metrics->kept.tasks, "Tasks kept in memory.");
  whole(out, "orbit_tasks_ended_in_memory", "gauge", metrics->kept.ended, "Of them, those that have ended.");
  whole(out, "orbit_tasks_left_memory", "gauge", metrics->kept.tasks_away, "Ended tasks that are not in memory.");
  whole(out, "orbit_receipts_in_memory", "gauge", metrics->kept.receipts, "Receipts kept in memory.");
  whole(out, "orbit_memory_bytes", "gauge", metrics->kept.bytes, "What tasks and receipts take in memory, about.");
  write_queue_tasks(out, metrics);
  write_oldest_waiting(out, metrics);
  write_queue_paused(out, metrics);
  write_leases(out, metrics);
  whole(out, "orbit_leases_total", "counter", engine->leases, "Leases given to workers.");
  whole(out, "orbit_expiries_total", "counter", engine->expiries, "Timers of tasks that came and led to something.");
  whole(out, "orbit_evidence_total", "counter", engine->evidence, "Reports that came without authority.");
  write_triggers(out, engine);
  histogram(out, "orbit_schedule_lateness_seconds", &engine->schedule_lateness,
            "From a schedule's time to the decision that made its task.");
  whole(out, "orbit_workers", "gauge", metrics->workers, "Workers connected.");
  write_subscriptions(out, metrics);
  whole(out, "orbit_log_file_bytes", "gauge", journal->file_bytes, "Size of the log's file.");
  whole(out, "orbit_log_used_bytes", "gauge", journal->used_bytes, "Bytes of it that hold something.");
  whole(out, "orbit_log_reserved_bytes", "gauge", journal->reserved_bytes, "Bytes of it that are written ahead and free.");
}

static void write_process(struct buffer *out, const struct process_numbers *process) {
  real(out, "process_cpu_seconds_total", "counter", process->cpu_seconds, "Processor time used.");
  whole(out, "process_resident_memory_bytes", "gauge", process->resident_bytes,
        "Resident memory, pages of the log that are mapped included.");
  whole(out, "process_open_fds", "gauge", process->open_fds, "Open file descriptors.");
  whole(out, "process_max_fds", "gauge", process->max_fds, "File descriptors that may be open.");
}

static void write_crowded(struct buffer *out, const struct crowded_numbers *crowded) {
  static const char name[] = "orbit_crowded_total";
  family(out, name, "counter", "Refused because their credential had its share: requests under way, workers connected.");
  buffer_append_format(out, "%s{edge=\"http\"} %" PRIu64 "\n%s{edge=\"worker\"} %" PRIu64 "\n", name, crowded->requests, name,
                       crowded->workers);
}

void metrics_text_write(struct buffer *out, const struct metrics *metrics, const struct process_numbers *process,
                        const struct crowded_numbers *crowded, double replay_ratio, const char *version) {
  must(replay_ratio >= 0 && replay_ratio <= 1);
  family(out, "orbit_info", "gauge", "Always 1; the version is in the label.");
  buffer_append_format(out, "orbit_info{version=\"%s\"} 1\n", version);
  real(out, "orbit_replay_ratio", "gauge", replay_ratio,
       "How much of the log has been read since the start; 1 once it is done.");
  if (metrics != NULL) write_engine(out, metrics);
  write_crowded(out, crowded);
  write_process(out, process);
}
