/* Any bytes as a record: the decoder reads nothing outside them, and what it accepts prints and is a fixed point of encoding.
 * The length in the header is set right, so that the fuzzer works on bodies and not on that. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/event_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { print_bytes_max = 16 * 1024 * 1024 };

/* Unknown fields are dropped by the first encoding and nothing else is, so the second changes nothing. */
static void check_accepted(struct event_decoder *decoder, struct bytes record, const struct event *event) {
  struct event again;
  struct buffer first, second, printed, reprinted;
  buffer_init(&first, record_header_bytes + 2 * event_body_bytes_max);
  buffer_init(&second, record_header_bytes + 2 * event_body_bytes_max);
  buffer_init(&printed, print_bytes_max);
  buffer_init(&reprinted, print_bytes_max);
  must(record_encode(event, &first) == STATUS_OK);
  must(first.size <= record.size);
  must(event_decode(decoder, buffer_bytes(&first), &again, NULL) == STATUS_OK);
  must(record_encode(&again, &second) == STATUS_OK);
  must(bytes_equal(buffer_bytes(&first), buffer_bytes(&second)));
  event_print_json(event, true, true, &printed);
  event_print_json(&again, true, true, &reprinted);
  must(!printed.failed && bytes_equal(buffer_bytes(&printed), buffer_bytes(&reprinted)));
  if (first.size == record.size) {
    uint64_t chain = record_chain(record, 1);
    must(record_chain(buffer_bytes(&first), 1) == chain);
    must(record_seal(first.data, first.size, event->last_of_commit, event->offset, 1) == chain);
  }
  buffer_clear(&first);
  buffer_clear(&second);
  buffer_clear(&printed);
  buffer_clear(&reprinted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct event event;
  struct fault fault = {.message = ""};
  struct event_decoder *decoder = event_decoder_new();
  uint8_t *record = guard_malloc(size != 0 ? size : 1);
  if (size > 0) memcpy(record, data, size);
  if (size >= record_header_bytes) {
    size_t length = size - record_header_bytes;
    for (unsigned i = 0; i < 4; i++) record[i] = (uint8_t)(length >> (8 * i));
  }
  enum status status = event_decode(decoder, bytes_of(record, size), &event, &fault);
  must(status == STATUS_OK || status == STATUS_CORRUPT || status == STATUS_FOREIGN);
  must(status == STATUS_OK || fault.message[0] != 0);
  if (status == STATUS_OK) check_accepted(decoder, bytes_of(record, size), &event);
  event_decoder_free(decoder);
  free(record);
  return 0;
}
