/* Log lines: one JSON object a line on stderr, text when stderr is a terminal (README "Logs"). Never a token, never a payload.
 */
#ifndef ORBIT_EDGE_LOG_H
#define ORBIT_EDGE_LOG_H

#include <stdbool.h>

enum log_level { LOG_DEBUG = 0, LOG_INFO, LOG_WARNING, LOG_ERROR };

/* A value: shared by all threads, set up once by main. */
struct log {
  bool json;
  bool colour;          /* text only */
  enum log_level level; /* what lies below is left out */
};

/* Reads NO_COLOR and whether stderr is a terminal. format: "json", "text" or "auto". */
void log_init(struct log *log, const char *format);

/* One line: message, then pairs of name and text, ended by NULL: log_line(log, LOG_INFO, "replayed", "events", text, NULL).
 * Written with one write(2), so that lines of threads do not mix; cut at 4 KiB. */
void log_line(const struct log *log, enum log_level level, const char *message, ...) __attribute__((sentinel));

#endif
