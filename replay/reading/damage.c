/* Owns the handler of damaged pages. It may only write and leave. */
#include "reading/damage.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "reading/tool.h"

static void on_damage(int signal_number) {
  static const char text[] =
      ": the log's pages are damaged, or this program has a defect; nothing was changed: keep a copy of the data directory and run "
      "orbit-replay verify, then salvage\n";
  ssize_t written = write(STDERR_FILENO, program_invocation_short_name, strlen(program_invocation_short_name));
  written = write(STDERR_FILENO, text, sizeof text - 1);
  (void)written, (void)signal_number;
  _exit(exit_cannot_run);
}

void damage_guard(void) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT};
  struct sigaction action = {.sa_handler = on_damage, .sa_flags = (int)SA_RESETHAND};
  for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) (void)sigaction(signals[i], &action, NULL);
}
