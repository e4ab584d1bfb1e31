/* Owns the functions about applications, credentials, namespaces and the audit of administration. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "codec/wire_http.h"
#include "documents.h"
#include "request.h"

void orbit_application_free(struct orbit_application *application) { sdk_result_free(application); }
void orbit_application_list_free(struct orbit_application_list *list) { sdk_result_free(list); }
void orbit_credential_free(struct orbit_credential *credential) { sdk_result_wipe(credential); }
void orbit_credential_list_free(struct orbit_credential_list *list) { sdk_result_free(list); }
void orbit_namespace_free(struct orbit_namespace *made) { sdk_result_wipe(made); }
void orbit_audit_list_free(struct orbit_audit_list *list) { sdk_result_free(list); }

static const char name_problem[] = "name must be 1–128 characters of UTF-8";
static const char limit_problem[] = "the limit must be 1–1000000000, or 0 for none";

/* ---- Applications ---- */

static void application_read(struct sdk_view *view, void *object) {
  struct orbit_application *application = object;
  size_t unused;
  application->id = sdk_view_required(view, "id");
  application->namespace_id = sdk_view_required(view, "namespace_id");
  application->name = sdk_view_required(view, "name");
  application->revision = sdk_view_u64(view, "revision");
  application->max_unfinished = sdk_view_u64(view, "max_unfinished");
  application->disabled = sdk_view_bool(view, "disabled");
  application->has_unfinished = sdk_view_raw(view, "unfinished", &unused) != NULL;
  application->unfinished = sdk_view_u64(view, "unfinished");
  application->json = sdk_view_whole(view, &application->json_size);
}

static const struct sdk_kind application_kind = {sizeof(struct orbit_application), application_read, "application", false};

static int application_call(struct orbit_client *client, const struct sdk_call *call,
                            struct orbit_application **ret_application, struct orbit_error *error) {
  void *object;
  int status = sdk_call_object(client, call, &application_kind, &object, error);
  if (status == ORBIT_OK) *ret_application = object;
  return status;
}

int orbit_create_application(struct orbit_client *client, const char *operation_key,
                             const struct orbit_application_request *given, struct orbit_application **ret_application,
                             struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  struct orbit_application_request request;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_key_judge(operation_key, error);
  if (status == ORBIT_OK) status = sdk_options_copy(&request, sizeof request, given, error);
  if (status != ORBIT_OK) return status;
  const struct sdk_rule rules[] = {
      {sdk_is_text(request.name, 1, name_chars_max), "/name", name_problem},
      {request.max_unfinished <= limit_value_max, "/max_unfinished", limit_problem},
  };
  status = sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(&body, '{');
  wire_text_member(&body, "name", bytes_text(request.name));
  if (request.max_unfinished != 0) wire_number_member(&body, "max_unfinished", request.max_unfinished);
  buffer_append_char(&body, '}');
  if (body.failed) return sdk_no_memory(error);
  const struct sdk_call call = {"POST", "/v1/applications", operation_key, &body};
  return application_call(client, &call, ret_application, error);
}

int orbit_get_application(struct orbit_client *client, const char *application_id, struct orbit_application **ret_application,
                          struct orbit_error *error) {
  char path[sdk_path_bytes];
  int status = sdk_id_judge(application_id, "application_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/applications/%s", application_id);
  const struct sdk_call call = {"GET", path, NULL, NULL};
  return application_call(client, &call, ret_application, error);
}

