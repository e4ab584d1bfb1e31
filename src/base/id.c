/* Owns the layout of identifiers. */
#include "base/id.h"

#include <assert.h>
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

/* Every answer has some ids in it, so that both ways go by table. */
static const char byte_digits[] =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b"
    "3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f7071727374757677"
    "78797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3"
    "b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeef"
    "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
static_assert(sizeof byte_digits == 2 * 256 + 1, "two digits a byte");

void id_format(const struct id *id, char out[id_chars]) {
  for (unsigned i = 0; i < id_bytes; i++) memcpy(out + 2 * i, byte_digits + 2 * id->bytes[i], 2);
}

enum { digit_known = 0x10 }; /* beside the value of what is a digit */
/* clang-format off */
static const uint8_t digit_values[256] = {
    ['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13, ['4'] = 0x14, ['5'] = 0x15, ['6'] = 0x16, ['7'] = 0x17,
    ['8'] = 0x18, ['9'] = 0x19, ['a'] = 0x1A, ['b'] = 0x1B, ['c'] = 0x1C, ['d'] = 0x1D, ['e'] = 0x1E, ['f'] = 0x1F,
};
/* clang-format on */

bool id_parse(struct bytes text, struct id *ret_id) {
  struct id id;
  unsigned known = digit_known;
  if (text.size != id_chars) return false;
  for (unsigned i = 0; i < id_bytes; i++) {
    unsigned high = digit_values[text.data[2 * i]], low = digit_values[text.data[2 * i + 1]];
    known &= high & low;
    id.bytes[i] = (uint8_t)(high << 4 | (low & 15));
  }
  if (known == 0 || id_is_zero(&id)) return false;
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
