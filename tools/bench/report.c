/* Owns the forms of a result: text for people, one JSON object a line for programs. */
#include <stdio.h>

#include "bench.h"

static const double unknown = -1;

void result_init(struct result *ret_result, const struct run *run) {
  *ret_result = (struct result){.options = run->options,
                                .submit = &run->submit,
                                .life = &run->life,
                                .server_cpu_us_per_task = unknown,
                                .syncs_per_task = unknown,
                                .disk_bytes_per_task = unknown,
                                .rss_bytes = unknown};
}

struct row {
  const char *name, *text; /* jsonl and text */
  double value;            /* negative: not known */
  int digits;              /* after the point */
};

static double quantile_us(const struct histogram *histogram, double share) {
  return histogram->total != 0 ? (double)histogram_quantile(histogram, share) / 1e3 : unknown;
}

static void print_row(const struct row *row, bool jsonl) {
  if (jsonl && row->value < 0) (void)printf(",\"%s\":null", row->name);
  else if (jsonl) (void)printf(",\"%s\":%.*f", row->name, row->digits, row->value);
  else if (row->value >= 0) (void)printf("  %-36s %14.*f\n", row->text, row->digits, row->value);
}

static void print_rows(const struct row *rows, size_t count, bool jsonl) {
  for (size_t i = 0; i < count; i++) print_row(&rows[i], jsonl);
}

void result_print(const struct result *result) {
  const struct bench_options *options = result->options;
  bool jsonl = options->jsonl;
  const struct row rows[] = {
      {"inflight", "submissions in flight", options->inflight, 0},
      {"tasks", "tasks", (double)result->tasks, 0},
      {"seconds", "seconds", result->seconds, 3},
      {"tasks_per_s", "tasks per second", result->seconds > 0 ? (double)result->tasks / result->seconds : unknown, 1},
      {"submit_p50_us", "submit, median, us", quantile_us(result->submit, 0.5), 1},
      {"submit_p99_us", "submit, 99th percentile, us", quantile_us(result->submit, 0.99), 1},
      {"life_p50_us", "submit to finish, median, us", quantile_us(result->life, 0.5), 1},
      {"life_p99_us", "submit to finish, 99th percentile, us", quantile_us(result->life, 0.99), 1},
      {"server_cpu_us_per_task", "server CPU per task, us", result->server_cpu_us_per_task, 2},
      {"syncs_per_task", "syncs (commits) per task", result->syncs_per_task, 4},
      {"disk_bytes_per_task", "log bytes in use per task", result->disk_bytes_per_task, 1},
      {"rss_bytes", "server resident bytes", result->rss_bytes, 0},
  };
  const struct row restart_rows[] = {
      {"replay_events", "events folded", (double)result->replay_events, 0},
      {"replay_seconds", "folding, seconds", result->replay_seconds, 3},
      {"replay_events_per_s", "events per second",
       result->replay_seconds > 0 ? (double)result->replay_events / result->replay_seconds : unknown, 0},
      {"ready_seconds", "start to ready, seconds", result->ready_seconds, 3},
      {"first_claim_seconds", "start to first claim, seconds", result->first_claim_seconds, 3},
      {"memory_bytes_per_task", "server memory per task, bytes", result->memory_bytes_per_task, 1},
  };
  (void)printf(jsonl ? "{\"mode\":\"%s\"" : "%s\n", options->mode);
  print_rows(rows, sizeof rows / sizeof rows[0], jsonl);
  if (options->batch != 0) {
    const struct row batch_row = {"batch", "tasks a request (the latency is a request's)", options->batch, 0};
    print_row(&batch_row, jsonl);
  }
  if (options->workers != 0) {
    const struct row worker_rows[] = {{"workers", "workers", options->workers, 0},
                                      {"capacity", "capacity of each", options->capacity, 0}};
    print_rows(worker_rows, 2, jsonl);
  }
  if (result->restarted) print_rows(restart_rows, sizeof restart_rows / sizeof restart_rows[0], jsonl);
  if (jsonl) (void)puts("}");
}
