/* orbit-replay state, queues, diff: what the views said at a moment, in the words in which people name one. The log is the
 * engine's own, and every time in it is known: a payment is accepted at 03:00, leased at 03:05, started at 03:06, nobody knows
 * from 03:12:30 on what came of it, and a review settles it at 09:30. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server.h"
#include "base/guard.h"
#include "engine/world.h"

enum { ms_per_minute = 60000 };

struct night {
  struct world world;
  char task[33], other[33], accepted_seq[24], review_seq[24];
};

static void advance_to(struct world *world, int64_t minutes, int64_t seconds) {
  static const int64_t start_us = INT64_C(1767225600) * 1000000; /* 2026-01-01T00:00:00Z */
  world_advance_ms(world, (start_us - world->now_us) / 1000 + minutes * ms_per_minute + seconds * 1000);
}

static int begin(void **context) {
  struct night *night = guard_calloc(1, sizeof *night);
  struct world *world = &night->world;
  world_open(world);
  advance_to(world, 180, 0);
  struct task task = world_submitted(world, "payment");
  (void)snprintf(night->accepted_seq, sizeof night->accepted_seq, "%" PRIu64, task.accepted_seq);
  advance_to(world, 185, 0);
  const struct push push = *world_assigned(world, 1);
  advance_to(world, 185, 20);
  world_start(world, &push);
  advance_to(world, 192, 30); /* long behind the lease */
  world_bye(world, 1);
  struct task other = world_submitted(world, "another");
  advance_to(world, 570, 0);
  struct command command = world_review(world, &task.id, world_task(world, &task.id).revision, OUTCOME_FAILED, "review");
  assert_int_equal(world_do(world, &command).status, STATUS_OK);
  (void)snprintf(night->review_seq, sizeof night->review_seq, "%" PRIu64, world_task(world, &task.id).last_seq);
  (void)snprintf(night->task, sizeof night->task, "%s", id_text(&task.id).text);
  (void)snprintf(night->other, sizeof night->other, "%s", id_text(&other.id).text);
  *context = night;
  return 0;
}

static int end(void **context) {
  struct night *night = *context;
  world_close(&night->world);
  free(night);
  return 0;
}

static struct api_run replay(const struct night *night, const char *const *more) {
  const char *arguments[24] = {NULL, "--data", night->world.directory};
  char program[512];
  const char *const environment[] = {"TZ=Europe/Berlin", "LC_ALL=C", NULL};
  const struct api_run_options options = {.environment = environment};
  struct api_run run;
  (void)snprintf(program, sizeof program, "%s", api_program("orbit-replay"));
  arguments[0] = program;
  for (unsigned i = 0; more[i] != NULL; i++) {
    assert_true(i < 20);
    arguments[i + 3] = more[i];
  }
  api_run(arguments, &options, &run);
  if (run.code > 3 || strstr(run.err, "Sanitizer") != NULL) fail_msg("orbit-replay %s: %d: %s", more[0], run.code, run.err);
  return run;
}

#define REPLAY(night, ...) replay((night), (const char *const[]){__VA_ARGS__, NULL})

static void expect(struct api_run *run, int code, const char *text) {
  const char *where = code == 0 ? run->out : run->err;
  if (run->code != code || strstr(where, text) == NULL)
    fail_msg("code %d, not %d with \"%s\":\n%s%s", run->code, code, text, run->out, run->err);
  api_run_clear(run);
}

/* ---- state ---- */

