/* POST /v1/tasks:batch: an answer per item in order, identities shared with the single route, one commit, and bodies that are
 * none. */
#define REPLY_BYTES (4 * 1024 * 1024)
#include "edge/http_people.h"

static struct reply reply;

#define FIELDS(queue, more)                                                                  \
  "\"queue_id\":\"" queue                                                                    \
  "\",\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":{}," \
  "\"task_timeout_ms\":60000" more "}"
#define ITEM(key) "{\"idempotency_key\":\"" key "\"," FIELDS(QUEUE_A, "")
#define ITEM_IN(queue, key) "{\"idempotency_key\":\"" key "\"," FIELDS(queue, "")
#define ITEM_WITH(key, more) "{\"idempotency_key\":\"" key "\"," FIELDS(QUEUE_A, more)

#define TASK(slot, queue)                                                                                               \
  "\"task\":{\"id\":\"" slot "\",\"namespace_id\":\"@i\",\"queue_id\":\"" queue                                         \
  "\",\"state\":\"WAITING\",\"revision\":\"1\","                                                                        \
  "\"handler\":\"h\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":{},\"available_at\":\"@0\","       \
  "\"deadline_at\":\"@t\",\"recovery_safety\":\"RECONCILE_ONLY\",\"retry\":{\"max_attempts\":1,\"initial_delay_ms\":0," \
  "\"max_delay_ms\":0,\"attempt_timeout_ms\":60000},\"attempt_count\":0,\"created_at\":\"@0\",\"updated_at\":\"@0\"}"

static void post_batch(struct server *server, const char *body) {
  client_post(&server->fixture, TOKEN_PEOPLE, "unused", "/v1/tasks:batch", body, &reply);
}

/* Cuts a sentence out, which patterns cannot say. */
static void without_messages(struct reply *from) {
  for (char *at = from->text + from->head_size; (at = strstr(at, "\"message\":\"")) != NULL;) {
    char *end = strchr(at + 11, '"');
    assert_non_null(end);
    memmove(at + 11, end, strlen(end) + 1);
    at += 12;
  }
}

/* Items of every kind in one body; times show one commit (slot 0). */
static void test_items(void **state) {
  struct server *server = *state;
  struct slot_texts seen = {{""}}, again = {{""}};
  static const char body[] =
      "{\"items\":[" ITEM("one") "," ITEM_IN(QUEUE_B, "two") "," ITEM_IN(QUEUE_B, "full") "," ITEM("one") "," ITEM_WITH(
          "one", ",\"priority\":3") "," ITEM_WITH("bad",
                                                  ",\"priority\":10") "," ITEM_IN(QUEUE_C,
                                                                                  "far") ",{" FIELDS(QUEUE_A,
                                                                                                     "") "," ITEM("last") "]}";
  post_batch(server, body);
  without_messages(&reply);
  expect_body(&reply, 200,
              "{\"request_id\":\"@i\",\"data\":{\"items\":["
              "{\"status\":201," TASK("@1", QUEUE_A) ",\"deduplicated\":false},"
              "{\"status\":201," TASK("@2", QUEUE_B) ",\"deduplicated\":false},"
              "{\"status\":429,\"error\":{\"code\":\"QUEUE_FULL\",\"message\":\"\",\"retry_after_ms\":@d}},"
              "{\"status\":200," TASK("@1", QUEUE_A) ",\"deduplicated\":true},"
              "{\"status\":409,\"error\":{\"code\":\"IDEMPOTENCY_CONFLICT\",\"message\":\"\"}},"
              "{\"status\":400,\"error\":{\"code\":\"INVALID_ARGUMENT\",\"message\":\"\",\"field\":\"/items/5/priority\"}},"
              "{\"status\":404,\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"\",\"field\":\"/queue_id\"}},"
              "{\"status\":400,\"error\":{\"code\":\"INVALID_ARGUMENT\",\"message\":\"\",\"field\":\"/items/7/idempotency_key\"}},"
              "{\"status\":201," TASK("@3", QUEUE_A) ",\"deduplicated\":false}]}}",
              &seen);
  assert_true(strcmp(seen.text[1], seen.text[2]) < 0 && strcmp(seen.text[2], seen.text[3]) < 0);
  /* The whole again after a restart: the same tasks, and the item that found no room still finds none. */
  again = seen;
  server_restart(server);
  post_batch(server, body);
  assert_int_equal(count_of(&reply, "\"status\":201"), 0);
  assert_int_equal(count_of(&reply, "\"status\":200"), 4);
  assert_int_equal(count_of(&reply, "\"status\":429"), 1);
  for (unsigned slot = 1; slot <= 3; slot++) assert_non_null(strstr(reply_body(&reply), again.text[slot]));
}

