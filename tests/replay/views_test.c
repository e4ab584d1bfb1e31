/* orbit-replay verify beside a checkpoint whose pages are damaged anywhere: it ends by itself, and what it says of a checkpoint
 * that cannot be right names where it lies. */
#include "replay/rig.h"

static struct rig rig;
static struct path views, views_file;
static struct bytes views_bytes;
enum { tasks_left = 30, page_bytes = 4096 };

/* A small log, and the checkpoint of the server that wrote it. */
static int setup(void **state) {
  (void)state;
  struct http_reply reply;
  struct api_run run;
  memset(&rig, 0, sizeof rig);
  (void)api_program("orbit-replay");
  api_server_up(&rig.server);
  rig_cancel(&rig, 30);
  http_reply_init(&reply);
  for (unsigned i = 0; i < tasks_left; i++) rig_submit(&rig, "left", i, &reply);
  http_reply_clear(&reply);
  assert_int_equal(api_server_stop(&rig.server, SIGTERM), 0);
  rig.copy = path_of(rig.server.directory, "copy");
  rig_replay(&run, "backup", rig.copy.text, "--data", rig.server.data, NULL);
  rig_expect(&run, 0);
  api_run_clear(&run);
  views_bytes = test_file_read(path_of(rig.server.data, "views/data.mdb").text);
  assert_true(views_bytes.size > 10 * (size_t)page_bytes);
  views = path_of(rig.copy.text, "views");
  views_file = path_of(views.text, "data.mdb");
  assert_int_equal(mkdir(views.text, 0700), 0);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  free((void *)(uintptr_t)views_bytes.data);
  rig_remove(&rig);
  return 0;
}

/* The checkpoint anew, so many bytes of it. */
static void views_write(size_t bytes) {
  cleanup(guard_close) int file = open(views_file.text, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, views_bytes.data, bytes, 0), bytes);
}

static void views_damage(uint64_t at, const void *data, size_t size) {
  cleanup(guard_close) int file = open(views_file.text, O_WRONLY);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, data, size, (off_t)at), size);
}

static struct { unsigned killed, found, ignored, harmless; } tally;

/* Equal, ignored with a reason, or found: then there is a line that names the place, and the exit code says so. */
static void judge(void) {
  struct api_run run;
  rig_replay(&run, "verify", "--data", rig.copy.text, NULL);
  bool ignored = strstr(run.err, "the checkpoint would be ignored: ") != NULL;
  uint64_t findings = rig_number(&run, " findings\n");
  rig_expect(&run, findings != 0);
  if (ignored) assert_non_null(strstr(run.err, views.text));
  else assert_string_equal(run.err, "");
  if (findings != 0) {
    assert_int_equal(findings, 1);
    assert_non_null(strstr(run.out, ": the checkpoint in views/ is not what the log folds to: "));
  }
  bool killed = strstr(run.out, "ends in SIG") != NULL;
  if (killed) assert_non_null(strstr(run.out, views_file.text));
  tally.killed += killed;
  tally.found += findings != 0;
  tally.ignored += ignored;
  tally.harmless += findings == 0 && !ignored;
  api_run_clear(&run);
}

static void say(void) {
  print_message("%u found, %u of them by a signal; %u ignored, %u harmless\n", tally.found, tally.killed, tally.ignored,
                tally.harmless);
  memset(&tally, 0, sizeof tally);
}

static void sound(void **state) {
  (void)state;
  views_write(views_bytes.size);
  judge();
  assert_int_equal(tally.harmless, 1);
  say();
}

static void each_page_zeroed(void **state) {
  (void)state;
  static const uint8_t zeroes[page_bytes];
  for (uint64_t at = 0; at < views_bytes.size; at += page_bytes) {
    views_write(views_bytes.size);
    views_damage(at, zeroes, sizeof zeroes);
    judge();
  }
  assert_true(tally.found > 5);
  say();
}

/* ORBIT_FLIPS in the environment: every page, and more bits. */
static bool longer(void) { return getenv("ORBIT_FLIPS") != NULL; }

/* Headers, offsets of nodes and their lengths: what liblmdb believes. */
static void pointers_of_each_page(void **state) {
  (void)state;
  uint64_t seed = test_seed(), first = longer() ? 0 : test_random(&seed) % 2, step = longer() ? 1 : 2;
  for (uint64_t at = first * page_bytes; at < views_bytes.size; at += step * page_bytes) {
    uint8_t noise[32];
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)test_random(&seed);
    views_write(views_bytes.size);
    views_damage(at + (at < 2 * page_bytes ? 40 : 12), noise, sizeof noise);
    judge();
  }
  assert_true(tally.found > 2);
  say();
}

static void bits_anywhere(void **state) {
  (void)state;
  uint64_t seed = test_seed();
  for (unsigned i = 0; i < (longer() ? 400 : 12); i++) {
    uint64_t at = test_random(&seed) % views_bytes.size;
    uint8_t byte = views_bytes.data[at] ^ (uint8_t)(1u << test_random(&seed) % 8);
    views_write(views_bytes.size);
    views_damage(at, &byte, 1);
    judge();
  }
  say();
}

static void cut_off(void **state) {
  (void)state;
  for (size_t size = 0; size < views_bytes.size; size += (longer() ? 1 : 7) * (size_t)page_bytes / 2) {
    views_write(size);
    judge();
  }
  assert_true(tally.found > 2);
  say();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound),         cmocka_unit_test(each_page_zeroed), cmocka_unit_test(pointers_of_each_page),
      cmocka_unit_test(bits_anywhere), cmocka_unit_test(cut_off),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
