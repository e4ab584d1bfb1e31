/* Owns the start's reading of the log. */
#include "orbitd/replay.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "engine/clock.h"
#include "journal/views_store.h"
#include "orbitd/follower.h"
#include "state/evict.h"

enum { progress_every = 4096, progress_us = 100000, stop_every = 256 };

/* What one event of the log may make memory grow by, at the most. */
enum { event_memory_bytes = 512 };

struct replay {
  struct edge *edge;
  struct journal *journal;
  const struct replay_options *options;
  struct checkpoint *checkpoint; /* open and lent; NULL: not open */
  struct state *state;
  uint64_t from; /* events that the checkpoint held */
  uint64_t total;
  int64_t started_us, shown_us;
  bool terminal;
};

/* ---- damaged pages: liblmdb trusts what it reads ---- */

static void put_text(char *line, size_t *size, const char *text) {
  while (*text != 0 && *size < 400) line[(*size)++] = *text++;
}

/* The checkpoint's file, from its load to the end of the process: read by a signal handler, so it has no owner but the process.
 */
static char *volatile checkpoint_file;
static volatile bool serving; /* the log has been read */

enum { damage_count = 3 };
static const int damage_signals[damage_count] = {SIGSEGV, SIGBUS, SIGABRT};
static struct sigaction before_damage[damage_count];

static void on_damaged_checkpoint(const char *file) {
  char line[512];
  size_t size = 0;
  put_text(line, &size, "orbitd: the pages of ");
  put_text(line, &size, file);
  put_text(line, &size,
           unlink(file) == 0 ? " are damaged; it was deleted, the log is untouched: start again\n"
                             : " are damaged: delete it and start again; the log is untouched\n");
  ssize_t written = write(STDERR_FILENO, line, size);
  (void)written;
  _exit(3);
}

static void on_damage(int signal_number) {
  char line[512], digits[20];
  if (checkpoint_file != NULL && views_are_open_here()) on_damaged_checkpoint(checkpoint_file);
  if (serving) { /* none of our business: as if nobody had listened */
    for (unsigned i = 0; i < damage_count; i++) (void)sigaction(damage_signals[i], &before_damage[i], NULL);
    (void)raise(signal_number);
    return;
  }
  size_t size = 0, count = u64_format(journal_progress_seq(), digits);
  put_text(line, &size, "orbitd: the log's pages are damaged; the last event that was read soundly is seq ");
  for (size_t i = 0; i < count; i++) line[size++] = digits[i];
  put_text(line, &size, "; nothing was changed: keep a copy of the data directory, and start from a backup of it\n");
  ssize_t written = write(STDERR_FILENO, line, size);
  (void)written;
  _exit(3);
}

static void damage_guard(void) {
  struct sigaction action = {.sa_handler = on_damage, .sa_flags = (int)SA_RESETHAND};
  for (unsigned i = 0; i < damage_count; i++) (void)sigaction(damage_signals[i], &action, &before_damage[i]);
}

/* ---- being told to stop ---- */

/* The signals that stop the server are blocked: one that comes during a long replay waits, and is seen here. */
bool replay_stop_is_asked(void) {
  sigset_t waiting;
  return sigpending(&waiting) == 0 && (sigismember(&waiting, SIGTERM) == 1 || sigismember(&waiting, SIGINT) == 1);
}

static enum status heed_stop(struct fault *fault) {
  if (!replay_stop_is_asked()) return STATUS_OK;
  return fault_set(fault, STATUS_UNAVAILABLE, NULL, "told to stop while the log was read");
}

/* ---- progress ---- */

