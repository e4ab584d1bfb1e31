/* Owns what goes on beside submissions in mode mixed: reads, lists, repeats and cancels of tasks that were accepted lately. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "bench.h"
#include "load/scan.h"

enum kind { KIND_GET, KIND_LIST, KIND_REPEAT, KIND_ATTEMPTS, KIND_CANCEL, kind_count };
/* In turn: four reads of a task, two repeats, one each of the rest. */
static const enum kind turns[] = {KIND_GET,    KIND_REPEAT, KIND_GET,      KIND_LIST,  KIND_GET,
                                  KIND_REPEAT, KIND_GET,    KIND_ATTEMPTS, KIND_CANCEL};
enum { turn_count = sizeof turns / sizeof turns[0], request_bytes_max = 4096, path_bytes_max = 128 };

static bool wants_more(const struct mixer *mixer) {
  return mixer->run->recent_count != 0 && !mixer->ending && mixer->run->fault.status == STATUS_OK;
}

static void send_one(struct mixer *mixer, struct http_line *line) {
  static const struct bytes cancel = {.data = (const uint8_t *)"{\"reason\":\"orbit-bench\"}", .size = 24};
  const struct run *run = mixer->run;
  const struct recent *recent = &run->recent[(mixer->next * 31) % run->recent_count];
  enum kind kind = turns[mixer->next % turn_count];
  char path[path_bytes_max], key[64];
  static const char *const forms[] = {[KIND_GET] = "/v1/tasks/%s",
                                      [KIND_LIST] = "/v1/tasks?limit=20&queue_id=%s",
                                      [KIND_ATTEMPTS] = "/v1/tasks/%s/attempts",
                                      [KIND_CANCEL] = "/v1/tasks/%s:cancel"};
  line->number = mixer->next++;
  mixer->waiting++;
  if (kind == KIND_REPEAT) {
    http_line_send(line, producer_repeat(mixer->producer, recent->number));
    return;
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  (void)snprintf(path, sizeof path, forms[kind], kind == KIND_LIST ? run->access->queue_id : recent->task_id);
#pragma GCC diagnostic pop
  (void)snprintf(key, sizeof key, "bench-%s-mixed-%llu", run->tag, (unsigned long long)line->number);
  buffer_reset(&mixer->request);
  http_request_write(&mixer->request, kind == KIND_CANCEL ? "POST" : "GET", path, &run->access->http, run->access->token,
                     kind == KIND_CANCEL ? key : NULL, kind == KIND_CANCEL ? cancel : bytes_of(NULL, 0));
  must(!mixer->request.failed);
  http_line_send(line, buffer_bytes(&mixer->request));
}

/* A cancel may come too late, or its task be cancelled already; nothing else may be refused. */
static bool is_right(enum kind kind, unsigned status, struct bytes body) {
  if (kind == KIND_CANCEL) return status == 200 || status == 409;
  return status == 200 && (kind != KIND_REPEAT || scan_is_true(scan_member(body, "data"), "deduplicated"));
}

static void answered(struct http_line *line, unsigned status, struct bytes body) {
  struct mixer *mixer = line->context;
  enum kind kind = turns[line->number % turn_count];
  mixer->waiting--;
  if (!is_right(kind, status, body)) {
    run_fail(mixer->run, "request %llu of the mix was answered %u: %.*s", (unsigned long long)line->number, status,
             (int)(body.size < 200 ? body.size : 200), (const char *)body.data);
    return;
  }
  mixer->done++;
  histogram_add(&mixer->run->other, (uint64_t)(loop_now_ns() - line->sent_ns));
  if (wants_more(mixer)) send_one(mixer, line);
}

static void broke(struct http_line *line) {
  struct mixer *mixer = line->context;
  run_fail(mixer->run, "a connection of the mix broke");
}

void mixer_start(struct mixer *mixer, struct run *run, struct producer *producer) {
  *mixer = (struct mixer){.run = run, .producer = producer, .count = run->options->inflight / 4 + 1};
  buffer_init(&mixer->request, request_bytes_max);
  mixer->lines = guard_calloc(mixer->count, sizeof *mixer->lines);
  for (unsigned i = 0; i < mixer->count; i++) {
    struct http_line *line = &mixer->lines[i];
    http_line_init(line, &run->loop);
    line->context = mixer;
    line->answered = answered;
    line->broke = broke;
    if (!http_line_open(line, &run->access->http)) run_fail(run, "%s accepts no connection", run->access->http.text);
  }
}

void mixer_turn(struct mixer *mixer) {
  for (unsigned i = 0; i < mixer->count && wants_more(mixer); i++)
    if (!mixer->lines[i].waiting) send_one(mixer, &mixer->lines[i]);
}

void mixer_clear(struct mixer *mixer) {
  for (unsigned i = 0; mixer->lines != NULL && i < mixer->count; i++) http_line_clear(&mixer->lines[i]);
  free(mixer->lines);
  mixer->lines = NULL;
  buffer_clear(&mixer->request);
}
