/* What the real interface refuses, with which status, code and field; and that a refusal leaves nothing behind. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server.h"
#include "base/guard.h"
#include "base/time_text.h"
#include "engine/clock.h"

enum { text_bytes = 16384 };

static struct api_server server;
static struct http_reply reply;

/* One server for all cases: refusals change nothing, which the last case checks. */
static int start(void **state) {
  (void)state;
  http_reply_init(&reply);
  api_server_up(&server);
  return 0;
}

static int stop(void **state) {
  (void)state;
  http_reply_clear(&reply);
  api_server_remove(&server);
  return 0;
}

static const char unknown_id[] = "0000018bcfe568000000000000000a01";

/* The text with ' for ", Q for the queue's id, T for the token, A for the admin's, U for an id of nothing. */
static const char *filled(const char *text, bool quotes) {
  static char ring[4][text_bytes];
  static unsigned next;
  char *out = ring[next++ % 4];
  size_t size = 0;
  for (const char *at = text; *at != '\0'; at++) {
    const char *put = NULL;
    if (at[0] == '$' && at[1] == 'Q') put = server.queue_id;
    if (at[0] == '$' && at[1] == 'T') put = server.token;
    if (at[0] == '$' && at[1] == 'A') put = server.admin_token;
    if (at[0] == '$' && at[1] == 'U') put = unknown_id;
    assert_true(size + 256 < text_bytes);
    if (put != NULL) {
      memcpy(out + size, put, strlen(put));
      size += strlen(put);
      at++;
    } else {
      out[size++] = quotes && *at == '\'' ? '"' : *at;
    }
  }
  out[size] = '\0';
  return out;
}

static void submit(const char *body) { http_post(&server, server.token, "/v1/tasks", "refused", body, &reply); }

/* ---- Strict JSON ---- */

#define HEAD "{'queue_id':'$Q','handler':'h','handler_version':'v1','payload_version':'v1','task_timeout_ms':60000,"

static const struct {
  const char *body, *field; /* field NULL: whichever */
} json_rows[] = {
    {"", NULL},
    {" ", NULL},
    {"null", NULL},
    {"[]", NULL},
    {"'x'", NULL},
    {"\xef\xbb\xbf" HEAD "'payload':1}", NULL},
    {HEAD "'payload':1}{}", NULL},
    {HEAD "'payload':1},", NULL},
    {HEAD "'payload':1", NULL},
    {HEAD "'payload':1,}", NULL},
    {HEAD "'payload':[1,]}", "/payload/1"},
    {HEAD "'payload':01}", "/payload"},
    {HEAD "'payload':+1}", "/payload"},
    {HEAD "'payload':.5}", "/payload"},
    {HEAD "'payload':1.}", "/payload"},
    {HEAD "'payload':1e}", "/payload"},
    {HEAD "'payload':NaN}", "/payload"},
    {HEAD "'payload':tru}", "/payload"},
    {HEAD "'payload':{'a':{'b':Infinity}}}", "/payload/a/b"},
    {HEAD "'payload':'\n'}", "/payload"},
    {HEAD "'payload':'\\x'}", "/payload"},
    {HEAD "'payload':'\\u12g4'}", "/payload"},
    /* NUL, however it is written, wherever it stands */
    {HEAD "'payload':'\\u0000'}", "/payload"},
    {HEAD "'payload':{'a':['b','c\\u0000']}}", "/payload/a/1"},
    {HEAD "'payload':{'a\\u0000':1}}", NULL},
    {HEAD "'payload':1,'business_key':'a\\u0000'}", "/business_key"},
    /* surrogates alone, or the wrong way round */
    {HEAD "'payload':'\\ud800'}", "/payload"},
    {HEAD "'payload':'\\udc00'}", "/payload"},
    {HEAD "'payload':'\\ud800x'}", "/payload"},
    {HEAD "'payload':'\\ud800\\ud800'}", "/payload"},
    {HEAD "'payload':'\\udc00\\ud800'}", "/payload"},
    {HEAD "'payload':['a','\\ud83d']}", "/payload/1"},
    {HEAD "'payload':'\xed\xa0\x80'}", "/payload"},
    /* UTF-8 that is overlong, cut, out of range, or none */
    {HEAD "'payload':'\xc0\xaf'}", "/payload"},
    {HEAD "'payload':'\xe0\x80\xaf'}", "/payload"},
    {HEAD "'payload':'\xf0\x80\x80\xaf'}", "/payload"},
    {HEAD "'payload':'\xf4\x90\x80\x80'}", "/payload"},
    {HEAD "'payload':'\xc3'}", "/payload"},
    {HEAD "'payload':'\x80'}", "/payload"},
    {HEAD "'payload':'\xff'}", "/payload"},
    /* duplicates, at any depth, however they are spelled */
    {HEAD "'payload':1,'payload':1}", "/payload"},
    {HEAD "'payload':{'a':1,'a':1}}", "/payload/a"},
    {HEAD "'payload':{'a':1,'\\u0061':1}}", "/payload/a"},
    {HEAD "'payload':{'x':[{'y':{'z':1,'z':2}}]}}", "/payload/x/0/y/z"},
    {HEAD "'payload':{'':1,'':2}}", "/payload/"},
    /* fields that are none */
    {HEAD "'payload':1,'colour':1}", "/colour"},
    {HEAD "'payload':1,'Priority':1}", "/Priority"},
    {HEAD "'payload':1,'QUEUE_ID':'$Q'}", "/QUEUE_ID"},
    {HEAD "'payload':1,'retry':{'attempts':1}}", "/retry/attempts"},
    {HEAD "'payload':1,'retry':{'Max_attempts':1}}", "/retry/Max_attempts"},
    {HEAD "'payload':1,'idempotency_key':'a'}", "/idempotency_key"},
};

