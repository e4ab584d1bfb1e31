/* Golden logs: whole logs as the first version of Orbit of each format wrote them. Whatever changes later, they must replay, to
 * the same views, be found sound by the tools, and be taken up by the server. They lie in tests/data/golden/logs: NAME.bin is
 * genesis and then the records as they stand in the log, NAME.txt what they come to.
 *
 * ORBIT_GOLDEN_WRITE=1 writes a log of this version when there is none yet of its format, and another one beside it (v1-2.bin)
 * when there are types of events that no log holds: then story() below must have made one of each. A NAME.txt that is missing
 * is written too: delete it when views have gained something and so their digest has changed. No NAME.bin is ever written
 * again. */
#include <dirent.h>
#include <endian.h>

#include "engine/internal.h"
#include "engine/world.h"
#include "journal/copy.h"
#include "reading/reading.h"
#include "replay/rig.h"

#define GOLDEN_DIRECTORY ORBIT_SOURCE_DIR "/tests/data/golden/logs"

enum { genesis_bytes = 96, golden_logs_max = 64, format_now = 1 };

static bool covered[EVENT_type_end];

/* ---- the story: one event of each type at least ---- */

static struct answer do_as(struct world *world, struct command command, const char *key) {
  world_identify(world, &command, key);
  struct answer answer = world_do(world, &command);
  if (answer.status != STATUS_OK) fail_msg("%s: %s", key, answer.fault.message);
  world_advance_ms(world, 7);
  return answer;
}

static void tell_of_objects(struct world *world) {
  uint8_t hash[token_hash_bytes];
  struct command command = {.kind = COMMAND_NAMESPACE_CREATE, .who = world->root};
  token_hash(bytes_text("golden-namespace"), hash);
  command.as.namespace_.name = bytes_text("Zürich");
  command.as.namespace_.token_hash = bytes_of(hash, token_hash_bytes);
  (void)do_as(world, command, "namespace");
  command = world_application(world, COMMAND_APPLICATION_CREATE, NULL);
  command.as.application.name = bytes_text("billing");
  command.as.application.max_unfinished = 100;
  struct answer made = do_as(world, command, "application");
  command = world_application(world, COMMAND_APPLICATION_CHANGE, &made.as.application.id);
  command.as.application.expected_revision = 1;
  command.as.application.given = GIVEN_NAME;
  command.as.application.name = bytes_text("billing, old");
  (void)do_as(world, command, "application-change");
  command = world_queue(world, COMMAND_QUEUE_CREATE, NULL);
  command.as.queue.name = bytes_text("mail");
  command.as.queue.max_running = 7;
  made = do_as(world, command, "queue");
  command = world_queue(world, COMMAND_QUEUE_CHANGE, &made.as.queue.id);
  command.as.queue.expected_revision = 1;
  command.as.queue.given = GIVEN_RATE | GIVEN_KEY_CONCURRENCY;
  command.as.queue.rate_tasks = 5;
  command.as.queue.rate_per_ms = 1000;
  command.as.queue.rate_burst = 2;
  command.as.queue.key_concurrency = 3;
  (void)do_as(world, command, "queue-change");
  (void)do_as(world, world_queue(world, COMMAND_QUEUE_PAUSE, &made.as.queue.id), "pause");
  (void)do_as(world, world_queue(world, COMMAND_QUEUE_RESUME, &made.as.queue.id), "resume");
  (void)do_as(world, world_queue(world, COMMAND_QUEUE_PAUSE, &world->other_queue_id), "pause-other");
  command = world_credential(world, COMMAND_CREDENTIAL_CREATE, NULL);
  token_hash(bytes_text("golden-1"), hash);
  command.as.credential.application_id = world->application_id;
  command.as.credential.name = bytes_text("robot");
  command.as.credential.permissions = UINT64_C(1) << PERMISSION_TASKS_SUBMIT;
  command.as.credential.token_hash = bytes_of(hash, token_hash_bytes);
  command.as.credential.queue_ids = bytes_of(world->narrow_queue_id.bytes, id_bytes);
  made = do_as(world, command, "credential");
  command = world_credential(world, COMMAND_CREDENTIAL_ROTATE, &made.as.credential.id);
  token_hash(bytes_text("golden-2"), hash);
  command.as.credential.token_hash = bytes_of(hash, token_hash_bytes);
  (void)do_as(world, command, "rotate");
  (void)do_as(world, world_credential(world, COMMAND_CREDENTIAL_REVOKE, &made.as.credential.id), "revoke");
}

