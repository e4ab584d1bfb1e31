/* Owns the workers: they say hello, ask for the start grant of whatever comes, and report success at once. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/id.h"
#include "bench.h"
#include "load/scan.h"

enum phase { PHASE_START = 1, PHASE_FINISH };
enum { message_bytes_max = 1024 };

/* A message id says whom its answer is for: tag (8), worker (4), slot (4), phase (1), count (15), in hexadecimal. */
enum { id_slot_at = 12, id_phase_at = 16 };

static void send_message(struct worker *worker, unsigned slot_index, enum phase phase) {
  static const char *const types[] = {[PHASE_START] = "task.start", [PHASE_FINISH] = "task.finish"};
  const struct slot *slot = &worker->slots[slot_index];
  char text[message_bytes_max];
  int size = snprintf(
      text, sizeof text,
      "{\"type\":\"%s\",\"message_id\":\"%s%04x%04x%x%015llx\",\"task_id\":\"%s\",\"attempt_id\":\"%s\",\"epoch\":\"%s\"%s}",
      types[phase], worker->crew->run->tag, worker->index & 0xffff, slot_index & 0xffff, (unsigned)phase & 15,
      (unsigned long long)++worker->crew->messages, slot->task_id, slot->attempt_id, slot->epoch,
      phase == PHASE_FINISH ? ",\"outcome\":\"SUCCEEDED\",\"result\":{\"done\":true}" : "");
  must(size > 0 && size < message_bytes_max);
  worker_line_send(&worker->line, bytes_of(text, (size_t)size));
}

static void keep_text(struct bytes text, char *out, size_t size) {
  size_t length = text.size < size ? text.size : size - 1;
  if (length > 0) memcpy(out, text.data, length);
  out[length] = '\0';
}

/* The number in the payload, when the task is of this run. */
static uint64_t task_number(const struct run *run, struct bytes task) {
  struct bytes payload = scan_member(task, "payload"), digits = scan_text(payload, "n");
  char text[16];
  if (!bytes_equal_text(scan_text(payload, "run"), run->tag) || digits.size != 8) return UINT64_MAX;
  keep_text(digits, text, sizeof text);
  uint64_t number = strtoull(text, NULL, 10);
  return number < run->sent ? number : UINT64_MAX;
}

static void take_assign(struct worker *worker, struct bytes message) {
  struct crew *crew = worker->crew;
  struct bytes task = scan_member(message, "task"), attempt = scan_member(message, "attempt");
  unsigned index = 0, count = 2 * crew->capacity;
  crew->assigned++;
  if (crew->idle) return;
  while (index < count && worker->slots[index].busy) index++;
  if (index == count) {
    run_fail(crew->run, "more assignments than the worker has capacity for");
    return;
  }
  struct slot *slot = &worker->slots[index];
  slot->busy = true;
  slot->number = task_number(crew->run, task);
  keep_text(scan_text(task, "id"), slot->task_id, sizeof slot->task_id);
  keep_text(scan_text(attempt, "attempt_id"), slot->attempt_id, sizeof slot->attempt_id);
  keep_text(scan_text(attempt, "epoch"), slot->epoch, sizeof slot->epoch);
  send_message(worker, index, PHASE_START);
}

static unsigned hexadecimal(const uint8_t *at, unsigned count) {
  unsigned value = 0;
  for (unsigned i = 0; i < count; i++) value = value << 4 | (unsigned)(at[i] <= '9' ? at[i] - '0' : at[i] - 'a' + 10);
  return value;
}

