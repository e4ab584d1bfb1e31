/* Owns the comparison of the events that were foreseen with those that stand in the log: every field of every event. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec/event_codec.h"
#include "sim/model_internal.h"

bool model_next_is(const struct model *model, enum event_type type) {
  return model->seen.at < model->seen.count && model->seen.events[model->seen.at].type == type;
}

void model_operation_begin(struct model *model, const struct id *actor, const struct operation *operation) {
  static const struct operation none;
  if (operation == NULL) operation = &none;
  model->operation_begun = false;
  model->actor = *actor;
  model->identity = operation->identity;
  model->digest = operation->digest;
}

struct bytes model_text(struct model *model, const char *format, ...) {
  char *out = model->want.texts + model->want.texts_used;
  size_t room = sizeof model->want.texts - model->want.texts_used;
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(out, room, format, arguments);
  va_end(arguments);
  if (size < 0 || (size_t)size >= room) {
    model_complain(model, "the simulator has no room for a text");
    return bytes_of("", 0);
  }
  model->want.texts_used += (uint32_t)size + 1;
  return bytes_of(out, (size_t)size);
}

/* The operation id is the product's choice: the same for all events of one operation, another for the next. */
static void take_operation_id(struct model *model, const struct id *found) {
  if (model->operation_begun) return;
  if (id_is_zero(found) || id_equal(found, &model->operation_id))
    model_complain(model, "two operations have one operation id: %s", id_text(found).text);
  model->operation_id = *found;
}

const struct event *model_foresee(struct model *model, enum event_type type, const struct id *stream, uint64_t revision,
                                  uint64_t prev) {
  static const struct event nothing;
  struct event *want = &model->want.event;
  memset(want, 0, sizeof *want);
  model->want.texts_used = 0;
  model->have = &nothing;
  if (!model_next_is(model, type)) {
    bool more = model->seen.at < model->seen.count;
    model_complain(model, "%s of %s should have been committed, %s was", event_type_text(type), id_text(stream).text,
                   more ? event_type_text(model->seen.events[model->seen.at].type) : "nothing");
    return model->have;
  }
  model->have = &model->seen.events[model->seen.at++];
  take_operation_id(model, &model->have->common.operation_id);
  want->type = type;
  want->version = event_type_version(type);
  want->stream = *stream;
  want->prev = prev;
  want->time_us = model->now_us;
  want->common.operation_id = model->operation_id;
  want->common.actor = model->actor;
  want->common.revision = revision;
  if (!model->operation_begun) {
    want->common.identity = model->identity;
    want->common.digest = model->digest;
  }
  model->operation_begun = true;
  return model->have;
}

const struct event *model_foresee_task(struct model *model, enum event_type type, struct model_task *task, uint64_t revision) {
  const struct event *have = model_foresee(model, type, &task->id, revision, task->last_seq);
  task->last_seq = have->seq;
  model_touch(model, task);
  return have;
}

/* ---- field by field ---- */

static bool field_is_same(const struct event_field *field, const void *want, const void *have) {
  switch (field->type) {
    case FIELD_ID:
      return id_equal(want, have);
    case FIELD_BIN:
    case FIELD_STR:
    case FIELD_JSON:
    case FIELD_IDS: {
      const struct bytes *a = want, *b = have;
      return bytes_equal(*a, *b);
    }
    case FIELD_U64:
    case FIELD_TIME:
      return memcmp(want, have, sizeof(uint64_t)) == 0;
    case FIELD_BOOL:
      return *(const bool *)want == *(const bool *)have;
    default:
      return memcmp(want, have, sizeof(enum task_state)) == 0;
  }
}

static void field_text(const struct event_field *field, const void *place, char out[80]) {
  const struct bytes *span = place;
  uint64_t number = 0;
  unsigned word = 0;
  switch (field->type) {
    case FIELD_ID:
      (void)snprintf(out, 80, "%s", id_text(place).text);
      break;
    case FIELD_BIN:
    case FIELD_STR:
    case FIELD_JSON:
    case FIELD_IDS:
      (void)snprintf(out, 80, "\"%.*s\"", span->size < 70 ? (int)span->size : 70,
                     span->data != NULL ? (const char *)span->data : "");
      break;
    case FIELD_U64:
    case FIELD_TIME:
      memcpy(&number, place, sizeof number);
      (void)snprintf(out, 80, "%llu", (unsigned long long)number);
      break;
    case FIELD_BOOL:
      (void)snprintf(out, 80, "%s", *(const bool *)place ? "true" : "false");
      break;
    default:
      memcpy(&word, place, sizeof word);
      (void)snprintf(out, 80, "%s", event_word_text(field->type, word));
      break;
  }
}

static void compare_fields(struct model *model, const struct event_schema *schema, const void *want, const void *have) {
  for (const struct event_field *field = schema->fields; field->key != 0; field++) {
    const uint8_t *a = (const uint8_t *)want + field->offset, *b = (const uint8_t *)have + field->offset;
    if (field_is_same(field, a, b)) continue;
    char should[80], is[80];
    field_text(field, a, should);
    field_text(field, b, is);
    model_complain(model, "seq %llu, %s of %s: %s should be %s, is %s", (unsigned long long)model->have->seq,
                   event_type_text(model->have->type), id_text(&model->have->stream).text, field->name, should, is);
    return;
  }
}

void model_met(struct model *model) {
  const struct event *want = &model->want.event, *have = model->have;
  if (!model_is_well(model)) return;
  if (!id_equal(&want->stream, &have->stream) || want->prev != have->prev || want->time_us != have->time_us ||
      want->version != have->version)
    model_complain(model, "seq %llu, %s: stream %s prev %llu time %lld should be %s, %llu, %lld", (unsigned long long)have->seq,
                   event_type_text(have->type), id_text(&have->stream).text, (unsigned long long)have->prev,
                   (long long)have->time_us, id_text(&want->stream).text, (unsigned long long)want->prev,
                   (long long)want->time_us);
  compare_fields(model, event_schema_common(), &want->common, &have->common);
  compare_fields(model, event_schema_find(have->type), &want->body, &have->body);
}
