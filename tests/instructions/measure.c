/* A fixed small workload for counting instructions: under callgrind, each phase is a dump of its own; without it, it is just
 * done. The engine, the rules, the codec, the fold, LMDB and what judges and answers a request are the real ones; no socket
 * takes part and no clock but for the ids of requests, so that the same binary counts the same twice. */
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

#include "base/guard.h"
#include "codec/digest.h"
#include "codec/wire_http.h"
#include "edge/request.h"
#include "engine/world.h"

enum { per_tick = 64, ticks = 16, tasks = per_tick * ticks };

/* Counting begins; the counts so far are let go. */
#define BEGIN() CALLGRIND_ZERO_STATS
/* So many things were done: tests/instructions/guard divides. */
#define END(name, count)                                  \
  do {                                                    \
    static char text[64];                                 \
    (void)snprintf(text, sizeof text, name " %d", count); \
    CALLGRIND_DUMP_STATS_AT(text);                        \
  } while (0)

static void do_all(struct world *world, const struct command *commands) {
  struct answer answers[per_tick];
  world_do_all(world, commands, answers, per_tick);
  for (unsigned i = 0; i < per_tick; i++) assert_int_equal(answers[i].status, STATUS_OK);
}

static void submit_all(struct world *world) {
  struct command commands[per_tick];
  for (unsigned tick = 0; tick < ticks; tick++) {
    for (unsigned i = 0; i < per_tick; i++) {
      char key[32];
      (void)snprintf(key, sizeof key, "key-%u-%u", tick, i);
      commands[i] = world_submit(world, key);
    }
    BEGIN();
    do_all(world, commands);
    END("submit", per_tick);
    world->now_us += 1000;
  }
}

/* A worker that holds all of a tick's tasks at once; a finish frees room for the next, which is leased in the same commit. */
static void live_all(struct world *world) {
  const struct push *assigned[per_tick];
  struct command commands[per_tick];
  assert_int_equal(world_hello(world, 1, per_tick).status, STATUS_OK);
  for (unsigned tick = 0; tick < ticks; tick++) {
    for (unsigned i = 0; i < per_tick; i++) {
      assert_non_null(assigned[i] = world_take(world, MAIL_ASSIGN, 1));
      commands[i] = world_ref(world, COMMAND_START, assigned[i]);
    }
    world->now_us += 1000;
    BEGIN();
    do_all(world, commands);
    END("start", per_tick);
    for (unsigned i = 0; i < per_tick; i++) commands[i] = world_finish(world, assigned[i], OUTCOME_SUCCEEDED, false);
    world->now_us += 1000;
    BEGIN();
    do_all(world, commands);
    END("finish", per_tick);
  }
}

static void fold_all(struct world *world) {
  BEGIN();
  world_restart(world);
  END("fold", 5 * tasks);
}

static const char submission[] =
    "{\"queue_id\":\"%s\",\"handler\":\"mail.send\",\"handler_version\":\"1\",\"payload_version\":\"1\","
    "\"payload\":{\"order\":4711,\"to\":\"a@example.org\",\"lines\":[1,2,3,4.50,null,true]},\"task_timeout_ms\":60000,"
    "\"business_key\":\"order-4711\",\"priority\":3}";

static void read_all(struct world *world) {
  char body[sizeof submission + id_chars];
  (void)snprintf(body, sizeof body, submission, id_text(&world->queue_id).text);
  cleanup(json_clear) struct json json;
  cleanup(buffer_clear) struct buffer texts;
  json_init(&json);
  buffer_init(&texts, sizeof body * 4);
  BEGIN();
  for (unsigned i = 0; i < tasks; i++) {
    struct command command = {.kind = COMMAND_SUBMIT};
    struct fault fault = {0};
    buffer_reset(&texts);
    if (wire_submit_read(&json, bytes_text(body), &texts, &command, &fault) != STATUS_OK) fail_msg("%s", fault.message);
  }
  END("read", tasks);
}

/* ---- requests, from the first header to the body of the answer ---- */

