/* orbit-replay verify on sound logs, on damaged ones, and beside a running server; and that no tool dies of a damaged file. */
#include "replay/rig.h"

static struct rig rig;

static int setup(void **state) {
  (void)state;
  memset(&rig, 0, sizeof rig);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  rig_remove(&rig);
  return 0;
}

static void verify(const char *data, bool chain_only, struct api_run *ret_run) {
  rig_replay(ret_run, "verify", "--data", data, chain_only ? "--chain-only" : NULL, NULL);
}

static void test_sound(void **state) {
  (void)state;
  rig_make(&rig, "100");
  const struct path paths[] = {path_of(rig.server.data, "."), rig.sound, rig.copy};
  for (unsigned i = 0; i < 6; i++) {
    struct api_run run;
    verify(paths[i / 2].text, i % 2 == 0, &run);
    rig_expect(&run, 0);
    assert_non_null(strstr(run.out, " 0 findings\n"));
    assert_true(rig_number(&run, " events") == rig.events);
    assert_true(rig_number(&run, " commits") > 1);
    assert_true(rig_number(&run, " bytes\n") > 0);
    assert_non_null(strstr(run.out, "unused: "));
    api_run_clear(&run);
  }
}

static void test_nothing_there(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct api_run run;
  verify(path_of(top, "none").text, false, &run);
  rig_expect(&run, 3);
  assert_non_null(strstr(run.err, "holds no log"));
  assert_string_equal(run.out, "");
  api_run_clear(&run);
  test_directory_remove(top);
}

/* A byte of an event: the finding names its seq, and the events behind it are read all the same. */
static void test_names_the_seq(void **state) {
  (void)state;
  rig_make(&rig, "100");
  struct api_run run;
  char wanted[64];
  struct journal *journal = fixture_read(rig.sound.text);
  struct journal_reader *reader;
  struct bytes record;
  const uint64_t seq = rig.events / 2;
  assert_int_equal(journal_reader_new(journal, &reader), STATUS_OK);
  assert_int_equal(journal_reader_get(reader, seq, &record), STATUS_OK);
  const uint8_t *at = memmem(rig.bytes.data, rig.bytes.size, record.data, record.size);
  assert_non_null(at);
  for (const uint8_t *again = at; again != NULL;
       again = memmem(again + 1, rig.bytes.size - (size_t)(again + 1 - rig.bytes.data), record.data, record.size)) {
    uint8_t byte = again[record_header_bytes + 20] ^ 4; /* every copy, older pages too */
    rig_write(&rig, (uint64_t)(again - rig.bytes.data) + record_header_bytes + 20, &byte, 1);
  }
  journal_reader_free(reader);
  journal_close(journal, false);
  (void)snprintf(wanted, sizeof wanted, "seq %" PRIu64 ": the chain is broken", seq);
  for (unsigned chain_only = 0; chain_only < 2; chain_only++) {
    verify(rig.copy.text, chain_only, &run);
    rig_expect(&run, 1);
    assert_non_null(strstr(run.out, wanted));
    assert_non_null(strstr(run.out, " 1 findings\n"));
    assert_true(rig_number(&run, " events") == rig.events);
    api_run_clear(&run);
  }
}

/* ---- One byte changed, the programs as they are ---- */

static const char *const tools[][4] = {{"orbit-replay", "stats"},   {"orbit-replay", "queues"},
                                       {"orbit-replay", "salvage"}, {"orbit-replay", "diff", "--from", "5"},
                                       {"orbit-replay", "backup"},  {"orbit-audit", "log", "-r"},
                                       {"orbit-audit", "verify"},   {"orbit-audit", "operations", "--all"}};
enum { tool_count = sizeof tools / sizeof tools[0] };

static void run_tool(const char *const *tool, const char *out, struct api_run *ret_run) {
  char program[512];
  (void)snprintf(program, sizeof program, "%s", api_program(tool[0]));
  const char *const arguments[] = {program, "--data", rig.copy.text, tool[1], out != NULL ? out : tool[2], tool[3], NULL};
  api_run(arguments, NULL, ret_run);
  if (ret_run->code > 3 || strstr(ret_run->err, "Sanitizer") != NULL || strstr(ret_run->err, "runtime error") != NULL)
    fail_msg("%s %s: %d: %s", tool[0], tool[1], ret_run->code, ret_run->err);
}

