/* A log in memory that the rules themselves write, one step of a task's life a function. */
#ifndef ORBIT_TESTS_HISTORY_LOG_H
#define ORBIT_TESTS_HISTORY_LOG_H

#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "core/apply.h"
#include "core/decide.h"
#include "state/history.h"

enum { events_max = 256 };

static const int64_t start_us = INT64_C(1789603200) * 1000000; /* 2026-09-17T00:00:00Z */

static inline struct id id_of(unsigned high, unsigned low) {
  struct id id = {{0}};
  id.bytes[0] = (uint8_t)high;
  id.bytes[14] = (uint8_t)(low >> 8);
  id.bytes[15] = (uint8_t)low;
  return id;
}

/* A log in memory, and the task as folding it left it. */
struct log {
  struct buffer records[events_max];        /* by seq; each on its own, so that none ever moves */
  struct task after[events_max];            /* the task after each of its events */
  struct attempt attempt_after[events_max]; /* likewise */
  uint64_t last_seq;
  struct task task;
  struct attempt attempt; /* of the task */
  int64_t now_us;
  unsigned ids;
  struct history *history;
};

static inline enum status log_get(void *context, uint64_t seq, struct bytes *ret_record) {
  struct log *log = context;
  if (seq == 0 || seq > log->last_seq) return STATUS_END;
  *ret_record = buffer_bytes(&log->records[seq]);
  return STATUS_OK;
}

static inline struct record_source source_of(struct log *log) { return (struct record_source){log_get, log}; }

static inline void log_append(struct log *log, struct event *event) {
  assert_true(log->last_seq + 1 < events_max);
  event->seq = ++log->last_seq;
  event->time_us = log->now_us;
  buffer_init(&log->records[event->seq], 1 << 20);
  assert_int_equal(record_encode(event, &log->records[event->seq]), STATUS_OK);
}

static inline void log_append_list(struct log *log, struct event_list *list) {
  assert_true(list->count > 0);
  for (uint32_t i = 0; i < list->count; i++) {
    list->events[i].prev = log->task.last_seq;
    log_append(log, &list->events[i]);
    apply_task(&log->task, &log->attempt, &list->events[i]);
    log->after[log->last_seq] = log->task;
    log->attempt_after[log->last_seq] = log->attempt;
  }
}

/* An event of somebody else, so that the task's own do not stand side by side. */
static inline void log_append_stranger(struct log *log) {
  struct event event = {.type = EVENT_queue_paused, .version = 1, .stream = id_of(0x77, 1)};
  event.common = (struct event_common){.operation_id = id_of(0x78, 1), .actor = id_of(0x79, 1), .revision = 2};
  log_append(log, &event);
}

static inline struct decide_env env_of(struct log *log) {
  log->ids++;
  return (struct decide_env){.now_us = log->now_us,
                             .node_id = id_of(0x0E, 1),
                             .operation_id = id_of(0x10, log->ids),
                             .next_seq = log->last_seq + 1,
                             .new_id = id_of(0x20, log->ids)};
}

static inline struct command command_of(struct log *log, enum command_kind kind) {
  struct command command = {.kind = kind};
  command.who =
      (struct principal){.credential_id = id_of(0x01, 1), .application_id = id_of(0x02, 1), .namespace_id = id_of(0x03, 1)};
  command.operation = (struct operation){.identity = id_of(0x30, ++log->ids), .digest = id_of(0x31, log->ids)};
  return command;
}

static inline void log_begin(struct log *log, enum recovery_safety safety, uint32_t max_attempts) {
  memset(log, 0, sizeof *log);
  log->now_us = start_us;
  log->history = history_new();
  log_append_stranger(log);
  struct queue queue = {.id = id_of(0x04, 1), .namespace_id = id_of(0x03, 1)};
  struct application application = {.id = id_of(0x02, 1), .namespace_id = id_of(0x03, 1)};
  struct command command = command_of(log, COMMAND_SUBMIT);
  command.as.submit = (struct submit_command){.queue_id = queue.id,
                                              .handler = bytes_text("h"),
                                              .handler_version = bytes_text("v"),
                                              .payload_version = bytes_text("p"),
                                              .payload = bytes_text("{\"n\":1.10}"),
                                              .business_key = bytes_text("b"),
                                              .task_timeout_ms = 600000,
                                              .recovery_safety = safety,
                                              .max_attempts = max_attempts,
                                              .initial_delay_ms = 1000,
                                              .max_delay_ms = 2000,
                                              .attempt_timeout_ms = 60000};
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  struct fault fault;
  assert_int_equal(decide_submit(&queue, &application, &command, &env, &list, &fault), STATUS_OK);
  log_append_list(log, &list);
}

