/* stdout of the offline tools: what is written, whether somebody still reads it, colour, width; and texts made fit for it. */
#ifndef ORBIT_REPLAY_OUT_H
#define ORBIT_REPLAY_OUT_H

#include <stdbool.h>

#include "base/bytes.h"

/* Ends quietly when the reader of stdout is gone: out_failed then says so, and out_code says exit_done. */
struct out {
  struct buffer text; /* what is not written yet */
  bool failed, closed;
  bool colour; /* of text */
  bool is_terminal;
  bool is_data;     /* for programs, not text: on a terminal all the same it is spelled out */
  unsigned columns; /* of text, for what is folded */
};
void out_begin(struct out *out); /* on stdout */
bool out_flush(struct out *out); /* false: it failed, now or before */
/* The exit code for an end with this code; says what went wrong; frees. */
int out_end(struct out *out, int code);
/* Waits up to ms milliseconds; false: the reader of stdout is gone. */
bool out_wait(struct out *out, unsigned ms);

enum colour { COLOUR_NONE = 0, COLOUR_DIM, COLOUR_BOLD, COLOUR_GOOD, COLOUR_BAD, COLOUR_DOUBT };
const char *out_colour(const struct out *out,
                       enum colour colour); /* what switches to it; NONE: back to plain; "" without colour */

/* ---- text.c ---- */

/* Text from the log, safe at a terminal: control characters and marks of direction as \u…, quotes around it where it has spaces
 * or is empty. */
void put_safe(struct buffer *text, struct bytes from, bool quotes);
/* Json or csv that goes to a terminal: the same characters as \u…, which says the same in JSON; ends of lines stay. */
void spell_out(struct buffer *text);
void put_csv_cell(struct buffer *text, struct bytes cell, bool first);
/* A text behind a left edge of its own, folded at spaces and hung below itself. The left text is ASCII. */
void draw_folded(struct out *out, const char *left, struct bytes text, enum colour colour);

#endif
