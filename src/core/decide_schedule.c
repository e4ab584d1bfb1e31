/* Owns what people do to schedules: create, change, pause, resume, delete; one event and its audit record. */
#include <inttypes.h>

#include "base/guard.h"
#include "core/decide_parts.h"
#include "core/schedule_times.h"

/* ---- configuration ---- */

static void take_template(struct event_schedule_changed *config, const struct submit_command *template) {
  config->handler = template->handler;
  config->handler_version = template->handler_version;
  config->payload_version = template->payload_version;
  config->payload = template->payload;
  config->task_timeout_ms = template->task_timeout_ms;
  config->business_key = template->business_key;
  config->concurrency_key = template->concurrency_key;
  config->priority = template->priority;
  config->recovery_safety = template->recovery_safety;
  config->max_attempts = template->max_attempts;
  config->initial_delay_ms = template->initial_delay_ms;
  config->max_delay_ms = template->max_delay_ms;
  config->attempt_timeout_ms = template->attempt_timeout_ms;
}

static const unsigned timing = GIVEN_CRON | GIVEN_TIMEZONE | GIVEN_INTERVAL | GIVEN_START | GIVEN_END;

/* What was given, over what stands there. */
static void merge(struct event_schedule_changed *config, unsigned given, const struct schedule_command *command) {
  if (given & GIVEN_NAME) config->name = command->name;
  if (given & GIVEN_CRON) config->cron = command->cron;
  if (given & GIVEN_TIMEZONE) config->timezone = command->timezone;
  if (given & GIVEN_INTERVAL) config->interval_ms = command->interval_ms;
  if (given & GIVEN_START) config->start_at = command->start_at;
  if (given & GIVEN_END) config->end_at = command->end_at;
  if (given & GIVEN_OVERLAP) config->overlap = command->overlap;
  if (given & GIVEN_MISSED) config->missed = command->missed;
  if (given & GIVEN_CATCH_UP) config->catch_up_limit = command->catch_up_limit;
  if (given & GIVEN_TEMPLATE) take_template(config, &command->template);
}

enum status schedule_configure(const struct event_schedule_changed *present, const struct command *command, int64_t now_us,
                               struct event_schedule_changed *ret_config, struct fault *fault) {
  const struct schedule_command *change = &command->as.schedule;
  struct event_schedule_changed config = {.kind = change->kind};
  unsigned given = change->given;
  if (present != NULL) config = *present;
  else given = ~0U;
  bool by_clock = config.kind == SCHEDULE_CRON;
  if (present != NULL && by_clock && (given & GIVEN_INTERVAL))
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/interval_ms", "a CRON schedule has no interval");
  if (present != NULL && !by_clock && (given & (GIVEN_CRON | GIVEN_TIMEZONE)))
    return fault_set(fault, STATUS_INVALID_ARGUMENT, given & GIVEN_CRON ? "/cron" : "/timezone",
                     "an INTERVAL schedule has neither an expression nor a time zone");
  merge(&config, given, change);
  if (config.end_at != 0 && config.end_at <= config.start_at)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/end_at", "end_at must be after start_at");
  if (!by_clock && (given & (GIVEN_INTERVAL | GIVEN_START))) config.anchor_at = config.start_at != 0 ? config.start_at : now_us;
  *ret_config = config;
  return STATUS_OK;
}

/* ---- next time ---- */

