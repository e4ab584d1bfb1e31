/* Owns the life of the simulated server: the first commit, coming up, time, going down without a word. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/digest.h"
#include "engine/internal.h"
#include "sim/sim.h"

/* 2026-01-01T00:00:00Z */
static const int64_t first_us = INT64_C(1767225600) * 1000000;

uint64_t sim_roll(struct sim *sim, uint64_t sides) {
  uint64_t z = (sim->dice += UINT64_C(0x9E3779B97F4A7C15)); /* SplitMix64 */
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return (z ^ (z >> 31)) % sides;
}

bool sim_chance(struct sim *sim, unsigned of_hundred) { return sim_roll(sim, 100) < of_hundred; }

/* ---- the first commit ---- */

struct founding {
  struct sim *sim;
  struct commit commit;
  struct id_source ids;
};

static struct event *found(struct founding *founding, struct event *event, enum event_type type, struct id *ret_id) {
  memset(event, 0, sizeof *event);
  *ret_id = id_source_next(&founding->ids, first_us);
  event->type = type;
  event->version = event_type_version(type);
  event->stream = *ret_id;
  event->common.operation_id = id_source_next(&founding->ids, first_us);
  event->common.actor = journal_node_id(founding->sim->disk);
  event->common.revision = 1;
  return event;
}

static void found_queue(struct founding *founding, unsigned number) {
  struct model *model = &founding->sim->model;
  struct model_queue *queue = &model->queues[number];
  struct event event;
  struct event_queue_created *body = &found(founding, &event, EVENT_queue_created, &queue->id)->body.queue_created;
  queue->revision = 1;
  queue->limits[LIMIT_KEY] = body->key_concurrency = 1;
  queue->limits[LIMIT_LEASE_MS] = body->lease_ms = 5000 + 5000 * number;
  queue->limits[LIMIT_UNFINISHED] = body->max_unfinished = number == narrow_queue ? 12 : 0;
  body->namespace_id = founding->sim->namespace_id;
  body->name = text_name();
  must(commit_add(&founding->commit, &event) == STATUS_OK);
  queue->last_seq = event.seq;
}

static void found_credential(struct founding *founding, unsigned who) {
  struct token_text token = text_token(who + 1);
  uint8_t hash[token_hash_bytes];
  struct model *model = &founding->sim->model;
  struct event event;
  struct event_credential_created *body =
      &found(founding, &event, EVENT_credential_created, &model->credentials[who].id)->body.credential_created;
  token_hash(bytes_text(token.text), hash);
  body->namespace_id = founding->sim->namespace_id;
  body->application_id = model->applications[who_application(who)].id;
  body->permissions = 1;
  body->token_hash = bytes_of(hash, token_hash_bytes);
  if (who == WHO_NARROW) body->queue_ids = bytes_of(model->queues[narrow_queue].id.bytes, id_bytes);
  must(commit_add(&founding->commit, &event) == STATUS_OK);
  struct model_credential *credential = &model->credentials[who];
  credential->application = (uint8_t)who_application(who);
  credential->narrow = who == WHO_NARROW;
  credential->revision = 1;
  credential->last_seq = event.seq;
  credential->token = who + 1;
}

static void found_application(struct founding *founding, unsigned number) {
  struct model *model = &founding->sim->model;
  struct event event;
  struct event_application_created *body =
      &found(founding, &event, EVENT_application_created, &model->applications[number].id)->body.application_created;
  body->namespace_id = founding->sim->namespace_id;
  body->name = text_name();
  model->applications[number].max_unfinished = body->max_unfinished = number == 1 ? 30 : 0;
  must(commit_add(&founding->commit, &event) == STATUS_OK);
  model->applications[number].revision = 1;
  model->applications[number].last_seq = event.seq;
}

