/* liborbit against the real server, for whoever runs a namespace: queues, applications, credentials, namespaces, audit,
 * metrics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/server.h"
#include "orbit.h"

#define ID "0190000000000000000000000000000a"

struct hall {
  struct api_server server;
  struct orbit_client *admin, *root, *plain; /* plain: what a program of the namespace has */
};

static struct orbit_client *client_of(const char *url, const char *token) {
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  struct orbit_client *client = NULL;
  options.url = url;
  options.token = token;
  assert_int_equal(orbit_client_new(&options, &client, NULL), ORBIT_OK);
  return client;
}

static struct hall hall;

static int hall_open(void **state) {
  *state = &hall;
  api_server_up(&hall.server);
  hall.admin = client_of(hall.server.url, hall.server.admin_token);
  hall.root = client_of(hall.server.url, hall.server.root_token);
  hall.plain = client_of(hall.server.url, hall.server.token);
  return 0;
}

static int hall_close(void **state) {
  (void)state;
  orbit_client_free(hall.admin);
  orbit_client_free(hall.root);
  orbit_client_free(hall.plain);
  api_server_remove(&hall.server);
  return 0;
}

static void expect_refusal(const struct orbit_error *error, int http_status, const char *code) {
  assert_int_equal(error->status, ORBIT_REFUSED);
  assert_int_equal(error->http_status, http_status);
  assert_string_equal(error->code, code);
}

/* What a token may do now: list the tasks of its namespace. */
static int try_token(const char *token, struct orbit_error *error) {
  struct orbit_client *client = client_of(hall.server.url, token);
  struct orbit_task_list *list = NULL;
  int status = orbit_list_tasks(client, NULL, 0, NULL, &list, error);
  orbit_task_list_free(list);
  orbit_client_free(client);
  return status;
}

/* ---- Queues ---- */

static void expect_queue(const struct orbit_queue *queue, uint64_t revision, const char *name, uint64_t max_unfinished,
                         uint64_t burst, bool paused) {
  assert_int_equal(queue->revision, revision);
  assert_string_equal(queue->name, name);
  assert_int_equal(queue->max_unfinished, max_unfinished);
  assert_int_equal(queue->rate.burst, burst);
  assert_int_equal(queue->paused, paused);
  assert_string_equal(queue->namespace_id, hall.server.namespace_id);
  assert_memory_equal(queue->json, "{\"id\":\"", 7);
}

static struct orbit_queue *queue_make(const char *key, const char *name) {
  struct orbit_queue_request request = ORBIT_QUEUE_REQUEST_INIT;
  struct orbit_queue *queue = NULL;
  request.name = name;
  request.max_unfinished = 7;
  request.max_running = 3;
  request.rate = (struct orbit_rate){5, 1000, 2};
  assert_int_equal(orbit_create_queue(hall.admin, key, &request, &queue, NULL), ORBIT_OK);
  return queue;
}

static void a_queue_is_made_once(void **state) {
  (void)state;
  struct orbit_error error;
  struct orbit_queue *queue = queue_make("queue-1", "mail — Post"), *again = queue_make("queue-1", "mail — Post"), *read = NULL;
  assert_string_equal(again->id, queue->id);
  expect_queue(queue, 1, "mail — Post", 7, 2, false);
  assert_int_equal(queue->max_running, 3);
  assert_int_equal(queue->key_concurrency, 1);
  assert_int_equal(queue->lease_ms, 30000);
  assert_int_equal(queue->rate.tasks, 5);
  assert_int_equal(queue->rate.per_ms, 1000);
  assert_null(queue->counts);
  struct orbit_queue_request other = ORBIT_QUEUE_REQUEST_INIT;
  other.name = "another";
  assert_int_equal(orbit_create_queue(hall.admin, "queue-1", &other, &read, &error), ORBIT_REFUSED);
  expect_refusal(&error, 409, "IDEMPOTENCY_CONFLICT");
  assert_int_equal(orbit_create_queue(hall.plain, "queue-1", &other, &read, &error), ORBIT_REFUSED);
  expect_refusal(&error, 403, "PERMISSION_DENIED");

  /* What is live is in what is read. */
  assert_int_equal(orbit_get_queue(hall.plain, queue->id, &read, NULL), ORBIT_OK);
  expect_queue(read, 1, "mail — Post", 7, 2, false);
  assert_non_null(read->counts);
  assert_int_equal(read->counts->waiting, 0);
  assert_int_equal(read->oldest_waiting_at, 0);
  orbit_queue_free(read);
  assert_int_equal(orbit_get_queue(hall.admin, ID, &read, &error), ORBIT_REFUSED);
  expect_refusal(&error, 404, "NOT_FOUND");
  orbit_queue_free(queue);
  orbit_queue_free(again);
}