int orbit_list_applications(struct orbit_client *client, uint32_t limit, const char *cursor,
                            struct orbit_application_list **ret_list, struct orbit_error *error) {
  struct sdk_page page;
  int status =
      sdk_get_plain_page(client, "/v1/applications", limit, cursor, &application_kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_application_list *list = page.list;
  *list = (struct orbit_application_list){(const struct orbit_application *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

static int application_change_write(const struct orbit_application_change *given, struct buffer *out,
                                    struct orbit_error *error) {
  static const uint32_t known = ORBIT_CHANGE_NAME | ORBIT_CHANGE_MAX_UNFINISHED | ORBIT_CHANGE_DISABLED;
  struct orbit_application_change change;
  int status = sdk_options_copy(&change, sizeof change, given, error);
  if (status != ORBIT_OK) return status;
  const bool name = (change.fields & ORBIT_CHANGE_NAME) != 0, limit = (change.fields & ORBIT_CHANGE_MAX_UNFINISHED) != 0;
  const struct sdk_rule rules[] = {
      {change.expected_revision != 0, "/expected_revision", "expected_revision is required"},
      {change.fields != 0 && (change.fields & ~known) == 0, "fields", "fields must name what an application has, at least one"},
      {!name || sdk_is_text(change.name, 1, name_chars_max), "/name", name_problem},
      {!limit || change.max_unfinished <= limit_value_max, "/max_unfinished", limit_problem},
  };
  status = sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(out, '{');
  wire_decimal_member(out, "expected_revision", change.expected_revision);
  if (name) wire_text_member(out, "name", bytes_text(change.name));
  if (limit && change.max_unfinished != 0) wire_number_member(out, "max_unfinished", change.max_unfinished);
  if (limit && change.max_unfinished == 0) wire_raw_member(out, "max_unfinished", bytes_text("null"));
  if ((change.fields & ORBIT_CHANGE_DISABLED) != 0) wire_bool_member(out, "disabled", change.disabled);
  buffer_append_char(out, '}');
  return out->failed ? sdk_no_memory(error) : ORBIT_OK;
}

int orbit_change_application(struct orbit_client *client, const char *operation_key, const char *application_id,
                             const struct orbit_application_change *change, struct orbit_application **ret_application,
                             struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  char path[sdk_path_bytes];
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_target_judge(operation_key, application_id, "application_id", error);
  if (status == ORBIT_OK) status = application_change_write(change, &body, error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/applications/%s", application_id);
  const struct sdk_call call = {"PATCH", path, operation_key, &body};
  return application_call(client, &call, ret_application, error);
}

/* ---- Credentials ---- */

static void credential_read(struct sdk_view *view, void *object) {
  struct orbit_credential *credential = object;
  credential->id = sdk_view_required(view, "id");
  credential->namespace_id = sdk_view_text(view, "namespace_id");
  credential->application_id = sdk_view_text(view, "application_id");
  credential->name = sdk_view_text(view, "name");
  credential->permissions = sdk_view_texts(view, "permissions", &credential->permission_count);
  credential->queue_ids = sdk_view_texts(view, "queue_ids", &credential->queue_count);
  credential->expires_at = sdk_view_time(view, "expires_at");
  credential->revoked = sdk_view_bool(view, "revoked");
  credential->revision = sdk_view_u64(view, "revision");
  credential->json = sdk_view_whole(view, &credential->json_size);
}

/* {"credential":{…},"token"?} */
static void credential_answer_read(struct sdk_view *data, void *object) {
  struct orbit_credential *credential = object;
  struct sdk_view inner = sdk_view_needed(data, "credential");
  credential_read(&inner, credential);
  sdk_view_join(data, &inner);
  credential->token = sdk_view_text(data, "token");
}

static const struct sdk_kind credential_kind = {sizeof(struct orbit_credential), credential_answer_read, NULL, true};

static int credential_call(struct orbit_client *client, const struct sdk_call *call, struct orbit_credential **ret_credential,
                           struct orbit_error *error) {
  void *object;
  int status = sdk_call_object(client, call, &credential_kind, &object, error);
  if (status == ORBIT_OK) *ret_credential = object;
  return status;
}

static int credential_judge(const struct orbit_credential_request *request, struct orbit_error *error) {
  bool permissions = request->permissions != NULL && request->permission_count > 0;
  for (size_t i = 0; permissions && i < request->permission_count; i++) permissions = sdk_is_word(request->permissions[i]);
  bool queues = request->queue_ids == NULL ? request->queue_count == 0
                                           : request->queue_count > 0 && request->queue_count <= queue_ids_max;
  for (size_t i = 0; queues && i < request->queue_count; i++) queues = sdk_is_id(request->queue_ids[i]);
  const struct sdk_rule rules[] = {
      {sdk_is_id(request->application_id), "/application_id", "application_id must be an id: 32 lower-case hexadecimal digits"},
      {request->name == NULL || sdk_is_text(request->name, 1, name_chars_max), "/name", name_problem},
      {permissions, "/permissions", "permissions must be permissions, at least one"},
      {queues, "/queue_ids", "queue_ids must be 1–256 ids, or NULL for all queues"},
      {sdk_is_time(request->expires_at), "/expires_at", "expires_at must be in the years 2000–9998"},
  };
  return sdk_rules_judge(rules, sizeof rules / sizeof rules[0], error);
}

static void texts_member(struct buffer *out, const char *name, const char *const *texts, size_t count) {
  if (texts == NULL) return;
  wire_raw_member(out, name, bytes_text("["));
  for (size_t i = 0; i < count; i++) {
    if (i > 0) buffer_append_char(out, ',');
    json_write_string(out, bytes_text(texts[i]));
  }
  buffer_append_char(out, ']');
}

int orbit_create_credential(struct orbit_client *client, const char *operation_key,
                            const struct orbit_credential_request *given, struct orbit_credential **ret_credential,
                            struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  struct orbit_credential_request request;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_key_judge(operation_key, error);
  if (status == ORBIT_OK) status = sdk_options_copy(&request, sizeof request, given, error);
  if (status == ORBIT_OK) status = credential_judge(&request, error);
  if (status != ORBIT_OK) return status;
  buffer_append_char(&body, '{');
  wire_text_member(&body, "application_id", bytes_text(request.application_id));
  if (request.name != NULL) wire_text_member(&body, "name", bytes_text(request.name));
  texts_member(&body, "permissions", request.permissions, request.permission_count);
  texts_member(&body, "queue_ids", request.queue_ids, request.queue_count);
  wire_time_member(&body, "expires_at", request.expires_at);
  buffer_append_char(&body, '}');
  if (body.failed) return sdk_no_memory(error);
  const struct sdk_call call = {"POST", "/v1/credentials", operation_key, &body};
  return credential_call(client, &call, ret_credential, error);
}

int orbit_get_credential(struct orbit_client *client, const char *credential_id, struct orbit_credential **ret_credential,
                         struct orbit_error *error) {
  char path[sdk_path_bytes];
  int status = sdk_id_judge(credential_id, "credential_id", error);
  if (status != ORBIT_OK) return status;
  (void)snprintf(path, sizeof path, "/v1/credentials/%s", credential_id);
  const struct sdk_call call = {"GET", path, NULL, NULL};
  return credential_call(client, &call, ret_credential, error);
}

int orbit_list_credentials(struct orbit_client *client, uint32_t limit, const char *cursor,
                           struct orbit_credential_list **ret_list, struct orbit_error *error) {
  static const struct sdk_kind kind = {sizeof(struct orbit_credential), credential_read, NULL, false};
  struct sdk_page page;
  int status = sdk_get_plain_page(client, "/v1/credentials", limit, cursor, &kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_credential_list *list = page.list;
  *list = (struct orbit_credential_list){(const struct orbit_credential *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}

static int credential_end(struct orbit_client *client, const char *verb, const char *operation_key, const char *credential_id,
                          struct orbit_credential **ret_credential, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer body;
  char path[sdk_path_bytes];
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_target_judge(operation_key, credential_id, "credential_id", error);
  if (status != ORBIT_OK) return status;
  buffer_append_text(&body, "{}");
  if (body.failed) return sdk_no_memory(error);
  (void)snprintf(path, sizeof path, "/v1/credentials/%s:%s", credential_id, verb);
  const struct sdk_call call = {"POST", path, operation_key, &body};
  return credential_call(client, &call, ret_credential, error);
}

int orbit_rotate_credential(struct orbit_client *client, const char *operation_key, const char *credential_id,
                            struct orbit_credential **ret_credential, struct orbit_error *error) {
  return credential_end(client, "rotate", operation_key, credential_id, ret_credential, error);
}

int orbit_revoke_credential(struct orbit_client *client, const char *operation_key, const char *credential_id,
                            struct orbit_credential **ret_credential, struct orbit_error *error) {
  return credential_end(client, "revoke", operation_key, credential_id, ret_credential, error);
}

/* ---- Namespaces ---- */

static void namespace_read(struct sdk_view *data, void *object) {
  struct orbit_namespace *made = object;
  struct orbit_application *application = sdk_arena_alloc(data->arena, sizeof *application);
  struct orbit_credential *credential = sdk_arena_alloc(data->arena, sizeof *credential);
  if (application == NULL || credential == NULL) return;
  struct sdk_view inner = sdk_view_needed(data, "namespace");
  made->id = sdk_view_required(&inner, "id");
  made->name = sdk_view_required(&inner, "name");
  made->json = sdk_view_whole(&inner, &made->json_size);
  sdk_view_join(data, &inner);
  inner = sdk_view_needed(data, "application");
  application_read(&inner, application);
  sdk_view_join(data, &inner);
  credential_answer_read(data, credential);
  made->application = application;
  made->credential = credential;
}

int orbit_create_namespace(struct orbit_client *client, const char *operation_key, const char *name,
                           struct orbit_namespace **ret_namespace, struct orbit_error *error) {
  static const struct sdk_kind kind = {sizeof(struct orbit_namespace), namespace_read, NULL, true};
  cleanup(buffer_clear) struct buffer body;
  void *object;
  buffer_init(&body, http_body_bytes_max);
  int status = sdk_key_judge(operation_key, error);
  if (status != ORBIT_OK) return status;
  if (!sdk_is_text(name, 1, name_chars_max)) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/name", "%s", name_problem);
  buffer_append_char(&body, '{');
  wire_text_member(&body, "name", bytes_text(name));
  buffer_append_char(&body, '}');
  if (body.failed) return sdk_no_memory(error);
  const struct sdk_call call = {"POST", "/v1/namespaces", operation_key, &body};
  status = sdk_call_object(client, &call, &kind, &object, error);
  if (status == ORBIT_OK) *ret_namespace = object;
  return status;
}

/* ---- Audit ---- */

static void record_read(struct sdk_view *view, void *object) {
  struct orbit_audit_record *record = object;
  record->id = sdk_view_required(view, "id");
  record->target_id = sdk_view_required(view, "target_id");
  record->operation_id = sdk_view_required(view, "operation_id");
  record->actor_id = sdk_view_required(view, "actor_id");
  record->action = sdk_view_required(view, "action");
  record->created_at = sdk_view_time(view, "created_at");
  record->reason = sdk_view_text(view, "reason");
  record->before = sdk_view_raw(view, "before", &record->before_size);
  record->after = sdk_view_raw(view, "after", &record->after_size);
  record->json = sdk_view_whole(view, &record->json_size);
}

int orbit_list_audit(struct orbit_client *client, const char *target_id, uint32_t limit, const char *cursor,
                     struct orbit_audit_list **ret_list, struct orbit_error *error) {
  static const struct sdk_kind kind = {sizeof(struct orbit_audit_record), record_read, NULL, false};
  cleanup(buffer_clear) struct buffer path;
  struct sdk_page page;
  buffer_init(&path, http_target_bytes_max);
  int status = target_id != NULL ? sdk_id_judge(target_id, "target_id", error) : ORBIT_OK;
  if (status != ORBIT_OK) return status;
  buffer_append_text(&path, "/v1/audit");
  sdk_parameter_write(&path, "target_id", target_id);
  status = sdk_page_write(&path, limit, cursor, error);
  if (status == ORBIT_OK) status = sdk_get_page(client, (const char *)path.data, &kind, sizeof **ret_list, &page, error);
  if (status != ORBIT_OK) return status;
  struct orbit_audit_list *list = page.list;
  *list = (struct orbit_audit_list){(const struct orbit_audit_record *const *)page.items, page.count, page.next_cursor};
  *ret_list = list;
  return ORBIT_OK;
}
