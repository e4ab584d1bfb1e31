/* The rules: view + command + now -> status and events. Pure: no I/O, no clock, no randomness, no allocation. A refusal leaves
 * the list empty and fills *fault; nothing else is changed, ever. Receipts have been looked up before (state/receipts.h);
 * permission and scope too. One file per command: decide_submit.c, decide_lease.c … */
#ifndef ORBIT_CORE_DECIDE_H
#define ORBIT_CORE_DECIDE_H

#include "base/status.h"
#include "core/command.h"
#include "core/event.h"
#include "core/model.h"

/* What deciding needs besides view and command. */
struct decide_env {
  int64_t now_us;
  struct id node_id;
  struct id operation_id; /* of this command */
  uint64_t next_seq;      /* of the first event that will be appended: audit ids come from it */
  struct id new_id;       /* for the object that the command makes: task, attempt, evidence */
};

/* queue and application exist and are in scope. INVALID_ARGUMENT (available_at, start_deadline_at against now, field named by
 * JSON Pointer), QUEUE_FULL, APPLICATION_FULL. Events: task.accepted. */
enum status decide_submit(const struct queue *queue, const struct application *application, const struct command *command,
                          const struct decide_env *env, struct event_list *list, struct fault *fault);

/* The claim by a worker, asked for by dispatch. */
struct lease_request {
  struct id instance_id;
  struct bytes instance_name; /* data NULL: absent */
  struct id application_id;   /* of the worker */
  uint32_t lease_ms;
};
/* STATE_CONFLICT unless WAITING, due, before both deadlines and with budget left. Events: task.leased; lease_until =
 * min(now + lease_ms, deadline_at, start_deadline_at). */
enum status decide_lease(const struct task *task, const struct lease_request *request, const struct decide_env *env,
                         struct event_list *list, struct fault *fault);

/* The four requests about an attempt; here and below, attempt is the task's current one, all zero when there is none.
 * application_id of command->who must be the attempt's, else NOT_FOUND.
 * start: LEASE_LOST (not the current attempt, epoch old, lease over), STATE_CONFLICT (already started, cancel requested,
 * start_deadline_at or deadline_at has come). Events: task.started. */
enum status decide_start(const struct task *task, const struct attempt *attempt, const struct command *command,
                         const struct decide_env *env, struct event_list *list, struct fault *fault);
/* No events: *ret_until = min(now + lease_ms, attempt_deadline_at, deadline_at[, start_deadline_at when not started]), never
 * before the present live_until. LEASE_LOST. */
enum status decide_renew(const struct task *task, const struct attempt *attempt, const struct command *command,
                         const struct decide_env *env, int64_t *ret_until, struct fault *fault);
/* With authority: attempt.result and one decision event. STATE_CONFLICT: the attempt is current but has no start grant, or
 * CANCELLED is reported with no cancel request on record. LEASE_LOST: no authority; the caller then records evidence. */
enum status decide_finish(const struct task *task, const struct attempt *attempt, const struct command *command,
                          const struct decide_env *env, struct event_list *list, struct fault *fault);
/* Events: evidence.recorded with this reason. kept: how many the attempt has in the task's history. STATE_CONFLICT: as many as
 * are kept (attempt_evidence_max). */
enum status decide_evidence(const struct task *task, const struct command *command, enum evidence_reason reason, uint32_t kept,
                            const struct decide_env *env, struct event_list *list, struct fault *fault);
/* Events: attempt.ended (EXPIRED by RELEASED) and one decision. LEASE_LOST, STATE_CONFLICT (already started). */
enum status decide_release(const struct task *task, const struct attempt *attempt, const struct command *command,
                           const struct decide_env *env, struct event_list *list, struct fault *fault);

/* Orbit's own act when a timer has come: nothing when nothing is due (list stays empty); else attempt.ended and one decision,
 * or one decision alone for a waiting task. For a RUNNING task several bounds may have come: the earliest names ended_by;
 * on a tie DEADLINE before ATTEMPT_TIMEOUT before LEASE_EXPIRED. */
void decide_expire(const struct task *task, const struct attempt *attempt, const struct decide_env *env,
                   struct event_list *list);

/* cancel: STATE_CONFLICT (terminal, or expected_revision differs, or there are as many requests in the task's history, `kept`,
 * as are kept: cancel_requests_max). Events by state: schema/semantics.md "Cancel"; the audit.recorded comes last. review,
 * retry: schema/semantics.md "Review", "Manual retry"; STATE_CONFLICT; retry also QUEUE_FULL, APPLICATION_FULL,
 * INVALID_ARGUMENT. accepted is the original's task.accepted. The child is env->new_id. */
