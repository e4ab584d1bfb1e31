/* What the command lines of the offline tools have in common: a table of commands, --data, -o, --local, what stands behind a
 * command, and times. */
#ifndef ORBIT_REPLAY_CLI_H
#define ORBIT_REPLAY_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "reading/when.h"

enum output { OUTPUT_TEXT = 1, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT_MSGPACK };
const char *output_text(enum output output); /* "jsonl" */

struct cli_command {
  const char *name;
  const char *argument; /* NULL: it takes none */
  bool needs_argument, needs_data;
  const char *help;
};

/* One command line, as far as the tools share it. Texts are borrowed from the command line and the environment. */
struct cli {
  const struct cli_command *commands;
  unsigned command_count;
  enum output last_output; /* formats up to this one are the tool's */
  unsigned command;        /* which one was said; command_count: none yet */
  const char *data;        /* --data, ORBIT_DATA; NULL: neither */
  const char *argument;    /* NULL: none was given */
  enum output output;
  bool has_output; /* -o was given */
  bool local;
};
void cli_init(struct cli *cli, const struct cli_command *commands, unsigned count, enum output last_output);

/* A child of the tool's own argp: its input is the struct cli. Takes --data, -o, --local and all that is no option, and judges
 * at the end that nothing is missing. Its options stand in the groups 1 (where) and 3 (how). */
extern const struct argp cli_argp;

/* What --help says around the options: what the tool is, its commands folded to the width of a terminal, and the end. */
void cli_describe(const struct cli *cli, const char *what, const char *end, struct buffer *out);

/* The value of an option, or the end of the program with the reason and how it could be said. text NULL: not given. */
void cli_take_time(struct argp_state *state, const char *option, const char *text, bool local, int64_t *ret_us);
void cli_take_position(struct argp_state *state, const char *option, const char *text, bool local,
                       struct position *ret_position);

#endif
