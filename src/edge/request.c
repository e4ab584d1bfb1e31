/* Owns the life of one HTTP request: judged by its head, its body counted and kept, its command handed to the engine, its
 * answer written. Knows no sockets. */
#include "edge/request.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "codec/wire_http.h"
#include "edge/routes.h"

enum { secret_answer_bytes = 16 * 1024 };

/* ---- What requests share ---- */

void request_pool_init(struct request_pool *pool, struct edge *edge, struct outbox *outbox, _Atomic uint64_t *body_bytes,
                       _Atomic uint32_t *feed_readers, const _Atomic bool *stopping) {
  uint64_t seed;
  randombytes_buf(&seed, sizeof seed);
  *pool = (struct request_pool){.edge = edge,
                                .outbox = outbox,
                                .body_bytes = body_bytes,
                                .feed_readers = feed_readers,
                                .stopping = stopping,
                                .history = history_new()};
  id_source_init(&pool->ids, seed);
}

static void job_free(struct job *job) {
  json_clear(&job->json);
  buffer_clear(&job->body);
  buffer_clear(&job->texts);
  free(job);
}

void request_pool_clear(struct request_pool *pool) {
  must(pool->jobs_out == 0);
  while (pool->free_jobs != NULL) {
    struct job *next = pool->free_jobs->next;
    job_free(pool->free_jobs);
    pool->free_jobs = next;
  }
  if (pool->reader != NULL) journal_reader_free(pool->reader);
  history_free(pool->history);
  feed_free(pool->feed);
}

void request_pool_release(struct request_pool *pool) {
  if (!pool->snapshot_taken) return;
  journal_reader_release(pool->reader);
  pool->snapshot_taken = false;
}

enum status request_pool_source(struct request_pool *pool, struct record_source *ret_source, struct fault *fault) {
  enum status status = STATUS_OK;
  if (pool->reader == NULL) status = journal_reader_new(pool->edge->journal, &pool->reader);
  if (status == STATUS_OK && !pool->snapshot_taken) status = journal_reader_refresh(pool->reader);
  if (status != STATUS_OK) return fault_set(fault, STATUS_UNAVAILABLE, NULL, "the log cannot be read now");
  pool->snapshot_taken = true;
  *ret_source = record_source_of_reader(pool->reader);
  return STATUS_OK;
}

