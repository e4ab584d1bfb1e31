/* Owns one run: its steps, and the end at which faults stop and all work must drain. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "sim/sim.h"

/* ---- the steps ---- */

static uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15)); /* SplitMix64 */
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

void episode_steps(uint64_t seed, struct step *steps, uint32_t count) {
  static const unsigned weights[STEP_COUNT] = {
#define STEP(name, weight) weight,
      STEPS(STEP)
#undef STEP
  };
  unsigned all = 0;
  for (unsigned i = 0; i < STEP_COUNT; i++) all += weights[i];
  for (uint32_t i = 0; i < count; i++) {
    uint64_t which = next_random(&seed) % all;
    unsigned kind = 0;
    while (which >= weights[kind]) which -= weights[kind++];
    steps[i] = (struct step){.kind = (enum step_kind)kind, .luck = next_random(&seed)};
  }
}

static void step_tick(struct sim *sim) {
  sim_pass_us(sim, 1 + (int64_t)sim_roll(sim, 500));
  sim_tick(sim);
}

typedef void make_step(struct sim *sim);
static make_step *const makers[STEP_COUNT] = {
    [STEP_TICK] = step_tick,           [STEP_WAIT] = step_wait,         [STEP_EDGE] = step_edge,
    [STEP_SUBMIT] = step_submit,       [STEP_BATCH] = step_batch,       [STEP_WORK] = step_work,
    [STEP_LATE] = step_late,           [STEP_RENEW] = step_renew,       [STEP_CANCEL] = step_cancel,
    [STEP_REVIEW] = step_review,       [STEP_RETRY] = step_retry,       [STEP_RACE] = step_race,
    [STEP_REPEAT] = step_repeat,       [STEP_CONFLICT] = step_conflict, [STEP_READ] = step_read,
    [STEP_BROWSE] = step_browse,       [STEP_CONNECT] = step_connect,   [STEP_LEAVE] = step_leave,
    [STEP_CAPACITY] = step_capacity,   [STEP_DRAIN] = step_drain,       [STEP_QUEUE] = step_queue,
    [STEP_ADMIN] = step_admin,         [STEP_SCHEDULE] = step_schedule, [STEP_LOSE] = step_lose,
    [STEP_DUPLICATE] = step_duplicate, [STEP_CRASH] = step_crash,       [STEP_STOP] = step_stop,
    [STEP_BREAK] = step_break,         [STEP_DISK] = step_disk,         [STEP_SLOW] = step_slow,
    [STEP_CLOCK] = step_clock,         [STEP_FOLLOW] = step_follow,     [STEP_VIEWS] = step_views,
    [STEP_SUBSCRIBE] = step_subscribe, [STEP_FEED] = step_feed,
};

/* ---- the end ---- */

static void open_queues(struct sim *sim) {
  for (unsigned i = 0; i < sim->model.queue_count; i++) {
    struct request request = {.kind = COMMAND_QUEUE_CHANGE, .who = WHO_FIRST, .queue = (uint8_t)i, .key = sim_new_key(sim)};
    request.expected_revision = sim->model.queues[i].revision;
    request.given = GIVEN_MAX_RUNNING | GIVEN_RATE | GIVEN_KEY_CONCURRENCY;
    request.limits[LIMIT_KEY] = 1;
    (void)sim_ask(sim, &request);
    if (!sim->model.queues[i].paused) continue;
    request = (struct request){.kind = COMMAND_QUEUE_RESUME, .who = WHO_FIRST, .queue = (uint8_t)i, .key = sim_new_key(sim)};
    (void)sim_ask(sim, &request);
  }
}

/* One worker that does everything, and does it well. */
static void bring_worker(struct sim *sim) {
  struct request request = {.kind = COMMAND_BYE, .who = WHO_FIRST};
  for (unsigned i = 0; i < workers_max; i++) {
    if ((request.session = sim->workers[i].session) != 0) (void)sim_ask(sim, &request);
    sim->workers[i].session = 0;
    sim->workers[i].hand_count = 0;
  }
  request = (struct request){.kind = COMMAND_HELLO, .who = WHO_FIRST, .instance = instances_max - 1, .capacity = hands_max};
  request.queue_mask = sim_all_queues(sim);
  request.handler_mask = 7;
  sim->workers[0].who = WHO_FIRST;
  sim->workers[0].session = request.session = ++sim->sessions;
  (void)sim_ask(sim, &request);
}

