/* Owns the look of what orbitctl prints. */
#include "print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/guard.h"
#include "ctl.h"

enum {
  columns_max = 48,
  width_default = 80,
  width_min = 20,
  gap = 2,             /* between two columns of a table */
  document_lines = 6,  /* of a document in a list of fields */
  bytes_per_column = 8 /* a spelled-out character is the widest: \u202e */
};

static const char ellipsis[] = "…";

/* ---- The terminal ---- */

struct print_screen print_screen_of_stdout(void) {
  struct print_screen screen = {.width = width_default, .terminal = isatty(STDOUT_FILENO) == 1};
  struct winsize size;
  if (screen.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0)
    screen.width = size.ws_col < width_min ? width_min : size.ws_col;
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  screen.colour = screen.terminal && (no_color == NULL || no_color[0] == '\0') && (term == NULL || strcmp(term, "dumb") != 0);
  return screen;
}

bool print_format_parse(const char *text, enum print_format *ret_format) {
  static const char *const names[] = {"text", "json", "jsonl", "csv"};
  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(names[i], text) != 0) continue;
    *ret_format = (enum print_format)i;
    return true;
  }
  return false;
}

/* ---- Characters ---- */

static uint32_t decode(const uint8_t *text, size_t length) {
  if (length == 1) return text[0];
  uint32_t point = text[0] & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; i++) point = point << 6 | (text[i] & 0x3FU);
  return point;
}

