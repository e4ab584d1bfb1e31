/* One HTTP/1.1 connection that is kept, with one request under way. No more of HTTP than Orbit's answers need. */
#ifndef ORBIT_TOOLS_LOAD_HTTP_LINE_H
#define ORBIT_TOOLS_LOAD_HTTP_LINE_H

#include "load/stream.h"

struct http_line {
  struct stream stream; /* first */
  bool waiting;         /* for an answer */
  uint64_t number;      /* of the request under way, the caller's */
  int64_t sent_ns;      /* when it was sent */
  void *context;
  void (*answered)(struct http_line *line, unsigned status, struct bytes body); /* body: valid until it returns */
  void (*broke)(struct http_line *line); /* closed; waiting says whether an answer was lost */
};

/* The caller sets context, answered and broke. */
void http_line_init(struct http_line *line, struct loop *loop);
void http_line_clear(struct http_line *line);
/* False: refused at once. */
bool http_line_open(struct http_line *line, const struct address *address);
/* Sends a whole request; none may be under way. */
void http_line_send(struct http_line *line, struct bytes request);

/* Appends a request: head and body. key NULL: no Idempotency-Key; body.data NULL: none. */
void http_request_write(struct buffer *out, const char *method, const char *path, const struct address *address,
                        const char *token, const char *key, struct bytes body);

/* One request on a connection of its own, waited for. *ret_status 200…; the body is appended to ret_body.
 * UNAVAILABLE: no answer within ten seconds. */
enum status http_fetch(const struct address *address, struct bytes request, unsigned *ret_status, struct buffer *ret_body,
                       struct fault *fault);

#endif
