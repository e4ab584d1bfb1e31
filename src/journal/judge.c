/* Owns the judgement of a record by the log alone. */
#include "journal/judge.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

void judge_begin(struct judge *judge, struct bytes genesis) {
  *judge = (struct judge){.chain = XXH3_64bits(genesis.data, genesis.size), .last_of_commit = true};
}

static uint64_t header_u64(struct bytes record, size_t at) {
  uint64_t value;
  memcpy(&value, record.data + at, sizeof value);
  return le64toh(value);
}

const char *judge_bytes(const struct judge *judge, struct bytes record) {
  if (record.size < record_header_bytes) return "the record is shorter than its header";
  if (header_u64(record, offsetof(struct record_header, seq)) != judge->seq + 1)
    return "its record carries another seq: records were swapped, or it is damaged";
  if (record_chain(record, judge->chain) == header_u64(record, offsetof(struct record_header, chain))) return NULL;
  if (judge->seq == 0) return "it does not follow from genesis: genesis is of another log, or it is damaged";
  return "the chain is broken: this record is damaged, or not the one that was written";
}

const char *judge_order(const struct judge *judge, const struct event *event) {
  if (event->prev >= event->seq) return "prev does not point backwards";
  if (event->time_us < judge->time_us) return "its time lies before that of the event before it";
  if (judge->last_of_commit) return event->offset == 0 ? NULL : "the start of its commit is missing";
  if (event->offset != judge->offset + 1) return "the end of the commit before it is missing";
  return event->time_us == judge->time_us ? NULL : "its time is not that of its commit";
}

void judge_take(struct judge *judge, const struct event *event) {
  *judge = (struct judge){.seq = event->seq,
                          .chain = event->chain,
                          .time_us = event->time_us,
                          .offset = event->offset,
                          .last_of_commit = event->last_of_commit};
}
