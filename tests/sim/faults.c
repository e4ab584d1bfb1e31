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
  else if (luck < 70 && sim->next_us != INT64_MAX) /* just before, at, just after */
    sim_pass_until(sim, sim->next_us + (int64_t)sim_roll(sim, 3) - 1);
  else if (luck < 92) sim_pass_us(sim, (int64_t)sim_roll(sim, 5000000));
  else if (luck < 99) sim_pass_us(sim, (int64_t)sim_roll(sim, 30000000));
  else sim_pass_us(sim, (int64_t)sim_roll(sim, 300000000));
}

void step_crash(struct sim *sim) {
  sim->counts.faults[FAULT_CRASH]++;
  sim_restart(sim);
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
