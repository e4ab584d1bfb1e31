/* The log of README's incident (tests/data/incident): sound, and readable where nobody may write. It was written by the real
 * engine under a clock that this file sets: ORBIT_GOLDEN_WRITE=1 makes it anew when it is not there. What README prints of it
 * is held by tests/replay/readme. */
#include <dirent.h>
#include <errno.h>

#include "base/time_text.h"
#include "codec/digest.h"
#include "engine/world.h"
#include "replay/rig.h"

#define INCIDENT_DIRECTORY ORBIT_SOURCE_DIR "/tests/data/incident"

/* ---- making it ---- */

static void advance_to(struct world *world, const char *time) {
  int64_t time_us;
  assert_true(time_parse(bytes_text(time), &time_us));
  assert_true(time_us >= world->now_us);
  world_advance_ms(world, (time_us - world->now_us) / us_per_ms);
}

static struct answer do_as(struct world *world, struct command command, const char *key) {
  world_identify(world, &command, key);
  struct answer answer = world_do(world, &command);
  if (answer.status != STATUS_OK) fail_msg("%s: %s", key, answer.fault.message);
  return answer;
}

/* The engine on a data directory that `orbitctl init` has made. */
static void take_over(struct world *world, const struct api_server *made) {
  memset(world, 0, sizeof *world);
  world->directory = strdup(made->data);
  assert_true(time_parse(bytes_text("2026-12-03T02:58:00Z"), &world->now_us));
  id_source_init(&world->ids, 4711);
  buffer_init(&world->texts, SIZE_MAX);
  assert_int_equal(outbox_init(&world->outbox), STATUS_OK);
  assert_true(id_parse(bytes_text(made->namespace_id), &world->namespace_id));
  assert_true(id_parse(bytes_text(made->application_id), &world->application_id));
  assert_true(id_parse(bytes_text(made->queue_id), &world->queue_id));
  world->who = (struct principal){
      .namespace_id = world->namespace_id, .application_id = world->application_id, .permissions = UINT64_MAX};
  world_restart(world);
}

static void note_credential(void *context, const struct event *event) {
  struct world *world = context;
  if (event->type == EVENT_credential_created && id_is_zero(&world->who.credential_id))
    world->who.credential_id = event->stream;
}

static struct principal reviewer(struct world *world) {
  uint8_t hash[token_hash_bytes];
  struct command command = world_credential(world, COMMAND_CREDENTIAL_CREATE, NULL);
  token_hash(bytes_text("nobody has this token"), hash);
  command.as.credential.application_id = world->application_id;
  command.as.credential.name = bytes_text("Anna Weber, payments");
  command.as.credential.permissions = UINT64_C(1) << PERMISSION_TASKS_REVIEW;
  command.as.credential.token_hash = bytes_of(hash, token_hash_bytes);
  struct principal who = world->who;
  who.credential_id = do_as(world, command, "credential").as.credential.id;
  return who;
}

static struct task submitted(struct world *world, const char *key, const char *payload) {
  struct command command = world_submit(world, key);
  command.as.submit.queue_id = world->queue_id;
  command.as.submit.handler = bytes_text("card.charge");
  command.as.submit.handler_version = bytes_text("v3");
  command.as.submit.business_key = bytes_text(key);
  command.as.submit.payload = bytes_text(payload);
  command.as.submit.task_timeout_ms = 86400000;
  return do_as(world, command, key).as.task;
}

static struct push assigned(struct world *world) {
  static const struct handler_offer offer = {{(const uint8_t *)"card.charge", 11}, {(const uint8_t *)"v3", 2}};
  struct command command = world_hello_command(world, 2, 1);
  command.as.hello.name = bytes_text("bank-2");
  command.as.hello.queue_ids = &world->queue_id;
  command.as.hello.handlers = &offer;
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  free(answer.as.welcome.held);
  const struct push *push = world_take(world, MAIL_ASSIGN, 2);
  assert_non_null(push);
  return *push;
}

