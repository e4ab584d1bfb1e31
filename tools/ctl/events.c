/* orbitctl events: the feed, page by page, and on as it grows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl.h"
#include "online.h"

enum { wait_ms = 20000, away_ms = 500, path_bytes = 2048, key_types = 1000, key_queue, key_task, key_after };

struct events_options {
  struct online online;
  const char *types, *queue_id, *task_id, *after;
  bool follow;
};

static const struct argp_option option_rows[] = {
    {"follow", 'f', NULL, 0, "go on for ever; without --after, from now on", 0},
    {"types", key_types, "T,T…", 0, "only events of these types: task.succeeded,task.failed,…", 0},
    {"queue", key_queue, "ID", 0, "only of this queue", 0},
    {"task", key_task, "ID", 0, "only of this task", 0},
    {"after", key_after, "POSITION", 0, "only what stands behind this position (0, the beginning of the log)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

/* What stands in the query as it is. */
static const char *judged(const struct argp_state *state, const char *option, const char *text) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._,-";
  if (text[0] == 0 || strlen(text) > path_bytes / 4 || strspn(text, plain) != strlen(text))
    argp_error(state, "--%s \"%s\": that cannot be", option, text);
  return text;
}

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct events_options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->online;
      break;
    case 'f':
      options->follow = true;
      break;
    case key_types:
      options->types = judged(state, "types", argument);
      break;
    case key_queue:
      options->queue_id = judged(state, "queue", argument);
      break;
    case key_task:
      options->task_id = judged(state, "task", argument);
      break;
    case key_after:
      (void)ctl_number(state, "after", argument, 0, UINT64_MAX);
      options->after = argument;
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static const struct print_column columns[] = {
    {"position", "POSITION", PRINT_PLAIN, true, 0}, {"time", "TIME", PRINT_TIME, false, 0},
    {"type", "TYPE", PRINT_PLAIN, false, 0},        {"task_id", "TASK", PRINT_PLAIN, false, 0},
    {"revision", "REV", PRINT_PLAIN, true, 0},      {"queue_id", NULL, PRINT_PLAIN, false, 0},
    {"data", "DATA", PRINT_DOCUMENT, false, 12},
};
enum { column_count = sizeof columns / sizeof columns[0] };

/* ---- One page ---- */

struct reading {
  struct events_options *options;
  struct json json;
  struct buffer out;
  uint64_t position;
  bool shown;
  bool answered, away; /* the server has been there; and is not now */
};

static void put_parameter(char path[path_bytes], const char *name, const char *value) {
  size_t length = strlen(path);
  if (value != NULL) (void)snprintf(path + length, path_bytes - length, "&%s=%s", name, value);
}

static void make_path(const struct reading *reading, char path[path_bytes]) {
  const struct events_options *options = reading->options;
  (void)snprintf(path, path_bytes, "/v1/events?limit=100&after=%" PRIu64 "&wait_ms=%d", reading->position,
                 options->follow ? wait_ms : 0);
  put_parameter(path, "types", options->types);
  put_parameter(path, "queue_id", options->queue_id);
  put_parameter(path, "task_id", options->task_id);
}

/* A line an event: where a table would name its columns anew with each page. */
static void show_lines(struct reading *reading, uint32_t items) {
  struct json *json = &reading->json;
  for (uint32_t item = items + 1; item < json->tokens[items].next; item = json->tokens[item].next) {
    for (unsigned i = 0; i < column_count; i++) {
      struct bytes value = print_value(json, item, columns[i].path);
      if (columns[i].title == NULL) continue;
      if (i > 0) buffer_append_text(&reading->out, "  ");
      if (value.data == NULL) buffer_append_char(&reading->out, '-');
      else print_visible(&reading->out, value);
    }
    buffer_append_char(&reading->out, '\n');
  }
}

static void show(struct reading *reading, uint32_t items) {
  struct json *json = &reading->json;
  enum print_format format = reading->options->online.format;
  bool follow = reading->options->follow;
  if (json->tokens[items].count == 0 && (follow || reading->shown)) return;
  if (follow && format == PRINT_TEXT) {
    show_lines(reading, items);
  } else if (format == PRINT_CSV) {
    if (!reading->shown) print_csv_head(&reading->out, columns, column_count, NULL);
    for (uint32_t item = items + 1; item < json->tokens[items].next; item = json->tokens[item].next)
      print_csv_row(&reading->out, json, item, columns, column_count, bytes_of(NULL, 0));
  } else {
    print_rows(&reading->out, format, json, 0, items, columns, column_count);
  }
  reading->shown = true;
}

/* Who follows for ever follows over a restart of the server too: from the position that was reached. */
static int wait_for_server(struct reading *reading, const struct orbit_error *error) {
  struct online *online = &reading->options->online;
  if (!reading->options->follow || !reading->answered || !online_may_pass(error)) return online_failed(online, error, NULL);
  if (!reading->away)
    (void)ctl_say(exit_done, "no answer from %s (%s); asking again until there is one", online->credentials->url,
                  error->message);
  reading->away = true;
  online_pause_ms(away_ms);
  return exit_done;
}

/* *ret_end: nothing was left to look at. */
static int read_page(struct reading *reading, bool *ret_end) {
  struct online *online = &reading->options->online;
  struct orbit_error error;
  struct orbit_response *response;
  char path[path_bytes];
  unsigned long long next;
  make_path(reading, path);
  if (online_call(online, "GET", path, NULL, bytes_of(NULL, 0), &reading->json, &response, &error) != ORBIT_OK)
    return wait_for_server(reading, &error);
  reading->answered = true;
  reading->away = false;
  uint32_t items = json_member(&reading->json, 0, "items");
  struct bytes position = print_value(&reading->json, 0, "next_position");
  int code = exit_done;
  if (items == 0 || position.data == NULL || sscanf((const char *)position.data, "%llu", &next) != 1) {
    code = ctl_say(exit_cannot_run, "the answer is none of Orbit's");
  } else {
    show(reading, items);
    *ret_end = next == reading->position;
    reading->position = next;
    code = print_flush(&reading->out, reading->options->online.format);
  }
  orbit_response_free(response);
  return code;
}

static int begin(struct reading *reading) {
  struct events_options *options = reading->options;
  struct orbit_server_info *info;
  struct orbit_error error;
  if (options->after != NULL) return sscanf(options->after, "%" SCNu64, &reading->position) == 1 ? exit_done : exit_misuse;
  if (!options->follow) return exit_done;
  if (orbit_info(options->online.client, &info, &error) != ORBIT_OK) return online_failed(&options->online, &error, NULL);
  reading->position = info->log_position;
  orbit_server_info_free(info);
  return exit_done;
}

int ctl_events(int argc, char **argv) {
  static const struct argp_child children[] = {{&online_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  static const struct argp argp = {option_rows, take_option, NULL, "Show the events of tasks and queues, the oldest first.",
                                   children,    NULL,        NULL};
  struct events_options options = {.follow = false};
  struct reading reading = {.options = &options};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  json_init_answers(&reading.json);
  buffer_init(&reading.out, 4 * (size_t)json_text_bytes_max);
  int code = online_open(&options.online);
  if (code == exit_done) code = begin(&reading);
  for (bool end = false; code == exit_done && (options.follow || !end);) code = read_page(&reading, &end);
  online_close(&options.online);
  json_clear(&reading.json);
  buffer_clear(&reading.out);
  return code;
}
