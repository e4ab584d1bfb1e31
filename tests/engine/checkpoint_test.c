/* The checkpoint beside a whole Orbit: whatever happens in it, and wherever the follower stood when it ended, loading and folding the rest gives
 * what the whole log gives. What does not fit the log is refused. */
#include "engine/world.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "engine/internal.h"
#include "journal/views_store.h"
#include "state/checkpoint.h"
#include "state/rows.h"

struct stage {
  struct world world;
  char views[300];
  struct checkpoint *checkpoint; /* NULL: nobody follows */
  uint64_t random;
  uint64_t serial;
  struct id tasks[512];
  uint32_t task_count;
};

static int open_stage(void **context) {
  struct stage *stage = calloc(1, sizeof *stage);
  world_open(&stage->world);
  (void)snprintf(stage->views, sizeof stage->views, "%s/views", stage->world.directory);
  *context = stage;
  return 0;
}

static int close_stage(void **context) {
  struct stage *stage = *context;
  checkpoint_close(stage->checkpoint);
  world_close(&stage->world);
  free(stage);
  return 0;
}

/* ---- following and loading ---- */

static void begin_following(struct stage *stage) {
  struct fault fault = {0};
  if (checkpoint_open(stage->views, UINT64_C(1) << 30, stage->world.journal, &stage->checkpoint, &fault) != STATUS_OK)
    fail_msg("open: %s", fault.message);
}

static void stop_following(struct stage *stage) {
  checkpoint_close(stage->checkpoint);
  stage->checkpoint = NULL;
}

static uint64_t follow_some(struct stage *stage, uint64_t events_max) {
  struct fault fault = {0};
  uint64_t events;
  if (checkpoint_follow(stage->checkpoint, events_max, &events, &fault) != STATUS_OK) fail_msg("follow: %s", fault.message);
  return events;
}

static void follow_all(struct stage *stage) {
  if (stage->checkpoint == NULL) begin_following(stage);
  while (follow_some(stage, 100) != 0) continue;
  assert_int_equal(checkpoint_seq(stage->checkpoint), journal_last_seq(stage->world.journal));
}

static enum status load(struct stage *stage, struct state **ret_state, struct checkpoint_position *ret_position, struct fault *fault) {
  *fault = (struct fault){.message = ""};
  return checkpoint_load(stage->views, stage->world.journal, ret_state, ret_position, fault);
}

static enum status fold(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  const char *reason = "";
  (void)record;
  if (!state_can_apply(context, event, &reason)) return fault_set(fault, STATUS_CORRUPT, NULL, "%s", reason);
  state_apply(context, event);
  return STATUS_OK;
}

/* Loads, folds the rest, and compares with the state that the engine serves. Nobody follows meanwhile. Returns the watermark. */
static uint64_t expect_equal(struct stage *stage) {
  struct state *state;
  struct checkpoint_position position;
  struct fault fault;
  uint64_t compared;
  if (load(stage, &state, &position, &fault) != STATUS_OK) fail_msg("load: %s", fault.message);
  assert_int_equal(state_last_seq(state), position.seq);
  if (state_check(state, &fault) != STATUS_OK) fail_msg("check of what was loaded: %s", fault.message);
  if (journal_replay(stage->world.journal, position.seq, position.chain, fold, state, &fault) != STATUS_OK)
    fail_msg("replay: %s", fault.message);
  if (state_check(state, &fault) != STATUS_OK) fail_msg("check: %s", fault.message);
  struct id loaded = state_digest(state), live = state_digest(stage->world.engine->state);
  assert_string_equal(id_text(&loaded).text, id_text(&live).text);
  if (checkpoint_compare(stage->views, stage->world.journal, state, &compared, &fault) != STATUS_OK)
    fail_msg("compare: %s", fault.message);
  assert_int_equal(compared, position.seq);
  state_free(state);
  return position.seq;
}

static void expect_refused(struct stage *stage, enum status status, const char *says) {
  struct state *state;
  struct checkpoint_position position;
  struct fault fault;
  assert_int_equal(load(stage, &state, &position, &fault), status);
  if (strstr(fault.message, says) == NULL) fail_msg("\"%s\" does not say \"%s\"", fault.message, says);
}

/* ---- a walk: everything that can happen, in any order ---- */

static uint64_t roll(struct stage *stage, uint64_t sides) { return test_random(&stage->random) % sides; }

