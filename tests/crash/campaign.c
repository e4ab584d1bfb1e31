/* Owns the course of the campaign: rounds of load and SIGKILL, then a clean end. */
#include "campaign.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/guard.h"
#include "support/support.h"

static const int64_t ms = 1000000;
enum { turn_ms = 1, round_ms_min = 10, round_ms_more = 500, end_ms_max = 120000 };

bool campaign_chance(struct campaign *campaign, unsigned n) { return test_random(&campaign->random) % n == 0; }

void campaign_turn(struct campaign *campaign) {
  submitters_turn(campaign);
  workers_turn(campaign);
  loop_turn(&campaign->loop, loop_now_ns() + turn_ms * ms);
}

bool campaign_turns(struct campaign *campaign, int64_t for_ms, const uint64_t *counter, uint64_t above) {
  int64_t until_ns = loop_now_ns() + for_ms * ms;
  while (!campaign->broken && loop_now_ns() < until_ns && (counter == NULL || *counter <= above)) campaign_turn(campaign);
  return counter != NULL && *counter > above;
}

static void close_all(struct campaign *campaign) {
  submitters_close(campaign);
  workers_close(campaign);
}

/* A server that is killed while it starts: now and then. */
static enum status kill_in_start(struct campaign *campaign, struct fault *fault) {
  enum status status = server_spawn(&campaign->server, fault);
  if (status != STATUS_OK) return status;
  int64_t until_ns = loop_now_ns() + (int64_t)(test_random(&campaign->random) % 30) * ms;
  while (loop_now_ns() < until_ns) loop_turn(&campaign->loop, until_ns);
  server_kill(&campaign->server);
  campaign->kills++;
  oracle_judge_log(&campaign->oracle, campaign->server.data);
  return STATUS_OK;
}

enum status campaign_start(struct campaign *campaign, struct fault *fault) {
  enum status status = STATUS_OK;
  if (campaign->kills > 0 && campaign_chance(campaign, 4)) status = kill_in_start(campaign, fault);
  if (status == STATUS_OK && campaign->control != NULL && campaign_chance(campaign, 4)) status = breaks_start(campaign, fault);
  if (status == STATUS_OK) status = server_spawn(&campaign->server, fault);
  if (status == STATUS_OK) status = server_wait_ready(&campaign->server, fault);
  if (status != STATUS_OK) return status;
  campaign->broken = campaign->breaking = false;
  submitters_open(campaign);
  workers_open(campaign);
  return STATUS_OK;
}

void campaign_crash(struct campaign *campaign) {
  server_kill(&campaign->server);
  campaign->kills++;
  close_all(campaign);
  oracle_judge_log(&campaign->oracle, campaign->server.data);
}

static enum status broken(const struct campaign *campaign, struct fault *fault) {
  return fault_set(fault, STATUS_UNAVAILABLE, NULL, "a connection broke though nobody killed the server: see %.200s/server.log",
                   campaign->server.directory);
}

static enum status crash_round(struct campaign *campaign, enum break_kind kind, struct fault *fault) {
  enum status status = campaign_start(campaign, fault);
  if (status != STATUS_OK) return status;
  (void)campaign_turns(campaign, round_ms_min + (int64_t)(test_random(&campaign->random) % round_ms_more), NULL, 0);
  if (campaign->broken) return broken(campaign, fault);
  status = breaks_round(campaign, kind, fault);
  if (status != STATUS_OK) return status;
  campaign->broke[kind]++;
  if (campaign->broken && !campaign->breaking) return broken(campaign, fault);
  campaign_crash(campaign);
  return STATUS_OK;
}

static bool is_over(const struct campaign *campaign) {
  return campaign->checking && submitters_idle(campaign) && workers_idle(campaign);
}

