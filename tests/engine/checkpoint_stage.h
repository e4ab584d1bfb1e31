/* A world with a checkpoint beside it: following, loading, comparing, and a walk through everything that can happen. */
#ifndef ORBIT_TESTS_CHECKPOINT_STAGE_H
#define ORBIT_TESTS_CHECKPOINT_STAGE_H

#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"
#include "state/checkpoint.h"

struct stage {
  struct world world;
  char views[300];
  struct checkpoint *checkpoint; /* NULL: nobody follows */
  uint64_t random;
  uint64_t serial;
  struct id tasks[512];
  uint32_t task_count;
};

static inline int open_stage(void **context) {
  struct stage *stage = calloc(1, sizeof *stage);
  world_open(&stage->world);
  (void)snprintf(stage->views, sizeof stage->views, "%s/views", stage->world.directory);
  *context = stage;
  return 0;
}

static inline int close_stage(void **context) {
  struct stage *stage = *context;
  checkpoint_close(stage->checkpoint);
  world_close(&stage->world);
  free(stage);
  return 0;
}

/* ---- following and loading ---- */

static inline void begin_following(struct stage *stage) {
  struct fault fault = {0};
  if (checkpoint_open(stage->views, UINT64_C(1) << 30, stage->world.journal, &stage->checkpoint, &fault) != STATUS_OK)
    fail_msg("open: %s", fault.message);
}

static inline void stop_following(struct stage *stage) {
  checkpoint_close(stage->checkpoint);
  stage->checkpoint = NULL;
}

static inline uint64_t follow_some(struct stage *stage, uint64_t events_max) {
  struct fault fault = {0};
  uint64_t events;
  if (checkpoint_follow(stage->checkpoint, events_max, &events, &fault) != STATUS_OK) fail_msg("follow: %s", fault.message);
  return events;
}

static inline void follow_all(struct stage *stage) {
  if (stage->checkpoint == NULL) begin_following(stage);
  while (follow_some(stage, 100) != 0) continue;
  assert_int_equal(checkpoint_seq(stage->checkpoint), journal_last_seq(stage->world.journal));
}

static inline enum status load(struct stage *stage, struct state **ret_state, struct checkpoint_position *ret_position,
                               struct fault *fault) {
  *fault = (struct fault){.message = ""};
  return checkpoint_load(stage->views, stage->world.journal, ret_state, ret_position, fault);
}

static inline enum status fold(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  const char *reason = "";
  (void)record;
  if (state_meet(context, event) != STATUS_OK) return fault_set(fault, STATUS_CORRUPT, NULL, "a row cannot be read");
  if (!state_can_apply(context, event, &reason)) return fault_set(fault, STATUS_CORRUPT, NULL, "%s", reason);
  state_apply(context, event);
  state_close_cold(context);
  return STATUS_OK;
}

/* Loads, folds the rest, and compares with the state that the engine serves. Nobody follows meanwhile. Returns the watermark.
 */
static inline uint64_t expect_equal(struct stage *stage) {
  struct state *state;
  struct checkpoint_position position;
  struct fault fault;
  uint64_t compared;
  struct cold *cold = cold_new();
  if (load(stage, &state, &position, &fault) != STATUS_OK) fail_msg("load: %s", fault.message);
  assert_int_equal(state_last_seq(state), position.seq);
  if (state_check(state, &fault) != STATUS_OK) fail_msg("check of what was loaded: %s", fault.message);
  begin_following(stage);
  if (checkpoint_lend(stage->checkpoint, cold, &fault) != STATUS_OK) fail_msg("lend: %s", fault.message);
  state_set_cold(state, cold);
  if (journal_replay(stage->world.journal, position.seq, position.chain, fold, state, &fault) != STATUS_OK)
    fail_msg("replay: %s", fault.message);
  if (state_check(state, &fault) != STATUS_OK) fail_msg("check: %s", fault.message);
  struct id loaded = state_digest(state), live = state_digest(stage->world.engine->state);
  assert_string_equal(id_text(&loaded).text, id_text(&live).text);
  cold_withdraw(cold);
  cold_free(cold);
  state_free(state);
  stop_following(stage);
  state = world_fold(&stage->world);
  if (checkpoint_compare(stage->views, stage->world.journal, state, &compared, &fault) != STATUS_OK)
    fail_msg("compare: %s", fault.message);
  assert_int_equal(compared, position.seq);
  state_free(state);
  return position.seq;
}

