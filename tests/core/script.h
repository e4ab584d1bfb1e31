/* Lives of a task as text: one step a line, with what it must lead to.
 *
 *   STEP [name=value …] -> STATE REVISION[~] [DECISION] [{event@revision …}]     ~: effect_uncertain
 *   STEP [name=value …] -> !STATUS [/field]                                       refused; nothing may have changed
 *
 *   submit [attempts=N] [delay=INITIAL/CAP] [timeout=MS] [attempt=MS] [safety=I|R] [at=MS] [start_by=MS]   (times from now)
 *   lease [ms=N] · start · renew · release · finish OUTCOME [retryable] · late OUTCOME (evidence) · expire · restart
 *   cancel [rev=N] · review OUTCOME rev=N · retry rev=N timeout=MS [at=MS] [start_by=MS]
 *   wait MS · goto deadline|start_deadline|available|lease|attempt_deadline[+US|-US]
 * Requests about an attempt take attempt=old, epoch=N, app=other. */
#ifndef ORBIT_TESTS_CORE_SCRIPT_H
#define ORBIT_TESTS_CORE_SCRIPT_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

static inline bool script_has(const char *line, const char *word) {
  const char *at = strstr(line, word), *arrow = strstr(line, "->");
  return at != NULL && (arrow == NULL || at < arrow);
}

/* The number after name, or fallback. */
static inline int64_t script_number(const char *line, const char *name, int64_t fallback) {
  return script_has(line, name) ? strtoll(strstr(line, name) + strlen(name), NULL, 10) : fallback;
}

static inline enum outcome script_outcome(const char *line) {
  if (script_has(line, "SUCCEEDED")) return OUTCOME_SUCCEEDED;
  if (script_has(line, "FAILED")) return OUTCOME_FAILED;
  if (script_has(line, "CANCELLED")) return OUTCOME_CANCELLED;
  assert_true(script_has(line, "UNKNOWN"));
  return OUTCOME_UNKNOWN;
}

static inline enum status script_submit(struct world *world, const char *line) {
  struct submit_command submit = world_submission(world);
  int64_t now = world->env.now_us;
  submit.max_attempts = (uint32_t)script_number(line, "attempts=", 1);
  submit.initial_delay_ms = (uint32_t)script_number(line, "delay=", 0);
  if (script_has(line, "delay=")) submit.max_delay_ms = (uint32_t)strtoul(strchr(strstr(line, "delay="), '/') + 1, NULL, 10);
  submit.task_timeout_ms = (uint64_t)script_number(line, "timeout=", 60000);
  submit.attempt_timeout_ms = (uint32_t)script_number(line, " attempt=", 10000);
  submit.recovery_safety = script_has(line, "safety=I") ? RECOVERY_IDEMPOTENT : RECOVERY_RECONCILE_ONLY;
  if (script_has(line, " at=")) submit.available_at = now + script_number(line, " at=", 0) * us_per_ms;
  if (script_has(line, "start_by=")) submit.start_deadline_at = now + script_number(line, "start_by=", 0) * us_per_ms;
  return world_submit(world, &submit);
}

static inline struct command script_attempt_command(struct world *world, enum command_kind kind, const char *line) {
  struct command command = world_command(world, kind);
  struct attempt_ref ref = world_ref(world);
  if (script_has(line, "attempt=old")) ref.attempt_id = world_id(0x22, 1);
  ref.epoch = (uint64_t)script_number(line, "epoch=", (int64_t)ref.epoch);
  if (script_has(line, "app=other")) command.who.application_id = world_id(0x44, 2);
  if (kind == COMMAND_FINISH) {
    command.as.finish.ref = ref;
    command.as.finish.report = world_report(script_outcome(line), script_has(line, "retryable"));
  } else {
    command.as.ref = ref;
  }
  world_prepare(world);
  return command;
}

static inline enum status script_attempt(struct world *world, const char *line) {
  struct command command;
  const struct task *task = &world->task;
  struct attempt *attempt = &world->attempt;
  if (strncmp(line, "start", 5) == 0) {
    command = script_attempt_command(world, COMMAND_START, line);
    return decide_start(task, attempt, &command, &world->env, &world->list, &world->fault);
  }
  if (strncmp(line, "release", 7) == 0) {
    command = script_attempt_command(world, COMMAND_RELEASE, line);
    return decide_release(task, attempt, &command, &world->env, &world->list, &world->fault);
  }
  if (strncmp(line, "renew", 5) == 0) {
    command = script_attempt_command(world, COMMAND_RENEW, line);
    enum status status = decide_renew(task, attempt, &command, &world->env, &attempt->live_until, &world->fault);
    if (status == STATUS_OK) world->last_attempt.live_until = attempt->live_until;
    return status;
  }
  command = script_attempt_command(world, COMMAND_FINISH, line);
  if (strncmp(line, "finish", 6) == 0) return decide_finish(task, attempt, &command, &world->env, &world->list, &world->fault);
  uint32_t kept = (uint32_t)script_number(line, "kept=", 0);
  return decide_evidence(task, &command, EVIDENCE_LEASE_LOST, kept, &world->env, &world->list, &world->fault);
}

