/* Strict JSON (schema/http.md "Strict JSON"): a tokenizer that keeps spans into the text and numbers as written. Iterative; no
 * allocation but the token array, which a parser keeps and reuses. */
#ifndef ORBIT_CODEC_JSON_H
#define ORBIT_CODEC_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/status.h"

enum json_type { JSON_NULL = 1, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Tokens stand in document order. An object's members are a STRING token (the key) followed by the value's tokens. */
struct json_token {
  uint32_t start, end; /* bytes of the text: strings without quotes, objects and arrays with brackets */
  uint32_t next;       /* index of the first token after this value and all inside it */
  uint32_t count;      /* members of an object, items of an array, bytes of a string when decoded */
  uint8_t type;        /* enum json_type */
  bool escaped;        /* a string with a backslash in it */
};

struct json_key;

struct json {
  struct bytes text;
  struct json_token *tokens; /* owned; token 0 is the document */
  uint32_t count, capacity;
  struct buffer scratch; /* decoded strings live here, at the offset of their start, until the next json_parse */
  struct json_key *keys; /* owned; room for sorting the keys of objects */
  size_t keys_capacity;
  uint32_t depth_max; /* json_depth_max, or json_answer_depth_max */
};

void json_init(struct json *json);
/* For readers of what Orbit itself wrote (answers, frames to workers): takes json_answer_depth_max levels, since a document of
 * the largest depth stands deeper in them than in the request that brought it. */
void json_init_answers(struct json *json);
void json_clear(struct json *json);

/* Parses the whole text; the text must outlive the use of the tokens. INVALID_ARGUMENT names the place: fault->field is the
 * JSON Pointer of the value (at most its buffer), message says what and at which byte. Rejected: anything RFC 8259 does not
 * allow, invalid UTF-8, a byte order mark, unpaired surrogates, U+0000 in a string, duplicate keys at any depth (compared
 * decoded), depth over json_depth_max (json_init_answers: json_answer_depth_max), more than json_tokens_max tokens, anything
 * after the value. Cost is linear in size. */
enum status json_parse(struct json *json, struct bytes text, struct fault *fault);

/* The text of the token as written (strings with their quotes, containers whole). */
struct bytes json_raw(const struct json *json, uint32_t token);
/* The decoded value of a STRING token: a span of the text, or of scratch when it has escapes (valid until the next json_parse).
 * data is never NULL. */
struct bytes json_string(struct json *json, uint32_t token);
/* Index of the value of the member with this key (exact), or 0 when the object has none. */
uint32_t json_member(struct json *json, uint32_t object, const char *key);
/* JSON Pointer of a token into out (cut short with … when too long, always NUL-terminated). */
void json_pointer(struct json *json, uint32_t token, char *out, size_t size);

/* Appends the token's text without white space outside strings. */
void json_minify(const struct json *json, uint32_t token, struct buffer *out);
/* Appends the canonical form: keys sorted by their decoded bytes, no white space, strings re-encoded with the shortest escapes
 * (only \" \\ and control characters; \b \f \n \r \t, else \u00xx), numbers as written. */
void json_canonical(struct json *json, uint32_t token, struct buffer *out);

/* Appends text as a JSON string with quotes; text is valid UTF-8. */
void json_write_string(struct buffer *out, struct bytes text);

/* ---- Reading objects by a table of fields ---- */

enum json_kind {
  JSON_KIND_ID = 1,  /* -> struct id */
  JSON_KIND_TEXT,    /* -> struct bytes; min..max code points */
  JSON_KIND_WORD,    /* -> struct bytes; min..max characters of [A-Za-z0-9._:/-] */
  JSON_KIND_TIME,    /* -> int64_t */
  JSON_KIND_U64,     /* a JSON integer (no sign, point or exponent) -> uint64_t; min..max */
  JSON_KIND_U32,     /* the same -> uint32_t */
  JSON_KIND_DECIMAL, /* a decimal string "1"…"18446744073709551615", no leading zero -> uint64_t; min..max */
  JSON_KIND_BOOL,    /* -> bool */
  JSON_KIND_VALUE,   /* any value but null, min..max bytes when minified -> uint32_t token */
  JSON_KIND_OBJECT,  /* -> uint32_t token */
  JSON_KIND_ARRAY,   /* min..max items -> uint32_t token */
  JSON_KIND_STRING,  /* any string of min..max bytes, decoded -> struct bytes; for words that the caller judges */
};

/* max 0 means no bound but the kind's own. */
struct json_field {
  const char *name;
  enum json_kind kind;
  bool required;
  bool nullable; /* null means absent */
  uint64_t min, max;
  size_t offset; /* of the member in the target structure */
};

/* Reads the object's members into target by the table. Absent members leave the target as it was. Sets bit i of *ret_present
 * for field i (present and not null); at most 64 fields. INVALID_ARGUMENT: not an object, unknown member (a member that differs
 * from a field only in case is named so), null where none is allowed, wrong type, out of range, required one missing (null is
 * missing, too). The fault names the field by JSON Pointer. ret_present may be NULL. On failure target may be half written. */
enum status json_read_object(struct json *json, uint32_t object, const struct json_field *fields, unsigned count, void *target,
                             uint64_t *ret_present, struct fault *fault);

/* Refusal of a token's value: INVALID_ARGUMENT with its pointer as field; the format makes the whole message. */
enum status json_refuse(struct json *json, uint32_t token, struct fault *fault, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
