/* What the files of liborbit share: filling errors, option structures of any age, memory of results, ids and clocks. */
#ifndef ORBIT_SDK_H
#define ORBIT_SDK_H

#include <stdarg.h>

#include "orbit.h"

#include "base/bytes.h"
#include "base/id.h"

/* Fills *error (may be NULL) and returns status, so that a failure is one line. field may be NULL. */
int sdk_fail(struct orbit_error *error, int status, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int sdk_no_memory(struct orbit_error *error);
/* Copies text into out (size bytes, always NUL-terminated), cut short between characters where it does not fit. */
void sdk_text_copy(char *out, size_t size, struct bytes text);

/* Copies a caller's option structure, which begins with its size, into target (size bytes): fields that the caller does not
 * know yet become zero. ORBIT_INVALID_ARGUMENT: NULL, a size that cannot be, or a field set that this library does not know. */
int sdk_options_copy(void *target, size_t size, const void *options, struct orbit_error *error);

/* Memory that is freed all at once. When an allocation fails, `failed` is set and the pointer is NULL; callers look once, at
 * the end. */
struct sdk_arena {
  struct sdk_block *blocks;
  bool failed;
};
void sdk_arena_clear(struct sdk_arena *arena);
void *sdk_arena_alloc(struct sdk_arena *arena, size_t size); /* zeroed */
/* A copy with a NUL after it; NULL where data is NULL or memory ends. */
const char *sdk_arena_text(struct sdk_arena *arena, struct bytes text);
const char *sdk_arena_string(struct sdk_arena *arena, const char *text); /* NULL stays NULL */

/* An object of size zeroed bytes with an arena of its own behind it: what the public free functions take. NULL: no memory. */
void *sdk_result_new(size_t size);
struct sdk_arena *sdk_result_arena(void *result);
void sdk_result_free(void *result);
void sdk_result_wipe(void *result); /* wipes all that it holds, and frees it */

/* False: no randomness. Thread-safe. */
bool sdk_random(void *out, size_t size);
bool sdk_random_id(struct id *ret_id);
void sdk_wipe(void *memory, size_t size); /* survives the optimiser */
/* curl and libsodium, once a process. False: they cannot be used. */
bool sdk_global_init(void);

int64_t sdk_monotonic_ms(void);
int64_t sdk_wall_us(void);

/* The file of authorities for https and wss: what was given, else what $ORBIT_CA_FILE names, else NULL for the system's. */
const char *sdk_ca_file(const char *given);

/* Words as the server judges them. */
bool sdk_is_visible_ascii(const char *text, size_t max); /* 1–max characters, no space */
bool sdk_is_word(const char *text);                      /* 1–128 of [A-Za-z0-9._:/-] */
bool sdk_is_id(const char *text);
bool sdk_is_text(const char *text, size_t min_chars, size_t max_chars); /* UTF-8 of min–max characters */

#endif