static void takes_strict_json_only(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof json_rows / sizeof json_rows[0]; i++) {
    submit(filled(json_rows[i].body, true));
    if (reply.status != 400) fail_msg("row %u (%s): %d", i, json_rows[i].body, reply.status);
    http_expect(&reply, 400, "INVALID_ARGUMENT", json_rows[i].field);
  }
}

/* A zero byte in the body, where a C text would end. */
static void takes_no_zero_byte(void **state) {
  (void)state;
  char body[text_bytes];
  (void)snprintf(body, sizeof body, "%s", filled(HEAD "'payload':'a_b'}", true));
  *strchr(strstr(body, "a_b"), '_') = '\0';
  const struct http_request request = {.method = "POST",
                                       .target = "/v1/tasks",
                                       .token = server.token,
                                       .key = "refused",
                                       .body = body,
                                       .body_size = strlen(filled(HEAD "'payload':'a_b'}", true))};
  http_exchange(&server, -1, &request, &reply);
  http_expect(&reply, 400, "INVALID_ARGUMENT", "/payload");
}

/* 64 levels of a body are taken, 65 are not: arrays and objects alike. */
static void counts_depth(void **state) {
  (void)state;
  static const struct { const char *open, *inner, *close; } rows[] = {{"[", "", "]"}, {"{'a':", "1", "}"}};
  for (unsigned kind = 0; kind < 2; kind++) {
    for (unsigned depth = 64; depth <= 65; depth++) {
      cleanup(buffer_clear) struct buffer body;
      char key[32];
      buffer_init(&body, text_bytes);
      buffer_append_text(&body, HEAD "'payload':");
      for (unsigned i = 1; i < depth; i++) buffer_append_text(&body, rows[kind].open);
      buffer_append_text(&body, rows[kind].inner);
      for (unsigned i = 1; i < depth; i++) buffer_append_text(&body, rows[kind].close);
      buffer_append_text(&body, "}");
      buffer_append_char(&body, '\0');
      (void)snprintf(key, sizeof key, "depth-%u-%u", kind, depth);
      http_post(&server, server.token, "/v1/tasks", key, filled((const char *)body.data, true), &reply);
      http_expect(&reply, depth == 64 ? 201 : 400, depth == 64 ? NULL : "INVALID_ARGUMENT", NULL);
      if (depth == 65) assert_int_equal(strncmp(http_text(&reply, "error.field"), "/payload", 8), 0);
    }
  }
}

