/* orbit-replay state, queues, diff: what the views said at a position. */
#include <inttypes.h>
#include <stdio.h>

#include "base/time_text.h"
#include "codec/wire_http.h"
#include "replay/replay.h"

/* ---- one task ---- */

static void print_text(const struct task_document *document) {
  const struct task *task = &document->task;
  char time[time_chars_max + 1] = {0};
  (void)time_format(task->updated_at, time);
  (void)printf("task      %s\nstate     %s, revision %" PRIu32 ", since %s\n", id_text(&task->id).text,
               task_state_text((enum task_state)task->state), task->revision, time);
  (void)printf("handler   %.*s %.*s\nattempts  %u of %u%s\n", (int)document->accepted.handler.size,
               (const char *)document->accepted.handler.data, (int)document->accepted.handler_version.size,
               (const char *)document->accepted.handler_version.data, task->attempt_count, task->max_attempts,
               task->effect_uncertain ? ", an effect is in doubt" : "");
}

static int print_task(struct journal *journal, const struct task *task, enum output output) {
  struct journal_reader *reader;
  struct history *history = history_new();
  struct task_document document;
  int code = exit_done;
  if (journal_reader_new(journal, &reader) != STATUS_OK) return tool_say(exit_cannot_run, "the log's reader table is full");
  if (history_document(history, record_source_of_reader(reader), task, &document) != STATUS_OK) {
    code = tool_say(exit_finding, "the task's history cannot be read from the log; run orbit-replay verify");
  } else if (output == OUTPUT_TEXT) {
    print_text(&document);
  } else {
    struct buffer out;
    buffer_init(&out, SIZE_MAX);
    wire_task_write(&out, &document);
    buffer_append_char(&out, '\n');
    if (!tool_print(buffer_bytes(&out))) code = exit_cannot_run;
    buffer_clear(&out);
  }
  journal_reader_free(reader);
  history_free(history);
  return code;
}

int replay_state(const struct request *request) {
  struct journal *journal;
  struct folding folding;
  struct id id;
  if (!id_parse(bytes_text(request->argument), &id)) return tool_say(exit_misuse, "\"%s\" is no task id", request->argument);
  int code = reading_open(request->data, &journal);
  if (code != exit_done) return code;
  code = reading_fold(journal, &request->at, &folding);
  if (code == exit_done) {
    const struct task *task = state_task(folding.state, &id);
    code = task != NULL ? print_task(journal, task, request->output)
                        : tool_say(exit_finding, "there was no task %s at seq %" PRIu64, request->argument, folding.last_seq);
    folding_clear(&folding);
  }
  journal_close(journal, false);
  return code;
}

/* ---- queues ---- */

static void queue_row(void *context, const struct queue *queue) {
  struct table *table = context;
  table_cell(table, "%s", id_text(&queue->id).text);
  table_cell(table, "%s", queue->paused ? "true" : "false");
  for (unsigned state = TASK_WAITING; state < TASK_ENUM_END; state++) table_cell(table, "%" PRIu64, queue->counts[state]);
}

int replay_queues(const struct request *request) {
  static const char *const columns[] = {"queue_id",     "paused",    "WAITING", "LEASED",   "RUNNING",
                                        "NEEDS_REVIEW", "SUCCEEDED", "FAILED",  "CANCELLED"};
  struct journal *journal;
  struct folding folding;
  struct table table;
  int code = reading_open(request->data, &journal);
  if (code != exit_done) return code;
  code = reading_fold(journal, &request->at, &folding);
  if (code == exit_done) {
    table_begin(&table, request->output, columns, sizeof columns / sizeof columns[0]);
    for (unsigned i = 1; i < table.column_count; i++) table.numbers[i] = true;
    state_each_queue(folding.state, queue_row, &table);
    code = table_end(&table);
    folding_clear(&folding);
  }
  journal_close(journal, false);
  return code;
}

/* ---- diff: tasks whose revision is another one at the two positions ---- */

static void diff_row(struct table *table, const struct state *before, const struct task *after) {
  const struct task *old = state_task(before, &after->id);
  if (old != NULL && old->revision == after->revision) return;
  table_cell(table, "%s", id_text(&after->id).text);
  table_cell(table, "%s", old != NULL ? task_state_text((enum task_state)old->state) : "");
  table_cell(table, "%" PRIu32, old != NULL ? old->revision : 0);
  table_cell(table, "%s", task_state_text((enum task_state)after->state));
  table_cell(table, "%" PRIu32, after->revision);
}

int replay_diff(const struct request *request) {
  static const char *const columns[] = {"task_id", "from_state", "from_revision", "to_state", "to_revision"};
  struct journal *journal;
  struct folding before, after;
  struct table table;
  if (!request->from.given) return tool_say(exit_misuse, "diff needs --from SEQ|TIME");
  int code = reading_open(request->data, &journal);
  if (code != exit_done) return code;
  code = reading_fold(journal, &request->from, &before);
  if (code == exit_done) {
    code = reading_fold(journal, &request->to, &after);
    if (code == exit_done) {
      table_begin(&table, request->output, columns, sizeof columns / sizeof columns[0]);
      table.numbers[2] = table.numbers[4] = true;
      for (uint32_t number = 1; number <= state_task_count(after.state); number++)
        diff_row(&table, before.state, state_task_at(after.state, number));
      code = table_end(&table);
      folding_clear(&after);
    }
    folding_clear(&before);
  }
  journal_close(journal, false);
  return code;
}
