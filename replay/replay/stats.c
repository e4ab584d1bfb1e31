/* orbit-replay stats: what the log is made of. Streams; memory does not grow with the log. */
#include <inttypes.h>
#include <stdio.h>

#include "base/time_text.h"
#include "replay/replay.h"

enum { progress_every = 4096 };

struct counting {
  uint64_t events[EVENT_type_end], bytes[EVENT_type_end];
  uint64_t all_events, all_bytes, commits;
  int64_t first_us, last_us;
};

static void count(struct counting *counting, const struct event *event, struct bytes record) {
  counting->events[event->type]++;
  counting->bytes[event->type] += record.size;
  counting->all_events++;
  counting->all_bytes += record.size;
  counting->commits += event->last_of_commit;
  if (counting->first_us == 0) counting->first_us = event->time_us;
  counting->last_us = event->time_us;
}

static int print(const struct counting *counting, enum output output) {
  static const char *const columns[] = {"type", "events", "bytes", "bytes_per_event"};
  struct table table;
  table_begin(&table, output, columns, 4);
  table.numbers[1] = table.numbers[2] = table.numbers[3] = true;
  for (unsigned type = 1; type < EVENT_type_end; type++) {
    if (counting->events[type] == 0) continue;
    table_cell(&table, "%s", event_type_text((enum event_type)type));
    table_cell(&table, "%" PRIu64, counting->events[type]);
    table_cell(&table, "%" PRIu64, counting->bytes[type]);
    table_cell(&table, "%" PRIu64, counting->bytes[type] / counting->events[type]);
  }
  table_cell(&table, "all");
  table_cell(&table, "%" PRIu64, counting->all_events);
  table_cell(&table, "%" PRIu64, counting->all_bytes);
  table_cell(&table, "%" PRIu64, counting->all_events != 0 ? counting->all_bytes / counting->all_events : 0);
  int code = table_end(&table);
  if (output != OUTPUT_TEXT || counting->all_events == 0) return code;
  char first[time_chars_max + 1] = {0}, last[time_chars_max + 1] = {0};
  (void)time_format(time_with_text(counting->first_us), first);
  (void)time_format(time_with_text(counting->last_us), last);
  (void)printf("\n%" PRIu64 " commits, %.1f events each\nfrom %s\nto   %s\n", counting->commits,
               (double)counting->all_events / (double)counting->commits, first, last);
  return code;
}

/* What is damaged is said, and not counted. */
static uint64_t walk(struct counting *counting, struct scan *scan) {
  struct progress progress;
  struct event event;
  struct bytes record;
  uint64_t last = scan_last_seq(scan), damaged = 0, done = 0;
  enum status status = STATUS_OK;
  progress_begin(&progress, "events", last);
  for (scan_range(scan, 1, last, false); status != STATUS_END; done++) {
    struct fault fault = {.message = ""};
    if (done % progress_every == 0) progress_at(&progress, done);
    status = scan_next(scan, &event, &record, &fault);
    if (status == STATUS_OK) {
      count(counting, &event, record);
    } else if (status != STATUS_END) {
      damaged++;
      (void)tool_say(0, "%s", fault.message);
    }
  }
  progress_end(&progress);
  return damaged;
}

int replay_stats(const struct request *request) {
  static struct counting counting;
  struct scan *scan = scan_new(request->cli.data);
  if (scan == NULL) return exit_cannot_run;
  uint64_t damaged = walk(&counting, scan);
  int code = print(&counting, request->cli.output);
  if (code == exit_done && (damaged != 0 || scan_is_damaged(scan))) code = exit_finding;
  scan_free(scan);
  return code;
}