/* ---- The fields of a submission ---- */

#define QUEUE "'queue_id':'$Q',"
#define REST "'handler':'h','handler_version':'v1','payload_version':'v1','payload':1,"
#define WHOLE "{" QUEUE REST "'task_timeout_ms':60000"

static const struct {
  const char *body;
  int status;
  const char *code, *field;
} field_rows[] = {
    {"{" REST "'task_timeout_ms':1}", 400, "INVALID_ARGUMENT", "/queue_id"},
    {"{'queue_id':null," REST "'task_timeout_ms':1}", 400, "INVALID_ARGUMENT", "/queue_id"},
    {"{'queue_id':1," REST "'task_timeout_ms':1}", 400, "INVALID_ARGUMENT", "/queue_id"},
    {"{'queue_id':'0000018BCFE568000000000000000A01'," REST "'task_timeout_ms':1}", 400, "INVALID_ARGUMENT", "/queue_id"},
    {"{'queue_id':'00000000000000000000000000000000'," REST "'task_timeout_ms':1}", 400, "INVALID_ARGUMENT", "/queue_id"},
    {"{'queue_id':'$U'," REST "'task_timeout_ms':1}", 404, "NOT_FOUND", NULL},
    {"{" QUEUE "'handler':'','handler_version':'v','payload_version':'v','payload':1,'task_timeout_ms':1}", 400,
     "INVALID_ARGUMENT", "/handler"},
    {"{" QUEUE "'handler':'a b','handler_version':'v','payload_version':'v','payload':1,'task_timeout_ms':1}", 400,
     "INVALID_ARGUMENT", "/handler"},
    {"{" QUEUE "'handler':'\xc3\xa9','handler_version':'v','payload_version':'v','payload':1,'task_timeout_ms':1}", 400,
     "INVALID_ARGUMENT", "/handler"},
    {"{" QUEUE "'handler':'h','payload_version':'v','payload':1,'task_timeout_ms':1}", 400, "INVALID_ARGUMENT",
     "/handler_version"},
    {"{" QUEUE "'handler':'h','handler_version':'v','payload':1,'task_timeout_ms':1}", 400, "INVALID_ARGUMENT",
     "/payload_version"},
    {"{" QUEUE "'handler':'h','handler_version':'v','payload_version':'v','task_timeout_ms':1}", 400, "INVALID_ARGUMENT",
     "/payload"},
    {"{" QUEUE "'handler':'h','handler_version':'v','payload_version':'v','payload':null,'task_timeout_ms':1}", 400,
     "INVALID_ARGUMENT", "/payload"},
    {"{" QUEUE REST "'priority':1}", 400, "INVALID_ARGUMENT", "/task_timeout_ms"},
    {"{" QUEUE REST "'task_timeout_ms':0}", 400, "INVALID_ARGUMENT", "/task_timeout_ms"},
    {"{" QUEUE REST "'task_timeout_ms':2592000001}", 400, "INVALID_ARGUMENT", "/task_timeout_ms"},
    {"{" QUEUE REST "'task_timeout_ms':-1}", 400, "INVALID_ARGUMENT", "/task_timeout_ms"},
    {"{" QUEUE REST "'task_timeout_ms':1.0}", 400, "INVALID_ARGUMENT", "/task_timeout_ms"},
    {"{" QUEUE REST "'task_timeout_ms':1e3}", 400, "INVALID_ARGUMENT", "/task_timeout_ms"},
    {"{" QUEUE REST "'task_timeout_ms':'60000'}", 400, "INVALID_ARGUMENT", "/task_timeout_ms"},
    {"{" QUEUE REST "'task_timeout_ms':18446744073709551617}", 400, "INVALID_ARGUMENT", "/task_timeout_ms"},
    {WHOLE ",'priority':10}", 400, "INVALID_ARGUMENT", "/priority"},
    {WHOLE ",'priority':null}", 400, "INVALID_ARGUMENT", "/priority"},
    {WHOLE ",'recovery_safety':'idempotent'}", 400, "INVALID_ARGUMENT", "/recovery_safety"},
    {WHOLE ",'retry':[]}", 400, "INVALID_ARGUMENT", "/retry"},
    {WHOLE ",'retry':{'max_attempts':0}}", 400, "INVALID_ARGUMENT", "/retry/max_attempts"},
    {WHOLE ",'retry':{'max_attempts':101}}", 400, "INVALID_ARGUMENT", "/retry/max_attempts"},
    {WHOLE ",'retry':{'max_delay_ms':86400001}}", 400, "INVALID_ARGUMENT", "/retry/max_delay_ms"},
    {WHOLE ",'retry':{'initial_delay_ms':2,'max_delay_ms':1}}", 400, "INVALID_ARGUMENT", "/retry/max_delay_ms"},
    {WHOLE ",'retry':{'initial_delay_ms':1}}", 400, "INVALID_ARGUMENT", "/retry/max_delay_ms"},
    {WHOLE ",'retry':{'attempt_timeout_ms':0}}", 400, "INVALID_ARGUMENT", "/retry/attempt_timeout_ms"},
    {WHOLE ",'retry':{'attempt_timeout_ms':60001}}", 400, "INVALID_ARGUMENT", "/retry/attempt_timeout_ms"},
    {WHOLE ",'business_key':''}", 400, "INVALID_ARGUMENT", "/business_key"},
    {WHOLE ",'concurrency_key':''}", 400, "INVALID_ARGUMENT", "/concurrency_key"},
    {WHOLE ",'available_at':'2026-02-30T00:00:00Z'}", 400, "INVALID_ARGUMENT", "/available_at"},
    {WHOLE ",'available_at':'2026-01-01T00:00:00+00:00'}", 400, "INVALID_ARGUMENT", "/available_at"},
    {WHOLE ",'available_at':'2026-01-01 00:00:00Z'}", 400, "INVALID_ARGUMENT", "/available_at"},
    {WHOLE ",'available_at':'2026-01-01T00:00:00.1234567Z'}", 400, "INVALID_ARGUMENT", "/available_at"},
    {WHOLE ",'available_at':'2026-01-01T00:00:00Z'}", 400, "INVALID_ARGUMENT", "/available_at"},
    {WHOLE ",'available_at':'9998-01-01T00:00:00Z'}", 400, "INVALID_ARGUMENT", "/available_at"},
    {WHOLE ",'start_deadline_at':'2026-01-01T00:00:00Z'}", 400, "INVALID_ARGUMENT", "/start_deadline_at"},
    {WHOLE ",'start_deadline_at':'9998-01-01T00:00:00Z'}", 400, "INVALID_ARGUMENT", "/start_deadline_at"},
};

