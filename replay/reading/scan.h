/* A walk over a log that holds no snapshot while its caller works: it copies a bounded piece, lets the snapshot go, and hands out
 * the events one by one. A reader that prints to a slow terminal or waits for news pins no pages. */
#ifndef ORBIT_REPLAY_SCAN_H
#define ORBIT_REPLAY_SCAN_H

#include "journal/journal.h"

struct scan;

/* NULL with a message on stderr when the log's reader table is full or memory ends. */
struct scan *scan_new(struct journal *journal);
void scan_free(struct scan *scan);

/* The last seq that is durable now. */
uint64_t scan_last_seq(struct scan *scan);
/* The first seq whose time is not before time_us; one behind the last when there is none. Reads a few headers alone. */
uint64_t scan_seq_at(struct scan *scan, int64_t time_us);

/* The seq of the task's acceptance, found by the time in its id; 1 when it is not found so, which says nothing. */
uint64_t scan_seq_of_task(struct scan *scan, const struct id *task_id);

/* From here on scan_next hands out first … last, rising; or last … first, falling. first > last: nothing. */
void scan_range(struct scan *scan, uint64_t first, uint64_t last, bool backwards);
/* The next event. Spans live until the next call of any function here. END: no more. CORRUPT, FOREIGN: the fault says which record
 * is damaged (chain, header, body) or missing; the next call goes on behind it, unless nothing more can be read. */
enum status scan_next(struct scan *scan, struct event *ret_event, struct bytes *ret_record, struct fault *fault);
/* The header alone of what scan_next would hand out; false: it must tell. For callers that drop most events. */
bool scan_peek(struct scan *scan, struct event *ret_header);
void scan_skip(struct scan *scan); /* drops it */

/* One event, out of order: the walk stays where it is. Spans live until the next scan_get. END: there is none. CORRUPT. */
enum status scan_get(struct scan *scan, uint64_t seq, struct event *ret_event);
/* The chain after seq as its record says; after 0: the chain that genesis starts. END, CORRUPT. */
enum status scan_chain(struct scan *scan, uint64_t seq, uint64_t *ret_chain);

#endif
