/* Owns what the desk makes of the server's messages. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "desk.h"

enum {
  retry_ms_default = 500,
  offset_good_ms = 60000, /* for so long after a welcome the server's clock is known; later the two may have drifted apart */
};

struct message {
  struct sdk_desk *desk;
  struct sdk_view view;
  int64_t now_ms;
};

/* ---- Finding attempts ---- */

static struct sdk_held *held_by_attempt(struct message *message) {
  struct id attempt_id;
  struct sdk_desk *desk = message->desk;
  if (!sdk_view_id(&message->view, "attempt_id", &attempt_id)) return NULL;
  for (uint32_t slot = 0; slot < desk->slot_count; slot++) {
    if (id_equal(&desk->attempt_ids[slot], &attempt_id)) return desk->slots[slot];
  }
  return NULL;
}

/* The attempt that a message id was made for; whether the id is still the one that is waited for is the caller's to see. */
static struct sdk_held *held_by_message(struct sdk_desk *desk, const struct id *message_id) {
  uint32_t slot = (uint32_t)message_id->bytes[id_bytes - 2] << 8 | message_id->bytes[id_bytes - 1];
  return slot < desk->slot_count ? desk->slots[slot] : NULL;
}

/* ---- Time ---- */

/* The server's clock at now_ms, or a little ahead of it; 0 when it is not known. */
static int64_t server_now_us(const struct sdk_desk *desk, int64_t now_ms) {
  return now_ms - desk->welcomed_ms <= offset_good_ms ? desk->server_offset_us + now_ms * 1000 : 0;
}

static int64_t after_ms(int64_t now_ms, int64_t span_us) { return now_ms + span_us / 1000; }

/* ---- worker.welcome ---- */

/* One attempt of the welcome: an attempt that is known gets its lease as it stands now. */
static void held_attempt_receive(struct message *message) {
  struct sdk_held *held = held_by_attempt(message);
  int64_t expires_us = sdk_view_time(&message->view, "lease_expires_at");
  if (held == NULL) {
    struct bytes state = sdk_view_span(&message->view, "state");
    if (bytes_equal_text(state, "RUNNING")) {
      sdk_desk_log(message->desk, ORBIT_LOG_WARNING,
                   "an attempt that was started by an earlier run of this instance is left to end by its lease");
    }
    return;
  }
  held->seen = true;
  bool running = bytes_equal_text(sdk_view_span(&message->view, "state"), "RUNNING");
  if (!running) held->start_sent_ms = 0; /* a start that was lost on its way; one whose answer was lost counts */
  if (expires_us != 0) {
    held->lease_end_ms = after_ms(message->now_ms, expires_us - server_now_us(message->desk, message->now_ms));
    sdk_held_authority(held);
  }
  sdk_held_renewable(message->desk, held, message->now_ms);
}

/* What the server no longer holds has lost its lease; what was left unanswered is due again. */
static void held_reconcile(struct sdk_desk *desk) {
  for (uint32_t slot = 0; slot < desk->slot_count; slot++) {
    struct sdk_held *held = desk->slots[slot];
    if (held == NULL) continue;
    if (!held->seen) atomic_store(&held->ended, true);
    if (!held->seen && (held->state == HELD_WAITING || held->state == HELD_GRANTED)) {
      sdk_held_forget(desk, held);
      continue;
    }
    if (held->due != 0) sdk_held_due(desk, held, held->due);
  }
}

