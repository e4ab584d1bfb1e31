/* Owns what the model says about the feed: what of the log a reader is shown, and subscriptions. */
#include <string.h>

#include "core/feed.h"
#include "sim/model_internal.h"

/* ---- what is shown ---- */

/* The events of tasks, queues and schedules. */
static bool is_of_feed(enum event_type type) {
  static const char *const kinds[] = {"task.", "attempt.", "evidence.", "queue.", "schedule."};
  const char *name = event_type_text(type);
  for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strncmp(name, kinds[i], strlen(kinds[i])) == 0) return true;
  return false;
}

/* The name stands in the list of types. */
static bool is_named(struct bytes types, enum event_type type) {
  const char *name = event_type_text(type);
  size_t size = strlen(name), start = 0;
  for (size_t at = 0; at <= types.size; at++) {
    if (at < types.size && types.data[at] != ',') continue;
    if (at - start == size && memcmp(types.data + start, name, size) == 0) return true;
    start = at + 1;
  }
  return false;
}

/* Its queue, by what it is an event of. */
static unsigned queue_of(struct model *model, const struct id *stream) {
  const struct model_task *task = model_task(model, stream);
  if (task != NULL) return task->queue;
  for (unsigned i = 0; i < model->queue_count; i++)
    if (id_equal(&model->queues[i].id, stream)) return i;
  for (unsigned i = 0; i < model->schedule_count; i++)
    if (id_equal(&model->schedules[i].id, stream)) return model->schedules[i].queue;
  model_complain(model, "%s is neither a task nor a queue nor a schedule", id_text(stream).text);
  return 0;
}

bool model_shows(struct model *model, const struct model_filter *filter, unsigned who, uint64_t seq, unsigned *ret_queue) {
  const struct model_event *event = model_log_at(model, seq);
  struct bytes types = text_types(filter->types);
  if (!is_of_feed(event->type) || (types.size != 0 && !is_named(types, event->type))) return false;
  if (!id_is_zero(&filter->task_id) && !id_equal(&filter->task_id, &event->stream)) return false;
  *ret_queue = queue_of(model, &event->stream);
  return who_reaches(who, *ret_queue) && (filter->queue == asked_any || filter->queue == *ret_queue);
}

/* ---- what may be asked for ---- */

/* The newest event at this place of the tick. */
static uint64_t log_end(const struct model *model) { return model->log_count - model->seen.count + model->seen.at; }

/* A task names its queue. */
static enum status judge_filter(struct model *model, unsigned who, struct model_filter *filter) {
  if (filter->queue != asked_any && !who_reaches(who, filter->queue)) return STATUS_NOT_FOUND;
  if (id_is_zero(&filter->task_id)) return STATUS_OK;
  const struct model_task *task = model_task_there(model, &filter->task_id);
  if (task == NULL || !who_reaches(who, task->queue)) return STATUS_NOT_FOUND;
  if (filter->queue != asked_any && filter->queue != task->queue) return STATUS_NOT_FOUND;
  filter->queue = task->queue;
  return STATUS_OK;
}

static struct model_filter filter_of(const struct request *request) {
  return (struct model_filter){request->subscribed.types, request->queue, request->task_id};
}

static struct model_subscription *reach(struct model *model, const struct request *request) {
  struct model_subscription *subscription = &model->subscriptions[request->subscribed.object - 1];
  bool all = subscription->filter.queue == asked_any;
  return request->who == WHO_NARROW && (all || !who_reaches(request->who, subscription->filter.queue)) ? NULL : subscription;
}

/* ---- writes ---- */

static enum status judge_creation(struct model *model, const struct request *request, struct model_filter *filter) {
  enum status status = judge_filter(model, request->who, filter);
  if (status != STATUS_OK) return status;
  return request->who == WHO_NARROW && filter->queue == asked_any ? STATUS_PERMISSION_DENIED : STATUS_OK;
}

static enum status judge_place(const struct model *model, const struct request *request) {
  for (unsigned i = 0; i < model->subscription_count; i++)
    if (!model->subscriptions[i].deleted && model->subscriptions[i].name == request->subscribed.name)
      return STATUS_STATE_CONFLICT;
  bool ahead = request->subscribed.from == FEED_FROM_POSITION && request->subscribed.position > log_end(model);
  return ahead ? STATUS_INVALID_ARGUMENT : STATUS_OK;
}

