/* Events in memory: the structures made from schema/events.def. Texts and documents are borrowed spans: they belong to the
 * record (a log page, a commit's buffer) or the command that the event was made from, and live no longer than that. */
#ifndef ORBIT_CORE_EVENT_H
#define ORBIT_CORE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/id.h"
#include "base/limits.h"
#include "core/words.h"

/* The C type of each TYPE of events.def. IDS is a span of 16-byte ids. */
#define EVENT_TYPE_ID struct id
#define EVENT_TYPE_BIN struct bytes
#define EVENT_TYPE_STR struct bytes
#define EVENT_TYPE_JSON struct bytes
#define EVENT_TYPE_IDS struct bytes
#define EVENT_TYPE_U64 uint64_t
#define EVENT_TYPE_TIME int64_t
#define EVENT_TYPE_BOOL bool
#define EVENT_TYPE_TASK_STATE enum task_state
#define EVENT_TYPE_ATTEMPT_STATE enum attempt_state
#define EVENT_TYPE_OUTCOME enum outcome
#define EVENT_TYPE_ENDED_BY enum ended_by
#define EVENT_TYPE_RECOVERY_SAFETY enum recovery_safety
#define EVENT_TYPE_DECISION enum decision
#define EVENT_TYPE_EVIDENCE_REASON enum evidence_reason
#define EVENT_TYPE_SCHEDULE_KIND enum schedule_kind
#define EVENT_TYPE_OVERLAP enum overlap
#define EVENT_TYPE_MISSED enum missed
#define EVENT_TYPE_TRIGGER_OUTCOME enum trigger_outcome

/* struct event_common, then struct event_<name> for each event. */
#define COMMON(key, type, name, presence, doc) EVENT_TYPE_##type name;
#define EVENT(number, name, text, version, doc)
#define FIELD(key, type, name, presence, doc)
#define EVENT_END(name)
struct event_common {
#include "events.def"
};
#undef COMMON
#undef EVENT
#undef FIELD
#undef EVENT_END

#define COMMON(key, type, name, presence, doc)
#define EVENT(number, name, text, version, doc) struct event_##name {
#define FIELD(key, type, name, presence, doc) EVENT_TYPE_##type name;
#define EVENT_END(name)  \
  char end_of_##name[1]; \
  }                      \
  ;
#include "events.def"
#undef EVENT
#undef FIELD
#undef EVENT_END

/* EVENT_<name> = number */
enum event_type {
  EVENT_none = 0,
#define EVENT(number, name, text, version, doc) EVENT_##name = number,
#define FIELD(key, type, name, presence, doc)
#define EVENT_END(name)
#include "events.def"
#undef EVENT
  EVENT_type_end
};

struct event {
  enum event_type type;
  uint16_t version;
  bool last_of_commit;
  uint32_t offset;  /* seq - seq of the first event of its commit */
  uint64_t seq;     /* 1, 2, 3 … */
  uint64_t prev;    /* the previous event of the same stream; 0: none */
  int64_t time_us;  /* of its commit */
  struct id stream; /* the object it belongs to */
  uint64_t chain;   /* set by the journal */
  struct event_common common;
  union {
#define EVENT(number, name, text, version, doc) struct event_##name name;
#include "events.def"
#undef EVENT
#undef FIELD
#undef EVENT_END
#undef COMMON
  } body;
};

/* What a command led to, in order. A decide function appends; the engine numbers, stages and folds. `scratch` holds texts that
 * deciding itself wrote (an audit's before and after): events point into it, so a list with events is never copied or moved. */
struct event_list {
  uint32_t count;
  struct event events[events_per_command_max];
  uint32_t scratch_used;
  char scratch[event_list_scratch_bytes];
};

const char *event_type_text(enum event_type type); /* "task.accepted"; "" for unknown numbers */
bool event_type_parse(struct bytes text, enum event_type *ret_type);
uint16_t event_type_version(enum event_type type); /* current version; 0 for unknown numbers */

/* Appends an event of this type, zeroed but for type, version, stream and common; never fails (the bound is asserted). */
struct event *event_list_add(struct event_list *list, enum event_type type, const struct id *stream,
                             const struct id *operation_id, const struct id *actor);
/* Writes a text into the list's scratch; it lives until the first event of the list's next use. Never fails (asserted). */
struct bytes event_list_text(struct event_list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
