/* Owns the reading of administrative bodies. */
#include "codec/wire_admin.h"

#include <stddef.h>

#include "base/guard.h"
#include "codec/wire_http.h"
#include "codec/wire_recovery.h"

#define COUNT(fields) ((unsigned)(sizeof(fields) / sizeof(fields)[0]))

static enum status read_body(struct json *json, struct bytes body, const struct json_field *fields, unsigned count,
                             void *target, uint64_t *ret_present, struct fault *fault) {
  enum status status = json_parse(json, body, fault);
  return status == STATUS_OK ? json_read_object(json, 0, fields, count, target, ret_present, fault) : status;
}

/* Which member of a body each GIVEN_… stands for. */
struct given_name {
  const char *name;
  unsigned given;
};

/* The bits of the members that stand in the document, null or not. INVALID_ARGUMENT when there are none. */
static enum status read_given(struct json *json, const struct given_name *names, unsigned count, unsigned *ret_given,
                              struct fault *fault) {
  unsigned given = 0;
  for (unsigned i = 0; i < count; i++)
    if (json_member(json, 0, names[i].name) != 0) given |= names[i].given;
  if (given == 0) return fault_set(fault, STATUS_INVALID_ARGUMENT, NULL, "nothing to change: expected_revision stands alone");
  *ret_given = given;
  return STATUS_OK;
}

/* ---- Namespaces ---- */

static const struct json_field namespace_fields[] = {
    {"name", JSON_KIND_TEXT, .required = true, .min = 1, .max = name_chars_max,
     .offset = offsetof(struct namespace_command, name)},
};

enum status wire_namespace_create_read(struct json *json, struct bytes body, struct command *command, struct fault *fault) {
  struct namespace_command read = {.name = {NULL, 0}};
  enum status status = read_body(json, body, namespace_fields, COUNT(namespace_fields), &read, NULL, fault);
  if (status != STATUS_OK) return status;
  command->kind = COMMAND_NAMESPACE_CREATE;
  command->as.namespace_ = read;
  command->operation.digest = namespace_digest(&read);
  return STATUS_OK;
}

/* ---- Queues ---- */

struct queue_body {
  struct queue_command queue;
  uint32_t rate; /* token */
};

#define QUEUE(member) .offset = offsetof(struct queue_body, queue.member)
#define LIMIT .min = 1, .max = limit_value_max
static const struct json_field queue_create_fields[] = {
    {"name", JSON_KIND_TEXT, .required = true, .min = 1, .max = name_chars_max, QUEUE(name)},
    {"max_unfinished", JSON_KIND_U64, LIMIT, QUEUE(max_unfinished)},
    {"max_running", JSON_KIND_U64, LIMIT, QUEUE(max_running)},
    {"key_concurrency", JSON_KIND_U64, LIMIT, QUEUE(key_concurrency)},
    {"rate", JSON_KIND_OBJECT, .offset = offsetof(struct queue_body, rate)},
    {"lease_ms", JSON_KIND_U64, .min = lease_ms_min, .max = lease_ms_max, QUEUE(lease_ms)},
};

static const struct json_field queue_change_fields[] = {
    {"expected_revision", JSON_KIND_DECIMAL, .required = true, QUEUE(expected_revision)},
    {"name", JSON_KIND_TEXT, .min = 1, .max = name_chars_max, QUEUE(name)},
    {"max_unfinished", JSON_KIND_U64, .nullable = true, LIMIT, QUEUE(max_unfinished)},
    {"max_running", JSON_KIND_U64, .nullable = true, LIMIT, QUEUE(max_running)},
    {"key_concurrency", JSON_KIND_U64, LIMIT, QUEUE(key_concurrency)},
    {"rate", JSON_KIND_OBJECT, .nullable = true, .offset = offsetof(struct queue_body, rate)},
    {"lease_ms", JSON_KIND_U64, .min = lease_ms_min, .max = lease_ms_max, QUEUE(lease_ms)},
};

static const struct given_name queue_given[] = {
    {"name", GIVEN_NAME},
    {"max_unfinished", GIVEN_MAX_UNFINISHED},
    {"max_running", GIVEN_MAX_RUNNING},
    {"key_concurrency", GIVEN_KEY_CONCURRENCY},
    {"rate", GIVEN_RATE},
    {"lease_ms", GIVEN_LEASE_MS},
};

static const struct json_field rate_fields[] = {
    {"tasks", JSON_KIND_U64, .required = true, LIMIT, .offset = offsetof(struct queue_command, rate_tasks)},
    {"per_ms", JSON_KIND_U64, .required = true, LIMIT, .offset = offsetof(struct queue_command, rate_per_ms)},
    {"burst", JSON_KIND_U64, .required = true, LIMIT, .offset = offsetof(struct queue_command, rate_burst)},
};

