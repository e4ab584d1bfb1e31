/* A task submitted over the real interface: one identity is one task, whoever asks, however often, in whatever order, before
 * and after restarts; and what was written comes back as it was written. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server.h"
#include "base/guard.h"
#include "base/time_text.h"
#include "engine/clock.h"
#include "journal/journal.h"

enum { body_bytes = 8192 };

static struct api_server server;
static struct http_reply reply, other;

static int setup(void **state) {
  (void)state;
  http_reply_init(&reply);
  http_reply_init(&other);
  api_server_up(&server);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  http_reply_clear(&reply);
  http_reply_clear(&other);
  int code = server.pid != 0 ? api_server_stop(&server, SIGTERM) : 0; /* a sanitizer speaks here */
  api_server_remove(&server);
  assert_int_equal(code, 0);
  return 0;
}

/* The text with each Q replaced by the queue's id and each ' by ". Valid until the fourth call from here. */
static const char *body_of(const char *text) {
  static char ring[4][body_bytes];
  static unsigned next;
  char *out = ring[next++ % 4];
  size_t size = 0;
  for (; *text != '\0'; text++) {
    assert_true(size < body_bytes - 40);
    if (*text == 'Q') {
      memcpy(out + size, server.queue_id, id_chars);
      size += id_chars;
      continue;
    }
    out[size++] = *text == '\'' ? '"' : *text;
  }
  out[size] = '\0';
  return out;
}

static void submit(const char *key, const char *text, struct http_reply *to) {
  http_post(&server, server.token, "/v1/tasks", key, body_of(text), to);
}

static const char plain[] =
    "{'queue_id':'Q','handler':'text.normalize','handler_version':'v1','payload_version':'v1',"
    "'payload':{'b':[1,2],'a':'x'},'task_timeout_ms':60000}";

/* ---- One identity ---- */

enum { crowd_size = 64 };

struct member {
  pthread_t thread;
  int fd;
  struct http_reply reply;
};

static pthread_barrier_t gate;
static char crowd_body[body_bytes];

static void *submit_with_the_others(void *context) {
  struct member *member = context;
  const struct http_request request = {
      .method = "POST", .target = "/v1/tasks", .token = server.token, .key = "crowd", .body = crowd_body};
  (void)pthread_barrier_wait(&gate);
  http_exchange(&server, member->fd, &request, &member->reply);
  return NULL;
}

static void gives_a_crowd_with_one_key_one_task(void **state) {
  (void)state;
  static struct member crowd[crowd_size];
  unsigned created = 0, repeated = 0;
  char id[40] = "";
  (void)snprintf(crowd_body, sizeof crowd_body, "%s", body_of(plain));
  assert_int_equal(pthread_barrier_init(&gate, NULL, crowd_size), 0);
  for (unsigned i = 0; i < crowd_size; i++) {
    http_reply_init(&crowd[i].reply);
    crowd[i].fd = http_connect(&server);
    assert_int_equal(pthread_create(&crowd[i].thread, NULL, submit_with_the_others, &crowd[i]), 0);
  }
  for (unsigned i = 0; i < crowd_size; i++) {
    struct http_reply *answer = &crowd[i].reply;
    assert_int_equal(pthread_join(crowd[i].thread, NULL), 0);
    if (answer->status != 201) http_expect(answer, 200, NULL, NULL);
    created += answer->status == 201;
    repeated += answer->status == 200;
    assert_string_equal(http_text(answer, "data.deduplicated"), answer->status == 201 ? "false" : "true");
    if (i == 0) (void)snprintf(id, sizeof id, "%s", http_text(answer, "data.task.id"));
    assert_string_equal(http_text(answer, "data.task.id"), id);
  }
  assert_int_equal(created, 1);
  assert_int_equal(repeated, crowd_size - 1);
  for (unsigned i = 0; i < crowd_size; i++) {
    struct bytes first = http_value(&crowd[0].reply, "data.task"), this = http_value(&crowd[i].reply, "data.task");
    assert_true(bytes_equal(first, this));
  }
  for (unsigned i = 0; i < crowd_size; i++) {
    guard_close(&crowd[i].fd);
    http_reply_clear(&crowd[i].reply);
  }
  (void)pthread_barrier_destroy(&gate);
}

