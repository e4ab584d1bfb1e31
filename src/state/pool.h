/* Paged arrays: elements of one size that never move, named by small numbers from 1 on. Freed ones are used again. */
#ifndef ORBIT_STATE_POOL_H
#define ORBIT_STATE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool {
  size_t element_bytes;
  void **pages;
  uint32_t first_pages; /* were made in one piece at first; later ones are made pool_block_pages at a time */
  uint32_t page_count;
  uint32_t used;  /* highest number ever given */
  uint32_t live;  /* elements in use */
  uint32_t *free; /* numbers to use again */
  uint32_t free_count, free_capacity;
};

enum { pool_page_elements = 8192, pool_block_pages = 16 };

void pool_init(struct pool *pool, size_t element_bytes);
void pool_clear(struct pool *pool);
/* Takes all elements out and keeps the memory for the next ones. */
void pool_empty(struct pool *pool);
/* The memory of pool_reserve's elements: *ret_size is 0 when there is none. */
void *pool_reserved(const struct pool *pool, size_t *ret_size);
/* Room for so many elements in one piece, for a load that knows how many will come. The pool is empty and has no page yet. */
void pool_reserve(struct pool *pool, uint32_t count);
/* A zeroed element; its number is never 0. Ends the process when memory ends (base/guard.h). */
uint32_t pool_add(struct pool *pool);
void pool_remove(struct pool *pool, uint32_t number);

static inline void *pool_at(const struct pool *pool, uint32_t number) {
  uint32_t at = number - 1;
  return (char *)pool->pages[at / pool_page_elements] + (size_t)(at % pool_page_elements) * pool->element_bytes;
}

#endif
