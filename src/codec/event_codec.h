/* Records: 64-byte header + msgpack body, made from schema/events.def (schema/log.md). Pure. */
#ifndef ORBIT_CODEC_EVENT_CODEC_H
#define ORBIT_CODEC_EVENT_CODEC_H

#include <assert.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/status.h"
#include "core/event.h"

/* The header as it stands in the log, little-endian, no padding. */
struct record_header {
  uint32_t length; /* of the body */
  uint16_t type;
  uint16_t version;
  uint32_t flags;  /* bit 0: last of its commit; the others are 0 */
  uint32_t offset; /* seq - first seq of its commit */
  uint64_t seq;
  uint64_t prev;
  uint64_t time_us; /* at most INT64_MAX */
  uint8_t stream[16];
  uint64_t chain;
};
enum { record_flag_last = 1, record_chained_bytes = 56 };
static_assert(sizeof(struct record_header) == record_header_bytes, "no padding");
static_assert(offsetof(struct record_header, flags) == 8 && offsetof(struct record_header, offset) == 12 &&
                  offsetof(struct record_header, seq) == 16 && offsetof(struct record_header, stream) == 40 &&
                  offsetof(struct record_header, chain) == record_chained_bytes,
              "the layout of schema/log.md");

/* Appends header and body of the event, flag and offset as they stand in it; chain stands 0 until record_seal. OPTIONAL fields
 * that are empty, zero, false or none are left out. NO_MEMORY when the buffer failed (nothing was appended then);
 * INVALID_ARGUMENT never: what no record may hold (a word of no vocabulary, text that is not UTF-8, an empty document, a
 * negative time of the event, a body over event_body_bytes_max) is a programmer's error. */
enum status record_encode(const struct event *event, struct buffer *out);
/* Sets flag, offset and chain of an encoded record in place; size is the whole record's. Returns the chain. */
uint64_t record_seal(uint8_t *record, size_t size, bool last_of_commit, uint32_t offset, uint64_t previous_chain);
/* The chain that the record should have after previous_chain:
 *   h     = XXH3_64bits_withSeed(first 56 bytes of the header, 56, previous_chain)
 *   chain = XXH3_64bits_withSeed(body, length, h)
 * so that it covers every byte but itself. The record is at least a header long (record_header_decode says so). */
uint64_t record_chain(struct bytes record, uint64_t previous_chain);

/* Reads the header alone; common and body are zero. CORRUPT when the size (shorter than a header, other than its length says,
 * body over event_body_bytes_max), reserved bits or the time cannot be. Type, version, seq and prev are not judged. */
enum status record_header_decode(struct bytes record, struct event *ret_event);

/* A decoder owns the memory in which an event is built before it is handed out whole. One a thread. */
struct event_decoder;
struct event_decoder *event_decoder_new(void);
void event_decoder_free(struct event_decoder *decoder); /* NULL is fine */
/* Decodes header and body. Spans in *ret_event borrow from record alone and outlive the decoder; a span that is present has
 * data != NULL even when it is empty. Unknown fields are skipped, absent optional ones are zero. A record has one form only:
 * what decodes and has no unknown fields encodes to the same bytes. The chain is not checked here. CORRUPT (fault says what and
 * names the field: bounds, wrong type, no shortest form, unknown word, missing required field, an optional one that should have
 * been left out, bytes left over, keys not ascending), FOREIGN: a type or version that this program does not know. */
enum status event_decode(struct event_decoder *decoder, struct bytes record, struct event *ret_event, struct fault *fault);

/* The event's own fields as the members of a JSON object without braces: "operation_id":"…","actor":"…",… in the order of the
 * table, absent optional ones left out. Times as RFC 3339 text, ids and BIN as hexadecimal text, IDS as an array, words by
 * name, numbers as numbers; with decimal_strings the numbers that the HTTP API gives as decimal strings (revision, epoch) are
 * strings. Token hashes are never printed. documents false: a JSON field (payload, result, details …) is replaced by its size,
 * "payload_bytes":123. */
void event_print_json(const struct event *event, bool decimal_strings, bool documents, struct buffer *out);

/* The same for readers of the feed: decimal strings, documents whole but for a payload, which is its size; no digests of
 * identities and contents. */
void event_print_public(const struct event *event, struct buffer *out);

/* The table, for printers and documents. */
struct event_field {
  uint8_t key;  /* 0: end of the table */
  uint8_t type; /* enum event_field_type */
  bool required;
  uint16_t offset; /* in the event's structure, or in event_common for keys below 10 */
  const char *name;
  const char *doc;
};
enum event_field_type {
  FIELD_ID = 1,
  FIELD_BIN,
  FIELD_STR,
  FIELD_JSON,
  FIELD_IDS,
  FIELD_U64,
  FIELD_TIME,
  FIELD_BOOL,
  FIELD_TASK_STATE,
  FIELD_ATTEMPT_STATE,
  FIELD_OUTCOME,
  FIELD_ENDED_BY,
  FIELD_RECOVERY_SAFETY,
  FIELD_DECISION,
  FIELD_EVIDENCE_REASON,
  FIELD_SCHEDULE_KIND,
  FIELD_OVERLAP,
  FIELD_MISSED,
  FIELD_TRIGGER_OUTCOME
};
struct event_schema {
  enum event_type type; /* EVENT_none: the common fields */
  uint16_t version;
  uint16_t size; /* of the event's structure */
  const char *text;
  const char *doc;
  const struct event_field *fields; /* field_count of them and a last one with key 0 */
  unsigned field_count;
};
const struct event_schema *event_schema_find(unsigned type); /* NULL: unknown */
const struct event_schema *event_schema_common(void);        /* fields of keys 1–9 */
/* The name of a word in the vocabulary of this field type (FIELD_TASK_STATE …); "" when the vocabulary has none of this number
 * or the type is no vocabulary. */
const char *event_word_text(unsigned field_type, unsigned word);

#endif