/* An item and a single submission with the same key are the same operation. */
static void test_shared_identity(void **state) {
  struct server *server = *state;
  char id[id_chars + 1];
  submit_task(server, "shared", id);
  post_batch(server, "{\"items\":[" ITEM("shared") "," ITEM("fresh") "]}");
  assert_string_equal(reply_text(&reply, "id"), id);
  assert_int_equal(count_of(&reply, "{\"status\":200,"), 1);
  assert_int_equal(count_of(&reply, "{\"status\":201,"), 1);
  client_submit(&server->fixture, TOKEN_PEOPLE, "fresh", SUBMISSION(QUEUE_A, "{}"), &reply);
  assert_int_equal(reply.status, 200);
  assert_int_equal(count_of(&reply, "\"deduplicated\":true"), 1);
}

static void test_bodies(void **state) {
  static const struct {
    const char *body, *field;
  } cases[] = {
      {"{}", "/items"},
      {"{\"items\":[]}", "/items"},
      {"{\"items\":{}}", "/items"},
      {"{\"items\":null}", "/items"},
      {"{\"items\":[" ITEM("a") "],\"queue_id\":\"" QUEUE_A "\"}", "/queue_id"},
      {"{\"items\":[" ITEM("a") "],\"items\":[]}", "/items"},
      {"{\"items\":[" ITEM("a") "]", NULL},
      {"[]", NULL},
      {"{\"items\":[{\"idempotency_key\":\"a\",\"payload\":{\"x\":1,\"x\":2}}]}", "/items/0/payload/x"},
  };
  struct server *server = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    post_batch(server, cases[i].body);
    expect_refusal(&reply, 400, "INVALID_ARGUMENT", cases[i].field);
  }
  client_post(&server->fixture, TOKEN_READ, "k", "/v1/tasks:batch", "{\"items\":[" ITEM("a") "]}", &reply);
  expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
}

/* What one item may get wrong leaves the next alone. */
static void test_item_refusals(void **state) {
  static const struct {
    const char *item, *field;
  } cases[] = {
      {"1", "/items/0"},
      {"null", "/items/0"},
      {ITEM(""), "/items/0/idempotency_key"},
      {ITEM("a b"), "/items/0/idempotency_key"},
      {ITEM("\xC3\xA4"), "/items/0/idempotency_key"},
      {ITEM_WITH("k", ",\"unknown\":1"), "/items/0/unknown"},
      {ITEM_WITH("k", ",\"Priority\":1"), "/items/0/Priority"},
      {ITEM_WITH("k", ",\"retry\":{\"max_attempts\":0}"), "/items/0/retry/max_attempts"},
      {"{\"idempotency_key\":\"k\"}", "/items/0/queue_id"},
  };
  struct server *server = *state;
  char body[2048], key[16];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    (void)snprintf(key, sizeof key, "good-%zu", i);
    (void)snprintf(body, sizeof body, "{\"items\":[%s,{\"idempotency_key\":\"%s\"," FIELDS(QUEUE_A, "") "]}", cases[i].item,
                   key);
    post_batch(server, body);
    assert_int_equal(reply.status, 200);
    if (count_of(&reply, "{\"status\":400,") != 1 || count_of(&reply, "{\"status\":201,") != 1 ||
        reply_text(&reply, "field") == NULL || strcmp(reply_text(&reply, "field"), cases[i].field) != 0)
      fail_msg("%s: %s", cases[i].item, reply_body(&reply));
  }
}

