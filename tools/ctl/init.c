/* orbitctl init: a data directory, its genesis, and the first objects, written offline as the first commit of the log. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <libgen.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "codec/digest.h"
#include "codec/wire_http.h"
#include "ctl.h"
#include "journal/journal.h"
#include "print.h"
#include "state/state.h"

struct init_options {
  const char *data, *credentials, *admin_credentials, *root_credentials, *url;
  bool dev, recovery_access;
  enum print_format format;
};

/* ---- making events: folded as they are made, so that the first log is judged like any other ---- */

struct making {
  struct state *state;
  struct commit commit;
  struct id_source ids;
  struct id node_id;
  int64_t now_us;
};

static void add(struct making *making, struct event *event) {
  const char *reason = "";
  event->prev = state_stream_last(making->state, event);
  must(commit_add(&making->commit, event) == STATUS_OK);
  if (!state_can_apply(making->state, event, &reason)) guard_failed(reason, __FILE__, __LINE__, event_type_text(event->type));
  state_apply(making->state, event);
}

/* A new object: its event filled in by the caller between begin and end; end appends it with its audit record. */
static struct event *begin(struct making *making, struct event_list *list, enum event_type type, struct id *ret_id) {
  struct id operation = id_source_next(&making->ids, making->now_us);
  *ret_id = id_source_next(&making->ids, making->now_us);
  list->count = 0;
  struct event *event = event_list_add(list, type, ret_id, &operation, &making->node_id);
  event->common.revision = 1;
  return event;
}

static void end(struct making *making, struct event_list *list, const char *action, const struct id *namespace_id) {
  struct event *first = &list->events[0];
  struct event *audit =
      event_list_add(list, EVENT_audit_recorded, &first->stream, &first->common.operation_id, &making->node_id);
  audit->common.revision = 1;
  add(making, first);
  audit->body.audit_recorded.audit_id = audit_id_make(making->now_us, making->commit.first_seq + making->commit.count);
  audit->body.audit_recorded.action = bytes_text(action);
  audit->body.audit_recorded.target_id = first->stream;
  audit->body.audit_recorded.namespace_id = *namespace_id;
  audit->body.audit_recorded.reason = bytes_text("orbitctl init");
  add(making, audit);
}

struct objects {
  struct id namespace_id, application_id, queue_id;
};

static void make_objects(struct making *making, struct objects *objects) {
  struct event_list list;
  struct event *event = begin(making, &list, EVENT_namespace_created, &objects->namespace_id);
  event->body.namespace_created.name = bytes_text("dev");
  end(making, &list, "namespace.create", &objects->namespace_id);

  event = begin(making, &list, EVENT_application_created, &objects->application_id);
  event->body.application_created.namespace_id = objects->namespace_id;
  event->body.application_created.name = bytes_text("dev");
  end(making, &list, "application.create", &objects->namespace_id);

  event = begin(making, &list, EVENT_queue_created, &objects->queue_id);
  event->body.queue_created.namespace_id = objects->namespace_id;
  event->body.queue_created.name = bytes_text("default");
  event->body.queue_created.key_concurrency = 1;
  event->body.queue_created.lease_ms = lease_ms_default;
  end(making, &list, "queue.create", &objects->namespace_id);
}

/* objects NULL: a root credential, of no namespace. token gets the token's text. */
static void make_credential(struct making *making, const struct objects *objects, const char *name, uint64_t permissions,
                            char token[token_chars + 1]) {
  static const struct id none;
  struct event_list list;
  struct id id;
  uint8_t hash[token_hash_bytes];
  token_make(token);
  token_hash(bytes_text(token), hash);
  struct event *event = begin(making, &list, EVENT_credential_created, &id);
  event->body.credential_created.name = bytes_text(name);
  event->body.credential_created.permissions = permissions;
  event->body.credential_created.token_hash = bytes_of(hash, sizeof hash);
  if (objects != NULL) {
    event->body.credential_created.namespace_id = objects->namespace_id;
    event->body.credential_created.application_id = objects->application_id;
  }
  end(making, &list, "credential.create", objects != NULL ? &objects->namespace_id : &none);
}