static void judges_each_field(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof field_rows / sizeof field_rows[0]; i++) {
    submit(filled(field_rows[i].body, true));
    if (reply.status != field_rows[i].status) fail_msg("row %u (%s): %d %s", i, field_rows[i].body, reply.status, reply.body);
    http_expect(&reply, field_rows[i].status, field_rows[i].code, field_rows[i].field);
  }
}

/* Times that hang on the moment of acceptance. Seconds from now; INT_MIN stands for absent. */
static void judges_times_by_its_own_clock(void **state) {
  (void)state;
  enum { absent = -1000000 };
  static const struct {
    int available_s, start_deadline_s, status;
    const char *field;
  } rows[] = {
      {-10, absent, 400, "/available_at"},
      {0, absent, 201, NULL},
      {50, absent, 201, NULL},
      {70, absent, 400, "/available_at"},
      {absent, -1, 400, "/start_deadline_at"},
      {absent, 50, 201, NULL},
      {absent, 70, 400, "/start_deadline_at"},
      {40, 30, 400, "/start_deadline_at"},
      {30, 40, 201, NULL},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char body[1024], key[16], time[time_chars_max + 1];
    int64_t now_us = clock_wall_us();
    int size = snprintf(body, sizeof body, "%s", filled(WHOLE, true));
    for (unsigned n = 0; n < 2; n++) {
      int seconds = n == 0 ? rows[i].available_s : rows[i].start_deadline_s;
      memset(time, 0, sizeof time);
      if (seconds == absent) continue;
      (void)time_format(now_us + (int64_t)seconds * 1000000, time);
      size += snprintf(body + size, sizeof body - (size_t)size, ",\"%s\":\"%s\"", n == 0 ? "available_at" : "start_deadline_at",
                       time);
    }
    (void)snprintf(body + size, sizeof body - (size_t)size, "}");
    (void)snprintf(key, sizeof key, "time-%u", i);
    http_post(&server, server.token, "/v1/tasks", key, body, &reply);
    if (reply.status != rows[i].status) fail_msg("row %u: %d %s", i, reply.status, reply.body);
    http_expect(&reply, rows[i].status, NULL, rows[i].field);
  }
}