static const char *key_text(struct stage *stage) {
  static char texts[8][24];
  char *text = texts[stage->serial % 8];
  (void)snprintf(text, sizeof texts[0], "w%llu", (unsigned long long)stage->serial++);
  return text;
}

static void step_submit(struct stage *stage) {
  static const char *const handlers[] = {"h", "h", "h", "other", "third"};
  static const char *const names[] = {"k1", "k2", "k3"};
  struct world *world = &stage->world;
  const char *key = key_text(stage);
  struct command command = world_submit(world, key);
  struct submit_command *submit = &command.as.submit;
  submit->handler = bytes_text(handlers[roll(stage, 5)]);
  if (roll(stage, 4) == 0) submit->queue_id = world->other_queue_id;
  if (roll(stage, 3) == 0) submit->concurrency_key = bytes_text(names[roll(stage, 3)]);
  if (roll(stage, 3) == 0) submit->business_key = bytes_text(names[roll(stage, 3)]);
  if (roll(stage, 4) == 0) submit->available_at = world->now_us + (int64_t)roll(stage, 60000000);
  if (roll(stage, 5) == 0) submit->task_timeout_ms = submit->attempt_timeout_ms = 5000;
  if (roll(stage, 2) == 0) submit->recovery_safety = RECOVERY_IDEMPOTENT;
  submit->priority = (uint32_t)roll(stage, 10);
  if (roll(stage, 3) == 0) command.who = world->other;
  world_identify(world, &command, key);
  struct answer answer = world_do(world, &command);
  if (answer.status == STATUS_OK) stage->tasks[stage->task_count++ % 512] = answer.as.task.id;
}

static void step_hello(struct stage *stage) {
  (void)world_hello(&stage->world, 1 + roll(stage, 5), 1 + (uint32_t)roll(stage, 6));
}

/* Whatever was assigned is started, and reported, or not. */
static void step_work(struct stage *stage) {
  static const enum outcome outcomes[] = {OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED, OUTCOME_FAILED, OUTCOME_UNKNOWN};
  struct world *world = &stage->world;
  for (unsigned i = 0; i < 4; i++) {
    const struct push *push = world_take(world, MAIL_ASSIGN, 0);
    if (push == NULL) return;
    struct command start = world_ref(world, COMMAND_START, push);
    uint64_t way = roll(stage, 6);
    if (way == 0) continue;
    if (way == 1) start = world_ref(world, COMMAND_RELEASE, push);
    (void)world_do(world, &start);
    if (way <= 2) continue;
    enum outcome outcome = outcomes[roll(stage, 4)];
    struct command finish = world_finish(world, push, outcome, outcome == OUTCOME_FAILED && roll(stage, 2) == 0);
    (void)world_do(world, &finish);
    if (way == 5) (void)world_do(world, &finish); /* a repeat; or evidence, when it is told otherwise */
  }
}

static void step_people(struct stage *stage) {
  struct world *world = &stage->world;
  if (stage->task_count == 0) return;
  const struct id *id = &stage->tasks[roll(stage, stage->task_count < 512 ? stage->task_count : 512)];
  const struct task *task = state_task(world->engine->state, id);
  uint64_t revision = task->revision;
  struct command command;
  switch (roll(stage, 3)) {
    case 0: command = world_cancel(world, id, key_text(stage)); break;
    case 1: command = world_review(world, id, revision, roll(stage, 2) == 0 ? OUTCOME_SUCCEEDED : OUTCOME_FAILED, key_text(stage)); break;
    default: command = world_retry(world, id, revision, key_text(stage)); break;
  }
  (void)world_do(world, &command);
}

