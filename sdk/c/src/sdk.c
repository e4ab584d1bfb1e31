/* Owns what the files of liborbit share: errors, option structures, arenas, randomness, clocks. */
#include "sdk.h"

#include <curl/curl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"

/* ---- Errors ---- */

const char *orbit_version(void) { return ORBIT_VERSION; }

const char *orbit_status_name(int status) {
  static const char *const names[] = {
      [ORBIT_OK] = "OK",
      [ORBIT_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
      [ORBIT_NO_MEMORY] = "NO_MEMORY",
      [ORBIT_IO_ERROR] = "IO_ERROR",
      [ORBIT_NOT_CONNECTED] = "NOT_CONNECTED",
      [ORBIT_NO_ANSWER] = "NO_ANSWER",
      [ORBIT_BAD_ANSWER] = "BAD_ANSWER",
      [ORBIT_REFUSED] = "REFUSED",
      [ORBIT_TIMEOUT] = "TIMEOUT",
      [ORBIT_STOPPED] = "STOPPED",
      [ORBIT_WRONG_STATE] = "WRONG_STATE",
  };
  if (status < 0 || (size_t)status >= sizeof names / sizeof names[0]) return "UNKNOWN_STATUS";
  return names[status];
}

void sdk_text_copy(char *out, size_t size, struct bytes text) {
  size_t count = text.size < size ? text.size : size - 1;
  /* A cut must not leave half a character: step back over continuation bytes. */
  if (count < text.size) {
    while (count > 0 && (text.data[count] & 0xC0) == 0x80) count--;
  }
  if (count > 0) memcpy(out, text.data, count);
  out[count] = '\0';
}

int sdk_fail(struct orbit_error *error, int status, const char *field, const char *format, ...) {
  if (error == NULL) return status;
  char message[sizeof error->message];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (length < 0) message[0] = '\0';
  /* The field may point into *error: it is copied before the rest is cleared. */
  char name[sizeof error->field];
  sdk_text_copy(name, sizeof name, bytes_text(field != NULL ? field : ""));
  memset(error, 0, sizeof *error);
  error->status = status;
  memcpy(error->field, name, sizeof name);
  memcpy(error->message, message, sizeof message);
  return status;
}

int sdk_no_memory(struct orbit_error *error) { return sdk_fail(error, ORBIT_NO_MEMORY, NULL, "out of memory"); }

int sdk_options_copy(void *target, size_t size, const void *options, struct orbit_error *error) {
  if (options == NULL) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, NULL, "no options were given");
  size_t given;
  memcpy(&given, options, sizeof given);
  if (given < sizeof given || given > 65536) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "size", "the structure was not made with its INIT macro");
  }
  for (size_t i = size; i < given; i++) {
    if (((const unsigned char *)options)[i] != 0) {
      return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "size",
                      "the program sets an option that this version of liborbit (%s) does not know", ORBIT_VERSION);
    }
  }
  memset(target, 0, size);
  memcpy(target, options, given < size ? given : size);
  return ORBIT_OK;
}

/* ---- Memory ---- */

enum { block_bytes = 4000 };

struct sdk_block {
  struct sdk_block *next;
  size_t used, capacity;
  _Alignas(max_align_t) unsigned char memory[];
};

void sdk_arena_clear(struct sdk_arena *arena) {
  while (arena->blocks != NULL) {
    struct sdk_block *block = arena->blocks;
    arena->blocks = block->next;
    free(block);
  }
  arena->failed = false;
}

void *sdk_arena_alloc(struct sdk_arena *arena, size_t size) {
  size_t rounded;
  if (__builtin_add_overflow(size, _Alignof(max_align_t) - 1, &rounded)) {
    arena->failed = true;
    return NULL;
  }
  rounded &= ~(_Alignof(max_align_t) - 1);
  struct sdk_block *block = arena->blocks;
  if (block == NULL || block->capacity - block->used < rounded) {
    size_t capacity = rounded > block_bytes ? rounded : block_bytes, total;
    if (__builtin_add_overflow(sizeof *block, capacity, &total) || (block = malloc(total)) == NULL) {
      arena->failed = true;
      return NULL;
    }
    block->used = 0;
    block->capacity = capacity;
    block->next = arena->blocks;
    arena->blocks = block;
  }
  void *memory = block->memory + block->used;
  block->used += rounded;
  memset(memory, 0, size);
  return memory;
}

