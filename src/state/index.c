/* Owns the hash index and its growth by small steps. */
#include "state/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

static const uint64_t removed = (UINT64_C(1) << 48) - 1;
enum { slots_first = 64, move_slots = 64 };

static uint64_t slot_value(const struct index_slot *slot) { return (uint64_t)slot->high << 32 | slot->low; }

static void slot_set(struct index_slot *slot, uint64_t value) {
  slot->low = (uint32_t)value;
  slot->high = (uint16_t)(value >> 32);
}

/* Small tables come from the heap, large ones in whole pages. */
enum { table_pages_bytes_min = 1 << 20 };

static void table_open(struct index_table *table, size_t slots) {
  size_t size = slots * sizeof *table->slots;
  table->slots = size >= table_pages_bytes_min ? guard_pages(size, true) : guard_calloc(slots, sizeof *table->slots);
  table->mask = slots - 1;
  table->taken = 0;
}

static void table_close(struct index_table *table) {
  size_t size = table->slots != NULL ? (table->mask + 1) * sizeof *table->slots : 0;
  if (size >= table_pages_bytes_min) guard_pages_free(table->slots, size);
  else free(table->slots);
  *table = (struct index_table){0};
}

void index_init(struct index *index) { memset(index, 0, sizeof *index); }

void index_clear(struct index *index) {
  table_close(&index->now);
  table_close(&index->old);
  index_init(index);
}

void index_empty(struct index *index) {
  table_close(&index->old);
  if (index->now.slots != NULL) memset(index->now.slots, 0, (index->now.mask + 1) * sizeof *index->now.slots);
  index->now.taken = 0;
  index->moved = 0;
  index->count = 0;
}

void *index_pages(const struct index *index, size_t *ret_size) {
  size_t size = index->now.slots != NULL ? (index->now.mask + 1) * sizeof *index->now.slots : 0;
  *ret_size = size >= table_pages_bytes_min ? size : 0;
  return index->now.slots;
}

static size_t slot_of(const struct index_table *table, uint64_t key) {
  return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & table->mask;
}

static void table_add(struct index_table *table, uint64_t key, uint64_t value) {
  size_t at = slot_of(table, key);
  uint64_t there;
  while ((there = slot_value(&table->slots[at])) != 0 && there != removed) at = (at + 1) & table->mask;
  if (there == 0) table->taken++;
  table->slots[at].key = key;
  slot_set(&table->slots[at], value);
}

static void move_some(struct index *index, size_t count) {
  if (index->old.slots == NULL) return;
  for (; count > 0 && index->moved <= index->old.mask; count--, index->moved++) {
    struct index_slot *slot = &index->old.slots[index->moved];
    uint64_t value = slot_value(slot);
    if (value == 0 || value == removed) continue;
    table_add(&index->now, slot->key, value);
    slot_set(slot, removed); /* lookups in old still walk past it */
  }
  if (index->moved <= index->old.mask) return;
  table_close(&index->old);
}

/* Three quarters taken: the next table has room for half as many again as the living entries, and for as many additions as it
 * takes to move all slots of this one, however few of them live: the move has ended when the next one begins. */
static void make_room(struct index *index) {
  if (index->now.slots == NULL) table_open(&index->now, slots_first);
  move_some(index, move_slots);
  if (index->now.taken < (index->now.mask + 1) / 4 * 3) return;
  must(index->old.slots == NULL);
  size_t slots = slots_first, moved_slots = (index->now.mask + 1) / move_slots;
  while (slots / 4 * 3 < index->count + moved_slots || slots < index->count + index->count / 2 + slots_first) slots *= 2;
  index->old = index->now;
  index->moved = 0;
  table_open(&index->now, slots);
}

void index_reserve(struct index *index, uint64_t count) {
  must(index->now.slots == NULL && index->count == 0);
  size_t slots = slots_first;
  while (slots / 4 * 3 <= count) slots *= 2;
  table_open(&index->now, slots);
}

