/* Owns the start's reading of the log. */
#include "orbitd/replay.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/clock.h"

enum { progress_every = 4096, progress_us = 100000 };

struct replay {
  struct edge *edge;
  struct state *state;
  uint64_t total;
  int64_t started_us, shown_us;
  bool terminal;
};

/* ---- damaged pages: liblmdb trusts what it reads ---- */

static void put_text(char *line, size_t *size, const char *text) {
  while (*text != 0 && *size < 400) line[(*size)++] = *text++;
}

static void on_damage(int signal_number) {
  char line[512], digits[20];
  size_t size = 0, count = u64_format(journal_progress_seq(), digits);
  put_text(line, &size, "orbitd: the log's pages are damaged; the last event that was read soundly is seq ");
  for (size_t i = 0; i < count; i++) line[size++] = digits[i];
  put_text(line, &size, "; nothing was changed: keep a copy of the data directory, and start from a backup of it\n");
  ssize_t written = write(STDERR_FILENO, line, size);
  (void)written, (void)signal_number;
  _exit(3);
}

static const int damage_signals[] = {SIGSEGV, SIGBUS, SIGABRT};
enum { damage_count = sizeof damage_signals / sizeof damage_signals[0] };

static void guard_pages(struct sigaction before[damage_count]) {
  struct sigaction action = {.sa_handler = on_damage, .sa_flags = (int)SA_RESETHAND};
  for (unsigned i = 0; i < damage_count; i++) (void)sigaction(damage_signals[i], &action, &before[i]);
}

static void unguard_pages(const struct sigaction before[damage_count]) {
  for (unsigned i = 0; i < damage_count; i++) (void)sigaction(damage_signals[i], &before[i], NULL);
}

/* ---- progress ---- */

static void show_progress(struct replay *replay, uint64_t seq) {
  enum { bar_width = 30 };
  int64_t now = clock_monotonic_us();
  uint64_t permille = replay->total != 0 ? seq * 1000 / replay->total : 1000;
  atomic_store(&replay->edge->replay_permille, (uint32_t)permille);
  if (!replay->terminal || now - replay->shown_us < progress_us) return;
  replay->shown_us = now;
  double seconds = (double)(now - replay->started_us) / 1e6, rate = seconds > 0 ? (double)seq / seconds : 0;
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
  if (!state_can_apply(replay->state, event, &reason))
    return fault_set(fault, STATUS_CORRUPT, NULL, "event %" PRIu64 " (%s) does not fit what is before it: %s", event->seq,
                     event_type_text(event->type), reason);
  state_apply(replay->state, event);
  if (event->seq % progress_every == 0) show_progress(replay, event->seq);
  return STATUS_OK;
}

enum status replay_log(struct edge *edge, struct journal *journal, struct state **ret_state, struct fault *fault) {
  struct replay replay = {.edge = edge,
                          .state = state_new(),
                          .total = journal_last_seq(journal),
                          .started_us = clock_monotonic_us(),
                          .terminal = isatty(STDERR_FILENO) == 1};
  struct sigaction before[damage_count];
  guard_pages(before);
  enum status status = journal_replay(journal, 0, 0, visit, &replay, fault);
  if (replay.terminal && replay.shown_us != 0) (void)fputs("\r\033[K", stderr);
  if (status == STATUS_OK) status = state_check(replay.state, fault);
  unguard_pages(before);
  if (status != STATUS_OK) {
    state_free(replay.state);
    return status;
  }
  char events[24], us[24];
  (void)snprintf(events, sizeof events, "%" PRIu64, replay.total);
  (void)snprintf(us, sizeof us, "%.3f", (double)(clock_monotonic_us() - replay.started_us) / 1e6);
  log_line(&edge->log, LOG_INFO, "log replayed", "events", events, "seconds", us, NULL);
  atomic_store(&edge->replay_permille, 1000);
  *ret_state = replay.state;
  return STATUS_OK;
}
