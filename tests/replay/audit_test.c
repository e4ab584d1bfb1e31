/* orbit-audit on the story of one payment, whose every time is known: refused once and safe to try again, then silence, a
 * review a day later, a late report that is evidence, a manual retry, a cancel. The log is the engine's own. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/server.h"
#include "base/guard.h"
#include "engine/world.h"

struct story {
  struct world world;
  struct id task, child;
  char task_text[33], child_text[33], queue_text[33], who_text[33];
  uint64_t first_seq, last_seq; /* of the story: what comes before made the objects */
  char *outside;                /* a directory for what is written */
};

static struct story *tell(void) {
  struct story *story = guard_calloc(1, sizeof *story);
  struct world *world = &story->world;
  world_open(world);
  story->first_seq = journal_last_seq(world->journal) + 1;
  story->task = world_submitted(world, "payment").id;
  struct push push = *world_assigned(world, 1);
  world_advance_ms(world, 100);
  world_start(world, &push);
  world_advance_ms(world, 900);
  (void)world_report(world, &push, OUTCOME_FAILED, true);
  world_advance_ms(world, 1000);
  push = *world_take(world, MAIL_ASSIGN, 1);
  world_start(world, &push);
  world_advance_ms(world, lease_ms_default);
  world_advance_ms(world, 24 * 3600 * 1000);
  struct command command =
      world_review(world, &story->task, world_task(world, &story->task).revision, OUTCOME_FAILED, "review");
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
  command = world_finish(world, &push, OUTCOME_SUCCEEDED, false);
  assert_true(world_do(world, &command).as.worker.evidence);
  world_bye(world, 1);
  command = world_retry(world, &story->task, world_task(world, &story->task).revision, "retry");
  struct answer answer = world_do(world, &command);
  assert_int_equal(answer.status, STATUS_OK);
  story->child = answer.as.task.id;
  command = world_cancel(world, &story->child, "cancel");
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
  story->last_seq = journal_last_seq(world->journal);
  (void)snprintf(story->task_text, sizeof story->task_text, "%s", id_text(&story->task).text);
  (void)snprintf(story->child_text, sizeof story->child_text, "%s", id_text(&story->child).text);
  (void)snprintf(story->queue_text, sizeof story->queue_text, "%s", id_text(&world->queue_id).text);
  (void)snprintf(story->who_text, sizeof story->who_text, "%s", id_text(&world->who.credential_id).text);
  story->outside = test_directory_make();
  return story;
}

static int begin(void **context) {
  *context = tell();
  return 0;
}

static int end(void **context) {
  struct story *story = *context;
  world_close(&story->world);
  test_directory_remove(story->outside);
  free(story);
  return 0;
}

/* ---- running it ---- */

/* `orbit-audit --data DATA …` to its end; no locale but C, unless given. */
static struct api_run audit_in(const char *data, const char *locale, const char *const *more) {
  const char *arguments[24] = {NULL, "--data", data};
  char program[512];
  const char *const environment[] = {locale, "TZ=Europe/Berlin", NULL};
  const struct api_run_options options = {.environment = environment};
  struct api_run run;
  (void)snprintf(program, sizeof program, "%s", api_program("orbit-audit"));
  arguments[0] = program;
  for (unsigned i = 0; more[i] != NULL; i++) {
    assert_true(i < 20);
    arguments[i + 3] = more[i];
  }
  api_run(arguments, &options, &run);
  if (run.code > 3 || strstr(run.err, "Sanitizer") != NULL) fail_msg("orbit-audit %s: %d: %s", more[0], run.code, run.err);
  return run;
}

#define AUDIT(story, ...) audit_in((story)->world.directory, "LC_ALL=C", (const char *const[]){__VA_ARGS__, NULL})

static void expect_code(const struct api_run *run, int code) {
  if (run->code != code) fail_msg("exit code %d instead of %d: %s%s", run->code, code, run->out, run->err);
}

static unsigned lines_of(const char *text) {
  unsigned count = 0;
  for (; (text = strchr(text, '\n')) != NULL; text++) count++;
  return count;
}

