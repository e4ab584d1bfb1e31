/* Borrowed spans and owned, capped buffers. */
#ifndef ORBIT_BASE_BYTES_H
#define ORBIT_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/guard.h"

/* Bytes that belong to somebody else. data may be NULL only when size is 0. "Absent" is data == NULL. */
struct bytes {
  const uint8_t *data;
  size_t size;
};

static inline struct bytes bytes_of(const void *data, size_t size) { return (struct bytes){data, size}; }
/* Without the NUL. */
static inline struct bytes bytes_text(const char *text) { return bytes_of(text, strlen(text)); }
static inline bool bytes_equal(struct bytes a, struct bytes b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
bool bytes_equal_text(struct bytes a, const char *text);
int bytes_compare(struct bytes a, struct bytes b); /* memcmp order, shorter first on a tie */
/* Number of code points in valid UTF-8. */
size_t bytes_count_chars(struct bytes utf8);
/* True when all of it is visible ASCII, '!' to '~'; also when it is empty. */
bool bytes_is_visible(struct bytes text);
/* True when no byte is below 0x20 or 0x7F, whatever else it is; also when it is empty. */
bool bytes_is_printed(struct bytes text);
/* True when it is well-formed UTF-8 (no overlong forms, surrogates, or values over U+10FFFF). */
bool bytes_is_utf8(struct bytes text);

/* Length of the well-formed UTF-8 sequence that text begins with, 0 when there is none; size is at least 1. */
size_t bytes_utf8_sequence(const uint8_t *text, size_t size);

/* A growing array of bytes that it owns. Once an append would pass `limit` or memory ends, `failed` is set, nothing more is
 * appended, and what stands there stays; callers check `failed` once at the end. */
struct buffer {
  uint8_t *data;
  size_t size;
  size_t capacity;
  size_t limit;
  bool failed;
};

void buffer_init(struct buffer *buffer, size_t limit); /* allocates nothing */
void buffer_clear(struct buffer *buffer);              /* frees; usable again with the same limit */
void buffer_reset(struct buffer *buffer);              /* size 0, keeps memory, clears failed */
/* buffer_reserve when there is no such room yet. */
uint8_t *buffer_make_room(struct buffer *buffer, size_t size);
/* Room for size more bytes: a pointer to write at, or NULL with failed set. Call buffer_commit with what was written. */
static inline uint8_t *buffer_reserve(struct buffer *buffer, size_t size) {
  bool fits = size <= buffer->capacity - buffer->size && !buffer->failed && buffer->data != NULL;
  return fits ? buffer->data + buffer->size : buffer_make_room(buffer, size);
}
static inline void buffer_commit(struct buffer *buffer, size_t size) {
  must(size <= buffer->capacity - buffer->size);
  buffer->size += size;
}
static inline void buffer_append(struct buffer *buffer, const void *data, size_t size) {
  uint8_t *room = buffer_reserve(buffer, size);
  if (room == NULL || size == 0) return;
  memcpy(room, data, size);
  buffer->size += size;
}
static inline void buffer_append_bytes(struct buffer *buffer, struct bytes bytes) {
  buffer_append(buffer, bytes.data, bytes.size);
}
static inline void buffer_append_text(struct buffer *buffer, const char *text) { buffer_append(buffer, text, strlen(text)); }
static inline void buffer_append_char(struct buffer *buffer, char c) { buffer_append(buffer, &c, 1); }
void buffer_append_u64(struct buffer *buffer, uint64_t value); /* decimal */
void buffer_append_format(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct bytes buffer_bytes(const struct buffer *buffer); /* valid until the next change */

/* Decimal digits of value into out (20 bytes at most, no NUL); returns their number. */
size_t u64_format(uint64_t value, char *out);

#endif
