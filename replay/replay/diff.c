/* orbit-replay diff: the tasks whose revision is another one at the two positions. One walk; memory holds a few bytes a task.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "replay/past.h"
#include "state/index.h"

enum { progress_every = 4096 };

struct changed {
  struct id id;
  uint32_t from_revision, to_revision; /* 0: it was not there */
  uint8_t from_state, to_state;
};

struct walk {
  struct changed *tasks;
  size_t count, capacity;
  struct index index; /* hash of the id -> place in tasks, plus one */
  uint64_t damaged;
};

static struct changed *task_of(struct walk *walk, const struct id *id) {
  struct index_cursor cursor;
  for (uint64_t at = index_find(&walk->index, id_hash(id), &cursor); at != 0; at = index_next(&walk->index, &cursor))
    if (id_equal(&walk->tasks[at - 1].id, id)) return &walk->tasks[at - 1];
  if (walk->count == walk->capacity) {
    walk->capacity = walk->capacity != 0 ? walk->capacity * 2 : 1024;
    walk->tasks = guard_realloc(walk->tasks, walk->capacity * sizeof *walk->tasks);
  }
  walk->tasks[walk->count++] = (struct changed){.id = *id};
  index_add(&walk->index, id_hash(id), walk->count);
  return &walk->tasks[walk->count - 1];
}

/* The state that the event leads to; NONE: it changes no state, or is of no task. */
static enum task_state state_after(const struct event *event) {
  switch (event->type) {
    case EVENT_task_accepted:
    case EVENT_task_requeued:
      return TASK_WAITING;
    case EVENT_task_leased:
      return TASK_LEASED;
    case EVENT_task_started:
      return TASK_RUNNING;
    case EVENT_task_succeeded:
      return TASK_SUCCEEDED;
    case EVENT_task_failed:
      return TASK_FAILED;
    case EVENT_task_review_required:
      return TASK_NEEDS_REVIEW;
    case EVENT_task_cancelled:
      return TASK_CANCELLED;
    case EVENT_task_reviewed:
      return event->body.task_reviewed.state;
    default:
      return TASK_NONE;
  }
}

static bool is_of_task(enum event_type type) { return strncmp(event_type_text(type), "task.", 5) == 0; }

static void take(struct walk *walk, const struct event *event, bool before) {
  struct changed *task = task_of(walk, &event->stream);
  enum task_state state = state_after(event);
  if (state != TASK_NONE) task->to_state = (uint8_t)state;
  task->to_revision = (uint32_t)event->common.revision;
  if (!before) return;
  task->from_state = task->to_state;
  task->from_revision = task->to_revision;
}

static void walk_log(struct walk *walk, struct scan *scan, uint64_t from, uint64_t to) {
  struct progress progress;
  struct event event;
  struct bytes record;
  enum status status = STATUS_OK;
  progress_begin(&progress, "events", to);
  scan_range(scan, 1, to, false);
  for (uint64_t done = 0; status != STATUS_END; done++) {
    struct fault fault = {.message = ""};
    if (done % progress_every == 0) progress_at(&progress, done);
    if (scan_peek(scan, &event) && !is_of_task(event.type)) {
      scan_skip(scan);
      continue;
    }
    status = scan_next(scan, &event, &record, &fault);
    if (status == STATUS_OK) {
      if (is_of_task(event.type)) take(walk, &event, event.seq <= from);
    } else if (status != STATUS_END) {
      walk->damaged++;
      (void)tool_say(0, "%s", fault.message);
    }
  }
  progress_end(&progress);
}

static int by_id(const void *a, const void *b) {
  return memcmp(((const struct changed *)a)->id.bytes, ((const struct changed *)b)->id.bytes, id_bytes);
}

/* ---- printing ---- */

static int print_rows(const struct walk *walk, enum output output) {
  static const char *const columns[] = {"task_id", "from_state", "from_revision", "to_state", "to_revision"};
  struct table table;
  table_begin(&table, output, columns, sizeof columns / sizeof columns[0]);
  table.numbers[2] = table.numbers[4] = true;
  for (size_t i = 0; i < walk->count; i++) {
    const struct changed *task = &walk->tasks[i];
    if (task->from_revision == task->to_revision) continue;
    table_cell(&table, "%s", id_text(&task->id).text);
    table_cell(&table, "%s", task->from_revision != 0 ? task_state_text((enum task_state)task->from_state) : "");
    table_cell(&table, "%" PRIu32, task->from_revision);
    table_cell(&table, "%s", task_state_text((enum task_state)task->to_state));
    table_cell(&table, "%" PRIu32, task->to_revision);
  }
  return table_end(&table);
}

/* A line a task, which fits 80 columns, and what lies between the positions. */
static int print_text(const struct walk *walk, const struct past *from, const struct past *to, bool local) {
  struct out out;
  size_t changed = 0;
  out_begin(&out);
  for (size_t i = 0; i < walk->count; i++) {
    const struct changed *task = &walk->tasks[i];
    if (task->from_revision == task->to_revision) continue;
    changed++;
    if (task->from_revision == 0) buffer_append_format(&out.text, "%s  %-12s %3s", id_text(&task->id).text, "new", "");
    else
      buffer_append_format(&out.text, "%s  %-12s %3" PRIu32, id_text(&task->id).text,
                           task_state_text((enum task_state)task->from_state), task->from_revision);
    buffer_append_format(&out.text, " -> %-12s %3" PRIu32 "\n", task_state_text((enum task_state)task->to_state),
                         task->to_revision);
  }
  buffer_append_format(&out.text, "%zu task%s changed\n  from  ", changed, changed == 1 ? "" : "s");
  past_say(from, local, &out.text);
  buffer_append_text(&out.text, "\n  to    ");
  past_say(to, local, &out.text);
  buffer_append_char(&out.text, '\n');
  return out_end(&out, exit_done);
}

int replay_diff(const struct request *request) {
  struct past from, to;
  struct walk walk = {.tasks = NULL};
  if (!request->from.given) return tool_say(exit_misuse, "diff needs --from SEQ|TIME");
  struct scan *scan = scan_new(request->cli.data);
  if (scan == NULL) return exit_cannot_run;
  past_find(scan, &request->from, &from);
  past_find(scan, &request->to, &to);
  int code = exit_done;
  if (from.seq > to.seq) {
    code = tool_say(exit_misuse, "--from (seq %" PRIu64 ") lies behind --to (seq %" PRIu64 ")", from.seq, to.seq);
  } else {
    index_init(&walk.index);
    walk_log(&walk, scan, from.seq, to.seq);
    if (walk.count != 0) qsort(walk.tasks, walk.count, sizeof *walk.tasks, by_id);
    code = request->cli.output == OUTPUT_TEXT ? print_text(&walk, &from, &to, request->cli.local)
                                              : print_rows(&walk, request->cli.output);
    index_clear(&walk.index);
    if (code == exit_done && walk.damaged != 0) code = exit_finding;
  }
  free(walk.tasks);
  scan_free(scan);
  return code;
}
