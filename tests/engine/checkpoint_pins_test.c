/* The follower holds no snapshot of the log while its rows go to the disk, which may take as long as it likes: pages that the
 * log frees meanwhile would be missing to it, and its file never becomes shorter. */
#include "engine/checkpoint_stage.h"

#include <lmdb.h>
#include <sys/wait.h>
#include <unistd.h>

#include "journal/views_store.h"

static const struct stage *watched;
static unsigned commits;

static int note_snapshot(const char *line, void *context) {
  char *end;
  const char *snapshot = strrchr(line, ' ');
  (void)context;
  if (strtol(line, &end, 10) == 0 || snapshot == NULL) return 0; /* the headline */
  return snapshot[1] != '-' ? -1 : 0;
}

/* In a process of its own: LMDB's locks do not bear that one opens a log twice. */
static bool log_is_held(void) {
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    MDB_env *env;
    char path[400];
    (void)snprintf(path, sizeof path, "%s/log", watched->world.directory);
    if (mdb_env_create(&env) != 0 || mdb_env_open(env, path, MDB_RDONLY, 0) != 0) _exit(2);
    _exit(mdb_reader_list(env, note_snapshot, NULL) < 0 ? 1 : 0);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
  return WEXITSTATUS(status) == 1;
}

/* The linker puts it in the place of views_commit (tests/CMakeLists.txt). */
enum status __real_views_commit(struct views *views, struct fault *fault);
enum status __wrap_views_commit(struct views *views, struct fault *fault);
enum status __wrap_views_commit(struct views *views, struct fault *fault) {
  commits++;
  assert_false(log_is_held());
  return __real_views_commit(views, fault);
}

static void rows_are_written_without_a_snapshot(void **context) {
  struct stage *stage = *context;
  stage->random = 7;
  watched = stage;
  walk(stage, 100);
  follow_all(stage);
  assert_true(commits > 1);
  unsigned before = commits;
  bool more;
  struct fault fault;
  assert_int_equal(checkpoint_index(stage->checkpoint, 0, 0, &fault), STATUS_OK);
  assert_true(commits > before);
  before = commits;
  assert_int_equal(checkpoint_clean(stage->checkpoint, journal_last_seq(stage->world.journal), &more, &fault), STATUS_OK);
  assert_true(commits > before);
  struct journal_reader *reader;
  struct bytes record;
  assert_int_equal(journal_reader_new(stage->world.journal, &reader), STATUS_OK);
  assert_false(log_is_held());
  assert_int_equal(journal_reader_get(reader, 1, &record), STATUS_OK);
  assert_true(log_is_held()); /* one would have been seen */
  journal_reader_free(reader);
  assert_false(log_is_held());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(rows_are_written_without_a_snapshot, open_stage, close_stage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