/* Nothing new, until everything is decided; then every task is looked at, and the server stops cleanly. */
static enum status last_round(struct campaign *campaign, struct fault *fault) {
  struct oracle *oracle = &campaign->oracle;
  enum status status = campaign_start(campaign, fault);
  if (status != STATUS_OK) return status;
  int64_t until_ns = loop_now_ns() + end_ms_max * ms;
  campaign->draining = true;
  while (!campaign->broken && loop_now_ns() < until_ns && !is_over(campaign)) {
    campaign->checking = oracle->decided == oracle->submission_count;
    campaign_turn(campaign);
  }
  if (campaign->broken) return broken(campaign, fault);
  for (uint64_t i = 0; i < oracle->submission_count; i++) {
    const struct submission *submission = &oracle->submissions[i];
    if (!submission->acknowledged || !submission_is_decided(submission))
      oracle_violated(oracle, WORK_COMES_TO_ITS_END, "submission %" PRIu64 " is %s", i,
                      submission->acknowledged ? task_state_text(submission->state) : "without an answer");
  }
  close_all(campaign);
  status = server_stop(&campaign->server, fault);
  if (status == STATUS_OK) oracle_judge_log(oracle, campaign->server.data);
  return status;
}

/* The ways take turns, from one that is drawn on; a full disk makes the log long, so it comes a few times only. */
static enum break_kind next_kind(struct campaign *campaign, unsigned breaks, enum break_kind last) {
  enum { full_rounds_max = 3 };
  if (breaks == BREAKS_FULL) return BREAK_FULL;
  if (campaign->broke[BREAK_FULL] >= full_rounds_max) breaks &= ~(unsigned)BREAKS_FULL;
  do last = (enum break_kind)((last + 1) % break_kind_count);
  while ((breaks & (1U << last)) == 0);
  return last;
}

static void say(const struct campaign *campaign) {
  const struct oracle *oracle = &campaign->oracle;
  const uint64_t *broke = campaign->broke;
  print_message("%" PRIu64 " kills; %" PRIu64 " tasks, %" PRIu64 " attempts, %" PRIu64 " repeats, %" PRIu64
                " conflicts, %" PRIu64 " looks; %" PRIu64 " events in %" PRIu64 " commits\n",
                campaign->kills, oracle->submission_count, oracle->attempt_count, campaign->repeats, campaign->conflicts,
                campaign->looks, oracle->events, oracle->commits);
  if (campaign->control != NULL || campaign->small_disk != NULL)
    print_message("%" PRIu64 " pauses, %" PRIu64 " failed writes, %" PRIu64 " short writes, %" PRIu64 " failed syncs, %" PRIu64
                  " power cuts, %" PRIu64 " full disks (%" PRIu64 " refusals, %" PRIu64 " reviews)\n",
                  broke[BREAK_PAUSE], broke[BREAK_WRITE], broke[BREAK_SHORT_WRITE], broke[BREAK_SYNC], broke[BREAK_POWER],
                  broke[BREAK_FULL], campaign->refusals, campaign->reviews);
}

enum status campaign_run(struct campaign *campaign, uint64_t seed, unsigned rounds, unsigned breaks, bool small_disk,
                         struct fault *fault) {
  *campaign = (struct campaign){.seed = seed, .random = seed};
  loop_init(&campaign->loop);
  submitters_init(campaign);
  workers_init(campaign);
  enum status status = server_make(&campaign->server, fault);
  if (status == STATUS_OK && small_disk) status = full_mount(campaign, fault);
  if (status == STATUS_OK && breaks != BREAKS_KILL && !small_disk) status = breaks_attach(campaign, fault);
  enum break_kind kind = (enum break_kind)(test_random(&campaign->random) % break_kind_count);
  for (unsigned i = 0; i < rounds && status == STATUS_OK; i++) {
    kind = next_kind(campaign, breaks, kind);
    status = crash_round(campaign, kind, fault);
  }
  if (status == STATUS_OK) status = last_round(campaign, fault);
  say(campaign);
  return status;
}

void campaign_clear(struct campaign *campaign) {
  bool keep = false;
  for (int i = 0; i < property_count; i++) keep = keep || campaign->oracle.violations[i] != 0;
  if (keep) print_message("kept: %s\n", campaign->server.directory);
  for (int i = 0; i < submitter_count; i++) http_line_clear(&campaign->submitters[i].line);
  for (int i = 0; i < worker_count; i++) worker_line_clear(&campaign->workers[i].line);
  server_kill(&campaign->server);
  full_unmount(campaign);
  breaks_detach(campaign);
  server_clear(&campaign->server, keep);
  loop_clear(&campaign->loop);
  oracle_clear(&campaign->oracle);
}
