/* A hash index from 64-bit keys to 64-bit values, several values a key allowed: who looks up compares the object behind the
 * value. Open addressing; grows a few slots at a time, so that no insertion ever pays for all. */
#ifndef ORBIT_STATE_INDEX_H
#define ORBIT_STATE_INDEX_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values take 48 bits: at a million events a second their seqs last nine years, and numbers are far smaller. */
static const uint64_t index_value_max = (UINT64_C(1) << 48) - 2;

struct __attribute__((packed, aligned(2))) index_slot {
  uint64_t key;
  uint32_t low; /* of the value; both 0: empty, all ones: was removed */
  uint16_t high;
};
static_assert(sizeof(struct index_slot) == 14, "every task and every receipt has one of these: no padding");

struct index_table {
  struct index_slot *slots;
  size_t mask;  /* slots - 1 */
  size_t taken; /* slots that are not empty */
};

struct index {
  struct index_table now; /* takes insertions */
  struct index_table old; /* being moved over; slots NULL when none is */
  size_t moved;           /* slots of old that were moved */
  uint64_t count;
};

struct index_cursor {
  uint64_t key;
  size_t at;
  int stage;
};

void index_init(struct index *index);
void index_clear(struct index *index);
/* Takes all entries out and keeps the room for the next ones. */
void index_empty(struct index *index);
/* The table that takes additions, where it is large (from guard_pages); *ret_size is 0 when it is not. */
void *index_pages(const struct index *index, size_t *ret_size);
/* Makes room for count entries at once; the index is empty. */
void index_reserve(struct index *index, uint64_t count);
/* Asks the processor to fetch where this key will be added: for long runs of additions. */
void index_prefetch(const struct index *index, uint64_t key);
/* The same for where this key will be looked up. */
void index_prefetch_find(const struct index *index, uint64_t key);
void index_add(struct index *index, uint64_t key, uint64_t value); /* value 1–index_value_max */
/* Removes the entry with this key and value, if it is there; false: it is not. */
bool index_take(struct index *index, uint64_t key, uint64_t value);
/* The same for one that must be there. */
void index_remove(struct index *index, uint64_t key, uint64_t value);
/* Walks the values of a key: index_find starts, index_next goes on; 0 when there is no further one. */
uint64_t index_find(const struct index *index, uint64_t key, struct index_cursor *cursor);
uint64_t index_next(const struct index *index, struct index_cursor *cursor);
uint64_t index_bytes(const struct index *index); /* what its tables take */
/* Walks all entries in no order: *at starts at 0; false at the end. */
bool index_each(const struct index *index, size_t *at, uint64_t *ret_key, uint64_t *ret_value);

#endif
