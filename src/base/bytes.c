/* Owns span comparison, UTF-8 judgement and the growth of buffers. */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

bool bytes_equal_text(struct bytes a, const char *text) { return bytes_equal(a, bytes_text(text)); }

int bytes_compare(struct bytes a, struct bytes b) {
  size_t common = a.size < b.size ? a.size : b.size;
  int order = common != 0 ? memcmp(a.data, b.data, common) : 0;
  if (order != 0) return order;
  return a.size < b.size ? -1 : a.size > b.size;
}

size_t bytes_count_chars(struct bytes utf8) {
  size_t count = 0;
  for (size_t i = 0; i < utf8.size; i++) count += (utf8.data[i] & 0xC0) != 0x80;
  return count;
}

static const uint64_t every_byte = UINT64_C(0x0101010101010101);
static const uint64_t every_high_bit = UINT64_C(0x8080808080808080);

/* The next bytes of a text, at most eight, as one number; those that are missing are letters. */
static uint64_t next_word(struct bytes text, size_t at) {
  uint64_t word = every_byte * 'A';
  if (text.size - at >= sizeof word) memcpy(&word, text.data + at, sizeof word);
  else memcpy(&word, text.data + at, text.size - at);
  return word;
}

/* High bits of the bytes below limit, which is at most 0x80. Above the lowest such byte there may be bits too many, so that the
 * answer is good for "none" and "some". */
static uint64_t marks_below(uint64_t word, uint64_t limit) { return (word - every_byte * limit) & ~word & every_high_bit; }

bool bytes_is_visible(struct bytes text) {
  for (size_t at = 0; at < text.size; at += sizeof(uint64_t)) {
    uint64_t word = next_word(text, at);
    if (marks_below(word, '!') != 0 || ((word | (word + every_byte)) & every_high_bit) != 0) return false;
  }
  return true;
}

bool bytes_is_printed(struct bytes text) {
  for (size_t at = 0; at < text.size; at += sizeof(uint64_t)) {
    uint64_t word = next_word(text, at);
    if ((marks_below(word, ' ') | marks_below(word ^ every_byte * 0x7F, 1)) != 0) return false;
  }
  return true;
}

/* Unicode 15, table 3-7. */
size_t bytes_utf8_sequence(const uint8_t *text, size_t size) {
  uint8_t lead = text[0];
  if (lead < 0x80) return 1;
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > size) return 0;
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (text[1] < low || text[1] > high) return 0;
  for (size_t i = 2; i < length; i++)
    if ((text[i] & 0xC0) != 0x80) return 0;
  return length;
}

bool bytes_is_utf8(struct bytes text) {
  size_t at = 0;
  while (at < text.size) {
    size_t length = bytes_utf8_sequence(text.data + at, text.size - at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

void buffer_init(struct buffer *buffer, size_t limit) { *buffer = (struct buffer){.limit = limit}; }

void buffer_clear(struct buffer *buffer) {
  free(buffer->data);
  buffer_init(buffer, buffer->limit);
}

void buffer_reset(struct buffer *buffer) {
  buffer->size = 0;
  buffer->failed = false;
}

static bool buffer_grow(struct buffer *buffer, size_t needed) {
  size_t capacity = buffer->capacity != 0 ? buffer->capacity : 256;
  while (capacity < needed) capacity = capacity > buffer->limit / 2 ? buffer->limit : capacity * 2;
  uint8_t *data = realloc(buffer->data, capacity);
  if (data == NULL) return false;
  buffer->data = data;
  buffer->capacity = capacity < buffer->limit ? capacity : buffer->limit; /* what may be used of it */
  return true;
}

uint8_t *buffer_make_room(struct buffer *buffer, size_t size) {
  if (buffer->failed || size > buffer->limit - buffer->size ||
      (buffer->size + size > buffer->capacity && !buffer_grow(buffer, buffer->size + size))) {
    buffer->failed = true;
    return NULL;
  }
  if (buffer->data == NULL && !buffer_grow(buffer, 1)) {
    buffer->failed = true;
    return NULL;
  }
  return buffer->data + buffer->size;
}

size_t u64_format(uint64_t value, char *out) {
  char digits[20];
  size_t count = 0;
  do digits[count++] = (char)('0' + value % 10);
  while ((value /= 10) != 0);
  for (size_t i = 0; i < count; i++) out[i] = digits[count - 1 - i];
  return count;
}

void buffer_append_u64(struct buffer *buffer, uint64_t value) {
  char digits[20];
  size_t count = u64_format(value, digits);
  buffer_append(buffer, digits, count);
}

void buffer_append_format(struct buffer *buffer, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  uint8_t *room = length < 0 ? NULL : buffer_reserve(buffer, (size_t)length + 1);
  if (room != NULL) {
    (void)vsnprintf((char *)room, (size_t)length + 1, format, again);
    buffer->size += (size_t)length;
  }
  va_end(again);
}

struct bytes buffer_bytes(const struct buffer *buffer) {
  return bytes_of(buffer->data, buffer->size);
}
