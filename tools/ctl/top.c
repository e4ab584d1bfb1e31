/* orbitctl top: owns the live view of queues, and the terminal while that is shown. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "ctl.h"
#include "online.h"

enum {
  interval_ms_default = 1000,
  interval_ms_min = 50,
  interval_ms_max = 60000,
  rounds_max = 1000000,
  queues_max = 1000, /* that one look takes in */
  path_bytes = 4096, /* a cursor is at most 1,024 characters, each escaped as three */
  id_text_bytes = 40,
  height_default = 24,
  lines_around = 3, /* the header, the names of the columns, and what is left out */
};

struct top_options {
  struct online online;
  uint64_t interval_ms, rounds; /* rounds 0: for ever on a terminal, one elsewhere */
};

struct row {
  char id[id_text_bytes];
  uint64_t review, waiting, accepted, ended;
  size_t start, size; /* of its object in top.objects, without the last brace */
};

struct top {
  struct top_options *options;
  struct print_screen screen;
  struct json json, merged;
  struct buffer objects, document, out;
  struct row *rows, *before;
  unsigned count, count_before;
  int64_t seen_ms, seen_before_ms;
  bool live, answered, away, more, csv_begun;
};

static const struct argp_option option_rows[] = {
    {"interval-ms", 'i', "N", 0, "how often to look (1000)", 0},
    {"rounds", 'n', "N", 0, "end after so many looks (for ever on a terminal, else 1)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct top_options *options = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = &options->online;
  else if (key == 'i') options->interval_ms = ctl_number(state, "interval-ms", argument, interval_ms_min, interval_ms_max);
  else if (key == 'n') options->rounds = ctl_number(state, "rounds", argument, 1, rounds_max);
  else return ARGP_ERR_UNKNOWN;
  return 0;
}

static const struct print_column columns[] = {
    {"name", "NAME", PRINT_PLAIN, false, 8},
    {"paused", "PAUSED", PRINT_PLAIN, false, 0},
    {"counts.NEEDS_REVIEW", "REVIEW", PRINT_PLAIN, true, 0},
    {"counts.WAITING", "WAITING", PRINT_PLAIN, true, 0},
    {"counts.LEASED", "LEASED", PRINT_PLAIN, true, 0},
    {"counts.RUNNING", "RUNNING", PRINT_PLAIN, true, 0},
    {"accepted_per_s", "IN/S", PRINT_PLAIN, true, 0},
    {"ended_per_s", "ENDED/S", PRINT_PLAIN, true, 0},
    {"oldest_waiting_at", "OLDEST WAITING", PRINT_TIME, false, 0},
    {"id", "QUEUE", PRINT_PLAIN, false, 0},
};
enum { column_count = sizeof columns / sizeof columns[0] };

static int64_t now_ms(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- The terminal: another screen, no echo; given back on every way out ---- */

static struct termios terminal_before;
static bool has_keys; /* stdin is the terminal, and set up for single keys */
static const char enter_screen[] = "\033[?1049h\033[?25l", leave_screen[] = "\033[?25h\033[?1049l";

static void terminal_leave(void) {
  ssize_t written = write(STDOUT_FILENO, leave_screen, sizeof leave_screen - 1);
  (void)written;
  if (has_keys) (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

/* The signal ends the program as it would have, once the terminal is as it was. */
static void on_signal(int number) {
  terminal_leave();
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

static int terminal_enter(struct top *top) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  struct sigaction action = {.sa_handler = on_signal};
  has_keys = tcgetattr(STDIN_FILENO, &terminal_before) == 0;
  for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) (void)sigaction(numbers[i], &action, NULL);
  if (has_keys) {
    struct termios keys = terminal_before;
    keys.c_lflag &= (tcflag_t) ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    keys.c_cc[VSUSP] = _POSIX_VDISABLE; /* a stopped program would leave the terminal in this state */
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  buffer_append_text(&top->out, enter_screen);
  return print_flush(&top->out, PRINT_TEXT);
}

/* Waits for the next look. True: q was typed. */
static bool pause_or_quit(const struct top *top) {
  int64_t end_ms = now_ms() + (int64_t)top->options->interval_ms, left_ms;
  struct pollfd keys = {.fd = top->live && has_keys ? STDIN_FILENO : -1, .events = POLLIN};
  while ((left_ms = end_ms - now_ms()) > 0) {
    char key;
    if (poll(&keys, 1, (int)left_ms) <= 0 || keys.revents == 0) continue;
    if (read(STDIN_FILENO, &key, 1) != 1) keys.fd = -1; /* nobody types any more */
    else if (key == 'q' || key == 'Q') return true;
  }
  return false;
}

/* ---- One look ---- */

static uint64_t count_of(struct json *json, uint32_t item, const char *path) {
  struct bytes value = print_value(json, item, path);
  return value.data != NULL ? strtoull((const char *)value.data, NULL, 10) : 0; /* what follows in the text is no digit */
}

static void take_row(struct top *top, uint32_t item) {
  struct json *json = &top->json;
  struct row *row = &top->rows[top->count++];
  struct bytes id = print_value(json, item, "id");
  *row = (struct row){.start = top->objects.size};
  (void)snprintf(row->id, sizeof row->id, "%.*s", (int)id.size, id.data != NULL ? (const char *)id.data : "");
  row->review = count_of(json, item, "counts.NEEDS_REVIEW");
  row->waiting = count_of(json, item, "counts.WAITING");
  row->ended = count_of(json, item, "counts.SUCCEEDED") + count_of(json, item, "counts.FAILED") +
               count_of(json, item, "counts.CANCELLED");
  row->accepted =
      row->ended + row->review + row->waiting + count_of(json, item, "counts.LEASED") + count_of(json, item, "counts.RUNNING");
  json_minify(json, item, &top->objects);
  if (top->objects.size > row->start) row->size = top->objects.size - row->start - 1;
}

/* A cursor means nothing to its reader and may hold any character: those that a path may not are escaped. */
static bool next_path(struct json *json, char path[path_bytes]) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  struct bytes cursor = print_value(json, 0, "next_cursor");
  if (cursor.data == NULL) return false;
  size_t size = (size_t)snprintf(path, path_bytes, "/v1/queues?limit=100&cursor=");
  for (size_t i = 0; i < cursor.size && size + 4 <= path_bytes; i++) {
    bool as_it_is = memchr(plain, cursor.data[i], sizeof plain - 1) != NULL;
    size += (size_t)snprintf(path + size, path_bytes - size, as_it_is ? "%c" : "%%%02X", cursor.data[i]);
  }
  return true;
}

/* All queues, page by page. ORBIT_OK, or what online_call says; then the rows are those of the look before. */
static int read_queues(struct top *top, struct orbit_error *error) {
  char path[path_bytes] = "/v1/queues?limit=100";
  struct row *rows = top->before;
  top->before = top->rows;
  top->rows = rows;
  top->count_before = top->count;
  top->count = 0;
  buffer_reset(&top->objects);
  for (top->more = true; top->more && top->count < queues_max;) {
    struct orbit_response *response;
    int status = online_call(&top->options->online, "GET", path, NULL, bytes_of(NULL, 0), &top->json, &response, error);
    uint32_t items = status == ORBIT_OK ? json_member(&top->json, 0, "items") : 0;
    if (status != ORBIT_OK) {
      top->count = 0; /* the next look has nothing to compare with */
      return status;
    }
    if (items != 0 && top->json.tokens[items].type == JSON_ARRAY)
      for (uint32_t item = items + 1; item < top->json.tokens[items].next && top->count < queues_max;
           item = top->json.tokens[item].next)
        take_row(top, item);
    top->more = next_path(&top->json, path);
    orbit_response_free(response);
  }
  top->seen_before_ms = top->seen_ms;
  top->seen_ms = now_ms();
  return ORBIT_OK;
}

/* What needs eyes first: reviews, then what waits; the id keeps the rest in their places. */
static int compare(const void *left, const void *right) {
  const struct row *a = left, *b = right;
  if (a->review != b->review) return a->review > b->review ? -1 : 1;
  if (a->waiting != b->waiting) return a->waiting > b->waiting ? -1 : 1;
  return strcmp(a->id, b->id);
}

static const struct row *row_before(const struct top *top, const char *id) {
  for (unsigned i = 0; i < top->count_before; i++)
    if (strcmp(top->before[i].id, id) == 0) return &top->before[i];
  return NULL;
}

static void put_rate(struct top *top, const char *name, uint64_t now, uint64_t before) {
  int64_t took_ms = top->seen_ms - top->seen_before_ms;
  if (now < before || took_ms <= 0) return;
  buffer_append_format(&top->document, ",\"%s\":%.1f", name, (double)(now - before) * 1000.0 / (double)took_ms);
}

/* The rows in their order, with rates where there was a look before, as one document. */
static bool merge(struct top *top, unsigned shown) {
  struct fault fault = {.status = STATUS_OK};
  buffer_reset(&top->document);
  buffer_append_text(&top->document, "{\"items\":[");
  for (unsigned i = 0; i < shown; i++) {
    const struct row *row = &top->rows[i], *before = row_before(top, row->id);
    if (i > 0) buffer_append_char(&top->document, ',');
    buffer_append(&top->document, top->objects.data + row->start, row->size);
    if (before != NULL) put_rate(top, "accepted_per_s", row->accepted, before->accepted);
    if (before != NULL) put_rate(top, "ended_per_s", row->ended, before->ended);
    buffer_append_char(&top->document, '}');
  }
  buffer_append_text(&top->document, "]}");
  return !top->document.failed && !top->objects.failed &&
         json_parse(&top->merged, buffer_bytes(&top->document), &fault) == STATUS_OK;
}

/* ---- What is shown ---- */

static unsigned height(void) {
  struct winsize size;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row != 0 ? size.ws_row : height_default;
}

/* A line of the screen: cut to its width; all of it is ASCII. */
static void put_line(struct top *top, const char *text) {
  buffer_append_format(&top->out, "%.*s", (int)top->screen.width, text);
}

static void draw(struct top *top, uint32_t items, unsigned shown) {
  char line[512];
  buffer_append_text(&top->out, "\033[H\033[J");
  (void)snprintf(line, sizeof line, "%u queues, every %" PRIu64 " ms; q ends", top->count, top->options->interval_ms);
  put_line(top, line);
  buffer_append_char(&top->out, '\n');
  print_table(&top->out, &top->screen, &top->merged, items, columns, column_count);
  if (top->out.size > 0 && top->out.data[top->out.size - 1] == '\n') top->out.size--; /* the last line must not scroll */
  (void)snprintf(line, sizeof line, "%s%u more", top->more ? "at least " : "", top->count - shown);
  if (top->count > shown || top->more) buffer_append_char(&top->out, '\n');
  if (top->count > shown || top->more) put_line(top, line);
}

static int show(struct top *top) {
  enum print_format format = top->options->online.format;
  unsigned lines = height(), shown = top->count;
  if (top->live && shown + lines_around > lines) shown = lines > lines_around ? lines - lines_around : 0;
  qsort(top->rows, top->count, sizeof *top->rows, compare);
  if (!merge(top, shown)) return ctl_say(exit_cannot_run, "the answer is none of Orbit's");
  uint32_t items = json_member(&top->merged, 0, "items");
  if (top->live) {
    top->screen = print_screen_of_stdout(); /* it may have been made larger */
    draw(top, items, shown);
  } else if (format == PRINT_CSV) {
    if (!top->csv_begun) print_csv_head(&top->out, columns, column_count, NULL);
    top->csv_begun = true;
    for (uint32_t item = items + 1; item < top->merged.tokens[items].next; item = top->merged.tokens[item].next)
      print_csv_row(&top->out, &top->merged, item, columns, column_count, bytes_of(NULL, 0));
  } else {
    print_rows(&top->out, format, &top->merged, 0, items, columns, column_count);
  }
  if (!top->live && top->more) (void)ctl_say(exit_done, "only the first %d queues are looked at", queues_max);
  return print_flush(&top->out, top->live ? PRINT_TEXT : format);
}

/* Lost after it was there: says so and goes on. */
static int lost(struct top *top, const struct orbit_error *error) {
  struct online *online = &top->options->online;
  if (!top->answered || !online_may_pass(error)) {
    if (top->live) terminal_leave();
    top->live = false;
    return online_failed(online, error, NULL);
  }
  if (top->live) {
    buffer_append_text(&top->out, "\033[H\033[K");
    put_line(top, "NO ANSWER from the server, asking again; what stands here is old; q ends");
    top->away = true;
    return print_flush(&top->out, PRINT_TEXT);
  }
  if (!top->away)
    (void)ctl_say(exit_done, "no answer from %s (%s); asking again until there is one", online->credentials->url,
                  error->message);
  top->away = true;
  return exit_done;
}

static int go_on(struct top *top) {
  uint64_t rounds = top->options->rounds != 0 ? top->options->rounds : top->live ? UINT64_MAX : 1;
  for (uint64_t done = 0;;) {
    struct orbit_error error;
    int code;
    if (read_queues(top, &error) == ORBIT_OK) {
      if (!top->answered && top->live && (code = terminal_enter(top)) != exit_done) return code;
      top->answered = true;
      top->away = false;
      code = show(top);
      done++;
    } else {
      if (!top->answered) top->live = false; /* the terminal is still as it was */
      code = lost(top, &error);
    }
    if (code != exit_done || done >= rounds || pause_or_quit(top)) return code;
  }
}

int ctl_top(int argc, char **argv) {
  static const struct argp_child children[] = {{&online_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  static const struct argp argp = {
      option_rows,
      take_option,
      NULL,
      "Show the queues as they change: what needs review first, then what waits.\vOn a terminal a screen that is drawn anew "
      "until q or Ctrl-C; elsewhere, and with -o json, jsonl or csv, one table or document a look. Rates are those since the "
      "look before.",
      children,
      NULL,
      NULL};
  struct top_options options = {.interval_ms = interval_ms_default};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  const char *term = getenv("TERM");
  struct top top = {.options = &options, .screen = print_screen_of_stdout()};
  top.live = top.screen.terminal && options.online.format == PRINT_TEXT && (term == NULL || strcmp(term, "dumb") != 0);
  json_init_answers(&top.json);
  json_init_answers(&top.merged);
  buffer_init(&top.objects, 4 * (size_t)json_text_bytes_max);
  buffer_init(&top.document, 4 * (size_t)json_text_bytes_max);
  buffer_init(&top.out, 4 * (size_t)json_text_bytes_max);
  top.rows = calloc(queues_max, sizeof *top.rows);
  top.before = calloc(queues_max, sizeof *top.before);
  int code = top.rows == NULL || top.before == NULL ? ctl_say(exit_cannot_run, "out of memory") : online_open(&options.online);
  if (code == exit_done) code = go_on(&top);
  if (top.live && top.answered) terminal_leave();
  online_close(&options.online);
  json_clear(&top.json);
  json_clear(&top.merged);
  buffer_clear(&top.objects);
  buffer_clear(&top.document);
  buffer_clear(&top.out);
  free(top.rows);
  free(top.before);
  return code;
}