static void step_administration(struct stage *stage) {
  struct world *world = &stage->world;
  struct queue_command change = {.given = GIVEN_KEY_CONCURRENCY | GIVEN_RATE | GIVEN_MAX_RUNNING};
  change.key_concurrency = 1 + roll(stage, 3);
  change.max_running = roll(stage, 2) * 8;
  if (roll(stage, 2) == 0) change.rate_tasks = 5, change.rate_per_ms = 1000, change.rate_burst = 3;
  if (roll(stage, 2) == 0) (void)world_change_queue(world, &world->queue_id, &change);
  bool paused = world_get_queue(world, &world->queue_id).paused;
  if (paused || roll(stage, 3) == 0) world_pause(world, &world->queue_id, !paused);
  struct command credential = world_credential(world, COMMAND_CREDENTIAL_CREATE, NULL);
  static const uint8_t hash[token_hash_bytes] = {1, 2, 3};
  credential.as.credential.application_id = world->application_id;
  credential.as.credential.permissions = 1;
  credential.as.credential.token_hash = bytes_of(hash, sizeof hash);
  if (roll(stage, 2) == 0) credential.as.credential.queue_ids = bytes_of(world->queue_id.bytes, id_bytes);
  world_identify(world, &credential, key_text(stage));
  if (roll(stage, 3) == 0) (void)world_do(world, &credential);
}

static void step_time(struct stage *stage) {
  static const int64_t ms[] = {1, 100, 700, 3000, 35000};
  world_advance_ms(&stage->world, ms[roll(stage, 5)]);
}

static void step_restart(struct stage *stage) {
  stop_following(stage);
  world_restart(&stage->world);
  world_forget(&stage->world);
}

/* The follower goes on, or ends somewhere and comes back, or is not there for a while. */
static void step_follower(struct stage *stage) {
  if (stage->checkpoint == NULL) begin_following(stage);
  (void)follow_some(stage, 1 + roll(stage, 200));
  if (roll(stage, 3) != 0) return;
  stop_following(stage);
  (void)expect_equal(stage);
}

static void walk(struct stage *stage, unsigned steps) {
  typedef void step(struct stage *);
  static step *const all[] = {step_submit, step_submit,  step_submit, step_submit, step_hello,  step_work,    step_work,
                              step_work,   step_people,  step_time,   step_time,   step_follower, step_follower};
  for (unsigned i = 0; i < steps; i++) {
    uint64_t rare = roll(stage, 60);
    if (rare == 0) step_restart(stage);
    else if (rare < 3) step_administration(stage);
    else all[roll(stage, sizeof all / sizeof all[0])](stage);
    if (stage->world.push_count > 3000) world_forget(&stage->world);
  }
}

static void any_life_loads_as_it_is_folded(void **context) {
  struct stage *stage = *context;
  stage->random = test_seed();
  walk(stage, 1500);
  follow_all(stage);
  stop_following(stage);
  assert_int_equal(expect_equal(stage), journal_last_seq(stage->world.journal));
  assert_true(state_task_count(stage->world.engine->state) > 100);
}

/* The same rows whether the follower goes commit by commit or takes all at once. */
static void the_size_of_a_batch_changes_nothing(void **context) {
  struct stage *stage = *context;
  stage->random = 5;
  begin_following(stage);
  walk(stage, 300);
  if (stage->checkpoint == NULL) begin_following(stage);
  while (follow_some(stage, 1) != 0) continue;
  stop_following(stage);
  (void)expect_equal(stage);
  assert_int_equal(checkpoint_remove(stage->views), STATUS_OK);
  begin_following(stage);
  assert_int_equal(follow_some(stage, UINT64_MAX), journal_last_seq(stage->world.journal));
  stop_following(stage);
  (void)expect_equal(stage);
}

static void a_batch_ends_with_a_commit_of_the_log(void **context) {
  struct stage *stage = *context;
  begin_following(stage); /* the world's first commit has several events */
  uint64_t first = follow_some(stage, 1);
  assert_true(first > 1);
  stop_following(stage);
  assert_int_equal(expect_equal(stage), first);
}

/* The lease of a running attempt is given back by each node.started; its row is not touched by that. */
static void leases_given_back_are_given_back_in_rows(void **context) {
  struct stage *stage = *context;
  struct world *world = &stage->world;
  (void)world_submitted(world, "a");
  struct push push = *world_assigned(world, 1);
  world_start(world, &push);
  follow_all(stage);
  for (unsigned restart = 0; restart < 3; restart++) {
    stop_following(stage);
    world->now_us += 4000000;
    world_restart(world);
    if (restart == 1) follow_all(stage);
    int64_t until = state_task(world->engine->state, &push.task_id)->attempt.lease_until;
    stop_following(stage);
    (void)expect_equal(stage);
    struct state *state;
    struct checkpoint_position position;
    struct fault fault;
    assert_int_equal(load(stage, &state, &position, &fault), STATUS_OK);
    if (restart == 1) assert_true(state_task(state, &push.task_id)->attempt.lease_until == until);
    state_free(state);
  }
}

