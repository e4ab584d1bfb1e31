/* Owns the reading of HTTP bodies: fields by table, defaults filled in, and the rules that hold between fields. */
#include "codec/wire_http.h"

#include <stdio.h>
#include <string.h>

#include "base/guard.h"

enum status wire_document_read(const struct json *json, uint32_t token, struct buffer *texts, struct bytes *ret_document,
                               struct fault *fault) {
  const struct json_token *value = &json->tokens[token];
  size_t start = texts->size, size = value->end - value->start;
  if (start == 0) (void)buffer_reserve(texts, json->text.size - value->start);
  must(texts->failed || size <= texts->capacity - start); /* else spans that others hold would move */
  json_minify(json, token, texts);
  if (texts->failed) return fault_set(fault, STATUS_UNAVAILABLE, NULL, "no memory for the request");
  *ret_document = bytes_of(texts->data + start, texts->size - start);
  return STATUS_OK;
}

enum status wire_refuse_member(struct json *json, uint32_t object, const char *name, struct fault *fault, const char *why) {
  uint32_t token = json_member(json, object, name);
  if (token != 0) return json_refuse(json, token, fault, "%s", why);
  char parent[sizeof fault->field], pointer[sizeof fault->field + 64];
  json_pointer(json, object, parent, sizeof parent);
  (void)snprintf(pointer, sizeof pointer, "%s/%s", parent, name);
  return fault_set(fault, STATUS_INVALID_ARGUMENT, pointer, "%s", why);
}

/* ---- Submission ---- */

struct submission {
  struct submit_command submit;
  struct bytes recovery_safety, idempotency_key;
  uint32_t payload, retry; /* tokens */
};

