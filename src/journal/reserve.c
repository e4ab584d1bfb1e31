/* Owns the room ahead of the log. A commit that meets a full disk half-way is a commit that nobody can mend, so the file is
 * lengthened with written zeroes between commits, and a full disk is met here, where it can still be refused.
 *
 * Room wanted: what the next commit may need behind those that are on their way, and the reserve. While more than half of the
 * reserve is there, one small chunk at most is written for a call, by a thread of its own where there is one, so that a tick
 * does not wait; below half the call writes as much as is missing, or says NO_SPACE. The half that is left then is for what
 * must still be written. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/internal.h"

/* What bytes of records may take at most: a record just over half a page takes a page, and small ones have their keys. */
static bool room_needed(const struct journal *journal, uint64_t bytes, uint64_t *ret_needed) {
  uint64_t needed;
  if (__builtin_mul_overflow(bytes, 2, &needed) || __builtin_add_overflow(needed, bytes / 4, &needed) ||
      __builtin_add_overflow(needed, log_transaction_pages_max * journal->page_bytes, &needed))
    return false;
  *ret_needed = needed;
  return true;
}

/* What all that was handed over and is not durable may still take: of two transactions, the one that is being written and the
 * one that waits for it. */
static bool room_in_flight(const struct journal *journal, uint64_t *ret_needed) {
  uint64_t bytes = journal->handed_bytes - journal->committed_bytes;
  *ret_needed = 0;
  return bytes == 0 || (room_needed(journal, bytes, ret_needed) &&
                        !__builtin_add_overflow(*ret_needed, log_transaction_pages_max * journal->page_bytes, ret_needed));
}

/* Where the records end when bytes more have followed what is on its way. What is on its way is looked at first: what becomes
 * durable meanwhile is counted twice then, and never not at all. */
static bool room_end(const struct journal *journal, uint64_t bytes, uint64_t *ret_end) {
  uint64_t in_flight, needed;
  return room_in_flight(journal, &in_flight) && room_needed(journal, bytes, &needed) &&
         !__builtin_add_overflow(needed, in_flight, &needed) && !__builtin_add_overflow(journal->used_bytes, needed, ret_end);
}

/* Writes zeroes at [from, to) and syncs them. 0 or errno. */
static int zeroes_write(int file, const uint8_t *zeroes, uint64_t from, uint64_t to) {
  while (from < to) {
    size_t piece = to - from < log_zero_piece_bytes ? (size_t)(to - from) : log_zero_piece_bytes;
    ssize_t put = pwrite(file, zeroes, piece, (off_t)from);
    if (put < 0 && errno != EINTR) return errno;
    if (put == 0) return ENOSPC;
    if (put > 0) from += (uint64_t)put;
  }
  return fdatasync(file) != 0 ? errno : 0;
}

/* The kernel tells an error of writing back once to each open file, whoever's pages it was about. Were this LMDB's own, a sync
 * of zeroes could take the error of a transaction away from it. 0 or errno. */
static int file_open(struct journal *journal) {
  cleanup(guard_free) char *path = NULL;
  if (journal->room_file >= 0) return 0;
  if (asprintf(&path, "%s/data.mdb", journal->log_path) < 0) {
    path = NULL;
    return ENOMEM;
  }
  journal->room_file = open(path, O_RDWR | O_CLOEXEC);
  return journal->room_file < 0 ? errno : 0;
}

/* Lengthens the file to `to`. After NO_SPACE it is as long as before. A transaction that is being written meanwhile stays below
 * where the zeroes begin: there was room for it when it was decided, and the file is never shorter than it was then. One thread
 * at a time. */
static enum status file_extend(struct journal *journal, uint64_t to) {
  if (journal->zeroes == NULL) journal->zeroes = guard_calloc(1, log_zero_piece_bytes);
  /* file_bytes is never less than what LMDB uses, so that zeroes never fall on a page of the log. */
  must(journal->file_bytes >= journal->used_bytes);
  int code = file_open(journal);
  if (code == 0) code = zeroes_write(journal->room_file, journal->zeroes, journal->file_bytes, to);
  if (code == 0) {
    journal->file_bytes = to;
    journal->syncs++;
    return STATUS_OK;
  }
  enum status status = journal_error(code);
  if (ftruncate(journal->room_file, (off_t)journal->file_bytes) != 0) status = STATUS_IO_ERROR;
  if (status == STATUS_NO_SPACE) return status;
  journal->poisoned = true;
  return STATUS_IO_ERROR;
}

