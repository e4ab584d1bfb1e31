/* orbit-audit log: events in the manner of journalctl. Memory does not grow with the log, nor with what is printed. */
#include "audit/audit.h"
#include "base/guard.h"

enum { flush_bytes = 64 * 1024, follow_wait_ms = 200, follow_lines_default = 10 };

struct printing {
  const struct request *request;
  struct scan *scan;
  struct filter *filter;
  struct out out;
  struct buffer plain; /* the line as --grep sees it */
  uint64_t printed, limit;
  bool told; /* what is damaged in this range was told before */
};

/* --grep sees the line as it would stand in a file: without colour; what is no line (JSON, msgpack) as a line of JSON. */
static bool line_is_wanted(struct printing *printing, const struct event *event) {
  static const struct out plain = {.colour = false};
  const struct request *request = printing->request;
  if (request->grep == NULL) return true;
  buffer_reset(&printing->plain);
  if (request->cli.output == OUTPUT_TEXT) line_text(&plain, request, event, &printing->plain);
  else if (request->cli.output == OUTPUT_CSV) line_csv(request, event, &printing->plain);
  else line_json(request, event, &printing->plain);
  buffer_append_char(&printing->plain, 0); /* none stands in it: texts hold no U+0000 */
  return filter_line(printing->filter, (const char *)printing->plain.data);
}

static void print_event(struct printing *printing, const struct event *event) {
  struct buffer *text = &printing->out.text;
  if (printing->request->cli.output == OUTPUT_JSON) buffer_append_text(text, printing->printed == 0 ? "\n" : ",\n");
  if (printing->request->cli.output == OUTPUT_TEXT && printing->out.is_terminal)
    line_folded(&printing->out, printing->request, event);
  else line_append(&printing->out, printing->request, event, text);
}

/* The next event that is wanted. False: no more, or stdout has failed. */
static bool next_wanted(struct printing *printing, struct event *ret_event) {
  struct event header;
  struct bytes record;
  for (;;) {
    struct fault fault = {.message = ""};
    if (scan_peek(printing->scan, &header) && !filter_may(printing->filter, &header)) {
      scan_skip(printing->scan);
      continue;
    }
    enum status status = scan_next(printing->scan, ret_event, &record, &fault);
    if (status == STATUS_END) return false;
    if (status != STATUS_OK) {
      if (printing->told) continue;
      if (!out_flush(&printing->out)) return false;
      (void)tool_say(0, "%s", fault.message);
      continue;
    }
    if (filter_takes(printing->filter, ret_event) && line_is_wanted(printing, ret_event)) return true;
  }
}

/* Prints what is wanted of first … last, up to the limit. False: stdout has failed. */
static bool print_range(struct printing *printing, uint64_t first, uint64_t last) {
  struct event event;
  scan_range(printing->scan, first, last, printing->request->reverse);
  while (printing->printed < printing->limit && next_wanted(printing, &event)) {
    print_event(printing, &event);
    printing->printed++;
    if (printing->out.text.size >= flush_bytes && !out_flush(&printing->out)) return false;
  }
  return out_flush(&printing->out);
}

/* The seq with which the last `lines` wanted events begin. */
static uint64_t find_tail(struct printing *printing, uint64_t first, uint64_t last, uint64_t lines) {
  struct event event;
  uint64_t start = last + 1, count = 0;
  scan_range(printing->scan, first, last, true);
  while (count < lines && next_wanted(printing, &event)) {
    start = event.seq;
    count++;
  }
  printing->told = true; /* also for the walk that prints them */
  return count < lines ? first : start;
}

/* Prints what is committed from here on, until the reader of stdout goes. Each look is a fresh one, and
 * pins nothing while it prints or waits. */
static void follow(struct printing *printing, uint64_t done) {
  printing->limit = UINT64_MAX;
  printing->told = false;
  for (;;) {
    uint64_t last = scan_last_seq(printing->scan);
    if (last > done) {
      if (!print_range(printing, done + 1, last)) return;
      done = last;
    } else if (!out_wait(&printing->out, follow_wait_ms)) {
      return;
    }
  }
}

static void print_log(struct printing *printing) {
  const struct request *request = printing->request;
  uint64_t first = request->since_us != 0 ? scan_seq_at(printing->scan, request->since_us) : 1;
  uint64_t last =
      request->until_us != 0 ? scan_seq_at(printing->scan, request->until_us + 1) - 1 : scan_last_seq(printing->scan);
  uint64_t lines = request->lines;
  bool has_lines = request->has_lines;
  if (!id_is_zero(&request->task)) {
    uint64_t accepted = scan_seq_of_task(printing->scan, &request->task);
    if (accepted > first) first = accepted;
  }
  if (request->follow && !has_lines && request->since_us == 0) {
    has_lines = true;
    lines = follow_lines_default;
  }
  if (has_lines && lines != UINT64_MAX && !request->reverse) first = find_tail(printing, first, last, lines);
  printing->limit = has_lines && request->reverse ? lines : UINT64_MAX;
  if (request->cli.output == OUTPUT_CSV) line_csv_head(&printing->out.text);
  if (request->cli.output == OUTPUT_JSON) buffer_append_char(&printing->out.text, '[');
  bool written = print_range(printing, first, last);
  if (written && request->follow) follow(printing, last);
  if (request->cli.output == OUTPUT_JSON) buffer_append_text(&printing->out.text, "\n]\n");
}

int audit_log(const struct request *request) {
  struct printing printing = {.request = request};
  if (request->cli.argument != NULL) return tool_say(exit_misuse, "log takes no argument: \"%s\"", request->cli.argument);
  if (request->follow && (request->reverse || request->until_us != 0))
    return tool_say(exit_misuse, "--follow goes on for ever: it cannot be had with --reverse or --until");
  if (request->follow && request->cli.output == OUTPUT_JSON)
    return tool_say(exit_misuse, "--follow never ends an array: ask for -o jsonl");
  out_begin(&printing.out);
  printing.out.is_data = request->cli.output != OUTPUT_TEXT;
  if (request->cli.output == OUTPUT_MSGPACK && printing.out.is_terminal)
    return out_end(&printing.out, tool_say(exit_misuse, "msgpack is no text: send it into a file or another program"));
  printing.scan = scan_new(request->cli.data);
  if (printing.scan == NULL) return exit_cannot_run;
  printing.filter = filter_new(request, printing.scan);
  buffer_init(&printing.plain, SIZE_MAX);
  print_log(&printing);
  int code = out_end(&printing.out, scan_is_damaged(printing.scan) ? exit_finding : exit_done);
  buffer_clear(&printing.plain);
  filter_free(printing.filter);
  scan_free(printing.scan);
  return code;
}
