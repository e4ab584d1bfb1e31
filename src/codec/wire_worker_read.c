/* Owns the reading of worker messages: the type decides the table of fields, and what holds between fields is judged here. */
#include "codec/wire_worker.h"

#include <stddef.h>
#include <string.h>

#include "base/guard.h"
#include "codec/wire_http.h"

/* What reading a message needs and makes. */
struct message {
  struct json *json;
  uint32_t token;
  const struct secret *secret;
  const struct principal *who;
  struct buffer *texts;
  struct fault *fault;
  struct command *command; /* scratch: copied to the caller's at success */
};

enum status worker_frame_read(struct json *json, struct bytes frame, struct worker_frame *ret_frame, struct fault *fault) {
  enum status status = json_parse(json, frame, fault);
  if (status != STATUS_OK) return status;
  const struct json_token *document = &json->tokens[0];
  if (document->type == JSON_OBJECT) {
    *ret_frame = (struct worker_frame){.is_array = false, .count = 1, .first = 0};
    return STATUS_OK;
  }
  if (document->type != JSON_ARRAY) return json_refuse(json, 0, fault, "a frame is a message or an array of messages");
  if (document->count == 0 || document->count > worker_frame_messages_max)
    return json_refuse(json, 0, fault, "a frame holds 1 to %d messages", worker_frame_messages_max);
  for (uint32_t token = 1; token < document->next; token = json->tokens[token].next)
    if (json->tokens[token].type != JSON_OBJECT) return json_refuse(json, token, fault, "a message is an object");
  *ret_frame = (struct worker_frame){.is_array = true, .count = document->count, .first = 1};
  return STATUS_OK;
}

/* ---- hello ---- */

struct hello_fields {
  struct bytes type;
  struct hello_command hello;
  uint32_t queue_ids, handlers; /* tokens */
};

#define HELLO(member) offsetof(struct hello_fields, hello.member)
static const struct json_field hello_fields[] = {
    {"type", JSON_KIND_STRING, .required = true, .max = word_chars_max, .offset = offsetof(struct hello_fields, type)},
    {"message_id", JSON_KIND_ID, .required = true, .offset = HELLO(message_id)},
    {"instance_id", JSON_KIND_ID, .required = true, .offset = HELLO(instance_id)},
    {"name", JSON_KIND_TEXT, .min = 1, .max = name_chars_max, .offset = HELLO(name)},
    {"queue_ids", JSON_KIND_ARRAY, .required = true, .min = 1, .max = queue_ids_max,
     .offset = offsetof(struct hello_fields, queue_ids)},
    {"handlers", JSON_KIND_ARRAY, .required = true, .min = 1, .max = handlers_max,
     .offset = offsetof(struct hello_fields, handlers)},
    {"capacity", JSON_KIND_U32, .required = true, .min = 1, .max = worker_capacity_max, .offset = HELLO(capacity)},
    {"lease_ms", JSON_KIND_U32, .min = lease_ms_min, .max = lease_ms_max, .offset = HELLO(lease_ms)},
};

static const struct json_field handler_fields[] = {
    {"handler", JSON_KIND_WORD, .required = true, .min = 1, .max = word_chars_max,
     .offset = offsetof(struct handler_offer, handler)},
    {"handler_version", JSON_KIND_WORD, .required = true, .min = 1, .max = word_chars_max,
     .offset = offsetof(struct handler_offer, handler_version)},
};

enum { array_alignment = 16 };

/* The lists while they are judged. Only what was found good goes to texts: then each id and offer was written in more bytes
 * than its structure takes, and the room that is kept for the text is enough. */
struct hello_lists {
  struct id ids[queue_ids_max];
  struct handler_offer offers[handlers_max];
};

/* Room for size bytes in texts, aligned; kept as in wire_document_read. NULL when texts is full. */
static uint8_t *texts_allocate(const struct message *message, size_t size) {
  struct buffer *texts = message->texts;
  size_t padding = -texts->size & (array_alignment - 1);
  if (texts->size == 0) (void)buffer_reserve(texts, message->json->text.size - message->json->tokens[message->token].start);
  must(texts->failed || padding + size <= texts->capacity - texts->size);
  uint8_t *room = buffer_reserve(texts, padding + size);
  if (room == NULL) return NULL;
  memset(room, 0, padding);
  buffer_commit(texts, padding + size);
  return room + padding;
}

/* Copies the lists to texts. UNAVAILABLE. */
static enum status keep_lists(const struct message *message, const struct hello_lists *lists, struct hello_command *hello) {
  size_t ids_size = hello->queue_count * sizeof lists->ids[0]; /* a multiple of the alignment */
  size_t offers_size = hello->handler_count * sizeof lists->offers[0];
  uint8_t *room = texts_allocate(message, ids_size + offers_size);
  if (room == NULL) return fault_set(message->fault, STATUS_UNAVAILABLE, NULL, "no memory for the message");
  memcpy(room, lists->ids, ids_size);
  memcpy(room + ids_size, lists->offers, offers_size);
  hello->queue_ids = (const struct id *)(const void *)room;
  hello->handlers = (const struct handler_offer *)(const void *)(room + ids_size);
  return STATUS_OK;
}