/* The worker of session 1 is given the next task, and starts it. */
static struct push given(struct world *world) {
  world_tick(world);
  const struct push *push = world_take(world, MAIL_ASSIGN, 1);
  assert_non_null(push);
  return *push;
}

static void tell_of_a_safe_retry(struct world *world) {
  (void)world_submitted(world, "safe-retry");
  struct push push = given(world);
  world_start(world, &push);
  world_advance_ms(world, 300);
  (void)world_report(world, &push, OUTCOME_FAILED, true);
  world_advance_ms(world, 3000);
  push = given(world);
  struct command release = world_ref(world, COMMAND_RELEASE, &push); /* not started: given back */
  assert_int_equal(world_do(world, &release).status, STATUS_OK);
  world_advance_ms(world, 3000);
  push = given(world);
  world_start(world, &push);
  (void)world_report(world, &push, OUTCOME_SUCCEEDED, false);
}

static void tell_of_an_unknown_outcome(struct world *world) {
  struct task task = world_submitted(world, "unknown");
  struct push push = given(world);
  world_start(world, &push);
  world_advance_ms(world, lease_ms_default + 1000);
  struct command command = world_finish(world, &push, OUTCOME_SUCCEEDED, false);
  assert_true(world_do(world, &command).as.worker.evidence);
  command = world_review(world, &task.id, world_task(world, &task.id).revision, OUTCOME_FAILED, "review");
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
  command = world_retry(world, &task.id, world_task(world, &task.id).revision, "retry");
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
  push = given(world);
  world_start(world, &push);
  (void)world_report(world, &push, OUTCOME_FAILED, false);
}

static void tell_of_a_cancel(struct world *world) {
  struct task task = world_submitted(world, "cancelled");
  struct push push = given(world);
  world_start(world, &push);
  struct command command = world_cancel(world, &task.id, "cancel");
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
  (void)world_report(world, &push, OUTCOME_CANCELLED, false);
}

/* A restart in the middle, tasks in every state at the end, and a clean stop. */
static void tell_of_subscriptions(struct world *world) {
  struct command command = {.kind = COMMAND_SUBSCRIPTION_CREATE, .who = world->who};
  command.as.subscription.name = bytes_text("invoices");
  command.as.subscription.from = FEED_FROM_EARLIEST;
  struct answer made = do_as(world, command, "subscription");
  command = (struct command){.kind = COMMAND_SUBSCRIPTION_ACK, .who = world->who};
  command.as.subscription.id = made.as.subscription.id;
  command.as.subscription.position = 5;
  (void)do_as(world, command, "ack");
  command.kind = COMMAND_SUBSCRIPTION_DELETE;
  command.as.subscription.position = 0;
  (void)do_as(world, command, "unsubscribe");
}

/* In a queue that is paused: the first time makes a task, which the second finds unfinished. */
static void tell_of_a_schedule(struct world *world) {
  struct command command = world_schedule(world, COMMAND_SCHEDULE_CREATE, NULL);
  command.as.schedule.queue_id = world->other_queue_id;
  command.as.schedule.overlap = OVERLAP_SKIP;
  struct answer made = do_as(world, command, "schedule");
  command = world_schedule(world, COMMAND_SCHEDULE_CHANGE, &made.as.schedule.id);
  command.as.schedule.expected_revision = 1;
  command.as.schedule.given = GIVEN_NAME;
  command.as.schedule.name = bytes_text("every minute");
  (void)do_as(world, command, "schedule-change");
  world_advance_ms(world, 60000);
  world_advance_ms(world, 60000);
  (void)do_as(world, world_schedule(world, COMMAND_SCHEDULE_PAUSE, &made.as.schedule.id), "schedule-pause");
  (void)do_as(world, world_schedule(world, COMMAND_SCHEDULE_RESUME, &made.as.schedule.id), "schedule-resume");
  (void)do_as(world, world_schedule(world, COMMAND_SCHEDULE_DELETE, &made.as.schedule.id), "schedule-delete");
}

/* A minute after what was told so far. */
static void tell_of_retention(struct world *world) {
  world->retention_us = 60000000;
  world_restart(world);
  world_advance_ms(world, 61000);
  assert_true(state_retained_seq(world->engine->state) != 0);
  assert_int_equal(world_hello(world, 1, 1).status, STATUS_OK);
}

