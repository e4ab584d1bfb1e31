/* Owns the reading of objects by a table of fields, and the naming of the place that is at fault. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "codec/json_internal.h"

/* ---- JSON Pointer ---- */

static const char ellipsis[] = "\xE2\x80\xA6"; /* … */

struct pointer {
  char *out;
  size_t size, length;
  size_t cut_at; /* a length that leaves room for the ellipsis, between two characters */
  bool cut;
};

static void put(struct pointer *pointer, const void *piece, size_t size) {
  if (pointer->cut) return;
  if (pointer->length + size >= pointer->size) {
    memcpy(pointer->out + pointer->cut_at, ellipsis, sizeof ellipsis);
    pointer->cut = true;
    return;
  }
  memcpy(pointer->out + pointer->length, piece, size);
  pointer->length += size;
  pointer->out[pointer->length] = 0;
  if (pointer->length + sizeof ellipsis <= pointer->size) pointer->cut_at = pointer->length;
}

static void put_key(struct pointer *pointer, struct bytes key) {
  put(pointer, "/", 1);
  for (size_t at = 0; at < key.size && !pointer->cut;) {
    size_t length = bytes_utf8_sequence(key.data + at, key.size - at);
    must(length > 0);
    if (key.data[at] == '~') put(pointer, "~0", 2);
    else if (key.data[at] == '/') put(pointer, "~1", 2);
    else put(pointer, key.data + at, length);
    at += length;
  }
}

static void put_index(struct pointer *pointer, uint32_t index) {
  char digits[20];
  put(pointer, "/", 1);
  put(pointer, digits, u64_format(index, digits));
}

/* True when wanted is the value at `at` or inside it. While a text is parsed, open containers have no next yet, and wanted may
 * be the token that would have come next. */
static bool holds(const struct json *json, uint32_t at, uint32_t wanted) {
  if (wanted <= at) return wanted == at;
  return json->tokens[at].next == 0 || wanted < json->tokens[at].next;
}

/* Goes from a container to its child that holds wanted. */
static uint32_t step(struct json *json, uint32_t container, uint32_t wanted, struct pointer *pointer) {
  uint32_t at = container + 1;
  if (json->tokens[container].type == JSON_ARRAY) {
    uint32_t index = 0;
    for (; !holds(json, at, wanted); index++) at = json->tokens[at].next;
    put_index(pointer, index);
    return at;
  }
  must(json->tokens[container].type == JSON_OBJECT);
  while (at != wanted && !holds(json, at + 1, wanted)) at = json->tokens[at + 1].next;
  put_key(pointer, json_string(json, at));
  return at == wanted ? at : at + 1;
}

static struct pointer find_pointer(struct json *json, uint32_t token, char *out, size_t size) {
  struct pointer pointer = {.out = out, .size = size};
  must(size > sizeof ellipsis && token <= json->count);
  out[0] = 0;
  for (uint32_t at = 0; at != token && !pointer.cut;) at = step(json, at, token, &pointer);
  return pointer;
}

void json_pointer(struct json *json, uint32_t token, char *out, size_t size) { (void)find_pointer(json, token, out, size); }

/* Takes a character away that was cut in its middle at the end of a full message. */
static void trim_partial_character(char *text, size_t size) {
  size_t at = size;
  while (at > 0 && size - at < utf8_bytes_per_char_max && ((uint8_t)text[at - 1] & 0xC0) == 0x80) at--;
  if (at > 0 && (uint8_t)text[at - 1] >= 0xC0 && bytes_utf8_sequence((const uint8_t *)text + at - 1, size - at + 1) == 0)
    text[at - 1] = 0;
}

enum status json_refuse(struct json *json, uint32_t token, struct fault *fault, const char *format, ...) {
  if (fault == NULL) return STATUS_INVALID_ARGUMENT;
  char field[sizeof fault->field], message[sizeof fault->message];
  va_list arguments;
  json_pointer(json, token, field, sizeof field);
  va_start(arguments, format);
  (void)vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  trim_partial_character(message, strlen(message));
  return fault_set(fault, STATUS_INVALID_ARGUMENT, field, "%s", message);
}

/* ---- One function a kind ---- */

/* A value on its way into the target structure. */
struct reading {
  struct json *json;
  struct fault *fault;
  const struct json_field *field;
  uint32_t token;
  void *member;
};

static uint64_t upper(const struct json_field *field, uint64_t kind_max) {
  return field->max == 0 || field->max > kind_max ? kind_max : field->max;
}

static bool in_range(const struct json_field *field, uint64_t value) {
  return value >= field->min && value <= upper(field, UINT64_MAX);
}

static uint8_t type_of(const struct reading *reading) { return reading->json->tokens[reading->token].type; }

/* False when the value is no string. */
static bool take_text(struct reading *reading, struct bytes *ret_text) {
  if (type_of(reading) != JSON_STRING) return false;
  *ret_text = json_string(reading->json, reading->token);
  return true;
}

