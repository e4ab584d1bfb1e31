/* Assertions that stay on in every build, and cleanup attributes for owned locals. */
#ifndef ORBIT_BASE_GUARD_H
#define ORBIT_BASE_GUARD_H

/* A programmer's error: says where and aborts. Never for operating errors or input. */
#define must(condition) ((condition) ? (void)0 : guard_failed(#condition, __FILE__, __LINE__, __func__))

_Noreturn void guard_failed(const char *condition, const char *file, int line, const char *function);

#define cleanup(function) __attribute__((cleanup(function)))

/* For `cleanup(guard_free) char *p = …;`: frees *(void **)pointer. */
void guard_free(void *pointer);
/* For `cleanup(guard_close) int fd = …;`: closes *fd when it is not negative. */
void guard_close(int *fd);

/* malloc/calloc that cannot return NULL: out of memory ends the process with a clear line (exit code 3), because memory
 * ahead of the log cannot be mended; what was acknowledged is on disk. For bounded or start-up allocations. */
void *guard_malloc(unsigned long size) __attribute__((returns_nonnull, malloc));
void *guard_calloc(unsigned long count, unsigned long size) __attribute__((returns_nonnull, malloc));
void *guard_realloc(void *old, unsigned long size) __attribute__((returns_nonnull));

/* Zeroed memory for large tables, from the kernel and given back to it by guard_pages_free (same size). huge: in huge pages
 * where the kernel has them, because walks over large tables are bound by address translation. */
void *guard_pages(unsigned long size, _Bool huge) __attribute__((returns_nonnull));
/* The same wish for large memory from guard_malloc or guard_realloc, before it is filled. */
void guard_huge(void *memory, unsigned long size);
/* Has the kernel make memory from guard_pages ready now, where it can, instead of at its first use; what stands in it stays.
 * For a thread beside the one that will use it. */
void guard_pages_ready(void *memory, unsigned long size);
void guard_pages_free(void *memory, unsigned long size);

#endif
