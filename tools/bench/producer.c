/* Owns the submitting: one request, of one task or of a batch, that is written once and sent again and again with other numbers
 * in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "bench.h"
#include "load/scan.h"

enum { number_digits = 8, body_bytes_max = 4 * 1024 * 1024 };
static const char number_place[] = "########";

static void write_number(uint8_t *at, uint64_t number) {
  for (int i = number_digits - 1; i >= 0; i--, number /= 10) at[i] = (uint8_t)('0' + number % 10);
}

static size_t find_place(const struct buffer *request, size_t after) {
  const uint8_t *found = memmem(request->data + after, request->size - after, number_place, number_digits);
  must(found != NULL);
  return (size_t)(found - request->data);
}

/* key NULL: the header has it. */
static void write_task(struct buffer *body, const struct run *run, const char *key) {
  buffer_append_char(body, '{');
  if (key != NULL) buffer_append_format(body, "\"idempotency_key\":\"%s\",", key);
  buffer_append_format(body, "\"queue_id\":\"%s\",\"handler\":\"bench\",\"handler_version\":\"v1\",\"payload_version\":\"v1\",",
                       run->access->queue_id);
  buffer_append_format(body, "\"payload\":{\"run\":\"%s\",\"n\":\"%s\",\"fill\":\"", run->tag, number_place);
  for (unsigned i = payload_bytes_min; i < run->options->payload_bytes; i++) buffer_append_char(body, 'x');
  buffer_append_text(body, "\"},\"task_timeout_ms\":86400000}");
}

static void make_request(struct producer *producer) {
  const struct run *run = producer->run;
  unsigned batch = run->options->batch;
  cleanup(buffer_clear) struct buffer body;
  char key[64];
  buffer_init(&body, body_bytes_max);
  (void)snprintf(key, sizeof key, "bench-%s-%s", run->tag, number_place);
  if (batch != 0) buffer_append_text(&body, "{\"items\":[");
  for (unsigned i = 0; i < batch; i++) {
    if (i != 0) buffer_append_char(&body, ',');
    write_task(&body, run, key);
  }
  if (batch != 0) buffer_append_text(&body, "]}");
  else write_task(&body, run, NULL);
  must(!body.failed);
  buffer_init(&producer->request, 2 * body_bytes_max);
  http_request_write(&producer->request, "POST", batch != 0 ? "/v1/tasks:batch" : "/v1/tasks", &run->access->http,
                     run->access->token, batch != 0 ? NULL : key, buffer_bytes(&body));
  must(!producer->request.failed);
  producer->places = guard_calloc(2 * (size_t)producer->items, sizeof *producer->places);
  size_t after = 0;
  for (size_t i = 0; i < 2 * (size_t)producer->items; i++, after += number_digits)
    after = producer->places[i] = find_place(&producer->request, after);
}

static bool wants_more(const struct producer *producer) {
  return producer->run->sent < producer->limit && producer->run->fault.status == STATUS_OK && loop_now_ns() < producer->stop_ns;
}

static void place_number(struct producer *producer, unsigned item, uint64_t number) {
  write_number(producer->request.data + producer->places[2 * item], number);
  write_number(producer->request.data + producer->places[2 * item + 1], number);
}

struct bytes producer_repeat(struct producer *producer, uint64_t number) {
  must(producer->items == 1);
  place_number(producer, 0, number);
  return buffer_bytes(&producer->request);
}

/* since_ns: when its latency begins; 0: now. */
static void submit_next(struct producer *producer, struct http_line *line, int64_t since_ns) {
  struct run *run = producer->run;
  line->number = run->sent;
  if (since_ns == 0) since_ns = loop_now_ns();
  for (unsigned i = 0; i < producer->items; i++) place_number(producer, i, run_number(run, since_ns));
  producer->waiting++;
  http_line_send(line, buffer_bytes(&producer->request));
}

