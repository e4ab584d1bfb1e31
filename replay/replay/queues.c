/* orbit-replay queues: the queues and their counts as the views said at a position. */
#include <inttypes.h>
#include <stdio.h>

#include "reading/kept.h"
#include "replay/replay.h"

struct listing {
  struct kept kept; /* the records that hold their names */
  struct history *history;
  struct table *table;
  struct out *out; /* of text */
  bool damaged;
};

static struct bytes name_of(struct listing *listing, const struct queue *queue) {
  struct event event;
  if (history_event(listing->history, kept_source(&listing->kept), queue->config_seq, &event) == STATUS_OK)
    return event.type == EVENT_queue_changed ? event.body.queue_changed.name : event.body.queue_created.name;
  listing->damaged = true;
  return bytes_text("");
}

static void queue_row(void *context, const struct queue *queue) {
  struct listing *listing = context;
  struct table *table = listing->table;
  struct bytes name = name_of(listing, queue);
  table_cell(table, "%s", id_text(&queue->id).text);
  table_text(table, name);
  table_cell(table, "%s", queue->paused ? "true" : "false");
  for (unsigned state = TASK_WAITING; state < TASK_ENUM_END; state++) table_cell(table, "%" PRIu64, queue->counts[state]);
}

/* A few lines a queue: nine columns would not fit a terminal of 80. */
static void queue_text(void *context, const struct queue *queue) {
  struct listing *listing = context;
  struct buffer *text = &listing->out->text;
  buffer_append_format(text, "Queue %s ", id_text(&queue->id).text);
  put_safe(text, name_of(listing, queue), true);
  buffer_append_format(text, "%s%s%s\n", out_colour(listing->out, COLOUR_DOUBT), queue->paused ? ", paused" : "",
                       out_colour(listing->out, COLOUR_NONE));
  for (unsigned state = TASK_WAITING; state < TASK_ENUM_END; state++) {
    buffer_append_format(text, "  %-12s %9" PRIu64, task_state_text((enum task_state)state), queue->counts[state]);
    if (state == TASK_RUNNING || state == TASK_FAILED || state + 1 == TASK_ENUM_END) buffer_append_char(text, '\n');
  }
}

static int print(struct listing *listing, const struct folding *folding, const struct request *request) {
  static const char *const columns[] = {"queue_id", "name",         "paused",    "WAITING", "LEASED",
                                        "RUNNING",  "NEEDS_REVIEW", "SUCCEEDED", "FAILED",  "CANCELLED"};
  struct table table;
  struct out out;
  if (request->cli.output == OUTPUT_TEXT) {
    listing->out = &out;
    out_begin(&out);
    state_each_queue(folding->state, queue_text, listing);
    buffer_append_format(&out.text, "as of seq %" PRIu64, folding->last_seq);
    if (folding->last_seq != 0)
      buffer_append_format(&out.text, ", %s", when_text(folding->last_time_us, request->cli.local).text);
    buffer_append_char(&out.text, '\n');
    listing->out = NULL; /* it ends with this function */
    return out_end(&out, exit_done);
  }
  listing->table = &table;
  table_begin(&table, request->cli.output, columns, sizeof columns / sizeof columns[0]);
  for (unsigned i = 2; i < table.column_count; i++) table.numbers[i] = true;
  state_each_queue(folding->state, queue_row, listing);
  return table_end(&table);
}

int replay_queues(const struct request *request) {
  struct listing listing = {.damaged = false};
  struct folding folding;
  struct scan *scan = scan_new(request->cli.data);
  if (scan == NULL) return exit_cannot_run;
  int code = reading_fold(scan, &request->at, &folding);
  if (code == exit_done) {
    listing.history = history_new();
    kept_init(&listing.kept, scan);
    code = print(&listing, &folding, request);
    kept_clear(&listing.kept);
    history_free(listing.history);
    folding_clear(&folding);
  }
  scan_free(scan);
  if (listing.damaged) code = tool_say(exit_finding, "a queue's name cannot be read from the log; run orbit-replay verify");
  return code;
}
