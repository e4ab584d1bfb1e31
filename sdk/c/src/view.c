/* Owns the reading of answers' objects. */
#include "view.h"

#include <string.h>

#include "base/time_text.h"

/* The member's token, or 0 when it is absent or null. */
static uint32_t member(struct sdk_view *view, const char *name) {
  if (view->absent || view->json->tokens[view->object].type != JSON_OBJECT) return 0;
  uint32_t token = json_member(view->json, view->object, name);
  return token != 0 && view->json->tokens[token].type != JSON_NULL ? token : 0;
}

static uint32_t typed_member(struct sdk_view *view, const char *name, enum json_type type) {
  uint32_t token = member(view, name);
  if (token == 0 || view->json->tokens[token].type == type) return token;
  view->bad = true;
  return 0;
}

struct sdk_view sdk_view_object(struct sdk_view *view, const char *name) {
  struct sdk_view inner = *view;
  inner.object = typed_member(view, name, JSON_OBJECT);
  inner.absent = inner.object == 0;
  inner.bad = view->bad;
  return inner;
}

struct sdk_view sdk_view_needed(struct sdk_view *view, const char *name) {
  struct sdk_view inner = sdk_view_object(view, name);
  if (inner.absent) view->bad = inner.bad = true;
  return inner;
}

void sdk_view_join(struct sdk_view *view, const struct sdk_view *inner) { view->bad = view->bad || inner->bad; }

uint32_t sdk_view_array(struct sdk_view *view, const char *name) { return typed_member(view, name, JSON_ARRAY); }

struct bytes sdk_view_span(struct sdk_view *view, const char *name) {
  uint32_t token = typed_member(view, name, JSON_STRING);
  return token != 0 ? json_string(view->json, token) : bytes_of(NULL, 0);
}

const char *sdk_view_text(struct sdk_view *view, const char *name) {
  return sdk_arena_text(view->arena, sdk_view_span(view, name));
}

const char *sdk_view_required(struct sdk_view *view, const char *name) {
  const char *text = sdk_view_text(view, name);
  if (text != NULL) return text;
  view->bad = true;
  return "";
}

static bool digits_parse(struct bytes text, uint64_t *ret_value) {
  uint64_t value = 0;
  if (text.size == 0) return false;
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    if (__builtin_mul_overflow(value, 10U, &value) || __builtin_add_overflow(value, text.data[i] - (uint64_t)'0', &value)) {
      return false;
    }
  }
  *ret_value = value;
  return true;
}

uint64_t sdk_view_u64(struct sdk_view *view, const char *name) {
  uint32_t token = member(view, name);
  if (token == 0) return 0;
  uint64_t value = 0;
  uint8_t type = view->json->tokens[token].type;
  bool fits = (type == JSON_STRING && digits_parse(json_string(view->json, token), &value)) ||
              (type == JSON_NUMBER && digits_parse(json_raw(view->json, token), &value));
  if (!fits) view->bad = true;
  return value;
}

uint32_t sdk_view_u32(struct sdk_view *view, const char *name) {
  uint64_t value = sdk_view_u64(view, name);
  if (value <= UINT32_MAX) return (uint32_t)value;
  view->bad = true;
  return 0;
}

bool sdk_view_bool(struct sdk_view *view, const char *name) {
  uint32_t token = member(view, name);
  if (token == 0) return false;
  uint8_t type = view->json->tokens[token].type;
  if (type != JSON_TRUE && type != JSON_FALSE) view->bad = true;
  return type == JSON_TRUE;
}

int64_t sdk_view_time(struct sdk_view *view, const char *name) {
  struct bytes text = sdk_view_span(view, name);
  int64_t time_us = 0;
  if (text.data != NULL && !time_parse(text, &time_us)) view->bad = true;
  return time_us;
}

bool sdk_view_id(struct sdk_view *view, const char *name, struct id *ret_id) {
  struct bytes text = sdk_view_span(view, name);
  return text.data != NULL && id_parse(text, ret_id);
}

const char *sdk_view_raw(struct sdk_view *view, const char *name, size_t *ret_size) {
  uint32_t token = member(view, name);
  if (token == 0) {
    *ret_size = 0;
    return NULL;
  }
  struct bytes raw = json_raw(view->json, token);
  *ret_size = raw.size;
  return sdk_arena_text(view->arena, raw);
}

const char *sdk_view_whole(struct sdk_view *view, size_t *ret_size) {
  *ret_size = 0;
  if (view->absent) return "";
  struct bytes raw = json_raw(view->json, view->object);
  *ret_size = raw.size;
  return sdk_arena_text(view->arena, raw);
}

const char *const *sdk_view_texts(struct sdk_view *view, const char *name, size_t *ret_count) {
  *ret_count = 0;
  uint32_t array = sdk_view_array(view, name), token = array + 1;
  if (array == 0) return NULL;
  size_t count = view->json->tokens[array].count;
  const char **texts = sdk_arena_alloc(view->arena, (count + 1) * sizeof *texts);
  if (texts == NULL) return NULL;
  for (size_t i = 0; i < count; i++, token = view->json->tokens[token].next) {
    bool is_text = view->json->tokens[token].type == JSON_STRING;
    if (!is_text) view->bad = true;
    texts[i] = is_text ? sdk_arena_text(view->arena, json_string(view->json, token)) : "";
  }
  *ret_count = count;
  return texts;
}

const int64_t *sdk_view_times(struct sdk_view *view, const char *name, size_t *ret_count) {
  *ret_count = 0;
  uint32_t array = sdk_view_array(view, name), token = array + 1;
  if (array == 0) {
    view->bad = true;
    return NULL;
  }
  size_t count = view->json->tokens[array].count;
  int64_t *times = sdk_arena_alloc(view->arena, (count + 1) * sizeof *times);
  if (times == NULL) return NULL;
  for (size_t i = 0; i < count; i++, token = view->json->tokens[token].next) {
    bool is_text = view->json->tokens[token].type == JSON_STRING;
    if (!is_text || !time_parse(json_string(view->json, token), &times[i])) view->bad = true;
  }
  *ret_count = count;
  return times;
}

struct orbit_fault sdk_view_fault(struct sdk_view *view, const char *name) {
  struct sdk_view inner = sdk_view_object(view, name);
  struct orbit_fault fault = {.code = "", .message = "", .details = NULL, .details_size = 0};
  if (inner.absent) {
    view->bad = view->bad || inner.bad;
    return fault;
  }
  const char *code = sdk_view_text(&inner, "code"), *message = sdk_view_text(&inner, "message");
  if (code != NULL) fault.code = code;
  if (message != NULL) fault.message = message;
  fault.details = sdk_view_raw(&inner, "details", &fault.details_size);
  view->bad = view->bad || inner.bad;
  return fault;
}
