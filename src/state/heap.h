/* A four-way heap of numbered elements by a 64-bit key, lowest first. The owner keeps each element's position, so that elements
 * can be moved and removed. Ties are ordered by the owner. */
#ifndef ORBIT_STATE_HEAP_H
#define ORBIT_STATE_HEAP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct __attribute__((packed, aligned(4))) heap_entry {
  int64_t key;
  uint32_t number;
};
static_assert(sizeof(struct heap_entry) == 12, "a waiting task stands in three heaps: no padding");

struct heap {
  struct heap_entry *entries;
  uint32_t count, capacity;
};

/* What the heap asks of its owner. */
struct heap_owner {
  /* Where the position of an element (1-based; 0: in no heap) is kept. */
  uint32_t *(*position)(void *context, uint32_t number);
  /* Order of two elements with equal keys; NULL: none. */
  int (*tie)(void *context, uint32_t a, uint32_t b);
  void *context;
};

void heap_clear(struct heap *heap); /* frees the memory alone */
/* Makes room for count elements. */
void heap_reserve(struct heap *heap, uint32_t count);
/* Adds the element, or moves it to its new key when it is there. */
void heap_put(struct heap *heap, const struct heap_owner *owner, uint32_t number, int64_t key);
/* Takes the element out, if it is there; a heap that has become far too large for its elements gives memory back. */
void heap_remove(struct heap *heap, const struct heap_owner *owner, uint32_t number);
/* The lowest; number 0 when the heap is empty. */
struct heap_entry heap_first(const struct heap *heap);
/* Of a heap of times: the earliest, INT64_MAX when it is empty; and the number whose time has come at now, 0: none. */
int64_t heap_next(const struct heap *heap);
uint32_t heap_due(const struct heap *heap, int64_t now_us);
/* True when no element stands before the one above it, and each knows its position. Walks all. */
bool heap_is_sound(const struct heap *heap, const struct heap_owner *owner);
/* True when a stands before b. */
bool heap_before(const struct heap_owner *owner, struct heap_entry a, struct heap_entry b);

#endif
