/* Identifiers: 16 bytes, shown as 32 lower-case hexadecimal digits, time-ordered (schema/semantics.md "Identifiers"). */
#ifndef ORBIT_BASE_ID_H
#define ORBIT_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { id_bytes = 16, id_chars = 32 };

struct id {
  uint8_t bytes[id_bytes];
};

bool id_is_zero(const struct id *id);
static inline bool id_equal(const struct id *a, const struct id *b) { return memcmp(a->bytes, b->bytes, id_bytes) == 0; }
int id_compare(const struct id *a, const struct id *b);  /* memcmp order */
uint64_t id_hash(const struct id *id);                   /* for tables; not for secrets */
void id_format(const struct id *id, char out[id_chars]); /* no NUL */
/* False unless text is exactly 32 lower-case hexadecimal digits and not all zero. */
bool id_parse(struct bytes text, struct id *ret_id);

/* Text of an id for log lines and messages. */
struct id_text {
  char text[id_chars + 1];
};
struct id_text id_text(const struct id *id);

/* Makes ids that rise strictly: 48 bits of milliseconds, a 16-bit count within the millisecond, 64 bits from a generator
 * that the caller seeded. Not thread-safe: one a thread. */
struct id_source {
  uint64_t state;   /* generator */
  uint64_t last_ms; /* of the last id */
  uint32_t count;   /* ids made in last_ms */
};
void id_source_init(struct id_source *source, uint64_t seed);
struct id id_source_next(struct id_source *source, int64_t now_us);
/* The milliseconds that an id of a source begins with. */
uint64_t id_ms(const struct id *id);

/* The id of an audit record or derived audit entry: milliseconds of its commit and its event's sequence number, so that ids
 * rise with the log and the event can be found from the id (schema/log.md "Audit ids"). */
struct id audit_id_make(int64_t time_us, uint64_t seq);
uint64_t audit_id_seq(const struct id *audit_id);

#endif
