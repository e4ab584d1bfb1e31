/* Owns texts made fit for a terminal, a table or a line. */
#include <string.h>

#include "base/guard.h"
#include "reading/out.h"

enum { left_chars_max = 40 };

/* C1 controls and marks of direction would let a text of the log rule the terminal. */
static bool is_risky(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

static uint32_t char_of(const uint8_t *at, size_t size) {
  static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t c = at[0] & masks[size];
  for (size_t i = 1; i < size; i++) c = c << 6 | (at[i] & 0x3f);
  return c;
}

void put_safe(struct buffer *text, struct bytes from, bool quotes) {
  bool quoted = false;
  for (size_t i = 0; quotes && i < from.size && !quoted; i++) quoted = from.data[i] <= ' ' || from.data[i] == '"';
  quoted = quotes && (quoted || from.size == 0);
  if (quoted) buffer_append_char(text, '"');
  for (size_t at = 0, size; at < from.size; at += size) {
    size = bytes_utf8_sequence(from.data + at, from.size - at);
    if (size == 0) {
      size = 1;
      buffer_append_format(text, "\\x%02x", from.data[at]);
      continue;
    }
    uint32_t c = char_of(from.data + at, size);
    if (c == '\n') buffer_append_text(text, "\\n");
    else if (is_risky(c)) buffer_append_format(text, "\\u%04x", c);
    else if (quoted && (c == '"' || c == '\\')) buffer_append_format(text, "\\%c", (char)c);
    else buffer_append(text, from.data + at, size);
  }
  if (quoted) buffer_append_char(text, '"');
}

void spell_out(struct buffer *text) {
  struct buffer safe;
  struct bytes from = buffer_bytes(text);
  buffer_init(&safe, SIZE_MAX);
  for (size_t at = 0, size; at < from.size; at += size) {
    size = bytes_utf8_sequence(from.data + at, from.size - at);
    uint32_t c = size != 0 ? char_of(from.data + at, size) : from.data[at];
    if (c == '\n') buffer_append_char(&safe, '\n');
    else if (size == 0 || is_risky(c)) buffer_append_format(&safe, "\\u%04x", c);
    else buffer_append(&safe, from.data + at, size);
    if (size == 0) size = 1;
  }
  buffer_clear(text);
  *text = safe;
}

void put_csv_cell(struct buffer *text, struct bytes cell, bool first) {
  bool quoted = false;
  if (!first) buffer_append_char(text, ',');
  for (size_t i = 0; i < cell.size && !quoted; i++) quoted = strchr(",\"\r\n", cell.data[i]) != NULL && cell.data[i] != 0;
  if (quoted) buffer_append_char(text, '"');
  for (size_t i = 0; i < cell.size; i++) {
    if (cell.data[i] == '"') buffer_append_char(text, '"');
    buffer_append_char(text, (char)cell.data[i]);
  }
  if (quoted) buffer_append_char(text, '"');
}

/* ---- folded text ---- */

/* Columns that the character takes: two for what is wide in East Asia and for pictures, none for combining marks. */
static unsigned width_of(const uint8_t *at, size_t size) {
  static const struct {
    uint32_t first, last;
  } wide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},
              {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
  static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t c = at[0] & masks[size];
  for (size_t i = 1; i < size; i++) c = c << 6 | (at[i] & 0x3f);
  if (c >= 0x300 && c <= 0x36f) return 0;
  for (unsigned i = 0; i < sizeof wide / sizeof wide[0]; i++)
    if (c >= wide[i].first && c <= wide[i].last) return 2;
  return 1;
}

/* How many bytes fit the width: to the last space, or where there is none just to the edge. */
static size_t fold_at(struct bytes text, unsigned width) {
  size_t space = 0, at = 0, size;
  unsigned used = 0;
  for (; at < text.size; at += size) {
    size = bytes_utf8_sequence(text.data + at, text.size - at);
    if (size == 0) size = 1;
    used += width_of(text.data + at, size);
    if (used > width) break;
    if (text.data[at] == ' ') space = at;
  }
  if (at == text.size || text.data[at] == ' ') return at;
  return space != 0 ? space : at;
}

void draw_folded(struct out *out, const char *left, struct bytes text, enum colour colour) {
  size_t edge = strlen(left);
  must(edge <= left_chars_max);
  do {
    size_t size = fold_at(text, out->columns - (unsigned)edge);
    buffer_append_format(&out->text, "%*s%s%.*s%s\n", (int)edge, left, colour != COLOUR_NONE ? out_colour(out, colour) : "",
                         (int)size, (const char *)text.data, colour != COLOUR_NONE ? out_colour(out, COLOUR_NONE) : "");
    text = bytes_of(text.data + size, text.size - size);
    while (text.size != 0 && text.data[0] == ' ') text = bytes_of(text.data + 1, text.size - 1);
    left = "";
  } while (text.size != 0);
}
