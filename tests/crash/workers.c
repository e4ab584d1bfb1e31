/* Owns the workers' side of the campaign: they take what comes, report this or that, and repeat after every lost answer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "campaign.h"
#include "load/scan.h"
#include "support/support.h"

enum { message_bytes_max = 1024, hang_up_once_in = 3000 };

static struct id random_id(struct campaign *campaign) {
  struct id id;
  uint64_t drawn[2] = {test_random(&campaign->random) | 1, test_random(&campaign->random)};
  memcpy(id.bytes, drawn, sizeof id.bytes);
  return id;
}

static struct attempt_fact *live_attempt(const struct crash_worker *worker, unsigned at) {
  return &worker->campaign->oracle.attempts[worker->live[at]];
}

static void forget(struct crash_worker *worker, unsigned at) {
  live_attempt(worker, at)->step = STEP_OVER;
  worker->live[at] = worker->live[--worker->live_count];
}

/* ---- messages out ---- */

static const char *report_members(const struct attempt_fact *attempt) {
  if (attempt->outcome == OUTCOME_SUCCEEDED) return ",\"outcome\":\"SUCCEEDED\",\"result\":{\"pi\":3.140}";
  if (attempt->outcome == OUTCOME_UNKNOWN) return ",\"outcome\":\"UNKNOWN\",\"error\":{\"code\":\"LOST\"}";
  if (attempt->retryable) return ",\"outcome\":\"FAILED\",\"retryable\":true,\"error\":{\"code\":\"TRY_AGAIN\"}";
  return ",\"outcome\":\"FAILED\",\"error\":{\"code\":\"NO_USE\",\"message\":\"it cannot be done\"}";
}

static void send_step(struct crash_worker *worker, struct attempt_fact *attempt) {
  struct oracle *oracle = &worker->campaign->oracle;
  bool asks = attempt->step == STEP_ASK && !attempt->gives_back;
  const char *type = asks ? "task.start" : attempt->gives_back ? "task.release" : "task.finish";
  char text[message_bytes_max];
  int size = snprintf(text, sizeof text,
                      "{\"type\":\"%s\",\"message_id\":\"%s\",\"task_id\":\"%s\",\"attempt_id\":\"%s\",\"epoch\":\"%s\"%s}",
                      type, id_text(asks ? &attempt->start_message : &attempt->report_message).text,
                      id_text(&oracle->submissions[attempt->task].id).text, id_text(&attempt->id).text, attempt->epoch,
                      asks || attempt->gives_back ? "" : report_members(attempt));
  must(size > 0 && size < message_bytes_max);
  if (asks) attempt->start_sent = true;
  else attempt->report_sent = true;
  attempt->under_way = true;
  worker_line_send(&worker->line, bytes_of(text, (size_t)size));
}

static void say_hello(struct worker_line *line) {
  struct crash_worker *worker = line->context;
  char text[message_bytes_max];
  struct id message_id = random_id(worker->campaign);
  int size = snprintf(text, sizeof text,
                      "{\"type\":\"worker.hello\",\"message_id\":\"%s\",\"instance_id\":\"%s\",\"queue_ids\":[\"%s\"],"
                      "\"handlers\":[{\"handler\":\"crash\",\"handler_version\":\"v1\"}],\"capacity\":%d,\"lease_ms\":300000}",
                      id_text(&message_id).text, id_text(&worker->instance).text, worker->campaign->server.access.queue_id,
                      worker_capacity);
  must(size > 0 && size < message_bytes_max);
  worker_line_send(line, bytes_of(text, (size_t)size));
}

/* ---- messages in ---- */

