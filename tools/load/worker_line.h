/* One WebSocket connection of a worker: frames in, frames out, many messages in one frame. What the messages say is the
 * caller's. */
#ifndef ORBIT_TOOLS_LOAD_WORKER_LINE_H
#define ORBIT_TOOLS_LOAD_WORKER_LINE_H

#include "load/stream.h"

enum worker_line_state { WORKER_LINE_CLOSED, WORKER_LINE_UPGRADING, WORKER_LINE_OPEN };

struct worker_line {
  struct stream stream; /* first */
  enum worker_line_state state;
  struct buffer waiting; /* messages for the next frame, with room for its head in front */
  uint32_t waiting_count;
  struct buffer fragments; /* of a message that comes in several frames */
  uint64_t mask_state;
  void *context;
  void (*opened)(struct worker_line *line);
  void (*took)(struct worker_line *line, struct bytes message); /* one message; valid until it returns */
  /* Closed. code: the close frame's, or the HTTP status of a refused upgrade; 0: the connection broke. */
  void (*broke)(struct worker_line *line, unsigned code);
};

/* The caller sets context, opened, took and broke. */
void worker_line_init(struct worker_line *line, struct loop *loop);
void worker_line_clear(struct worker_line *line);
/* Connects and asks for the upgrade. False: refused at once. */
bool worker_line_open(struct worker_line *line, const struct address *address, const char *token);
void worker_line_close(struct worker_line *line); /* hangs up; broke is not called */
/* Puts a message into the next frame. It leaves when the line has dealt with all that came, or with worker_line_flush. */
void worker_line_send(struct worker_line *line, struct bytes message);
void worker_line_flush(struct worker_line *line);

#endif
