/* Owns the pages of lists: how many rows, where a page goes on, and the cursors that say so. */
#include <string.h>

#include "base/guard.h"
#include "codec/cursor.h"
#include "edge/routes.h"

static struct cursor_binding page_binding(const struct request *request, const struct id *filters) {
  return (struct cursor_binding){
      .kind = request->route->cursor_kind, .namespace_id = request->who.namespace_id, .filters = *filters};
}

enum status page_limit_read(const struct request *request, uint32_t *ret_limit, struct fault *fault) {
  uint64_t limit;
  enum status status = target_number(&request->target, "limit", 1, page_rows_max, page_rows_default, &limit, fault);
  if (status == STATUS_OK) *ret_limit = (uint32_t)limit;
  return status;
}

enum status page_cursor_read(const struct request *request, const struct id *filters, void *position, size_t size,
                             bool *ret_given, struct fault *fault) {
  struct bytes text = target_parameter(&request->target, "cursor");
  *ret_given = text.data != NULL;
  if (text.data == NULL) return STATUS_OK;
  struct cursor_binding binding = page_binding(request, filters);
  struct cursor_position read;
  enum status status = cursor_read(text, journal_secret(request->pool->edge->journal), &binding, &read, fault);
  if (status != STATUS_OK) return status;
  if (read.size != size) return fault_set(fault, STATUS_INVALID_ARGUMENT, "cursor", "not a cursor of this list");
  memcpy(position, read.bytes, size);
  return STATUS_OK;
}

void page_cursor_write(struct request *request, const struct id *filters, struct bytes position) {
  struct cursor_binding binding = page_binding(request, filters);
  buffer_append_text(&request->out, ",\"next_cursor\":\"");
  cursor_write(&request->out, journal_secret(request->pool->edge->journal), &binding, position);
  buffer_append_char(&request->out, '"');
}

/* ---- What a task has, by its number in the list ---- */

enum status page_read(struct request *request, struct fault *fault) {
  bool given;
  enum status status = page_limit_read(request, &request->page_limit, fault);
  if (status != STATUS_OK) return status;
  request->page_start = 0;
  return page_cursor_read(request, &request->ids[0], &request->page_start, sizeof request->page_start, &given, fault);
}

void page_end(struct request *request, uint32_t next, uint32_t count) {
  buffer_append_char(&request->out, ']');
  if (next < count) page_cursor_write(request, &request->ids[0], bytes_of(&next, sizeof next));
  buffer_append_char(&request->out, '}');
}