static struct id digest_of(const char *text) {
  struct json json;
  struct buffer scratch;
  struct fault fault;
  json_init(&json);
  buffer_init(&scratch, SIZE_MAX);
  assert_int_equal(json_parse(&json, bytes_text(text), &fault), STATUS_OK);
  struct id digest = json_digest(&json, 0, &scratch);
  buffer_clear(&scratch);
  json_clear(&json);
  return digest;
}

/* A charge that was granted its start and then heard of no more; the worker's word comes too late to decide anything; a person
 * looks at the bank's statement in the morning. Another charge waits meanwhile and is made afterwards. */
static void tell(struct world *world) {
  world_each_event(world, note_credential, world);
  struct principal anna = reviewer(world);
  advance_to(world, "2026-12-03T03:11:40.218Z");
  struct task task = submitted(world, "order-4711", "{\"order\":4711,\"amount\":\"129.90\",\"currency\":\"EUR\"}");
  world_advance_ms(world, 4);
  struct push push = assigned(world);
  world_advance_ms(world, 21);
  world_start(world, &push);
  advance_to(world, "2026-12-03T03:11:52Z");
  (void)submitted(world, "order-4712", "{\"order\":4712,\"amount\":\"18.00\",\"currency\":\"EUR\"}");
  world_bye(world, 2); /* its machine is gone; the lease runs on */
  advance_to(world, "2026-12-03T03:12:10.222Z");
  advance_to(world, "2026-12-03T03:14:02.774Z");
  struct command late = world_finish(world, &push, OUTCOME_SUCCEEDED, false);
  late.as.finish.report.result = bytes_text("{\"booking\":\"88\"}");
  world_identify(world, &late, "");
  assert_true(world_do(world, &late).as.worker.evidence);
  push = assigned(world);
  world_start(world, &push);
  world_advance_ms(world, 640);
  (void)world_report(world, &push, OUTCOME_SUCCEEDED, false);
  advance_to(world, "2026-12-03T09:26:15.031Z");
  struct command review = world_review(world, &task.id, world_task(world, &task.id).revision, OUTCOME_SUCCEEDED, "review");
  review.who = anna;
  review.as.review.reason = bytes_text("the statement shows one booking of 129.90 at 03:11:58; bank-2 was switched off");
  review.as.review.evidence_ref = bytes_text("bank:statement-2026-12-03#88");
  review.as.review.result = bytes_text("{\"booking\":\"88\"}");
  review.as.review.result_digest = digest_of("{\"booking\":\"88\"}");
  (void)do_as(world, review, "review");
}

/* Through salvage and backup: one commit's worth of pages instead of a server's room ahead. */
static void make(void) {
  static struct world world;
  struct api_server server;
  struct api_run run;
  (void)api_program("orbit-replay");
  api_server_make(&server);
  take_over(&world, &server);
  tell(&world);
  const struct path packed = path_of(server.directory, "packed");
  rig_replay(&run, "salvage", packed.text, "--data", server.data, NULL);
  rig_expect(&run, 0);
  api_run_clear(&run);
  rig_replay(&run, "backup", INCIDENT_DIRECTORY, "--data", packed.text, NULL);
  rig_expect(&run, 0);
  api_run_clear(&run);
  world_close(&world);
  api_server_remove(&server);
  print_message("wrote " INCIDENT_DIRECTORY "\n");
}

/* ---- judging it ---- */

struct copy {
  char *top;
  struct path data, log;
};

static int begin(void **state) {
  static struct copy copy;
  copy.top = test_directory_make();
  copy.data = path_of(copy.top, "incident");
  copy.log = path_of(copy.data.text, "log");
  fixture_copy(INCIDENT_DIRECTORY, copy.data.text);
  *state = &copy;
  return 0;
}

static int end(void **state) {
  struct copy *copy = *state;
  test_directory_remove(copy->top);
  return 0;
}

