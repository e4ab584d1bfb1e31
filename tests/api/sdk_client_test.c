/* The producer's side of liborbit: what is sent, and what is made of answers, against a server
 * that says whatever a case needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../sdk/c/src/documents.h"
#include "api/sdk_scripted.h"
#include "base/guard.h"
#include "orbit.h"
#include "support/support.h"

#define ID "0190000000000000000000000000000a"
#define OTHER_ID "0190000000000000000000000000000b"

static struct orbit_client *client_of(const char *url) {
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  struct orbit_client *client = NULL;
  options.url = url;
  options.token = "secret-token";
  options.timeout_ms = 5000;
  assert_int_equal(orbit_client_new(&options, &client, NULL), ORBIT_OK);
  return client;
}

static struct orbit_task_request request_make(void) {
  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  request.queue_id = ID;
  request.handler = "text.normalize";
  request.handler_version = "v1";
  request.payload_version = "v1";
  request.payload = "{\"text\":\"  safe retry  \"}";
  request.payload_size = strlen(request.payload);
  request.task_timeout_ms = 60000;
  return request;
}

/* ---- What is refused before it is sent ---- */

static void options_of_any_age(void **state) {
  struct {
    struct orbit_client_options options;
    uint64_t later;
  } newer = {ORBIT_CLIENT_OPTIONS_INIT, 0};
  struct orbit_client *client = NULL;
  struct orbit_error error;
  (void)state;
  newer.options.url = "http://127.0.0.1:1";
  newer.options.size = sizeof newer;
  assert_int_equal(orbit_client_new(&newer.options, &client, NULL), ORBIT_OK);
  orbit_client_free(client);
  newer.later = 1;
  assert_int_equal(orbit_client_new(&newer.options, &client, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "size");
  newer.options.size = offsetof(struct orbit_client_options, connect_timeout_ms);
  assert_int_equal(orbit_client_new(&newer.options, &client, NULL), ORBIT_OK);
  orbit_client_free(client);
  newer.options.size = 0;
  assert_int_equal(orbit_client_new(&newer.options, &client, NULL), ORBIT_INVALID_ARGUMENT);
  assert_int_equal(orbit_client_new(NULL, &client, NULL), ORBIT_INVALID_ARGUMENT);
  orbit_client_free(NULL);
}

static void submissions_are_judged_field_by_field(void **state) {
  (void)state;
  struct buffer body;
  for (int i = 0; i <= 16; i++) {
    static const char *const fields[] = {
        "",          "/queue_id",        "/handler",      "/handler_version", "/payload_version",  "/payload",
        "/payload",  "/payload",         "/payload",      "/task_timeout_ms", "/task_timeout_ms",  "/available_at",
        "/priority", "/recovery_safety", "/business_key", "/concurrency_key", "/start_deadline_at"};
    struct orbit_task_request request = request_make();
    struct orbit_error error = {.status = 0};
    char long_key[258];
    memset(long_key, 'k', 257);
    long_key[257] = '\0';
    if (i == 1) request.queue_id = "0190000000000000000000000000000A";
    if (i == 2) request.handler = "a b";
    if (i == 3) request.handler_version = "";
    if (i == 4) request.payload_version = NULL;
    if (i == 5) request.payload = NULL;
    if (i == 6) request.payload_size--;
    if (i == 7) request.payload = "null", request.payload_size = 4;
    if (i == 8) request.payload = "1,\"priority\":9", request.payload_size = 14;
    if (i == 9) request.task_timeout_ms = 0;
    if (i == 10) request.task_timeout_ms = 2592000001;
    if (i == 11) request.available_at = 1;
    if (i == 12) request.priority = 10;
    if (i == 13) request.recovery_safety = 2;
    if (i == 14) request.business_key = long_key;
    if (i == 15) request.concurrency_key = "\xff";
    if (i == 16) request.start_deadline_at = INT64_MAX;
    buffer_init(&body, 1 << 20);
    int status = sdk_task_request_write(&request, &body, &error);
    assert_int_equal(status, i == 0 ? ORBIT_OK : ORBIT_INVALID_ARGUMENT);
    assert_string_equal(error.field, fields[i]);
    buffer_clear(&body);
  }
}

static void a_submission_is_written_field_by_field(void **state) {
  (void)state;
  struct orbit_task_request request = request_make();
  struct buffer body;
  buffer_init(&body, 1 << 20);
  request.payload = " { \"n\" : [ 9007199254740993 , 1.10 , 1e400 ] } ";
  request.payload_size = strlen(request.payload);
  request.available_at = INT64_C(1789603200) * 1000000;
  request.recovery_safety = ORBIT_IDEMPOTENT;
  request.retry = (struct orbit_retry){3, 500, 2000, 10000};
  request.business_key = "order \"7\"";
  request.priority = 9;
  assert_int_equal(sdk_task_request_write(&request, &body, NULL), ORBIT_OK);
  buffer_append_char(&body, '\0');
  assert_string_equal(
      (const char *)body.data,
      "{\"queue_id\":\"" ID
      "\",\"handler\":\"text.normalize\",\"handler_version\":\"v1\",\"payload_version\":\"v1\","
      "\"payload\":{\"n\":[9007199254740993,1.10,1e400]},\"task_timeout_ms\":60000,"
      "\"available_at\":\"2026-09-17T00:00:00Z\",\"recovery_safety\":\"IDEMPOTENT\","
      "\"retry\":{\"max_attempts\":3,\"initial_delay_ms\":500,\"max_delay_ms\":2000,\"attempt_timeout_ms\":10000},"
      "\"business_key\":\"order \\\"7\\\"\",\"priority\":9}");
  buffer_clear(&body);
}

static void calls_are_judged_before_they_are_sent(void **state) {
  static const struct {
    const char *method, *path, *key, *field;
  } cases[] = {
      {"PUT", "/x", NULL, "method"},
      {NULL, "/x", NULL, "method"},
      {"GET", "x", NULL, "path"},
      {"GET", NULL, NULL, "path"},
      {"GET", "/a b", NULL, "path"},
      {"GET", "/a\r\nHost: x", NULL, "path"},
      {"GET", "/a#b", NULL, "path"},
      {"POST", "/x", "", "Idempotency-Key"},
      {"POST", "/x", "a b", "Idempotency-Key"},
      {"POST", "/x", "a\nX: y", "Idempotency-Key"},
  };
  (void)state;
  struct orbit_client *client = client_of("http://127.0.0.1:1");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct orbit_response *response = NULL;
    struct orbit_error error;
    int status = orbit_call(client, cases[i].method, cases[i].path, cases[i].key, NULL, 0, &response, &error);
    assert_int_equal(status, ORBIT_INVALID_ARGUMENT);
    assert_string_equal(error.field, cases[i].field);
    assert_null(response);
  }
  struct orbit_task *task = NULL;
  assert_int_equal(orbit_get_task(client, "../queues", &task, NULL), ORBIT_INVALID_ARGUMENT);
  assert_int_equal(orbit_get_task(client, NULL, &task, NULL), ORBIT_INVALID_ARGUMENT);
  assert_int_equal(orbit_submit_task(client, NULL, &(struct orbit_task_request)ORBIT_TASK_REQUEST_INIT, &task, NULL),
                   ORBIT_INVALID_ARGUMENT);
  assert_int_equal(orbit_cancel_task(client, "k", ID, "", 0, &task, NULL), ORBIT_INVALID_ARGUMENT);
  orbit_client_free(client);
}