void request_pool_next_id(struct request_pool *pool, char out[request_id_chars + 1]) {
  struct timespec wall;
  (void)clock_gettime(CLOCK_REALTIME, &wall);
  struct id id = id_source_next(&pool->ids, (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000);
  id_format(&id, out);
  out[request_id_chars] = '\0';
}

/* ---- Jobs ---- */

static struct job *job_take(struct request_pool *pool) {
  struct job *job = pool->free_jobs;
  if (job != NULL) {
    pool->free_jobs = job->next;
    pool->free_job_count--;
    return job;
  }
  job = guard_calloc(1, sizeof *job);
  json_init(&job->json);
  buffer_init(&job->body, http_batch_body_bytes_max);
  buffer_init(&job->texts, http_batch_body_bytes_max);
  return job;
}

static void buffer_shrink(struct buffer *buffer) {
  if (buffer->capacity > http_kept_bytes_max) buffer_clear(buffer);
  buffer_reset(buffer);
}

struct bytes job_token(struct job *job) {
  token_make(job->token);
  token_hash(bytes_text(job->token), job->token_hash);
  return bytes_of(job->token_hash, sizeof job->token_hash);
}

/* What an answer owns beside its ticket. */
static void free_answer(const struct command *command, const struct answer *answer) {
  if (answer->status != STATUS_OK) return;
  if (command->kind == COMMAND_GET_METRICS) free(answer->as.metrics);
  if (command->kind == COMMAND_OPEN_FEED) free(answer->as.feed.scope);
  if (command->kind != COMMAND_LIST_TASKS && command->kind != COMMAND_LIST_OBJECTS && command->kind != COMMAND_LIST_AUDIT &&
      command->kind != COMMAND_PREVIEW_TIMES)
    return;
  free(answer->as.list.of.rows);
  free(answer->as.list.oldest_waiting_at);
}

/* What one command left in it. */
static void job_forget(struct job *job) {
  free_answer(&job->ticket.command, &job->ticket.answer);
  memset(&job->ticket, 0, sizeof job->ticket);
  free(job->items);
  job->items = NULL;
  sodium_memzero(job->token, sizeof job->token);
}

static void job_put(struct request_pool *pool, struct job *job) {
  job_forget(job);
  atomic_fetch_sub_explicit(pool->body_bytes, job->reserved, memory_order_relaxed);
  job->reserved = 0;
  job->request = NULL;
  if (pool->free_job_count == http_spare_jobs_max) {
    job_free(job);
    return;
  }
  if (job->json.capacity > http_kept_bytes_max / sizeof(struct json_token) ||
      job->json.scratch.capacity > http_kept_bytes_max) {
    json_clear(&job->json);
    json_init(&job->json);
  }
  buffer_shrink(&job->body);
  buffer_shrink(&job->texts);
  job->next = pool->free_jobs;
  pool->free_jobs = job;
  pool->free_job_count++;
}

struct request *job_returned(struct request_pool *pool, struct mail *mail) {
  must(mail->kind == MAIL_TICKET && pool->jobs_out > 0);
  pool->jobs_out--;
  struct job *job = ((struct ticket *)mail)->owner;
  struct request *request = job->request;
  if (request == NULL) job_put(pool, job);
  return request;
}

/* ---- A request between connections and routes ---- */

void request_init(struct request *request, struct request_pool *pool) {
  memset(request, 0, sizeof *request);
  request->pool = pool;
  buffer_init(&request->target_text, http_memory_bytes);
  buffer_init(&request->out, http_answer_bytes_max);
  head_init(&request->head);
}

/* A job that the engine has stays its own until it comes back; any other is ours to put away. */
static void let_job_go(struct request *request) {
  if (request->job == NULL) return;
  if (request->phase == REQUEST_WAITING) request->job->request = NULL;
  else job_put(request->pool, request->job);
  request->job = NULL;
}

static void leave(struct request *request) {
  directory_leave(request->place);
  request->place = NULL;
}

static void wipe_secret(struct request *request) {
  if (request->route == NULL || (request->route->flags & ROUTE_SECRET) == 0 || request->out.data == NULL) return;
  sodium_memzero(request->out.data, request->out.capacity);
}

void request_reset(struct request *request) {
  let_job_go(request);
  request_feed_close(request);
  leave(request);
  wipe_secret(request);
  request->phase = REQUEST_NEW;
  request->route = NULL;
  request->who = (struct principal){.permissions = 0};
  head_init(&request->head);
  request->discarded = 0;
  request->close = request->stream = false;
  request->retry_after_ms = 0;
  request->allow[0] = '\0';
  buffer_shrink(&request->target_text);
  buffer_shrink(&request->out);
}

void request_clear(struct request *request) {
  let_job_go(request);
  request_feed_close(request);
  leave(request);
  wipe_secret(request);
  buffer_clear(&request->target_text);
  buffer_clear(&request->out);
}

/* ---- Answers ---- */

/* Statuses that never leave the process, and the waiting time that 429 and 503 always name. */
static void fault_publish(struct fault *fault) {
  if (fault->status > STATUS_UNAVAILABLE || fault->status == STATUS_OK)
    fault->status = status_http(fault->status) == 503 ? STATUS_UNAVAILABLE : STATUS_INTERNAL;
  if (status_is_retryable(fault->status) && fault->retry_after_ms == 0) fault->retry_after_ms = unavailable_retry_ms;
}

/* A defect is for the operator: the log line has what the client is not told. */
static void report_defect(const struct request *request, struct fault *fault) {
  log_line(&request->pool->edge->log, LOG_ERROR, "a request failed", "request_id", request->id, "reason", fault->message, NULL);
  (void)fault_set(fault, STATUS_INTERNAL, NULL, "a defect in Orbit; its log has more under this request id");
}

void request_publish_fault(const struct request *request, struct fault *fault) {
  fault_publish(fault);
  if (fault->status == STATUS_INTERNAL) report_defect(request, fault);
}

const char *request_media_type(const struct request *request) {
  bool text = request->route != NULL && (request->route->flags & ROUTE_TEXT) != 0 && request->status == STATUS_OK;
  return text ? "text/plain; version=0.0.4; charset=utf-8" : "application/json";
}

void request_refuse(struct request *request, struct fault *fault) {
  let_job_go(request);
  request_publish_fault(request, fault);
  buffer_reset(&request->out);
  wire_error_write(&request->out, request->id, fault);
  request->status = fault->status;
  request->http_status = status_http(fault->status);
  request->retry_after_ms = fault->retry_after_ms;
  request->phase = REQUEST_ANSWERED;
}

/* Room for all of the answer at once: a buffer that grows would leave parts of a token behind. */
static void reserve_secret(struct request *request) {
  if ((request->route->flags & ROUTE_SECRET) != 0) (void)buffer_reserve(&request->out, secret_answer_bytes);
}

void request_finish(struct request *request, const struct answer *answer) {
  struct fault fault = {.status = STATUS_OK};
  unsigned flags = request->route->flags;
  buffer_reset(&request->out);
  reserve_secret(request);
  request->status = STATUS_OK;
  request->http_status = answer != NULL && answer->created && (flags & ROUTE_CHANGE) == 0 ? 201 : 200;
  if ((flags & ROUTE_TEXT) == 0) wire_data_begin(&request->out, request->id);
  enum status status = request->route->finish(request, answer, &fault);
  if ((flags & ROUTE_TEXT) == 0) wire_data_end(&request->out);
  if (status == STATUS_OK && request->out.failed)
    status = fault_set(&fault, STATUS_INTERNAL, NULL, "the answer is larger than %d bytes", http_answer_bytes_max);
  if (status != STATUS_OK) {
    request_refuse(request, &fault);
    return;
  }
  let_job_go(request);
  request->phase = REQUEST_ANSWERED;
}

/* ---- Judging the head ---- */

void request_start(struct request *request, const char *target) {
  request_pool_next_id(request->pool, request->id);
  buffer_append_text(&request->target_text, target);
}

static int edge_phase_now(const struct request *request) {
  return atomic_load_explicit(&request->pool->edge->phase, memory_order_acquire);
}

/* Metrics are as open as the operator wants. */
static bool route_has(const struct request *request, enum route_flag flag) {
  unsigned flags = request->route->flags;
  if ((flags & ROUTE_TEXT) != 0 && request->pool->edge->metrics_open) flags |= ROUTE_OPEN | ROUTE_ALWAYS;
  return (flags & flag) != 0;
}

static enum status judge_phase(const struct request *request, struct fault *fault) {
  int phase = edge_phase_now(request);
  if (route_has(request, ROUTE_ALWAYS)) return STATUS_OK;
  if (phase == EDGE_REPLAYING) return fault_set(fault, STATUS_UNAVAILABLE, NULL, "Orbit is reading its log and not ready yet");
  if (phase == EDGE_DRAINING || atomic_load_explicit(request->pool->stopping, memory_order_relaxed))
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "Orbit is shutting down");
  return STATUS_OK;
}

