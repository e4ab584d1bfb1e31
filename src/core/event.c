/* Owns the names and versions of events, and the lists that deciding fills. */
#include "core/event.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"

#define COMMON(key, type, name, presence, doc)
#define FIELD(key, type, name, presence, doc)
#define EVENT_END(name)

static const struct {
  const char *text;
  uint16_t version;
} types[EVENT_type_end] = {
#define EVENT(number, name, text, version, doc) [number] = {text, version},
#include "events.def"
#undef EVENT
};

const char *event_type_text(enum event_type type) {
  bool known = (unsigned)type < EVENT_type_end && types[type].text != NULL;
  return known ? types[type].text : "";
}

bool event_type_parse(struct bytes text, enum event_type *ret_type) {
  for (unsigned i = 1; i < EVENT_type_end; i++) {
    if (types[i].text == NULL || !bytes_equal_text(text, types[i].text)) continue;
    *ret_type = (enum event_type)i;
    return true;
  }
  return false;
}

uint16_t event_type_version(enum event_type type) { return (unsigned)type < EVENT_type_end ? types[type].version : 0; }

struct event *event_list_add(struct event_list *list, enum event_type type, const struct id *stream,
                             const struct id *operation_id, const struct id *actor) {
  must(list->count < events_per_command_max);
  if (list->count == 0) list->scratch_used = 0;
  struct event *event = &list->events[list->count++];
  memset(event, 0, sizeof *event);
  event->type = type;
  event->version = event_type_version(type);
  event->stream = *stream;
  event->common.operation_id = *operation_id;
  event->common.actor = *actor;
  return event;
}

struct bytes event_list_text(struct event_list *list, const char *format, ...) {
  char *text = list->scratch + list->scratch_used;
  size_t room = sizeof list->scratch - list->scratch_used;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, room, format, arguments);
  va_end(arguments);
  must(length >= 0 && (size_t)length < room);
  list->scratch_used += (uint32_t)length + 1;
  return bytes_of(text, (size_t)length);
}
