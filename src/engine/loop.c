/* Owns the engine's thread: the clock, waiting, wake-ups. */
#include "engine/internal.h"

int64_t engine_now_us(struct engine *engine) {
  (void)pthread_mutex_lock(&engine->clock_lock);
  int64_t now = clock_read(&engine->clock, clock_wall_us(), clock_monotonic_us());
  (void)pthread_mutex_unlock(&engine->clock_lock);
  return now;
}

void engine_stop(struct engine *engine) {
  atomic_store(&engine->stopping, true);
  mailbox_wake(&engine->mailbox);
}

uint64_t engine_ticks(struct engine *engine) { return atomic_load_explicit(&engine->ticks, memory_order_relaxed); }

void engine_wake(struct engine *engine) { mailbox_wake(&engine->mailbox); }

/* Timers are in Orbit's time, waiting is in the machine's: they differ by one part in a thousand at most, so a long wait is
 * looked at again before its end. */
enum { wait_us_max = 1000000 };

enum status engine_run(struct engine *engine, struct fault *fault) {
  while (!atomic_load(&engine->stopping)) {
    int64_t next_us;
    bool busy;
    enum status status = engine_tick(engine, engine_now_us(engine), &next_us, &busy, fault);
    if (status != STATUS_OK) return status;
    atomic_fetch_add_explicit(&engine->ticks, 1, memory_order_relaxed);
    if (busy) continue;
    int64_t wait = next_us == INT64_MAX ? wait_us_max : next_us - engine_now_us(engine);
    if (wait > 0) mailbox_wait(&engine->mailbox, wait < wait_us_max ? wait : wait_us_max);
  }
  return STATUS_OK;
}