/* Bounded by queue_ids_max: comparing each with each is cheap enough for the one hello of a connection. */
static enum status read_queue_ids(const struct message *message, uint32_t array, struct id *ids, uint32_t count) {
  struct json *json = message->json;
  uint32_t token = array + 1;
  for (uint32_t i = 0; i < count; i++, token = json->tokens[token].next) {
    if (json->tokens[token].type != JSON_STRING || !id_parse(json_string(json, token), &ids[i]))
      return json_refuse(json, token, message->fault, "an id is 32 lower-case hexadecimal digits");
    for (uint32_t k = 0; k < i; k++)
      if (id_equal(&ids[k], &ids[i])) return json_refuse(json, token, message->fault, "the queue is named twice");
  }
  return STATUS_OK;
}

static enum status read_handlers(const struct message *message, uint32_t array, struct handler_offer *offers, uint32_t count) {
  struct json *json = message->json;
  uint32_t token = array + 1;
  for (uint32_t i = 0; i < count; i++, token = json->tokens[token].next) {
    uint64_t present = 0;
    enum status status = json_read_object(json, token, handler_fields, 2, &offers[i], &present, message->fault);
    if (status != STATUS_OK) return status;
    for (uint32_t k = 0; k < i; k++)
      if (bytes_equal(offers[k].handler, offers[i].handler) &&
          bytes_equal(offers[k].handler_version, offers[i].handler_version))
        return json_refuse(json, token, message->fault, "the handler is offered twice");
  }
  return STATUS_OK;
}

static enum status read_hello(const struct message *message) {
  struct json *json = message->json;
  struct hello_fields read = {.queue_ids = 0};
  uint64_t present = 0;
  enum status status = json_read_object(json, message->token, hello_fields, sizeof hello_fields / sizeof hello_fields[0], &read,
                                        &present, message->fault);
  if (status != STATUS_OK) return status;
  struct hello_command *hello = &read.hello;
  hello->queue_count = json->tokens[read.queue_ids].count;
  hello->handler_count = json->tokens[read.handlers].count;
  struct hello_lists lists;
  status = read_queue_ids(message, read.queue_ids, lists.ids, hello->queue_count);
  if (status == STATUS_OK) status = read_handlers(message, read.handlers, lists.offers, hello->handler_count);
  if (status == STATUS_OK) status = keep_lists(message, &lists, hello);
  if (status != STATUS_OK) return status;
  message->command->kind = COMMAND_HELLO;
  message->command->as.hello = *hello;
  return STATUS_OK;
}

/* ---- capacity, drain ---- */

struct simple_fields {
  struct bytes type;
  struct capacity_command capacity;
};

/* drain is the same without the last field. */
static const struct json_field simple_fields[] = {
    {"type", JSON_KIND_STRING, .required = true, .max = word_chars_max, .offset = offsetof(struct simple_fields, type)},
    {"message_id", JSON_KIND_ID, .required = true, .offset = offsetof(struct simple_fields, capacity.message_id)},
    {"capacity", JSON_KIND_U32, .required = true, .min = 1, .max = worker_capacity_max,
     .offset = offsetof(struct simple_fields, capacity.capacity)},
};

static enum status read_capacity(const struct message *message) {
  struct simple_fields read = {.capacity.capacity = 0};
  uint64_t present = 0;
  enum status status = json_read_object(message->json, message->token, simple_fields, 3, &read, &present, message->fault);
  if (status != STATUS_OK) return status;
  message->command->kind = COMMAND_CAPACITY;
  message->command->as.capacity = read.capacity;
  return STATUS_OK;
}

static enum status read_drain(const struct message *message) {
  struct simple_fields read = {.capacity.capacity = 0};
  uint64_t present = 0;
  enum status status = json_read_object(message->json, message->token, simple_fields, 2, &read, &present, message->fault);
  if (status != STATUS_OK) return status;
  message->command->kind = COMMAND_DRAIN;
  message->command->as.message_id = read.capacity.message_id;
  return STATUS_OK;
}

/* ---- start, renew, release, finish ---- */

struct attempt_fields {
  struct bytes type, outcome;
  struct attempt_ref ref;
  bool retryable;
  uint32_t result, error; /* tokens */
};