/* ---- Answers ---- */

#define TASK_JSON                                                                                                            \
  "{\"id\":\"" ID "\",\"namespace_id\":\"" OTHER_ID "\",\"queue_id\":\"" ID                                                  \
  "\",\"state\":\"SUCCEEDED\",\"revision\":"                                                                                 \
  "\"18446744073709551615\",\"handler\":\"h\",\"handler_version\":\"v\",\"payload_version\":\"p\",\"payload\":{\"n\":1.10}," \
  "\"business_key\":\"\\u00e4\",\"priority\":3,\"available_at\":\"2026-09-17T00:00:00Z\",\"deadline_at\":"                   \
  "\"2026-09-17T00:01:00.5Z\",\"recovery_safety\":\"IDEMPOTENT\",\"retry\":{\"max_attempts\":3,\"initial_delay_ms\":500,"    \
  "\"max_delay_ms\":2000,\"attempt_timeout_ms\":10000},\"attempt_count\":2,\"effect_uncertain\":true,\"result\":[1e400],"    \
  "\"completed_at\":\"2026-09-17T00:00:01Z\",\"created_at\":\"2026-09-17T00:00:00Z\",\"updated_at\":"                        \
  "\"2026-09-17T00:00:01Z\",\"something_new\":{\"a\":[]}}"