/* Takes a place among the requests of its credential, until the answer is written. */
static enum status enter(struct request *request, struct fault *fault) {
  struct edge *edge = request->pool->edge;
  enum status status =
      directory_enter(engine_directory(edge->engine), &request->who, edge->credential_requests_max, &request->place, fault);
  if (status == STATUS_RATE_LIMITED) atomic_fetch_add_explicit(&edge->crowded_requests, 1, memory_order_relaxed);
  return status;
}

static enum status judge_who(struct request *request, struct fault *fault) {
  if (route_has(request, ROUTE_OPEN)) return STATUS_OK;
  enum status status = head_judge_authorization(&request->head, fault);
  if (status == STATUS_OK) status = edge_authenticate(request->pool->edge, request->head.authorization, &request->who, fault);
  if (status == STATUS_OK) status = edge_permit(&request->who, request->route->permission, fault);
  return status == STATUS_OK ? enter(request, fault) : status;
}

/* The feed comes as a stream to whoever asks for one. */
static enum status judge_accept(struct request *request, struct fault *fault) {
  if (route_has(request, ROUTE_TEXT)) return STATUS_OK;
  request->stream = route_has(request, ROUTE_FEED) && request->head.accepts_stream;
  return request->stream ? STATUS_OK : head_judge_accept(&request->head, fault);
}

