/* Owns the folding of events into schedules, and the judgement whether they fit. */
#include "base/guard.h"
#include "core/apply.h"
#include "core/schedule.h"

/* Each check gives NULL, or what does not fit. */
#define REQUIRE(condition, reason) \
  if (!(condition)) return (reason)

static const char *check_template(const struct event_schedule_changed *config) {
  REQUIRE(config->handler.size != 0 && config->handler_version.size != 0 && config->payload_version.size != 0,
          "handler or a version is missing");
  REQUIRE(config->payload.size != 0 && config->payload.size <= document_bytes_max, "payload is missing or too large");
  REQUIRE(config->task_timeout_ms >= 1 && config->task_timeout_ms <= task_timeout_ms_max, "task_timeout_ms is out of bounds");
  REQUIRE(config->recovery_safety > RECOVERY_NONE && config->recovery_safety < RECOVERY_ENUM_END, "recovery_safety is unknown");
  REQUIRE(config->max_attempts >= 1 && config->max_attempts <= attempts_max, "max_attempts is out of bounds");
  REQUIRE(config->max_delay_ms <= delay_ms_max && config->initial_delay_ms <= config->max_delay_ms,
          "the delays are out of bounds");
  REQUIRE(config->attempt_timeout_ms >= 1 && config->attempt_timeout_ms <= config->task_timeout_ms,
          "attempt_timeout_ms is out of bounds");
  REQUIRE(config->priority <= priority_max, "priority is out of bounds");
  return NULL;
}

static const char *check_config(const struct event_schedule_changed *config) {
  REQUIRE(config->name.size != 0, "it has no name");
  if (config->kind == SCHEDULE_CRON) {
    REQUIRE(config->cron.size != 0 && config->cron.size <= cron_chars_max, "cron is missing or too long");
    REQUIRE(config->timezone.size != 0 && config->timezone.size <= timezone_chars_max, "timezone is missing or too long");
    REQUIRE(config->interval_ms == 0 && config->anchor_at == 0, "an expression and an interval");
  } else {
    REQUIRE(config->kind == SCHEDULE_INTERVAL, "kind is unknown");
    REQUIRE(config->interval_ms >= schedule_interval_ms_min && config->interval_ms <= schedule_interval_ms_max,
            "interval_ms is out of bounds");
    REQUIRE(config->anchor_at > 0 && config->cron.size == 0 && config->timezone.size == 0, "an interval without its anchor");
  }
  REQUIRE(config->overlap > OVERLAP_NONE && config->overlap < OVERLAP_ENUM_END, "overlap is unknown");
  REQUIRE(config->missed > MISSED_NONE && config->missed < MISSED_ENUM_END, "missed is unknown");
  REQUIRE(config->catch_up_limit >= 1 && config->catch_up_limit <= catch_up_limit_max, "catch_up_limit is out of bounds");
  REQUIRE(config->start_at >= 0 && config->end_at >= 0 && (config->end_at == 0 || config->start_at < config->end_at),
          "start_at and end_at cannot be");
  REQUIRE(config->next_at >= 0 && (config->end_at == 0 || config->next_at < config->end_at), "next_at lies behind end_at");
  return check_template(config);
}

static const char *check_trigger(const struct schedule *schedule, const struct event *event) {
  struct trigger trigger;
  must(trigger_of(event, &trigger));
  REQUIRE(event->common.revision == schedule->revision, "the revision does not follow");
  REQUIRE(schedule->next_at != 0, "the schedule has no next time");
  REQUIRE(trigger.scheduled_at == schedule->next_at, "another time than the schedule's next one");
  REQUIRE(trigger.scheduled_at <= event->time_us, "decided before its time");
  REQUIRE(trigger.next_at == 0 || trigger.next_at > trigger.scheduled_at, "the next time does not follow");
  REQUIRE(schedule->end_at == 0 || trigger.next_at < schedule->end_at, "the next time lies behind end_at");
  if (event->type == EVENT_schedule_triggered) {
    REQUIRE(!id_is_zero(&trigger.task_id), "a trigger without its task");
    REQUIRE(!schedule_waits_for_task(schedule), "the task before it is unfinished");
    return NULL;
  }
  const struct event_schedule_skipped *skipped = &event->body.schedule_skipped;
  REQUIRE(id_equal(&skipped->namespace_id, &schedule->namespace_id) && id_equal(&skipped->queue_id, &schedule->queue_id),
          "namespace or queue is another than the schedule's");
  REQUIRE(trigger.outcome > TRIGGER_SUBMITTED && trigger.outcome < TRIGGER_ENUM_END, "the outcome is unknown");
  REQUIRE((trigger.outcome == TRIGGER_REJECTED) == (trigger.code.size != 0), "outcome and code do not agree");
  return NULL;
}

