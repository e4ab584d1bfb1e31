/* Owns the review by a person: schema/semantics.md "Review". */
#include <inttypes.h>

#include "base/guard.h"
#include "core/decide_parts.h"

static struct bytes after_text(struct event_list *list, enum task_state state, uint64_t revision, const struct id *digest) {
  return event_list_text(list,
                         "{\"state\":\"%s\",\"revision\":\"%" PRIu64
                         "\",\"effect_uncertain\":false,\"execution_settled\":true,\"result_digest\":\"xxh3-128:%s\"}",
                         task_state_text(state), revision, id_text(digest).text);
}

enum status decide_review(const struct task *task, const struct event_task_accepted *accepted, const struct command *command,
                          const struct decide_env *env, struct event_list *list, struct fault *fault) {
  const struct review_command *review = &command->as.review;
  must(review->outcome == OUTCOME_SUCCEEDED || review->outcome == OUTCOME_FAILED);
  if (task->state != TASK_NEEDS_REVIEW)
    return fault_set(fault, STATUS_STATE_CONFLICT, NULL, "only a task in NEEDS_REVIEW can be reviewed: it is %s",
                     task_state_text((enum task_state)task->state));
  enum status status = check_revision(task, review->expected_revision, fault);
  if (status != STATUS_OK) return status;

  struct act act = act_of_command(command, env, list);
  enum task_state state = review->outcome == OUTCOME_SUCCEEDED ? TASK_SUCCEEDED : TASK_FAILED;
  uint64_t revision = task->revision + UINT64_C(1);
  struct id audit_id = act_audit_id(&act, 1);
  struct event_task_reviewed *reviewed = &act_append(&act, EVENT_task_reviewed, &task->id, revision)->body.task_reviewed;
  reviewed->state = state;
  reviewed->outcome = review->outcome;
  reviewed->result = review->result;
  reviewed->result_digest = review->result_digest;
  reviewed->execution_settled = true;
  reviewed->audit_id = audit_id;
  reviewed->attempt_id = review->attempt_id;
  reviewed->node_id = env->node_id;
  struct bytes before = act_state_text(&act, TASK_NEEDS_REVIEW, task->revision);
  act_audit(&act, task, revision, &audit_id,
            &(struct audit){.action = command_kind_text(COMMAND_REVIEW),
                            .namespace_id = accepted->namespace_id,
                            .reason = review->reason,
                            .evidence_ref = review->evidence_ref,
                            .before = before,
                            .after = after_text(list, state, revision, &review->result_digest)});
  return STATUS_OK;
}
