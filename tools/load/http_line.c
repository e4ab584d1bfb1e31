/* Owns the writing of requests and the reading of answers. */
#include "load/http_line.h"

#include <string.h>
#include <strings.h>

#include "base/guard.h"

static const int64_t fetch_ns_max = INT64_C(10) * 1000000000;

/* Value of Content-Length in the head; SIZE_MAX when there is none. */
static size_t content_length(struct bytes head) {
  static const char name[] = "content-length:";
  const char *at = (const char *)head.data, *end = at + head.size;
  while (at != NULL && at < end) {
    if ((size_t)(end - at) > sizeof name && strncasecmp(at, name, sizeof name - 1) == 0) {
      size_t value = 0;
      for (at += sizeof name - 1; at < end && *at == ' '; at++) continue;
      for (; at < end && *at >= '0' && *at <= '9' && value < SIZE_MAX / 100; at++) value = value * 10 + (size_t)(*at - '0');
      return value;
    }
    at = memchr(at, '\n', (size_t)(end - at));
    if (at != NULL) at++;
  }
  return SIZE_MAX;
}

static unsigned status_code(struct bytes head) {
  static const char start[] = "HTTP/1.1 ";
  if (head.size < sizeof start + 3 || memcmp(head.data, start, sizeof start - 1) != 0) return 0;
  const uint8_t *digits = head.data + sizeof start - 1;
  return (unsigned)((digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0'));
}

static void line_broke(struct stream *stream) {
  struct http_line *line = (struct http_line *)(void *)stream;
  line->broke(line);
}

static void line_took(struct stream *stream) {
  struct http_line *line = (struct http_line *)(void *)stream;
  struct bytes text = stream_unread(stream);
  const uint8_t *end = memmem(text.data, text.size, "\r\n\r\n", 4);
  if (end == NULL) return;
  struct bytes head = bytes_of(text.data, (size_t)(end + 4 - text.data));
  size_t length = content_length(head);
  unsigned status = status_code(head);
  if (length == SIZE_MAX || status < 100 || status > 599 || !line->waiting) {
    /* Not an answer that Orbit gives. */
    stream_close(stream);
    line->broke(line);
    return;
  }
  if (text.size - head.size < length) return;
  stream_consume(stream, head.size + length);
  line->waiting = false;
  line->answered(line, status, bytes_of(text.data + head.size, length));
}

void http_line_init(struct http_line *line, struct loop *loop) {
  *line = (struct http_line){.waiting = false};
  stream_init(&line->stream, loop, line_took, line_broke);
}

void http_line_clear(struct http_line *line) { stream_clear(&line->stream); }

bool http_line_open(struct http_line *line, const struct address *address) {
  line->waiting = false;
  return stream_open(&line->stream, address);
}

void http_line_send(struct http_line *line, struct bytes request) {
  must(!line->waiting);
  line->waiting = true;
  line->sent_ns = loop_now_ns();
  stream_write(&line->stream, request.data, request.size);
}

void http_request_write(struct buffer *out, const char *method, const char *path, const struct address *address,
                        const char *token, const char *key, struct bytes body) {
  buffer_append_format(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, address->text);
  if (token != NULL) buffer_append_format(out, "Authorization: Bearer %s\r\n", token);
  if (key != NULL) buffer_append_format(out, "Idempotency-Key: %s\r\n", key);
  if (body.data != NULL) buffer_append_format(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body.size);
  buffer_append_text(out, "\r\n");
  buffer_append_bytes(out, body);
}

/* ---- one request, waited for ---- */

struct fetch {
  unsigned status;
  bool over;
  struct buffer *body;
};

static void fetch_answered(struct http_line *line, unsigned status, struct bytes body) {
  struct fetch *fetch = line->context;
  fetch->status = status;
  fetch->over = true;
  buffer_append_bytes(fetch->body, body);
}

static void fetch_broke(struct http_line *line) {
  struct fetch *fetch = line->context;
  fetch->over = true;
}

enum status http_fetch(const struct address *address, struct bytes request, unsigned *ret_status, struct buffer *ret_body,
                       struct fault *fault) {
  struct fetch fetch = {.body = ret_body};
  struct loop loop;
  struct http_line line;
  loop_init(&loop);
  http_line_init(&line, &loop);
  line.context = &fetch;
  line.answered = fetch_answered;
  line.broke = fetch_broke;
  int64_t until_ns = loop_now_ns() + fetch_ns_max;
  if (http_line_open(&line, address)) {
    http_line_send(&line, request);
    while (!fetch.over && loop_now_ns() < until_ns) loop_turn(&loop, until_ns);
  }
  http_line_clear(&line);
  loop_clear(&loop);
  if (fetch.status == 0) return fault_set(fault, STATUS_UNAVAILABLE, NULL, "no answer from %s", address->text);
  *ret_status = fetch.status;
  return STATUS_OK;
}