static void expect_text(const struct api_run *run, const char *text) {
  if (strstr(run->out, text) == NULL) fail_msg("no \"%s\" in:\n%s%s", text, run->out, run->err);
}

static void expect_no_text(const struct api_run *run, const char *text) {
  if (strstr(run->out, text) != NULL) fail_msg("\"%s\" in:\n%s", text, run->out);
}

/* ---- log ---- */

/* How many events each choice shows; the story has 18 (see tell). */
static void log_shows_what_is_asked_for(void **context) {
  struct story *story = *context;
  enum { all = 18 };
  const struct {
    const char *arguments[8];
    unsigned lines;
  } rows[] = {
      {{"log", "--since", "2025-01-01"}, (unsigned)story->last_seq},
      {{"log", "--task", story->task_text}, 14},
      {{"log", "--task", story->child_text}, 4},
      {{"log", "--queue", story->queue_text}, all + 1},
      {{"log", "--type", "task.leased"}, 2},
      {{"log", "--type", "task.leased", "--type", "task.started"}, 4},
      {{"log", "--type", "attempt.*"}, 2},
      {{"log", "--type", "audit.recorded"}, 3},
      {{"log", "--action", "task.finish"}, 1},
      {{"log", "--action", "task.expire"}, 1},
      {{"log", "--action", "task.*", "--task", story->task_text}, 9},
      {{"log", "--action", "task.review"}, 1},
      {{"log", "--actor", story->who_text, "--type", "task.reviewed"}, 1},
      {{"log", "--actor", story->who_text, "--type", "task.leased"}, 0},
      {{"log", "--grep", "evidence_ref=evidence:[a-z-]+-001"}, 2},
      {{"log", "--grep", "no such thing"}, 0},
      {{"log", "--since", "2026-01-02"}, 9},
      {{"log", "--until", "2026-01-01T00:00:00Z", "--task", story->task_text}, 2},
      {{"log", "--since", "2026-01-01 00:00:01", "--until", "2026-01-01 00:00:01"}, 2},
      {{"log", "--local", "--since", "2026-01-01 01:00:01", "--until", "2026-01-01 01:00:01"}, 2},
      {{"log", "--since", "2030-01-01"}, 0},
      {{"log", "-n", "5"}, 5},
      {{"log", "-n", "0"}, 0},
      {{"log", "-n", "all"}, (unsigned)story->last_seq},
      {{"log", "-r", "-n", "5"}, 5},
      {{"log", "-r"}, (unsigned)story->last_seq},
      {{"log", "-n", "1000000"}, (unsigned)story->last_seq},
      {{"log", "-n", "1", "--type", "task.leased"}, 1},
  };
  assert_int_equal(story->last_seq - story->first_seq + 1, all);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct api_run run = audit_in(story->world.directory, "LC_ALL=C", rows[i].arguments);
    if (run.code != 0 || lines_of(run.out) != rows[i].lines)
      fail_msg("%s %s: code %d, %u lines instead of %u:\n%s%s", rows[i].arguments[1], rows[i].arguments[2], run.code,
               lines_of(run.out), rows[i].lines, run.out, run.err);
    api_run_clear(&run);
  }
}

/* Backwards is forwards from the other end, and the tail is its end. */
static void order_does_not_change_what_is_there(void **context) {
  struct story *story = *context;
  struct api_run forwards = AUDIT(story, "log"), backwards = AUDIT(story, "log", "-r"), tail = AUDIT(story, "log", "-n", "3");
  const char *line = backwards.out + backwards.out_size;
  assert_int_equal(forwards.out_size, backwards.out_size);
  for (const char *at = forwards.out; *at != 0; at = strchr(at, '\n') + 1) {
    size_t size = (size_t)(strchr(at, '\n') + 1 - at);
    line -= size;
    assert_memory_equal(at, line, size);
  }
  assert_string_equal(forwards.out + forwards.out_size - tail.out_size, tail.out);
  api_run_clear(&forwards);
  api_run_clear(&backwards);
  api_run_clear(&tail);
}

