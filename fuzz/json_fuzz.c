/* Fuzzes the JSON tokenizer and what stands on it. Whatever the bytes are: a refusal has words and a place in valid UTF-8; an
 * accepted text has sound tokens, each with a pointer; minified and canonical forms are JSON again, mean the same and are no
 * longer than the text; and the reading by a table of fields ends with a status. */
#include <string.h>

#include "base/guard.h"
#include "codec/digest.h"
#include "codec/json.h"

/* Kept from run to run, as a server keeps its own; `again` begins fresh each time. */
static struct json json, again;
static struct buffer canonical, minified, scratch;

static void check_refusal(enum status status, const struct fault *fault) {
  must(status == STATUS_INVALID_ARGUMENT && fault->status == status);
  must(fault->message[0] != 0 && bytes_is_utf8(bytes_text(fault->message)));
  must(bytes_is_utf8(bytes_text(fault->field)));
}

/* Children follow their container and fill it exactly. */
static void check_container(uint32_t container) {
  const struct json_token *token = &json.tokens[container];
  uint32_t at = container + 1;
  for (uint32_t i = 0; i < token->count; i++) {
    if (token->type == JSON_OBJECT) must(json.tokens[at++].type == JSON_STRING);
    at = json.tokens[at].next;
    must(at <= token->next);
  }
  must(at == token->next);
}

static void check_tokens(struct bytes text) {
  char pointer[64];
  must(json.count > 0 && json.tokens[0].next == json.count);
  for (uint32_t i = 0; i < json.count; i++) {
    const struct json_token *token = &json.tokens[i];
    must(token->start <= token->end && token->end <= text.size && token->next > i && token->next <= json.count);
    if (token->type == JSON_OBJECT || token->type == JSON_ARRAY) check_container(i);
    else must(token->next == i + 1);
    if (token->type == JSON_STRING) {
      struct bytes string = json_string(&json, i);
      must(string.data != NULL && bytes_is_utf8(string) && memchr(string.data, 0, string.size) == NULL);
    }
    if (i < 64) {
      json_pointer(&json, i, pointer, sizeof pointer);
      must(bytes_is_utf8(bytes_text(pointer)));
    }
  }
}

static void check_same(const struct buffer *style, const struct id *digest) {
  json_clear(&again);
  must(!style->failed && json_parse(&again, buffer_bytes(style), NULL) == STATUS_OK && again.count == json.count);
  struct id other = json_digest(&again, 0, &scratch);
  must(id_equal(&other, digest));
}

static void check_forms(struct bytes text) {
  buffer_clear(&canonical);
  canonical.limit = text.size;
  json_canonical(&json, 0, &canonical);
  buffer_clear(&minified);
  minified.limit = text.size;
  json_minify(&json, 0, &minified);
  struct id digest = json_digest(&json, 0, &scratch);
  check_same(&canonical, &digest);
  must(bytes_equal(buffer_bytes(&scratch), buffer_bytes(&canonical)));
  check_same(&minified, &digest);
}

struct target {
  struct id id;
  struct bytes text, word, string;
  int64_t time;
  uint64_t u64, decimal;
  uint32_t u32, value, object, array;
  bool truth;
};

#define FIELD(name, kind, nullable, min, max) \
  { #name, kind, false, nullable, min, max, offsetof(struct target, name) }

static void check_reading(void) {
  static const struct json_field fields[] = {
      FIELD(id, JSON_KIND_ID, false, 0, 0),           FIELD(text, JSON_KIND_TEXT, false, 1, 8),
      FIELD(word, JSON_KIND_WORD, false, 1, 8),       FIELD(string, JSON_KIND_STRING, false, 0, 8),
      FIELD(time, JSON_KIND_TIME, true, 0, 0),        FIELD(u64, JSON_KIND_U64, false, 0, 0),
      FIELD(decimal, JSON_KIND_DECIMAL, false, 1, 0), FIELD(u32, JSON_KIND_U32, false, 0, 100),
      FIELD(value, JSON_KIND_VALUE, false, 1, 16),    FIELD(object, JSON_KIND_OBJECT, true, 0, 0),
      FIELD(array, JSON_KIND_ARRAY, false, 0, 2),     FIELD(truth, JSON_KIND_BOOL, false, 0, 0),
  };
  struct target target = {.u32 = 0};
  struct fault fault = {.status = STATUS_OK};
  uint64_t present = 0;
  enum status status = json_read_object(&json, 0, fields, sizeof fields / sizeof fields[0], &target, &present, &fault);
  if (status != STATUS_OK) {
    check_refusal(status, &fault);
    return;
  }
  must((target.text.data != NULL) == ((present >> 1 & 1) != 0));
  must(bytes_count_chars(target.text) <= 8 && target.word.size <= 8 && target.u32 <= 100);
  must((present >> 6 & 1) == (target.decimal != 0));
}

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  json_init(&json);
  json_init(&again);
  buffer_init(&scratch, json_text_bytes_max);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fault fault = {.status = STATUS_OK};
  struct bytes text = bytes_of(data, size);
  enum status status = json_parse(&json, text, &fault);
  if (status != STATUS_OK) {
    check_refusal(status, &fault);
    return 0;
  }
  check_tokens(text);
  check_forms(text);
  check_reading();
  return 0;
}