static void state_is_what_the_view_said(void **context) {
  const struct night *night = *context;
  const struct {
    const char *at, *state;
  } rows[] = {
      {"2026-01-01T03:00:00Z", "\"WAITING\",\"revision\":\"1\""},
      {"2026-01-01 03:04:59.999999", "\"WAITING\",\"revision\":\"1\""},
      {"2026-01-01 03:05", "\"LEASED\",\"revision\":\"2\""},
      {"2026-01-01T03:05:19.999Z", "\"LEASED\",\"revision\":\"2\""},
      {"2026-01-01 03:05:20 UTC", "\"RUNNING\",\"revision\":\"3\""},
      {"Thu 2026-01-01 04:05:20+01:00", "\"RUNNING\",\"revision\":\"3\""},
      {"@1767236720", "\"RUNNING\",\"revision\":\"3\""},
      {"2026-01-01 03:12:30", "\"NEEDS_REVIEW\",\"revision\":\"4\""},
      {"2026-01-01 09:29:59", "\"NEEDS_REVIEW\",\"revision\":\"4\""},
      {"2026-01-01 09:30", "\"FAILED\",\"revision\":\"5\""},
      {"now", "\"FAILED\",\"revision\":\"5\""},
      {"-1s", "\"FAILED\",\"revision\":\"5\""},
      {"1 minute ago", "\"FAILED\",\"revision\":\"5\""},
      {"999999", "\"FAILED\",\"revision\":\"5\""},
      {night->accepted_seq, "\"WAITING\",\"revision\":\"1\""},
      {night->review_seq, "\"FAILED\",\"revision\":\"5\""},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct api_run run = REPLAY(night, "state", night->task, "-o", "json", "--at", rows[i].at);
    print_message("--at %s\n", rows[i].at);
    expect(&run, 0, rows[i].state);
  }
  struct api_run run = REPLAY(night, "state", night->task, "-o", "json", "--at", "2026-01-01 04:05", "--local");
  expect(&run, 0, "\"LEASED\",\"revision\":\"2\"");
  run = REPLAY(night, "state", night->task, "--at", "2026-01-01 02:59:59");
  expect(&run, 1, "there was no task");
  run = REPLAY(night, "state", "00000000000000000000000000000001");
  expect(&run, 1, "there was no task");
}

static void state_reads_well_at_eighty_columns(void **context) {
  const struct night *night = *context;
  static const char *const rows[] = {": NEEDS_REVIEW, revision 4\n", "  in doubt      whether it had an effect is not known\n",
                                     "  attempt 1     UNKNOWN, decision RECONCILIATION_REQUIRED, epoch 1",
                                     "                started  2026-01-01T03:05:20.000000Z\n", "  as of         seq "};
  struct api_run run = REPLAY(night, "state", night->task, "--at", "2026-01-01 03:12:30");
  for (const char *at = run.out; *at != 0; at = strchr(at, '\n') + 1)
    if (strcspn(at, "\n") > 80) fail_msg("%zu columns: %s", strcspn(at, "\n"), at);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strstr(run.out, rows[i]) == NULL) fail_msg("no \"%s\" in:\n%s", rows[i], run.out);
  assert_null(strchr(run.out, '\033'));
  api_run_clear(&run);
  run = REPLAY(night, "state", night->task, "--at", "2026-01-01 04:05", "--local");
  expect(&run, 0, "leased   2026-01-01T04:05:00.000000+0100\n");
}

/* ---- queues ---- */

static void queues_are_counted_as_they_were(void **context) {
  const struct night *night = *context;
  const struct {
    const char *at, *counts;
  } rows[] = {
      {"2026-01-01 02:00", ",false,0,0,0,0,0,0,0\n"},    {"2026-01-01 03:04", ",false,1,0,0,0,0,0,0\n"},
      {"2026-01-01 03:05", ",false,0,1,0,0,0,0,0\n"},    {"2026-01-01 03:06", ",false,0,0,1,0,0,0,0\n"},
      {"2026-01-01 03:12:30", ",false,1,0,0,1,0,0,0\n"}, {"now", ",false,0,0,0,0,0,2,0\n"},
  };
  char queue[40];
  (void)snprintf(queue, sizeof queue, "%s,", id_text(&night->world.queue_id).text);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct api_run run = REPLAY(night, "queues", "-o", "csv", "--at", rows[i].at);
    const char *line = strstr(run.out, queue);
    assert_int_equal(run.code, 0);
    assert_non_null(line);
    if (strncmp(strchr(strchr(line, ',') + 1, ','), rows[i].counts, strlen(rows[i].counts)) != 0)
      fail_msg("--at %s: %s", rows[i].at, line);
    api_run_clear(&run);
  }
  struct api_run run = REPLAY(night, "queues", "--at", "2026-01-01 03:06");
  expect(&run, 0, "RUNNING              1\n");
}