static enum status refuse_value(struct reading *reading, const char *what) {
  return json_refuse(reading->json, reading->token, reading->fault, "%s must be %s", reading->field->name, what);
}

/* "handler must be a string of 1 to 128 characters" */
static enum status refuse_size(struct reading *reading, const char *what, const char *unit) {
  const struct json_field *field = reading->field;
  if (field->max == 0)
    return json_refuse(reading->json, reading->token, reading->fault, "%s must be %s at least %" PRIu64 " %s", field->name,
                       what, field->min, unit);
  return json_refuse(reading->json, reading->token, reading->fault, "%s must be %s %" PRIu64 " to %" PRIu64 " %s", field->name,
                     what, field->min, field->max, unit);
}

/* "priority must be an integer from 0 to 9, without sign, point or exponent" */
static enum status refuse_number(struct reading *reading, const char *what, uint64_t min, uint64_t kind_max, const char *form) {
  return json_refuse(reading->json, reading->token, reading->fault, "%s must be %s from %" PRIu64 " to %" PRIu64 ", %s",
                     reading->field->name, what, min, upper(reading->field, kind_max), form);
}

static enum status read_id(struct reading *reading) {
  struct bytes text;
  if (!take_text(reading, &text) || !id_parse(text, reading->member))
    return refuse_value(reading, "an id: 32 lower-case hexadecimal digits, not all zero");
  return STATUS_OK;
}

static enum status read_text(struct reading *reading) {
  struct bytes text;
  if (!take_text(reading, &text) || !in_range(reading->field, bytes_count_chars(text)))
    return refuse_size(reading, "a string of", "characters");
  memcpy(reading->member, &text, sizeof text);
  return STATUS_OK;
}

static bool is_word(struct bytes text) {
  for (size_t i = 0; i < text.size; i++) {
    uint8_t c = text.data[i], letter = c | 0x20;
    bool plain = (letter >= 'a' && letter <= 'z') || (c >= '-' && c <= ':') || c == '_'; /* - . / 0 … 9 : */
    if (!plain) return false;
  }
  return true;
}

static enum status read_word(struct reading *reading) {
  struct bytes text;
  if (!take_text(reading, &text) || !in_range(reading->field, text.size) || !is_word(text))
    return refuse_size(reading, "a string of", "characters of A-Z a-z 0-9 . _ : / -");
  memcpy(reading->member, &text, sizeof text);
  return STATUS_OK;
}

static enum status read_time(struct reading *reading) {
  struct bytes text;
  if (!take_text(reading, &text) || !time_parse(text, reading->member))
    return refuse_value(reading,
                        "a time like 2026-09-17T00:00:00.25Z: RFC 3339 with Z, years 2000 to 9998, "
                        "at most six fractional digits");
  return STATUS_OK;
}

/* Digits alone, at least one; false also when the number does not fit 64 bits. */
static bool parse_digits(struct bytes text, uint64_t *ret_value) {
  uint64_t value = 0;
  if (text.size == 0) return false;
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    if (__builtin_mul_overflow(value, 10U, &value) || __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value))
      return false;
  }
  *ret_value = value;
  return true;
}

static bool take_integer(struct reading *reading, uint64_t kind_max, uint64_t *ret_value) {
  return type_of(reading) == JSON_NUMBER && parse_digits(json_raw(reading->json, reading->token), ret_value) &&
         in_range(reading->field, *ret_value) && *ret_value <= kind_max;
}

static const char integer_form[] = "without sign, point or exponent";

static enum status read_u64(struct reading *reading) {
  uint64_t value;
  if (!take_integer(reading, UINT64_MAX, &value))
    return refuse_number(reading, "an integer", reading->field->min, UINT64_MAX, integer_form);
  memcpy(reading->member, &value, sizeof value);
  return STATUS_OK;
}

static enum status read_u32(struct reading *reading) {
  uint64_t value;
  if (!take_integer(reading, UINT32_MAX, &value))
    return refuse_number(reading, "an integer", reading->field->min, UINT32_MAX, integer_form);
  uint32_t narrow = (uint32_t)value;
  memcpy(reading->member, &narrow, sizeof narrow);
  return STATUS_OK;
}

static enum status read_decimal(struct reading *reading) {
  struct bytes text;
  uint64_t value;
  if (!take_text(reading, &text) || !parse_digits(text, &value) || text.data[0] == '0' || !in_range(reading->field, value))
    return refuse_number(reading, "a string with a decimal number", reading->field->min > 1 ? reading->field->min : 1,
                         UINT64_MAX, "without sign and leading zero");
  memcpy(reading->member, &value, sizeof value);
  return STATUS_OK;
}

static enum status read_bool(struct reading *reading) {
  bool value = type_of(reading) == JSON_TRUE;
  if (!value && type_of(reading) != JSON_FALSE) return refuse_value(reading, "true or false");
  memcpy(reading->member, &value, sizeof value);
  return STATUS_OK;
}

