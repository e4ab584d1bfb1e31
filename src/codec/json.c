/* Owns the tokens: the grammar of JSON, walked without recursion over a stack of open objects and arrays. */
#include "codec/json.h"

#include <stdlib.h>

#include "base/guard.h"
#include "codec/json_internal.h"

struct parser {
  struct json *json;
  struct fault *fault;
  size_t at;                            /* next byte of the text */
  uint32_t depth;                       /* how many objects and arrays are open */
  uint32_t open[json_answer_depth_max]; /* their tokens, outermost first */
};

void json_init(struct json *json) {
  *json = (struct json){.depth_max = json_depth_max};
  buffer_init(&json->scratch, json_text_bytes_max);
}

void json_init_answers(struct json *json) {
  json_init(json);
  json->depth_max = json_answer_depth_max;
}

void json_clear(struct json *json) {
  free(json->tokens);
  free(json->keys);
  buffer_clear(&json->scratch);
  uint32_t depth_max = json->depth_max;
  json_init(json);
  json->depth_max = depth_max;
}

/* place is the token to blame; the value that would have become the next token has the index json->count. */
static enum status refuse(struct parser *parser, uint32_t place, const char *problem) {
  if (parser->fault == NULL) return STATUS_INVALID_ARGUMENT;
  char pointer[sizeof parser->fault->field];
  json_pointer(parser->json, place, pointer, sizeof pointer);
  return fault_set(parser->fault, STATUS_INVALID_ARGUMENT, pointer, "not strict JSON: %s, at byte %zu", problem, parser->at);
}

static enum status out_of_memory(struct parser *parser) {
  return fault_set(parser->fault, STATUS_NO_MEMORY, NULL, "%s", status_text(STATUS_NO_MEMORY));
}

static uint32_t innermost(const struct parser *parser) { return parser->depth > 0 ? parser->open[parser->depth - 1] : 0; }

/* The byte at parser->at, or -1 behind the last one. */
static int peek(const struct parser *parser) {
  return parser->at < parser->json->text.size ? parser->json->text.data[parser->at] : -1;
}

/* Most texts come without white space. */
static inline int skip_space(struct parser *parser) {
  int c = peek(parser);
  while (c <= ' ' && c >= 0 && json_is_space((uint8_t)c)) {
    parser->at++;
    c = peek(parser);
  }
  return c;
}

static enum status make_room(struct parser *parser, uint32_t place) {
  struct json *json = parser->json;
  if (json->count < json->capacity) return STATUS_OK;
  if (json->count == json_tokens_max) return refuse(parser, place, "too many values");
  uint32_t capacity = json->capacity == 0 ? 64 : json->capacity * 2;
  if (capacity > json_tokens_max) capacity = json_tokens_max;
  struct json_token *tokens = realloc(json->tokens, capacity * sizeof *tokens);
  if (tokens == NULL) return out_of_memory(parser);
  json->tokens = tokens;
  json->capacity = capacity;
  return STATUS_OK;
}

/* The next token, counted when it is whole: make_room came before. */
static struct json_token *next_token(struct parser *parser, enum json_type type) {
  struct json *json = parser->json;
  struct json_token *token = &json->tokens[json->count];
  *token = (struct json_token){.start = (uint32_t)parser->at, .next = json->count + 1, .type = (uint8_t)type};
  return token;
}

static enum status take_string(struct parser *parser, uint32_t place) {
  struct json_token *token = next_token(parser, JSON_STRING);
  const char *problem = NULL;
  parser->at++;
  enum status status = json_scan_string(parser->json, &parser->at, token, &problem);
  if (status == STATUS_NO_MEMORY) return out_of_memory(parser);
  if (status != STATUS_OK) return refuse(parser, place, problem);
  parser->json->count++;
  return STATUS_OK;
}

static bool skip_digits(struct parser *parser) {
  size_t start = parser->at;
  for (int c = peek(parser); c >= '0' && c <= '9'; c = peek(parser)) parser->at++;
  return parser->at > start;
}

static enum status take_number(struct parser *parser) {
  struct json *json = parser->json;
  struct json_token *token = next_token(parser, JSON_NUMBER);
  if (peek(parser) == '-') parser->at++;
  if (peek(parser) == '0') {
    parser->at++;
    int c = peek(parser);
    if (c >= '0' && c <= '9') return refuse(parser, json->count, "a number has no leading zero");
  } else if (!skip_digits(parser)) {
    return refuse(parser, json->count, "a digit must follow the sign");
  }
  if (peek(parser) == '.') {
    parser->at++;
    if (!skip_digits(parser)) return refuse(parser, json->count, "a digit must follow the point");
  }
  if (peek(parser) == 'e' || peek(parser) == 'E') {
    parser->at++;
    if (peek(parser) == '+' || peek(parser) == '-') parser->at++;
    if (!skip_digits(parser)) return refuse(parser, json->count, "a digit must follow the exponent sign");
  }
  token->end = (uint32_t)parser->at;
  json->count++;
  return STATUS_OK;
}

static enum status take_literal(struct parser *parser, enum json_type type, const char *literal) {
  struct json *json = parser->json;
  struct json_token *token = next_token(parser, type);
  for (; *literal != 0; literal++, parser->at++)
    if (peek(parser) != (uint8_t)*literal) return refuse(parser, json->count, "a word that JSON does not know");
  token->end = (uint32_t)parser->at;
  json->count++;
  return STATUS_OK;
}

