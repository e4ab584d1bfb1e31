/* The log as the readers of the feed see it. Each HTTP thread has one: it looks at the newest events once for all of its
 * readers, and reads older ones for those that are behind. Knows no connections. */
#ifndef ORBIT_EDGE_FEED_H
#define ORBIT_EDGE_FEED_H

#include "base/bytes.h"
#include "core/feed.h"
#include "state/owners.h"

/* Somebody who reads on from a position. */
struct feed_reader {
  struct feed_filter filter;
  struct id namespace_id;
  struct id *scope; /* queues that the credential reaches; owned; NULL: every queue */
  uint32_t scope_count;
  uint64_t after; /* everything up to here was shown or filtered out */
};

/* What a filter is held against. */
struct feed_event {
  uint64_t seq;
  enum event_type type;
  struct id stream;
  struct owner owner; /* zero when the feed does not show its type */
};

struct feed;
struct feed *feed_new(void);
void feed_free(struct feed *feed); /* NULL is fine */

/* A round begins: source shows the log up to and with the event `end`, and lives until the next round. CORRUPT. */
enum status feed_begin(struct feed *feed, struct history *history, struct record_source source, uint64_t end);
/* The end of the round's log. */
uint64_t feed_end(const struct feed *feed);

enum feed_found {
  FEED_FOUND = 1, /* *ret_event is shown to the reader, who stands at it */
  FEED_AT_END,    /* the reader stands at the end */
  FEED_ENOUGH,    /* *looks are used up; the reader stands where looking stopped */
};
/* Moves the reader on to the next event that it is shown; *looks counts down with each event that is looked at. CORRUPT: the
 * log is damaged. */
enum status feed_next(struct feed *feed, struct feed_reader *reader, uint32_t *looks, enum feed_found *ret_found,
                      struct feed_event *ret_event);
/* Appends the event as an item of the feed. CORRUPT. */
enum status feed_write(struct feed *feed, struct buffer *out, const struct feed_event *event);

#endif
