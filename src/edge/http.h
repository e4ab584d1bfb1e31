/* The HTTP edge: libmicrohttpd daemons in external-epoll mode, one a thread, on one shared listening socket. */
#ifndef ORBIT_EDGE_HTTP_H
#define ORBIT_EDGE_HTTP_H

#include "edge/edge.h"

struct http;

/* Starts `threads` threads on the listening socket (bound, listening, non-blocking; stays the caller's). Serves /healthz and
 * /readyz at once and everything else once edge->phase is EDGE_READY (503 before and while draining). IO_ERROR. */
enum status http_start(struct edge *edge, int listen_fd, unsigned threads, struct http **ret_http, struct fault *fault);
/* Stops accepting, lets every request that the engine has answered be written, closes. The engine must still tick until this
 * returns, because suspended connections wait for it. */
void http_stop(struct http *http);

#endif
