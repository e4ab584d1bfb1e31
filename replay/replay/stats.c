/* orbit-replay stats: what the log is made of. Streams; memory does not grow with the log. */
#include <inttypes.h>
#include <stdio.h>

#include "base/time_text.h"
#include "replay/replay.h"

struct counting {
  uint64_t events[EVENT_type_end], bytes[EVENT_type_end];
  uint64_t all_events, all_bytes, commits;
  int64_t first_us, last_us;
  struct progress progress;
};

static enum status visit(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct counting *counting = context;
  (void)fault;
  counting->events[event->type]++;
  counting->bytes[event->type] += record.size;
  counting->all_events++;
  counting->all_bytes += record.size;
  counting->commits += event->last_of_commit;
  if (counting->first_us == 0) counting->first_us = event->time_us;
  counting->last_us = event->time_us;
  if (event->seq % 4096 == 0) progress_at(&counting->progress, event->seq);
  return STATUS_OK;
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
  (void)time_format(counting->first_us, first);
  (void)time_format(counting->last_us, last);
  (void)printf("\n%" PRIu64 " commits, %.1f events each\nfrom %s\nto   %s\n", counting->commits,
               (double)counting->all_events / (double)counting->commits, first, last);
  return code;
}

int replay_stats(const struct request *request) {
  static struct counting counting;
  struct journal *journal;
  struct fault fault = {0};
  int code = reading_open(request->cli.data, &journal);
  if (code != exit_done) return code;
  progress_begin(&counting.progress, "events", journal_last_seq(journal));
  enum status status = journal_replay(journal, 0, 0, visit, &counting, &fault);
  progress_end(&counting.progress);
  code = status == STATUS_OK ? print(&counting, request->cli.output) : tool_say(exit_finding, "%s", fault.message);
  journal_close(journal, false);
  return code;
}
