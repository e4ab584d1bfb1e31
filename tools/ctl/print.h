/* How orbitctl shows what the server gave: one set of columns for tables, lists of fields and CSV, all read from JSON.
 * Everything is made in memory and written once, so that stdout holds whole rows or nothing. */
#ifndef ORBIT_TOOLS_CTL_PRINT_H
#define ORBIT_TOOLS_CTL_PRINT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "codec/json.h"

enum print_format { PRINT_TEXT, PRINT_JSON, PRINT_JSONL, PRINT_CSV };

enum print_kind {
  PRINT_PLAIN,   /* a text or a number */
  PRINT_STATE,   /* a state: coloured on a terminal */
  PRINT_TIME,    /* to the millisecond in text */
  PRINT_DOCUMENT /* any JSON: cut short in text */
};

/* A column: where its value stands in a row's object ("error.code" is the member code of the member error), and how a table
 * treats it. CSV has all columns, whole. */
struct print_column {
  const char *path;
  const char *title; /* of a table; NULL: not shown in tables */
  enum print_kind kind;
  bool right;     /* aligned to the right */
  uint8_t shrink; /* may be cut to so many columns where the terminal is narrow; 0: it is shown whole or not at all */
};

/* What stdout is: its width in columns (80 where it is not known) and whether it takes colours (a terminal, and NO_COLOR is not
 * set). */
struct print_screen {
  unsigned width;
  bool terminal, colour;
};
struct print_screen print_screen_of_stdout(void);

bool print_format_parse(const char *text, enum print_format *ret_format);

/* The value at a path of an object as text: strings decoded, all else as written; data NULL where it is absent or null. Valid
 * until the next json_parse. */
struct bytes print_value(struct json *json, uint32_t object, const char *path);

/* Appends text as a terminal may show it: control and direction characters are spelled out. */
void print_visible(struct buffer *out, struct bytes text);

/* A table of the array's objects. Columns that do not fit are left out, the last first; the others are cut where they may be.
 */
void print_table(struct buffer *out, const struct print_screen *screen, struct json *json, uint32_t array,
                 const struct print_column *columns, unsigned count);
/* One object: a line a column that has a value, by the last name of its path. Long documents are cut short. */
void print_fields(struct buffer *out, const struct print_screen *screen, struct json *json, uint32_t object,
                  const struct print_column *columns, unsigned count);
/* RFC 4180. last: one more name, or value, behind the columns; NULL, or its data NULL: none. */
void print_csv_head(struct buffer *out, const struct print_column *columns, unsigned count, const char *last);
void print_csv_row(struct buffer *out, struct json *json, uint32_t object, const struct print_column *columns, unsigned count,
                   struct bytes last);
/* The array's items, or the one object: in any of the four formats. document: what the server gave, whole, for json. */
void print_rows(struct buffer *out, enum print_format format, struct json *json, uint32_t document, uint32_t rows,
                const struct print_column *columns, unsigned count);

/* Writes all of it to stdout and resets it. What is not text is for programs, byte for byte; where stdout is a terminal all the
 * same, control and direction characters in it are spelled out like \u001b, which says the same in JSON. Returns an exit code,
 * after saying why where it is not exit_done. */
int print_flush(struct buffer *out, enum print_format format);

#endif
