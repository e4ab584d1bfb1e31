/* Owns what the model says about schedules: what their times are, reckoned one by one, and what becomes of each. */
#include <string.h>

#include "sim/model_internal.h"

static const int64_t minute_us = INT64_C(60000000);
/* Later than this after its time, one was missed. */
static const int64_t late_us = INT64_C(60000000);

/* ---- times ---- */

/* The expressions of the simulated world, in UTC, without reading them. */
static bool shape_matches(unsigned shape, int64_t minute) {
  int64_t of_hour = minute % 60, of_day = minute % 1440, weekday = (minute / 1440 + 4) % 7; /* 1970 began on a Thursday */
  switch (shape) {
    case 0:
      return true;
    case 1:
      return of_hour % 5 == 0;
    case 2:
      return of_hour == 30;
    case 3:
      return of_day == 2 * 60 + 15;
    case 4:
      return of_day == 12 * 60 && weekday == 1;
    default:
      return of_hour == 0;
  }
}

int64_t model_time_after(const struct planned *plan, int64_t anchor_at, int64_t after_us) {
  int64_t time = anchor_at, step = (int64_t)plan->interval_ms * 1000;
  if (plan->start_at != 0 && after_us < plan->start_at) after_us = plan->start_at - 1;
  if (plan->by_clock) {
    int64_t minute = after_us / minute_us + 1;
    while (!shape_matches(plan->shape, minute)) minute++;
    time = minute * minute_us;
  } else if (after_us >= anchor_at) {
    time = anchor_at + ((after_us - anchor_at) / step + 1) * step;
  }
  return plan->end_at != 0 && time >= plan->end_at ? 0 : time;
}

static int64_t next_after(const struct model_schedule *schedule, int64_t after_us) {
  return model_time_after(&schedule->plan, schedule->anchor_at, after_us);
}

bool model_schedule_waits(const struct model_schedule *schedule) {
  return schedule->plan.overlap == OVERLAP_SERIAL && schedule->unfinished != 0;
}

/* ---- what becomes of a time ---- */

/* How many times after this have come too; no more than the limit are counted. */
static uint32_t come_after(const struct model *model, const struct model_schedule *schedule, int64_t time) {
  uint32_t count = 0, most = schedule->plan.missed == MISSED_ALL ? schedule->plan.catch_up_limit : 1;
  while (count < most && (time = next_after(schedule, time)) != 0 && time <= model->now_us) count++;
  return count;
}

static bool fires(const struct model *model, const struct model_schedule *schedule) {
  int64_t time = schedule->next_at;
  uint32_t behind = come_after(model, schedule, time);
  if (time > model->up_since && behind == 0 && model->now_us - time <= late_us) return true;
  if (schedule->plan.missed == MISSED_LATEST) return behind == 0;
  if (schedule->plan.missed == MISSED_ALL) return behind < schedule->plan.catch_up_limit;
  /* the first that waited for the task before it was not missed */
  return schedule->decided == 0 && schedule->plan.overlap == OVERLAP_SERIAL && schedule->free_at >= time;
}

static enum trigger_outcome outcome_of(const struct model *model, const struct model_schedule *schedule,
                                       const char **ret_code) {
  *ret_code = NULL;
  if (!fires(model, schedule)) return TRIGGER_SKIPPED_MISSED;
  if (schedule->plan.overlap == OVERLAP_SKIP && schedule->unfinished != 0) return TRIGGER_SKIPPED_OVERLAP;
  enum status status = model_judge_room(model, schedule->queue, schedule->application);
  if (model->applications[schedule->application].disabled) *ret_code = "PERMISSION_DENIED";
  else if (status != STATUS_OK) *ret_code = status == STATUS_QUEUE_FULL ? "QUEUE_FULL" : "APPLICATION_FULL";
  return *ret_code != NULL ? TRIGGER_REJECTED : TRIGGER_SUBMITTED;
}

static void read_skipped(struct model *model, struct model_schedule *schedule, enum trigger_outcome outcome, const char *code) {
  const struct event *have =
      model_foresee(model, EVENT_schedule_skipped, &schedule->id, schedule->revision, schedule->last_seq);
  struct event_schedule_skipped *want = &model->want.event.body.schedule_skipped;
  want->scheduled_at = schedule->next_at;
  want->outcome = outcome;
  if (code != NULL) want->code = bytes_text(code);
  want->next_at = next_after(schedule, schedule->next_at);
  want->namespace_id = model->namespace_id;
  want->queue_id = model->queues[schedule->queue].id;
  schedule->next_at = want->next_at;
  model_met(model);
  schedule->last_seq = have->seq;
}

