/* Owns messages and progress. */
#include "reading/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reading/out.h"

int tool_say(int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)fprintf(stderr, "%s: ", program_invocation_short_name);
  (void)vfprintf(stderr, format, arguments);
  (void)fputc('\n', stderr);
  va_end(arguments);
  return code;
}

static int64_t monotonic_us(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

enum { bar_interval_us = 100000, line_interval_us = 10000000, bar_width = 30 };

void progress_begin(struct progress *progress, const char *what, uint64_t total) {
  int64_t now = monotonic_us();
  bool terminal = isatty(STDERR_FILENO) == 1;
  *progress = (struct progress){what, total, now, now, terminal ? bar_interval_us : line_interval_us, terminal};
}

void progress_at(struct progress *progress, uint64_t done) {
  int64_t now = monotonic_us();
  if (now - progress->shown_us < progress->interval_us) return;
  progress->shown_us = now;
  double seconds = (double)(now - progress->started_us) / 1e6, rate = (double)done / seconds;
  double left = progress->total > done && rate > 0 ? (double)(progress->total - done) / rate : 0;
  unsigned percent = progress->total != 0 ? (unsigned)(done * 100 / progress->total) : 0;
  if (!progress->terminal) {
    (void)fprintf(stderr, "%" PRIu64 " of %" PRIu64 " %s, %u%%, %.0f/s, %.0f s left\n", done, progress->total, progress->what,
                  percent, rate, left);
    return;
  }
  char bar[bar_width + 1];
  for (unsigned i = 0; i < bar_width; i++) bar[i] = i * 100 < percent * bar_width ? '#' : '.';
  bar[bar_width] = 0;
  (void)fprintf(stderr, "\r[%s] %3u%%  %.0f %s/s  %.0f s left ", bar, percent, rate, progress->what, left);
}

void progress_end(struct progress *progress) {
  if (progress->terminal && progress->shown_us != progress->started_us) (void)fputs("\r\033[K", stderr);
}

bool tool_print(struct bytes text) {
  struct buffer all;
  buffer_init(&all, SIZE_MAX);
  buffer_append_bytes(&all, text);
  if (isatty(STDOUT_FILENO) == 1) spell_out(&all);
  errno = 0;
  bool written = !all.failed && fwrite(all.data, 1, all.size, stdout) == all.size && fflush(stdout) == 0;
  if (!written && errno != EPIPE) (void)tool_say(0, "cannot write to stdout: %s", strerror(errno != 0 ? errno : ENOMEM));
  buffer_clear(&all);
  return written;
}
