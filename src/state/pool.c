/* Owns paged memory for elements that must not move. */
#include "state/pool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

void pool_init(struct pool *pool, size_t element_bytes) { *pool = (struct pool){.element_bytes = element_bytes}; }

static size_t page_bytes(const struct pool *pool) { return pool->element_bytes * pool_page_elements; }

void pool_clear(struct pool *pool) {
  for (uint32_t i = 0; i < pool->page_count; i += i != 0 ? pool_block_pages : pool->first_pages)
    guard_pages_free(pool->pages[i], page_bytes(pool) * (i != 0 ? pool_block_pages : pool->first_pages));
  free(pool->pages);
  free(pool->free);
  pool_init(pool, pool->element_bytes);
}

void pool_empty(struct pool *pool) {
  for (uint32_t first = 0; first < pool->used; first += pool_page_elements) {
    uint32_t left = pool->used - first, count = left < pool_page_elements ? left : pool_page_elements;
    memset(pool->pages[first / pool_page_elements], 0, pool->element_bytes * count);
  }
  pool->used = pool->live = pool->free_count = 0;
}

void *pool_reserved(const struct pool *pool, size_t *ret_size) {
  *ret_size = page_bytes(pool) * pool->first_pages;
  return pool->first_pages != 0 ? pool->pages[0] : NULL;
}

/* The list of pages has room for a power of two of them. */
static uint32_t list_room(uint32_t page_count) {
  uint32_t room = 2;
  while (room < page_count) room *= 2;
  return room;
}

/* Pages in one piece of memory, so that they may lie in huge ones across their borders; what is not used is not there. */
static void add_pages(struct pool *pool, uint32_t count, bool huge) {
  uint32_t room = pool->page_count != 0 ? list_room(pool->page_count) : 0, needed = list_room(pool->page_count + count);
  if (needed != room) pool->pages = guard_realloc(pool->pages, sizeof *pool->pages * needed);
  char *block = guard_pages(page_bytes(pool) * count, huge);
  for (uint32_t i = 0; i < count; i++) pool->pages[pool->page_count++] = block + page_bytes(pool) * i;
}

void pool_reserve(struct pool *pool, uint32_t count) {
  must(pool->page_count == 0);
  uint32_t pages = (uint32_t)(((uint64_t)count + pool_page_elements - 1) / pool_page_elements);
  if (pages == 0) return;
  add_pages(pool, pages, true);
  pool->first_pages = pages;
}

static void pool_grow(struct pool *pool) {
  if (pool->page_count != 0) {
    add_pages(pool, pool_block_pages, true);
    return;
  }
  add_pages(pool, 1, false); /* most pools need but one page */
  pool->first_pages = 1;
}

uint32_t pool_add(struct pool *pool) {
  uint32_t number;
  pool->live++;
  if (pool->free_count != 0) {
    number = pool->free[--pool->free_count];
    memset(pool_at(pool, number), 0, pool->element_bytes);
  } else {
    must(pool->used < UINT32_MAX - 1);
    if (pool->used == pool->page_count * (uint64_t)pool_page_elements) pool_grow(pool);
    number = ++pool->used; /* fresh pages are zeroed */
  }
  return number;
}

void pool_remove(struct pool *pool, uint32_t number) {
  must(number != 0 && number <= pool->used);
  if (pool->free_count == pool->free_capacity) {
    pool->free_capacity = pool->free_capacity != 0 ? pool->free_capacity * 2 : 64;
    pool->free = guard_realloc(pool->free, sizeof *pool->free * pool->free_capacity);
  }
  pool->free[pool->free_count++] = number;
  pool->live--;
}