static inline void log_end(struct log *log) {
  history_free(log->history);
  for (unsigned i = 0; i < events_max; i++) buffer_clear(&log->records[i]);
}

/* Waits until the task may be leased, and leases it. */
static inline void do_lease(struct log *log, const char *name) {
  if (log->now_us < log->task.available_at) log->now_us = log->task.available_at;
  log_append_stranger(log);
  struct lease_request request = {.instance_id = id_of(0xA1, 1), .application_id = id_of(0x02, 1), .lease_ms = 30000};
  if (name != NULL) request.instance_name = bytes_text(name);
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  struct fault fault;
  assert_int_equal(decide_lease(&log->task, &request, &env, &list, &fault), STATUS_OK);
  log_append_list(log, &list);
}

static inline struct attempt_ref ref_of(struct log *log) {
  return (struct attempt_ref){
      .message_id = id_of(0x40, ++log->ids), .task_id = log->task.id, .attempt_id = log->attempt.id, .epoch = log->task.epoch};
}

static inline void do_start(struct log *log) {
  log->now_us += 1000;
  log_append_stranger(log);
  struct command command = command_of(log, COMMAND_START);
  command.as.ref = ref_of(log);
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  struct fault fault;
  assert_int_equal(decide_start(&log->task, &log->attempt, &command, &env, &list, &fault), STATUS_OK);
  log_append_list(log, &list);
}

static inline struct report report_of(enum outcome outcome, bool retryable) {
  struct report report = {.outcome = outcome, .retryable = retryable, .identity = id_of(0x50, 1)};
  if (outcome == OUTCOME_SUCCEEDED) {
    report.result = bytes_text("{\"done\":9007199254740993}");
  } else {
    report.error_code = bytes_text("E");
    report.error_message = bytes_text("why");
    report.error_details = bytes_text("[1]");
  }
  return report;
}

static inline void do_finish(struct log *log, enum outcome outcome, bool retryable) {
  log->now_us += 1000;
  struct command command = command_of(log, COMMAND_FINISH);
  command.as.finish = (struct finish_command){ref_of(log), report_of(outcome, retryable)};
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  struct fault fault;
  assert_int_equal(decide_finish(&log->task, &log->attempt, &command, &env, &list, &fault), STATUS_OK);
  log_append_list(log, &list);
}

static inline void do_evidence(struct log *log, const struct id *attempt_id, uint64_t epoch, enum evidence_reason reason) {
  log->now_us += 1000;
  struct command command = command_of(log, COMMAND_FINISH);
  command.as.finish = (struct finish_command){ref_of(log), report_of(OUTCOME_FAILED, true)};
  command.as.finish.ref.attempt_id = *attempt_id;
  command.as.finish.ref.epoch = epoch;
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  struct fault fault;
  assert_int_equal(decide_evidence(&log->task, &command, reason, 0, &env, &list, &fault), STATUS_OK);
  log_append_list(log, &list);
}

static inline void do_release(struct log *log) {
  log->now_us += 1000;
  struct command command = command_of(log, COMMAND_RELEASE);
  command.as.ref = ref_of(log);
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  struct fault fault;
  assert_int_equal(decide_release(&log->task, &log->attempt, &command, &env, &list, &fault), STATUS_OK);
  log_append_list(log, &list);
}

static inline void do_expire(struct log *log, int64_t now_us) {
  log->now_us = now_us;
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  decide_expire(&log->task, &log->attempt, &env, &list);
  log_append_list(log, &list);
}

static inline void do_cancel(struct log *log) {
  log->now_us += 1000;
  struct command command = command_of(log, COMMAND_CANCEL);
  command.as.cancel = (struct cancel_command){.task_id = log->task.id, .reason = bytes_text("because")};
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  struct fault fault;
  assert_int_equal(decide_cancel(&log->task, &log->attempt, &command, 0, &env, &list, &fault), STATUS_OK);
  log_append_list(log, &list);
}

static inline void do_review(struct log *log) {
  log->now_us += 1000;
  struct command command = command_of(log, COMMAND_REVIEW);
  command.as.review = (struct review_command){.task_id = log->task.id,
                                              .expected_revision = log->task.revision,
                                              .reason = bytes_text("seen"),
                                              .evidence_ref = bytes_text("evidence:1"),
                                              .outcome = OUTCOME_FAILED,
                                              .result = bytes_text("{\"confirmed\":true}"),
                                              .result_digest = id_of(0x60, 1)};
  struct event_task_accepted accepted = {.namespace_id = id_of(0x03, 1)};
  struct decide_env env = env_of(log);
  struct event_list list = {.count = 0};
  struct fault fault;
  assert_int_equal(decide_review(&log->task, &accepted, &command, &env, &list, &fault), STATUS_OK);
  log_append_list(log, &list);
}

#endif
