/* Owns the full disk: the log's file that may not grow, or a small file system that somebody else has filled. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "campaign.h"
#include "load/scan.h"
#include "support/support.h"

enum {
  path_max = 4096,
  refusal_ms_max = 60000, /* until the room that was held ahead is used up */
  again_ms_max = 30000,
  report_ms_max = 10000,
  answer_bytes_max = 1024 * 1024,
  refusals_wanted = 3,
};

/* ---- a small file system of its own ---- */

/* Room ahead is 64 MiB and a tick's 72: the rest is what may be written before the disk is full. */
static const char small_disk_options[] = "size=320m";

static bool copy_into(const char *from, const char *to) {
  pid_t pid;
  int result = 0;
  char source[path_max + 8];
  (void)snprintf(source, sizeof source, "%s/.", from);
  char *arguments[] = {(char[]){"cp"}, (char[]){"-a"}, source, (char *)(uintptr_t)to, NULL};
  return posix_spawnp(&pid, "cp", NULL, NULL, arguments, environ) == 0 && waitpid(pid, &result, 0) == pid && result == 0;
}

enum status full_mount(struct campaign *campaign, struct fault *fault) {
  char before[path_max];
  const char *data = campaign->server.data;
  (void)snprintf(before, sizeof before, "%s.before", data);
  /* A mount namespace of this process's own, so that nothing is left behind, whatever happens. */
  bool mounted = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
  if (!mounted) return fault_set(fault, STATUS_NOT_FOUND, NULL, "mounting is not allowed here: %s", strerror(errno));
  if (rename(data, before) != 0 || mkdir(data, 0700) != 0)
    return fault_set(fault, STATUS_IO_ERROR, NULL, "%.200s cannot be moved: %s", data, strerror(errno));
  if (mount("orbit-crash", data, "tmpfs", 0, small_disk_options) != 0)
    return fault_set(fault, STATUS_NOT_FOUND, NULL, "mounting is not allowed here: %s", strerror(errno));
  campaign->small_disk = strdup(data);
  return copy_into(before, data) ? STATUS_OK : fault_set(fault, STATUS_IO_ERROR, NULL, "%.200s cannot be copied", before);
}

void full_unmount(struct campaign *campaign) {
  if (campaign->small_disk != NULL) (void)umount2(campaign->small_disk, MNT_DETACH);
  free(campaign->small_disk);
  campaign->small_disk = NULL;
}

static void filler_path(const struct campaign *campaign, char out[path_max]) {
  (void)snprintf(out, path_max, "%s/filler", campaign->server.data);
}

/* ---- full, and not ---- */

static void fill(struct campaign *campaign) {
  char path[path_max];
  struct stat facts;
  campaign->full = true;
  if (campaign->small_disk == NULL) {
    (void)snprintf(path, sizeof path, "%s/log/data.mdb", campaign->server.data);
    must(stat(path, &facts) == 0);
    atomic_store(&campaign->control->file_size_max, (uint64_t)facts.st_size);
    return;
  }
  filler_path(campaign, path);
  cleanup(guard_close) int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  static const char zeroes[65536];
  must(file >= 0);
  while (write(file, zeroes, sizeof zeroes) > 0) continue;
  must(errno == ENOSPC);
}

static void make_room(struct campaign *campaign) {
  char path[path_max];
  campaign->full = false;
  if (campaign->small_disk == NULL) {
    atomic_store(&campaign->control->file_size_max, 0);
    return;
  }
  filler_path(campaign, path);
  must(unlink(path) == 0);
}

/* ---- what people do meanwhile ---- */

/* One request, waited for; the task in its answer is learnt. */
static void ask(struct campaign *campaign, uint64_t number, const char *path, const char *key, struct bytes body,
                enum task_state wanted) {
  const struct server_access *access = &campaign->server.access;
  struct oracle *oracle = &campaign->oracle;
  cleanup(buffer_clear) struct buffer request, answer;
  unsigned code = 0;
  struct fault fault;
  struct id id;
  uint64_t revision = 0;
  enum task_state state = TASK_NONE;
  buffer_init(&request, answer_bytes_max);
  buffer_init(&answer, answer_bytes_max);
  http_request_write(&request, "POST", path, &access->http, access->token, key, body);
  bool answered = http_fetch(&access->http, buffer_bytes(&request), &code, &answer, &fault) == STATUS_OK;
  struct bytes task = scan_member(scan_member(buffer_bytes(&answer), "data"), "task");
  if (!answered || code / 100 != 2 || !submitters_read_task(task, &id, &revision, &state) || state != wanted) {
    oracle_violated(oracle, SERVES_AGAIN, "POST %s was answered %u %.*s", path, code,
                    (int)(answer.size < 200 ? answer.size : 200), (const char *)answer.data);
    return;
  }
  oracle_named(oracle, number, &id);
  oracle_learn(oracle, number, revision, state);
  oracle->submissions[number].acknowledged = true;
}

