/* Fuzzes the reading of submissions. Whatever the body is: a refusal names a place in valid UTF-8; an accepted one is within
 * its bounds, means the same when it is written out again, and its task's JSON is strict JSON that holds the payload as
 * written. */
#include <string.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "codec/wire_http.h"

/* Kept from run to run, as a server keeps its own. */
static struct json json, again;
static struct buffer texts, texts_again, body, task;

static void check_bounds(const struct submit_command *submit) {
  must(!id_is_zero(&submit->queue_id));
  must(submit->handler.size >= 1 && submit->handler.size <= word_chars_max);
  must(submit->payload.size >= 1 && submit->payload.size <= document_bytes_max);
  must(submit->task_timeout_ms >= 1 && submit->task_timeout_ms <= task_timeout_ms_max);
  must(submit->attempt_timeout_ms >= 1 && submit->attempt_timeout_ms <= submit->task_timeout_ms);
  must(submit->max_attempts >= 1 && submit->max_attempts <= attempts_max && submit->priority <= priority_max);
  must(submit->initial_delay_ms <= submit->max_delay_ms && submit->max_delay_ms <= delay_ms_max);
  must(submit->business_key.data == NULL || bytes_count_chars(submit->business_key) - 1 < key_chars_max);
  must(submit->concurrency_key.data == NULL || bytes_count_chars(submit->concurrency_key) - 1 < key_chars_max);
  must(recovery_safety_text(submit->recovery_safety)[0] != 0);
}

/* The command as a body, every default spelled out. */
static void write_body(const struct submit_command *submit) {
  buffer_reset(&body);
  buffer_append_char(&body, '{');
  wire_id_member(&body, "queue_id", &submit->queue_id);
  wire_text_member(&body, "handler", submit->handler);
  wire_text_member(&body, "handler_version", submit->handler_version);
  wire_text_member(&body, "payload_version", submit->payload_version);
  wire_raw_member(&body, "payload", submit->payload);
  wire_number_member(&body, "task_timeout_ms", submit->task_timeout_ms);
  wire_time_member(&body, "available_at", submit->available_at);
  wire_time_member(&body, "start_deadline_at", submit->start_deadline_at);
  wire_text_member(&body, "recovery_safety", bytes_text(recovery_safety_text(submit->recovery_safety)));
  wire_text_member(&body, "business_key", submit->business_key);
  wire_text_member(&body, "concurrency_key", submit->concurrency_key);
  wire_number_member(&body, "priority", submit->priority);
  wire_raw_member(&body, "retry", bytes_text("{"));
  wire_number_member(&body, "max_attempts", submit->max_attempts);
  wire_number_member(&body, "initial_delay_ms", submit->initial_delay_ms);
  wire_number_member(&body, "max_delay_ms", submit->max_delay_ms);
  wire_number_member(&body, "attempt_timeout_ms", submit->attempt_timeout_ms);
  buffer_append_text(&body, "}}");
  must(!body.failed);
}

static void check_same_meaning(const struct command *command) {
  struct command other = {.kind = COMMAND_GET_TASK};
  struct fault fault;
  write_body(&command->as.submit);
  buffer_reset(&texts_again);
  must(wire_submit_read(&again, buffer_bytes(&body), &texts_again, &other, &fault) == STATUS_OK);
  must(id_equal(&other.operation.digest, &command->operation.digest));
  must(bytes_equal(other.as.submit.payload, command->as.submit.payload));
}

static void check_task(const struct submit_command *submit) {
  struct task_document document = {.task = {.id = submit->queue_id,
                                            .state = TASK_WAITING,
                                            .revision = 1,
                                            .created_at = time_us_min,
                                            .updated_at = time_us_min,
                                            .available_at = submit->available_at,
                                            .start_deadline_at = submit->start_deadline_at,
                                            .deadline_at = time_us_max - 1,
                                            .recovery_safety = (uint8_t)submit->recovery_safety,
                                            .max_attempts = (uint16_t)submit->max_attempts,
                                            .attempt_timeout_ms = submit->attempt_timeout_ms,
                                            .priority = (uint8_t)submit->priority},
                                   .accepted = {.namespace_id = submit->queue_id,
                                                .queue_id = submit->queue_id,
                                                .handler = submit->handler,
                                                .handler_version = submit->handler_version,
                                                .payload_version = submit->payload_version,
                                                .payload = submit->payload,
                                                .business_key = submit->business_key,
                                                .concurrency_key = submit->concurrency_key}};
  buffer_reset(&task);
  wire_task_write(&task, &document);
  must(!task.failed && json_parse(&again, buffer_bytes(&task), NULL) == STATUS_OK);
  must(bytes_equal(json_raw(&again, json_member(&again, 0, "payload")), submit->payload));
}

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  json_init(&json);
  json_init(&again);
  buffer_init(&texts, http_batch_body_bytes_max);
  buffer_init(&texts_again, http_batch_body_bytes_max);
  buffer_init(&body, http_batch_body_bytes_max);
  buffer_init(&task, http_batch_body_bytes_max);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct command command = {.kind = COMMAND_GET_TASK};
  struct fault fault = {.status = STATUS_OK};
  if (size > http_body_bytes_max) return 0;
  buffer_reset(&texts);
  enum status status = wire_submit_read(&json, bytes_of(data, size), &texts, &command, &fault);
  if (status != STATUS_OK) {
    must(status == STATUS_INVALID_ARGUMENT && fault.status == status && command.kind == COMMAND_GET_TASK);
    must(fault.message[0] != 0 && bytes_is_utf8(bytes_text(fault.message)) && bytes_is_utf8(bytes_text(fault.field)));
    return 0;
  }
  must(command.kind == COMMAND_SUBMIT && texts.size == command.as.submit.payload.size);
  check_bounds(&command.as.submit);
  check_same_meaning(&command);
  check_task(&command.as.submit);
  return 0;
}
