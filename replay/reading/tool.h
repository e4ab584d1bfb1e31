/* What the offline tools share at the terminal: exit codes, messages, progress, output formats. */
#ifndef ORBIT_REPLAY_TOOL_H
#define ORBIT_REPLAY_TOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { exit_done = 0, exit_finding = 1, exit_misuse = 2, exit_cannot_run = 3 };

/* "PROGRAM: …" on stderr; returns code. */
int tool_say(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Progress of long work on stderr: a bar with rate and time left on a terminal, a line every ten seconds else. */
struct progress {
  const char *what; /* "events" */
  uint64_t total;   /* 0: unknown */
  int64_t started_us, shown_us;
  int64_t interval_us; /* between two that are shown */
  bool terminal;
};
void progress_begin(struct progress *progress, const char *what, uint64_t total);
void progress_at(struct progress *progress, uint64_t done); /* cheap; call as often as you like, every few thousand steps */
void progress_end(struct progress *progress);               /* takes the bar away */

/* Writes all of it to stdout, spelled out where that is a terminal. False when that fails: says why, but that a closed pipe
 * ends the work quietly. */
bool tool_print(struct bytes text);

#endif
