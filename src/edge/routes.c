/* Owns the table of routes and the matching of paths. */
#include "edge/routes.h"

#include <stdio.h>
#include <string.h>

static const char *const page_parameters[] = {"limit", "cursor", NULL};

/* clang-format off */
static const struct route routes[] = {
    {"POST", "/v1/tasks", PERMISSION_TASKS_SUBMIT, ROUTE_WRITE, http_body_bytes_max, NULL, NULL,
     tasks_submit_begin, tasks_submit_finish},
    {"GET", "/v1/tasks/{id}", PERMISSION_TASKS_READ, 0, 0, NULL, NULL, tasks_get_begin, tasks_get_finish},
    {"GET", "/v1/tasks/{id}/attempts", PERMISSION_TASKS_READ, ROUTE_PAGED, 0, page_parameters, "attempts",
     tasks_get_begin, tasks_attempts_finish},
    {"GET", "/v1/tasks/{id}/attempts/{attempt_id}", PERMISSION_TASKS_READ, 0, 0, NULL, NULL,
     tasks_get_begin, tasks_attempt_finish},
    {"GET", "/v1/tasks/{id}/evidence", PERMISSION_TASKS_READ, ROUTE_PAGED, 0, page_parameters, "evidence",
     tasks_get_begin, tasks_evidence_finish},
    {"GET", "/v1/worker", 0, ROUTE_OPEN, 0, NULL, NULL, NULL, node_worker_finish},
    {"GET", "/v1/info", 0, ROUTE_OPEN, 0, NULL, NULL, NULL, node_info_finish},
    {"GET", "/healthz", 0, ROUTE_OPEN | ROUTE_ALWAYS, 0, NULL, NULL, NULL, node_health_finish},
    {"GET", "/readyz", 0, ROUTE_OPEN | ROUTE_ALWAYS, 0, NULL, NULL, NULL, node_ready_finish},
};
/* clang-format on */

enum match { MATCH_NO, MATCH_BAD_ID, MATCH_YES };

/* A segment against its pattern: the pattern itself, or "{…}" and then a fixed end. An id holds no colon, so that
 * "{id}" leaves "ID:verb" to the row that knows the verb. */
static enum match match_segment(struct bytes pattern, struct bytes segment, struct id *ret_id, bool *ret_is_id) {
  const uint8_t *close = pattern.size > 0 && pattern.data[0] == '{' ? memchr(pattern.data, '}', pattern.size) : NULL;
  *ret_is_id = close != NULL;
  if (close == NULL) return bytes_equal(pattern, segment) ? MATCH_YES : MATCH_NO;
  struct bytes end = bytes_of(close + 1, pattern.size - (size_t)(close + 1 - pattern.data));
  if (segment.size <= end.size) return MATCH_NO;
  struct bytes id = bytes_of(segment.data, segment.size - end.size);
  if (!bytes_equal(bytes_of(segment.data + id.size, end.size), end) || memchr(id.data, ':', id.size) != NULL) return MATCH_NO;
  return id_parse(id, ret_id) ? MATCH_YES : MATCH_BAD_ID;
}

static enum match match_path(const char *path, const struct target *target, struct id ids[2]) {
  enum match match = MATCH_YES;
  unsigned count = 0, id_count = 0;
  const char *at = path + 1;
  for (;;) {
    const char *end = strchrnul(at, '/');
    if (count == target->segment_count || count == target_segments_max) return MATCH_NO;
    struct id ignored;
    bool is_id;
    enum match one = match_segment(bytes_of(at, (size_t)(end - at)), target->segments[count++],
                                   id_count < 2 ? &ids[id_count] : &ignored, &is_id);
    if (one == MATCH_NO) return MATCH_NO;
    if (one == MATCH_BAD_ID) match = MATCH_BAD_ID;
    id_count += is_id;
    if (*end == '\0') return count == target->segment_count ? match : MATCH_NO;
    at = end + 1;
  }
}

static void allow_add(char allow[64], const char *method) {
  size_t length = strlen(allow);
  (void)snprintf(allow + length, 64 - length, "%s%s", length > 0 ? ", " : "", method);
}

enum status route_find(const char *method, const struct target *target, const struct route **ret_route, struct id ret_ids[2],
                       char ret_allow[64], struct fault *fault) {
  char allow[64] = "";
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
    struct id ids[2] = {{{0}}, {{0}}};
    enum match match = match_path(routes[i].path, target, ids);
    if (match == MATCH_NO) continue;
    if (strcmp(method, routes[i].method) != 0) {
      allow_add(allow, routes[i].method);
      continue;
    }
    *ret_route = &routes[i];
    if (match == MATCH_BAD_ID) return fault_set(fault, STATUS_NOT_FOUND, NULL, "no such object: the path holds no valid id");
    ret_ids[0] = ids[0];
    ret_ids[1] = ids[1];
    return STATUS_OK;
  }
  if (allow[0] == '\0') return fault_set(fault, STATUS_NOT_FOUND, NULL, "there is nothing at this path");
  memcpy(ret_allow, allow, sizeof allow);
  return fault_set(fault, STATUS_METHOD_NOT_ALLOWED, NULL, "this path answers to %s only", allow);
}
