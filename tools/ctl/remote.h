/* Commands that are one request each, described as rows: what the route is, which options become which members of the body or
 * parameters of the query, and how the answer is shown. */
#ifndef ORBIT_TOOLS_CTL_REMOTE_H
#define ORBIT_TOOLS_CTL_REMOTE_H

#include "ctl.h"
#include "online.h"

enum remote_kind {
  REMOTE_TEXT,      /* a JSON string */
  REMOTE_NUMBER,    /* a JSON number */
  REMOTE_LIMIT,     /* a JSON number, or "none" for null: takes a limit away */
  REMOTE_MOMENT,    /* a time as a JSON string, or "none" for null: takes it away */
  REMOTE_RATE,      /* TASKS/PER_MS/BURST as an object, or "none" */
  REMOTE_FLAG,      /* no argument: true */
  REMOTE_BOOL,      /* true or false */
  REMOTE_DOCUMENT,  /* JSON as given */
  REMOTE_LIST,      /* comma-separated texts as an array */
  REMOTE_PARAMETER, /* of the query */
};

struct remote_option {
  const char *name;   /* of the flag */
  const char *member; /* of the body, or the parameter */
  enum remote_kind kind;
  bool required;
  const char *argument; /* NULL with REMOTE_FLAG */
  const char *help;
};

enum { remote_options_max = 16, remote_ids_max = 2 };

struct remote_command {
  const char *name;
  const char *method;
  const char *path;                    /* "%s" for each id */
  const char *ids;                     /* how --help names them: "TASK", "TASK AUDIT"; NULL: none */
  const struct remote_option *options; /* ended by a NULL name; NULL: none */
  const char *result;                  /* member of data that is shown; "items": a list with pages; NULL: data itself */
  const struct print_column *columns;
  unsigned column_count;
  const char *help;
};

/* Finds argv[1] among the rows and does it. rows are ended by a NULL name. */
int remote_run(const struct remote_command *rows, int argc, char **argv);
/* The same when the command was found already: argv[0] is its full name, which ends with the row's. */
int remote_named(const struct remote_command *rows, int argc, char **argv);

#endif
