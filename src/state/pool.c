/* Owns paged memory for elements that must not move. */
#include "state/pool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

void pool_init(struct pool *pool, size_t element_bytes) { *pool = (struct pool){.element_bytes = element_bytes}; }

static size_t page_bytes(const struct pool *pool) { return pool->element_bytes * pool_page_elements; }

void pool_clear(struct pool *pool) {
  guard_pages_free(pool->block, page_bytes(pool) * pool->block_pages);
  for (uint32_t i = pool->block_pages; i < pool->page_count; i++) guard_pages_free(pool->pages[i], page_bytes(pool));
  free(pool->pages);
  free(pool->free);
  pool_init(pool, pool->element_bytes);
}

/* The list of pages has room for a power of two of them. */
static uint32_t list_room(uint32_t page_count) {
  uint32_t room = 2;
  while (room < page_count) room *= 2;
  return room;
}

void pool_reserve(struct pool *pool, uint32_t count) {
  must(pool->page_count == 0);
  uint32_t pages = (uint32_t)(((uint64_t)count + pool_page_elements - 1) / pool_page_elements);
  if (pages == 0) return;
  pool->block = guard_pages(page_bytes(pool) * pages, true);
  pool->pages = guard_malloc(sizeof *pool->pages * list_room(pages));
  for (uint32_t i = 0; i < pages; i++) pool->pages[i] = (char *)pool->block + page_bytes(pool) * i;
  pool->block_pages = pool->page_count = pages;
}

static void pool_add_page(struct pool *pool) {
  if (pool->page_count == 0 || pool->page_count == list_room(pool->page_count))
    pool->pages = guard_realloc(pool->pages, sizeof *pool->pages * list_room(pool->page_count + 1));
  pool->pages[pool->page_count] = guard_pages(page_bytes(pool), pool->page_count != 0); /* most pools need but one page */
  pool->page_count++;
}

uint32_t pool_add(struct pool *pool) {
  uint32_t number;
  pool->live++;
  if (pool->free_count != 0) {
    number = pool->free[--pool->free_count];
    memset(pool_at(pool, number), 0, pool->element_bytes);
  } else {
    must(pool->used < UINT32_MAX - 1);
    if (pool->used == pool->page_count * (uint64_t)pool_page_elements) pool_add_page(pool);
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
