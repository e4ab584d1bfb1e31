/* The routes: one table of method, path, permission and functions. A new route is a row and its functions. */
#ifndef ORBIT_EDGE_ROUTES_H
#define ORBIT_EDGE_ROUTES_H

#include "core/answer.h"
#include "core/command.h"
#include "edge/request.h"

enum route_flag {
  ROUTE_OPEN = 1,    /* no token */
  ROUTE_ALWAYS = 2,  /* answers also while Orbit replays or stops */
  ROUTE_WRITE = 4,   /* has a JSON body, and an Idempotency-Key unless ROUTE_KEYLESS */
  ROUTE_KEYLESS = 8, /* a write whose items carry their own keys */
  ROUTE_PAGED = 16,  /* takes `limit` and `cursor`: request->page_start and page_limit are filled before begin */
};

/* Makes the command from path, parameters and body (request->job has the body and room for texts). The caller fills in who asks
 * and the operation's identity. Any failure is the answer. */
typedef enum status route_begin(struct request *request, struct command *command, struct fault *fault);
/* Writes the answer's data, one JSON value, to request->out. answer is the engine's (its status is OK), or NULL on a route
 * without begin, which needs no engine. May set http_status and retry_after_ms. */
typedef enum status route_finish(struct request *request, const struct answer *answer, struct fault *fault);

struct route {
  const char *method;
  const char *path;              /* "/v1/tasks/{id}:cancel": {…} stands for one id */
  enum permission permission;    /* unused with ROUTE_OPEN */
  unsigned flags;                /* enum route_flag */
  uint32_t body_bytes_max;       /* writes */
  const char *const *parameters; /* NULL-terminated; NULL: none */
  const char *cursor_kind;       /* ROUTE_PAGED */
  route_begin *begin;            /* NULL: no engine needed */
  route_finish *finish;
};

/* The route of this method and path with its ids. NOT_FOUND: no such path, or an id in it is none; METHOD_NOT_ALLOWED:
 * ret_allow holds the value of Allow. *ret_route is set as soon as method and path fit, even when an id is malformed (that
 * NOT_FOUND is for those who may know). */
enum status route_find(const char *method, const struct target *target, const struct route **ret_route, struct id ret_ids[2],
                       char ret_allow[64], struct fault *fault);

/* routes_tasks.c */
route_begin tasks_submit_begin, tasks_get_begin;
route_finish tasks_submit_finish, tasks_get_finish, tasks_attempts_finish, tasks_attempt_finish, tasks_evidence_finish;
/* routes_node.c */
route_finish node_info_finish, node_health_finish, node_ready_finish, node_worker_finish;

/* Reads `limit` and `cursor` of a ROUTE_PAGED request. INVALID_ARGUMENT. */
enum status page_read(struct request *request, struct fault *fault);
/* Ends a page of `count` rows that stopped before row `next`: closes the array and writes next_cursor when rows are left. */
void page_end(struct request *request, uint32_t next, uint32_t count);

#endif
