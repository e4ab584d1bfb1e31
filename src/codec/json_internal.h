/* What the files of the JSON tokenizer share among themselves; users include codec/json.h. */
#ifndef ORBIT_CODEC_JSON_INTERNAL_H
#define ORBIT_CODEC_JSON_INTERNAL_H

#include <endian.h>
#include <string.h>

#include "codec/json.h"

/* A key on its way through a sort: its first eight decoded bytes, big-endian, settle most comparisons without a look at the
 * text. */
struct json_key {
  uint64_t prefix;
  uint32_t token;
};

/* Reads a string from behind its opening quote at *ret_at. OK: token's start, end, count and escaped are set and *ret_at is
 * behind the closing quote. INVALID_ARGUMENT: *ret_problem says what (static) and *ret_at is the byte to blame. NO_MEMORY. */
enum status json_scan_string(struct json *json, size_t *ret_at, struct json_token *token, const char **ret_problem);

/* The keys of an object, sorted by their decoded bytes, in json->keys from base on; count of them is the object's. What stands
 * below base is kept. Valid until the next call. NO_MEMORY. */
enum status json_sort_keys(struct json *json, uint32_t object, size_t base);
/* The token of a key that an earlier member of the object has too, or 0. NO_MEMORY. */
enum status json_find_duplicate(struct json *json, uint32_t object, uint32_t *ret_key);

/* Bytes that minifying the token would take away. */
size_t json_space(const struct json *json, uint32_t token);

static const uint64_t json_every_byte = UINT64_C(0x0101010101010101);
static const uint64_t json_every_high_bit = UINT64_C(0x8080808080808080);

/* Length of the run at text that needs no thought in a string: no quote, backslash or control character and, where `stop` is
 * json_every_high_bit and not 0, nothing outside ASCII. Eight bytes a step: a byte equals q when the byte of word ^ q is zero,
 * and (v - 0x01…) & ~v & 0x80… marks zero bytes exactly up to the lowest one. */
static inline size_t json_plain_run(const uint8_t *text, size_t size, uint64_t stop) {
  size_t at = 0;
  for (; size - at >= 8; at += 8) {
    uint64_t word;
    memcpy(&word, text + at, 8);
    word = le64toh(word);
    uint64_t quote = word ^ json_every_byte * '"', backslash = word ^ json_every_byte * '\\';
    uint64_t marks = ((word - json_every_byte * 0x20) & ~word) | ((quote - json_every_byte) & ~quote) |
                     ((backslash - json_every_byte) & ~backslash);
    marks = (marks & json_every_high_bit) | (word & stop);
    if (marks != 0) return at + (size_t)__builtin_ctzll(marks) / 8;
  }
  for (; at < size; at++)
    if (text[at] < 0x20 || text[at] == '"' || text[at] == '\\' || (stop != 0 && text[at] >= 0x80)) break;
  return at;
}

static inline bool json_is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

#endif
