/* Two worlds to which the same is done: one keeps everything in memory, of the other all that has ended leaves at once. Every
 * answer, list and digest must be the same. */
#ifndef ORBIT_TESTS_COLD_PAIR_H
#define ORBIT_TESTS_COLD_PAIR_H

#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/wire_http.h"
#include "codec/wire_list.h"
#include "codec/wire_recovery.h"
#include "engine/internal.h"
#include "state/operations.h"

struct pair {
  struct world hot, cold;
  struct buffer hot_text, cold_text;
  uint64_t random;
  unsigned follow_sides; /* the checkpoint follows once in so many steps */
};

static inline int open_pair(void **context) {
  struct pair *pair = calloc(1, sizeof *pair);
  world_open(&pair->hot);
  world_twin(&pair->cold, &pair->hot);
  world_evict(&pair->cold);
  world_restart(&pair->hot);
  buffer_init(&pair->hot_text, SIZE_MAX);
  buffer_init(&pair->cold_text, SIZE_MAX);
  pair->follow_sides = 1;
  *context = pair;
  return 0;
}

static inline int close_pair(void **context) {
  struct pair *pair = *context;
  buffer_clear(&pair->hot_text);
  buffer_clear(&pair->cold_text);
  world_close(&pair->hot);
  world_close(&pair->cold);
  free(pair);
  return 0;
}

/* ---- everything that may be read of a task, as text ---- */

static inline void write_history(struct buffer *out, struct world *world, const struct task *task) {
  struct record_source source = engine_source(world->engine);
  struct history *history = world->engine->history;
  struct task_document document;
  const struct attempt_document *attempts;
  const struct evidence_document *evidence;
  struct operation_document operations[page_rows_max];
  uint32_t count;
  bool more;
  assert_int_equal(history_document(history, source, task, &document), STATUS_OK);
  wire_task_write(out, &document);
  assert_int_equal(history_attempts(history, source, task, &attempts, &count), STATUS_OK);
  for (uint32_t i = 0; i < count; i++) wire_attempt_write(out, &attempts[i]);
  assert_int_equal(history_evidence(history, source, task, &evidence, &count), STATUS_OK);
  for (uint32_t i = 0; i < count; i++) wire_evidence_write(out, &evidence[i]);
  assert_int_equal(operations_page(history, source, task, NULL, page_rows_max, operations, &count, &more), STATUS_OK);
  for (uint32_t i = 0; i < count; i++) wire_operation_write(out, &operations[i]);
}

static inline void write_number(struct buffer *out, uint64_t number) {
  char text[32];
  (void)snprintf(text, sizeof text, " %llu", (unsigned long long)number);
  buffer_append_text(out, text);
}

static inline void write_worker(struct buffer *out, const struct worker_result *result) {
  uint64_t numbers[] = {result->applied,       result->deduplicated,
                        result->evidence,      result->disposition,
                        result->has_task,      result->task_state,
                        result->task_revision, (uint64_t)result->available_at,
                        result->lease_active,  (uint64_t)result->lease_expires_at};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) write_number(out, numbers[i]);
  buffer_append_text(out, id_text(&result->task_id).text);
}

static inline void write_schedule(struct buffer *out, const struct schedule *schedule) {
  uint64_t numbers[] = {schedule->revision,
                        schedule->config_seq,
                        schedule->trigger_seq,
                        (uint64_t)schedule->next_at,
                        (uint64_t)schedule->free_at,
                        schedule->unfinished,
                        schedule->overlap,
                        schedule->missed,
                        schedule->paused,
                        schedule->deleted};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) write_number(out, numbers[i]);
  buffer_append_text(out, id_text(&schedule->id).text);
}

static inline bool is_of_schedule(enum command_kind kind) {
  return kind == COMMAND_GET_SCHEDULE || (kind >= COMMAND_SCHEDULE_CREATE && kind <= COMMAND_SCHEDULE_DELETE);
}

static inline void write_answer(struct buffer *out, struct world *world, const struct command *command,
                                const struct answer *answer) {
  buffer_reset(out);
  write_number(out, answer->status);
  buffer_append_text(out, answer->status != STATUS_OK ? answer->fault.message : "");
  if (command->kind == COMMAND_START || command->kind == COMMAND_FINISH || command->kind == COMMAND_RELEASE ||
      command->kind == COMMAND_RENEW)
    write_worker(out, &answer->as.worker);
  if (answer->status != STATUS_OK) return;
  write_number(out, answer->created), write_number(out, answer->deduplicated), write_number(out, answer->applied);
  buffer_append_text(out, id_text(&answer->audit_id).text);
  buffer_append_text(out, id_text(&answer->source_task_id).text);
  bool has_task = command->kind == COMMAND_SUBMIT || command->kind == COMMAND_GET_TASK || command->kind == COMMAND_CANCEL ||
                  command->kind == COMMAND_REVIEW || command->kind == COMMAND_RETRY;
  if (has_task) write_history(out, world, &answer->as.task);
  if (is_of_schedule(command->kind)) write_schedule(out, &answer->as.schedule);
  if (command->kind == COMMAND_GET_QUEUE)
    for (unsigned i = 0; i < TASK_ENUM_END; i++) write_number(out, answer->as.queue.counts[i]);
  if (command->kind != COMMAND_LIST_TASKS) return;
  for (uint32_t i = 0; i < answer->as.list.count; i++) write_history(out, world, &answer->as.list.of.tasks[i]);
  write_number(out, answer->as.list.more);
  buffer_append_text(out, answer->as.list.more ? id_text(&answer->as.list.next).text : "");
}