/* Bounds of length, exactly: the last that is taken and the first that is not. */
static void counts_lengths(void **state) {
  (void)state;
  static const struct {
    const char *name, *unit; /* repeated */
    unsigned last;
    const char *field;
    const char *other; /* the rest of the body */
  } rows[] = {
      {"handler", "h", 128, "/handler", "'handler_version':'v','payload_version':'v','payload':1}"},
      {"handler_version", "/", 128, "/handler_version", "'handler':'v','payload_version':'v','payload':1}"},
      {"payload_version", ":", 128, "/payload_version", "'handler':'v','handler_version':'v','payload':1}"},
      {"business_key", "\xf0\x9f\x98\x80", 256, "/business_key", REST "'priority':0}"},
      {"concurrency_key", "e\xcc\x81", 128, "/concurrency_key", REST "'priority':0}"},
      {"payload", "x", 262142, "/payload", "'handler':'h','handler_version':'v','payload_version':'v'}"},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    for (unsigned over = 0; over < 2; over++) {
      cleanup(buffer_clear) struct buffer body;
      char key[16];
      buffer_init(&body, 1 << 20);
      buffer_append_text(&body, filled("{" QUEUE "'task_timeout_ms':60000,", true));
      buffer_append_format(&body, "\"%s\":\"", rows[i].name);
      for (unsigned n = 0; n < rows[i].last + over; n++) buffer_append_text(&body, rows[i].unit);
      buffer_append_text(&body, "\",");
      buffer_append_text(&body, filled(rows[i].other, true));
      buffer_append_char(&body, '\0');
      (void)snprintf(key, sizeof key, "length-%u", i);
      http_post(&server, server.token, "/v1/tasks", key, (const char *)body.data, &reply);
      if (reply.status != (over == 0 ? 201 : 400))
        fail_msg("%s, %u over: %d %.300s", rows[i].name, over, reply.status, reply.body);
      http_expect(&reply, over == 0 ? 201 : 400, NULL, over == 0 ? NULL : rows[i].field);
    }
  }
}

/* ---- Routes, permissions, headers ---- */

#define HOST "Host: a\r\n"
#define AUTH "Authorization: Bearer $T\r\n"
#define TYPE "Content-Type: application/json\r\n"
#define KEY "Idempotency-Key: refused\r\n"
#define NONE "Content-Length: 0\r\n\r\n"
#define POST "POST /v1/tasks HTTP/1.1\r\n" HOST

