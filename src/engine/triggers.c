/* Owns the firing of schedules: what has come is decided time by time, each with its task in one commit. */
#include "base/guard.h"
#include "core/schedule.h"
#include "core/schedule_times.h"
#include "engine/internal.h"

/* The times of one schedule that have come, seen a little ahead of the one that is decided. */
struct upcoming {
  struct schedule_times times;
  int64_t ahead[catch_up_limit_max]; /* a ring of times that follow and have come too */
  uint32_t start, count, limit;
  int64_t after; /* the time behind the last of them, come or not; 0: none */
};

static void look_ahead(struct upcoming *upcoming, int64_t now_us) {
  while (upcoming->count < upcoming->limit && upcoming->after != 0 && upcoming->after <= now_us) {
    upcoming->ahead[(upcoming->start + upcoming->count++) % catch_up_limit_max] = upcoming->after;
    upcoming->after = schedule_times_next(&upcoming->times, upcoming->after);
  }
}

static struct due_time due_now(const struct engine *engine, const struct schedule *schedule, const struct upcoming *upcoming,
                               bool first) {
  return (struct due_time){.scheduled_at = schedule->next_at,
                           .next_at = upcoming->count != 0 ? upcoming->ahead[upcoming->start] : upcoming->after,
                           .up_since = engine->up_since,
                           .behind = upcoming->count,
                           .first = first};
}

static void step(struct upcoming *upcoming) {
  if (upcoming->count == 0) {
    if (upcoming->after != 0) upcoming->after = schedule_times_next(&upcoming->times, upcoming->after);
    return;
  }
  upcoming->start = (upcoming->start + 1) % catch_up_limit_max;
  upcoming->count--;
}

static void decide_one(struct engine *engine, const struct schedule *schedule, const struct event_schedule_changed *config,
                       const struct due_time *due) {
  struct decide_env env = engine_env(engine);
  enum trigger_outcome outcome =
      decide_trigger(schedule, config, state_queue(engine->state, &schedule->queue_id),
                     state_application(engine->state, &schedule->application_id), due, &env, &engine->list);
  engine_append(engine);
  engine->counters.triggers[outcome]++;
  if (outcome == TRIGGER_SUBMITTED) latency_add(&engine->counters.schedule_lateness, engine->now_us - due->scheduled_at);
}

static bool commit_is_full(const struct engine *engine) { return engine->commit.records.size >= commit_bytes_max / 4; }

/* All times of the schedule that have come, as far as the commit has room. Returns how many were decided. */
static uint32_t fire(struct engine *engine, struct schedule *schedule, const struct event_schedule_changed *config,
                     const struct schedule_times *times, uint32_t most) {
  struct upcoming upcoming = {.times = *times,
                              .limit = schedule->missed == MISSED_ALL ? schedule->catch_up_limit : 1,
                              .after = schedule_times_next(times, schedule->next_at)};
  uint32_t decided = 0;
  while (decided < most && schedule->next_at != 0 && schedule->next_at <= engine->now_us && !commit_is_full(engine)) {
    look_ahead(&upcoming, engine->now_us);
    struct due_time due = due_now(engine, schedule, &upcoming, decided == 0);
    if (schedule_waits_for_task(schedule) && due_time_fires(schedule, &due, engine->now_us)) break;
    decide_one(engine, schedule, config, &due);
    step(&upcoming);
    decided++;
  }
  return decided;
}

/* Its configuration, whose spans stay where they are: the commit that is being made holds none of it. */
static enum status take_config(struct engine *engine, const struct schedule *schedule, struct event *event,
                               struct event_schedule_changed *ret_config, struct schedule_times *ret_times) {
  const struct zone *zone = NULL;
  struct fault fault;
  must(schedule->config_seq < engine->commit.first_seq);
  enum status status = history_event(engine->history, engine_source(engine), schedule->config_seq, event);
  if (status == STATUS_OK && !schedule_config_of(event, ret_config)) status = STATUS_CORRUPT;
  if (status == STATUS_OK && ret_config->kind == SCHEDULE_CRON)
    status = zones_get(engine->zones, ret_config->timezone, &zone, &fault);
  if (status == STATUS_OK) status = schedule_times_of(ret_config, zone, ret_times, &fault);
  return status;
}

void triggers_fire(struct engine *engine) {
  uint32_t number, decided = 0;
  while (decided < tick_triggers_max && (number = state_schedule_due(engine->state, engine->now_us)) != 0) {
    struct schedule *schedule = state_schedule_at(engine->state, number);
    struct event event;
    struct event_schedule_changed config;
    struct schedule_times times;
    if (engine->disk_full || atomic_load(&engine->draining) || commit_is_full(engine)) return;
    if (take_config(engine, schedule, &event, &config, &times) != STATUS_OK) {
      state_schedule_put_off(engine->state, number, engine->now_us + schedule_retry_us);
      continue;
    }
    decided += fire(engine, schedule, &config, &times, tick_triggers_max - decided);
  }
}

int64_t triggers_next(const struct engine *engine) {
  if (atomic_load(&engine->draining)) return INT64_MAX;
  int64_t next = state_schedule_next(engine->state), again = engine->now_us + disk_full_again_us;
  return engine->disk_full && next < again ? again : next; /* a new task needs room in the log */
}
