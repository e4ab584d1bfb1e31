/* Owns the form of log lines. */
#include "edge/log.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time_text.h"
#include "codec/json.h"
#include "engine/clock.h"

static const char *const level_texts[] = {"debug", "info", "warning", "error"};
static const char *const level_colours[] = {"\033[2m", "", "\033[33m", "\033[31m"};

void log_init(struct log *log, const char *format) {
  bool terminal = isatty(STDERR_FILENO) == 1;
  log->json = strcmp(format, "json") == 0 || (strcmp(format, "text") != 0 && !terminal);
  const char *plain = getenv("NO_COLOR"), *kind = getenv("TERM");
  log->colour = terminal && (plain == NULL || plain[0] == '\0') && (kind == NULL || strcmp(kind, "dumb") != 0);
  log->level = LOG_INFO;
}

static void append_time(struct buffer *line) {
  char time[time_chars_max];
  size_t chars = time_format(time_with_text(clock_wall_us()), time); /* wherever it was set to */
  buffer_append(line, time, chars);
}

/* A line must stay valid JSON whatever is put in. */
static void append_json(struct buffer *line, const char *text) {
  struct bytes bytes = bytes_text(text);
  json_write_string(line, bytes_is_utf8(bytes) ? bytes : bytes_text("(not UTF-8)"));
}

/* A line stays a line, and leaves the terminal as it is. */
static void append_text(struct buffer *line, const char *text) {
  for (; *text != '\0'; text++) buffer_append_char(line, (unsigned char)*text < ' ' || *text == 0x7F ? '?' : *text);
}

static void begin(const struct log *log, struct buffer *line, enum log_level level, const char *message) {
  if (log->json) {
    buffer_append_text(line, "{\"time\":\"");
    append_time(line);
    buffer_append_text(line, "\",\"level\":\"");
    buffer_append_text(line, level_texts[level]);
    buffer_append_text(line, "\",\"message\":");
    append_json(line, message);
    return;
  }
  if (log->colour) buffer_append_text(line, level_colours[level]);
  append_time(line);
  buffer_append_text(line, level == LOG_ERROR ? " ERROR " : level == LOG_WARNING ? " WARNING " : " ");
  append_text(line, message);
}

static void field(const struct log *log, struct buffer *line, const char *name, const char *text) {
  buffer_append_text(line, log->json ? ",\"" : "  ");
  buffer_append_text(line, name);
  buffer_append_text(line, log->json ? "\":" : "=");
  if (log->json) append_json(line, text);
  else append_text(line, text);
}

void log_line(const struct log *log, enum log_level level, const char *message, ...) {
  if (level < log->level) return;
  struct buffer line;
  va_list arguments;
  buffer_init(&line, server_line_bytes_max);
  begin(log, &line, level, message);
  va_start(arguments, message);
  for (const char *name = va_arg(arguments, const char *); name != NULL; name = va_arg(arguments, const char *)) {
    size_t before = line.size;
    field(log, &line, name, va_arg(arguments, const char *));
    if (line.failed || line.size > server_line_bytes_max - 16) {
      line.size = before;
      line.failed = false;
    }
  }
  va_end(arguments);
  buffer_append_text(&line, log->json ? "}\n" : log->colour ? "\033[0m\n" : "\n");
  ssize_t written = write(STDERR_FILENO, line.data, line.size);
  (void)written; /* nothing can be said about a log that cannot be written */
  buffer_clear(&line);
}