static enum status take_key(struct parser *parser) {
  uint32_t object = innermost(parser);
  if (peek(parser) != '"') return refuse(parser, object, "a key in quotes must stand here");
  enum status status = make_room(parser, object);
  if (status == STATUS_OK) status = take_string(parser, object);
  if (status != STATUS_OK) return status;
  parser->json->tokens[object].count++;
  if (skip_space(parser) != ':') return refuse(parser, object, "a colon must follow the key");
  parser->at++;
  return STATUS_OK;
}

static enum status close_innermost(struct parser *parser) {
  struct json *json = parser->json;
  uint32_t index = innermost(parser), duplicate = 0;
  struct json_token *token = &json->tokens[index];
  parser->at++;
  token->end = (uint32_t)parser->at;
  token->next = json->count;
  parser->depth--;
  if (token->type != JSON_OBJECT || token->count < 2) return STATUS_OK;
  if (json_find_duplicate(json, index, &duplicate) != STATUS_OK) return out_of_memory(parser);
  if (duplicate == 0) return STATUS_OK;
  parser->at = json->tokens[duplicate].start;
  return refuse(parser, duplicate, "the key stands twice in its object");
}

/* At an opening bracket. *ret_value: a value must follow, which is so unless the container is empty. */
static enum status open_container(struct parser *parser, enum json_type type, bool *ret_value) {
  struct json *json = parser->json;
  if (parser->depth == json->depth_max) return refuse(parser, json->count, "nested too deeply");
  next_token(parser, type)->next = 0; /* open */
  parser->open[parser->depth++] = json->count++;
  parser->at++;
  int c = skip_space(parser);
  *ret_value = c != (type == JSON_OBJECT ? '}' : ']');
  if (!*ret_value) return close_innermost(parser);
  return type == JSON_OBJECT ? take_key(parser) : STATUS_OK;
}

static enum status take_value(struct parser *parser, bool *ret_value) {
  struct json *json = parser->json;
  int c = skip_space(parser);
  enum status status = make_room(parser, json->count);
  if (status != STATUS_OK) return status;
  if (parser->depth > 0) {
    struct json_token *container = &json->tokens[innermost(parser)];
    container->count += container->type == JSON_ARRAY;
  }
  *ret_value = false;
  switch (c) {
    case '{':
      return open_container(parser, JSON_OBJECT, ret_value);
    case '[':
      return open_container(parser, JSON_ARRAY, ret_value);
    case '"':
      return take_string(parser, json->count);
    case 't':
      return take_literal(parser, JSON_TRUE, "true");
    case 'f':
      return take_literal(parser, JSON_FALSE, "false");
    case 'n':
      return take_literal(parser, JSON_NULL, "null");
    case -1:
      return refuse(parser, json->count, "the text ends where a value must stand");
    default:
      break;
  }
  if (c == '-' || (c >= '0' && c <= '9')) return take_number(parser);
  return refuse(parser, json->count, "a value must stand here");
}

/* Behind a value inside a container: a comma or the end of the container. */
static enum status after_value(struct parser *parser, bool *ret_value) {
  uint32_t index = innermost(parser);
  bool object = parser->json->tokens[index].type == JSON_OBJECT;
  int c = skip_space(parser);
  if (c == (object ? '}' : ']')) return close_innermost(parser);
  if (c == -1) return refuse(parser, index, object ? "the text ends inside an object" : "the text ends inside an array");
  if (c != ',') return refuse(parser, index, object ? "a comma or } must stand here" : "a comma or ] must stand here");
  parser->at++;
  *ret_value = true;
  if (!object) return STATUS_OK;
  (void)skip_space(parser);
  return take_key(parser);
}

/* Makes a used parser fresh; what one giant text needed is given back when the next one is smaller. */
static void begin_text(struct json *json, struct bytes text) {
  if (json->capacity > json_tokens_kept_max && text.size < json->capacity) json_clear(json);
  json->text = text;
  json->count = 0;
  buffer_reset(&json->scratch);
}

enum status json_parse(struct json *json, struct bytes text, struct fault *fault) {
  begin_text(json, text);
  struct parser parser;
  parser.json = json;
  parser.fault = fault;
  parser.at = 0;
  parser.depth = 0;
  if (text.size > json_text_bytes_max) return refuse(&parser, 0, "the text is too long");
  if (text.size >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0)
    return refuse(&parser, 0, "a byte order mark is not allowed");
  bool value = true;
  enum status status = STATUS_OK;
  while (status == STATUS_OK && (value || parser.depth > 0))
    status = value ? take_value(&parser, &value) : after_value(&parser, &value);
  if (status != STATUS_OK) return status;
  if (skip_space(&parser) != -1) return refuse(&parser, 0, "nothing may follow the value");
  return STATUS_OK;
}

struct bytes json_raw(const struct json *json, uint32_t token) {
  must(token < json->count);
  const struct json_token *value = &json->tokens[token];
  uint32_t quote = value->type == JSON_STRING;
  return bytes_of(json->text.data + value->start - quote, value->end - value->start + 2 * (size_t)quote);
}

uint32_t json_member(struct json *json, uint32_t object, const char *key) {
  must(object < json->count && json->tokens[object].type == JSON_OBJECT);
  struct bytes wanted = bytes_text(key);
  uint32_t at = object + 1;
  for (uint32_t i = 0; i < json->tokens[object].count; i++) {
    if (bytes_equal(json_string(json, at), wanted)) return at + 1;
    at = json->tokens[at + 1].next;
  }
  return 0;
}
