/* Long random walks of everything that producers, workers, people, administrators and time may do, with restarts between: after
 * every tick the invariants hold, the log folds to the same views, and no task breaks the laws of its life. */
#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

enum { tasks_max = 600, held_max = 256, sessions = 4, texts_max = 8 };

struct walk {
  struct world *world;
  uint64_t seed;
  struct task known[tasks_max]; /* as seen last */
  unsigned count;
  struct push held[held_max]; /* assignments, old ones too: late reports come from them */
  unsigned holding;
  struct command repeats[64]; /* commands that were answered OK, to be said again */
  struct answer answers[64];
  unsigned repeat_count;
  unsigned keys;
};

static uint64_t roll(struct walk *walk, uint64_t sides) { return test_random(&walk->seed) % sides; }

static const char *new_key(struct walk *walk, char out[16]) {
  (void)snprintf(out, 16, "w%u", walk->keys++);
  return out;
}

/* ---- the laws of one task's life ---- */

static void judge(struct task *seen, const struct task *now) {
  assert_true(id_equal(&seen->id, &now->id));
  assert_true(now->revision >= seen->revision && now->epoch >= seen->epoch && now->attempt_count >= seen->attempt_count);
  assert_true(now->attempt_count <= now->max_attempts && now->last_seq >= seen->last_seq);
  assert_true(now->deadline_at == seen->deadline_at && now->created_at == seen->created_at);
  assert_true(seen->cancel_requested_at == 0 || now->cancel_requested_at == seen->cancel_requested_at);
  if (seen->effect_uncertain && !now->effect_uncertain) /* cleared by a success or a review alone */
    assert_true(now->state == TASK_SUCCEEDED || (now->state == TASK_FAILED && task_result_seq(now) != 0));
  if (seen->state == TASK_SUCCEEDED || seen->state == TASK_FAILED || seen->state == TASK_CANCELLED) {
    struct task same = *now;
    same.last_seq = seen->last_seq; /* evidence */
    same.retried = seen->retried;
    assert_memory_equal(&same, seen, sizeof same);
    assert_true(now->retried || !seen->retried);
  }
  *seen = *now;
}

static void look_at_all(struct walk *walk) {
  struct fault fault = {0};
  if (state_check(walk->world->engine->state, &fault) != STATUS_OK) fail_msg("check: %s", fault.message);
  for (unsigned i = 0; i < walk->count; i++) {
    const struct task *now = state_task(walk->world->engine->state, &walk->known[i].id);
    assert_non_null(now);
    judge(&walk->known[i], now);
  }
}

/* ---- steps ---- */

static void remember(struct walk *walk, const struct command *command, const struct answer *answer) {
  if (answer->status != STATUS_OK || id_is_zero(&command->operation.identity)) return;
  unsigned at = walk->repeat_count < 64 ? walk->repeat_count++ : (unsigned)roll(walk, 64);
  walk->repeats[at] = *command;
  walk->answers[at] = *answer;
}

static void collect(struct walk *walk) {
  for (const struct push *push; (push = world_take(walk->world, MAIL_ASSIGN, 0)) != NULL;)
    walk->held[walk->holding < held_max ? walk->holding++ : (unsigned)roll(walk, held_max)] = *push;
  if (walk->world->push_count > 2000) world_forget(walk->world);
}

static struct answer say(struct walk *walk, const struct command *command) {
  struct answer answer = world_do(walk->world, command);
  remember(walk, command, &answer);
  return answer;
}

