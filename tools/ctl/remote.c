/* Owns commands that are one request. */
#include "remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/id.h"
#include "codec/wire_http.h"

enum { key_option_first = 1000, key_identity = 999 };

struct remote_call {
  struct online online;
  const struct remote_command *command;
  const char *ids[remote_ids_max];
  unsigned id_count, id_wanted;
  const char *values[remote_options_max];
  const char *key;
  char made_key[ORBIT_ID_SIZE]; /* what key points at when none was given */
  bool csv_begun;               /* the names of the columns stand above the first page alone */
};

/* ---- options to body and query ---- */

static void put_member(struct buffer *body, const char *name, const char *raw) { wire_raw_member(body, name, bytes_text(raw)); }

static int put_list(struct buffer *body, const char *name, const char *text) {
  if (body->data[body->size - 1] != '{') buffer_append_char(body, ',');
  json_write_string(body, bytes_text(name));
  buffer_append_text(body, ":[");
  for (const char *at = text;; at++) {
    const char *end = strchrnul(at, ',');
    json_write_string(body, bytes_of(at, (size_t)(end - at)));
    if (*end == 0) break;
    buffer_append_char(body, ',');
    at = end;
  }
  buffer_append_char(body, ']');
  return exit_done;
}

/* Digits up to `end`, which is stepped over. */
static bool take_number(const char **at, char end, unsigned long long *ret_number) {
  char *behind;
  if (**at < '0' || **at > '9') return false;
  errno = 0;
  unsigned long long number = strtoull(*at, &behind, 10);
  if (errno != 0 || *behind != end) return false;
  *at = behind + 1;
  *ret_number = number;
  return true;
}

static int put_rate(struct buffer *body, const char *name, const char *text) {
  unsigned long long tasks, per_ms, burst;
  char raw[128];
  const char *at = text;
  if (!take_number(&at, '/', &tasks) || !take_number(&at, '/', &per_ms) || !take_number(&at, '\0', &burst))
    return ctl_say(exit_misuse, "--rate \"%s\": say TASKS/PER_MS/BURST, like 100/1000/20, or none", text);
  (void)snprintf(raw, sizeof raw, "{\"tasks\":%llu,\"per_ms\":%llu,\"burst\":%llu}", tasks, per_ms, burst);
  put_member(body, name, raw);
  return exit_done;
}

static bool is_number(const char *text) { return text[0] != 0 && strspn(text, "0123456789") == strlen(text); }

static int put_option(struct buffer *body, const struct remote_option *option, const char *text) {
  bool none = strcmp(text, "none") == 0;
  switch (option->kind) {
    case REMOTE_PARAMETER:
      return exit_done;
    case REMOTE_FLAG:
      put_member(body, option->member, "true");
      return exit_done;
    case REMOTE_BOOL:
      if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return ctl_say(exit_misuse, "--%s is true or false", option->name);
      put_member(body, option->member, text);
      return exit_done;
    case REMOTE_RATE:
    case REMOTE_LIMIT:
      if (none) put_member(body, option->member, "null");
      if (none) return exit_done;
      if (option->kind == REMOTE_RATE) return put_rate(body, option->member, text);
      __attribute__((fallthrough));
    case REMOTE_NUMBER:
      if (!is_number(text)) return ctl_say(exit_misuse, "--%s \"%s\" is no whole number", option->name, text);
      put_member(body, option->member, text);
      return exit_done;
    case REMOTE_DOCUMENT:
      put_member(body, option->member, text);
      return exit_done;
    case REMOTE_LIST:
      return put_list(body, option->member, text);
    case REMOTE_MOMENT:
      if (none) put_member(body, option->member, "null");
      if (none) return exit_done;
      __attribute__((fallthrough));
    case REMOTE_TEXT:
    default:
      if (!bytes_is_utf8(bytes_text(text))) return ctl_say(exit_misuse, "--%s is not UTF-8", option->name);
      wire_text_member(body, option->member, bytes_text(text));
      return exit_done;
  }
}

static void put_escaped(struct buffer *path, struct bytes text) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  for (size_t i = 0; i < text.size; i++) {
    if (memchr(plain, text.data[i], sizeof plain - 1) != NULL) buffer_append_char(path, (char)text.data[i]);
    else buffer_append_format(path, "%%%02X", text.data[i]);
  }
}

static void put_parameter(struct buffer *path, const char *name, struct bytes value) {
  buffer_append_char(path, memchr(path->data, '?', path->size) == NULL ? '?' : '&');
  buffer_append_text(path, name);
  buffer_append_char(path, '=');
  put_escaped(path, value);
}

