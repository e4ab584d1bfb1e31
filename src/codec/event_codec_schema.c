/* Owns the table of events as data: what the encoder, the decoder and the printer walk along. */
#include "codec/event_codec.h"

enum { presence_REQUIRED = 1, presence_OPTIONAL = 0 };

#define EVENT(number, name, text, version, doc)
#define FIELD(key, type, name, presence, doc)
#define EVENT_END(name)
#define COMMON(key, type, name, presence, doc) \
  {key, FIELD_##type, presence_##presence, offsetof(struct event_common, name), #name, doc},

static const struct event_field common_fields[] = {
#include "events.def"
    {0}};

#undef EVENT
#undef FIELD
#undef EVENT_END
#undef COMMON

/* A field stands in the table without the name of its structure, so each event gets a function in which `owner` is that. */
#define COMMON(key, type, name, presence, doc)
#define EVENT(number, name, text, version, doc)              \
  static const struct event_schema *schema_of_##name(void) { \
    typedef struct event_##name owner;                       \
    enum { own_version = version };                          \
    static const char own_text[] = text, own_doc[] = doc;    \
    static const struct event_field fields[] = {
#define FIELD(key, type, name, presence, doc) {key, FIELD_##type, presence_##presence, offsetof(owner, name), #name, doc},
#define EVENT_END(name)                                                                                         \
  { 0 }                                                                                                         \
  }                                                                                                             \
  ;                                                                                                             \
  static const struct event_schema schema = {                                                                   \
      EVENT_##name, own_version, sizeof(owner), own_text, own_doc, fields, sizeof fields / sizeof *fields - 1}; \
  return &schema;                                                                                               \
  }

#include "events.def"

#undef EVENT
#undef FIELD
#undef EVENT_END

const struct event_schema *event_schema_find(unsigned type) {
  switch (type) {
#define EVENT(number, name, text, version, doc) \
  case number:                                  \
    return schema_of_##name();
#define FIELD(key, type, name, presence, doc)
#define EVENT_END(name)
#include "events.def"
#undef EVENT
#undef FIELD
#undef EVENT_END
#undef COMMON
    default:
      return NULL;
  }
}

const struct event_schema *event_schema_common(void) {
  static const struct event_schema schema = {EVENT_none,
                                             0,
                                             sizeof(struct event_common),
                                             "",
                                             "fields that every event may carry",
                                             common_fields,
                                             sizeof common_fields / sizeof *common_fields - 1};
  return &schema;
}

const char *event_word_text(unsigned field_type, unsigned word) {
  switch (field_type) {
    case FIELD_TASK_STATE:
      return task_state_text((enum task_state)word);
    case FIELD_ATTEMPT_STATE:
      return attempt_state_text((enum attempt_state)word);
    case FIELD_OUTCOME:
      return outcome_text((enum outcome)word);
    case FIELD_ENDED_BY:
      return ended_by_text((enum ended_by)word);
    case FIELD_RECOVERY_SAFETY:
      return recovery_safety_text((enum recovery_safety)word);
    case FIELD_DECISION:
      return decision_text((enum decision)word);
    case FIELD_EVIDENCE_REASON:
      return evidence_reason_text((enum evidence_reason)word);
    case FIELD_SCHEDULE_KIND:
      return schedule_kind_text((enum schedule_kind)word);
    case FIELD_OVERLAP:
      return overlap_text((enum overlap)word);
    case FIELD_MISSED:
      return missed_text((enum missed)word);
    case FIELD_TRIGGER_OUTCOME:
      return trigger_outcome_text((enum trigger_outcome)word);
    default:
      return "";
  }
}
