/* orbit-audit operations: who did what to what, why, on what evidence; before and after. Streams. */
#include <inttypes.h>

#include "audit/audit.h"
#include "audit/draw.h"
#include "base/guard.h"
#include "base/time_text.h"
#include "codec/json.h"
#include "state/operations.h"

enum { flush_bytes = 64 * 1024 };

struct listing {
  const struct request *request;
  struct scan *scan;
  struct filter *filter;
  struct out out;
  struct buffer before, after, spaced, cell;
  uint64_t printed;
  bool damaged;
};

/* ---- before and after, as JSON ---- */

static void put_standing(struct buffer *out, const struct operation_standing *standing) {
  buffer_append_format(out, "{\"state\":\"%s\",\"revision\":\"%" PRIu64 "\"", task_state_text(standing->state),
                       standing->revision);
}

static void put_word(struct buffer *out, const char *name, const char *word) {
  if (word[0] != 0) buffer_append_format(out, ",\"%s\":\"%s\"", name, word);
}

static void put_before(const struct operation_document *operation, struct buffer *out) {
  buffer_reset(out);
  buffer_append_bytes(out, operation->before);
  if (operation->before.data != NULL || operation->was.state == TASK_NONE) return;
  put_standing(out, &operation->was);
  buffer_append_char(out, '}');
}

static void put_after(const struct operation_document *operation, struct buffer *out) {
  buffer_reset(out);
  buffer_append_bytes(out, operation->after);
  if (operation->after.data != NULL || operation->is.state == TASK_NONE) return;
  put_standing(out, &operation->is);
  if (!id_is_zero(&operation->attempt_id)) put_word(out, "attempt_id", id_text(&operation->attempt_id).text);
  put_word(out, "outcome", outcome_text(operation->outcome));
  put_word(out, "ended_by", ended_by_text(operation->ended_by));
  put_word(out, "decision", decision_text(operation->decision));
  if (!id_is_zero(&operation->retry_of)) put_word(out, "retry_of", id_text(&operation->retry_of).text);
  buffer_append_char(out, '}');
}

/* ---- one entry, printed ---- */

static void text_row(struct listing *listing, const char *name, struct bytes value) {
  char left[32];
  if (value.size == 0) return;
  (void)snprintf(left, sizeof left, "    %-10s", name);
  buffer_reset(&listing->cell);
  put_safe(&listing->cell, value, false);
  draw_folded(&listing->out, left, buffer_bytes(&listing->cell), COLOUR_NONE);
}

/* JSON with a space behind each comma of its own, so that it can be folded there. */
static void json_row(struct listing *listing, const char *name, struct buffer *json) {
  bool inside = false;
  buffer_reset(&listing->spaced);
  for (size_t i = 0; i < json->size; i++) {
    buffer_append_char(&listing->spaced, (char)json->data[i]);
    if (json->data[i] == '\\' && i + 1 < json->size) buffer_append_char(&listing->spaced, (char)json->data[++i]);
    else if (json->data[i] == '"') inside = !inside;
    else if (json->data[i] == ',' && !inside) buffer_append_char(&listing->spaced, ' ');
  }
  text_row(listing, name, buffer_bytes(&listing->spaced));
}

static void entry_text(struct listing *listing, const struct operation_document *operation) {
  struct out *out = &listing->out;
  if (listing->printed != 0) buffer_append_char(&out->text, '\n');
  buffer_append_format(&out->text, "%s  %s", when_text(operation->created_at, listing->request->cli.local).text,
                       out_colour(out, COLOUR_BOLD));
  put_safe(&out->text, operation->action, false);
  buffer_append_format(&out->text, "%s\n", out_colour(out, COLOUR_NONE));
  text_row(listing, "on", bytes_text(id_text(&operation->task_id).text));
  text_row(listing, "by", bytes_text(id_text(&operation->actor_id).text));
  text_row(listing, "why", operation->reason);
  text_row(listing, "evidence", operation->evidence_ref);
  json_row(listing, "before", &listing->before);
  json_row(listing, "after", &listing->after);
  text_row(listing, "record", bytes_text(id_text(&operation->id).text));
  text_row(listing, "operation", bytes_text(id_text(&operation->operation_id).text));
}