static enum status first_time(const struct schedule_times *times, int64_t now_us, int64_t *ret_next, struct fault *fault) {
  struct schedule_times endless = *times;
  endless.end_at = 0;
  *ret_next = schedule_times_next(times, now_us);
  if (*ret_next != 0) return STATUS_OK;
  if (times->end_at != 0 && schedule_times_next(&endless, now_us) != 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/end_at", "none of its times is still to come before end_at");
  return fault_set(fault, STATUS_INVALID_ARGUMENT, times->kind == SCHEDULE_CRON ? "/cron" : "/start_at",
                   "it has no time in the next eight years");
}

/* ---- events ---- */

static enum status check_object(const struct schedule *schedule, const struct schedule_command *change, struct fault *fault) {
  if (schedule->deleted) return fault_set(fault, STATUS_NOT_FOUND, NULL, "the schedule was deleted");
  if (change->expected_revision == 0 || change->expected_revision == schedule->revision) return STATUS_OK;
  return fault_set(fault, STATUS_STATE_CONFLICT, "/expected_revision",
                   "the revision is %" PRIu64 ", not %" PRIu64 "; read it again and decide anew", schedule->revision,
                   change->expected_revision);
}

static void audit_schedule(struct act *act, const struct command *command, const struct id *id, uint64_t revision) {
  act_audit_object(act, command, id, revision, &command->who.namespace_id, command->as.schedule.reason);
}

static void fill_created(struct event_schedule_created *body, const struct event_schedule_changed *config) {
  body->name = config->name;
  body->kind = config->kind;
  body->cron = config->cron;
  body->timezone = config->timezone;
  body->interval_ms = config->interval_ms;
  body->start_at = config->start_at;
  body->end_at = config->end_at;
  body->anchor_at = config->anchor_at;
  body->overlap = config->overlap;
  body->missed = config->missed;
  body->catch_up_limit = config->catch_up_limit;
  body->next_at = config->next_at;
  body->handler = config->handler;
  body->handler_version = config->handler_version;
  body->payload_version = config->payload_version;
  body->payload = config->payload;
  body->task_timeout_ms = config->task_timeout_ms;
  body->business_key = config->business_key;
  body->concurrency_key = config->concurrency_key;
  body->priority = config->priority;
  body->recovery_safety = config->recovery_safety;
  body->max_attempts = config->max_attempts;
  body->initial_delay_ms = config->initial_delay_ms;
  body->max_delay_ms = config->max_delay_ms;
  body->attempt_timeout_ms = config->attempt_timeout_ms;
}

static enum status create(const struct event_schedule_changed *config, const struct schedule_times *times,
                          const struct command *command, const struct decide_env *env, struct event_list *list,
                          struct fault *fault) {
  struct event_schedule_changed whole = *config;
  enum status status = first_time(times, env->now_us, &whole.next_at, fault);
  if (status != STATUS_OK) return status;
  struct act act = act_of_command(command, env, list);
  struct event_schedule_created *body = &act_append(&act, EVENT_schedule_created, &env->new_id, 1)->body.schedule_created;
  if (command->as.schedule.paused) whole.next_at = 0;
  fill_created(body, &whole);
  body->namespace_id = command->who.namespace_id;
  body->application_id = command->who.application_id;
  body->queue_id = command->as.schedule.queue_id;
  body->paused = command->as.schedule.paused;
  audit_schedule(&act, command, &env->new_id, 1);
  return STATUS_OK;
}

/* A change of its times starts them anew from now; any other leaves the next one as it is, though it waits for a task. */
static enum status change(const struct schedule *schedule, const struct event_schedule_changed *config,
                          const struct schedule_times *times, const struct command *command, const struct decide_env *env,
                          struct event_list *list, struct fault *fault) {
  int64_t next_at = schedule->next_at;
  enum status status = STATUS_OK;
  if (command->as.schedule.given & timing) status = first_time(times, env->now_us, &next_at, fault);
  if (status != STATUS_OK) return status;
  struct act act = act_of_command(command, env, list);
  uint64_t revision = schedule->revision + 1;
  struct event_schedule_changed *body =
      &act_append(&act, EVENT_schedule_changed, &schedule->id, revision)->body.schedule_changed;
  *body = *config;
  body->paused = schedule->paused;
  body->next_at = schedule->paused ? 0 : next_at;
  audit_schedule(&act, command, &schedule->id, revision);
  return STATUS_OK;
}

static enum status rest(const struct schedule *schedule, const struct command *command, const struct decide_env *env,
                        struct event_list *list, struct fault *fault) {
  bool pause = command->kind == COMMAND_SCHEDULE_PAUSE;
  if (pause && schedule->paused) return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the schedule is paused already");
  struct act act = act_of_command(command, env, list);
  uint64_t revision = schedule->revision + 1;
  struct event *event = act_append(&act, pause ? EVENT_schedule_paused : EVENT_schedule_deleted, &schedule->id, revision);
  if (pause) {
    event->body.schedule_paused.reason = command->as.schedule.reason;
    event->body.schedule_paused.config_seq = schedule->config_seq;
  } else {
    event->body.schedule_deleted.config_seq = schedule->config_seq;
    event->body.schedule_deleted.paused = schedule->paused;
  }
  audit_schedule(&act, command, &schedule->id, revision);
  return STATUS_OK;
}

static enum status resume(const struct schedule *schedule, const struct schedule_times *times, const struct command *command,
                          const struct decide_env *env, struct event_list *list, struct fault *fault) {
  if (!schedule->paused) return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the schedule is running already");
  struct act act = act_of_command(command, env, list);
  uint64_t revision = schedule->revision + 1;
  struct event_schedule_resumed *body =
      &act_append(&act, EVENT_schedule_resumed, &schedule->id, revision)->body.schedule_resumed;
  body->reason = command->as.schedule.reason;
  body->config_seq = schedule->config_seq;
  body->next_at = schedule_times_next(times, env->now_us);
  audit_schedule(&act, command, &schedule->id, revision);
  return STATUS_OK;
}

enum status decide_schedule(const struct schedule *schedule, const struct event_schedule_changed *config,
                            const struct schedule_times *times, const struct command *command, const struct decide_env *env,
                            struct event_list *list, struct fault *fault) {
  if (schedule == NULL) return create(config, times, command, env, list, fault);
  enum status status = check_object(schedule, &command->as.schedule, fault);
  if (status != STATUS_OK) return status;
  if (command->kind == COMMAND_SCHEDULE_CHANGE) return change(schedule, config, times, command, env, list, fault);
  if (command->kind == COMMAND_SCHEDULE_RESUME) return resume(schedule, times, command, env, list, fault);
  return rest(schedule, command, env, list, fault);
}
