/* The projections: everything that Orbit knows, folded from the log and from nothing else. In memory; texts and documents stay
 * in the log and are pointed at by seq. One thread at a time; no locks. */
#ifndef ORBIT_STATE_STATE_H
#define ORBIT_STATE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "core/answer.h"
#include "core/command.h"
#include "core/event.h"
#include "core/model.h"
#include "state/history.h"

struct state;

struct state *state_new(void);
void state_free(struct state *state);

/* ---- Folding ---- */

/* The newest event of the stream that this event belongs to: what its prev must be. 0: none. */
uint64_t state_stream_last(const struct state *state, const struct event *event);
/* True when the event fits what is there; else false with *ret_reason, a static sentence. */
bool state_can_apply(const struct state *state, const struct event *event, const char **ret_reason);
/* Folds the event, which must fit. Copies what it keeps. */
void state_apply(struct state *state, const struct event *event);
/* Both in one, which is quicker: judges the event, and folds it when it fits; else false, and nothing has changed. */
bool state_fold(struct state *state, const struct event *event, const char **ret_reason);
/* Asks the processor to fetch what folding this event will touch, where many follow one another: its places in the indexes some
 * way before its turn, and then, near it, the task that is found there. Changes nothing, and is never needed. */
void state_glance(const struct state *state, const struct event *event, bool near);
/* Receipts of ended tasks stay in memory, too, so that one that another task repeats is found: for whoever judges a log. Before
 * the first event. */
void state_keep_receipts(struct state *state);
uint64_t state_last_seq(const struct state *state);

/* ---- Looking up. Pointers live until the next fold. NULL: none. ---- */

bool state_has_namespace(const struct state *state, const struct id *id);
struct application *state_application(const struct state *state, const struct id *id);
struct credential *state_credential(const struct state *state, const struct id *id);
struct queue *state_queue(const struct state *state, const struct id *id);
struct task *state_task(const struct state *state, const struct id *id);
/* The task with this number (from ready order, timers, instances). */
struct task *state_task_at(const struct state *state, uint32_t number);
/* Its current attempt; all zero when nobody holds it. */
const struct attempt *state_attempt_at(const struct state *state, uint32_t number);
uint32_t state_task_number(const struct state *state, const struct id *id); /* 0: none */
struct queue *state_queue_of(const struct state *state, const struct task *task);
struct application *state_application_of(const struct state *state, const struct task *task);
/* True when the credential's scope holds the queue. */
bool credential_reaches(const struct credential *credential, const struct id *queue_id);
/* Calls visit for every credential. */
void state_each_credential(const struct state *state, void (*visit)(void *context, const struct credential *credential),
                           void *context);
void state_each_queue(const struct state *state, void (*visit)(void *context, const struct queue *queue), void *context);
uint32_t state_queue_count(const struct state *state);
uint64_t state_task_count(const struct state *state); /* ever, those that left memory with them */

/* Subscriptions; a deleted one is found by its id for ever, and counted and visited no more. */
struct subscription *state_subscription(const struct state *state, const struct id *id);
bool state_subscription_name_is_taken(const struct state *state, const struct id *namespace_id, struct bytes name);
uint32_t state_subscription_count(const struct state *state, const struct id *namespace_id);
uint32_t state_subscriptions_live(const struct state *state); /* of all namespaces */
void state_each_subscription(const struct state *state, void (*visit)(void *context, const struct subscription *subscription),
                             void *context);
/* True when the credential may read what the subscription shows: all of its queues are in the credential's scope. */
bool credential_reaches_subscription(const struct credential *credential, const struct subscription *subscription);

/* The receipt of an operation identity: the event that carries it, decoded (spans as history_event says). task: the one that
 * the request is about, whose history leads to it; NULL for requests that name none (a submission, administration). END: none,
 * or its task is gone. UNAVAILABLE: the store that may know cannot be read now. CORRUPT. */
enum status state_receipt(const struct state *state, const struct id *identity, const struct task *task,
                          struct history *history, struct record_source source, struct event *ret_event);

/* ---- Timers ---- */

/* Lengthens the live lease of a task that is held (a renewal; no event). */
void state_renew(struct state *state, uint32_t number, int64_t live_until);
/* Lengthens all live leases by as much, each within its bounds: for a time in which Orbit heard no renewal. */
void state_lengthen_leases(struct state *state, int64_t us);
/* When the earliest timer comes; INT64_MAX: none. */
int64_t state_timer_next(const struct state *state);
/* The task whose timer has come at now; 0: none. It stays until its state changes or state_timer_settle puts it off. */
uint32_t state_timer_due(const struct state *state, int64_t now_us);
/* The task's timer has come and no event followed from it: a waiting task that is due now stands in the ready order from here
 * on. */
void state_timer_settle(struct state *state, uint32_t number, int64_t now_us);

