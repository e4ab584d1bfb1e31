/* Owns what the public functions have in common. */
#include "request.h"

#include <string.h>

#include "base/guard.h"
#include "base/limits.h"

/* ---- Arguments ---- */

int sdk_id_judge(const char *id, const char *name, struct orbit_error *error) {
  if (sdk_is_id(id)) return ORBIT_OK;
  return sdk_fail(error, ORBIT_INVALID_ARGUMENT, name, "%s must be an id: 32 lower-case hexadecimal digits", name);
}

int sdk_key_judge(const char *operation_key, struct orbit_error *error) {
  if (sdk_is_visible_ascii(operation_key, idempotency_key_chars_max)) return ORBIT_OK;
  return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "operation_key", "the operation key must be 1–128 visible ASCII characters");
}

int sdk_target_judge(const char *operation_key, const char *id, const char *name, struct orbit_error *error) {
  int status = sdk_key_judge(operation_key, error);
  return status == ORBIT_OK ? sdk_id_judge(id, name, error) : status;
}

int sdk_rules_judge(const struct sdk_rule *rules, size_t count, struct orbit_error *error) {
  for (size_t i = 0; i < count; i++) {
    if (!rules[i].good) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, rules[i].field, "%s", rules[i].problem);
  }
  return ORBIT_OK;
}

/* ---- Paths ---- */

void sdk_parameter_write(struct buffer *path, const char *name, const char *value) {
  if (value == NULL) return;
  bool first = path->size > 0 && memchr(path->data, '?', path->size) == NULL;
  buffer_append_format(path, "%c%s=", first ? '?' : '&', name);
  for (const char *c = value; *c != '\0'; c++) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("-._~", *c) != NULL;
    buffer_append_format(path, plain ? "%c" : "%%%02X", (unsigned char)*c);
  }
}

int sdk_page_write(struct buffer *path, uint32_t limit, const char *cursor, struct orbit_error *error) {
  char digits[21] = "";
  if (limit > page_rows_max) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "limit", "limit must be 1–100, or 0");
  if (cursor != NULL && !sdk_is_visible_ascii(cursor, cursor_chars_max)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "cursor", "this is no cursor that Orbit gave");
  }
  digits[u64_format(limit, digits)] = '\0';
  sdk_parameter_write(path, "limit", limit != 0 ? digits : NULL);
  sdk_parameter_write(path, "cursor", cursor);
  buffer_append_char(path, '\0');
  return path->failed ? sdk_no_memory(error) : ORBIT_OK;
}

/* ---- Calls ---- */

static int object_read(struct sdk_exchange *exchange, const struct sdk_kind *kind, void *object, struct orbit_error *error) {
  struct sdk_view view = sdk_exchange_view(exchange, kind->member, sdk_result_arena(object));
  kind->read(&view, object);
  return sdk_exchange_judge(exchange, &view, error);
}

int sdk_call_object(struct orbit_client *client, const struct sdk_call *call, const struct sdk_kind *kind, void **ret_object,
                    struct orbit_error *error) {
  cleanup(sdk_exchange_end) struct sdk_exchange exchange;
  struct bytes body = call->body != NULL ? buffer_bytes(call->body) : bytes_of(NULL, 0);
  int status = sdk_exchange(client, call->method, call->path, call->key, body, &exchange, error);
  if (status != ORBIT_OK) return status;
  void *object = sdk_result_new(kind->size);
  status = object != NULL ? object_read(&exchange, kind, object, error) : sdk_no_memory(error);
  if (kind->secret) sdk_exchange_wipe(&exchange);
  if (status == ORBIT_OK) {
    *ret_object = object;
  } else {
    sdk_result_wipe(object);
  }
  return status;
}

void sdk_items_read(struct sdk_view *data, const struct sdk_kind *kind, void ***ret_items, size_t *ret_count) {
  uint32_t array = sdk_view_array(data, "items"), token = array + 1;
  if (array == 0) data->bad = true;
  size_t count = array != 0 ? data->json->tokens[array].count : 0;
  void **items = sdk_arena_alloc(data->arena, (count + 1) * sizeof(void *));
  for (size_t i = 0; i < count && !data->arena->failed; i++) {
    struct sdk_view view = {.json = data->json, .arena = data->arena, .object = token};
    view.bad = data->json->tokens[token].type != JSON_OBJECT;
    items[i] = sdk_arena_alloc(data->arena, kind->size);
    if (items[i] != NULL) kind->read(&view, items[i]);
    sdk_view_join(data, &view);
    token = data->json->tokens[token].next;
  }
  *ret_items = items;
  *ret_count = count;
}

int sdk_get_page(struct orbit_client *client, const char *path, const struct sdk_kind *kind, size_t list_size,
                 struct sdk_page *ret_page, struct orbit_error *error) {
  cleanup(sdk_exchange_end) struct sdk_exchange exchange;
  int status = sdk_exchange(client, "GET", path, NULL, bytes_of(NULL, 0), &exchange, error);
  if (status != ORBIT_OK) return status;
  struct sdk_page page = {.list = sdk_result_new(list_size)};
  if (page.list == NULL) return sdk_no_memory(error);
  struct sdk_view data = sdk_exchange_view(&exchange, NULL, sdk_result_arena(page.list));
  sdk_items_read(&data, kind, &page.items, &page.count);
  page.next_cursor = sdk_view_text(&data, "next_cursor");
  status = sdk_exchange_judge(&exchange, &data, error);
  if (status == ORBIT_OK) {
    *ret_page = page;
  } else {
    sdk_result_free(page.list);
  }
  return status;
}

int sdk_get_plain_page(struct orbit_client *client, const char *path, uint32_t limit, const char *cursor,
                       const struct sdk_kind *kind, size_t list_size, struct sdk_page *ret_page, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer whole;
  buffer_init(&whole, http_target_bytes_max);
  buffer_append_text(&whole, path);
  int status = sdk_page_write(&whole, limit, cursor, error);
  if (status != ORBIT_OK) return status;
  return sdk_get_page(client, (const char *)whole.data, kind, list_size, ret_page, error);
}