static void welcome_receive(struct message *message) {
  struct sdk_desk *desk = message->desk;
  struct id message_id;
  if (desk->welcomed || !sdk_view_id(&message->view, "message_id", &message_id) || !id_equal(&message_id, &desk->hello_id)) {
    desk->broken = true;
    return;
  }
  int64_t server_time_us = sdk_view_time(&message->view, "server_time");
  /* The server read its clock after the hello had left. Taking that moment for it puts our idea of its clock ahead, if
   * anything, so that a lease seems to end sooner than it does, never later. */
  desk->server_offset_us = server_time_us - desk->hello_sent_ms * 1000;
  desk->welcomed_ms = message->now_ms;
  desk->welcome_lease_ms = sdk_view_u64(&message->view, "lease_ms");
  if (desk->welcome_lease_ms == 0) desk->welcome_lease_ms = lease_ms_default;
  desk->welcomed = true;
  desk->stats.connections++;
  desk->drain_due = desk->draining;
  for (uint32_t slot = 0; slot < desk->slot_count; slot++) {
    if (desk->slots[slot] != NULL) desk->slots[slot]->seen = false;
  }
  uint32_t attempts = sdk_view_array(&message->view, "attempts");
  uint32_t count = attempts != 0 ? desk->json.tokens[attempts].count : 0, token = attempts + 1;
  for (uint32_t i = 0; i < count; i++) {
    struct message inner = *message;
    inner.view.object = token;
    held_attempt_receive(&inner);
    token = desk->json.tokens[token].next;
  }
  held_reconcile(desk);
  sdk_desk_admit(desk);
  sdk_desk_log(desk, ORBIT_LOG_INFO, "welcomed as instance %s", desk->instance_id);
}

/* ---- task.assign ---- */

static const struct sdk_handler *handler_find(const struct sdk_desk *desk, const struct orbit_assignment *assignment) {
  for (uint32_t i = 0; i < desk->handler_count; i++) {
    const struct sdk_handler *handler = &desk->handlers[i];
    if (strcmp(handler->handler, assignment->handler) == 0 && strcmp(handler->version, assignment->handler_version) == 0) {
      return handler;
    }
  }
  return NULL;
}

static void assignment_read(struct sdk_view *task, struct sdk_view *attempt, struct sdk_held *held) {
  struct orbit_assignment *assignment = &held->assignment;
  assignment->task_id = sdk_view_required(task, "id");
  assignment->queue_id = sdk_view_required(task, "queue_id");
  assignment->handler = sdk_view_required(task, "handler");
  assignment->handler_version = sdk_view_required(task, "handler_version");
  assignment->payload_version = sdk_view_required(task, "payload_version");
  assignment->payload = sdk_view_raw(task, "payload", &assignment->payload_size);
  assignment->business_key = sdk_view_text(task, "business_key");
  assignment->effect_uncertain = sdk_view_bool(task, "effect_uncertain");
  struct bytes whole = json_raw(task->json, task->object);
  assignment->task_json = sdk_arena_text(task->arena, whole);
  assignment->task_json_size = whole.size;
  assignment->attempt_id = sdk_view_required(attempt, "attempt_id");
  assignment->number = sdk_view_u32(attempt, "number");
  assignment->epoch = sdk_view_u64(attempt, "epoch");
  held->name.epoch = assignment->epoch;
  held->attempt_timeout_ms = sdk_view_u64(attempt, "attempt_timeout_ms");
  if (!sdk_view_id(task, "id", &held->name.task_id) || assignment->payload == NULL) task->bad = true;
}

/* Leases are kept as spans of our own clock. A fresh assignment was leased at the task's updated_at; one that is sent again
 * after a welcome is older, and then the welcome has just told the server's clock. */
static void lease_read(struct message *message, struct sdk_view *task, struct sdk_view *attempt, struct sdk_held *held) {
  const struct sdk_desk *desk = message->desk;
  int64_t now_us = sdk_view_time(task, "updated_at"), known_us = server_now_us(desk, message->now_ms);
  int64_t granted_us = sdk_view_time(attempt, "lease_expires_at") - now_us;
  if (known_us > now_us) now_us = known_us;
  int64_t lease_left_us = sdk_view_time(attempt, "lease_expires_at") - now_us;
  int64_t task_left_us = sdk_view_time(task, "deadline_at") - now_us;
  held->lease_ms = desk->welcome_lease_ms;
  if (granted_us >= 1000 && (uint64_t)granted_us / 1000 < held->lease_ms) held->lease_ms = (uint64_t)granted_us / 1000;
  held->lease_end_ms = after_ms(message->now_ms, lease_left_us);
  held->task_end_ms = after_ms(message->now_ms, task_left_us);
  held->attempt_end_ms = INT64_MAX;
  sdk_held_authority(held);
}