static void create(struct model *model, const struct request *request, const struct model_filter *filter) {
  struct model_subscription *subscription = &model->subscriptions[model->subscription_count++];
  *subscription =
      (struct model_subscription){.id = *model_new_id(model, EVENT_subscription_created),
                                  .filter = *filter,
                                  .name = request->subscribed.name,
                                  .position = request->subscribed.from == FEED_FROM_POSITION ? request->subscribed.position
                                              : request->subscribed.from == FEED_FROM_LATEST ? log_end(model)
                                                                                             : 0};
  const struct event *have = model_foresee(model, EVENT_subscription_created, &subscription->id, 1, 0);
  struct event_subscription_created *want = &model->want.event.body.subscription_created;
  want->namespace_id = model->namespace_id;
  want->name = text_subscription(subscription->name);
  want->types = text_types(filter->types);
  if (filter->queue != asked_any) want->queue_id = model->queues[filter->queue].id;
  want->task_id = filter->task_id;
  want->position = subscription->position;
  model_met(model);
  subscription->last_seq = have->seq;
}

/* Forward alone. */
static void acknowledge(struct model *model, struct model_subscription *subscription, uint64_t position) {
  const struct event *have =
      model_foresee(model, EVENT_subscription_acked, &subscription->id, subscription->revision + 1, subscription->last_seq);
  if (position > subscription->position) subscription->position = position;
  model->want.event.body.subscription_acked.position = subscription->position;
  model_met(model);
  subscription->last_seq = have->seq;
}

static void delete (struct model *model, struct model_subscription *subscription) {
  const struct event *have =
      model_foresee(model, EVENT_subscription_deleted, &subscription->id, subscription->revision + 1, subscription->last_seq);
  model_met(model);
  subscription->last_seq = have->seq;
  subscription->deleted = true;
}

struct model_object model_subscription_object(const struct model_subscription *subscription) {
  return (struct model_object){.id = subscription->id, .revision = subscription->revision, .limits[0] = subscription->position};
}

/* It was done before, and whoever asks reaches what it made: the answer is the first one, though the task that it names is
 * gone. */
static bool is_known(struct model *model, const struct request *request) {
  const struct model_receipt *receipt = model_receipt_find(model, request);
  if (receipt == NULL || !request_means_the_same(&receipt->request, request)) return false;
  for (unsigned i = 0; i < model->subscription_count; i++)
    if (id_equal(&model->subscriptions[i].id, &receipt->object.id))
      return request->who != WHO_NARROW || model->subscriptions[i].filter.queue == narrow_queue;
  return false;
}

void model_subscription_request(struct model *model, const struct request *request, struct expected *expected) {
  static const struct bytes no_reason = {NULL, 0};
  bool creation = request->kind == COMMAND_SUBSCRIPTION_CREATE, ack = request->kind == COMMAND_SUBSCRIPTION_ACK;
  struct model_filter filter = filter_of(request);
  struct model_subscription *subscription = creation ? &model->subscriptions[model->subscription_count] : reach(model, request);
  if (creation) expected->status = judge_creation(model, request, &filter);
  else if (subscription == NULL) expected->status = STATUS_NOT_FOUND;
  if (creation && expected->status == STATUS_NOT_FOUND && is_known(model, request)) expected->status = STATUS_OK;
  if (expected->status != STATUS_OK || !model_object_take_up(model, request, expected)) return;
  if (creation) expected->status = judge_place(model, request);
  else if (subscription->deleted) expected->status = STATUS_NOT_FOUND;
  else if (ack && request->subscribed.position > log_end(model)) expected->status = STATUS_INVALID_ARGUMENT;
  if (expected->status != STATUS_OK) return;
  if (creation) create(model, request, &filter);
  else if (ack) acknowledge(model, subscription, request->subscribed.position);
  else delete (model, subscription);
  subscription->revision++;
  if (!ack)
    subscription->last_seq = model_object_audit(model, creation ? "subscription.create" : "subscription.delete",
                                                &subscription->id, subscription->revision, subscription->last_seq, no_reason);
  struct model_object object = model_subscription_object(subscription);
  model_object_done(model, request, &object, expected);
}

/* ---- reads ---- */

void model_subscription_read(struct model *model, const struct request *request, struct expected *expected) {
  const struct model_subscription *subscription = reach(model, request);
  expected->log_end = log_end(model);
  if (subscription == NULL || subscription->deleted) expected->status = STATUS_NOT_FOUND;
  else expected->object = model_subscription_object(subscription);
}

void model_open_feed(struct model *model, const struct request *request, struct expected *expected) {
  uint64_t after = request->subscribed.position;
  struct model_filter filter = filter_of(request);
  if (after > log_end(model)) expected->status = STATUS_INVALID_ARGUMENT;
  else if (request->subscribed.object == 0) expected->status = judge_filter(model, request->who, &filter);
  if (request->subscribed.object != 0 && expected->status == STATUS_OK) {
    const struct model_subscription *subscription = reach(model, request);
    if (subscription == NULL || subscription->deleted) {
      expected->status = STATUS_NOT_FOUND;
      return;
    }
    filter = subscription->filter;
    if (after < subscription->position) after = subscription->position;
  }
  expected->filter = filter;
  expected->after = after;
}
