/* Owns the ways to break a server under load, but for the full disk (full.c), and what must follow from each. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "campaign.h"
#include "support/support.h"

enum {
  path_max = 4096,
  strike_ms_max = 30000, /* until a fault has met a write or sync: the load writes all the time */
  end_ms_max = 30000,    /* from the fault to the end of the process */
  again_ms_max = 30000,  /* until it serves again */
  pause_ms_max = 200,
  countdown_max = 8,
  exit_cannot_run = 3,
};

/* ---- the shim ---- */

static enum status make_control(struct campaign *campaign, char path[path_max], struct fault *fault) {
  (void)snprintf(path, path_max, "%s/shim", campaign->server.directory);
  cleanup(guard_close) int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof *campaign->control) != 0)
    return fault_set(fault, STATUS_IO_ERROR, NULL, "%.200s cannot be made: %s", path, strerror(errno));
  void *map = mmap(NULL, sizeof *campaign->control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  must(map != MAP_FAILED);
  campaign->control = map;
  return STATUS_OK;
}

enum status breaks_attach(struct campaign *campaign, struct fault *fault) {
  static const char library[] = ORBIT_BIN_DIR "/liborbit_crash_shim.so";
  char path[path_max];
  size_t count = 0;
  if (access(library, R_OK) != 0)
    return fault_set(fault, STATUS_IO_ERROR, NULL, "%.250s is not there: build it first", library);
  enum status status = make_control(campaign, path, fault);
  if (status != STATUS_OK) return status;
  while (environ[count] != NULL) count++;
  campaign->environment = guard_calloc(count + 3, sizeof *campaign->environment);
  memcpy(campaign->environment, environ, count * sizeof *environ);
  must(asprintf(&campaign->environment[count], "LD_PRELOAD=%s", library) > 0);
  must(asprintf(&campaign->environment[count + 1], SHIM_CONTROL "=%s", path) > 0);
  campaign->server.environment = campaign->environment;
  return STATUS_OK;
}

void breaks_detach(struct campaign *campaign) {
  size_t count = 0;
  if (campaign->control != NULL) (void)munmap(campaign->control, sizeof *campaign->control);
  campaign->control = NULL;
  campaign->server.environment = NULL;
  if (campaign->environment == NULL) return;
  while (campaign->environment[count] != NULL) count++;
  if (count >= 2) free(campaign->environment[count - 1]); /* the last two are ours */
  if (count >= 2) free(campaign->environment[count - 2]);
  free(campaign->environment);
  campaign->environment = NULL;
}

static void arm(struct campaign *campaign, enum shim_fault fault, int error) {
  struct shim_control *control = campaign->control;
  atomic_store(&control->fault, SHIM_NONE);
  atomic_store(&control->error, error);
  atomic_store(&control->seed, test_random(&campaign->random));
  atomic_store(&control->countdown, (uint32_t)(test_random(&campaign->random) % countdown_max));
  atomic_store(&control->fault, fault);
}

static void disarm(const struct campaign *campaign) { atomic_store(&campaign->control->fault, SHIM_NONE); }

/* ---- a broken disk ---- */

static void judge_end(struct campaign *campaign, int result, const char *what) {
  struct oracle *oracle = &campaign->oracle;
  const char *said = campaign->server.last_error;
  if (!WIFEXITED(result) || WEXITSTATUS(result) != exit_cannot_run)
    oracle_violated(oracle, FAILED_DISK_STOPS, "after %s the server ended with %s %d", what,
                    WIFEXITED(result) ? "exit code" : "signal", WIFEXITED(result) ? WEXITSTATUS(result) : WTERMSIG(result));
  else if (strstr(said, "nothing more is acknowledged") == NULL)
    oracle_violated(oracle, FAILED_DISK_STOPS, "after %s the server's last word was \"%s\"", what, said);
}

/* Load goes on until the fault has met the log, and from there until the process is gone. may_go_on: it may be one that the
 * server bears (room that could not be made ahead is asked for again). */