/* ---- the thread that makes the file longer while nobody waits for it ---- */

struct extender {
  struct journal *journal;
  bool threaded;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* under lock */
  uint64_t wanted; /* length of the file; 0: nothing is wanted */
  bool busy;       /* somebody lengthens the file */
  bool stopping;
};

/* The lock is held, but for the time of the writing. */
static enum status extend_alone(struct extender *extender, uint64_t to) {
  extender->busy = true;
  (void)pthread_mutex_unlock(&extender->lock);
  enum status status = file_extend(extender->journal, to);
  (void)pthread_mutex_lock(&extender->lock);
  extender->busy = false;
  extender->wanted = 0;
  (void)pthread_cond_broadcast(&extender->changed);
  return status;
}

/* A full disk is no matter here: whoever needs the room tries for himself. */
static void *make_room(void *context) {
  struct extender *extender = context;
  (void)pthread_setname_np(pthread_self(), "journal-room");
  (void)pthread_mutex_lock(&extender->lock);
  while (!extender->stopping) {
    if (extender->wanted != 0 && !extender->busy) (void)extend_alone(extender, extender->wanted);
    else (void)pthread_cond_wait(&extender->changed, &extender->lock);
  }
  (void)pthread_mutex_unlock(&extender->lock);
  return NULL;
}

void room_begin(struct journal *journal) {
  struct extender *extender = guard_calloc(1, sizeof *extender);
  extender->journal = journal;
  (void)pthread_mutex_init(&extender->lock, NULL);
  (void)pthread_cond_init(&extender->changed, NULL);
  journal->extender = extender;
  extender->threaded = pthread_create(&extender->thread, NULL, make_room, extender) == 0;
}

void room_stop(struct journal *journal) {
  struct extender *extender = journal->extender;
  if (extender == NULL) return;
  (void)pthread_mutex_lock(&extender->lock);
  extender->stopping = true;
  (void)pthread_cond_broadcast(&extender->changed);
  (void)pthread_mutex_unlock(&extender->lock);
  if (extender->threaded) (void)pthread_join(extender->thread, NULL);
  (void)pthread_cond_destroy(&extender->changed);
  (void)pthread_mutex_destroy(&extender->lock);
  free(extender);
  journal->extender = NULL;
}

static void ask_for_room(struct extender *extender, uint64_t to) {
  (void)pthread_mutex_lock(&extender->lock);
  if (!extender->busy) {
    extender->wanted = to;
    (void)pthread_cond_broadcast(&extender->changed);
  }
  (void)pthread_mutex_unlock(&extender->lock);
}

/* Less than the least is there: waited for. */
static enum status extend_now(struct journal *journal, uint64_t to) {
  struct extender *extender = journal->extender;
  if (extender == NULL) return file_extend(journal, to);
  (void)pthread_mutex_lock(&extender->lock);
  while (extender->busy) (void)pthread_cond_wait(&extender->changed, &extender->lock);
  enum status status = to <= journal->file_bytes ? STATUS_OK : extend_alone(extender, to);
  (void)pthread_mutex_unlock(&extender->lock);
  return status;
}

/* ---- the caller ---- */

bool journal_fits(const struct journal *journal, uint64_t bytes) {
  uint64_t end;
  return !journal->read_only && room_end(journal, bytes, &end) && end <= journal->file_bytes && end <= journal->map_bytes;
}

enum status journal_reserve(struct journal *journal, uint64_t bytes) {
  must(!journal->read_only);
  if (journal->poisoned) return STATUS_IO_ERROR;
  uint64_t needed, least, wanted;
  if (!room_end(journal, bytes, &needed) || __builtin_add_overflow(needed, journal->reserve_bytes / 2, &least) ||
      __builtin_add_overflow(needed, journal->reserve_bytes, &wanted) || least > journal->map_bytes)
    return STATUS_NO_SPACE;
  if (wanted > journal->map_bytes) wanted = journal->map_bytes;
  uint64_t now = journal->file_bytes;
  if (now >= wanted) return STATUS_OK;
  uint64_t from = now < least ? least - 1 : now;
  uint64_t to = (from / log_reserve_chunk_bytes + 1) * log_reserve_chunk_bytes;
  if (to > journal->map_bytes) to = journal->map_bytes;
  if (now >= least && journal->extender != NULL && journal->extender->threaded) {
    ask_for_room(journal->extender, to);
    return STATUS_OK;
  }
  enum status status = extend_now(journal, to);
  return status == STATUS_NO_SPACE && now >= least ? STATUS_OK : status;
}
