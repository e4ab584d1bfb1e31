/* What the feed shows of the log, and the filters over it (schema/semantics.md "Feed"). Pure. */
#ifndef ORBIT_CORE_FEED_H
#define ORBIT_CORE_FEED_H

#include <stdbool.h>

#include "base/bytes.h"
#include "core/event.h"
#include "core/model.h"

/* Events of tasks, queues and schedules. Not shown: audit records, which have routes and a permission of their own, nodes,
 * namespaces, applications, credentials, and subscriptions, whose readers would else wake themselves. */
bool feed_shows_type(enum event_type type);

/* True when the types hold this one: all do when they are none, as far as the feed shows it. */
bool feed_types_have(const struct feed_types *types, enum event_type type);
bool feed_types_are_any(const struct feed_types *types);
bool feed_types_equal(const struct feed_types *a, const struct feed_types *b);

/* Adds the type of this name. False: the feed shows no such type. */
bool feed_types_add(struct feed_types *types, struct bytes name);
/* Reads the names of types with commas between, at least one, in any order. False: a name that the feed does not show, or one
 * that stands there twice; *ret_types is untouched then. */
bool feed_types_parse(struct bytes names, struct feed_types *ret_types);
/* Writes the names in the order of their numbers with commas between, NUL-terminated; "" for none. Returns their length. */
enum { feed_types_text_bytes = 1024 - 256 };
size_t feed_types_format(const struct feed_types *types, char out[feed_types_text_bytes]);

/* What a reader asks for. */
struct feed_filter {
  struct feed_types types;
  struct id queue_id; /* zero: any */
  struct id task_id;  /* zero: any */
};

#endif
