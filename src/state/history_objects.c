/* Owns the history of queues: as they were configured at a position. */
#include "core/apply.h"
#include "state/history.h"

enum status history_queue_at(struct history *history, struct record_source source, uint64_t seq, struct queue *ret_queue) {
  const uint64_t *seqs;
  size_t count = 0;
  struct event event;
  struct queue queue = {.revision = 0};
  enum status status = history_chain(history, source, seq, &seqs, &count);
  for (size_t i = 0; i < count && status == STATUS_OK; i++) {
    status = history_event(history, source, seqs[i], &event);
    if (status == STATUS_OK) apply_queue(&queue, &event);
  }
  if (status == STATUS_OK) *ret_queue = queue;
  return status;
}
