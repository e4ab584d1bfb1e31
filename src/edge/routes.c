/* Owns the table of routes and the matching of paths. */
#include "edge/routes.h"

#include <stdio.h>
#include <string.h>

static const char *const page_parameters[] = {"limit", "cursor", NULL};
static const char *const task_parameters[] = {
    "queue_id", "state", "handler", "business_key", "created_after", "created_before", "limit", "cursor", NULL};
static const char *const feed_parameters[] = {"after", "types", "queue_id", "task_id", "limit", "wait_ms", NULL};
static const char *const subscription_parameters[] = {"limit", "wait_ms", NULL};
static const char *const audit_parameters[] = {"target_id", "limit", "cursor", NULL};

/* clang-format off */
static const struct route routes[] = {
    {"POST", "/v1/tasks", PERMISSION_TASKS_SUBMIT, ROUTE_WRITE, http_body_bytes_max, NULL, NULL,
     tasks_submit_begin, tasks_submit_finish},
    {"GET", "/v1/tasks/{id}", PERMISSION_TASKS_READ, 0, 0, NULL, NULL, tasks_get_begin, tasks_get_finish},
    {"GET", "/v1/tasks", PERMISSION_TASKS_READ, 0, 0, task_parameters, "tasks", tasks_list_begin, tasks_list_finish},
    {"POST", "/v1/tasks:batch", PERMISSION_TASKS_SUBMIT, ROUTE_WRITE | ROUTE_KEYLESS, http_batch_body_bytes_max, NULL, NULL,
     tasks_batch_begin, tasks_batch_finish},
    {"POST", "/v1/tasks/{id}:cancel", PERMISSION_TASKS_CANCEL, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     tasks_cancel_begin, tasks_cancel_finish},
    {"POST", "/v1/tasks/{id}:review", PERMISSION_TASKS_REVIEW, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     tasks_review_begin, tasks_review_finish},
    {"POST", "/v1/tasks/{id}:retry", PERMISSION_TASKS_RETRY, ROUTE_WRITE, http_body_bytes_max, NULL, NULL,
     tasks_retry_begin, tasks_retry_finish},
    {"GET", "/v1/tasks/{id}/operations", PERMISSION_TASKS_AUDIT_READ, 0, 0, page_parameters, "operations",
     tasks_get_begin, tasks_operations_finish},
    {"GET", "/v1/tasks/{id}/operations/{audit_id}", PERMISSION_TASKS_AUDIT_READ, 0, 0, NULL, NULL,
     tasks_get_begin, tasks_operation_finish},
    {"GET", "/v1/tasks/{id}/events", PERMISSION_TASKS_AUDIT_READ, ROUTE_PAGED, 0, page_parameters, "task_events",
     tasks_get_begin, tasks_events_finish},
    {"GET", "/v1/tasks/{id}/attempts", PERMISSION_TASKS_READ, ROUTE_PAGED, 0, page_parameters, "attempts",
     tasks_get_begin, tasks_attempts_finish},
    {"GET", "/v1/tasks/{id}/attempts/{attempt_id}", PERMISSION_TASKS_READ, 0, 0, NULL, NULL,
     tasks_get_begin, tasks_attempt_finish},
    {"GET", "/v1/tasks/{id}/evidence", PERMISSION_TASKS_READ, ROUTE_PAGED, 0, page_parameters, "evidence",
     tasks_get_begin, tasks_evidence_finish},

    {"POST", "/v1/queues", PERMISSION_QUEUES_MANAGE, ROUTE_WRITE, http_body_bytes_max, NULL, NULL,
     queues_create_begin, queues_write_finish},
    {"GET", "/v1/queues", PERMISSION_QUEUES_READ, 0, 0, page_parameters, "queues", queues_list_begin, queues_list_finish},
    {"GET", "/v1/queues/{id}", PERMISSION_QUEUES_READ, 0, 0, NULL, NULL, queues_get_begin, queues_get_finish},
    {"PATCH", "/v1/queues/{id}", PERMISSION_QUEUES_MANAGE, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     queues_change_begin, queues_write_finish},
    {"POST", "/v1/queues/{id}:pause", PERMISSION_QUEUES_MANAGE, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     queues_pause_begin, queues_write_finish},
    {"POST", "/v1/queues/{id}:resume", PERMISSION_QUEUES_MANAGE, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     queues_resume_begin, queues_write_finish},

    {"POST", "/v1/namespaces", PERMISSION_ROOT, ROUTE_WRITE | ROUTE_SECRET, http_body_bytes_max, NULL, NULL,
     namespaces_create_begin, namespaces_create_finish},
    {"POST", "/v1/applications", PERMISSION_ADMIN, ROUTE_WRITE, http_body_bytes_max, NULL, NULL,
     applications_create_begin, applications_write_finish},
    {"GET", "/v1/applications", PERMISSION_ADMIN, 0, 0, page_parameters, "applications",
     applications_list_begin, applications_list_finish},
    {"GET", "/v1/applications/{id}", PERMISSION_ADMIN, 0, 0, NULL, NULL, applications_get_begin, applications_get_finish},
    {"PATCH", "/v1/applications/{id}", PERMISSION_ADMIN, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     applications_change_begin, applications_write_finish},
    {"POST", "/v1/credentials", PERMISSION_ADMIN, ROUTE_WRITE | ROUTE_SECRET, http_body_bytes_max, NULL, NULL,
     credentials_create_begin, credentials_write_finish},
    {"GET", "/v1/credentials", PERMISSION_ADMIN, 0, 0, page_parameters, "credentials",
     credentials_list_begin, credentials_list_finish},
    {"GET", "/v1/credentials/{id}", PERMISSION_ADMIN, 0, 0, NULL, NULL, credentials_get_begin, credentials_get_finish},
    {"POST", "/v1/credentials/{id}:rotate", PERMISSION_ADMIN, ROUTE_WRITE | ROUTE_CHANGE | ROUTE_SECRET, http_body_bytes_max, NULL, NULL,
     credentials_rotate_begin, credentials_write_finish},
    {"POST", "/v1/credentials/{id}:revoke", PERMISSION_ADMIN, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     credentials_revoke_begin, credentials_write_finish},
    {"GET", "/v1/audit", PERMISSION_ADMIN, 0, 0, audit_parameters, "audit", audit_list_begin, audit_list_finish},

    {"GET", "/v1/events", PERMISSION_EVENTS_READ, ROUTE_FEED, 0, feed_parameters, NULL, feed_begin_events, feed_finish},
    {"POST", "/v1/subscriptions", PERMISSION_EVENTS_READ, ROUTE_WRITE, http_body_bytes_max, NULL, NULL,
     subscriptions_create_begin, subscriptions_write_finish},
    {"GET", "/v1/subscriptions", PERMISSION_EVENTS_READ, 0, 0, page_parameters, "subscriptions",
     subscriptions_list_begin, subscriptions_list_finish},
    {"GET", "/v1/subscriptions/{id}", PERMISSION_EVENTS_READ, 0, 0, NULL, NULL, subscriptions_get_begin, subscriptions_get_finish},
    {"GET", "/v1/subscriptions/{id}/events", PERMISSION_EVENTS_READ, ROUTE_FEED, 0, subscription_parameters, NULL,
     feed_begin_subscription, feed_finish},
    {"POST", "/v1/subscriptions/{id}:ack", PERMISSION_EVENTS_READ, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     subscriptions_ack_begin, subscriptions_write_finish},
    {"POST", "/v1/subscriptions/{id}:delete", PERMISSION_EVENTS_READ, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     subscriptions_delete_begin, subscriptions_write_finish},

    {"POST", "/v1/schedules", PERMISSION_SCHEDULES_MANAGE, ROUTE_WRITE, http_body_bytes_max, NULL, NULL,
     schedules_create_begin, schedules_write_finish},
    {"GET", "/v1/schedules", PERMISSION_SCHEDULES_READ, 0, 0, page_parameters, "schedules",
     schedules_list_begin, schedules_list_finish},
    {"POST", "/v1/schedules:preview", PERMISSION_SCHEDULES_READ, ROUTE_WRITE | ROUTE_KEYLESS, http_body_bytes_max, NULL, NULL,
     schedules_preview_begin, schedules_preview_finish},
    {"GET", "/v1/schedules/{id}", PERMISSION_SCHEDULES_READ, 0, 0, NULL, NULL, schedules_get_begin, schedules_get_finish},
    {"PATCH", "/v1/schedules/{id}", PERMISSION_SCHEDULES_MANAGE, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     schedules_change_begin, schedules_write_finish},
    {"POST", "/v1/schedules/{id}:pause", PERMISSION_SCHEDULES_MANAGE, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     schedules_pause_begin, schedules_write_finish},
    {"POST", "/v1/schedules/{id}:resume", PERMISSION_SCHEDULES_MANAGE, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     schedules_resume_begin, schedules_write_finish},
    {"POST", "/v1/schedules/{id}:delete", PERMISSION_SCHEDULES_MANAGE, ROUTE_WRITE | ROUTE_CHANGE, http_body_bytes_max, NULL, NULL,
     schedules_delete_begin, schedules_write_finish},
    {"GET", "/v1/schedules/{id}/triggers", PERMISSION_SCHEDULES_READ, 0, 0, page_parameters, "triggers",
     schedules_get_begin, schedules_triggers_finish},

    {"GET", "/metrics", PERMISSION_METRICS_READ, ROUTE_TEXT, 0, NULL, NULL, metrics_begin, metrics_finish},
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

/* HEAD is answered as GET would be, without the body, which libmicrohttpd leaves away; a feed has no length to tell. */
static bool answers_head(const struct route *route) {
  return strcmp(route->method, "GET") == 0 && (route->flags & ROUTE_FEED) == 0;
}

static bool answers(const struct route *route, const char *method) {
  return strcmp(method, route->method) == 0 || (strcmp(method, "HEAD") == 0 && answers_head(route));
}

static void allow_add(char allow[64], const struct route *route) {
  size_t length = strlen(allow);
  (void)snprintf(allow + length, 64 - length, "%s%s%s", length > 0 ? ", " : "", route->method,
                 answers_head(route) ? ", HEAD" : "");
}

enum status route_find(const char *method, const struct target *target, const struct route **ret_route, struct id ret_ids[2],
                       char ret_allow[64], struct fault *fault) {
  char allow[64] = "";
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
    struct id ids[2] = {{{0}}, {{0}}};
    enum match match = match_path(routes[i].path, target, ids);
    if (match == MATCH_NO) continue;
    if (!answers(&routes[i], method)) {
      allow_add(allow, &routes[i]);
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
