/* Owns views/ of the simulated server: the follower, step by step and beside the ticks, coming up from what it wrote, and what
 * goes wrong with it. The server's own (orbitd/follower.c, orbitd/replay.c) does the same on a thread. */
#include <string.h>

#include "base/guard.h"
#include "engine/internal.h"
#include "sim/sim.h"
#include "state/rows.h"

static const char directory[] = "views";

void sim_views_choose(struct sim *sim) {
  static const int64_t windows[] = {0, 0, 5000000, 60000000}, retentions[] = {0, 2000000, 20000000, 200000000};
  struct follower_here *here = &sim->follower;
  here->keeps = sim_chance(sim, 25);
  sim->hot_window_us = windows[sim_roll(sim, 4)];
  sim->model.retention_us = sim->retention_us = sim_chance(sim, 50) ? retentions[sim_roll(sim, 4)] : 0;
  sim->memory_max = sim_chance(sim, 40); /* one byte: too much is always there */
  if (!here->keeps) return;
  here->disk = views_disk_new();
  views_disk_mount(here->disk);
}

void sim_views_clear(struct sim *sim) {
  if (!sim->follower.keeps) return;
  views_disk_mount(NULL);
  views_disk_free(sim->follower.disk);
}

/* ---- coming up ---- */

/* The rest of the log, behind what the checkpoint held. */
static bool fold_rest(struct sim *sim, struct state *state, uint64_t after_seq) {
  const char *reason = "";
  struct fault fault = {0};
  struct event event;
  for (uint64_t seq = after_seq + 1; seq <= disk_count(sim->disk); seq++) {
    if (event_decode(sim->decoder, disk_record(sim->disk, seq), &event, &fault) != STATUS_OK) return false;
    enum status status = state_meet(state, &event);
    state_close_cold(state);
    if (status != STATUS_OK || !state_fold(state, &event, &reason)) return false;
  }
  return state_check(state, &fault) == STATUS_OK;
}

static void take_back(struct follower_here *here) {
  if (here->cold != NULL) cold_withdraw(here->cold);
  checkpoint_close(here->checkpoint);
  here->checkpoint = NULL;
  here->stage = 0;
}

static struct state *load(struct sim *sim, struct fault *fault) {
  struct follower_here *here = &sim->follower;
  struct checkpoint_position from;
  struct state *state = NULL;
  enum status status = checkpoint_load(directory, sim->disk, &state, &from, fault);
  if (status != STATUS_OK) {
    if (status != STATUS_NOT_FOUND) model_complain(&sim->model, "views/ cannot be gone on with: %s", fault->message);
    return NULL;
  }
  state_set_cold(state, here->cold);
  status = checkpoint_open(directory, 0, sim->disk, &here->checkpoint, fault);
  if (status == STATUS_OK) status = checkpoint_lend(here->checkpoint, here->cold, fault);
  if (status != STATUS_OK) model_complain(&sim->model, "views/ cannot be opened: %s", fault->message);
  else if (!fold_rest(sim, state, from.seq)) model_complain(&sim->model, "the log does not go on from views/");
  return state;
}

struct state *sim_views_up(struct sim *sim, struct state *anew) {
  static const uint64_t waits[] = {0, 40, 300, 1000000};
  struct follower_here *here = &sim->follower;
  struct fault fault = {0};
  if (!here->keeps || !sim_is_well(sim)) return anew;
  must(here->cold == NULL);
  here->cold = cold_new();
  here->index_min = waits[sim_roll(sim, 4)]; /* who starts a server may tell it something else each time */
  here->is_short = false;
  if (sim_chance(sim, 10)) (void)views_remove(directory);
  struct state *state = load(sim, &fault);
  if (state == NULL) {
    state_set_cold(anew, here->cold);
    return anew;
  }
  struct id all = state_digest(anew), rest = state_digest(state);
  if (sim_is_well(sim) && !id_equal(&all, &rest))
    model_complain(&sim->model, "a start from views/ makes other views than the whole log");
  state_free(anew);
  return state;
}

void sim_views_down(struct sim *sim) {
  struct follower_here *here = &sim->follower;
  if (here->cold == NULL) return;
  state_close_cold(sim->engine->state);
  take_back(here);
}

void sim_views_gone(struct sim *sim) {
  cold_free(sim->follower.cold);
  sim->follower.cold = NULL;
}

