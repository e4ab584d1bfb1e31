/* The history of one task, read from the log along the prev chain of its stream: as it stood at a position, with its texts, its
 * attempts, its evidence. Memory holds none of it. */
#ifndef ORBIT_STATE_HISTORY_H
#define ORBIT_STATE_HISTORY_H

#include "base/status.h"
#include "codec/event_codec.h"
#include "core/answer.h"
#include "core/model.h"

/* Where records come from: a reader's snapshot, or the engine's (which also sees the commit that is being made). */
struct record_source {
  /* END: no such record. The span must stay valid as long as the history that is made from it is used. */
  enum status (*get)(void *context, uint64_t seq, struct bytes *ret_record);
  void *context;
};

struct journal_reader;
struct record_source record_source_of_reader(struct journal_reader *reader);

/* Reusable memory for walks. Not thread-safe: one a thread. */
struct history;
struct history *history_new(void);
void history_free(struct history *history);

/* One decoded event. CORRUPT when it is not there or damaged. */
enum status history_event(struct history *history, struct record_source source, uint64_t seq, struct event *ret_event);

/* The seqs of the events of one object's stream, oldest first, up to and with seq (whatever the object is). *ret_seqs is owned
 * by history and valid until its next walk (history_event is none). NOT_FOUND: no such record. CORRUPT: the chain is broken.
 * NO_MEMORY. */
enum status history_chain(struct history *history, struct record_source source, uint64_t seq, const uint64_t **ret_seqs,
                          size_t *ret_count);

/* Folds the events of the task whose newest is (or is before) last_seq: the task as it stood then. Indexes (queue, application,
 * handler) are 0. ret_attempt NULL: not asked for. NOT_FOUND: seq is no event of a task. CORRUPT, NO_MEMORY. */
enum status history_task_at(struct history *history, struct record_source source, uint64_t seq, struct task *ret_task,
                            struct attempt *ret_attempt);

/* The same for a queue: as configured then; counts and all that is live are 0. Costs a walk over all that was ever done to it;
 * of the other objects core/apply.h tells the same from one event. */
enum status history_queue_at(struct history *history, struct record_source source, uint64_t seq, struct queue *ret_queue);

/* The snapshot with its texts. Spans live as long as the source's records. CORRUPT. */
enum status history_document(struct history *history, struct record_source source, const struct task *task,
                             struct task_document *ret_document);

/* All attempts, oldest first: *ret_attempts is owned by history and valid until its next use. The current attempt's
 * lease_expires_at is as granted. CORRUPT, NO_MEMORY. */
enum status history_attempts(struct history *history, struct record_source source, const struct task *task,
                             const struct attempt_document **ret_attempts, uint32_t *ret_count);
/* All evidence, oldest first; likewise. */
enum status history_evidence(struct history *history, struct record_source source, const struct task *task,
                             const struct evidence_document **ret_evidence, uint32_t *ret_count);

#endif
