/* Owns the pairing of changes with their audit records, operation by operation: an operation's events stand together in one
 * commit. */
#include "audit/check.h"

#include <string.h>

#include "base/limits.h"
#include "core/decision.h"

void check_begin(struct check *check, void (*finding)(void *context, uint64_t seq, const char *what), void *context) {
  memset(check, 0, sizeof *check);
  check->finding = finding;
  check->context = context;
}

void check_gap(struct check *check) {
  check->wanted_count = check->record_count = 0;
  check->undecided_seq = 0;
}

static void want(struct check *check, const struct event *event, const struct id *audit_id, const char *action) {
  if (check->wanted_count == check_wanted_max) {
    check->finding(check->context, event->seq, "its operation changes more than any command can");
    return;
  }
  check->wanted[check->wanted_count++] = (struct check_wanted){.seq = event->seq,
                                                               .audit_id = audit_id != NULL ? *audit_id : (struct id){{0}},
                                                               .target = event->stream,
                                                               .action = action};
}

/* ---- what each event wants ---- */

static void note_change(struct check *check, const struct event *event) {
  switch (event->type) {
    case EVENT_task_cancel_requested:
      want(check, event, &event->body.task_cancel_requested.audit_id, "task.cancel");
      break;
    case EVENT_task_reviewed:
      want(check, event, &event->body.task_reviewed.audit_id, "task.review");
      break;
    case EVENT_task_retried:
      want(check, event, &event->body.task_retried.audit_id, "task.retry");
      break;
    case EVENT_task_accepted:
      if (!id_is_zero(&event->body.task_accepted.audit_id))
        want(check, event, &event->body.task_accepted.audit_id, "task.retry");
      else if (!id_is_zero(&event->body.task_accepted.retry_of))
        check->finding(check->context, event->seq, "it retries a task by hand, and names no audit record");
      break;
    case EVENT_namespace_created:
    case EVENT_application_created:
    case EVENT_application_changed:
    case EVENT_credential_created:
    case EVENT_credential_rotated:
    case EVENT_credential_revoked:
    case EVENT_queue_created:
    case EVENT_queue_changed:
    case EVENT_queue_paused:
    case EVENT_queue_resumed:
    case EVENT_subscription_created:
    case EVENT_subscription_deleted:
    case EVENT_schedule_created:
    case EVENT_schedule_changed:
    case EVENT_schedule_paused:
    case EVENT_schedule_resumed:
    case EVENT_schedule_deleted:
      want(check, event, NULL, NULL);
      break;
    case EVENT_attempt_result:
    case EVENT_attempt_ended:
      check->undecided_seq = event->seq;
      check->undecided_stream = event->stream;
      break;
    default:
      break;
  }
}

/* What a record must hold, whatever it is about; or NULL. */
static const char *record_fault(const struct event *event) {
  const struct event_audit_recorded *audit = &event->body.audit_recorded;
  struct id own = audit_id_make(event->time_us, event->seq);
  bool review = bytes_equal_text(audit->action, "task.review"), retry = bytes_equal_text(audit->action, "task.retry");
  if (!id_equal(&own, &audit->audit_id)) return "the audit record's id does not follow from its place";
  if (!id_equal(&audit->target_id, &event->stream)) return "the audit record's target is not what it stands with";
  if (audit->action.size == 0 || id_is_zero(&event->common.actor)) return "the audit record does not say who did what";
  if (!review && !retry && !bytes_equal_text(audit->action, "task.cancel")) return NULL;
  if (audit->reason.size == 0) return "the audit record does not say why";
  if ((review || retry) && audit->evidence_ref.size == 0) return "the audit record does not say on what evidence";
  return audit->before.size == 0 || audit->after.size == 0 ? "the audit record lacks before or after" : NULL;
}

static void note_record(struct check *check, const struct event *event) {
  const struct event_audit_recorded *audit = &event->body.audit_recorded;
  const char *wrong = record_fault(event);
  check->record_total++;
  if (wrong != NULL) check->finding(check->context, event->seq, wrong);
  if (check->record_count == check_wanted_max) {
    check->finding(check->context, event->seq, "its operation has more audit records than any command makes");
    return;
  }
  struct check_record *record = &check->records[check->record_count++];
  *record = (struct check_record){.seq = event->seq, .audit_id = audit->audit_id, .target = audit->target_id};
  size_t size = audit->action.size < sizeof record->action ? audit->action.size : sizeof record->action - 1;
  if (size != 0) memcpy(record->action, audit->action.data, size);
}

/* ---- the end of an operation ---- */

static bool record_fits(const struct check_wanted *wanted, const struct check_record *record) {
  if (wanted->action != NULL && strcmp(wanted->action, record->action) != 0) return false;
  if (id_is_zero(&wanted->audit_id)) return id_equal(&wanted->target, &record->target);
  return id_equal(&wanted->audit_id, &record->audit_id);
}

static void judge_undecided(struct check *check, const struct event *next) {
  struct decision_record decision;
  if (check->undecided_seq == 0) return;
  bool decided = next != NULL && next->seq == check->undecided_seq + 1 && next->offset != 0 &&
                 id_equal(&next->stream, &check->undecided_stream) &&
                 id_equal(&next->common.operation_id, &check->operation_id) && decision_of_event(next, &decision);
  if (!decided) check->finding(check->context, check->undecided_seq, "the decision that belongs to it is not in its commit");
  check->undecided_seq = 0;
}

static void end_operation(struct check *check) {
  for (unsigned i = 0; i < check->wanted_count; i++) {
    struct check_wanted *wanted = &check->wanted[i];
    for (unsigned k = 0; k < check->record_count; k++) {
      if (!record_fits(wanted, &check->records[k])) continue;
      wanted->found = check->records[k].used = true;
    }
    if (!wanted->found) check->finding(check->context, wanted->seq, "its audit record is not in its commit");
  }
  for (unsigned k = 0; k < check->record_count; k++)
    if (!check->records[k].used)
      check->finding(check->context, check->records[k].seq, "the audit record is of a change that is not in its commit");
  check->wanted_count = check->record_count = 0;
}

void check_event(struct check *check, const struct event *event) {
  judge_undecided(check, event);
  if (event->offset == 0 || !id_equal(&event->common.operation_id, &check->operation_id)) end_operation(check);
  check->operation_id = event->common.operation_id;
  if (event->type == EVENT_audit_recorded) note_record(check, event);
  else note_change(check, event);
}

void check_end(struct check *check) {
  judge_undecided(check, NULL);
  end_operation(check);
}
