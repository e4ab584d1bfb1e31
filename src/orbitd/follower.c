/* Owns the thread that keeps the checkpoint: when it looks, how it gives way to the engine, and what it does when its disk
 * fails. */
#include "orbitd/follower.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/limits.h"
#include "engine/clock.h"
#include "state/checkpoint.h"

struct follower {
  const struct log *log;
  struct journal *journal;
  char *path;
  uint64_t map_bytes;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  bool stopping;                 /* under lock */
  int64_t stop_until_us;         /* under lock */
  struct checkpoint *checkpoint; /* the thread's; NULL: not open */
  struct cold *cold;
  uint64_t index_receipts; /* so many wait before they are sorted in */
  bool complained;         /* the thread's: a failure was logged, and nothing has gone well since */
  unsigned damaged;        /* the thread's: how often what it read was not what it should be */
};

char *views_path(const char *data_directory) {
  char *path;
  return asprintf(&path, "%s/views", data_directory) < 0 ? NULL : path;
}

static bool is_stopping(struct follower *follower, int64_t *ret_until_us) {
  (void)pthread_mutex_lock(&follower->lock);
  bool stopping = follower->stopping;
  *ret_until_us = follower->stop_until_us;
  (void)pthread_mutex_unlock(&follower->lock);
  return stopping;
}

/* Until the time is over or somebody stops it. */
static void wait_ms(struct follower *follower, int64_t ms) {
  struct timespec until;
  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += ms / 1000;
  until.tv_nsec += ms % 1000 * 1000000;
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  (void)pthread_mutex_lock(&follower->lock);
  while (!follower->stopping && pthread_cond_timedwait(&follower->wake, &follower->lock, &until) == 0) continue;
  (void)pthread_mutex_unlock(&follower->lock);
}

static void complain(struct follower *follower, const struct fault *fault) {
  if (!follower->complained)
    log_line(follower->log, LOG_WARNING, "the checkpoint cannot be written; the next start takes longer until it can", "reason",
             fault->message, NULL);
  follower->complained = true;
}

/* What cannot be gone on with is made anew: it holds nothing that the log does not. */
static enum status open_checkpoint(struct follower *follower, struct fault *fault) {
  enum status status = checkpoint_open(follower->path, follower->map_bytes, follower->journal, &follower->checkpoint, fault);
  if (status != STATUS_FOREIGN && status != STATUS_CORRUPT) return status;
  log_line(follower->log, LOG_WARNING, "checkpoint made anew", "reason", fault->message, NULL);
  status = checkpoint_remove(follower->path);
  if (status != STATUS_OK) return fault_set(fault, status, NULL, "%.160s cannot be removed", follower->path);
  return checkpoint_open(follower->path, follower->map_bytes, follower->journal, &follower->checkpoint, fault);
}

/* Behind the events: what waits is sorted in, what is over goes, and whoever reads is told. */
static enum status tidy(struct follower *follower, struct fault *fault) {
  bool more = true;
  enum status status = checkpoint_index(follower->checkpoint, follower->index_receipts, cold_floor(follower->cold), fault);
  for (unsigned i = 0; status == STATUS_OK && more && i < follower_commits_max; i++)
    status = checkpoint_clean(follower->checkpoint, cold_floor(follower->cold), &more, fault);
  return status == STATUS_OK ? checkpoint_lend(follower->checkpoint, follower->cold, fault) : status;
}

static enum status follow(struct follower *follower, uint64_t *ret_events, struct fault *fault) {
  enum status status = follower->checkpoint == NULL ? open_checkpoint(follower, fault) : STATUS_OK;
  if (status == STATUS_OK) status = checkpoint_follow(follower->checkpoint, checkpoint_batch_events, ret_events, fault);
  if (status == STATUS_OK) status = tidy(follower, fault);
  if (status == STATUS_OK) {
    follower->complained = false;
    return status;
  }
  cold_withdraw(follower->cold);
  checkpoint_close(follower->checkpoint);
  follower->checkpoint = NULL;
  complain(follower, fault);
  if (status != STATUS_CORRUPT && status != STATUS_FOREIGN) return status;
  follower->damaged++;
  (void)checkpoint_remove(follower->path);
  return status;
}

static void *run(void *context) {
  struct follower *follower = context;
  /* Of this thread alone: the engine and the edges go first. */
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 10);
  for (;;) {
    struct fault fault = {0};
    uint64_t events = 0;
    int64_t until_us;
    bool stopping = is_stopping(follower, &until_us); /* asked first: what was committed before the stop is followed after it */
    bool failed = follow(follower, &events, &fault) != STATUS_OK;
    if (stopping && (failed || events == 0 || clock_monotonic_us() >= until_us)) break;
    if (follower->damaged > 1) break; /* making it anew did not help: the next start judges the log */
    if (failed) wait_ms(follower, checkpoint_retry_ms);
    else if (events < checkpoint_batch_events) wait_ms(follower, checkpoint_interval_ms);
  }
  if (follower->checkpoint != NULL) {
    char seq[24];
    (void)snprintf(seq, sizeof seq, "%" PRIu64, checkpoint_seq(follower->checkpoint));
    log_line(follower->log, LOG_INFO, "checkpoint written", "seq", seq, NULL);
  }
  cold_withdraw(follower->cold);
  checkpoint_close(follower->checkpoint);
  return NULL;
}

static void follower_free(struct follower *follower) {
  (void)pthread_cond_destroy(&follower->wake);
  (void)pthread_mutex_destroy(&follower->lock);
  free(follower->path);
  free(follower);
}

/* A receipt that waits takes memory: some hundredths of what there may be. */
static uint64_t index_receipts(uint64_t memory_max) {
  enum { bytes_share = 1024 };
  uint64_t receipts = memory_max != 0 ? memory_max / bytes_share : checkpoint_index_receipts;
  if (receipts < resident_receipts_min) receipts = resident_receipts_min;
  return receipts < checkpoint_index_receipts ? receipts : checkpoint_index_receipts;
}

enum status follower_start(const struct log *log, struct journal *journal, const struct follower_options *options,
                           struct follower **ret_follower, struct fault *fault) {
  struct follower *follower = guard_calloc(1, sizeof *follower);
  pthread_condattr_t attributes;
  follower->log = log;
  follower->journal = journal;
  follower->map_bytes = options->map_bytes;
  follower->checkpoint = options->checkpoint;
  follower->cold = options->cold;
  follower->index_receipts = index_receipts(options->memory_max);
  follower->path = views_path(options->data_directory);
  (void)pthread_mutex_init(&follower->lock, NULL);
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&follower->wake, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  if (follower->path == NULL || pthread_create(&follower->thread, NULL, run, follower) != 0) {
    follower_free(follower);
    return fault_set(fault, STATUS_IO_ERROR, NULL, "cannot start the follower's thread");
  }
  *ret_follower = follower;
  return STATUS_OK;
}

void follower_stop(struct follower *follower) {
  if (follower == NULL) return;
  (void)pthread_mutex_lock(&follower->lock);
  follower->stopping = true;
  follower->stop_until_us = clock_monotonic_us() + (int64_t)checkpoint_stop_ms_max * 1000;
  (void)pthread_cond_signal(&follower->wake);
  (void)pthread_mutex_unlock(&follower->lock);
  (void)pthread_join(follower->thread, NULL);
  follower_free(follower);
}
