/* Owns the layout of identifiers. */
#include "base/id.h"

#include <string.h>

bool id_is_zero(const struct id *id) {
  static const struct id zero;
  return id_equal(id, &zero);
}

int id_compare(const struct id *a, const struct id *b) { return memcmp(a->bytes, b->bytes, id_bytes); }

uint64_t id_hash(const struct id *id) {
  uint64_t high, low;
  memcpy(&high, id->bytes, 8);
  memcpy(&low, id->bytes + 8, 8);
  uint64_t mixed = (high ^ (low * UINT64_C(0x9E3779B97F4A7C15))) * UINT64_C(0xD6E8FEB86659FD93);
  return mixed ^ (mixed >> 32);
}

void id_format(const struct id *id, char out[id_chars]) {
  static const char digits[] = "0123456789abcdef";
  for (unsigned i = 0; i < id_bytes; i++) {
    out[2 * i] = digits[id->bytes[i] >> 4];
    out[2 * i + 1] = digits[id->bytes[i] & 15];
  }
}

static int digit_value(uint8_t digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

bool id_parse(struct bytes text, struct id *ret_id) {
  struct id id;
  if (text.size != id_chars) return false;
  for (unsigned i = 0; i < id_bytes; i++) {
    int high = digit_value(text.data[2 * i]), low = digit_value(text.data[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    id.bytes[i] = (uint8_t)(high * 16 + low);
  }
  if (id_is_zero(&id)) return false;
  *ret_id = id;
  return true;
}

struct id_text id_text(const struct id *id) {
  struct id_text text;
  id_format(id, text.text);
  text.text[id_chars] = 0;
  return text;
}

static void put_big_endian(uint8_t *out, uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; i++) out[i] = (uint8_t)(value >> (8 * (size - 1 - i)));
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t generator_next(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

void id_source_init(struct id_source *source, uint64_t seed) { *source = (struct id_source){.state = seed}; }

struct id id_source_next(struct id_source *source, int64_t now_us) {
  uint64_t ms = (uint64_t)now_us / 1000;
  struct id id = {{0}};
  if (ms > source->last_ms) {
    source->last_ms = ms;
    source->count = 0;
  } else if (++source->count > UINT16_MAX) {
    source->last_ms++;
    source->count = 0;
  }
  put_big_endian(id.bytes, source->last_ms, 6);
  put_big_endian(id.bytes + 6, source->count, 2);
  put_big_endian(id.bytes + 8, generator_next(&source->state), 8);
  return id;
}

uint64_t id_ms(const struct id *id) {
  uint64_t ms = 0;
  for (unsigned i = 0; i < 6; i++) ms = ms << 8 | id->bytes[i];
  return ms;
}

struct id audit_id_make(int64_t time_us, uint64_t seq) {
  struct id id = {{0}};
  put_big_endian(id.bytes, (uint64_t)time_us / 1000, 6);
  put_big_endian(id.bytes + 6, 0, 2);
  put_big_endian(id.bytes + 8, seq, 8);
  return id;
}

uint64_t audit_id_seq(const struct id *audit_id) {
  uint64_t seq = 0;
  for (unsigned i = 8; i < id_bytes; i++) seq = seq << 8 | audit_id->bytes[i];
  return seq;
}
