/* Owns requests that read the feed: a page that waits until there is something on it, and a stream of events. Each is looked at
 * in its turn (http_feed.c) and keeps no more than one page of what it was shown. */
#include <stdlib.h>

#include "base/guard.h"
#include "edge/request.h"
#include "edge/routes.h"

static enum status take_place(struct request_pool *pool, struct fault *fault) {
  if (atomic_fetch_add_explicit(pool->feed_readers, 1, memory_order_relaxed) < feed_readers_max) return STATUS_OK;
  atomic_fetch_sub_explicit(pool->feed_readers, 1, memory_order_relaxed);
  (void)fault_set(fault, STATUS_UNAVAILABLE, NULL, "too many readers of the feed (%d) wait at once", feed_readers_max);
  fault->retry_after_ms = feed_full_retry_ms;
  return STATUS_UNAVAILABLE;
}

enum status request_feed_open(struct request *request, struct answer *answer, struct fault *fault) {
  struct feed_opening *opening = &answer->as.feed;
  enum status status = take_place(request->pool, fault);
  if (status != STATUS_OK) return status;
  struct request_feed *feed = guard_calloc(1, sizeof *feed);
  feed->reader = (struct feed_reader){.filter = opening->filter,
                                      .namespace_id = request->who.namespace_id,
                                      .scope = opening->scope,
                                      .scope_count = opening->scope_count,
                                      .after = opening->after};
  opening->scope = NULL;
  feed->told = feed->reader.after;
  request->feed = feed;
  return STATUS_OK;
}

void request_feed_close(struct request *request) {
  if (request->feed == NULL) return;
  atomic_fetch_sub_explicit(request->pool->feed_readers, 1, memory_order_relaxed);
  free(request->feed->reader.scope);
  free(request->feed);
  request->feed = NULL;
}

void request_feed_wait(struct request *request, int64_t now_ms, int64_t heartbeat_ms) {
  must(request->phase == REQUEST_FEEDING);
  request->feed->due_ms = now_ms + (request->stream ? heartbeat_ms : (int64_t)request->wait_ms);
}

static bool is_in_force(const struct request *request) {
  struct edge *edge = request->pool->edge;
  return directory_check(engine_directory(edge->engine), &request->who, edge_now_us(edge)) == STATUS_OK;
}

/* ---- A page ---- */

static bool answer_page(struct request *request) {
  struct fault fault;
  if (is_in_force(request)) {
    request_finish(request, NULL);
  } else {
    (void)fault_set(&fault, STATUS_UNAUTHENTICATED, "Authorization", "the bearer token is not in force any more");
    request_refuse(request, &fault);
  }
  request_feed_close(request);
  return true;
}

static bool refuse_damage(struct request *request, enum status status) {
  struct fault fault;
  (void)fault_set(&fault, status, NULL, "the log cannot be read for the feed");
  request_refuse(request, &fault);
  request_feed_close(request);
  return true;
}

/* The reader is moved to just before the first event that it is shown, so that the page begins with it. */
static bool step_page(struct request *request, int64_t now_ms, bool *ret_more) {
  struct feed_reader *reader = &request->feed->reader;
  struct feed_event event;
  enum feed_found found;
  uint32_t looks = feed_scan_events_max;
  enum status status = feed_next(request->pool->feed, reader, &looks, &found, &event);
  if (status != STATUS_OK) return refuse_damage(request, status);
  if (found == FEED_FOUND) reader->after = event.seq - 1;
  *ret_more = found == FEED_ENOUGH;
  return found == FEED_FOUND || now_ms >= request->feed->due_ms ? answer_page(request) : false;
}

/* ---- A stream ---- */

static enum status write_stream(struct request *request, bool *ret_more) {
  struct feed *feed = request->pool->feed;
  struct feed_reader *reader = &request->feed->reader;
  struct buffer *out = &request->out;
  struct feed_event event;
  enum feed_found found = FEED_FOUND;
  uint32_t looks = feed_scan_events_max;
  enum status status = STATUS_OK;
  while (status == STATUS_OK && out->size < feed_stream_bytes) {
    status = feed_next(feed, reader, &looks, &found, &event);
    if (status != STATUS_OK || found != FEED_FOUND) break;
    buffer_append_format(out, "id: %llu\ndata: ", (unsigned long long)event.seq);
    status = feed_write(feed, out, &event);
    buffer_append_text(out, "\n\n");
    request->feed->told = event.seq;
  }
  *ret_more = found == FEED_ENOUGH;
  return status;
}

/* A comment that keeps the connection; where events were passed over, with the position, so that nobody looks at them again. */
static void write_heartbeat(struct request *request) {
  struct request_feed *feed = request->feed;
  buffer_append_text(&request->out, ": heartbeat\n");
  if (feed->told != feed->reader.after)
    buffer_append_format(&request->out, "id: %llu\n", (unsigned long long)feed->reader.after);
  buffer_append_char(&request->out, '\n');
  feed->told = feed->reader.after;
}

static bool step_stream(struct request *request, int64_t now_ms, bool *ret_more) {
  struct request_feed *feed = request->feed;
  enum status status = is_in_force(request) ? write_stream(request, ret_more) : STATUS_UNAUTHENTICATED;
  if (status == STATUS_CORRUPT)
    log_line(&request->pool->edge->log, LOG_ERROR, "the log cannot be read for the feed", "request_id", request->id, NULL);
  if (status != STATUS_OK || request->out.failed) {
    buffer_reset(&request->out); /* perhaps half an event */
    feed->over = true;
    return true;
  }
  if (request->out.size == 0 && now_ms >= feed->due_ms) write_heartbeat(request);
  return request->out.size != 0;
}

bool request_feed_step(struct request *request, int64_t now_ms, bool *ret_more) {
  must(request->phase == REQUEST_FEEDING);
  *ret_more = false;
  return request->stream ? step_stream(request, now_ms, ret_more) : step_page(request, now_ms, ret_more);
}

void request_feed_end(struct request *request, bool readable) {
  must(request->phase == REQUEST_FEEDING);
  if (request->stream) request->feed->over = true;
  else (void)(readable ? answer_page(request) : refuse_damage(request, STATUS_UNAVAILABLE));
}

void request_feed_greet(struct request *request) {
  buffer_reset(&request->out);
  buffer_append_text(&request->out, "retry: 1000\n\n");
}

size_t request_feed_take(struct request *request, char *out, size_t room) {
  struct request_feed *feed = request->feed;
  size_t left = request->out.size - feed->sent, size = left < room ? left : room;
  for (size_t i = 0; i < size; i++) out[i] = (char)request->out.data[feed->sent + i];
  feed->sent += size;
  if (feed->sent != request->out.size) return size;
  feed->sent = 0;
  if (request->out.capacity > feed_stream_bytes * 2) buffer_clear(&request->out);
  buffer_reset(&request->out);
  return size;
}
