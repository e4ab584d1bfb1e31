/* Owns the thread that reads ahead of a replay, and the ring in which its events wait for their visits. The reader holds its
 * snapshot until all that it took from it are visited, because their spans lie in the log's pages. */
#include <pthread.h>
#include <stdlib.h>

#include "base/guard.h"
#include "journal/internal.h"

enum { batch = replay_ahead_batch_events };

struct slot {
  struct event event;
  struct bytes record;
};

struct ahead {
  struct journal *journal;
  uint64_t after_seq, previous_chain;
  uint64_t filled; /* the reader's: events put into the ring so far; those behind `made` are not handed over yet */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t made, used; /* under lock: events handed over, and events visited; the ring holds what lies between */
  bool over;           /* under lock: nothing more comes; how it ended is in status and fault from then on */
  bool stopped;        /* under lock: nothing more is wanted */
  enum status status;
  struct fault fault;
  struct slot slots[replay_ahead_events];
};

static struct slot *slot_at(struct ahead *ahead, uint64_t number) { return &ahead->slots[number % replay_ahead_events]; }

/* ---- the reader ---- */

/* Hands over what is in the ring and waits until at most `left` of it wait for their visits. END: nothing more is wanted. */
static enum status hand_over(struct ahead *ahead, uint64_t left) {
  (void)pthread_mutex_lock(&ahead->lock);
  ahead->made = ahead->filled;
  (void)pthread_cond_signal(&ahead->changed);
  while (!ahead->stopped && ahead->made - ahead->used > left) (void)pthread_cond_wait(&ahead->changed, &ahead->lock);
  bool stopped = ahead->stopped;
  (void)pthread_mutex_unlock(&ahead->lock);
  return stopped ? STATUS_END : STATUS_OK;
}

static enum status put(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct ahead *ahead = context;
  (void)fault;
  *slot_at(ahead, ahead->filled++) = (struct slot){*event, record};
  return ahead->filled % batch == 0 ? hand_over(ahead, replay_ahead_events - batch) : STATUS_OK;
}

static enum status settle(void *context) { return hand_over(context, 0); }

static void *read_ahead(void *context) {
  struct ahead *ahead = context;
  struct replay_sink sink = {put, settle, ahead};
  enum status status = replay_run(ahead->journal, ahead->after_seq, ahead->previous_chain, &sink, &ahead->fault);
  (void)pthread_mutex_lock(&ahead->lock);
  ahead->status = status;
  ahead->over = true;
  (void)pthread_cond_signal(&ahead->changed);
  (void)pthread_mutex_unlock(&ahead->lock);
  return NULL;
}

/* ---- the visitor ---- */

struct visitor {
  struct ahead *ahead;
  journal_visit *visit;
  journal_glance *glance;
  void *context;
  uint64_t at, far, near; /* the next event to visit, and the next to glance at */
};

/* Says that all before `at` were visited. False: nothing more comes; else *ret_made lies behind `at`. */
static bool take_over(struct visitor *visitor, uint64_t *ret_made) {
  struct ahead *ahead = visitor->ahead;
  (void)pthread_mutex_lock(&ahead->lock);
  ahead->used = visitor->at;
  (void)pthread_cond_signal(&ahead->changed);
  while (ahead->made == visitor->at && !ahead->over) (void)pthread_cond_wait(&ahead->changed, &ahead->lock);
  *ret_made = ahead->made;
  (void)pthread_mutex_unlock(&ahead->lock);
  return *ret_made != visitor->at;
}

static void glance_until(struct visitor *visitor, uint64_t *at, uint64_t until, uint64_t made, bool near) {
  for (; *at < until && *at < made; ++*at) visitor->glance(visitor->context, &slot_at(visitor->ahead, *at)->event, near);
}

static enum status visit_one(struct visitor *visitor, uint64_t made, struct fault *fault) {
  if (visitor->glance != NULL) {
    glance_until(visitor, &visitor->far, visitor->at + replay_glance_far_events, made, false);
    glance_until(visitor, &visitor->near, visitor->at + replay_glance_near_events, made, true);
  }
  const struct slot *slot = slot_at(visitor->ahead, visitor->at++);
  return visitor->visit(visitor->context, &slot->event, slot->record, fault);
}

static enum status visit_all(struct visitor *visitor, struct fault *fault) {
  enum status status = STATUS_OK;
  uint64_t made;
  while (status == STATUS_OK && take_over(visitor, &made))
    for (unsigned i = 0; i < batch && visitor->at < made && status == STATUS_OK; i++) status = visit_one(visitor, made, fault);
  return status;
}

/* ---- both ---- */

static void ahead_free(struct ahead *ahead) {
  (void)pthread_cond_destroy(&ahead->changed);
  (void)pthread_mutex_destroy(&ahead->lock);
  free(ahead);
}

static void stop(struct ahead *ahead, pthread_t reader) {
  (void)pthread_mutex_lock(&ahead->lock);
  ahead->stopped = true;
  (void)pthread_cond_signal(&ahead->changed);
  (void)pthread_mutex_unlock(&ahead->lock);
  (void)pthread_join(reader, NULL);
}

enum status journal_replay_ahead(struct journal *journal, uint64_t after_seq, uint64_t previous_chain, journal_visit *visit,
                                 journal_glance *glance, void *context, struct fault *fault) {
  struct ahead *ahead = guard_calloc(1, sizeof *ahead);
  struct visitor visitor = {.ahead = ahead, .visit = visit, .glance = glance, .context = context};
  pthread_t reader;
  ahead->journal = journal;
  ahead->after_seq = after_seq;
  ahead->previous_chain = previous_chain;
  if (fault != NULL) ahead->fault = *fault;
  (void)pthread_mutex_init(&ahead->lock, NULL);
  (void)pthread_cond_init(&ahead->changed, NULL);
  if (pthread_create(&reader, NULL, read_ahead, ahead) != 0) {
    ahead_free(ahead);
    return journal_replay(journal, after_seq, previous_chain, visit, context, fault);
  }
  enum status status = visit_all(&visitor, fault);
  stop(ahead, reader);
  if (status == STATUS_OK && ahead->status != STATUS_OK) {
    status = ahead->status;
    if (fault != NULL) *fault = ahead->fault;
  }
  ahead_free(ahead);
  return status;
}