static enum status strike(struct campaign *campaign, enum shim_fault kind, int error, bool may_go_on, const char *what,
                          struct fault *fault) {
  uint64_t before = atomic_load(&campaign->control->happened);
  int64_t until_ns = loop_now_ns() + strike_ms_max * INT64_C(1000000);
  int result = 0;
  campaign->breaking = true; /* connections will break with the process */
  arm(campaign, kind, error);
  while (atomic_load(&campaign->control->happened) == before && loop_now_ns() < until_ns) campaign_turn(campaign);
  disarm(campaign);
  if (atomic_load(&campaign->control->happened) == before)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "%s never came: the log was not written", what);
  if (may_go_on && !server_has_ended(&campaign->server)) {
    campaign->broken = false;
    if (campaign_turns(campaign, again_ms_max, &campaign->answers, campaign->answers)) return STATUS_OK;
  }
  until_ns = loop_now_ns() + end_ms_max * INT64_C(1000000);
  while (!server_has_ended(&campaign->server) && loop_now_ns() < until_ns) campaign_turn(campaign);
  if (server_wait_end(&campaign->server, 0, &result, fault) != STATUS_OK)
    oracle_violated(&campaign->oracle, FAILED_DISK_STOPS, "after %s the server runs on", what);
  else if (kind == SHIM_POWER_CUT) must(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
  else judge_end(campaign, result, what);
  return STATUS_OK;
}

/* ---- a pause ---- */

/* Stands still, with requests on the way to it; then goes on as if nothing had been, or dies without having woken. */
static void pause_round(struct campaign *campaign) {
  must(kill(campaign->server.pid, SIGSTOP) == 0);
  (void)campaign_turns(campaign, 1 + (int64_t)(test_random(&campaign->random) % pause_ms_max), NULL, 0);
  if (campaign_chance(campaign, 3)) return;
  uint64_t before = campaign->answers;
  must(kill(campaign->server.pid, SIGCONT) == 0);
  if (!campaign_turns(campaign, again_ms_max, &campaign->answers, before + submitter_count))
    oracle_violated(&campaign->oracle, SERVES_AGAIN, "no answers after a pause");
}

/* ---- rounds ---- */

enum status breaks_round(struct campaign *campaign, enum break_kind kind, struct fault *fault) {
  bool out_of_the_blue = kind == BREAK_WRITE && campaign_chance(campaign, 3);
  switch (kind) {
    case BREAK_PAUSE:
      pause_round(campaign);
      return STATUS_OK;
    case BREAK_WRITE:
      return strike(campaign, SHIM_WRITE, out_of_the_blue ? ENOSPC : EIO, out_of_the_blue, "a write that failed", fault);
    case BREAK_SHORT_WRITE:
      return strike(campaign, SHIM_SHORT_WRITE, 0, true, "a short write", fault);
    case BREAK_SYNC:
      return strike(campaign, SHIM_SYNC, EIO, false, "a sync that failed", fault);
    case BREAK_POWER:
      return strike(campaign, SHIM_POWER_CUT, 0, false, "a power cut", fault);
    case BREAK_FULL:
      return full_round(campaign, fault);
    default:
      return STATUS_OK;
  }
}

enum status breaks_start(struct campaign *campaign, struct fault *fault) {
  int result = 0;
  arm(campaign, SHIM_POWER_CUT, 0);
  enum status status = server_spawn(&campaign->server, fault);
  if (status != STATUS_OK) return status;
  /* Ready, or gone: either way it is over soon. */
  if (server_wait_ready(&campaign->server, fault) == STATUS_OK) server_kill(&campaign->server);
  else if (server_wait_end(&campaign->server, end_ms_max, &result, fault) != STATUS_OK) return STATUS_UNAVAILABLE;
  disarm(campaign);
  campaign->kills++;
  oracle_judge_log(&campaign->oracle, campaign->server.data);
  return STATUS_OK;
}
