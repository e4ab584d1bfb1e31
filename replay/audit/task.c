/* orbit-audit task: the life of one task, drawn in the terminal. Memory holds the task's history alone. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit/life.h"
#include "base/guard.h"
#include "core/apply.h"
#include "reading/head.h"

enum { progress_every = 4096 };

/* ---- finding it ---- */

static void note_seq(struct life *life, uint64_t seq) {
  if (life->count == life->capacity) {
    life->capacity = life->capacity != 0 ? life->capacity * 2 : 64;
    life->seqs = guard_realloc(life->seqs, life->capacity * sizeof *life->seqs);
  }
  life->seqs[life->count++] = seq;
}

/* Notes the events of the task from first on. Whose the damaged records are is not known. */
static void find_events(struct life *life, struct scan *scan, const struct id *task_id, uint64_t first) {
  struct progress progress;
  struct event header;
  struct bytes record;
  struct fault fault;
  uint64_t last = scan_last_seq(scan), done = 0;
  progress_begin(&progress, "events", last >= first ? last - first + 1 : 0);
  scan_range(scan, first, last, false);
  for (enum status status = STATUS_OK; status != STATUS_END; done++) {
    if (done % progress_every == 0) progress_at(&progress, done);
    if (!scan_peek(scan, &header)) {
      status = scan_next(scan, &header, &record, &fault);
      must(status != STATUS_OK); /* what peek does not see is damaged, or the end */
      if (status != STATUS_END) life->unread++;
      continue;
    }
    scan_skip(scan);
    if (id_equal(&header.stream, task_id)) note_seq(life, header.seq);
  }
  progress_end(&progress);
}

/* ---- folding it ---- */

uint64_t life_number(const struct life *life, const struct id *attempt_id) {
  for (unsigned i = 0; i < life->attempt_count; i++)
    if (id_equal(&life->attempts[i].id, attempt_id)) return life->attempts[i].bar.number;
  return 0;
}

static struct life_attempt *current(struct life *life) {
  return life->attempt_count != 0 ? &life->attempts[life->attempt_count - 1] : NULL;
}

static void note_leased(struct life *life, const struct event *event) {
  const struct event_task_leased *leased = &event->body.task_leased;
  const struct life_attempt *before = current(life);
  if (life->attempt_count == attempts_max) return;
  int64_t waited_us = before != NULL && before->bar.ended_us != 0 ? before->bar.ended_us : life->task.created_at;
  life->attempts[life->attempt_count++] = (struct life_attempt){
      .id = leased->attempt_id,
      .bar = {.number = leased->number, .waited_us = waited_us, .leased_us = event->time_us, .label = "goes on"}};
}

static void note_end(struct bar *bar, const struct event *event, const char *word, const char *more, enum colour colour) {
  bar->ended_us = event->time_us;
  bar->colour = colour;
  (void)snprintf(bar->label, sizeof bar->label, "%s%s%s", word, more[0] != 0 ? " " : "", more);
}

static void note_attempt(struct life *life, const struct event *event) {
  struct life_attempt *attempt = current(life);
  if (event->type == EVENT_task_leased) note_leased(life, event);
  if (attempt == NULL) return;
  if (event->type == EVENT_task_started) attempt->bar.started_us = event->time_us;
  if (event->type == EVENT_attempt_result) {
    enum outcome outcome = event->body.attempt_result.outcome;
    enum colour colour = outcome == OUTCOME_SUCCEEDED ? COLOUR_GOOD : outcome == OUTCOME_FAILED ? COLOUR_BAD : COLOUR_DOUBT;
    note_end(&attempt->bar, event, outcome_text(outcome), event->body.attempt_result.retryable ? "retryable" : "", colour);
  }
  if (event->type == EVENT_attempt_ended)
    note_end(&attempt->bar, event, attempt_state_text(event->body.attempt_ended.state),
             ended_by_text(event->body.attempt_ended.ended_by), COLOUR_DOUBT);
}

static void fold(struct life *life, struct scan *scan) {
  struct event event;
  const char *reason = "";
  for (size_t i = 0; i < life->count && !life->torn; i++) {
    if (scan_get(scan, life->seqs[i], &event) != STATUS_OK) {
      (void)tool_say(0, "seq %" PRIu64 " cannot be read: run orbit-replay verify", life->seqs[i]);
      life->torn = true;
    } else if (!can_apply_task(&life->task, &life->attempt, &event, &reason)) {
      (void)tool_say(0, "seq %" PRIu64 " (%s) does not fit what is before it: %s", event.seq, event_type_text(event.type),
                     reason);
      life->torn = true;
    } else {
      apply_task(&life->task, &life->attempt, &event);
      note_attempt(life, &event);
    }
  }
}

