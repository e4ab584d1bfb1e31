/* Owns the routes of schedules: writes, reads, triggers, and the preview of times. Their list is in routes_list.c. */
#include "base/guard.h"
#include "codec/wire_schedule.h"
#include "edge/routes.h"

/* ---- writes ---- */

enum status schedules_create_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_schedule_create_read(&job->json, buffer_bytes(&job->body), &job->texts, command, fault);
}

enum status schedules_change_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_schedule_change_read(&job->json, buffer_bytes(&job->body), &request->ids[0], &job->texts, command, fault);
}

static enum status begin_rest(struct request *request, enum command_kind kind, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_schedule_rest_read(&job->json, buffer_bytes(&job->body), &request->ids[0], kind, command, fault);
}

enum status schedules_pause_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_rest(request, COMMAND_SCHEDULE_PAUSE, command, fault);
}

enum status schedules_resume_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_rest(request, COMMAND_SCHEDULE_RESUME, command, fault);
}

enum status schedules_delete_begin(struct request *request, struct command *command, struct fault *fault) {
  return begin_rest(request, COMMAND_SCHEDULE_DELETE, command, fault);
}

/* ---- one schedule ---- */

enum status schedules_get_begin(struct request *request, struct command *command, struct fault *fault) {
  (void)fault;
  command->kind = COMMAND_GET_SCHEDULE;
  command->as.object_id = request->ids[0];
  return STATUS_OK;
}

static enum status read_last(struct request *request, struct record_source source, uint64_t seq, struct trigger *ret_trigger) {
  struct event event;
  enum status status = history_event(request->pool->history, source, seq, &event);
  return status == STATUS_OK && !trigger_of(&event, ret_trigger) ? STATUS_CORRUPT : status;
}

enum status schedule_write_whole(struct request *request, const struct schedule *schedule, bool live, struct fault *fault) {
  struct record_source source;
  struct event event;
  struct event_schedule_changed config;
  struct trigger last;
  bool has_last = live && schedule->trigger_seq != 0;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  status = history_event(request->pool->history, source, schedule->config_seq, &event);
  if (status == STATUS_OK && !schedule_config_of(&event, &config)) status = STATUS_CORRUPT;
  if (status == STATUS_OK && has_last) status = read_last(request, source, schedule->trigger_seq, &last);
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "the log does not hold a schedule's configuration");
  wire_schedule_write(&request->out, schedule, &config, live, has_last ? &last : NULL);
  return STATUS_OK;
}

static enum status finish(struct request *request, const struct answer *answer, bool live, struct fault *fault) {
  buffer_append_text(&request->out, "{\"schedule\":");
  enum status status = schedule_write_whole(request, &answer->as.schedule, live, fault);
  buffer_append_char(&request->out, '}');
  return status;
}

enum status schedules_write_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish(request, answer, false, fault);
}

enum status schedules_get_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  return finish(request, answer, true, fault);
}

/* ---- triggers: the schedule's own events, newest first; pages go on by position in the log ---- */

enum status schedules_triggers_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct record_source source;
  uint64_t seq = answer->as.schedule.trigger_seq;
  uint32_t limit, rows = 0;
  bool given;
  enum status status = page_limit_read(request, &limit, fault);
  if (status == STATUS_OK) status = page_cursor_read(request, &request->ids[0], &seq, sizeof seq, &given, fault);
  if (status == STATUS_OK) status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  buffer_append_text(&request->out, "{\"items\":[");
  for (uint32_t looks = 0; seq != 0 && rows < limit && looks < trigger_looks_max && !request_page_is_full(request); looks++) {
    struct event event;
    struct trigger trigger;
    status = history_event(request->pool->history, source, seq, &event);
    if (status != STATUS_OK || !id_equal(&event.stream, &answer->as.schedule.id))
      return fault_set(fault, STATUS_CORRUPT, NULL, "the log does not hold a schedule's triggers");
    if (trigger_of(&event, &trigger)) {
      if (rows++ > 0) buffer_append_char(&request->out, ',');
      wire_trigger_write(&request->out, &trigger);
    }
    seq = event.type == EVENT_schedule_created ? 0 : event.prev;
  }
  buffer_append_char(&request->out, ']');
  if (seq != 0) page_cursor_write(request, &request->ids[0], bytes_of(&seq, sizeof seq));
  buffer_append_char(&request->out, '}');
  return STATUS_OK;
}

/* ---- preview ---- */

enum status schedules_preview_begin(struct request *request, struct command *command, struct fault *fault) {
  struct job *job = request->job;
  return wire_preview_read(&job->json, buffer_bytes(&job->body), command, fault);
}

enum status schedules_preview_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  (void)fault;
  wire_times_write(&request->out, answer->as.list.of.times, answer->as.list.count);
  return STATUS_OK;
}
