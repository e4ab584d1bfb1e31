/* One task with its queue, application and worker, moved by commands: decide, then can_apply, then apply, as the engine does.
 */
#ifndef ORBIT_TESTS_CORE_WORLD_H
#define ORBIT_TESTS_CORE_WORLD_H

#include <string.h>

#include "base/time_text.h"
#include "core/apply.h"
#include "core/decide.h"
#include "core/decision.h"
#include "support/support.h"

struct world {
  struct task task;
  struct event_task_accepted accepted; /* of the task; texts are static */
  struct queue queue;
  struct application application;
  struct decide_env env;
  struct event_list list; /* of the last command */
  struct task child;      /* made by a retry by hand */
  struct fault fault;
  struct attempt attempt;       /* of the task */
  struct attempt child_attempt; /* of the child */
  struct attempt last_attempt;  /* the newest claim, also after its end */
  uint64_t ids;
};

static const int64_t world_start_us = INT64_C(1789603200000000); /* 2026-09-17T00:00:00Z */

static inline struct id world_id(uint8_t kind, uint64_t number) {
  struct id id = {{kind}};
  for (unsigned i = 0; i < 8; i++) id.bytes[8 + i] = (uint8_t)(number >> (56 - 8 * i));
  return id;
}

static inline void world_init(struct world *world) {
  memset(world, 0, sizeof *world);
  world->queue =
      (struct queue){.id = world_id(0x11, 1), .namespace_id = world_id(0x33, 1), .key_concurrency = 1, .lease_ms = 30000};
  world->application = (struct application){.id = world_id(0x44, 1), .namespace_id = world_id(0x33, 1)};
  world->env = (struct decide_env){.now_us = world_start_us, .node_id = world_id(0x99, 1), .next_seq = 1};
}

/* A command of the task's producer and worker alike. */
static inline struct command world_command(struct world *world, enum command_kind kind) {
  world->ids++;
  return (struct command){.kind = kind,
                          .who = {.credential_id = world_id(0xAA, 1),
                                  .application_id = world->application.id,
                                  .namespace_id = world->queue.namespace_id},
                          .operation = {.identity = world_id(0xD1, world->ids), .digest = world_id(0xD2, world->ids)}};
}

/* Before each decision: an empty list, a new id, an operation. */
static inline void world_prepare(struct world *world) {
  world->list.count = 0;
  world->ids++;
  world->env.operation_id = world_id(0x0E, world->ids);
  world->env.new_id = world_id(0x22, world->ids);
  memset(&world->fault, 0, sizeof world->fault);
}

static inline struct task *world_owner(struct world *world, const struct id *stream) {
  if (world->task.state == TASK_NONE || id_equal(stream, &world->task.id)) return &world->task;
  return &world->child;
}

/* Fills in the header of the i-th event of the list, as the engine does. */
static inline struct event *world_number(struct world *world, uint32_t i) {
  struct event *event = &world->list.events[i];
  event->seq = world->env.next_seq++;
  event->offset = i;
  event->last_of_commit = i + 1 == world->list.count;
  event->prev = world_owner(world, &event->stream)->last_seq;
  event->time_us = world->env.now_us;
  return event;
}

/* Numbers the events and folds them; each must fit. */
static inline void world_commit(struct world *world) {
  for (uint32_t i = 0; i < world->list.count; i++) {
    struct event *event = world_number(world, i);
    struct task *task = world_owner(world, &event->stream);
    struct attempt *attempt = task == &world->task ? &world->attempt : &world->child_attempt;
    const char *reason = "";
    if (!can_apply_task(task, attempt, event, &reason))
      fail_msg("%s in %s: %s", event_type_text(event->type), task_state_text((enum task_state)task->state), reason);
    enum task_state before = (enum task_state)task->state;
    apply_task(task, attempt, event);
    world->queue.counts[before] -= before != TASK_NONE;
    world->queue.counts[task->state]++;
    if (event->type == EVENT_task_accepted) world->application.unfinished++;
    if (!task_state_is_terminal(before) && task_state_is_terminal((enum task_state)task->state))
      world->application.unfinished--;
    if (event->type == EVENT_task_accepted && task == &world->task) world->accepted = event->body.task_accepted;
    if (event->type == EVENT_task_leased || event->type == EVENT_task_started) world->last_attempt = *attempt;
  }
  assert_int_equal(world->task.ended_as, ATTEMPT_NONE);
}

static inline struct submit_command world_submission(const struct world *world) {
  return (struct submit_command){.queue_id = world->queue.id,
                                 .handler = bytes_text("object.prepare"),
                                 .handler_version = bytes_text("v1"),
                                 .payload_version = bytes_text("v1"),
                                 .payload = bytes_text("{\"object_ref\":\"objects/input\",\"sequence\":9007199254740993}"),
                                 .task_timeout_ms = 60000,
                                 .recovery_safety = RECOVERY_RECONCILE_ONLY,
                                 .max_attempts = 1,
                                 .attempt_timeout_ms = 10000};
}

static inline enum status world_submit(struct world *world, const struct submit_command *submit) {
  struct command command = world_command(world, COMMAND_SUBMIT);
  command.as.submit = *submit;
  world_prepare(world);
  return decide_submit(&world->queue, &world->application, &command, &world->env, &world->list, &world->fault);
}

static inline struct lease_request world_lease_request(const struct world *world, uint32_t lease_ms) {
  return (struct lease_request){.instance_id = world_id(0xA1, 1),
                                .instance_name = bytes_text("worker-1"),
                                .application_id = world->application.id,
                                .lease_ms = lease_ms};
}

static inline enum status world_lease(struct world *world, uint32_t lease_ms) {
  struct lease_request request = world_lease_request(world, lease_ms);
  world_prepare(world);
  return decide_lease(&world->task, &request, &world->env, &world->list, &world->fault);
}

/* The newest claim, as its worker would name it. */
static inline struct attempt_ref world_ref(struct world *world) {
  world->ids++;
  return (struct attempt_ref){.message_id = world_id(0x77, world->ids),
                              .task_id = world->task.id,
                              .attempt_id = id_is_zero(&world->last_attempt.id) ? world_id(0x22, 0) : world->last_attempt.id,
                              .epoch = world->task.epoch};
}

static inline struct report world_report(enum outcome outcome, bool retryable) {
  struct report report = {.outcome = outcome, .retryable = retryable, .identity = world_id(0xF1, 1)};
  if (outcome == OUTCOME_SUCCEEDED) report.result = bytes_text("{\"text\":\"SAFE RETRY\"}");
  else report.error_code = bytes_text("TEMPORARY_REJECTION");
  return report;
}

#endif
