/* Owns the talk with the service manager. */
#include "orbitd/service.h"

#include <systemd/sd-daemon.h>

#include "engine/clock.h"

enum { looks_per_watchdog = 4 };

void service_say_ready(void) { (void)sd_notify(0, "READY=1"); }

void service_say_reloading(void) { (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_monotonic_us()); }

void service_say_stopping(void) { (void)sd_notify(0, "STOPPING=1"); }

void watchdog_init(struct watchdog *watchdog, struct engine *engine) {
  uint64_t limit_us = 0;
  *watchdog = (struct watchdog){.engine = engine, .ticks = engine_ticks(engine)};
  if (sd_watchdog_enabled(0, &limit_us) > 0) watchdog->every_us = (int64_t)(limit_us / looks_per_watchdog) + 1;
}

int64_t watchdog_look(struct watchdog *watchdog, int64_t now_us) {
  if (watchdog->every_us == 0) return INT64_MAX;
  if (now_us < watchdog->next_us) return watchdog->next_us - now_us;
  uint64_t ticks = engine_ticks(watchdog->engine);
  if (ticks != watchdog->ticks) (void)sd_notify(0, "WATCHDOG=1");
  watchdog->ticks = ticks;
  watchdog->next_us = now_us + watchdog->every_us;
  engine_wake(watchdog->engine);
  return watchdog->every_us;
}