static void story(struct world *world) {
  struct fault fault = {0};
  tell_of_objects(world);
  assert_int_equal(world_hello(world, 1, 1).status, STATUS_OK);
  tell_of_a_safe_retry(world);
  tell_of_an_unknown_outcome(world);
  world_restart(world);
  assert_int_equal(world_hello(world, 1, 1).status, STATUS_OK);
  tell_of_a_cancel(world);
  tell_of_subscriptions(world);
  tell_of_a_schedule(world);
  tell_of_retention(world);
  (void)world_submitted(world, "running");
  struct push push = given(world);
  world_start(world, &push);
  (void)world_submitted(world, "waiting");
  world_advance_ms(world, 10);
  assert_int_equal(engine_finish(world->engine, world->now_us, "SIGTERM", &fault), STATUS_OK);
}

/* ---- files ---- */

static struct path golden_path(const char *name, const char *ending) {
  char file[80];
  (void)snprintf(file, sizeof file, "%.60s%.8s", name, ending);
  return path_of(GOLDEN_DIRECTORY, file);
}

static void write_new(const char *name, const char *ending, struct bytes content) {
  const struct path path = golden_path(name, ending);
  FILE *file = fopen(path.text, "wbx");
  if (file == NULL) fail_msg("%s cannot be made", path.text);
  assert_int_equal(fwrite(content.data, 1, content.size, file), content.size);
  assert_int_equal(fclose(file), 0);
  print_message("wrote %s\n", path.text);
}

static void write_log(const char *name) {
  struct world *world = guard_calloc(1, sizeof *world);
  struct journal_reader *reader;
  struct bytes record;
  struct buffer out;
  world_open(world);
  story(world);
  buffer_init(&out, SIZE_MAX);
  buffer_append_bytes(&out, journal_genesis(world->journal));
  assert_int_equal(out.size, genesis_bytes);
  assert_int_equal(journal_reader_new(world->journal, &reader), STATUS_OK);
  for (uint64_t seq = 1; journal_reader_get(reader, seq, &record) == STATUS_OK; seq++) buffer_append_bytes(&out, record);
  journal_reader_free(reader);
  write_new(name, ".bin", buffer_bytes(&out));
  buffer_clear(&out);
  world_close(world);
  free(world);
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

/* Names without ".bin", in order. */
static unsigned golden_names(char names[golden_logs_max][64]) {
  unsigned count = 0;
  DIR *directory = opendir(GOLDEN_DIRECTORY);
  if (directory == NULL) fail_msg(GOLDEN_DIRECTORY " is missing");
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    const char *ending = strrchr(entry->d_name, '.');
    if (ending == NULL || strcmp(ending, ".bin") != 0) continue;
    assert_true(count < golden_logs_max);
    (void)snprintf(names[count++], sizeof names[0], "%.*s", (int)(ending - entry->d_name), entry->d_name);
  }
  (void)closedir(directory);
  qsort(names, count, sizeof names[0], by_name);
  return count;
}

/* ---- replaying ---- */

static uint32_t little_u32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return le32toh(value);
}

/* Makes a data directory of it, record by record as they stand there. How many events. */
static uint64_t unpack(struct bytes golden, const char *data) {
  struct journal_options options = fixture_options(true);
  options.genesis = bytes_of(golden.data, genesis_bytes);
  struct journal *journal = fixture_open_with(data, options);
  struct commit commit;
  struct event header;
  struct fault fault = {.message = ""};
  uint64_t seq = 0;
  commit_init(&commit);
  for (size_t at = genesis_bytes, size; at < golden.size; at += size) {
    assert_true(golden.size - at >= record_header_bytes);
    size = record_header_bytes + little_u32(golden.data + at); /* its first field: the size of the body */
    assert_true(golden.size - at >= size);
    assert_int_equal(record_header_decode(bytes_of(golden.data + at, size), &header), STATUS_OK);
    assert_int_equal(header.seq, ++seq);
    if (event_type_text(header.type)[0] != 0) covered[header.type] = true;
    assert_int_equal(commit_take_over(&commit, bytes_of(golden.data + at, size), header.seq, header.time_us), STATUS_OK);
  }
  if (journal_take_over(journal, &commit, &fault) != STATUS_OK) fail_msg("%s", fault.message);
  commit_clear(&commit);
  journal_close(journal, true);
  return seq;
}

/* What its views come to, by a fold of this version. */
static void judge_fold(const char *data, char *out, size_t size) {
  static const struct position end;
  struct scan *scan = scan_new(data);
  struct folding folding;
  struct fault fault = {.message = ""};
  assert_int_equal(reading_fold(scan, &end, &folding), exit_done);
  if (state_check(folding.state, &fault) != STATUS_OK) fail_msg("%s", fault.message);
  struct id digest = state_digest(folding.state);
  (void)snprintf(out, size, "%" PRIu64 " events, %" PRIu64 " tasks, views %s\n", folding.last_seq,
                 state_task_count(folding.state), id_text(&digest).text);
  folding_clear(&folding);
  scan_free(scan);
}

