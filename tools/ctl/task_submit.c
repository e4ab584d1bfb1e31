/* orbitctl task submit. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/id.h"
#include "base/time_text.h"
#include "codec/wire_http.h"
#include "task.h"

static const uint64_t timeout_ms_default = 3600000; /* an hour */

struct submit_options {
  struct online online;
  const char *handler, *handler_version, *payload_version, *queue_id, *payload, *key;
  char made_key[ORBIT_ID_SIZE]; /* what key points at when none was given */
  const char *business_key, *concurrency_key, *recovery_safety, *available_at, *start_deadline_at;
  uint64_t timeout_ms, priority;
  uint64_t max_attempts, initial_delay_ms, max_delay_ms, attempt_timeout_ms;
  bool has_retry, has_initial_delay, has_max_delay;
};

enum option_key {
  key_handler = 1000,
  key_handler_version,
  key_payload_version,
  key_payload,
  key_queue,
  key_key,
  key_timeout,
  key_available,
  key_start_deadline,
  key_safety,
  key_business,
  key_concurrency,
  key_priority,
  key_attempts,
  key_initial,
  key_max,
  key_attempt_timeout,
};

static const struct argp_option option_rows[] = {
    {"handler", key_handler, "NAME", 0, "what is to be done (required)", 0},
    {"handler-version", key_handler_version, "VERSION", 0, "which version of it (required)", 0},
    {"payload", key_payload, "JSON", 0, "the payload, or @FILE, or - for stdin ({})", 0},
    {"payload-version", key_payload_version, "VERSION", 0, "the payload's form (v1)", 0},
    {"queue", key_queue, "ID", 0, "the queue (the credentials file's queue_id)", 0},
    {"timeout-ms", key_timeout, "N", 0, "the task's deadline, counted from its acceptance (3600000: an hour)", 0},
    {"key", key_key, "KEY", 0,
     "the operation's key: the same one with the same content is one task (a random one, printed to stderr)", 0},
    {"available-at", key_available, "TIME", 0, "not before this time, like 2026-11-30T12:00:00Z", 0},
    {"start-deadline-at", key_start_deadline, "TIME", 0, "not started after this time", 0},
    {"priority", key_priority, "0-9", 0, "higher first (0)", 0},
    {"business-key", key_business, "TEXT", 0, "shown and filterable; not unique", 0},
    {"concurrency-key", key_concurrency, "TEXT", 0, "tasks of a queue with the same one run one after the other", 0},
    {NULL, 0, NULL, 0, "When it does not work at once:", 1},
    {"max-attempts", key_attempts, "N", 0, "how often it may be claimed, 1 to 100 (1)", 1},
    {"initial-delay-ms", key_initial, "N", 0, "pause after the first failure that is safe to retry, doubled each time (0)", 1},
    {"max-delay-ms", key_max, "N", 0, "the longest pause (the initial one)", 1},
    {"attempt-timeout-ms", key_attempt_timeout, "N", 0, "for one attempt, from its start (the task's)", 1},
    {"recovery-safety", key_safety, "WORD", 0,
     "RECONCILE_ONLY: a person looks at unknown outcomes (default); IDEMPOTENT: the handler vouches that it may run again", 1},
    {NULL, 0, NULL, 0, NULL, 0},
};

static const char *take_time(struct argp_state *state, const char *option, const char *text) {
  int64_t time_us;
  if (!time_parse(bytes_text(text), &time_us))
    argp_error(state, "--%s \"%s\": a time looks like 2026-11-30T12:00:00Z (UTC)", option, text);
  return text;
}

static void take_retry(int key, const char *text, struct argp_state *state, struct submit_options *options) {
  options->has_retry = true;
  switch (key) {
    case key_attempts:
      options->max_attempts = ctl_number(state, "max-attempts", text, 1, attempts_max);
      break;
    case key_initial:
      options->initial_delay_ms = ctl_number(state, "initial-delay-ms", text, 0, delay_ms_max);
      options->has_initial_delay = true;
      break;
    case key_max:
      options->max_delay_ms = ctl_number(state, "max-delay-ms", text, 0, delay_ms_max);
      options->has_max_delay = true;
      break;
    default:
      options->attempt_timeout_ms = ctl_number(state, "attempt-timeout-ms", text, 1, task_timeout_ms_max);
      break;
  }
}

