/* The engine: the one writer. A tick takes tickets from the mailbox, reads the clock once, expires what is due, looks up
 * receipts, decides, stages, folds, dispatches, commits once, and only then hands all answers back. */
#ifndef ORBIT_ENGINE_ENGINE_H
#define ORBIT_ENGINE_ENGINE_H

#include <stdint.h>

#include "base/status.h"
#include "engine/directory.h"
#include "engine/mail.h"
#include "engine/watch.h"
#include "journal/journal.h"
#include "state/state.h"

struct engine;

struct engine_options {
  uint64_t id_seed;      /* for ids of new objects */
  const char *version;   /* goes into node.started */
  int64_t hot_window_us; /* how long ended tasks stay in memory, once the state has a store for them (state_set_cold) */
  int64_t retention_us;  /* how long ended tasks are answered; 0: for ever */
  uint64_t memory_max;   /* tasks and receipts get seven eighths before ended ones leave sooner; bytes, 0: no bound */
  uint32_t company_min;  /* a tick with so many tickets does not wait for its commit: see engine_tick; 0: every one does */
  int64_t slow_disk_us;  /* … where commits take this long of late; 0: on any disk */
  const char *zoneinfo;  /* directory of time zones; NULL: the system's */
};

/* Takes over the replayed state (owned by the engine from here on). Appends nothing yet. */
struct engine *engine_new(struct journal *journal, struct state *state, const struct engine_options *options);
void engine_free(struct engine *engine);

/* Appends node.started (all unfinished leases get their full length back) and publishes the directory. */
enum status engine_start(struct engine *engine, int64_t now_us, struct fault *fault);
/* Appends node.stopped. */
enum status engine_finish(struct engine *engine, int64_t now_us, const char *reason, struct fault *fault);

/* One tick at this time. OK: *ret_next_us is when the next timer comes (INT64_MAX: none) and *ret_busy tells that more work
 * waits right now. Any other status: a commit failed, nothing of it or behind it was answered, the process must stop.
 *
 * With company_min a tick that had company leaves its commit to the journal, and what it has to say waits until the commit is
 * durable; so does what a later tick says that has seen it. A later tick, engine_land or engine_finish sends it off. */
enum status engine_tick(struct engine *engine, int64_t now_us, int64_t *ret_next_us, bool *ret_busy, struct fault *fault);

/* Sends off what is durable of earlier ticks; wait: when all of it is. Status as of engine_tick. */
enum status engine_land(struct engine *engine, bool wait, struct fault *fault);

/* ---- any thread ---- */

/* Puts the ticket in the mailbox. UNAVAILABLE (nothing was taken; retry_after_ms in the fault): the mailbox is full, or the
 * engine is stopping and the command is not one that drains. OK: the ticket comes back through ticket->home. */
enum status engine_submit(struct engine *engine, struct ticket *ticket, struct fault *fault);
struct directory *engine_directory(struct engine *engine);
/* Refuse new submissions and stop dispatch from now on; start, renew, finish, release and reads still pass. */
void engine_drain(struct engine *engine);

/* The last event that is durable. */
uint64_t engine_position(const struct engine *engine);
/* From here on the watch is rung as engine/watch.h says; it must not move until engine_unwatch. */
void engine_watch(struct engine *engine, struct watch *watch);
void engine_unwatch(struct engine *engine, struct watch *watch);

/* ---- the thread (engine/loop.c): clock, waiting, wake-ups ---- */

/* Runs ticks until engine_stop, on the calling thread. Same status as engine_tick. */
enum status engine_run(struct engine *engine, struct fault *fault);
void engine_stop(struct engine *engine); /* any thread, also from a signal handler */
/* How many ticks engine_run has finished: who hangs, stands still. An idle engine ticks about once a second, and at once when
 * it is woken. Any thread. */
uint64_t engine_ticks(struct engine *engine);
void engine_wake(struct engine *engine);
/* Engine's time now: max(wall, last event) at start plus monotonic since, slewed towards the wall by at most 1/1000. Any
 * thread. */
int64_t engine_now_us(struct engine *engine);

#endif
