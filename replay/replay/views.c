/* Owns the process that reads a checkpoint whose pages nobody has judged. */
#include "replay/views.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/walker.h"
#include "state/checkpoint.h"

/* What the child says before it ends by itself. */
struct verdict {
  enum status status;
  struct fault fault;
};

/* ---- the child ---- */

enum { shown_looks = 500, shown_pause_ms = 10 };

/* The walk sees a commit that its server wrote but whose sync still runs; readers of the log see it once it is on the disk. */
static void await_shown(struct journal *journal, uint64_t seq) {
  struct journal_reader *reader;
  if (journal_reader_new(journal, &reader) != STATUS_OK) return;
  for (unsigned i = 0; i < shown_looks; i++) {
    if (journal_reader_refresh(reader) != STATUS_OK || journal_reader_last_seq(reader) >= seq) break;
    (void)nanosleep(&(struct timespec){.tv_nsec = shown_pause_ms * 1000000L}, NULL);
  }
  journal_reader_free(reader);
}

/* Its end by a signal is an answer: no core is left behind, nothing of the parent's hears of it, and what liblmdb has to say of
 * itself is no news beside it. */
static void end_quietly(void) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE};
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) (void)signal(signals[i], SIG_DFL);
  (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  cleanup(guard_close) int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) (void)dup2(nowhere, STDERR_FILENO);
}

static enum status compare(const char *data_directory, const char *views, struct state *fold, struct fault *fault) {
  struct journal_options options = {.read_only = true};
  struct journal *journal;
  uint64_t seq;
  /* A checkpoint is judged beside a sound log alone, so a fault from here on lies in views/. */
  enum status status = walker_check(data_directory, fault);
  if (status == STATUS_OK) status = journal_open(data_directory, &options, &journal, fault);
  if (status != STATUS_OK) return STATUS_UNAVAILABLE;
  await_shown(journal, state_last_seq(fold));
  status = checkpoint_compare(views, journal, fold, &seq, fault);
  journal_close(journal, false);
  return status;
}

static _Noreturn void child_run(const char *data_directory, const char *views, struct state *fold, int out) {
  struct verdict verdict = {.fault = {.message = ""}};
  end_quietly();
  verdict.status = compare(data_directory, views, fold, &verdict.fault);
  bool said = write(out, &verdict, sizeof verdict) == (ssize_t)sizeof verdict;
  _exit(said ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- the parent ---- */

/* False: it said nothing whole. */
static bool verdict_read(int in, struct verdict *ret_verdict) {
  struct verdict verdict = {.fault = {.message = ""}};
  size_t size = 0;
  while (size < sizeof verdict) {
    ssize_t got = read(in, (char *)&verdict + size, sizeof verdict - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    size += (size_t)got;
  }
  *ret_verdict = verdict;
  return true;
}

static enum status judge_end(int how, const char *views, struct fault *fault) {
  if (!WIFSIGNALED(how))
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "%.160s/data.mdb: the process that read it ended with code %d", views,
                     WEXITSTATUS(how));
  int number = WTERMSIG(how);
  if (number != SIGSEGV && number != SIGBUS && number != SIGABRT && number != SIGFPE)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "%.160s/data.mdb: the process that read it was ended by SIG%s", views,
                     sigabbrev_np(number));
  return fault_set(fault, STATUS_CORRUPT, NULL,
                   "the pages of %.160s/data.mdb are damaged: reading them ends in SIG%s; delete the file while no server runs",
                   views, sigabbrev_np(number));
}

static enum status compare_apart(const char *data_directory, const char *views, struct state *fold, struct fault *fault) {
  struct verdict verdict;
  int ends[2], how = 0;
  if (pipe2(ends, O_CLOEXEC) != 0)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "%.160s/data.mdb cannot be read apart: no pipe: %s", views,
                     strerror(errno));
  cleanup(guard_close) int in = ends[0];
  pid_t child = fork();
  if (child == 0) child_run(data_directory, views, fold, ends[1]);
  int reason = errno;
  (void)close(ends[1]);
  if (child < 0)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "%.160s/data.mdb cannot be read apart: no process: %s", views,
                     strerror(reason));
  bool said = verdict_read(in, &verdict);
  while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
  }
  if (!said) return judge_end(how, views, fault);
  *fault = verdict.fault;
  return verdict.status;
}

enum status views_compare(const char *data_directory, struct state *fold, struct fault *fault) {
  cleanup(guard_free) char *views = NULL;
  if (asprintf(&views, "%s/views", data_directory) < 0) {
    views = NULL;
    return fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
  }
  if (access(views, F_OK) != 0) return STATUS_OK;
  enum status status = compare_apart(data_directory, views, fold, fault);
  return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
