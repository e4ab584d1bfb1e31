/* A commit is on the disk before it is said to be: what LMDB asks the kernel for, counted here and made to fail. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "journal/fixture.h"

static atomic_uint syncs;
static atomic_bool failing;

/* Stands before libc's own for liblmdb too. */
int fdatasync(int file) {
  atomic_fetch_add(&syncs, 1);
  if (!failing) return (int)syscall(SYS_fdatasync, file);
  errno = EIO;
  return -1;
}

static void each_commit_is_synced(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  for (unsigned i = 0; i < 40; i++) {
    unsigned before = syncs;
    fixture_commit(journal, 1 + i % 20, 10 + i % 7 * 900);
    assert_true(syncs > before);
  }
  unsigned before = syncs;
  journal_close(journal, true); /* the mark of a clean stop */
  assert_true(syncs > before);
  test_directory_remove(top);
}

/* What was not synced was not committed, and nothing is tried behind it: the kernel may have dropped the pages. */
static void a_failed_sync_is_a_failed_commit(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data = path_of(top, "data");
  struct journal *journal = fixture_create(data.text);
  struct commit commit;
  struct fault fault = {.message = ""};
  fixture_commit(journal, 20, 100);
  commit_init(&commit);
  fixture_fill(&commit, journal, 5, 100);
  failing = true;
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_IO_ERROR);
  failing = false;
  assert_non_null(strstr(fault.message, "cannot write a commit"));
  assert_int_equal(journal_last_seq(journal), 20);
  fixture_fill(&commit, journal, 1, 1);
  assert_int_equal(journal_commit(journal, &commit, &fault), STATUS_IO_ERROR);
  assert_non_null(strstr(fault.message, "an earlier write failed"));
  commit_clear(&commit);
  journal_close(journal, true);
  journal = fixture_open(data.text);
  assert_false(journal_was_clean(journal));
  assert_int_equal(journal_last_seq(journal), 20);
  journal_close(journal, false);
  test_directory_remove(top);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_commit_is_synced),
      cmocka_unit_test(a_failed_sync_is_a_failed_commit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
