/* Owns what people of the simulation do to schedules, and the comparison of schedules and their times. */
#include <string.h>

#include "sim/sim.h"

/* ---- what is shown ---- */

/* What was configured. */
static void compare_configured(struct sim *sim, const struct model_object *want, const struct schedule *have) {
  const uint64_t shown[limits_max] = {have->interval_ms, (uint64_t)have->start_at, (uint64_t)have->end_at, have->overlap,
                                      have->missed,      have->catch_up_limit,     have->deleted};
  static const char *const names[limits_max] = {"interval_ms", "start_at",       "end_at", "overlap",
                                                "missed",      "catch_up_limit", "deleted"};
  if (!id_equal(&want->id, &have->id) || want->revision != have->revision || want->over != have->paused)
    model_complain(&sim->model, "schedule %s: revision %llu, paused %d should be %llu, %d", id_text(&want->id).text,
                   (unsigned long long)have->revision, have->paused, (unsigned long long)want->revision, want->over);
  for (unsigned i = 0; i < limits_max; i++)
    if (want->limits[i] != shown[i])
      model_complain(&sim->model, "schedule %s: %s should be %llu, is %llu", id_text(&want->id).text, names[i],
                     (unsigned long long)want->limits[i], (unsigned long long)shown[i]);
}

void sim_compare_schedule(struct sim *sim, const struct model_schedule *want, const struct schedule *have) {
  struct model_object object = model_schedule_object(want);
  compare_configured(sim, &object, have);
  if (want->next_at != have->next_at || want->unfinished != have->unfinished || want->free_at != have->free_at)
    model_complain(&sim->model, "schedule %s: next_at %lld, unfinished %u, free_at %lld should be %lld, %u, %lld",
                   id_text(&want->id).text, (long long)have->next_at, have->unfinished, (long long)have->free_at,
                   (long long)want->next_at, want->unfinished, (long long)want->free_at);
}

static void compare_times(struct sim *sim, const struct request *request, const struct answer_list *list) {
  struct planned plan = request->planned;
  int64_t after = plan.start_at != 0 ? plan.start_at : sim->model.now_us, anchor = after;
  plan.start_at = plan.end_at = 0;
  if (list->count != request->capacity)
    model_complain(&sim->model, "%u times should be shown, are %u", request->capacity, list->count);
  for (uint32_t i = 0; i < list->count && sim_is_well(sim); i++) {
    after = model_time_after(&plan, anchor, after);
    if (list->of.times[i] != after)
      model_complain(&sim->model, "time %u should be %lld, is %lld", i, (long long)after, (long long)list->of.times[i]);
  }
}

void sim_compare_schedule_answer(struct sim *sim, const struct request *request, const struct expected *expected,
                                 const struct answer *answer) {
  if (request->kind == COMMAND_PREVIEW_TIMES) {
    compare_times(sim, request, &answer->as.list);
  } else if (request->kind == COMMAND_GET_SCHEDULE) {
    sim_compare_schedule(sim, expected->schedule, &answer->as.schedule);
  } else {
    if (answer->created != expected->created || answer->deduplicated != expected->deduplicated)
      model_complain(&sim->model, "%s is answered as done and is not, or the other way", command_kind_text(request->kind));
    if (answer->as.schedule.next_at != 0 || answer->as.schedule.unfinished != 0)
      model_complain(&sim->model, "the answer to a write tells what lives");
    compare_configured(sim, &expected->object, &answer->as.schedule);
  }
}

/* ---- what is asked ---- */

static void some_plan(struct sim *sim, struct request *request) {
  static const uint64_t intervals[] = {1000, 2500, 7000, 20000, 20000, 45000, 60000, 61000};
  struct planned *plan = &request->planned;
  plan->shape = (uint8_t)(sim_chance(sim, 60) ? 0 : sim_roll(sim, cron_shapes_max));
  plan->interval_ms = intervals[sim_roll(sim, 8)];
  if (sim_chance(sim, 25)) plan->start_at = sim->now_us + (int64_t)sim_roll(sim, 40000000) - 10000000;
  if (sim_chance(sim, 5)) plan->start_at = sim->now_us / 60000000 * 60000000 + 60000000 + (int64_t)sim_roll(sim, 3) - 1;
  if (sim_chance(sim, 25)) plan->end_at = sim->now_us + (int64_t)sim_roll(sim, 180000000);
  if (sim_chance(sim, 3)) plan->end_at = plan->start_at;
  plan->overlap = (enum overlap)(OVERLAP_ALLOW + sim_roll(sim, 3));
  plan->missed = (enum missed)(MISSED_SKIP + sim_roll(sim, 3));
  plan->catch_up_limit = 1 + (uint32_t)sim_roll(sim, 6);
  some_task_policy(sim, request);
  if (request->task_timeout_ms == 0) request->task_timeout_ms = 1;
  if (request->attempt_timeout_ms > request->task_timeout_ms) request->attempt_timeout_ms = (uint32_t)request->task_timeout_ms;
}

