/* Owns the producers' side of the campaign: submissions, their repeats, conflicts, and looking at tasks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "campaign.h"
#include "load/scan.h"
#include "support/support.h"

enum { body_bytes_max = 256 * 1024, large_bytes = 200 * 1000, unfinished_max = 200, recent = 200, lies_ahead_s = 3600 };

/* What a task is like follows from the seed and its number, so that a repeat says the same. */
struct kind {
  unsigned attempts, delay_ms, priority, filling, key;
  bool idempotent;
};

static struct kind kind_of(const struct campaign *campaign, uint64_t number) {
  uint64_t state = campaign->seed + number, drawn = test_random(&state), more = test_random(&state);
  return (struct kind){.attempts = 1 + (unsigned)(drawn % 5),
                       .delay_ms = (unsigned)((drawn >> 8) % 20),
                       .priority = (unsigned)((drawn >> 16) % 10),
                       .filling = (drawn >> 24) % 128 == 0 ? 50000 : (unsigned)((drawn >> 32) % 1500),
                       .key = more % 8 == 0 ? 1 + (unsigned)((more >> 8) % 4) : 0,
                       .idempotent = (more >> 16) % 2 == 0};
}

/* other_order: the same meaning, written in another way. other_content: another meaning. */
static void write_body(struct buffer *out, const struct campaign *campaign, uint64_t number, bool other_order,
                       bool other_content) {
  struct kind kind = kind_of(campaign, number);
  if (campaign->oracle.submissions[number].large) kind.filling = large_bytes;
  char key[crash_key_size];
  crash_key(number, key);
  const char *space = other_order ? " " : "";
  buffer_append_char(out, '{');
  if (other_order) buffer_append_format(out, " \"task_timeout_ms\" :86400000, ");
  buffer_append_format(out,
                       "\"queue_id\":%s\"%s\",\"handler\":\"crash\",\"handler_version\":\"v1\",\"payload_version\":\"v1\",",
                       space, campaign->server.access.queue_id);
  buffer_append_format(out, "\"business_key\":\"%s\",%s\"priority\":%u,", key, space, kind.priority);
  if (kind.key != 0) buffer_append_format(out, "\"concurrency_key\":\"key-%u\",", kind.key);
  buffer_append_format(out, "\"recovery_safety\":\"%s\",", kind.idempotent ? "IDEMPOTENT" : "RECONCILE_ONLY");
  buffer_append_format(out, "\"retry\":{\"max_attempts\":%u,\"initial_delay_ms\":%u,\"max_delay_ms\":%u},", kind.attempts,
                       kind.delay_ms, kind.delay_ms * 4);
  buffer_append_format(out, "\"payload\":{%s\"n\":\"%" PRIu64 "%s\",\"fill\":\"", space, number, other_content ? "'" : "");
  for (unsigned i = 0; i < kind.filling; i++) buffer_append_char(out, (char)('a' + i % 26));
  buffer_append_text(out, "\"}");
  if (!other_order) buffer_append_text(out, ",\"task_timeout_ms\":86400000");
  if (campaign->oracle.submissions[number].lies_ahead) {
    struct timespec now;
    char at[time_chars_max];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    buffer_append_text(out, ",\"available_at\":\"");
    buffer_append(out, at, time_format(((int64_t)now.tv_sec + lies_ahead_s) * 1000000, at));
    buffer_append_char(out, '"');
  }
  buffer_append_char(out, '}');
  must(!out->failed);
}

void submission_write(struct buffer *out, const struct campaign *campaign, uint64_t number) {
  write_body(out, campaign, number, false, false);
}

static void send_job(struct submitter *submitter) {
  struct campaign *campaign = submitter->campaign;
  const struct server_access *access = &campaign->server.access;
  struct submission *submission = &campaign->oracle.submissions[submitter->number];
  cleanup(buffer_clear) struct buffer request, body;
  char key[crash_key_size], path[64];
  buffer_init(&request, 2 * body_bytes_max);
  buffer_init(&body, body_bytes_max);
  crash_key(submitter->number, key);
  submitter->before = *submission;
  if (submitter->job == JOB_GET) {
    (void)snprintf(path, sizeof path, "/v1/tasks/%s", id_text(&submission->id).text);
    http_request_write(&request, "GET", path, &access->http, access->token, NULL, bytes_of(NULL, 0));
  } else {
    write_body(&body, campaign, submitter->number, submitter->job == JOB_REPEAT && campaign_chance(campaign, 2),
               submitter->job == JOB_CONFLICT);
    http_request_write(&request, "POST", "/v1/tasks", &access->http, access->token, key, buffer_bytes(&body));
    submission->sent = true;
  }
  must(!request.failed);
  http_line_send(&submitter->line, buffer_bytes(&request));
}

