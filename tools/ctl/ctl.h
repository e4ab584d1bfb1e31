/* What the subcommands of orbitctl share: exit codes, dispatch, messages. */
#ifndef ORBIT_TOOLS_CTL_H
#define ORBIT_TOOLS_CTL_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

enum { exit_done = 0, exit_refused = 1, exit_misuse = 2, exit_cannot_run = 3 };

/* A subcommand: argv[0] is its full name for messages ("orbitctl init"). Returns an exit code. */
typedef int ctl_run(int argc, char **argv);

struct ctl_command {
  const char *name;
  ctl_run *run;
  const char *help; /* one line */
};

/* Finds argv[1] among the rows (ended by a NULL name) and runs it with the rest; prints the list for --help, and what there is
 * on misuse. */
int ctl_dispatch(const struct ctl_command *commands, const char *program, int argc, char **argv);

/* "orbitctl: …" on stderr; returns code. */
int ctl_say(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A decimal number from min to max; anything else is misuse: says so, naming the option, and ends the program. */
uint64_t ctl_number(const struct argp_state *state, const char *option, const char *text, uint64_t min, uint64_t max);

ctl_run ctl_init, ctl_task, ctl_queue, ctl_application, ctl_credential, ctl_namespace, ctl_audit, ctl_why, ctl_demo;
ctl_run ctl_events, ctl_top, ctl_subscription, ctl_schedule;
ctl_run ctl_task_submit, ctl_task_get, ctl_task_attempts, ctl_task_watch;
/* tables.c: the task commands that are one request each, told apart by the last word of argv[0]. */
ctl_run ctl_task_remote;

#endif
