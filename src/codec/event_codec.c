/* Owns the making of records: header, body, chain. */
#include "codec/event_codec.h"

#include <endian.h>
#include <msgpack.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/guard.h"
#include "codec/event_codec_internal.h"

enum {
  field_head_bytes_max = 10, /* key, and the longest head that a value has: marker and eight bytes */
  map_head_bytes_max = 3,    /* a record has less than 2^16 fields */
};

/* Writes into room that was measured before, so that the packer's many small pieces cost no check each. */
static int append_piece(void *data, const char *piece, size_t size) {
  uint8_t **at = data;
  if (size == 1) **at = (uint8_t)*piece; /* every key, most numbers */
  else memcpy(*at, piece, size);
  *at += size;
  return 0;
}

static void pack_value(msgpack_packer *packer, const struct event_field *field, const void *place) {
  struct bytes span;
  switch (field->type) {
    case FIELD_ID:
      (void)msgpack_pack_bin_with_body(packer, place, id_bytes);
      return;
    case FIELD_STR:
      span = field_span(place);
      must(text_is_utf8(span));
      (void)msgpack_pack_str_with_body(packer, span.size != 0 ? (const void *)span.data : "", span.size);
      return;
    case FIELD_BIN:
    case FIELD_JSON:
    case FIELD_IDS:
      span = field_span(place);
      must(field->type != FIELD_JSON || span.size != 0);
      must(field->type != FIELD_IDS || span.size % id_bytes == 0);
      (void)msgpack_pack_bin_with_body(packer, span.size != 0 ? (const void *)span.data : "", span.size);
      return;
    case FIELD_U64:
      (void)msgpack_pack_uint64(packer, field_number(place));
      return;
    case FIELD_TIME:
      (void)msgpack_pack_int64(packer, (int64_t)field_number(place));
      return;
    case FIELD_BOOL:
      (void)(*(const bool *)place ? msgpack_pack_true(packer) : msgpack_pack_false(packer));
      return;
    default:
      must(event_word_text(field->type, field_word(place))[0] != 0);
      (void)msgpack_pack_unsigned_int(packer, field_word(place));
  }
}

/* How much room the body may need, how many fields it will have, and which (bit i: the i-th along the cursor). */
struct body_plan {
  size_t room;
  uint32_t count;
  uint64_t present;
};

static struct body_plan plan_body(const struct event *event, const struct event_schema *schema) {
  struct body_plan plan = {map_head_bytes_max, 0, 0};
  must(schema->field_count + event_schema_common()->field_count <= 64);
  struct field_cursor cursor = field_cursor_start(schema);
  for (unsigned i = 0; cursor.field != NULL; i++, field_cursor_next(&cursor)) {
    const void *place = field_place(&cursor, event);
    if (!cursor.field->required && field_is_empty(cursor.field, place)) continue;
    size_t span_size = field_is_span(cursor.field) ? field_span(place).size : id_bytes;
    must(span_size <= event_body_bytes_max);
    plan.present |= UINT64_C(1) << i;
    plan.count++;
    plan.room += field_head_bytes_max + span_size;
  }
  return plan;
}

static void pack_body(msgpack_packer *packer, const struct event *event, const struct event_schema *schema,
                      const struct body_plan *plan) {
  (void)msgpack_pack_map(packer, plan->count);
  struct field_cursor cursor = field_cursor_start(schema);
  for (unsigned i = 0; cursor.field != NULL; i++, field_cursor_next(&cursor)) {
    if ((plan->present >> i & 1) == 0) continue;
    (void)msgpack_pack_uint8(packer, cursor.field->key);
    pack_value(packer, cursor.field, field_place(&cursor, event));
  }
}

static struct record_header header_of(const struct event *event, size_t body_size) {
  must(body_size <= event_body_bytes_max);
  must(event->time_us >= 0);
  struct record_header header = {
      .length = htole32((uint32_t)body_size),
      .type = htole16((uint16_t)event->type),
      .version = htole16(event->version),
      .flags = htole32(event->last_of_commit ? record_flag_last : 0),
      .offset = htole32(event->offset),
      .seq = htole64(event->seq),
      .prev = htole64(event->prev),
      .time_us = htole64((uint64_t)event->time_us),
  };
  memcpy(header.stream, event->stream.bytes, id_bytes);
  return header;
}

enum status record_encode(const struct event *event, struct buffer *out) {
  const struct event_schema *schema = event_schema_find(event->type);
  must(schema != NULL && event->version >= 1 && event->version <= schema->version);
  struct body_plan plan = plan_body(event, schema);
  uint8_t *room = buffer_reserve(out, record_header_bytes + plan.room);
  if (room == NULL) return STATUS_NO_MEMORY;
  uint8_t *body = room + record_header_bytes, *at = body;
  msgpack_packer packer;
  msgpack_packer_init(&packer, &at, append_piece);
  pack_body(&packer, event, schema, &plan);
  struct record_header header = header_of(event, (size_t)(at - body));
  memcpy(room, &header, sizeof header);
  buffer_commit(out, (size_t)(at - room));
  return STATUS_OK;
}

uint64_t record_chain(struct bytes record, uint64_t previous_chain) {
  must(record.size >= record_header_bytes);
  uint64_t seed = XXH3_64bits_withSeed(record.data, record_chained_bytes, previous_chain);
  return XXH3_64bits_withSeed(record.data + record_header_bytes, record.size - record_header_bytes, seed);
}

uint64_t record_seal(uint8_t *record, size_t size, bool last_of_commit, uint32_t offset, uint64_t previous_chain) {
  must(size >= record_header_bytes);
  uint32_t flags = htole32(last_of_commit ? record_flag_last : 0), offset_le = htole32(offset);
  memcpy(record + offsetof(struct record_header, flags), &flags, sizeof flags);
  memcpy(record + offsetof(struct record_header, offset), &offset_le, sizeof offset_le);
  uint64_t chain = record_chain(bytes_of(record, size), previous_chain), chain_le = htole64(chain);
  memcpy(record + offsetof(struct record_header, chain), &chain_le, sizeof chain_le);
  return chain;
}

enum status record_header_decode(struct bytes record, struct event *ret_event) {
  struct record_header header;
  if (record.size < sizeof header) return STATUS_CORRUPT;
  memcpy(&header, record.data, sizeof header);
  uint32_t length = le32toh(header.length), flags = le32toh(header.flags);
  uint64_t time_us = le64toh(header.time_us);
  if (length > event_body_bytes_max || length != record.size - sizeof header) return STATUS_CORRUPT;
  if ((flags & ~(uint32_t)record_flag_last) != 0 || time_us > INT64_MAX) return STATUS_CORRUPT;
  memset(ret_event, 0, sizeof *ret_event);
  ret_event->type = (enum event_type)le16toh(header.type);
  ret_event->version = le16toh(header.version);
  ret_event->last_of_commit = flags == record_flag_last;
  ret_event->offset = le32toh(header.offset);
  ret_event->seq = le64toh(header.seq);
  ret_event->prev = le64toh(header.prev);
  ret_event->time_us = (int64_t)time_us;
  memcpy(ret_event->stream.bytes, header.stream, id_bytes);
  ret_event->chain = le64toh(header.chain);
  return STATUS_OK;
}