/* The longest name that a queue may have: 128 characters of four bytes each. */
static void a_long_name_is_given_whole(void **context) {
  struct night *night = *context;
  char name[4 * 128 + 1] = "";
  for (unsigned i = 0; i < 128; i++) memcpy(name + (size_t)4 * i, "\xf0\x9f\x90\x8b", 5);
  struct command command = world_queue(&night->world, COMMAND_QUEUE_CREATE, NULL);
  command.as.queue.name = bytes_text(name);
  world_identify(&night->world, &command, "whales");
  assert_int_equal(world_do(&night->world, &command).status, STATUS_OK);
  static const char *const formats[] = {"text", "json", "jsonl", "csv"};
  for (unsigned i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    struct api_run run = REPLAY(night, "queues", "-o", formats[i]);
    assert_int_equal(run.code, 0);
    if (strstr(run.out, name) == NULL) fail_msg("-o %s: %s", formats[i], run.out);
    api_run_clear(&run);
  }
}

/* ---- diff ---- */

static void diff_tells_what_changed_between(void **context) {
  const struct night *night = *context;
  const struct {
    const char *from, *to, *row;
  } rows[] = {
      {"2026-01-01 02:00", "2026-01-01 03:06", "%s,,0,RUNNING,3\n"},
      {"2026-01-01 03:00", "2026-01-01 03:06", "%s,WAITING,1,RUNNING,3\n"},
      {"2026-01-01 03:06", "2026-01-01 03:13", "%s,RUNNING,3,NEEDS_REVIEW,4\n"},
      {"2026-01-01 03:13", "now", "%s,NEEDS_REVIEW,4,FAILED,5\n"},
      {night->accepted_seq, night->review_seq, "%s,WAITING,1,FAILED,5\n"},
      {"2026-01-01 03:06", "2026-01-01 03:06:30", NULL},
      {"2026-01-01 09:30", "now", NULL},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char wanted[128];
    struct api_run run = REPLAY(night, "diff", "-o", "csv", "--from", rows[i].from, "--to", rows[i].to);
    (void)snprintf(wanted, sizeof wanted, rows[i].row != NULL ? rows[i].row : "to_revision\n", night->task);
    print_message("%s … %s\n", rows[i].from, rows[i].to);
    if (rows[i].row == NULL) assert_null(strstr(run.out, night->task));
    expect(&run, 0, wanted);
  }
  struct api_run run = REPLAY(night, "diff", "--from", "2026-01-01 03:06");
  expect(&run, 0, "2 tasks changed\n  from  seq ");
  run = REPLAY(night, "diff", "--from", "now", "--to", "2026-01-01 03:06");
  expect(&run, 2, "lies behind --to");
}

static void misuse_is_refused_with_a_word(void **context) {
  const struct night *night = *context;
  const struct {
    const char *arguments[8];
    const char *word;
  } rows[] = {
      {{"state", "x"}, "no task id"},
      {{"state"}, "state needs TASK"},
      {{"state", "x", "y"}, "unexpected argument \"y\""},
      {{"eat"}, "no command \"eat\""},
      {{"queues", "--at", "soon"}, "--at: \"soon\" is neither"},
      {{"queues", "--at", "0"}, "--at: \"0\""},
      {{"queues", "--at", "99999999999999999999"}, "--at: "},
      {{"queues", "--from", "1"}, "belong to diff"},
      {{"stats", "--at", "1"}, "belongs to state and queues"},
      {{"diff"}, "diff needs --from"},
      {{"diff", "--from", "tomorrow 3"}, "--from: "},
      {{"queues", "--chain-only"}, "belongs to verify"},
      {{"queues", "-o", "msgpack"}, "it is text, json, jsonl or csv"},
      {{"verify", "-o", "json"}, "verify prints text"},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct api_run run = replay(night, rows[i].arguments);
    assert_string_equal(run.out, "");
    expect(&run, 2, rows[i].word);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(state_is_what_the_view_said),     cmocka_unit_test(state_reads_well_at_eighty_columns),
      cmocka_unit_test(queues_are_counted_as_they_were), cmocka_unit_test(diff_tells_what_changed_between),
      cmocka_unit_test(misuse_is_refused_with_a_word),   cmocka_unit_test(a_long_name_is_given_whole),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
