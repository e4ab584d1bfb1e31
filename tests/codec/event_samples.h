/* Events for the tests of the codec, filled by the table: fixed values for golden records, random ones for properties. Texts
 * are static or live in the pool that the caller gives. */
#ifndef ORBIT_TESTS_CODEC_EVENT_SAMPLES_H
#define ORBIT_TESTS_CODEC_EVENT_SAMPLES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/event_codec.h"
#include "support/support.h"

enum { sample_pool_bytes = 1 << 17 };

/* Texts of one event at a time: emptied by setting used to 0. */
struct sample_pool {
  uint8_t bytes[sample_pool_bytes];
  size_t used;
};

static inline uint8_t *sample_take(struct sample_pool *pool, size_t size) {
  assert_true(size <= sample_pool_bytes - pool->used);
  uint8_t *room = pool->bytes + pool->used;
  pool->used += size;
  return room;
}

static inline struct bytes sample_text(struct sample_pool *pool, const char *text) {
  size_t size = strlen(text);
  uint8_t *room = sample_take(pool, size + 1);
  memcpy(room, text, size + 1);
  return bytes_of(room, size);
}

static inline unsigned sample_words(unsigned field_type) {
  unsigned count = 0;
  while (event_word_text(field_type, count + 1)[0] != 0) count++;
  return count;
}

static inline struct event sample_start(const struct event_schema *schema) {
  struct event event;
  memset(&event, 0, sizeof event);
  event.type = schema->type;
  event.version = schema->version;
  return event;
}

static inline void *sample_place(struct event *event, const struct event_field *field) {
  return (field->key < 10 ? (uint8_t *)&event->common : (uint8_t *)&event->body) + field->offset;
}

static inline void sample_put_span(void *place, struct bytes span) { memcpy(place, &span, sizeof span); }
static inline void sample_put_u64(void *place, uint64_t number) { memcpy(place, &number, sizeof number); }

/* ---- fixed values: each field has one that follows from its key and name alone ---- */

static inline struct bytes sample_fixed_ids(struct sample_pool *pool, unsigned key, unsigned count) {
  uint8_t *room = sample_take(pool, (size_t)count * id_bytes);
  for (unsigned i = 0; i < count * id_bytes; i++) room[i] = (uint8_t)(16 * key + i);
  return bytes_of(room, (size_t)count * id_bytes);
}

static inline void sample_fix_field(struct sample_pool *pool, const struct event_field *field, void *place) {
  static const uint64_t numbers[] = {7, 200, 30000, 1000000, UINT64_C(9007199254740993)};
  char text[160];
  unsigned word;
  switch (field->type) {
    case FIELD_ID:
      memcpy(place, sample_fixed_ids(pool, field->key, 1).data, id_bytes);
      return;
    case FIELD_IDS:
    case FIELD_BIN:
      sample_put_span(place, sample_fixed_ids(pool, field->key, 2));
      return;
    case FIELD_STR:
      (void)snprintf(text, sizeof text, "%s — \"€\"", field->name);
      sample_put_span(place, sample_text(pool, text));
      return;
    case FIELD_JSON:
      (void)snprintf(text, sizeof text, "{\"%s\":[1.10,123456789012345678901234567890,\"\\u00e9\",null]}", field->name);
      sample_put_span(place, sample_text(pool, text));
      return;
    case FIELD_U64:
      sample_put_u64(place, numbers[field->key % (sizeof numbers / sizeof *numbers)]);
      return;
    case FIELD_TIME:
      sample_put_u64(place, UINT64_C(1767225600000000) + field->key * UINT64_C(1000001));
      return;
    case FIELD_BOOL:
      *(bool *)place = true;
      return;
    default:
      word = 1 + field->key % sample_words(field->type);
      memcpy(place, &word, sizeof word);
  }
}

/* Every field present. */
static inline struct event sample_fixed_event(struct sample_pool *pool, const struct event_schema *schema) {
  struct event event = sample_start(schema);
  event.seq = 0x0102030405060708;
  event.prev = 0x0102030405060700;
  event.time_us = 1767225600123456; /* 2026-01-01T00:00:00.123456Z */
  event.offset = 2;
  event.last_of_commit = true;
  for (unsigned i = 0; i < id_bytes; i++) event.stream.bytes[i] = (uint8_t)(0xA0 + i);
  for (const struct event_field *field = event_schema_common()->fields; field->key != 0; field++)
    sample_fix_field(pool, field, sample_place(&event, field));
  for (const struct event_field *field = schema->fields; field->key != 0; field++)
    sample_fix_field(pool, field, sample_place(&event, field));
  return event;
}

/* ---- random values ---- */

/* Small and large numbers alike: every width of the encoding comes up. */
static inline uint64_t sample_random_number(uint64_t *seed) { return test_random(seed) >> (test_random(seed) % 64); }

static inline struct bytes sample_random_bytes(struct sample_pool *pool, uint64_t *seed, size_t size) {
  uint8_t *room = sample_take(pool, size + 1);
  for (size_t i = 0; i < size; i++) room[i] = (uint8_t)test_random(seed);
  return bytes_of(room, size);
}

/* Sizes around the bounds of str and bin heads. */
static inline size_t sample_random_size(uint64_t *seed) {
  static const size_t sizes[] = {0, 1, 2, 15, 16, 31, 32, 33, 127, 128, 255, 256, 257, 1000};
  return sizes[test_random(seed) % (sizeof sizes / sizeof *sizes)];
}