/* What this worker holds must be in the list, unless its report was sent. */
static void take_welcome(struct crash_worker *worker, struct bytes message) {
  struct bytes list = scan_member(message, "attempts"), item;
  bool told[live_max] = {false};
  struct oracle *oracle = &worker->campaign->oracle;
  size_t at = 0;
  while (scan_item(list, &at, &item)) {
    struct bytes id = scan_text(item, "attempt_id"), state = scan_text(item, "state");
    unsigned i = 0;
    while (i < worker->live_count && !bytes_equal_text(id, id_text(&live_attempt(worker, i)->id).text)) i++;
    bool running = bytes_equal_text(state, "RUNNING");
    /* One that it never heard of cannot have started: its assignment follows. */
    if (i == worker->live_count ? running
        : running               ? !live_attempt(worker, i)->start_sent
                                : live_attempt(worker, i)->start_answered)
      oracle_violated(oracle, ATTEMPTS_COME_BACK, "attempt %.*s is said to be %.*s", (int)id.size, (const char *)id.data,
                      (int)state.size, (const char *)state.data);
    if (i < worker->live_count) told[i] = true;
  }
  for (unsigned i = 0; i < worker->live_count; i++)
    if (!told[i] && !live_attempt(worker, i)->report_sent)
      oracle_violated(oracle, ATTEMPTS_COME_BACK, "attempt %s was held, and is not in the welcome",
                      id_text(&live_attempt(worker, i)->id).text);
  worker->welcome = true;
}

/* What will become of it is drawn once, when it is heard of. */
static void draw_fate(struct campaign *campaign, struct attempt_fact *attempt) {
  unsigned dice = (unsigned)(test_random(&campaign->random) % 100);
  attempt->gives_back = dice >= 95;
  attempt->outcome = dice < 60 ? OUTCOME_SUCCEEDED : dice < 68 ? OUTCOME_UNKNOWN : OUTCOME_FAILED;
  attempt->retryable = attempt->outcome == OUTCOME_FAILED && dice < 88;
  attempt->start_message = random_id(campaign);
  attempt->report_message = random_id(campaign);
}

static bool read_number(struct bytes digits, uint64_t *ret_value) {
  uint64_t value = 0;
  for (size_t i = 0; i < digits.size; i++) {
    if (digits.data[i] < '0' || digits.data[i] > '9') return false;
    value = value * 10 + (uint64_t)(digits.data[i] - '0');
  }
  *ret_value = value;
  return digits.size > 0 && digits.size < 20;
}

static void take_assign(struct crash_worker *worker, struct bytes message) {
  struct campaign *campaign = worker->campaign;
  struct oracle *oracle = &campaign->oracle;
  struct bytes task = scan_member(message, "task"), attempt_text = scan_member(message, "attempt"),
               epoch = scan_text(attempt_text, "epoch");
  struct id id, task_id;
  uint64_t number, revision;
  if (!id_parse(scan_text(attempt_text, "attempt_id"), &id) || !id_parse(scan_text(task, "id"), &task_id) || epoch.size == 0 ||
      epoch.size > 20 || !read_number(scan_text(scan_member(task, "payload"), "n"), &number) ||
      number >= oracle->submission_count || !read_number(scan_text(task, "revision"), &revision)) {
    oracle_violated(oracle, RECOVERED_WAS_SENT, "an assignment of a task that nobody submitted");
    return;
  }
  for (unsigned i = 0; i < worker->live_count; i++)
    if (id_equal(&live_attempt(worker, i)->id, &id)) return; /* said again after coming back */
  oracle_named(oracle, number, &task_id);
  oracle_learn(oracle, number, revision, TASK_LEASED);
  must(worker->live_count < live_max);
  uint64_t index = oracle_attempt(oracle, &id, number);
  struct attempt_fact *attempt = &oracle->attempts[index];
  memcpy(attempt->epoch, epoch.data, epoch.size);
  draw_fate(campaign, attempt);
  worker->live[worker->live_count++] = index;
}

static void take_answer(struct crash_worker *worker, unsigned at, bool to_start, struct bytes message) {
  struct oracle *oracle = &worker->campaign->oracle;
  struct attempt_fact *attempt = live_attempt(worker, at);
  struct bytes task = scan_member(message, "task");
  uint64_t revision;
  enum task_state state;
  bool good = scan_is_true(message, "ok") && scan_is_true(message, "applied") &&
              read_number(scan_text(task, "revision"), &revision) && task_state_parse(scan_text(task, "state"), &state);
  attempt->under_way = false;
  if (!good) {
    oracle_violated(oracle, ATTEMPTS_COME_BACK, "attempt %s (%s) was answered %.*s", id_text(&attempt->id).text,
                    to_start ? "start" : "report", (int)(message.size < 300 ? message.size : 300), (const char *)message.data);
    forget(worker, at);
    return;
  }
  oracle_learn(oracle, attempt->task, revision, state);
  if (to_start) {
    attempt->start_answered = true;
    attempt->step = STEP_WORK;
  } else {
    attempt->report_answered = true;
    worker->campaign->reports++;
    forget(worker, at);
  }
}

