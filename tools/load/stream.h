/* One TCP connection in a loop, with what came and what is to go. The layer below HTTP and WebSocket lines. */
#ifndef ORBIT_TOOLS_LOAD_STREAM_H
#define ORBIT_TOOLS_LOAD_STREAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/status.h"
#include "load/loop.h"

/* Where a server is. */
struct address {
  struct sockaddr_storage socket;
  socklen_t size;
  char text[256]; /* host:port, for the Host header and for messages */
  char host[256]; /* as the certificate must name it */
  bool tls;
};
/* "http://host:port…", "ws://…", or with TLS "https://…", "wss://…"; what follows the port is not looked at, and a missing port
 * is 80 or 443.
 * INVALID_ARGUMENT: another form, or a host that is not known. */
enum status address_parse(struct bytes url, struct address *ret_address, struct fault *fault);

struct stream {
  struct loop_source source;
  struct loop *loop;
  struct buffer in, out;
  size_t in_used, out_used;             /* of them, what was consumed and what was sent */
  bool blocked;                         /* waits until the socket takes more */
  struct secure *secure;                /* NULL: plain text */
  bool shaking;                         /* hands, still: what is written waits */
  void (*took)(struct stream *stream);  /* there is more in stream_unread */
  void (*broke)(struct stream *stream); /* the other side or the system ended it; it is closed already */
};

void stream_init(struct stream *stream, struct loop *loop, void (*took)(struct stream *), void (*broke)(struct stream *));
void stream_clear(struct stream *stream); /* closes it */
/* Begins to connect; what is written meanwhile waits. False: refused at once (broke is not called). address lives on. */
bool stream_open(struct stream *stream, const struct address *address);
bool stream_is_open(const struct stream *stream);
void stream_close(struct stream *stream); /* broke is not called */
void stream_write(struct stream *stream, const void *data, size_t size);
struct bytes stream_unread(const struct stream *stream); /* valid until took returns */
void stream_consume(struct stream *stream, size_t size);

#endif