static void every_line_of_jsonl_is_an_event(void **context) {
  static const char *const members[] = {"seq", "time", "type", "stream", "operation_id", "actor"};
  struct story *story = *context;
  struct api_run run = AUDIT(story, "log", "-o", "jsonl");
  struct json json;
  uint64_t seq = 0;
  json_init(&json);
  expect_code(&run, 0);
  for (char *at = run.out, *next; *at != 0; at = next) {
    struct fault fault = {.message = ""};
    next = strchr(at, '\n') + 1;
    next[-1] = 0;
    if (json_parse(&json, bytes_text(at), &fault) != STATUS_OK) fail_msg("%s: %s", fault.message, at);
    uint32_t token = 1;
    for (unsigned i = 0; i < sizeof members / sizeof members[0]; i++, token = json.tokens[token + 1].next)
      if (!bytes_equal_text(json_string(&json, token), members[i])) fail_msg("member %u is not %s: %s", i, members[i], at);
    assert_int_equal(strtoull((const char *)json_raw(&json, json_member(&json, 0, "seq")).data, NULL, 10), ++seq);
  }
  assert_int_equal(seq, story->last_seq);
  api_run_clear(&run);
  run = AUDIT(story, "log", "-o", "json", "--type", "task.*");
  struct fault fault = {.message = ""};
  assert_int_equal(json_parse(&json, bytes_text(run.out), &fault), STATUS_OK);
  assert_int_equal(json.tokens[0].count, 12);
  api_run_clear(&run);
  json_clear(&json);
}

static void payloads_are_shown_only_when_asked_for(void **context) {
  static const char *const formats[] = {"text", "json", "jsonl", "csv", "msgpack"};
  struct story *story = *context;
  for (unsigned i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    struct api_run hidden = AUDIT(story, "log", "-o", formats[i]), shown = AUDIT(story, "log", "-o", formats[i], "--payload");
    expect_code(&hidden, 0);
    expect_code(&shown, 0);
    assert_null(memmem(hidden.out, hidden.out_size, "1.10", 4));
    assert_null(memmem(hidden.out, hidden.out_size, "9007199254740993", 16));
    assert_non_null(memmem(shown.out, shown.out_size, "1.10", 4));
    assert_non_null(memmem(shown.out, shown.out_size, "9007199254740993", 16));
    assert_non_null(memmem(hidden.out, hidden.out_size, "looked at the books", 19));
    api_run_clear(&hidden);
    api_run_clear(&shown);
  }
}

/* ---- task ---- */

static void a_life_is_drawn_in_eighty_columns(void **context) {
  struct story *story = *context;
  struct api_run run = AUDIT(story, "task", story->task_text);
  expect_code(&run, 0);
  for (const char *at = run.out; *at != 0; at = strchr(at, '\n') + 1) {
    size_t size = strcspn(at, "\n");
    if (size > 80) fail_msg("%zu columns: %.*s", size, (int)size, at);
    for (size_t i = 0; i < size; i++) assert_true(at[i] >= ' ' && at[i] < 127); /* no colour, no boxes */
  }
  expect_text(&run, "FAILED, revision 8");
  expect_text(&run, "   1 |-#");
  expect_text(&run, "| FAILED retryable");
  expect_text(&run, "| UNKNOWN LEASE_EXPIRED");
  expect_text(&run, "2026-01-01 (UTC)");
  expect_text(&run, "2026-01-02 (UTC)");
  expect_text(&run, "decision RETRYABLE_FAILURE: WAITING until");
  expect_text(&run, "decision RECONCILIATION_REQUIRED: NEEDS_REVIEW");
  expect_text(&run, "evidence, without authority: attempt 2 reports SUCCEEDED");
  expect_text(&run, "(TASK_ENDED, epoch 2)");
  expect_text(&run, "\"looked at the books\"");
  expect_text(&run, story->child_text);
  expect_no_text(&run, "1.10");
  api_run_clear(&run);
  run = audit_in(story->world.directory, "LC_ALL=C.UTF-8", (const char *const[]){"task", story->child_text, "--payload", NULL});
  expect_code(&run, 0);
  expect_text(&run, "CANCELLED, revision 2");
  expect_text(&run, story->task_text);
  expect_text(&run, "{\"n\":1.10}");
  api_run_clear(&run);
  run = audit_in(story->world.directory, "LC_ALL=C.UTF-8", (const char *const[]){"task", story->task_text, NULL});
  expect_text(&run, "█");
  api_run_clear(&run);
  run = AUDIT(story, "task", "00000000000000000000000000000001");
  expect_code(&run, 1);
  assert_string_equal(run.out, "");
  api_run_clear(&run);
}

