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

static const struct row {
  const char *name;
  subcommand *run;
  const char *argument; /* NULL: none */
  bool needs_argument, needs_data;
  const char *help;
} rows[] = {
    {"log", audit_log, NULL, false, true, "the events, one a line"},
    {"task", audit_task, "TASK", true, true, "the life of one task, drawn: attempts as bars, decisions, reviews, evidence"},
    {"operations", audit_operations, NULL, false, true, "who did what to what, why, on what evidence"},
    {"export", audit_export, "OUT", true, true, "events into the file or directory OUT, with a manifest"},
    {"verify", audit_verify, "OUT", false, false,
     "judge the log's chain and that every transition has its audit record; with OUT an export against its manifest"},
};
enum { row_count = sizeof rows / sizeof rows[0] };

enum {
  key_data = 1000,
  key_since,
  key_until,
  key_local,
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
    {"data", key_data, "DIR", 0, "data directory or backup (ORBIT_DATA)", 1},
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
    {"output", 'o', "FORMAT", 0, "text, json, jsonl, csv or msgpack", 3},
    {"payload", key_payload, NULL, 0, "show payloads, results and details, not just their size", 3},
    {"local", key_local, NULL, 0, "times of the text form, and times given without a zone, are local (TZ); else UTC", 3},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct parsing {
  struct request request;
  const struct row *row;
  const char *since, *until; /* read at the end: --local may stand behind them */
};

static void take_output(struct argp_state *state, const char *text, struct request *request) {
  for (unsigned i = OUTPUT_TEXT; i <= OUTPUT_MSGPACK; i++)
    if (strcmp(output_text((enum output)i), text) == 0) {
      request->output = (enum output)i;
      request->has_output = true;
      return;
    }
  argp_error(state, "-o is text, json, jsonl, csv or msgpack");
}

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
  errno = 0;
  request->has_lines = strcmp(text, "all") != 0;
  request->lines = request->has_lines ? strtoull(text, &end, 10) : 0;
  if (request->has_lines && (errno != 0 || text[0] < '0' || text[0] > '9' || *end != 0))
    argp_error(state, "--lines: \"%s\" is no number", text);
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

static void take_time(struct argp_state *state, const char *option, const char *text, bool local, int64_t *ret_us) {
  if (text != NULL && !when_parse(text, when_now_us(), local, ret_us))
    argp_error(state, "%s: \"%s\" is no time: try \"2026-09-17 03:12\", 03:12, yesterday, -2h, \"1 hour ago\"", option, text);
}

static void take_argument(struct argp_state *state, char *argument, struct parsing *parsing) {
  for (unsigned i = 0; i < row_count && parsing->row == NULL; i++)
    if (strcmp(rows[i].name, argument) == 0) {
      parsing->row = &rows[i];
      return;
    }
  if (parsing->row == NULL) argp_error(state, "there is no command \"%s\"", argument);
  if (parsing->row->argument == NULL || parsing->request.argument != NULL)
    argp_error(state, "unexpected argument \"%s\"", argument);
  parsing->request.argument = argument;
}

static void take_end(struct argp_state *state, struct parsing *parsing) {
  struct request *request = &parsing->request;
  if (parsing->row == NULL) argp_error(state, "say which command");
  if (parsing->row->needs_argument && request->argument == NULL)
    argp_error(state, "%s needs %s", parsing->row->name, parsing->row->argument);
  if (request->data == NULL && (parsing->row->needs_data || request->argument == NULL))
    argp_error(state, "--data DIR is missing");
  take_time(state, "--since", parsing->since, request->local, &request->since_us);
  take_time(state, "--until", parsing->until, request->local, &request->until_us);
}

static error_t take(int key, char *argument, struct argp_state *state) {
  struct parsing *parsing = state->input;
  struct request *request = &parsing->request;
  switch (key) {
    case key_data:
      request->data = argument;
      break;
    case key_since:
      parsing->since = argument;
      break;
    case key_until:
      parsing->until = argument;
      break;
    case key_local:
      request->local = true;
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
    case 'o':
      take_output(state, argument, request);
      break;
    case ARGP_KEY_ARG:
      take_argument(state, argument, parsing);
      break;
    case ARGP_KEY_END:
      take_end(state, parsing);
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static void describe(char *out, size_t size) {
  size_t used = (size_t)snprintf(out, size, "Read an Orbit log as evidence; offline, safe beside a running server.\v");
  for (unsigned i = 0; i < row_count; i++)
    used += (size_t)snprintf(out + used, size - used, "  %-10s %-5s %s\n", rows[i].name,
                             rows[i].argument != NULL ? rows[i].argument : "", rows[i].help);
  (void)snprintf(out + used, size - used,
                 "\nTIME is 2026-09-17T03:12:04Z, \"2026-09-17 03:12\", 03:12, now, today, yesterday, -2h, \"1 hour ago\" or "
                 "@SECONDS; in UTC unless it names a zone or --local is given.\n"
                 "Exit codes: 0 done, 1 a finding, 2 misuse, 3 could not run.");
}

int main(int argc, char **argv) {
  char text[2048];
  describe(text, sizeof text);
  struct argp argp = {options, take, "COMMAND [ARGUMENT]", text, NULL, NULL, NULL};
  struct parsing parsing = {.request = {.output = OUTPUT_TEXT}};
  const char *data = getenv("ORBIT_DATA");
  if (data != NULL && data[0] != 0) parsing.request.data = data;
  (void)setlocale(LC_CTYPE, ""); /* for characters of patterns, and whether the terminal has boxes */
  argp_err_exit_status = exit_misuse;
  (void)argp_parse(&argp, argc, argv, 0, NULL, &parsing);
  (void)signal(SIGPIPE, SIG_IGN);
  if (sodium_init() < 0) return tool_say(exit_cannot_run, "the kernel gives no random bytes");
  int code = parsing.row->run(&parsing.request);
  if (parsing.request.grep != NULL) regfree(&parsing.request.pattern);
  return code;
}
