/* The system's time zones: the only place that reads them. Names are those of the system's own list (tzdata.zi, else
 * zone1970.tab and zone.tab) and nothing else, so that no name leads anywhere but to a zone. A zone is read once and kept; what
 * the system learns later counts from the next start on. */
#ifndef ORBIT_ENGINE_ZONES_H
#define ORBIT_ENGINE_ZONES_H

#include "base/bytes.h"
#include "base/status.h"
#include "core/zone.h"

extern const char zones_directory[]; /* /usr/share/zoneinfo */

struct zones;
/* directory: NULL for the system's. Reads nothing yet. */
struct zones *zones_new(const char *directory);
void zones_free(struct zones *zones); /* NULL is fine */

/* The zone with this name, which lives as long as zones; "UTC" is always there. INVALID_ARGUMENT: no zone has this name (field
 * /timezone). UNAVAILABLE: the system has it, but it cannot be read. */
enum status zones_get(struct zones *zones, struct bytes name, const struct zone **ret_zone, struct fault *fault);

#endif