static const struct {
  const char *request;
  int status;
  const char *code, *header, *value; /* header: must be there, with this value (NULL: whichever) */
} route_rows[] = {
    /* who */
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST "\r\n", 401, "UNAUTHENTICATED", "WWW-Authenticate", "Bearer"},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST "Authorization: Bearer\r\n\r\n", 401, "UNAUTHENTICATED", NULL, NULL},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST "Authorization: Bearer nonsense\r\n\r\n", 401, "UNAUTHENTICATED", NULL, NULL},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST "Authorization: Bearer $Tx\r\n\r\n", 401, "UNAUTHENTICATED", NULL, NULL},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST "Authorization: Basic $T\r\n\r\n", 401, "UNAUTHENTICATED", NULL, NULL},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST "Authorization: Bearer $A\r\n\r\n", 403, "PERMISSION_DENIED", NULL, NULL},
    {POST "Authorization: Bearer $A\r\n" TYPE KEY NONE, 403, "PERMISSION_DENIED", NULL, NULL},
    /* what */
    {"GET / HTTP/1.1\r\n" HOST AUTH "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v2/tasks HTTP/1.1\r\n" HOST AUTH "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v1/tasks/ HTTP/1.1\r\n" HOST AUTH "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST AUTH "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v1/tasks/0000018BCFE568000000000000000A01 HTTP/1.1\r\n" HOST AUTH "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v1/tasks/$U/attempts/$U HTTP/1.1\r\n" HOST AUTH "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v1/tasks/$U/nothing HTTP/1.1\r\n" HOST AUTH "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v1/../v1/info HTTP/1.1\r\n" HOST AUTH "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"DELETE /v1/tasks/$U HTTP/1.1\r\n" HOST AUTH "\r\n", 405, "METHOD_NOT_ALLOWED", "Allow", NULL},
    {"PUT /v1/info HTTP/1.1\r\n" HOST NONE, 405, "METHOD_NOT_ALLOWED", "Allow", "GET, HEAD"},
    {"GET /v1/worker HTTP/1.1\r\n" HOST AUTH "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 426, "UPGRADE_REQUIRED",
     "Upgrade", NULL},
    /* escapes */
    {"GET /v1/tasks/$U%00 HTTP/1.1\r\n" HOST AUTH "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/info%00/../tasks HTTP/1.1\r\n" HOST AUTH "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1%2Finfo HTTP/1.1\r\n" HOST "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v1/tasks/$U%2Fattempts HTTP/1.1\r\n" HOST AUTH "\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v1/info%zz HTTP/1.1\r\n" HOST "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/info% HTTP/1.1\r\n" HOST "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/%69nfo HTTP/1.1\r\n" HOST "\r\n", 200, NULL, NULL, NULL},
    /* parameters */
    {"GET /v1/tasks/$U?x=1 HTTP/1.1\r\n" HOST AUTH "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/tasks/$U/attempts?limit=0 HTTP/1.1\r\n" HOST AUTH "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/tasks/$U/attempts?limit=101 HTTP/1.1\r\n" HOST AUTH "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/tasks/$U/attempts?limit=1&limit=1 HTTP/1.1\r\n" HOST AUTH "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/tasks/$U/attempts?cursor=x HTTP/1.1\r\n" HOST AUTH "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"POST /v1/tasks?x=1 HTTP/1.1\r\n" HOST AUTH TYPE KEY NONE, 400, "INVALID_ARGUMENT", NULL, NULL},
    /* headers of reads */
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST AUTH "Accept: text/html\r\n\r\n", 406, "NOT_ACCEPTABLE", NULL, NULL},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST AUTH "Accept: application/json;q=0\r\n\r\n", 406, "NOT_ACCEPTABLE", NULL, NULL},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST AUTH "Accept: text/html, */*;q=0.1\r\n\r\n", 404, "NOT_FOUND", NULL, NULL},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST AUTH KEY "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/info HTTP/1.1\r\n\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/info HTTP/1.1\r\n" HOST "Host: b\r\n\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {"GET /v1/tasks/$U HTTP/1.1\r\n" HOST AUTH AUTH "\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    /* headers of writes */
    {POST AUTH TYPE NONE, 400, "INVALID_ARGUMENT", NULL, NULL},
    {POST AUTH TYPE "Idempotency-Key:\r\n" NONE, 400, "INVALID_ARGUMENT", NULL, NULL},
    {POST AUTH TYPE "Idempotency-Key: a b\r\n" NONE, 400, "INVALID_ARGUMENT", NULL, NULL},
    {POST AUTH TYPE "Idempotency-Key: \xc3\xa9\r\n" NONE, 400, "INVALID_ARGUMENT", NULL, NULL},
    {POST AUTH TYPE KEY KEY NONE, 400, "INVALID_ARGUMENT", NULL, NULL},
    {POST AUTH KEY NONE, 415, "UNSUPPORTED_MEDIA_TYPE", NULL, NULL},
    {POST AUTH KEY "Content-Type: text/plain\r\n" NONE, 415, "UNSUPPORTED_MEDIA_TYPE", NULL, NULL},
    {POST AUTH KEY "Content-Type: application/jsonx\r\n" NONE, 415, "UNSUPPORTED_MEDIA_TYPE", NULL, NULL},
    {POST AUTH KEY "Content-Type: application/json; charset=utf-8\r\n" NONE, 400, "INVALID_ARGUMENT", NULL,
     NULL}, /* the body is empty */
    {POST AUTH TYPE KEY "\r\n", 411, "LENGTH_REQUIRED", NULL, NULL},
    {POST AUTH TYPE KEY "Content-Length: 524289\r\n\r\n", 413, "PAYLOAD_TOO_LARGE", NULL, NULL},
    {POST AUTH TYPE KEY "Content-Length: 524289\r\nExpect: 100-continue\r\n\r\n", 413, "PAYLOAD_TOO_LARGE", NULL, NULL},
    /* where one request ends and the next begins must never be in doubt */
    {POST AUTH TYPE KEY "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "INVALID_ARGUMENT", NULL,
     NULL},
    {POST AUTH TYPE KEY "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400, "INVALID_ARGUMENT", NULL,
     NULL},
    {POST AUTH TYPE KEY "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400, "INVALID_ARGUMENT", NULL, NULL},
    {POST AUTH TYPE KEY "Content-Length: 2, 2\r\n\r\n{}", 400, "INVALID_ARGUMENT", NULL, NULL},
    {POST AUTH TYPE KEY "Content-Length: -2\r\n\r\n{}", 400, "INVALID_ARGUMENT", NULL, NULL},
    {POST AUTH TYPE KEY "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, "INVALID_ARGUMENT", NULL, NULL},
    {POST AUTH TYPE KEY "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "INVALID_ARGUMENT",
     NULL, NULL},
};

static void knows_its_routes(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof route_rows / sizeof route_rows[0]; i++) {
    http_raw(&server, filled(route_rows[i].request, false), &reply);
    if (reply.status != route_rows[i].status)
      fail_msg("row %u: %d instead of %d\n%s\n%s", i, reply.status, route_rows[i].status, route_rows[i].request,
               reply.body != NULL ? reply.body : "(no answer)");
    http_expect(&reply, route_rows[i].status, route_rows[i].code, NULL);
    if (route_rows[i].header == NULL) continue;
    assert_non_null(http_header(&reply, route_rows[i].header));
    if (route_rows[i].value != NULL) assert_string_equal(http_header(&reply, route_rows[i].header), route_rows[i].value);
  }
}

