/* Owns what the model says about worker sessions, and whether a claim was lawful. */
#include <string.h>

#include "sim/model_internal.h"

/* ---- sessions ---- */

static bool same_instance(const struct model_session *session, const struct request *request) {
  return session->session != 0 && session->instance == request->instance &&
         who_application(session->who) == who_application(request->who);
}

static enum status judge_hello(struct model *model, const struct request *request) {
  if (model_session(model, request->session) != NULL) return STATUS_STATE_CONFLICT;
  for (unsigned queue = 0; queue < model->queue_count; queue++)
    if ((request->queue_mask >> queue & 1) != 0 && !who_reaches(request->who, queue)) return STATUS_NOT_FOUND;
  return STATUS_OK;
}

static uint32_t lease_told(const struct model *model, const struct request *request) {
  uint64_t least = 300000;
  if (request->lease_ms != 0) return request->lease_ms;
  for (unsigned queue = 0; queue < model->queue_count; queue++)
    if ((request->queue_mask >> queue & 1) != 0 && model->queues[queue].limits[LIMIT_LEASE_MS] < least)
      least = model->queues[queue].limits[LIMIT_LEASE_MS];
  return (uint32_t)least;
}

/* What it still holds is told again. */
static void welcome(struct model *model, const struct model_session *session, struct expected *expected) {
  for (uint32_t i = 0; i < model->unfinished_count; i++) {
    const struct model_task *task = &model->tasks[model->unfinished[i]];
    if (!model_is_held(task->state) || task->instance != session->instance ||
        task->worker_application != who_application(session->who))
      continue;
    expected->held_count++;
    if (task->state == TASK_LEASED) model_tell(model, TOLD_ASSIGN, session->session, task, &task->attempt_id, ENDED_NONE);
    else if (task->cancel_requested_at != 0)
      model_tell(model, TOLD_CANCEL, session->session, task, &task->attempt_id, ENDED_NONE);
  }
}

void model_hello(struct model *model, const struct request *request, struct expected *expected) {
  struct model_session *free_place = NULL;
  expected->status = judge_hello(model, request);
  if (expected->status != STATUS_OK) return;
  for (unsigned i = 0; i < model_sessions_max; i++) {
    struct model_session *session = &model->sessions[i];
    if (same_instance(session, request)) {
      model_tell(model, TOLD_CLOSE, session->session, NULL, NULL, ENDED_NONE);
      session->session = 0;
    }
    if (session->session == 0) free_place = session;
  }
  if (free_place == NULL) {
    model_complain(model, "the simulator has too many sessions");
    return;
  }
  *free_place = (struct model_session){.session = request->session,
                                       .who = request->who,
                                       .instance = request->instance,
                                       .queue_mask = request->queue_mask,
                                       .handler_mask = request->handler_mask,
                                       .capacity = request->capacity,
                                       .lease_ms = request->lease_ms};
  expected->lease_ms = lease_told(model, request);
  welcome(model, free_place, expected);
}

void model_session_request(struct model *model, const struct request *request, struct expected *expected) {
  struct model_session *session = model_session(model, request->session);
  if (session == NULL) {
    expected->status = request->kind == COMMAND_BYE ? STATUS_OK : STATUS_STATE_CONFLICT;
    return;
  }
  if (request->kind == COMMAND_CAPACITY) session->capacity = request->capacity;
  if (request->kind == COMMAND_BYE) session->session = 0;
  if (request->kind != COMMAND_DRAIN) return;
  session->draining = true;
  model_tell_drained(model, session);
}

/* ---- which task may be claimed now ---- */

int64_t model_rate_interval(const struct model_queue *queue) {
  uint64_t period = queue->limits[LIMIT_RATE_PER_MS] * 1000, tasks = queue->limits[LIMIT_RATE_TASKS];
  return (int64_t)((period + tasks - 1) / tasks);
}

static int64_t rate_opens_at(const struct model_queue *queue) {
  if (queue->limits[LIMIT_RATE_TASKS] == 0) return 0;
  int64_t burst = queue->limits[LIMIT_RATE_BURST] != 0 ? (int64_t)queue->limits[LIMIT_RATE_BURST] : 1;
  return queue->rate_at - (burst - 1) * model_rate_interval(queue);
}