static void step_submit(struct walk *walk) {
  char key[16];
  static const char *const concurrency[] = {NULL, NULL, "k1", "k2"};
  static const char *const handlers[] = {"h", "h", "h", "g"};
  if (walk->count == tasks_max) return;
  struct command command = world_submit(walk->world, "");
  struct submit_command *submit = &command.as.submit;
  const char *text = concurrency[roll(walk, 4)];
  if (text != NULL) submit->concurrency_key = bytes_text(text);
  submit->handler = bytes_text(handlers[roll(walk, 4)]);
  submit->priority = (uint32_t)roll(walk, 10);
  submit->max_attempts = (uint32_t)roll(walk, 4) + 1;
  submit->recovery_safety = roll(walk, 2) != 0 ? RECOVERY_IDEMPOTENT : RECOVERY_RECONCILE_ONLY;
  submit->task_timeout_ms = 20000 + roll(walk, 200000);
  submit->attempt_timeout_ms = 1000 + (uint32_t)roll(walk, 10000);
  submit->initial_delay_ms = (uint32_t)roll(walk, 1000);
  submit->max_delay_ms = submit->initial_delay_ms + (uint32_t)roll(walk, 3000);
  if (roll(walk, 3) == 0) submit->available_at = walk->world->now_us + (int64_t)roll(walk, 10000000);
  if (roll(walk, 4) == 0) submit->start_deadline_at = walk->world->now_us + 10000000 + (int64_t)roll(walk, 10000000);
  world_identify(walk->world, &command, new_key(walk, key));
  struct answer answer = say(walk, &command);
  if (answer.status == STATUS_OK) walk->known[walk->count++] = answer.as.task;
}

static void step_worker(struct walk *walk) {
  if (walk->holding == 0) return;
  /* Newer ones more often. */
  unsigned at = roll(walk, 3) != 0 && walk->holding > 6 ? walk->holding - 1 - (unsigned)roll(walk, 6)
                                                        : (unsigned)roll(walk, walk->holding);
  const struct push *push = &walk->held[at];
  static const enum command_kind kinds[] = {COMMAND_START, COMMAND_START, COMMAND_RENEW, COMMAND_RELEASE};
  static const enum outcome outcomes[] = {OUTCOME_SUCCEEDED, OUTCOME_FAILED, OUTCOME_UNKNOWN, OUTCOME_CANCELLED};
  bool report = roll(walk, 2) != 0;
  enum outcome outcome = outcomes[roll(walk, 4)];
  struct command command = report ? world_finish(walk->world, push, outcome, outcome == OUTCOME_FAILED && roll(walk, 2) != 0)
                                  : world_ref(walk->world, kinds[roll(walk, 4)], push);
  (void)say(walk, &command);
}

static void step_people(struct walk *walk) {
  char key[16];
  if (walk->count == 0) return;
  const struct task *task = &walk->known[roll(walk, walk->count)];
  uint64_t revision = roll(walk, 5) == 0 ? task->revision + 1 : task->revision;
  struct command command;
  switch (roll(walk, 3)) {
    case 0:
      command = world_cancel(walk->world, &task->id, new_key(walk, key));
      break;
    case 1:
      command = world_review(walk->world, &task->id, revision, roll(walk, 2) != 0 ? OUTCOME_SUCCEEDED : OUTCOME_FAILED,
                             new_key(walk, key));
      break;
    default:
      command = world_retry(walk->world, &task->id, revision, new_key(walk, key));
      break;
  }
  struct answer answer = say(walk, &command);
  if (command.kind == COMMAND_RETRY && answer.status == STATUS_OK && walk->count < tasks_max)
    walk->known[walk->count++] = answer.as.task;
}

static void step_administration(struct walk *walk) {
  struct world *world = walk->world;
  struct queue queue = world_get_queue(world, &world->queue_id);
  if (roll(walk, 2) == 0) {
    world_pause(world, &world->queue_id, !queue.paused);
    return;
  }
  struct queue_command change = {.given = (unsigned)roll(walk, 64) & ~(unsigned)GIVEN_NAME,
                                 .max_unfinished = roll(walk, 2) * 200,
                                 .max_running = roll(walk, 6),
                                 .key_concurrency = roll(walk, 3) + 1,
                                 .rate_tasks = roll(walk, 3) * 3,
                                 .rate_per_ms = 1000 + roll(walk, 1000),
                                 .rate_burst = roll(walk, 4),
                                 .lease_ms = lease_ms_min + roll(walk, 20000)};
  (void)world_change_queue(world, &world->queue_id, &change);
}