static void a_task_is_read_whole(void **state) {
  (void)state;
  struct fake fake;
  fake_start(&fake);
  char *answer = answer_make(200, "", "{\"request_id\":\"0123\",\"data\":{\"task\":" TASK_JSON ",\"deduplicated\":true}}");
  fake_say(&fake, answer);
  struct orbit_client *client = client_of(fake.url);
  struct orbit_task_request request = request_make();
  struct orbit_task *task = NULL;
  assert_int_equal(orbit_submit_task(client, "key-1", &request, &task, NULL), ORBIT_OK);
  assert_string_equal(task->id, ID);
  assert_string_equal(task->namespace_id, OTHER_ID);
  assert_int_equal(task->state, ORBIT_TASK_SUCCEEDED);
  assert_true(orbit_task_is_terminal(task));
  assert_true(task->revision == UINT64_MAX);
  assert_string_equal(task->payload, "{\"n\":1.10}");
  assert_string_equal(task->business_key, "\xc3\xa4");
  assert_null(task->concurrency_key);
  assert_int_equal(task->priority, 3);
  assert_true(task->available_at == INT64_C(1789603200) * 1000000);
  assert_true(task->deadline_at == INT64_C(1789603260500000));
  assert_int_equal(task->start_deadline_at, 0);
  assert_int_equal(task->recovery_safety, ORBIT_IDEMPOTENT);
  assert_int_equal(task->retry.max_attempts, 3);
  assert_int_equal(task->retry.attempt_timeout_ms, 10000);
  assert_int_equal(task->attempt_count, 2);
  assert_true(task->effect_uncertain);
  assert_string_equal(task->result, "[1e400]");
  assert_int_equal(task->result_size, 7);
  assert_string_equal(task->error.code, "");
  assert_null(task->error.details);
  assert_true(task->deduplicated);
  assert_string_equal(task->json, TASK_JSON);
  orbit_task_free(task);

  assert_int_equal(fake_requests(&fake), 1);
  assert_int_equal(strncmp(fake_request(&fake), "POST /v1/tasks HTTP/1.1\r\n", 25), 0);
  assert_non_null(strstr(fake_request(&fake), "\r\nAuthorization: Bearer secret-token\r\n"));
  assert_non_null(strstr(fake_request(&fake), "\r\nContent-Type: application/json\r\n"));
  assert_non_null(strstr(fake_request(&fake), "\r\nIdempotency-Key: key-1\r\n"));
  assert_null(strcasestr(fake_request(&fake), "\r\nExpect:"));

  assert_int_equal(orbit_get_task(client, ID, &task, NULL), ORBIT_OK);
  orbit_task_free(task);
  assert_int_equal(strncmp(fake_request(&fake), "GET /v1/tasks/" ID " HTTP/1.1\r\n", 55), 0);
  assert_null(strcasestr(fake_request(&fake), "\r\nContent-"));
  assert_null(strcasestr(fake_request(&fake), "\r\nIdempotency-Key:"));
  orbit_client_free(client);
  fake_stop(&fake);
  free(answer);
}

