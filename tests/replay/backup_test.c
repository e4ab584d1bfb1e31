/* orbit-replay backup: a consistent copy beside a server under load, which starts as a server of its own. */
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

static void test_under_load(void **state) {
  (void)state;
  rig_make(&rig, "50");
  pid_t load;
  struct api_run run;
  struct path last = {""};
  uint64_t before = 0;
  api_server_start(&rig.server, NULL);
  rig_load(&rig, "1500", &load);
  for (unsigned i = 0; i < 5; i++) {
    last = rig_out(&rig);
    rig_replay(&run, "backup", last.text, "--data", rig.server.data, NULL);
    rig_expect(&run, 0);
    assert_non_null(strstr(run.err, "each commit of a running server may add"));
    uint64_t copied = rig_number(&run, " events");
    assert_true(copied >= before);
    before = copied;
    api_run_clear(&run);
    rig_replay(&run, "verify", "--data", last.text, NULL);
    rig_expect(&run, 0);
    assert_int_equal(rig_number(&run, " events"), copied);
    api_run_clear(&run);
  }
  assert_int_equal(api_wait_exit(load), 0);
  assert_int_equal(api_server_stop(&rig.server, SIGTERM), 0);
  /* The same node, on the copy. */
  struct bytes one = test_file_read(path_of(rig.server.data, "node.id").text);
  struct bytes other = test_file_read(path_of(last.text, "node.id").text);
  assert_true(one.size > 0 && bytes_equal(one, other));
  free((void *)(uintptr_t)one.data);
  free((void *)(uintptr_t)other.data);
  rig_serve(&rig, last.text);
  api_server_start(&rig.server, NULL);
  rig_load(&rig, "20", NULL);
  assert_int_equal(api_server_stop(&rig.server, SIGTERM), 0);
  rig_replay(&run, "verify", "--data", last.text, NULL);
  rig_expect(&run, 0);
  assert_true(rig_number(&run, " events") > before);
  api_run_clear(&run);
}

static void test_refusals(void **state) {
  (void)state;
  rig_make(&rig, "50");
  struct api_run run;
  struct path out = rig_out(&rig);
  rig_replay(&run, "backup", rig.copy.text, "--data", rig.sound.text, NULL);
  rig_expect(&run, 1);
  assert_non_null(strstr(run.err, "exists"));
  api_run_clear(&run);
  rig_replay(&run, "backup", path_of(out.text, "below").text, "--data", rig.sound.text, NULL);
  rig_expect(&run, 3);
  api_run_clear(&run);
  /* A damaged log is no backup: nothing is left of the attempt. */
  uint64_t half = rig.bytes.size / 2 / 4096 * 4096;
  static const uint8_t noise[512] = {1, 2, 3};
  for (uint64_t at = half; at < half + 32768; at += 4096) rig_write(&rig, at + 2000, noise, sizeof noise);
  rig_replay(&run, "backup", out.text, "--data", rig.copy.text, NULL);
  assert_true(run.code == 1 || run.code == 3);
  assert_non_null(strstr(run.err, "orbit-replay verify"));
  assert_int_equal(access(out.text, F_OK), -1);
  api_run_clear(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_under_load, setup, teardown),
      cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
