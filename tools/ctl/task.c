/* orbitctl task: the list of its commands, and the two that show what the server has. */
#include "task.h"

#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/id.h"

const struct print_column task_columns[] = {
    {"id", "TASK", PRINT_PLAIN, false, 0},
    {"state", "STATE", PRINT_STATE, false, 0},
    {"revision", "REV", PRINT_PLAIN, true, 0},
    {"attempt_count", "ATTEMPTS", PRINT_PLAIN, true, 0},
    {"queue_id", NULL, PRINT_PLAIN, false, 0},
    {"namespace_id", NULL, PRINT_PLAIN, false, 0},
    {"handler", "HANDLER", PRINT_PLAIN, false, 8},
    {"handler_version", NULL, PRINT_PLAIN, false, 0},
    {"payload_version", NULL, PRINT_PLAIN, false, 0},
    {"business_key", "KEY", PRINT_PLAIN, false, 8},
    {"concurrency_key", NULL, PRINT_PLAIN, false, 0},
    {"priority", NULL, PRINT_PLAIN, true, 0},
    {"available_at", NULL, PRINT_TIME, false, 0},
    {"start_deadline_at", NULL, PRINT_TIME, false, 0},
    {"deadline_at", NULL, PRINT_TIME, false, 0},
    {"recovery_safety", NULL, PRINT_PLAIN, false, 0},
    {"retry.max_attempts", NULL, PRINT_PLAIN, true, 0},
    {"retry.initial_delay_ms", NULL, PRINT_PLAIN, true, 0},
    {"retry.max_delay_ms", NULL, PRINT_PLAIN, true, 0},
    {"retry.attempt_timeout_ms", NULL, PRINT_PLAIN, true, 0},
    {"effect_uncertain", NULL, PRINT_PLAIN, false, 0},
    {"cancel_requested_at", NULL, PRINT_TIME, false, 0},
    {"created_at", "CREATED", PRINT_TIME, false, 0},
    {"updated_at", NULL, PRINT_TIME, false, 0},
    {"completed_at", NULL, PRINT_TIME, false, 0},
    {"error.code", NULL, PRINT_PLAIN, false, 0},
    {"error.message", NULL, PRINT_PLAIN, false, 0},
    {"error.details", NULL, PRINT_DOCUMENT, false, 0},
    {"retry_of", NULL, PRINT_PLAIN, false, 0},
    {"schedule_id", NULL, PRINT_PLAIN, false, 0},
    {"payload", NULL, PRINT_DOCUMENT, false, 0},
    {"result", NULL, PRINT_DOCUMENT, false, 0},
};
const unsigned task_column_count = sizeof task_columns / sizeof task_columns[0];

const struct print_column attempt_columns[] = {
    {"number", "#", PRINT_PLAIN, true, 0},
    {"state", "STATE", PRINT_STATE, false, 0},
    {"decision", "DECISION", PRINT_PLAIN, false, 0},
    {"error.code", "ERROR", PRINT_PLAIN, false, 12},
    {"leased_at", "LEASED", PRINT_TIME, false, 0},
    {"finished_at", "FINISHED", PRINT_TIME, false, 0},
    {"delay_ms", "DELAY MS", PRINT_PLAIN, true, 0},
    {"worker.name", "WORKER", PRINT_PLAIN, false, 8},
    {"attempt_id", "ATTEMPT", PRINT_PLAIN, false, 0},
    {"epoch", NULL, PRINT_PLAIN, true, 0},
    {"worker.instance_id", NULL, PRINT_PLAIN, false, 0},
    {"lease_expires_at", NULL, PRINT_TIME, false, 0},
    {"started_at", NULL, PRINT_TIME, false, 0},
    {"attempt_deadline_at", NULL, PRINT_TIME, false, 0},
    {"ended_by", NULL, PRINT_PLAIN, false, 0},
    {"outcome", NULL, PRINT_PLAIN, false, 0},
    {"retryable", NULL, PRINT_PLAIN, false, 0},
    {"next_available_at", NULL, PRINT_TIME, false, 0},
    {"error.message", NULL, PRINT_PLAIN, false, 0},
    {"error.details", NULL, PRINT_DOCUMENT, false, 0},
    {"result", NULL, PRINT_DOCUMENT, false, 0},
};
const unsigned attempt_column_count = sizeof attempt_columns / sizeof attempt_columns[0];

