/* Owns how an attempt ends without a report: given back by its worker, or run out; and how a waiting task runs out. */
#include "core/decide_parts.h"

enum status decide_release(const struct task *task, const struct attempt *attempt, const struct command *command,
                           const struct decide_env *env, struct event_list *list, struct fault *fault) {
  enum status status = check_attempt(task, attempt, command, &command->as.ref, fault);
  if (status == STATUS_OK) status = check_lease(task, attempt, env, fault);
  if (status != STATUS_OK) return status;
  if (task->state == TASK_RUNNING)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "the attempt is already started: report it with task.finish");

  struct act act = act_of_command(command, env, list);
  act_end_attempt(&act, task, attempt, ATTEMPT_EXPIRED, ENDED_RELEASED);
  (void)act_conclude(&act, task, attempt, FACT_RELEASED);
  return STATUS_OK;
}

/* The earliest bound that has come names the end; on a tie the wider one. */
static enum ended_by end_of_running(const struct task *task, const struct attempt *attempt) {
  int64_t lease = attempt->live_until, timeout = attempt->attempt_deadline_at;
  if (task->deadline_at <= timeout && task->deadline_at <= lease) return ENDED_DEADLINE;
  return timeout <= lease ? ENDED_ATTEMPT_TIMEOUT : ENDED_LEASE_EXPIRED;
}

static bool waiting_is_over(const struct task *task, int64_t now_us) {
  return now_us >= task->deadline_at || (task->start_deadline_at != 0 && now_us >= task->start_deadline_at);
}

void decide_expire(const struct task *task, const struct attempt *attempt, const struct decide_env *env,
                   struct event_list *list) {
  struct act act = act_of_node(env, list);
  if (task->state == TASK_WAITING) {
    if (waiting_is_over(task, env->now_us)) (void)act_conclude(&act, task, attempt, FACT_WAITING_EXPIRED);
    return;
  }
  if (!task_state_holds_lease((enum task_state)task->state) || task_lease_is_live(task, attempt, env->now_us)) return;
  if (task->state == TASK_LEASED) {
    act_end_attempt(&act, task, attempt, ATTEMPT_EXPIRED, ENDED_LEASE_EXPIRED);
    (void)act_conclude(&act, task, attempt, FACT_LEASE_EXPIRED);
  } else {
    act_end_attempt(&act, task, attempt, ATTEMPT_UNKNOWN, end_of_running(task, attempt));
    (void)act_conclude(&act, task, attempt, FACT_UNKNOWN);
  }
}
