/* Owns the client's side of WebSocket, as far as Orbit uses it: text frames, ping and close. That the server proves its
 * knowledge of the key (Sec-WebSocket-Accept) is not looked at: it is Orbit, and tests of the channel look at it. */
#include "load/worker_line.h"

#include <sodium.h>
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "load/scan.h"

enum { frame_head_bytes_max = 14, mask_bytes = 4, opcode_more = 0, opcode_text = 1, opcode_close = 8, opcode_ping = 9 };
/* In front of the waiting messages: the frame's head and the bracket of an array. */
enum { room_bytes = frame_head_bytes_max + 1 };

/* ---- frames out ---- */

static void waiting_reset(struct worker_line *line) {
  static const uint8_t room[room_bytes] = {[room_bytes - 1] = '['};
  buffer_reset(&line->waiting);
  buffer_append(&line->waiting, room, sizeof room);
  line->waiting_count = 0;
}

/* Writes the head right in front of data, masks data in place, and sends both in one piece. data has room for it in front. */
static void frame_send(struct worker_line *line, unsigned opcode, uint8_t *data, size_t size) {
  uint8_t mask[mask_bytes];
  line->mask_state = line->mask_state * UINT64_C(6364136223846793005) + 1442695040888963407;
  memcpy(mask, (uint8_t *)&line->mask_state + 4, sizeof mask);
  for (size_t i = 0; i < size; i++) data[i] ^= mask[i % mask_bytes];
  uint8_t *head = data - mask_bytes;
  memcpy(head, mask, sizeof mask);
  unsigned length_bytes = size < 126 ? 0 : size <= UINT16_MAX ? 2 : 8;
  for (unsigned i = 0; i < length_bytes; i++) *--head = (uint8_t)(size >> (8 * i));
  *--head = (uint8_t)(0x80 | (length_bytes == 0 ? size : length_bytes == 2 ? 126 : 127));
  *--head = (uint8_t)(0x80 | opcode);
  stream_write(&line->stream, head, size + (size_t)(data - head));
}

void worker_line_flush(struct worker_line *line) {
  if (line->waiting_count == 0 || line->state != WORKER_LINE_OPEN) return;
  bool alone = line->waiting_count == 1;
  if (!alone) buffer_append_char(&line->waiting, ']');
  must(!line->waiting.failed);
  size_t start = alone ? room_bytes : room_bytes - 1;
  frame_send(line, opcode_text, line->waiting.data + start, line->waiting.size - start);
  waiting_reset(line);
}

void worker_line_send(struct worker_line *line, struct bytes message) {
  if (line->waiting_count == worker_frame_messages_max || line->waiting.size + message.size + 2 > worker_frame_bytes_max)
    worker_line_flush(line);
  if (line->waiting_count > 0) buffer_append_char(&line->waiting, ',');
  buffer_append_bytes(&line->waiting, message);
  line->waiting_count++;
}

static void control_send(struct worker_line *line, unsigned opcode, struct bytes payload) {
  uint8_t frame[frame_head_bytes_max + 125];
  size_t size = payload.size <= 125 ? payload.size : 125;
  if (size > 0) memcpy(frame + frame_head_bytes_max, payload.data, size);
  frame_send(line, opcode, frame + frame_head_bytes_max, size);
}

/* ---- frames in ---- */

static void line_break(struct worker_line *line, unsigned code) {
  worker_line_close(line);
  line->broke(line, code);
}

static void text_took(struct worker_line *line, struct bytes text) {
  struct bytes item;
  size_t at = 0;
  if (text.size == 0 || text.data[0] != '[') {
    line->took(line, text);
    return;
  }
  while (line->state == WORKER_LINE_OPEN && scan_item(text, &at, &item)) line->took(line, item);
}

