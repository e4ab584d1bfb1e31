/* Fuzzes the bodies of operators: review, manual retry, cancel, batches, administration, and the parameters of lists. The first
 * byte says which. Whatever the rest is: a refusal names a place in valid UTF-8 and leaves the command alone; what is accepted
 * is within its bounds, and reviews, retries and cancels mean the same when they are written out again. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/wire_admin.h"
#include "codec/wire_http.h"
#include "codec/wire_list.h"
#include "codec/wire_recovery.h"

/* Kept from run to run, as a server keeps its own. */
static struct json json;
static struct buffer texts, body;
static const struct id target = {{1}};

typedef enum status body_reader(struct bytes text, struct command *command, struct fault *fault);

/* ---- Recovery ---- */

static enum status read_review(struct bytes text, struct command *command, struct fault *fault) {
  return wire_review_read(&json, text, &target, &texts, command, fault);
}
static enum status read_retry(struct bytes text, struct command *command, struct fault *fault) {
  return wire_retry_read(&json, text, &target, command, fault);
}
static enum status read_cancel(struct bytes text, struct command *command, struct fault *fault) {
  return wire_cancel_read(&json, text, &target, command, fault);
}

static void check_text(struct bytes text, size_t chars_max) {
  must(text.data != NULL && bytes_is_utf8(text) && bytes_count_chars(text) - 1 < chars_max);
}

/* The texts of a command borrow from json, which reads the body that is written here: it is copied before. */
static void write_review(const struct review_command *review) {
  check_text(review->reason, reason_chars_max);
  check_text(review->evidence_ref, evidence_ref_chars_max);
  must(!wire_text_has_space_or_control(review->evidence_ref) && review->expected_revision != 0);
  must(review->outcome == OUTCOME_SUCCEEDED || review->outcome == OUTCOME_FAILED);
  must(review->result.size >= 1 && review->result.size <= document_bytes_max);
  wire_text_member(&body, "outcome", bytes_text(outcome_text(review->outcome)));
  wire_raw_member(&body, "result", review->result);
  wire_text_member(&body, "evidence_ref", review->evidence_ref);
  wire_text_member(&body, "reason", review->reason);
  wire_bool_member(&body, "execution_settled", true);
  wire_decimal_member(&body, "expected_revision", review->expected_revision);
}

static void write_retry(const struct retry_command *retry) {
  check_text(retry->reason, reason_chars_max);
  check_text(retry->evidence_ref, evidence_ref_chars_max);
  must(!wire_text_has_space_or_control(retry->evidence_ref) && retry->expected_revision != 0);
  must(retry->task_timeout_ms >= 1 && retry->task_timeout_ms <= task_timeout_ms_max);
  wire_time_member(&body, "start_deadline_at", retry->start_deadline_at);
  wire_time_member(&body, "available_at", retry->available_at);
  wire_number_member(&body, "task_timeout_ms", retry->task_timeout_ms);
  wire_bool_member(&body, "safe_to_retry", true);
  wire_text_member(&body, "evidence_ref", retry->evidence_ref);
  wire_text_member(&body, "reason", retry->reason);
  wire_decimal_member(&body, "expected_revision", retry->expected_revision);
}

static void write_cancel(const struct cancel_command *cancel) {
  check_text(cancel->reason, reason_chars_max);
  if (cancel->expected_revision != 0) wire_decimal_member(&body, "expected_revision", cancel->expected_revision);
  wire_text_member(&body, "reason", cancel->reason);
}

static void check_recovery(const struct command *command, body_reader *reader) {
  struct command again = {.kind = COMMAND_GET_TASK};
  struct fault fault;
  buffer_reset(&body);
  buffer_append_char(&body, '{');
  if (command->kind == COMMAND_REVIEW) write_review(&command->as.review);
  else if (command->kind == COMMAND_RETRY) write_retry(&command->as.retry);
  else write_cancel(&command->as.cancel);
  buffer_append_char(&body, '}');
  must(!body.failed);
  buffer_reset(&texts);
  must(reader(buffer_bytes(&body), &again, &fault) == STATUS_OK);
  must(again.kind == command->kind && id_equal(&again.operation.digest, &command->operation.digest));
}

/* ---- Administration ---- */

static enum status read_queue_create(struct bytes text, struct command *command, struct fault *fault) {
  return wire_queue_create_read(&json, text, command, fault);
}
static enum status read_queue_change(struct bytes text, struct command *command, struct fault *fault) {
  return wire_queue_change_read(&json, text, &target, command, fault);
}
static enum status read_queue_pause(struct bytes text, struct command *command, struct fault *fault) {
  return wire_queue_pause_read(&json, text, &target, COMMAND_QUEUE_PAUSE, command, fault);
}
static enum status read_application_create(struct bytes text, struct command *command, struct fault *fault) {
  return wire_application_create_read(&json, text, command, fault);
}
static enum status read_application_change(struct bytes text, struct command *command, struct fault *fault) {
  return wire_application_change_read(&json, text, &target, command, fault);
}
static enum status read_credential_create(struct bytes text, struct command *command, struct fault *fault) {
  return wire_credential_create_read(&json, text, &texts, command, fault);
}
static enum status read_credential_end(struct bytes text, struct command *command, struct fault *fault) {
  return wire_credential_end_read(&json, text, &target, COMMAND_CREDENTIAL_REVOKE, command, fault);
}
static enum status read_namespace(struct bytes text, struct command *command, struct fault *fault) {
  return wire_namespace_create_read(&json, text, command, fault);
}

