/* Owns one run of load: its loop, its clock, and its measuring. */
#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "bench.h"

static const int64_t silence_ns_max = INT64_C(30) * 1000000000;
static const int64_t turn_ns_max = INT64_C(1000000000);

volatile sig_atomic_t bench_interrupted;

void run_init(struct run *run, const struct bench_options *options, const struct server_access *access) {
  *run = (struct run){.options = options, .access = access, .progress_ns = loop_now_ns()};
  (void)snprintf(run->tag, sizeof run->tag, "%08x", randombytes_random());
  loop_init(&run->loop);
}

void run_clear(struct run *run) {
  loop_clear(&run->loop);
  free(run->sent_ns);
  run->sent_ns = NULL;
}

uint64_t run_number(struct run *run, int64_t since_ns) {
  uint64_t number = run->sent++;
  if (number >= run->sent_capacity) {
    run->sent_capacity = run->sent_capacity != 0 ? 2 * run->sent_capacity : 65536;
    run->sent_ns = guard_realloc(run->sent_ns, run->sent_capacity * sizeof *run->sent_ns);
  }
  run->sent_ns[number] = since_ns;
  return number;
}

void run_remember(struct run *run, uint64_t number, struct bytes task_id) {
  unsigned place = run->recent_count < recent_max ? run->recent_count++ : (unsigned)(number % recent_max);
  struct recent *recent = &run->recent[place];
  must(task_id.size < sizeof recent->task_id);
  recent->number = number;
  memcpy(recent->task_id, task_id.data, task_id.size);
  recent->task_id[task_id.size] = '\0';
}

void run_fail(struct run *run, const char *format, ...) {
  va_list arguments;
  if (run->fault.status != STATUS_OK) return;
  run->fault.status = STATUS_UNAVAILABLE;
  va_start(arguments, format);
  (void)vsnprintf(run->fault.message, sizeof run->fault.message, format, arguments);
  va_end(arguments);
}

bool run_goes_on(struct run *run) {
  if (bench_interrupted) run_fail(run, "interrupted");
  if (loop_now_ns() - run->progress_ns > silence_ns_max)
    run_fail(run, "nothing came back for half a minute: %llu tasks accepted, %llu finished", (unsigned long long)run->accepted,
             (unsigned long long)run->finished);
  return run->fault.status == STATUS_OK;
}

void run_to_end(struct run *run, struct producer *producer, const struct crew *crew, struct mixer *mixer) {
  while (run_goes_on(run) && (!producer_is_done(producer) || (crew != NULL && run->finished < run->accepted))) {
    if (mixer != NULL) mixer_turn(mixer);
    int64_t due_ns = producer_turn(producer), latest_ns = loop_now_ns() + turn_ns_max;
    loop_turn(&run->loop, due_ns < latest_ns ? due_ns : latest_ns);
  }
}

static void wait_for_bystanders(struct run *run, struct bystanders *bystanders) {
  bystanders_start(bystanders, run);
  while (!bystanders_are_there(bystanders) && run_goes_on(run)) loop_turn(&run->loop, loop_now_ns() + turn_ns_max);
}

void measure_idle(struct run *run, double seconds, pid_t pid, struct result *ret_result) {
  struct bystanders bystanders;
  wait_for_bystanders(run, &bystanders);
  struct usage before = usage_read(pid);
  int64_t started_ns = loop_now_ns(), end_ns = started_ns + (int64_t)(seconds * 1e9);
  for (int64_t now_ns = started_ns; now_ns < end_ns && run_goes_on(run); now_ns = run->progress_ns = loop_now_ns())
    loop_turn(&run->loop, end_ns - now_ns < turn_ns_max ? end_ns : now_ns + turn_ns_max);
  struct usage after = usage_read(pid);
  result_init(ret_result, run);
  ret_result->seconds = (double)(loop_now_ns() - started_ns) / 1e9;
  ret_result->feed_events = bystanders.events;
  bystanders_clear(&bystanders);
  if (pid == 0) return;
  ret_result->server_cpu_us_per_s = (after.cpu_us - before.cpu_us) / ret_result->seconds;
  ret_result->rss_bytes = (double)after.rss_bytes;
}

void measure(struct run *run, struct producer *producer, struct crew *crew, pid_t pid, struct result *ret_result) {
  while (crew != NULL && crew->welcome < crew->count && run_goes_on(run)) loop_turn(&run->loop, loop_now_ns() + turn_ns_max);
  struct mixer mixer = {.lines = NULL};
  struct bystanders bystanders;
  wait_for_bystanders(run, &bystanders);
  struct usage before = usage_read(pid);
  int64_t started_ns = loop_now_ns();
  run->progress_ns = started_ns;
  producer_start(producer, run, run->options->tasks);
  if (run->options->mixed) mixer_start(&mixer, run, producer);
  run_to_end(run, producer, crew, run->options->mixed ? &mixer : NULL);
  mixer.ending = true;
  while (mixer.waiting != 0 && run_goes_on(run)) loop_turn(&run->loop, loop_now_ns() + turn_ns_max);
  struct usage after = usage_read(pid);
  mixer_clear(&mixer);
  result_init(ret_result, run);
  ret_result->seconds = (double)(loop_now_ns() - started_ns) / 1e9;
  ret_result->tasks = run->accepted;
  ret_result->other_requests = mixer.done;
  ret_result->feed_events = bystanders.events;
  bystanders_clear(&bystanders);
  if (pid == 0 || run->accepted == 0) return;
  ret_result->server_cpu_us_per_task = (after.cpu_us - before.cpu_us) / (double)run->accepted;
  ret_result->rss_bytes = (double)after.rss_bytes;
}
