/* Owns the part of a command line that all offline tools have. */
#include "reading/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { key_data = 900, key_local, help_columns = 78 };

const char *output_text(enum output output) {
  static const char *const names[] = {"", "text", "json", "jsonl", "csv", "msgpack"};
  return names[output];
}

void cli_init(struct cli *cli, const struct cli_command *commands, unsigned count, enum output last_output) {
  const char *data = getenv("ORBIT_DATA");
  *cli = (struct cli){.commands = commands,
                      .command_count = count,
                      .last_output = last_output,
                      .command = count,
                      .output = OUTPUT_TEXT,
                      .data = data != NULL && data[0] != 0 ? data : NULL};
}

/* ---- options ---- */

static const struct argp_option options[] = {
    {"data", key_data, "DIR", 0, "data directory or backup (ORBIT_DATA)", 1},
    {"output", 'o', "FORMAT", 0, NULL, 3},
    {"local", key_local, NULL, 0, "times in texts, and times given without a zone, are local (TZ); else UTC", 3},
    {NULL, 0, NULL, 0, NULL, 0},
};

/* "text, json, jsonl or csv": what stands between two names. */
static const char *between(const struct cli *cli, enum output output) {
  if (output == cli->last_output) return "";
  return output + 1 == cli->last_output ? " or " : ", ";
}

static void formats(const struct cli *cli, char *out, size_t size) {
  size_t used = 0;
  for (unsigned i = OUTPUT_TEXT; i <= cli->last_output && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%s", output_text((enum output)i), between(cli, (enum output)i));
}

static void take_output(struct argp_state *state, const char *text, struct cli *cli) {
  char known[64];
  for (unsigned i = OUTPUT_TEXT; i <= cli->last_output; i++) {
    if (strcmp(output_text((enum output)i), text) != 0) continue;
    cli->output = (enum output)i;
    cli->has_output = true;
    return;
  }
  formats(cli, known, sizeof known);
  argp_error(state, "-o \"%s\": it is %s", text, known);
}

static void take_word(struct argp_state *state, const char *word, struct cli *cli) {
  if (cli->command != cli->command_count) {
    if (cli->commands[cli->command].argument == NULL || cli->argument != NULL)
      argp_error(state, "unexpected argument \"%s\"", word);
    cli->argument = word;
    return;
  }
  for (unsigned i = 0; i < cli->command_count; i++) {
    if (strcmp(cli->commands[i].name, word) != 0) continue;
    cli->command = i;
    return;
  }
  argp_error(state, "there is no command \"%s\"", word);
}

static void judge_end(struct argp_state *state, const struct cli *cli) {
  if (cli->command == cli->command_count) argp_error(state, "say which command");
  const struct cli_command *command = &cli->commands[cli->command];
  if (command->needs_argument && cli->argument == NULL) argp_error(state, "%s needs %s", command->name, command->argument);
  if (cli->data == NULL && (command->needs_data || cli->argument == NULL))
    argp_error(state, "--data DIR is missing (or ORBIT_DATA in the environment)");
}

static error_t take(int key, char *argument, struct argp_state *state) {
  struct cli *cli = state->input;
  switch (key) {
    case key_data:
      cli->data = argument;
      return 0;
    case key_local:
      cli->local = true;
      return 0;
    case 'o':
      take_output(state, argument, cli);
      return 0;
    case ARGP_KEY_ARG:
      take_word(state, argument, cli);
      return 0;
    case ARGP_KEY_END:
      judge_end(state, cli);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* The formats are the tool's own. */
static char *help(int key, const char *text, void *input) {
  const struct cli *cli = input;
  char known[64];
  if (key != 'o' || cli == NULL) return (char *)(uintptr_t)text;
  formats(cli, known, sizeof known);
  return strdup(known);
}

const struct argp cli_argp = {options, take, NULL, NULL, NULL, help, NULL};

/* ---- help ---- */

/* Words of the text from column `left` on, hung below themselves there. */
static void put_hung(struct buffer *out, size_t left, const char *text) {
  size_t column = left;
  while (*text != 0) {
    size_t size = strcspn(text, " ");
    if (column != left && column + 1 + size > help_columns) {
      buffer_append_format(out, "\n%*s", (int)left, "");
      column = left;
    } else if (column != left) {
      buffer_append_char(out, ' ');
      column++;
    }
    buffer_append(out, text, size);
    column += size;
    text += size + (text[size] == ' ');
  }
  buffer_append_char(out, '\n');
}

void cli_describe(const struct cli *cli, const char *what, const char *end, struct buffer *out) {
  size_t names = 0, arguments = 0;
  for (unsigned i = 0; i < cli->command_count; i++) {
    const struct cli_command *command = &cli->commands[i];
    size_t name = strlen(command->name), argument = command->argument != NULL ? strlen(command->argument) : 0;
    names = name > names ? name : names;
    arguments = argument > arguments ? argument : arguments;
  }
  buffer_append_format(out, "%s\vCommands:\n", what);
  for (unsigned i = 0; i < cli->command_count; i++) {
    const struct cli_command *command = &cli->commands[i];
    buffer_append_format(out, "  %-*s  %-*s  ", (int)names, command->name, (int)arguments,
                         command->argument != NULL ? command->argument : "");
    put_hung(out, names + arguments + 6, command->help);
  }
  buffer_append_format(out, "\n%s\nExit codes: 0 done, 1 a finding or a refusal, 2 misuse, 3 could not run.", end);
  buffer_append_char(out, 0);
}

/* ---- times ---- */

void cli_take_time(struct argp_state *state, const char *option, const char *text, bool local, int64_t *ret_us) {
  if (text != NULL && !when_parse(text, when_now_us(), local, ret_us))
    argp_error(state, "%s: \"%s\" is no time: try \"2026-09-17 03:12\", 03:12, yesterday, -2h, \"1 hour ago\"", option, text);
}

void cli_take_position(struct argp_state *state, const char *option, const char *text, bool local,
                       struct position *ret_position) {
  if (text != NULL && !position_parse(text, when_now_us(), local, ret_position))
    argp_error(state,
               "%s: \"%s\" is neither a sequence number nor a time: try 4711, \"2026-09-17 03:12\", 03:12, yesterday, -2h",
               option, text);
}
