/* orbit-replay: the log, read offline. Never writes to what it reads. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/replay.h"

const char *argp_program_version = "orbit-replay " ORBIT_VERSION;

static const struct row {
  const char *name;
  subcommand *run;
  const char *argument; /* NULL: none */
  const char *help;
} rows[] = {
    {"state", replay_state, "TASK", "a task as it stood at --at, as the API shows it"},
    {"queues", replay_queues, NULL, "the queues and their counts at --at"},
    {"diff", replay_diff, NULL, "the tasks that changed between --from and --to"},
    {"stats", replay_stats, NULL, "what the log is made of"},
    {"salvage", replay_salvage, "OUT", "the sound commits of a damaged log, written to the new data directory OUT"},
    {"backup", replay_backup, "OUT", "a consistent copy in the new directory OUT, beside a running server too"},
    {"rebuild", replay_rebuild, "DIR", "the views made from the log alone, in the new directory DIR"},
    {"verify", replay_verify, NULL, "judge the whole log: chain, transitions, decisions, invariants"},
};
enum { row_count = sizeof rows / sizeof rows[0] };

enum { key_data = 1000, key_at, key_from, key_to, key_chain_only };

static const struct argp_option options[] = {
    {"data", key_data, "DIR", 0, "data directory or backup (ORBIT_DATA)", 0},
    {"at", key_at, "SEQ|TIME", 0, "position: a sequence number or an RFC 3339 time; without it, the end", 0},
    {"from", key_from, "SEQ|TIME", 0, "diff: from this position", 0},
    {"to", key_to, "SEQ|TIME", 0, "diff: to this position; without it, the end", 0},
    {"chain-only", key_chain_only, NULL, 0, "verify: chain and order alone, in bounded memory", 0},
    {"output", 'o', "FORMAT", 0, "text, json, jsonl or csv", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static bool parse_output(const char *text, enum output *ret_output) {
  static const char *const names[] = {"", "text", "json", "jsonl", "csv"};
  for (unsigned i = OUTPUT_TEXT; i <= OUTPUT_CSV; i++) {
    if (strcmp(names[i], text) != 0) continue;
    *ret_output = (enum output)i;
    return true;
  }
  return false;
}

static void take_position(struct argp_state *state, const char *name, const char *text, struct position *position) {
  if (!position_parse(text, position)) argp_error(state, "%s: \"%s\" is neither a sequence number nor a time", name, text);
}

struct parsing {
  struct request request;
  const struct row *row;
};

static error_t take(int key, char *argument, struct argp_state *state) {
  struct parsing *parsing = state->input;
  struct request *request = &parsing->request;
  switch (key) {
    case key_data:
      request->data = argument;
      break;
    case key_at:
      take_position(state, "--at", argument, &request->at);
      break;
    case key_from:
      take_position(state, "--from", argument, &request->from);
      break;
    case key_to:
      take_position(state, "--to", argument, &request->to);
      break;
    case key_chain_only:
      request->chain_only = true;
      break;
    case 'o':
      if (!parse_output(argument, &request->output)) argp_error(state, "-o is text, json, jsonl or csv");
      break;
    case ARGP_KEY_ARG:
      for (unsigned i = 0; i < row_count && parsing->row == NULL; i++)
        if (strcmp(rows[i].name, argument) == 0) {
          parsing->row = &rows[i];
          return 0;
        }
      if (parsing->row == NULL) argp_error(state, "there is no command \"%s\"", argument);
      if (parsing->row->argument == NULL || request->argument != NULL)
        argp_error(state, "unexpected argument \"%s\"", argument);
      request->argument = argument;
      break;
    case ARGP_KEY_END:
      if (parsing->row == NULL) argp_error(state, "say which command");
      if (parsing->row->argument != NULL && request->argument == NULL)
        argp_error(state, "%s needs %s", parsing->row->name, parsing->row->argument);
      if (request->data == NULL) argp_error(state, "--data DIR is missing");
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static void describe(char *out, size_t size) {
  size_t used = (size_t)snprintf(out, size, "Read an Orbit log offline; safe beside a running server.\v");
  for (unsigned i = 0; i < row_count; i++)
    used += (size_t)snprintf(out + used, size - used, "  %-8s %-6s %s\n", rows[i].name,
                             rows[i].argument != NULL ? rows[i].argument : "", rows[i].help);
  (void)snprintf(out + used, size - used, "\nExit codes: 0 done, 1 a finding, 2 misuse, 3 could not run.");
}

int main(int argc, char **argv) {
  char text[2048];
  describe(text, sizeof text);
  struct argp argp = {options, take, "COMMAND [ARGUMENT]", text, NULL, NULL, NULL};
  struct parsing parsing = {.request = {.data = getenv("ORBIT_DATA"), .output = OUTPUT_TEXT}};
  argp_err_exit_status = exit_misuse;
  (void)argp_parse(&argp, argc, argv, 0, NULL, &parsing);
  int code = parsing.row->run(&parsing.request);
  if (fflush(stdout) != 0) return exit_cannot_run;
  return code;
}
