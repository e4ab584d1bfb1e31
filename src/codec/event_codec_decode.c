/* Owns the reading of bodies: a walk over msgpack that trusts no byte, borrows every span and allocates nothing. */
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "codec/event_codec_internal.h"

struct event_decoder {
  struct event event; /* under construction */
};

struct event_decoder *event_decoder_new(void) {
  return guard_calloc(1, sizeof(struct event_decoder));
}
void event_decoder_free(struct event_decoder *decoder) { free(decoder); }

struct walk {
  const uint8_t *at, *end;
};

enum value_kind {
  VALUE_BROKEN, /* the bytes end inside it, or its marker is none */
  VALUE_UINT,
  VALUE_NEGATIVE,
  VALUE_BOOL,
  VALUE_STR,
  VALUE_BIN,
  VALUE_ARRAY,
  VALUE_MAP,
  VALUE_OTHER, /* nil, float, ext: no field has these */
};

/* One msgpack value: the whole of a scalar, the head of an array or a map. */
struct value {
  enum value_kind kind;
  bool shortest;     /* no shorter form of the same value exists */
  uint64_t number;   /* UINT, NEGATIVE (two's complement), BOOL; items of ARRAY, pairs of MAP */
  struct bytes span; /* STR, BIN */
};

static uint64_t big_endian(const uint8_t *bytes, unsigned size) {
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  switch (size) {
    case 0:
      return 0;
    case 1:
      return bytes[0];
    case 2:
      memcpy(&two, bytes, sizeof two);
      return be16toh(two);
    case 4:
      memcpy(&four, bytes, sizeof four);
      return be32toh(four);
    default:
      memcpy(&eight, bytes, sizeof eight);
      return be64toh(eight);
  }
}

/* The number of width bytes that follows a marker; false when the bytes end before. */
static bool take_number(struct walk *walk, unsigned width, uint64_t *ret_number) {
  if ((size_t)(walk->end - walk->at) < width) return false;
  *ret_number = big_endian(walk->at, width);
  walk->at += width;
  return true;
}

static bool take_span(struct walk *walk, uint64_t size, struct value *value) {
  if (size > (uint64_t)(walk->end - walk->at)) return false;
  value->span = bytes_of(walk->at, (size_t)size);
  walk->at += size;
  return true;
}

/* What a marker of 0xC0–0xDF announces. */
struct marker {
  uint8_t kind;   /* enum value_kind */
  uint8_t width;  /* of the number behind the marker: a value, a length or a count */
  uint8_t extra;  /* bytes that follow whatever the length is: the type of an ext */
  uint64_t least; /* a smaller number has a shorter form */
};

