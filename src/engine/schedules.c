/* Owns what people ask of schedules: writes, reads, and the preview of times. */
#include <stdlib.h>

#include "base/guard.h"
#include "core/apply.h"
#include "core/schedule.h"
#include "core/schedule_times.h"
#include "engine/internal.h"

static enum status unreadable(struct answer *answer) {
  return refuse(answer, fault_set(&answer->fault, STATUS_INTERNAL, NULL, "a schedule could not be read from the log"));
}

static enum status not_found(struct answer *answer, const struct id *id) {
  return refuse(answer, fault_set(&answer->fault, STATUS_NOT_FOUND, NULL,
                                  "there is no schedule %s within reach of this credential", id_text(id).text));
}

/* Deleted ones too: a repeat of what was done to them gets its answer. */
static struct schedule *reach_schedule(struct engine *engine, const struct principal *who, const struct id *id) {
  struct schedule *schedule = state_schedule(engine->state, id);
  return schedule != NULL && command_reaches_queue(engine, who, &schedule->queue_id) ? schedule : NULL;
}

/* Answers to writes hold what was configured, nothing live. */
static struct schedule configured(const struct schedule *schedule) {
  struct schedule copy = *schedule;
  copy.next_at = copy.free_at = 0;
  copy.trigger_seq = 0;
  copy.unfinished = 0;
  return copy;
}

/* The first answer again, from the write and its configuration alone: a schedule's history may be long. */
static enum status repeat(struct engine *engine, struct answer *answer, const struct event *write) {
  const struct schedule *schedule = state_schedule(engine->state, &write->stream);
  uint64_t config_seq = schedule_config_seq_of(write);
  struct event config;
  if (schedule == NULL || config_seq == 0 ||
      history_event(engine->history, engine_source(engine), config_seq, &config) != STATUS_OK ||
      schedule_config_seq_of(&config) != config_seq || !id_equal(&config.stream, &write->stream))
    return unreadable(answer);
  answer->as.schedule = schedule_as_written(schedule, write, &config);
  answer->deduplicated = true;
  return STATUS_OK;
}

/* A record's copy: what is staged next may move the commit that it stands in. */
static enum status read_copied(void *context, uint64_t seq, struct bytes *ret_record) {
  struct engine *engine = context;
  struct record_source source = engine_source(engine);
  struct bytes record;
  enum status status = source.get(source.context, seq, &record);
  if (status != STATUS_OK) return status;
  buffer_reset(&engine->scratch);
  buffer_append_bytes(&engine->scratch, record);
  must(!engine->scratch.failed);
  *ret_record = buffer_bytes(&engine->scratch);
  return STATUS_OK;
}

static enum status present_config(struct engine *engine, const struct schedule *schedule, struct event *event,
                                  struct event_schedule_changed *ret_config) {
  struct record_source source = {read_copied, engine};
  enum status status = history_event(engine->history, source, schedule->config_seq, event);
  return status == STATUS_OK && !schedule_config_of(event, ret_config) ? STATUS_CORRUPT : status;
}

static enum status take_times(struct engine *engine, const struct event_schedule_changed *config,
                              struct schedule_times *ret_times, struct fault *fault) {
  const struct zone *zone = NULL;
  enum status status = STATUS_OK;
  if (config->kind == SCHEDULE_CRON) status = zones_get(engine->zones, config->timezone, &zone, fault);
  return status == STATUS_OK ? schedule_times_of(config, zone, ret_times, fault) : status;
}

static enum status check_new(struct engine *engine, const struct command *command, struct fault *fault) {
  if (state_application(engine->state, &command->who.application_id) == NULL)
    return fault_set(fault, STATUS_PERMISSION_DENIED, NULL, "this credential belongs to no application");
  if (command_reaches_queue(engine, &command->who, &command->as.schedule.queue_id)) return STATUS_OK;
  return fault_set(fault, STATUS_NOT_FOUND, "/queue_id", "there is no queue %s within reach of this credential",
                   id_text(&command->as.schedule.queue_id).text);
}