static void judge(struct submit_options *options, struct argp_state *state) {
  if (options->handler == NULL) argp_error(state, "--handler NAME is missing");
  if (options->handler_version == NULL) argp_error(state, "--handler-version VERSION is missing");
  if (!options->has_max_delay) options->max_delay_ms = options->initial_delay_ms;
  if (options->max_delay_ms < options->initial_delay_ms)
    argp_error(state, "--max-delay-ms must not be less than --initial-delay-ms");
}

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct submit_options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->online;
      break;
    case ARGP_KEY_ARG:
      argp_error(state, "unexpected argument \"%s\"", argument);
      break;
    case ARGP_KEY_END:
      judge(options, state);
      break;
    case key_handler:
      options->handler = argument;
      break;
    case key_handler_version:
      options->handler_version = argument;
      break;
    case key_payload_version:
      options->payload_version = argument;
      break;
    case key_payload:
      options->payload = argument;
      break;
    case key_queue:
      options->queue_id = argument;
      break;
    case key_key:
      options->key = argument;
      break;
    case key_business:
      options->business_key = argument;
      break;
    case key_concurrency:
      options->concurrency_key = argument;
      break;
    case key_safety:
      options->recovery_safety = argument;
      break;
    case key_timeout:
      options->timeout_ms = ctl_number(state, "timeout-ms", argument, 1, task_timeout_ms_max);
      break;
    case key_priority:
      options->priority = ctl_number(state, "priority", argument, 0, priority_max);
      break;
    case key_available:
      options->available_at = take_time(state, "available-at", argument);
      break;
    case key_start_deadline:
      options->start_deadline_at = take_time(state, "start-deadline-at", argument);
      break;
    case key_attempts:
    case key_initial:
    case key_max:
    case key_attempt_timeout:
      take_retry(key, argument, state, options);
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

/* ---- The payload ---- */

static int read_all(int fd, const char *name, struct buffer *text) {
  for (;;) {
    uint8_t *room = buffer_reserve(text, 65536);
    if (room == NULL)
      return ctl_say(exit_misuse, "%s is larger than a payload may be (%d KiB)", name, document_bytes_max / 1024);
    ssize_t got = read(fd, room, 65536);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ctl_say(exit_cannot_run, "%s cannot be read: %s", name, strerror(errno));
    if (got == 0) return exit_done;
    buffer_commit(text, (size_t)got);
  }
}

static int read_payload(const char *given, struct buffer *text) {
  if (strcmp(given, "-") == 0) return read_all(STDIN_FILENO, "the payload on stdin", text);
  if (given[0] != '@') {
    buffer_append_text(text, given);
    return text->failed ? ctl_say(exit_misuse, "the payload is larger than it may be (%d KiB)", document_bytes_max / 1024)
                        : exit_done;
  }
  cleanup(guard_close) int fd = open(given + 1, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ctl_say(exit_cannot_run, "the payload's file %s cannot be opened: %s", given + 1, strerror(errno));
  return read_all(fd, given + 1, text);
}

/* Judged here, because it becomes part of a larger text, and because people make mistakes in it. */
static int judge_payload(struct bytes text) {
  cleanup(json_clear) struct json json;
  struct fault fault = {.status = STATUS_OK};
  json_init(&json);
  if (json_parse(&json, text, &fault) != STATUS_OK)
    return ctl_say(exit_misuse, "the payload is not JSON as Orbit takes it: %s%s%s", fault.message,
                   fault.field[0] != 0 ? ", at " : "", fault.field);
  if (json.tokens[0].type == JSON_NULL) return ctl_say(exit_misuse, "the payload must not be null");
  return exit_done;
}

/* ---- The request ---- */

static void text_member(struct buffer *body, const char *name, const char *text) {
  if (text != NULL) wire_text_member(body, name, bytes_text(text));
}

static void write_body(const struct submit_options *options, struct bytes payload, struct buffer *body) {
  buffer_append_char(body, '{');
  text_member(body, "queue_id", options->queue_id);
  text_member(body, "handler", options->handler);
  text_member(body, "handler_version", options->handler_version);
  text_member(body, "payload_version", options->payload_version);
  wire_raw_member(body, "payload", payload);
  wire_number_member(body, "task_timeout_ms", options->timeout_ms);
  text_member(body, "available_at", options->available_at);
  text_member(body, "start_deadline_at", options->start_deadline_at);
  text_member(body, "recovery_safety", options->recovery_safety);
  text_member(body, "business_key", options->business_key);
  text_member(body, "concurrency_key", options->concurrency_key);
  if (options->priority != 0) wire_number_member(body, "priority", options->priority);
  if (options->has_retry) {
    buffer_append_text(body, ",\"retry\":{");
    wire_number_member(body, "max_attempts", options->max_attempts);
    wire_number_member(body, "initial_delay_ms", options->initial_delay_ms);
    wire_number_member(body, "max_delay_ms", options->max_delay_ms);
    if (options->attempt_timeout_ms != 0) wire_number_member(body, "attempt_timeout_ms", options->attempt_timeout_ms);
    buffer_append_char(body, '}');
  }
  buffer_append_char(body, '}');
}

static int judge_texts(const struct submit_options *options) {
  const char *const texts[] = {options->handler,      options->handler_version, options->payload_version, options->queue_id,
                               options->business_key, options->concurrency_key, options->recovery_safety};
  for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i] != NULL && !bytes_is_utf8(bytes_text(texts[i]))) return ctl_say(exit_misuse, "an option is not UTF-8");
  return exit_done;
}

