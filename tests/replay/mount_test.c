/* orbit-audit and orbit-replay on a mount that is read-only: they say the same as on one that is not, and write only where they
 * are told to. Skipped where mounting is not allowed. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "api/server.h"
#include "engine/world.h"

struct stage {
  struct world world;
  char task_text[33];
  char *outside; /* a directory for what is written */
};

static int begin(void **context) {
  struct stage *stage = calloc(1, sizeof *stage);
  world_open(&stage->world);
  const struct push *assign = NULL;
  struct task task = world_submitted(&stage->world, "one");
  (void)snprintf(stage->task_text, sizeof stage->task_text, "%s", id_text(&task.id).text);
  assign = world_assigned(&stage->world, 1);
  world_start(&stage->world, assign);
  (void)world_report(&stage->world, assign, OUTCOME_SUCCEEDED, false);
  stage->outside = test_directory_make();
  *context = stage;
  return 0;
}

static int end(void **context) {
  struct stage *stage = *context;
  world_close(&stage->world);
  test_directory_remove(stage->outside);
  free(stage);
  return 0;
}

/* In a view of the mounts that this process has alone, the directory is read-only from here on. False: that is not allowed. */
static bool make_read_only(const char *directory) {
  char path[512];
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount(directory, directory, NULL, MS_BIND, NULL) != 0)
    return false;
  assert_int_equal(mount(NULL, directory, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
  (void)snprintf(path, sizeof path, "%s/log/new", directory);
  assert_int_equal(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600), -1);
  assert_int_equal(errno, EROFS);
  return true;
}

/* The code is 0, or 1 where orbit-audit verify says that the world made its objects without audit records. */
static struct api_run run(const char *program, const char *data, const char *const *more) {
  const char *const environment[] = {"LC_ALL=C", NULL};
  const struct api_run_options options = {.environment = environment};
  const char *arguments[12] = {NULL, "--data", data};
  char path[512];
  struct api_run done;
  (void)snprintf(path, sizeof path, "%s", api_program(program));
  arguments[0] = path;
  for (unsigned i = 0; more[i] != NULL; i++) arguments[i + 3] = more[i];
  api_run(arguments, &options, &done);
  if (done.code > 1) fail_msg("%s %s: %d: %s%s", program, more[0], done.code, done.out, done.err);
  return done;
}

static void both_work_on_a_read_only_mount(void **context) {
  struct stage *stage = *context;
  const char *data = stage->world.directory;
  const struct {
    const char *program;
    const char *arguments[5];
  } same[] =
      {
          {"orbit-audit", {"log"}},
          {"orbit-audit", {"log", "-o", "jsonl", "--payload"}},
          {"orbit-audit", {"task", stage->task_text}},
          {"orbit-audit", {"operations", "--all"}},
          {"orbit-audit", {"verify"}},
          {"orbit-replay", {"state", stage->task_text, "-o", "json"}},
          {"orbit-replay", {"queues"}},
          {"orbit-replay", {"diff", "--from", "1"}},
          {"orbit-replay", {"stats"}},
          {"orbit-replay", {"verify"}},
      },
    written[] = {
        {"orbit-audit", {"export"}},
        {"orbit-replay", {"backup"}},
        {"orbit-replay", {"salvage"}},
        {"orbit-replay", {"rebuild"}},
    };
  enum { same_count = sizeof same / sizeof same[0], written_count = sizeof written / sizeof written[0] };
  struct api_run before[same_count];
  for (unsigned i = 0; i < same_count; i++) before[i] = run(same[i].program, data, same[i].arguments);
  bool mounted = make_read_only(data);
  for (unsigned i = 0; i < same_count; i++) {
    if (mounted) {
      struct api_run after = run(same[i].program, data, same[i].arguments);
      if (strcmp(before[i].out, after.out) != 0)
        fail_msg("%s says otherwise:\n%s%s", same[i].program, before[i].out, after.out);
      api_run_clear(&after);
    }
    assert_true(before[i].out[0] != 0);
    api_run_clear(&before[i]);
  }
  for (unsigned i = 0; mounted && i < written_count; i++) {
    char out[512];
    (void)snprintf(out, sizeof out, "%s/%u", stage->outside, i);
    struct api_run done = run(written[i].program, data, (const char *const[]){written[i].arguments[0], out, NULL});
    assert_int_equal(done.code, 0);
    assert_int_equal(access(out, F_OK), 0);
    api_run_clear(&done);
  }
  if (mounted) assert_int_equal(umount2(data, MNT_DETACH), 0);
  if (!mounted) {
    print_message("skipped: read-only mounts: mounting is not allowed here\n");
    skip();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_work_on_a_read_only_mount)};
  return cmocka_run_group_tests(tests, begin, end);
}
