/* The routes of the feed and of subscriptions: pages that wait, streams that resume, what a reader may ask for, and the results
 * of a task that a person had to look at. */
#define REPLY_BYTES (256 * 1024)
#include "edge/http_people.h"

static struct reply reply;

/* The number behind the last "next_position":". */
static uint64_t next_position(const struct reply *from) {
  const char *text = reply_text(from, "next_position");
  assert_non_null(text);
  return strtoull(text, NULL, 10);
}

static void feed_get(struct server *server, const char *token, const char *query) {
  char target[512];
  (void)snprintf(target, sizeof target, "/v1/events%s", query);
  client_read(&server->fixture, token, target, &reply);
}

static uint64_t end_of_log(struct server *server) { return engine_position(server->fixture.edge.engine); }

/* ---- Pages ---- */

static void pages_go_on_behind_each_other(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], query[128];
  uint64_t after = 0, last = 0;
  unsigned seen = 0;
  for (unsigned i = 0; i < 7; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "k%u", i);
    submit_task(server, key, id);
  }
  for (unsigned page = 0; page < 12; page++) {
    (void)snprintf(query, sizeof query, "?types=task.accepted&limit=2&after=%llu", (unsigned long long)after);
    feed_get(server, TOKEN_PEOPLE, query);
    assert_int_equal(reply.status, 200);
    seen += count_of(&reply, "\"type\":\"task.accepted\"");
    assert_true(next_position(&reply) >= after);
    last = after;
    after = next_position(&reply);
  }
  assert_int_equal(seen, 7);
  assert_true(after == end_of_log(server) && last == after);
  assert_int_equal(count_of(&reply, "\"items\":[]"), 1);
}

/* A page over what is filtered out still moves on. */
static void what_is_passed_over_is_not_looked_at_again(void **state) {
  struct server *server = *state;
  char id[id_chars + 1];
  submit_task(server, "a", id);
  feed_get(server, TOKEN_PEOPLE, "?types=task.reviewed");
  assert_int_equal(next_position(&reply), end_of_log(server));
  feed_get(server, TOKEN_PEOPLE_B, ""); /* nothing of queue A; queue B was made */
  assert_int_equal(count_of(&reply, "\"position\""), 1);
  assert_int_equal(count_of(&reply, "\"type\":\"queue.created\""), 1);
  assert_int_equal(next_position(&reply), end_of_log(server));
  feed_get(server, TOKEN_PEOPLE_OTHER, "");
  assert_int_equal(count_of(&reply, id), 0);
}

struct waiting {
  int fd;
  int64_t since_us;
};

static struct waiting wait_for(struct server *server, const char *token, const char *query) {
  char text[1024];
  struct waiting waiting = {client_connect(&server->fixture), clock_monotonic_us()};
  (void)snprintf(text, sizeof text, "GET /v1/events?%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", query, token);
  client_send_text(waiting.fd, text);
  return waiting;
}

static void a_page_waits_for_its_first_event(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], query[128];
  (void)snprintf(query, sizeof query, "wait_ms=9000&types=task.accepted&after=%llu", (unsigned long long)end_of_log(server));
  struct waiting waiting = wait_for(server, TOKEN_PEOPLE, query);
  struct waiting stranger = wait_for(server, TOKEN_PEOPLE_OTHER, "wait_ms=300&types=task.accepted");
  submit_task(server, "a", id);
  client_receive(waiting.fd, &reply);
  reply_check(&reply);
  assert_int_equal(reply.status, 200);
  assert_string_equal(reply_text(&reply, "task_id"), id);
  client_receive(stranger.fd, &reply); /* its time is over, and it has seen nothing of it */
  assert_int_equal(reply.status, 200);
  assert_int_equal(count_of(&reply, "\"items\":[]"), 1);
  assert_true(clock_monotonic_us() - stranger.since_us >= 300000);
  assert_int_equal(next_position(&reply), end_of_log(server));
  /* The connection is good for more. */
  client_send_text(waiting.fd, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  client_receive(waiting.fd, &reply);
  assert_int_equal(reply.status, 200);
  guard_close(&waiting.fd), guard_close(&stranger.fd);
}