static void a_queue_counts_what_it_holds(void **state) {
  (void)state;
  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  struct orbit_task *tasks[2], *cancelled = NULL;
  struct orbit_queue *queue = queue_make("queue-counted", "counted"), *read = NULL;
  request.queue_id = queue->id;
  request.handler = "h";
  request.handler_version = request.payload_version = "v1";
  request.payload = "1";
  request.payload_size = 1;
  request.task_timeout_ms = 600000;
  assert_int_equal(orbit_submit_task(hall.plain, "counted-1", &request, &tasks[0], NULL), ORBIT_OK);
  assert_int_equal(orbit_submit_task(hall.plain, "counted-2", &request, &tasks[1], NULL), ORBIT_OK);
  assert_int_equal(orbit_cancel_task(hall.plain, "counted-c", tasks[0]->id, "enough", 0, &cancelled, NULL), ORBIT_OK);
  assert_int_equal(orbit_get_queue(hall.plain, queue->id, &read, NULL), ORBIT_OK);
  const struct orbit_task_counts expected = {.waiting = 1, .cancelled = 1};
  assert_memory_equal(read->counts, &expected, sizeof expected);
  assert_int_equal(read->oldest_waiting_at, tasks[1]->created_at);
  orbit_queue_free(read);
  orbit_queue_free(queue);
  orbit_task_free(cancelled);
  orbit_task_free(tasks[0]);
  orbit_task_free(tasks[1]);
}

static void a_queue_is_changed_field_by_field(void **state) {
  (void)state;
  struct orbit_error error;
  struct orbit_queue *queue = queue_make("queue-changed", "before"), *changed = NULL;
  struct orbit_queue_change change = ORBIT_QUEUE_CHANGE_INIT;
  change.expected_revision = 1;
  change.fields = ORBIT_CHANGE_NAME | ORBIT_CHANGE_KEY_CONCURRENCY | ORBIT_CHANGE_LEASE_MS;
  change.name = "after";
  change.key_concurrency = 4;
  change.lease_ms = 5000;
  change.max_unfinished = 99; /* is not among the fields */
  for (int repeat = 0; repeat < 2; repeat++) {
    assert_int_equal(orbit_change_queue(hall.admin, "change-1", queue->id, &change, &changed, NULL), ORBIT_OK);
    expect_queue(changed, 2, "after", 7, 2, false);
    assert_int_equal(changed->key_concurrency, 4);
    assert_int_equal(changed->lease_ms, 5000);
    orbit_queue_free(changed);
  }
  assert_int_equal(orbit_change_queue(hall.admin, "change-2", queue->id, &change, &changed, &error), ORBIT_REFUSED);
  expect_refusal(&error, 409, "STATE_CONFLICT");
  /* 0 takes limits away. */
  change = (struct orbit_queue_change)ORBIT_QUEUE_CHANGE_INIT;
  change.expected_revision = 2;
  change.fields = ORBIT_CHANGE_MAX_UNFINISHED | ORBIT_CHANGE_MAX_RUNNING | ORBIT_CHANGE_RATE;
  assert_int_equal(orbit_change_queue(hall.admin, "change-3", queue->id, &change, &changed, NULL), ORBIT_OK);
  expect_queue(changed, 3, "after", 0, 0, false);
  assert_int_equal(changed->max_running, 0);
  orbit_queue_free(changed);

  assert_int_equal(orbit_pause_queue(hall.admin, "pause", queue->id, "maintenance", &changed, NULL), ORBIT_OK);
  expect_queue(changed, 4, "after", 0, 0, true);
  orbit_queue_free(changed);
  assert_int_equal(orbit_resume_queue(hall.admin, "resume", queue->id, NULL, &changed, NULL), ORBIT_OK);
  expect_queue(changed, 5, "after", 0, 0, false);
  orbit_queue_free(changed);
  orbit_queue_free(queue);
}

