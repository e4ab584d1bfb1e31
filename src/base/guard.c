/* Owns the last words of a process that may not go on. */
#include "base/guard.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void guard_failed(const char *condition, const char *file, int line, const char *function) {
  (void)fprintf(stderr, "orbit: defect: %s is false at %s:%d in %s\n", condition, file, line, function);
  abort();
}

void guard_free(void *pointer) { free(*(void **)pointer); }

void guard_close(int *fd) {
  if (*fd >= 0) (void)close(*fd);
}

static void *checked(void *memory, unsigned long size) {
  if (memory != NULL) return memory;
  (void)fprintf(stderr, "orbit: out of memory asking for %lu bytes; what was acknowledged is in the log\n", size);
  _Exit(3);
}

void *guard_malloc(unsigned long size) { return checked(malloc(size != 0 ? size : 1), size); }
void *guard_calloc(unsigned long count, unsigned long size) {
  return checked(calloc(count != 0 ? count : 1, size != 0 ? size : 1), size);
}
void *guard_realloc(void *old, unsigned long size) { return checked(realloc(old, size != 0 ? size : 1), size); }

static const uintptr_t huge_page_bytes = UINT64_C(1) << 21;

static uintptr_t round_up(uintptr_t at, uintptr_t to) { return (at + to - 1) & ~(to - 1); }

/* Starts where a huge page may: that is one fault instead of five hundred, and each of those costs a walk of its own. */
static void *pages_aligned(unsigned long size) {
  unsigned long whole = round_up(size, (uintptr_t)sysconf(_SC_PAGESIZE)) + huge_page_bytes;
  char *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return checked(NULL, size);
  size_t before = round_up((uintptr_t)memory, huge_page_bytes) - (uintptr_t)memory, behind = huge_page_bytes - before;
  if (before != 0) (void)munmap(memory, before);
  if (behind != 0) (void)munmap(memory + whole - behind, behind);
  (void)madvise(memory + before, size, MADV_HUGEPAGE); /* a wish: small pages do as well, more slowly */
  return memory + before;
}

void *guard_pages(unsigned long size, _Bool huge) {
  if (huge && size >= huge_page_bytes) return pages_aligned(size);
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED ? memory : checked(NULL, size);
}

void guard_huge(void *memory, unsigned long size) {
  const uintptr_t start = round_up((uintptr_t)memory, huge_page_bytes), end = (uintptr_t)memory + size;
  if (end >= start + huge_page_bytes) (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

void guard_pages_ready(void *memory, unsigned long size) { (void)madvise(memory, size, MADV_POPULATE_WRITE); }

void guard_pages_free(void *memory, unsigned long size) {
  if (memory != NULL) (void)munmap(memory, size);
}