static inline void expect_same_text(struct pair *pair) {
  const struct buffer *hot = &pair->hot_text, *cold = &pair->cold_text;
  if (bytes_equal(buffer_bytes(hot), buffer_bytes(cold))) return;
  size_t at = 0;
  while (at < hot->size && at < cold->size && hot->data[at] == cold->data[at]) at++;
  at = at > 100 ? at - 100 : 0;
  fail_msg("in memory:      %.*s\nfrom the store: %.*s", (int)(hot->size - at < 200 ? hot->size - at : 200),
           (const char *)hot->data + at, (int)(cold->size - at < 200 ? cold->size - at : 200), (const char *)cold->data + at);
}

/* The command in both worlds, and what both say by themselves. The list's rows are the caller's. */
static inline struct answer do_both(struct pair *pair, const struct command *command) {
  if (pair->follow_sides != 0 && test_random(&pair->random) % pair->follow_sides == 0) {
    world_follow(&pair->cold);
    (void)world_tick_once(&pair->cold);
  }
  struct answer hot = world_do(&pair->hot, command), cold = world_do(&pair->cold, command);
  write_answer(&pair->hot_text, &pair->hot, command, &hot);
  write_answer(&pair->cold_text, &pair->cold, command, &cold);
  expect_same_text(pair);
  if (command->kind == COMMAND_HELLO && hot.status == STATUS_OK) free(hot.as.welcome.held), free(cold.as.welcome.held);
  if (command->kind == COMMAND_LIST_TASKS && hot.status == STATUS_OK) free(cold.as.list.of.tasks);
  return hot;
}

static inline void advance_both(struct pair *pair, int64_t us) {
  pair->hot.now_us += us;
  pair->cold.now_us = pair->hot.now_us;
  world_tick(&pair->hot);
  world_tick(&pair->cold);
}

/* Brings the push that is like this one to the place from which it is taken next: attempts that an instance got back when it
 * came again are told in the order in which memory holds them, which a start from the checkpoint changes. */
static inline void bring_forward(struct world *world, enum mail_kind kind, const struct push *like) {
  uint32_t first = 0, found = 0;
  while (first < world->push_count && world->pushes[first]->mail.kind != kind) first++;
  for (found = first; found < world->push_count; found++)
    if (world->pushes[found]->mail.kind == kind && id_equal(&world->pushes[found]->attempt_id, &like->attempt_id)) break;
  assert_in_range(found, first, world->push_count - 1);
  struct push *swapped = world->pushes[first];
  world->pushes[first] = world->pushes[found];
  world->pushes[found] = swapped;
}

/* What both told a worker. */
static inline const struct push *take_both(struct pair *pair, enum mail_kind kind) {
  const struct push *hot = world_take(&pair->hot, kind, 0);
  if (hot != NULL) bring_forward(&pair->cold, kind, hot);
  const struct push *cold = world_take(&pair->cold, kind, 0);
  assert_int_equal(hot == NULL, cold == NULL);
  if (hot == NULL) return NULL;
  assert_true(id_equal(&hot->attempt_id, &cold->attempt_id) && id_equal(&hot->task_id, &cold->task_id) &&
              hot->session == cold->session && hot->task.epoch == cold->task.epoch);
  return hot;
}

static inline void restart_both(struct pair *pair) {
  world_restart(&pair->hot);
  world_restart(&pair->cold);
  world_forget(&pair->hot);
  world_forget(&pair->cold);
}

/* Nothing that has ended is left in the memory of the one world; the views of both are the same, and those of the log. */
static inline void expect_same_views(struct pair *pair) {
  struct fault fault = {0};
  struct id hot = state_digest(pair->hot.engine->state), cold = state_digest(pair->cold.engine->state);
  if (state_check(pair->cold.engine->state, &fault) != STATUS_OK) fail_msg("check: %s", fault.message);
  assert_string_equal(id_text(&hot).text, id_text(&cold).text);
  world_check(&pair->hot);
}

static inline void evict_all(struct pair *pair) {
  world_follow(&pair->cold);
  world_tick(&pair->cold);
  struct evict_counts counts = state_evict_counts(pair->cold.engine->state);
  assert_int_equal(counts.ended, 0);
}

static inline struct command get_command(struct pair *pair, const struct id *id) {
  return (struct command){.kind = COMMAND_GET_TASK, .who = pair->hot.who, .as.task_id = *id};
}

/* The same times became the same tasks. Returns how many there are. */
static inline uint32_t triggers_of_both(struct pair *pair, const struct id *schedule_id, struct trigger *triggers,
                                        uint32_t limit) {
  struct trigger *cold = calloc(limit, sizeof *cold);
  uint32_t count = world_triggers(&pair->hot, schedule_id, triggers, limit);
  assert_int_equal(world_triggers(&pair->cold, schedule_id, cold, limit), count);
  for (uint32_t i = 0; i < count; i++)
    assert_true(cold[i].outcome == triggers[i].outcome && cold[i].scheduled_at == triggers[i].scheduled_at &&
                cold[i].decided_at == triggers[i].decided_at && id_equal(&cold[i].task_id, &triggers[i].task_id));
  free(cold);
  return count;
}

/* The whole list behind these filters, page by page. Returns how many rows. */
static inline uint32_t list_both(struct pair *pair, struct list_tasks_command filters) {
  uint32_t rows = 0;
  for (bool more = true; more;) {
    struct command command = {.kind = COMMAND_LIST_TASKS, .who = pair->hot.who, .as.list_tasks = filters};
    struct answer answer = do_both(pair, &command);
    assert_int_equal(answer.status, STATUS_OK);
    more = answer.as.list.more;
    filters.after = answer.as.list.next;
    rows += answer.as.list.count;
    free(answer.as.list.of.tasks);
  }
  return rows;
}

#endif