/* ---- credentials files ---- */

struct credentials_file {
  const char *path; /* NULL: not wanted */
  bool written;
};
enum { file_dev, file_admin, file_root, file_count };

/* The name itself must be as durable as what stands behind it. */
static bool sync_directory_of(const char *path) {
  cleanup(guard_free) char *copy = strdup(path);
  /* The cleanup frees it. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
  cleanup(guard_close) int fd = copy != NULL ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  return fd >= 0 && fsync(fd) == 0;
}

static void credentials_text(struct buffer *text, const char *url, const struct objects *objects, const char *token) {
  buffer_append_char(text, '{');
  wire_text_member(text, "url", bytes_text(url));
  if (objects != NULL) {
    wire_id_member(text, "namespace_id", &objects->namespace_id);
    wire_id_member(text, "application_id", &objects->application_id);
    wire_id_member(text, "queue_id", &objects->queue_id);
  }
  wire_text_member(text, "token", bytes_text(token));
  buffer_append_text(text, "}\n");
}

/* Made anew, mode 0600, synced before the log says that the token is valid. Never written over. Says why where it returns
 * false. */
static bool write_credentials(struct credentials_file *file, const char *url, const struct objects *objects,
                              const char *token) {
  struct buffer text;
  must(file->path != NULL);
  buffer_init(&text, 8192);
  credentials_text(&text, url, objects, token);
  cleanup(guard_close) int fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  file->written = fd >= 0;
  bool done = fd >= 0 && !text.failed && write(fd, text.data, text.size) == (ssize_t)text.size && fsync(fd) == 0 &&
              sync_directory_of(file->path);
  if (!done) (void)ctl_say(exit_cannot_run, "the credentials file %s cannot be written: %s", file->path, strerror(errno));
  if (text.data != NULL) sodium_memzero(text.data, text.size);
  buffer_clear(&text);
  return done;
}

static uint64_t bit(enum permission permission) { return UINT64_C(1) << permission; }

static uint64_t dev_permissions(bool recovery_access) {
  uint64_t permissions = bit(PERMISSION_TASKS_SUBMIT) | bit(PERMISSION_TASKS_READ) | bit(PERMISSION_TASKS_CANCEL) |
                         bit(PERMISSION_TASKS_CONSUME) | bit(PERMISSION_QUEUES_READ) | bit(PERMISSION_EVENTS_READ);
  if (recovery_access)
    permissions |= bit(PERMISSION_TASKS_REVIEW) | bit(PERMISSION_TASKS_RETRY) | bit(PERMISSION_TASKS_AUDIT_READ);
  return permissions;
}

/* ---- the command ---- */

static bool make_all(struct making *making, const struct init_options *options, struct objects *objects,
                     struct credentials_file files[file_count]) {
  char token[token_chars + 1];
  bool done = true;
  if (options->dev) {
    make_objects(making, objects);
    make_credential(making, objects, "dev", dev_permissions(options->recovery_access), token);
    done = write_credentials(&files[file_dev], options->url, objects, token);
  }
  if (done && files[file_admin].path != NULL) {
    make_credential(making, objects, "admin", bit(PERMISSION_ADMIN), token);
    done = write_credentials(&files[file_admin], options->url, objects, token);
  }
  if (done && files[file_root].path != NULL) {
    make_credential(making, NULL, "root", bit(PERMISSION_ROOT), token);
    done = write_credentials(&files[file_root], options->url, NULL, token);
  }
  sodium_memzero(token, sizeof token);
  return done;
}

static int init_log(struct journal *journal, const struct init_options *options, int64_t now_us, struct objects *objects) {
  struct credentials_file files[file_count] = {
      {options->credentials, false}, {options->admin_credentials, false}, {options->root_credentials, false}};
  struct making making = {.state = state_new(), .node_id = journal_node_id(journal), .now_us = now_us};
  struct fault fault = {0};
  uint64_t seed;
  int code = exit_done;
  randombytes_buf(&seed, sizeof seed);
  id_source_init(&making.ids, seed);
  commit_init(&making.commit);
  commit_reset(&making.commit, journal, making.now_us);
  if (!make_all(&making, options, objects, files)) code = exit_cannot_run;
  else if (journal_commit(journal, &making.commit, &fault) != STATUS_OK) code = ctl_say(exit_cannot_run, "%s", fault.message);
  for (int i = 0; i < file_count && code != exit_done; i++)
    if (files[i].written) (void)unlink(files[i].path);
  commit_clear(&making.commit);
  state_free(making.state);
  return code;
}

/* ---- what it says ---- */

static const struct print_column columns[] = {
    {"data", "DATA", PRINT_PLAIN, false, 0},
    {"credentials", NULL, PRINT_PLAIN, false, 0},
    {"admin_credentials", NULL, PRINT_PLAIN, false, 0},
    {"root_credentials", NULL, PRINT_PLAIN, false, 0},
    {"node_id", NULL, PRINT_PLAIN, false, 0},
    {"namespace_id", NULL, PRINT_PLAIN, false, 0},
    {"application_id", NULL, PRINT_PLAIN, false, 0},
    {"queue_id", NULL, PRINT_PLAIN, false, 0},
};

/* A path that is not UTF-8 cannot be said in JSON. */
static void path_member(struct buffer *text, const char *name, const char *path) {
  if (path != NULL) wire_text_member(text, name, bytes_text(bytes_is_utf8(bytes_text(path)) ? path : "(not UTF-8)"));
}

static int report(const struct init_options *options, const struct objects *objects, const struct id *node_id) {
  cleanup(buffer_clear) struct buffer text, out;
  cleanup(json_clear) struct json json;
  struct fault fault;
  buffer_init(&text, json_text_bytes_max);
  buffer_init(&out, json_text_bytes_max);
  json_init(&json);
  buffer_append_char(&text, '{');
  path_member(&text, "data", options->data);
  path_member(&text, "credentials", options->credentials);
  path_member(&text, "admin_credentials", options->admin_credentials);
  path_member(&text, "root_credentials", options->root_credentials);
  wire_id_member(&text, "node_id", node_id);
  if (options->dev) {
    wire_id_member(&text, "namespace_id", &objects->namespace_id);
    wire_id_member(&text, "application_id", &objects->application_id);
    wire_id_member(&text, "queue_id", &objects->queue_id);
  }
  buffer_append_char(&text, '}');
  must(json_parse(&json, buffer_bytes(&text), &fault) == STATUS_OK);
  print_rows(&out, options->format, &json, 0, 0, columns, sizeof columns / sizeof columns[0]);
  int code = print_flush(&out, options->format);
  if (code == exit_done && options->format == PRINT_TEXT) (void)ctl_say(exit_done, "next: orbitd --data %s", options->data);
  return code;
}

static int init_run(const struct init_options *options) {
  const char *paths[] = {options->credentials, options->admin_credentials, options->root_credentials};
  struct journal_options journal_options = {.create = true};
  struct journal *journal;
  struct objects objects = {.queue_id = {{0}}};
  struct fault fault = {0};
  struct stat found;
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  int64_t now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
  if (!time_has_text(now_us))
    return ctl_say(exit_cannot_run, "the machine's clock stands outside of the years 2000 to 9998: set it");
  for (int i = 0; i < file_count; i++)
    if (paths[i] != NULL && lstat(paths[i], &found) == 0)
      return ctl_say(exit_refused, "%s is there already and would be written over; name another file or move it", paths[i]);
  if (journal_open(options->data, &journal_options, &journal, &fault) != STATUS_OK)
    return ctl_say(exit_cannot_run, "%s", fault.message);
  struct id node_id = journal_node_id(journal);
  int code = journal_last_seq(journal) != 0
                 ? ctl_say(exit_refused, "%s holds a log already; nothing was changed", options->data)
                 : init_log(journal, options, now_us, &objects);
  journal_close(journal, code == exit_done);
  return code == exit_done ? report(options, &objects, &node_id) : code;
}

enum { key_data = 1000, key_dev, key_recovery, key_admin, key_root, key_url, key_credentials };

static const struct argp_option option_rows[] = {
    {"data", key_data, "DIR", 0, "data directory to make (ORBIT_DATA)", 0},
    {"dev", key_dev, NULL, 0, "make a namespace, an application, a queue and a credential for them", 0},
    {"credentials", key_credentials, "FILE", 0, "where the credential goes: JSON, mode 0600", 0},
    {"recovery-access", key_recovery, NULL, 0, "the credential may also review, retry by hand and read the audit", 0},
    {"admin-credentials", key_admin, "FILE", 0, "also make a credential with permission admin", 0},
    {"root-credentials", key_root, "FILE", 0, "also make the root credential, which may make namespaces", 0},
    {"url", key_url, "URL", 0, "what the files say about the server's address (ORBIT_URL, http://127.0.0.1:8080)", 0},
    {"output", 'o', "FORMAT", 0, "text, json, jsonl or csv", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static bool is_url(const char *url) {
  size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0, length = strlen(url);
  for (size_t i = 0; i < length; i++)
    if (url[i] <= ' ' || url[i] > '~') return false;
  return scheme != 0 && length > scheme && length < 1024;
}

static void judge_paths(const struct init_options *options, struct argp_state *state) {
  const char *const paths[] = {options->credentials, options->admin_credentials, options->root_credentials};
  for (int i = 0; i < file_count; i++)
    for (int other = 0; other < i; other++)
      if (paths[i] != NULL && paths[other] != NULL && strcmp(paths[i], paths[other]) == 0)
        argp_error(state, "\"%s\" is named for two credentials; each needs a file of its own", paths[i]);
}

static void judge(const struct init_options *options, struct argp_state *state) {
  if (options->data == NULL || options->data[0] == '\0') argp_error(state, "--data DIR is missing");
  if (!options->dev && options->root_credentials == NULL) argp_error(state, "say --dev, or --root-credentials FILE, or both");
  if (options->dev != (options->credentials != NULL)) argp_error(state, "--dev and --credentials FILE go together");
  if (!options->dev && (options->recovery_access || options->admin_credentials != NULL))
    argp_error(state, "--recovery-access and --admin-credentials go with --dev");
  if (!is_url(options->url)) argp_error(state, "--url \"%s\" is not http://host:port or https://host:port", options->url);
  judge_paths(options, state);
}

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct init_options *options = state->input;
  switch (key) {
    case key_data:
      options->data = argument;
      break;
    case key_dev:
      options->dev = true;
      break;
    case key_recovery:
      options->recovery_access = true;
      break;
    case key_admin:
      options->admin_credentials = argument;
      break;
    case key_root:
      options->root_credentials = argument;
      break;
    case key_url:
      options->url = argument;
      break;
    case key_credentials:
      options->credentials = argument;
      break;
    case 'o':
      if (!print_format_parse(argument, &options->format))
        argp_error(state, "-o \"%s\": the formats are text, json, jsonl and csv", argument);
      break;
    case ARGP_KEY_ARG:
      argp_error(state, "unexpected argument \"%s\"", argument);
      break;
    case ARGP_KEY_END:
      judge(options, state);
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

int ctl_init(int argc, char **argv) {
  static const struct argp argp = {
      option_rows, take_option, NULL, "Make a data directory with its first credentials. Refuses one that holds a log.",
      NULL,        NULL,        NULL};
  struct init_options options = {.data = getenv("ORBIT_DATA"), .url = getenv("ORBIT_URL")};
  if (options.url == NULL || options.url[0] == '\0') options.url = "http://127.0.0.1:8080";
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  return init_run(&options);
}