/* What `orbit-audit --data DATA log` says to a terminal of so many columns; the caller frees. */
static char *log_at_terminal(const char *data, unsigned short columns) {
  struct winsize size = {.ws_row = 24, .ws_col = columns};
  struct buffer text;
  char piece[4096];
  int terminal, code;
  ssize_t got;
  pid_t child = forkpty(&terminal, NULL, NULL, &size);
  assert_true(child >= 0);
  if (child == 0) {
    (void)setenv("LC_ALL", "C", 1), (void)setenv("TZ", "Europe/Berlin", 1), (void)setenv("TERM", "dumb", 1);
    (void)execl(api_program("orbit-audit"), "orbit-audit", "--data", data, "log", (char *)NULL);
    _exit(127);
  }
  buffer_init(&text, SIZE_MAX);
  while ((got = read(terminal, piece, sizeof piece)) > 0) buffer_append(&text, piece, (size_t)got); /* its end is EIO */
  (void)close(terminal);
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_int_equal(code, 0);
  buffer_append_char(&text, 0);
  return (char *)text.data;
}

static void remove_space(char *text) {
  char *to = text;
  for (const char *from = text; *from != 0; from++)
    if (strchr(" \r\n", *from) == NULL) *to++ = *from;
  *to = 0;
}

/* A terminal shows the same as a pipe gets, within its width; a pipe gets one line an event. */
static void a_log_folds_at_a_terminal(void **context) {
  struct story *story = *context;
  struct api_run run = AUDIT(story, "log");
  unsigned events = lines_of(run.out);
  remove_space(run.out);
  for (unsigned short columns = 80; columns <= 120; columns = (unsigned short)(columns + 40)) {
    char *text = log_at_terminal(story->world.directory, columns);
    unsigned heads = 0;
    for (const char *at = text; *at != 0; at = strchr(at, '\n') + 1) {
      size_t width = strcspn(at, "\r\n");
      if (width > columns) fail_msg("%zu columns: %.*s", width, (int)width, at);
      heads += at[0] != ' ';
    }
    assert_int_equal(heads, events);
    assert_true(lines_of(text) > 2 * events);
    remove_space(text);
    assert_string_equal(text, run.out);
    free(text);
  }
  api_run_clear(&run);
}

/* ---- operations ---- */

static void operations_say_who_why_and_on_what_evidence(void **context) {
  struct story *story = *context;
  struct api_run run = AUDIT(story, "operations", "-o", "jsonl");
  expect_code(&run, 0);
  assert_int_equal(lines_of(run.out), 3);
  expect_text(&run, "\"action\":\"task.review\"");
  expect_text(&run,
              "\"reason\":\"looked at the "
              "books\",\"evidence_ref\":\"evidence:reconciliation-001\",\"before\":{\"state\":\"NEEDS_REVIEW\"");
  api_run_clear(&run);
  const struct {
    const char *arguments[8];
    unsigned lines;
  } rows[] = {
      {{"operations", "-o", "csv", "--all"}, 1 + 11},
      {{"operations", "-o", "csv", "--task", story->task_text}, 1 + 9},
      {{"operations", "-o", "csv", "--action", "task.expire"}, 1 + 1},
      {{"operations", "-o", "csv", "--action", "task.l*"}, 1 + 2},
      {{"operations", "-o", "csv", "--actor", story->who_text}, 1 + 3},
      {{"operations", "-o", "csv", "--until", "2026-01-01 12:00"}, 1},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    run = audit_in(story->world.directory, "LC_ALL=C", rows[i].arguments);
    if (run.code != 0 || lines_of(run.out) != rows[i].lines)
      fail_msg("row %u: code %d, %u lines instead of %u:\n%s%s", i, run.code, lines_of(run.out), rows[i].lines, run.out,
               run.err);
    api_run_clear(&run);
  }
}