static void append_items(struct buffer *body, unsigned count, unsigned first, const char *item_end) {
  buffer_reset(body);
  buffer_append_text(body, "{\"items\":[");
  for (unsigned i = 0; i < count; i++)
    buffer_append_format(body, "%s{\"idempotency_key\":\"k-%u\",%s", i > 0 ? "," : "", first + i, item_end);
  buffer_append_text(body, "]}");
  buffer_append_char(body, '\0');
  assert_false(body->failed);
}

static void test_sizes(void **state) {
  struct server *server = *state;
  struct buffer body;
  buffer_init(&body, 2 * http_batch_body_bytes_max);
  append_items(&body, batch_items_max + 1, 0, FIELDS(QUEUE_A, ""));
  post_batch(server, (const char *)body.data);
  expect_refusal(&reply, 400, "INVALID_ARGUMENT", "/items");
  append_items(&body, batch_items_max, 0, FIELDS(QUEUE_A, ""));
  post_batch(server, (const char *)body.data);
  assert_int_equal(reply.status, 200);
  assert_int_equal(count_of(&reply, "{\"status\":201,"), batch_items_max);
  assert_int_equal(count_of(&reply, reply_text(&reply, "created_at")), 3 * batch_items_max); /* one commit, one time */
  /* Exactly 4 MiB, filled up with white space, and one byte more. */
  append_items(&body, 1, 5000, FIELDS(QUEUE_A, ""));
  body.size--;
  while (body.size < http_batch_body_bytes_max) buffer_append_char(&body, ' ');
  buffer_append_char(&body, '\0');
  post_batch(server, (const char *)body.data);
  assert_int_equal(count_of(&reply, "{\"status\":201,"), 1);
  body.size--;
  buffer_append_text(&body, " ");
  buffer_append_char(&body, '\0');
  post_batch(server, (const char *)body.data);
  expect_refusal(&reply, 413, "PAYLOAD_TOO_LARGE", "Content-Length");
  buffer_clear(&body);
}

/* Many large payloads at once come back as they were sent. */
static void test_large_payloads(void **state) {
  enum { items = 15 };
  struct server *server = *state;
  struct buffer body;
  buffer_init(&body, 2 * http_batch_body_bytes_max);
  buffer_append_text(&body, "{\"items\":[");
  for (unsigned i = 0; i < items; i++) {
    buffer_append_format(&body,
                         "%s{\"idempotency_key\":\"k-%u\",\"queue_id\":\"" QUEUE_A
                         "\",\"handler\":\"h\",\"handler_version\":\"1\","
                         "\"payload_version\":\"1\",\"task_timeout_ms\":1,\"payload\":\"",
                         i > 0 ? "," : "", i);
    size_t chars = document_bytes_max - 2 + (i == 1); /* the second is one byte too large */
    for (size_t j = 0; j < chars; j++) buffer_append_char(&body, (char)('a' + i));
    buffer_append_text(&body, "\"}");
  }
  buffer_append_text(&body, "]}");
  buffer_append_char(&body, '\0');
  assert_false(body.failed);
  post_batch(server, (const char *)body.data);
  buffer_clear(&body);
  assert_int_equal(reply.status, 200);
  assert_int_equal(count_of(&reply, "{\"status\":201,"), items - 1);
  assert_string_equal(reply_text(&reply, "field"), "/items/1/payload");
}

/* The header is not used here: none is needed, and none is judged. */
static void test_header(void **state) {
  static const char *const headers[] = {"", "Idempotency-Key: k\r\n", "Idempotency-Key: k\r\nIdempotency-Key: k\r\n",
                                        "Idempotency-Key: a b\r\n"};
  static const char body[] = "{\"items\":[" ITEM("header") "]}";
  struct server *server = *state;
  char text[2048];
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
    (void)snprintf(text, sizeof text,
                   "POST /v1/tasks:batch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_PEOPLE
                   "\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
                   headers[i], sizeof body - 1, body);
    client_exchange(&server->fixture, text, &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(count_of(&reply, i == 0 ? "{\"status\":201," : "{\"status\":200,"), 1);
  }
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_items, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_shared_identity, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_bodies, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_item_refusals, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_sizes, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_large_payloads, server_open, server_close),
      cmocka_unit_test_setup_teardown(test_header, server_open, server_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