enum status decide_cancel(const struct task *task, const struct attempt *attempt, const struct command *command, uint32_t kept,
                          const struct decide_env *env, struct event_list *list, struct fault *fault);
enum status decide_review(const struct task *task, const struct event_task_accepted *accepted, const struct command *command,
                          const struct decide_env *env, struct event_list *list, struct fault *fault);
enum status decide_retry(const struct task *task, const struct event_task_accepted *accepted, const struct queue *queue,
                         const struct application *application, const struct command *command, const struct decide_env *env,
                         struct event_list *list, struct fault *fault);

/* Administration (decide_admin.c). Each appends the object's event and an audit.recorded. The object named in the command
 * exists and is in reach; name is the present one, for changes that do not give one. STATE_CONFLICT: the revision differs, or
 * (pause, resume) it is so already. INVALID_ARGUMENT: a new credential that expires in the past. New objects get env->new_id.
 */
enum status decide_namespace_create(const struct command *command, const struct decide_env *env, struct event_list *list,
                                    struct fault *fault);
enum status decide_application(const struct application *application, struct bytes name, const struct command *command,
                               const struct decide_env *env, struct event_list *list, struct fault *fault);
enum status decide_queue(const struct queue *queue, struct bytes name, const struct command *command,
                         const struct decide_env *env, struct event_list *list, struct fault *fault);
enum status decide_credential(const struct credential *credential, const struct command *command, const struct decide_env *env,
                              struct event_list *list, struct fault *fault);

/* subscription: NULL to create. INVALID_ARGUMENT: a position that has not come. That the name is free and the filter within
 * reach is the caller's to judge. An ack is recorded also where nothing moves. */
enum status decide_subscription(const struct subscription *subscription, const struct command *command,
                                const struct decide_env *env, struct event_list *list, struct fault *fault);

/* Schedules (decide_schedule.c). What the command leads to, without next_at: present is the configuration as it stands, NULL
 * for a new one. INVALID_ARGUMENT. Spans are the command's and the present configuration's. */
struct schedule_times;
enum status schedule_configure(const struct event_schedule_changed *present, const struct command *command, int64_t now_us,
                               struct event_schedule_changed *ret_config, struct fault *fault);
/* schedule NULL: create. config: create and change; times, of the configuration that will stand: create, change, resume; NULL
 * else. Events: the schedule's own and its audit.recorded. NOT_FOUND: it was deleted. STATE_CONFLICT: another revision, or it
 * is so already. INVALID_ARGUMENT: no time is left to come. */
enum status decide_schedule(const struct schedule *schedule, const struct event_schedule_changed *config,
                            const struct schedule_times *times, const struct command *command, const struct decide_env *env,
                            struct event_list *list, struct fault *fault);

/* A time of a schedule that has come: always the schedule's next one. */
struct due_time {
  int64_t scheduled_at;
  int64_t next_at;  /* the time after it, come or not; 0: none */
  int64_t up_since; /* when this server came up */
  uint32_t behind;  /* how many times after it have come too, counted up to the schedule's limit */
  bool first;       /* nothing was decided of this schedule before it in this tick */
};
/* Whether it makes a task if nothing else is in the way; else it was missed. */
bool due_time_fires(const struct schedule *schedule, const struct due_time *due, int64_t now_us);
/* Never refuses: what would refuse a submission is an outcome. A time that fires may not come here while the schedule waits for
 * a task. Events: schedule.skipped, or task.accepted (env->new_id) and schedule.triggered. */
enum trigger_outcome decide_trigger(const struct schedule *schedule, const struct event_schedule_changed *config,
                                    const struct queue *queue, const struct application *application,
                                    const struct due_time *due, const struct decide_env *env, struct event_list *list);

/* GCRA (schema/semantics.md "Rate"): the time from which the queue may lease once more, given its rate_at; 0 when it has no
 * rate. */
int64_t rate_next_us(const struct queue *queue);
/* rate_at after a lease at time_us. */
int64_t rate_after_us(const struct queue *queue, int64_t time_us);
/* rate_at after the queue was given this rate at time_us: what the rate before it owed is a full burst of this one at the most.
 */
int64_t rate_changed_us(const struct queue *queue, int64_t time_us);

#endif
