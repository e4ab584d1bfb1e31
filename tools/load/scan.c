/* Owns the scanning of JSON without judging it. */
#include "load/scan.h"

#include <string.h>

/* One behind the closing quote of the string that opens at `at`. */
static size_t string_end(struct bytes text, size_t at) {
  for (at++; at < text.size && text.data[at] != '"'; at++)
    if (text.data[at] == '\\') at++;
  return at < text.size ? at + 1 : text.size;
}

/* One behind the value that begins at `at`. */
static size_t value_end(struct bytes text, size_t at) {
  unsigned depth = 0;
  while (at < text.size) {
    uint8_t c = text.data[at];
    if (c == '"') {
      at = string_end(text, at);
      if (depth == 0) return at;
      continue;
    }
    if ((c == ',' || c == '}' || c == ']') && depth == 0) return at;
    if (c == '{' || c == '[') depth++;
    at++;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
  return at;
}

struct bytes scan_member(struct bytes object, const char *name) {
  size_t length = strlen(name), at = 1;
  while (at < object.size && object.data[at] == '"') {
    size_t name_end = string_end(object, at), value = name_end + 1;
    if (value >= object.size) break;
    size_t end = value_end(object, value);
    if (name_end - at == length + 2 && memcmp(object.data + at + 1, name, length) == 0)
      return bytes_of(object.data + value, end - value);
    at = end + 1;
  }
  return bytes_of(NULL, 0);
}

struct bytes scan_text(struct bytes object, const char *name) {
  struct bytes value = scan_member(object, name);
  return value.size >= 2 && value.data[0] == '"' ? bytes_of(value.data + 1, value.size - 2) : bytes_of(NULL, 0);
}

bool scan_is_true(struct bytes object, const char *name) { return bytes_equal_text(scan_member(object, name), "true"); }

bool scan_item(struct bytes array, size_t *at, struct bytes *ret_item) {
  size_t start = *at + 1;
  if (start >= array.size || array.data[start] == ']') return false;
  size_t end = value_end(array, start);
  *ret_item = bytes_of(array.data + start, end - start);
  *at = end;
  return true;
}
