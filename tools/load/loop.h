/* One thread that waits on many sockets: the loop of the load programs. */
#ifndef ORBIT_TOOLS_LOAD_LOOP_H
#define ORBIT_TOOLS_LOAD_LOOP_H

#include <stdint.h>

struct loop {
  int epoll_fd;
};

/* Embedded in whatever waits. It must outlive its time in the loop and the turn in which it was removed. */
struct loop_source {
  int fd; /* -1: in no loop */
  void (*ready)(struct loop_source *source, uint32_t events);
};

int64_t loop_now_ns(void); /* monotonic */

void loop_init(struct loop *loop);
void loop_clear(struct loop *loop);
/* events: EPOLLIN …, level-triggered. */
void loop_add(struct loop *loop, struct loop_source *source, int fd, uint32_t events);
void loop_change(struct loop *loop, struct loop_source *source, uint32_t events);
void loop_remove(struct loop *loop, struct loop_source *source); /* the caller closes the descriptor */
/* Waits until a source is ready or until_ns has come, and calls what is ready. A signal ends the wait early. */
void loop_turn(struct loop *loop, int64_t until_ns);

#endif
