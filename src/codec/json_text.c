/* Owns strings: reading them strictly, decoding escapes, writing them. */
#include "base/guard.h"
#include "codec/json_internal.h"

static const char ends_early[] = "the text ends inside a string";

static int hexadecimal_value(uint8_t digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/* The four digits of \uXXXX whose backslash is at `at`; -1 when they are not there. */
static int32_t code_unit(struct bytes text, size_t at) {
  int32_t unit = 0;
  if (text.size - at < 6 || text.data[at] != '\\' || text.data[at + 1] != 'u') return -1;
  for (size_t i = 2; i < 6; i++) {
    int digit = hexadecimal_value(text.data[at + i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

static uint8_t *put_code_point(uint8_t *out, uint32_t code) {
  if (code < 0x80) {
    *out++ = (uint8_t)code;
  } else if (code < 0x800) {
    *out++ = (uint8_t)(0xC0 | code >> 6);
    *out++ = (uint8_t)(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    *out++ = (uint8_t)(0xE0 | code >> 12);
    *out++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    *out++ = (uint8_t)(0x80 | (code & 0x3F));
  } else {
    *out++ = (uint8_t)(0xF0 | code >> 18);
    *out++ = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    *out++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    *out++ = (uint8_t)(0x80 | (code & 0x3F));
  }
  return out;
}

static const char *take_code_point(struct bytes text, size_t *at, uint8_t **out) {
  int32_t unit = code_unit(text, *at);
  if (unit < 0) return "\\u needs four hexadecimal digits";
  if (unit == 0) return "U+0000 is not allowed in a string";
  if (unit >= 0xDC00 && unit <= 0xDFFF) return "a low surrogate without its high surrogate";
  uint32_t code = (uint32_t)unit;
  if (unit >= 0xD800 && unit <= 0xDBFF) {
    int32_t low = code_unit(text, *at + 6);
    if (low < 0xDC00 || low > 0xDFFF) return "a high surrogate without its low surrogate";
    code = 0x10000 + ((code - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
    *at += 6;
  }
  *at += 6;
  *out = put_code_point(*out, code);
  return NULL;
}

/* Decodes the escape at the backslash *at into *out; NULL, or what is wrong with it. */
static const char *take_escape(struct bytes text, size_t *at, uint8_t **out) {
  if (text.size - *at < 2) return ends_early;
  uint8_t c;
  switch (text.data[*at + 1]) {
    case '"':
      c = '"';
      break;
    case '\\':
      c = '\\';
      break;
    case '/':
      c = '/';
      break;
    case 'b':
      c = '\b';
      break;
    case 'f':
      c = '\f';
      break;
    case 'n':
      c = '\n';
      break;
    case 'r':
      c = '\r';
      break;
    case 't':
      c = '\t';
      break;
    case 'u':
      return take_code_point(text, at, out);
    default:
      return "an escape that JSON does not know";
  }
  *(*out)++ = c;
  *at += 2;
  return NULL;
}

/* Moves *at over what may stand in a string as it is; NULL at a quote or backslash, else what is wrong at *at. */
static const char *skip_plain(struct bytes text, size_t *at) {
  for (;;) {
    *at += json_plain_run(text.data + *at, text.size - *at, json_every_high_bit);
    if (*at == text.size) return ends_early;
    uint8_t c = text.data[*at];
    if (c == '"' || c == '\\') return NULL;
    if (c < 0x80) return "a control character in a string must be escaped";
    do {
      size_t length = bytes_utf8_sequence(text.data + *at, text.size - *at);
      if (length == 0) return "invalid UTF-8";
      *at += length;
    } while (*at < text.size && text.data[*at] >= 0x80);
  }
}

/* A decoded string is never longer than its text, so it has room in scratch at the text's own offset. Nothing there ever moves
 * while the tokens live: the room is made whole, once. */
static uint8_t *decoded_room(struct json *json, size_t start) {
  buffer_reset(&json->scratch);
  uint8_t *room = buffer_reserve(&json->scratch, json->text.size);
  return room != NULL ? room + start : NULL;
}

enum status json_scan_string(struct json *json, size_t *ret_at, struct json_token *token, const char **ret_problem) {
  struct bytes text = json->text;
  size_t start = *ret_at, at = start, run = start; /* run: first byte that is not decoded yet */
  uint8_t *out = NULL, *decoded = NULL;
  const char *problem;
  while ((problem = skip_plain(text, &at)) == NULL && text.data[at] == '\\') {
    if (decoded == NULL && (out = decoded = decoded_room(json, start)) == NULL) return STATUS_NO_MEMORY;
    memcpy(out, text.data + run, at - run);
    out += at - run;
    if ((problem = take_escape(text, &at, &out)) != NULL) break;
    run = at;
  }
  if (problem != NULL) {
    *ret_at = at;
    *ret_problem = problem;
    return STATUS_INVALID_ARGUMENT;
  }
  if (decoded != NULL) {
    memcpy(out, text.data + run, at - run);
    out += at - run;
  }
  token->start = (uint32_t)start;
  token->end = (uint32_t)at;
  token->count = (uint32_t)(decoded != NULL ? (size_t)(out - decoded) : at - start);
  token->escaped = decoded != NULL;
  *ret_at = at + 1;
  return STATUS_OK;
}

struct bytes json_string(struct json *json, uint32_t token) {
  must(token < json->count);
  const struct json_token *string = &json->tokens[token];
  must(string->type == JSON_STRING);
  const uint8_t *from = string->escaped ? json->scratch.data : json->text.data;
  return bytes_of(from + string->start, string->count);
}

static void write_escape(struct buffer *out, uint8_t c) {
  static const char digits[] = "0123456789abcdef";
  static const char letters[0x20] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
  if (c == '"' || c == '\\') {
    const char escape[2] = {'\\', (char)c};
    buffer_append(out, escape, sizeof escape);
  } else if (letters[c] != 0) {
    const char escape[2] = {'\\', letters[c]};
    buffer_append(out, escape, sizeof escape);
  } else {
    const char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    buffer_append(out, escape, sizeof escape);
  }
}

void json_write_string(struct buffer *out, struct bytes text) {
  size_t at = 0;
  buffer_append_char(out, '"');
  while (at < text.size) {
    size_t run = json_plain_run(text.data + at, text.size - at, 0);
    buffer_append(out, text.data + at, run);
    at += run;
    if (at < text.size) write_escape(out, text.data[at++]);
  }
  buffer_append_char(out, '"');
}
