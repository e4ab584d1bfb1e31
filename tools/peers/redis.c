/* Redis Streams: XADD; XREADGROUP that waits; XACK and XDEL. With appendfsync always every answer follows its fdatasync. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/peer.h"

/* ---- RESP: "+text", "-text", ":number", "$size" and that many bytes, "*count" and that many values ---- */

/* The number behind the sign of a line; *ret_next: behind the line. */
static enum peer_answer read_line(struct bytes in, size_t at, long *ret_number, size_t *ret_next) {
  const uint8_t *end = at < in.size ? memchr(in.data + at, '\n', in.size - at) : NULL;
  if (end == NULL) return PEER_WAIT;
  *ret_number = strtol((const char *)in.data + at + 1, NULL, 10);
  *ret_next = (size_t)(end + 1 - in.data);
  return PEER_DONE;
}

static enum peer_answer read_bulk(struct bytes in, size_t at, struct bytes *ret_text, size_t *ret_next) {
  long size;
  size_t start;
  enum peer_answer answer = read_line(in, at, &size, &start);
  if (answer != PEER_DONE) return answer;
  if (in.data[at] != '$' || size < 0) return PEER_BROKEN;
  if (in.size - start < (size_t)size + 2) return PEER_WAIT;
  *ret_text = bytes_of(in.data + start, (size_t)size);
  *ret_next = start + (size_t)size + 2;
  return PEER_DONE;
}

static enum peer_answer read_count(struct bytes in, size_t at, long *ret_count, size_t *ret_next) {
  enum peer_answer answer = read_line(in, at, ret_count, ret_next);
  return answer == PEER_DONE && in.data[at] != '*' ? PEER_BROKEN : answer;
}

/* One value that is no array, or an array of such. */
static enum peer_answer answered(struct bytes in, size_t *ret_used) {
  long number, values = 1;
  size_t at = 0;
  for (; values > 0; values--) {
    struct bytes text;
    enum peer_answer answer = read_line(in, at, &number, ret_used);
    if (answer != PEER_DONE) return answer;
    if (in.data[at] == '-') return PEER_BROKEN;
    if (in.data[at] == '*') values += number;
    if (in.data[at] == '$' && (answer = read_bulk(in, at, &text, ret_used)) != PEER_DONE) return answer;
    at = *ret_used;
  }
  return PEER_DONE;
}

static void append_bulk(struct buffer *out, struct bytes text) {
  buffer_append_format(out, "$%zu\r\n", text.size);
  buffer_append_bytes(out, text);
  buffer_append_text(out, "\r\n");
}

static void set_up(struct buffer *out, unsigned *ret_answers) {
  *ret_answers = 1;
  buffer_append_text(out, "*6\r\n$6\r\nXGROUP\r\n$6\r\nCREATE\r\n$1\r\nq\r\n$1\r\ng\r\n$1\r\n$\r\n$8\r\nMKSTREAM\r\n");
}

static void submit(struct buffer *out, struct bytes payloads, unsigned count, unsigned *ret_answers) {
  size_t size = payloads.size / count;
  for (unsigned i = 0; i < count; i++) {
    buffer_append_text(out, "*5\r\n$4\r\nXADD\r\n$1\r\nq\r\n$1\r\n*\r\n$1\r\nd\r\n");
    append_bulk(out, bytes_of(payloads.data + i * size, size));
  }
  *ret_answers = count;
}

static void claim(struct buffer *out, unsigned worker, unsigned count, bool again) {
  char text[16];
  (void)again;
  buffer_append_text(out, "*11\r\n$10\r\nXREADGROUP\r\n$5\r\nGROUP\r\n$1\r\ng\r\n");
  (void)snprintf(text, sizeof text, "w%u", worker);
  append_bulk(out, bytes_text(text));
  buffer_append_text(out, "$5\r\nCOUNT\r\n");
  (void)snprintf(text, sizeof text, "%u", count);
  append_bulk(out, bytes_text(text));
  buffer_append_text(out, "$5\r\nBLOCK\r\n$1\r\n0\r\n$7\r\nSTREAMS\r\n$1\r\nq\r\n$1\r\n>\r\n");
}

/* [[key, [[id, [field, value]] …]]] */
static enum peer_answer claimed(struct bytes in, struct peer_job *jobs, unsigned limit, unsigned *ret_count, size_t *ret_used) {
  long streams, pair, count, two;
  size_t at;
  struct bytes key, id, field;
  enum peer_answer answer = read_count(in, 0, &streams, &at);
  if (answer != PEER_DONE) return answer;
  if ((answer = read_count(in, at, &pair, &at)) != PEER_DONE || (answer = read_bulk(in, at, &key, &at)) != PEER_DONE ||
      (answer = read_count(in, at, &count, &at)) != PEER_DONE)
    return answer;
  if (streams != 1 || pair != 2 || count < 0 || (unsigned long)count > limit) return PEER_BROKEN;
  for (long i = 0; i < count; i++) {
    if ((answer = read_count(in, at, &two, &at)) != PEER_DONE || (answer = read_bulk(in, at, &id, &at)) != PEER_DONE ||
        (answer = read_count(in, at, &two, &at)) != PEER_DONE || (answer = read_bulk(in, at, &field, &at)) != PEER_DONE ||
        (answer = read_bulk(in, at, &jobs[i].payload, &at)) != PEER_DONE)
      return answer;
    if (id.size >= sizeof jobs[i].id) return PEER_BROKEN;
    (void)snprintf(jobs[i].id, sizeof jobs[i].id, "%.*s", (int)id.size, (const char *)id.data);
  }
  *ret_count = (unsigned)count;
  *ret_used = at;
  return PEER_DONE;
}

static void append_ids(struct buffer *out, const struct peer_job *jobs, unsigned count) {
  for (unsigned i = 0; i < count; i++) append_bulk(out, bytes_text(jobs[i].id));
}

static void complete(struct buffer *out, const struct peer_job *jobs, unsigned count, unsigned *ret_answers) {
  buffer_append_format(out, "*%u\r\n$4\r\nXACK\r\n$1\r\nq\r\n$1\r\ng\r\n", 3 + count);
  append_ids(out, jobs, count);
  buffer_append_format(out, "*%u\r\n$4\r\nXDEL\r\n$1\r\nq\r\n", 2 + count);
  append_ids(out, jobs, count);
  *ret_answers = 2;
}

const struct peer peer_redis = {
    .name = "redis",
    .promise = "fdatasync before every answer; no retry policy, receipts or audit",
    .batches = true,
    .set_up = set_up,
    .submit = submit,
    .claim = claim,
    .claimed = claimed,
    .complete = complete,
    .answered = answered,
};
