/* One HTTP thread: a libmicrohttpd daemon that never waits by itself, driven by the thread's own epoll, with the way back from
 * the engine beside it. Private to the HTTP edge. */
#ifndef ORBIT_EDGE_HTTP_THREAD_H
#define ORBIT_EDGE_HTTP_THREAD_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "edge/edge.h"
#include "edge/http_linger.h"
#include "edge/request.h"

struct MHD_Connection;
struct MHD_Daemon;

/* Connections in the order in which they came to the list; all wait the same time, so the oldest is the first that is late. */
struct age_list {
  struct http_connection *oldest, *newest;
  int64_t wait_ms;
};

struct http_connection {
  struct http_connection *older, *newer;
  struct age_list *list; /* NULL: in none */
  int64_t since_ms;      /* when it came to the list */
  struct http_thread *thread;
  struct MHD_Connection *connection;
  int fd;             /* the library's */
  bool refused_early; /* answered while bytes of the request were still to come */
  bool aware;         /* a request has begun */
  bool held;          /* the engine has its ticket, or had, and the library was not told to suspend it */
  struct request request;
};

/* Readers of the feed that wait, and when they are looked at (http_feed.c). */
struct http_feed {
  struct age_list waiting; /* whoever has its turn next is the oldest; wait_ms is not used */
  uint32_t count;          /* in the list */
  uint32_t left;           /* of the turn that is under way: who has not been looked at */
  bool fresh;              /* somebody came since the turn began */
  bool more;               /* somebody was not done with the log as it is */
  int64_t due_ms;          /* when one of them must be looked at, whatever happens */
  int64_t next_due_ms;     /* the same, as far as this turn has found */
  int64_t rest_until_us;   /* monotonic: commands come first */
  uint64_t seen;           /* the end of the log that turns began with */
  struct watch watch;
  bool watched;
};

/* What the threads share. */
struct http_shared {
  struct edge *edge;
  int64_t request_ms; /* http_request_ms_max and ticket_ms_max; shorter in tests */
  int64_t ticket_ms;
  unsigned address_connections_max; /* of one client address, at each thread; 0: no such limit */
  int64_t heartbeat_ms;             /* feed_heartbeat_ms, likewise */
  _Atomic uint64_t body_bytes;
  _Atomic uint32_t feed_readers;
  _Atomic bool stopping;
};

struct http_thread {
  struct http_shared *shared;
  struct MHD_Daemon *daemon;
  struct outbox outbox;
  struct request_pool pool;
  struct linger_set lingers;
  struct age_list moving;  /* a request is being read or an answer written, or the connection idles */
  struct age_list waiting; /* the engine has the ticket: suspended */
  struct http_feed feed;
  struct http_connection *free_connections;
  uint32_t free_connection_count, connection_count;
  uint32_t held_count; /* connections that are held: the library takes them for ready and calls for each in every round */
  bool again;          /* beside those, the library has something to do at once */
  pthread_t pthread;
  int epoll_fd, stop_fd;
  unsigned library_status;   /* of the refusal that libmicrohttpd is about to write by itself; 0: none */
  int64_t now_ms;            /* monotonic, read once a round */
  int64_t stopping_since_ms; /* 0: not stopping */
  int64_t busy_until_ms;     /* commands came back lately */
};

/* Starts the daemon on listen_fd (taken over, also on failure) and the thread. IO_ERROR. */
enum status http_thread_start(struct http_shared *shared, int listen_fd, unsigned connections_max,
                              struct http_thread **ret_thread, struct fault *fault);
/* Once shared->stopping is set: wakes the thread. */
void http_thread_wake(struct http_thread *thread);
/* Waits for its end and frees it. False: the engine still holds tickets, so its memory stays, and *thread->shared must too. */
bool http_thread_join(struct http_thread *thread);

/* The HTTP thread that runs on this thread; NULL elsewhere (http_fault.c). */
struct http_thread *http_thread_current(void);

/* What libmicrohttpd has to say; keeps the status of a refusal that it is about to write by itself (http_fault.c). */
void http_fault_log(void *thread, const char *format, va_list arguments);

/* ---- http_connection.c: what libmicrohttpd calls, and what becomes of connections ---- */

struct MHD_Daemon *http_connection_daemon(struct http_thread *thread, int listen_fd, unsigned connections_max);
/* Takes everything out of the outbox, writes the answers and resumes the connections. */
void http_connection_take_returned(struct http_thread *thread);
/* Closes what drips, answers what waits too long. */
void http_connection_expire(struct http_thread *thread);
/* When the next one is late (INT64_MAX: none). */
int64_t http_connection_next_ms(const struct http_thread *thread);
/* Stopping: closes the connections on which no request is under way. */
void http_connection_close_idle(struct http_thread *thread);
/* Stopping: answers every connection that still waits for the engine. */
void http_connection_give_up_all(struct http_thread *thread);
void http_connection_free_all(struct http_thread *thread);
/* To the newest end of the list, with its time starting now. */
void http_connection_move(struct http_connection *connection, struct age_list *list);
/* The library goes on with one that is suspended or held. */
void http_connection_resume(struct http_connection *connection);

/* ---- http_feed.c: readers of the feed ---- */

/* A suspended connection (or one about to be) whose request is in FEEDING begins to wait. */
void http_feed_admit(struct http_connection *connection);
/* Begins the answer of a stream. enum MHD_Result. */
int http_feed_stream(struct http_connection *connection);
/* Gives turns, for a bounded time. */
void http_feed_run(struct http_thread *thread);
/* When there will be turns to give (INT64_MAX: nobody waits). */
int64_t http_feed_next_ms(const struct http_thread *thread);
/* Stopping: answers all who wait. */
void http_feed_stop(struct http_thread *thread);
/* The thread has ended. */
void http_feed_clear(struct http_thread *thread);

#endif
