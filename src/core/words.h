/* The closed vocabularies of schema/words.def and schema/permissions.def as enums with their texts. */
#ifndef ORBIT_CORE_WORDS_H
#define ORBIT_CORE_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define WORDS(set, prefix) enum set { prefix##_NONE = 0,
#define WORD(prefix, number, name) prefix##_##name = number,
#define WORDS_END(set, prefix) \
  prefix##_ENUM_END            \
  }                            \
  ;
#include "words.def"
#undef WORDS
#undef WORD
#undef WORDS_END

/* For each set: `const char *task_state_text(enum task_state)`, "" for none or unknown numbers, and
 * `bool task_state_parse(struct bytes, enum task_state *ret)`, false when no word has this text. */
#define WORDS(set, prefix)               \
  const char *set##_text(enum set word); \
  bool set##_parse(struct bytes text, enum set *ret_word);
#define WORD(prefix, number, name)
#define WORDS_END(set, prefix)
#include "words.def"
#undef WORDS
#undef WORD
#undef WORDS_END

enum permission {
#define PERMISSION(bit, name, text) PERMISSION_##name = bit,
#include "permissions.def"
#undef PERMISSION
  PERMISSION_COUNT
};

const char *permission_text(enum permission permission);
bool permission_parse(struct bytes text, enum permission *ret_permission);
/* What a credential with these bits may do after implication: :manage implies :read, admin implies queues:manage,
 * schedules:manage and metrics:read (schema/semantics.md "Permissions"). */
uint64_t permissions_expand(uint64_t permissions);

#endif