static void read_triggered(struct model *model, struct model_schedule *schedule) {
  struct request policy = schedule->template;
  policy.schedule = (uint8_t)(schedule - model->schedules + 1);
  policy.queue = schedule->queue;
  const struct model_task *task = model_accept(model, &policy, schedule->application, NULL, NULL, model->now_us, 0,
                                               model_after_ms(model->now_us, policy.task_timeout_ms));
  struct id task_id = task->id;
  const struct event *have =
      model_foresee(model, EVENT_schedule_triggered, &schedule->id, schedule->revision, schedule->last_seq);
  struct event_schedule_triggered *want = &model->want.event.body.schedule_triggered;
  want->scheduled_at = schedule->next_at;
  want->task_id = task_id;
  want->next_at = next_after(schedule, schedule->next_at);
  schedule->next_at = want->next_at;
  model_met(model);
  schedule->last_seq = have->seq;
  schedule->unfinished++;
}

static struct model_schedule *find(struct model *model, const struct id *id) {
  for (uint32_t i = 0; i < model->schedule_count; i++)
    if (id_equal(&model->schedules[i].id, id)) return &model->schedules[i];
  return NULL;
}

static bool is_due(const struct model *model, const struct model_schedule *schedule) {
  return schedule->next_at != 0 && schedule->next_at <= model->now_us;
}

/* The next event speaks of this schedule's next time. */
static void read_decision(struct model *model, const struct event *event, struct model_schedule *schedule) {
  const char *code;
  model_operation_begin(model, &model->node_id, NULL);
  bool waits = model_schedule_waits(schedule);
  if (!is_due(model, schedule) || model->disk_full || model->draining || (waits && schedule->decided == 0)) {
    model_complain(model, "seq %llu: a time of schedule %s is decided that has not come", (unsigned long long)event->seq,
                   id_text(&schedule->id).text);
    return;
  }
  enum trigger_outcome outcome = outcome_of(model, schedule, &code);
  if (waits && fires(model, schedule))
    model_complain(model, "seq %llu: a task of schedule %s is unfinished, and its next time is decided",
                   (unsigned long long)event->seq, id_text(&schedule->id).text);
  if (outcome == TRIGGER_SUBMITTED) read_triggered(model, schedule);
  else read_skipped(model, schedule, outcome, code);
  schedule->decided++;
}

void model_triggers(struct model *model) {
  enum { in_one_commit_max = 1024 };
  uint32_t decided = 0;
  for (uint32_t i = 0; i < model->schedule_count; i++) model->schedules[i].decided = 0;
  for (; model_is_well(model) && model->seen.at < model->seen.count; decided++) {
    const struct event *event = &model->seen.events[model->seen.at];
    bool accepted = event->type == EVENT_task_accepted;
    if ((!accepted && event->type != EVENT_schedule_skipped) || !id_equal(&event->common.actor, &model->node_id)) break;
    const struct id *id = accepted ? &event->body.task_accepted.schedule_id : &event->stream;
    struct model_schedule *schedule = find(model, id);
    if (schedule == NULL) model_complain(model, "seq %llu: there is no such schedule", (unsigned long long)event->seq);
    else read_decision(model, event, schedule);
  }
  if (model->disk_full || model->draining || decided >= in_one_commit_max) return;
  for (uint32_t i = 0; i < model->schedule_count; i++) {
    const struct model_schedule *schedule = &model->schedules[i];
    if (is_due(model, schedule) && !model_schedule_waits(schedule))
      model_complain(model, "a time of schedule %s has come and is not decided", id_text(&schedule->id).text);
  }
}

/* ---- what people do to schedules ---- */

struct model_object model_schedule_object(const struct model_schedule *schedule) {
  const struct planned *plan = &schedule->plan;
  struct model_object object = {.id = schedule->id, .revision = schedule->revision, .over = schedule->paused};
  const uint64_t shown[limits_max] = {plan->by_clock ? 0 : plan->interval_ms,
                                      (uint64_t)plan->start_at,
                                      (uint64_t)plan->end_at,
                                      plan->overlap,
                                      plan->missed,
                                      plan->catch_up_limit,
                                      schedule->deleted};
  memcpy(object.limits, shown, sizeof shown);
  return object;
}

static void merge(struct model_schedule *schedule, const struct request *request, unsigned given) {
  struct planned *plan = &schedule->plan;
  const struct planned *asked = &request->planned;
  if (given & GIVEN_CRON) plan->shape = asked->shape;
  if (given & GIVEN_INTERVAL) plan->interval_ms = asked->interval_ms;
  if (given & GIVEN_START) plan->start_at = asked->start_at;
  if (given & GIVEN_END) plan->end_at = asked->end_at;
  if (given & GIVEN_OVERLAP) plan->overlap = asked->overlap;
  if (given & GIVEN_MISSED) plan->missed = asked->missed;
  if (given & GIVEN_CATCH_UP) plan->catch_up_limit = asked->catch_up_limit;
  if (given & GIVEN_TEMPLATE) schedule->template = *request;
}