void index_prefetch(const struct index *index, uint64_t key) {
  if (index->now.slots != NULL) __builtin_prefetch(&index->now.slots[slot_of(&index->now, key)], 1);
}

void index_prefetch_find(const struct index *index, uint64_t key) {
  if (index->now.slots != NULL) __builtin_prefetch(&index->now.slots[slot_of(&index->now, key)]);
  if (index->old.slots != NULL) __builtin_prefetch(&index->old.slots[slot_of(&index->old, key)]);
}

void index_add(struct index *index, uint64_t key, uint64_t value) {
  must(value != 0 && value <= index_value_max);
  make_room(index);
  table_add(&index->now, key, value);
  index->count++;
}

static uint64_t table_next(const struct index_table *table, uint64_t key, size_t *at) {
  uint64_t value;
  while ((value = slot_value(&table->slots[*at])) != 0) {
    const struct index_slot *slot = &table->slots[*at];
    *at = (*at + 1) & table->mask;
    if (slot->key == key && value != removed) return value;
  }
  return 0;
}

uint64_t index_next(const struct index *index, struct index_cursor *cursor) {
  if (cursor->stage == 0) {
    uint64_t value = index->now.slots != NULL ? table_next(&index->now, cursor->key, &cursor->at) : 0;
    if (value != 0 || index->old.slots == NULL) return value;
    cursor->stage = 1;
    cursor->at = slot_of(&index->old, cursor->key);
  }
  return index->old.slots != NULL ? table_next(&index->old, cursor->key, &cursor->at) : 0;
}

uint64_t index_find(const struct index *index, uint64_t key, struct index_cursor *cursor) {
  *cursor = (struct index_cursor){.key = key};
  if (index->now.slots != NULL) cursor->at = slot_of(&index->now, key);
  return index_next(index, cursor);
}

/* Lookups must walk past the slot only where something may stand behind it. */
static void table_vacate(struct index_table *table, size_t at) {
  slot_set(&table->slots[at], removed);
  if (slot_value(&table->slots[(at + 1) & table->mask]) != 0) return;
  for (; slot_value(&table->slots[at]) == removed; at = (at - 1) & table->mask) {
    slot_set(&table->slots[at], 0);
    table->taken--;
  }
}

static bool table_remove(struct index_table *table, uint64_t key, uint64_t value) {
  if (table->slots == NULL) return false;
  uint64_t there;
  for (size_t at = slot_of(table, key); (there = slot_value(&table->slots[at])) != 0; at = (at + 1) & table->mask) {
    if (table->slots[at].key != key || there != value) continue;
    table_vacate(table, at);
    return true;
  }
  return false;
}

bool index_take(struct index *index, uint64_t key, uint64_t value) {
  if (!table_remove(&index->now, key, value) && !table_remove(&index->old, key, value)) return false;
  index->count--;
  return true;
}

void index_remove(struct index *index, uint64_t key, uint64_t value) {
  bool found = index_take(index, key, value);
  must(found);
}

static uint64_t table_bytes(const struct index_table *table) {
  return table->slots != NULL ? (table->mask + 1) * sizeof *table->slots : 0;
}

uint64_t index_bytes(const struct index *index) { return table_bytes(&index->now) + table_bytes(&index->old); }

bool index_each(const struct index *index, size_t *at, uint64_t *ret_key, uint64_t *ret_value) {
  size_t now_slots = index->now.slots != NULL ? index->now.mask + 1 : 0;
  size_t old_slots = index->old.slots != NULL ? index->old.mask + 1 : 0;
  for (; *at < now_slots + old_slots; (*at)++) {
    const struct index_slot *slot = *at < now_slots ? &index->now.slots[*at] : &index->old.slots[*at - now_slots];
    uint64_t value = slot_value(slot);
    if (value == 0 || value == removed) continue;
    *ret_key = slot->key;
    *ret_value = value;
    (*at)++;
    return true;
  }
  return false;
}
