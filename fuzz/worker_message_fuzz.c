/* Fuzzes the reading of worker frames, all messages of one frame into one buffer. Whatever the bytes are: a refusal names a
 * place; an accepted message is within its bounds, its documents are strict JSON, and what earlier messages of the frame point
 * at stays as it was; the answer to it is strict JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/wire_worker.h"

/* Kept from run to run, as a server keeps its own. */
static struct json json, again;
static struct buffer texts, answer;
static struct command commands[worker_frame_messages_max];
static struct id document_digests[worker_frame_messages_max];
static const struct secret secret = {{7}};
static const struct principal who = {.application_id = {{1}}, .namespace_id = {{2}}};

static struct id document_digest(struct bytes document) {
  struct id digest = {{0}};
  struct buffer scratch;
  if (document.data == NULL) return digest;
  buffer_init(&scratch, document_bytes_max);
  must(json_parse(&again, document, NULL) == STATUS_OK);
  digest = json_digest(&again, 0, &scratch);
  buffer_clear(&scratch);
  return digest;
}

static struct bytes document_of(const struct command *command) {
  const struct report *report = &command->as.finish.report;
  if (command->kind != COMMAND_FINISH) return bytes_of(NULL, 0);
  must(report->result.data == NULL || report->error_details.data == NULL);
  return report->result.data != NULL ? report->result : report->error_details;
}

static void check_hello(const struct hello_command *hello) {
  must(hello->queue_count >= 1 && hello->queue_count <= queue_ids_max);
  must(hello->handler_count >= 1 && hello->handler_count <= handlers_max);
  for (uint32_t i = 0; i < hello->queue_count; i++) must(!id_is_zero(&hello->queue_ids[i]));
  for (uint32_t i = 0; i < hello->handler_count; i++)
    must(hello->handlers[i].handler.size >= 1 && hello->handlers[i].handler_version.size <= word_chars_max);
  must(hello->capacity >= 1 && hello->capacity <= worker_capacity_max);
}

static void check_finish(const struct command *command) {
  const struct report *report = &command->as.finish.report;
  must(!report->retryable || report->outcome == OUTCOME_FAILED);
  must(report->result.data == NULL || report->outcome == OUTCOME_SUCCEEDED);
  must(report->error_code.data == NULL || report->outcome != OUTCOME_SUCCEEDED);
  must(report->error_code.data != NULL || (report->outcome != OUTCOME_FAILED && report->error_details.data == NULL));
  must(!id_is_zero(&report->identity) && !id_is_zero(&command->operation.identity) && !id_is_zero(&command->operation.digest));
}

static void check_accepted(const struct command *command, const struct id *message_id) {
  must(!id_is_zero(message_id));
  switch (command->kind) {
    case COMMAND_HELLO:
      check_hello(&command->as.hello);
      break;
    case COMMAND_CAPACITY:
      must(command->as.capacity.capacity <= worker_capacity_max);
      break;
    case COMMAND_DRAIN:
      must(id_equal(&command->as.message_id, message_id));
      break;
    case COMMAND_START:
    case COMMAND_RELEASE:
      must(!id_is_zero(&command->operation.identity) && command->as.ref.epoch != 0);
      break;
    case COMMAND_RENEW:
      must(id_is_zero(&command->operation.identity) && command->as.ref.epoch != 0);
      break;
    case COMMAND_FINISH:
      check_finish(command);
      break;
    default:
      must(false); /* no worker sends another kind */
  }
}

static void check_answer(const struct id *message_id, const struct fault *fault) {
  buffer_reset(&answer);
  if (fault->status == STATUS_OK) worker_ok_write(&answer, message_id);
  else worker_refusal_write(&answer, message_id, fault, NULL);
  must(!answer.failed && json_parse(&again, buffer_bytes(&answer), NULL) == STATUS_OK);
}

static void check_refusal(enum status status, const struct fault *fault) {
  must((status == STATUS_INVALID_ARGUMENT || status == STATUS_PAYLOAD_TOO_LARGE) && fault->status == status);
  must(fault->message[0] != 0 && bytes_is_utf8(bytes_text(fault->field)) && (fault->field[0] == 0 || fault->field[0] == '/'));
}

static void read_messages(const struct worker_frame *frame) {
  uint32_t token = frame->first;
  for (uint32_t i = 0; i < frame->count; i++, token = json.tokens[token].next) {
    struct fault fault = {.status = STATUS_OK};
    struct id message_id;
    commands[i] = (struct command){.kind = COMMAND_GET_TASK};
    enum status status = worker_message_read(&json, token, &secret, &who, &texts, &commands[i], &message_id, &fault);
    if (status == STATUS_OK) check_accepted(&commands[i], &message_id);
    else check_refusal(status, &fault);
    must((status == STATUS_OK) == (commands[i].kind != COMMAND_GET_TASK));
    check_answer(&message_id, &fault);
    document_digests[i] = document_digest(document_of(&commands[i]));
  }
}

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  json_init(&json);
  json_init(&again);
  buffer_init(&texts, worker_frame_bytes_max);
  buffer_init(&answer, worker_frame_bytes_max);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct worker_frame frame = {.count = 0};
  struct fault fault = {.status = STATUS_OK};
  if (size > worker_frame_bytes_max) return 0;
  buffer_clear(&texts); /* so that room for spans is made anew each time */
  enum status status = worker_frame_read(&json, bytes_of(data, size), &frame, &fault);
  if (status != STATUS_OK) {
    must(status == STATUS_INVALID_ARGUMENT && frame.count == 0);
    check_refusal(status, &fault);
    return 0;
  }
  read_messages(&frame);
  for (uint32_t i = 0; i < frame.count; i++) {
    struct id digest = document_digest(document_of(&commands[i]));
    must(id_equal(&digest, &document_digests[i]));
  }
  return 0;
}
