/* Owns the text form of cursors: base64url of a keyed digest and the position that it covers. */
#include "codec/cursor.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"

enum { cursor_bytes_max = identity_bytes + cursor_position_bytes_max };

/* The operation's name begins as no operation does, so that no cursor's digest is ever another identity. */
static struct id cursor_digest(const struct secret *secret, const struct cursor_binding *binding, struct bytes position) {
  char operation[8 + cursor_kind_chars_max];
  int length = snprintf(operation, sizeof operation, "cursor:%s", binding->kind);
  must(length > 0 && (size_t)length < sizeof operation);
  return identity_make(secret, &binding->namespace_id, operation, &binding->filters, position);
}

void cursor_write(struct buffer *out, const struct secret *secret, const struct cursor_binding *binding,
                  struct bytes position) {
  must(position.size <= cursor_position_bytes_max);
  uint8_t raw[cursor_bytes_max];
  struct id digest = cursor_digest(secret, binding, position);
  memcpy(raw, digest.bytes, id_bytes);
  if (position.size != 0) memcpy(raw + id_bytes, position.data, position.size);
  size_t room = sodium_base64_encoded_len(id_bytes + position.size, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  uint8_t *text = buffer_reserve(out, room); /* with the NUL that is not kept */
  if (text == NULL) return;
  sodium_bin2base64((char *)text, room, raw, id_bytes + position.size, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  buffer_commit(out, room - 1);
}

/* libsodium's decoder takes some bytes above 127 for letters, so that one cursor would have several texts. */
static bool is_base64url(struct bytes text) {
  for (size_t i = 0; i < text.size; i++) {
    uint8_t c = text.data[i];
    bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '_') return false;
  }
  return true;
}

enum status cursor_read(struct bytes text, const struct secret *secret, const struct cursor_binding *binding,
                        struct cursor_position *ret_position, struct fault *fault) {
  static const char foreign[] = "the cursor was not made by this listing with these parameters";
  uint8_t raw[cursor_bytes_max];
  size_t size = 0;
  if (text.size == 0 || text.size > cursor_chars_max)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "cursor", "a cursor has 1 to %d characters", cursor_chars_max);
  if (!is_base64url(text) ||
      sodium_base642bin(raw, sizeof raw, (const char *)text.data, text.size, NULL, &size, NULL,
                        sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
      size < id_bytes)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "cursor", "%s", foreign);
  struct bytes position = bytes_of(raw + id_bytes, size - id_bytes);
  struct id digest = cursor_digest(secret, binding, position);
  if (sodium_memcmp(digest.bytes, raw, id_bytes) != 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "cursor", "%s", foreign);
  memcpy(ret_position->bytes, position.data, position.size);
  ret_position->size = position.size;
  return STATUS_OK;
}
