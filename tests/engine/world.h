/* A whole Orbit without sockets and without a clock: the real journal in a directory that vanishes, the real engine ticked by hand at the
 * times that a test names. Producers and workers are function calls. */
#ifndef ORBIT_TESTS_ENGINE_WORLD_H
#define ORBIT_TESTS_ENGINE_WORLD_H

#include "support/support.h"

#include "engine/engine.h"

enum { world_workers_max = 64 };

struct world {
  char *directory;
  struct journal *journal;
  struct engine *engine;
  struct outbox outbox;
  int64_t now_us;
  int64_t next_us;            /* the last tick's next timer */
  struct id namespace_id, application_id, other_application_id, queue_id, other_queue_id, narrow_queue_id;
  struct principal who, other, narrow; /* all rights; another application's; all rights in narrow_queue_id alone */
  struct id_source ids;
  struct buffer texts;        /* what commands' spans point at */
  struct push *pushes[4096];  /* what Orbit said by itself, oldest first; owned */
  uint32_t push_count;
  struct session_gauge gauges[world_workers_max];
};

/* Starts at 2026-01-01T00:00:00Z with two applications and three queues. */
void world_open(struct world *world);
void world_close(struct world *world);
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
/* A worker says hello: session number n, instance n, handler "h" version "v1" in queue_id. */
struct answer world_hello(struct world *world, uint64_t session, uint32_t capacity);
struct command world_hello_command(struct world *world, uint64_t session, uint32_t capacity);
void world_bye(struct world *world, uint64_t session);

/* The oldest push of this kind for this session (0: any) that was not taken yet; NULL: none. Taken by this; the world owns it. */
const struct push *world_take(struct world *world, enum mail_kind kind, uint64_t session);
/* The task as it stands, read through the engine. */
struct task world_task(struct world *world, const struct id *id);
/* Folds the log anew and compares: same digest as the live state; invariants hold. */
void world_check(struct world *world);

#endif
