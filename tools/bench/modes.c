/* Owns the modes: submit, lifecycle and paced on one path, grow, idle and restart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "bench.h"
#include "load/scan.h"

/* A server of its own with what its log held before the load, or one that is there already. */
struct target {
  struct server server;
  bool own;
  struct server_access access;
  struct log_facts before;
};

static enum status target_open(struct target *target, const struct bench_options *options, struct fault *fault) {
  target->own = options->url == NULL;
  if (!target->own) return server_access_read(options->credentials, options->url, &target->access, fault);
  enum status status = server_make(&target->server, fault);
  if (status == STATUS_OK) status = log_facts_read(target->server.data, 0, &target->before, fault);
  if (status == STATUS_OK) status = server_spawn(&target->server, fault);
  if (status == STATUS_OK) status = server_wait_ready(&target->server, fault);
  if (status == STATUS_OK) target->access = target->server.access;
  return status;
}

/* Stops the server and reads from its log what the load cost. */
static enum status target_close(struct target *target, struct result *result, struct fault *fault) {
  struct log_facts after;
  if (!target->own) return STATUS_OK;
  enum status status = server_stop(&target->server, fault);
  if (status == STATUS_OK) status = log_facts_read(target->server.data, target->before.last_seq, &after, fault);
  if (status != STATUS_OK || result->tasks == 0) return status;
  result->syncs_per_task = (double)after.commits / (double)result->tasks;
  result->disk_bytes_per_task = (double)(after.used_bytes - target->before.used_bytes) / (double)result->tasks;
  return STATUS_OK;
}

static void target_clear(struct target *target) {
  if (target->own) server_clear(&target->server, false);
}

static int end(struct run *run, struct result *result, enum status status, const struct fault *fault) {
  if (run->fault.status != STATUS_OK) return bench_say(exit_finding, "%s", run->fault.message);
  if (status != STATUS_OK) return bench_say(exit_cannot_run, "%s", fault->message);
  result_print(result);
  return exit_done;
}

int mode_load(const struct bench_options *options) {
  static struct run run;
  struct target target = {.own = false};
  struct producer producer = {.lines = NULL};
  struct crew crew = {.workers = NULL};
  struct result result;
  struct fault fault = {0};
  enum status status = target_open(&target, options, &fault);
  int code = exit_cannot_run;
  if (status == STATUS_OK) {
    run_init(&run, options, &target.access);
    if (options->workers != 0) {
      crew_init(&crew, &run, options->workers, options->capacity);
      if (!crew_connect(&crew)) run_fail(&run, "%s accepts no connection", target.access.worker.text);
    }
    measure(&run, &producer, options->workers != 0 ? &crew : NULL, target.own ? target.server.pid : 0, &result);
    producer_clear(&producer);
    crew_clear(&crew);
    if (run.fault.status == STATUS_OK) status = target_close(&target, &result, &fault);
    code = end(&run, &result, status, &fault);
    run_clear(&run);
  } else {
    code = bench_say(exit_cannot_run, "%s", fault.message);
  }
  target_clear(&target);
  return code;
}

int mode_mixed(const struct bench_options *options) {
  struct bench_options mixed = *options;
  mixed.mixed = true;
  return mode_load(&mixed);
}

/* ---- idle ---- */

int mode_idle(const struct bench_options *options) {
  static struct run run;
  struct target target = {.own = false};
  struct result result;
  struct fault fault = {0};
  enum status status = target_open(&target, options, &fault);
  int code = exit_cannot_run;
  if (status == STATUS_OK) {
    run_init(&run, options, &target.access);
    measure_idle(&run, options->seconds, target.server.pid, &result);
    if (run.fault.status == STATUS_OK) status = target_close(&target, &result, &fault);
    code = end(&run, &result, status, &fault);
    run_clear(&run);
  } else {
    code = bench_say(exit_cannot_run, "%s", fault.message);
  }
  target_clear(&target);
  return code;
}

/* ---- grow ---- */

enum { grow_sample = 20000 };

/* So many more lives, on the same connections of workers. */
static void grow_by(struct run *run, struct crew *crew, pid_t pid, uint64_t tasks, struct result *ret_result) {
  struct bench_options options = *run->options;
  struct producer producer;
  const struct bench_options *whole = run->options;
  uint64_t accepted = run->accepted;
  options.tasks = tasks;
  run->options = &options;
  histogram_reset(&run->submit);
  histogram_reset(&run->life);
  run->accepted = run->finished = 0;
  measure(run, &producer, crew, pid, ret_result);
  producer_clear(&producer);
  run->accepted += accepted;
  run->options = ret_result->options = whole;
}

/* Lives until there are so many tasks of history; what is printed is what the last of them cost. */
static enum status grow_to(struct run *run, struct target *target, struct crew *crew, uint64_t tasks, struct fault *fault) {
  struct result result;
  uint64_t before = 0, after = 0, sample = tasks < 2 * grow_sample ? tasks / 2 : grow_sample;
  if (run->accepted + sample < tasks) grow_by(run, crew, target->server.pid, tasks - sample - run->accepted, &result);
  if (run->fault.status != STATUS_OK) return STATUS_OK;
  enum status status = log_used_read(target->server.data, &before, fault);
  grow_by(run, crew, target->server.pid, sample, &result);
  if (status == STATUS_OK) status = log_used_read(target->server.data, &after, fault);
  if (status != STATUS_OK || run->fault.status != STATUS_OK) return status;
  result.history = tasks;
  result.disk_bytes_per_task = (double)(after - before) / (double)sample;
  result_print(&result);
  (void)fflush(stdout);
  return STATUS_OK;
}

