/* Cursors: back and forth, bound to what they were made for, and not to be forged. */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "codec/cursor.h"

static struct secret secret_of(int byte) {
  struct secret secret;
  memset(secret.bytes, byte, sizeof secret.bytes);
  return secret;
}

static struct id id_of(int byte) {
  struct id id;
  memset(id.bytes, byte, sizeof id.bytes);
  return id;
}

static struct cursor_binding binding_of(const char *kind, int namespace_id, int filters) {
  return (struct cursor_binding){kind, id_of(namespace_id), id_of(filters)};
}

static void test_positions_come_back(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 2, 3, 8, 24, 511, cursor_position_bytes_max};
  struct secret secret = secret_of(1);
  struct cursor_binding binding = binding_of("tasks", 2, 3);
  uint8_t position[cursor_position_bytes_max];
  uint64_t seed = test_seed();
  for (size_t i = 0; i < sizeof position; i++) position[i] = (uint8_t)test_random(&seed);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    struct buffer out;
    struct cursor_position read;
    struct fault fault;
    buffer_init(&out, 4096);
    cursor_write(&out, &secret, &binding, bytes_of(position, sizes[i]));
    assert_false(out.failed);
    assert_true(out.size <= cursor_chars_max);
    for (size_t k = 0; k < out.size; k++)
      assert_non_null(memchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", out.data[k], 64));
    assert_int_equal(cursor_read(buffer_bytes(&out), &secret, &binding, &read, &fault), STATUS_OK);
    assert_int_equal(read.size, sizes[i]);
    assert_memory_equal(read.bytes, position, sizes[i]);
    buffer_clear(&out);
  }
}

static void assert_refused(struct bytes text, const struct secret *secret, struct cursor_binding binding) {
  struct cursor_position read = {.size = 77};
  struct fault fault;
  assert_int_equal(cursor_read(text, secret, &binding, &read, &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "cursor");
  assert_true(fault.message[0] != 0);
  assert_int_equal(read.size, 77);
}

static void test_bound_to_its_listing(void **state) {
  (void)state;
  struct secret secret = secret_of(1), other = secret_of(9);
  struct cursor_binding binding = binding_of("tasks", 2, 3);
  struct buffer out;
  buffer_init(&out, 4096);
  cursor_write(&out, &secret, &binding, bytes_text("position"));
  struct bytes text = buffer_bytes(&out);
  assert_refused(text, &other, binding);
  assert_refused(text, &secret, binding_of("task", 2, 3));
  assert_refused(text, &secret, binding_of("operations", 2, 3));
  assert_refused(text, &secret, binding_of("tasks", 4, 3));
  assert_refused(text, &secret, binding_of("tasks", 2, 4));
  buffer_clear(&out);
}

/* Every other character in every place, every shorter text, and some that are no cursor at all. */
static void test_not_to_be_forged(void **state) {
  (void)state;
  struct secret secret = secret_of(1);
  struct cursor_binding binding = binding_of("tasks", 2, 3);
  struct buffer out;
  buffer_init(&out, 4096);
  cursor_write(&out, &secret, &binding, bytes_text("pos"));
  for (size_t i = 0; i < out.size; i++) {
    uint8_t kept = out.data[i];
    for (int c = 0; c < 256; c++) {
      if (c == kept) continue;
      out.data[i] = (uint8_t)c;
      assert_refused(buffer_bytes(&out), &secret, binding);
    }
    out.data[i] = kept;
    assert_refused(bytes_of(out.data, i), &secret, binding);
  }
  buffer_append_char(&out, 'A');
  assert_refused(buffer_bytes(&out), &secret, binding);
  buffer_reset(&out);
  for (unsigned i = 0; i < cursor_chars_max; i++) buffer_append_char(&out, 'A');
  assert_refused(buffer_bytes(&out), &secret, binding);
  buffer_append_char(&out, 'A');
  assert_refused(buffer_bytes(&out), &secret, binding);
  assert_refused(bytes_of(NULL, 0), &secret, binding);
  assert_refused(bytes_text("not a cursor"), &secret, binding);
  buffer_clear(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_positions_come_back),
      cmocka_unit_test(test_bound_to_its_listing),
      cmocka_unit_test(test_not_to_be_forged),
  };
  return cmocka_run_group_tests_name("cursor", tests, NULL, NULL);
}