/* ---- an end in the middle ---- */

static void a_batch_that_was_not_committed_is_not_there(void **context) {
  struct stage *stage = *context;
  stage->random = 9;
  walk(stage, 100);
  follow_all(stage);
  stop_following(stage);
  uint64_t before = expect_equal(stage);
  walk(stage, 60);
  stop_following(stage);
  assert_true(expect_equal(stage) >= before);
}

static void kill_a_follower(struct stage *stage, useconds_t after_us) {
  int ready[2];
  char byte = 0;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    struct journal_options options = {.read_only = true};
    struct journal *journal;
    struct checkpoint *checkpoint;
    struct fault fault;
    uint64_t events;
    char *arguments = stage->world.directory;
    if (journal_open(arguments, &options, &journal, &fault) != STATUS_OK) _exit(1);
    if (checkpoint_open(stage->views, UINT64_C(1) << 30, journal, &checkpoint, &fault) != STATUS_OK) _exit(2);
    if (write(ready[1], &byte, 1) != 1) _exit(3);
    while (checkpoint_follow(checkpoint, 7, &events, &fault) == STATUS_OK && events != 0) continue;
    _exit(0);
  }
  assert_true(child > 0);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  (void)usleep(after_us);
  (void)kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  (void)close(ready[0]), (void)close(ready[1]);
}

/* Killed wherever it was: what stands there is a commit's end, and the next follower goes on from it. */
static void a_killed_follower_leaves_a_sound_checkpoint(void **context) {
  struct stage *stage = *context;
  uint64_t seen = 0;
  stage->random = test_seed();
  walk(stage, 400);
  for (unsigned round = 0; round < 12; round++) {
    stop_following(stage);
    kill_a_follower(stage, (useconds_t)roll(stage, 20000));
    struct state *state;
    struct checkpoint_position position;
    struct fault fault;
    enum status status = load(stage, &state, &position, &fault);
    if (status == STATUS_NOT_FOUND) continue; /* killed before its first commit */
    assert_int_equal(status, STATUS_OK);
    state_free(state);
    assert_true(position.seq >= seen);
    seen = position.seq;
    (void)expect_equal(stage);
    walk(stage, 20);
  }
  follow_all(stage);
  stop_following(stage);
  (void)expect_equal(stage);
}

/* ---- what is not believed ---- */

static void nothing_is_there(void **context) {
  struct stage *stage = *context;
  expect_refused(stage, STATUS_NOT_FOUND, "views");
  begin_following(stage);
  stop_following(stage);
  expect_refused(stage, STATUS_NOT_FOUND, "nothing is in it yet");
}

static void deleted_views_are_made_again(void **context) {
  struct stage *stage = *context;
  stage->random = 3;
  walk(stage, 100);
  follow_all(stage);
  stop_following(stage);
  (void)expect_equal(stage);
  assert_int_equal(checkpoint_remove(stage->views), STATUS_OK);
  assert_int_equal(access(stage->views, F_OK), -1);
  assert_int_equal(checkpoint_remove(stage->views), STATUS_OK); /* twice is fine */
  expect_refused(stage, STATUS_NOT_FOUND, "views");
  follow_all(stage);
  stop_following(stage);
  (void)expect_equal(stage);
}

/* The bytes of a file, kept aside and put back. */
static struct bytes file_take(const struct stage *stage, const char *name) {
  char path[400];
  (void)snprintf(path, sizeof path, "%s/%s", stage->world.directory, name);
  struct bytes file = test_file_read(path);
  assert_non_null(file.data);
  return file;
}

static void file_put(const struct stage *stage, const char *name, struct bytes file) {
  char path[400];
  (void)snprintf(path, sizeof path, "%s/%s", stage->world.directory, name);
  int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, file.data, file.size), file.size);
  assert_int_equal(close(fd), 0);
}

static void expect_cannot_go_on(struct stage *stage, enum status status) {
  struct fault fault;
  struct checkpoint *checkpoint;
  assert_int_equal(checkpoint_open(stage->views, 0, stage->world.journal, &checkpoint, &fault), status);
}