/* What means the same is the same request. */
static void knows_a_request_however_it_is_written(void **state) {
  (void)state;
  static const char *const rows[] = {
      plain,
      /* another order */
      "{'task_timeout_ms':60000,'payload':{'a':'x','b':[1,2]},'payload_version':'v1','handler_version':'v1','handler':"
      "'text.normalize','queue_id':'Q'}",
      /* white space */
      " {\n\t'queue_id' : 'Q',\r\n 'handler':'text.normalize','handler_version':'v1','payload_version':'v1', 'payload' : { 'b' "
      ": [ 1 , 2 ],"
      " 'a':'x' } ,'task_timeout_ms':60000 } \n",
      /* escapes that spell the same text */
      "{'queue_id':'Q','handler':'text\\u002enormalize','handl\\u0065r_version':'v1','payload_version':'v1',"
      "'payload':{'\\u0062':[1,2],'a':'\\u0078'},'task_timeout_ms':60000}",
      /* defaults spelled out, one by one and all together */
      "{'queue_id':'Q','handler':'text.normalize','handler_version':'v1','payload_version':'v1',"
      "'payload':{'b':[1,2],'a':'x'},'task_timeout_ms':60000,'recovery_safety':'RECONCILE_ONLY'}",
      "{'queue_id':'Q','handler':'text.normalize','handler_version':'v1','payload_version':'v1',"
      "'payload':{'b':[1,2],'a':'x'},'task_timeout_ms':60000,'priority':0}",
      "{'queue_id':'Q','handler':'text.normalize','handler_version':'v1','payload_version':'v1',"
      "'payload':{'b':[1,2],'a':'x'},'task_timeout_ms':60000,'retry':{}}",
      "{'queue_id':'Q','handler':'text.normalize','handler_version':'v1','payload_version':'v1',"
      "'payload':{'b':[1,2],'a':'x'},'task_timeout_ms':60000,'retry':{'attempt_timeout_ms':60000}}",
      "{'recovery_safety':'RECONCILE_ONLY','priority':0,'retry':{'attempt_timeout_ms':60000,'max_delay_ms':0,'initial_delay_ms'"
      ":0,"
      "'max_attempts':1},'queue_id':'Q','handler':'text.normalize','handler_version':'v1','payload_version':'v1',"
      "'payload':{'b':[1,2],'a':'x'},'task_timeout_ms':60000}",
  };
  char id[40] = "";
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    submit("same", rows[i], &reply);
    http_expect(&reply, i == 0 ? 201 : 200, NULL, NULL);
    assert_string_equal(http_text(&reply, "data.deduplicated"), i == 0 ? "false" : "true");
    if (i == 0) (void)snprintf(id, sizeof id, "%s", http_text(&reply, "data.task.id"));
    assert_string_equal(http_text(&reply, "data.task.id"), id);
  }
}

/* Anything else under the same key is refused, and changes nothing. */
static void refuses_other_content_under_the_same_key(void **state) {
  (void)state;
#define START "{'queue_id':'Q','handler':'text.normalize','handler_version':'v1','payload_version':'v1',"
#define PAYLOAD "'payload':{'b':[1,2],'a':'x'}"
  static const char *const rows[] = {
      START "'payload':{'b':[1,2],'a':'y'},'task_timeout_ms':60000}",
      START "'payload':{'b':[2,1],'a':'x'},'task_timeout_ms':60000}",
      START "'payload':{'b':[1,2.0],'a':'x'},'task_timeout_ms':60000}",
      START "'payload':{'b':[1,2],'a':'x','c':null},'task_timeout_ms':60000}",
      START "'payload':{'b':[1,2],'A':'x'},'task_timeout_ms':60000}",
      START PAYLOAD ",'task_timeout_ms':60001}",
      START PAYLOAD ",'task_timeout_ms':60000,'priority':1}",
      START PAYLOAD ",'task_timeout_ms':60000,'recovery_safety':'IDEMPOTENT'}",
      START PAYLOAD ",'task_timeout_ms':60000,'retry':{'max_attempts':2}}",
      START PAYLOAD ",'task_timeout_ms':60000,'retry':{'attempt_timeout_ms':59999}}",
      START PAYLOAD ",'task_timeout_ms':60000,'retry':{'max_delay_ms':1}}",
      START PAYLOAD ",'task_timeout_ms':60000,'business_key':'b'}",
      START PAYLOAD ",'task_timeout_ms':60000,'concurrency_key':'b'}",
      START PAYLOAD ",'task_timeout_ms':60000,'available_at':'2026-01-01T00:00:00Z'}",
      START PAYLOAD ",'task_timeout_ms':60000,'start_deadline_at':'2100-01-01T00:00:00Z'}",
      "{'queue_id':'Q','handler':'text.normaliz','handler_version':'v1','payload_version':'v1'," PAYLOAD
      ",'task_timeout_ms':60000}",
      "{'queue_id':'Q','handler':'text.normalize','handler_version':'v2','payload_version':'v1'," PAYLOAD
      ",'task_timeout_ms':60000}",
      "{'queue_id':'Q','handler':'text.normalize','handler_version':'v1','payload_version':'v2'," PAYLOAD
      ",'task_timeout_ms':60000}",
  };
  submit("mine", plain, &other);
  http_expect(&other, 201, NULL, NULL);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    submit("mine", rows[i], &reply);
    http_expect(&reply, 409, "IDEMPOTENCY_CONFLICT", NULL);
  }
  submit("mine", plain, &reply);
  http_expect(&reply, 200, NULL, NULL);
  assert_true(bytes_equal(http_value(&reply, "data.task"), http_value(&other, "data.task")));
}

