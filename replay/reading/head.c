/* Owns the rows that tell of a task as a whole. */
#include "reading/head.h"

#include <inttypes.h>
#include <stdio.h>

#include "reading/when.h"

void head_row(struct out *out, const char *name, struct buffer *value) {
  char left[32];
  (void)snprintf(left, sizeof left, "  %-14s", name);
  draw_folded(out, left, buffer_bytes(value), COLOUR_NONE);
  buffer_reset(value);
}

static void put_text_row(struct out *out, const char *name, struct bytes text, struct buffer *value) {
  if (text.size == 0) return;
  put_safe(value, text, true);
  head_row(out, name, value);
}

static void put_id_row(struct out *out, const char *name, const struct id *id, struct buffer *value) {
  if (id_is_zero(id)) return;
  buffer_append_text(value, id_text(id).text);
  head_row(out, name, value);
}

static enum colour colour_of_state(enum task_state state) {
  if (state == TASK_SUCCEEDED) return COLOUR_GOOD;
  if (state == TASK_FAILED) return COLOUR_BAD;
  return state == TASK_NEEDS_REVIEW ? COLOUR_DOUBT : COLOUR_BOLD;
}

static void put_times(const struct task *task, bool local, struct out *out, struct buffer *value) {
  buffer_append_text(value, when_text(task->created_at, local).text);
  head_row(out, "accepted", value);
  if (task->start_deadline_at != 0) {
    buffer_append_text(value, when_text(task->start_deadline_at, local).text);
    head_row(out, "start before", value);
  }
  buffer_append_text(value, when_text(task->deadline_at, local).text);
  head_row(out, "deadline", value);
  if (task_completed_at(task) == 0) return;
  buffer_append_format(value, "%s (", when_text(task_completed_at(task), local).text);
  buffer_append_format(value, "%s later)", span_text(task_completed_at(task) - task->created_at).text);
  head_row(out, "ended", value);
}

void head_put(struct out *out, const struct task *task, const struct event_task_accepted *accepted, bool local) {
  enum task_state state = (enum task_state)task->state;
  struct buffer value;
  buffer_init(&value, SIZE_MAX);
  buffer_append_format(&out->text, "Task %s: %s%s%s, revision %" PRIu32 "\n", id_text(&task->id).text,
                       out_colour(out, colour_of_state(state)), task_state_text(state), out_colour(out, COLOUR_NONE),
                       task->revision);
  if (task->effect_uncertain)
    draw_folded(out, "  in doubt      ", bytes_text("whether it had an effect is not known"), COLOUR_DOUBT);
  put_safe(&value, accepted->handler, false);
  buffer_append_char(&value, ' ');
  put_safe(&value, accepted->handler_version, false);
  head_row(out, "handler", &value);
  put_id_row(out, "queue", &accepted->queue_id, &value);
  put_text_row(out, "business key", accepted->business_key, &value);
  put_text_row(out, "concurrency", accepted->concurrency_key, &value);
  buffer_append_format(&value, "%s; %u of %u attempts used", recovery_safety_text((enum recovery_safety)task->recovery_safety),
                       task->attempt_count, task->max_attempts);
  head_row(out, "policy", &value);
  put_id_row(out, "retry of", &accepted->retry_of, &value);
  put_id_row(out, "schedule", &accepted->schedule_id, &value);
  put_times(task, local, out, &value);
  buffer_clear(&value);
}