/* How many items of a batch's answer were accepted. */
static unsigned count_accepted(struct bytes body) {
  static const char accepted[] = "{\"status\":201,";
  unsigned count = 0;
  const uint8_t *at = body.data, *end = body.data + body.size;
  while ((at = memmem(at, (size_t)(end - at), accepted, sizeof accepted - 1)) != NULL) at += sizeof accepted - 1, count++;
  return count;
}

static void answered(struct http_line *line, unsigned status, struct bytes body) {
  struct producer *producer = line->context;
  struct run *run = producer->run;
  int64_t now = loop_now_ns();
  producer->waiting--;
  run->progress_ns = now;
  bool good = producer->run->options->batch != 0 ? status == 200 && count_accepted(body) == producer->items : status == 201;
  if (!good) {
    run_fail(run, "submission %llu was answered %u: %.*s", (unsigned long long)line->number, status,
             (int)(body.size < 200 ? body.size : 200), (const char *)body.data);
    return;
  }
  run->accepted += producer->items;
  if (run->options->mixed) run_remember(run, line->number, scan_text(scan_member(scan_member(body, "data"), "task"), "id"));
  histogram_add(&run->submit, (uint64_t)(now - run->sent_ns[line->number]));
  if (run->options->rate <= 0 && wants_more(producer)) submit_next(producer, line, 0);
}

static void broke(struct http_line *line) {
  struct producer *producer = line->context;
  if (line->waiting)
    run_fail(producer->run, "a connection broke before submission %llu was answered", (unsigned long long)line->number);
  else if (!http_line_open(line, &producer->run->access->http)) run_fail(producer->run, "the server accepts no connection");
  else if (producer->run->options->rate <= 0 && wants_more(producer)) submit_next(producer, line, 0);
}

void producer_start(struct producer *producer, struct run *run, uint64_t tasks) {
  const struct bench_options *options = run->options;
  *producer = (struct producer){.run = run, .count = options->inflight, .started_ns = loop_now_ns()};
  producer->stop_ns = options->seconds > 0 ? producer->started_ns + (int64_t)(options->seconds * 1e9) : INT64_MAX;
  producer->limit = tasks != 0 && tasks < tasks_max - run->sent ? run->sent + tasks : tasks_max;
  producer->items = options->batch != 0 ? options->batch : 1;
  make_request(producer);
  producer->lines = guard_calloc(producer->count, sizeof *producer->lines);
  for (unsigned i = 0; i < producer->count; i++) {
    struct http_line *line = &producer->lines[i];
    http_line_init(line, &run->loop);
    line->context = producer;
    line->answered = answered;
    line->broke = broke;
    if (!http_line_open(line, &run->access->http)) run_fail(run, "%s accepts no connection", run->access->http.text);
    else if (options->rate <= 0 && wants_more(producer)) submit_next(producer, line, 0);
  }
}

int64_t producer_turn(struct producer *producer) {
  const struct run *run = producer->run;
  double rate = run->options->rate;
  unsigned at = 0;
  if (rate <= 0) return producer->stop_ns;
  while (wants_more(producer)) {
    int64_t due_ns = producer->started_ns + (int64_t)((double)run->sent * 1e9 / rate);
    if (due_ns > loop_now_ns()) return due_ns < producer->stop_ns ? due_ns : producer->stop_ns;
    while (at < producer->count && producer->lines[at].waiting) at++;
    if (at == producer->count) break; /* late; the wait counts, because the clock of each began when it was due */
    submit_next(producer, &producer->lines[at], due_ns);
  }
  return INT64_MAX;
}

bool producer_is_done(const struct producer *producer) { return producer->waiting == 0 && !wants_more(producer); }

void producer_clear(struct producer *producer) {
  for (unsigned i = 0; producer->lines != NULL && i < producer->count; i++) http_line_clear(&producer->lines[i]);
  free(producer->lines);
  producer->lines = NULL;
  buffer_clear(&producer->request);
  free(producer->places);
  producer->places = NULL;
}