static void queues_are_listed_oldest_first(void **state) {
  (void)state;
  orbit_queue_free(queue_make("queue-listed", "listed"));
  struct orbit_queue_list *all = NULL, *page = NULL;
  assert_int_equal(orbit_list_queues(hall.plain, 100, NULL, &all, NULL), ORBIT_OK);
  assert_true(all->count >= 2);
  assert_null(all->next_cursor);
  assert_string_equal(all->items[0]->id, hall.server.queue_id);
  char *cursor = NULL;
  for (size_t i = 0; i < all->count; i++) {
    assert_int_equal(orbit_list_queues(hall.plain, 1, cursor, &page, NULL), ORBIT_OK);
    assert_int_equal(page->count, 1);
    assert_string_equal(page->items[0]->id, all->items[i]->id);
    assert_non_null(page->items[0]->counts);
    assert_int_equal(page->next_cursor == NULL, i + 1 == all->count);
    free(cursor);
    cursor = page->next_cursor != NULL ? strdup(page->next_cursor) : NULL;
    orbit_queue_list_free(page);
  }
  orbit_queue_list_free(all);
}

/* ---- Applications ---- */

static void an_application_lives_its_life(void **state) {
  (void)state;
  struct orbit_error error;
  struct orbit_application *application = NULL, *read = NULL;
  struct orbit_application_request request = ORBIT_APPLICATION_REQUEST_INIT;
  request.name = "billing";
  request.max_unfinished = 10;
  assert_int_equal(orbit_create_application(hall.admin, "application", &request, &application, NULL), ORBIT_OK);
  assert_string_equal(application->name, "billing");
  assert_int_equal(application->max_unfinished, 10);
  assert_int_equal(application->revision, 1);
  assert_false(application->disabled);
  assert_false(application->has_unfinished);
  assert_int_equal(orbit_get_application(hall.admin, application->id, &read, NULL), ORBIT_OK);
  assert_true(read->has_unfinished);
  assert_int_equal(read->unfinished, 0);
  orbit_application_free(read);

  struct orbit_application_change change = ORBIT_APPLICATION_CHANGE_INIT;
  change.expected_revision = 1;
  change.fields = ORBIT_CHANGE_MAX_UNFINISHED | ORBIT_CHANGE_DISABLED;
  change.disabled = true;
  assert_int_equal(orbit_change_application(hall.admin, "disable", application->id, &change, &read, NULL), ORBIT_OK);
  assert_int_equal(read->max_unfinished, 0);
  assert_true(read->disabled);
  assert_string_equal(read->name, "billing");
  orbit_application_free(read);
  assert_int_equal(orbit_change_application(hall.admin, "disable-2", application->id, &change, &read, &error), ORBIT_REFUSED);
  expect_refusal(&error, 409, "STATE_CONFLICT");

  struct orbit_application_list *list = NULL;
  assert_int_equal(orbit_list_applications(hall.admin, 0, NULL, &list, NULL), ORBIT_OK);
  assert_int_equal(list->count, 2);
  assert_string_equal(list->items[0]->id, hall.server.application_id);
  assert_string_equal(list->items[1]->id, application->id);
  orbit_application_list_free(list);
  assert_int_equal(orbit_list_applications(hall.plain, 0, NULL, &list, &error), ORBIT_REFUSED);
  expect_refusal(&error, 403, "PERMISSION_DENIED");
  orbit_application_free(application);
}

/* ---- Credentials ---- */