static const struct marker markers[32] = {
    [0xC0 - 0xC0] = {VALUE_OTHER, 0, 0, 0},
    [0xC2 - 0xC0] = {VALUE_BOOL, 0, 0, 0},
    [0xC3 - 0xC0] = {VALUE_BOOL, 0, 0, 0},
    [0xC4 - 0xC0] = {VALUE_BIN, 1, 0, 0},
    [0xC5 - 0xC0] = {VALUE_BIN, 2, 0, 0x100},
    [0xC6 - 0xC0] = {VALUE_BIN, 4, 0, 0x10000},
    [0xC7 - 0xC0] = {VALUE_OTHER, 1, 1, 0},
    [0xC8 - 0xC0] = {VALUE_OTHER, 2, 1, 0},
    [0xC9 - 0xC0] = {VALUE_OTHER, 4, 1, 0},
    [0xCA - 0xC0] = {VALUE_OTHER, 0, 4, 0},
    [0xCB - 0xC0] = {VALUE_OTHER, 0, 8, 0},
    [0xCC - 0xC0] = {VALUE_UINT, 1, 0, 0x80},
    [0xCD - 0xC0] = {VALUE_UINT, 2, 0, 0x100},
    [0xCE - 0xC0] = {VALUE_UINT, 4, 0, 0x10000},
    [0xCF - 0xC0] = {VALUE_UINT, 8, 0, 0x100000000},
    [0xD0 - 0xC0] = {VALUE_NEGATIVE, 1, 0, 0x21},
    [0xD1 - 0xC0] = {VALUE_NEGATIVE, 2, 0, 0x81},
    [0xD2 - 0xC0] = {VALUE_NEGATIVE, 4, 0, 0x8001},
    [0xD3 - 0xC0] = {VALUE_NEGATIVE, 8, 0, 0x80000001},
    [0xD4 - 0xC0] = {VALUE_OTHER, 0, 2, 0},
    [0xD5 - 0xC0] = {VALUE_OTHER, 0, 3, 0},
    [0xD6 - 0xC0] = {VALUE_OTHER, 0, 5, 0},
    [0xD7 - 0xC0] = {VALUE_OTHER, 0, 9, 0},
    [0xD8 - 0xC0] = {VALUE_OTHER, 0, 17, 0},
    [0xD9 - 0xC0] = {VALUE_STR, 1, 0, 0x20},
    [0xDA - 0xC0] = {VALUE_STR, 2, 0, 0x100},
    [0xDB - 0xC0] = {VALUE_STR, 4, 0, 0x10000},
    [0xDC - 0xC0] = {VALUE_ARRAY, 2, 0, 0x10},
    [0xDD - 0xC0] = {VALUE_ARRAY, 4, 0, 0x10000},
    [0xDE - 0xC0] = {VALUE_MAP, 2, 0, 0x10},
    [0xDF - 0xC0] = {VALUE_MAP, 4, 0, 0x10000},
};

/* A signed form: negative numbers only in the shortest of them, since msgpack writes the others as unsigned. */
static void judge_signed(struct value *value, unsigned width, uint64_t least) {
  unsigned shift = 64 - 8 * width;
  int64_t number = (int64_t)(value->number << shift) >> shift;
  value->number = (uint64_t)number;
  if (number >= 0) {
    value->kind = VALUE_UINT;
    value->shortest = false;
  } else {
    value->shortest = UINT64_C(0) - (uint64_t)number >= least;
  }
}

/* A value whose marker is not a value of its own. False: broken. */
static bool read_marked(struct walk *walk, uint8_t byte, struct value *value) {
  const struct marker *marker = &markers[byte - 0xC0];
  value->kind = (enum value_kind)marker->kind;
  if (marker->kind == VALUE_BROKEN || !take_number(walk, marker->width, &value->number)) return false;
  value->shortest = value->number >= marker->least;
  switch (marker->kind) {
    case VALUE_BOOL:
      value->number = byte == 0xC3;
      return true;
    case VALUE_NEGATIVE:
      judge_signed(value, marker->width, marker->least);
      return true;
    case VALUE_STR:
    case VALUE_BIN:
      return take_span(walk, value->number, value);
    case VALUE_OTHER:
      return take_span(walk, value->number + marker->extra, value);
    default:
      return true;
  }
}

/* An array or a map that claims more items than bytes are left cannot be. */
static bool count_is_possible(const struct walk *walk, const struct value *value) {
  uint64_t left = (uint64_t)(walk->end - walk->at);
  if (value->kind == VALUE_ARRAY) return value->number <= left;
  return value->kind != VALUE_MAP || value->number <= left / 2;
}

static struct value read_value(struct walk *walk) {
  struct value value = {.kind = VALUE_BROKEN, .shortest = true};
  if (walk->at == walk->end) return value;
  uint8_t byte = *walk->at++;
  bool sound = true;
  if (byte < 0x80) {
    value.kind = VALUE_UINT;
    value.number = byte;
  } else if (byte >= 0xE0) {
    value.kind = VALUE_NEGATIVE;
    value.number = (uint64_t)(int64_t)(int8_t)byte;
  } else if (byte >= 0xC0) {
    sound = read_marked(walk, byte, &value);
  } else if (byte >= 0xA0) {
    value.kind = VALUE_STR;
    sound = take_span(walk, byte & 31, &value);
  } else {
    value.kind = byte < 0x90 ? VALUE_MAP : VALUE_ARRAY;
    value.number = byte & 15;
  }
  if (!sound || !count_is_possible(walk, &value)) value.kind = VALUE_BROKEN;
  return value;
}

