/* Owns one tick of the simulated server, and the judgement of all that came of it. */
#include <string.h>

#include "base/guard.h"
#include "engine/internal.h"
#include "sim/sim.h"

/* Between two looks at everything. */
enum { ticks_between_checks = 200 };

struct pending *sim_ask(struct sim *sim, const struct request *request) {
  if (sim->pending_count == pending_max) sim_tick(sim);
  if (!sim_is_well(sim)) sim->pending_count = 0; /* the run is over: what is asked now is never judged */
  if (sim->model.queue_count != sim->queues_listed) sim_make_lists(sim);
  struct pending *pending = &sim->pending[sim->pending_count++];
  pending->request = *request;
  pending->item_count = 0;
  pending->browser = 0;
  memset(&pending->ticket, 0, sizeof pending->ticket);
  sim_command(sim, request, &pending->texts, &pending->ticket.command);
  sim_check_codec(sim, request, &pending->ticket.command);
  sim->counts.commands++;
  return pending;
}

/* Some requests are kept, to be said again. */
static void remember(struct sim *sim, const struct request *request) {
  if (!request_has_identity(request)) return;
  uint32_t at = sim->sent_count < sent_max ? sim->sent_count++ : (uint32_t)sim_roll(sim, sent_max);
  sim->sent[at] = *request;
}

/* ---- the judgement ---- */

static void judge_pending(struct sim *sim, struct pending *pending, bool answered) {
  struct model *model = &sim->model;
  struct expected expected;
  model->refused_for_now = pending->ticket.answer.status == STATUS_UNAVAILABLE;
  if (pending->item_count == 0) {
    model_take(model, &pending->request, &pending->ticket.command.operation, &expected);
    if (answered) sim_compare_answer(sim, &pending->request, &expected, &pending->ticket.answer);
    if (answered && pending->browser != 0 && pending->request.kind == COMMAND_OPEN_FEED)
      sim_begin_reading(sim, pending, &expected);
    else if (answered && pending->browser != 0) sim_turn_page(sim, pending);
    remember(sim, &pending->request);
    return;
  }
  enum status status = sim->model.starved ? STATUS_UNAVAILABLE : STATUS_OK;
  if (answered && pending->ticket.answer.status != status)
    model_complain(&sim->model, "a batch should be answered %s", status_name(status));
  for (uint32_t i = 0; i < pending->item_count && status == STATUS_OK; i++) {
    model->refused_for_now = pending->items[i].answer.status == STATUS_UNAVAILABLE;
    model_take(model, &pending->item_requests[i], &pending->items[i].command.operation, &expected);
    if (answered) sim_compare_answer(sim, &pending->item_requests[i], &expected, &pending->items[i].answer);
    remember(sim, &pending->item_requests[i]);
  }
}

/* Goes through the tick as the product should have. */
static void judge_tick(struct sim *sim, const struct held *held, bool answered) {
  struct model *model = &sim->model;
  model->views_short = held->views_short;
  model_tick_begin(model, held->now_us, sim->events, sim->event_count, held->room != ROOM_PLENTY, held->room == ROOM_NONE);
  model_expire(model);
  model_triggers(model);
  model_retain(model);
  for (uint32_t i = 0; i < held->pending_count && sim_is_well(sim); i++) judge_pending(sim, &held->pending[i], answered);
  if (sim_is_well(sim)) model_dispatch(model);
}

/* Reads the tick's commit, if it made one. */
static bool read_commit(struct sim *sim, const struct held *held) {
  sim->event_count = 0;
  if (!held->made) return true;
  if (!sim_read_events(sim)) return false;
  if (sim->events_read != held->last_seq)
    model_complain(&sim->model, "a tick's commit should end with seq %llu, and ends with %llu",
                   (unsigned long long)held->last_seq, (unsigned long long)sim->events_read);
  return sim_is_well(sim);
}

