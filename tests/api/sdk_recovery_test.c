/* liborbit against the real server, where people come in: batches, lists, cancellation, review, retry by hand, and the reading
 * of what was done. */
#include "api/sdk_stage.h"

#define ID "0190000000000000000000000000000a"

static const char payload[] = "{\"n\":9007199254740993}";

static struct orbit_task_request request_of(const struct stage *stage, const char *business_key) {
  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  request.queue_id = stage->credentials->queue_id;
  request.handler = "batch";
  request.handler_version = "v1";
  request.payload_version = "v1";
  request.payload = payload;
  request.payload_size = strlen(payload);
  request.task_timeout_ms = 60000;
  request.business_key = business_key;
  return request;
}

static struct orbit_review_request review_of(const char *result) {
  struct orbit_review_request request = ORBIT_REVIEW_REQUEST_INIT;
  request.expected_revision = 4;
  request.reason = "every execution has ended; the work was not done — nicht getan";
  request.evidence_ref = "evidence:reconciliation-001";
  request.execution_settled = true;
  request.outcome = ORBIT_FAILED;
  request.result = result;
  request.result_size = strlen(result);
  return request;
}

static struct orbit_retry_request retry_of(uint64_t expected_revision) {
  struct orbit_retry_request request = ORBIT_RETRY_REQUEST_INIT;
  request.expected_revision = expected_revision;
  request.reason = "doing it again is safe";
  request.evidence_ref = "evidence:safe-retry-001";
  request.safe_to_retry = true;
  request.task_timeout_ms = 60000;
  return request;
}

static void expect_refusal(const struct orbit_error *error, int http_status, const char *code) {
  assert_int_equal(error->status, ORBIT_REFUSED);
  assert_int_equal(error->http_status, http_status);
  assert_string_equal(error->code, code);
}

/* ---- What is refused before it is sent: nothing listens at the client's address ---- */

static struct orbit_client *client_of_nothing(void) {
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  struct orbit_client *client = NULL;
  options.url = "http://127.0.0.1:1";
  options.token = "t";
  assert_int_equal(orbit_client_new(&options, &client, NULL), ORBIT_OK);
  return client;
}