static void check_queue(const struct queue_command *queue, bool change) {
  must(queue->max_unfinished <= limit_value_max && queue->max_running <= limit_value_max);
  must(queue->key_concurrency <= limit_value_max && queue->lease_ms <= lease_ms_max);
  must((queue->rate_tasks == 0) == (queue->rate_per_ms == 0) && (queue->rate_tasks == 0) == (queue->rate_burst == 0));
  if (change) must(queue->given != 0 && queue->expected_revision != 0);
  else must(queue->name.size >= 1 && queue->key_concurrency >= 1 && queue->lease_ms >= lease_ms_min);
}

static void check_admin(const struct command *command) {
  const struct credential_command *credential = &command->as.credential;
  switch (command->kind) {
    case COMMAND_QUEUE_CREATE:
    case COMMAND_QUEUE_CHANGE:
      check_queue(&command->as.queue, command->kind == COMMAND_QUEUE_CHANGE);
      break;
    case COMMAND_APPLICATION_CHANGE:
      must(command->as.application.given != 0 && command->as.application.expected_revision != 0);
      break;
    case COMMAND_CREDENTIAL_CREATE:
      must(credential->permissions != 0 && (credential->permissions >> PERMISSION_ROOT) == 0);
      must(credential->queue_ids.size % id_bytes == 0 && credential->queue_ids.size <= queue_ids_max * id_bytes);
      break;
    default:
      break;
  }
}

static body_reader *const readers[] = {read_review,
                                       read_retry,
                                       read_cancel,
                                       read_queue_create,
                                       read_queue_change,
                                       read_queue_pause,
                                       read_application_create,
                                       read_application_change,
                                       read_credential_create,
                                       read_credential_end,
                                       read_namespace};
enum { reader_count = sizeof readers / sizeof readers[0] };

static void check_fault(enum status status, const struct fault *fault) {
  must(status == STATUS_INVALID_ARGUMENT && fault->status == status);
  must(fault->message[0] != 0 && bytes_is_utf8(bytes_text(fault->message)) && bytes_is_utf8(bytes_text(fault->field)));
}

static void run_body(body_reader *reader, struct bytes text) {
  struct command command = {.kind = COMMAND_GET_TASK};
  struct fault fault = {.status = STATUS_OK};
  if (text.size > http_body_bytes_max) return;
  enum status status = reader(text, &command, &fault);
  if (status != STATUS_OK) {
    must(command.kind == COMMAND_GET_TASK);
    check_fault(status, &fault);
  } else if (command.kind == COMMAND_REVIEW || command.kind == COMMAND_RETRY || command.kind == COMMAND_CANCEL) {
    struct json kept = json; /* the command's texts live in it and in texts: they are not used again while it is checked */
    struct buffer kept_texts = texts;
    json_init(&json);
    buffer_init(&texts, http_batch_body_bytes_max);
    check_recovery(&command, reader);
    json_clear(&json);
    buffer_clear(&texts);
    json = kept;
    texts = kept_texts;
  } else {
    check_admin(&command);
  }
}

/* ---- Batches and lists ---- */

static void run_batch(struct bytes text) {
  static const struct secret secret;
  static const struct principal who = {.namespace_id = {{3}}};
  struct batch_item *items = NULL;
  struct fault fault = {.status = STATUS_OK};
  uint32_t count = 0;
  if (text.size > http_batch_body_bytes_max) return;
  enum status status = wire_batch_read(&json, text, &secret, &who, &texts, &items, &count, &fault);
  if (status != STATUS_OK) {
    must(items == NULL);
    check_fault(status, &fault);
    return;
  }
  must(count >= 1 && count <= batch_items_max);
  for (uint32_t i = 0; i < count; i++) {
    if (items[i].answer.status != STATUS_OK) check_fault(items[i].answer.status, &items[i].answer.fault);
    else must(items[i].command.kind == COMMAND_SUBMIT && !id_is_zero(&items[i].command.operation.identity));
  }
  free(items);
}

/* name=value&name=value … */
static void run_query(struct bytes text) {
  enum { parameters_max = 16 };
  struct wire_parameter parameters[parameters_max];
  struct list_tasks_command command = {.limit = 0};
  struct fault fault = {.status = STATUS_OK};
  unsigned count = 0;
  for (size_t start = 0; start < text.size && count < parameters_max; count++) {
    size_t equals = start, end = start;
    while (end < text.size && text.data[end] != '&') end++;
    while (equals < end && text.data[equals] != '=') equals++;
    size_t value = equals < end ? equals + 1 : end;
    parameters[count].name = bytes_of(text.data + start, equals - start);
    parameters[count].value = bytes_of(text.data + value, end - value);
    start = end + 1;
  }
  enum status status = wire_list_tasks_read(parameters, count, &command, &fault);
  if (status != STATUS_OK) {
    must(command.limit == 0);
    check_fault(status, &fault);
    return;
  }
  must(command.limit >= 1 && command.limit <= page_rows_max);
  must(command.business_key.data == NULL || bytes_count_chars(command.business_key) - 1 < key_chars_max);
}

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  json_init(&json);
  buffer_init(&texts, http_batch_body_bytes_max);
  buffer_init(&body, http_batch_body_bytes_max);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  struct bytes text = bytes_of(data + 1, size - 1);
  unsigned which = data[0] % (reader_count + 2);
  buffer_reset(&texts);
  if (which < reader_count) run_body(readers[which], text);
  else if (which == reader_count) run_batch(text);
  else run_query(text);
  return 0;
}
