/* Owns what the feed shows, and sets of types. */
#include "core/feed.h"

#include <string.h>

#include "base/guard.h"

static_assert(EVENT_type_end <= 128, "a type has its bit");
static_assert((int)feed_types_text_bytes < (int)event_list_scratch_bytes, "the names of all types fit an event's scratch");

/* By the hundreds of numbers that each kind of object has in schema/events.def. */
bool feed_shows_type(enum event_type type) {
  unsigned number = (unsigned)type;
  bool shown = (number >= 16 && number <= 19) || (number >= 30 && number <= 49) || (number >= 70 && number <= 79);
  return shown && event_type_version(type) != 0;
}

static bool has(const struct feed_types *types, unsigned number) { return (types->bits[number / 64] >> number % 64 & 1) != 0; }

bool feed_types_are_any(const struct feed_types *types) { return (types->bits[0] | types->bits[1]) == 0; }

bool feed_types_equal(const struct feed_types *a, const struct feed_types *b) {
  return a->bits[0] == b->bits[0] && a->bits[1] == b->bits[1];
}

bool feed_types_have(const struct feed_types *types, enum event_type type) {
  if ((unsigned)type >= EVENT_type_end) return false;
  return feed_types_are_any(types) ? feed_shows_type(type) : has(types, type);
}

/* False also when it is there already. */
static bool add(struct feed_types *types, struct bytes name) {
  enum event_type type;
  if (!event_type_parse(name, &type) || !feed_shows_type(type) || has(types, type)) return false;
  types->bits[type / 64] |= UINT64_C(1) << type % 64;
  return true;
}

bool feed_types_add(struct feed_types *types, struct bytes name) {
  enum event_type type;
  if (event_type_parse(name, &type) && feed_shows_type(type) && has(types, type)) return true;
  return add(types, name);
}

bool feed_types_parse(struct bytes names, struct feed_types *ret_types) {
  struct feed_types types = {{0, 0}};
  for (size_t at = 0; at <= names.size;) {
    const uint8_t *comma = at < names.size ? memchr(names.data + at, ',', names.size - at) : NULL;
    size_t end = comma != NULL ? (size_t)(comma - names.data) : names.size;
    if (end == at || !add(&types, bytes_of(names.data + at, end - at))) return false;
    at = end + 1;
  }
  *ret_types = types;
  return true;
}

size_t feed_types_format(const struct feed_types *types, char out[feed_types_text_bytes]) {
  size_t length = 0;
  for (unsigned number = 1; number < EVENT_type_end; number++) {
    if (!has(types, number)) continue;
    const char *name = event_type_text((enum event_type)number);
    size_t size = strlen(name);
    must(length + size + 2 <= feed_types_text_bytes);
    if (length != 0) out[length++] = ',';
    memcpy(out + length, name, size);
    length += size;
  }
  out[length] = '\0';
  return length;
}