static void put_path(const struct remote_call *call, struct buffer *path) {
  unsigned id = 0;
  for (const char *at = call->command->path; *at != 0; at++) {
    if (at[0] == '%' && at[1] == 's') {
      buffer_append_text(path, call->ids[id++]);
      at++;
    } else {
      buffer_append_char(path, *at);
    }
  }
  for (unsigned i = 0; call->command->options != NULL && call->command->options[i].name != NULL; i++)
    if (call->values[i] != NULL && call->command->options[i].kind == REMOTE_PARAMETER)
      put_parameter(path, call->command->options[i].member, bytes_text(call->values[i]));
}

static int put_body(const struct remote_call *call, struct buffer *body) {
  int code = exit_done;
  buffer_append_char(body, '{');
  for (unsigned i = 0; code == exit_done && call->command->options != NULL && call->command->options[i].name != NULL; i++)
    if (call->values[i] != NULL) code = put_option(body, &call->command->options[i], call->values[i]);
  buffer_append_char(body, '}');
  return code;
}

/* ---- the request ---- */

/* A token stands beside the object that it opens, and is never shown again: it must not be missing in any format. */
static void show_csv(struct remote_call *call, struct json *json, uint32_t rows, struct bytes token, struct buffer *out) {
  const struct remote_command *command = call->command;
  bool is_list = json->tokens[rows].type == JSON_ARRAY;
  uint32_t row = is_list ? rows + 1 : rows, count = is_list ? json->tokens[rows].count : 1;
  if (!call->csv_begun) print_csv_head(out, command->columns, command->column_count, token.data != NULL ? "token" : NULL);
  call->csv_begun = true;
  for (uint32_t n = 0; n < count; n++, row = json->tokens[row].next)
    print_csv_row(out, json, row, command->columns, command->column_count, token);
}

static int show(struct remote_call *call, struct json *json) {
  cleanup(buffer_clear) struct buffer out;
  buffer_init(&out, 4 * (size_t)json_text_bytes_max);
  uint32_t rows = call->command->result != NULL ? json_member(json, 0, call->command->result) : 0;
  if (call->command->result != NULL && rows == 0) return ctl_say(exit_cannot_run, "the answer is none of Orbit's");
  struct bytes token = print_value(json, 0, "token");
  enum print_format format = call->online.format;
  if (format == PRINT_CSV) show_csv(call, json, rows, token, &out);
  else
    print_rows(&out, format, json, 0, format == PRINT_JSONL && token.data != NULL ? 0 : rows, call->command->columns,
               call->command->column_count);
  if (format == PRINT_TEXT && token.data != NULL)
    buffer_append_format(&out, "token %.*s\n", (int)token.size, (const char *)token.data);
  if (bytes_equal_text(print_value(json, 0, "deduplicated"), "true"))
    (void)ctl_say(exit_done, "this key was used before with the same content: this is the first answer");
  return print_flush(&out, format);
}

static int write_once(struct remote_call *call, const char *path) {
  cleanup(buffer_clear) struct buffer body;
  cleanup(json_clear) struct json json;
  struct orbit_error error;
  struct orbit_response *response;
  buffer_init(&body, http_body_bytes_max);
  json_init_answers(&json);
  int code = put_body(call, &body);
  if (code != exit_done) return code;
  if (body.failed) return ctl_say(exit_misuse, "the request is larger than it may be");
  if (call->key == NULL) {
    if (orbit_random_id(call->made_key) != ORBIT_OK)
      return ctl_say(exit_cannot_run, "the kernel's random numbers cannot be had");
    call->key = call->made_key;
    (void)ctl_say(exit_done, "no --key given: using --key %s (say it again to repeat this request)", call->key);
  }
  if (online_call(&call->online, call->command->method, path, call->key, buffer_bytes(&body), &json, &response, &error) !=
      ORBIT_OK)
    return online_failed(&call->online, &error, call->key);
  code = show(call, &json);
  orbit_response_free(response);
  return code;
}

/* One page after the other, until there is none or a reader has gone. */
static int read_pages(struct remote_call *call, struct buffer *path) {
  size_t first = path->size;
  cleanup(json_clear) struct json json;
  json_init_answers(&json);
  for (bool more = true; more;) {
    struct orbit_error error;
    struct orbit_response *response;
    buffer_append_char(path, '\0');
    if (online_call(&call->online, "GET", (const char *)path->data, NULL, bytes_of(NULL, 0), &json, &response, &error) !=
        ORBIT_OK)
      return online_failed(&call->online, &error, NULL);
    int code = show(call, &json);
    struct bytes cursor = print_value(&json, 0, "next_cursor");
    more = call->command->result != NULL && strcmp(call->command->result, "items") == 0 && cursor.data != NULL;
    path->size = first;
    if (more) put_parameter(path, "cursor", cursor);
    orbit_response_free(response);
    if (code != exit_done) return code;
  }
  return exit_done;
}