static void run_as(uid_t uid, const char *program_name, const struct copy *copy, const char *const *more,
                   struct api_run *ret_run) {
  const char *arguments[16] = {NULL, "--data", copy->data.text};
  char program[512];
  const struct api_run_options options = {.uid = uid};
  (void)snprintf(program, sizeof program, "%s", api_program(program_name));
  arguments[0] = program;
  for (unsigned i = 0; more[i] != NULL; i++) arguments[i + 3] = more[i];
  api_run(arguments, &options, ret_run);
}

static void the_incident_is_sound(void **state) {
  struct copy *copy = *state;
  static const char *const verify[] = {"verify", NULL};
  static const char *const programs[] = {"orbit-replay", "orbit-audit"};
  for (unsigned i = 0; i < 2; i++) {
    struct api_run run;
    run_as(0, programs[i], copy, verify, &run);
    rig_expect(&run, 0);
    assert_non_null(strstr(run.out, " 0 findings\n"));
    api_run_clear(&run);
  }
}

static unsigned entries_of(const char *path) {
  unsigned count = 0;
  DIR *directory = opendir(path);
  assert_non_null(directory);
  while (readdir(directory) != NULL) count++;
  (void)closedir(directory);
  return count;
}

/* Every reading command says the same for somebody who may read and not write: on a mount that is read-only, in a directory of
 * somebody else's. Nothing comes to stand in it. */
static void it_is_read_where_nobody_may_write(void **state) {
  struct copy *copy = *state;
  static const uid_t nobody = 65534;
  static const struct {
    const char *program, *arguments[6];
  } rows[] = {
      {"orbit-replay", {"verify"}},
      {"orbit-replay", {"verify", "--chain-only"}},
      {"orbit-replay", {"stats"}},
      {"orbit-replay", {"queues", "--at", "2026-12-03 03:12"}},
      {"orbit-replay", {"diff", "--from", "2026-12-03 03:12"}},
      {"orbit-audit", {"verify"}},
      {"orbit-audit", {"log", "-o", "jsonl"}},
      {"orbit-audit", {"operations", "--all", "-o", "csv"}},
  };
  if (geteuid() != 0) {
    print_message("skipped: only root can be somebody else\n");
    skip();
  }
  assert_int_equal(unlink(path_of(copy->log.text, "lock.mdb").text) == 0 || errno == ENOENT, 1);
  assert_int_equal(chmod(copy->top, 0755), 0);
  assert_int_equal(chmod(copy->data.text, 0555), 0);
  assert_int_equal(chmod(copy->log.text, 0555), 0);
  assert_int_equal(chmod(path_of(copy->log.text, "data.mdb").text, 0444), 0);
  if (access(path_of(copy->data.text, "node.id").text, F_OK) == 0)
    assert_int_equal(chmod(path_of(copy->data.text, "node.id").text, 0444), 0);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct api_run there, here;
    run_as(nobody, rows[i].program, copy, rows[i].arguments, &here);
    if (here.code != 0) fail_msg("%s %s: %d: %s", rows[i].program, rows[i].arguments[0], here.code, here.err);
    assert_int_equal(entries_of(copy->log.text), 3); /* ".", "..", data.mdb */
    run_as(0, rows[i].program, copy, rows[i].arguments, &there);
    assert_string_equal(here.out, there.out);
    (void)unlink(path_of(copy->log.text, "lock.mdb").text); /* root may write */
    api_run_clear(&there);
    api_run_clear(&here);
  }
  assert_int_equal(chmod(copy->log.text, 0755), 0);
  assert_int_equal(chmod(copy->data.text, 0755), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_incident_is_sound, begin, end),
      cmocka_unit_test_setup_teardown(it_is_read_where_nobody_may_write, begin, end),
  };
  const char *write = getenv("ORBIT_GOLDEN_WRITE");
  if (write != NULL && strcmp(write, "1") == 0 && access(INCIDENT_DIRECTORY, F_OK) != 0) make();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