/* Both events of configuration have these fields in common. */
#define FILL(body)                                                                                  \
  do {                                                                                              \
    (body)->name = text_name();                                                                     \
    (body)->kind = plan->by_clock ? SCHEDULE_CRON : SCHEDULE_INTERVAL;                              \
    if (plan->by_clock) (body)->cron = text_cron(plan->shape);                                      \
    if (plan->by_clock) (body)->timezone = bytes_text("UTC");                                       \
    if (!plan->by_clock) (body)->interval_ms = plan->interval_ms;                                   \
    if (!plan->by_clock) (body)->anchor_at = schedule->anchor_at;                                   \
    (body)->start_at = plan->start_at;                                                              \
    (body)->end_at = plan->end_at;                                                                  \
    (body)->overlap = plan->overlap;                                                                \
    (body)->missed = plan->missed;                                                                  \
    (body)->catch_up_limit = plan->catch_up_limit;                                                  \
    (body)->paused = schedule->paused;                                                              \
    (body)->next_at = schedule->next_at;                                                            \
    (body)->handler = text_handler(template->handler);                                              \
    (body)->handler_version = bytes_text("v1");                                                     \
    (body)->payload_version = bytes_text("p1");                                                     \
    (body)->payload = text_payload(template->text);                                                 \
    (body)->task_timeout_ms = template->task_timeout_ms;                                            \
    (body)->business_key = text_business_key(template->business_key);                               \
    (body)->concurrency_key = text_concurrency_key(template->concurrency_key);                      \
    (body)->priority = template->priority;                                                          \
    (body)->recovery_safety = template->idempotent ? RECOVERY_IDEMPOTENT : RECOVERY_RECONCILE_ONLY; \
    (body)->max_attempts = template->max_attempts;                                                  \
    (body)->initial_delay_ms = template->initial_delay_ms;                                          \
    (body)->max_delay_ms = template->max_delay_ms;                                                  \
    (body)->attempt_timeout_ms = template->attempt_timeout_ms;                                      \
  } while (0)

static void read_configured(struct model *model, struct model_schedule *schedule, bool create) {
  const struct planned *plan = &schedule->plan;
  const struct request *template = &schedule->template;
  const struct event *have = model_foresee(model, create ? EVENT_schedule_created : EVENT_schedule_changed, &schedule->id,
                                           schedule->revision + 1, schedule->last_seq);
  struct event *want = &model->want.event;
  if (create) {
    FILL(&want->body.schedule_created);
    want->body.schedule_created.namespace_id = model->namespace_id;
    want->body.schedule_created.application_id = model->applications[schedule->application].id;
    want->body.schedule_created.queue_id = model->queues[schedule->queue].id;
  } else {
    FILL(&want->body.schedule_changed);
  }
  model_met(model);
  schedule->last_seq = schedule->config_seq = have->seq;
}

/* What the schedule would be; OK, or why it may not. */
static enum status configure(const struct model *model, const struct request *request, struct model_schedule *schedule) {
  bool create = request->kind == COMMAND_SCHEDULE_CREATE;
  unsigned given = create ? ~0U : request->given;
  unsigned times = GIVEN_CRON | GIVEN_TIMEZONE | GIVEN_INTERVAL | GIVEN_START | GIVEN_END;
  merge(schedule, request, given);
  const struct planned *plan = &schedule->plan;
  if (plan->end_at != 0 && plan->end_at <= plan->start_at) return STATUS_INVALID_ARGUMENT;
  if (!plan->by_clock && (given & (GIVEN_INTERVAL | GIVEN_START)) != 0)
    schedule->anchor_at = plan->start_at != 0 ? plan->start_at : model->now_us;
  if (!create && request->expected_revision != schedule->revision) return STATUS_STATE_CONFLICT;
  if ((given & times) == 0) return STATUS_OK;
  schedule->next_at = next_after(schedule, model->now_us);
  if (schedule->next_at == 0) return STATUS_INVALID_ARGUMENT;
  if (schedule->paused) schedule->next_at = 0;
  return STATUS_OK;
}

static void pause(struct model *model, struct model_schedule *schedule, const struct request *request) {
  const struct event *have =
      model_foresee(model, EVENT_schedule_paused, &schedule->id, schedule->revision + 1, schedule->last_seq);
  model->want.event.body.schedule_paused.reason = text_reason(request->text);
  model->want.event.body.schedule_paused.config_seq = schedule->config_seq;
  model_met(model);
  schedule->last_seq = have->seq;
  schedule->paused = true;
  schedule->next_at = 0;
}

