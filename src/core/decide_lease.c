/* Owns the claim of a waiting task for a worker. */
#include "core/decide_parts.h"

static enum status check_claim(const struct task *task, int64_t now_us, struct fault *fault) {
  if (task->state != TASK_WAITING)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "only a WAITING task can be leased: it is %s",
                     task_state_text((enum task_state)task->state));
  if (task->cancel_requested_at != 0) return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "a cancel request is on record");
  if (now_us < task->available_at) return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "available_at has not come");
  if (now_us >= task->deadline_at) return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "deadline_at has come");
  if (task->start_deadline_at != 0 && now_us >= task->start_deadline_at)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "start_deadline_at has come");
  if (task->attempt_count >= task->max_attempts)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "all %u attempts are consumed", (unsigned)task->max_attempts);
  return STATUS_OK;
}

enum status decide_lease(const struct task *task, const struct lease_request *request, const struct decide_env *env,
                         struct event_list *list, struct fault *fault) {
  enum status status = check_claim(task, env->now_us, fault);
  if (status != STATUS_OK) return status;

  struct act act = act_of_node(env, list);
  struct event_task_leased *leased =
      &act_append(&act, EVENT_task_leased, &task->id, task->revision + UINT64_C(1))->body.task_leased;
  leased->attempt_id = env->new_id;
  leased->number = task->attempt_count + UINT64_C(1);
  leased->epoch = task->epoch + UINT64_C(1);
  leased->instance_id = request->instance_id;
  leased->instance_name = request->instance_name;
  leased->worker_application_id = request->application_id;
  leased->lease_ms = request->lease_ms;
  leased->lease_until = time_earlier(time_after_ms(env->now_us, request->lease_ms), task->deadline_at);
  if (task->start_deadline_at != 0) leased->lease_until = time_earlier(leased->lease_until, task->start_deadline_at);
  return STATUS_OK;
}
