/* The worker channel: one libwebsockets thread on its own listening socket (schema/worker.md). */
#ifndef ORBIT_EDGE_CHANNEL_H
#define ORBIT_EDGE_CHANNEL_H

#include "edge/edge.h"

struct channel;

/* Starts the thread on the listening socket (bound and listening; owned by the channel from here on). IO_ERROR. */
enum status channel_start(struct edge *edge, int listen_fd, struct channel **ret_channel, struct fault *fault);
/* Tells every worker server.goaway with a jittered reconnect_after_ms; new connections are refused from here on. Any thread. */
void channel_goaway(struct channel *channel);
/* Closes all sessions (1001) once their answers are written, waits until the engine has returned all tickets, ends the thread.
 * The engine must still tick until this returns. */
void channel_stop(struct channel *channel);
uint64_t channel_sessions(const struct channel *channel); /* open now; any thread */

#endif