static void take_result(struct crash_worker *worker, struct bytes message) {
  struct id id;
  if (!id_parse(scan_text(message, "message_id"), &id)) return;
  for (unsigned i = 0; i < worker->live_count; i++) {
    const struct attempt_fact *attempt = live_attempt(worker, i);
    bool to_start = id_equal(&attempt->start_message, &id);
    if (!to_start && !id_equal(&attempt->report_message, &id)) continue;
    take_answer(worker, i, to_start, message);
    return;
  }
  oracle_violated(&worker->campaign->oracle, ATTEMPTS_COME_BACK, "an answer to nothing that is under way: %s",
                  id_text(&id).text);
}

static void took(struct worker_line *line, struct bytes message) {
  struct crash_worker *worker = line->context;
  struct bytes type = scan_text(message, "type");
  if (bytes_equal_text(type, "command.result")) take_result(worker, message);
  else if (bytes_equal_text(type, "task.assign")) take_assign(worker, message);
  else if (bytes_equal_text(type, "worker.welcome")) take_welcome(worker, message);
  else
    oracle_violated(&worker->campaign->oracle, ATTEMPTS_COME_BACK, "a worker was told %.*s",
                    (int)(message.size < 300 ? message.size : 300), (const char *)message.data);
}

static void broke(struct worker_line *line, unsigned code) {
  struct crash_worker *worker = line->context;
  if (!worker->campaign->breaking) (void)fprintf(stderr, "a worker's connection broke: %u\n", code);
  worker->campaign->broken = true;
}

/* ---- turns ---- */

static void hang_up(struct crash_worker *worker) {
  worker_line_close(&worker->line);
  worker->welcome = false;
  for (unsigned i = 0; i < worker->live_count; i++) live_attempt(worker, i)->under_way = false;
}

static void work(struct crash_worker *worker) {
  struct campaign *campaign = worker->campaign;
  for (unsigned i = 0; i < worker->live_count; i++) {
    struct attempt_fact *attempt = live_attempt(worker, i);
    if (attempt->step == STEP_WORK && campaign_chance(campaign, 3)) attempt->step = STEP_REPORT;
    if (attempt->step != STEP_WORK && !attempt->under_way) send_step(worker, attempt);
  }
  worker_line_flush(&worker->line);
}

void workers_turn(struct campaign *campaign) {
  for (int i = 0; i < worker_count; i++) {
    struct crash_worker *worker = &campaign->workers[i];
    if (worker->welcome && campaign_chance(campaign, hang_up_once_in)) hang_up(worker);
    if (worker->line.state == WORKER_LINE_CLOSED) {
      if (!worker_line_open(&worker->line, &campaign->server.access.worker, campaign->server.access.token))
        campaign->broken = true;
    }
    if (worker->welcome) work(worker);
  }
}

bool workers_idle(const struct campaign *campaign) {
  for (int i = 0; i < worker_count; i++)
    if (campaign->workers[i].live_count != 0) return false;
  return true;
}

/* ---- connections ---- */

void workers_init(struct campaign *campaign) {
  for (int i = 0; i < worker_count; i++) {
    struct crash_worker *worker = &campaign->workers[i];
    worker_line_init(&worker->line, &campaign->loop);
    worker->line.context = worker;
    worker->line.opened = say_hello;
    worker->line.took = took;
    worker->line.broke = broke;
    worker->campaign = campaign;
    worker->instance = random_id(campaign);
  }
}

void workers_open(struct campaign *campaign) {
  for (int i = 0; i < worker_count; i++)
    if (!worker_line_open(&campaign->workers[i].line, &campaign->server.access.worker, campaign->server.access.token))
      campaign->broken = true;
}

void workers_close(struct campaign *campaign) {
  for (int i = 0; i < worker_count; i++) hang_up(&campaign->workers[i]);
}