/* The first five belong to all four; the rest to finish alone. */
enum { ref_field_count = 5 };
static const struct json_field attempt_fields[] = {
    {"type", JSON_KIND_STRING, .required = true, .max = word_chars_max, .offset = offsetof(struct attempt_fields, type)},
    {"message_id", JSON_KIND_ID, .required = true, .offset = offsetof(struct attempt_fields, ref.message_id)},
    {"task_id", JSON_KIND_ID, .required = true, .offset = offsetof(struct attempt_fields, ref.task_id)},
    {"attempt_id", JSON_KIND_ID, .required = true, .offset = offsetof(struct attempt_fields, ref.attempt_id)},
    {"epoch", JSON_KIND_DECIMAL, .required = true, .min = 1, .max = UINT64_MAX,
     .offset = offsetof(struct attempt_fields, ref.epoch)},
    {"outcome", JSON_KIND_STRING, .required = true, .max = word_chars_max, .offset = offsetof(struct attempt_fields, outcome)},
    {"retryable", JSON_KIND_BOOL, .offset = offsetof(struct attempt_fields, retryable)},
    {"result", JSON_KIND_VALUE, .min = 1, .max = document_bytes_max, .offset = offsetof(struct attempt_fields, result)},
    {"error", JSON_KIND_OBJECT, .offset = offsetof(struct attempt_fields, error)},
};

struct error_fields {
  struct bytes code, message;
  uint32_t details; /* token */
};

static const struct json_field error_fields[] = {
    {"code", JSON_KIND_WORD, .required = true, .min = 1, .max = error_code_chars_max,
     .offset = offsetof(struct error_fields, code)},
    {"message", JSON_KIND_TEXT, .max = error_message_chars_max, .offset = offsetof(struct error_fields, message)},
    {"details", JSON_KIND_VALUE, .min = 1, .max = document_bytes_max, .offset = offsetof(struct error_fields, details)},
};

static enum status read_ref(const struct message *message, unsigned field_count, struct attempt_fields *read) {
  uint64_t present = 0;
  return json_read_object(message->json, message->token, attempt_fields, field_count, read, &present, message->fault);
}

/* One worker's message ids mean nothing to another application: it is part of the key. */
static void make_identity(const struct message *message, const char *operation, const struct attempt_ref *ref) {
  uint8_t key[2 * id_bytes];
  memcpy(key, ref->message_id.bytes, id_bytes);
  memcpy(key + id_bytes, message->who->application_id.bytes, id_bytes);
  message->command->operation.identity =
      identity_make(message->secret, &message->who->namespace_id, operation, &ref->attempt_id, bytes_of(key, sizeof key));
}

static enum status read_start(const struct message *message) {
  struct attempt_fields read = {.result = 0};
  enum status status = read_ref(message, ref_field_count, &read);
  if (status != STATUS_OK) return status;
  message->command->kind = COMMAND_START;
  message->command->as.ref = read.ref;
  message->command->operation.digest = attempt_ref_digest(&read.ref);
  make_identity(message, "task.start", &read.ref);
  return STATUS_OK;
}

static enum status read_renew(const struct message *message) {
  struct attempt_fields read = {.result = 0};
  enum status status = read_ref(message, ref_field_count, &read);
  if (status != STATUS_OK) return status;
  message->command->kind = COMMAND_RENEW;
  message->command->as.ref = read.ref;
  return STATUS_OK;
}

static enum status read_release(const struct message *message) {
  struct attempt_fields read = {.result = 0};
  enum status status = read_ref(message, ref_field_count, &read);
  if (status != STATUS_OK) return status;
  message->command->kind = COMMAND_RELEASE;
  message->command->as.ref = read.ref;
  message->command->operation.digest = attempt_ref_digest(&read.ref);
  make_identity(message, "task.release", &read.ref);
  return STATUS_OK;
}

/* What may stand beside which outcome. */
static enum status judge_report(const struct message *message, const struct attempt_fields *read, enum outcome outcome) {
  bool succeeded = outcome == OUTCOME_SUCCEEDED, failed = outcome == OUTCOME_FAILED;
  if (read->retryable && !failed)
    return wire_refuse_member(message->json, message->token, "retryable", message->fault,
                              "only outcome FAILED may be retryable");
  if (read->result != 0 && !succeeded)
    return wire_refuse_member(message->json, message->token, "result", message->fault, "only outcome SUCCEEDED has a result");
  if (read->error != 0 && succeeded)
    return wire_refuse_member(message->json, message->token, "error", message->fault, "outcome SUCCEEDED has no error");
  return STATUS_OK;
}

/* The document's digest and its text; both stay as they are when token is 0. */
static enum status read_document(const struct message *message, uint32_t token, struct bytes *ret_document,
                                 struct id *ret_digest) {
  if (token == 0) return STATUS_OK;
  enum status status = wire_document_read(message->json, token, message->texts, ret_document, message->fault);
  if (status != STATUS_OK) return status;
  cleanup(buffer_clear) struct buffer scratch;
  buffer_init(&scratch, 2 * (size_t)document_bytes_max);
  *ret_digest = json_digest(message->json, token, &scratch);
  return STATUS_OK;
}