static void judge_by_tools(const char *data, uint64_t events) {
  struct api_run run;
  rig_replay(&run, "verify", "--data", data, NULL);
  rig_expect(&run, 0);
  assert_int_equal(rig_number(&run, " events"), events);
  api_run_clear(&run);
  rig_replay(&run, "stats", "--data", data, NULL);
  rig_expect(&run, 0);
  assert_non_null(strstr(run.out, "task.accepted"));
  api_run_clear(&run);
}

/* A server of this version takes it up, goes on, and what it leaves is sound. */
static void judge_by_server(struct api_server *server, const char *data, uint64_t events) {
  struct api_run run;
  assert_in_range(snprintf(server->data, sizeof server->data, "%s", data), 1, sizeof server->data - 1);
  api_server_start(server, NULL);
  assert_int_equal(api_server_stop(server, SIGTERM), 0);
  rig_replay(&run, "verify", "--data", data, NULL);
  rig_expect(&run, 0);
  assert_true(rig_number(&run, " events") > events);
  api_run_clear(&run);
}

static void judge(struct api_server *server, const char *name) {
  char found[128];
  const struct path data = path_of(server->directory, name);
  struct bytes golden = test_file_read(golden_path(name, ".bin").text);
  assert_true(golden.data != NULL && golden.size > genesis_bytes);
  uint64_t events = unpack(golden, data.text);
  free((void *)(uintptr_t)golden.data);
  judge_fold(data.text, found, sizeof found);
  struct bytes wanted = test_file_read(golden_path(name, ".txt").text);
  if (wanted.data == NULL && getenv("ORBIT_GOLDEN_WRITE") != NULL) write_new(name, ".txt", bytes_text(found));
  else if (wanted.data == NULL) fail_msg("%s.txt is missing: ORBIT_GOLDEN_WRITE=1 writes it", name);
  else if (!bytes_equal_text(wanted, found)) fail_msg("%s: %s, and not %.*s", name, found, (int)wanted.size, wanted.data);
  free((void *)(uintptr_t)wanted.data);
  judge_by_tools(data.text, events);
  judge_by_server(server, data.text, events);
}

/* ---- tests ---- */

static void golden_logs_replay_to_the_same_views(void **state) {
  (void)state;
  static char names[golden_logs_max][64];
  struct api_server server;
  (void)api_program("orbit-replay");
  api_server_make(&server);
  unsigned count = golden_names(names);
  assert_true(count > 0);
  for (unsigned i = 0; i < count; i++) {
    print_message("%s\n", names[i]);
    judge(&server, names[i]);
  }
  api_server_remove(&server);
}

/* Types that are so new that no log holds one. */
static unsigned uncovered(bool say) {
  unsigned missing = 0;
  for (unsigned type = 1; type < EVENT_type_end; type++) {
    if (event_type_text((enum event_type)type)[0] == 0 || covered[type]) continue;
    missing++;
    if (say) print_message("no golden log has a %s\n", event_type_text((enum event_type)type));
  }
  return missing;
}

static void every_type_of_event_is_in_one(void **state) {
  (void)state;
  if (uncovered(true) != 0)
    fail_msg("let story() in tests/replay/golden_log_test.c make one, then run ORBIT_GOLDEN_WRITE=1 replay_golden_log_test");
}

/* Writes what is missing, before it is judged. */
static void write_missing(void) {
  static char names[golden_logs_max][64];
  char name[64], first[32];
  (void)snprintf(first, sizeof first, "v%d", format_now);
  unsigned count = golden_names(names), same = 0;
  for (unsigned i = 0; i < count; i++) {
    struct bytes golden = test_file_read(golden_path(names[i], ".bin").text);
    char *top = test_directory_make();
    (void)unpack(golden, path_of(top, "log-to-read").text);
    test_directory_remove(top);
    free((void *)(uintptr_t)golden.data);
    same += strncmp(names[i], first, strlen(first)) == 0;
  }
  if (same != 0 && uncovered(false) == 0) return;
  if (same == 0) (void)snprintf(name, sizeof name, "%s", first);
  else (void)snprintf(name, sizeof name, "%s-%u", first, same + 1);
  write_log(name);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_logs_replay_to_the_same_views),
      cmocka_unit_test(every_type_of_event_is_in_one),
  };
  const char *write = getenv("ORBIT_GOLDEN_WRITE");
  if (write != NULL && strcmp(write, "1") == 0) write_missing();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
