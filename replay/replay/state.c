/* orbit-replay state: one task as it stood at a position. Reads the headers of the log from the task's acceptance on and the
 * records of its own history; memory does not grow with the log. */
#include <inttypes.h>
#include <stdio.h>

#include "codec/wire_http.h"
#include "reading/head.h"
#include "reading/kept.h"
#include "replay/past.h"

enum { progress_every = 4096 };

/* The newest event of the task at the position; 0: none. *ret_damaged: records that could not be read; whose is not known. */
static uint64_t find_newest(struct scan *scan, const struct id *task_id, uint64_t last, uint64_t *ret_damaged) {
  struct progress progress;
  struct event header;
  struct bytes record;
  struct fault fault;
  uint64_t newest = 0, first = scan_seq_of_task(scan, task_id), done = 0;
  enum status status = STATUS_OK;
  *ret_damaged = 0;
  progress_begin(&progress, "events", last >= first ? last - first + 1 : 0);
  for (scan_range(scan, first, last, false); status != STATUS_END; done++) {
    if (done % progress_every == 0) progress_at(&progress, done);
    if (scan_peek(scan, &header)) {
      if (id_equal(&header.stream, task_id)) newest = header.seq;
      scan_skip(scan);
      continue;
    }
    status = scan_next(scan, &header, &record, &fault);
    if (status != STATUS_END && status != STATUS_OK) (*ret_damaged)++;
  }
  progress_end(&progress);
  return newest;
}

/* ---- text ---- */

static void put_outcome(const struct task_document *document, bool local, struct out *out) {
  const struct task *task = &document->task;
  struct buffer value;
  buffer_init(&value, SIZE_MAX);
  if (document->error_code.data != NULL) {
    put_safe(&value, document->error_code, false);
    buffer_append_char(&value, ' ');
    put_safe(&value, document->error_message, true);
    head_row(out, "error", &value);
  }
  if (document->result.data != NULL) {
    buffer_append_format(&value, "%zu bytes; -o json shows it", document->result.size);
    head_row(out, "result", &value);
  }
  if (task->cancel_requested_at != 0) {
    buffer_append_text(&value, when_text(task->cancel_requested_at, local).text);
    head_row(out, "cancel asked", &value);
  }
  buffer_clear(&value);
}

static void put_time(struct out *out, const char *what, int64_t time_us, bool local) {
  if (time_us != 0) buffer_append_format(&out->text, "%16s%-8s %s\n", "", what, when_text(time_us, local).text);
}

static void put_attempt(const struct attempt_document *attempt, bool local, struct out *out) {
  struct buffer value;
  buffer_init(&value, SIZE_MAX);
  char name[24];
  (void)snprintf(name, sizeof name, "attempt %" PRIu32, attempt->number);
  buffer_append_text(&value, attempt_state_text(attempt->state));
  if (attempt->decision != DECISION_NONE) buffer_append_format(&value, ", decision %s", decision_text(attempt->decision));
  buffer_append_format(&value, ", epoch %" PRIu64 ", worker ", attempt->epoch);
  if (attempt->instance_name.size != 0) put_safe(&value, attempt->instance_name, true);
  else buffer_append_text(&value, id_text(&attempt->instance_id).text);
  head_row(out, name, &value);
  put_time(out, "leased", attempt->leased_at, local);
  put_time(out, "started", attempt->started_at, local);
  if (attempt->finished_at == 0) put_time(out, "until", attempt->lease_expires_at, local);
  put_time(out, "ended", attempt->finished_at, local);
  buffer_clear(&value);
}

static enum status print_text(struct history *history, struct record_source source, const struct task_document *document,
                              const struct past *past, bool local) {
  const struct attempt_document *attempts;
  uint32_t count;
  struct out out;
  struct buffer value;
  enum status status = history_attempts(history, source, &document->task, &attempts, &count);
  if (status != STATUS_OK) return status;
  out_begin(&out);
  buffer_init(&value, SIZE_MAX);
  head_put(&out, &document->task, &document->accepted, local);
  put_outcome(document, local, &out);
  for (uint32_t i = 0; i < count; i++) put_attempt(&attempts[i], local, &out);
  past_say(past, local, &value);
  head_row(&out, "as of", &value);
  buffer_clear(&value);
  return out_end(&out, STATUS_OK) == STATUS_OK ? STATUS_OK : STATUS_IO_ERROR;
}

/* ---- one task ---- */

static enum status print_json(const struct task_document *document) {
  struct buffer out;
  buffer_init(&out, SIZE_MAX);
  wire_task_write(&out, document);
  buffer_append_char(&out, '\n');
  bool written = tool_print(buffer_bytes(&out));
  buffer_clear(&out);
  return written ? STATUS_OK : STATUS_IO_ERROR;
}

static int print_task(const struct request *request, struct scan *scan, uint64_t newest, const struct past *past) {
  struct history *history = history_new();
  struct kept kept;
  struct task task;
  struct task_document document;
  kept_init(&kept, scan);
  struct record_source source = kept_source(&kept);
  enum status status = history_task_at(history, source, newest, &task, NULL);
  if (status == STATUS_OK) status = history_document(history, source, &task, &document);
  if (status == STATUS_OK && request->cli.output == OUTPUT_TEXT)
    status = print_text(history, source, &document, past, request->cli.local);
  else if (status == STATUS_OK) status = print_json(&document);
  history_free(history);
  kept_clear(&kept);
  if (status == STATUS_OK) return exit_done;
  if (status == STATUS_IO_ERROR) return exit_cannot_run;
  if (status == STATUS_NOT_FOUND) return tool_say(exit_finding, "%s is no task", request->cli.argument);
  return tool_say(exit_finding, "the task's history cannot be read from the log; run orbit-replay verify");
}

int replay_state(const struct request *request) {
  struct id id;
  struct past past;
  uint64_t damaged;
  if (!id_parse(bytes_text(request->cli.argument), &id))
    return tool_say(exit_misuse, "\"%s\" is no task id: 32 lower-case hexadecimal digits", request->cli.argument);
  if (request->cli.output == OUTPUT_CSV) return tool_say(exit_misuse, "a task is text, json or jsonl");
  struct scan *scan = scan_new(request->cli.data);
  if (scan == NULL) return exit_cannot_run;
  past_find(scan, &request->at, &past);
  uint64_t newest = find_newest(scan, &id, past.seq, &damaged);
  int code = newest != 0 ? print_task(request, scan, newest, &past)
                         : tool_say(exit_finding, "there was no task %s at seq %" PRIu64, request->cli.argument, past.seq);
  if (damaged != 0)
    code = tool_say(code == exit_done ? exit_finding : code,
                    "%" PRIu64 " records of the log are damaged: one of them may be this task's; run orbit-replay verify",
                    damaged);
  scan_free(scan);
  return code;
}
