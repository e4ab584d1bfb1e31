/* The audit of a log is complete, or what it lacks is named: one log of a few events a row. */
#include "audit/check.h"

#include <stdio.h>
#include <string.h>

#include "support/support.h"

/* One event, in short. A new commit begins where offset is 0. */
struct short_event {
  enum event_type type;
  unsigned operation, stream, audit; /* audit: seq of the audit record that it names or is */
  bool first;                        /* of its commit */
  const char *action;                /* of an audit record */
  bool bare;                         /* without reason, evidence, before and after */
};

struct row {
  const char *name;
  const char *finding; /* "SEQ: words", NULL: none */
  struct short_event events[6];
};

static struct id id_of(unsigned high, unsigned low) {
  struct id id = {{0}};
  id.bytes[0] = (uint8_t)high;
  id.bytes[15] = (uint8_t)low;
  return id;
}

static const int64_t time_us = INT64_C(1789646400) * 1000000;

static void fill_audit(struct event *event, const struct short_event *shorthand) {
  struct event_audit_recorded *audit = &event->body.audit_recorded;
  audit->audit_id = audit_id_make(time_us, shorthand->audit);
  audit->target_id = event->stream;
  audit->action = bytes_text(shorthand->action);
  if (shorthand->bare) return;
  audit->reason = bytes_text("because");
  audit->evidence_ref = bytes_text("ticket:1");
  audit->before = audit->after = bytes_text("{}");
}

static struct event event_of(const struct short_event *shorthand, uint64_t seq, uint32_t offset) {
  struct event event = {.type = shorthand->type, .seq = seq, .offset = offset, .time_us = time_us};
  struct id audit_id = audit_id_make(time_us, shorthand->audit);
  if (shorthand->audit == 0) audit_id = (struct id){{0}};
  event.stream = id_of(1, shorthand->stream);
  event.common.operation_id = id_of(2, shorthand->operation);
  event.common.actor = id_of(3, 1);
  switch (shorthand->type) {
    case EVENT_audit_recorded:
      fill_audit(&event, shorthand);
      break;
    case EVENT_task_cancel_requested:
      event.body.task_cancel_requested.audit_id = audit_id;
      break;
    case EVENT_task_reviewed:
      event.body.task_reviewed.audit_id = audit_id;
      break;
    case EVENT_task_retried:
      event.body.task_retried.audit_id = audit_id;
      break;
    case EVENT_task_accepted:
      event.body.task_accepted.audit_id = audit_id;
      if (shorthand->bare) event.body.task_accepted.retry_of = id_of(1, 9);
      break;
    case EVENT_task_succeeded:
      event.body.task_succeeded.state = TASK_SUCCEEDED;
      event.body.task_succeeded.decision = DECISION_SUCCEEDED;
      break;
    default:
      break;
  }
  return event;
}

struct found {
  unsigned count;
  char first[160];
};

static void note(void *context, uint64_t seq, const char *what) {
  struct found *found = context;
  if (found->count++ == 0) (void)snprintf(found->first, sizeof found->first, "%u: %s", (unsigned)seq, what);
}

static void judge(const struct row *row) {
  struct check check;
  struct found found = {.count = 0};
  uint32_t offset = 0;
  check_begin(&check, note, &found);
  for (unsigned i = 0; i < 6 && row->events[i].type != EVENT_none; i++) {
    offset = i == 0 || row->events[i].first ? 0 : offset + 1;
    struct event event = event_of(&row->events[i], i + 1, offset);
    check_event(&check, &event);
  }
  check_end(&check);
  if (found.count != (row->finding != NULL ? 1U : 0U) || (row->finding != NULL && strcmp(row->finding, found.first) != 0))
    fail_msg("%s: %u findings, the first: %s", row->name, found.count, found.first);
}

