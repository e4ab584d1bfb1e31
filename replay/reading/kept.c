/* Owns copies of the records of one object. */
#include "reading/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

void kept_init(struct kept *kept, struct scan *scan) { *kept = (struct kept){.scan = scan}; }

void kept_clear(struct kept *kept) {
  for (size_t i = 0; i < kept->count; i++) free((void *)(uintptr_t)kept->records[i].record.data);
  free(kept->records);
  *kept = (struct kept){.scan = kept->scan};
}

/* A task has a few hundred events at most, and history asks for the newest ones first. */
static enum status get(void *context, uint64_t seq, struct bytes *ret_record) {
  struct kept *kept = context;
  struct bytes record;
  for (size_t i = kept->count; i-- > 0;) {
    if (kept->records[i].seq != seq) continue;
    *ret_record = kept->records[i].record;
    return STATUS_OK;
  }
  enum status status = scan_record(kept->scan, seq, &record);
  if (status != STATUS_OK) return status;
  if (kept->count == kept->capacity) {
    kept->capacity = kept->capacity != 0 ? kept->capacity * 2 : 64;
    kept->records = guard_realloc(kept->records, kept->capacity * sizeof *kept->records);
  }
  uint8_t *copy = guard_malloc(record.size);
  memcpy(copy, record.data, record.size);
  kept->records[kept->count++] = (struct kept_record){seq, bytes_of(copy, record.size)};
  *ret_record = bytes_of(copy, record.size);
  return STATUS_OK;
}

struct record_source kept_source(struct kept *kept) {
  return (struct record_source){get, kept};
}