static void put_time(struct buffer *out, int64_t time_us) {
  char time[time_chars_max];
  if (!time_has_text(time_us)) return;
  size_t chars = time_format(time_us, time);
  buffer_append(out, time, chars);
}

static void member(struct buffer *out, const char *name, struct bytes text) {
  if (text.data == NULL) return;
  buffer_append_format(out, ",\"%s\":", name);
  json_write_string(out, text);
}

static void entry_json(struct listing *listing, const struct operation_document *operation) {
  struct buffer *out = &listing->out.text;
  buffer_append_format(out, "{\"seq\":%" PRIu64 ",\"time\":\"", audit_id_seq(&operation->id));
  put_time(out, operation->created_at);
  buffer_append_format(out, "\",\"audit_id\":\"%s\"", id_text(&operation->id).text);
  member(out, "action", operation->action);
  member(out, "actor", bytes_text(id_text(&operation->actor_id).text));
  member(out, "target_id", bytes_text(id_text(&operation->task_id).text));
  member(out, "operation_id", bytes_text(id_text(&operation->operation_id).text));
  member(out, "reason", operation->reason);
  member(out, "evidence_ref", operation->evidence_ref);
  if (listing->before.size != 0) {
    buffer_append_text(out, ",\"before\":");
    buffer_append_bytes(out, buffer_bytes(&listing->before));
  }
  if (listing->after.size != 0) {
    buffer_append_text(out, ",\"after\":");
    buffer_append_bytes(out, buffer_bytes(&listing->after));
  }
  buffer_append_char(out, '}');
}

static void entry_csv(struct listing *listing, const struct operation_document *operation) {
  struct buffer *out = &listing->out.text;
  const struct id *ids[] = {&operation->actor_id, &operation->task_id, &operation->operation_id};
  const struct bytes texts[] = {operation->reason, operation->evidence_ref, buffer_bytes(&listing->before),
                                buffer_bytes(&listing->after)};
  buffer_append_format(out, "%" PRIu64 ",", audit_id_seq(&operation->id));
  put_time(out, operation->created_at);
  buffer_append_format(out, ",%s", id_text(&operation->id).text);
  put_csv_cell(out, operation->action, false);
  for (unsigned i = 0; i < sizeof ids / sizeof ids[0]; i++) buffer_append_format(out, ",%s", id_text(ids[i]).text);
  for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) put_csv_cell(out, texts[i], false);
}

static void print_entry(struct listing *listing, const struct operation_document *operation) {
  struct buffer *out = &listing->out.text;
  put_before(operation, &listing->before);
  put_after(operation, &listing->after);
  switch (listing->request->cli.output) {
    case OUTPUT_JSON:
      buffer_append_text(out, listing->printed == 0 ? "\n" : ",\n");
      entry_json(listing, operation);
      break;
    case OUTPUT_JSONL:
      entry_json(listing, operation);
      buffer_append_char(out, '\n');
      break;
    case OUTPUT_CSV:
      entry_csv(listing, operation);
      buffer_append_char(out, '\n');
      break;
    case OUTPUT_MSGPACK:
    case OUTPUT_TEXT:
      entry_text(listing, operation);
  }
  listing->printed++;
}

/* ---- from events to entries ---- */

/* People's acts alone, unless all were asked for, or one task, or an action. */
static bool wants_type(const struct request *request, enum event_type type) {
  return type == EVENT_audit_recorded || request->all || request->action != NULL || !id_is_zero(&request->task);
}

static bool is_of_task(const struct event *event) {
  return event->type >= EVENT_task_accepted && event->type <= EVENT_evidence_recorded;
}

