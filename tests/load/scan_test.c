/* Finding values in JSON without judging it. */
#include "load/scan.h"

#include "support/support.h"

static struct bytes text(const char *words) { return bytes_text(words); }

static void members_are_found(void **state) {
  static const struct {
    const char *object, *name, *value; /* value NULL: none */
  } rows[] = {
      {"{\"a\":1,\"b\":2}", "a", "1"},
      {"{\"a\":1,\"b\":2}", "b", "2"},
      {"{\"a\":1,\"b\":2}", "c", NULL},
      {"{}", "a", NULL},
      {"", "a", NULL},
      {"{\"a\":{\"b\":1},\"b\":[2,{\"b\":3}]}", "b", "[2,{\"b\":3}]"},
      {"{\"a\":\"}\\\",\\\"b\\\":\",\"b\":true}", "b", "true"},
      {"{\"a\":\"\\\\\",\"b\":null}", "b", "null"},
      {"{\"ab\":1,\"a\":2}", "a", "2"},
      {"{\"b\":{\"a\":1}}", "a", NULL},
      {"{\"a\":-1.5e3}", "a", "-1.5e3"},
      {"{\"a\":\"\\\\\\\"\\\\\",\"b\":1}", "b", "1"},
      {"{\"a\":\"x\\\"", "b", NULL},
      {"{\"a\":\"cut", "b", NULL},
      {"{\"a\":[1,2", "b", NULL},
      {"{\"a\"", "a", NULL},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct bytes value = scan_member(text(rows[i].object), rows[i].name);
    if (rows[i].value == NULL) assert_null(value.data);
    else assert_true(bytes_equal_text(value, rows[i].value));
  }
}

static void texts_and_truth(void **state) {
  struct bytes object = text("{\"word\":\"x y\",\"empty\":\"\",\"number\":12,\"yes\":true,\"no\":false,\"said\":\"true\"}");
  (void)state;
  assert_true(bytes_equal_text(scan_text(object, "word"), "x y"));
  assert_true(scan_text(object, "empty").data != NULL && scan_text(object, "empty").size == 0);
  assert_null(scan_text(object, "number").data);
  assert_true(scan_is_true(object, "yes"));
  assert_false(scan_is_true(object, "no"));
  assert_false(scan_is_true(object, "said"));
  assert_false(scan_is_true(object, "absent"));
}

static void items_come_in_order(void **state) {
  static const char *const items[] = {"{\"a\":[1,2]}", "\"x,]\"", "3", "[]"};
  struct bytes array = text("[{\"a\":[1,2]},\"x,]\",3,[]]"), item;
  size_t at = 0, count = 0;
  (void)state;
  while (scan_item(array, &at, &item)) {
    assert_true(count < 4);
    assert_true(bytes_equal_text(item, items[count++]));
  }
  assert_int_equal(count, 4);
  at = 0;
  assert_false(scan_item(text("[]"), &at, &item));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(members_are_found),
      cmocka_unit_test(texts_and_truth),
      cmocka_unit_test(items_come_in_order),
  };
  return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
