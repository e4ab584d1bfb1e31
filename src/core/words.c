/* Owns the texts of the vocabularies. */
#include "core/words.h"

#include <stddef.h>

static bool find_word(const char *const *texts, size_t count, struct bytes text, unsigned *ret_number) {
  for (unsigned i = 1; i < count; i++) {
    if (texts[i] == NULL || !bytes_equal_text(text, texts[i])) continue;
    *ret_number = i;
    return true;
  }
  return false;
}

#define WORDS(set, prefix) static const char *const set##_texts[prefix##_ENUM_END] = {
#define WORD(prefix, number, name) [number] = #name,
#define WORDS_END(set, prefix)                                                              \
  }                                                                                         \
  ;                                                                                         \
  const char *set##_text(enum set word) {                                                   \
    bool known = (unsigned)word < prefix##_ENUM_END && set##_texts[(unsigned)word] != NULL; \
    return known ? set##_texts[(unsigned)word] : "";                                        \
  }                                                                                         \
  bool set##_parse(struct bytes text, enum set *ret_word) {                                 \
    unsigned number;                                                                        \
    if (!find_word(set##_texts, prefix##_ENUM_END, text, &number)) return false;            \
    *ret_word = (enum set)number;                                                           \
    return true;                                                                            \
  }
#include "words.def"
#undef WORDS
#undef WORD
#undef WORDS_END

static const char *const permission_texts[PERMISSION_COUNT] = {
#define PERMISSION(bit, name, text) [bit] = text,
#include "permissions.def"
#undef PERMISSION
};

const char *permission_text(enum permission permission) { return permission_texts[permission]; }

bool permission_parse(struct bytes text, enum permission *ret_permission) {
  for (unsigned i = 0; i < PERMISSION_COUNT; i++) {
    if (!bytes_equal_text(text, permission_texts[i])) continue;
    *ret_permission = (enum permission)i;
    return true;
  }
  return false;
}

static uint64_t bit(enum permission permission) { return UINT64_C(1) << permission; }

uint64_t permissions_expand(uint64_t permissions) {
  if (permissions & bit(PERMISSION_ADMIN))
    permissions |= bit(PERMISSION_QUEUES_MANAGE) | bit(PERMISSION_SCHEDULES_MANAGE) | bit(PERMISSION_METRICS_READ);
  if (permissions & bit(PERMISSION_QUEUES_MANAGE)) permissions |= bit(PERMISSION_QUEUES_READ);
  if (permissions & bit(PERMISSION_SCHEDULES_MANAGE)) permissions |= bit(PERMISSION_SCHEDULES_READ);
  return permissions;
}
