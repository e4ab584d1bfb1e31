/* orbit-replay verify and orbit-audit verify on forged logs: one thing in a sound log is changed by somebody who knows how it
 * is made, and seals the chain anew where that is said. Each must be found, at its seq, with its reason. */
#include <xxhash.h>

#include "core/event.h"
#include "replay/rig.h"

#define INCIDENT_DIRECTORY ORBIT_SOURCE_DIR "/tests/data/incident"

enum { events_max = 64, genesis_bytes = 96 };

/* The log in hand: records decoded, their bytes owned. */
struct forgery {
  char *top;
  struct path data;
  struct event_decoder *decoders[events_max]; /* whose events point into them */
  struct bytes records[events_max];
  struct event events[events_max];
  uint32_t count;
  uint64_t first_chain;
};

static uint64_t genesis_chain_of(struct raw_log *log) {
  MDB_val key = {7, (void *)(uintptr_t) "genesis"}, value;
  assert_int_equal(mdb_get(log->txn, log->meta, &key, &value), 0);
  assert_int_equal(value.mv_size, genesis_bytes);
  return XXH3_64bits(value.mv_data, value.mv_size);
}

static void forgery_begin(struct forgery *forgery) {
  struct fault fault;
  forgery->top = test_directory_make();
  forgery->data = path_of(forgery->top, "forged");
  fixture_copy(INCIDENT_DIRECTORY, forgery->data.text);
  struct raw_log log = raw_open(forgery->data.text);
  MDB_stat found;
  assert_int_equal(mdb_stat(log.txn, log.events, &found), 0);
  assert_in_range(found.ms_entries, 1, events_max);
  forgery->count = (uint32_t)found.ms_entries;
  forgery->first_chain = genesis_chain_of(&log);
  for (uint32_t i = 0; i < forgery->count; i++) {
    forgery->records[i] = raw_get(&log, i + 1);
    forgery->decoders[i] = event_decoder_new();
    assert_int_equal(event_decode(forgery->decoders[i], forgery->records[i], &forgery->events[i], &fault), STATUS_OK);
  }
  raw_close(&log);
}

static void forgery_end(struct forgery *forgery) {
  for (uint32_t i = 0; i < forgery->count; i++) {
    event_decoder_free(forgery->decoders[i]);
    free((void *)(uintptr_t)forgery->records[i].data);
  }
  test_directory_remove(forgery->top);
}

/* Encodes every event as it stands in memory, and seals the chain from the first one on. */
static void forgery_write(struct forgery *forgery) {
  struct raw_log log = raw_open(forgery->data.text);
  uint64_t chain = forgery->first_chain;
  struct buffer record;
  buffer_init(&record, SIZE_MAX);
  for (uint32_t i = 0; i < forgery->count; i++) {
    const struct event *event = &forgery->events[i];
    buffer_reset(&record);
    assert_int_equal(record_encode(event, &record), STATUS_OK);
    chain = record_seal(record.data, record.size, event->last_of_commit, event->offset, chain);
    raw_put(&log, i + 1, buffer_bytes(&record));
  }
  buffer_clear(&record);
  raw_close(&log);
}

static struct event *event_of(struct forgery *forgery, enum event_type type) {
  for (uint32_t i = 0; i < forgery->count; i++)
    if (forgery->events[i].type == type) return &forgery->events[i];
  fail_msg("the log has no %s", event_type_text(type));
  return NULL;
}

/* ---- what is changed ---- */

typedef void change(struct forgery *forgery, struct event *event);

static void nothing(struct forgery *forgery, struct event *event) { (void)forgery, (void)event; }
static void time_falls(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->time_us -= 3600 * INT64_C(1000000);
}
static void prev_is_another(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->prev--;
}
static void commit_ends_early(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->last_of_commit = !event->last_of_commit;
}
static void offset_is_another(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->offset++;
}
static void revision_is_skipped(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->common.revision++;
}
static void stream_is_another(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->stream.bytes[15] ^= 1;
}
static void attempt_is_another(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->body.task_started.attempt_id.bytes[15] ^= 1;
}
static void doubt_is_dropped(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->body.task_review_required.effect_uncertain = false;
}
static void reason_is_another(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->body.task_review_required.decision = DECISION_DEADLINE_EXCEEDED;
}
static void key_is_used_again(struct forgery *forgery, struct event *event) {
  struct event *first = event_of(forgery, EVENT_task_accepted);
  for (struct event *other = first + 1; other < forgery->events + forgery->count; other++)
    if (other->type == EVENT_task_accepted) other->common.identity = event->common.identity;
}
static void evidence_is_missing(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->body.audit_recorded.evidence_ref = bytes_of(NULL, 0);
}
static void actor_is_nobody(struct forgery *forgery, struct event *event) {
  (void)forgery;
  event->common.actor = (struct id){{0}};
}