/* An event; one that names an audit record; and either as the first of the next commit. */
#define PLAIN(type, operation, stream) \
  { EVENT_##type, operation, stream, 0, false, NULL, false }
#define NAMING(type, operation, stream, audit) \
  { EVENT_##type, operation, stream, audit, false, NULL, false }
#define NEXT(type, operation, stream) \
  { EVENT_##type, operation, stream, 0, true, NULL, false }
#define NEXT_NAMING(type, operation, stream, audit) \
  { EVENT_##type, operation, stream, audit, true, NULL, false }
#define TASK_AUDIT(operation, stream, seq, action) \
  { EVENT_audit_recorded, operation, stream, seq, false, action, false }

static void every_change_has_its_record_and_every_record_its_change(void **context) {
  static const struct row rows[] = {
      {"a life",
       NULL,
       {PLAIN(task_accepted, 1, 1), PLAIN(task_leased, 2, 1), NEXT(task_started, 3, 1), NEXT(attempt_result, 4, 1),
        PLAIN(task_succeeded, 4, 1)}},
      {"a queue", NULL, {PLAIN(queue_created, 1, 1), TASK_AUDIT(1, 1, 2, "queue.create")}},
      {"several in one commit",
       NULL,
       {PLAIN(queue_paused, 1, 1), TASK_AUDIT(1, 1, 2, "queue.pause"), PLAIN(queue_resumed, 2, 1),
        TASK_AUDIT(2, 1, 4, "queue.resume")}},
      {"a review", NULL, {NAMING(task_reviewed, 1, 1, 2), TASK_AUDIT(1, 1, 2, "task.review")}},
      {"a retry", NULL, {NAMING(task_retried, 1, 1, 2), TASK_AUDIT(1, 1, 2, "task.retry"), NAMING(task_accepted, 1, 2, 2)}},
      {"a cancel", NULL, {NAMING(task_cancel_requested, 1, 1, 2), TASK_AUDIT(1, 1, 2, "task.cancel")}},
      {"no record at all", "1: its audit record is not in its commit", {NAMING(task_reviewed, 1, 1, 2)}},
      {"an object without record", "1: its audit record is not in its commit", {PLAIN(credential_revoked, 1, 1)}},
      {"the record of another object",
       "1: its audit record is not in its commit",
       {PLAIN(queue_paused, 1, 1), TASK_AUDIT(1, 2, 2, "queue.pause"), PLAIN(queue_paused, 1, 2)}},
      {"the record in the next commit",
       "1: its audit record is not in its commit",
       {NAMING(task_reviewed, 1, 1, 2), NEXT_NAMING(task_reviewed, 2, 2, 3), TASK_AUDIT(2, 2, 3, "task.review")}},
      {"a record of nothing",
       "1: the audit record is of a change that is not in its commit",
       {TASK_AUDIT(1, 1, 1, "queue.pause")}},
      {"a record whose id is not its place",
       "2: the audit record's id does not follow from its place",
       {PLAIN(queue_paused, 1, 1), TASK_AUDIT(1, 1, 7, "queue.pause")}},
      {"a record without a reason",
       "2: the audit record does not say why",
       {NAMING(task_cancel_requested, 1, 1, 2), {EVENT_audit_recorded, 1, 1, 2, false, "task.cancel", true}}},
      {"a record without an action",
       "2: the audit record does not say who did what",
       {PLAIN(queue_paused, 1, 1), TASK_AUDIT(1, 1, 2, "")}},
      {"a retry that names no record",
       "1: it retries a task by hand, and names no audit record",
       {{EVENT_task_accepted, 1, 1, 0, true, NULL, true}}},
      {"a report without a decision",
       "1: the decision that belongs to it is not in its commit",
       {PLAIN(attempt_result, 1, 1), NEXT(task_leased, 2, 2)}},
      {"a report at the end", "1: the decision that belongs to it is not in its commit", {PLAIN(attempt_result, 1, 1)}},
      {"a decision about another task",
       "1: the decision that belongs to it is not in its commit",
       {PLAIN(attempt_result, 1, 1), PLAIN(task_succeeded, 1, 2)}},
      {"a decision one commit later",
       "1: the decision that belongs to it is not in its commit",
       {PLAIN(attempt_result, 1, 1), NEXT(task_succeeded, 1, 1)}},
  };
  (void)context;
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) judge(&rows[i]);
}

static void behind_a_gap_nothing_is_held_against_what_is_left(void **context) {
  struct check check;
  struct found found = {.count = 0};
  const struct short_event half = NAMING(task_reviewed, 1, 1, 2), rest = NEXT(task_leased, 2, 1);
  (void)context;
  check_begin(&check, note, &found);
  struct event event = event_of(&half, 1, 0);
  check_event(&check, &event);
  check_gap(&check);
  event = event_of(&rest, 5, 0);
  check_event(&check, &event);
  check_end(&check);
  assert_int_equal(found.count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_change_has_its_record_and_every_record_its_change),
      cmocka_unit_test(behind_a_gap_nothing_is_held_against_what_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
