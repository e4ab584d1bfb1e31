/* Tests the two ways of writing JSON again: minified, where all but white space stays, and canonical, where two texts that mean
 * the same become the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "codec/digest.h"
#include "codec/json.h"
#include "support/support.h"

static struct json json;
static struct buffer out;

static int set_up(void **state) {
  (void)state;
  json_init(&json);
  buffer_init(&out, 16 << 20);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  json_clear(&json);
  buffer_clear(&out);
  return 0;
}

static void parsed(struct bytes text) {
  struct fault fault = {.message = ""};
  if (json_parse(&json, text, &fault) != STATUS_OK) fail_msg("%.*s: %s", (int)text.size, text.data, fault.message);
}

static void expect_out(const char *text, const char *expected) {
  assert_false(out.failed);
  if (!bytes_equal_text(buffer_bytes(&out), expected))
    fail_msg("%s became %.*s instead of %s", text, (int)out.size, out.data, expected);
}

static void minify(const char *text, const char *expected) {
  parsed(bytes_text(text));
  buffer_reset(&out);
  json_minify(&json, 0, &out);
  expect_out(text, expected);
}

static void canonical(const char *text, const char *expected) {
  parsed(bytes_text(text));
  buffer_reset(&out);
  json_canonical(&json, 0, &out);
  expect_out(text, expected);
}

static void numbers_stay_as_written(void **state) {
  static const char *const numbers[] = {
      "9007199254740993",
      "1.10",
      "1e400",
      "18446744073709551615",
      "123456789012345678901234567890",
      "-0",
      "-0.0",
      "0e0",
      "1E+05",
      "-1.50e-0010",
      "100000000000000000000000000000000000000000000000000000000000.000000000000000000000000000000000000000001",
  };
  (void)state;
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    struct buffer text;
    buffer_init(&text, 4096);
    minify(numbers[i], numbers[i]);
    canonical(numbers[i], numbers[i]);
    buffer_append_format(&text, "{ \"b\" : [ %s ], \"a\" :%s }%c", numbers[i], numbers[i], 0);
    parsed(bytes_text((const char *)text.data));
    buffer_reset(&out);
    json_canonical(&json, 0, &out);
    buffer_reset(&text);
    buffer_append_format(&text, "{\"a\":%s,\"b\":[%s]}", numbers[i], numbers[i]);
    assert_true(bytes_equal(buffer_bytes(&out), buffer_bytes(&text)));
    buffer_clear(&text);
  }
}

static void minifying_takes_outside_white_space_only(void **state) {
  (void)state;
  minify(" \t\r\n null \t\r\n ", "null");
  minify("\" a b \"", "\" a b \"");
  minify("[ 1 , \" , \" , [ ] , { } ]", "[1,\" , \",[],{}]");
  minify("{\n\t\"a b\" :\t\"\\n \\\" \" ,\r\n\"c\": { \"d\":[true ,false,\tnull ] }\n}",
         "{\"a b\":\"\\n \\\" \",\"c\":{\"d\":[true,false,null]}}");
  minify("{\"b\":\"\\u0041\",\"a\":1}", "{\"b\":\"\\u0041\",\"a\":1}"); /* order and escapes stay */
}

static void one_member_is_minified_alone(void **state) {
  (void)state;
  parsed(bytes_text("{ \"x\" : 1 , \"payload\" : { \"a\" : [ \" \" ] } , \"s\" : \" s \" }"));
  buffer_reset(&out);
  json_minify(&json, json_member(&json, 0, "payload"), &out);
  expect_out("payload", "{\"a\":[\" \"]}");
  json_minify(&json, json_member(&json, 0, "s"), &out);
  expect_out("payload and s", "{\"a\":[\" \"]}\" s \"");
}