/* A result at every power of ten, and at the last task. */
int mode_grow(const struct bench_options *options) {
  static struct run run;
  struct target target = {.own = false};
  struct crew crew = {.workers = NULL};
  struct fault fault = {0};
  enum status status = target_open(&target, options, &fault);
  if (status == STATUS_OK) {
    run_init(&run, options, &target.access);
    crew_init(&crew, &run, options->workers, options->capacity);
    if (!crew_connect(&crew)) run_fail(&run, "%s accepts no connection", target.access.worker.text);
    for (uint64_t step = 1000; run.accepted < options->tasks && status == STATUS_OK && run.fault.status == STATUS_OK;
         step *= 10)
      status = grow_to(&run, &target, &crew, step < options->tasks ? step : options->tasks, &fault);
    crew_clear(&crew);
    run_clear(&run);
  }
  target_clear(&target);
  if (run.fault.status != STATUS_OK) return bench_say(exit_finding, "%s", run.fault.message);
  return status == STATUS_OK ? exit_done : bench_say(exit_cannot_run, "%s", fault.message);
}

/* ---- restart ---- */

/* Tasks that wait; with workers, tasks that they carried out and one that waits. */
static void fill(struct run *run, const struct target *target, struct result *result) {
  const struct bench_options *options = run->options;
  struct producer producer = {.lines = NULL};
  struct crew crew = {.workers = NULL};
  bool lives = options->workers != 0;
  if (lives) crew_init(&crew, run, options->workers, options->capacity);
  if (lives && !crew_connect(&crew)) run_fail(run, "%s accepts no connection", target->access.worker.text);
  measure(run, &producer, lives ? &crew : NULL, target->server.pid, result);
  producer_clear(&producer);
  crew_clear(&crew);
  if (!lives) return;
  producer_start(&producer, run, 1);
  run_to_end(run, &producer, NULL, NULL);
  producer_clear(&producer);
}

/* A worker knocks until the server is there again; returns when it holds a task. */
static void wait_for_claim(struct run *run, struct crew *crew) {
  enum { knock_ns = 1000000 };
  while (crew->assigned == 0 && run_goes_on(run)) {
    (void)crew_connect(crew);
    loop_turn(&run->loop, loop_now_ns() + knock_ns);
  }
}

/* The server is killed where it stands, and started again. */
static enum status restart(struct run *run, struct target *target, uint64_t empty_bytes, struct result *result,
                           struct fault *fault) {
  struct crew crew;
  crew_init(&crew, run, 1, 1);
  crew.idle = true;
  server_kill(&target->server);
  int64_t started_ns = loop_now_ns();
  run->progress_ns = started_ns;
  if (!run->options->checkpoint) (void)setenv("ORBIT_CHECKPOINT", "false", 1); /* the whole log is to be folded */
  enum status status = server_spawn(&target->server, fault);
  (void)unsetenv("ORBIT_CHECKPOINT");
  if (status == STATUS_OK) wait_for_claim(run, &crew);
  int64_t claimed_ns = loop_now_ns();
  if (status == STATUS_OK && run->fault.status == STATUS_OK) status = server_wait_ready(&target->server, fault);
  struct usage usage = usage_read(target->server.pid);
  crew_clear(&crew);
  result->restarted = true;
  result->replay_events = target->server.replay_events;
  result->replay_seconds = target->server.replay_seconds;
  result->ready_seconds = (double)(target->server.ready_ns - started_ns) / 1e9;
  result->first_claim_seconds = (double)(claimed_ns - started_ns) / 1e9;
  result->rss_bytes = (double)usage.rss_bytes;
  double grown = (double)usage.anon_bytes - (double)empty_bytes;
  result->memory_bytes_per_task = result->tasks != 0 && grown > 0 ? grown / (double)result->tasks : 0;
  return status;
}

int mode_restart(const struct bench_options *options) {
  static struct run run;
  struct target target = {.own = false};
  struct result result;
  struct fault fault = {0};
  enum status status = target_open(&target, options, &fault);
  if (status != STATUS_OK) {
    target_clear(&target);
    return bench_say(exit_cannot_run, "%s", fault.message);
  }
  uint64_t empty_bytes = usage_read(target.server.pid).anon_bytes;
  run_init(&run, options, &target.access);
  fill(&run, &target, &result);
  if (run.fault.status == STATUS_OK) status = restart(&run, &target, empty_bytes, &result, &fault);
  if (run.fault.status == STATUS_OK && status == STATUS_OK) status = target_close(&target, &result, &fault);
  int code = end(&run, &result, status, &fault);
  run_clear(&run);
  target_clear(&target);
  return code;
}
