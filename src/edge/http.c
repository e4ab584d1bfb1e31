/* Owns the set of HTTP threads. */
#include "edge/http.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/guard.h"
#include "edge/http_thread.h"

struct http {
  struct http_shared shared;
  unsigned thread_count;
  struct http_thread *threads[http_threads_max];
};

/* A thread's share of http_connections_max. */
static unsigned connection_share(unsigned threads) { return (http_connections_max + threads - 1) / threads; }

enum status http_start(struct edge *edge, int listen_fd, unsigned threads, struct http **ret_http, struct fault *fault) {
  must(threads >= 1 && threads <= http_threads_max);
  struct http *http = guard_calloc(1, sizeof *http);
  http->shared.edge = edge;
  http->shared.request_ms = http_request_ms_max;
  http->shared.ticket_ms = ticket_ms_max;
  http->shared.address_connections_max = (edge->address_connections_max + threads - 1) / threads;
  http->shared.heartbeat_ms = feed_heartbeat_ms;
  for (unsigned i = 0; i < threads; i++) {
    int copy = fcntl(listen_fd, F_DUPFD_CLOEXEC, 0);
    enum status status =
        copy < 0 ? fault_set(fault, STATUS_IO_ERROR, NULL, "the listening socket cannot be shared among the HTTP threads")
                 : http_thread_start(&http->shared, copy, connection_share(threads), &http->threads[i], fault);
    if (status != STATUS_OK) {
      http_stop(http);
      return status;
    }
    http->thread_count++;
  }
  *ret_http = http;
  return STATUS_OK;
}

void http_stop(struct http *http) {
  atomic_store_explicit(&http->shared.stopping, true, memory_order_release);
  bool clean = true;
  for (unsigned i = 0; i < http->thread_count; i++) http_thread_wake(http->threads[i]);
  for (unsigned i = 0; i < http->thread_count; i++) clean = http_thread_join(http->threads[i]) && clean;
  if (clean) free(http);
}
