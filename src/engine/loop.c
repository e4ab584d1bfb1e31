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
static int64_t wait_for(int64_t next_us, int64_t now_us) {
  int64_t wait_us = next_us > now_us ? next_us - now_us : 0;
  return wait_us < engine_wait_us_max ? wait_us : engine_wait_us_max;
}

/* A disk that took long, a machine that was asleep: what workers said meanwhile has not been heard yet, and would come too late
 * for leases that ran out unheard. */
static void make_up_for(struct engine *engine, int64_t silence_us) {
  if (silence_us > engine_silence_us_min) state_lengthen_leases(engine->state, silence_us);
}

enum status engine_run(struct engine *engine, struct fault *fault) {
  int64_t listened_us = engine_now_us(engine); /* until then nobody was unheard for longer than it takes to wake up */
  while (!atomic_load(&engine->stopping)) {
    int64_t next_us, now_us = engine_now_us(engine);
    bool busy;
    make_up_for(engine, now_us - listened_us);
    enum status status = engine_tick(engine, now_us, &next_us, &busy, fault);
    if (status != STATUS_OK) return status;
    atomic_fetch_add_explicit(&engine->ticks, 1, memory_order_relaxed);
    int64_t ended_us = engine_now_us(engine), wait_us = busy ? 0 : wait_for(next_us, ended_us);
    make_up_for(engine, ended_us - now_us);
    listened_us = ended_us + wait_us;
    if (wait_us > 0) mailbox_wait(&engine->mailbox, wait_us);
  }
  return STATUS_OK;
}
