/* Owns the glances ahead of a long fold: the indexes and the tasks are far larger than the processor's caches, and a fold that
 * asks for one place at a time waits for memory most of its time. */
#include "state/internal.h"

enum { cache_line_bytes = 64 };

static void glance_identity(const struct state *state, const struct id *identity) {
  if (!id_is_zero(identity)) index_prefetch(&state->receipts, identity_key(identity));
}

static void glance_far(const struct state *state, const struct event *event) {
  glance_identity(state, &event->common.identity);
  if (event->type == EVENT_attempt_result) glance_identity(state, &event->body.attempt_result.report_identity);
  index_prefetch_find(&state->task_ids, id_hash(&event->stream));
  if (event->type != EVENT_task_accepted || event->body.task_accepted.business_key.size == 0) return;
  const struct event_task_accepted *accepted = &event->body.task_accepted;
  index_prefetch_find(&state->business_keys, business_key_hash(&accepted->namespace_id, accepted->business_key));
}

static void glance_near(const struct state *state, const struct event *event) {
  struct index_cursor cursor;
  uint64_t number = index_find(&state->task_ids, id_hash(&event->stream), &cursor);
  if (number == 0) return;
  const char *node = (const char *)node_at(state, (uint32_t)number);
  for (size_t at = 0; at < sizeof(struct task_node); at += cache_line_bytes) __builtin_prefetch(node + at, 1);
}

void state_glance(const struct state *state, const struct event *event, bool near) {
  bool of_task = event_object_kind(event->type) == OBJECT_TASK || event->type == EVENT_audit_recorded;
  if (!of_task) return;
  if (!near) glance_far(state, event);
  else if (event->type != EVENT_task_accepted) glance_near(state, event);
}
