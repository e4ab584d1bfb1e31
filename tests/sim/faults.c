/* Owns time, and what goes wrong with process, disk and clock. */
#include "sim/sim.h"

const char *fault_kind_text(enum fault_kind kind) {
  static const char *const texts[FAULT_COUNT] = {
#define FAULT(name, text) text,
      FAULTS(FAULT)
#undef FAULT
  };
  return texts[kind];
}

const char *step_kind_text(enum step_kind kind) {
  static const char *const texts[STEP_COUNT] = {
#define STEP(name, weight) #name,
      STEPS(STEP)
#undef STEP
  };
  return texts[kind];
}

void step_wait(struct sim *sim) {
  uint64_t luck = sim_roll(sim, 100);
  if (luck < 40) sim_pass_us(sim, (int64_t)sim_roll(sim, 300000));
  else if (luck < 70 && sim->next_us != INT64_MAX) { /* just before, at, just after */
    sim_pass_until(sim, sim->next_us + (int64_t)sim_roll(sim, 3) - 1);
    sim_tick(sim);
  } else if (luck < 92) sim_pass_us(sim, (int64_t)sim_roll(sim, 5000000));
  else if (luck < 99) sim_pass_us(sim, (int64_t)sim_roll(sim, 30000000));
  else sim_pass_us(sim, (int64_t)sim_roll(sim, 300000000));
}

/* ---- edges: something is asked just before, at or just after the instant at which a rule turns ---- */

/* An instant of the task at which something turns; 0: none. */
static int64_t some_edge(struct sim *sim, const struct model_task *task) {
  bool held = model_is_held(task->state);
  int64_t back = held ? (int64_t)model_delay_ms(task) * 1000 : 0;
  const int64_t edges[] = {model_due(task),
                           task->available_at,
                           held ? task->live_until : 0,
                           task->deadline_at - back, /* the next attempt would be due with the deadline */
                           task->start_deadline_at != 0 ? task->start_deadline_at - back : 0,
                           held ? task->attempt_deadline_at : 0};
  return edges[sim_roll(sim, sizeof edges / sizeof edges[0])];
}

/* What its worker, or somebody else, may want of it then. */
static struct request some_wish(struct sim *sim, const struct model_task *task) {
  static const enum command_kind kinds[] = {COMMAND_START, COMMAND_RENEW, COMMAND_FINISH, COMMAND_FINISH, COMMAND_RELEASE};
  struct request request = {.kind = COMMAND_CANCEL, .key = sim_new_key(sim), .task_id = task->id};
  if (!model_is_held(task->state)) return request;
  request.kind = kinds[sim_roll(sim, 5)];
  request.who = task->worker_application == 1 ? WHO_OTHER : WHO_FIRST;
  request.attempt_id = task->attempt_id;
  request.epoch = task->epoch;
  if (request.kind != COMMAND_FINISH) return request;
  request.outcome = sim_chance(sim, 70) ? OUTCOME_FAILED : OUTCOME_UNKNOWN;
  request.retryable = request.outcome == OUTCOME_FAILED;
  return request;
}

enum { patience_us = 120000000 };

/* The instant at which a task that has ended may be gone. */
static void step_farewell(struct sim *sim) {
  const struct model *model = &sim->model;
  if (model->task_count == 0) return;
  const struct model_task *task = &model->tasks[sim_roll(sim, model->task_count)];
  int64_t gone_at = model_log_at(model, task->last_seq)->time_us + sim->retention_us + (int64_t)sim_roll(sim, 3) - 1;
  if (!model_is_over(task->state) || gone_at <= sim->now_us || gone_at > sim->now_us + patience_us) return;
  struct request request = {.kind = COMMAND_GET_TASK, .task_id = task->id};
  sim_pass_until(sim, gone_at);
  (void)sim_ask(sim, &request);
  sim_tick(sim);
}

void step_edge(struct sim *sim) {
  const struct model *model = &sim->model;
  if (sim->retention_us != 0 && sim_chance(sim, 20)) {
    step_farewell(sim);
    return;
  }
  if (model->unfinished_count == 0) return;
  struct model_task task = model->tasks[model->unfinished[sim_roll(sim, model->unfinished_count)]];
  int64_t off = (int64_t)sim_roll(sim, 3) - 1, edge = some_edge(sim, &task);
  if (edge == INT64_MAX) return; /* it waits for people */
  edge += off;
  if (edge <= sim->now_us || edge > sim->now_us + patience_us) return;
  if (edge > sim->next_us && sim_chance(sim, 80)) return; /* much else would have to be done before */
  sim_pass_until(sim, edge);
  struct request request = some_wish(sim, &task);
  if (sim_chance(sim, 70)) (void)sim_ask(sim, &request);
  sim_tick(sim);
}

void step_crash(struct sim *sim) {
  sim->counts.faults[FAULT_CRASH]++;
  sim_restart(sim);
}

void step_stop(struct sim *sim) {
  sim->counts.faults[FAULT_STOP]++;
  sim_stop(sim);
}

/* The next commit does not go well. */
void step_break(struct sim *sim) {
  disk_set_fate(sim->disk, (enum fate)(1 + sim_roll(sim, FATE_COUNT - 1)), sim_roll(sim, UINT64_MAX));
}

void sim_count_fate(struct sim *sim) {
  static const enum fault_kind counted[FATE_COUNT] = {
      [FATE_LOST] = FAULT_LOST_WRITE,       [FATE_TORN] = FAULT_TORN_COMMIT,      [FATE_KEPT] = FAULT_LOST_ANSWER,
      [FATE_SYNC_LOST] = FAULT_FAILED_SYNC, [FATE_SYNC_KEPT] = FAULT_FAILED_SYNC, [FATE_EXTEND] = FAULT_BROKEN_DISK};
  sim->counts.faults[counted[disk_fate_came(sim->disk)]]++;
}

void step_disk(struct sim *sim) {
  if (disk_room(sim->disk) != ROOM_PLENTY) {
    disk_set_room(sim->disk, ROOM_PLENTY);
    return;
  }
  disk_set_room(sim->disk, sim_chance(sim, 60) ? ROOM_RESERVE : ROOM_NONE);
  sim->counts.faults[FAULT_FULL_DISK]++;
}

/* The sync takes its time: seconds pass between a commit and whatever comes next. */
void step_slow(struct sim *sim) {
  sim->counts.faults[FAULT_SLOW_SYNC]++;
  sim_tick(sim);
  if (sim_is_well(sim)) sim_pass_us(sim, 500000 + (int64_t)sim_roll(sim, 20000000));
}

void step_clock(struct sim *sim) {
  int64_t jump = 1000000 + (int64_t)sim_roll(sim, INT64_C(7200000000));
  bool forward = sim_chance(sim, 40);
  sim->wall_us += forward ? jump / 20 : -jump;
  sim->counts.faults[forward ? FAULT_CLOCK_FORWARD : FAULT_CLOCK_BACK]++;
}