/* Request targets and headers: the longest that are taken, and the first that are not. */
static void counts_targets_and_headers(void **state) {
  (void)state;
  enum { target_max = 8192, long_header = 16384 };
  static char text[65536], filler[32768];
  static const struct {
    unsigned target, header;
    int status;
    const char *code;
  } rows[] = {
      {target_max, 0, 400, "INVALID_ARGUMENT"}, /* the parameter is unknown, but it was read */
      {target_max + 1, 0, 414, "URI_TOO_LONG"},
      {20, 15000, 200, NULL},
      {20, long_header + 1024, 431, "HEADERS_TOO_LARGE"},
  };
  memset(filler, 'x', sizeof filler);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    int size = rows[i].target > 20 ? snprintf(text, sizeof text, "GET /v1/info?%.*s", (int)(rows[i].target - 9), filler)
                                   : snprintf(text, sizeof text, "GET /v1/info");
    size += snprintf(text + size, sizeof text - (size_t)size, " HTTP/1.1\r\nHost: a\r\n");
    if (rows[i].header != 0)
      size += snprintf(text + size, sizeof text - (size_t)size, "X-Long: %.*s\r\n", (int)rows[i].header, filler);
    (void)snprintf(text + size, sizeof text - (size_t)size, "\r\n");
    http_raw(&server, text, &reply);
    if (reply.status != rows[i].status) fail_msg("row %u: %d", i, reply.status);
    http_expect(&reply, rows[i].status, rows[i].code, NULL);
  }
}

