/* What the encoder, the decoder and the printer of events share. */
#ifndef ORBIT_CODEC_EVENT_CODEC_INTERNAL_H
#define ORBIT_CODEC_EVENT_CODEC_INTERNAL_H

#include <string.h>

#include "codec/event_codec.h"

/* The tables of one event one behind the other: the common fields, then its own. */
struct field_cursor {
  const struct event_field *field; /* NULL: no more */
  const struct event_field *own;   /* the table that follows; NULL: this is the event's own */
};

static inline void field_cursor_settle(struct field_cursor *cursor) {
  if (cursor->field->key != 0) return;
  cursor->field = cursor->own != NULL && cursor->own->key != 0 ? cursor->own : NULL;
  cursor->own = NULL;
}

static inline struct field_cursor field_cursor_start(const struct event_schema *schema) {
  struct field_cursor cursor = {event_schema_common()->fields, schema->fields};
  field_cursor_settle(&cursor);
  return cursor;
}

static inline void field_cursor_next(struct field_cursor *cursor) {
  cursor->field++;
  field_cursor_settle(cursor);
}

/* Where the cursor's field stands in the event. */
static inline const void *field_place(const struct field_cursor *cursor, const struct event *event) {
  const uint8_t *owner = cursor->own != NULL ? (const uint8_t *)&event->common : (const uint8_t *)&event->body;
  return owner + cursor->field->offset;
}

/* The values of fields, by the C type that core/event.h gives them. */
static inline struct bytes field_span(const void *place) {
  struct bytes span;
  memcpy(&span, place, sizeof span);
  return span;
}

static inline uint64_t field_number(const void *place) {
  uint64_t number;
  memcpy(&number, place, sizeof number);
  return number;
}

static inline unsigned field_word(const void *place) {
  unsigned word;
  static_assert(sizeof(enum task_state) == sizeof word && sizeof(enum evidence_reason) == sizeof word, "words are unsigned");
  memcpy(&word, place, sizeof word);
  return word;
}

/* Empty, zero, false or none: an OPTIONAL field is left out then. */
static inline bool field_is_empty(const struct event_field *field, const void *place) {
  switch (field->type) {
    case FIELD_ID:
      return id_is_zero(place);
    case FIELD_BIN:
    case FIELD_STR:
    case FIELD_JSON:
    case FIELD_IDS:
      return field_span(place).size == 0;
    case FIELD_U64:
    case FIELD_TIME:
      return field_number(place) == 0;
    case FIELD_BOOL:
      return !*(const bool *)place;
    default:
      return field_word(place) == 0;
  }
}

static inline bool field_is_span(const struct event_field *field) {
  return field->type >= FIELD_BIN && field->type <= FIELD_IDS;
}

/* bytes_is_utf8, quick for ASCII: nearly all texts are. */
static inline bool text_is_utf8(struct bytes text) {
  size_t at = 0;
  for (; text.size - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, text.data + at, sizeof word);
    if ((word & UINT64_C(0x8080808080808080)) != 0) break;
  }
  while (at < text.size && text.data[at] < 0x80) at++;
  return at == text.size || bytes_is_utf8(bytes_of(text.data + at, text.size - at));
}

#endif
