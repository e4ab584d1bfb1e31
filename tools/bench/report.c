/* Owns the forms of a result: text for people, one JSON object a line for programs, and ratios to an earlier result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "bench.h"
#include "load/scan.h"

static const double unknown = -1;

void result_init(struct result *ret_result, const struct run *run) {
  *ret_result = (struct result){.options = run->options,
                                .submit = &run->submit,
                                .life = &run->life,
                                .other = &run->other,
                                .server_cpu_us_per_task = unknown,
                                .server_cpu_us_per_s = unknown,
                                .syncs_per_task = unknown,
                                .disk_bytes_per_task = unknown,
                                .rss_bytes = unknown};
}

struct row {
  const char *name, *text; /* jsonl and text */
  double value;            /* negative: not known */
  int digits;              /* after the point */
  bool says_what;          /* part of what was asked for: results are compared where these are equal */
};

enum { rows_max = 32 };

struct rows {
  struct row rows[rows_max];
  size_t count;
};

static void add(struct rows *rows, struct row row) {
  must(rows->count < rows_max);
  rows->rows[rows->count++] = row;
}

static double quantile_us(const struct histogram *histogram, double share) {
  return histogram->total != 0 ? (double)histogram_quantile(histogram, share) / 1e3 : unknown;
}

static double per_second(uint64_t count, double seconds) { return seconds > 0 ? (double)count / seconds : unknown; }

static void add_load(struct rows *rows, const struct result *result) {
  const struct bench_options *options = result->options;
  if (options->inflight != 0) add(rows, (struct row){"inflight", "submissions in flight", options->inflight, 0, true});
  if (options->batch != 0) add(rows, (struct row){"batch", "tasks a request (latency: of requests)", options->batch, 0, true});
  if (options->workers != 0) {
    add(rows, (struct row){"workers", "workers", options->workers, 0, true});
    add(rows, (struct row){"capacity", "capacity of each", options->capacity, 0, true});
  }
  bool idle = options->inflight == 0;
  if (options->idle_workers != 0 || idle)
    add(rows, (struct row){"idle_workers", "idle workers", options->idle_workers, 0, true});
  if (options->feed_readers != 0 || idle)
    add(rows, (struct row){"feed_readers", "readers of the feed", options->feed_readers, 0, true});
  if (!idle) add(rows, (struct row){"payload", "bytes of a payload", options->payload_bytes, 0, true});
  if (options->rate > 0) add(rows, (struct row){"rate", "asked for per second", options->rate, 1, true});
  if (result->history != 0) add(rows, (struct row){"history", "tasks of history", (double)result->history, 0, true});
}

static void add_costs(struct rows *rows, const struct result *result) {
  add(rows, (struct row){"tasks", "tasks", (double)result->tasks, 0, false});
  add(rows, (struct row){"seconds", "seconds", result->seconds, 3, false});
  add(rows, (struct row){"tasks_per_s", "tasks per second", per_second(result->tasks, result->seconds), 1, false});
  add(rows, (struct row){"submit_p50_us", "submit, median, us", quantile_us(result->submit, 0.5), 1, false});
  add(rows, (struct row){"submit_p99_us", "submit, 99th percentile, us", quantile_us(result->submit, 0.99), 1, false});
  add(rows, (struct row){"life_p50_us", "submit to finish, median, us", quantile_us(result->life, 0.5), 1, false});
  add(rows, (struct row){"life_p99_us", "submit to finish, 99th percentile, us", quantile_us(result->life, 0.99), 1, false});
  add(rows, (struct row){"server_cpu_us_per_task", "server CPU per task, us", result->server_cpu_us_per_task, 2, false});
  add(rows, (struct row){"syncs_per_task", "syncs (commits) per task", result->syncs_per_task, 4, false});
  add(rows, (struct row){"disk_bytes_per_task", "log bytes in use per task", result->disk_bytes_per_task, 1, false});
  add(rows, (struct row){"rss_bytes", "server resident bytes", result->rss_bytes, 0, false});
}

static void add_idle(struct rows *rows, const struct result *result) {
  add(rows, (struct row){"seconds", "seconds", result->seconds, 3, false});
  add(rows, (struct row){"server_cpu_us_per_s", "server CPU per second, us", result->server_cpu_us_per_s, 1, false});
  add(rows, (struct row){"rss_bytes", "server resident bytes", result->rss_bytes, 0, false});
}

static void add_readers(struct rows *rows, const struct result *result) {
  add(rows, (struct row){"feed_events", "events that came to readers", (double)result->feed_events, 0, false});
  add(rows,
      (struct row){"feed_events_per_s", "of them per second", per_second(result->feed_events, result->seconds), 1, false});
}

static void add_mixed(struct rows *rows, const struct result *result) {
  double rate = per_second(result->other_requests, result->seconds);
  add(rows, (struct row){"other_requests", "reads, lists, repeats, cancels", (double)result->other_requests, 0, false});
  add(rows, (struct row){"other_per_s", "of them per second", rate, 1, false});
  add(rows, (struct row){"other_p50_us", "their median, us", quantile_us(result->other, 0.5), 1, false});
  add(rows, (struct row){"other_p99_us", "their 99th percentile, us", quantile_us(result->other, 0.99), 1, false});
}

