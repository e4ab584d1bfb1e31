/* Owns the JSON form of events. */
#include "base/time_text.h"
#include "codec/event_codec_internal.h"
#include "codec/json.h"

static void print_hex(struct bytes bytes, struct buffer *out) {
  static const char digits[] = "0123456789abcdef";
  uint8_t *room = bytes.size <= SIZE_MAX / 2 ? buffer_reserve(out, 2 * bytes.size) : NULL;
  if (room == NULL) return;
  for (size_t i = 0; i < bytes.size; i++) {
    room[2 * i] = (uint8_t)digits[bytes.data[i] >> 4];
    room[2 * i + 1] = (uint8_t)digits[bytes.data[i] & 15];
  }
  buffer_commit(out, 2 * bytes.size);
}

static void print_hex_text(struct bytes bytes, struct buffer *out) {
  buffer_append_char(out, '"');
  print_hex(bytes, out);
  buffer_append_char(out, '"');
}

static void print_ids(struct bytes ids, struct buffer *out) {
  buffer_append_char(out, '[');
  for (size_t at = 0; at < ids.size; at += id_bytes) {
    if (at != 0) buffer_append_char(out, ',');
    print_hex_text(bytes_of(ids.data + at, id_bytes), out);
  }
  buffer_append_char(out, ']');
}

/* A time outside the years that have a text can only come from a log that something else wrote: its number is shown. */
static void print_time(int64_t time_us, struct buffer *out) {
  char text[time_chars_max];
  if (!time_has_text(time_us)) {
    buffer_append_format(out, "%lld", (long long)time_us);
    return;
  }
  buffer_append_char(out, '"');
  size_t chars = time_format(time_us, text);
  buffer_append(out, text, chars);
  buffer_append_char(out, '"');
}

/* Revisions and epochs are decimal strings wherever Orbit speaks to programs. */
static bool is_decimal_string(const char *name) { return strcmp(name, "revision") == 0 || strcmp(name, "epoch") == 0; }

static void print_number(const struct event_field *field, uint64_t number, bool decimal_strings, struct buffer *out) {
  bool quoted = decimal_strings && is_decimal_string(field->name);
  if (quoted) buffer_append_char(out, '"');
  buffer_append_u64(out, number);
  if (quoted) buffer_append_char(out, '"');
}

static void print_document(struct bytes document, bool whole, struct buffer *out) {
  if (whole) buffer_append_bytes(out, document);
  else buffer_append_u64(out, document.size);
}

static void print_value(const struct event_field *field, const void *place, bool decimal_strings, bool whole,
                        struct buffer *out) {
  switch (field->type) {
    case FIELD_ID:
      print_hex_text(bytes_of(place, id_bytes), out);
      return;
    case FIELD_BIN:
      print_hex_text(field_span(place), out);
      return;
    case FIELD_STR:
      json_write_string(out, field_span(place));
      return;
    case FIELD_JSON:
      print_document(field_span(place), whole, out);
      return;
    case FIELD_IDS:
      print_ids(field_span(place), out);
      return;
    case FIELD_U64:
      print_number(field, field_number(place), decimal_strings, out);
      return;
    case FIELD_TIME:
      print_time((int64_t)field_number(place), out);
      return;
    case FIELD_BOOL:
      buffer_append_text(out, *(const bool *)place ? "true" : "false");
      return;
    default:
      buffer_append_char(out, '"');
      buffer_append_text(out, event_word_text(field->type, field_word(place)));
      buffer_append_char(out, '"');
  }
}

/* How much of an event is told. */
struct printing {
  bool decimal_strings;
  bool documents; /* whole, not their sizes */
  bool public;    /* for readers of the feed: no payload, nothing that identities are made of */
};

static bool is_told(const struct event_field *field, const struct printing *printing) {
  static const char *const withheld[] = {"identity", "digest", "report_identity"};
  if (strcmp(field->name, "token_hash") == 0) return false; /* who knows it could look for the token */
  for (size_t i = 0; i < sizeof withheld / sizeof withheld[0]; i++)
    if (printing->public && strcmp(field->name, withheld[i]) == 0) return false;
  return true;
}

static void print_event(const struct event *event, const struct printing *printing, struct buffer *out) {
  const struct event_schema *schema = event_schema_find(event->type);
  const char *comma = "";
  if (schema == NULL) return;
  for (struct field_cursor cursor = field_cursor_start(schema); cursor.field != NULL; field_cursor_next(&cursor)) {
    const struct event_field *field = cursor.field;
    const void *place = field_place(&cursor, event);
    if ((!field->required && field_is_empty(field, place)) || !is_told(field, printing)) continue;
    bool whole = printing->documents && !(printing->public && strcmp(field->name, "payload") == 0);
    buffer_append_text(out, comma);
    buffer_append_char(out, '"');
    buffer_append_text(out, field->name);
    buffer_append_text(out, field->type == FIELD_JSON && !whole ? "_bytes\":" : "\":");
    print_value(field, place, printing->decimal_strings, whole, out);
    comma = ",";
  }
}

void event_print_json(const struct event *event, bool decimal_strings, bool documents, struct buffer *out) {
  print_event(event, &(struct printing){.decimal_strings = decimal_strings, .documents = documents}, out);
}

void event_print_public(const struct event *event, struct buffer *out) {
  print_event(event, &(struct printing){.decimal_strings = true, .documents = true, .public = true}, out);
}