static void what_a_reader_may_not_ask_for(void **state) {
  struct server *server = *state;
  static const struct {
    const char *query;
    int status;
    const char *field;
  } rows[] = {
      {"?after=-1", 400, "after"},
      {"?after=01", 400, "after"},
      {"?after=x", 400, "after"},
      {"?after=", 400, "after"},
      {"?after=18446744073709551616", 400, "after"},
      {"?after=18446744073709551615", 400, "after"}, /* behind the end */
      {"?after=1&after=2", 400, "after"},
      {"?types=", 400, "types"},
      {"?types=task.unknown", 400, "types"},
      {"?types=task.failed,", 400, "types"},
      {"?types=task.failed,task.failed", 400, "types"},
      {"?types=audit.recorded", 400, "types"},
      {"?types=credential.created", 400, "types"},
      {"?types=subscription.acked", 400, "types"},
      {"?types=node.started", 400, "types"},
      {"?queue_id=1", 400, "queue_id"},
      {"?queue_id=00000000000000000000000000000000", 400, "queue_id"},
      {"?queue_id=" QUEUE_C, 404, "queue_id"},
      {"?task_id=zz", 400, "task_id"},
      {"?task_id=" QUEUE_A, 404, "task_id"},
      {"?limit=0", 400, "limit"},
      {"?limit=101", 400, "limit"},
      {"?wait_ms=30001", 400, "wait_ms"},
      {"?wait_ms=-1", 400, "wait_ms"},
      {"?cursor=abc", 400, "cursor"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    feed_get(server, TOKEN_PEOPLE, rows[i].query);
    if (reply.status != rows[i].status) fail_msg("%s: %d %s", rows[i].query, reply.status, reply_body(&reply));
    expect_refusal(&reply, rows[i].status, rows[i].status == 404 ? "NOT_FOUND" : "INVALID_ARGUMENT", rows[i].field);
  }
  static const char *const ids[] = {
      "", "x", "1x", "-1", "01", " ", "18446744073709551616", "999999999999", "1\r\nLast-Event-ID: 1"};
  static const char *const forms[] = {"application/json", "text/event-stream"};
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
    for (size_t form = 0; form < 2; form++) {
      char text[512];
      (void)snprintf(text, sizeof text,
                     "GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN_PEOPLE
                     "\r\nAccept: %s\r\nLast-Event-ID: %s\r\n\r\n",
                     forms[form], ids[i]);
      client_exchange(&server->fixture, text, &reply);
      reply_check(&reply);
      expect_refusal(&reply, 400, "INVALID_ARGUMENT", "Last-Event-ID");
    }
  feed_get(server, TOKEN_ALL, ""); /* lacks events:read */
  expect_refusal(&reply, 403, "PERMISSION_DENIED", NULL);
}

/* ---- Streams ---- */

struct stream {
  int fd;
  char text[128 * 1024]; /* what came, without chunk sizes */
  size_t size;
};

static void stream_open(struct server *server, struct stream *stream, const char *token, const char *query,
                        const char *last_id) {
  char text[1024];
  struct reply head;
  (void)snprintf(text, sizeof text,
                 "GET /v1/events?%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n%s%s%s\r\n",
                 query, token, last_id != NULL ? "Last-Event-ID: " : "", last_id != NULL ? last_id : "",
                 last_id != NULL ? "\r\n" : "");
  stream->fd = client_connect(&server->fixture);
  stream->size = 0;
  stream->text[0] = '\0';
  client_send_text(stream->fd, text);
  memset(&head, 0, offsetof(struct reply, text));
  assert_true(client_receive_head(stream->fd, &head));
  assert_int_equal(strncmp(head.text, "HTTP/1.1 200", 12), 0);
  assert_string_equal(reply_header(&head, "Content-Type"), "text/event-stream");
  assert_string_equal(reply_header(&head, "Cache-Control"), "no-store");
  assert_non_null(reply_header(&head, "X-Request-Id"));
  assert_string_equal(reply_header(&head, "Transfer-Encoding"), "chunked");
}

/* One chunk more; false at the end of the stream. */
static bool stream_chunk(struct stream *stream) {
  char line[32];
  size_t length = 0;
  while (length < sizeof line - 1 && client_read_byte(stream->fd, &line[length]) && line[length++] != '\n') continue;
  line[length] = '\0';
  size_t size = strtoul(line, NULL, 16);
  assert_true(stream->size + size < sizeof stream->text);
  for (size_t i = 0; i < size + 2; i++) {
    char byte;
    if (!client_read_byte(stream->fd, &byte)) return false;
    if (i < size) stream->text[stream->size++] = byte;
  }
  stream->text[stream->size] = '\0';
  return size != 0;
}

static void stream_until(struct stream *stream, const char *text) {
  while (strstr(stream->text, text) == NULL)
    if (!stream_chunk(stream)) fail_msg("the stream ended before \"%s\": %s", text, stream->text);
}

static void a_stream_goes_on_and_resumes(void **state) {
  struct server *server = *state;
  struct stream *stream = guard_calloc(1, sizeof *stream), *again = guard_calloc(1, sizeof *again);
  char first[id_chars + 1], second[id_chars + 1], third[id_chars + 1], last_id[32];
  submit_task(server, "a", first);
  stream_open(server, stream, TOKEN_PEOPLE, "types=task.accepted", NULL);
  stream_until(stream, first);
  submit_task(server, "b", second);
  stream_until(stream, second);
  stream_until(stream, "}}\n\n");
  const char *id = strstr(stream->text, "id: ");
  assert_non_null(id);
  (void)snprintf(last_id, sizeof last_id, "%.*s", (int)strcspn(id + 4, "\n"), id + 4);
  guard_close(&stream->fd); /* cut off behind the first, as far as it says */
  submit_task(server, "c", third);
  stream_open(server, again, TOKEN_PEOPLE, "types=task.accepted&after=0", last_id);
  stream_until(again, third);
  assert_null(strstr(again->text, first));
  assert_true(strstr(again->text, second) < strstr(again->text, third));
  assert_int_equal(strncmp(again->text, "retry: 1000\n\nid: ", 17), 0);
  guard_close(&again->fd);
  free(stream), free(again);
}

/* ---- A task in doubt: its result is frozen, and the reviewed one follows with a higher revision ---- */

#define REVIEW                                                                                                          \
  "{\"expected_revision\":\"4\",\"reason\":\"looked\",\"evidence_ref\":\"e:1\",\"execution_settled\":true,\"outcome\":" \
  "\"SUCCEEDED\","                                                                                                      \
  "\"result\":{\"found\":9007199254740993}}"

static void a_review_follows_the_frozen_result(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], query[160], before[4096], position[32];
  worker_hello(server, "h", "1");
  submit_task(server, "doubt", id);
  (void)worker_run(server, OUTCOME_UNKNOWN, false);
  worker_bye(server);
  (void)snprintf(query, sizeof query,
                 "?types=task.succeeded,task.failed,task.cancelled,task.review_required,task.reviewed&task_id=%s", id);
  feed_get(server, TOKEN_PEOPLE, query);
  assert_int_equal(count_of(&reply, "\"position\""), 1);
  assert_string_equal(reply_text(&reply, "type"), "task.review_required");
  assert_int_equal(count_of(&reply, "\"revision\":\"4\",\"data\":"), 1);
  assert_int_equal(count_of(&reply, "\"error\":{\"code\":\"BUSY\"}"), 1);
  text_keep(position, sizeof position, reply_text(&reply, "next_position"));
  text_keep(before, sizeof before, strstr(reply_body(&reply), "\"items\":["));
  *strstr(before, "],\"next_position\"") = '\0'; /* the item alone */

  client_post(&server->fixture, TOKEN_PEOPLE, "review", task_target(id, ":review").text, REVIEW, &reply);
  assert_int_equal(reply.status, 200);
  feed_get(server, TOKEN_PEOPLE, query);
  assert_int_equal(count_of(&reply, "\"position\""), 2);
  assert_int_equal(count_of(&reply, before), 1); /* byte for byte what it was */
  assert_int_equal(count_of(&reply, "\"type\":\"task.reviewed\""), 1);
  assert_int_equal(count_of(&reply, "\"revision\":\"5\",\"data\":"), 1);
  assert_int_equal(count_of(&reply, "\"result\":{\"found\":9007199254740993}"), 1);
  server_restart(server);
  feed_get(server, TOKEN_PEOPLE, query);
  assert_int_equal(count_of(&reply, before), 1);
  size_t length = strlen(query);
  (void)snprintf(query + length, sizeof query - length, "&after=%s", position);
  feed_get(server, TOKEN_PEOPLE, query);
  assert_int_equal(count_of(&reply, "\"position\""), 1);
  assert_string_equal(reply_text(&reply, "type"), "task.reviewed");
}