/* The entry that the event makes, with what stands beside it read where it matters. END: none. */
static enum status entry_of(struct listing *listing, const struct event *event, struct operation_document *ret_operation) {
  struct event beside = {.type = EVENT_none};
  bool decided = event->type == EVENT_attempt_result || event->type == EVENT_attempt_ended;
  enum status status = STATUS_OK;
  if (event->type != EVENT_audit_recorded && !is_of_task(event)) return STATUS_END;
  if (decided) status = scan_get(listing->scan, event->seq + 1, &beside);
  else if (event_is_decision(event->type) && event->prev != 0) status = scan_get(listing->scan, event->prev, &beside);
  if (status == STATUS_OK && decided && beside.prev != event->seq) status = STATUS_CORRUPT;
  if (status != STATUS_OK) return status == STATUS_END ? STATUS_CORRUPT : status;
  return operation_of_event(event, decided ? EVENT_none : beside.type, decided ? &beside : NULL, ret_operation);
}

static void say_damage(struct listing *listing, const char *message) {
  listing->damaged = true;
  if (out_flush(&listing->out)) (void)tool_say(0, "%s", message);
}

static void take_event(struct listing *listing, const struct event *event) {
  struct operation_document operation;
  enum status status = entry_of(listing, event, &operation);
  if (status == STATUS_OK && (listing->request->action == NULL || name_matches(listing->request->action, operation.action)))
    print_entry(listing, &operation);
  if (status == STATUS_OK || status == STATUS_END) return;
  char message[128];
  (void)snprintf(message, sizeof message, "seq %" PRIu64 " (%s): what must follow it does not: run orbit-replay verify",
                 event->seq, event_type_text(event->type));
  say_damage(listing, message);
}

static void list_range(struct listing *listing, uint64_t first, uint64_t last) {
  struct event event;
  struct bytes record;
  scan_range(listing->scan, first, last, false);
  for (;;) {
    struct fault fault = {.message = ""};
    if (scan_peek(listing->scan, &event) &&
        (!filter_may(listing->filter, &event) || !wants_type(listing->request, event.type))) {
      scan_skip(listing->scan);
      continue;
    }
    enum status status = scan_next(listing->scan, &event, &record, &fault);
    if (status == STATUS_END) return;
    if (status != STATUS_OK) say_damage(listing, fault.message);
    else if (filter_takes(listing->filter, &event)) take_event(listing, &event);
    if (listing->out.failed || (listing->out.text.size >= flush_bytes && !out_flush(&listing->out))) return;
  }
}

static void list_all(struct listing *listing) {
  const struct request *request = listing->request;
  struct buffer *out = &listing->out.text;
  uint64_t first = request->since_us != 0 ? scan_seq_at(listing->scan, request->since_us) : 1;
  uint64_t last = request->until_us != 0 ? scan_seq_at(listing->scan, request->until_us + 1) - 1 : scan_last_seq(listing->scan);
  if (!id_is_zero(&request->task)) {
    uint64_t accepted = scan_seq_of_task(listing->scan, &request->task);
    if (accepted > first) first = accepted;
  }
  if (request->cli.output == OUTPUT_JSON) buffer_append_char(out, '[');
  if (request->cli.output == OUTPUT_CSV)
    buffer_append_text(out, "seq,time,audit_id,action,actor,target_id,operation_id,reason,evidence_ref,before,after\n");
  list_range(listing, first, last);
  if (request->cli.output == OUTPUT_JSON) buffer_append_text(out, "\n]\n");
}

int audit_operations(const struct request *request) {
  struct listing listing = {.request = request};
  if (request->cli.output == OUTPUT_MSGPACK) return tool_say(exit_misuse, "operations are printed as text, json, jsonl or csv");
  listing.scan = scan_new(request->cli.data);
  if (listing.scan == NULL) return exit_cannot_run;
  listing.filter = filter_new(request, listing.scan);
  buffer_init(&listing.before, SIZE_MAX);
  buffer_init(&listing.after, SIZE_MAX);
  buffer_init(&listing.spaced, SIZE_MAX);
  buffer_init(&listing.cell, SIZE_MAX);
  out_begin(&listing.out);
  listing.out.is_data = request->cli.output != OUTPUT_TEXT;
  list_all(&listing);
  int code = out_end(&listing.out, listing.damaged || scan_is_damaged(listing.scan) ? exit_finding : exit_done);
  buffer_clear(&listing.before);
  buffer_clear(&listing.after);
  buffer_clear(&listing.spaced);
  buffer_clear(&listing.cell);
  filter_free(listing.filter);
  scan_free(listing.scan);
  return code;
}
