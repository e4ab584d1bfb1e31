/* What the two edges (HTTP, worker channel) share: where the engine is, whether Orbit is ready, what to say in /v1/info. */
#ifndef ORBIT_EDGE_EDGE_H
#define ORBIT_EDGE_EDGE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "edge/log.h"
#include "edge/tls.h"
#include "engine/engine.h"

enum edge_phase { EDGE_REPLAYING = 0, EDGE_READY, EDGE_DRAINING };

struct edge {
  _Atomic int phase; /* enum edge_phase; engine and journal below are set before EDGE_READY */
  _Atomic uint32_t replay_permille;
  struct journal *journal;
  struct engine *engine;
  char version[32];
  char worker_url[256]; /* ws://host:port/v1/worker, with TLS wss:// */
  struct id node_id;
  bool metrics_open;                                  /* /metrics needs no token */
  uint32_t address_connections_max;                   /* of one client address, at each port; 0: no such limit */
  uint32_t credential_workers_max;                    /* workers of one credential; 0: no such limit */
  uint32_t credential_requests_max;                   /* HTTP requests of one credential under way at once; 0: no such limit */
  _Atomic uint64_t crowded_workers, crowded_requests; /* refused for that */
  struct tls *tls;                                    /* NULL: plain text; set once, before any thread */
  struct log log;                                     /* likewise */
};

/* Engine time when ready, wall time before. */
int64_t edge_now_us(struct edge *edge);

/* Judges an Authorization header value: "Bearer" SP token. UNAUTHENTICATED. value NULL: no header. */
enum status edge_authenticate(struct edge *edge, const char *value, struct principal *ret_principal, struct fault *fault);
/* PERMISSION_DENIED naming the permission. */
enum status edge_permit(const struct principal *principal, enum permission permission, struct fault *fault);

#endif
