/* A worker: a desk under a lock, the thread of its connection, and the threads that run handlers. */
#ifndef ORBIT_SDK_WORKER_H
#define ORBIT_SDK_WORKER_H

#include <pthread.h>

#include "desk.h"
#include "url.h"

struct sdk_line;

struct orbit_worker {
  struct sdk_arena texts;
  struct sdk_url url; /* of the worker channel, where has_url */
  bool has_url, url_is_given;
  struct sdk_url server;       /* of the HTTP interface, unless url_is_given */
  struct orbit_client *client; /* for /v1/info; NULL when the address was given */
  char *authorization;         /* "Bearer …" */
  const char *ca_file;

  pthread_mutex_t lock;   /* guards the desk and what follows */
  pthread_cond_t work;    /* an attempt was granted, or the threads are to end */
  pthread_cond_t changed; /* a welcome, a drain, an end, a failure to connect */
  struct sdk_desk desk;
  bool started, stopping, line_ended;
  bool drain_finished;
  bool line_woken;               /* the connection's thread was woken and has not looked since: once is enough */
  struct orbit_error last_error; /* the last failure to connect */
  struct sdk_line *line;         /* the connection's side, worker_line.c */
  pthread_t line_thread;
  pthread_t *pool;
  uint32_t pool_count;
};

/* ---- worker_line.c: the connection ---- */

/* Makes what the connection needs; nothing is connected. NULL: no memory. */
struct sdk_line *sdk_line_new(struct orbit_worker *worker);
void sdk_line_free(struct sdk_line *line);
/* Connects, serves and connects again until the worker stops, fails or has drained. */
void sdk_line_run(struct sdk_line *line);
/* Makes the thread in sdk_line_run look at the worker again. Any thread, with or without the lock. */
void sdk_line_wake(struct sdk_line *line);

#endif
