/* The table of routes: which row answers to a method and path, and what is said when none does. */
#include <string.h>

#include "edge/routes.h"
#include "support/support.h"

#define ID_A "0000019123456789abcdef0123456789"
#define ID_B "0000019123456789abcdef012345678a"

static const struct {
  const char *method, *target;
  enum status status;
  const char *row; /* path of the row; NULL: none */
  const char *allow;
} cases[] = {
    {"POST", "/v1/tasks", STATUS_OK, "/v1/tasks", ""},
    {"GET", "/v1/tasks/" ID_A, STATUS_OK, "/v1/tasks/{id}", ""},
    {"GET", "/v1/tasks/" ID_A "?limit=1", STATUS_OK, "/v1/tasks/{id}", ""}, /* parameters are judged later */
    {"GET", "/v1/tasks/" ID_A "/attempts", STATUS_OK, "/v1/tasks/{id}/attempts", ""},
    {"GET", "/v1/tasks/" ID_A "/attempts/" ID_B, STATUS_OK, "/v1/tasks/{id}/attempts/{attempt_id}", ""},
    {"GET", "/v1/tasks/" ID_A "/evidence", STATUS_OK, "/v1/tasks/{id}/evidence", ""},
    {"GET", "/v1/tasks", STATUS_OK, "/v1/tasks", ""},
    {"POST", "/v1/tasks:batch", STATUS_OK, "/v1/tasks:batch", ""},
    {"POST", "/v1/tasks/" ID_A ":cancel", STATUS_OK, "/v1/tasks/{id}:cancel", ""},
    {"POST", "/v1/tasks/" ID_A ":review", STATUS_OK, "/v1/tasks/{id}:review", ""},
    {"POST", "/v1/tasks/" ID_A ":retry", STATUS_OK, "/v1/tasks/{id}:retry", ""},
    {"POST", "/v1/tasks/" ID_A "%3Aretry", STATUS_OK, "/v1/tasks/{id}:retry", ""},
    {"GET", "/v1/tasks/" ID_A "/operations", STATUS_OK, "/v1/tasks/{id}/operations", ""},
    {"GET", "/v1/tasks/" ID_A "/operations/" ID_B, STATUS_OK, "/v1/tasks/{id}/operations/{audit_id}", ""},
    {"GET", "/v1/tasks/" ID_A "/events", STATUS_OK, "/v1/tasks/{id}/events", ""},
    {"POST", "/v1/queues", STATUS_OK, "/v1/queues", ""},
    {"GET", "/v1/queues", STATUS_OK, "/v1/queues", ""},
    {"GET", "/v1/queues/" ID_A, STATUS_OK, "/v1/queues/{id}", ""},
    {"PATCH", "/v1/queues/" ID_A, STATUS_OK, "/v1/queues/{id}", ""},
    {"POST", "/v1/queues/" ID_A ":pause", STATUS_OK, "/v1/queues/{id}:pause", ""},
    {"POST", "/v1/queues/" ID_A ":resume", STATUS_OK, "/v1/queues/{id}:resume", ""},
    {"POST", "/v1/namespaces", STATUS_OK, "/v1/namespaces", ""},
    {"POST", "/v1/applications", STATUS_OK, "/v1/applications", ""},
    {"GET", "/v1/applications", STATUS_OK, "/v1/applications", ""},
    {"GET", "/v1/applications/" ID_A, STATUS_OK, "/v1/applications/{id}", ""},
    {"PATCH", "/v1/applications/" ID_A, STATUS_OK, "/v1/applications/{id}", ""},
    {"POST", "/v1/credentials", STATUS_OK, "/v1/credentials", ""},
    {"GET", "/v1/credentials", STATUS_OK, "/v1/credentials", ""},
    {"GET", "/v1/credentials/" ID_A, STATUS_OK, "/v1/credentials/{id}", ""},
    {"POST", "/v1/credentials/" ID_A ":rotate", STATUS_OK, "/v1/credentials/{id}:rotate", ""},
    {"POST", "/v1/credentials/" ID_A ":revoke", STATUS_OK, "/v1/credentials/{id}:revoke", ""},
    {"GET", "/v1/audit?target_id=" ID_A, STATUS_OK, "/v1/audit", ""},
    {"GET", "/metrics", STATUS_OK, "/metrics", ""},
    {"GET", "/v1/worker", STATUS_OK, "/v1/worker", ""},
    {"GET", "/v1/info", STATUS_OK, "/v1/info", ""},
    {"GET", "/healthz", STATUS_OK, "/healthz", ""},
    {"GET", "/readyz", STATUS_OK, "/readyz", ""},
    {"GET", "/%72eadyz", STATUS_OK, "/readyz", ""},
    {"HEAD", "/healthz", STATUS_OK, "/healthz", ""},
    {"HEAD", "/readyz", STATUS_OK, "/readyz", ""},
    {"HEAD", "/v1/tasks/" ID_A, STATUS_OK, "/v1/tasks/{id}", ""},
    {"HEAD", "/v1/tasks", STATUS_OK, "/v1/tasks", ""},
    {"HEAD", "/v1/tasks/x", STATUS_NOT_FOUND, "/v1/tasks/{id}", ""},

    {"GET", "/v1/tasks/" ID_A "0", STATUS_NOT_FOUND, "/v1/tasks/{id}", ""},
    {"GET", "/v1/tasks/0000019123456789ABCDEF0123456789", STATUS_NOT_FOUND, "/v1/tasks/{id}", ""},
    {"GET", "/v1/tasks/00000000000000000000000000000000", STATUS_NOT_FOUND, "/v1/tasks/{id}", ""},
    {"GET", "/v1/tasks/x%2Fattempts", STATUS_NOT_FOUND, "/v1/tasks/{id}", ""},
    {"GET", "/v1/tasks/" ID_A "/attempts/x", STATUS_NOT_FOUND, "/v1/tasks/{id}/attempts/{attempt_id}", ""},

    {"GET", "/", STATUS_NOT_FOUND, NULL, ""},
    {"GET", "/v1", STATUS_NOT_FOUND, NULL, ""},
    {"GET", "/v1/tasks/", STATUS_NOT_FOUND, NULL, ""},
    {"POST", "/v1/tasks/", STATUS_NOT_FOUND, NULL, ""},
    {"POST", "/v1//tasks", STATUS_NOT_FOUND, NULL, ""},
    {"POST", "/V1/tasks", STATUS_NOT_FOUND, NULL, ""},
    {"POST", "/v1%2Ftasks", STATUS_NOT_FOUND, NULL, ""},
    {"GET", "/v1/x/../info", STATUS_NOT_FOUND, NULL, ""},
    {"GET", "/v1/tasks/" ID_A "/", STATUS_NOT_FOUND, NULL, ""},
    {"POST", "/v1/tasks/" ID_A ":start", STATUS_NOT_FOUND, NULL, ""},
    {"POST", "/v1/tasks/:cancel", STATUS_NOT_FOUND, NULL, ""},
    {"POST", "/v1/tasks/" ID_A "%3Acancel/", STATUS_NOT_FOUND, NULL, ""},
    {"POST", "/v1/tasks/" ID_A ":Cancel", STATUS_NOT_FOUND, NULL, ""},
    {"POST", "/v1/tasks/" ID_A ":cancel:retry", STATUS_NOT_FOUND, NULL, ""},
    {"GET", "/v1/tasks/" ID_A "/operations/" ID_B "/x", STATUS_NOT_FOUND, NULL, ""},
    {"GET", "/v1/namespaces/" ID_A, STATUS_NOT_FOUND, NULL, ""},
    {"GET", "/v1/metrics", STATUS_NOT_FOUND, NULL, ""},
    {"GET", "/v1/tasks/" ID_A "/attempts/" ID_B "/x", STATUS_NOT_FOUND, NULL, ""},
    {"GET", "/1/2/3/4/5/6/7/8/9", STATUS_NOT_FOUND, NULL, ""},

    {"PUT", "/v1/tasks", STATUS_METHOD_NOT_ALLOWED, NULL, "POST, GET, HEAD"},
    {"post", "/v1/tasks", STATUS_METHOD_NOT_ALLOWED, NULL, "POST, GET, HEAD"},
    {"GET", "/v1/tasks:batch", STATUS_METHOD_NOT_ALLOWED, NULL, "POST"},
    {"GET", "/v1/tasks/" ID_A ":cancel", STATUS_METHOD_NOT_ALLOWED, NULL, "POST"},
    {"POST", "/v1/tasks/" ID_A "/operations", STATUS_METHOD_NOT_ALLOWED, NULL, "GET, HEAD"},
    {"POST", "/v1/queues/" ID_A, STATUS_METHOD_NOT_ALLOWED, NULL, "GET, HEAD, PATCH"},
    {"DELETE", "/v1/credentials/" ID_A, STATUS_METHOD_NOT_ALLOWED, NULL, "GET, HEAD"},
    {"GET", "/v1/namespaces", STATUS_METHOD_NOT_ALLOWED, NULL, "POST"},
    {"POST", "/metrics", STATUS_METHOD_NOT_ALLOWED, NULL, "GET, HEAD"},
    {"HEAD", "/v1/tasks:batch", STATUS_METHOD_NOT_ALLOWED, NULL, "POST"},
    {"HEAD", "/v1/events", STATUS_METHOD_NOT_ALLOWED, NULL, "GET"},
    {"HEAD", "/v1/subscriptions/" ID_A "/events", STATUS_METHOD_NOT_ALLOWED, NULL, "GET"},
    {"OPTIONS", "/v1/info", STATUS_METHOD_NOT_ALLOWED, NULL, "GET, HEAD"},
    {"DELETE", "/v1/tasks/" ID_A, STATUS_METHOD_NOT_ALLOWED, NULL, "GET, HEAD"},
    {"DELETE", "/v1/tasks/x", STATUS_METHOD_NOT_ALLOWED, NULL, "GET, HEAD"},
};

static void test_table(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char copy[256], allow[64] = "";
    struct target target;
    struct fault fault = {.status = STATUS_OK};
    const struct route *route = NULL;
    struct id ids[2];
    strncpy(copy, cases[i].target, sizeof copy - 1);
    assert_int_equal(target_parse(copy, strlen(cases[i].target), &target, &fault), STATUS_OK);
    assert_int_equal(route_find(cases[i].method, &target, &route, ids, allow, &fault), cases[i].status);
    assert_string_equal(allow, cases[i].allow);
    if (cases[i].row == NULL) assert_null(route);
    else assert_string_equal(route->path, cases[i].row);
  }
}

static void test_ids(void **state) {
  char copy[] = "/v1/tasks/" ID_A "/attempts/" ID_B, allow[64];
  struct target target;
  struct fault fault;
  const struct route *route;
  struct id ids[2];
  (void)state;
  assert_int_equal(target_parse(copy, strlen(copy), &target, &fault), STATUS_OK);
  assert_int_equal(route_find("GET", &target, &route, ids, allow, &fault), STATUS_OK);
  assert_string_equal(id_text(&ids[0]).text, ID_A);
  assert_string_equal(id_text(&ids[1]).text, ID_B);
}

int main(void) {
  static const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_ids)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
