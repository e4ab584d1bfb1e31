/* Owns the making of a commit: a value, until journal_commit takes it to the disk. */
#include <stdlib.h>

#include "base/guard.h"
#include "journal/internal.h"

void commit_init(struct commit *commit) {
  *commit = (struct commit){0};
  buffer_init(&commit->records, commit_bytes_max);
}

void commit_clear(struct commit *commit) {
  buffer_clear(&commit->records);
  free(commit->ends);
  commit_init(commit);
}

void commit_reset(struct commit *commit, const struct journal *journal, int64_t time_us) {
  buffer_reset(&commit->records);
  commit->count = 0;
  commit->first_seq = journal_next_seq(journal);
  commit->time_us = time_us;
}

/* The records of a commit are bounded by its bytes, so neither number can overflow. */
static bool ends_grow(struct commit *commit) {
  uint32_t capacity = commit->capacity != 0 ? commit->capacity * 2 : 64;
  must(capacity / 4 <= commit_bytes_max / record_header_bytes);
  uint32_t *ends = realloc(commit->ends, capacity * sizeof *ends);
  if (ends == NULL) return false;
  commit->ends = ends;
  commit->capacity = capacity;
  return true;
}

enum status commit_add(struct commit *commit, struct event *event) {
  must(commit->first_seq != 0);
  if (commit->count == commit->capacity && !ends_grow(commit)) return STATUS_NO_MEMORY;
  size_t before = commit->records.size;
  event->seq = commit->first_seq + commit->count;
  event->offset = commit->count;
  event->time_us = commit->time_us;
  event->last_of_commit = false;
  must(event->prev < event->seq);
  if (record_encode(event, &commit->records) != STATUS_OK || commit->records.failed) {
    /* What was added before stays good. */
    commit->records.size = before;
    commit->records.failed = false;
    return STATUS_NO_MEMORY;
  }
  commit->ends[commit->count++] = (uint32_t)commit->records.size;
  return STATUS_OK;
}

struct bytes commit_record(const struct commit *commit, uint64_t seq) {
  if (seq < commit->first_seq || seq - commit->first_seq >= commit->count) return bytes_of(NULL, 0);
  uint32_t i = (uint32_t)(seq - commit->first_seq);
  size_t start = commit_record_start(commit, i);
  return bytes_of(commit->records.data + start, commit->ends[i] - start);
}

uint64_t commit_seal(struct commit *commit, uint64_t chain) {
  for (uint32_t i = 0; i < commit->count; i++) {
    size_t start = commit_record_start(commit, i);
    chain = record_seal(commit->records.data + start, commit->ends[i] - start, i + 1 == commit->count, i, chain);
  }
  return chain;
}