/* What stands, what will stand, and its times: as much of it as the command needs. */
struct weighing {
  struct event event; /* holds the present configuration */
  struct event_schedule_changed config;
  struct schedule_times times;
};

static enum status weigh(struct engine *engine, const struct schedule *schedule, const struct command *command,
                         struct weighing *ret, struct fault *fault) {
  struct event_schedule_changed present = {.kind = SCHEDULE_NONE};
  enum status status = STATUS_OK;
  if (command->kind == COMMAND_SCHEDULE_PAUSE || command->kind == COMMAND_SCHEDULE_DELETE) return STATUS_OK;
  if (schedule != NULL && present_config(engine, schedule, &ret->event, &present) != STATUS_OK)
    return fault_set(fault, STATUS_INTERNAL, NULL, "a schedule could not be read from the log");
  if (command->kind == COMMAND_SCHEDULE_RESUME) ret->config = present;
  else status = schedule_configure(schedule != NULL ? &present : NULL, command, engine->now_us, &ret->config, fault);
  return status == STATUS_OK ? take_times(engine, &ret->config, &ret->times, fault) : status;
}

enum status schedule_write(struct engine *engine, struct ticket *ticket) {
  struct answer *answer = &ticket->answer;
  const struct command *command = &ticket->command;
  const struct schedule *schedule = NULL;
  struct weighing weighing;
  struct event event;
  bool create = command->kind == COMMAND_SCHEDULE_CREATE;
  if (!create && (schedule = reach_schedule(engine, &command->who, &command->as.schedule.id)) == NULL)
    return not_found(answer, &command->as.schedule.id);
  enum status status = create ? check_new(engine, command, &answer->fault) : STATUS_OK;
  if (status != STATUS_OK) return refuse(answer, status);
  status = command_receipt(engine, command, NULL, &event, &answer->fault);
  if (status == STATUS_OK) return repeat(engine, answer, &event);
  if (status != STATUS_END) return refuse(answer, status);
  if (!create && schedule->deleted) return not_found(answer, &command->as.schedule.id);
  status = weigh(engine, schedule, command, &weighing, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  struct decide_env env = engine_env(engine);
  status = decide_schedule(schedule, &weighing.config, &weighing.times, command, &env, &engine->list, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  engine_append(engine);
  answer->created = true;
  answer->as.schedule = configured(state_schedule(engine->state, create ? &env.new_id : &command->as.schedule.id));
  return STATUS_OK;
}

enum status schedule_get(struct engine *engine, struct ticket *ticket) {
  const struct schedule *schedule = reach_schedule(engine, &ticket->command.who, &ticket->command.as.object_id);
  if (schedule == NULL || schedule->deleted) return not_found(&ticket->answer, &ticket->command.as.object_id);
  ticket->answer.as.schedule = *schedule;
  return STATUS_OK;
}

enum status schedule_preview(struct engine *engine, struct ticket *ticket) {
  const struct preview_command *preview = &ticket->command.as.preview;
  struct answer *answer = &ticket->answer;
  int64_t after = preview->after != 0 ? preview->after : engine->now_us;
  struct event_schedule_changed config = {.kind = preview->kind,
                                          .cron = preview->cron,
                                          .timezone = preview->timezone,
                                          .interval_ms = preview->interval_ms,
                                          .anchor_at = preview->kind == SCHEDULE_INTERVAL ? after : 0};
  struct schedule_times times;
  enum status status = take_times(engine, &config, &times, &answer->fault);
  if (status != STATUS_OK) return refuse(answer, status);
  struct answer_list list = {.of.times = guard_malloc(sizeof *list.of.times * preview->count)};
  while (list.count < preview->count && (after = schedule_times_next(&times, after)) != 0) list.of.times[list.count++] = after;
  if (list.count == 0) {
    free(list.of.times);
    return refuse(answer,
                  fault_set(&answer->fault, STATUS_INVALID_ARGUMENT, preview->kind == SCHEDULE_CRON ? "/cron" : "/after",
                            "it has no time in the next eight years"));
  }
  answer->as.list = list;
  return STATUS_OK;
}
