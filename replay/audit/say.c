/* Owns the sentences in which the life of a task is told, one for each type of event. */
#include <inttypes.h>

#include "audit/life.h"
#include "core/decision.h"

static void say_id(struct buffer *text, const struct id *id) { buffer_append_text(text, id_text(id).text); }

static void say_actor(struct buffer *text, const struct life *life, const struct event *event) {
  buffer_append_text(text, " by ");
  say_id(text, &event->common.actor);
  if (id_equal(&event->common.actor, &life->node_id)) buffer_append_text(text, " (Orbit)");
}

static void say_quoted(struct buffer *text, struct bytes from) {
  buffer_append_char(text, '"');
  put_safe(text, from, false);
  buffer_append_char(text, '"');
}

static void say_attempt(struct buffer *text, const struct life *life, const struct id *attempt_id) {
  uint64_t number = life_number(life, attempt_id);
  if (number != 0) buffer_append_format(text, "attempt %" PRIu64, number);
  else buffer_append_format(text, "attempt %s", id_text(attempt_id).text);
}

/* A document: its size, or itself when it was asked for. */
static void say_document(struct buffer *text, const struct life *life, const char *name, struct bytes document) {
  if (document.size == 0) return;
  buffer_append_format(text, "; %s ", name);
  if (life->request->payload) put_safe(text, document, false);
  else buffer_append_format(text, "%zu bytes", document.size);
}

static void say_error(struct buffer *text, const struct life *life, struct bytes code, struct bytes message,
                      struct bytes details) {
  if (code.size != 0) {
    buffer_append_text(text, "; ");
    put_safe(text, code, false);
  }
  if (message.size != 0) {
    buffer_append_text(text, ": ");
    say_quoted(text, message);
  }
  say_document(text, life, "details", details);
}

static void say_accepted(const struct life *life, const struct event *event, struct buffer *text) {
  const struct event_task_accepted *accepted = &event->body.task_accepted;
  buffer_append_text(text, "accepted");
  say_actor(text, life, event);
  if (!id_is_zero(&accepted->schedule_id)) {
    buffer_append_text(text, " for schedule ");
    say_id(text, &accepted->schedule_id);
  }
  say_document(text, life, "payload", accepted->payload);
  if (!id_is_zero(&accepted->retry_of)) {
    buffer_append_text(text, "; retries by hand ");
    say_id(text, &accepted->retry_of);
  }
}

static void say_leased(const struct life *life, const struct event *event, struct buffer *text) {
  const struct event_task_leased *leased = &event->body.task_leased;
  (void)life;
  buffer_append_format(text, "attempt %" PRIu64 ": leased to ", leased->number);
  if (leased->instance_name.size != 0) say_quoted(text, leased->instance_name);
  else say_id(text, &leased->instance_id);
  buffer_append_format(text, " for %s, epoch %" PRIu64, span_text((int64_t)leased->lease_ms * 1000).text, leased->epoch);
}

static void say_started(const struct life *life, const struct event *event, struct buffer *text) {
  say_attempt(text, life, &event->body.task_started.attempt_id);
  buffer_append_text(text, ": start granted; from here on an effect is possible");
}

static void say_result(const struct life *life, const struct event *event, struct buffer *text) {
  const struct event_attempt_result *result = &event->body.attempt_result;
  say_attempt(text, life, &result->attempt_id);
  buffer_append_format(text, ": reports %s%s", outcome_text(result->outcome), result->retryable ? ", safe to try again" : "");
  say_error(text, life, result->error_code, result->error_message, result->error_details);
  say_document(text, life, "result", result->result);
}

static void say_ended(const struct life *life, const struct event *event, struct buffer *text) {
  const struct event_attempt_ended *ended = &event->body.attempt_ended;
  say_attempt(text, life, &ended->attempt_id);
  buffer_append_format(text, ": ended as %s (%s)", attempt_state_text(ended->state), ended_by_text(ended->ended_by));
}

static void say_decision(const struct life *life, const struct event *event, struct buffer *text) {
  struct decision_record record;
  if (!decision_of_event(event, &record)) return;
  buffer_append_format(text, "decision %s: %s", decision_text(record.decision), task_state_text(record.state));
  if (record.state == TASK_WAITING)
    buffer_append_format(text, " until %s (%s)", when_text(record.next_available_at, life->request->cli.local).text,
                         span_text((int64_t)record.delay_ms * 1000).text);
  buffer_append_format(text, "; %" PRIu64 " of %" PRIu64 " attempts used", record.attempt_count, record.max_attempts);
  if (record.effect_uncertain) buffer_append_text(text, "; whether it had an effect is not known");
}

