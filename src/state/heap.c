/* Owns the sifting of heaps. */
#include "state/heap.h"

#include <stdlib.h>

#include "base/guard.h"
#include "base/limits.h"

void heap_clear(struct heap *heap) {
  free(heap->entries);
  *heap = (struct heap){0};
}

bool heap_before(const struct heap_owner *owner, struct heap_entry a, struct heap_entry b) {
  if (a.key != b.key) return a.key < b.key;
  return owner->tie != NULL && a.number != b.number && owner->tie(owner->context, a.number, b.number) < 0;
}

static void place(struct heap *heap, const struct heap_owner *owner, uint32_t at, struct heap_entry entry) {
  heap->entries[at] = entry;
  *owner->position(owner->context, entry.number) = at + 1;
}

static void sift_up(struct heap *heap, const struct heap_owner *owner, uint32_t at, struct heap_entry entry) {
  while (at > 0) {
    uint32_t parent = (at - 1) / 4;
    if (!heap_before(owner, entry, heap->entries[parent])) break;
    place(heap, owner, at, heap->entries[parent]);
    at = parent;
  }
  place(heap, owner, at, entry);
}

static void sift_down(struct heap *heap, const struct heap_owner *owner, uint32_t at, struct heap_entry entry) {
  for (;;) {
    uint64_t child = (uint64_t)at * 4 + 1;
    if (child >= heap->count) break;
    uint32_t best = (uint32_t)child, end = child + 4 < heap->count ? (uint32_t)child + 4 : heap->count;
    for (uint32_t next = best + 1; next < end; next++)
      if (heap_before(owner, heap->entries[next], heap->entries[best])) best = next;
    if (!heap_before(owner, heap->entries[best], entry)) break;
    place(heap, owner, at, heap->entries[best]);
    at = best;
  }
  place(heap, owner, at, entry);
}

static void settle(struct heap *heap, const struct heap_owner *owner, uint32_t at, struct heap_entry entry) {
  if (at > 0 && heap_before(owner, entry, heap->entries[(at - 1) / 4])) sift_up(heap, owner, at, entry);
  else sift_down(heap, owner, at, entry);
}

static void resize(struct heap *heap, uint32_t capacity) {
  heap->capacity = capacity;
  heap->entries = guard_realloc(heap->entries, sizeof *heap->entries * capacity);
  guard_huge(heap->entries, sizeof *heap->entries * capacity);
}

void heap_reserve(struct heap *heap, uint32_t count) {
  if (count <= heap->capacity) return;
  resize(heap, count);
}

void heap_put(struct heap *heap, const struct heap_owner *owner, uint32_t number, int64_t key) {
  struct heap_entry entry = {key, number};
  uint32_t position = *owner->position(owner->context, number);
  if (position != 0) {
    settle(heap, owner, position - 1, entry);
    return;
  }
  if (heap->count == heap->capacity) resize(heap, heap->capacity != 0 ? heap->capacity * 2 : heap_entries_min);
  sift_up(heap, owner, heap->count++, entry);
}

void heap_remove(struct heap *heap, const struct heap_owner *owner, uint32_t number) {
  uint32_t *position = owner->position(owner->context, number);
  if (*position == 0) return;
  uint32_t at = *position - 1;
  must(at < heap->count && heap->entries[at].number == number);
  *position = 0;
  struct heap_entry last = heap->entries[--heap->count];
  if (at < heap->count) settle(heap, owner, at, last);
  if (heap->count < heap->capacity / 8 && heap->capacity > heap_kept_entries_max) resize(heap, heap->capacity / 2);
}

struct heap_entry heap_first(const struct heap *heap) {
  return heap->count != 0 ? heap->entries[0] : (struct heap_entry){0, 0};
}

int64_t heap_next(const struct heap *heap) {
  struct heap_entry first = heap_first(heap);
  return first.number != 0 ? first.key : INT64_MAX;
}

uint32_t heap_due(const struct heap *heap, int64_t now_us) {
  struct heap_entry first = heap_first(heap);
  return first.number != 0 && first.key <= now_us ? first.number : 0;
}

bool heap_is_sound(const struct heap *heap, const struct heap_owner *owner) {
  for (uint32_t i = 0; i < heap->count; i++) {
    if (*owner->position(owner->context, heap->entries[i].number) != i + 1) return false;
    if (i > 0 && heap_before(owner, heap->entries[i], heap->entries[(i - 1) / 4])) return false;
  }
  return true;
}
