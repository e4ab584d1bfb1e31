/* Owns the thread that writes what is handed over, and the queue that it takes from. While one transaction is on its way to the
 * disk more commits come, and all that wait then are the next one. */
#include <pthread.h>
#include <stdlib.h>

#include "base/guard.h"
#include "journal/internal.h"

struct handed {
  struct commit *commit; /* the caller's, unchanged until it is settled */
  uint64_t chain;        /* of its last record */
};

struct writer {
  struct journal *journal;
  bool threaded; /* else everything is written as it is handed over */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t more;    /* something was handed over, or nothing more will be */
  pthread_cond_t settled; /* something became durable, or failed */
  /* under lock */
  void (*told)(void *context);
  void *context;
  struct handed
      queue[commits_in_flight_max]; /* a ring, oldest at `first`; those that are being written stay in it until then */
  unsigned first, count;
  bool stopping;
  enum status status; /* of the write that failed; OK: none did */
  struct fault fault;
};

/* ---- the thread ---- */

/* What waits, as the next transaction. 0: nothing more comes. The lock is held. */
static unsigned take(struct writer *writer, struct commit **ret_commits, uint64_t *ret_chain) {
  while (writer->count == 0 && !writer->stopping) (void)pthread_cond_wait(&writer->more, &writer->lock);
  if (writer->status != STATUS_OK) return 0;
  for (unsigned i = 0; i < writer->count; i++) {
    const struct handed *handed = &writer->queue[(writer->first + i) % commits_in_flight_max];
    ret_commits[i] = handed->commit;
    *ret_chain = handed->chain;
  }
  return writer->count;
}

/* The lock is held, but for the time of the write. */
static void write_some(struct writer *writer, struct commit *const *commits, unsigned count, uint64_t chain) {
  struct fault fault = {.message = ""};
  (void)pthread_mutex_unlock(&writer->lock);
  enum status status = commits_write(writer->journal, commits, count, chain, &fault);
  (void)pthread_mutex_lock(&writer->lock);
  if (status != STATUS_OK) writer->fault = fault;
  writer->status = status;
  writer->first = (writer->first + count) % commits_in_flight_max;
  writer->count -= count;
  (void)pthread_cond_signal(&writer->settled);
  if (writer->told != NULL) writer->told(writer->context);
}

static void *write_on(void *context) {
  struct writer *writer = context;
  struct commit *commits[commits_in_flight_max];
  uint64_t chain = 0;
  unsigned count;
  (void)pthread_setname_np(pthread_self(), "journal");
  (void)pthread_mutex_lock(&writer->lock);
  while ((count = take(writer, commits, &chain)) != 0) write_some(writer, commits, count, chain);
  (void)pthread_mutex_unlock(&writer->lock);
  return NULL;
}

/* ---- the caller ---- */

static struct writer *writer_of(struct journal *journal) {
  must(!journal->read_only);
  if (journal->writer != NULL) return journal->writer;
  struct writer *writer = guard_calloc(1, sizeof *writer);
  writer->journal = journal;
  (void)pthread_mutex_init(&writer->lock, NULL);
  (void)pthread_cond_init(&writer->more, NULL);
  (void)pthread_cond_init(&writer->settled, NULL);
  return journal->writer = writer;
}

void journal_write_behind(struct journal *journal, void (*told)(void *context), void *context) {
  struct writer *writer = writer_of(journal);
  (void)pthread_mutex_lock(&writer->lock);
  must(writer->told == NULL);
  writer->told = told;
  writer->context = context;
  (void)pthread_mutex_unlock(&writer->lock);
  if (!writer->threaded) writer->threaded = pthread_create(&writer->thread, NULL, write_on, writer) == 0;
  if (journal->extender == NULL) room_begin(journal);
}

void journal_quiet(struct journal *journal) {
  struct writer *writer = journal->writer;
  if (writer == NULL) return;
  (void)pthread_mutex_lock(&writer->lock);
  while (writer->count != 0 && writer->status == STATUS_OK) (void)pthread_cond_wait(&writer->settled, &writer->lock);
  writer->told = NULL;
  (void)pthread_mutex_unlock(&writer->lock);
}

void writer_stop(struct journal *journal) {
  struct writer *writer = journal->writer;
  if (writer == NULL) return;
  (void)pthread_mutex_lock(&writer->lock);
  writer->stopping = true;
  (void)pthread_cond_signal(&writer->more);
  (void)pthread_mutex_unlock(&writer->lock);
  if (writer->threaded) (void)pthread_join(writer->thread, NULL);
  (void)pthread_cond_destroy(&writer->settled);
  (void)pthread_cond_destroy(&writer->more);
  (void)pthread_mutex_destroy(&writer->lock);
  free(writer);
  journal->writer = NULL;
}

void journal_hand_over(struct journal *journal, struct commit *commit) {
  struct writer *writer = writer_of(journal);
  must(commit->count != 0 && commit->first_seq == journal->handed_seq + 1 && commit->time_us >= journal->handed_time_us);
  uint64_t chain = commit_seal(commit, journal->handed_chain);
  journal->handed_seq += commit->count;
  journal->handed_chain = chain;
  journal->handed_time_us = commit->time_us;
  journal->handed_bytes += commit->records.size;
  (void)pthread_mutex_lock(&writer->lock);
  must(writer->count < commits_in_flight_max);
  writer->queue[(writer->first + writer->count++) % commits_in_flight_max] = (struct handed){commit, chain};
  if (writer->threaded) (void)pthread_cond_signal(&writer->more);
  else if (writer->status == STATUS_OK) write_some(writer, &commit, 1, chain);
  (void)pthread_mutex_unlock(&writer->lock);
}

enum status journal_settled(struct journal *journal, uint64_t seq, uint64_t *ret_seq, struct fault *fault) {
  struct writer *writer = writer_of(journal);
  must(seq <= journal->handed_seq);
  (void)pthread_mutex_lock(&writer->lock);
  while (writer->status == STATUS_OK && journal->last_seq < seq) (void)pthread_cond_wait(&writer->settled, &writer->lock);
  enum status status = writer->status;
  if (status == STATUS_OK) *ret_seq = journal->last_seq;
  else if (fault != NULL) *fault = writer->fault;
  (void)pthread_mutex_unlock(&writer->lock);
  return status;
}
