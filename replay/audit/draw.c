/* Owns the width of things at a terminal. */
#include "audit/draw.h"

#include <langinfo.h>
#include <string.h>

#include "base/guard.h"

enum { bar_edge = 6, label_chars = 25 };

static bool has_boxes(void) { return strcmp(nl_langinfo(CODESET), "UTF-8") == 0; }

/* ---- bars ---- */

struct scale {
  int64_t from_us, until_us;
  unsigned width;
};

/* The column in which this time falls. */
static unsigned column_of(const struct scale *scale, int64_t time_us) {
  double length = (double)(scale->until_us - scale->from_us);
  double at = length > 0 ? (double)(time_us - scale->from_us) / length * scale->width : 0;
  if (at < 0) return 0;
  return at >= scale->width ? scale->width - 1 : (unsigned)at;
}

enum sign { SIGN_BLANK, SIGN_WAIT, SIGN_LEASE, SIGN_RUN, SIGN_EDGE };

static const char *sign_text(enum sign sign) {
  static const char *const ascii[] = {" ", ".", "-", "#", "|"};
  static const char *const boxes[] = {" ", "·", "░", "█", "│"};
  return has_boxes() ? boxes[sign] : ascii[sign];
}

/* Where the parts of a bar begin, and its last column. */
struct parts {
  unsigned waits, leased, runs, ends;
};

/* Each part takes a column at least, so that none is lost, however short it was. */
static struct parts parts_of(const struct scale *scale, const struct bar *bar) {
  struct parts parts = {.waits = column_of(scale, bar->waited_us),
                        .leased = column_of(scale, bar->leased_us),
                        .ends = column_of(scale, bar->ended_us != 0 ? bar->ended_us : scale->until_us)};
  parts.runs = scale->width;
  if (bar->started_us == 0) return parts;
  parts.runs = column_of(scale, bar->started_us);
  if (parts.leased + 1 == scale->width) parts.leased--;
  if (parts.runs <= parts.leased) parts.runs = parts.leased + 1;
  if (parts.ends < parts.runs) parts.ends = parts.runs;
  return parts;
}

static enum sign sign_at(const struct parts *parts, unsigned column) {
  if (column > parts->ends || (column < parts->leased && column < parts->waits)) return SIGN_BLANK;
  if (column >= parts->runs) return SIGN_RUN;
  return column >= parts->leased ? SIGN_LEASE : SIGN_WAIT;
}

static void draw_bar(struct out *out, const struct scale *scale, const struct bar *bar) {
  struct parts parts = parts_of(scale, bar);
  enum sign last = SIGN_BLANK;
  buffer_append_format(&out->text, "%4llu %s", (unsigned long long)bar->number, sign_text(SIGN_EDGE));
  for (unsigned column = 0; column < scale->width; column++) {
    enum sign sign = sign_at(&parts, column);
    if (sign != last && sign == SIGN_RUN) buffer_append_text(&out->text, out_colour(out, bar->colour));
    if (sign != last && last == SIGN_RUN) buffer_append_text(&out->text, out_colour(out, COLOUR_NONE));
    buffer_append_text(&out->text, sign_text(sign));
    last = sign;
  }
  if (last == SIGN_RUN) buffer_append_text(&out->text, out_colour(out, COLOUR_NONE));
  buffer_append_format(&out->text, "%s %s%.*s%s\n", sign_text(SIGN_EDGE), out_colour(out, bar->colour), label_chars - 1,
                       bar->label, out_colour(out, COLOUR_NONE));
}

void draw_bars(struct out *out, const struct bar *bars, unsigned count, int64_t from_us, int64_t until_us) {
  struct scale scale = {from_us, until_us, out->columns - bar_edge - 1 - label_chars};
  must(out->columns > bar_edge + 1 + label_chars);
  for (unsigned i = 0; i < count; i++) draw_bar(out, &scale, &bars[i]);
  buffer_append_format(&out->text, "     %s waiting  %s leased  %s start granted   all of it: %s\n", sign_text(SIGN_WAIT),
                       sign_text(SIGN_LEASE), sign_text(SIGN_RUN), span_text(until_us - from_us).text);
}