static enum status judge_rest(struct request *request, struct fault *fault) {
  const struct route *route = request->route;
  enum status status;
  must(route != NULL);
  if ((route->flags & ROUTE_WRITE) != 0)
    status = head_judge_write(&request->head, route->body_bytes_max, (route->flags & ROUTE_KEYLESS) == 0, fault);
  else status = head_judge_read(&request->head, fault);
  if (status == STATUS_OK) status = target_judge_parameters(&request->target, route->parameters, fault);
  if (status == STATUS_OK && (route->flags & ROUTE_PAGED) != 0) status = page_read(request, fault);
  return status;
}

static enum status judge(struct request *request, const char *method, bool http_1_1, struct fault *fault) {
  enum status status = STATUS_OK;
  if (request->target_text.failed || request->target_text.size > http_target_bytes_max)
    status = fault_set(fault, STATUS_URI_TOO_LONG, NULL, "the request target is longer than %d bytes", http_target_bytes_max);
  if (status == STATUS_OK) status = head_judge_framing(&request->head, http_1_1, fault);
  if (status != STATUS_OK) {
    request->close = true;
    return status;
  }
  status = target_parse((char *)request->target_text.data, request->target_text.size, &request->target, fault);
  if (status != STATUS_OK) return status;
  /* An id that is none is told only to those who may ask. */
  struct fault not_found = {.status = STATUS_OK};
  enum status found = route_find(method, &request->target, &request->route, request->ids, request->allow, &not_found);
  if (request->route != NULL) {
    status = judge_phase(request, fault);
    if (status == STATUS_OK) status = judge_who(request, fault);
    if (status == STATUS_OK) status = judge_accept(request, fault);
    if (status != STATUS_OK) return status;
  }
  if (found != STATUS_OK) {
    *fault = not_found;
    return found;
  }
  return judge_rest(request, fault);
}

/* Takes room for the body before it comes: its length, or the most that a chunked one may have. */
static enum status reserve_body(struct request *request, struct fault *fault) {
  uint64_t size = request->head.chunked ? request->route->body_bytes_max : request->head.length;
  uint64_t before = atomic_fetch_add_explicit(request->pool->body_bytes, size, memory_order_relaxed);
  if (before + size > http_waiting_body_bytes_max) {
    atomic_fetch_sub_explicit(request->pool->body_bytes, size, memory_order_relaxed);
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "too many bodies are being read at once");
  }
  request->job = job_take(request->pool);
  request->job->reserved = size;
  if (!request->head.chunked) (void)buffer_reserve(&request->job->body, size);
  return STATUS_OK;
}

void request_open(struct request *request, const char *method, bool http_1_1) {
  struct fault fault = {.status = STATUS_OK};
  must(request->phase == REQUEST_NEW);
  request->phase = REQUEST_READING;
  if (atomic_load_explicit(request->pool->stopping, memory_order_relaxed)) request->close = true;
  enum status status = judge(request, method, http_1_1, &fault);
  if (status == STATUS_OK && (request->route->flags & ROUTE_WRITE) != 0) status = reserve_body(request, &fault);
  if (status == STATUS_LENGTH_REQUIRED) request->close = true; /* what follows is a body or a request, who knows */
  if (status != STATUS_OK) request_refuse(request, &fault);
}

