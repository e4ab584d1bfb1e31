/* Owns the process in which an episode runs. */
#include "sim/run.h"

#include <errno.h>
#include <malloc.h>
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

/* What the child and its parent share. */
struct shared {
  uint32_t done; /* episodes that went well */
  struct episode_result results[];
};

static void child(const struct episode *episodes, uint32_t count, struct shared *shared, int errors) {
  const struct itimerval limit = {.it_value = {.tv_sec = episode_cpu_s_max}};
  (void)dup2(errors, STDERR_FILENO);
  (void)mallopt(M_MMAP_THRESHOLD, 1 << 30); /* memory that was had once is kept: pages cost more than episodes too */
  (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (uint32_t i = 0; i < count; i++) {
    (void)setitimer(ITIMER_PROF, &limit, NULL);
    episode_run(&episodes[i], &shared->results[i]);
    if (shared->results[i].complaint[0] != 0) break;
    shared->done++;
  }
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
  while (line > text && line[-1] != '\n') line--;
  (void)snprintf(out, room, "%.*s", (int)strcspn(line, "\n"), line);
}

/* How the child ended, when it did not end by itself. */
static void tell_end(int state, int errors, char *out, size_t room) {
  char words[320];
  bool signalled = WIFSIGNALED(state);
  last_words(errors, words, sizeof words);
  if (signalled && WTERMSIG(state) == SIGPROF)
    (void)snprintf(out, room, "it came to no end in %d s of processor time", episode_cpu_s_max);
  else
    (void)snprintf(out, room, "the process ended itself (%s %d): %s", signalled ? "signal" : "exit code",
                   signalled ? WTERMSIG(state) : WEXITSTATUS(state), words);
}

uint32_t run_together(const struct episode *episodes, uint32_t count, struct episode_result *ret_results) {
  size_t size = sizeof(struct shared) + count * sizeof(struct episode_result);
  struct shared *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  cleanup(guard_close) int errors = memfd_create("orbit-sim", MFD_CLOEXEC);
  must(shared != MAP_FAILED && errors >= 0);
  (void)fflush(NULL);
  int state = 0;
  pid_t pid = fork();
  must(pid >= 0);
  if (pid == 0) child(episodes, count, shared, errors);
  while (waitpid(pid, &state, 0) < 0) must(errno == EINTR);
  uint32_t done = shared->done;
  memcpy(ret_results, shared->results, count * sizeof *ret_results);
  (void)munmap(shared, size);
  if (done < count && (!WIFEXITED(state) || WEXITSTATUS(state) != 0))
    tell_end(state, errors, ret_results[done].complaint, sizeof ret_results[done].complaint);
  return done;
}

bool run_apart(const struct episode *episode, struct episode_result *ret_result) {
  return run_together(episode, 1, ret_result) == 1;
}
