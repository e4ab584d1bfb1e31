/* Owns the printed forms of one event: a line of text, JSON, CSV, msgpack. All are made from the table of events. */
#include <msgpack.h>
#include <string.h>
#include <time.h>

#include "audit/audit.h"
#include "base/guard.h"
#include "base/time_text.h"
#include "codec/json.h"

/* ---- the fields of an event, by the table ---- */

struct field {
  const struct event_field *row;
  const uint8_t *place;
};

/* The fields that are there, common ones first; what identifies a request is of no use to people. */
typedef void field_visit(void *context, const struct field *field);

static bool field_is_absent(const struct field *field) {
  struct bytes span;
  uint64_t number;
  unsigned word;
  switch (field->row->type) {
    case FIELD_ID:
      return id_is_zero((const struct id *)field->place);
    case FIELD_BIN:
    case FIELD_STR:
    case FIELD_JSON:
    case FIELD_IDS:
      memcpy(&span, field->place, sizeof span);
      return span.size == 0;
    case FIELD_U64:
    case FIELD_TIME:
      memcpy(&number, field->place, sizeof number);
      return number == 0;
    case FIELD_BOOL:
      return field->place[0] == 0;
    default:
      memcpy(&word, field->place, sizeof word);
      return word == 0;
  }
}

static void each_of(const struct event_schema *schema, const void *owner, field_visit *visit, void *context) {
  for (unsigned i = 0; i < schema->field_count; i++) {
    struct field field = {&schema->fields[i], (const uint8_t *)owner + schema->fields[i].offset};
    if (!field.row->required && field_is_absent(&field)) continue;
    if (strcmp(field.row->name, "token_hash") != 0) visit(context, &field);
  }
}

static void each_field(const struct event *event, field_visit *visit, void *context) {
  const struct event_schema *schema = event_schema_find(event->type);
  each_of(event_schema_common(), &event->common, visit, context);
  if (schema != NULL) each_of(schema, &event->body, visit, context);
}

static struct bytes field_bytes(const struct field *field) {
  struct bytes span;
  memcpy(&span, field->place, sizeof span);
  return span;
}

static uint64_t field_u64(const struct field *field) {
  uint64_t number;
  memcpy(&number, field->place, sizeof number);
  return number;
}

static const char *field_word(const struct field *field) {
  unsigned word;
  memcpy(&word, field->place, sizeof word);
  return event_word_text(field->row->type, word);
}

/* Documents are shown when they are asked for; what an audit record says of before and after is no payload. */
static bool shows_documents(const struct request *request, const struct event *event) {
  return request->payload || event->type == EVENT_audit_recorded;
}

/* ---- text ---- */

struct texting {
  const struct request *request;
  struct buffer *text;
  bool documents;
};

static void text_id(struct buffer *text, const uint8_t *id) {
  struct id copy;
  memcpy(copy.bytes, id, sizeof copy.bytes);
  buffer_append_text(text, id_text(&copy).text);
}

static void text_spans(const struct texting *texting, const struct field *field) {
  struct bytes span = field_bytes(field);
  struct buffer *text = texting->text;
  if (field->row->type == FIELD_STR || (field->row->type == FIELD_JSON && texting->documents)) {
    put_safe(text, span, field->row->type == FIELD_STR);
  } else if (field->row->type == FIELD_IDS) {
    for (size_t at = 0; at + id_bytes <= span.size; at += id_bytes) {
      if (at != 0) buffer_append_char(text, ',');
      text_id(text, span.data + at);
    }
  } else {
    buffer_append_format(text, "(%zu bytes)", span.size);
  }
}

static void text_field(void *context, const struct field *field) {
  const struct texting *texting = context;
  struct buffer *text = texting->text;
  buffer_append_format(text, " %s=", field->row->name);
  switch (field->row->type) {
    case FIELD_ID:
      text_id(text, field->place);
      return;
    case FIELD_BIN:
    case FIELD_STR:
    case FIELD_JSON:
    case FIELD_IDS:
      text_spans(texting, field);
      return;
    case FIELD_U64:
      buffer_append_u64(text, field_u64(field));
      return;
    case FIELD_TIME:
      buffer_append_text(text, when_text((int64_t)field_u64(field), texting->request->cli.local).text);
      return;
    case FIELD_BOOL:
      buffer_append_text(text, field->place[0] != 0 ? "true" : "false");
      return;
    default:
      buffer_append_text(text, field_word(field));
  }
}