static void answers_that_are_failures(void **state) {
  static const struct {
    int http;
    const char *headers, *body;
    int status;
    const char *code, *field, *message;
    uint64_t retry_after_ms;
  } cases[] = {
      {400, "", "{\"request_id\":\"0123\",\"error\":{\"code\":\"INVALID_ARGUMENT\",\"message\":\"no\",\"field\":\"/payload\"}}",
       ORBIT_REFUSED, "INVALID_ARGUMENT", "/payload", "no", 0},
      {429, "Retry-After: 2\r\n",
       "{\"request_id\":\"0123\",\"error\":{\"code\":\"QUEUE_FULL\",\"message\":\"full\",\"retry_after_ms\":1500}}",
       ORBIT_REFUSED, "QUEUE_FULL", "", "full", 1500},
      {503, "Retry-After: 2\r\n", "{\"request_id\":\"0123\",\"error\":{\"code\":\"UNAVAILABLE\",\"message\":\"later\"}}",
       ORBIT_REFUSED, "UNAVAILABLE", "", "later", 2000},
      {500, "", "oops", ORBIT_REFUSED, "", "", "the server refused and gave no reason", 0},
      {502, "", "", ORBIT_REFUSED, "", "", "the server refused and gave no reason", 0},
      {200, "", "{\"request_id\":\"0123\",\"data\":{}}", ORBIT_BAD_ANSWER, "", "",
       "the answer does not have the fields that Orbit's answers have", 0},
      {200, "", "{\"request_id\":\"0123\"}", ORBIT_BAD_ANSWER, "", "",
       "the answer does not have the fields that Orbit's answers have", 0},
      {200, "", "[]", ORBIT_BAD_ANSWER, "", "", "the answer does not have the fields that Orbit's answers have", 0},
      {200, "", "{\"data\":{\"task\":{\"id\":7}}}", ORBIT_BAD_ANSWER, "", "",
       "the answer does not have the fields that Orbit's answers have", 0},
      {302, "Location: http://127.0.0.1:1/\r\n", "", ORBIT_BAD_ANSWER, "", "",
       "an answer with status 302 that Orbit does not give", 0},
  };
  (void)state;
  struct fake fake;
  fake_start(&fake);
  struct orbit_client *client = client_of(fake.url);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *answer = answer_make(cases[i].http, cases[i].headers, cases[i].body);
    fake_say(&fake, answer);
    struct orbit_task *task = NULL;
    struct orbit_error error;
    assert_int_equal(orbit_get_task(client, ID, &task, &error), cases[i].status);
    assert_int_equal(error.status, cases[i].status);
    assert_string_equal(error.code, cases[i].code);
    assert_string_equal(error.field, cases[i].field);
    assert_string_equal(error.message, cases[i].message);
    assert_int_equal(error.retry_after_ms, cases[i].retry_after_ms);
    assert_int_equal(error.http_status, cases[i].status == ORBIT_REFUSED ? cases[i].http : 0);
    assert_null(task);
    assert_int_equal(fake_requests(&fake), 1);
    free(answer);
  }
  char *answer = answer_make(200, "", "{\"data\":");
  fake_say(&fake, answer);
  struct orbit_task *task = NULL;
  assert_int_equal(orbit_get_task(client, ID, &task, NULL), ORBIT_BAD_ANSWER);
  orbit_client_free(client);
  fake_stop(&fake);
  free(answer);
}

static void a_lost_answer_is_told_from_a_lost_request(void **state) {
  (void)state;
  struct fake fake;
  fake_start(&fake);
  struct orbit_client *client = client_of(fake.url);
  struct orbit_task_request request = request_make();
  struct orbit_task *task = NULL;
  struct orbit_error error;
  assert_int_equal(orbit_submit_task(client, "key-1", &request, &task, &error), ORBIT_NO_ANSWER);
  assert_int_equal(fake_requests(&fake), 1); /* and is not repeated */
  fake_stop(&fake);
  assert_int_equal(orbit_submit_task(client, "key-1", &request, &task, &error), ORBIT_NOT_CONNECTED);
  assert_null(task);
  orbit_client_free(client);
}