static void resume(struct model *model, struct model_schedule *schedule, const struct request *request) {
  const struct event *have =
      model_foresee(model, EVENT_schedule_resumed, &schedule->id, schedule->revision + 1, schedule->last_seq);
  struct event_schedule_resumed *want = &model->want.event.body.schedule_resumed;
  want->reason = text_reason(request->text);
  want->config_seq = schedule->config_seq;
  want->next_at = schedule->next_at = next_after(schedule, model->now_us);
  model_met(model);
  schedule->last_seq = have->seq;
  schedule->paused = false;
}

static void delete (struct model *model, struct model_schedule *schedule) {
  const struct event *have =
      model_foresee(model, EVENT_schedule_deleted, &schedule->id, schedule->revision + 1, schedule->last_seq);
  model->want.event.body.schedule_deleted.config_seq = schedule->config_seq;
  model->want.event.body.schedule_deleted.paused = schedule->paused;
  model_met(model);
  schedule->last_seq = have->seq;
  schedule->deleted = true;
  schedule->next_at = 0;
}

/* Reads what the change led to, up to its audit record. */
static void done(struct model *model, const struct request *request, struct model_schedule *schedule, const char *action,
                 struct expected *expected) {
  bool worded = request->kind != COMMAND_SCHEDULE_CREATE && request->kind != COMMAND_SCHEDULE_CHANGE;
  schedule->revision++;
  schedule->last_seq = model_object_audit(model, action, &schedule->id, schedule->revision, schedule->last_seq,
                                          worded ? text_reason(request->text) : (struct bytes){NULL, 0});
  struct model_object object = model_schedule_object(schedule);
  model_object_done(model, request, &object, expected);
}

static void make(struct model *model, const struct request *request, struct expected *expected) {
  struct model_schedule made = {.queue = request->queue, .application = (uint8_t)who_application(request->who)};
  if (!who_reaches(request->who, request->queue)) expected->status = STATUS_NOT_FOUND;
  if (expected->status != STATUS_OK || !model_object_take_up(model, request, expected)) return;
  made.plan.by_clock = request->planned.by_clock;
  made.paused = request->planned.paused;
  expected->status = configure(model, request, &made);
  if (expected->status != STATUS_OK) return;
  made.id = *model_new_id(model, EVENT_schedule_created);
  struct model_schedule *schedule = &model->schedules[model->schedule_count++];
  *schedule = made;
  read_configured(model, schedule, true);
  done(model, request, schedule, "schedule.create", expected);
}

static void change(struct model *model, const struct request *request, struct model_schedule *schedule,
                   struct expected *expected) {
  struct model_schedule changed = *schedule;
  expected->status = configure(model, request, &changed);
  if (expected->status != STATUS_OK) return;
  *schedule = changed;
  read_configured(model, schedule, false);
  done(model, request, schedule, "schedule.change", expected);
}

void model_schedule_request(struct model *model, const struct request *request, struct expected *expected) {
  if (request->kind == COMMAND_SCHEDULE_CREATE) {
    make(model, request, expected);
    return;
  }
  struct model_schedule *schedule = &model->schedules[request->schedule - 1];
  if (!who_reaches(request->who, schedule->queue)) expected->status = STATUS_NOT_FOUND;
  if (expected->status != STATUS_OK || !model_object_take_up(model, request, expected)) return;
  if (schedule->deleted) expected->status = STATUS_NOT_FOUND;
  else if (request->kind == COMMAND_SCHEDULE_CHANGE) change(model, request, schedule, expected);
  if (expected->status != STATUS_OK || request->kind == COMMAND_SCHEDULE_CHANGE) return;
  bool other = request->expected_revision != 0 && request->expected_revision != schedule->revision;
  bool is_so = (request->kind == COMMAND_SCHEDULE_PAUSE && schedule->paused) ||
               (request->kind == COMMAND_SCHEDULE_RESUME && !schedule->paused);
  if (other || is_so) {
    expected->status = STATUS_STATE_CONFLICT;
  } else if (request->kind == COMMAND_SCHEDULE_PAUSE) {
    pause(model, schedule, request);
    done(model, request, schedule, "schedule.pause", expected);
  } else if (request->kind == COMMAND_SCHEDULE_RESUME) {
    resume(model, schedule, request);
    done(model, request, schedule, "schedule.resume", expected);
  } else {
    delete (model, schedule);
    done(model, request, schedule, "schedule.delete", expected);
  }
}

void model_schedule_read(struct model *model, const struct request *request, struct expected *expected) {
  if (request->kind == COMMAND_PREVIEW_TIMES) return;
  const struct model_schedule *schedule = &model->schedules[request->schedule - 1];
  if (schedule->deleted || !who_reaches(request->who, schedule->queue)) expected->status = STATUS_NOT_FOUND;
  else expected->schedule = schedule;
}
