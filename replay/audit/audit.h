/* What the subcommands of orbit-audit share: the request, what it selects, how events are printed. */
#ifndef ORBIT_REPLAY_AUDIT_H
#define ORBIT_REPLAY_AUDIT_H

#include <regex.h>
#include <stdio.h>

#include "reading/cli.h"
#include "reading/out.h"
#include "reading/scan.h"
#include "reading/tool.h"
#include "reading/when.h"

enum { audit_types_max = 64 };

/* The options of every subcommand; each says which it takes. */
struct request {
  struct cli cli;
  int64_t since_us, until_us;              /* 0: not given */
  struct id task, queue, actor, operation; /* zero: any */
  const char *types[audit_types_max];      /* names, or their beginning and '*' */
  unsigned type_count;
  const char *action; /* NULL: any; likewise */
  const char *grep;   /* NULL: none */
  regex_t pattern;    /* of grep */
  bool follow, reverse, payload, all;
  bool has_lines;
  uint64_t lines; /* UINT64_MAX: all */
};

typedef int subcommand(const struct request *request);
subcommand audit_log, audit_task, audit_operations, audit_export, audit_verify;

/* ---- filter.c ---- */

/* What a request selects. Memory does not grow with the log. */
struct filter;
struct filter *filter_new(const struct request *request, struct scan *scan);
void filter_free(struct filter *filter);
/* False: the event is not asked for, by its header alone. */
bool filter_may(const struct filter *filter, const struct event *header);
/* --grep apart, which looks at the printed line. */
bool filter_takes(struct filter *filter, const struct event *event);
bool filter_line(const struct filter *filter, const char *line);
/* True when the name is the wanted one, or begins as it does before its '*'. */
bool name_matches(const char *wanted, struct bytes name);
/* What an event is an entry of: "task.finish"; "" when it makes none. older: the type of the event before it in its stream;
 * only a task's decision asks for it. */
struct bytes action_of_event(const struct event *event, enum event_type older);
bool event_is_decision(enum event_type type);

/* ---- line.c: one event in each output format ---- */

/* Appends the event as a line of text, without its end. */
void line_text(const struct out *out, const struct request *request, const struct event *event, struct buffer *text);
/* The same for a terminal, with its end: time, number and type on a line of their own, the rest folded to the width below. */
void line_folded(struct out *out, const struct request *request, const struct event *event);
/* {"seq":…,"time":…,"type":…,"stream":…,"operation_id":…,…} */
void line_json(const struct request *request, const struct event *event, struct buffer *text);
void line_csv_head(struct buffer *text);
void line_csv(const struct request *request, const struct event *event, struct buffer *text);
void line_msgpack(const struct request *request, const struct event *event, struct buffer *text);
/* In the request's format, with its end. JSON: without what stands between and around the objects. */
void line_append(const struct out *out, const struct request *request, const struct event *event, struct buffer *text);

#endif
