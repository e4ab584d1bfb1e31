/* orbit-bench: load over the interfaces that users use, against a server of its own or one that is there. */
#include <argp.h>
#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "bench.h"

const char *argp_program_version = "orbit-bench " ORBIT_VERSION;

/* What a mode is, and what it takes where nothing is said. */
static const struct mode_row {
  const char *name;
  bench_mode *run;
  const char *help;
  unsigned inflight;
  uint64_t tasks;
  unsigned workers;
  double rate;
  bool takes_workers, takes_rate, takes_url, takes_batch, takes_bystanders;
} modes[] = {
    {"submit", mode_load, "submissions alone, every answer awaited", 64, 20000, 0, 0, false, false, true, false, true},
    {"batch", mode_load, "submissions of many tasks a request; the last batch is a whole one", 4, 100000, 0, 0, false, false,
     true, true, true},
    {"lifecycle", mode_load, "submissions, and workers that start and finish them", 64, 20000, 64, 0, true, false, true, false,
     true},
    {"paced", mode_load, "lifecycle at a fixed rate: latency counts from when a submission was due", 64, 5000, 64, 1000, true,
     true, true, false, true},
    {"mixed", mode_mixed, "submissions with reads, lists, repeats and cancels beside", 64, 20000, 0, 0, false, false, true,
     false, true},
    {"idle", mode_idle, "no submissions: what the server spends on those who are connected (1000 idle workers)", 0, 0, 0, 0,
     false, false, true, false, true},
    {"grow", mode_grow, "lifecycle on and on: what a life costs at 1,000, 10,000, 100,000 … tasks of history", 64, 1000000, 4,
     0, true, false, false, false, false},
    {"restart", mode_restart,
     "fill, kill -9, start again: until ready, and until a waiting worker holds a task (with --workers: after whole lives)",
     256, 100000, 0, 0, true, false, false, false, false},
};
enum { against_bytes_max = 64 * 1024 * 1024 };
enum { mode_count = sizeof modes / sizeof modes[0] };

int bench_say(int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)fputs("orbit-bench: ", stderr);
  (void)vfprintf(stderr, format, arguments);
  (void)fputc('\n', stderr);
  va_end(arguments);
  return code;
}

static const struct mode_row *find_mode(const char *name) {
  for (size_t i = 0; i < mode_count; i++)
    if (strcmp(modes[i].name, name) == 0) return &modes[i];
  return NULL;
}

/* ---- options ---- */

enum {
  key_first = 1000,
  key_inflight = key_first,
  key_tasks,
  key_payload,
  key_batch,
  key_workers,
  key_capacity,
  key_rate,
  key_seconds,
  key_url,
  key_checkpoint,
  key_against,
  key_idle_workers,
  key_feed_readers,
  key_credentials
};