/* All but the rate. */
static bool may_be_claimed(const struct model *model, const struct model_task *task) {
  const struct model_queue *queue = &model->queues[task->queue];
  if (task->state != TASK_WAITING || model->now_us < task->available_at || model->now_us >= model_due(task)) return false;
  if (task->attempt_count >= task->max_attempts || task->cancel_requested_at != 0 || queue->paused) return false;
  uint64_t running = queue->counts[TASK_LEASED] + queue->counts[TASK_RUNNING], most = queue->limits[LIMIT_RUNNING];
  if (most != 0 && running >= most) return false;
  return task->concurrency_key == 0 || model->key_held[task->queue][task->concurrency_key] < queue->limits[LIMIT_KEY];
}

static bool rate_is_kept(const struct model *model, const struct model_task *task) {
  return rate_opens_at(&model->queues[task->queue]) <= model->now_us;
}

static bool offers(const struct model_session *session, const struct model_task *task) {
  return session->session != 0 && !session->draining && (session->queue_mask >> task->queue & 1) != 0 &&
         (session->handler_mask >> task->handler & 1) != 0;
}

static int64_t free_places(const struct model *model, const struct model_session *session) {
  return (int64_t)session->capacity - model->held[who_application(session->who)][session->instance];
}

/* a goes before b. */
static bool goes_before(const struct model_task *a, const struct model_task *b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  if (a->available_at != b->available_at) return a->available_at < b->available_at;
  return id_compare(&a->id, &b->id) < 0;
}

/* ---- judging a claim ---- */

static void judge_order(struct model *model, const struct model_task *task, const struct model_session *session) {
  for (uint32_t i = 0; i < model->unfinished_count; i++) {
    const struct model_task *other = &model->tasks[model->unfinished[i]];
    if (other->state != TASK_WAITING || !goes_before(other, task) || !offers(session, other)) continue;
    if (!may_be_claimed(model, other) || !rate_is_kept(model, other)) continue;
    model_complain(model, "task %s was assigned before %s, which goes before it", id_text(&task->id).text,
                   id_text(&other->id).text);
    return;
  }
  for (unsigned i = 0; i < model_sessions_max; i++) {
    const struct model_session *other = &model->sessions[i];
    if (offers(other, task) && free_places(model, other) > free_places(model, session))
      model_complain(model, "task %s was assigned to session %llu, though %llu has more room", id_text(&task->id).text,
                     (unsigned long long)session->session, (unsigned long long)other->session);
  }
}

static struct model_session *claimant(struct model *model, const struct event_task_leased *leased) {
  for (unsigned i = 0; i < model_sessions_max; i++) {
    struct model_session *session = &model->sessions[i];
    if (session->session == 0) continue;
    struct id instance_id = instance_id_of(session->instance);
    if (id_equal(&instance_id, &leased->instance_id) &&
        id_equal(&model->applications[who_application(session->who)].id, &leased->worker_application_id))
      return session;
  }
  return NULL;
}

static void read_lease(struct model *model, struct model_task *task, const struct model_session *session) {
  struct model_queue *queue = &model->queues[task->queue];
  const struct event *have = model_foresee_task(model, EVENT_task_leased, task, task->revision + 1);
  struct event_task_leased *want = &model->want.event.body.task_leased;
  uint32_t lease_ms = session->lease_ms != 0 ? session->lease_ms : (uint32_t)queue->limits[LIMIT_LEASE_MS];
  want->attempt_id = have->body.task_leased.attempt_id;
  want->number = task->attempt_count + 1;
  want->epoch = task->epoch + 1;
  want->instance_id = instance_id_of(session->instance);
  want->worker_application_id = model->applications[who_application(session->who)].id;
  want->lease_ms = lease_ms;
  want->lease_until = model_earlier(model_after_ms(model->now_us, lease_ms), model_due(task));
  model_met(model);
  task->attempt_count++;
  task->epoch++;
  task->attempt_id = want->attempt_id;
  task->worker_application = (uint8_t)who_application(session->who);
  task->instance = session->instance;
  task->lease_ms = lease_ms;
  task->lease_until = task->live_until = want->lease_until;
  if (task->epoch <= model_attempts_max)
    model->attempts[task->number][task->epoch - 1] =
        (struct model_attempt){.id = task->attempt_id, .application = task->worker_application};
  model->held[task->worker_application][task->instance]++;
  model->key_held[task->queue][task->concurrency_key]++;
  model_move(model, task, TASK_LEASED);
  if (queue->limits[LIMIT_RATE_TASKS] != 0)
    queue->rate_at = (queue->rate_at > model->now_us ? queue->rate_at : model->now_us) + model_rate_interval(queue);
  model_tell(model, TOLD_ASSIGN, session->session, task, &task->attempt_id, ENDED_NONE);
}

