/* Owns the loop of an HTTP thread: wait, take what the engine returned, let the library work, end in order. */
#include "edge/http_thread.h"

#include <microhttpd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"

enum event_number { EVENT_LIBRARY = 1, EVENT_OUTBOX, EVENT_STOP };
enum { events_per_round = 16 };

/* libmicrohttpd makes some answers by itself and gives no context then; http_fault.c finds the thread here. */
static _Thread_local struct http_thread *current;

struct http_thread *http_thread_current(void) {
  return current;
}

static int64_t monotonic_ms(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* How long this round may wait: until the library's next timer or ours. -1: without end. While connections are held the library
 * knows of no waiting, so that we judge whether it has anything else to do; what we cannot see waits until a held one is
 * answered, or has been held long enough. */
static int round_wait_ms(struct http_thread *thread, int64_t next_ms) {
  MHD_UNSIGNED_LONG_LONG library;
  if (thread->held_count > 0) {
    next_ms = thread->again ? thread->now_ms : earlier(next_ms, thread->now_ms + http_held_ms_max);
  } else if (MHD_get_timeout(thread->daemon, &library) == MHD_YES) {
    if (library > INT32_MAX) library = INT32_MAX;
    if (thread->now_ms + (int64_t)library < next_ms) next_ms = thread->now_ms + (int64_t)library;
  }
  if (next_ms == INT64_MAX) return -1;
  if (next_ms <= thread->now_ms) return 0;
  return next_ms - thread->now_ms < INT32_MAX ? (int)(next_ms - thread->now_ms) : INT32_MAX;
}

/* Begins to stop: no new connection is taken, idle ones are closed. */
static void begin_stop(struct http_thread *thread) {
  thread->stopping_since_ms = thread->now_ms > 0 ? thread->now_ms : 1;
  int listen_fd = MHD_quiesce_daemon(thread->daemon);
  if (listen_fd >= 0) guard_close(&listen_fd);
  http_connection_close_idle(thread);
  http_feed_stop(thread);
}

/* True when nothing is left to wait for; *next_ms is when to look again at the latest. */
static bool stop_is_over(struct http_thread *thread, int64_t *next_ms) {
  int64_t answers_ms = thread->stopping_since_ms + http_stop_ms_max;
  int64_t tickets_ms = thread->stopping_since_ms + http_ticket_stop_ms_max;
  if (thread->pool.jobs_out > 0) {
    /* Its connection is suspended, or it was given up; either way the engine writes into our memory. */
    if (thread->now_ms < tickets_ms) {
      *next_ms = earlier(*next_ms, tickets_ms);
      return false;
    }
    http_connection_give_up_all(thread);
    (void)MHD_run(thread->daemon);
    return true;
  }
  if (thread->connection_count == 0 || thread->now_ms >= answers_ms) return true;
  *next_ms = earlier(*next_ms, answers_ms);
  return false;
}

static void thread_round(struct http_thread *thread, int wait_ms) {
  struct epoll_event events[events_per_round];
  int count = epoll_wait(thread->epoll_fd, events, events_per_round, wait_ms);
  thread->now_ms = monotonic_ms();
  bool returned = false;
  for (int i = 0; i < count; i++) {
    if (events[i].data.u64 == EVENT_OUTBOX) returned = true;
    else if (events[i].data.u64 >= linger_event_first) linger_event(&thread->lingers, events[i].data.u64);
  }
  if (returned) http_connection_take_returned(thread);
}

static void *thread_main(void *context) {
  struct http_thread *thread = current = context;
  int64_t next_ms = INT64_MAX;
  thread->now_ms = monotonic_ms();
  for (;;) {
    thread_round(thread, round_wait_ms(thread, next_ms));
    http_connection_expire(thread);
    linger_expire(&thread->lingers, thread->now_ms);
    http_feed_run(thread);
    thread->again = false;
    (void)MHD_run(thread->daemon);
    request_pool_release(&thread->pool);
    next_ms = earlier(http_connection_next_ms(thread), linger_next_ms(&thread->lingers));
    next_ms = earlier(next_ms, http_feed_next_ms(thread));
    if (!atomic_load_explicit(&thread->shared->stopping, memory_order_acquire)) continue;
    if (thread->stopping_since_ms == 0) begin_stop(thread);
    if (stop_is_over(thread, &next_ms)) break;
  }
  MHD_stop_daemon(thread->daemon);
  thread->daemon = NULL;
  http_feed_clear(thread);
  current = NULL;
  return NULL;
}

static bool watch(int epoll_fd, int fd, enum event_number number) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = number};
  return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Signals are the main thread's; SIGPIPE would end the process. */
static bool start_without_signals(struct http_thread *thread) {
  sigset_t all, before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&thread->pthread, NULL, thread_main, thread) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

static void thread_free(struct http_thread *thread) {
  http_connection_free_all(thread);
  linger_clear(&thread->lingers);
  request_pool_clear(&thread->pool);
  outbox_clear(&thread->outbox);
  guard_close(&thread->epoll_fd);
  guard_close(&thread->stop_fd);
  free(thread);
}

enum status http_thread_start(struct http_shared *shared, int listen_fd, unsigned connections_max,
                              struct http_thread **ret_thread, struct fault *fault) {
  struct http_thread *thread = guard_calloc(1, sizeof *thread);
  thread->shared = shared;
  thread->moving.wait_ms = shared->request_ms;
  thread->waiting.wait_ms = shared->ticket_ms;
  thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  thread->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  enum status outbox = outbox_init(&thread->outbox);
  if (outbox != STATUS_OK) thread->outbox.event_fd = -1;
  request_pool_init(&thread->pool, shared->edge, &thread->outbox, &shared->body_bytes, &shared->feed_readers,
                    &shared->stopping);
  linger_init(&thread->lingers, thread->epoll_fd);
  thread->now_ms = monotonic_ms();
  thread->daemon = http_connection_daemon(thread, listen_fd, connections_max);
  if (thread->daemon == NULL) guard_close(&listen_fd);
  const union MHD_DaemonInfo *info =
      thread->daemon != NULL ? MHD_get_daemon_info(thread->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
  if (outbox == STATUS_OK && info != NULL && watch(thread->epoll_fd, info->epoll_fd, EVENT_LIBRARY) &&
      watch(thread->epoll_fd, thread->outbox.event_fd, EVENT_OUTBOX) && watch(thread->epoll_fd, thread->stop_fd, EVENT_STOP) &&
      start_without_signals(thread)) {
    *ret_thread = thread;
    return STATUS_OK;
  }
  if (thread->daemon != NULL) MHD_stop_daemon(thread->daemon);
  thread_free(thread);
  return fault_set(fault, STATUS_IO_ERROR, NULL, "an HTTP thread cannot be started: too few file descriptors or threads?");
}

void http_thread_wake(struct http_thread *thread) {
  static const uint64_t one = 1;
  ssize_t written = write(thread->stop_fd, &one, sizeof one);
  (void)written; /* a full counter wakes as well */
}

bool http_thread_join(struct http_thread *thread) {
  must(pthread_join(thread->pthread, NULL) == 0);
  /* Tickets that never came back: the engine has failed, and the process is about to end. */
  if (thread->pool.jobs_out > 0) return false;
  thread_free(thread);
  return true;
}
