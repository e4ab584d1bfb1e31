/* Schedules: their bodies to commands, and schedules, triggers and times as JSON (schema/http.md "Schedules"). Pure. */
#ifndef ORBIT_CODEC_WIRE_SCHEDULE_H
#define ORBIT_CODEC_WIRE_SCHEDULE_H

#include "base/status.h"
#include "codec/json.h"
#include "core/command.h"
#include "core/model.h"
#include "core/schedule.h"

/* Each reads the body into the command's structure with defaults filled in, and sets kind and operation.digest; the rest of the
 * command is left alone, and all of it on failure. Spans point into the body, json's scratch or texts and must live until the
 * ticket is answered. INVALID_ARGUMENT names the field by JSON Pointer; of an expression, the message names the part and the
 * character. UNAVAILABLE when texts is full. Whether the queue and the zone exist is the engine's to judge. */
enum status wire_schedule_create_read(struct json *json, struct bytes body, struct buffer *texts, struct command *command,
                                      struct fault *fault);
/* expected_revision and at least one field to change; null takes start_at or end_at away. */
enum status wire_schedule_change_read(struct json *json, struct bytes body, const struct id *schedule_id, struct buffer *texts,
                                      struct command *command, struct fault *fault);
/* kind is COMMAND_SCHEDULE_PAUSE, …_RESUME or …_DELETE: an object with at most a reason. */
enum status wire_schedule_rest_read(struct json *json, struct bytes body, const struct id *schedule_id, enum command_kind kind,
                                    struct command *command, struct fault *fault);
/* POST /v1/schedules:preview; no digest: nothing is stored. */
enum status wire_preview_read(struct json *json, struct bytes body, struct command *command, struct fault *fault);

/* {"id",…,"template":{…},…} and, when live, "next_at"? and "last"? (NULL: none yet). config is the one at config_seq. Answers
 * to writes are not live. */
void wire_schedule_write(struct buffer *out, const struct schedule *schedule, const struct event_schedule_changed *config,
                         bool live, const struct trigger *last);
/* {"scheduled_at","outcome","task_id"?,"code"?,"decided_at"} */
void wire_trigger_write(struct buffer *out, const struct trigger *trigger);
/* {"times":[…]} */
void wire_times_write(struct buffer *out, const int64_t *times, uint32_t count);

#endif