static struct orbit_credential_request credential_request(const char *const *permissions, size_t count) {
  struct orbit_credential_request request = ORBIT_CREDENTIAL_REQUEST_INIT;
  request.application_id = hall.server.application_id;
  request.name = "reader";
  request.permissions = permissions;
  request.permission_count = count;
  return request;
}

static void a_token_is_shown_once(void **state) {
  static const char *const permissions[] = {"tasks:read", "tasks:submit"};
  (void)state;
  struct orbit_error error;
  struct orbit_credential *made = NULL, *again = NULL, *rotated = NULL, *revoked = NULL;
  const char *const queue_ids[] = {hall.server.queue_id};
  struct orbit_credential_request request = credential_request(permissions, 2);
  request.queue_ids = queue_ids;
  request.queue_count = 1;
  request.expires_at = INT64_C(4102444800) * 1000000; /* 2100-01-01 */
  assert_int_equal(orbit_create_credential(hall.admin, "credential", &request, &made, NULL), ORBIT_OK);
  assert_non_null(made->token);
  assert_null(strstr(made->json, made->token));
  assert_string_equal(made->name, "reader");
  assert_string_equal(made->application_id, hall.server.application_id);
  assert_int_equal(made->permission_count, 2);
  assert_int_equal(made->queue_count, 1);
  assert_string_equal(made->queue_ids[0], hall.server.queue_id);
  assert_int_equal(made->expires_at, request.expires_at);
  assert_int_equal(try_token(made->token, NULL), ORBIT_OK);
  assert_int_equal(orbit_create_credential(hall.admin, "credential", &request, &again, NULL), ORBIT_OK);
  assert_string_equal(again->id, made->id);
  assert_null(again->token);
  orbit_credential_free(again);

  assert_int_equal(orbit_rotate_credential(hall.admin, "rotate", made->id, &rotated, NULL), ORBIT_OK);
  assert_non_null(rotated->token);
  assert_string_not_equal(rotated->token, made->token);
  assert_int_equal(try_token(rotated->token, NULL), ORBIT_OK);
  assert_int_equal(try_token(made->token, &error), ORBIT_REFUSED);
  expect_refusal(&error, 401, "UNAUTHENTICATED");

  assert_int_equal(orbit_revoke_credential(hall.admin, "revoke", made->id, &revoked, NULL), ORBIT_OK);
  assert_true(revoked->revoked);
  assert_null(revoked->token);
  orbit_credential_free(revoked);
  assert_int_equal(try_token(rotated->token, &error), ORBIT_REFUSED);
  expect_refusal(&error, 401, "UNAUTHENTICATED");
  assert_int_equal(orbit_rotate_credential(hall.admin, "rotate-2", made->id, &revoked, &error), ORBIT_REFUSED);
  expect_refusal(&error, 409, "STATE_CONFLICT");
  orbit_credential_free(rotated);
  orbit_credential_free(made);
}

static void credentials_are_read_without_tokens(void **state) {
  static const char *const permissions[] = {"metrics:read"};
  (void)state;
  struct orbit_credential *made = NULL, *read = NULL;
  struct orbit_credential_list *list = NULL;
  struct orbit_credential_request request = credential_request(permissions, 1);
  request.name = NULL;
  assert_int_equal(orbit_create_credential(hall.admin, "unnamed", &request, &made, NULL), ORBIT_OK);
  assert_null(made->name);
  assert_null(made->queue_ids);
  assert_int_equal(orbit_get_credential(hall.admin, made->id, &read, NULL), ORBIT_OK);
  assert_null(read->token);
  assert_string_equal(read->permissions[0], "metrics:read");
  assert_string_equal(read->json, made->json);
  orbit_credential_free(read);
  assert_int_equal(orbit_list_credentials(hall.admin, 100, NULL, &list, NULL), ORBIT_OK);
  bool found = false;
  for (size_t i = 0; i < list->count; i++) {
    assert_null(list->items[i]->token);
    found = found || strcmp(list->items[i]->id, made->id) == 0;
  }
  assert_true(found);
  orbit_credential_list_free(list);
  orbit_credential_free(made);
}