static enum status read_error(const struct message *message, uint32_t token, struct report *report, uint32_t *ret_details) {
  struct error_fields read = {.details = 0};
  uint64_t present = 0;
  if (token == 0) return STATUS_OK;
  enum status status = json_read_object(message->json, token, error_fields, 3, &read, &present, message->fault);
  if (status != STATUS_OK) return status;
  report->error_code = read.code;
  if (read.message.size != 0) report->error_message = read.message;
  *ret_details = read.details;
  return STATUS_OK;
}

static enum status read_finish(const struct message *message) {
  struct attempt_fields read = {.result = 0};
  struct report report = {.outcome = OUTCOME_NONE};
  struct id result_digest, details_digest;
  uint32_t details = 0;
  enum status status = read_ref(message, sizeof attempt_fields / sizeof attempt_fields[0], &read);
  if (status != STATUS_OK) return status;
  if (!outcome_parse(read.outcome, &report.outcome))
    return wire_refuse_member(message->json, message->token, "outcome", message->fault,
                              "outcome is SUCCEEDED, FAILED, UNKNOWN or CANCELLED");
  report.retryable = read.retryable;
  status = judge_report(message, &read, report.outcome);
  if (status == STATUS_OK) status = read_error(message, read.error, &report, &details);
  if (status == STATUS_OK) status = read_document(message, read.result, &report.result, &result_digest);
  if (status == STATUS_OK) status = read_document(message, details, &report.error_details, &details_digest);
  if (status != STATUS_OK) return status;

  const struct principal *who = message->who;
  report.identity = identity_make(message->secret, &who->namespace_id, "task.report", &read.ref.attempt_id,
                                  bytes_of(who->application_id.bytes, id_bytes));
  message->command->kind = COMMAND_FINISH;
  message->command->as.finish = (struct finish_command){.ref = read.ref, .report = report};
  message->command->operation.digest =
      finish_digest(&read.ref, &report, details != 0 ? &details_digest : NULL, read.result != 0 ? &result_digest : NULL);
  make_identity(message, "task.finish", &read.ref);
  return STATUS_OK;
}

/* ---- All messages ---- */

static const struct {
  const char *type;
  enum status (*read)(const struct message *message);
} types[] = {
    {"task.start", read_start},     {"task.renew", read_renew},         {"task.finish", read_finish},
    {"task.release", read_release}, {"worker.capacity", read_capacity}, {"worker.drain", read_drain},
    {"worker.hello", read_hello},
};

static enum status read_typed(const struct message *message) {
  struct json *json = message->json;
  uint32_t type = json_member(json, message->token, "type");
  if (type == 0 || json->tokens[type].type != JSON_STRING)
    return wire_refuse_member(json, message->token, "type", message->fault, "a message has a type, a string");
  struct bytes text = json_string(json, type);
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (bytes_equal_text(text, types[i].type)) return types[i].read(message);
  return wire_refuse_member(json, message->token, "type", message->fault, "there is no such message");
}

/* Makes the fault's pointer one within the message: a worker knows its message, not where it stood in a frame. */
static void make_pointer_relative(const struct message *message) {
  struct fault *fault = message->fault;
  if (fault == NULL || message->token == 0) return;
  char prefix[sizeof fault->field];
  json_pointer(message->json, message->token, prefix, sizeof prefix);
  size_t length = strlen(prefix), whole = strlen(fault->field);
  if (whole >= length && memcmp(fault->field, prefix, length) == 0)
    memmove(fault->field, fault->field + length, whole - length + 1);
}

enum status worker_message_read(struct json *json, uint32_t message, const struct secret *secret, const struct principal *who,
                                struct buffer *texts, struct command *command, struct id *ret_message_id, struct fault *fault) {
  struct command read = {.kind = (enum command_kind)0};
  struct message context = {json, message, secret, who, texts, fault, &read};
  memset(ret_message_id, 0, sizeof *ret_message_id);
  must(json->tokens[message].type == JSON_OBJECT);
  uint32_t id = json_member(json, message, "message_id");
  if (id != 0 && json->tokens[id].type == JSON_STRING) (void)id_parse(json_string(json, id), ret_message_id);
  if (json_raw(json, message).size > worker_message_bytes_max)
    return fault_set(fault, STATUS_PAYLOAD_TOO_LARGE, NULL, "a message has at most %d bytes", worker_message_bytes_max);

  enum status status = read_typed(&context);
  if (status != STATUS_OK) {
    make_pointer_relative(&context);
    return status;
  }
  command->kind = read.kind;
  command->operation = read.operation;
  command->as = read.as;
  return STATUS_OK;
}