/* ---- answers ---- */

bool submitters_read_task(struct bytes task, struct id *ret_id, uint64_t *ret_revision, enum task_state *ret_state) {
  struct bytes revision = scan_text(task, "revision");
  uint64_t value = 0;
  for (size_t i = 0; i < revision.size; i++) value = value * 10 + (uint64_t)(revision.data[i] - '0');
  *ret_revision = value;
  return task.data != NULL && id_parse(scan_text(task, "id"), ret_id) &&
         task_state_parse(scan_text(task, "state"), ret_state) && value > 0;
}

/* The answer to a submission, the first time or again. */
static void judge_submission(struct submitter *submitter, unsigned status, struct bytes data) {
  struct oracle *oracle = &submitter->campaign->oracle;
  struct submission *submission = &oracle->submissions[submitter->number];
  bool repeated = scan_is_true(data, "deduplicated");
  bool must_be_repeated = submitter->before.known, may_be_repeated = must_be_repeated || submitter->was_sent;
  struct id id;
  uint64_t revision;
  enum task_state state;
  if (!submitters_read_task(scan_member(data, "task"), &id, &revision, &state) || revision != 1 || state != TASK_WAITING)
    oracle_violated(oracle, REPEAT_GETS_FIRST_ANSWER, "submission %" PRIu64 " was answered %u with another task than a new one",
                    submitter->number, status);
  else if (status != (repeated ? 200U : 201U) || (must_be_repeated && !repeated) || (repeated && !may_be_repeated))
    oracle_violated(oracle, REPEAT_GETS_FIRST_ANSWER, "submission %" PRIu64 " (%s) was answered %u, deduplicated: %s",
                    submitter->number,
                    must_be_repeated  ? "known"
                    : may_be_repeated ? "sent before"
                                      : "new",
                    status, repeated ? "true" : "false");
  else {
    oracle_named(oracle, submitter->number, &id);
    oracle_learn(oracle, submitter->number, revision, state);
    submission->acknowledged = true;
    submitter->campaign->acceptances += !repeated;
  }
}

/* The task as it is now, against what was known when it was asked for. */
static void judge_look(struct submitter *submitter, unsigned status, struct bytes data) {
  struct oracle *oracle = &submitter->campaign->oracle;
  const struct submission *before = &submitter->before;
  struct bytes task = scan_member(data, "task");
  struct id id;
  uint64_t revision;
  enum task_state state;
  char key[crash_key_size];
  crash_key(submitter->number, key);
  if (status != 200 || !submitters_read_task(task, &id, &revision, &state) || !id_equal(&id, &before->id) ||
      !bytes_equal_text(scan_text(task, "business_key"), key)) {
    oracle_violated(oracle, ACKNOWLEDGED_IS_RECOVERED, "submission %" PRIu64 ", task %s: GET was answered %u",
                    submitter->number, id_text(&before->id).text, status);
    return;
  }
  bool further = revision > before->revision && !submission_is_decided(before);
  if (!further && (revision != before->revision || state != before->state))
    oracle_violated(oracle, ACKNOWLEDGED_IS_RECOVERED, "task %s was %s, revision %" PRIu64 ", and is %s, revision %" PRIu64,
                    id_text(&id).text, task_state_text(before->state), before->revision, task_state_text(state), revision);
  else oracle_learn(oracle, submitter->number, revision, state);
}

static void answered(struct http_line *line, unsigned status, struct bytes body) {
  struct submitter *submitter = line->context;
  struct campaign *campaign = submitter->campaign;
  struct bytes data = scan_member(body, "data");
  enum job job = submitter->job;
  submitter->job = JOB_NONE;
  campaign->answers++;
  if (status == 503 && job != JOB_GET) { /* the operation may have been committed: repeat it with the same identity */
    bool full = campaign->full && memmem(body.data, body.size, "the disk is full", 16) != NULL;
    campaign->refusals += full;
    submitter->job = job == JOB_SUBMIT ? JOB_SUBMIT : JOB_NONE;
    if (!full) submitter->was_sent = true; /* a full disk refuses before anything is decided */
    return;
  }
  if (job == JOB_GET) {
    judge_look(submitter, status, data);
  } else if (job != JOB_CONFLICT) {
    judge_submission(submitter, status, data);
  } else if (status != 409 || !bytes_equal_text(scan_text(scan_member(body, "error"), "code"), "IDEMPOTENCY_CONFLICT")) {
    oracle_violated(&campaign->oracle, REPEAT_GETS_FIRST_ANSWER, "submission %" PRIu64 " with other content was answered %u",
                    submitter->number, status);
  }
}