static void show_progress(struct replay *replay, uint64_t seq) {
  enum { bar_width = 30 };
  int64_t now = clock_monotonic_us();
  uint64_t permille = replay->total != 0 ? seq * 1000 / replay->total : 1000;
  atomic_store(&replay->edge->replay_permille, (uint32_t)permille);
  if (!replay->terminal || now - replay->shown_us < progress_us) return;
  replay->shown_us = now;
  double seconds = (double)(now - replay->started_us) / 1e6, rate = seconds > 0 ? (double)(seq - replay->from) / seconds : 0;
  char bar[bar_width + 1];
  for (int i = 0; i < bar_width; i++) bar[i] = (uint64_t)i * 1000 < permille * bar_width ? '#' : '.';
  bar[bar_width] = 0;
  (void)fprintf(stderr, "\r[%s] %3" PRIu64 "%%  %.0f events/s  %.0f s left ", bar, permille / 10, rate,
                rate > 0 ? (double)(replay->total - seq) / rate : 0);
}

/* ---- folding ---- */

static enum status visit(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct replay *replay = context;
  const char *reason = "";
  (void)record;
  if (state_meet(replay->state, event) != STATUS_OK)
    return fault_set(fault, STATUS_CORRUPT, NULL, "the row of the task of event %" PRIu64 " cannot be read", event->seq);
  state_close_cold(replay->state);
  if (!state_fold(replay->state, event, &reason))
    return fault_set(fault, STATUS_CORRUPT, NULL, "event %" PRIu64 " (%s) does not fit what is before it: %s", event->seq,
                     event_type_text(event->type), reason);
  if (event->seq % progress_every == 0) show_progress(replay, event->seq);
  return event->seq % stop_every != 0 ? STATUS_OK : heed_stop(fault);
}

static void glance(void *context, const struct event *event, bool near) {
  const struct replay *replay = context;
  state_glance(replay->state, event, near);
}

static enum status fold_rest(struct replay *replay, struct checkpoint_position from, struct fault *fault) {
  replay->from = from.seq;
  replay->started_us = clock_monotonic_us();
  enum status status = journal_replay_ahead(replay->journal, from.seq, from.chain, visit, glance, replay, fault);
  if (replay->terminal && replay->shown_us != 0) (void)fputs("\r\033[K", stderr);
  return status == STATUS_OK ? state_check(replay->state, fault) : status;
}

/* ---- from the checkpoint ---- */

static void say_ignored(const struct replay *replay, const struct fault *fault) {
  if (fault->status == STATUS_UNAVAILABLE && replay_stop_is_asked()) return;
  log_line(&replay->edge->log, LOG_WARNING, "checkpoint ignored", "reason", fault->message, NULL);
}

static void put_away(struct replay *replay) {
  if (replay->checkpoint != NULL) cold_withdraw(replay->options->cold);
  checkpoint_close(replay->checkpoint);
  replay->checkpoint = NULL;
}

static enum status open_checkpoint(struct replay *replay, const char *path, struct fault *fault) {
  return checkpoint_open(path, replay->options->map_bytes, replay->journal, &replay->checkpoint, fault);
}

/* So much is not in the checkpoint that memory might not hold it: it is followed there first, however long that takes. */
static enum status catch_up(struct replay *replay, const char *path, struct fault *fault) {
  uint64_t memory_max = replay->options->memory_max, events = 1;
  if (memory_max == 0 || replay->total < memory_max / event_memory_bytes) return STATUS_OK;
  enum status status = open_checkpoint(replay, path, fault);
  if (status == STATUS_CORRUPT || status == STATUS_FOREIGN) {
    log_line(&replay->edge->log, LOG_WARNING, "checkpoint made anew", "reason", fault->message, NULL);
    (void)checkpoint_remove(path);
    status = open_checkpoint(replay, path, fault);
  }
  if (status == STATUS_OK) replay->from = checkpoint_seq(replay->checkpoint);
  replay->started_us = clock_monotonic_us();
  while (status == STATUS_OK && events != 0 &&
         replay->total - checkpoint_seq(replay->checkpoint) >= memory_max / event_memory_bytes) {
    status = checkpoint_follow(replay->checkpoint, checkpoint_batch_events, &events, fault);
    if (status == STATUS_OK) status = checkpoint_index(replay->checkpoint, checkpoint_index_receipts, 0, fault);
    if (status == STATUS_OK) show_progress(replay, checkpoint_seq(replay->checkpoint));
    if (status == STATUS_OK) status = heed_stop(fault);
  }
  if (status == STATUS_OK) status = checkpoint_index(replay->checkpoint, memory_max / event_memory_bytes, 0, fault);
  put_away(replay);
  return status;
}