/* An older copy of the log was put back: the checkpoint is of a longer one. */
static void ahead_of_a_restored_log(void **context) {
  struct stage *stage = *context;
  (void)world_submitted(&stage->world, "before");
  struct bytes log = file_take(stage, "log/data.mdb");
  (void)world_submitted(&stage->world, "after");
  follow_all(stage);
  stop_following(stage);
  engine_free(stage->world.engine);
  journal_close(stage->world.journal, false);
  file_put(stage, "log/data.mdb", log);
  struct journal_options options = {.map_bytes = UINT64_C(1) << 30};
  struct fault fault;
  assert_int_equal(journal_open(stage->world.directory, &options, &stage->world.journal, &fault), STATUS_OK);
  expect_refused(stage, STATUS_FOREIGN, "of a longer log");
  expect_cannot_go_on(stage, STATUS_FOREIGN);
  /* … and the restored one went another way since, and further. */
  struct state *state = state_new();
  assert_int_equal(journal_replay(stage->world.journal, 0, 0, fold, state, &fault), STATUS_OK);
  struct engine_options engine = {.id_seed = 99, .version = "test"};
  stage->world.engine = engine_new(stage->world.journal, state, &engine);
  assert_int_equal(engine_start(stage->world.engine, stage->world.now_us, &fault), STATUS_OK);
  for (unsigned i = 0; i < 10; i++) (void)world_submitted(&stage->world, key_text(stage));
  expect_refused(stage, STATUS_FOREIGN, "is not the log's");
  expect_cannot_go_on(stage, STATUS_FOREIGN);
  free((void *)(uintptr_t)log.data);
}

static void of_another_log(void **context) {
  struct stage *stage = *context, *other;
  assert_int_equal(open_stage((void **)&other), 0);
  follow_all(other);
  stop_following(other);
  begin_following(stage);
  stop_following(stage);
  struct bytes views = file_take(other, "views/data.mdb");
  file_put(stage, "views/data.mdb", views);
  expect_refused(stage, STATUS_FOREIGN, "another genesis");
  expect_cannot_go_on(stage, STATUS_FOREIGN);
  free((void *)(uintptr_t)views.data);
  assert_int_equal(close_stage((void **)&other), 0);
}

/* ---- changed rows ---- */

static struct views *open_rows(struct stage *stage) {
  struct views_options options = {.tables = rows_table_names, .table_count = ROWS_TABLE_COUNT};
  struct views *views;
  struct fault fault;
  assert_int_equal(views_open(stage->views, &options, &views, &fault), STATUS_OK);
  assert_int_equal(views_begin(views, true, &fault), STATUS_OK);
  return views;
}

static void close_rows(struct views *views) {
  struct fault fault;
  assert_int_equal(views_commit(views, &fault), STATUS_OK);
  views_close(views);
}

struct first_row {
  uint8_t key[32], value[4096];
  size_t key_size, value_size;
};

static enum status take_first(void *context, struct bytes key, struct bytes value) {
  struct first_row *row = context;
  memcpy(row->key, key.data, row->key_size = key.size);
  memcpy(row->value, value.data, row->value_size = value.size);
  return STATUS_END;
}

static struct first_row first_of(struct views *views, enum rows_table table) {
  struct first_row row = {.key_size = 0};
  assert_int_equal(views_each(views, table, take_first, &row), STATUS_END);
  return row;
}

/* Any bit of any row, and any row that is gone, is found. */
static void changed_rows_are_found(void **context) {
  struct stage *stage = *context;
  stage->random = 17;
  walk(stage, 150);
  step_administration(stage);
  struct command pause = world_queue(&stage->world, COMMAND_QUEUE_PAUSE, &stage->world.other_queue_id);
  world_identify(&stage->world, &pause, "pause");
  assert_int_equal(world_do(&stage->world, &pause).status, STATUS_OK);
  follow_all(stage);
  stop_following(stage);
  for (enum rows_table table = ROWS_OBJECTS; table < ROWS_TABLE_COUNT; table++) {
    struct views *views = open_rows(stage);
    if (table == ROWS_BUCKETS && views_count(views, table) == 0) {
      close_rows(views);
      continue;
    }
    struct first_row row = first_of(views, table);
    struct bytes key = bytes_of(row.key, row.key_size), value = bytes_of(row.value, row.value_size);
    row.value[roll(stage, row.value_size)] ^= (uint8_t)(1U << roll(stage, 8));
    assert_int_equal(views_put(views, table, key, value, false), STATUS_OK);
    close_rows(views);
    expect_refused(stage, STATUS_CORRUPT, "damaged");
    views = open_rows(stage);
    assert_int_equal(views_delete(views, table, key), STATUS_OK);
    close_rows(views);
    expect_refused(stage, STATUS_CORRUPT, "damaged");
    assert_int_equal(checkpoint_remove(stage->views), STATUS_OK);
    follow_all(stage);
    stop_following(stage);
  }
  (void)expect_equal(stage);
}

