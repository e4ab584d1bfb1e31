/* A walk over a log that is read as evidence: without liblmdb, so that damage anywhere ends no program; without a lock or a
 * snapshot, so that nothing is written, nobody is held up, and no page is pinned, however slowly its caller works. A bounded
 * piece is in memory. */
#ifndef ORBIT_REPLAY_SCAN_H
#define ORBIT_REPLAY_SCAN_H

#include "base/status.h"
#include "codec/event_codec.h"

struct scan;

/* NULL, with a message on stderr, when there is no log that can be opened. Damage of its first pages is told there, too. */
struct scan *scan_new(const char *data_directory);
void scan_free(struct scan *scan);
/* Something could not be read soundly, now or before. */
bool scan_is_damaged(const struct scan *scan);

/* Who made the log; false: its genesis is damaged. */
struct log_origin {
  uint32_t format;
  int64_t created_us;
  struct id node_id;
};
bool scan_origin(const struct scan *scan, struct log_origin *ret_origin);

/* The last seq that is durable now: takes a fresh look. */
uint64_t scan_last_seq(struct scan *scan);
/* The first seq whose time is not before time_us; one behind the last when there is none. Reads a few headers alone. */
uint64_t scan_seq_at(struct scan *scan, int64_t time_us);
/* The seq of the task's acceptance, found by the time in its id; 1 when it is not found so, which says nothing. */
uint64_t scan_seq_of_task(struct scan *scan, const struct id *task_id);

/* From here on scan_next hands out first … last, rising; or last … first, falling. first > last: nothing. */
void scan_range(struct scan *scan, uint64_t first, uint64_t last, bool backwards);
/* The next event. Its spans live until the next call of scan_next, scan_peek or scan_range. END: no more. CORRUPT, FOREIGN: the
 * fault says which record is damaged (chain, header, body) or missing; the next call goes on behind it. UNAVAILABLE: a server
 * commits faster than it can be read; no more comes then. */
enum status scan_next(struct scan *scan, struct event *ret_event, struct bytes *ret_record, struct fault *fault);
/* The header alone of what scan_next would hand out; false: that has something to tell. For callers that drop most events. */
bool scan_peek(struct scan *scan, struct event *ret_header);
void scan_skip(struct scan *scan); /* drops it */

/* One event, out of order: the walk stays where it is. Spans live until the next scan_get. END: there is none. CORRUPT. */
enum status scan_get(struct scan *scan, uint64_t seq, struct event *ret_event);
/* Its record alone, judged by its header: a span until the next call of anything here. END, CORRUPT. */
enum status scan_record(struct scan *scan, uint64_t seq, struct bytes *ret_record);
/* The chain after seq as its record says; after 0: the chain that genesis starts. END, CORRUPT. */
enum status scan_chain(struct scan *scan, uint64_t seq, uint64_t *ret_chain);

#endif
