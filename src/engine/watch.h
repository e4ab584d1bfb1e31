/* How edge threads that have readers of the log learn that it has grown: an armed watch is rung once, by the commit that comes
 * next, and costs the engine nothing while it is not armed. */
#ifndef ORBIT_ENGINE_WATCH_H
#define ORBIT_ENGINE_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/mail.h"

/* One a thread; its owner's, from engine_watch to engine_unwatch. */
struct watch {
  struct watch *next;
  struct outbox *outbox; /* whose event_fd is rung */
  _Atomic bool armed;    /* set by the owner, taken back by the ring */
};

struct watches {
  pthread_mutex_t lock;
  struct watch *first;
  _Atomic uint64_t position; /* of the last durable event */
};
void watches_init(struct watches *watches);
void watches_clear(struct watches *watches);
void watches_add(struct watches *watches, struct watch *watch);
void watches_remove(struct watches *watches, struct watch *watch);
/* The engine: everything up to here is durable. */
void watches_tell(struct watches *watches, uint64_t position);

#endif