static void add_restart(struct rows *rows, const struct result *result) {
  double rate = per_second(result->replay_events, result->replay_seconds);
  add(rows, (struct row){"replay_events", "events folded", (double)result->replay_events, 0, false});
  add(rows, (struct row){"replay_seconds", "folding, seconds", result->replay_seconds, 3, false});
  add(rows, (struct row){"replay_events_per_s", "events per second", rate, 0, false});
  add(rows, (struct row){"ready_seconds", "start to ready, seconds", result->ready_seconds, 3, false});
  add(rows, (struct row){"first_claim_seconds", "start to first claim, seconds", result->first_claim_seconds, 3, false});
  add(rows, (struct row){"memory_bytes_per_task", "server memory per task, bytes", result->memory_bytes_per_task, 1, false});
}

/* ---- an earlier result beside it ---- */

/* The number of an earlier result; negative: it has none. */
static double earlier_value(struct bytes earlier, const char *name) {
  struct bytes value = scan_member(earlier, name);
  char text[64], *end;
  if (value.data == NULL || value.size >= sizeof text) return unknown;
  (void)snprintf(text, sizeof text, "%.*s", (int)value.size, (const char *)value.data);
  double number = strtod(text, &end);
  return end != text && *end == '\0' ? number : unknown;
}

/* Whether it is a result of the same load. */
static bool is_like(struct bytes earlier, const char *mode, const struct rows *rows) {
  if (!bytes_equal_text(scan_text(earlier, "mode"), mode)) return false;
  for (size_t i = 0; i < rows->count; i++) {
    const struct row *row = &rows->rows[i];
    double difference = earlier_value(earlier, row->name) - row->value;
    if (row->says_what && (difference > 0.05 || difference < -0.05)) return false;
  }
  return true;
}

/* The last result of the same load in the file's lines; data NULL: there is none. */
static struct bytes find_earlier(struct bytes file, const char *mode, const struct rows *rows) {
  struct bytes found = bytes_of(NULL, 0);
  if (file.size == 0) return found;
  for (const uint8_t *at = file.data, *end = at + file.size, *line_end; at < end; at = line_end + 1) {
    line_end = memchr(at, '\n', (size_t)(end - at));
    if (line_end == NULL) break;
    struct bytes line = bytes_of(at, (size_t)(line_end - at));
    if (line.size > 2 && line.data[0] == '{' && is_like(line, mode, rows)) found = line;
  }
  return found;
}

/* ---- printing ---- */

static void print_ratio(const struct row *row, struct bytes earlier) {
  double before = earlier_value(earlier, row->name);
  if (!row->says_what && before > 0 && row->value >= 0) (void)printf("  x%.3f", row->value / before);
}

static void print_text(const struct rows *rows, const char *mode, struct bytes earlier) {
  (void)printf("%s\n", mode);
  for (size_t i = 0; i < rows->count; i++) {
    const struct row *row = &rows->rows[i];
    if (row->value < 0) continue;
    (void)printf("  %-38s %14.*f", row->text, row->digits, row->value);
    print_ratio(row, earlier);
    (void)putchar('\n');
  }
}

static void print_object(const struct rows *rows, const char *mode, struct bytes earlier) {
  (void)printf("{\"mode\":\"%s\"", mode);
  for (size_t i = 0; i < rows->count; i++) {
    const struct row *row = &rows->rows[i];
    if (row->value < 0) (void)printf(",\"%s\":null", row->name);
    else (void)printf(",\"%s\":%.*f", row->name, row->digits, row->value);
  }
  const char *separator = "";
  if (earlier.data != NULL) (void)fputs(",\"ratio\":{", stdout);
  for (size_t i = 0; earlier.data != NULL && i < rows->count; i++) {
    const struct row *row = &rows->rows[i];
    double before = earlier_value(earlier, row->name);
    if (row->says_what || before <= 0 || row->value < 0) continue;
    (void)printf("%s\"%s\":%.4f", separator, row->name, row->value / before);
    separator = ",";
  }
  (void)puts(earlier.data != NULL ? "}}" : "}");
}

void result_print(const struct result *result) {
  const struct bench_options *options = result->options;
  struct rows rows = {.count = 0};
  add_load(&rows, result);
  if (options->inflight != 0) add_costs(&rows, result);
  else add_idle(&rows, result);
  if (options->feed_readers != 0) add_readers(&rows, result);
  if (options->mixed) add_mixed(&rows, result);
  if (result->restarted) add_restart(&rows, result);
  struct bytes earlier = find_earlier(buffer_bytes(&options->against), options->mode, &rows);
  if (options->jsonl) print_object(&rows, options->mode, earlier);
  else print_text(&rows, options->mode, earlier);
}
