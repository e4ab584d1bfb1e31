/* Owns what can be told from a task alone: its kind of state, its lease, its next timer. */
#include "core/model.h"

#include "base/guard.h"

bool task_state_is_terminal(enum task_state state) {
  return state == TASK_SUCCEEDED || state == TASK_FAILED || state == TASK_CANCELLED;
}

bool task_state_holds_lease(enum task_state state) { return state == TASK_LEASED || state == TASK_RUNNING; }

/* Every end raises the revision, and nothing does after it. */
int64_t task_completed_at(const struct task *task) {
  return task_state_is_terminal((enum task_state)task->state) ? task->updated_at : 0;
}

uint64_t task_error_seq(const struct task *task) { return task->is_error ? task->outcome_seq : 0; }

uint64_t task_result_seq(const struct task *task) { return task->is_error ? 0 : task->outcome_seq; }

int64_t time_after_ms(int64_t time_us, uint64_t ms) {
  uint64_t us;
  int64_t after;
  if (__builtin_mul_overflow(ms, UINT64_C(1000), &us) || __builtin_add_overflow(time_us, us, &after)) return INT64_MAX;
  return after;
}

int64_t time_earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* Optional times are 0 when absent: then no bound. */
static int64_t or_never(int64_t time_us) { return time_us != 0 ? time_us : INT64_MAX; }

/* What a lease never reaches past: the attempt's own end, or before the start the last time for it; and the task's end. */
static int64_t lease_limit(const struct task *task, const struct attempt *attempt) {
  must(task_state_holds_lease((enum task_state)task->state));
  int64_t own = task->state == TASK_RUNNING ? attempt->attempt_deadline_at : or_never(task->start_deadline_at);
  return time_earlier(own, task->deadline_at);
}

int64_t task_lease_bound(const struct task *task, const struct attempt *attempt) {
  return time_earlier(attempt->live_until, lease_limit(task, attempt));
}

int64_t task_lease_longer(const struct task *task, const struct attempt *attempt, int64_t us) {
  int64_t until;
  if (__builtin_add_overflow(attempt->live_until, us, &until)) until = INT64_MAX;
  until = time_earlier(until, lease_limit(task, attempt));
  return until > attempt->live_until ? until : attempt->live_until;
}

int64_t task_next_timer(const struct task *task, const struct attempt *attempt, int64_t now_us) {
  if (task_state_holds_lease((enum task_state)task->state)) return task_lease_bound(task, attempt);
  if (task->state != TASK_WAITING) return INT64_MAX;
  int64_t expiry = time_earlier(or_never(task->start_deadline_at), task->deadline_at);
  return task->available_at > now_us ? time_earlier(task->available_at, expiry) : expiry;
}

bool task_lease_is_live(const struct task *task, const struct attempt *attempt, int64_t now_us) {
  return task_state_holds_lease((enum task_state)task->state) && now_us < task_lease_bound(task, attempt);
}