static void held_release(struct sdk_desk *desk, struct sdk_held *held) {
  held->state = HELD_RELEASING;
  held->control_id = sdk_held_message_id(desk, held);
  sdk_held_due(desk, held, DUE_RELEASE);
}

static void assign_receive(struct message *message) {
  struct sdk_desk *desk = message->desk;
  struct sdk_view task = sdk_view_object(&message->view, "task"), attempt = sdk_view_object(&message->view, "attempt");
  struct id attempt_id;
  if (task.absent || attempt.absent || !sdk_view_id(&attempt, "attempt_id", &attempt_id)) {
    message->view.bad = true;
    return;
  }
  struct message inner = {.desk = desk, .view = attempt};
  if (held_by_attempt(&inner) != NULL) return; /* sent again after a welcome: it is here already */
  struct sdk_held *held = sdk_held_new(desk, &attempt_id);
  if (held == NULL) {
    sdk_desk_log(desk, ORBIT_LOG_ERROR, "no room for an assignment: it is left to end by its lease");
    return;
  }
  task.arena = attempt.arena = &held->arena;
  assignment_read(&task, &attempt, held);
  lease_read(message, &task, &attempt, held);
  if (task.bad || attempt.bad || held->arena.failed) {
    message->view.bad = true;
    sdk_held_forget(desk, held);
    return;
  }
  desk->stats.assigned++;
  sdk_held_renewable(desk, held, message->now_ms);
  held->handler = handler_find(desk, &held->assignment);
  if (held->handler == NULL || desk->held_count > desk->capacity + desk->threads) {
    held_release(desk, held);
    return;
  }
  held->state = HELD_WAITING;
  TAILQ_INSERT_TAIL(&desk->waiting, held, queue);
  sdk_desk_admit(desk);
}

/* ---- command.result ---- */

struct result {
  bool ok, lease_over;
  bool retryable; /* the refusal is for now, not for good */
  uint64_t retry_after_ms;
  struct bytes code, message, disposition; /* valid until the next frame */
};

static struct result result_read(struct message *message) {
  static const char *const passing[] = {"UNAVAILABLE", "RATE_LIMITED", "QUEUE_FULL", "APPLICATION_FULL", "INTERNAL"};
  struct sdk_view *view = &message->view;
  struct result result = {.ok = sdk_view_bool(view, "ok"), .disposition = sdk_view_span(view, "disposition")};
  struct sdk_view lease = sdk_view_object(view, "lease"), error = sdk_view_object(view, "error");
  result.lease_over = !lease.absent && !sdk_view_bool(&lease, "active");
  result.code = sdk_view_span(&error, "code");
  result.message = sdk_view_span(&error, "message");
  result.retry_after_ms = sdk_view_u64(&error, "retry_after_ms");
  for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
    result.retryable = result.retryable || bytes_equal_text(result.code, passing[i]);
  }
  return result;
}

static void held_retry(struct message *message, struct sdk_held *held, const struct result *result) {
  uint64_t delay_ms = result->retry_after_ms != 0 ? result->retry_after_ms : retry_ms_default;
  if (delay_ms > delay_ms_max) delay_ms = delay_ms_max;
  held->retry_at_ms = message->now_ms + (int64_t)delay_ms;
  sdk_desk_due_at(message->desk, held->retry_at_ms);
}

static void log_refusal(const struct sdk_desk *desk, const char *what, const struct result *result) {
  sdk_desk_log(desk, ORBIT_LOG_WARNING, "%s was refused: %.*s: %.*s", what, (int)result->code.size,
               (const char *)result->code.data, (int)result->message.size, (const char *)result->message.data);
}