/* A task that lies ahead, so that nobody takes it before it is cancelled. */
static uint64_t submit_ahead(struct campaign *campaign) {
  cleanup(buffer_clear) struct buffer body;
  char key[crash_key_size];
  uint64_t number = oracle_submit(&campaign->oracle);
  struct submission *submission = &campaign->oracle.submissions[number];
  submission->sent = submission->lies_ahead = true;
  buffer_init(&body, answer_bytes_max);
  submission_write(&body, campaign, number);
  crash_key(number, key);
  ask(campaign, number, "/v1/tasks", key, buffer_bytes(&body), TASK_WAITING);
  return number;
}

static void cancel(struct campaign *campaign, uint64_t number) {
  char path[96], key[crash_key_size + 8];
  (void)snprintf(path, sizeof path, "/v1/tasks/%s:cancel", id_text(&campaign->oracle.submissions[number].id).text);
  (void)snprintf(key, sizeof key, "cancel-%" PRIu64, number);
  ask(campaign, number, path, key, bytes_text("{\"reason\":\"the disk is full\"}"), TASK_CANCELLED);
}

/* A task that waits for a review, if the campaign has led to one. */
static void review(struct campaign *campaign) {
  const struct oracle *oracle = &campaign->oracle;
  uint64_t number = 0;
  while (number < oracle->submission_count && oracle->submissions[number].state != TASK_NEEDS_REVIEW) number++;
  if (number == oracle->submission_count) return;
  const struct submission *submission = &oracle->submissions[number];
  char path[96], key[crash_key_size + 8], body[256];
  (void)snprintf(path, sizeof path, "/v1/tasks/%s:review", id_text(&submission->id).text);
  (void)snprintf(key, sizeof key, "review-%" PRIu64, number);
  (void)snprintf(body, sizeof body,
                 "{\"expected_revision\":\"%" PRIu64
                 "\",\"outcome\":\"FAILED\",\"reason\":\"looked at\",\"evidence_ref\":\"none\","
                 "\"execution_settled\":true,\"result\":{}}",
                 submission->revision);
  ask(campaign, number, path, key, bytes_text(body), TASK_FAILED);
  campaign->reviews++;
}

/* ---- the round ---- */

/* New work until it is refused: the room that is held ahead is used up first. */
static void until_refused(struct campaign *campaign) {
  if (!campaign_turns(campaign, refusal_ms_max, &campaign->refusals, campaign->refusals + refusals_wanted - 1))
    oracle_violated(&campaign->oracle, SERVES_AGAIN, "a full disk refused no submission");
}

static uint64_t live_count(const struct campaign *campaign) {
  uint64_t count = 0;
  for (int i = 0; i < worker_count; i++) count += campaign->workers[i].live_count;
  return count;
}

/* What runs is reported, and people decide, out of the reserve. */
static void look_on(struct campaign *campaign, uint64_t ahead) {
  uint64_t live = live_count(campaign), before = campaign->reports;
  review(campaign);
  cancel(campaign, ahead);
  if (live != 0 && !campaign_turns(campaign, report_ms_max, &campaign->reports, before))
    oracle_violated(&campaign->oracle, SERVES_AGAIN, "no report was taken while the disk was full");
}

enum status full_round(struct campaign *campaign, struct fault *fault) {
  uint64_t ahead = submit_ahead(campaign);
  fill(campaign);
  until_refused(campaign);
  if (!campaign->broken) look_on(campaign, ahead);
  if (!campaign->broken && campaign_chance(campaign, 2)) {
    campaign_crash(campaign);
    enum status status = campaign_start(campaign, fault);
    if (status != STATUS_OK) return status;
    until_refused(campaign);
  }
  make_room(campaign);
  if (!campaign->broken && !campaign_turns(campaign, again_ms_max, &campaign->acceptances, campaign->acceptances))
    oracle_violated(&campaign->oracle, SERVES_AGAIN, "there is room again, and no submission is accepted");
  return STATUS_OK;
}
