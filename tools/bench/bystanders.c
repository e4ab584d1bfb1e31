/* Owns those who stand beside the load: workers that offer what nobody asks for, and readers that follow the feed as streams.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "bench.h"
#include "load/scan.h"

enum { hello_bytes_max = 1024, request_bytes_max = 4096 };

struct idle_worker {
  struct worker_line line; /* first */
  struct bystanders *all;
};

/* Where a reader is in the body's chunks: a line with the size, so many bytes, an empty line. */
enum chunk_place { CHUNK_HEAD = 1, CHUNK_SIZE, CHUNK_DATA, CHUNK_END };

struct reader {
  struct stream stream; /* first */
  struct bystanders *all;
  enum chunk_place place;
  size_t left;   /* bytes of the chunk */
  unsigned word; /* how much of "data:" stands at the beginning of the text's line; more than its length: something else does */
};

/* ---- idle workers ---- */

static void worker_opened(struct worker_line *line) {
  const struct idle_worker *worker = line->context;
  const struct run *run = worker->all->run;
  uint8_t random[16];
  char id[33], text[hello_bytes_max];
  randombytes_buf(random, sizeof random);
  (void)sodium_bin2hex(id, sizeof id, random, sizeof random);
  int size = snprintf(
      text, sizeof text,
      "{\"type\":\"worker.hello\",\"message_id\":\"%s\",\"instance_id\":\"%s\",\"name\":\"orbit-bench\",\"queue_ids\":[\"%s\"],"
      "\"handlers\":[{\"handler\":\"bench-idle\",\"handler_version\":\"v1\"}],\"capacity\":1}",
      id, id, run->access->queue_id);
  must(size > 0 && size < hello_bytes_max);
  worker_line_send(line, bytes_of(text, (size_t)size));
}

static void worker_took(struct worker_line *line, struct bytes message) {
  const struct idle_worker *worker = line->context;
  if (bytes_equal_text(scan_text(message, "type"), "worker.welcome")) worker->all->welcome++;
  else
    run_fail(worker->all->run, "an idle worker was told %.*s", (int)(message.size < 250 ? message.size : 250),
             (const char *)message.data);
}

static void worker_broke(struct worker_line *line, unsigned code) {
  const struct idle_worker *worker = line->context;
  run_fail(worker->all->run, "an idle worker's connection broke (%u)", code);
}

/* ---- readers of the feed ---- */

/* Text of the stream: each event has one line that begins with "data:". */
static void reader_count(struct reader *reader, struct bytes text) {
  static const char word[] = "data:";
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] == '\n') {
      reader->word = 0;
    } else if (reader->word >= sizeof word - 1) {
      const uint8_t *end = memchr(text.data + i, '\n', text.size - i);
      if (end == NULL) return;
      i = (size_t)(end - text.data) - 1;
    } else if (text.data[i] != (uint8_t)word[reader->word]) {
      reader->word = sizeof word;
    } else if (++reader->word == sizeof word - 1) {
      reader->all->events++;
    }
  }
}

static bool reader_head(struct reader *reader, struct bytes text, size_t *ret_size) {
  const uint8_t *end = text.size != 0 ? memmem(text.data, text.size, "\r\n\r\n", 4) : NULL;
  if (end == NULL) return false;
  if (memcmp(text.data, "HTTP/1.1 200", 12) != 0) {
    run_fail(reader->all->run, "a reader of the feed was answered %.*s", (int)(text.size < 250 ? text.size : 250),
             (const char *)text.data);
    return false;
  }
  reader->all->reading++;
  reader->place = CHUNK_SIZE;
  *ret_size = (size_t)(end + 4 - text.data);
  return true;
}

