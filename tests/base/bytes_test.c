/* Spans, UTF-8 and buffers. */
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static void compares_spans(void **state) {
  (void)state;
  struct bytes none = {NULL, 0};
  assert_true(bytes_equal(none, bytes_text("")));
  assert_true(bytes_equal_text(bytes_text("abc"), "abc"));
  assert_false(bytes_equal_text(bytes_text("abc"), "abd"));
  assert_false(bytes_equal_text(bytes_text("ab"), "abc"));
  assert_int_equal(bytes_compare(bytes_text("a"), bytes_text("a")), 0);
  assert_true(bytes_compare(bytes_text("a"), bytes_text("ab")) < 0);
  assert_true(bytes_compare(bytes_text("b"), bytes_text("ab")) > 0);
  assert_true(bytes_compare(none, bytes_text("a")) < 0);
  assert_true(bytes_compare(bytes_text("\x7f"), bytes_text("\x80")) < 0); /* as unsigned bytes */
}

#define TEXT(s) \
  { (const uint8_t *)(s), sizeof(s) - 1 }

static void judges_utf8(void **state) {
  (void)state;
  static const struct {
    struct bytes text;
    bool valid;
    size_t chars;
  } cases[] = {
      {TEXT(""), true, 0},
      {TEXT("abc"), true, 3},
      {TEXT("a\0b"), true, 3},
      {TEXT("\x7f"), true, 1},
      {TEXT("\xc2\x80"), true, 1},         /* U+0080 */
      {TEXT("\xdf\xbf"), true, 1},         /* U+07FF */
      {TEXT("\xe0\xa0\x80"), true, 1},     /* U+0800 */
      {TEXT("\xed\x9f\xbf"), true, 1},     /* U+D7FF */
      {TEXT("\xee\x80\x80"), true, 1},     /* U+E000 */
      {TEXT("\xef\xbf\xbf"), true, 1},     /* U+FFFF */
      {TEXT("\xf0\x90\x80\x80"), true, 1}, /* U+10000 */
      {TEXT("\xf4\x8f\xbf\xbf"), true, 1}, /* U+10FFFF */
      {TEXT("e\xcc\x81"), true, 2},        /* combining: counted as coded */
      {TEXT("\xc0\x80"), false, 0},        /* overlong */
      {TEXT("\xc1\xbf"), false, 0},
      {TEXT("\xe0\x9f\xbf"), false, 0},
      {TEXT("\xf0\x8f\xbf\xbf"), false, 0},
      {TEXT("\xed\xa0\x80"), false, 0}, /* surrogates */
      {TEXT("\xed\xbf\xbf"), false, 0},
      {TEXT("\xf4\x90\x80\x80"), false, 0}, /* beyond U+10FFFF */
      {TEXT("\xf5\x80\x80\x80"), false, 0},
      {TEXT("\xff"), false, 0},
      {TEXT("\x80"), false, 0},
      {TEXT("a\xc3"), false, 0}, /* cut short */
      {TEXT("\xe2\x82"), false, 0},
      {TEXT("\xf0\x9f\x98"), false, 0},
      {TEXT("\xc3("), false, 0},
      {TEXT("\xe2(\xa1"), false, 0},
      {TEXT("\xf0\x9f(\x80"), false, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint8_t *copy = malloc(cases[i].text.size + 1);
    assert_non_null(copy);
    memcpy(copy, cases[i].text.data, cases[i].text.size);
    struct bytes text = bytes_of(copy, cases[i].text.size);
    if (bytes_is_utf8(text) != cases[i].valid) fail_msg("case %zu", i);
    if (cases[i].valid) assert_int_equal(bytes_count_chars(text), cases[i].chars);
    free(copy);
  }
}

/* Every byte at every place of texts that are as long as they are, no byte more, against what the names say. */
static void every_byte_is_seen_at_every_place(void **state) {
  (void)state;
  for (size_t size = 0; size <= 25; size++) {
    uint8_t *text = malloc(size + 1);
    assert_non_null(text);
    uint8_t *exact = text + 1; /* odd, so that nothing may depend on the place in memory */
    memset(exact, '~', size);
    assert_true(bytes_is_visible(bytes_of(exact, size)) && bytes_is_printed(bytes_of(exact, size)));
    for (size_t at = 0; at < size; at++) {
      for (unsigned c = 0; c < 256; c++) {
        exact[at] = (uint8_t)c;
        if (bytes_is_visible(bytes_of(exact, size)) != (c > ' ' && c <= '~')) fail_msg("%u at %zu of %zu", c, at, size);
        if (bytes_is_printed(bytes_of(exact, size)) != (c >= ' ' && c != 0x7F)) fail_msg("%u at %zu of %zu", c, at, size);
      }
      exact[at] = at % 2 == 0 ? '!' : '~';
    }
    free(text);
  }
}

static void every_code_point_is_judged(void **state) {
  (void)state;
  for (uint32_t point = 0x800; point <= 0x10FFFF; point += point < 0x10000 ? 1 : 97) {
    uint8_t text[4];
    size_t size = point < 0x10000 ? 3 : 4;
    text[0] = (uint8_t)(size == 3 ? 0xE0 | point >> 12 : 0xF0 | point >> 18);
    for (size_t i = 1; i < size; i++) text[i] = (uint8_t)(0x80 | ((point >> (6 * (size - 1 - i))) & 0x3F));
    bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    assert_int_equal(bytes_is_utf8(bytes_of(text, size)), !surrogate);
  }
}

static void buffer_grows_to_its_limit(void **state) {
  (void)state;
  struct buffer buffer;
  buffer_init(&buffer, 1000);
  for (unsigned i = 0; i < 1000; i++) buffer_append_char(&buffer, 'x');
  assert_false(buffer.failed);
  assert_int_equal(buffer.size, 1000);
  buffer_append(&buffer, "", 0);
  assert_false(buffer.failed); /* nothing fits a full buffer */
  buffer_append_char(&buffer, 'y');
  assert_true(buffer.failed);
  assert_int_equal(buffer.size, 1000); /* what stands there stays */
  buffer_append(&buffer, "", 0);
  assert_true(buffer.failed);
  buffer_reset(&buffer);
  assert_false(buffer.failed);
  assert_int_equal(buffer.size, 0);
  buffer_append_text(&buffer, "again");
  assert_true(bytes_equal_text(buffer_bytes(&buffer), "again"));
  buffer_clear(&buffer);
  assert_int_equal(buffer.limit, 1000);
  assert_null(buffer.data);
}

static void buffer_writes_numbers_and_formats(void **state) {
  (void)state;
  struct buffer buffer;
  buffer_init(&buffer, 4096);
  buffer_append_u64(&buffer, 0);
  buffer_append_char(&buffer, ' ');
  buffer_append_u64(&buffer, UINT64_MAX);
  buffer_append_format(&buffer, " %s-%d", "abc", -5);
  buffer_append_bytes(&buffer, bytes_text("!"));
  assert_true(bytes_equal_text(buffer_bytes(&buffer), "0 18446744073709551615 abc--5!"));
  uint8_t *room = buffer_reserve(&buffer, 3);
  assert_non_null(room);
  memcpy(room, "end", 3);
  buffer_commit(&buffer, 3);
  assert_true(bytes_equal_text(buffer_bytes(&buffer), "0 18446744073709551615 abc--5!end"));
  buffer_clear(&buffer);

  buffer_init(&buffer, 4);
  buffer_append_format(&buffer, "%s", "abcd"); /* the NUL of the formatter needs room too */
  assert_true(buffer.failed);
  assert_int_equal(buffer.size, 0);
  buffer_clear(&buffer);

  buffer_init(&buffer, 1000);
  buffer_append_char(&buffer, 'x');
  assert_null(buffer_reserve(&buffer, SIZE_MAX)); /* one and all others: says so, does not wrap */
  assert_true(buffer.failed);
  buffer_clear(&buffer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(compares_spans),
      cmocka_unit_test(judges_utf8),
      cmocka_unit_test(every_byte_is_seen_at_every_place),
      cmocka_unit_test(every_code_point_is_judged),
      cmocka_unit_test(buffer_grows_to_its_limit),
      cmocka_unit_test(buffer_writes_numbers_and_formats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
