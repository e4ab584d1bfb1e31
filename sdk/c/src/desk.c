/* Owns the attempts that a worker holds and what is sent about them. */
#include "desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/wire_http.h"

enum {
  frame_bytes_full = 512 * 1024, /* a frame is closed before it grows beyond this */
  spare_slots = 64,              /* for attempts that are being given back */
  answer_ms_max = 30000,         /* a server that leaves a request unanswered for longer is connected to again */
  messages_per_attempt_max = 2,
};

/* ---- The desk itself ---- */

bool sdk_desk_init(struct sdk_desk *desk) {
  uint64_t seed;
  if (!sdk_random(&seed, sizeof seed)) return false;
  id_source_init(&desk->ids, seed);
  json_init_answers(&desk->json);
  TAILQ_INIT(&desk->waiting);
  TAILQ_INIT(&desk->granted);
  TAILQ_INIT(&desk->outbox);
  desk->slot_count = desk->capacity + desk->threads + spare_slots;
  desk->slots = calloc(desk->slot_count, sizeof(struct sdk_held *));
  desk->attempt_ids = calloc(desk->slot_count, sizeof(struct id));
  desk->next_due_ms = INT64_MAX;
  return desk->slots != NULL && desk->attempt_ids != NULL;
}

void sdk_desk_clear(struct sdk_desk *desk) {
  for (uint32_t slot = 0; desk->slots != NULL && slot < desk->slot_count; slot++) {
    if (desk->slots[slot] != NULL) sdk_held_forget(desk, desk->slots[slot]);
  }
  free(desk->slots);
  free(desk->attempt_ids);
  desk->slots = NULL;
  desk->attempt_ids = NULL;
  json_clear(&desk->json);
}

void sdk_desk_log(const struct sdk_desk *desk, int level, const char *format, ...) {
  if (desk->log == NULL) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length >= 0) desk->log(desk->log_context, level, line);
}

void sdk_desk_fail(struct sdk_desk *desk, int http_status, const char *code, const char *format, ...) {
  if (desk->failed) return;
  char message[sizeof desk->failure.message];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (length < 0) message[0] = '\0';
  (void)sdk_fail(&desk->failure, ORBIT_STOPPED, NULL, "%s", message);
  desk->failure.http_status = http_status;
  sdk_text_copy(desk->failure.code, sizeof desk->failure.code, bytes_text(code));
  desk->failed = true;
  sdk_desk_log(desk, ORBIT_LOG_ERROR, "the worker ends: %s", message);
}

void sdk_desk_due_at(struct sdk_desk *desk, int64_t at_ms) {
  if (at_ms < desk->next_due_ms) desk->next_due_ms = at_ms;
}

/* ---- Attempts ---- */

struct sdk_held *sdk_held_new(struct sdk_desk *desk, const struct id *attempt_id) {
  uint32_t slot = 0;
  while (slot < desk->slot_count && desk->slots[slot] != NULL) slot++;
  if (slot == desk->slot_count) return NULL;
  struct sdk_held *held = calloc(1, sizeof *held);
  if (held == NULL) return NULL;
  held->slot = slot;
  held->name.attempt_id = *attempt_id;
  sdk_report_init(&held->report, &held->assignment);
  desk->slots[slot] = held;
  desk->attempt_ids[slot] = *attempt_id;
  desk->held_count++;
  return held;
}

static bool uses_thread(const struct sdk_held *held) {
  return held->state == HELD_STARTING || held->state == HELD_GRANTED || held->state == HELD_RUNNING;
}

void sdk_held_forget(struct sdk_desk *desk, struct sdk_held *held) {
  must(desk->slots[held->slot] == held);
  if (held->in_outbox) TAILQ_REMOVE(&desk->outbox, held, outbox);
  if (held->state == HELD_WAITING) TAILQ_REMOVE(&desk->waiting, held, queue);
  if (held->state == HELD_GRANTED) TAILQ_REMOVE(&desk->granted, held, queue);
  if (uses_thread(held)) desk->busy--;
  desk->slots[held->slot] = NULL;
  memset(&desk->attempt_ids[held->slot], 0, sizeof(struct id));
  desk->held_count--;
  sdk_report_clear(&held->report);
  sdk_arena_clear(&held->arena);
  free(held);
}