/* Whatever the tool says: it ends by itself. */
static void any_tool(unsigned i) {
  const char *const *tool = tools[i % tool_count];
  bool writes = strcmp(tool[1], "salvage") == 0 || strcmp(tool[1], "backup") == 0;
  const struct path out = rig_out(&rig);
  struct api_run run;
  run_tool(tool, writes ? out.text : NULL, &run);
  if (writes && access(out.text, F_OK) == 0) test_directory_remove(strdup(out.text));
  api_run_clear(&run);
}

/* Reported, or every event still reads equal (the walker's own test shows that). ORBIT_FLIPS in the environment makes it
 * longer. */
static void test_flips(void **state) {
  (void)state;
  const char *more = getenv("ORBIT_FLIPS");
  unsigned long flips = more != NULL ? strtoul(more, NULL, 10) : 60;
  uint64_t seed = test_seed();
  unsigned found = 0, harmless = 0;
  rig_make(&rig, "100");
  struct walker_verdict sound = {.talk = true};
  walker_verdict_make(rig.sound.text, &sound);
  assert_int_equal(sound.findings, 0);
  for (unsigned long i = 0; i < flips; i++) {
    uint64_t random = test_random(&seed), page = test_random(&seed) % (rig.bytes.size / 4096);
    uint64_t at =
        random % 2 == 0 ? test_random(&seed) % rig.bytes.size : page * 4096 + test_random(&seed) % (page < 2 ? 160 : 48);
    uint8_t byte = rig.bytes.data[at] ^ (uint8_t)(1 + test_random(&seed) % 255);
    struct api_run run;
    rig_write(&rig, at, &byte, 1);
    verify(rig.copy.text, random % 4 < 2, &run);
    struct walker_verdict verdict = {.talk = false};
    walker_verdict_make(rig.copy.text, &verdict);
    assert_int_equal(run.code, verdict.findings != 0);
    if (run.code == 1) {
      found++;
      assert_true(rig_number(&run, " findings") > 0);
      assert_true(strncmp(run.out, "page ", 5) == 0 || strncmp(run.out, "seq ", 4) == 0);
    } else {
      harmless++;
      assert_int_equal(verdict.digest, sound.digest);
    }
    api_run_clear(&run);
    any_tool((unsigned)i);
    rig_write(&rig, at, &rig.bytes.data[at], 1);
  }
  print_message("%u found, %u in unused space\n", found, harmless);
  assert_true(found > 0);
}

/* ---- Beside a server under load ---- */

static void test_live(void **state) {
  (void)state;
  rig_make(&rig, "50");
  pid_t load;
  api_server_start(&rig.server, NULL);
  rig_load(&rig, "1500", &load);
  uint64_t before = 0;
  for (unsigned i = 0; i < 10; i++) {
    struct api_run run;
    verify(rig.server.data, i % 2 == 0, &run);
    rig_expect(&run, 0);
    assert_true(rig_number(&run, " events") >= before);
    before = rig_number(&run, " events");
    api_run_clear(&run);
  }
  /* Readers that are killed leave nothing behind. */
  char program[512];
  (void)snprintf(program, sizeof program, "%s", api_program("orbit-replay"));
  const char *const arguments[] = {program, "verify", "--data", rig.server.data, NULL};
  for (unsigned i = 0; i < 20; i++) {
    pid_t pid = api_spawn(arguments, NULL, NULL, NULL);
    api_nap();
    assert_int_equal(kill(pid, SIGKILL), 0);
    int code = api_wait_exit(pid);
    assert_true(code == 0 || code == 128 + SIGKILL);
  }
  assert_int_equal(api_wait_exit(load), 0);
  assert_int_equal(api_server_stop(&rig.server, SIGKILL), 128 + SIGKILL);
  struct api_run run;
  verify(rig.server.data, false, &run);
  rig_expect(&run, 0);
  assert_true(rig_number(&run, " events") >= before);
  api_run_clear(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_sound, setup, teardown),
      cmocka_unit_test(test_nothing_there),
      cmocka_unit_test_setup_teardown(test_names_the_seq, setup, teardown),
      cmocka_unit_test_setup_teardown(test_flips, setup, teardown),
      cmocka_unit_test_setup_teardown(test_live, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
