/* Records of one object's history, copied out of a scan one by one and kept: what state/history wants to read from. */
#ifndef ORBIT_REPLAY_KEPT_H
#define ORBIT_REPLAY_KEPT_H

#include "reading/scan.h"
#include "state/history.h"

struct kept {
  struct scan *scan;
  struct kept_record {
    uint64_t seq;
    struct bytes record; /* owned */
  } * records;
  size_t count, capacity;
};
void kept_init(struct kept *kept, struct scan *scan);
void kept_clear(struct kept *kept);
/* Spans live until kept_clear. Memory: the records that were asked for. */
struct record_source kept_source(struct kept *kept);

#endif