/* Characters that would move the cursor, change the terminal or turn the line around: data must not be able to. */
static bool is_spelled_out(uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x200E || point == 0x200F || point == 0x061C ||
         (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

/* Appends one character; returns how many columns it takes. */
static unsigned append_character(struct buffer *out, const uint8_t *text, size_t length) {
  uint32_t point = decode(text, length);
  if (is_spelled_out(point)) {
    buffer_append_format(out, "\\u%04x", point);
    return 6;
  }
  buffer_append(out, text, length);
  int width = wcwidth((wchar_t)point);
  return width < 0 ? 1 : (unsigned)width;
}

void print_visible(struct buffer *out, struct bytes text) {
  for (size_t at = 0, length; at < text.size; at += length) {
    length = bytes_utf8_sequence(text.data + at, text.size - at);
    if (length != 0) (void)append_character(out, text.data + at, length);
    else buffer_append_char(out, '?'); /* what the server gives is UTF-8, but not what people type */
    if (length == 0) length = 1;
  }
}

/* Appends at most width columns of the text, the last of them … where something is left out. Returns the columns used. */
static unsigned append_cut(struct buffer *out, struct bytes text, unsigned width) {
  unsigned used = 0, end_used = 0;
  size_t end = out->size; /* where the … goes if it comes to that */
  for (size_t at = 0, length; at < text.size; at += length) {
    length = bytes_utf8_sequence(text.data + at, text.size - at);
    if (length == 0) break;
    used += append_character(out, text.data + at, length);
    if (used > width) {
      out->size = end;
      buffer_append_text(out, ellipsis);
      return end_used + 1;
    }
    if (used < width) {
      end = out->size;
      end_used = used;
    }
  }
  return used;
}

static void append_spaces(struct buffer *out, unsigned count) {
  for (unsigned i = 0; i < count; i++) buffer_append_char(out, ' ');
}

static const char *state_colour(struct bytes state) {
  static const struct {
    const char *state, *colour;
  } rows[] = {
      {"SUCCEEDED", "\033[32m"}, {"FAILED", "\033[31m"}, {"NEEDS_REVIEW", "\033[33m"}, {"UNKNOWN", "\033[33m"},
      {"RUNNING", "\033[36m"},   {"LEASED", "\033[36m"}, {"CANCELLED", "\033[2m"},     {"EXPIRED", "\033[33m"},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (bytes_equal_text(state, rows[i].state)) return rows[i].colour;
  return NULL;
}

/* ---- Values ---- */

struct bytes print_value(struct json *json, uint32_t object, const char *path) {
  static const struct bytes absent = {NULL, 0};
  uint32_t token = object;
  while (path != NULL) {
    char name[64];
    const char *dot = strchrnul(path, '.');
    (void)snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
    if (json->tokens[token].type != JSON_OBJECT || (token = json_member(json, token, name)) == 0) return absent;
    path = *dot == '.' ? dot + 1 : NULL;
  }
  if (json->tokens[token].type == JSON_NULL) return absent;
  return json->tokens[token].type == JSON_STRING ? json_string(json, token) : json_raw(json, token);
}

/* 2026-11-30T12:30:26.123456Z to the millisecond. */
static void append_time(struct buffer *out, struct bytes time) {
  const uint8_t *dot = time.size != 0 ? memchr(time.data, '.', time.size) : NULL;
  size_t whole = dot != NULL ? (size_t)(dot - time.data) : time.size;
  if (dot == NULL || time.size - whole <= 5) {
    print_visible(out, time);
    return;
  }
  print_visible(out, bytes_of(time.data, whole + 4));
  buffer_append_char(out, 'Z');
}

/* A cell's text before it is fitted, appended to scratch; the span is of scratch's memory at that moment. */
static struct bytes cell(struct buffer *scratch, struct json *json, uint32_t object, const struct print_column *column) {
  struct bytes value = print_value(json, object, column->path);
  if (column->kind != PRINT_TIME || value.data == NULL) return value;
  buffer_reset(scratch);
  append_time(scratch, value);
  return buffer_bytes(scratch);
}

static unsigned text_width(struct buffer *scratch, struct bytes text) {
  size_t before = scratch->size;
  unsigned width = append_cut(scratch, text, UINT32_MAX);
  scratch->size = before;
  return width;
}

/* ---- Tables ---- */

struct layout {
  unsigned widths[columns_max]; /* 0: left out */
};

static unsigned total_width(const struct layout *layout, unsigned count) {
  unsigned total = 0;
  for (unsigned i = 0; i < count; i++) total += layout->widths[i] != 0 ? layout->widths[i] + gap : 0;
  return total != 0 ? total - gap : 0;
}

static void measure(struct json *json, uint32_t array, const struct print_column *columns, unsigned count,
                    struct layout *layout) {
  cleanup(buffer_clear) struct buffer scratch, visible;
  buffer_init(&scratch, json_text_bytes_max);
  buffer_init(&visible, (size_t)json_text_bytes_max * bytes_per_column);
  for (unsigned i = 0; i < count; i++) layout->widths[i] = columns[i].title != NULL ? (unsigned)strlen(columns[i].title) : 0;
  uint32_t row = array + 1;
  for (uint32_t n = 0; n < json->tokens[array].count; n++, row = json->tokens[row].next) {
    for (unsigned i = 0; i < count; i++) {
      if (columns[i].title == NULL) continue;
      unsigned width = text_width(&visible, cell(&scratch, json, row, &columns[i]));
      if (width > layout->widths[i]) layout->widths[i] = width;
    }
  }
}

/* What the columns take when everything that may be cut is cut. */
static unsigned least_width(const struct layout *layout, const struct print_column *columns, unsigned count) {
  unsigned total = 0;
  for (unsigned i = 0; i < count; i++) {
    unsigned width = layout->widths[i], cut = columns[i].shrink;
    if (width != 0) total += (cut != 0 && width > cut ? cut : width) + gap;
  }
  return total != 0 ? total - gap : 0;
}

/* Leaves out columns from the end until the rest fits when cut; then cuts no more than is needed, the widest first. */
static void fit(struct layout *layout, const struct print_column *columns, unsigned count, unsigned width) {
  for (unsigned i = count; i-- > 1 && least_width(layout, columns, count) > width;) layout->widths[i] = 0;
  while (total_width(layout, count) > width) {
    unsigned widest = count;
    for (unsigned i = 0; i < count; i++) {
      if (columns[i].shrink == 0 || layout->widths[i] <= columns[i].shrink) continue;
      if (widest == count || layout->widths[i] > layout->widths[widest]) widest = i;
    }
    if (widest == count) return;
    unsigned over = total_width(layout, count) - width, spare = layout->widths[widest] - columns[widest].shrink;
    layout->widths[widest] -= over < spare ? over : spare;
  }
}

static void append_cell(struct buffer *out, const struct print_column *column, unsigned width, struct bytes text,
                        const char *colour, bool last) {
  cleanup(buffer_clear) struct buffer fitted;
  buffer_init(&fitted, json_text_bytes_max);
  unsigned used = append_cut(&fitted, text, width), pad = width - (used < width ? used : width);
  if (column->right) append_spaces(out, pad);
  if (colour != NULL) buffer_append_text(out, colour);
  buffer_append_bytes(out, buffer_bytes(&fitted));
  if (colour != NULL) buffer_append_text(out, "\033[0m");
  if (!column->right && !last) append_spaces(out, pad);
}

void print_table(struct buffer *out, const struct print_screen *screen, struct json *json, uint32_t array,
                 const struct print_column *columns, unsigned count) {
  struct layout layout;
  cleanup(buffer_clear) struct buffer scratch;
  buffer_init(&scratch, json_text_bytes_max);
  must(count <= columns_max);
  measure(json, array, columns, count, &layout);
  fit(&layout, columns, count, screen->width);
  unsigned last = 0;
  for (unsigned i = 0; i < count; i++)
    if (layout.widths[i] != 0) last = i;
  uint32_t row = array; /* the head first */
  for (uint32_t n = 0; n <= json->tokens[array].count; n++, row = n == 1 ? array + 1 : json->tokens[row].next) {
    bool first = true;
    for (unsigned i = 0; i < count; i++) {
      if (layout.widths[i] == 0) continue;
      if (!first) append_spaces(out, gap);
      first = false;
      struct bytes text = n == 0 ? bytes_text(columns[i].title) : cell(&scratch, json, row, &columns[i]);
      const char *colour = !screen->colour                  ? NULL
                           : n == 0                         ? "\033[1m"
                           : columns[i].kind == PRINT_STATE ? state_colour(text)
                                                            : NULL;
      append_cell(out, &columns[i], layout.widths[i], text, colour, i == last);
    }
    buffer_append_char(out, '\n');
  }
}

/* ---- One object ---- */

static const char *last_name(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL ? dot + 1 : path;
}

/* A text over several lines, indented; no more of them than a document may have. */
static void append_wrapped(struct buffer *out, struct bytes text, unsigned indent, unsigned width) {
  unsigned used = 0, lines = 1;
  for (size_t at = 0, length; at < text.size; at += length) {
    length = bytes_utf8_sequence(text.data + at, text.size - at);
    if (length == 0) return;
    size_t before = out->size;
    unsigned columns = append_character(out, text.data + at, length);
    if (used + columns <= width) {
      used += columns;
      continue;
    }
    out->size = before;
    buffer_append_char(out, '\n');
    append_spaces(out, indent);
    if (++lines > document_lines) {
      buffer_append_format(out, "%s (%zu bytes; -o json shows all)", ellipsis, text.size);
      return;
    }
    used = append_character(out, text.data + at, length);
  }
}

void print_fields(struct buffer *out, const struct print_screen *screen, struct json *json, uint32_t object,
                  const struct print_column *columns, unsigned count) {
  cleanup(buffer_clear) struct buffer scratch;
  buffer_init(&scratch, json_text_bytes_max);
  unsigned names = 0;
  for (unsigned i = 0; i < count; i++) {
    unsigned length = (unsigned)strlen(last_name(columns[i].path));
    if (length > names && print_value(json, object, columns[i].path).data != NULL) names = length;
  }
  for (unsigned i = 0; i < count; i++) {
    struct bytes text = cell(&scratch, json, object, &columns[i]);
    if (text.data == NULL) continue;
    const char *colour = screen->colour && columns[i].kind == PRINT_STATE ? state_colour(text) : NULL;
    unsigned indent = names + gap, width = screen->width > indent + width_min ? screen->width - indent : width_min;
    buffer_append_format(out, "%-*s", (int)indent, last_name(columns[i].path));
    if (colour != NULL) buffer_append_text(out, colour);
    append_wrapped(out, text, indent, width);
    if (colour != NULL) buffer_append_text(out, "\033[0m");
    buffer_append_char(out, '\n');
  }
}

/* ---- CSV (RFC 4180) ---- */

void print_csv_head(struct buffer *out, const struct print_column *columns, unsigned count, const char *last) {
  for (unsigned i = 0; i < count; i++) buffer_append_format(out, "%s%s", i > 0 ? "," : "", columns[i].path);
  if (last != NULL) buffer_append_format(out, ",%s", last);
  buffer_append_text(out, "\r\n");
}

static void append_csv(struct buffer *out, struct bytes text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size && !quoted; i++) quoted = strchr(",\"\r\n", text.data[i]) != NULL;
  if (quoted) buffer_append_char(out, '"');
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] == '"') buffer_append_char(out, '"');
    buffer_append_char(out, (char)text.data[i]);
  }
  if (quoted) buffer_append_char(out, '"');
}