void task_take_argument(struct argp_state *state, int key, const char *argument, const char **ret_task_id) {
  struct id id;
  if (key == ARGP_KEY_END) {
    if (*ret_task_id == NULL) argp_error(state, "say which: the task's id is missing");
    return;
  }
  if (*ret_task_id != NULL) argp_error(state, "unexpected argument \"%s\"", argument);
  if (!id_parse(bytes_text(argument), &id)) argp_error(state, "\"%s\" is no id: 32 lower-case hexadecimal digits", argument);
  *ret_task_id = argument;
}

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct task_options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->online;
      break;
    case ARGP_KEY_ARG:
    case ARGP_KEY_END:
      task_take_argument(state, key, argument, &options->task_id);
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static void parse(int argc, char **argv, const char *help, struct task_options *options) {
  const struct argp_child children[] = {{&online_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp argp = {NULL, take_option, "TASK", help, children, NULL, NULL};
  (void)argp_parse(&argp, argc, argv, 0, NULL, options);
}

int ctl_task_get(int argc, char **argv) {
  struct task_options options = {.task_id = NULL};
  parse(argc, argv, "Show a task as it stands.", &options);
  cleanup(online_close) struct online online = options.online;
  cleanup(json_clear) struct json json;
  cleanup(buffer_clear) struct buffer out;
  char path[task_path_bytes];
  struct orbit_error error;
  struct orbit_response *response;
  json_init_answers(&json);
  buffer_init(&out, json_text_bytes_max);
  int code = online_open(&online);
  if (code != exit_done) return code;
  (void)snprintf(path, sizeof path, "/v1/tasks/%s", options.task_id);
  if (online_call(&online, "GET", path, NULL, bytes_of(NULL, 0), &json, &response, &error) != ORBIT_OK)
    return online_failed(&online, &error, NULL);
  print_rows(&out, online.format, &json, 0, json_member(&json, 0, "task"), task_columns, task_column_count);
  orbit_response_free(response);
  return print_flush(&out, online.format);
}

/* All pages as one document; a single page stays byte for byte what the server gave. */
static int read_attempts(struct online *online, const char *task_id, struct buffer *pages) {
  cleanup(json_clear) struct json json;
  cleanup(buffer_clear) struct buffer path;
  json_init_answers(&json);
  buffer_init(&path, http_target_bytes_max);
  buffer_append_format(&path, "/v1/tasks/%s/attempts?limit=%d", task_id, page_rows_max);
  buffer_append_char(&path, '\0');
  for (bool more = true; more;) {
    struct orbit_error error;
    struct orbit_response *response;
    if (online_call(online, "GET", (const char *)path.data, NULL, bytes_of(NULL, 0), &json, &response, &error) != ORBIT_OK)
      return online_failed(online, &error, NULL);
    struct bytes items = print_value(&json, 0, "items"), cursor = print_value(&json, 0, "next_cursor");
    more = cursor.data != NULL;
    if (items.size < 2) more = false;
    if (!more && pages->size == 0) {
      buffer_append_bytes(pages, json_raw(&json, 0));
    } else if (items.size >= 2) {
      /* A page ends early where it grew large; the server never gives an empty one with a cursor. */
      buffer_append_text(pages, pages->size == 0 ? "{\"items\":[" : ",");
      buffer_append(pages, items.data + 1, items.size - 2);
      if (!more) buffer_append_text(pages, "]}");
    }
    buffer_reset(&path);
    buffer_append_format(&path, "/v1/tasks/%s/attempts?limit=%d&cursor=%.*s", task_id, page_rows_max, (int)cursor.size,
                         cursor.data != NULL ? (const char *)cursor.data : "");
    buffer_append_char(&path, '\0');
    orbit_response_free(response);
  }
  return pages->failed ? ctl_say(exit_cannot_run, "no memory for the attempts") : exit_done;
}

int ctl_task_attempts(int argc, char **argv) {
  struct task_options options = {.task_id = NULL};
  parse(argc, argv,
        "Show a task's attempts, the oldest first.\vTables leave out what does not fit; -o csv and -o json have all.",
        &options);
  cleanup(online_close) struct online online = options.online;
  cleanup(json_clear) struct json json;
  cleanup(buffer_clear) struct buffer out, pages;
  struct fault fault;
  json_init_answers(&json);
  buffer_init(&out, 4 * (size_t)json_text_bytes_max);
  buffer_init(&pages, 4 * (size_t)json_text_bytes_max);
  int code = online_open(&online);
  if (code == exit_done) code = read_attempts(&online, options.task_id, &pages);
  if (code != exit_done) return code;
  if (json_parse(&json, buffer_bytes(&pages), &fault) != STATUS_OK || json_member(&json, 0, "items") == 0)
    return ctl_say(exit_cannot_run, "the answer is none of Orbit's");
  print_rows(&out, online.format, &json, 0, json_member(&json, 0, "items"), attempt_columns, attempt_column_count);
  return print_flush(&out, online.format);
}

int ctl_task(int argc, char **argv) {
  static const struct ctl_command commands[] = {
      {"submit", ctl_task_submit, "submit a task"},
      {"get", ctl_task_get, "show a task as it stands"},
      {"attempts", ctl_task_attempts, "show what was tried and what came of it"},
      {"watch", ctl_task_watch, "follow a task until it has ended or a person must look at it"},
      {"list", ctl_task_remote, "tasks, the newest first"},
      {"cancel", ctl_task_remote, "ask that a task ends; a running attempt's report decides"},
      {"review", ctl_task_remote, "account for a task whose effect is in doubt"},
      {"retry", ctl_task_remote, "make the one successor of a failed or cancelled task"},
      {"operations", ctl_task_remote, "who did what to it, the newest first"},
      {"operation", ctl_task_remote, "one of these in full"},
      {"events", ctl_task_remote, "its events as stored"},
      {"evidence", ctl_task_remote, "reports that came without authority"},
      {NULL, NULL, NULL},
  };
  return ctl_dispatch(commands, argv[0], argc, argv);
}