static int send(struct online *online, const char *key, struct bytes body) {
  cleanup(json_clear) struct json json;
  cleanup(buffer_clear) struct buffer out;
  struct orbit_error error;
  struct orbit_response *response;
  json_init_answers(&json);
  buffer_init(&out, json_text_bytes_max);
  if (online_call(online, "POST", "/v1/tasks", key, body, &json, &response, &error) != ORBIT_OK)
    return online_failed(online, &error, key);
  print_rows(&out, online->format, &json, 0, json_member(&json, 0, "task"), task_columns, task_column_count);
  if (bytes_equal_text(print_value(&json, 0, "deduplicated"), "true"))
    (void)ctl_say(exit_done, "this key was used before with the same content: this is the task as it stood then");
  orbit_response_free(response);
  return print_flush(&out, online->format);
}

static int submit(struct submit_options *options, struct online *online) {
  cleanup(buffer_clear) struct buffer payload, body;
  buffer_init(&payload, 2 * (size_t)document_bytes_max); /* white space does not count */
  buffer_init(&body, http_body_bytes_max);
  int code = judge_texts(options);
  if (code == exit_done) code = read_payload(options->payload, &payload);
  if (code == exit_done) code = judge_payload(buffer_bytes(&payload));
  if (code == exit_done) code = online_open(online);
  if (code != exit_done) return code;
  if (options->queue_id == NULL && online->credentials->queue_id[0] != 0) options->queue_id = online->credentials->queue_id;
  if (options->queue_id == NULL)
    return ctl_say(exit_misuse, "which queue? %s names none: say --queue ID", online->credentials->path);
  write_body(options, buffer_bytes(&payload), &body);
  if (body.failed) return ctl_say(exit_misuse, "the submission is larger than it may be (%d KiB)", http_body_bytes_max / 1024);
  if (options->key == NULL) {
    if (orbit_random_id(options->made_key) != ORBIT_OK)
      return ctl_say(exit_cannot_run, "the kernel's random numbers cannot be had");
    options->key = options->made_key;
    (void)ctl_say(exit_done, "no --key given: submitting with --key %s (say it again to repeat this submission)", options->key);
  }
  return send(online, options->key, buffer_bytes(&body));
}

int ctl_task_submit(int argc, char **argv) {
  const struct argp_child children[] = {{&online_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp argp = {option_rows, take_option, NULL, "Submit a task and show it as it was accepted.",
                            children,    NULL,        NULL};
  struct submit_options options = {
      .payload_version = "v1", .payload = "{}", .timeout_ms = timeout_ms_default, .max_attempts = 1};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  cleanup(online_close) struct online online = options.online;
  return submit(&options, &online);
}