static enum status read_queue(struct json *json, struct bytes body, const struct json_field *fields, unsigned count,
                              struct queue_body *read, struct fault *fault) {
  enum status status = read_body(json, body, fields, count, read, NULL, fault);
  if (status != STATUS_OK || read->rate == 0) return status;
  return json_read_object(json, read->rate, rate_fields, COUNT(rate_fields), &read->queue, NULL, fault);
}

static void set_queue_command(struct command *command, enum command_kind kind, const struct queue_command *queue) {
  command->kind = kind;
  command->as.queue = *queue;
  command->operation.digest = queue_digest(kind, queue);
}

enum status wire_queue_create_read(struct json *json, struct bytes body, struct command *command, struct fault *fault) {
  struct queue_body read = {.queue = {.key_concurrency = 1, .lease_ms = lease_ms_default}};
  enum status status = read_queue(json, body, queue_create_fields, COUNT(queue_create_fields), &read, fault);
  if (status != STATUS_OK) return status;
  set_queue_command(command, COMMAND_QUEUE_CREATE, &read.queue);
  return STATUS_OK;
}

enum status wire_queue_change_read(struct json *json, struct bytes body, const struct id *queue_id, struct command *command,
                                   struct fault *fault) {
  struct queue_body read = {.queue = {.id = *queue_id}};
  enum status status = read_queue(json, body, queue_change_fields, COUNT(queue_change_fields), &read, fault);
  if (status == STATUS_OK) status = read_given(json, queue_given, COUNT(queue_given), &read.queue.given, fault);
  if (status != STATUS_OK) return status;
  set_queue_command(command, COMMAND_QUEUE_CHANGE, &read.queue);
  return STATUS_OK;
}

static const struct json_field pause_fields[] = {
    {"reason", JSON_KIND_TEXT, .min = 1, .max = reason_chars_max, .offset = offsetof(struct queue_command, reason)},
};

enum status wire_queue_pause_read(struct json *json, struct bytes body, const struct id *queue_id, enum command_kind kind,
                                  struct command *command, struct fault *fault) {
  must(kind == COMMAND_QUEUE_PAUSE || kind == COMMAND_QUEUE_RESUME);
  struct queue_command read = {.id = *queue_id};
  enum status status = read_body(json, body, pause_fields, COUNT(pause_fields), &read, NULL, fault);
  if (status == STATUS_OK && read.reason.data != NULL) status = wire_reason_judge(json, read.reason, fault);
  if (status != STATUS_OK) return status;
  set_queue_command(command, kind, &read);
  return STATUS_OK;
}

/* ---- Applications ---- */

#define APPLICATION(member) .offset = offsetof(struct application_command, member)
static const struct json_field application_create_fields[] = {
    {"name", JSON_KIND_TEXT, .required = true, .min = 1, .max = name_chars_max, APPLICATION(name)},
    {"max_unfinished", JSON_KIND_U64, LIMIT, APPLICATION(max_unfinished)},
};

static const struct json_field application_change_fields[] = {
    {"expected_revision", JSON_KIND_DECIMAL, .required = true, APPLICATION(expected_revision)},
    {"name", JSON_KIND_TEXT, .min = 1, .max = name_chars_max, APPLICATION(name)},
    {"max_unfinished", JSON_KIND_U64, .nullable = true, LIMIT, APPLICATION(max_unfinished)},
    {"disabled", JSON_KIND_BOOL, APPLICATION(disabled)},
};

static const struct given_name application_given[] = {
    {"name", GIVEN_NAME},
    {"max_unfinished", GIVEN_MAX_UNFINISHED},
    {"disabled", GIVEN_DISABLED},
};

static void set_application_command(struct command *command, enum command_kind kind,
                                    const struct application_command *application) {
  command->kind = kind;
  command->as.application = *application;
  command->operation.digest = application_digest(kind, application);
}

enum status wire_application_create_read(struct json *json, struct bytes body, struct command *command, struct fault *fault) {
  struct application_command read = {.max_unfinished = 0};
  enum status status = read_body(json, body, application_create_fields, COUNT(application_create_fields), &read, NULL, fault);
  if (status != STATUS_OK) return status;
  set_application_command(command, COMMAND_APPLICATION_CREATE, &read);
  return STATUS_OK;
}

enum status wire_application_change_read(struct json *json, struct bytes body, const struct id *application_id,
                                         struct command *command, struct fault *fault) {
  struct application_command read = {.id = *application_id};
  enum status status = read_body(json, body, application_change_fields, COUNT(application_change_fields), &read, NULL, fault);
  if (status == STATUS_OK) status = read_given(json, application_given, COUNT(application_given), &read.given, fault);
  if (status != STATUS_OK) return status;
  set_application_command(command, COMMAND_APPLICATION_CHANGE, &read);
  return STATUS_OK;
}

/* ---- Credentials ---- */

struct credential_body {
  struct credential_command credential;
  uint32_t permissions, queue_ids; /* tokens */
};