/* True: it was read. */
static bool take_claim(struct model *model) {
  const struct event *event = &model->seen.events[model->seen.at];
  struct model_task *task = model_task(model, &event->stream);
  if (event->type != EVENT_task_leased || task == NULL || model->disk_full || model->draining) {
    model_complain(model, "seq %llu: %s should not have been committed", (unsigned long long)event->seq,
                   event_type_text(event->type));
    return false;
  }
  struct model_session *session = claimant(model, &event->body.task_leased);
  model_operation_begin(model, &model->node_id, NULL);
  if (session == NULL || !offers(session, task) || free_places(model, session) <= 0) {
    model_complain(model, "seq %llu: task %s was assigned to a worker that cannot take it", (unsigned long long)event->seq,
                   id_text(&task->id).text);
    return false;
  }
  if (!may_be_claimed(model, task) || !rate_is_kept(model, task)) {
    model_complain(model, "seq %llu: task %s may not be assigned now: it is %s, or its queue is closed",
                   (unsigned long long)event->seq, id_text(&task->id).text, task_state_text(task->state));
    return false;
  }
  judge_order(model, task, session);
  read_lease(model, task, session);
  return model_is_well(model);
}

/* Which queue and handler a worker with room waits for. */
static void find_demand(const struct model *model, bool demand[queues_max][handlers_offered_max]) {
  memset(demand, 0, sizeof(bool) * queues_max * handlers_offered_max);
  for (unsigned i = 0; i < model_sessions_max; i++) {
    const struct model_session *session = &model->sessions[i];
    if (session->session == 0 || session->draining || free_places(model, session) <= 0) continue;
    for (unsigned queue = 0; queue < model->queue_count; queue++)
      for (unsigned handler = 0; handler < handlers_offered_max; handler++)
        if ((session->queue_mask >> queue & 1) != 0 && (session->handler_mask >> handler & 1) != 0)
          demand[queue][handler] = true;
  }
}

void model_dispatch(struct model *model) {
  bool demand[queues_max][handlers_offered_max];
  while (model->seen.at < model->seen.count)
    if (!take_claim(model)) return;
  if (model->disk_full || model->draining) return;
  find_demand(model, demand);
  for (uint32_t i = 0; i < model->unfinished_count; i++) {
    const struct model_task *task = &model->tasks[model->unfinished[i]];
    if (task->state != TASK_WAITING || !demand[task->queue][task->handler]) continue;
    if (may_be_claimed(model, task) && rate_is_kept(model, task))
      model_complain(model, "task %s is ready and a worker is free, and it was not assigned", id_text(&task->id).text);
  }
}

int64_t model_next_us(const struct model *model) {
  bool demand[queues_max][handlers_offered_max];
  int64_t next = INT64_MAX;
  find_demand(model, demand);
  for (uint32_t i = 0; i < model->schedule_count && !model->disk_full && !model->draining; i++) {
    const struct model_schedule *schedule = &model->schedules[i];
    if (schedule->next_at != 0 && !model_schedule_waits(schedule)) next = model_earlier(next, schedule->next_at);
  }
  for (uint32_t i = 0; i < model->unfinished_count; i++) {
    const struct model_task *task = &model->tasks[model->unfinished[i]];
    next = model_earlier(next, model_due(task));
    if (task->state != TASK_WAITING) continue;
    if (task->available_at > model->now_us) next = model_earlier(next, task->available_at);
    else if (!model->disk_full && !model->draining && demand[task->queue][task->handler] && may_be_claimed(model, task))
      next = model_earlier(next, rate_opens_at(&model->queues[task->queue]));
  }
  return next;
}
