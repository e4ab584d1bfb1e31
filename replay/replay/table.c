/* Owns the printing of rows: padded text, JSON, JSON lines, CSV. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "codec/json.h"
#include "replay/replay.h"

void table_begin(struct table *table, enum output output, const char *const *columns, unsigned column_count) {
  *table = (struct table){.output = output, .columns = columns, .column_count = column_count};
  buffer_init(&table->cells, SIZE_MAX);
}

void table_cell(struct table *table, const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  buffer_append(&table->cells, text, strlen(text) + 1);
  table->rows++;
}

void table_text(struct table *table, struct bytes text) {
  size_t size = text.size != 0 ? strnlen((const char *)text.data, text.size) : 0;
  buffer_append(&table->cells, text.data, size);
  buffer_append_char(&table->cells, '\0');
  table->rows++;
}

static void put_text(struct buffer *out, const char *cell, size_t width, bool last) {
  buffer_append_text(out, cell);
  for (size_t size = strlen(cell); !last && size < width + 2; size++) buffer_append_char(out, ' ');
}

static void put_csv(struct buffer *out, const char *cell) {
  if (strpbrk(cell, ",\"\n") == NULL) {
    buffer_append_text(out, cell);
    return;
  }
  buffer_append_char(out, '"');
  for (; *cell != 0; cell++) {
    if (*cell == '"') buffer_append_char(out, '"');
    buffer_append_char(out, *cell);
  }
  buffer_append_char(out, '"');
}

static void put_json(struct buffer *out, const struct table *table, const char *const *cells) {
  buffer_append_char(out, '{');
  for (unsigned i = 0; i < table->column_count; i++) {
    if (i != 0) buffer_append_char(out, ',');
    json_write_string(out, bytes_text(table->columns[i]));
    buffer_append_char(out, ':');
    if (table->numbers[i]) buffer_append_text(out, cells[i]);
    else json_write_string(out, bytes_text(cells[i]));
  }
  buffer_append_char(out, '}');
}

static void put_row(struct buffer *out, const struct table *table, const char *const *cells, const size_t *widths, bool first) {
  if (table->output == OUTPUT_JSON && !first) buffer_append_char(out, ',');
  if (table->output == OUTPUT_JSON || table->output == OUTPUT_JSONL) put_json(out, table, cells);
  for (unsigned i = 0; i < table->column_count; i++) {
    if (table->output == OUTPUT_TEXT) put_text(out, cells[i], widths[i], i + 1 == table->column_count);
    if (table->output != OUTPUT_CSV) continue;
    if (i != 0) buffer_append_char(out, ',');
    put_csv(out, cells[i]);
  }
  if (table->output != OUTPUT_JSON) buffer_append_char(out, '\n');
}

int table_end(struct table *table) {
  struct buffer out;
  const char *cells[16], *at = (const char *)table->cells.data;
  size_t widths[16];
  must(table->column_count > 0 && table->column_count <= 16 && !table->cells.failed);
  buffer_init(&out, SIZE_MAX);
  for (unsigned i = 0; i < table->column_count; i++) widths[i] = strlen(table->columns[i]);
  for (unsigned i = 0; i < table->rows; i++, at += strlen(at) + 1)
    if (strlen(at) > widths[i % table->column_count]) widths[i % table->column_count] = strlen(at);
  if (table->output == OUTPUT_TEXT || table->output == OUTPUT_CSV) put_row(&out, table, table->columns, widths, true);
  if (table->output == OUTPUT_JSON) buffer_append_char(&out, '[');
  at = (const char *)table->cells.data;
  for (unsigned row = 0; row < table->rows / table->column_count; row++) {
    for (unsigned i = 0; i < table->column_count; i++, at += strlen(at) + 1) cells[i] = at;
    put_row(&out, table, cells, widths, row == 0);
  }
  if (table->output == OUTPUT_JSON) buffer_append_text(&out, "]\n");
  bool written = tool_print(buffer_bytes(&out));
  buffer_clear(&out);
  buffer_clear(&table->cells);
  return written ? exit_done : exit_cannot_run;
}