static void step_session(struct walk *walk) {
  static const struct handler_offer offers[2] = {{{(const uint8_t *)"h", 1}, {(const uint8_t *)"v1", 2}},
                                                 {{(const uint8_t *)"g", 1}, {(const uint8_t *)"v1", 2}}};
  uint64_t session = roll(walk, sessions) + 1;
  if (roll(walk, 3) == 0) {
    world_bye(walk->world, session);
    return;
  }
  struct command hello = world_hello_command(walk->world, session, (uint32_t)roll(walk, 8) + 1);
  hello.as.hello.handlers = offers;
  hello.as.hello.handler_count = (uint32_t)roll(walk, 2) + 1;
  struct answer answer = world_do(walk->world, &hello);
  if (answer.status == STATUS_OK) free(answer.as.welcome.held);
}

/* The same request again: the same answer, whatever has happened since. */
static void step_repeat(struct walk *walk) {
  if (walk->repeat_count == 0) return;
  unsigned at = (unsigned)roll(walk, walk->repeat_count);
  const struct answer *first = &walk->answers[at];
  struct answer again = world_do(walk->world, &walk->repeats[at]);
  assert_int_equal(again.status, STATUS_OK);
  enum command_kind kind = walk->repeats[at].kind;
  if (kind == COMMAND_START || kind == COMMAND_FINISH || kind == COMMAND_RELEASE) {
    assert_true(again.as.worker.deduplicated && again.as.worker.applied == first->as.worker.applied &&
                again.as.worker.evidence == first->as.worker.evidence &&
                again.as.worker.disposition == first->as.worker.disposition);
    assert_true(again.as.worker.task_state == first->as.worker.task_state &&
                again.as.worker.task_revision == first->as.worker.task_revision &&
                again.as.worker.available_at == first->as.worker.available_at);
    return;
  }
  assert_true(again.deduplicated && !again.created);
  assert_true(id_equal(&again.as.task.id, &first->as.task.id) && id_equal(&again.audit_id, &first->audit_id));
  assert_true(again.as.task.state == first->as.task.state && again.as.task.revision == first->as.task.revision &&
              again.as.task.updated_at == first->as.task.updated_at &&
              again.as.task.available_at == first->as.task.available_at &&
              task_completed_at(&again.as.task) == task_completed_at(&first->as.task) && again.applied == first->applied &&
              again.as.task.effect_uncertain == first->as.task.effect_uncertain);
}

static void step_time(struct walk *walk) {
  struct world *world = walk->world;
  world_tick(world);
  if (world->next_us != INT64_MAX && roll(walk, 2) == 0)
    world->now_us = world->next_us + (int64_t)roll(walk, 3) - 1; /* just before, at, just after */
  else world->now_us += (int64_t)roll(walk, 3000000);
  world_tick(world);
}

static void random_walk(struct world *world, uint64_t seed, unsigned steps) {
  struct walk *walk = calloc(1, sizeof *walk);
  walk->world = world;
  walk->seed = seed;
  for (unsigned step = 0; step < steps; step++) {
    uint64_t which = roll(walk, 100);
    if (which < 20) step_submit(walk);
    else if (which < 58) step_worker(walk);
    else if (which < 68) step_people(walk);
    else if (which < 71) step_administration(walk);
    else if (which < 78) step_session(walk);
    else if (which < 86) step_repeat(walk);
    else if (which < 99) step_time(walk);
    else world_restart(world);
    collect(walk);
    look_at_all(walk);
    if (step % 100 == 99) world_check(world);
  }
  world_check(world);
  assert_true(walk->count > 20);
  free(walk);
}

static void walks(void **context) {
  (void)context;
  uint64_t seed = test_seed();
  unsigned ended = 0;
  for (unsigned i = 0; i < 4; i++) {
    struct world *world = malloc(sizeof *world);
    world_open(world);
    random_walk(world, test_random(&seed), 500);
    struct queue queue = world_get_queue(world, &world->queue_id);
    ended += (unsigned)(queue.counts[TASK_SUCCEEDED] + queue.counts[TASK_FAILED] + queue.counts[TASK_CANCELLED]);
    /* Long after: nothing is left that waits for anything but people. */
    world_advance_ms(world, 86400000);
    queue = world_get_queue(world, &world->queue_id);
    assert_int_equal(queue.counts[TASK_WAITING] + queue.counts[TASK_LEASED] + queue.counts[TASK_RUNNING], 0);
    world_check(world);
    world_close(world);
    free(world);
  }
  assert_true(ended > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(walks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