static int run(struct remote_call *call) {
  cleanup(buffer_clear) struct buffer path;
  buffer_init(&path, http_target_bytes_max);
  int code = online_open(&call->online);
  if (code == exit_done) {
    put_path(call, &path);
    if (strcmp(call->command->method, "GET") == 0) {
      code = read_pages(call, &path);
    } else {
      buffer_append_char(&path, '\0');
      code = path.failed ? ctl_say(exit_misuse, "the request is larger than it may be")
                         : write_once(call, (const char *)path.data);
    }
  }
  online_close(&call->online);
  return code;
}

/* ---- the command line ---- */

static void take_id(struct argp_state *state, struct remote_call *call, const char *text) {
  struct id id;
  if (call->id_count == call->id_wanted) argp_error(state, "unexpected argument \"%s\"", text);
  if (!id_parse(bytes_text(text), &id)) argp_error(state, "\"%s\" is no id: 32 lower-case hexadecimal digits", text);
  call->ids[call->id_count++] = text;
}

static void judge(struct argp_state *state, const struct remote_call *call) {
  if (call->id_count < call->id_wanted) argp_error(state, "say which: %s", call->command->ids);
  for (unsigned i = 0; call->command->options != NULL && call->command->options[i].name != NULL; i++)
    if (call->command->options[i].required && call->values[i] == NULL)
      argp_error(state, "--%s is missing", call->command->options[i].name);
}

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct remote_call *call = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = &call->online;
  else if (key == ARGP_KEY_ARG) take_id(state, call, argument);
  else if (key == ARGP_KEY_END) judge(state, call);
  else if (key == key_identity) call->key = argument;
  else if (key >= key_option_first && key < key_option_first + remote_options_max)
    call->values[key - key_option_first] = argument != NULL ? argument : "true";
  else return ARGP_ERR_UNKNOWN;
  return 0;
}

static void parse(struct remote_call *call, int argc, char **argv) {
  struct argp_option options[remote_options_max + 2] = {{0}};
  const struct argp_child children[] = {{&online_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  int count = 0;
  for (const struct remote_option *row = call->command->options; row != NULL && row->name != NULL; row++, count++)
    options[count] = (struct argp_option){row->name, key_option_first + count, row->argument, 0, row->help, 0};
  if (strcmp(call->command->method, "GET") != 0)
    options[count] =
        (struct argp_option){"key", key_identity, "KEY", 0, "the operation's key (a random one, printed to stderr)", 0};
  const struct argp argp = {options, take_option, call->command->ids, call->command->help, children, NULL, NULL};
  (void)argp_parse(&argp, argc, argv, 0, NULL, call);
}

static void describe(const struct remote_command *rows, const char *program) {
  (void)printf("Usage: %s COMMAND …\n\n", program);
  for (; rows->name != NULL; rows++)
    (void)printf("  %-10s %-12s %s\n", rows->name, rows->ids != NULL ? rows->ids : "", rows->help);
  (void)printf("\n%s COMMAND --help tells more. Exit codes: 0 done, 1 refused, 2 misuse, 3 could not run.\n", program);
}

static int run_row(const struct remote_command *row, int argc, char **argv) {
  struct remote_call call = {.command = row};
  for (const char *at = row->path; (at = strstr(at, "%s")) != NULL; at += 2) call.id_wanted++;
  parse(&call, argc, argv);
  return run(&call);
}

int remote_named(const struct remote_command *rows, int argc, char **argv) {
  const char *space = strrchr(argv[0], ' ');
  must(space != NULL);
  for (; rows->name != NULL; rows++)
    if (strcmp(rows->name, space + 1) == 0) return run_row(rows, argc, argv);
  must(false);
  return exit_misuse;
}

int remote_run(const struct remote_command *rows, int argc, char **argv) {
  char name[128];
  const char *wanted = argc > 1 ? argv[1] : "";
  if (strcmp(wanted, "--help") == 0 || strcmp(wanted, "-h") == 0) {
    describe(rows, argv[0]);
    return exit_done;
  }
  const struct remote_command *row = rows;
  while (row->name != NULL && strcmp(row->name, wanted) != 0) row++;
  if (row->name == NULL)
    return ctl_say(exit_misuse, "there is no command \"%s %s\"; %s --help lists them", argv[0], wanted, argv[0]);
  (void)snprintf(name, sizeof name, "%s %s", argv[0], row->name);
  argv[1] = name;
  return run_row(row, argc - 1, argv + 1);
}