/* Passes over one value with all inside it. The body's map is depth 1. Returns what is wrong, or NULL. */
static const char *skip_value(struct walk *walk) {
  uint64_t left[event_body_depth_max]; /* values still to come at each depth */
  unsigned depth = 1;
  left[0] = 1;
  while (depth > 0) {
    if (left[depth - 1] == 0) {
      depth--;
      continue;
    }
    left[depth - 1]--;
    struct value value = read_value(walk);
    if (value.kind == VALUE_BROKEN) return "is broken off or no msgpack";
    if (value.kind != VALUE_ARRAY && value.kind != VALUE_MAP) continue;
    if (depth == event_body_depth_max) return "is nested too deeply";
    left[depth++] = value.kind == VALUE_MAP ? 2 * value.number : value.number;
  }
  return NULL;
}

static const char *store_span(const struct event_field *field, const struct value *value, void *place) {
  enum value_kind kind = field->type == FIELD_STR ? VALUE_STR : VALUE_BIN;
  if (value->kind != kind) return kind == VALUE_STR ? "must be str" : "must be bin";
  if (value->span.size == 0 && !field->required) return "is empty and should have been left out";
  if (field->type == FIELD_STR && !text_is_utf8(value->span)) return "must be UTF-8";
  if (field->type == FIELD_JSON && value->span.size == 0) return "must not be empty";
  if (field->type == FIELD_IDS && value->span.size % id_bytes != 0) return "must be 16 bytes an id";
  memcpy(place, &value->span, sizeof value->span);
  return NULL;
}

static const char *store_id(const struct event_field *field, const struct value *value, void *place) {
  if (value->kind != VALUE_BIN || value->span.size != id_bytes) return "must be bin of 16 bytes";
  memcpy(place, value->span.data, id_bytes);
  if (!field->required && id_is_zero(place)) return "is zero and should have been left out";
  return NULL;
}

static const char *store_number(const struct event_field *field, const struct value *value, void *place) {
  bool negative = value->kind == VALUE_NEGATIVE && field->type == FIELD_TIME;
  if (value->kind != VALUE_UINT && !negative) return field->type == FIELD_TIME ? "must be int" : "must be uint";
  if (field->type == FIELD_TIME && !negative && value->number > INT64_MAX) return "is beyond any time";
  if (value->number == 0 && !field->required) return "is zero and should have been left out";
  memcpy(place, &value->number, sizeof value->number);
  return NULL;
}

static const char *store_bool(const struct event_field *field, const struct value *value, void *place) {
  if (value->kind != VALUE_BOOL) return "must be bool";
  if (value->number == 0 && !field->required) return "is false and should have been left out";
  *(bool *)place = value->number != 0;
  return NULL;
}

static const char *store_word(const struct event_field *field, const struct value *value, void *place) {
  if (value->kind != VALUE_UINT) return "must be uint";
  if (value->number > UINT8_MAX || event_word_text(field->type, (unsigned)value->number)[0] == 0)
    return "is no word of its vocabulary";
  unsigned word = (unsigned)value->number;
  memcpy(place, &word, sizeof word);
  return NULL;
}

/* Reads the value of a known field into the event. Returns what is wrong, or NULL. */
static const char *read_field(struct walk *walk, const struct event_field *field, void *place) {
  struct value value = read_value(walk);
  if (value.kind == VALUE_BROKEN) return "is broken off or no msgpack";
  if (!value.shortest) return "is not in its shortest form";
  switch (field->type) {
    case FIELD_ID:
      return store_id(field, &value, place);
    case FIELD_BIN:
    case FIELD_STR:
    case FIELD_JSON:
    case FIELD_IDS:
      return store_span(field, &value, place);
    case FIELD_U64:
    case FIELD_TIME:
      return store_number(field, &value, place);
    case FIELD_BOOL:
      return store_bool(field, &value, place);
    default:
      return store_word(field, &value, place);
  }
}

