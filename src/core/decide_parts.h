/* What the decide files share; for them alone. */
#ifndef ORBIT_CORE_DECIDE_PARTS_H
#define ORBIT_CORE_DECIDE_PARTS_H

#include "core/decide.h"
#include "core/decision.h"

/* One operation while it is being decided: who acts, and where its events go. */
struct act {
  struct event_list *list;
  const struct decide_env *env;
  struct id actor;
  const struct operation *operation; /* goes onto the first event; NULL: the operation has no identity */
  bool identified;                   /* that has happened */
};

struct act act_of_command(const struct command *command, const struct decide_env *env, struct event_list *list);
struct act act_of_node(const struct decide_env *env, struct event_list *list);
/* Appends an event that leads to this revision of the stream's object. */
struct event *act_append(struct act *act, enum event_type type, const struct id *stream, uint64_t revision);

/* Appends attempt.ended for the task's current attempt. */
void act_end_attempt(struct act *act, const struct task *task, const struct attempt *attempt, enum attempt_state state,
                     enum ended_by ended_by);
/* Puts the fact before the decision table and appends the decision event. the attempt's id draws the jitter. Returns the
 * decision event. */
struct event *act_conclude(struct act *act, const struct task *task, const struct attempt *attempt, enum fact fact);

/* What an audit record of a task says. Spans are borrowed; before and after may come from event_list_text. */
struct audit {
  const char *action;
  struct id namespace_id;
  struct bytes reason, evidence_ref; /* data NULL: absent */
  struct bytes before, after;
};
/* Appends audit.recorded for the task. */
void act_audit(struct act *act, const struct task *task, uint64_t revision, const struct id *audit_id,
               const struct audit *audit);
/* Appends audit.recorded of an object that is no task, behind its event; action is the command's name. */
void act_audit_object(struct act *act, const struct command *command, const struct id *target, uint64_t revision,
                      const struct id *namespace_id, struct bytes reason);
/* The id of the audit record that will stand `ahead` events after the next one. */
struct id act_audit_id(const struct act *act, uint32_t ahead);
/* {"state":…,"revision":…} as JSON, for an audit's before. */
struct bytes act_state_text(struct act *act, enum task_state state, uint64_t revision);

/* LEASE_LOST unless the attempt is the task's current one, with its epoch; NOT_FOUND when it is another application's. */
enum status check_attempt(const struct task *task, const struct attempt *attempt, const struct command *command,
                          const struct attempt_ref *ref, struct fault *fault);
/* LEASE_LOST when a bound of the lease has come. The attempt is the current one. */
enum status check_lease(const struct task *task, const struct attempt *attempt, const struct decide_env *env,
                        struct fault *fault);

/* The times of a new task, as asked for and as they come out. */
struct task_times {
  int64_t available_at, start_deadline_at, deadline_at; /* start_deadline_at 0: none */
};
/* available_at and start_deadline_at are 0 when absent. INVALID_ARGUMENT. */
enum status check_times(uint64_t task_timeout_ms, int64_t available_at, int64_t start_deadline_at, int64_t now_us,
                        struct task_times *ret_times, struct fault *fault);
/* QUEUE_FULL, APPLICATION_FULL when there is no room for one task more. */
enum status check_quota(const struct queue *queue, const struct application *application, struct fault *fault);
/* STATE_CONFLICT when expected is not 0 and is not the task's revision. */
enum status check_revision(const struct task *task, uint64_t expected_revision, struct fault *fault);

#endif