static void work_off(struct sim *sim) {
  struct worker_here *worker = &sim->workers[0];
  for (uint32_t i = 0; i < hands_max && i < worker->hand_count; i++) {
    struct hand *hand = &worker->hands[i];
    if (hand->done) continue;
    struct request request = {.kind = hand->started ? COMMAND_FINISH : COMMAND_START, .session = worker->session};
    request.task_id = hand->task_id;
    request.attempt_id = hand->attempt_id;
    request.epoch = hand->epoch;
    request.key = sim_new_key(sim);
    if (hand->started) request.outcome = OUTCOME_SUCCEEDED;
    hand->done = hand->started;
    hand->started = true;
    (void)sim_ask(sim, &request);
  }
}

static void review_all(struct sim *sim) {
  const struct model *model = &sim->model;
  struct request requests[32];
  unsigned count = 0;
  for (uint32_t i = 0; i < model->unfinished_count && count < 32; i++) {
    const struct model_task *task = &model->tasks[model->unfinished[i]];
    if (task->state != TASK_NEEDS_REVIEW) continue;
    requests[count++] = (struct request){.kind = COMMAND_REVIEW,
                                         .key = sim_new_key(sim),
                                         .task_id = task->id,
                                         .expected_revision = task->revision,
                                         .outcome = OUTCOME_SUCCEEDED};
  }
  for (unsigned i = 0; i < count; i++) (void)sim_ask(sim, &requests[i]);
}

void sim_drain(struct sim *sim) {
  enum { rounds_max = 5000 };
  disk_set_room(sim->disk, ROOM_PLENTY);
  disk_set_fate(sim->disk, FATE_GOOD, 0);
  sim->lose_next = false;
  sim_tick(sim);
  sim_settle(sim);
  if (sim_is_well(sim)) sim_follow_all(sim); /* else receipts are out of reach, and administrators must ask again */
  if (!sim_is_well(sim)) return;
  sim_delete_schedules(sim);
  open_queues(sim);
  bring_worker(sim);
  for (unsigned round = 0; sim_is_well(sim) && (round == 0 || sim->model.unfinished_count != 0); round++) {
    work_off(sim);
    review_all(sim);
    bool idle = sim->pending_count == 0;
    if (idle && !sim->busy && sim->next_us == INT64_MAX)
      model_complain(&sim->model, "%u tasks are unfinished, and nothing will ever happen to them", sim->model.unfinished_count);
    if (round == rounds_max) model_complain(&sim->model, "the work does not drain");
    if (idle && !sim->busy) sim_pass_until(sim, sim->next_us);
    else sim_pass_us(sim, 100);
    sim_tick(sim);
    sim_settle(sim);
  }
  if (sim_is_well(sim)) sim_follow_all(sim);
}

/* ---- the run ---- */

static void trace_step(const struct sim *sim, uint32_t number, const struct step *step) {
  if (!sim->trace) return;
  (void)printf("  step %-6u %-10s now %lld, %u on their way, %u unfinished\n", number, step_kind_text(step->kind),
               (long long)sim->now_us, sim->pending_count, sim->model.unfinished_count);
  (void)fflush(stdout); /* a defect may end the process in the next step */
}

void episode_run(const struct episode *episode, struct episode_result *ret_result) {
  struct sim *sim = guard_malloc(sizeof *sim);
  uint32_t at = 0;
  sim_open(sim, episode->seed, episode->mistake, episode->trace);
  for (; at < episode->count && sim_is_well(sim); at++) {
    ret_result->step = at;
    sim->dice = episode->steps[at].luck;
    trace_step(sim, at, &episode->steps[at]);
    makers[episode->steps[at].kind](sim);
    sim->counts.steps++;
  }
  sim->dice = episode->seed;
  ret_result->step = at;
  if (sim_is_well(sim)) sim_drain(sim);
  if (sim_is_well(sim)) sim_read_out(sim);
  if (sim_is_well(sim)) sim_compare_all(sim);
  sim_compare_fold(sim);
  sim_compare_views(sim);
  sim->counts.digest = disk_digest(sim->disk);
  ret_result->counts = sim->counts;
  (void)snprintf(ret_result->complaint, sizeof ret_result->complaint, "%s", sim->model.complaint);
  sim_close(sim);
  free(sim);
}