/* The oldest tick is held no more. */
static void let_go(struct sim *sim) {
  struct held *held = &sim->held[0];
  for (uint32_t i = 0; i < held->pending_count; i++) sim_free_answer(&held->pending[i]);
  sim->held_count--;
  memmove(sim->held, sim->held + 1, sim->held_count * sizeof sim->held[0]);
}

/* The ticks whose commits are told to be durable, and only those, have answered everything. */
static void judge_landed(struct sim *sim) {
  uint64_t position = engine_position(sim->engine), tickets = 0;
  if (position > disk_count(sim->disk)) model_complain(&sim->model, "what is not on the disk is told to be durable");
  sim->model.push_count = 0;
  while (sim_is_well(sim) && sim->held_count != 0 && sim->held[0].last_seq <= position) {
    tickets += sim->held[0].pending_count;
    if (!read_commit(sim, &sim->held[0])) return;
    judge_tick(sim, &sim->held[0], true);
    if (sim_is_well(sim)) let_go(sim);
  }
  if (!sim_is_well(sim)) return;
  sim->tickets_back = 0;
  sim_take_mail(sim, true);
  if (sim->tickets_back != tickets)
    model_complain(&sim->model, "%llu commands of durable ticks are answered, not %llu", (unsigned long long)sim->tickets_back,
                   (unsigned long long)tickets);
}

/* Nobody was answered; of the ticks that were on their way some first ones are there, and what is there was decided as it
 * should have been. A tick without a commit counts when a later one that saw it is there. */
void sim_judge_survivors(struct sim *sim) {
  const char *wrong = disk_open(sim->disk);
  uint32_t there = 0;
  if (wrong != NULL) model_complain(&sim->model, "the log is damaged after a crash: %s", wrong);
  for (uint32_t i = 0; i < sim->held_count; i++)
    if (sim->held[i].made && sim->held[i].last_seq <= disk_count(sim->disk)) there = i + 1;
  for (; sim_is_well(sim) && sim->held_count != 0; there -= there != 0) {
    const struct held *held = &sim->held[0];
    if (there != 0 && !read_commit(sim, held)) return;
    if (there != 0) judge_tick(sim, held, false);
    for (uint32_t i = 0; there == 0 && i < held->pending_count; i++)
      if (held->pending[i].item_count == 0) remember(sim, &held->pending[i].request);
    if (sim_is_well(sim)) let_go(sim);
  }
  if (sim->events_read != disk_count(sim->disk)) model_complain(&sim->model, "there is more in the log than was decided");
}

/* What left memory has none. */
static const struct attempt *kept_attempt(const struct sim *sim, const struct id *task_id) {
  static const struct attempt none;
  uint32_t number = state_task_number(sim->engine->state, task_id);
  return number != 0 ? state_attempt_at(sim->engine->state, number) : &none;
}

static void compare_touched(struct sim *sim) {
  const struct model *model = &sim->model;
  struct fault fault;
  for (uint32_t i = 0; i < model->touched_count && sim_is_well(sim); i++) {
    const struct model_task *want = &model->tasks[model->touched[i]];
    const struct task *have = state_task(sim->engine->state, &want->id);
    if (have == NULL) model_complain(&sim->model, "task %s is not there", id_text(&want->id).text);
    else sim_compare_task(sim, want, have, kept_attempt(sim, &want->id), DEPTH_LIVE);
    if (state_check_task(sim->engine->state, &want->id, &fault) != STATUS_OK) model_complain(&sim->model, "%s", fault.message);
  }
}

