/* Owns the judgement of request headers. */
#include "edge/http_head.h"

#include <string.h>
#include <strings.h>

#include "base/limits.h"

void head_init(struct head *head) { *head = (struct head){.accepts_anything = true}; }

static bool equals(struct bytes text, const char *word) {
  return text.size == strlen(word) && (text.size == 0 || strncasecmp((const char *)text.data, word, text.size) == 0);
}

/* clang-format off */
static const bool token_chars[256] = {
    ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['-'] = true, ['!'] = true, ['#'] = true, ['$'] = true,
    ['%'] = true, ['&'] = true, ['\''] = true, ['*'] = true, ['+'] = true, ['.'] = true, ['^'] = true, ['_'] = true,
    ['`'] = true, ['|'] = true, ['~'] = true,
};
/* clang-format on */

static bool is_token(struct bytes text) {
  for (size_t i = 0; i < text.size; i++)
    if (!token_chars[text.data[i]]) return false;
  return text.size > 0;
}

static struct bytes trim(struct bytes text) {
  while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) text = bytes_of(text.data + 1, text.size - 1);
  while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t')) text.size--;
  return text;
}

/* Takes what stands before the first separator outside quotes off *rest, trimmed. False when nothing is left. */
static bool take_part(struct bytes *rest, char separator, struct bytes *ret_part) {
  if (rest->data == NULL) return false;
  size_t end = 0;
  bool quoted = false;
  for (; end < rest->size && (quoted || rest->data[end] != (uint8_t)separator); end++) {
    if (rest->data[end] == '"') quoted = !quoted;
    if (quoted && rest->data[end] == '\\' && end + 1 < rest->size) end++;
  }
  *ret_part = trim(bytes_of(rest->data, end));
  *rest = end < rest->size ? bytes_of(rest->data + end + 1, rest->size - end - 1) : (struct bytes){NULL, 0};
  return true;
}

/* q=0, q=0. … q=0.000 */
static bool is_zero_weight(struct bytes parameter) {
  if (parameter.size < 3 || strncasecmp((const char *)parameter.data, "q=0", 3) != 0) return false;
  for (size_t i = 3; i < parameter.size; i++)
    if (parameter.data[i] != (i == 3 ? '.' : '0')) return false;
  return true;
}

/* The most exact range that covers application/json decides, whatever its place in the list. */
static void add_accept(struct head *head, struct bytes value) {
  struct bytes range;
  head->accepts_anything = false;
  while (take_part(&value, ',', &range)) {
    struct bytes type, parameter;
    if (!take_part(&range, ';', &type)) continue;
    bool stream = equals(type, "text/event-stream");
    uint8_t weight = equals(type, "application/json") ? 3 : equals(type, "application/*") ? 2 : equals(type, "*/*") ? 1 : 0;
    if (!stream && (weight == 0 || weight < head->json_weight)) continue;
    bool wanted = true;
    while (take_part(&range, ';', &parameter))
      if (is_zero_weight(parameter)) wanted = false;
    if (stream) {
      head->accepts_stream = wanted;
      continue;
    }
    head->accepts_json = weight == head->json_weight ? head->accepts_json || wanted : wanted;
    head->json_weight = weight;
  }
}

static bool has_control(struct bytes text) {
  if (bytes_is_printed(text)) return false;
  for (size_t i = 0; i < text.size; i++)
    if ((text.data[i] < ' ' && text.data[i] != '\t') || text.data[i] == 0x7F) return true;
  return false;
}

static void add_value(struct bytes value, struct bytes *kept, uint16_t *count) {
  *kept = trim(value);
  if (*count < UINT16_MAX) ++*count;
}

void head_add(struct head *head, struct bytes name, struct bytes value) {
  size_t size = name.size + value.size + 4; /* ": " and the end of the line */
  head->bytes = size > UINT32_MAX - head->bytes ? UINT32_MAX : head->bytes + (uint32_t)size;
  if (!is_token(name) || has_control(value)) head->malformed = true;
  struct bytes ignored;
  switch (name.size) {
    case 4:
      if (equals(name, "Host")) add_value(value, &ignored, &head->hosts);
      return;
    case 6:
      if (equals(name, "Accept")) add_accept(head, value);
      return;
    case 12:
      if (equals(name, "Content-Type")) add_value(value, &head->content_type, &head->content_types);
      return;
    case 13:
      if (equals(name, "Last-Event-ID")) add_value(value, &head->last_event_id, &head->last_event_ids);
      if (!equals(name, "Authorization")) return;
      add_value(value, &ignored, &head->authorizations);
      head->authorization = (const char *)value.data;
      return;
    case 14:
      if (equals(name, "Content-Length")) add_value(value, &head->content_length, &head->content_lengths);
      return;
    case 15:
      if (equals(name, "Idempotency-Key")) add_value(value, &head->idempotency_key, &head->idempotency_keys);
      return;
    case 17:
      if (equals(name, "Transfer-Encoding")) add_value(value, &head->transfer_encoding, &head->transfer_encodings);
      return;
    default:
      return;
  }
}