static inline enum status script_person(struct world *world, const char *line) {
  struct bytes reason = bytes_text("because"), evidence_ref = bytes_text("evidence:reconciliation-001");
  uint64_t revision = (uint64_t)script_number(line, "rev=", 0);
  int64_t now = world->env.now_us;
  struct command command = world_command(world, COMMAND_CANCEL);
  world_prepare(world);
  if (strncmp(line, "cancel", 6) == 0) {
    command.as.cancel = (struct cancel_command){.task_id = world->task.id, .reason = reason, .expected_revision = revision};
    uint32_t kept = (uint32_t)script_number(line, "kept=", 0);
    return decide_cancel(&world->task, &world->attempt, &command, kept, &world->env, &world->list, &world->fault);
  }
  if (strncmp(line, "review", 6) == 0) {
    command.kind = COMMAND_REVIEW;
    command.as.review = (struct review_command){.task_id = world->task.id,
                                                .expected_revision = revision,
                                                .reason = reason,
                                                .evidence_ref = evidence_ref,
                                                .outcome = script_outcome(line),
                                                .result = bytes_text("{\"confirmed\":true,\"sequence\":9007199254740993}"),
                                                .result_digest = world_id(0x5D, 7)};
    return decide_review(&world->task, &world->accepted, &command, &world->env, &world->list, &world->fault);
  }
  command.kind = COMMAND_RETRY;
  command.as.retry = (struct retry_command){.task_id = world->task.id,
                                            .expected_revision = revision,
                                            .reason = reason,
                                            .evidence_ref = evidence_ref,
                                            .task_timeout_ms = (uint64_t)script_number(line, "timeout=", 60000)};
  if (script_has(line, " at=")) command.as.retry.available_at = now + script_number(line, " at=", 0) * us_per_ms;
  if (script_has(line, "start_by=")) command.as.retry.start_deadline_at = now + script_number(line, "start_by=", 0) * us_per_ms;
  return decide_retry(&world->task, &world->accepted, &world->queue, &world->application, &command, &world->env, &world->list,
                      &world->fault);
}

static inline void script_goto(struct world *world, const char *line) {
  const struct task *task = &world->task;
  const char *sign = strpbrk(line + 5, "+-");
  int64_t base = script_has(line, "start_deadline")     ? task->start_deadline_at
                 : script_has(line, "attempt_deadline") ? world->attempt.attempt_deadline_at
                 : script_has(line, "deadline")         ? task->deadline_at
                 : script_has(line, "available")        ? task->available_at
                                                        : world->attempt.live_until;
  int64_t to = base + (sign != NULL ? strtoll(sign, NULL, 10) : 0);
  assert_true(base != 0 && to >= world->env.now_us);
  world->env.now_us = to;
}

static inline enum status script_step(struct world *world, const char *line) {
  if (strncmp(line, "submit", 6) == 0) return script_submit(world, line);
  if (strncmp(line, "lease", 5) == 0) return world_lease(world, (uint32_t)script_number(line, "ms=", 30000));
  if (strncmp(line, "cancel", 6) == 0 || strncmp(line, "review", 6) == 0 || strncmp(line, "retry", 5) == 0)
    return script_person(world, line);
  if (strncmp(line, "expire", 6) == 0) {
    world_prepare(world);
    decide_expire(&world->task, &world->attempt, &world->env, &world->list);
    return STATUS_OK;
  }
  world->list.count = 0;
  if (strncmp(line, "wait", 4) == 0) {
    world->env.now_us += strtoll(line + 5, NULL, 10) * us_per_ms;
    return STATUS_OK;
  }
  if (strncmp(line, "restart", 7) == 0) {
    struct event event = {.type = EVENT_node_started, .seq = world->env.next_seq++, .time_us = world->env.now_us};
    apply_node_started(&world->task, &world->attempt, &event);
    return STATUS_OK;
  }
  if (strncmp(line, "goto", 4) == 0) {
    script_goto(world, line);
    return STATUS_OK;
  }
  return script_attempt(world, line);
}

/* What the step led to, in the words of the script. */
static inline void script_outcome_text(const struct world *world, bool with_events, char *out, size_t size) {
  const struct task *task = &world->task;
  size_t used = (size_t)snprintf(out, size, "%s %" PRIu32 "%s", task_state_text((enum task_state)task->state), task->revision,
                                 task->effect_uncertain ? "~" : "");
  for (uint32_t i = 0; i < world->list.count; i++) {
    struct decision_record record;
    if (decision_of_event(&world->list.events[i], &record))
      used += (size_t)snprintf(out + used, size - used, " %s", decision_text(record.decision));
  }
  if (!with_events) return;
  used += (size_t)snprintf(out + used, size - used, " {");
  for (uint32_t i = 0; i < world->list.count; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%s@%" PRIu64, i == 0 ? "" : " ",
                             event_type_text(world->list.events[i].type), world->list.events[i].common.revision);
  (void)snprintf(out + used, size - used, "}");
}

static inline void script_line(struct world *world, const char *line) {
  const char *arrow = strstr(line, "->");
  char got[600];
  struct task before = world->task;
  struct attempt attempt_before = world->attempt;
  enum status status = script_step(world, line);
  if (status != STATUS_OK) {
    (void)snprintf(got, sizeof got, "!%s%s%s", status_name(status), world->fault.field[0] != 0 ? " " : "", world->fault.field);
    assert_int_equal(world->list.count, 0);
    assert_int_equal(world->fault.status, status);
    assert_true(world->fault.message[0] != 0);
    assert_memory_equal(&before, &world->task, sizeof before);
    assert_memory_equal(&attempt_before, &world->attempt, sizeof attempt_before);
  } else {
    world_commit(world);
    script_outcome_text(world, arrow != NULL && strchr(arrow, '{') != NULL, got, sizeof got);
  }
  if (arrow == NULL && status == STATUS_OK) return;
  if (arrow == NULL || strcmp(got, arrow + 3) != 0) fail_msg("%s\n  got: %s (%s)", line, got, world->fault.message);
}

/* Runs lines up to NULL in a new world. */
static inline void script_run(struct world *world, const char *const *lines) {
  world_init(world);
  for (; *lines != NULL; lines++) script_line(world, *lines);
}

#endif
