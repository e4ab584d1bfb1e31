/* A whole Orbit without sockets and without a clock: the real journal in a directory that vanishes, the real engine ticked by
 * hand at the times that a test names. Producers and workers are function calls. */
#ifndef ORBIT_TESTS_ENGINE_WORLD_H
#define ORBIT_TESTS_ENGINE_WORLD_H

#include "support/support.h"

#include "core/event.h"
#include "core/schedule.h"
#include "engine/engine.h"
#include "state/checkpoint.h"
#include "state/evict.h"

enum { world_workers_max = 64 };

struct world {
  char *directory;
  struct journal *journal;
  struct engine *engine;
  struct outbox outbox;
  int64_t now_us;
  int64_t next_us; /* the last tick's next timer */
  struct id namespace_id, application_id, other_application_id, queue_id, other_queue_id, narrow_queue_id;
  struct principal who, other, narrow; /* all rights; another application's; all rights in narrow_queue_id alone */
  struct principal root;               /* of no namespace */
  struct id_source ids;
  struct buffer texts;       /* what commands' spans point at */
  struct push *pushes[4096]; /* what Orbit said by itself, oldest first; owned */
  uint32_t push_count;
  struct session_gauge gauges[world_workers_max];
  /* What ends leaves memory for a checkpoint: NULL and 0 unless world_evict was called. */
  struct cold *cold;
  struct checkpoint *checkpoint;
  int64_t hot_window_us;
  int64_t retention_us; /* from the next start on; 0: for ever */
  uint64_t memory_max;
  uint32_t company_min; /* from the next start on; 0: every tick waits for its commit */
  uint64_t map_bytes;   /* of the log, from the next start on; 0: 1 GiB */
  uint64_t index_min;   /* receipts that wait before world_follow sorts them in */
};

/* Starts at 2026-01-01T00:00:00Z with two applications and three queues. */
void world_open(struct world *world);
void world_close(struct world *world);
/* The same world once more, in a directory of its own: what is done to both alike leads to the same log. The first one is
 * started again for it. */
void world_twin(struct world *twin, struct world *world);
/* From here on what has ended leaves memory: at once when world_follow was called and a tick came. Restarts begin from the
 * checkpoint. */
void world_evict(struct world *world);
/* The checkpoint follows to the end of the log, sorts identities in, and lets rows go. */
void world_follow(struct world *world);
/* The rows of the checkpoint are gone while the server runs: it begins anew, and has followed nothing yet. */
void world_lose_views(struct world *world);
/* A fold of the whole log, which checks; the caller frees. */
struct state *world_fold(struct world *world);
/* Stops without a word, as a crash does (what was committed is there), and starts again from the log at now_us. */
void world_restart(struct world *world);
/* Ticks at now_us (until nothing more waits). */
void world_tick(struct world *world);
void world_advance_ms(struct world *world, int64_t ms); /* and ticks */
/* Hands the command in, ticks, and gives the answer; the caller frees welcome.held. */
struct answer world_do(struct world *world, const struct command *command);
/* Several in one tick. */
void world_do_all(struct world *world, const struct command *commands, struct answer *answers, uint32_t count);

/* Commands with usual values: change what the test is about. The key is any text. */
struct command world_submit(struct world *world, const char *key);
struct command world_ref(struct world *world, enum command_kind kind, const struct push *assign);
struct command world_finish(struct world *world, const struct push *assign, enum outcome outcome, bool retryable);
/* Makes digest and identity of a submit or finish follow from its content, as the edges do; after every change. */
void world_identify(struct world *world, struct command *command, const char *key);
void world_identify_operation(struct world *world, struct command *command,
                              const char *key); /* world_commands.c: its part of it */
/* A worker says hello: session number n, instance n, handler "h" version "v1" in queue_id. */
struct answer world_hello(struct world *world, uint64_t session, uint32_t capacity);
struct command world_hello_command(struct world *world, uint64_t session, uint32_t capacity);
void world_bye(struct world *world, uint64_t session);

/* The oldest push of this kind for this session (0: any) that was not taken yet; NULL: none. Taken by this; the world owns it.
 */
const struct push *world_take(struct world *world, enum mail_kind kind, uint64_t session);
/* The task as it stands, read through the engine. */
struct task world_task(struct world *world, const struct id *id);
/* Its current attempt, in memory; all zero when nobody holds it. */
const struct attempt *world_attempt(const struct world *world, const struct id *id);
/* Folds the log anew and compares: same digest as the live state; invariants hold. */
void world_check(struct world *world);
/* Counts pushes not taken yet; frees all pushes, taken or not. */
unsigned world_count(struct world *world, enum mail_kind kind, uint64_t session);
void world_forget(struct world *world);
/* One tick at now_us, whatever waits behind it. True: more waits right now. */
bool world_tick_once(struct world *world);

/* ---- world_commands.c: what people and producers do to tasks, and administrators to objects; all identified by the key ----
 */

struct command world_cancel(struct world *world, const struct id *task_id, const char *key);
struct command world_review(struct world *world, const struct id *task_id, uint64_t revision, enum outcome outcome,
                            const char *key);
struct command world_retry(struct world *world, const struct id *task_id, uint64_t revision, const char *key);
/* Without content: fill in, then world_identify. */
struct command world_queue(struct world *world, enum command_kind kind, const struct id *queue_id);
struct command world_application(struct world *world, enum command_kind kind, const struct id *application_id);
struct command world_credential(struct world *world, enum command_kind kind, const struct id *credential_id);
/* Create: every minute from now on, other members usual; fill in, then world_scheduled. */
struct command world_schedule(struct world *world, enum command_kind kind, const struct id *schedule_id);
/* Identifies it by a key of its own, and asserts that it was done. */
struct schedule world_scheduled(struct world *world, struct command *command);
struct schedule world_get_schedule(struct world *world, const struct id *schedule_id);
/* The schedule's triggers as the log has them, oldest first, without their codes. */
uint32_t world_triggers(struct world *world, const struct id *schedule_id, struct trigger *triggers, uint32_t limit);
/* Changes the queue's limits as given, at its present revision; asserts that it was done. */
struct queue world_change_queue(struct world *world, const struct id *queue_id, const struct queue_command *change);
struct queue world_get_queue(struct world *world, const struct id *queue_id);
void world_pause(struct world *world, const struct id *queue_id, bool pause);

/* A submission that is done; a start; a report: each asserts OK. */
struct task world_submitted(struct world *world, const char *key);
void world_start(struct world *world, const struct push *assign);
struct worker_result world_report(struct world *world, const struct push *assign, enum outcome outcome, bool retryable);
/* Leases one task to a fresh worker of this session and says bye to nobody: the push is the world's. */
const struct push *world_assigned(struct world *world, uint64_t session);

/* ---- what the log says ---- */

/* The events behind seq `after`, as types in order. */
uint32_t world_types_after(struct world *world, uint64_t after, enum event_type *types, uint32_t limit);
/* Calls visit for every event of the log. */
void world_each_event(struct world *world, void (*visit)(void *context, const struct event *event), void *context);

#endif
