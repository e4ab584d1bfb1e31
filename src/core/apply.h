/* Folding an event into the object that it belongs to. Pure: uses the event alone. Checking is apart from folding: replay
 * checks with can_apply_* and reports; apply_* asserts the same. */
#ifndef ORBIT_CORE_APPLY_H
#define ORBIT_CORE_APPLY_H

#include <stdbool.h>

#include "core/event.h"
#include "core/model.h"

/* True when the event fits the task as it is: transition table, revision, epoch, attempt count and id, numbers within their
 * bounds, decision state as the table says. task->state is TASK_NONE (all zero) before task.accepted. attempt is the task's
 * current one, all zero when there is none. Otherwise false with
 * *ret_reason, a static sentence. */
bool can_apply_task(const struct task *task, const struct attempt *attempt, const struct event *event, const char **ret_reason);
/* Folds it: a claim fills the attempt, its end makes it all zero. queue, application and handler indexes are left alone: they
 * belong to the container. */
void apply_task(struct task *task, struct attempt *attempt, const struct event *event);
/* The same for an event that can_apply_task has just let pass for this very task: it is not judged a second time, and only what
 * it leads to is asserted. */
void apply_task_judged(struct task *task, struct attempt *attempt, const struct event *event);
/* A server came up: an unfinished lease is given back its full length, counted from node.started, but not past the attempt's
 * timeout or the deadlines. */
void apply_node_started(struct task *task, struct attempt *attempt, const struct event *event);

void apply_queue(struct queue *queue, const struct event *event);
void apply_application(struct application *application, const struct event *event);
/* queue_ids is the container's business (EVENT_credential_created). */
void apply_credential(struct credential *credential, const struct event *event);
/* name_hash is the container's business (EVENT_subscription_created). */
void apply_subscription(struct subscription *subscription, const struct event *event);

/* As this write left the object, without what is live: told from the write and the present object alone, so that no answer
 * needs all of a long history. */
struct application application_as_written(const struct application *present, const struct event *write);
struct credential credential_as_written(const struct credential *present, const struct event *write); /* queue_ids is NULL */
struct subscription subscription_as_written(const struct subscription *present, const struct event *write);

/* As can_apply_task, for the schedule's own events; revision is 0 before schedule.created. Whether the task of
 * schedule.triggered is there is the container's to judge. */
bool can_apply_schedule(const struct schedule *schedule, const struct event *event, const char **ret_reason);
/* unfinished and free_at are the container's. */
void apply_schedule(struct schedule *schedule, const struct event *event);
/* As the write left it, without what is live. schedule gives what never changes; config is the event that write, or its
 * config_seq, names. */
struct schedule schedule_as_written(const struct schedule *schedule, const struct event *write, const struct event *config);

#endif
