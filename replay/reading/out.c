/* Owns stdout: what is written, whether somebody still reads it, and whether it is a terminal. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reading/out.h"

#include "reading/tool.h"

enum { columns_default = 80, columns_least = 60, columns_most = 160 };

static unsigned terminal_columns(void) {
  struct winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return columns_default;
  if (size.ws_col < columns_least) return columns_least;
  return size.ws_col > columns_most ? columns_most : size.ws_col;
}

void out_begin(struct out *out) {
  const char *plain = getenv("NO_COLOR"), *kind = getenv("TERM");
  bool terminal = isatty(STDOUT_FILENO) == 1;
  *out = (struct out){.columns = terminal ? terminal_columns() : columns_default, .is_terminal = terminal};
  out->colour = terminal && (plain == NULL || plain[0] == 0) && kind != NULL && strcmp(kind, "dumb") != 0;
  buffer_init(&out->text, SIZE_MAX);
}

bool out_flush(struct out *out) {
  if (out->is_data && out->is_terminal) spell_out(&out->text);
  if (!out->failed && out->text.size != 0) {
    errno = 0;
    bool written = !out->text.failed && fwrite(out->text.data, 1, out->text.size, stdout) == out->text.size;
    if (!written || fflush(stdout) != 0) {
      out->failed = true;
      out->closed = errno == EPIPE;
      if (!out->closed) (void)tool_say(0, "cannot write to stdout: %s", strerror(errno != 0 ? errno : ENOMEM));
    }
  }
  buffer_reset(&out->text);
  return !out->failed;
}

int out_end(struct out *out, int code) {
  (void)out_flush(out);
  buffer_clear(&out->text);
  if (out->closed) return code;
  return out->failed ? exit_cannot_run : code;
}

bool out_wait(struct out *out, unsigned ms) {
  struct pollfd reader = {.fd = STDOUT_FILENO, .events = 0};
  if (poll(&reader, 1, (int)ms) > 0 && (reader.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
    out->failed = out->closed = true;
    return false;
  }
  return true;
}

const char *out_colour(const struct out *out, enum colour colour) {
  static const char *const codes[] = {"\033[0m", "\033[2m", "\033[1m", "\033[32m", "\033[31m", "\033[33m"};
  return out->colour ? codes[colour] : "";
}