static struct event *review_record(struct forgery *forgery) {
  for (uint32_t i = 0; i < forgery->count; i++)
    if (forgery->events[i].type == EVENT_audit_recorded &&
        bytes_equal_text(forgery->events[i].body.audit_recorded.action, "task.review"))
      return &forgery->events[i];
  fail_msg("the log has no review");
  return NULL;
}

static void expect(const struct forgery *forgery, const char *program, const char *name, int code, const char *finding) {
  char path[512];
  struct api_run run;
  (void)snprintf(path, sizeof path, "%s", api_program(program));
  const char *const arguments[] = {path, "verify", "--data", forgery->data.text, NULL};
  api_run(arguments, NULL, &run);
  if (run.code != code || strstr(run.out, finding) == NULL)
    fail_msg("%s: %s exits %d, not %d with \"%s\":\n%s%s", name, program, run.code, code, finding, run.out, run.err);
  api_run_clear(&run);
}

/* ---- tests ---- */

static void each_forgery_is_found(void **state) {
  (void)state;
  static const struct {
    const char *name, *program;
    enum event_type type;
    change *change;
    bool later;          /* the finding is not at that event */
    const char *finding; /* behind "seq N: " */
  } rows[] = {
      {"nothing", "orbit-replay", EVENT_task_started, nothing, true, " 0 findings\n"},
      {"nothing", "orbit-audit", EVENT_task_started, nothing, true, " 0 findings\n"},
      {"time", "orbit-replay", EVENT_task_started, time_falls, false, "its time lies before that of the event before it"},
      {"prev", "orbit-replay", EVENT_task_started, prev_is_another, false, ""},
      {"commit", "orbit-replay", EVENT_attempt_ended, commit_ends_early, true, "commit"},
      {"offset", "orbit-replay", EVENT_task_review_required, offset_is_another, false,
       "the end of the commit before it is missing"},
      {"revision", "orbit-replay", EVENT_task_started, revision_is_skipped, false, "does not fit what is before it"},
      {"stream", "orbit-replay", EVENT_task_started, stream_is_another, false, "does not fit what is before it"},
      {"attempt", "orbit-replay", EVENT_task_started, attempt_is_another, false, "does not fit what is before it"},
      {"doubt", "orbit-replay", EVENT_task_review_required, doubt_is_dropped, false, "today's rules decide otherwise"},
      {"decision", "orbit-replay", EVENT_task_review_required, reason_is_another, false, "today's rules decide otherwise"},
      {"receipt", "orbit-replay", EVENT_task_accepted, key_is_used_again, true, "the operation identity was used before"},
      {"evidence", "orbit-audit", EVENT_audit_recorded, evidence_is_missing, false,
       "the audit record does not say on what evidence"},
      {"actor", "orbit-audit", EVENT_audit_recorded, actor_is_nobody, false, "the audit record does not say who did what"},
  };
  (void)api_program("orbit-replay");
  (void)api_program("orbit-audit");
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct forgery forgery;
    char finding[160];
    forgery_begin(&forgery);
    struct event *event = rows[i].type == EVENT_audit_recorded ? review_record(&forgery) : event_of(&forgery, rows[i].type);
    rows[i].change(&forgery, event);
    forgery_write(&forgery);
    if (rows[i].later) (void)snprintf(finding, sizeof finding, "%s", rows[i].finding);
    else (void)snprintf(finding, sizeof finding, "seq %" PRIu64 ": %s", event->seq, rows[i].finding);
    expect(&forgery, rows[i].program, rows[i].name, rows[i].change == nothing ? 0 : 1, finding);
    forgery_end(&forgery);
  }
}

/* A record that is gone, one that stands in another's place, one that is not sealed. */
static void each_broken_chain_is_found(void **state) {
  (void)state;
  static const char *const programs[] = {"orbit-replay", "orbit-audit"};
  for (unsigned i = 0; i < 6; i++) {
    struct forgery forgery;
    forgery_begin(&forgery);
    struct raw_log log = raw_open(forgery.data.text);
    if (i / 2 == 0) raw_delete(&log, 9);
    if (i / 2 == 1) raw_put(&log, 9, forgery.records[9]);
    if (i / 2 == 2) {
      uint8_t *bytes = (uint8_t *)(uintptr_t)forgery.records[8].data;
      bytes[forgery.records[8].size - 1] ^= 1;
      raw_put(&log, 9, forgery.records[8]);
    }
    raw_close(&log);
    expect(&forgery, programs[i % 2], "chain", 1,
           i / 2 == 0   ? "seq 9: missing\n"
           : i / 2 == 1 ? "seq 9: "
                        : "seq 9: the chain is broken");
    forgery_end(&forgery);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_forgery_is_found),
      cmocka_unit_test(each_broken_chain_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