static void found_all(struct sim *sim) {
  struct founding founding = {.sim = sim};
  struct event event;
  id_source_init(&founding.ids, sim->seed);
  commit_init(&founding.commit);
  commit_reset(&founding.commit, sim->disk, first_us);
  found(&founding, &event, EVENT_namespace_created, &sim->namespace_id)->body.namespace_created.name = bytes_text("namespace");
  must(commit_add(&founding.commit, &event) == STATUS_OK);
  sim->model.namespace_id = sim->namespace_id;
  for (unsigned i = 0; i < applications_max; i++) found_application(&founding, i);
  for (unsigned i = 0; i < queues_first; i++) found_queue(&founding, i);
  for (unsigned i = 0; i < principals_max; i++) found_credential(&founding, i);
  sim->model.queue_count = queues_first;
  sim->model.credential_count = principals_max;
  sim->keys = principals_max; /* tokens have numbers of their own among the keys */
  must(journal_commit(sim->disk, &founding.commit, NULL) == STATUS_OK);
  commit_clear(&founding.commit);
  (void)sim_read_events(sim);
}

/* ---- reading what was committed ---- */

bool sim_read_events(struct sim *sim) {
  uint64_t last = disk_count(sim->disk), first = sim->events_read + 1, seq = first;
  struct fault fault = {0};
  bool ended = seq > last;
  sim->event_count = 0;
  for (; !ended && seq <= last; seq++) {
    if (sim->event_count == sim->event_capacity) {
      sim->event_capacity = sim->event_capacity * 2 + 64;
      sim->events = guard_realloc(sim->events, sim->event_capacity * sizeof *sim->events);
    }
    struct event *event = &sim->events[sim->event_count++];
    if (event_decode(sim->decoder, disk_record(sim->disk, seq), event, &fault) != STATUS_OK) {
      model_complain(&sim->model, "seq %llu cannot be read: %s", (unsigned long long)seq, fault.message);
      return false;
    }
    if (event->seq != seq || event->offset != seq - first)
      model_complain(&sim->model, "seq %llu is not in its place of its commit", (unsigned long long)seq);
    model_log_add(&sim->model, event);
    ended = event->last_of_commit;
  }
  if (!ended) model_complain(&sim->model, "seq %llu should be the last of its commit", (unsigned long long)last);
  sim->counts.events += seq - first;
  if (seq != first) sim->counts.commits++;
  sim->events_read = seq - 1;
  return true;
}

/* ---- coming up ---- */

static enum status fold(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  const char *reason = "";
  (void)record;
  if (!state_can_apply(context, event, &reason)) return fault_set(fault, STATUS_CORRUPT, NULL, "%s", reason);
  state_apply(context, event);
  return STATUS_OK;
}

/* NULL: the log cannot be folded; complained of. */
static struct state *folded(struct sim *sim) {
  struct state *state = state_new();
  struct fault fault = {0};
  enum status status = journal_replay(sim->disk, 0, 0, fold, state, &fault);
  if (status == STATUS_OK) status = state_check(state, &fault);
  if (status == STATUS_OK) return state;
  model_complain(&sim->model, "the log cannot be folded: %s", fault.message);
  state_free(state);
  return NULL;
}

/* The events of the start: node.started alone. */
static void read_start(struct sim *sim) {
  if (!sim_read_events(sim)) return;
  const struct event *event = sim->events;
  if (sim->event_count != 1 || event->type != EVENT_node_started || !id_equal(&event->stream, &sim->model.node_id) ||
      event->time_us != sim->now_us)
    model_complain(&sim->model, "the server should have begun with node.started");
  else model_restart(&sim->model, event);
}

void sim_go_down(struct sim *sim) {
  if (sim->engine == NULL) return;
  sim_close_feed(sim);
  /* Mail that did not leave goes with the process; tickets are the simulator's. */
  for (uint32_t i = 0; i < sim->engine->departure_count; i++)
    for (struct mail *mail = sim->engine->departures[i].oldest, *next; mail != NULL; mail = next) {
      next = mail->next;
      if (mail->kind != MAIL_TICKET) push_free((struct push *)mail);
    }
  sim->counts.left += state_evict_counts(sim->engine->state).tasks_away;
  sim_views_down(sim);
  engine_free(sim->engine);
  sim_views_gone(sim);
  sim->engine = NULL;
}