/* ---- Namespaces ---- */

static void a_namespace_comes_with_its_keys(void **state) {
  (void)state;
  struct orbit_error error;
  struct orbit_namespace *made = NULL, *again = NULL;
  assert_int_equal(orbit_create_namespace(hall.root, "namespace", "tenant", &made, NULL), ORBIT_OK);
  assert_string_equal(made->name, "tenant");
  assert_string_equal(made->application->namespace_id, made->id);
  assert_string_equal(made->credential->application_id, made->application->id);
  assert_non_null(made->credential->token);
  assert_int_equal(orbit_create_namespace(hall.root, "namespace", "tenant", &again, NULL), ORBIT_OK);
  assert_string_equal(again->id, made->id);
  assert_null(again->credential->token);
  orbit_namespace_free(again);
  again = NULL;
  assert_int_equal(orbit_create_namespace(hall.admin, "namespace", "tenant", &again, &error), ORBIT_REFUSED);
  expect_refusal(&error, 403, "PERMISSION_DENIED");
  assert_null(again);
  /* Its first credential runs it, and sees nothing of the other. */
  struct orbit_client *client = client_of(hall.server.url, made->credential->token);
  struct orbit_application_list *list = NULL;
  struct orbit_queue *queue = NULL;
  assert_int_equal(orbit_list_applications(client, 0, NULL, &list, NULL), ORBIT_OK);
  assert_int_equal(list->count, 1);
  assert_string_equal(list->items[0]->id, made->application->id);
  assert_int_equal(orbit_get_queue(client, hall.server.queue_id, &queue, &error), ORBIT_REFUSED);
  expect_refusal(&error, 404, "NOT_FOUND");
  orbit_application_list_free(list);
  orbit_client_free(client);
  orbit_namespace_free(made);
}

/* ---- Audit and metrics ---- */

static void the_audit_tells_newest_first(void **state) {
  static const char *const actions[] = {"queue.resume", "queue.pause", "queue.create"};
  (void)state;
  struct orbit_queue *queue = queue_make("queue-audited", "audited"), *changed = NULL;
  assert_int_equal(orbit_pause_queue(hall.admin, "audit-pause", queue->id, "because", &changed, NULL), ORBIT_OK);
  orbit_queue_free(changed);
  assert_int_equal(orbit_resume_queue(hall.admin, "audit-resume", queue->id, NULL, &changed, NULL), ORBIT_OK);
  orbit_queue_free(changed);
  struct orbit_audit_list *list = NULL, *next = NULL;
  assert_int_equal(orbit_list_audit(hall.admin, queue->id, 0, NULL, &list, NULL), ORBIT_OK);
  assert_int_equal(list->count, 3);
  for (size_t i = 0; i < 3; i++) {
    assert_string_equal(list->items[i]->action, actions[i]);
    assert_string_equal(list->items[i]->target_id, queue->id);
    assert_true(list->items[i]->created_at > 0);
  }
  assert_string_equal(list->items[1]->reason, "because");
  assert_null(list->items[0]->reason);
  assert_null(list->items[2]->before);
  assert_string_equal(list->items[1]->before, "{\"revision\":\"1\"}");
  assert_string_equal(list->items[1]->after, "{\"revision\":\"2\"}");
  char *json = strdup(list->items[2]->json);
  orbit_audit_list_free(list);
  /* With its pages, and without a target. */
  assert_int_equal(orbit_list_audit(hall.admin, queue->id, 2, NULL, &list, NULL), ORBIT_OK);
  assert_int_equal(orbit_list_audit(hall.admin, queue->id, 2, list->next_cursor, &next, NULL), ORBIT_OK);
  assert_int_equal(next->count, 1);
  assert_string_equal(next->items[0]->json, json);
  orbit_audit_list_free(list);
  orbit_audit_list_free(next);
  assert_int_equal(orbit_list_audit(hall.admin, NULL, 1, NULL, &list, NULL), ORBIT_OK);
  assert_string_equal(list->items[0]->action, "queue.resume");
  orbit_audit_list_free(list);
  free(json);
  orbit_queue_free(queue);
}