static void reviews_that_are_not_sent(void **state) {
  const struct orbit_review_request good = review_of("1.10");
  struct orbit_review_request requests[10];
  static const char *const fields[] = {"/expected_revision", "/reason",  "/evidence_ref", "/evidence_ref", "/execution_settled",
                                       "/outcome",           "/outcome", "/result",       "/result",       "size"};
  (void)state;
  for (size_t i = 0; i < 10; i++) requests[i] = good;
  requests[0].expected_revision = 0;
  requests[1].reason = "";
  requests[2].evidence_ref = "with a space";
  requests[3].evidence_ref = NULL;
  requests[4].execution_settled = false;
  requests[5].outcome = ORBIT_UNKNOWN;
  requests[6].outcome = ORBIT_CANCELLED;
  requests[7].result_size = 2; /* "1." */
  requests[8].result = "null", requests[8].result_size = 4;
  requests[9].size = 1;
  struct orbit_client *client = client_of_nothing();
  struct orbit_review_result *result = NULL;
  struct orbit_error error;
  for (size_t i = 0; i < 10; i++) {
    assert_int_equal(orbit_review_task(client, "k", ID, &requests[i], &result, &error), ORBIT_INVALID_ARGUMENT);
    assert_string_equal(error.field, fields[i]);
  }
  assert_int_equal(orbit_review_task(client, NULL, ID, &good, &result, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "operation_key");
  assert_int_equal(orbit_review_task(client, "k", "7", &good, &result, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "task_id");
  assert_int_equal(orbit_review_task(client, "k", ID, &good, &result, &error), ORBIT_NOT_CONNECTED);
  assert_null(result);
  orbit_client_free(client);
}

static void retries_that_are_not_sent(void **state) {
  const struct orbit_retry_request good = retry_of(5);
  struct orbit_retry_request requests[8];
  static const char *const fields[] = {"/expected_revision", "/reason",          "/evidence_ref", "/safe_to_retry",
                                       "/task_timeout_ms",   "/task_timeout_ms", "/available_at", "/start_deadline_at"};
  (void)state;
  for (size_t i = 0; i < 8; i++) requests[i] = good;
  requests[0].expected_revision = 0;
  requests[1].reason = NULL;
  requests[2].evidence_ref = "tab\there";
  requests[3].safe_to_retry = false;
  requests[4].task_timeout_ms = 0;
  requests[5].task_timeout_ms = 2592000001;
  requests[6].available_at = 1;
  requests[7].start_deadline_at = INT64_MAX;
  struct orbit_client *client = client_of_nothing();
  struct orbit_retry_result *result = NULL;
  struct orbit_error error;
  for (size_t i = 0; i < 8; i++) {
    assert_int_equal(orbit_retry_task(client, "k", ID, &requests[i], &result, &error), ORBIT_INVALID_ARGUMENT);
    assert_string_equal(error.field, fields[i]);
  }
  assert_int_equal(orbit_retry_task(client, "k", ID, &good, &result, &error), ORBIT_NOT_CONNECTED);
  assert_null(result);
  orbit_client_free(client);
}

static void filters_that_are_not_sent(void **state) {
  struct orbit_task_filter filters[6] = {ORBIT_TASK_FILTER_INIT, ORBIT_TASK_FILTER_INIT, ORBIT_TASK_FILTER_INIT,
                                         ORBIT_TASK_FILTER_INIT, ORBIT_TASK_FILTER_INIT, ORBIT_TASK_FILTER_INIT};
  static const char *const fields[] = {"queue_id", "state", "handler", "business_key", "created_after", "created_before"};
  (void)state;
  filters[0].queue_id = "7";
  filters[1].state = 99;
  filters[2].handler = "with a space";
  filters[3].business_key = "";
  filters[4].created_after = 1;
  filters[5].created_before = -1;
  struct orbit_client *client = client_of_nothing();
  struct orbit_task_list *list = NULL;
  struct orbit_error error;
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(orbit_list_tasks(client, &filters[i], 0, NULL, &list, &error), ORBIT_INVALID_ARGUMENT);
    assert_string_equal(error.field, fields[i]);
  }
  assert_int_equal(orbit_list_tasks(client, NULL, 101, NULL, &list, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "limit");
  assert_int_equal(orbit_list_tasks(client, NULL, 0, "", &list, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "cursor");
  assert_int_equal(orbit_list_tasks(client, NULL, 100, NULL, &list, &error), ORBIT_NOT_CONNECTED);
  assert_null(list);
  orbit_client_free(client);
}

/* ---- Batches ---- */

static void a_batch_is_answered_item_by_item(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  stage_open(stage, SUCCEED);
  struct orbit_task_request requests[3] = {request_of(stage, "one"), request_of(stage, "two"), request_of(stage, "three")};
  requests[1].queue_id = ID; /* there is no such queue */
  const struct orbit_submission submissions[3] = {{"key-1", &requests[0]}, {"key-2", &requests[1]}, {"key-3", &requests[2]}};
  struct orbit_submission_answer_list *first = NULL, *again = NULL;
  assert_int_equal(orbit_submit_tasks(stage->client, submissions, 3, &first, NULL), ORBIT_OK);
  assert_int_equal(first->count, 3);
  for (size_t i = 0; i < 3; i += 2) {
    assert_int_equal(first->items[i]->http_status, 201);
    assert_int_equal(first->items[i]->error.status, ORBIT_OK);
    assert_string_equal(first->items[i]->task->business_key, requests[i].business_key);
    assert_string_equal(first->items[i]->task->payload, payload);
    assert_int_equal(first->items[i]->task->state, ORBIT_TASK_WAITING);
    assert_false(first->items[i]->task->deduplicated);
  }
  assert_int_equal(first->items[1]->http_status, 404);
  assert_null(first->items[1]->task);
  expect_refusal(&first->items[1]->error, 404, "NOT_FOUND");
  /* The same again: what was accepted is known, what was refused has left nothing behind. */
  requests[1].queue_id = requests[0].queue_id;
  assert_int_equal(orbit_submit_tasks(stage->client, submissions, 3, &again, NULL), ORBIT_OK);
  assert_int_equal(again->items[0]->http_status, 200);
  assert_true(again->items[0]->task->deduplicated);
  assert_string_equal(again->items[0]->task->id, first->items[0]->task->id);
  assert_int_equal(again->items[1]->http_status, 201);
  orbit_submission_answer_list_free(again);
  /* Another content under a key of the batch. */
  requests[2].priority = 1;
  assert_int_equal(orbit_submit_tasks(stage->client, &submissions[2], 1, &again, NULL), ORBIT_OK);
  expect_refusal(&again->items[0]->error, 409, "IDEMPOTENCY_CONFLICT");
  orbit_submission_answer_list_free(again);
  orbit_submission_answer_list_free(first);
  stage_down(stage);
}

static void batches_that_are_not_sent(void **state) {
  (void)state;
  struct stage stage = {.credentials = &(struct orbit_credentials){.queue_id = ID}};
  struct orbit_task_request good = request_of(&stage, NULL), bad = good, large = good;
  char *text = malloc(250000);
  assert_non_null(text);
  memset(text, 'x', 250000);
  text[0] = text[249999] = '"';
  bad.payload_size = 3;
  large.payload = text;
  large.payload_size = 250000;
  const struct orbit_submission second_is_bad[] = {{"a", &good}, {"b", &bad}};
  const struct orbit_submission has_no_key[] = {{"a", &good}, {"b", &good}, {NULL, &good}};
  const struct orbit_submission has_no_request[] = {{"a", NULL}};
  struct orbit_submission too_large[17], too_many[1001];
  for (size_t i = 0; i < 17; i++) too_large[i] = (struct orbit_submission){"a", &large};
  for (size_t i = 0; i < 1001; i++) too_many[i] = (struct orbit_submission){"a", &good};
  const struct {
    const struct orbit_submission *submissions;
    size_t count;
    int status;
    const char *field;
  } cases[] = {
      {second_is_bad, 2, ORBIT_INVALID_ARGUMENT, "/items/1/payload"},
      {has_no_key, 3, ORBIT_INVALID_ARGUMENT, "/items/2/operation_key"},
      {has_no_request, 1, ORBIT_INVALID_ARGUMENT, "/items/0"},
      {second_is_bad, 0, ORBIT_INVALID_ARGUMENT, "submissions"},
      {NULL, 1, ORBIT_INVALID_ARGUMENT, "submissions"},
      {too_many, 1001, ORBIT_INVALID_ARGUMENT, "submissions"},
      {too_many, 1000, ORBIT_NOT_CONNECTED, ""},
      {too_large, 17, ORBIT_INVALID_ARGUMENT, "submissions"},
      {too_large, 16, ORBIT_NOT_CONNECTED, ""},
  };
  struct orbit_client *client = client_of_nothing();
  struct orbit_submission_answer_list *answers = NULL;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct orbit_error error;
    assert_int_equal(orbit_submit_tasks(client, cases[i].submissions, cases[i].count, &answers, &error), cases[i].status);
    assert_string_equal(error.field, cases[i].field);
  }
  assert_null(answers);
  orbit_client_free(client);
  free(text);
}

/* ---- Lists ---- */

static void expect_found(struct stage *stage, const struct orbit_task_filter *filter, const char *const *keys) {
  struct orbit_task_list *list = NULL;
  assert_int_equal(orbit_list_tasks(stage->client, filter, 0, NULL, &list, NULL), ORBIT_OK);
  size_t count = 0;
  for (; keys[count] != NULL; count++) {
    assert_true(count < list->count);
    assert_string_equal(list->items[count]->business_key, keys[count]);
    assert_null(list->items[count]->payload);
    assert_int_equal(list->items[count]->json[0], '{');
  }
  assert_int_equal(list->count, count);
  assert_null(list->next_cursor);
  orbit_task_list_free(list);
}

static void every_filter_finds_what_it_says(void **state) {
  static const char strange[] = "ключ & a=b%20+?#";
  (void)state;
  struct stage *stage = stage_new();
  stage_open(stage, SUCCEED);
  struct orbit_task *tasks[3];
  const char *const business_keys[] = {"one", "two", strange}, *const keys[] = {"1", "2", "3"};
  for (size_t i = 0; i < 3; i++) {
    struct orbit_task_request request = request_of(stage, business_keys[i]);
    if (i == 1) request.handler = "other";
    assert_int_equal(orbit_submit_task(stage->client, keys[i], &request, &tasks[i], NULL), ORBIT_OK);
  }
  struct orbit_task *cancelled = NULL;
  assert_int_equal(orbit_cancel_task(stage->client, "c", tasks[1]->id, "no longer needed", 1, &cancelled, NULL), ORBIT_OK);
  assert_int_equal(cancelled->state, ORBIT_TASK_CANCELLED);
  assert_true(cancelled->applied);
  assert_int_equal(strlen(cancelled->audit_id), 32);
  orbit_task_free(cancelled);

  struct orbit_task_filter filters[9];
  for (size_t i = 0; i < 9; i++) filters[i] = (struct orbit_task_filter)ORBIT_TASK_FILTER_INIT;
  filters[1].queue_id = stage->credentials->queue_id;
  filters[2].state = ORBIT_TASK_CANCELLED;
  filters[3].state = ORBIT_TASK_WAITING;
  filters[4].handler = "other";
  filters[5].business_key = strange;
  filters[6].created_after = tasks[0]->created_at;
  filters[7].created_before = tasks[2]->created_at;
  filters[8] = filters[6];
  filters[8].created_before = filters[7].created_before;
  const char *const found[9][4] = {
      {strange, "two", "one"}, {strange, "two", "one"}, {"two"}, {strange, "one"}, {"two"}, {strange},
      {strange, "two"},        {"two", "one"},          {"two"}};
  for (size_t i = 0; i < 9; i++) expect_found(stage, &filters[i], found[i]);
  expect_found(stage, NULL, found[0]);

  /* Page by page. */
  struct orbit_task_list *list = NULL;
  char *cursor = NULL;
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(orbit_list_tasks(stage->client, NULL, 1, cursor, &list, NULL), ORBIT_OK);
    assert_int_equal(list->count, 1);
    assert_string_equal(list->items[0]->id, tasks[2 - i]->id);
    free(cursor);
    cursor = list->next_cursor != NULL ? strdup(list->next_cursor) : NULL;
    assert_int_equal(cursor == NULL, i == 2);
    orbit_task_list_free(list);
  }
  for (size_t i = 0; i < 3; i++) orbit_task_free(tasks[i]);
  stage_down(stage);
}

/* ---- Review and retry ---- */

static void in_doubt(struct stage *stage, char id[ORBIT_ID_SIZE]) {
  stage_up(stage, SAY_NOTHING, false);
  submit(stage, 0, id);
  wait_for(task_is(stage, id, ORBIT_TASK_NEEDS_REVIEW));
  drain(stage, 1, 1);
}

/* Review of `id` as request says, twice: done once. The audit id to ret_audit_id. */
static void review_twice(struct stage *stage, const char *id, const struct orbit_review_request *request,
                         char ret_audit_id[ORBIT_ID_SIZE]) {
  struct orbit_review_result *result = NULL;
  for (int repeat = 0; repeat < 2; repeat++) {
    assert_int_equal(orbit_review_task(stage->client, "review", id, request, &result, NULL), ORBIT_OK);
    assert_string_equal(result->task->id, id);
    assert_int_equal(result->task->state, ORBIT_TASK_FAILED);
    assert_int_equal(result->task->revision, 5);
    assert_false(result->task->effect_uncertain);
    assert_string_equal(result->task->result, "{\"confirmed\":true,\"sequence\":9007199254740993}");
    assert_int_equal(result->deduplicated, repeat);
    assert_memory_equal(result->json, "{\"task\":", 8);
    if (repeat == 1) assert_string_equal(result->audit_id, ret_audit_id);
    (void)snprintf(ret_audit_id, ORBIT_ID_SIZE, "%s", result->audit_id);
    orbit_review_result_free(result);
  }
}

static void a_task_in_doubt_is_reviewed_once(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  struct orbit_review_result *result = NULL;
  struct orbit_error error;
  char id[ORBIT_ID_SIZE], audit_id[ORBIT_ID_SIZE];
  in_doubt(stage, id);
  struct orbit_review_request request = review_of("{ \"confirmed\": true, \"sequence\": 9007199254740993 }");
  request.expected_revision = 3;
  assert_int_equal(orbit_review_task(stage->client, "review", id, &request, &result, &error), ORBIT_REFUSED);
  expect_refusal(&error, 409, "STATE_CONFLICT");
  request.expected_revision = 4;
  request.reason = " \t ";
  assert_int_equal(orbit_review_task(stage->client, "review", id, &request, &result, &error), ORBIT_REFUSED);
  expect_refusal(&error, 400, "INVALID_ARGUMENT");
  assert_string_equal(error.field, "/reason");
  request.reason = review_of("1").reason;
  review_twice(stage, id, &request, audit_id);
  request.outcome = ORBIT_SUCCEEDED;
  assert_int_equal(orbit_review_task(stage->client, "review", id, &request, &result, &error), ORBIT_REFUSED);
  expect_refusal(&error, 409, "IDEMPOTENCY_CONFLICT");
  assert_int_equal(orbit_review_task(stage->client, "another", id, &request, &result, &error), ORBIT_REFUSED);
  expect_refusal(&error, 409, "STATE_CONFLICT");
  assert_int_equal(orbit_review_task(stage->client, "review", ID, &request, &result, &error), ORBIT_REFUSED);
  expect_refusal(&error, 404, "NOT_FOUND");
  assert_null(result);
  assert_true(task_is(stage, id, ORBIT_TASK_FAILED));

  /* What the audit says of it. */
  struct orbit_operation *operation = NULL;
  assert_int_equal(orbit_get_task_operation(stage->client, id, audit_id, &operation, NULL), ORBIT_OK);
  assert_string_equal(operation->id, audit_id);
  assert_string_equal(operation->task_id, id);
  assert_string_equal(operation->action, "task.review");
  assert_string_equal(operation->reason, request.reason);
  assert_string_equal(operation->evidence_ref, request.evidence_ref);
  assert_string_equal(operation->before, "{\"state\":\"NEEDS_REVIEW\",\"revision\":\"4\"}");
  assert_non_null(strstr(operation->after, "\"execution_settled\":true"));
  assert_true(operation->created_at > 0);
  orbit_operation_free(operation);
  assert_int_equal(orbit_get_task_operation(stage->client, id, ID, &operation, &error), ORBIT_REFUSED);
  expect_refusal(&error, 404, "NOT_FOUND");
  stage_down(stage);
}

static void a_failed_task_is_retried_by_hand_once(void **state) {
  (void)state;
  struct stage *stage = stage_new();
  struct orbit_retry_result *result = NULL;
  struct orbit_error error;
  char id[ORBIT_ID_SIZE], next_id[ORBIT_ID_SIZE] = "", audit_id[ORBIT_ID_SIZE] = "";
  stage_up(stage, FAIL_FOR_GOOD, false);
  submit(stage, 0, id);
  wait_for(task_is(stage, id, ORBIT_TASK_FAILED));
  drain(stage, 1, 1);
  struct orbit_retry_request request = retry_of(3);
  assert_int_equal(orbit_retry_task(stage->client, "retry", id, &request, &result, &error), ORBIT_REFUSED);
  expect_refusal(&error, 409, "STATE_CONFLICT");
  request.expected_revision = 4;
  for (int repeat = 0; repeat < 2; repeat++) {
    assert_int_equal(orbit_retry_task(stage->client, "retry", id, &request, &result, NULL), ORBIT_OK);
    assert_string_equal(result->source_task_id, id);
    assert_string_equal(result->task->retry_of, id);
    assert_int_equal(result->task->state, ORBIT_TASK_WAITING);
    assert_int_equal(result->task->revision, 1);
    assert_string_equal(result->task->payload, payload);
    assert_int_equal(result->task->deadline_at - result->task->created_at, 60000000);
    assert_int_equal(result->deduplicated, repeat);
    if (repeat == 1) assert_string_equal(result->task->id, next_id);
    if (repeat == 1) assert_string_equal(result->audit_id, audit_id);
    (void)snprintf(next_id, sizeof next_id, "%s", result->task->id);
    (void)snprintf(audit_id, sizeof audit_id, "%s", result->audit_id);
    orbit_retry_result_free(result);
    result = NULL;
  }
  assert_int_equal(orbit_retry_task(stage->client, "another", id, &request, &result, &error), ORBIT_REFUSED);
  expect_refusal(&error, 409, "STATE_CONFLICT");
  assert_null(result);

  struct orbit_operation *operation = NULL;
  assert_int_equal(orbit_get_task_operation(stage->client, id, audit_id, &operation, NULL), ORBIT_OK);
  assert_string_equal(operation->action, "task.retry");
  assert_non_null(strstr(operation->after, next_id));
  orbit_operation_free(operation);
  struct orbit_task *task = NULL;
  assert_int_equal(orbit_get_task(stage->client, next_id, &task, NULL), ORBIT_OK);
  assert_string_equal(task->retry_of, id);
  assert_null(task->audit_id);
  orbit_task_free(task);
  stage_down(stage);
}

/* ---- Operations and events, page by page ---- */

static void what_was_done_is_read_page_by_page(void **state) {
  static const char *const actions[] = {"task.review", "task.finish", "task.start", "task.lease", "task.accept"};
  (void)state;
  struct stage *stage = stage_new();
  char id[ORBIT_ID_SIZE], audit_id[ORBIT_ID_SIZE];
  in_doubt(stage, id);
  const struct orbit_review_request request = review_of("{\"confirmed\":true,\"sequence\":9007199254740993}");
  review_twice(stage, id, &request, audit_id);

  struct orbit_operation_list *operations = NULL;
  assert_int_equal(orbit_list_task_operations(stage->client, id, 2, NULL, &operations, NULL), ORBIT_OK);
  for (size_t seen = 0; seen < 5;) {
    for (size_t i = 0; i < operations->count; i++, seen++) {
      assert_true(seen < 5);
      assert_string_equal(operations->items[i]->action, actions[seen]);
      assert_string_equal(operations->items[i]->task_id, id);
      assert_null(operations->items[i]->reason);
      assert_null(operations->items[i]->before);
    }
    assert_int_equal(operations->next_cursor == NULL, seen == 5);
    struct orbit_operation_list *next = NULL;
    if (seen < 5)
      assert_int_equal(orbit_list_task_operations(stage->client, id, 2, operations->next_cursor, &next, NULL), ORBIT_OK);
    orbit_operation_list_free(operations);
    operations = next;
  }

  struct orbit_event_list *events = NULL, *all = NULL;
  assert_int_equal(orbit_list_task_events(stage->client, id, 0, NULL, &all, NULL), ORBIT_OK);
  assert_null(all->next_cursor);
  assert_string_equal(all->items[0]->type, "task.accepted");
  assert_int_equal(all->items[0]->revision, 1);
  assert_string_equal(all->items[0]->task_id, id);
  assert_string_equal(all->items[0]->queue_id, stage->credentials->queue_id);
  assert_non_null(strstr(all->items[0]->data, payload));
  bool reviewed = false;
  for (size_t i = 1; i < all->count; i++) {
    assert_true(all->items[i]->position > all->items[i - 1]->position && all->items[i]->time >= all->items[i - 1]->time);
    reviewed = reviewed || strcmp(all->items[i]->type, "task.reviewed") == 0;
  }
  assert_true(reviewed);
  assert_int_equal(orbit_list_task_events(stage->client, id, 3, NULL, &events, NULL), ORBIT_OK);
  assert_int_equal(events->count, 3);
  struct orbit_event_list *next = NULL;
  assert_int_equal(orbit_list_task_events(stage->client, id, 3, events->next_cursor, &next, NULL), ORBIT_OK);
  assert_int_equal(next->items[0]->position, all->items[3]->position);
  assert_string_equal(next->items[0]->json, all->items[3]->json);
  orbit_event_list_free(next);
  orbit_event_list_free(events);
  orbit_event_list_free(all);
  struct orbit_error error;
  assert_int_equal(orbit_list_task_events(stage->client, ID, 0, NULL, &events, &error), ORBIT_REFUSED);
  expect_refusal(&error, 404, "NOT_FOUND");
  stage_down(stage);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reviews_that_are_not_sent),          cmocka_unit_test(retries_that_are_not_sent),
      cmocka_unit_test(filters_that_are_not_sent),          cmocka_unit_test(batches_that_are_not_sent),
      cmocka_unit_test(a_batch_is_answered_item_by_item),   cmocka_unit_test(every_filter_finds_what_it_says),
      cmocka_unit_test(a_task_in_doubt_is_reviewed_once),   cmocka_unit_test(a_failed_task_is_retried_by_hand_once),
      cmocka_unit_test(what_was_done_is_read_page_by_page),
  };
  stage_run(tests);
}
