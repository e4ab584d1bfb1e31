/* What the service manager (systemd, or whoever made NOTIFY_SOCKET) is told: ready, reloading, stopping, and, while ticks of
 * the engine go by, that all is well. Without one, nothing is said. */
#ifndef ORBIT_ORBITD_SERVICE_H
#define ORBIT_ORBITD_SERVICE_H

#include <stdint.h>

#include "engine/engine.h"

void service_say_ready(void);
void service_say_reloading(void); /* service_say_ready ends it */
void service_say_stopping(void);

/* Where the manager keeps a watchdog (WATCHDOG_USEC), it is fed four times in its time, but only if the engine has finished a
 * tick since the last look: a process whose engine hangs is no service. An idle engine is woken for that. */
struct watchdog {
  struct engine *engine;
  uint64_t ticks;   /* of the engine, at the last look */
  int64_t every_us; /* 0: there is no watchdog */
  int64_t next_us;  /* monotonic */
};
void watchdog_init(struct watchdog *watchdog, struct engine *engine);
/* Feeds it when it is time and deserved. Returns how long until the next look (INT64_MAX: never). */
int64_t watchdog_look(struct watchdog *watchdog, int64_t now_us);

#endif
