/* Owns what workers of the simulation do: sessions, starts, reports, renewals, and what goes wrong on the way. */
#include <string.h>

#include "sim/sim.h"

void worker_receive(struct sim *sim, uint64_t session, const struct id *task_id, const struct id *attempt_id, uint64_t epoch) {
  if (sim->lose_next) {
    sim->counts.faults[FAULT_DROPPED]++;
    return;
  }
  for (unsigned i = 0; i < workers_max; i++) {
    struct worker_here *worker = &sim->workers[i];
    if (worker->session != session) continue;
    worker->hands[worker->hand_count++ % hands_max] =
        (struct hand){.task_id = *task_id, .attempt_id = *attempt_id, .epoch = epoch};
  }
}

static uint32_t hands_of(const struct worker_here *worker) {
  return worker->hand_count < hands_max ? worker->hand_count : hands_max;
}

/* A worker with something in its hands; NULL: none has. */
static struct worker_here *some_worker(struct sim *sim) {
  uint64_t first = sim_roll(sim, workers_max);
  for (unsigned i = 0; i < workers_max; i++) {
    struct worker_here *worker = &sim->workers[(first + i) % workers_max];
    if (hands_of(worker) != 0) return worker;
  }
  return NULL;
}

static struct request about_hand(struct sim *sim, enum command_kind kind, const struct worker_here *worker,
                                 const struct hand *hand) {
  return (struct request){.kind = kind,
                          .who = worker->who,
                          .session = worker->session,
                          .key = sim_new_key(sim),
                          .task_id = hand->task_id,
                          .attempt_id = hand->attempt_id,
                          .epoch = hand->epoch};
}

static void some_outcome(struct sim *sim, struct request *request) {
  static const enum outcome outcomes[] = {OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED,
                                          OUTCOME_FAILED,    OUTCOME_FAILED,    OUTCOME_FAILED,    OUTCOME_UNKNOWN,
                                          OUTCOME_UNKNOWN,   OUTCOME_CANCELLED};
  request->outcome = outcomes[sim_roll(sim, 10)];
  request->retryable = request->outcome == OUTCOME_FAILED && sim_chance(sim, 60);
  request->text = (uint8_t)sim_roll(sim, 4);
}

/* ---- sessions ---- */

static void say_hello(struct sim *sim, struct worker_here *worker) {
  struct request request = {.kind = COMMAND_HELLO, .who = worker->who, .instance = worker->instance};
  request.session = ++sim->sessions;
  request.key = sim_new_key(sim);
  request.queue_mask = sim_chance(sim, 70) ? sim_all_queues(sim) : (uint8_t)(1 + sim_roll(sim, sim_all_queues(sim)));
  if (worker->who == WHO_NARROW && sim_chance(sim, 90)) request.queue_mask = 1 << narrow_queue;
  request.handler_mask = sim_chance(sim, 70) ? 7 : (uint8_t)(1 + sim_roll(sim, 7));
  request.capacity = 1 + (uint32_t)sim_roll(sim, 6);
  if (sim_chance(sim, 30)) request.lease_ms = 5000 + (uint32_t)sim_roll(sim, 10000);
  worker->session = request.session;
  if (worker->was_here) sim->counts.faults[FAULT_SAME_INSTANCE]++;
  worker->was_here = true;
  (void)sim_ask(sim, &request);
}

static void say_bye(struct sim *sim, struct worker_here *worker) {
  struct request request = {.kind = COMMAND_BYE, .who = worker->who, .session = worker->session};
  worker->session = 0;
  (void)sim_ask(sim, &request);
}

void step_connect(struct sim *sim) {
  struct worker_here *worker = &sim->workers[sim_roll(sim, workers_max)];
  uint64_t luck = sim_roll(sim, 10);
  if (luck == 0 && worker->session != 0) { /* a second hello */
    struct request request = {.kind = COMMAND_HELLO, .who = worker->who, .instance = worker->instance, .capacity = 1};
    request.session = worker->session;
    request.queue_mask = request.handler_mask = 4;
    (void)sim_ask(sim, &request);
    return;
  }
  if (luck < 4 && worker->session != 0) { /* the process was started anew: another instance */
    say_bye(sim, worker);
    worker->instance = (uint8_t)sim_roll(sim, instances_max);
    worker->was_here = false;
    sim->counts.faults[FAULT_OTHER_INSTANCE]++;
  }
  say_hello(sim, worker);
}

void step_leave(struct sim *sim) {
  struct worker_here *worker = &sim->workers[sim_roll(sim, workers_max)];
  if (worker->session == 0) return;
  sim->counts.faults[FAULT_DISCONNECT]++;
  say_bye(sim, worker);
}