static void canonical_form_is_sorted_and_shortest(void **state) {
  static const struct {
    const char *text, *canonical;
  } cases[] = {
      {" null ", "null"},
      {"[ ]", "[]"},
      {"{ }", "{}"},
      {"{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
      {"[3,1,2]", "[3,1,2]"}, /* the order of items means something */
      {"{\"b\":{\"d\":[{\"z\":1,\"y\":2}],\"c\":{}},\"a\":[]}", "{\"a\":[],\"b\":{\"c\":{},\"d\":[{\"y\":2,\"z\":1}]}}"},
      /* by bytes, shorter first: not by locale, not by UTF-16 unit */
      {"{\"b\":0,\"B\":0,\"ab\":0,\"a\":0,\"\":0,\"_\":0}", "{\"\":0,\"B\":0,\"_\":0,\"a\":0,\"ab\":0,\"b\":0}"},
      {"{\"\xF0\x90\x80\x80\":0,\"\xEF\xBF\xBF\":0}", "{\"\xEF\xBF\xBF\":0,\"\xF0\x90\x80\x80\":0}"},
      {"{\"12345678b\":0,\"12345678a\":0,\"12345678\":0,\"1234567\":0}",
       "{\"1234567\":0,\"12345678\":0,\"12345678a\":0,\"12345678b\":0}"},
      /* by decoded bytes */
      {"{\"\\u0062\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
      {"{\"a\\u0001\":1,\"a\":2}", "{\"a\":2,\"a\\u0001\":1}"},
      /* strings */
      {"\"\\u0041\\/\\u00e9\\ud834\\udd1e\"", "\"A/\xC3\xA9\xF0\x9D\x84\x9E\""},
      {"\"\\\"\\\\\\b\\f\\n\\r\\t\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\""},
      {"\"\\u0022\\u005C\\u0008\\u000c\\u000A\\u000d\\u0009\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\""},
      {"\"\\u0001\\u001F\\u000B\\u007F\"", "\"\\u0001\\u001f\\u000b\x7F\""},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    canonical(cases[i].text, cases[i].canonical);
    canonical(cases[i].canonical, cases[i].canonical);
  }
}

static void a_fresh_parser_writes_an_empty_object(void **state) {
  (void)state;
  json_clear(&json);
  canonical(" { } ", "{}");
  json_clear(&json);
  canonical("[{},{\"b\":{},\"a\":{}}]", "[{},{\"a\":{},\"b\":{}}]");
}

static void texts_that_mean_the_same_have_one_digest(void **state) {
  static const struct {
    bool same;
    const char *a, *b;
  } cases[] = {
      {true, "{\"a\":1,\"b\":[true,null]}", " { \"b\" : [ true , null ] ,\n\"a\" : 1 } "},
      {true, "{\"k/ey\":\"\\u00e9\\n\"}", "{\"\\u006b\\/ey\":\"\xC3\xA9\\u000a\"}"},
      {true, "{\"o\":{\"x\":1,\"y\":{\"p\":0,\"q\":0}}}", "{\"o\":{\"y\":{\"q\":0,\"p\":0},\"x\":1}}"},
      {false, "1", "1.0"},
      {false, "1.1", "1.10"},
      {false, "1e2", "1E2"},
      {false, "0", "-0"},
      {false, "[1,2]", "[2,1]"},
      {false, "\"1\"", "1"},
      {false, "\" a\"", "\"a\""},
      {false, "{}", "[]"},
      {false, "null", "\"null\""},
      {false, "{\"a\":{\"b\":1}}", "{\"a\":{},\"b\":1}"},
      {false, "{\"A\":1}", "{\"a\":1}"},
      {false, "\"e\xCC\x81\"", "\"\xC3\xA9\""}, /* no normal form is made of texts */
      {false, "9007199254740993", "9007199254740992"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    parsed(bytes_text(cases[i].a));
    struct id a = json_digest(&json, 0, &out);
    parsed(bytes_text(cases[i].b));
    struct id b = json_digest(&json, 0, &out);
    if (id_equal(&a, &b) != cases[i].same) fail_msg("%s and %s: same digest is wrong", cases[i].a, cases[i].b);
  }
}

static void many_keys_are_sorted(void **state) {
  enum { keys = 1000 };
  struct buffer text, expected;
  uint64_t seed = test_seed();
  unsigned order[keys];
  (void)state;
  buffer_init(&text, 1 << 20);
  buffer_init(&expected, 1 << 20);
  for (unsigned i = 0; i < keys; i++) order[i] = i;
  for (unsigned i = keys - 1; i > 0; i--) {
    unsigned j = (unsigned)(test_random(&seed) % (i + 1)), swap = order[i];
    order[i] = order[j];
    order[j] = swap;
  }
  for (unsigned i = 0; i < keys; i++) {
    char comma = i == 0 ? '{' : ',';
    buffer_append_format(&text, "%c \"key number %03u\": {\"z\":%u,\"a\":0}", comma, order[i], order[i]);
    buffer_append_format(&expected, "%c\"key number %03u\":{\"a\":0,\"z\":%u}", comma, i, i);
  }
  buffer_append_char(&text, '}');
  buffer_append_char(&expected, '}');
  parsed(buffer_bytes(&text));
  buffer_reset(&out);
  json_canonical(&json, 0, &out);
  assert_true(bytes_equal(buffer_bytes(&out), buffer_bytes(&expected)));
  buffer_clear(&text);
  buffer_clear(&expected);
}

static void the_deepest_document_is_written(void **state) {
  struct buffer text;
  (void)state;
  buffer_init(&text, 4096);
  for (unsigned i = 0; i < json_depth_max; i++) buffer_append_text(&text, i % 2 == 0 ? "{\"a\":" : "[");
  text.size -= 1; /* the innermost is an empty array */
  buffer_append_char(&text, '[');
  for (unsigned i = json_depth_max; i-- > 0;) buffer_append_char(&text, i % 2 == 0 ? '}' : ']');
  parsed(buffer_bytes(&text));
  buffer_reset(&out);
  json_canonical(&json, 0, &out);
  assert_true(bytes_equal(buffer_bytes(&out), buffer_bytes(&text)));
  buffer_clear(&text);
}

static void a_full_buffer_is_said(void **state) {
  struct buffer small;
  (void)state;
  parsed(bytes_text("{\"a\":[1,2,3],\"b\":\"\\u00e9\"}"));
  for (size_t limit = 0; limit < 24; limit++) {
    buffer_init(&small, limit);
    json_canonical(&json, 0, &small);
    assert_int_equal(small.failed, limit < sizeof "{\"a\":[1,2,3],\"b\":\"\xC3\xA9\"}" - 1);
    assert_true(small.size <= limit);
    buffer_clear(&small);
  }
}

static void strings_are_written_with_the_shortest_escapes(void **state) {
  static const struct {
    const char *text, *written;
  } cases[] = {
      {"", "\"\""},
      {"plain text of more than eight bytes", "\"plain text of more than eight bytes\""},
      {"\"\\/", "\"\\\"\\\\/\""},
      {"\b\f\n\r\t\x01\x1F\x7F", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7F\""},
      {"已核实 \xF0\x9D\x84\x9E and more \n text behind it", "\"已核实 \xF0\x9D\x84\x9E and more \\n text behind it\""},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    buffer_reset(&out);
    json_write_string(&out, bytes_text(cases[i].text));
    expect_out(cases[i].text, cases[i].written);
    parsed(buffer_bytes(&out));
    assert_true(bytes_equal_text(json_string(&json, 0), cases[i].text));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_stay_as_written),
      cmocka_unit_test(minifying_takes_outside_white_space_only),
      cmocka_unit_test(one_member_is_minified_alone),
      cmocka_unit_test(canonical_form_is_sorted_and_shortest),
      cmocka_unit_test(a_fresh_parser_writes_an_empty_object),
      cmocka_unit_test(texts_that_mean_the_same_have_one_digest),
      cmocka_unit_test(many_keys_are_sorted),
      cmocka_unit_test(the_deepest_document_is_written),
      cmocka_unit_test(a_full_buffer_is_said),
      cmocka_unit_test(strings_are_written_with_the_shortest_escapes),
  };
  return cmocka_run_group_tests_name("json canonical", tests, set_up, tear_down);
}
