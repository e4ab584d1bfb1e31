/* Cursors of listings (schema/http.md "Lists"): opaque text that says where a page goes on, bound to the kind of listing, the
 * namespace and the filters, and authenticated with the installation's secret, so that it cannot be forged or moved to another
 * listing. Pure. */
#ifndef ORBIT_CODEC_CURSOR_H
#define ORBIT_CODEC_CURSOR_H

#include "base/bytes.h"
#include "base/limits.h"
#include "base/status.h"
#include "codec/digest.h"

/* What a cursor is bound to. filters is a digest of the listing's filters (and of its object, where it lists something of one).
 */
struct cursor_binding {
  const char *kind; /* "tasks", "operations", … at most cursor_kind_chars_max characters */
  struct id namespace_id;
  struct id filters;
};

/* Appends the cursor's text: characters of [A-Za-z0-9_-], no more than cursor_chars_max. position is the listing's own bytes,
 * at most cursor_position_bytes_max. */
void cursor_write(struct buffer *out, const struct secret *secret, const struct cursor_binding *binding, struct bytes position);

/* Where the page goes on. */
struct cursor_position {
  uint8_t bytes[cursor_position_bytes_max];
  size_t size;
};
/* INVALID_ARGUMENT, field "cursor": not a cursor that this installation made for this binding. */
enum status cursor_read(struct bytes text, const struct secret *secret, const struct cursor_binding *binding,
                        struct cursor_position *ret_position, struct fault *fault);

#endif