static void lists_are_read_whole(void **state) {
  static const char body[] =
      "{\"request_id\":\"0123\",\"data\":{\"items\":["
      "{\"attempt_id\":\"" ID "\",\"number\":1,\"epoch\":\"1\",\"state\":\"FAILED\",\"worker\":{\"instance_id\":\"" OTHER_ID
      "\"},\"leased_at\":\"2026-09-17T00:00:00Z\",\"outcome\":\"FAILED\",\"retryable\":true,"
      "\"error\":{\"code\":\"TEMPORARY_REJECTION\",\"details\":{\"reason_ref\":\"x\"}},\"decision\":\"RETRYABLE_FAILURE\","
      "\"delay_ms\":400,\"ended_by\":\"REPORT\"},"
      "{\"attempt_id\":\"" OTHER_ID "\",\"number\":2,\"epoch\":\"2\",\"state\":\"FUTURE\",\"worker\":{\"instance_id\":\"" ID
      "\",\"name\":\"w\"},\"result\":{\"text\":\"X\"}}],\"next_cursor\":\"a+b/c==\"}}";
  (void)state;
  struct fake fake;
  fake_start(&fake);
  char *answer = answer_make(200, "", body);
  fake_say(&fake, answer);
  struct orbit_client *client = client_of(fake.url);
  struct orbit_attempt_list *list = NULL;
  assert_int_equal(orbit_list_attempts(client, ID, 2, "a+b/c==", &list, NULL), ORBIT_OK);
  assert_non_null(strstr(fake_request(&fake), "GET /v1/tasks/" ID "/attempts?limit=2&cursor=a%2Bb%2Fc%3D%3D HTTP/1.1\r\n"));
  assert_int_equal(list->count, 2);
  const struct orbit_attempt *first = list->items[0], *second = list->items[1];
  assert_int_equal(first->state, ORBIT_ATTEMPT_FAILED);
  assert_true(first->retryable);
  assert_string_equal(first->error.code, "TEMPORARY_REJECTION");
  assert_string_equal(first->error.details, "{\"reason_ref\":\"x\"}");
  assert_string_equal(first->decision, "RETRYABLE_FAILURE");
  assert_string_equal(first->worker_instance_id, OTHER_ID);
  assert_null(first->worker_name);
  assert_int_equal(first->delay_ms, 400);
  assert_int_equal(second->state, ORBIT_ATTEMPT_OTHER);
  assert_string_equal(second->state_name, "FUTURE");
  assert_string_equal(second->worker_name, "w");
  assert_string_equal(second->result, "{\"text\":\"X\"}");
  assert_string_equal(list->next_cursor, "a+b/c==");
  orbit_attempt_list_free(list);
  free(answer);

  answer = answer_make(200, "", "{\"data\":{\"items\":[]}}");
  fake_say(&fake, answer);
  struct orbit_evidence_list *evidence = NULL;
  assert_int_equal(orbit_list_evidence(client, ID, 0, NULL, &evidence, NULL), ORBIT_OK);
  assert_non_null(strstr(fake_request(&fake), "GET /v1/tasks/" ID "/evidence HTTP/1.1\r\n"));
  assert_int_equal(evidence->count, 0);
  assert_null(evidence->next_cursor);
  orbit_evidence_list_free(evidence);
  free(answer);

  answer = answer_make(200, "", "{\"data\":{\"items\":[7]}}");
  fake_say(&fake, answer);
  assert_int_equal(orbit_list_evidence(client, ID, 0, NULL, &evidence, NULL), ORBIT_BAD_ANSWER);
  assert_int_equal(orbit_list_attempts(client, ID, 101, NULL, &list, NULL), ORBIT_INVALID_ARGUMENT);
  orbit_client_free(client);
  fake_stop(&fake);
  free(answer);
}