static void metrics_are_text(void **state) {
  (void)state;
  struct orbit_error error;
  struct orbit_response *response = NULL;
  assert_int_equal(orbit_metrics(hall.admin, &response, NULL), ORBIT_OK);
  assert_non_null(strstr(response->body, "# TYPE orbit_"));
  assert_null(response->data);
  orbit_response_free(response);
  assert_int_equal(orbit_metrics(hall.plain, &response, &error), ORBIT_REFUSED);
  expect_refusal(&error, 403, "PERMISSION_DENIED");
}

/* ---- What is refused before it is sent: nothing listens at the client's address ---- */

static void queues_that_are_not_sent(void **state) {
  struct orbit_queue_request requests[7];
  struct orbit_queue_change changes[8];
  static const char *const request_fields[] = {"/name", "/max_unfinished", "/max_running", "/key_concurrency",
                                               "/rate", "/rate",           "/lease_ms"};
  static const char *const change_fields[] = {"/expected_revision", "fields",           "fields", "/name",
                                              "/max_running",       "/key_concurrency", "/rate",  "/lease_ms"};
  (void)state;
  for (size_t i = 0; i < 7; i++) requests[i] = (struct orbit_queue_request)ORBIT_QUEUE_REQUEST_INIT, requests[i].name = "n";
  requests[0].name = "";
  requests[1].max_unfinished = 1000000001;
  requests[2].max_running = UINT64_MAX;
  requests[3].key_concurrency = 1000000001;
  requests[4].rate = (struct orbit_rate){1, 0, 1};
  requests[5].rate = (struct orbit_rate){1, 1, 1000000001};
  requests[6].lease_ms = 4999;
  for (size_t i = 0; i < 8; i++)
    changes[i] = (struct orbit_queue_change){sizeof changes[i], 1, 127 - 64, "n", 0, 0, 1, {0, 0, 0}, 5000};
  changes[0].expected_revision = 0;
  changes[1].fields = 0;
  changes[2].fields = ORBIT_CHANGE_DISABLED;
  changes[3].name = NULL;
  changes[4].max_running = 1000000001;
  changes[5].key_concurrency = 0;
  changes[6].rate.burst = 1;
  changes[7].lease_ms = 300001;
  struct orbit_client *client = client_of("http://127.0.0.1:1", "t");
  struct orbit_queue *queue = NULL;
  struct orbit_error error;
  for (size_t i = 0; i < 7; i++) {
    assert_int_equal(orbit_create_queue(client, "k", &requests[i], &queue, &error), ORBIT_INVALID_ARGUMENT);
    assert_string_equal(error.field, request_fields[i]);
  }
  for (size_t i = 0; i < 8; i++) {
    assert_int_equal(orbit_change_queue(client, "k", ID, &changes[i], &queue, &error), ORBIT_INVALID_ARGUMENT);
    assert_string_equal(error.field, change_fields[i]);
  }
  changes[7].lease_ms = 300000;
  assert_int_equal(orbit_change_queue(client, "k", ID, &changes[7], &queue, &error), ORBIT_NOT_CONNECTED);
  assert_int_equal(orbit_pause_queue(client, "k", ID, "", &queue, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "/reason");
  assert_int_equal(orbit_pause_queue(client, "", ID, NULL, &queue, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "operation_key");
  assert_null(queue);
  orbit_client_free(client);
}

static void credentials_that_are_not_sent(void **state) {
  static const char *const permissions[] = {"tasks:read"}, *const bad[] = {"tasks read"};
  static const char *const fields[] = {"/application_id", "/name",      "/permissions", "/permissions",
                                       "/queue_ids",      "/queue_ids", "/queue_ids",   "/expires_at"};
  struct orbit_credential_request requests[8];
  (void)state;
  for (size_t i = 0; i < 8; i++) requests[i] = credential_request(permissions, 1);
  requests[0].application_id = "7";
  requests[1].name = "";
  requests[2].permission_count = 0;
  requests[3].permissions = bad;
  requests[4].queue_ids = permissions; /* an empty list is not "all" */
  requests[5].queue_count = 1;
  requests[6].queue_ids = permissions, requests[6].queue_count = 1;
  requests[7].expires_at = 1;
  struct orbit_client *client = client_of("http://127.0.0.1:1", "t");
  struct orbit_credential *credential = NULL;
  struct orbit_error error;
  for (size_t i = 0; i < 8; i++) {
    assert_int_equal(orbit_create_credential(client, "k", &requests[i], &credential, &error), ORBIT_INVALID_ARGUMENT);
    assert_string_equal(error.field, fields[i]);
  }
  assert_int_equal(orbit_rotate_credential(client, NULL, ID, &credential, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "operation_key");
  assert_int_equal(orbit_revoke_credential(client, "k", NULL, &credential, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "credential_id");
  assert_null(credential);
  orbit_client_free(client);
}

static void applications_that_are_not_sent(void **state) {
  static const char *const fields[] = {"/expected_revision", "fields", "fields", "/name", "/max_unfinished"};
  struct orbit_application_change changes[5];
  (void)state;
  for (size_t i = 0; i < 5; i++) {
    changes[i] = (struct orbit_application_change)ORBIT_APPLICATION_CHANGE_INIT;
    changes[i].expected_revision = 1;
    changes[i].fields = ORBIT_CHANGE_NAME | ORBIT_CHANGE_MAX_UNFINISHED | ORBIT_CHANGE_DISABLED;
    changes[i].name = "n";
  }
  changes[0].expected_revision = 0;
  changes[1].fields = 0;
  changes[2].fields = ORBIT_CHANGE_RATE;
  changes[3].name = "";
  changes[4].max_unfinished = 1000000001;
  struct orbit_client *client = client_of("http://127.0.0.1:1", "t");
  struct orbit_application *application = NULL;
  struct orbit_namespace *made = NULL;
  struct orbit_audit_list *audit = NULL;
  struct orbit_error error;
  for (size_t i = 0; i < 5; i++) {
    assert_int_equal(orbit_change_application(client, "k", ID, &changes[i], &application, &error), ORBIT_INVALID_ARGUMENT);
    assert_string_equal(error.field, fields[i]);
  }
  changes[4].fields = ORBIT_CHANGE_NAME; /* what is not among the fields is not looked at */
  assert_int_equal(orbit_change_application(client, "k", ID, &changes[4], &application, &error), ORBIT_NOT_CONNECTED);
  struct orbit_application_request request = ORBIT_APPLICATION_REQUEST_INIT;
  assert_int_equal(orbit_create_application(client, "k", &request, &application, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "/name");
  assert_int_equal(orbit_create_namespace(client, "k", "\xff", &made, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "/name");
  assert_int_equal(orbit_list_audit(client, "7", 0, NULL, &audit, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "target_id");
  assert_true(application == NULL && made == NULL && audit == NULL);
  orbit_client_free(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(queues_that_are_not_sent),
      cmocka_unit_test(applications_that_are_not_sent),
      cmocka_unit_test(credentials_that_are_not_sent),
      cmocka_unit_test(a_queue_is_made_once),
      cmocka_unit_test(a_queue_counts_what_it_holds),
      cmocka_unit_test(a_queue_is_changed_field_by_field),
      cmocka_unit_test(queues_are_listed_oldest_first),
      cmocka_unit_test(an_application_lives_its_life),
      cmocka_unit_test(a_token_is_shown_once),
      cmocka_unit_test(credentials_are_read_without_tokens),
      cmocka_unit_test(a_namespace_comes_with_its_keys),
      cmocka_unit_test(the_audit_tells_newest_first),
      cmocka_unit_test(metrics_are_text),
  };
  if (access(ORBIT_BIN_DIR "/orbitd", X_OK) != 0 || access(ORBIT_BIN_DIR "/orbitctl", X_OK) != 0) {
    print_error("orbitd and orbitctl have not been built\n");
    return 1;
  }
  return cmocka_run_group_tests(tests, hall_open, hall_close);
}