const char *sdk_arena_text(struct sdk_arena *arena, struct bytes text) {
  if (text.data == NULL) return NULL;
  char *copy = sdk_arena_alloc(arena, text.size + 1);
  if (copy == NULL) return NULL;
  if (text.size > 0) memcpy(copy, text.data, text.size);
  return copy;
}

const char *sdk_arena_string(struct sdk_arena *arena, const char *text) {
  return text != NULL ? sdk_arena_text(arena, bytes_text(text)) : NULL;
}

struct result {
  struct sdk_arena arena;
  _Alignas(max_align_t) unsigned char object[];
};

static struct result *result_of(void *object) {
  return (struct result *)(void *)((unsigned char *)object - offsetof(struct result, object));
}

void *sdk_result_new(size_t size) {
  static_assert(sizeof(struct result) == offsetof(struct result, object), "an object stands right behind its result");
  struct result *result = calloc(1, sizeof *result + size);
  /* cppcheck-suppress memleak ; who frees the object comes back to it by result_of */
  return result != NULL ? result + 1 : NULL;
}

struct sdk_arena *sdk_result_arena(void *object) {
  return &result_of(object)->arena;
}

void sdk_result_free(void *object) {
  if (object == NULL) return;
  struct result *result = result_of(object);
  sdk_arena_clear(&result->arena);
  free(result);
}

void sdk_result_wipe(void *object) {
  if (object == NULL) return;
  for (struct sdk_block *block = result_of(object)->arena.blocks; block != NULL; block = block->next) {
    sdk_wipe(block->memory, block->used);
  }
  sdk_result_free(object);
}

/* ---- Randomness and clocks ---- */

static bool libraries_work;

static void libraries_init(void) { libraries_work = sodium_init() >= 0 && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; }

bool sdk_global_init(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  return pthread_once(&once, libraries_init) == 0 && libraries_work;
}

bool sdk_random(void *out, size_t size) {
  if (!sdk_global_init()) return false;
  randombytes_buf(out, size);
  return true;
}

bool sdk_random_id(struct id *ret_id) { return sdk_random(ret_id->bytes, sizeof ret_id->bytes) && !id_is_zero(ret_id); }

int orbit_random_id(char out[ORBIT_ID_SIZE]) {
  struct id id;
  if (!sdk_random_id(&id)) return ORBIT_IO_ERROR;
  id_format(&id, out);
  out[id_chars] = '\0';
  return ORBIT_OK;
}

void sdk_wipe(void *memory, size_t size) { sodium_memzero(memory, size); }

int64_t sdk_monotonic_ms(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int64_t sdk_wall_us(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_REALTIME, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

const char *sdk_ca_file(const char *given) {
  const char *named = given != NULL ? given : getenv("ORBIT_CA_FILE");
  return named != NULL && named[0] != '\0' ? named : NULL;
}

/* ---- Words ---- */

bool sdk_is_visible_ascii(const char *text, size_t max) {
  if (text == NULL) return false;
  size_t size = strnlen(text, max + 1);
  if (size == 0 || size > max) return false;
  for (size_t i = 0; i < size; i++) {
    if (text[i] < 0x21 || text[i] > 0x7E) return false;
  }
  return true;
}

bool sdk_is_word(const char *text) {
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-";
  if (text == NULL) return false;
  size_t size = strspn(text, allowed);
  return size >= 1 && size <= word_chars_max && text[size] == '\0';
}

bool sdk_is_id(const char *text) {
  struct id id;
  return text != NULL && id_parse(bytes_of(text, strnlen(text, id_chars + 1)), &id);
}

bool sdk_is_text(const char *text, size_t min_chars, size_t max_chars) {
  if (text == NULL) return false;
  struct bytes bytes = bytes_text(text);
  if (bytes.size > max_chars * utf8_bytes_per_char_max || !bytes_is_utf8(bytes)) return false;
  size_t chars = bytes_count_chars(bytes);
  return chars >= min_chars && chars <= max_chars;
}