#define SUBMIT(member) offsetof(struct submission, submit.member)
#define WORD_FIELD(member) \
  { #member, JSON_KIND_WORD, .required = true, .min = 1, .max = word_chars_max, .offset = SUBMIT(member) }
/* What a submission and the template of a schedule have in common: the work, and its policy. */
/* clang-format off */
#define WORK_FIELDS                                                                                     \
    WORD_FIELD(handler),                                                                                \
    WORD_FIELD(handler_version),                                                                        \
    WORD_FIELD(payload_version),                                                                        \
    {"payload", JSON_KIND_VALUE, .required = true, .min = 1, .max = document_bytes_max,                 \
     .offset = offsetof(struct submission, payload)},                                                   \
    {"task_timeout_ms", JSON_KIND_U64, .required = true, .min = 1, .max = task_timeout_ms_max,          \
     .offset = SUBMIT(task_timeout_ms)}
#define POLICY_FIELDS                                                                                   \
    {"recovery_safety", JSON_KIND_STRING, .max = word_chars_max, .offset = offsetof(struct submission, recovery_safety)}, \
    {"retry", JSON_KIND_OBJECT, .offset = offsetof(struct submission, retry)},                          \
    {"business_key", JSON_KIND_TEXT, .min = 1, .max = key_chars_max, .offset = SUBMIT(business_key)},   \
    {"concurrency_key", JSON_KIND_TEXT, .min = 1, .max = key_chars_max, .offset = SUBMIT(concurrency_key)}, \
    {"priority", JSON_KIND_U32, .max = priority_max, .offset = SUBMIT(priority)}
/* clang-format on */

static const struct json_field submit_fields[] = {
    {"queue_id", JSON_KIND_ID, .required = true, .offset = SUBMIT(queue_id)},
    WORK_FIELDS,
    {"available_at", JSON_KIND_TIME, .offset = SUBMIT(available_at)},
    {"start_deadline_at", JSON_KIND_TIME, .offset = SUBMIT(start_deadline_at)},
    POLICY_FIELDS,
    /* Last, because only batch items have it. */
    {"idempotency_key", JSON_KIND_TEXT, .min = 1, .max = idempotency_key_chars_max,
     .offset = offsetof(struct submission, idempotency_key)},
};
enum { submit_field_count = sizeof submit_fields / sizeof submit_fields[0] };

static const struct json_field template_fields[] = {WORK_FIELDS, POLICY_FIELDS};
enum { template_field_count = sizeof template_fields / sizeof template_fields[0] };

static const struct json_field retry_fields[] = {
    {"max_attempts", JSON_KIND_U32, .min = 1, .max = attempts_max, .offset = offsetof(struct submit_command, max_attempts)},
    {"initial_delay_ms", JSON_KIND_U32, .max = delay_ms_max, .offset = offsetof(struct submit_command, initial_delay_ms)},
    {"max_delay_ms", JSON_KIND_U32, .max = delay_ms_max, .offset = offsetof(struct submit_command, max_delay_ms)},
    {"attempt_timeout_ms", JSON_KIND_U32, .min = 1, .max = task_timeout_ms_max,
     .offset = offsetof(struct submit_command, attempt_timeout_ms)},
};

static enum status read_retry(struct json *json, uint32_t retry, struct submit_command *submit, struct fault *fault) {
  uint64_t present = 0;
  enum status status =
      json_read_object(json, retry, retry_fields, sizeof retry_fields / sizeof retry_fields[0], submit, &present, fault);
  if (status != STATUS_OK) return status;
  if (submit->max_delay_ms < submit->initial_delay_ms)
    return wire_refuse_member(json, retry, "max_delay_ms", fault, "max_delay_ms must not be less than initial_delay_ms");
  if (submit->attempt_timeout_ms > submit->task_timeout_ms)
    return wire_refuse_member(json, retry, "attempt_timeout_ms", fault, "attempt_timeout_ms must not exceed task_timeout_ms");
  return STATUS_OK;
}

static bool is_visible_ascii(struct bytes text) {
  for (size_t i = 0; i < text.size; i++)
    if (text.data[i] < 0x21 || text.data[i] > 0x7E) return false;
  return true;
}

static enum status read_fields(struct json *json, uint32_t object, const struct json_field *fields, unsigned count,
                               struct submission *read, struct fault *fault) {
  uint64_t present = 0;
  enum status status = json_read_object(json, object, fields, count, read, &present, fault);
  if (status != STATUS_OK) return status;
  if (read->recovery_safety.data != NULL && !recovery_safety_parse(read->recovery_safety, &read->submit.recovery_safety))
    return wire_refuse_member(json, object, "recovery_safety", fault, "recovery_safety is RECONCILE_ONLY or IDEMPOTENT");
  if (!is_visible_ascii(read->idempotency_key))
    return wire_refuse_member(json, object, "idempotency_key", fault, "idempotency_key holds visible ASCII characters alone");
  if (read->retry != 0) status = read_retry(json, read->retry, &read->submit, fault);
  if (read->submit.attempt_timeout_ms == 0) read->submit.attempt_timeout_ms = (uint32_t)read->submit.task_timeout_ms;
  return status;
}

/* With defaults filled in and the payload taken; its digest too. */
static enum status read_submission(struct json *json, uint32_t object, const struct json_field *fields, unsigned count,
                                   struct buffer *texts, struct submission *read, struct id *ret_digest, struct fault *fault) {
  *read = (struct submission){.submit = {.recovery_safety = RECOVERY_RECONCILE_ONLY, .max_attempts = 1}};
  enum status status = read_fields(json, object, fields, count, read, fault);
  if (status == STATUS_OK) status = wire_document_read(json, read->payload, texts, &read->submit.payload, fault);
  if (status != STATUS_OK) return status;
  cleanup(buffer_clear) struct buffer scratch;
  buffer_init(&scratch, 2 * (size_t)document_bytes_max);
  struct id payload_digest = json_digest(json, read->payload, &scratch);
  *ret_digest = submit_digest(&read->submit, &payload_digest);
  return STATUS_OK;
}

enum status wire_submit_read_object(struct json *json, uint32_t object, struct buffer *texts, struct command *command,
                                    struct bytes *ret_key, struct fault *fault) {
  struct submission read;
  struct id digest;
  unsigned count = submit_field_count - (ret_key == NULL);
  enum status status = read_submission(json, object, submit_fields, count, texts, &read, &digest, fault);
  if (status != STATUS_OK) return status;
  command->kind = COMMAND_SUBMIT;
  command->as.submit = read.submit;
  command->operation.digest = digest;
  if (ret_key != NULL) *ret_key = read.idempotency_key;
  return STATUS_OK;
}

enum status wire_template_read_object(struct json *json, uint32_t object, struct buffer *texts,
                                      struct submit_command *ret_template, struct id *ret_digest, struct fault *fault) {
  struct submission read;
  enum status status = read_submission(json, object, template_fields, template_field_count, texts, &read, ret_digest, fault);
  if (status == STATUS_OK) *ret_template = read.submit;
  return status;
}

enum status wire_submit_read(struct json *json, struct bytes body, struct buffer *texts, struct command *command,
                             struct fault *fault) {
  enum status status = json_parse(json, body, fault);
  return status == STATUS_OK ? wire_submit_read_object(json, 0, texts, command, NULL, fault) : status;
}