static enum status read_value(struct reading *reading) {
  size_t size = json_raw(reading->json, reading->token).size;
  size_t space = size < reading->field->min || in_range(reading->field, size) ? 0 : json_space(reading->json, reading->token);
  if (reading->field->min > 1) space = json_space(reading->json, reading->token);
  if (!in_range(reading->field, size - space)) return refuse_size(reading, "a value of", "bytes, white space not counted");
  memcpy(reading->member, &reading->token, sizeof reading->token);
  return STATUS_OK;
}

static enum status read_object(struct reading *reading) {
  if (type_of(reading) != JSON_OBJECT) return refuse_value(reading, "an object");
  memcpy(reading->member, &reading->token, sizeof reading->token);
  return STATUS_OK;
}

static enum status read_array(struct reading *reading) {
  if (type_of(reading) != JSON_ARRAY || !in_range(reading->field, reading->json->tokens[reading->token].count))
    return refuse_size(reading, "an array of", "items");
  memcpy(reading->member, &reading->token, sizeof reading->token);
  return STATUS_OK;
}

static enum status read_string(struct reading *reading) {
  struct bytes text;
  if (!take_text(reading, &text) || !in_range(reading->field, text.size)) return refuse_size(reading, "a string of", "bytes");
  memcpy(reading->member, &text, sizeof text);
  return STATUS_OK;
}

static enum status (*const readers[])(struct reading *) = {
    [JSON_KIND_ID] = read_id,           [JSON_KIND_TEXT] = read_text,   [JSON_KIND_WORD] = read_word,
    [JSON_KIND_TIME] = read_time,       [JSON_KIND_U64] = read_u64,     [JSON_KIND_U32] = read_u32,
    [JSON_KIND_DECIMAL] = read_decimal, [JSON_KIND_BOOL] = read_bool,   [JSON_KIND_VALUE] = read_value,
    [JSON_KIND_OBJECT] = read_object,   [JSON_KIND_ARRAY] = read_array, [JSON_KIND_STRING] = read_string,
};

/* ---- The table ---- */

/* Keys hold no NUL, so strncmp stops at the end of the shorter one. */
static unsigned find_field(const struct json_field *fields, unsigned count, struct bytes key) {
  for (unsigned i = 0; i < count; i++) {
    const char *name = fields[i].name;
    if (key.size > 0 && name[0] == (char)key.data[0] && strncmp(name, (const char *)key.data, key.size) == 0 &&
        name[key.size] == 0)
      return i;
  }
  return count;
}

static enum status refuse_unknown(struct json *json, uint32_t key, const struct json_field *fields, unsigned count,
                                  struct fault *fault) {
  struct bytes text = json_string(json, key);
  for (unsigned i = 0; i < count; i++) {
    const char *name = fields[i].name;
    if (strlen(name) == text.size && strncasecmp(name, (const char *)text.data, text.size) == 0)
      return json_refuse(json, key, fault, "unknown field; did you mean \"%s\"?", name);
  }
  return json_refuse(json, key, fault, "unknown field");
}

static enum status refuse_missing(struct json *json, uint32_t object, const char *name, struct fault *fault) {
  if (fault == NULL) return STATUS_INVALID_ARGUMENT;
  char field[sizeof fault->field];
  struct pointer pointer = find_pointer(json, object, field, sizeof field);
  put_key(&pointer, bytes_text(name));
  return fault_set(fault, STATUS_INVALID_ARGUMENT, field, "%s is required", name);
}

enum status json_read_object(struct json *json, uint32_t object, const struct json_field *fields, unsigned count, void *target,
                             uint64_t *ret_present, struct fault *fault) {
  uint64_t present = 0;
  must(count <= 64 && object < json->count);
  if (json->tokens[object].type != JSON_OBJECT) return json_refuse(json, object, fault, "an object must stand here");
  for (uint32_t key = object + 1; key < json->tokens[object].next; key = json->tokens[key + 1].next) {
    unsigned i = find_field(fields, count, json_string(json, key));
    if (i == count) return refuse_unknown(json, key, fields, count, fault);
    const struct json_field *field = &fields[i];
    if (json->tokens[key + 1].type == JSON_NULL) {
      if (field->nullable) continue;
      return json_refuse(json, key + 1, fault, "%s must not be null", field->name);
    }
    must((unsigned)field->kind < sizeof readers / sizeof readers[0] && readers[field->kind] != NULL);
    struct reading reading = {
        .json = json, .fault = fault, .field = field, .token = key + 1, .member = (char *)target + field->offset};
    enum status status = readers[field->kind](&reading);
    if (status != STATUS_OK) return status;
    present |= UINT64_C(1) << i;
  }
  for (unsigned i = 0; i < count; i++)
    if (fields[i].required && (present >> i & 1) == 0) return refuse_missing(json, object, fields[i].name, fault);
  if (ret_present != NULL) *ret_present = present;
  return STATUS_OK;
}