static void take_result(struct worker *worker, struct bytes message) {
  struct run *run = worker->crew->run;
  struct bytes id = scan_text(message, "message_id");
  if (!scan_is_true(message, "ok") || !scan_is_true(message, "applied") || id.size != id_chars) {
    run_fail(run, "a worker was answered %.*s", (int)(message.size < 250 ? message.size : 250), (const char *)message.data);
    return;
  }
  unsigned index = hexadecimal(id.data + id_slot_at, 4);
  struct slot *slot = index < 2 * worker->crew->capacity ? &worker->slots[index] : NULL;
  if (slot == NULL || !slot->busy) {
    run_fail(run, "a worker was answered for nothing that it asked");
  } else if (hexadecimal(id.data + id_phase_at, 1) == PHASE_START) {
    send_message(worker, index, PHASE_FINISH);
  } else {
    slot->busy = false;
    run->progress_ns = loop_now_ns();
    if (slot->number == UINT64_MAX) return;
    run->finished++;
    histogram_add(&run->life, (uint64_t)(run->progress_ns - run->sent_ns[slot->number]));
  }
}

static void took(struct worker_line *line, struct bytes message) {
  struct worker *worker = line->context;
  struct bytes type = scan_text(message, "type");
  if (bytes_equal_text(type, "command.result")) {
    take_result(worker, message);
  } else if (bytes_equal_text(type, "task.assign")) {
    take_assign(worker, message);
  } else if (bytes_equal_text(type, "worker.welcome")) {
    worker->crew->welcome++;
  } else if (!bytes_equal_text(type, "server.goaway")) {
    run_fail(worker->crew->run, "a worker was told %.*s", (int)(message.size < 250 ? message.size : 250),
             (const char *)message.data);
  }
}

static void opened(struct worker_line *line) {
  struct worker *worker = line->context;
  char text[message_bytes_max];
  int size = snprintf(
      text, sizeof text,
      "{\"type\":\"worker.hello\",\"message_id\":\"%s\",\"instance_id\":\"%s\",\"name\":\"orbit-bench\",\"queue_ids\":[\"%s\"],"
      "\"handlers\":[{\"handler\":\"bench\",\"handler_version\":\"v1\"}],\"capacity\":%u}",
      worker->instance_id, worker->instance_id, worker->crew->run->access->queue_id, worker->crew->capacity);
  must(size > 0 && size < message_bytes_max);
  worker_line_send(line, bytes_of(text, (size_t)size));
}

static void broke(struct worker_line *line, unsigned code) {
  const struct worker *worker = line->context;
  /* An idle crew is one that comes back until the server is there again. */
  if (!worker->crew->idle) run_fail(worker->crew->run, "a worker's connection broke (%u)", code);
}

void crew_init(struct crew *crew, struct run *run, unsigned workers, unsigned capacity) {
  *crew = (struct crew){.run = run, .count = workers, .capacity = capacity};
  crew->workers = guard_calloc(workers, sizeof *crew->workers);
  for (unsigned i = 0; i < workers; i++) {
    struct worker *worker = &crew->workers[i];
    uint8_t id[id_bytes];
    worker_line_init(&worker->line, &run->loop);
    worker->line.context = worker;
    worker->line.opened = opened;
    worker->line.took = took;
    worker->line.broke = broke;
    worker->crew = crew;
    worker->index = i;
    randombytes_buf(id, sizeof id);
    (void)sodium_bin2hex(worker->instance_id, sizeof worker->instance_id, id, sizeof id);
    worker->slots = guard_calloc(2 * (size_t)capacity, sizeof *worker->slots);
  }
}

bool crew_connect(struct crew *crew) {
  bool all = true;
  for (unsigned i = 0; i < crew->count; i++) {
    struct worker *worker = &crew->workers[i];
    if (worker->line.state == WORKER_LINE_CLOSED &&
        !worker_line_open(&worker->line, &crew->run->access->worker, crew->run->access->token))
      all = false;
  }
  return all;
}

void crew_clear(struct crew *crew) {
  for (unsigned i = 0; crew->workers != NULL && i < crew->count; i++) {
    worker_line_clear(&crew->workers[i].line);
    free(crew->workers[i].slots);
  }
  free(crew->workers);
  crew->workers = NULL;
}