static inline struct bytes sample_random_text(struct sample_pool *pool, uint64_t *seed) {
  static const char *const signs[] = {"a", "Z", "0", " ", "\"", "\\", "\n", "\x7f", "é", "€", "𝄞", "\xEF\xBF\xBF"};
  size_t size = sample_random_size(seed), used = 0;
  uint8_t *room = sample_take(pool, size + 1);
  while (used < size) {
    const char *sign = signs[test_random(seed) % (sizeof signs / sizeof *signs)];
    size_t length = strlen(sign);
    if (length > size - used) sign = "x", length = 1;
    memcpy(room + used, sign, length);
    used += length;
  }
  return bytes_of(room, size);
}

static inline void sample_random_field(struct sample_pool *pool, uint64_t *seed, const struct event_field *field, void *place) {
  char text[32];
  unsigned word;
  if (!field->required && test_random(seed) % 3 == 0) return;
  switch (field->type) {
    case FIELD_ID:
      memcpy(place, sample_random_bytes(pool, seed, id_bytes).data, id_bytes);
      return;
    case FIELD_IDS:
      sample_put_span(place, sample_random_bytes(pool, seed, id_bytes * (size_t)(test_random(seed) % 20)));
      return;
    case FIELD_BIN:
      sample_put_span(place, sample_random_bytes(pool, seed, sample_random_size(seed)));
      return;
    case FIELD_STR:
      sample_put_span(place, sample_random_text(pool, seed));
      return;
    case FIELD_JSON:
      (void)snprintf(text, sizeof text, "[%llu]", (unsigned long long)sample_random_number(seed));
      sample_put_span(place, sample_text(pool, text));
      return;
    case FIELD_U64:
      sample_put_u64(place, sample_random_number(seed));
      return;
    case FIELD_TIME:
      sample_put_u64(place,
                     test_random(seed) % 2 != 0 ? sample_random_number(seed) >> 1 : 0 - (sample_random_number(seed) >> 1));
      return;
    case FIELD_BOOL:
      *(bool *)place = test_random(seed) % 2 != 0;
      return;
    default:
      word = 1 + (unsigned)(test_random(seed) % sample_words(field->type));
      memcpy(place, &word, sizeof word);
  }
}

static inline struct event sample_random_event(struct sample_pool *pool, uint64_t *seed, const struct event_schema *schema) {
  struct event event = sample_start(schema);
  event.seq = sample_random_number(seed);
  event.prev = sample_random_number(seed);
  event.time_us = (int64_t)(sample_random_number(seed) >> 1);
  event.offset = (uint32_t)test_random(seed);
  event.last_of_commit = test_random(seed) % 2 != 0;
  memcpy(event.stream.bytes, sample_random_bytes(pool, seed, id_bytes).data, id_bytes);
  for (const struct event_field *field = event_schema_common()->fields; field->key != 0; field++)
    sample_random_field(pool, seed, field, sample_place(&event, field));
  for (const struct event_field *field = schema->fields; field->key != 0; field++)
    sample_random_field(pool, seed, field, sample_place(&event, field));
  return event;
}

/* ---- records ---- */

/* Calls visit for each event of the table. */
static inline void sample_each_schema(void (*visit)(const struct event_schema *schema)) {
  unsigned count = 0;
  for (unsigned type = 0; type <= EVENT_type_end; type++) {
    const struct event_schema *schema = event_schema_find(type);
    if (schema == NULL) continue;
    visit(schema);
    count++;
  }
  assert_true(count > 20);
}

static inline void sample_encode(const struct event *event, struct buffer *out) {
  buffer_reset(out);
  assert_int_equal(record_encode(event, out), STATUS_OK);
}

static inline struct bytes sample_body(struct bytes record) {
  return bytes_of(record.data + record_header_bytes, record.size - record_header_bytes);
}

/* Bytes of a line like "82 01 c4 10 11*16 a3'abc'": hexadecimal bytes, XX*N repeats one, '…' is ASCII. */
static inline struct bytes sample_bytes(struct sample_pool *pool, const char *line) {
  size_t size = 0;
  uint8_t *out = sample_take(pool, 4096);
  for (const char *at = line; *at != 0;) {
    if (*at == ' ') {
      at++;
    } else if (*at == '\'') {
      for (at++; *at != '\''; at++) out[size++] = (uint8_t)*at;
      at++;
    } else {
      char pair[3] = {at[0], at[1], 0}, *end = NULL;
      unsigned long times = 1, byte = strtoul(pair, NULL, 16);
      at += 2;
      if (*at == '*') {
        times = strtoul(at + 1, &end, 10);
        at = end;
      }
      for (; times > 0; times--) out[size++] = (uint8_t)byte;
    }
    assert_true(size < 4000);
  }
  return bytes_of(out, size);
}

/* A record with this type, version and body; the rest of the header is 0. */
static inline struct bytes sample_record(struct sample_pool *pool, unsigned type, unsigned version, struct bytes body) {
  uint8_t *record = sample_take(pool, record_header_bytes + body.size);
  memset(record, 0, record_header_bytes);
  record[0] = (uint8_t)body.size;
  record[1] = (uint8_t)(body.size >> 8);
  record[2] = (uint8_t)(body.size >> 16);
  record[4] = (uint8_t)type;
  record[5] = (uint8_t)(type >> 8);
  record[6] = (uint8_t)version;
  record[7] = (uint8_t)(version >> 8);
  memcpy(record + record_header_bytes, body.data, body.size);
  return bytes_of(record, record_header_bytes + body.size);
}

#endif
