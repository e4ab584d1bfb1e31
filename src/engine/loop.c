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
static void make_up_for(struct engine *engine, int64_t from_us, int64_t until_us) {
  if (until_us - from_us <= engine_silence_us_min) return;
  state_lengthen_leases(engine->state, until_us - from_us);
  engine->made_up_us = until_us;
}

/* A disk that hangs is waited for. Assignments that are on their way come late by all the time since their tick, and their
 * workers can say nothing before: nobody counts as heard since then. No stretch of time is made up for twice. */
static enum status wait_out(struct engine *engine, int64_t *listened_us, struct fault *fault) {
  if (!flights_hang(engine)) return engine_land(engine, false, fault);
  int64_t since_us = flights_since_us(engine);
  if (since_us < engine->made_up_us) since_us = engine->made_up_us;
  if (since_us < *listened_us) *listened_us = since_us;
  return engine_land(engine, true, fault);
}

/* While a commit is on its way its end wakes the engine; till then it is not rung for every single ticket. */
static void doze(struct engine *engine, int64_t wait_us) {
  bool flying = engine->flights.count != 0;
  if (flying && wait_us > flight_us_max) wait_us = flight_us_max;
  mailbox_wait(&engine->mailbox, flying ? engine->company_min : 1, wait_us);
}

static enum status run_until_stopped(struct engine *engine, struct fault *fault) {
  int64_t listened_us = engine_now_us(engine); /* until then nobody was unheard for longer than it takes to wake up */
  while (!atomic_load(&engine->stopping)) {
    int64_t next_us;
    bool busy;
    enum status status = wait_out(engine, &listened_us, fault);
    if (status != STATUS_OK) return status;
    int64_t now_us = engine_now_us(engine);
    make_up_for(engine, listened_us, now_us);
    status = engine_tick(engine, now_us, &next_us, &busy, fault);
    if (status != STATUS_OK) return status;
    atomic_fetch_add_explicit(&engine->ticks, 1, memory_order_relaxed);
    int64_t ended_us = engine_now_us(engine), wait_us = busy ? 0 : wait_for(next_us, ended_us);
    make_up_for(engine, now_us, ended_us);
    listened_us = ended_us + wait_us;
    if (wait_us > 0) doze(engine, wait_us);
  }
  return STATUS_OK;
}

enum status engine_run(struct engine *engine, struct fault *fault) {
  enum status status = run_until_stopped(engine, fault);
  return status == STATUS_OK ? engine_land(engine, true, fault) : status;
}
