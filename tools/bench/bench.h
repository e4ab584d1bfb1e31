/* The parts of orbit-bench: what is asked for (options), who makes load (producer, crew, bystanders), what came of it (result).
 * A mode puts them together; a new mode is a function in the table of main.c. */
#ifndef ORBIT_TOOLS_BENCH_H
#define ORBIT_TOOLS_BENCH_H

#include <signal.h>

#include "load/histogram.h"
#include "load/http_line.h"
#include "load/server.h"
#include "load/worker_line.h"

enum { tasks_max = 99999999 }; /* eight digits: what keys and payloads have room for */
enum { exit_done = 0, exit_finding = 1, exit_misuse = 2, exit_cannot_run = 3 };

struct bench_options {
  const char *mode;
  unsigned inflight; /* submissions sent and not answered: each has a connection */
  uint64_t tasks;    /* at most tasks_max; 0: no limit but seconds */
  unsigned payload_bytes;
  unsigned batch; /* tasks a request; 0: one, by the route for one */
  unsigned workers, capacity;
  unsigned idle_workers, feed_readers; /* beside the load */
  double rate;     /* submissions per second, whether or not the answers keep up; 0: the next when one is answered */
  double seconds;  /* of submitting; 0: no limit but tasks */
  const char *url; /* NULL: a server of its own */
  const char *credentials;
  bool mixed; /* reads, lists, repeats and cancels beside */
  bool jsonl;
  struct buffer against; /* earlier results, a JSON object a line; empty: none */
  bool checkpoint;       /* restart from the checkpoint */
};

/* A task that was accepted lately. */
struct recent {
  uint64_t number;
  char task_id[33];
};
enum { recent_max = 1024 };

/* One run of load: what producer and crew share. Tasks have numbers 0, 1, 2 … that travel in their payloads. */
struct run {
  const struct bench_options *options;
  const struct server_access *access;
  struct loop loop;
  char tag[9];      /* marks keys and payloads of this run */
  int64_t *sent_ns; /* by task number: when its submission was sent, or was due */
  uint64_t sent_capacity;
  struct histogram submit, life, other; /* ns */
  struct recent recent[recent_max];     /* mode mixed */
  unsigned recent_count;
  uint64_t sent, accepted, finished;
  int64_t progress_ns; /* when something last came back */
  struct fault fault;  /* the first thing that went wrong; status OK: nothing did */
};

void run_init(struct run *run, const struct bench_options *options, const struct server_access *access);
void run_clear(struct run *run);
/* The next task's number; its latency begins at since_ns. */
uint64_t run_number(struct run *run, int64_t since_ns);
void run_remember(struct run *run, uint64_t number, struct bytes task_id);
/* Notes what went wrong, if it is the first. */
void run_fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* True while nothing went wrong, nobody interrupted, and something came back within the last half minute. */
bool run_goes_on(struct run *run);
extern volatile sig_atomic_t bench_interrupted;

/* ---- producer: submits ---- */

struct producer {
  struct run *run;
  struct http_line *lines;
  unsigned count, waiting;
  unsigned items;        /* tasks a request */
  struct buffer request; /* a whole request; each task's number is written into it twice: key and payload */
  size_t *places;
  int64_t started_ns, stop_ns; /* no submission after stop_ns */
  uint64_t limit;
};

enum { payload_bytes_min = 43 }; /* the frame around the filling */

/* Opens the connections and submits the first of so many more tasks (0: no limit but the options' seconds). */
void producer_start(struct producer *producer, struct run *run, uint64_t tasks);
/* Submits what is due by the rate; returns when it wants to be called again, at the latest. */
int64_t producer_turn(struct producer *producer);
bool producer_is_done(const struct producer *producer); /* all that it wanted was submitted and answered */
/* The request that submitted this task, once more; valid until the next is sent. Not of a batch. */
struct bytes producer_repeat(struct producer *producer, uint64_t number);
void producer_clear(struct producer *producer);

/* ---- mixer: everything but submissions, on connections of its own ---- */

struct mixer {
  struct run *run;
  struct producer *producer;
  struct http_line *lines;
  unsigned count, waiting;
  struct buffer request;
  uint64_t next, done;
  bool ending; /* nothing more is asked */
};

void mixer_start(struct mixer *mixer, struct run *run, struct producer *producer);
/* Puts connections to work that have none: once there is a task to ask about. */
void mixer_turn(struct mixer *mixer);
void mixer_clear(struct mixer *mixer);

/* ---- crew: workers that start and finish whatever comes ---- */

struct slot {
  bool busy;
  char task_id[33], attempt_id[33], epoch[21];
  uint64_t number; /* of the task; UINT64_MAX: not of this run */
};

struct worker {
  struct worker_line line; /* first */
  struct crew *crew;
  unsigned index;
  char instance_id[33];
  struct slot *slots; /* twice the capacity: an assignment may overtake the answer that frees its slot */
};

struct crew {
  struct run *run;
  struct worker *workers;
  unsigned count, capacity, welcome;
  uint64_t messages; /* for message ids */
  bool idle;         /* take assignments and do nothing with them (restart) */
  uint64_t assigned;
};

void crew_init(struct crew *crew, struct run *run, unsigned workers, unsigned capacity);
/* Connects those that are not connected. False: one was refused at once. */
bool crew_connect(struct crew *crew);
void crew_clear(struct crew *crew);

/* ---- bystanders: workers that nothing is for, and readers that follow the feed as streams ---- */

struct bystanders {
  struct run *run;
  struct idle_worker *workers;
  struct reader *readers;
  unsigned worker_count, welcome, reader_count, reading;
  uint64_t events; /* that came to readers */
};

void bystanders_start(struct bystanders *all, struct run *run);
/* Every worker is welcome, and every reader has the beginning of its answer. */
bool bystanders_are_there(const struct bystanders *all);
void bystanders_clear(struct bystanders *all);

/* ---- what came of it ---- */

struct result {
  const struct bench_options *options;
  uint64_t tasks;
  double seconds;
  const struct histogram *submit, *life, *other;
  uint64_t other_requests; /* of mode mixed */
  uint64_t feed_events;    /* that came to readers of the feed */
  /* Negative: not known. */
  double server_cpu_us_per_task, server_cpu_us_per_s, syncs_per_task, disk_bytes_per_task, rss_bytes;
  uint64_t history; /* of mode grow: tasks so far; else 0 */
  bool restarted;   /* the rest is of mode restart */
  uint64_t replay_events;
  double replay_seconds, ready_seconds, first_claim_seconds, memory_bytes_per_task;
};

void result_init(struct result *ret_result, const struct run *run);
void result_print(const struct result *result);

/* Turns the loop until all that the producer wanted is answered and, with a crew, finished. */
void run_to_end(struct run *run, struct producer *producer, const struct crew *crew, struct mixer *mixer);
/* Runs producer and crew (NULL: none) until all is done, and fills in the result but for what the log tells. pid 0: not ours.
 */
void measure(struct run *run, struct producer *producer, struct crew *crew, pid_t pid, struct result *ret_result);
/* Submits nothing for so many seconds: what the server spends on those who are connected. */
void measure_idle(struct run *run, double seconds, pid_t pid, struct result *ret_result);

/* A mode: exit code. */
typedef int bench_mode(const struct bench_options *options);
bench_mode mode_load, mode_mixed, mode_restart, mode_grow, mode_idle;

/* "orbit-bench: …" on stderr; returns code. */
int bench_say(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