/* A refusal leaves nothing behind: its key is free. Keys are texts: every character counts. */
static void keeps_keys_apart(void **state) {
  (void)state;
  static const char *const keys[] = {"a", "A", "aa", "a/", "~", "!", "a%20", "\"", "\\"};
  char ids[9][40], longest[129];
  submit("free", "{'queue_id':'Q','handler':'h'}", &reply);
  http_expect(&reply, 400, "INVALID_ARGUMENT", NULL);
  submit("free", plain, &reply);
  http_expect(&reply, 201, NULL, NULL);
  for (unsigned i = 0; i < 9; i++) {
    submit(keys[i], plain, &reply);
    http_expect(&reply, 201, NULL, NULL);
    (void)snprintf(ids[i], sizeof ids[i], "%s", http_text(&reply, "data.task.id"));
    for (unsigned n = 0; n < i; n++) assert_string_not_equal(ids[i], ids[n]);
  }
  memset(longest, 'k', 128);
  longest[128] = '\0';
  submit(longest, plain, &reply);
  http_expect(&reply, 201, NULL, NULL);
  submit(longest, plain, &reply);
  http_expect(&reply, 200, NULL, NULL);
}

/* ---- The first answer is the answer ---- */

/* The body without its request id, and with deduplicated as a first answer has it. The caller frees. */
static char *without_differences(const struct http_reply *answer) {
  static const char repeated[] = "\"deduplicated\":true", first[] = "\"deduplicated\":false";
  const char *data = strstr(answer->body, "\"data\":");
  assert_non_null(data);
  const char *flag = strstr(data, repeated);
  char *text;
  int size = flag != NULL ? asprintf(&text, "%.*s%s%s", (int)(flag - data), data, first, flag + sizeof repeated - 1)
                          : asprintf(&text, "%s", data);
  assert_true(size > 0);
  return text;
}

static bool has_state(const char *id, const char *wanted) {
  char target[128];
  (void)snprintf(target, sizeof target, "/v1/tasks/%s", id);
  http_get(&server, server.token, target, &other);
  http_expect(&other, 200, NULL, NULL);
  return strcmp(http_text(&other, "data.task.state"), wanted) == 0;
}

static void repeats_the_first_answer_after_the_end(void **state) {
  (void)state;
  static const char brief[] =
      "{'queue_id':'Q','handler':'h','handler_version':'v1','payload_version':'v1','payload':[1.10,'\\u00e9\\ud83d\\ude00'],"
      "'task_timeout_ms':150,'business_key':'caf\\u00e9','retry':{'max_attempts':3}}";
  static const int ends[] = {SIGTERM, SIGKILL};
  submit("brief", brief, &reply);
  http_expect(&reply, 201, NULL, NULL);
  cleanup(guard_free) char *first = without_differences(&reply);
  char id[40];
  (void)snprintf(id, sizeof id, "%s", http_text(&reply, "data.task.id"));
  assert_string_equal(http_text(&reply, "data.task.state"), "WAITING");
  assert_string_equal(http_text(&reply, "data.task.revision"), "1");
  api_wait(has_state(id, "FAILED"));
  assert_string_equal(http_text(&other, "data.task.revision"), "2");
  assert_non_null(http_value(&other, "data.task.completed_at").data);
  for (unsigned i = 0; i < 3; i++) {
    submit("brief", brief, &reply);
    http_expect(&reply, 200, NULL, NULL);
    assert_string_equal(http_text(&reply, "data.deduplicated"), "true");
    cleanup(guard_free) char *again = without_differences(&reply);
    assert_string_equal(again, first);
    if (i == 2) break;
    (void)api_server_stop(&server, ends[i]);
    api_server_start(&server, NULL);
  }
  assert_true(has_state(id, "FAILED"));
}

