/* Owns the order of keys: duplicates are found in it, and the canonical form stands in it. Sorting by the bytes costs
 * n log n whatever the keys are; a hash with a known seed could be made to collide. */
#include <stdlib.h>

#include "base/guard.h"
#include "codec/json_internal.h"

static uint64_t key_prefix(struct bytes key) {
  uint64_t prefix = 0;
  if (key.size >= 8) {
    memcpy(&prefix, key.data, 8);
    return be64toh(prefix);
  }
  for (size_t i = 0; i < key.size; i++) prefix |= (uint64_t)key.data[i] << (56 - 8 * i);
  return prefix;
}

/* A string holds no U+0000, so a short key's filling cannot be mistaken for a longer key: equal prefixes with a filling in them
 * are equal keys. */
static int compare_keys(struct json *json, const struct json_key *a, const struct json_key *b) {
  if (a->prefix != b->prefix) return a->prefix < b->prefix ? -1 : 1;
  if ((a->prefix & 0xFF) == 0) return 0;
  return bytes_compare(json_string(json, a->token), json_string(json, b->token));
}

static bool make_room(struct json *json, size_t count) {
  if (count <= json->keys_capacity) return true;
  size_t capacity = json->keys_capacity == 0 ? 64 : json->keys_capacity;
  while (capacity < count) capacity *= 2; /* count is bounded by the tokens */
  struct json_key *keys = realloc(json->keys, capacity * sizeof *keys);
  if (keys == NULL) return false;
  json->keys = keys;
  json->keys_capacity = capacity;
  return true;
}

static void insertion_sort(struct json *json, struct json_key *keys, size_t count) {
  for (size_t i = 1; i < count; i++) {
    struct json_key key = keys[i];
    size_t at = i;
    for (; at > 0 && compare_keys(json, &key, &keys[at - 1]) < 0; at--) keys[at] = keys[at - 1];
    keys[at] = key;
  }
}

/* Merges the runs from[0, middle) and from[middle, count) into to; equal keys stay in their order. */
static void merge(struct json *json, const struct json_key *from, size_t middle, size_t count, struct json_key *to) {
  size_t left = 0, right = middle;
  for (size_t i = 0; i < count; i++) {
    bool take_left = right == count || (left < middle && compare_keys(json, &from[left], &from[right]) <= 0);
    to[i] = from[take_left ? left++ : right++];
  }
}

/* Bottom-up merge sort; keys has room for 2 count. */
static void merge_sort(struct json *json, struct json_key *keys, size_t count) {
  struct json_key *from = keys, *to = keys + count;
  for (size_t at = 0; at < count; at += json_linear_keys_max)
    insertion_sort(json, keys + at, count - at < json_linear_keys_max ? count - at : json_linear_keys_max);
  for (size_t run = json_linear_keys_max; run < count; run *= 2) {
    for (size_t at = 0; at < count; at += 2 * run) {
      size_t size = count - at < 2 * run ? count - at : 2 * run;
      merge(json, from + at, size < run ? size : run, size, to + at);
    }
    struct json_key *swap = from;
    from = to;
    to = swap;
  }
  if (from != keys) memcpy(keys, from, count * sizeof *keys);
}

enum status json_sort_keys(struct json *json, uint32_t object, size_t base) {
  uint32_t count = json->tokens[object].count, at = object + 1;
  if (count == 0) return STATUS_OK; /* there may be no room at all yet */
  if (!make_room(json, base + 2 * (size_t)count)) return STATUS_NO_MEMORY;
  struct json_key *keys = json->keys + base;
  for (uint32_t i = 0; i < count; i++) {
    keys[i] = (struct json_key){.prefix = key_prefix(json_string(json, at)), .token = at};
    at = json->tokens[at + 1].next;
  }
  if (count <= json_linear_keys_max) insertion_sort(json, keys, count);
  else merge_sort(json, keys, count);
  return STATUS_OK;
}

/* Few keys are compared each with each: their lengths tell most of them apart. */
static uint32_t find_among_few(struct json *json, uint32_t object) {
  struct bytes keys[json_linear_keys_max];
  uint32_t count = json->tokens[object].count, at = object + 1;
  for (uint32_t i = 0; i < count; i++) {
    keys[i] = json_string(json, at);
    for (uint32_t j = 0; j < i; j++)
      if (bytes_equal(keys[i], keys[j])) return at;
    at = json->tokens[at + 1].next;
  }
  return 0;
}

enum status json_find_duplicate(struct json *json, uint32_t object, uint32_t *ret_key) {
  uint32_t count = json->tokens[object].count, first = 0;
  if (count <= json_linear_keys_max) {
    *ret_key = find_among_few(json, object);
    return STATUS_OK;
  }
  enum status status = json_sort_keys(json, object, 0);
  if (status != STATUS_OK) return status;
  for (uint32_t i = 1; i < count; i++) {
    uint32_t later = json->keys[i].token;
    if (compare_keys(json, &json->keys[i - 1], &json->keys[i]) == 0 && (first == 0 || later < first)) first = later;
  }
  *ret_key = first;
  return STATUS_OK;
}
