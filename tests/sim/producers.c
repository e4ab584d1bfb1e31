/* Owns what producers, reviewers and administrators of the simulation do. */
#include <string.h>

#include "sim/sim.h"

uint64_t sim_new_key(struct sim *sim) { return ++sim->keys; }

static uint8_t some_who(struct sim *sim) {
  uint64_t luck = sim_roll(sim, 10);
  return luck < 7 ? WHO_FIRST : luck < 9 ? WHO_OTHER : WHO_NARROW;
}

/* ---- submissions ---- */

static uint64_t some_timeout_ms(struct sim *sim) {
  uint64_t luck = sim_roll(sim, 100);
  if (luck < 70) return 20000 + sim_roll(sim, 300000);
  if (luck < 90) return 1000 + sim_roll(sim, 10000);
  return luck < 99 ? 1 + sim_roll(sim, 50) : sim_roll(sim, 2);
}

/* Absent, near, or just on one of the bounds. */
static void some_times(struct sim *sim, struct request *request) {
  int64_t now = sim->now_us, deadline = now + (int64_t)request->task_timeout_ms * 1000;
  uint64_t luck = sim_roll(sim, 100);
  int64_t off = (int64_t)sim_roll(sim, 3) - 1;
  if (luck < 15) request->available_at = now + (int64_t)sim_roll(sim, 5000000);
  else if (luck < 18) request->available_at = now - 1000000 + off;
  else if (luck < 20) request->available_at = deadline + off;
  luck = sim_roll(sim, 100);
  if (luck < 12) request->start_deadline_at = now + 1000 + (int64_t)sim_roll(sim, 20000000);
  else if (luck < 14) request->start_deadline_at = deadline + off;
  else if (luck < 16) request->start_deadline_at = now + off;
  else if (luck < 18 && request->available_at != 0) request->start_deadline_at = request->available_at + off;
}

void some_task_policy(struct sim *sim, struct request *request) {
  static const uint32_t delays[] = {0, 0, 100, 1000, 3000};
  request->handler = (uint8_t)sim_roll(sim, handlers_offered_max);
  if (sim_chance(sim, 40)) request->concurrency_key = (uint8_t)(1 + sim_roll(sim, concurrency_keys_max - 1));
  if (sim_chance(sim, 30)) request->business_key = (uint8_t)(1 + sim_roll(sim, business_keys_max - 1));
  if (sim_chance(sim, 50)) request->priority = (uint8_t)sim_roll(sim, 10);
  request->idempotent = sim_chance(sim, 50);
  request->text = (uint8_t)sim_roll(sim, texts_max);
  request->max_attempts = 1 + (uint32_t)sim_roll(sim, 4);
  request->initial_delay_ms = delays[sim_roll(sim, 5)];
  request->max_delay_ms = request->initial_delay_ms + (uint32_t)sim_roll(sim, 5000);
  request->task_timeout_ms = some_timeout_ms(sim);
  request->attempt_timeout_ms = 1 + (uint32_t)sim_roll(sim, request->task_timeout_ms + 1);
}

static struct request some_submission(struct sim *sim) {
  struct request request = {.kind = COMMAND_SUBMIT, .who = some_who(sim), .key = sim_new_key(sim)};
  request.queue =
      request.who == WHO_NARROW && sim_chance(sim, 80) ? narrow_queue : (uint8_t)sim_roll(sim, sim->model.queue_count);
  some_task_policy(sim, &request);
  some_times(sim, &request);
  return request;
}

void step_submit(struct sim *sim) {
  struct request request = some_submission(sim);
  (void)sim_ask(sim, &request);
}

void step_batch(struct sim *sim) {
  struct request items[batch_max];
  uint32_t count = 1 + (uint32_t)sim_roll(sim, batch_max);
  for (uint32_t i = 0; i < count; i++) items[i] = some_submission(sim);
  for (uint32_t i = 0; i < count; i++) items[i].who = items[0].who;
  if (count > 1 && sim_chance(sim, 20)) items[1].key = items[0].key; /* one key twice in a batch */
  struct pending *pending = sim_ask(sim, &items[0]);
  pending->item_count = count;
  for (uint32_t i = 0; i < count; i++) {
    pending->item_requests[i] = items[i];
    memset(&pending->items[i], 0, sizeof pending->items[i]);
    sim_command(sim, &items[i], &pending->texts, &pending->items[i].command);
  }
  sim->counts.commands += count - 1;
}

/* ---- tasks that somebody cares about ---- */