static enum colour colour_of(enum event_type type) {
  switch (type) {
    case EVENT_task_failed:
      return COLOUR_BAD;
    case EVENT_task_review_required:
    case EVENT_evidence_recorded:
      return COLOUR_DOUBT;
    case EVENT_task_succeeded:
      return COLOUR_GOOD;
    default:
      return COLOUR_BOLD;
  }
}

static void line_head(const struct out *out, const struct request *request, const struct event *event, int type_width,
                      struct buffer *text) {
  const char *plain = out_colour(out, COLOUR_NONE);
  buffer_append_format(text, "%s%s %8llu %s%s%-*s%s", out_colour(out, COLOUR_DIM),
                       when_text(event->time_us, request->cli.local).text, (unsigned long long)event->seq, plain,
                       out_colour(out, colour_of(event->type)), type_width, event_type_text(event->type), plain);
}

static void line_body(const struct request *request, const struct event *event, struct buffer *text) {
  struct texting texting = {request, text, shows_documents(request, event)};
  const struct event_schema *schema = event_schema_find(event->type);
  buffer_append_text(text, id_text(&event->stream).text);
  if (event->common.revision != 0) buffer_append_format(text, " revision=%llu", (unsigned long long)event->common.revision);
  if (schema != NULL) each_of(schema, &event->body, text_field, &texting);
  /* identity and digest are of use to programs alone */
  buffer_append_format(text, " actor=%s", id_text(&event->common.actor).text);
  buffer_append_format(text, " operation_id=%s", id_text(&event->common.operation_id).text);
}

void line_text(const struct out *out, const struct request *request, const struct event *event, struct buffer *text) {
  line_head(out, request, event, 21, text);
  buffer_append_char(text, ' ');
  line_body(request, event, text);
}

void line_folded(struct out *out, const struct request *request, const struct event *event) {
  cleanup(buffer_clear) struct buffer body;
  buffer_init(&body, SIZE_MAX);
  line_body(request, event, &body);
  line_head(out, request, event, 0, &out->text);
  buffer_append_char(&out->text, '\n');
  draw_folded(out, "    ", buffer_bytes(&body), COLOUR_NONE);
}

/* ---- JSON, CSV ---- */

static void put_time(struct buffer *text, int64_t time_us) {
  char time[time_chars_max];
  if (!time_has_text(time_us)) {
    buffer_append_format(text, "%lld", (long long)time_us);
    return;
  }
  size_t chars = time_format(time_us, time);
  buffer_append(text, time, chars);
}

void line_json(const struct request *request, const struct event *event, struct buffer *text) {
  buffer_append_format(text, "{\"seq\":%llu,\"time\":\"", (unsigned long long)event->seq);
  put_time(text, event->time_us);
  buffer_append_format(text, "\",\"type\":\"%s\",\"stream\":\"%s\",", event_type_text(event->type),
                       id_text(&event->stream).text);
  event_print_json(event, false, shows_documents(request, event), text);
  buffer_append_char(text, '}');
}

void line_csv_head(struct buffer *text) { buffer_append_text(text, "seq,time,type,stream,operation_id,actor,event\n"); }

/* The last cell holds all fields as a JSON object: events of different types have different ones. */
void line_csv(const struct request *request, const struct event *event, struct buffer *text) {
  struct buffer object;
  buffer_append_format(text, "%llu,", (unsigned long long)event->seq);
  put_time(text, event->time_us);
  buffer_append_format(text, ",%s,%s,%s", event_type_text(event->type), id_text(&event->stream).text,
                       id_text(&event->common.operation_id).text);
  buffer_append_format(text, ",%s", id_text(&event->common.actor).text);
  buffer_init(&object, SIZE_MAX);
  buffer_append_char(&object, '{');
  event_print_json(event, false, shows_documents(request, event), &object);
  buffer_append_char(&object, '}');
  put_csv_cell(text, buffer_bytes(&object), false);
  if (object.failed) text->failed = true;
  buffer_clear(&object);
}

/* ---- msgpack ---- */

static int pack_write(void *context, const char *data, size_t size) {
  buffer_append(context, data, size);
  return 0;
}

static void pack_str(msgpack_packer *packer, const char *text, size_t size) {
  (void)msgpack_pack_str(packer, size);
  (void)msgpack_pack_str_body(packer, text, size);
}