void sdk_held_due(struct sdk_desk *desk, struct sdk_held *held, unsigned due) {
  held->due |= due;
  if (held->in_outbox || !desk->welcomed) return; /* before a welcome nothing is sent; sdk_desk_receive asks again then */
  TAILQ_INSERT_TAIL(&desk->outbox, held, outbox);
  held->in_outbox = true;
}

struct id sdk_held_message_id(struct sdk_desk *desk, const struct sdk_held *held) {
  struct id id = id_source_next(&desk->ids, sdk_wall_us());
  id.bytes[id_bytes - 2] = (uint8_t)(held->slot >> 8);
  id.bytes[id_bytes - 1] = (uint8_t)held->slot;
  return id;
}

void sdk_held_authority(struct sdk_held *held) {
  int64_t end = held->lease_end_ms;
  if (held->attempt_end_ms < end) end = held->attempt_end_ms;
  if (held->task_end_ms < end) end = held->task_end_ms;
  atomic_store(&held->authority_end_ms, end);
}

void sdk_held_renewable(struct sdk_desk *desk, struct sdk_held *held, int64_t granted_ms) {
  held->renew_at_ms = granted_ms + (int64_t)(held->lease_ms / 3);
  sdk_desk_due_at(desk, held->renew_at_ms);
}

static const struct sdk_held *held_of(const struct orbit_assignment *assignment) { return (const struct sdk_held *)assignment; }

bool orbit_assignment_cancelled(const struct orbit_assignment *assignment) {
  return atomic_load(&held_of(assignment)->cancelled);
}

bool orbit_assignment_lost(const struct orbit_assignment *assignment) { return orbit_assignment_remaining_ms(assignment) == 0; }

uint64_t orbit_assignment_remaining_ms(const struct orbit_assignment *assignment) {
  const struct sdk_held *held = held_of(assignment);
  int64_t left = atomic_load(&held->authority_end_ms) - sdk_monotonic_ms();
  return atomic_load(&held->ended) || left <= 0 ? 0 : (uint64_t)left;
}

void sdk_desk_admit(struct sdk_desk *desk) {
  while (desk->busy < desk->threads && !desk->goaway && !TAILQ_EMPTY(&desk->waiting)) {
    struct sdk_held *held = TAILQ_FIRST(&desk->waiting);
    TAILQ_REMOVE(&desk->waiting, held, queue);
    held->state = HELD_STARTING;
    held->control_id = sdk_held_message_id(desk, held);
    desk->busy++;
    sdk_held_due(desk, held, DUE_START);
  }
}

struct sdk_held *sdk_desk_take(struct sdk_desk *desk) {
  struct sdk_held *held = TAILQ_FIRST(&desk->granted);
  if (held == NULL) return NULL;
  TAILQ_REMOVE(&desk->granted, held, queue);
  held->state = HELD_RUNNING;
  desk->stats.started++;
  desk->stats.running++;
  return held;
}

void sdk_desk_return(struct sdk_desk *desk, struct sdk_held *held, enum orbit_outcome outcome, int64_t now_ms) {
  must(held->state == HELD_RUNNING);
  bool lost = atomic_load(&held->ended) || now_ms >= atomic_load(&held->authority_end_ms);
  if (lost) desk->stats.lost++;
  sdk_report_settle(&held->report, outcome, lost);
  held->state = HELD_REPORTING;
  held->control_id = sdk_held_message_id(desk, held);
  desk->stats.running--;
  desk->busy--;
  sdk_held_due(desk, held, DUE_FINISH);
  sdk_desk_admit(desk);
}

void sdk_desk_abandon(struct sdk_desk *desk) {
  for (uint32_t slot = 0; slot < desk->slot_count; slot++) {
    if (desk->slots[slot] != NULL) atomic_store(&desk->slots[slot]->ended, true);
  }
}

/* ---- The connection ---- */

void sdk_desk_connected(struct sdk_desk *desk) {
  desk->connected = true;
  desk->welcomed = false;
  desk->broken = false;
  desk->goaway = false;
  desk->server_drained = false;
  desk->hello_due = true;
  desk->hello_id = id_source_next(&desk->ids, sdk_wall_us());
}

/* The control message that a state waits for an answer to. */
static unsigned control_of(enum held_state state) {
  switch (state) {
    case HELD_STARTING:
      return DUE_START;
    case HELD_REPORTING:
      return DUE_FINISH;
    case HELD_RELEASING:
      return DUE_RELEASE;
    case HELD_WAITING:
    case HELD_GRANTED:
    case HELD_RUNNING:
    default:
      return 0;
  }
}