/* ---- As it was written ---- */

static const char numbers[] =
    "{'max':18446744073709551615,'over':18446744073709551616,'float':9007199254740993,'fraction':1.10,'exponent':1e400,'small':"
    "1E-400,"
    "'zero':-0,'zeros':0.000,'plus':1e+05,'thirty':123456789012345678901234567890,'negative':-12345678901234567890.1234567890e-"
    "77,"
    "'deep':[[[[1.50]]]]}";

struct payload {
  const char *id;
  char *text;
  bool found;
};

static enum status find_payload(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct payload *payload = context;
  (void)record, (void)fault;
  if (event->type != EVENT_task_accepted || strcmp(id_text(&event->stream).text, payload->id) != 0) return STATUS_OK;
  struct bytes text = event->body.task_accepted.payload;
  payload->text = strndup((const char *)text.data, text.size);
  payload->found = true;
  return STATUS_OK;
}

static char *payload_in_the_log(const char *id) {
  struct payload payload = {.id = id};
  const struct journal_options options = {.read_only = true};
  struct journal *journal;
  struct fault fault = {.message = ""};
  assert_int_equal(journal_open(server.data, &options, &journal, &fault), STATUS_OK);
  assert_int_equal(journal_replay(journal, 0, 0, find_payload, &payload, &fault), STATUS_OK);
  journal_close(journal, false);
  assert_true(payload.found);
  return payload.text;
}

static void keeps_numbers_as_they_are_written(void **state) {
  (void)state;
  char text[body_bytes], written[1024], id[40], target[64];
  (void)snprintf(written, sizeof written, "%s", body_of(numbers));
  (void)snprintf(
      text, sizeof text,
      "{'queue_id':'Q','handler':'h','handler_version':'v1','payload_version':'v1','payload':%s,'task_timeout_ms':60000}",
      numbers);
  submit("numbers", text, &reply);
  http_expect(&reply, 201, NULL, NULL);
  assert_true(bytes_equal_text(http_value(&reply, "data.task.payload"), written));
  (void)snprintf(id, sizeof id, "%s", http_text(&reply, "data.task.id"));
  (void)snprintf(target, sizeof target, "/v1/tasks/%s", id);
  for (unsigned i = 0; i < 2; i++) {
    http_get(&server, server.token, target, &reply);
    http_expect(&reply, 200, NULL, NULL);
    assert_true(bytes_equal_text(http_value(&reply, "data.task.payload"), written));
    (void)api_server_stop(&server, i == 0 ? SIGKILL : SIGTERM);
    cleanup(guard_free) char *logged = payload_in_the_log(id);
    assert_string_equal(logged, written);
    if (i == 0) api_server_start(&server, NULL);
  }
}

