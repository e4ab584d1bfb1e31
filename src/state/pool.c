/* Owns paged memory for elements that must not move. */
#include "state/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

void pool_init(struct pool *pool, size_t element_bytes) { *pool = (struct pool){.element_bytes = element_bytes}; }

static size_t page_bytes(const struct pool *pool) { return pool->element_bytes * pool_page_elements; }

void pool_clear(struct pool *pool) {
  for (uint32_t i = 0; i < pool->page_count; i++) guard_pages_free(pool->pages[i], page_bytes(pool));
  free(pool->pages);
  free(pool->free);
  pool_init(pool, pool->element_bytes);
}

static void pool_add_page(struct pool *pool) {
  if ((pool->page_count & (pool->page_count + 1)) == 0) /* 0, 1, 3, 7 …: doubles before it is full */
    pool->pages = guard_realloc(pool->pages, sizeof *pool->pages * ((size_t)pool->page_count * 2 + 2));
  pool->pages[pool->page_count] = guard_pages(page_bytes(pool), pool->page_count != 0); /* most pools need but one page */
  pool->page_count++;
}

uint32_t pool_add(struct pool *pool) {
  uint32_t number;
  if (pool->free_count != 0) {
    number = pool->free[--pool->free_count];
  } else {
    must(pool->used < UINT32_MAX - 1);
    if (pool->used == pool->page_count * (uint64_t)pool_page_elements) pool_add_page(pool);
    number = ++pool->used;
  }
  pool->live++;
  memset(pool_at(pool, number), 0, pool->element_bytes);
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
