/* orbitctl why TASK: the first thing that keeps a task from running, from what the server shows of the task and its queue. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "task.h"

/* What is looked at; each look takes the place of the one before it. */
enum look { LOOK_TASK, LOOK_QUEUE, LOOK_INFO, LOOK_LIST, LOOK_COUNT };

struct looking {
  struct online *online;
  struct json texts[LOOK_COUNT]; /* each a reading of the response beside it */
  struct orbit_response *responses[LOOK_COUNT];
};

enum { list_path_bytes = 256 + cursor_chars_max };

static void looking_clear(struct looking *looking) {
  for (unsigned i = 0; i < LOOK_COUNT; i++) {
    json_clear(&looking->texts[i]);
    orbit_response_free(looking->responses[i]);
  }
}

static int look(struct looking *looking, const char *path, enum look at) {
  struct orbit_error error;
  orbit_response_free(looking->responses[at]);
  looking->responses[at] = NULL;
  if (online_call(looking->online, "GET", path, NULL, bytes_of(NULL, 0), &looking->texts[at], &looking->responses[at],
                  &error) != ORBIT_OK)
    return online_failed(looking->online, &error, NULL);
  return exit_done;
}

static struct bytes of_task(struct looking *looking, const char *name) {
  return print_value(&looking->texts[LOOK_TASK], json_member(&looking->texts[LOOK_TASK], 0, "task"), name);
}
static struct bytes of_queue(struct looking *looking, const char *name) {
  return print_value(&looking->texts[LOOK_QUEUE], json_member(&looking->texts[LOOK_QUEUE], 0, "queue"), name);
}

static uint64_t number(struct bytes text) {
  uint64_t value = 0;
  for (size_t i = 0; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++)
    value = value * 10 + (text.data[i] - '0');
  return value;
}

static int64_t time_of(struct bytes text) {
  int64_t time_us = 0;
  return text.data != NULL && time_parse(text, &time_us) ? time_us : 0;
}

static int say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)vprintf(format, arguments);
  va_end(arguments);
  (void)putchar('\n');
  return exit_done;
}

/* States in which nothing is assigned. */
static bool explain_state(struct looking *looking) {
  struct bytes state = of_task(looking, "state");
  static const struct {
    const char *state, *text;
  } rows[] = {
      {"RUNNING", "it is running: \"orbitctl task attempts\" shows where"},
      {"LEASED", "a worker holds it and has not started yet; if it never does, the lease runs out and the task goes on"},
      {"NEEDS_REVIEW", "a person must look at it: an execution's effect is in doubt; then \"orbitctl task review\""},
      {"SUCCEEDED", "it is done"},
      {"FAILED", "it failed for good: \"orbitctl task attempts\" shows why, \"orbitctl task retry\" makes a successor"},
      {"CANCELLED", "it was cancelled"},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (!bytes_equal_text(state, rows[i].state)) continue;
    (void)say("%s: %s", rows[i].state, rows[i].text);
    return true;
  }
  return false;
}

/* The task of this page of the list that has the key; data NULL: none. */
static struct bytes holder_of_page(struct json *list, struct bytes key) {
  uint32_t items = json_member(list, 0, "items"), row = items + 1;
  for (uint32_t n = 0; items != 0 && n < list->tokens[items].count; n++, row = list->tokens[row].next)
    if (bytes_equal(print_value(list, row, "concurrency_key"), key)) return print_value(list, row, "id");
  return bytes_of(NULL, 0);
}

