/* What the task commands share. */
#ifndef ORBIT_TOOLS_CTL_TASK_H
#define ORBIT_TOOLS_CTL_TASK_H

#include "ctl.h"
#include "online.h"

enum { task_path_bytes = 128 };

/* The columns of a task and of an attempt. */
extern const struct print_column task_columns[], attempt_columns[];
extern const unsigned task_column_count, attempt_column_count;

/* Options of the commands that take nothing but a task's id. */
struct task_options {
  struct online online;
  const char *task_id;
};

/* Takes the one argument TASK into *ret_task_id: for ARGP_KEY_ARG and ARGP_KEY_END. Ends the program on misuse. */
void task_take_argument(struct argp_state *state, int key, const char *argument, const char **ret_task_id);

#endif