static void compare_objects(struct sim *sim) {
  struct model *model = &sim->model;
  for (unsigned i = 0; i < model->queue_count && sim_is_well(sim); i++) {
    const struct queue *queue = state_queue(sim->engine->state, &model->queues[i].id);
    if (queue == NULL) model_complain(model, "a queue is not there");
    else sim_compare_queue(sim, &model->queues[i], queue, true);
  }
  for (unsigned i = 0; i < applications_max && sim_is_well(sim); i++) {
    const struct model_application *want = &model->applications[i];
    const struct application *have = state_application(sim->engine->state, &want->id);
    if (have == NULL || have->unfinished != want->unfinished || have->revision != want->revision ||
        have->disabled != want->disabled || have->max_unfinished != want->max_unfinished)
      model_complain(model, "application %s is not as it should be", id_text(&want->id).text);
  }
  for (unsigned i = 0; i < model->schedule_count && sim_is_well(sim); i++) {
    const struct schedule *have = state_schedule(sim->engine->state, &model->schedules[i].id);
    if (have == NULL) model_complain(model, "a schedule is not there");
    else sim_compare_schedule(sim, &model->schedules[i], have);
  }
  for (unsigned i = 0; i < model->subscription_count && sim_is_well(sim); i++) {
    const struct subscription *have = state_subscription(sim->engine->state, &model->subscriptions[i].id);
    struct model_object want = model_subscription_object(&model->subscriptions[i]);
    if (have == NULL || have->deleted != model->subscriptions[i].deleted) model_complain(model, "a subscription is not there");
    else if (!have->deleted) sim_compare_subscription(sim, &want, have);
  }
  for (unsigned i = 0; i < model->credential_count && sim_is_well(sim); i++) {
    const struct model_credential *want = &model->credentials[i];
    const struct credential *have = state_credential(sim->engine->state, &want->id);
    if (have == NULL || have->revision != want->revision || have->revoked != want->revoked ||
        have->expires_at != want->expires_at || (have->queue_ids != NULL) != want->narrow)
      model_complain(model, "credential %s is not as it should be", id_text(&want->id).text);
  }
}

void sim_compare_all(struct sim *sim) {
  struct model *model = &sim->model;
  struct fault fault;
  model_recount(model);
  for (uint32_t i = 0; i < model->task_count && sim_is_well(sim); i++) {
    struct task room;
    const struct task *have = sim_kept_task(sim, &model->tasks[i].id, &room);
    if (model_is_gone(model, &model->tasks[i])) continue;
    if ((have == NULL || have == &room) && sim->follower.is_short && model_is_over(model->tasks[i].state)) continue;
    if (have == NULL) model_complain(model, "task %s was acknowledged and is not there", id_text(&model->tasks[i].id).text);
    else sim_compare_task(sim, &model->tasks[i], have, kept_attempt(sim, &model->tasks[i].id), DEPTH_FOLDED);
  }
  if (sim_is_well(sim) && state_task_count(sim->engine->state) != model->task_count)
    model_complain(model, "there are more tasks than were accepted");
  compare_objects(sim);
  if (sim_is_well(sim) && state_check(sim->engine->state, &fault) != STATUS_OK) model_complain(model, "%s", fault.message);
}

/* Orbit must wake up in time for everything that it has to do by itself. */
static void judge_next(struct sim *sim) {
  int64_t next = model_next_us(&sim->model);
  if (sim->busy || sim->model.starved || sim->next_us <= next) return;
  model_complain(&sim->model, "Orbit would sleep until %lld, and has something to do at %lld", (long long)sim->next_us,
                 (long long)next);
}

/* ---- the tick ---- */

/* A server that stops takes nothing at the door that would make new work. */
static bool is_new_work(const struct pending *pending) {
  enum command_kind kind = pending->request.kind;
  return kind == COMMAND_SUBMIT || kind == COMMAND_RETRY || kind == COMMAND_HELLO;
}

/* What a command points at moves with it. */
static void move_pending(struct pending *to, const struct pending *from) {
  *to = *from;
  enum command_kind kind = to->ticket.command.kind;
  if (kind == COMMAND_CREDENTIAL_CREATE || kind == COMMAND_CREDENTIAL_ROTATE)
    to->ticket.command.as.credential.token_hash = bytes_of(to->texts.token_hash, token_hash_bytes);
}