/* One try. False: the process ended in it. */
static bool come_up(struct sim *sim, enum fate fate) {
  struct engine_options options = {.id_seed = sim->seed + ++sim->lives * UINT64_C(0x2545F4914F6CDD1D),
                                   .version = "sim",
                                   .hot_window_us = sim->hot_window_us,
                                   .retention_us = sim->retention_us,
                                   .memory_max = sim->memory_max};
  struct fault fault = {0};
  options.company_min = sim_chance(sim, 50) ? 1 + (uint32_t)sim_roll(sim, 3) : 0;
  const char *wrong = disk_open(sim->disk);
  if (wrong != NULL) model_complain(&sim->model, "the log is damaged after a crash: %s", wrong);
  struct state *state = folded(sim);
  if (state == NULL) return false;
  state = sim_views_up(sim, state);
  clock_init(&sim->clock, sim->wall_us, sim->monotonic_us, journal_last_time_us(sim->disk));
  sim->now_us = clock_read(&sim->clock, sim->wall_us, sim->monotonic_us);
  sim->engine = engine_new(sim->disk, state, &options);
  sim_compare_all(sim); /* what was acknowledged is there, and nothing else */
  disk_set_fate(sim->disk, fate, sim_roll(sim, UINT64_MAX));
  bool up = engine_start(sim->engine, sim->now_us, &fault) == STATUS_OK;
  if (!up && disk_fate_came(sim->disk) == FATE_GOOD)
    model_complain(&sim->model, "the server does not start: %s", fault.message);
  if (!up) {
    sim_count_fate(sim);
    sim_go_down(sim);
    (void)disk_open(sim->disk);
  }
  sim->next_us = sim->now_us;
  sim->busy = true;
  if (up || disk_count(sim->disk) != sim->events_read) read_start(sim);
  return up;
}

/* Until it is up; now and then it ends in the first try, too. */
static void start(struct sim *sim) {
  enum fate fate = sim->lives != 0 && sim_chance(sim, 15) ? (enum fate)(1 + sim_roll(sim, FATE_COUNT - 1)) : FATE_GOOD;
  while (sim_is_well(sim) && !come_up(sim, fate)) {
    fate = FATE_GOOD;
    sim_pass_us(sim, 1000 + (int64_t)sim_roll(sim, 1000000));
  }
  if (!sim_is_well(sim) || sim->lives == 1) return;
  step_browse(sim); /* what was there is shown, and what was answered is answered again */
  step_browse(sim);
  step_repeat(sim);
}

/* What was on its way is gone. */
static void forget_pending(struct sim *sim) {
  sim_take_mail(sim, false);
  for (; sim->held_count != 0; sim->held_count--) {
    struct held *held = &sim->held[sim->held_count - 1];
    for (uint32_t i = 0; i < held->pending_count; i++) sim_free_answer(&held->pending[i]);
  }
  for (uint32_t i = 0; i < sim->pending_count; i++) sim_free_answer(&sim->pending[i]);
  sim->pending_count = 0;
}

void sim_restart(struct sim *sim) {
  if (sim->held_count != 0) {
    sim->counts.faults[FAULT_CUT]++;
    disk_cut(sim->disk, sim_roll(sim, UINT64_MAX));
    sim_judge_survivors(sim);
  }
  sim_go_down(sim);
  forget_pending(sim);
  for (unsigned i = 0; i < workers_max; i++) sim->workers[i].session = 0;
  if (!sim_is_well(sim)) return;
  sim_pass_us(sim, 1000 + (int64_t)sim_roll(sim, 3000000));
  start(sim);
}

/* node.stopped, alone in its commit. */
static void read_stop(struct sim *sim) {
  if (!sim_read_events(sim)) return;
  const struct event *event = sim->events;
  if (sim->event_count != 1 || event->type != EVENT_node_stopped || !bytes_equal_text(event->body.node_stopped.reason, "asked"))
    model_complain(&sim->model, "the server should have ended with node.stopped");
  else sim->model.operation_id = event->common.operation_id, sim->model.node_last_seq = event->seq;
}