static enum status refuse(struct fault *fault, const char *header, const char *message) {
  return fault_set(fault, STATUS_INVALID_ARGUMENT, header, "%s", message);
}

/* Digits alone: no sign, no list, no white space inside. */
static bool read_length(struct bytes text, uint64_t *ret_length) {
  uint64_t length = 0;
  for (size_t i = 0; i < text.size; i++)
    if (text.data[i] < '0' || text.data[i] > '9' || __builtin_mul_overflow(length, 10U, &length) ||
        __builtin_add_overflow(length, (uint64_t)(text.data[i] - '0'), &length))
      return false;
  *ret_length = length;
  return text.size > 0;
}

enum status head_judge_framing(struct head *head, bool http_1_1, struct fault *fault) {
  uint64_t length = 0;
  if (head->malformed) return refuse(fault, NULL, "a header's name is not a token, or its value has a control character");
  if (head->transfer_encodings > 1) return refuse(fault, "Transfer-Encoding", "the header is given twice");
  if (head->content_lengths > 1) return refuse(fault, "Content-Length", "the header is given twice");
  if (head->hosts > 1) return refuse(fault, "Host", "the header is given twice");
  if (head->transfer_encodings != 0 && head->content_lengths != 0)
    return refuse(fault, "Transfer-Encoding", "must not come together with Content-Length");
  if (head->transfer_encodings != 0 && (!http_1_1 || !equals(head->transfer_encoding, "chunked")))
    return refuse(fault, "Transfer-Encoding", "only chunked is known, and only in HTTP/1.1");
  if (head->content_lengths != 0 && !read_length(head->content_length, &length))
    return refuse(fault, "Content-Length", "must be digits");
  if (head->hosts == 0 && http_1_1) return refuse(fault, "Host", "the header is missing");
  if (head->bytes > http_header_bytes_max)
    return fault_set(fault, STATUS_HEADERS_TOO_LARGE, NULL, "the headers are larger than %d bytes", http_header_bytes_max);
  head->length = length;
  head->chunked = head->transfer_encodings != 0;
  return STATUS_OK;
}

bool head_has_body(const struct head *head) { return head->chunked || head->length > 0; }

enum status head_judge_authorization(const struct head *head, struct fault *fault) {
  return head->authorizations > 1 ? refuse(fault, "Authorization", "the header is given twice") : STATUS_OK;
}

enum status head_judge_accept(const struct head *head, struct fault *fault) {
  if (!head->accepts_anything && !head->accepts_json)
    return fault_set(fault, STATUS_NOT_ACCEPTABLE, "Accept", "only application/json can be given");
  return STATUS_OK;
}

enum status head_judge_read(const struct head *head, struct fault *fault) {
  if (head->idempotency_keys != 0) return refuse(fault, "Idempotency-Key", "a query must not carry it");
  if (head_has_body(head)) return refuse(fault, head->chunked ? "Transfer-Encoding" : "Content-Length", "a query has no body");
  return STATUS_OK;
}

/* application/json, with no parameter but charset=utf-8. */
static bool is_json_type(struct bytes value) {
  struct bytes part;
  if (!take_part(&value, ';', &part) || !equals(part, "application/json")) return false;
  while (take_part(&value, ';', &part))
    if (!equals(part, "charset=utf-8") && !equals(part, "charset=\"utf-8\"")) return false;
  return true;
}

static enum status judge_key(const struct head *head, bool needs_key, struct fault *fault) {
  static const char name[] = "Idempotency-Key";
  struct bytes key = head->idempotency_key;
  if (!needs_key) return STATUS_OK; /* it is not used, whatever it is */
  if (head->idempotency_keys > 1) return refuse(fault, name, "the header is given twice");
  if (head->idempotency_keys == 0) return refuse(fault, name, "a write must carry this header");
  bool good = key.size > 0 && key.size <= idempotency_key_chars_max && bytes_is_visible(key);
  return good ? STATUS_OK : refuse(fault, name, "must be 1 to 128 visible ASCII characters");
}

enum status head_judge_write(const struct head *head, uint64_t body_bytes_max, bool needs_key, struct fault *fault) {
  if (head->content_types != 1 || !is_json_type(head->content_type))
    return fault_set(fault, STATUS_UNSUPPORTED_MEDIA_TYPE, "Content-Type", "must be application/json, once");
  if (!head->chunked && head->content_lengths == 0)
    return fault_set(fault, STATUS_LENGTH_REQUIRED, "Content-Length", "must be given unless the body is chunked");
  if (head->length > body_bytes_max)
    return fault_set(fault, STATUS_PAYLOAD_TOO_LARGE, "Content-Length", "the body is larger than %llu bytes",
                     (unsigned long long)body_bytes_max);
  return judge_key(head, needs_key, fault);
}

uint32_t head_retry_after_s(uint32_t delay_ms) {
  uint32_t seconds = delay_ms / 1000 + (delay_ms % 1000 != 0);
  return seconds > 0 ? seconds : 1;
}
