/* Time zones: what a zone file (TZif, RFC 8536 and 9636, version 2 or later) says of the offset between UTC and the clocks of a
 * place. Pure: the file's bytes come in; who reads files is engine/zones.h. */
#ifndef ORBIT_CORE_ZONE_H
#define ORBIT_CORE_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct zone;

/* The zone owns what it needs; file may go. CORRUPT: not such a file, or its parts do not fit. */
enum status zone_parse(struct bytes file, struct zone **ret_zone);
/* UTC, which needs no file. */
struct zone *zone_utc(void);
void zone_free(struct zone *zone); /* NULL is fine */

/* A time during which the clocks keep one offset. Seconds since 1970, UTC. */
struct zone_span {
  int64_t from, until; /* INT64_MIN, INT64_MAX: for ever */
  int32_t offset;      /* clock minus UTC, seconds */
  bool daylight;       /* daylight saving is in force */
};
/* The span that holds the moment. */
struct zone_span zone_at(const struct zone *zone, int64_t utc);

#endif