static void say_cancel_requested(const struct life *life, const struct event *event, struct buffer *text) {
  const struct event_task_cancel_requested *cancel = &event->body.task_cancel_requested;
  buffer_append_text(text, cancel->applied ? "cancel requested" : "cancel requested once more");
  say_actor(text, life, event);
}

static void say_reviewed(const struct life *life, const struct event *event, struct buffer *text) {
  const struct event_task_reviewed *reviewed = &event->body.task_reviewed;
  buffer_append_format(text, "review finds %s", outcome_text(reviewed->outcome));
  say_actor(text, life, event);
  say_document(text, life, "result", reviewed->result);
  buffer_append_format(text, "; result digest xxh3-128:%s", id_text(&reviewed->result_digest).text);
  if (reviewed->execution_settled) buffer_append_text(text, "; no old execution goes on");
}

static void say_retried(const struct life *life, const struct event *event, struct buffer *text) {
  buffer_append_text(text, "retried by hand as ");
  say_id(text, &event->body.task_retried.retry_task_id);
  say_actor(text, life, event);
}

static void say_evidence(const struct life *life, const struct event *event, struct buffer *text) {
  const struct event_evidence_recorded *evidence = &event->body.evidence_recorded;
  buffer_append_text(text, "evidence, without authority: ");
  say_attempt(text, life, &evidence->attempt_id);
  buffer_append_format(text, " reports %s (%s, epoch %" PRIu64 ")", outcome_text(evidence->outcome),
                       evidence_reason_text(evidence->reason), evidence->epoch);
  say_error(text, life, evidence->error_code, evidence->error_message, evidence->error_details);
  say_document(text, life, "result", evidence->result);
}

static void say_audit(const struct life *life, const struct event *event, struct buffer *text) {
  const struct event_audit_recorded *audit = &event->body.audit_recorded;
  buffer_append_text(text, "audit ");
  put_safe(text, audit->action, false);
  say_actor(text, life, event);
  if (audit->reason.size != 0) {
    buffer_append_text(text, "; why: ");
    say_quoted(text, audit->reason);
  }
  if (audit->evidence_ref.size != 0) {
    buffer_append_text(text, "; on evidence ");
    put_safe(text, audit->evidence_ref, false);
  }
  buffer_append_text(text, "; record ");
  say_id(text, &audit->audit_id);
}

void life_say(const struct life *life, const struct event *event, struct buffer *text) {
  static void (*const sayings[])(const struct life *, const struct event *, struct buffer *) = {
      [EVENT_task_accepted] = say_accepted,
      [EVENT_task_leased] = say_leased,
      [EVENT_task_started] = say_started,
      [EVENT_attempt_result] = say_result,
      [EVENT_attempt_ended] = say_ended,
      [EVENT_task_requeued] = say_decision,
      [EVENT_task_succeeded] = say_decision,
      [EVENT_task_failed] = say_decision,
      [EVENT_task_review_required] = say_decision,
      [EVENT_task_cancelled] = say_decision,
      [EVENT_task_cancel_requested] = say_cancel_requested,
      [EVENT_task_reviewed] = say_reviewed,
      [EVENT_task_retried] = say_retried,
      [EVENT_evidence_recorded] = say_evidence,
      [EVENT_audit_recorded] = say_audit,
  };
  if (event->type < sizeof sayings / sizeof sayings[0] && sayings[event->type] != NULL) sayings[event->type](life, event, text);
  else buffer_append_text(text, event_type_text(event->type));
}

enum colour life_colour(const struct event *event) {
  switch (event->type) {
    case EVENT_task_failed:
      return COLOUR_BAD;
    case EVENT_task_review_required:
    case EVENT_evidence_recorded:
      return COLOUR_DOUBT;
    case EVENT_task_succeeded:
      return COLOUR_GOOD;
    case EVENT_task_reviewed:
      return event->body.task_reviewed.state == TASK_SUCCEEDED ? COLOUR_GOOD : COLOUR_BAD;
    default:
      return COLOUR_NONE;
  }
}
