/* Owns the table of the schedule commands, each one request. */
#include "remote.h"

#define COUNT(columns) (sizeof(columns) / sizeof((columns)[0]))

static const struct print_column schedule_columns[] = {
    {"id", "SCHEDULE", PRINT_PLAIN, false, 0},
    {"name", "NAME", PRINT_PLAIN, false, 8},
    {"next_at", "NEXT", PRINT_TIME, false, 0},
    {"cron", "CRON", PRINT_PLAIN, false, 8},
    {"interval_ms", "INTERVAL MS", PRINT_PLAIN, true, 0},
    {"timezone", "ZONE", PRINT_PLAIN, false, 8},
    {"last.outcome", "LAST", PRINT_PLAIN, false, 0},
    {"paused", "PAUSED", PRINT_PLAIN, false, 0},
    {"kind", NULL, PRINT_PLAIN, false, 0},
    {"last.scheduled_at", NULL, PRINT_TIME, false, 0},
    {"last.task_id", NULL, PRINT_PLAIN, false, 0},
    {"last.code", NULL, PRINT_PLAIN, false, 0},
    {"start_at", NULL, PRINT_TIME, false, 0},
    {"end_at", NULL, PRINT_TIME, false, 0},
    {"overlap", NULL, PRINT_PLAIN, false, 0},
    {"missed", NULL, PRINT_PLAIN, false, 0},
    {"catch_up_limit", NULL, PRINT_PLAIN, true, 0},
    {"template", NULL, PRINT_DOCUMENT, false, 0},
    {"queue_id", NULL, PRINT_PLAIN, false, 0},
    {"application_id", NULL, PRINT_PLAIN, false, 0},
    {"revision", NULL, PRINT_PLAIN, true, 0},
    {"deleted", NULL, PRINT_PLAIN, false, 0},
    {"created_at", NULL, PRINT_TIME, false, 0},
    {"updated_at", NULL, PRINT_TIME, false, 0},
    {"namespace_id", NULL, PRINT_PLAIN, false, 0},
};
static const struct print_column trigger_columns[] = {
    {"scheduled_at", "SCHEDULED", PRINT_TIME, false, 0}, {"outcome", "OUTCOME", PRINT_PLAIN, false, 0},
    {"task_id", "TASK", PRINT_PLAIN, false, 0},          {"code", "CODE", PRINT_PLAIN, false, 0},
    {"decided_at", "DECIDED", PRINT_TIME, false, 0},
};
static const struct print_column times_columns[] = {{"times", "TIMES", PRINT_DOCUMENT, false, 0}};

#define SCHEDULE_TIMES                                                                                         \
  {"cron", "cron", REMOTE_TEXT, false, "TEXT", "minute, hour, day of month, month, day of week; or @daily …"}, \
      {"timezone", "timezone", REMOTE_TEXT, false, "NAME", "whose clocks the expression follows (UTC)"}, {     \
    "interval-ms", "interval_ms", REMOTE_NUMBER, false, "N", "from one time to the next, in place of --cron"   \
  }
#define SCHEDULE_HANDLING                                                                                                  \
  {"overlap", "overlap", REMOTE_TEXT, false, "WORD", "while a task before it is unfinished: ALLOW (usual), SKIP, SERIAL"}, \
      {"missed", "missed", REMOTE_TEXT, false, "WORD", "times that passed undecided: SKIP, LATEST (usual), ALL"}, {        \
    "catch-up-limit", "catch_up_limit", REMOTE_NUMBER, false, "N", "with ALL: how many of them fire (10)"                  \
  }
static const struct remote_option create_options[] = {
    {"name", "name", REMOTE_TEXT, true, "TEXT", "for people (required)"},
    {"queue", "queue_id", REMOTE_TEXT, true, "ID", "where its tasks wait (required)"},
    {"kind", "kind", REMOTE_TEXT, true, "WORD", "CRON or INTERVAL (required)"},
    SCHEDULE_TIMES,
    {"start-at", "start_at", REMOTE_TEXT, false, "TIME", "no time before this"},
    {"end-at", "end_at", REMOTE_TEXT, false, "TIME", "no time at or after this"},
    {"template", "template", REMOTE_DOCUMENT, true, "JSON",
     "its tasks: handler, handler_version, payload_version, payload, task_timeout_ms … (required)"},
    SCHEDULE_HANDLING,
    {"paused", "paused", REMOTE_FLAG, false, NULL, "made paused"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct remote_option change_options[] = {
    {"revision", "expected_revision", REMOTE_TEXT, true, "N", "the revision that was looked at (required)"},
    {"name", "name", REMOTE_TEXT, false, "TEXT", "for people"},
    SCHEDULE_TIMES,
    {"start-at", "start_at", REMOTE_MOMENT, false, "TIME|none", "no time before this"},
    {"end-at", "end_at", REMOTE_MOMENT, false, "TIME|none", "no time at or after this"},
    {"template", "template", REMOTE_DOCUMENT, false, "JSON", "its tasks, as a whole"},
    SCHEDULE_HANDLING,
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct remote_option preview_options[] = {
    {"kind", "kind", REMOTE_TEXT, true, "WORD", "CRON or INTERVAL (required)"},
    SCHEDULE_TIMES,
    {"after", "after", REMOTE_TEXT, false, "TIME", "times after this (now)"},
    {"count", "count", REMOTE_NUMBER, true, "N", "how many (required)"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct remote_option reason_options[] = {{"reason", "reason", REMOTE_TEXT, false, "TEXT", "why"},
                                                      {NULL, NULL, REMOTE_TEXT, false, NULL, NULL}};

int ctl_schedule(int argc, char **argv) {
  const struct remote_command rows[] = {
      {"create", "POST", "/v1/schedules", NULL, create_options, "schedule", schedule_columns, COUNT(schedule_columns),
       "make a schedule"},
      {"list", "GET", "/v1/schedules", NULL, NULL, "items", schedule_columns, COUNT(schedule_columns),
       "the schedules with their next times"},
      {"get", "GET", "/v1/schedules/%s", "SCHEDULE", NULL, "schedule", schedule_columns, COUNT(schedule_columns),
       "one schedule"},
      {"change", "PATCH", "/v1/schedules/%s", "SCHEDULE", change_options, "schedule", schedule_columns, COUNT(schedule_columns),
       "change its times, its template, or what becomes of overlapping and missed times"},
      {"pause", "POST", "/v1/schedules/%s:pause", "SCHEDULE", reason_options, "schedule", schedule_columns,
       COUNT(schedule_columns), "let its times pass"},
      {"resume", "POST", "/v1/schedules/%s:resume", "SCHEDULE", reason_options, "schedule", schedule_columns,
       COUNT(schedule_columns), "its times count again, from now on"},
      {"delete", "POST", "/v1/schedules/%s:delete", "SCHEDULE", reason_options, "schedule", schedule_columns,
       COUNT(schedule_columns), "end it; its tasks live on"},
      {"triggers", "GET", "/v1/schedules/%s/triggers", "SCHEDULE", NULL, "items", trigger_columns, COUNT(trigger_columns),
       "what became of its times, newest first"},
      {"preview", "POST", "/v1/schedules:preview", NULL, preview_options, NULL, times_columns, COUNT(times_columns),
       "the times that a schedule would have; nothing is stored"},
      {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL},
  };
  return remote_run(rows, argc, argv);
}
