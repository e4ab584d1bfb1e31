/* beanstalkd: put, reserve, delete. With -f0 a put and a delete are answered after an fsync of their own; a claim is memory
 * only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/peer.h"

static size_t line_size(struct bytes in) {
  const uint8_t *end = in.size != 0 ? memchr(in.data, '\n', in.size) : NULL;
  return end != NULL ? (size_t)(end + 1 - in.data) : 0;
}

static bool starts(struct bytes in, const char *text) {
  return in.size >= strlen(text) && memcmp(in.data, text, strlen(text)) == 0;
}

static enum peer_answer answered(struct bytes in, size_t *ret_used) {
  size_t size = line_size(in);
  if (size == 0) return PEER_WAIT;
  *ret_used = size;
  return starts(in, "INSERTED ") || starts(in, "DELETED") ? PEER_DONE : PEER_BROKEN;
}

static void submit(struct buffer *out, struct bytes payloads, unsigned count, unsigned *ret_answers) {
  size_t size = payloads.size / count;
  for (unsigned i = 0; i < count; i++) {
    buffer_append_format(out, "put 0 0 3600 %zu\r\n", size);
    buffer_append(out, payloads.data + i * size, size);
    buffer_append_text(out, "\r\n");
  }
  *ret_answers = count;
}

static void claim(struct buffer *out, unsigned worker, unsigned count, bool again) {
  (void)worker, (void)count, (void)again; /* one at a time is all that there is */
  buffer_append_text(out, "reserve\r\n");
}

/* RESERVED id size, and the bytes. */
static enum peer_answer claimed(struct bytes in, struct peer_job *jobs, unsigned limit, unsigned *ret_count, size_t *ret_used) {
  static const char reserved[] = "RESERVED ";
  unsigned long long id, size;
  size_t line = line_size(in);
  char text[64], *end;
  if (line == 0) return PEER_WAIT;
  if (line >= sizeof text || limit == 0) return PEER_BROKEN;
  (void)snprintf(text, sizeof text, "%.*s", (int)line, (const char *)in.data);
  if (strncmp(text, reserved, sizeof reserved - 1) != 0) return PEER_BROKEN;
  id = strtoull(text + sizeof reserved - 1, &end, 10);
  if (*end != ' ') return PEER_BROKEN;
  size = strtoull(end, &end, 10);
  if ((*end != '\r' && *end != '\n') || size > SIZE_MAX / 2) return PEER_BROKEN;
  if (in.size - line < size + 2) return PEER_WAIT;
  (void)snprintf(jobs[0].id, sizeof jobs[0].id, "%llu", id);
  jobs[0].payload = bytes_of(in.data + line, size);
  *ret_count = 1;
  *ret_used = line + size + 2;
  return PEER_DONE;
}

static void complete(struct buffer *out, const struct peer_job *jobs, unsigned count, unsigned *ret_answers) {
  for (unsigned i = 0; i < count; i++) buffer_append_format(out, "delete %s\r\n", jobs[i].id);
  *ret_answers = count;
}

const struct peer peer_beanstalkd = {
    .name = "beanstalkd",
    .promise = "an fsync of its own for every put and delete; claims are in memory alone",
    .submit = submit,
    .claim = claim,
    .claimed = claimed,
    .complete = complete,
    .answered = answered,
};