/* Every JSON value but null is a payload, and comes back byte for byte without its white space. */
static void takes_any_payload(void **state) {
  (void)state;
  static const struct {
    const char *sent, *kept;
  } rows[] = {
      {"0", "0"},
      {"true", "true"},
      {"false", "false"},
      {"''", "\"\""},
      {"[]", "[]"},
      {"{}", "{}"},
      {" [ 1 , [ ] , { } , null ] ", "[1,[],{},null]"},
      {"{'':{'':''}}", "{\"\":{\"\":\"\"}}"},
      {"{'z':1,'a':2}", "{\"z\":1,\"a\":2}"}, /* the order is the writer's */
      {"'  two  spaces '", "\"  two  spaces \""},
      {"'\\u00e9 \\/ \\n'", "\"\\u00e9 \\/ \\n\""}, /* escapes, too */
      {"'\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbf'", "\"\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbf\""},
      {"'\\ud83d\\ude00'", "\"\\ud83d\\ude00\""},
      {"'\x7f'", "\"\x7f\""},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[body_bytes], key[16];
    (void)snprintf(
        text, sizeof text,
        "{'queue_id':'Q','handler':'h','handler_version':'v1','payload_version':'v1','payload':%s,'task_timeout_ms':60000}",
        rows[i].sent);
    (void)snprintf(key, sizeof key, "any-%u", i);
    submit(key, text, &reply);
    http_expect(&reply, 201, NULL, NULL);
    const char *at = strstr(reply.body, "\"payload\":");
    assert_non_null(at);
    assert_int_equal(strncmp(at + 10, rows[i].kept, strlen(rows[i].kept)), 0);
    assert_int_equal(strncmp(at + 10 + strlen(rows[i].kept), ",\"available_at\"", 15), 0);
  }
}

/* The fields of an answer, in their order, and how optional ones are left out. */
static void answers_in_the_order_of_the_contract(void **state) {
  (void)state;
  static const char least[] =
      "\"id\",\"namespace_id\",\"queue_id\",\"state\",\"revision\",\"handler\",\"handler_version\","
      "\"payload_version\",\"payload\",\"available_at\",\"deadline_at\",\"recovery_safety\",\"retry\","
      "\"attempt_count\",\"created_at\",\"updated_at\",";
  static const char most[] =
      "\"id\",\"namespace_id\",\"queue_id\",\"state\",\"revision\",\"handler\",\"handler_version\","
      "\"payload_version\",\"payload\",\"business_key\",\"concurrency_key\",\"priority\",\"available_at\","
      "\"start_deadline_at\",\"deadline_at\",\"recovery_safety\",\"retry\",\"attempt_count\",\"created_at\","
      "\"updated_at\",";
  char later[time_chars_max + 1] = "", text[body_bytes];
  (void)time_format(clock_wall_us() + INT64_C(3600000000), later);
  (void)snprintf(
      text, sizeof text,
      "{'queue_id':'Q','handler':'h','handler_version':'v1','payload_version':'v1','payload':1,'task_timeout_ms':2592000000,"
      "'business_key':'b','concurrency_key':'c','priority':9,'start_deadline_at':'%s'}",
      later);
  for (unsigned i = 0; i < 2; i++) {
    cleanup(buffer_clear) struct buffer names;
    buffer_init(&names, 4096);
    submit(i == 0 ? "least" : "most", i == 0 ? plain : text, &reply);
    http_expect(&reply, 201, NULL, NULL);
    uint32_t data = json_member(&reply.json, 0, "data"), task = json_member(&reply.json, data, "task"), at = task + 1;
    for (uint32_t n = 0; n < reply.json.tokens[task].count; n++, at = reply.json.tokens[at + 1].next) {
      buffer_append_bytes(&names, json_raw(&reply.json, at));
      buffer_append_char(&names, ',');
    }
    assert_true(bytes_equal_text(buffer_bytes(&names), i == 0 ? least : most));
  }
}

/* ---- One connection, many requests ---- */

static void serves_many_requests_on_one_connection(void **state) {
  (void)state;
  cleanup(guard_close) int fd = http_connect(&server);
  for (unsigned i = 0; i < 50; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "line-%u", i);
    const struct http_request submission = {
        .method = "POST", .target = "/v1/tasks", .token = server.token, .key = key, .body = body_of(plain)};
    const struct http_request refused = {.method = "GET", .target = "/v1/tasks/none", .token = server.token};
    http_exchange(&server, fd, &submission, &reply);
    http_expect(&reply, 201, NULL, NULL);
    http_exchange(&server, fd, &refused, &reply);
    http_expect(&reply, 404, "NOT_FOUND", NULL);
    assert_false(reply.ended);
  }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(gives_a_crowd_with_one_key_one_task),
      CASE(knows_a_request_however_it_is_written),
      CASE(refuses_other_content_under_the_same_key),
      CASE(keeps_keys_apart),
      CASE(repeats_the_first_answer_after_the_end),
      CASE(keeps_numbers_as_they_are_written),
      CASE(takes_any_payload),
      CASE(answers_in_the_order_of_the_contract),
      CASE(serves_many_requests_on_one_connection),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