static const char token[] = "orbit_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/* The world's credentials have no token that anybody knows: this one gets one. */
static void give_token(struct world *world) {
  struct credential credential = {.id = world->who.credential_id,
                                  .namespace_id = world->who.namespace_id,
                                  .application_id = world->who.application_id,
                                  .permissions = UINT64_C(1) << PERMISSION_TASKS_SUBMIT,
                                  .revision = 1};
  token_hash(bytes_text(token), credential.token_hash);
  directory_put(engine_directory(world->engine), &credential, false);
}

static void ask(struct request *request, const struct bytes (*headers)[2], struct bytes body) {
  request_start(request, "/v1/tasks");
  for (unsigned i = 0; headers[i][0].data != NULL; i++) head_add(&request->head, headers[i][0], headers[i][1]);
  request_open(request, "POST", true);
  if (request->phase == REQUEST_READING) (void)request_body(request, body.data, body.size);
  request_complete(request);
  if (request->phase != REQUEST_WAITING) fail_msg("%.*s", (int)request->out.size, (const char *)request->out.data);
}

/* The keys are written before anything is counted. */
static void ask_all(struct world *world, struct request *requests, unsigned tick) {
  static char keys[per_tick][32];
  char body[sizeof submission + id_chars], length[16], bearer[sizeof token + 16];
  (void)snprintf(body, sizeof body, submission, id_text(&world->queue_id).text);
  (void)snprintf(length, sizeof length, "%zu", strlen(body));
  (void)snprintf(bearer, sizeof bearer, "Bearer %s", token);
  for (unsigned i = 0; i < per_tick; i++) (void)snprintf(keys[i], sizeof keys[i], "asked-%02u-%02u", tick, i);
  struct bytes headers[][2] = {
      {bytes_text("Host"), bytes_text("127.0.0.1:7701")},   {bytes_text("Authorization"), bytes_text(bearer)},
      {bytes_text("Idempotency-Key"), bytes_text(keys[0])}, {bytes_text("Content-Type"), bytes_text("application/json")},
      {bytes_text("Content-Length"), bytes_text(length)},   {{NULL, 0}, {NULL, 0}}};
  BEGIN();
  for (unsigned i = 0; i < per_tick; i++) {
    headers[2][1].data = (const uint8_t *)keys[i];
    ask(&requests[i], headers, bytes_text(body));
  }
  END("ask", per_tick);
}

static void answer_all(struct request_pool *pool, struct request *requests) {
  unsigned count = 0;
  BEGIN();
  for (struct mail *mail = outbox_take(pool->outbox), *next; mail != NULL; mail = next, count++) {
    next = mail->next;
    request_returned(job_returned(pool, mail));
  }
  END("answer", per_tick);
  assert_int_equal(count, per_tick);
  for (unsigned i = 0; i < per_tick; i++) {
    assert_int_equal(requests[i].http_status, 201);
    request_reset(&requests[i]);
  }
}

static void serve_all(struct world *world) {
  struct edge *edge = guard_calloc(1, sizeof *edge);
  struct request *requests = guard_calloc(per_tick, sizeof *requests);
  struct request_pool pool;
  struct outbox outbox;
  _Atomic uint64_t body_bytes = 0;
  _Atomic uint32_t feed_readers = 0;
  _Atomic bool stopping = false;
  edge->journal = world->journal;
  edge->engine = world->engine;
  atomic_store(&edge->phase, EDGE_READY);
  give_token(world);
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  request_pool_init(&pool, edge, &outbox, &body_bytes, &feed_readers, &stopping);
  for (unsigned i = 0; i < per_tick; i++) request_init(&requests[i], &pool);
  for (unsigned tick = 0; tick < ticks; tick++) {
    world->now_us += 1000;
    ask_all(world, requests, tick);
    world_tick(world);
    answer_all(&pool, requests);
  }
  for (unsigned i = 0; i < per_tick; i++) request_clear(&requests[i]);
  request_pool_clear(&pool);
  outbox_clear(&outbox);
  free(requests);
  free(edge);
}

static void the_workload(void **state) {
  (void)state;
  struct world *world = guard_calloc(1, sizeof *world);
  world_open(world);
  submit_all(world);
  live_all(world);
  fold_all(world);
  read_all(world);
  serve_all(world);
  world_close(world);
  free(world);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_workload)};
  return cmocka_run_group_tests_name("instructions", tests, NULL, NULL);
}
