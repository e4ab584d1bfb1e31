/* Connections that were refused while their client still sends: read on for a moment and closed then, because closing at once
 * would reset the connection and take the answer away from the client before it was read. */
#ifndef ORBIT_EDGE_HTTP_LINGER_H
#define ORBIT_EDGE_HTTP_LINGER_H

#include <stdint.h>

#include "base/limits.h"

struct linger_item {
  int fd; /* -1: free */
  int64_t until_ms;
  uint64_t bytes; /* thrown away so far */
};

struct linger_set {
  int epoll_fd; /* the caller's */
  unsigned count;
  struct linger_item items[http_lingers_max];
};

void linger_init(struct linger_set *set, int epoll_fd);
void linger_clear(struct linger_set *set); /* closes all */
/* Keeps a duplicate of the connection's socket, shut for writing, until the client ends, http_discard_bytes_max came, or
 * http_linger_ms_max passed. When all places are taken, nothing. */
void linger_add(struct linger_set *set, int fd, int64_t now_ms);
/* The events that epoll reports for an item carry this number; others belong to somebody else. */
enum { linger_event_first = 1000 };
void linger_event(struct linger_set *set, uint64_t number);
void linger_expire(struct linger_set *set, int64_t now_ms); /* closes what is over */
int64_t linger_next_ms(const struct linger_set *set);       /* when the next one is (INT64_MAX: none) */

#endif