static inline void expect_refused(struct stage *stage, enum status status, const char *says) {
  struct state *state;
  struct checkpoint_position position;
  struct fault fault;
  assert_int_equal(load(stage, &state, &position, &fault), status);
  if (strstr(fault.message, says) == NULL) fail_msg("\"%s\" does not say \"%s\"", fault.message, says);
}

/* ---- a walk: everything that can happen, in any order ---- */

static inline uint64_t roll(struct stage *stage, uint64_t sides) { return test_random(&stage->random) % sides; }

static const char *key_text(struct stage *stage) {
  static char texts[8][24];
  char *text = texts[stage->serial % 8];
  (void)snprintf(text, sizeof texts[0], "w%llu", (unsigned long long)stage->serial++);
  return text;
}

static inline void step_submit(struct stage *stage) {
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

static inline void step_hello(struct stage *stage) {
  (void)world_hello(&stage->world, 1 + roll(stage, 5), 1 + (uint32_t)roll(stage, 6));
}

/* Whatever was assigned is started, and reported, or not. */
static inline void step_work(struct stage *stage) {
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

static inline void step_people(struct stage *stage) {
  struct world *world = &stage->world;
  if (stage->task_count == 0) return;
  const struct id *id = &stage->tasks[roll(stage, stage->task_count < 512 ? stage->task_count : 512)];
  const struct task *task = state_task(world->engine->state, id);
  uint64_t revision = task->revision;
  struct command command;
  switch (roll(stage, 3)) {
    case 0:
      command = world_cancel(world, id, key_text(stage));
      break;
    case 1:
      command = world_review(world, id, revision, roll(stage, 2) == 0 ? OUTCOME_SUCCEEDED : OUTCOME_FAILED, key_text(stage));
      break;
    default:
      command = world_retry(world, id, revision, key_text(stage));
      break;
  }
  (void)world_do(world, &command);
}

static inline void step_administration(struct stage *stage) {
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

/* Cursors are made, move, and go; most of what is asked is refused, as their number is small and the names are few. */
static inline void step_reader(struct stage *stage) {
  static const char *const names[] = {"r1", "r2", "r3", "r4"};
  static struct id made[4];
  struct world *world = &stage->world;
  unsigned which = (unsigned)roll(stage, 4);
  uint64_t what = roll(stage, 4);
  const char *key = key_text(stage);
  struct command command = {.kind = what == 0   ? COMMAND_SUBSCRIPTION_CREATE
                                    : what == 1 ? COMMAND_SUBSCRIPTION_DELETE
                                                : COMMAND_SUBSCRIPTION_ACK,
                            .who = world->who};
  struct subscription_command *subscription = &command.as.subscription;
  if (what == 0) {
    subscription->name = bytes_text(names[which]);
    subscription->from = FEED_FROM_LATEST;
    if (roll(stage, 2) == 0) subscription->queue_id = world->queue_id;
    if (roll(stage, 2) == 0) assert_true(feed_types_parse(bytes_text("task.failed,task.reviewed"), &subscription->types));
  } else {
    subscription->id = made[which];
    if (what > 1) subscription->position = 1 + roll(stage, journal_last_seq(world->journal));
  }
  world_identify(world, &command, key);
  struct answer answer = world_do(world, &command);
  if (what == 0 && answer.status == STATUS_OK) made[which] = answer.as.subscription.id;
}

static inline void step_time(struct stage *stage) {
  static const int64_t ms[] = {1, 100, 700, 3000, 35000};
  world_advance_ms(&stage->world, ms[roll(stage, 5)]);
}

static inline void step_restart(struct stage *stage) {
  stop_following(stage);
  world_restart(&stage->world);
  world_forget(&stage->world);
}

/* The follower goes on, or ends somewhere and comes back, or is not there for a while. */
static inline void step_follower(struct stage *stage) {
  if (stage->checkpoint == NULL) begin_following(stage);
  (void)follow_some(stage, 1 + roll(stage, 200));
  if (roll(stage, 3) != 0) return;
  stop_following(stage);
  (void)expect_equal(stage);
}

static inline void walk(struct stage *stage, unsigned steps) {
  typedef void step(struct stage *);
  static step *const all[] = {step_reader, step_submit, step_submit, step_submit, step_submit, step_hello,    step_work,
                              step_work,   step_work,   step_people, step_time,   step_time,   step_follower, step_follower};
  for (unsigned i = 0; i < steps; i++) {
    uint64_t rare = roll(stage, 60);
    if (rare == 0) step_restart(stage);
    else if (rare < 3) step_administration(stage);
    else all[roll(stage, sizeof all / sizeof all[0])](stage);
    if (stage->world.push_count > 3000) world_forget(&stage->world);
  }
}

#endif
