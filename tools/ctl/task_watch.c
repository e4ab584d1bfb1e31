/* orbitctl task watch. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "task.h"

enum {
  interval_ms_default = 500,
  interval_ms_min = 50,
  interval_ms_max = 60000,
  patience_ms = 30000, /* how long a server may be away once it has answered */
};

struct watch_options {
  struct online online;
  const char *task_id;
  uint64_t interval_ms;
};

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct watch_options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->online;
      break;
    case 'i':
      options->interval_ms = ctl_number(state, "interval-ms", argument, interval_ms_min, interval_ms_max);
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

struct watch {
  struct online *online;
  struct print_screen screen;
  struct json json;
  struct buffer out;
  char path[task_path_bytes];
  char seen[128];    /* revision, attempt and state that were shown last */
  char state[32];    /* the last one */
  bool shown;        /* something has been */
  bool line_is_open; /* the one updating line stands on the terminal without its end */
};

static int64_t now_ms(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_word(const struct watch *watch, const char *const *words) {
  for (; *words != NULL; words++)
    if (strcmp(watch->state, *words) == 0) return true;
  return false;
}

static bool has_ended(const struct watch *watch) {
  static const char *const words[] = {"SUCCEEDED", "FAILED", "CANCELLED", "NEEDS_REVIEW", NULL};
  return is_word(watch, words);
}

/* ---- What is shown ---- */

static void append_value(struct watch *watch, uint32_t task, const char *path, const char *format_before,
                         const char *format_after) {
  struct bytes value = print_value(&watch->json, task, path);
  if (value.data == NULL) return;
  buffer_append_text(&watch->out, format_before);
  print_visible(&watch->out, value);
  buffer_append_text(&watch->out, format_after);
}

/* One line: when, what, and what the reader waits for. */
static void append_line(struct watch *watch, uint32_t task) {
  struct bytes state = print_value(&watch->json, task, "state");
  append_value(watch, task, "updated_at", "", "  ");
  if (watch->screen.colour) buffer_append_text(&watch->out, bytes_equal_text(state, "SUCCEEDED") ? "\033[32m" : "\033[1m");
  buffer_append_format(&watch->out, "%-12.*s", (int)state.size, (const char *)state.data);
  if (watch->screen.colour) buffer_append_text(&watch->out, "\033[0m");
  append_value(watch, task, "revision", "  revision ", "");
  append_value(watch, task, "attempt_count", "  attempt ", "");
  append_value(watch, task, "retry.max_attempts", "/", "");
  if (bytes_equal_text(print_value(&watch->json, task, "effect_uncertain"), "true"))
    buffer_append_text(&watch->out, "  effect uncertain");
  if (print_value(&watch->json, task, "cancel_requested_at").data != NULL)
    buffer_append_text(&watch->out, "  cancel requested");
  if (bytes_equal_text(state, "WAITING")) append_value(watch, task, "available_at", "  not before ", "");
  append_value(watch, task, "error.code", "  error ", "");
}

static void show(struct watch *watch, uint32_t task) {
  enum print_format format = watch->online->format;
  if (format == PRINT_JSON) {
    buffer_append_bytes(&watch->out, json_raw(&watch->json, 0));
  } else if (format == PRINT_JSONL) {
    json_minify(&watch->json, task, &watch->out);
  } else if (format == PRINT_CSV) {
    if (!watch->shown) print_csv_head(&watch->out, task_columns, task_column_count, NULL);
    print_csv_row(&watch->out, &watch->json, task, task_columns, task_column_count, bytes_of(NULL, 0));
    return;
  } else if (watch->screen.terminal) {
    buffer_append_text(&watch->out, "\r\033[K");
    append_line(watch, task);
    watch->line_is_open = true;
    return;
  } else {
    append_line(watch, task);
  }
  buffer_append_char(&watch->out, '\n');
}

/* Shows the task if it has changed since it was shown last. */
static int look(struct watch *watch) {
  uint32_t task = json_member(&watch->json, 0, "task");
  char seen[sizeof watch->seen];
  if (task == 0) return ctl_say(exit_cannot_run, "the answer is none of Orbit's");
  struct bytes state = print_value(&watch->json, task, "state"), revision = print_value(&watch->json, task, "revision"),
               updated = print_value(&watch->json, task, "updated_at");
  (void)snprintf(seen, sizeof seen, "%.*s %.*s %.*s", (int)state.size, (const char *)state.data, (int)revision.size,
                 (const char *)revision.data, (int)updated.size, (const char *)updated.data);
  (void)snprintf(watch->state, sizeof watch->state, "%.*s", (int)state.size, (const char *)state.data);
  if (watch->shown && strcmp(seen, watch->seen) == 0) return exit_done;
  (void)snprintf(watch->seen, sizeof watch->seen, "%s", seen);
  show(watch, task);
  watch->shown = true;
  return print_flush(&watch->out, watch->online->format);
}

/* ---- Following ---- */

static void end_line(struct watch *watch) {
  if (!watch->line_is_open) return;
  watch->line_is_open = false;
  buffer_append_char(&watch->out, '\n');
  (void)print_flush(&watch->out, PRINT_TEXT);
}

static int follow(struct watch *watch, uint64_t interval_ms) {
  int64_t answered_ms = now_ms();
  bool away = false;
  for (;;) {
    struct orbit_error error;
    struct orbit_response *response;
    if (online_call(watch->online, "GET", watch->path, NULL, bytes_of(NULL, 0), &watch->json, &response, &error) == ORBIT_OK) {
      int code = look(watch);
      orbit_response_free(response);
      if (code != exit_done) return code;
      if (has_ended(watch)) return strcmp(watch->state, "SUCCEEDED") == 0 ? exit_done : exit_refused;
      answered_ms = now_ms();
      away = false;
    } else {
      if (!watch->shown || !online_may_pass(&error) || now_ms() - answered_ms > patience_ms) {
        end_line(watch);
        return online_failed(watch->online, &error, NULL);
      }
      if (!away) {
        end_line(watch);
        (void)ctl_say(exit_done, "no answer from %s (%s); asking again for %d s", watch->online->credentials->url,
                      error.message, patience_ms / 1000);
      }
      away = true;
    }
    online_pause_ms(interval_ms);
  }
}

int ctl_task_watch(int argc, char **argv) {
  static const struct argp_option option_rows[] = {
      {"interval-ms", 'i', "N", 0, "how often to ask (500)", 0},
      {NULL, 0, NULL, 0, NULL, 0},
  };
  const struct argp_child children[] = {{&online_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp argp = {
      option_rows,
      take_option,
      "TASK",
      "Follow a task until it has ended or needs review.\vOn a terminal one line that changes; elsewhere, and with "
      "-o, a line a change. Exit code 0 when it has SUCCEEDED, 1 when it ended otherwise or needs review.",
      children,
      NULL,
      NULL};
  struct watch_options options = {.interval_ms = interval_ms_default};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  cleanup(online_close) struct online online = options.online;
  struct watch watch = {.online = &online, .screen = print_screen_of_stdout()};
  json_init_answers(&watch.json);
  buffer_init(&watch.out, json_text_bytes_max);
  (void)snprintf(watch.path, sizeof watch.path, "/v1/tasks/%s", options.task_id);
  int code = online_open(&online);
  if (code == exit_done) code = follow(&watch, options.interval_ms);
  end_line(&watch);
  json_clear(&watch.json);
  buffer_clear(&watch.out);
  return code;
}
