/* orbit-replay: the log, read offline. Never writes to what it reads. */
#include <argp.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>

#include "replay/replay.h"

const char *argp_program_version = "orbit-replay " ORBIT_VERSION;

enum {
  COMMAND_STATE,
  COMMAND_QUEUES,
  COMMAND_DIFF,
  COMMAND_STATS,
  COMMAND_VERIFY,
  COMMAND_REBUILD,
  COMMAND_BACKUP,
  COMMAND_SALVAGE,
  COMMAND_COUNT
};

static const struct cli_command commands[COMMAND_COUNT] = {
    [COMMAND_STATE] = {"state", "TASK", true, true, "a task as it stood at --at; with -o json as the API shows it"},
    [COMMAND_QUEUES] = {"queues", NULL, false, true, "the queues and their counts at --at"},
    [COMMAND_DIFF] = {"diff", NULL, false, true, "the tasks that changed between --from and --to"},
    [COMMAND_STATS] = {"stats", NULL, false, true, "what the log is made of"},
    [COMMAND_VERIFY] = {"verify", NULL, false, true,
                        "judge the whole log: chain, transitions, decisions, invariants, receipts, checkpoint"},
    [COMMAND_REBUILD] = {"rebuild", "DIR", true, true, "the views made from the log alone, in the new directory DIR"},
    [COMMAND_BACKUP] = {"backup", "OUT", true, true, "a consistent copy in the new directory OUT, beside a running server too"},
    [COMMAND_SALVAGE] = {"salvage", "OUT", true, true, "the sound commits of a damaged log, in the new data directory OUT"},
};
static subcommand *const runs[COMMAND_COUNT] = {
    [COMMAND_STATE] = replay_state,   [COMMAND_QUEUES] = replay_queues,   [COMMAND_DIFF] = replay_diff,
    [COMMAND_STATS] = replay_stats,   [COMMAND_VERIFY] = replay_verify,   [COMMAND_REBUILD] = replay_rebuild,
    [COMMAND_BACKUP] = replay_backup, [COMMAND_SALVAGE] = replay_salvage,
};

enum { key_at = 1000, key_from, key_to, key_chain_only };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Where:", 1},
    {NULL, 0, NULL, 0, "When:", 2},
    {"at", key_at, "SEQ|TIME", 0, "state, queues: this position; without it, the end", 2},
    {"from", key_from, "SEQ|TIME", 0, "diff: from this position", 2},
    {"to", key_to, "SEQ|TIME", 0, "diff: to this position; without it, the end", 2},
    {NULL, 0, NULL, 0, "How:", 3},
    {"chain-only", key_chain_only, NULL, 0, "verify: chain and order alone, in bounded memory", 3},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct parsing {
  struct request request;
  const char *at, *from, *to; /* read at the end: --local may stand behind them */
};

static error_t take(int key, char *argument, struct argp_state *state) {
  struct parsing *parsing = state->input;
  struct request *request = &parsing->request;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &request->cli;
      break;
    case key_at:
      parsing->at = argument;
      break;
    case key_from:
      parsing->from = argument;
      break;
    case key_to:
      parsing->to = argument;
      break;
    case key_chain_only:
      request->chain_only = true;
      break;
    case ARGP_KEY_END:
      cli_take_position(state, "--at", parsing->at, request->cli.local, &request->at);
      cli_take_position(state, "--from", parsing->from, request->cli.local, &request->from);
      cli_take_position(state, "--to", parsing->to, request->cli.local, &request->to);
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

/* An option that the command does not know would be passed over in silence, and its answer believed. */
static int judge_options(const struct request *request) {
  unsigned command = request->cli.command;
  if (request->at.given && command != COMMAND_STATE && command != COMMAND_QUEUES)
    return tool_say(exit_misuse, "--at belongs to state and queues");
  if ((request->from.given || request->to.given) && command != COMMAND_DIFF)
    return tool_say(exit_misuse, "--from and --to belong to diff");
  if (request->chain_only && command != COMMAND_VERIFY) return tool_say(exit_misuse, "--chain-only belongs to verify");
  return exit_done;
}

int main(int argc, char **argv) {
  static const struct argp_child children[] = {{&cli_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  struct parsing parsing = {.at = NULL};
  struct cli *cli = &parsing.request.cli;
  struct buffer text;
  cli_init(cli, commands, COMMAND_COUNT, OUTPUT_CSV);
  buffer_init(&text, SIZE_MAX);
  cli_describe(cli, "Read an Orbit log offline; safe beside a running server.",
               "SEQ is a sequence number of the log. TIME is 2026-09-17T03:12:04Z, \"2026-09-17 03:12\", 03:12, now, today, "
               "yesterday, -2h, \"1 hour ago\" or @SECONDS, and means the last event at or before it; in UTC unless it names a "
               "zone or --local is given.",
               &text);
  struct argp argp = {options, take, "COMMAND [ARGUMENT]", (const char *)text.data, children, NULL, NULL};
  (void)setlocale(LC_CTYPE, "");
  argp_err_exit_status = exit_misuse;
  (void)argp_parse(&argp, argc, argv, 0, NULL, &parsing);
  (void)signal(SIGPIPE, SIG_IGN);
  int code = judge_options(&parsing.request);
  if (code == exit_done) code = runs[cli->command](&parsing.request);
  buffer_clear(&text);
  return fflush(stdout) == 0 || errno == EPIPE ? code : exit_cannot_run;
}