static enum status refuse(struct fault *fault, const struct event *event, const char *field, const char *problem) {
  const char *joint = field != NULL ? " field " : "";
  return fault_set(fault, STATUS_CORRUPT, field, "event %" PRIu64 " (%s):%s%s %s", event->seq, event_type_text(event->type),
                   joint, field != NULL ? field : "", problem);
}

/* The next pair's key: an unsigned number of 1–255 in its shortest form, higher than the one before. NULL, or what is wrong. */
static const char *read_key(struct walk *walk, unsigned *last_key) {
  if (walk->at < walk->end && *walk->at < 0x80 && *walk->at > *last_key) { /* the usual one */
    *last_key = *walk->at++;
    return NULL;
  }
  struct value key = read_value(walk);
  if (key.kind != VALUE_UINT || !key.shortest || key.number == 0 || key.number > UINT8_MAX)
    return "a key is not a number from 1 to 255 in its shortest form";
  if (key.number <= *last_key) return "keys do not ascend";
  *last_key = (unsigned)key.number;
  return NULL;
}

static enum status decode_body(struct walk walk, const struct event_schema *schema, struct event *event, struct fault *fault) {
  struct value map = read_value(&walk);
  if (map.kind != VALUE_MAP || !map.shortest) return refuse(fault, event, NULL, "the body is not a map in its shortest form");
  struct field_cursor cursor = field_cursor_start(schema);
  unsigned key = 0;
  for (uint64_t i = 0; i < map.number; i++) {
    const char *problem = read_key(&walk, &key);
    if (problem != NULL) return refuse(fault, event, NULL, problem);
    for (; cursor.field != NULL && cursor.field->key < key; field_cursor_next(&cursor))
      if (cursor.field->required) return refuse(fault, event, cursor.field->name, "is missing");
    if (cursor.field == NULL || cursor.field->key != key) {
      problem = skip_value(&walk);
      if (problem != NULL) return refuse(fault, event, NULL, problem);
      continue;
    }
    problem = read_field(&walk, cursor.field, (void *)field_place(&cursor, event));
    if (problem != NULL) return refuse(fault, event, cursor.field->name, problem);
    field_cursor_next(&cursor);
  }
  for (; cursor.field != NULL; field_cursor_next(&cursor))
    if (cursor.field->required) return refuse(fault, event, cursor.field->name, "is missing");
  if (walk.at != walk.end) return refuse(fault, event, NULL, "bytes are left over behind the body");
  return STATUS_OK;
}

enum status event_decode(struct event_decoder *decoder, struct bytes record, struct event *ret_event, struct fault *fault) {
  struct event *event = &decoder->event;
  if (record_header_decode(record, event) != STATUS_OK)
    return fault_set(fault, STATUS_CORRUPT, NULL, "a record of %zu bytes has a header that cannot be", record.size);
  const struct event_schema *schema = event_schema_find(event->type);
  if (event->type == EVENT_none || event->version == 0)
    return fault_set(fault, STATUS_CORRUPT, NULL, "event %" PRIu64 " has type %u, version %u: no event has a 0 there",
                     event->seq, (unsigned)event->type, event->version);
  if (schema == NULL || event->version > schema->version)
    return fault_set(fault, STATUS_FOREIGN, NULL,
                     "event %" PRIu64
                     " has type %u (%s), version %u, which Orbit %s does not know: the log was written by a "
                     "newer Orbit; use that version",
                     event->seq, (unsigned)event->type, schema != NULL ? schema->text : "unknown", event->version,
                     ORBIT_VERSION);
  struct walk walk = {record.data + record_header_bytes, record.data + record.size};
  enum status status = decode_body(walk, schema, event, fault);
  if (status == STATUS_OK) *ret_event = *event;
  return status;
}
