/* Owns the process in which an episode runs. */
#include "sim/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"

/* Of processor time, not of the clock on the wall: a busy machine ends nothing. */
enum { episode_cpu_s_max = 60 };

static void child(const struct episode *episode, struct episode_result *shared, int errors) {
  const struct itimerval limit = {.it_value = {.tv_sec = episode_cpu_s_max}};
  (void)dup2(errors, STDERR_FILENO);
  (void)setitimer(ITIMER_PROF, &limit, NULL);
  episode_run(episode, shared);
  (void)fflush(stdout);
  _exit(0);
}

/* What the child said last before it died. */
static void last_words(int errors, char *out, size_t room) {
  char text[4096];
  ssize_t size = pread(errors, text, sizeof text - 1, 0);
  text[size > 0 ? size : 0] = 0;
  const char *line = strstr(text, "defect: ");
  if (line == NULL) line = strstr(text, "ERROR: ");
  if (line == NULL) line = strstr(text, "runtime error: ");
  if (line == NULL) line = text;
  (void)snprintf(out, room, "%.*s", (int)strcspn(line, "\n"), line);
}

bool run_apart(const struct episode *episode, struct episode_result *ret_result) {
  struct episode_result *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  cleanup(guard_close) int errors = memfd_create("orbit-sim", MFD_CLOEXEC);
  must(shared != MAP_FAILED && errors >= 0);
  (void)fflush(NULL);
  int state = 0;
  pid_t pid = fork();
  must(pid >= 0);
  if (pid == 0) child(episode, shared, errors);
  while (waitpid(pid, &state, 0) < 0) must(errno == EINTR);
  *ret_result = *shared;
  (void)munmap(shared, sizeof *shared);
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return ret_result->complaint[0] == 0;
  char words[320];
  last_words(errors, words, sizeof words);
  if (WIFSIGNALED(state) && WTERMSIG(state) == SIGPROF)
    (void)snprintf(ret_result->complaint, sizeof ret_result->complaint, "it came to no end in %d s of processor time",
                   episode_cpu_s_max);
  else
    (void)snprintf(ret_result->complaint, sizeof ret_result->complaint, "the process ended itself (%s %d): %s",
                   WIFSIGNALED(state) ? "signal" : "exit code", WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state),
                   words);
  return false;
}