/* The line with a chunk's size, or the empty one behind a chunk. */
static bool reader_line(struct reader *reader, struct bytes text, size_t *ret_size) {
  const uint8_t *end = text.size != 0 ? memchr(text.data, '\n', text.size) : NULL;
  char digits[20] = "";
  if (end == NULL) return false;
  *ret_size = (size_t)(end + 1 - text.data);
  if (reader->place == CHUNK_END) {
    reader->place = CHUNK_SIZE;
    return true;
  }
  memcpy(digits, text.data, *ret_size < sizeof digits ? *ret_size : sizeof digits - 1);
  reader->left = strtoull(digits, NULL, 16);
  reader->place = CHUNK_DATA;
  if (reader->left == 0) run_fail(reader->all->run, "the feed ended");
  return reader->left != 0;
}

static bool reader_step(struct reader *reader) {
  struct bytes text = stream_unread(&reader->stream);
  size_t size = 0;
  if (reader->place == CHUNK_DATA) {
    size = text.size < reader->left ? text.size : reader->left;
    if (size == 0) return false;
    reader_count(reader, bytes_of(text.data, size));
    reader->left -= size;
    if (reader->left == 0) reader->place = CHUNK_END;
  } else if (reader->place == CHUNK_HEAD ? !reader_head(reader, text, &size) : !reader_line(reader, text, &size)) {
    return false;
  }
  stream_consume(&reader->stream, size);
  return true;
}

static void reader_took(struct stream *stream) {
  struct reader *reader = (struct reader *)(void *)stream; /* its first member */
  while (reader_step(reader)) continue;
}

static void reader_broke(struct stream *stream) {
  const struct reader *reader = (const struct reader *)(const void *)stream;
  run_fail(reader->all->run, "a reader of the feed was cut off");
}

/* ---- all of them ---- */

static void start_worker(struct bystanders *all, struct idle_worker *worker) {
  const struct server_access *access = all->run->access;
  worker->all = all;
  worker_line_init(&worker->line, &all->run->loop);
  worker->line.context = worker;
  worker->line.opened = worker_opened;
  worker->line.took = worker_took;
  worker->line.broke = worker_broke;
  if (!worker_line_open(&worker->line, &access->worker, access->token))
    run_fail(all->run, "%s accepts no connection", access->worker.text);
}

static void start_reader(struct bystanders *all, struct reader *reader) {
  const struct server_access *access = all->run->access;
  cleanup(buffer_clear) struct buffer request;
  reader->all = all;
  reader->place = CHUNK_HEAD;
  stream_init(&reader->stream, &all->run->loop, reader_took, reader_broke);
  if (!stream_open(&reader->stream, &access->http)) {
    run_fail(all->run, "%s accepts no connection", access->http.text);
    return;
  }
  buffer_init(&request, request_bytes_max);
  buffer_append_format(&request,
                       "GET /v1/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n",
                       access->http.text, access->token);
  must(!request.failed);
  stream_write(&reader->stream, request.data, request.size);
}

void bystanders_start(struct bystanders *all, struct run *run) {
  const struct bench_options *options = run->options;
  *all = (struct bystanders){.run = run, .worker_count = options->idle_workers, .reader_count = options->feed_readers};
  all->workers = guard_calloc(all->worker_count + 1U, sizeof *all->workers);
  all->readers = guard_calloc(all->reader_count + 1U, sizeof *all->readers);
  for (unsigned i = 0; i < all->worker_count; i++) start_worker(all, &all->workers[i]);
  for (unsigned i = 0; i < all->reader_count; i++) start_reader(all, &all->readers[i]);
}

bool bystanders_are_there(const struct bystanders *all) {
  return all->welcome == all->worker_count && all->reading == all->reader_count;
}

void bystanders_clear(struct bystanders *all) {
  for (unsigned i = 0; all->workers != NULL && i < all->worker_count; i++) worker_line_clear(&all->workers[i].line);
  for (unsigned i = 0; all->readers != NULL && i < all->reader_count; i++) stream_clear(&all->readers[i].stream);
  free(all->workers);
  free(all->readers);
  *all = (struct bystanders){.run = NULL};
}
