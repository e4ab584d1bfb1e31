/* The crash campaign: a server that is broken in one way or another at random moments under load, started again, and asked
 * about everything that it ever answered. */
#ifndef ORBIT_TESTS_CRASH_CAMPAIGN_H
#define ORBIT_TESTS_CRASH_CAMPAIGN_H

#include "load/http_line.h"
#include "load/server.h"
#include "load/worker_line.h"
#include "oracle.h"
#include "shim.h"

/* The ways to break it. */
enum break_kind {
  BREAK_KILL,        /* SIGKILL */
  BREAK_PAUSE,       /* SIGSTOP; then SIGCONT, or SIGKILL while it stands still */
  BREAK_WRITE,       /* a write to the log fails: EIO, or ENOSPC out of the blue */
  BREAK_SHORT_WRITE, /* a write to the log is done in part */
  BREAK_SYNC,        /* a sync of the log fails once, and what was not synced is lost in part */
  BREAK_POWER,       /* the power goes: what was not synced is lost in part, and the process with it */
  BREAK_FULL,        /* the disk is full for a while */
  break_kind_count
};
enum { BREAKS_KILL = 1 << BREAK_KILL, BREAKS_ALL = (1 << break_kind_count) - 1, BREAKS_FULL = 1 << BREAK_FULL };

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
  bool broken;   /* a connection broke though nobody killed the server */
  bool breaking; /* connections may break now */
  bool full;     /* the disk is said to be full now */
  uint64_t repeats, conflicts, looks, kills;
  uint64_t answers, acceptances, refusals; /* all; new tasks; new tasks that a full disk refused */
  uint64_t reports, reviews;
  uint64_t broke[break_kind_count]; /* rounds */
  struct shim_control *control;     /* NULL: without the shim */
  char **environment;               /* of the server with the shim; owned */
  char *small_disk;                 /* where the data lies on a small file system of its own; or NULL */
};

/* Runs rounds of the ways in `breaks` (bits) and a clean end. What is wrong stands in oracle.violations.
 * NOT_FOUND: small_disk, and mounting is not allowed here. UNAVAILABLE …: it could not be run. */
enum status campaign_run(struct campaign *campaign, uint64_t seed, unsigned rounds, unsigned breaks, bool small_disk,
                         struct fault *fault);
/* Frees all; keeps the directory of the server where something was wrong, and says so. */
void campaign_clear(struct campaign *campaign);

/* True once in n times. */
bool campaign_chance(struct campaign *campaign, unsigned n);
/* Starts the server and the clients, which carry on where they were. */
enum status campaign_start(struct campaign *campaign, struct fault *fault);
/* Ends the server with SIGKILL if it runs, lets the clients go, and judges the log. */
void campaign_crash(struct campaign *campaign);
void campaign_turn(struct campaign *campaign);
/* Turns for so long, or until a connection breaks, or (counter not NULL) until the counter has passed `above`. True: it has. */
bool campaign_turns(struct campaign *campaign, int64_t ms, const uint64_t *counter, uint64_t above);

/* ---- breaks.c ---- */
/* Loads the shim into the servers that will be started. IO_ERROR: it is not there. */
enum status breaks_attach(struct campaign *campaign, struct fault *fault);
void breaks_detach(struct campaign *campaign);
/* The server runs under load; it is dead, and its log was judged, afterwards. */
enum status breaks_round(struct campaign *campaign, enum break_kind kind, struct fault *fault);
/* The power goes while it starts. */
enum status breaks_start(struct campaign *campaign, struct fault *fault);

/* ---- full.c ---- */
/* Puts the server's data on a small file system of its own. NOT_FOUND: mounting is not allowed here. */
enum status full_mount(struct campaign *campaign, struct fault *fault);
void full_unmount(struct campaign *campaign);
/* Fills the disk, looks on, perhaps through a crash, and makes room again. The server runs before and after. */
enum status full_round(struct campaign *campaign, struct fault *fault);

/* ---- submitters.c ---- */
void submitters_init(struct campaign *campaign);
void submitters_open(struct campaign *campaign);
void submitters_close(struct campaign *campaign); /* what was under way is lost; a submission will be repeated */
void submitters_turn(struct campaign *campaign);  /* gives idle ones something to do */
/* The body of a submission, as it is sent first. */
void submission_write(struct buffer *out, const struct campaign *campaign, uint64_t number);
/* Reads a task of an answer. */
bool submitters_read_task(struct bytes task, struct id *ret_id, uint64_t *ret_revision, enum task_state *ret_state);
bool submitters_idle(const struct campaign *campaign);

/* ---- workers.c ---- */
void workers_init(struct campaign *campaign);
void workers_open(struct campaign *campaign);
void workers_close(struct campaign *campaign);
void workers_turn(struct campaign *campaign); /* sends what is due, works a little, hangs up now and then */
bool workers_idle(const struct campaign *campaign);

#endif