static void pack_text(msgpack_packer *packer, const char *text) { pack_str(packer, text, strlen(text)); }

struct packing {
  msgpack_packer packer;
  bool documents;
  size_t count;
};

static void pack_count(void *context, const struct field *field) {
  (void)field;
  ((struct packing *)context)->count++;
}

static void pack_hex(msgpack_packer *packer, struct bytes bytes) {
  static const char digits[] = "0123456789abcdef";
  (void)msgpack_pack_str(packer, 2 * bytes.size);
  for (size_t i = 0; i < bytes.size; i++) {
    char pair[2] = {digits[bytes.data[i] >> 4], digits[bytes.data[i] & 15]};
    (void)msgpack_pack_str_body(packer, pair, sizeof pair);
  }
}

static void pack_time(msgpack_packer *packer, int64_t time_us) {
  char time[time_chars_max];
  if (!time_has_text(time_us)) (void)msgpack_pack_int64(packer, time_us);
  else pack_str(packer, time, time_format(time_us, time));
}

static void pack_spans(struct packing *packing, const struct field *field) {
  struct bytes span = field_bytes(field);
  msgpack_packer *packer = &packing->packer;
  if (field->row->type == FIELD_STR) {
    pack_str(packer, (const char *)span.data, span.size);
  } else if (field->row->type == FIELD_BIN) {
    pack_hex(packer, span);
  } else if (field->row->type == FIELD_IDS) {
    (void)msgpack_pack_array(packer, span.size / id_bytes);
    for (size_t at = 0; at + id_bytes <= span.size; at += id_bytes) pack_hex(packer, bytes_of(span.data + at, id_bytes));
  } else if (packing->documents) {
    (void)msgpack_pack_bin(packer, span.size);
    (void)msgpack_pack_bin_body(packer, span.data, span.size);
  } else {
    (void)msgpack_pack_uint64(packer, span.size);
  }
}

static void pack_field(void *context, const struct field *field) {
  struct packing *packing = context;
  msgpack_packer *packer = &packing->packer;
  char name[64];
  bool sized = field->row->type == FIELD_JSON && !packing->documents;
  (void)snprintf(name, sizeof name, "%s%s", field->row->name, sized ? "_bytes" : "");
  pack_text(packer, name);
  switch (field->row->type) {
    case FIELD_ID:
      pack_hex(packer, bytes_of(field->place, id_bytes));
      return;
    case FIELD_BIN:
    case FIELD_STR:
    case FIELD_JSON:
    case FIELD_IDS:
      pack_spans(packing, field);
      return;
    case FIELD_U64:
      (void)msgpack_pack_uint64(packer, field_u64(field));
      return;
    case FIELD_TIME:
      pack_time(packer, (int64_t)field_u64(field));
      return;
    case FIELD_BOOL:
      (void)(field->place[0] != 0 ? msgpack_pack_true(packer) : msgpack_pack_false(packer));
      return;
    default:
      pack_text(packer, field_word(field));
  }
}

void line_msgpack(const struct request *request, const struct event *event, struct buffer *text) {
  struct packing packing = {.documents = shows_documents(request, event)};
  msgpack_packer *packer = &packing.packer;
  msgpack_packer_init(packer, text, pack_write);
  each_field(event, pack_count, &packing);
  (void)msgpack_pack_map(packer, packing.count + 4);
  pack_text(packer, "seq");
  (void)msgpack_pack_uint64(packer, event->seq);
  pack_text(packer, "time");
  pack_time(packer, event->time_us);
  pack_text(packer, "type");
  pack_text(packer, event_type_text(event->type));
  pack_text(packer, "stream");
  pack_hex(packer, bytes_of(event->stream.bytes, id_bytes));
  each_field(event, pack_field, &packing);
}

void line_append(const struct out *out, const struct request *request, const struct event *event, struct buffer *text) {
  switch (request->cli.output) {
    case OUTPUT_JSON:
    case OUTPUT_JSONL:
      line_json(request, event, text);
      break;
    case OUTPUT_CSV:
      line_csv(request, event, text);
      break;
    case OUTPUT_MSGPACK:
      line_msgpack(request, event, text);
      return;
    case OUTPUT_TEXT:
      line_text(out, request, event, text);
  }
  if (request->cli.output != OUTPUT_JSON) buffer_append_char(text, '\n');
}
