/* Owns the waiting: epoll and the monotonic clock. */
#include "load/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"

enum { events_a_turn = 512 };
static const int64_t ns_per_s = 1000000000;

int64_t loop_now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * ns_per_s + now.tv_nsec;
}

void loop_init(struct loop *loop) {
  loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  must(loop->epoll_fd >= 0);
}

void loop_clear(struct loop *loop) { guard_close(&loop->epoll_fd); }

void loop_add(struct loop *loop, struct loop_source *source, int fd, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = source};
  source->fd = fd;
  must(epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

void loop_change(struct loop *loop, struct loop_source *source, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = source};
  must(epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) == 0);
}

void loop_remove(struct loop *loop, struct loop_source *source) {
  must(epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL) == 0);
  source->fd = -1;
}

void loop_turn(struct loop *loop, int64_t until_ns) {
  struct epoll_event events[events_a_turn];
  int64_t left = until_ns - loop_now_ns();
  if (left < 0) left = 0;
  struct timespec timeout = {.tv_sec = left / ns_per_s, .tv_nsec = left % ns_per_s};
  int count = epoll_pwait2(loop->epoll_fd, events, events_a_turn, &timeout, NULL);
  must(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; i++) {
    struct loop_source *source = events[i].data.ptr;
    /* One that was ready may have been removed by another before it in this turn. */
    if (source->fd >= 0) source->ready(source, events[i].events);
  }
}