static void broke(struct http_line *line) {
  struct submitter *submitter = line->context;
  submitter->campaign->broken = true;
}

/* ---- what to do next ---- */

/* A submission that was answered, the newer the likelier. False: the draw met none. */
static bool draw_known(struct campaign *campaign, uint64_t *ret_number) {
  uint64_t count = campaign->oracle.submission_count;
  if (count == 0) return false;
  uint64_t range = count > recent && campaign_chance(campaign, 2) ? recent : count;
  uint64_t number = count - 1 - test_random(&campaign->random) % range;
  const struct submission *submission = &campaign->oracle.submissions[number];
  if (!submission->acknowledged || submission->lies_ahead) return false;
  *ret_number = number;
  return true;
}

static bool next_look(struct campaign *campaign, uint64_t *ret_number) {
  while (campaign->check_next < campaign->oracle.submission_count) {
    uint64_t number = campaign->check_next++;
    if (!campaign->oracle.submissions[number].known) continue;
    *ret_number = number;
    return true;
  }
  return false;
}

static void choose(struct submitter *submitter) {
  struct campaign *campaign = submitter->campaign;
  struct oracle *oracle = &campaign->oracle;
  uint64_t number;
  unsigned dice = (unsigned)(test_random(&campaign->random) % 100);
  if (campaign->checking) {
    if (next_look(campaign, &submitter->number)) submitter->job = JOB_GET;
  } else if (dice < 40 && draw_known(campaign, &number)) {
    submitter->job = dice < 5 ? JOB_CONFLICT : dice < 20 ? JOB_REPEAT : JOB_GET;
    submitter->number = number;
  } else if (!campaign->draining && oracle->submission_count - oracle->decided < unfinished_max) {
    submitter->job = JOB_SUBMIT;
    submitter->number = oracle_submit(oracle);
    oracle->submissions[submitter->number].large = campaign->full;
    submitter->was_sent = false;
  }
  campaign->looks += submitter->job == JOB_GET;
  campaign->repeats += submitter->job == JOB_REPEAT;
  campaign->conflicts += submitter->job == JOB_CONFLICT;
}

void submitters_turn(struct campaign *campaign) {
  for (int i = 0; i < submitter_count; i++) {
    struct submitter *submitter = &campaign->submitters[i];
    if (submitter->line.waiting || !stream_is_open(&submitter->line.stream)) continue;
    if (submitter->job == JOB_NONE) choose(submitter);
    if (submitter->job != JOB_NONE) send_job(submitter);
  }
}

bool submitters_idle(const struct campaign *campaign) {
  for (int i = 0; i < submitter_count; i++)
    if (campaign->submitters[i].line.waiting || campaign->submitters[i].job == JOB_SUBMIT) return false;
  return !campaign->checking || campaign->check_next >= campaign->oracle.submission_count;
}

/* ---- connections ---- */

void submitters_init(struct campaign *campaign) {
  for (int i = 0; i < submitter_count; i++) {
    struct submitter *submitter = &campaign->submitters[i];
    http_line_init(&submitter->line, &campaign->loop);
    submitter->line.context = submitter;
    submitter->line.answered = answered;
    submitter->line.broke = broke;
    submitter->campaign = campaign;
  }
}

void submitters_open(struct campaign *campaign) {
  for (int i = 0; i < submitter_count; i++)
    if (!http_line_open(&campaign->submitters[i].line, &campaign->server.access.http)) campaign->broken = true;
}

void submitters_close(struct campaign *campaign) {
  for (int i = 0; i < submitter_count; i++) {
    struct submitter *submitter = &campaign->submitters[i];
    stream_close(&submitter->line.stream);
    if (submitter->job == JOB_SUBMIT && submitter->line.waiting) {
      submitter->was_sent = true;
      campaign->repeats++;
    } else if (submitter->job != JOB_SUBMIT) {
      submitter->job = JOB_NONE;
    }
    submitter->line.waiting = false;
  }
}
