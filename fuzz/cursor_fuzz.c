/* Fuzzes cursors. Any bytes as text are refused, since nobody without the secret makes one; any bytes as position come back
 * from their cursor, and from no neighbour of it. */
#include <string.h>

#include "base/guard.h"
#include "codec/cursor.h"

static const struct secret secret = {{7}};
static const struct cursor_binding binding = {"tasks", {{1}}, {{2}}};

static void check_refused(struct bytes text) {
  struct cursor_position position;
  struct fault fault;
  must(cursor_read(text, &secret, &binding, &position, &fault) == STATUS_INVALID_ARGUMENT);
  must(strcmp(fault.field, "cursor") == 0 && fault.message[0] != 0);
}

/* One character of the text replaced, the rest as it is. */
static void check_neighbour(struct buffer *text, uint8_t place, uint8_t other) {
  uint8_t *character = &text->data[place % text->size];
  if (*character == other) return;
  *character = other;
  check_refused(buffer_bytes(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check_refused(bytes_of(data, size));
  if (size < 2) return 0;
  struct bytes position = bytes_of(data + 2, size - 2 < cursor_position_bytes_max ? size - 2 : cursor_position_bytes_max);
  struct cursor_position read;
  struct buffer text;
  struct fault fault;
  buffer_init(&text, cursor_chars_max + 1);
  cursor_write(&text, &secret, &binding, position);
  must(!text.failed && text.size <= cursor_chars_max);
  must(cursor_read(buffer_bytes(&text), &secret, &binding, &read, &fault) == STATUS_OK);
  must(bytes_equal(bytes_of(read.bytes, read.size), position));
  check_neighbour(&text, data[0], data[1]);
  buffer_clear(&text);
  return 0;
}