/* ---- Body, command, answer ---- */

bool request_body(struct request *request, const void *data, size_t size) {
  if (request->phase == REQUEST_READING) {
    struct buffer *body = &request->job->body;
    if (size <= request->route->body_bytes_max - body->size) {
      buffer_append(body, data, size);
      return !body->failed;
    }
    struct fault fault;
    (void)fault_set(&fault, STATUS_PAYLOAD_TOO_LARGE, NULL, "the body is larger than %u bytes", request->route->body_bytes_max);
    request->close = true;
    request_refuse(request, &fault);
  }
  request->discarded += size;
  return request->discarded <= http_discard_bytes_max;
}

bool request_lacks_body(const struct request *request) {
  uint64_t come = request->phase == REQUEST_READING ? request->job->body.size : request->discarded;
  return request->head.chunked || come < request->head.length;
}

bool request_is_feed(const struct request *request) { return (request->route->flags & ROUTE_FEED) != 0; }

/* The object of the operation is the path's id; where there is none, the key alone names it. */
static void identify(struct request *request, struct command *command) {
  static const unsigned keyed = ROUTE_WRITE, mask = ROUTE_WRITE | ROUTE_KEYLESS;
  if ((request->route->flags & mask) != keyed) return;
  command->operation.identity =
      identity_make(journal_secret(request->pool->edge->journal), &request->who.namespace_id, command_kind_text(command->kind),
                    &request->ids[0], request->head.idempotency_key);
}

void request_complete(struct request *request) {
  struct fault fault = {.status = STATUS_OK};
  if (request->phase != REQUEST_READING) return;
  bool engine_is_there = edge_phase_now(request) != EDGE_REPLAYING;
  if (request->route->begin == NULL || (!engine_is_there && route_has(request, ROUTE_ALWAYS))) {
    request_finish(request, NULL);
    return;
  }
  if (request->job == NULL) request->job = job_take(request->pool);
  struct job *job = request->job;
  job->request = request;
  job->ticket.mail.kind = MAIL_TICKET;
  job->ticket.home = request->pool->outbox;
  job->ticket.owner = job;
  job->ticket.command.who = request->who;
  enum status status = judge_phase(request, &fault); /* it may have changed while the body came */
  if (status == STATUS_OK) status = request->route->begin(request, &job->ticket.command, &fault);
  if (status == STATUS_OK) {
    identify(request, &job->ticket.command);
    status = engine_submit(request->pool->edge->engine, &job->ticket, &fault);
  }
  if (status != STATUS_OK) {
    request_refuse(request, &fault);
    return;
  }
  request->pool->jobs_out++;
  request->phase = REQUEST_WAITING;
}

void request_returned(struct request *request) {
  must(request->phase == REQUEST_WAITING && request->job != NULL);
  request->phase = REQUEST_READING; /* the job is ours again */
  struct answer *answer = &request->job->ticket.answer;
  struct fault fault = answer->fault;
  bool feeds = (request->route->flags & ROUTE_FEED) != 0;
  fault.status = answer->status;
  if (answer->status == STATUS_OK && feeds) {
    fault.status = request_feed_open(request, answer, &fault);
    if (fault.status == STATUS_OK) {
      let_job_go(request);
      request->phase = REQUEST_FEEDING;
      return;
    }
  } else if (answer->status == STATUS_OK) {
    request_finish(request, answer);
    return;
  }
  request_refuse(request, &fault);
}

void request_give_up(struct request *request) {
  must(request->phase == REQUEST_WAITING);
  struct fault fault;
  (void)fault_set(&fault, STATUS_UNAVAILABLE, NULL,
                  "the engine took too long; the operation may have been committed: repeat it with the same identity");
  request_refuse(request, &fault);
}