void sdk_desk_disconnected(struct sdk_desk *desk) {
  desk->connected = desk->welcomed = false;
  desk->hello_due = desk->drain_due = false;
  for (uint32_t slot = 0; slot < desk->slot_count; slot++) {
    struct sdk_held *held = desk->slots[slot];
    if (held == NULL) continue;
    if (held->in_outbox) TAILQ_REMOVE(&desk->outbox, held, outbox);
    held->in_outbox = false;
    held->due = control_of(held->state);
    held->control_sent_ms = held->renew_sent_ms = held->retry_at_ms = 0;
    memset(&held->renew_id, 0, sizeof held->renew_id);
  }
}

void sdk_desk_drain(struct sdk_desk *desk) {
  if (desk->draining) return;
  desk->draining = true;
  desk->drain_due = desk->welcomed;
}

bool sdk_desk_is_drained(const struct sdk_desk *desk) {
  return desk->draining && desk->server_drained && desk->held_count == 0;
}

bool sdk_desk_is_idle(const struct sdk_desk *desk) {
  for (uint32_t slot = 0; slot < desk->slot_count; slot++) {
    if (desk->slots[slot] != NULL && desk->slots[slot]->state != HELD_WAITING) return false;
  }
  return true;
}

/* ---- By time ---- */

static void held_tick(struct sdk_desk *desk, struct sdk_held *held, int64_t now_ms) {
  if (held->control_sent_ms != 0 && now_ms - held->control_sent_ms >= answer_ms_max) desk->broken = true;
  if (held->control_sent_ms != 0) sdk_desk_due_at(desk, held->control_sent_ms + answer_ms_max);
  if (held->retry_at_ms != 0 && now_ms >= held->retry_at_ms) {
    held->retry_at_ms = 0;
    sdk_held_due(desk, held, control_of(held->state));
  }
  if (held->retry_at_ms != 0) sdk_desk_due_at(desk, held->retry_at_ms);
  /* A renewal cannot reach beyond the attempt's and the task's end. */
  bool can_renew = held->state != HELD_RELEASING && !atomic_load(&held->ended) &&
                   (held->lease_end_ms < held->attempt_end_ms && held->lease_end_ms < held->task_end_ms);
  if (!can_renew || !id_is_zero(&held->renew_id) || (held->due & DUE_RENEW) != 0) return;
  if (now_ms >= held->renew_at_ms) {
    sdk_held_due(desk, held, DUE_RENEW);
  } else {
    sdk_desk_due_at(desk, held->renew_at_ms);
  }
}

void sdk_desk_tick(struct sdk_desk *desk, int64_t now_ms) {
  desk->next_due_ms = INT64_MAX;
  if (!desk->connected) return;
  if (!desk->welcomed && desk->hello_sent_ms != 0 && !desk->hello_due) {
    if (now_ms - desk->hello_sent_ms >= answer_ms_max) desk->broken = true;
    sdk_desk_due_at(desk, desk->hello_sent_ms + answer_ms_max);
  }
  for (uint32_t slot = 0; desk->welcomed && slot < desk->slot_count; slot++) {
    if (desk->slots[slot] != NULL) held_tick(desk, desk->slots[slot], now_ms);
  }
}

/* ---- What is sent ---- */

bool sdk_desk_has_output(const struct sdk_desk *desk) {
  if (!desk->connected) return false;
  return desk->hello_due || (desk->welcomed && (desk->drain_due || !TAILQ_EMPTY(&desk->outbox)));
}

static void message_begin(struct buffer *out, const char *type, const struct id *message_id) {
  buffer_append_char(out, '{');
  wire_text_member(out, "type", bytes_text(type));
  wire_id_member(out, "message_id", message_id);
}

static void hello_write(const struct sdk_desk *desk, struct buffer *out) {
  message_begin(out, "worker.hello", &desk->hello_id);
  wire_text_member(out, "instance_id", bytes_text(desk->instance_id));
  if (desk->name != NULL) wire_text_member(out, "name", bytes_text(desk->name));
  buffer_append_text(out, ",\"queue_ids\":[");
  for (size_t i = 0; i < desk->queue_count; i++) buffer_append_format(out, i > 0 ? ",\"%s\"" : "\"%s\"", desk->queue_ids[i]);
  buffer_append_text(out, "],\"handlers\":[");
  for (uint32_t i = 0; i < desk->handler_count; i++) {
    buffer_append_text(out, i > 0 ? ",{" : "{");
    wire_text_member(out, "handler", bytes_text(desk->handlers[i].handler));
    wire_text_member(out, "handler_version", bytes_text(desk->handlers[i].version));
    buffer_append_char(out, '}');
  }
  buffer_append_char(out, ']');
  wire_number_member(out, "capacity", desk->capacity);
  if (desk->lease_ms != 0) wire_number_member(out, "lease_ms", desk->lease_ms);
  buffer_append_char(out, '}');
}

