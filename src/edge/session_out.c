/* Owns what waits for one worker's socket: a queue of frames, each with as many messages as were there before the socket could
 * take it. Many small frames cost ten times more than one with an array in it. */
#include "edge/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

/* text: session_pad_bytes of room, one byte for '[', then the messages, separated by commas. */
struct outbound_frame {
  struct outbound_frame *next;
  struct buffer text;
  uint32_t messages;
  size_t counted_bytes; /* what queue and gauge were raised by */
};

enum { out_prefix_bytes = session_pad_bytes + 1 };
/* No frame comes near it: joining stops at session_join_bytes_max, and no message is larger than a frame. */
enum { out_frame_bytes_max = out_prefix_bytes + session_join_bytes_max + 2 * worker_frame_bytes_max };

static struct outbound_frame *outbound_new(struct session_hub *hub) {
  struct outbound_frame *frame = hub->spare_outbound;
  if (frame != NULL) {
    hub->spare_outbound = frame->next;
    hub->spare_outbound_count--;
  } else {
    frame = guard_malloc(sizeof *frame);
    buffer_init(&frame->text, out_frame_bytes_max);
  }
  frame->next = NULL;
  frame->messages = 0;
  frame->counted_bytes = 0;
  buffer_reset(&frame->text);
  uint8_t *prefix = buffer_reserve(&frame->text, out_prefix_bytes);
  if (prefix != NULL) {
    memset(prefix, 0, session_pad_bytes);
    prefix[session_pad_bytes] = '[';
    buffer_commit(&frame->text, out_prefix_bytes);
  }
  return frame;
}

static void outbound_free(struct session_hub *hub, struct outbound_frame *frame) {
  if (hub->spare_outbound_count >= session_spare_frames_max || frame->text.capacity > 2 * session_join_bytes_max) {
    buffer_clear(&frame->text);
    free(frame);
    return;
  }
  frame->next = hub->spare_outbound;
  hub->spare_outbound = frame;
  hub->spare_outbound_count++;
}

void session_out_clear_spares(struct session_hub *hub) {
  while (hub->spare_outbound != NULL) {
    struct outbound_frame *frame = hub->spare_outbound;
    hub->spare_outbound = frame->next;
    buffer_clear(&frame->text);
    free(frame);
  }
  hub->spare_outbound_count = 0;
}

struct buffer *session_out_begin(struct session *session) {
  struct outbound_frame *tail = session->last_out;
  bool joins = tail != NULL && tail->text.size < session_join_bytes_max && tail->messages < worker_frame_messages_max;
  if (!joins) {
    tail = outbound_new(session->hub);
    if (session->last_out != NULL) session->last_out->next = tail;
    else session->first_out = tail;
    session->last_out = tail;
  }
  if (tail->messages > 0) buffer_append_char(&tail->text, ',');
  return &tail->text;
}

void session_out_end(struct session *session) {
  struct outbound_frame *tail = session->last_out;
  if (tail->text.failed) {
    session_close(session, 1011, "out of memory", false);
    return;
  }
  tail->messages++;
  size_t total = tail->text.size - out_prefix_bytes;
  size_t added = total - tail->counted_bytes;
  tail->counted_bytes = total;
  session->queued_bytes += added;
  (void)atomic_fetch_add_explicit(&session->gauge.unsent_bytes, added, memory_order_relaxed);
  session_unsettle(session);
  if (session->queued_bytes > worker_unsent_bytes_max) session_close(session, 1013, "the worker reads too slowly", false);
}

bool session_next_frame(struct session *session, uint8_t **ret_data, size_t *ret_size) {
  struct outbound_frame *frame = session->first_out;
  if (frame == NULL) return false;
  must(frame->messages > 0);
  uint8_t *data = frame->text.data + session_pad_bytes;
  size_t size = frame->text.size - session_pad_bytes;
  if (frame->messages == 1) { /* a message alone needs no array around it */
    data++;
    size--;
  } else if (size == frame->counted_bytes + 1) {
    buffer_append_char(&frame->text, ']');
    if (frame->text.failed) {
      session_close(session, 1011, "out of memory", false);
      return false;
    }
    data = frame->text.data + session_pad_bytes;
    size++;
  }
  *ret_data = data;
  *ret_size = size;
  return true;
}

/* Takes the first frame out of the queue and of what is counted as waiting. */
static void out_remove_first(struct session *session) {
  struct outbound_frame *frame = session->first_out;
  session->first_out = frame->next;
  if (session->first_out == NULL) session->last_out = NULL;
  must(session->queued_bytes >= frame->counted_bytes);
  session->queued_bytes -= frame->counted_bytes;
  uint64_t before = atomic_fetch_sub_explicit(&session->gauge.unsent_bytes, frame->counted_bytes, memory_order_relaxed);
  must(before >= frame->counted_bytes);
  outbound_free(session->hub, frame);
}

void session_sent(struct session *session) {
  must(session->first_out != NULL);
  out_remove_first(session);
}

void session_out_drop(struct session *session) {
  while (session->first_out != NULL) out_remove_first(session);
}