static void create(struct sim *sim, struct request *request) {
  request->kind = COMMAND_SCHEDULE_CREATE;
  request->queue = (uint8_t)sim_roll(sim, sim->model.queue_count);
  request->planned.by_clock = sim_chance(sim, 40);
  request->planned.paused = sim_chance(sim, 10);
  some_plan(sim, request);
}

static void change(struct sim *sim, struct request *request, const struct model_schedule *schedule) {
  static const unsigned any = GIVEN_START | GIVEN_END | GIVEN_OVERLAP | GIVEN_MISSED | GIVEN_CATCH_UP | GIVEN_TEMPLATE;
  request->kind = COMMAND_SCHEDULE_CHANGE;
  request->planned.by_clock = schedule->plan.by_clock;
  request->given = ((unsigned)sim_roll(sim, any + 1) & any) | (sim_chance(sim, 30) ? GIVEN_CATCH_UP : 0);
  if (sim_chance(sim, 40)) request->given |= schedule->plan.by_clock ? GIVEN_CRON : GIVEN_INTERVAL;
  if (request->given == 0) request->given = GIVEN_MISSED;
  request->expected_revision = schedule->revision + sim_chance(sim, 8);
  some_plan(sim, request);
}

static void preview(struct sim *sim, struct request *request) {
  request->kind = COMMAND_PREVIEW_TIMES;
  some_plan(sim, request);
  request->planned.by_clock = sim_chance(sim, 70);
  request->planned.shape = (uint8_t)sim_roll(sim, cron_shapes_max);
  if (request->planned.start_at == 0 && sim_chance(sim, 50))
    request->planned.start_at = sim->now_us + (int64_t)sim_roll(sim, INT64_C(100000000000000));
  request->capacity = 1 + (uint32_t)sim_roll(sim, 4);
}

/* One that lives, where there is one soon. */
static uint8_t some_schedule(struct sim *sim) {
  const struct model *model = &sim->model;
  uint32_t at = (uint32_t)sim_roll(sim, model->schedule_count);
  for (uint32_t i = 0; i < model->schedule_count && model->schedules[at].deleted; i++) at = (at + 1) % model->schedule_count;
  return (uint8_t)(at + 1);
}

void step_schedule(struct sim *sim) {
  struct request request = {.who = (uint8_t)(sim_chance(sim, 80) ? WHO_FIRST : sim_roll(sim, principals_max))};
  uint64_t luck = sim_roll(sim, 100);
  request.key = sim_new_key(sim);
  request.text = (uint8_t)sim_roll(sim, 4);
  if (sim->model.schedule_count == 0 || luck < 25) {
    create(sim, &request);
  } else if (luck < 35) {
    preview(sim, &request);
  } else {
    request.schedule = some_schedule(sim);
    const struct model_schedule *schedule = &sim->model.schedules[request.schedule - 1];
    if (luck < 55) request.kind = COMMAND_GET_SCHEDULE;
    else if (luck < 72) change(sim, &request, schedule);
    else if (luck < 94) request.kind = schedule->paused ? COMMAND_SCHEDULE_RESUME : COMMAND_SCHEDULE_PAUSE;
    else if (luck < 97) request.kind = schedule->paused ? COMMAND_SCHEDULE_PAUSE : COMMAND_SCHEDULE_RESUME;
    else request.kind = COMMAND_SCHEDULE_DELETE;
    if (luck >= 72 && sim_chance(sim, 20)) request.expected_revision = schedule->revision + sim_chance(sim, 20);
  }
  if (sim_has_place(sim, &request)) (void)sim_ask(sim, &request);
}

void sim_delete_schedules(struct sim *sim) {
  for (unsigned i = 0; i < sim->model.schedule_count; i++) {
    if (sim->model.schedules[i].deleted) continue;
    struct request request = {.kind = COMMAND_SCHEDULE_DELETE, .schedule = (uint8_t)(i + 1), .key = sim_new_key(sim)};
    (void)sim_ask(sim, &request);
  }
}