/* ---- following ---- */

static enum status follow(struct sim *sim, uint64_t events_max, struct fault *fault) {
  struct follower_here *here = &sim->follower;
  uint64_t events;
  enum status status = STATUS_OK;
  if (here->checkpoint == NULL) status = checkpoint_open(directory, 0, sim->disk, &here->checkpoint, fault);
  return status == STATUS_OK ? checkpoint_follow(here->checkpoint, events_max, &events, fault) : status;
}

static enum status lend(struct sim *sim, struct fault *fault) {
  struct follower_here *here = &sim->follower;
  enum status status = checkpoint_lend(here->checkpoint, here->cold, fault);
  if (status == STATUS_OK && checkpoint_seq(here->checkpoint) == disk_count(sim->disk)) here->is_short = false;
  return status;
}

/* The next of the follower's steps; what it is told to do last is to lend. */
static enum status follow_on(struct sim *sim, uint64_t events_max, struct fault *fault) {
  struct follower_here *here = &sim->follower;
  bool more;
  switch (here->stage++) {
    case 0:
      return follow(sim, events_max, fault);
    case 1:
      return checkpoint_index(here->checkpoint, here->index_min, cold_floor(here->cold), fault);
    case 2:
      return checkpoint_clean(here->checkpoint, cold_floor(here->cold), &more, fault);
    default:
      here->stage = 0;
      return lend(sim, fault);
  }
}

static void follow_well(struct sim *sim, uint64_t events_max) {
  struct follower_here *here = &sim->follower;
  struct fault fault = {0};
  enum status status = follow_on(sim, events_max, &fault);
  if (status == STATUS_OK) return;
  if (views_disk_fate_came(here->disk) == VIEWS_GOOD)
    model_complain(&sim->model, "the follower fails without need: %s", fault.message);
  take_back(here);
  here->is_short = true;
  if (status == STATUS_CORRUPT || status == STATUS_FOREIGN) (void)views_remove(directory);
  views_disk_set_fate(here->disk, VIEWS_GOOD);
}

void step_follow(struct sim *sim) {
  if (!sim->follower.keeps) return;
  uint64_t events_max = sim_chance(sim, 70) ? 65536 : 1 + sim_roll(sim, 100);
  if (sim_chance(sim, 30)) {
    follow_well(sim, events_max);
    return;
  }
  do follow_well(sim, events_max);
  while (sim->follower.stage != 0 && sim_is_well(sim));
}

void sim_follow_all(struct sim *sim) {
  struct follower_here *here = &sim->follower;
  if (!here->keeps) return;
  views_disk_set_fate(here->disk, VIEWS_GOOD);
  do follow_well(sim, 65536);
  while (sim_is_well(sim) && (here->stage != 0 || checkpoint_seq(here->checkpoint) != disk_count(sim->disk)));
}

void step_views(struct sim *sim) {
  if (!sim->follower.keeps) return;
  sim->counts.faults[FAULT_VIEWS]++;
  views_disk_set_fate(sim->follower.disk, (enum views_fate)(1 + sim_roll(sim, VIEWS_FATE_COUNT - 1)));
}

/* ---- looking ---- */

void sim_compare_views(struct sim *sim) {
  struct checkpoint_position at;
  struct state *state;
  struct fault fault = {0};
  if (!sim->follower.keeps || !sim_is_well(sim)) return;
  sim_follow_all(sim);
  take_back(&sim->follower);
  if (checkpoint_load(directory, sim->disk, &state, &at, &fault) != STATUS_OK) {
    model_complain(&sim->model, "views/ cannot be loaded in the end: %s", fault.message);
    return;
  }
  struct id live = state_digest(sim->engine->state), kept = state_digest(state);
  if (at.seq != disk_count(sim->disk) || !id_equal(&live, &kept))
    model_complain(&sim->model, "views/ holds other views than those that are served");
  state_free(state);
}

const struct task *sim_kept_task(struct sim *sim, const struct id *id, struct task *room) {
  struct state *state = sim->engine->state;
  const struct task *task = state_task(state, id);
  struct task_row row;
  if (task != NULL || sim->follower.cold == NULL || !cold_open(sim->follower.cold, 0)) return task;
  if (cold_task(sim->follower.cold, id, &row) == STATUS_OK) {
    *room = row.task;
    task = room;
  }
  cold_close(sim->follower.cold);
  return task;
}
