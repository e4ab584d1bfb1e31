/* What the tests of the walker share: a log with all kinds of pages in it, and the judgement that orbit-replay verify makes of
 * a file: structure, chain, order, decoding. */
#ifndef ORBIT_TESTS_JOURNAL_WALKER_FIXTURE_H
#define ORBIT_TESTS_JOURNAL_WALKER_FIXTURE_H

#include "journal/fixture.h"
#include "journal/judge.h"
#include "journal/walker.h"

/* A log with branches, leaves, records in pages of their own, lists of free pages, and a clean stop. */
static inline void walker_log_make(const char *data, unsigned commits) {
  struct journal *journal = fixture_create(data);
  for (unsigned i = 0; i < commits; i++) {
    fixture_commit(journal, 1 + i % 5, 20 + i % 7 * 90);
    if (i % 40 == 7) fixture_commit(journal, 2, 5000 + 37 * (size_t)i);
    if (i % 100 == 50) {
      journal_close(journal, true);
      journal = fixture_open(data);
    }
  }
  journal_close(journal, true);
}

/* What one reading of a file came to. */
struct walker_verdict {
  enum status opened;
  uint64_t findings, events, last_seq, digest; /* digest: over all records that were read */
  struct walker_facts facts;
  uint8_t *unused; /* a mark a byte of the file, or NULL */
  uint64_t unused_size;
  bool talk;
};

static inline void verdict_damage(void *context, uint64_t page, const char *what) {
  struct walker_verdict *verdict = context;
  verdict->findings++;
  assert_true(what[0] != 0);
  if (verdict->talk) print_message("page %" PRIu64 ": %s\n", page, what);
}

static inline void verdict_unused(void *context, uint64_t offset, uint64_t bytes) {
  struct walker_verdict *verdict = context;
  assert_true(bytes > 0);
  if (verdict->unused == NULL) return;
  assert_true(offset + bytes <= verdict->unused_size);
  for (uint64_t i = offset; i < offset + bytes; i++) {
    assert_int_equal(verdict->unused[i], 0); /* each byte is accounted for once */
    verdict->unused[i] = 1;
  }
}

static inline void verdict_record(struct walker_verdict *verdict, struct judge *judge, struct event_decoder *decoder,
                                  uint64_t key, struct bytes record) {
  struct event event;
  struct fault fault;
  const char *wrong = key != judge->seq + 1 ? "missing" : judge_bytes(judge, record);
  verdict->events++;
  verdict->last_seq = key;
  if (record.size >= record_header_bytes) verdict->digest = record_chain(record, verdict->digest);
  if (wrong == NULL && event_decode(decoder, record, &event, &fault) != STATUS_OK) wrong = fault.message;
  if (wrong == NULL) wrong = judge_order(judge, &event);
  if (wrong != NULL) verdict->findings++;
  if (wrong != NULL && verdict->talk) print_message("seq %" PRIu64 ": %s\n", key, wrong);
  if (wrong == NULL) judge_take(judge, &event);
  else judge->seq = key;
}

/* Reads the whole file. */
static inline void walker_verdict_make(const char *data, struct walker_verdict *verdict) {
  struct walker *walker = NULL;
  struct walker_listener listener = {verdict_damage, verdict_unused, verdict};
  struct fault fault = {.message = ""};
  verdict->findings = verdict->events = verdict->last_seq = verdict->digest = 0;
  verdict->opened = walker_open(data, &listener, &walker, &fault);
  if (verdict->opened != STATUS_OK) {
    assert_true(fault.message[0] != 0);
    verdict->findings++;
    return;
  }
  struct judge judge;
  struct event_decoder *decoder = event_decoder_new();
  struct bytes record = {NULL, 0}, genesis = walker_genesis(walker);
  uint64_t key;
  enum status status;
  if (genesis.data == NULL) assert_true(verdict->findings > 0);
  judge_begin(&judge, genesis.data != NULL ? genesis : bytes_of("", 0));
  while ((status = walker_next(walker, &key, &record)) == STATUS_OK) verdict_record(verdict, &judge, decoder, key, record);
  assert_int_equal(status, STATUS_END);
  if (!judge.last_of_commit) verdict->findings++;
  walker_finish(walker);
  walker_facts(walker, &verdict->facts);
  event_decoder_free(decoder);
  walker_close(walker);
}

#endif