/* ---- export, verify ---- */

static void spoil(const char *path, off_t at) {
  char byte = 0;
  cleanup(guard_close) int file = open(path, O_RDWR);
  assert_true(file >= 0 && pread(file, &byte, 1, at) == 1);
  byte = (char)(byte ^ 1);
  assert_int_equal(pwrite(file, &byte, 1, at), 1);
}

static void an_export_is_what_its_manifest_says(void **context) {
  static const char *const formats[] = {"jsonl", "csv", "msgpack"};
  struct story *story = *context;
  for (unsigned i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    char out[512], events[600], manifest[600];
    (void)snprintf(out, sizeof out, "%s/%s/", story->outside, formats[i]);
    (void)snprintf(events, sizeof events, "%sevents.%s", out, formats[i]);
    (void)snprintf(manifest, sizeof manifest, "%smanifest.json", out);
    struct api_run run = AUDIT(story, "export", out, "-o", formats[i]);
    expect_code(&run, 0);
    assert_string_equal(run.out, "");
    api_run_clear(&run);
    run = AUDIT(story, "export", out, "-o", formats[i]); /* never over what is there */
    expect_code(&run, 3);
    api_run_clear(&run);
    run = AUDIT(story, "verify", out);
    expect_code(&run, 0);
    expect_text(&run, "chain compared with the log, 0 findings");
    api_run_clear(&run);
    spoil(events, 100);
    run = AUDIT(story, "verify", out);
    expect_code(&run, 1);
    expect_text(&run, "its BLAKE2b-256 is");
    api_run_clear(&run);
    spoil(events, 100);
    struct bytes text = test_file_read(manifest);
    const char *chain = memmem(text.data, text.size, "\"after_last\": \"", 15);
    assert_non_null(chain);
    spoil(manifest, (off_t)(chain - (const char *)text.data) + 15);
    free((void *)(uintptr_t)text.data);
    run = AUDIT(story, "verify", out);
    expect_code(&run, 1);
    expect_text(&run, "the log's chain is");
    api_run_clear(&run);
  }
}

static void an_export_may_be_a_part(void **context) {
  struct story *story = *context;
  char out[512], wanted[64];
  (void)snprintf(out, sizeof out, "%s/part", story->outside);
  struct api_run run = AUDIT(story, "export", out, "--since", "2026-01-02", "--type", "task.*", "--payload");
  expect_code(&run, 0);
  api_run_clear(&run);
  struct bytes events = test_file_read(out);
  assert_non_null(memmem(events.data, events.size, "9007199254740993", 16));
  free((void *)(uintptr_t)events.data);
  (void)snprintf(out, sizeof out, "%s/part.manifest.json", story->outside);
  struct bytes manifest = test_file_read(out);
  (void)snprintf(wanted, sizeof wanted, "\"last_seq\": %" PRIu64, story->last_seq);
  assert_non_null(memmem(manifest.data, manifest.size, wanted, strlen(wanted)));
  assert_non_null(
      memmem(manifest.data, manifest.size, "\"filter\": {\"since\": \"2026-01-02T00:00:00Z\", \"types\": [\"task.*\"]}", 64));
  assert_non_null(memmem(manifest.data, manifest.size, "\"task.reviewed\": 1", 18));
  free((void *)(uintptr_t)manifest.data);
}

/* The world makes its ten objects without audit records: each of them is a finding, and nothing of the story is. */
static void verify_finds_the_changes_without_record(void **context) {
  struct story *story = *context;
  struct api_run run = AUDIT(story, "verify");
  expect_code(&run, 1);
  expect_text(&run, "seq 1: its audit record is not in its commit");
  expect_text(&run, "seq 10: its audit record is not in its commit");
  expect_text(&run, "3 audit records");
  expect_text(&run, " 10 findings\n");
  expect_text(&run, "unused: ");
  assert_int_equal(lines_of(run.out), 13);
  api_run_clear(&run);
}