static enum status load(struct replay *replay, const char *path, struct checkpoint_position *ret_from, struct fault *fault) {
  enum status status = catch_up(replay, path, fault);
  if (status == STATUS_OK) status = checkpoint_load(path, replay->journal, &replay->state, ret_from, fault);
  if (status != STATUS_OK) return status;
  state_set_cold(replay->state, replay->options->cold);
  status = open_checkpoint(replay, path, fault);
  if (status == STATUS_OK) status = checkpoint_lend(replay->checkpoint, replay->options->cold, fault);
  if (status != STATUS_OK) state_free(replay->state);
  return status;
}

/* False: the whole log must be folded, into a state of its own. */
static bool from_checkpoint(struct replay *replay, const char *path) {
  struct fault fault = {0};
  struct checkpoint_position from;
  int64_t started_us = clock_monotonic_us();
  enum status status = load(replay, path, &from, &fault);
  if (status == STATUS_OK) {
    char seq[24], seconds[24];
    (void)snprintf(seq, sizeof seq, "%" PRIu64, from.seq);
    (void)snprintf(seconds, sizeof seconds, "%.3f", (double)(clock_monotonic_us() - started_us) / 1e6);
    log_line(&replay->edge->log, LOG_INFO, "checkpoint loaded", "seq", seq, "seconds", seconds, NULL);
    status = fold_rest(replay, from, &fault);
    if (status == STATUS_OK) return true;
    state_free(replay->state);
  }
  put_away(replay);
  if (status == STATUS_NOT_FOUND) return false;
  say_ignored(replay, &fault);
  if (status == STATUS_CORRUPT || status == STATUS_FOREIGN) (void)checkpoint_remove(path);
  return false;
}

/* ---- coming up ---- */

enum status replay_log(struct edge *edge, struct journal *journal, const struct replay_options *options,
                       struct state **ret_state, struct checkpoint **ret_checkpoint, struct fault *fault) {
  struct replay replay = {.edge = edge,
                          .journal = journal,
                          .options = options,
                          .total = journal_last_seq(journal),
                          .terminal = isatty(STDERR_FILENO) == 1};
  cleanup(guard_free) char *path = options->data_directory != NULL ? views_path(options->data_directory) : NULL;
  enum status status = STATUS_OK;
  int64_t started_us = clock_monotonic_us();
  if (path != NULL) {
    char *file;
    if (asprintf(&file, "%s/data.mdb", path) < 0) return fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
    checkpoint_file = file;
  }
  damage_guard();
  if (path == NULL || !from_checkpoint(&replay, path)) {
    replay.state = state_new();
    status = fold_rest(&replay, (struct checkpoint_position){0, 0}, fault);
    if (path != NULL) state_set_cold(replay.state, options->cold);
  }
  serving = true;
  if (status != STATUS_OK) {
    state_free(replay.state);
    return status;
  }
  char events[24], us[24];
  (void)snprintf(events, sizeof events, "%" PRIu64, replay.total - replay.from);
  (void)snprintf(us, sizeof us, "%.3f", (double)(clock_monotonic_us() - started_us) / 1e6);
  log_line(&edge->log, LOG_INFO, "log replayed", "events", events, "seconds", us, NULL);
  atomic_store(&edge->replay_permille, 1000);
  *ret_state = replay.state;
  *ret_checkpoint = replay.checkpoint;
  return STATUS_OK;
}
