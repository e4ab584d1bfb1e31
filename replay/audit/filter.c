/* Owns what a request selects of the log. */
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/guard.h"

enum { cache_slots = 4096 };

/* Which tasks are in the wanted queue: the last ones that were asked for. */
struct cached {
  struct id task;
  bool inside;
};

struct filter {
  const struct request *request;
  struct scan *scan;
  struct cached cache[cache_slots];
};

struct filter *filter_new(const struct request *request, struct scan *scan) {
  struct filter *filter = guard_calloc(1, sizeof *filter);
  filter->request = request;
  filter->scan = scan;
  return filter;
}

void filter_free(struct filter *filter) { free(filter); }

bool name_matches(const char *wanted, struct bytes name) {
  size_t size = strlen(wanted);
  if (size == 0 || wanted[size - 1] != '*') return bytes_equal_text(name, wanted);
  return name.size >= size - 1 && memcmp(name.data, wanted, size - 1) == 0;
}

static bool type_fits(const struct request *request, enum event_type type) {
  struct bytes name = bytes_text(event_type_text(type));
  for (unsigned i = 0; i < request->type_count; i++)
    if (name_matches(request->types[i], name)) return true;
  return request->type_count == 0;
}

bool filter_may(const struct filter *filter, const struct event *header) {
  const struct request *request = filter->request;
  if (!id_is_zero(&request->task) && !id_equal(&request->task, &header->stream)) return false;
  return event_type_text(header->type)[0] == 0 || type_fits(request, header->type);
}

bool event_is_decision(enum event_type type) {
  return type == EVENT_task_requeued || type == EVENT_task_succeeded || type == EVENT_task_failed ||
         type == EVENT_task_review_required || type == EVENT_task_cancelled;
}

struct bytes action_of_event(const struct event *event, enum event_type older) {
  const char *action = "";
  switch (event->type) {
    case EVENT_audit_recorded:
      return event->body.audit_recorded.action;
    case EVENT_task_accepted:
      action = "task.accept";
      break;
    case EVENT_task_leased:
      action = "task.lease";
      break;
    case EVENT_task_started:
      action = "task.start";
      break;
    case EVENT_attempt_result:
      action = "task.finish";
      break;
    case EVENT_attempt_ended:
      if (event->body.attempt_ended.ended_by == ENDED_RELEASED) action = "task.release";
      else if (event->body.attempt_ended.ended_by != ENDED_REVOKED) action = "task.expire";
      break;
    default:
      if (event_is_decision(event->type) && older != EVENT_attempt_result && older != EVENT_attempt_ended &&
          older != EVENT_task_cancel_requested)
        action = "task.expire";
  }
  return bytes_text(action);
}

static bool action_fits(const struct filter *filter, const struct event *event) {
  struct event older = {.type = EVENT_none};
  if (filter->request->action == NULL) return true;
  if (event_is_decision(event->type) && event->prev != 0 && scan_get(filter->scan, event->prev, &older) != STATUS_OK)
    return false;
  struct bytes action = action_of_event(event, older.type);
  return action.size != 0 && name_matches(filter->request->action, action);
}

/* Walks the task's own events back to its acceptance. */
static bool task_in_queue(struct filter *filter, const struct event *event) {
  struct cached *cached = &filter->cache[id_hash(&event->stream) % cache_slots];
  struct event at = *event;
  if (id_equal(&cached->task, &event->stream)) return cached->inside;
  while (at.type != EVENT_task_accepted)
    if (at.prev == 0 || scan_get(filter->scan, at.prev, &at) != STATUS_OK) return false;
  *cached = (struct cached){event->stream, id_equal(&at.body.task_accepted.queue_id, &filter->request->queue)};
  return cached->inside;
}

/* Audit records stand in the stream of what they are about. */
static bool is_of_task(const struct event *event) {
  struct bytes name =
      event->type == EVENT_audit_recorded ? event->body.audit_recorded.action : bytes_text(event_type_text(event->type));
  return name_matches("task.*", name) || name_matches("attempt.*", name) || name_matches("evidence.*", name);
}

static bool queue_fits(struct filter *filter, const struct event *event) {
  const struct id *queue = &filter->request->queue;
  if (id_is_zero(queue) || id_equal(queue, &event->stream)) return true;
  return is_of_task(event) && task_in_queue(filter, event);
}

bool filter_takes(struct filter *filter, const struct event *event) {
  const struct request *request = filter->request;
  if (request->since_us != 0 && event->time_us < request->since_us) return false;
  if (request->until_us != 0 && event->time_us > request->until_us) return false;
  if (!filter_may(filter, event)) return false;
  if (!id_is_zero(&request->actor) && !id_equal(&request->actor, &event->common.actor)) return false;
  if (!id_is_zero(&request->operation) && !id_equal(&request->operation, &event->common.operation_id)) return false;
  return action_fits(filter, event) && queue_fits(filter, event);
}

bool filter_line(const struct filter *filter, const char *line) {
  return filter->request->grep == NULL || regexec(&filter->request->pattern, line, 0, NULL, 0) == 0;
}