void print_csv_row(struct buffer *out, struct json *json, uint32_t object, const struct print_column *columns, unsigned count,
                   struct bytes last) {
  for (unsigned i = 0; i < count; i++) {
    if (i > 0) buffer_append_char(out, ',');
    append_csv(out, print_value(json, object, columns[i].path));
  }
  if (last.data != NULL) {
    buffer_append_char(out, ',');
    append_csv(out, last);
  }
  buffer_append_text(out, "\r\n");
}

/* ---- All four ---- */

static void append_row(struct buffer *out, enum print_format format, struct json *json, uint32_t row,
                       const struct print_column *columns, unsigned count) {
  if (format == PRINT_CSV) {
    print_csv_row(out, json, row, columns, count, bytes_of(NULL, 0));
    return;
  }
  json_minify(json, row, out);
  buffer_append_char(out, '\n');
}

void print_rows(struct buffer *out, enum print_format format, struct json *json, uint32_t document, uint32_t rows,
                const struct print_column *columns, unsigned count) {
  struct print_screen screen = print_screen_of_stdout();
  bool is_list = json->tokens[rows].type == JSON_ARRAY;
  if (format == PRINT_JSON) {
    buffer_append_bytes(out, json_raw(json, document));
    buffer_append_char(out, '\n');
  } else if (format == PRINT_TEXT) {
    (is_list ? print_table : print_fields)(out, &screen, json, rows, columns, count);
  } else {
    if (format == PRINT_CSV) print_csv_head(out, columns, count, NULL);
    uint32_t row = is_list ? rows + 1 : rows, items = is_list ? json->tokens[rows].count : 1;
    for (uint32_t n = 0; n < items; n++, row = json->tokens[row].next) append_row(out, format, json, row, columns, count);
  }
}