static void batches_are_written_and_judged(void **state) {
  static const char refused[] =
      "{\"status\":429,\"error\":{\"code\":\"QUEUE_FULL\",\"message\":\"full\",\"retry_after_ms\":7}}";
  static const char *const bad[] = {
      "[]",                                     /* one is missing */
      "[{\"status\":302}]",                     /* no status of an item */
      "[{\"status\":201}]",                     /* no task */
      "[{\"status\":429}]",                     /* no error */
      "[{\"status\":201,\"task\":{\"id\":7}}]", /* no task of Orbit's */
      "[7]",
  };
  (void)state;
  struct fake fake;
  fake_start(&fake);
  struct orbit_client *client = client_of(fake.url);
  const struct orbit_task_request request = request_make();
  const struct orbit_submission submission = {"key-1", &request};
  struct orbit_submission_answer_list *answers = NULL;
  char body[512];
  (void)snprintf(body, sizeof body, "{\"data\":{\"items\":[%s]}}", refused);
  char *answer = answer_make(200, "", body);
  fake_say(&fake, answer);
  assert_int_equal(orbit_submit_tasks(client, &submission, 1, &answers, NULL), ORBIT_OK);
  assert_int_equal(answers->items[0]->http_status, 429);
  assert_string_equal(answers->items[0]->error.code, "QUEUE_FULL");
  assert_string_equal(answers->items[0]->error.message, "full");
  assert_int_equal(answers->items[0]->error.retry_after_ms, 7);
  assert_null(answers->items[0]->task);
  const char *heard = fake_request(&fake);
  assert_non_null(strstr(heard, "POST /v1/tasks:batch HTTP/1.1\r\n"));
  assert_null(strcasestr(heard, "Idempotency-Key:")); /* each item has its own */
  assert_non_null(strstr(heard, "\r\n\r\n{\"items\":[{\"idempotency_key\":\"key-1\",\"queue_id\":\"" ID "\","));
  orbit_submission_answer_list_free(answers);
  answers = NULL;
  free(answer);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    (void)snprintf(body, sizeof body, "{\"data\":{\"items\":%s}}", bad[i]);
    answer = answer_make(200, "", body);
    fake_say(&fake, answer);
    assert_int_equal(orbit_submit_tasks(client, &submission, 1, &answers, NULL), ORBIT_BAD_ANSWER);
    assert_null(answers);
    assert_int_equal(fake_requests(&fake), 1);
    free(answer);
  }
  orbit_client_free(client);
  fake_stop(&fake);
}

static void answers_about_credentials_are_judged(void **state) {
  static const struct {
    const char *data;
    int status;
  } cases[] = {
      {"{\"credential\":{\"id\":\"" ID "\",\"permissions\":[\"admin\"]},\"token\":\"t\"}", ORBIT_OK},
      {"{\"credential\":{\"id\":\"" ID "\",\"permissions\":[\"admin\",7]}}", ORBIT_BAD_ANSWER},
      {"{\"credential\":{\"id\":\"" ID "\",\"permissions\":\"admin\"}}", ORBIT_BAD_ANSWER},
      {"{\"credential\":{\"permissions\":[\"admin\"]}}", ORBIT_BAD_ANSWER},
      {"{\"token\":\"t\"}", ORBIT_BAD_ANSWER},
      {"{\"credential\":{\"id\":\"" ID "\"},\"token\":7}", ORBIT_BAD_ANSWER},
  };
  (void)state;
  struct fake fake;
  fake_start(&fake);
  struct orbit_client *client = client_of(fake.url);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct orbit_credential *credential = NULL;
    char body[512];
    (void)snprintf(body, sizeof body, "{\"data\":%s}", cases[i].data);
    char *answer = answer_make(200, "", body);
    fake_say(&fake, answer);
    assert_int_equal(orbit_rotate_credential(client, "key-1", ID, &credential, NULL), cases[i].status);
    assert_int_equal(credential != NULL, cases[i].status == ORBIT_OK);
    if (credential != NULL) assert_string_equal(credential->token, "t");
    orbit_credential_free(credential);
    assert_non_null(strstr(fake_request(&fake), "POST /v1/credentials/" ID ":rotate HTTP/1.1\r\n"));
    assert_non_null(strstr(fake_request(&fake), "\r\nIdempotency-Key: key-1\r\n"));
    assert_int_equal(fake_requests(&fake), 1); /* not repeated, whatever the answer */
    free(answer);
  }
  orbit_client_free(client);
  fake_stop(&fake);
}

