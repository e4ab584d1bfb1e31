/* What the subcommands of orbitctl share. */
#ifndef ORBIT_TOOLS_CTL_H
#define ORBIT_TOOLS_CTL_H

#include <argp.h>
#include <stdbool.h>

enum { exit_done = 0, exit_refused = 1, exit_misuse = 2, exit_cannot_run = 3 };

/* A subcommand: argv[0] is its full name for messages ("orbitctl init"). Returns an exit code. */
typedef int ctl_run(int argc, char **argv);

struct ctl_command {
  const char *name;
  ctl_run *run;
  const char *help; /* one line */
};

/* Finds argv[1] among the rows (ended by a NULL name) and runs it with the rest; prints the list for --help, and what there is on misuse. */
int ctl_dispatch(const struct ctl_command *commands, const char *program, int argc, char **argv);

/* "orbitctl: …" on stderr; returns code. */
int ctl_say(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

ctl_run ctl_init, ctl_task;

#endif