/* A task in this state where one is found soon; else any. NULL: there is none at all. */
static const struct model_task *some_task(struct sim *sim, enum task_state wanted, enum task_state or_wanted) {
  const struct model *model = &sim->model;
  if (model->task_count == 0) return NULL;
  uint32_t at = (uint32_t)sim_roll(sim, model->task_count), first = at;
  for (unsigned tries = 0; wanted != TASK_NONE && tries < 60; tries++, at = (at + 1) % model->task_count)
    if (model->tasks[at].state == wanted || model->tasks[at].state == or_wanted) return &model->tasks[at];
  if (wanted == TASK_NONE && model->unfinished_count != 0 && sim_chance(sim, 75))
    return &model->tasks[model->unfinished[sim_roll(sim, model->unfinished_count)]];
  return &model->tasks[first];
}

static uint64_t some_revision(struct sim *sim, const struct model_task *task) {
  return sim_chance(sim, 88) ? task->revision : task->revision + sim_roll(sim, 3) - 1;
}

static struct request about(struct sim *sim, enum command_kind kind, const struct model_task *task) {
  struct request request = {.kind = kind, .key = sim_new_key(sim), .task_id = task->id, .text = (uint8_t)sim_roll(sim, 4)};
  request.who = sim_chance(sim, 90) ? WHO_FIRST : some_who(sim);
  return request;
}

static struct request some_cancel(struct sim *sim, const struct model_task *task) {
  struct request request = about(sim, COMMAND_CANCEL, task);
  if (sim_chance(sim, 40)) request.expected_revision = some_revision(sim, task);
  return request;
}

static struct request some_review(struct sim *sim, const struct model_task *task) {
  struct request request = about(sim, COMMAND_REVIEW, task);
  request.expected_revision = some_revision(sim, task);
  request.outcome = sim_chance(sim, 50) ? OUTCOME_SUCCEEDED : OUTCOME_FAILED;
  return request;
}

static struct request some_retry(struct sim *sim, const struct model_task *task) {
  struct request request = about(sim, COMMAND_RETRY, task);
  request.expected_revision = some_revision(sim, task);
  request.task_timeout_ms = task->attempt_timeout_ms + sim_roll(sim, 20000);
  if (sim_chance(sim, 8)) request.task_timeout_ms = task->attempt_timeout_ms - 1;
  if (sim_chance(sim, 20)) some_times(sim, &request);
  return request;
}

void step_cancel(struct sim *sim) {
  const struct model_task *task = some_task(sim, TASK_NONE, TASK_NONE);
  if (task == NULL) return;
  struct request request = some_cancel(sim, task);
  (void)sim_ask(sim, &request);
}

void step_review(struct sim *sim) {
  const struct model_task *task = some_task(sim, TASK_NEEDS_REVIEW, TASK_NEEDS_REVIEW);
  if (task == NULL) return;
  struct request request = some_review(sim, task);
  (void)sim_ask(sim, &request);
}

void step_retry(struct sim *sim) {
  const struct model_task *task = some_task(sim, TASK_FAILED, TASK_CANCELLED);
  if (task == NULL) return;
  struct request request = some_retry(sim, task);
  (void)sim_ask(sim, &request);
}

/* Several people want something of one task at the same instant. */
void step_race(struct sim *sim) {
  static const enum task_state states[] = {TASK_NONE, TASK_NEEDS_REVIEW, TASK_FAILED, TASK_RUNNING};
  enum task_state state = states[sim_roll(sim, 4)];
  const struct model_task *found = some_task(sim, state, state);
  if (found == NULL) return;
  struct model_task task = *found; /* asking may make a tick */
  for (unsigned i = 0; i < 4 && sim_is_well(sim); i++) {
    uint64_t which = sim_roll(sim, 3);
    struct request request = which == 0   ? some_cancel(sim, &task)
                             : which == 1 ? some_review(sim, &task)
                                          : some_retry(sim, &task);
    (void)sim_ask(sim, &request);
  }
  sim->counts.faults[FAULT_RACE]++;
}

/* ---- again ---- */

void step_repeat(struct sim *sim) {
  if (sim->sent_count == 0) return;
  struct request request = sim->sent[sim_roll(sim, sim->sent_count)];
  if (!sim_has_place(sim, &request)) return;
  sim->counts.faults[FAULT_REPEAT]++;
  (void)sim_ask(sim, &request);
}