/* ---- Schedules: named by their number in memory ---- */

struct schedule *state_schedule(const struct state *state, const struct id *id); /* deleted ones too; NULL: none */
struct schedule *state_schedule_at(const struct state *state, uint32_t number);
/* When the next schedule must be looked at; INT64_MAX: none. */
int64_t state_schedule_next(const struct state *state);
/* The schedule whose time has come at now; 0: none. It stays until an event moves its next time or it is put off. */
uint32_t state_schedule_due(const struct state *state, int64_t now_us);
/* Nothing can be decided of it now: it is looked at again then, unless an event moves it before. */
void state_schedule_put_off(struct state *state, uint32_t number, int64_t until_us);

/* ---- Ready order: tasks of one queue with one handler and version make a bucket ---- */

struct bucket {
  uint32_t number;
  uint32_t queue;                        /* number of its queue */
  struct bytes handler, handler_version; /* owned */
  uint32_t ready;                        /* tasks that stand ready */
  uint32_t unfinished;                   /* tasks that point here */
  uint32_t served;                       /* worker groups that offer it; kept by the engine */
};

/* The bucket of a queue and handler, made when it is not there: the caller holds it by raising served. 0: no such queue. */
uint32_t state_bucket(struct state *state, const struct id *queue_id, struct bytes handler, struct bytes handler_version);
struct bucket *state_bucket_at(const struct state *state, uint32_t number);
struct queue *state_bucket_queue(const struct state *state, const struct bucket *bucket);
/* The engine lets go of the bucket (served was lowered): freed when nothing points at it. */
void state_bucket_release(struct state *state, uint32_t number);
/* The first ready task of the bucket whose concurrency key is free; 0: none. Tasks in front of it whose key is held are put
 * aside until the key is free, each for one of *asides: when those have come to 0, 0 says no more than that none was found yet.
 */
uint32_t state_bucket_first(struct state *state, uint32_t number, uint32_t *asides);
/* Order of ready tasks: priority high to low, available_at; ties by id. */
int64_t state_ready_key(const struct state *state, uint32_t task_number);
/* Tasks that stand ready in all buckets. */
uint64_t state_ready_count(const struct state *state);

/* ---- Lists ---- */

/* Newest first, behind after (zero: from the newest). Only tasks of the namespace in queues that the credential reaches. Looks
 * at a bounded number of tasks a call: *ret_list may hold fewer rows than the limit and yet say that more follow.
 * INVALID_ARGUMENT: after is no task. UNAVAILABLE: what left memory cannot be read now. CORRUPT. ret_list->of.tasks is
 * allocated (free). */
enum status state_list_tasks(const struct state *state, const struct id *namespace_id, const struct credential *credential,
                             const struct list_tasks_command *filters, struct history *history, struct record_source source,
                             struct answer_list *ret_list, struct fault *fault);
/* Objects of the namespace, oldest first. Queues: only those that the credential reaches. */
enum status state_list_objects(const struct state *state, const struct id *namespace_id, const struct credential *credential,
                               const struct list_objects_command *command, struct answer_list *ret_list, struct fault *fault);
/* Administrative audit records of the namespace, newest first. */
enum status state_list_audit(const struct state *state, const struct id *namespace_id, const struct list_audit_command *command,
                             struct history *history, struct record_source source, struct answer_list *ret_list);
/* available_at of the waiting task of the queue that waits longest; 0: none waits. */
int64_t state_oldest_waiting(const struct state *state, const struct id *queue_id);

/* ---- Instances: who holds which attempts ---- */

struct instance {
  struct id id;
  struct id application_id;
  uint32_t held;  /* attempts with authority */
  uint32_t first; /* task number; walk with state_held_next */
  void *worker;   /* the engine's; NULL: not connected */
};
/* The instance, made when it is not there. It lives while it holds attempts or has a worker: state_instance_release after
 * worker was set to NULL. */
uint32_t state_instance(struct state *state, const struct id *application_id, const struct id *instance_id);
struct instance *state_instance_at(const struct state *state, uint32_t number);
uint32_t state_instance_of(const struct state *state, uint32_t task_number); /* 0: not held */
uint32_t state_held_next(const struct state *state, uint32_t task_number);
void state_instance_release(struct state *state, uint32_t number);

/* ---- Judging ---- */

/* What must always hold (schema/semantics.md "Invariants"), recomputed from all objects: counts, at most one authority, bounds,
 * orders. CORRUPT with the object and what is wrong. Costs a walk over everything. */
enum status state_check(const struct state *state, struct fault *fault);
/* The same for one task alone, for after each commit. STATUS_OK also when there is no such task. */
enum status state_check_task(const struct state *state, const struct id *task_id, struct fault *fault);
/* A digest of all views, the same for the same log however it was folded; live lease extensions are no part of it. */
struct id state_digest(const struct state *state);

#endif
