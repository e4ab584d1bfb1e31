/* Owns the two ways of writing a value again: as it stands without white space, and in the canonical form that digests are
 * made of. */
#include "base/guard.h"
#include "codec/json_internal.h"

/* Appends text[from, to), which holds no part of a string, from *run on without its white space; the rest waits in *run, so
 * that a text without any is copied whole. Counts alone when out is NULL. */
static size_t drop_space(struct bytes text, size_t from, size_t to, size_t *run, struct buffer *out) {
  size_t dropped = 0;
  for (size_t at = from; at < to; at++) {
    if (!json_is_space(text.data[at])) continue;
    if (out != NULL) buffer_append(out, text.data + *run, at - *run);
    *run = at + 1;
    dropped++;
  }
  return dropped;
}

/* Strings are stepped over by their tokens; white space can only be between them. */
static size_t minify(const struct json *json, uint32_t token, struct buffer *out) {
  struct bytes raw = json_raw(json, token), text = json->text;
  size_t at = (size_t)(raw.data - text.data), end = at + raw.size, run = at, dropped = 0;
  for (uint32_t i = token; i < json->tokens[token].next; i++) {
    if (json->tokens[i].type != JSON_STRING) continue;
    dropped += drop_space(text, at, json->tokens[i].start - 1, &run, out);
    at = json->tokens[i].end + (size_t)1;
  }
  dropped += drop_space(text, at, end, &run, out);
  if (out != NULL) buffer_append(out, text.data + run, end - run);
  return dropped;
}

size_t json_space(const struct json *json, uint32_t token) { return minify(json, token, NULL); }

void json_minify(const struct json *json, uint32_t token, struct buffer *out) { (void)minify(json, token, out); }

/* An object or array that is being written. */
struct frame {
  bool object;
  uint32_t done, count; /* members or items */
  uint32_t item;        /* an array's next item */
  size_t base;          /* an object's keys begin here in json->keys */
};

/* Unescaped strings hold nothing that wants an escape, so they are canonical as they stand. */
static void write_scalar(struct json *json, uint32_t token, struct buffer *out) {
  if (json->tokens[token].type == JSON_STRING && json->tokens[token].escaped) json_write_string(out, json_string(json, token));
  else buffer_append_bytes(out, json_raw(json, token));
}

static bool open_frame(struct json *json, uint32_t token, size_t base, struct frame *frame) {
  const struct json_token *container = &json->tokens[token];
  *frame = (struct frame){.object = container->type == JSON_OBJECT, .count = container->count, .item = token + 1, .base = base};
  return !frame->object || json_sort_keys(json, token, base) == STATUS_OK;
}

/* The next value of the frame, its comma and key written before it. */
static uint32_t next_value(struct json *json, struct frame *frame, struct buffer *out) {
  if (frame->done > 0) buffer_append_char(out, ',');
  uint32_t value = frame->item;
  if (frame->object) {
    uint32_t key = json->keys[frame->base + frame->done].token;
    write_scalar(json, key, out);
    buffer_append_char(out, ':');
    value = key + 1;
  } else {
    frame->item = json->tokens[value].next;
  }
  frame->done++;
  return value;
}

void json_canonical(struct json *json, uint32_t token, struct buffer *out) {
  struct frame frames[json_answer_depth_max];
  unsigned depth = 0;
  size_t base = 0; /* keys of open objects end here */
  uint32_t value = token;
  must(token < json->count);
  for (;;) {
    uint8_t type = json->tokens[value].type;
    if (type == JSON_OBJECT || type == JSON_ARRAY) {
      must(depth < json_answer_depth_max);
      if (!open_frame(json, value, base, &frames[depth])) {
        out->failed = true;
        return;
      }
      base += frames[depth].object ? frames[depth].count : 0;
      buffer_append_char(out, frames[depth++].object ? '{' : '[');
    } else {
      write_scalar(json, value, out);
    }
    while (depth > 0 && frames[depth - 1].done == frames[depth - 1].count) {
      struct frame *ended = &frames[--depth];
      buffer_append_char(out, ended->object ? '}' : ']');
      base = ended->base;
    }
    if (depth == 0 || out->failed) return;
    value = next_value(json, &frames[depth - 1], out);
  }
}