static void start_answered(struct message *message, struct sdk_held *held, const struct result *result) {
  struct sdk_desk *desk = message->desk;
  /* A repeat's answer may be an old grant: without a lease now, it grants nothing. */
  if (result->ok && !result->lease_over && !atomic_load(&held->ended)) {
    held->state = HELD_GRANTED;
    if (held->attempt_timeout_ms != 0 && held->attempt_timeout_ms <= task_timeout_ms_max) {
      held->attempt_end_ms = held->start_sent_ms + (int64_t)held->attempt_timeout_ms;
    }
    sdk_held_authority(held);
    TAILQ_INSERT_TAIL(&desk->granted, held, queue);
    return;
  }
  desk->stats.start_refused++;
  if (!result->ok) log_refusal(desk, "a start", result);
  sdk_held_forget(desk, held);
  sdk_desk_admit(desk);
}

static void finish_answered(struct message *message, struct sdk_held *held, const struct result *result) {
  struct sdk_desk *desk = message->desk;
  if (result->ok) {
    desk->stats.confirmed++;
    if (bytes_equal_text(result->disposition, "EVIDENCE")) desk->stats.evidence++;
    sdk_held_forget(desk, held);
    return;
  }
  log_refusal(desk, "a report", result);
  bool content = bytes_equal_text(result->code, "INVALID_ARGUMENT") || bytes_equal_text(result->code, "STATE_CONFLICT") ||
                 bytes_equal_text(result->code, "PAYLOAD_TOO_LARGE");
  if (content && !held->replaced) {
    /* The lease goes on, so there is time to say at least that the outcome is not known. */
    held->replaced = true;
    sdk_report_replace(&held->report, "REPORT_REFUSED", result->message);
    held->control_id = sdk_held_message_id(desk, held);
    sdk_held_due(desk, held, DUE_FINISH);
    return;
  }
  desk->stats.refused++;
  sdk_held_forget(desk, held);
}

static void renew_answered(struct message *message, struct sdk_held *held, const struct result *result) {
  int64_t sent_ms = held->renew_sent_ms;
  memset(&held->renew_id, 0, sizeof held->renew_id);
  held->renew_sent_ms = 0;
  if (result->ok && !result->lease_over) {
    held->lease_end_ms = sent_ms + (int64_t)held->lease_ms;
    sdk_held_authority(held);
    sdk_held_renewable(message->desk, held, sent_ms);
  } else if (!result->ok && result->retryable) {
    held->renew_at_ms = message->now_ms + retry_ms_default;
    sdk_desk_due_at(message->desk, held->renew_at_ms);
  } else if (held->state != HELD_REPORTING) {
    /* Beside a report, which ends the lease itself, this says nothing. */
    atomic_store(&held->ended, true);
    if (held->state == HELD_WAITING) sdk_held_forget(message->desk, held);
  }
}

static void control_answered(struct message *message, struct sdk_held *held, const struct result *result) {
  held->control_sent_ms = 0;
  if (!result->ok && result->retryable) {
    held->start_sent_ms = 0;
    held_retry(message, held, result);
    return;
  }
  switch (held->state) {
    case HELD_STARTING:
      start_answered(message, held, result);
      return;
    case HELD_REPORTING:
      finish_answered(message, held, result);
      return;
    case HELD_RELEASING:
      if (result->ok) message->desk->stats.released++;
      sdk_held_forget(message->desk, held);
      return;
    case HELD_WAITING:
    case HELD_GRANTED:
    case HELD_RUNNING:
    default:
      return; /* control_sent_ms is 0 in these: not reached */
  }
}