/* ---- what it reads ---- */

static void copy_log(const struct story *story, const char *to, bool spoiled) {
  char from[512], path[512];
  (void)snprintf(from, sizeof from, "%s/log/data.mdb", story->world.directory);
  (void)snprintf(path, sizeof path, "%s/log", to);
  assert_true(mkdir(to, 0700) == 0 && mkdir(path, 0700) == 0);
  (void)snprintf(path, sizeof path, "%s/log/data.mdb", to);
  struct bytes bytes = test_file_read(from);
  cleanup(guard_close) int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  assert_true(file >= 0 && write(file, bytes.data, bytes.size) == (ssize_t)bytes.size);
  /* A letter of the reviewer's reason; pages that are not used any more may hold it, too. */
  const uint8_t *end = bytes.data + bytes.size, *at = bytes.data;
  while (spoiled && (at = memmem(at, (size_t)(end - at), "looked at the books", 19)) != NULL) spoil(path, at++ - bytes.data);
  free((void *)(uintptr_t)bytes.data);
}

static unsigned entries_of(const char *path) {
  unsigned count = 0;
  DIR *directory = opendir(path);
  assert_non_null(directory);
  while (readdir(directory) != NULL) count++;
  (void)closedir(directory);
  return count;
}

/* A copy that nobody may write to reads the same, and nothing new stands in it. */
static void nothing_is_written_where_it_reads(void **context) {
  struct story *story = *context;
  char copy[512], log[600];
  (void)snprintf(copy, sizeof copy, "%s/copy", story->outside);
  (void)snprintf(log, sizeof log, "%s/log", copy);
  copy_log(story, copy, false);
  assert_int_equal(chmod(log, 0500), 0);
  struct api_run there = AUDIT(story, "log", "-o", "jsonl");
  struct api_run here = audit_in(copy, "LC_ALL=C", (const char *const[]){"log", "-o", "jsonl", NULL});
  expect_code(&here, 0);
  assert_string_equal(there.out, here.out);
  assert_int_equal(entries_of(log), 3); /* ".", "..", data.mdb */
  assert_int_equal(entries_of(copy), 3);
  assert_int_equal(chmod(log, 0700), 0);
  api_run_clear(&there);
  api_run_clear(&here);
}

static void damage_is_told_and_the_rest_is_shown(void **context) {
  struct story *story = *context;
  char copy[512];
  (void)snprintf(copy, sizeof copy, "%s/spoiled", story->outside);
  copy_log(story, copy, true);
  struct api_run run = audit_in(copy, "LC_ALL=C", (const char *const[]){"log", "--type", "*", NULL});
  expect_code(&run, 1);
  assert_int_equal(lines_of(run.out), story->last_seq - 1);
  assert_int_equal(lines_of(run.err), 1);
  assert_non_null(strstr(run.err, "the chain is broken"));
  api_run_clear(&run);
  run = audit_in(copy, "LC_ALL=C", (const char *const[]){"log", "-r", "-n", "1", NULL}); /* the newest is sound */
  assert_int_equal(lines_of(run.out), 1);
  api_run_clear(&run);
  run = audit_in(copy, "LC_ALL=C", (const char *const[]){"task", story->task_text, NULL});
  expect_code(&run, 1);
  expect_text(&run, "review finds FAILED");
  api_run_clear(&run);
  run = audit_in(copy, "LC_ALL=C", (const char *const[]){"verify", NULL});
  expect_code(&run, 1);
  expect_text(&run, "chain is broken");
  api_run_clear(&run);
}

/* Waits until the file has so many lines. */
static bool has_lines(const char *path, unsigned lines) {
  struct bytes text = test_file_read(path);
  unsigned count = 0;
  for (size_t i = 0; i < text.size; i++) count += text.data[i] == '\n';
  free((void *)(uintptr_t)text.data);
  return count >= lines;
}

