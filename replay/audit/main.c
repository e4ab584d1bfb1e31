/* orbit-audit: the log read as evidence: who did what, when, why. Never writes to what it reads. */
#include <argp.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "reading/when.h"

const char *argp_program_version = "orbit-audit " ORBIT_VERSION;

enum { COMMAND_LOG, COMMAND_TASK, COMMAND_OPERATIONS, COMMAND_EXPORT, COMMAND_VERIFY, COMMAND_COUNT };

static const struct cli_command commands[COMMAND_COUNT] = {
    [COMMAND_LOG] = {"log", NULL, false, true, "the events, one a line"},
    [COMMAND_TASK] = {"task", "TASK", true, true,
                      "the life of one task, drawn: attempts as bars, decisions, reviews, evidence"},
    [COMMAND_OPERATIONS] = {"operations", NULL, false, true, "who did what to what, why, on what evidence"},
    [COMMAND_EXPORT] = {"export", "OUT", true, true, "events into the file or directory OUT, with a manifest"},
    [COMMAND_VERIFY] = {"verify", "OUT", false, false,
                        "judge the log's chain and that every transition has its audit record; with OUT an export against its "
                        "manifest"},
};
static subcommand *const runs[COMMAND_COUNT] = {
    [COMMAND_LOG] = audit_log,       [COMMAND_TASK] = audit_task,     [COMMAND_OPERATIONS] = audit_operations,
    [COMMAND_EXPORT] = audit_export, [COMMAND_VERIFY] = audit_verify,
};

enum {
  key_since = 1000,
  key_until,
  key_task,
  key_queue,
  key_type,
  key_actor,
  key_action,
  key_operation,
  key_grep,
  key_payload,
  key_all
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Where:", 1},
    {NULL, 0, NULL, 0, "What (log, operations, export):", 2},
    {"since", key_since, "TIME", 0, "at or after this time", 2},
    {"until", key_until, "TIME", 0, "at or before this time", 2},
    {"task", key_task, "ID", 0, "events of this task", 2},
    {"queue", key_queue, "ID", 0, "events of this queue and of its tasks", 2},
    {"type", key_type, "TYPE", 0, "events of this type; may be repeated; task.* means all that begin so", 2},
    {"actor", key_actor, "ID", 0, "what this credential or node did", 2},
    {"action", key_action, "ACTION", 0, "what is an entry of this action: task.review, queue.*", 2},
    {"operation", key_operation, "ID", 0, "the events of one accepted command", 2},
    {"grep", key_grep, "PATTERN", 0, "whose printed line has this extended regular expression", 2},
    {"all", key_all, NULL, 0, "operations: also what workers and Orbit itself did", 2},
    {NULL, 0, NULL, 0, "How:", 3},
    {"follow", 'f', NULL, 0, "log: wait for more", 3},
    {"reverse", 'r', NULL, 0, "log: newest first", 3},
    {"lines", 'n', "N", 0, "log: the last N events (with --follow 10 unless --since is given)", 3},
    {"payload", key_payload, NULL, 0, "show payloads, results and details, not just their size", 3},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct parsing {
  struct request request;
  const char *since, *until; /* read at the end: --local may stand behind them */
};

static void take_id(struct argp_state *state, const char *option, const char *text, struct id *ret_id) {
  if (!id_parse(bytes_text(text), ret_id))
    argp_error(state, "%s: \"%s\" is no id: 32 lower-case hexadecimal digits", option, text);
}

static void take_type(struct argp_state *state, const char *text, struct request *request) {
  bool known = false;
  for (unsigned type = 1; type < EVENT_type_end && !known; type++) {
    const char *name = event_type_text((enum event_type)type);
    known = name[0] != 0 && name_matches(text, bytes_text(name));
  }
  if (!known) argp_error(state, "--type: no event is called \"%s\"", text);
  if (request->type_count == audit_types_max) argp_error(state, "--type: at most %d", audit_types_max);
  request->types[request->type_count++] = text;
}

static void take_lines(struct argp_state *state, const char *text, struct request *request) {
  char *end;
  request->has_lines = true;
  request->lines = UINT64_MAX;
  if (strcmp(text, "all") == 0) return;
  errno = 0;
  request->lines = strtoull(text, &end, 10);
  if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != 0)
    argp_error(state, "--lines: \"%s\" is neither a number nor \"all\"", text);
}