static void of_another_format(void **context) {
  struct stage *stage = *context;
  follow_all(stage);
  stop_following(stage);
  struct views *views = open_rows(stage);
  struct first_row row = first_of(views, ROWS_META);
  row.value[0]++;
  assert_int_equal(views_put(views, ROWS_META, bytes_of(row.key, row.key_size), bytes_of(row.value, row.value_size), false), STATUS_OK);
  close_rows(views);
  expect_refused(stage, STATUS_FOREIGN, "another format");
  expect_cannot_go_on(stage, STATUS_FOREIGN);
}

/* A file that is no store, or only the beginning of one. */
static void files_that_are_no_store(void **context) {
  struct stage *stage = *context;
  follow_all(stage);
  stop_following(stage);
  struct bytes sound = file_take(stage, "views/data.mdb");
  file_put(stage, "views/data.mdb", bytes_text("not a store at all"));
  expect_refused(stage, STATUS_CORRUPT, "views");
  expect_cannot_go_on(stage, STATUS_CORRUPT);
  file_put(stage, "views/data.mdb", bytes_of(sound.data, 3 * 4096));
  expect_refused(stage, STATUS_CORRUPT, "ends before");
  file_put(stage, "views/data.mdb", sound);
  (void)expect_equal(stage);
  free((void *)(uintptr_t)sound.data);
}

/* ---- comparing ---- */

static void a_fold_that_differs_is_named(void **context) {
  struct stage *stage = *context;
  struct task task = world_submitted(&stage->world, "a");
  follow_all(stage);
  stop_following(stage);
  struct state *state;
  struct checkpoint_position position;
  struct fault fault = {0};
  uint64_t seq = 0;
  assert_int_equal(load(stage, &state, &position, &fault), STATUS_OK);
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, state, &seq, &fault), STATUS_OK);
  assert_int_equal(seq, position.seq);
  state_task(state, &task.id)->epoch++;
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, state, &seq, &fault), STATUS_CORRUPT);
  assert_non_null(strstr(fault.message, id_text(&task.id).text));
  state_free(state);
}

/* The server went on while the log was being folded: either may be behind. */
static void comparing_brings_either_forward(void **context) {
  struct stage *stage = *context;
  struct fault fault = {0};
  uint64_t seq;
  (void)world_submitted(&stage->world, "a");
  struct state *early = state_new();
  assert_int_equal(journal_replay(stage->world.journal, 0, 0, fold, early, &fault), STATUS_OK);
  (void)world_submitted(&stage->world, "b");
  follow_all(stage);
  stop_following(stage);
  uint64_t watermark = journal_last_seq(stage->world.journal);
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, early, &seq, &fault), STATUS_OK);
  assert_true(seq == watermark && state_last_seq(early) == watermark);
  (void)world_submitted(&stage->world, "c");
  struct state *late = state_new();
  assert_int_equal(journal_replay(stage->world.journal, 0, 0, fold, late, &fault), STATUS_OK);
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, late, &seq, &fault), STATUS_OK);
  assert_int_equal(seq, watermark);
  state_free(early), state_free(late);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
  const struct CMUnitTest tests[] = {
      ROW(any_life_loads_as_it_is_folded),
      ROW(the_size_of_a_batch_changes_nothing),
      ROW(a_batch_ends_with_a_commit_of_the_log),
      ROW(leases_given_back_are_given_back_in_rows),
      ROW(a_batch_that_was_not_committed_is_not_there),
      ROW(a_killed_follower_leaves_a_sound_checkpoint),
      ROW(nothing_is_there),
      ROW(deleted_views_are_made_again),
      ROW(ahead_of_a_restored_log),
      ROW(of_another_log),
      ROW(changed_rows_are_found),
      ROW(of_another_format),
      ROW(files_that_are_no_store),
      ROW(a_fold_that_differs_is_named),
      ROW(comparing_brings_either_forward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