static void a_follower_sees_each_commit_and_may_die(void **context) {
  struct story *story = *context;
  char program[512], out[512];
  (void)snprintf(program, sizeof program, "%s", api_program("orbit-audit"));
  (void)snprintf(out, sizeof out, "%s/followed", story->outside);
  const char *const arguments[] = {program, "--data", story->world.directory, "log", "-f", "-n", "2", "-o", "jsonl", NULL};
  pid_t pid = api_spawn(arguments, NULL, out, NULL);
  api_wait(has_lines(out, 2));
  (void)world_submitted(&story->world, "followed-1");
  api_wait(has_lines(out, 3));
  (void)world_submitted(&story->world, "followed-2");
  api_wait(has_lines(out, 4));
  assert_int_equal(kill(pid, SIGKILL), 0);
  assert_int_equal(api_wait_exit(pid), 128 + SIGKILL);
  (void)world_submitted(&story->world, "followed-3");
  world_check(&story->world);
}

static void misuse_is_refused_with_a_word(void **context) {
  struct story *story = *context;
  const struct {
    const char *arguments[8];
    int code;
    const char *word;
  } rows[] = {
      {{"log", "--since", "soon"}, 2, "--since"},
      {{"log", "--task", "abc"}, 2, "--task"},
      {{"log", "--type", "task.eaten"}, 2, "task.eaten"},
      {{"log", "--grep", "("}, 2, "--grep"},
      {{"log", "-n", "x"}, 2, "--lines"},
      {{"log", "-f", "-r"}, 2, "--reverse"},
      {{"log", "-f", "--until", "now"}, 2, "--until"},
      {{"log", "-o", "xml"}, 2, "msgpack"},
      {{"log", "more"}, 2, "more"},
      {{"task"}, 2, "TASK"},
      {{"task", "abc"}, 2, "abc"},
      {{"eat"}, 2, "eat"},
      {{"export"}, 2, "OUT"},
      {{"export", "x", "-o", "text"}, 2, "jsonl"},
      {{"operations", "-f"}, 2, "log"},
      {{"operations", "--grep", "x"}, 2, "--grep"},
      {{"operations", "--payload"}, 2, "--payload"},
      {{"export", "x", "-n", "3"}, 2, "--lines"},
      {{"log", "--all"}, 2, "--all"},
      {{"task", "0190000000000000000000000000000a", "--since", "now"}, 2, "task takes everything"},
      {{"task", "0190000000000000000000000000000a", "-r"}, 2, "--reverse"},
      {{"verify", "--task", "0190000000000000000000000000000a"}, 2, "verify takes everything"},
      {{"verify", "--type", "task.*"}, 2, "verify takes everything"},
      {{"verify", "/nonexistent/export"}, 3, "/nonexistent/export"},
      {{"log", "--data", "/nonexistent"}, 3, "/nonexistent"},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct api_run run = audit_in(story->world.directory, "LC_ALL=C", rows[i].arguments);
    if (run.code != rows[i].code || strstr(run.err, rows[i].word) == NULL || run.out[0] != 0)
      fail_msg("row %u: code %d: %s%s", i, run.code, run.out, run.err);
    api_run_clear(&run);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(log_shows_what_is_asked_for),
      cmocka_unit_test(order_does_not_change_what_is_there),
      cmocka_unit_test(every_line_of_jsonl_is_an_event),
      cmocka_unit_test(payloads_are_shown_only_when_asked_for),
      cmocka_unit_test(a_life_is_drawn_in_eighty_columns),
      cmocka_unit_test(a_log_folds_at_a_terminal),
      cmocka_unit_test(operations_say_who_why_and_on_what_evidence),
      cmocka_unit_test(an_export_is_what_its_manifest_says),
      cmocka_unit_test(an_export_may_be_a_part),
      cmocka_unit_test(verify_finds_the_changes_without_record),
      cmocka_unit_test(nothing_is_written_where_it_reads),
      cmocka_unit_test(damage_is_told_and_the_rest_is_shown),
      cmocka_unit_test(misuse_is_refused_with_a_word),
      cmocka_unit_test(a_follower_sees_each_commit_and_may_die),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
