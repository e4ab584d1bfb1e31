/* The headers of one request that mean something to Orbit, gathered in one pass and judged before any of the body is read.
 * Pure. */
#ifndef ORBIT_EDGE_HTTP_HEAD_H
#define ORBIT_EDGE_HTTP_HEAD_H

#include "base/bytes.h"
#include "base/status.h"

/* Spans and texts belong to whoever called head_add, and live as long as those. */
struct head {
  const char *authorization;                                                     /* NULL: none */
  struct bytes content_type, content_length, transfer_encoding, idempotency_key; /* the last one given; data NULL: none */
  struct bytes last_event_id;                                                    /* likewise */
  uint64_t length; /* value of Content-Length once head_judge_framing said OK */
  uint32_t bytes;  /* of all names and values, with what stands between them */
  uint16_t hosts, content_lengths, transfer_encodings, content_types, authorizations, idempotency_keys, last_event_ids;
  uint8_t json_weight;   /* how exactly an Accept range named application/json so far */
  bool accepts_json;     /* what the most exact one said */
  bool accepts_anything; /* no Accept header */
  bool accepts_stream;   /* text/event-stream is named and wanted */
  bool malformed;        /* a name that is no token, or a control character in a value */
  bool chunked;          /* once head_judge_framing said OK */
};

void head_init(struct head *head);
/* name and value are NUL-terminated behind their size. */
void head_add(struct head *head, struct bytes name, struct bytes value);

/* Where the message ends must be beyond doubt, or a proxy in front may see other requests than we do: Transfer-Encoding
 * together with Content-Length, two of either, an encoding other than chunked, chunked in HTTP/1.0, a length that is not
 * digits, two Hosts, a header name that is no token: INVALID_ARGUMENT naming the header, and the connection must be closed.
 * HEADERS_TOO_LARGE. */
enum status head_judge_framing(struct head *head, bool http_1_1, struct fault *fault);

bool head_has_body(const struct head *head); /* bytes of a body are to come */

/* INVALID_ARGUMENT: two Authorization headers. */
enum status head_judge_authorization(const struct head *head, struct fault *fault);
/* NOT_ACCEPTABLE unless application/json may be given. (Where text/event-stream can be given and is wanted, this is not asked.)
 */
enum status head_judge_accept(const struct head *head, struct fault *fault);
/* A read has neither a body nor an Idempotency-Key: INVALID_ARGUMENT. */
enum status head_judge_read(const struct head *head, struct fault *fault);
/* UNSUPPORTED_MEDIA_TYPE, LENGTH_REQUIRED, PAYLOAD_TOO_LARGE; INVALID_ARGUMENT naming Idempotency-Key when it is missing (with
 * needs_key), given twice, or not 1–128 visible ASCII characters; without needs_key it is left alone. */
enum status head_judge_write(const struct head *head, uint64_t body_bytes_max, bool needs_key, struct fault *fault);

/* Value of the header Retry-After for a delay: whole seconds, rounded up, at least 1. */
uint32_t head_retry_after_s(uint32_t delay_ms);

#endif