void step_capacity(struct sim *sim) {
  const struct worker_here *worker = &sim->workers[sim_roll(sim, workers_max)];
  struct request request = {.kind = COMMAND_CAPACITY, .who = worker->who, .session = worker->session};
  if (request.session == 0) request.session = sim->sessions + 1000;
  request.capacity = 1 + (uint32_t)sim_roll(sim, 8);
  (void)sim_ask(sim, &request);
}

void step_drain(struct sim *sim) {
  const struct worker_here *worker = &sim->workers[sim_roll(sim, workers_max)];
  if (worker->session == 0) return;
  struct request request = {.kind = COMMAND_DRAIN, .who = worker->who, .session = worker->session};
  (void)sim_ask(sim, &request);
}

/* ---- work ---- */

static struct hand *some_hand(struct sim *sim, struct worker_here *worker) {
  uint32_t count = hands_of(worker);
  for (uint32_t i = 0; i < count && sim_chance(sim, 90); i++)
    if (!worker->hands[i].done) return &worker->hands[i];
  return &worker->hands[sim_roll(sim, count)];
}

void step_work(struct sim *sim) {
  struct worker_here *worker = &sim->workers[sim_roll(sim, workers_max)];
  if (worker->session == 0 && sim_chance(sim, 40)) {
    say_hello(sim, worker);
    return;
  }
  if (hands_of(worker) == 0 && (worker = some_worker(sim)) == NULL) return;
  struct hand *hand = some_hand(sim, worker);
  struct request request = about_hand(sim, COMMAND_START, worker, hand);
  uint64_t luck = sim_roll(sim, 100);
  if (!hand->started && luck < 8) request.kind = COMMAND_RELEASE;
  else if (hand->started || luck < 12) request.kind = COMMAND_FINISH;
  if (request.kind == COMMAND_FINISH) some_outcome(sim, &request);
  hand->started = true;
  hand->done = request.kind != COMMAND_START;
  (void)sim_ask(sim, &request);
}

void step_renew(struct sim *sim) {
  struct worker_here *worker = some_worker(sim);
  if (worker == NULL) return;
  struct request request = about_hand(sim, COMMAND_RENEW, worker, some_hand(sim, worker));
  if (sim_chance(sim, 4)) request.epoch++;
  (void)sim_ask(sim, &request);
}

/* Whatever a worker may still say of what it once held, or of what it never did. */
void step_late(struct sim *sim) {
  static const enum command_kind kinds[] = {COMMAND_FINISH, COMMAND_FINISH, COMMAND_FINISH,
                                            COMMAND_START,  COMMAND_RENEW,  COMMAND_RELEASE};
  struct worker_here *worker = some_worker(sim);
  if (worker == NULL) return;
  struct hand *hand = &worker->hands[sim_roll(sim, hands_of(worker))];
  struct request request = about_hand(sim, kinds[sim_roll(sim, 6)], worker, hand);
  if (request.kind == COMMAND_FINISH) some_outcome(sim, &request);
  if (sim->sent_count != 0 && sim_chance(sim, 40)) { /* what was reported once, as another message */
    const struct request *sent = &sim->sent[sim_roll(sim, sim->sent_count)];
    if (sent->kind == COMMAND_FINISH) request = *sent;
    request.key = sim_new_key(sim);
    if (request.kind == COMMAND_FINISH && sim_chance(sim, 40)) request.text ^= 1;
  }
  if (sim_chance(sim, 12)) request.epoch += sim_roll(sim, 3) - 1;
  if (sim_chance(sim, 10)) request.who = (uint8_t)sim_roll(sim, principals_max);
  if (sim_chance(sim, 3)) request.attempt_id.bytes[15] ^= 1;
  if (sim_chance(sim, 2)) request.task_id.bytes[15] ^= 1;
  sim->counts.faults[FAULT_LATE]++;
  (void)sim_ask(sim, &request);
}

/* ---- on the way ---- */

static bool is_worker_message(enum command_kind kind) { return kind >= COMMAND_START && kind <= COMMAND_RELEASE; }

/* What was sent last does not arrive, or the next assignments do not. */
void step_lose(struct sim *sim) {
  if (sim->pending_count != 0 && is_worker_message(sim->pending[sim->pending_count - 1].request.kind) && sim_chance(sim, 60)) {
    struct request request = sim->pending[--sim->pending_count].request;
    sim->counts.faults[FAULT_DROPPED]++;
    sim->counts.commands--;
    if (request_has_identity(&request)) sim->sent[sim->sent_count < sent_max ? sim->sent_count++ : 0] = request;
    return;
  }
  sim->lose_next = true;
}

void step_duplicate(struct sim *sim) {
  if (sim->pending_count == 0 || !is_worker_message(sim->pending[sim->pending_count - 1].request.kind)) return;
  struct request request = sim->pending[sim->pending_count - 1].request;
  sim->counts.faults[FAULT_DUPLICATED]++;
  (void)sim_ask(sim, &request);
}
