/* Owns the readers of the feed among the connections of an HTTP thread: they stand suspended in one line and are looked at in
 * turns. However many they are, commands come first: while those come in, readers get a small share of the thread's time and
 * fall behind instead. */
#include <microhttpd.h>
#include <time.h>

#include "base/guard.h"
#include "edge/http_thread.h"

/* What answering one reader costs outside of its turn: its next request, or writing to its socket, in the library and in the
 * kernel. Rather too much than too little: commands come first. */
enum { reader_cost_us = 150, stream_block_bytes = 16 * 1024 };

static int64_t monotonic_us(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- Streams ---- */

/* What the library sends next. Nothing: the connection is suspended until there is something. */
static ssize_t stream_read(void *context, uint64_t position, char *out, size_t room) {
  struct http_connection *connection = context;
  struct request *request = &connection->request;
  (void)position;
  if (request->out.size != 0) {
    size_t size = request_feed_take(request, out, room);
    connection->thread->again = true;
    http_connection_move(connection, &connection->thread->moving); /* whoever reads, however slowly, has its time anew */
    return (ssize_t)size;
  }
  if (request->feed->over || connection->thread->stopping_since_ms != 0) return MHD_CONTENT_READER_END_OF_STREAM;
  http_feed_admit(connection);
  MHD_suspend_connection(connection->connection);
  return 0;
}

int http_feed_stream(struct http_connection *connection) {
  struct request *request = &connection->request;
  request_feed_greet(request);
  struct MHD_Response *response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, stream_block_bytes, stream_read, connection, NULL);
  if (response == NULL) return (int)MHD_NO;
  static const char *const headers[][2] = {
      {"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
    must(MHD_add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES);
  must(MHD_add_response_header(response, "X-Request-Id", request->id) == MHD_YES);
  enum MHD_Result result = MHD_queue_response(connection->connection, MHD_HTTP_OK, response);
  MHD_destroy_response(response);
  http_connection_move(connection, &connection->thread->moving);
  return (int)result;
}

/* ---- The line ---- */

void http_feed_admit(struct http_connection *connection) {
  struct http_thread *thread = connection->thread;
  struct http_feed *line = &thread->feed;
  request_feed_wait(&connection->request, thread->now_ms, thread->shared->heartbeat_ms);
  http_connection_move(connection, &line->waiting);
  line->count++;
  line->fresh = true;
  if (line->watched) return;
  line->watch.outbox = &thread->outbox;
  engine_watch(thread->shared->edge->engine, &line->watch);
  line->watched = true;
}

static void leave(struct http_connection *connection) {
  connection->thread->feed.count--;
  http_connection_resume(connection);
}

/* Begins a turn for all who wait: true when there is any reason for one. */
static bool begin_turn(struct http_thread *thread) {
  struct http_feed *line = &thread->feed;
  bool grown = engine_position(thread->shared->edge->engine) > line->seen;
  if (!grown && !line->fresh && !line->more && thread->now_ms < line->due_ms) return false;
  line->left = line->count;
  line->fresh = line->more = false;
  line->next_due_ms = INT64_MAX;
  return true;
}

/* Nobody has to be looked at before the log grows, somebody comes, or a time comes. */
static void arm(struct http_thread *thread) {
  struct http_feed *line = &thread->feed;
  if (line->count == 0) return;
  atomic_store(&line->watch.armed, true);
  if (engine_position(thread->shared->edge->engine) <= line->seen) return;
  atomic_store(&line->watch.armed, false);
  line->more = true;
}

/* The log as it stands now, for the readers that are looked at in this round. False: it cannot be read now. */
static bool open_log(struct http_thread *thread) {
  struct request_pool *pool = &thread->pool;
  struct record_source source;
  struct fault fault;
  if (pool->feed == NULL) pool->feed = feed_new();
  if (request_pool_source(pool, &source, &fault) != STATUS_OK) return false;
  if (feed_begin(pool->feed, pool->history, source, journal_reader_last_seq(pool->reader)) != STATUS_OK) return false;
  thread->feed.seen = feed_end(pool->feed);
  return true;
}

/* Looks at readers until all had their turn or the time is used up; returns how many were answered. */
static uint32_t serve(struct http_thread *thread, int64_t until_us) {
  struct http_feed *line = &thread->feed;
  uint32_t answered = 0;
  while (line->left > 0 && line->waiting.oldest != NULL) {
    struct http_connection *connection = line->waiting.oldest;
    bool more = false;
    line->left--;
    if (request_feed_step(&connection->request, thread->now_ms, &more)) {
      answered++;
      leave(connection);
    } else {
      http_connection_move(connection, &line->waiting);
      if (connection->request.feed->due_ms < line->next_due_ms) line->next_due_ms = connection->request.feed->due_ms;
      line->more = line->more || more;
    }
    if (monotonic_us() >= until_us) break;
  }
  if (line->waiting.oldest == NULL) line->left = 0;
  return answered;
}

static void end_all(struct http_thread *thread, bool readable) {
  while (thread->feed.waiting.oldest != NULL) {
    struct http_connection *connection = thread->feed.waiting.oldest;
    request_feed_end(&connection->request, readable);
    leave(connection);
  }
  thread->feed.left = 0;
}

void http_feed_run(struct http_thread *thread) {
  struct http_feed *line = &thread->feed;
  if (line->count == 0) return;
  int64_t now_us = monotonic_us();
  if (now_us < line->rest_until_us) return;
  if (line->left == 0 && !begin_turn(thread)) {
    arm(thread);
    return;
  }
  if (!open_log(thread)) {
    end_all(thread, false);
    return;
  }
  bool busy = thread->now_ms < thread->busy_until_ms;
  uint32_t answered = serve(thread, now_us + (busy ? feed_slice_busy_us : feed_slice_calm_us));
  if (line->left == 0) line->due_ms = line->next_due_ms;
  if (busy) {
    int64_t end_us = monotonic_us();
    line->rest_until_us = end_us + (end_us - now_us + (int64_t)answered * reader_cost_us) * feed_pause_busy_max;
  }
}

int64_t http_feed_next_ms(const struct http_thread *thread) {
  const struct http_feed *line = &thread->feed;
  if (line->count == 0) return INT64_MAX;
  int64_t rest_ms = (line->rest_until_us + 999) / 1000;
  bool wanted = line->left > 0 || line->fresh || line->more || !atomic_load(&line->watch.armed);
  int64_t due_ms = wanted ? thread->now_ms : line->due_ms;
  return due_ms > rest_ms ? due_ms : rest_ms;
}

void http_feed_stop(struct http_thread *thread) {
  if (thread->feed.count != 0) end_all(thread, open_log(thread));
}

void http_feed_clear(struct http_thread *thread) {
  if (thread->feed.watched) engine_unwatch(thread->shared->edge->engine, &thread->feed.watch);
  thread->feed.watched = false;
}
