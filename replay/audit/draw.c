/* Owns the width of things at a terminal. */
#include "audit/draw.h"

#include <langinfo.h>
#include <string.h>

#include "base/guard.h"

enum { bar_edge = 6, label_chars = 25, left_chars_max = 40 };

static bool has_boxes(void) { return strcmp(nl_langinfo(CODESET), "UTF-8") == 0; }

struct span_text span_text(int64_t us) {
  struct span_text out;
  double seconds = (double)us / 1e6;
  long long whole = (long long)(us / 1000000);
  if (us < 1000) (void)snprintf(out.text, sizeof out.text, "%lld us", (long long)us);
  else if (us < 1000000) (void)snprintf(out.text, sizeof out.text, "%.3g ms", (double)us / 1e3);
  else if (whole < 60) (void)snprintf(out.text, sizeof out.text, "%.3g s", seconds);
  else if (whole < 3600) (void)snprintf(out.text, sizeof out.text, "%lld min %lld s", whole / 60, whole % 60);
  else if (whole < 86400) (void)snprintf(out.text, sizeof out.text, "%lld h %lld min", whole / 3600, whole / 60 % 60);
  else (void)snprintf(out.text, sizeof out.text, "%lld d %lld h", whole / 86400, whole / 3600 % 24);
  return out;
}

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
