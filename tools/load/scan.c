/* Owns the scanning of JSON without judging it. */
#include "load/scan.h"

#include <string.h>

/* One behind the closing quote of the string that opens at `at`. A quote is the string's own unless an odd number of
 * backslashes stands before it. */
static size_t string_end(struct bytes text, size_t at) {
  size_t start = at + 1;
  while (start < text.size) {
    const uint8_t *quote = memchr(text.data + start, '"', text.size - start);
    if (quote == NULL) return text.size;
    size_t end = (size_t)(quote - text.data), before = end;
    while (before > at + 1 && text.data[before - 1] == '\\') before--;
    if ((end - before) % 2 == 0) return end + 1;
    start = end + 1;
  }
  return text.size;
}

/* What a character means for where a value ends. */
enum { plain = 0, quoting, opening, closing, dividing };
static const uint8_t meanings[256] = {
    ['"'] = quoting, ['{'] = opening, ['['] = opening, ['}'] = closing, [']'] = closing, [','] = dividing};

/* One behind the value that begins at `at`. */
static size_t value_end(struct bytes text, size_t at) {
  unsigned depth = 0;
  while (at < text.size) {
    uint8_t meaning = meanings[text.data[at]];
    if (meaning == plain) {
      at++;
      continue;
    }
    if (meaning == quoting) {
      at = string_end(text, at);
      if (depth == 0) return at;
      continue;
    }
    if (depth == 0 && meaning != opening) return at;
    if (meaning == opening) depth++;
    at++;
    if (meaning == closing && --depth == 0) return at;
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