/* Pause, resumption, deletion. */
static const char *check_rest(const struct schedule *schedule, const struct event *event) {
  uint64_t config_seq = 0;
  if (event->type == EVENT_schedule_paused) {
    config_seq = event->body.schedule_paused.config_seq;
    REQUIRE(!schedule->paused, "it was paused already");
  } else if (event->type == EVENT_schedule_resumed) {
    int64_t next_at = event->body.schedule_resumed.next_at;
    config_seq = event->body.schedule_resumed.config_seq;
    REQUIRE(schedule->paused, "it was not paused");
    REQUIRE(next_at == 0 || next_at > event->time_us, "the next time lies in the past");
    REQUIRE(schedule->end_at == 0 || next_at < schedule->end_at, "the next time lies behind end_at");
  } else {
    config_seq = event->body.schedule_deleted.config_seq;
    REQUIRE(event->body.schedule_deleted.paused == schedule->paused, "it says of another state that it was paused");
  }
  REQUIRE(config_seq == schedule->config_seq, "config_seq does not name its configuration");
  return NULL;
}

static const char *find_misfit(const struct schedule *schedule, const struct event *event) {
  struct event_schedule_changed config;
  bool is_new = event->type == EVENT_schedule_created;
  REQUIRE(is_new == (schedule->revision == 0), is_new ? "it exists already" : "it does not exist");
  REQUIRE(!schedule->deleted, "the schedule was deleted");
  if (event->type == EVENT_schedule_triggered || event->type == EVENT_schedule_skipped) return check_trigger(schedule, event);
  REQUIRE(event->common.revision == schedule->revision + 1, "the revision does not rise by one");
  if (schedule_config_of(event, &config)) {
    bool paused = is_new ? event->body.schedule_created.paused : schedule->paused;
    REQUIRE(!paused || config.next_at == 0, "a paused schedule with a next time");
    REQUIRE(!is_new || config.next_at == 0 || config.next_at > event->time_us, "the first time lies in the past");
    REQUIRE(is_new || config.kind == (enum schedule_kind)schedule->kind, "kind has changed");
    REQUIRE(is_new || config.paused == schedule->paused, "it says of another state that it was paused");
    return check_config(&config);
  }
  return check_rest(schedule, event);
}

bool can_apply_schedule(const struct schedule *schedule, const struct event *event, const char **ret_reason) {
  const char *misfit = find_misfit(schedule, event);
  if (misfit == NULL) return true;
  *ret_reason = misfit;
  return false;
}

static void configure(struct schedule *schedule, const struct event *event) {
  struct event_schedule_changed config;
  must(schedule_config_of(event, &config));
  schedule->config_seq = event->seq;
  schedule->interval_ms = config.interval_ms;
  schedule->start_at = config.start_at;
  schedule->end_at = config.end_at;
  schedule->anchor_at = config.anchor_at;
  schedule->next_at = config.next_at;
  schedule->catch_up_limit = (uint32_t)config.catch_up_limit;
  schedule->kind = (uint8_t)config.kind;
  schedule->overlap = (uint8_t)config.overlap;
  schedule->missed = (uint8_t)config.missed;
}

static void create(struct schedule *schedule, const struct event *event) {
  const struct event_schedule_created *body = &event->body.schedule_created;
  schedule->id = event->stream;
  schedule->namespace_id = body->namespace_id;
  schedule->application_id = body->application_id;
  schedule->queue_id = body->queue_id;
  schedule->created_at = event->time_us;
  schedule->paused = body->paused;
  configure(schedule, event);
}

static void follow_trigger(struct schedule *schedule, const struct event *event) {
  struct trigger trigger;
  must(trigger_of(event, &trigger));
  schedule->trigger_seq = event->seq;
  schedule->next_at = trigger.next_at;
}

void apply_schedule(struct schedule *schedule, const struct event *event) {
  switch (event->type) {
    case EVENT_schedule_created:
      create(schedule, event);
      break;
    case EVENT_schedule_changed:
      configure(schedule, event);
      break;
    case EVENT_schedule_paused:
      schedule->paused = true;
      schedule->next_at = 0;
      break;
    case EVENT_schedule_resumed:
      schedule->paused = false;
      schedule->next_at = event->body.schedule_resumed.next_at;
      break;
    case EVENT_schedule_deleted:
      schedule->deleted = true;
      schedule->next_at = 0;
      break;
    case EVENT_schedule_triggered:
    case EVENT_schedule_skipped:
      follow_trigger(schedule, event);
      return;
    case EVENT_audit_recorded:
      return;
    default:
      must(false);
  }
  schedule->revision = event->common.revision;
  schedule->updated_at = event->time_us;
}

struct schedule schedule_as_written(const struct schedule *schedule, const struct event *write, const struct event *config) {
  struct schedule as_written = {.id = schedule->id,
                                .namespace_id = schedule->namespace_id,
                                .application_id = schedule->application_id,
                                .queue_id = schedule->queue_id,
                                .revision = write->common.revision,
                                .created_at = schedule->created_at,
                                .updated_at = write->time_us,
                                .deleted = write->type == EVENT_schedule_deleted};
  configure(&as_written, config);
  as_written.next_at = 0;
  switch (write->type) {
    case EVENT_schedule_created:
      as_written.paused = write->body.schedule_created.paused;
      break;
    case EVENT_schedule_changed:
      as_written.paused = write->body.schedule_changed.paused;
      break;
    case EVENT_schedule_deleted:
      as_written.paused = write->body.schedule_deleted.paused;
      break;
    default:
      as_written.paused = write->type == EVENT_schedule_paused;
      break;
  }
  return as_written;
}
