/* Whose an event of the feed is: the namespace and the queue of its object, read from the first event of its stream
 * (of a schedule: from its newest trigger, too). Memory of
 * the server holds them too, but belongs to the engine's thread; this is for those who read the log alone. */
#ifndef ORBIT_STATE_OWNERS_H
#define ORBIT_STATE_OWNERS_H

#include "state/history.h"

struct owner {
  struct id namespace_id;
  struct id queue_id; /* of a task or schedule: where it waits; of a queue: itself */
};

/* Remembers a bounded number of objects. One a thread. */
struct owners;
struct owners *owners_new(void);
void owners_free(struct owners *owners); /* NULL is fine */

/* The owner of the object that the event belongs to; of the event seq, prev, type and stream alone are used (the header). It
 * must be of a type that the feed shows. CORRUPT: the stream does not begin as it should. */
enum status owners_find(struct owners *owners, struct history *history, struct record_source source, const struct event *event,
                        struct owner *ret_owner);

#endif