/* Who holds the concurrency key: the first leased or running task of the queue with it, however many there are. */
static int holder(struct looking *looking, struct bytes key, bool *ret_found) {
  static const char *const states[] = {"RUNNING", "LEASED"};
  struct json *list = &looking->texts[LOOK_LIST];
  struct bytes queue = of_task(looking, "queue_id"), cursor;
  for (unsigned i = 0; i < 2; i++) {
    char path[list_path_bytes];
    int length = snprintf(path, sizeof path, "/v1/tasks?limit=100&state=%s&queue_id=%.*s", states[i], (int)queue.size,
                          (const char *)queue.data);
    do {
      int code = look(looking, path, LOOK_LIST);
      if (code != exit_done) return code;
      struct bytes id = holder_of_page(list, key);
      *ret_found = id.data != NULL;
      if (*ret_found) return say("WAITING: its concurrency key is held by task %.*s", (int)id.size, (const char *)id.data);
      cursor = print_value(list, 0, "next_cursor");
      (void)snprintf(path + length, sizeof path - (size_t)length, "&cursor=%.*s", (int)cursor.size, (const char *)cursor.data);
    } while (cursor.data != NULL);
  }
  return exit_done;
}

static int explain_waiting(struct looking *looking) {
  struct bytes available = of_task(looking, "available_at");
  int64_t now = time_of(print_value(&looking->texts[LOOK_INFO], 0, "time"));
  if (time_of(available) > now) return say("WAITING: not due until %.*s", (int)available.size, (const char *)available.data);
  if (bytes_equal_text(of_queue(looking, "paused"), "true"))
    return say("WAITING: its queue is paused; \"orbitctl queue resume\" lets it go on");
  uint64_t running = number(of_queue(looking, "counts.LEASED")) + number(of_queue(looking, "counts.RUNNING"));
  uint64_t most = number(of_queue(looking, "max_running"));
  if (most != 0 && running >= most)
    return say("WAITING: its queue runs %" PRIu64 " tasks, as many as max_running allows", running);
  struct bytes key = of_task(looking, "concurrency_key");
  bool found = false;
  if (key.data != NULL) {
    int code = holder(looking, key, &found);
    if (code != exit_done || found) return code;
  }
  struct bytes rate = of_queue(looking, "rate");
  struct bytes handler = of_task(looking, "handler"), version = of_task(looking, "handler_version");
  if (rate.data != NULL && number(of_queue(looking, "counts.WAITING")) > 1)
    return say(
        "WAITING: its queue's rate (%.*s) may be used up; if it is not, no connected worker with free capacity offers "
        "handler %.*s, version %.*s, in its queue",
        (int)rate.size, (const char *)rate.data, (int)handler.size, (const char *)handler.data, (int)version.size,
        (const char *)version.data);
  return say("WAITING: no connected worker with free capacity offers handler %.*s, version %.*s, in its queue",
             (int)handler.size, (const char *)handler.data, (int)version.size, (const char *)version.data);
}

static int why(struct online *online, const char *task_id) {
  cleanup(looking_clear) struct looking looking = {.online = online};
  char path[task_path_bytes];
  for (unsigned i = 0; i < LOOK_COUNT; i++) json_init_answers(&looking.texts[i]);
  (void)snprintf(path, sizeof path, "/v1/tasks/%s", task_id);
  int code = look(&looking, path, LOOK_TASK);
  if (code != exit_done || explain_state(&looking)) return code;
  struct bytes queue = of_task(&looking, "queue_id");
  (void)snprintf(path, sizeof path, "/v1/queues/%.*s", (int)queue.size, (const char *)queue.data);
  code = look(&looking, path, LOOK_QUEUE);
  if (code == exit_done) code = look(&looking, "/v1/info", LOOK_INFO);
  return code == exit_done ? explain_waiting(&looking) : code;
}

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct task_options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->online;
      return 0;
    case ARGP_KEY_ARG:
    case ARGP_KEY_END:
      task_take_argument(state, key, argument, &options->task_id);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

int ctl_why(int argc, char **argv) {
  const struct argp_child children[] = {{&online_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp argp = {NULL, take_option, "TASK", "Say why a task is not running.", children, NULL, NULL};
  struct task_options options = {.task_id = NULL};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  cleanup(online_close) struct online online = options.online;
  if (online.format != PRINT_TEXT) return ctl_say(exit_misuse, "why says a sentence: it has no other format than text");
  int code = online_open(&online);
  return code == exit_done ? why(&online, options.task_id) : code;
}