/* ---- Subscriptions ---- */

static void subscription_target(char out[128], const char *id, const char *rest) {
  (void)snprintf(out, 128, "/v1/subscriptions/%s%s", id, rest);
}

static void a_subscription_is_read_acknowledged_and_deleted(void **state) {
  struct server *server = *state;
  char id[id_chars + 1], task[id_chars + 1], target[128], body[64], position[32];
  client_post(&server->fixture, TOKEN_PEOPLE, "s", "/v1/subscriptions",
              "{\"name\":\"r\u00e9sum\u00e9\",\"types\":[\"task.accepted\"],\"queue_id\":\"" QUEUE_A "\",\"from\":\"latest\"}",
              &reply);
  assert_int_equal(reply.status, 201);
  text_keep(id, sizeof id, reply_text(&reply, "id"));
  submit_task(server, "a", task);
  subscription_target(target, id, "/events?wait_ms=5000");
  for (unsigned i = 0; i < 2; i++) { /* reading moves nothing: two readers see the same */
    client_read(&server->fixture, i == 0 ? TOKEN_PEOPLE : TOKEN_PEOPLE, target, &reply);
    assert_string_equal(reply_text(&reply, "task_id"), task);
  }
  text_keep(position, sizeof position, reply_text(&reply, "next_position"));
  (void)snprintf(body, sizeof body, "{\"position\":\"%s\"}", position);
  subscription_target(target, id, ":ack");
  client_post(&server->fixture, TOKEN_PEOPLE, "ack", target, body, &reply);
  assert_int_equal(reply.status, 200);
  assert_string_equal(reply_text(&reply, "position"), position);
  server_restart(server);
  subscription_target(target, id, "/events");
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
  assert_int_equal(count_of(&reply, "\"items\":[]"), 1);
  subscription_target(target, id, "");
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
  assert_string_equal(reply_text(&reply, "name"), "r\u00e9sum\u00e9");
  assert_string_equal(reply_text(&reply, "position"), position);
  assert_int_equal(count_of(&reply, "\"lag\":"), 1);
  static const char *const strangers[] = {TOKEN_PEOPLE_OTHER, TOKEN_PEOPLE_B};
  for (size_t i = 0; i < 2; i++) {
    client_read(&server->fixture, strangers[i], target, &reply);
    expect_code(&reply, 404, "NOT_FOUND");
    client_read(&server->fixture, strangers[i], "/v1/subscriptions", &reply);
    assert_int_equal(count_of(&reply, "\"items\":[]"), 1);
  }
  subscription_target(target, id, ":delete");
  client_post(&server->fixture, TOKEN_PEOPLE, "end", target, "{}", &reply);
  assert_int_equal(reply.status, 200);
  client_post(&server->fixture, TOKEN_PEOPLE, "end", target, "{}", &reply); /* a repeat */
  assert_int_equal(reply.status, 200);
  subscription_target(target, id, "/events");
  client_read(&server->fixture, TOKEN_PEOPLE, target, &reply);
  expect_code(&reply, 404, "NOT_FOUND");
}

