/* Memory made ready by a thread beside a load that knows beforehand how much it will fill: the kernel zeroes every page before
 * its first use, which is half of the time of such a load. Changes nothing that anybody can read. Part of this room alone. */
#ifndef ORBIT_STATE_WARMING_H
#define ORBIT_STATE_WARMING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"

struct warming {
  struct {
    void *memory;
    size_t size;
  } pieces[warming_pieces_max];
  unsigned count;
  bool begun;
  _Atomic bool stop;
  pthread_t thread;
};

/* In the order in which they should be ready; from guard_pages. Size 0: nothing to do. Before warming_begin. */
void warming_add(struct warming *warming, void *memory, size_t size);
/* Starts the thread, where there is one to be had. Memory that goes away before warming_end is passed over. */
void warming_begin(struct warming *warming);
/* Ends it, finished or not. Fine without warming_begin, and as a cleanup attribute. */
void warming_end(struct warming *warming);

#endif