static void hand_in(struct sim *sim) {
  struct fault fault = {0};
  uint32_t taken = 0;
  for (uint32_t i = 0; i < sim->pending_count; i++) {
    struct pending *pending = &sim->pending[taken];
    if (taken != i) move_pending(pending, &sim->pending[i]);
    pending->ticket.home = &sim->outbox;
    pending->ticket.gauge = &sim->gauge;
    if (pending->item_count != 0) {
      pending->ticket.command.kind = COMMAND_BATCH;
      pending->ticket.command.as.batch = (struct batch_command){pending->items, pending->item_count};
    }
    enum status status = engine_submit(sim->engine, &pending->ticket, &fault);
    enum status expected = sim->model.draining && is_new_work(pending) ? STATUS_UNAVAILABLE : STATUS_OK;
    if (status != expected)
      model_complain(&sim->model, "a command should be taken %s at the door, is %s", status_name(expected),
                     status_name(status));
    taken += status == STATUS_OK;
  }
  sim->pending_count = taken;
}

/* The process ended. Of what was on its way nobody may have been answered; the commits are there or they are not. */
static void die(struct sim *sim, const struct fault *fault) {
  if (disk_fate_came(sim->disk) == FATE_GOOD)
    model_complain(&sim->model, "the server stopped without need: %s", fault->message);
  else sim_count_fate(sim);
  judge_landed(sim);
  if (!sim_is_well(sim)) return;
  sim_judge_survivors(sim);
  if (sim_is_well(sim)) sim_restart(sim);
}

/* One tick of the product, and what is to be judged of it. */
static enum status make_tick(struct sim *sim, struct fault *fault) {
  uint64_t before = journal_next_seq(sim->disk);
  struct held *held = &sim->held[sim->held_count++];
  *held = (struct held){.pending = sim->pending, .pending_count = sim->pending_count, .now_us = sim->now_us};
  held->room = disk_room(sim->disk);
  held->views_short = sim->follower.is_short;
  enum status status = engine_tick(sim->engine, sim->now_us, &sim->next_us, &sim->busy, fault);
  held->made = journal_next_seq(sim->disk) != before;
  held->last_seq = status == STATUS_OK || held->made ? journal_next_seq(sim->disk) - 1 : UINT64_MAX; /* it came to nothing */
  sim->pending = sim->sets[++sim->ticks % pending_sets];
  sim->pending_count = 0;
  return status;
}

/* Some of what is on its way arrives, or not yet. */
static void let_arrive(struct sim *sim) {
  unsigned queued = disk_queued(sim->disk);
  if (queued != 0 && sim_chance(sim, 50)) disk_arrive(sim->disk, 1 + (unsigned)sim_roll(sim, queued));
}

void sim_settle(struct sim *sim) {
  struct fault fault = {0};
  if (!sim_is_well(sim) || sim->held_count == 0) return;
  if (engine_land(sim->engine, true, &fault) != STATUS_OK) die(sim, &fault);
  else judge_landed(sim);
  if (sim_is_well(sim) && sim->held_count != 0) model_complain(&sim->model, "a tick is never answered");
}

void sim_tick(struct sim *sim) {
  struct fault fault = {0};
  if (sim->held_count == held_max) sim_settle(sim);
  if (!sim_is_well(sim)) return;
  let_arrive(sim);
  hand_in(sim);
  if (make_tick(sim, &fault) != STATUS_OK) {
    die(sim, &fault);
    return;
  }
  judge_landed(sim);
  if (!sim_is_well(sim) || sim->held_count != 0) return;
  compare_touched(sim);
  judge_next(sim);
  if (sim->model.tokens_changed) sim_compare_tokens(sim);
  if (++sim->ticks_since_check < ticks_between_checks) return;
  sim->ticks_since_check = 0;
  sim_compare_tokens(sim);
  sim_compare_all(sim);
}
