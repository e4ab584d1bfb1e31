/* Owns the sockets of refused connections until their clients have had time to read why. */
#include "edge/http_linger.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/guard.h"

void linger_init(struct linger_set *set, int epoll_fd) {
  set->epoll_fd = epoll_fd;
  set->count = 0;
  for (unsigned i = 0; i < http_lingers_max; i++) set->items[i] = (struct linger_item){.fd = -1};
}

static void item_close(struct linger_set *set, struct linger_item *item) {
  guard_close(&item->fd);
  item->fd = -1;
  set->count--;
}

void linger_clear(struct linger_set *set) {
  for (unsigned i = 0; i < http_lingers_max; i++)
    if (set->items[i].fd >= 0) item_close(set, &set->items[i]);
}

void linger_add(struct linger_set *set, int fd, int64_t now_ms) {
  unsigned i = 0;
  while (i < http_lingers_max && set->items[i].fd >= 0) i++;
  if (i == http_lingers_max) return;
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return;
  struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = linger_event_first + i};
  if (shutdown(copy, SHUT_WR) != 0 || epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, copy, &event) != 0) {
    guard_close(&copy);
    return;
  }
  set->items[i] = (struct linger_item){.fd = copy, .until_ms = now_ms + http_linger_ms_max};
  set->count++;
}

void linger_event(struct linger_set *set, uint64_t number) {
  must(number >= linger_event_first && number - linger_event_first < http_lingers_max);
  struct linger_item *item = &set->items[number - linger_event_first];
  if (item->fd < 0) return;
  char waste[16 * 1024];
  ssize_t got = recv(item->fd, waste, sizeof waste, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) item->bytes += (uint64_t)got;
  if (got <= 0 || item->bytes > http_discard_bytes_max) item_close(set, item);
}

void linger_expire(struct linger_set *set, int64_t now_ms) {
  for (unsigned i = 0; i < http_lingers_max && set->count > 0; i++)
    if (set->items[i].fd >= 0 && set->items[i].until_ms <= now_ms) item_close(set, &set->items[i]);
}

int64_t linger_next_ms(const struct linger_set *set) {
  int64_t next = INT64_MAX;
  for (unsigned i = 0; i < http_lingers_max && set->count > 0; i++)
    if (set->items[i].fd >= 0 && set->items[i].until_ms < next) next = set->items[i].until_ms;
  return next;
}