static void attempt_message_write(struct buffer *out, const char *type, const struct id *message_id,
                                  const struct sdk_attempt_name *name) {
  message_begin(out, type, message_id);
  wire_id_member(out, "task_id", &name->task_id);
  wire_id_member(out, "attempt_id", &name->attempt_id);
  wire_decimal_member(out, "epoch", name->epoch);
  buffer_append_char(out, '}');
}

static void separator_write(struct buffer *out, uint32_t count) {
  if (count > 0) buffer_append_char(out, ',');
}

/* All that is due about one attempt. The renewal goes first, so that a report rests on the longer lease. */
static uint32_t held_write(struct sdk_desk *desk, struct sdk_held *held, uint32_t count, struct buffer *out) {
  uint32_t before = count;
  if ((held->due & DUE_RENEW) != 0) {
    if (id_is_zero(&held->renew_id)) held->renew_id = sdk_held_message_id(desk, held);
    separator_write(out, count++);
    attempt_message_write(out, "task.renew", &held->renew_id, &held->name);
  }
  if ((held->due & (DUE_START | DUE_RELEASE | DUE_FINISH)) != 0) separator_write(out, count++);
  if ((held->due & DUE_START) != 0) attempt_message_write(out, "task.start", &held->control_id, &held->name);
  if ((held->due & DUE_RELEASE) != 0) attempt_message_write(out, "task.release", &held->control_id, &held->name);
  if ((held->due & DUE_FINISH) != 0) sdk_finish_write(out, &held->control_id, &held->name, &held->report);
  return count - before;
}

static void held_sent(struct sdk_desk *desk, struct sdk_held *held, int64_t now_ms) {
  if ((held->due & DUE_RENEW) != 0) held->renew_sent_ms = now_ms;
  if ((held->due & DUE_START) != 0 && held->start_sent_ms == 0) held->start_sent_ms = now_ms;
  if ((held->due & ~(unsigned)DUE_RENEW) != 0) {
    held->control_sent_ms = now_ms;
    sdk_desk_due_at(desk, now_ms + answer_ms_max);
  }
  held->due = 0;
  held->in_outbox = false;
  TAILQ_REMOVE(&desk->outbox, held, outbox);
}

static uint32_t compose_hello(struct sdk_desk *desk, int64_t now_ms, struct buffer *out) {
  hello_write(desk, out);
  desk->hello_due = false;
  desk->hello_sent_ms = now_ms;
  sdk_desk_due_at(desk, now_ms + answer_ms_max);
  return 1;
}

uint32_t sdk_desk_compose(struct sdk_desk *desk, int64_t now_ms, struct buffer *out) {
  uint32_t count = 0;
  size_t start = out->size;
  if (!sdk_desk_has_output(desk)) return 0;
  if (desk->hello_due) {
    count = compose_hello(desk, now_ms, out);
  } else {
    buffer_append_char(out, '[');
    if (desk->drain_due) {
      desk->drain_id = id_source_next(&desk->ids, sdk_wall_us());
      message_begin(out, "worker.drain", &desk->drain_id);
      buffer_append_char(out, '}');
      desk->drain_due = false;
      count++;
    }
    while (!TAILQ_EMPTY(&desk->outbox) && count + messages_per_attempt_max <= worker_frame_messages_max) {
      struct sdk_held *held = TAILQ_FIRST(&desk->outbox);
      size_t before = out->size;
      uint32_t written = held_write(desk, held, count, out);
      if (count > 0 && out->size - start >= frame_bytes_full) {
        out->size = before; /* it opens the next frame */
        break;
      }
      count += written;
      held_sent(desk, held, now_ms);
    }
    buffer_append_char(out, ']');
    if (count == 1 && !out->failed) {
      /* One message goes alone: a space in place of the bracket, which JSON allows. */
      out->data[start] = ' ';
      out->size--;
    }
  }
  if (out->failed) desk->broken = true;
  return out->failed ? 0 : count;
}
