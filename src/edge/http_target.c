/* Owns the reading of raw request targets: split first, decode then, refuse what is not exactly a target. */
#include "edge/http_target.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Decodes text[0..size) in place. False: bad escape, or a NUL comes out. */
static bool percent_decode(char *text, size_t size, bool plus_is_space, struct bytes *ret_decoded) {
  size_t out = 0;
  for (size_t i = 0; i < size; i++) {
    char c = text[i];
    if (c == '%') {
      if (size - i < 3) return false;
      int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
      if (high < 0 || low < 0 || (high | low) == 0) return false;
      c = (char)(high << 4 | low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    text[out++] = c;
  }
  *ret_decoded = bytes_of(text, out);
  return true;
}

static enum status refuse(struct fault *fault, const char *field, const char *message) {
  return fault_set(fault, STATUS_INVALID_ARGUMENT, field, "%s", message);
}

/* Visible ASCII without "#<>\^`{|} */
/* clang-format off */
static const bool target_bytes[256] = {
    ['!'] = true, ['$' ... ';'] = true, ['='] = true, ['?' ... '['] = true, [']'] = true, ['_'] = true, ['a' ... 'z'] = true,
    ['~'] = true,
};
/* clang-format on */

static enum status parse_path(char *text, size_t size, struct target *target, struct fault *fault) {
  size_t at = 1; /* behind the first slash */
  for (;;) {
    size_t end = at;
    while (end < size && text[end] != '/') end++;
    struct bytes segment;
    if (!percent_decode(text + at, end - at, false, &segment)) return refuse(fault, NULL, "the path has a bad percent escape");
    if (!bytes_is_utf8(segment)) return refuse(fault, NULL, "the path is not UTF-8");
    if (target->segment_count == target_segments_max) {
      target->segment_count++; /* no route is as deep */
      return STATUS_OK;
    }
    target->segments[target->segment_count++] = segment;
    if (end == size) return STATUS_OK;
    at = end + 1;
  }
}

/* A name as it may be shown in a fault. */
static const char *printable(struct bytes name, char *out, size_t size) {
  size_t length = name.size < size - 1 ? name.size : size - 1;
  for (size_t i = 0; i < length; i++) out[i] = name.data[i] > ' ' && name.data[i] <= '~' ? (char)name.data[i] : '?';
  out[length] = '\0';
  return out;
}

static enum status add_parameter(char *text, size_t size, struct target *target, struct fault *fault) {
  char shown[64];
  const char *equals = memchr(text, '=', size);
  size_t name_size = equals != NULL ? (size_t)(equals - text) : size;
  struct target_parameter parameter = {.value = bytes_of(text + name_size, 0)};
  if (!percent_decode(text, name_size, true, &parameter.name) || !bytes_is_utf8(parameter.name))
    return refuse(fault, NULL, "a parameter's name has a bad percent escape or is not UTF-8");
  if (parameter.name.size == 0) return refuse(fault, NULL, "a parameter has no name");
  const char *name = printable(parameter.name, shown, sizeof shown);
  if (equals != NULL &&
      (!percent_decode(text + name_size + 1, size - name_size - 1, true, &parameter.value) || !bytes_is_utf8(parameter.value)))
    return refuse(fault, name, "the parameter has a bad percent escape or is not UTF-8");
  for (unsigned i = 0; i < target->parameter_count; i++)
    if (bytes_equal(target->parameters[i].name, parameter.name)) return refuse(fault, name, "the parameter is given twice");
  if (target->parameter_count == target_parameters_max) return refuse(fault, NULL, "too many parameters");
  target->parameters[target->parameter_count++] = parameter;
  return STATUS_OK;
}

static enum status parse_query(char *text, size_t size, struct target *target, struct fault *fault) {
  size_t at = 0;
  if (size == 0) return STATUS_OK;
  for (;;) {
    size_t end = at;
    while (end < size && text[end] != '&') end++;
    enum status status = add_parameter(text + at, end - at, target, fault);
    if (status != STATUS_OK || end == size) return status;
    at = end + 1;
  }
}

/* How many bytes of "http://authority" stand before the path; 0 in origin form. */
static size_t authority_size(const char *text, size_t size) {
  static const char *const schemes[] = {"http://", "https://"};
  for (unsigned i = 0; i < 2; i++) {
    size_t length = strlen(schemes[i]);
    if (size <= length || strncasecmp(text, schemes[i], length) != 0) continue;
    const char *slash = memchr(text + length, '/', size - length);
    return slash != NULL ? (size_t)(slash - text) : 0;
  }
  return 0;
}

enum status target_parse(char *text, size_t size, struct target *ret_target, struct fault *fault) {
  struct target target;
  target.segment_count = target.parameter_count = 0;
  for (size_t i = 0; i < size; i++)
    if (!target_bytes[(uint8_t)text[i]])
      return refuse(fault, NULL, "the request target holds a byte that must be percent-encoded");
  size_t skipped = authority_size(text, size);
  text += skipped;
  size -= skipped;
  if (size == 0 || text[0] != '/') return refuse(fault, NULL, "the request target must be a path");
  char *question = memchr(text, '?', size);
  size_t path_size = question != NULL ? (size_t)(question - text) : size;
  enum status status = parse_path(text, path_size, &target, fault);
  if (status == STATUS_OK && question != NULL) status = parse_query(question + 1, size - path_size - 1, &target, fault);
  if (status == STATUS_OK) *ret_target = target;
  return status;
}

struct bytes target_parameter(const struct target *target, const char *name) {
  for (unsigned i = 0; i < target->parameter_count; i++)
    if (bytes_equal_text(target->parameters[i].name, name)) return target->parameters[i].value;
  return (struct bytes){NULL, 0};
}

enum status target_judge_parameters(const struct target *target, const char *const *names, struct fault *fault) {
  for (unsigned i = 0; i < target->parameter_count; i++) {
    bool known = false;
    for (const char *const *name = names; name != NULL && *name != NULL && !known; name++)
      known = bytes_equal_text(target->parameters[i].name, *name);
    char shown[64];
    if (!known) return refuse(fault, printable(target->parameters[i].name, shown, sizeof shown), "unknown parameter");
  }
  return STATUS_OK;
}

bool number_parse(struct bytes text, uint64_t *ret_value) {
  uint64_t value = 0;
  bool sound = text.size > 0 && (text.data[0] != '0' || text.size == 1);
  for (size_t i = 0; i < text.size && sound; i++)
    sound = text.data[i] >= '0' && text.data[i] <= '9' && !__builtin_mul_overflow(value, 10U, &value) &&
            !__builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value);
  if (sound) *ret_value = value;
  return sound;
}

enum status target_number(const struct target *target, const char *name, uint64_t min, uint64_t max, uint64_t fallback,
                          uint64_t *ret_value, struct fault *fault) {
  struct bytes text = target_parameter(target, name);
  uint64_t value = 0;
  if (text.data == NULL) {
    *ret_value = fallback;
    return STATUS_OK;
  }
  if (!number_parse(text, &value) || value < min || value > max)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, name, "must be a number from %" PRIu64 " to %" PRIu64, min, max);
  *ret_value = value;
  return STATUS_OK;
}