/* A body of the largest size, and one byte more: by its length, and by its chunks. */
static void counts_bodies(void **state) {
  (void)state;
  enum { body_max = 524288 };
  for (unsigned kind = 0; kind < 4; kind++) {
    size_t size = body_max + kind % 2;
    bool chunked = kind >= 2;
    cleanup(buffer_clear) struct buffer request;
    cleanup(guard_close) int fd = http_connect(&server);
    buffer_init(&request, 4 * body_max);
    buffer_append_text(&request, filled(POST AUTH TYPE, false));
    buffer_append_format(&request, "Idempotency-Key: body-%u\r\n", kind);
    if (chunked) buffer_append_format(&request, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", size);
    else buffer_append_format(&request, "Content-Length: %zu\r\n\r\n", size);
    const char *body = filled(WHOLE "}", true);
    buffer_append_text(&request, body);
    for (size_t i = strlen(body); i < size; i++) buffer_append_char(&request, ' ');
    if (chunked) buffer_append_text(&request, "\r\n0\r\n\r\n");
    http_send(fd, request.data, request.size);
    http_receive(fd, &reply);
    http_expect(&reply, size == body_max ? 201 : 413, size == body_max ? NULL : "PAYLOAD_TOO_LARGE", NULL);
  }
}

/* ---- Nothing was kept ---- */

/* The key of all those refusals is still free, and the position of the log says that nothing was written for them. */
static void kept_nothing_of_it(void **state) {
  (void)state;
  char before[32];
  http_get(&server, NULL, "/v1/info", &reply);
  (void)snprintf(before, sizeof before, "%s", http_text(&reply, "data.log.position"));
  submit("{}");
  http_expect(&reply, 400, NULL, NULL);
  http_get(&server, NULL, "/v1/info", &reply);
  assert_string_equal(http_text(&reply, "data.log.position"), before);
  submit(filled(WHOLE "}", true));
  http_expect(&reply, 201, NULL, NULL);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_strict_json_only),
      cmocka_unit_test(takes_no_zero_byte),
      cmocka_unit_test(counts_depth),
      cmocka_unit_test(judges_each_field),
      cmocka_unit_test(judges_times_by_its_own_clock),
      cmocka_unit_test(counts_lengths),
      cmocka_unit_test(knows_its_routes),
      cmocka_unit_test(counts_targets_and_headers),
      cmocka_unit_test(counts_bodies),
      cmocka_unit_test(kept_nothing_of_it),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
