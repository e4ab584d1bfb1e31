/* Owns what can be told from a schedule alone, and the reading of its events. */
#include "core/schedule.h"

bool schedule_waits_for_task(const struct schedule *schedule) {
  return schedule->overlap == OVERLAP_SERIAL && schedule->unfinished > 0;
}

int64_t schedule_next_timer(const struct schedule *schedule) {
  return schedule->next_at != 0 && !schedule_waits_for_task(schedule) ? schedule->next_at : INT64_MAX;
}

static struct event_schedule_changed config_of_created(const struct event_schedule_created *created) {
  return (struct event_schedule_changed){
      .name = created->name,
      .kind = created->kind,
      .cron = created->cron,
      .timezone = created->timezone,
      .interval_ms = created->interval_ms,
      .start_at = created->start_at,
      .end_at = created->end_at,
      .anchor_at = created->anchor_at,
      .overlap = created->overlap,
      .missed = created->missed,
      .catch_up_limit = created->catch_up_limit,
      .paused = created->paused,
      .next_at = created->next_at,
      .handler = created->handler,
      .handler_version = created->handler_version,
      .payload_version = created->payload_version,
      .payload = created->payload,
      .task_timeout_ms = created->task_timeout_ms,
      .business_key = created->business_key,
      .concurrency_key = created->concurrency_key,
      .priority = created->priority,
      .recovery_safety = created->recovery_safety,
      .max_attempts = created->max_attempts,
      .initial_delay_ms = created->initial_delay_ms,
      .max_delay_ms = created->max_delay_ms,
      .attempt_timeout_ms = created->attempt_timeout_ms,
  };
}

bool schedule_config_of(const struct event *event, struct event_schedule_changed *ret_config) {
  if (event->type == EVENT_schedule_created) *ret_config = config_of_created(&event->body.schedule_created);
  else if (event->type == EVENT_schedule_changed) *ret_config = event->body.schedule_changed;
  else return false;
  return true;
}

uint64_t schedule_config_seq_of(const struct event *event) {
  switch (event->type) {
    case EVENT_schedule_created:
    case EVENT_schedule_changed:
      return event->seq;
    case EVENT_schedule_paused:
      return event->body.schedule_paused.config_seq;
    case EVENT_schedule_resumed:
      return event->body.schedule_resumed.config_seq;
    case EVENT_schedule_deleted:
      return event->body.schedule_deleted.config_seq;
    default:
      return 0;
  }
}

bool trigger_of(const struct event *event, struct trigger *ret_trigger) {
  if (event->type == EVENT_schedule_triggered) {
    const struct event_schedule_triggered *body = &event->body.schedule_triggered;
    *ret_trigger = (struct trigger){.scheduled_at = body->scheduled_at,
                                    .decided_at = event->time_us,
                                    .next_at = body->next_at,
                                    .outcome = TRIGGER_SUBMITTED,
                                    .task_id = body->task_id};
    return true;
  }
  if (event->type != EVENT_schedule_skipped) return false;
  const struct event_schedule_skipped *body = &event->body.schedule_skipped;
  *ret_trigger = (struct trigger){.scheduled_at = body->scheduled_at,
                                  .decided_at = event->time_us,
                                  .next_at = body->next_at,
                                  .outcome = body->outcome,
                                  .code = body->code};
  return true;
}
