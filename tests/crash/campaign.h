/* The crash campaign: a server that is killed at random moments under load, started again, and asked about everything that it
 * ever answered. */
#ifndef ORBIT_TESTS_CRASH_CAMPAIGN_H
#define ORBIT_TESTS_CRASH_CAMPAIGN_H

#include "load/http_line.h"
#include "load/server.h"
#include "load/worker_line.h"
#include "oracle.h"

enum { submitter_count = 8, worker_count = 5, worker_capacity = 6, live_max = 1024 };

enum job { JOB_NONE, JOB_SUBMIT, JOB_REPEAT, JOB_CONFLICT, JOB_GET };

struct submitter {
  struct http_line line; /* first */
  struct campaign *campaign;
  enum job job;
  uint64_t number;          /* of the submission that it is about */
  struct submission before; /* what was known when it was sent */
  bool was_sent;            /* JOB_SUBMIT: sent before, and the answer was lost */
};

struct crash_worker {
  struct worker_line line; /* first */
  struct campaign *campaign;
  struct id instance;
  bool welcome;            /* on this connection */
  uint64_t live[live_max]; /* indexes of attempts that are not over */
  unsigned live_count;
};

struct campaign {
  struct server server;
  struct loop loop;
  struct oracle oracle;
  struct submitter submitters[submitter_count];
  struct crash_worker workers[worker_count];
  uint64_t seed, random; /* the seed decides what each task is like; random goes on */
  bool draining;         /* no new submissions */
  bool checking;         /* the end: every task is looked at */
  uint64_t check_next;
  bool broken; /* a connection broke though nobody killed the server */
  uint64_t repeats, conflicts, looks, kills;
};

/* Runs rounds crashes and a clean end. What is wrong stands in oracle.violations. UNAVAILABLE …: it could not be run. */
enum status campaign_run(struct campaign *campaign, uint64_t seed, unsigned rounds, struct fault *fault);
/* Frees all; keeps the directory of the server where something was wrong, and says so. */
void campaign_clear(struct campaign *campaign);

/* True once in n times. */
bool campaign_chance(struct campaign *campaign, unsigned n);

/* ---- submitters.c ---- */
void submitters_init(struct campaign *campaign);
void submitters_open(struct campaign *campaign);
void submitters_close(struct campaign *campaign); /* what was under way is lost; a submission will be repeated */
void submitters_turn(struct campaign *campaign);  /* gives idle ones something to do */
bool submitters_idle(const struct campaign *campaign);

/* ---- workers.c ---- */
void workers_init(struct campaign *campaign);
void workers_open(struct campaign *campaign);
void workers_close(struct campaign *campaign);
void workers_turn(struct campaign *campaign); /* sends what is due, works a little, hangs up now and then */
bool workers_idle(const struct campaign *campaign);

#endif