static void any_route_gives_its_data(void **state) {
  (void)state;
  struct fake fake;
  fake_start(&fake);
  char *answer = answer_make(201, "", "{\"request_id\":\"0123\",\"data\": {\"queue\":{}} }");
  fake_say(&fake, answer);
  struct orbit_client *client = client_of(fake.url);
  struct orbit_response *response = NULL;
  assert_int_equal(orbit_call(client, "PATCH", "/v1/queues/x?y=%20", "k", "{}", 2, &response, NULL), ORBIT_OK);
  assert_int_equal(response->http_status, 201);
  assert_string_equal(response->request_id, "0123");
  assert_string_equal(response->data, "{\"queue\":{}}");
  assert_int_equal(response->data_size, 12);
  orbit_response_free(response);
  assert_int_equal(strncmp(fake_request(&fake), "PATCH /v1/queues/x?y=%20 HTTP/1.1\r\n", 35), 0);
  assert_int_equal(orbit_call(client, "POST", "/v1/x:pause", "k", NULL, 0, &response, NULL), ORBIT_OK);
  assert_non_null(strstr(fake_request(&fake), "\r\nContent-Length: 0\r\n"));
  orbit_response_free(response);
  orbit_client_free(client);
  fake_stop(&fake);
  free(answer);
}

/* A child has connections of its own: on its parent's it would get the parent's answers, and the parent the child's. */
static void a_forked_child_leaves_its_parents_connection_alone(void **state) {
  (void)state;
  struct fake fake;
  fake_start(&fake);
  char *answer = answer_make(200, "", "{\"request_id\":\"0123\",\"data\":{}}");
  fake_say(&fake, answer);
  struct orbit_client *client = client_of(fake.url);
  struct orbit_response *response = NULL;
  assert_int_equal(orbit_call(client, "GET", "/v1/parent", NULL, NULL, 0, &response, NULL), ORBIT_OK);
  orbit_response_free(response);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    int status = orbit_call(client, "GET", "/v1/child", NULL, NULL, 0, &response, NULL);
    orbit_client_free(client);
    _exit(status);
  }
  assert_int_equal(orbit_call(client, "GET", "/v1/parent", NULL, NULL, 0, &response, NULL), ORBIT_OK);
  orbit_response_free(response);
  orbit_client_free(client); /* the server takes the next connection when this one is gone */
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), ORBIT_OK);
  assert_non_null(strstr(fake_request(&fake), "GET /v1/child "));
  assert_int_equal(fake.connections, 2);
  fake_stop(&fake);
  free(answer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_of_any_age),
      cmocka_unit_test(submissions_are_judged_field_by_field),
      cmocka_unit_test(a_submission_is_written_field_by_field),
      cmocka_unit_test(calls_are_judged_before_they_are_sent),
      cmocka_unit_test(a_task_is_read_whole),
      cmocka_unit_test(answers_that_are_failures),
      cmocka_unit_test(a_lost_answer_is_told_from_a_lost_request),
      cmocka_unit_test(lists_are_read_whole),
      cmocka_unit_test(batches_are_written_and_judged),
      cmocka_unit_test(answers_about_credentials_are_judged),
      cmocka_unit_test(any_route_gives_its_data),
      cmocka_unit_test(a_forked_child_leaves_its_parents_connection_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