static void take_pattern(struct argp_state *state, const char *text, struct request *request) {
  char reason[128];
  if (request->grep != NULL) argp_error(state, "--grep: once is enough");
  int code = regcomp(&request->pattern, text, REG_EXTENDED);
  if (code == 0) {
    request->grep = text;
    return;
  }
  (void)regerror(code, &request->pattern, reason, sizeof reason);
  argp_error(state, "--grep: %s", reason);
}

static error_t take(int key, char *argument, struct argp_state *state) {
  struct parsing *parsing = state->input;
  struct request *request = &parsing->request;
  switch (key) {
    case key_since:
      parsing->since = argument;
      break;
    case key_until:
      parsing->until = argument;
      break;
    case key_task:
      take_id(state, "--task", argument, &request->task);
      break;
    case key_queue:
      take_id(state, "--queue", argument, &request->queue);
      break;
    case key_type:
      take_type(state, argument, request);
      break;
    case key_actor:
      take_id(state, "--actor", argument, &request->actor);
      break;
    case key_action:
      request->action = argument;
      break;
    case key_operation:
      take_id(state, "--operation", argument, &request->operation);
      break;
    case key_grep:
      take_pattern(state, argument, request);
      break;
    case key_payload:
      request->payload = true;
      break;
    case key_all:
      request->all = true;
      break;
    case 'f':
      request->follow = true;
      break;
    case 'r':
      request->reverse = true;
      break;
    case 'n':
      take_lines(state, argument, request);
      break;
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &request->cli;
      break;
    case ARGP_KEY_END:
      cli_take_time(state, "--since", parsing->since, request->cli.local, &request->since_us);
      cli_take_time(state, "--until", parsing->until, request->cli.local, &request->until_us);
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

/* An option that the command does not know would be passed over in silence, and its answer believed. */
static int judge_options(const struct request *request) {
  unsigned command = request->cli.command;
  bool drawn = command == COMMAND_TASK && request->cli.output == OUTPUT_TEXT;
  bool rows = command == COMMAND_LOG || (command == COMMAND_TASK && !drawn);
  bool chosen = request->since_us != 0 || request->until_us != 0 || !id_is_zero(&request->task) ||
                !id_is_zero(&request->queue) || !id_is_zero(&request->actor) || !id_is_zero(&request->operation) ||
                request->type_count != 0 || request->action != NULL;
  if (chosen && (drawn || command == COMMAND_VERIFY))
    return tool_say(exit_misuse, "%s takes everything: what chooses events belongs to log, operations and export",
                    commands[command].name);
  if (request->grep != NULL && !rows && command != COMMAND_EXPORT)
    return tool_say(exit_misuse, "--grep belongs to log and export");
  if ((request->follow || request->reverse || request->has_lines) && !rows)
    return tool_say(exit_misuse, "--follow, --reverse and --lines belong to log");
  if (request->all && command != COMMAND_OPERATIONS) return tool_say(exit_misuse, "--all belongs to operations");
  if (request->payload && (command == COMMAND_OPERATIONS || command == COMMAND_VERIFY))
    return tool_say(exit_misuse, "--payload belongs to log, task and export: what %s prints holds none",
                    commands[command].name);
  return exit_done;
}

int main(int argc, char **argv) {
  static const struct argp_child children[] = {{&cli_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  struct parsing parsing = {.since = NULL};
  struct cli *cli = &parsing.request.cli;
  struct buffer text;
  cli_init(cli, commands, COMMAND_COUNT, OUTPUT_MSGPACK);
  buffer_init(&text, SIZE_MAX);
  cli_describe(cli, "Read an Orbit log as evidence; offline, safe beside a running server.",
               "TIME is 2026-09-17T03:12:04Z, \"2026-09-17 03:12\", 03:12, now, today, yesterday, -2h, \"1 hour ago\" or "
               "@SECONDS; in UTC unless it names a zone or --local is given.",
               &text);
  struct argp argp = {options, take, "COMMAND [ARGUMENT]", (const char *)text.data, children, NULL, NULL};
  (void)setlocale(LC_CTYPE, ""); /* for characters of patterns, and whether the terminal has boxes */
  argp_err_exit_status = exit_misuse;
  (void)argp_parse(&argp, argc, argv, 0, NULL, &parsing);
  (void)signal(SIGPIPE, SIG_IGN);
  if (sodium_init() < 0) return tool_say(exit_cannot_run, "the kernel gives no random bytes");
  int code = judge_options(&parsing.request);
  if (code == exit_done) code = runs[cli->command](&parsing.request);
  if (parsing.request.grep != NULL) regfree(&parsing.request.pattern);
  buffer_clear(&text);
  return code;
}