/* Whether the character at `at` is the writer's own: an end of a line, or between two tokens. */
static bool is_layout(struct bytes text, size_t at) {
  uint8_t c = text.data[at];
  return c == '\n' || c == '\t' || (c == '\r' && at + 1 < text.size && text.data[at + 1] == '\n');
}

static void spell_out(struct buffer *out) {
  struct buffer safe;
  struct bytes text = buffer_bytes(out);
  buffer_init(&safe, SIZE_MAX);
  for (size_t at = 0, length; at < text.size; at += length) {
    length = bytes_utf8_sequence(text.data + at, text.size - at);
    if (is_layout(text, at)) buffer_append_char(&safe, (char)text.data[at]);
    else if (length != 0) (void)append_character(&safe, text.data + at, length);
    else buffer_append_char(&safe, '?');
    if (length == 0) length = 1;
  }
  buffer_clear(out);
  *out = safe;
}

int print_flush(struct buffer *out, enum print_format format) {
  if (format != PRINT_TEXT && isatty(STDOUT_FILENO) == 1) spell_out(out);
  if (out->failed) return ctl_say(exit_cannot_run, "no memory for the output");
  size_t done = 0;
  while (done < out->size) {
    ssize_t written = write(STDOUT_FILENO, out->data + done, out->size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ctl_say(exit_cannot_run, "stdout cannot be written: %s", strerror(errno));
    done += (size_t)written;
  }
  buffer_reset(out);
  return exit_done;
}