void step_conflict(struct sim *sim) {
  if (sim->sent_count == 0) return;
  struct request request = sim->sent[sim_roll(sim, sim->sent_count)];
  switch (request.kind) {
    case COMMAND_START:
    case COMMAND_RELEASE:
      request.epoch++;
      break;
    case COMMAND_FINISH:
      if (sim_chance(sim, 50)) request.outcome = request.outcome == OUTCOME_UNKNOWN ? OUTCOME_FAILED : OUTCOME_UNKNOWN;
      request.retryable = request.outcome == OUTCOME_FAILED && !request.retryable;
      request.text ^= 1;
      break;
    case COMMAND_QUEUE_CHANGE:
      request.limits[LIMIT_LEASE_MS]++;
      request.given |= GIVEN_LEASE_MS;
      break;
    case COMMAND_QUEUE_CREATE:
      request.limits[LIMIT_LEASE_MS]++;
      break;
    case COMMAND_APPLICATION_CHANGE:
      request.given |= GIVEN_DISABLED;
      request.administered.disabled = !request.administered.disabled;
      break;
    case COMMAND_CREDENTIAL_ROTATE: /* its token is no part of what is meant */
      request.administered.token = sim_new_key(sim);
      break;
    case COMMAND_CREDENTIAL_REVOKE:
    case COMMAND_SUBSCRIPTION_DELETE:
      break;
    case COMMAND_SUBSCRIPTION_CREATE:
    case COMMAND_SUBSCRIPTION_ACK:
      request.subscribed.position ^= 1;
      break;
    case COMMAND_SCHEDULE_CHANGE:
      request.given |= GIVEN_CATCH_UP;
      request.planned.catch_up_limit++;
      break;
    case COMMAND_CREDENTIAL_CREATE:
      request.administered.narrow = !request.administered.narrow;
      break;
    case COMMAND_SUBMIT:
      if (sim_chance(sim, 50)) request.priority ^= 1;
      else request.available_at++;
      break;
    default:
      request.text ^= 1;
      break;
  }
  if (!sim_has_place(sim, &request)) return;
  sim->counts.faults[FAULT_CONFLICT]++;
  (void)sim_ask(sim, &request);
}

/* ---- reading, queues ---- */

void step_read(struct sim *sim) {
  struct request request = {
      .kind = COMMAND_GET_QUEUE, .who = some_who(sim), .queue = (uint8_t)sim_roll(sim, sim->model.queue_count)};
  const struct model_task *task = some_task(sim, TASK_NONE, TASK_NONE);
  if (task != NULL && sim_chance(sim, 80)) {
    request.kind = COMMAND_GET_TASK;
    request.task_id = task->id;
    if (sim_chance(sim, 2)) request.task_id.bytes[15] ^= 1;
  }
  (void)sim_ask(sim, &request);
}

static void some_limits(struct sim *sim, struct request *request) {
  static const uint64_t unfinished[] = {0, 8, 15, 40}, running[] = {0, 2, 5, 9};
  request->given = (unsigned)sim_roll(sim, 64) & ~(unsigned)GIVEN_NAME;
  if (request->given == 0) request->given = GIVEN_LEASE_MS;
  request->limits[LIMIT_UNFINISHED] = unfinished[sim_roll(sim, 4)];
  request->limits[LIMIT_RUNNING] = running[sim_roll(sim, 4)];
  request->limits[LIMIT_KEY] = 1 + sim_roll(sim, 3);
  request->limits[LIMIT_LEASE_MS] = 5000 + sim_roll(sim, 15000);
  if (sim_chance(sim, 60)) return;
  request->limits[LIMIT_RATE_TASKS] = 1 + sim_roll(sim, 7);
  request->limits[LIMIT_RATE_PER_MS] = 1 + sim_roll(sim, 1500);
  request->limits[LIMIT_RATE_BURST] = sim_roll(sim, 4);
}

void step_queue(struct sim *sim) {
  struct request request = {.kind = COMMAND_QUEUE_CHANGE, .who = some_who(sim), .key = sim_new_key(sim)};
  request.queue = (uint8_t)sim_roll(sim, sim->model.queue_count);
  request.text = (uint8_t)sim_roll(sim, 4);
  const struct model_queue *queue = &sim->model.queues[request.queue];
  request.expected_revision = queue->revision + sim_chance(sim, 8);
  bool pause = sim_chance(sim, 30);
  if (queue->paused || pause) request.kind = pause ? COMMAND_QUEUE_PAUSE : COMMAND_QUEUE_RESUME;
  else some_limits(sim, &request);
  (void)sim_ask(sim, &request);
}