static void result_receive(struct message *message) {
  struct sdk_desk *desk = message->desk;
  struct id message_id;
  struct result result = result_read(message);
  if (!sdk_view_id(&message->view, "message_id", &message_id)) {
    message->view.bad = true;
    return;
  }
  if (id_equal(&message_id, &desk->hello_id)) {
    if (!result.ok && result.retryable) {
      desk->broken = true;
    } else if (!result.ok) {
      sdk_desk_fail(desk, 0, "HELLO_REFUSED", "Orbit refused the hello: %.*s: %.*s", (int)result.code.size,
                    (const char *)result.code.data, (int)result.message.size, (const char *)result.message.data);
    }
    return;
  }
  if (id_equal(&message_id, &desk->drain_id)) {
    if (!result.ok) log_refusal(desk, "the drain", &result);
    return;
  }
  struct sdk_held *held = held_by_message(desk, &message_id);
  if (held == NULL) return; /* it has ended meanwhile */
  if (held->renew_sent_ms != 0 && id_equal(&message_id, &held->renew_id)) {
    renew_answered(message, held, &result);
  } else if (held->control_sent_ms != 0 && id_equal(&message_id, &held->control_id)) {
    control_answered(message, held, &result);
  }
}

/* ---- The others ---- */

static void cancel_receive(struct message *message) {
  struct sdk_held *held = held_by_attempt(message);
  if (held != NULL) atomic_store(&held->cancelled, true);
}

static void ended_receive(struct message *message) {
  struct sdk_held *held = held_by_attempt(message);
  if (held == NULL) return;
  atomic_store(&held->ended, true);
  if (held->state == HELD_WAITING || held->state == HELD_GRANTED) sdk_held_forget(message->desk, held);
  sdk_desk_admit(message->desk);
}

static void drained_receive(struct message *message) { message->desk->server_drained = true; }

static void goaway_receive(struct message *message) {
  message->desk->goaway = true;
  message->desk->reconnect_after_ms = sdk_view_u64(&message->view, "reconnect_after_ms");
  sdk_desk_log(message->desk, ORBIT_LOG_INFO, "the server shuts down");
}

static void error_receive(struct message *message) {
  struct result result = result_read(message);
  log_refusal(message->desk, "a message", &result);
  if (message->desk->welcomed || result.retryable) {
    message->desk->broken = !message->desk->welcomed;
    return;
  }
  sdk_desk_fail(message->desk, 0, "HELLO_REFUSED", "Orbit refused the hello: %.*s: %.*s", (int)result.code.size,
                (const char *)result.code.data, (int)result.message.size, (const char *)result.message.data);
}

static void message_receive(struct message *message) {
  static const struct {
    const char *type;
    void (*receive)(struct message *message);
  } types[] = {
      {"command.result", result_receive}, {"task.assign", assign_receive},  {"worker.welcome", welcome_receive},
      {"task.cancel", cancel_receive},    {"attempt.ended", ended_receive}, {"worker.drained", drained_receive},
      {"server.goaway", goaway_receive},  {"error", error_receive},
  };
  struct bytes type = sdk_view_span(&message->view, "type");
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (!bytes_equal_text(type, types[i].type)) continue;
    types[i].receive(message);
    if (message->view.bad) {
      sdk_desk_log(message->desk, ORBIT_LOG_ERROR, "a %s that is not well-formed was passed over", types[i].type);
    }
    return;
  }
  sdk_desk_log(message->desk, ORBIT_LOG_WARNING, "a message of an unknown type was passed over");
}

void sdk_desk_receive(struct sdk_desk *desk, struct bytes frame, int64_t now_ms) {
  struct fault fault = {.status = STATUS_OK};
  struct json *json = &desk->json;
  if (json_parse(json, frame, &fault) != STATUS_OK) {
    sdk_desk_log(desk, ORBIT_LOG_ERROR, "the server sent a frame that is not JSON: %s", fault.message);
    desk->broken = true;
    return;
  }
  bool is_array = json->tokens[0].type == JSON_ARRAY;
  uint32_t count = is_array ? json->tokens[0].count : 1, token = is_array ? 1 : 0;
  for (uint32_t i = 0; i < count && !desk->broken && !desk->failed; i++) {
    struct message message = {.desk = desk, .now_ms = now_ms};
    message.view = (struct sdk_view){.json = json, .object = token};
    message_receive(&message);
    token = json->tokens[token].next;
  }
}