void sim_stop(struct sim *sim) {
  struct fault fault = {0};
  disk_set_fate(sim->disk, FATE_GOOD, 0);
  sim_settle(sim);
  if (!sim_is_well(sim)) return;
  engine_drain(sim->engine);
  sim->model.draining = true;
  for (unsigned ticks = (unsigned)sim_roll(sim, 3); sim_is_well(sim); ticks--) {
    sim_tick(sim);
    if (ticks == 0) break;
    sim_pass_us(sim, (int64_t)sim_roll(sim, 2000000));
  }
  sim_settle(sim);
  if (!sim_is_well(sim)) return;
  if (engine_finish(sim->engine, sim->now_us, "asked", &fault) != STATUS_OK)
    model_complain(&sim->model, "the server does not stop: %s", fault.message);
  else read_stop(sim);
  sim_restart(sim);
}

void sim_compare_fold(struct sim *sim) {
  if (!sim_is_well(sim)) return;
  struct state *again = folded(sim);
  if (again == NULL) return;
  struct id live = state_digest(sim->engine->state), anew = state_digest(again);
  if (!id_equal(&live, &anew)) model_complain(&sim->model, "the log folds to other views than those that are served");
  state_free(again);
}

/* ---- time ---- */

void sim_pass_us(struct sim *sim, int64_t us) {
  int64_t before = sim->now_us;
  sim->wall_us += us;
  sim->monotonic_us += us;
  if (sim->engine == NULL) return;
  sim->now_us = clock_read(&sim->clock, sim->wall_us, sim->monotonic_us);
  int64_t passed = sim->now_us - before, slew = us / 1000 + 1;
  if (passed < us - slew || passed > us + slew || passed < 0 || (us > 1000 && passed == 0))
    model_complain(&sim->model, "%lld us passed, and Orbit's clock went on by %lld", (long long)us, (long long)passed);
}

void sim_pass_until(struct sim *sim, int64_t until_us) {
  while (sim_is_well(sim) && sim->now_us < until_us) {
    int64_t rest = until_us - sim->now_us;
    sim_pass_us(sim, rest > 16 ? rest - rest / 500 - 8 : 1); /* the clock is slewed: near it, step by step */
  }
}

void sim_open(struct sim *sim, uint64_t seed, enum mistake mistake, bool trace) {
  memset(sim, 0, offsetof(struct sim, sets));
  sim->pending = sim->sets[0];
  sim->seed = sim->dice = seed;
  sim->trace = trace;
  sim->wall_us = first_us + 1000000;
  sim->monotonic_us = 1000000;
  sim->decoder = event_decoder_new();
  model_init(&sim->model, mistake);
  codec_open(&sim->codec);
  must(outbox_init(&sim->outbox) == STATUS_OK);
  sim->disk = disk_new(seed);
  sim->model.node_id = journal_node_id(sim->disk);
  found_all(sim);
  sim_make_lists(sim);
  sim_views_choose(sim);
  static const uint8_t whos[workers_max] = {WHO_FIRST, WHO_FIRST, WHO_FIRST, WHO_OTHER, WHO_OTHER, WHO_NARROW};
  static const uint8_t instances[workers_max] = {0, 1, 2, 2, 3, 4}; /* one number in two applications: two instances */
  for (unsigned i = 0; i < workers_max; i++) sim->workers[i] = (struct worker_here){.who = whos[i], .instance = instances[i]};
  start(sim);
}

void sim_close(struct sim *sim) {
  sim_go_down(sim);
  forget_pending(sim);
  outbox_clear(&sim->outbox);
  event_decoder_free(sim->decoder);
  free(sim->events);
  model_clear(&sim->model);
  codec_close(&sim->codec);
  sim_views_clear(sim);
  disk_free(sim->disk);
}