/* ---- telling it ---- */

/* From the acceptance to the end of the last attempt; what still goes on, to the newest event. A review that comes a day later
 * would leave no room for the attempts: it is told below. */
static void put_bars(const struct life *life, struct out *out, int64_t newest_us) {
  struct bar bars[attempts_max];
  int64_t until_us = life->task.created_at;
  if (life->attempt_count == 0) return;
  for (unsigned i = 0; i < life->attempt_count; i++) {
    bars[i] = life->attempts[i].bar;
    int64_t ended_us = bars[i].ended_us != 0 ? bars[i].ended_us : newest_us;
    if (ended_us > until_us) until_us = ended_us;
  }
  buffer_append_format(&out->text, "\n%sAttempts%s\n", out_colour(out, COLOUR_BOLD), out_colour(out, COLOUR_NONE));
  draw_bars(out, bars, life->attempt_count, life->task.created_at, until_us);
}

/* The day stands above its first event, the time of day before each. */
static void put_event(const struct life *life, struct out *out, const struct event *event, char day[16], struct buffer *value) {
  struct when_text when = when_text(event->time_us, life->request->cli.local);
  char left[40];
  if (strlen(when.text) > 26 && strncmp(day, when.text, 10) != 0) {
    memcpy(day, when.text, 10);
    buffer_append_format(&out->text, "%.10s (%s)\n", when.text, life->request->cli.local ? when.text + 26 : "UTC");
  }
  (void)snprintf(left, sizeof left, "  %.15s  ", strlen(when.text) > 26 ? when.text + 11 : when.text);
  life_say(life, event, value);
  draw_folded(out, left, buffer_bytes(value), life_colour(event));
  buffer_reset(value);
}

static bool tell(struct life *life, struct scan *scan, struct out *out) {
  struct buffer value;
  struct event event;
  char day[16] = "";
  bool told = false;
  buffer_init(&value, SIZE_MAX);
  if (scan_get(scan, life->seqs[life->count - 1], &event) == STATUS_OK) {
    int64_t newest_us = event.time_us;
    told = scan_get(scan, life->seqs[0], &event) == STATUS_OK && event.type == EVENT_task_accepted;
    if (told) head_put(out, &life->task, &event.body.task_accepted, life->request->cli.local);
    if (told) put_bars(life, out, newest_us);
  }
  buffer_append_format(&out->text, "\n%sWhat happened%s\n", out_colour(out, COLOUR_BOLD), out_colour(out, COLOUR_NONE));
  for (size_t i = 0; i < life->count; i++)
    if (scan_get(scan, life->seqs[i], &event) == STATUS_OK) put_event(life, out, &event, day, &value);
  buffer_clear(&value);
  return told;
}

static int draw_task(struct life *life, struct scan *scan, const struct id *task_id) {
  struct out out;
  uint64_t first = scan_seq_of_task(scan, task_id);
  find_events(life, scan, task_id, first);
  if (life->count == 0) return tool_say(exit_finding, "the log has no task %s", life->request->cli.argument);
  fold(life, scan);
  out_begin(&out);
  if (!tell(life, scan, &out)) life->torn = true;
  int code = out_end(&out, life->torn || life->unread != 0 ? exit_finding : exit_done);
  if (life->unread == 0) return code;
  return tool_say(code, "%" PRIu64 " records of the log are damaged: what is told may have gaps; run orbit-replay verify",
                  life->unread);
}

int audit_task(const struct request *request) {
  struct life life = {.request = request};
  struct request rows = *request;
  if (!id_parse(bytes_text(request->cli.argument), &rows.task))
    return tool_say(exit_misuse, "\"%s\" is no task id: 32 lower-case hexadecimal digits", request->cli.argument);
  rows.cli.argument = NULL;
  if (request->cli.output != OUTPUT_TEXT) return audit_log(&rows);
  struct scan *scan = scan_new(request->cli.data);
  struct log_origin origin;
  if (scan == NULL) return exit_cannot_run;
  if (scan_origin(scan, &origin)) life.node_id = origin.node_id;
  int code = draw_task(&life, scan, &rows.task);
  free(life.seqs);
  scan_free(scan);
  return code;
}
