/* Fuzzes what Orbit judges of a request by itself: the raw target and the headers that the HTTP library hands over. The input
 * is a head as it might come: a target in the first line, then "Name: value" lines. */
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"
#include "edge/http_head.h"
#include "edge/http_target.h"

enum { texts_bytes = 64 * 1024 };

static bool holds(const char *text, size_t size, struct bytes part) {
  return (uintptr_t)part.data >= (uintptr_t)text && (uintptr_t)part.data + part.size <= (uintptr_t)text + size;
}

/* Accepted targets lie within their text, are UTF-8 where they are values, and name each parameter once. */
static void check_target(const char *text, size_t size, const struct target *target) {
  must(target->segment_count <= target_segments_max + 1 && target->parameter_count <= target_parameters_max);
  for (unsigned i = 0; i < target->segment_count && i < target_segments_max; i++) {
    must(holds(text, size, target->segments[i]));
    must(memchr(target->segments[i].data, 0, target->segments[i].size) == NULL);
  }
  for (unsigned i = 0; i < target->parameter_count; i++) {
    const struct target_parameter *parameter = &target->parameters[i];
    must(parameter->name.size > 0 && bytes_is_utf8(parameter->value));
    must(holds(text, size, parameter->name) && holds(text, size, parameter->value));
    for (unsigned j = 0; j < i; j++) must(!bytes_equal(parameter->name, target->parameters[j].name));
  }
}

static void judge_target(struct bytes line) {
  static char text[http_target_bytes_max];
  struct target target;
  struct fault fault = {.message = ""};
  uint64_t number = 7;
  size_t size = line.size < sizeof text ? line.size : sizeof text;
  memcpy(text, line.data, size);
  enum status status = target_parse(text, size, &target, &fault);
  if (status != STATUS_OK) {
    must(status == STATUS_INVALID_ARGUMENT && fault.message[0] != 0 && bytes_is_utf8(bytes_text(fault.field)));
    return;
  }
  check_target(text, size, &target);
  static const char *const known[] = {"limit", "cursor", NULL};
  if (target_judge_parameters(&target, known, &fault) != STATUS_OK) must(bytes_is_utf8(bytes_text(fault.field)));
  if (target_number(&target, "limit", 1, 100, 20, &number, &fault) == STATUS_OK) must(number >= 1 && number <= 100);
  else must(number == 7 && strcmp(fault.field, "limit") == 0);
}

/* Whatever is allowed leaves no doubt where the message ends. */
static void check_framing(const struct head *head, bool http_1_1) {
  must(head->hosts <= 1 && head->content_lengths <= 1 && head->transfer_encodings <= 1);
  must(head->content_lengths == 0 || head->transfer_encodings == 0);
  must(!head->chunked || http_1_1);
  must(head->bytes <= http_header_bytes_max);
}

static void judge_head(struct head *head, bool http_1_1) {
  struct fault fault = {.message = ""};
  if (head_judge_framing(head, http_1_1, &fault) != STATUS_OK) {
    must(fault.message[0] != 0);
    return;
  }
  check_framing(head, http_1_1);
  (void)head_judge_authorization(head, &fault);
  (void)head_judge_accept(head, &fault);
  if (head_judge_read(head, &fault) == STATUS_OK) must(!head_has_body(head) && head->idempotency_keys == 0);
  if (head_judge_write(head, http_body_bytes_max, true, &fault) != STATUS_OK) return;
  must(head->idempotency_keys == 1 && head->content_types == 1);
  must(head->idempotency_key.size >= 1 && head->idempotency_key.size <= idempotency_key_chars_max);
  must(head->chunked || head->length <= http_body_bytes_max);
}

/* A copy with a NUL behind it, as the library's texts have; what does not fit is cut. */
static struct bytes keep(char *texts, size_t *used, struct bytes text) {
  size_t room = texts_bytes - *used - 1, size = text.size < room ? text.size : room;
  char *at = texts + *used;
  if (size > 0) memcpy(at, text.data, size);
  at[size] = '\0';
  *used += size + 1;
  return bytes_of(at, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char texts[texts_bytes];
  struct head head;
  size_t used = 0, at = 0;
  bool http_1_1 = size == 0 || data[size - 1] != '0';
  head_init(&head);
  for (bool first = true; at < size; first = false) {
    const uint8_t *end = memchr(data + at, '\n', size - at);
    struct bytes line = bytes_of(data + at, end != NULL ? (size_t)(end - data) - at : size - at);
    at += line.size + 1;
    if (first) {
      judge_target(line);
      continue;
    }
    const uint8_t *colon = line.size > 0 ? memchr(line.data, ':', line.size) : NULL;
    if (colon == NULL || used + line.size + 3 > texts_bytes) continue;
    size_t name = (size_t)(colon - line.data);
    struct bytes kept_name = keep(texts, &used, bytes_of(line.data, name));
    head_add(&head, kept_name, keep(texts, &used, bytes_of(colon + 1, line.size - name - 1)));
  }
  judge_head(&head, http_1_1);
  return 0;
}
