/* orbitctl: people at a terminal, and scripts. */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "ctl.h"
#include "print.h"

const char *argp_program_version = "orbitctl " ORBIT_VERSION;

static const struct ctl_command commands[] = {
    {"init", ctl_init, "make a data directory with its first credentials (offline)"},
    {"task", ctl_task, "submit, look at, follow, cancel, review and retry tasks"},
    {"why", ctl_why, "say why a task is not running"},
    {"queue", ctl_queue, "make, show, change, pause and resume queues"},
    {"top", ctl_top, "the queues as they change, those that need eyes first"},
    {"schedule", ctl_schedule, "make, show, change, pause, resume, delete and preview schedules"},
    {"application", ctl_application, "make, show and change applications"},
    {"credential", ctl_credential, "make, show, rotate and revoke credentials"},
    {"namespace", ctl_namespace, "make namespaces (root)"},
    {"audit", ctl_audit, "administrative operations"},
    {"events", ctl_events, "what happens to tasks and queues, as it happens"},
    {"subscription", ctl_subscription, "make, read, move and delete durable cursors over the events"},
    {"demo", ctl_demo, "the whole story in one command, drawn as a timeline"},
    {NULL, NULL, NULL},
};

int ctl_say(int code, const char *format, ...) {
  cleanup(guard_free) char *text = NULL;
  cleanup(buffer_clear) struct buffer line;
  va_list arguments;
  va_start(arguments, format);
  int size = vasprintf(&text, format, arguments);
  va_end(arguments);
  buffer_init(&line, SIZE_MAX);
  buffer_append_text(&line, "orbitctl: ");
  /* A server, or somebody's file, may have had a hand in the words; the ends of lines are ours. */
  for (const char *at = text; size >= 0 && *at != '\0';) {
    size_t part = strcspn(at, "\n");
    print_visible(&line, bytes_of(at, part));
    at += part;
    if (*at == '\n') buffer_append_char(&line, *at++);
  }
  buffer_append_char(&line, '\n');
  (void)fwrite(line.data, 1, line.size, stderr);
  return code;
}

uint64_t ctl_number(const struct argp_state *state, const char *option, const char *text, uint64_t min, uint64_t max) {
  char *end;
  errno = 0;
  uint64_t value = strtoull(text, &end, 10);
  if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || value < min || value > max)
    argp_error(state, "--%s \"%s\": a whole number from %" PRIu64 " to %" PRIu64, option, text, min, max);
  return value;
}

static void list(FILE *out, const struct ctl_command *rows, const char *program) {
  (void)fprintf(out, "Usage: %s COMMAND …\n\n", program);
  for (; rows->name != NULL; rows++) (void)fprintf(out, "  %-12s %s\n", rows->name, rows->help);
  (void)fprintf(out, "\n%s COMMAND --help tells more. Exit codes: 0 done, 1 refused, 2 misuse, 3 could not run.\n", program);
}

int ctl_dispatch(const struct ctl_command *rows, const char *program, int argc, char **argv) {
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    list(stdout, rows, program);
    return exit_done;
  }
  if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
    (void)printf("%s\n", argp_program_version);
    return exit_done;
  }
  for (const struct ctl_command *row = rows; argc > 1 && row->name != NULL; row++) {
    char name[128];
    if (strcmp(row->name, argv[1]) != 0) continue;
    (void)snprintf(name, sizeof name, "%s %s", program, row->name);
    argv[1] = name;
    return row->run(argc - 1, argv + 1);
  }
  if (argc > 1) (void)ctl_say(exit_misuse, "there is no command \"%s %s\"", program, argv[1]);
  list(stderr, rows, program);
  return exit_misuse;
}

int main(int argc, char **argv) {
  argp_err_exit_status = exit_misuse;
  (void)setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of characters alone */
  if (sodium_init() < 0) return ctl_say(exit_cannot_run, "the kernel's random numbers cannot be had");
  int code = ctl_dispatch(commands, "orbitctl", argc, argv);
  errno = 0;
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return code;
  return ctl_say(exit_cannot_run, "stdout cannot be written: %s", strerror(errno != 0 ? errno : EIO));
}