static void what_a_subscription_may_not_be(void **state) {
  struct server *server = *state;
  static const struct {
    const char *body;
    int status;
    const char *field;
  } rows[] = {
      {"{\"from\":\"latest\"}", 400, "/name"},
      {"{\"name\":\"\",\"from\":\"latest\"}", 400, "/name"},
      {"{\"name\":\"n\"}", 400, "/from"},
      {"{\"name\":\"n\",\"from\":\"now\"}", 400, "/from"},
      {"{\"name\":\"n\",\"from\":\"Latest\"}", 400, "/from"},
      {"{\"name\":\"n\",\"from\":\"01\"}", 400, "/from"},
      {"{\"name\":\"n\",\"from\":5}", 400, "/from"},
      {"{\"name\":\"n\",\"from\":\"99999999\"}", 400, "/from"},
      {"{\"name\":\"n\",\"from\":\"latest\",\"types\":[]}", 400, "/types"},
      {"{\"name\":\"n\",\"from\":\"latest\",\"types\":[\"task.failed\",\"task.none\"]}", 400, "/types/1"},
      {"{\"name\":\"n\",\"from\":\"latest\",\"types\":[\"task.failed\",\"task.failed\"]}", 400, "/types/1"},
      {"{\"name\":\"n\",\"from\":\"latest\",\"types\":[\"credential.created\"]}", 400, "/types/0"},
      {"{\"name\":\"n\",\"from\":\"latest\",\"types\":[1]}", 400, "/types/0"},
      {"{\"name\":\"n\",\"from\":\"latest\",\"types\":null}", 400, "/types"},
      {"{\"name\":\"n\",\"from\":\"latest\",\"queue_id\":\"" QUEUE_C "\"}", 404, "/queue_id"},
      {"{\"name\":\"n\",\"from\":\"latest\",\"task_id\":\"" QUEUE_A "\"}", 404, "/task_id"},
      {"{\"name\":\"n\",\"from\":\"latest\",\"filter\":{}}", 400, "/filter"},
      {"{\"name\":\"n\",\"Name\":\"m\",\"from\":\"latest\"}", 400, "/Name"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    client_post(&server->fixture, TOKEN_PEOPLE, "bad", "/v1/subscriptions", rows[i].body, &reply);
    if (reply.status != rows[i].status) fail_msg("%s: %s", rows[i].body, reply_body(&reply));
    expect_refusal(&reply, rows[i].status, rows[i].status == 404 ? "NOT_FOUND" : "INVALID_ARGUMENT", rows[i].field);
  }
  client_post(&server->fixture, TOKEN_PEOPLE_B, "bad", "/v1/subscriptions", "{\"name\":\"n\",\"from\":\"latest\"}", &reply);
  expect_refusal(&reply, 403, "PERMISSION_DENIED", "/queue_id");
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, server_open, server_close)
  const struct CMUnitTest tests[] = {
      ROW(pages_go_on_behind_each_other),
      ROW(what_is_passed_over_is_not_looked_at_again),
      ROW(a_page_waits_for_its_first_event),
      ROW(what_a_reader_may_not_ask_for),
      ROW(a_stream_goes_on_and_resumes),
      ROW(a_review_follows_the_frozen_result),
      ROW(a_subscription_is_read_acknowledged_and_deleted),
      ROW(what_a_subscription_may_not_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
