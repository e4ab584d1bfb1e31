/* Owns what becomes of the times of a schedule once they have come: schema/semantics.md "Schedules". */
#include "base/guard.h"
#include "core/decide_parts.h"
#include "core/schedule.h"

/* A time was missed when Orbit was not up at it, when the next one has come too, or when it is decided more than a minute late.
 */
static bool was_missed(const struct due_time *due, int64_t now_us) {
  return due->scheduled_at <= due->up_since || (due->next_at != 0 && due->next_at <= now_us) ||
         now_us - due->scheduled_at > schedule_late_us_max;
}

bool due_time_fires(const struct schedule *schedule, const struct due_time *due, int64_t now_us) {
  if (!was_missed(due, now_us)) return true;
  switch ((enum missed)schedule->missed) {
    case MISSED_SKIP:
      /* the first that waited for a task was not missed: it could not come sooner */
      return due->first && schedule->overlap == OVERLAP_SERIAL && schedule->free_at >= due->scheduled_at;
    case MISSED_LATEST:
      return due->behind == 0;
    default:
      return due->behind < schedule->catch_up_limit;
  }
}

static void append_skipped(struct act *act, const struct schedule *schedule, const struct due_time *due,
                           enum trigger_outcome outcome, const char *code) {
  struct event_schedule_skipped *body =
      &act_append(act, EVENT_schedule_skipped, &schedule->id, schedule->revision)->body.schedule_skipped;
  body->scheduled_at = due->scheduled_at;
  body->outcome = outcome;
  if (code != NULL) body->code = bytes_text(code);
  body->next_at = due->next_at;
  body->namespace_id = schedule->namespace_id;
  body->queue_id = schedule->queue_id;
}

static void append_task(struct act *act, const struct schedule *schedule, const struct event_schedule_changed *config) {
  int64_t now = act->env->now_us;
  struct event_task_accepted *accepted = &act_append(act, EVENT_task_accepted, &act->env->new_id, 1)->body.task_accepted;
  accepted->namespace_id = schedule->namespace_id;
  accepted->application_id = schedule->application_id;
  accepted->queue_id = schedule->queue_id;
  accepted->handler = config->handler;
  accepted->handler_version = config->handler_version;
  accepted->payload_version = config->payload_version;
  accepted->payload = config->payload;
  accepted->business_key = config->business_key;
  accepted->concurrency_key = config->concurrency_key;
  accepted->priority = config->priority;
  accepted->available_at = now;
  accepted->deadline_at = time_after_ms(now, config->task_timeout_ms);
  accepted->recovery_safety = config->recovery_safety;
  accepted->max_attempts = config->max_attempts;
  accepted->initial_delay_ms = config->initial_delay_ms;
  accepted->max_delay_ms = config->max_delay_ms;
  accepted->attempt_timeout_ms = config->attempt_timeout_ms;
  accepted->schedule_id = schedule->id;
}

enum trigger_outcome decide_trigger(const struct schedule *schedule, const struct event_schedule_changed *config,
                                    const struct queue *queue, const struct application *application,
                                    const struct due_time *due, const struct decide_env *env, struct event_list *list) {
  struct act act = act_of_node(env, list);
  must(due->scheduled_at == schedule->next_at && due->scheduled_at <= env->now_us);
  enum trigger_outcome outcome = TRIGGER_SUBMITTED;
  enum status refusal = STATUS_OK;
  if (!due_time_fires(schedule, due, env->now_us)) outcome = TRIGGER_SKIPPED_MISSED;
  else if (schedule->overlap == OVERLAP_SKIP && schedule->unfinished > 0) outcome = TRIGGER_SKIPPED_OVERLAP;
  else refusal = application->disabled ? STATUS_PERMISSION_DENIED : check_quota(queue, application, NULL);
  if (refusal != STATUS_OK) outcome = TRIGGER_REJECTED;
  if (outcome != TRIGGER_SUBMITTED) {
    append_skipped(&act, schedule, due, outcome, refusal != STATUS_OK ? status_name(refusal) : NULL);
    return outcome;
  }
  must(!schedule_waits_for_task(schedule));
  append_task(&act, schedule, config);
  struct event_schedule_triggered *body =
      &act_append(&act, EVENT_schedule_triggered, &schedule->id, schedule->revision)->body.schedule_triggered;
  body->scheduled_at = due->scheduled_at;
  body->task_id = env->new_id;
  body->next_at = due->next_at;
  return outcome;
}