#define CREDENTIAL(member) .offset = offsetof(struct credential_body, member)
static const struct json_field credential_fields[] = {
    {"application_id", JSON_KIND_ID, .required = true, CREDENTIAL(credential.application_id)},
    {"name", JSON_KIND_TEXT, .min = 1, .max = name_chars_max, CREDENTIAL(credential.name)},
    {"permissions", JSON_KIND_ARRAY, .required = true, .min = 1, .max = PERMISSION_COUNT, CREDENTIAL(permissions)},
    {"queue_ids", JSON_KIND_ARRAY, .min = 1, .max = queue_ids_max, CREDENTIAL(queue_ids)},
    {"expires_at", JSON_KIND_TIME, CREDENTIAL(credential.expires_at)},
};

/* Permissions of root are those of the installation: no tenant hands them on. */
static enum status read_permission(struct json *json, uint32_t token, uint64_t *permissions, struct fault *fault) {
  enum permission permission;
  if (json->tokens[token].type != JSON_STRING || !permission_parse(json_string(json, token), &permission) ||
      permission == PERMISSION_ROOT)
    return json_refuse(json, token, fault, "not a permission that can be granted");
  uint64_t bit = UINT64_C(1) << permission;
  if ((*permissions & bit) != 0) return json_refuse(json, token, fault, "the permission stands here twice");
  *permissions |= bit;
  return STATUS_OK;
}

static enum status read_permissions(struct json *json, uint32_t array, uint64_t *ret_permissions, struct fault *fault) {
  uint64_t permissions = 0;
  for (uint32_t token = array + 1; token < json->tokens[array].next; token = json->tokens[token].next) {
    enum status status = read_permission(json, token, &permissions, fault);
    if (status != STATUS_OK) return status;
  }
  *ret_permissions = permissions;
  return STATUS_OK;
}

/* The id behind the first `count` ones, which it must differ from. */
static enum status read_queue_id(struct json *json, uint32_t token, struct id *ids, uint32_t count, struct fault *fault) {
  if (json->tokens[token].type != JSON_STRING || !id_parse(json_string(json, token), &ids[count]))
    return json_refuse(json, token, fault, "an id must stand here: 32 lower-case hexadecimal digits, not all zero");
  for (uint32_t i = 0; i < count; i++)
    if (id_equal(&ids[i], &ids[count])) return json_refuse(json, token, fault, "the queue stands here twice");
  return STATUS_OK;
}

static enum status read_queue_ids(struct json *json, uint32_t array, struct buffer *texts, struct bytes *ret_ids,
                                  struct fault *fault) {
  size_t size = (size_t)json->tokens[array].count * sizeof(struct id);
  struct id *ids = (struct id *)buffer_reserve(texts, size);
  if (ids == NULL) return fault_set(fault, STATUS_UNAVAILABLE, NULL, "no memory for the request");
  uint32_t count = 0;
  for (uint32_t token = array + 1; token < json->tokens[array].next; token = json->tokens[token].next) {
    enum status status = read_queue_id(json, token, ids, count++, fault);
    if (status != STATUS_OK) return status;
  }
  must(count * sizeof *ids == size);
  buffer_commit(texts, size);
  *ret_ids = bytes_of(ids, size);
  return STATUS_OK;
}

enum status wire_credential_create_read(struct json *json, struct bytes body, struct buffer *texts, struct command *command,
                                        struct fault *fault) {
  static_assert(sizeof(struct id) == id_bytes && _Alignof(struct id) == 1, "ids stand anywhere, one behind the other");
  struct credential_body read = {.permissions = 0};
  struct credential_command *credential = &read.credential;
  enum status status = read_body(json, body, credential_fields, COUNT(credential_fields), &read, NULL, fault);
  if (status == STATUS_OK) status = read_permissions(json, read.permissions, &credential->permissions, fault);
  if (status == STATUS_OK && read.queue_ids != 0)
    status = read_queue_ids(json, read.queue_ids, texts, &credential->queue_ids, fault);
  if (status != STATUS_OK) return status;
  command->kind = COMMAND_CREDENTIAL_CREATE;
  command->as.credential = *credential;
  command->operation.digest = credential_digest(command->kind, credential);
  return STATUS_OK;
}

enum status wire_credential_end_read(struct json *json, struct bytes body, const struct id *credential_id,
                                     enum command_kind kind, struct command *command, struct fault *fault) {
  must(kind == COMMAND_CREDENTIAL_ROTATE || kind == COMMAND_CREDENTIAL_REVOKE);
  struct credential_command read = {.id = *credential_id};
  enum status status = read_body(json, body, NULL, 0, &read, NULL, fault);
  if (status != STATUS_OK) return status;
  command->kind = kind;
  command->as.credential = read;
  command->operation.digest = credential_digest(kind, &read);
  return STATUS_OK;
}