static const struct argp_option option_rows[] = {
    {"inflight", key_inflight, "N", 0,
     "submissions sent and not yet answered, each on a connection of its own (64; restart 256)", 0},
    {"tasks", key_tasks, "N", 0, "tasks to submit (20000; paced 5000; restart 100000; with --seconds: no limit)", 0},
    {"payload", key_payload, "BYTES", 0, "size of a payload, at least 43 (300)", 0},
    {"batch", key_batch, "N", 0, "batch: tasks a request, 1 to 1000 (100)", 0},
    {"workers", key_workers, "N", 0, "worker connections (64)", 0},
    {"capacity", key_capacity, "N", 0, "attempts that a worker holds at once (1)", 0},
    {"idle-workers", key_idle_workers, "N", 0, "workers beside the load that nothing is for (idle: 1000)", 0},
    {"feed-readers", key_feed_readers, "N", 0, "readers beside the load that follow the feed as streams", 0},
    {"rate", key_rate, "PER_S", 0, "paced: submissions per second (1000)", 0},
    {"seconds", key_seconds, "N", 0, "submit for so long (idle: 10)", 0},
    {"url", key_url, "URL", 0,
     "a server that runs already; without it one is started on a fresh directory below $TMPDIR or /var/tmp, on a disk", 0},
    {"checkpoint", key_checkpoint, NULL, 0, "restart: from the checkpoint; without it the whole log is folded", 0},
    {"against", key_against, "FILE", 0, "print ratios to earlier results of the same load, made with -o jsonl", 0},
    {"credentials", key_credentials, "FILE", 0, "with --url (ORBIT_CREDENTIALS_FILE)", 0},
    {"output", 'o', "FORMAT", 0, "text or jsonl (text)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct parsing {
  struct bench_options *options;
  bool given[sizeof option_rows / sizeof option_rows[0]];
};

static uint64_t parse_count(struct argp_state *state, const char *name, const char *text, uint64_t min, uint64_t max) {
  char *rest;
  errno = 0;
  unsigned long long value = strtoull(text, &rest, 10);
  if (errno != 0 || rest == text || *rest != '\0' || text[0] == '-' || value < min || value > max)
    argp_error(state, "--%s: \"%s\" is no number from %llu to %llu", name, text, (unsigned long long)min,
               (unsigned long long)max);
  return value;
}

static double parse_real(struct argp_state *state, const char *name, const char *text) {
  char *rest;
  double value = strtod(text, &rest);
  if (rest == text || *rest != '\0' || !(value > 0) || value > 1e9)
    argp_error(state, "--%s: \"%s\" is no number above 0", name, text);
  return value;
}

static void read_against(struct argp_state *state, const char *path, struct buffer *out) {
  char text[4096];
  FILE *file = fopen(path, "re");
  if (file == NULL) argp_failure(state, exit_cannot_run, errno, "--against: %s", path);
  buffer_reset(out);
  for (size_t got; file != NULL && (got = fread(text, 1, sizeof text, file)) != 0;) buffer_append(out, text, got);
  if (file != NULL) (void)fclose(file);
  if (out->failed) argp_failure(state, exit_cannot_run, 0, "--against: %s is too large", path);
}

static void settle_idle(struct argp_state *state, struct parsing *parsing) {
  static const int others[] = {key_inflight, key_tasks, key_payload};
  struct bench_options *options = parsing->options;
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (parsing->given[others[i] - key_first]) argp_error(state, "idle submits nothing: no --inflight, --tasks, --payload");
  if (!parsing->given[key_idle_workers - key_first]) options->idle_workers = 1000;
  if (!parsing->given[key_seconds - key_first]) options->seconds = 10;
}

/* What the mode does not take is refused; what was not said comes from its row. */
static void settle(struct argp_state *state, struct parsing *parsing) {
  struct bench_options *options = parsing->options;
  if (options->mode == NULL) argp_error(state, "say what to measure, one of the modes of --help");
  const struct mode_row *mode = find_mode(options->mode);
  const bool *given = parsing->given;
  if (mode == NULL) argp_error(state, "there is no mode \"%s\"", options->mode);
  must(mode != NULL); /* argp_error does not return */
  if (!mode->takes_workers && (given[key_workers - key_first] || given[key_capacity - key_first]))
    argp_error(state, "%s has no workers", mode->name);
  if (!mode->takes_rate && given[key_rate - key_first]) argp_error(state, "%s has no rate; paced has", mode->name);
  if (!mode->takes_url && options->url != NULL)
    argp_error(state, "%s needs a server of its own: it takes no --url", mode->name);
  if (options->checkpoint && mode->run != mode_restart)
    argp_error(state, "%s starts from nothing: --checkpoint is for restart", mode->name);
  if (options->credentials != NULL && options->url == NULL) argp_error(state, "--credentials goes with --url");
  if (!mode->takes_batch && given[key_batch - key_first])
    argp_error(state, "%s submits one by one; batch has --batch", mode->name);
  if (mode->takes_batch && !given[key_batch - key_first]) options->batch = 100;
  if (!given[key_inflight - key_first]) options->inflight = mode->inflight;
  if (!given[key_tasks - key_first]) options->tasks = options->seconds > 0 ? 0 : mode->tasks;
  if (!given[key_workers - key_first]) options->workers = mode->workers;
  if (!given[key_rate - key_first]) options->rate = mode->rate;
  if (!mode->takes_bystanders && (given[key_idle_workers - key_first] || given[key_feed_readers - key_first]))
    argp_error(state, "%s has none beside the load: no --idle-workers, no --feed-readers", mode->name);
  if (mode->run == mode_idle) settle_idle(state, parsing);
  if (mode->run == mode_grow && !given[key_capacity - key_first]) options->capacity = 16;
  if (mode->run == mode_grow && options->tasks == 0) argp_error(state, "grow goes on to --tasks: it takes no --seconds");
}

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct parsing *parsing = state->input;
  struct bench_options *options = parsing->options;
  if (key >= key_first && key <= key_credentials) parsing->given[key - key_first] = true;
  switch (key) {
    case key_inflight:
      options->inflight = (unsigned)parse_count(state, "inflight", argument, 1, 4000);
      break;
    case key_tasks:
      options->tasks = parse_count(state, "tasks", argument, 1, tasks_max);
      break;
    case key_payload:
      options->payload_bytes = (unsigned)parse_count(state, "payload", argument, payload_bytes_min, 262144);
      break;
    case key_batch:
      options->batch = (unsigned)parse_count(state, "batch", argument, 1, 1000);
      break;
    case key_workers:
      options->workers = (unsigned)parse_count(state, "workers", argument, 1, 4000);
      break;
    case key_idle_workers:
      options->idle_workers = (unsigned)parse_count(state, "idle-workers", argument, 0, 4000);
      break;
    case key_feed_readers:
      options->feed_readers = (unsigned)parse_count(state, "feed-readers", argument, 0, 1000);
      break;
    case key_capacity:
      options->capacity = (unsigned)parse_count(state, "capacity", argument, 1, 1000);
      break;
    case key_rate:
      options->rate = parse_real(state, "rate", argument);
      break;
    case key_seconds:
      options->seconds = parse_real(state, "seconds", argument);
      break;
    case key_url:
      options->url = argument;
      break;
    case key_checkpoint:
      options->checkpoint = true;
      break;
    case key_against:
      read_against(state, argument, &options->against);
      break;
    case key_credentials:
      options->credentials = argument;
      break;
    case 'o':
      options->jsonl = strcmp(argument, "jsonl") == 0;
      if (!options->jsonl && strcmp(argument, "text") != 0) argp_error(state, "-o is text or jsonl");
      break;
    case ARGP_KEY_ARG:
      if (options->mode != NULL) argp_error(state, "unexpected argument \"%s\"", argument);
      options->mode = argument;
      break;
    case ARGP_KEY_END:
      settle(state, parsing);
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static char *list_modes(int key, const char *text, void *input) {
  (void)input;
  if (key != ARGP_KEY_HELP_PRE_DOC) return (char *)(uintptr_t)text;
  struct buffer out;
  buffer_init(&out, 4096);
  buffer_append_text(&out, "Measures an Orbit server over its real interfaces. MODE is one of\n");
  for (size_t i = 0; i < mode_count; i++) buffer_append_format(&out, "\n  %-10s %s", modes[i].name, modes[i].help);
  buffer_append_char(&out, '\0');
  return out.failed ? NULL : (char *)out.data; /* argp frees it */
}

static void on_signal(int signal_number) {
  (void)signal_number;
  bench_interrupted = 1;
}

int main(int argc, char **argv) {
  static const char after[] =
      "server_cpu is user and system time of the server's threads; syncs are commits found in the log, each with one sync; "
      "log bytes are the growth of the log's pages in use. They are known of a server of one's own alone. "
      "Exit codes: 0 done, 1 the load failed, 2 misuse, 3 could not run.";
  char text[sizeof after + 2];
  struct argp argp = {option_rows, take_option, "MODE", text, NULL, list_modes, NULL};
  struct bench_options options = {.payload_bytes = 300, .capacity = 1};
  struct parsing parsing = {.options = &options};
  buffer_init(&options.against, against_bytes_max);
  struct sigaction action = {.sa_handler = on_signal};
  (void)snprintf(text, sizeof text, "\v%s", after);
  argp_err_exit_status = exit_misuse;
  if (sodium_init() < 0) return bench_say(exit_cannot_run, "the kernel's random numbers cannot be had");
  (void)argp_parse(&argp, argc, argv, 0, NULL, &parsing);
  (void)sigaction(SIGINT, &action, NULL);
  (void)sigaction(SIGTERM, &action, NULL);
  const struct mode_row *mode = find_mode(options.mode);
  must(mode != NULL);
  int code = mode->run(&options);
  buffer_clear(&options.against);
  return code;
}
