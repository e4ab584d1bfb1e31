/* Numbers and ids of a row's value, one behind the other, little-endian. put_ returns the place behind what it wrote, take_
 * moves the place behind what it read: the caller knows that there is room. Part of the rows alone. */
#ifndef ORBIT_STATE_ROWS_NUMBERS_H
#define ORBIT_STATE_ROWS_NUMBERS_H

#include <endian.h>
#include <string.h>

#include "base/id.h"

static inline uint8_t *put_8(uint8_t *out, uint8_t value) {
  *out = value;
  return out + 1;
}
static inline uint8_t *put_16(uint8_t *out, uint16_t value) {
  value = htole16(value);
  memcpy(out, &value, sizeof value);
  return out + sizeof value;
}
static inline uint8_t *put_32(uint8_t *out, uint32_t value) {
  value = htole32(value);
  memcpy(out, &value, sizeof value);
  return out + sizeof value;
}
static inline uint8_t *put_64(uint8_t *out, uint64_t value) {
  value = htole64(value);
  memcpy(out, &value, sizeof value);
  return out + sizeof value;
}
static inline uint8_t *put_id(uint8_t *out, const struct id *id) {
  memcpy(out, id->bytes, id_bytes);
  return out + id_bytes;
}

static inline uint8_t take_8(const uint8_t **in) { return *(*in)++; }
static inline uint16_t take_16(const uint8_t **in) {
  uint16_t value;
  memcpy(&value, *in, sizeof value);
  *in += sizeof value;
  return le16toh(value);
}
static inline uint32_t take_32(const uint8_t **in) {
  uint32_t value;
  memcpy(&value, *in, sizeof value);
  *in += sizeof value;
  return le32toh(value);
}
static inline uint64_t take_64(const uint8_t **in) {
  uint64_t value;
  memcpy(&value, *in, sizeof value);
  *in += sizeof value;
  return le64toh(value);
}
static inline struct id take_id(const uint8_t **in) {
  struct id id;
  memcpy(id.bytes, *in, id_bytes);
  *in += id_bytes;
  return id;
}

#endif