static void frame_took(struct worker_line *line, unsigned opcode, bool last, struct bytes payload) {
  if (opcode == opcode_ping) {
    control_send(line, 10, payload);
  } else if (opcode == opcode_close) {
    line_break(line, payload.size >= 2 ? (unsigned)(payload.data[0] << 8 | payload.data[1]) : 1005);
  } else if (opcode == opcode_text && last) {
    text_took(line, payload);
  } else if (opcode == opcode_text || opcode == opcode_more) {
    if (opcode == opcode_text) buffer_reset(&line->fragments);
    buffer_append_bytes(&line->fragments, payload);
    if (last) text_took(line, buffer_bytes(&line->fragments));
  }
}

/* One whole frame from what came; false: there is none yet. */
static bool next_frame(struct worker_line *line) {
  struct bytes text = stream_unread(&line->stream);
  if (text.size < 2) return false;
  unsigned length_bytes = (text.data[1] & 127) < 126 ? 0 : (text.data[1] & 127) == 126 ? 2 : 8;
  uint64_t length = length_bytes == 0 ? text.data[1] & 127 : 0;
  if (text.size < 2 + length_bytes) return false;
  for (unsigned i = 0; i < length_bytes; i++) length = length << 8 | text.data[2 + i];
  size_t head = 2 + length_bytes;
  if (length > text.size - head) return false;
  stream_consume(&line->stream, head + (size_t)length);
  frame_took(line, text.data[0] & 15, (text.data[0] & 0x80) != 0, bytes_of(text.data + head, (size_t)length));
  return line->state == WORKER_LINE_OPEN;
}

/* The answer to the upgrade; false: not whole yet, or refused. */
static bool upgraded(struct worker_line *line) {
  struct bytes text = stream_unread(&line->stream);
  const uint8_t *end = memmem(text.data, text.size, "\r\n\r\n", 4);
  if (end == NULL) return false;
  if (memcmp(text.data, "HTTP/1.1 101", 12) != 0) {
    line_break(line, (unsigned)((text.data[9] - '0') * 100 + (text.data[10] - '0') * 10 + (text.data[11] - '0')));
    return false;
  }
  stream_consume(&line->stream, (size_t)(end + 4 - text.data));
  line->state = WORKER_LINE_OPEN;
  line->opened(line);
  return line->state == WORKER_LINE_OPEN;
}

static void line_took(struct stream *stream) {
  struct worker_line *line = (struct worker_line *)(void *)stream;
  if (line->state == WORKER_LINE_UPGRADING && !upgraded(line)) return;
  while (next_frame(line)) continue;
  worker_line_flush(line);
}

static void line_broke(struct stream *stream) {
  struct worker_line *line = (struct worker_line *)(void *)stream;
  line_break(line, 0);
}

/* ---- the connection ---- */

void worker_line_init(struct worker_line *line, struct loop *loop) {
  *line = (struct worker_line){.state = WORKER_LINE_CLOSED};
  stream_init(&line->stream, loop, line_took, line_broke);
  buffer_init(&line->waiting, worker_frame_bytes_max + worker_message_bytes_max);
  buffer_init(&line->fragments, 2 * worker_frame_bytes_max);
  randombytes_buf(&line->mask_state, sizeof line->mask_state);
}

void worker_line_clear(struct worker_line *line) {
  stream_clear(&line->stream);
  buffer_clear(&line->waiting);
  buffer_clear(&line->fragments);
}

bool worker_line_open(struct worker_line *line, const struct address *address, const char *token) {
  if (!stream_open(&line->stream, address)) return false;
  uint8_t nonce[16];
  char key[25];
  struct buffer request;
  randombytes_buf(nonce, sizeof nonce);
  (void)sodium_bin2base64(key, sizeof key, nonce, sizeof nonce, sodium_base64_VARIANT_ORIGINAL);
  buffer_init(&request, 4096);
  buffer_append_format(
      &request,
      "GET /v1/worker HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: orbit.worker.v1\r\n\r\n",
      address->text, token, key);
  must(!request.failed);
  stream_write(&line->stream, request.data, request.size);
  buffer_clear(&request);
  waiting_reset(line);
  line->state = WORKER_LINE_UPGRADING;
  return true;
}

void worker_line_close(struct worker_line *line) {
  stream_close(&line->stream);
  line->state = WORKER_LINE_CLOSED;
}
